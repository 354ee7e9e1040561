// Instructions in HLO text: name, type, opcode, operands.
#include "ir/text/parse.h"

// --- names and operands -------------------------------------------------------------------------------------------

bool kl_parse_name(kl_parser *ps, const char *what, uint32_t *out) {
  kl_lexer *lx = &ps->lx;
  if (lx->kind != KL_TOK_NAME && lx->kind != KL_TOK_PERCENT) return kl_lex_expected(lx, "%s", what);
  *out = kl_intern(&ps->m->names, lx->text);
  kl_lex_next(lx);
  return true;
}

static bool parse_nested(kl_parser *ps, kl_use *use);

// Adds a parameter for an operand that has a type but is not defined.
static void add_parameter(kl_parser *ps, kl_use *use) {
  while (ps->defined.n <= use->symbol) VEC_PUSH(ps->cx, &ps->defined, false);
  if (use->symbol && ps->defined.p[use->symbol]) return;
  if (!use->symbol) use->symbol = kl_intern(&ps->m->names, kl_str_of(kl_strf(ps->arena, "_%u", ps->nimplicit)));
  while (ps->defined.n <= use->symbol) VEC_PUSH(ps->cx, &ps->defined, false);
  ps->defined.p[use->symbol] = true;
  kl_draft_instr d = {.in.op = KL_OP_PARAMETER, .in.more = &kl_no_more, .in.shape = use->type};
  d.in.name = use->symbol;
  d.in.number = ps->nimplicit++;
  d.in.span = (kl_span){ps->lx.src, use->begin, use->end};
  d.name_begin = use->begin;
  d.name_end = use->end;
  VEC_PUSH(ps->cx, &ps->instrs, d);
}

static bool at_call(const kl_parser *ps) {
  kl_str t = ps->lx.src->text;
  size_t pos = kl_lex_skip(&ps->lx, ps->lx.pos);
  return ps->lx.kind == KL_TOK_NAME && pos < t.n && t.p[pos] == '(';
}

// [type] [%]name, or an instruction without a name and attributes.
static bool parse_operand(kl_parser *ps) {
  kl_use use = {0};
  kl_lexer *lx = &ps->lx;
  if (kl_parse_at_shape(ps) && !kl_parse_shape(ps, &use.type)) return false;
  bool nameless = ps->implicit && use.type && (lx->punct == ',' || lx->punct == ')');
  use.begin = (uint32_t)lx->begin;
  use.end = (uint32_t)lx->pos;
  if (at_call(ps)) {
    if (!parse_nested(ps, &use)) return false;
  } else if (!nameless && !kl_parse_name(ps, "an operand's name", &use.symbol)) {
    return false;
  }
  if (ps->implicit && use.type && !use.indexed) add_parameter(ps, &use);
  VEC_PUSH(ps->cx, &ps->uses, use);
  return true;
}

static bool parse_operands(kl_parser *ps) {
  if (ps->lx.punct == ')') return true;
  do {
    if (!parse_operand(ps)) return false;
  } while (kl_lex_eat(&ps->lx, ','));
  return true;
}

// --- operands of ops that kiln does not know ----------------------------------------------------------------------

// Is text[begin, end) an operand, [type] [%]name without white space around it? Fills in the use. A number is a name
// only with '%'.
static bool scan_operand(kl_parser *ps, size_t begin, size_t end, kl_use *use) {
  kl_str t = ps->lx.src->text;
  size_t name = end;
  while (name > begin && kl_is_name_char(t.p[name - 1])) name--;
  if (name == end) return false;
  size_t from = name > begin && t.p[name - 1] == '%' ? name - 1 : name, type_end = from;
  if (from == name && !kl_is_name_start(t.p[name])) return false;
  while (type_end > begin && kl_is_space(t.p[type_end - 1])) type_end--;
  if (type_end > begin) {
    char last = t.p[type_end - 1];
    if (!kl_is_name_start(t.p[begin]) && t.p[begin] != '(') return false;
    if (last != ']' && last != '}' && last != ')') return false;
  }
  *use = (kl_use){.bare = from == name && type_end == begin, .begin = (uint32_t)from, .end = (uint32_t)end};
  use->symbol = kl_intern(&ps->m->names, (kl_str){t.p + name, end - name});
  return true;
}

// Behind the piece that begins at `pos` and reaches to a comma or bracket outside of brackets; *last: where it ends but
// for white space and comments. The text has passed kl_lex_raw.
static size_t scan_piece(kl_parser *ps, size_t pos, size_t end, size_t *last) {
  kl_str t = ps->lx.src->text;
  uint32_t depth = 0;
  bool quoted = false;
  for (*last = pos; pos < end; *last = ++pos) {
    char c = t.p[pos];
    if (!quoted) {
      size_t behind = kl_lex_skip(&ps->lx, pos);
      if (behind >= end) return end;
      if (behind > pos) {
        size_t mark = *last;
        pos = behind;
        c = t.p[pos];
        *last = mark;
      }
      if (depth == 0 && c == ',') return pos;
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1u : 0;
    }
    if (c == '\\' && quoted) pos++;
    quoted ^= c == '"';
  }
  return end;
}

// Takes the operands as text, and of them what looks like names.
static bool parse_unknown_operands(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  size_t pos = lx->begin;
  if (!kl_lex_raw(lx, ps->arena, KL_RAW_GROUP, &d->in.raw_operands)) return false;
  size_t end = lx->begin;
  d->all_names = true;
  while (pos < end) {
    size_t begin = kl_lex_skip(lx, pos), last;
    if (begin >= end && d->in.raw_operands.n == 0) break;
    pos = scan_piece(ps, begin, end, &last) + 1;
    kl_use use;
    if (scan_operand(ps, begin, last, &use))
      VEC_PUSH(ps->cx, &ps->uses, use);
    else
      d->all_names = false;
  }
  return true;
}

// --- instructions -------------------------------------------------------------------------------------------------

static bool parse_parameter_number(kl_parser *ps, kl_draft_instr *d) {
  size_t begin = ps->lx.begin;
  if (!kl_lex_int(&ps->lx, "the parameter's number", &d->in.number)) return false;
  if (d->in.number >= 0) return true;
  kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin), "parameter: expected a number of at least 0, found %lld",
             (long long)d->in.number);
  return false;
}

static bool parse_constant(kl_parser *ps, kl_draft_instr *d) {
  if (!d->in.shape) {
    kl_invalid(ps->cx, d->in.span, "constant: expected a type before the opcode, found none");
    return false;
  }
  return kl_parse_literal(ps, d);
}

static bool parse_arguments(kl_parser *ps, kl_draft_instr *d) {
  switch (d->in.op) {
  case KL_OP_UNKNOWN: return parse_unknown_operands(ps, d);
  case KL_OP_PARAMETER: return parse_parameter_number(ps, d);
  case KL_OP_CONSTANT: return parse_constant(ps, d);
  default: return parse_operands(ps);
  }
}

// False after a finding: it is nearly one that is known. Else it is kept, and told once.
static bool keep_opcode(kl_parser *ps, kl_draft_instr *d) {
  kl_str text = ps->lx.text;
  char similar[64] = "";
  bool misspelt;
  d->in.opcode_text = kl_intern(&ps->m->names, text);
  while (ps->warned.n <= d->in.opcode_text) VEC_PUSH(ps->cx, &ps->warned, false);
  if (ps->warned.p[d->in.opcode_text]) return true;
  bool found = kl_similar_op(text, similar, &misspelt);
  if (found && misspelt) {
    kl_invalid(ps->cx, d->in.span, "expected an opcode, found '%.*s'; the most similar one is '%s'", KL_FMT(text),
               similar);
    return false;
  }
  ps->warned.p[d->in.opcode_text] = true;
  kl_warn(ps->cx, d->in.span, "the opcode '%.*s' is not known and kept as text%s%s%s", KL_FMT(text),
          found ? "; HLO has '" : "", similar, found ? "'" : "");
  return true;
}

static bool parse_opcode(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  if (lx->kind != KL_TOK_NAME) return kl_lex_expected(lx, d->in.shape ? "an opcode" : "a type or an opcode");
  d->in.span = kl_lex_span(lx);
  bool known = kl_op_from_text(lx->text, &d->in.op, &d->in.wrapped);
  bool is_call = at_call(ps); // else it is no opcode at all
  if (!known && is_call && !keep_opcode(ps, d)) return false;
  kl_lex_next(lx);
  if (!kl_lex_need(lx, '(', "after the opcode")) return false;
  if (d->in.op != KL_OP_UNKNOWN || d->in.shape) return true;
  kl_invalid(ps->cx, d->in.span, "expected a type before the opcode '%.*s', which kiln cannot infer, found none",
             KL_FMT(kl_symbol_text(&ps->m->names, d->in.opcode_text)));
  return false;
}

// An instruction ends where its line does, or before another one; anything else was meant to belong to it.
static bool parse_end(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  kl_str t = lx->src->text;
  bool ends = lx->kind == KL_TOK_END || lx->punct == '}' || kl_lex_on_new_line(lx) || kl_is_instruction(t, lx->begin);
  return ends || kl_lex_expected(lx, "',' or the end of the line after the instruction");
}

// What follows the type.
static bool parse_call(kl_parser *ps, kl_draft_instr *d) {
  if (!parse_opcode(ps, d)) return false;
  d->first_use = (uint32_t)ps->uses.n;
  bool ok = parse_arguments(ps, d);
  d->nuses = (uint32_t)(ps->uses.n - d->first_use);
  return ok && kl_lex_need(&ps->lx, ')', "after the operands");
}

static bool parse_definition(kl_parser *ps, kl_draft_instr *d) {
  if (kl_parse_at_shape(ps) && !kl_parse_shape(ps, &d->in.shape)) return false;
  return parse_call(ps, d) && kl_parse_attrs(ps, d, true) && parse_end(ps);
}

// An instruction as an operand comes before the one that uses it; its name is found when all names are known.
// Attributes it cannot have: they would be taken for those of the instruction around it.
static bool parse_nested(kl_parser *ps, kl_use *use) {
  kl_draft_instr d = {.in.more = &kl_no_more, .in.shape = use->type, .anonymous = true, .nested = true};
  if (ps->depth == KL_MAX_NESTED) return kl_lex_expected(&ps->lx, "instructions nested at most %d deep", KL_MAX_NESTED);
  ps->depth++;
  d.name_begin = use->begin;
  d.name_end = use->end;
  d.broken = !parse_call(ps, &d) || !kl_parse_attrs(ps, &d, false);
  ps->depth--;
  if (d.broken) return false;
  ps->uses.n = d.first_use;
  if (d.nuses) d.own_uses = kl_arena_dup(ps->arena, ps->uses.p + d.first_use, d.nuses * sizeof(kl_use));
  *use =
      (kl_use){.indexed = true, .symbol = (uint32_t)(ps->instrs.n - ps->first), .begin = use->begin, .end = use->end};
  VEC_PUSH(ps->cx, &ps->instrs, d);
  return true;
}

static bool parse_head(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  if (kl_lex_is_name(lx, "ROOT")) {
    d->is_root = true;
    kl_lex_next(lx);
  }
  d->name_begin = (uint32_t)lx->begin;
  d->name_end = (uint32_t)lx->pos;
  d->anonymous = ps->implicit && kl_parse_at_shape(ps);
  return d->anonymous || (kl_parse_name(ps, "an instruction or '}'", &d->in.name) &&
                          kl_lex_need(lx, '=', "after the instruction's name"));
}

void kl_parse_instruction(kl_parser *ps) {
  kl_draft_instr d = {.in.more = &kl_no_more};
  size_t begin = ps->lx.begin;
  d.broken = !parse_head(ps, &d) || !parse_definition(ps, &d);
  if (ps->implicit) {
    while (ps->defined.n <= d.in.name) VEC_PUSH(ps->cx, &ps->defined, false);
    ps->defined.p[d.in.name] = true;
  }
  if (d.in.name || d.anonymous) VEC_PUSH(ps->cx, &ps->instrs, d);
  if (!d.broken) return;
  ps->lost = true;
  kl_parse_recover(ps, begin, true);
}

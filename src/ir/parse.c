// The parser of HLO modules: header, computations, instructions, and going on after an error.
//
// Instructions become drafts whose operands are names; parse_link.c resolves them once all computations are read. After
// an error reading goes on at the next line that looks like the beginning of an instruction or of a computation, so
// that one text gives many findings. Nothing recurses with the input's size but tuples' types, which have a limit.
#include "ir/parse.h"
#include "ir/shape.h"

// --- going on after an error --------------------------------------------------------------------------------------

static size_t skip_blanks(kl_str t, size_t pos) {
  while (pos < t.n && (t.p[pos] == ' ' || t.p[pos] == '\t')) pos++;
  return pos;
}

// Behind %name or name, or 0.
static size_t skip_name(kl_str t, size_t pos) {
  size_t begin = pos < t.n && t.p[pos] == '%' ? pos + 1 : pos;
  for (pos = begin; pos < t.n && kl_is_name_char(t.p[pos]);) pos++;
  return pos > begin ? pos : 0;
}

static bool has_word(kl_str t, size_t pos, kl_str word) {
  return t.n - pos > word.n && memcmp(t.p + pos, word.p, word.n) == 0 && kl_is_space(t.p[pos + word.n]);
}

// Is there `name =` with a type or an opcode behind it? That tells an instruction from an attribute on a line of its
// own.
static bool is_instruction(kl_str t, size_t pos) {
  if (has_word(t, pos, KL_STR("ROOT"))) pos = skip_blanks(t, pos + 4);
  size_t behind = skip_name(t, pos);
  behind = behind ? skip_blanks(t, behind) : t.n;
  if (behind >= t.n || t.p[behind] != '=') return false;
  pos = skip_blanks(t, behind + 1);
  if (pos < t.n && t.p[pos] == '(') return true;
  behind = skip_name(t, pos);
  return behind && behind < t.n && (t.p[behind] == '[' || t.p[behind] == '(');
}

static bool is_computation(kl_str t, size_t pos) {
  if (has_word(t, pos, KL_STR("ENTRY"))) return true;
  size_t behind = skip_name(t, pos);
  behind = behind ? skip_blanks(t, behind) : t.n;
  return behind < t.n && (t.p[behind] == '{' || t.p[behind] == '(');
}

static bool is_closing(kl_str t, size_t pos) {
  return pos < t.n && t.p[pos] == '}' && (pos + 1 == t.n || kl_is_space(t.p[pos + 1]) || t.p[pos + 1] == ',');
}

// Seeks the first promising line behind the one that holds `pos`, or the text's end.
static void recover(kl_parser *ps, size_t pos, bool in_body) {
  kl_str t = ps->lx.src->text;
  if (ps->lx.kind == KL_TOK_BAD && ps->lx.pos == t.n) pos = t.n; // nothing behind a comment without end counts
  for (const char *nl; pos < t.n && (nl = memchr(t.p + pos, '\n', t.n - pos));) {
    pos = skip_blanks(t, (size_t)(nl - t.p) + 1);
    if (is_computation(t, pos) || (in_body && (is_instruction(t, pos) || is_closing(t, pos)))) {
      kl_lex_seek(&ps->lx, pos);
      return;
    }
  }
  ps->ran_out = true;
  kl_lex_seek(&ps->lx, t.n);
}

// --- names and operands -------------------------------------------------------------------------------------------

bool kl_parse_name(kl_parser *ps, const char *what, uint32_t *out) {
  kl_lexer *lx = &ps->lx;
  if (lx->kind != KL_TOK_NAME && lx->kind != KL_TOK_PERCENT) return kl_lex_expected(lx, "%s", what);
  *out = kl_intern(&ps->m->names, lx->text);
  kl_lex_next(lx);
  return true;
}

static bool parse_operand(kl_parser *ps) {
  kl_use use = {0};
  if (kl_parse_at_shape(ps) && !kl_parse_shape(ps, &use.type)) return false;
  use.begin = (uint32_t)ps->lx.begin;
  use.end = (uint32_t)ps->lx.pos;
  if (!kl_parse_name(ps, "an operand's name", &use.symbol)) return false;
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

// Is text[begin, end) an operand, [type] [%]name without white space around it? Fills in the use.
static bool scan_operand(kl_parser *ps, size_t begin, size_t end, kl_use *use) {
  kl_str t = ps->lx.src->text;
  size_t name = end;
  while (name > begin && kl_is_name_char(t.p[name - 1])) name--;
  if (name == end) return false;
  size_t from = name > begin && t.p[name - 1] == '%' ? name - 1 : name, type_end = from;
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
  if (kl_shape_is_array(d->in.shape)) return kl_parse_literal(ps, d->in.shape, &d->in.literal);
  return kl_lex_raw(&ps->lx, ps->arena, KL_RAW_GROUP, &d->in.raw_operands);
}

static bool parse_arguments(kl_parser *ps, kl_draft_instr *d) {
  switch (d->in.op) {
  case KL_OP_UNKNOWN: return parse_unknown_operands(ps, d);
  case KL_OP_PARAMETER: return parse_parameter_number(ps, d);
  case KL_OP_CONSTANT: return parse_constant(ps, d);
  default: return parse_operands(ps);
  }
}

static bool parse_opcode(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  if (lx->kind != KL_TOK_NAME) return kl_lex_expected(lx, d->in.shape ? "an opcode" : "a type or an opcode");
  d->in.span = kl_lex_span(lx);
  if (!kl_op_from_str(lx->text, &d->in.op)) d->in.opcode_text = kl_intern(&ps->m->names, lx->text);
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
  bool ends = lx->kind == KL_TOK_END || lx->punct == '}' || kl_lex_on_new_line(lx) || is_instruction(t, lx->begin);
  return ends || kl_lex_expected(lx, "',' or the end of the line after the instruction");
}

// What follows the equals sign.
static bool parse_definition(kl_parser *ps, kl_draft_instr *d) {
  if (kl_parse_at_shape(ps) && !kl_parse_shape(ps, &d->in.shape)) return false;
  if (!parse_opcode(ps, d)) return false;
  d->first_use = (uint32_t)ps->uses.n;
  bool ok = parse_arguments(ps, d);
  d->nuses = (uint32_t)(ps->uses.n - d->first_use);
  return ok && kl_lex_need(&ps->lx, ')', "after the operands") && kl_parse_attrs(ps, d) && parse_end(ps);
}

static bool parse_head(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  if (kl_lex_is_name(lx, "ROOT")) {
    d->is_root = true;
    kl_lex_next(lx);
  }
  d->name_begin = (uint32_t)lx->begin;
  d->name_end = (uint32_t)lx->pos;
  return kl_parse_name(ps, "an instruction or '}'", &d->in.name) &&
         kl_lex_need(lx, '=', "after the instruction's name");
}

static void parse_instruction(kl_parser *ps) {
  kl_draft_instr d = {.in.called = UINT32_MAX};
  size_t begin = ps->lx.begin;
  d.broken = !parse_head(ps, &d) || !parse_definition(ps, &d);
  if (d.in.name) VEC_PUSH(ps->cx, &ps->instrs, d);
  if (!d.broken) return;
  ps->lost = true;
  recover(ps, begin, true);
}

// --- computations -------------------------------------------------------------------------------------------------

// (name: type, ...) -> type
static bool parse_signature(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  VEC(const kl_shape *) sig = {0};
  size_t begin = lx->begin;
  bool ok = true;
  kl_lex_next(lx);
  while (ok && lx->punct != ')') {
    uint32_t name;
    const kl_shape *s;
    ok = kl_parse_name(ps, "a parameter's name or ')'", &name) && kl_lex_need(lx, ':', "after the parameter's name") &&
         kl_parse_shape(ps, &s);
    if (ok) VEC_PUSH(ps->cx, &sig, s);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  c->nsig = (uint32_t)sig.n;
  c->sig = VEC_FREEZE(ps->cx, ps->arena, &sig);
  if (!ok || !kl_lex_need(lx, ')', "after the parameters")) return false;
  if (lx->kind != KL_TOK_ARROW) return kl_lex_expected(lx, "'->' after the parameters");
  kl_lex_next(lx);
  c->has_signature = kl_parse_shape(ps, &c->sig_result);
  c->sig_span = kl_lex_span_from(lx, begin);
  return c->has_signature;
}

static bool at_computation(const kl_parser *ps) {
  return (ps->lx.kind == KL_TOK_NAME || ps->lx.kind == KL_TOK_PERCENT) &&
         is_computation(ps->lx.src->text, ps->lx.begin);
}

static bool parse_comp_head(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  if (kl_lex_is_name(lx, "ENTRY")) {
    c->entry = true;
    kl_lex_next(lx);
  }
  c->c.span = kl_lex_span(lx);
  if (!kl_parse_name(ps, c->entry ? "the computation's name after ENTRY" : "a computation", &c->c.name)) return false;
  if (lx->punct == '(' && !parse_signature(ps, c)) return false;
  return kl_lex_need(lx, '{', "before the computation's body");
}

static void parse_body(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  ps->lost = false;
  while (lx->punct != '}' && lx->kind != KL_TOK_END && !at_computation(ps)) parse_instruction(ps);
  c->broken |= ps->lost;
  c->n = ps->instrs.n - c->first;
  c->end = lx->begin;
  if (lx->punct == '}') {
    kl_lex_next(lx);
    if (!kl_parse_raw_attrs(ps, &c->c.nraw, &c->c.raw)) recover(ps, lx->begin, false);
    return;
  }
  c->broken = true;
  if (ps->ran_out) return; // the brace may have been passed over
  kl_lex_expected(lx, "'}' that closes the computation '%.*s'", KL_FMT(kl_symbol_text(&ps->m->names, c->c.name)));
}

static void parse_computation(kl_parser *ps) {
  kl_draft_comp c = {.first = ps->instrs.n};
  size_t begin = ps->lx.begin;
  if (!parse_comp_head(ps, &c)) {
    recover(ps, begin, true);
    if (at_computation(ps) || ps->lx.kind == KL_TOK_END) return;
    c.broken = true; // the body goes on below: its own findings still count
  }
  parse_body(ps, &c);
  VEC_PUSH(ps->cx, &ps->comps, c);
}

// --- modules ------------------------------------------------------------------------------------------------------

static bool parse_header(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  if (!kl_lex_is_name(lx, "HloModule")) return kl_lex_expected(lx, "'HloModule' at the beginning");
  kl_lex_next(lx);
  if (!kl_parse_name(ps, "the module's name", &ps->m->name)) return false;
  kl_lex_eat(lx, ':');
  return kl_parse_raw_attrs(ps, &ps->m->nraw, &ps->m->raw);
}

// Newer dumps list source locations behind the header: a title, then numbered lines. They say nothing of the program.
static bool at_table(const kl_lexer *lx) {
  static const char *const titles[] = {"FileNames", "FunctionNames", "FileLocations", "StackFrames"};
  for (size_t i = 0; i < KL_COUNT(titles); i++)
    if (kl_lex_is_name(lx, titles[i])) return true;
  return false;
}

static void skip_tables(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  while (at_table(lx)) {
    kl_warn(ps->cx, kl_lex_span(lx), "the table '%.*s' is not kept", KL_FMT(lx->text));
    for (kl_lex_next(lx); lx->kind == KL_TOK_NUMBER;) {
      kl_str entry;
      kl_lex_next(lx);
      if (!kl_lex_raw(lx, ps->arena, KL_RAW_VALUE, &entry)) recover(ps, lx->begin, false);
    }
  }
}

static void parse_module(kl_parser *ps) {
  size_t begin = ps->lx.begin;
  bool has_header = kl_lex_is_name(&ps->lx, "HloModule");
  if (!parse_header(ps) && (has_header || !at_computation(ps))) recover(ps, begin, false);
  skip_tables(ps);
  while (ps->lx.kind != KL_TOK_END) parse_computation(ps);
}

static bool copy_text(kl_parser *ps, const char *name, const char *text, size_t size) {
  kiln_module *m = ps->m;
  char *copy = kl_arena_try_alloc(&m->arena, size + 1);
  if (!copy) {
    kl_out_of_memory(ps->cx, size + 1, "the module's text");
    return false;
  }
  if (size) memcpy(copy, text, size);
  m->source = KL_NEW(&m->arena, kl_source);
  *m->source = (kl_source){kl_str_dup(&m->arena, kl_str_of(name ? name : "<text>")).p, {copy, size}};
  return true;
}

static kiln_status parse_text(kl_parser *ps) {
  ps->errors_before = ps->cx->errors;
  kl_lex_init(&ps->lx, ps->cx, ps->m->source);
  parse_module(ps);
  kiln_status linked = kl_parse_link(ps);
  if (ps->no_memory) return KILN_E_MEMORY;
  return ps->cx->errors > ps->errors_before ? KILN_E_INVALID : linked;
}

// Findings come from several passes over the text: puts them into its order.
static void sort_findings(kl_ctx *cx, size_t first) {
  for (size_t i = first + 1; i < cx->diags.n; i++) {
    kiln_diagnostic d = cx->diags.p[i];
    size_t k = i;
    for (; k > first; k--) {
      const kiln_diagnostic *e = &cx->diags.p[k - 1];
      if (!d.line || e->line < d.line || (e->line == d.line && e->column <= d.column)) break;
      cx->diags.p[k] = *e;
    }
    cx->diags.p[k] = d;
  }
}

kiln_status kiln_module_parse(kiln_context *cx, const char *name, const char *text, size_t size, kiln_module **out) {
  *out = NULL;
  if (size >= INT32_MAX)
    return kl_invalid(cx, KL_NOWHERE, "expected a text of less than 2 GiB, found one of %zu bytes", size);
  size_t first = cx->diags.n;
  kl_parser ps = {.cx = cx, .m = kl_module_new(cx)};
  ps.arena = &ps.m->arena;
  kiln_status s = copy_text(&ps, name, text, size) ? parse_text(&ps) : KILN_E_MEMORY;
  VEC_FREE(cx, &ps.instrs);
  VEC_FREE(cx, &ps.uses);
  VEC_FREE(cx, &ps.comps);
  sort_findings(cx, first);
  if (s == KILN_OK)
    *out = ps.m;
  else
    kiln_module_destroy(&ps.m);
  return s;
}

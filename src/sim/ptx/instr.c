// Instructions: guard, opcode, modifiers, operands. What an opcode means is not known here, but for `call`, whose
// parentheses are lists.
#include "sim/ptx/parse.h"

enum { PENDING = UINT32_MAX };

// --- special registers --------------------------------------------------------------------------------------------

// Names without their parts; `numbers`: followed by a number below that.
static const struct {
  const char *name;
  uint8_t numbers;
} specials[] = {
    {"tid", 0},
    {"ntid", 0},
    {"ctaid", 0},
    {"nctaid", 0},
    {"laneid", 0},
    {"warpid", 0},
    {"nwarpid", 0},
    {"smid", 0},
    {"nsmid", 0},
    {"gridid", 0},
    {"clusterid", 0},
    {"nclusterid", 0},
    {"cluster_ctaid", 0},
    {"cluster_nctaid", 0},
    {"cluster_ctarank", 0},
    {"cluster_nctarank", 0},
    {"is_explicit_cluster", 0},
    {"lanemask_eq", 0},
    {"lanemask_le", 0},
    {"lanemask_lt", 0},
    {"lanemask_ge", 0},
    {"lanemask_gt", 0},
    {"clock", 0},
    {"clock_hi", 0},
    {"clock64", 0},
    {"globaltimer", 0},
    {"globaltimer_lo", 0},
    {"globaltimer_hi", 0},
    {"reserved_smem_offset_begin", 0},
    {"reserved_smem_offset_end", 0},
    {"reserved_smem_offset_cap", 0},
    {"total_smem_size", 0},
    {"aggr_smem_size", 0},
    {"dynamic_smem_size", 0},
    {"current_graph_exec", 0},
    {"pm", 8},
    {"envreg", 32},
    {"reserved_smem_offset_", 2},
};

static bool has_number(kl_str rest, uint8_t below) {
  uint64_t n;
  if (rest.n > 1 && rest.p[0] == '0') return false;
  return rest.n && rest.p[0] >= '0' && rest.p[0] <= '9' && kl_u64_from_text(rest, &n) && n < below;
}

bool kl_ptx_is_special(kl_str name) {
  if (name.n < 2 || name.p[0] != '%') return false;
  kl_str s = {name.p + 1, name.n - 1};
  if (s.n == 6 && memcmp(s.p, "pm", 2) == 0 && memcmp(s.p + 3, "_64", 3) == 0) s.n -= 3;
  for (size_t i = 0; i < KL_COUNT(specials); i++) {
    size_t n = strlen(specials[i].name);
    if (s.n < n || memcmp(s.p, specials[i].name, n) != 0) continue;
    if (specials[i].numbers ? has_number((kl_str){s.p + n, s.n - n}, specials[i].numbers) : s.n == n) return true;
  }
  return false;
}

// --- names --------------------------------------------------------------------------------------------------------

// 0 to 3 for x y z w or r g b a; 4: none of them.
static uint32_t element_of(kl_str word) {
  static const char names[] = "xyzwrgba";
  const char *p = word.n == 1 ? memchr(names, word.p[0], 8) : NULL;
  return p ? (uint32_t)(p - names) & 3 : 4;
}

static kl_ptx_operand of_register(uint32_t index) {
  return (kl_ptx_operand){.kind = KL_PTX_REG, .index = index};
}

// A vector register as its elements.
static kl_ptx_operand of_vector(kl_ptx_parser *ps, uint32_t first, uint32_t n) {
  kl_ptx_operand *items = KL_NEW_N(ps->arena, kl_ptx_operand, n);
  for (uint32_t i = 0; i < n; i++) items[i] = of_register(first + i);
  return (kl_ptx_operand){.kind = KL_PTX_VECTOR, .items = items, .nitems = n};
}

static bool of_run(kl_ptx_parser *ps, const kl_ptx_symbol *s, uint32_t number, kl_ptx_operand *out) {
  uint32_t first = s->index + number * s->vector, vector = s->vector;
  if (ps->lx.kind != KL_PTX_TOK_DOT) {
    *out = vector == 1 ? of_register(first) : of_vector(ps, first, vector);
    return true;
  }
  uint32_t element = element_of(ps->lx.word);
  if (vector > 1 && element >= vector) return kl_ptx_expected(ps, "an element of a vector of %u, such as .x", vector);
  *out = of_register(vector > 1 ? first + element : first);
  if (vector == 1) out->text = ps->lx.word;
  kl_ptx_lex_next(&ps->lx);
  return true;
}

// A special register, with its part in the text.
static bool special(kl_ptx_parser *ps, kl_str name, kl_ptx_operand *out) {
  *out = (kl_ptx_operand){.kind = KL_PTX_SPECIAL, .text = name};
  if (ps->lx.kind != KL_PTX_TOK_DOT) return true;
  kl_str part = ps->lx.word;
  if (part.p - 1 == name.p + name.n)
    out->text.n += part.n + 1;
  else
    out->text = kl_str_of(kl_strf(ps->arena, "%.*s.%.*s", KL_FMT(name), KL_FMT(part)));
  kl_ptx_lex_next(&ps->lx);
  return true;
}

// What a name means, or that it is to be looked for later, when a label may be meant.
static bool named(kl_ptx_parser *ps, kl_str name, bool may_be_label, kl_ptx_operand *out) {
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, name, &number);
  if (s && s->kind == KL_PTX_REG) return of_run(ps, s, number, out);
  bool here = s && (s->kind == KL_PTX_LOCALVAR || s->kind == KL_PTX_TABLE);
  if (!s && kl_ptx_is_special(name)) return special(ps, name, out);
  if (!here && may_be_label && name.p[0] != '%') {
    *out = (kl_ptx_operand){.kind = KL_PTX_LABEL, .index = PENDING, .text = name};
    return true;
  }
  if (!s)
    return kl_ptx_wrong(ps, name, "expected %s, found '%.*s'",
                        name.p[0] == '%' ? "a register that is declared, or a special register"
                                         : "a name that is declared",
                        KL_FMT(name));
  *out = (kl_ptx_operand){.kind = (uint8_t)s->kind, .index = s->index};
  return true;
}

static bool at_name(const kl_ptx_parser *ps) {
  return ps->lx.kind == KL_PTX_TOK_NAME && !kl_str_is(ps->lx.word, "WARP_SZ");
}

static kl_ptx_type type_of(const kl_ptx_parser *ps, const kl_ptx_operand *o) {
  return o->kind == KL_PTX_VAR ? ps->vars.p[o->index].type : ps->locals.p[o->index].type;
}

// [3] behind a variable: an element of an array.
static bool index_of(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_ptx_value v;
  kl_ptx_lex_next(&ps->lx);
  kl_str at = kl_ptx_current(ps);
  if (at_name(ps)) return kl_ptx_refused(ps, ps->lx.word, "arrays indexed by a register are not supported");
  if (!kl_ptx_expr(ps, &v)) return false;
  if (v.type != KL_PTX_S64 && v.type != KL_PTX_U64)
    return kl_ptx_wrong(ps, at, "expected an integer as the index, found a floating-point number");
  out->offset = (int64_t)(v.bits * (kl_ptx_type_bits[type_of(ps, out)] / 8));
  out->indexed = true;
  return kl_ptx_need(ps, ']', "after the index");
}

// NAME, NAME + offset, NAME[index], _
static bool by_name(kl_ptx_parser *ps, bool may_be_label, kl_ptx_operand *out) {
  kl_str name = ps->lx.word;
  kl_ptx_lex_next(&ps->lx);
  if (kl_str_is(name, "_")) {
    *out = (kl_ptx_operand){.kind = KL_PTX_SINK};
    return true;
  }
  bool more = kl_ptx_at(ps, '+') || kl_ptx_at(ps, '-') || kl_ptx_at(ps, '[');
  if (!named(ps, name, may_be_label && !more, out)) return false;
  if (!more || (out->kind != KL_PTX_VAR && out->kind != KL_PTX_LOCALVAR)) return true;
  return kl_ptx_at(ps, '[') ? index_of(ps, out) : kl_ptx_offset(ps, true, &out->offset);
}

// --- parts of operands --------------------------------------------------------------------------------------------

static kl_ptx_operand of_value(kl_ptx_value v) {
  uint8_t kind = v.type == KL_PTX_F32 ? KL_PTX_FLOAT32 : v.type == KL_PTX_F64 ? KL_PTX_FLOAT64 : KL_PTX_INT;
  return (kl_ptx_operand){.kind = kind, .bits = v.bits, .negative = v.type == KL_PTX_S64 && (int64_t)v.bits < 0};
}

// ! and - before a name belong to the operand, before anything else to a constant.
static bool at_negated(const kl_ptx_parser *ps) {
  if (!kl_ptx_at(ps, '!') && !kl_ptx_at(ps, '-')) return false;
  kl_ptx_lexer ahead = ps->lx;
  kl_ptx_lex_next(&ahead);
  return ahead.kind == KL_PTX_TOK_NAME && !kl_str_is(ahead.word, "WARP_SZ");
}

static bool negated(kl_ptx_parser *ps, kl_ptx_operand *out) {
  bool minus = kl_ptx_at(ps, '-');
  kl_ptx_lex_next(&ps->lx);
  kl_str at = ps->lx.word;
  if (!by_name(ps, false, out)) return false;
  if (out->kind != KL_PTX_REG)
    return kl_ptx_wrong(ps, at, "expected a register behind the sign, found '%.*s'", KL_FMT(at));
  out->negated = true;
  out->minus = minus;
  return true;
}

// May an operand begin here?
static bool at_operand(const kl_ptx_parser *ps) {
  switch (ps->lx.kind) {
  case KL_PTX_TOK_PUNCT: return strchr("(+-!~{[", ps->lx.punct) != NULL;
  case KL_PTX_TOK_DOT: return ps->lx.word.p[0] >= '0' && ps->lx.word.p[0] <= '9';
  case KL_PTX_TOK_NAME:
  case KL_PTX_TOK_INT:
  case KL_PTX_TOK_FLOAT32:
  case KL_PTX_TOK_FLOAT64: return true;
  default: return false;
  }
}

// A name or a constant.
static bool element(kl_ptx_parser *ps, bool may_be_label, kl_ptx_operand *out) {
  kl_ptx_value v;
  if (at_name(ps)) return by_name(ps, may_be_label, out);
  if (at_negated(ps)) return negated(ps, out);
  if (!at_operand(ps) || kl_ptx_at(ps, '{') || kl_ptx_at(ps, '[')) return kl_ptx_expected(ps, "an operand");
  if (!kl_ptx_expr(ps, &v)) return false;
  *out = of_value(v);
  return true;
}

// Puts the operands from `mark` on into the arena. Those that may be labels are noted from where they now are.
static const kl_ptx_operand *freeze(kl_ptx_parser *ps, size_t mark, uint32_t *n) {
  *n = (uint32_t)(ps->operands.n - mark);
  if (!*n) return NULL;
  kl_ptx_operand *items = kl_arena_dup(ps->arena, ps->operands.p + mark, *n * sizeof *items);
  for (uint32_t i = 0; i < *n; i++)
    if (items[i].kind == KL_PTX_LABEL && items[i].index == PENDING)
      VEC_PUSH(ps->cx, &ps->fixups, (kl_ptx_fixup){.name = items[i].text, .at = items[i].text, .operand = &items[i]});
  ps->operands.n = mark;
  return items;
}

static void push(kl_ptx_parser *ps, kl_ptx_operand o) {
  VEC_PUSH(ps->cx, &ps->operands, o);
}

// What stands in a list: not a whole vector.
static bool part(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_str at = kl_ptx_current(ps);
  if (!element(ps, false, out)) return false;
  return out->kind != KL_PTX_VECTOR || kl_ptx_wrong(ps, at, "expected an element, found the vector '%.*s'", KL_FMT(at));
}

// Names and constants up to the closing punctuation, behind the opening one.
static bool list(kl_ptx_parser *ps, kl_ptx_kind kind, int close, kl_ptx_operand *out) {
  size_t mark = ps->operands.n;
  kl_ptx_operand o;
  ps->braces += close == '}';
  if (!kl_ptx_at(ps, close)) do {
      if (!part(ps, &o)) return false;
      push(ps, o);
    } while (kl_ptx_eat(ps, ','));
  *out = (kl_ptx_operand){.kind = (uint8_t)kind};
  out->items = freeze(ps, mark, &out->nitems);
  if (!kl_ptx_eat(ps, close)) return kl_ptx_expected(ps, "',' or '%c' in a list", close);
  ps->braces -= close == '}';
  return true;
}

// What an address begins with; the offset is added to it.
static bool address_base(kl_ptx_parser *ps, kl_ptx_operand *base, int64_t *offset) {
  kl_ptx_value v;
  kl_str at = ps->lx.word;
  if (!at_name(ps)) {
    if (!kl_ptx_expr(ps, &v)) return false;
    *base = of_value(v);
    return true;
  }
  kl_ptx_lex_next(&ps->lx);
  if (!named(ps, at, false, base)) return false;
  bool var = base->kind == KL_PTX_VAR || base->kind == KL_PTX_LOCALVAR;
  if (!var && (base->kind != KL_PTX_REG || base->text.n))
    return kl_ptx_wrong(ps, at, "expected a register, a variable or a number as an address, found '%.*s'", KL_FMT(at));
  return kl_ptx_offset(ps, var, offset);
}

// [base + offset, more], behind the bracket.
static bool address(kl_ptx_parser *ps, kl_ptx_operand *out) {
  size_t mark = ps->operands.n;
  kl_ptx_operand o;
  int64_t offset = 0;
  if (!address_base(ps, &o, &offset)) return false;
  push(ps, o);
  while (kl_ptx_eat(ps, ',')) {
    if (kl_ptx_eat(ps, '{') ? !list(ps, KL_PTX_VECTOR, '}', &o) : !element(ps, false, &o)) return false;
    push(ps, o);
  }
  *out = (kl_ptx_operand){.kind = KL_PTX_ADDRESS, .offset = offset};
  out->items = freeze(ps, mark, &out->nitems);
  return kl_ptx_eat(ps, ']') || kl_ptx_expected(ps, "'+', ',' or ']' in an address");
}

// --- operands -----------------------------------------------------------------------------------------------------

// p|q, behind the first and the bar.
static bool pair(kl_ptx_parser *ps, kl_str at, kl_ptx_operand *out) {
  size_t mark = ps->operands.n;
  kl_ptx_operand second;
  if (out->kind == KL_PTX_VECTOR)
    return kl_ptx_wrong(ps, at, "expected a register before '|', found the vector '%.*s'", KL_FMT(at));
  if (!at_name(ps)) return kl_ptx_expected(ps, "a name after '|'");
  if (!part(ps, &second)) return false;
  push(ps, *out);
  push(ps, second);
  *out = (kl_ptx_operand){.kind = KL_PTX_PAIR};
  out->items = freeze(ps, mark, &out->nitems);
  return true;
}

static bool operand(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_str at = kl_ptx_current(ps);
  if (kl_ptx_eat(ps, '{')) return list(ps, KL_PTX_VECTOR, '}', out);
  if (kl_ptx_eat(ps, '[')) return address(ps, out);
  return element(ps, true, out) && (!kl_ptx_eat(ps, '|') || pair(ps, at, out));
}

// --- instructions -------------------------------------------------------------------------------------------------

static bool take_guard(kl_ptx_parser *ps, kl_ptx_instr *i) {
  kl_ptx_operand o;
  kl_str name;
  kl_ptx_lex_next(&ps->lx);
  i->guard_negated = kl_ptx_eat(ps, '!');
  if (!kl_ptx_name(ps, "a predicate after '@'", &name) || !named(ps, name, false, &o)) return false;
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, name, &number);
  if (o.kind != KL_PTX_REG || o.text.n || s->type != KL_PTX_pred)
    return kl_ptx_wrong(ps, name, "expected a register of type .pred after '@', found '%.*s'", KL_FMT(name));
  i->guard = o.index + 1;
  return true;
}

static void take_mods(kl_ptx_parser *ps, kl_ptx_instr *i) {
  for (ps->mods.n = 0; ps->lx.kind == KL_PTX_TOK_DOT; kl_ptx_lex_next(&ps->lx))
    VEC_PUSH(ps->cx, &ps->mods, ps->lx.word);
  i->nmods = (uint32_t)ps->mods.n;
  if (ps->mods.n) i->mods = kl_arena_dup(ps->arena, ps->mods.p, ps->mods.n * sizeof *ps->mods.p);
}

static bool take_operands(kl_ptx_parser *ps, kl_ptx_instr *i) {
  bool call = kl_str_is(i->opcode, "call");
  ps->operands.n = 0;
  if (!kl_ptx_at(ps, ';') && !at_operand(ps)) return kl_ptx_expected(ps, "an operand or ';'");
  if (!kl_ptx_at(ps, ';')) do {
      kl_ptx_operand o;
      bool ok = call && kl_ptx_eat(ps, '(') ? list(ps, KL_PTX_LIST, ')', &o) : operand(ps, &o);
      if (!ok) return false;
      VEC_PUSH(ps->cx, &ps->operands, o);
    } while (kl_ptx_eat(ps, ','));
  i->at.end = ps->lx.last_end;
  i->operands = freeze(ps, 0, &i->noperands);
  return kl_ptx_eat(ps, ';') || kl_ptx_expected(ps, "',' or ';' after an operand");
}

bool kl_ptx_instruction(kl_ptx_parser *ps, kl_str opcode, kl_ptx_place at) {
  kl_ptx_instr i = {.opcode = opcode, .at = at};
  if (!opcode.n && (!take_guard(ps, &i) || !kl_ptx_name(ps, "an instruction", &i.opcode))) return false;
  if (memchr("%$_", i.opcode.p[0], 3))
    return kl_ptx_wrong(ps, i.opcode, "expected an instruction, found '%.*s'", KL_FMT(i.opcode));
  take_mods(ps, &i);
  if (!take_operands(ps, &i)) return false;
  VEC_PUSH(ps->cx, &ps->instrs, i);
  return true;
}

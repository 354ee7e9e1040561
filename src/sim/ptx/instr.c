// Instructions: guard, opcode, modifiers, operands. What an opcode means is not known here, but for `call`, whose
// parentheses are lists.
#include "sim/ptx/parse.h"

enum { PENDING = UINT32_MAX };

static bool operand(kl_ptx_parser *ps, kl_ptx_operand *out);

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
  if (s && s->kind == KL_PTX_LOCALVAR) {
    *out = (kl_ptx_operand){.kind = KL_PTX_LOCALVAR, .index = s->index};
    return true;
  }
  if (!s && kl_ptx_is_special(name)) return special(ps, name, out);
  if (may_be_label && name.p[0] != '%') {
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

static bool is_variable(const kl_ptx_operand *o) {
  return o->kind == KL_PTX_VAR || o->kind == KL_PTX_LOCALVAR || o->kind == KL_PTX_LABEL;
}

// --- lists --------------------------------------------------------------------------------------------------------

// Puts the operands from `mark` on into the arena. Those that may be labels are noted from where they now are.
static const kl_ptx_operand *freeze(kl_ptx_parser *ps, size_t mark, uint32_t *n) {
  *n = (uint32_t)(ps->operands.n - mark);
  if (!*n) return NULL;
  kl_ptx_operand *items = kl_arena_dup(ps->arena, ps->operands.p + mark, *n * sizeof *items);
  for (uint32_t i = 0; i < *n; i++)
    if (items[i].kind == KL_PTX_LABEL && items[i].index == PENDING)
      VEC_PUSH(ps->cx, &ps->fixups, (kl_ptx_fixup){.name = items[i].text, .operand = &items[i]});
  ps->operands.n = mark;
  return items;
}

// Operands up to the closing punctuation, behind the opening one.
static bool list(kl_ptx_parser *ps, kl_ptx_kind kind, int close, const char *what, kl_ptx_operand *out) {
  size_t mark = ps->operands.n;
  if (!kl_ptx_enter(ps)) return false;
  if (!kl_ptx_at(ps, close)) do {
      kl_ptx_operand o;
      if (!operand(ps, &o)) return false;
      VEC_PUSH(ps->cx, &ps->operands, o);
    } while (kl_ptx_eat(ps, ','));
  kl_ptx_leave(ps);
  *out = (kl_ptx_operand){.kind = (uint8_t)kind};
  out->items = freeze(ps, mark, &out->nitems);
  return kl_ptx_eat(ps, close) || kl_ptx_expected(ps, "',' or '%c' after %s", close, what);
}

// --- constants and addresses --------------------------------------------------------------------------------------

static kl_ptx_operand of_value(kl_ptx_value v) {
  uint8_t kind = v.type == KL_PTX_F32 ? KL_PTX_FLOAT32 : v.type == KL_PTX_F64 ? KL_PTX_FLOAT64 : KL_PTX_INT;
  return (kl_ptx_operand){.kind = kind, .bits = v.bits, .negative = v.type == KL_PTX_S64 && (int64_t)v.bits < 0};
}

static bool constant(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_ptx_value v;
  if (!kl_ptx_expr(ps, &v)) return false;
  *out = of_value(v);
  return true;
}

static bool at_name(const kl_ptx_parser *ps) {
  return ps->lx.kind == KL_PTX_TOK_NAME && !kl_str_is(ps->lx.word, "WARP_SZ");
}

// [base + offset, more], behind the bracket.
static bool address(kl_ptx_parser *ps, kl_ptx_operand *out) {
  size_t mark = ps->operands.n;
  kl_ptx_operand base;
  kl_str at = ps->lx.word;
  int64_t offset = 0;
  if (at_name(ps)) {
    kl_ptx_lex_next(&ps->lx);
    if (!named(ps, at, false, &base)) return false;
    if (base.kind == KL_PTX_SPECIAL || base.kind == KL_PTX_VECTOR)
      return kl_ptx_wrong(ps, at, "expected a register, a variable or a number as an address, found '%.*s'",
                          KL_FMT(at));
    if (!kl_ptx_offset(ps, &offset)) return false;
  } else if (!constant(ps, &base)) {
    return false;
  }
  VEC_PUSH(ps->cx, &ps->operands, base);
  while (kl_ptx_eat(ps, ',')) {
    kl_ptx_operand o;
    if (!operand(ps, &o)) return false;
    VEC_PUSH(ps->cx, &ps->operands, o);
  }
  *out = (kl_ptx_operand){.kind = KL_PTX_ADDRESS, .offset = offset};
  out->items = freeze(ps, mark, &out->nitems);
  return kl_ptx_eat(ps, ']') || kl_ptx_expected(ps, "'+', ',' or ']' in an address");
}

// --- operands -----------------------------------------------------------------------------------------------------

// NAME, NAME + offset, _
static bool by_name(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_str name = ps->lx.word;
  kl_ptx_lex_next(&ps->lx);
  if (kl_str_is(name, "_")) {
    *out = (kl_ptx_operand){.kind = KL_PTX_SINK};
    return true;
  }
  if (!named(ps, name, true, out)) return false;
  if (!kl_ptx_at(ps, '+') && !kl_ptx_at(ps, '-')) return true;
  if (!is_variable(out)) return kl_ptx_expected(ps, "',' or ';' after an operand");
  return kl_ptx_offset(ps, &out->offset);
}

// ! and - before a name belong to the operand, before anything else to a constant.
static bool at_negated(const kl_ptx_parser *ps) {
  if (!kl_ptx_at(ps, '!') && !kl_ptx_at(ps, '-')) return false;
  kl_ptx_lexer ahead = ps->lx;
  kl_ptx_lex_next(&ahead);
  return ahead.kind == KL_PTX_TOK_NAME && !kl_str_is(ahead.word, "WARP_SZ");
}

static bool single(kl_ptx_parser *ps, kl_ptx_operand *out) {
  if (at_name(ps)) return by_name(ps, out);
  if (kl_ptx_eat(ps, '{')) return list(ps, KL_PTX_VECTOR, '}', "an element", out);
  if (kl_ptx_eat(ps, '[')) return address(ps, out);
  if (!at_negated(ps)) {
    if (ps->lx.kind == KL_PTX_TOK_PUNCT && !memchr("(+-!~", ps->lx.punct, 5)) return kl_ptx_expected(ps, "an operand");
    return constant(ps, out);
  }
  bool minus = kl_ptx_at(ps, '-');
  kl_ptx_lex_next(&ps->lx);
  kl_str at = ps->lx.word;
  if (!by_name(ps, out)) return false;
  if (out->kind != KL_PTX_REG)
    return kl_ptx_wrong(ps, at, "expected a register behind the sign, found '%.*s'", KL_FMT(at));
  out->negated = true;
  out->minus = minus;
  return true;
}

static bool operand(kl_ptx_parser *ps, kl_ptx_operand *out) {
  kl_ptx_operand second;
  if (!kl_ptx_enter(ps) || !single(ps, out)) return false;
  kl_ptx_leave(ps);
  if (!kl_ptx_eat(ps, '|')) return true;
  if (!single(ps, &second)) return false;
  size_t mark = ps->operands.n;
  VEC_PUSH(ps->cx, &ps->operands, *out);
  VEC_PUSH(ps->cx, &ps->operands, second);
  *out = (kl_ptx_operand){.kind = KL_PTX_PAIR};
  out->items = freeze(ps, mark, &out->nitems);
  return true;
}

// --- instructions -------------------------------------------------------------------------------------------------

static bool take_guard(kl_ptx_parser *ps, kl_ptx_instr *i) {
  kl_ptx_operand o;
  kl_str name;
  kl_ptx_lex_next(&ps->lx);
  i->guard_negated = kl_ptx_eat(ps, '!');
  if (!kl_ptx_name(ps, "a predicate after '@'", &name) || !named(ps, name, false, &o)) return false;
  if (o.kind != KL_PTX_REG || o.text.n)
    return kl_ptx_wrong(ps, name, "expected a predicate register after '@', found '%.*s'", KL_FMT(name));
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
  if (!kl_ptx_at(ps, ';')) do {
      kl_ptx_operand o;
      bool ok = call && kl_ptx_eat(ps, '(') ? list(ps, KL_PTX_LIST, ')', "an argument", &o) : operand(ps, &o);
      if (!ok) return false;
      VEC_PUSH(ps->cx, &ps->operands, o);
    } while (kl_ptx_eat(ps, ','));
  i->at.end = ps->lx.last_end;
  i->operands = freeze(ps, 0, &i->noperands);
  if (kl_ptx_at(ps, ';')) i->at.end = ps->lx.begin;
  return kl_ptx_eat(ps, ';') || kl_ptx_expected(ps, "',' or ';' after an operand");
}

bool kl_ptx_instruction(kl_ptx_parser *ps, kl_str opcode, kl_ptx_place at) {
  kl_ptx_instr i = {.opcode = opcode, .at = at};
  if (!opcode.n && (!take_guard(ps, &i) || !kl_ptx_name(ps, "an instruction", &i.opcode))) return false;
  take_mods(ps, &i);
  if (!take_operands(ps, &i)) return false;
  VEC_PUSH(ps->cx, &ps->instrs, i);
  return true;
}

// Steps: values from values.
//
// What a step makes is numbered by the reg variables it depends on; operands that depend on fewer are brought to the
// same numbers first.

#include "lower/emit/emit.h"
#include "lower/emit/math/math.h"
#include "lower/plan/live.h"
#include "lower/emit/math/half/half.h"

#include <math.h>

// --- constants and indices
// --------------------------------------------------------------------------------------------------------

static kl_val new_wide(kl_emit *e, kl_dtype t) {
  return (kl_val){.dtype = t, .wide = KL_NEW_N(e->arena, kl_pair, e->nwide)};
}

static kb_reg scalar_part(kb *k, kl_dtype t, uint64_t bits, unsigned lanes) {
  kb_kind kind = kl_wide_kind(t);
  if (kl_is_narrow_float(t)) return kb_float(k, kind, lanes, kl_float_decode(t, bits));
  if (t == KILN_F32 || t == KILN_F64)
    return kl_from_bits(k, t, kb_int(k, t == KILN_F64 ? KB_I64 : KB_I32, lanes, (int64_t)bits));
  return kb_int(k, kind, lanes, kl_is_int(t) ? kl_int_decode(t, bits) : (int64_t)bits);
}

static kb_reg *constant_words(kl_emit *e, const kl_step *s) {
  unsigned n = kl_word_count(e, s->dtype), bits = kl_info(s->dtype)->bits;
  kb_reg *words = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned w = 0; w < n; w++) {
    uint32_t word = 0;
    for (unsigned i = 0; i < 32 / bits && w * (32 / bits) + i < e->lanes; i++)
      word |= (uint32_t)(s->bits[0] & ((1u << bits) - 1)) << i * bits;
    words[w] = kb_int(&e->k, KB_I32, 1, word);
  }
  return words;
}

// A constant costs nothing in any form.
static kl_val emit_scalar(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  kl_val v = new_wide(e, s->dtype);
  bool complex = kl_is_complex(s->dtype), narrow = kl_is_narrow_float(s->dtype), packed = kl_has_packed(e, s->dtype);
  kl_dtype part = complex ? kl_info(s->dtype)->part : s->dtype;
  if (narrow) v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  if (packed) v.packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
  for (unsigned i = 0; i < e->nwide; i++) {
    v.wide[i].re = scalar_part(k, part, s->bits[0], e->width);
    if (complex) v.wide[i].im = scalar_part(k, part, s->bits[1], e->width);
    if (narrow) v.raw[i] = kb_int(k, KB_I32, e->width, (int64_t)s->bits[0]);
  }
  kb_reg half = {0};
  if (packed)
    half = kb_bitcast(k, kb_int(k, KB_I16, 1, (int64_t)s->bits[0]), s->dtype == KILN_F16 ? KB_F16 : KB_BF16, 1);
  for (unsigned i = 0; packed && i < e->lanes / 2; i++) v.packed[i] = kb_splat(k, half, 2);
  if (kl_has_words(e, s->dtype)) v.words = constant_words(e, s);
  return v;
}

// Operand i for the copies at hand. A constant has all forms for any number of them.
static kl_val *operand(kl_emit *e, const kl_step *s, uint32_t i) {
  uint32_t from = s->operands[i];
  const kl_step *made = &e->body->steps[from];
  if (made->kind != KL_STEP_SCALAR || made->regs == s->regs)
    return kl_numbered(e, &e->vals[from], made->regs, KL_NONE, s->regs, KL_NONE);
  kl_val *v = KL_NEW(e->arena, kl_val);
  *v = emit_scalar(e, made);
  return v;
}

static kb_reg expr_of_copy(kl_emit *e, const kl_step *s, unsigned copy) {
  kl_set_copy(e, s->regs, copy);
  return kl_emit_expr(e, s->expr, e->width);
}

static kb_reg resize(kb *k, kb_reg bits, kb_kind to) {
  return to == KB_I64 ? kb_zext(k, bits, KB_I64) : kb_trunc(k, bits, KB_I32);
}

static kl_val emit_iota(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype);
  bool complex = kl_is_complex(s->dtype);
  kl_dtype from = e->index == KB_I64 ? KILN_S64 : KILN_S32, to = complex ? kl_info(s->dtype)->part : s->dtype;
  for (unsigned i = 0; i < e->nwide; i++) {
    kb_reg x = expr_of_copy(e, s, i);
    v.wide[i].re = kl_emit_convert(&e->k, from, to, to, x);
    if (complex) v.wide[i].im = kb_flike(&e->k, v.wide[i].re, 0);
  }
  return v;
}

// --- packed ops -----------------------------------------------------------------------------------------------------

static kb_reg packed_op(kb *k, kl_op op, const kb_reg *x) {
  switch (op) {
  case KL_OP_ADD: return kb_fadd(k, x[0], x[1]);
  case KL_OP_SUBTRACT: return kb_fsub(k, x[0], x[1]);
  case KL_OP_MULTIPLY: return kb_fmul(k, x[0], x[1]);
  case KL_OP_NEGATE: return kb_fneg(k, x[0]);
  case KL_OP_ABS: return kb_fabs(k, x[0]);
  case KL_OP_MAXIMUM: return kb_fmax(k, x[0], x[1]);
  case KL_OP_MINIMUM: return kb_fmin(k, x[0], x[1]);
  default: return kb_fmin(k, kb_fmax(k, x[0], x[1]), x[2]); // clamp
  }
}

static bool can_pack(const kl_emit *e, const kl_step *s) {
  if (s->kind != KL_STEP_OP || !kl_has_packed(e, s->dtype)) return false;
  switch (s->op.op) {
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
  case KL_OP_MULTIPLY:
  case KL_OP_NEGATE: return true;
  case KL_OP_ABS: return e->body->steps[s->operands[0]].dtype == s->dtype;
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_CLAMP: return e->k.sm >= 80;
  default: return kh_has(&e->k, s->op.op, s->dtype);
  }
}

static kl_val emit_packed(kl_emit *e, const kl_step *s) {
  kl_val v = {.dtype = s->dtype, .packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2)};
  kb_reg *in[3];
  for (uint32_t i = 0; i < s->noperands; i++) in[i] = kl_packed(e, operand(e, s, i));
  if (kh_has(&e->k, s->op.op, s->dtype)) {
    kh_call(&e->k, s->op.op, e->lanes / 2, (const kb_reg *const *)in, v.packed);
    return v;
  }
  for (unsigned i = 0; i < e->lanes / 2; i++) {
    kb_reg x[3] = {{0}};
    for (uint32_t o = 0; o < s->noperands; o++) x[o] = in[o][i];
    v.packed[i] = packed_op(&e->k, s->op.op, x);
  }
  return v;
}

// Chooses between packed values lane by lane on their 16-bit halves.
static kb_reg choose_packed(kb *k, kb_reg c0, kb_reg c1, kb_reg a, kb_reg b) {
  if (c0.v == c1.v) return kb_select(k, c0, a, b);
  kb_reg ai = kb_bitcast(k, a, KB_I16, 2), bi = kb_bitcast(k, b, KB_I16, 2);
  kb_reg h[2] = {kb_select(k, c0, kb_extract(k, ai, 0), kb_extract(k, bi, 0)),
                 kb_select(k, c1, kb_extract(k, ai, 1), kb_extract(k, bi, 1))};
  return kb_bitcast(k, kb_join(k, h, 2), (kb_kind)a.kind, 2);
}

// --- choice ---------------------------------------------------------------------------------------------------------

static bool has_bits(const kl_val *v) {
  return v->raw || v->packed || (v->words && kl_is_narrow_float(v->dtype));
}

static void choose_values(kl_emit *e, kl_val *v, const kb_reg *cond, kl_val *a, kl_val *b) {
  kl_pair *x = kl_wide(e, a), *y = kl_wide(e, b);
  v->wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) {
    v->wide[i].re = kb_select(&e->k, cond[i], x[i].re, y[i].re);
    if (kl_is_complex(v->dtype)) v->wide[i].im = kb_select(&e->k, cond[i], x[i].im, y[i].im);
  }
}

// The lanes of a word from two: at once where all go the same way, else by a mask, of which each way has its lanes.
static kb_reg choose_word(kb *k, const kb_reg *cond, unsigned n, unsigned bits, kb_reg a, kb_reg b) {
  kb_reg mask = {0}, zero = kb_ilike(k, a, 0);
  uint32_t done = 0;
  for (unsigned i = 0; i < n; i++) {
    uint32_t lanes = 0;
    for (unsigned j = i; j < n; j++)
      if (cond[j].v == cond[i].v) lanes |= (uint32_t)((1ull << bits) - 1) << j * bits;
    if (done & lanes) continue;
    if (i == 0 && lanes == (uint32_t)((1ull << n * bits) - 1)) return kb_select(k, cond[0], a, b);
    kb_reg part = kb_select(k, cond[i], kb_ilike(k, a, (int64_t)lanes), zero);
    mask = done ? kb_or(k, mask, part) : part;
    done |= lanes;
  }
  return kb_xor(k, b, kb_and(k, mask, kb_xor(k, a, b)));
}

// Where both have a value already it comes along; who does not want it leaves it dead.
static kl_val choose_bits(kl_emit *e, kl_dtype t, const kb_reg *cond, kl_val *a, kl_val *b) {
  kl_val v = {.dtype = t};
  if (a->wide && b->wide) choose_values(e, &v, cond, a, b);
  if (a->packed && b->packed) {
    v.packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
    for (unsigned i = 0; i < e->lanes / 2; i++)
      v.packed[i] = choose_packed(&e->k, cond[2 * i], cond[2 * i + 1], a->packed[i], b->packed[i]);
    return v;
  }
  if (a->words && b->words) {
    unsigned bits = kl_info(t)->bits, n = kl_word_count(e, t), in_word = 32 / bits;
    v.words = KL_NEW_N(e->arena, kb_reg, n);
    for (unsigned i = 0; i < n; i++) {
      unsigned here = e->lanes - i * in_word < in_word ? e->lanes - i * in_word : in_word;
      v.words[i] = choose_word(&e->k, &cond[i * in_word], here, bits, a->words[i], b->words[i]);
    }
    return v;
  }
  kb_reg *x = kl_raw(e, a), *y = kl_raw(e, b);
  v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) v.raw[i] = kb_select(&e->k, cond[i], x[i], y[i]);
  return v;
}

// Words are wanted, and one of two has them.
static bool chooses_words(const kl_emit *e, const kl_step *s, const kl_val *a, const kl_val *b) {
  return kl_has_words(e, s->dtype) && e->wants_bits[s - e->body->steps] && (a->words || b->words);
}

// Bits where they are wanted, and where that saves a conversion: neither operand has been one for a value yet.
static bool chooses_bits(const kl_emit *e, const kl_step *s, const kl_val *a, const kl_val *b) {
  if (a->packed && b->packed) return true;
  if (a->words && b->words && !(a->wide && b->wide)) return true;
  if (chooses_words(e, s, a, b)) return true;
  if (e->wants_bits[s - e->body->steps]) return has_bits(a) || has_bits(b);
  return has_bits(a) && has_bits(b) && !a->wide && !b->wide;
}

static kl_val choose(kl_emit *e, const kl_step *s, const kb_reg *cond, kl_val *a, kl_val *b) {
  if (chooses_words(e, s, a, b)) kl_words(e, a), kl_words(e, b);
  if (chooses_bits(e, s, a, b)) return choose_bits(e, s->dtype, cond, a, b);
  kl_val v = {.dtype = s->dtype};
  choose_values(e, &v, cond, a, b);
  return v;
}

static kl_val emit_choose(kl_emit *e, const kl_step *s) {
  kl_val v = *operand(e, s, s->noperands - 1);
  for (uint32_t i = s->noperands - 1; i-- > 0;) {
    kb_reg cond[KL_EMIT_LANES];
    for (unsigned w = 0; w < e->nwide; w++) cond[w] = kl_emit_guard_copy(e, s->guards[i], s->regs, KL_NONE, w);
    v = choose(e, s, cond, operand(e, s, i), &v);
  }
  return v;
}

static kl_val emit_select(kl_emit *e, const kl_step *s) {
  kb_reg cond[KL_EMIT_LANES];
  kl_pair *p = kl_wide(e, operand(e, s, 0));
  for (unsigned w = 0; w < e->nwide; w++) cond[w] = p[w].re;
  return choose(e, s, cond, operand(e, s, 1), operand(e, s, 2));
}

// The total order is one of floats; the attribute changes nothing for other types.
static bool compares_bits(const kl_emit *e, const kl_step *s) {
  return s->kind == KL_STEP_OP && s->op.op == KL_OP_COMPARE && s->op.compare_type == KL_CMP_TOTALORDER &&
         kl_is_float(e->body->steps[s->operands[0]].dtype);
}

static kl_val emit_total_order(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype), *a = operand(e, s, 0);
  kb_reg *x = kl_raw(e, a), *y = kl_raw(e, operand(e, s, 1));
  for (unsigned i = 0; i < e->nwide; i++)
    v.wide[i].re = kl_emit_total_order(&e->k, s->op.direction, a->dtype, x[i], y[i]);
  return v;
}

// The bits of an element: a word, or two of 64 bits, the lower one first, of what has 128. A complex number has its
// real part lowest.
typedef struct bits {
  unsigned width; // of a word
  unsigned n;
  kb_reg *word[2];
} bits;

static bits bits_new(kl_emit *e, kl_dtype t) {
  unsigned all = kl_info(t)->bits;
  bits b = {.width = all < 64 ? all : 64, .n = all > 64 ? 2 : 1};
  for (unsigned i = 0; i < b.n; i++) b.word[i] = KL_NEW_N(e->arena, kb_reg, e->nwide);
  return b;
}

// Of one number as a vector of two, which stays a pair of registers: shifted, LLVM would load it once more as one word.
static kb_reg word_of_halves(kb *k, kb_reg low, kb_reg high) {
  if (low.lanes == 1) return kb_bitcast(k, kb_join(k, (kb_reg[]){low, high}, 2), KB_I64, 1);
  return kb_or(k, kb_zext(k, low, KB_I64), kb_shli(k, kb_zext(k, high, KB_I64), 32));
}
static kb_reg half_of_word(kb *k, kb_reg word, unsigned half) {
  if (word.lanes == 1) return kb_extract(k, kb_bitcast(k, word, KB_I32, 2), half);
  return kb_trunc(k, half ? kb_lshri(k, word, 32) : word, KB_I32);
}

static bits bits_of(kl_emit *e, kl_val *v) {
  kb *k = &e->k;
  if (!kl_is_complex(v->dtype)) return (bits){.width = kl_info(v->dtype)->bits, .n = 1, .word = {kl_raw(e, v)}};
  bits b = bits_new(e, v->dtype);
  kl_dtype part = kl_info(v->dtype)->part;
  kl_pair *whole = kl_wide(e, v);
  for (unsigned w = 0; w < e->nwide; w++) {
    kb_reg re = kl_to_bits(k, part, whole[w].re), im = kl_to_bits(k, part, whole[w].im);
    if (b.n == 2)
      b.word[0][w] = re, b.word[1][w] = im;
    else
      b.word[0][w] = word_of_halves(k, re, im);
  }
  return b;
}

static kl_val val_of_bits(kl_emit *e, kl_dtype t, bits b) {
  if (!kl_is_complex(t)) return kl_val_of_bits(e, t, b.word[0]);
  kb *k = &e->k;
  kl_dtype part = kl_info(t)->part;
  kl_val v = new_wide(e, t);
  for (unsigned w = 0; w < e->nwide; w++) {
    kb_reg re = b.n == 2 ? b.word[0][w] : half_of_word(k, b.word[0][w], 0);
    kb_reg im = b.n == 2 ? b.word[1][w] : half_of_word(k, b.word[0][w], 1);
    v.wide[w] = (kl_pair){kl_from_bits(k, part, re), kl_from_bits(k, part, im)};
  }
  return v;
}

// Types of one width: the bits get another name.
static kl_val emit_bitcast(kl_emit *e, const kl_step *s) {
  kl_val *from = operand(e, s, 0);
  if (from->dtype == s->dtype) return *from;
  if (from->words && kl_has_words(e, s->dtype)) return (kl_val){.dtype = s->dtype, .words = from->words};
  return val_of_bits(e, s->dtype, bits_of(e, from));
}

static kl_val emit_split(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  bits whole = bits_of(e, operand(e, s, 0)), part = bits_new(e, s->dtype);
  for (unsigned w = 0; w < e->nwide; w++) {
    kb_reg at = expr_of_copy(e, s, w), r = whole.word[0][w];
    if (whole.n == 2) { // the half that it lies in, and where there
      int64_t half = whole.width / part.width;
      r = kb_select(k, kb_icmp(k, LLVMIntULT, at, kb_ilike(k, at, half)), r, whole.word[1][w]);
      at = kb_and(k, at, kb_ilike(k, at, half - 1));
    }
    at = resize(k, at, (kb_kind)r.kind);
    if (part.width < whole.width) r = kb_lshr(k, r, kb_mul(k, at, kb_ilike(k, at, part.width)));
    if (part.width < 64) r = resize(k, r, KB_I32);
    part.word[0][w] = part.width < 32 ? kb_andi(k, r, (1ll << part.width) - 1) : r;
  }
  return val_of_bits(e, s->dtype, part);
}

static kl_val emit_join(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  bits whole = bits_new(e, s->dtype);
  kb_kind kind = whole.width == 64 ? KB_I64 : KB_I32;
  unsigned in_word = s->noperands / whole.n;
  for (uint32_t i = 0; i < s->noperands; i++) {
    bits part = bits_of(e, operand(e, s, i));
    kb_reg *word = whole.word[i / in_word];
    for (unsigned w = 0; w < e->nwide; w++) {
      kb_reg r = kb_shli(k, resize(k, part.word[0][w], kind), i % in_word * part.width);
      word[w] = i % in_word ? kb_or(k, word[w], r) : r;
    }
  }
  return val_of_bits(e, s->dtype, whole);
}

// Division of what is known not to be negative, by what is known to be positive, has no sign to take care of.
static kl_dtype without_sign(const kl_emit *e, const kl_step *s, kl_dtype t) {
  kl_op op = s->op.op;
  if ((op != KL_OP_DIVIDE && op != KL_OP_REMAINDER) || !kl_is_int(t) || !kl_is_signed(t)) return t;
  return e->ranges[s->operands[0]].lo >= 0 && e->ranges[s->operands[1]].lo > 0 ? kl_uint_like(t) : t;
}

// Ops whose results are values of the type before any rounding.
static bool is_exact(kl_op op) {
  switch (op) {
  case KL_OP_ABS:
  case KL_OP_NEGATE:
  case KL_OP_SIGN:
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_CLAMP:
  case KL_OP_COPY:
  case KL_OP_REAL:
  case KL_OP_IMAG:
  case KL_OP_REDUCE_PRECISION: return true;
  default: return false;
  }
}

// Several numbers divided by the same one?
static bool divides_by_one(const kl_emit *e, const kl_step *s, kl_pair *const *in) {
  bool f32 = s->kind == KL_STEP_OP && s->op.op == KL_OP_DIVIDE && s->dtype == KILN_F32;
  if (!f32 || e->k.machine != KB_NVPTX || e->k.fast || e->nwide < 4) return false;
  for (unsigned w = 1; w < e->nwide; w++)
    if (in[1][w].re.v != in[1]->re.v) return false;
  return true;
}

// Is the copy at hand taken by something stored?
static bool is_taken(kl_emit *e, const kl_step *s, unsigned copy) {
  int64_t at[KL_MAX_VARS];
  if (!e->live_known) e->live = kl_live_copies(e->plan, e->body);
  e->live_known = true;
  kl_nth_point(e->body, s->regs, KL_NONE, copy, at);
  return kl_is_live(e->body, e->live, (uint32_t)(s - e->body->steps), at);
}

// Those that nobody takes are left out, so that nothing of them is made to be looked at.
static void divide_by_one(kl_emit *e, const kl_step *s, kl_pair *const *in, kl_val *v) {
  kb_reg *x = KL_NEW_N(e->arena, kb_reg, e->nwide), *q = KL_NEW_N(e->arena, kb_reg, e->nwide);
  const kl_step *made = &e->body->steps[s->operands[0]];
  kl_bounds b = e->bounds[s->operands[0]];
  kl_within known = {.positive = made->kind == KL_STEP_OP && made->op.op == KL_OP_EXP,
                     .moderate = b.lo >= -0x1p96 && b.hi <= 0x1p96};
  unsigned n = 0, k = 0;
  for (unsigned w = 0; w < e->nwide; w++)
    if (is_taken(e, s, w)) x[n++] = in[0][w].re;
  if (n) km_divide_by(&e->k, x, n, in[1]->re, known, q);
  for (unsigned w = 0; w < e->nwide; w++) v->wide[w].re = is_taken(e, s, w) ? q[k++] : in[0][w].re;
}

static kl_val emit_wide(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype);
  kl_pair *in[3];
  for (uint32_t i = 0; i < s->noperands; i++) in[i] = kl_wide(e, operand(e, s, i));
  if (divides_by_one(e, s, in)) {
    divide_by_one(e, s, in, &v);
    return v;
  }
  kl_dtype from = without_sign(e, s, e->body->steps[s->operands[0]].dtype);
  bool packs = kl_has_packed(e, s->dtype), to_words = kl_rounds_to_words(e, s->dtype) && !is_exact(s->op.op);
  kl_dtype round_to = packs || to_words ? KILN_F32 : s->dtype;
  kl_plan_op op = s->op;
  op.nonpositive = op.op == KL_OP_EXP && e->bounds[s->operands[0]].hi <= 0;
  for (unsigned w = 0; w < e->nwide; w++) {
    kl_pair x[3] = {{{0}}};
    for (uint32_t o = 0; o < s->noperands; o++) x[o] = in[o][w];
    v.wide[w] = kl_emit_op(&e->k, &op, from, s->dtype, round_to, x);
  }
  // What was not rounded takes the packed form, or that of words, at once: packing is the rounding.
  if (packs) {
    kl_packed(e, &v);
    v.wide = NULL;
  }
  if (to_words) kl_round_to_words(e, &v, (kl_bounds){-INFINITY, INFINITY});
  return v;
}

static kl_val emit_fma(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype);
  kl_pair *in[3];
  for (uint32_t i = 0; i < 3; i++) in[i] = kl_wide(e, operand(e, s, i));
  for (unsigned w = 0; w < e->nwide; w++) v.wide[w].re = kb_fma(&e->k, in[0][w].re, in[1][w].re, in[2][w].re);
  return v;
}

// The copies whose `var` is `distance`.
static kl_val emit_take(kl_emit *e, const kl_step *s) {
  uint32_t from = s->operands[0];
  kl_vars regs = e->body->steps[from].regs;
  unsigned pick[KL_EMIT_LANES];
  for (unsigned i = 0; i < e->nwide; i++) {
    int64_t at[KL_MAX_VARS];
    kl_nth_point(e->body, s->regs, KL_NONE, i, at);
    at[s->var] = s->distance;
    pick[i] = kl_point_number(e->body, regs, KL_NONE, at);
  }
  return kl_picked(e, &e->vals[from], regs, pick, s->regs);
}

// Is one of these neighbouring copies?
static bool is_one_taken(kl_emit *e, const kl_step *s, unsigned first, unsigned n) {
  for (unsigned i = first; i < first + n; i++)
    if (is_taken(e, s, i)) return true;
  return false;
}

// Elements of 4, 8 and 16 bits side by side in words, as many as make whole ones. What LLVM is shown as bits that go
// into words where they come from falls away.
static kb_reg *bitcast_all(kl_emit *e, const kb_reg *x, unsigned n, kb_kind to, unsigned lanes) {
  kb_reg *r = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned i = 0; i < n; i++) r[i] = kb_bitcast(&e->k, x[i], to, lanes);
  return r;
}

static kb_reg *words_of(kl_emit *e, kl_val *v) {
  kb *k = &e->k;
  if (kl_has_words(e, v->dtype)) return kl_words(e, v);
  if (kl_has_packed(e, v->dtype)) return bitcast_all(e, kl_packed(e, v), e->lanes / 2, KB_I32, 1);
  kb_reg *raw = kl_raw(e, v), *words = KL_NEW_N(e->arena, kb_reg, e->nwide / 2);
  for (unsigned i = 0; i < e->nwide; i += 2) words[i / 2] = kb_or(k, raw[i], kb_shli(k, raw[i + 1], 16));
  return words;
}

static kl_val val_of_words(kl_emit *e, kl_dtype t, kb_reg *words) {
  kb *k = &e->k;
  if (kl_has_words(e, t)) return (kl_val){.dtype = t, .words = words};
  if (kl_has_packed(e, t)) {
    kb_kind kind = t == KILN_F16 ? KB_F16 : KB_BF16;
    return (kl_val){.dtype = t, .packed = bitcast_all(e, words, e->lanes / 2, kind, 2)};
  }
  kb_reg *raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++)
    raw[i] = i % 2 ? kb_lshri(k, words[i / 2], 16) : kb_andi(k, words[i / 2], 0xffff);
  return kl_val_of_bits(e, t, raw);
}

// Words of both operands move down by halves, as digits of the distance say; then bytes.
static kl_val emit_slide(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  unsigned bits = kl_info(s->dtype)->bits, n = (unsigned)e->body->vars[s->var].extent, in_word = 32 / bits;
  unsigned each = n / in_word;
  kb_reg *in[2], all[2 * KL_EMIT_LANES], *out = KL_NEW_N(e->arena, kb_reg, e->nwide / in_word);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t from = s->operands[i];
    in[i] = words_of(e, kl_numbered(e, &e->vals[from], e->body->steps[from].regs, KL_NONE, s->regs, s->var));
  }
  for (unsigned first = 0; first < e->nwide / in_word; first += each) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(e->body, s->regs, s->var, first * in_word, at);
    kb_reg by = expr_of_copy(e, s, kl_point_number(e->body, s->regs, KL_NONE, at));
    by = resize(k, by, KB_I32);
    for (unsigned i = 0; i < 2 * each; i++) all[i] = in[i / each][first + i % each];
    for (unsigned half = each / 2; half > 0; half /= 2) {
      kb_reg more = kb_icmp(k, LLVMIntNE, kb_andi(k, by, half * in_word), kb_ilike(k, by, 0));
      for (unsigned i = 0; i < each + half; i++) all[i] = kb_select(k, more, all[i + half], all[i]);
    }
    kb_reg bytes = kb_mul(k, kb_andi(k, by, in_word - 1), kb_ilike(k, by, 0x1111 * (bits / 8)));
    bytes = kb_add(k, bytes, kb_ilike(k, by, 0x3210));
    for (unsigned i = 0; i < each; i++) out[first + i] = kb_permute_by(k, all[i], all[i + 1], bytes);
  }
  kl_val v = val_of_words(e, s->dtype, out);
  return *kl_numbered(e, &v, s->regs, s->var, s->regs, KL_NONE);
}

// 32 bits at a time on NVPTX, as many elements as they are. LLVM keeps every exchange that is written down: what
// nobody takes is left where it is, and what it would be made of falls away.
static kl_val emit_shuffle(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  kb_reg (*move)(kb *, kb_reg, unsigned) = s->kind == KL_STEP_ROTATE ? kb_lane_plus : kb_lane_xor;
  kl_val *from = operand(e, s, 0), v = {.dtype = s->dtype};
  if (k->machine == KB_NVPTX && kl_moves_words(e->body, s)) {
    unsigned in_word = 32 / kl_info(s->dtype)->bits;
    kb_reg *x = words_of(e, from), *moved = KL_NEW_N(e->arena, kb_reg, e->nwide / in_word);
    for (unsigned i = 0; i < e->nwide / in_word; i++)
      moved[i] = is_one_taken(e, s, i * in_word, in_word) ? move(k, x[i], s->distance) : x[i];
    return val_of_words(e, s->dtype, moved);
  }
  if (from->raw && !from->wide) {
    v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
    for (unsigned i = 0; i < e->nwide; i++)
      v.raw[i] = is_taken(e, s, i) ? move(k, from->raw[i], s->distance) : from->raw[i];
    return v;
  }
  kl_pair *x = kl_wide(e, from);
  v.wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) {
    v.wide[i] = x[i];
    if (!is_taken(e, s, i)) continue;
    v.wide[i].re = move(k, x[i].re, s->distance);
    if (kl_is_complex(s->dtype)) v.wide[i].im = move(k, x[i].im, s->distance);
  }
  return v;
}

// x, of which runs of `half` registers change places.
static kb_reg *exchange_registers(kl_emit *e, const kl_step *s, const kb_reg *x, unsigned n, unsigned half) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  unsigned place = 1;
  for (uint32_t v = s->lane + 1; v < b->nvars; v++)
    if (b->vars[v].binding == KL_BIND_LANE) place *= (unsigned)b->vars[v].extent;
  kb_reg first = kb_icmp(k, LLVMIntEQ, e->vars[s->lane], kb_ilike(k, e->vars[s->lane], 0));
  kb_reg *r = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned i = 0; i < n; i++) {
    if (i / half % 2) continue;
    kb_reg sent = kb_lane_xor(k, kb_select(k, first, x[i + half], x[i]), place);
    r[i] = kb_select(k, first, x[i], sent);
    r[i + half] = kb_select(k, first, sent, x[i + half]);
  }
  return r;
}

static kl_val exchange_wide(kl_emit *e, const kl_step *s, kl_val *from, unsigned half) {
  kl_val v = {.dtype = s->dtype, .wide = KL_NEW_N(e->arena, kl_pair, e->nwide)};
  kl_pair *x = kl_wide(e, from);
  kb_reg *part = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (int im = 0; im <= kl_is_complex(s->dtype); im++) {
    for (unsigned i = 0; i < e->nwide; i++) part[i] = im ? x[i].im : x[i].re;
    kb_reg *r = exchange_registers(e, s, part, e->nwide, half);
    for (unsigned i = 0; i < e->nwide; i++) *(im ? &v.wide[i].im : &v.wide[i].re) = r[i];
  }
  return v;
}

// Of a lane's copies, in runs of `half`, every second one changes place with one of the other lane's. Words do where
// elements are narrower.
static kl_val emit_exchange(kl_emit *e, const kl_step *s) {
  kl_val *from = operand(e, s, 0), v = {.dtype = s->dtype};
  unsigned half = s->distance, bits = kl_info(s->dtype)->bits;
  for (uint32_t r = s->var + 1; r < e->body->nvars; r++)
    if (kl_has_var(s->regs, r)) half *= (unsigned)e->body->vars[r].extent;
  if ((bits == 16 || kl_has_words(e, s->dtype)) && half * bits % 32 == 0) {
    kb_reg *x = exchange_registers(e, s, words_of(e, from), kl_word_count(e, s->dtype), half * bits / 32);
    return val_of_words(e, s->dtype, x);
  } else if (kl_is_narrow_float(s->dtype)) {
    v.raw = exchange_registers(e, s, kl_raw(e, from), e->nwide, half);
  } else {
    return exchange_wide(e, s, from, half);
  }
  return v;
}

// Held to bounds in its own type, all values of which a register holds; then in index kind, where wrapping does no
// harm: what is made of it fits.
static kl_val emit_index(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  const kl_symbol *to = &e->body->symbols[s->var];
  kl_dtype t = e->body->steps[s->operands[0]].dtype;
  bool is_signed = kl_is_signed(t);
  kl_range known = e->ranges[s->operands[0]];
  kl_pair *from = kl_wide(e, operand(e, s, 0));
  kl_val v = new_wide(e, e->index == KB_I64 ? KILN_S64 : KILN_S32);
  bool above = known.hi > to->hi || (t == KILN_U64 && known.lo < 0);
  for (unsigned i = 0; i < e->nwide; i++) {
    kb_reg x = from[i].re, lo = kb_ilike(k, x, to->lo), hi = kb_ilike(k, x, to->hi);
    if (known.lo < to->lo && is_signed) x = kb_smax(k, x, lo);
    if (known.lo < to->lo && !is_signed && to->lo > 0) x = kb_umax(k, x, lo);
    if (above) x = is_signed ? kb_smin(k, x, hi) : kb_umin(k, x, hi);
    if (x.kind == KB_I64)
      x = kb_trunc(k, x, e->index);
    else
      x = is_signed ? kb_sext(k, x, e->index) : kb_zext(k, x, e->index);
    v.wide[i].re = x;
  }
  return v;
}

static kl_val emit_any(kl_emit *e, const kl_step *s) {
  kl_pair *from = kl_wide(e, operand(e, s, 0));
  kl_val v = new_wide(e, s->dtype);
  for (unsigned i = 0; i < e->nwide; i++) v.wide[i].re = kb_any_lane(&e->k, from[i].re);
  return v;
}

kl_val kl_emit_step(kl_emit *e, const kl_step *s) {
  kl_emit_shape(e, s->kind == KL_STEP_LOAD ? s->access.regs : s->regs);
  switch (s->kind) {
  case KL_STEP_LOAD: {
    kl_val v = kl_emit_load(e, &s->access, s->dtype);
    return *kl_numbered(e, &v, s->regs, s->access.run, s->regs, KL_NONE);
  }
  case KL_STEP_SCALAR: return emit_scalar(e, s);
  case KL_STEP_IOTA: return emit_iota(e, s);
  case KL_STEP_FMA: return emit_fma(e, s);
  case KL_STEP_CHOOSE: return emit_choose(e, s);
  case KL_STEP_SPLIT: return emit_split(e, s);
  case KL_STEP_JOIN: return emit_join(e, s);
  case KL_STEP_TAKE: return emit_take(e, s);
  case KL_STEP_SLIDE: return emit_slide(e, s);
  case KL_STEP_SHUFFLE:
  case KL_STEP_ROTATE: return emit_shuffle(e, s);
  case KL_STEP_EXCHANGE: return emit_exchange(e, s);
  case KL_STEP_ANY: return emit_any(e, s);
  case KL_STEP_INDEX: return emit_index(e, s);
  case KL_STEP_CARRIED: return e->vals[s - e->body->steps]; // by its loop
  case KL_STEP_OP: break;
  }
  if (s->op.op == KL_OP_SELECT) return emit_select(e, s);
  if (compares_bits(e, s)) return emit_total_order(e, s);
  if (s->op.op == KL_OP_BITCAST || s->op.op == KL_OP_BITCAST_CONVERT) return emit_bitcast(e, s);
  kl_val converted;
  if (s->op.op == KL_OP_CONVERT && kl_convert_lanes(e, s, &converted)) return converted;
  return can_pack(e, s) ? emit_packed(e, s) : emit_wide(e, s);
}

// From the stores backwards: whose bits count.
void kl_find_wanted_bits(kl_emit *e) {
  const kl_body *body = e->body;
  e->wants_bits = KL_NEW_N(e->arena, bool, body->nsteps + 1);
  for (uint32_t i = 0; i < body->nstores; i++) e->wants_bits[body->stores[i].step] = true;
  for (uint32_t i = 0; i < body->root.n; i++) {
    const kl_nest *nest = body->root.nodes[i].nest;
    for (uint32_t c = 0; body->root.nodes[i].kind == KL_NODE_BEFORE && c < nest->ncarried; c++)
      e->wants_bits[nest->carried[c].first] = e->wants_bits[nest->carried[c].next] = true;
  }
  for (uint32_t i = body->nsteps; i-- > 0;) {
    const kl_step *s = &body->steps[i];
    kl_op op = s->kind == KL_STEP_OP ? s->op.op : KL_OP_UNKNOWN;
    bool reads = s->kind == KL_STEP_SPLIT || s->kind == KL_STEP_EXCHANGE || s->kind == KL_STEP_SLIDE ||
                 s->kind == KL_STEP_JOIN || compares_bits(e, s) || op == KL_OP_BITCAST || op == KL_OP_BITCAST_CONVERT;
    bool moves = s->kind == KL_STEP_CHOOSE || op == KL_OP_SELECT;
    for (uint32_t o = 0; o < s->noperands && (reads || (moves && e->wants_bits[i])); o++)
      e->wants_bits[s->operands[o]] = true;
  }
}

// The loop emitter: one thread, `lanes` consecutive elements of the flattened domain.
//
// NVPTX: blocks below main_blocks run `main` without a bounds check, the others `tail`. Host: a loop over iterations.

#include "lower/emit/emit.h"
#include "lower/emit/math/half/half.h"

#include <math.h>

// --- steps --------------------------------------------------------------------------------------------------------

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

static kl_val emit_iota(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype);
  bool complex = kl_is_complex(s->dtype);
  kl_dtype from = e->index == KB_I64 ? KILN_S64 : KILN_S32, to = complex ? kl_info(s->dtype)->part : s->dtype;
  for (unsigned i = 0; i < e->nwide; i++) {
    kb_reg x = kl_emit_expr(e, s->expr, e->width, kl_emit_lane_numbers(e, i));
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
  switch (s->instr->op) {
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
  case KL_OP_MULTIPLY:
  case KL_OP_NEGATE: return true;
  case KL_OP_ABS: return e->vals[s->operands[0]].dtype == s->dtype;
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_CLAMP: return e->k.sm >= 80;
  default: return kh_has(&e->k, s->instr->op, s->dtype);
  }
}

static kl_val emit_packed(kl_emit *e, const kl_step *s) {
  kl_val v = {.dtype = s->dtype, .packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2)};
  kb_reg *in[3];
  for (uint32_t i = 0; i < s->noperands; i++) in[i] = kl_packed(e, &e->vals[s->operands[i]]);
  if (kh_has(&e->k, s->instr->op, s->dtype)) {
    kh_call(&e->k, s->instr->op, e->lanes / 2, (const kb_reg *const *)in, v.packed);
    return v;
  }
  for (unsigned i = 0; i < e->lanes / 2; i++) {
    kb_reg x[3] = {{0}};
    for (uint32_t o = 0; o < s->noperands; o++) x[o] = in[o][i];
    v.packed[i] = packed_op(&e->k, s->instr->op, x);
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

// Do all lanes of a word go the same way?
static bool chooses_words(const kl_emit *e, kl_dtype t, const kb_reg *cond) {
  unsigned in_word = 32 / kl_info(t)->bits;
  for (unsigned i = 0; i < e->lanes; i++)
    if (cond[i].v != cond[i / in_word * in_word].v) return false;
  return true;
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
  if (a->words && b->words && chooses_words(e, t, cond)) {
    unsigned n = kl_word_count(e, t), in_word = 32 / kl_info(t)->bits;
    v.words = KL_NEW_N(e->arena, kb_reg, n);
    for (unsigned i = 0; i < n; i++) v.words[i] = kb_select(&e->k, cond[i * in_word], a->words[i], b->words[i]);
    return v;
  }
  kb_reg *x = kl_raw(e, a), *y = kl_raw(e, b);
  v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) v.raw[i] = kb_select(&e->k, cond[i], x[i], y[i]);
  return v;
}

// Bits where they are wanted, and where that saves a conversion: neither operand has been one for a value yet.
static bool chooses_bits(const kl_emit *e, const kl_step *s, const kl_val *a, const kl_val *b) {
  if (a->packed && b->packed) return true;
  if (e->wants_bits[s - e->body->steps]) return has_bits(a) || has_bits(b);
  return has_bits(a) && has_bits(b) && !a->wide && !b->wide;
}

static kl_val choose(kl_emit *e, const kl_step *s, const kb_reg *cond, kl_val *a, kl_val *b) {
  if (chooses_bits(e, s, a, b)) return choose_bits(e, s->dtype, cond, a, b);
  kl_val v = {.dtype = s->dtype};
  choose_values(e, &v, cond, a, b);
  return v;
}

static kl_val emit_choose(kl_emit *e, const kl_step *s) {
  kl_val v = e->vals[s->operands[s->noperands - 1]];
  for (uint32_t i = s->noperands - 1; i-- > 0;) {
    kb_reg cond[KL_EMIT_LANES];
    for (unsigned w = 0; w < e->nwide; w++) cond[w] = kl_emit_guard_wide(e, s->guards[i], w);
    v = choose(e, s, cond, &e->vals[s->operands[i]], &v);
  }
  return v;
}

static kl_val emit_select(kl_emit *e, const kl_step *s) {
  kb_reg cond[KL_EMIT_LANES];
  kl_pair *p = kl_wide(e, &e->vals[s->operands[0]]);
  for (unsigned w = 0; w < e->nwide; w++) cond[w] = p[w].re;
  return choose(e, s, cond, &e->vals[s->operands[1]], &e->vals[s->operands[2]]);
}

// The total order is one of floats; the attribute changes nothing for other types.
static bool compares_bits(const kl_emit *e, const kl_step *s) {
  return s->kind == KL_STEP_OP && s->instr->op == KL_OP_COMPARE && s->instr->compare_type == KL_CMP_TOTALORDER &&
         kl_is_float(e->body->steps[s->operands[0]].dtype);
}

static kl_val emit_total_order(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype), *a = &e->vals[s->operands[0]];
  kb_reg *x = kl_raw(e, a), *y = kl_raw(e, &e->vals[s->operands[1]]);
  for (unsigned i = 0; i < e->nwide; i++)
    v.wide[i].re = kl_emit_total_order(&e->k, s->instr->direction, a->dtype, x[i], y[i]);
  return v;
}

// Types of one width: the bits get another name. Complex types only go to themselves.
static kl_val emit_bitcast(kl_emit *e, const kl_step *s) {
  kl_val *from = &e->vals[s->operands[0]];
  if (from->dtype == s->dtype) return *from;
  if (from->words && kl_has_words(e, s->dtype)) return (kl_val){.dtype = s->dtype, .words = from->words};
  return kl_val_of_bits(e, s->dtype, kl_raw(e, from));
}

static kb_reg resize(kb *k, kb_reg bits, kb_kind to) {
  return to == KB_I64 ? kb_zext(k, bits, KB_I64) : kb_trunc(k, bits, KB_I32);
}

// c64 and c128, the only complex types: a part of the wider one is an element of the narrower one, real part lowest.
static kl_val emit_complex_split(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  kl_val v = new_wide(e, s->dtype);
  kl_pair *whole = kl_wide(e, &e->vals[s->operands[0]]);
  for (unsigned w = 0; w < e->nwide; w++) {
    kb_reg at = kl_emit_expr(e, s->expr, e->width, kl_emit_lane_numbers(e, w));
    kb_reg first = kb_icmp(k, LLVMIntEQ, at, kb_ilike(k, at, 0));
    kb_reg bits = kl_to_bits(k, KILN_F64, kb_select(k, first, whole[w].re, whole[w].im));
    v.wide[w].re = kl_from_bits(k, KILN_F32, kb_trunc(k, bits, KB_I32));
    v.wide[w].im = kl_from_bits(k, KILN_F32, kb_trunc(k, kb_lshri(k, bits, 32), KB_I32));
  }
  return v;
}

static kl_val emit_complex_join(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  kl_val v = new_wide(e, s->dtype);
  for (uint32_t i = 0; i < s->noperands; i++) {
    kl_pair *part = kl_wide(e, &e->vals[s->operands[i]]);
    for (unsigned w = 0; w < e->nwide; w++) {
      kb_reg low = kb_zext(k, kl_to_bits(k, KILN_F32, part[w].re), KB_I64);
      kb_reg high = kb_zext(k, kl_to_bits(k, KILN_F32, part[w].im), KB_I64);
      kb_reg r = kl_from_bits(k, KILN_F64, kb_or(k, low, kb_shli(k, high, 32)));
      if (i)
        v.wide[w].im = r;
      else
        v.wide[w].re = r;
    }
  }
  return v;
}

static kl_val emit_split(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  if (kl_is_complex(s->dtype)) return emit_complex_split(e, s);
  unsigned bits = kl_info(s->dtype)->bits;
  kb_reg *whole = kl_raw(e, &e->vals[s->operands[0]]), *part = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned w = 0; w < e->nwide; w++) {
    kb_reg at = kl_emit_expr(e, s->expr, e->width, kl_emit_lane_numbers(e, w));
    at = resize(k, at, (kb_kind)whole[w].kind);
    kb_reg r = resize(k, kb_lshr(k, whole[w], kb_mul(k, at, kb_ilike(k, at, bits))), KB_I32);
    part[w] = bits < 32 ? kb_andi(k, r, (1ll << bits) - 1) : r;
  }
  return kl_val_of_bits(e, s->dtype, part);
}

static kl_val emit_join(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  if (kl_is_complex(s->dtype)) return emit_complex_join(e, s);
  kb_kind kind = kl_info(s->dtype)->bits == 64 ? KB_I64 : KB_I32;
  kb_reg *whole = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (uint32_t i = 0; i < s->noperands; i++) {
    kl_val *part = &e->vals[s->operands[i]];
    kb_reg *raw = kl_raw(e, part);
    for (unsigned w = 0; w < e->nwide; w++) {
      kb_reg r = kb_shli(k, resize(k, raw[w], kind), i * kl_info(part->dtype)->bits);
      whole[w] = i ? kb_or(k, whole[w], r) : r;
    }
  }
  return kl_val_of_bits(e, s->dtype, whole);
}

// Division of what is known not to be negative, by what is known to be positive, has no sign to take care of.
static kl_dtype without_sign(const kl_emit *e, const kl_step *s, kl_dtype t) {
  kl_op op = s->instr->op;
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

static kl_val emit_wide(kl_emit *e, const kl_step *s) {
  kl_val v = new_wide(e, s->dtype);
  kl_pair *in[3];
  for (uint32_t i = 0; i < s->noperands; i++) in[i] = kl_wide(e, &e->vals[s->operands[i]]);
  kl_dtype from = without_sign(e, s, e->vals[s->operands[0]].dtype);
  bool packs = kl_has_packed(e, s->dtype), to_words = kl_rounds_to_words(e, s->dtype) && !is_exact(s->instr->op);
  kl_dtype round_to = packs || to_words ? KILN_F32 : s->dtype;
  for (unsigned w = 0; w < e->nwide; w++) {
    kl_pair x[3] = {{{0}}};
    for (uint32_t o = 0; o < s->noperands; o++) x[o] = in[o][w];
    v.wide[w] = kl_emit_op(&e->k, s->instr, from, round_to, x);
  }
  // What was not rounded takes the packed form, or that of words, at once: packing is the rounding.
  if (packs) {
    kl_packed(e, &v);
    v.wide = NULL;
  }
  if (to_words) kl_round_to_words(e, &v, (kl_bounds){-INFINITY, INFINITY});
  return v;
}

static kl_val emit_step(kl_emit *e, const kl_step *s) {
  switch (s->kind) {
  case KL_STEP_LOAD: return kl_emit_load(e, &s->access, s->dtype);
  case KL_STEP_SCALAR: return emit_scalar(e, s);
  case KL_STEP_IOTA: return emit_iota(e, s);
  case KL_STEP_CHOOSE: return emit_choose(e, s);
  case KL_STEP_SPLIT: return emit_split(e, s);
  case KL_STEP_JOIN: return emit_join(e, s);
  case KL_STEP_OP: break;
  }
  if (s->instr->op == KL_OP_SELECT) return emit_select(e, s);
  if (compares_bits(e, s)) return emit_total_order(e, s);
  if (s->instr->op == KL_OP_BITCAST || s->instr->op == KL_OP_BITCAST_CONVERT) return emit_bitcast(e, s);
  kl_val converted;
  if (s->instr->op == KL_OP_CONVERT && kl_convert_lanes(e, s, &converted)) return converted;
  return can_pack(e, s) ? emit_packed(e, s) : emit_wide(e, s);
}

// From the stores backwards: whose bits count.
static void find_wanted_bits(kl_emit *e) {
  const kl_body *body = e->body;
  e->wants_bits = KL_NEW_N(e->arena, bool, body->nsteps + 1);
  for (uint32_t i = 0; i < body->nstores; i++) e->wants_bits[body->stores[i].step] = true;
  for (uint32_t i = body->nsteps; i-- > 0;) {
    const kl_step *s = &body->steps[i];
    kl_op op = s->instr->op;
    bool reads = s->kind == KL_STEP_SPLIT || s->kind == KL_STEP_JOIN || compares_bits(e, s) ||
                 (s->kind == KL_STEP_OP && (op == KL_OP_BITCAST || op == KL_OP_BITCAST_CONVERT));
    bool moves = s->kind == KL_STEP_CHOOSE || (s->kind == KL_STEP_OP && op == KL_OP_SELECT);
    for (uint32_t o = 0; o < s->noperands && (reads || (moves && e->wants_bits[i])); o++)
      e->wants_bits[s->operands[o]] = true;
  }
}

// --- bodies ---------------------------------------------------------------------------------------------------------

// Up to so many results are stored behind all steps, so that every load comes before the first store; of more, each
// group of so many once its values are there, or they would all have to be held at once.
enum { STORES_AT_ONCE = 16 };

// By store: the step behind which it may stand. Its value is there, and nothing is read any more of what it overwrites.
static const uint32_t *steps_before_stores(kl_emit *e, const kl_body *b) {
  for (uint32_t i = 0; i < b->nstores; i++) e->last_read[b->stores[i].access.slot] = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    if (b->steps[i].kind != KL_STEP_LOAD) continue;
    uint32_t result = e->plan->slots[b->steps[i].access.slot].alias;
    if (result != KL_NONE) e->last_read[result] = i;
  }
  uint32_t *behind = KL_NEW_N(e->arena, uint32_t, b->nstores + 1);
  for (uint32_t i = 0; i < b->nstores; i++) {
    uint32_t read = e->last_read[b->stores[i].access.slot];
    behind[i] = read > b->stores[i].step ? read : b->stores[i].step;
  }
  return behind;
}

static void order_items(kl_emit *e) {
  const kl_body *b = e->body;
  const uint32_t *behind = steps_before_stores(e, b);
  uint32_t *items = KL_NEW_N(e->arena, uint32_t, b->nsteps + b->nstores + 1), n = 0, stored = 0, ready = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    items[n++] = i;
    while (ready < b->nstores && behind[ready] <= i) ready++;
    if (b->nstores <= STORES_AT_ONCE || ready - stored < STORES_AT_ONCE) continue;
    while (stored < ready) items[n++] = b->nsteps + stored++;
  }
  while (stored < b->nstores) items[n++] = b->nsteps + stored++;
  e->items = items;
  e->nitems = n;
}

void kl_body_begin(kl_emit *e, const kl_body *body) {
  e->body = body;
  e->lanes = body->lanes;
  e->width = e->k.machine == KB_HOST ? body->lanes : 1;
  e->nwide = e->lanes / e->width;
  e->vals = KL_NEW_N(e->arena, kl_val, body->nsteps + 1);
  e->ranges = kl_ranges(e->arena, body);
  e->bounds = kl_float_bounds(e->arena, body, e->ranges);
  e->k.calls |= kl_is_long(e, body);
  find_wanted_bits(e);
  order_items(e);
}

// Guards that stores branch on are made before the first branch.
static void make_store_guards(kl_emit *e, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end && e->items[i] >= e->body->nsteps; i++) {
    uint32_t keep = e->body->stores[e->items[i] - e->body->nsteps].keep;
    for (unsigned l = 0; keep != KL_NONE && l < e->lanes; l++) kl_emit_guard_lane(e, keep, l);
  }
}

// LLVM selects instructions block by block, and where a value has many users in one, in time by their square. The host
// has its pieces.
enum { ITEMS_IN_BLOCK = 1024 };

static void bound_block(kl_emit *e, uint32_t items) {
  if (e->k.machine == KB_HOST || items % ITEMS_IN_BLOCK != 0) return;
  LLVMBasicBlockRef next = kl_block(e, "");
  LLVMMoveBasicBlockAfter(next, LLVMGetInsertBlock(e->k.b));
  LLVMBuildBr(e->k.b, next);
  LLVMPositionBuilderAtEnd(e->k.b, next);
}

void kl_body_items(kl_emit *e, kb_reg thread, uint32_t first, uint32_t end) {
  const kl_body *b = e->body;
  e->thread = thread;
  e->guard_lane = KL_NEW_N(e->arena, kb_reg, b->nguards * e->lanes + 1);
  e->guard_wide = KL_NEW_N(e->arena, kb_reg, b->nguards * e->nwide + 1);
  for (uint32_t i = first; i < end; i++) {
    uint32_t item = e->items[i];
    bool is_store = item >= b->nsteps;
    if (is_store && (i == first || e->items[i - 1] < b->nsteps)) make_store_guards(e, i, end);
    if (is_store)
      kl_emit_store(e, &b->stores[item - b->nsteps], &e->vals[b->stores[item - b->nsteps].step]);
    else
      e->vals[item] = emit_step(e, &b->steps[item]);
    bound_block(e, i + 1);
  }
}

static void emit_body(kl_emit *e, const kl_body *body, kb_reg thread) {
  kl_body_begin(e, body);
  kl_body_items(e, thread, 0, e->nitems);
}

// --- control flow ---------------------------------------------------------------------------------------------------

LLVMBasicBlockRef kl_block(kl_emit *e, const char *name) {
  return LLVMAppendBasicBlockInContext(e->k.llcx, e->k.fn, name);
}

kl_if kl_if_begin(kl_emit *e, kb_reg c, const char *name) {
  LLVMBasicBlockRef then = kl_block(e, name), after = kl_block(e, "");
  LLVMBuildCondBr(e->k.b, c.v, then, after);
  LLVMPositionBuilderAtEnd(e->k.b, then);
  return (kl_if){after};
}

void kl_if_end(kl_emit *e, kl_if i) {
  LLVMBuildBr(e->k.b, i.after);
  LLVMMoveBasicBlockAfter(i.after, LLVMGetInsertBlock(e->k.b));
  LLVMPositionBuilderAtEnd(e->k.b, i.after);
}

// --- kernels --------------------------------------------------------------------------------------------------------

void kl_attribute(kl_emit *e, unsigned index, const char *name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(e->k.fn, index, LLVMCreateEnumAttribute(e->k.llcx, kind, value));
}

static void string_attribute(kl_emit *e, const char *name, const char *value) {
  LLVMAttributeRef a =
      LLVMCreateStringAttribute(e->k.llcx, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(e->k.fn, LLVMAttributeFunctionIndex, a);
}

// Constants as globals: address space 1 on NVPTX, plain on the host.
void kl_make_constants(kl_emit *e) {
  unsigned space = e->k.machine == KB_NVPTX ? 1 : 0;
  for (uint32_t i = e->plan->nargs; i < e->plan->nslots; i++) {
    const kl_slot_info *s = &e->plan->slots[i];
    LLVMValueRef data = LLVMConstStringInContext2(e->k.llcx, s->data, (size_t)s->bytes, true);
    LLVMValueRef g = LLVMAddGlobalInAddressSpace(e->k.module, LLVMTypeOf(data),
                                                 kl_strf(e->arena, "%s_constant%u", e->plan->name, i), space);
    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetAlignment(g, 16);
    e->slots[i] = (kb_reg){g, KB_PTR, 1};
  }
}

// --- NVPTX ----------------------------------------------------------------------------------------------------------

static kb_kind value_kind(const kl_plan *p, uint32_t slot) {
  return kl_info(p->slots[slot].shape->dtype)->bits == 64 ? KB_I64 : KB_I32;
}

// What is said of more arguments than this would take time and memory by the square of their number: LLVM copies all
// attributes with each that is added. Every access carries its own alignment, and every load whether it is constant.
enum { MOST_HINTED = 256 };

static void declare_gpu_kernel(kl_emit *e) {
  kl_plan *p = e->plan;
  LLVMTypeRef *types = KL_NEW_N(e->arena, LLVMTypeRef, p->nargs + 1);
  for (uint32_t i = 0; i < p->nargs; i++)
    types[i] = p->slots[i].by_value ? kb_type(&e->k, value_kind(p, i), 1) : LLVMPointerTypeInContext(e->k.llcx, 1);
  types[p->nargs] = LLVMInt64TypeInContext(e->k.llcx);
  LLVMTypeRef fty = LLVMFunctionType(LLVMVoidTypeInContext(e->k.llcx), types, p->nargs + p->counted, false);
  e->k.fn = LLVMAddFunction(e->k.module, p->name, fty);
  LLVMSetFunctionCallConv(e->k.fn, 71); // PTX kernel
  string_attribute(e, "nvvm.reqntid", kl_strf(e->arena, "%u", p->target.block));
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  for (uint32_t i = 0; i < p->nargs; i++) {
    e->slots[i] = (kb_reg){LLVMGetParam(e->k.fn, i), p->slots[i].by_value ? value_kind(p, i) : KB_PTR, 1};
    if (p->slots[i].by_value || p->nargs > MOST_HINTED) continue;
    if (kl_is_constant(p, i)) kl_attribute(e, i + 1, "noalias", 0);
    kl_attribute(e, i + 1, "align", p->slots[i].align);
    kl_attribute(e, i + 1, p->slots[i].kind == KL_SLOT_IN ? "readonly" : "writeonly", 0);
  }
}

static kb_reg special_register(kl_emit *e, const char *name) {
  kb_reg r = kb_intrinsic(&e->k, name, NULL, 0, NULL, 0, KB_I32, 1);
  return e->index == KB_I64 ? kb_zext(&e->k, r, KB_I64) : r;
}

// How a counted domain divides, in index kind.
typedef struct division {
  kb_reg main_blocks;
  kb_reg tail_first, tail_end; // threads of the tail
} division;

static division divide(kl_emit *e, const kl_part *part, kb_reg count) {
  kb *k = &e->k;
  int64_t in_block = (int64_t)part->main.lanes * e->plan->target.block, tail = part->tail.lanes;
  if (e->index == KB_I32) count = kb_trunc(k, count, KB_I32);
  division d = {.main_blocks = kb_ilike(k, count, 0), .tail_first = kb_ilike(k, count, 0)};
  if (part->main.threads) { // else every count is less than one thread's lanes
    d.main_blocks = kb_udiv(k, count, kb_ilike(k, count, in_block));
    d.tail_first = kb_mul(k, d.main_blocks, kb_ilike(k, count, in_block / tail));
  }
  d.tail_end = kb_udiv(k, count, kb_ilike(k, count, tail));
  return d;
}

// What a kernel needs of the kernel before it is there behind this; what needs nothing of this one may begin.
static void wait_for_previous(kl_emit *e) {
  kb_intrinsic(&e->k, "llvm.nvvm.griddepcontrol.wait", NULL, 0, NULL, 0, KB_I1, 1);
  kb_intrinsic(&e->k, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0, NULL, 0, KB_I1, 1);
}

static void emit_gpu_tail(kl_emit *e, const kl_part *part, const division *d, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  uint32_t in_block = e->plan->target.block;
  kb_reg b = d ? kb_sub(k, block_id, d->main_blocks) : kb_addi(k, block_id, -part->first_block - part->main_blocks);
  kb_reg t = kb_add(k, kb_mul(k, b, kb_ilike(k, b, in_block)), tid);
  if (d) t = kb_add(k, t, d->tail_first);
  bool check = d || part->tail.threads % in_block != 0;
  kl_if in = {0};
  kb_reg end = d ? d->tail_end : kb_ilike(k, t, part->tail.threads);
  if (check) in = kl_if_begin(e, kb_icmp(k, LLVMIntULT, t, end), "tail");
  emit_body(e, &part->tail, t);
  if (check) kl_if_end(e, in);
  LLVMBuildRetVoid(k->b);
}

static void emit_gpu_main(kl_emit *e, const kl_part *part, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  kb_reg b = kb_addi(k, block_id, -part->first_block);
  kb_reg t = kb_add(k, kb_mul(k, b, kb_ilike(k, b, e->plan->target.block)), tid);
  emit_body(e, &part->main, t);
  LLVMBuildRetVoid(k->b);
}

static void emit_gpu_part(kl_emit *e, const kl_part *part, kb_reg block_id, kb_reg tid) {
  kl_plan *p = e->plan;
  kb *k = &e->k;
  division d = {0};
  if (p->counted) d = divide(e, part, (kb_reg){LLVMGetParam(e->k.fn, p->nargs), KB_I64, 1});
  if (!part->tail.threads) return emit_gpu_main(e, part, block_id, tid);
  if (!part->main.threads) return emit_gpu_tail(e, part, p->counted ? &d : NULL, block_id, tid);
  kb_reg main_end = p->counted ? d.main_blocks : kb_ilike(k, block_id, part->first_block + part->main_blocks);
  LLVMBasicBlockRef main = kl_block(e, "main"), tail = kl_block(e, "rest");
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULT, block_id, main_end).v, main, tail);
  LLVMPositionBuilderAtEnd(k->b, main);
  emit_gpu_main(e, part, block_id, tid);
  LLVMPositionBuilderAtEnd(k->b, tail);
  emit_gpu_tail(e, part, p->counted ? &d : NULL, block_id, tid);
}

// A block finds its part by halves.
static void emit_gpu_parts(kl_emit *e, uint32_t first, uint32_t end, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  const kl_part *parts = e->plan->parts;
  if (end - first == 1) return emit_gpu_part(e, &parts[first], block_id, tid);
  uint32_t middle = first + (end - first) / 2;
  LLVMBasicBlockRef below = kl_block(e, "below"), above = kl_block(e, "above");
  kb_reg is_below = kb_icmp(k, LLVMIntULT, block_id, kb_ilike(k, block_id, parts[middle].first_block));
  LLVMBuildCondBr(k->b, is_below.v, below, above);
  LLVMPositionBuilderAtEnd(k->b, below);
  emit_gpu_parts(e, first, middle, block_id, tid);
  LLVMPositionBuilderAtEnd(k->b, above);
  emit_gpu_parts(e, middle, end, block_id, tid);
}

static void emit_gpu(kl_emit *e) {
  kl_plan *p = e->plan;
  kb *k = &e->k;
  declare_gpu_kernel(e);
  kl_make_constants(e);
  LLVMPositionBuilderAtEnd(k->b, kl_block(e, "entry"));
  kb_reg block_id = special_register(e, "llvm.nvvm.read.ptx.sreg.ctaid.x");
  kb_reg tid = special_register(e, "llvm.nvvm.read.ptx.sreg.tid.x");
  if (p->programmatic) wait_for_previous(e);
  emit_gpu_parts(e, 0, p->nparts, block_id, tid);
}

// --- the kernel -----------------------------------------------------------------------------------------------------

void kl_emit_kernel(kl_ctx *cx, LLVMModuleRef module, kl_plan *plan) {
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kl_emit e = {.arena = &scratch, .plan = plan, .index = plan->index64 ? KB_I64 : KB_I32};
  e.k = (kb){.cx = cx,
             .llcx = LLVMGetModuleContext(module),
             .module = module,
             .machine = plan->target.machine == KL_NVPTX ? KB_NVPTX : KB_HOST,
             .sm = (int)plan->target.sm,
             .narrow = plan->target.sm >= 100 && plan->target.variant,
             .fast = plan->fast};
  e.k.b = LLVMCreateBuilderInContext(e.k.llcx);
  e.slots = KL_NEW_N(&scratch, kb_reg, plan->nslots + 1);
  e.last_read = KL_NEW_N(&scratch, uint32_t, plan->nslots + 1);
  e.invariant_load = LLVMGetMDKindIDInContext(e.k.llcx, "invariant.load", 14);
  e.empty_node = LLVMMetadataAsValue(e.k.llcx, LLVMMDNodeInContext2(e.k.llcx, NULL, 0));
  if (e.k.machine == KB_NVPTX)
    emit_gpu(&e);
  else
    kl_emit_host(&e);
  LLVMDisposeBuilder(e.k.b);
  kl_arena_free(&scratch);
}

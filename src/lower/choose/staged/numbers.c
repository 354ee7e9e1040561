// Numbers of two parts, or of one.

#include "lower/choose/staged/numbers.h"

#include "ir/dtype.h"

kl_dtype kl_number_part(kl_dtype t) {
  return t == KILN_F64 || t == KILN_C128 ? KILN_F64 : KILN_F32;
}

kl_dtype kl_number_whole(kl_dtype t) {
  kl_dtype part = kl_number_part(t);
  return !kl_is_complex(t) ? part : part == KILN_F64 ? KILN_C128 : KILN_C64;
}

static uint32_t op1(kl_stage_body *b, kl_op op, kl_dtype t, uint32_t x) {
  return kl_write_op(&b->w, (kl_plan_op){.op = op}, t, 1, &x);
}

static kl_dtype type_of(const kl_stage_body *b, uint32_t value) {
  return b->w.steps.p[value].dtype;
}

static uint32_t converted(kl_stage_body *b, uint32_t value, kl_dtype t) {
  return type_of(b, value) == t ? value : op1(b, KL_OP_CONVERT, t, value);
}

kl_number kl_number_const(kl_stage_body *b, kl_dtype whole, double re, double im) {
  kl_dtype part = kl_number_part(whole);
  kl_number r = {kl_write_scalar(&b->w, part, kl_float_encode(part, re), 0), KL_NONE};
  if (kl_is_complex(whole)) r.im = kl_write_scalar(&b->w, part, kl_float_encode(part, im), 0);
  return r;
}

kl_number kl_number_of(kl_stage_body *b, uint32_t value) {
  kl_dtype t = type_of(b, value), part = kl_number_part(t);
  if (!kl_is_complex(t)) return (kl_number){converted(b, value, part), KL_NONE};
  return (kl_number){op1(b, KL_OP_REAL, part, value), op1(b, KL_OP_IMAG, part, value)};
}

uint32_t kl_number_value(kl_stage_body *b, kl_number x, kl_dtype t) {
  if (x.im == KL_NONE) return converted(b, x.re, t);
  return kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_COMPLEX}, t, 2, (uint32_t[]){x.re, x.im});
}

static kl_number each(kl_stage_body *b, kl_op op, kl_number x, kl_number y) {
  return (kl_number){kl_stage_op(b, op, x.re, y.re), x.im == KL_NONE ? KL_NONE : kl_stage_op(b, op, x.im, y.im)};
}

static uint32_t negated(kl_stage_body *b, uint32_t x) {
  return op1(b, KL_OP_NEGATE, type_of(b, x), x);
}

kl_number kl_number_conj(kl_stage_body *b, kl_number x) {
  if (x.im != KL_NONE) x.im = negated(b, x.im);
  return x;
}

kl_number kl_number_add(kl_stage_body *b, kl_number x, kl_number y) {
  return each(b, KL_OP_ADD, x, y);
}

kl_number kl_number_sub(kl_stage_body *b, kl_number x, kl_number y) {
  return each(b, KL_OP_SUBTRACT, x, y);
}

kl_number kl_number_mul(kl_stage_body *b, kl_number x, kl_number y) {
  kl_number r = {kl_stage_op(b, KL_OP_MULTIPLY, x.re, y.re), KL_NONE};
  if (x.im == KL_NONE) return r;
  r.im = kl_stage_op(b, KL_OP_MULTIPLY, x.re, y.im);
  r.re = kl_write_fma(&b->w, negated(b, x.im), y.im, r.re);
  r.im = kl_write_fma(&b->w, x.im, y.re, r.im);
  return r;
}

kl_number kl_number_div(kl_stage_body *b, kl_number x, kl_number y) {
  kl_dtype part = type_of(b, x.re), whole = part == KILN_F64 ? KILN_C128 : KILN_C64;
  if (x.im == KL_NONE) return each(b, KL_OP_DIVIDE, x, y);
  uint32_t q = kl_stage_op(b, KL_OP_DIVIDE, kl_number_value(b, x, whole), kl_number_value(b, y, whole));
  return kl_number_of(b, q);
}

kl_number kl_number_less(kl_stage_body *b, kl_number z, kl_number x, kl_number y) {
  uint32_t minus = negated(b, x.re);
  kl_number r = {kl_write_fma(&b->w, minus, y.re, z.re), KL_NONE};
  if (x.im == KL_NONE) return r;
  r.re = kl_write_fma(&b->w, x.im, y.im, r.re);
  r.im = kl_write_fma(&b->w, minus, y.im, z.im);
  r.im = kl_write_fma(&b->w, negated(b, x.im), y.re, r.im);
  return r;
}

kl_number kl_number_scale(kl_stage_body *b, kl_number x, uint32_t by) {
  return each(b, KL_OP_MULTIPLY, x, (kl_number){by, by});
}

kl_number kl_number_choose(kl_stage_body *b, uint32_t guard, kl_number yes, kl_number no) {
  kl_number r = {kl_write_choose(&b->w, guard, yes.re, no.re), KL_NONE};
  if (yes.im != KL_NONE) r.im = kl_write_choose(&b->w, guard, yes.im, no.im);
  return r;
}

kl_number kl_number_load(kl_stage_body *b, uint32_t slot, const kl_aff *at, uint32_t keep) {
  return kl_number_of(b, kl_stage_load(b, slot, &at, keep, b->s->c->slots.v.p[slot].shape->dtype));
}

kiln_status kl_number_store(kl_stage_body *b, uint32_t slot, const kl_aff *at, kl_number x, uint32_t keep) {
  return kl_stage_store(b, slot, &at, kl_number_value(b, x, b->s->c->slots.v.p[slot].shape->dtype), keep);
}

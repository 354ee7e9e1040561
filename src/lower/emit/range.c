// What is known of integers before they are computed.
//
// Intervals go forward through the steps of a body: indices and constants are known, sums and products of known values
// are as long as they cannot wrap, and everything else is as large as its type.

#include "lower/emit/emit.h"

#include <math.h>

static kl_range range(int64_t lo, int64_t hi) {
  return (kl_range){lo, hi};
}

// The unsigned 64-bit type goes beyond what an interval holds.
static kl_range whole(kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  if (t == KILN_PRED) return range(0, 1);
  if (!kl_is_int(t) || bits > (kl_is_signed(t) ? 64 : 63)) return range(INT64_MIN, INT64_MAX);
  int64_t max = (int64_t)(kl_is_signed(t) ? kl_int_mask(t) >> 1 : kl_int_mask(t));
  return range(kl_is_signed(t) ? -max - 1 : 0, max);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static kl_range either(kl_range a, kl_range b) {
  return range(least(a.lo, b.lo), most(a.hi, b.hi));
}

// r, if no value of it wraps in type t.
static kl_range fitting(kl_dtype t, bool exact, kl_range r) {
  kl_range all = whole(t);
  if (t == KILN_U64 && r.lo < 0) return all;
  return exact && r.lo >= all.lo && r.hi <= all.hi ? r : all;
}

static kl_range product(kl_dtype t, kl_range x, kl_range y) {
  int64_t p[4] = {0};
  bool bad = __builtin_mul_overflow(x.lo, y.lo, &p[0]) || __builtin_mul_overflow(x.lo, y.hi, &p[1]) ||
             __builtin_mul_overflow(x.hi, y.lo, &p[2]) || __builtin_mul_overflow(x.hi, y.hi, &p[3]);
  return fitting(t, !bad, range(least(least(p[0], p[1]), least(p[2], p[3])), most(most(p[0], p[1]), most(p[2], p[3]))));
}

static kl_range binary(kl_op op, kl_dtype t, kl_range x, kl_range y) {
  kl_range r = {0};
  bool natural = x.lo >= 0 && y.lo >= 0;
  if (t == KILN_U64 && !natural) return whole(t);
  switch (op) {
  case KL_OP_ADD:
    return fitting(t, !__builtin_add_overflow(x.lo, y.lo, &r.lo) && !__builtin_add_overflow(x.hi, y.hi, &r.hi), r);
  case KL_OP_SUBTRACT:
    return fitting(t, !__builtin_sub_overflow(x.lo, y.hi, &r.lo) && !__builtin_sub_overflow(x.hi, y.lo, &r.hi), r);
  case KL_OP_MULTIPLY: return product(t, x, y);
  case KL_OP_MINIMUM: return range(least(x.lo, y.lo), least(x.hi, y.hi));
  case KL_OP_MAXIMUM: return range(most(x.lo, y.lo), most(x.hi, y.hi));
  case KL_OP_AND: return natural ? range(0, least(x.hi, y.hi)) : whole(t);
  case KL_OP_DIVIDE: return natural && y.lo > 0 ? range(x.lo / y.hi, x.hi / y.lo) : whole(t);
  case KL_OP_REMAINDER: return natural && y.lo > 0 ? range(0, least(x.hi, y.hi - 1)) : whole(t);
  default: return whole(t);
  }
}

static kl_range of_op(const kl_step *s, const kl_step *steps, const kl_range *known) {
  if (!s->noperands) return whole(s->dtype);
  const kl_range *x = &known[s->operands[0]];
  kl_dtype from = steps[s->operands[0]].dtype;
  kl_op op = s->op.op;
  if (op == KL_OP_SELECT) return either(known[s->operands[1]], known[s->operands[2]]);
  if (op == KL_OP_CONVERT && kl_is_int(from)) return fitting(s->dtype, true, *x);
  if (s->noperands != 2 || from != s->dtype) return whole(s->dtype);
  return binary(op, s->dtype, *x, known[s->operands[1]]);
}

static kl_range of_index(kl_dom *d, const kl_aff *e) {
  kl_interval in = kl_dom_interval(d, e);
  return range(in.lo, in.hi);
}

static kl_range of_step(const kl_body *body, const kl_step *s, const kl_range *known) {
  if (!kl_is_int(s->dtype)) return whole(s->dtype);
  switch (s->kind) {
  case KL_STEP_SCALAR: {
    int64_t v = kl_int_decode(s->dtype, s->bits[0]);
    return v < 0 && !kl_is_signed(s->dtype) ? whole(s->dtype) : range(v, v);
  }
  case KL_STEP_IOTA: return fitting(s->dtype, true, of_index(body->domain, s->expr));
  case KL_STEP_CHOOSE: {
    kl_range r = known[s->operands[0]];
    for (uint32_t i = 1; i < s->noperands; i++) r = either(r, known[s->operands[i]]);
    return r;
  }
  case KL_STEP_SLIDE: return either(known[s->operands[0]], known[s->operands[1]]);
  case KL_STEP_EXCHANGE: return known[s->operands[0]];
  case KL_STEP_OP: return of_op(s, body->steps, known);
  default: return whole(s->dtype);
  }
}

kl_range *kl_ranges(kl_arena *arena, const kl_body *body) {
  kl_range *known = KL_NEW_N(arena, kl_range, body->nsteps + 1);
  for (uint32_t i = 0; i < body->nsteps; i++) known[i] = of_step(body, &body->steps[i], known);
  return known;
}

// --- floats
// -----------------------------------------------------------------------------------------------------------

static kl_bounds bounds(double lo, double hi) {
  return (kl_bounds){lo, hi};
}

// Without the sign, the largest number of a format is all ones, or one less where that is NaN.
static kl_bounds all_of(kl_dtype t) {
  const kl_dtype_info *f = kl_info(t);
  if (f->kind == KL_IEEE || f->kind == KL_E8M0) return bounds(-INFINITY, INFINITY);
  double most = kl_float_decode(t, (1u << (f->bits - 1)) - (f->kind == KL_FN ? 2 : 1));
  return bounds(-most, most);
}

static kl_bounds hull(kl_bounds a, kl_bounds b) {
  return bounds(fmin(a.lo, b.lo), fmax(a.hi, b.hi));
}

// Rounding keeps order; what overflows to NaN is no number.
static kl_bounds rounded(kl_dtype t, kl_bounds b) {
  double lo = kl_float_decode(t, kl_float_encode(t, b.lo)), hi = kl_float_decode(t, kl_float_encode(t, b.hi));
  kl_bounds all = all_of(t);
  return bounds(isnan(lo) ? all.lo : lo, isnan(hi) ? all.hi : hi);
}

static kl_bounds bounds_of_op(const kl_body *body, const kl_step *s, const kl_bounds *known, const kl_range *ranges) {
  kl_bounds x = known[s->operands[0]], y = s->noperands > 1 ? known[s->operands[1]] : x;
  kl_dtype from = body->steps[s->operands[0]].dtype;
  switch (s->op.op) {
  case KL_OP_COPY: return x;
  case KL_OP_SUBTRACT: return s->op.nonpositive ? bounds(-INFINITY, 0) : all_of(s->dtype);
  case KL_OP_EXP: return bounds(0, x.hi <= 0 ? 2 : INFINITY); // 1, and what `fast` makes of it
  case KL_OP_SELECT: return hull(y, known[s->operands[2]]);
  case KL_OP_MINIMUM: return bounds(fmin(x.lo, y.lo), fmin(x.hi, y.hi));
  case KL_OP_MAXIMUM: return bounds(fmax(x.lo, y.lo), fmax(x.hi, y.hi));
  case KL_OP_CLAMP: { // the upper bound counts last
    kl_bounds hi = known[s->operands[2]];
    return bounds(fmin(fmax(x.lo, y.lo), hi.lo), fmin(fmax(x.hi, y.hi), hi.hi));
  }
  case KL_OP_CONVERT: {
    if (kl_is_complex(from)) break;
    kl_range r = ranges[s->operands[0]];
    bool known_int = kl_is_int(from) && (from != KILN_U64 || r.lo >= 0);
    if (from == KILN_PRED) return bounds(0, 1);
    if (!kl_is_int(from)) return rounded(s->dtype, x);
    return known_int ? rounded(s->dtype, bounds((double)r.lo, (double)r.hi)) : all_of(s->dtype);
  }
  default: break;
  }
  return all_of(s->dtype);
}

static kl_bounds bounds_of_step(const kl_body *body, const kl_step *s, const kl_bounds *known, const kl_range *ranges) {
  switch (s->kind) {
  case KL_STEP_SCALAR: {
    double v = kl_float_decode(s->dtype, s->bits[0]);
    return isnan(v) ? all_of(s->dtype) : bounds(v, v);
  }
  case KL_STEP_CHOOSE: {
    kl_bounds r = known[s->operands[0]];
    for (uint32_t i = 1; i < s->noperands; i++) r = hull(r, known[s->operands[i]]);
    return r;
  }
  case KL_STEP_SLIDE: return hull(known[s->operands[0]], known[s->operands[1]]);
  case KL_STEP_EXCHANGE: return known[s->operands[0]];
  case KL_STEP_OP: return s->noperands ? bounds_of_op(body, s, known, ranges) : all_of(s->dtype);
  default: return all_of(s->dtype);
  }
}

kl_bounds *kl_float_bounds(kl_arena *arena, const kl_body *body, const kl_range *ranges) {
  kl_bounds *known = KL_NEW_N(arena, kl_bounds, body->nsteps + 1);
  for (uint32_t i = 0; i < body->nsteps; i++) {
    const kl_step *s = &body->steps[i];
    known[i] = kl_is_float(s->dtype) ? bounds_of_step(body, s, known, ranges) : bounds(-INFINITY, INFINITY);
  }
  return known;
}

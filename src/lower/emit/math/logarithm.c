// log1p, asinh, acosh and atanh, all of them log(1 + t) for a sum of two numbers t. Within 1 ulp wherever
// tests/emit/math.c looks.

#include "lower/emit/math/impl.h"

#include <math.h>

km_two km_root_of(kb *k, const km_consts *m, km_two x) {
  kb_reg r = kb_fsqrt(k, x.hi);
  kb_reg rest = kb_fadd(k, kb_fma(k, kb_fneg(k, r), r, x.hi), x.lo);
  return (km_two){r, kb_fmul(k, rest, km_half_rsqrt(k, m, x.hi))};
}

// log(1 + x) + more ln 2 for u = 1 + x.hi other than zero, infinity and NaN; x.lo and `more` may be km_none. With
// 1 + x = 2^n (1 + f), f = 2^-n x + (2^-n - 1) is a sum of two, of which the second adds f.lo / (1 + f).
static km_two log1p_parts(kb *k, const km_consts *m, km_two x, kb_reg more, kb_reg u) {
  kb_reg bits = km_bits(k, u);
  kb_reg n = kb_ashri(k, kb_addi(k, bits, -m->two_thirds), m->man_bits);
  kb_reg scale = km_float(k, kb_sub(k, kb_ilike(k, bits, m->one_bits), kb_shli(k, n, m->man_bits)));
  km_two f = km_sum(k, kb_fmul(k, x.hi, scale), kb_faddi(k, scale, -1));
  if (x.lo.v) f.lo = kb_fma(k, x.lo, scale, f.lo);
  // Where 2^-n is no normal number, 1 + x is x.
  kb_reg huge = kb_fcmp(k, LLVMRealOGT, u, kb_flike(k, u, 1 / m->min_normal));
  kb_reg mantissa = km_float(k, kb_sub(k, bits, kb_shli(k, n, m->man_bits)));
  f.hi = kb_select(k, huge, kb_faddi(k, mantissa, -1), f.hi);
  f.lo = kb_select(k, huge, kb_flike(k, u, 0), f.lo);
  kb_reg fn = kb_faddi(k, km_float(k, kb_add(k, n, km_bits(k, kb_flike(k, u, m->magic)))), -m->magic);
  if (more.v) fn = kb_fadd(k, fn, more);
  kb_reg square = kb_fmul(k, f.hi, f.hi), inverse = kb_fsub(k, square, f.hi); // 1 / (1 + f) - 1
  kb_reg low = kb_fma(k, f.lo, inverse, f.lo);
  kb_reg rest = kb_fma(k, square, km_horner(k, f.hi, m->log), low);
  km_two sum = km_sum(k, kb_fmul(k, fn, kb_flike(k, u, m->ln2)), f.hi);
  kb_reg lost = kb_fma(k, fn, kb_flike(k, u, m->ln2), kb_fneg(k, kb_fmul(k, fn, kb_flike(k, u, m->ln2))));
  lost = kb_fadd(k, kb_fma(k, fn, kb_flike(k, u, m->ln2_lo), lost), sum.lo);
  return (km_two){sum.hi, kb_fadd(k, rest, lost)};
}

kb_reg km_log1p_of(kb *k, const km_consts *m, km_two x, kb_reg more) {
  kb_reg u = kb_faddi(k, x.hi, 1);
  km_two r = log1p_parts(k, m, x, more, u);
  return km_log_special(k, m, u, kb_fadd(k, r.hi, r.lo));
}

km_two km_log1p_two(kb *k, const km_consts *m, km_two x, kb_reg more) {
  kb_reg u = kb_faddi(k, x.hi, 1);
  km_two r = log1p_parts(k, m, x, more, u);
  r = km_fast_sum(k, r.hi, r.lo);
  kb_reg hi = km_log_special(k, m, u, r.hi), same = kb_fcmp(k, LLVMRealOEQ, hi, r.hi);
  return (km_two){hi, kb_select(k, same, r.lo, kb_flike(k, u, 0))};
}

static kb_reg log1p_all(kb *k, const km_consts *m, kb_reg x) {
  return kb_fcopysign(k, km_log1p_of(k, m, (km_two){x, km_none}, km_none), x);
}

// x where the condition holds, of t and of `large`, which stands for log(x) + ln 2.
static kb_reg log_or_large(kb *k, const km_consts *m, kb_reg large, kb_reg a, km_two t) {
  kb_reg zero = kb_flike(k, a, 0);
  t.hi = kb_select(k, large, kb_faddi(k, a, -1), t.hi);
  t.lo = kb_select(k, large, zero, t.lo);
  return km_log1p_of(k, m, t, kb_select(k, large, kb_flike(k, a, 1), zero));
}

// log(1 + a + a^2 / (1 + sqrt(1 + a^2))).
static kb_reg asinh_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), one = kb_flike(k, x, 1);
  km_two s = km_product(k, a, a), w = km_sum(k, one, s.hi);
  w.lo = kb_fadd(k, w.lo, s.lo);
  km_two root = km_root_of(k, m, w), d = km_fast_sum(k, root.hi, one);
  d.lo = kb_fadd(k, d.lo, root.lo);
  kb_reg inverse = kb_fdiv(k, one, d.hi), q = kb_fmul(k, s.hi, inverse), minus_q = kb_fneg(k, q);
  kb_reg rest = kb_fma(k, minus_q, d.lo, kb_fadd(k, kb_fma(k, minus_q, d.hi, s.hi), s.lo));
  km_two t = km_fast_sum(k, a, q);
  t.lo = kb_fma(k, rest, inverse, t.lo);
  kb_reg large = kb_fcmp(k, LLVMRealOGT, a, kb_flike(k, a, m->log_large));
  return kb_fcopysign(k, log_or_large(k, m, large, a, t), x);
}

// log(1 + d + sqrt(d (d + 2))) with d = x - 1, exact where it counts.
static kb_reg acosh_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg d = kb_faddi(k, x, -1);
  km_two s = km_product(k, d, d), v = km_sum(k, kb_fadd(k, d, d), s.hi);
  v.lo = kb_fadd(k, v.lo, s.lo);
  km_two root = km_root_of(k, m, v), t = km_sum(k, d, root.hi);
  t.lo = kb_fadd(k, t.lo, root.lo);
  kb_reg large = kb_fcmp(k, LLVMRealOGT, x, kb_flike(k, x, m->log_large));
  kb_reg r = log_or_large(k, m, large, x, t);
  return kb_select(k, kb_fcmp(k, LLVMRealOLT, d, kb_flike(k, d, 0)), kb_flike(k, x, (double)NAN), r);
}

// log(1 + 2 a / (1 - a)) / 2.
static kb_reg atanh_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), one = kb_flike(k, x, 1), top = kb_fadd(k, a, a);
  km_two d = km_fast_sum(k, one, kb_fneg(k, a));
  kb_reg inverse = kb_fdiv(k, one, d.hi), q = kb_fmul(k, top, inverse), minus_q = kb_fneg(k, q);
  kb_reg rest = kb_fma(k, minus_q, d.lo, kb_fma(k, minus_q, d.hi, top));
  kb_reg r = km_log1p_of(k, m, (km_two){q, kb_fmul(k, rest, inverse)}, km_none);
  return kb_fcopysign(k, kb_fmuli(k, r, 0.5), x);
}

kb_reg km_logarithm(kb *k, km_fn fn, const km_consts *m, kb_reg x) {
  switch (fn) {
  case KM_ASINH: return asinh_all(k, m, x);
  case KM_ACOSH: return acosh_all(k, m, x);
  case KM_ATANH: return atanh_all(k, m, x);
  default: return log1p_all(k, m, x);
  }
}

// Shared by the files of this folder. Sums of two numbers carry intermediate results, so that nearly all of an error is
// the last rounding.
#ifndef KL_MATH_COMPLEX_IMPL_H
#define KL_MATH_COMPLEX_IMPL_H

#include "lower/emit/math/complex/complex.h"
#include "lower/emit/math/impl.h"

static inline bool km_is_wide(const km_consts *m) {
  return m->man_bits == 52;
}
static inline int64_t km_bias(const km_consts *m) {
  return m->one_bits >> m->man_bits;
}

// --- parts --------------------------------------------------------------------------------------------------------

static inline kb_reg km_is_inf(kb *k, kb_reg a) {
  return kb_fcmp(k, LLVMRealOEQ, kb_fabs(k, a), kb_flike(k, a, __builtin_inf()));
}
static inline kb_reg km_is_finite(kb *k, kb_reg a) {
  return kb_fcmp(k, LLVMRealOLT, kb_fabs(k, a), kb_flike(k, a, __builtin_inf()));
}
static inline kb_reg km_is_nan(kb *k, kb_reg a) {
  return kb_fcmp(k, LLVMRealUNO, a, a);
}
static inline kb_reg km_is_zero(kb *k, kb_reg a) {
  return kb_fcmp(k, LLVMRealOEQ, a, kb_flike(k, a, 0));
}
static inline kb_reg km_both(kb *k, kb_reg a, kb_reg b) {
  return kb_and(k, a, b);
}
// The greater one; either if one is NaN.
static inline kb_reg km_greater(kb *k, kb_reg a, kb_reg b) {
  return kb_select(k, kb_fcmp(k, LLVMRealOLT, a, b), b, a);
}
static inline km_complex km_choose(kb *k, kb_reg c, km_complex a, km_complex b) {
  return (km_complex){kb_select(k, c, a.re, b.re), kb_select(k, c, a.im, b.im)};
}
static inline km_complex km_swap(km_complex z) {
  return (km_complex){z.im, z.re};
}

// Where a part is NaN, C leaves the sign of some results open. What would be that of the NaN, which machines do not
// agree on, is plus.
kb_reg km_unsigned_nan(kb *k, kb_reg x);

// --- sums of two --------------------------------------------------------------------------------------------------

static inline kb_reg km_rounded(kb *k, km_two a) {
  return kb_fadd(k, a.hi, a.lo);
}
static inline km_two km_one(kb *k, kb_reg a) {
  return (km_two){a, kb_flike(k, a, 0)};
}
static inline km_two km_neg_two(kb *k, km_two a) {
  return (km_two){kb_fneg(k, a.hi), kb_fneg(k, a.lo)};
}
// By a power of two.
static inline km_two km_times(kb *k, km_two a, kb_reg power) {
  return (km_two){kb_fmul(k, a.hi, power), kb_fmul(k, a.lo, power)};
}
// |sign| is ignored: a or -a, by the sign bit.
static inline km_two km_sign_two(kb *k, km_two a, kb_reg sign) {
  kb_reg negative = kb_icmp(k, LLVMIntSLT, km_bits(k, sign), kb_ilike(k, km_bits(k, sign), 0));
  return km_choose_two(k, negative, km_neg_two(k, a), a);
}
static inline km_two km_add_two(kb *k, km_two a, km_two b) {
  km_two s = km_sum(k, a.hi, b.hi);
  return km_fast_sum(k, s.hi, kb_fadd(k, s.lo, kb_fadd(k, a.lo, b.lo)));
}
static inline km_two km_mul_two(kb *k, km_two a, km_two b) {
  km_two p = km_product(k, a.hi, b.hi);
  return km_fast_sum(k, p.hi, kb_fma(k, a.hi, b.lo, kb_fma(k, a.lo, b.hi, p.lo)));
}
// The same, rounded once.
static inline kb_reg km_mul_rounded(kb *k, km_two a, km_two b) {
  return kb_fma(k, a.hi, b.hi, kb_fma(k, a.hi, b.lo, kb_fmul(k, a.lo, b.hi)));
}
// The sum of n numbers, right in all places but for what is less than the cube of their unit beside the greatest.
km_two km_total(kb *k, kb_reg *v, unsigned n);
// 1 / d.hi, with which km_quotient divides by d.
kb_reg km_inverse(kb *k, km_two d);
km_two km_quotient(kb *k, km_two n, km_two d, kb_reg inverse);

// --- powers of two ------------------------------------------------------------------------------------------------

// v 2^n, t = n + km_magic_for_halves(m).
typedef struct km_scaled {
  km_two v;
  kb_reg t;
} km_scaled;
// exp(x), beyond what a number holds: up to where even the least number times it is infinite. x.lo may be km_none.
km_scaled km_exp_scaled(kb *k, const km_consts *m, km_two x);
// e times a number of at most 1, rounded; it may be denormal, and the result a number where e is none.
kb_reg km_scaled_product(kb *k, const km_consts *m, km_scaled e, km_two s);
// The exponent field of |a|, from `least` to `most`, and 2^-e for such a field, e being less the bias.
kb_reg km_field(kb *k, const km_consts *m, kb_reg a, int64_t least, int64_t most);
kb_reg km_power_down(kb *k, const km_consts *m, kb_reg field);
// v, or where that is tiny a multiple of it, so that no product or remainder with it loses bits below the least number;
// *down makes up for it.
km_two km_raised(kb *k, const km_consts *m, km_two v, kb_reg *down);

// --- families -----------------------------------------------------------------------------------------------------

// e^(x + iy) for a real part x that is a sum of two, and an angle likewise.
km_complex km_exp_of(kb *k, const km_consts *m, km_two x, km_two y);
// log |z| as log(1 + t) / 2 + more ln 2 / 2.
typedef struct km_log_parts {
  km_two t;
  kb_reg more;
} km_log_parts;
km_log_parts km_log_size(kb *k, const km_consts *m, km_complex z);

// Of the root of a + ib, the greater part sqrt((|a + ib| + |a|) / 2), which is the real one if a is not negative; the
// other one is |b| over twice that. Nothing of it means anything for what is not finite.
typedef struct km_root {
  kb_reg up; // a power of two, other than 1 for denormal numbers: all below is of the number times it
  kb_reg root_of_up;
  km_two major;
  kb_reg down; // a power of two
  km_two size; // |a + ib| times `down`
} km_root;
km_root km_root_parts(kb *k, const km_consts *m, km_two a, kb_reg b);
// The root's parts with their signs.
void km_root_signed(kb *k, km_two a, kb_reg b, km_two *re, km_two *im);

km_complex km_complex_root(kb *k, kl_op op, const km_consts *m, km_complex z);        // sqrt, rsqrt, sign
km_complex km_complex_exponential(kb *k, kl_op op, const km_consts *m, km_complex z); // exp, expm1, exp10, logistic
km_complex km_complex_hyperbolic(kb *k, kl_op op, const km_consts *m, km_complex z);  // sinh, cosh, tanh of z
km_complex km_complex_logarithm(kb *k, kl_op op, const km_consts *m, km_complex z);   // log, log1p
km_complex km_complex_arc(kb *k, kl_op op, const km_consts *m, km_complex z);         // asin, acos, acosh of z
// How far z is from 1 or -1: 1 - |re z| = d 2^e and |im z| = |y| 2^e. e is 0, unless both are below 2^-km_pole_reach:
// then d and y are next to 1, or 0.
typedef struct km_pole_distance {
  km_two d;
  kb_reg y, e;
} km_pole_distance;
static inline int km_pole_reach(const km_consts *m) {
  return km_is_wide(m) ? 400 : 40;
}
// `left`: the distance where that is less than 1/4, if z was rounded and it is known better; or NULL.
km_complex km_complex_atanh(kb *k, const km_consts *m, km_complex z, const km_pole_distance *left);

#endif

// Shared by math*.c: constants and polynomials of one machine kind, and the small steps that the functions have in
// common.
#ifndef KL_MATH_IMPL_H
#define KL_MATH_IMPL_H

#include "lower/emit/math/math.h"

enum { KM_MOST_TERMS = 32 };
// c[0] + c[1] x + ...; the coefficients are numbers of the kind.
typedef struct km_poly {
  const double *c;
  unsigned n;
} km_poly;

// A constant as a sum of two numbers of the kind.
typedef struct km_real {
  double hi, lo;
} km_real;

typedef struct km_nudge {
  double from, to;
} km_nudge;

// F32 and F64 differ in these only; math_coeff.c states what each polynomial approximates, where and how well.
typedef struct km_consts {
  unsigned man_bits;
  int64_t one_bits, inf_bits;
  int64_t two_thirds;      // bits
  int64_t rsqrt_seed;      // 1.5 * (bias - 0.045) in units of the exponent field
  unsigned rsqrt_cubic;    // rounds of third order before the last one of second order
  int64_t reciprocal_seed; // F64: 2 bias - 1 + 0.899 in units of the exponent field
  int64_t cbrt_seed;       // 4/3 of the bias less a little, in units of the exponent field
  double min_normal;
  double magic; // 1.5 * 2^man_bits: added, it leaves the nearest integer in the low bits
  double log2e, ln2, ln2_lo;
  double ln10, ln10_lo, log2_10, log10_2, log10_2_lo;
  double half_pi[3];                    // their sum is pi / 2 to three times the kind's bits
  double two_over_pi, two_over_pi_ends; // beyond the latter an angle is reduced by integers
  double exp_low, exp_high;             // exp is 0 below and infinite above, and so are they
  double exp2_low, exp2_high;
  double expm1_low; // expm1 rounds to -1 from there down
  double exp10_low, exp10_high;
  double cosh_high;                       // and sinh; infinite from there on
  double log_large;                       // beyond its square, 1 + x^2 is x^2
  double tanh_split, tanh_one;            // tanh rounds to 1 from tanh_one on
  double erf_split, erf_middle, erf_one;  // middle: of x^2 where the first polynomial is one of x^2 - middle
  double logistic_one;                    // and so does logistic
  double logistic_small, logistic_shrink; // |x| < small is multiplied by shrink; 0: not
  km_nudge nudge[KM_FN_COUNT];            // the input `from` is replaced by `to`; from 0: none
  km_poly exp, exp2, log, tanh_small, tanh_large, erf_small, erf_large;
  km_poly expm1, sinh, cosh, sin, cos, tan, asin, atan, atanh;
} km_consts;

extern const km_consts km_f32, km_f64;
extern const km_consts km_f16; // on F32 registers, for results that are rounded to f16

static inline const km_consts *km_consts_of(kb_reg x) {
  return x.kind == KB_F64 ? &km_f64 : &km_f32;
}
static inline kb_reg km_bits(kb *k, kb_reg x) {
  return kb_bitcast(k, x, x.kind == KB_F64 ? KB_I64 : KB_I32, x.lanes);
}
static inline kb_reg km_float(kb *k, kb_reg u) {
  return kb_bitcast(k, u, u.kind == KB_I64 ? KB_F64 : KB_F32, u.lanes);
}
static inline kb_reg km_fmai(kb *k, kb_reg a, double b, double c) {
  return kb_fma(k, a, kb_flike(k, a, b), kb_flike(k, a, c));
}

// By Horner's rule, one fma a step.
kb_reg km_horner(kb *k, kb_reg x, km_poly p);
// The lesser and the greater of x and c; NaN stays.
kb_reg km_at_most(kb *k, kb_reg x, double c);
kb_reg km_at_least(kb *k, kb_reg x, double c);
// x, but n.to where x is n.from: an input so near to a tie of the narrow result that its own value would be rounded to
// the wrong side.
kb_reg km_replace(kb *k, kb_reg x, km_nudge n);

// --- sums of two, the second the rounding error of the first ------------------------------------------------------

typedef struct km_two {
  kb_reg hi, lo;
} km_two;

// a + b, exact where |a| >= |b| or a is 0.
static inline km_two km_fast_sum(kb *k, kb_reg a, kb_reg b) {
  kb_reg s = kb_fadd(k, a, b);
  return (km_two){s, kb_fsub(k, b, kb_fsub(k, s, a))};
}
// a + b, exact.
static inline km_two km_sum(kb *k, kb_reg a, kb_reg b) {
  kb_reg s = kb_fadd(k, a, b), part = kb_fsub(k, s, a);
  return (km_two){s, kb_fadd(k, kb_fsub(k, a, kb_fsub(k, s, part)), kb_fsub(k, b, part))};
}
// a * b, exact but for underflow.
static inline km_two km_product(kb *k, kb_reg a, kb_reg b) {
  kb_reg p = kb_fmul(k, a, b);
  return (km_two){p, kb_fma(k, a, b, kb_fneg(k, p))};
}

static inline km_two km_choose_two(kb *k, kb_reg c, km_two a, km_two b) {
  return (km_two){kb_select(k, c, a.hi, b.hi), kb_select(k, c, a.lo, b.lo)};
}

static const kb_reg km_none; // .v NULL: where a second part may be missing

// --- families -----------------------------------------------------------------------------------------------------

// x = n ln 2 + r with |r| <= ln 2 / 2 and *t = n + magic.
km_two km_reduce_natural(kb *k, const km_consts *m, kb_reg x, double magic, kb_reg *t);
// x = n log10(2) + r and *t = n + magic: r ln 10.
km_two km_reduce_decimal(kb *k, const km_consts *m, kb_reg x, double magic, kb_reg *t);
// exp(r) - 1 for |r| to ln 2 / 2.
km_two km_expm1_of(kb *k, const km_consts *m, km_two r);
// p * 2^n, rounded once, t = n + km_magic_for_halves(m); 2^(n + c), t = n + magic + c.
kb_reg km_scale_by_halves(kb *k, const km_consts *m, kb_reg p, kb_reg t);
double km_magic_for_halves(const km_consts *m);
kb_reg km_power_of_two(kb *k, const km_consts *m, kb_reg t);
// The results of log for zero, negative x, infinity and NaN, else r.
kb_reg km_log_special(kb *k, const km_consts *m, kb_reg x, kb_reg r);
// sqrt(x), the second part within some hundredths of itself.
km_two km_root_of(kb *k, const km_consts *m, km_two x);
// log(1 + x) + more ln 2; x.lo and `more` may be km_none. Rounded, and as a sum of two.
kb_reg km_log1p_of(kb *k, const km_consts *m, km_two x, kb_reg more);
km_two km_log1p_two(kb *k, const km_consts *m, km_two x, kb_reg more);
km_two km_atan2_two(kb *k, kb_reg y, kb_reg x);
// Of any angle; its second part may be km_none.
typedef struct km_turn {
  km_two sin, cos;
  kb_reg cos_less_one;
} km_turn;
km_turn km_sincos(kb *k, const km_consts *m, km_two x);
// |v| = mantissa * 2^exponent, mantissa in [1, 2), for finite v other than zero.
typedef struct km_split {
  kb_reg mantissa, exponent;
} km_split;
km_split km_split_of(kb *k, const km_consts *m, kb_reg v);
// r * 2^n, exact where the result is a number: n in two halves, as neither 2^n nor the result need be normal.
kb_reg km_scale(kb *k, const km_consts *m, kb_reg r, kb_reg n);
// Is the condition true in any lane?
kb_reg km_any_lane(kb *k, kb_reg c);

kb_reg km_exponential(kb *k, km_fn fn, const km_consts *m, kb_reg x);      // expm1, exp10, sinh, cosh
kb_reg km_logarithm(kb *k, km_fn fn, const km_consts *m, kb_reg x);        // log1p, asinh, acosh, atanh
kb_reg km_angle(kb *k, km_fn fn, const km_consts *m, kb_reg x, bool fast); // sin, cos, tan
kb_reg km_arc(kb *k, km_fn fn, const km_consts *m, kb_reg x);              // asin, acos, atan
// About 0.5 / sqrt(x), within 4 %: enough for what is behind the last bit of a root.
kb_reg km_half_rsqrt(kb *k, const km_consts *m, kb_reg x);
kb_reg km_cbrt(kb *k, const km_consts *m, kb_reg x);

// Function `fn` by the generic expansion with the constants of `m`.
kb_reg km_expand(kb *k, km_fn fn, const km_consts *m, kb_reg x);
// Are functions of x, an F32, those of numerics `fast`?
bool km_is_fast(const kb *k, kb_reg x);
// Function `fn` in numerics `fast`; false where that is not asked for, or has nothing of its own. What follows is for
// km_is_fast alone, but the reciprocal, which is rounded where numerics are `strict`.
bool km_fast(kb *k, km_fn fn, kb_reg x, kb_reg *out);
kb_reg km_fast_atan2(kb *k, kb_reg y, kb_reg x);
kb_reg km_fast_exp(kb *k, km_two x);   // exp(x.hi + x.lo)
kb_reg km_reciprocal(kb *k, kb_reg x); // 1 / x; `fast`: for x whose reciprocal is a normal number
// The same for bf16 and narrower formats on NVPTX scalars, by approximate instructions; false where there is none.
bool km_approx(kb *k, km_fn fn, kl_dtype t, kb_reg x, kb_reg *out);

#endif

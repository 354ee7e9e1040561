// Shared by the files of this folder: the table of expansions, and the steps that they have in common.
//
// An expansion takes its pair apart, computes in f32 on each half, rounds by packing, and does on the packed pair what
// costs half as much there: clamping, small arguments, and the one or two inputs whose result lies so near to a tie
// that the approximate instructions do not decide it. It is correctly rounded for every value that these may return
// within their documented bounds: tests/emit/half.c tries all inputs with all of them. Its constants stand in coeff.c,
// and are what tests/emit/search/half.c found with the same judge.
#ifndef KL_HALF_IMPL_H
#define KL_HALF_IMPL_H

#include "lower/emit/math/half/half.h"

typedef kb_reg (*kh_fn)(kb *k, const double *c, const kb_reg *x);
// Replaces results r of n pairs x where x is out of what kh_fn can do.
typedef void (*kh_rest)(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r);

typedef struct kh_row {
  kl_op op;
  kb_kind kind;
  int sm; // least
  kh_fn emit;
  const double *c; // constants in f32, in order of use
  unsigned n;
  kh_rest rest; // or NULL
} kh_row;

extern const kh_row kh_rows[];
extern const unsigned kh_row_count;

enum { KH_MAX_CONSTANTS = 16 };

// What kh_call emits for a row.
void kh_emit(kb *k, const kh_row *row, unsigned n, const kb_reg *const *x, kb_reg *out);

// fn on each half, in f32, and packed again.
typedef kb_reg (*kh_core)(kb *k, const double *c, kb_reg x);
kb_reg kh_each(kb *k, const double *c, kb_reg u, kh_core fn);

// Halves of a where the mask is set, of b elsewhere.
kb_reg kh_blend(kb *k, kb_reg mask, kb_reg a, kb_reg b);
// The mask of lanes where |u| < at.
kb_reg kh_below(kb *k, kb_reg u, double at);
// u between low and high; NaN stays.
kb_reg kh_clamp(kb *k, kb_reg u, double low, double high);
// r, whose last bits, those of `bits`, become `value` where u is `at`.
kb_reg kh_ending(kb *k, kb_reg r, kb_reg u, double at, int bits, int value);
// u, with the `bits` changed where it is `at`: another input with the same result.
kb_reg kh_replace(kb *k, kb_reg u, double at, int bits);

// c[0] + c[1] x + ... by Horner's rule.
kb_reg kh_horner(kb *k, kb_reg x, const double *c, unsigned n);
static inline kb_reg kh_fmai(kb *k, kb_reg a, double b, double c) {
  return kb_fma(k, a, kb_flike(k, a, b), kb_flike(k, a, c));
}
// |x| < c, or NaN: what is done for small arguments passes it on.
static inline kb_reg kh_is_below(kb *k, kb_reg x, double c) {
  return kb_fcmp(k, LLVMRealULT, kb_fabs(k, x), kb_flike(k, x, c));
}

kb_reg kh_exp_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_exp_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_tanh_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_tanh_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_logistic_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_logistic_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_erf_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_erf_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_log_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_log_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_rsqrt_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_rsqrt_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_sqrt_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_sqrt_f16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_divide_bf16(kb *k, const double *c, const kb_reg *x);
kb_reg kh_divide_f16(kb *k, const double *c, const kb_reg *x);
// One for both types each.
kb_reg kh_sin(kb *k, const double *c, const kb_reg *x);
kb_reg kh_cos(kb *k, const double *c, const kb_reg *x);
void kh_sin_far(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r);
void kh_cos_far(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r);

#endif

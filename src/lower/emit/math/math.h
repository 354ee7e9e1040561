// Elementary functions and narrow float formats, expanded into kb operations. No libdevice, no libm.
//
// The same expansion runs on every device, so results agree bit for bit wherever only exactly specified operations are
// used. Bounds are stated in math.c beside each function, returned by kl_op_ulp_bound (src/eval/eval.h) and checked by
// tests/emit/math.c: over all inputs for types of 32 bits and fewer, against MPFR on samples for F64.
#ifndef KL_MATH_H
#define KL_MATH_H

#include "lower/emit/kb.h"
#include "ir/dtype.h"

typedef enum km_fn {
  KM_EXP,
  KM_EXP2,
  KM_LOG,
  KM_TANH,
  KM_LOGISTIC,
  KM_ERF,
  KM_RSQRT,
  KM_EXPM1,
  KM_EXP10,
  KM_SINH,
  KM_COSH,
  KM_LOG1P,
  KM_ASINH,
  KM_ACOSH,
  KM_ATANH,
  KM_CBRT,
  KM_SIN,
  KM_COS,
  KM_TAN,
  KM_ASIN,
  KM_ACOS,
  KM_ATAN,
  KM_FN_COUNT
} km_fn;

// f(x) for an element type. x is the value of that type held as F64 (for KILN_F64) or F32 (for f32 and all narrower
// float types), any lanes. The result has x's kind. For KILN_F32 and KILN_F64 it is the result within the stated bound;
// for narrower types it is a value that km_round(k, r, t) takes to the correctly rounded result. On NVPTX, bf16 and
// narrower types use approximate instructions where the exhaustive test shows that no rounded result can change.
// Where k->fast, functions of KILN_F32 on NVPTX are approximate.
kb_reg km_call(kb *k, km_fn fn, kl_dtype t, kb_reg x);
// KM_EXP of what is not above 0, or NaN: the same bits for less.
kb_reg km_exp_nonpositive(kb *k, kl_dtype t, kb_reg x);
// sqrt(x) and a / b: correctly rounded, but F32 on NVPTX where k->fast. Of KILN_F32 and KILN_F64 only.
kb_reg km_sqrt(kb *k, kb_reg x);
kb_reg km_divide(kb *k, kb_reg a, kb_reg b);

// x[i] / y of n numbers of F32 on NVPTX: the bits of as many divisions, for about half as much. It ends a basic block.
typedef struct kl_within {
  bool positive; // every x is NaN, above zero, or +0
  bool moderate; // every x is NaN or at most 2^96 by magnitude
} kl_within;
void km_divide_by(kb *k, const kb_reg *x, unsigned n, kb_reg y, kl_within known, kb_reg *out);

// The angle of the point (x, y), in (-pi, pi], with C's values for zeros and infinities. F32 or F64.
kb_reg km_atan2(kb *k, kb_reg y, kb_reg x);
// x to the power of y, with C's values for zeros, ones, infinities, NaN and negative x. F32 or F64.
kb_reg km_power(kb *k, kb_reg x, kb_reg y);
// The same in F64 for values of a narrow type of so many bits of mantissa: km_narrow_odd and km_round of it are the
// correctly rounded power.
kb_reg km_power_narrow(kb *k, kb_reg x, kb_reg y, unsigned man_bits);
// sqrt(re^2 + im^2) without undue overflow or underflow; inf if either part is infinite. F32 or F64.
kb_reg km_hypot(kb *k, kb_reg re, kb_reg im);
// x rem y with the sign of x, exact (C's fmod), F32 or F64. Emits a loop, which on vectors runs until every
// lane is done.
// Returns false if it is not provided for this kind (then the plan refuses).
bool km_fmod(kb *k, kb_reg x, kb_reg y, kb_reg *out);

// --- narrow floats: every float type of fewer than 32 bits, held as F32 ----------------------------------------------

// F32 to the nearest value of `t` (ties to even, the format's overflow, NaN and negative-zero rules, as
// kl_float_encode), as F32. The result is exactly representable in t. Integer and exact float operations only.
kb_reg km_round(kb *k, kb_reg x, kl_dtype t);
// The same, cheaper, for the result x of F32 arithmetic or km_call on values of narrow types.
kb_reg km_round_computed(kb *k, kb_reg x, kl_dtype t);
// Bits of an F32 value that is representable in `t` (NaN: the format's quiet NaN), in the low bits of an I32.
kb_reg km_encode(kb *k, kb_reg x, kl_dtype t);
// The value of the bits in the low part of an I32 (the other bits are ignored), as F32.
kb_reg km_decode(kb *k, kb_reg bits, kl_dtype t);
// F64 to F32 rounded to odd: km_round of the result is F64 rounded once to the narrow type.
kb_reg km_narrow_odd(kb *k, kb_reg x);

#endif

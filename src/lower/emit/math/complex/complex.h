// Functions of complex numbers, whose parts are F32 or F64. Each part is within the bounds of kl_op_ulp_bound
// (src/eval/eval.h says in which units), and zeros, infinities and NaN give what C's Annex G asks for. Nothing but
// exactly specified operations, so results are the same bits on every machine.
#ifndef KL_MATH_COMPLEX_H
#define KL_MATH_COMPLEX_H

#include "ir/hlo.h"
#include "lower/emit/kb.h"

typedef struct km_complex {
  kb_reg re, im;
} km_complex;

// One-operand functions of the op table that have complex numbers as results; others give z.
km_complex km_complex_call(kb *k, kl_op op, km_complex z);
km_complex km_complex_divide(kb *k, km_complex x, km_complex y);
km_complex km_complex_power(kb *k, km_complex x, km_complex y);
km_complex km_complex_atan2(kb *k, km_complex y, km_complex x);

#endif

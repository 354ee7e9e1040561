// Private to src/lower/choose/staged: real and complex numbers as values, part by part. Each op below is rounded once
// to the part type; products that are added are not rounded themselves.
#ifndef KL_NUMBERS_H
#define KL_NUMBERS_H

#include "lower/choose/staged/staged.h"

// im: KL_NONE where numbers are real.
typedef struct kl_number {
  uint32_t re, im;
} kl_number;

// What numbers of a type are computed in: f64 for f64 and c128, else f32.
kl_dtype kl_number_part(kl_dtype t);
// The same as whole elements: f32, f64, c64 or c128.
kl_dtype kl_number_whole(kl_dtype t);

kl_number kl_number_const(kl_stage_body *b, kl_dtype whole, double re, double im);
// Of a value of any float or complex type; and a value of the type t.
kl_number kl_number_of(kl_stage_body *b, uint32_t value);
uint32_t kl_number_value(kl_stage_body *b, kl_number x, kl_dtype t);

kl_number kl_number_conj(kl_stage_body *b, kl_number x);
kl_number kl_number_add(kl_stage_body *b, kl_number x, kl_number y);
kl_number kl_number_sub(kl_stage_body *b, kl_number x, kl_number y);
kl_number kl_number_mul(kl_stage_body *b, kl_number x, kl_number y);
kl_number kl_number_div(kl_stage_body *b, kl_number x, kl_number y); // correctly rounded
// z - x * y: of each part first the product of real parts, or of the real one with the imaginary one.
kl_number kl_number_less(kl_stage_body *b, kl_number z, kl_number x, kl_number y);
// By a real number.
kl_number kl_number_scale(kl_stage_body *b, kl_number x, uint32_t by);
kl_number kl_number_choose(kl_stage_body *b, uint32_t guard, kl_number yes, kl_number no);

// An element of a slot of whole elements, in a row.
kl_number kl_number_load(kl_stage_body *b, uint32_t slot, const kl_aff *at, uint32_t keep);
kiln_status kl_number_store(kl_stage_body *b, uint32_t slot, const kl_aff *at, kl_number x, uint32_t keep);

#endif

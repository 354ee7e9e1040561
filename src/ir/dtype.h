// Element types: one table, exact conversions, scalar text.
//
// A scalar travels as its bit pattern in the low bits of a uint64_t (pred 0 or 1, integers zero-extended from their
// width, floats as encoded). Complex scalars are two such patterns of the component type.
#ifndef KL_DTYPE_H
#define KL_DTYPE_H

#include "base/base.h"
#include <kiln/ir.h>

typedef kiln_dtype kl_dtype;

typedef enum kl_class {
  KL_CLASS_OTHER,
  KL_CLASS_PRED,
  KL_CLASS_SINT,
  KL_CLASS_UINT,
  KL_CLASS_FLOAT,
  KL_CLASS_COMPLEX
} kl_class;

// What a float format does at its top end.
typedef enum kl_float_kind {
  KL_IEEE, // infinities, many NaNs (f16, f8e5m2, f8e4m3, f8e3m4 ...)
  KL_FN,   // no infinity; NaN is all ones in exponent and mantissa (f8e4m3fn); overflow rounds to NaN
  KL_FN0,  // no infinity and no NaN at all (f4e2m1fn); overflow and NaN go as dtype.c says
  KL_FNUZ, // no infinity, no negative zero; NaN is the sign bit alone (…fnuz); overflow rounds to NaN
  KL_E8M0, // unsigned power of two, no zero; 0xff is NaN
} kl_float_kind;

typedef struct kl_dtype_info {
  const char *name;
  kl_class cls;
  uint8_t bits;  // in memory
  uint8_t bytes; // of one element held unpacked: 1 for sub-byte types
  kl_float_kind kind;
  uint8_t exp_bits, man_bits; // floats; man_bits without the hidden bit
  int16_t bias;
  kl_dtype part; // component of a complex type, else KILN_DTYPE_NONE
} kl_dtype_info;

extern const kl_dtype_info kl_dtypes[KILN_DTYPE_COUNT];

static inline const kl_dtype_info *kl_info(kl_dtype t) {
  return &kl_dtypes[t];
}
static inline bool kl_is_float(kl_dtype t) {
  return kl_dtypes[t].cls == KL_CLASS_FLOAT;
}
static inline bool kl_is_complex(kl_dtype t) {
  return kl_dtypes[t].cls == KL_CLASS_COMPLEX;
}
static inline bool kl_is_int(kl_dtype t) {
  return kl_dtypes[t].cls == KL_CLASS_SINT || kl_dtypes[t].cls == KL_CLASS_UINT;
}
static inline bool kl_is_signed(kl_dtype t) {
  return kl_dtypes[t].cls == KL_CLASS_SINT;
}
static inline bool kl_is_array_dtype(kl_dtype t) {
  return kl_dtypes[t].cls != KL_CLASS_OTHER;
}
bool kl_dtype_from_str(kl_str name, kl_dtype *out);

// Value of a float scalar of at most 64 bits, exact (every format fits a double).
double kl_float_decode(kl_dtype t, uint64_t bits);
// Nearest value of `t`, ties to even, one rounding; overflow, NaN and negative values as the format demands (following
// ml_dtypes: f4e2m1fn saturates and takes NaN to its negative zero; fn and fnuz overflow to NaN; e8m0 takes zero and
// negatives to NaN).
uint64_t kl_float_encode(kl_dtype t, double v);
bool kl_float_is_nan(kl_dtype t, uint64_t bits);
// The next pattern up or down in value; saturates at the infinities or the largest finite values. NaN stays.
uint64_t kl_float_next(kl_dtype t, uint64_t bits, bool up);
int64_t kl_int_decode(kl_dtype t, uint64_t bits); // sign- or zero-extended; u64 as its two's complement pattern
static inline uint64_t kl_int_mask(kl_dtype t) {
  return kl_dtypes[t].bits >= 64 ? ~0ull : (1ull << kl_dtypes[t].bits) - 1;
}

// HLO convert of one non-complex scalar: float to int truncates and saturates, NaN to 0; to pred is != 0; int to a
// float of 16 bits or fewer goes through f32 (as XLA does), float to float rounds once; ints wrap.
uint64_t kl_convert(kl_dtype from, kl_dtype to, uint64_t bits);

// One element in an array held unpacked (kl_info(t)->bytes each); complex: `part` 0 real, 1 imaginary.
uint64_t kl_element_get(kl_dtype t, const void *data, int64_t index, int part);
void kl_element_set(kl_dtype t, void *data, int64_t index, int part, uint64_t bits);

// Literal text of one scalar: "true", "-3", "0.5", "1e-05", "inf", "nan", "-nan(0x1)" for payloads other than the
// quiet default, "(1, -2)" for complex. Every value round-trips bit for bit. NUL-terminates; returns the length.
size_t kl_scalar_text(char buf[96], kl_dtype t, const uint64_t bits[2]);
// Parses what kl_scalar_text prints, and also what XLA accepts: "nan", "nan(0x7f)", hex floats, decimals rounded once
// to the type, "true/false" and integers (true where not 0) for pred, integers from -2^63 on for u64 (-1 is its largest
// value), integers for float types. On failure *why gets a static reason such as
// "out of range for s8 (-128 to 127)". Floats out of range become inf or the format's overflow value only where the
// text is itself infinite; finite text beyond the range is refused.
bool kl_scalar_parse(kl_str s, kl_dtype t, uint64_t bits[2], const char **why);

#endif

// The elementary functions whose errors are measured, with references that are not the library's: of real numbers libm
// in double and long double where that decides, and MPFR where it does not; of complex ones MPFR (emit/complex_ref.h).
#ifndef TESTS_NUMERICS_FUNCTIONS_H
#define TESTS_NUMERICS_FUNCTIONS_H

#include "ir/hlo.h"
#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Loops over numbers, for vectors of four: the library's host kernels ask for as much.
#if defined(__GNUC__) && defined(__x86_64__)
#define FOR_AVX2 __attribute__((target("avx2,fma")))
#else
#define FOR_AVX2
#endif

// Element types, and f32 once more under numerics `fast`.
typedef enum nu_type { NU_F64, NU_F32, NU_F16, NU_BF16, NU_F32_FAST, NU_C64, NU_C128, NU_TYPES } nu_type;

typedef struct nu_type_info {
  const char *name, *dtype;   // in rows and tables; in HLO
  unsigned bits, significand; // of all; of the significand, the hidden one included
  int least;                  // exponent of the least positive value: 2^least
  double largest;
  nu_type part; // of complex numbers; what follows bits is the part's
} nu_type_info;
extern const nu_type_info nu_types[NU_TYPES];

static inline bool nu_is_complex(nu_type t) {
  return t == NU_C64 || t == NU_C128;
}

// Of a real type: im is 0.
typedef struct nu_number {
  double re, im;
} nu_number;

typedef struct nu_function {
  const char *op; // HLO's opcode
  int operands;   // 1 or 2
  // Of real numbers; NULL where only complex ones are measured.
  // r[i] = f(x[i], y[i]), n times; y is not read where there is one operand. Within 4 units of double.
  void (*values)(const double *x, const double *y, double *r, size_t n);
  long double (*wide)(long double x, long double y); // within 2 units of long double
  void (*exact)(mpfr_t r, mpfr_t x, mpfr_t y);       // to nearly the precision of r
  double from, to;                                   // where samples of f64 are dense; of the first operand
  double cuda_f32, cuda_f64;                         // bounds that CUDA documents for its own, in units; negative: none
  kl_op complex;                                     // or KL_OP_UNKNOWN: only real ones are measured
  bool normwise;                                     // kl_op_bound_is_normwise
} nu_function;
extern const nu_function nu_functions[];
extern const size_t nu_function_count;
const nu_function *nu_function_of(const char *op); // or NULL

static inline bool nu_takes(const nu_function *f, nu_type t) {
  return nu_is_complex(t) ? f->complex != KL_OP_UNKNOWN : f->values != NULL;
}

// The size of a complex number is a real one.
static inline nu_type nu_result_type(const nu_function *f, nu_type t) {
  return f->complex == KL_OP_ABS ? nu_types[t].part : t;
}

// The value of a pattern, exact, and the nearest pattern of a value (ties to even, beyond the largest: infinity). Of
// real types, as what follows but the last.
double nu_decode(nu_type t, uint64_t bits);
uint64_t nu_encode(nu_type t, double value);

// Arguments of a function: all there are, where they have 32 bits together, in the order of their values, negative ones
// first, NaN last, the second operand's within the first's; or samples, of all sizes, denser where the function has
// something to do. The same index gives the same arguments. Of samples 2k and 2k + 1 with one operand every fourth pair
// are neighbours: nu_neighbours says which.
uint64_t nu_all_count(const nu_function *f, nu_type t); // 0: there are more, or they are complex
void nu_all(const nu_function *f, nu_type t, uint64_t index, uint64_t *x, uint64_t *y);
void nu_sample(const nu_function *f, nu_type t, uint64_t index, uint64_t *x, uint64_t *y);
bool nu_neighbours(uint64_t index);
// Samples of complex numbers, likewise. False: a branch cut may lie there, and the signs of zeros count.
bool nu_sample_complex(const nu_function *f, nu_type t, uint64_t index, nu_number *x, nu_number *y);

#endif

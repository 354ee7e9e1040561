// Errors of a compiled function against its reference. Of complex numbers the error is the greater of the parts'
// errors, or that of both together where their bound is one for both (eval.h has its units).
#ifndef TESTS_NUMERICS_MEASURE_H
#define TESTS_NUMERICS_MEASURE_H

#include "kernel.h"

typedef struct nu_errors {
  uint64_t inputs;       // that were looked at
  uint64_t wrong;        // NaN, infinity, zero or sign where another one belongs: none are right
  nu_number wrong_at[2]; // the first
  double worst;          // error, in units of the last place of the exact result
  nu_number worst_at[2]; // first arguments that have it
  uint64_t off;          // results that are not the nearest value, of complex ones with a part that is not
  uint64_t inversions;   // neighbours whose results lie the other way around than they should
  double inversion_at;   // the first of the first two
} nu_errors;

// Over arguments first, ..., first + count - 1 of those that functions.h makes: of all patterns where `all`, else of
// samples. On the host on `threads` threads; the same for any number of them. False, with a finding, if a run fails.
bool nu_measure(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t, bool all, uint64_t first,
                uint64_t count, unsigned threads, nu_errors *out);
// Of one pair of arguments and a result, exactly; INFINITY where another kind of number belongs.
double nu_error(const nu_function *f, nu_type t, nu_number x, nu_number y, nu_number got);
// -log2 of the distance, in units, between the exact result and the closest number or middle between two. Of real
// types.
double nu_hardness(const nu_function *f, nu_type t, nu_number x, nu_number y);
// A number that stands for the bits of many results; every NaN counts as the same. 0, with a finding, if a run fails.
uint64_t nu_fingerprint(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t);

// What measures complex numbers (complex.c), on the calling thread: as nu_measure, nu_error and nu_fingerprint.
// Both fingerprints go through nu_hashed (FNV-1a), from the seed on, result by result.
bool nu_complex_measure(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t, uint64_t first, uint64_t count,
                        nu_errors *out);
double nu_complex_error(const nu_function *f, nu_type t, nu_number x, nu_number y, nu_number got);
// Of n numbers, with so few bits that where something cancels errors may be anything; much faster.
void nu_complex_rough_errors(const nu_function *f, nu_type t, size_t n, const nu_number *x, const nu_number *y,
                             const nu_number *got, double *errors);
uint64_t nu_complex_fingerprint(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t);
static const uint64_t nu_hash_seed = 14695981039346656037u;
uint64_t nu_hashed(uint64_t hash, nu_type t, double value);

#endif

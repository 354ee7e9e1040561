// Spectra of Hermitian matrices in long double, and what an error in a matrix makes of them. Of eigh.c and svd.c.
#ifndef KL_EVAL_SPECTRUM_H
#define KL_EVAL_SPECTRUM_H

#include "eval/special/num.h"

// Of matrices of order n: the matrix and its vectors, n * n each, 3 n numbers, n values, n places.
typedef struct kl_ev_spectra {
  num *a, *z, *line;
  long double *w;
  int64_t *order;
} kl_ev_spectra;

// Works on `batches` matrices of order n, each in the memory of its worker: `one` is called for each number.
kiln_status kl_ev_run_spectra(kl_ev *ev, int64_t batches, int64_t n, const void *job,
                              void (*one)(const void *job, int64_t which, kl_ev_spectra *r));

// Eigenvalues w, ascending, of the Hermitian matrix a, which goes, and vectors: row k of z is that of w[k], of
// length 1. By reflections to a tridiagonal matrix, and QL steps with shifts from there. False: they have not ended.
bool kl_ev_spectrum(int64_t n, kl_ev_spectra *r);

// Of this unit of the type, how far a device may be off: gamma(4 (n + 8)).
double kl_ev_spectral_gamma(double unit, int64_t n);
// An error in the matrix that stands for those of a device, for what is read of the operand, and for those of the steps
// here: `size` is the norm of what is given, `slack` that of how far it may lie elsewhere, both Frobenius's.
double kl_ev_spectral_error(double gamma, double least, int64_t n, double size, double slack);

// Of vectors of length 1 that belong to an eigenvalue with this distance to all others, how far those of a matrix lie
// that is off by no more than `error` in the Frobenius norm, each turned as near as it goes; infinite where another
// eigenvalue may be theirs.
double kl_ev_vector_radius(double error, double gap);

// The first element of v, `stride` apart, that has 5/8 of the magnitude of the largest; -1 where any vector within
// `radius` might have another.
int64_t kl_ev_leading(int64_t n, const num *v, int64_t stride, double radius);
// The number of magnitude 1 that makes it real and positive.
num kl_ev_phase(num leading);
// How far a vector within `radius` of one may lie when both are turned so: by a sign, or a number that this tells.
double kl_ev_turned_radius(double radius, num leading, bool is_complex);

#endif

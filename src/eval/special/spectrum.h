// Spectra of Hermitian matrices in long double, and what an error in a matrix makes of them. Of eigh.c and svd.c.
#ifndef KL_EVAL_SPECTRUM_H
#define KL_EVAL_SPECTRUM_H

#include "eval/special/num.h"

// Eigenvalues w, ascending, of a [n, n], which goes, and vectors: row k of z is that of w[k], of length 1. Errors are
// those of 2^6 n units of 2^-64 of the greatest eigenvalue. `line`: room for 3 n numbers, `order` for n. By reflections
// to a tridiagonal matrix, and QL steps with shifts from there. False: they have not ended.
bool kl_ev_spectrum(int64_t n, num *a, num *z, long double *w, num *line, int64_t *order);

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

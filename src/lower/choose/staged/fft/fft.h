// Private to src/lower/choose/staged/fft: Fourier transforms.
//
// A line of n elements is transformed in passes, one for each radix: pass by pass, m transforms' worth of its elements
// is done (1 before the first pass, n behind the last). Element (k, q) of what passes leave, k < m, lies at place
// k * (n / m) + q and is output k of the transform of every (n / m)-th element from q on. A pass of radix r takes
// elements (k, q + j * n / (m r)), j < r, each times exp(-2 pi i j k / (m r)), and leaves their transform as elements
// (k + m s, q). So input and output lie in order. A launch does some passes: what they need of each other are
// `reach` elements, a sub-line, which lie in shared memory between.
//
// An inverse transform is the transform of numbers with real and imaginary parts in each other's place.
#ifndef KL_FFT_H
#define KL_FFT_H

#include "lower/choose/staged/numbers.h"

enum { KL_MOST_RADIX = 13, KL_MOST_PASSES = 64, KL_MOST_GROUPS = 16 };

// radix.c
// The passes of n, by launch: passes of one are one behind the other. `rest`: the product of what prime factors are too
// large for a pass.
typedef struct kl_passes {
  int64_t rest;
  uint32_t ngroups;
  uint32_t first[KL_MOST_GROUPS + 1]; // pass of each group; their number at last
  uint32_t radix[KL_MOST_PASSES];
} kl_passes;
// most: of a launch's `reach`; fair: of those of several launches.
void kl_find_passes(int64_t n, int64_t most, int64_t fair, kl_passes *out);
// The transform of r numbers.
void kl_small_transform(kl_stage_body *b, kl_dtype whole, uint32_t r, const kl_number *x, kl_number *y);

// roots.c: exp(-2 pi i k step / n), k < count, k step < n, rounded once, as elements of a complex type.
void kl_roots(kl_dtype whole, int64_t n, int64_t step, int64_t count, void *out);
// exp(-pi i k^2 / n), k < n, of a convolution in place of a transform of n; and the transform of its conjugate, made
// periodic over `size` numbers, a power of two from 2 n - 1 on, divided by `size`. False without memory.
void kl_chirp(kl_dtype whole, int64_t n, void *out);
bool kl_chirp_filter(kl_ctx *cx, kl_dtype whole, int64_t n, int64_t size, void *out);

// exp(-2 pi i e / n) as constants: low[e]; or where there is `high` high[e / step] * low[e % step]. Slots.
typedef struct kl_table {
  kl_dtype whole;
  int64_t n, step;
  uint32_t low, high;
} kl_table;
// launch.c: the root of a table.
kl_number kl_table_root(kl_stage_body *b, const kl_table *t, const kl_aff *e, uint32_t keep);

// chirp.c: a launch that leaves exp(-pi i k^2 / n), k < n, in one slot, and their conjugates, made periodic over `size`
// numbers, in another one. The table is of 2 n roots.
enum { KL_MOST_CHIRP = INT32_MAX }; // of n
kiln_status kl_write_chirp(const kl_stage *s, const kl_table *roots, int64_t n, int64_t size, uint32_t chirp,
                           uint32_t periodic);

// One end of a line's transform: where its elements come from, or go to. Element i of a line there, `inner` of which
// lie beside each other.
typedef enum kl_end_kind { KL_END_OPERAND, KL_END_ARRAY, KL_END_RESULT } kl_end_kind;
typedef struct kl_end {
  kl_end_kind kind;
  uint32_t slot; // ARRAY: scratch memory
  uint32_t dim;  // OPERAND, RESULT: along which lines go
  int64_t n, inner;
  bool swaps;     // real and imaginary parts
  bool half;      // only elements up to n / 2 are there: the others are their conjugates
  int64_t count;  // of the job's elements so many are there, what follows is zero, or does not matter; 0: all
  uint32_t by;    // the job's elements are multiplied by those of this slot; KL_NONE: no
  int64_t divide; // of where they go: by which they are divided; 0: by nothing
} kl_end;

// Lines of `n`, `inner` beside each other and `outer` such groups behind each other, from one end to the other.
typedef struct kl_job {
  const kl_stage *s;
  kl_dtype whole;
  const kl_shape *operand, *result; // in row-major order
  int64_t outer, n, inner;
  int64_t before; // outputs that are done: product of earlier passes
  bool inverse;
  kl_end from, to;
  const kl_table *table;
} kl_job;
// launch.c: one launch of these passes, one behind the other.
kiln_status kl_write_passes(const kl_job *job, uint32_t n, const uint32_t *radix);

#endif

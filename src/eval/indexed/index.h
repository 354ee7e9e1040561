// Windows at places that data gives: what dynamic slices, gather and scatter share.
#ifndef KL_EVAL_INDEX_H
#define KL_EVAL_INDEX_H

#include "eval/impl.h"

// The integer in element i, held to int64's range; *open is set where it is not known exactly.
int64_t kl_ev_index(const kl_evval *v, int64_t i, bool *open);

// Windows of one size in an operand, one for each index vector, and where their elements lie in the array that goes
// with them: gather's result, scatter's updates. Strides and offsets count elements, row-major.
typedef struct kl_ev_windows {
  const kl_evval *indices;
  int64_t n;                                                  // windows
  uint32_t rank;                                              // of the index vectors' own dimensions
  int64_t extent[KILN_MAX_RANK], index_stride[KILN_MAX_RANK]; // in `indices`
  int64_t array_stride[KILN_MAX_RANK];
  int64_t operand_stride[KILN_MAX_RANK]; // along batching dimensions; else 0
  uint32_t nstarts;                      // components of an index vector
  int64_t component_stride;
  int64_t start_stride[KILN_MAX_RANK], start_limit[KILN_MAX_RANK]; // in the operand: one step; the greatest start
  kl_ev_walk window;                                               // from the operand (src) to the array (dst)
  int64_t window_count;                                            // elements of a window
} kl_ev_windows;

// By the attributes of a gather or scatter. False: a window does not fit into the operand.
bool kl_ev_windows_init(kl_ev_windows *w, const kl_instr *in, const kl_shape *operand, const kl_evval *indices,
                        const kl_shape *array);

typedef struct kl_ev_cursor {
  int64_t at[KILN_MAX_RANK];
  int64_t index, array, operand;
} kl_ev_cursor;
void kl_ev_cursor_set(const kl_ev_windows *w, kl_ev_cursor *c, int64_t window);
void kl_ev_cursor_next(const kl_ev_windows *w, kl_ev_cursor *c);
// Where the cursor's window begins in the operand, its start clamped; *inside: it lay in bounds as it was.
int64_t kl_ev_cursor_start(const kl_ev_windows *w, const kl_ev_cursor *c, bool *inside, bool *open);

// dst[i] = src[at[i]], and dst[at[i]] = src[i], for elements of `size` bytes.
void kl_ev_pick(size_t size, int64_t n, const int64_t *at, const void *src, void *dst);
void kl_ev_put(size_t size, int64_t n, const int64_t *at, const void *src, void *dst);

#endif

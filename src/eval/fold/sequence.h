// The values of windows and scans by the order that the graph gives them (docs/numerics.md): sums and products of
// floats, which are other numbers in another order.
#ifndef KL_EVAL_SEQUENCE_H
#define KL_EVAL_SEQUENCE_H

#include "eval/impl.h"

// A reducer whose root adds or multiplies its two parameters, in either order.
typedef struct kl_sequence {
  kl_ew op;
  kl_dtype t, wide; // of elements; what they are joined in: f32 where t is of 16 bits or fewer
} kl_sequence;
// False: the reducer is another.
bool kl_sequence_of(const kl_comp *reducer, kl_sequence *s);

enum { KL_SEQUENCE_BYTES = 16 }; // of a value in the wide type
void kl_sequence_load(const kl_sequence *s, const void *elements, int64_t i, void *to);
void kl_sequence_store(const kl_sequence *s, const void *from, void *elements, int64_t i);
// to = a, b joined; it may be either of them.
void kl_sequence_join(const kl_sequence *s, const void *a, const void *b, void *to);

// A scan of `length` elements that lie `stride` apart in memory, `in` first: each out[i * stride] is what init and the
// elements up to it make, blocks of 16 by 16 of these joined first. last: also that of the last element; NULL: not
// wanted. Without elements it is init.
typedef struct kl_sequence_line {
  const void *in;
  void *out, *last;
  int64_t length, in_stride, out_stride; // in elements, may be negative; in_stride 0: one for all
} kl_sequence_line;
void kl_sequence_scan(const kl_sequence *s, const kl_sequence_line *l, const void *init);

// cumulative.c: a reduce-window over all elements up to a place in dimension `dim`, or `reverse` from it on, by a
// reducer of any ops. out[k]: zeroed before; what is there on failure is for the caller to free.
kiln_status kl_cumulate(kl_ev *ev, const kl_instr *in, const kl_ev_program *p, uint32_t dim, bool reverse,
                        const kl_evval *const *operands, kl_evval *out);

#endif

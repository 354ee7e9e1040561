// A program as a reducer, run from left to right in many lanes at once: each lane has accumulators, one per component.
#ifndef KL_EVAL_LANES_H
#define KL_EVAL_LANES_H

#include "eval/impl.h"

// Of one worker.
typedef struct kl_ev_lanes {
  const kl_ev_program *program;
  kl_ev_regs *regs;
  uint32_t n; // components
  const kl_shape **shape;
  bool intervals;
  kl_iv_in *param;       // 2 n: accumulators, then operands
  kl_iv_out *acc, *next; // n each; lo NULL without intervals
  const void **in;       // data planes of param
  void **out;            // of next
  char *memory;
  size_t size;
} kl_ev_lanes;

// Do values of the program have intervals, given those of its operands?
bool kl_lanes_want_intervals(const kl_ev *ev, const kl_ev_program *p, size_t n, const kl_evval *const *operands);
// For `workers`, with up to min(lanes, KL_EV_CHUNK) lanes each. shape[k]: of component k, for its type.
kiln_status kl_lanes_new(kl_ev *ev, const kl_ev_program *p, uint32_t n, const kl_evval *const *shape, bool intervals,
                         uint32_t workers, int64_t lanes, kl_ev_lanes **out);
void kl_lanes_free(kl_ev *ev, kl_ev_lanes *l, uint32_t workers);
// The accumulators of component k in lanes [0, lanes) become the one element at `init`.
void kl_lanes_fill(kl_ev_lanes *w, uint32_t k, int64_t lanes, const kl_iv_in *init);
// Component k of the operand of the next combination.
void kl_lanes_point(kl_ev_lanes *w, uint32_t k, kl_iv_in operand);
// acc = program(acc, operand), in lanes where `where` is not 0 (NULL: in all).
kiln_status kl_lanes_combine(kl_ev_lanes *w, int64_t lanes, const uint8_t *where);
// Accumulators as results.
void kl_lanes_take(const kl_ev_lanes *w, uint32_t k, int64_t lanes, const kl_iv_out *out);
// Elements of one type: to[at + i] = from[i], i < n; a plane that `to` has and `from` lacks follows from data.
void kl_iv_copy(kl_dtype t, const kl_iv_in *from, const kl_iv_out *to, int64_t at, int64_t n);
// to[i] = the one element at `from`, i < n; `from` has all planes that `to` has, but for `any`.
void kl_iv_fill(kl_dtype t, const kl_iv_in *from, const kl_iv_out *to, int64_t n);
// The same n elements; planes that say nothing are said to be data (`any`: NULL), which spares the intervals. Without
// lo they are data alone.
kl_iv_in kl_iv_settled(kl_dtype t, const kl_iv_in *v, int64_t n);

#endif

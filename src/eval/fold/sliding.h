// Windows that slide over an array: which elements each of them sees, dimension by dimension. Places of a window in
// padding, or in the holes of a dilated array, see nothing.
#ifndef KL_EVAL_SLIDING_H
#define KL_EVAL_SLIDING_H

#include "eval/lanes.h"
#include "eval/fold/sum.h"

// What the windows at one index see of a dimension: elements first, first + step ... of the axis; the first of them by
// tap `tap` of the window, the others `tap_step` taps apart.
typedef struct kl_sight {
  int64_t first, count, tap;
} kl_sight;

typedef struct kl_axis {
  int64_t step, tap_step;
  int64_t period; // windows so many indices apart see elements of one progression, later ones no earlier elements
  int64_t most;   // elements that one window sees, at most
  int64_t size;   // taps of a window
  int64_t stride; // of the operand
  int64_t extent, windows;
  kl_sight *sight; // by index of the result
} kl_axis;

typedef struct kl_sliding {
  uint32_t rank;
  const kl_shape *operand, *result; // the result's elements are windows
  kl_axis *axis;
  kl_sight *sights;
  size_t sight_bytes;
  int64_t taps; // of one window
} kl_sliding;

kiln_status kl_sliding_new(kl_ev *ev, const kl_instr *in, const kl_shape *operand, const kl_shape *result,
                           kl_sliding *s);
void kl_sliding_free(kl_ev *ev, kl_sliding *s);

// Where the windows from `first` on begin: n times rank indices.
void kl_sliding_places(const kl_sliding *s, int64_t first, int64_t n, int64_t *place);
void kl_sliding_next_tap(const kl_sliding *s, int64_t *tap);

// The element that a tap of the window at `place` sees; -1 for none.
static inline int64_t kl_sliding_element(const kl_sliding *s, const int64_t *place, const int64_t *tap) {
  int64_t at = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_axis *a = &s->axis[d];
    const kl_sight *v = &a->sight[place[d]];
    int64_t k = tap[d] - v->tap;
    if (k < 0) return -1;
    if (a->tap_step > 1) {
      if (k % a->tap_step) return -1;
      k /= a->tap_step;
    }
    if (k >= v->count) return -1;
    at += (v->first + k * a->step) * a->stride;
  }
  return at;
}

// The elements of one window in row-major order, a piece at a time.
typedef struct kl_sliding_walk {
  const kl_sliding *s;
  const int64_t *place;
  int64_t index[KILN_MAX_RANK]; // of the next element, among those that the window sees
  int64_t rows;                 // that are left
} kl_sliding_walk;
void kl_sliding_walk_start(kl_sliding_walk *w, const kl_sliding *s, const int64_t *place);
// At most `room` elements; 0 at the end.
int64_t kl_sliding_walk_next(kl_sliding_walk *w, int64_t room, int64_t *at);

// Elements of a value, gathered; at[i] < 0 gives any.
typedef struct kl_picked {
  int64_t at[KL_EV_CHUNK];
  _Alignas(16) char plane[3][16 * KL_EV_CHUNK];
  uint8_t any[KL_EV_CHUNK];
} kl_picked;
// The planes that are in use for elements of `v`; kl_pick fills them.
kl_iv_in kl_picked_planes(const kl_picked *p, const kl_evval *v, bool intervals);
kl_iv_in kl_pick(kl_picked *p, const kl_evval *v, int64_t n, bool intervals);

// --- folds by sliding ---------------------------------------------------------------------------------------------

// Folds every window by a combiner, with work that does not grow with the window (slide.c). Where kl_slides is false -
// windows so small, or so far apart - folding one by one is faster, or this would want too much memory.
bool kl_slides(kl_ev *ev, const kl_sliding *s);
// Writes element i, a fold of the initial value and of all that a window sees.
static inline void kl_window_store(const kl_fold *f, int64_t stands, const kl_iv_out *out, int64_t i) {
  if (f->n - 1 > stands)
    kl_fold_store(f, out, i);
  else if (out->lo)
    kl_fold_bound(f, out, i);
}
// The data of windows that see at most `stands` elements, -1: of none, stands; of these the ends are wanted.
kiln_status kl_slide(kl_ev *ev, const kl_sliding *s, kl_op op, bool intervals, int64_t stands, const kl_evval *operand,
                     const kl_evval *init, kl_evval *out);

// --- selections by sliding ----------------------------------------------------------------------------------------

// What computation `comp` selects in every window of the operand: target[i] is an element, or -1 where the window sees
// none (best.c). Intervals of the operand do not count. False, with nothing done, where `comp` is not an order, or
// asking it one by one is faster, or this would want too much memory.
bool kl_selects_best(kl_ev *ev, const kl_sliding *s, uint32_t comp, const kl_evval *operand, int64_t *target,
                     kiln_status *status);

#endif

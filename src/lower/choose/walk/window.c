// Windows that slide over an array: what each of their taps sees, and small ones folded tap by tap.
//
// A window's elements are joined in the order of its taps, beginning with init; what lies in padding, or between the
// elements of a dilated array, is left out (docs/numerics.md).

#include "lower/choose/walk/impl.h"

typedef kl_wanted node;
typedef kl_walk walk;
typedef kl_node_needs needs;

enum {
  MOST_TAPS = 32, // of a window that is folded where it is wanted
  SHORT = 16,     // elements that are joined in their order, also where a window goes over all up to a place
};

int64_t kl_window_taps(const kl_instr *in) {
  int64_t taps = 1;
  for (uint32_t d = 0; d < in->more->nwindow; d++)
    if (__builtin_mul_overflow(taps, in->more->window[d].size, &taps)) return INT64_MAX;
  return taps;
}

bool kl_window_is_cumulative(const kl_instr *in, uint32_t *dim, bool *reverse) {
  const kl_shape *s = kl_shape_leaf(in->shape, 0);
  *dim = KL_NONE;
  for (uint32_t d = 0; d < in->more->nwindow; d++) {
    const kl_window_dim *w = &in->more->window[d];
    if (w->stride != 1 || w->base_dilation != 1 || (w->size > 1 && w->window_dilation != 1)) return false;
    if (w->size == 1 && (w->low || w->high)) return false;
    if (w->size == 1) continue;
    // With as many results as elements, padding is what the window has more than one.
    if (*dim != KL_NONE || w->size != s->dims[d] || w->low + w->high != w->size - 1 || (w->low && w->high))
      return false;
    *dim = d;
    *reverse = w->low == 0;
  }
  return *dim != KL_NONE && s->dims[*dim] > SHORT;
}

bool kl_window_is_small(const kl_instr *in) {
  uint32_t dim;
  bool reverse;
  return kl_window_taps(in) <= MOST_TAPS && !kl_window_is_cumulative(in, &dim, &reverse);
}

const kl_aff *kl_window_place(kl_affs *p, const kl_window_dim *x, const kl_aff *index, const kl_aff *tap) {
  const kl_aff *at = kl_aff_addmul(p, kl_aff_mulc(p, index, x->stride), tap, x->window_dilation);
  return kl_aff_addc(p, at, -x->low);
}

uint32_t kl_window_sees(kl_walk *w, const kl_window_dim *x, const kl_shape *s, const kl_aff *const *index,
                        const kl_aff *const *tap, uint32_t guard, const kl_aff **at, bool *never) {
  *never = false;
  for (uint32_t d = 0; d < s->rank && !*never; d++) {
    const kl_aff *place = kl_window_place(w->affs, &x[d], index[d], tap[d]);
    at[d] = kl_aff_floordivc(w->affs, place, x[d].base_dilation);
    if (x[d].base_dilation > 1)
      guard = kl_walk_guard(w, guard, kl_aff_modc(w->affs, place, x[d].base_dilation), 0, 0, never);
    if (!*never) guard = kl_walk_guard(w, guard, at[d], 0, s->dims[d] - 1, never);
  }
  return guard;
}

// The taps of number t, the last dimension's the fastest.
static void nth_tap(walk *w, const kl_instr *in, int64_t t, const kl_aff **tap) {
  for (uint32_t d = in->more->nwindow; d-- > 0;) {
    tap[d] = kl_aff_const(w->affs, t % in->more->window[d].size);
    t /= in->more->window[d].size;
  }
}

// Initial values; then, for each tap that sees something, the operands there, and the guard that it does.
void kl_need_window(walk *w, needs *d, const node *n) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  const kl_aff *tap[KILN_MAX_RANK], *at[KILN_MAX_RANK];
  uint32_t arrays = in->noperands / 2;
  for (uint32_t k = 0; k < arrays; k++)
    VEC_PUSH(w->cx, &d->nodes, kl_want(w, n->frame, in->operands[arrays + k], 0, n->guard, 0, NULL));
  for (int64_t t = 0; t < kl_window_taps(in) && s->count; t++) {
    bool never;
    nth_tap(w, in, t, tap);
    uint32_t guard = kl_window_sees(w, in->more->window, s, n->index, tap, n->guard, at, &never);
    if (never) continue;
    for (uint32_t k = 0; k < arrays; k++)
      VEC_PUSH(w->cx, &d->nodes, kl_want(w, n->frame, in->operands[k], 0, guard, s->rank, at));
    VEC_PUSH(w->cx, &d->guards, guard);
  }
}

// All leaves of the result are made at once.
kiln_status kl_make_window(walk *w, node *n, const needs *d) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  uint32_t arrays = in->noperands / 2, taps = (uint32_t)d->guards.n;
  uint32_t *acc = KL_NEW_N(w->arena, uint32_t, 3 * arrays + 1u), *next = acc + arrays, *made = next + arrays;
  kl_combiner by = kl_combiner_of(w->arena, &w->plan->module->comp[in->called[0]], n->instr);
  for (uint32_t k = 0; k < arrays; k++) acc[k] = kl_combiner_take(w->w, &by, k, w->nodes.p[d->nodes.p[k]]->step);
  for (uint32_t t = 0; t < taps; t++) {
    for (uint32_t k = 0; k < arrays; k++)
      next[k] = kl_combiner_take(w->w, &by, k, w->nodes.p[d->nodes.p[(t + 1) * arrays + k]]->step);
    KL_TRY(kl_combine_values(w, &by, acc, next, made));
    bool always = d->guards.p[t] == n->guard;
    for (uint32_t k = 0; k < arrays; k++)
      acc[k] = kl_write_choose(w->w, always ? KL_NONE : d->guards.p[t], made[k], acc[k]);
  }
  for (uint32_t k = 0; k < arrays; k++) {
    node *leaf = n;
    if (k != n->leaf) {
      uint32_t id = kl_want(w, n->frame, n->instr, k, n->guard, n->rank, n->index);
      leaf = w->nodes.p[id];
    }
    leaf->step = kl_combiner_give(w->w, &by, k, acc[k], kl_shape_leaf(in->shape, k)->dtype);
    leaf->scope = kl_write_scope_of(w->w, leaf->step);
  }
  return KILN_OK;
}

// Windows: where they begin, and which update is which element's.

#include "lower/choose/scatter/scatter.h"

enum { FEW_WINDOWS = 8 };

bool kl_has_few_windows(const kl_scatter *x) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->nbatch; i++)
    if (!x->batched[i]) n *= x->updates->dims[x->batch[i]];
  return n <= FEW_WINDOWS || x->updates->count == 0;
}

void kl_update_index(const kl_scatter *x, const kl_aff *const *batch, const kl_aff *const *offset,
                     const kl_aff **index) {
  for (uint32_t i = 0; i < x->nbatch; i++) index[x->batch[i]] = batch[i];
  for (uint32_t d = 0; d < x->array->rank; d++)
    if (x->window[d] >= 0) index[x->window[d]] = offset[d];
}

kiln_status kl_want_entry(kl_walk *w, const kl_scatter *x, const kl_aff *const *batch, int k, uint32_t guard,
                          uint32_t *step) {
  const kl_aff *at[KILN_MAX_RANK];
  uint32_t n = 0, b = 0;
  for (uint32_t d = 0; d < x->indices->rank; d++)
    at[n++] = d == x->instr->more->index_vector_dim ? kl_aff_const(w->affs, k) : batch[b++];
  return kl_walk_want(w, x->instr->operands[x->n], 0, guard, at, step);
}

kl_interval kl_starts(const kl_scatter *x, uint32_t d) {
  return (kl_interval){-1, x->array->dims[d] - x->size[d] + 1};
}

kiln_status kl_window_start(kl_walk *w, const kl_scatter *x, const kl_aff *const *batch, uint32_t guard,
                            const kl_aff **start) {
  for (uint32_t d = 0; d < x->array->rank; d++) {
    uint32_t step;
    start[d] = x->batching[d] >= 0 ? batch[x->batching[d]] : kl_aff_const(w->affs, 0);
    if (x->entry[d] < 0) continue;
    KL_TRY(kl_want_entry(w, x, batch, x->entry[d], guard, &step));
    start[d] = kl_write_index(w->w, step, kl_starts(x, d));
  }
  return KILN_OK;
}

uint32_t kl_window_inside(kl_walk *w, const kl_scatter *x, uint32_t d, const kl_aff *start, uint32_t outer,
                          bool *never) {
  return kl_guard_and(&w->w->guards, outer, start, 0, x->array->dims[d] - x->size[d], never);
}

kiln_status kl_combine(kl_walk *w, const kl_scatter *x, const uint32_t *elements, const uint32_t *updates,
                       uint32_t *out) {
  uint32_t args[2 * KL_MOST_SCATTERED];
  memcpy(args, elements, x->n * sizeof *args);
  memcpy(args + x->n, updates, x->n * sizeof *args);
  return kl_walk_call(w, x->number, x->by, args, out);
}

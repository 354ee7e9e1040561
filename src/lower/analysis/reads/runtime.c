// Places that the program computes: dynamic slices, gather, scatter.
#include "lower/analysis/reads/rule.h"

// The start of a slice of `size` along a dimension of `n`, as dynamic-slice and its kin clamp it.
static const kl_aff *slice_start(rule *u, uint32_t operand, int64_t n, int64_t size) {
  return rule_runtime(u, operand, 0, NULL, true, 0, n - size);
}

// Start indices are one scalar per dimension, or one array of all of them.
static const kl_aff *start_of(rule *u, uint32_t first, uint32_t d, int64_t n, int64_t size) {
  const kl_shape *s = rule_operand(u, first);
  if (s->rank == 0) return slice_start(u, first + d, n, size);
  const kl_aff *at = kl_aff_const(u->p, d);
  return rule_runtime(u, first, 1, &at, true, 0, n - size);
}

static void starts_are_read(rule *u, uint32_t first, uint32_t end) {
  size_t before = u->found.n;
  for (uint32_t i = first; i < end; i++) rule_all(u, i, NULL);
  for (size_t i = before; i < u->found.n; i++) u->found.p[i].places = true;
}

void rule_dynamic_slice(rule *u) {
  const kl_shape *s = rule_operand(u, 0);
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++)
    rule_result(u, kl_aff_add(u->p, rule_dim(u, d), start_of(u, 1, d, s->dims[d], u->out->dims[d])));
  rule_end(u, 0, 0);
  starts_are_read(u, 1, u->in->noperands);
}

// The place along dimension d in the update that overwrites the element, if it lies inside.
static const kl_aff *updated(rule *u, uint32_t d) {
  return kl_aff_sub(u->p, rule_dim(u, d), start_of(u, 2, d, u->out->dims[d], rule_operand(u, 1)->dims[d]));
}

static void below_or_above(rule *u, uint32_t d, int64_t lo, int64_t hi) {
  rule_begin(u);
  rule_constrain(u, updated(u, d), lo, hi);
  for (uint32_t k = 0; k < u->out->rank; k++) rule_result(u, rule_dim(u, k));
  rule_end(u, 0, 0);
}

// Inside the window the update is read; below or above it in some dimension, the operand.
void rule_dynamic_update_slice(rule *u) {
  const kl_shape *s = rule_operand(u, 1);
  for (uint32_t d = 0; d < s->rank; d++) {
    below_or_above(u, d, INT64_MIN, -1);
    below_or_above(u, d, s->dims[d], INT64_MAX);
  }
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++) {
    rule_result(u, updated(u, d));
    rule_constrain(u, u->results[d], 0, s->dims[d] - 1);
  }
  rule_end(u, 1, 0);
  starts_are_read(u, 2, u->in->noperands);
}

// --- gather and scatter -------------------------------------------------------------------------------------------

// How windows of a gathered or scattered array lie in it. The indices' dims but index_vector_dim are, in order, the
// batch dims: those of the other side that are no window dims.
typedef struct windows {
  const kl_more *m;
  const kl_shape *array, *indices;
  uint32_t operand;                   // number of the indices
  int64_t size[KILN_MAX_RANK];        // of the window, by dim of the array
  const kl_aff *batch[KILN_MAX_RANK]; // by dim of indices but index_vector_dim
  bool clamped;
} windows;

// Entry k of the index vector: the start along dimension start_index_map[k].
static const kl_aff *index_entry(rule *u, const windows *w, int64_t k, int64_t lo, int64_t hi) {
  const kl_aff *at[KILN_MAX_RANK];
  uint32_t n = 0, b = 0;
  for (uint32_t d = 0; d < w->indices->rank; d++)
    at[n++] = d == w->m->index_vector_dim ? kl_aff_const(u->p, k) : w->batch[b++];
  return rule_runtime(u, w->operand, n, at, w->clamped, lo, hi);
}

// Where the window of the batch index begins along dimension d.
static const kl_aff *window_start(rule *u, const windows *w, uint32_t d) {
  int64_t k = rule_place(w->m->start_index_map, d), b = rule_place(w->m->operand_batching_dims, d);
  if (k >= 0 && !w->clamped && w->size[d] == 1) return index_entry(u, w, k, INT64_MIN, INT64_MAX); // it is the element
  if (k >= 0) return index_entry(u, w, k, 0, w->array->dims[d] - w->size[d]);
  if (b < 0) return kl_aff_const(u->p, 0);
  int64_t at = w->m->indices_batching_dims.p[b];
  return w->batch[at - (at > w->m->index_vector_dim)];
}

// Of a window's dimensions of size 1, those that the other side does not have.
static bool is_gone(const kl_more *m, uint32_t d) {
  return rule_place(m->collapsed_dims, d) >= 0 || rule_place(m->operand_batching_dims, d) >= 0;
}

void rule_gather(rule *u) {
  const kl_more *m = u->in->more;
  windows w = {.m = m, .array = rule_operand(u, 0), .indices = rule_operand(u, 1), .operand = 1, .clamped = true};
  const kl_aff *offset[KILN_MAX_RANK];
  uint32_t noffsets = 0, nbatch = 0;
  for (uint32_t d = 0; d < u->out->rank; d++) {
    if (rule_place(m->offset_dims, d) >= 0)
      offset[noffsets++] = rule_dim(u, d);
    else
      w.batch[nbatch++] = rule_dim(u, d);
  }
  rule_begin(u);
  noffsets = 0;
  for (uint32_t d = 0; d < w.array->rank; d++) {
    w.size[d] = is_gone(m, d) ? 1 : m->sizes.p[d]; // what may be written as 0 is one element
    const kl_aff *at = window_start(u, &w, d);
    rule_result(u, is_gone(m, d) ? at : kl_aff_add(u->p, at, offset[noffsets++]));
  }
  rule_end(u, 0, 0);
  rule_begin(u);
  nbatch = 0;
  for (uint32_t d = 0; d < w.indices->rank; d++)
    rule_result(u, d == m->index_vector_dim ? rule_range(u, w.indices->dims[d]) : w.batch[nbatch++]);
  rule_end(u, 1, 0)->places = true;
}

// Does the update's dim d move along the window?
static bool is_window_dim(const kl_more *m, uint32_t d) {
  return rule_place(m->offset_dims, d) >= 0;
}

// All windows: a range along each dim of the updates that does not move along them.
static windows all_windows(rule *u, uint32_t indices, const kl_shape *updates) {
  windows w = {.m = u->in->more, .array = u->out, .indices = rule_operand(u, indices), .operand = indices};
  uint32_t nbatch = 0, nwindow = 0;
  int64_t window[KILN_MAX_RANK];
  for (uint32_t d = 0; d < updates->rank; d++) {
    if (is_window_dim(w.m, d))
      window[nwindow++] = updates->dims[d];
    else
      w.batch[nbatch++] = rule_range(u, updates->dims[d]);
  }
  nwindow = 0;
  for (uint32_t d = 0; d < w.array->rank; d++) w.size[d] = is_gone(w.m, d) ? 1 : window[nwindow++];
  return w;
}

// The update of every window that covers the element.
static void scattered_update(rule *u, uint32_t operand, uint32_t indices) {
  const kl_shape *updates = rule_operand(u, operand);
  const kl_aff *inside[KILN_MAX_RANK];
  uint32_t nwindow = 0, nbatch = 0;
  rule_begin(u);
  windows w = all_windows(u, indices, updates);
  for (uint32_t d = 0; d < w.array->rank; d++) {
    const kl_aff *at = kl_aff_sub(u->p, rule_dim(u, d), window_start(u, &w, d));
    rule_constrain(u, at, 0, w.size[d] - 1);
    if (!is_gone(w.m, d)) inside[nwindow++] = at;
  }
  nwindow = 0;
  for (uint32_t d = 0; d < updates->rank; d++)
    rule_result(u, is_window_dim(w.m, d) ? inside[nwindow++] : w.batch[nbatch++]);
  rule_end(u, operand, 0);
}

// An element takes those of all operands, all indices, and the updates of windows that lie inside the operand and cover
// it: a range over all windows, the start of each a runtime value.
void rule_scatter(rule *u) {
  uint32_t n = (u->in->noperands - 1) / 2;
  for (uint32_t i = 0; i < n; i++) rule_same(u, i);
  starts_are_read(u, n, n + 1);
  for (uint32_t i = 0; i < n; i++) scattered_update(u, n + 1 + i, n);
}

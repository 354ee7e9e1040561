// Slices at starts that data gives, and dimension sizes. Starts are clamped so that the slice lies inside.
#include "eval/indexed/index.h"

// --- slices -------------------------------------------------------------------------------------------------------

// The slice as a walk with the array's strides in src and the slice's in dst, and where it begins in the array. Starts
// are one scalar for each dimension, or one vector. *open: some start is not known exactly.
static int64_t place(const kl_shape *array, const kl_shape *slice, const kl_evval *const *starts, uint32_t nstarts,
                     kl_ev_walk *w, bool *open) {
  int64_t from[KILN_MAX_RANK], to[KILN_MAX_RANK], base = 0;
  bool vector = nstarts == 1 && starts[0]->shape->rank == 1;
  kl_ev_strides(array, from);
  kl_ev_strides(slice, to);
  *open = false;
  *w = (kl_ev_walk){.empty = slice->count == 0};
  for (uint32_t d = 0; d < array->rank && slice->count; d++) {
    int64_t most = array->dims[d] - slice->dims[d], start;
    bool unknown = false;
    start = kl_ev_index(starts[vector ? 0 : d], vector ? d : 0, &unknown);
    base += (start < 0 || most < 0 ? 0 : start > most ? most : start) * from[d];
    *open |= unknown && most > 0;
    kl_ev_walk_add(w, slice->dims[d], from[d], to[d]);
  }
  return base;
}

kiln_status kl_ev_dynamic_slice(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                kl_evval *out) {
  const kl_evval *src = operands[0];
  if (in->shape->count && kl_ev_single(src)) return kl_ev_spread(ev, src, in->shape, out);
  kl_ev_walk w;
  bool open;
  int64_t base = place(src->shape, in->shape, operands + 1, in->noperands - 1, &w, &open);
  w.src_base = base;
  KL_TRY(kl_ev_new(ev, in->shape, false, !kl_ev_exact(src), out));
  out->raw = src->raw;
  if (in->shape->count) kl_ev_copy_planes(ev, &w, src, out);
  if (!open) return KILN_OK;
  kiln_status status = kl_ev_open(ev, out);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

kiln_status kl_ev_dynamic_update_slice(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                       kl_evval *out) {
  const kl_evval *update = operands[1];
  const kl_shape *s = update->shape;
  kl_ev_walk w, back;
  bool open, raw = operands[0]->raw && update->raw, inexact = !kl_ev_exact(operands[0]) || !kl_ev_exact(update);
  int64_t base = place(in->shape, s, operands + 2, in->noperands - 2, &w, &open);
  back = w;
  for (uint32_t d = 0; d < w.n; d++) {
    back.src[d] = kl_ev_single(update) ? 0 : w.dst[d];
    back.dst[d] = w.src[d];
  }
  back.dst_base = base;
  KL_TRY(kl_ev_own(ev, operands, 0, in->shape, inexact, out));
  out->raw = raw;
  if (s->count) kl_ev_copy_planes(ev, &back, update, out);
  if (!open || s->count == 0) return KILN_OK;
  kiln_status status = kl_ev_open(ev, out);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

// --- sizes --------------------------------------------------------------------------------------------------------

// Is this operand the integer `want`, for certain?
static bool is_size(const kl_evval *v, int64_t want) {
  bool open = false;
  return kl_ev_index(v, 0, &open) == want && !open;
}

kiln_status kl_ev_dimension_size(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                 kl_evval *out) {
  int64_t size = operands[0]->shape->dims[in->dims[0]];
  if (in->op == KL_OP_SET_DIMENSION_SIZE) {
    if (!is_size(operands[1], size)) return kl_ev_set_size(ev, c, in, operands, out);
    *out = kl_ev_take(ev, operands, 0, operands[0]->shape);
    return KILN_OK;
  }
  KL_TRY(kl_ev_new(ev, in->shape, false, false, out));
  kl_dtype t = in->shape->dtype;
  kl_element_set(t, kl_ev_plane(out, KL_EV_DATA), 0, 0, kl_convert(KILN_S64, t, (uint64_t)size));
  return KILN_OK;
}

kiln_status kl_ev_shuffle(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                          kl_evval *out) {
  return kl_ev_refuse(ev, in, "its modes are not known");
}

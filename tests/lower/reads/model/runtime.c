// Places that data says.
#include "look.h"

static int64_t start_of(const look *k, uint32_t begin, uint32_t d, int64_t n, int64_t size) {
  int64_t at = d;
  bool scalars = shape_of(k, begin)->rank == 0;
  return clamp(integer(k, scalars ? begin + d : begin, &at), 0, n - size);
}

static void take_starts(const look *k, uint32_t begin) {
  for (uint32_t i = begin; i < k->in->noperands; i++) take_all(k, i);
}

static void dynamic_slice(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) y[d] = k->x[d] + start_of(k, 1, d, s->dims[d], k->out->dims[d]);
  take(k, 0, 0, y);
  take_starts(k, 1);
}

static void dynamic_update_slice(const look *k) {
  const kl_shape *s = shape_of(k, 1);
  int64_t y[RANK];
  bool inside = true;
  for (uint32_t d = 0; d < s->rank; d++) {
    y[d] = k->x[d] - start_of(k, 2, d, k->out->dims[d], s->dims[d]);
    inside = inside && y[d] >= 0 && y[d] < s->dims[d];
  }
  take(k, inside ? 1 : 0, 0, inside ? y : k->x);
  take_starts(k, 2);
}

// Indices are vectors along index_vector_dim, or scalars where that is the rank; `b`: index of the vector.
static bool gather_start(const look *k, uint32_t indices, const kl_shape *array, const int64_t *b, const int64_t *size,
                         bool clamped, int64_t *start) {
  const kl_more *m = k->in->more;
  const kl_shape *s = shape_of(k, indices);
  bool inside = true;
  for (uint32_t d = 0; d < array->rank; d++) {
    int64_t y[RANK];
    int entry = find(m->start_index_map, d), batch = find(m->operand_batching_dims, d);
    start[d] = 0;
    if (entry >= 0) {
      uint32_t n = 0;
      for (uint32_t i = 0; i < s->rank; i++) y[i] = i == m->index_vector_dim ? entry : b[n++];
      start[d] = integer(k, indices, y);
      if (clamped) start[d] = clamp(start[d], 0, array->dims[d] - size[d]);
    } else if (batch >= 0) {
      int64_t at = m->indices_batching_dims.p[batch];
      start[d] = b[at > m->index_vector_dim ? at - 1 : at];
    }
    inside = inside && start[d] >= 0 && start[d] <= array->dims[d] - size[d];
  }
  return inside;
}

static void gather(const look *k) {
  const kl_more *m = k->in->more;
  const kl_shape *array = shape_of(k, 0), *indices = shape_of(k, 1);
  int64_t b[RANK], o[RANK], start[RANK], y[RANK];
  uint32_t nb = 0, no = 0;
  for (uint32_t d = 0; d < k->out->rank; d++)
    if (find(m->offset_dims, d) < 0)
      b[nb++] = k->x[d];
    else
      o[no++] = k->x[d];
  gather_start(k, 1, array, b, m->sizes.p, true, start);
  no = 0;
  for (uint32_t d = 0; d < array->rank; d++) {
    bool gone = find(m->collapsed_dims, d) >= 0 || find(m->operand_batching_dims, d) >= 0;
    y[d] = start[d] + (gone ? 0 : o[no++]);
  }
  take(k, 0, 0, y);
  bool vector = m->index_vector_dim < indices->rank;
  int64_t n = vector ? indices->dims[m->index_vector_dim] : 1;
  for (int64_t i = 0; i < n; i++) {
    nb = 0;
    for (uint32_t d = 0; d < indices->rank; d++) y[d] = d == m->index_vector_dim ? i : b[nb++];
    take(k, 1, 0, y);
  }
}

static void scatter(const look *k) {
  const kl_more *m = k->in->more;
  uint32_t n = (k->in->noperands - 1) / 2;
  const kl_shape *array = shape_of(k, 0), *updates = shape_of(k, n + 1);
  int64_t u[RANK], b[RANK], size[RANK], offset[RANK], start[RANK];
  for (uint32_t i = 0; i < n; i++) take_same(k, i);
  take_all(k, n);
  if (!first(updates->rank, updates->dims, u)) return;
  do {
    uint32_t nb = 0, nw = 0;
    for (uint32_t d = 0; d < updates->rank; d++)
      if (find(m->offset_dims, d) < 0) b[nb++] = u[d];
    for (uint32_t d = 0; d < array->rank; d++) {
      size[d] = 1, offset[d] = 0;
      if (find(m->collapsed_dims, d) >= 0 || find(m->operand_batching_dims, d) >= 0) continue;
      while (find(m->offset_dims, nw) < 0) nw++;
      size[d] = updates->dims[nw];
      offset[d] = u[nw++];
    }
    bool mine = gather_start(k, n, array, b, size, false, start);
    for (uint32_t d = 0; d < array->rank; d++) mine = mine && start[d] + offset[d] == k->x[d];
    for (uint32_t i = 0; mine && i < n; i++) take(k, n + 1 + i, 0, u);
  } while (next(updates->rank, updates->dims, u));
}

bool look_runtime(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_DYNAMIC_SLICE: dynamic_slice(k); break;
  case KL_KIND_DYNAMIC_UPDATE_SLICE: dynamic_update_slice(k); break;
  case KL_KIND_GATHER: gather(k); break;
  case KL_KIND_SCATTER: scatter(k); break;
  case KL_KIND_DYNAMIC_RESHAPE:
    for (uint32_t i = 1; i < k->in->noperands; i++) take_all(k, i);
    break;
  default: return false;
  }
  return true;
}

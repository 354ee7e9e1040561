// Index vectors and the windows that they place.
#include "eval/indexed/index.h"

static int64_t load(kl_dtype t, const void *p, int64_t i) {
  switch (t) {
  case KILN_S32: return ((const int32_t *)p)[i];
  case KILN_U32: return ((const uint32_t *)p)[i];
  case KILN_S64: return ((const int64_t *)p)[i];
  case KILN_U64: return ((const uint64_t *)p)[i] > INT64_MAX ? INT64_MAX : (int64_t)((const uint64_t *)p)[i];
  default: return kl_int_decode(t, kl_element_get(t, p, i, 0));
  }
}

int64_t kl_ev_index(const kl_evval *v, int64_t i, bool *open) {
  kl_dtype t = v->shape->dtype;
  if (v->splat) i = 0;
  int64_t value = load(t, kl_ev_plane(v, KL_EV_DATA), i);
  if (kl_ev_exact(v)) return value;
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  *open |= (any && any[i]) || load(t, kl_ev_plane(v, KL_EV_LO), i) != load(t, kl_ev_plane(v, KL_EV_HI), i);
  return value;
}

// --- windows ------------------------------------------------------------------------------------------------------

static bool has(kl_ints list, int64_t v, uint32_t *at) {
  for (uint32_t k = 0; k < list.n; k++)
    if (list.p[k] == v) {
      *at = k;
      return true;
    }
  return false;
}

// Elements of a window along each dimension of the operand; the window's walk.
static void init_window(kl_ev_windows *w, const kl_more *more, bool scatter, const kl_shape *operand,
                        const kl_shape *array, int64_t *size) {
  int64_t from[KILN_MAX_RANK], to[KILN_MAX_RANK];
  uint32_t k = 0, at;
  kl_ev_strides(operand, from);
  kl_ev_strides(array, to);
  w->window_count = 1;
  for (uint32_t d = 0; d < operand->rank; d++) {
    size[d] = 1;
    if (has(more->collapsed_dims, d, &at) || has(more->operand_batching_dims, d, &at)) continue;
    uint32_t dim = (uint32_t)more->offset_dims.p[k++];
    size[d] = scatter ? array->dims[dim] : more->sizes.p[d];
    w->window_count *= size[d];
    kl_ev_walk_add(&w->window, size[d], from[d], to[dim]);
  }
}

// The array's dimensions outside windows are those of the indices, but for the index vectors themselves.
static void init_batch(kl_ev_windows *w, const kl_more *more, const kl_shape *operand, const kl_shape *array) {
  const kl_shape *indices = w->indices->shape;
  int64_t index[KILN_MAX_RANK], to[KILN_MAX_RANK], from[KILN_MAX_RANK];
  uint32_t dim = 0, at;
  kl_ev_strides(indices, index);
  kl_ev_strides(array, to);
  kl_ev_strides(operand, from);
  w->n = 1;
  for (uint32_t d = 0; d < array->rank; d++) {
    if (has(more->offset_dims, d, &at)) continue;
    if (dim == more->index_vector_dim) dim++;
    uint32_t k = w->rank++;
    w->extent[k] = array->dims[d];
    w->index_stride[k] = index[dim];
    w->array_stride[k] = to[d];
    w->operand_stride[k] = has(more->indices_batching_dims, dim, &at) ? from[more->operand_batching_dims.p[at]] : 0;
    w->n *= array->dims[d];
    dim++;
  }
  w->component_stride = more->index_vector_dim < indices->rank ? index[more->index_vector_dim] : 0;
}

bool kl_ev_windows_init(kl_ev_windows *w, const kl_instr *in, const kl_shape *operand, const kl_evval *indices,
                        const kl_shape *array) {
  int64_t size[KILN_MAX_RANK], from[KILN_MAX_RANK];
  *w = (kl_ev_windows){.indices = indices};
  if (array->count == 0) return true;
  init_window(w, in->more, in->op == KL_OP_SCATTER, operand, array, size);
  init_batch(w, in->more, operand, array);
  for (uint32_t d = 0; d < operand->rank; d++)
    if (size[d] > operand->dims[d]) return false;
  kl_ev_strides(operand, from);
  for (uint32_t k = 0; k < in->more->start_index_map.n; k++) {
    int64_t d = in->more->start_index_map.p[k];
    w->start_stride[k] = from[d];
    w->start_limit[k] = operand->dims[d] - size[d];
  }
  w->nstarts = in->more->start_index_map.n;
  return true;
}

void kl_ev_cursor_set(const kl_ev_windows *w, kl_ev_cursor *c, int64_t window) {
  *c = (kl_ev_cursor){0};
  for (uint32_t d = w->rank; d-- > 0;) {
    c->at[d] = window % w->extent[d];
    window /= w->extent[d];
    c->index += c->at[d] * w->index_stride[d];
    c->array += c->at[d] * w->array_stride[d];
    c->operand += c->at[d] * w->operand_stride[d];
  }
}

void kl_ev_cursor_next(const kl_ev_windows *w, kl_ev_cursor *c) {
  for (uint32_t d = w->rank; d-- > 0;) {
    c->index += w->index_stride[d];
    c->array += w->array_stride[d];
    c->operand += w->operand_stride[d];
    if (++c->at[d] < w->extent[d]) return;
    c->index -= w->index_stride[d] * w->extent[d];
    c->array -= w->array_stride[d] * w->extent[d];
    c->operand -= w->operand_stride[d] * w->extent[d];
    c->at[d] = 0;
  }
}

int64_t kl_ev_cursor_start(const kl_ev_windows *w, const kl_ev_cursor *c, bool *inside, bool *open) {
  int64_t at = c->operand;
  *inside = true;
  *open = false;
  for (uint32_t k = 0; k < w->nstarts; k++) {
    int64_t start = kl_ev_index(w->indices, c->index + k * w->component_stride, open);
    int64_t held = start < 0 ? 0 : start > w->start_limit[k] ? w->start_limit[k] : start;
    *inside &= held == start;
    at += held * w->start_stride[k];
  }
  return at;
}

// --- single elements ----------------------------------------------------------------------------------------------

typedef struct wide {
  uint64_t part[2];
} wide;

#define PICK(T)                                                                                                        \
  case sizeof(T):                                                                                                      \
    for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = ((const T *)src)[at[i]];                                           \
    break;
#define PUT(T)                                                                                                         \
  case sizeof(T):                                                                                                      \
    for (int64_t i = 0; i < n; i++) ((T *)dst)[at[i]] = ((const T *)src)[i];                                           \
    break;

void kl_ev_pick(size_t size, int64_t n, const int64_t *at, const void *src, void *dst) {
  switch (size) {
    PICK(uint8_t)
    PICK(uint16_t)
    PICK(uint32_t)
    PICK(uint64_t)
    PICK(wide)
  }
}

void kl_ev_put(size_t size, int64_t n, const int64_t *at, const void *src, void *dst) {
  switch (size) {
    PUT(uint8_t)
    PUT(uint16_t)
    PUT(uint32_t)
    PUT(uint64_t)
    PUT(wide)
  }
}

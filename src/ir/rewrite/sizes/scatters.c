// Scatters: a window counts where it lies in what is there, as in an array of that size.
//
// Of windows that are as large as what is there, whatever that is, nothing is said: they lie in it where they lie in
// the bound. Else the indices of a window that does not lie in it lead off the array, and so nothing comes of it.
// Windows whose own size is a value are taken apart: each of their places along such a dimension is an index of its
// own, which leads off the array where the window has no more.
#include "ir/rewrite/sizes/room.h"

#define NONE UINT32_MAX

typedef struct scattering {
  kl_sizing *z;
  kl_graph *g;
  uint32_t n;                 // arrays
  const kl_shape *to, *from;  // these, and updates
  kl_extents at, window;      // of the arrays, and by dimension of these, of windows; KL_WHOLE: it is their bound
  uint32_t in[KILN_MAX_RANK]; // by dimension of the arrays: that of the updates; NONE: windows have one element
  kl_dtype t;                 // of indices
  uint32_t vectors;           // indices, their components last
  uint32_t there; // of which vectors something comes: pred in their dimensions but the last; KL_WHOLE: of all
  kl_more *more;  // for these
  int64_t lists[4][KILN_MAX_RANK];
} scattering;

static const kl_shape *shape(const scattering *x) {
  return kl_graph_shape(x->g, x->vectors);
}

static void both(scattering *x, uint32_t p) {
  if (p != KL_WHOLE) x->there = x->there == KL_WHOLE ? p : kl_graph_binary(x->g, KL_OP_AND, x->there, p);
}

static uint32_t component_of(const scattering *x, uint32_t d) {
  for (uint32_t i = 0; i < x->more->start_index_map.n; i++)
    if (x->more->start_index_map.p[i] == d) return i;
  return NONE;
}

// --- what there is ---------------------------------------------------------------------------------------------------

static void measure(scattering *x) {
  kl_sizing *z = x->z;
  const kl_more *m = z->in->more;
  uint32_t w = 0;
  for (uint32_t d = 0; d < KILN_MAX_RANK; d++) x->at.of[d] = x->window.of[d] = KL_WHOLE;
  for (uint32_t d = 0; d < x->to->rank; d++) {
    x->in[d] = NONE;
    for (uint32_t k = 0; k < x->n; k++) x->at.of[d] = kl_size_least(z, x->at.of[d], kl_extent(z, k, d));
    if (kl_size_has(m->collapsed_dims, d) || kl_size_has(m->operand_batching_dims, d)) continue;
    x->in[d] = (uint32_t)m->offset_dims.p[w++];
    for (uint32_t k = x->n + 1; k < z->in->noperands; k++)
      x->window.of[d] = kl_size_least(z, x->window.of[d], kl_extent(z, k, x->in[d]));
  }
}

static bool is_all(const scattering *x, uint32_t d) {
  return x->in[d] != NONE && x->from->dims[x->in[d]] == x->to->dims[d] && x->window.of[d] == x->at.of[d];
}

static bool is_part(const scattering *x, uint32_t d) {
  return x->window.of[d] != KL_WHOLE && !is_all(x, d);
}

// The extents of places, which indices and updates have; batches are those of all three.
static bool places_of(scattering *x, kl_extents *places) {
  kl_sizing *z = x->z;
  const kl_more *m = z->in->more;
  uint32_t u = 0, s = 0;
  for (uint32_t i = 0; i < z->shapes[x->n]->rank; i++) {
    uint32_t size = kl_extent(z, x->n, i);
    if (i == m->index_vector_dim) {
      if (size != KL_WHOLE) return false;
      continue;
    }
    while (kl_size_has(m->offset_dims, u)) u++;
    for (uint32_t k = x->n + 1; k < z->in->noperands; k++) size = kl_size_least(z, size, kl_extent(z, k, u));
    for (uint32_t b = 0; b < m->indices_batching_dims.n; b++)
      if (m->indices_batching_dims.p[b] == i) {
        uint32_t d = (uint32_t)m->operand_batching_dims.p[b];
        x->at.of[d] = kl_size_least(z, x->at.of[d], size);
      }
    places->of[s++] = size;
    u++;
  }
  for (uint32_t d = s; d < KILN_MAX_RANK; d++) places->of[d] = KL_WHOLE;
  return true;
}

// --- indices ---------------------------------------------------------------------------------------------------------

// As numbers that are far from the ends of their type, those that lead off the array still doing so; their components
// last.
static void begin(scattering *x) {
  kl_graph *g = x->g;
  uint32_t v = x->z->values[x->n], rank;
  int64_t dims[KILN_MAX_RANK + 1], order[KILN_MAX_RANK], along = x->more->index_vector_dim, most;
  const kl_shape *s = kl_graph_shape(g, v);
  kl_dtype from = s->dtype;
  x->t = KILN_S32;
  for (uint32_t d = 0; d < x->to->rank; d++)
    if (x->to->dims[d] > 1 << 30) x->t = KILN_S64;
  most = x->t == KILN_S32 ? 1 << 30 : (int64_t)1 << 62;
  if (kl_is_signed(from)) v = kl_graph_with(g, KL_OP_MAXIMUM, v, -1);
  if (kl_info(from)->bits >= kl_info(x->t)->bits) v = kl_graph_with(g, KL_OP_MINIMUM, v, most);
  v = kl_graph_convert(g, v, x->t);
  rank = s->rank;
  memcpy(dims, s->dims, rank * sizeof *dims);
  if (along == rank) {
    dims[rank] = 1;
    v = kl_graph_reshape(g, v, rank + 1, dims);
  } else if (along + 1 != rank) {
    for (uint32_t d = 0; d < rank; d++) order[d] = d + 1 == rank ? along : d + (d >= along);
    v = kl_graph_transpose(g, v, order);
  }
  x->vectors = v;
  for (uint32_t i = 0; i < x->more->indices_batching_dims.n; i++)
    x->lists[3][i] = x->more->indices_batching_dims.p[i] - (x->more->indices_batching_dims.p[i] > along);
  x->more->indices_batching_dims.p = x->lists[3];
}

// Does the window lie in what is there of dimension d?
static void look_at(scattering *x, uint32_t d) {
  kl_graph *g = x->g;
  const kl_shape *s = shape(x);
  uint32_t rank = s->rank - 1, i = component_of(x, d), size = x->window.of[d], in;
  int64_t bound = x->in[d] == NONE ? 1 : x->from->dims[x->in[d]];
  uint32_t limit = x->at.of[d] == KL_WHOLE ? kl_graph_number(g, x->t, x->to->dims[d], 0, NULL)
                                           : kl_graph_convert(g, x->at.of[d], x->t);
  limit = size == KL_WHOLE ? kl_graph_with(g, KL_OP_SUBTRACT, limit, bound)
                           : kl_graph_binary(g, KL_OP_SUBTRACT, limit, kl_graph_convert(g, size, x->t));
  if (i == NONE) {
    in = kl_graph_broadcast(g, kl_graph_compare_with(g, KL_GE, limit, 0), rank, s->dims, NULL);
  } else {
    uint32_t at = kl_graph_reshape(g, kl_graph_slice(g, x->vectors, rank, i, i + 1, 1), rank, s->dims);
    in = kl_graph_compare(g, KL_LE, at, kl_graph_broadcast(g, limit, rank, s->dims, NULL));
    in = kl_graph_binary(g, KL_OP_AND, in, kl_graph_compare_with(g, KL_GE, at, 0));
  }
  both(x, in);
}

// One more component, of these [places..., 1], along dimension d.
static void add_component(scattering *x, uint32_t values, uint32_t d) {
  uint32_t parts[2] = {x->vectors, values}, last = shape(x)->rank - 1;
  bool none = !shape(x)->dims[last];
  x->vectors = none ? values : kl_graph_concatenate(x->g, 2, parts, last);
  x->more->start_index_map.p = x->lists[0];
  x->lists[0][x->more->start_index_map.n++] = d;
}

// What the list of update_window_dims says without dimension `in` of the updates.
static void drop_window(scattering *x, uint32_t in) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->more->offset_dims.n; i++)
    if (x->more->offset_dims.p[i] != in) x->lists[1][n++] = x->more->offset_dims.p[i];
  x->more->offset_dims = (kl_ints){n, x->lists[1]};
}

static void insert_dim(scattering *x, uint32_t d) {
  kl_ints *list = &x->more->collapsed_dims;
  uint32_t at = list->n++;
  for (; at && list->p[at - 1] > d; at--) x->lists[2][at] = list->p[at - 1];
  x->lists[2][at] = d;
}

// Windows along dimension d one by one: their places are among those that have indices.
static void take_apart(scattering *x, uint32_t d) {
  kl_graph *g = x->g;
  const kl_shape *s = shape(x);
  uint32_t in = x->in[d], at = 0, i = component_of(x, d);
  int64_t dims[KILN_MAX_RANK], kept[KILN_MAX_RANK];
  drop_window(x, in);
  insert_dim(x, d);
  for (uint32_t u = 0; u < in; u++) at += !kl_size_has(x->more->offset_dims, u);
  for (uint32_t k = 0; k < s->rank; k++) {
    kept[k] = k + (k >= at);
    dims[kept[k]] = s->dims[k];
  }
  dims[at] = x->from->dims[in];
  uint32_t rank = s->rank + 1, place = kl_graph_iota(g, KILN_S32, rank - 1, dims, at);
  uint32_t size = kl_graph_broadcast(g, x->window.of[d], rank - 1, dims, NULL);
  if (x->there != KL_WHOLE) x->there = kl_graph_broadcast(g, x->there, rank - 1, dims, kept);
  both(x, kl_graph_compare(g, KL_LT, place, size));
  x->vectors = kl_graph_broadcast(g, x->vectors, rank, dims, kept);
  for (uint32_t b = 0; b < x->more->indices_batching_dims.n; b++) x->lists[3][b] += x->lists[3][b] >= at;
  if (i == NONE) {
    dims[rank - 1] = 1;
    add_component(x, kl_graph_iota(g, x->t, rank, dims, at), d);
  } else {
    uint32_t on = kl_graph_iota(g, x->t, rank, dims, at);
    uint32_t own = kl_graph_compare_with(g, KL_EQ, kl_graph_iota(g, KILN_S32, rank, dims, rank - 1), i);
    on = kl_graph_select(g, own, on, kl_graph_number_like(g, on, 0));
    x->vectors = kl_graph_binary(g, KL_OP_ADD, x->vectors, on);
  }
}

// A component for dimension 0, or another that no batch is of, if there is none at all; false: there is no dimension.
static bool give_component(scattering *x) {
  uint32_t d = 0;
  if (x->more->start_index_map.n) return true;
  while (d < x->to->rank && kl_size_has(x->more->operand_batching_dims, d)) d++;
  if (d == x->to->rank) return false;
  int64_t dims[KILN_MAX_RANK];
  const kl_shape *s = shape(x);
  memcpy(dims, s->dims, s->rank * sizeof *dims);
  dims[s->rank - 1] = 1;
  add_component(x, kl_graph_number(x->g, x->t, 0, s->rank, dims), d);
  return true;
}

// --- the op ----------------------------------------------------------------------------------------------------------

static void copy_lists(scattering *x) {
  kl_ints *lists[4] = {&x->more->start_index_map, &x->more->offset_dims, &x->more->collapsed_dims,
                       &x->more->indices_batching_dims};
  for (int k = 0; k < 4; k++) {
    if (lists[k]->n) memcpy(x->lists[k], lists[k]->p, lists[k]->n * sizeof(int64_t));
    lists[k]->p = x->lists[k];
  }
}

static uint32_t put(scattering *x) {
  kl_sizing *z = x->z;
  kl_instr own = *z->in;
  const kl_shape *s = shape(x);
  int64_t dims[KILN_MAX_RANK];
  for (uint32_t d = 0; d + 1 < s->rank; d++) dims[d] = d;
  if (x->there != KL_WHOLE) {
    uint32_t there = kl_graph_broadcast(x->g, x->there, s->rank, s->dims, dims);
    x->vectors = kl_graph_select(x->g, there, x->vectors, kl_graph_number_like(x->g, x->vectors, -1));
  }
  x->more->index_vector_dim = s->rank - 1;
  x->more->indices_are_sorted = false;
  own.given = (own.given | 1 | 2 | 4 | 32) & ~(uint64_t)64;
  own.more = x->more;
  own.shape = kl_size_known(z, own.shape);
  z->values[x->n] = x->vectors;
  return kl_size_emit(z, own, own.noperands, z->values);
}

uint32_t kl_size_scatter(kl_sizing *z) {
  kl_graph *g = z->g;
  scattering *x = KL_NEW(&g->m->arena, scattering);
  kl_extents places;
  *x = (scattering){.z = z, .g = g, .n = (z->in->noperands - 1) / 2, .there = KL_WHOLE};
  x->to = z->shapes[0];
  x->from = z->shapes[x->n + 1];
  measure(x);
  if (!places_of(x, &places)) return kl_size_refuse(z, "vectors of known length");
  for (size_t k = 0; k < kl_shape_leaf_count(z->in->shape); k++)
    for (uint32_t d = 0; d < x->to->rank; d++) z->out[k].of[d] = x->at.of[d];
  x->more = kl_arena_dup(&g->m->arena, z->in->more, sizeof *x->more);
  copy_lists(x);
  uint32_t parts = 0;
  bool any = false;
  for (uint32_t d = 0; d < x->to->rank; d++) {
    bool looked = !is_all(x, d) && !kl_size_has(x->more->operand_batching_dims, d);
    any |= looked && (x->at.of[d] != KL_WHOLE || x->window.of[d] != KL_WHOLE);
    parts += is_part(x, d);
  }
  for (uint32_t d = 0; d < KILN_MAX_RANK; d++) any |= places.of[d] != KL_WHOLE;
  if (!any) return kl_size_keep(z);
  if (z->shapes[x->n]->rank + parts >= KILN_MAX_RANK) return kl_size_refuse(z, "fewer dimensions");
  begin(x);
  const kl_shape *s = shape(x);
  x->there = kl_size_there(z, kl_graph_array(g, KILN_PRED, s->rank - 1, s->dims), &places);
  for (uint32_t d = 0; d < x->to->rank; d++)
    if (!is_all(x, d) && !kl_size_has(x->more->operand_batching_dims, d) &&
        (x->at.of[d] != KL_WHOLE || x->window.of[d] != KL_WHOLE))
      look_at(x, d);
  for (uint32_t d = 0; d < x->to->rank; d++)
    if (is_part(x, d)) take_apart(x, d);
  if (!give_component(x)) return kl_size_refuse(z, "vectors of at least one index");
  return put(x);
}

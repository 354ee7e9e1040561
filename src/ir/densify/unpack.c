// From arrays to the dense tensor: of each value that there is room for, where it belongs.
//
// A value's place in the last level says its place in the level before, and so on up to the root: of a dense level by
// division, of a compressed one by a search of its positions, of a loose one by a scatter of where intervals begin and
// a maximum over what comes before. What comes out on the way are the coordinates. Values that belong nowhere, as there
// is more room than values, go to an index that scatter drops.
#include "ir/densify/tensor.h"

#define NONE UINT32_MAX

// All that is of entries has the shape [batches, values].
typedef struct unpacker {
  kl_graph *g;
  const kl_tensor *x;
  uint32_t *arrays; // by buffer
  int64_t dims[2];
  uint32_t batch, place, valid; // NONE: all are
  uint32_t *level;              // by level: values of its expression
  uint32_t *entries;            // by level + 1: how many it has, [batches]; NONE: not known yet
} unpacker;

static void demand(unpacker *u, uint32_t p) {
  u->valid = u->valid == NONE ? p : kl_graph_binary(u->g, KL_OP_AND, u->valid, p);
}

// Element `i`, in the shape of both, of the batch's part of an array.
static uint32_t read(unpacker *u, int32_t buffer, uint32_t batch, uint32_t i) {
  kl_graph *g = u->g;
  uint32_t at = i;
  if (kl_tensor_batches(u->x) > 1)
    at = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, batch, u->x->lengths[buffer]), i);
  return kl_graph_to_index(g, kl_graph_gather(g, u->arrays[buffer], at));
}

// --- numbers of entries --------------------------------------------------------------------------------------------

static int64_t groups_of(const kl_tensor *x, uint32_t l) {
  return x->sizes[l] / x->s.e->levels[l].m;
}

static int64_t most_entries(const kl_tensor *x, uint32_t l) {
  return x->lengths[x->s.of[l].coordinates] / x->s.of[l].columns;
}

// Where intervals [batches, parents] of a loose level begin or end.
static uint32_t ends(unpacker *u, uint32_t l, int64_t parents, int64_t which) {
  kl_graph *g = u->g;
  int64_t batches = kl_tensor_batches(u->x), length = u->x->lengths[u->x->s.of[l].positions];
  uint32_t a = kl_graph_reshape(g, u->arrays[u->x->s.of[l].positions], 2, (int64_t[]){batches, length});
  a = kl_graph_slice(g, a, 1, 0, 2 * parents, 1);
  a = kl_graph_reshape(g, a, 3, (int64_t[]){batches, parents, 2});
  a = kl_graph_reshape(g, kl_graph_slice(g, a, 2, which, which + 1, 1), 2, (int64_t[]){batches, parents});
  return kl_graph_to_index(g, a);
}

// Of [batches, n]: is it less than the number of entries of the level before l?
static uint32_t is_parent(unpacker *u, uint32_t l, uint32_t i);

// [batches]: of levels up to l - 1.
static uint32_t entries_before(unpacker *u, uint32_t l) {
  kl_graph *g = u->g;
  const kl_tensor *x = u->x;
  const kl_level_arrays *a = &x->s.of[l ? l - 1 : 0];
  int64_t batches = kl_tensor_batches(x), parents;
  if (u->entries[l] != NONE) return u->entries[l];
  if (l == x->s.nbatch) return u->entries[l] = kl_graph_number(g, g->index, 1, 1, &batches);
  uint32_t n = entries_before(u, l - 1), iota;
  const kl_level *level = &x->s.e->levels[l - 1];
  switch (level->format) {
  case KILN_LEVEL_DENSE: n = kl_graph_with(g, KL_OP_MULTIPLY, n, x->sizes[l - 1]); break;
  case KILN_LEVEL_STRUCTURED: n = kl_graph_with(g, KL_OP_MULTIPLY, n, groups_of(x, l - 1) * level->n); break;
  case KILN_LEVEL_SINGLETON: break;
  case KILN_LEVEL_LOOSE_COMPRESSED:
    parents = x->lengths[a->positions] / 2;
    if (parents == 0) {
      n = kl_graph_number(g, g->index, 0, 1, &batches);
      break;
    }
    iota = kl_graph_iota(g, g->index, 2, (int64_t[]){batches, parents}, 1);
    n = ends(u, l - 1, parents, 1);
    n = kl_graph_select(g, is_parent(u, l - 1, iota), n, kl_graph_number_like(g, n, 0));
    n = kl_graph_reduce(g, n, 1, KL_COMBINE_MAX);
    break;
  default:
    iota = kl_graph_iota(g, g->index, 1, &batches, 0);
    n = kl_graph_with(g, KL_OP_MINIMUM, read(u, a->positions, iota, n), most_entries(x, l - 1));
  }
  return u->entries[l] = n;
}

static uint32_t is_parent(unpacker *u, uint32_t l, uint32_t i) {
  const kl_shape *s = kl_graph_shape(u->g, i);
  return kl_graph_compare(u->g, KL_LT, i, kl_graph_broadcast(u->g, entries_before(u, l), 2, s->dims, (int64_t[]){0}));
}

// --- levels --------------------------------------------------------------------------------------------------------

// Of coordinates from 0 on, those that the level has; others make the entry invalid.
static uint32_t coordinate(unpacker *u, uint32_t l, uint32_t c) {
  int64_t size = u->x->l->binding.levels[l].size;
  demand(u, kl_graph_compare_with(u->g, KL_LT, c, size));
  c = kl_graph_with(u->g, KL_OP_MINIMUM, c, size - 1);
  return kl_graph_with(u->g, KL_OP_ADD, c, u->x->first[l]);
}

static uint32_t stored_coordinate(unpacker *u, uint32_t l, uint32_t place) {
  const kl_level_arrays *a = &u->x->s.of[l];
  uint32_t at = kl_graph_with(u->g, KL_OP_MULTIPLY, place, a->columns);
  return read(u, a->coordinates, u->batch, kl_graph_with(u->g, KL_OP_ADD, at, a->column));
}

// The last of all intervals that begins at the place or before: positions ascend. Behind all of them it is the number
// of intervals, which on the way up ends at no root.
static uint32_t search(unpacker *u, uint32_t l) {
  kl_graph *g = u->g;
  int32_t buffer = u->x->s.of[l].positions;
  int64_t parents = u->x->lengths[buffer] - 1, step = 1;
  uint32_t at = kl_graph_number(g, g->index, 0, 2, u->dims);
  uint32_t n = kl_graph_broadcast(g, entries_before(u, l), 2, u->dims, (int64_t[]){0});
  while (step * 2 <= parents) step *= 2;
  for (; step > 0 && parents > 0; step /= 2) {
    uint32_t next = kl_graph_with(g, KL_OP_ADD, at, step);
    uint32_t there = kl_graph_compare(g, KL_LE, next, n);
    uint32_t begins = kl_graph_compare(g, KL_LE, read(u, buffer, u->batch, next), u->place);
    at = kl_graph_select(g, kl_graph_binary(g, KL_OP_AND, there, begins), next, at);
  }
  return at;
}

static uint32_t flat_index(unpacker *u, uint32_t batch, int64_t length, uint32_t i) {
  if (kl_tensor_batches(u->x) == 1) return i;
  return kl_graph_binary(u->g, KL_OP_ADD, kl_graph_with(u->g, KL_OP_MULTIPLY, batch, length), i);
}

// By place of the level, [batches * entries]: the number of the interval that begins there + 1, and 0 elsewhere.
static uint32_t beginnings(unpacker *u, uint32_t l, int64_t parents, int64_t entries) {
  kl_graph *g = u->g;
  int64_t batches = kl_tensor_batches(u->x), of[] = {batches, parents}, all = batches * entries;
  uint32_t number = kl_graph_iota(g, g->index, 2, of, 1), batch = kl_graph_iota(g, g->index, 2, of, 0);
  uint32_t lo = ends(u, l, parents, 0), hi = ends(u, l, parents, 1);
  uint32_t begins = kl_graph_binary(g, KL_OP_AND, is_parent(u, l, number), kl_graph_compare(g, KL_LT, lo, hi));
  begins = kl_graph_binary(g, KL_OP_AND, begins, kl_graph_compare_with(g, KL_LT, lo, entries));
  lo = kl_graph_select(g, begins, flat_index(u, batch, entries, lo), kl_graph_number_like(g, lo, -1));
  uint32_t at = kl_graph_flat(g, lo), updates = kl_graph_flat(g, kl_graph_with(g, KL_OP_ADD, number, 1));
  return kl_graph_scatter(g, kl_graph_number(g, g->index, 0, 1, &all), &at, updates, KL_COMBINE_MAX, false);
}

// The interval that the place is in: the last one that begins before it, in whichever order they stand.
static uint32_t search_loose(unpacker *u, uint32_t l) {
  kl_graph *g = u->g;
  const kl_tensor *x = u->x;
  int64_t batches = kl_tensor_batches(x), parents = x->lengths[x->s.of[l].positions] / 2;
  int64_t entries = most_entries(x, l), of[] = {batches, entries}, all = batches * entries;
  if (!parents || !entries) {
    demand(u, kl_graph_number(g, KILN_PRED, 0, 2, u->dims));
    return kl_graph_number(g, g->index, 0, 2, u->dims);
  }
  uint32_t number = beginnings(u, l, parents, entries);
  uint32_t begins = kl_graph_compare_with(g, KL_GT, kl_graph_reshape(g, number, 2, of), 0);
  // From 1 on, so that 0 is: none begins before.
  uint32_t from = kl_graph_with(g, KL_OP_ADD, kl_graph_iota(g, g->index, 2, of, 1), 1);
  from = kl_graph_select(g, begins, from, kl_graph_number_like(g, from, 0));
  from = kl_graph_reshape(g, kl_graph_scan(g, from, KL_COMBINE_MAX), 1, &all);
  uint32_t start = kl_graph_gather(g, from, flat_index(u, u->batch, entries, u->place));
  demand(u, kl_graph_compare_with(g, KL_LT, u->place, entries));
  demand(u, kl_graph_compare_with(g, KL_GT, start, 0));
  start = kl_graph_with(g, KL_OP_ADD, start, -1);
  uint32_t parent = kl_graph_gather(g, number, flat_index(u, u->batch, entries, start));
  parent = kl_graph_with(g, KL_OP_ADD, parent, -1);
  uint32_t end = kl_graph_with(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, parent, 2), 1);
  demand(u, kl_graph_compare(g, KL_LT, u->place, read(u, x->s.of[l].positions, u->batch, end)));
  return parent;
}

// The level's coordinate of each entry; its place becomes that in the level before.
static void climb(unpacker *u, uint32_t l) {
  kl_graph *g = u->g;
  const kl_level *level = &u->x->s.e->levels[l];
  uint32_t c, parent, slot;
  int64_t size = u->x->sizes[l];
  switch (level->format) {
  case KILN_LEVEL_DENSE:
    parent = kl_graph_with(g, KL_OP_DIVIDE, u->place, size);
    c = kl_graph_binary(g, KL_OP_SUBTRACT, u->place, kl_graph_with(g, KL_OP_MULTIPLY, parent, size));
    u->level[l] = kl_graph_with(g, KL_OP_ADD, c, u->x->first[l]);
    break;
  case KILN_LEVEL_STRUCTURED:
    size = groups_of(u->x, l) * level->n;
    if (size == 0) {
      demand(u, kl_graph_number(g, KILN_PRED, 0, 2, u->dims));
      u->level[l] = kl_graph_number(g, g->index, u->x->first[l], 2, u->dims);
      return;
    }
    parent = kl_graph_with(g, KL_OP_DIVIDE, u->place, size);
    slot = kl_graph_binary(g, KL_OP_SUBTRACT, u->place, kl_graph_with(g, KL_OP_MULTIPLY, parent, size));
    c = kl_graph_with(g, KL_OP_MULTIPLY, kl_graph_with(g, KL_OP_DIVIDE, slot, level->n), level->m);
    // Coordinates of groups are theirs: what is beyond would be another's.
    slot = kl_graph_with(g, KL_OP_MINIMUM, stored_coordinate(u, l, u->place), level->m - 1);
    u->level[l] = coordinate(u, l, kl_graph_binary(g, KL_OP_ADD, c, slot));
    break;
  case KILN_LEVEL_SINGLETON: u->level[l] = coordinate(u, l, stored_coordinate(u, l, u->place)); return;
  default:
    u->level[l] = coordinate(u, l, stored_coordinate(u, l, u->place));
    parent = level->format == KILN_LEVEL_COMPRESSED ? search(u, l) : search_loose(u, l);
  }
  u->place = parent;
}

// Coordinates of batches are digits of their number.
static void batch_levels(unpacker *u) {
  kl_graph *g = u->g;
  uint32_t rest = u->batch;
  for (uint32_t l = u->x->s.nbatch; l-- > 0;) {
    uint32_t next = kl_graph_with(g, KL_OP_DIVIDE, rest, u->x->sizes[l]);
    rest = kl_graph_binary(g, KL_OP_SUBTRACT, rest, kl_graph_with(g, KL_OP_MULTIPLY, next, u->x->sizes[l]));
    u->level[l] = kl_graph_with(g, KL_OP_ADD, rest, u->x->first[l]);
    rest = next;
  }
}

// --- dimensions ----------------------------------------------------------------------------------------------------

// Within the tensor, and the element that its levels say: others are the rest of blocks.
static void demand_elements(unpacker *u, uint32_t *index) {
  kl_graph *g = u->g;
  const kl_tensor *x = u->x;
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    demand(u, kl_graph_compare_with(g, KL_GE, index[d], 0));
    demand(u, kl_graph_compare_with(g, KL_LT, index[d], x->shape->dims[d]));
    index[d] = kl_graph_with(g, KL_OP_MAXIMUM, kl_graph_with(g, KL_OP_MINIMUM, index[d], x->shape->dims[d] - 1), 0);
  }
  for (uint32_t l = 0; l < x->s.e->nlevels; l++) {
    if (!x->values[l]) continue;
    uint32_t again = kl_graph_expression(g, x->by_dim, x->values[l], index, u->batch);
    demand(u, kl_graph_compare(g, KL_EQ, again, u->level[l]));
  }
}

static uint32_t scatter(unpacker *u, const uint32_t *index) {
  kl_graph *g = u->g;
  const kl_tensor *x = u->x;
  kl_dtype t = x->shape->dtype;
  uint32_t at[KILN_MAX_RANK + 1], rank = x->shape->rank;
  static const int64_t one = 1;
  for (uint32_t d = 0; d < rank; d++) at[d] = index[d];
  if (!rank) at[0] = kl_graph_number(g, g->index, 0, 2, u->dims);
  at[0] = kl_graph_select(g, u->valid, at[0], kl_graph_number_like(g, at[0], -1));
  for (uint32_t d = 0; d < rank + !rank; d++) at[d] = kl_graph_flat(g, at[d]);
  uint32_t to = kl_graph_bits(g, t, x->implicit, rank ? rank : 1, rank ? x->shape->dims : &one);
  kl_combiner by = KL_COMBINE_LATER;
  bool repeats = kl_tensor_repeats(x), zero = !x->implicit[0];
  // Sums of floats show their order.
  if (repeats)
    by = !zero ? KL_COMBINE_SUM : t == KILN_PRED ? KL_COMBINE_OR : kl_is_int(t) ? KL_COMBINE_ADD : KL_COMBINE_SUM;
  uint32_t out = kl_graph_scatter(g, to, at, u->arrays[x->nbuffers - 1], by, !repeats);
  return kl_graph_reshape(g, out, rank, x->shape->dims);
}

static uint32_t unpack(unpacker *u) {
  kl_graph *g = u->g;
  const kl_tensor *x = u->x;
  const kl_encoding *e = x->s.e;
  uint32_t index[KILN_MAX_RANK];
  bool none = !x->shape->count || !u->dims[0] || !u->dims[1];
  for (uint32_t l = 0; l < e->nlevels; l++) none |= !x->sizes[l];
  if (none) return kl_graph_bits(g, x->shape->dtype, x->implicit, x->shape->rank, x->shape->dims);
  u->batch = kl_graph_iota(g, g->index, 2, u->dims, 0);
  u->place = kl_graph_iota(g, g->index, 2, u->dims, 1);
  for (uint32_t l = e->nlevels; l-- > x->s.nbatch;) climb(u, l);
  demand(u, kl_graph_compare_with(g, KL_LT, u->place, 1));
  batch_levels(u);
  for (uint32_t d = 0; d < x->shape->rank; d++)
    index[d] = kl_graph_expression(g, x->by_level, x->l->binding.dims[d], u->level, u->batch);
  if (!x->plain) demand_elements(u, index);
  return scatter(u, index);
}

static unpacker open(kl_graph *g, const kl_tensor *x, uint32_t *arrays) {
  unpacker u = {.g = g, .x = x, .arrays = arrays, .valid = NONE};
  u.dims[0] = kl_tensor_batches(x);
  u.dims[1] = x->lengths[x->nbuffers - 1];
  u.level = KL_NEW_N(&g->scratch, uint32_t, x->s.e->nlevels + 1u);
  u.entries = KL_NEW_N(&g->scratch, uint32_t, x->s.e->nlevels + 1u);
  for (uint32_t l = 0; l <= x->s.e->nlevels; l++) u.entries[l] = NONE;
  return u;
}

void kl_stored_needs(kl_graph *g, const kl_tensor *x, uint32_t *arrays, uint32_t *need) {
  unpacker u = open(g, x, arrays);
  for (uint32_t i = 0; i < x->nbuffers; i++) {
    const kiln_sparse_buffer *b = &x->buffers[i];
    uint32_t l = (uint32_t)b->level;
    bool loose = x->s.e->nlevels && x->s.e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED;
    switch (b->role) {
    case KILN_SPARSE_POSITIONS:
      need[i] = kl_graph_with(g, KL_OP_MULTIPLY, entries_before(&u, l), loose ? 2 : 1);
      if (!loose) need[i] = kl_graph_with(g, KL_OP_ADD, need[i], 1);
      break;
    case KILN_SPARSE_COORDINATES:
      need[i] = kl_graph_with(g, KL_OP_MULTIPLY, entries_before(&u, l + 1), b->columns);
      break;
    default: need[i] = entries_before(&u, x->s.e->nlevels);
    }
  }
}

uint32_t kl_unpack(kl_graph *g, const kl_tensor *x, const char *name) {
  unpacker u = open(g, x, KL_NEW_N(&g->scratch, uint32_t, x->nbuffers));
  g->index = x->narrow ? KILN_S32 : KILN_S64;
  kl_graph_begin(g);
  for (uint32_t i = 0; i < x->nbuffers; i++) {
    static const char *const roles[] = {"positions", "coordinates", "values"};
    u.arrays[i] = kl_graph_parameter(g, i, kl_tensor_array(x, g->m, i), roles[x->buffers[i].role]);
  }
  return kl_graph_end(g, name, unpack(&u));
}

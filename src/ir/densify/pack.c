// From the dense tensor to arrays: count, add up, fill.
//
// Elements stand in the order of levels: level space, the coordinates of all levels as digits of one number. An element
// is stored where it has other bits than the implicit value. What has a place of its own in a level, a node, follows
// from that: of a compressed level the prefixes of coordinates that something stored begins with, of a dense one all
// behind a node of the level before. The place of a node is how many nodes of its batch come before; so positions,
// coordinates and values are scattered to where they belong, and what has no room is dropped.
#include "ir/densify/tensor.h"

// Prefixes of coordinates of the levels so far: [batches, prefixes].
typedef struct prefixes {
  int64_t n;
  uint32_t place, exists; // in the level before; whether it has one
  uint32_t entries;       // of it, [batches]
} prefixes;

typedef struct packer {
  kl_graph *g;
  const kl_tensor *x;
  int64_t batches, n;      // points of level space, of each batch
  uint32_t values, stored; // [batches, n]
  prefixes at;
  uint32_t wrong[4]; // pred[], by bit of KL_PACK_*; UINT32_MAX: never
  uint32_t *out;     // by buffer
  uint32_t *need;    // by buffer: [batches]
} packer;

#define NONE UINT32_MAX

static void note_wrong(packer *p, int code, uint32_t where) {
  int bit = __builtin_ctz((unsigned)code);
  uint32_t any = kl_graph_reduce(p->g, kl_graph_flat(p->g, where), 0, KL_COMBINE_OR);
  p->wrong[bit] = p->wrong[bit] == NONE ? any : kl_graph_binary(p->g, KL_OP_OR, p->wrong[bit], any);
}

static uint32_t both(packer *p, uint32_t a, uint32_t b) {
  return kl_graph_binary(p->g, KL_OP_AND, a, b);
}

// --- shapes --------------------------------------------------------------------------------------------------------

static uint32_t table(packer *p, uint32_t a, int64_t n) {
  return kl_graph_reshape(p->g, a, 2, (int64_t[]){p->batches, n});
}

// [batches, n] for each of `size` coordinates more: [batches, n * size].
static uint32_t repeat(packer *p, uint32_t a, int64_t n, int64_t size) {
  a = kl_graph_broadcast(p->g, a, 3, (int64_t[]){p->batches, n, size}, (int64_t[]){0, 1});
  return table(p, a, n * size);
}

// The coordinates themselves.
static uint32_t digits(packer *p, int64_t n, int64_t size) {
  uint32_t a = kl_graph_iota(p->g, p->g->index, 3, (int64_t[]){p->batches, n, size}, 2);
  return table(p, a, n * size);
}

// Of [batches, n * rest]: is there one behind each of n?
static uint32_t any_behind(packer *p, uint32_t a, int64_t n) {
  int64_t rest = p->n / (n ? n : 1);
  return kl_graph_reduce(p->g, kl_graph_reshape(p->g, a, 3, (int64_t[]){p->batches, n, rest}), 2, KL_COMBINE_OR);
}

static uint32_t count(packer *p, uint32_t pred) {
  return kl_graph_convert(p->g, pred, p->g->index);
}

// Sums up to each, itself included, and of all of a batch.
static uint32_t sums(packer *p, uint32_t nodes) {
  return kl_graph_scan(p->g, count(p, nodes), KL_COMBINE_ADD);
}
static uint32_t total(packer *p, uint32_t sum, int64_t n) {
  if (!n) return kl_graph_number(p->g, p->g->index, 0, 1, &p->batches);
  return kl_graph_reshape(p->g, kl_graph_slice(p->g, sum, 1, n - 1, n, 1), 1, &p->batches);
}

// --- arrays --------------------------------------------------------------------------------------------------------

// Places [batches, n] of each batch's part of an array, all behind the other: those that are not there, or outside, are
// beyond.
static uint32_t index_of(packer *p, int32_t buffer, uint32_t place, uint32_t exists) {
  kl_graph *g = p->g;
  int64_t length = p->x->lengths[buffer];
  const kl_shape *s = kl_graph_shape(g, place);
  uint32_t within = both(p, exists, kl_graph_compare_with(g, KL_LT, place, length));
  uint32_t batch = kl_graph_iota(g, g->index, 2, s->dims, 0);
  if (p->batches > 1) place = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, batch, length), place);
  return kl_graph_flat(g, kl_graph_select(g, within, place, kl_graph_number_like(g, place, -1)));
}

// Values of so many parts, each with its places, into an array that is zero elsewhere.
static void fill(packer *p, int32_t buffer, uint32_t n, const uint32_t *at, uint32_t *values) {
  kl_graph *g = p->g;
  int64_t all = p->x->lengths[buffer] * p->batches;
  uint64_t zero[2] = {0};
  for (uint32_t i = 0; i < n; i++) values[i] = kl_graph_flat(g, kl_graph_convert(g, values[i], p->x->types[buffer]));
  uint32_t to = kl_graph_bits(g, p->x->types[buffer], zero, 1, &all);
  uint32_t index = kl_graph_concatenate(g, n, at, 0);
  p->out[buffer] = kl_graph_scatter(g, to, &index, kl_graph_concatenate(g, n, values, 0), KL_COMBINE_LATER, true);
}

static void need(packer *p, int32_t buffer, uint32_t entries, int64_t times, int64_t more) {
  p->need[buffer] = kl_graph_with(p->g, KL_OP_ADD, kl_graph_with(p->g, KL_OP_MULTIPLY, entries, times), more);
}

static void check_width(packer *p, unsigned bits, int64_t most, uint32_t value, uint32_t exists, int code) {
  if (bits >= 63 || most >> bits == 0) return;
  uint32_t over = kl_graph_compare_with(p->g, KL_GE, value, (int64_t)1 << bits);
  note_wrong(p, code, exists == NONE ? over : both(p, exists, over));
}

// --- levels --------------------------------------------------------------------------------------------------------

static void dense(packer *p, uint32_t l) {
  int64_t size = p->x->sizes[l], n = p->at.n;
  uint32_t place = kl_graph_with(p->g, KL_OP_MULTIPLY, repeat(p, p->at.place, n, size), size);
  p->at.place = kl_graph_binary(p->g, KL_OP_ADD, place, digits(p, n, size));
  p->at.exists = repeat(p, p->at.exists, n, size);
  p->at.entries = kl_graph_with(p->g, KL_OP_MULTIPLY, p->at.entries, size);
  p->at.n = n * size;
}

// Of each parent, where its interval of nodes begins, and where it ends; `sum`: of `size` nodes for each.
static void put_positions(packer *p, uint32_t l, uint32_t sum, uint32_t nodes, int64_t size, uint32_t all) {
  kl_graph *g = p->g;
  int32_t buffer = p->x->s.of[l].positions;
  int64_t n = p->at.n, shape[] = {p->batches, n, size};
  bool loose = p->x->s.e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED;
  uint32_t before = kl_graph_binary(g, KL_OP_SUBTRACT, sum, count(p, nodes)), at[2], values[2];
  values[0] = table(p, kl_graph_slice(g, kl_graph_reshape(g, before, 3, shape), 2, 0, 1, 1), n);
  values[1] = table(p, kl_graph_slice(g, kl_graph_reshape(g, sum, 3, shape), 2, size - 1, size, 1), n);
  if (loose) {
    uint32_t place = kl_graph_with(g, KL_OP_MULTIPLY, p->at.place, 2);
    at[0] = index_of(p, buffer, place, p->at.exists);
    at[1] = index_of(p, buffer, kl_graph_with(g, KL_OP_ADD, place, 1), p->at.exists);
  } else {
    uint32_t end = kl_graph_reshape(g, p->at.entries, 2, (int64_t[]){p->batches, 1});
    at[0] = index_of(p, buffer, p->at.place, p->at.exists);
    at[1] = index_of(p, buffer, end, kl_graph_number(g, KILN_PRED, 1, 2, (int64_t[]){p->batches, 1}));
    values[1] = all;
  }
  fill(p, buffer, 2, at, values);
  need(p, buffer, p->at.entries, loose ? 2 : 1, !loose);
  check_width(p, p->x->s.of[l].pos_bits, p->n, all, NONE, KL_PACK_POSITION);
}

// Positions where no coordinate is: all intervals are empty.
static void put_empty_positions(packer *p, uint32_t l) {
  int32_t buffer = p->x->s.of[l].positions;
  bool loose = p->x->s.e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED;
  int64_t all = p->x->lengths[buffer] * p->batches;
  p->out[buffer] = kl_graph_number(p->g, p->x->types[buffer], 0, 1, &all);
  need(p, buffer, p->at.entries, loose ? 2 : 1, !loose);
}

// A run of a compressed level and the singletons behind it, whose coordinates may be in one array or in several.
static void put_coordinates(packer *p, uint32_t l, int64_t n, uint32_t place, uint32_t nodes) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t run = x->s.of[l].run, at[KL_MOST_LEVELS], values[KL_MOST_LEVELS], parts = 0;
  int64_t behind = 1;
  for (uint32_t k = l + run; k-- > l;) {
    const kl_level_arrays *a = &x->s.of[k];
    int64_t size = x->sizes[k];
    uint32_t c = kl_graph_iota(g, g->index, 4, (int64_t[]){p->batches, n / behind / size, size, behind}, 2);
    c = table(p, c, n);
    check_width(p, a->crd_bits, size - 1, c, nodes, KL_PACK_COORDINATE);
    uint32_t to = kl_graph_with(g, KL_OP_MULTIPLY, place, a->columns);
    at[parts] = index_of(p, a->coordinates, kl_graph_with(g, KL_OP_ADD, to, a->column), nodes);
    values[parts++] = c;
    behind *= size;
    if (a->column) continue;
    fill(p, a->coordinates, parts, at, values);
    need(p, a->coordinates, p->at.entries, a->columns, 0);
    parts = 0;
  }
}

static uint32_t compressed(packer *p, uint32_t l) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t run = x->s.of[l].run, broken = x->s.e->levels[l].properties & KILN_LEVEL_NONUNIQUE ? run : 1;
  int64_t size = 1, rest = 1, n;
  for (uint32_t k = 0; k < run; k++) *(k < broken ? &size : &rest) *= x->sizes[l + k];
  n = p->at.n * size;
  uint32_t last = any_behind(p, p->stored, n * rest);
  if (!n || !rest) {
    put_empty_positions(p, l);
    p->at.entries = kl_graph_number(g, g->index, 0, 1, &p->batches);
  } else {
    uint32_t nodes = any_behind(p, p->stored, n), sum = sums(p, nodes), all = total(p, sum, n);
    put_positions(p, l, sum, nodes, size, all);
    p->at.entries = all;
    p->at.place = kl_graph_binary(g, KL_OP_SUBTRACT, sum, count(p, nodes));
    if (rest > 1) {
      uint32_t several = kl_graph_reshape(g, count(p, last), 3, (int64_t[]){p->batches, n, rest});
      several = kl_graph_reduce(g, several, 2, KL_COMBINE_ADD);
      note_wrong(p, KL_PACK_FULL, kl_graph_compare_with(g, KL_GT, several, 1));
      p->at.place = repeat(p, p->at.place, n, rest);
    }
  }
  p->at.n = n * rest;
  p->at.exists = last;
  if (!p->at.n) p->at.place = kl_graph_number(g, g->index, 0, 2, (int64_t[]){p->batches, 0});
  if (p->at.n) put_coordinates(p, l, p->at.n, p->at.place, last);
  for (uint32_t k = l; k < l + run && !p->at.n; k++) {
    const kl_level_arrays *a = &x->s.of[k];
    int64_t length = x->lengths[a->coordinates] * p->batches;
    p->out[a->coordinates] = kl_graph_number(g, x->types[a->coordinates], 0, 1, &length);
    need(p, a->coordinates, p->at.entries, a->columns, 0);
  }
  return l + run;
}

// Of each group the entries, and fillers: the smallest coordinates that are free.
static void structured(packer *p, uint32_t l) {
  kl_graph *g = p->g;
  const kl_level *level = &p->x->s.e->levels[l];
  const kl_level_arrays *a = &p->x->s.of[l];
  int64_t size = p->x->sizes[l], groups = size / level->m, n = p->at.n * size, all = p->at.n * groups;
  int64_t of_group[] = {p->batches * all, level->m};
  uint32_t there = any_behind(p, p->stored, n);
  if (n) {
    uint32_t used = kl_graph_reshape(g, there, 2, of_group), sum = kl_graph_scan(g, count(p, used), KL_COMBINE_ADD);
    uint32_t number = kl_graph_reshape(g, kl_graph_slice(g, sum, 1, level->m - 1, level->m, 1), 1, of_group);
    note_wrong(p, KL_PACK_FULL, kl_graph_compare_with(g, KL_GT, number, level->n));
    number = kl_graph_broadcast(g, number, 2, of_group, (int64_t[]){0});
    // Free coordinates before this one.
    uint32_t c = kl_graph_iota(g, g->index, 2, of_group, 1);
    uint32_t before = kl_graph_binary(g, KL_OP_SUBTRACT, sum, count(p, used));
    uint32_t free = kl_graph_binary(g, KL_OP_SUBTRACT, c, before);
    uint32_t wanted = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, number, level->n), number);
    uint32_t taken = kl_graph_binary(g, KL_OP_OR, used, kl_graph_compare(g, KL_LT, free, wanted));
    uint32_t slot = kl_graph_scan(g, count(p, taken), KL_COMBINE_ADD);
    slot = table(p, kl_graph_binary(g, KL_OP_SUBTRACT, slot, count(p, taken)), n);
    taken = both(p, table(p, taken, n), repeat(p, p->at.exists, p->at.n, size));
    // A group with too many has no slot for the last of them.
    taken = both(p, taken, kl_graph_compare_with(g, KL_LT, slot, level->n));
    uint32_t group = kl_graph_iota(g, g->index, 4, (int64_t[]){p->batches, p->at.n, groups, level->m}, 2);
    uint32_t place = kl_graph_with(g, KL_OP_MULTIPLY, repeat(p, p->at.place, p->at.n, size), groups);
    place = kl_graph_binary(g, KL_OP_ADD, place, table(p, group, n));
    place = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, place, level->n), slot);
    c = table(p, c, n);
    check_width(p, a->crd_bits, level->m - 1, c, taken, KL_PACK_COORDINATE);
    uint32_t at = index_of(p, a->coordinates, place, taken);
    p->at.place = place;
    p->at.exists = taken;
    fill(p, a->coordinates, 1, &at, &c);
  } else {
    int64_t length = p->x->lengths[a->coordinates] * p->batches;
    p->out[a->coordinates] = kl_graph_number(g, p->x->types[a->coordinates], 0, 1, &length);
    p->at.place = kl_graph_number(g, g->index, 0, 2, (int64_t[]){p->batches, 0});
    p->at.exists = there;
  }
  p->at.n = n;
  p->at.entries = kl_graph_with(g, KL_OP_MULTIPLY, p->at.entries, groups * level->n);
  need(p, a->coordinates, p->at.entries, 1, 0);
}

static void put_values(packer *p) {
  int32_t buffer = (int32_t)p->x->nbuffers - 1;
  uint32_t at = index_of(p, buffer, p->at.place, p->at.exists), values = p->values;
  fill(p, buffer, 1, &at, &values);
  need(p, buffer, p->at.entries, 1, 0);
}

// --- level space ---------------------------------------------------------------------------------------------------

// Digits of a number of level space: its coordinates, `all` numbers of the levels that are `wanted`.
static void coordinates_of(packer *p, uint32_t number, const bool *wanted, uint32_t *out) {
  kl_graph *g = p->g;
  for (uint32_t l = p->x->s.e->nlevels; l-- > 0;) {
    if (!wanted[l]) continue;
    uint32_t rest = kl_graph_with(g, KL_OP_DIVIDE, number, p->x->sizes[l]);
    out[l] = kl_graph_binary(g, KL_OP_SUBTRACT, number, kl_graph_with(g, KL_OP_MULTIPLY, rest, p->x->sizes[l]));
    number = rest;
  }
}

static uint32_t number_of(packer *p, const uint32_t *coordinates, const bool *wanted) {
  kl_graph *g = p->g;
  uint32_t number = NONE;
  for (uint32_t l = 0; l < p->x->s.e->nlevels; l++) {
    if (!wanted[l]) continue;
    if (number != NONE)
      number = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, number, p->x->sizes[l]), coordinates[l]);
    else
      number = coordinates[l];
  }
  return number;
}

// The tensor's elements in level space, where levels are dimensions in another order.
static uint32_t in_order(packer *p, uint32_t dense_tensor) {
  int64_t dims[KILN_MAX_RANK];
  for (uint32_t l = 0; l < p->x->shape->rank; l++) dims[l] = kl_aff_is_var(p->x->values[l])->var;
  return kl_graph_flat(p->g, kl_graph_transpose(p->g, dense_tensor, dims));
}

// Of points of level space, in any shape, with these values of levels: the element there, and whether there is one.
static uint32_t element_at(packer *p, uint32_t dense_tensor, const uint32_t *level, uint32_t like, uint32_t *there) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t index[KILN_MAX_RANK], number = NONE;
  const kl_shape *s = kl_graph_shape(g, like);
  *there = kl_graph_number(g, KILN_PRED, 1, s->rank, s->dims);
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    int64_t size = x->shape->dims[d];
    index[d] = kl_graph_expression(g, x->by_level, x->l->binding.dims[d], level, like);
    *there = both(p, *there, kl_graph_compare_with(g, KL_GE, index[d], 0));
    *there = both(p, *there, kl_graph_compare_with(g, KL_LT, index[d], size));
    index[d] = kl_graph_with(g, KL_OP_MAXIMUM, kl_graph_with(g, KL_OP_MINIMUM, index[d], size - 1), 0);
    number = d ? kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, number, size), index[d]) : index[d];
  }
  for (uint32_t l = 0; l < x->s.e->nlevels; l++) {
    if (!x->values[l]) continue;
    uint32_t again = kl_graph_expression(g, x->by_dim, x->values[l], index, like);
    *there = both(p, *there, kl_graph_compare(g, KL_EQ, again, level[l]));
  }
  if (number == NONE) number = kl_graph_number_like(g, like, 0);
  return kl_graph_gather(g, kl_graph_flat(g, dense_tensor), number);
}

typedef struct space {
  int64_t n;    // points
  bool *wanted; // by level: it is an axis
  uint32_t values, stored;
} space;

static uint32_t implicit_like(packer *p, uint32_t like) {
  const kl_shape *s = kl_graph_shape(p->g, like);
  return kl_graph_bits(p->g, s->dtype, p->x->implicit, s->rank, s->dims);
}

// Of all levels that do not count.
static void lay_out(packer *p, uint32_t dense_tensor, space *s) {
  kl_graph *g = p->g;
  uint32_t *level = KL_NEW_N(&g->scratch, uint32_t, p->x->s.e->nlevels + 1u), there;
  if (p->x->plain && p->x->space == p->x->shape->count) {
    s->values = in_order(p, dense_tensor);
    s->stored = kl_graph_differs(g, s->values, p->x->implicit);
    return;
  }
  uint32_t number = kl_graph_iota(g, g->index, 1, &s->n, 0);
  coordinates_of(p, number, s->wanted, level);
  for (uint32_t l = 0; l < p->x->s.e->nlevels; l++)
    if (s->wanted[l]) level[l] = kl_graph_with(g, KL_OP_ADD, level[l], p->x->first[l]);
  uint32_t v = element_at(p, dense_tensor, level, number, &there);
  s->values = kl_graph_select(g, there, v, implicit_like(p, v));
  s->stored = kl_graph_differs(g, s->values, p->x->implicit);
}

// --- levels that count ---------------------------------------------------------------------------------------------

static void mark_levels(const kl_tensor *x, const kl_aff *e, bool *used) {
  bool none[1];
  kl_aff_mark(x->l->pool, e, (bool *const[]){used, none, none}, (uint32_t[]){x->s.e->nlevels, 0, 0});
}

// Of each point, how many are stored before it with the same coordinate of the dimension that level l counts: groups of
// points by those levels that say the coordinate.
static uint32_t ranks(packer *p, uint32_t l, const space *s) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t n = x->s.e->nlevels, *level = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  bool *of_group = KL_NEW_N(&g->scratch, bool, n + 1u), *within = KL_NEW_N(&g->scratch, bool, n + 1u);
  int64_t groups = 1;
  mark_levels(x, x->l->binding.dims[x->l->binding.levels[l].count], of_group);
  for (uint32_t k = 0; k < n; k++) {
    of_group[k] &= s->wanted[k];
    within[k] = s->wanted[k] && !of_group[k];
    if (of_group[k]) groups *= x->sizes[k];
  }
  int64_t each = s->n / groups, shape[] = {groups, each};
  uint32_t group = kl_graph_iota(g, g->index, 2, shape, 0), place = kl_graph_iota(g, g->index, 2, shape, 1);
  coordinates_of(p, group, of_group, level);
  coordinates_of(p, place, within, level);
  uint32_t from = number_of(p, level, s->wanted);
  uint32_t there = kl_graph_gather(g, s->stored, from), sum = kl_graph_scan(g, count(p, there), KL_COMBINE_ADD);
  uint32_t before = kl_graph_flat(g, kl_graph_binary(g, KL_OP_SUBTRACT, sum, count(p, there)));
  // And back to the order of the space.
  coordinates_of(p, kl_graph_iota(g, g->index, 1, &s->n, 0), s->wanted, level);
  uint32_t to = number_of(p, level, of_group), in = number_of(p, level, within);
  to = to == NONE   ? in
       : in == NONE ? kl_graph_with(g, KL_OP_MULTIPLY, to, each)
                    : kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, to, each), in);
  return to == NONE ? before : kl_graph_gather(g, before, to);
}

// The space of all levels: an element is at the slot that its rank says.
static void count_slots(packer *p, space *s) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t n = x->s.e->nlevels, *level = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  bool *all = KL_NEW_N(&g->scratch, bool, n + 1u);
  uint32_t *rank = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  for (uint32_t l = 0; l < n; l++) {
    all[l] = true;
    if (s->wanted[l]) continue;
    rank[l] = ranks(p, l, s);
    note_wrong(p, KL_PACK_FULL, both(p, s->stored, kl_graph_compare_with(g, KL_GE, rank[l], x->sizes[l])));
  }
  int64_t points = x->space;
  coordinates_of(p, kl_graph_iota(g, g->index, 1, &points, 0), all, level);
  uint32_t from = number_of(p, level, s->wanted);
  if (from == NONE) from = kl_graph_number(g, g->index, 0, 1, &points);
  uint32_t stored = kl_graph_gather(g, s->stored, from);
  for (uint32_t l = 0; l < n; l++)
    if (!s->wanted[l])
      stored = both(p, stored, kl_graph_compare(g, KL_EQ, kl_graph_gather(g, rank[l], from), level[l]));
  uint32_t values = kl_graph_gather(g, s->values, from);
  s->values = kl_graph_select(g, stored, values, implicit_like(p, values));
  s->stored = stored;
  s->n = points;
}

// Points by the levels that say a coordinate are groups by that, if no two say the same.
static bool is_told_apart(const kl_tensor *x, uint32_t l) {
  enum { MOST = 1 << 20 };
  uint32_t n = x->s.e->nlevels, d = (uint32_t)x->l->binding.levels[l].count;
  bool used[KL_MOST_LEVELS] = {false}, *seen;
  int64_t at[KL_MOST_LEVELS] = {0}, points = 1, size = x->shape->dims[d], v;
  mark_levels(x, x->l->binding.dims[d], used);
  for (uint32_t k = 0; k < n; k++) {
    if (used[k] && __builtin_mul_overflow(points, x->sizes[k], &points)) return false;
    at[k] = x->first[k];
  }
  if (points > MOST || size > MOST || !(seen = kl_try_alloc(x->s.cx, (size_t)size + 1))) return false;
  memset(seen, 0, (size_t)size + 1);
  bool apart = true;
  for (int64_t i = 0; i < points && apart; i++) {
    int64_t rest = i;
    for (uint32_t k = n; k-- > 0;)
      if (used[k]) at[k] = x->first[k] + rest % x->sizes[k], rest /= x->sizes[k];
    if (!kl_aff_eval(x->l->pool, x->l->binding.dims[d], &(kl_point){{at}}, &v) || v < 0 || v >= size) continue;
    apart = !seen[v];
    seen[v] = true;
  }
  kl_free(x->s.cx, seen, (size_t)size + 1);
  return apart;
}

// --- the whole -----------------------------------------------------------------------------------------------------

enum { MOST_POINTS_LOG = 40 };

kiln_status kl_pack_check(kl_ctx *cx, const kl_tensor *x, const char *what) {
  if (x->space >> MOST_POINTS_LOG)
    return kl_unsupported(cx, KL_NOWHERE,
                          "%s: its levels have more than 2^%d coordinates together, which are gone through", what,
                          MOST_POINTS_LOG);
  for (uint32_t l = 0; l < x->s.e->nlevels; l++)
    if (!x->values[l] && x->space && !is_told_apart(x, l))
      return kl_unsupported(cx, KL_NOWHERE, "%s: level %u counts a dimension that other levels do not say one by one",
                            what, l);
  return KILN_OK;
}

uint32_t kl_put_counts(kl_graph *g, const kl_tensor *x, const uint32_t *need, uint32_t code) {
  uint32_t *all = KL_NEW_N(&g->scratch, uint32_t, x->nbuffers + 1u);
  static const int64_t one = 1;
  for (uint32_t i = 0; i < x->nbuffers; i++) {
    uint32_t most = kl_graph_convert(g, need[i], KILN_S64);
    int64_t batches = kl_graph_shape(g, most)->count;
    if (batches > 1) most = kl_graph_reduce(g, most, 0, KL_COMBINE_MAX);
    all[i] = kl_graph_with(g, KL_OP_MULTIPLY, kl_graph_reshape(g, most, 1, &one), batches);
  }
  if (code == NONE) code = kl_graph_number(g, KILN_S64, 0, 0, NULL);
  all[x->nbuffers] = kl_graph_reshape(g, code, 1, &one);
  return kl_graph_concatenate(g, x->nbuffers + 1, all, 0);
}

// What is wrong.
static uint32_t code_of(packer *p) {
  kl_graph *g = p->g;
  uint32_t code = NONE;
  for (int bit = 0; bit < 4; bit++) {
    if (p->wrong[bit] == NONE) continue;
    uint32_t v = kl_graph_with(g, KL_OP_MULTIPLY, kl_graph_convert(g, p->wrong[bit], KILN_S64), 1 << bit);
    code = code == NONE ? v : kl_graph_binary(g, KL_OP_OR, code, v);
  }
  return code;
}

static void pack_levels(packer *p) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  int64_t one[] = {p->batches, 1};
  p->at = (prefixes){.n = 1,
                     .place = kl_graph_number(g, g->index, 0, 2, one),
                     .exists = kl_graph_number(g, KILN_PRED, 1, 2, one),
                     .entries = kl_graph_number(g, g->index, 1, 1, one)};
  for (uint32_t l = x->s.nbatch; l < x->s.e->nlevels;) switch (x->s.e->levels[l].format) {
    case KILN_LEVEL_DENSE: dense(p, l++); break;
    case KILN_LEVEL_STRUCTURED: structured(p, l++); break;
    default: l = compressed(p, l);
    }
  put_values(p);
}

// Without batches there is nothing to store, nor to need.
static void pack_nothing(packer *p) {
  static const int64_t none = 0, one = 1;
  uint64_t zero[2] = {0};
  p->batches = 1;
  for (uint32_t i = 0; i < p->x->nbuffers; i++) {
    p->out[i] = kl_graph_bits(p->g, p->x->types[i], zero, 1, &none);
    p->need[i] = kl_graph_number(p->g, p->g->index, 0, 1, &one);
  }
}

static uint32_t pack(packer *p, uint32_t dense_tensor) {
  kl_graph *g = p->g;
  const kl_tensor *x = p->x;
  uint32_t n = x->s.e->nlevels;
  space s = {.n = 1, .wanted = KL_NEW_N(&g->scratch, bool, n + 1u)};
  bool counts = false;
  if (!p->batches) {
    pack_nothing(p);
  } else {
    for (uint32_t l = 0; l < n; l++) {
      s.wanted[l] = x->values[l] != NULL;
      counts |= !s.wanted[l];
      if (s.wanted[l]) s.n *= x->sizes[l];
    }
    if (!x->shape->count) {
      s.n = x->space;
      s.values = kl_graph_bits(g, x->shape->dtype, x->implicit, 1, &s.n);
      s.stored = kl_graph_number(g, KILN_PRED, 0, 1, &s.n);
    } else {
      lay_out(p, dense_tensor, &s);
      if (counts) count_slots(p, &s);
    }
    p->n = s.n / p->batches;
    p->values = table(p, s.values, p->n);
    p->stored = table(p, s.stored, p->n);
    if (x->has_explicit) note_wrong(p, KL_PACK_VALUE, both(p, p->stored, kl_graph_differs(g, p->values, x->explicit)));
    pack_levels(p);
  }
  p->out[x->nbuffers] = kl_put_counts(g, x, p->need, code_of(p));
  return kl_graph_tuple(g, x->nbuffers + 1, p->out);
}

uint32_t kl_pack_tensor(kl_graph *g, const kl_tensor *x, const char *name) {
  packer p = {.g = g, .x = x, .batches = kl_tensor_batches(x), .wrong = {NONE, NONE, NONE, NONE}};
  p.out = KL_NEW_N(&g->scratch, uint32_t, x->nbuffers + 1u);
  p.need = KL_NEW_N(&g->scratch, uint32_t, x->nbuffers + 1u);
  g->index = x->narrow ? KILN_S32 : KILN_S64;
  kl_graph_begin(g);
  uint32_t dense_tensor =
      kl_graph_parameter(g, 0, kl_shape_array(g->m, x->shape->dtype, x->shape->rank, x->shape->dims), "dense");
  return kl_graph_end(g, name, pack(&p, dense_tensor));
}

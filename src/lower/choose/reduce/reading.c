// Which of a reduction's elements are neighbours where they are read, and so which kernel makes it.
//
// The order in which elements are folded is the graph's. That in which rows are taken is the kernel's: with the kept
// dimensions in the order of what is read, a reduction of a transposed operand is one of columns, whatever the class of
// its order. It is found by counting sectors that a warp touches in both orders.

#include "lower/choose/reduce/reduce.h"

// Elements that a warp asks for at once.
enum { AT_ONCE = 128, SECTOR_BITS = 256 };

// Something with an element for each of most elements that are reduced: how far apart neighbours in each dimension lie.
typedef struct array {
  unsigned bits;
  int64_t first, count; // the place of the first element; elements of the array
  int64_t stride[KILN_MAX_RANK];
} array;

typedef struct reading {
  kl_choosing *c;
  const kl_reductions *x;
  VEC(array) arrays;
} reading;

// --- what is read and written ---------------------------------------------------------------------------------------

static void add_array(reading *r, const kl_aff *place, unsigned bits, int64_t elements) {
  const kl_shape *s = r->x->shape;
  array a = {.bits = bits, .first = place->c, .count = elements};
  int64_t count = 1;
  if (place->error) return;
  for (uint32_t i = 0; i < place->n; i++) {
    const kl_aff_term *t = &place->terms[i];
    if (t->atom->kind == KL_AFF_RT) continue;
    if (t->atom->kind != KL_AFF_DIM) return;
    a.stride[t->atom->var] = t->coef;
    count *= s->dims[t->atom->var];
  }
  if (count >= s->count / 2) VEC_PUSH(r->c->cx, &r->arrays, a);
}

static kiln_status find_read(reading *r, const kl_aff *const *dims) {
  const kl_reductions *x = r->x;
  kl_choosing *c = r->c;
  kl_sights seen = {0};
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n; i++) n += x->reducer[i].nvalues;
  kl_look *looks = KL_NEW_N(c->arena, kl_look, n);
  n = 0;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < x->reducer[i].nvalues; k++)
      looks[n++] = (kl_look){.instr = x->instr[i]->operands[k], .index = dims};
  kiln_status st = kl_walk_look(c->cx, c->plan, &c->slots, x->shape->rank, x->shape->dims, n, looks, &seen);
  for (size_t i = 0; i < seen.v.n; i++) {
    const kl_seen *s = &seen.v.p[i];
    int64_t count = s->slot == KL_NONE ? 0 : c->slots.v.p[s->slot].shape->count;
    if (s->place) add_array(r, s->place, kl_info(s->dtype)->bits, count);
  }
  VEC_FREE(c->cx, &seen.v);
  return st;
}

// False: threads that have no neighbours of a row's results would share bytes of them.
static bool find_written(reading *r, const kl_aff *const *dims) {
  kl_choosing *c = r->c;
  const kl_slots *s = &c->slots;
  uint32_t first = s->nargs - (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  for (uint32_t i = first; i < s->nargs; i++) {
    const kl_shape *shape = s->v.p[i].shape;
    if (kl_info(shape->dtype)->bits < 8) return false;
    if (!s->v.p[i].owner && kl_shape_same_dims(shape, r->x->shape))
      add_array(r, kl_position_of(c->plan->affs, shape, dims), kl_info(shape->dtype)->bits, shape->count);
  }
  return true;
}

// --- counting -------------------------------------------------------------------------------------------------------

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

// Sectors of neighbours in an order of dimensions, the fastest first, for all elements.
static int64_t sectors_of(const reading *r, const array *a, const uint32_t *order) {
  const kl_shape *s = r->x->shape;
  int64_t seen[AT_ONCE], n = 0, all = s->count < AT_ONCE ? s->count : AT_ONCE;
  for (int64_t i = 0; i < all; i++) {
    int64_t rest = i, at = 0, k = 0;
    for (uint32_t d = 0; d < s->rank && rest; d++) {
      at += rest % s->dims[order[d]] * a->stride[order[d]];
      rest /= s->dims[order[d]];
    }
    at = floor_div(at * a->bits, SECTOR_BITS);
    while (k < n && seen[k] != at) k++;
    if (k == n) seen[n++] = at;
  }
  return n * kl_ceil_div(s->count, all);
}

static int64_t sectors_of_all(const reading *r, const uint32_t *order) {
  int64_t sum = 0;
  for (size_t i = 0; i < r->arrays.n; i++) sum += sectors_of(r, &r->arrays.p[i], order);
  return sum;
}

// --- orders ---------------------------------------------------------------------------------------------------------

// Can the strides be multiplied and added up?
static bool is_small(const reading *r) {
  const kl_shape *s = r->x->shape;
  if (s->count > INT64_MAX / AT_ONCE) return false;
  for (size_t i = 0; i < r->arrays.n; i++)
    for (uint32_t d = 0; d < s->rank; d++) {
      int64_t stride = r->arrays.p[i].stride[d], most = INT64_MAX / 1024 / AT_ONCE;
      if (stride > most || stride < -most) return false;
    }
  return true;
}

static bool is_kept(const kl_reductions *x, uint32_t d) {
  for (uint32_t i = 0; i < x->nkept; i++)
    if (x->kept[i] == d) return true;
  return false;
}

// The order of dimensions in memory as an array has them, the fastest first; those of one index last.
static void order_of(const reading *r, const array *a, uint32_t *order) {
  const kl_shape *s = r->x->shape;
  int64_t key[KILN_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t stride = a->stride[d] < 0 ? -a->stride[d] : a->stride[d];
    key[d] = s->dims[d] == 1 || !stride ? INT64_MAX : stride;
  }
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t at = i, d = (uint32_t)kl_shape_minor_to_major(s, i);
    for (; at > 0 && key[order[at - 1]] > key[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
}

int64_t kl_minor_columns(const kl_reductions *x, const uint32_t *order) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->shape->rank; i++) {
    if (is_kept(x, order[i]))
      n *= x->shape->dims[order[i]];
    else if (x->shape->dims[order[i]] > 1)
      break;
  }
  return n;
}

// As a kernel of columns takes elements: neighbours that are kept, what is reduced in the order of its numbers, and the
// rest of what is kept.
static void as_columns(const kl_reductions *x, const uint32_t *order, uint32_t *out) {
  uint32_t n = 0, minor = 0;
  while (minor < x->shape->rank && (is_kept(x, order[minor]) || x->shape->dims[order[minor]] == 1)) minor++;
  for (uint32_t i = 0; i < minor; i++)
    if (is_kept(x, order[i])) out[n++] = order[i];
  for (uint32_t i = x->nreduced; i-- > 0;) out[n++] = x->reduced[i];
  for (uint32_t i = minor; i < x->shape->rank; i++)
    if (is_kept(x, order[i])) out[n++] = order[i];
}

static void take_order(kl_reductions *x, const uint32_t *order) {
  uint32_t kept[KILN_MAX_RANK], n = x->nkept;
  for (uint32_t i = 0; i < x->shape->rank; i++)
    if (is_kept(x, order[i])) kept[--n] = order[i];
  memcpy(x->kept, kept, x->nkept * sizeof *kept);
  x->across = true;
  x->minor = kl_minor_columns(x, order);
}

// Lie rows one behind the other, each in the order of its numbers?
static bool is_flat(const kl_reductions *x, const array *a) {
  int64_t below = 1;
  for (uint32_t i = x->nreduced + x->nkept; i-- > 0;) {
    uint32_t d = i < x->nkept ? x->kept[i] : x->reduced[i - x->nkept];
    if (x->shape->dims[d] > 1 && a->stride[d] != below) return false;
    below *= x->shape->dims[d];
  }
  return a->first == 0;
}

// The largest power of two that divides the number of elements of each array.
static int64_t flat_of(const reading *r) {
  int64_t all = 0;
  for (size_t i = 0; i < r->arrays.n; i++) {
    if (!is_flat(r->x, &r->arrays.p[i])) return 0;
    all |= r->arrays.p[i].count;
  }
  return all & -all;
}

// What is kept before what is reduced.
static void kept_first(const kl_reductions *x, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t i = x->nkept; i-- > 0;) order[n++] = x->kept[i];
  for (uint32_t i = x->nreduced; i-- > 0;) order[n++] = x->reduced[i];
}

kiln_status kl_find_reading(kl_choosing *c, kl_reductions *x) {
  reading r = {.c = c, .x = x};
  uint32_t natural[KILN_MAX_RANK], order[KILN_MAX_RANK], columns[KILN_MAX_RANK], best[KILN_MAX_RANK];
  const kl_aff *dims[KILN_MAX_RANK];
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    natural[d] = (uint32_t)kl_shape_minor_to_major(x->shape, d);
    dims[d] = kl_aff_dim(c->plan->affs, d);
  }
  x->across = !x->row;
  x->minor = kl_minor_columns(x, natural);
  if (!x->shape->count) return KILN_OK;
  KL_TRY(find_read(&r, dims));
  x->flat = flat_of(&r);
  bool whole = find_written(&r, dims) && is_small(&r), found = false;
  int64_t least = whole ? sectors_of_all(&r, natural) : 0;
  for (size_t i = 0; i < r.arrays.n && whole; i++) {
    order_of(&r, &r.arrays.p[i], order);
    if (kl_minor_columns(x, order) == 1) continue;
    as_columns(x, order, columns);
    int64_t sectors = sectors_of_all(&r, columns);
    if (sectors >= least) continue;
    least = sectors;
    memcpy(best, order, sizeof best);
    found = true;
  }
  if (c->params->strategy.across && whole) {
    kept_first(x, best);
    found = true;
  }
  if (found) take_order(x, best);
  VEC_FREE(c->cx, &r.arrays);
  return KILN_OK;
}

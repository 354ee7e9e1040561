// Computations over rows whose number is given at run time.
//
// The rows are those of the results' slowest dimension. From the results back to the parameters, each array that has
// one part for each row says along which of its dimensions that is; an op is taken if row i of what it makes needs row
// i of such operands and nothing else of them. Then all of them grow to the largest number allowed, in a copy of the
// computation: for every n, its first n rows are made of the first n rows of the parameters, which lie at the beginning
// of their buffers, and are the same whatever n is.

#include "lower/choose/choose.h"

#include "ir/index/layout/layout.h"

enum { UNSEEN = -2 }; // what nobody needs

typedef struct recount {
  kl_ctx *cx;
  kl_arena *arena;
  const kl_comp *comp;
  const kl_shape *const *shapes; // of the arguments, as in the module
  int64_t rows, most;            // in the module, and at most
  int8_t **dim;                  // by instruction and leaf: that of rows, KL_NO_ROWS or UNSEEN
} recount;

static kiln_status refuse(const recount *r, const kl_instr *in, const char *why) {
  return kl_unsupported(r->cx, in->span, "%s: %s, so its element count cannot be given at run time", kl_op_name(in->op),
                        why);
}

static const char not_by_rows[] = "it is not made row by row along the results' slowest dimension";

// --- rows of operands -----------------------------------------------------------------------------------------------

static bool contains(const int64_t *p, uint32_t n, int64_t v, uint32_t *at) {
  for (*at = 0; *at < n; ++*at)
    if (p[*at] == v) return true;
  return false;
}

// The dimension before which, in an order of dimensions (NULL: the logical one), there is one element at most.
static bool first_of_rows(const recount *r, const kl_shape *s, bool in_memory, int *d) {
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t at = in_memory ? (uint32_t)kl_shape_minor_to_major(s, s->rank - 1 - i) : i;
    *d = (int)at;
    if (s->dims[at] == r->rows) return true;
    if (s->dims[at] != 1) return false;
  }
  return false;
}

// Of a reshape that leaves rows as they are.
static bool of_reshape(const recount *r, const kl_shape *from, const kl_shape *to, bool in_memory, int d, int *out) {
  int first;
  bool order = !in_memory || (kl_layout_is_order(from) && kl_layout_is_order(to));
  return order && first_of_rows(r, to, in_memory, &first) && first == d && first_of_rows(r, from, in_memory, out);
}

static bool of_reduce(const kl_instr *in, const kl_shape *operand, int d, int *out) {
  uint32_t at;
  for (uint32_t i = 0; i < operand->rank; i++)
    if (!contains(in->dims, in->ndims, i, &at) && d-- == 0) {
      *out = (int)i;
      return true;
    }
  return false;
}

// Rows are those of the indices; the array that is gathered from has them only where it goes with the indices.
static bool of_gather(const kl_instr *in, uint32_t operand, int d, int *out) {
  const kl_more *m = in->more;
  uint32_t at, batch = 0;
  if (contains(m->offset_dims.p, m->offset_dims.n, d, &at)) return false;
  for (int i = 0; i < d; i++) batch += !contains(m->offset_dims.p, m->offset_dims.n, i, &at);
  if (batch >= m->index_vector_dim) batch++;
  *out = (int)batch;
  if (operand == 1) return true;
  bool goes = contains(m->indices_batching_dims.p, m->indices_batching_dims.n, batch, &at);
  *out = goes ? (int)m->operand_batching_dims.p[at] : KL_NO_ROWS;
  return true;
}

static bool is_whole(const recount *r, const kl_slice_dim *s) {
  return s->start == 0 && s->limit == r->rows && s->stride == 1;
}

static bool is_elementwise(const kl_instr *in) {
  if (in->op == KL_OP_BITCAST_CONVERT) return false; // it may take an element apart
  return kl_op_is_elementwise(in->op) || in->op == KL_OP_STOCHASTIC_CONVERT || in->op == KL_OP_MAP;
}

// The dimension of operand k along which row i is needed for row i of dimension d of the result; false: that is not so.
static bool rows_of_operand(const recount *r, const kl_instr *in, uint32_t k, int d, int *out) {
  const kl_shape *s = kl_operand(r->comp, in, k)->shape;
  uint32_t at;
  *out = d;
  if (is_elementwise(in)) {
    if (s->rank == 0) *out = KL_NO_ROWS; // a bound, or which of two arrays it is
    return true;
  }
  switch (in->op) {
  case KL_OP_BROADCAST: *out = contains(in->dims, in->ndims, d, &at) ? (int)at : KL_NO_ROWS; return true;
  case KL_OP_TRANSPOSE: *out = (int)in->dims[d]; return true;
  case KL_OP_RESHAPE: return of_reshape(r, s, in->shape, false, d, out);
  case KL_OP_BITCAST: return of_reshape(r, s, in->shape, true, d, out);
  case KL_OP_BITCAST_CONVERT: return d < (int)s->rank;
  case KL_OP_REDUCE:
    if (k < in->noperands / 2) return of_reduce(in, s, d, out);
    *out = KL_NO_ROWS;
    return true;
  case KL_OP_SLICE: return is_whole(r, &in->slice[d]);
  case KL_OP_PAD:
    if (k) *out = KL_NO_ROWS;
    return in->pad[d].low == 0 && in->pad[d].high == 0 && in->pad[d].interior == 0;
  case KL_OP_REVERSE: return !contains(in->dims, in->ndims, d, &at);
  case KL_OP_CONCATENATE: return in->dims[0] != d;
  case KL_OP_GATHER: return of_gather(in, k, d, out);
  case KL_OP_DYNAMIC_SLICE:
    if (k) *out = KL_NO_ROWS;
    return true;
  case KL_OP_DYNAMIC_UPDATE_SLICE:
    if (k > 1) *out = KL_NO_ROWS;
    return true;
  default: return false;
  }
}

// --- from results to parameters -------------------------------------------------------------------------------------

static const kl_shape *leaf_of(const recount *r, uint32_t instr, uint32_t leaf) {
  return kl_shape_leaf(r->comp->instr[instr].shape, leaf);
}

// What `by` needs of an array: row by row along dimension d, or all of it.
static kiln_status need(recount *r, const kl_instr *by, uint32_t instr, uint32_t leaf, int d) {
  int8_t *had = &r->dim[instr][leaf];
  const kl_shape *s = leaf_of(r, instr, leaf);
  if (*had == d) return KILN_OK;
  if (*had != UNSEEN) return refuse(r, &r->comp->instr[instr], "it is needed row by row, and otherwise, too");
  if (d >= 0 && (!kl_shape_is_array(s) || s->dims[d] != r->rows)) return refuse(r, by, not_by_rows);
  *had = (int8_t)d;
  return KILN_OK;
}

// All leaves of an operand, where nothing is made row by row.
static kiln_status need_all(recount *r, const kl_instr *by, uint32_t instr) {
  for (uint32_t l = 0; l < kl_shape_leaf_count(r->comp->instr[instr].shape); l++)
    KL_TRY(need(r, by, instr, l, KL_NO_ROWS));
  return KILN_OK;
}

static kiln_status walk_tuple(recount *r, uint32_t i) {
  const kl_instr *in = &r->comp->instr[i];
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape); l++) {
    uint32_t e = kl_shape_element_of_leaf(in->shape, l);
    if (r->dim[i][l] != UNSEEN) KL_TRY(need(r, in, in->operands[e], l - in->shape->first_leaf[e], r->dim[i][l]));
  }
  return KILN_OK;
}

// Of leaves that pass as they are, from number `first` of the operand's on.
static kiln_status walk_leaves(recount *r, uint32_t i, uint32_t first) {
  const kl_instr *in = &r->comp->instr[i];
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape); l++)
    if (r->dim[i][l] != UNSEEN) KL_TRY(need(r, in, in->operands[0], first + l, r->dim[i][l]));
  return KILN_OK;
}

// A constant has rows if these are all the same.
static kiln_status check_constant(const recount *r, uint32_t i) {
  const kl_instr *in = &r->comp->instr[i];
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape); l++)
    if (r->dim[i][l] >= 0 && (!in->literal || !kl_array_is_splat(&in->literal[l])))
      return refuse(r, in, "an array of different values");
  return KILN_OK;
}

static bool grows_sizes(const recount *r, const kl_instr *in, int d) {
  return in->op == KL_OP_DYNAMIC_SLICE && in->more->sizes.p[d] == r->rows;
}

// Several results of one op (a variadic reduce) have rows alike.
static kiln_status walk_op(recount *r, uint32_t i, int d) {
  const kl_instr *in = &r->comp->instr[i];
  for (uint32_t k = 0; k < in->noperands; k++) {
    int of = KL_NO_ROWS;
    if (d == KL_NO_ROWS) {
      KL_TRY(need_all(r, in, in->operands[k]));
      continue;
    }
    if (!rows_of_operand(r, in, k, d, &of)) return refuse(r, in, not_by_rows);
    if (in->op == KL_OP_DYNAMIC_SLICE && !grows_sizes(r, in, d)) return refuse(r, in, not_by_rows);
    if (kl_operand(r->comp, in, k)->shape->dtype == KILN_TUPLE) return refuse(r, in, not_by_rows);
    KL_TRY(need(r, in, in->operands[k], 0, of));
  }
  return KILN_OK;
}

static kiln_status walk_made(recount *r, uint32_t i) {
  const kl_instr *in = &r->comp->instr[i];
  int d = UNSEEN;
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape); l++) {
    if (r->dim[i][l] == UNSEEN) continue;
    if (d != UNSEEN && d != r->dim[i][l]) return refuse(r, in, not_by_rows);
    d = r->dim[i][l];
  }
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape) && d != UNSEEN; l++) r->dim[i][l] = (int8_t)d;
  return d == UNSEEN ? KILN_OK : walk_op(r, i, d);
}

static kiln_status walk(recount *r, uint32_t i) {
  const kl_instr *in = &r->comp->instr[i];
  switch (in->op) {
  case KL_OP_PARAMETER: return KILN_OK;
  case KL_OP_CONSTANT: return check_constant(r, i);
  case KL_OP_TUPLE: return walk_tuple(r, i);
  case KL_OP_GET_TUPLE_ELEMENT: return walk_leaves(r, i, kl_operand(r->comp, in, 0)->shape->first_leaf[in->number]);
  case KL_OP_OPT_BARRIER: return walk_leaves(r, i, 0);
  default: return walk_made(r, i);
  }
}

// --- growing --------------------------------------------------------------------------------------------------------

// What is dynamic in s but for dimension d, whose size is what is given at run time.
static const bool *dynamic_beside(const recount *r, const kl_shape *s, uint32_t d) {
  bool any = false, *dynamic = KL_NEW_N(r->arena, bool, s->rank + 1);
  for (uint32_t i = 0; s->dynamic && i < s->rank; i++) any |= dynamic[i] = s->dynamic[i] && i != d;
  return any ? dynamic : NULL;
}

static const kl_shape *grow_array(const recount *r, const kl_shape *s, int d) {
  if (d < 0) return s;
  kl_shape *t = kl_arena_dup(r->arena, s, sizeof *s);
  int64_t *dims = kl_arena_dup(r->arena, s->dims, s->rank * sizeof *dims);
  dims[d] = r->most;
  t->dims = dims;
  t->dynamic = dynamic_beside(r, s, (uint32_t)d);
  t->count = s->count / r->rows * r->most;
  return t;
}

static const kl_shape *grow(const recount *r, const kl_shape *s, const int8_t *dim) {
  if (s->dtype != KILN_TUPLE) return grow_array(r, s, *dim);
  kl_shape *t = kl_arena_dup(r->arena, s, sizeof *s);
  const kl_shape **elems = KL_NEW_N(r->arena, const kl_shape *, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) elems[i] = grow(r, s->elems[i], dim + s->first_leaf[i]);
  t->elems = elems;
  return t;
}

// What says in an attribute how many rows there are.
static void grow_instr(const recount *r, kl_instr *in, const int8_t *dim) {
  int d = kl_shape_leaf_count(in->shape) ? *dim : UNSEEN;
  in->shape = grow(r, in->shape, dim);
  if (d < 0) return;
  if (in->op == KL_OP_SLICE) {
    kl_slice_dim *slice = kl_arena_dup(r->arena, in->slice, in->shape->rank * sizeof *slice);
    slice[d].limit = r->most;
    in->slice = slice;
  }
  if (in->op == KL_OP_DYNAMIC_SLICE) {
    kl_more *more = kl_arena_dup(r->arena, in->more, sizeof *more);
    int64_t *sizes = kl_arena_dup(r->arena, more->sizes.p, more->sizes.n * sizeof *sizes);
    sizes[d] = r->most;
    more->sizes.p = sizes;
    in->more = more;
  }
}

// --- arguments ------------------------------------------------------------------------------------------------------

// In its buffer, rows lie one behind the other.
static kiln_status check_memory(const recount *r, const kl_instr *in, const char *what, uint32_t number,
                                const kl_shape *buffer, int d) {
  if (d < 0) return KILN_OK;
  int first;
  if (!kl_layout_is_order(buffer) || !first_of_rows(r, buffer, true, &first) || first != d)
    return kl_unsupported(r->cx, in->span,
                          "%s %u lies otherwise in memory than row behind row, so its element count cannot be given at "
                          "run time",
                          what, number);
  return KILN_OK;
}

// What shares a byte is stored by one thread: a count must not end inside one.
static kiln_status check_bytes(const recount *r) {
  const kl_instr *root = kl_root(r->comp);
  for (size_t l = 0; l < kl_shape_leaf_count(root->shape); l++) {
    const kl_shape *s = kl_shape_leaf(root->shape, l);
    unsigned bits = kl_info(s->dtype)->bits;
    int64_t row = s->count / r->rows;
    if (bits < 8 && row * bits % 8 != 0)
      return kl_unsupported(r->cx, root->span,
                            "rows of %lld elements of %u bits end inside a byte: they have no run-time element count",
                            (long long)row, bits);
  }
  return KILN_OK;
}

static kiln_status grow_arguments(const recount *r, kl_counted *out) {
  const kl_instr *root = kl_root(r->comp);
  size_t all = kl_shape_leaf_count(root->shape), n = 0;
  for (uint32_t i = 0; i < r->comp->nparams; i++) all += kl_shape_leaf_count(r->comp->instr[r->comp->params[i]].shape);
  const kl_shape **shapes = KL_NEW_N(r->arena, const kl_shape *, all + 1);
  int64_t *rows = KL_NEW_N(r->arena, int64_t, all + 1);
  for (uint32_t i = 0; i <= r->comp->nparams; i++) {
    bool result = i == r->comp->nparams;
    uint32_t instr = result ? r->comp->root : r->comp->params[i];
    for (uint32_t l = 0; l < kl_shape_leaf_count(r->comp->instr[instr].shape); l++, n++) {
      int d = r->dim[instr][l];
      KL_TRY(check_memory(r, &r->comp->instr[instr], result ? "result" : "parameter", result ? l : i, r->shapes[n], d));
      shapes[n] = grow_array(r, r->shapes[n], d);
      rows[n] = d < 0 ? 0 : r->shapes[n]->count / r->rows;
    }
  }
  out->shapes = shapes;
  out->row_of = rows;
  return KILN_OK;
}

// --- results --------------------------------------------------------------------------------------------------------

// All results have as many rows.
static kiln_status find_rows(recount *r, int64_t max_count, int64_t *row) {
  const kl_instr *root = kl_root(r->comp);
  uint32_t n = (uint32_t)kl_shape_leaf_count(root->shape);
  const kl_shape *first = n ? kl_shape_leaf(root->shape, 0) : NULL;
  static const char none[] = "results without dimensions or elements have no run-time element count";
  if (!first || !kl_shape_is_array(first) || first->rank == 0) return kl_unsupported(r->cx, root->span, none);
  uint32_t slowest = (uint32_t)kl_shape_minor_to_major(first, first->rank - 1);
  r->rows = first->dims[slowest];
  if (r->rows == KL_DIM_UNKNOWN) return kl_unsupported(r->cx, root->span, "rows of unknown number (?) have no bound");
  if (first->count == 0) return kl_unsupported(r->cx, root->span, none);
  *row = first->count / r->rows;
  r->most = max_count / *row;
  if (first->dynamic && first->dynamic[slowest] && r->most > r->rows) r->most = r->rows;
  if (r->most < 1)
    return kl_invalid(r->cx, root->span, "max_count is %lld: expected at least one row of %lld elements",
                      (long long)max_count, (long long)*row);
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *s = kl_shape_leaf(root->shape, l);
    int d;
    if (!kl_shape_is_array(s) || s->count == 0 || !first_of_rows(r, s, true, &d))
      return kl_unsupported(r->cx, root->span,
                            "results of different numbers of rows have no common run-time element count");
    KL_TRY(need(r, root, r->comp->root, l, d));
  }
  return check_bytes(r);
}

kiln_status kl_plan_recount(kl_ctx *cx, const kl_counted *from, int64_t max_count, kl_arena *arena, kl_counted *out) {
  const kl_comp *comp = from->comp;
  recount r = {.cx = cx, .arena = arena, .comp = comp, .shapes = from->shapes};
  r.dim = KL_NEW_N(arena, int8_t *, comp->ninstr + 1);
  for (uint32_t i = 0; i < comp->ninstr; i++) {
    size_t n = kl_shape_leaf_count(comp->instr[i].shape);
    r.dim[i] = KL_NEW_N(arena, int8_t, n + 1);
    for (size_t l = 0; l <= n; l++) r.dim[i][l] = UNSEEN;
  }
  KL_TRY(find_rows(&r, max_count, &out->row));
  for (uint32_t i = comp->ninstr; i-- > 0;) KL_TRY(walk(&r, i));
  kl_comp *c = kl_arena_dup(arena, comp, sizeof *comp);
  c->instr = kl_arena_dup(arena, comp->instr, comp->ninstr * sizeof *comp->instr);
  for (uint32_t i = 0; i < comp->ninstr; i++) grow_instr(&r, &c->instr[i], r.dim[i]);
  out->comp = c;
  out->rows = r.most;
  out->dim = (const int8_t *const *)r.dim;
  return grow_arguments(&r, out);
}

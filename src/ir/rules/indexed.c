// Result shapes of ops whose data says where to read or write, or how large a dimension is; orders.
#include "ir/rules/infer.h"

static bool contains(kl_ints list, int64_t dim) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == dim) return true;
  return false;
}

// dimensions={d}: one entry, a dimension of operand 0.
static bool check_one_dim(const rule *r) {
  if (r->in->ndims != 1) return refuse(r, "expected one entry in dimensions={...}, found %u", r->in->ndims);
  if (operand(r, 0)->rank == 0)
    return refuse(r, "expected an operand of at least one dimension, found %s", text(r, operand(r, 0)));
  return kl_rule_in_range(r, r->in->dims[0], operand(r, 0)->rank);
}

// --- slices at computed places ------------------------------------------------------------------------------------

// Operands from `first` on say where a slice of operand 0 begins: one integer for each dimension, all of one type, or
// all of them as one vector.
static bool check_starts(const rule *r, uint32_t first) {
  uint32_t rank = operand(r, 0)->rank, n = r->in->noperands - first;
  if (n == 1 && operand(r, first)->rank == 1) {
    if (!kl_rule_integer(r, first)) return false;
    if (operand(r, first)->dims[0] == rank) return true;
    return refuse(r, "expected %u indices in operand %u ('%.*s'), found %s", rank, first,
                  KL_FMT(operand_name(r, first)), text(r, operand(r, first)));
  }
  if (n != rank) return refuse(r, "expected %u indices, one for each dimension, found %u", rank, n);
  for (uint32_t i = first; i < r->in->noperands; i++)
    if (!kl_rule_scalar(r, i) || !kl_rule_integer(r, i) || !kl_rule_same_dtype(r, i, first)) return false;
  return true;
}

// Sizes from 0 to the operand's, one for each dimension.
static bool check_sizes(const rule *r, const char *key, kl_ints sizes) {
  const kl_shape *s = operand(r, 0);
  if (sizes.n != s->rank) return refuse(r, "expected %u entries of %s, found %u", s->rank, key, sizes.n);
  for (uint32_t d = 0; d < s->rank; d++)
    if (sizes.p[d] < 0 || (sizes.p[d] > s->dims[d] && s->dims[d] != KL_DIM_UNKNOWN))
      return refuse(r, "expected a size from 0 to %s in dimension %u, found %lld", kl_rule_size(r, s->dims[d]), d,
                    (long long)sizes.p[d]);
  return true;
}

const kl_shape *kl_infer_dynamic_slice(rule *r) {
  kl_ints sizes = r->in->more->sizes;
  if (r->in->noperands == 0) return fail(r, "expected an operand and its indices, found no operands");
  if (!check_starts(r, 1) || !check_sizes(r, "dynamic_slice_sizes", sizes)) return NULL;
  kl_rule_take_dims(r, operand(r, 0));
  if (sizes.n) memcpy(r->dims, sizes.p, sizes.n * sizeof *sizes.p);
  return kl_rule_result(r, operand(r, 0)->dtype, sizes.n);
}

const kl_shape *kl_infer_dynamic_update_slice(rule *r) {
  if (r->in->noperands < 2)
    return fail(r, "expected an operand, an update and indices, found %u operands", r->in->noperands);
  const kl_shape *s = operand(r, 0), *update = operand(r, 1);
  if (!kl_rule_same_dtype(r, 1, 0)) return NULL;
  bool inside = update->rank == s->rank;
  for (uint32_t d = 0; inside && d < s->rank; d++)
    inside = update->dims[d] <= s->dims[d] || s->dims[d] == KL_DIM_UNKNOWN;
  if (!inside)
    return fail(r, "expected an update (operand 1) that fits into operand 0 (%s), found %s", text(r, s),
                text(r, update));
  return check_starts(r, 2) ? kl_rule_like(r, s->dtype, s) : NULL;
}

// --- gather and scatter -------------------------------------------------------------------------------------------
//
// Windows of an array (gather's operand, scatter's operands) at places that vectors of indices give. The vectors lie
// along dimension index_vector_dim of the indices; where that is their rank, each index is a vector of one. The other
// side (gather's result, scatter's updates) has, in order, the window's dimensions at offset_dims and those of the
// indices elsewhere. A window has neither the collapsed nor the batching dimensions of the array; a batching dimension
// takes its place from the indices' own.

// What the attributes are called: offset_dims, collapsed_dims, start_index_map, the batching dims of array and indices.
typedef struct indexed_names {
  const char *offset, *collapsed, *map, *array_batch, *index_batch;
} indexed_names;

static const indexed_names gather_names = {"offset_dims", "collapsed_slice_dims", "start_index_map",
                                           "operand_batching_dims", "start_indices_batching_dims"};
static const indexed_names scatter_names = {"update_window_dims", "inserted_window_dims",
                                            "scatter_dims_to_operand_dims", "input_batching_dims",
                                            "scatter_indices_batching_dims"};

static bool disjoint(const rule *r, const char *a_key, kl_ints a, const char *b_key, kl_ints b) {
  for (uint32_t i = 0; i < a.n; i++)
    if (contains(b, a.p[i]))
      return refuse(r, "expected no dimension both in %s and in %s, found %lld", a_key, b_key, (long long)a.p[i]);
  return true;
}

static int64_t index_size(const kl_shape *indices, int64_t dim) {
  return dim < indices->rank ? indices->dims[dim] : 1;
}

// Rank of the indices without their vectors.
static uint32_t places_rank(const rule *r, const kl_shape *indices) {
  return r->in->more->index_vector_dim == indices->rank ? indices->rank : indices->rank - 1;
}

// Operand `at` holds the indices.
static bool check_vectors(const rule *r, const indexed_names *names, uint32_t at) {
  const kl_shape *indices = operand(r, at);
  const kl_more *m = r->in->more;
  if (!kl_rule_integer(r, at)) return false;
  if (m->index_vector_dim < 0 || m->index_vector_dim > indices->rank)
    return refuse(r, "expected index_vector_dim from 0 to %u, found %lld", indices->rank,
                  (long long)m->index_vector_dim);
  int64_t n = index_size(indices, m->index_vector_dim);
  if (m->start_index_map.n != n)
    return refuse(r, "expected %lld entries of %s, the size of an index vector of %s, found %u", (long long)n,
                  names->map, text(r, indices), m->start_index_map.n);
  return kl_rule_dims(r, names->map, m->start_index_map, operand(r, 0)->rank, false);
}

static bool check_batching(const rule *r, const indexed_names *names, const kl_shape *indices) {
  const kl_more *m = r->in->more;
  const kl_shape *array = operand(r, 0);
  kl_ints of_array = m->operand_batching_dims, of_indices = m->indices_batching_dims;
  if (of_array.n != of_indices.n)
    return refuse(r, "expected as many entries of %s as of %s (%u), found %u", names->index_batch, names->array_batch,
                  of_array.n, of_indices.n);
  if (!kl_rule_dims(r, names->array_batch, of_array, array->rank, true) ||
      !kl_rule_dims(r, names->index_batch, of_indices, indices->rank, false) ||
      !disjoint(r, names->array_batch, of_array, names->collapsed, m->collapsed_dims) ||
      !disjoint(r, names->array_batch, of_array, names->map, m->start_index_map))
    return false;
  if (contains(of_indices, m->index_vector_dim))
    return refuse(r, "expected %s without index_vector_dim, found %lld", names->index_batch,
                  (long long)m->index_vector_dim);
  for (uint32_t i = 0; i < of_array.n; i++) {
    int64_t a = array->dims[of_array.p[i]], b = indices->dims[of_indices.p[i]];
    if (a != b)
      return refuse(r,
                    "expected batching dimensions of equal size, found %s (dimension %lld of %s) and %s (dimension "
                    "%lld of %s)",
                    kl_rule_size(r, a), (long long)of_array.p[i], text(r, array), kl_rule_size(r, b),
                    (long long)of_indices.p[i], text(r, indices));
  }
  return true;
}

// `rank`: of gather's result or scatter's updates.
static bool check_indexed(const rule *r, const indexed_names *names, uint32_t at, uint32_t rank) {
  const kl_more *m = r->in->more;
  uint32_t array = operand(r, 0)->rank;
  if (!kl_rule_dims(r, names->offset, m->offset_dims, rank, true) ||
      !kl_rule_dims(r, names->collapsed, m->collapsed_dims, array, true) || !check_batching(r, names, operand(r, at)))
    return false;
  uint32_t n = m->offset_dims.n + m->collapsed_dims.n + m->operand_batching_dims.n;
  return n == array ||
         refuse(r, "expected %u entries of %s, %s and %s together, one for each dimension of %s, found %u", array,
                names->offset, names->collapsed, names->array_batch, text(r, operand(r, 0)), n);
}

// Sizes of gather's result or bounds of scatter's updates into r->dims; `window`: one for each dimension of the array.
// Dynamic are places along a dynamic dimension of the indices, and windows as large as a dynamic dimension of the
// array.
static void put_indexed_dims(rule *r, const kl_shape *indices, const int64_t *window, uint32_t rank) {
  const kl_more *m = r->in->more;
  const kl_shape *array = operand(r, 0);
  int64_t place = 0;
  for (uint32_t i = 0, w = 0; i < rank; i++) {
    if (contains(m->offset_dims, i)) {
      while (contains(m->collapsed_dims, w) || contains(m->operand_batching_dims, w)) w++;
      r->dynamic[i] = kl_rule_dynamic(array, w) && array->dims[w] == window[w];
      r->dims[i] = window[w++];
    } else {
      place += place == m->index_vector_dim;
      r->dynamic[i] = place < indices->rank && kl_rule_dynamic(indices, (uint32_t)place);
      r->dims[i] = index_size(indices, place++);
    }
  }
}

static bool check_no_window(const rule *r, const char *key, kl_ints dims) {
  for (uint32_t i = 0; i < dims.n; i++)
    if (r->in->more->sizes.p[dims.p[i]] > 1)
      return refuse(r, "expected slice_sizes of 0 or 1 in %s, found %lld in dimension %lld", key,
                    (long long)r->in->more->sizes.p[dims.p[i]], (long long)dims.p[i]);
  return true;
}

const kl_shape *kl_infer_gather(rule *r) {
  const kl_more *m = r->in->more;
  const kl_shape *indices = operand(r, 1);
  if (!check_vectors(r, &gather_names, 1)) return NULL;
  uint64_t rank = (uint64_t)m->offset_dims.n + places_rank(r, indices);
  if (rank > KILN_MAX_RANK) return fail(r, "expected a result of at most %d dimensions, found more", KILN_MAX_RANK);
  if (!check_indexed(r, &gather_names, 1, (uint32_t)rank) || !check_sizes(r, "slice_sizes", m->sizes) ||
      !check_no_window(r, gather_names.collapsed, m->collapsed_dims) ||
      !check_no_window(r, gather_names.array_batch, m->operand_batching_dims))
    return NULL;
  put_indexed_dims(r, indices, m->sizes.p, (uint32_t)rank);
  return kl_rule_result(r, operand(r, 0)->dtype, (uint32_t)rank);
}

// --- computations of values ---------------------------------------------------------------------------------------

// A computation may work in another float type than the arrays have.
static bool same_family(kl_dtype a, kl_dtype b) {
  return a == b || (kl_is_float(a) && kl_is_float(b));
}

static bool check_param(const rule *r, const char *word, uint32_t i, kl_dtype t) {
  const kl_comp *c = kl_rule_callee(r, 0);
  const kl_shape *s = c->instr[c->params[i]].shape;
  if (kl_shape_is_array(s) && s->rank == 0 && same_family(s->dtype, t)) return true;
  return refuse(r, "expected %s[] for parameter %u of the %s '%.*s', found %s", kl_info(t)->name, i, word,
                KL_FMT(kl_symbol_text(&r->m->names, c->name)), text(r, s));
}

static bool check_param_count(const rule *r, const char *word, uint32_t n) {
  if (r->in->ncalled != 1) return refuse(r, "expected a computation as %s, found %u", word, r->in->ncalled);
  const kl_comp *c = kl_rule_callee(r, 0);
  return c->nparams == n || refuse(r, "expected %u parameters of the %s '%.*s', found %u", n, word,
                                   KL_FMT(kl_symbol_text(&r->m->names, c->name)), c->nparams);
}

// (values of the operands, values of the updates) -> the new values, all of the operands' types.
static bool check_combiner(const rule *r, uint32_t n) {
  if (!check_param_count(r, "combiner", 2 * n)) return false;
  for (uint32_t i = 0; i < 2 * n; i++)
    if (!check_param(r, "combiner", i, operand(r, i % n)->dtype)) return false;
  const kl_comp *c = kl_rule_callee(r, 0);
  const kl_shape *root = kl_root(c)->shape;
  bool ok = root->dtype == KILN_TUPLE ? root->nelems == n : n == 1;
  for (uint32_t i = 0; ok && i < n; i++) {
    const kl_shape *s = root->dtype == KILN_TUPLE ? root->elems[i] : root;
    ok = kl_shape_compatible(s, c->instr[c->params[i]].shape);
  }
  return ok || refuse(r, "expected the combiner '%.*s' to return %s of its first %u parameters, found %s",
                      KL_FMT(kl_symbol_text(&r->m->names, c->name)), n == 1 ? "the type" : "a tuple of the types", n,
                      text(r, root));
}

// The shape of operand 0, or a tuple of those of the first n; of one where it is written so.
static const kl_shape *shapes_of_operands(const rule *r, uint32_t n) {
  if (n == 1 && !kl_rule_wants_single(r)) return kl_rule_like(r, operand(r, 0)->dtype, operand(r, 0));
  const kl_shape **elems = kl_alloc(r->m->cx, n * sizeof *elems);
  for (uint32_t i = 0; i < n; i++) elems[i] = operand(r, i);
  const kl_shape *s = kl_rule_tuple(r, n, elems);
  kl_free(r->m->cx, elems, n * sizeof *elems);
  return s;
}

static bool check_updates(rule *r, uint32_t n) {
  const kl_shape *indices = operand(r, n), *updates = operand(r, n + 1);
  put_indexed_dims(r, indices, operand(r, 0)->dims, updates->rank);
  for (uint32_t i = 0; i < updates->rank; i++) {
    bool window = contains(r->in->more->offset_dims, i);
    bool unbounded = window && r->dims[i] == KL_DIM_UNKNOWN;
    if (unbounded || (window ? updates->dims[i] <= r->dims[i] : updates->dims[i] == r->dims[i])) continue;
    return refuse(r, "expected dimension %u of the updates to be %s%s as %s, found %s", i, window ? "at most " : "",
                  kl_rule_size(r, r->dims[i]), text(r, window ? operand(r, 0) : indices), text(r, updates));
  }
  return true;
}

// n operands of equal dimensions, the indices, n updates of equal dimensions and the operands' types.
static bool check_scatter_operands(const rule *r, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (!kl_rule_same_dims(r, i, 0, false) || !kl_rule_same_dtype(r, n + 1 + i, i) ||
        !kl_rule_same_dims(r, n + 1 + i, n + 1, false))
      return false;
  return true;
}

const kl_shape *kl_infer_scatter(rule *r) {
  uint32_t n = r->in->noperands / 2;
  if (n == 0 || r->in->noperands % 2 == 0)
    return fail(r, "expected operands, indices and as many updates as operands, found %u operands", r->in->noperands);
  if (!check_scatter_operands(r, n) || !check_vectors(r, &scatter_names, n)) return NULL;
  const kl_shape *updates = operand(r, n + 1);
  uint64_t rank = (uint64_t)r->in->more->offset_dims.n + places_rank(r, operand(r, n));
  if (updates->rank != rank)
    return fail(r, "expected updates of %llu dimensions, those of windows and of indices, found %s",
                (unsigned long long)rank, text(r, updates));
  if (!check_indexed(r, &scatter_names, n, updates->rank) || !check_updates(r, n) || !check_combiner(r, n)) return NULL;
  return shapes_of_operands(r, n);
}

// --- orders -------------------------------------------------------------------------------------------------------

// The comparator takes two values of each operand: of the first, of the second and so on.
const kl_shape *kl_infer_sort(rule *r) {
  uint32_t n = r->in->noperands;
  if (n == 0) return fail(r, "expected at least one operand, found none");
  if (!check_one_dim(r)) return NULL;
  for (uint32_t i = 1; i < n; i++)
    if (!kl_rule_same_dims(r, i, 0, false)) return NULL;
  if (!check_param_count(r, "comparator", 2 * n)) return NULL;
  for (uint32_t i = 0; i < 2 * n; i++)
    if (!check_param(r, "comparator", i, operand(r, i / 2)->dtype)) return NULL;
  const kl_comp *c = kl_rule_callee(r, 0);
  if (!kl_shape_compatible(kl_rule_value(c), kl_rule_scalar_of(r, KILN_PRED)))
    return fail(r, "expected the comparator '%.*s' to return pred[], found %s",
                KL_FMT(kl_symbol_text(&r->m->names, c->name)), text(r, kl_root(c)->shape));
  return shapes_of_operands(r, n);
}

const kl_shape *kl_infer_topk(rule *r) {
  const kl_shape *s = operand(r, 0);
  int64_t k = r->in->more->k;
  if (s->rank == 0) return fail(r, "expected an operand of at least one dimension, found %s", text(r, s));
  int64_t last = s->dims[s->rank - 1];
  if (k < 0 || (k > last && last != KL_DIM_UNKNOWN))
    return fail(r, "expected k from 0 to %s, the last dimension of %s, found %lld", kl_rule_size(r, last), text(r, s),
                (long long)k);
  kl_rule_take_dims(r, s);
  r->dims[s->rank - 1] = k;
  const kl_shape *elems[2] = {kl_rule_result(r, s->dtype, s->rank), kl_rule_result(r, KILN_S32, s->rank)};
  return elems[0] && elems[1] ? kl_rule_tuple(r, 2, elems) : NULL;
}

const kl_shape *kl_infer_shuffle(rule *r) {
  return kl_rule_like(r, operand(r, 0)->dtype, operand(r, 0));
}

// --- dynamic sizes ------------------------------------------------------------------------------------------------

static bool check_size(const rule *r, uint32_t i) {
  const kl_shape *s = operand(r, i);
  if (s->dtype == KILN_S32 && s->rank == 0) return true;
  return refuse(r, "expected a size of type s32[] for operand %u ('%.*s'), found %s", i, KL_FMT(operand_name(r, i)),
                text(r, s));
}

// Where no type is written, the dimension is dynamic.
static const kl_shape *with_dynamic_dim(const rule *r, const kl_shape *s, int64_t dim) {
  bool dynamic[KILN_MAX_RANK] = {false};
  if (r->want) return kl_rule_like(r, s->dtype, s);
  for (uint32_t d = 0; d < s->rank; d++) dynamic[d] = d == dim || (s->dynamic && s->dynamic[d]);
  kl_shape own = *s;
  own.dynamic = dynamic;
  return kl_shape_intern(r->m, &own);
}

const kl_shape *kl_infer_dimension_size(rule *r) {
  if (!check_one_dim(r)) return NULL;
  if (r->in->op == KL_OP_GET_DIMENSION_SIZE) return kl_rule_scalar_of(r, KILN_S32);
  return check_size(r, 1) ? with_dynamic_dim(r, operand(r, 0), r->in->dims[0]) : NULL;
}

// The written type gives the bounds: as many elements as the operand has.
const kl_shape *kl_infer_dynamic_reshape(rule *r) {
  if (r->in->noperands == 0) return fail(r, "expected an operand and the sizes, found no operands");
  const kl_shape *s = operand(r, 0);
  if (!r->want || !kl_shape_is_array(r->want))
    return fail(r, "expected an array as the result type, found %s", r->want ? text(r, r->want) : "none");
  if (r->in->noperands - 1 != r->want->rank)
    return fail(r, "expected %u sizes, one for each dimension of %s, found %u", r->want->rank, text(r, r->want),
                r->in->noperands - 1);
  for (uint32_t i = 1; i < r->in->noperands; i++)
    if (!check_size(r, i)) return NULL;
  if (s->count != r->want->count)
    return fail(r, "expected a result of %lld elements as %s, found %s", (long long)s->count, text(r, s),
                text(r, r->want));
  return kl_rule_like(r, s->dtype, r->want);
}

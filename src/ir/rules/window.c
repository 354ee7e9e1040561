// Result shapes of contractions, windows and reductions.
#include "ir/rules/infer.h"

// --- dot ----------------------------------------------------------------------------------------------------------

static bool contains(kl_ints list, int64_t dim) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == dim) return true;
  return false;
}

static bool disjoint(const rule *r, const char *a_key, kl_ints a, const char *b_key, kl_ints b) {
  for (uint32_t i = 0; i < a.n; i++)
    if (contains(b, a.p[i]))
      return refuse(r, "expected each dimension in %s or in %s, found %lld in both", a_key, b_key, (long long)a.p[i]);
  return true;
}

// Paired dimensions of the two operands have the same size.
static bool equal_sizes(const rule *r, const char *what, kl_ints lhs, kl_ints rhs) {
  if (lhs.n != rhs.n)
    return refuse(r, "expected as many %s dimensions of the right operand as of the left (%u), found %u", what, lhs.n,
                  rhs.n);
  for (uint32_t i = 0; i < lhs.n; i++) {
    int64_t a = operand(r, 0)->dims[lhs.p[i]], b = operand(r, 1)->dims[rhs.p[i]];
    if (a != b)
      return refuse(r,
                    "expected %s dimensions of equal size, found %s (dimension %lld of %s) and %s (dimension %lld "
                    "of %s)",
                    what, kl_rule_size(r, a), (long long)lhs.p[i], text(r, operand(r, 0)), kl_rule_size(r, b),
                    (long long)rhs.p[i], text(r, operand(r, 1)));
  }
  return true;
}

static bool check_dot_dims(const rule *r, const kl_more *d) {
  uint32_t lhs = operand(r, 0)->rank, rhs = operand(r, 1)->rank;
  return kl_rule_dims(r, "lhs_batch_dims", d->lhs_batch, lhs, false) &&
         kl_rule_dims(r, "lhs_contracting_dims", d->lhs_contracting, lhs, false) &&
         kl_rule_dims(r, "rhs_batch_dims", d->rhs_batch, rhs, false) &&
         kl_rule_dims(r, "rhs_contracting_dims", d->rhs_contracting, rhs, false) &&
         disjoint(r, "lhs_batch_dims", d->lhs_batch, "lhs_contracting_dims", d->lhs_contracting) &&
         disjoint(r, "rhs_batch_dims", d->rhs_batch, "rhs_contracting_dims", d->rhs_contracting) &&
         equal_sizes(r, "batch", d->lhs_batch, d->rhs_batch) &&
         equal_sizes(r, "contracting", d->lhs_contracting, d->rhs_contracting);
}

// Appends the sizes of `s` whose dimensions are in none of the lists.
static bool append_free(rule *r, uint32_t *n, const kl_shape *s, kl_ints a, kl_ints b, kl_ints c) {
  for (uint32_t i = 0; i < s->rank; i++) {
    if (contains(a, i) || contains(b, i) || contains(c, i)) continue;
    if (*n == KILN_MAX_RANK) return refuse(r, "expected a result of at most %d dimensions, found more", KILN_MAX_RANK);
    kl_rule_take_dim(r, (*n)++, s, i);
  }
  return true;
}

// Wider of the operands' types, unless a type is written: products may be summed in a wider one.
static kl_dtype dot_dtype(const rule *r) {
  kl_dtype a = operand(r, 0)->dtype, b = operand(r, 1)->dtype;
  if (r->want && kl_shape_is_array(r->want)) return r->want->dtype;
  return kl_info(a)->bits >= kl_info(b)->bits ? a : b;
}

static bool check_dot_types(const rule *r) {
  kl_dtype a = operand(r, 0)->dtype, b = operand(r, 1)->dtype, to = dot_dtype(r);
  bool complex_in = kl_is_complex(a) || kl_is_complex(b);
  if (complex_in != kl_is_complex(to) || kl_is_complex(a) != kl_is_complex(b))
    return refuse(r, "expected operands and result all complex or none, found %s and %s to %s", kl_info(a)->name,
                  kl_info(b)->name, kl_info(to)->name);
  if ((kl_is_float(a) || kl_is_float(b)) && kl_is_int(to))
    return refuse(r, "expected a result of floats, found %s and %s to %s", kl_info(a)->name, kl_info(b)->name,
                  kl_info(to)->name);
  return true;
}

static bool check_precision(const rule *r, uint32_t n) {
  uint32_t found = r->in->more->precision.n;
  return found == 0 || found == n || refuse(r, "expected %u entries of operand_precision, found %u", n, found);
}

static const kl_shape *infer_plain_dot(rule *r) {
  const kl_more *d = r->in->more;
  uint32_t n = 0;
  kl_ints none = {0};
  for (; n < d->lhs_batch.n; n++) kl_rule_take_dim(r, n, operand(r, 0), (uint32_t)d->lhs_batch.p[n]);
  if (!append_free(r, &n, operand(r, 0), d->lhs_batch, d->lhs_contracting, none) ||
      !append_free(r, &n, operand(r, 1), d->rhs_batch, d->rhs_contracting, none))
    return NULL;
  return kl_rule_result(r, dot_dtype(r), n);
}

// A scale has the rank of what it scales; its sizes divide.
static bool check_scale(const rule *r, uint32_t i, uint32_t of) {
  const kl_shape *s = operand(r, i), *a = operand(r, of);
  if (s->rank == 0) return true;
  bool ok = s->rank == a->rank;
  for (uint32_t d = 0; ok && d < s->rank; d++) ok = s->dims[d] > 0 ? a->dims[d] % s->dims[d] == 0 : a->dims[d] == 0;
  return ok ||
         refuse(r, "expected operand %u ('%.*s') to have dimensions that divide those of operand %u (%s), found %s", i,
                KL_FMT(operand_name(r, i)), of, text(r, a), text(r, s));
}

// Where the ragged dimension lies decides the form: free on the left: groups of the right's rows of matrices;
// contracting: one result per group; batch: groups of batches.
static const kl_shape *infer_ragged_dot(rule *r) {
  const kl_more *d = r->in->more;
  const kl_shape *lhs = operand(r, 0), *rhs = operand(r, 1), *sizes = operand(r, 2);
  if (!kl_rule_dims(r, "lhs_ragged_dims", d->lhs_ragged, lhs->rank, false) ||
      !kl_rule_dims(r, "rhs_group_dims", d->rhs_group, rhs->rank, false) || !kl_rule_integer(r, 2))
    return NULL;
  if (d->lhs_ragged.n != 1) return fail(r, "expected one entry of lhs_ragged_dims, found %u", d->lhs_ragged.n);
  if (sizes->rank == 0) return fail(r, "expected group sizes of at least one dimension, found %s", text(r, sizes));
  bool contracting = contains(d->lhs_contracting, d->lhs_ragged.p[0]),
       batch = contains(d->lhs_batch, d->lhs_ragged.p[0]);
  uint32_t want = contracting || batch ? 0 : 1;
  if (d->rhs_group.n != want)
    return fail(r, "expected %u entries of rhs_group_dims for a ragged dimension that is %s, found %u", want,
                contracting ? "contracting"
                : batch     ? "a batch"
                            : "neither batch nor contracting",
                d->rhs_group.n);
  int64_t groups = sizes->dims[sizes->rank - 1];
  if (want && (contains(d->rhs_batch, d->rhs_group.p[0]) || contains(d->rhs_contracting, d->rhs_group.p[0])))
    return fail(r, "expected a group dimension that is neither batch nor contracting, found %lld",
                (long long)d->rhs_group.p[0]);
  if (want && rhs->dims[d->rhs_group.p[0]] != groups)
    return fail(r, "expected a group dimension of size %s as the group sizes, found %s", kl_rule_size(r, groups),
                kl_rule_size(r, rhs->dims[d->rhs_group.p[0]]));
  uint32_t n = 0;
  kl_ints none = {0};
  if (contracting) kl_rule_take_dim(r, n++, sizes, sizes->rank - 1);
  for (uint32_t i = 0; i < d->lhs_batch.n; i++) kl_rule_take_dim(r, n++, lhs, (uint32_t)d->lhs_batch.p[i]);
  if (!append_free(r, &n, lhs, d->lhs_batch, d->lhs_contracting, none) ||
      !append_free(r, &n, rhs, d->rhs_batch, d->rhs_contracting, d->rhs_group))
    return NULL;
  return kl_rule_result(r, dot_dtype(r), n);
}

const kl_shape *kl_infer_dot(rule *r) {
  if (!check_dot_dims(r, r->in->more) || !check_dot_types(r) || !check_precision(r, 2)) return NULL;
  if (r->in->op == KL_OP_RAGGED_DOT) return infer_ragged_dot(r);
  if (r->in->op == KL_OP_SCALED_DOT && (!check_scale(r, 2, 0) || !check_scale(r, 3, 1))) return NULL;
  return infer_plain_dot(r);
}

// --- windows ------------------------------------------------------------------------------------------------------

// 1 + (n - 1) * dilation, for n > 0.
static bool dilated(int64_t n, int64_t dilation, int64_t *out) {
  if (n <= 0) {
    *out = 0;
    return true;
  }
  return !__builtin_mul_overflow(n - 1, dilation, out) && !__builtin_add_overflow(*out, 1, out);
}

// Places of a window along one dimension; of one of unknown size nobody knows how many.
static bool window_count(const rule *r, uint32_t i, int64_t size, int64_t *out) {
  const kl_window_dim *w = &r->in->more->window[i];
  int64_t base, reach, padded;
  if (w->size < 0 || w->stride < 1 || w->base_dilation < 1 || w->window_dilation < 1)
    return refuse(r,
                  "expected size >= 0, stride and dilations >= 1 in window dimension %u, found size %lld, stride %lld, "
                  "dilations %lld and %lld",
                  i, (long long)w->size, (long long)w->stride, (long long)w->base_dilation,
                  (long long)w->window_dilation);
  *out = KL_DIM_UNKNOWN;
  if (size == KL_DIM_UNKNOWN) return true;
  if (!dilated(size, w->base_dilation, &base) || !dilated(w->size, w->window_dilation, &reach) ||
      __builtin_add_overflow(base, w->low, &padded) || __builtin_add_overflow(padded, w->high, &padded))
    return refuse(r, "expected a padded size below 2^63 in window dimension %u, found more", i);
  *out = padded < reach || padded <= 0 ? 0 : (padded - reach) / w->stride + 1;
  return true;
}

static bool has_window(const rule *r, uint32_t rank) {
  uint32_t n = r->in->more->nwindow;
  return n == rank || refuse(r, "expected a window of %u dimensions, found %u", rank, n);
}

static bool check_conv_ranks(const rule *r, const kl_conv_dims *c) {
  for (uint32_t i = 0; i < 2; i++)
    if (operand(r, i)->rank != c->n + 2)
      return refuse(r, "expected %u dimensions of operand %u ('%.*s') as the labels say, found %s", c->n + 2, i,
                    KL_FMT(operand_name(r, i)), text(r, operand(r, i)));
  return has_window(r, c->n);
}

static bool check_groups(const rule *r, const kl_conv_dims *c) {
  const kl_more *m = r->in->more;
  int64_t features = operand(r, 0)->dims[c->input_feature], batch = operand(r, 0)->dims[c->input_batch];
  int64_t kernel_in = operand(r, 1)->dims[c->kernel_input], kernel_out = operand(r, 1)->dims[c->kernel_output];
  int64_t f = m->feature_groups, b = m->batch_groups;
  if (f < 1 || b < 1 || (f > 1 && b > 1))
    return refuse(
        r, "expected feature_group_count and batch_group_count of at least 1, one of them 1, found %lld and %lld",
        (long long)f, (long long)b);
  if (features % f || features / f != kernel_in)
    return refuse(r, "expected %lld groups of %s input features as in the kernel, found %s in all", (long long)f,
                  kl_rule_size(r, kernel_in), kl_rule_size(r, features));
  if (kernel_out % f || kernel_out % b)
    return refuse(r, "expected output features that are a multiple of the groups (%lld), found %lld",
                  (long long)(f > b ? f : b), (long long)kernel_out);
  if (batch != KL_DIM_UNKNOWN && batch % b)
    return refuse(r, "expected a batch that is a multiple of batch_group_count (%lld), found %lld", (long long)b,
                  (long long)batch);
  return true;
}

const kl_shape *kl_infer_convolution(rule *r) {
  const kl_conv_dims *c = r->in->more->conv;
  if (!c) return fail(r, "expected dim_labels, found none");
  if (!check_conv_ranks(r, c) || !check_groups(r, c) || !check_dot_types(r) || !check_precision(r, 2)) return NULL;
  const kl_shape *in = operand(r, 0), *kernel = operand(r, 1);
  kl_rule_take_dim(r, (uint32_t)c->result_batch, in, (uint32_t)c->input_batch);
  kl_rule_take_dim(r, (uint32_t)c->result_feature, kernel, (uint32_t)c->kernel_output);
  if (in->dims[c->input_batch] != KL_DIM_UNKNOWN) r->dims[c->result_batch] /= r->in->more->batch_groups;
  for (uint32_t i = 0; i < c->n; i++) {
    if (kernel->dims[c->kernel[i]] != r->in->more->window[i].size)
      return fail(r, "expected a window of size %s in dimension %u as the kernel, found %lld",
                  kl_rule_size(r, kernel->dims[c->kernel[i]]), i, (long long)r->in->more->window[i].size);
    if (!window_count(r, i, in->dims[c->input[i]], &r->dims[c->result[i]])) return NULL;
    r->dynamic[c->result[i]] = kl_rule_dynamic(in, (uint32_t)c->input[i]);
  }
  return kl_rule_result(r, dot_dtype(r), c->n + 2);
}

// --- reductions ---------------------------------------------------------------------------------------------------

// n inputs of equal dims, then n initial values without; *n is their number.
static bool check_reduction(const rule *r, uint32_t *n) {
  if (r->in->noperands == 0 || r->in->noperands % 2)
    return refuse(r, "expected inputs and as many initial values, found %u operands", r->in->noperands);
  *n = r->in->noperands / 2;
  for (uint32_t i = 1; i < *n; i++)
    if (!kl_rule_same_dims(r, i, 0, false)) return false;
  for (uint32_t i = *n; i < 2 * *n; i++)
    if (!kl_rule_scalar(r, i)) return false;
  return true;
}

// NULL where the computation does not return n values.
static const kl_shape *leaf_of_root(const kl_comp *c, uint32_t i, uint32_t n) {
  const kl_shape *s = kl_root(c)->shape;
  if (n == 1 && kl_shape_is_array(s)) return s;
  return s->dtype == KILN_TUPLE && s->nelems == n ? s->elems[i] : NULL;
}

// (a0 .. an-1, x0 .. xn-1) -> (a0 .. an-1), all without dimensions: the accumulators' types go round; the inputs may be
// of narrower ones.
static bool check_reducer(const rule *r, uint32_t n) {
  const kl_comp *c = kl_rule_callee(r, 0);
  kl_str name = kl_symbol_text(&r->m->names, c->name);
  if (c->nparams != 2 * n)
    return refuse(r, "expected %u parameters of the reducer '%.*s', found %u", 2 * n, KL_FMT(name), c->nparams);
  for (uint32_t i = 0; i < 2 * n; i++) {
    const kl_shape *s = c->instr[c->params[i]].shape, *out = leaf_of_root(c, i % n, n);
    if (!kl_shape_is_array(s) || s->rank)
      return refuse(r, "expected parameter %u of the reducer '%.*s' to have no dimensions, found %s", i, KL_FMT(name),
                    text(r, s));
    if (!out || !kl_shape_is_array(out) || out->rank)
      return refuse(r, "expected the reducer '%.*s' to return %u value%s without dimensions, found %s", KL_FMT(name), n,
                    n == 1 ? "" : "s", text(r, kl_root(c)->shape));
    if (s->dtype != out->dtype)
      return refuse(r, "expected parameter %u of the reducer '%.*s' to be %s as its result, found %s", i, KL_FMT(name),
                    kl_info(out->dtype)->name, text(r, s));
  }
  return true;
}

// An accumulator is of its input's type or a wider one of the same family.
static bool widens(kl_dtype from, kl_dtype to) {
  if (from == to) return true;
  if (kl_info(from)->cls != kl_info(to)->cls) return false;
  return kl_info(to)->bits >= kl_info(from)->bits;
}

static bool check_accumulators(const rule *r, uint32_t n) {
  const kl_comp *c = kl_rule_callee(r, 0);
  for (uint32_t i = 0; i < n; i++) {
    kl_dtype acc = leaf_of_root(c, i, n)->dtype, in = operand(r, i)->dtype, init = operand(r, n + i)->dtype;
    if (!widens(in, acc) || !widens(init, acc))
      return refuse(r, "expected the reducer '%.*s' to take %s, the type of operand %u, found %s",
                    KL_FMT(kl_symbol_text(&r->m->names, c->name)), kl_info(in)->name, i, kl_info(acc)->name);
  }
  return true;
}

// One result is a tuple of one where it is written so, or where nothing is written and a reducer returns one.
static bool gives_tuple(const rule *r, uint32_t n) {
  if (n > 1 || r->want) return n > 1 || kl_rule_wants_single(r);
  return r->in->op == KL_OP_REDUCE && !kl_shape_is_array(kl_root(kl_rule_callee(r, 0))->shape);
}

// What a reduction's results hold: what the reducer returns. Where nothing is written, the windows of one operand give
// the type of the initial value; where it is written so, also the accumulators are brought back to it.
static kl_dtype reduced_dtype(const rule *r, uint32_t i, uint32_t n) {
  kl_dtype acc = leaf_of_root(kl_rule_callee(r, 0), i, n)->dtype, init = operand(r, n + i)->dtype;
  if (r->in->op != KL_OP_REDUCE_WINDOW || n > 1) return acc;
  const kl_shape *w = r->want && r->want->dtype == KILN_TUPLE && r->want->nelems == 1 ? r->want->elems[0] : r->want;
  return w && w->dtype == acc ? acc : init;
}

static const kl_shape *reduced(rule *r, uint32_t n, uint32_t rank) {
  if (!gives_tuple(r, n)) return kl_rule_result(r, reduced_dtype(r, 0, 1), rank);
  const kl_shape **elems = kl_alloc(r->m->cx, n * sizeof *elems);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) ok = (elems[i] = kl_rule_result(r, reduced_dtype(r, i, n), rank)) != NULL;
  const kl_shape *s = ok ? kl_rule_tuple(r, n, elems) : NULL;
  kl_free(r->m->cx, elems, n * sizeof *elems);
  return s;
}

static bool has_called(const rule *r, uint32_t n) {
  return r->in->ncalled == n ||
         refuse(r, "expected %u computation%s to apply, found %u", n, n == 1 ? "" : "s", r->in->ncalled);
}

const kl_shape *kl_infer_reduce(rule *r) {
  uint32_t n, rank = 0;
  kl_ints dims = {r->in->ndims, r->in->dims};
  if (!has_called(r, 1) || !check_reduction(r, &n) ||
      !kl_rule_dims(r, "dimensions", dims, operand(r, 0)->rank, false) || !check_reducer(r, n) ||
      !check_accumulators(r, n))
    return NULL;
  kl_ints none = {0};
  if (!append_free(r, &rank, operand(r, 0), dims, none, none)) return NULL;
  return reduced(r, n, rank);
}

const kl_shape *kl_infer_reduce_window(rule *r) {
  uint32_t n;
  if (!has_called(r, 1) || !check_reduction(r, &n) || !has_window(r, operand(r, 0)->rank) || !check_reducer(r, n) ||
      !check_accumulators(r, n))
    return NULL;
  kl_rule_take_dims(r, operand(r, 0));
  for (uint32_t i = 0; i < operand(r, 0)->rank; i++)
    if (!window_count(r, i, operand(r, 0)->dims[i], &r->dims[i])) return NULL;
  return reduced(r, n, operand(r, 0)->rank);
}

// Two values of operand 0's type make one.
static bool check_pairing(const rule *r, uint32_t which, const char *word, kl_dtype result) {
  const kl_shape *one = kl_rule_scalar_of(r, operand(r, 0)->dtype), *pair[2] = {one, one};
  if (!kl_rule_called(r, which, word, 2, pair, NULL)) return false;
  const kl_comp *c = kl_rule_callee(r, which);
  return kl_shape_compatible(kl_rule_value(c), kl_rule_scalar_of(r, result)) ||
         refuse(r, "expected the %s '%.*s' to return %s[], found %s", word,
                KL_FMT(kl_symbol_text(&r->m->names, c->name)), kl_info(result)->name, text(r, kl_root(c)->shape));
}

const kl_shape *kl_infer_select_and_scatter(rule *r) {
  const kl_shape *in = operand(r, 0), *source = operand(r, 1);
  if (!has_called(r, 2) || !kl_rule_same_dtype(r, 1, 0) || !kl_rule_same_dtype(r, 2, 0) || !kl_rule_scalar(r, 2) ||
      !has_window(r, in->rank))
    return NULL;
  if (!check_pairing(r, 0, "select", KILN_PRED) || !check_pairing(r, 1, "scatter", in->dtype)) return NULL;
  for (uint32_t i = 0; i < in->rank; i++) {
    const kl_window_dim *w = &r->in->more->window[i];
    if (w->base_dilation != 1 || w->window_dilation != 1)
      return fail(r, "expected a window without dilation, found it in dimension %u", i);
    if (!window_count(r, i, in->dims[i], &r->dims[i])) return NULL;
  }
  bool ok = source->rank == in->rank;
  for (uint32_t i = 0; ok && i < in->rank; i++) ok = source->dims[i] == r->dims[i];
  if (!ok)
    return fail(r, "expected a source (operand 1) of one element for every place of the window, %s, found %s",
                text(r, kl_rule_array(r, in->dtype, in->rank, r->dims)), text(r, source));
  return kl_rule_like(r, in->dtype, in);
}

// --- scan and map -------------------------------------------------------------------------------------------------

// Without dimension `dim`.
static const kl_shape *slab(rule *r, const kl_shape *s, int64_t dim) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->rank; i++)
    if (i != dim) r->dims[n++] = s->dims[i];
  return kl_rule_array(r, s->dtype, n, r->dims);
}

static const kl_shape *with_dim(rule *r, const kl_shape *s, int64_t dim, int64_t size) {
  if (s->rank == KILN_MAX_RANK) return fail(r, "expected a result of at most %d dimensions, found more", KILN_MAX_RANK);
  if (dim > s->rank)
    return fail(r, "expected outputs of at least %lld dimensions in the step, found %s", (long long)dim, text(r, s));
  for (uint32_t i = 0, k = 0; k <= s->rank; k++) r->dims[k] = k == dim ? size : s->dims[i++];
  return kl_rule_array(r, s->dtype, s->rank + 1, r->dims);
}

static bool check_scan(const rule *r, uint32_t inputs) {
  if (r->in->ndims != 1) return refuse(r, "expected one entry in dimensions={...}, found %u", r->in->ndims);
  for (uint32_t i = 0; i < inputs; i++) {
    if (!kl_rule_in_range(r, r->in->dims[0], operand(r, i)->rank)) return false;
    if (operand(r, i)->dims[r->in->dims[0]] != operand(r, 0)->dims[r->in->dims[0]])
      return refuse(r, "expected inputs of equal size in dimension %lld, found %s and %s", (long long)r->in->dims[0],
                    text(r, operand(r, 0)), text(r, operand(r, i)));
  }
  return true;
}

// (slabs of the inputs, carries) -> (slabs of the outputs, carries)
static bool check_step(rule *r, uint32_t inputs, uint32_t carries) {
  uint32_t n = inputs + carries;
  const kl_shape **params = kl_alloc(r->m->cx, n * sizeof *params);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++)
    ok = (params[i] = i < inputs ? slab(r, operand(r, i), r->in->dims[0]) : operand(r, i)) != NULL;
  ok = ok && kl_rule_called(r, 0, "step", n, params, NULL);
  kl_free(r->m->cx, params, n * sizeof *params);
  if (!ok) return false;
  const kl_comp *c = kl_rule_callee(r, 0);
  const kl_shape *root = kl_root(c)->shape;
  kl_str name = kl_symbol_text(&r->m->names, c->name);
  if (root->dtype != KILN_TUPLE || root->nelems < carries)
    return refuse(r, "expected the step '%.*s' to return a tuple of outputs and %u carries, found %s", KL_FMT(name),
                  carries, text(r, root));
  for (uint32_t k = 0; k < root->nelems; k++) {
    const kl_shape *carry = k + carries < root->nelems ? NULL : operand(r, inputs + k - (root->nelems - carries));
    if (carry && !kl_shape_compatible(root->elems[k], carry))
      return refuse(r, "expected the step '%.*s' to return %s, the type of a carry, as element %u, found %s",
                    KL_FMT(name), text(r, carry), k, text(r, root->elems[k]));
    if (!kl_shape_is_array(root->elems[k]))
      return refuse(r, "expected the step '%.*s' to return arrays, found %s", KL_FMT(name), text(r, root));
  }
  return true;
}

const kl_shape *kl_infer_scan(rule *r) {
  int64_t ncarries = r->in->more->carries;
  if (ncarries < 0 || ncarries >= r->in->noperands)
    return fail(r, "expected num_carries from 0 to less than the %u operands, found %lld", r->in->noperands,
                (long long)ncarries);
  uint32_t carries = (uint32_t)ncarries, inputs = r->in->noperands - carries;
  if (!has_called(r, 1) || !check_scan(r, inputs) || !check_step(r, inputs, carries)) return NULL;
  const kl_shape *root = kl_root(kl_rule_callee(r, 0))->shape;
  int64_t dim = r->in->dims[0], size = operand(r, 0)->dims[dim];
  uint32_t results = root->nelems, outputs = results - carries;
  const kl_shape **elems = kl_alloc(r->m->cx, results * sizeof *elems + 1);
  bool ok = true;
  for (uint32_t i = 0; i < results && ok; i++)
    ok = (elems[i] = i < outputs ? with_dim(r, root->elems[i], dim, size) : operand(r, inputs + i - outputs)) != NULL;
  const kl_shape *s = ok ? kl_rule_tuple(r, results, elems) : NULL;
  kl_free(r->m->cx, elems, results * sizeof *elems + 1);
  return s;
}

const kl_shape *kl_infer_map(rule *r) {
  uint32_t n = r->in->noperands;
  if (n == 0) return fail(r, "expected at least one operand, found none");
  if (!has_called(r, 1)) return NULL;
  const kl_shape *first = operand(r, 0);
  for (uint32_t i = 1; i < n; i++)
    if (!kl_rule_same_dims(r, i, 0, false)) return NULL;
  bool all = r->in->ndims == first->rank;
  for (uint32_t i = 0; all && i < r->in->ndims; i++) all = r->in->dims[i] == i;
  if (!all) return fail(r, "expected all dimensions in order in dimensions={...}, found %u entries", r->in->ndims);
  const kl_shape **params = kl_alloc(r->m->cx, n * sizeof *params);
  for (uint32_t i = 0; i < n; i++) params[i] = kl_rule_scalar_of(r, operand(r, i)->dtype);
  bool ok = kl_rule_called(r, 0, "mapped computation", n, params, NULL);
  kl_free(r->m->cx, params, n * sizeof *params);
  const kl_shape *out = ok ? kl_rule_value(kl_rule_callee(r, 0)) : NULL;
  if (!ok) return NULL;
  if (!kl_shape_is_array(out) || out->rank)
    return fail(r, "expected the mapped computation to return a value without dimensions, found %s", text(r, out));
  kl_rule_take_dims(r, first);
  return kl_rule_result(r, out->dtype, first->rank);
}

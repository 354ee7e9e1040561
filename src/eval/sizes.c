// Arrays with fewer elements than their type allows: set-dimension-size, and every op on what comes of it.
//
// A value whose dynamic dimension has size k is the array of k elements there: it has a shape of its own, of known
// dimensions and without layout, where that differs from the type in the text. An op on such values is the same op on
// arrays of those shapes; what shape its result has, the rules of HLO say (ir/rules), as they do when a text is read.
// Operands that should have one size have the least of theirs: what is beyond it is left out of the others.
#include "eval/impl.h"

#include "eval/indexed/index.h"
#include "ir/rewrite/transform.h"
#include "ir/rules/rules.h"

static const char *const other_sizes = "its result has other sizes than its type";

// Shapes that no text has live in a module beside the one that is evaluated.
static kiln_module *shapes_of(kl_ev *ev) {
  if (!*ev->shapes) *ev->shapes = kl_fork(ev->cx, ev->m);
  return *ev->shapes;
}

static const kl_shape *shape_of(kl_ev *ev, kl_dtype t, uint32_t rank, const int64_t *dims) {
  return kl_shape_array(shapes_of(ev), t, rank, dims);
}

// --- fewer elements, and more ---------------------------------------------------------------------------------------

// The first elements along each dimension.
static kiln_status crop(kl_ev *ev, const kl_evval *v, const int64_t *dims, kl_evval *out) {
  const kl_shape *s = shape_of(ev, v->shape->dtype, v->shape->rank, dims);
  kl_slice_dim slice[KILN_MAX_RANK];
  if (kl_shape_same_dims(s, v->shape)) return *out = kl_ev_share(v, v->shape), KILN_OK;
  for (uint32_t d = 0; d < s->rank; d++) slice[d] = (kl_slice_dim){0, dims[d], 1};
  kl_instr in = {.op = KL_OP_SLICE, .shape = s, .noperands = 1, .ndims = s->rank, .slice = slice, .more = &kl_no_more};
  return kl_ev_move(ev, &in, &v, out);
}

// As many elements as the shape has, zeros behind those of the value, which is consumed.
static kiln_status fill(kl_ev *ev, kl_evval *v, const kl_shape *s) {
  static const uint64_t zero[2];
  kl_pad_dim pad[KILN_MAX_RANK] = {{0}};
  if (kl_shape_same_dims(s, v->shape)) return v->shape = s, KILN_OK;
  for (uint32_t d = 0; d < s->rank; d++) pad[d].high = s->dims[d] - v->shape->dims[d];
  kl_instr in = {.op = KL_OP_PAD, .shape = s, .noperands = 2, .ndims = s->rank, .pad = pad, .more = &kl_no_more};
  kl_evval none = kl_ev_borrow(ev, shape_of(ev, s->dtype, 0, NULL), zero), whole;
  kiln_status status = kl_ev_move(ev, &in, (const kl_evval *const[]){v, &none}, &whole);
  kl_ev_free(ev, &none);
  kl_ev_free(ev, v);
  if (status == KILN_OK) *v = whole;
  return status;
}

kiln_status kl_ev_set_size(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                           kl_evval *out) {
  int64_t dims[KILN_MAX_RANK], at = in->dims[0], bound = in->shape->dims[at];
  const kl_shape *s = operands[0]->shape;
  bool open = false;
  int64_t size = kl_ev_index(operands[1], 0, &open);
  if (open) return kl_ev_refuse(ev, in, "its size is known within bounds only");
  if (s->rank) memcpy(dims, s->dims, s->rank * sizeof *dims);
  dims[at] = size < 0 ? 0 : size > bound ? bound : size;
  const kl_shape *to = shape_of(ev, s->dtype, s->rank, dims);
  if (dims[at] < s->dims[at]) return crop(ev, operands[0], dims, out);
  *out = kl_ev_share(operands[0], s);
  return fill(ev, out, to);
}

kiln_status kl_ev_dynamic_reshape(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                  kl_evval *out) {
  int64_t dims[KILN_MAX_RANK], n = 1;
  const kl_shape *s = in->shape;
  bool open = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t size = kl_ev_index(operands[d + 1], 0, &open);
    dims[d] = size < 0 ? 0 : size > s->dims[d] ? s->dims[d] : size;
    if (dims[d] != s->dims[d] && (!s->dynamic || !s->dynamic[d])) return kl_ev_refuse(ev, in, other_sizes);
    n *= dims[d];
  }
  if (open) return kl_ev_refuse(ev, in, "its sizes are known within bounds only");
  if (n != operands[0]->shape->count) return kl_ev_refuse(ev, in, "its sizes make another number of elements");
  const kl_shape *own = shape_of(ev, s->dtype, s->rank, dims);
  *out = kl_ev_take(ev, operands, 0, kl_shape_same_dims(own, s) ? s : own);
  return KILN_OK;
}

// --- operands -------------------------------------------------------------------------------------------------------

typedef struct sized {
  kl_ev *ev;
  const kl_instr *in;
  const kl_shape *const *declared; // of operands
  uint32_t n;
  kl_evval *own; // the operands, cut to what is taken of each
  const kl_evval **values;
  int64_t (*dims)[KILN_MAX_RANK]; // of each
} sized;

static bool among(kl_ints list, uint32_t d) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == d) return true;
  return false;
}

static void least(int64_t *a, int64_t *b) {
  *a = *b = *a < *b ? *a : *b;
}

// Operands of the same dimensions, but for dimension `skip`.
static void pair_all(sized *x, int64_t skip) {
  uint32_t rank = 0;
  for (uint32_t k = 0; k < x->n; k++) rank = x->own[k].shape->rank > rank ? x->own[k].shape->rank : rank;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t size = INT64_MAX;
    for (uint32_t k = 0; k < x->n && d != skip; k++)
      if (x->own[k].shape->rank == rank && x->dims[k][d] < size) size = x->dims[k][d];
    for (uint32_t k = 0; k < x->n && d != skip; k++)
      if (x->own[k].shape->rank == rank) x->dims[k][d] = size;
  }
}

static void pair_lists(sized *x, kl_ints a, kl_ints b) {
  for (uint32_t i = 0; i < a.n; i++) least(&x->dims[0][a.p[i]], &x->dims[1][b.p[i]]);
}

static bool is_each(const kl_window_dim *w) {
  return w->size == 1 && w->stride == 1 && !w->low && !w->high && w->base_dilation == 1;
}

// Square matrices, and those that they are solved for.
static void pair_matrices(sized *x) {
  uint32_t rank = x->own[0].shape->rank;
  int64_t *a = x->dims[0], *b = x->dims[1];
  if (rank < 2) return;
  least(&a[rank - 1], &a[rank - 2]);
  if (x->n < 2 || x->own[1].shape->rank != rank) return;
  uint32_t shared = rank - (x->in->more->left_side ? 2 : 1);
  least(&a[rank - 1], &b[shared]);
  a[rank - 2] = a[rank - 1];
  for (uint32_t d = 0; d + 2 < rank; d++) least(&a[d], &b[d]);
}

static void least_of(sized *x, uint32_t from, uint32_t to) {
  for (uint32_t d = 0; from < to && d < x->own[from].shape->rank; d++) {
    int64_t size = INT64_MAX;
    for (uint32_t k = from; k < to; k++) size = x->dims[k][d] < size ? x->dims[k][d] : size;
    for (uint32_t k = from; k < to; k++) x->dims[k][d] = size;
  }
}

// Arrays, and updates; these and indices have the same places, and all three the same batches.
static void pair_places(sized *x) {
  const kl_more *m = x->in->more;
  uint32_t n = (x->n - 1) / 2, u = 0;
  least_of(x, 0, n);
  least_of(x, n + 1, x->n);
  for (uint32_t i = 0; i < m->operand_batching_dims.n; i++)
    least(&x->dims[0][m->operand_batching_dims.p[i]], &x->dims[n][m->indices_batching_dims.p[i]]);
  for (uint32_t i = 0; i < x->own[n].shape->rank; i++) {
    if (i == m->index_vector_dim) continue;
    while (among(m->offset_dims, u)) u++;
    least(&x->dims[n][i], &x->dims[n + 1][u++]);
  }
  for (uint32_t i = 0; i < m->operand_batching_dims.n; i++)
    x->dims[0][m->operand_batching_dims.p[i]] = x->dims[n][m->indices_batching_dims.p[i]];
  least_of(x, 0, n);
  least_of(x, n + 1, x->n);
}

// Slices of all inputs, and carries, which have the dimensions of these.
static void pair_slices(sized *x) {
  const kl_instr *in = x->in;
  uint32_t inputs = x->n - (uint32_t)in->more->carries, dim = (uint32_t)in->dims[0], rank = x->own[0].shape->rank;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t size = INT64_MAX;
    for (uint32_t pass = 0; pass < 2; pass++)
      for (uint32_t k = 0; k < x->n; k++) {
        bool carry = k >= inputs;
        if ((carry && d == dim) || x->own[k].shape->rank + carry != rank) continue;
        int64_t *own = &x->dims[k][carry && d > dim ? d - 1 : d];
        if (pass)
          *own = size;
        else if (*own < size)
          size = *own;
      }
  }
}

// Features of all operands, and gradients of elements.
static void pair_features(sized *x) {
  int64_t *first = &x->dims[0][x->in->more->feature_index];
  for (uint32_t k = 1; k < x->n; k++)
    for (uint32_t d = 0; x->own[k].shape->rank > 1 && d < x->own[k].shape->rank; d++)
      least(&x->dims[0][d], &x->dims[k][d]);
  for (uint32_t k = 1; k < x->n; k++)
    if (x->own[k].shape->rank == 1) least(first, &x->dims[k][0]);
  for (uint32_t k = 1; k < x->n; k++) x->dims[k][x->own[k].shape->rank == 1 ? 0 : x->in->more->feature_index] = *first;
}

static void pair(sized *x) {
  const kl_instr *in = x->in;
  const kl_more *more = in->more;
  if (kl_op_is_elementwise(in->op)) return pair_all(x, -1);
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_MAP:
  case KL_KIND_STOCHASTIC:
  case KL_KIND_REDUCE:
  case KL_KIND_REDUCE_WINDOW:
  case KL_KIND_SORT: pair_all(x, -1); return;
  case KL_KIND_CONCATENATE: pair_all(x, in->dims[0]); return;
  case KL_KIND_DOT:
    if (in->op == KL_OP_SCALED_DOT) return;
    if (more->rhs_group.n) least(&x->dims[1][more->rhs_group.p[0]], &x->dims[2][x->own[2].shape->rank - 1]);
    pair_lists(x, more->lhs_batch, more->rhs_batch);
    pair_lists(x, more->lhs_contracting, more->rhs_contracting);
    return;
  case KL_KIND_CONVOLUTION:
    if (more->feature_groups == 1) least(&x->dims[0][more->conv->input_feature], &x->dims[1][more->conv->kernel_input]);
    return;
  case KL_KIND_CHOLESKY:
  case KL_KIND_TRIANGULAR_SOLVE: pair_matrices(x); return;
  case KL_KIND_BATCH_NORM: pair_features(x); return;
  case KL_KIND_SCAN: pair_slices(x); return;
  case KL_KIND_SCATTER: pair_places(x); return;
  case KL_KIND_GATHER: pair_lists(x, more->operand_batching_dims, more->indices_batching_dims); return;
  case KL_KIND_DYNAMIC_UPDATE_SLICE: // no more of the update than there is room for
    for (uint32_t d = 0; d < x->own[0].shape->rank; d++)
      if (x->dims[1][d] > x->dims[0][d]) x->dims[1][d] = x->dims[0][d];
    return;
  case KL_KIND_SELECT_AND_SCATTER:
    for (uint32_t d = 0; d < x->own[0].shape->rank; d++)
      if (is_each(&more->window[d])) least(&x->dims[0][d], &x->dims[1][d]);
    return;
  default: return;
  }
}

// --- the op ---------------------------------------------------------------------------------------------------------

// How many elements there are of the operand's dimensions that become dimension d of a reshape: of those behind as many
// elements as it has before it, that make its own bound together. -1: there are no such.
static int64_t taken_in(const sized *x, uint32_t d) {
  const kl_shape *was = x->declared[0], *from = x->own[0].shape, *to = x->in->shape;
  int64_t before = 1, passed = 1, bound = 1, n = 1;
  uint32_t o = 0;
  for (uint32_t i = 0; i < d; i++) before *= to->dims[i];
  while (o < was->rank && passed != before) passed *= was->dims[o++];
  for (; o < was->rank && bound != to->dims[d]; o++) {
    bound *= was->dims[o];
    n *= from->dims[o];
  }
  return passed == before && bound == to->dims[d] ? n : -1;
}

// Dimensions of the result that the text states, and no rule gives: of those that are dynamic.
static bool stated_dims(const sized *x, int64_t *dims) {
  const kl_shape *s = x->in->shape, *from = x->own[0].shape;
  if (s->rank) memcpy(dims, s->dims, s->rank * sizeof *dims);
  if (kl_op_table[x->in->op].kind == KL_KIND_BROADCAST) {
    for (uint32_t i = 0; i < from->rank; i++) dims[x->in->dims[i]] = from->dims[i];
    return true;
  }
  if (x->in->op != KL_OP_RESHAPE) { // convert, bitcast-convert
    for (uint32_t d = 0; d < s->rank && d < from->rank; d++) dims[d] = from->dims[d];
    return true;
  }
  // A dimension with as much before it, and as large as one of the operand, is that one, but where that is known and
  // stands behind one of a single element that may be missing: both may have become it. Of others one may be dynamic:
  // it has as many elements as there are for it.
  const kl_shape *was = x->declared[0];
  int64_t before = 1, rest = 1;
  int open = -1;
  for (uint32_t d = 0; d < s->rank; before *= s->dims[d++]) {
    if (!s->dynamic || !s->dynamic[d]) continue;
    int64_t b = 1;
    uint32_t o = 0;
    bool behind = false;
    for (; o < was->rank && (b != before || was->dims[o] != s->dims[d]); b *= was->dims[o++])
      behind |= b == before && was->dynamic && was->dynamic[o];
    if (o < was->rank && (!behind || was->dynamic[o]))
      dims[d] = from->dims[o];
    else if (open < 0)
      open = (int)d;
    else
      return false;
  }
  for (uint32_t d = 0; d < s->rank; d++) rest *= (int)d == open ? 1 : dims[d];
  if (open >= 0) dims[open] = rest ? from->count / rest : taken_in(x, (uint32_t)open);
  if (open >= 0 && dims[open] < 0) return false; // any number would do
  rest *= open < 0 ? 1 : dims[open];
  return rest == from->count;
}

// Is a window of a dynamic-slice or gather all that there is of dimension d?
static bool is_whole(const kl_instr *in, const kl_shape *was, uint32_t d) {
  return in->more->sizes.p[d] == was->dims[d] &&
         (in->op != KL_OP_GATHER ||
          (!among(in->more->collapsed_dims, d) && !among(in->more->operand_batching_dims, d)));
}

// Where a window is larger than what there is, zeros are there, too.
static kiln_status make_room(sized *x) {
  const kl_instr *in = x->in;
  const kl_shape *s = x->own[0].shape, *was = x->declared[0];
  int64_t dims[KILN_MAX_RANK];
  if (in->op != KL_OP_DYNAMIC_SLICE && in->op != KL_OP_GATHER) return KILN_OK;
  for (uint32_t d = 0; d < s->rank; d++) {
    bool less = !is_whole(in, was, d) && s->dims[d] < in->more->sizes.p[d];
    dims[d] = less && !among(in->more->operand_batching_dims, d) ? in->more->sizes.p[d] : s->dims[d];
  }
  return fill(x->ev, &x->own[0], shape_of(x->ev, s->dtype, s->rank, dims));
}

// A step takes slices as large as its types: there are zeros in them, too, and nothing comes of these in others where
// it is made element by element.
static kiln_status fill_slices(sized *x) {
  const kl_instr *in = x->in;
  const kl_comp *step = &x->ev->m->comp[in->called[0]];
  uint32_t inputs = x->n - (uint32_t)in->more->carries;
  for (uint32_t k = 0; k < x->n; k++) {
    const kl_shape *s = x->own[k].shape, *whole = x->declared[k];
    int64_t dims[KILN_MAX_RANK];
    bool less = false;
    for (uint32_t d = 0; d < s->rank; d++) {
      bool along = k < inputs && d == (uint32_t)in->dims[0];
      dims[d] = along ? s->dims[d] : whole->dims[d];
      less |= dims[d] != s->dims[d];
    }
    if (less && !kl_is_elementwise(step)) return kl_ev_refuse(x->ev, in, "its step takes slices of other sizes");
    if (less) KL_TRY(fill(x->ev, &x->own[k], shape_of(x->ev, s->dtype, s->rank, dims)));
  }
  return KILN_OK;
}

// And as much of its results as there is of the slices.
static kiln_status crop_slices(sized *x, kl_evval *out) {
  const int64_t *of = x->dims[0];
  uint32_t dim = (uint32_t)x->in->dims[0], rank = x->own[0].shape->rank;
  for (size_t k = 0; k < kl_shape_leaf_count(x->in->shape); k++) {
    const kl_shape *s = out[k].shape;
    int64_t dims[KILN_MAX_RANK];
    bool carry = s->rank + 1 == rank;
    if (!carry && s->rank != rank) continue;
    for (uint32_t d = 0; d < s->rank; d++) dims[d] = of[carry && d >= dim ? d + 1 : d];
    kl_evval whole = out[k];
    kiln_status status = crop(x->ev, &whole, dims, &out[k]);
    if (status != KILN_OK) return out[k] = whole, status;
    kl_ev_free(x->ev, &whole);
  }
  return KILN_OK;
}

// What attributes say of the elements that are there.
typedef struct adapted {
  kl_more more;
  int64_t sizes[KILN_MAX_RANK];
  kl_slice_dim slice[KILN_MAX_RANK];
  kl_pad_dim pad[KILN_MAX_RANK];
  kl_window_dim window[KILN_MAX_RANK];
} adapted;

// What an attribute says of a whole dimension it says of the elements that are there.
static void adapt(const sized *x, kl_instr *in, adapted *to) {
  const kl_shape *s = x->own[0].shape, *was = x->declared[0];
  kl_more *more = &to->more;
  kl_pad_dim *pad = to->pad;
  kl_slice_dim *slice = to->slice;
  int64_t *sizes = to->sizes;
  if (in->op == KL_OP_PAD) { // takes off what there is, and no more
    for (uint32_t d = 0; d < s->rank; d++) {
      pad[d] = in->pad[d];
      int64_t k = s->dims[d], n = k ? k + (k - 1) * pad[d].interior : 0;
      if (n + pad[d].low + pad[d].high < 0) pad[d].high = -n - pad[d].low;
    }
    in->pad = pad;
  }
  if (in->op == KL_OP_SLICE) {
    for (uint32_t d = 0; d < s->rank; d++) {
      slice[d] = in->slice[d];
      if (slice[d].limit > s->dims[d]) slice[d].limit = s->dims[d];
      if (slice[d].start > slice[d].limit) slice[d].start = slice[d].limit;
    }
    in->slice = slice;
  }
  bool conv = in->op == KL_OP_CONVOLUTION && in->more->conv;
  bool fft = in->op == KL_OP_FFT;
  if (in->op != KL_OP_DYNAMIC_SLICE && in->op != KL_OP_GATHER && in->op != KL_OP_TOPK && !conv && !fft) return;
  *more = *in->more;
  if (fft) { // as many points; how many real numbers a part of a spectrum is of, nobody knows
    for (uint32_t i = 0; i < more->sizes.n && i < KILN_MAX_RANK; i++) {
      bool half = more->fft == KL_IRFFT && i + 1 == more->sizes.n;
      sizes[i] = half || more->sizes.n > s->rank ? more->sizes.p[i] : s->dims[s->rank - more->sizes.n + i];
    }
    more->sizes.p = sizes;
    in->more = more;
    return;
  }
  if (conv) { // windows as large as the kernel
    for (uint32_t d = 0; d < more->nwindow && d < more->conv->n; d++) {
      to->window[d] = more->window[d];
      to->window[d].size = x->own[1].shape->dims[more->conv->kernel[d]];
    }
    more->window = to->window;
    in->more = more;
    return;
  }
  if (in->op == KL_OP_TOPK) { // as many as there are
    if (s->rank && more->k > s->dims[s->rank - 1]) more->k = s->dims[s->rank - 1];
    in->more = more;
    return;
  }
  for (uint32_t d = 0; d < s->rank; d++) {
    sizes[d] = more->sizes.p[d];
    if (is_whole(in, was, d) || sizes[d] > s->dims[d]) sizes[d] = s->dims[d]; // or no batch
  }
  more->sizes.p = sizes;
  in->more = more;
}

// Elements of the result as the text has it: where a dimension is not dynamic, all of them. One element of a slice that
// is not there is 0, and so is what topk has no element for.
static kiln_status settle(sized *x, kl_evval *out, const kl_shape *declared) {
  int64_t dims[KILN_MAX_RANK];
  bool fits = true, less = false;
  for (uint32_t d = 0; d < declared->rank; d++) {
    bool fixed = !declared->dynamic || !declared->dynamic[d];
    dims[d] = fixed ? declared->dims[d] : out->shape->dims[d];
    less |= dims[d] != out->shape->dims[d];
    fits &= out->shape->dims[d] <= declared->dims[d];
  }
  bool fills = x->in->op == KL_OP_SLICE || x->in->op == KL_OP_TOPK;
  if (!fits || (less && !fills)) return kl_ev_refuse(x->ev, x->in, other_sizes);
  if (!less) return KILN_OK;
  return fill(x->ev, out, shape_of(x->ev, declared->dtype, declared->rank, dims));
}

static kiln_status infer(sized *x, const kl_comp *c, const kl_instr *in, const kl_shape **out) {
  kl_op_kind kind = kl_op_table[in->op].kind;
  int64_t dims[KILN_MAX_RANK];
  kl_instr own = *in;
  own.shape = NULL;
  if (kind == KL_KIND_BROADCAST || kind == KL_KIND_RESHAPE || kind == KL_KIND_CONVERT || kind == KL_KIND_STOCHASTIC) {
    if (!stated_dims(x, dims)) return kl_ev_refuse(x->ev, in, other_sizes);
    own.shape = shape_of(x->ev, in->shape->dtype, in->shape->rank, dims);
  }
  if (kl_infer_shape(shapes_of(x->ev), c, &own, out) != KILN_OK)
    return kl_ev_refuse(x->ev, in, "its operands have other sizes than it takes");
  size_t n = kl_shape_leaf_count(in->shape);
  const kl_shape **leaves = kl_arena_alloc(&shapes_of(x->ev)->arena, (n + 1) * sizeof *leaves);
  for (size_t k = 0; k < n; k++) { // the text says the element types
    const kl_shape *s = kl_shape_leaf(*out, k);
    leaves[k] = shape_of(x->ev, kl_shape_leaf(in->shape, k)->dtype, s->rank, s->dims);
  }
  *out = in->shape->dtype == KILN_TUPLE ? kl_shape_tuple(shapes_of(x->ev), (uint32_t)n, leaves) : leaves[0];
  return KILN_OK;
}

// Has the scatter a window that is larger than what there is? Then no window lies in it, and nothing changes.
static bool outgrows(const sized *x) {
  uint32_t n = (x->n - 1) / 2, w = 0;
  if (x->in->op != KL_OP_SCATTER) return false;
  const kl_more *m = x->in->more;
  const kl_shape *to = x->own[0].shape, *from = x->own[n + 1].shape;
  for (uint32_t d = 0; d < to->rank; d++) {
    if (among(m->collapsed_dims, d) || among(m->operand_batching_dims, d)) continue;
    if (from->dims[m->offset_dims.p[w++]] > to->dims[d]) return true;
  }
  return false;
}

static kiln_status hand_on(sized *x, kl_evval *out) {
  size_t n = kl_shape_leaf_count(x->in->shape);
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < n; k++) out[k] = kl_ev_share(&x->own[k], x->own[k].shape);
  for (size_t k = 0; k < n && status == KILN_OK; k++) status = settle(x, &out[k], kl_shape_leaf(x->in->shape, k));
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_ev_free(x->ev, &out[k]);
  return status;
}

static kiln_status run(sized *x, kl_evval *out) {
  adapted own;
  kl_instr in = *x->in;
  kl_instr *all = kl_alloc(x->ev->cx, (x->n + 1) * sizeof *all);
  uint32_t *operands = kl_alloc(x->ev->cx, (x->n + 1) * sizeof *operands);
  for (uint32_t k = 0; k < x->n; k++) {
    all[k] = (kl_instr){.op = KL_OP_PARAMETER, .name = in.name, .shape = x->own[k].shape, .number = k};
    operands[k] = k;
  }
  kl_comp c = {.name = in.name, .ninstr = x->n, .instr = all};
  in.operands = operands;
  adapt(x, &in, &own);
  const kl_shape *shape;
  kiln_status status = infer(x, &c, &in, &shape);
  in.shape = shape;
  if (status == KILN_OK) status = kl_ev_apply(x->ev, &c, &in, x->values, out);
  size_t n = kl_shape_leaf_count(x->in->shape);
  bool made = status == KILN_OK;
  if (made && in.op == KL_OP_SCAN) status = crop_slices(x, out);
  for (size_t k = 0; k < n && status == KILN_OK; k++) status = settle(x, &out[k], kl_shape_leaf(x->in->shape, k));
  for (size_t k = 0; k < n && made && status != KILN_OK; k++) kl_ev_free(x->ev, &out[k]);
  kl_free(x->ev->cx, operands, (x->n + 1) * sizeof *operands);
  kl_free(x->ev->cx, all, (x->n + 1) * sizeof *all);
  return status;
}

// Ops that hand arrays on, or ask for their sizes, as they are.
static bool keeps_sizes(const kl_instr *in) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_TUPLE:
  case KL_KIND_GTE:
  case KL_KIND_CALL:
  case KL_KIND_WHILE:
  case KL_KIND_CONDITIONAL:
  case KL_KIND_FORWARD:
  case KL_KIND_ASYNC:
  case KL_KIND_COPY_ASYNC:
  case KL_KIND_TOKEN:
  case KL_KIND_DIMENSION_SIZE:
  case KL_KIND_DYNAMIC_RESHAPE: return true;
  default: return in->op == KL_OP_COPY;
  }
}

// Ops whose meaning is that of a whole type, or of memory.
static bool is_of_arrays(const kl_instr *in) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_BITCAST:
  case KL_KIND_SHUFFLE:
  case KL_KIND_CUSTOM_CALL: return false;
  default: return kl_op_table[in->op].kind < KL_KIND_TUPLE;
  }
}

kiln_status kl_ev_sized(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  if (in->op == KL_OP_COPY) return kl_ev_forward(ev, c, in, operands, out);
  if (keeps_sizes(in)) return kl_ev_apply(ev, c, in, operands, out);
  if (!is_of_arrays(in)) return kl_ev_refuse(ev, in, "an operand has fewer elements than its type");
  kl_ctx *cx = ev->cx;
  uint32_t n = in->noperands;
  const kl_shape **declared = kl_alloc(cx, (n + 1) * sizeof *declared);
  sized x = {.ev = ev, .in = in, .declared = declared, .n = n};
  kiln_status status = KILN_OK;
  uint32_t made = 0;
  x.own = kl_alloc(cx, (n + 1) * sizeof *x.own);
  x.values = kl_alloc(cx, (n + 3) * sizeof *x.values); // elementwise ops look at three
  x.dims = kl_alloc(cx, (n + 1) * sizeof *x.dims);
  for (uint32_t k = 0; k < n; k++) {
    declared[k] = kl_operand(c, in, k)->shape;
    x.own[k] = *operands[k]; // to look at
    if (operands[k]->shape->rank)
      memcpy(x.dims[k], operands[k]->shape->dims, operands[k]->shape->rank * sizeof(int64_t));
    x.values[k] = &x.own[k];
  }
  pair(&x);
  ev->last = NULL;
  for (; made < n && status == KILN_OK; made += status == KILN_OK)
    status = crop(ev, operands[made], x.dims[made], &x.own[made]);
  if (status == KILN_OK) status = in->op == KL_OP_SCAN ? fill_slices(&x) : make_room(&x);
  if (status == KILN_OK) status = outgrows(&x) ? hand_on(&x, out) : run(&x, out);
  for (uint32_t k = 0; k < made; k++) kl_ev_free(ev, &x.own[k]);
  kl_free(cx, x.dims, (n + 1) * sizeof *x.dims);
  kl_free(cx, x.values, (n + 3) * sizeof *x.values);
  kl_free(cx, x.own, (n + 1) * sizeof *x.own);
  kl_free(cx, declared, (n + 1) * sizeof *declared);
  return status;
}

// --- values under their types ---------------------------------------------------------------------------------------

kiln_status kl_ev_type(kl_ev *ev, const kl_instr *in, kl_evval *v, const kl_shape *s) {
  if (!kl_shape_is_array(s) || kl_shape_same_dims(v->shape, s)) return v->shape = s, KILN_OK;
  for (uint32_t d = 0; d < s->rank; d++)
    if (v->shape->dims[d] != s->dims[d] && (!s->dynamic || !s->dynamic[d])) return kl_ev_refuse(ev, in, other_sizes);
  return KILN_OK;
}

kiln_status kl_ev_whole(kl_ev *ev, kl_evval *v, const kl_shape *s) {
  return kl_shape_is_array(s) ? fill(ev, v, s) : KILN_OK;
}

// What only one device takes part in: collectives, numbers of devices.
#include "eval/impl.h"
#include "eval/indexed/index.h"

bool kl_ev_is_alone(const kl_ev *ev) {
  return ev->m->header.replica_count <= 1 && ev->m->header.num_partitions <= 1;
}

// --- collectives ----------------------------------------------------------------------------------------------------

// Is the device its own source? Otherwise it gets zeros.
static bool sends_to_itself(const kl_instr *in) {
  kl_ints pairs = in->more->pairs;
  for (uint32_t i = 0; i + 1 < pairs.n; i += 2)
    if (pairs.p[i] == 0 && pairs.p[i + 1] == 0) return true;
  return false;
}

static bool same_dims(const kl_shape *a, const kl_shape *b) {
  return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static size_t operand_leaves(const kl_comp *c, const kl_instr *in) {
  size_t n = 0;
  for (uint32_t k = 0; k < in->noperands; k++) n += kl_shape_leaf_count(kl_operand(c, in, k)->shape);
  return n;
}

// Leaves `from` and on of the result are the operands', or zeros.
static kiln_status hand_on(kl_ev *ev, const kl_instr *in, size_t from, size_t n, bool zeros,
                           const kl_evval *const *operands, kl_evval *out) {
  kiln_status status = KILN_OK;
  size_t k = 0;
  for (; k < n && status == KILN_OK; k++) {
    const kl_shape *s = kl_shape_leaf(in->shape, from + k);
    if (!same_dims(s, operands[k]->shape))
      status = kl_ev_refuse(ev, in, "its result has elements of other devices, and there is one");
    else if (zeros)
      status = kl_ev_new(ev, s, false, false, &out[from + k]);
    else
      out[from + k] = kl_ev_share(operands[k], s);
  }
  for (size_t i = 0; i < from + n && status != KILN_OK; i++) kl_ev_free(ev, &out[i]);
  return status;
}

// What is kept beside operands and results is all zero.
static kiln_status fill_contexts(kl_ev *ev, const kl_instr *in, size_t from, kl_evval *out) {
  size_t n = kl_shape_leaf_count(in->shape);
  kiln_status status = KILN_OK;
  for (size_t k = from; k < n && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(in->shape, k), false, false, &out[k]);
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

// Rows of piece i that are there: from `first` of the source on to `row` of the result, `n` of them.
static int64_t piece(const kl_evval *const *operands, int64_t i, int64_t *first, int64_t *row, bool *open) {
  __int128 from = kl_ev_index(operands[2], i, open), size = kl_ev_index(operands[3], i, open);
  __int128 to = kl_ev_index(operands[4], i, open), low = 0, high = size;
  if (low < -from) low = -from;
  if (low < -to) low = -to;
  if (high > operands[0]->shape->dims[0] - from) high = operands[0]->shape->dims[0] - from;
  if (high > operands[1]->shape->dims[0] - to) high = operands[1]->shape->dims[0] - to;
  if (low >= high) return 0;
  *first = (int64_t)(from + low);
  *row = (int64_t)(to + low);
  return (int64_t)(high - low);
}

// ragged-all-to-all: pieces of rows that the device sends itself, one after the other.
static kiln_status pieces(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_evval *src = operands[0];
  const kl_shape *s = in->shape;
  int64_t strides[KILN_MAX_RANK], count = operands[2]->shape->dims[0];
  bool open = false;
  kl_ev_strides(s, strides);
  KL_TRY(kl_ev_own(ev, operands, 1, s, !kl_ev_exact(src) || !kl_ev_exact(operands[1]), out));
  out->raw = src->raw && operands[1]->raw;
  for (int64_t i = 0; i < count && s->count; i++) {
    int64_t first = 0, row = 0, n = piece(operands, i, &first, &row, &open), step = kl_ev_single(src) ? 0 : strides[0];
    kl_ev_walk w = {.src_base = first * step, .dst_base = row * strides[0]};
    kl_ev_walk_add(&w, n, step, strides[0]);
    for (uint32_t d = 1; d < s->rank; d++) kl_ev_walk_add(&w, s->dims[d], step ? strides[d] : 0, strides[d]);
    if (n) kl_ev_copy_planes(ev, &w, src, out);
  }
  if (!open || !s->count) return KILN_OK;
  kiln_status status = kl_ev_open(ev, out);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

// A start in two halves is (operands, results, ...); a done takes the results, or of all-reduce, what started is it.
kiln_status kl_ev_collective(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out) {
  bool permutes = in->op == KL_OP_COLLECTIVE_PERMUTE || in->op == KL_OP_COLLECTIVE_PERMUTE_START;
  bool starts = in->op == KL_OP_ALL_GATHER_START || in->op == KL_OP_COLLECTIVE_PERMUTE_START;
  bool zeros = permutes && !sends_to_itself(in);
  size_t n = operand_leaves(c, in), results = kl_shape_leaf_count(in->shape);
  if (in->op == KL_OP_RAGGED_ALL_TO_ALL) return pieces(ev, in, operands, out);
  if (permutes && in->noperands != 1) return kl_ev_refuse(ev, in, "it permutes into an operand");
  if (in->op == KL_OP_ALL_GATHER_DONE || in->op == KL_OP_COLLECTIVE_PERMUTE_DONE) {
    const kl_shape *tuple = kl_operand(c, in, 0)->shape;
    if (tuple->dtype != KILN_TUPLE || tuple->nelems < 2) return kl_ev_refuse(ev, in, "it was not started");
    operands += kl_shape_leaf_count(tuple->elems[0]);
    n = kl_shape_leaf_count(tuple->elems[1]);
  }
  size_t from = starts ? n : 0;
  if (starts ? results < 2 * n : results != n)
    return kl_ev_refuse(ev, in, "its result has other parts than its operands");
  KL_TRY(hand_on(ev, in, from, n, zeros, operands, out));
  for (size_t k = 0; k < from; k++) out[k] = kl_ev_share(operands[k], operands[k]->shape);
  return fill_contexts(ev, in, from + n, out);
}

// The first of one.
kiln_status kl_ev_device_id(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                            kl_evval *out) {
  return kl_ev_new(ev, in->shape, false, false, out);
}

// The evaluator's driver: computations instruction by instruction, and results.
//
// Only what the root needs is evaluated; each array is freed after its last use, or written on by that use. Parameters
// of the whole and constants are borrowed.
#include "eval/impl.h"
#include "ir/rewrite/expand/expand.h"

#include <fenv.h>

enum {
  MAX_CALL_DEPTH = 256, // nested computations; each takes C stack
  MAX_LEAVES = 1 << 24, // arrays of one computation; tuples of tuples can name more than memory holds
};

// --- what can be evaluated ----------------------------------------------------------------------------------------

kiln_status kl_ev_refuse(kl_ev *ev, const kl_instr *in, const char *reason) {
  return kl_unsupported(ev->cx, in->span, "no evaluation of %s: %s", kl_op_name(in->op), reason);
}

static kiln_status refuse_unknown(kl_ev *ev, const kl_instr *in) {
  kl_str name = kl_symbol_text(&ev->m->names, in->opcode_text);
  return kl_unsupported(ev->cx, in->span, "no evaluation of opcode '%.*s'", KL_FMT(name));
}

static kiln_status check_op(kl_ev *ev, const kl_comp *c, const kl_instr *in) {
  if (in->op == KL_OP_ASYNC_START && in->wrapped) {
    kl_instr wrapped = *in;
    wrapped.op = in->wrapped;
    wrapped.wrapped = KL_OP_UNKNOWN;
    wrapped.shape = in->shape->elems[1];
    return check_op(ev, c, &wrapped);
  }
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_UNKNOWN: return refuse_unknown(ev, in);
  case KL_KIND_CONSTANT: return in->literal ? KILN_OK : kl_ev_refuse(ev, in, "the text leaves out its values");
  case KL_KIND_CUSTOM_CALL: return kl_ev_check_custom_call(ev, c, in);
  case KL_KIND_COLLECTIVE: return kl_ev_is_alone(ev) ? KILN_OK : kl_ev_refuse(ev, in, "it needs other devices");
  case KL_KIND_DEVICE_ID: return kl_ev_is_alone(ev) ? KILN_OK : kl_ev_refuse(ev, in, "its value is a device's own");
  case KL_KIND_HOST: return kl_ev_refuse(ev, in, "it needs a host beside the program");
  default: return KILN_OK;
  }
}

static kiln_status check_leaf(kl_ev *ev, const kl_instr *in, const kl_shape *s) {
  if (s->dtype == KILN_TOKEN) return KILN_OK;
  if (!kl_shape_is_array(s))
    return kl_unsupported(ev->cx, in->span, "no evaluation of %s: a value of type %s", kl_op_name(in->op),
                          kiln_dtype_name(s->dtype));
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == KL_DIM_UNKNOWN) return kl_ev_refuse(ev, in, "its result has a dimension without a bound");
  return KILN_OK;
}

// Ops that compute; NULL for those that belong to devices and hosts.
static kl_ev_op *op_of(kl_op_kind k) {
  switch (k) {
  case KL_KIND_STOCHASTIC: return kl_ev_stochastic;
  case KL_KIND_DOT: return kl_ev_dot;
  case KL_KIND_CONVOLUTION: return kl_ev_convolution;
  case KL_KIND_REDUCE: return kl_ev_reduce;
  case KL_KIND_REDUCE_WINDOW: return kl_ev_reduce_window;
  case KL_KIND_SELECT_AND_SCATTER: return kl_ev_select_and_scatter;
  case KL_KIND_SCAN: return kl_ev_scan;
  case KL_KIND_MAP: return kl_ev_map;
  case KL_KIND_DYNAMIC_SLICE: return kl_ev_dynamic_slice;
  case KL_KIND_DYNAMIC_UPDATE_SLICE: return kl_ev_dynamic_update_slice;
  case KL_KIND_GATHER: return kl_ev_gather;
  case KL_KIND_SCATTER: return kl_ev_scatter;
  case KL_KIND_SORT: return kl_ev_sort;
  case KL_KIND_TOPK: return kl_ev_topk;
  case KL_KIND_SHUFFLE: return kl_ev_shuffle;
  case KL_KIND_RNG: return kl_ev_rng;
  case KL_KIND_RNG_BITS: return kl_ev_rng_bits;
  case KL_KIND_RNG_STATE: return kl_ev_rng_state;
  case KL_KIND_BATCH_NORM: return kl_ev_batch_norm;
  case KL_KIND_CHOLESKY: return kl_ev_cholesky;
  case KL_KIND_TRIANGULAR_SOLVE: return kl_ev_triangular_solve;
  case KL_KIND_FFT: return kl_ev_fft;
  case KL_KIND_DIMENSION_SIZE: return kl_ev_dimension_size;
  case KL_KIND_WHILE: return kl_ev_while;
  case KL_KIND_CONDITIONAL: return kl_ev_conditional;
  case KL_KIND_DYNAMIC_RESHAPE: return kl_ev_dynamic_reshape;
  case KL_KIND_CALL: return kl_ev_call;
  case KL_KIND_TUPLE:
  case KL_KIND_GTE:
  case KL_KIND_FORWARD: return kl_ev_forward;
  case KL_KIND_TOKEN: return kl_ev_token;
  case KL_KIND_COPY_ASYNC: return kl_ev_copy_async;
  case KL_KIND_ASYNC: return kl_ev_async;
  case KL_KIND_COLLECTIVE: return kl_ev_collective;
  case KL_KIND_DEVICE_ID: return kl_ev_device_id;
  case KL_KIND_CUSTOM_CALL: return kl_ev_custom_call;
  default: return NULL;
  }
}

kiln_status kl_ev_apply(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  kl_ev_op *op = op_of(kl_op_table[in->op].kind);
  if (op) return op(ev, c, in, operands, out);
  if (in->op == KL_OP_BITCAST_CONVERT) return kl_ev_bitcast_convert(ev, in, operands[0], out);
  if (in->op == KL_OP_COPY && !kl_shape_is_array(in->shape)) return kl_ev_forward(ev, c, in, operands, out);
  if (kl_op_is_elementwise(in->op)) return kl_ev_elementwise(ev, in, operands, out);
  if (kl_op_table[in->op].kind <= KL_KIND_PAD) return kl_ev_move(ev, in, operands, out);
  return kl_unsupported(ev->cx, in->span, "no evaluation of %s", kl_op_name(in->op));
}

// --- what is known of a computation -------------------------------------------------------------------------------

// Leaves of all instructions lie one after the other, in order and depth first.
struct kl_ev_code {
  const kl_comp *comp;
  bool *live;             // the root needs it
  uint32_t *twin;         // kl_ev_find_twins
  size_t *first;          // ninstr + 1: where an instruction's leaves begin; those that are not live have none
  const kl_shape **shape; // by leaf
  uint32_t *last_use; // by leaf: the last instruction that reads it; its own where nobody does, UINT32_MAX at the root
  uint32_t *twice;    // by leaf: the last instruction with two operands that are this leaf; 0 for none
  size_t *param;      // kl_ev_param_leaves
  size_t most;        // leaves that one instruction reads
};

static size_t leaf_count(const kl_ev_code *code, uint32_t i) {
  return code->first[i + 1] - code->first[i];
}

// What instruction i reads: its operands, or the twin that has its value.
static uint32_t read_count(const kl_ev_code *code, uint32_t i) {
  return !code->live[i] ? 0 : code->twin[i] != i ? 1 : code->comp->instr[i].noperands;
}

// The leaves that it reads of the k-th of these: all of them, but of a tuple of which it takes an element.
static void reads(const kl_ev_code *code, uint32_t i, uint32_t k, size_t *from, size_t *n) {
  const kl_instr *in = &code->comp->instr[i];
  if (code->twin[i] != i) {
    *from = code->first[code->twin[i]];
    *n = leaf_count(code, code->twin[i]);
    return;
  }
  *from = code->first[in->operands[k]];
  *n = leaf_count(code, in->operands[k]);
  if (in->op != KL_OP_GET_TUPLE_ELEMENT) return;
  const kl_shape *tuple = kl_operand(code->comp, in, k)->shape;
  *from += tuple->first_leaf[in->number];
  *n = kl_shape_leaf_count(tuple->elems[in->number]);
}

static void find_live(const kl_comp *c, bool *live) {
  live[c->root] = true;
  for (uint32_t i = c->ninstr; i-- > 0;)
    for (uint32_t k = 0; live[i] && k < c->instr[i].noperands; k++) live[c->instr[i].operands[k]] = true;
}

static kiln_status count_leaves(kl_ev *ev, kl_ev_code *code) {
  const kl_comp *c = code->comp;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    size_t n = code->live[i] ? kl_shape_leaf_count(c->instr[i].shape) : 0;
    if (code->live[i]) KL_TRY(check_op(ev, c, &c->instr[i]));
    code->first[i + 1] = code->first[i] + n;
    if (n > MAX_LEAVES || code->first[i + 1] > MAX_LEAVES)
      return kl_unsupported(ev->cx, c->instr[i].span, "more than %d arrays in tuples", MAX_LEAVES);
  }
  return KILN_OK;
}

static kiln_status find_shapes(kl_ev *ev, kl_ev_code *code) {
  for (uint32_t i = 0; i < code->comp->ninstr; i++) {
    if (code->live[i]) kl_shape_leaves(code->comp->instr[i].shape, code->shape + code->first[i]);
    for (size_t leaf = code->first[i]; leaf < code->first[i + 1]; leaf++)
      KL_TRY(check_leaf(ev, &code->comp->instr[i], code->shape[leaf]));
  }
  return KILN_OK;
}

static void find_uses(kl_ev_code *code) {
  const kl_comp *c = code->comp;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    for (size_t leaf = code->first[i]; leaf < code->first[i + 1]; leaf++) code->last_use[leaf] = i;
    size_t all = 0, from, n;
    for (uint32_t k = 0; k < read_count(code, i); k++) {
      reads(code, i, k, &from, &n);
      all += n;
      for (size_t leaf = from; leaf < from + n; leaf++) {
        if (code->last_use[leaf] == i) code->twice[leaf] = i;
        code->last_use[leaf] = i;
      }
    }
    if (all > code->most) code->most = all;
  }
  for (size_t leaf = code->first[c->root]; leaf < code->first[c->root + 1]; leaf++) code->last_use[leaf] = UINT32_MAX;
}

size_t *kl_ev_param_leaves(kl_ev *ev, const kl_comp *c) {
  size_t *first = kl_alloc(ev->cx, sizeof *first * (c->nparams + 1u));
  for (uint32_t k = 0; k < c->nparams; k++) first[k + 1] = first[k] + kl_shape_leaf_count(c->instr[c->params[k]].shape);
  return first;
}

kiln_status kl_ev_code_new(kl_ev *ev, uint32_t comp, kl_ev_code **out) {
  kl_ev_code *code = kl_alloc(ev->cx, sizeof *code);
  uint32_t n = ev->m->comp[comp].ninstr;
  code->comp = &ev->m->comp[comp];
  code->live = kl_alloc(ev->cx, n);
  code->first = kl_alloc(ev->cx, sizeof(size_t) * (n + 1u));
  code->twin = kl_alloc(ev->cx, sizeof(uint32_t) * (n + 1u));
  code->param = kl_ev_param_leaves(ev, code->comp);
  find_live(code->comp, code->live);
  kl_ev_find_twins(ev, code->comp, code->live, code->twin);
  kiln_status status = count_leaves(ev, code);
  if (status == KILN_OK) {
    size_t leaves = code->first[n] + 1;
    code->shape = kl_alloc(ev->cx, sizeof *code->shape * leaves);
    code->last_use = kl_alloc(ev->cx, sizeof(uint32_t) * leaves);
    code->twice = kl_alloc(ev->cx, sizeof(uint32_t) * leaves);
    status = find_shapes(ev, code);
  }
  if (status == KILN_OK)
    find_uses(code);
  else
    kl_ev_code_free(ev, code);
  *out = status == KILN_OK ? code : NULL;
  return status;
}

void kl_ev_code_free(kl_ev *ev, kl_ev_code *code) {
  if (!code) return;
  uint32_t n = code->comp->ninstr;
  size_t leaves = code->first[n] + 1;
  if (code->shape) kl_free(ev->cx, code->shape, sizeof *code->shape * leaves);
  if (code->last_use) kl_free(ev->cx, code->last_use, sizeof(uint32_t) * leaves);
  if (code->twice) kl_free(ev->cx, code->twice, sizeof(uint32_t) * leaves);
  kl_free(ev->cx, code->first, sizeof(size_t) * (n + 1u));
  kl_free(ev->cx, code->param, sizeof(size_t) * (code->comp->nparams + 1u));
  kl_free(ev->cx, code->twin, sizeof(uint32_t) * (n + 1u));
  kl_free(ev->cx, code->live, n);
  kl_free(ev->cx, code, sizeof *code);
}

// --- how much memory it takes -------------------------------------------------------------------------------------

// May the value be one element that stands for all?
static bool may_be_splat(const kl_comp *c, const kl_instr *in, const bool *splat) {
  bool all = in->noperands > 0;
  uint32_t n = kl_op_is_elementwise(in->op) ? in->noperands : 1; // the others of what moves elements are indices
  for (uint32_t k = 0; k < n && all; k++) all = splat[in->operands[k]] || kl_operand(c, in, k)->shape->count == 1;
  return all && kl_shape_is_array(in->shape);
}

// Does the instruction make arrays, rather than take over those of others?
static bool makes_arrays(const kl_instr *in) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_IOTA:
  case KL_KIND_BROADCAST:
  case KL_KIND_TRANSPOSE:
  case KL_KIND_SLICE:
  case KL_KIND_DYNAMIC_SLICE:
  case KL_KIND_REVERSE:
  case KL_KIND_CONCATENATE:
  case KL_KIND_PAD:
  case KL_KIND_GATHER:
  case KL_KIND_DOT:
  case KL_KIND_CONVOLUTION:
  case KL_KIND_REDUCE:
  case KL_KIND_REDUCE_WINDOW:
  case KL_KIND_RNG_BITS: return true;
  default: return kl_op_is_elementwise(in->op) && in->op != KL_OP_COPY && in->op != KL_OP_REAL;
  }
}

static int64_t added(int64_t a, int64_t b) {
  int64_t n;
  return __builtin_add_overflow(a, b, &n) ? INT64_MAX : n;
}

// The data that an instruction's leaf takes, at least.
static int64_t leaf_bytes(const kl_ev_code *code, uint32_t i, size_t leaf, bool splat) {
  const kl_shape *s = code->shape[leaf];
  if (code->twin[i] != i || splat || !makes_arrays(&code->comp->instr[i]) || !kl_shape_is_array(s)) return 0;
  int64_t size = kl_ev_plane_bytes(s, false, KL_EV_DATA);
  return size < 0 ? INT64_MAX : size;
}

// A lower bound for the bytes of the arrays that live at one time: their data alone, without what callees make and what
// instructions take over.
static int64_t least_bytes(kl_ev *ev, const kl_ev_code *code) {
  const kl_comp *c = code->comp;
  size_t leaves = code->first[c->ninstr] + 1, from, n;
  bool *splat = kl_alloc(ev->cx, c->ninstr);
  int64_t *bytes = kl_alloc(ev->cx, sizeof *bytes * leaves), live = 0, most = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    splat[i] = code->live[i] && may_be_splat(c, &c->instr[i], splat);
    for (size_t leaf = code->first[i]; leaf < code->first[i + 1]; leaf++)
      live = added(live, bytes[leaf] = leaf_bytes(code, i, leaf, splat[i]));
    most = live > most ? live : most;
    for (uint32_t k = 0; k < read_count(code, i); k++) {
      reads(code, i, k, &from, &n);
      for (size_t leaf = from; leaf < from + n; leaf++) {
        if (code->last_use[leaf] != i) continue;
        live -= bytes[leaf];
        bytes[leaf] = 0;
      }
    }
  }
  kl_free(ev->cx, bytes, sizeof *bytes * leaves);
  kl_free(ev->cx, splat, c->ninstr);
  return most;
}

static kiln_status expect_memory(kl_ev *ev, const kl_ev_code *code) {
  int64_t least = least_bytes(ev, code);
  return kl_memory_fits(ev->cx, (size_t)least)
             ? KILN_OK
             : kl_out_of_memory(ev->cx, (size_t)least, "arrays that live at one time");
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct frame {
  const kl_ev_code *code;
  kl_evval *params; // leaves of all parameters, in order
  kl_evval *leaves; // of all instructions
  const kl_evval **operands;
  bool *last;
} frame;

static kiln_status eval_parameter(frame *f, const kl_instr *in, kl_evval *out) {
  size_t from = f->code->param[in->number], n = kl_shape_leaf_count(in->shape);
  memcpy(out, f->params + from, sizeof *out * n);
  memset(f->params + from, 0, sizeof *out * n);
  return KILN_OK;
}

static kiln_status eval_constant(kl_ev *ev, const kl_instr *in, kl_evval *out) {
  for (size_t k = 0; k < kl_shape_leaf_count(in->shape); k++)
    out[k] = kl_ev_borrow(ev, in->literal[k].shape, in->literal[k].data);
  return KILN_OK;
}

static kiln_status eval_instruction(kl_ev *ev, frame *f, uint32_t i, kl_evval *out) {
  const kl_ev_code *code = f->code;
  const kl_instr *in = &code->comp->instr[i];
  if (in->op == KL_OP_PARAMETER) return eval_parameter(f, in, out);
  if (in->op == KL_OP_CONSTANT) return eval_constant(ev, in, out);
  size_t n = 0, from, count;
  bool sized = false; // some operand has fewer elements than its type
  for (uint32_t k = 0; k < read_count(code, i); k++) {
    reads(code, i, k, &from, &count);
    for (size_t leaf = from; leaf < from + count; leaf++, n++) {
      f->operands[n] = &f->leaves[leaf];
      sized |= f->leaves[leaf].shape != code->shape[leaf];
      f->last[n] = code->last_use[leaf] == i && code->twice[leaf] != i;
    }
  }
  ev->last = f->last;
  kl_ev_op *op = code->twin[i] != i ? kl_ev_forward : sized ? kl_ev_sized : kl_ev_apply;
  kiln_status status = op(ev, code->comp, in, f->operands, out);
  ev->last = NULL;
  return status;
}

// What nobody reads after instruction i: of its operands, and of its own leaves.
static void free_dead(kl_ev *ev, frame *f, uint32_t i) {
  size_t from, n;
  for (uint32_t k = 0; k < read_count(f->code, i); k++) {
    reads(f->code, i, k, &from, &n);
    for (size_t leaf = from; leaf < from + n; leaf++)
      if (f->code->last_use[leaf] == i) kl_ev_free(ev, &f->leaves[leaf]);
  }
  for (size_t leaf = f->code->first[i]; leaf < f->code->first[i + 1]; leaf++)
    if (f->code->last_use[leaf] == i) kl_ev_free(ev, &f->leaves[leaf]);
}

static kiln_status run_frame(kl_ev *ev, frame *f) {
  const kl_ev_code *code = f->code;
  for (uint32_t i = 0; i < code->comp->ninstr; i++) {
    if (!code->live[i]) continue;
    KL_TRY(eval_instruction(ev, f, i, f->leaves + code->first[i]));
    // Callee and caller may lay out one array in two ways.
    for (size_t leaf = code->first[i]; leaf < code->first[i + 1]; leaf++)
      KL_TRY(kl_ev_type(ev, &code->comp->instr[i], &f->leaves[leaf], code->shape[leaf]));
    free_dead(ev, f, i);
  }
  return KILN_OK;
}

kiln_status kl_ev_run(kl_ev *ev, const kl_ev_code *code, kl_evval *params, kl_evval *results) {
  const kl_comp *c = code->comp;
  size_t all = code->first[c->ninstr], root = code->first[c->root], n = leaf_count(code, c->root);
  frame f = {.code = code, .params = params};
  kiln_status status = KILN_OK;
  f.leaves = kl_alloc(ev->cx, sizeof(kl_evval) * (all + 1));
  f.operands = kl_alloc(ev->cx, sizeof(kl_evval *) * (code->most + 3)); // elementwise ops look at three
  f.last = kl_alloc(ev->cx, code->most + 3);
  if (ev->depth >= MAX_CALL_DEPTH)
    status = kl_unsupported(ev->cx, c->span, "computations nested more than %d deep", MAX_CALL_DEPTH);
  ev->depth++;
  if (status == KILN_OK) status = run_frame(ev, &f);
  ev->depth--;
  if (status == KILN_OK) {
    memcpy(results, f.leaves + root, sizeof(kl_evval) * n);
    memset(f.leaves + root, 0, sizeof(kl_evval) * n);
  }
  for (size_t leaf = 0; leaf < all; leaf++) kl_ev_free(ev, &f.leaves[leaf]);
  for (size_t k = 0; k < code->param[c->nparams]; k++) kl_ev_free(ev, &params[k]);
  kl_free(ev->cx, f.last, code->most + 3);
  kl_free(ev->cx, f.operands, sizeof(kl_evval *) * (code->most + 3));
  kl_free(ev->cx, f.leaves, sizeof(kl_evval) * (all + 1));
  return status;
}

kiln_status kl_ev_computation(kl_ev *ev, uint32_t comp, const kl_evval *params, kl_evval *results) {
  kl_ev_code *code;
  KL_TRY(kl_ev_code_new(ev, comp, &code));
  size_t n = code->param[code->comp->nparams];
  kl_evval *own = kl_alloc(ev->cx, sizeof(kl_evval) * (n + 1));
  for (size_t k = 0; k < n; k++) own[k] = kl_ev_share(&params[k], params[k].shape);
  kiln_status status = kl_ev_run(ev, code, own, results);
  kl_free(ev->cx, own, sizeof(kl_evval) * (n + 1));
  kl_ev_code_free(ev, code);
  return status;
}

// --- results ------------------------------------------------------------------------------------------------------

// A plane as memory of its own; shared and borrowed ones are copied.
static void *take_plane(kl_ev *ev, kl_evval *v, int plane) {
  kl_evbuf *b = v->plane[plane];
  size_t size = (size_t)kl_ev_plane_bytes(v->shape, false, plane);
  if (b->owned && b->refs == 1) {
    b->owned = false;
    return b->p;
  }
  void *p = kl_try_alloc(ev->cx, size);
  if (p && size) memcpy(p, b->p, size);
  return p;
}

static size_t bitmap_bytes(int64_t count) {
  return (size_t)(count / 64 + (count % 64 != 0)) * sizeof(uint64_t);
}

static bool take_any(kl_ev *ev, const kl_evval *v, uint64_t **out) {
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  if (!any) return true;
  *out = kl_try_alloc(ev->cx, bitmap_bytes(v->shape->count));
  for (int64_t i = 0; *out && i < v->shape->count; i++) (*out)[i / 64] |= (uint64_t)(any[i] != 0) << (i % 64);
  return *out != NULL;
}

static kiln_status make_result(kl_ev *ev, kl_evval *value, kl_result *r) {
  kl_evval v = *value;
  *r = (kl_result){0};
  if (v.shape->dtype == KILN_TOKEN) return KILN_OK;
  if (v.splat)
    KL_TRY(kl_ev_expand(ev, value, &v));
  else
    *value = (kl_evval){0};
  bool exact = v.plane[KL_EV_LO] == v.plane[KL_EV_DATA] && v.plane[KL_EV_HI] == v.plane[KL_EV_DATA], ok = true;
  *r = (kl_result){.data.shape = v.shape};
  if (exact) { // the references from lo and hi are the value's own
    for (int plane = KL_EV_LO; plane <= KL_EV_HI; plane++) v.plane[plane]->refs--;
    v.plane[KL_EV_LO] = v.plane[KL_EV_HI] = NULL;
  }
  ok = (r->data.data = take_plane(ev, &v, KL_EV_DATA)) != NULL;
  if (exact) r->lo = r->hi = r->data.data;
  if (!exact) ok = ok && (r->lo = take_plane(ev, &v, KL_EV_LO)) && (r->hi = take_plane(ev, &v, KL_EV_HI));
  ok = ok && take_any(ev, &v, &r->any);
  if (v.plane[KL_EV_ANY]) r->arranged = kl_arrangement_share(v.plane[KL_EV_ANY]->arranged);
  size_t size = (size_t)kl_ev_plane_bytes(v.shape, false, KL_EV_DATA);
  kl_ev_free(ev, &v);
  if (ok) return KILN_OK;
  kl_result_free(ev->cx, r);
  return kl_out_of_memory(ev->cx, size, "a result");
}

void kl_result_free(kl_ctx *cx, kl_result *r) {
  if (!r->data.shape) return;
  size_t size = (size_t)kl_ev_plane_bytes(r->data.shape, false, KL_EV_DATA);
  if (r->lo != r->data.data) kl_free(cx, r->lo, size);
  if (r->hi != r->data.data) kl_free(cx, r->hi, size);
  kl_free(cx, r->any, bitmap_bytes(r->data.shape->count));
  kl_arrangement_free(cx, r->arranged);
  kl_free(cx, r->data.data, size);
  *r = (kl_result){0};
}

static kiln_status make_results(kl_ev *ev, size_t n, kl_evval *values, kl_result *results) {
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < n; k++) {
    results[k] = (kl_result){0};
    if (status == KILN_OK) status = make_result(ev, &values[k], &results[k]);
    kl_ev_free(ev, &values[k]);
  }
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_result_free(ev->cx, &results[k]);
  return status;
}

// Of elements beyond a size, zeros.
static kiln_status make_whole(kl_ev *ev, const kl_shape *shape, size_t n, kl_evval *values) {
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < n && status == KILN_OK; k++) status = kl_ev_whole(ev, &values[k], kl_shape_leaf(shape, k));
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_ev_free(ev, &values[k]);
  return status;
}

static kiln_status run_on(kl_ev *ev, const kl_ev_code *code, const kl_array *args, kl_evval *values) {
  const kl_comp *c = code->comp;
  size_t n = code->param[c->nparams], at = 0;
  kl_evval *params = kl_alloc(ev->cx, sizeof(kl_evval) * (n + 1));
  const kl_shape **shape = kl_alloc(ev->cx, sizeof *shape * (n + 1));
  for (uint32_t k = 0; k < c->nparams; k++) kl_shape_leaves(c->instr[c->params[k]].shape, shape + code->param[k]);
  for (; at < n; at++) {
    bool token = shape[at]->dtype == KILN_TOKEN;
    params[at] = token ? (kl_evval){.shape = shape[at]} : kl_ev_borrow(ev, shape[at], args[at].data);
  }
  kiln_status status = kl_ev_run(ev, code, params, values);
  kl_free(ev->cx, shape, sizeof *shape * (n + 1));
  kl_free(ev->cx, params, sizeof(kl_evval) * (n + 1));
  return status;
}

static kiln_status evaluate(kl_ctx *cx, const kiln_module *m, uint32_t comp, const kl_array *args,
                            const kl_eval_opts *opts, kl_result *results) {
  static const kl_eval_opts none = {0};
  const kl_comp *c = &m->comp[comp];
  if (!opts) opts = &none;
  kl_ev ev = {.cx = cx, .m = m, .intervals = opts->intervals, .fast = opts->fast};
  ev.threads = opts->threads ? opts->threads : kl_cores();
  kiln_module *shapes = NULL;
  ev.shapes = &shapes;
  size_t n = kl_shape_leaf_count(kl_root(c)->shape);
  kl_evval *values = kl_alloc(cx, sizeof(kl_evval) * (n + 1));
  fenv_t env;
  fegetenv(&env);
  fesetenv(FE_DFL_ENV); // whatever the host process set: round to nearest, denormals kept
  kl_ev_code *code = NULL;
  kiln_status status = kl_ev_code_new(&ev, comp, &code);
  if (status == KILN_OK) status = expect_memory(&ev, code);
  if (status == KILN_OK) status = run_on(&ev, code, args, values);
  kl_ev_code_free(&ev, code);
  if (status == KILN_OK) status = make_whole(&ev, kl_root(c)->shape, n, values);
  if (status == KILN_OK) status = make_results(&ev, n, values, results);
  fesetenv(&env);
  kiln_module_destroy(&shapes);
  kl_free(cx, values, sizeof(kl_evval) * (n + 1));
  return status;
}

kiln_status kl_eval(kl_ctx *cx, const kiln_module *m, uint32_t comp, const kl_array *args, const kl_eval_opts *opts,
                    kl_result *results) {
  kiln_module *own, of = *m;
  of.entry = comp; // what that does not need is left out
  KL_TRY(kl_module_expand_calls(cx, &of, &own));
  if (!own) return evaluate(cx, m, comp, args, opts, results);
  const kl_shape *shape = kl_root(&m->comp[comp])->shape;
  kiln_status status = evaluate(cx, own, own->entry, args, opts, results);
  for (size_t k = 0, n = kl_shape_leaf_count(shape); status == KILN_OK && k < n; k++)
    if (results[k].data.shape) results[k].data.shape = kl_shape_leaf(shape, k);
  kiln_module_destroy(&own);
  return status;
}

// Structure taken out of what runs on one device, so that array ops are left.
//
// Computations come callees first, so what is put in the place of a call is plain already. A value that is a tuple is
// known by its elements: whoever takes one finds it without the tuple, which is dead where nobody wants it whole.
#include "ir/rewrite/plain.h"

#include "ir/custom/custom.h"
#include "ir/rewrite/branch.h"

enum { MOST_NEW = 1 << 20 }; // instructions more than before

typedef struct plainer {
  kl_ctx *cx;
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  bool alone; // one replica, one partition
  uint64_t limit;
  bool full;
} plainer;

// --- what stands for structure --------------------------------------------------------------------------------------

static kl_instr like(const kl_instr *from, kl_op op, const kl_shape *shape) {
  return (kl_instr){.op = op, .name = from->name, .shape = shape, .more = &kl_no_more, .span = from->span};
}

static uint32_t emit_op(plainer *p, kl_instr in, uint32_t n, const uint32_t *operands) {
  in.noperands = n;
  in.operands = kl_arena_dup(&p->m->arena, operands, n * sizeof *operands);
  return kl_emit(&p->e, &in);
}

static const kl_shape *shape_of(const plainer *p, uint32_t value) {
  return p->e.instrs.p[value].shape;
}

static uint32_t emit_tuple(plainer *p, const kl_instr *named, uint32_t n, const uint32_t *values) {
  const kl_shape **shapes = KL_NEW_N(&p->scratch, const kl_shape *, n + 1);
  for (uint32_t i = 0; i < n; i++) shapes[i] = shape_of(p, values[i]);
  return emit_op(p, like(named, KL_OP_TUPLE, kl_shape_tuple(p->m, n, shapes)), n, values);
}

// A tuple of its elements, so that these are there without it; what is no tuple, as it is.
static uint32_t take_apart(plainer *p, uint32_t value, uint32_t name) {
  kl_instr named = p->e.instrs.p[value];
  const kl_shape *s = named.shape;
  if (s->dtype != KILN_TUPLE || named.op == KL_OP_TUPLE) return value;
  uint32_t *elements = KL_NEW_N(&p->scratch, uint32_t, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) elements[i] = take_apart(p, kl_emit_element(&p->e, value, i, name), name);
  return emit_tuple(p, &named, s->nelems, elements);
}

static uint32_t element(const plainer *p, uint32_t value, uint32_t i) {
  return p->e.instrs.p[value].operands[i];
}

// The value laid out as the shape says: a copy where it lies otherwise.
static uint32_t in_layout(plainer *p, uint32_t value, const kl_shape *as) {
  if (kl_shape_same_in_memory(shape_of(p, value), as)) return value;
  if (as->dtype != KILN_TUPLE) return kl_emit_in_layout(&p->e, value, as);
  kl_instr named = p->e.instrs.p[value];
  uint32_t *elements = KL_NEW_N(&p->scratch, uint32_t, as->nelems + 1);
  for (uint32_t i = 0; i < as->nelems; i++) elements[i] = in_layout(p, element(p, value, i), as->elems[i]);
  return emit_tuple(p, &named, as->nelems, elements);
}

// --- op by op -------------------------------------------------------------------------------------------------------

// Does a value of type `from` do where `to` is expected?
static bool stands_for(const kl_shape *from, const kl_shape *to) {
  return kl_shape_compatible(from, to);
}

// Is the only device its own source? Others get zeros.
static bool sends_to_itself(const kl_instr *in) {
  kl_ints pairs = in->more->pairs;
  for (uint32_t i = 0; i + 1 < pairs.n; i += 2)
    if (pairs.p[i] == 0 && pairs.p[i + 1] == 0) return true;
  return false;
}

// What a start gives: what is known of it, and zeros for its contexts, which nobody looks at. Loops carry it by its
// type.
static uint32_t emit_started(plainer *p, const kl_instr *in, uint32_t known, const uint32_t *values) {
  uint32_t n = in->shape->nelems, *all = KL_NEW_N(&p->scratch, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) all[i] = i < known ? values[i] : kl_emit_zeros(&p->e, in, in->shape->elems[i]);
  return emit_tuple(p, in, n, all);
}

static uint32_t operands_together(plainer *p, const kl_instr *in, uint32_t n, const uint32_t *operands,
                                  const kl_shape *as) {
  return n == 1 && as->dtype != KILN_TUPLE ? operands[0] : emit_tuple(p, in, n, operands);
}

// What a collective gives the only device there is. False: it is not known, or no array of the type that is expected.
static bool put_collective(plainer *p, const kl_instr *in, const uint32_t *operands, uint32_t *out) {
  const kl_shape *as = in->shape;
  kl_op op = in->op;
  if (!p->alone || op == KL_OP_RAGGED_ALL_TO_ALL) return false;
  if (op == KL_OP_ALL_GATHER_DONE || op == KL_OP_COLLECTIVE_PERMUTE_DONE) {
    if (p->e.instrs.p[operands[0]].op != KL_OP_TUPLE) return false;
    *out = element(p, operands[0], 1);
  } else if (op == KL_OP_ALL_REDUCE_DONE) {
    *out = operands[0];
  } else {
    bool starts = op == KL_OP_ALL_GATHER_START || op == KL_OP_COLLECTIVE_PERMUTE_START;
    bool permutes = op == KL_OP_COLLECTIVE_PERMUTE || op == KL_OP_COLLECTIVE_PERMUTE_START;
    const kl_shape *result = starts ? as->elems[1] : as;
    if (permutes && in->noperands != 1) return false;
    *out = operands_together(p, in, in->noperands, operands, result);
    if (!stands_for(shape_of(p, *out), result)) return false;
    if (permutes && !sends_to_itself(in)) *out = kl_emit_zeros(&p->e, in, result);
    *out = in_layout(p, *out, result);
    if (starts) *out = emit_started(p, in, 2, (uint32_t[]){*out, *out});
    return true;
  }
  return stands_for(shape_of(p, *out), as);
}

static void add_call(plainer *p, const kl_comp *callee, const uint32_t *operands, uint32_t *out);

// ((operands), results): done where it starts.
static bool put_async(plainer *p, const kl_instr *in, const uint32_t *operands, uint32_t *out) {
  if (in->op == KL_OP_ASYNC_UPDATE) return *out = operands[0], true;
  if (in->op == KL_OP_ASYNC_DONE) {
    if (p->e.instrs.p[operands[0]].op != KL_OP_TUPLE || p->e.instrs.p[operands[0]].noperands < 2) return false;
    return *out = element(p, operands[0], 1), true;
  }
  if (in->shape->dtype != KILN_TUPLE || in->shape->nelems < 2) return false;
  if (in->ncalled != 1) return false;
  add_call(p, &p->m->comp[in->called[0]], operands, out);
  *out = emit_started(p, in, 2, (uint32_t[]){emit_tuple(p, in, in->noperands, operands), *out});
  return true;
}

// Puts what stands for structure; false: the instruction stays.
static bool put_structure(plainer *p, const kl_comp *c, const kl_instr *in, const uint32_t *operands, uint32_t *out) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_FORWARD: return *out = operands[0], true;
  case KL_KIND_GTE: return *out = element(p, operands[0], (uint32_t)in->number), true;
  case KL_KIND_COPY_ASYNC:
    *out = in->op == KL_OP_COPY_DONE ? element(p, operands[0], 0)
                                     : emit_started(p, in, 2, (uint32_t[]){operands[0], operands[0]});
    return true;
  case KL_KIND_ASYNC: return put_async(p, in, operands, out);
  case KL_KIND_COLLECTIVE: return put_collective(p, in, operands, out);
  case KL_KIND_DEVICE_ID: return p->alone ? *out = kl_emit_zeros(&p->e, in, in->shape), true : false;
  case KL_KIND_CUSTOM_CALL:
    if (kl_custom_of(c, in) != KL_CUSTOM_REMARK) return false;
    return *out = operands[0], true;
  case KL_KIND_UNARY:
    if (in->op != KL_OP_COPY) return false;
    return *out = operands[0], true; // laid out as it says
  default: return false;
  }
}

// A reshape of what lies in its own order.
static bool moves_nothing(const plainer *p, const kl_instr *in, const uint32_t *operands) {
  return in->op == KL_OP_RESHAPE && kl_shape_default_layout(in->shape) &&
         kl_shape_default_layout(shape_of(p, operands[0]));
}

static uint32_t put(plainer *p, const kl_comp *c, const kl_instr *in, const uint32_t *value) {
  uint32_t *operands = KL_NEW_N(&p->m->arena, uint32_t, in->noperands + 1), out;
  for (uint32_t i = 0; i < in->noperands; i++) operands[i] = value[in->operands[i]];
  if (in->op == KL_OP_CALL) {
    add_call(p, &p->m->comp[in->called[0]], operands, &out);
    return p->full ? 0 : in_layout(p, out, in->shape);
  }
  if (in->op == KL_OP_TUPLE) {
    for (uint32_t i = 0; i < in->noperands; i++) operands[i] = in_layout(p, operands[i], in->shape->elems[i]);
  } else if (put_structure(p, c, in, operands, &out)) {
    return in_layout(p, out, in->shape);
  }
  kl_instr own = *in;
  own.operands = operands;
  own.ncontrol = 0;
  if (moves_nothing(p, in, operands)) own.op = KL_OP_BITCAST;
  return take_apart(p, kl_emit(&p->e, &own), in->name);
}

// The instructions of a computation that is plain already.
static void add_call(plainer *p, const kl_comp *callee, const uint32_t *operands, uint32_t *out) {
  uint32_t *value = KL_NEW_N(&p->scratch, uint32_t, callee->ninstr + 1);
  p->full |= p->e.instrs.n + callee->ninstr > p->limit;
  for (uint32_t i = 0; i < callee->ninstr && !p->full; i++) {
    const kl_instr *in = &callee->instr[i];
    value[i] = in->op == KL_OP_PARAMETER ? in_layout(p, operands[in->number], in->shape) : put(p, callee, in, value);
  }
  *out = p->full ? 0 : value[callee->root];
}

static void rewrite(plainer *p, kl_comp *c) {
  uint32_t *value = KL_NEW_N(&p->scratch, uint32_t, c->ninstr + 1);
  kl_emit_begin(&p->e);
  for (uint32_t i = 0; i < c->ninstr && !p->full; i++) value[i] = put(p, c, &c->instr[i], value);
  if (!p->full) kl_emit_end(&p->e, c, value[c->root]);
}

// --- all of it ------------------------------------------------------------------------------------------------------

// ENTRY, what is called from there, and what its loops and branches run. Callers come behind their callees.
static void find_run(const kiln_module *m, const bool *has, bool *run) {
  run[m->entry] = true;
  for (uint32_t i = m->ncomp; i-- > 0;)
    for (uint32_t k = 0; run[i] && k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      bool runs =
          in->op == KL_OP_CALL || in->op == KL_OP_WHILE || kl_is_branching(in, has) || in->op == KL_OP_ASYNC_START;
      for (uint32_t j = 0; runs && j < in->ncalled; j++) run[in->called[j]] = true;
    }
}

static bool is_plain(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    switch (kl_op_table[in->op].kind) {
    case KL_KIND_FORWARD:
    case KL_KIND_COPY_ASYNC:
    case KL_KIND_ASYNC:
    case KL_KIND_COLLECTIVE:
    case KL_KIND_DEVICE_ID:
    case KL_KIND_CUSTOM_CALL: return false;
    default: break;
    }
    if (in->op == KL_OP_CALL || in->op == KL_OP_COPY || in->op == KL_OP_RESHAPE || in->ncontrol) return false;
    if (in->op == KL_OP_GET_TUPLE_ELEMENT && kl_operand(c, in, 0)->op == KL_OP_TUPLE) return false;
    if (in->shape->dtype == KILN_TUPLE && in->op != KL_OP_TUPLE) return false;
  }
  return true;
}

kiln_status kl_module_plain(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), kiln_module **out) {
  *out = NULL;
  plainer p = {.cx = cx, .limit = kiln_module_instruction_count(m) + MOST_NEW};
  p.alone = m->header.replica_count <= 1 && m->header.num_partitions <= 1;
  kl_arena_init(&p.scratch, cx);
  bool *run = KL_NEW_N(&p.scratch, bool, m->ncomp + 1);
  find_run(m, kl_find_ops(m, wanted, &p.scratch), run);
  for (uint32_t i = 0; i < m->ncomp && !p.full; i++) {
    if (!run[i] || is_plain(&m->comp[i])) continue;
    if (!p.m) p.e.m = p.m = kl_fork(cx, m);
    rewrite(&p, &p.m->comp[i]);
  }
  if (p.m) kl_emit_free(&p.e);
  kl_arena_free(&p.scratch);
  if (!p.m) return KILN_OK;
  if (!p.full) return kl_finish_fork(cx, p.m, out);
  kiln_module_destroy(&p.m);
  return kl_unsupported(cx, KL_NOWHERE, "ENTRY without its calls: expected at most 2^20 instructions more than before");
}

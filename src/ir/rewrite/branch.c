// Conditionals as calls of all branches, of whose results one is selected.
//
// Branches have no effects, so that nobody sees which of them were computed.
#include "ir/rewrite/branch.h"

typedef struct brancher {
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  const bool *has;   // by computation: it has an op that is asked for, or calls one that has
  const bool *loops; // by computation: the same of a loop, which need not end where it is not asked to begin
} brancher;

// Callees come before their callers.
bool *kl_find_ops(const kiln_module *m, bool (*wanted)(const kl_instr *), kl_arena *arena) {
  bool *has = KL_NEW_N(arena, bool, m->ncomp + 1);
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr && !has[i]; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      has[i] = wanted(in);
      for (uint32_t j = 0; j < in->ncalled && !has[i]; j++) has[i] = has[in->called[j]];
    }
  return has;
}

bool kl_is_branching(const kl_instr *in, const bool *has) {
  bool any = false;
  for (uint32_t k = 0; in->op == KL_OP_CONDITIONAL && k < in->ncalled; k++) any |= has[in->called[k]];
  return any;
}

static bool is_replaced(const brancher *b, const kl_instr *in) {
  return kl_is_branching(in, b->has) && !kl_is_branching(in, b->loops);
}

// --- what takes the place of one ------------------------------------------------------------------------------------

static kl_instr like(const kl_instr *from, kl_op op, const kl_shape *shape) {
  return (kl_instr){.op = op, .name = from->name, .shape = shape, .more = &kl_no_more, .span = from->span};
}

static uint32_t emit_op(brancher *b, kl_instr in, uint32_t n, const uint32_t *operands) {
  in.noperands = n;
  in.operands = kl_arena_dup(&b->m->arena, operands, n * sizeof *operands);
  return kl_emit(&b->e, &in);
}

static uint32_t emit_call(brancher *b, const kl_instr *in, uint32_t branch, uint32_t argument) {
  kl_instr call = like(in, KL_OP_CALL, b->m->comp[in->called[branch]].instr[b->m->comp[in->called[branch]].root].shape);
  call.ncalled = 1;
  call.called = &in->called[branch];
  call.given = 1;
  return emit_op(b, call, 1, &argument);
}

// s32 k.
static uint32_t emit_number(brancher *b, const kl_instr *in, const kl_shape *shape, int32_t k) {
  kl_array *value = KL_NEW(&b->m->arena, kl_array);
  *value = (kl_array){.shape = shape, .data = kl_arena_dup(&b->m->arena, &k, sizeof k)};
  kl_instr number = like(in, KL_OP_CONSTANT, shape);
  number.literal = value;
  return emit_op(b, number, 0, NULL);
}

// pred: is it branch k? Of a truth, true is the first one.
static uint32_t emit_chosen(brancher *b, const kl_instr *in, uint32_t at, uint32_t k) {
  const kl_shape *s = b->e.instrs.p[at].shape;
  if (s->dtype == KILN_PRED) return at;
  kl_instr compare = like(in, KL_OP_COMPARE, kl_shape_array(b->m, KILN_PRED, 0, NULL));
  compare.direction = KL_EQ;
  compare.given = 1;
  return emit_op(b, compare, 2, (uint32_t[]){at, emit_number(b, in, s, (int32_t)k)});
}

// Leaf by leaf.
static uint32_t emit_select(brancher *b, const kl_instr *in, uint32_t chosen, uint32_t a, uint32_t other,
                            const kl_shape *shape) {
  if (shape->dtype != KILN_TUPLE) return emit_op(b, like(in, KL_OP_SELECT, shape), 3, (uint32_t[]){chosen, a, other});
  uint32_t *elements = KL_NEW_N(&b->scratch, uint32_t, shape->nelems + 1);
  for (uint32_t i = 0; i < shape->nelems; i++) {
    uint32_t x = kl_emit_element(&b->e, a, i, in->name), y = kl_emit_element(&b->e, other, i, in->name);
    elements[i] = emit_select(b, in, chosen, x, y, shape->elems[i]);
  }
  return emit_op(b, like(in, KL_OP_TUPLE, shape), shape->nelems, elements);
}

// What is no branch's number means the last one.
static uint32_t emit_branches(brancher *b, const kl_instr *in, const uint32_t *value) {
  uint32_t last = in->ncalled - 1, at = value[in->operands[0]];
  uint32_t r = emit_call(b, in, last, value[in->operands[last + 1]]);
  for (uint32_t k = last; k-- > 0;) {
    uint32_t made = emit_call(b, in, k, value[in->operands[k + 1]]);
    r = emit_select(b, in, emit_chosen(b, in, at, k), made, r, in->shape);
  }
  return kl_emit_in_layout(&b->e, r, in->shape);
}

// --- all of them ----------------------------------------------------------------------------------------------------

static const uint32_t *map_all(brancher *b, uint32_t n, const uint32_t *from, const uint32_t *value) {
  uint32_t *to = KL_NEW_N(&b->m->arena, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = value[from[i]];
  return to;
}

static void rewrite(brancher *b, kl_comp *c) {
  uint32_t *value = KL_NEW_N(&b->scratch, uint32_t, c->ninstr);
  kl_emit_begin(&b->e);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr in = c->instr[i];
    if (is_replaced(b, &in)) {
      value[i] = emit_branches(b, &in, value);
      continue;
    }
    in.operands = map_all(b, in.noperands, in.operands, value);
    in.control = map_all(b, in.ncontrol, in.control, value);
    value[i] = kl_emit(&b->e, &in);
  }
  kl_emit_end(&b->e, c, value[c->root]);
}

static bool is_loop(const kl_instr *in) {
  return in->op == KL_OP_WHILE;
}

kiln_status kl_module_unbranch(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), const bool *but,
                               kiln_module **out) {
  brancher b = {0};
  kl_arena_init(&b.scratch, cx);
  b.has = kl_find_ops(m, wanted, &b.scratch);
  b.loops = kl_find_ops(m, is_loop, &b.scratch);
  *out = NULL;
  for (uint32_t i = 0; i < m->ncomp; i++) {
    bool any = false;
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) any = any || is_replaced(&b, &m->comp[i].instr[k]);
    if (!any || (but && but[i])) continue;
    if (!b.m) b.e.m = b.m = kl_fork(cx, m);
    rewrite(&b, &b.m->comp[i]);
  }
  if (b.m) kl_emit_free(&b.e);
  kl_arena_free(&b.scratch);
  return b.m ? kl_finish_fork(cx, b.m, out) : KILN_OK;
}

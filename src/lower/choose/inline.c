// Calls replaced by what they call, so that whoever looks for a kind of op sees all that a kernel computes; and what
// hands a value on as if it lay otherwise, by a copy.
//
// Unlike the rewriting of whole modules (ir/rewrite), this makes one computation in an arena, which shares everything
// but the list of instructions with the module.

#include "lower/choose/choose.h"

// Calls of calls may double at each level. Beyond this they stay as they are: the walk follows them, too.
enum { MOST_INSTRUCTIONS = 1 << 16, MOST_DEPTH = 64 };

typedef struct inliner {
  kl_ctx *cx;
  const kiln_module *m;
  kl_arena *arena;
  VEC(kl_instr) out;
  bool full;
} inliner;

static uint32_t add(inliner *x, const kl_instr *in) {
  VEC_PUSH(x->cx, &x->out, *in);
  x->full |= x->out.n > MOST_INSTRUCTIONS;
  return (uint32_t)x->out.n - 1;
}

// An op that reads memory as it lies (bitcast) finds its operand as its own computation has it.
static uint32_t in_layout(inliner *x, uint32_t value, const kl_shape *as) {
  const kl_instr *from = &x->out.p[value];
  if (!kl_shape_is_array(as) || kl_shape_same_in_memory(from->shape, as)) return value;
  kl_instr copy = {.op = KL_OP_COPY, .name = from->name, .shape = as, .noperands = 1, .more = &kl_no_more};
  copy.span = from->span;
  copy.operands = kl_arena_dup(x->arena, &value, sizeof value);
  return add(x, &copy);
}

static uint32_t *map_operands(inliner *x, const kl_instr *in, const uint32_t *value) {
  uint32_t *operands = KL_NEW_N(x->arena, uint32_t, in->noperands + 1u);
  for (uint32_t i = 0; i < in->noperands; i++) operands[i] = value[in->operands[i]];
  return operands;
}

// As it is where its shape is what it is made of: what only hands a value on does not move it.
static uint32_t add_tuple(inliner *x, kl_instr *made) {
  uint32_t *operands = KL_NEW_N(x->arena, uint32_t, made->noperands + 1u);
  for (uint32_t i = 0; i < made->noperands; i++) operands[i] = in_layout(x, made->operands[i], made->shape->elems[i]);
  made->operands = operands;
  return add(x, made);
}

static uint32_t add_element(inliner *x, kl_instr *made) {
  const kl_instr *from = &x->out.p[made->operands[0]];
  const kl_shape *as = made->shape;
  if (from->op == KL_OP_TUPLE) return in_layout(x, from->operands[made->number], as);
  made->shape = from->shape->elems[made->number];
  return in_layout(x, add(x, made), as);
}

static uint32_t add_same(inliner *x, const kl_instr *in, const uint32_t *value) {
  kl_instr made = *in;
  made.operands = map_operands(x, in, value);
  made.ncontrol = 0;
  if (in->op == KL_OP_TUPLE) return add_tuple(x, &made);
  if (in->op == KL_OP_GET_TUPLE_ELEMENT) return add_element(x, &made);
  if (kl_op_table[in->op].kind != KL_KIND_FORWARD) return add(x, &made);
  made.shape = x->out.p[made.operands[0]].shape;
  return in_layout(x, add(x, &made), in->shape);
}

// The index of its root. `args`: what its parameters are; NULL: they stay.
static uint32_t add_body(inliner *x, const kl_comp *c, const uint32_t *args, unsigned depth, uint32_t *value) {
  x->full |= depth > MOST_DEPTH;
  for (uint32_t i = 0; i < c->ninstr && !x->full; i++) {
    const kl_instr *in = &c->instr[i];
    if (args && in->op == KL_OP_PARAMETER) {
      value[i] = in_layout(x, args[in->number], in->shape);
    } else if (kl_op_table[in->op].kind == KL_KIND_CALL) {
      const kl_comp *callee = &x->m->comp[in->called[0]];
      uint32_t *inner = KL_NEW_N(x->arena, uint32_t, callee->ninstr);
      value[i] = add_body(x, callee, map_operands(x, in, value), depth + 1, inner);
      if (!x->full) value[i] = in_layout(x, value[i], in->shape);
    } else {
      value[i] = add_same(x, in, value);
    }
  }
  return value[c->root];
}

// Does it hand a value on, as if that lay otherwise?
static bool relays(const kl_comp *c, const kl_instr *in) {
  if (in->op == KL_OP_GET_TUPLE_ELEMENT)
    return !kl_shape_same_in_memory(in->shape, kl_operand(c, in, 0)->shape->elems[in->number]);
  if (kl_op_table[in->op].kind == KL_KIND_FORWARD)
    return !kl_shape_same_in_memory(in->shape, kl_operand(c, in, 0)->shape);
  for (uint32_t i = 0; in->op == KL_OP_TUPLE && i < in->noperands; i++)
    if (!kl_shape_same_in_memory(in->shape->elems[i], kl_operand(c, in, i)->shape)) return true;
  return false;
}

static bool stays(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_op_table[c->instr[i].op].kind == KL_KIND_CALL || relays(c, &c->instr[i])) return false;
  return true;
}

const kl_comp *kl_plan_inline(kl_ctx *cx, const kiln_module *m, const kl_comp *c, kl_arena *arena) {
  if (stays(c)) return c;
  inliner x = {.cx = cx, .m = m, .arena = arena};
  kl_comp *made = kl_arena_dup(arena, c, sizeof *c);
  uint32_t *value = KL_NEW_N(arena, uint32_t, c->ninstr), *params = KL_NEW_N(arena, uint32_t, c->nparams + 1u);
  made->root = add_body(&x, c, NULL, 0, value);
  for (uint32_t i = 0; i < c->nparams && !x.full; i++) params[i] = value[c->params[i]];
  made->params = params;
  made->ninstr = (uint32_t)x.out.n;
  made->instr = VEC_FREEZE(cx, arena, &x.out);
  return x.full ? c : made;
}

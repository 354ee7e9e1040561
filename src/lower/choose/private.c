// What of a loop's state an element of what its body makes depends on: an answer for each value, from operands on.

#include "lower/choose/private.h"

#include "base/base.h"
#include "lower/choose/choose.h"

// Of what the loop changes, an element depends on scalars alone; on elements at the same index, too; on others.
typedef enum depends { OF_SCALARS, OF_ELEMENTS, OF_OTHERS } depends;

// Computations in each other, and instructions of all that a loop calls.
enum { MOST_DEPTH = 16, MOST_INSTRUCTIONS = 2048 };

typedef struct sorting {
  const kiln_module *m;
  kl_arena arena;
  uint32_t looked;
} sorting;

static uint32_t leaves_of(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

static depends worse(depends a, depends b) {
  return a > b ? a : b;
}

static depends *of_comp(sorting *x, const kl_comp *c, depends *const *args, uint32_t depth);

static depends *all(sorting *x, const kl_instr *in, depends k) {
  depends *out = KL_NEW_N(&x->arena, depends, leaves_of(in) + 1);
  for (uint32_t l = 0; l < leaves_of(in); l++) out[l] = k;
  return out;
}

static depends worst_of(const kl_comp *c, const kl_instr *in, depends *const *of) {
  depends k = OF_SCALARS;
  for (uint32_t o = 0; o < in->noperands; o++)
    for (uint32_t l = 0; l < leaves_of(kl_operand(c, in, o)); l++) k = worse(k, of[in->operands[o]][l]);
  return k;
}

// --- loops
// ------------------------------------------------------------------------------------------------------------

// The leaf of its own parameter that a leaf of a computation's root is; false: it is not known to be one.
static bool is_parameter(const kl_comp *c, uint32_t leaf, uint32_t *out) {
  uint32_t at = c->root;
  for (;;) {
    const kl_instr *in = &c->instr[at];
    if (in->op == KL_OP_TUPLE) {
      uint32_t e = kl_shape_element_of_leaf(in->shape, leaf);
      leaf -= in->shape->first_leaf[e];
      at = in->operands[e];
    } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      at = in->operands[0];
    } else if (in->op == KL_OP_COPY) {
      at = in->operands[0];
    } else {
      *out = leaf;
      return in->op == KL_OP_PARAMETER;
    }
  }
}

void kl_loop_changes(const kiln_module *m, const kl_instr *loop, bool *out) {
  const kl_comp *body = &m->comp[loop->called[1]];
  uint32_t is;
  for (uint32_t l = 0; l < leaves_of(loop); l++) out[l] = !is_parameter(body, l, &is) || is != l;
}

// Of the results; where the loop is not private, all are of others. `init`: what the state is at first.
static depends *of_loop(sorting *x, const kl_instr *loop, const depends *init, uint32_t depth) {
  uint32_t n = leaves_of(loop);
  bool *changes = KL_NEW_N(&x->arena, bool, n + 1), fine = true;
  if (depth > MOST_DEPTH || x->m->comp[loop->called[1]].ninstr > MOST_INSTRUCTIONS) return all(x, loop, OF_OTHERS);
  depends *state = KL_NEW_N(&x->arena, depends, n + 1), *out = KL_NEW_N(&x->arena, depends, n + 1);
  kl_loop_changes(x->m, loop, changes);
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *s = kl_shape_leaf(loop->shape, l);
    bool array = kl_shape_is_array(s) && s->rank;
    state[l] = worse(init[l], changes[l] && array ? OF_ELEMENTS : OF_SCALARS);
  }
  const depends *again = of_comp(x, &x->m->comp[loop->called[0]], &state, depth + 1);
  const depends *next = of_comp(x, &x->m->comp[loop->called[1]], &state, depth + 1);
  fine = again[0] == OF_SCALARS;
  for (uint32_t l = 0; l < n; l++) {
    fine = fine && (!changes[l] || (init[l] != OF_OTHERS && next[l] != OF_OTHERS));
    out[l] = changes[l] ? worse(state[l], next[l]) : init[l];
  }
  return fine ? out : all(x, loop, OF_OTHERS);
}

// --- instructions
// -----------------------------------------------------------------------------------------------------

static depends *of_tuple(sorting *x, const kl_comp *c, const kl_instr *in, depends *const *of) {
  depends *out = KL_NEW_N(&x->arena, depends, leaves_of(in) + 1);
  for (uint32_t o = 0, at = 0; o < in->noperands; o++)
    for (uint32_t l = 0; l < leaves_of(kl_operand(c, in, o)); l++) out[at++] = of[in->operands[o]][l];
  return out;
}

static depends *of_call(sorting *x, const kl_comp *c, const kl_instr *in, depends *const *of, uint32_t depth) {
  depends **args = KL_NEW_N(&x->arena, depends *, in->noperands + 1);
  for (uint32_t o = 0; o < in->noperands; o++) args[o] = of[in->operands[o]];
  return of_comp(x, &x->m->comp[in->called[0]], args, depth + 1);
}

static depends *of_branches(sorting *x, const kl_instr *in, depends *const *of, uint32_t depth) {
  depends *out = all(x, in, of[in->operands[0]][0] == OF_SCALARS ? OF_SCALARS : OF_OTHERS);
  for (uint32_t b = 0; b < in->ncalled; b++) {
    depends *arg = of[in->operands[b + 1]];
    const depends *made = of_comp(x, &x->m->comp[in->called[b]], &arg, depth + 1);
    for (uint32_t l = 0; l < leaves_of(in); l++) out[l] = worse(out[l], made[l]);
  }
  return out;
}

// Its computation is one of scalars.
static depends *of_map(sorting *x, const kl_instr *in, depends k, uint32_t depth) {
  const kl_comp *by = &x->m->comp[in->called[0]];
  depends scalar = OF_SCALARS, **args = KL_NEW_N(&x->arena, depends *, by->nparams + 1);
  for (uint32_t i = 0; i < by->nparams; i++) args[i] = &scalar;
  return all(x, in, worse(k, *of_comp(x, by, args, depth + 1)));
}

// At the same index.
static bool goes_by_elements(const kl_comp *c, const kl_instr *in) {
  bool same = kl_op_is_elementwise(in->op);
  for (uint32_t o = 0; o < in->noperands && same; o++) {
    const kl_shape *s = kl_operand(c, in, o)->shape;
    same = s->rank == 0 || kl_shape_same_dims(s, in->shape);
  }
  return same;
}

static depends *of_instr(sorting *x, const kl_comp *c, const kl_instr *in, depends *const *of, uint32_t depth) {
  depends k = worst_of(c, in, of);
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_TUPLE: return of_tuple(x, c, in, of);
  case KL_KIND_GTE: return of[in->operands[0]] + kl_operand(c, in, 0)->shape->first_leaf[in->number];
  case KL_KIND_FORWARD: return in->shape == kl_operand(c, in, 0)->shape ? of[in->operands[0]] : all(x, in, OF_OTHERS);
  case KL_KIND_CALL: return of_call(x, c, in, of, depth);
  case KL_KIND_CONDITIONAL: return of_branches(x, in, of, depth);
  case KL_KIND_WHILE: return of_loop(x, in, of[in->operands[0]], depth);
  case KL_KIND_MAP: return of_map(x, in, k, depth);
  default: break;
  }
  if (in->op == KL_OP_COPY) return of[in->operands[0]];
  if (!kl_is_walked(in) || !kl_shape_is_array(in->shape)) return all(x, in, OF_OTHERS);
  return all(x, in, k == OF_SCALARS || goes_by_elements(c, in) ? k : OF_OTHERS);
}

static depends *of_comp(sorting *x, const kl_comp *c, depends *const *args, uint32_t depth) {
  depends **of = KL_NEW_N(&x->arena, depends *, c->ninstr + 1);
  x->looked += c->ninstr;
  if (depth > MOST_DEPTH || x->looked > MOST_INSTRUCTIONS) return all(x, kl_root(c), OF_OTHERS);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    of[i] = in->op == KL_OP_PARAMETER ? args[in->number] : of_instr(x, c, in, of, depth);
  }
  return of[c->root];
}

bool kl_loop_is_private(kl_ctx *cx, const kiln_module *m, const kl_instr *loop) {
  sorting x = {.m = m};
  uint32_t n = leaves_of(loop);
  bool fine = n > 0;
  kl_arena_init(&x.arena, cx);
  const depends *out = of_loop(&x, loop, all(&x, loop, OF_SCALARS), 0);
  for (uint32_t l = 0; l < n; l++)
    fine = fine && out[l] != OF_OTHERS && kl_shape_is_array(kl_shape_leaf(loop->shape, l));
  kl_arena_free(&x.arena);
  return fine;
}

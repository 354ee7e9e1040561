// What of a loop's state an element of what its body makes depends on: an answer for each value, from operands on.

#include "lower/choose/private.h"

#include "base/base.h"
#include "lower/choose/choose.h"

// Of what the loop changes, an element depends on scalars alone; on elements at the same index, too; on others.
typedef enum depends { OF_SCALARS, OF_ELEMENTS, OF_OTHERS } depends;

// Computations in each other, and instructions of all that a loop calls.
enum { MOST_DEPTH = 16, MOST_INSTRUCTIONS = 2048 };

// Loops around what is looked at.
typedef struct enclosing {
  const kl_instr *loop;
  const kl_loop_lanes *lanes;
  const struct enclosing *outer;
} enclosing;

typedef struct sorting {
  const kiln_module *m;
  kl_arena arena;
  const enclosing *inside;
  uint32_t looked;
} sorting;

static uint32_t leaves_of(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

static depends worse(depends a, depends b) {
  return a > b ? a : b;
}

static depends *const *of_comp(sorting *x, const kl_comp *c, depends *const *args, uint32_t depth);

static depends *of_root(sorting *x, const kl_comp *c, depends *const *args, uint32_t depth) {
  return of_comp(x, c, args, depth)[c->root];
}

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

// --- loops ----------------------------------------------------------------------------------------------------------

// Where an array has elements of lanes of `loop`, those are along the same dims in the loops around it: an element of
// what these change is wanted with no other than it has there.
static bool has_lanes(const enclosing *in, const kl_shape *lanes, const kl_shape *s, const int64_t *along) {
  for (; in; in = in->outer) {
    bool found = false;
    if (!kl_shape_same_dims(in->lanes->lanes, lanes)) return false;
    for (uint32_t l = 0; l < leaves_of(in->loop) && !found; l++)
      found = in->lanes->changes[l] && kl_shape_same_dims(kl_shape_leaf(in->loop->shape, l), s) &&
              memcmp(in->lanes->along[l], along, lanes->rank * sizeof *along) == 0;
    if (!found) return false;
  }
  return true;
}

static bool fits(const sorting *x, const kl_instr *loop, const kl_loop_lanes *lanes) {
  if (!lanes->lanes->rank) return true;
  for (uint32_t l = 0; l < leaves_of(loop); l++) {
    const kl_shape *s = kl_shape_leaf(loop->shape, l);
    if (lanes->changes[l] && !kl_shape_same_dims(s, lanes->lanes) &&
        !has_lanes(x->inside, lanes->lanes, s, lanes->along[l]))
      return false;
  }
  return true;
}

// Of the results; where the loop is not private, all are of others. `init`: what the state is at first.
static depends *of_loop(sorting *x, const kl_instr *loop, const depends *init, uint32_t depth) {
  uint32_t n = leaves_of(loop);
  const kl_comp *again = &x->m->comp[loop->called[0]], *body = &x->m->comp[loop->called[1]];
  if (depth > MOST_DEPTH || body->ninstr > MOST_INSTRUCTIONS) return all(x, loop, OF_OTHERS);
  depends *state = KL_NEW_N(&x->arena, depends, n + 1), *out = KL_NEW_N(&x->arena, depends, n + 1);
  const kl_loop_lanes *lanes = kl_loop_find_lanes(x->m, loop, &x->arena);
  enclosing inside = {loop, lanes, x->inside};
  bool fine = fits(x, loop, lanes);
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *s = kl_shape_leaf(loop->shape, l);
    bool array = kl_shape_is_array(s) && s->rank;
    state[l] = worse(init[l], lanes->changes[l] && array ? OF_ELEMENTS : OF_SCALARS);
  }
  x->inside = &inside;
  depends goes_on = of_comp(x, again, &state, depth + 1)[lanes->again.instr][lanes->again.leaf];
  depends *const *next = of_comp(x, body, &state, depth + 1);
  x->inside = inside.outer;
  fine = fine && goes_on <= (lanes->lanes->rank ? OF_ELEMENTS : OF_SCALARS);
  for (uint32_t l = 0; l < n; l++) {
    bool changes = lanes->changes[l];
    depends made = changes ? next[lanes->next[l].instr][lanes->next[l].leaf] : OF_SCALARS;
    fine = fine && (!changes || (init[l] != OF_OTHERS && made != OF_OTHERS));
    out[l] = changes ? worse(state[l], made) : init[l];
  }
  return fine ? out : all(x, loop, OF_OTHERS);
}

// --- instructions ---------------------------------------------------------------------------------------------------

static depends *of_tuple(sorting *x, const kl_comp *c, const kl_instr *in, depends *const *of) {
  depends *out = KL_NEW_N(&x->arena, depends, leaves_of(in) + 1);
  for (uint32_t o = 0, at = 0; o < in->noperands; o++)
    for (uint32_t l = 0; l < leaves_of(kl_operand(c, in, o)); l++) out[at++] = of[in->operands[o]][l];
  return out;
}

static depends *of_call(sorting *x, const kl_comp *c, const kl_instr *in, depends *const *of, uint32_t depth) {
  depends **args = KL_NEW_N(&x->arena, depends *, in->noperands + 1);
  for (uint32_t o = 0; o < in->noperands; o++) args[o] = of[in->operands[o]];
  return of_root(x, &x->m->comp[in->called[0]], args, depth + 1);
}

static depends *of_branches(sorting *x, const kl_instr *in, depends *const *of, uint32_t depth) {
  depends *out = all(x, in, of[in->operands[0]][0] == OF_SCALARS ? OF_SCALARS : OF_OTHERS);
  for (uint32_t b = 0; b < in->ncalled; b++) {
    depends *arg = of[in->operands[b + 1]];
    const depends *made = of_root(x, &x->m->comp[in->called[b]], &arg, depth + 1);
    for (uint32_t l = 0; l < leaves_of(in); l++) out[l] = worse(out[l], made[l]);
  }
  return out;
}

// Its computation is one of scalars.
static depends *of_map(sorting *x, const kl_instr *in, depends k, uint32_t depth) {
  const kl_comp *by = &x->m->comp[in->called[0]];
  depends scalar = OF_SCALARS, **args = KL_NEW_N(&x->arena, depends *, by->nparams + 1);
  for (uint32_t i = 0; i < by->nparams; i++) args[i] = &scalar;
  return all(x, in, worse(k, *of_root(x, by, args, depth + 1)));
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

static bool has_ones(const kl_shape *s) {
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == 1) return true;
  return false;
}

// Dims of one element aside, which then no array of the state has: by the others it is known which of these it is.
static bool same_but_ones(const sorting *x, const kl_shape *a, const kl_shape *b) {
  for (const enclosing *in = x->inside; in; in = in->outer)
    for (uint32_t l = 0; l < leaves_of(in->loop); l++)
      if (in->lanes->changes[l] && has_ones(kl_shape_leaf(in->loop->shape, l))) return false;
  uint32_t i = 0, k = 0;
  for (;; i++, k++) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (k < b->rank && b->dims[k] == 1) k++;
    if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
    if (a->dims[i] != b->dims[k]) return false;
  }
}

// Where an array with the lanes' dims goes.
static uint32_t go_along(const kl_instr *in, const kl_shape *from, int64_t *along) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < from->rank; d++)
    if (from->dims[d] != 1) along[n] = in->op == KL_OP_BROADCAST ? in->dims[d] : d, n++;
  return n;
}

static bool is_reshape(const kl_instr *in, const kl_shape *from) {
  if (in->op == KL_OP_RESHAPE) return true;
  return in->op == KL_OP_BITCAST && in->shape->dtype == from->dtype && kl_shape_default_layout(in->shape) &&
         kl_shape_default_layout(from);
}

// From lanes to what is theirs, or to more dims of one element.
static bool goes_by_lanes(const sorting *x, const kl_comp *c, const kl_instr *in) {
  int64_t along[KILN_MAX_RANK];
  if (!x->inside || !x->inside->lanes->lanes->rank || !in->noperands) return false;
  const kl_shape *lanes = x->inside->lanes->lanes, *from = kl_operand(c, in, 0)->shape;
  if (in->op != KL_OP_BROADCAST && !is_reshape(in, from)) return false;
  uint32_t n = go_along(in, from, along);
  bool ordered = true;
  for (uint32_t i = 1; i < n; i++) ordered &= along[i - 1] < along[i];
  if (ordered && same_but_ones(x, from, in->shape)) return true;
  if (in->op != KL_OP_BROADCAST) return false;
  if (kl_shape_same_dims(from, lanes)) return has_lanes(x->inside, lanes, in->shape, in->dims);
  return same_but_ones(x, from, lanes) && n == lanes->rank && has_lanes(x->inside, lanes, in->shape, along);
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
  bool along = goes_by_elements(c, in) || goes_by_lanes(x, c, in);
  return all(x, in, k == OF_SCALARS || along ? k : OF_OTHERS);
}

static depends *const *of_comp(sorting *x, const kl_comp *c, depends *const *args, uint32_t depth) {
  depends **of = KL_NEW_N(&x->arena, depends *, c->ninstr + 1);
  bool fine = depth <= MOST_DEPTH && (x->looked += c->ninstr) <= MOST_INSTRUCTIONS;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (!fine)
      of[i] = all(x, in, OF_OTHERS);
    else
      of[i] = in->op == KL_OP_PARAMETER ? args[in->number] : of_instr(x, c, in, of, depth);
  }
  return of;
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

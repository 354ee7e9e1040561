// What a loop has rounds for: everything at once, or lanes of arrays, as where a loop of scalars is mapped over arrays.
//
// Its condition is whether any P[e] holds, of an array P that is made of the state; and of each array that it changes
// the body makes select(P, new, old). A lane e where P[e] is false keeps all that P[e] is made of, if that is its own:
// so P[e] stays false, and the lane is what it is. Then rounds of a lane end with P[e], whoever else goes on, and each
// of them is `new`.
//
// Where mapped loops are mapped again, a further select asks whether any P holds along some dimensions, which it does
// where P does: select(any(P), select(P, new, old), old) is the same.

#include "lower/choose/private.h"

#include "ir/attrs.h"

// Selects around each other; instructions that are compared.
enum { MOST_SELECTS = 8, MOST_COMPARED = 512 };

#define NO_DIM (-1)

typedef struct finder {
  const kiln_module *m;
  const kl_comp *again, *body;
  kl_loop_lanes *out;
  kl_arena *arena;
  uint32_t *seen; // by instruction of the body: that of the condition that it is, + 1; of P alone
  unsigned compared;
} finder;

static uint32_t leaves_of(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

// What a leaf is behind tuples and copies.
static kl_loop_value behind(const kl_comp *c, uint32_t instr, uint32_t leaf) {
  for (;;) {
    const kl_instr *in = &c->instr[instr];
    if (in->op == KL_OP_TUPLE) {
      uint32_t e = kl_shape_element_of_leaf(in->shape, leaf);
      leaf -= in->shape->first_leaf[e];
      instr = in->operands[e];
    } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      instr = in->operands[0];
    } else if (in->op == KL_OP_COPY) {
      instr = in->operands[0];
    } else {
      return (kl_loop_value){instr, leaf};
    }
  }
}

bool kl_loop_keeps(const kl_comp *body, uint32_t leaf) {
  kl_loop_value v = behind(body, body->root, leaf);
  return body->instr[v.instr].op == KL_OP_PARAMETER && v.leaf == leaf;
}

// --- any ------------------------------------------------------------------------------------------------------------

static bool is_false(const kl_instr *in) {
  return in->op == KL_OP_CONSTANT && in->shape->dtype == KILN_PRED && in->literal && !in->shape->rank &&
         !*(const char *)in->literal[0].data;
}

// Does it say whether any of its operand's elements along some dimensions holds?
static bool is_any(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_REDUCE || in->noperands != 2 || in->shape->dtype != KILN_PRED) return false;
  const kl_comp *by = &m->comp[in->called[0]];
  const kl_instr *root = kl_root(by);
  if (!is_false(kl_operand(c, in, 1)) || root->op != KL_OP_OR || by->nparams != 2) return false;
  const kl_instr *a = kl_operand(by, root, 0), *b = kl_operand(by, root, 1);
  return a->op == KL_OP_PARAMETER && b->op == KL_OP_PARAMETER && a->number != b->number;
}

// --- the same value -------------------------------------------------------------------------------------------------

static bool same_ints(uint32_t n, const int64_t *a, uint32_t k, const int64_t *b) {
  return n == k && (!n || memcmp(a, b, n * sizeof *a) == 0);
}

// Attributes of types that are not looked at are not the same.
static bool same_attributes(const kl_instr *a, const kl_instr *b) {
  kl_attr_list rows = kl_instr_attrs(a);
  for (uint32_t i = 0; i < rows.n; i++) {
    const kl_attr_row *row = &rows.p[i];
    const void *x = kl_attr_at(a, row), *y = kl_attr_at(b, row);
    bool same = false;
    switch (row->type) {
    case KL_ATTR_DIMS: same = same_ints(a->ndims, a->dims, b->ndims, b->dims); break;
    case KL_ATTR_INT: same = *(const int64_t *)x == *(const int64_t *)y; break;
    case KL_ATTR_BITS: same = *(const int32_t *)x == *(const int32_t *)y; break;
    case KL_ATTR_BOOL: same = *(const bool *)x == *(const bool *)y; break;
    case KL_ATTR_NAME: same = *(const int *)x == *(const int *)y; break;
    case KL_ATTR_NAMES:
    case KL_ATTR_INTS: {
      const kl_ints *u = x, *v = y;
      same = same_ints(u->n, u->p, v->n, v->p);
      break;
    }
    case KL_ATTR_SLICES:
      same = a->ndims == b->ndims && (!a->ndims || memcmp(a->slice, b->slice, a->ndims * sizeof *a->slice) == 0);
      break;
    default: break;
    }
    if (!same) return false;
  }
  return true;
}

static bool same_constant(const kl_instr *a, const kl_instr *b) {
  if (!a->literal || !b->literal || !kl_shape_is_array(a->shape)) return false;
  size_t bytes = (size_t)a->shape->count * kl_info(a->shape->dtype)->bytes;
  return !bytes || memcmp(a->literal[0].data, b->literal[0].data, bytes) == 0;
}

// Is a leaf of the body's what a leaf of the condition's is, of the same state? Random numbers are not twice the same.
static bool is_same(finder *x, kl_loop_value of, kl_loop_value as) {
  kl_loop_value u = behind(x->body, of.instr, of.leaf), v = behind(x->again, as.instr, as.leaf);
  const kl_instr *a = &x->body->instr[u.instr], *b = &x->again->instr[v.instr];
  if (u.leaf != v.leaf || a->op != b->op || !kl_shape_compatible(a->shape, b->shape)) return false;
  if (a->op == KL_OP_PARAMETER) return true;
  if (x->seen[u.instr] == v.instr + 1) return true;
  bool known = a->op != KL_OP_UNKNOWN && !a->ncalled && kl_op_table[a->op].kind <= KL_KIND_PAD;
  if (!known || a->noperands != b->noperands || x->compared++ > MOST_COMPARED) return false;
  if (a->op == KL_OP_CONSTANT ? !same_constant(a, b) : !same_attributes(a, b)) return false;
  for (uint32_t o = 0; o < a->noperands; o++)
    if (!is_same(x, (kl_loop_value){a->operands[o], 0}, (kl_loop_value){b->operands[o], 0})) return false;
  x->seen[u.instr] = v.instr + 1;
  return true;
}

// --- selects --------------------------------------------------------------------------------------------------------

// A pred of the body's as one of P: by dim of P, which of the select's it is, or NO_DIM: whether any holds along it.
static bool find_along(finder *x, uint32_t instr, int64_t *along) {
  const kl_instr *in = &x->body->instr[instr];
  uint32_t rank = in->shape->rank;
  int64_t at[KILN_MAX_RANK] = {0}, next[KILN_MAX_RANK] = {0};
  for (uint32_t d = 0; d < rank; d++) at[d] = d;
  for (;; instr = in->operands[0]) {
    kl_loop_value v = behind(x->body, instr, 0);
    in = &x->body->instr[v.instr];
    if (is_same(x, v, x->out->again)) break;
    const kl_instr *from = in->noperands ? kl_operand(x->body, in, 0) : NULL;
    if (in->op == KL_OP_BROADCAST) {
      for (uint32_t d = 0; d < from->shape->rank; d++) next[d] = at[in->dims[d]];
    } else if (is_any(x->m, x->body, in)) {
      bool folded[KILN_MAX_RANK] = {false};
      for (uint32_t i = 0; i < in->ndims; i++) folded[in->dims[i]] = true;
      for (uint32_t d = 0, k = 0; d < from->shape->rank; d++) next[d] = folded[d] ? NO_DIM : at[k++];
    } else {
      return false;
    }
    memcpy(at, next, sizeof at);
  }
  memcpy(along, at, x->out->lanes->rank * sizeof *along);
  return true;
}

static bool is_of_lanes(const finder *x, const int64_t *along) {
  for (uint32_t d = 0; d < x->out->lanes->rank; d++)
    if (along[d] == NO_DIM) return false;
  return true;
}

// Along a dim over which any is asked for, all lanes are.
static bool covers(const finder *x, const int64_t *any, const int64_t *along) {
  for (uint32_t d = 0; d < x->out->lanes->rank; d++)
    if (any[d] != NO_DIM && any[d] != along[d]) return false;
  return true;
}

// What a leaf that changes is made of where its lane has a round; false: it does not keep what it is where not.
static bool find_next(finder *x, uint32_t leaf) {
  kl_loop_lanes *out = x->out;
  int64_t any[MOST_SELECTS][KILN_MAX_RANK];
  const int64_t *along = NULL;
  kl_loop_value v = behind(x->body, x->body->root, leaf);
  uint32_t n = 0;
  for (; n < MOST_SELECTS; n++) {
    const kl_instr *in = &x->body->instr[v.instr];
    if (in->op != KL_OP_SELECT || !kl_shape_same_dims(kl_operand(x->body, in, 0)->shape, in->shape)) break;
    kl_loop_value old = behind(x->body, in->operands[2], 0);
    if (x->body->instr[old.instr].op != KL_OP_PARAMETER || old.leaf != leaf) break;
    if (!find_along(x, in->operands[0], any[n])) break;
    if (is_of_lanes(x, any[n])) along = any[n];
    v = behind(x->body, in->operands[1], 0);
  }
  if (!along) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!covers(x, any[i], along)) return false;
  out->next[leaf] = v;
  out->along[leaf] = kl_arena_dup(x->arena, along, out->lanes->rank * sizeof *along);
  return true;
}

// Arrays of one shape go along the same dims.
static bool goes_with(const finder *x, const kl_instr *loop, uint32_t leaf) {
  const kl_loop_lanes *out = x->out;
  const kl_shape *s = kl_shape_leaf(loop->shape, leaf);
  bool own = kl_shape_same_dims(s, out->lanes);
  for (uint32_t d = 0; d < out->lanes->rank && own; d++)
    if (out->along[leaf][d] != d) return false;
  for (uint32_t l = 0; l < leaf; l++)
    if (out->changes[l] && kl_shape_same_dims(kl_shape_leaf(loop->shape, l), s) &&
        memcmp(out->along[l], out->along[leaf], out->lanes->rank * sizeof *out->along[l]) != 0)
      return false;
  return true;
}

static bool find_lanes(finder *x, const kl_instr *loop) {
  kl_loop_lanes *out = x->out;
  kl_loop_value at = behind(x->again, x->again->root, 0);
  while (is_any(x->m, x->again, &x->again->instr[at.instr]))
    at = behind(x->again, x->again->instr[at.instr].operands[0], 0);
  out->again = at;
  out->lanes = kl_shape_leaf(x->again->instr[at.instr].shape, at.leaf);
  if (!out->lanes->rank) return false;
  for (uint32_t l = 0; l < leaves_of(loop); l++)
    if (out->changes[l] && !(find_next(x, l) && goes_with(x, loop, l))) return false;
  return true;
}

kl_loop_lanes *kl_loop_find_lanes(const kiln_module *m, const kl_instr *loop, kl_arena *arena) {
  uint32_t n = leaves_of(loop);
  kl_loop_lanes *out = KL_NEW(arena, kl_loop_lanes);
  finder x = {
      .m = m, .again = &m->comp[loop->called[0]], .body = &m->comp[loop->called[1]], .out = out, .arena = arena};
  x.seen = KL_NEW_N(arena, uint32_t, x.body->ninstr + 1);
  out->changes = KL_NEW_N(arena, bool, n + 1);
  out->next = KL_NEW_N(arena, kl_loop_value, n + 1);
  out->along = KL_NEW_N(arena, const int64_t *, n + 1);
  for (uint32_t l = 0; l < n; l++) out->changes[l] = !kl_loop_keeps(x.body, l);
  if (find_lanes(&x, loop)) return out;
  out->again = (kl_loop_value){x.again->root, 0};
  out->lanes = kl_root(x.again)->shape;
  for (uint32_t l = 0; l < n; l++) {
    out->next[l] = (kl_loop_value){x.body->root, l};
    out->along[l] = NULL;
  }
  return out;
}

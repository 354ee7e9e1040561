// What may be written over a parameter of what runs, and in which order, so that all have read it before.

#include "jit/place/impl.h"

// Instructions that are looked at in all to find out what needs what; more count as if they needed it.
enum { MOST_LOOKED = 1 << 22 };

static bool runs(const kl_instr *in) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_WHILE || in->op == KL_OP_CONDITIONAL;
}

// --- readers
// ----------------------------------------------------------------------------------------------------------

// Counts the readers of each leaf, or lists them, with `to` behind whom they come.
static void add_reader(placing *p, uint32_t *to, uint32_t instr, uint32_t leaf, reader x) {
  const kl_shape *as;
  const kl_instr *from = kl_place_resolve(p->c, instr, &leaf, &as);
  uint32_t *n = &to[p->base[from - p->c->instr] + leaf];
  if (p->readers) p->readers[*n] = x;
  ++*n;
}

static void add_readers(placing *p, uint32_t *to) {
  const kl_comp *c = p->c;
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t o = 0, n = 0; runs(&c->instr[i]) && o < c->instr[i].noperands; o++)
      for (uint32_t l = 0; l < kl_place_leaves(kl_operand(c, &c->instr[i], o)); l++)
        add_reader(p, to, c->instr[i].operands[o], l, (reader){i, n++});
  for (uint32_t r = 0; r < kl_place_leaves(kl_root(c)); r++) add_reader(p, to, c->root, r, (reader){c->ninstr, r});
}

void kl_place_find_readers(placing *p) {
  kl_arena *arena = p->k->arena;
  const kl_comp *c = p->c;
  uint32_t n = 0, all = 0;
  p->base = KL_NEW_N(arena, uint32_t, c->ninstr + 1u);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    p->base[i] = n;
    n += kl_place_leaves(&c->instr[i]);
  }
  p->first = KL_NEW_N(arena, uint32_t, n + 2u);
  uint32_t *at = KL_NEW_N(arena, uint32_t, n + 1u);
  add_readers(p, at);
  for (uint32_t i = 0; i < n; i++) {
    p->first[i] = all;
    all += at[i];
    at[i] = p->first[i];
  }
  p->first[n] = p->first[n + 1] = all;
  p->readers = KL_NEW_N(arena, reader, all + 1u);
  add_readers(p, at);
}

const reader *kl_place_readers(const placing *p, uint32_t instr, uint32_t leaf, uint32_t *n) {
  uint32_t at = p->base[instr] + leaf;
  *n = p->first[at + 1] - p->first[at];
  return &p->readers[p->first[at]];
}

// --- what needs what
// --------------------------------------------------------------------------------------------------

// Is `what` done before `i` in any case?
static bool needs(placing *p, uint32_t i, uint32_t what) {
  VEC(uint32_t) stack = {0};
  bool found = false;
  if (!p->seen) p->seen = KL_NEW_N(p->k->arena, uint32_t, p->c->ninstr + 1u);
  p->search++;
  VEC_PUSH(p->cx, &stack, i);
  while (stack.n && !found) {
    uint32_t x = stack.p[--stack.n];
    const kl_instr *in = &p->c->instr[x];
    if (p->seen[x] == p->search) continue;
    p->seen[x] = p->search;
    found = x == what || p->looked++ > MOST_LOOKED;
    for (uint32_t o = 0; o < in->noperands; o++) VEC_PUSH(p->cx, &stack, in->operands[o]);
    for (size_t l = 0; l < p->later.n; l++)
      if (p->later.p[l].instr == x) VEC_PUSH(p->cx, &stack, p->later.p[l].leaf);
  }
  VEC_FREE(p->cx, &stack);
  return found;
}

const uint32_t *kl_place_order(placing *p) {
  const kl_comp *c = p->c;
  uint32_t *order = KL_NEW_N(p->k->arena, uint32_t, c->ninstr + 1u), n = 0;
  bool *done = KL_NEW_N(p->k->arena, bool, c->ninstr + 1u);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < c->ninstr; i++) {
    VEC_PUSH(p->cx, &stack, i);
    while (stack.n) {
      uint32_t x = stack.p[stack.n - 1];
      const kl_instr *in = &c->instr[x];
      size_t before = stack.n;
      for (uint32_t o = 0; !done[x] && o < in->noperands; o++)
        if (!done[in->operands[o]]) VEC_PUSH(p->cx, &stack, in->operands[o]);
      for (size_t l = 0; !done[x] && l < p->later.n; l++)
        if (p->later.p[l].instr == x && !done[p->later.p[l].leaf]) VEC_PUSH(p->cx, &stack, p->later.p[l].leaf);
      if (stack.n > before) continue;
      stack.n--;
      if (!done[x]) order[n++] = x;
      done[x] = true;
    }
  }
  VEC_FREE(p->cx, &stack);
  return order;
}

// --- what is written over a parameter
// ---------------------------------------------------------------------------------

static bool is_spread_over(const kl_instr *in) {
  return in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT || in->op == KL_OP_COPY;
}

// Does the fusion read a leaf of its operands at no other index than it writes results, as far as its text says? Its
// plan will tell (compile.c).
static bool reads_in_step(const placing *p, const kl_instr *fusion, uint32_t leaf) {
  const kl_comp *c = &p->k->m->comp[fusion->called[0]];
  bool *touched = KL_NEW_N(p->k->arena, bool, c->ninstr + 1u);
  uint32_t param = 0;
  while (leaf >= kl_place_leaves(kl_operand(p->c, fusion, param))) {
    leaf -= kl_place_leaves(kl_operand(p->c, fusion, param++));
  }
  const kl_instr *from = &c->instr[c->params[param]];
  if (!kl_shape_is_array(from->shape)) return false;
  touched[c->params[param]] = true;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    bool any = false, first = in->noperands && touched[in->operands[0]], others = false;
    for (uint32_t o = 0; o < in->noperands; o++) {
      any |= touched[in->operands[o]];
      others |= o && touched[in->operands[o]];
    }
    if (!any) continue;
    bool updates = in->op == KL_OP_DYNAMIC_UPDATE_SLICE && first && !others;
    bool same = kl_op_is_elementwise(in->op) && kl_shape_same_dims(in->shape, from->shape);
    if (!updates && !same && !is_spread_over(in)) return false;
    touched[i] = true;
  }
  return true;
}

// May what runs as `by` read the place that it is to write, as a leaf of its operands, for result `leaf` of its own?
static bool may_read(const placing *p, uint32_t by, uint32_t leaf, uint32_t operand) {
  const kl_instr *in = &p->c->instr[by];
  switch (in->op) {
  case KL_OP_FUSION: return reads_in_step(p, in, operand);
  case KL_OP_WHILE: return leaf == operand; // its state, which is there already
  default: return operand != 0;             // branches find it as their parameter
  }
}

typedef struct overwriting {
  placing *p;
  uint32_t by, leaf;    // what is written: this leaf of instruction `by`
  uint32_t own;         // leaves by which that reads the place itself
  VEC(uint32_t) before; // what has to be done before
} overwriting;

// Of a leaf of an instruction that lies where it is to be written, or may. What a loop gives may lie where its state
// began.
static bool look_at_readers(overwriting *w, uint32_t instr, uint32_t leaf, unsigned depth) {
  placing *p = w->p;
  uint32_t n;
  const reader *list = kl_place_readers(p, instr, leaf, &n);
  if (depth > 16) return false;
  for (uint32_t i = 0; i < n; i++) {
    const kl_instr *in = &p->c->instr[list[i].instr];
    if (list[i].instr == p->c->ninstr) return false; // handed on
    if (list[i].instr == w->by) {
      bool one = in->op == KL_OP_CONDITIONAL || w->own++ == 0;
      if (depth || !one || !may_read(p, w->by, w->leaf, list[i].leaf)) return false;
      continue;
    }
    if (needs(p, list[i].instr, w->by)) return false;
    VEC_PUSH(p->cx, &w->before, list[i].instr);
    const kl_comp *body = in->op == KL_OP_WHILE ? &p->k->m->comp[in->called[1]] : NULL;
    for (uint32_t l = 0; body && l < kl_place_leaves(in); l++) {
      bool there = p->trips[list[i].instr].unrolled || kl_place_keeps(body, l);
      if (there && !look_at_readers(w, list[i].instr, l, depth + 1)) return false;
    }
  }
  return true;
}

bool kl_place_may_write(placing *p, uint32_t instr, uint32_t leaf, place to) {
  overwriting w = {.p = p, .by = instr, .leaf = leaf};
  bool may = true;
  for (uint32_t i = 0; p->params && may && i < p->c->nparams; i++)
    for (uint32_t l = 0; may && l < kl_place_leaves(&p->c->instr[p->c->params[i]]); l++)
      if (kl_place_same(kl_place_of_leaf(p, p->param_base[i] + l), to))
        may = look_at_readers(&w, p->c->params[i], l, 0);
  for (size_t i = 0; may && i < w.before.n; i++) VEC_PUSH(p->cx, &p->later, ((reader){w.by, w.before.p[i]}));
  VEC_FREE(p->cx, &w.before);
  return may;
}

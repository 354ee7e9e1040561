// Loops and branches: sizes go with arrays into the computations that they run, and come out of them.
//
// Such a computation is one, whoever runs it; so what it takes and gives follows from types. A value with dynamic
// dimensions is a tuple of the value at its bounds and the sizes of all its dynamic dimensions, leaf by leaf. Where
// values meet, in the state of a loop or in the result of branches, a dimension is dynamic that is so in one of them:
// the others are as large as the bound there.
#include "ir/rewrite/sizes/room.h"

bool kl_size_is_dynamic(const kl_shape *s) {
  if (s->dtype != KILN_TUPLE) return s->dynamic != NULL;
  for (uint32_t i = 0; i < s->nelems; i++)
    if (kl_size_is_dynamic(s->elems[i])) return true;
  return false;
}

// --- which types meet -----------------------------------------------------------------------------------------------

// a, its dimensions dynamic where those of b are; itself if nothing is new.
static const kl_shape *join(kl_graph *g, const kl_shape *a, const kl_shape *b) {
  if (a == b || !kl_size_is_dynamic(b)) return a;
  kl_shape own = *a;
  bool dynamic[KILN_MAX_RANK] = {false}, any = false;
  if (a->dtype == KILN_TUPLE) {
    const kl_shape **elements = KL_NEW_N(&g->scratch, const kl_shape *, a->nelems + 1u);
    for (uint32_t i = 0; i < a->nelems; i++) {
      elements[i] = join(g, a->elems[i], b->elems[i]);
      any |= elements[i] != a->elems[i];
    }
    return any ? kl_shape_tuple(g->m, a->nelems, elements) : a;
  }
  for (uint32_t d = 0; d < a->rank; d++) {
    dynamic[d] = b->dynamic[d] || (a->dynamic && a->dynamic[d]);
    any |= dynamic[d] && !(a->dynamic && a->dynamic[d]);
  }
  own.dynamic = dynamic;
  return any ? kl_shape_intern(g->m, &own) : a;
}

typedef struct meeting {
  kl_graph *g;
  bool changed;
} meeting;

static void take_in(meeting *x, const kl_shape **a, const kl_shape *b) {
  const kl_shape *s = join(x->g, *a, b);
  x->changed |= s != *a;
  *a = s;
}

static void meet(meeting *x, const kl_shape **a, const kl_shape **b) {
  take_in(x, a, *b);
  take_in(x, b, *a);
}

static bool runs(const kl_instr *in) {
  return in->op == KL_OP_WHILE || in->op == KL_OP_CONDITIONAL;
}

static void meet_at(meeting *x, const kl_comp *c, const kl_instr *in, kl_carried *all) {
  kl_carried *first = &all[in->called[0]];
  for (uint32_t k = 0; k < in->ncalled; k++) {
    kl_carried *own = &all[in->called[k]];
    if (in->op == KL_OP_CONDITIONAL || k) take_in(x, &own->result, in->shape);
    if (in->op == KL_OP_WHILE) {
      take_in(x, &own->param, kl_operand(c, in, 0)->shape);
      meet(x, &first->param, &own->param);
      if (k) meet(x, &own->param, &own->result);
    } else {
      take_in(x, &own->param, kl_operand(c, in, k + 1)->shape);
      meet(x, &first->result, &own->result);
    }
  }
}

const kl_carried *kl_size_carried(kl_graph *g, const kiln_module *m, const kl_live *live) {
  kl_carried *all = KL_NEW_N(&g->scratch, kl_carried, m->ncomp + 1u);
  meeting x = {g, true};
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; live->comp[i] && k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      for (uint32_t j = 0; live->instr[i][k] && runs(in) && j < in->ncalled; j++) {
        const kl_comp *callee = &m->comp[in->called[j]];
        all[in->called[j]] = (kl_carried){callee->instr[callee->params[0]].shape, kl_root(callee)->shape};
      }
    }
  while (x.changed) { // each time a dimension more is dynamic
    x.changed = false;
    for (uint32_t i = 0; i < m->ncomp; i++)
      for (uint32_t k = 0; live->comp[i] && k < m->comp[i].ninstr; k++)
        if (live->instr[i][k] && runs(&m->comp[i].instr[k])) meet_at(&x, &m->comp[i], &m->comp[i].instr[k], all);
  }
  return all;
}

// --- values with their sizes ----------------------------------------------------------------------------------------

static bool has_size(const kl_shape *s, uint32_t d) {
  return s->dynamic && s->dynamic[d] && s->dims[d] != KL_DIM_UNKNOWN;
}

// NULL: there is no such type, or a bound is no size.
static const kl_shape *with_sizes(kl_sizing *z, const kl_shape *s) {
  if (!kl_size_is_dynamic(s)) return kl_size_known(z, s);
  VEC(const kl_shape *) parts = {0};
  const kl_shape *number = kl_graph_array(z->g, KILN_S32, 0, NULL);
  bool fits = true;
  VEC_PUSH(z->g->cx, &parts, kl_size_known(z, s));
  for (size_t k = 0; k < kl_shape_leaf_count(s); k++) {
    const kl_shape *leaf = kl_shape_leaf(s, k);
    for (uint32_t d = 0; d < leaf->rank; d++) {
      if (!has_size(leaf, d)) continue;
      fits &= leaf->dims[d] <= INT32_MAX;
      VEC_PUSH(z->g->cx, &parts, number);
    }
  }
  const kl_shape *whole = fits ? kl_shape_tuple(z->g->m, (uint32_t)parts.n, parts.p) : NULL;
  VEC_FREE(z->g->cx, &parts);
  return whole;
}

static uint32_t put_sizes(kl_sizing *z, kl_sized v, const kl_shape *s) {
  if (!kl_size_is_dynamic(s)) return v.value;
  VEC(uint32_t) parts = {0};
  VEC_PUSH(z->g->cx, &parts, v.value);
  for (size_t k = 0; k < kl_shape_leaf_count(s); k++) {
    const kl_shape *leaf = kl_shape_leaf(s, k);
    for (uint32_t d = 0; d < leaf->rank; d++)
      if (has_size(leaf, d))
        VEC_PUSH(z->g->cx, &parts, kl_size_or_bound(z, v.leaf ? v.leaf[k].of[d] : KL_WHOLE, leaf->dims[d]));
  }
  uint32_t all = kl_graph_tuple(z->g, (uint32_t)parts.n, parts.p);
  VEC_FREE(z->g->cx, &parts);
  return all;
}

static uint32_t take_sizes(kl_sizing *z, uint32_t all, const kl_shape *s, kl_extents *out) {
  uint32_t part = 1;
  if (!kl_size_is_dynamic(s)) return all;
  for (size_t k = 0; k < kl_shape_leaf_count(s); k++) {
    const kl_shape *leaf = kl_shape_leaf(s, k);
    for (uint32_t d = 0; d < leaf->rank; d++)
      if (has_size(leaf, d)) out[k].of[d] = kl_graph_element(z->g, all, part++);
  }
  return kl_graph_element(z->g, all, 0);
}

// --- what runs ------------------------------------------------------------------------------------------------------

uint32_t kl_size_control(kl_sizing *z) {
  static const char expected[] = "bounds below 2^31, and tuples with room for a size of each dynamic dimension";
  kl_instr own = *z->in;
  const kl_carried *first = &z->carried[own.called[0]];
  bool loops = own.op == KL_OP_WHILE;
  const kl_shape *result = join(z->g, own.shape, loops ? first->param : first->result);
  bool fits = (own.shape = with_sizes(z, result)) != NULL;
  for (uint32_t k = loops ? 0 : 1; k < own.noperands && fits; k++) {
    const kl_shape *s = z->carried[own.called[loops ? 0 : k - 1]].param;
    fits = with_sizes(z, s) != NULL;
    if (fits) z->values[k] = put_sizes(z, (kl_sized){z->values[k], z->operands[k].leaf}, s);
  }
  if (!fits) return kl_size_refuse(z, expected);
  const kl_instr *in = z->in;
  z->in = &own;
  uint32_t all = kl_size_keep(z);
  z->in = in;
  return take_sizes(z, all, result, z->out);
}

bool kl_size_begin(kl_sizing *z, const kl_comp *c, const kl_carried *carried, kl_sized *argument) {
  kl_instr in = c->instr[c->params[0]];
  in.shape = with_sizes(z, carried->param);
  if (!in.shape || !with_sizes(z, carried->result)) return false;
  kl_extents *out = kl_size_whole(z->g, kl_shape_leaf_count(carried->param));
  argument->value = take_sizes(z, kl_emit(&z->g->e, &in), carried->param, out);
  argument->leaf = out;
  return true;
}

uint32_t kl_size_end(kl_sizing *z, const kl_carried *carried, kl_sized root) {
  return put_sizes(z, root, carried->result);
}

// What every row reads alike: scale and bias of a norm.

#include "lower/choose/reduce/reduce.h"

// Elements of arrays that have one for each reduced element, in terms of the operands' dimensions.
static uint32_t add_looks(const kl_reducing *g, const kl_aff *const *dims, kl_look *looks) {
  const kl_reductions *x = g->x;
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < x->reducer[i].nvalues; k++)
      looks[n++] = (kl_look){.instr = x->instr[i]->operands[k], .index = dims};
  for (uint32_t i = 0; i < x->noutputs; i++) {
    const kl_output *o = &x->outputs[i];
    if (!o->of_row && kl_shape_same_dims(kl_slot_of(g, o->slot)->shape, x->shape))
      looks[n++] = (kl_look){.instr = o->instr, .leaf = o->leaf, .index = dims};
  }
  return n;
}

// Does it depend on no kept dimension, and on some other?
static bool is_alike(const kl_reductions *x, const kl_seen *s) {
  kl_vars kept = 0;
  kl_body box = {.nvars = x->shape->rank};
  if (!s->place || s->guard != KL_NONE || kl_has_symbols(s->place)) return false;
  for (uint32_t i = 0; i < x->nkept; i++)
    if (x->shape->dims[x->kept[i]] > 1) kept |= (kl_vars)1 << x->kept[i];
  kl_vars vars = kl_vars_of(&box, s->place);
  return vars && !(vars & kept);
}

static void add_alike(kl_reducing *g, const kl_seen *s, kl_alike *out) {
  kl_choosing *c = g->c;
  out->bits += kl_info(s->dtype)->bits;
  if (s->slot >= c->slots.nargs) {
    out->copied = false;
    return;
  }
  const kl_slot_info *info = &c->slots.v.p[s->slot];
  if (out->of[s->slot]) return;
  out->of[s->slot] = true;
  out->bytes += info->bytes;
  out->copied = out->copied && !info->owner && info->shape->dtype == kl_in_bytes(info->shape->dtype);
}

kiln_status kl_find_alike(kl_reducing *g, kl_alike *out) {
  const kl_reductions *x = g->x;
  kl_choosing *c = g->c;
  const kl_aff *dims[KILN_MAX_RANK];
  kl_sights seen = {0};
  uint32_t most = x->noutputs;
  *out = (kl_alike){.of = KL_NEW_N(c->arena, bool, c->slots.nargs + 1), .copied = true};
  for (uint32_t i = 0; i < x->n; i++) most += x->reducer[i].nvalues;
  for (uint32_t d = 0; d < x->shape->rank; d++) dims[d] = kl_aff_dim(g->p, d);
  kl_look *looks = KL_NEW_N(c->arena, kl_look, most + 1);
  uint32_t n = add_looks(g, dims, looks);
  kiln_status st = kl_walk_look(c->cx, c->plan, &c->slots, x->shape->rank, x->shape->dims, n, looks, &seen);
  for (size_t i = 0; i < seen.v.n; i++)
    if (is_alike(x, &seen.v.p[i])) add_alike(g, &seen.v.p[i], out);
  VEC_FREE(c->cx, &seen.v);
  return st;
}

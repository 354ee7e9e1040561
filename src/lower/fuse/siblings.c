// Kernels over the same elements that read something alike: one reads it once, and is one launch.

#include "lower/fuse/impl.h"

enum { MOST_IN_ONE = 512, MOST_RESULTS = 16, MOST_LOOKED_AT = 8 };

static bool alike(const kl_fuser *f, const kl_maker *a, const kl_maker *b) {
  if (a->stays || b->stays || a->hero != b->hero || !kl_shape_same_dims(a->full, b->full)) return false;
  if (a->size + b->size > MOST_IN_ONE || a->results + b->results > MOST_RESULTS) return false;
  if (a->hero == KL_HERO_NONE) return true;
  return a->hero == KL_HERO_REDUCTION && kl_fuse_same_space(f, a->space, b->space) &&
         (a->space_at == KL_AT_FULL) == (b->space_at == KL_AT_FULL);
}

// Does the node read what is used so element by element?
static bool reads_along(const kl_fuser *f, const kl_use *u, const kl_shape *shape) {
  const kl_maker *k = u->node == KL_NO_GROUP ? NULL : kl_fuse_at((kl_fuser *)f, u->node);
  if (!k || k->stays || u->outside) return false;
  if (u->at == KL_AT_FULL) return kl_shape_same_dims(shape, k->full);
  return k->space && u->at == k->space_at;
}

// Of each that reads it the first few others before it are looked at.
static void join_readers(kl_fuser *f, uint32_t i) {
  const kl_uses *u = &f->uses[i];
  const kl_shape *shape = f->c->instr[i].shape;
  uint32_t kept[MOST_LOOKED_AT], n = 0;
  for (uint32_t k = 0; k < u->n; k++) {
    if (!reads_along(f, &u->p[k], shape)) continue;
    uint32_t node = kl_fuse_number(f, u->p[k].node), other = 0;
    while (other < n &&
           !(alike(f, kl_fuse_at(f, kept[other]), &f->nodes.p[node]) && kl_fuse_join(f, kept[other], node)))
      other++;
    if (other == n && n < MOST_LOOKED_AT) kept[n++] = node;
  }
}

void kl_fuse_siblings(kl_fuser *f) {
  for (uint32_t i = 0; i < f->c->ninstr; i++)
    if ((f->given[i] || f->home[i] != KL_NO_GROUP) && kl_shape_is_array(f->c->instr[i].shape) && f->uses[i].n > 1)
      join_readers(f, i);
}

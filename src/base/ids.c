// Entries by hash: open addressing, at most half full.

#include "base/base.h"

static struct kl_id *free_slot(const kl_ids *t, uint64_t hash) {
  size_t i = hash & (t->nslots - 1);
  while (t->slots[i].id) i = (i + 1) & (t->nslots - 1);
  return &t->slots[i];
}

static void grow(kl_ctx *cx, kl_ids *t) {
  kl_ids old = *t;
  t->nslots = old.nslots ? old.nslots * 2 : 64;
  t->slots = kl_alloc(cx, t->nslots * sizeof *t->slots);
  for (size_t i = 0; i < old.nslots; i++)
    if (old.slots[i].id) *free_slot(t, old.slots[i].hash) = old.slots[i];
  kl_free(cx, old.slots, old.nslots * sizeof *old.slots);
}

uint32_t kl_ids_find(kl_ctx *cx, kl_ids *t, uint64_t hash, bool (*same)(const void *arg, uint32_t id),
                     const void *arg) {
  if (t->n * 2 >= t->nslots) grow(cx, t);
  for (size_t i = hash & (t->nslots - 1); t->slots[i].id; i = (i + 1) & (t->nslots - 1))
    if (t->slots[i].hash == hash && same(arg, t->slots[i].id - 1)) return t->slots[i].id - 1;
  *free_slot(t, hash) = (struct kl_id){hash, (uint32_t)++t->n};
  return (uint32_t)t->n - 1;
}

void kl_ids_free(kl_ctx *cx, kl_ids *t) {
  kl_free(cx, t->slots, t->nslots * sizeof *t->slots);
  *t = (kl_ids){0};
}

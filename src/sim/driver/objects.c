// Handles: a slot's number and how often it was used. So a handle of what is gone finds nothing.

#include "sim/driver/impl.h"

#include <stdlib.h>

typedef struct slot {
  kl_object *object;
  uint32_t uses;
  uint32_t next_free; // + 1
} slot;

static VEC(slot) slots;
static uint32_t first_free; // + 1

// Handles look like aligned addresses, so that none is one of the special values; no address of the host's begins with
// these bits, so that none is taken for a handle.
enum { SHIFT = 4 };
static const uint64_t MARK = (uint64_t)0x5a << 56;

static uint64_t handle_of(uint32_t index, uint32_t uses) {
  return MARK | (uint64_t)(uses & 0xffffff) << 32 | (uint64_t)index << SHIFT;
}

void *kl_object_new(kl_kind kind, size_t size, kl_cu_context *context) {
  if (slots.n >= (1u << 28) && !first_free) return NULL;
  kl_object *o = kl_try_alloc(kl_sim.cx, size);
  if (!o) return NULL;
  uint32_t index = first_free - 1;
  if (first_free)
    first_free = slots.p[index].next_free;
  else {
    index = (uint32_t)slots.n;
    VEC_PUSH(kl_sim.cx, &slots, (slot){0});
  }
  slot *s = &slots.p[index];
  s->object = o;
  s->uses++;
  *o = (kl_object){.handle = handle_of(index, s->uses), .kind = kind, .context = context};
  return o;
}

void kl_object_delete(void *object, size_t size) {
  kl_object *o = object;
  uint32_t index = (uint32_t)(o->handle >> SHIFT) & 0xfffffff;
  slot *s = &slots.p[index];
  s->object = NULL;
  if (s->uses < 0xffffff) { // else it could be taken for one of its first lives
    s->next_free = first_free;
    first_free = index + 1;
  }
  kl_free(kl_sim.cx, object, size);
}

void *kl_object_find(const void *handle, kl_kind kind) {
  uint64_t h = (uint64_t)(uintptr_t)handle;
  uint64_t index = (h & 0xffffffff) >> SHIFT;
  if (index >= slots.n) return NULL;
  kl_object *o = slots.p[index].object;
  return o && o->handle == h && o->kind == kind ? o : NULL;
}

void *kl_object_next(kl_kind kind, size_t *at) {
  while (*at < slots.n) {
    kl_object *o = slots.p[(*at)++].object;
    if (o && o->kind == kind) return o;
  }
  return NULL;
}

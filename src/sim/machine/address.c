// Addresses of state spaces, and the time.

#include "sim/machine/execute.h"
#include "sim/machine/warp.h"

void kl_x_frame_address_32(kl_lanes *x, const kl_sim_op *o) {
  uint32_t at = kl_warp_of(x)->strand.frame->stack + (uint32_t)o->imm, *d = AT(uint32_t, o->d);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on32[i] ? at : d[i];
}
void kl_x_frame_address_64(kl_lanes *x, const kl_sim_op *o) {
  uint64_t at = kl_warp_of(x)->strand.frame->stack + o->imm, *d = AT(uint64_t, o->d);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on64[i] ? at : d[i];
}

// Every look at a clock is later than the one before.
static uint64_t now(kl_lanes *x, const kl_sim_op *o) {
  return (++kl_warp_of(x)->block->worker->ticks * (o->imm >> 8)) >> (o->imm & 63);
}
void kl_x_clock_32(kl_lanes *x, const kl_sim_op *o) {
  uint32_t t = (uint32_t)now(x, o), *d = AT(uint32_t, o->d);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on32[i] ? t : d[i];
}
void kl_x_clock_64(kl_lanes *x, const kl_sim_op *o) {
  uint64_t t = now(x, o), *d = AT(uint64_t, o->d);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on64[i] ? t : d[i];
}

void kl_x_to_generic(kl_lanes *x, const kl_sim_op *o) {
  uint64_t *d = AT(uint64_t, o->d);
  const uint64_t *a = AT(uint64_t, o->a);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on64[i] ? a[i] + o->imm : d[i];
}
void kl_x_from_generic(kl_lanes *x, const kl_sim_op *o) {
  uint64_t *d = AT(uint64_t, o->d);
  const uint64_t *a = AT(uint64_t, o->a);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on64[i] ? a[i] - o->imm : d[i];
}

static bool is_in(const kl_warp *w, kl_is_space space, uint64_t at) {
  uint64_t window = at >= KL_DEVICE_MEMORY ? 0 : at / KL_WINDOW;
  const kl_region *r = at >= KL_DEVICE_MEMORY ? kl_memory_find(w->block->run->memory, at) : NULL;
  switch (space) {
  case KL_IS_GLOBAL: return at >= KL_DEVICE_MEMORY && !(r && r->kind == KL_REGION_CONST);
  case KL_IS_CONST: return r && r->kind == KL_REGION_CONST;
  case KL_IS_SHARED_CTA:
    return window == 1 && (at % KL_WINDOW < KL_SHARED_RANK || at % KL_WINDOW / KL_SHARED_RANK == w->block->rank + 1);
  case KL_IS_SHARED_CLUSTER: return window == 1;
  case KL_IS_LOCAL: return window == 2;
  case KL_IS_PARAM: return window == 3;
  }
  return false;
}

void kl_x_is_space(kl_lanes *x, const kl_sim_op *o) {
  uint32_t *d = AT(uint32_t, o->d), holds = 0;
  const uint64_t *a = AT(uint64_t, o->a);
  for (int i = 0; i < KL_LANES; i++)
    if (x->mask >> i & 1) holds |= (uint32_t)is_in(kl_warp_of(x), (kl_is_space)o->imm, a[i]) << i;
  *d = (*d & ~x->mask) | holds;
}

// --- shared memory of clusters ------------------------------------------------------------------------------------

// An address of shared memory, of the block's own or another's, as one of block `rank`.
static uint64_t mapped(uint64_t at, uint32_t rank, bool generic) {
  uint64_t window = generic ? KL_SHARED_WINDOW : 0;
  return window + (uint64_t)(rank + 1) * KL_SHARED_RANK + (at - window) % KL_SHARED_RANK;
}
void kl_x_mapa_32(kl_lanes *x, const kl_sim_op *o) {
  uint32_t *d = AT(uint32_t, o->d);
  const uint32_t *a = AT(uint32_t, o->a), *rank = AT(uint32_t, o->b);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on32[i] ? (uint32_t)mapped(a[i], rank[i], o->imm != 0) : d[i];
}
void kl_x_mapa_64(kl_lanes *x, const kl_sim_op *o) {
  uint64_t *d = AT(uint64_t, o->d);
  const uint64_t *a = AT(uint64_t, o->a);
  const uint32_t *rank = AT(uint32_t, o->b);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on64[i] ? mapped(a[i], rank[i], o->imm != 0) : d[i];
}

static uint32_t rank_of(const kl_lanes *x, uint64_t at, bool generic) {
  uint64_t offset = generic ? at - KL_SHARED_WINDOW : at;
  uint32_t own = kl_warp_of((kl_lanes *)x)->block->rank;
  return offset < KL_SHARED_RANK ? own : (uint32_t)(offset / KL_SHARED_RANK - 1);
}
void kl_x_ctarank_32(kl_lanes *x, const kl_sim_op *o) {
  uint32_t *d = AT(uint32_t, o->d);
  const uint32_t *a = AT(uint32_t, o->a);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on32[i] ? rank_of(x, a[i], o->imm != 0) : d[i];
}
void kl_x_ctarank_64(kl_lanes *x, const kl_sim_op *o) {
  uint32_t *d = AT(uint32_t, o->d);
  const uint64_t *a = AT(uint64_t, o->a);
  for (int i = 0; i < KL_LANES; i++) d[i] = x->on32[i] ? rank_of(x, a[i], o->imm != 0) : d[i];
}

// --- the stack ----------------------------------------------------------------------------------------------------

// Room for the most that a lane asks for, at the same place in all lanes.
static bool reserve(kl_lanes *x, const kl_sim_op *o, uint64_t most, uint32_t *at) {
  kl_warp *w = kl_warp_of(x);
  kl_frame *f = w->strand.frame;
  uint64_t align = o->imm ? o->imm : 1, begin = (f->top + align - 1) / align * align;
  if (most > KL_MOST_STACK || begin + most > KL_MOST_STACK) {
    kl_faulted(w, o, KL_FAULT_STACK, (unsigned)__builtin_ctz(x->mask), begin);
    return false;
  }
  *at = (uint32_t)begin;
  f->top = ((uint32_t)(begin + most) + 15) / 16 * 16;
  return true;
}

// What is behind `to` is free again, unless lanes of other strands may have taken it.
static void restore(kl_lanes *x, uint64_t to) {
  kl_frame *f = kl_warp_of(x)->strand.frame;
  if (f->lanes == x->mask && to >= f->stack + f->code->stack_bytes && to < f->top) f->top = (uint32_t)to;
}

#define STACK(bits)                                                                                                    \
  void kl_x_alloca_##bits(kl_lanes *x, const kl_sim_op *o) {                                                           \
    uint##bits##_t *d = AT(uint##bits##_t, o->d), most = 0;                                                            \
    const uint##bits##_t *a = AT(uint##bits##_t, o->a);                                                                \
    uint32_t at = 0;                                                                                                   \
    for (int i = 0; i < KL_LANES; i++)                                                                                 \
      if ((x->mask >> i & 1) && a[i] > most) most = a[i];                                                              \
    if (!reserve(x, o, most, &at)) return;                                                                             \
    for (int i = 0; i < KL_LANES; i++) d[i] = x->on##bits[i] ? at : d[i];                                              \
  }                                                                                                                    \
  void kl_x_stacksave_##bits(kl_lanes *x, const kl_sim_op *o) {                                                        \
    uint##bits##_t *d = AT(uint##bits##_t, o->d);                                                                      \
    for (int i = 0; i < KL_LANES; i++) d[i] = x->on##bits[i] ? kl_warp_of(x)->strand.frame->top : d[i];                \
  }                                                                                                                    \
  void kl_x_stackrestore_##bits(kl_lanes *x, const kl_sim_op *o) {                                                     \
    restore(x, AT(uint##bits##_t, o->a)[__builtin_ctz(x->mask)]);                                                      \
  }
STACK(32)
STACK(64)

// Loads and stores: from lanes' addresses to bytes of the host.

#include "sim/machine/access.h"

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"

// --- addresses ----------------------------------------------------------------------------------------------------

static void lane_addresses(const kl_lanes *x, const kl_sim_access *m, uint64_t *to) {
  uint64_t offset = (uint64_t)m->offset;
  if (m->frame) offset += kl_warp_of((kl_lanes *)x)->strand.frame->stack;
  if (m->base == KL_NO_REF) {
    for (int i = 0; i < KL_LANES; i++) to[i] = offset;
  } else if (m->wide == 8) {
    const uint64_t *from = AT(uint64_t, m->base);
    for (int i = 0; i < KL_LANES; i++) to[i] = from[i] + offset;
  } else {
    const uint32_t *from = AT(uint32_t, m->base);
    for (int i = 0; i < KL_LANES; i++) to[i] = (uint32_t)(from[i] + (uint32_t)offset);
  }
}

typedef struct lane_place {
  char *host;
  kl_fault_kind fault;
} lane_place;

// Shared memory: the block's own, or that of another one of its cluster.
static lane_place in_shared(kl_warp *w, uint64_t at, uint64_t bytes) {
  const kl_block *b = w->block;
  if (at >= KL_SHARED_RANK && b->cluster) {
    uint64_t rank = at / KL_SHARED_RANK - 1;
    if (rank >= b->cluster->n) return (lane_place){.fault = KL_FAULT_ADDRESS};
    b = &b->cluster->blocks[rank];
    at %= KL_SHARED_RANK;
  }
  if (at > b->shared_bytes || bytes > b->shared_bytes - at) return (lane_place){.fault = KL_FAULT_ADDRESS};
  return (lane_place){.host = b->shared + at};
}

// A thread has its stack up to where the function that runs ends.
static lane_place in_stack(kl_warp *w, unsigned lane, uint64_t at, uint64_t bytes) {
  uint32_t top = w->strand.frame->top;
  if (!w->stack || at > top || bytes > top - at) return (lane_place){.fault = KL_FAULT_ADDRESS};
  return (lane_place){.host = w->stack + (size_t)lane * KL_MOST_STACK + at};
}

static lane_place in_params(kl_warp *w, uint64_t at, uint64_t bytes, bool store) {
  uint32_t have = w->block->run->kernel->param_bytes;
  if (store) return (lane_place){.fault = KL_FAULT_READ_ONLY};
  if (at > have || bytes > have - at) return (lane_place){.fault = KL_FAULT_ADDRESS};
  return (lane_place){.host = (char *)w->block->run->params + at};
}

static lane_place in_memory(kl_warp *w, uint64_t at, uint64_t bytes, bool store) {
  kl_region *r = &w->block->worker->last;
  if (at - r->base >= r->size) {
    const kl_region *found = kl_memory_find(w->block->run->memory, at);
    if (!found || found->freed) return (lane_place){.fault = KL_FAULT_ADDRESS};
    *r = *found;
  }
  if (bytes > r->size - (at - r->base)) return (lane_place){.fault = KL_FAULT_ADDRESS};
  if (store && r->kind == KL_REGION_CONST) return (lane_place){.fault = KL_FAULT_READ_ONLY};
  return (lane_place){.host = r->host + (at - r->base)};
}

static lane_place in_space(kl_warp *w, const kl_sim_access *m, unsigned lane, uint64_t at, uint64_t bytes) {
  kl_where where = m->where;
  if (where == KL_AT_GENERIC) {
    uint64_t window = at >= KL_DEVICE_MEMORY ? 0 : at / KL_WINDOW;
    if (at >= KL_DEVICE_MEMORY) return in_memory(w, at, bytes, m->store);
    if (window == 0 || window > 3) return (lane_place){.fault = KL_FAULT_ADDRESS};
    where = window == 1 ? KL_AT_SHARED : window == 2 ? KL_AT_STACK : KL_AT_PARAM;
    at %= KL_WINDOW;
  }
  switch (where) {
  case KL_AT_SHARED: return in_shared(w, at, bytes);
  case KL_AT_STACK: return in_stack(w, lane, at, bytes);
  case KL_AT_PARAM: return in_params(w, at, bytes, m->store);
  default: return in_memory(w, at, bytes, m->store);
  }
}

// All lanes lie in one region of memory, or in the block's shared memory: the difference between a host's address and
// theirs. The fast way; lanes that do not execute count as well, so a failure only means that the slow way is taken.
static bool one_region(kl_warp *w, const kl_sim_access *m, const uint64_t *at, uint64_t bytes, uint64_t *difference) {
  uint64_t least = at[0], most = at[0], low = 0;
  for (int i = 0; i < KL_LANES; i++) {
    least = at[i] < least ? at[i] : least;
    most = at[i] > most ? at[i] : most;
    low |= at[i];
  }
  if ((low & (bytes - 1)) != 0 || (bytes & (bytes - 1)) != 0) return false;
  if (m->where == KL_AT_SHARED) {
    if (w->block->shared_bytes < bytes || most > w->block->shared_bytes - bytes) return false;
    *difference = (uint64_t)(uintptr_t)w->block->shared;
    return true;
  }
  const kl_region *r = &w->block->worker->last;
  if ((m->where != KL_AT_GLOBAL && m->where != KL_AT_GENERIC) || r->size < bytes) return false;
  if (least < r->base || most - r->base > r->size - bytes) return false;
  if (m->store && r->kind == KL_REGION_CONST) return false;
  *difference = (uint64_t)(uintptr_t)r->host - r->base;
  return true;
}

// Makes the region of an address the one that is tried first. False if it is that already, or there is none.
static bool to_region_of(kl_warp *w, const kl_sim_access *m, uint64_t at) {
  kl_region *r = &w->block->worker->last;
  if ((m->where != KL_AT_GLOBAL && m->where != KL_AT_GENERIC) || at - r->base < r->size) return false;
  const kl_region *found = kl_memory_find(w->block->run->memory, at);
  if (!found || found->freed) return false;
  *r = *found;
  return true;
}

static bool find_places(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, kl_places *out) {
  kl_warp *w = kl_warp_of(x);
  uint64_t bytes = (uint64_t)m->bytes * m->count, difference = 0;
  lane_addresses(x, m, out->address);
  if (one_region(w, m, out->address, bytes, &difference) || (to_region_of(w, m, out->address[__builtin_ctz(x->mask)]) &&
                                                             one_region(w, m, out->address, bytes, &difference))) {
    for (int i = 0; i < KL_LANES; i++) out->host[i] = (char *)(uintptr_t)(out->address[i] + difference);
    return true;
  }
  for (unsigned i = 0; i < KL_LANES; i++) {
    if (!(x->mask >> i & 1)) continue;
    lane_place p = in_space(w, m, i, out->address[i], bytes);
    if (!p.fault && (out->address[i] & (bytes - 1)) != 0) p.fault = KL_FAULT_MISALIGNED;
    if (p.fault) {
      kl_access_faulted(w, o, p.fault, i, m, out->address[i]);
      return false;
    }
    out->host[i] = p.host;
  }
  return true;
}

static uint32_t joined(const kl_lanes *x, const kl_sim_access *m, const kl_places *p) {
  uint64_t bytes = (uint64_t)m->bytes * m->count;
  uint32_t joined = 0;
  for (unsigned i = 1; i < KL_LANES; i++) {
    uint64_t gap = (uint64_t)((uintptr_t)p->host[i] - (uintptr_t)p->host[i - 1]) - bytes;
    gap |= p->address[i] - p->address[i - 1] - bytes;
    joined |= (uint32_t)(gap == 0) << i;
  }
  return joined & x->mask & x->mask << 1;
}

bool kl_access_places(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, kl_places *out) {
  kl_warp *w = kl_warp_of(x);
  if (!find_places(x, o, m, out)) return false;
  if (__builtin_expect(w->observed, false)) {
    out->joined = joined(x, m, out);
    KL_TELL(w->block, access, w, o, m, out);
  }
  return true;
}

// --- lanes ---------------------------------------------------------------------------------------------------------

// Element `k` of every lane, of type M in memory and R in the register.
#define LOAD(M, R)                                                                                                     \
  do {                                                                                                                 \
    R *to = AT(R, m->regs[k]);                                                                                         \
    size_t at = k * sizeof(M);                                                                                         \
    if (x->mask == KL_ALL_LANES) {                                                                                     \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        M v;                                                                                                           \
        memcpy(&v, p->host[i] + at, sizeof v);                                                                         \
        to[i] = (R)v;                                                                                                  \
      }                                                                                                                \
    } else {                                                                                                           \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        M v;                                                                                                           \
        if (!(x->mask >> i & 1)) continue;                                                                             \
        memcpy(&v, p->host[i] + at, sizeof v);                                                                         \
        to[i] = (R)v;                                                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
  } while (0)
#define STORE(M, R)                                                                                                    \
  do {                                                                                                                 \
    const R *from = AT(R, m->regs[k]);                                                                                 \
    size_t at = k * sizeof(M);                                                                                         \
    if (x->mask == KL_ALL_LANES) {                                                                                     \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        M v = (M)from[i];                                                                                              \
        memcpy(p->host[i] + at, &v, sizeof v);                                                                         \
      }                                                                                                                \
    } else {                                                                                                           \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        M v = (M)from[i];                                                                                              \
        if (x->mask >> i & 1) memcpy(p->host[i] + at, &v, sizeof v);                                                   \
      }                                                                                                                \
    }                                                                                                                  \
  } while (0)

typedef unsigned __int128 u128;
typedef __int128 s128;
#define PAIR(memory, wide) ((memory) << 8 | (wide))

static void load_element(kl_lanes *x, const kl_sim_access *m, unsigned k, const kl_places *p) {
  switch (PAIR(m->bytes, m->reg_bytes[k])) {
  case PAIR(4, 4): LOAD(uint32_t, uint32_t); return;
  case PAIR(8, 8): LOAD(uint64_t, uint64_t); return;
  case PAIR(2, 2): LOAD(uint16_t, uint16_t); return;
  case PAIR(16, 16): LOAD(u128, u128); return;
  default: break;
  }
  if (m->sign) switch (PAIR(m->bytes, m->reg_bytes[k])) {
    case PAIR(1, 2): LOAD(int8_t, int16_t); return;
    case PAIR(1, 4): LOAD(int8_t, int32_t); return;
    case PAIR(1, 8): LOAD(int8_t, int64_t); return;
    case PAIR(2, 4): LOAD(int16_t, int32_t); return;
    case PAIR(2, 8): LOAD(int16_t, int64_t); return;
    case PAIR(4, 8): LOAD(int32_t, int64_t); return;
    default: return;
    }
  switch (PAIR(m->bytes, m->reg_bytes[k])) {
  case PAIR(1, 2): LOAD(uint8_t, uint16_t); return;
  case PAIR(1, 4): LOAD(uint8_t, uint32_t); return;
  case PAIR(1, 8): LOAD(uint8_t, uint64_t); return;
  case PAIR(2, 4): LOAD(uint16_t, uint32_t); return;
  case PAIR(2, 8): LOAD(uint16_t, uint64_t); return;
  case PAIR(4, 8): LOAD(uint32_t, uint64_t); return;
  default: return;
  }
}

static void store_element(kl_lanes *x, const kl_sim_access *m, unsigned k, const kl_places *p) {
  switch (PAIR(m->bytes, m->reg_bytes[k])) {
  case PAIR(4, 4): STORE(uint32_t, uint32_t); return;
  case PAIR(8, 8): STORE(uint64_t, uint64_t); return;
  case PAIR(2, 2): STORE(uint16_t, uint16_t); return;
  case PAIR(16, 16): STORE(u128, u128); return;
  case PAIR(1, 2): STORE(uint8_t, uint16_t); return;
  case PAIR(1, 4): STORE(uint8_t, uint32_t); return;
  case PAIR(1, 8): STORE(uint8_t, uint64_t); return;
  case PAIR(2, 4): STORE(uint16_t, uint32_t); return;
  case PAIR(2, 8): STORE(uint16_t, uint64_t); return;
  case PAIR(4, 8): STORE(uint32_t, uint64_t); return;
  default: return;
  }
}

// --- four words of every lane, what vectorised code mostly moves --------------------------------------------------

typedef uint32_t four __attribute__((vector_size(16)));

static four get_four(const void *p) {
  four v;
  memcpy(&v, p, sizeof v);
  return v;
}
static void put_four(void *p, four v) {
  memcpy(p, &v, sizeof v);
}

// Rows become columns.
static inline void turn(four v[4]) {
  four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  four c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

static bool is_four_words(const kl_lanes *x, const kl_sim_access *m) {
  bool all = x->mask == KL_ALL_LANES && m->bytes == 4 && m->count == 4;
  for (unsigned k = 0; all && k < 4; k++) all = m->regs[k] != KL_NO_REF && m->reg_bytes[k] == 4;
  return all;
}

static void load_four(kl_lanes *x, const kl_sim_access *m, const kl_places *p) {
  for (int i = 0; i < KL_LANES; i += 4) {
    four v[4];
    for (int k = 0; k < 4; k++) v[k] = get_four(p->host[i + k]);
    turn(v);
    for (int k = 0; k < 4; k++) put_four(AT(uint32_t, m->regs[k]) + i, v[k]);
  }
}

static void store_four(kl_lanes *x, const kl_sim_access *m, const kl_places *p) {
  for (int i = 0; i < KL_LANES; i += 4) {
    four v[4];
    for (int k = 0; k < 4; k++) v[k] = get_four(AT(uint32_t, m->regs[k]) + i);
    turn(v);
    for (int k = 0; k < 4; k++) put_four(p->host[i + k], v[k]);
  }
}

// --- loads and stores ---------------------------------------------------------------------------------------------

void kl_x_load(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  kl_places p;
  if (!kl_access_places(x, o, m, &p)) return;
  if (is_four_words(x, m)) {
    load_four(x, m, &p);
    return;
  }
  for (unsigned k = 0; k < m->count; k++)
    if (m->regs[k] != KL_NO_REF) load_element(x, m, k, &p);
}

void kl_x_store(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  kl_places p;
  if (!kl_access_places(x, o, m, &p)) return;
  if (is_four_words(x, m)) {
    store_four(x, m, &p);
    return;
  }
  for (unsigned k = 0; k < m->count; k++) store_element(x, m, k, &p);
}

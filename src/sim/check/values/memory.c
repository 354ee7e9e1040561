// Shadows of memory: loads, stores, atomics, copies; and at the end what is left in the caller's memory.

#include "sim/check/values/values.h"
#include "sim/machine/map.h"

#include <stdlib.h>

// --- where the shadow of a lane's bytes lies ----------------------------------------------------------------------

// Byte k has no value in the bits of at[k] ^ flip, or of flip where `at` is NULL.
typedef struct place {
  uint8_t *at;
  uint8_t flip;
  kl_region *region;   // of the device's memory, or NULL
  block_shadow *block; // of shared memory
  uint32_t offset;     // in shared memory or in a stack
  bool stack;
} place;

static kl_region *region_of(values *v, uint64_t address) {
  kl_memory *m = v->checks->memory;
  kl_region *r = v->region < m->regions.n ? &m->regions.p[v->region] : NULL;
  if (r && address - r->base < r->size) return r;
  r = (kl_region *)kl_memory_find(m, address);
  if (r) v->region = (size_t)(r - m->regions.p);
  return r;
}

static place in_memory(values *v, uint64_t address) {
  kl_region *r = region_of(v, address);
  if (!r) return (place){0};
  return (place){.at = r->undefined ? r->undefined + (address - r->base) : NULL, .flip = r->flip, .region = r};
}

static place in_shared(const kl_warp *w, uint64_t at) {
  const kl_block *b = w->block;
  if (at >= KL_SHARED_RANK) {
    b = &b->cluster->blocks[at / KL_SHARED_RANK - 1];
    at %= KL_SHARED_RANK;
  }
  block_shadow *s = b->shadow; // a block that is over has none
  return (place){.at = s ? s->shared + at : NULL, .flip = s ? 0xff : 0, .block = s, .offset = (uint32_t)at};
}

static place in_stack(const kl_warp *w, unsigned lane, uint64_t at) {
  uint8_t *s = values_stack(w, lane, (uint32_t)at);
  return (place){.at = s, .flip = s ? 0xff : 0, .offset = (uint32_t)at, .stack = true};
}

static place place_of(values *v, const kl_warp *w, kl_where where, unsigned lane, uint64_t at) {
  if (where == KL_AT_GENERIC && at < KL_DEVICE_MEMORY) {
    uint64_t window = at / KL_WINDOW;
    where = window == 1 ? KL_AT_SHARED : window == 2 ? KL_AT_STACK : KL_AT_PARAM;
    at %= KL_WINDOW;
  }
  switch (where) {
  case KL_AT_SHARED: return in_shared(w, at);
  case KL_AT_STACK: return in_stack(w, lane, at);
  case KL_AT_PARAM: return (place){.at = v->params + at};
  default: return in_memory(v, at);
  }
}

static uint64_t get(const place *p, unsigned at, unsigned bytes) {
  uint64_t u = 0, flip = p->flip ? ~(uint64_t)0 >> (64 - 8 * bytes) : 0;
  if (p->at) memcpy(&u, p->at + at, bytes);
  return u ^ flip;
}

// --- who left what ------------------------------------------------------------------------------------------------

static size_t left_bytes(const kl_region *r) {
  return (size_t)(r->size / 4 + 1) * sizeof(left);
}

enum { MOST_STORES = (1 << 16) - 1 };

// However often a recursion goes round, it is the same way to the same store.
static bool is_same(const store_place *a, const store_place *b) {
  if (a->instr != b->instr || a->func != b->func || a->calls.n != b->calls.n) return false;
  for (uint32_t k = 0; k < a->calls.n; k++)
    if (a->calls.of[k].instr != b->calls.of[k].instr) return false;
  return true;
}

static uint32_t store_number(values *v, const kl_frame *f, const kl_sim_op *o) {
  const kl_ptx_func *func = f->code->func;
  store_place p = {func, func->ninstrs ? &func->instrs[o->index] : NULL, kl_calls_of(f)};
  for (size_t k = v->stores.n; k-- > 0;)
    if (is_same(&v->stores.p[k], &p)) return (uint32_t)k + 1;
  if (v->stores.n == MOST_STORES) return MOST_STORES;
  VEC_PUSH(v->checks->cx, &v->stores, p);
  return (uint32_t)v->stores.n;
}

static void leave(values *v, const kl_warp *w, const kl_sim_op *o, unsigned lane, const kl_region *r, uint64_t address,
                  uint32_t origin) {
  size_t k = (size_t)(r - v->checks->memory->regions.p);
  const kl_launch *l = v->launch;
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
  if (!v->left[k]) {
    v->left[k] = kl_map(left_bytes(r), KL_MAP_SPARSE);
    if (!v->left[k]) {
      v->checks->no_memory = true;
      return;
    }
  }
  const uint32_t *id = w->block->id;
  uint64_t block = ((uint64_t)id[2] * l->grid[1] + id[1]) * l->grid[0] + id[0];
  v->left[k][(address - r->base) / 4] = (left){.store = store_number(v, w->strand.frame, o),
                                               .thread = block * threads + w->rank * KL_LANES + lane,
                                               .origin = origin};
}

// Where the bits come from that some bytes lack; 0: nobody has stored there.
static uint32_t stored_origin(const values *v, const kl_warp *w, unsigned lane, const place *p, uint64_t address,
                              unsigned at) {
  const left *l = p->region ? v->left[p->region - v->checks->memory->regions.p] : NULL;
  if (l) return l[(address + at - p->region->base) / 4].origin;
  if (p->block && p->block->shared_origins) return p->block->shared_origins[(p->offset + at) / 4];
  const uint32_t *stack = p->stack ? values_stack_origins(w, lane, p->offset + at) : NULL;
  return stack ? *stack : 0;
}

// The same, or that they are loaded from where nobody has stored.
static uint32_t loaded_origin(values *v, const kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, unsigned lane,
                              const place *p, uint64_t address, unsigned at, unsigned bytes) {
  uint32_t n = stored_origin(v, w, lane, p, address, at);
  return n ? n : values_memory_origin(v, w, o, m->where, address + at, bytes);
}

// In a block's own memory; `leave` has told it of the device's.
static void keep_origin(values *v, const kl_warp *w, unsigned lane, const place *p, unsigned at, uint32_t origin) {
  if (p->block) {
    size_t words = w->block->shared_bytes / 4 + 1;
    if (!p->block->shared_origins) p->block->shared_origins = calloc(words, 4);
    if (p->block->shared_origins) p->block->shared_origins[(p->offset + at) / 4] = origin;
  } else if (p->stack && values_keep_stack_origins(v, w)) {
    *values_stack_origins(w, lane, p->offset + at) = origin;
  }
}

// Bytes of a lane get these bits without a value.
static void put(values *v, const kl_warp *w, const kl_sim_op *o, unsigned lane, place *p, uint64_t address, unsigned at,
                unsigned bytes, uint64_t unknown, uint32_t origin) {
  if (!p->at) {
    if (!p->region || unknown == (p->flip ? ~(uint64_t)0 >> (64 - 8 * bytes) : 0)) {
      if (unknown && p->region) leave(v, w, o, lane, p->region, address + at, origin);
      return;
    }
    uint8_t *shadow = kl_region_shadow(p->region);
    p->flip = p->region->flip;
    if (!shadow) return;
    p->at = shadow + (address - p->region->base);
  }
  uint64_t u = unknown ^ (p->flip ? ~(uint64_t)0 : 0);
  memcpy(p->at + at, &u, bytes);
  for (unsigned k = 0; unknown && k < bytes; k += 4)
    if (p->region)
      leave(v, w, o, lane, p->region, address + at + k, origin);
    else
      keep_origin(v, w, lane, p, at + k, origin);
}

// --- loads and stores ---------------------------------------------------------------------------------------------

// The register has its values in the lanes that execute.
static void know(kl_warp *w, kl_ref ref, unsigned bytes) {
  const kl_frame *f = w->strand.frame;
  if (!in_registers(ref) || !*flag_of(f, ref)) return;
  if (!(f->lanes & ~w->x.mask)) {
    memset(shadow_of(f, ref), 0, (size_t)bytes * KL_LANES);
    *flag_of(f, ref) = 0;
    return;
  }
  for (unsigned i = 0; i < KL_LANES; i++)
    if (w->x.mask >> i & 1) memset(shadow_of(f, ref) + (size_t)i * bytes, 0, bytes);
}

// Of at least one byte: the first one, and each as the one before.
static bool is_filled(const uint8_t *at, uint8_t byte, size_t bytes) {
  return *at == byte && memcmp(at, at + 1, bytes - 1) == 0;
}

static void fill(uint8_t *at, uint8_t byte, size_t bytes) {
  const uint64_t all = byte ? ~(uint64_t)0 : 0;
  size_t k = 0;
  if (bytes > 64) {
    memset(at, byte, bytes);
    return;
  }
  for (; k + 8 <= bytes; k += 8) memcpy(at + k, &all, 8);
  for (; k < bytes; k++) at[k] = byte;
}

// The same of each of these lanes by itself: so many bytes, known to the compiler, behind shadow + (its address -
// base).
static inline __attribute__((always_inline)) void fill_lanes(uint8_t *shadow, uint8_t byte, const uint64_t *address,
                                                             uint64_t base, uint32_t lanes, unsigned bytes) {
  if (lanes == KL_ALL_LANES)
    for (unsigned i = 0; i < KL_LANES; i++) memset(shadow + (address[i] - base), byte, bytes);
  else
    for (; lanes; lanes &= lanes - 1) memset(shadow + (address[__builtin_ctz(lanes)] - base), byte, bytes);
}
static void fill_each(uint8_t *shadow, uint8_t byte, const uint64_t *address, uint64_t base, uint32_t lanes,
                      unsigned bytes) {
  switch (bytes) {
  case 1: fill_lanes(shadow, byte, address, base, lanes, 1); break;
  case 2: fill_lanes(shadow, byte, address, base, lanes, 2); break;
  case 4: fill_lanes(shadow, byte, address, base, lanes, 4); break;
  case 8: fill_lanes(shadow, byte, address, base, lanes, 8); break;
  case 16: fill_lanes(shadow, byte, address, base, lanes, 16); break;
  default: fill_lanes(shadow, byte, address, base, lanes, bytes);
  }
}
// Are all of them filled?
static bool are_filled(const uint8_t *shadow, uint8_t byte, const uint64_t *address, uint64_t base, uint32_t lanes,
                       unsigned bytes) {
  const uint64_t all = byte ? ~(uint64_t)0 : 0;
  uint64_t other = 0, u = all;
  for (; lanes; lanes &= lanes - 1) {
    const uint8_t *at = shadow + (address[__builtin_ctz(lanes)] - base);
    switch (bytes) {
    case 1: other |= *at ^ byte; break;
    case 2: memcpy(&u, at, 2), other |= u ^ all; break;
    case 4: memcpy(&u, at, 4), other |= u ^ all; break;
    default:
      for (unsigned k = 0; k < bytes; k += 8) memcpy(&u, at + k, 8), other |= u ^ all;
    }
  }
  return other == 0;
}

static bool find_area(values *v, const kl_warp *w, const kl_sim_access *m, unsigned lane, uint64_t address, area *out) {
  place p = place_of(v, w, m->where, lane, address);
  uint64_t own = (uint64_t)m->bytes * m->count;
  if (p.region)
    *out = (area){p.region->base, p.region->size, p.region->undefined, p.flip};
  else if (p.block)
    *out = (area){address - p.offset, w->block->shared_bytes, p.block->shared, p.flip};
  else
    *out = (area){address, own, p.at, p.flip};
  return p.region || p.at;
}

// The same address may be many places: a lane's own memory, or another window.
static bool may_lie_apart(const kl_sim_access *m, const kl_places *p) {
  return m->where == KL_AT_STACK || (m->where == KL_AT_GENERIC && p->least < KL_DEVICE_MEMORY);
}

// Lanes' bytes have their values, or (`set`) get them; `a` is where the last one's lay. False: not all, or it takes
// more than that to say so.
static bool each_known(values *v, const kl_warp *w, const kl_sim_access *m, const kl_places *p, bool set, area a) {
  const bool apart = may_lie_apart(m, p);
  const unsigned own = (unsigned)m->bytes * m->count;
  if (!apart && a.shadow && p->least >= a.base && p->most - a.base + own <= a.bytes && kl_is_scattered(p)) {
    if (!set) return are_filled(a.shadow, a.flip, p->address, a.base, w->x.mask, own);
    fill_each(a.shadow, a.flip, p->address, a.base, w->x.mask, own);
    return true;
  }
  for (uint32_t left = w->x.mask; left;) {
    kl_stretch t = kl_next_stretch(p, &left);
    uint64_t address = p->address[t.first], bytes = (uint64_t)m->bytes * m->count * t.n;
    if ((apart || address - a.base >= a.bytes) && !find_area(v, w, m, t.first, address, &a)) return false;
    uint64_t at = address - a.base;
    if (bytes > a.bytes - at) return false;
    if (a.shadow && set)
      fill(a.shadow + at, a.flip, bytes);
    else if (a.shadow ? !is_filled(a.shadow + at, a.flip, bytes) : a.flip != 0)
      return false;
  }
  return true;
}

enum { NEAR = 1024 };

// Do all accesses of a run lie in the area, whose first one's take `span` bytes from `at` on?
static bool has_run(const area *a, const kl_sim_access *m, uint64_t at, uint64_t span) {
  const uint64_t low = 0 - (uint64_t)m->low;
  return low <= at && (uint64_t)m->high <= a->bytes - at - span;
}

// The same, at one go where all lie near to one another in one piece of memory.
static bool all_known(values *v, const kl_warp *w, const kl_sim_access *m, const kl_places *p, bool set) {
  area a = {0};
  uint64_t bytes = (uint64_t)m->bytes * m->count, span = p->most - p->least + bytes;
  uint32_t mask = w->x.mask;
  if (may_lie_apart(m, p)) return each_known(v, w, m, p, set, a);
  if (p->follows && v->run.shadow) {
    a = v->run;
  } else {
    if (!find_area(v, w, m, (unsigned)__builtin_ctz(mask), p->least, &a)) return false;
    if (span > a.bytes - (p->least - a.base)) return each_known(v, w, m, p, set, (area){0});
    if (m->run == m && has_run(&a, m, p->least - a.base, span)) v->run = a;
  }
  if (!a.shadow) return a.flip == 0;
  if (span > NEAR) return each_known(v, w, m, p, set, a);
  uint8_t *at = a.shadow + (p->least - a.base);
  if (!set) return is_filled(at, a.flip, span) || each_known(v, w, m, p, set, a);
  if (span != bytes * (uint64_t)__builtin_popcount(mask) || p->joined != (mask & mask << 1))
    return each_known(v, w, m, p, set, a);
  fill(at, a.flip, span);
  return true;
}

static uint64_t extended(uint64_t u, const kl_sim_access *m, unsigned k) {
  unsigned bits = 8u * m->bytes;
  bool sign = m->sign && bits < 64 && m->reg_bytes[k] > m->bytes && (u >> (bits - 1) & 1);
  return sign ? u | ~(uint64_t)0 << bits : u;
}

static void load(values *v, kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p) {
  const kl_frame *f = w->strand.frame;
  uint64_t any[KL_MOST_ELEMENTS] = {0};
  bool known = all_known(v, w, m, p, false);
  if (known && !f->lacks) return;
  for (unsigned i = 0; !known && i < KL_LANES; i++) {
    if (!(w->x.mask >> i & 1)) continue;
    place at = place_of(v, w, m->where, i, p->address[i]);
    for (unsigned k = 0; k < m->count; k++) {
      if (m->regs[k] == KL_NO_REF) continue;
      char *to = shadow_of(f, m->regs[k]) + (size_t)i * m->reg_bytes[k];
      uint64_t lacks = 0;
      if (m->bytes == 16) {
        uint64_t u[2] = {get(&at, 16 * k, 8), get(&at, 16 * k + 8, 8)};
        memcpy(to, u, 16);
        lacks = u[0] | u[1];
      } else {
        uint64_t u = extended(get(&at, k * m->bytes, m->bytes), m, k);
        memcpy(to, &u, m->reg_bytes[k]);
        lacks = u;
      }
      any[k] |= lacks;
      if (lacks)
        values_set_origin(v, f, m->regs[k], i,
                          loaded_origin(v, w, o, m, i, &at, p->address[i], k * m->bytes, m->bytes));
    }
  }
  for (unsigned k = 0; k < m->count; k++) {
    if (m->regs[k] == KL_NO_REF) continue;
    if (known)
      know(w, m->regs[k], m->reg_bytes[k]);
    else if (any[k])
      set_flag(f, m->regs[k]);
    else if (!(f->lanes & ~w->x.mask)) // other lanes keep theirs
      *flag_of(f, m->regs[k]) = 0;
  }
}

static bool all_clean(const kl_frame *f, const kl_sim_access *m) {
  if (!f->lacks) return true;
  for (unsigned k = 0; k < m->count; k++)
    if (in_registers(m->regs[k]) && *flag_of(f, m->regs[k])) return false;
  return true;
}

static void store(values *v, kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p) {
  const kl_frame *f = w->strand.frame;
  unsigned half = m->bytes == 16 ? 8 : m->bytes;
  bool clean = all_clean(f, m);
  if (clean && all_known(v, w, m, p, true)) return;
  for (unsigned i = 0; i < KL_LANES; i++) {
    if (!(w->x.mask >> i & 1)) continue;
    place at = place_of(v, w, m->where, i, p->address[i]);
    for (unsigned k = 0; k < m->count; k++)
      for (unsigned part = 0; part < m->bytes; part += half) {
        uint64_t u = 0;
        if (!clean && in_registers(m->regs[k]))
          memcpy(&u, shadow_of(f, m->regs[k]) + (size_t)i * m->reg_bytes[k] + part, half);
        put(v, w, o, i, &at, p->address[i], k * m->bytes + part, half, u,
            u ? values_origin(v, f, o, m->regs[k], i) : 0);
      }
  }
}

// cp.async: until it arrives the target has no value; then what the source lacks, the target lacks, and behind the size
// that is asked for there are zeros. It may arrive in another function than the one that copies: its origin is
// taken at the beginning.
void values_copy(kl_observer *self, kl_warp *w, kl_flight *f, bool arrives) {
  values *v = values_of(self);
  const kl_copy *c = (const kl_copy *)(uintptr_t)f->op->imm;
  if (!w->block->shadow) return;
  if (!arrives) {
    f->unsure = values_unknown(w->strand.frame, c->size, 4, f->lane) != 0;
    f->origin = f->unsure ? values_origin(v, w->strand.frame, f->op, c->size, f->lane)
                          : values_copy_origin(v, w->strand.frame, f->op);
  }
  place to = place_of(v, w, c->to.where, f->lane, f->to_address), from = {0};
  if (f->taken) from = place_of(v, w, c->from.where, f->lane, f->from_address);
  for (unsigned k = 0; k < f->bytes; k++) {
    uint64_t unknown = !arrives || f->unsure ? 0xff : k < f->taken ? get(&from, k, 1) : 0;
    uint32_t origin = f->origin;
    if (arrives && !f->unsure && unknown) {
      origin = stored_origin(v, w, f->lane, &from, f->from_address, k & ~3u);
      if (!origin) origin = values_copied_origin(v, w, f->origin, c->from.where, f->from_address + (k & ~3u), 4);
    }
    put(v, w, f->op, f->lane, &to, f->to_address, k, 1, unknown, origin);
  }
}

// --- atomics ------------------------------------------------------------------------------------------------------

static uint64_t ones(unsigned bytes) {
  return ~(uint64_t)0 >> (64 - 8 * bytes);
}
static uint64_t up(uint64_t u) {
  return u | (0 - u);
}

// Bits without a value of memory and of both operands, and what is known of their values: bits that an and or an or
// decides, and whether a compare-and-swap may take place.
typedef struct mixed {
  uint64_t old, a, b;
  uint64_t zeros, ones; // in the operand, or in memory where no other lane has changed it
  bool may;
} mixed;

// What the memory lacks afterwards.
static uint64_t combined(const kl_sim_access *m, const mixed *x) {
  uint64_t old = x->old, a = x->a;
  switch ((kl_atomic_op)m->atomic) {
  case KL_ATOMIC_AND: return (old | a) & ~x->zeros;
  case KL_ATOMIC_OR: return (old | a) & ~x->ones;
  case KL_ATOMIC_XOR: return old | a;
  case KL_ATOMIC_EXCH: return a;
  case KL_ATOMIC_CAS: return old | a ? ones(m->bytes) : x->may ? x->b : 0;
  case KL_ATOMIC_ADD:
    if (m->kind == 'u' || m->kind == 's') return up(old | a);
    break;
  default: break;
  }
  return old | a ? ones(m->bytes) : 0;
}

static bool seen_before(const kl_warp *w, const kl_places *p, unsigned lane) {
  for (unsigned i = 0; i < lane; i++)
    if ((w->x.mask >> i & 1) && p->address[i] == p->address[lane]) return true;
  return false;
}

static void know_values(mixed *x, const char *operand, const char *host, unsigned bytes, bool alone) {
  uint64_t a = 0, old = 0;
  memcpy(&a, operand, bytes);
  memcpy(&old, host, bytes);
  x->zeros = (~a & ~x->a) | (alone ? ~old & ~x->old : 0);
  x->ones = (a & ~x->a) | (alone ? old & ~x->old : 0);
}

static void atomic_lane(values *v, kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p,
                        unsigned i, bool *any) {
  const kl_lanes *x = &w->x;
  const kl_frame *f = w->strand.frame;
  unsigned step = m->bytes == 16 ? 8 : m->bytes;
  bool alone = !seen_before(w, p, i);
  const char *operand = AT(char, o->a) + (size_t)i * m->bytes;
  place at = place_of(v, w, m->where, i, p->address[i]);
  for (unsigned part = 0; part < m->bytes; part += step) {
    mixed y = {.old = get(&at, part, step), .may = !alone || memcmp(operand, p->host[i], m->bytes) == 0};
    if (in_registers(o->a)) memcpy(&y.a, shadow_of(f, o->a) + (size_t)i * m->bytes + part, step);
    if (in_registers(o->b)) memcpy(&y.b, shadow_of(f, o->b) + (size_t)i * m->bytes + part, step);
    know_values(&y, operand + part, p->host[i] + part, step, alone);
    uint32_t old = y.old ? loaded_origin(v, w, o, m, i, &at, p->address[i], part, step) : 0;
    uint32_t origin = old ? old : y.a ? values_origin(v, f, o, o->a, i) : y.b ? values_origin(v, f, o, o->b, i) : 0;
    put(v, w, o, i, &at, p->address[i], part, step, combined(m, &y) & ones(step), origin);
    if (o->d != KL_NO_REF) {
      memcpy(shadow_of(f, o->d) + (size_t)i * m->bytes + part, &y.old, step);
      if (y.old) values_set_origin(v, f, o->d, i, old);
    }
    *any |= y.old != 0;
  }
}

// Lane after lane, by rising number: where lanes meet at one address and the order is shuffled, what is known of their
// results may be another one's.
static void atomic(values *v, kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p) {
  const kl_frame *f = w->strand.frame;
  bool any = false;
  for (unsigned i = 0; i < KL_LANES; i++)
    if (w->x.mask >> i & 1) atomic_lane(v, w, o, m, p, i, &any);
  if (o->d == KL_NO_REF) return;
  if (any)
    set_flag(f, o->d);
  else if (!(f->lanes & ~w->x.mask))
    *flag_of(f, o->d) = 0;
}

void values_access(kl_observer *self, kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p) {
  values *v = values_of(self);
  if (!w->block->shadow) return;
  if (!p->follows) v->run.shadow = NULL;
  if (o->run == kl_x_load)
    load(v, w, o, m, p);
  else if (o->run == kl_x_store)
    store(v, w, o, m, p);
  else if (o->run == kl_x_atomic)
    atomic(v, w, o, m, p);
}

// --- what is left -------------------------------------------------------------------------------------------------

static bool is_scratch(const kl_checks *c, uint64_t address) {
  for (size_t k = 0; k < c->bytes.n; k++)
    if (c->bytes.p[k].use == KL_USE_SCRATCH && address - c->bytes.p[k].address < c->bytes.p[k].bytes) return true;
  return false;
}

static void judge_word(values *v, kl_region *r, uint64_t word, left l) {
  uint64_t at = r->base + word * 4;
  unsigned bytes = r->size - word * 4 < 4 ? (unsigned)(r->size - word * 4) : 4, first = bytes, n = 0;
  const uint8_t *u = r->undefined ? r->undefined + word * 4 : NULL;
  for (unsigned k = 0; k < bytes; k++)
    if ((u ? u[k] ^ r->flip : r->flip) != 0) {
      if (first == bytes) first = k;
      n = k - first + 1;
    }
  if (!n || is_scratch(v->checks, at)) return;
  store_place s = l.store == MOST_STORES ? (store_place){.func = v->kernel->func} : v->stores.p[l.store - 1];
  kl_found found = {.kind = KL_FOUND_UNDEFINED_OUTPUT,
                    .at = {.func = s.func, .instr = s.instr, .calls = s.calls},
                    .spot = kl_spot_in_memory(v->checks->memory, v->launch, at + first, n),
                    .value_bytes = (uint8_t)n,
                    .origin = values_origin_of(v, l.origin)};
  for (unsigned k = first; k < first + n; k++) {
    found.value |= (uint64_t)(uint8_t)r->host[word * 4 + k] << 8 * (k - first);
    found.unknown |= (uint64_t)(uint8_t)((u ? u[k] : 0) ^ r->flip) << 8 * (k - first);
  }
  values_thread(v, l.thread, &found.at);
  kl_report_add(v->checks->cx, &v->checks->report, &found);
  kl_memory_define(v->checks->memory, at + first, n);
}

void values_judge(values *v) {
  kl_memory *m = v->checks->memory;
  for (size_t k = 0; k < m->regions.n; k++) {
    kl_region *r = &m->regions.p[k];
    left *l = v->left[k];
    if (!l) continue;
    bool callers = r->kind == KL_REGION_USER || r->kind == KL_REGION_HOST;
    for (uint64_t word = 0; callers && word < r->size / 4 + 1; word++)
      if (l[word].store) judge_word(v, r, word, l[word]);
    kl_unmap(l, left_bytes(r));
    v->left[k] = NULL;
  }
}

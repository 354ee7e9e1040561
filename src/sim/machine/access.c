// Loads and stores: from lanes' addresses to bytes of the host.

#include "sim/machine/access.h"

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"

// --- one lane -----------------------------------------------------------------------------------------------------

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

// --- all lanes ----------------------------------------------------------------------------------------------------

// Makes the region of an address the one that is tried first. False: there is none, or it is not to be written.
static bool to_region_of(kl_warp *w, const kl_sim_access *m, uint64_t at) {
  kl_region *r = &w->block->worker->last;
  if (at - r->base >= r->size) {
    const kl_region *found = kl_memory_find(w->block->run->memory, at);
    if (!found || found->freed) return false;
    *r = *found;
  }
  return !m->store || r->kind != KL_REGION_CONST;
}

// The memory that an access is to, as `at` says, which may not lie there. False: it is not to be had as one window.
static bool window_of(kl_warp *w, const kl_sim_access *m, uint64_t at, uint64_t bytes, kl_window *out) {
  const kl_block *b = w->block;
  uint64_t size = 0;
  *out = (kl_window){0};
  switch ((kl_where)m->where) {
  case KL_AT_SHARED: out->host = b->shared, size = b->shared_bytes; break;
  case KL_AT_STACK:
    if (!w->stack) return false;
    out->host = w->stack, size = w->strand.frame->top, out->skew = KL_MOST_STACK;
    break;
  case KL_AT_PARAM:
    if (m->store) return false;
    out->host = (char *)b->run->params, size = b->run->kernel->param_bytes;
    break;
  case KL_AT_GENERIC:
  case KL_AT_GLOBAL:
    if (!to_region_of(w, m, at)) return false;
    const kl_region *r = &b->worker->last;
    out->base = r->base, out->host = r->host, size = r->size;
    break;
  }
  if (size < bytes) return false;
  out->room = size - bytes;
  if (m->run == m) { // all of the run are to lie there
    const uint64_t low = 0 - (uint64_t)m->low, wide = (uint64_t)(m->high - m->low);
    if (wide > out->room) return false;
    out->base += low, out->host += low, out->room -= wide;
  }
  return true;
}

// All lanes execute, and their addresses rise by one number from lane to lane.
static bool find_even(kl_warp *w, const kl_sim_access *m, uint64_t offset, uint64_t bytes, kl_places *out) {
  kl_window in;
  uint64_t at = offset, step = 0;
  kl_lanes *x = &w->x;
  if (x->mask != KL_ALL_LANES) return false;
  if (m->base != KL_NO_REF) {
    if (!w->memory->is_even(x, m->base, m->wide, &step)) return false;
    at = m->wide == 8 ? *AT(uint64_t, m->base) + offset : (uint32_t)(*AT(uint32_t, m->base) + (uint32_t)offset);
  }
  if (((at | step) & (bytes - 1)) != 0 || !window_of(w, m, at, bytes, &in)) return false;
  // Steps that are larger than the window lead out of it.
  uint64_t first = at - in.base, last = first + (KL_LANES - 1) * step;
  if (step + in.room > 2 * in.room || first > in.room || last > in.room) return false;
  out->address[0] = at;
  out->address[1] = at + step;
  out->bytes = (kl_lane_bytes){.first = in.host + first, .step = step + in.skew};
  return true;
}

// `one`: they lie in one window, all by the same distance from their addresses.
static bool find_each(kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, uint64_t offset, uint64_t bytes,
                      kl_places *out, bool *one) {
  kl_window in;
  kl_lanes *x = &w->x;
  if (m->base != KL_NO_REF)
    w->memory->addresses(x, m->base, m->wide, offset, out->address);
  else
    for (int i = 0; i < KL_LANES; i++) out->address[i] = offset;
  out->bytes = (kl_lane_bytes){.each = out->host};
  if (window_of(w, m, out->address[__builtin_ctz(x->mask)], bytes, &in) &&
      w->memory->places(x, out->address, &in, bytes - 1, out->host)) {
    *one = in.skew == 0;
    return true;
  }
  *one = false;
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

// What observers ask of all lanes, where each has its place.
static void look_at_each(kl_warp *w, uint64_t bytes, kl_places *p) {
  const kl_lanes *x = &w->x;
  p->joined = w->memory->survey(x, p->address, p->host, bytes, &p->least, &p->most);
  p->joined &= x->mask & x->mask << 1;
}

// Each lane's address and place, of lanes that are even.
static void write_out(const kl_lane_memory *memory, kl_places *p) {
  memory->rise(p->address[0], p->address[1] - p->address[0], p->address);
  memory->rise((uint64_t)(uintptr_t)p->bytes.first, p->bytes.step, p->host);
}

// What observers ask of them.
static void look_at_even(uint64_t bytes, kl_places *p) {
  uint64_t first = p->address[0], last = p->address[KL_LANES - 1];
  p->joined = p->address[1] - first == bytes && p->bytes.step == bytes ? KL_ALL_LANES << 1 : 0;
  p->least = first < last ? first : last;
  p->most = first < last ? last : first;
}

// `each`: each lane's place is wanted by itself; else what moves bytes wants to know is enough. `one` as of find_each.
static bool find_places(kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, bool each, kl_places *out, bool *one) {
  uint64_t bytes = (uint64_t)m->bytes * m->count;
  uint64_t offset = (uint64_t)m->offset + (m->frame ? w->strand.frame->stack : 0);
  const bool observed = __builtin_expect(w->observed, false);
  if (find_even(w, m, offset, bytes, out)) {
    if (each || observed) write_out(w->memory, out);
    if (observed) look_at_even(bytes, out);
    *one = true;
    return true;
  }
  if (!find_each(w, o, m, offset, bytes, out, one)) return false;
  if (observed) look_at_each(w, bytes, out);
  return true;
}

static void tell(kl_warp *w, const kl_sim_op *o, const kl_sim_access *m, const kl_places *p) {
  const kl_run_state *run = w->block->run;
  kl_observer *const *to = run->lookers;
  for (kl_observer *const *end = to + run->nlookers; to < end; to++) (*to)->access(*to, w, o, m, p);
}

bool kl_access_places(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, kl_places *out) {
  kl_warp *w = kl_warp_of(x);
  bool one;
  if (!find_places(w, o, m, true, out, &one)) return false;
  out->follows = false;
  if (w->observed) tell(w, o, m, out);
  return true;
}

// --- runs of accesses ---------------------------------------------------------------------------------------------

// From the places of an access of the run to those of another one, which lie in the same memory.
static void go_on(const kl_warp *w, const kl_sim_access *m, kl_last_places *at) {
  const int64_t by = m->offset - at->offset;
  at->offset = m->offset;
  if (!at->p.bytes.each)
    at->p.bytes.first += by;
  else if (!w->observed)
    at->p.bytes.by += by;
  if (!w->observed) return;
  w->memory->move_on(at->p.address, at->p.host, (uint64_t)by);
  at->p.least += (uint64_t)by;
  at->p.most += (uint64_t)by;
}

// Of a load or a store; NULL after a fault.
static const kl_places *places_of(kl_warp *w, const kl_sim_op *o, const kl_sim_access *m) {
  kl_last_places *at = &w->block->worker->at;
  bool one;
  if (m->run && m->run != m && at->run == m->run && at->warp == w && at->mask == w->x.mask) {
    at->p.follows = true;
    go_on(w, m, at);
  } else {
    at->run = NULL;
    at->p.follows = false;
    if (!find_places(w, o, m, false, &at->p, &one)) return NULL;
    if (one && m->run == m) at->run = m, at->warp = w, at->mask = w->x.mask, at->offset = m->offset;
  }
  if (__builtin_expect(w->observed, false)) tell(w, o, m, &at->p);
  return &at->p;
}

// --- loads and stores ---------------------------------------------------------------------------------------------

void kl_x_load(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  const kl_lane_memory *memory = kl_warp_of(x)->memory;
  const kl_places *p = places_of(kl_warp_of(x), o, m);
  if (!p) return;
  if (m->four && x->mask == KL_ALL_LANES) {
    memory->load_four(x, m->regs, &p->bytes);
    return;
  }
  for (unsigned k = 0; k < m->count; k++)
    if (m->regs[k] != KL_NO_REF) {
      bool sign = m->sign && m->bytes < m->reg_bytes[k];
      memory->load[sign][kl_move_of(m->bytes)][kl_move_of(m->reg_bytes[k])](x, m->regs[k], &p->bytes, k * m->bytes);
    }
}

void kl_x_store(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  const kl_lane_memory *memory = kl_warp_of(x)->memory;
  const kl_places *p = places_of(kl_warp_of(x), o, m);
  if (!p) return;
  if (m->four && x->mask == KL_ALL_LANES) {
    memory->store_four(x, m->regs, &p->bytes);
    return;
  }
  for (unsigned k = 0; k < m->count; k++)
    memory->store[kl_move_of(m->bytes)][kl_move_of(m->reg_bytes[k])](x, m->regs[k], &p->bytes, k * m->bytes);
}

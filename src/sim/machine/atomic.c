// Atomic operations, lane after lane. Blocks that see each other's run on one worker, so nothing here needs the host's
// atomics. PTX ISA 9.7.13.5.

#include "sim/lanes/floats.h"
#include "sim/machine/access.h"
#include "sim/machine/execute.h"

// --- floats -------------------------------------------------------------------------------------------------------

static uint16_t add_half(uint16_t a, uint16_t b) {
  return (uint16_t)narrow_f16(widen_f16(a) + widen_f16(b)); // 24 bits hold enough for one rounding
}
static uint16_t add_bfloat(uint16_t a, uint16_t b) {
  return (uint16_t)narrow_bf16(widen_bf16(a) + widen_bf16(b));
}

// Global memory flushes subnormal inputs and results; shared memory keeps them.
static uint32_t add_float(uint32_t a, uint32_t b, bool global) {
  return global ? flush32(canonical(flush(float_of(a)) + flush(float_of(b)))) : canonical(float_of(a) + float_of(b));
}

static uint64_t add_double(uint64_t a, uint64_t b) {
  double sum = double_of(a) + double_of(b);
  return sum == sum ? bits64(sum) : nan_of(a, b, 0);
}

static uint64_t add(uint64_t a, uint64_t b, const kl_sim_access *m, bool shared) {
  switch (m->kind) {
  case 'f':
    return m->bytes == 8   ? add_double(a, b)
           : m->bytes == 2 ? add_half((uint16_t)a, (uint16_t)b)
                           : add_float((uint32_t)a, (uint32_t)b, !shared);
  case 'g': return add_bfloat((uint16_t)a, (uint16_t)b);
  case 'h':
    return add_half((uint16_t)a, (uint16_t)b) | (uint32_t)add_half((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
  case 'i':
    return add_bfloat((uint16_t)a, (uint16_t)b) | (uint32_t)add_bfloat((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
  default: return a + b;
  }
}

// The least or greatest of one or two halves, as min and max give it.
static uint64_t extreme(uint32_t a, uint32_t b, bool max, const kl_sim_access *m) {
  uint16_t inf = m->kind == 'g' || m->kind == 'i' ? INF_BF16 : INF_F16;
  uint32_t low = extremum((uint16_t)a, (uint16_t)b, max, inf, 0);
  return m->bytes == 2 ? low : low | (uint32_t)extremum((uint16_t)(a >> 16), (uint16_t)(b >> 16), max, inf, 0) << 16;
}

// --- one lane -----------------------------------------------------------------------------------------------------

static bool is_float(const kl_sim_access *m) {
  return m->kind >= 'f' && m->kind <= 'i';
}

static bool is_less(uint64_t a, uint64_t b, const kl_sim_access *m) {
  if (m->kind != 's') return a < b;
  return m->bytes == 8 ? (int64_t)a < (int64_t)b : (int32_t)a < (int32_t)b;
}

// The new value for the old one.
static uint64_t applied(uint64_t old, uint64_t a, uint64_t b, const kl_sim_access *m, bool shared) {
  switch ((kl_atomic_op)m->atomic) {
  case KL_ATOMIC_AND: return old & a;
  case KL_ATOMIC_OR: return old | a;
  case KL_ATOMIC_XOR: return old ^ a;
  case KL_ATOMIC_EXCH: return a;
  case KL_ATOMIC_CAS: return old == a ? b : old;
  case KL_ATOMIC_INC: return old >= a ? 0 : old + 1;
  case KL_ATOMIC_DEC: return old == 0 || old > a ? a : old - 1;
  case KL_ATOMIC_ADD: return add(old, a, m, shared);
  case KL_ATOMIC_MIN: return is_float(m) ? extreme((uint32_t)old, (uint32_t)a, false, m) : is_less(a, old, m) ? a : old;
  case KL_ATOMIC_MAX: return is_float(m) ? extreme((uint32_t)old, (uint32_t)a, true, m) : is_less(old, a, m) ? a : old;
  }
  return old;
}

static uint64_t value_of(const kl_lanes *x, kl_ref ref, unsigned lane, unsigned bytes) {
  uint64_t v = 0;
  if (ref != KL_NO_REF) memcpy(&v, AT(char, ref) + (size_t)lane * bytes, bytes);
  return v;
}

static void exchange_wide(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, unsigned lane, char *host) {
  char old[16], a[16];
  memcpy(old, host, 16);
  memcpy(a, AT(char, o->a) + lane * 16, 16);
  if (m->atomic == KL_ATOMIC_EXCH)
    memcpy(host, a, 16);
  else if (memcmp(old, a, 16) == 0)
    memcpy(host, AT(char, o->b) + lane * 16, 16);
  if (o->d != KL_NO_REF) memcpy(AT(char, o->d) + lane * 16, old, 16);
}

static void exchange(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, unsigned lane, const kl_places *p) {
  bool shared = m->where == KL_AT_SHARED || p->address[lane] / KL_WINDOW == KL_SHARED_WINDOW / KL_WINDOW;
  for (unsigned k = 0; k < m->count; k++) { // each element by itself
    kl_ref from = m->from ? m->from[k] : o->a, to = m->from ? m->regs[k] : o->d;
    char *host = p->host[lane] + (size_t)k * m->bytes;
    uint64_t old = 0;
    memcpy(&old, host, m->bytes);
    uint64_t now = applied(old, value_of(x, from, lane, m->bytes), value_of(x, o->b, lane, m->bytes), m, shared);
    memcpy(host, &now, m->bytes);
    if (to != KL_NO_REF) memcpy(AT(char, to) + (size_t)lane * m->bytes, &old, m->bytes);
  }
}

void kl_x_atomic(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  kl_places p;
  if (!kl_access_places(x, o, m, &p)) return;
  unsigned first = kl_draw_below(kl_warp_of(x)->block->cluster, KL_LANES);
  for (unsigned k = 0; k < KL_LANES; k++) {
    unsigned i = (k + first) % KL_LANES;
    if (!(x->mask >> i & 1)) continue;
    if (m->bytes == 16)
      exchange_wide(x, o, m, i, p.host[i]);
    else
      exchange(x, o, m, i, &p);
  }
}

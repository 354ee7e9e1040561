// Atomic operations, lane after lane. Blocks that see each other's run on one worker, so nothing here needs the host's
// atomics. PTX ISA 9.7.13.5.

#include "sim/machine/access.h"
#include "sim/machine/execute.h"

#include <math.h>

// --- small floats -------------------------------------------------------------------------------------------------

static float float_of(uint32_t bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}
static uint32_t bits_of(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return bits;
}

static float from_half(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, mantissa = h & 0x3ff;
  int exponent = h >> 10 & 31;
  if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
  float v = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
  return sign ? -v : v;
}

// To nearest even; NaN is 0x7fff.
static uint16_t to_half(float v) {
  uint16_t sign = bits_of(v) >> 16 & 0x8000;
  float a = fabsf(v);
  if (isnan(v)) return 0x7fff;
  if (a >= 65520.0f) return sign | 0x7c00;
  if (a < 0x1p-14f) return sign | (uint16_t)nearbyintf(a * 0x1p24f); // carries into the least normal number
  uint32_t bits = bits_of(a), odd = bits >> 13 & 1;
  return sign | (uint16_t)((bits + 0xfff + odd - 0x38000000) >> 13);
}

static uint16_t to_bfloat(float v) {
  uint32_t bits = bits_of(v);
  if (isnan(v)) return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t add_half(uint16_t a, uint16_t b) {
  return to_half(from_half(a) + from_half(b)); // 24 bits hold enough for one rounding
}
static uint16_t add_bfloat(uint16_t a, uint16_t b) {
  return to_bfloat(float_of((uint32_t)a << 16) + float_of((uint32_t)b << 16));
}

static float flushed(float v) {
  return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v;
}

// Global memory flushes subnormal inputs and results; shared memory keeps them.
static uint32_t add_float(uint32_t a, uint32_t b, bool flush) {
  float x = float_of(a), y = float_of(b);
  float sum = flush ? flushed(flushed(x) + flushed(y)) : x + y;
  return isnan(sum) ? 0x7fffffff : bits_of(sum);
}

static uint64_t add_double(uint64_t a, uint64_t b) {
  double x, y, sum;
  memcpy(&x, &a, 8), memcpy(&y, &b, 8);
  sum = x + y;
  if (isnan(sum)) return 0xfff8000000000000;
  memcpy(&a, &sum, 8);
  return a;
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

// --- one lane -----------------------------------------------------------------------------------------------------

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
  case KL_ATOMIC_MIN: return is_less(a, old, m) ? a : old;
  case KL_ATOMIC_MAX: return is_less(old, a, m) ? a : old;
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

void kl_x_atomic(kl_lanes *x, const kl_sim_op *o) {
  const kl_sim_access *m = (const kl_sim_access *)(uintptr_t)o->imm;
  kl_places p;
  if (!kl_access_places(x, o, m, &p)) return;
  unsigned first = kl_draw_below(kl_warp_of(x)->block->cluster, KL_LANES);
  for (unsigned k = 0; k < KL_LANES; k++) {
    unsigned i = (k + first) % KL_LANES;
    uint64_t old = 0;
    if (!(x->mask >> i & 1)) continue;
    if (m->bytes == 16) {
      exchange_wide(x, o, m, i, p.host[i]);
      continue;
    }
    bool shared = m->where == KL_AT_SHARED || p.address[i] / KL_WINDOW == KL_SHARED_WINDOW / KL_WINDOW;
    memcpy(&old, p.host[i], m->bytes);
    uint64_t now = applied(old, value_of(x, o->a, i, m->bytes), value_of(x, o->b, i, m->bytes), m, shared);
    memcpy(p.host[i], &now, m->bytes);
    if (o->d != KL_NO_REF) memcpy(AT(char, o->d) + (size_t)i * m->bytes, &old, m->bytes);
  }
}

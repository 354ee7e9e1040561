// Guards and memory accesses: what can be done for several lanes at once.
//
// Lanes of a thread hold L = first + lanes*t + j. Writing j = V*q + i (chunk q, lane i inside it) and simplifying, an
// index is affine in i exactly when i stands under no floor. Then a chunk of V lanes has one base address, and its
// lanes are `coef(i)` elements apart. Every V has variables q and i of its own, so that one domain serves all.

#include "lower/choose/walk.h"

static uint32_t lane_in_chunk(uint32_t v) {
  return KL_VAR_COUNT + 2 * ((uint32_t)__builtin_ctz(v) - 1) + 1;
}

kl_dom *kl_body_domain(kl_affs *p, int64_t threads, uint32_t lanes) {
  kl_interval in[KL_WALK_VARS] = {[KL_VAR_THREAD] = {0, threads - 1}, [KL_VAR_LANE] = {0, (int64_t)lanes - 1}};
  for (uint32_t v = 2; v <= lanes; v *= 2) {
    in[lane_in_chunk(v) - 1] = (kl_interval){0, (int64_t)(lanes / v) - 1};
    in[lane_in_chunk(v)] = (kl_interval){0, (int64_t)v - 1};
  }
  return kl_dom_make(p, KL_WALK_VARS, in);
}

static const kl_aff *in_chunks(kl_guards *g, const kl_aff *e, uint32_t v) {
  const kl_aff *i = kl_aff_dim(g->affs, lane_in_chunk(v)), *q = kl_aff_dim(g->affs, lane_in_chunk(v) - 1);
  return kl_at_lane(g->affs, g->domain, e, kl_aff_addmul(g->affs, i, q, v));
}

// Largest number that divides the constant and every coefficient but that of `except`; 0 if there are none.
static int64_t content(const kl_aff *e, uint32_t except) {
  uint64_t g = e->c < 0 ? 0 - (uint64_t)e->c : (uint64_t)e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM && a->var == except) continue;
    int64_t c = e->terms[i].coef;
    for (uint64_t x = c < 0 ? 0 - (uint64_t)c : (uint64_t)c; x;) {
      uint64_t t = g % x;
      g = x;
      x = t;
    }
  }
  return g > INT64_MAX ? 1 : (int64_t)g;
}

static int64_t positive_mod(int64_t a, int64_t m) {
  int64_t r = a % m;
  return r < 0 ? r + m : r;
}

// Is "lo <= g + i <= hi" the same for i in 0..v-1, whatever multiple of m plus c the value of g is?
// It changes inside the chunk if lo - g is in 1..v-1 or hi - g is in 0..v-2; both differences run through one residue.
static bool same_for_chunk(int64_t m, int64_t c, int64_t lo, int64_t hi, int64_t v) {
  if (m == 0) {
    bool first = c >= lo && c <= hi;
    for (int64_t i = 1; i < v; i++) {
      if ((c + i >= lo && c + i <= hi) != first) return false;
    }
    return true;
  }
  if (m < v) return false;
  int64_t from_lo = positive_mod(lo - positive_mod(c, m), m), from_hi = positive_mod(hi - positive_mod(c, m), m);
  return (from_lo == 0 || from_lo >= v) && from_hi >= v - 1;
}

static bool uniform(kl_guards *g, const kl_aff *e, int64_t lo, int64_t hi, uint32_t v) {
  bool inside = false;
  const kl_aff *x = in_chunks(g, e, v);
  uint32_t i = lane_in_chunk(v);
  if (!kl_is_sound(x)) return false;
  if (!kl_aff_uses(x, i, &inside)) return true;
  int64_t s = kl_aff_coef(x, i);
  if (inside || (s != 1 && s != -1)) return false;
  if (s < 0) {
    x = kl_aff_mulc(g->affs, x, -1);
    int64_t t = -lo;
    lo = -hi;
    hi = t;
  }
  return same_for_chunk(content(kl_aff_addc(g->affs, x, -x->c), i), x->c, lo, hi, v);
}

typedef struct wanted {
  const kl_guards *g;
  kl_guard guard;
} wanted;

static bool is_guard(const void *arg, uint32_t id) {
  const wanted *x = arg;
  const kl_guard *a = &x->guard, *b = &x->g->v.p[id];
  return a->outer == b->outer && a->expr == b->expr && a->lo == b->lo && a->hi == b->hi;
}

uint32_t kl_guard_and(kl_guards *g, uint32_t outer, const kl_aff *e, int64_t lo, int64_t hi, bool *never) {
  e = kl_dom_simplify(g->domain, e);
  kl_interval in = kl_dom_interval(g->domain, e);
  *never = lo > hi || in.hi < lo || in.lo > hi;
  if (*never || (in.lo >= lo && in.hi <= hi)) return outer;
  uint64_t key[4] = {outer, e->id, (uint64_t)lo, (uint64_t)hi};
  uint32_t id = kl_ids_find(g->cx, &g->ids, kl_hash(key, sizeof key, 17), is_guard,
                            &(wanted){g, {.outer = outer, .expr = e, .lo = lo, .hi = hi}});
  if (id < g->v.n) return id;
  uint32_t v = g->lanes;
  while (v > 1 && !uniform(g, e, lo, hi, v)) v /= 2;
  if (outer != KL_NONE && g->v.p[outer].uniform < v) v = g->v.p[outer].uniform;
  VEC_PUSH(g->cx, &g->v, (kl_guard){.outer = outer, .expr = e, .lo = lo, .hi = hi, .uniform = v});
  return id;
}

// Bytes that element offsets of this form are aligned to, at most `limit`; 0 if not even whole bytes.
static uint32_t alignment(const kl_aff *e, unsigned bits, uint32_t limit) {
  int64_t g = content(e, KL_NONE);
  if (g == 0) return limit;
  uint64_t lowest = (uint64_t)g & (0 - (uint64_t)g);
  uint64_t in_bits = lowest > 1024 ? 1024u * bits : lowest * bits;
  uint64_t bytes = in_bits / 8;
  bytes &= 0 - bytes; // 12-byte elements do not exist, but keep it a power of two
  return bytes < limit ? (uint32_t)bytes : limit;
}

// May a chunk with this lane distance be read as a whole? Where a guard does not hold, the chunk at element 0 is read.
static bool chunk_allowed(const kl_slot_info *info, unsigned bits, int64_t stride, uint32_t v, bool guarded) {
  bool contiguous = stride == 1 || stride == -1;
  if (contiguous && v * bits % 8 != 0) return false;
  if (!guarded || stride == 0) return true;
  if (stride < -1) return false;
  int64_t reach = (stride < 0 ? 1 : stride) * (int64_t)(v - 1);
  return reach < info->shape->count;
}

// Elements between neighbouring lanes of a chunk; false where that is no single number.
static bool lane_stride(kl_guards *g, const kl_aff *linear, uint32_t v, int64_t *stride) {
  *stride = 0;
  if (v == 1) return true;
  const kl_aff *x = in_chunks(g, linear, v);
  bool inside = false;
  if (!kl_is_sound(x)) return false;
  kl_aff_uses(x, lane_in_chunk(v), &inside);
  *stride = kl_aff_coef(x, lane_in_chunk(v));
  return !inside;
}

static bool try_chunks(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear, uint32_t v,
                       kl_access *a) {
  unsigned bits = kl_info(info->shape->dtype)->bits;
  if (a->guard != KL_NONE && g->v.p[a->guard].uniform < v) return false;
  int64_t stride;
  if (!lane_stride(g, linear, v, &stride) || !chunk_allowed(info, bits, stride, v, a->guard != KL_NONE)) return false;
  a->vec = v;
  a->reversed = stride == -1 && v > 1;
  a->stride = a->reversed ? 1 : stride;
  a->nchunks = g->lanes / v;
  const kl_aff **base = KL_NEW_N(arena, const kl_aff *, a->nchunks);
  a->align = info->align;
  for (uint32_t c = 0; c < a->nchunks; c++) {
    const kl_aff *e = kl_at_lane(g->affs, g->domain, linear, kl_aff_const(g->affs, (int64_t)c * v));
    base[c] = a->reversed ? kl_aff_addc(g->affs, e, -(int64_t)(v - 1)) : e;
    uint32_t al = alignment(base[c], bits, info->align);
    if (al < a->align) a->align = al;
  }
  a->base = base;
  // Packed sub-byte lanes are taken from whole bytes.
  return !(bits < 8 && v > 1 && a->stride == 1 && a->align == 0);
}

kl_access kl_load_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                       uint32_t guard) {
  // Where the index stays inside anyway, the guard is not needed.
  linear = kl_dom_simplify(g->domain, linear);
  kl_interval in = kl_dom_interval(g->domain, linear);
  if (in.lo >= 0 && in.hi < info->shape->count) guard = KL_NONE;
  kl_access a = {.slot = slot, .guard = guard};
  for (uint32_t v = g->lanes; v > 1; v /= 2) {
    if (try_chunks(g, arena, info, linear, v, &a)) return a;
  }
  try_chunks(g, arena, info, linear, 1, &a);
  return a;
}

kl_access kl_store_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                        uint32_t max_vec) {
  linear = kl_dom_simplify(g->domain, linear);
  kl_access a = {.slot = slot, .guard = KL_NONE};
  for (uint32_t v = g->lanes < max_vec ? g->lanes : max_vec; v > 1; v /= 2) {
    if (try_chunks(g, arena, info, linear, v, &a) && a.stride == 1 && !a.reversed) return a;
  }
  try_chunks(g, arena, info, linear, 1, &a);
  return a;
}

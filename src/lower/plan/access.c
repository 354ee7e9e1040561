// Guards and memory accesses: what can be done for several elements at once.
//
// Elements that are there side by side differ in the inner variables: registers, on the host lanes. Writing one of
// them, j, as V*q + i (chunk q, element i inside it) and simplifying, an index is affine in i exactly when i stands
// under no floor. Then a chunk of V elements has one base address, and its elements are `coef(i)` apart. Every inner
// variable and every V have variables q and i of their own, so that one domain serves all.

#include "lower/plan/write.h"

// Everything that walks an expression takes time by its size.
enum { KL_MAX_INDEX_TERMS = 4096 };

bool kl_is_sound(const kl_aff *e) {
  return !e->error && e->size <= KL_MAX_INDEX_TERMS;
}

const char *kl_why_unsound(const kl_aff *e) {
  return e->error == KL_AFF_OVERFLOW ? "does not fit 64 bits"
                                     : "is too complex: too many reshapes of odd sizes in a row";
}

static uint32_t log2_of(uint32_t v) {
  return (uint32_t)__builtin_ctz(v);
}

static bool has_chunks(const kl_var *var, uint32_t v) {
  return v <= KL_MAX_CHUNK && var->extent % v == 0;
}

static uint32_t chunk_of(const kl_guards *g, uint32_t run, uint32_t v) {
  return g->first_chunk[run] + 2 * (log2_of(v) - 1);
}

static uint32_t place_in_chunk(const kl_guards *g, uint32_t run, uint32_t v) {
  return chunk_of(g, run, v) + 1;
}

void kl_guards_begin(kl_guards *g, kl_ctx *cx, kl_affs *p, kl_body *body, uint32_t nnames, const int64_t *names) {
  kl_interval in[KL_MAX_VARS + KL_MAX_VARS * 2 * KL_MAX_CHUNKINGS + KL_MAX_NAMES];
  uint32_t n = body->nvars;
  *g = (kl_guards){.cx = cx, .affs = p, .body = body};
  for (uint32_t v = 0; v < n; v++) in[v] = (kl_interval){0, body->vars[v].extent - 1};
  for (uint32_t v = 0; v < body->nvars; v++) {
    g->first_chunk[v] = n;
    if (!kl_has_var(kl_inner(body), v)) continue;
    for (uint32_t c = 2; c <= KL_MAX_CHUNK && c <= body->vars[v].extent; c *= 2) {
      in[n++] = (kl_interval){0, body->vars[v].extent / c - 1};
      in[n++] = (kl_interval){0, (int64_t)c - 1};
    }
  }
  g->first_name = n;
  for (uint32_t i = 0; i < nnames; i++) in[n++] = (kl_interval){0, names[i] - 1};
  body->domain = kl_dom_make(p, n, in);
}

void kl_guards_end(kl_guards *g) {
  VEC_FREE(g->cx, &g->v);
  kl_ids_free(g->cx, &g->ids);
}

// e with V*q + i in the place of `run`.
static const kl_aff *in_chunks(kl_guards *g, const kl_aff *e, uint32_t run, uint32_t v) {
  if (!kl_has_var(kl_vars_of(g->body, e), run)) return kl_dom_simplify(g->body->domain, e);
  const kl_aff *to[KL_MAX_VARS];
  for (uint32_t i = 0; i < g->body->nvars; i++) to[i] = kl_aff_dim(g->affs, i);
  to[run] = kl_aff_addmul(g->affs, kl_aff_dim(g->affs, place_in_chunk(g, run, v)),
                          kl_aff_dim(g->affs, chunk_of(g, run, v)), v);
  kl_aff_replace(g->affs, &(kl_aff_subst){.to = {to}, .n = {g->body->nvars}}, &e, 1, &e);
  return kl_dom_simplify(g->body->domain, e);
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

// Symbols that differ within some chunk of v values of `run`.
typedef struct differing {
  const kl_body *b;
  uint32_t run, v;
  bool found;
} differing;

static void find_differing(void *arg, uint32_t symbol) {
  differing *x = arg;
  const kl_symbol *s = &x->b->symbols[symbol];
  x->found |= kl_has_var(s->vars, x->run) && s->uniform[x->run] < x->v;
}

static bool has_even_symbols(const kl_guards *g, const kl_aff *e, uint32_t run, uint32_t v) {
  differing x = {g->body, run, v, false};
  if (g->body->nsymbols) kl_each_symbol(e, find_differing, &x);
  return !x.found;
}

uint32_t kl_uniform_over(kl_guards *g, const kl_aff *e, uint32_t run) {
  const kl_var *var = &g->body->vars[run];
  uint32_t v = 1;
  while (v < var->extent && v < KL_MAX_CHUNK) v *= 2;
  if (g->single) return 1;
  for (; v > 1; v /= 2) {
    if (!has_chunks(var, v) || !has_even_symbols(g, e, run, v)) continue;
    const kl_aff *x = in_chunks(g, e, run, v);
    bool inside;
    if (kl_is_sound(x) && !kl_aff_uses(x, place_in_chunk(g, run, v), &inside)) break;
  }
  return v;
}

static bool uniform(kl_guards *g, const kl_aff *e, int64_t lo, int64_t hi, uint32_t run, uint32_t v) {
  bool inside = false;
  const kl_aff *x = in_chunks(g, e, run, v);
  uint32_t i = place_in_chunk(g, run, v);
  if (!kl_is_sound(x) || !has_even_symbols(g, e, run, v)) return false;
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

// Largest group of values of an inner variable over which the guard says the same.
static uint32_t uniform_over(kl_guards *g, const kl_guard *x, uint32_t run) {
  const kl_var *var = &g->body->vars[run];
  uint32_t v = 1;
  while (v < var->extent && v < KL_MAX_CHUNK) v *= 2;
  if (g->single) return 1;
  while (v > 1 && !(has_chunks(var, v) && uniform(g, x->expr, x->lo, x->hi, run, v))) v /= 2;
  return v;
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
  e = kl_dom_simplify(g->body->domain, e);
  kl_interval in = kl_dom_interval(g->body->domain, e);
  *never = lo > hi || in.hi < lo || in.lo > hi;
  if (*never || (in.lo >= lo && in.hi <= hi)) return outer;
  uint64_t key[4] = {outer, e->id, (uint64_t)lo, (uint64_t)hi};
  uint32_t id = kl_ids_find(g->cx, &g->ids, kl_hash(key, sizeof key, 17), is_guard,
                            &(wanted){g, {.outer = outer, .expr = e, .lo = lo, .hi = hi}});
  if (id < g->v.n) return id;
  kl_guard made = {.outer = outer, .expr = e, .lo = lo, .hi = hi};
  for (uint32_t v = 0; v < g->body->nvars; v++) {
    if (!kl_has_var(kl_inner(g->body), v)) continue;
    made.uniform[v] = (uint16_t)uniform_over(g, &made, v);
    if (outer != KL_NONE && g->v.p[outer].uniform[v] < made.uniform[v]) made.uniform[v] = g->v.p[outer].uniform[v];
  }
  VEC_PUSH(g->cx, &g->v, made);
  return id;
}

// --- what values need of a guard -------------------------------------------------------------------------------------

enum { MOST_IN_CHAIN = 16 };

// Is the condition one that indices in `reach`, or what they are bounded with, have no variable in common with, so that
// without it nothing else is named? Where lanes name elements, others would be named for warps that it keeps away.
static bool is_apart(const kl_guards *g, const kl_guard *c, kl_vars vars, kl_vars reach) {
  kl_vars of_lanes = kl_bound(g->body, KL_BIND_LANE) | kl_bound(g->body, KL_BIND_THREAD);
  kl_vars of_warps = kl_bound(g->body, KL_BIND_WARP) | kl_bound(g->body, KL_BIND_BLOCK);
  kl_vars own = kl_vars_of(g->body, c->expr);
  return !(own & reach) && !kl_has_symbols(c->expr) && !(vars & of_lanes && own & of_warps);
}

uint32_t kl_guard_needed(kl_guards *g, uint32_t guard, kl_vars vars) {
  uint32_t chain[MOST_IN_CHAIN], n = 0, out = KL_NONE;
  kl_vars reach = vars, before = 0;
  bool never, all = true;
  for (uint32_t i = guard; i != KL_NONE; i = g->v.p[i].outer) {
    if (n == MOST_IN_CHAIN) return guard;
    chain[n++] = i;
  }
  while (reach != before) {
    before = reach;
    for (uint32_t i = 0; i < n; i++) {
      kl_vars own = kl_vars_of(g->body, g->v.p[chain[i]].expr);
      if (own & reach) reach |= own;
    }
  }
  for (uint32_t i = 0; i < n; i++) all = all && !is_apart(g, &g->v.p[chain[i]], vars, reach);
  for (uint32_t i = n; !all && i-- > 0;) {
    kl_guard c = g->v.p[chain[i]];
    if (!is_apart(g, &c, vars, reach)) out = kl_guard_and(g, out, c.expr, c.lo, c.hi, &never);
  }
  return all ? guard : out;
}

// --- exchanges ------------------------------------------------------------------------------------------------------

const kl_aff *kl_exchanged(kl_guards *g, const kl_exchange *x, const kl_aff *e) {
  kl_affs *p = g->affs;
  const kl_aff *to[KL_MAX_VARS], *v = kl_aff_dim(p, x->var), *d = kl_aff_floordivc(p, v, x->distance);
  const kl_aff *digit = kl_aff_modc(p, d, 2), *lane = kl_aff_dim(p, x->lane);
  for (uint32_t i = 0; i < g->body->nvars; i++) to[i] = kl_aff_dim(p, i);
  to[x->var] = kl_aff_addmul(p, v, kl_aff_sub(p, lane, digit), x->distance);
  to[x->lane] = digit;
  kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {g->body->nvars}}, &e, 1, &e);
  return kl_dom_simplify(g->body->domain, e);
}

bool kl_guard_exchanged(kl_guards *g, const kl_exchange *x, uint32_t guard, uint32_t *out) {
  *out = KL_NONE;
  if (guard == KL_NONE) return true;
  kl_guard from = g->v.p[guard];
  uint32_t outer;
  bool never;
  if (!kl_guard_exchanged(g, x, from.outer, &outer)) return false;
  *out = kl_guard_and(g, outer, kl_exchanged(g, x, from.expr), from.lo, from.hi, &never);
  return !never;
}

bool kl_guard_holds(kl_guards *g, uint32_t guard, uint32_t var, int64_t at) {
  kl_affs *p = g->affs;
  const kl_aff *to[KL_MAX_VARS], *e;
  for (uint32_t i = 0; i < g->body->nvars; i++) to[i] = i == var ? kl_aff_const(p, at) : kl_aff_dim(p, i);
  for (; guard != KL_NONE; guard = g->v.p[guard].outer) {
    kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {g->body->nvars}}, &g->v.p[guard].expr, 1, &e);
    kl_interval in = kl_dom_interval(g->body->domain, kl_dom_simplify(g->body->domain, e));
    if (in.lo < g->v.p[guard].lo || in.hi > g->v.p[guard].hi) return false;
  }
  return true;
}

uint32_t kl_access_requests(const kl_access *a, const kl_slot_info *info) {
  if (a->stride == 0) return a->nchunks;
  if (a->vec == 1 || a->stride != 1) return a->nchunks * a->vec;
  uint32_t bytes = a->vec * kl_info(info->shape->dtype)->bits / 8, piece = a->align < 16 ? a->align : 16;
  return a->nchunks * (piece == 0 || piece >= bytes ? 1 : bytes / piece);
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
  return reach < (info->row ? info->row : info->shape->count);
}

// Elements between neighbours of a chunk; false where that is no single number.
static bool neighbour_stride(kl_guards *g, const kl_aff *linear, uint32_t run, uint32_t v, int64_t *stride) {
  *stride = 0;
  if (v == 1) return true;
  const kl_aff *x = in_chunks(g, linear, run, v);
  bool inside = false;
  if (!kl_is_sound(x) || !has_even_symbols(g, linear, run, v)) return false;
  kl_aff_uses(x, place_in_chunk(g, run, v), &inside);
  *stride = kl_aff_coef(x, place_in_chunk(g, run, v));
  return !inside;
}

static bool try_chunks(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear, uint32_t v,
                       kl_access *a) {
  unsigned bits = kl_info(info->shape->dtype)->bits;
  const kl_body *b = g->body;
  if (v > 1 && !has_chunks(&b->vars[a->run], v)) return false;
  if (v > 1 && a->guard != KL_NONE && g->v.p[a->guard].uniform[a->run] < v) return false;
  int64_t stride;
  if (!neighbour_stride(g, linear, a->run, v, &stride) || !chunk_allowed(info, bits, stride, v, a->guard != KL_NONE))
    return false;
  kl_vars vars = a->regs | (kl_inner(b) & kl_bound(b, KL_BIND_LANE));
  a->vec = v;
  a->reversed = stride == -1 && v > 1;
  a->stride = a->reversed ? 1 : stride;
  a->nchunks = (uint32_t)kl_extent(b, vars) / v;
  const kl_aff **base = KL_NEW_N(arena, const kl_aff *, a->nchunks);
  a->align = info->align;
  for (uint32_t c = 0; c < a->nchunks; c++) {
    int64_t at[KL_MAX_VARS];
    kl_nth_point(b, vars, a->run, c * v, at);
    const kl_aff *e = kl_at_point(g->affs, b, linear, vars, at);
    base[c] = a->reversed ? kl_aff_addc(g->affs, e, -(int64_t)(v - 1)) : e;
    uint32_t al = alignment(base[c], bits, info->align);
    if (al < a->align) a->align = al;
  }
  a->base = base;
  // Packed sub-byte elements are taken from whole bytes.
  return !(bits < 8 && v > 1 && a->stride == 1 && a->align == 0);
}

// The widest chunks along a variable, of at most `most` elements; `stored`: only what one store can take.
static bool try_run(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear, uint32_t most,
                    bool stored, kl_access *a) {
  uint32_t v = KL_MAX_CHUNK;
  while (v > most || v > g->body->vars[a->run].extent) v /= 2;
  for (; v > 1; v /= 2)
    if (try_chunks(g, arena, info, linear, v, a) && (!stored || (a->stride == 1 && !a->reversed))) return true;
  return false;
}

// Variables that chunks may run along: of registers those that number the copies, on the host the lanes.
static kl_vars may_run(const kl_guards *g, kl_vars regs) {
  const kl_body *b = g->body;
  if (!g->host) return regs;
  if (b->width == 1) return 0;
  kl_vars lanes = kl_bound(b, KL_BIND_LANE);
  return lanes & (lanes - 1) ? 0 : lanes;
}

static kl_access best_access(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear,
                             const uint32_t *most, bool stored, kl_access a) {
  kl_vars runs = may_run(g, a.regs);
  kl_access best = {0};
  uint32_t most_together = 0;
  for (uint32_t v = g->body->nvars; v-- > 0;) {
    a.run = v;
    if (!kl_has_var(runs, v) || !try_run(g, arena, info, linear, most[v], stored, &a)) continue;
    uint32_t together = a.stride == 1 ? KL_MAX_CHUNK * a.vec : a.vec;
    if (together <= most_together) continue;
    most_together = together;
    best = a;
  }
  if (most_together) return best;
  a.run = runs ? 31 - (uint32_t)__builtin_clz(runs) : KL_NONE;
  try_chunks(g, arena, info, linear, 1, &a);
  return a;
}

static kl_vars regs_of(const kl_guards *g, kl_vars vars) {
  return vars & kl_bound(g->body, KL_BIND_REG);
}

kl_vars kl_vars_asked(const kl_guards *g, uint32_t guard) {
  kl_body b = *g->body;
  b.guards = g->v.p;
  return kl_guard_vars(&b, guard);
}

// --- covering loads -------------------------------------------------------------------------------------------------

// Where some element of a chunk may be inside of the guard: the same for all of it. False where no guard says that.
static bool covering_guard(kl_guards *g, uint32_t guard, uint32_t run, uint32_t v, uint32_t *out) {
  *out = KL_NONE;
  if (guard == KL_NONE) return true;
  kl_guard from = g->v.p[guard];
  uint32_t outer;
  bool never, inside = false;
  if (!covering_guard(g, from.outer, run, v, &outer)) return false;
  const kl_aff *x = in_chunks(g, from.expr, run, v);
  uint32_t i = place_in_chunk(g, run, v);
  int64_t s = kl_is_sound(x) && kl_aff_uses(x, i, &inside) ? kl_aff_coef(x, i) : 0, more = (s < 0 ? -s : s) * (v - 1);
  if (!kl_is_sound(x) || inside || !has_even_symbols(g, from.expr, run, v)) return false;
  const kl_aff *to[KL_MAX_VARS];
  for (uint32_t d = 0; d < g->body->nvars; d++) to[d] = kl_aff_dim(g->affs, d);
  to[run] = kl_aff_mulc(g->affs, kl_aff_floordivc(g->affs, to[run], v), v);
  const kl_aff *first = from.expr;
  kl_aff_replace(g->affs, &(kl_aff_subst){.to = {to}, .n = {g->body->nvars}}, &first, 1, &first);
  *out = kl_guard_and(g, outer, first, from.lo - (s > 0 ? more : 0), from.hi + (s < 0 ? more : 0), &never);
  return !never && kl_is_sound(first);
}

// A chunk that begins at a multiple of its length lies in an array of such a length, if one of its elements does.
static bool try_covering(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear, uint32_t v,
                         kl_access *a) {
  uint32_t bits = kl_info(info->shape->dtype)->bits;
  if (!has_chunks(&g->body->vars[a->run], v) || info->shape->count % v) return false;
  if (!covering_guard(g, a->guard, a->run, v, &a->guard)) return false;
  return try_chunks(g, arena, info, linear, v, a) && a->stride == 1 && !a->reversed && a->align * 8 >= v * bits;
}

// a, or where lanes ask for more at once so: whole chunks in which something is wanted.
static kl_access covering(kl_guards *g, kl_arena *arena, const kl_slot_info *info, const kl_aff *linear, kl_access a) {
  if (!g->covers || g->host || info->kind != KL_SLOT_IN || info->row || a.guard == KL_NONE) return a;
  for (uint32_t run = g->body->nvars; run-- > 0;)
    for (uint32_t v = KL_MAX_CHUNK; v > a.vec && kl_has_var(a.regs, run); v /= 2) {
      kl_access wide = a;
      wide.run = run;
      if (try_covering(g, arena, info, linear, v, &wide)) return wide;
    }
  return a;
}

kl_access kl_load_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                       uint32_t guard) {
  // Where the index stays inside anyway, the guard is not needed, unless nobody may have written what is outside of it.
  linear = kl_dom_simplify(g->body->domain, linear);
  kl_interval in = kl_dom_interval(g->body->domain, linear);
  bool inside = in.lo >= 0 && in.hi < info->shape->count && !(g->rows && info->row);
  if (inside && info->kind != KL_SLOT_SHARED && !g->spares) guard = KL_NONE;
  kl_access a = {.slot = slot,
                 .guard = guard,
                 .element = linear,
                 .regs = regs_of(g, kl_vars_of(g->body, linear) | kl_vars_asked(g, guard))};
  uint32_t most[KL_MAX_VARS];
  for (uint32_t v = 0; v < g->body->nvars; v++) most[v] = g->single ? 1 : KL_MAX_CHUNK;
  return covering(g, arena, info, linear, best_access(g, arena, info, linear, most, false, a));
}

kl_access kl_change_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                         kl_vars regs, uint32_t keep, uint32_t most_at_once) {
  linear = kl_dom_simplify(g->body->domain, linear);
  kl_access a = {.slot = slot, .guard = KL_NONE, .element = linear};
  a.regs = regs_of(g, regs | kl_vars_of(g->body, linear) | kl_vars_asked(g, keep));
  uint32_t most[KL_MAX_VARS];
  for (uint32_t v = 0; v < g->body->nvars; v++) {
    most[v] = keep == KL_NONE ? KL_MAX_CHUNK : g->v.p[keep].uniform[v];
    if (most[v] > most_at_once) most[v] = most_at_once;
  }
  return best_access(g, arena, info, linear, most, true, a);
}

kl_access kl_store_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                        kl_vars regs, uint32_t keep, uint32_t least) {
  linear = kl_dom_simplify(g->body->domain, linear);
  kl_access a = {.slot = slot, .guard = KL_NONE, .element = linear};
  a.regs = regs_of(g, regs | kl_vars_of(g->body, linear) | kl_vars_asked(g, keep));
  uint32_t most[KL_MAX_VARS];
  for (uint32_t v = 0; v < g->body->nvars; v++) {
    most[v] = keep == KL_NONE ? KL_MAX_CHUNK : g->v.p[keep].uniform[v];
    if (most[v] < least) most[v] = least;
  }
  return best_access(g, arena, info, linear, most, true, a);
}

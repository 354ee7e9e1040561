#include "enumerate.h"

#include <string.h>

enum { MOST_RUNTIME_VALUES = 4 }; // of each variable

// The point that a tile's expressions are evaluated at.
typedef struct spot {
  int64_t tid[ENUMERATE_MOST_VARS], size[ENUMERATE_MOST_VARS], rt[ENUMERATE_MOST_VARS];
} spot;

bool volume_open(volume *v, kl_affs *p, const kl_map *m) {
  v->p = p, v->m = m, v->n = m->nresults, v->size = 1;
  if (m->state != KL_MAP_DEFINED || v->n > ENUMERATE_MOST_RESULTS || !kl_map_result_ranges(p, m, v->in)) return false;
  if (m->nvars[KL_AFF_DIM] + m->nvars[KL_AFF_RANGE] > ENUMERATE_MOST_VARS) return false;
  if (m->nvars[KL_AFF_RT] > ENUMERATE_MOST_VARS) return false;
  for (uint32_t i = 0; i < v->n; i++) {
    uint64_t n = (uint64_t)v->in[i].hi - (uint64_t)v->in[i].lo + 1;
    if (v->in[i].lo > v->in[i].hi || n < 1 || n > ENUMERATE_MOST_VOLUME) return false;
    if ((v->size *= (int64_t)n) > ENUMERATE_MOST_VOLUME) return false;
  }
  return true;
}

// The place of an element in the volume, or -1.
static int64_t place(const volume *v, const int64_t *at) {
  int64_t p = 0;
  for (uint32_t i = 0; i < v->n; i++) {
    if (at[i] < v->in[i].lo || at[i] > v->in[i].hi) return -1;
    p = p * (v->in[i].hi - v->in[i].lo + 1) + (at[i] - v->in[i].lo);
  }
  return p;
}

// All values of `n` variables from lo to hi, one after the other; false behind the last.
static bool next(int64_t *x, const int64_t *lo, const int64_t *hi, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    if (x[i] < hi[i]) {
      x[i]++;
      return true;
    }
    x[i] = lo[i];
  }
  return false;
}

// Marks what the map gives for the tile's points. False where a result is outside of what it is said to lie within.
static bool need(volume *v, const enumeration *e, const spot *s, const int64_t *tid, int64_t *points) {
  const kl_map *m = v->m;
  uint32_t nd = m->nvars[KL_AFF_DIM], n = nd + m->nvars[KL_AFF_RANGE];
  int64_t x[ENUMERATE_MOST_VARS], lo[ENUMERATE_MOST_VARS], hi[ENUMERATE_MOST_VARS], at[ENUMERATE_MOST_RESULTS];
  memset(v->needed, 0, (size_t)v->size);
  for (uint32_t i = 0; i < n; i++) {
    kl_interval in = i < nd ? m->vars[KL_AFF_DIM][i].in : m->vars[KL_AFF_RANGE][i - nd].in;
    lo[i] = in.lo, hi[i] = in.hi;
    if (i < nd && tid[i] * e->sizes[i] > lo[i]) lo[i] = tid[i] * e->sizes[i];
    if (i < nd && tid[i] * e->sizes[i] < hi[i] - (e->sizes[i] - 1)) hi[i] = tid[i] * e->sizes[i] + e->sizes[i] - 1;
    if (lo[i] > hi[i]) return true;
  }
  memcpy(x, lo, sizeof x);
  do {
    kl_point point = {{x, x + nd, s->rt}};
    ++*points;
    if (!kl_map_contains(v->p, m, &point) || !kl_map_eval(v->p, m, &point, at)) continue;
    int64_t p = place(v, at);
    if (p < 0) return false;
    v->needed[p] = 1;
  } while (*points <= e->most && next(x, lo, hi, n));
  return true;
}

// One dimension of a box, as numbers.
typedef struct steps {
  int64_t offset, stride, first, last; // offset + k * stride for k in first .. last
} steps;

static bool evaluate(const volume *v, const kl_aff *e, const spot *s, int64_t *out) {
  kl_point at = {{s->tid, s->size, s->rt}};
  return kl_aff_eval(v->p, e, &at, out);
}

// floor(a / b), b above 0.
static __int128 floordiv(__int128 a, __int128 b) {
  return a / b - (a % b < 0);
}

// False where a number leaves 64 bits.
static bool steps_of(const volume *v, const kl_tile_dim *d, const spot *s, steps *out) {
  int64_t size, from = INT64_MIN, to = INT64_MAX;
  if (!evaluate(v, d->offset, s, &out->offset) || !evaluate(v, d->stride, s, &out->stride) ||
      !evaluate(v, d->size, s, &size) || (d->lower && !evaluate(v, d->lower, s, &from)) ||
      (d->upper && !evaluate(v, d->upper, s, &to)))
    return false;
  __int128 o = out->offset, k = out->stride, lo = from, hi = d->upper ? (__int128)to - 1 : to, first = 0,
           last = (__int128)size - 1;
  if (k == 0) {
    last = size > 0 && o >= lo && o <= hi ? 0 : -1; // one element, however often
  } else {
    __int128 a = k > 0 ? -floordiv(o - lo, k) : -floordiv(hi - o, -k);
    __int128 b = k > 0 ? floordiv(hi - o, k) : floordiv(o - lo, -k);
    first = a > first ? a : first, last = b < last ? b : last;
  }
  if (first > last) first = 0, last = -1;
  out->first = (int64_t)first, out->last = (int64_t)last;
  return true;
}

// The same box's elements that are in the volume, as steps of one dimension.
static steps within(steps s, kl_interval in) {
  if (s.first > s.last || s.stride == 0) {
    if (s.offset < in.lo || s.offset > in.hi) s.last = s.first - 1;
    return s;
  }
  __int128 o = s.offset, k = s.stride;
  __int128 a = k > 0 ? -floordiv(o - in.lo, k) : -floordiv(in.hi - o, -k);
  __int128 b = k > 0 ? floordiv(in.hi - o, k) : floordiv(o - in.lo, -k);
  if (a > s.last || b < s.first) return (steps){s.offset, s.stride, 0, -1};
  if (a > s.first) s.first = (int64_t)a;
  if (b < s.last) s.last = (int64_t)b;
  return s;
}

// Marks the box's elements. *outside: has it any beside the volume? False where a number leaves 64 bits.
static bool hold(volume *v, const kl_tile_box *b, const spot *s, bool *outside) {
  int64_t first[ENUMERATE_MOST_RESULTS], last[ENUMERATE_MOST_RESULTS], k[ENUMERATE_MOST_RESULTS],
      at[ENUMERATE_MOST_RESULTS];
  steps d[ENUMERATE_MOST_RESULTS];
  bool leaves = false, none = false;
  for (uint32_t i = 0; i < b->nguards; i++) {
    int64_t g;
    if (!evaluate(v, b->guards[i].e, s, &g)) return false;
    if (g < b->guards[i].in.lo || g > b->guards[i].in.hi) return true;
  }
  for (uint32_t i = 0; i < v->n; i++) {
    if (!steps_of(v, &b->dims[i], s, &d[i])) return false;
    if (d[i].first > d[i].last) return true;
    steps in = within(d[i], v->in[i]);
    leaves |= in.first != d[i].first || in.last != d[i].last;
    none |= in.first > in.last;
    d[i] = in;
    first[i] = k[i] = in.first, last[i] = in.last;
  }
  *outside |= leaves;
  if (none) return true;
  do {
    for (uint32_t i = 0; i < v->n; i++) at[i] = d[i].offset + k[i] * d[i].stride;
    v->held[place(v, at)] = 1;
  } while (next(k, first, last, v->n));
  return true;
}

static enumerated judge(volume *v, const kl_map_tile *t, const spot *s, finding *out) {
  bool outside = false;
  memset(v->held, 0, (size_t)v->size);
  for (uint32_t i = 0; i < t->nboxes; i++)
    if (!hold(v, &t->boxes[i], s, &outside)) return ENUMERATED_NOT;
  out->missing = 0, out->extra = outside;
  for (int64_t i = 0; i < v->size; i++) {
    out->missing += v->needed[i] && !v->held[i];
    out->extra += v->held[i] && !v->needed[i];
  }
  out->tiles++;
  return out->missing || (out->extra && t->state != KL_TILE_COVERS) ? ENUMERATED_WRONG : ENUMERATED_RIGHT;
}

enumerated enumerate_tiles(volume *v, const kl_map_tile *t, const enumeration *e, finding *out) {
  const kl_map *m = v->m;
  uint32_t nd = m->nvars[KL_AFF_DIM], nt = m->nvars[KL_AFF_RT];
  int64_t lo[ENUMERATE_MOST_VARS] = {0}, hi[ENUMERATE_MOST_VARS], first[ENUMERATE_MOST_VARS], last[ENUMERATE_MOST_VARS],
          points = 0;
  spot s = {{0}, {0}, {0}};
  *out = (finding){.tiles = 0};
  if (t->state == KL_TILE_UNKNOWN) return ENUMERATED_NOT;
  for (uint32_t i = 0; i < nd; i++) {
    if (e->extents[i] > INT64_MAX / 4) return ENUMERATED_NOT;
    hi[i] = (e->extents[i] - 1) / e->sizes[i];
    s.size[e->dims ? e->dims[i] : i] = e->sizes[i];
  }
  for (uint32_t i = 0; i < nt; i++) {
    first[i] = m->vars[KL_AFF_RT][i].in.lo, last[i] = m->vars[KL_AFF_RT][i].in.hi;
    if ((uint64_t)last[i] - (uint64_t)first[i] >= MOST_RUNTIME_VALUES) last[i] = first[i] + MOST_RUNTIME_VALUES - 1;
  }
  memcpy(out->tile, lo, nd * sizeof *lo);
  do {
    for (uint32_t i = 0; i < nd; i++) s.tid[e->dims ? e->dims[i] : i] = out->tile[i];
    memcpy(out->runtime, first, nt * sizeof *first);
    do {
      memcpy(s.rt, out->runtime, nt * sizeof *first);
      if (!need(v, e, &s, out->tile, &points)) return ENUMERATED_WRONG;
      if (++points > e->most) return ENUMERATED_NOT;
      enumerated answer = judge(v, t, &s, out);
      if (answer != ENUMERATED_RIGHT) return answer;
    } while (next(out->runtime, first, last, nt));
  } while (next(out->tile, lo, hi, nd));
  return ENUMERATED_RIGHT;
}

// --- text -----------------------------------------------------------------------------------------------------------

static void put_constraint(kl_affs *p, kl_sb *b, const char *before, const kl_constraint *c) {
  kl_sb_puts(b, before);
  kl_aff_print(p, b, c->e, NULL);
  kl_sbf(b, " in [%lld, %lld]", (long long)c->in.lo, (long long)c->in.hi);
}

static void put_dim(kl_affs *p, kl_sb *b, const kl_tile_dim *d) {
  const kl_aff *each[] = {d->offset, d->size, d->stride, d->lower, d->upper};
  const char *names[] = {"offset ", ", size ", ", stride ", ", from ", ", below "};
  for (int j = 0; j < 5; j++) {
    if (!each[j]) continue;
    kl_sb_puts(b, names[j]);
    kl_aff_print(p, b, each[j], NULL);
  }
  kl_sb_puts(b, "; ");
}

void tile_describe(kl_affs *p, kl_sb *b, const kl_map_tile *t) {
  static const char *const kinds[] = {"exact", "covers", "unknown"};
  kl_sbf(b, "%s %s\n", kinds[t->state], t->why);
  for (uint32_t k = 0; k < t->nboxes; k++) {
    for (uint32_t i = 0; i < t->rank; i++) put_dim(p, b, &t->boxes[k].dims[i]);
    for (uint32_t i = 0; i < t->boxes[k].nguards; i++) put_constraint(p, b, "  if ", &t->boxes[k].guards[i]);
    kl_sb_puts(b, "\n");
  }
  for (uint32_t i = 0; i < t->nclauses; i++) {
    for (uint32_t k = 0; k < t->clauses[i].n; k++) put_constraint(p, b, k ? " or " : "  needs ", &t->clauses[i].any[k]);
    kl_sb_puts(b, "\n");
  }
}

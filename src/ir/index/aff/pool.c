// The pool of expressions: interning, structural order, notes of walks, evaluation, replacement.

#include "ir/index/impl.h"
#include <stdlib.h>

// --- order --------------------------------------------------------------------------------------------------------
//
// Two different atoms or sums differ in a first place; equal parts are equal pointers, so a comparison goes down one
// path only.

static int by(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

int kl_aff_atom_compare(const kl_aff_atom *a, const kl_aff_atom *b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return by(a->kind, b->kind);
  if (a->kind < KL_AFF_VARS) return by(a->var, b->var);
  if (a->k != b->k) return by(a->k, b->k);
  for (uint32_t i = 0; i < a->n && i < b->n; i++) {
    if (a->arg[i] != b->arg[i]) return kl_aff_compare(a->arg[i], b->arg[i]);
  }
  return by(a->n, b->n);
}

int kl_aff_compare(const kl_aff *a, const kl_aff *b) {
  if (a == b) return 0;
  if (a->error != b->error) return by(a->error, b->error);
  for (uint32_t i = 0; i < a->n && i < b->n; i++) {
    if (a->terms[i].atom != b->terms[i].atom) return kl_aff_atom_compare(a->terms[i].atom, b->terms[i].atom);
    if (a->terms[i].coef != b->terms[i].coef) return by(a->terms[i].coef, b->terms[i].coef);
  }
  return a->n != b->n ? by(a->n, b->n) : by(a->c, b->c);
}

// --- interning ----------------------------------------------------------------------------------------------------

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

static uint64_t sum_hash(int64_t c, kl_aff_error error, const kl_aff_term *t, uint32_t n) {
  uint64_t h = mix((uint64_t)c, (uint64_t)error << 32 | n);
  for (uint32_t i = 0; i < n; i++) h = mix(mix(h, (uint64_t)t[i].coef), t[i].atom->id);
  return h;
}

static uint64_t atom_hash(const kl_aff_atom *a, const kl_aff *const *arg) {
  uint64_t h = mix(a->kind, (uint64_t)a->var << 32 | a->n);
  h = mix(h, (uint64_t)a->k);
  for (uint32_t i = 0; i < a->n; i++) h = mix(h, arg[i]->id);
  return h;
}

static bool sum_same(const kl_aff *e, int64_t c, kl_aff_error error, const kl_aff_term *t, uint32_t n) {
  if (e->c != c || e->n != n || e->error != error) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (e->terms[i].coef != t[i].coef || e->terms[i].atom != t[i].atom) return false;
  }
  return true;
}

static uint64_t sum_hash_at(const kl_affs *p, size_t i) {
  const kl_aff *e = p->sums.p[i];
  return sum_hash(e->c, e->error, e->terms, e->n);
}
static uint64_t atom_hash_at(const kl_affs *p, size_t i) {
  return atom_hash(p->atoms.p[i], p->atoms.p[i]->arg);
}

// Keeps an open-addressing table of ids at most half full.
static void table_grow(kl_affs *p, uint32_t **slots, size_t *n, size_t used,
                       uint64_t (*hash)(const kl_affs *, size_t)) {
  if (*n && used * 2 < *n) return;
  size_t want = *n ? *n * 2 : 64;
  kl_free(p->cx, *slots, *n * sizeof(uint32_t));
  *slots = kl_alloc(p->cx, want * sizeof(uint32_t));
  *n = want;
  for (size_t i = 0; i < used; i++) {
    size_t s = hash(p, i) & (want - 1);
    while ((*slots)[s]) s = (s + 1) & (want - 1);
    (*slots)[s] = (uint32_t)i + 1;
  }
}

static uint64_t cap_size(uint64_t n) {
  return n > UINT32_MAX ? UINT32_MAX : n;
}

const kl_aff_atom *kl_affs_atom(kl_affs *p, kl_aff_kind kind, uint32_t var, int64_t k, const kl_aff *const *arg,
                                uint32_t n) {
  kl_aff_atom key = {.kind = kind, .var = var, .k = k, .n = n};
  table_grow(p, &p->atom_slots, &p->natom_slots, p->atoms.n, atom_hash_at);
  size_t mask = p->natom_slots - 1, s = atom_hash(&key, arg) & mask;
  for (; p->atom_slots[s]; s = (s + 1) & mask) {
    const kl_aff_atom *o = p->atoms.p[p->atom_slots[s] - 1];
    if (o->kind == kind && o->var == var && o->k == k && o->n == n &&
        (n == 0 || memcmp(o->arg, arg, n * sizeof *arg) == 0))
      return o;
  }
  kl_aff_atom *a = kl_arena_alloc(p->arena, sizeof *a + n * sizeof *arg);
  *a = key;
  a->id = (uint32_t)p->atoms.n;
  a->partial = kind == KL_AFF_QUOTIENT;
  for (uint32_t i = 0; i < n; i++) {
    a->arg[i] = arg[i];
    if (arg[i]->depth > a->depth) a->depth = arg[i]->depth;
    a->size += arg[i]->size;
    a->partial = a->partial || arg[i]->partial;
  }
  a->size = cap_size(a->size);
  a->depth++;
  VEC_PUSH(p->cx, &p->atoms, a);
  p->atom_slots[s] = a->id + 1;
  return a;
}

// Terms in structural order, no zero coefficients.
static const kl_aff *intern_sum(kl_affs *p, int64_t c, kl_aff_error error, const kl_aff_term *t, uint32_t n) {
  table_grow(p, &p->sum_slots, &p->nsum_slots, p->sums.n, sum_hash_at);
  size_t mask = p->nsum_slots - 1, s = sum_hash(c, error, t, n) & mask;
  for (; p->sum_slots[s]; s = (s + 1) & mask) {
    const kl_aff *o = p->sums.p[p->sum_slots[s] - 1];
    if (sum_same(o, c, error, t, n)) return o;
  }
  kl_aff *e = kl_arena_alloc(p->arena, sizeof *e + n * sizeof *t);
  e->id = (uint32_t)p->sums.n;
  e->n = n;
  e->c = c;
  e->error = error;
  e->size = n;
  for (uint32_t i = 0; i < n; i++) {
    e->terms[i] = t[i];
    if (t[i].atom->depth > e->depth) e->depth = t[i].atom->depth;
    e->size += t[i].atom->size;
    e->partial = e->partial || t[i].atom->partial;
  }
  e->size = cap_size(e->size);
  VEC_PUSH(p->cx, &p->sums, e);
  p->sum_slots[s] = e->id + 1;
  return e;
}

// --- sums ---------------------------------------------------------------------------------------------------------

static int by_atom(const void *a, const void *b) {
  const kl_aff_term *x = a, *y = b;
  return kl_aff_atom_compare(x->atom, y->atom);
}

static bool fits(wide v) {
  return v >= INT64_MIN && v <= INT64_MAX;
}

static const kl_aff *checked(kl_affs *p, wide c, const kl_aff_term *t, uint32_t n) {
  if (!fits(c)) return p->errors[KL_AFF_OVERFLOW];
  if (n > KL_MOST_TERMS) return p->errors[KL_AFF_TOO_LARGE];
  for (uint32_t i = 0; i < n; i++) {
    if (t[i].atom->depth > KL_MOST_DEPTH) return p->errors[KL_AFF_TOO_LARGE];
  }
  return intern_sum(p, (int64_t)c, KL_AFF_OK, t, n);
}

const kl_aff *kl_aff_sum(kl_affs *p, wide c, kl_aff_term *t, uint32_t n) {
  uint32_t out = 0;
  bool sorted = true;
  for (uint32_t i = 1; i < n && sorted; i++) sorted = kl_aff_atom_compare(t[i - 1].atom, t[i].atom) < 0;
  if (!sorted) qsort(t, n, sizeof *t, by_atom);
  for (uint32_t i = 0; i < n;) {
    const kl_aff_atom *a = t[i].atom;
    wide coef = 0;
    for (; i < n && t[i].atom == a; i++) coef += t[i].coef;
    if (!fits(coef)) return p->errors[KL_AFF_OVERFLOW];
    if (coef) t[out++] = (kl_aff_term){(int64_t)coef, a};
  }
  return checked(p, c, t, out);
}

static const kl_aff *worse(const kl_aff *a, const kl_aff *b) {
  return a->error ? a : b;
}

const kl_aff *kl_aff_addmul(kl_affs *p, const kl_aff *a, const kl_aff *b, int64_t k) {
  if (a->error || b->error) return worse(a, b);
  if (k == 0 || (b->n == 0 && b->c == 0)) return a;
  kl_aff_term small[32], *t = small;
  size_t cap = (size_t)a->n + b->n;
  if (cap > KL_COUNT(small)) t = kl_alloc(p->cx, cap * sizeof *t);
  uint32_t n = 0, i = 0, j = 0;
  bool ok = true;
  while (i < a->n || j < b->n) {
    int order = i == a->n ? 1 : j == b->n ? -1 : kl_aff_atom_compare(a->terms[i].atom, b->terms[j].atom);
    wide coef = 0;
    const kl_aff_atom *atom = order <= 0 ? a->terms[i].atom : b->terms[j].atom;
    if (order <= 0) coef += a->terms[i++].coef;
    if (order >= 0) coef += (wide)b->terms[j++].coef * k;
    ok = ok && fits(coef);
    if (coef) t[n++] = (kl_aff_term){(int64_t)coef, atom};
  }
  const kl_aff *r = ok ? checked(p, (wide)a->c + (wide)b->c * k, t, n) : p->errors[KL_AFF_OVERFLOW];
  if (t != small) kl_free(p->cx, t, cap * sizeof *t);
  return r;
}

void kl_adder_open(kl_adder *a, int64_t c) {
  a->t = NULL;
  a->n = a->cap = 0;
  a->c = c;
  a->error = NULL;
}

static void adder_reserve(kl_affs *p, kl_adder *a, size_t want) {
  if (want <= (a->t ? a->cap : KL_COUNT(a->small))) return;
  kl_aff_term *t = kl_alloc(p->cx, want * 2 * sizeof *t);
  memcpy(t, a->t ? a->t : a->small, a->n * sizeof *t);
  if (a->t) kl_free(p->cx, a->t, a->cap * sizeof *t);
  a->t = t;
  a->cap = want * 2;
}

void kl_adder_add(kl_affs *p, kl_adder *a, const kl_aff *e, int64_t k) {
  if (a->error) return;
  adder_reserve(p, a, a->n + e->n);
  kl_aff_term *t = a->t ? a->t : a->small;
  if (e->error) a->error = e;
  if (a->n + e->n > 64 * KL_MOST_TERMS) a->error = p->errors[KL_AFF_TOO_LARGE];
  for (uint32_t i = 0; i < e->n && !a->error; i++) {
    t[a->n].atom = e->terms[i].atom;
    if (__builtin_mul_overflow(e->terms[i].coef, k, &t[a->n].coef)) a->error = p->errors[KL_AFF_OVERFLOW];
    a->n++;
  }
  a->c += (wide)e->c * k;
  if (a->c > (wide)1 << 120 || a->c < -((wide)1 << 120)) a->error = p->errors[KL_AFF_OVERFLOW];
}

const kl_aff *kl_adder_sum(kl_affs *p, kl_adder *a) {
  const kl_aff *r = a->error ? a->error : kl_aff_sum(p, a->c, a->t ? a->t : a->small, (uint32_t)a->n);
  if (a->t) kl_free(p->cx, a->t, a->cap * sizeof *a->t);
  kl_adder_open(a, 0);
  return r;
}

const kl_aff *kl_aff_add(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  return kl_aff_addmul(p, a, b, 1);
}
const kl_aff *kl_aff_sub(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  return kl_aff_addmul(p, a, b, -1);
}
const kl_aff *kl_aff_addc(kl_affs *p, const kl_aff *a, int64_t c) {
  return c && !a->error ? checked(p, (wide)a->c + c, a->terms, a->n) : a;
}
const kl_aff *kl_aff_mulc(kl_affs *p, const kl_aff *a, int64_t k) {
  return k == 1 ? a : kl_aff_addmul(p, kl_aff_const(p, 0), a, k);
}
const kl_aff *kl_aff_const(kl_affs *p, int64_t c) {
  return intern_sum(p, c, KL_AFF_OK, NULL, 0);
}
const kl_aff *kl_aff_of(kl_affs *p, const kl_aff_atom *a) {
  kl_aff_term t = {1, a};
  return checked(p, 0, &t, 1);
}
const kl_aff *kl_aff_var(kl_affs *p, kl_aff_kind kind, uint32_t i) {
  return kl_aff_of(p, kl_affs_atom(p, kind, i, 0, NULL, 0));
}

uint64_t kl_aff_content(const kl_aff *e) {
  uint64_t g = 0;
  for (uint32_t i = 0; i < e->n && g != 1; i++) g = kl_gcd64(g, kl_abs64(e->terms[i].coef));
  return g;
}

// --- the pool -----------------------------------------------------------------------------------------------------

kl_affs *kl_affs_create(kl_ctx *cx, kl_arena *arena) {
  kl_affs *p = kl_alloc(cx, sizeof *p);
  p->cx = cx;
  p->arena = arena;
  for (int i = 1; i < KL_AFF_ERRORS; i++) p->errors[i] = intern_sum(p, 0, (kl_aff_error)i, NULL, 0);
  return p;
}

void kl_affs_destroy(kl_affs **pp) {
  kl_affs *p = *pp;
  if (!p) return;
  kl_ctx *cx = p->cx;
  VEC_FREE(cx, &p->sums);
  VEC_FREE(cx, &p->atoms);
  VEC_FREE(cx, &p->notes);
  kl_free(cx, p->sum_slots, p->nsum_slots * sizeof(uint32_t));
  kl_free(cx, p->atom_slots, p->natom_slots * sizeof(uint32_t));
  kl_free(cx, p, sizeof *p);
  *pp = NULL;
}

kl_ctx *kl_affs_context(const kl_affs *p) {
  return p->cx;
}
uint32_t kl_affs_count(const kl_affs *p) {
  return (uint32_t)p->sums.n;
}

kl_arena *kl_affs_arena(const kl_affs *p) {
  return p->arena;
}

const char *kl_aff_error_text(kl_aff_error e) {
  static const char *const text[KL_AFF_ERRORS] = {
      [KL_AFF_OK] = "no error",
      [KL_AFF_OVERFLOW] = "a coefficient or constant leaves 64 bits",
      [KL_AFF_DIV_BY_ZERO] = "division by 0",
      [KL_AFF_TOO_LARGE] = "an expression has too many terms or is nested too deeply",
  };
  return text[e];
}

const kl_aff *kl_aff_error_value(kl_affs *p, kl_aff_error e) {
  return e ? p->errors[e] : kl_aff_const(p, 0);
}

uint32_t kl_affs_stamp(kl_affs *p) {
  if (++p->stamp == 0) {
    if (p->notes.n) memset(p->notes.p, 0, p->notes.n * sizeof *p->notes.p);
    p->stamp = 1;
  }
  return p->stamp;
}

kl_note *kl_aff_note(kl_affs *p, const kl_aff *e) {
  if (p->notes.n <= e->id) {
    size_t old = p->notes.n;
    VEC_RESERVE(p->cx, &p->notes, p->sums.n);
    p->notes.n = p->sums.n;
    memset(p->notes.p + old, 0, (p->notes.n - old) * sizeof *p->notes.p);
  }
  return &p->notes.p[e->id];
}

// --- walks --------------------------------------------------------------------------------------------------------

// Where nothing can be shared often, a walk keeps no notes.
static bool is_small(const kl_aff *e) {
  return e->size <= 24;
}

// Values in between have 128 bits: multiplied out, a product of sums has parts that are larger than the whole.
static bool eval_sum(kl_affs *p, const kl_aff *e, const kl_point *x, uint32_t stamp, wide *out);

static bool eval_atom(kl_affs *p, const kl_aff_atom *a, const kl_point *x, uint32_t stamp, wide *out) {
  wide v, d;
  if (a->kind < KL_AFF_VARS) {
    *out = x->at[a->kind][a->var];
    return true;
  }
  if (!eval_sum(p, a->arg[0], x, stamp, &v)) return false;
  if (a->kind == KL_AFF_FLOOR) {
    *out = kl_floor128(v, a->k);
    return true;
  }
  if (a->kind == KL_AFF_QUOTIENT) {
    const wide least = (wide)1 << 126;
    if (!eval_sum(p, a->arg[1], x, stamp, &d) || d == 0 || v < -least || d < -least) return false;
    *out = d < 0 ? kl_floor128(-v, -d) : kl_floor128(v, d);
    return true;
  }
  for (uint32_t i = 1; i < a->n; i++) {
    if (!eval_sum(p, a->arg[i], x, stamp, &d)) return false;
    if (a->kind == KL_AFF_PRODUCT) {
      if (__builtin_mul_overflow(v, d, &v)) return false;
    } else if (a->kind == KL_AFF_MIN ? d < v : d > v) {
      v = d;
    }
  }
  *out = v;
  return true;
}

static bool eval_sum(kl_affs *p, const kl_aff *e, const kl_point *x, uint32_t stamp, wide *out) {
  bool noted = stamp && e->n;
  if (noted && kl_aff_note(p, e)->walk_at == stamp) {
    *out = kl_aff_note(p, e)->walk.value;
    return true;
  }
  if (e->error) return false;
  wide sum = e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    wide v;
    if (!eval_atom(p, e->terms[i].atom, x, stamp, &v) || __builtin_mul_overflow(v, (wide)e->terms[i].coef, &v) ||
        __builtin_add_overflow(sum, v, &sum))
      return false;
  }
  *out = sum;
  if (noted) {
    kl_note *note = kl_aff_note(p, e);
    note->walk_at = stamp;
    note->walk.value = *out;
  }
  return true;
}

bool kl_aff_eval_wide(kl_affs *p, const kl_aff *e, const kl_point *x, wide *out) {
  return eval_sum(p, e, x, is_small(e) ? 0 : kl_affs_stamp(p), out);
}

bool kl_aff_eval(kl_affs *p, const kl_aff *e, const kl_point *x, int64_t *out) {
  wide v;
  if (!kl_aff_eval_wide(p, e, x, &v) || !fits(v)) return false;
  *out = (int64_t)v;
  return true;
}

static const kl_aff *replace(kl_affs *p, const kl_aff_subst *s, const kl_aff *e, uint32_t stamp);

static const kl_aff *replace_atom(kl_affs *p, const kl_aff_subst *s, const kl_aff_atom *a, uint32_t stamp) {
  if (a->kind < KL_AFF_VARS) return a->var < s->n[a->kind] ? s->to[a->kind][a->var] : kl_aff_of(p, a);
  const kl_aff *small[8], **arg = a->n <= KL_COUNT(small) ? small : KL_NEW_N(p->arena, const kl_aff *, a->n);
  bool same = true;
  for (uint32_t i = 0; i < a->n; i++) {
    arg[i] = replace(p, s, a->arg[i], stamp);
    same = same && arg[i] == a->arg[i];
  }
  return same ? kl_aff_of(p, a) : kl_aff_rebuild(p, a, arg);
}

static const kl_aff *replace(kl_affs *p, const kl_aff_subst *s, const kl_aff *e, uint32_t stamp) {
  if (e->n == 0) return e;
  if (stamp && kl_aff_note(p, e)->walk_at == stamp) return kl_aff_note(p, e)->walk.aff;
  kl_adder sum;
  kl_adder_open(&sum, e->c);
  for (uint32_t i = 0; i < e->n; i++) {
    kl_adder_add(p, &sum, replace_atom(p, s, e->terms[i].atom, stamp), e->terms[i].coef);
  }
  const kl_aff *r = kl_adder_sum(p, &sum);
  if (stamp) {
    kl_note *note = kl_aff_note(p, e);
    note->walk_at = stamp;
    note->walk.aff = r;
  }
  return r;
}

void kl_aff_replace(kl_affs *p, const kl_aff_subst *s, const kl_aff *const *e, uint32_t n, const kl_aff **out) {
  uint32_t stamp = kl_affs_stamp(p);
  for (uint32_t i = 0; i < n; i++) out[i] = replace(p, s, e[i], stamp);
}

static void mark(kl_affs *p, const kl_aff *e, bool *const used[KL_AFF_VARS], const uint32_t n[KL_AFF_VARS],
                 uint32_t stamp) {
  if (stamp) {
    if (kl_aff_note(p, e)->walk_at == stamp) return;
    kl_aff_note(p, e)->walk_at = stamp;
  }
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind < KL_AFF_VARS) {
      if (a->var < n[a->kind]) used[a->kind][a->var] = true;
    } else {
      for (uint32_t j = 0; j < a->n; j++) mark(p, a->arg[j], used, n, stamp);
    }
  }
}

void kl_aff_mark(kl_affs *p, const kl_aff *e, bool *const used[KL_AFF_VARS], const uint32_t n[KL_AFF_VARS]) {
  mark(p, e, used, n, is_small(e) ? 0 : kl_affs_stamp(p));
}

static bool is_dim(const kl_aff_atom *a, uint32_t dim) {
  return a->kind == KL_AFF_DIM && a->var == dim;
}

bool kl_aff_uses(const kl_aff *e, uint32_t dim, bool *inside) {
  bool found = false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    found = found || is_dim(a, dim);
    for (uint32_t j = 0; j < a->n; j++) {
      if (kl_aff_uses(a->arg[j], dim, inside)) found = *inside = true;
    }
  }
  return found;
}

int64_t kl_aff_coef(const kl_aff *e, uint32_t dim) {
  for (uint32_t i = 0; i < e->n; i++) {
    if (is_dim(e->terms[i].atom, dim)) return e->terms[i].coef;
  }
  return 0;
}

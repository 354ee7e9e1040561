// Quasi-affine expressions; see affine.h for the normal form.
//
// Rules of floor, each with its side condition (k, g > 0):
//   floor((k*q + r) / k)      = q + floor(r / k)            always; q takes all multiples of k in the coefficients
//   floor(r / k)              = floor(lo / k)               if floor(lo / k) == floor(hi / k) for r in lo..hi
//   floor((g*s + r) / (g*h))  = floor(s / h)                if r in 0..g-1
//   floor((floor(e / a) + w) / b) = floor((e + a*w) / (a*b))
// They make an expression smaller or nest its floors less deeply, so simplification ends.

#include "ir/index/affine.h"

typedef __int128 wide;

// Sums of more terms keep their plain interval. Floors are flattened within the limit, where 32 bits surely do.
// Larger expressions poison the pool: everything that walks one takes time by its size.
enum { KL_TIGHTEN_TERMS = 24, KL_FLAT_LIMIT = 1 << 30, KL_MAX_SIZE = 4096 };

void kl_exprs_init(kl_exprs *p, kl_ctx *cx, kl_arena *arena) {
  *p = (kl_exprs){.cx = cx, .arena = arena};
}

void kl_exprs_free(kl_exprs *p) {
  VEC_FREE(p->cx, &p->exprs);
  VEC_FREE(p->cx, &p->atoms);
  kl_free(p->cx, p->expr_slots, p->nexpr_slots * sizeof(uint32_t));
  kl_free(p->cx, p->atom_slots, p->natom_slots * sizeof(uint32_t));
  p->expr_slots = p->atom_slots = NULL;
  p->nexpr_slots = p->natom_slots = 0;
}

static int64_t floordiv(int64_t a, int64_t k) {
  int64_t q = a / k;
  return a % k < 0 ? q - 1 : q;
}

static int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t t = x % y;
    x = y;
    y = t;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}

static int64_t clamp_wide(kl_exprs *p, wide v) {
  if (v > INT64_MAX || v < INT64_MIN) {
    p->overflow = true;
    return v > 0 ? INT64_MAX : INT64_MIN;
  }
  return (int64_t)v;
}

// --- interning ----------------------------------------------------------------------------------------------------

static uint64_t expr_hash(int64_t c, const kl_term *t, uint32_t n) {
  uint64_t h = kl_hash(&c, sizeof c, n);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t w[2] = {(uint64_t)t[i].coef, t[i].atom->id};
    h = kl_hash(w, sizeof w, h);
  }
  return h;
}

// The interval of a floor follows from what it floors, that of a variable is part of its identity.
static uint64_t atom_hash(const kl_atom *a) {
  uint64_t w[3] = {(uint64_t)(int64_t)a->var, a->inner ? a->inner->id : (uint64_t)a->lo,
                   a->inner ? (uint64_t)a->k : (uint64_t)a->hi};
  return kl_hash(w, sizeof w, 7);
}

static bool atom_same(const kl_atom *a, const kl_atom *b) {
  if (a->var != b->var) return false;
  return a->var >= 0 ? a->lo == b->lo && a->hi == b->hi : a->inner == b->inner && a->k == b->k;
}

static bool expr_same(const kl_expr *e, int64_t c, const kl_term *t, uint32_t n) {
  if (e->c != c || e->n != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (e->terms[i].coef != t[i].coef || e->terms[i].atom != t[i].atom) return false;
  }
  return true;
}

static uint64_t table_expr_hash(const kl_exprs *p, size_t i) {
  const kl_expr *e = p->exprs.p[i];
  return expr_hash(e->c, e->terms, e->n);
}

static uint64_t table_atom_hash(const kl_exprs *p, size_t i) {
  return atom_hash(p->atoms.p[i]);
}

// Keeps an open-addressing table of ids at most half full.
static void table_grow(kl_exprs *p, uint32_t **slots, size_t *n, size_t used,
                       uint64_t (*hash)(const kl_exprs *, size_t)) {
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

static const kl_atom *intern_atom(kl_exprs *p, kl_atom a) {
  table_grow(p, &p->atom_slots, &p->natom_slots, p->atoms.n, table_atom_hash);
  size_t s = atom_hash(&a) & (p->natom_slots - 1);
  for (; p->atom_slots[s]; s = (s + 1) & (p->natom_slots - 1)) {
    const kl_atom *o = p->atoms.p[p->atom_slots[s] - 1];
    if (atom_same(o, &a)) return o;
  }
  a.id = (uint32_t)p->atoms.n;
  kl_atom *made = kl_arena_dup(p->arena, &a, sizeof a);
  VEC_PUSH(p->cx, &p->atoms, made);
  p->atom_slots[s] = a.id + 1;
  return made;
}

// Interval of the sum as it stands.
static void plain_range(kl_exprs *p, int64_t c, const kl_term *t, uint32_t n, int64_t *lo, int64_t *hi) {
  wide l = c, h = c;
  for (uint32_t i = 0; i < n; i++) {
    wide a = (wide)t[i].coef * t[i].atom->lo, b = (wide)t[i].coef * t[i].atom->hi;
    l += a < b ? a : b;
    h += a < b ? b : a;
  }
  *lo = clamp_wide(p, l);
  *hi = clamp_wide(p, h);
}

// A sum on its way through tighten_by_mods: what is left of it, and the interval of what was taken out.
typedef struct sum {
  kl_term t[KL_TIGHTEN_TERMS];
  uint32_t n;
  wide c, lo, hi;
} sum;

// out = s + k*(c, t[0..n-1]) without the terms `skip1` and `skip2` of s. False if it has too many terms or leaves
// int64.
static bool combine(const sum *s, uint32_t skip1, uint32_t skip2, wide k, wide c, const kl_term *t, uint32_t n,
                    sum *out) {
  uint32_t i = 0, j = 0;
  out->n = 0;
  out->c = s->c + k * c;
  while (i < s->n || j < n) {
    if (i < s->n && (i == skip1 || i == skip2)) {
      i++;
      continue;
    }
    uint32_t si = i < s->n ? s->t[i].atom->id : UINT32_MAX, tj = j < n ? t[j].atom->id : UINT32_MAX;
    wide coef = 0;
    const kl_atom *atom = si <= tj ? s->t[i].atom : t[j].atom;
    if (si <= tj) coef += s->t[i++].coef;
    if (tj <= si) coef += k * t[j++].coef;
    if (!coef) continue;
    if (out->n == KL_TIGHTEN_TERMS || coef > INT64_MAX || coef < INT64_MIN) return false;
    out->t[out->n++] = (kl_term){(int64_t)coef, atom};
  }
  return true;
}

// (x - y) / a, if a divides every coefficient.
static bool exact_quotient(const kl_expr *x, const kl_expr *y, int64_t a, sum *out) {
  sum s = {.n = x->n, .c = x->c};
  if (x->n > KL_TIGHTEN_TERMS) return false;
  memcpy(s.t, x->terms, x->n * sizeof(kl_term));
  if (!combine(&s, UINT32_MAX, UINT32_MAX, -1, y->c, y->terms, y->n, out) || out->c % a != 0) return false;
  out->c /= a;
  for (uint32_t i = 0; i < out->n; i++) {
    if (out->t[i].coef % a != 0) return false;
    out->t[i].coef /= a;
  }
  return true;
}

// The sum without m*(sub mod b), where term i is its last term -m*b*floor(sub / b). It has two faces:
//   sub = x:            c*floor(x/k) with c = -m*k, b = k
//   sub = floor(x/a):   c*floor(x/k) with c = -m*b, k = a*b; then floor(x/a) = (x - y)/a + floor(y/a) with the atom
//                       floor(y/a) as term j, with coefficient m
static bool without_mod(const sum *s, uint32_t i, uint32_t j, sum *rest, wide *extent) {
  const kl_atom *a = s->t[i].atom;
  int64_t c = s->t[i].coef;
  if (i == j) {
    if (c % a->k != 0) return false;
    wide m = -(wide)(c / a->k);
    *extent = m * (a->k - 1);
    return combine(s, i, i, -m, a->inner->c, a->inner->terms, a->inner->n, rest);
  }
  const kl_atom *last = s->t[j].atom;
  int64_t m = s->t[j].coef, b = a->k / (last->var >= 0 ? 1 : last->k);
  sum w;
  if (last->var >= 0 || a->k % last->k != 0 || b < 2 || (wide)c != -(wide)m * b) return false;
  if (!exact_quotient(a->inner, last->inner, last->k, &w) || w.c > INT64_MAX || w.c < INT64_MIN) return false;
  *extent = (wide)m * (b - 1);
  return combine(s, i, j, -(wide)m, w.c, w.t, w.n, rest);
}

// Takes one such part out of s, if that leaves clearly fewer terms.
static bool take_mod(sum *s) {
  for (uint32_t i = s->n; i-- > 0;) {
    if (s->t[i].atom->var >= 0) continue;
    for (uint32_t j = 0; j < s->n; j++) {
      sum rest;
      wide extent;
      if (!without_mod(s, i, j, &rest, &extent) || rest.n + 1 >= s->n + (s->n <= 2)) continue;
      rest.lo = s->lo + (extent < 0 ? extent : 0);
      rest.hi = s->hi + (extent > 0 ? extent : 0);
      *s = rest;
      return true;
    }
  }
  return false;
}

// A mod lies in 0..b-1 whatever it is of, and the plain interval of its sum does not show it. Greedy: one part after
// the other, each time the interval of what is left plus that of what was taken. Linear in the sum, where trying all
// orders would be exponential.
static void tighten_by_mods(kl_expr *e) {
  sum s = {.n = e->n, .c = e->c};
  if (e->n > KL_TIGHTEN_TERMS) return;
  memcpy(s.t, e->terms, e->n * sizeof(kl_term));
  while (s.n && take_mod(&s)) {
    wide lo = s.c + s.lo, hi = s.c + s.hi;
    for (uint32_t i = 0; i < s.n; i++) {
      wide x = (wide)s.t[i].coef * s.t[i].atom->lo, y = (wide)s.t[i].coef * s.t[i].atom->hi;
      lo += x < y ? x : y;
      hi += x < y ? y : x;
    }
    if (lo > e->lo) e->lo = (int64_t)lo;
    if (hi < e->hi) e->hi = (int64_t)hi;
  }
}

static uint32_t written_out(const kl_term *t, uint32_t n) {
  uint64_t size = n;
  for (uint32_t i = 0; i < n; i++) {
    if (t[i].atom->inner) size += t[i].atom->inner->size;
  }
  return size > KL_MAX_SIZE ? KL_MAX_SIZE + 1 : (uint32_t)size;
}

// Takes terms in order of atoms, without zero coefficients.
static const kl_expr *build(kl_exprs *p, int64_t c, kl_term *terms, uint32_t n) {
  table_grow(p, &p->expr_slots, &p->nexpr_slots, p->exprs.n, table_expr_hash);
  size_t mask = p->nexpr_slots - 1, s = expr_hash(c, terms, n) & mask;
  for (; p->expr_slots[s]; s = (s + 1) & mask) {
    const kl_expr *o = p->exprs.p[p->expr_slots[s] - 1];
    if (expr_same(o, c, terms, n)) return o;
  }
  uint32_t size = written_out(terms, n);
  if (size > KL_MAX_SIZE) {
    p->too_large = true;
    return build(p, 0, NULL, 0);
  }
  kl_expr *e = kl_arena_alloc(p->arena, sizeof *e + n * sizeof(kl_term));
  e->id = (uint32_t)p->exprs.n;
  e->n = n;
  e->size = size;
  e->c = c;
  if (n) memcpy(e->terms, terms, n * sizeof(kl_term));
  plain_range(p, c, terms, n, &e->lo, &e->hi);
  VEC_PUSH(p->cx, &p->exprs, e);
  p->expr_slots[s] = e->id + 1;
  if (n >= 2) tighten_by_mods(e);
  return e;
}

// --- arithmetic ---------------------------------------------------------------------------------------------------

const kl_expr *kl_expr_const(kl_exprs *p, int64_t c) {
  return build(p, c, NULL, 0);
}

static const kl_expr *of_atom(kl_exprs *p, const kl_atom *a) {
  kl_term t = {1, a};
  return build(p, 0, &t, 1);
}

const kl_expr *kl_expr_var(kl_exprs *p, int32_t var, int64_t lo, int64_t hi) {
  if (lo == hi) return kl_expr_const(p, lo);
  return of_atom(p, intern_atom(p, (kl_atom){.var = var, .k = 1, .lo = lo, .hi = hi}));
}

// Terms of a + k*b into `t`, which has room for both; returns their number. Both lists are in order of atoms.
static uint32_t merge(kl_exprs *p, const kl_term *a, uint32_t na, const kl_term *b, uint32_t nb, int64_t k,
                      kl_term *t) {
  uint32_t n = 0, i = 0, j = 0;
  while (i < na || j < nb) {
    uint32_t ai = i < na ? a[i].atom->id : UINT32_MAX, bj = j < nb ? b[j].atom->id : UINT32_MAX;
    wide coef = 0;
    const kl_atom *atom = ai <= bj ? a[i].atom : b[j].atom;
    if (ai <= bj) coef += a[i++].coef;
    if (bj <= ai) coef += (wide)b[j++].coef * k;
    if (coef) t[n++] = (kl_term){clamp_wide(p, coef), atom};
  }
  return n;
}

// a + k*b.
static const kl_expr *add_scaled(kl_exprs *p, const kl_expr *a, const kl_expr *b, int64_t k) {
  kl_term small[16], *t = small;
  size_t cap = (size_t)a->n + b->n;
  if (cap > KL_COUNT(small)) t = kl_alloc(p->cx, cap * sizeof *t);
  uint32_t n = merge(p, a->terms, a->n, b->terms, b->n, k, t);
  const kl_expr *r = build(p, clamp_wide(p, (wide)a->c + (wide)b->c * k), t, n);
  if (t != small) kl_free(p->cx, t, cap * sizeof *t);
  return r;
}

const kl_expr *kl_expr_add(kl_exprs *p, const kl_expr *a, const kl_expr *b) {
  return add_scaled(p, a, b, 1);
}
const kl_expr *kl_expr_sub(kl_exprs *p, const kl_expr *a, const kl_expr *b) {
  return add_scaled(p, a, b, -1);
}
const kl_expr *kl_expr_addc(kl_exprs *p, const kl_expr *a, int64_t c) {
  return c ? add_scaled(p, a, kl_expr_const(p, c), 1) : a;
}
const kl_expr *kl_expr_mul(kl_exprs *p, const kl_expr *a, int64_t k) {
  return k == 1 ? a : add_scaled(p, kl_expr_const(p, 0), a, k);
}
// Where the terms have cancelled too well for tighten_by_mods, the interval is still known here.
const kl_expr *kl_expr_mod(kl_exprs *p, const kl_expr *a, int64_t k) {
  kl_expr *r = (kl_expr *)add_scaled(p, a, kl_expr_div(p, a, k), -k);
  if (r->lo < 0) r->lo = 0;
  if (r->hi > k - 1) r->hi = k - 1;
  return r;
}

// a = g*whole + rest, every coefficient of rest less than g in magnitude, and 0 <= rest->c < g.
static void split(kl_exprs *p, const kl_expr *a, int64_t g, const kl_expr **whole, const kl_expr **rest) {
  kl_term small[32], *t = small;
  size_t bytes = 2 * (size_t)a->n * sizeof *t;
  if (2 * (size_t)a->n > KL_COUNT(small)) t = kl_alloc(p->cx, bytes);
  kl_term *w = t, *r = t + a->n;
  uint32_t nw = 0, nr = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    kl_term x = a->terms[i];
    if (x.coef / g) w[nw++] = (kl_term){x.coef / g, x.atom};
    if (x.coef % g) r[nr++] = (kl_term){x.coef % g, x.atom};
  }
  int64_t q = floordiv(a->c, g);
  *whole = build(p, q, w, nw);
  *rest = build(p, a->c - q * g, r, nr);
  if (t != small) kl_free(p->cx, t, bytes);
}

// The floor of r = floor(e / a) + w over k is that of *flat = e + a*w over *ak = a*k. Taken where just one term of r is
// such a floor, and within the limit, so that it never costs an index its 32 bits.
static bool flatten(kl_exprs *p, const kl_expr *r, int64_t k, const kl_expr **flat, int64_t *ak) {
  const kl_atom *a = NULL;
  for (uint32_t i = 0; i < r->n; i++) {
    if (r->terms[i].coef != 1 || r->terms[i].atom->var >= 0) continue;
    if (a) return false;
    a = r->terms[i].atom;
  }
  if (!a || __builtin_mul_overflow(a->k, k, ak)) return false;
  if (r->n > 1 || r->c) {
    int64_t lo, hi;
    plain_range(p, r->c, r->terms, r->n, &lo, &hi);
    wide flat_lo = ((wide)lo - a->lo) * a->k + a->inner->lo, flat_hi = ((wide)hi - a->hi) * a->k + a->inner->hi;
    if (flat_lo < -KL_FLAT_LIMIT || flat_hi > KL_FLAT_LIMIT || *ak > KL_FLAT_LIMIT) return false;
  }
  const kl_expr *w = kl_expr_sub(p, r, of_atom(p, a));
  *flat = kl_expr_add(p, a->inner, kl_expr_mul(p, w, a->k));
  return true;
}

// floor(r / k) where the coefficients of r are less than k in magnitude and 0 <= r->c < k.
static const kl_expr *div_rest(kl_exprs *p, const kl_expr *r, int64_t k) {
  int64_t lo = floordiv(r->lo, k), hi = floordiv(r->hi, k);
  if (lo == hi) return kl_expr_const(p, lo);
  for (uint32_t i = 0; i < r->n; i++) {
    int64_t g = gcd(k, r->terms[i].coef);
    if (g <= 1) continue;
    const kl_expr *whole, *rest;
    split(p, r, g, &whole, &rest);
    if (rest->lo >= 0 && rest->hi < g) return kl_expr_div(p, whole, k / g);
  }
  const kl_expr *flat;
  int64_t ak;
  if (flatten(p, r, k, &flat, &ak)) return kl_expr_div(p, flat, ak);
  return of_atom(p, intern_atom(p, (kl_atom){.var = -1, .inner = r, .k = k, .lo = lo, .hi = hi}));
}

const kl_expr *kl_expr_div(kl_exprs *p, const kl_expr *a, int64_t k) {
  if (k == 1) return a;
  const kl_expr *whole, *rest;
  split(p, a, k, &whole, &rest);
  const kl_expr *q = add_scaled(p, whole, div_rest(p, rest, k), 1);
  // Moving multiples of k out can hide what the interval of `a` itself tells.
  int64_t lo = floordiv(a->lo, k), hi = floordiv(a->hi, k);
  return lo == hi ? kl_expr_const(p, lo) : q;
}

// --- questions ----------------------------------------------------------------------------------------------------

bool kl_expr_uses(const kl_expr *e, int32_t var, bool *inside) {
  bool found = false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_atom *a = e->terms[i].atom;
    if (a->var == var) found = true;
    if (a->var >= 0) continue;
    if (kl_expr_uses(a->inner, var, inside)) found = *inside = true;
  }
  return found;
}

int64_t kl_expr_coef(const kl_expr *e, int32_t var) {
  for (uint32_t i = 0; i < e->n; i++) {
    if (e->terms[i].atom->var == var) return e->terms[i].coef;
  }
  return 0;
}

int64_t kl_expr_gcd(const kl_expr *e, int32_t except_var) {
  int64_t g = e->c;
  if (g < 0) g = g == INT64_MIN ? 1 : -g;
  for (uint32_t i = 0; i < e->n; i++) {
    if (except_var >= 0 && e->terms[i].atom->var == except_var) continue;
    g = gcd(g, e->terms[i].coef);
  }
  return g;
}

int64_t kl_expr_eval(const kl_expr *e, const int64_t *values) {
  int64_t v = e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_atom *a = e->terms[i].atom;
    v += e->terms[i].coef * (a->var >= 0 ? values[a->var] : floordiv(kl_expr_eval(a->inner, values), a->k));
  }
  return v;
}

static void print_atom(kl_sb *b, const kl_atom *a, const char *const *names) {
  if (a->var >= 0) {
    kl_sb_puts(b, names[a->var]);
    return;
  }
  bool bare = a->inner->n == 1 && a->inner->c == 0 && a->inner->terms[0].coef == 1 && a->inner->terms[0].atom->var >= 0;
  if (!bare) kl_sb_putc(b, '(');
  kl_expr_print(b, a->inner, names);
  if (!bare) kl_sb_putc(b, ')');
  kl_sbf(b, " floordiv %lld", (long long)a->k);
}

void kl_expr_print(kl_sb *b, const kl_expr *e, const char *const *names) {
  for (uint32_t i = 0; i < e->n; i++) {
    int64_t c = e->terms[i].coef;
    const kl_atom *a = e->terms[i].atom;
    if (i)
      kl_sb_puts(b, c < 0 ? " - " : " + ");
    else if (c < 0)
      kl_sb_puts(b, "-");
    bool parens = a->var < 0 && c != 1 && c != -1;
    if (parens) kl_sb_putc(b, '(');
    print_atom(b, a, names);
    if (parens) kl_sb_putc(b, ')');
    if (c != 1 && c != -1) kl_sbf(b, " * %llu", (unsigned long long)(c < 0 ? 0 - (uint64_t)c : (uint64_t)c));
  }
  if (!e->n)
    kl_sb_i64(b, e->c);
  else if (e->c)
    kl_sbf(b, e->c < 0 ? " - %llu" : " + %llu", (unsigned long long)(e->c < 0 ? 0 - (uint64_t)e->c : (uint64_t)e->c));
}

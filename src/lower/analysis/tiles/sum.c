// Sums of digits. The values of c1*y1 + ... + cn*yn are evenly spaced where each coefficient, from small to large, goes
// on where the sums so far end: c <= reach + step. Of digits of one number in a row that means that only the first of
// them, from the major end, that has more than one value may have fewer than all.
#include "lower/analysis/tiles/impl.h"

typedef struct part {
  const tile_axis *a;
  int64_t c;
} part;

static bool is_cut(const tile_axis *a) {
  return a->lo || a->hi;
}

static int64_t magnitude(int64_t c) {
  return c < 0 ? -c : c;
}

// From small to large; among equals, what is whole first.
static bool before(const part *x, const part *y) {
  if (magnitude(x->c) != magnitude(y->c)) return magnitude(x->c) < magnitude(y->c);
  return is_cut(x->a) < is_cut(y->a);
}

static void put(part *p, uint32_t n, part x) {
  uint32_t at = n;
  for (; at > 0 && before(&x, &p[at - 1]); at--) p[at] = p[at - 1];
  p[at] = x;
}

// c*a, in direction of a.
static tile_steps scaled(tiler *t, const tile_axis *a, int64_t c) {
  tile_steps s = {.a = *a, .stride = num(t, c)};
  s.a.o = mulc(t, a->o, c);
  s.a.lo = c > 0 ? a->lo : a->hi;
  s.a.hi = c > 0 ? a->hi : a->lo;
  if (s.a.lo) s.a.lo = mulc(t, s.a.lo, c);
  if (s.a.hi) s.a.hi = mulc(t, s.a.hi, c);
  if (a->align) s.a.aligned &= !__builtin_mul_overflow(a->align, c, &s.a.align);
  return s;
}

static void move(tiler *t, tile_steps *s, const kl_aff *by) {
  s->a.o = add(t, s->a.o, by);
  if (s->a.lo) s->a.lo = add(t, s->a.lo, by);
  if (s->a.hi) s->a.hi = add(t, s->a.hi, by);
  if (is_const(by))
    s->a.align = gcd64(s->a.align, by->c);
  else
    s->a.aligned = false;
}

// The least and the greatest value of all parts together, where one is cut; the smallest of what each begins with.
static void ends(tiler *t, const part *p, uint32_t n, tile_steps *s) {
  const kl_aff *lo = num(t, 0), *hi = lo, *o = lo;
  bool cut_lo = false, cut_hi = false;
  int64_t align = 0;
  bool aligned = true, known = true;
  s->a.uncut = lo;
  for (uint32_t i = 0; i < n; i++) {
    int64_t c = p[i].c, piece = 0;
    known &= !is_cut(p[i].a) || p[i].a->uncut;
    if (is_cut(p[i].a) && p[i].a->uncut) s->a.uncut = add(t, s->a.uncut, p[i].a->uncut);
    const kl_aff *first = tile_first(t, p[i].a), *last = tile_last(t, p[i].a);
    const kl_aff *end = addc(t, add(t, p[i].a->o, p[i].a->n), -1);
    lo = kl_aff_addmul(t->p, lo, c > 0 ? first : last, c);
    hi = kl_aff_addmul(t->p, hi, c > 0 ? last : first, c);
    o = kl_aff_addmul(t->p, o, c > 0 ? p[i].a->o : end, c);
    cut_lo |= (c > 0 ? p[i].a->lo : p[i].a->hi) != NULL;
    cut_hi |= (c > 0 ? p[i].a->hi : p[i].a->lo) != NULL;
    aligned &= c > 0 && p[i].a->aligned && !__builtin_mul_overflow(p[i].a->align, c, &piece);
    align = gcd64(align, piece);
  }
  s->a.o = o;
  s->a.lo = cut_lo ? lo : NULL;
  s->a.hi = cut_hi ? hi : NULL;
  s->a.aligned = aligned;
  s->a.align = align;
  if (!known) s->a.uncut = NULL;
}

static const char gaps[] = "the sum of a tile's dimensions has gaps";

// All sizes are numbers.
static void known_sizes(tiler *t, const part *p, uint32_t n, tile_steps *s) {
  int64_t step = magnitude(p[0].c), reach = 0, all = 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t c = magnitude(p[i].c), more;
    if (i && (c % step || c > reach + step)) tile_inexact(t, gaps);
    if (i && is_cut(p[i - 1].a)) tile_inexact(t, "a tile that is cut has gaps in its sums");
    all = gcd64(all, c);
    if (__builtin_mul_overflow(c, p[i].a->n->c - 1, &more) || __builtin_add_overflow(reach, more, &reach) ||
        reach > INT64_MAX / 4) {
      tile_inexact(t, "a number leaves 64 bits");
      t->unknown |= !t->shape; // else it becomes all of the array
      reach = INT64_MAX / 4;
    }
  }
  s->a.n = num(t, reach / all + 1);
  s->stride = num(t, all);
}

// How many values an axis can have at most, where its size is no number: c of the next, as far as they are digits of
// one number.
static int64_t room(const part *p, uint32_t i) {
  return magnitude(p[i + 1].c) / magnitude(p[i].c);
}

// What is cut has one value, or all that are greater have; or tiles begin and end where it is.
static void alone(tiler *t, const part *p, uint32_t n, uint32_t m) {
  const tile_axis *a = p[m].a;
  for (uint32_t j = m + 1; j < n; j++) {
    kl_constraint any[3] = {{a->n, {1, 1}}, {p[j].a->n, {1, 1}}, {a->uncut, {0, 0}}};
    tile_require(t, any, a->uncut ? 3 : 2, "a tile that is cut has gaps in its sums");
  }
}

// 1 if it has more than one value, else 0.
static const kl_aff *several(tiler *t, const tile_axis *a) {
  return is_const(a->n) ? num(t, a->n->c > 1) : kl_aff_min(t->p, addc(t, a->n, -1), num(t, 1));
}

// `then` where `which` is 1, `otherwise` where it is 0.
static const kl_aff *chosen(tiler *t, const kl_aff *which, const kl_aff *then, const kl_aff *otherwise) {
  const kl_aff *rest = kl_aff_mul(t->p, addc(t, mulc(t, which, -1), 1), otherwise);
  return add(t, rest, kl_aff_mul(t->p, which, then));
}

// Sizes are not known, but digits are in a row: from the major end, ones, one that may be a part, whole ones, ones.
static void row_of_digits(tiler *t, const part *p, uint32_t n, tile_steps *s) {
  s->a.n = num(t, 1);
  s->stride = num(t, magnitude(p[n - 1].c)); // where the major one has one value too, any will do
  for (uint32_t j = 0; j < n; j++) {
    if (is_cut(p[j].a) && !p[j].a->overhang) alone(t, p, n, j);
    for (uint32_t m = 0; m < j; m++)
      for (uint32_t l = m; l < j; l++) { // n of m is 1, or that of j, or l is whole
        kl_constraint any[3] = {{p[m].a->n, {1, 1}}, {p[l].a->n, {room(p, l), room(p, l)}}, {p[j].a->n, {1, 1}}};
        tile_require(t, any, 3, gaps);
      }
    s->a.n = kl_aff_mul(t->p, s->a.n, p[j].a->n);
  }
  for (uint32_t j = n - 1; j-- > 0;) // the stride of the first that has more than one value
    s->stride = chosen(t, several(t, p[j].a), num(t, magnitude(p[j].c)), s->stride);
}

// What is asked of part i for its values to go on where those of the smaller ones end, `reach` behind their first: it
// has one value, or they have, or it is whole steps and not too large.
static void goes_on(tiler *t, const part *p, uint32_t i, const kl_aff *reach) {
  int64_t c = magnitude(p[i].c);
  const kl_aff *step = num(t, c), *all = num(t, 0); // of the first that has more than one value; how many all have
  for (uint32_t j = i; j-- > 0;) {
    step = chosen(t, several(t, p[j].a), num(t, magnitude(p[j].c)), step);
    all = add(t, all, p[j].a->n);
  }
  kl_constraint any[3] = {{p[i].a->n, {1, 1}}, {all, {i, i}}, {sub(t, add(t, reach, step), num(t, c)), {0, INT64_MAX}}};
  tile_require(t, any, 3, gaps);
  const kl_aff *before = num(t, 0);
  for (uint32_t j = 0; j < i; j++) {
    kl_constraint first[3] = {{p[i].a->n, {1, 1}}, {p[j].a->n, {1, 1}}, {before, {j + 1, INT64_MAX}}};
    if (c % magnitude(p[j].c)) tile_require(t, first, 3, gaps);
    before = add(t, before, p[j].a->n);
  }
}

// Sizes are not known, and coefficients may overlap, as in windows.
static void overlapping(tiler *t, const part *p, uint32_t n, tile_steps *s) {
  const kl_aff *reach = num(t, 0);
  for (uint32_t i = 0; i < n; i++) {
    if (i) goes_on(t, p, i, reach);
    if (is_cut(p[i].a)) alone(t, p, n, i);
    reach = kl_aff_addmul(t->p, reach, addc(t, p[i].a->n, -1), magnitude(p[i].c));
  }
  s->a.n = p[n - 1].a->n;
  s->stride = num(t, magnitude(p[n - 1].c));
  for (uint32_t j = n - 1; j-- > 0;) { // steps of the first that has more than one value
    int64_t c = magnitude(p[j].c);
    const kl_aff *more = several(t, p[j].a), *steps = p[j].a->n;
    for (uint32_t i = j + 1; i < n; i++)
      steps = add(t, steps, divc(t, mulc(t, addc(t, p[i].a->n, -1), magnitude(p[i].c)), c));
    s->a.n = chosen(t, more, steps, s->a.n);
    s->stride = chosen(t, more, num(t, c), s->stride);
  }
}

// Whatever the sizes are: all between the ends.
static void spread(tiler *t, const part *p, uint32_t n, tile_steps *s) {
  int64_t step = 0;
  const kl_aff *reach = num(t, 0);
  tile_inexact(t, gaps);
  for (uint32_t i = 0; i < n; i++) {
    step = gcd64(step, p[i].c);
    reach = kl_aff_addmul(t->p, reach, addc(t, p[i].a->n, -1), magnitude(p[i].c));
  }
  s->a.n = addc(t, divc(t, reach, step), 1);
  s->stride = num(t, step);
}

static tile_steps combined(tiler *t, const part *p, uint32_t n) {
  tile_steps s = {.a = {.n = num(t, 1), .o = num(t, 0), .aligned = true}, .stride = num(t, 0)};
  bool known = true, row = true;
  if (n == 0) return s;
  if (n == 1) return scaled(t, p[0].a, p[0].c);
  for (uint32_t i = 0; i < n; i++) known &= is_const(p[i].a->n);
  for (uint32_t i = 0; i + 1 < n; i++) {
    row &= magnitude(p[i + 1].c) % magnitude(p[i].c) == 0;
    int64_t most = is_const(p[i].a->n) ? p[i].a->n->c : p[i].a->most;
    row &= most > 0 && most <= room(p, i);
  }
  ends(t, p, n, &s);
  for (uint32_t i = 0; i < n; i++) // one without values leaves none, which ends do not tell
    if (is_cut(p[i].a) && !p[i].a->overhang) tile_guard_axis(t, p[i].a);
  if (known)
    known_sizes(t, p, n, &s);
  else if (t->hull)
    spread(t, p, n, &s);
  else if (row)
    row_of_digits(t, p, n, &s);
  else
    overlapping(t, p, n, &s);
  return s;
}

// --- hulls ----------------------------------------------------------------------------------------------------------

// Values from o to o+n-1, and more exactly from lo to hi.
typedef struct hull {
  const kl_aff *lo, *hi, *n;
  bool known;
} hull;

static hull hull_of(tiler *t, const kl_aff *e);

static hull hull_of_atom(tiler *t, const kl_aff_atom *a) {
  const kl_aff *e = kl_aff_of(t->p, a);
  if (!tile_has_dims(t, e)) return (hull){e, e, num(t, 1), true};
  if (a->kind == KL_AFF_DIM) {
    const tile_axis *v = &t->var[a->var];
    return (hull){tile_first(t, v), tile_last(t, v), v->n, true};
  }
  if (a->kind == KL_AFF_FLOOR) {
    hull h = hull_of(t, a->arg[0]);
    if (!h.known) return h;
    return (hull){divc(t, h.lo, a->k), divc(t, h.hi, a->k), addc(t, divc(t, addc(t, h.n, a->k - 2), a->k), 1), true};
  }
  if (a->kind != KL_AFF_MIN && a->kind != KL_AFF_MAX) return (hull){0};
  hull all = hull_of(t, a->arg[0]);
  for (uint32_t i = 1; i < a->n && all.known; i++) {
    hull h = hull_of(t, a->arg[i]);
    if (!h.known) return h;
    all.lo = a->kind == KL_AFF_MIN ? kl_aff_min(t->p, all.lo, h.lo) : kl_aff_max(t->p, all.lo, h.lo);
    all.hi = a->kind == KL_AFF_MIN ? kl_aff_min(t->p, all.hi, h.hi) : kl_aff_max(t->p, all.hi, h.hi);
    all.n = kl_aff_max(t->p, all.n, h.n);
  }
  return all;
}

static hull hull_of(tiler *t, const kl_aff *e) {
  hull all = {num(t, e->c), num(t, e->c), num(t, 1), !e->error};
  for (uint32_t i = 0; i < e->n && all.known; i++) {
    int64_t c = e->terms[i].coef;
    hull h = hull_of_atom(t, e->terms[i].atom);
    if (!h.known || c == INT64_MIN) return (hull){0};
    all.lo = kl_aff_addmul(t->p, all.lo, c > 0 ? h.lo : h.hi, c);
    all.hi = kl_aff_addmul(t->p, all.hi, c > 0 ? h.hi : h.lo, c);
    all.n = kl_aff_addmul(t->p, all.n, addc(t, h.n, -1), magnitude(c));
  }
  return all;
}

// What the map's bounds say of the expression.
static hull hull_of_domain(tiler *t, const kl_aff *e) {
  kl_interval in = {0, 0};
  const kl_map *m = kl_map_with_results(t->p, t->m, &e, 1);
  int64_t n;
  if (!kl_map_result_ranges(t->p, m, &in) || in.lo == INT64_MIN || in.hi == INT64_MAX) return (hull){0};
  if (in.lo > in.hi) in.hi = in.lo;
  if (__builtin_sub_overflow(in.hi, in.lo, &n) || n == INT64_MAX) return (hull){0};
  return (hull){num(t, in.lo), num(t, in.hi), num(t, n + 1), true};
}

static tile_steps around(tiler *t, const kl_aff *e) {
  hull h = hull_of(t, e);
  if (!h.known || h.lo->error || h.hi->error || h.n->error) h = hull_of_domain(t, e);
  if (!h.known) return (tile_steps){.a = {.o = NULL}};
  return (tile_steps){.a = {.o = h.lo, .n = h.n, .hi = h.hi}, .stride = num(t, 1)};
}

// --- quotients ------------------------------------------------------------------------------------------------------

// The inverse of a modulo m, coprime.
static int64_t inverse(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
  while (r1) {
    int64_t q = r0 / r1, r = r0 - q * r1, x = x0 - q * x1;
    r0 = r1, r1 = r, x0 = x1, x1 = x;
  }
  return x0 < 0 ? x0 + m : x0;
}

// Of o + step*k those that b divides, over b. With d = gcd(step, b), d divides o or there are none; then of o/d +
// (step/d)*k every (b/d)-th, from the first k that makes it 0 modulo b/d.
static void divide(tiler *t, tile_steps *s, int64_t b) {
  if (!is_const(s->stride) || s->stride->c == INT64_MIN) {
    tile_inexact(t, "a stride that is not known is divided");
    *s = (tile_steps){.a = {.o = NULL}};
    return;
  }
  if (s->stride->c < 0) {
    s->a.o = add(t, s->a.o, mulc(t, addc(t, s->a.n, -1), s->stride->c));
    s->stride = mulc(t, s->stride, -1);
  }
  int64_t d = gcd64(s->stride->c, b), step = s->stride->c / d, q = b / d;
  if (d > 1) tile_guard(t, mulc(t, kl_aff_modc(t->p, s->a.o, d), -1));
  const kl_aff *o = divc(t, s->a.o, d);
  const kl_aff *first = q > 1 ? kl_aff_modc(t->p, mulc(t, o, -inverse(step, q)), q) : num(t, 0);
  s->a.o = divc(t, kl_aff_addmul(t->p, o, first, step), q);
  s->stride = num(t, step);
  s->a.lo = s->a.lo ? mulc(t, divc(t, mulc(t, s->a.lo, -1), b), -1) : NULL;
  s->a.hi = s->a.hi ? divc(t, s->a.hi, b) : NULL;
  // steps before first are none of them; those behind the last leave none over
  const kl_aff *end = divc(t, sub(t, addc(t, s->a.n, -1), first), q);
  if (q > 1) s->a.hi = tile_min(t, s->a.hi, kl_aff_addmul(t->p, s->a.o, end, step));
  s->a.n = divc(t, addc(t, s->a.n, q - 1), q);
  s->a.aligned = false;
}

tile_steps tile_sum(tiler *t, const tile_form *f) {
  part p[TILE_MOST_USES];
  uint32_t n = 0;
  const kl_aff *rest = f->rest;
  tile_steps s;
  if (f->complex) {
    tile_inexact(t, "an index is no sum of digits of a tile");
    s = around(t, f->e);
    if (!s.a.o) return s;
  } else {
    const tile_axis *alone = NULL;
    int64_t c = 0;
    for (uint32_t i = 0; i < f->n; i++) {
      const tile_use *u = &f->use[i];
      const tile_axis *a = &t->digits[u->number]->at[u->level];
      alone = a, c = u->coef;
      if (is_one(a->n) && f->n > 1) { // one value: moves the others
        rest = kl_aff_addmul(t->p, rest, a->o, u->coef);
        if (a->lo) tile_guard(t, sub(t, a->o, a->lo));
        if (a->hi) tile_guard(t, sub(t, a->hi, a->o));
      } else
        put(p, n++, (part){a, u->coef});
    }
    s = f->n == 1 ? scaled(t, alone, c) : combined(t, p, n);
    move(t, &s, rest);
  }
  if (f->div > 1) {
    divide(t, &s, f->div);
    if (!s.a.o) return s;
    s.a.aligned = false;
    int64_t c = f->times;
    tile_axis whole = s.a;
    const kl_aff *stride = s.stride;
    s = scaled(t, &whole, c);
    s.stride = mulc(t, stride, c);
    if (f->plus) move(t, &s, f->plus);
  }
  if (is_const(s.stride)) { // a cut may leave nothing
    const kl_aff *end = kl_aff_addmul(t->p, s.a.o, addc(t, s.a.n, -1), s.stride->c);
    bool down = s.stride->c < 0;
    if (f->lo) tile_guard(t, sub(t, down ? s.a.o : end, f->lo));
    if (f->hi) tile_guard(t, sub(t, f->hi, down ? end : s.a.o));
  }
  if (f->lo || f->hi) s.a.uncut = NULL;
  s.a.lo = tile_max(t, s.a.lo, f->lo);
  s.a.hi = tile_min(t, s.a.hi, f->hi);
  return s;
}

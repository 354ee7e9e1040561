// What results are made of: digits of variables, and, where floors of several variables at once stand in results,
// digits of a number that those results are together. Then constraints: each cuts a variable or a result, says that a
// form is divisible, or is a condition on tiles.
#include "lower/analysis/tiles/impl.h"

bool tile_has_dims(tiler *t, const kl_aff *e) {
  bool dims[KL_TILE_MOST_VARIABLES] = {false};
  bool *const used[KL_AFF_VARS] = {dims};
  const uint32_t n[KL_AFF_VARS] = {t->nvars};
  kl_aff_mark(t->p, e, used, n);
  for (uint32_t i = 0; i < t->nvars; i++)
    if (dims[i]) return true;
  return false;
}

// --- variables in forms -------------------------------------------------------------------------------------------

// coef * floor((sign*x + rest) / k); of k = 1 without rest.
typedef struct occurrence {
  uint32_t form, var;
  int sign;
  const kl_aff *rest;
  int64_t k, coef;
} occurrence;

typedef VEC(occurrence) occurrences;

// The one dim in a sum: its coefficient, what is left without it. False for none or several, or one inside of an atom.
static bool one_dim(tiler *t, const kl_aff *e, uint32_t *var, int64_t *coef, const kl_aff **rest) {
  *coef = 0;
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom->kind == KL_AFF_DIM) {
      if (*coef) return false;
      *var = e->terms[i].atom->var, *coef = e->terms[i].coef;
    }
  if (!*coef) return false;
  *rest = kl_aff_addmul(t->p, e, kl_aff_dim(t->p, *var), -*coef);
  return !tile_has_dims(t, *rest);
}

// False where the term has dims, but no digit of one.
static bool read_term(tiler *t, const kl_aff_term *term, occurrence *o) {
  const kl_aff_atom *a = term->atom;
  *o = (occurrence){.sign = 1, .rest = num(t, 0), .k = 1, .coef = term->coef};
  if (a->kind == KL_AFF_DIM) {
    o->var = a->var;
    return true;
  }
  int64_t sign;
  if (a->kind != KL_AFF_FLOOR || !one_dim(t, a->arg[0], &o->var, &sign, &o->rest)) return false;
  o->k = a->k, o->sign = sign < 0 ? -1 : 1;
  return sign == 1 || sign == -1;
}

static void read_form(tiler *t, uint32_t which, occurrences *out) {
  tile_form *f = &t->form[which];
  size_t before = out->n;
  f->rest = num(t, f->e->c);
  f->n = 0;
  for (uint32_t i = 0; i < f->e->n; i++) {
    const kl_aff *atom = kl_aff_of(t->p, f->e->terms[i].atom);
    occurrence o;
    if (!tile_has_dims(t, atom)) {
      f->rest = kl_aff_addmul(t->p, f->rest, atom, f->e->terms[i].coef);
      continue;
    }
    if (!read_term(t, &f->e->terms[i], &o)) {
      f->complex = true;
      out->n = before;
      return;
    }
    o.form = which;
    VEC_PUSH(t->cx, out, o);
  }
}

static void drop_form(tiler *t, occurrences *all, uint32_t form) {
  size_t n = 0;
  t->form[form].complex = true;
  for (size_t i = 0; i < all->n; i++)
    if (all->p[i].form != form) all->p[n++] = all->p[i];
  all->n = n;
}

// Brings the floors of a variable to one sign and shift: (sign*x + rest)/k is (y + q*k)/k with y = sign*x + shift. The
// number of the first form whose floor does not fit, or -1.
static int64_t frame(tiler *t, tile_number *y, const occurrences *all) {
  int64_t most = 1;
  y->sign = 1, y->shift = num(t, 0);
  for (size_t i = 0; i < all->n; i++)
    if (all->p[i].var == y->from && all->p[i].k > most)
      most = all->p[i].k, y->sign = all->p[i].sign, y->shift = all->p[i].rest;
  for (size_t i = 0; i < all->n; i++) {
    const occurrence *o = &all->p[i];
    if (o->var != y->from || o->k == 1) continue;
    const kl_aff *apart = sub(t, o->rest, y->shift);
    if (o->sign != y->sign || mulc(t, divc(t, apart, o->k), o->k) != apart) return o->form;
  }
  return -1;
}

static void insert_level(tile_number *y, int64_t k) {
  uint32_t at = 0;
  while (at < y->nlevels && y->k[at] < k) at++;
  if (at < y->nlevels && y->k[at] == k) return;
  if (y->nlevels < TILE_MOST_LEVELS) {
    for (uint32_t i = y->nlevels; i > at; i--) y->k[i] = y->k[i - 1];
    y->k[at] = k;
  }
  y->nlevels++; // one too many tells the caller
}

// Divisors in a chain, each of the next. False if they are not, or too many.
static bool levels(tile_number *y, const occurrences *all) {
  y->nlevels = 0;
  for (size_t i = 0; i < all->n && y->nlevels <= TILE_MOST_LEVELS; i++)
    if (all->p[i].var == y->from) insert_level(y, all->p[i].k);
  if (y->nlevels > TILE_MOST_LEVELS) return false;
  for (uint32_t l = 1; l < y->nlevels; l++)
    if (y->k[l] % y->k[l - 1]) return false;
  return true;
}

// The coefficient of each digit in a form: floor(y/k) is the sum of the digits from k on, times what they are worth.
// False where one, or its magnitude, leaves 64 bits.
static bool coefficients(tiler *t, const tile_number *y, const occurrences *all, uint32_t form, int64_t *d) {
  int64_t c[TILE_MOST_LEVELS] = {0};
  bool fits = true;
  for (size_t i = 0; i < all->n; i++) {
    const occurrence *o = &all->p[i];
    if (o->var != y->from || o->form != form) continue;
    if (o->coef == INT64_MIN) return false;
    for (uint32_t l = 0; l < y->nlevels; l++)
      if (y->k[l] == o->k) c[l] += o->k == 1 ? y->sign * o->coef : o->coef;
  }
  for (uint32_t l = 0; l < y->nlevels; l++) {
    d[l] = c[l];
    int64_t below;
    if (l &&
        (__builtin_mul_overflow(d[l - 1], y->k[l] / y->k[l - 1], &below) || __builtin_add_overflow(d[l], below, &d[l])))
      fits = false;
    fits &= d[l] != INT64_MIN;
  }
  return fits;
}

// What the shift puts aside: x = sign*(y - shift), and floors whose rest differs from it.
static void put_aside(tiler *t, const tile_number *y, const occurrences *all) {
  for (size_t i = 0; i < all->n; i++) {
    const occurrence *o = &all->p[i];
    if (o->var != y->from) continue;
    tile_form *f = &t->form[o->form];
    const kl_aff *more = o->k == 1 ? mulc(t, y->shift, -y->sign) : divc(t, sub(t, o->rest, y->shift), o->k);
    f->rest = kl_aff_addmul(t->p, f->rest, more, o->coef);
  }
}

// Writes the uses of a variable's digits into all forms. Levels that no form tells apart become one.
static int64_t use_digits(tiler *t, uint32_t number, const occurrences *all) {
  tile_number *y = &t->number[number];
  int64_t d[2 * TILE_MOST_FORMS][TILE_MOST_LEVELS];
  for (uint32_t f = 0; f < t->nforms; f++)
    if (!coefficients(t, y, all, f, d[f])) return f;
  for (uint32_t l = y->nlevels; l-- > 1;) {
    bool apart = false;
    for (uint32_t f = 0; f < t->nforms; f++) {
      int64_t whole;
      apart |= __builtin_mul_overflow(d[f][l - 1], y->k[l] / y->k[l - 1], &whole) || whole != d[f][l];
    }
    if (apart) continue;
    y->nlevels--;
    for (uint32_t i = l; i < y->nlevels; i++) {
      y->k[i] = y->k[i + 1];
      for (uint32_t f = 0; f < t->nforms; f++) d[f][i] = d[f][i + 1];
    }
  }
  // digits below the first that is used are not told apart either
  uint32_t first = 0;
  for (bool any = false; first < y->nlevels && !any; first += !any)
    for (uint32_t f = 0; f < t->nforms; f++) any |= d[f][first] != 0;
  y->live = first < y->nlevels;
  y->nlevels -= first;
  for (uint32_t l = 0; l < y->nlevels; l++) {
    y->k[l] = y->k[l + first];
    y->used[l] = false;
    for (uint32_t f = 0; f < t->nforms; f++) {
      int64_t c = d[f][l + first];
      if (!c) continue;
      if (t->form[f].n == TILE_MOST_USES) return f;
      y->used[l] = true;
      t->form[f].use[t->form[f].n++] = (tile_use){number, l, c};
    }
  }
  put_aside(t, y, all);
  return -1;
}

// Reads all forms that are not digits of a group, variable by variable. False if one became complex: then anew.
static bool read_all(tiler *t, occurrences *all) {
  all->n = 0;
  for (uint32_t f = 0; f < t->nforms; f++)
    if (!t->form[f].complex && !(t->form[f].n && t->number[t->form[f].use[0].number].is_form)) read_form(t, f, all);
  for (uint32_t i = 0; i < t->nvars; i++) {
    tile_number *y = &t->number[i];
    *y = (tile_number){.from = i};
    int64_t bad;
    while ((bad = frame(t, y, all)) >= 0) drop_form(t, all, (uint32_t)bad);
    if (!levels(y, all)) {
      for (uint32_t f = 0; f < t->nforms; f++)
        for (size_t k = 0; k < all->n; k++)
          if (all->p[k].form == f && all->p[k].var == i && all->p[k].k > 1) {
            drop_form(t, all, f);
            break;
          }
      return false;
    }
  }
  for (uint32_t i = 0; i < t->nvars; i++) {
    int64_t bad = use_digits(t, i, all);
    if (bad < 0) continue;
    t->form[bad].complex = true;
    return false;
  }
  return true;
}

// --- results that are one number together ---------------------------------------------------------------------------

static bool in_group(const tiler *t, uint32_t result) {
  const tile_form *f = &t->form[result];
  return f->n && t->number[f->use[0].number].is_form;
}

// Is the expression a sum of digits of single variables?
static bool simple(tiler *t, const kl_aff *e) {
  occurrence o;
  for (uint32_t i = 0; i < e->n; i++)
    if (tile_has_dims(t, kl_aff_of(t->p, e->terms[i].atom)) && !read_term(t, &e->terms[i], &o)) return false;
  return !e->error;
}

// The number that results first .. last are the digits of, by the extents of the array; NULL if that is nothing
// simpler.
static const kl_aff *together(tiler *t, uint32_t first, uint32_t last, const kl_interval *ranges) {
  const kl_aff *sum = num(t, 0);
  int64_t worth = 1;
  for (uint32_t r = last + 1; r-- > first;) {
    if (in_group(t, r) || t->form[r].div > 1) return NULL;
    if (r > first && (ranges[r].lo < 0 || ranges[r].hi >= t->shape[r])) return NULL;
    sum = kl_aff_addmul(t->p, sum, t->m->results[r], worth);
    if (r > first && __builtin_mul_overflow(worth, t->shape[r] > 1 ? t->shape[r] : 1, &worth)) return NULL;
  }
  return simple(t, sum) ? sum : NULL;
}

static void make_group(tiler *t, uint32_t first, uint32_t last, const kl_aff *sum) {
  uint32_t f = t->nforms++, g = t->nnumbers++;
  t->form[f] = (tile_form){.e = sum, .div = 1, .times = 1};
  tile_number *y = &t->number[g];
  *y = (tile_number){.live = true, .is_form = true, .from = f, .sign = 1};
  int64_t worth = 1;
  for (uint32_t r = last + 1; r-- > first;) {
    tile_form *form = &t->form[r];
    form->complex = false;
    form->rest = num(t, 0);
    form->n = 0;
    if (r > first && t->shape[r] == 1) { // it is always 0, which a form of nothing says
      form->e = num(t, 0);
      continue;
    }
    form->use[form->n++] = (tile_use){g, y->nlevels, 1};
    y->used[y->nlevels] = true;
    y->k[y->nlevels++] = worth;
    if (r > first) worth *= t->shape[r];
  }
  // in the order of levels, minor to major, the uses were numbered as they came
}

// Takes complex results together with their neighbours, the fewest that do. True if any were.
static bool group(tiler *t) {
  kl_interval ranges[TILE_MOST_RESULTS];
  uint32_t n = t->m->nresults;
  bool any = false;
  kl_map bounds = *t->m; // digits are so by bounds alone: where a constraint makes them so, it would be lost
  bounds.nconstraints = 0;
  if (!t->shape || !kl_map_result_ranges(t->p, kl_map_make(t->p, &bounds), ranges)) return false;
  for (uint32_t r = 0; r < n; r++) {
    if (!t->form[r].complex) continue;
    for (uint32_t length = 2; length <= n && length <= TILE_MOST_LEVELS && t->form[r].complex; length++)
      for (uint32_t first = r + 1 < length ? 0 : r + 1 - length; first <= r && first + length <= n; first++) {
        const kl_aff *sum = together(t, first, first + length - 1, ranges);
        if (!sum) continue;
        make_group(t, first, first + length - 1, sum);
        any = true;
        break;
      }
  }
  return any;
}

// --- constraints ----------------------------------------------------------------------------------------------------

typedef struct pending {
  const kl_aff *e, *lo, *hi; // NULL: no bound
  bool done;
} pending;

static void bound(tiler *t, const kl_aff **lo, const kl_aff **hi, const kl_aff *new_lo, const kl_aff *new_hi) {
  *lo = tile_max(t, *lo, new_lo);
  *hi = tile_min(t, *hi, new_hi);
}

// Bounds of v where lo <= c*v + rest <= hi.
static void solved(tiler *t, const pending *q, int64_t c, const kl_aff *rest, const kl_aff **lo, const kl_aff **hi) {
  const kl_aff *from = q->lo ? sub(t, q->lo, rest) : NULL, *to = q->hi ? sub(t, q->hi, rest) : NULL;
  if (c < 0) {
    const kl_aff *swap = from;
    from = to ? mulc(t, to, -1) : NULL, to = swap ? mulc(t, swap, -1) : NULL, c = -c;
  }
  *lo = from ? mulc(t, divc(t, mulc(t, from, -1), c), -1) : NULL; // rounded up
  *hi = to ? divc(t, to, c) : NULL;
}

// A constraint on one variable cuts it.
static bool cuts_variable(tiler *t, const pending *q) {
  uint32_t var;
  int64_t c;
  const kl_aff *rest, *lo, *hi;
  if (!one_dim(t, q->e, &var, &c, &rest) || c == INT64_MIN) return false;
  solved(t, q, c, rest, &lo, &hi);
  bound(t, &t->var[var].lo, &t->var[var].hi, lo, hi);
  t->var[var].overhang = false;
  t->var[var].uncut = NULL;
  return true;
}

// Where e = c*of + rest with rest without dims: the factor c, else 0.
static int64_t multiple_of(tiler *t, const kl_aff *e, const kl_aff *of, const kl_aff **rest) {
  for (uint32_t i = 0; i < of->n; i++) {
    if (!tile_has_dims(t, kl_aff_of(t->p, of->terms[i].atom))) continue;
    for (uint32_t k = 0; k < e->n; k++) {
      if (e->terms[k].atom != of->terms[i].atom) continue;
      if (e->terms[k].coef % of->terms[i].coef || e->terms[k].coef == INT64_MIN) return 0;
      int64_t c = e->terms[k].coef / of->terms[i].coef;
      *rest = kl_aff_addmul(t->p, e, of, -c);
      return (*rest)->error || tile_has_dims(t, *rest) ? 0 : c;
    }
    return 0;
  }
  return 0;
}

static bool cuts_form(tiler *t, const pending *q) {
  for (uint32_t f = 0; f < t->nforms; f++) {
    const kl_aff *rest, *lo, *hi, *e = f < t->m->nresults ? t->m->results[f] : t->form[f].e;
    int64_t c = multiple_of(t, q->e, e, &rest);
    if (!c) continue;
    solved(t, q, c, rest, &lo, &hi);
    bound(t, &t->form[f].lo, &t->form[f].hi, lo, hi);
    return true;
  }
  return false;
}

static uint32_t uses_of_atom(const kl_aff *e, const kl_aff_atom *a, int64_t *coef) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom == a) {
      *coef = e->terms[i].coef;
      return 1;
    }
  return 0;
}

// c*F + rest = v with F a floor that is all there is to one result: F is (v - rest)/c where that is whole.
static bool divides(tiler *t, const pending *q) {
  if (!q->lo || q->lo != q->hi) return false;
  for (uint32_t i = 0; i < q->e->n; i++) {
    const kl_aff_atom *floor = q->e->terms[i].atom;
    int64_t c = q->e->terms[i].coef, times;
    if (floor->kind != KL_AFF_FLOOR || c == INT64_MIN) continue;
    const kl_aff *rest = kl_aff_addmul(t->p, q->e, kl_aff_of(t->p, floor), -c);
    const kl_aff *value = c < 0 ? sub(t, rest, q->lo) : sub(t, q->lo, rest); // |c| * F
    int64_t b = c < 0 ? -c : c;
    const kl_aff *off = sub(t, floor->arg[0], value);
    if (floor->k != b || !is_const(off) || off->c < 0 || off->c >= b || value->error) continue;
    for (uint32_t r = 0; r < t->m->nresults; r++) {
      tile_form *f = &t->form[r];
      if (f->div > 1 || !uses_of_atom(f->e, floor, &times)) continue;
      const kl_aff *plus = kl_aff_addmul(t->p, f->e, kl_aff_of(t->p, floor), -times);
      if (tile_has_dims(t, plus) || times == INT64_MIN) continue;
      f->e = value, f->div = b, f->times = times, f->plus = plus;
      return true;
    }
  }
  return false;
}

static void mark_dims(tiler *t, const kl_aff *e, bool *dims) {
  bool *const used[KL_AFF_VARS] = {dims};
  const uint32_t n[KL_AFF_VARS] = {t->nvars};
  kl_aff_mark(t->p, e, used, n);
}

// Of a variable that nothing else uses it is asked only that there is a value: lo <= c*x + rest <= hi then bounds rest.
static bool frees_variable(tiler *t, pending *all, uint32_t n, uint32_t which) {
  bool used[KL_TILE_MOST_VARIABLES] = {false};
  pending *q = &all[which];
  for (uint32_t i = 0; i < n; i++)
    if (i != which && !all[i].done) mark_dims(t, all[i].e, used);
  for (uint32_t f = 0; f < t->nforms; f++) mark_dims(t, t->form[f].e, used);
  for (uint32_t i = 0; i < q->e->n; i++) {
    const kl_aff_atom *a = q->e->terms[i].atom;
    int64_t c = q->e->terms[i].coef;
    if (a->kind != KL_AFF_DIM || used[a->var] || c == INT64_MIN) continue;
    const kl_aff *rest = kl_aff_addmul(t->p, q->e, kl_aff_of(t->p, a), -c);
    bool inside[KL_TILE_MOST_VARIABLES] = {false};
    mark_dims(t, rest, inside);
    if (inside[a->var]) continue;
    // without gaps: bounds are at least |c| apart, or one is missing
    const kl_aff *apart = q->lo && q->hi ? sub(t, q->hi, q->lo) : NULL;
    if (apart && c != 1 && c != -1 && !(is_const(apart) && apart->c + 1 >= (c < 0 ? -c : c)) &&
        !is_one(t->var[a->var].n))
      continue;
    const kl_aff *first = tile_first(t, &t->var[a->var]), *last = tile_last(t, &t->var[a->var]);
    if (q->lo) q->lo = kl_aff_addmul(t->p, q->lo, c < 0 ? first : last, -c);
    if (q->hi) q->hi = kl_aff_addmul(t->p, q->hi, c < 0 ? last : first, -c);
    tile_guard_axis(t, &t->var[a->var]);
    q->e = rest;
    return true;
  }
  return false;
}

// floor's argument mod k lies within lo .. hi: e is k times less than its argument, but for a constant.
static const kl_aff *residue(tiler *t, const pending *q, int64_t *k, int64_t *lo, int64_t *hi) {
  if (!q->lo || !q->hi || !is_const(q->lo) || !is_const(q->hi)) return NULL;
  for (uint32_t i = 0; i < q->e->n; i++) {
    const kl_aff_atom *a = q->e->terms[i].atom;
    if (a->kind != KL_AFF_FLOOR || q->e->terms[i].coef != -a->k) continue;
    const kl_aff *rest = kl_aff_addmul(t->p, q->e, kl_aff_of(t->p, a), a->k), *c = sub(t, rest, a->arg[0]);
    if (!is_const(c) || __builtin_sub_overflow(q->lo->c, c->c, lo) || __builtin_sub_overflow(q->hi->c, c->c, hi))
      continue;
    *k = a->k;
    if (*lo < 0) *lo = 0;
    if (*hi > a->k - 1) *hi = a->k - 1;
    return *lo <= *hi ? a->arg[0] : NULL;
  }
  return NULL;
}

// Of a variable that nothing else uses, a value with such a residue is asked for: of the last stretch of them that
// begins at the tile's end or before, some value is in the tile.
static bool frees_residue(tiler *t, pending *all, uint32_t n, uint32_t which) {
  bool used[KL_TILE_MOST_VARIABLES] = {false};
  uint32_t var;
  int64_t k, lo, hi, sign;
  const kl_aff *rest, *v = residue(t, &all[which], &k, &lo, &hi);
  if (!v || !one_dim(t, v, &var, &sign, &rest) || (sign != 1 && sign != -1)) return false;
  for (uint32_t i = 0; i < n; i++)
    if (i != which && !all[i].done) mark_dims(t, all[i].e, used);
  for (uint32_t f = 0; f < t->nforms; f++) mark_dims(t, t->form[f].e, used);
  if (used[var]) return false;
  const tile_axis *x = &t->var[var];
  const kl_aff *first = kl_aff_addmul(t->p, rest, sign > 0 ? tile_first(t, x) : tile_last(t, x), sign);
  const kl_aff *last = kl_aff_addmul(t->p, rest, sign > 0 ? tile_last(t, x) : tile_first(t, x), sign);
  const kl_aff *begin = mulc(t, divc(t, addc(t, last, -lo), k), k);
  tile_guard(t, sub(t, kl_aff_min(t->p, addc(t, begin, hi), last), first));
  return true;
}

static void conditions(tiler *t, const pending *q) {
  if (q->lo) tile_guard(t, sub(t, q->e, q->lo));
  if (q->hi) tile_guard(t, sub(t, q->hi, q->e));
}

static uint32_t list_constraints(tiler *t, pending *q) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->m->nconstraints; i++) {
    const kl_constraint *c = &t->m->constraints[i];
    if (n == TILE_MOST_CONSTRAINTS) {
      tile_inexact(t, "it has too many constraints");
      return n;
    }
    q[n++] = (pending){c->e, c->in.lo == INT64_MIN ? NULL : num(t, c->in.lo),
                       c->in.hi == INT64_MAX ? NULL : num(t, c->in.hi), false};
  }
  return n;
}

void tile_forms(tiler *t) {
  pending q[TILE_MOST_CONSTRAINTS];
  uint32_t n = list_constraints(t, q);
  occurrences all = {0};
  t->nforms = t->m->nresults;
  t->nnumbers = t->nvars;
  for (uint32_t r = 0; r < t->nforms; r++) t->form[r] = (tile_form){.e = t->m->results[r], .div = 1, .times = 1};
  for (uint32_t i = 0; i < n; i++) {
    bool dims = tile_has_dims(t, q[i].e);
    if (!dims) conditions(t, &q[i]);
    q[i].done = !dims || cuts_variable(t, &q[i]) || divides(t, &q[i]);
  }
  do
    while (!read_all(t, &all)) {}
  while (group(t));
  VEC_FREE(t->cx, &all);
  for (uint32_t i = 0; i < n; i++) {
    while (!q[i].done) {
      if (!tile_has_dims(t, q[i].e)) {
        conditions(t, &q[i]);
        q[i].done = true;
      } else if (cuts_form(t, &q[i]) || frees_residue(t, q, n, i))
        q[i].done = true;
      else if (!frees_variable(t, q, n, i))
        break;
    }
    if (!q[i].done) tile_inexact(t, "a constraint ties variables together in a way that no box has");
  }
}

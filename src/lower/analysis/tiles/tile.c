// The tile of a map: numbers are taken apart into digits in every way there is, and each combination of ways makes a
// box. Where boxes do not say exactly what is needed, points of one dimension of the tile are looked at one by one.
#include "lower/analysis/tiles/impl.h"

const kl_aff *tile_max(tiler *t, const kl_aff *a, const kl_aff *b) {
  return a && b ? kl_aff_max(t->p, a, b) : a ? a : b;
}
const kl_aff *tile_min(tiler *t, const kl_aff *a, const kl_aff *b) {
  return a && b ? kl_aff_min(t->p, a, b) : a ? a : b;
}
const kl_aff *tile_first(tiler *t, const tile_axis *a) {
  return tile_max(t, a->o, a->lo);
}
const kl_aff *tile_last(tiler *t, const tile_axis *a) {
  return tile_min(t, addc(t, add(t, a->o, a->n), -1), a->hi);
}

const kl_aff *tile_mod(tiler *t, int64_t c, const kl_aff *n) {
  return is_const(n) ? num(t, c % n->c) : sub(t, num(t, c), kl_aff_mul(t->p, n, kl_aff_floordiv(t->p, num(t, c), n)));
}

void tile_inexact(tiler *t, const char *why) {
  if (t->exact) t->why = why;
  t->exact = false;
}

void tile_guard(tiler *t, const kl_aff *e) {
  if (is_const(e) && e->c >= 0) return;
  for (size_t i = 0; i < t->guards.n; i++)
    if (t->guards.p[i].e == e) return;
  VEC_PUSH(t->cx, &t->guards, (kl_constraint){e, {0, INT64_MAX}});
}

void tile_guard_axis(tiler *t, const tile_axis *a) {
  const kl_aff *end = addc(t, add(t, a->o, a->n), -1);
  if (a->lo) tile_guard(t, sub(t, end, a->lo));
  if (a->hi) tile_guard(t, sub(t, a->hi, a->o));
  if (a->lo && a->hi) tile_guard(t, sub(t, a->hi, a->lo));
}

static bool same(const kl_constraint *a, const kl_constraint *b) {
  return a->e == b->e && a->in.lo == b->in.lo && a->in.hi == b->in.hi;
}

// Is each of the clause's among these? Then where it holds, one of them does.
static bool implies(const kl_tile_clause *a, const kl_constraint *any, uint32_t n) {
  for (uint32_t i = 0; i < a->n; i++) {
    uint32_t k = 0;
    while (k < n && !same(&a->any[i], &any[k])) k++;
    if (k == n) return false;
  }
  return true;
}

void tile_require(tiler *t, const kl_constraint *any, uint32_t n, const char *why) {
  kl_constraint left[4];
  uint32_t nleft = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (is_const(any[i].e)) {
      if (any[i].e->c >= any[i].in.lo && any[i].e->c <= any[i].in.hi) return;
      continue;
    }
    bool again = false;
    for (uint32_t k = 0; k < nleft; k++) again |= left[k].e == any[i].e && left[k].in.lo == any[i].in.lo;
    if (!again) left[nleft++] = any[i];
  }
  if (!nleft || t->hull) {
    tile_inexact(t, why);
    return;
  }
  for (size_t i = 0; i < t->clauses.n; i++)
    if (implies(&t->clauses.p[i], left, nleft)) return;
  VEC_PUSH(t->cx, &t->clauses, (kl_tile_clause){nleft, kl_arena_dup(t->arena, left, nleft * sizeof left[0]), why});
}

// --- variables ------------------------------------------------------------------------------------------------------

// A dim as it is tiled; what its bounds cut off.
static tile_axis tiled(tiler *t, uint32_t i, const kl_tile_grid *g) {
  kl_interval in = t->m->vars[KL_AFF_DIM][i].in;
  const kl_aff *size = g->sizes[i];
  int64_t extent = g->extents[i], points = in.hi - in.lo + 1;
  tile_axis a = {.most = points, .aligned = true};
  if (extent == 1 || (is_const(size) && size->c >= extent)) {
    a.o = num(t, in.lo), a.n = num(t, points), a.align = in.lo;
    return a;
  }
  if (points == 1) { // in one tile alone
    const kl_aff *begin = kl_aff_mul(t->p, kl_aff_dim(t->p, i), size);
    tile_guard(t, sub(t, num(t, in.lo), begin));
    tile_guard(t, addc(t, add(t, begin, size), -in.lo - 1));
    a.o = num(t, in.lo), a.n = num(t, 1), a.align = in.lo;
    return a;
  }
  a.o = kl_aff_mul(t->p, kl_aff_dim(t->p, i), size);
  a.n = size;
  a.align = is_const(size) ? size->c : 0;
  a.most = extent;
  if (in.lo > 0) a.lo = num(t, in.lo);
  if (in.hi < extent - 1 || !is_const(size) || extent % size->c) a.hi = num(t, in.hi);
  a.overhang = !a.lo && in.hi == extent - 1;
  a.uncut = tile_mod(t, in.hi + 1, size);
  if (in.lo > 0) a.uncut = add(t, a.uncut, tile_mod(t, in.lo, size));
  return a;
}

// Point k of what a dim's tile has.
static tile_axis one_point(tiler *t, const tile_axis *a, int64_t k) {
  tile_axis one = *a;
  one.o = addc(t, a->o, k);
  one.n = num(t, 1);
  one.aligned = false;
  tile_guard_axis(t, &one);
  return one;
}

static const tile_axis *axis_of(const tiler *t, const tile_use *u) {
  return &t->digits[u->number]->at[u->level];
}

// The same value in every tile?
static bool is_constant(const tile_axis *a) {
  return is_one(a->n) && is_const(a->o);
}

// Does a form's tile, of a size that is no number, begin at a multiple of its size and `align` more? Of several digits
// in a row it does where every one but the major is made of whole tiles.
static void align_form(tiler *t, const tile_form *f, tile_axis *a) {
  if (f->complex || f->div > 1) {
    a->aligned = false;
    return;
  }
  if (f->n == 1) {
    a->aligned &= f->use[0].coef == 1;
    return;
  }
  a->align = is_const(f->rest) ? gcd64(f->rest->c, 0) : 0;
  a->aligned = is_const(f->rest);
  for (uint32_t i = 0; i < f->n; i++) {
    int64_t c = f->use[i].coef, next = 0, off;
    const tile_axis *own = axis_of(t, &f->use[i]);
    if (is_constant(own)) {
      a->aligned &= !__builtin_mul_overflow(c, own->o->c, &off);
      a->align = gcd64(a->align, off);
      continue;
    }
    for (uint32_t k = 0; k < f->n; k++) {
      if (is_constant(axis_of(t, &f->use[k]))) continue;
      if (f->use[k].coef > c && (!next || f->use[k].coef < next)) next = f->use[k].coef;
      a->aligned &= k == i || f->use[k].coef != c; // those are no digits of one number
    }
    a->aligned &= own->aligned && c > 0 && next % c == 0;
    kl_constraint whole = {tile_mod(t, c > 0 ? next / c : 0, own->n), {0, 0}};
    if (next) tile_require(t, &whole, 1, "a row of a tile does not begin at its multiple");
  }
}

// The values of a number.
static bool values_of(tiler *t, const tile_number *y, tile_axis *out) {
  if (y->is_form) {
    tile_steps s = tile_sum(t, &t->form[y->from]);
    if (!s.a.o) return false;
    *out = s.a;
    if (!is_one(s.stride) && !is_one(s.a.n)) {
      kl_constraint one[2] = {{s.stride, {1, 1}}, {s.a.n, {1, 1}}};
      tile_require(t, one, 2, "the digits of a sum with gaps");
      if (is_const(s.stride)) { // all between: how many steps of a stride at least 1
        int64_t by = s.stride->c < 0 ? -s.stride->c : s.stride->c;
        if (s.stride->c < 0) out->o = kl_aff_addmul(t->p, s.a.o, addc(t, s.a.n, -1), s.stride->c);
        out->n = addc(t, mulc(t, addc(t, s.a.n, -1), by), 1);
      }
    }
    if (!is_const(s.a.n)) align_form(t, &t->form[y->from], out);
    return true;
  }
  tile_axis a = t->var[y->from];
  if (y->sign > 0) {
    out->o = add(t, a.o, y->shift);
    out->lo = a.lo ? add(t, a.lo, y->shift) : NULL;
    out->hi = a.hi ? add(t, a.hi, y->shift) : NULL;
    out->overhang = a.overhang;
  } else {
    out->o = sub(t, y->shift, addc(t, add(t, a.o, a.n), -1));
    out->lo = a.hi ? sub(t, y->shift, a.hi) : NULL;
    out->hi = a.lo ? sub(t, y->shift, a.lo) : NULL;
  }
  out->n = a.n;
  out->uncut = a.uncut;
  out->most = a.most;
  out->aligned = a.aligned && is_const(y->shift);
  int64_t shift = is_const(y->shift) ? y->shift->c : 0;
  if (y->sign < 0) { // it begins where the tile's next would end: shift + 1 - o - n
    if (__builtin_add_overflow(shift, 1, &shift)) out->aligned = false;
    if (is_const(a.n)) a.align = gcd64(a.align, a.n->c);
  }
  out->align = gcd64(a.align, shift);
  return true;
}

// --- boxes ----------------------------------------------------------------------------------------------------------

// A digit that several results use makes them depend on each other: a box has no way to say so, unless it is one value.
static void check_shared(tiler *t) {
  for (uint32_t i = 0; i < t->nnumbers; i++)
    for (uint32_t l = 0; t->number[i].live && l < t->number[i].nlevels; l++) {
      uint32_t uses = 0;
      for (uint32_t f = 0; f < t->nforms; f++)
        for (uint32_t k = 0; k < t->form[f].n && !t->form[f].complex; k++)
          uses += t->form[f].use[k].number == i && t->form[f].use[k].level == l;
      if (uses < 2) continue;
      kl_constraint one = {t->digits[i]->at[l].n, {1, 1}};
      tile_require(t, &one, 1, "results depend on each other");
    }
}

// Digits that nothing uses ask only that there is a value.
static void guard_unused(tiler *t) {
  for (uint32_t i = 0; i < t->nnumbers; i++) {
    const tile_number *y = &t->number[i];
    for (uint32_t l = 0; y->live && l < y->nlevels; l++) {
      const tile_axis *a = &t->digits[i]->at[l];
      if (!y->used[l] && (a->lo || a->hi)) tile_guard_axis(t, a);
    }
  }
}

static void emit(tiler *t) {
  uint32_t n = t->m->nresults;
  kl_tile_dim *dims = KL_NEW_N(t->arena, kl_tile_dim, n + 1);
  size_t before = t->guards.n;
  check_shared(t);
  guard_unused(t);
  for (uint32_t i = 0; i < t->nnumbers; i++)
    if (t->number[i].live && t->digits[i]->guard) tile_guard(t, t->digits[i]->guard);
  for (uint32_t r = 0; r < n; r++) {
    tile_steps s = tile_sum(t, &t->form[r]);
    if (!s.a.o) { // nothing is known: all of the array
      t->unknown |= !t->shape;
      s = (tile_steps){.a = {.o = num(t, 0), .n = num(t, t->shape ? t->shape[r] : 1)}, .stride = num(t, 1)};
    }
    dims[r] = (kl_tile_dim){s.a.o, s.a.n, s.stride, s.a.lo, s.a.hi ? addc(t, s.a.hi, 1) : NULL};
  }
  kl_tile_box box = {dims, (uint32_t)t->guards.n, NULL};
  if (t->guards.n) box.guards = kl_arena_dup(t->arena, t->guards.p, t->guards.n * sizeof t->guards.p[0]);
  VEC_PUSH(t->cx, &t->boxes, box);
  t->guards.n = before;
  t->full = t->full || ++t->made > TILE_MOST_MADE;
}

static void choose(tiler *t, uint32_t number) {
  while (number < t->nnumbers && !t->number[number].live) number++;
  if (t->boxes.n > KL_TILE_MOST_BOXES || t->full) return;
  if (number == t->nnumbers) {
    emit(t);
    return;
  }
  size_t before = t->guards.n;
  tile_axis a = {0};
  const tile_digits *ways;
  if (!values_of(t, &t->number[number], &a)) {
    tile_inexact(t, "a sum of a tile's dimensions is not known");
    a = (tile_axis){.o = num(t, 0), .n = num(t, INT64_MAX / 4)};
  }
  uint32_t n = tile_split(t, &t->number[number], &a, &ways);
  if (!n) t->full = true;
  for (uint32_t i = 0; i < n; i++) {
    t->digits[number] = &ways[i];
    choose(t, number + 1);
  }
  t->guards.n = before;
}

static void start(tiler *t) {
  t->boxes.n = t->clauses.n = 0;
  t->exact = true;
  t->why = "";
  t->full = false;
}

static bool known_sizes(const tiler *t) {
  for (uint32_t i = 0; i < t->nvars; i++)
    if (!is_const(t->var[i].n)) return false;
  return true;
}

// All boxes. Where they are too many, or need conditions on sizes that cannot hold, numbers and sums are taken as a
// whole.
static void make_boxes(tiler *t) {
  start(t);
  choose(t, 0);
  if (t->full || t->boxes.n > KL_TILE_MOST_BOXES || (!t->exact && !known_sizes(t))) {
    start(t);
    t->hull = true;
    choose(t, 0);
  }
}

// The same with one dim of few points looked at point by point: exact, or left.
static bool by_points(tiler *t, uint32_t var, uint32_t depth) {
  tile_axis whole = t->var[var];
  VEC(kl_tile_box) all = {0};
  bool exact = true;
  size_t before = t->guards.n;
  for (int64_t k = 0; k < whole.n->c && exact; k++) {
    t->var[var] = one_point(t, &whole, k);
    start(t);
    choose(t, 0);
    exact = t->exact && !t->full && all.n + t->boxes.n <= KL_TILE_MOST_BOXES;
    for (uint32_t v = var + 1; !exact && depth && v < t->nvars; v++)
      if (is_const(t->var[v].n) && t->var[v].n->c > 1 && t->var[v].n->c <= KL_TILE_MOST_POINTS)
        exact = by_points(t, v, depth - 1) && all.n + t->boxes.n <= KL_TILE_MOST_BOXES;
    for (size_t i = 0; i < t->boxes.n && exact; i++) VEC_PUSH(t->cx, &all, t->boxes.p[i]);
    t->guards.n = before;
  }
  t->var[var] = whole;
  t->boxes.n = 0;
  for (size_t i = 0; i < all.n && exact; i++) VEC_PUSH(t->cx, &t->boxes, all.p[i]);
  VEC_FREE(t->cx, &all);
  t->exact = exact;
  return exact;
}

static void try_points(tiler *t) {
  const char *why = t->why;
  VEC(kl_tile_box) kept = {0};
  for (size_t i = 0; i < t->boxes.n; i++) VEC_PUSH(t->cx, &kept, t->boxes.p[i]);
  bool exact = false, hull = t->hull;
  t->hull = false;
  for (uint32_t depth = 0; depth < 2 && !exact; depth++)
    for (int64_t n = 2; n <= KL_TILE_MOST_POINTS; n++) // of few points first
      for (uint32_t i = 0; i < t->nvars && !exact; i++)
        if (t->var[i].n->c == n) exact = by_points(t, i, depth);
  if (!exact) {
    start(t);
    for (size_t i = 0; i < kept.n; i++) VEC_PUSH(t->cx, &t->boxes, kept.p[i]);
    t->exact = false, t->why = why, t->hull = hull;
  }
  VEC_FREE(t->cx, &kept);
}

// --- the answer -----------------------------------------------------------------------------------------------------

typedef VEC(const kl_aff *) expressions;

static void list_box(tiler *t, const kl_tile_box *b, expressions *all) {
  for (uint32_t r = 0; r < t->m->nresults; r++) {
    const kl_tile_dim *d = &b->dims[r];
    const kl_aff *each[] = {d->offset, d->size, d->stride, d->lower ? d->lower : d->offset,
                            d->upper ? d->upper : d->offset};
    for (uint32_t i = 0; i < KL_COUNT(each); i++) VEC_PUSH(t->cx, all, each[i]);
  }
  for (uint32_t i = 0; i < b->nguards; i++) VEC_PUSH(t->cx, all, b->guards[i].e);
}

static size_t unlist_box(tiler *t, kl_tile_box *b, const kl_aff *const *e) {
  kl_tile_dim *dims = KL_NEW_N(t->arena, kl_tile_dim, t->m->nresults + 1);
  kl_constraint *guards = KL_NEW_N(t->arena, kl_constraint, b->nguards + 1);
  size_t at = 0;
  for (uint32_t r = 0; r < t->m->nresults; r++, at += 5) {
    const kl_tile_dim *d = &b->dims[r];
    dims[r] = (kl_tile_dim){e[at], e[at + 1], e[at + 2], d->lower ? e[at + 3] : NULL, d->upper ? e[at + 4] : NULL};
  }
  for (uint32_t i = 0; i < b->nguards; i++) guards[i] = (kl_constraint){e[at++], b->guards[i].in};
  b->dims = dims, b->guards = guards;
  return at;
}

// A map over numbers of tiles, sizes and runtime values, within their bounds.
static const kl_map *over_tiles(tiler *t, const kl_tile_grid *g, const kl_aff *const *results, uint32_t n) {
  kl_map_var dims[KL_TILE_MOST_VARIABLES], sizes[KL_TILE_MOST_VARIABLES];
  for (uint32_t i = 0; i < t->nvars; i++) {
    int64_t extent = g->extents[i] > 1 ? g->extents[i] : 1, size = is_const(g->sizes[i]) ? g->sizes[i]->c : 1;
    dims[i] = (kl_map_var){.in = {0, (extent - 1) / size}};
    sizes[i] = (kl_map_var){.in = {1, extent}};
  }
  kl_map m = {.state = KL_MAP_DEFINED, .nresults = n, .results = results};
  m.nvars[KL_AFF_DIM] = m.nvars[KL_AFF_RANGE] = t->nvars;
  m.nvars[KL_AFF_RT] = t->m->nvars[KL_AFF_RT];
  m.vars[KL_AFF_DIM] = dims, m.vars[KL_AFF_RANGE] = sizes, m.vars[KL_AFF_RT] = t->m->vars[KL_AFF_RT];
  return kl_map_make(t->p, &m);
}

// How far each cut stays from what it could cut, and each guard from failing: what never does is left out.
static void list_slack(tiler *t, const kl_tile_box *b, expressions *all) {
  for (uint32_t r = 0; r < t->m->nresults; r++) {
    const kl_tile_dim *d = &b->dims[r];
    const kl_aff *end = add(t, d->offset, kl_aff_mul(t->p, addc(t, d->size, -1), d->stride));
    bool down = is_const(d->stride) && d->stride->c < 0;
    const kl_aff *least = down ? end : d->offset, *most = down ? d->offset : end;
    const kl_aff *from = d->lower ? kl_aff_max(t->p, least, d->lower) : least;
    const kl_aff *to = d->upper ? addc(t, d->upper, -1) : most;
    VEC_PUSH(t->cx, all, d->lower ? sub(t, least, d->lower) : num(t, 0));
    VEC_PUSH(t->cx, all, d->upper ? sub(t, addc(t, d->upper, -1), most) : num(t, 0));
    VEC_PUSH(t->cx, all, d->lower || d->upper ? sub(t, to, from) : num(t, 0)); // below 0: no element
  }
  for (uint32_t i = 0; i < b->nguards; i++) VEC_PUSH(t->cx, all, b->guards[i].e);
}

// e >= 0 as an interval of an expression without constant, the first coefficient above 0.
static kl_constraint as_interval(tiler *t, const kl_aff *e) {
  int64_t c = e->c;
  kl_constraint g = {addc(t, e, c == INT64_MIN ? 0 : -c), {c == INT64_MIN ? 0 : -c, INT64_MAX}};
  if (c == INT64_MIN || !e->n || e->terms[0].coef > 0) return g;
  return (kl_constraint){mulc(t, g.e, -1), {INT64_MIN, c}};
}

static size_t without_slack(tiler *t, kl_tile_box *b, const kl_interval *slack, bool *never) {
  kl_tile_dim *dims = (kl_tile_dim *)b->dims;
  kl_constraint *guards = (kl_constraint *)b->guards;
  size_t at = 0;
  uint32_t n = 0;
  for (uint32_t r = 0; r < t->m->nresults; r++, at += 3) {
    if (slack[at].lo >= 0) dims[r].lower = NULL;
    if (slack[at + 1].lo >= 0) dims[r].upper = NULL;
    *never |= slack[at + 2].hi < 0;
  }
  for (uint32_t i = 0; i < b->nguards; i++, at++) {
    *never |= slack[at].hi < 0;
    if (slack[at].lo >= 0) continue;
    kl_constraint g = as_interval(t, guards[i].e);
    uint32_t k = 0;
    while (k < n && guards[k].e != g.e) k++;
    if (k == n) guards[n++] = g;
    if (g.in.lo > guards[k].in.lo) guards[k].in.lo = g.in.lo;
    if (g.in.hi < guards[k].in.hi) guards[k].in.hi = g.in.hi;
  }
  b->nguards = n;
  return at;
}

static bool any_error(const expressions *all) {
  for (size_t i = 0; i < all->n; i++)
    if (all->p[i]->error) return true;
  return false;
}

// Cuts that never cut where the guards hold; false where those never do.
static bool under_guards(tiler *t, const kl_tile_grid *g, kl_tile_box *b) {
  expressions all = {0};
  kl_tile_box dims = {b->dims, 0, NULL};
  bool holds = true, never = false;
  list_slack(t, &dims, &all);
  kl_map m = *over_tiles(t, g, all.p, (uint32_t)all.n);
  m.constraints = b->guards, m.nconstraints = b->nguards;
  const kl_map *where = any_error(&all) ? NULL : kl_map_simplify(t->p, kl_map_make(t->p, &m), 0);
  kl_interval *slack = KL_NEW_N(t->arena, kl_interval, all.n + 1);
  if (where && where->state == KL_MAP_EMPTY)
    holds = false;
  else if (where && kl_map_result_ranges(t->p, where, slack))
    without_slack(t, &dims, slack, &never);
  VEC_FREE(t->cx, &all);
  return holds && !never;
}

static bool simplify_boxes(tiler *t, const kl_tile_grid *g) {
  expressions all = {0};
  for (size_t i = 0; i < t->boxes.n; i++) list_box(t, &t->boxes.p[i], &all);
  bool fine = !any_error(&all);
  if (fine && all.n) {
    const kl_map *m = kl_map_simplify(t->p, over_tiles(t, g, all.p, (uint32_t)all.n), 0);
    const kl_aff *const *e = m->state == KL_MAP_DEFINED ? m->results : all.p;
    for (size_t i = 0; i < t->boxes.n; i++) e += unlist_box(t, &t->boxes.p[i], e);
    all.n = 0;
    for (size_t i = 0; i < t->boxes.n; i++) list_slack(t, &t->boxes.p[i], &all);
    kl_interval *slack = KL_NEW_N(t->arena, kl_interval, all.n + 1);
    fine = !any_error(&all);
    if (fine && all.n && !kl_map_result_ranges(t->p, over_tiles(t, g, all.p, (uint32_t)all.n), slack)) fine = false;
    size_t n = 0;
    for (size_t i = 0; i < t->boxes.n && fine; i++) {
      bool never = false;
      slack += without_slack(t, &t->boxes.p[i], slack, &never);
      if (!never && t->boxes.p[i].nguards) never = !under_guards(t, g, &t->boxes.p[i]);
      if (!never) t->boxes.p[n++] = t->boxes.p[i];
    }
    t->boxes.n = n;
  }
  VEC_FREE(t->cx, &all);
  return fine;
}

static kl_map_tile unknown(const char *why, uint32_t rank) {
  return (kl_map_tile){.state = KL_TILE_UNKNOWN, .why = why, .rank = rank};
}

static void answer(tiler *t, const kl_tile_grid *g, kl_map_tile *out) {
  for (uint32_t i = 0; i < t->nvars; i++) t->var[i] = tiled(t, i, g);
  tile_forms(t);
  for (uint32_t i = 0; i < t->nvars; i++) { // a tile that begins inside of its dim has points, unless more is cut off
    const tile_axis *v = &t->var[i];
    if ((v->lo || v->hi) && !v->overhang) tile_guard_axis(t, v);
  }
  bool exact = t->exact; // as far as constraints go
  const char *why = t->why;
  make_boxes(t);
  if (!t->exact && exact && known_sizes(t)) try_points(t);
  if (!exact) t->exact = false, t->why = why;
  if (t->full || t->boxes.n > KL_TILE_MOST_BOXES || t->unknown || !simplify_boxes(t, g)) {
    *out = unknown(t->full ? "a tile is too many boxes" : "a number leaves 64 bits", t->m->nresults);
    return;
  }
  *out = (kl_map_tile){.state = t->exact ? KL_TILE_EXACT : KL_TILE_COVERS, .why = t->why, .rank = t->m->nresults};
  out->nboxes = (uint32_t)t->boxes.n;
  out->nclauses = (uint32_t)t->clauses.n;
  out->boxes = VEC_FREEZE(t->cx, t->arena, &t->boxes);
  out->clauses = VEC_FREEZE(t->cx, t->arena, &t->clauses);
}

void kl_tile_of_map(kl_affs *p, const kl_map *m, const kl_tile_grid *grid, const int64_t *shape, kl_map_tile *out) {
  *out = unknown(m->why ? m->why : "nothing is known of the map", m->nresults);
  if (m->state == KL_MAP_UNDEFINED) return;
  if (m->state == KL_MAP_EMPTY) {
    *out = (kl_map_tile){.state = KL_TILE_EXACT, .why = "", .rank = m->nresults};
    return;
  }
  uint32_t nd = m->nvars[KL_AFF_DIM], nr = m->nvars[KL_AFF_RANGE];
  if (nd + nr > KL_TILE_MOST_VARIABLES || m->nresults > TILE_MOST_RESULTS) {
    out->why = "the map has too many variables or results";
    return;
  }
  int64_t extents[KL_TILE_MOST_VARIABLES];
  const kl_aff *sizes[KL_TILE_MOST_VARIABLES];
  uint32_t which[KL_TILE_MOST_VARIABLES];
  for (uint32_t i = 0; i < nd + nr; i++) {
    kl_interval in = i < nd ? m->vars[KL_AFF_DIM][i].in : m->vars[KL_AFF_RANGE][i - nd].in;
    extents[i] = i < nd ? grid->extents[i] : 1;
    sizes[i] = i < nd ? grid->sizes[i] : kl_aff_const(p, 1);
    if (i >= nd) which[i - nd] = i - nd;
    bool outside = i < nd && (in.lo < 0 || in.hi >= extents[i]);
    if (outside || in.hi >= INT64_MAX / 4 || in.lo <= INT64_MIN / 4) {
      out->why = outside ? "a dim is not within what is tiled" : "a variable's bounds are too wide";
      return;
    }
  }
  kl_tile_grid all = {nd + nr, extents, sizes};
  tiler *t = kl_alloc(kl_affs_context(p), sizeof *t);
  *t = (tiler){.cx = kl_affs_context(p), .p = p, .arena = kl_affs_arena(p), .shape = shape, .nvars = nd + nr};
  t->m = nr ? kl_map_ranges_to_dims(p, m, which, nr) : m;
  t->exact = true, t->why = "";
  answer(t, &all, out);
  if (shape) kl_tile_clip(p, out, shape);
  VEC_FREE(t->cx, &t->boxes);
  VEC_FREE(t->cx, &t->clauses);
  VEC_FREE(t->cx, &t->guards);
  kl_free(t->cx, t, sizeof *t);
}

void kl_tile_clip(kl_affs *p, kl_map_tile *t, const int64_t *shape) {
  if (t->state != KL_TILE_COVERS) return;
  kl_tile_box *boxes = KL_NEW_N(kl_affs_arena(p), kl_tile_box, t->nboxes + 1);
  for (uint32_t b = 0; b < t->nboxes; b++) {
    kl_tile_dim *dims = KL_NEW_N(kl_affs_arena(p), kl_tile_dim, t->rank + 1);
    for (uint32_t d = 0; d < t->rank; d++) {
      const kl_aff *size = t->boxes[b].dims[d].size;
      bool more = shape[d] >= 0 && kl_aff_is_const(size) && size->c > shape[d];
      kl_tile_dim all = {kl_aff_const(p, 0), kl_aff_const(p, more ? shape[d] : 0), kl_aff_const(p, 1), NULL, NULL};
      dims[d] = more ? all : t->boxes[b].dims[d];
    }
    boxes[b] = t->boxes[b];
    boxes[b].dims = dims;
  }
  t->boxes = boxes;
}

bool kl_tile_clauses_hold(kl_affs *p, const kl_map_tile *t, const int64_t *sizes, uint32_t n) {
  kl_point at = {{NULL, sizes, NULL}};
  for (uint32_t i = 0; i < t->nclauses; i++) {
    bool holds = false;
    for (uint32_t k = 0; k < t->clauses[i].n && !holds; k++) {
      const kl_constraint *c = &t->clauses[i].any[k];
      int64_t v;
      holds = kl_aff_eval(p, c->e, &at, &v) && v >= c->in.lo && v <= c->in.hi;
    }
    if (!holds) return false;
  }
  return true;
}

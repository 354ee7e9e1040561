// Loads of elements that lie across the vectors of memory: of neighbours, rows that begin anywhere.
//
// A thread's elements are V neighbours, and so many lie in each vector. Where they begin `shift` elements behind one,
// the lanes of a warp have vectors side by side, and each takes what it wants of its own and of the next lane's; the
// last lane, whose next is another warp's, loads that vector. So a warp asks for each sector once, and for one more.
//
// A shift may be the same everywhere, or the same in each warp, or each lane's own, as where rows are padded or lie
// side by side with others': then selects take the elements, by halves. Of lanes of several rows those at the end of
// one load the next vector, too; and who has elements of two rows loads them one by one.
//
// Of elements that lie evenly apart, as even and odd ones do, a thread loads the vectors that they lie in, and takes
// its own; no lane wants another's.

#include "lower/plan/shifted.h"

enum { VECTOR_BYTES = 16, WARP = 32, MOST_SHUFFLES = 8, MOST_ELEMENTS = 16, MOST_STRIDE = 4 };
// Of rows: the fewest lanes that one takes; the smallest part of it that is worth a shift, one in so many; and the most
// elements of a vector where lanes may load them one by one.
enum { LEAST_LANES = 32, LEAST_PART = 2, MOST_APART = 4, MOST_JUMPS = 4 };

// Where places do not go on evenly: floors of what grows with lane and run.
typedef struct jumps {
  uint32_t n;
  const kl_aff_atom *at[MOST_JUMPS];
  int sign; // of what they add to the place: all alike, so that they do not cancel
} jumps;

typedef struct shifted {
  kl_writer *w;
  uint32_t slot;
  const kl_slot_info *info;
  const kl_instr *from;
  uint32_t run, lane, n; // n: elements of a vector
  const kl_aff *vector;  // of the warp: number of the vector that its first element lies in
  const kl_aff *shift;   // elements of it before that one
  // Of lanes with shifts of their own, the same of each lane; guards, KL_NONE where nothing is asked.
  bool own;
  const kl_aff *ends; // 0: the next lane goes on with what this one has; more: it does not
  uint32_t wanted;    // of a lane's vector: somebody wants an element of it
  uint32_t apart;     // elements do not lie in two vectors
  // Elements beyond the end of a row: they lie as if they were `jump` further on; or, where `next_row` is no NULL, from
  // `next_shift` elements of that vector on.
  uint32_t beyond;
  int64_t jump;
  const kl_aff *next_row, *next_shift;
} shifted;

// A lane whose elements are of two rows, of which the first lacks `high` elements at its end and the next one `low` at
// its beginning: places there are `low + high` less than they would go on.
typedef struct seam {
  int64_t low, high, values; // values: of a whole row
  uint32_t guard;            // that says so
  bool within;               // lanes may want elements of both rows
  bool of_last;              // a lane's vectors are those of its last element's row, not of its first's
} seam;

static uint32_t only_var(kl_vars vars) {
  return vars && !(vars & (vars - 1)) ? (uint32_t)__builtin_ctz(vars) : KL_NONE;
}

static bool uses(const kl_aff *e, uint32_t var) {
  bool inside = false;
  return kl_aff_uses(e, var, &inside);
}

// The variable of neighbouring threads, of a body that has but one.
static uint32_t find_lane(const kl_body *b) {
  uint32_t lane = only_var(kl_bound(b, b->threads ? KL_BIND_THREAD : KL_BIND_LANE));
  return lane != KL_NONE && (b->threads || b->vars[lane].extent == WARP) ? lane : KL_NONE;
}

// Does e not fall where lane or run are more? *lanes: the least that it takes the former for a step.
static bool grows(const shifted *x, const kl_aff *e, int64_t k, int64_t *lanes) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    const kl_aff *alone = kl_aff_of(x->w->plan->affs, a);
    if (!uses(alone, x->lane) && !uses(alone, x->run)) continue;
    if (e->terms[i].coef < 0 || (a->kind != KL_AFF_DIM && a->kind != KL_AFF_FLOOR)) return false;
    if (a->kind == KL_AFF_FLOOR && !grows(x, a->arg[0], a->k, lanes)) return false;
    if (a->kind == KL_AFF_DIM && a->var == x->lane && k / e->terms[i].coef < *lanes) *lanes = k / e->terms[i].coef;
  }
  return true;
}

// Is e n * lane + run, or the same for both, but for jumps in long rows?
static bool find_jumps(const shifted *x, const kl_aff *e, jumps *j) {
  *j = (jumps){0};
  int64_t lanes = INT64_MAX;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    const kl_aff *alone = kl_aff_of(x->w->plan->affs, a);
    if (a->kind == KL_AFF_DIM || (!uses(alone, x->lane) && !uses(alone, x->run))) continue;
    int sign = e->terms[i].coef < 0 ? -1 : 1;
    if (a->kind != KL_AFF_FLOOR || !grows(x, a->arg[0], a->k, &lanes) || j->n == MOST_JUMPS) return false;
    if (j->n && sign != j->sign) j->sign = 0;
    if (!j->n) j->sign = sign;
    j->at[j->n++] = a;
  }
  return lanes >= LEAST_LANES;
}

static bool has_jump(const jumps *j, const kl_aff_atom *a) {
  uint32_t i = 0;
  while (i < j->n && j->at[i] != a) i++;
  return i < j->n;
}

static bool is_zero(const kl_aff *e) {
  return e->n == 0 && e->c == 0;
}

// The guard that e is more than 0.
static uint32_t some(kl_guards *g, uint32_t outer, const kl_aff *e, bool *never) {
  return kl_guard_and(g, outer, e, 1, kl_dom_interval(g->body->domain, e).hi, never);
}

static const kl_aff *with_var(const shifted *x, const kl_aff *e, uint32_t var, const kl_aff *value) {
  kl_affs *p = x->w->plan->affs;
  const kl_body *b = x->w->body;
  const kl_aff *to[KL_MAX_VARS];
  for (uint32_t i = 0; i < b->nvars; i++) to[i] = i == var ? value : kl_aff_dim(p, i);
  kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {b->nvars}}, &e, 1, &e);
  return e;
}

// Does e go on with place, but for jumps where the other has some?
static bool goes_on(const shifted *x, const kl_aff *e, const jumps *of_place, jumps *j) {
  if (kl_has_symbols(e) || !find_jumps(x, e, j)) return false;
  for (uint32_t i = 0; i < j->n; i++)
    if (!has_jump(of_place, j->at[i])) return false;
  return true;
}

static bool is_even(const shifted *x, const kl_aff *e) {
  return kl_aff_coef(e, x->lane) == x->n && kl_aff_coef(e, x->run) == 1;
}

static bool is_same(const shifted *x, const kl_aff *e) {
  return kl_aff_coef(e, x->lane) == 0 && kl_aff_coef(e, x->run) == 0;
}

// e, as of a thread's first element, or as if all went on to the last one, which it is of.
static const kl_aff *at_base(const shifted *x, const kl_aff *e, bool of_last) {
  kl_affs *p = x->w->plan->affs;
  int64_t last = of_last ? x->n - 1 : 0;
  e = with_var(x, e, x->run, kl_aff_const(p, last));
  return kl_aff_addc(p, e, -last);
}

// How much e, which is the same but for jumps, or else goes on evenly, changes at most where a row ends.
static int64_t change_at_end(const kl_aff *e, const jumps *j) {
  const int64_t most = (int64_t)1 << 58;
  int64_t sum = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    int64_t c = e->terms[i].coef;
    if (has_jump(j, e->terms[i].atom)) sum += c < -most || c > most ? most : c < 0 ? -c : c;
  }
  return sum;
}

// The guard for vectors of which a lane or the one before may want an element: where places go on evenly, so does what
// the guard asks, or it asks the same. At a seam it is asked of one of two rows: its own guard differs there by less
// than a vector from what the other row's elements want. What a guard asks otherwise is left out.
static uint32_t widened(const shifted *x, const jumps *of_place, uint32_t guard, const seam *at) {
  kl_writer *w = x->w;
  uint32_t out = KL_NONE;
  for (; guard != KL_NONE; guard = w->guards.v.p[guard].outer) {
    kl_guard from = w->guards.v.p[guard];
    bool even = is_even(x, from.expr), never;
    int64_t more = even ? x->n : 0;
    jumps j;
    if ((!even && !is_same(x, from.expr)) || !goes_on(x, from.expr, of_place, &j)) continue;
    if (at->within && guard != at->guard) more += change_at_end(from.expr, &j);
    if (from.lo < INT64_MIN + more || from.hi > INT64_MAX - more) continue;
    const kl_aff *e = at_base(x, from.expr, at->of_last);
    if (!even && at->of_last) e = kl_aff_addc(w->plan->affs, e, x->n - 1);
    uint32_t wider = kl_guard_and(&w->guards, out, e, from.lo - more, from.hi + more, &never);
    if (!never) out = wider;
  }
  return out;
}

// What rows lack of as many elements as make a whole one: a guard asks for the others, by their number in the row. Such
// a number takes as many values as it falls by where a row ends, so that it has the last one there, and the first
// behind.
static bool find_seam(const shifted *x, const jumps *of_place, const kl_aff *place, uint32_t guard, seam *out) {
  if (of_place->n != 1) return false;
  for (; guard != KL_NONE; guard = x->w->guards.v.p[guard].outer) {
    kl_guard g = x->w->guards.v.p[guard];
    kl_interval in = kl_dom_interval(x->w->body->domain, g.expr);
    int64_t fall = 0, jump = 0, values;
    jumps j;
    if (!is_even(x, g.expr) || !goes_on(x, g.expr, of_place, &j) || j.n != 1) continue;
    for (uint32_t i = 0; i < g.expr->n; i++)
      if (g.expr->terms[i].atom == of_place->at[0]) fall = g.expr->terms[i].coef;
    for (uint32_t i = 0; i < place->n; i++)
      if (place->terms[i].atom == of_place->at[0]) jump = place->terms[i].coef;
    if (__builtin_sub_overflow(in.hi, in.lo, &values) || values != -fall - 1) continue;
    if (g.lo < in.lo || g.hi > in.hi) continue;
    *out = (seam){.low = g.lo - in.lo, .high = in.hi - g.hi, .values = -fall, .guard = guard};
    if (out->low + out->high == -jump) return true;
  }
  return false;
}

// Elements that are less than a word, of which a vector has whole ones, slide in these.
static bool slides(const shifted *x) {
  uint32_t bits = kl_info(x->info->shape->dtype)->bits;
  return (bits == 8 || bits == 16) && x->n * bits % 32 == 0;
}

// Is there one jump, at most, among a lane's elements, which those of all rows of rows are with the shortest's?
static bool is_one_jump(const jumps *j) {
  const kl_aff_atom *least = j->at[0];
  for (uint32_t i = 1; i < j->n; i++)
    if (j->at[i]->k < least->k) least = j->at[i];
  for (uint32_t i = 0; i < j->n; i++)
    if (j->at[i]->arg[0] != least->arg[0] || j->at[i]->k % least->k) return false;
  return j->n > 0;
}

// Where a lane's elements of the next row lie.
static bool find_next_row(shifted *x, const kl_aff *place, const jumps *j) {
  kl_affs *p = x->w->plan->affs;
  kl_dom *domain = x->w->body->domain;
  const kl_aff *base = at_base(x, place, true);
  bool never;
  if (!slides(x) || !is_one_jump(j)) return false;
  x->next_row = kl_dom_simplify(domain, kl_aff_floordivc(p, base, x->n));
  x->next_shift = kl_dom_simplify(domain, kl_aff_modc(p, base, x->n));
  if (!kl_is_sound(x->next_row) || !kl_is_sound(x->next_shift)) return false;
  const kl_aff *over = kl_aff_sub(p, kl_aff_sub(p, place, at_base(x, place, false)), kl_aff_dim(p, x->run));
  x->beyond = some(&x->w->guards, KL_NONE, kl_aff_mulc(p, over, j->sign), &never);
  return !never;
}

// Elements that go on as n * lane + run but for jumps. A lane at a seam has those of the row before or behind, where it
// wants no others; or those of both in two vectors, from where one of them begins. What lies else, or behind the last
// whole vector of an array, is apart.
static bool find_own_shift(shifted *x, const kl_aff *place, uint32_t guard) {
  kl_affs *p = x->w->plan->affs;
  kl_guards *guards = &x->w->guards;
  kl_dom *domain = x->w->body->domain;
  const kl_aff *lane = kl_aff_dim(p, x->lane), *apart = kl_aff_const(p, 0);
  int64_t last = x->n - 1, whole = x->info->shape->count / x->n;
  jumps j;
  seam s = {0};
  bool never;
  if (!find_jumps(x, place, &j) || (j.n && !j.sign)) return false;
  bool known = find_seam(x, &j, place, guard, &s);
  if (known && s.values / LEAST_PART > s.values - s.low - s.high) return false;
  if (known && s.low < last) {
    s.within = s.high < last;
    s.of_last = !s.within || s.high > 1;
    known = !s.within || s.high <= 1 || s.low <= 1;
  }
  const kl_aff *base = at_base(x, place, s.of_last), *next = with_var(x, base, x->lane, kl_aff_addc(p, lane, 1));
  x->vector = kl_dom_simplify(domain, kl_aff_floordivc(p, base, x->n));
  x->shift = kl_dom_simplify(domain, kl_aff_modc(p, base, x->n));
  if (!kl_is_sound(x->vector) || !kl_is_sound(x->shift)) return false;
  const kl_aff *seam_at = kl_dom_simplify(domain, kl_aff_sub(p, at_base(x, place, true), at_base(x, place, false)));
  if (is_zero(x->shift) && is_zero(seam_at)) return false;
  if (!known) apart = kl_aff_mulc(p, seam_at, j.sign);
  kl_interval in = kl_dom_interval(domain, x->vector);
  bool partial = x->info->shape->count % x->n && in.hi + 1 >= whole;
  if (partial) {
    if ((!known && in.lo < -1) || whole == 0) return false;
    apart = kl_aff_add(p, apart, kl_aff_floordivc(p, kl_aff_addc(p, x->vector, 1), whole));
  }
  x->ends = kl_aff_mulc(p, kl_aff_addc(p, kl_aff_sub(p, next, base), -(int64_t)x->n), j.sign);
  if (!x->w->body->threads) x->ends = kl_aff_add(p, x->ends, kl_aff_floordivc(p, lane, WARP - 1));
  if (!kl_is_sound(apart) || !kl_is_sound(x->ends)) return false;
  x->apart = some(guards, KL_NONE, apart, &never);
  if (never) x->apart = KL_NONE;
  if (x->apart != KL_NONE && x->n > MOST_APART && (partial || !find_next_row(x, place, &j))) return false;
  if (known && s.within) {
    x->jump = s.of_last ? s.low + s.high : -(s.low + s.high);
    const kl_aff *over = kl_aff_sub(p, kl_aff_sub(p, place, base), kl_aff_dim(p, x->run));
    x->beyond = some(guards, KL_NONE, kl_aff_mulc(p, over, s.of_last ? 1 : -1), &never);
    if (never) x->beyond = KL_NONE;
  }
  x->wanted = widened(x, &j, guard, &s);
  return x->own = true;
}

// Are the values of `run` as many elements as make one access? Sets n.
static bool is_vector(shifted *x) {
  int64_t n = x->w->body->vars[x->run].extent, bits = kl_info(x->info->shape->dtype)->bits;
  if (n < 2 || n > MOST_ELEMENTS || n & (n - 1) || bits < 8 || n * bits > VECTOR_BYTES * 8) return false;
  x->n = (uint32_t)n;
  return true;
}

// Is the place n * lane + run, and the same for a warp beside that? Or, with jumps, for a lane?
static bool find_shift(shifted *x, const kl_aff *place, uint32_t guard) {
  const kl_body *b = x->w->body;
  kl_affs *p = x->w->plan->affs;
  x->lane = find_lane(b);
  if (x->lane == KL_NONE) return false;
  kl_vars regs = kl_vars_of(b, place) & kl_bound(b, KL_BIND_REG);
  for (uint32_t v = b->nvars; v-- > 0;)
    if (kl_has_var(regs, v) && kl_aff_coef(place, v) == 1) x->run = v;
  if (x->run == KL_NONE) return false;
  if (!is_vector(x) || kl_aff_coef(place, x->lane) != x->n) return false;
  const kl_aff *first = kl_aff_addmul(p, place, kl_aff_dim(p, x->lane), -(int64_t)x->n);
  first = kl_aff_sub(p, first, kl_aff_dim(p, x->run));
  if (!kl_is_sound(first)) return false;
  bool even = !uses(first, x->run) && !uses(first, x->lane);
  if (b->threads && even) x->w->would_shift |= kl_aff_content(first) % x->n || first->c % x->n;
  if (!even && find_own_shift(x, place, guard)) x->w->would_shift |= b->threads;
  if (b->threads || !even) return !b->threads && x->own;
  x->vector = kl_dom_simplify(b->domain, kl_aff_floordivc(p, first, x->n));
  x->shift = kl_dom_simplify(b->domain, kl_aff_modc(p, first, x->n));
  return kl_is_sound(x->vector) && kl_is_sound(x->shift) && !is_zero(x->shift);
}

// --- vectors --------------------------------------------------------------------------------------------------------

// An element of a value, or what a lane in the ring has of it, once for all who want it here.
static uint32_t once(kl_writer *w, kl_step_kind kind, uint32_t value, uint32_t var, uint32_t distance) {
  for (uint32_t i = (uint32_t)w->steps.n; i-- > value + 1;) {
    const kl_step *s = &w->steps.p[i];
    if (s->kind != kind || s->operands[0] != value || s->var != var || s->distance != distance) continue;
    if (kl_scope_is_open(w, w->written.p[i].scope)) return i;
  }
  return kind == KL_STEP_TAKE ? kl_write_take(w, value, var, distance) : kl_write_rotate(w, value, distance);
}

// The place of vector `number`; *guard: also that there is one, where the array is whole vectors, or lanes that want
// what lies behind are apart.
static bool place_of(shifted *x, const kl_aff *number, const kl_aff **place, uint32_t *guard) {
  const kl_body *b = x->w->body;
  kl_affs *p = x->w->plan->affs;
  int64_t all = x->info->shape->count, last = all / x->n - 1;
  bool never;
  number = kl_dom_simplify(b->domain, number);
  *place = kl_dom_simplify(b->domain, kl_aff_addmul(p, kl_aff_dim(p, x->run), number, x->n));
  kl_interval in = kl_dom_interval(b->domain, number);
  if (!kl_is_sound(*place) || (all % x->n && !x->own && (in.lo < 0 || in.hi > last))) return false;
  *guard = kl_guard_and(&x->w->guards, *guard, number, 0, last, &never);
  return !never;
}

static uint32_t load(const shifted *x, const kl_aff *place, uint32_t guard) {
  kl_writer *w = x->w;
  w->nshifted++;
  w->guards.spares = true;
  uint32_t value = kl_write_load(w, x->slot, x->info, place, guard, x->from);
  w->guards.spares = false;
  return value;
}

// What a thread may take elements of: `own`, and the next lane's own or that of the one before. Where the neighbour is
// another warp's, it is loaded: the vector `edge`, or where the last one of an array may be no whole one, KL_NONE,
// element by element.
typedef struct vectors {
  uint32_t own, edge, ring; // ring: lanes from here to the neighbour's
  const kl_aff *number;     // of the edge
  uint32_t inside;          // guard: the neighbour is of this warp
} vectors;

static bool load_vectors(shifted *x, bool before, vectors *out) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  const kl_aff *lane = kl_aff_dim(p, x->lane), *first = before ? kl_aff_addc(p, x->vector, 1) : x->vector, *place;
  uint32_t guard = KL_NONE;
  bool never;
  if (!place_of(x, kl_aff_add(p, first, lane), &place, &guard)) return false;
  out->own = load(x, place, guard);
  out->number = before ? x->vector : kl_aff_addc(p, first, WARP);
  guard = KL_NONE;
  out->edge = place_of(x, out->number, &place, &guard) ? load(x, place, guard) : KL_NONE;
  out->ring = before ? WARP - 1 : 1;
  out->inside = kl_guard_and(&w->guards, KL_NONE, lane, before, WARP - 1 - !before, &never);
  return true;
}

// The same where each lane has a shift of its own.
static bool load_own_vectors(shifted *x, vectors *out) {
  kl_writer *w = x->w;
  const kl_aff *place;
  uint32_t guard = x->wanted;
  bool never;
  if (!place_of(x, x->vector, &place, &guard)) return false;
  *out = (vectors){.own = load(x, place, guard), .edge = KL_NONE};
  if (is_zero(x->shift)) return true;
  out->number = kl_aff_addc(w->plan->affs, x->vector, 1);
  guard = some(&w->guards, x->wanted, x->ends, &never);
  if (never || !place_of(x, out->number, &place, &guard)) return false;
  out->edge = load(x, place, guard);
  out->ring = 1;
  out->inside = kl_guard_and(&w->guards, KL_NONE, x->ends, 0, 0, &never);
  return true;
}

static uint32_t own_element(shifted *x, const vectors *v, uint32_t i) {
  return once(x->w, KL_STEP_TAKE, v->own, x->run, i);
}

static uint32_t edge_element(shifted *x, const vectors *v, uint32_t i) {
  kl_writer *w = x->w;
  bool never;
  if (v->edge != KL_NONE) return once(w, KL_STEP_TAKE, v->edge, x->run, i);
  const kl_aff *place = kl_aff_addc(w->plan->affs, kl_aff_mulc(w->plan->affs, v->number, x->n), i);
  place = kl_dom_simplify(w->body->domain, place);
  uint32_t guard = kl_guard_and(&w->guards, KL_NONE, place, 0, x->info->shape->count - 1, &never);
  return never ? own_element(x, v, i) : load(x, place, guard);
}

static uint32_t neighbours_element(shifted *x, const vectors *v, uint32_t i) {
  uint32_t other = once(x->w, KL_STEP_ROTATE, own_element(x, v, i), 0, v->ring);
  return kl_write_choose(x->w, v->inside, other, edge_element(x, v, i));
}

// --- elements -------------------------------------------------------------------------------------------------------

// One value of elements: the i-th where the variable is i.
static uint32_t join(shifted *x, const uint32_t *elements) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  uint32_t guards[MOST_ELEMENTS];
  bool never;
  for (uint32_t i = 0; i + 1 < x->n; i++)
    guards[i] = kl_guard_and(&w->guards, KL_NONE, kl_aff_dim(p, x->run), i, i, &never);
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_CHOOSE,
                                     .dtype = x->info->shape->dtype,
                                     .instr = x->from,
                                     .noperands = x->n,
                                     .operands = kl_arena_dup(w->arena, elements, x->n * sizeof *elements),
                                     .guards = kl_arena_dup(w->arena, guards, (x->n - 1) * sizeof *guards)});
}

// Fewer elements come from the neighbour if the own vector is the one that has more of them.
static bool take_fixed(shifted *x, uint32_t *elements) {
  uint32_t shift = (uint32_t)x->shift->c;
  bool before = 2 * shift > x->n && !x->own;
  vectors v;
  if ((before ? x->n - shift : shift) > MOST_SHUFFLES) return false;
  if (!(x->own ? load_own_vectors(x, &v) : load_vectors(x, before, &v))) return false;
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t at = (i + shift) % x->n;
    elements[i] = (i + shift >= x->n) == before ? own_element(x, &v, at) : neighbours_element(x, &v, at);
  }
  return true;
}

// The vector that a lane takes elements of beside its own.
static uint32_t next_vector(shifted *x, const vectors *v) {
  uint32_t elements[MOST_ELEMENTS], edge = v->edge;
  for (uint32_t i = 0; edge == KL_NONE && i < x->n; i++) elements[i] = edge_element(x, v, i);
  if (edge == KL_NONE) edge = join(x, elements);
  return kl_write_choose(x->w, v->inside, once(x->w, KL_STEP_ROTATE, v->own, 0, v->ring), edge);
}

static bool slide_any(shifted *x, uint32_t *value) {
  vectors v;
  if (!(x->own ? load_own_vectors(x, &v) : load_vectors(x, false, &v))) return false;
  *value = kl_write_slide(x->w, v.own, next_vector(x, &v), x->run, x->shift);
  return true;
}

// All elements of both vectors, moved down by halves of n, as the digits of the shift say.
static bool take_any(shifted *x, uint32_t *elements) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  uint32_t all[2 * MOST_ELEMENTS], n = x->n;
  bool never;
  vectors v;
  if (n - 1 > MOST_SHUFFLES || !(x->own ? load_own_vectors(x, &v) : load_vectors(x, false, &v))) return false;
  for (uint32_t i = 0; i + 1 < 2 * n; i++) all[i] = i < n ? own_element(x, &v, i) : neighbours_element(x, &v, i - n);
  for (uint32_t by = n / 2; by > 0; by /= 2) {
    const kl_aff *digit = kl_aff_modc(p, kl_aff_floordivc(p, x->shift, by), 2);
    uint32_t guard = kl_guard_and(&w->guards, KL_NONE, digit, 1, 1, &never);
    for (uint32_t i = 0; i + 1 < n + by; i++) all[i] = never ? all[i] : kl_write_choose(w, guard, all[i + by], all[i]);
  }
  memcpy(elements, all, n * sizeof *elements);
  return true;
}

// The variable along which elements lie a few apart, and how many; false: none, or others are neighbours already.
static bool find_stride(shifted *x, const kl_aff *place, int64_t *stride) {
  kl_vars regs = kl_vars_of(x->w->body, place) & kl_bound(x->w->body, KL_BIND_REG);
  *stride = 0;
  for (uint32_t v = 0; v < x->w->body->nvars; v++) {
    int64_t coef = kl_has_var(regs, v) ? kl_aff_coef(place, v) : 0;
    if (coef == 1 || coef == -1) return false;
    if (coef < 2 || coef > MOST_STRIDE) continue;
    x->run = v;
    *stride = coef;
  }
  return *stride && is_vector(x) && *stride < x->n && x->info->align * 8 >= x->n * kl_info(x->info->shape->dtype)->bits;
}

// Elements a few apart, from fewer vectors than they are themselves. A guard that is not the same for all of them says
// nothing of what lies between.
static bool take_apart(shifted *x, const kl_aff *place, uint32_t guard, uint32_t *elements) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  uint32_t guards[MOST_STRIDE + 1], vector = KL_NONE;
  const kl_aff *places[MOST_STRIDE + 1];
  int64_t stride, n, there = -1;
  if (!find_stride(x, place, &stride) || kl_has_var(kl_vars_asked(&w->guards, guard), x->run)) return false;
  const kl_aff *first = kl_aff_addmul(p, place, kl_aff_dim(p, x->run), -stride);
  if (!kl_is_sound(first) || uses(first, x->run) || kl_aff_content(first) % (n = x->n)) return false;
  int64_t c = (first->c % n + n) % n;
  x->vector = kl_dom_simplify(w->body->domain, kl_aff_floordivc(p, first, n));
  for (int64_t v = 0; v <= (c + (n - 1) * stride) / n; v++) {
    guards[v] = guard;
    if (!place_of(x, kl_aff_addc(p, x->vector, v), &places[v], &guards[v])) return false;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = c + i * stride, v = at / n;
    if (v != there) vector = load(x, places[v], guards[v]);
    there = v;
    elements[i] = once(w, KL_STEP_TAKE, vector, x->run, (uint32_t)(at % n));
  }
  return true;
}

// Elements beyond the seam are others' that a thread has in two vectors.
static uint32_t or_beyond(shifted *x, uint32_t value) {
  uint32_t other[MOST_ELEMENTS];
  if (slides(x)) {
    const kl_aff *by = kl_aff_const(x->w->plan->affs, (x->jump % x->n + x->n) % x->n);
    return kl_write_choose(x->w, x->beyond, kl_write_slide(x->w, value, value, x->run, by), value);
  }
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t at = (int64_t)i + x->jump;
    other[i] = once(x->w, KL_STEP_TAKE, value, x->run, (uint32_t)(at < 0 || at >= x->n ? i : at));
  }
  return kl_write_choose(x->w, x->beyond, join(x, other), value);
}

// Lanes that have elements of the next row load its vectors, too, which no neighbour has all of.
static bool or_next_row(shifted *x, uint32_t *value) {
  kl_writer *w = x->w;
  const kl_aff *place;
  uint32_t guard = x->apart, behind = x->apart;
  if (!place_of(x, x->next_row, &place, &guard)) return false;
  uint32_t there = load(x, place, guard);
  if (!is_zero(x->next_shift)) {
    if (!place_of(x, kl_aff_addc(w->plan->affs, x->next_row, 1), &place, &behind)) return false;
    there = kl_write_slide(w, there, load(x, place, behind), x->run, x->next_shift);
  }
  *value = kl_write_choose(w, x->beyond, there, *value);
  return true;
}

// Lanes that have elements apart load them one by one.
static uint32_t or_apart(shifted *x, const kl_aff *place, uint32_t guard, uint32_t value) {
  kl_writer *w = x->w;
  const kl_guard *g = &w->guards.v.p[x->apart];
  const kl_aff *e = g->expr;
  int64_t lo = g->lo, hi = g->hi;
  bool never;
  uint32_t both = kl_guard_and(&w->guards, guard, e, lo, hi, &never);
  w->shifts = false;
  w->guards.spares = true;
  uint32_t alone = kl_write_load(w, x->slot, x->info, place, both, x->from);
  w->guards.spares = false;
  w->shifts = true;
  return kl_write_choose(w, x->apart, alone, value);
}

bool kl_load_shifted(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *place, uint32_t guard,
                     const kl_instr *from, uint32_t *value) {
  shifted x = {.w = w,
               .slot = slot,
               .info = info,
               .from = from,
               .run = KL_NONE,
               .wanted = KL_NONE,
               .apart = KL_NONE,
               .beyond = KL_NONE};
  uint32_t elements[MOST_ELEMENTS];
  if (info->kind != KL_SLOT_IN || info->by_value || info->row || kl_has_symbols(place)) return false;
  if (take_apart(&x, place, guard, elements)) return *value = join(&x, elements), true;
  x.run = KL_NONE;
  if (!find_shift(&x, place, guard)) return false;
  if (x.shift->n && slides(&x)) {
    if (!slide_any(&x, value)) return false;
  } else {
    if (!(x.shift->n == 0 ? take_fixed(&x, elements) : take_any(&x, elements))) return false;
    *value = join(&x, elements);
  }
  if (x.next_row) return or_next_row(&x, value);
  if (x.beyond != KL_NONE) *value = or_beyond(&x, *value);
  if (x.apart != KL_NONE) *value = or_apart(&x, place, guard, *value);
  return true;
}

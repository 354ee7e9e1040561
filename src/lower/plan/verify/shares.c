// Launches of which each block of one kernel does its share.
//
// All threads of a launch, block by block, stand in one row, which is cut into shares of one length: block c of the
// kernel does share c of every member. Blocks know nothing of each other. So of memory that one member stores in and
// another touches each element must be one block's: whoever names element e is of block floor(e / each), or of block
// floor((e mod row) / each). That is proved of every access, of all that it touches where its guard holds.
//
// Neither depends on how many blocks there are; and where all shares become t times as long, `each` does. So what holds
// of members holds with one more behind them, but that proofs find less of what is true than there is: they are done
// anew where shares have changed.
//
// Shares are found by how fast accesses go: if a share of one launch moves its place in an array by as many elements as
// a share of the other, they go side by side. What is found so is a guess, of which the proof says whether it is right.

#include "lower/plan/rounds.h"
#include "lower/plan/verify/check.h"

// An access to memory that some member stores in and some other touches.
typedef struct touch {
  uint32_t member, array;
  bool stores;
  unsigned bits; // of an element
  const kl_part *part;
  const kl_body *body;
  const kl_place *place;
  const kl_aff *element;
  uint32_t guard;
} touch;

typedef struct shares {
  kl_ctx *cx;
  kl_arena *arena;
  const kl_rounds *r;
  bool *shared;         // by array: whose accesses are looked at
  uint32_t of, first;   // the member that is walked over; its first touch
  const uint32_t *args; // by slot of its plan: an argument of the launch + 1; 0: none
  VEC(touch) touches;
} shares;

// Accesses that are looked at, at most.
enum { MOST_TOUCHES = 512 };

// --- what a share may be --------------------------------------------------------------------------------------------

static bool has_lanes(const kl_body *b) { // of a warp, that look at each other or have numbers of their own
  if (b->blocks) return true;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    kl_step_kind k = b->steps[i].kind;
    if (k == KL_STEP_SHUFFLE || k == KL_STEP_ROTATE || k == KL_STEP_EXCHANGE || k == KL_STEP_ANY) return true;
  }
  return false;
}

uint32_t kl_share_unit(const kl_plan *p, const kl_plan_launch *l) {
  if (l->shared_bytes || kl_launch_waits(p, l)) return l->block;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++)
    if (has_lanes(&p->parts[i].main) || has_lanes(&p->parts[i].tail)) return 32;
  return 1;
}

// --- accesses -------------------------------------------------------------------------------------------------------

static uint32_t array_of(const shares *x, const kl_member *m, uint32_t arg) {
  return x->r->same[m->args[arg]];
}

static bool stores_in(const kl_member *m, uint32_t slot) {
  return kl_launch_stores(m->plan, (uint32_t)(m->launch - m->plan->launches), slot);
}

// Arrays that members first .. end - 1 touch, and those that they store in: marked with `bit` and its double.
static void mark(const shares *x, uint32_t first, uint32_t end, uint8_t bit, uint8_t *marks) {
  for (uint32_t i = first; i < end; i++) {
    const kl_member *m = &x->r->members[i];
    for (uint32_t a = 0; a < m->launch->nargs; a++)
      marks[array_of(x, m, a)] |= (uint8_t)(stores_in(m, m->launch->args[a]) ? 3 * bit : bit);
  }
}

// Those that member `last` touches as well as one before it, and one of them stores in; false: there are none.
static bool find_shared(shares *x, uint32_t last) {
  uint8_t *marks = KL_NEW_N(x->arena, uint8_t, x->r->nargs + 1);
  bool any = false;
  mark(x, 0, last, 1, marks);
  mark(x, last, last + 1, 4, marks);
  for (uint32_t i = 0; i < x->r->nargs; i++) {
    if (!(marks[i] & 1 && marks[i] & 4 && marks[i] & 10)) continue;
    x->shared[i] = true;
    any = true;
  }
  return any;
}

static bool same_place(const kl_place *a, const kl_place *b) {
  return a == b || (a && b && a->kind == b->kind && a->index == b->index && same_place(a->up, b->up));
}

static void add_touch(shares *x, const kl_part *part, const kl_body *b, const kl_access *a, uint32_t guard, bool stores,
                      const kl_place *place) {
  const kl_member *m = &x->r->members[x->of];
  const kl_slot_info *s = &m->plan->slots[a->slot];
  if (!x->args[a->slot] || !x->shared[array_of(x, m, x->args[a->slot] - 1)]) return;
  touch t = {
      x->of, array_of(x, m, x->args[a->slot] - 1), stores, kl_info(s->shape->dtype)->bits, part, b, place, a->element,
      guard};
  for (size_t i = x->first; i < x->touches.n; i++) {
    const touch *o = &x->touches.p[i];
    if (o->body == b && o->element == t.element && o->guard == guard && o->stores == stores && o->array == t.array &&
        same_place(o->place, place))
      return;
  }
  VEC_PUSH(x->cx, &x->touches, t);
}

static void walk(shares *x, const kl_part *part, const kl_body *b, const kl_seq *s, const kl_place *up) {
  for (uint32_t i = 0; i < s->n && x->touches.n <= MOST_TOUCHES; i++) {
    const kl_node *n = &s->nodes[i];
    if (n->kind == KL_NODE_STEP && b->steps[n->index].kind == KL_STEP_LOAD)
      add_touch(x, part, b, &b->steps[n->index].access, b->steps[n->index].access.guard, false, up);
    if (n->kind == KL_NODE_STORE || n->kind == KL_NODE_UPDATE)
      add_touch(x, part, b, &b->stores[n->index].access, b->stores[n->index].keep, true, up);
    if (!n->nest) continue;
    kl_place *own = KL_NEW(x->arena, kl_place);
    *own = (kl_place){.up = up, .kind = n->kind, .index = n->index};
    walk(x, part, b, &n->nest->inside, own);
  }
}

static void collect(shares *x, uint32_t member) {
  const kl_member *m = &x->r->members[member];
  const kl_plan_launch *l = m->launch;
  uint32_t *args = KL_NEW_N(x->arena, uint32_t, m->plan->nslots + 1);
  bool any = false;
  for (uint32_t i = 0; i < l->nargs; i++) {
    args[l->args[i]] = i + 1;
    any |= x->shared[array_of(x, m, i)];
  }
  if (!any) return;
  x->of = member;
  x->args = args;
  x->first = (uint32_t)x->touches.n;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    const kl_part *part = &m->plan->parts[i];
    walk(x, part, &part->main, &part->main.root, NULL);
    walk(x, part, &part->tail, &part->tail.root, NULL);
  }
}

// False: elements of some array are not all whole bytes, as many of them.
static bool collect_all(shares *x) {
  for (uint32_t i = 0; i < x->r->nmembers; i++) collect(x, i);
  if (x->touches.n > MOST_TOUCHES) return false;
  unsigned *bits = KL_NEW_N(x->arena, unsigned, x->r->nargs + 1);
  for (size_t i = 0; i < x->touches.n; i++) {
    const touch *t = &x->touches.p[i];
    if (t->bits < 8 || (bits[t->array] && bits[t->array] != t->bits)) return false;
    bits[t->array] = t->bits;
  }
  return true;
}

// --- how fast accesses go -------------------------------------------------------------------------------------------

typedef struct ratio {
  int64_t num, den; // den 0: not known
} ratio;

static kl_wide gcd(kl_wide a, kl_wide b) {
  while (b) {
    kl_wide t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

static ratio reduced(kl_wide num, kl_wide den) {
  kl_wide g = gcd(num, den);
  if (!g) return (ratio){0, 0};
  num /= g;
  den /= g;
  if (den < 0) num = -num, den = -den;
  bool fits = num >= -INT64_MAX && num <= INT64_MAX && den <= INT64_MAX;
  return fits ? (ratio){(int64_t)num, (int64_t)den} : (ratio){0, 0};
}

static ratio slope(const kl_aff *e, uint32_t var);

static ratio slope_of_atom(const kl_aff_atom *a, uint32_t var) {
  if (a->kind == KL_AFF_DIM) return (ratio){a->var == var, 1};
  if (a->kind == KL_AFF_FLOOR) {
    ratio r = slope(a->arg[0], var);
    return reduced(r.num, (kl_wide)r.den * a->k);
  }
  bool uses = false;
  for (uint32_t i = 0; i < a->n; i++) {
    ratio r = slope(a->arg[i], var);
    uses |= r.num || !r.den;
  }
  return (ratio){0, !uses};
}

// By how much e grows with the variable, on average.
static ratio slope(const kl_aff *e, uint32_t var) {
  ratio sum = {0, 1};
  for (uint32_t i = 0; i < e->n && sum.den; i++) {
    ratio r = slope_of_atom(e->terms[i].atom, var);
    if (!r.den) return r;
    kl_wide num = (kl_wide)r.num * e->terms[i].coef;
    if (num > INT64_MAX || num < -INT64_MAX) return (ratio){0, 0};
    sum = reduced(num * sum.den + (kl_wide)sum.num * r.den, (kl_wide)sum.den * r.den);
  }
  return sum;
}

// Variables that number what shares are made of, the fastest first, with the threads that one more of each moves on.
typedef struct numbering {
  uint32_t n, var[KL_MAX_VARS];
  int64_t threads[KL_MAX_VARS];
} numbering;

static void add_digits(const kl_body *b, kl_binding binding, int64_t threads, numbering *out) {
  for (uint32_t v = b->nvars; v-- > 0;) {
    if (b->vars[v].binding != binding) continue;
    out->var[out->n] = v;
    out->threads[out->n++] = threads;
    threads *= b->vars[v].extent;
  }
}

static numbering numbering_of(const kl_member *m, const kl_body *b) {
  numbering x = {0};
  if (b->threads) add_digits(b, KL_BIND_THREAD, 1, &x);
  if (!b->threads && m->unit < m->launch->block) add_digits(b, KL_BIND_WARP, 32, &x);
  if (!b->threads) add_digits(b, KL_BIND_BLOCK, m->launch->block, &x);
  return x;
}

// A touch moves by `elements` with each `threads`, of which shares are made.
typedef struct pace {
  ratio elements;
  int64_t threads;
} pace;

// By each variable that moves it, the fastest first; how many there are. Threads of one warp may be anywhere in a
// block, so that blocks go together where warps do not.
enum { MOST_PACES = 3 };
static uint32_t paces_of(const shares *x, const touch *t, pace *out) {
  numbering d = numbering_of(&x->r->members[t->member], t->body);
  uint32_t n = 0;
  for (uint32_t i = 0; i < d.n && n < MOST_PACES; i++) {
    ratio r = slope(t->element, d.var[i]);
    if (!r.den || r.num < 0) break;
    if (t->body->vars[d.var[i]].extent > 1 && r.num) out[n++] = (pace){r, d.threads[i]};
  }
  return n;
}

// --- the proof ------------------------------------------------------------------------------------------------------

// Element e is block floor(e / each)'s, with a `row` that of e mod row.
typedef struct owner {
  int64_t each, row;
} owner;

// The number of a touch's share is floor(number / per).
static const kl_aff *number_of(const shares *x, const touch *t, int64_t *per) {
  const kl_member *m = &x->r->members[t->member];
  kl_affs *p = m->plan->affs;
  numbering d = numbering_of(m, t->body);
  int64_t unit = t->body->threads ? 1 : m->share % m->launch->block == 0 ? m->launch->block : 32;
  int64_t first = t->part->first_block + (t->body == &t->part->tail ? t->part->main_blocks : 0);
  const kl_aff *e = kl_aff_const(p, first * (m->launch->block / unit));
  for (uint32_t i = 0; i < d.n; i++)
    if (d.threads[i] % unit == 0) e = kl_aff_addmul(p, e, kl_aff_dim(p, d.var[i]), d.threads[i] / unit);
  *per = m->share / unit;
  return e;
}

static int64_t remainder_of(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r < 0 ? r + b : r;
}

static int64_t block_of(owner o, int64_t element) {
  int64_t e = o.row ? remainder_of(element, o.row) : element;
  return (e - remainder_of(e, o.each)) / o.each;
}

// Is it wrong at one of some points at the ends?
static bool is_refuted(kl_check *k, const touch *t, owner o, const kl_aff *number, int64_t per,
                       const kl_conditions *c) {
  const kl_body *b = k->body;
  kl_affs *p = k->p->affs;
  if (kl_has_symbols(t->element)) return false;
  for (uint32_t i = 0; i < c->n; i++)
    if (kl_has_symbols(c->c[i].e)) return false;
  for (uint32_t n = 0; n < 2 * b->nvars + 2; n++) {
    int64_t at[KL_MAX_VARS] = {0}, value, number_at;
    for (uint32_t v = 0; v < b->nvars; v++) at[v] = n % 2 != (n / 2 == v) ? b->vars[v].extent - 1 : 0;
    const kl_point point = {.at = {[KL_AFF_DIM] = at}};
    bool holds = true;
    for (uint32_t i = 0; i < c->n && holds; i++)
      holds = kl_aff_eval(p, c->c[i].e, &point, &value) && value >= c->c[i].lo && value <= c->c[i].hi;
    if (!holds || !kl_aff_eval(p, t->element, &point, &value) || !kl_aff_eval(p, number, &point, &number_at)) continue;
    if (block_of(o, value) != number_at / per) return true;
  }
  return false;
}

// Of a number u of which `per` are a share, `each` is per * one: if an element lies among those of u by ones, it lies
// among those of the share.
static bool is_own(shares *x, const touch *t, owner o) {
  kl_plan *plan = x->r->members[t->member].plan;
  kl_affs *p = plan->affs;
  kl_check k = {.cx = x->cx,
                .p = plan,
                .quiet = true,
                .arena = x->arena,
                .part = (uint32_t)(t->part - plan->parts),
                .launch = x->r->members[t->member].launch,
                .body = t->body};
  kl_conditions c;
  kl_conditions_at(&k, t->place, t->guard, &c);
  int64_t per;
  const kl_aff *number = number_of(x, t, &per), *e = t->element;
  if (is_refuted(&k, t, o, number, per, &c)) return false;
  if (o.row) e = kl_aff_modc(p, e, o.row);
  const kl_aff *apart = kl_aff_addmul(p, e, number, -(o.each / per));
  if (o.each % per == 0 && kl_is_within(&k, kl_dom_simplify(t->body->domain, apart), 0, o.each / per - 1, &c))
    return true;
  if (per == 1) return false;
  apart = kl_aff_addmul(p, e, kl_aff_floordivc(p, number, per), -o.each);
  return kl_is_within(&k, kl_dom_simplify(t->body->domain, apart), 0, o.each - 1, &c);
}

static bool all_own(shares *x, uint32_t array, owner o) {
  for (size_t i = 0; i < x->touches.n; i++)
    if (x->touches.p[i].array == array && !is_own(x, &x->touches.p[i], o)) return false;
  return true;
}

// How far an access moves with so many threads; 0: by no whole number of elements.
static int64_t moves_by(pace s, kl_wide threads) {
  ratio r = reduced(threads * s.elements.num, (kl_wide)s.elements.den * s.threads);
  return r.den == 1 ? r.num : 0;
}

// By what one of its accesses moves with a share, and with all threads of the launch.
static bool has_owner(shares *x, uint32_t array) {
  owner tried = {0, 0};
  for (size_t i = 0; i < x->touches.n; i++) {
    const touch *t = &x->touches.p[i];
    const kl_member *m = &x->r->members[t->member];
    pace s[MOST_PACES];
    uint32_t n = t->array == array ? paces_of(x, t, s) : 0;
    for (uint32_t k = 0; k < n; k++) {
      owner o = {moves_by(s[k], m->share), moves_by(s[k], (kl_wide)m->launch->grid * m->launch->block)};
      if (!o.each || (o.each == tried.each && o.row == tried.row)) continue;
      if (o.each != tried.each && all_own(x, array, (owner){o.each, 0})) return true;
      if (o.row > o.each && all_own(x, array, o)) return true;
      tried = o;
    }
  }
  return false;
}

static bool all_have_owners(shares *x) {
  for (uint32_t i = 0; i < x->r->nargs && x->r->grid > 1; i++)
    if (x->shared[i] && !has_owner(x, i)) return false;
  return true;
}

static void begin(shares *x, kl_ctx *cx, kl_arena *arena, const kl_rounds *r) {
  kl_arena_init(arena, cx);
  *x = (shares){.cx = cx, .arena = arena, .r = r, .shared = KL_NEW_N(arena, bool, r->nargs + 1)};
}

static bool end(shares *x, bool result) {
  VEC_FREE(x->cx, &x->touches);
  kl_arena_free(x->arena);
  return result;
}

// One array after the other: of each there may be as many accesses.
bool kl_shares_hold(kl_ctx *cx, const kl_rounds *r) {
  kl_arena arena;
  shares x;
  bool hold = true;
  begin(&x, cx, &arena, r);
  for (uint32_t i = 1; i < r->nmembers; i++) find_shared(&x, i);
  bool *all = x.shared;
  x.shared = KL_NEW_N(&arena, bool, r->nargs + 1);
  for (uint32_t i = 0; i < r->nargs && r->grid > 1 && hold; i++) {
    if (!all[i]) continue;
    x.touches.n = 0;
    x.shared[i] = true;
    hold = collect_all(&x) && has_owner(&x, i);
    x.shared[i] = false;
  }
  return end(&x, hold);
}

// --- finding them ---------------------------------------------------------------------------------------------------

// Threads of the last member for a share, and how many times as long those of the others become.
typedef struct way {
  int64_t share, times;
} way;

// So that member `m`, which moves as p says, and `o`, which has a share and moves as q says, move alike.
static bool match(const kl_member *m, pace p, const kl_member *o, pace q, way *out) {
  int64_t unit = m->unit, step = (int64_t)(p.threads * unit / gcd(p.threads, unit));
  // The other's are whole steps of its own, too.
  ratio whole = reduced(q.threads, o->share);
  kl_wide base = (kl_wide)o->share * whole.num;
  ratio moves = reduced(base * q.elements.num, (kl_wide)q.elements.den * q.threads);
  ratio one = reduced((kl_wide)p.elements.num * (step / p.threads), p.elements.den);
  if (!moves.den || !one.den) return false;
  ratio n = reduced((kl_wide)moves.num * one.den, (kl_wide)moves.den * one.num);
  kl_wide times = (kl_wide)whole.num * n.den, share = (kl_wide)n.num * step;
  if (!n.den || times > INT32_MAX || share > INT32_MAX) return false;
  *out = (way){(int64_t)share, (int64_t)times};
  return true;
}

int64_t kl_shares_grid(const kl_rounds *r) {
  int64_t most = 0;
  for (uint32_t i = 0; i < r->nmembers; i++) {
    const kl_member *m = &r->members[i];
    int64_t n = (m->launch->grid * m->launch->block + m->share - 1) / m->share;
    if (n > most) most = n;
  }
  return most;
}

// Ways to go side by side that are tried.
enum { MOST_WAYS = 6 };
typedef struct ways {
  uint32_t n;
  way w[MOST_WAYS];
} ways;

static void add_way(const kl_rounds *r, way w, ways *out) {
  for (uint32_t i = 0; i < out->n; i++)
    if (out->w[i].share == w.share && out->w[i].times == w.times) return;
  for (uint32_t i = 0; i + 1 < r->nmembers; i++)
    if (r->members[i].share > INT32_MAX / w.times) return;
  if (out->n < MOST_WAYS) out->w[out->n++] = w;
}

// As touch `a` of the last member and `b` of one before say.
static void find_ways(const shares *x, const touch *a, const touch *b, ways *out) {
  pace p[MOST_PACES], q[MOST_PACES];
  uint32_t n = paces_of(x, a, p), m = paces_of(x, b, q);
  way w;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < m; k++)
      if (match(&x->r->members[a->member], p[i], &x->r->members[b->member], q[k], &w)) add_way(x->r, w, out);
}

// Does one block all of the first n members?
static bool are_one_blocks(const kl_rounds *r, uint32_t n) {
  bool one = true;
  for (uint32_t i = 0; i < n; i++)
    one &= r->members[i].share >= r->members[i].launch->grid * r->members[i].launch->block;
  return one;
}

// Of those before the last nothing is new, but where their shares are no more as they were, or were one block's.
static bool try_way(shares *x, kl_rounds *r, way w) {
  uint32_t last = r->nmembers - 1;
  bool anew = w.times > 1 || are_one_blocks(r, last);
  for (uint32_t i = 0; i < last; i++) r->members[i].share *= w.times;
  r->members[last].share = w.share;
  r->grid = kl_shares_grid(r);
  if (all_have_owners(x) && (!anew || kl_shares_hold(x->cx, r))) return true;
  for (uint32_t i = 0; i < last; i++) r->members[i].share /= w.times;
  return false;
}

static bool try_ways(shares *x, kl_rounds *r) {
  uint32_t last = r->nmembers - 1;
  ways all = {0};
  for (size_t i = 0; i < x->touches.n; i++)
    for (size_t k = 0; k < i && x->touches.p[i].member == last; k++) {
      const touch *a = &x->touches.p[i], *b = &x->touches.p[k];
      if (b->member != last && a->array == b->array && (a->stores || b->stores)) find_ways(x, a, b, &all);
    }
  for (uint32_t i = 0; i < all.n; i++)
    if (try_way(x, r, all.w[i])) return true;
  return false;
}

bool kl_share_with(kl_ctx *cx, kl_rounds *r) {
  kl_arena arena;
  shares x;
  int64_t grid = r->grid;
  begin(&x, cx, &arena, r);
  bool with = find_shared(&x, r->nmembers - 1) && collect_all(&x) && try_ways(&x, r);
  if (!with) r->grid = grid;
  return end(&x, with);
}

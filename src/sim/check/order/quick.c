// Accesses that are seen at a glance to race with nothing, as nearly all are: plain ones, to cells that only plain
// accesses have touched, mostly two of one lane each. Of lanes at one step and with the same knowledge, those that lie
// side by side are seen row by row, and those that read the same bytes together.

#include "sim/check/order/race.h"

// An access that a cell has seen, as the next one sees it.
typedef struct before {
  bool known; // it happened before
  bool reads; // and only reads
} before;

// What the cell has seen from now on. False: two of the three may race, or there are too many; it stays as it was.
static inline __attribute__((always_inline)) bool settle(const kl_ordering *r, kl_cell *c, uint64_t now, bool writes,
                                                         before a, before b) {
  const unsigned block = r->site_bits + r->step_bits + 5 + r->warp_bits;
  if (writes && !(a.known && b.known)) return false;
  if ((!a.known && !a.reads) || (!b.known && !b.reads)) return false;
  if (writes) {
    *c = (kl_cell){.a = now};
  } else if (a.reads && a.known) {
    *c = (kl_cell){.a = now, .b = b.known && b.reads ? 0 : c->b};
  } else if (c->a >> r->site_bits == now >> r->site_bits) { // what it has written itself in this step
  } else if (!c->b || (b.reads && b.known)) {
    c->b = now;
  } else if (!a.reads || !b.reads || c->a >> block == c->b >> block) {
    return false;
  }
  return true;
}

// What lane `me` sees of one access. False: it is no plain one.
static inline __attribute__((always_inline)) bool see(const kl_ordering *r, const kl_ticks *t, unsigned me,
                                                      uint64_t now, uint64_t v, before *out) {
  const unsigned shift = r->site_bits + r->step_bits;
  const uint64_t who = v >> shift;
  const kl_site *s = kl_site_of(r, v);
  if (s->strong || s->unfinished) return false;
  uint32_t step = (uint32_t)(v >> r->site_bits & (((uint64_t)1 << r->step_bits) - 1));
  out->reads = s->does == KL_READS;
  out->known =
      who == now >> shift || kl_knows(t, me, who >> 5 >> r->warp_bits,
                                      (uint32_t)(who >> 5 & (((uint64_t)1 << r->warp_bits) - 1)), who & 31, step);
  return true;
}

// --- many readers -------------------------------------------------------------------------------------------------

// Who accesses a cell, or a row for which one cell stands.
typedef struct visitor {
  uint32_t lanes; // in the cell, or in the row's first one
  uint32_t span;  // in all of the row
  int shift;      // of the row's page; -1: it is a cell
} visitor;

static uint32_t lanes_from(unsigned first, unsigned n) {
  return (uint32_t)(((UINT64_C(1) << n) - 1) << first);
}
// Lanes that access a row in order, each 1 << each of its cells.
static unsigned lanes_of(unsigned each) {
  return each < KL_ROW_BITS ? KL_ROW >> each : 1;
}

static uint32_t span_of(const kl_ordering *r, const kl_seen *x, int shift) {
  if (shift < 0) return x->lanes;
  return lanes_from((unsigned)__builtin_ctz(x->lanes), lanes_of(r->sites.p[x->site].width - (unsigned)shift));
}

static void add(const kl_actor *y, const visitor *v, kl_seen *seen, uint32_t *n) {
  for (uint32_t k = 0; v->shift < 0 && k < *n; k++)
    if (seen[k].warp == y->warp && seen[k].step == y->step && seen[k].site == y->site) {
      seen[k].lanes |= v->lanes;
      return;
    }
  kl_make_room(y, seen, n);
  seen[(*n)++] = (kl_seen){.warp = y->warp, .step = y->step, .lanes = v->lanes, .site = y->site};
}

// Of lanes of the actor's that are alike, a cell that any number of accesses have touched. What it has seen goes as
// race.c has it. False: they may race, or not all are plain; the cell stays as it was.
static __attribute__((noinline)) bool visit_many(const kl_actor *y, const visitor *v, kl_cell *c) {
  kl_ordering *r = y->r;
  kl_seen seen[KL_MOST_SEEN + 1];
  const unsigned me = (unsigned)__builtin_ctz(v->lanes);
  const bool writes = y->s->does & KL_WRITES, alone = v->shift >= 0 || !(v->lanes & (v->lanes - 1));
  uint32_t n = kl_cell_get(r, c, seen), kept = 0;
  bool is_there = false;
  for (uint32_t k = 0; k < n; k++) {
    const kl_seen x = seen[k];
    const kl_site *s = &r->sites.p[x.site];
    if (s->strong || s->unfinished || x.cut) return false;
    const uint32_t span = span_of(r, &x, v->shift);
    const uint32_t own = x.warp == y->warp && (v->shift < 0 || span == v->span) ? v->span : 0;
    const uint32_t rank = (uint32_t)(x.warp & (((uint64_t)1 << r->warp_bits) - 1));
    const uint32_t known = kl_known_lanes(y->t, me, x.warp >> r->warp_bits, rank, span, x.step);
    if ((writes || s->does & KL_WRITES) && span & ~(known | (alone ? own : 0))) return false;
    if (writes) continue;
    if (own && x.step == y->step && !(v->span & ~span)) {
      is_there = true;
    } else if (s->does == KL_READS) {
      const uint32_t left = span & ~(known | own);
      if (!left) continue;
      if (v->shift < 0) seen[k].lanes = left;
    }
    seen[kept++] = seen[k];
  }
  n = kept;
  if (!is_there && (writes || !kl_is_read_enough(y, seen, &n))) add(y, v, seen, &n);
  kl_cell_put(r, c, seen, n);
  return true;
}

// --- one cell -----------------------------------------------------------------------------------------------------

// Of one lane.
static inline __attribute__((always_inline)) bool visit_cell(const kl_actor *y, unsigned me, uint64_t now, bool writes,
                                                             kl_cell *c) {
  before a = {true, true}, b = {true, true};
  if (!c->a) {
    c->a = now;
    return true;
  }
  if (!(c->a & KL_MANY)) {
    if (!see(y->r, y->t, me, now, c->a, &a) || (c->b && !see(y->r, y->t, me, now, c->b, &b))) return false;
    if (settle(y->r, c, now, writes, a, b)) return true;
  }
  return visit_many(y, &(visitor){1u << me, 1u << me, -1}, c);
}

// What lanes of one step and the same knowledge see at once of cells that one plain access of their block has touched,
// which happened before.
typedef struct glance {
  kl_glance ask;
  uint32_t (*at)(const kl_glance *, const uint64_t *); // NULL: not prepared, as most accesses need none
  unsigned first;                                      // of the lanes
  bool alike, writes;
} glance;

static void prepare(const kl_actor *y, glance *g) {
  const kl_ordering *r = y->r;
  const kl_block_past *mine = g->alike ? y->t->mine[g->first] : NULL; // others glance at empty cells only
  g->ask = (kl_glance){.first = y->t->block << r->warp_bits,
                       .least = mine ? mine->least : 0,
                       .sites = r->plain,
                       .first_sites = r->plain_reads,
                       .site_mask = ((uint64_t)1 << r->site_bits) - 1,
                       .step_mask = ((uint64_t)1 << r->step_bits) - 1,
                       .of_step = r->site_bits,
                       .of_warp = r->site_bits + r->step_bits + 5};
  for (uint32_t k = 0; mine && k < r->warps; k++) g->ask.warps |= (uint64_t)(mine->warp[k] == NULL) << k;
  if (mine && y->t->own[g->first]) g->ask.warps &= ~((uint64_t)1 << y->t->rank);
  g->at = y->w->memory->glance;
}

// Of KL_GLANCE cells, those where it is seen that nothing races, and those that remember what comes in place of the
// first access.
typedef struct seen_cells {
  uint32_t clear, anew;
} seen_cells;

static inline seen_cells glance_at(const kl_actor *y, glance *g, const kl_cell c[KL_GLANCE]) {
  if (!g->at) prepare(y, g);
  const uint32_t all = (1u << KL_GLANCE) - 1, m = g->at(&g->ask, &c->a);
  return (seen_cells){m & all, g->writes ? all : m >> KL_GLANCE};
}

static inline void remember_at(kl_cell *c, uint64_t now, bool anew) {
  *c = anew ? (kl_cell){.a = now} : (kl_cell){c->a, now};
}

bool kl_visit_cell(const kl_actor *y, kl_cell *c) {
  unsigned me = (unsigned)__builtin_ctz(y->lanes);
  return visit_cell(y, me, kl_pack(y->r, y->warp, me, y->step, y->site), y->s->does & KL_WRITES, c);
}

// --- lanes side by side -------------------------------------------------------------------------------------------

// Lanes that access cells of a row in order, from `now`, that of its first cell, on: each 1 << each of them.
typedef struct abreast {
  uint64_t now;
  unsigned first, each;
} abreast;

static uint64_t behind(const kl_ordering *r, const abreast *x, unsigned cell) {
  return x->now + ((uint64_t)(cell >> x->each) << (r->site_bits + r->step_bits));
}

static inline __attribute__((always_inline)) void remember_row(const kl_ordering *r, kl_cell *c, unsigned n,
                                                               const abreast *x, bool anew) {
  const uint64_t lane = (uint64_t)1 << (r->site_bits + r->step_bits);
  if (x->each == 0)
    for (unsigned k = 0; k < n; k++) remember_at(&c[k], x->now + k * lane, anew);
  else
    for (unsigned k = 0; k < n; k++) remember_at(&c[k], behind(r, x, k), anew);
}

// Of the cells of a row n from number `at` on, each by itself: how many are done with.
static unsigned visit_cells(const kl_actor *y, glance *g, kl_cell *row, unsigned at, unsigned n, const abreast *x) {
  const seen_cells seen = glance_at(y, g, row);
  const uint32_t these = (uint32_t)(((UINT64_C(1) << n) - 1) << at);
  kl_cell *c = &row[at];
  if (!(these & ~seen.clear) && (!(these & ~seen.anew) || !(these & seen.anew))) {
    if (these & seen.anew)
      remember_row(y->r, c, n, x, true);
    else
      remember_row(y->r, c, n, x, false);
    return n;
  }
  for (unsigned k = 0; k < n; k++) {
    const uint64_t now = behind(y->r, x, k);
    if (seen.clear >> (at + k) & 1)
      remember_at(&c[k], now, seen.anew >> (at + k) & 1);
    else if (!visit_cell(y, x->first + (k >> x->each), now, g->writes, &c[k]))
      return k;
  }
  return n;
}

// What the lanes see of the row: what not all of them know counts as not known. False: it is no plain access.
static bool see_all(const kl_actor *y, unsigned shift, const abreast *x, uint64_t v, before *out) {
  const kl_ordering *r = y->r;
  const kl_site *s = kl_site_of(r, v);
  const unsigned each = s->width - shift;
  const uint64_t who = v >> (r->site_bits + r->step_bits), me = x->now >> (r->site_bits + r->step_bits);
  uint32_t step = (uint32_t)(v >> r->site_bits & (((uint64_t)1 << r->step_bits) - 1));
  uint32_t rank = (uint32_t)(who >> 5 & (((uint64_t)1 << r->warp_bits) - 1));
  const uint32_t all = lanes_from(who & 31, lanes_of(each));
  if (s->strong || s->unfinished) return false;
  out->reads = s->does == KL_READS;
  out->known = (who == me && each == x->each) ||
               kl_known_lanes(y->t, x->first, who >> 5 >> r->warp_bits, rank, all, step) == all;
  return true;
}

// A whole row for which one cell stands.
static bool visit_all(const kl_actor *y, kl_cell *c, unsigned shift, const abreast *x) {
  before a, b = {true, true};
  if (!c->a) {
    c->a = x->now;
    return true;
  }
  if (!(c->a & KL_MANY)) {
    if (!see_all(y, shift, x, c->a, &a) || (c->b && !see_all(y, shift, x, c->b, &b))) return false;
    if (settle(y->r, c, x->now, y->s->does & KL_WRITES, a, b)) return true;
  }
  return visit_many(y, &(visitor){1u << x->first, lanes_from(x->first, lanes_of(x->each)), (int)shift}, c);
}

// Cells `at` to at + n - 1 of a page, in one row: how many are done with.
static unsigned visit_row(const kl_actor *y, glance *g, kl_page *page, uint32_t at, unsigned n, const abreast *x) {
  kl_row *row = kl_row_of(y->r, page, at);
  if (n == KL_ROW && !kl_is_apart(row) && visit_all(y, &row->all, page->shift, x)) return n;
  if (!kl_is_apart(row) && !kl_cells_at(y->r, page, at)) return 0;
  const unsigned done = visit_cells(y, g, row->cells, at % KL_ROW, n, x);
  if (done == KL_ROW && g->writes) kl_row_set(y->r, row, (kl_cell){.a = x->now});
  return done;
}

// Lanes from `first` on whose bytes lie side by side, as far as they lie in the page: how many are done with.
static unsigned visit_stretch(const kl_actor *y, glance *g, kl_page *page, unsigned first, unsigned lanes,
                              uint64_t now) {
  const unsigned each = y->s->width - page->shift, of_lane = y->r->site_bits + y->r->step_bits;
  const uint32_t begin = (uint32_t)(y->p->address[first] % KL_PAGE_BYTES >> page->shift);
  const uint32_t most = ((uint32_t)KL_PAGE_BYTES >> page->shift) - begin, all = lanes << each;
  const uint32_t end = begin + (all < most ? all : most);
  for (uint32_t at = begin, n; at < end; at += n) {
    const unsigned lane = (at - begin) >> each;
    const abreast x = {now + ((uint64_t)lane << of_lane), first + lane, each};
    n = KL_ROW - at % KL_ROW < end - at ? KL_ROW - at % KL_ROW : end - at;
    const unsigned done = visit_row(y, g, page, at, n, &x);
    if (done < n) return (at + done - begin) >> each;
  }
  return (end - begin) >> each;
}

// --- one access ---------------------------------------------------------------------------------------------------

// Of lanes at the same bytes; but of one that writes.
static bool visit_together(const kl_actor *y, kl_page *page, uint32_t lanes) {
  const visitor v = {lanes, lanes, -1};
  uint32_t at = (uint32_t)(y->p->address[__builtin_ctz(lanes)] % KL_PAGE_BYTES >> page->shift);
  for (uint32_t end = at + (y->bytes >> page->shift); at < end; at++) {
    kl_cell *c = kl_cells_at(y->r, page, at);
    if (!c || !visit_many(y, &v, c)) return false;
  }
  return true;
}

// A page that is mostly there, or NULL.
static inline kl_page *seen_page(const kl_actor *y, uint64_t number) {
  if (y->m->where != KL_AT_SHARED) return kl_recent_page(y->r, number);
  return number < y->ob->nshared ? y->ob->shared[number] : NULL;
}

// The same, if its cells are narrow enough, as mostly.
static kl_page *page_of(const kl_actor *y, unsigned lane) {
  kl_page *p = seen_page(y, y->p->address[lane] >> KL_PAGE_BITS);
  return p && p->shift <= y->s->width ? p : kl_race_spot_of(y, lane).page;
}

static void use(kl_ticks *t, uint32_t lanes) {
  if (lanes == KL_ALL_LANES)
    memcpy(t->used, t->step, sizeof t->used);
  else
    KL_EACH_LANE(i, lanes) t->used[i] = t->step[i];
}

// Lanes of those left at the same address as the lowest of them.
static uint32_t lanes_at(const kl_places *p, uint32_t left) {
  const uint64_t at = p->address[__builtin_ctz(left)];
  uint32_t same = 0;
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(p->address[i] == at) << i;
  return same & left;
}

// Where the lanes of an access begin.
typedef struct way {
  kl_page *page;
  uint64_t number;  // of the page
  uint64_t nothing; // what is packed of the warp and the site
} way;

// Goes to a lane's page. False: it takes more.
static inline bool go_to(const kl_actor *y, glance *g, way *to, unsigned lane) {
  const uint64_t number = y->p->address[lane] >> KL_PAGE_BITS;
  if (to->page && number == to->number) return true;
  to->page = page_of(y, lane);
  to->number = number;
  return to->page && !(g->writes && to->page->channels);
}

static inline uint64_t pack_at(const kl_actor *y, const way *to, unsigned lane) {
  const kl_ordering *r = y->r;
  return to->nothing | (uint64_t)lane << (r->site_bits + r->step_bits) | (uint64_t)y->t->step[lane] << r->site_bits;
}

// Lanes that are alike, as long as each has one cell, which nobody has touched: it remembers them. Which ones are left.
// `all`: none is missing, as the compiler knows.
static inline __attribute__((always_inline)) uint32_t visit_fresh(const kl_actor *y, const glance *g, const way *to,
                                                                  uint32_t lanes, bool all) {
  const uint64_t *address = y->p->address, lane = (uint64_t)1 << (y->r->site_bits + y->r->step_bits);
  const unsigned shift = y->s->width;
  const kl_row *rows = NULL;
  kl_page *page = NULL;
  uint64_t now = pack_at(y, to, g->first) - g->first * lane, number = UINT64_MAX;
  uint32_t apart = 0;
  for (unsigned i = 0; i < KL_LANES; i++, now += lane) {
    if (!all && !(lanes >> i & 1)) continue;
    const uint32_t left = lanes & KL_ALL_LANES << i;
    if (address[i] >> KL_PAGE_BITS != number) {
      number = address[i] >> KL_PAGE_BITS;
      page = seen_page(y, number);
      if (!page || page->shift != shift || (g->writes && page->channels)) return left;
      rows = page->rows;
      apart = page->age + 1;
    }
    const uint32_t at = (uint32_t)(address[i] % KL_PAGE_BYTES) >> shift;
    const kl_row *row = &rows[at / KL_ROW];
    kl_cell *c = row->state == apart ? &row->cells[at % KL_ROW] : kl_cells_at(y->r, page, at);
    if (!c || c->a) return left;
    c->a = now;
  }
  return 0;
}

// The cells of some lanes, and what they have seen: of each lane's the first one.
typedef struct lane_cells {
  uint32_t lanes;
  unsigned shift; // of their pages
  kl_cell *at[KL_LANES];
  kl_cell were[2 * KL_GLANCE];
} lane_cells;

// Finds the cells of lanes, by rising number, as far as their pages have cells of one size.
static void find_cells(kl_actor *y, glance *g, way *to, uint32_t lanes, lane_cells *out) {
  const uint64_t *address = y->p->address;
  const kl_row *rows = NULL;
  uint64_t number = UINT64_MAX;
  uint32_t left = lanes, apart = 0;
  unsigned shift = 0;
  for (; left; left &= left - 1) {
    const unsigned i = (unsigned)__builtin_ctz(left);
    if (address[i] >> KL_PAGE_BITS != number) {
      if (!go_to(y, g, to, i) || (rows && to->page->shift != shift)) break;
      rows = to->page->rows;
      number = to->number;
      shift = to->page->shift;
      apart = to->page->age + 1;
    }
    const uint32_t at = (uint32_t)(address[i] % KL_PAGE_BYTES) >> shift;
    const kl_row *row = &rows[at / KL_ROW];
    if (row->state == apart)
      out->at[i] = &row->cells[at % KL_ROW];
    else if (!(out->at[i] = kl_cells_at(y->r, to->page, at)))
      break;
    out->were[i] = *out->at[i];
  }
  out->shift = shift;
  out->lanes = lanes & ~left;
  if (out->lanes != KL_ALL_LANES) KL_EACH_LANE(i, ~out->lanes) out->were[i] = (kl_cell){0};
}

// These lanes' cells remember them, all in place of the first access, or all behind it; as far as no other one of them
// has just been there. Which ones are left.
static inline __attribute__((always_inline)) uint32_t remember_all(const lane_cells *x, const uint64_t now[KL_LANES],
                                                                   uint32_t lanes, bool anew) {
  for (; lanes; lanes &= lanes - 1) {
    const unsigned i = (unsigned)__builtin_ctz(lanes);
    kl_cell *c = x->at[i];
    if (anew ? c->a != x->were[i].a : c->b != 0) break;
    remember_at(c, now[i], anew);
  }
  return lanes;
}

// Lanes that are mostly apart from one another, and have no more than a row's cells each: which ones are left.
static uint32_t visit_scattered(kl_actor *y, glance *g, way *to, uint32_t left) {
  lane_cells x;
  uint64_t now[KL_LANES];
  if (g->alike) left = left == KL_ALL_LANES ? visit_fresh(y, g, to, left, true) : visit_fresh(y, g, to, left, false);
  if (!left) return 0;
  find_cells(y, g, to, left, &x);
  if (!x.lanes) return left;
  const unsigned cells = y->bytes >> x.shift;
  const seen_cells low = glance_at(y, g, x.were), high = glance_at(y, g, x.were + KL_GLANCE);
  const uint32_t clear = low.clear | high.clear << KL_GLANCE, anew = low.anew | high.anew << KL_GLANCE;
  uint32_t lanes = x.lanes;
  for (unsigned i = 0; i < KL_LANES; i++) now[i] = pack_at(y, to, i);
  if (cells == 1 && !(lanes & ~clear) && (!(lanes & ~anew) || !(lanes & anew)))
    lanes = lanes & anew ? remember_all(&x, now, lanes, true) : remember_all(&x, now, lanes, false);
  for (; lanes; lanes &= lanes - 1) {
    const unsigned i = (unsigned)__builtin_ctz(lanes);
    kl_cell *c = x.at[i];
    unsigned k = 0;
    y->step = y->t->step[i];
    if (clear >> i & 1 && c->a == x.were[i].a && c->b == x.were[i].b) remember_at(&c[k++], now[i], anew >> i & 1);
    for (; k < cells; k++)
      if (!visit_cell(y, i, now[i], g->writes, &c[k])) return lanes | (left & ~x.lanes);
  }
  return left & ~x.lanes;
}

// Lanes that lie side by side, or read the same bytes.
static uint32_t visit_grouped(kl_actor *y, glance *g, way *to, uint32_t left, bool shared) {
  while (left) {
    const unsigned me = (unsigned)__builtin_ctz(left);
    uint32_t from = left, done = 1u << me;
    if (!go_to(y, g, to, me)) return left;
    y->step = y->t->step[me];
    const unsigned beside = g->alike ? kl_next_stretch(y->p, &from).n : 1;
    if (shared && beside << (y->s->width - to->page->shift) < KL_ROW) {
      done = lanes_at(y->p, left);
      shared = done & (done - 1); // most accesses are of one kind
    }
    if (done & (done - 1)) {
      if (!visit_together(y, to->page, done)) return left;
    } else {
      const unsigned n = visit_stretch(y, g, to->page, me, beside, pack_at(y, to, me));
      if (!n) return left;
      done = lanes_from(me, n);
    }
    left &= ~done;
  }
  return 0;
}

static uint32_t visit_lanes(kl_actor *y, uint32_t left) {
  const kl_places *p = y->p;
  glance g = {
      .first = (unsigned)__builtin_ctz(left), .alike = kl_are_alike(y->t, left), .writes = y->s->does & KL_WRITES};
  way to = {.nothing = kl_pack(y->r, y->warp, 0, 0, y->site)};
  const bool apart = !g.alike || kl_is_scattered(p);
  // Where addresses rise evenly no two are the same, or all.
  bool may_share = !g.writes && (p->bytes.each || p->address[0] == p->address[1]);
  if (may_share && apart) may_share = lanes_at(p, left) & (left - 1);
  if (may_share && !g.alike) return left; // what reads the same bytes is one visit
  if (apart && !may_share && y->bytes <= KL_ROW) return visit_scattered(y, &g, &to, left);
  return visit_grouped(y, &g, &to, left, may_share);
}

uint32_t kl_visit_quickly(kl_actor *y, uint32_t lanes) {
  bool own = y->m->where == KL_AT_SHARED || y->m->where == KL_AT_GLOBAL;
  if (!lanes || y->s->strong || y->s->unfinished || !own) return lanes;
  uint32_t left = visit_lanes(y, lanes);
  use(y->t, lanes & ~left);
  return left;
}

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

// Readers of many blocks: the first and the first of another block stand for all. False: y is to be remembered.
static bool is_read_enough(const kl_actor *y, kl_seen *seen, uint32_t *n) {
  const kl_ordering *r = y->r;
  uint32_t first = UINT32_MAX, kept = 0;
  for (uint32_t k = 0; k < *n; k++) {
    if (r->sites.p[seen[k].site].does != KL_READS) continue;
    if (first == UINT32_MAX) first = k;
    if (seen[k].warp >> r->warp_bits != seen[first].warp >> r->warp_bits) return true;
  }
  if (first == UINT32_MAX || seen[first].warp >> r->warp_bits == y->t->block) return false;
  seen[first].lanes &= -seen[first].lanes;
  for (uint32_t k = 0; k < *n; k++)
    if (k <= first || r->sites.p[seen[k].site].does != KL_READS) seen[kept++] = seen[k];
  *n = kept;
  return false;
}

static void add(const kl_actor *y, const visitor *v, kl_seen *seen, uint32_t *n) {
  for (uint32_t k = 0; v->shift < 0 && k < *n; k++)
    if (seen[k].warp == y->warp && seen[k].step == y->step && seen[k].site == y->site) {
      seen[k].lanes |= v->lanes;
      return;
    }
  if (*n == KL_MOST_SEEN) memmove(seen, seen + 1, --*n * sizeof *seen);
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
  if (!is_there && (writes || !is_read_enough(y, seen, &n))) add(y, v, seen, &n);
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

// What lanes of one step and the same knowledge see of cells that one plain access of their block has touched, which
// happened before: what is needed for that at hand.
typedef struct glance {
  uint64_t first; // warp of the block, as it is packed
  uint64_t ranks; // of warps whose lanes are all known up to `least`
  uint64_t least; // a step
  uint64_t site_mask, step_mask;
  unsigned site_bits, of_warp; // where they begin in what is packed
  uint32_t plain_reads, plain; // of sites
  bool writes;
} glance;

static glance glance_of(const kl_actor *y, bool alike, unsigned me) {
  const kl_ordering *r = y->r;
  const kl_block_past *mine = alike ? y->t->mine[me] : NULL; // others glance at empty cells only
  glance g = {.first = y->t->block << r->warp_bits,
              .least = mine ? mine->least : 0,
              .site_mask = ((uint64_t)1 << r->site_bits) - 1,
              .step_mask = ((uint64_t)1 << r->step_bits) - 1,
              .site_bits = r->site_bits,
              .of_warp = r->site_bits + r->step_bits + 5,
              .plain_reads = r->plain_reads,
              .plain = r->plain,
              .writes = y->s->does & KL_WRITES};
  for (uint32_t k = 0; mine && k < r->warps; k++) g.ranks |= (uint64_t)(mine->warp[k] == NULL) << k;
  if (mine && y->t->own[me]) g.ranks &= ~((uint64_t)1 << y->t->rank);
  return g;
}

// False: it takes more to say, and the cell stays as it was.
static inline __attribute__((always_inline)) bool glance_at(const glance *g, uint64_t now, kl_cell *c) {
  const uint64_t v = c->a, rank = (v >> g->of_warp) - g->first, site = v & g->site_mask;
  if (!v) {
    c->a = now;
    return true;
  }
  if (c->b || rank >= 64 || !(g->ranks >> rank & 1) || (v >> g->site_bits & g->step_mask) > g->least ||
      site >= g->plain)
    return false;
  if (g->writes || site < g->plain_reads)
    c->a = now;
  else
    c->b = now;
  return true;
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

// Cells of one row, the first `n` from c on, each by itself: how many are done with.
static inline __attribute__((always_inline)) unsigned visit_cells(const kl_actor *y, const glance *g, kl_cell *c,
                                                                  unsigned n, const abreast *x) {
  for (unsigned k = 0; k < n; k++) {
    const uint64_t now = behind(y->r, x, k);
    if (!glance_at(g, now, &c[k]) && !visit_cell(y, x->first + (k >> x->each), now, g->writes, &c[k])) return k;
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
static unsigned visit_row(const kl_actor *y, const glance *g, kl_page *page, uint32_t at, unsigned n,
                          const abreast *x) {
  kl_row *row = kl_row_of(y->r, page, at);
  if (n == KL_ROW && !row->apart && visit_all(y, &row->all, page->shift, x)) return n;
  kl_cell *c = row->apart ? &row->cells[at % KL_ROW] : kl_cells_at(y->r, page, at);
  unsigned done = c ? visit_cells(y, g, c, n, x) : 0;
  if (done == KL_ROW && g->writes) kl_row_set(y->r, row, (kl_cell){.a = x->now});
  return done;
}

// Lanes from `first` on whose bytes lie side by side, as far as they lie in the page: how many are done with.
static unsigned visit_stretch(const kl_actor *y, const glance *g, kl_page *page, unsigned first, unsigned lanes,
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

// Mostly it is there, and its cells are narrow enough.
static kl_page *page_of(const kl_actor *y, unsigned lane) {
  const uint64_t number = y->p->address[lane] >> KL_PAGE_BITS;
  if (y->m->where == KL_AT_SHARED && number < y->ob->nshared) {
    kl_page *p = y->ob->shared[number];
    if (p && p->shift <= y->s->width) return p;
  }
  return kl_race_spot_of(y, lane).page;
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
  uint64_t nothing; // what is packed of lane 0, but for its step
} way;

// Goes to a lane's page. False: it takes more.
static inline bool go_to(const kl_actor *y, const glance *g, way *to, unsigned lane) {
  const uint64_t number = y->p->address[lane] >> KL_PAGE_BITS;
  if (to->page && number == to->number) return true;
  to->page = page_of(y, lane);
  to->number = number;
  return to->page && !(g->writes && to->page->channels);
}

static inline uint64_t pack_at(const kl_actor *y, const way *at, unsigned lane) {
  const kl_ordering *r = y->r;
  return at->nothing | (uint64_t)lane << (r->site_bits + r->step_bits) | (uint64_t)y->t->step[lane] << r->site_bits;
}

// Lanes that are mostly apart from one another, and have no more than a row's cells each: all these are found first, so
// that the host's cache brings them at once. Which lanes are left.
static uint32_t visit_scattered(kl_actor *y, const glance *g, way *at, uint32_t left) {
  kl_cell *cells[KL_LANES];
  uint8_t counts[KL_LANES];
  uint32_t found = 0;
  KL_EACH_LANE(i, left) {
    if (!go_to(y, g, at, i)) break;
    const unsigned shift = at->page->shift;
    const uint32_t cell = (uint32_t)(y->p->address[i] % KL_PAGE_BYTES >> shift);
    kl_row *row = kl_row_of(y->r, at->page, cell);
    counts[i] = (uint8_t)(y->bytes >> shift);
    cells[i] = row->apart ? &row->cells[cell % KL_ROW] : kl_cells_at(y->r, at->page, cell);
    if (!cells[i]) break;
    __builtin_prefetch(cells[i], 1);
    found |= 1u << i;
  }
  KL_EACH_LANE(i, found) {
    const uint64_t now = pack_at(y, at, i);
    y->step = y->t->step[i];
    for (unsigned k = 0; k < counts[i]; k++)
      if (!glance_at(g, now, &cells[i][k]) && !visit_cell(y, i, now, g->writes, &cells[i][k])) return left;
    left &= left - 1;
  }
  return left;
}

// Lanes that lie side by side, or read the same bytes.
static uint32_t visit_grouped(kl_actor *y, const glance *g, way *at, uint32_t left, bool shared, bool alike) {
  while (left) {
    const unsigned me = (unsigned)__builtin_ctz(left);
    uint32_t from = left, done = 1u << me;
    if (!go_to(y, g, at, me)) return left;
    y->step = y->t->step[me];
    const unsigned beside = alike ? kl_next_stretch(y->p, &from).n : 1;
    if (shared && beside << (y->s->width - at->page->shift) < KL_ROW) {
      done = lanes_at(y->p, left);
      shared = done & (done - 1); // most accesses are of one kind
    }
    if (done & (done - 1)) {
      if (!visit_together(y, at->page, done)) return left;
    } else {
      const unsigned n = visit_stretch(y, g, at->page, me, beside, pack_at(y, at, me));
      if (!n) return left;
      done = lanes_from(me, n);
    }
    left &= ~done;
  }
  return 0;
}

static uint32_t visit_lanes(kl_actor *y, uint32_t left) {
  enum { FEW = 12 }; // lanes of a warp that lie right behind another one
  const kl_places *p = y->p;
  const bool alike = kl_are_alike(y->t, left), reads = y->s->does == KL_READS;
  const glance g = glance_of(y, alike, (unsigned)__builtin_ctz(left));
  way at = {.nothing = kl_pack(y->r, y->warp, 0, 0, y->site)};
  // Where addresses rise evenly no two are the same, or all.
  bool may_share = reads && (p->bytes.each || p->address[0] == p->address[1]);
  if (may_share && !(lanes_at(p, left) & (left & (left - 1)))) may_share = false;
  if (may_share && !alike) return left; // what reads the same bytes is one visit
  bool scattered = !may_share && y->bytes <= KL_ROW && (!alike || __builtin_popcount(p->joined) < FEW);
  if (scattered) return visit_scattered(y, &g, &at, left);
  return visit_grouped(y, &g, &at, left, may_share, alike);
}

uint32_t kl_visit_quickly(kl_actor *y, uint32_t lanes) {
  bool own = y->m->where == KL_AT_SHARED || y->m->where == KL_AT_GLOBAL;
  if (!lanes || y->s->strong || y->s->unfinished || !own) return lanes;
  uint32_t left = visit_lanes(y, lanes);
  use(y->t, lanes & ~left);
  return left;
}

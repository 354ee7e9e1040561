// Accesses that are seen at a glance to race with nothing, as nearly all are: plain ones, to cells that at most two
// plain accesses of one lane each have touched. Lanes that lie side by side, at one step and with the same knowledge,
// are seen row by row.

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

// --- one cell -----------------------------------------------------------------------------------------------------

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

static inline __attribute__((always_inline)) bool visit_cell(const kl_ordering *r, const kl_ticks *t, unsigned me,
                                                             uint64_t now, bool writes, kl_cell *c) {
  before a = {true, true}, b = {true, true};
  if (!c->a) {
    c->a = now;
    return true;
  }
  if (c->a & KL_MANY || !see(r, t, me, now, c->a, &a) || (c->b && !see(r, t, me, now, c->b, &b))) return false;
  return settle(r, c, now, writes, a, b);
}

// What lanes of one step and the same knowledge see of cells that one plain access of their block has touched, which
// happened before: what is needed for that at hand.
typedef struct glance {
  const kl_site *sites;
  uint64_t block, site_mask, step_mask, rank_mask;
  unsigned site_bits, of_rank, of_block; // where they begin in what is packed
  uint32_t ranks;                        // of warps whose lanes are all known up to `least`
  uint32_t least;
  bool writes;
} glance;

static glance glance_of(const kl_actor *y, unsigned me) {
  const kl_ordering *r = y->r;
  const kl_block_past *mine = y->t->mine[me];
  glance g = {.sites = r->sites.p,
              .block = y->t->block,
              .site_mask = ((uint64_t)1 << r->site_bits) - 1,
              .step_mask = ((uint64_t)1 << r->step_bits) - 1,
              .rank_mask = ((uint64_t)1 << r->warp_bits) - 1,
              .site_bits = r->site_bits,
              .of_rank = r->site_bits + r->step_bits + 5,
              .of_block = r->site_bits + r->step_bits + 5 + r->warp_bits,
              .least = mine ? mine->least : 0,
              .writes = y->s->does & KL_WRITES};
  for (uint32_t k = 0; mine && k < r->warps; k++) g.ranks |= (uint32_t)(mine->warp[k] == NULL) << k;
  if (y->t->own[me]) g.ranks &= ~(1u << y->t->rank);
  return g;
}

// False: it takes more to say, and the cell stays as it was.
static inline __attribute__((always_inline)) bool glance_at(const glance *g, uint64_t now, kl_cell *c) {
  const uint64_t v = c->a;
  if (!v) {
    c->a = now;
    return true;
  }
  if (c->b || v >> g->of_block != g->block || !(g->ranks >> (v >> g->of_rank & g->rank_mask) & 1) ||
      (v >> g->site_bits & g->step_mask) > g->least)
    return false;
  const kl_site *s = &g->sites[v & g->site_mask];
  if (s->strong || s->unfinished) return false;
  if (g->writes || s->does == KL_READS)
    c->a = now;
  else
    c->b = now;
  return true;
}

bool kl_visit_cell(const kl_actor *y, kl_cell *c) {
  unsigned me = (unsigned)__builtin_ctz(y->lanes);
  return visit_cell(y->r, y->t, me, kl_pack(y->r, y->warp, me, y->step, y->site), y->s->does & KL_WRITES, c);
}

// --- one row ------------------------------------------------------------------------------------------------------

// Lanes that access cells of a row in order, from `now`, that of its first cell, on: each 1 << each of them.
typedef struct abreast {
  uint64_t now;
  unsigned each;
} abreast;

static unsigned lanes_of(unsigned each) {
  return each < KL_ROW_BITS ? KL_ROW >> each : 1;
}

// What the lanes see of the row: what not all of them know counts as not known. False: it is no plain access.
static bool see_all(const kl_actor *y, unsigned shift, abreast x, uint64_t v, before *out) {
  const kl_ordering *r = y->r;
  const kl_site *s = kl_site_of(r, v);
  const unsigned each = s->width - shift, n = lanes_of(each);
  const uint64_t who = v >> (r->site_bits + r->step_bits), me = x.now >> (r->site_bits + r->step_bits);
  uint32_t step = (uint32_t)(v >> r->site_bits & (((uint64_t)1 << r->step_bits) - 1));
  uint32_t rank = (uint32_t)(who >> 5 & (((uint64_t)1 << r->warp_bits) - 1)), first = who & 31;
  const uint32_t all = (uint32_t)(((UINT64_C(1) << n) - 1) << first);
  if (s->strong || s->unfinished) return false;
  out->reads = s->does == KL_READS;
  out->known = (who == me && each == x.each) ||
               kl_known_lanes(y->t, me & 31, who >> 5 >> r->warp_bits, rank, first, n, step) == all;
  return true;
}

static bool visit_row(const kl_actor *y, const glance *g, kl_row *row, unsigned shift, abreast x) {
  kl_ordering *r = y->r;
  const bool writes = y->s->does & KL_WRITES;
  kl_cell *c = &row->all;
  if (row->cells) {
    const unsigned first = x.now >> (r->site_bits + r->step_bits) & 31;
    for (uint32_t k = 0; k < KL_ROW; k++) {
      const uint64_t behind = k >> x.each, now = x.now + (behind << (r->site_bits + r->step_bits));
      if (!glance_at(g, now, &row->cells[k]) &&
          !visit_cell(r, y->t, first + (unsigned)behind, now, writes, &row->cells[k]))
        return false;
    }
    if (writes) kl_row_set(r, row, (kl_cell){.a = x.now});
    return true;
  }
  if (!c->a) {
    c->a = x.now;
    return true;
  }
  before a, b = {true, true};
  if (!see_all(y, shift, x, c->a, &a) || (c->b && !see_all(y, shift, x, c->b, &b))) return false;
  return settle(r, c, x.now, writes, a, b);
}

// --- one access ---------------------------------------------------------------------------------------------------

// The rows of a page that n lanes from `first` on, which lie side by side, fill: how many lanes are done with.
static unsigned visit_rows(const kl_actor *y, const glance *g, kl_page *page, unsigned first, unsigned n) {
  const unsigned shift = page->shift, row_bytes = KL_ROW << shift, each = y->s->width - shift, lanes = lanes_of(each);
  const unsigned rows = each < KL_ROW_BITS ? 1 : 1u << (each - KL_ROW_BITS);
  uint32_t at = y->p->address[first] % KL_PAGE_BYTES;
  unsigned done = 0;
  if (at % row_bytes) return 0;
  for (; n - done >= lanes && at < KL_PAGE_BYTES; done += lanes) {
    const abreast x = {kl_pack(y->r, y->warp, first + done, y->t->step[first], y->site), each};
    for (unsigned k = 0; k < rows; k++, at += row_bytes)
      if (!visit_row(y, g, &page->rows[at / row_bytes], shift, x)) return done;
  }
  return done;
}

static bool visit_lane(const kl_actor *y, const glance *g, kl_page *page, unsigned me, uint64_t now) {
  kl_ordering *r = y->r;
  const bool writes = y->s->does & KL_WRITES;
  uint32_t at = y->p->address[me] % KL_PAGE_BYTES >> page->shift;
  for (uint32_t end = at + (y->bytes >> page->shift); at < end; at++) {
    kl_cell *cells = page->rows[at / KL_ROW].cells;
    kl_cell *c = cells ? &cells[at % KL_ROW] : kl_cells_at(r, page, at);
    if (!c || !(glance_at(g, now, c) || visit_cell(r, y->t, me, now, writes, c))) return false;
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

static uint32_t visit_lanes(const kl_actor *y, uint32_t left) {
  const kl_ordering *r = y->r;
  const bool writes = y->s->does & KL_WRITES, alike = kl_are_alike(y->t, left);
  const uint64_t *address = y->p->address, lane_0 = kl_pack(r, y->warp, 0, 0, y->site);
  const unsigned of_lane = r->site_bits + r->step_bits;
  // Lanes that are not alike glance at empty cells only.
  const glance g = alike ? glance_of(y, (unsigned)__builtin_ctz(left)) : (glance){.block = UINT64_MAX};
  kl_page *page = NULL;
  uint64_t number = 0;
  while (left) {
    const unsigned me = (unsigned)__builtin_ctz(left);
    const uint32_t rest = left & (left - 1);
    unsigned done = 0;
    if (!writes && rest && address[__builtin_ctz(rest)] == address[me]) return left; // both are one visit
    if (!page || address[me] >> KL_PAGE_BITS != number) {
      page = page_of(y, me);
      if (!page || (writes && page->channels)) return left;
      number = address[me] >> KL_PAGE_BITS;
    }
    if (alike && y->p->joined >> me & 2) { // lanes side by side, the first of them in this page
      uint32_t from = left;
      done = visit_rows(y, &g, page, me, kl_next_stretch(y->p, &from).n);
    }
    if (!done &&
        !visit_lane(y, &g, page, me, lane_0 | (uint64_t)me << of_lane | (uint64_t)y->t->step[me] << r->site_bits))
      return left;
    left &= ~(uint32_t)(((UINT64_C(1) << (done ? done : 1)) - 1) << me);
  }
  return 0;
}

uint32_t kl_visit_quickly(const kl_actor *y, uint32_t lanes) {
  bool own = y->m->where == KL_AT_SHARED || y->m->where == KL_AT_GLOBAL;
  if (!lanes || y->s->strong || y->s->unfinished || !own) return lanes;
  uint32_t left = visit_lanes(y, lanes);
  use(y->t, lanes & ~left);
  return left;
}

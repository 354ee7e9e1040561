// Is an access ordered with those before it that touched the same bytes? What a cell remembers is what a later access
// could still race with: an access goes when another one, which happened after it, would race with all that it would.

#include "sim/check/order/race.h"

enum { MOST_UNCHECKED = 64 };

static uint64_t block_of(const kl_ordering *r, const kl_seen *x) {
  return x->warp >> r->warp_bits;
}
static uint32_t rank_of(const kl_ordering *r, const kl_seen *x) {
  return (uint32_t)(x->warp & (((uint64_t)1 << r->warp_bits) - 1));
}

// PTX ISA 8.7.3: both strong, each one's scope includes the other, and they overlap completely.
static bool morally_strong(const kl_ordering *r, const kl_seen *x, const kl_seen *y) {
  const kl_site *a = &r->sites.p[x->site], *b = &r->sites.p[y->site];
  if (!a->strong || !b->strong || a->bytes != b->bytes) return false;
  kl_reach apart = kl_apart(r, block_of(r, x), block_of(r, y));
  return a->reach >= apart && b->reach >= apart;
}

// The lanes of x whose access happened before what lane `me` does next.
static uint32_t known_lanes(const kl_actor *y, unsigned me, const kl_seen *x) {
  uint32_t own = x->warp == y->warp ? x->lanes & 1u << me : 0;
  return own | kl_known_lanes(y->t, me, block_of(y->r, x), rank_of(y->r, x), x->lanes, x->step);
}

// --- writes of the same value -------------------------------------------------------------------------------------

static const char *value_of(const kl_actor *y, unsigned lane, uint32_t at) {
  const kl_lanes *x = &y->w->x;
  unsigned k = at / y->m->bytes;
  return AT(char, y->m->regs[k]) + (size_t)lane * y->m->reg_bytes[k] + at % y->m->bytes;
}

// Does lane `lane` store what the other one has stored: in the same instruction now, or before, so that it is there?
static bool same_value(const kl_actor *y, unsigned lane, const kl_seen *x, unsigned xlane) {
  if (y->op->run != kl_x_store) return false;
  bool now = x->warp == y->warp && x->site == y->site && y->w->x.mask >> xlane & 1 &&
             y->p->address[xlane] == y->p->address[lane];
  for (uint32_t k = 0; k < y->size; k++) {
    char mine = *value_of(y, lane, y->at + k);
    if (mine != (now ? *value_of(y, xlane, y->at + k) : y->p->host[lane][y->at + k])) return false;
  }
  return true;
}

// Then what is there is no longer what access `k` has stored.
static bool strong_write_behind(const kl_ordering *r, const kl_seen *seen, uint32_t n, uint32_t k) {
  while (++k < n) {
    const kl_site *s = &r->sites.p[seen[k].site];
    if (s->strong && s->does & KL_WRITES) return true;
  }
  return false;
}

// --- judging ------------------------------------------------------------------------------------------------------

// PTX ISA 8.8: a strong write that a strong read has observed, itself or through a chain of atomic operations, precedes
// what that read happens before. Strong accesses are remembered in the order in which they came.
static bool observed(const kl_actor *y, unsigned me, const kl_seen *seen, uint32_t n, uint32_t x) {
  const kl_ordering *r = y->r;
  const kl_seen *last = &seen[x];
  if (!r->sites.p[last->site].strong || !(r->sites.p[last->site].does & KL_WRITES)) return false;
  for (uint32_t k = x + 1; k < n; k++) {
    const kl_seen *z = &seen[k];
    const kl_site *s = &r->sites.p[z->site];
    if (z[-1].cut || s->does == KL_WRITES) return false; // what is read from now on is no longer x
    bool links = s->strong && s->does & KL_READS && morally_strong(r, last, z);
    if (links && known_lanes(y, me, z)) return true;
    if (!(s->does & KL_WRITES)) continue;
    if (!links) return false;
    last = z;
  }
  return false;
}

static bool is_plain_read(const kl_site *s) {
  return s->does == KL_READS && !s->strong && !s->unfinished;
}
static bool is_atomic(const kl_site *s) {
  return s->does == (KL_READS | KL_WRITES);
}

// The warp that a finding waits for, if it is one of a plain read and an atomic operation: that of the read.
static kl_order_warp *reader_of(const kl_actor *y, const kl_seen *x) {
  kl_ordering *r = y->r;
  if (is_plain_read(y->s) && is_atomic(&r->sites.p[x->site])) return y->ow;
  if (!is_atomic(y->s) || !is_plain_read(&r->sites.p[x->site])) return NULL;
  uint64_t block = block_of(r, x);
  if (block == y->t->block) return y->ow - y->t->rank + rank_of(r, x);
  for (size_t k = 0; k < KL_BLOCK_TABLE; k++)
    for (kl_order_block *b = r->blocks[k]; b; b = b->next)
      if (b->number == block) return &b->warps[rank_of(r, x)];
  return NULL;
}

static void found(const kl_actor *y, const kl_seen *x, unsigned xlane, const kl_seen *me, unsigned lane) {
  kl_ordering *r = y->r;
  if (kl_found_again(r, x, me)) return;
  kl_order_warp *reader = reader_of(y, x);
  kl_race u = {.x = *x,
               .y = *me,
               .xlane = (uint8_t)xlane,
               .ylane = (uint8_t)lane,
               .lane = (uint8_t)(is_plain_read(y->s) ? lane : xlane),
               .value_bytes = y->bytes <= 8 ? (uint8_t)y->bytes : 0,
               .host = y->p->host[lane]};
  if (reader)
    for (size_t k = 0; k < reader->unchecked.n; k++)
      if (reader->unchecked.p[k].lane == u.lane && reader->unchecked.p[k].host == u.host &&
          reader->unchecked.p[k].x.site == u.x.site && reader->unchecked.p[k].y.site == u.y.site)
        return;
  u.spot = kl_spot_of(y->w, y->m->where, y->p->address[lane], y->bytes);
  u.calls = kl_calls_of(y->w->strand.frame);
  memcpy(&u.value, u.host, u.value_bytes);
  if (!reader)
    kl_found_race(r, &u);
  else if (reader->unchecked.n < MOST_UNCHECKED)
    VEC_PUSH(r->cx, &reader->unchecked, u);
}

// A compare-and-swap: what the lane has read there is checked.
static void check_reads(const kl_actor *y, unsigned lane) {
  size_t kept = 0;
  for (size_t k = 0; k < y->ow->unchecked.n; k++) {
    const kl_race *u = &y->ow->unchecked.p[k];
    if (u->lane != lane || u->host != y->p->host[lane]) y->ow->unchecked.p[kept++] = *u;
  }
  y->ow->unchecked.n = kept;
}

void kl_race_end(kl_ordering *r, kl_order_warp *ow) {
  for (size_t k = 0; k < ow->unchecked.n; k++) kl_found_race(r, &ow->unchecked.p[k]);
  ow->unchecked.n = 0;
}

static void judge(const kl_actor *y, const kl_seen *seen, uint32_t n, uint32_t k) {
  const kl_ordering *r = y->r;
  const kl_seen *x = &seen[k];
  const kl_site *a = &r->sites.p[x->site], *b = y->s;
  kl_seen me = {.warp = y->warp, .step = y->step, .lanes = y->lanes, .site = y->site};
  if (!((a->does | b->does) & KL_WRITES)) return;
  if (!a->unfinished && !b->unfinished && morally_strong(r, x, &me)) return;
  KL_EACH_LANE(i, y->lanes) {
    uint32_t others = x->lanes & ~(a->unfinished ? 0 : known_lanes(y, i, x));
    if (!others || (!a->unfinished && observed(y, i, seen, n, k))) continue;
    bool plain = a->does == KL_WRITES && b->does == KL_WRITES && !a->strong && !b->strong && !a->unfinished;
    KL_EACH_LANE(j, others) {
      if (plain && same_value(y, i, x, j) && !strong_write_behind(r, seen, n, k)) continue;
      found(y, x, j, &me, i);
      return;
    }
  }
}

static bool is_swap(const kl_actor *y) {
  return y->op && y->op->run == kl_x_atomic && y->m->atomic == KL_ATOMIC_CAS;
}

// Would whatever races with x race with y, which happens after it?
static bool covers(const kl_actor *y, const kl_seen *x) {
  const kl_ordering *r = y->r;
  const kl_site *a = &r->sites.p[x->site], *b = y->s;
  if (a->unfinished || b->unfinished || (a->does & KL_WRITES && !(b->does & KL_WRITES))) return false;
  if (!b->strong) return !a->strong || b->does & KL_WRITES;
  // What has observed others must stay where it is among them: only the last one can be replaced.
  return a->strong && a->bytes == b->bytes && a->does == b->does && a->reach == b->reach && x->warp == y->warp &&
         x->step == y->step;
}

// --- remembering --------------------------------------------------------------------------------------------------

// A write behind the first n is not remembered: what strong writes among these have stored is not what is read behind
// it.
static void cut(const kl_actor *y, kl_seen *seen, uint32_t n) {
  const kl_site *sites = y->r->sites.p;
  for (uint32_t k = 0; k < n && !seen[n - 1].cut; k++)
    seen[n - 1].cut = sites[seen[k].site].strong && sites[seen[k].site].does & KL_WRITES;
}
// The access at `k` is forgotten, of those before it the first n are kept.
static void forget(const kl_actor *y, kl_seen *seen, uint32_t n, uint32_t k) {
  if (seen[k].cut || y->r->sites.p[seen[k].site].does & KL_WRITES) cut(y, seen, n);
}

bool kl_is_read_enough(const kl_actor *y, kl_seen *seen, uint32_t *n) {
  const kl_ordering *r = y->r;
  uint32_t first = UINT32_MAX, other = UINT32_MAX, kept = 0;
  if (y->s->strong || y->s->does != KL_READS || y->s->unfinished) return false;
  for (uint32_t k = 0; k < *n; k++) {
    const kl_site *s = &r->sites.p[seen[k].site];
    if (s->strong || s->does != KL_READS || s->unfinished) continue;
    if (first == UINT32_MAX)
      first = k;
    else if (other == UINT32_MAX && block_of(r, &seen[k]) != block_of(r, &seen[first]))
      other = k;
  }
  if (first == UINT32_MAX) return false;
  if (other != UINT32_MAX) return true;
  if (block_of(r, &seen[first]) == y->t->block) return false;
  for (uint32_t k = 0; k < *n; k++) { // the second block's first: of the first block one stays
    const kl_site *s = &r->sites.p[seen[k].site];
    if (k != first && !s->strong && s->does == KL_READS && !s->unfinished) {
      forget(y, seen, kept, k);
      continue;
    }
    seen[kept] = seen[k];
    if (k == first) seen[kept].lanes &= -seen[kept].lanes;
    kept++;
  }
  *n = kept;
  return false;
}

void kl_make_room(const kl_actor *y, kl_seen *seen, uint32_t *n) {
  enum { MOST_STRONG = 16 };
  uint32_t alike = 0, oldest = UINT32_MAX;
  for (uint32_t k = 0; k < *n; k++)
    if (y->r->sites.p[seen[k].site].strong == y->s->strong) {
      alike++;
      if (oldest == UINT32_MAX) oldest = k;
    }
  if (*n < KL_MOST_SEEN && !(y->s->strong && alike >= MOST_STRONG)) return;
  if (oldest == UINT32_MAX) oldest = 0;
  forget(y, seen, oldest, oldest);
  (*n)--;
  memmove(&seen[oldest], &seen[oldest + 1], (*n - oldest) * sizeof *seen);
}

static void remember(const kl_actor *y, kl_seen *seen, uint32_t *n) {
  unsigned me = (unsigned)__builtin_ctz(y->lanes);
  uint32_t kept = 0;
  bool is_known = false, seen_by_me[KL_MOST_SEEN + 1] = {false};
  for (uint32_t k = 0; k < *n && !y->s->strong && y->s->does & KL_WRITES; k++)
    seen_by_me[k] = observed(y, me, seen, *n, k);
  for (uint32_t k = 0; k < *n; k++) {
    kl_seen x = seen[k];
    const kl_site *s = &y->r->sites.p[x.site];
    bool same =
        x.warp == y->warp && x.step == y->step && !s->strong && !y->s->strong && !s->unfinished && !y->s->unfinished;
    if (same && (s->does == y->s->does || s->does & KL_WRITES) && !(y->lanes & ~x.lanes)) is_known = true;
    if (seen_by_me[k])
      x.lanes = 0;
    else if (!is_known && is_swap(y) && is_plain_read(s) && x.warp == y->warp)
      x.lanes &= ~y->lanes;
    else if (!is_known && covers(y, &x) && (!y->s->strong || k + 1 == *n))
      x.lanes &= ~((y->s->strong ? 0 : known_lanes(y, me, &x)) | (x.warp == y->warp ? y->lanes : 0));
    if (x.lanes)
      seen[kept++] = x;
    else if (!y->s->strong) // else y goes on from where x was
      forget(y, seen, kept, k);
  }
  *n = kept;
  if (is_known && y->s->does & KL_WRITES) cut(y, seen, kept);
  if (is_known || kl_is_read_enough(y, seen, n)) return;
  for (uint32_t k = 0; k < *n; k++) {
    kl_seen *x = &seen[k];
    if (x->warp != y->warp || x->step != y->step || x->site != y->site || (y->s->strong && k + 1 < *n)) continue;
    x->lanes |= y->lanes;
    return;
  }
  kl_make_room(y, seen, n);
  seen[(*n)++] = (kl_seen){.warp = y->warp, .step = y->step, .lanes = y->lanes, .site = y->site};
}

static void visit_slowly(const kl_actor *y, kl_cell *c) {
  kl_seen seen[KL_MOST_SEEN + 1];
  uint32_t n = kl_cell_get(y->r, c, seen);
  if (n == 1 && y->s->does == KL_READS && !y->s->strong && seen[0].warp == y->warp && seen[0].step == y->step &&
      !(y->lanes & ~seen[0].lanes)) {
    const kl_site *s = &y->r->sites.p[seen[0].site];
    if (!s->strong && !s->unfinished) return;
  }
  for (uint32_t k = 0; k < n; k++) judge(y, seen, n, k);
  remember(y, seen, &n);
  kl_cell_put(y->r, c, seen, n);
}

static void visit(const kl_actor *y, kl_cell *c) {
  if (y->s->strong || y->s->unfinished || y->lanes & (y->lanes - 1) || !kl_visit_cell(y, c)) visit_slowly(y, c);
}

// --- accesses -----------------------------------------------------------------------------------------------------

kl_race_spot kl_race_spot_of(const kl_actor *y, unsigned lane) {
  kl_ordering *r = y->r;
  uint64_t at = y->p->address[lane];
  bool shared = y->m->where == KL_AT_SHARED;
  unsigned bytes = y->bytes;
  if (y->m->where == KL_AT_STACK || y->m->where == KL_AT_PARAM) return (kl_race_spot){0};
  if (!shared && at < KL_DEVICE_MEMORY && y->m->where == KL_AT_GENERIC) {
    if (at / KL_WINDOW != 1) return (kl_race_spot){0};
    shared = true;
    at %= KL_WINDOW;
  }
  if (shared) {
    kl_order_block *ob = y->ob;
    if (at >= KL_SHARED_RANK) {
      ob = kl_order_block_of(r, &y->w->block->cluster->blocks[at / KL_SHARED_RANK - 1]);
      at %= KL_SHARED_RANK;
    }
    if (!ob || at / KL_PAGE_BYTES >= ob->nshared) return (kl_race_spot){0};
    return (kl_race_spot){kl_page_of_shared(r, ob, at >> KL_PAGE_BITS, bytes), (uint32_t)at % KL_PAGE_BYTES};
  }
  const kl_region *last = &y->w->block->worker->last;
  if (at - last->base < last->size && last->kind == KL_REGION_CONST) return (kl_race_spot){0};
  return (kl_race_spot){kl_page_of(r, at >> KL_PAGE_BITS, bytes), (uint32_t)at % KL_PAGE_BYTES};
}

static void visit_lane(kl_actor *y, kl_race_spot s) {
  unsigned shift = s.page->shift, me = (unsigned)__builtin_ctz(y->lanes);
  uint32_t cells = y->bytes >> shift, element = y->m->bytes;
  bool reads = y->s->strong && y->s->does & KL_READS && (y->op->run == kl_x_load || y->op->d != KL_NO_REF);
  for (uint32_t k = 0; reads && k < y->bytes; k += element)
    kl_channel_read(y->r, y->ow, y->warp, me, s.page, s.at + k, y->s);
  y->step = y->t->step[me];
  y->size = 1u << shift;
  for (uint32_t k = 0; k < cells; k++) {
    y->at = k << shift;
    kl_cell *c = kl_cells_at(y->r, s.page, (s.at >> shift) + k);
    if (!c) return;
    visit(y, c);
  }
  if (!(y->s->does & KL_WRITES)) return;
  if (!y->s->strong) kl_channel_overwrite(y->r, s.page, s.at, y->bytes, 0);
  for (uint32_t k = 0; y->s->strong && k < y->bytes; k += element)
    kl_channel_write(y->r, y->ow, y->warp, me, s.page, s.at + k, y->s);
}

static void copy_begins(kl_actor *y, kl_race_spot s) {
  unsigned me = (unsigned)__builtin_ctz(y->lanes);
  kl_copying c = {
      .page = s.page, .at = s.at, .bytes = y->bytes, .site = y->site, .group = y->ow->group[me], .lane = (uint8_t)me};
  VEC_PUSH(y->r->cx, &y->ow->copying, c);
}

// The lanes from `lane` on that read the same bytes and know the same.
static uint32_t readers_with(const kl_actor *y, unsigned lane, uint32_t left) {
  const kl_ticks *t = y->t;
  uint32_t same = 1u << lane;
  if (y->s->strong || y->s->unfinished || y->s->does != KL_READS) return same;
  KL_EACH_LANE(i, left & ~same) {
    if (y->p->address[i] != y->p->address[lane] || t->step[i] != t->step[lane] || t->past[i] != t->past[lane] ||
        t->own[i] != t->own[lane])
      break;
    same |= 1u << i;
  }
  return same;
}

void kl_race_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  kl_ordering *r = kl_order_of(o);
  if (r->blind || m->where == KL_AT_STACK || m->where == KL_AT_PARAM) return;
  kl_order_block *ob = kl_order_block_of(r, w->block);
  if (!ob) return;
  const kl_order_op *how = kl_order_op_of(r, w, op);
  const uint32_t site = op->run == kl_x_copy_async && m->store ? how->target : how->number;
  if (r->run->blocks > 1 && m->where != KL_AT_GLOBAL) kl_remote_access(r, ob, w, op, m, p, site);
  kl_actor y = {.r = r,
                .ob = ob,
                .ow = &ob->warps[w->rank],
                .t = &ob->warps[w->rank].t,
                .w = w,
                .op = op,
                .m = m,
                .p = p,
                .s = &r->sites.p[site],
                .warp = ob->number << r->warp_bits | w->rank,
                .site = site,
                .bytes = (uint32_t)m->bytes * m->count};
  for (uint32_t left = kl_visit_quickly(&y, w->x.mask); left && !r->blind;
       left = kl_visit_quickly(&y, left & ~y.lanes)) {
    unsigned lane = (unsigned)__builtin_ctz(left);
    y.lanes = readers_with(&y, lane, left);
    kl_race_spot s = kl_race_spot_of(&y, lane);
    if (!s.page) continue;
    KL_EACH_LANE(i, y.lanes) y.t->used[i] = y.t->step[i];
    visit_lane(&y, s);
    if (y.ow->unchecked.n && is_swap(&y)) check_reads(&y, lane);
    if (y.s->unfinished) copy_begins(&y, s);
  }
  if (r->clocks.spent) r->blind = true;
  if (y.s->order == KL_RELEASE || y.s->order == KL_ACQ_REL) kl_tick(&r->clocks, y.t, w->x.mask);
}

// From now on the copy is an access of its lane's own.
static void finish(kl_ordering *r, kl_order_warp *ow, uint64_t warp, const kl_copying *c) {
  const unsigned shift = c->page->shift;
  const uint32_t site = r->sites.p[c->site].finished;
  kl_seen seen[KL_MOST_SEEN + 1];
  kl_actor y = {.r = r,
                .ow = ow,
                .t = &ow->t,
                .warp = warp,
                .site = site,
                .s = &r->sites.p[site],
                .lanes = 1u << c->lane,
                .step = ow->t.step[c->lane]};
  for (uint32_t k = c->at >> shift; k < (c->at + c->bytes) >> shift; k++) {
    kl_cell *cell = kl_cells_at(r, c->page, k);
    if (!cell) return;
    uint32_t n = kl_cell_get(r, cell, seen), kept = 0;
    for (uint32_t i = 0; i < n; i++) {
      if (seen[i].warp == warp && seen[i].site == c->site) seen[i].lanes &= ~y.lanes;
      if (seen[i].lanes) seen[kept++] = seen[i];
    }
    remember(&y, seen, &kept);
    kl_cell_put(r, cell, seen, kept);
  }
  ow->t.used[c->lane] = y.step;
}

void kl_race_copied(kl_ordering *r, kl_order_warp *ow, uint64_t warp, uint32_t lanes, uint32_t left) {
  size_t kept = 0;
  for (size_t k = 0; k < ow->copying.n; k++) {
    kl_copying c = ow->copying.p[k];
    // Of group g, the lane having committed n: n - g later ones, itself not among them, may be unfinished.
    bool done = lanes >> c.lane & 1 &&
                (left == UINT32_MAX || (c.group < ow->group[c.lane] && ow->group[c.lane] - c.group > left));
    if (done)
      finish(r, ow, warp, &c);
    else
      ow->copying.p[kept++] = c;
  }
  ow->copying.n = kept;
}

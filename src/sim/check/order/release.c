// Communication through memory: what strong writes pass on to strong reads that find them. PTX ISA 8.8: a release
// pattern (a release, or a fence before a strong write) and an acquire pattern (an acquire, or a fence behind a strong
// read), with a chain of atomic operations between them; each step within the scopes of both.

#include "sim/check/order/state.h"

enum { MOST_OWN = 64, MOST_READ = 64, MOST_NEAR = 64 };

static kl_lane_more *more_of(kl_ordering *r, kl_order_warp *ow, unsigned lane) {
  if (!ow->more[lane]) ow->more[lane] = kl_alloc(r->cx, sizeof *ow->more[lane]);
  return ow->more[lane];
}

static void unset_fence(kl_ordering *r, kl_lane_more *m, kl_reach reach) {
  if (!m->fence[reach].set) return;
  kl_moment_drop(&r->clocks, &m->fence[reach].at);
  kl_past_drop(&r->clocks, m->fence[reach].past);
  m->fence[reach].past = NULL;
  m->fence[reach].set = false;
}

void kl_lane_more_free(kl_ordering *r, kl_lane_more *m) {
  if (!m) return;
  for (int k = 0; k < KL_REACHES; k++) {
    unset_fence(r, m, (kl_reach)k);
    kl_past_drop(&r->clocks, m->seen[k]);
  }
  kl_past_drop(&r->clocks, m->learned);
  kl_free(r->cx, m, sizeof *m);
}

static void learn(kl_ordering *r, kl_order_warp *ow, unsigned lane, kl_past *p) {
  kl_lane_more *m = more_of(r, ow, lane);
  if (!p || m->learned == p) return;
  kl_learn(&r->clocks, &ow->t, 1u << lane, p);
  kl_past_drop(&r->clocks, m->learned);
  m->learned = kl_past_ref(p);
}

void kl_fence(kl_ordering *r, kl_order_warp *ow, uint32_t lanes, const kl_order_op *op) {
  KL_EACH_LANE(i, lanes) {
    kl_lane_more *m = more_of(r, ow, i);
    for (int k = 0; op->acquires && k <= op->reach; k++) {
      learn(r, ow, i, m->seen[k]);
      kl_past_drop(&r->clocks, m->seen[k]);
      m->seen[k] = NULL;
    }
    if (!op->releases) continue;
    for (int k = 0; k <= op->reach; k++) unset_fence(r, m, (kl_reach)k);
    m->fence[op->reach].set = true;
    m->fence[op->reach].at = kl_moment_take(&ow->t, i);
  }
  if (op->releases) kl_tick(&r->clocks, &ow->t, lanes);
}

// --- channels -----------------------------------------------------------------------------------------------------

enum { CHUNKS = KL_PAGE_BYTES >> KL_CHUNK_BITS };

static void empty(kl_ordering *r, kl_channel *c) {
  kl_past_drop(&r->clocks, c->all);
  c->all = NULL;
  for (size_t k = 0; k < c->to.n; k++) kl_past_drop(&r->clocks, c->to.p[k].past);
  c->to.n = 0;
}

static void drop_own(kl_ordering *r, kl_channel *c) {
  for (size_t k = 0; k < c->own.n; k++) kl_past_drop(&r->clocks, c->own.p[k].past);
  for (size_t k = 0; k < c->read.n; k++) kl_past_drop(&r->clocks, c->read.p[k].past);
  c->own.n = c->read.n = 0;
}

void kl_channels_free(kl_ordering *r, kl_page *p) {
  for (size_t k = 0; p->channels && k < CHUNKS; k++)
    for (kl_channel *c = p->channels[k], *next; c; c = next) {
      next = c->next;
      empty(r, c);
      drop_own(r, c);
      VEC_FREE(r->cx, &c->to);
      VEC_FREE(r->cx, &c->own);
      VEC_FREE(r->cx, &c->read);
      kl_free(r->cx, c, sizeof *c);
    }
  if (p->channels) kl_free(r->cx, p->channels, CHUNKS * sizeof *p->channels);
  p->channels = NULL;
}

static kl_channel *find(const kl_page *p, uint32_t at, uint32_t bytes) {
  kl_channel *c = p->channels ? p->channels[at >> KL_CHUNK_BITS] : NULL;
  while (c && (c->at != at || c->bytes != bytes)) c = c->next;
  return c;
}

static kl_channel *make(kl_ordering *r, kl_page *p, uint32_t at, uint32_t bytes) {
  if (!p->channels) p->channels = kl_alloc(r->cx, CHUNKS * sizeof *p->channels);
  kl_channel *c = kl_alloc(r->cx, sizeof *c);
  c->at = at;
  c->bytes = (uint8_t)bytes;
  c->next = p->channels[at >> KL_CHUNK_BITS];
  p->channels[at >> KL_CHUNK_BITS] = c;
  return c;
}

void kl_channel_overwrite(kl_ordering *r, kl_page *page, uint32_t at, uint32_t bytes, uint32_t but_bytes) {
  for (uint32_t k = at >> KL_CHUNK_BITS; page->channels && k <= (at + bytes - 1) >> KL_CHUNK_BITS; k++)
    for (kl_channel *c = page->channels[k]; c; c = c->next)
      if (c->at < at + bytes && at < c->at + c->bytes && !(c->at == at && c->bytes == but_bytes)) empty(r, c);
}

static kl_past *near(const kl_channel *c, uint64_t key) {
  for (size_t k = 0; k < c->to.n; k++)
    if (c->to.p[k].key == key) return c->to.p[k].past;
  return NULL;
}

// Blocks that have ended read nothing any more.
static void forget_ended(kl_ordering *r, kl_channel *c) {
  size_t kept = 0;
  for (size_t k = 0; k < c->to.n; k++) {
    uint64_t first = c->to.p[k].key & 1 ? (c->to.p[k].key >> 1) * r->run->blocks : c->to.p[k].key >> 1;
    if (kl_order_lives(r, first))
      c->to.p[kept++] = c->to.p[k];
    else
      kl_past_drop(&r->clocks, c->to.p[k].past);
  }
  c->to.n = kept;
}

static void add_near(kl_ordering *r, kl_channel *c, uint64_t key, kl_past *p) {
  for (size_t k = 0; k < c->to.n; k++)
    if (c->to.p[k].key == key) {
      c->to.p[k].past = kl_past_join(&r->clocks, c->to.p[k].past, p);
      return;
    }
  if (c->to.n >= MOST_NEAR && (c->to.n & (c->to.n - 1)) == 0) forget_ended(r, c);
  VEC_PUSH(r->cx, &c->to, (kl_near){key, kl_past_ref(p)});
}

static void give(kl_ordering *r, kl_channel *c, uint64_t block, kl_reach reach, kl_past *p) {
  if (reach == KL_REACH_ALL) c->all = kl_past_join(&r->clocks, c->all, p);
  if (reach >= KL_REACH_CLUSTER && r->run->blocks > 1) add_near(r, c, block / r->run->blocks << 1 | 1, p);
  add_near(r, c, block << 1, p);
}

// Is what stands there seen as written by a strong write within both scopes?
static bool is_linked(const kl_ordering *r, const kl_channel *c, uint64_t block, const kl_site *s) {
  kl_reach apart = kl_apart(r, c->block, block);
  return c->reach >= apart && s->reach >= apart;
}

static void remember_read(kl_ordering *r, kl_channel *c, uint64_t thread, kl_reach reach, kl_past *p) {
  for (size_t k = 0; k < c->read.n; k++)
    if (c->read.p[k].thread == thread && c->read.p[k].reach == reach) {
      c->read.p[k].past = kl_past_join(&r->clocks, c->read.p[k].past, p);
      return;
    }
  if (c->read.n == MOST_READ) {
    kl_past_drop(&r->clocks, c->read.p[0].past);
    memmove(c->read.p, c->read.p + 1, (--c->read.n) * sizeof *c->read.p);
  }
  VEC_RESERVE(r->cx, &c->read, c->read.n + 1);
  c->read.p[c->read.n].thread = thread;
  c->read.p[c->read.n].reach = (uint8_t)reach;
  c->read.p[c->read.n++].past = kl_past_ref(p);
}

static bool is_acquire(const kl_site *s) {
  return s->order == KL_ACQUIRE || s->order == KL_ACQ_REL;
}

static void take(kl_ordering *r, kl_order_warp *ow, uint64_t warp, unsigned lane, kl_channel *c, const kl_site *s) {
  uint64_t block = ow->t.block;
  kl_lane_more *m = more_of(r, ow, lane);
  kl_past *from[KL_REACHES] = {near(c, block << 1), near(c, block / r->run->blocks << 1 | 1), c->all};
  for (int k = 0; k < KL_REACHES; k++) {
    if (!from[k]) continue;
    if (is_acquire(s) && k <= s->reach) learn(r, ow, lane, from[k]);
    remember_read(r, c, warp << 5 | lane, (kl_reach)k, from[k]);
    m->seen[k] = kl_past_join(&r->clocks, m->seen[k], from[k]);
  }
}

static void remember_own(kl_ordering *r, kl_channel *c, uint64_t thread, kl_reach reach, kl_past *p) {
  if (c->own.n == MOST_OWN) {
    kl_past_drop(&r->clocks, c->own.p[0].past);
    memmove(c->own.p, c->own.p + 1, (--c->own.n) * sizeof *c->own.p);
  }
  VEC_RESERVE(r->cx, &c->own, c->own.n + 1);
  c->own.p[c->own.n].thread = thread;
  c->own.p[c->own.n].reach = (uint8_t)reach;
  c->own.p[c->own.n++].past = kl_past_ref(p);
}

void kl_channel_write(kl_ordering *r, kl_order_warp *ow, uint64_t warp, unsigned lane, kl_page *page, uint32_t at,
                      const kl_site *s) {
  kl_channel *c = find(page, at, s->bytes);
  kl_lane_more *m = ow->more[lane];
  bool releases = s->order == KL_RELEASE || s->order == KL_ACQ_REL, any = releases;
  uint64_t thread = warp << 5 | lane, block = ow->t.block;
  for (int k = 0; m && k < KL_REACHES; k++) any |= m->fence[k].set;
  kl_channel_overwrite(r, page, at, s->bytes, s->bytes);
  if (!c && !any) return;
  if (!c) c = make(r, page, at, s->bytes);
  if (!(s->does & KL_READS) || !is_linked(r, c, block, s)) empty(r, c);
  c->block = block;
  c->reach = s->reach;
  for (int k = 0; m && k < KL_REACHES; k++) {
    if (!m->fence[k].set) continue;
    if (!m->fence[k].past) m->fence[k].past = kl_past_of_moment(&r->clocks, &ow->t, lane, &m->fence[k].at);
    give(r, c, block, (kl_reach)k, m->fence[k].past);
  }
  for (size_t k = 0; k < c->own.n; k++)
    if (c->own.p[k].thread == thread) give(r, c, block, (kl_reach)c->own.p[k].reach, c->own.p[k].past);
  if (!releases) return;
  kl_moment now = kl_moment_take(&ow->t, lane);
  kl_past *p = kl_past_of_moment(&r->clocks, &ow->t, lane, &now);
  give(r, c, block, (kl_reach)s->reach, p);
  remember_own(r, c, thread, (kl_reach)s->reach, p);
  kl_moment_drop(&r->clocks, &now);
  kl_past_drop(&r->clocks, p);
}

void kl_channel_read(kl_ordering *r, kl_order_warp *ow, uint64_t warp, unsigned lane, kl_page *page, uint32_t at,
                     const kl_site *s) {
  kl_channel *c = find(page, at, s->bytes);
  if (!c) return;
  for (size_t k = 0; is_acquire(s) && k < c->read.n; k++)
    if (c->read.p[k].thread == (warp << 5 | lane) && c->read.p[k].reach <= s->reach)
      learn(r, ow, lane, c->read.p[k].past);
  if (is_linked(r, c, ow->t.block, s)) take(r, ow, warp, lane, c, s);
}

#include "sim/check/order/clocks.h"

#define EACH_LANE(i, mask)                                                                                             \
  for (uint32_t left_##i = (mask), i; left_##i && (i = (uint32_t)__builtin_ctz(left_##i), 1); left_##i &= left_##i - 1)

static uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// --- pasts, counted by who holds them -----------------------------------------------------------------------------

static kl_warp_past *new_warp(kl_clocks *c) {
  kl_warp_past *w = c->free_warps.n ? c->free_warps.p[--c->free_warps.n] : kl_alloc(c->cx, sizeof *w);
  w->refs = 1;
  return w;
}
static void drop_warp(kl_clocks *c, kl_warp_past *w) {
  if (w && --w->refs == 0) VEC_PUSH(c->cx, &c->free_warps, w);
}
static kl_warp_past *ref_warp(kl_warp_past *w) {
  if (w) w->refs++;
  return w;
}

static size_t block_size(const kl_clocks *c) {
  return sizeof(kl_block_past) + c->warps * sizeof(kl_warp_past *);
}
static kl_block_past *new_block(kl_clocks *c, uint32_t least) {
  kl_block_past *b = c->free_blocks.n ? c->free_blocks.p[--c->free_blocks.n] : kl_alloc(c->cx, block_size(c));
  memset(b, 0, block_size(c));
  b->refs = 1;
  b->least = least;
  return b;
}
static void drop_block(kl_clocks *c, kl_block_past *b) {
  if (!b || --b->refs) return;
  for (uint32_t k = 0; k < c->warps; k++) drop_warp(c, b->warp[k]);
  VEC_PUSH(c->cx, &c->free_blocks, b);
}
static kl_block_past *copy_block(kl_clocks *c, const kl_block_past *from) {
  kl_block_past *b = new_block(c, from ? from->least : 0);
  for (uint32_t k = 0; from && k < c->warps; k++) b->warp[k] = ref_warp(from->warp[k]);
  return b;
}

static size_t past_size(size_t cap) {
  return sizeof(kl_past) + cap * sizeof(struct kl_past_of);
}
static kl_past *new_past(kl_clocks *c, size_t cap) {
  kl_past *p = kl_alloc(c->cx, past_size(cap));
  p->refs = 1;
  p->cap = cap;
  return p;
}
void kl_past_drop(kl_clocks *c, kl_past *p) {
  if (!p || --p->refs) return;
  for (size_t k = 0; k < p->n; k++) drop_block(c, p->of[k].past);
  kl_free(c->cx, p, past_size(p->cap));
}

void kl_clocks_free(kl_clocks *c) {
  for (size_t k = 0; k < c->free_warps.n; k++) kl_free(c->cx, c->free_warps.p[k], sizeof(kl_warp_past));
  for (size_t k = 0; k < c->free_blocks.n; k++) kl_free(c->cx, c->free_blocks.p[k], block_size(c));
  VEC_FREE(c->cx, &c->free_warps);
  VEC_FREE(c->cx, &c->free_blocks);
}

// Where the block stands, or would stand.
static size_t place_of(const kl_past *p, uint64_t block) {
  size_t low = 0, high = p ? p->n : 0;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (p->of[mid].block < block)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}
static kl_block_past *find(const kl_past *p, uint64_t block) {
  size_t k = place_of(p, block);
  return p && k < p->n && p->of[k].block == block ? p->of[k].past : NULL;
}

// A past that nobody else holds, with the same content and room for `more` blocks; takes over the reference.
static kl_past *own_past(kl_clocks *c, kl_past *p, size_t more) {
  size_t n = p ? p->n : 0;
  if (p && p->refs == 1 && n + more <= p->cap) return p;
  kl_past *q = new_past(c, more ? (n + more) * 3 / 2 + 1 : n + 1);
  q->n = n;
  if (n) memcpy(q->of, p->of, n * sizeof *q->of);
  for (size_t k = 0; k < n; k++) q->of[k].past->refs++;
  kl_past_drop(c, p);
  return q;
}

// Puts a block's past, whose reference is taken over, in place of what was known.
static kl_past *put(kl_clocks *c, kl_past *p, uint64_t block, kl_block_past *b) {
  size_t k = place_of(p, block);
  bool there = p && k < p->n && p->of[k].block == block;
  p = own_past(c, p, there ? 0 : 1);
  if (there) {
    drop_block(c, p->of[k].past);
  } else {
    memmove(&p->of[k + 1], &p->of[k], (p->n - k) * sizeof *p->of);
    p->n++;
  }
  p->of[k].block = block;
  p->of[k].past = b;
  return p;
}

// --- joining ------------------------------------------------------------------------------------------------------

static bool block_covers(const kl_clocks *c, const kl_block_past *a, const kl_block_past *b) {
  if (a == b) return true;
  if (!a) return false;
  for (uint32_t k = 0; k < c->warps; k++) {
    if (a->warp[k] == b->warp[k] && (a->warp[k] || a->least >= b->least)) continue;
    for (unsigned i = 0; i < KL_LANES; i++)
      if (kl_last_known(a, k, i) < kl_last_known(b, k, i)) return false;
  }
  return true;
}

static kl_block_past *join_blocks(kl_clocks *c, const kl_block_past *a, const kl_block_past *b) {
  kl_block_past *to = new_block(c, larger(a ? a->least : 0, b->least));
  for (uint32_t k = 0; k < c->warps; k++) {
    kl_warp_past *x = a ? a->warp[k] : NULL, *y = b->warp[k];
    if (!x && !y) continue;
    if (x == y) {
      to->warp[k] = ref_warp(x);
      continue;
    }
    to->warp[k] = new_warp(c);
    for (unsigned i = 0; i < KL_LANES; i++)
      to->warp[k]->step[i] = larger(kl_last_known(a, k, i), kl_last_known(b, k, i));
  }
  return to;
}

kl_past *kl_past_join(kl_clocks *c, kl_past *a, kl_past *b) {
  if (a == b || !b) return a;
  if (!a) return kl_past_ref(b);
  for (size_t k = 0; k < b->n; k++) {
    const kl_block_past *have = find(a, b->of[k].block);
    if (block_covers(c, have, b->of[k].past)) continue;
    if (!have) {
      b->of[k].past->refs++;
      a = put(c, a, b->of[k].block, b->of[k].past);
    } else {
      a = put(c, a, b->of[k].block, join_blocks(c, have, b->of[k].past));
    }
  }
  return a;
}

// What these lanes know of their warp and have done in it, over `base`, which has all that their pasts say.
static void fill_warp(const kl_ticks *t, uint32_t lanes, const kl_block_past *base, kl_warp_past *to) {
  const kl_warp_past *last = NULL;
  for (unsigned i = 0; i < KL_LANES; i++) to->step[i] = kl_last_known(base, t->rank, i);
  EACH_LANE(i, lanes) {
    if (t->own[i] && t->own[i] != last)
      for (unsigned of = 0; of < KL_LANES; of++) to->step[of] = larger(to->step[of], t->own[i]->step[of]);
    last = t->own[i];
    to->step[i] = larger(to->step[i], t->step[i]);
  }
}

// Joins what the lanes know of others.
static kl_past *join_all(kl_clocks *c, kl_past *a, const kl_ticks *t, uint32_t lanes) {
  kl_past *last = NULL;
  if (!(lanes & ~t->alike)) lanes &= -lanes; // the first stands for all
  EACH_LANE(i, lanes) {
    if (t->past[i] != last) a = kl_past_join(c, a, t->past[i]);
    last = t->past[i];
  }
  return a;
}

// One number says it, where all lanes of all warps agree.
static void simplify(kl_clocks *c, kl_block_past *b) {
  uint32_t first = kl_last_known(b, 0, 0);
  for (uint32_t k = 0; k < c->warps; k++)
    for (unsigned i = 0; i < KL_LANES; i++)
      if (kl_last_known(b, k, i) != first) return;
  for (uint32_t k = 0; k < c->warps; k++) {
    drop_warp(c, b->warp[k]);
    b->warp[k] = NULL;
  }
  b->least = first;
}

kl_past *kl_past_gather(kl_clocks *c, kl_past *a, const kl_ticks *t, uint32_t lanes) {
  a = join_all(c, a, t, lanes);
  const kl_block_past *had = find(a, t->block);
  kl_block_past *b = copy_block(c, had);
  kl_warp_past *w = new_warp(c);
  fill_warp(t, lanes, had, w);
  drop_warp(c, b->warp[t->rank]);
  b->warp[t->rank] = w;
  return put(c, a, t->block, b);
}

// --- lanes --------------------------------------------------------------------------------------------------------

void kl_ticks_begin(kl_ticks *t, uint64_t block, uint32_t rank) {
  memset(t, 0, sizeof *t);
  t->block = block;
  t->rank = rank;
  for (unsigned i = 0; i < KL_LANES; i++) t->step[i] = 1;
  t->alike = KL_ALL_LANES;
}

// Gives the lane another past, which has `mine` of its block; takes over the references to the other two.
static void set_past(kl_clocks *c, kl_ticks *t, unsigned lane, kl_past *p, const kl_block_past *mine,
                     kl_warp_past *own) {
  kl_past_drop(c, t->past[lane]);
  drop_warp(c, t->own[lane]);
  t->alike = 0;
  t->past[lane] = p;
  t->own[lane] = own;
  t->mine[lane] = mine;
}

// These lanes have the past p, which has `mine` of their block, and nothing of their own.
static void set_pasts(kl_clocks *c, kl_ticks *t, uint32_t lanes, kl_past *p, const kl_block_past *mine) {
  const unsigned first = lanes ? (unsigned)__builtin_ctz(lanes) : 0;
  const uint32_t n = (uint32_t)__builtin_popcount(lanes);
  kl_past *past = t->past[first];
  kl_warp_past *own = t->own[first];
  if (!lanes) return;
  if (!kl_are_alike(t, lanes)) {
    EACH_LANE(i, lanes) set_past(c, t, i, kl_past_ref(p), mine, NULL);
    return;
  }
  p->refs += n;
  EACH_LANE(i, lanes) {
    t->past[i] = p;
    t->own[i] = NULL;
    t->mine[i] = mine;
  }
  t->alike = lanes;
  if (past) past->refs -= n - 1;
  if (own) own->refs -= n - 1;
  kl_past_drop(c, past);
  drop_warp(c, own);
}

void kl_ticks_end(kl_clocks *c, kl_ticks *t) {
  for (unsigned i = 0; i < KL_LANES; i++)
    if (t->past[i] || t->own[i]) set_past(c, t, i, NULL, NULL, NULL);
}

bool kl_knows_far(const kl_ticks *t, unsigned me, uint64_t block, uint32_t rank, unsigned lane, uint32_t step) {
  return kl_last_known(find(t->past[me], block), rank, lane) >= step;
}

bool kl_are_alike(kl_ticks *t, uint32_t lanes) {
  if (!(lanes & ~t->alike)) return true;
  unsigned first = (unsigned)__builtin_ctz(lanes);
  EACH_LANE(i, lanes)
  if (t->step[i] != t->step[first] || t->past[i] != t->past[first] || t->own[i] != t->own[first]) return false;
  t->alike = lanes;
  return true;
}

uint32_t kl_known_lanes(const kl_ticks *t, unsigned me, uint64_t block, uint32_t rank, uint32_t lanes, uint32_t step) {
  const kl_block_past *b = block == t->block ? t->mine[me] : find(t->past[me], block);
  const kl_warp_past *w = b ? b->warp[rank] : NULL;
  uint32_t known = 0;
  if (block == t->block && rank == t->rank && t->own[me]) w = t->own[me];
  if (!w) return b && b->least >= step ? lanes : 0;
  EACH_LANE(i, lanes) known |= (uint32_t)(w->step[i] >= step) << i;
  return known;
}

void kl_tick(kl_clocks *c, kl_ticks *t, uint32_t lanes) {
  t->alike = 0;
  EACH_LANE(i, lanes) {
    if (t->step[i] < c->last)
      t->step[i]++;
    else
      c->spent = true;
  }
}

kl_moment kl_moment_take(const kl_ticks *t, unsigned lane) {
  return (kl_moment){kl_past_ref(t->past[lane]), ref_warp(t->own[lane]), t->step[lane]};
}
void kl_moment_drop(kl_clocks *c, kl_moment *m) {
  kl_past_drop(c, m->past);
  drop_warp(c, m->own);
  *m = (kl_moment){0};
}

kl_past *kl_past_of_moment(kl_clocks *c, const kl_ticks *t, unsigned lane, const kl_moment *m) {
  const kl_block_past *had = find(m->past, t->block);
  kl_block_past *b = copy_block(c, had);
  kl_warp_past *w = new_warp(c);
  for (unsigned i = 0; i < KL_LANES; i++) w->step[i] = m->own ? m->own->step[i] : kl_last_known(had, t->rank, i);
  w->step[lane] = larger(w->step[lane], m->step);
  drop_warp(c, b->warp[t->rank]);
  b->warp[t->rank] = w;
  return put(c, kl_past_ref(m->past), t->block, b);
}

void kl_learn(kl_clocks *c, kl_ticks *t, uint32_t lanes, kl_past *p) {
  const kl_block_past *new = find(p, t->block);
  kl_past *from = NULL, *to = NULL; // lanes that knew the same know the same again
  EACH_LANE(i, lanes) {
    kl_warp_past *own = ref_warp(t->own[i]);
    if (own && new) {
      kl_warp_past *w = new_warp(c);
      for (unsigned k = 0; k < KL_LANES; k++) w->step[k] = larger(own->step[k], kl_last_known(new, t->rank, k));
      drop_warp(c, own);
      own = w;
    }
    if (!to || from != t->past[i]) {
      kl_past_drop(c, from);
      kl_past_drop(c, to);
      from = kl_past_ref(t->past[i]);
      to = kl_past_join(c, kl_past_ref(from), p);
    }
    set_past(c, t, i, kl_past_ref(to), find(to, t->block), own);
  }
  kl_past_drop(c, from);
  kl_past_drop(c, to);
}

// The next step of lanes that know the same gets the same number, and what lies before it is known.
static void align(kl_clocks *c, kl_ticks *t, uint32_t lanes, uint32_t step) {
  const uint32_t next = step < c->last ? step + 1 : step;
  if (lanes && next == step) c->spent = true;
  if (lanes == KL_ALL_LANES)
    for (unsigned i = 0; i < KL_LANES; i++) t->step[i] = next;
  else
    EACH_LANE(i, lanes) t->step[i] = next;
  t->alike = lanes;
}

static uint32_t latest(const kl_ticks *t, uint32_t lanes, uint32_t step) {
  if (!(lanes & ~t->alike)) lanes &= -lanes; // the first stands for all
  EACH_LANE(i, lanes) step = larger(step, t->step[i]);
  return step;
}

// Of lanes that are alike: what they learn is where the others are.
static void meet_alike(kl_clocks *c, kl_ticks *t, uint32_t lanes) {
  const unsigned first = (unsigned)__builtin_ctz(lanes);
  const uint32_t n = (uint32_t)__builtin_popcount(lanes), step = t->step[first];
  kl_warp_past *had = t->own[first], *w = had;
  if (!had || had->refs != n) { // else nobody but these lanes has it
    w = new_warp(c);
    w->refs = n;
    for (unsigned i = 0; i < KL_LANES; i++) w->step[i] = had ? had->step[i] : kl_last_known(t->mine[first], t->rank, i);
    if (had) had->refs -= n;
  }
  if (lanes == KL_ALL_LANES)
    for (unsigned i = 0; i < KL_LANES; i++) w->step[i] = step, t->own[i] = w;
  else
    EACH_LANE(i, lanes) w->step[i] = step, t->own[i] = w;
  align(c, t, lanes, step);
}

void kl_meet(kl_clocks *c, kl_ticks *t, uint32_t lanes) {
  if (!lanes) return;
  if (kl_are_alike(t, lanes)) {
    meet_alike(c, t, lanes);
    return;
  }
  unsigned first = (unsigned)__builtin_ctz(lanes);
  kl_past *past = join_all(c, kl_past_ref(t->past[first]), t, lanes);
  const kl_block_past *mine = find(past, t->block);
  kl_warp_past *w = new_warp(c);
  fill_warp(t, lanes, mine, w);
  uint32_t step = latest(t, lanes, 0);
  EACH_LANE(i, lanes) {
    w->step[i] = step;
    set_past(c, t, i, kl_past_ref(past), mine, ref_warp(w));
  }
  align(c, t, lanes, step);
  drop_warp(c, w);
  kl_past_drop(c, past);
}

void kl_all_meet(kl_clocks *c, kl_ticks *const *warps, const uint32_t *lanes, const uint32_t *gone, bool all,
                 kl_past *came) {
  kl_past *past = came;
  uint32_t step = 0;
  kl_block_past *b;
  for (uint32_t k = 0; k < c->warps; k++) past = join_all(c, past, warps[k], lanes[k]);
  for (uint32_t k = 0; k < c->warps; k++) step = latest(warps[k], lanes[k], step);
  const kl_block_past *had = find(past, warps[0]->block);
  b = all ? new_block(c, step) : copy_block(c, had);
  for (uint32_t k = 0; k < c->warps; k++) {
    bool apart = !all && lanes[k];
    EACH_LANE(i, gone[k]) apart |= warps[k]->used[i] > kl_last_known(had, k, i);
    if (!apart) continue;
    kl_warp_past *w = new_warp(c);
    fill_warp(warps[k], lanes[k], had, w);
    for (unsigned i = 0; i < KL_LANES; i++)
      if (lanes[k] >> i & 1 || (all && !(gone[k] >> i & 1 && warps[k]->used[i] > w->step[i]))) w->step[i] = step;
    drop_warp(c, b->warp[k]);
    b->warp[k] = w;
  }
  if (!all) simplify(c, b);
  past = put(c, past, warps[0]->block, b);
  for (uint32_t k = 0; k < c->warps; k++) {
    set_pasts(c, warps[k], lanes[k], past, b);
    align(c, warps[k], lanes[k], step);
  }
  kl_past_drop(c, past);
}

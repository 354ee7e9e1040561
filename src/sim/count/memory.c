// Accesses of a warp: sectors and bytes of global and local memory, passes over the banks of shared memory, lanes that
// meet at one address.

#include "sim/count/collect.h"
#include "sim/machine/execute.h"

// --- requests -------------------------------------------------------------------------------------------------------

static unsigned width_class(uint32_t bytes) {
  unsigned k = 0;
  while (k < 5 && 1u << k < bytes) k++;
  return k;
}

static void add_request(kiln_access_counts *a, uint32_t lanes, uint64_t asked, uint32_t width) {
  a->requests++;
  a->lanes += lanes;
  a->bytes += asked;
  a->width[width_class(width)]++;
}

// The lanes of the mask by rising address; `size`: bytes of each lane, or NULL: all have `width`.
static void gather(kl_request *r, const uint64_t *at, uint32_t mask, uint32_t width, const uint32_t *size) {
  *r = (kl_request){.width = width};
  for (; mask; mask &= mask - 1) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    uint32_t bytes = size ? size[lane] : width, k = r->n++;
    r->asked += bytes;
    for (; k > 0 && r->at[k - 1] > at[lane]; k--) r->at[k] = r->at[k - 1], r->bytes[k] = r->bytes[k - 1];
    r->at[k] = at[lane];
    r->bytes[k] = bytes;
  }
}

// --- global memory --------------------------------------------------------------------------------------------------

// Sectors of a line that are not yet told to the caches.
typedef struct pending {
  kl_count *c;
  kiln_access_counts *a;
  kl_cache_use use;
  uint32_t multiprocessor;
  uint64_t line;
  uint8_t sectors;
} pending;

static void flush(pending *p) {
  if (p->sectors && p->c)
    kl_caches_use(&p->c->caches, p->multiprocessor, p->line, p->sectors, p->use, &p->a->l1_hits, &p->a->l2_hits);
  p->sectors = 0;
}

static void put_sector(pending *p, uint64_t sector) {
  if (sector / 4 != p->line) flush(p);
  p->line = sector / 4;
  p->sectors |= (uint8_t)(1u << sector % 4);
  p->a->sectors++;
}

static void mark(kl_count *c, const kiln_access_counts *a, uint64_t from, uint64_t to) {
  bool atomic = a->kind == KILN_ACCESS_GLOBAL_ATOMIC, store = a->kind == KILN_ACCESS_GLOBAL_STORE;
  if (c) kl_footprint_mark(&c->footprint, from, to - from, !store, store || atomic);
}

static void count_global(kl_count *c, const kl_site *s, kiln_access_counts *a, const kl_request *r,
                         uint32_t multiprocessor) {
  pending p = {.c = c, .a = a, .use = s ? (kl_cache_use)s->use : KL_USE_LOAD, .multiprocessor = multiprocessor};
  uint64_t end = 0, run = r->at[0], next = 0, unique = 0;
  for (uint32_t k = 0; k < r->n; k++) {
    uint64_t from = r->at[k], to = from + r->bytes[k];
    if (from > end && end) {
      mark(c, a, run, end);
      run = from;
    }
    if (to <= end) continue;
    unique += to - (from > end ? from : end);
    for (uint64_t n = from / KL_SECTOR > next ? from / KL_SECTOR : next; n < (to + KL_SECTOR - 1) / KL_SECTOR; n++)
      put_sector(&p, n);
    next = (to + KL_SECTOR - 1) / KL_SECTOR;
    end = to;
  }
  flush(&p);
  if (end) mark(c, a, run, end);
  a->unique_bytes += unique;
  a->ideal_sectors += (unique + KL_SECTOR - 1) / KL_SECTOR;
  add_request(a, r->n, r->asked, r->width);
}

// --- local memory ---------------------------------------------------------------------------------------------------

// A word of each of the 32 lanes lies beside the same word of the next lane, for each warp that a multiprocessor runs.
static uint64_t physical(uint64_t at, unsigned lane, uint32_t multiprocessor, uint32_t warp) {
  uint64_t of_warp = (uint64_t)KL_MOST_STACK * KL_LANES, base = (uint64_t)1 << 60;
  return base + (multiprocessor * (uint64_t)KL_LANES + warp) * of_warp + (at / 4 * KL_LANES + lane) * 4 + at % 4;
}

static void count_local(kl_count *c, kiln_access_counts *a, const kl_request *r, const uint64_t *lane_at, uint32_t mask,
                        uint32_t multiprocessor, uint32_t warp) {
  uint64_t sectors[KL_LANES * 8];
  uint32_t n = 0, words = (r->width + 3) / 4;
  // Words of one number first: those of neighbouring lanes are neighbours.
  for (uint32_t word = 0; word < words; word++)
    for (uint32_t left = mask; left; left &= left - 1) {
      unsigned lane = (unsigned)__builtin_ctz(left);
      uint64_t sector = physical(lane_at[lane] % KL_WINDOW + word * 4, lane, multiprocessor, warp) / KL_SECTOR;
      uint32_t k = n;
      while (k > 0 && sectors[k - 1] > sector) k--;
      if (k > 0 && sectors[k - 1] == sector) continue;
      memmove(sectors + k + 1, sectors + k, (n - k) * sizeof *sectors);
      sectors[k] = sector;
      n++;
    }
  pending p = {.c = c,
               .a = a,
               .use = a->kind == KILN_ACCESS_LOCAL_STORE ? KL_USE_LOCAL_STORE : KL_USE_LOAD,
               .multiprocessor = multiprocessor};
  for (uint32_t k = 0; k < n; k++) put_sector(&p, sectors[k]);
  flush(&p);
  a->unique_bytes += r->asked;
  a->ideal_sectors += (r->asked + KL_SECTOR - 1) / KL_SECTOR;
  add_request(a, r->n, r->asked, r->width);
}

// --- shared memory --------------------------------------------------------------------------------------------------

enum { BANKS = 32 };

// Different words that a group of lanes asks of each bank.
typedef struct banks {
  uint64_t word[BANKS][KL_LANES * 2];
  uint8_t n[BANKS], times[BANKS]; // times: with equal words counted each
  uint32_t words;
} banks;

static void put_word(banks *b, uint64_t word) {
  unsigned bank = word % BANKS;
  b->times[bank]++;
  for (unsigned k = 0; k < b->n[bank]; k++)
    if (b->word[bank][k] == word) return;
  b->word[bank][b->n[bank]++] = word;
  b->words++;
}

static uint64_t most_of(const uint8_t *n) {
  uint64_t most = 0;
  for (unsigned k = 0; k < BANKS; k++) most = n[k] > most ? n[k] : most;
  return most;
}

static bool is_one_place(const uint64_t *at, uint32_t mask) {
  uint64_t first = at[__builtin_ctz(mask)], other = 0;
  for (; mask; mask &= mask - 1) other |= at[__builtin_ctz(mask)] ^ first;
  return other == 0;
}

static bool is_remote(const uint64_t *at, uint32_t mask) {
  uint64_t all = 0;
  for (; mask; mask &= mask - 1) all |= at[__builtin_ctz(mask)];
  return all >> 32 != 0;
}

// Lanes of up to 4 bytes go together; of 8 each half of the warp, of 16 each quarter, but all of a load at one place. A
// pass serves each bank one word, which goes to all lanes that want it; atomics want it one after the other.
static void count_shared(kiln_access_counts *a, const uint64_t *at, uint32_t mask, uint32_t bytes) {
  uint32_t words = bytes <= 4 ? 1 : bytes / 4, lanes = words < BANKS ? BANKS / words : 1;
  uint64_t asked = (uint64_t)__builtin_popcount(mask) * bytes;
  if (a->kind == KILN_ACCESS_SHARED_LOAD && is_one_place(at, mask)) lanes = KL_LANES;
  for (uint32_t first = 0; first < KL_LANES; first += lanes) {
    uint32_t group = mask >> first & (lanes == 32 ? KL_ALL_LANES : (1u << lanes) - 1);
    banks b;
    if (!group) continue;
    memset(b.n, 0, sizeof b.n), memset(b.times, 0, sizeof b.times), b.words = 0;
    for (; group; group &= group - 1) {
      uint64_t from = at[first + (unsigned)__builtin_ctz(group)] / 4;
      for (uint32_t k = 0; k < words; k++) put_word(&b, from + k);
    }
    a->wavefronts += most_of(a->kind == KILN_ACCESS_SHARED_ATOMIC ? b.times : b.n);
    a->ideal_wavefronts += (b.words + BANKS - 1) / BANKS;
  }
  a->remote += is_remote(at, mask);
  add_request(a, (uint32_t)__builtin_popcount(mask), asked, bytes);
}

// --- atomics --------------------------------------------------------------------------------------------------------

static void count_atomic(kl_count *c, kiln_access_counts *a, const kl_request *r) {
  for (uint32_t k = 0, same = 1; k < r->n; k++, same++) {
    if (k + 1 < r->n && r->at[k + 1] == r->at[k]) continue;
    a->addresses++;
    if (same > a->most_on_one) a->most_on_one = same;
    same = 0;
    if (a->kind == KILN_ACCESS_GLOBAL_ATOMIC) kl_hot_add(c->cx, &c->hot, r->at[k]);
  }
}

// --- all of them ----------------------------------------------------------------------------------------------------

void kl_count_request(kl_count *c, const kl_site *s, const kl_warp *w, kiln_access_counts *a, const uint64_t *at,
                      uint32_t mask, uint32_t width, const uint32_t *size) {
  uint32_t multiprocessor = c ? (uint32_t)(w->block->number % c->gpu->multiprocessors) : 0;
  kl_request r;
  if (a->kind == KILN_ACCESS_SHARED_LOAD || a->kind == KILN_ACCESS_SHARED_STORE) {
    count_shared(a, at, mask, width);
    return;
  }
  gather(&r, at, mask, width, size);
  switch (a->kind) {
  case KILN_ACCESS_SHARED_ATOMIC: count_shared(a, at, mask, width); break;
  case KILN_ACCESS_LOCAL_LOAD:
  case KILN_ACCESS_LOCAL_STORE: count_local(c, a, &r, at, mask, multiprocessor, w->rank); break;
  case KILN_ACCESS_CONSTANT: add_request(a, r.n, r.asked, width); break;
  default: count_global(c, s, a, &r, multiprocessor);
  }
  if (a->kind == KILN_ACCESS_GLOBAL_ATOMIC || a->kind == KILN_ACCESS_SHARED_ATOMIC) count_atomic(c, a, &r);
}

// --- what the machine tells -----------------------------------------------------------------------------------------

static kiln_access_counts *counts_of(kl_count *c, kl_site *s, kiln_access_kind kind) {
  if (!s->accesses[kind]) {
    s->accesses[kind] = KL_NEW(c->arena, kiln_access_counts);
    s->accesses[kind]->kind = kind;
  }
  return s->accesses[kind];
}

typedef enum space { GLOBAL, LOCAL, SHARED, CONSTANT, NOWHERE } space;

static space space_of(const kl_site *s, const kl_sim_access *m, uint64_t at) {
  switch ((kl_where)m->where) {
  case KL_AT_GLOBAL: return s->is_const ? CONSTANT : GLOBAL;
  case KL_AT_SHARED: return SHARED;
  case KL_AT_STACK: return s->is_param ? NOWHERE : LOCAL; // a function's parameters are registers
  case KL_AT_PARAM: return CONSTANT;
  case KL_AT_GENERIC: break;
  }
  if (at >= KL_DEVICE_MEMORY || at >= KL_CODE_WINDOW) return GLOBAL;
  return at >= KL_PARAM_WINDOW ? CONSTANT : at >= KL_LOCAL_WINDOW ? LOCAL : at >= KL_SHARED_WINDOW ? SHARED : GLOBAL;
}

static kiln_access_kind kind_of(space where, bool store, bool atomic) {
  unsigned way = atomic ? 2 : store;
  switch (where) {
  case GLOBAL: return (kiln_access_kind)(KILN_ACCESS_GLOBAL_LOAD + way);
  case LOCAL: return store ? KILN_ACCESS_LOCAL_STORE : KILN_ACCESS_LOCAL_LOAD;
  case SHARED: return (kiln_access_kind)(KILN_ACCESS_SHARED_LOAD + way);
  default: return KILN_ACCESS_CONSTANT;
  }
}

// In the block's own shared memory; beyond 2^32 in that of another one of the cluster.
static void place_shared(const kl_block *b, const uint64_t *at, uint32_t mask, uint64_t *to) {
  for (; mask; mask &= mask - 1) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    uint64_t address = at[lane] % KL_WINDOW, rank = address / KL_SHARED_RANK;
    bool other = rank > 0 && rank - 1 != b->rank;
    to[lane] = address % KL_SHARED_RANK + (other ? rank << 32 : 0);
  }
}

static void count_space(kl_count *c, kl_site *s, kl_warp *w, const kl_sim_access *m, const uint64_t *at, uint32_t mask,
                        const uint32_t *size, space where, bool atomic) {
  if (where == NOWHERE) return;
  kiln_access_kind kind = kind_of(where, m->store, atomic);
  uint32_t width = (uint32_t)m->bytes * m->count;
  uint64_t shared[KL_LANES];
  if (where == SHARED) {
    place_shared(w->block, at, mask, shared);
    at = shared;
  }
  kl_count_request(c, s, w, counts_of(c, s, kind), at, mask, width, size);
  if (s->movable && where != CONSTANT && mask == w->x.mask) kl_sinks_load(c, s, w, kind, at, width);
}

// Bytes that the lanes of a copy take from its source; NULL: all. Lanes that take none do not access it.
static const uint32_t *copied(const kl_lanes *x, const kl_sim_op *op, const kl_sim_access *m, uint32_t *mask,
                              uint32_t size[KL_LANES]) {
  if (op->run != kl_x_copy_async) return NULL;
  const kl_copy *copy = (const kl_copy *)(uintptr_t)op->imm;
  if (m != &copy->from || copy->size == KL_NO_REF) return NULL;
  const uint32_t *given = AT(uint32_t, copy->size);
  for (unsigned i = 0; i < KL_LANES; i++) {
    size[i] = given[i] < m->bytes ? given[i] : m->bytes;
    if (size[i] == 0) *mask &= ~(1u << i);
  }
  return size;
}

void kl_count_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  kl_count *c = (kl_count *)o;
  const kl_code *code = w->strand.frame->code;
  kl_site *s = &c->functions[code->function].sites[op->index];
  if (kl_is_keeping(code, (uint32_t)(op - code->ops))) return;
  uint32_t size[KL_LANES], left = w->x.mask;
  const uint32_t *sizes = copied(&w->x, op, m, &left, size);
  bool atomic = op->run == kl_x_atomic;
  while (left) {
    space where = space_of(s, m, p->address[__builtin_ctz(left)]);
    uint32_t mask = left;
    if (m->where == KL_AT_GENERIC)
      for (uint32_t k = left; k; k &= k - 1)
        if (space_of(s, m, p->address[__builtin_ctz(k)]) != where) mask &= ~(k & -k);
    count_space(c, s, w, m, p->address, mask, sizes, where, atomic);
    left &= ~mask;
  }
}

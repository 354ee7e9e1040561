// Findings: which threads, and each pair of lines once.

#include "sim/check/order/state.h"

kl_found_at kl_found_thread(const kl_ordering *r, uint64_t block, uint32_t rank, unsigned lane, const kl_code *code,
                            const kl_sim_op *op) {
  const kl_run_state *run = r->run;
  uint64_t cluster = block / run->blocks;
  uint32_t in = (uint32_t)(block % run->blocks), t = rank * KL_LANES + lane;
  uint32_t across = run->grid[0] / run->cluster[0], down = run->grid[1] / run->cluster[1];
  uint32_t id[3] = {(uint32_t)(cluster % across), (uint32_t)(cluster / across % down),
                    (uint32_t)(cluster / across / down)};
  uint32_t at[3] = {in % run->cluster[0], in / run->cluster[0] % run->cluster[1],
                    in / run->cluster[0] / run->cluster[1]};
  kl_found_at f = {.func = code->func,
                   .instr = op && code->func->ninstrs ? &code->func->instrs[op->index] : NULL,
                   .thread = {t % run->block[0], t / run->block[0] % run->block[1], t / run->block[0] / run->block[1]}};
  for (int d = 0; d < 3; d++) f.block[d] = id[d] * run->cluster[d] + at[d];
  return f;
}

static kl_found_at thread_of(const kl_ordering *r, const kl_seen *x, unsigned lane) {
  const kl_site *s = &r->sites.p[x->site];
  return kl_found_thread(r, x->warp >> r->warp_bits, (uint32_t)(x->warp & (((uint64_t)1 << r->warp_bits) - 1)), lane,
                         s->code, &s->code->ops[s->op]);
}

enum { A_READ, A_WRITE, AN_ATOMIC, A_COPY, KINDS };
static int kind_of(const kl_site *s) {
  if (s->unfinished) return A_COPY;
  return s->does == KL_READS ? A_READ : s->does == KL_WRITES ? A_WRITE : AN_ATOMIC;
}
static const char *const details[KINDS][KINDS] = {
    // by the later one, then by the earlier one
    [A_READ] = {NULL, "a read after a write", "a read after an atomic operation",
                "a read of what cp.async may not have written yet"},
    [A_WRITE] = {"a write after a read", "a write after a write", "a write after an atomic operation",
                 "a write to what cp.async may still copy"},
    [AN_ATOMIC] = {"an atomic operation after a read", "an atomic operation after a write",
                   "an atomic operation within another one's reach, but not the other way",
                   "an atomic operation on what cp.async may still copy"},
    [A_COPY] = {"cp.async after a read", "cp.async after a write", "cp.async after an atomic operation",
                "cp.async after another one"},
};

static kl_pair *pair_slot(const kl_ordering *r, uint32_t x, uint32_t y) {
  size_t k = (size_t)((((uint64_t)x << 32 | y) * 0x9e3779b97f4a7c15) >> 32) & (r->pair_slots - 1);
  while (r->pairs[k].index && (r->pairs[k].x != x || r->pairs[k].y != y)) k = (k + 1) & (r->pair_slots - 1);
  return &r->pairs[k];
}

static void grow_pairs(kl_ordering *r) {
  size_t had = r->pair_slots;
  kl_pair *old = r->pairs;
  r->pair_slots = had ? had * 2 : 256;
  r->pairs = kl_alloc(r->cx, r->pair_slots * sizeof *r->pairs);
  for (size_t k = 0; k < had; k++)
    if (old[k].index) *pair_slot(r, old[k].x, old[k].y) = old[k];
  if (old) kl_free(r->cx, old, had * sizeof *old);
}

// Which of the two comes first is a matter of timing: a pair is one finding either way.
static kl_pair *pair_of(kl_ordering *r, const kl_seen *x, const kl_seen *y) {
  uint32_t low = x->site < y->site ? x->site : y->site, high = x->site < y->site ? y->site : x->site;
  if (2 * r->npairs >= r->pair_slots) grow_pairs(r);
  kl_pair *p = pair_slot(r, low, high);
  p->x = low;
  p->y = high;
  return p;
}

bool kl_found_again(kl_ordering *r, const kl_seen *x, const kl_seen *y) {
  const kl_pair *p = pair_of(r, x, y);
  if (p->index && p->index <= r->report->found.n) r->report->found.p[p->index - 1].times++;
  return p->index;
}

void kl_found_race(kl_ordering *r, const kl_race *u) {
  if (kl_found_again(r, &u->x, &u->y)) return;
  kl_found f = {.kind = KL_FOUND_RACE,
                .at = thread_of(r, &u->y, u->ylane),
                .other = thread_of(r, &u->x, u->xlane),
                .spot = u->spot,
                .value = u->value,
                .value_bytes = u->value_bytes,
                .detail = details[kind_of(&r->sites.p[u->y.site])][kind_of(&r->sites.p[u->x.site])]};
  f.at.calls = u->calls;
  size_t before = r->report->found.n;
  kl_report_add(r->cx, r->report, &f);
  pair_of(r, &u->x, &u->y)->index = r->report->found.n > before ? before + 1 : UINT64_MAX;
  r->npairs++;
}

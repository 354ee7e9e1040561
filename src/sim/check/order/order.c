// The observer: what its launch consists of, and who is told of what.

#include "sim/check/order/state.h"

// --- blocks -------------------------------------------------------------------------------------------------------

static size_t slot_of(const kl_block *b) {
  return (size_t)(((uint64_t)(uintptr_t)b * 0x9e3779b97f4a7c15) >> 40) % KL_BLOCK_TABLE;
}

kl_order_block *kl_order_block_of(kl_ordering *r, const kl_block *b) {
  if (r->last && r->last->of == b) return r->last;
  kl_order_block *ob = r->blocks[slot_of(b)];
  while (ob && ob->of != b) ob = ob->next;
  return ob ? r->last = ob : NULL;
}

bool kl_order_lives(const kl_ordering *r, uint64_t block) {
  for (size_t k = 0; k < KL_BLOCK_TABLE; k++)
    for (const kl_order_block *b = r->blocks[k]; b; b = b->next)
      if (b->number == block) return true;
  return false;
}

static kl_order_block *new_block(kl_ordering *r) {
  kl_order_block *b = r->free_blocks;
  if (b) {
    r->free_blocks = b->next;
    return b;
  }
  b = kl_alloc(r->cx, sizeof *b);
  b->warps = kl_alloc(r->cx, r->warps * sizeof *b->warps);
  b->nshared = ((size_t)r->run->shared_bytes + KL_PAGE_BYTES - 1) / KL_PAGE_BYTES;
  if (b->nshared) b->shared = kl_alloc(r->cx, b->nshared * sizeof *b->shared);
  for (int k = 0; k < KL_BARRIERS; k++) b->arrivals[k].come = kl_alloc(r->cx, r->warps * sizeof(uint32_t));
  return b;
}

static void empty_warp(kl_ordering *r, kl_order_warp *w) {
  kl_ticks_end(&r->clocks, &w->t);
  for (unsigned i = 0; i < KL_LANES; i++)
    if (w->more[i]) kl_lane_more_free(r, w->more[i]);
  memset(w->more, 0, sizeof w->more);
  memset(w->group, 0, sizeof w->group);
  memset(w->arrive, 0, sizeof w->arrive);
  memset(w->arrivals, 0, sizeof w->arrivals);
  memset(w->meetings, 0, sizeof w->meetings);
  w->copying.n = w->unchecked.n = 0;
}

static void end_block(kl_ordering *r, kl_order_block *b, bool failed) {
  kl_remote_end(r, b, failed);
  b->meetings = 0;
  for (uint32_t k = 0; k < r->warps; k++) empty_warp(r, &b->warps[k]);
  for (size_t k = 0; k < b->nshared; k++)
    if (b->shared[k]) kl_page_clear(r, b->shared[k]);
  for (int k = 0; k < KL_BARRIERS; k++) {
    kl_past_drop(&r->clocks, b->arrivals[k].came);
    memset(b->arrivals[k].come, 0, r->warps * sizeof(uint32_t));
    b->arrivals[k] = (kl_arrivals){.come = b->arrivals[k].come};
  }
  kl_past_drop(&r->clocks, b->cluster_came);
  kl_past_drop(&r->clocks, b->cluster_past);
  b->cluster_came = b->cluster_past = NULL;
}

static void free_block(kl_ordering *r, kl_order_block *b) {
  for (uint32_t k = 0; k < r->warps; k++) {
    VEC_FREE(r->cx, &b->warps[k].copying);
    VEC_FREE(r->cx, &b->warps[k].unchecked);
  }
  kl_free(r->cx, b->warps, r->warps * sizeof *b->warps);
  for (size_t k = 0; k < b->nshared; k++) kl_page_free(r, b->shared[k]);
  if (b->shared) kl_free(r->cx, b->shared, b->nshared * sizeof *b->shared);
  for (int k = 0; k < KL_BARRIERS; k++) kl_free(r->cx, b->arrivals[k].come, r->warps * sizeof(uint32_t));
  kl_free(r->cx, b, sizeof *b);
}

// --- instructions -------------------------------------------------------------------------------------------------

static uint32_t add_site(kl_ordering *r, const kl_code *code, uint32_t op, const kl_sim_access *m, bool atomic) {
  kl_site s = {.code = code,
               .op = op,
               .does = (uint8_t)(atomic     ? KL_READS | KL_WRITES
                                 : m->store ? KL_WRITES
                                            : KL_READS),
               .bytes = m->bytes,
               .width = (uint8_t)__builtin_ctz((unsigned)m->bytes * m->count),
               .order = m->order,
               .reach = (uint8_t)kl_reach_of(m->scope),
               .strong = m->order != KL_WEAK};
  VEC_PUSH(r->cx, &r->sites, s);
  return (uint32_t)r->sites.n - 1;
}

// One side of cp.async: the unfinished one.
static uint32_t add_copy(kl_ordering *r, const kl_code *code, uint32_t op, const kl_sim_access *m) {
  uint32_t site = add_site(r, code, op, m, false), finished = add_site(r, code, op, m, false);
  r->sites.p[site].unfinished = true;
  r->sites.p[site].finished = finished;
  return site;
}

static void access_op(kl_ordering *r, const kl_code *code, uint32_t k, kl_order_op *to) {
  const kl_sim_op *op = &code->ops[k];
  const void *imm = (const void *)(uintptr_t)op->imm;
  to->deed = KL_DEED_ACCESS;
  if (op->run != kl_x_copy_async) {
    to->number = add_site(r, code, k, imm, op->run == kl_x_atomic);
    return;
  }
  const kl_copy *c = imm;
  to->number = add_copy(r, code, k, &c->from);
  to->target = add_copy(r, code, k, &c->to);
}

static unsigned class_of(const kl_site *s) {
  return s->strong || s->unfinished ? 2 : s->does == KL_READS ? 0 : 1;
}

// Plain ones first, and of these such that only read.
static void sort_sites(kl_ordering *r) {
  uint32_t n = (uint32_t)r->sites.n, count = 0;
  kl_site *sorted = kl_alloc(r->cx, (n + 1) * sizeof *sorted);
  uint32_t *to = kl_alloc(r->cx, (n + 1) * sizeof *to);
  for (unsigned class = 0; class < 3; class ++) {
    for (uint32_t k = 0; k < n; k++) {
      if (class_of(&r->sites.p[k]) != class) continue;
      to[k] = count;
      sorted[count++] = r->sites.p[k];
    }
    if (class == 0) r->plain_reads = count;
    if (class == 1) r->plain = count;
  }
  for (uint32_t k = 0; k < n; k++) {
    r->sites.p[k] = sorted[k];
    r->sites.p[k].finished = to[sorted[k].finished];
  }
  for (size_t f = 0; f < r->nfuncs; f++)
    for (size_t k = 0; k < r->nops[f]; k++) {
      kl_order_op *op = &r->ops[f][k];
      if (op->deed != KL_DEED_ACCESS) continue;
      op->number = to[op->number];
      op->target = to[op->target];
    }
  kl_free(r->cx, sorted, (n + 1) * sizeof *sorted);
  kl_free(r->cx, to, (n + 1) * sizeof *to);
}

static void fence_op(const kl_ptx_instr *i, kl_order_op *to) {
  if (kl_isa_has(i, "proxy") || kl_isa_has(i, "mbarrier_init")) return;
  to->deed = KL_DEED_FENCE;
  to->acquires = !kl_isa_has(i, "release");
  to->releases = !kl_isa_has(i, "acquire");
  to->reach = kl_isa_has(i, "cta") ? KL_REACH_BLOCK : kl_isa_has(i, "cluster") ? KL_REACH_CLUSTER : KL_REACH_ALL;
}

static void instruction(const kl_ptx_instr *i, const kl_sim_op *op, kl_order_op *to) {
  to->aligned = kl_str_is(i->opcode, "bar") || kl_isa_has(i, "aligned");
  if (op->run == kl_x_nothing && (kl_str_is(i->opcode, "membar") || kl_str_is(i->opcode, "fence"))) fence_op(i, to);
  if (op->run == kl_x_cluster_arrive) {
    to->deed = KL_DEED_CLUSTER_ARRIVE;
    to->releases = !kl_isa_has(i, "relaxed");
  }
  if (op->run == kl_x_cluster_wait) {
    to->deed = KL_DEED_CLUSTER_WAIT;
    to->acquires = true;
  }
}

static void order_op(kl_ordering *r, const kl_code *code, uint32_t k, kl_order_op *to) {
  const kl_sim_op *op = &code->ops[k];
  kl_run *run = op->run;
  if (run == kl_x_load || run == kl_x_store || run == kl_x_atomic || run == kl_x_copy_async) access_op(r, code, k, to);
  if (run == kl_x_exit) to->deed = KL_DEED_EXIT;
  if (run == kl_x_copy_commit) to->deed = KL_DEED_COMMIT;
  if (run == kl_x_copy_wait) {
    to->deed = KL_DEED_WAIT;
    to->number = (uint32_t)op->imm;
  }
  if (run == kl_x_warp_sync || run == kl_x_shuffle || run == kl_x_vote || run == kl_x_match || run == kl_x_redux ||
      run == kl_x_elect || run == kl_x_matrices)
    to->deed = KL_DEED_COLLECTIVE;
  if (code->forms[k] && code->func->ninstrs) instruction(&code->func->instrs[op->index], op, to);
}

static unsigned bits_for(uint64_t n) { // numbers below n
  unsigned k = 0;
  while (k < 63 && ((uint64_t)1 << k) < n) k++;
  return k;
}

static void begin_launch(kl_ordering *r, kl_run_state *run) {
  const kl_kernel *kernel = run->kernel;
  size_t n = kernel->of->ptx->nfuncs;
  r->begun = true;
  r->run = run;
  r->nfuncs = n;
  r->warps = run->warps;
  r->ops = kl_alloc(r->cx, n * sizeof *r->ops);
  r->nops = kl_alloc(r->cx, n * sizeof *r->nops);
  for (size_t f = 0; f < n; f++) {
    const kl_code *code = kernel->codes[f];
    if (!code) continue;
    r->nops[f] = code->nops;
    r->ops[f] = kl_alloc(r->cx, r->nops[f] * sizeof **r->ops);
    for (uint32_t k = 0; k < code->nops; k++) order_op(r, code, k, &r->ops[f][k]);
  }
  sort_sites(r);
  r->site_bits = bits_for(r->sites.n + 1);
  r->warp_bits = bits_for(run->warps);
  unsigned thread = 5 + r->warp_bits + bits_for(run->clusters * run->blocks), left = 63 - r->site_bits;
  r->step_bits = left > thread ? left - thread : 0;
  if (r->step_bits > 32) r->step_bits = 32;
  if (r->step_bits < 8 || !(r->checks & KL_ORDER_RACES)) r->blind = true;
  r->clocks = (kl_clocks){.cx = r->cx, .warps = run->warps, .last = (uint32_t)(((uint64_t)1 << r->step_bits) - 1)};
}

// --- what is told -------------------------------------------------------------------------------------------------

static void on_begin(kl_observer *o, kl_block *b) {
  kl_ordering *r = kl_order_of(o);
  if (!r->begun) begin_launch(r, b->run);
  kl_order_block *ob = new_block(r);
  ob->of = b;
  ob->number = b->number;
  ob->next = r->blocks[slot_of(b)];
  r->blocks[slot_of(b)] = ob;
  for (uint32_t k = 0; k < b->nwarps; k++) kl_ticks_begin(&ob->warps[k].t, b->number, k);
}

static void on_end(kl_observer *o, kl_block *b) {
  kl_ordering *r = kl_order_of(o);
  kl_order_block **p = &r->blocks[slot_of(b)], *ob;
  while (*p && (*p)->of != b) p = &(*p)->next;
  if (!(ob = *p)) return;
  if (r->checks & KL_ORDER_SYNC) kl_misuse_end(r, ob, b);
  for (uint32_t k = 0; k < r->warps; k++) kl_race_end(r, &ob->warps[k]);
  *p = ob->next;
  end_block(r, ob, b->alive > 0);
  r->last = NULL;
  ob->of = NULL;
  ob->next = r->free_blocks;
  r->free_blocks = ob;
}

static void do_deed(kl_ordering *r, kl_warp *w, const kl_sim_op *op, const kl_order_op *how) {
  kl_order_block *ob = kl_order_block_of(r, w->block);
  kl_order_warp *ow = &ob->warps[w->rank];
  uint32_t lanes = w->x.mask;
  switch ((kl_deed)how->deed) {
  case KL_DEED_NONE:
  case KL_DEED_ACCESS:
  case KL_DEED_EXIT: break;
  case KL_DEED_FENCE:
    if (r->checks & KL_ORDER_RACES) kl_fence(r, ow, lanes, how);
    break;
  case KL_DEED_COMMIT: KL_EACH_LANE(i, lanes) ow->group[i]++; break;
  case KL_DEED_WAIT: kl_race_copied(r, ow, ob->number << r->warp_bits | w->rank, lanes, how->number); break;
  case KL_DEED_CLUSTER_ARRIVE: kl_sync_cluster_arrive(r, w, op, how); break;
  case KL_DEED_CLUSTER_WAIT: kl_sync_cluster_wait(r, w, op, how); break;
  case KL_DEED_COLLECTIVE:
    if (r->checks & KL_ORDER_SYNC) kl_misuse_collective(r, w, op);
    break;
  }
}

static void on_step(kl_observer *o, kl_warp *w, const kl_sim_op *op) {
  kl_ordering *r = kl_order_of(o);
  const kl_order_op *how = kl_order_op_of(r, w, op);
  if (__builtin_expect(how->deed > KL_DEED_ACCESS, false)) do_deed(r, w, op, how);
}

kl_observer *kl_order_new(kl_ctx *cx, kl_report *report, unsigned checks) {
  kl_ordering *r = kl_alloc(cx, sizeof *r);
  r->observer = (kl_observer){.begin = on_begin,
                              .end = on_end,
                              .step = on_step,
                              .seldom = true,
                              .arrive = kl_sync_arrive,
                              .open = kl_sync_open,
                              .open_cluster = kl_sync_open_cluster,
                              .meet = kl_sync_meet,
                              .fault = kl_misuse_fault};
  if (checks & KL_ORDER_RACES) r->observer.access = kl_race_access;
  r->cx = cx;
  r->report = report;
  r->checks = checks;
  return &r->observer;
}

void kl_order_free(kl_observer *o) {
  if (!o) return;
  kl_ordering *r = kl_order_of(o);
  for (size_t k = 0; k < KL_BLOCK_TABLE; k++)
    while (r->blocks[k]) {
      kl_order_block *b = r->blocks[k];
      r->blocks[k] = b->next;
      end_block(r, b, true);
      free_block(r, b);
    }
  while (r->free_blocks) {
    kl_order_block *b = r->free_blocks;
    r->free_blocks = b->next;
    free_block(r, b);
  }
  kl_pages_free(r);
  if (r->begun) {
    kl_clocks_free(&r->clocks);
    size_t n = r->nfuncs;
    for (size_t f = 0; f < n; f++)
      if (r->ops[f]) kl_free(r->cx, r->ops[f], r->nops[f] * sizeof **r->ops);
    kl_free(r->cx, r->ops, n * sizeof *r->ops);
    kl_free(r->cx, r->nops, n * sizeof *r->nops);
  }
  VEC_FREE(r->cx, &r->sites);
  if (r->pairs) kl_free(r->cx, r->pairs, r->pair_slots * sizeof *r->pairs);
  kl_free(r->cx, r, sizeof *r);
}

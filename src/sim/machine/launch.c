// Launches: blocks over the host's threads, a cluster at a time.

#include "sim/lanes/lanes.h"
#include "sim/machine/map.h"
#include "sim/machine/observe.h"

#include <fenv.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_RESIDENT = 1024, FIRST_ROUNDS = 64 };

// --- faults -------------------------------------------------------------------------------------------------------

void kl_thread_of(const kl_warp *w, unsigned lane, uint32_t block[3], uint32_t thread[3]) {
  const uint32_t *size = w->block->run->block;
  uint32_t t = w->rank * KL_LANES + lane;
  memcpy(block, w->block->id, sizeof w->block->id);
  thread[0] = t % size[0];
  thread[1] = t / size[0] % size[1];
  thread[2] = t / size[0] / size[1];
}

static void fail(kl_warp *w, const kl_sim_op *o, kl_fault_kind kind, unsigned lane, uint64_t address, kl_spot spot) {
  kl_run_state *run = w->block->run;
  kl_fault f = {.kind = kind,
                .func = w->strand.frame->code->func,
                .instr = kl_instr_of(w, o),
                .address = address,
                .spot = spot,
                .calls = kl_calls_of(w->strand.frame)};
  kl_thread_of(w, lane, f.block, f.thread);
  pthread_mutex_lock(&run->lock);
  if (w->block->number < atomic_load(&run->failed_block)) {
    atomic_store(&run->failed_block, w->block->number);
    run->fault = f;
  }
  pthread_mutex_unlock(&run->lock);
  KL_TELL(w->block, fault, w, o, &f);
  kl_stop(w);
}

void kl_faulted(kl_warp *w, const kl_sim_op *o, kl_fault_kind kind, unsigned lane, uint64_t address) {
  fail(w, o, kind, lane, address, (kl_spot){0});
}

void kl_access_faulted(kl_warp *w, const kl_sim_op *o, kl_fault_kind kind, unsigned lane, const kl_sim_access *m,
                       uint64_t address) {
  fail(w, o, kind, lane, address, kl_spot_of(w, m->where, address, (uint64_t)m->bytes * m->count));
}

static const char *const fault_texts[] = {
    [KL_FAULT_NONE] = "no fault",
    [KL_FAULT_ADDRESS] = "an address with no memory behind it",
    [KL_FAULT_MISALIGNED] = "a misaligned address",
    [KL_FAULT_READ_ONLY] = "a store to what is read-only",
    [KL_FAULT_STACK] = "a call too deep for the stack",
    [KL_FAULT_TARGET] = "an indirect branch or call to nowhere",
    [KL_FAULT_BARRIER] = "a barrier that does not exist, or a thread count that is no multiple of 32",
    [KL_FAULT_TRAP] = "a trap",
    [KL_FAULT_DEADLOCK] = "threads that wait for one another for ever",
    [KL_FAULT_TIME] = "more branches than the launch allows",
    [KL_FAULT_MEMORY] = "no memory left on the host",
};

const char *kl_fault_text(kl_fault_kind kind) {
  return fault_texts[kind];
}

// --- setting up blocks --------------------------------------------------------------------------------------------

static void broadcast(uint32_t *to, uint32_t value) {
  for (int i = 0; i < KL_LANES; i++) to[i] = value;
}

// What stays the same from block to block.
static void fill_fixed(const kl_run_state *run, kl_warp *w) {
  kl_special_area *s = &w->special;
  uint32_t first = w->rank * KL_LANES;
  for (uint32_t i = 0; i < KL_LANES; i++) {
    uint32_t t = first + i;
    s->tid_x[i] = t % run->block[0];
    s->tid_y[i] = t / run->block[0] % run->block[1];
    s->tid_z[i] = t / run->block[0] / run->block[1];
    s->laneid[i] = i;
    s->lanemask_eq[i] = 1u << i;
    s->lanemask_lt[i] = (1u << i) - 1;
    s->lanemask_le[i] = s->lanemask_lt[i] | s->lanemask_eq[i];
    s->lanemask_gt[i] = ~s->lanemask_le[i];
    s->lanemask_ge[i] = ~s->lanemask_lt[i];
    s->gridid[i] = 1;
  }
  broadcast(s->ntid_x, run->block[0]), broadcast(s->ntid_y, run->block[1]), broadcast(s->ntid_z, run->block[2]);
  broadcast(s->nctaid_x, run->grid[0]), broadcast(s->nctaid_y, run->grid[1]), broadcast(s->nctaid_z, run->grid[2]);
  broadcast(s->warpid, w->rank), broadcast(s->nwarpid, run->warps), broadcast(s->nsmid, 1);
  broadcast(s->nclusterid_x, run->grid[0] / run->cluster[0]);
  broadcast(s->nclusterid_y, run->grid[1] / run->cluster[1]);
  broadcast(s->nclusterid_z, run->grid[2] / run->cluster[2]);
  broadcast(s->cluster_nctaid_x, run->cluster[0]);
  broadcast(s->cluster_nctaid_y, run->cluster[1]);
  broadcast(s->cluster_nctaid_z, run->cluster[2]);
  broadcast(s->cluster_nctarank, run->blocks);
  broadcast(s->dynamic_smem_size, run->launch->dynamic_shared);
  broadcast(s->total_smem_size, run->shared_bytes), broadcast(s->aggr_smem_size, run->shared_bytes);
  broadcast(s->reserved_end, KL_RESERVED_SHARED), broadcast(s->reserved_half, KL_RESERVED_SHARED / 2);
  broadcast(s->grid_state_low, (uint32_t)run->grid_state);
  broadcast(s->grid_state_high, (uint32_t)(run->grid_state >> 32));
  s->is_explicit_cluster = run->explicit_cluster ? KL_ALL_LANES : 0;
  uint32_t lanes = run->threads - first;
  w->lanes = lanes >= KL_LANES ? KL_ALL_LANES : (1u << lanes) - 1;
}

static void fill_block(const kl_block *b, const uint32_t *cluster, kl_warp *w) {
  kl_special_area *s = &w->special;
  const kl_run_state *run = b->run;
  broadcast(s->ctaid_x, b->id[0]), broadcast(s->ctaid_y, b->id[1]), broadcast(s->ctaid_z, b->id[2]);
  broadcast(s->clusterid_x, cluster[0]), broadcast(s->clusterid_y, cluster[1]), broadcast(s->clusterid_z, cluster[2]);
  broadcast(s->cluster_ctaid_x, b->id[0] - cluster[0] * run->cluster[0]);
  broadcast(s->cluster_ctaid_y, b->id[1] - cluster[1] * run->cluster[1]);
  broadcast(s->cluster_ctaid_z, b->id[2] - cluster[2] * run->cluster[2]);
  broadcast(s->cluster_ctarank, b->rank);
}

static size_t stack_bytes(const kl_run_state *run) {
  return (size_t)run->warps * KL_LANES * KL_MOST_STACK;
}

// Registers of threads that will never end.
static void abandon_warp(kl_worker *worker, kl_warp *w) {
  for (uint32_t k = 0; k < w->nwaiting; k++) kl_leave_frames(worker, w->waiting[k].frame, w->waiting[k].mask);
  w->nwaiting = 0;
}

static void free_cluster(kl_worker *worker, kl_cluster *c) {
  kl_run_state *run = worker->run;
  for (uint32_t k = 0; c->blocks && k < run->blocks; k++) {
    kl_block *b = &c->blocks[k];
    for (uint32_t i = 0; b->warps && i < run->warps; i++) {
      abandon_warp(worker, &b->warps[i]);
      free(b->warps[i].flights);
    }
    if (b->warps) kl_unmap(b->warps[0].stack, stack_bytes(run));
    free(b->warps);
    free(b->shared);
  }
  free(c->blocks);
  free(c);
}

static bool make_block(kl_worker *worker, kl_cluster *c, uint32_t rank) {
  kl_run_state *run = worker->run;
  kl_block *b = &c->blocks[rank];
  *b = (kl_block){.run = run,
                  .worker = worker,
                  .cluster = c,
                  .rank = rank,
                  .nwarps = run->warps,
                  .shared_bytes = run->shared_bytes};
  b->warps = kl_new_lines((size_t)run->warps * sizeof *b->warps);
  b->shared = kl_new_lines(run->shared_bytes);
  if (!b->warps || !b->shared) return false;
  if (run->kernel->has_stack) {
    char *stack = kl_map(stack_bytes(run), KL_MAP_SPARSE);
    if (!stack) return false;
    for (uint32_t k = 0; k < run->warps; k++) b->warps[k].stack = stack + (size_t)k * KL_LANES * KL_MOST_STACK;
  }
  for (uint32_t k = 0; k < run->warps; k++) {
    kl_warp *w = &b->warps[k];
    w->rank = k;
    w->block = b;
    w->x.perturb = run->launch->perturb;
    w->x.base[KL_IN_SPECIAL] = (char *)&w->special;
    w->memory = kl_lanes_best()->memory;
    w->shuffle = kl_lanes_best()->shuffle;
    w->observed = run->launch->nobservers > 0;
    fill_fixed(run, w);
  }
  return true;
}

static kl_cluster *new_cluster(kl_worker *worker) {
  kl_run_state *run = worker->run;
  kl_cluster *c = worker->free;
  if (c) {
    worker->free = c->next;
    return c;
  }
  c = kl_new_lines(sizeof *c);
  if (!c) return NULL;
  c->n = run->blocks;
  c->blocks = kl_new_lines(run->blocks * sizeof *c->blocks);
  for (uint32_t k = 0; k < run->blocks; k++)
    if (!c->blocks || !make_block(worker, c, k)) {
      free_cluster(worker, c);
      return NULL;
    }
  return c;
}

static bool start_warp(kl_worker *worker, kl_warp *w) {
  const kl_code *code = worker->run->kernel->entry;
  kl_frame *f = kl_new_frame(worker, code);
  if (!f) return false;
  f->lanes = w->lanes;
  w->alive = w->lanes;
  w->exited = false;
  w->rounds = 0;
  memset(w->arrived, 0, sizeof w->arrived);
  memset(w->phase, 0, sizeof w->phase);
  w->nflights = 0;
  memset(w->group, 0, sizeof w->group);
  w->strand = (kl_strand){.frame = f};
  w->waiting[0] = w->strand;
  w->waiting[0].mask = w->lanes;
  w->nwaiting = 1;
  return true;
}

// The n-th to start of those that run: a step that has no factor in common with their number goes through all of them.
static uint64_t shuffled(const kl_run_state *run, uint64_t n) {
  uint64_t step = run->launch->shuffle % run->starts | 1;
  if (!run->launch->shuffle) return n;
  for (;; step += 2) {
    uint64_t a = run->starts, b = step % run->starts;
    while (b) {
      uint64_t rest = a % b;
      a = b, b = rest;
    }
    if (a == 1) return (uint64_t)(((unsigned __int128)n * step + run->launch->shuffle) % run->starts);
  }
}

// The number in the grid of the n-th cluster to start.
static uint64_t cluster_number(const kl_run_state *run, uint64_t n) {
  const kl_sample *s = &run->launch->sample;
  n = shuffled(run, n);
  return s->count ? s->first + n / s->run * s->stride + n % s->run : n;
}

// Cluster n of the grid, its blocks at their first instruction.
static kl_cluster *start_cluster(kl_worker *worker, uint64_t n) {
  kl_run_state *run = worker->run;
  kl_cluster *c = new_cluster(worker);
  if (!c) return NULL;
  uint32_t across = run->grid[0] / run->cluster[0], down = run->grid[1] / run->cluster[1];
  uint32_t id[3] = {(uint32_t)(n % across), (uint32_t)(n / across % down), (uint32_t)(n / across / down)};
  c->arrived = c->phase = 0;
  c->waits = false;
  c->random = run->launch->shuffle ? (run->launch->shuffle ^ n * 0x9e3779b97f4a7c15) | 1 : 0;
  for (uint32_t k = 0; k < run->blocks; k++) {
    kl_block *b = &c->blocks[k];
    uint32_t in[3] = {k % run->cluster[0], k / run->cluster[0] % run->cluster[1],
                      k / run->cluster[0] / run->cluster[1]};
    for (int d = 0; d < 3; d++) b->id[d] = id[d] * run->cluster[d] + in[d];
    b->number = n * run->blocks + k;
    b->alive = run->threads;
    b->branches = 0;
    for (int i = 0; i < KL_BARRIERS; i++) b->barriers[i] = (kl_barrier){.all = true};
    memset(b->shared, 0, run->shared_bytes);
    for (uint32_t i = 0; i < run->warps; i++) {
      fill_block(b, id, &b->warps[i]);
      if (!start_warp(worker, &b->warps[i])) {
        free_cluster(worker, c);
        return NULL;
      }
    }
    KL_TELL(b, begin, b);
  }
  return c;
}

// --- running ------------------------------------------------------------------------------------------------------

static bool is_done(const kl_cluster *c) {
  for (uint32_t k = 0; k < c->n; k++)
    if (c->blocks[k].alive) return false;
  return true;
}

static void deadlock(kl_cluster *c) {
  for (uint32_t k = 0; k < c->n; k++)
    for (uint32_t i = 0; i < c->blocks[k].nwarps; i++) {
      kl_warp *w = &c->blocks[k].warps[i];
      if (!w->nwaiting) continue;
      w->strand = w->waiting[0];
      w->next = w->limit = NULL;
      kl_faulted(w, &w->strand.frame->code->ops[w->strand.pc], KL_FAULT_DEADLOCK,
                 (unsigned)__builtin_ctz(w->waiting[0].mask), 0);
      w->strand.mask = 0; // it still waits
      return;
    }
}

// Runs the blocks; to their end, unless they may wait for others: then for some rounds, and once these were not enough
// for one at a time. False: they are over, done or failed.
static bool run_cluster(kl_cluster *c) {
  kl_run_state *run = c->blocks[0].run;
  uint32_t rounds = c->waits ? 1 : FIRST_ROUNDS;
  c->waits = run->kernel->talks || run->launch->cooperative;
  for (uint32_t round = 0; !c->waits || round < rounds; round++) {
    bool ran = false;
    for (uint32_t k = 0; k < c->n; k++)
      for (uint32_t i = 0, n = c->blocks[k].nwarps, first = kl_draw_below(c, n); i < n; i++) {
        kl_warp *w = &c->blocks[k].warps[(i + first) % n];
        if (w->alive) ran |= kl_warp_run(w);
      }
    if (is_done(c) || atomic_load(&run->failed_block) <= c->blocks[0].number + c->n - 1) return false;
    if (!ran) {
      deadlock(c);
      return false;
    }
  }
  return true;
}

static void no_memory(kl_run_state *run) {
  pthread_mutex_lock(&run->lock);
  if (atomic_load(&run->failed_block) == UINT64_MAX) {
    run->fault = (kl_fault){.kind = KL_FAULT_MEMORY};
    atomic_store(&run->failed_block, 0);
  }
  pthread_mutex_unlock(&run->lock);
}

// The next cluster, behind those that are resident. False: none is left, or there is no memory for it.
static bool start_next(kl_worker *worker, kl_cluster **last) {
  kl_run_state *run = worker->run;
  uint64_t nth = atomic_fetch_add(&run->next, 1);
  if (nth >= run->starts) return false;
  uint64_t n = cluster_number(run, nth);
  if (!run->launch->shuffle && n * run->blocks >= atomic_load(&run->failed_block)) return false;
  *last = start_cluster(worker, n);
  if (!*last) {
    no_memory(run);
    return false;
  }
  (*last)->next = NULL;
  return true;
}

static void retire(kl_worker *worker, kl_cluster *c) {
  for (uint32_t k = 0; k < c->n; k++) KL_TELL(&c->blocks[k], end, &c->blocks[k]);
  for (uint32_t k = 0; k < c->n; k++)
    for (uint32_t i = 0; i < c->blocks[k].nwarps; i++) abandon_warp(worker, &c->blocks[k].warps[i]);
  c->next = worker->free;
  worker->free = c;
}

static void run_clusters(kl_worker *worker) {
  kl_cluster *resident = NULL, **last = &resident;
  size_t count = 0, most = worker->run->launch->cooperative ? SIZE_MAX : MOST_RESIDENT;
  bool more = true;
  while (more || resident) {
    if (more && count < most) {
      more = start_next(worker, last);
      if (more) last = &(*last)->next, count++;
    }
    for (kl_cluster **p = &resident, *c; (c = *p);) {
      if (run_cluster(c)) {
        p = &c->next;
        continue;
      }
      *p = c->next;
      if (last == &c->next) last = p;
      count--;
      retire(worker, c);
    }
  }
  while (worker->free) {
    kl_cluster *c = worker->free;
    worker->free = c->next;
    free_cluster(worker, c);
  }
  kl_free_frames(worker);
}

// Instructions round as PTX says in the default environment, whatever the caller's is.
static void *work(void *arg) {
  fenv_t before;
  fegetenv(&before);
  fesetenv(FE_DFL_ENV);
  run_clusters(arg);
  fesetenv(&before);
  return NULL;
}

static unsigned count_workers(const kl_run_state *run) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t n = run->launch->workers ? run->launch->workers : cores > 0 ? (uint64_t)cores : 1;
  if (run->kernel->talks || run->launch->cooperative || run->launch->nobservers) n = 1;
  if (n > run->starts) n = run->starts;
  if (n > 64) n = 64;
  if (!run->launch->workers && run->starts * run->threads < 4096) n = 1; // not worth a thread
  return (unsigned)n;
}

static void run_all(kl_run_state *run) {
  kl_worker workers[64] = {0};
  pthread_t threads[64];
  unsigned n = count_workers(run), started = 1;
  for (unsigned k = 0; k < n; k++) workers[k].run = run;
  while (started < n && pthread_create(&threads[started], NULL, work, &workers[started]) == 0) started++;
  work(&workers[0]);
  for (unsigned k = 1; k < started; k++) pthread_join(threads[k], NULL);
}

// --- what a launch may be -----------------------------------------------------------------------------------------

enum { MOST_SHARED = 227 * 1024, MOST_THREADS = 1024 };

// Each of the sample is there, once.
static bool sample_fits(const kl_sample *s, uint64_t clusters) {
  if (s->run == 0 || s->run > s->stride || s->first >= clusters) return false;
  uint64_t room = clusters - 1 - s->first, runs = (s->count - 1) / s->run, rest = (s->count - 1) % s->run;
  return rest <= room && runs <= (room - rest) / s->stride;
}

static kiln_status check_sample(kl_ctx *cx, kl_run_state *run) {
  const kl_sample *s = &run->launch->sample;
  run->starts = s->count ? s->count : run->clusters;
  if (s->count == 0 || sample_fits(s, run->clusters)) return KILN_OK;
  return kl_invalid(
      cx, KL_NOWHERE,
      "expected a sample within the %llu %s of the grid, found %llu from %llu on, %llu apart in runs of %llu",
      (unsigned long long)run->clusters, run->blocks > 1 ? "clusters" : "blocks", (unsigned long long)s->count,
      (unsigned long long)s->first, (unsigned long long)s->stride, (unsigned long long)s->run);
}

static kiln_status check(kl_ctx *cx, kl_run_state *run) {
  const kl_launch *l = run->launch;
  const kl_ptx_tuning *t = &run->kernel->func->tuning;
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
  for (int d = 0; d < 3; d++) {
    run->grid[d] = l->grid[d];
    run->block[d] = l->block[d];
    run->cluster[d] = l->cluster[d] ? l->cluster[d] : t->reqnctapercluster[d] ? t->reqnctapercluster[d] : 1;
    run->explicit_cluster |= l->cluster[d] || t->reqnctapercluster[d];
    if (l->grid[d] == 0 || l->block[d] == 0 || l->block[d] > 1024 || (d > 0 && l->grid[d] > 65535) ||
        l->grid[d] > INT32_MAX || (d == 2 && l->block[d] > 64))
      return kl_invalid(cx, KL_NOWHERE, "a grid of %u x %u x %u blocks of %u x %u x %u threads cannot be launched",
                        l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
    if (run->grid[d] % run->cluster[d])
      return kl_invalid(cx, KL_NOWHERE, "clusters of %u blocks do not divide %u blocks", run->cluster[d], run->grid[d]);
    if (t->reqntid[0] && l->block[d] != (t->reqntid[d] ? t->reqntid[d] : 1))
      return kl_invalid(cx, KL_NOWHERE, "the kernel requires blocks of %u x %u x %u threads", t->reqntid[0],
                        t->reqntid[1] ? t->reqntid[1] : 1, t->reqntid[2] ? t->reqntid[2] : 1);
  }
  kl_kernel_facts facts = kl_kernel_describe(run->kernel);
  if (threads > MOST_THREADS || (facts.max_threads && threads > facts.max_threads))
    return kl_invalid(cx, KL_NOWHERE, "blocks of %llu threads: the most are %u", (unsigned long long)threads,
                      facts.max_threads ? facts.max_threads : MOST_THREADS);
  if ((uint64_t)run->kernel->shared_bytes + l->dynamic_shared > MOST_SHARED)
    return kl_invalid(cx, KL_NOWHERE, "%u bytes of shared memory and %u dynamic ones: a block has at most %d",
                      run->kernel->shared_bytes, l->dynamic_shared, MOST_SHARED);
  run->threads = (uint32_t)threads;
  run->warps = (run->threads + KL_LANES - 1) / KL_LANES;
  run->blocks = run->cluster[0] * run->cluster[1] * run->cluster[2];
  if (run->blocks > 16) return kl_invalid(cx, KL_NOWHERE, "clusters of %u blocks: the most are 16", run->blocks);
  run->shared_bytes = run->kernel->shared_bytes + l->dynamic_shared;
  run->clusters = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2] / run->blocks;
  return check_sample(cx, run);
}

static kiln_status report(kl_ctx *cx, const kl_run_state *run) {
  const kl_fault *f = &run->fault;
  kl_span at = f->instr ? kl_ptx_span(run->kernel->of->ptx, f->instr->at) : KL_NOWHERE;
  kl_sb where;
  if (f->kind == KL_FAULT_MEMORY) return kl_out_of_memory(cx, 0, "the blocks of a launch");
  kl_sb_init(&where, cx);
  if (f->instr && f->instr->at.src_line) {
    kl_sb_puts(&where, ", ");
    kl_source_put(&where, run->kernel->of->ptx, f->instr->at);
  }
  if (f->spot.bytes) kl_spot_put(&where, &f->spot);
  kl_calls_put(&where, run->kernel->of->ptx, &f->calls);
  kl_fail(cx, KILN_E_DEVICE, at, "%s in %.*s, block (%u,%u,%u), thread (%u,%u,%u)%s", fault_texts[f->kind],
          KL_FMT(f->func->name), f->block[0], f->block[1], f->block[2], f->thread[0], f->thread[1], f->thread[2],
          where.n ? where.p : "");
  kl_sb_free(&where);
  return KILN_E_DEVICE;
}

static void find_observers(kl_run_state *run) {
  const kl_launch *l = run->launch;
  if (!l->nobservers) return;
  run->steppers = kl_alloc(run->cx, l->nobservers * sizeof *run->steppers);
  run->lookers = kl_alloc(run->cx, l->nobservers * sizeof *run->lookers);
  for (uint32_t k = 0; k < l->nobservers; k++) {
    kl_observer *o = l->observers[k];
    if (o->step) run->steppers[run->nsteppers++] = o;
    if (o->access) run->lookers[run->nlookers++] = o;
    run->tells_all |= o->step && !o->seldom;
  }
}

static void forget_observers(kl_run_state *run) {
  const size_t n = run->launch->nobservers;
  if (!n) return;
  kl_free(run->cx, run->steppers, n * sizeof *run->steppers);
  kl_free(run->cx, run->lookers, n * sizeof *run->lookers);
}

kiln_status kl_launch_run(kl_ctx *cx, kl_memory *m, const kl_launch *l, kl_fault *fault) {
  kl_run_state run = {.cx = cx, .memory = m, .launch = l, .kernel = l->kernel, .params = l->params};
  *fault = (kl_fault){0};
  KL_TRY(check(cx, &run));
  // What code of cooperative groups keeps the grid's barrier in.
  if (l->cooperative && kl_memory_alloc(m, 256, KL_REGION_USER, KL_STR("state of the grid"), &run.grid_state))
    return kl_out_of_memory(cx, 256, "the state of a grid");
  if (run.grid_state) kl_memory_define(m, run.grid_state, 256);
  atomic_init(&run.failed_block, UINT64_MAX);
  pthread_mutex_init(&run.lock, NULL);
  find_observers(&run);
  run_all(&run);
  forget_observers(&run);
  pthread_mutex_destroy(&run.lock);
  if (run.grid_state) kl_memory_release(m, run.grid_state);
  if (atomic_load(&run.failed_block) == UINT64_MAX) return KILN_OK;
  *fault = run.fault;
  return report(cx, &run);
}

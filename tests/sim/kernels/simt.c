#include "simt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 1 << 17, WARP = 32, BARRIERS = 16, SHARED_KEYS = 32, SHARED_BYTES = 240 << 10 };

typedef struct barrier {
  unsigned arrived, voted, need; // need 0: all that have not ended
} barrier;

typedef struct team { // a block
  uint3 index;
  unsigned live, rank;
  barrier barriers[BARRIERS];
  const void *keys[SHARED_KEYS];
  size_t offsets[SHARED_KEYS], nkey, used, dynamic;
  uint8_t *shared;
} team;

typedef enum state { READY, WAITS_WARP, WAITS_BARRIER, ENDED } state;

typedef struct fiber {
  ucontext_t context;
  void *stack;
  team *block;
  uint3 thread;
  unsigned lane, mask; // mask: of the exchange it waits in
  state state;
  const barrier *at;
  unsigned votes;
  uint64_t gives, sees[WARP];
} fiber;

typedef struct gang { // the blocks that run together
  const simt_launch *launch;
  team *teams;
  fiber *fibers;
  size_t nteam, nfiber, threads; // threads of a block
  unsigned live;
  barrier all;
  ucontext_t scheduler;
} gang;

static _Thread_local gang *now;
static _Thread_local fiber *self;

const uint3 *simt_thread(void) {
  return &self->thread;
}
const uint3 *simt_block(void) {
  return &self->block->index;
}
const uint3 *simt_block_size(void) {
  return &now->launch->block;
}
const uint3 *simt_grid_size(void) {
  return &now->launch->grid;
}
unsigned simt_lane(void) {
  return self->lane;
}
unsigned simt_cluster_rank(void) {
  return self->block->rank;
}
void *simt_dynamic_shared(void) {
  return self->block->shared;
}

void simt_yield(void) {
  swapcontext(&self->context, &now->scheduler);
}

static void wait_as(state s) {
  self->state = s;
  simt_yield();
}

void *simt_shared(const void *key, size_t size) {
  team *b = self->block;
  for (size_t i = 0; i < b->nkey; i++)
    if (b->keys[i] == key) return b->shared + b->offsets[i];
  size_t start = (b->used + 15) & ~(size_t)15;
  if (b->nkey == SHARED_KEYS || start + size > SHARED_BYTES) {
    fprintf(stderr, "simt: shared memory is short\n");
    abort();
  }
  b->keys[b->nkey] = key;
  b->offsets[b->nkey++] = start;
  b->used = start + size;
  return b->shared + start;
}

void *simt_map_shared(const void *p, unsigned rank) {
  return now->teams[rank].shared + ((const uint8_t *)p - self->block->shared);
}

// --- warps --------------------------------------------------------------------------------------------------------

static fiber *lane_of(const fiber *f, unsigned lane) {
  size_t first = (size_t)(f - now->fibers) - f->lane, block = (size_t)(f->block - now->teams);
  return first + lane < (block + 1) * now->threads ? &now->fibers[first + lane] : NULL;
}

const uint64_t *simt_exchange(unsigned mask, uint64_t value) {
  self->gives = value;
  self->mask = mask;
  for (unsigned i = 0; i < WARP; i++) {
    const fiber *f = lane_of(self, i);
    bool here = f == self || (f && f->state == WAITS_WARP && f->mask == mask);
    if ((mask >> i & 1) && !here) {
      wait_as(WAITS_WARP);
      return self->sees;
    }
  }
  for (unsigned i = 0; i < WARP; i++) { // the last to come serves all
    fiber *f = mask >> i & 1 ? lane_of(self, i) : NULL;
    for (unsigned j = 0; f && j < WARP; j++) f->sees[j] = mask >> j & 1 ? lane_of(self, j)->gives : 0xa5a5a5a5a5a5a5a5;
  }
  for (unsigned i = 0; i < WARP; i++)
    if (mask >> i & 1) lane_of(self, i)->state = READY;
  return self->sees;
}

// --- barriers -----------------------------------------------------------------------------------------------------

static void open_if_full(barrier *b, unsigned live) {
  if (b->arrived == 0 || b->arrived != (b->need ? b->need : live)) return;
  for (size_t i = 0; i < now->nfiber; i++) {
    fiber *f = &now->fibers[i];
    if (f->state != WAITS_BARRIER || f->at != b) continue;
    f->state = READY;
    f->votes = b->voted;
  }
  memset(b, 0, sizeof *b);
}

static void enter(barrier *b, unsigned need, unsigned live, bool vote, bool waits) {
  b->arrived++;
  b->voted += vote;
  b->need = need;
  self->at = b;
  if (waits) self->state = WAITS_BARRIER;
  open_if_full(b, live);
  if (self->state == WAITS_BARRIER) simt_yield();
}

unsigned simt_barrier(unsigned id, unsigned count, bool predicate) {
  enter(&self->block->barriers[id], count, self->block->live, predicate, true);
  return self->votes;
}

void simt_barrier_arrive(unsigned id, unsigned count) {
  enter(&self->block->barriers[id], count, self->block->live, false, false);
}

void simt_barrier_cluster(void) {
  enter(&now->all, 0, now->live, false, true);
}
void simt_barrier_grid(void) {
  simt_barrier_cluster();
}

static void end_thread(void) {
  self->state = ENDED;
  self->block->live--;
  now->live--;
  for (int i = 0; i < BARRIERS; i++) open_if_full(&self->block->barriers[i], self->block->live);
  open_if_full(&now->all, now->live);
}

// --- launches -----------------------------------------------------------------------------------------------------

static void thread_main(void) {
  now->launch->kernel(now->launch->args);
  end_thread();
  swapcontext(&self->context, &now->scheduler);
}

static void start_fiber(gang *g, size_t i) {
  fiber *f = &g->fibers[i];
  unsigned t = (unsigned)(i % g->threads);
  const uint3 *size = &g->launch->block;
  f->block = &g->teams[i / g->threads];
  f->thread = (uint3){t % size->x, t / size->x % size->y, t / size->x / size->y};
  f->lane = t % WARP;
  f->state = READY;
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = STACK;
  f->context.uc_link = NULL;
  makecontext(&f->context, thread_main, 0);
}

static bool run_gang(gang *g) {
  while (g->live) {
    bool moved = false;
    for (size_t k = 0; k < g->nfiber; k++) {
      self = &g->fibers[g->launch->reverse ? g->nfiber - 1 - k : k];
      if (self->state != READY) continue;
      moved = true;
      swapcontext(&g->scheduler, &self->context);
    }
    if (!moved) {
      fprintf(stderr, "simt: %u threads wait for each other\n", g->live);
      return false;
    }
  }
  return true;
}

// Blocks `first` and on, of which `size` is the extent along each axis.
static bool run_blocks(gang *g, uint3 first, uint3 size) {
  for (size_t i = 0; i < g->nteam; i++) {
    team *b = &g->teams[i];
    uint8_t *shared = b->shared;
    unsigned n = (unsigned)i;
    memset(shared, 0xa5, SHARED_BYTES);
    *b = (team){.shared = shared, .live = (unsigned)g->threads, .rank = n, .used = g->launch->dynamic_shared};
    b->index = (uint3){first.x + n % size.x, first.y + n / size.x % size.y, first.z + n / size.x / size.y};
  }
  for (size_t i = 0; i < g->nfiber; i++) start_fiber(g, i);
  g->live = (unsigned)g->nfiber;
  g->all = (barrier){0};
  return run_gang(g);
}

static size_t volume(uint3 v) {
  return (size_t)v.x * v.y * v.z;
}

static bool run_grid(gang *g, uint3 grid, uint3 step) {
  for (unsigned z = 0; z < grid.z; z += step.z)
    for (unsigned y = 0; y < grid.y; y += step.y)
      for (unsigned x = 0; x < grid.x; x += step.x)
        if (!run_blocks(g, (uint3){x, y, z}, step)) return false;
  return true;
}

bool simt_run(const simt_launch *launch) {
  uint3 step = launch->cooperative ? launch->grid : launch->cluster;
  gang g = {.launch = launch, .nteam = volume(step), .threads = volume(launch->block)};
  g.nfiber = g.nteam * g.threads;
  g.teams = calloc(g.nteam, sizeof *g.teams);
  g.fibers = calloc(g.nfiber, sizeof *g.fibers);
  uint8_t *shared = malloc(g.nteam * SHARED_BYTES);
  uint8_t *stacks =
      mmap(NULL, g.nfiber * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool ok = g.teams && g.fibers && shared && stacks != MAP_FAILED;
  for (size_t i = 0; ok && i < g.nteam; i++) g.teams[i].shared = shared + i * SHARED_BYTES;
  for (size_t i = 0; ok && i < g.nfiber; i++) g.fibers[i].stack = stacks + i * STACK;
  now = &g;
  ok = ok && run_grid(&g, launch->grid, step);
  now = NULL;
  if (stacks != MAP_FAILED) munmap(stacks, g.nfiber * STACK);
  free(shared);
  free(g.fibers);
  free(g.teams);
  return ok;
}

// Launches: which parts and bodies there are, and the groups of threads that run them.

#include "machine.h"

#include <stdarg.h>
#include <stdio.h>

_Noreturn void broken(machine *m, const char *fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  m->why = kl_strf(m->arena, "%s", text);
  longjmp(m->stop, 1);
}

// --- the launch -----------------------------------------------------------------------------------------------------

static bool is_empty(const kl_body *b) {
  return b->threads == 0 && b->blocks == 0;
}

// Loops over elements: every launched thread has work or is beyond the tail, and the bodies cover the part without a
// gap. Blocks of threads whose elements lie apart may be idle in part.
static void check_loop(machine *m, const kl_part *p) {
  const kl_body *b = &p->main;
  int64_t block = m->launch->block, threads = b->threads + b->blocks * block;
  int64_t each = b->blocks ? points_of(b, bound_to(b, KL_BIND_STEP) | bound_to(b, KL_BIND_REG)) : b->lanes;
  bool apart = each > b->lanes;
  REQUIRE(m, b->first == 0 && threads * each + p->tail.threads * p->tail.lanes >= p->count,
          "the bodies do not cover %lld elements", (ll)p->count);
  if (p->tail.threads) {
    REQUIRE(m, apart ? p->tail.first <= threads * each : p->tail.first == threads * each, "tail from %lld",
            (ll)p->tail.first);
    REQUIRE(m, (p->tail.threads - 1) * p->tail.lanes < p->count - p->tail.first, "idle threads in the tail");
  }
  REQUIRE(m, apart || threads * each <= p->count, "main reaches beyond the end");
  REQUIRE(m, threads == p->main_blocks * block, "%lld threads in %lld blocks", (ll)threads, (ll)p->main_blocks);
  REQUIRE(m, p->blocks == p->main_blocks + (p->tail.threads + block - 1) / block, "%lld blocks", (ll)p->blocks);
  for (uint32_t i = 0; i < p->main.nstores && !apart && !m->plan->counted; i++)
    REQUIRE(m, p->main.stores[i].keep == KL_NONE || p->main.stores[i].how != KL_STORE_PUT, "bounds check in main");
}

static void check_blocks(machine *m, const kl_part *p) {
  REQUIRE(m, is_empty(&p->tail), "a tail of blocks");
  REQUIRE(m, p->main_blocks == p->main.blocks && p->blocks == p->main.blocks, "%lld blocks of %lld", (ll)p->blocks,
          (ll)p->main.blocks);
}

// Elements that the launch's parts are said to have.
static int64_t check_launch(machine *m) {
  const kl_plan_launch *l = m->launch;
  int64_t count = 0, blocks = 0, iterations = 0;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    const kl_part *p = &m->plan->parts[i];
    REQUIRE(m, p->first_block == blocks && p->first_iteration == iterations, "part %u is not in the row", i);
    if (p->main.blocks && !p->main.lanes)
      check_blocks(m, p);
    else if (!m->plan->flat)
      check_loop(m, p);
    count += p->count;
    blocks += p->blocks;
    iterations += p->main.threads + p->main.blocks;
  }
  REQUIRE(m, blocks == l->grid && iterations == l->iterations, "grid %lld", (ll)l->grid);
  return count;
}

// --- memory ---------------------------------------------------------------------------------------------------------

static void make_memory(machine *m, bool results) {
  const kl_plan *p = m->plan;
  m->elements = KL_NEW_N(m->arena, uint64_t *, p->nslots + 1);
  m->stored = KL_NEW_N(m->arena, uint8_t *, p->nslots + 1);
  m->readers = KL_NEW_N(m->arena, int64_t *, p->nslots + 1);
  m->writers = KL_NEW_N(m->arena, int64_t *, p->nslots + 1);
  m->met_before = KL_NEW_N(m->arena, int64_t *, p->nslots + 1);
  m->last = NOT;
  for (uint32_t i = 0; i < p->nparts; i++)
    m->no_group += p->parts[i].main.blocks + p->parts[i].main.threads + p->parts[i].tail.threads;
  if (results) m->arrived = KL_NEW_N(m->arena, int64_t, m->no_group + 1);
  for (int64_t i = 0; i <= m->no_group && results; i++) m->arrived[i] = NOT;
  uint32_t shared = 0;
  for (uint32_t i = 0; i < p->nlaunches; i++)
    if (p->launches[i].shared_bytes > shared) shared = p->launches[i].shared_bytes;
  m->shared = KL_NEW_N(m->arena, shared_byte, shared + 1);
  for (uint32_t i = 0; i < p->nslots; i++) {
    size_t n = (size_t)p->slots[i].shape->count + 1;
    bool result = p->slots[i].kind == KL_SLOT_OUT || p->slots[i].kind == KL_SLOT_SCRATCH;
    if (p->slots[i].kind == KL_SLOT_SHARED || (result && results)) m->elements[i] = KL_NEW_N(m->arena, uint64_t, n);
    if (!result || !results) continue;
    m->stored[i] = KL_NEW_N(m->arena, uint8_t, n);
    if (p->slots[i].kind == KL_SLOT_SCRATCH) m->writers[i] = KL_NEW_N(m->arena, int64_t, n);
    if (p->slots[i].kind == KL_SLOT_SCRATCH) m->met_before[i] = KL_NEW_N(m->arena, int64_t, n);
    if (p->slots[i].alias != KL_NONE) m->readers[i] = KL_NEW_N(m->arena, int64_t, n);
  }
}

// In place what a parameter has is there before: of results that are changed, and of those that need not be covered.
static void fill_results(machine *m) {
  const kl_plan *p = m->plan;
  for (uint32_t i = 0; i < p->nargs; i++) {
    const kl_slot_info *s = &p->slots[i];
    if (s->kind != KL_SLOT_OUT || s->alias == KL_NONE || s->mode == KL_MODE_COVER) continue;
    for (int64_t e = 0; e < s->shape->count; e++) m->elements[i][e] = of_parameter(s->alias, e);
    memset(m->stored[i], s->mode == KL_MODE_UPDATE, (size_t)s->shape->count);
  }
}

static void compare_results(machine *m, const leaves *want, bool all) {
  const kl_plan *p = m->plan;
  for (uint32_t r = 0; r < want->n; r++) {
    uint32_t slot = p->nargs - want->n + r;
    bool stays = m->in_place && p->slots[slot].mode == KL_MODE_IN_PLACE;
    for (int64_t e = length_of(m, &p->slots[slot]); e < p->slots[slot].shape->count; e++)
      REQUIRE(m, !m->stored[slot][e], "result %u: element %lld is beyond the rows", r, (ll)e);
    for (int64_t e = 0; e < length_of(m, &p->slots[slot]); e++) {
      REQUIRE(m, !all || stays || m->stored[slot][e], "result %u: element %lld is not written", r, (ll)e);
      if (m->stored[slot][e] || (all && stays))
        REQUIRE(m, m->elements[slot][e] == want->v[r][in_memory(p->slots[slot].shape, e)],
                "result %u: element %lld comes from elsewhere", r, (ll)e);
    }
  }
}

// --- groups ---------------------------------------------------------------------------------------------------------

static void enter_body(machine *m, const kl_body *b) {
  m->body = b;
  m->nthreads = m->host ? b->width : b->threads ? 1 : m->launch->block;
  m->vars = kl_arena_alloc_n(m->arena, m->nthreads + 1, sizeof *m->vars);
  m->active = KL_NEW_N(m->arena, bool, m->nthreads + 1);
  m->guard_vars = KL_NEW_N(m->arena, kl_vars, b->nguards + 1);
  m->known = KL_NEW_N(m->arena, bool, b->nsymbols + 1);
  m->symbols = KL_NEW_N(m->arena, int64_t, KL_FIRST_SYMBOL + b->nsymbols);
  REQUIRE(m, b->nsymbols <= MOST_SYMBOLS, "%u symbols", b->nsymbols);
  for (uint32_t g = 0; g < b->nguards; g++) m->guard_vars[g] = vars_of_guard(m, g);
  check_body(m);
  m->copies = KL_NEW_N(m->arena, uint32_t, b->nsteps + 1);
  m->first = KL_NEW_N(m->arena, size_t, b->nsteps + 1);
  m->each = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    m->copies[i] = (uint32_t)points_of(b, b->steps[i].regs);
    m->first[i] = m->each;
    m->each += m->copies[i];
  }
  m->vals = kl_arena_alloc_n(m->arena, m->nthreads * (m->each + 1), sizeof *m->vals);
}

// Where block or iteration number n is.
static void take_place(machine *m, int64_t n) {
  const kl_body *b = m->body;
  for (uint32_t t = 0; t < m->nthreads; t++) {
    int64_t *at = m->vars[t];
    to_point(b, bound_to(b, b->threads ? KL_BIND_THREAD : KL_BIND_BLOCK), KL_NONE, n, at);
    to_point(b, bound_to(b, KL_BIND_WARP), KL_NONE, t / lanes_in_warp(m), at);
    to_point(b, bound_to(b, KL_BIND_LANE), KL_NONE, t % lanes_in_warp(m), at);
  }
}

// Is it launched? Of a flat domain whole blocks of `main`, and the rest in threads of `tail`.
static bool is_launched(const machine *m, int64_t n) {
  const kl_body *b = m->body;
  const kl_part *part = &m->plan->parts[m->launch->first_part];
  int64_t at[KL_MAX_VARS], block = m->host ? 1 : m->launch->block, elements = m->rows * m->plan->row;
  kl_vars blocks = bound_to(b, KL_BIND_BLOCK);
  if (m->plan->flat) {
    int64_t whole = part->main.threads ? elements / (part->main.lanes * block) * block : 0;
    return b == &part->main ? n < whole : n * b->lanes >= whole * part->main.lanes && (n + 1) * b->lanes <= elements;
  }
  if (!m->launch->group) return true;
  REQUIRE((machine *)m, blocks && !b->threads, "no block to launch by");
  to_point(b, blocks, KL_NONE, n, at);
  return m->launch->group * at[__builtin_ctz(blocks)] < m->launch->unit * m->rows;
}

static void run_number(machine *m, int64_t n) {
  if (!is_launched(m, n)) return;
  take_place(m, n);
  run_group(m);
  m->group++;
}

// --- blocks that meet -----------------------------------------------------------------------------------------------

enum { STACK = 1 << 18 };

static void run_block(unsigned high, unsigned low) {
  machine *m = (machine *)((uint64_t)high << 32 | low);
  if (!setjmp(m->stop)) run_group(m);
  m->met = NOT;
  swapcontext(m->own, m->others);
}

// A block by itself: its own threads, and its own shared memory.
static machine *new_block(const machine *all, int64_t n, uint32_t rank, ucontext_t *others) {
  machine *m = kl_arena_dup(all->arena, all, sizeof *all);
  uint32_t nslots = m->plan->nslots;
  m->elements = kl_arena_dup(m->arena, m->elements, nslots * sizeof *m->elements);
  for (uint32_t i = 0; i < nslots; i++)
    if (m->plan->slots[i].kind == KL_SLOT_SHARED)
      m->elements[i] = KL_NEW_N(m->arena, uint64_t, m->plan->slots[i].shape->count + 1);
  m->shared = KL_NEW_N(m->arena, shared_byte, m->launch->shared_bytes + 1);
  m->own = KL_NEW(m->arena, ucontext_t);
  m->others = others;
  enter_body(m, m->body);
  take_place(m, n + rank);
  m->group = all->group + rank;
  getcontext(m->own);
  m->own->uc_stack = (stack_t){.ss_sp = kl_arena_alloc(m->arena, STACK), .ss_size = STACK};
  makecontext(m->own, (void (*)(void))run_block, 2, (unsigned)((uint64_t)m >> 32), (unsigned)(uint64_t)m);
  return m;
}

// All of them to where they meet, again and again, the other way round each time; all come as often.
static void run_cluster(machine *m, int64_t n) {
  uint32_t of = m->launch->cluster;
  ucontext_t here;
  machine **blocks = KL_NEW_N(m->arena, machine *, of);
  REQUIRE(m, m->body->blocks % of == 0, "%lld blocks in clusters of %u", (ll)m->body->blocks, of);
  if (!is_launched(m, n)) return;
  for (uint32_t i = 0; i < of; i++) blocks[i] = new_block(m, n, i, &here);
  for (int64_t met = 0; met != NOT; met = blocks[0]->met) {
    for (uint32_t i = 0; i < of; i++) {
      machine *b = blocks[met % 2 ? i : of - 1 - i];
      swapcontext(&here, b->own);
      if (b->why) broken(m, "%s", b->why);
    }
    for (uint32_t i = 0; i < of; i++) REQUIRE(m, blocks[i]->met == blocks[0]->met, "some blocks meet the others");
  }
  m->group += of;
}

static void run_body(machine *m, const kl_body *b, bool all) {
  enum { SOME = 12 };
  if (is_empty(b)) return;
  enter_body(m, b);
  int64_t total = b->threads + b->blocks, done[SOME];
  uint32_t of = m->launch->cluster;
  for (int64_t n = 0; of && n < total && (all || n < (int64_t)of * SOME); n += of) run_cluster(m, n);
  if (of) return;
  for (int64_t n = 0; all && n < total; n++) run_number(m, n);
  for (int64_t n = 0, k = 0; !all && n < SOME; n++) {
    int64_t number = n % 2 ? total - 1 - n / 2 % total : n * n * n * 7919 % total;
    bool again = false;
    for (int64_t i = 0; i < k; i++) again = again || done[i] == number;
    if (!again) run_number(m, done[k++] = number);
  }
}

static int64_t run_launch(machine *m, const kl_plan_launch *l, bool all) {
  m->launch = l;
  int64_t count = check_launch(m);
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    run_body(m, &m->plan->parts[i].main, all);
    run_body(m, &m->plan->parts[i].tail, all);
  }
  return count;
}

// Where some blocks only are run, launches behind the first find too little.
static void run_plan(machine *m, const leaves *want, bool all) {
  const kl_plan *p = m->plan;
  make_memory(m, want != NULL);
  if (want && m->in_place) fill_results(m);
  for (uint32_t i = 0, ran = 0; i < p->nlaunches && (all || !ran); i++) {
    if (p->launches[i].when == (m->in_place ? KL_APART : KL_IN_PLACE)) continue;
    int64_t count = run_launch(m, &p->launches[i], all);
    REQUIRE(m, p->nlaunches > 1 || count == p->count, "%lld elements", (ll)count);
    ran++;
  }
  if (want) compare_results(m, want, all);
  for (uint32_t i = 0; i < p->nslots && want && all; i++)
    for (int64_t e = 0; p->slots[i].zero && e < p->slots[i].shape->count; e++)
      REQUIRE(m, m->elements[i][e] == 0, "slot %u: counter %lld is not zero again", i, (ll)e);
}

static const char *start_one(kl_arena *arena, const kl_plan *p, const leaves *want, bool all, bool in_place,
                             int64_t rows) {
  machine *m = KL_NEW(arena, machine);
  m->rows = rows;
  m->arena = arena;
  m->plan = p;
  m->in_place = in_place;
  for (uint32_t i = 0; i < p->nargs; i++) m->pairs += p->slots[i].kind == KL_SLOT_OUT && p->slots[i].alias != KL_NONE;
  m->host = p->target.machine == KL_HOST;
  if (!setjmp(m->stop)) run_plan(m, want, all);
  return m->why;
}

// Results that may be parameters' memory are it, or are not.
static const char *start(kl_arena *arena, const kl_plan *p, const leaves *want, bool all) {
  bool conditions = false;
  for (uint32_t i = 0; i < p->nlaunches; i++) conditions = conditions || p->launches[i].when != KL_ALWAYS;
  const char *why = start_one(arena, p, want, all, false, p->rows);
  return why || !conditions ? why : start_one(arena, p, want, all, true, p->rows);
}

const char *interpret(kl_arena *arena, const kl_plan *p, const leaves *want) {
  return start(arena, p, want, true);
}

const char *interpret_rows(kl_arena *arena, const kl_plan *p, const leaves *want, int64_t rows) {
  return start_one(arena, p, want, true, false, rows);
}

const char *interpret_some(kl_arena *arena, const kl_plan *p, const leaves *want) {
  return start(arena, p, want, false);
}

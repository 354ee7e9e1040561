// Small programs of a few threads that communicate through memory, against the axioms of the PTX memory model: the
// order in which the simulator executes them is noted, and from it alone all relations are enumerated, event by event
// (PTX ISA 8.7, 8.8). What the checks find are the races, one for each access and thread that it races with.
//
// Which of two fence.sc comes first is taken as timing, so that it orders nothing. About 10 s: of 12,688 programs all
// relations are enumerated.

#include "../stage.h"
#include "sim/check/order.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

// --- programs -----------------------------------------------------------------------------------------------------

enum { THREADS = 5, MOST_OPS = 6, EVENTS = 64, CTA = 0, CLUSTER, GPU };
// Clusters of two blocks, four blocks: where the threads are.
static const struct { uint32_t block, thread; } placed[THREADS] = {{0, 0}, {0, 1}, {0, 32}, {1, 0}, {2, 0}};

static const char *const locations[] = {"0", "4", "64", "68"};
static const char *const scopes[] = {"cta", "cluster", "gpu"};
enum { READ = 1, WRITE = 2, ACQUIRE = 4, RELEASE = 8, STRONG = 16, FENCE = 32, NO_RESULT = 64, SYS = 128 };
static const struct {
  unsigned does;
  const char *text; // %s a scope, %u a location's offset, %u a value
} ops[] = {
    {READ, "ld.global.u32 %%r10, [%%d1+%s]"},
    {WRITE, "st.global.u32 [%%d1+%s], %u"},
    {READ | STRONG, "ld.relaxed.%s.global.u32 %%r10, [%%d1+%s]"},
    {WRITE | STRONG, "st.relaxed.%s.global.u32 [%%d1+%s], %u"},
    {READ | STRONG | ACQUIRE, "ld.acquire.%s.global.u32 %%r10, [%%d1+%s]"},
    {WRITE | STRONG | RELEASE, "st.release.%s.global.u32 [%%d1+%s], %u"},
    {READ | STRONG | SYS, "ld.volatile.global.u32 %%r10, [%%d1+%s]"},
    {WRITE | STRONG | SYS, "st.volatile.global.u32 [%%d1+%s], %u"},
    {READ | WRITE | STRONG, "atom.relaxed.%s.global.add.u32 %%r10, [%%d1+%s], %u"},
    {READ | WRITE | STRONG | ACQUIRE, "atom.acquire.%s.global.exch.b32 %%r10, [%%d1+%s], %u"},
    {READ | WRITE | STRONG | RELEASE, "atom.release.%s.global.add.u32 %%r10, [%%d1+%s], %u"},
    {READ | WRITE | STRONG | ACQUIRE | RELEASE, "atom.acq_rel.%s.global.add.u32 %%r10, [%%d1+%s], %u"},
    {READ | WRITE | STRONG | NO_RESULT, "red.relaxed.%s.global.add.u32 [%%d1+%s], %u"},
    {FENCE | STRONG | ACQUIRE | RELEASE, "fence.acq_rel.%s"},
    {FENCE | STRONG | ACQUIRE | RELEASE, "fence.sc.%s"},
    {FENCE | STRONG | ACQUIRE | RELEASE, "fence.acq_rel.%s"},
};
// clang-format off
enum { LD, ST, LD_RELAXED, ST_RELAXED, LD_ACQUIRE, ST_RELEASE, LD_VOLATILE, ST_VOLATILE, ATOM, ATOM_ACQUIRE,
       ATOM_RELEASE, ATOM_ACQ_REL, RED, FENCE_ACQ_REL, FENCE_SC, N_OPS = KL_COUNT(ops) };
// clang-format on

typedef struct step {
  uint8_t op, scope, at;
} step;
typedef struct program {
  struct {
    step of[MOST_OPS];
    unsigned n;
  } threads[THREADS];
} program;

// --- what happened ------------------------------------------------------------------------------------------------

typedef struct event {
  unsigned thread, line, op, scope, at;
} event;
typedef struct trace {
  kl_observer o; // first
  const program *p;
  uint32_t lines[THREADS][MOST_OPS];
  event events[EVENTS];
  unsigned n;
} trace;

static void on_step(kl_observer *o, kl_warp *w, const kl_sim_op *op) {
  trace *t = (trace *)o;
  const kl_code *code = w->strand.frame->code;
  if (!code->forms[op - code->ops] || !code->func->ninstrs) return;
  if (kl_str_is(code->func->instrs[op->index].opcode, "nanosleep")) return;
  uint32_t line = code->func->instrs[op->index].at.line;
  for (unsigned i = 0; i < KL_LANES; i++) {
    if (!(w->x.mask >> i & 1)) continue;
    for (unsigned k = 0; k < THREADS; k++)
      for (unsigned s = 0; s < t->p->threads[k].n; s++) {
        step what = t->p->threads[k].of[s];
        if (placed[k].block != w->block->number || placed[k].thread != w->rank * KL_LANES + i) continue;
        if (t->lines[k][s] != line || t->n == EVENTS) continue;
        t->events[t->n++] = (event){k, line, what.op, ops[what.op].does & SYS ? GPU : what.scope, what.at};
      }
  }
}

// --- the axioms ---------------------------------------------------------------------------------------------------

typedef bool relation[EVENTS][EVENTS];

static bool does(const event *e, unsigned what) {
  return (ops[e->op].does & what) == what;
}
static unsigned apart(const event *a, const event *b) {
  uint32_t x = placed[a->thread].block, y = placed[b->thread].block;
  return x == y ? CTA : x / 2 == y / 2 ? CLUSTER : GPU;
}
static bool same_place(const event *a, const event *b) {
  return !does(a, FENCE) && !does(b, FENCE) && a->at == b->at;
}
static bool strong_for_each_other(const event *a, const event *b) {
  if (!does(a, STRONG) || !does(b, STRONG)) return false;
  if (!does(a, FENCE) && !does(b, FENCE) && a->at != b->at) return false;
  return a->scope >= apart(a, b) && b->scope >= apart(a, b);
}

static void close(relation r, unsigned n) {
  for (unsigned k = 0; k < n; k++)
    for (unsigned i = 0; i < n; i++)
      for (unsigned j = 0; r[i][k] && j < n; j++) r[i][j] |= r[k][j];
}

// Does write w precede read e in observation order? e reads what the last write before it wrote; atomic operations go
// on.
static bool observes(const trace *t, unsigned w, unsigned e) {
  for (unsigned k = e; k-- > w;) {
    const event *x = &t->events[k];
    if (!same_place(x, &t->events[e]) || !does(x, WRITE)) continue;
    if (!strong_for_each_other(x, &t->events[e])) return false;
    return k == w || (does(x, READ | WRITE) && observes(t, w, k));
  }
  return false;
}

// The first operations of release patterns that write w ends, the last ones of acquire patterns that read e begins.
static unsigned release_patterns(const trace *t, unsigned w, unsigned *first) {
  const event *to = &t->events[w];
  unsigned n = 0;
  if (!does(to, STRONG | WRITE)) return 0;
  for (unsigned k = 0; k <= w; k++) {
    const event *x = &t->events[k];
    if (x->thread != to->thread || !does(x, RELEASE)) continue;
    if (does(x, FENCE) ? k < w : x->at == to->at) first[n++] = k;
  }
  return n;
}
static unsigned acquire_patterns(const trace *t, unsigned e, unsigned *last) {
  const event *from = &t->events[e];
  unsigned n = 0;
  if (!does(from, STRONG | READ) || does(from, NO_RESULT)) return 0;
  for (unsigned k = e; k < t->n; k++) {
    const event *x = &t->events[k];
    if (x->thread != from->thread || !does(x, ACQUIRE)) continue;
    if (does(x, FENCE) ? k > e : x->at == from->at) last[n++] = k;
  }
  return n;
}

// The pairs that race, the earlier one first; and what happens before what.
static void races_of(const trace *t, relation found, relation base, relation cause) {
  unsigned n = t->n, first[EVENTS], last[EVENTS];
  memset(base, 0, sizeof(relation));
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = i + 1; j < n; j++) base[i][j] = t->events[i].thread == t->events[j].thread;
  for (unsigned w = 0; w < n; w++)
    for (unsigned e = w + 1; e < n; e++) {
      if (!same_place(&t->events[w], &t->events[e]) || !does(&t->events[w], WRITE) || !does(&t->events[e], READ))
        continue;
      if (!observes(t, w, e)) continue;
      unsigned nf = release_patterns(t, w, first), nl = acquire_patterns(t, e, last);
      for (unsigned i = 0; i < nf; i++)
        for (unsigned j = 0; j < nl; j++)
          if (strong_for_each_other(&t->events[first[i]], &t->events[last[j]])) base[first[i]][last[j]] = true;
    }
  close(base, n);
  memcpy(cause, base, sizeof(relation));
  for (unsigned x = 0; x < n; x++)
    for (unsigned z = x + 1; z < n; z++) {
      if (!does(&t->events[x], WRITE) || !does(&t->events[z], READ) || !same_place(&t->events[x], &t->events[z]))
        continue;
      if (!observes(t, x, z)) continue;
      for (unsigned y = 0; y < n; y++) cause[x][y] |= base[z][y];
    }
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = i + 1; j < n; j++) {
      const event *a = &t->events[i], *b = &t->events[j];
      if (a->thread == b->thread || !same_place(a, b) || !(does(a, WRITE) || does(b, WRITE))) continue;
      if (!cause[i][j] && !strong_for_each_other(a, b)) found[i][j] = true;
    }
}

// --- running ------------------------------------------------------------------------------------------------------

static void put_op(kl_sb *b, step s, unsigned value) {
  char text[128], number[16];
  const char *f = ops[s.op].text;
  unsigned does = ops[s.op].does;
  snprintf(number, sizeof number, "%u", value);
  const char *scope = scopes[s.scope], *at = locations[s.at];
  bool scoped = does & STRONG && !(does & SYS);
  const char *words[3];
  unsigned n = 0;
  if (scoped) words[n++] = scope;
  if (!(does & FENCE)) words[n++] = at;
  if (does & WRITE) words[n++] = number;
  size_t k = 0;
  for (unsigned w = 0; *f; f++) {
    if (f[0] == '%' && (f[1] == 's' || f[1] == 'u'))
      k += (size_t)snprintf(text + k, sizeof text - k, "%s", words[w++]), f++;
    else if (f[0] == '%' && f[1] == '%')
      text[k++] = *f++;
    else
      text[k++] = *f;
  }
  text[k] = 0;
  kl_sb_puts(b, text);
}

static void put_program(kl_sb *b, const program *p, uint32_t lines[THREADS][MOST_OPS]) {
  uint32_t line = 10;
  unsigned value = 0;
  kl_sb_puts(b, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
                ".reg .pred %q<4>;\n.reg .b32 %r<20>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [p];\n"
                "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 100, %r1;\n");
  for (unsigned k = 0; k < THREADS; k++) {
    kl_sbf(b, "setp.ne.u32 %%q1, %%r3, %u; @%%q1 bra L%u;\n", placed[k].block * 100 + placed[k].thread, k);
    line++;
    for (unsigned s = 0; s < p->threads[k].n; s++) {
      put_op(b, p->threads[k].of[s], (++value * 2654435761u) >> 4);
      kl_sb_puts(b, "; nanosleep.u32 20;\n");
      lines[k][s] = line++;
    }
    kl_sbf(b, "ret;\nL%u:\n", k);
    line += 2;
  }
  kl_sb_puts(b, "ret;\n}\n");
}

static unsigned programs, racy;

static bool is_told(const kl_report *r, const trace *t, unsigned i, unsigned j) {
  for (size_t f = 0; f < r->found.n; f++) {
    uint32_t x = r->found.p[f].at.instr->at.line, y = r->found.p[f].other.instr->at.line;
    if ((x == t->events[i].line && y == t->events[j].line) || (y == t->events[i].line && x == t->events[j].line))
      return true;
  }
  return false;
}

static bool is_plain_read(const event *e) {
  return ops[e->op].does == READ;
}

// Plain readers of two blocks stand for all others: has i gone before j for such a pair?
static bool is_one_of_many(const trace *t, unsigned i, unsigned j) {
  uint32_t blocks = 0;
  for (unsigned k = 0; k < j && is_plain_read(&t->events[i]); k++)
    if (k != i && is_plain_read(&t->events[k]) && same_place(&t->events[i], &t->events[k]))
      blocks |= 1u << placed[t->events[k].thread].block;
  return (blocks & (blocks - 1)) != 0;
}

// Is the race of i and j not told because another access k of i's thread to the same place is told in its place; or
// because one behind it comes before j, though by observation alone, which does not order i? Or because such a one
// stands for i, and the same is true of it?
static bool is_covered(const kl_report *r, const trace *t, unsigned i, unsigned j, relation races, relation before,
                       relation cause) {
  if (is_one_of_many(t, i, j)) return true;
  for (unsigned k = 0; k < j; k++) {
    if (!same_place(&t->events[i], &t->events[k])) continue;
    bool later = before[i][k], same = t->events[i].thread == t->events[k].thread;
    if ((same || cause[i][k]) && is_told(r, t, k, j)) return true;
    if (same && later && cause[k][j] && !before[k][j]) return true;
    if (((same && later) || cause[i][k]) && races[k][j] && is_covered(r, t, k, j, races, before, cause)) return true;
  }
  return false;
}

// All that is told is a race, and all races are told but for these.
static void judge(const program *p, uint64_t shuffle, const char *name) {
  stage s;
  kl_fault fault;
  kl_report report = {0};
  static trace t;
  static relation races, before, cause;
  kl_sb text, b;
  t = (trace){.o = {.step = on_step}, .p = p};
  memset(races, 0, sizeof races);
  stage_open(&s);
  kl_sb_init(&text, s.cx);
  kl_sb_init(&b, s.cx);
  put_program(&text, p, t.lines);
  stage_expect(&s, name, text.p, "k");
  uint64_t address = stage_memory(&s, 4096);
  kl_observer *both[] = {&t.o, kl_order_new(s.cx, &report, KL_ORDER_RACES)};
  kl_launch launch = {.kernel = s.k,
                      .grid = {4, 1, 1},
                      .block = {64, 1, 1},
                      .cluster = {2, 1, 1},
                      .params = &address,
                      .shuffle = shuffle,
                      .observers = both,
                      .nobservers = 2};
  ck_assert_int_eq(kl_launch_run(s.cx, &s.m, &launch, &fault), KILN_OK);
  kl_order_free(both[1]);
  races_of(&t, races, before, cause);
  unsigned wrong = 0, n = 0;
  for (unsigned i = 0; i < t.n; i++)
    for (unsigned j = i + 1; j < t.n; j++) {
      bool told = is_told(&report, &t, i, j);
      n += races[i][j];
      if (told ? races[i][j] : !races[i][j] || is_covered(&report, &t, i, j, races, before, cause)) continue;
      kl_sbf(&b, "lines %u and %u: %s\n", t.events[i].line, t.events[j].line, told ? "no race" : "a race");
      wrong++;
    }
  programs++;
  racy += n > 0;
  if (wrong) {
    kl_sb_puts(&b, "order:");
    for (unsigned i = 0; i < t.n; i++) kl_sbf(&b, " %u", t.events[i].line);
    kl_sb_puts(&b, "\nraces:");
    for (unsigned i = 0; i < t.n; i++)
      for (unsigned j = i + 1; j < t.n; j++)
        if (races[i][j])
          kl_sbf(&b, " %u-%u%s", t.events[i].line, t.events[j].line, is_told(&report, &t, i, j) ? " (told)" : "");
    ck_abort_msg("%s, seed %u, by the axioms:\n%s\n%s", name, (unsigned)shuffle, b.p, text.p);
  }
  kl_sb_free(&b);
  kl_sb_free(&text);
  kl_report_free(s.cx, &report);
  stage_close(&s);
}

// --- shapes -------------------------------------------------------------------------------------------------------

enum { X, Y, FLAG, FLAG2 };
// How a message is sent and received: an op before the flag's, the flag's, an op behind it; N_OPS: none.
static const uint8_t sends[][2] = {{N_OPS, ST},
                                   {N_OPS, ST_RELAXED},
                                   {N_OPS, ST_RELEASE},
                                   {FENCE_ACQ_REL, ST_RELAXED},
                                   {FENCE_SC, ST_VOLATILE},
                                   {FENCE_ACQ_REL, ST},
                                   {FENCE_ACQ_REL, ATOM},
                                   {N_OPS, ATOM_RELEASE},
                                   {FENCE_SC, RED},
                                   {N_OPS, ATOM_ACQUIRE}};
static const uint8_t receives[][2] = {{LD, N_OPS},
                                      {LD_RELAXED, N_OPS},
                                      {LD_ACQUIRE, N_OPS},
                                      {LD_RELAXED, FENCE_ACQ_REL},
                                      {LD_VOLATILE, FENCE_SC},
                                      {ATOM, FENCE_ACQ_REL},
                                      {ATOM_ACQUIRE, N_OPS},
                                      {RED, FENCE_ACQ_REL},
                                      {LD, FENCE_SC},
                                      {LD_RELAXED, LD_ACQUIRE}};

static void add(program *p, unsigned thread, unsigned op, unsigned scope, unsigned at) {
  if (op != N_OPS) p->threads[thread].of[p->threads[thread].n++] = (step){(uint8_t)op, (uint8_t)scope, (uint8_t)at};
}

// Message passing, between all places, each strength with each; with a third thread in between.
START_TEST(messages) {
  for (size_t s = 0; s < KL_COUNT(sends); s++)
    for (size_t r = 0; r < KL_COUNT(receives); r++)
      for (unsigned to = 1; to < THREADS; to++)
        for (unsigned scope = 0; scope < 9; scope++) {
          program p = {0};
          add(&p, 0, ST, 0, X);
          add(&p, 0, sends[s][0], scope / 3, FLAG);
          add(&p, 0, sends[s][1], scope / 3, FLAG);
          add(&p, to, receives[r][0], scope % 3, FLAG);
          add(&p, to, receives[r][1], scope % 3, FLAG);
          add(&p, to, LD, 0, X);
          add(&p, to, ST, 0, FLAG);
          judge(&p, 1 + (s * 7 + r + to + scope) % 5, "message");
          if ((s + r + to + scope) % 3) continue;
          unsigned via = to == 1 ? 2 : 1;
          program q = {0};
          add(&q, 0, ST, 0, X);
          add(&q, 0, sends[s][0], scope / 3, FLAG);
          add(&q, 0, sends[s][1], scope / 3, FLAG);
          add(&q, via, s % 2 ? ATOM : ATOM_ACQ_REL, scope % 3, FLAG);
          add(&q, to, receives[r][0], scope % 3, FLAG);
          add(&q, to, receives[r][1], scope % 3, FLAG);
          add(&q, to, LD, 0, X);
          judge(&q, 1 + (s + r) % 5, "message over an atomic operation");
        }
}
END_TEST

// Store buffering, load buffering, independent reads: accesses of each strength and a fence or none between them.
START_TEST(shapes) {
  static const uint8_t stores[] = {ST, ST_RELAXED, ST_RELEASE, ATOM}, loads[] = {LD, LD_RELAXED, LD_ACQUIRE, ATOM},
                       fences[] = {N_OPS, FENCE_ACQ_REL, FENCE_SC};
  for (unsigned k = 0; k < 4 * 4 * 3 * 3 * 3; k++) {
    unsigned store = stores[k % 4], load = loads[k / 4 % 4], fence = fences[k / 16 % 3], scope = k / 48 % 3;
    unsigned other = k / 144 == 0 ? 1 : k / 144 == 1 ? 3 : 4;
    program sb = {0}, lb = {0}, iriw = {0};
    add(&sb, 0, store, scope, X), add(&sb, 0, fence, scope, X), add(&sb, 0, load, scope, Y);
    add(&sb, other, store, scope, Y), add(&sb, other, fence, scope, X), add(&sb, other, load, scope, X);
    add(&lb, 0, load, scope, X), add(&lb, 0, fence, scope, X), add(&lb, 0, store, scope, Y);
    add(&lb, other, load, scope, Y), add(&lb, other, fence, scope, X), add(&lb, other, store, scope, X);
    add(&iriw, 0, store, scope, X), add(&iriw, other, store, scope, Y);
    add(&iriw, 2, load, scope, X), add(&iriw, 2, fence, scope, X), add(&iriw, 2, load, scope, Y);
    unsigned last = other == 3 ? 4 : 3;
    add(&iriw, last, load, scope, Y), add(&iriw, last, fence, scope, X), add(&iriw, last, load, scope, X);
    for (uint64_t seed = 0; seed < 3; seed++) {
      judge(&sb, seed, "store buffering");
      judge(&lb, seed, "load buffering");
      judge(&iriw, seed, "independent reads of independent writes");
    }
  }
}
END_TEST

START_TEST(random_programs) {
  random_seed((uint64_t)_i);
  for (uint64_t k = 0, n = share_of(1000); k < n; k++) {
    program p = {0};
    for (unsigned t = 0; t < THREADS; t++) {
      unsigned count = (unsigned)(random_bits() % (MOST_OPS + 1));
      for (unsigned s = 0; s < count; s++) {
        uint64_t draw = random_bits();
        unsigned op = draw % N_OPS, scope = draw >> 8 & 3;
        add(&p, t, op, scope == 3 ? 2 : scope, op == ST || op == LD ? draw >> 16 & 3 : 2 + (draw >> 16 & 1));
      }
    }
    judge(&p, random_bits() % 16, "random");
  }
}
END_TEST

START_TEST(both_kinds_ran) {
  printf("# %u programs, %u of them with races\n", programs, racy);
  ck_assert_uint_gt(racy, programs / 20);
  ck_assert_uint_lt(racy, programs - programs / 20);
}
END_TEST

int main(void) {
  return RUN_TESTS("order_litmus", NO_FRAME, {messages}, {shapes}, {random_programs, 4}, {both_kinds_ran});
}

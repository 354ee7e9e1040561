// The tree of nodes at work: each node is done by all threads of a group before the next.

#include "machine.h"

uint64_t operand_at(const machine *m, uint32_t step, uint32_t thread, const int64_t *at) {
  return values_of(m, step, thread)[of_point(m->body, m->body->steps[step].regs, at)];
}

// --- steps ----------------------------------------------------------------------------------------------------------

static uint64_t choose(machine *m, const kl_step *s, uint32_t thread, const int64_t *at) {
  uint32_t i = 0;
  while (i + 1 < s->noperands && !holds_at(m, s->guards[i], thread, at)) i++;
  return operand_at(m, s->operands[i], thread, at);
}

// Of operations on few values, and of parts of an element.
enum { MOST_OPERANDS = 64 };

static int64_t held_to(int64_t x, int64_t lo, int64_t hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

// Truths are those of a choice, whatever else they are made of.
static uint64_t any_lane(machine *m, uint32_t step, uint32_t thread, const int64_t *at) {
  const uint64_t yes[2] = {1, 0}, no[2] = {0, 0};
  uint64_t truth = of_bits(KILN_PRED, yes);
  for (uint32_t l = 0; l < lanes_in_warp(m); l++) {
    int64_t there[KL_MAX_VARS];
    uint32_t other = thread - thread % lanes_in_warp(m) + l;
    memcpy(there, m->vars[other], m->body->nvars * sizeof *there);
    for (uint32_t v = 0; v < m->body->nvars; v++)
      if (has_var(m->body->steps[step].regs, v)) there[v] = at[v];
    if (operand_at(m, step, other, there) == truth) return truth;
  }
  return of_bits(KILN_PRED, no);
}

static uint64_t slid(machine *m, const kl_step *s, uint32_t thread, const int64_t *at) {
  int64_t there[KL_MAX_VARS], n = m->body->vars[s->var].extent, by = value_at(m, s->expr, thread, at);
  memcpy(there, at, m->body->nvars * sizeof *there);
  REQUIRE(m, by >= 0 && by < n, "slides %lld of %lld copies", (ll)by, (ll)n);
  there[s->var] = (at[s->var] + by) % n;
  return operand_at(m, s->operands[at[s->var] + by >= n], thread, there);
}

static uint64_t compute(machine *m, const kl_step *s, uint32_t thread, const int64_t *at) {
  uint64_t x[MOST_OPERANDS];
  if (s->kind == KL_STEP_CHOOSE) return choose(m, s, thread, at);
  if (s->kind == KL_STEP_SLIDE) return slid(m, s, thread, at);
  REQUIRE(m, s->noperands <= MOST_OPERANDS, "%u operands", s->noperands);
  for (uint32_t i = 0; i < s->noperands; i++) x[i] = operand_at(m, s->operands[i], thread, at);
  switch (s->kind) {
  case KL_STEP_SCALAR: return of_bits(s->dtype, s->bits);
  case KL_STEP_IOTA: return of_iota(s->dtype, value_at(m, s->expr, thread, at));
  case KL_STEP_SPLIT: return of_part(x[0], (uint64_t)value_at(m, s->expr, thread, at));
  case KL_STEP_JOIN: return of_join(s->noperands, x);
  case KL_STEP_FMA: return of_fma(s->dtype, x);
  case KL_STEP_TAKE:
  case KL_STEP_EXCHANGE:
  case KL_STEP_ROTATE:
  case KL_STEP_SHUFFLE: return x[0];
  case KL_STEP_ANY: return any_lane(m, *s->operands, thread, at);
  case KL_STEP_INDEX: {
    const kl_symbol *to = &m->body->symbols[s->var];
    return (uint64_t)held_to(integer_of(m->body->steps[s->operands[0]].dtype, x[0]), to->lo, to->hi);
  }
  default: return of_op(&s->op, m->body->steps[s->operands[0]].dtype, s->dtype, s->noperands, x);
  }
}

// The thread whose value the step takes.
static uint32_t taken_from(machine *m, uint32_t step, uint32_t thread) {
  const kl_step *s = &m->body->steps[step];
  if (s->kind != KL_STEP_SHUFFLE && s->kind != KL_STEP_ROTATE) return thread;
  uint32_t lane = thread % lanes_in_warp(m), other = thread ^ s->distance;
  if (s->kind == KL_STEP_ROTATE) other = thread - lane + (lane + s->distance) % lanes_in_warp(m);
  REQUIRE(m, m->active[other], "step %u: thread %u takes the value of thread %u, which is not there", step, thread,
          other);
  return other;
}

// The thread whose other half a copy of an exchange is, and that copy: the digit of one is the other's.
static uint32_t exchange(machine *m, uint32_t step, uint32_t thread, int64_t *at) {
  const kl_step *s = &m->body->steps[step];
  int64_t like[KL_MAX_VARS], digit = at[s->var] / s->distance % 2, lane = m->vars[thread][s->lane];
  memcpy(like, m->vars[thread], m->body->nvars * sizeof *like);
  at[s->var] += (lane - digit) * s->distance;
  like[s->lane] = digit;
  return thread - thread % lanes_in_warp(m) + (uint32_t)of_point(m->body, bound_to(m->body, KL_BIND_LANE), like);
}

// In a thread, of a step that is no load.
static void run_copies(machine *m, uint32_t step, uint32_t thread) {
  const kl_step *s = &m->body->steps[step];
  uint32_t from = taken_from(m, step, thread);
  int64_t at[KL_MAX_VARS];
  memcpy(at, m->vars[thread], m->body->nvars * sizeof *at);
  if (s->kind == KL_STEP_TAKE) at[s->var] = s->distance;
  for (uint32_t i = 0; i < m->copies[step]; i++) {
    to_point(m->body, s->regs, KL_NONE, i, at);
    if (s->kind == KL_STEP_EXCHANGE) from = exchange(m, step, thread, at);
    values_of(m, step, thread)[i] = compute(m, s, from, at);
  }
}

// All lanes of a warp, or none.
static void check_warps(machine *m, uint32_t step) {
  for (uint32_t t = 0; t < m->nthreads; t++)
    REQUIRE(m, m->active[t] == m->active[t - t % lanes_in_warp(m)], "step %u: a shuffle that not all lanes come to",
            step);
}

// Threads that differ in nothing that the value depends on have the same.
static void check_vars(machine *m, uint32_t step) {
  const kl_body *b = m->body;
  kl_vars vars = b->steps[step].vars, warps = bound_to(b, KL_BIND_WARP), lanes = bound_to(b, KL_BIND_LANE);
  for (uint32_t t = 0; t < m->nthreads; t++) {
    const int64_t *at = m->vars[t];
    int64_t like[KL_MAX_VARS];
    for (uint32_t v = 0; v < b->nvars; v++) like[v] = has_var(vars, v) ? at[v] : 0;
    int64_t other = of_point(b, warps, like) * lanes_in_warp(m) + of_point(b, lanes, like);
    if (other == t || !m->active[t] || !m->active[other]) continue;
    REQUIRE(m,
            memcmp(values_of(m, step, t), values_of(m, step, (uint32_t)other), m->copies[step] * sizeof *m->vals) == 0,
            "step %u: thread %u has another value than thread %lld", step, t, (ll)other);
  }
}

static void run_step(machine *m, uint32_t step) {
  const kl_step *s = &m->body->steps[step];
  if (s->kind == KL_STEP_LOAD) run_load(m, step);
  if (s->kind == KL_STEP_SHUFFLE || s->kind == KL_STEP_ROTATE || s->kind == KL_STEP_EXCHANGE || s->kind == KL_STEP_ANY)
    check_warps(m, step);
  for (uint32_t t = 0; s->kind != KL_STEP_LOAD && t < m->nthreads; t++)
    if (m->active[t]) run_copies(m, step, t);
  check_vars(m, step);
  if (s->kind != KL_STEP_INDEX) return;
  m->known[s->var] = true;
  check_symbol(m, s->var);
}

// --- control --------------------------------------------------------------------------------------------------------

static void run_seq(machine *m, const kl_seq *s, kl_vars open);

// What is carried becomes the value of other steps, all at once.
static void carry(machine *m, const kl_nest *n, bool first, uint64_t *room) {
  const kl_body *b = m->body;
  for (uint32_t t = 0; t < m->nthreads; t++) {
    uint64_t *at_once = room;
    for (uint32_t i = 0; m->active[t] && i < n->ncarried; i++) {
      const kl_carried *c = &n->carried[i];
      for (uint32_t k = 0; k < m->copies[c->value]; k++) {
        int64_t at[KL_MAX_VARS];
        to_point(b, b->steps[c->value].regs, KL_NONE, k, at);
        *at_once++ = operand_at(m, first ? c->first : c->next, t, at);
      }
    }
    at_once = room;
    for (uint32_t i = 0; m->active[t] && i < n->ncarried; i++)
      for (uint32_t k = 0; k < m->copies[n->carried[i].value]; k++)
        values_of(m, n->carried[i].value, t)[k] = *at_once++;
  }
}

static void run_loop(machine *m, const kl_node *n, kl_vars open) {
  const kl_body *b = m->body;
  kl_vars inside = open | (kl_vars)1 << n->index;
  size_t ncarried = 0;
  for (uint32_t i = 0; i < n->nest->ncarried; i++) ncarried += m->copies[n->nest->carried[i].value];
  uint64_t *room = KL_NEW_N(m->arena, uint64_t, ncarried + 1);
  for (int64_t round = 0; round < b->vars[n->index].extent; round++) {
    carry(m, n->nest, round == 0, room);
    for (uint32_t t = 0; t < m->nthreads; t++) m->vars[t][n->index] = round;
    check_guards(m, inside, n->index);
    run_seq(m, &n->nest->inside, inside);
  }
}

// Of a copy that a truth is about, which may be one of more that are carried.
static bool goes_on(const machine *m, uint32_t test, uint32_t thread, const int64_t *at) {
  return integer_of(KILN_PRED, operand_at(m, test, thread, at)) != 0;
}

enum { MOST_ROUNDS = 10000 };

// A thread whose copies have all had their rounds does nothing; a copy of one that has not keeps what it had.
static void run_while(machine *m, const kl_node *n, kl_vars open) {
  const kl_body *b = m->body;
  bool *before = m->active, some = true;
  size_t ncarried = 0;
  for (uint32_t i = 0; i < n->nest->ncarried; i++) ncarried += m->copies[n->nest->carried[i].value];
  uint64_t *room = KL_NEW_N(m->arena, uint64_t, ncarried + 1);
  carry(m, n->nest, true, room);
  m->active = kl_arena_dup(m->arena, before, (m->nthreads + 1) * sizeof *before);
  for (unsigned round = 0; some; round++) {
    REQUIRE(m, round < MOST_ROUNDS, "a loop that does not end");
    some = false;
    for (uint32_t t = 0; t < m->nthreads; t++) {
      bool goes = false;
      for (uint32_t k = 0; before[t] && k < m->copies[n->index]; k++) {
        int64_t at[KL_MAX_VARS];
        to_point(b, b->steps[n->index].regs, KL_NONE, k, at);
        goes = goes || goes_on(m, n->index, t, at);
      }
      m->active[t] = goes;
      some = some || goes;
    }
    if (!some) break;
    run_seq(m, &n->nest->inside, open);
    for (uint32_t t = 0; t < m->nthreads; t++) {
      uint64_t *now = room;
      for (uint32_t i = 0; m->active[t] && i < n->nest->ncarried; i++)
        for (uint32_t k = 0; k < m->copies[n->nest->carried[i].value]; k++) {
          const kl_carried *c = &n->nest->carried[i];
          int64_t at[KL_MAX_VARS];
          to_point(b, b->steps[c->value].regs, KL_NONE, k, at);
          *now++ = goes_on(m, n->index, t, at) ? operand_at(m, c->next, t, at) : values_of(m, c->value, t)[k];
        }
      now = room;
      for (uint32_t i = 0; m->active[t] && i < n->nest->ncarried; i++)
        for (uint32_t k = 0; k < m->copies[n->nest->carried[i].value]; k++)
          values_of(m, n->nest->carried[i].value, t)[k] = *now++;
    }
  }
  m->active = before;
}

static void run_if(machine *m, const kl_node *n, kl_vars open) {
  bool *before = m->active, some = false;
  m->active = kl_arena_dup(m->arena, before, (m->nthreads + 1) * sizeof *before);
  for (uint32_t t = 0; t < m->nthreads; t++) {
    m->active[t] = before[t] && holds_at(m, n->index, t, m->vars[t]);
    some = some || m->active[t];
  }
  if (some) run_seq(m, &n->nest->inside, open);
  m->active = before;
}

// Element by element, a thread at a time.
static void run_update(machine *m, const kl_node *n, kl_vars open) {
  const kl_store *s = &m->body->stores[n->index];
  uint32_t old = n->nest->carried->value;
  bool *before = m->active;
  m->active = KL_NEW_N(m->arena, bool, m->nthreads + 1);
  for (uint32_t t = 0; t < actors(m); t++)
    for (int64_t i = 0; before[t] && i < (int64_t)s->access.nchunks * s->access.vec; i++) {
      int64_t e, at[KL_MAX_VARS];
      uint32_t thread;
      if (!changed_element(m, s, t, i, &e, &thread, at)) continue;
      m->active[thread] = true;
      for (uint32_t k = 0; k < m->copies[old]; k++) values_of(m, old, thread)[k] = element_now(m, s->access.slot, e);
      run_seq(m, &n->nest->inside, open);
      change_element(m, s->access.slot, e, operand_at(m, s->step, thread, at));
      m->active[thread] = false;
    }
  m->active = before;
}

// What the joining makes of two tuples, by the first thread: `of` becomes it.
static void join_two(machine *m, const kl_nest *n, uint64_t *of, const uint64_t *with, kl_vars open) {
  uint32_t half = n->ncarried / 2;
  for (uint32_t i = 0; i < half; i++) {
    *values_of(m, n->carried[i].value, 0) = of[i];
    *values_of(m, n->carried[half + i].value, 0) = with[i];
  }
  run_seq(m, &n->inside, open);
  for (uint32_t i = 0; i < half; i++) of[i] = operand_at(m, n->carried[i].next, 0, m->vars[0]);
}

// What a node of blocks makes: 16 to the power of `level` of them.
static void of_node(machine *m, const kl_nest *n, const uint64_t *line, int64_t node, uint32_t level, uint64_t *sum) {
  uint32_t half = n->ncarried / 2;
  uint64_t *more = KL_NEW_N(m->arena, uint64_t, half + 1);
  memcpy(sum, line + node * half, half * sizeof *sum);
  if (level == 0) return;
  of_node(m, n, line, 16 * node, level - 1, sum);
  for (int64_t i = 1; i < 16; i++) {
    of_node(m, n, line, 16 * node + i, level - 1, more);
    join_two(m, n, sum, more, 0);
  }
}

// Blocks run one after the other, and what each has made is kept. The first thread's is the block's.
static void run_before(machine *m, const kl_node *node) {
  const kl_nest *n = node->nest;
  uint32_t half = n->ncarried / 2;
  kl_vars others = bound_to(m->body, KL_BIND_BLOCK) & ~((kl_vars)1 << node->index);
  int64_t *at = m->vars[0], extent = m->body->vars[node->index].extent, place = at[node->index];
  uint64_t *x = KL_NEW_N(m->arena, uint64_t, 3 * half), *sum = x + half, *more = sum + half;
  if (!m->before) m->before = KL_NEW_N(m->arena, uint64_t, points_of(m->body, others) * extent * half);
  uint64_t *line = m->before + of_point(m->body, others, at) * extent * half;
  bool *before = m->active;
  for (uint32_t t = 0; t < m->nthreads; t++) REQUIRE(m, m->active[t], "thread %u does not wait", t);
  m->active = KL_NEW_N(m->arena, bool, m->nthreads + 1);
  m->active[0] = true;
  for (uint32_t i = 0; i < half; i++) {
    x[i] = operand_at(m, n->carried[i].first, 0, at);
    line[place * half + i] = operand_at(m, n->carried[half + i].first, 0, at);
  }
  for (uint32_t level = 9; level-- > 0;) {
    int64_t own = place >> 4 * level, first = own / 16 * 16;
    for (int64_t i = first; i < own; i++) {
      of_node(m, n, line, i, level, i > first ? more : sum);
      if (i > first) join_two(m, n, sum, more, 0);
    }
    if (own > first) join_two(m, n, x, sum, 0);
  }
  m->active = before;
  for (uint32_t t = 0; t < m->nthreads; t++)
    for (uint32_t i = 0; i < half; i++) *values_of(m, n->carried[i].value, t) = x[i];
  m->syncs++;
}

// Blocks run one after the other: the last to come has all others before it.
static void run_last(machine *m, const kl_node *n) {
  const kl_arrival *a = &n->nest->arrival;
  int64_t counter = value_at(m, a->element, 0, m->vars[0]), of = points_of(m->body, a->of);
  const kl_slot_info *s = &m->plan->slots[a->slot];
  REQUIRE(m, s->zero && counter >= 0 && counter < s->shape->count, "counter %lld of slot %u", (ll)counter, a->slot);
  for (uint32_t t = 0; t < m->nthreads; t++) REQUIRE(m, m->active[t], "thread %u does not come last or not", t);
  m->syncs++;
  if (!m->elements[a->slot]) return;
  m->arrived[m->group] = m->last = (int64_t)a->slot << 40 | counter;
  if (++m->elements[a->slot][counter] == (uint64_t)of) {
    m->elements[a->slot][counter] = 0;
    run_seq(m, &n->nest->inside, 0);
  }
  m->last = NOT;
}

static void run_sync(machine *m) {
  for (uint32_t t = 0; t < m->nthreads; t++) REQUIRE(m, m->active[t], "a sync that thread %u does not come to", t);
  m->syncs++;
}

static void run_meet(machine *m) {
  REQUIRE(m, m->others, "a block that has no others meets them");
  run_sync(m);
  m->met++;
  swapcontext(m->own, m->others);
}

static void run_seq(machine *m, const kl_seq *s, kl_vars open) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    switch (n->kind) {
    case KL_NODE_STEP: run_step(m, n->index); break;
    case KL_NODE_STORE: run_store(m, &m->body->stores[n->index]); break;
    case KL_NODE_LOOP: run_loop(m, n, open); break;
    case KL_NODE_WHILE: run_while(m, n, open); break;
    case KL_NODE_IF: run_if(m, n, open); break;
    case KL_NODE_UPDATE: run_update(m, n, open); break;
    case KL_NODE_BEFORE: run_before(m, n); break;
    case KL_NODE_LAST: run_last(m, n); break;
    case KL_NODE_MEET: run_meet(m); break;
    case KL_NODE_SYNC: run_sync(m); break;
    }
  }
}

void run_group(machine *m) {
  for (uint32_t t = 0; t < m->nthreads; t++) m->active[t] = true;
  m->syncs = 1;
  for (uint32_t i = 0; i < m->body->nsymbols; i++) m->known[i] = m->body->symbols[i].step == KL_NONE;
  clear_shared(m);
  check_guards(m, 0, KL_NONE);
  run_seq(m, &m->body->root, 0);
}

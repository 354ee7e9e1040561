// About how many registers a thread of a body has at once: values from where they are made to where they are taken
// last, one step behind the other, and what addresses and functions need beside them.

#include "lower/plan/cost/impl.h"

enum { MOST_ARRAYS = 6 }; // whose pointers are held at once

// Steps in the order of nodes; what a loop or a branch takes of outside it takes until its end.
typedef struct ranging {
  const kl_plan *p;
  const kl_body *b;
  uint32_t *at, *last; // by step: where it is made, and taken last; 0: not
  double *change;      // by place: registers that come, less those that go
  uint32_t place;
} ranging;

static double of_copy(const ranging *x, const kl_step *s) {
  double bits = kl_info(s->dtype)->bits;
  if (s->kind == KL_STEP_SCALAR || s->dtype == KILN_PRED) return 0;
  if (s->kind == KL_STEP_LOAD && x->p->slots[s->access.slot].by_value) return 0;
  if (bits == 16 && kl_is_float(s->dtype)) return 0.5;
  bool together = s->kind == KL_STEP_LOAD || s->kind == KL_STEP_EXCHANGE || kl_is_float(s->dtype);
  return bits >= 32 ? bits / 32 : together ? bits / 32 : 1;
}

static void take(void *arg, uint32_t step) {
  ranging *x = arg;
  x->last[step] = x->place;
}

static void walk(ranging *x, const kl_seq *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    x->place++;
    kl_each_taken(x->b, n, take, x);
    if (n->kind == KL_NODE_STEP) x->at[n->index] = x->place;
    if (!n->nest) continue;
    for (uint32_t k = 0; k < n->nest->ncarried; k++) x->at[n->nest->carried[k].value] = x->place;
    uint32_t before = x->place;
    walk(x, &n->nest->inside);
    x->place++;
    for (uint32_t v = 0; v < x->b->nsteps; v++) // a next round takes it, too
      if (x->last[v] > before && x->at[v] <= before && x->at[v]) x->last[v] = x->place;
    for (uint32_t k = 0; k < n->nest->ncarried; k++) {
      x->last[n->nest->carried[k].value] = x->place;
      x->last[n->nest->carried[k].next] = x->place;
    }
  }
}

static uint32_t nodes_of(const kl_seq *s) {
  uint32_t n = 2 * s->n + 2;
  for (uint32_t i = 0; i < s->n; i++)
    if (s->nodes[i].nest) n += nodes_of(&s->nodes[i].nest->inside);
  return n;
}

// What a function holds beside operands and result, roughly.
static double of_function(const kl_body *b) {
  double most = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    if (b->steps[i].kind != KL_STEP_OP) continue;
    double n = kl_function_instructions(b, &b->steps[i]), held = n < 4 ? 0 : n < 30 ? 4 : n < 80 ? 8 : 14;
    most = held > most ? held : most;
  }
  return most;
}

// Taken copies are those of the value that they are taken of, from where it is made on.
static void add_ranges(ranging *x) {
  const kl_body *b = x->b;
  bool *split = KL_NEW_N(x->p->arena, bool, b->nsteps + 1);
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_TAKE) split[*b->steps[i].operands] = true;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (!x->at[i] || !x->last[i] || split[i]) continue;
    uint32_t from = x->at[i];
    for (uint32_t t = i; b->steps[t].kind == KL_STEP_TAKE; t = *b->steps[t].operands)
      from = x->at[*b->steps[t].operands];
    double n = (double)kl_extent(b, s->regs) * of_copy(x, s);
    x->change[from] += n;
    x->change[x->last[i]] -= n; // its place is the result's
  }
}

// A thread's numbers; a pointer to each array; of values seven in ten, as ptxas makes one copy behind the other where
// that holds fewer.
static const double of_thread = 9, of_array = 2, of_values = 0.72;

double kl_body_registers(kl_plan *p, const kl_plan_launch *l, const kl_body *b) {
  uint32_t n = nodes_of(&b->root);
  ranging x = {.p = p, .b = b};
  double now = 0, most = 0, arrays = 0;
  x.at = KL_NEW_N(p->arena, uint32_t, b->nsteps + 1);
  x.last = KL_NEW_N(p->arena, uint32_t, b->nsteps + 1);
  x.change = KL_NEW_N(p->arena, double, n + 1);
  walk(&x, &b->root);
  add_ranges(&x);
  for (uint32_t i = 0; i <= n; i++) {
    now += x.change[i];
    most = now > most ? now : most;
  }
  for (uint32_t i = 0; i < l->nargs; i++) arrays += !p->slots[l->args[i]].by_value;
  if (arrays > MOST_ARRAYS) arrays = MOST_ARRAYS;
  return of_thread + of_array * arrays + of_values * (most + of_function(b));
}

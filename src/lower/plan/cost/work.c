// What one iteration of a host's launch takes: how many of them a thread must have to be worth its start.

#include "lower/plan/cost/impl.h"

// Of a loop that ends when data says so.
enum { ROUNDS = 16 };

static double of_seq(const kl_plan *p, const kl_body *b, const kl_seq *s);

// Without what is inside of it.
static double of_itself(const kl_plan *p, const kl_body *b, const kl_node *n) {
  switch (n->kind) {
  case KL_NODE_STEP: return kl_step_instructions(p, b, &b->steps[n->index]) + b->steps[n->index].access.nchunks;
  case KL_NODE_STORE: return b->stores[n->index].access.nchunks;
  default: return 0;
  }
}

static double of_node(const kl_plan *p, const kl_body *b, const kl_node *n) {
  double inside = n->nest ? of_seq(p, b, &n->nest->inside) : 0;
  switch (n->kind) {
  case KL_NODE_STEP:
  case KL_NODE_STORE: return of_itself(p, b, n);
  case KL_NODE_WHILE: return ROUNDS * inside;
  case KL_NODE_LOOP: return (double)b->vars[n->index].extent * inside;
  default: return inside;
  }
}

static double of_seq(const kl_plan *p, const kl_body *b, const kl_seq *s) {
  double sum = 1;
  for (uint32_t i = 0; i < s->n; i++) sum += of_node(p, b, &s->nodes[i]);
  return sum;
}

double kl_iteration_work(const kl_plan *p, const kl_plan_launch *l) {
  double most = 1;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    const kl_body *b = &p->parts[i].main;
    double work = kl_body_is_empty(b) ? 0 : of_seq(p, b, &b->root);
    most = work > most ? work : most;
  }
  return most;
}

// --- the size of code -----------------------------------------------------------------------------------------------

static void add_size(const kl_plan *p, const kl_body *b, const kl_seq *s, double times, bool carried,
                     kl_code_size *size) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    double self = of_itself(p, b, n);
    size->code += self;
    size->nodes += n->kind == KL_NODE_STEP || n->kind == KL_NODE_STORE;
    *(carried ? &size->carried : &size->outside) += times * self;
    if (!n->nest) continue;
    bool again = n->kind == KL_NODE_LOOP || n->kind == KL_NODE_WHILE;
    double rounds = n->kind == KL_NODE_LOOP ? (double)b->vars[n->index].extent : again ? ROUNDS : 1;
    add_size(p, b, &n->nest->inside, times * rounds, carried || (again && n->nest->ncarried), size);
  }
}

double kl_times_done(const kl_plan *p) {
  double done = 0, code = 1;
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_body *bodies[2] = {&p->parts[i].main, &p->parts[i].tail};
    for (int k = 0; k < 2; k++) {
      const kl_body *b = bodies[k];
      kl_code_size one = {0};
      if (kl_body_is_empty(b)) continue;
      add_size(p, b, &b->root, 1, false, &one);
      code += one.code;
      done += (double)(b->threads + b->blocks) * (one.outside + one.carried);
    }
  }
  return done / code;
}

kl_code_size kl_size_of_code(const kl_plan *p) {
  kl_code_size most = {0};
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_body *b = &p->parts[i].main;
    kl_code_size one = {0};
    if (!kl_body_is_empty(b)) add_size(p, b, &b->root, 1, false, &one);
    if (one.code > most.code) most = one;
  }
  return most;
}

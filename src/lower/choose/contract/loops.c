// Sums pair by pair: loops over leaves and over the pairs of each, in the order of docs/numerics.md.

#include "lower/choose/contract/contract.h"

static int64_t whole_leaves(const kl_contraction *x) {
  return x->length / x->leaf;
}

static int64_t rest_of(const kl_contraction *x) {
  return x->length % x->leaf;
}

static void rounds_var(kl_affs *p, kl_var_list *vars, int64_t rounds, const char *name, uint32_t *var) {
  kl_new_var(p, vars, KL_BIND_STEP, rounds ? rounds : 1, name, var);
}

void kl_contract_loop_vars(kl_affs *p, kl_var_list *vars, const kl_contraction *x, int64_t at_once,
                           kl_contract_loops *out) {
  int64_t whole = whole_leaves(x);
  out->at_once = x->length < at_once ? 1 : at_once;
  kl_new_var(p, vars, KL_BIND_REG, out->at_once, "u", &out->at);
  kl_new_var(p, vars, KL_BIND_STEP, whole > 1 ? whole : 1, "leaf", &out->leaf);
  rounds_var(p, vars, whole ? x->leaf / out->at_once : 0, "k", &out->pair);
  rounds_var(p, vars, rest_of(x) / out->at_once, whole ? "rest" : "k", &out->rest);
}

void kl_contract_leaf_vars(kl_affs *p, kl_var_list *vars, const kl_contraction *x, int64_t at_once,
                           kl_contract_loops *out) {
  *out = (kl_contract_loops){.leaf = KL_NONE, .at_once = at_once, .regs = out->regs};
  kl_new_var(p, vars, KL_BIND_REG, at_once, "u", &out->at);
  rounds_var(p, vars, x->leaf / at_once, "k", &out->pair);
  rounds_var(p, vars, rest_of(x) / at_once, "rest", &out->rest);
}

typedef struct summing {
  kl_writer *w;
  const kl_contraction *x;
  const kl_contract_loops *loops;
  kl_contract_pair *pair;
  void *arg;
} summing;

static const kl_aff *value_of(const summing *s, uint32_t var) {
  kl_affs *p = s->w->plan->affs;
  return var == KL_NONE ? kl_aff_const(p, 0) : kl_aff_dim(p, var);
}

static kl_parts begin_loop(const summing *s, uint32_t loop, kl_parts first) {
  uint32_t from[2] = {first.re, first.im}, carried[2] = {first.re, first.im};
  kl_vars regs[2] = {s->loops->regs, s->loops->regs};
  if (loop != KL_NONE) kl_write_loop(s->w, loop, s->x->complex ? 2 : 1, from, regs, carried);
  return (kl_parts){carried[0], carried[1]};
}

static void end_loop(const summing *s, uint32_t loop, kl_parts next) {
  if (loop != KL_NONE) kl_write_loop_end(s->w, (uint32_t[]){next.re, next.im});
}

// One of the terms that were read at once.
static kl_parts one_of(const summing *s, kl_parts terms, uint32_t u) {
  if (s->loops->at == KL_NONE) return terms;
  terms.re = kl_write_take(s->w, terms.re, s->loops->at, u);
  if (s->x->complex) terms.im = kl_write_take(s->w, terms.im, s->loops->at, u);
  return terms;
}

// All rounds of a loop, each of pairs that are read at once.
static kiln_status write_rounds(const summing *s, const kl_aff *first, uint32_t loop, kl_parts *sum) {
  kl_affs *p = s->w->plan->affs;
  const kl_contract_loops *l = s->loops;
  kl_parts terms[2];
  *sum = begin_loop(s, loop, *sum);
  const kl_aff *r = kl_aff_addmul(p, value_of(s, l->at), value_of(s, loop), l->at_once);
  KL_TRY(s->pair(s->arg, kl_aff_add(p, first, r), terms));
  for (uint32_t u = 0; u < l->at_once; u++)
    *sum = kl_add_product(s->w, s->x, one_of(s, terms[0], u), one_of(s, terms[1], u), *sum);
  end_loop(s, loop, *sum);
  return KILN_OK;
}

// A leaf of so many pairs from `first` on: those that are no whole round come one by one.
static kiln_status write_leaf(const summing *s, const kl_aff *first, uint32_t loop, int64_t pairs, kl_parts *out) {
  int64_t single = pairs % s->loops->at_once;
  kl_parts terms[2];
  *out = kl_begin_leaf(s->w, s->x);
  if (pairs > single) KL_TRY(write_rounds(s, first, loop, out));
  for (int64_t i = pairs - single; i < pairs; i++) {
    KL_TRY(s->pair(s->arg, kl_aff_addc(s->w->plan->affs, first, i), terms));
    *out = kl_add_product(s->w, s->x, terms[0], terms[1], *out);
  }
  return KILN_OK;
}

kiln_status kl_contract_leaf(kl_writer *w, const kl_contraction *x, const kl_contract_loops *loops,
                             kl_contract_pair *pair, void *arg, const kl_aff *first, bool is_short, kl_parts *sum) {
  summing s = {w, x, loops, pair, arg};
  return write_leaf(&s, first, is_short ? loops->rest : loops->pair, is_short ? rest_of(x) : x->leaf, sum);
}

kiln_status kl_contract_sum(kl_writer *w, const kl_contraction *x, const kl_contract_loops *loops,
                            kl_contract_pair *pair, void *arg, kl_parts *sum) {
  summing s = {w, x, loops, pair, arg};
  kl_affs *p = w->plan->affs;
  int64_t whole = whole_leaves(x);
  kl_parts leaf;
  if (x->length == 0) *sum = kl_begin_leaf(w, x);
  if (whole) {
    kl_parts before = {KL_NONE, KL_NONE};
    if (whole > 1) before = begin_loop(&s, loops->leaf, kl_no_leaf(w, x));
    KL_TRY(write_leaf(&s, kl_aff_mulc(p, value_of(&s, loops->leaf), x->leaf), loops->pair, x->leaf, &leaf));
    *sum = whole > 1 ? kl_join_leaf(w, x, before, leaf) : leaf;
    end_loop(&s, loops->leaf, *sum);
  }
  if (!rest_of(x)) return KILN_OK;
  KL_TRY(write_leaf(&s, kl_aff_const(p, whole * x->leaf), loops->rest, rest_of(x), &leaf));
  *sum = whole ? kl_join_leaf(w, x, *sum, leaf) : leaf;
  return KILN_OK;
}

// Needs under construction, and those that many ops have.
#include "lower/analysis/reads/rule.h"

void rule_begin(rule *u) {
  u->nranges = u->nrts = u->nresults = u->nconstraints = 0;
}

void rule_result(rule *u, const kl_aff *e) {
  u->results[u->nresults++] = e;
}

kl_interval rule_indices(int64_t size) {
  return (kl_interval){0, size < 0 ? INT64_MAX : size - 1};
}

const kl_aff *rule_range(rule *u, int64_t size) {
  if (size == 1) return kl_aff_const(u->p, 0);
  u->ranges[u->nranges] = (kl_map_var){.in = rule_indices(size)};
  return kl_aff_range(u->p, u->nranges++);
}

void rule_constrain(rule *u, const kl_aff *e, int64_t lo, int64_t hi) {
  u->constraints[u->nconstraints++] = (kl_constraint){e, {lo, hi}};
}

static kl_need *add(rule *u, kl_need d) {
  VEC_PUSH(kl_affs_context(u->p), &u->found, d);
  return &u->found.p[u->found.n - 1];
}

kl_need *rule_end(rule *u, uint32_t operand, uint32_t leaf) {
  kl_arena *arena = kl_affs_arena(u->p);
  kl_need d = {.operand = operand, .leaf = leaf, .known = true, .exact = true};
  d.nindex = u->nresults;
  d.nranges = u->nranges;
  d.nrts = u->nrts;
  d.nconstraints = u->nconstraints;
  d.index = kl_arena_dup(arena, u->results, u->nresults * sizeof *u->results);
  d.ranges = kl_arena_dup(arena, u->ranges, u->nranges * sizeof *u->ranges);
  d.rts = kl_arena_dup(arena, u->rts, u->nrts * sizeof *u->rts);
  d.constraints = kl_arena_dup(arena, u->constraints, u->nconstraints * sizeof *u->constraints);
  return add(u, d);
}

void rule_end_over(rule *u, uint32_t operand, uint32_t leaf, const char *why) {
  kl_need *d = rule_end(u, operand, leaf);
  d->exact = false;
  d->why = why;
}

void rule_end_remote(rule *u, uint32_t operand, uint32_t leaf, const char *why) {
  kl_need *d = rule_end(u, operand, leaf);
  d->remote = true;
  d->why = why;
}

void rule_unknown(rule *u, uint32_t operand, uint32_t leaf, const char *why) {
  add(u, (kl_need){.operand = operand, .leaf = leaf, .why = why});
}

// --- whole needs --------------------------------------------------------------------------------------------------

void rule_same(rule *u, uint32_t operand) {
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) rule_result(u, rule_dim(u, d));
  rule_end(u, operand, 0);
}

void rule_scalar(rule *u, uint32_t operand) {
  rule_begin(u);
  rule_end(u, operand, 0);
}

void rule_all(rule *u, uint32_t operand, const char *why) {
  const kl_shape *s = rule_operand(u, operand);
  for (uint32_t l = 0; l < kl_shape_leaf_count(s); l++) {
    const kl_shape *leaf = kl_shape_leaf(s, l);
    if (!kl_shape_is_array(leaf)) continue;
    rule_begin(u);
    for (uint32_t d = 0; d < leaf->rank; d++) rule_result(u, rule_range(u, leaf->dims[d]));
    if (why)
      rule_end_over(u, operand, l, why);
    else
      rule_end(u, operand, l);
  }
}

void rule_along(rule *u, uint32_t operand, const int64_t *dims) {
  const kl_shape *s = rule_operand(u, operand);
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++)
    rule_result(u, dims[d] >= 0 ? rule_dim(u, (uint32_t)dims[d]) : rule_range(u, s->dims[d]));
  rule_end(u, operand, 0);
}

// --- positions ----------------------------------------------------------------------------------------------------

const kl_aff *rule_linearize(rule *u, uint32_t rank, const int64_t *dims, const kl_aff *const *index) {
  const kl_aff *sum = kl_aff_const(u->p, 0);
  for (uint32_t d = 0; d < rank; d++) sum = kl_aff_add(u->p, kl_aff_mulc(u->p, sum, dims[d]), index[d]);
  return sum;
}

void rule_delinearize(rule *u, const kl_aff *linear, uint32_t rank, const int64_t *dims, const kl_aff **index) {
  for (uint32_t d = rank; d-- > 0;) {
    int64_t n = dims[d] > 0 ? dims[d] : 1; // an array without elements has no index
    index[d] = d ? kl_aff_modc(u->p, linear, n) : linear;
    if (d) linear = kl_aff_floordivc(u->p, linear, n);
  }
}

// Collectives, normalization, linear algebra, transforms, random numbers, dynamic sizes.
#include "lower/analysis/reads/rule.h"

// --- collectives --------------------------------------------------------------------------------------------------

// The operand that a result leaf belongs to. Results of -start ops hold the operands first, then the results, then
// contexts.
static bool operand_of(const rule *u, uint32_t *operand, bool *aside) {
  uint32_t n = u->in->noperands, leaf = u->leaf;
  kl_op op = u->in->op;
  bool start = op == KL_OP_ALL_GATHER_START || op == KL_OP_COLLECTIVE_PERMUTE_START;
  *aside = start && leaf < n;
  *operand = start && leaf >= n ? leaf - n : leaf;
  return *operand < n && kl_shape_is_array(rule_operand(u, *operand));
}

static void remote_same(rule *u, uint32_t operand, const char *why) {
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) rule_result(u, rule_dim(u, d));
  rule_end_remote(u, operand, 0, why);
}

// Along its dimension, device k's part lies at k * n: which device is told by the quotient.
static void gathered(rule *u, uint32_t operand) {
  const kl_shape *s = rule_operand(u, operand);
  uint32_t along = (uint32_t)u->in->dims[0];
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++)
    rule_result(u, d == along && s->dims[d] ? kl_aff_modc(u->p, rule_dim(u, d), s->dims[d]) : rule_dim(u, d));
  rule_end_remote(u, operand, 0, "of the device of the group whose part it lies in");
}

// Every device reduces the part of its own number.
static void scattered(rule *u, uint32_t operand) {
  const kl_shape *s = rule_operand(u, operand);
  uint32_t along = (uint32_t)u->in->dims[0];
  int64_t part = u->out->dims[along];
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) {
    const kl_aff *e = rule_dim(u, d);
    rule_result(u, d == along && part ? kl_aff_addmul(u->p, e, rule_range(u, s->dims[d] / part), part) : e);
  }
  kl_need *found = rule_end(u, operand, 0);
  found->exact = false;
  found->remote = true;
  found->why = "of all devices of the group, in the part of this device";
}

// Part k along the dimension comes from device k: its part of this device's number.
static void exchanged(rule *u) {
  uint32_t along = (uint32_t)u->in->dims[0];
  const kl_groups *g = &u->in->more->groups;
  int64_t devices = g->ids.n ? g->size : 0, n = u->out->dims[along];
  if (!devices || !n) {
    rule_all(u, 0, "the number of devices is not known");
    return;
  }
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) {
    const kl_aff *e = rule_dim(u, d);
    rule_result(u, d == along
                       ? kl_aff_addmul(u->p, kl_aff_modc(u->p, e, n / devices), rule_range(u, devices), n / devices)
                       : e);
  }
  kl_need *found = rule_end(u, 0, 0);
  found->exact = false;
  found->remote = true;
  found->why = "of the device whose part it lies in, in its part for this device";
}

static const char by_offsets[] = "data says which rows go where";

// Of a tuple of operands, result k is operand of this device's number of device k.
static void exchanged_whole(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) {
    remote_same(u, i, "of the device of the result's number, the operand of this device's");
    u->found.p[u->found.n - 1].exact = false;
  }
}

// A collective-permute of slices: (input, output, start of each).
static bool copies_slices(const rule *u) {
  bool permutes = u->in->op == KL_OP_COLLECTIVE_PERMUTE || u->in->op == KL_OP_COLLECTIVE_PERMUTE_START;
  return permutes && u->in->noperands == 4 && !kl_shape_compatible(rule_operand(u, 3), rule_operand(u, 0));
}

// The result's own half of what a -start op gave.
static void second_half(rule *u) {
  uint32_t first = rule_operand(u, 0)->first_leaf[1];
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) rule_result(u, rule_dim(u, d));
  rule_end(u, 0, first + u->leaf);
}

static void moved(rule *u, uint32_t operand) {
  switch (u->in->op) {
  case KL_OP_ALL_GATHER:
  case KL_OP_ALL_GATHER_START: gathered(u, operand); return;
  case KL_OP_REDUCE_SCATTER: scattered(u, operand); return;
  case KL_OP_ALL_TO_ALL: u->in->ndims ? exchanged(u) : exchanged_whole(u); return;
  case KL_OP_COLLECTIVE_PERMUTE:
  case KL_OP_COLLECTIVE_PERMUTE_START: remote_same(u, operand, "of the source device, if there is one"); return;
  case KL_OP_COLLECTIVE_BROADCAST: remote_same(u, operand, "of the first device of the group"); return;
  default: remote_same(u, operand, "of all devices of the group"); return; // all-reduce and its kin
  }
}

void rule_collective(rule *u) {
  kl_op op = u->in->op;
  uint32_t operand = 0;
  bool aside = false;
  if (op == KL_OP_ALL_GATHER_DONE || op == KL_OP_COLLECTIVE_PERMUTE_DONE)
    second_half(u);
  else if (op == KL_OP_ALL_REDUCE_DONE)
    rule_forward(u);
  else if (op == KL_OP_RAGGED_ALL_TO_ALL || copies_slices(u))
    for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, by_offsets);
  else if (!operand_of(u, &operand, &aside))
    for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, "a part that the op keeps for itself");
  else if (aside)
    rule_same(u, operand);
  else
    moved(u, operand);
}

// --- normalization ------------------------------------------------------------------------------------------------

// Operands of the shape of the data, whole but for the feature, or the same element; others are vectors by feature.
static void by_feature(rule *u, uint32_t operand, bool whole) {
  const kl_shape *s = rule_operand(u, operand);
  uint32_t along = (uint32_t)u->in->more->feature_index;
  const kl_aff *feature = rule_dim(u, u->out->rank == 1 && u->leaf ? 0 : along);
  rule_begin(u);
  if (s->rank == 1 && rule_operand(u, 0)->rank != 1)
    rule_result(u, feature);
  else
    for (uint32_t d = 0; d < s->rank; d++)
      rule_result(u, d == along ? feature : whole ? rule_range(u, s->dims[d]) : rule_dim(u, d));
  rule_end(u, operand, 0);
}

// training: (operand, scale, offset) -> (data, mean, variance); inference: (operand, scale, offset, mean, variance);
// grad: (operand, scale, mean, variance, grad) -> (data, scale', offset').
void rule_batch_norm(rule *u) {
  kl_op op = u->in->op;
  uint32_t n = u->in->noperands;
  for (uint32_t i = 0; i < n; i++) {
    bool statistics = u->leaf > 0;
    if (op == KL_OP_BATCH_NORM_TRAINING && statistics && i > 0) continue; // scale and offset play no part
    if (op == KL_OP_BATCH_NORM_GRAD && u->leaf == 2 && i != 4) continue;  // offset' is a sum of the gradient
    if (op == KL_OP_BATCH_NORM_GRAD && u->leaf == 1 && i == 1) continue;
    by_feature(u, i, op != KL_OP_BATCH_NORM_INFERENCE);
  }
}

// --- linear algebra and transforms --------------------------------------------------------------------------------

// The last `n` dims whole, those before as they are.
static void batches(rule *u, uint32_t operand, uint32_t n, const char *why) {
  const kl_shape *s = rule_operand(u, operand);
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++) rule_result(u, d + n < s->rank ? rule_dim(u, d) : rule_range(u, s->dims[d]));
  if (why)
    rule_end_over(u, operand, 0, why);
  else
    rule_end(u, operand, 0);
}

void rule_cholesky(rule *u) {
  batches(u, 0, 2, "an element of the factor takes the rows up to its own");
}

// Columns of b (rows, where a stands on the right) are solved for by themselves.
void rule_triangular_solve(rule *u) {
  static const char why[] = "an unknown takes those before it";
  const kl_shape *b = rule_operand(u, 1);
  batches(u, 0, 2, why);
  rule_begin(u);
  for (uint32_t d = 0; d < b->rank; d++) {
    bool solved = d == b->rank - (u->in->more->left_side ? 2 : 1);
    rule_result(u, solved ? rule_range(u, b->dims[d]) : rule_dim(u, d));
  }
  rule_end_over(u, 1, 0, why);
}

void rule_fft(rule *u) {
  batches(u, 0, u->in->more->sizes.n, NULL);
}

void rule_rng(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, NULL);
}

// --- dynamic sizes ------------------------------------------------------------------------------------------------

void rule_dimension_size(rule *u) {
  if (u->in->op == KL_OP_GET_DIMENSION_SIZE) return; // of the shape alone
  rule_same(u, 0);
  rule_scalar(u, 1);
}

// Elements keep their order, but which are there is told by sizes: only a reshape of full arrays is known.
void rule_dynamic_reshape(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, "sizes given as data move the elements");
}

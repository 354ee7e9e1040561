// Contractions, reductions, scans and sorts: ranges over what is folded.
#include "lower/analysis/reads/rule.h"

static bool contains(kl_ints list, int64_t v) {
  return rule_place(list, v) >= 0;
}

static bool in_dims(const kl_instr *in, int64_t v) {
  return contains((kl_ints){in->ndims, in->dims}, v);
}

// --- dot ----------------------------------------------------------------------------------------------------------

typedef struct side {
  kl_ints batch, contracting;
  const kl_aff *index[KILN_MAX_RANK];
} side;

// Result dims are batch, left's free, right's free; contracted ones share their range variables, in the order of the
// left's list.
static void dot_index(rule *u, side *s, const kl_shape *shape, uint32_t first_free, const kl_aff *const *ranges) {
  for (uint32_t i = 0; i < s->batch.n; i++) s->index[s->batch.p[i]] = rule_dim(u, i);
  for (uint32_t i = 0; i < s->contracting.n; i++) s->index[s->contracting.p[i]] = ranges[i];
  for (uint32_t d = 0; d < shape->rank; d++)
    if (!contains(s->batch, d) && !contains(s->contracting, d)) s->index[d] = rule_dim(u, first_free++);
}

// One operand with ranges of its own; `scale`: the operand it scales, whose elements share one of its.
static void dot_side(rule *u, uint32_t operand, const kl_shape *of, side *s, uint32_t first_free) {
  const kl_shape *shape = rule_operand(u, operand);
  const kl_aff *ranges[KILN_MAX_RANK];
  rule_begin(u);
  for (uint32_t i = 0; i < s->contracting.n; i++) ranges[i] = rule_range(u, of->dims[s->contracting.p[i]]);
  dot_index(u, s, of, first_free, ranges);
  for (uint32_t d = 0; d < shape->rank; d++) {
    int64_t share = shape->dims[d] > 0 ? of->dims[d] / shape->dims[d] : 1;
    rule_result(u, share > 1 ? kl_aff_floordivc(u->p, s->index[d], share) : s->index[d]);
  }
  rule_end(u, operand, 0);
}

static const char by_sizes[] = "the group of a row depends on the group sizes";

// An operand of a ragged-dot whose free dims begin at result dim `free`; batch dims begin at `batch`.
static void ragged_side(rule *u, uint32_t operand, kl_ints batches, kl_ints sums, uint32_t batch, uint32_t free) {
  const kl_shape *s = rule_operand(u, operand);
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t b = rule_place(batches, d);
    if (b >= 0)
      rule_result(u, rule_dim(u, batch + (uint32_t)b));
    else if (contains(sums, d) || (operand == 1 && contains(u->in->more->rhs_group, d)))
      rule_result(u, rule_range(u, s->dims[d]));
    else
      rule_result(u, rule_dim(u, free++));
  }
  rule_end_over(u, operand, 0, by_sizes);
}

// Rows of the ragged dimension belong to groups whose sizes are data. Ragged free: a row takes the right's matrix of
// its group, which may be any. Ragged batch: the same rows, or none. Ragged contracting: the result has a group dim in
// front, and takes the rows of its group.
static void ragged_dot(rule *u) {
  const kl_more *m = u->in->more;
  uint32_t batch = contains(m->lhs_contracting, m->lhs_ragged.p[0]) ? 1 : 0, free = batch + m->lhs_batch.n;
  uint32_t left = rule_operand(u, 0)->rank - m->lhs_batch.n - m->lhs_contracting.n;
  ragged_side(u, 0, m->lhs_batch, m->lhs_contracting, batch, free);
  ragged_side(u, 1, m->rhs_batch, m->rhs_contracting, batch, free + left);
  rule_all(u, 2, "the group sizes up to the row's own");
}

void rule_dot(rule *u) {
  const kl_more *m = u->in->more;
  if (u->in->op == KL_OP_RAGGED_DOT) {
    ragged_dot(u);
    return;
  }
  const kl_shape *lhs = rule_operand(u, 0), *rhs = rule_operand(u, 1);
  side left = {m->lhs_batch, m->lhs_contracting, {0}}, right = {m->rhs_batch, m->rhs_contracting, {0}};
  uint32_t first_left = m->lhs_batch.n, first_right = lhs->rank - m->lhs_contracting.n;
  dot_side(u, 0, lhs, &left, first_left);
  dot_side(u, 1, rhs, &right, first_right);
  if (u->in->op != KL_OP_SCALED_DOT) return;
  dot_side(u, 2, lhs, &left, first_left);
  dot_side(u, 3, rhs, &right, first_right);
}

// --- reduce -------------------------------------------------------------------------------------------------------

void rule_reduce(rule *u) {
  uint32_t inputs = u->in->noperands / 2;
  for (uint32_t i = 0; i < inputs; i++) {
    const kl_shape *s = rule_operand(u, i);
    int64_t at[KILN_MAX_RANK];
    int64_t kept = 0;
    for (uint32_t d = 0; d < s->rank; d++) at[d] = in_dims(u->in, d) ? -1 : kept++;
    rule_along(u, i, at);
  }
  for (uint32_t i = inputs; i < u->in->noperands; i++) rule_scalar(u, i);
}

// --- scan ---------------------------------------------------------------------------------------------------------

// Does every op of the step keep to the index? Then a scan is one of scalars, line by line.
static bool elementwise_step(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    kl_op_kind k = kl_op_table[in->op].kind;
    bool spread = k == KL_KIND_BROADCAST && kl_operand(c, in, 0)->shape->rank == 0;
    bool source = k == KL_KIND_PARAMETER || k == KL_KIND_CONSTANT || k == KL_KIND_IOTA || k == KL_KIND_TUPLE;
    if (in->op == KL_OP_BITCAST_CONVERT || !(kl_op_is_elementwise(in->op) || spread || source)) return false;
  }
  return true;
}

// A place takes the inputs up to it, in the direction of the scan, and the first carries; last carries take whole
// lines. Outputs and inputs have the dimension of the scan, carries do not.
void rule_scan(rule *u) {
  const kl_more *m = u->in->more;
  uint32_t along = (uint32_t)u->in->dims[0], inputs = u->in->noperands - (uint32_t)m->carries;
  bool last = u->leaf >= kl_shape_leaf_count(u->in->shape) - (uint32_t)m->carries;
  bool lines = elementwise_step(&u->r->m->comp[u->in->called[0]]);
  for (uint32_t i = 0; i < u->in->noperands; i++) {
    const kl_shape *s = rule_operand(u, i);
    bool carry = i >= inputs;
    rule_begin(u);
    for (uint32_t d = 0; d < s->rank; d++) {
      uint32_t at = carry ? d + (!last && d >= along) : d - (last && d > along);
      bool kept = lines && (carry || d != along) && at < u->out->rank && u->out->dims[at] == s->dims[d];
      const kl_aff *x = kept ? rule_dim(u, at) : rule_range(u, s->dims[d]);
      rule_result(u, x);
      if (carry || d != along || last) continue;
      const kl_aff *before = kl_aff_sub(u->p, rule_dim(u, along), x);
      rule_constrain(u, m->is_reverse ? kl_aff_mulc(u->p, before, -1) : before, 0, s->dims[d] - 1);
    }
    if (lines)
      rule_end(u, i, 0);
    else
      rule_end_over(u, i, 0, "a step may take any element of a slice");
  }
}

// --- order --------------------------------------------------------------------------------------------------------

static void lines(rule *u, uint32_t along, const char *why) {
  for (uint32_t i = 0; i < u->in->noperands; i++) {
    rule_begin(u);
    for (uint32_t d = 0; d < u->out->rank; d++)
      rule_result(u, d == along ? rule_range(u, rule_operand(u, i)->dims[d]) : rule_dim(u, d));
    rule_end_over(u, i, 0, why);
  }
}

void rule_sort(rule *u) {
  lines(u, (uint32_t)u->in->dims[0], "the comparator says where an element of the line comes from");
}

void rule_topk(rule *u) {
  lines(u, u->out->rank - 1, "values decide which elements of the line are taken");
}

// Contractions; reductions, scans, orders.
#include "look.h"

// --- contractions -------------------------------------------------------------------------------------------------

typedef struct dot {
  const kl_more *m;
  const kl_shape *lhs, *rhs;
  int64_t l[RANK], r[RANK]; // indices
} dot;

// Free and batch dims from the result's index, behind `skip` dims of it.
static void dot_index(const look *k, dot *d, uint32_t skip) {
  uint32_t at = skip;
  for (uint32_t i = 0; i < d->m->lhs_batch.n; i++, at++)
    d->l[d->m->lhs_batch.p[i]] = d->r[d->m->rhs_batch.p[i]] = k->x[at];
  for (uint32_t i = 0; i < d->lhs->rank; i++)
    if (find(d->m->lhs_batch, i) < 0 && find(d->m->lhs_contracting, i) < 0) d->l[i] = k->x[at++];
  for (uint32_t i = 0; i < d->rhs->rank; i++)
    if (find(d->m->rhs_batch, i) < 0 && find(d->m->rhs_contracting, i) < 0 && find(d->m->rhs_group, i) < 0)
      d->r[i] = k->x[at++];
}

static void take_scale(const look *k, uint32_t operand, const kl_shape *of, const int64_t *x) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) y[d] = x[d] / (of->dims[d] / s->dims[d]);
  take(k, operand, 0, y);
}

// Sums over contracted dims; of lhs dim `ragged`, if it is one of them, only lo..hi-1.
static void dot_sum(const look *k, dot *d, int64_t ragged, int64_t lo, int64_t hi) {
  int64_t n[RANK], c[RANK];
  uint32_t sum = d->m->lhs_contracting.n;
  for (uint32_t i = 0; i < sum; i++) n[i] = d->lhs->dims[d->m->lhs_contracting.p[i]];
  if (first(sum, n, c)) do {
      for (uint32_t i = 0; i < sum; i++) d->l[d->m->lhs_contracting.p[i]] = d->r[d->m->rhs_contracting.p[i]] = c[i];
      if (ragged >= 0 && (d->l[ragged] < lo || d->l[ragged] >= hi)) continue;
      take(k, 0, 0, d->l);
      take(k, 1, 0, d->r);
      if (k->in->op != KL_OP_SCALED_DOT) continue;
      take_scale(k, 2, d->lhs, d->l);
      take_scale(k, 3, d->rhs, d->r);
    } while (next(sum, n, c));
}

// Group g of one list of sizes begins where those before it end.
static void ragged_dot(const look *k, dot *d) {
  const kl_shape *sizes = shape_of(k, 2);
  int64_t ragged = d->m->lhs_ragged.p[0], groups = sizes->dims[sizes->rank - 1], y[RANK] = {0};
  bool contracting = find(d->m->lhs_contracting, ragged) >= 0;
  dot_index(k, d, contracting);
  if (find(d->m->lhs_batch, ragged) >= 0) {
    dot_sum(k, d, -1, 0, 0);
    return;
  }
  int64_t from = 0;
  for (int64_t g = 0; g < groups; g++) {
    y[sizes->rank - 1] = g;
    take(k, 2, 0, y);
    int64_t n = integer(k, 2, y), to = from + (n < 0 ? 0 : n);
    if (contracting && g == k->x[0]) {
      dot_sum(k, d, ragged, from, to);
      return;
    }
    if (!contracting && d->l[ragged] >= from && d->l[ragged] < to) {
      d->r[d->m->rhs_group.p[0]] = g;
      dot_sum(k, d, -1, 0, 0);
      return;
    }
    from = to;
  }
}

static void any_dot(const look *k) {
  dot d = {.m = k->in->more, .lhs = shape_of(k, 0), .rhs = shape_of(k, 1)};
  if (k->in->op == KL_OP_RAGGED_DOT) {
    ragged_dot(k, &d);
    return;
  }
  dot_index(k, &d, 0);
  dot_sum(k, &d, -1, 0, 0);
}

// --- reductions, scans, orders ------------------------------------------------------------------------------------

static void reduce(const look *k) {
  uint32_t inputs = k->in->noperands / 2;
  const kl_shape *s = shape_of(k, 0);
  kl_ints dims = {k->in->ndims, k->in->dims};
  int64_t y[RANK];
  for (uint32_t i = inputs; i < 2 * inputs; i++) take(k, i, 0, NULL);
  if (first(s->rank, s->dims, y)) do {
      uint32_t kept = 0;
      bool mine = true;
      for (uint32_t d = 0; d < s->rank; d++)
        if (find(dims, d) < 0) mine = mine && y[d] == k->x[kept++];
      for (uint32_t i = 0; mine && i < inputs; i++) take(k, i, 0, y);
    } while (next(s->rank, s->dims, y));
}

// Does the step of a scan mix the elements of its slices?
static bool mixes(const look *k) {
  const kl_comp *c = &k->s->m->comp[k->in->called[0]];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_REVERSE || c->instr[i].op == KL_OP_TRANSPOSE || c->instr[i].op == KL_OP_REDUCE)
      return true;
  return false;
}

// Line by line: elements of a slice with the same index, but for `along`.
static void scan(const look *k) {
  uint32_t carries = (uint32_t)k->in->more->carries, inputs = k->in->noperands - carries;
  uint32_t outputs = (uint32_t)kl_shape_leaf_count(k->in->shape) - carries;
  bool last = k->leaf >= outputs, all = mixes(k);
  int64_t along = k->in->dims[0], y[RANK];
  for (uint32_t i = 0; i < k->in->noperands; i++) {
    const kl_shape *s = shape_of(k, i);
    if (!first(s->rank, s->dims, y)) continue;
    do {
      bool mine = true, carry = i >= inputs;
      uint32_t from = 0, to = 0;
      while (from < s->rank || to < k->out->rank) { // dims but `along` of both, side by side
        if (!carry && from == along) from++;
        if (!last && to == along) to++;
        if (from < s->rank) mine = mine && (all || y[from] == k->x[to]);
        from++, to++;
      }
      if (!carry && !last) mine = mine && (k->in->more->is_reverse ? y[along] >= k->x[along] : y[along] <= k->x[along]);
      if (mine) take(k, i, 0, y);
    } while (next(s->rank, s->dims, y));
  }
}

// Some order of each line, the same for all operands.
static void ordered(const look *k, int64_t along, uint32_t operand) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK], line = 0, n = s->dims[along];
  memcpy(y, k->x, sizeof(int64_t) * s->rank);
  for (uint32_t d = 0; d < s->rank; d++)
    if (d != along) line = line * s->dims[d] + y[d];
  y[along] = (y[along] + (int64_t)(mix((uint64_t)line) % (uint64_t)n)) % n;
  take(k, operand, 0, y);
}

bool look_fold(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_DOT: any_dot(k); break;
  case KL_KIND_REDUCE: reduce(k); break;
  case KL_KIND_SCAN: scan(k); break;
  case KL_KIND_SORT: ordered(k, k->in->dims[0], k->leaf); break;
  case KL_KIND_TOPK: ordered(k, k->out->rank - 1, 0); break;
  default: return false;
  }
  return true;
}

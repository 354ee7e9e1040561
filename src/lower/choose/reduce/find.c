// Reductions as they stand in a computation.

#include "lower/choose/reduce/reduce.h"

// --- reducers -------------------------------------------------------------------------------------------------------

static void describe(kl_choosing *c, uint32_t instr, kl_reducer *r) {
  const kl_instr *in = &c->plan->comp->instr[instr];
  kl_combiner by = kl_combiner_of(c->arena, &c->plan->module->comp[in->called[0]], instr);
  *r = (kl_reducer){.comp = by.comp, .instr = instr, .nvalues = by.n, .simple = by.simple, .op = by.op};
  r->commutes = r->simple;
  r->type = KL_NEW_N(c->arena, kl_dtype, r->nvalues + 1);
  memcpy(r->type, by.type, r->nvalues * sizeof *r->type);
  r->has_identity = r->simple && kl_identity_of(r->op.op, *r->type, r->identity);
  r->n = r->nvalues + !r->has_identity;
  if (!r->has_identity) r->type[r->nvalues] = KILN_PRED;
}

// --- the same elements ----------------------------------------------------------------------------------------------

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static int64_t power_of_two(int64_t least) {
  int64_t p = 1;
  while (p < least) p *= 2;
  return p;
}

static bool is_reduced(const kl_instr *in, int64_t d) {
  for (uint32_t i = 0; i < in->ndims; i++)
    if (in->dims[i] == d) return true;
  return false;
}

static void describe_domain(const kl_comp *c, const kl_instr *in, kl_reductions *x) {
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  *x = (kl_reductions){.shape = s, .rows = 1, .length = 1, .split = 1};
  for (uint32_t i = s->rank; i-- > 0;) {
    int64_t d = kl_shape_minor_to_major(s, i);
    if (is_reduced(in, d)) {
      x->reduced[x->nreduced++] = (uint32_t)d;
      x->length *= s->dims[d];
    } else {
      x->kept[x->nkept++] = (uint32_t)d;
      x->rows *= s->dims[d];
    }
    if (s->dims[d] > 1) x->row = is_reduced(in, d);
  }
  x->w = x->row ? 256 : 8;
  x->k = power_of_two(ceil_div(x->length, x->w * 4096));
  int64_t least = x->row ? 4 : 16;
  if (x->k < least) x->k = least;
}

bool kl_same_domain(const kl_reductions *a, const kl_reductions *b) {
  if (!kl_shape_same_dims(a->shape, b->shape) || a->nreduced != b->nreduced) return false;
  return memcmp(a->reduced, b->reduced, a->nreduced * sizeof *a->reduced) == 0 &&
         memcmp(a->kept, b->kept, a->nkept * sizeof *a->kept) == 0 && a->row == b->row;
}

// --- finding --------------------------------------------------------------------------------------------------------

static void mark_used(const kl_comp *c, bool *used) {
  used[c->root] = true;
  for (uint32_t i = c->ninstr; i-- > 0;)
    for (uint32_t k = 0; used[i] && k < c->instr[i].noperands; k++) used[c->instr[i].operands[k]] = true;
}

kiln_status kl_find_reductions(kl_choosing *c, kl_found *out, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  bool *used = KL_NEW_N(c->arena, bool, comp->ninstr + 1);
  mark_used(comp, used);
  *out = (kl_found){.number = KL_NEW_N(c->arena, uint32_t, comp->ninstr)};
  for (uint32_t i = 0; i < comp->ninstr; i++)
    if (used[i] && comp->instr[i].op == KL_OP_REDUCE) out->number[out->n++] = i;
  *why_not = out->n ? NULL : "";
  out->reducer = KL_NEW_N(c->arena, kl_reducer, out->n + 1);
  out->domain = KL_NEW_N(c->arena, kl_reductions, out->n + 1);
  for (uint32_t i = 0; i < out->n; i++) {
    describe_domain(comp, &comp->instr[out->number[i]], &out->domain[i]);
    describe(c, out->number[i], &out->reducer[i]);
    out->reducer[i].ordered = kl_ordered_reducer(c, &out->domain[i], &comp->instr[out->number[i]]);
    if (out->reducer[i].n > KL_MAX_VALUES_FOLDED) *why_not = "a reduction has more than 63 values";
  }
  return KILN_OK;
}

// Levels count from reductions that need none of the others.
static void find_levels(const kl_comp *c, kl_reductions *x, uint32_t *level) {
  for (uint32_t i = 0, next = 0; i < c->ninstr && next < x->n; i++) {
    const kl_instr *in = &c->instr[i];
    for (uint32_t k = 0; k < in->noperands; k++)
      if (level[in->operands[k]] > level[i]) level[i] = level[in->operands[k]];
    if (x->number[next] != i) continue;
    x->level[next++] = ++level[i];
    if (level[i] > x->levels) x->levels = level[i];
  }
}

void kl_reductions_of(kl_choosing *c, const kl_found *all, const bool *in, kl_reductions *out) {
  uint32_t first = 0;
  while (!in[first]) first++;
  *out = all->domain[first];
  out->instr = KL_NEW_N(c->arena, const kl_instr *, all->n);
  out->number = KL_NEW_N(c->arena, uint32_t, all->n);
  out->level = KL_NEW_N(c->arena, uint32_t, all->n);
  out->reducer = KL_NEW_N(c->arena, kl_reducer, all->n);
  for (uint32_t i = first; i < all->n; i++) {
    if (!in[i]) continue;
    out->instr[out->n] = &c->plan->comp->instr[all->number[i]];
    out->number[out->n] = all->number[i];
    out->reducer[out->n++] = all->reducer[i];
  }
  find_levels(c->plan->comp, out, KL_NEW_N(c->arena, uint32_t, c->plan->comp->ninstr));
}

// --- indices --------------------------------------------------------------------------------------------------------

// The digits of a number, of dimensions slowest first.
static void digits(kl_affs *p, const kl_shape *s, uint32_t n, const uint32_t *dims, const kl_aff *number,
                   const kl_aff **index) {
  int64_t place = 1;
  for (uint32_t i = n; i-- > 0;) {
    const kl_aff *q = kl_aff_floordivc(p, number, place ? place : 1);
    index[dims[i]] = i == 0 ? q : kl_aff_modc(p, q, s->dims[dims[i]] ? s->dims[dims[i]] : 1);
    place *= s->dims[dims[i]];
  }
}

void kl_reduced_index(kl_affs *p, const kl_reductions *x, const kl_aff *row, const kl_aff *r, const kl_aff **index) {
  digits(p, x->shape, x->nkept, x->kept, row, index);
  digits(p, x->shape, x->nreduced, x->reduced, r, index);
}

static void drop_reduced(const kl_reductions *x, const kl_instr *in, const kl_aff *const *all, const kl_aff **index) {
  for (uint32_t d = 0, n = 0; d < x->shape->rank; d++)
    if (!is_reduced(in, d)) index[n++] = all[d];
}

void kl_kept_index(kl_affs *p, const kl_reductions *x, uint32_t which, const kl_aff *row, const kl_aff **index) {
  const kl_aff *all[KILN_MAX_RANK];
  digits(p, x->shape, x->nkept, x->kept, row, all);
  drop_reduced(x, x->instr[which], all, index);
}

kl_result_level kl_result_of(const kl_reductions *x, const kl_shape *s) {
  if (kl_shape_same_dims(s, x->shape)) return KL_RESULT_ELEMENT;
  if (s->count == x->rows) return KL_RESULT_ROW;
  return s->count == x->rows * x->length ? KL_RESULT_ELEMENT : KL_RESULT_NEITHER;
}

// Where dimensions are others than the reductions' operands or results have, elements correspond by their row-major
// number.
void kl_result_index(kl_affs *p, const kl_reductions *x, const kl_shape *s, const kl_aff *row, const kl_aff *r,
                     const kl_aff **index) {
  const kl_aff *all[KILN_MAX_RANK], *number = kl_aff_const(p, 0);
  bool of_row = kl_result_of(x, s) == KL_RESULT_ROW;
  kl_reduced_index(p, x, row, of_row ? kl_aff_const(p, 0) : r, all);
  if (!of_row && kl_shape_same_dims(s, x->shape)) {
    memcpy(index, all, s->rank * sizeof *index);
    return;
  }
  uint32_t n = 0;
  const kl_aff *kept[KILN_MAX_RANK];
  drop_reduced(x, x->instr[0], all, kept);
  bool same = of_row && s->rank == x->nkept;
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    if (of_row && is_reduced(x->instr[0], d)) continue;
    if (of_row && n < s->rank) same = same && s->dims[n] == x->shape->dims[d];
    n++;
    number = kl_aff_add(p, kl_aff_mulc(p, number, x->shape->dims[d]), all[d]);
  }
  if (same) {
    memcpy(index, kept, s->rank * sizeof *index);
    return;
  }
  int64_t place = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    index[d] = kl_aff_floordivc(p, number, place);
    if (d) index[d] = kl_aff_modc(p, index[d], s->dims[d]);
    place *= s->dims[d];
  }
}

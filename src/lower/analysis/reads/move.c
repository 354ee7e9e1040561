// Elementwise ops and ops that move elements: one element of an operand, or none, for each of the result.
#include "ir/index/layout/map.h"
#include "lower/analysis/reads/rule.h"

// An operand of rank 0 beside others serves all elements: select's predicate, the bounds of clamp.
void rule_elementwise(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) {
    if (rule_operand(u, i)->rank == 0 && u->out->rank)
      rule_scalar(u, i);
    else
      rule_same(u, i);
  }
}

void rule_broadcast(rule *u) {
  rule_along(u, 0, u->in->dims);
}

void rule_transpose(rule *u) {
  int64_t at[KILN_MAX_RANK];
  for (uint32_t d = 0; d < u->in->ndims; d++) at[u->in->dims[d]] = d;
  rule_along(u, 0, at);
}

void rule_slice(rule *u) {
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) {
    kl_slice_dim s = u->in->slice[d];
    rule_result(u, kl_aff_addc(u->p, kl_aff_mulc(u->p, rule_dim(u, d), s.stride), s.start));
  }
  rule_end(u, 0, 0);
}

void rule_reverse(rule *u) {
  bool reversed[KILN_MAX_RANK] = {false};
  for (uint32_t i = 0; i < u->in->ndims; i++) reversed[u->in->dims[i]] = true;
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) {
    const kl_aff *e = rule_dim(u, d);
    rule_result(u, reversed[d] ? kl_aff_addc(u->p, kl_aff_mulc(u->p, e, -1), u->out->dims[d] - 1) : e);
  }
  rule_end(u, 0, 0);
}

void rule_concatenate_operand(rule *u, uint32_t operand, int64_t begin) {
  uint32_t along = (uint32_t)u->in->dims[0];
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) rule_result(u, rule_dim(u, d));
  u->results[along] = kl_aff_addc(u->p, rule_dim(u, along), -begin);
  rule_constrain(u, u->results[along], 0, rule_operand(u, operand)->dims[along] - 1);
  rule_end(u, operand, 0);
}

void rule_concatenate(rule *u) {
  int64_t begin = 0;
  for (uint32_t i = 0; i < u->in->noperands; i++) {
    rule_concatenate_operand(u, i, begin);
    begin += rule_operand(u, i)->dims[u->in->dims[0]];
  }
}

// Element low + k*(interior + 1) of a dimension is element k of the operand; the others are padding.
static void pad_operand(rule *u) {
  const kl_shape *s = rule_operand(u, 0);
  rule_begin(u);
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_pad_dim pad = u->in->pad[d];
    const kl_aff *e = kl_aff_addc(u->p, rule_dim(u, d), -pad.low);
    rule_result(u, kl_aff_floordivc(u->p, e, pad.interior + 1));
    rule_constrain(u, u->results[d], 0, s->dims[d] - 1);
    if (pad.interior) rule_constrain(u, kl_aff_modc(u->p, e, pad.interior + 1), 0, 0);
  }
  rule_end(u, 0, 0);
}

// The padding value is needed below, above or between the operand's elements of some dimension.
static void pad_value(rule *u) {
  const kl_shape *s = rule_operand(u, 0);
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_pad_dim pad = u->in->pad[d];
    const kl_aff *e = kl_aff_addc(u->p, rule_dim(u, d), -pad.low);
    int64_t step = pad.interior + 1, last = (s->dims[d] - 1) * step;
    rule_begin(u);
    rule_constrain(u, e, INT64_MIN, -1);
    rule_end(u, 1, 0);
    rule_begin(u);
    rule_constrain(u, e, last + 1, INT64_MAX);
    rule_end(u, 1, 0);
    if (!pad.interior) continue;
    rule_begin(u);
    rule_constrain(u, kl_aff_modc(u->p, e, step), 1, pad.interior);
    rule_end(u, 1, 0);
  }
}

void rule_pad(rule *u) {
  pad_operand(u);
  pad_value(u);
}

// --- reshapes -----------------------------------------------------------------------------------------------------

static void reread(rule *u, const int64_t *from, uint32_t nfrom, const kl_aff *const *index, const kl_aff **out,
                   const int64_t *to, uint32_t nto) {
  rule_delinearize(u, rule_linearize(u, nfrom, from, index), nto, to, out);
}

// Row-major order of both sides, group by group of dimensions of equal products: an index is taken apart no further
// than it must be.
void rule_reshape(rule *u) {
  const kl_shape *from = u->out, *to = rule_operand(u, 0);
  const kl_aff *index[KILN_MAX_RANK + 1], *out[KILN_MAX_RANK + 1];
  for (uint32_t d = 0; d < from->rank; d++) index[d] = rule_dim(u, d);
  rule_begin(u);
  uint32_t a = 0, b = 0;
  while (u->out->count && (a < from->rank || b < to->rank)) {
    uint32_t a1 = a, b1 = b;
    int64_t na = 1, nb = 1;
    do { // the shortest group of more than one element, ones before it and between included
      if (a1 < from->rank && (na <= nb || b1 == to->rank))
        na *= from->dims[a1++];
      else
        nb *= to->dims[b1++];
    } while (na != nb || (na == 1 && (a1 < from->rank || b1 < to->rank)));
    reread(u, from->dims + a, a1 - a, index + a, out + b, to->dims + b, b1 - b);
    while (a1 < from->rank && from->dims[a1] == 1) a1++;
    for (; b1 < to->rank && to->dims[b1] == 1; b1++) out[b1] = kl_aff_const(u->p, 0);
    a = a1, b = b1;
  }
  for (uint32_t d = 0; d < to->rank; d++) rule_result(u, u->out->count ? out[d] : kl_aff_const(u->p, 0));
  rule_end(u, 0, 0);
}

// Memory as it lies: the bits of the result's element, read in elements of the operand.
static void reread_memory(rule *u, const kl_physical *from, const kl_physical *to) {
  const kl_aff *index[KILN_MAX_RANK + 1], *digits[KL_MAX_DIGITS];
  kl_constraint inside[KL_MAX_VALUES];
  for (uint32_t d = 0; d < from->rank; d++) index[d] = u->out->dims[d] == 1 ? kl_aff_const(u->p, 0) : rule_dim(u, d);
  kl_memory_digits(u->p, from, index, digits);
  rule_begin(u);
  const kl_aff *at = kl_memory_position(u->p, from, digits);
  if (from->bits > to->bits) {
    int64_t parts = from->bits / to->bits;
    at = kl_aff_add(u->p, kl_aff_mulc(u->p, at, parts), rule_range(u, parts));
  } else
    at = kl_aff_floordivc(u->p, at, to->bits / from->bits);
  kl_memory_split(u->p, to, at, digits);
  uint32_t n = kl_memory_index(u->p, to, digits, index, inside);
  for (uint32_t i = 0; i < n; i++) rule_constrain(u, inside[i].e, inside[i].in.lo, inside[i].in.hi);
  for (uint32_t d = 0; d < to->rank; d++) rule_result(u, index[d]);
  rule_end(u, 0, 0);
}

void rule_bitcast(rule *u) {
  kl_physical from, to;
  kl_physical_error error = kl_physical_of(rule_operand(u, 0), &to);
  if (!error) error = kl_physical_of(u->out, &from);
  if (error)
    rule_all(u, 0, kl_physical_error_text(error));
  else if (from.prefix != to.prefix || (from.bits % to.bits && to.bits % from.bits))
    rule_all(u, 0, "elements that lie across each other's ends");
  else
    reread_memory(u, &from, &to);
}

static uint32_t bits_of(const kl_shape *s) {
  return kl_info(s->dtype)->bits;
}

// A narrower result has the parts of an element along a new last dimension; a wider one takes them together.
void rule_bitcast_convert(rule *u) {
  uint32_t wide = bits_of(u->out), narrow = bits_of(rule_operand(u, 0));
  uint32_t kept = u->out->rank < rule_operand(u, 0)->rank ? u->out->rank : rule_operand(u, 0)->rank;
  rule_begin(u);
  for (uint32_t d = 0; d < kept; d++) rule_result(u, rule_dim(u, d));
  if (wide > narrow) rule_result(u, rule_range(u, wide / narrow));
  rule_end(u, 0, 0);
}

// --- tuples -------------------------------------------------------------------------------------------------------

static void same_leaf(rule *u, uint32_t operand, uint32_t leaf) {
  rule_begin(u);
  for (uint32_t d = 0; d < u->out->rank; d++) rule_result(u, rule_dim(u, d));
  rule_end(u, operand, leaf);
}

void rule_tuple(rule *u) {
  uint32_t i = kl_shape_element_of_leaf(u->in->shape, u->leaf);
  same_leaf(u, i, u->leaf - u->in->shape->first_leaf[i]);
}

void rule_get_tuple_element(rule *u) {
  same_leaf(u, 0, rule_operand(u, 0)->first_leaf[u->in->number] + u->leaf);
}

// The value of operand 0, of the same shape.
void rule_forward(rule *u) {
  same_leaf(u, 0, u->leaf);
}

// copy-start gives (copy, operand, context), whose first two are of the operand's shape; copy-done takes the copy of
// it.
void rule_copy_async(rule *u) {
  uint32_t i = u->in->op == KL_OP_COPY_START ? kl_shape_element_of_leaf(u->in->shape, u->leaf) : 0;
  if (i > 1) return;
  same_leaf(u, 0, u->leaf - (u->in->op == KL_OP_COPY_START ? u->in->shape->first_leaf[i] : 0));
}

#include "ir/index/layout/map.h"

// --- expressions ----------------------------------------------------------------------------------------------------

// Divisors of an array without elements may be 0; nobody asks for its elements.
static int64_t divisor(int64_t by) {
  return by > 0 ? by : 1;
}

void kl_memory_digits(kl_affs *p, const kl_physical *l, const kl_aff *const *index, const kl_aff **digits) {
  const kl_aff *at[KL_MAX_VALUES];
  for (uint32_t i = 0; i < l->nvalues; i++) {
    const kl_value *v = &l->values[i];
    switch (v->kind) {
    case KL_VALUE_INDEX: at[i] = index[i]; break;
    case KL_VALUE_UNIT: at[i] = kl_aff_const(p, 0); break;
    case KL_VALUE_COMBINED: at[i] = kl_aff_addmul(p, at[v->b], at[v->a], v->by); break;
    case KL_VALUE_QUOTIENT: at[i] = kl_aff_floordivc(p, at[v->a], divisor(v->by)); break;
    case KL_VALUE_REMAINDER: at[i] = kl_aff_modc(p, at[v->a], divisor(v->by)); break;
    }
  }
  for (uint32_t i = 0; i < l->ndigits; i++) digits[i] = at[l->digits[i].value];
}

const kl_aff *kl_memory_position(kl_affs *p, const kl_physical *l, const kl_aff *const *digits) {
  const kl_aff *sum = kl_aff_const(p, 0);
  for (uint32_t i = 0; i < l->ndigits; i++) sum = kl_aff_addmul(p, sum, digits[i], l->digits[i].stride);
  return sum;
}

void kl_memory_split(kl_affs *p, const kl_physical *l, const kl_aff *position, const kl_aff **digits) {
  for (uint32_t i = l->ndigits; i-- > 0;) {
    int64_t n = divisor(l->digits[i].extent);
    digits[i] = i ? kl_aff_modc(p, position, n) : position;
    if (i) position = kl_aff_floordivc(p, position, n);
  }
}

// Values from the last to the first: each is a digit, or made from those that it feeds.
uint32_t kl_memory_index(kl_affs *p, const kl_physical *l, const kl_aff *const *digits, const kl_aff **index,
                         kl_constraint *c) {
  const kl_aff *at[KL_MAX_VALUES];
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->ndigits; i++) at[l->digits[i].value] = digits[i];
  for (uint32_t i = l->nvalues; i-- > 0;) {
    const kl_value *v = &l->values[i];
    c[n++] = (kl_constraint){at[i], {0, v->bound - 1}};
    switch (v->kind) {
    case KL_VALUE_INDEX: index[i] = at[i]; break;
    case KL_VALUE_UNIT: break;
    case KL_VALUE_COMBINED:
      at[v->a] = kl_aff_floordivc(p, at[i], divisor(v->by));
      at[v->b] = kl_aff_modc(p, at[i], divisor(v->by));
      break;
    case KL_VALUE_QUOTIENT: break; // together with its remainder, which is the next value
    case KL_VALUE_REMAINDER: at[v->a] = kl_aff_addmul(p, at[i], at[i - 1], v->by); break;
    }
  }
  return n;
}

const kl_aff *kl_position_of(kl_affs *p, const kl_shape *s, const kl_aff *const *index) {
  kl_physical l;
  const kl_aff *digits[KL_MAX_DIGITS];
  if (kl_physical_of(s, &l)) return kl_aff_error_value(p, KL_AFF_OVERFLOW);
  kl_memory_digits(p, &l, index, digits);
  return kl_memory_position(p, &l, digits);
}

void kl_index_at(kl_affs *p, const kl_shape *s, const kl_aff *position, const kl_aff **index) {
  kl_physical l;
  const kl_aff *digits[KL_MAX_DIGITS];
  kl_constraint inside[KL_MAX_VALUES];
  bool known = !kl_physical_of(s, &l);
  for (uint32_t d = 0; d < s->rank && !known; d++) index[d] = kl_aff_error_value(p, KL_AFF_OVERFLOW);
  if (!known) return;
  kl_memory_split(p, &l, position, digits);
  kl_memory_index(p, &l, digits, index, inside);
}

// --- maps -----------------------------------------------------------------------------------------------------------

const kl_map *kl_layout_map(kl_affs *pool, const kl_shape *s) {
  kl_physical l;
  const kl_aff *index[KILN_MAX_RANK], *digits[KL_MAX_DIGITS];
  kl_physical_error e = kl_physical_of(s, &l);
  if (e) return kl_map_undefined(pool, kl_physical_error_text(e));
  for (uint32_t d = 0; d < s->rank; d++) index[d] = kl_aff_dim(pool, d);
  kl_memory_digits(pool, &l, index, digits);
  const kl_aff *position = kl_memory_position(pool, &l, digits);
  return kl_map_with_results(pool, kl_map_identity(pool, s->rank, s->dims), &position, 1);
}

const kl_map *kl_layout_inverse_map(kl_affs *pool, const kl_shape *s) {
  kl_physical l;
  const kl_aff *index[KILN_MAX_RANK], *digits[KL_MAX_DIGITS];
  kl_constraint c[KL_MAX_VALUES];
  kl_physical_error e = kl_physical_of(s, &l);
  if (e) return kl_map_undefined(pool, kl_physical_error_text(e));
  kl_memory_split(pool, &l, kl_aff_dim(pool, 0), digits);
  uint32_t n = kl_memory_index(pool, &l, digits, index, c);
  const kl_map *m = kl_map_identity(pool, 1, &l.tiled);
  for (uint32_t i = 0; i < n; i++) m = kl_map_constrain(pool, m, c[i].e, c[i].in);
  return kl_map_with_results(pool, m, index, l.rank);
}

// Physical layouts as index maps.
#include "ir/index/layout.h"

static const kl_aff *position_of(kl_affs *pool, const kl_physical *p) {
  const kl_aff *at[KL_MAX_VALUES], *position = kl_aff_const(pool, 0);
  for (uint32_t i = 0; i < p->nvalues; i++) {
    const kl_value *v = &p->values[i];
    switch (v->kind) {
    case KL_VALUE_INDEX: at[i] = kl_aff_dim(pool, i); break;
    case KL_VALUE_UNIT: at[i] = kl_aff_const(pool, 0); break;
    case KL_VALUE_COMBINED: at[i] = kl_aff_addmul(pool, at[v->b], at[v->a], v->by); break;
    case KL_VALUE_QUOTIENT: at[i] = kl_aff_floordivc(pool, at[v->a], v->by); break;
    case KL_VALUE_REMAINDER: at[i] = kl_aff_modc(pool, at[v->a], v->by); break;
    }
  }
  for (uint32_t i = 0; i < p->ndigits; i++)
    position = kl_aff_addmul(pool, position, at[p->digits[i].value], p->digits[i].stride);
  return position;
}

const kl_map *kl_layout_map(kl_affs *pool, const kl_shape *s) {
  kl_physical p;
  kl_physical_error e = kl_physical_of(s, &p);
  if (e) return kl_map_undefined(pool, kl_physical_error_text(e));
  const kl_aff *position = p.elements ? position_of(pool, &p) : kl_aff_const(pool, 0);
  return kl_map_with_results(pool, kl_map_identity(pool, s->rank, s->dims), &position, 1);
}

// A digit's value is all of the quotient where nothing stands above it.
static const kl_aff *digit_of(kl_affs *pool, const kl_physical *p, const kl_digit *d) {
  const kl_aff *quotient = kl_aff_floordivc(pool, kl_aff_dim(pool, 0), d->stride);
  return d->stride * d->extent == p->tiled ? quotient : kl_aff_modc(pool, quotient, d->extent);
}

// Undoes the values, last to first. One that its parts let grow to its bound or beyond is constrained.
const kl_map *kl_layout_inverse_map(kl_affs *pool, const kl_shape *s) {
  kl_physical p;
  const kl_aff *at[KL_MAX_VALUES];
  kl_physical_error e = kl_physical_of(s, &p);
  if (e) return kl_map_undefined(pool, kl_physical_error_text(e));
  const kl_map *m = kl_map_identity(pool, 1, &p.tiled);
  for (uint32_t i = 0; i < p.rank; i++) at[i] = kl_aff_const(pool, 0);
  for (uint32_t i = 0; i < p.ndigits && p.elements; i++) at[p.digits[i].value] = digit_of(pool, &p, &p.digits[i]);
  for (uint32_t i = p.nvalues; i-- > 0 && p.elements;) {
    const kl_value *v = &p.values[i];
    if (v->kind == KL_VALUE_COMBINED) {
      at[v->a] = kl_aff_floordivc(pool, at[i], v->by);
      at[v->b] = kl_aff_modc(pool, at[i], v->by);
    } else if (v->kind == KL_VALUE_QUOTIENT) {
      int64_t bound = p.values[v->a].bound;
      at[v->a] = kl_aff_addmul(pool, at[i + 1], at[i], v->by);
      if (bound < v->extent * v->by) m = kl_map_constrain(pool, m, at[v->a], (kl_interval){0, bound - 1});
    }
  }
  return kl_map_with_results(pool, m, at, p.rank);
}

// Ops at places that data says. A window begins where it lies in what is there, as it would in an array of that size.
#include "ir/rewrite/sizes/room.h"

// --- where windows begin --------------------------------------------------------------------------------------------

// The type of places in an array: s64 where a bound asks for it.
static kl_dtype places_in(const kl_shape *s) {
  kl_dtype t = KILN_S32;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] > INT32_MAX) t = KILN_S64;
  return t;
}

// Integers as places, those below 0 or above all places held to these.
static uint32_t to_places(kl_sizing *z, uint32_t v, kl_dtype t) {
  kl_dtype from = kl_graph_shape(z->g, v)->dtype;
  int64_t most = t == KILN_S32 ? INT32_MAX : INT64_MAX;
  if (kl_is_signed(from)) v = kl_graph_with(z->g, KL_OP_MAXIMUM, v, 0);
  if (kl_info(from)->bits >= kl_info(t)->bits && from != t) v = kl_graph_with(z->g, KL_OP_MINIMUM, v, most);
  return kl_graph_convert(z->g, v, t);
}

// The last place at which a window of `size` elements, a number or a value, lies in `extent`: 0 where it lies in none.
static uint32_t last_place(kl_sizing *z, uint32_t extent, uint32_t size, kl_dtype t) {
  uint32_t last = kl_graph_with(z->g, KL_OP_MAXIMUM, kl_graph_binary(z->g, KL_OP_SUBTRACT, extent, size), 0);
  return kl_graph_convert(z->g, last, t);
}

// Start d of those that begin with operand `first`: scalars, or one vector.
static uint32_t start_of(kl_sizing *z, uint32_t first, uint32_t d) {
  if (z->in->noperands != first + 1 || z->shapes[first]->rank != 1) return z->values[first + d];
  return kl_graph_reshape(z->g, kl_graph_slice(z->g, z->values[first], 0, d, d + 1, 1), 0, NULL);
}

// --- slices ---------------------------------------------------------------------------------------------------------

// Elements of a slice that are not there are 0: of one that is larger than what is.
static uint32_t dynamic_slice(kl_sizing *z) {
  const kl_shape *s = z->shapes[0];
  kl_dtype t = places_in(s);
  kl_extents inside;
  bool any = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    bool part = kl_is_sized(z, 0, d) && z->in->more->sizes.p[d] != s->dims[d];
    inside.of[d] = part ? kl_extent(z, 0, d) : KL_WHOLE;
    z->out->of[d] = part ? KL_WHOLE : kl_extent(z, 0, d);
    any |= part;
  }
  if (!any) return kl_size_keep(z);
  uint32_t operands[KILN_MAX_RANK + 1];
  operands[0] = kl_size_mask(z, z->values[0], &inside, kl_size_zero(z, s->dtype));
  for (uint32_t d = 0; d < s->rank; d++) {
    uint32_t at = to_places(z, start_of(z, 1, d), t), size = KL_WHOLE;
    if (inside.of[d] != KL_WHOLE) size = kl_size_number(z, z->in->more->sizes.p[d]);
    if (size != KL_WHOLE) at = kl_graph_binary(z->g, KL_OP_MINIMUM, at, last_place(z, inside.of[d], size, t));
    operands[1 + d] = at;
  }
  kl_instr in = *z->in;
  in.shape = kl_size_known(z, in.shape);
  return kl_size_emit(z, in, s->rank + 1, operands);
}

// The array with the update at these places; where the update has an extent it is what lies there already beyond, in
// an array with room for all of it.
static uint32_t put_update(kl_sizing *z, const kl_extents *x, uint32_t *operands) {
  const kl_shape *s = kl_size_known(z, z->shapes[0]), *update = kl_size_known(z, z->shapes[1]);
  uint32_t there = kl_size_there(z, update, x), v = operands[0], from[KILN_MAX_RANK + 1];
  for (uint32_t d = 0; d < s->rank; d++) {
    if (x->of[d] != KL_WHOLE) v = kl_graph_pad(z->g, v, d, 0, update->dims[d]);
    from[1 + d] = operands[2 + d];
  }
  if (there != KL_WHOLE) {
    kl_more *more = KL_NEW(&z->g->m->arena, kl_more);
    *more = kl_no_more;
    more->sizes = (kl_ints){update->rank, update->dims};
    from[0] = v;
    uint32_t own = kl_size_emit(z, (kl_instr){.op = KL_OP_DYNAMIC_SLICE, .shape = update, .more = more, .given = 1},
                                s->rank + 1, from);
    operands[1] = kl_graph_select(z->g, there, operands[1], own);
  }
  operands[0] = v;
  v = kl_size_emit(z, (kl_instr){.op = KL_OP_DYNAMIC_UPDATE_SLICE, .shape = kl_graph_shape(z->g, v)}, s->rank + 2,
                   operands);
  for (uint32_t d = 0; d < s->rank; d++)
    if (x->of[d] != KL_WHOLE) v = kl_graph_slice(z->g, v, d, 0, s->dims[d], 1);
  return v;
}

// Of an update that is larger than what is there, the first elements.
static uint32_t dynamic_update_slice(kl_sizing *z) {
  const kl_shape *s = z->shapes[0], *update = z->shapes[1];
  kl_dtype t = places_in(s);
  kl_extents own;
  bool any = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    bool same = kl_extent(z, 0, d) == kl_extent(z, 1, d) && s->dims[d] == update->dims[d];
    own.of[d] = same ? KL_WHOLE : kl_extent(z, 1, d);
    z->out->of[d] = kl_extent(z, 0, d);
    any |= !same && (kl_is_sized(z, 0, d) || kl_is_sized(z, 1, d));
  }
  if (!any) return kl_size_keep(z);
  uint32_t operands[KILN_MAX_RANK + 2] = {z->values[0], z->values[1]};
  for (uint32_t d = 0; d < s->rank; d++) {
    uint32_t at = to_places(z, start_of(z, 2, d), t);
    if (kl_is_sized(z, 0, d) || own.of[d] != KL_WHOLE) {
      if (s->dims[d] > INT32_MAX) return kl_size_refuse(z, "bounds below 2^31 along dynamic dimensions");
      uint32_t extent = kl_size_or_bound(z, kl_extent(z, 0, d), s->dims[d]);
      uint32_t size = kl_size_or_bound(z, kl_extent(z, 1, d), update->dims[d]);
      at = kl_graph_binary(z->g, KL_OP_MINIMUM, at, last_place(z, extent, size, t));
    }
    operands[2 + d] = at;
  }
  return put_update(z, &own, operands);
}

// --- gather ---------------------------------------------------------------------------------------------------------

// Indices that lie where windows do. `inside`: of dimensions that a window has a part of, the extents.
static uint32_t hold_indices(kl_sizing *z, const kl_extents *inside) {
  const kl_more *m = z->in->more;
  const kl_shape *s = z->shapes[0];
  kl_dtype t = places_in(s);
  uint32_t v = to_places(z, z->values[1], t), n = m->start_index_map.n, last[KILN_MAX_RANK];
  const kl_shape *of = kl_graph_shape(z->g, v);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = (uint32_t)m->start_index_map.p[i];
    int64_t most = s->dims[d] - m->sizes.p[d];
    last[i] = inside->of[d] == KL_WHOLE ? kl_graph_number(z->g, t, most < 0 ? 0 : most, 0, NULL)
                                        : last_place(z, inside->of[d], kl_size_number(z, m->sizes.p[d]), t);
    last[i] = kl_graph_reshape(z->g, last[i], 1, (int64_t[]){1});
  }
  if (!n) return z->values[1];
  uint32_t all = n > 1 ? kl_graph_concatenate(z->g, n, last, 0) : last[0];
  int64_t along = m->index_vector_dim;
  if (along == of->rank) all = kl_graph_reshape(z->g, all, 0, NULL);
  return kl_graph_binary(z->g, KL_OP_MINIMUM, v, kl_graph_broadcast(z->g, all, of->rank, of->dims, &along));
}

// Elements of a window that are not there are 0: of one that is larger than what is.
static uint32_t gather(kl_sizing *z) {
  const kl_more *m = z->in->more;
  const kl_shape *s = z->shapes[0];
  kl_extents inside, places;
  bool any = false;
  uint32_t place = 0, w = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    bool window = !kl_size_has(m->collapsed_dims, d) && m->sizes.p[d] == s->dims[d];
    bool part = kl_is_sized(z, 0, d) && !window && !kl_size_has(m->operand_batching_dims, d);
    inside.of[d] = part ? kl_extent(z, 0, d) : KL_WHOLE;
    any |= part;
  }
  for (uint32_t d = 0; d < z->shapes[1]->rank; d++) places.of[d] = kl_extent(z, 1, d);
  for (uint32_t i = 0; i < m->operand_batching_dims.n; i++) {
    int64_t d = m->indices_batching_dims.p[i];
    places.of[d] = kl_size_least(z, places.of[d], kl_extent(z, 0, (uint32_t)m->operand_batching_dims.p[i]));
  }
  if (m->index_vector_dim < z->shapes[1]->rank && places.of[m->index_vector_dim] != KL_WHOLE)
    return kl_size_refuse(z, "vectors of known length");
  for (uint32_t i = 0; i < z->in->shape->rank; i++) {
    if (kl_size_has(m->offset_dims, i)) {
      while (kl_size_has(m->collapsed_dims, w) || kl_size_has(m->operand_batching_dims, w)) w++;
      z->out->of[i] = inside.of[w] == KL_WHOLE ? kl_extent(z, 0, w) : KL_WHOLE;
      w++;
    } else {
      place += place == m->index_vector_dim;
      z->out->of[i] = places.of[place++];
    }
  }
  if (any) {
    z->values[1] = hold_indices(z, &inside);
    z->values[0] = kl_size_mask(z, z->values[0], &inside, kl_size_zero(z, s->dtype));
  }
  return kl_size_keep(z);
}

uint32_t kl_size_placed(kl_sizing *z) {
  switch (kl_op_table[z->in->op].kind) {
  case KL_KIND_DYNAMIC_SLICE: return dynamic_slice(z);
  case KL_KIND_DYNAMIC_UPDATE_SLICE: return dynamic_update_slice(z);
  case KL_KIND_GATHER: return gather(z);
  default: return kl_size_scatter(z);
  }
}

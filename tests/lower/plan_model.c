#include "plan_model.h"

enum { OF_PARAMETER = 1, OF_BITS, OF_IOTA, OF_PART, OF_JOIN, OF_OP };

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 29);
}
uint64_t of_parameter(uint32_t slot, int64_t element) {
  return mix(mix(OF_PARAMETER, slot), (uint64_t)element);
}
uint64_t of_bits(kl_dtype t, const uint64_t bits[2]) {
  return mix(mix(mix(OF_BITS, (uint64_t)t), bits[0]), kl_is_complex(t) ? bits[1] : 0);
}
uint64_t of_iota(kl_dtype t, int64_t i) {
  return mix(mix(OF_IOTA, (uint64_t)t), (uint64_t)i);
}
uint64_t of_part(uint64_t whole, uint64_t part) {
  return mix(mix(OF_PART, whole), part);
}
uint64_t of_join(uint32_t n, const uint64_t *parts) {
  uint64_t h = OF_JOIN;
  for (uint32_t i = 0; i < n; i++) h = mix(h, parts[i]);
  return h;
}
uint64_t of_op(const kl_instr *in, uint32_t n, const uint64_t *operands) {
  uint64_t h = mix(OF_OP, (uint64_t)(uintptr_t)in);
  for (uint32_t i = 0; i < n; i++) h = mix(h, operands[i]);
  return h;
}

// --- indices -----------------------------------------------------------------------------------------------------

static int64_t stride_of(const kl_shape *s, uint32_t dim) {
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < s->rank; d++) stride *= s->dims[d];
  return stride;
}
int64_t at_index(const kl_shape *s, const int64_t *index) {
  int64_t n = 0;
  for (uint32_t d = 0; d < s->rank; d++) n = n * s->dims[d] + index[d];
  return n;
}
void index_at(const kl_shape *s, int64_t n, int64_t *index) {
  for (uint32_t d = s->rank; d-- > 0; n /= s->dims[d]) index[d] = n % s->dims[d];
}

int64_t in_memory(const kl_shape *s, int64_t element) {
  int64_t n = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = s->layout.present ? (uint32_t)s->layout.minor_to_major[i] : s->rank - 1 - i;
    n += element % s->dims[d] * stride_of(s, d);
    element /= s->dims[d];
  }
  return n;
}

// --- the graph ---------------------------------------------------------------------------------------------------

static void scatter_pad(const kl_instr *in, const kl_shape *os, const uint64_t *from, uint64_t with, uint64_t *out) {
  const kl_shape *s = in->shape;
  for (int64_t i = 0; i < s->count; i++) out[i] = with;
  for (int64_t i = 0; i < os->count; i++) {
    int64_t at[KILN_MAX_RANK];
    bool inside = true;
    index_at(os, i, at);
    for (uint32_t d = 0; d < s->rank; d++) {
      at[d] = in->pad[d].low + at[d] * (in->pad[d].interior + 1);
      inside = inside && at[d] >= 0 && at[d] < s->dims[d];
    }
    if (inside) out[at_index(s, at)] = from[i];
  }
}

static void scatter_concatenate(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint64_t *out) {
  int64_t offset = 0, dim = in->dims[0];
  for (uint32_t k = 0; k < in->noperands; k++) {
    const kl_shape *os = kl_operand(c, in, k)->shape;
    for (int64_t i = 0; i < os->count; i++) {
      int64_t at[KILN_MAX_RANK];
      index_at(os, i, at);
      at[dim] += offset;
      out[at_index(in->shape, at)] = from[k][i];
    }
    offset += os->dims[dim];
  }
}

// Ops whose result is made of moved elements, read from the result's side.
static int64_t moved_from(const kl_instr *in, const kl_shape *os, int64_t n) {
  int64_t at[KILN_MAX_RANK], from[KILN_MAX_RANK] = {0};
  index_at(in->shape, n, at);
  for (uint32_t d = 0; d < os->rank; d++) {
    switch (in->op) {
    case KL_OP_BROADCAST: from[d] = at[in->dims[d]]; break;
    case KL_OP_SLICE: from[d] = in->slice[d].start + at[d] * in->slice[d].stride; break;
    case KL_OP_TRANSPOSE: from[in->dims[d]] = at[d]; break;
    default: from[d] = at[d]; break;
    }
  }
  for (uint32_t i = 0; in->op == KL_OP_REVERSE && i < in->ndims; i++)
    from[in->dims[i]] = os->dims[in->dims[i]] - 1 - at[in->dims[i]];
  return at_index(os, from);
}

static uint64_t elementwise(const kl_comp *c, const kl_instr *in, uint64_t *const *from, int64_t n) {
  const kl_shape *os = kl_operand(c, in, 0)->shape;
  bool same = in->noperands == 1 && in->shape->dtype == os->dtype;
  if (in->op == KL_OP_COPY || (same && (in->op == KL_OP_CONVERT || in->op == KL_OP_REAL))) return from[0][n];
  if (in->op == KL_OP_BITCAST_CONVERT) {
    unsigned bits = kl_info(in->shape->dtype)->bits, other = kl_info(os->dtype)->bits;
    if (bits < other) return of_part(from[0][n / (other / bits)], (uint64_t)n % (other / bits));
    if (bits > other) return of_join(bits / other, &from[0][n * (bits / other)]);
  }
  uint64_t x[3];
  for (uint32_t i = 0; i < in->noperands; i++) x[i] = from[i][kl_operand(c, in, i)->shape->rank ? n : 0];
  return of_op(in, in->noperands, x);
}

static void evaluate_array(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint64_t *out) {
  const kl_shape *s = in->shape, *os = in->noperands ? kl_operand(c, in, 0)->shape : NULL;
  int64_t at[KILN_MAX_RANK];
  if (in->op == KL_OP_PAD) return scatter_pad(in, os, from[0], from[1][0], out);
  if (in->op == KL_OP_CONCATENATE) return scatter_concatenate(c, in, from, out);
  for (int64_t n = 0; n < s->count; n++) {
    switch (in->op) {
    case KL_OP_CONSTANT: {
      uint64_t bits[2] = {kl_element_get(s->dtype, in->literal->data, n, 0)};
      if (kl_is_complex(s->dtype)) bits[1] = kl_element_get(s->dtype, in->literal->data, n, 1);
      out[n] = of_bits(s->dtype, bits);
      break;
    }
    case KL_OP_IOTA:
      index_at(s, n, at);
      out[n] = of_iota(s->dtype, at[in->number]);
      break;
    case KL_OP_RESHAPE: out[n] = from[0][n]; break;
    case KL_OP_BITCAST: {
      uint64_t x = from[0][in_memory(os, n)];
      out[in_memory(s, n)] = s->dtype == os->dtype ? x : of_op(in, 1, &x);
      break;
    }
    case KL_OP_BROADCAST:
    case KL_OP_TRANSPOSE:
    case KL_OP_SLICE:
    case KL_OP_REVERSE: out[n] = from[0][moved_from(in, os, n)]; break;
    default: out[n] = elementwise(c, in, from, n);
    }
  }
}

static leaves evaluate_instr(kl_arena *arena, const kiln_module *m, const kl_comp *c, const kl_instr *in,
                             const leaves *made, const leaves *args) {
  leaves r = {.n = (uint32_t)kl_shape_leaf_count(in->shape)};
  if (in->op == KL_OP_PARAMETER) return args[in->number];
  if (in->op == KL_OP_FUSION || in->op == KL_OP_CALL) {
    leaves *passed = KL_NEW_N(arena, leaves, in->noperands + 1);
    for (uint32_t i = 0; i < in->noperands; i++) passed[i] = made[in->operands[i]];
    return evaluate_graph(arena, m, &m->comp[in->called[0]], passed);
  }
  r.v = KL_NEW_N(arena, uint64_t *, r.n + 1);
  if (in->op == KL_OP_TUPLE) {
    for (uint32_t i = 0, k = 0; i < in->noperands; i++)
      for (uint32_t l = 0; l < made[in->operands[i]].n; l++) r.v[k++] = made[in->operands[i]].v[l];
  } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
    uint32_t first = 0;
    for (int64_t i = 0; i < in->number; i++)
      first += (uint32_t)kl_shape_leaf_count(kl_operand(c, in, 0)->shape->elems[i]);
    for (uint32_t l = 0; l < r.n; l++) r.v[l] = made[in->operands[0]].v[first + l];
  } else {
    uint64_t *from[64];
    for (uint32_t i = 0; i < in->noperands; i++) from[i] = made[in->operands[i]].v[0];
    r.v[0] = KL_NEW_N(arena, uint64_t, in->shape->count + 1);
    evaluate_array(c, in, from, r.v[0]);
  }
  return r;
}

leaves evaluate_graph(kl_arena *arena, const kiln_module *m, const kl_comp *c, const leaves *args) {
  leaves *made = KL_NEW_N(arena, leaves, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) made[i] = evaluate_instr(arena, m, c, &c->instr[i], made, args);
  return made[c->root];
}

leaves *number_arguments(kl_arena *arena, const kl_comp *c) {
  leaves *args = KL_NEW_N(arena, leaves, c->nparams + 1);
  uint32_t slot = 0;
  for (uint32_t i = 0; i < c->nparams; i++) {
    const kl_shape *s = c->instr[c->params[i]].shape;
    args[i].n = (uint32_t)kl_shape_leaf_count(s);
    args[i].v = KL_NEW_N(arena, uint64_t *, args[i].n + 1);
    for (uint32_t l = 0; l < args[i].n; l++, slot++) {
      const kl_shape *leaf = kl_shape_leaf(s, l);
      args[i].v[l] = KL_NEW_N(arena, uint64_t, leaf->count + 1);
      for (int64_t e = 0; e < leaf->count; e++) args[i].v[l][in_memory(leaf, e)] = of_parameter(slot, e);
    }
  }
  return args;
}

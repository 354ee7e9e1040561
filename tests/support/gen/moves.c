// Index transforms and bitcasts.

#include "impl.h"

void op_broadcast(gen *g) {
  unsigned a = chance(g, 50) ? scalar_constant(g, any_dtype(g)) : operand(g), like = pick(g, g->n);
  value v = g->v[like];
  v.t = g->v[a].t;
  int64_t dims[MAX_RANK];
  char attrs[128];
  if (g->v[a].rank == 0) {
    emit(g, &v, "broadcast", 1, &a, ", dimensions={}");
    return;
  }
  v = g->v[a];
  if (v.rank >= MAX_RANK) return;
  uint32_t at = pick(g, v.rank + 1);
  for (uint32_t d = 0; d < g->v[a].rank; d++) dims[d] = d < at ? d : d + 1;
  for (uint32_t d = v.rank; d > at; d--) v.dims[d] = v.dims[d - 1];
  v.dims[at] = 1 + pick(g, 5);
  v.rank++;
  if (count(&v) > MAX_ELEMENTS) return;
  put_list(attrs, sizeof attrs, "dimensions", g->v[a].rank, dims);
  emit(g, &v, "broadcast", 1, &a, attrs);
}

void op_reshape(gen *g) {
  unsigned a = operand(g);
  value v = {.t = g->v[a].t};
  int64_t n = count(&g->v[a]);
  if (n == 0) return;
  while (v.rank < MAX_RANK - 1 && n > 1 && !chance(g, 25)) {
    int64_t f = 2 + pick(g, 7);
    if (n % f) f = 1;
    v.dims[v.rank++] = f;
    n /= f;
  }
  if (n > 1 || chance(g, 30)) v.dims[v.rank++] = n;
  emit(g, &v, "reshape", 1, &a, "");
}

void op_transpose(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  if (!v.rank) return;
  int64_t perm[MAX_RANK];
  for (uint32_t d = 0; d < v.rank; d++) perm[d] = d;
  for (uint32_t d = v.rank - 1; d > 0; d--) {
    uint32_t o = pick(g, d + 1);
    int64_t x = perm[d];
    perm[d] = perm[o];
    perm[o] = x;
  }
  for (uint32_t d = 0; d < v.rank; d++) v.dims[d] = g->v[a].dims[perm[d]];
  char attrs[128];
  put_list(attrs, sizeof attrs, "dimensions", v.rank, perm);
  emit(g, &v, "transpose", 1, &a, attrs);
}

void op_reverse(gen *g) {
  unsigned a = operand(g);
  int64_t dims[MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < g->v[a].rank; d++) {
    if (chance(g, 50)) dims[n++] = d;
  }
  char attrs[128];
  put_list(attrs, sizeof attrs, "dimensions", n, dims);
  emit(g, &g->v[a], "reverse", 1, &a, attrs);
}

void op_slice(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  if (!v.rank) return;
  char attrs[256];
  size_t at = (size_t)snprintf(attrs, sizeof attrs, ", slice={");
  for (uint32_t d = 0; d < v.rank; d++) {
    int64_t start = pick(g, (unsigned)(v.dims[d] / 3 + 1)), limit = v.dims[d] - pick(g, (unsigned)(v.dims[d] / 3 + 1));
    int64_t stride = chance(g, 70) ? 1 : 1 + pick(g, 3);
    if (limit < start) limit = start;
    v.dims[d] = (limit - start + stride - 1) / stride;
    at += (size_t)snprintf(attrs + at, sizeof attrs - at, "%s[%lld:%lld:%lld]", d ? ", " : "", (long long)start,
                           (long long)limit, (long long)stride);
  }
  snprintf(attrs + at, sizeof attrs - at, "}");
  emit(g, &v, "slice", 1, &a, attrs);
}

void op_pad(gen *g) {
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  if (!v.rank) return;
  x[1] = scalar_constant(g, v.t);
  char attrs[256];
  size_t at = (size_t)snprintf(attrs, sizeof attrs, ", padding=");
  for (uint32_t d = 0; d < v.rank; d++) {
    int64_t lo = (int64_t)pick(g, 7) - 2, hi = (int64_t)pick(g, 7) - 2, in = chance(g, 75) ? 0 : 1 + pick(g, 2);
    int64_t inner = v.dims[d] ? v.dims[d] + (v.dims[d] - 1) * in : 0;
    if (inner + lo + hi < 0) lo = hi = 0;
    v.dims[d] = inner + lo + hi;
    at += (size_t)snprintf(attrs + at, sizeof attrs - at, "%s%lld_%lld_%lld", d ? "x" : "", (long long)lo,
                           (long long)hi, (long long)in);
  }
  if (count(&v) <= MAX_ELEMENTS) emit(g, &v, "pad", 2, x, attrs);
}

void op_concatenate(gen *g) {
  unsigned a = operand(g), x[3], n = 2 + pick(g, 2);
  value v = g->v[a];
  if (!v.rank) return;
  uint32_t dim = pick(g, v.rank);
  for (unsigned i = 0; i < n; i++) x[i] = of_type(g, a, v.t);
  v.dims[dim] *= n;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", dimensions={%u}", dim);
  if (count(&v) <= MAX_ELEMENTS) emit(g, &v, "concatenate", n, x, attrs);
}

void op_iota(gen *g) {
  value v = g->v[pick(g, g->n)];
  do v.t = any_dtype(g);
  while (v.t == KILN_PRED);
  if (!v.rank) return;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", iota_dimension=%u", pick(g, v.rank));
  emit(g, &v, "iota", 0, NULL, attrs);
}

// As long as the same memory, in other dims and another layout.
void op_bitcast(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  if (chance(g, 40)) {
    v.rank = 1;
    v.dims[0] = count(&g->v[a]);
  }
  for (uint32_t d = 0; d + 1 < v.rank; d++) {
    uint32_t o = d + pick(g, v.rank - d);
    int64_t x = v.dims[d];
    v.dims[d] = v.dims[o];
    v.dims[o] = x;
  }
  begin(g, &v, "bitcast", 60);
  kl_sbf(g->out, "v%u)\n", a);
}

// The same memory in elements of another width.
void op_bitcast_width(gen *g) {
  unsigned a = operand(g);
  value v = {.rank = 1, .t = any_dtype(g)};
  int64_t bits = count(&g->v[a]) * kl_info(g->v[a].t)->bits;
  unsigned other = kl_info(v.t)->bits;
  if (g->v[a].computed || g->v[a].t == KILN_PRED || v.t == KILN_PRED || bits % other || bits / other > MAX_ELEMENTS)
    return;
  if (kl_is_complex(v.t) != kl_is_complex(g->v[a].t)) return;
  v.dims[0] = bits / other;
  if (v.dims[0] % 2 == 0 && chance(g, 50)) v.dims[0] /= 2, v.dims[v.rank++] = 2;
  emit(g, &v, "bitcast", 1, &a, "");
}

// Many operands, of any extents.
void op_concatenate_any(gen *g) {
  unsigned a = operand(g), x[16], n = 2 + pick(g, chance(g, 20) ? 14 : 4);
  value v = g->v[a], all = v;
  if (!v.rank) return;
  uint32_t dim = pick(g, v.rank);
  all.dims[dim] = 0;
  for (unsigned i = 0; i < n; i++) {
    v.dims[dim] = pick(g, 6);
    if (chance(g, 10)) v.dims[dim] = 1 + pick(g, 40);
    if (count(&v) + count(&all) > MAX_ELEMENTS) v.dims[dim] = 0;
    x[i] = made(g, &v);
    all.dims[dim] += v.dims[dim];
  }
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", dimensions={%u}", dim);
  emit(g, &all, "concatenate", n, x, attrs);
}

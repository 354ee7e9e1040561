// Random fusions. A pool of values grows by one operation at a time; operands of the wanted type are taken from the
// pool or made by convert. The roots are the last value and some with as many elements, or with any number. What passes
// from one computation to another, or between ENTRY and the header, may have a layout of its own on either side.

#include "gen.h"
#include "dtypes.h"
#include <stdio.h>

enum { MAX_VALUES = 400, MAX_ELEMENTS = 6000, MAX_RANK = 6, MAX_ROOTS = 4 };

typedef struct value {
  kl_dtype t;
  uint32_t rank;
  int64_t dims[MAX_RANK];
  uint32_t layout[MAX_RANK]; // minor to major
  bool custom;               // the layout is not the default
  bool computed;             // a float that went through arithmetic: the bits of its NaNs are not promised
} value;

typedef struct gen {
  gen_source *src;
  kl_sb *out;
  kl_sb called; // computations that the fusion calls
  value v[MAX_VALUES];
  unsigned n, params, calls;
  bool tiles; // some buffers lie in tiles
} gen;

static uint64_t next(gen_source *s) {
  if (s->size) {
    uint64_t r = *s->bytes++;
    s->size--;
    if (s->size) r |= (uint64_t)*s->bytes << 8;
    s->seed += r;
    return r;
  }
  s->seed += 0x9e3779b97f4a7c15ull;
  uint64_t x = s->seed;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static unsigned pick(gen *g, unsigned n) {
  return n ? (unsigned)(next(g->src) % n) : 0;
}
static bool chance(gen *g, unsigned percent) {
  return pick(g, 100) < percent;
}

// Mostly a recent value, so that operations build on each other.
static unsigned operand(gen *g) {
  unsigned recent = g->n < 5 ? g->n : 5;
  return chance(g, 75) ? g->n - 1 - pick(g, recent) : pick(g, g->n);
}

static int64_t count(const value *v) {
  int64_t n = 1;
  for (uint32_t d = 0; d < v->rank; d++) n *= v->dims[d];
  return n;
}

static bool same_dims(const value *a, const value *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    if (a->dims[d] != b->dims[d]) return false;
  }
  return true;
}

// Every type, the usual ones more often.
static kl_dtype any_dtype(gen *g) {
  static const kl_dtype usual[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F32, KILN_S32};
  dtype_list all = dtypes_that(kl_is_array_dtype);
  unsigned i = pick(g, (unsigned)all.n + KL_COUNT(usual));
  return i < (unsigned)all.n ? all.at[i] : usual[i - (unsigned)all.n];
}

static void default_layout(value *v) {
  for (uint32_t d = 0; d < v->rank; d++) v->layout[d] = v->rank - 1 - d;
  v->custom = false;
}

static void any_layout(gen *g, value *v, unsigned percent) {
  default_layout(v);
  if (v->rank < 2 || !chance(g, percent)) return;
  v->custom = true;
  for (uint32_t d = v->rank - 1; d > 0; d--) {
    uint32_t o = pick(g, d + 1), x = v->layout[d];
    v->layout[d] = v->layout[o];
    v->layout[o] = x;
  }
}

// Tiles, bits of elements and padding of a buffer.
static void put_tiles(gen *g, kl_sb *b, const value *v) {
  unsigned bits = kl_info(v->t)->bits, wider = bits << pick(g, 3), n = 1 + pick(g, 2);
  bool even = chance(g, 70);
  kl_sb_puts(b, ":");
  for (unsigned i = 0; i < n && chance(g, 80); i++) {
    unsigned sizes = 1 + pick(g, v->rank > 2 ? 3 : v->rank);
    for (unsigned d = 0; d < sizes; d++)
      kl_sbf(b, "%s%u", d ? "," : i ? "(" : "T(", even ? 1u << pick(g, i ? 2 : 4) : 1 + pick(g, i ? 3 : 9));
    kl_sb_putc(b, ')');
  }
  if (chance(g, 20)) kl_sbf(b, "L(%u)", 1 + pick(g, 40));
  if (v->t == KILN_PRED && chance(g, 50)) wider = 1;
  if (chance(g, 40) && !kl_is_complex(v->t) && wider <= 64) kl_sbf(b, "E(%u)", wider);
  if (chance(g, 10)) kl_sb_puts(b, "S(1)");
}

static void put_shape(kl_sb *b, const value *v) {
  kl_sb_puts(b, kl_info(v->t)->name);
  kl_sb_putc(b, '[');
  for (uint32_t d = 0; d < v->rank; d++) kl_sbf(b, d ? ",%lld" : "%lld", (long long)v->dims[d]);
  kl_sb_putc(b, ']');
  if (!v->custom) return;
  for (uint32_t d = 0; d < v->rank; d++) kl_sbf(b, d ? ",%u" : "{%u", v->layout[d]);
  kl_sb_putc(b, '}');
}

// The value as another computation may have it.
static void put_shape_elsewhere(gen *g, kl_sb *b, const value *v) {
  value other = *v;
  if (chance(g, 15)) any_layout(g, &other, 80);
  put_shape(b, &other);
}

// The same for what is a buffer there.
static void put_buffer(gen *g, kl_sb *b, const value *v) {
  value other = *v;
  if (!v->rank || !g->tiles || !chance(g, 40)) return put_shape_elsewhere(g, b, v);
  any_layout(g, &other, 50);
  other.custom = true;
  put_shape(b, &other);
  b->n--;
  put_tiles(g, b, &other);
  kl_sb_putc(b, '}');
}

// Begins "  vN = shape op(" and returns N.
static unsigned begin(gen *g, const value *v, const char *op, unsigned percent) {
  g->v[g->n] = *v;
  any_layout(g, &g->v[g->n], percent);
  kl_sbf(g->out, "  v%u = ", g->n);
  put_shape(g->out, &g->v[g->n]);
  kl_sbf(g->out, " %s(", op);
  return g->n++;
}

static bool moves_only(const char *op) {
  static const char *const moves[] = {"broadcast", "reshape",     "transpose", "reverse", "slice",
                                      "pad",       "concatenate", "iota",      "copy"};
  for (size_t i = 0; i < KL_COUNT(moves); i++) {
    if (strcmp(op, moves[i]) == 0) return true;
  }
  return false;
}

static unsigned emit(gen *g, const value *v, const char *op, unsigned n, const unsigned *operands, const char *attrs) {
  unsigned r = begin(g, v, op, 12);
  g->v[r].computed = kl_is_float(v->t) && !moves_only(op);
  for (unsigned i = 0; i < n; i++) g->v[r].computed |= kl_is_float(v->t) && g->v[operands[i]].computed;
  for (unsigned i = 0; i < n; i++) kl_sbf(g->out, i ? ", v%u" : "v%u", operands[i]);
  kl_sbf(g->out, ")%s\n", attrs);
  return r;
}

static bool full(const gen *g) {
  return g->n + 8 >= MAX_VALUES;
}

// A value of type t with the dims of `like`: `like` itself, another one, or a conversion.
static unsigned of_type(gen *g, unsigned like, kl_dtype t) {
  for (unsigned tries = 0; tries < 4; tries++) {
    unsigned i = pick(g, g->n);
    if (g->v[i].t == t && same_dims(&g->v[i], &g->v[like])) return i;
  }
  if (g->v[like].t == t) return like;
  value v = g->v[like];
  v.t = t;
  return emit(g, &v, "convert", 1, &like, "");
}

static unsigned scalar_constant(gen *g, kl_dtype t) {
  value v = {.t = t};
  const char *texts[] = {"0", "1", "2", "3", "0.5", "0.75", "5", "1.5"};
  kl_class c = kl_info(t)->cls;
  unsigned i = pick(g, c == KL_CLASS_FLOAT || c == KL_CLASS_COMPLEX ? 8 : 2);
  if (t == KILN_F8E8M0FNU) i = 1 + pick(g, 2);
  if (t == KILN_F4E2M1FN) i = pick(g, 6);
  unsigned r = begin(g, &v, "constant", 12);
  if (c == KL_CLASS_PRED)
    kl_sb_puts(g->out, i % 2 ? "true" : "false");
  else if (c == KL_CLASS_COMPLEX)
    kl_sbf(g->out, "(%s, -%s)", texts[i], texts[(i + 1) % 8]);
  else
    kl_sb_puts(g->out, t == KILN_S1 && i ? "-1" : texts[i]);
  kl_sb_puts(g->out, ")\n");
  return r;
}

// --- elementwise ----------------------------------------------------------------------------------------------------

static void op_unary(gen *g) {
  static const char *const ints[] = {"abs", "negate", "sign", "not", "popcnt", "count-leading-zeros", "copy"};
  static const char *const floats[] = {"abs",
                                       "negate",
                                       "sign",
                                       "ceil",
                                       "floor",
                                       "round-nearest-afz",
                                       "round-nearest-even",
                                       "exponential",
                                       "log",
                                       "tanh",
                                       "logistic",
                                       "erf",
                                       "sqrt",
                                       "rsqrt",
                                       "real",
                                       "imag",
                                       "copy"};
  static const char *const complexes[] = {"negate", "copy", "abs", "real", "imag"};
  unsigned x = operand(g);
  value v = g->v[x];
  const char *op;
  switch (kl_info(v.t)->cls) {
  case KL_CLASS_PRED: op = chance(g, 80) ? "not" : "copy"; break;
  case KL_CLASS_FLOAT: op = floats[pick(g, KL_COUNT(floats))]; break;
  case KL_CLASS_COMPLEX: {
    unsigned i = pick(g, KL_COUNT(complexes));
    op = complexes[i];
    if (i >= 2) v.t = kl_info(v.t)->part;
    break;
  }
  default: op = ints[pick(g, KL_COUNT(ints))];
  }
  emit(g, &v, op, 1, &x, "");
}

static void op_binary(gen *g) {
  static const char *const ints[] = {"add",
                                     "subtract",
                                     "multiply",
                                     "divide",
                                     "remainder",
                                     "maximum",
                                     "minimum",
                                     "and",
                                     "or",
                                     "xor",
                                     "shift-left",
                                     "shift-right-arithmetic",
                                     "shift-right-logical",
                                     "power"};
  static const char *const floats[] = {"add",     "subtract", "multiply", "divide",   "maximum",
                                       "minimum", "add",      "multiply", "remainder"};
  static const char *const complexes[] = {"add", "subtract", "multiply", "divide"};
  static const char *const preds[] = {"add", "multiply", "and", "or", "xor", "maximum", "minimum"};
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  x[1] = of_type(g, x[0], v.t);
  const char *op;
  switch (kl_info(v.t)->cls) {
  case KL_CLASS_PRED: op = preds[pick(g, KL_COUNT(preds))]; break;
  case KL_CLASS_FLOAT: op = floats[pick(g, KL_COUNT(floats))]; break;
  case KL_CLASS_COMPLEX: op = complexes[pick(g, KL_COUNT(complexes))]; break;
  default: op = ints[pick(g, KL_COUNT(ints))];
  }
  emit(g, &v, op, 2, x, "");
}

static void op_compare(gen *g) {
  static const char *const dirs[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  x[1] = of_type(g, x[0], v.t);
  bool complex = kl_is_complex(v.t), total = kl_is_float(v.t) && chance(g, 20);
  v.t = KILN_PRED;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", direction=%s%s", dirs[pick(g, complex ? 2 : 6)], total ? ", type=TOTALORDER" : "");
  emit(g, &v, "compare", 2, x, attrs);
}

static void op_select(gen *g) {
  unsigned a = operand(g), x[3];
  x[0] = of_type(g, a, KILN_PRED);
  x[1] = a;
  x[2] = of_type(g, a, g->v[a].t);
  emit(g, &g->v[a], "select", 3, x, "");
}

static void op_clamp(gen *g) {
  unsigned a = operand(g), x[3];
  if (kl_is_complex(g->v[a].t) || g->v[a].t == KILN_PRED) return;
  x[0] = chance(g, 50) ? scalar_constant(g, g->v[a].t) : of_type(g, a, g->v[a].t);
  x[1] = a;
  x[2] = of_type(g, a, g->v[a].t);
  emit(g, &g->v[a], "clamp", 3, x, "");
}

static void op_convert(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  v.t = any_dtype(g);
  emit(g, &v, "convert", 1, &a, "");
}

static void op_bitcast_convert(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  if (kl_is_complex(v.t) || v.t == KILN_PRED || v.computed) return;
  for (unsigned tries = 0; tries < 20; tries++) {
    kl_dtype t = any_dtype(g);
    if (kl_is_complex(t) || t == KILN_PRED || kl_info(t)->bits != kl_info(v.t)->bits) continue;
    v.t = t;
    emit(g, &v, "bitcast-convert", 1, &a, "");
    return;
  }
}

// To parts of its elements along a new minor dim, or the minor dim joined to wider elements.
static void op_change_width(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  unsigned bits = kl_info(v.t)->bits;
  if (kl_is_complex(v.t) || v.t == KILN_PRED || v.computed) return;
  for (unsigned tries = 0; tries < 20; tries++) {
    kl_dtype t = any_dtype(g);
    unsigned other = kl_info(t)->bits;
    if (kl_is_complex(t) || t == KILN_PRED || other == bits) continue;
    v = g->v[a];
    v.t = t;
    if (other > bits && (!v.rank || v.dims[v.rank - 1] != other / bits)) continue;
    if (other > bits)
      v.rank--;
    else if (v.rank == MAX_RANK || count(&v) * (bits / other) > MAX_ELEMENTS)
      return;
    else
      v.dims[v.rank++] = bits / other;
    emit(g, &v, "bitcast-convert", 1, &a, "");
    return;
  }
}

static void op_reduce_precision(gen *g) {
  unsigned a = operand(g);
  kl_dtype t = g->v[a].t;
  if (t != KILN_F16 && t != KILN_BF16 && t != KILN_F32 && t != KILN_F64) return;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", exponent_bits=%u, mantissa_bits=%u", 2 + pick(g, kl_info(t)->exp_bits - 1u),
           pick(g, kl_info(t)->man_bits + 1u));
  emit(g, &g->v[a], "reduce-precision", 1, &a, attrs);
}

static void op_complex(gen *g) {
  unsigned a = operand(g), x[2];
  if (g->v[a].t != KILN_F32 && g->v[a].t != KILN_F64) return;
  value v = g->v[a];
  v.t = v.t == KILN_F32 ? KILN_C64 : KILN_C128;
  x[0] = a;
  x[1] = of_type(g, a, g->v[a].t);
  emit(g, &v, "complex", 2, x, "");
}

// --- index transforms ------------------------------------------------------------------------------------------------

static void list(char *text, size_t size, const char *key, uint32_t n, const int64_t *dims) {
  size_t at = (size_t)snprintf(text, size, ", %s={", key);
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, size - at, i ? ",%lld" : "%lld", (long long)dims[i]);
  snprintf(text + at, size - at, "}");
}

static void op_broadcast(gen *g) {
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
  list(attrs, sizeof attrs, "dimensions", g->v[a].rank, dims);
  emit(g, &v, "broadcast", 1, &a, attrs);
}

static void op_reshape(gen *g) {
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

static void op_transpose(gen *g) {
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
  list(attrs, sizeof attrs, "dimensions", v.rank, perm);
  emit(g, &v, "transpose", 1, &a, attrs);
}

static void op_reverse(gen *g) {
  unsigned a = operand(g);
  int64_t dims[MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < g->v[a].rank; d++) {
    if (chance(g, 50)) dims[n++] = d;
  }
  char attrs[128];
  list(attrs, sizeof attrs, "dimensions", n, dims);
  emit(g, &g->v[a], "reverse", 1, &a, attrs);
}

static void op_slice(gen *g) {
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

static void op_pad(gen *g) {
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

static void op_concatenate(gen *g) {
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

static void op_iota(gen *g) {
  value v = g->v[pick(g, g->n)];
  do v.t = any_dtype(g);
  while (v.t == KILN_PRED);
  if (!v.rank) return;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", iota_dimension=%u", pick(g, v.rank));
  emit(g, &v, "iota", 0, NULL, attrs);
}

// --- layouts --------------------------------------------------------------------------------------------------------

// As long as the same memory, in other dims and another layout.
static void op_bitcast(gen *g) {
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
static void op_bitcast_width(gen *g) {
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

// A computation of two layouts, which its caller need not share.
static void op_call(gen *g) {
  unsigned a = operand(g), number = g->calls++;
  value flat = g->v[a], same = g->v[a];
  flat.rank = 1;
  flat.dims[0] = count(&g->v[a]);
  default_layout(&flat);
  bool fusion = chance(g, 50), tuple = chance(g, 40);
  kl_sbf(&g->called, "called%u {\n  x = ", number);
  put_shape_elsewhere(g, &g->called, &same);
  kl_sbf(&g->called, " parameter(0)\n  %sy = ", tuple ? "" : "ROOT ");
  put_shape(&g->called, &flat);
  kl_sb_puts(&g->called, " bitcast(x)\n");
  kl_sb *const out[2] = {&g->called, g->out};
  if (tuple) kl_sb_puts(&g->called, "  ROOT t = ");
  if (tuple) kl_sbf(g->out, "  c%u = ", number);
  for (int i = 0; tuple && i < 2; i++) {
    kl_sb_puts(out[i], "(");
    put_shape(out[i], &flat);
    kl_sb_puts(out[i], ", ");
    put_shape_elsewhere(g, out[i], &same);
    kl_sb_puts(out[i], ")");
  }
  kl_sb_puts(&g->called, tuple ? " tuple(y, x)\n}\n\n" : "}\n\n");
  const char *op = fusion ? "fusion" : "call";
  if (tuple)
    kl_sbf(g->out, " %s(", op);
  else
    begin(g, &flat, op, 0);
  kl_sbf(g->out, fusion ? "v%u), kind=kLoop, calls=called%u\n" : "v%u), to_apply=called%u\n", a, number);
  for (int i = 0; tuple && i < 2; i++) {
    begin(g, i ? &same : &flat, "get-tuple-element", 30);
    kl_sbf(g->out, "c%u), index=%d\n", number, i);
  }
}

// A computation of two scalars for each element.
static void op_map(gen *g) {
  unsigned x[2] = {operand(g)}, number = g->calls++;
  x[1] = of_type(g, x[0], g->v[x[0]].t);
  const char *t = kl_info(g->v[x[0]].t)->name, *op = g->v[x[0]].t == KILN_PRED ? "xor" : "subtract";
  kl_sbf(&g->called, "mapped%u {\n  x = %s[] parameter(0)\n  y = %s[] parameter(1)\n", number, t, t);
  kl_sbf(&g->called, "  z = %s[] %s(x, y)\n  ROOT r = %s[] %s(z, x)\n}\n\n", t, op, t, op);
  int64_t dims[MAX_RANK];
  char attrs[192], call[32];
  for (uint32_t d = 0; d < g->v[x[0]].rank; d++) dims[d] = d;
  list(attrs, sizeof attrs - sizeof call, "dimensions", g->v[x[0]].rank, dims);
  snprintf(call, sizeof call, ", to_apply=mapped%u", number);
  emit(g, &g->v[x[0]], "map", 2, x, strcat(attrs, call));
}

// Some element of an integer or truth, as the number of a branch.
static unsigned branch_number(gen *g) {
  unsigned a = pick(g, g->n);
  kl_dtype t = g->v[a].t;
  if ((!kl_is_int(t) && t != KILN_PRED) || count(&g->v[a]) == 0) return scalar_constant(g, KILN_S32);
  value one = g->v[a], scalar = {.t = t};
  char attrs[256];
  size_t at = (size_t)snprintf(attrs, sizeof attrs, ", slice={");
  for (uint32_t d = 0; d < one.rank; d++, one.dims[d - 1] = 1)
    at += (size_t)snprintf(attrs + at, sizeof attrs - at, "%s[0:1]", d ? ", " : "");
  snprintf(attrs + at, sizeof attrs - at, "}");
  if (one.rank) a = emit(g, &one, "slice", 1, &a, attrs);
  if (one.rank) a = emit(g, &scalar, "reshape", 1, &a, "");
  if (t == KILN_PRED || t == KILN_S32) return a;
  scalar.t = KILN_S32;
  return emit(g, &scalar, "convert", 1, &a, "");
}

// Branches that move one value or another.
static void op_conditional(gen *g) {
  unsigned a = operand(g), x[4] = {branch_number(g)}, number = g->calls++;
  bool truth = g->v[x[0]].t == KILN_PRED;
  unsigned n = truth ? 2 : 1 + pick(g, 3);
  char attrs[128];
  size_t at = (size_t)snprintf(attrs, sizeof attrs,
                               truth ? ", true_computation=branch%u_0, false_computation=branch%u_1"
                                     : ", branch_computations={branch%u_0",
                               number, number);
  value v = g->v[a];
  for (unsigned i = 0; i < n; i++) {
    bool turns = v.rank && chance(g, 50);
    x[1 + i] = of_type(g, a, v.t);
    kl_sbf(&g->called, "branch%u_%u {\n  x = ", number, i);
    put_shape(&g->called, &v);
    kl_sb_puts(&g->called, " parameter(0)\n  ROOT y = ");
    put_shape(&g->called, &v);
    kl_sbf(&g->called, turns ? " reverse(x), dimensions={%u}\n}\n\n" : " copy(x)\n}\n\n", pick(g, v.rank + !v.rank));
    if (i && !truth) at += (size_t)snprintf(attrs + at, sizeof attrs - at, ", branch%u_%u", number, i);
  }
  if (!truth) snprintf(attrs + at, sizeof attrs - at, "}");
  emit(g, &v, "conditional", 1 + n, x, attrs);
}

// --- the module ------------------------------------------------------------------------------------------------------

// The last are for sources that want them.
enum { WHOLE_OPS = 3 };
static void (*const ops[])(gen *) = {
    op_unary,           op_unary,        op_unary,        op_binary,
    op_binary,          op_binary,       op_binary,       op_compare,
    op_select,          op_clamp,        op_convert,      op_convert,
    op_bitcast_convert, op_change_width, op_change_width, op_reduce_precision,
    op_complex,         op_broadcast,    op_broadcast,    op_reshape,
    op_transpose,       op_reverse,      op_slice,        op_pad,
    op_concatenate,     op_iota,         op_bitcast,      op_call,
    op_bitcast_width,   op_map,          op_conditional,
};

static void any_dims(gen *g, value *v) {
  v->rank = pick(g, MAX_RANK + 1);
  int64_t n = 1;
  for (uint32_t d = 0; d < v->rank; d++) {
    int64_t most = MAX_ELEMENTS / n;
    int64_t size = chance(g, 2) ? 0 : 1 + pick(g, chance(g, 30) ? 130 : 12);
    if (size > most) size = 1;
    v->dims[d] = size;
    if (size) n *= size;
  }
}

static void parameters(gen *g) {
  value v = {0};
  any_dims(g, &v);
  unsigned n = 1 + pick(g, 3);
  for (unsigned i = 0; i < n; i++) {
    v.t = any_dtype(g);
    if (i && chance(g, 20)) any_dims(g, &v);
    begin(g, &v, "parameter", 12);
    kl_sbf(g->out, "%u)\n", i);
  }
  g->params = n;
}

static void roots(gen *g, unsigned *root, unsigned *n) {
  bool any_size = chance(g, 30);
  *n = 1;
  root[0] = g->n - 1;
  for (unsigned i = 0; i < g->n && *n < MAX_ROOTS; i++) {
    bool may = any_size || count(&g->v[i]) == count(&g->v[root[0]]);
    if (i != root[0] && may && chance(g, 8)) root[(*n)++] = i;
  }
}

// The roots' shapes; `elsewhere`: in layouts of their own.
static void put_roots(gen *g, kl_sb *b, const unsigned *root, unsigned n, bool elsewhere) {
  for (unsigned i = 0; i < n; i++) {
    if (n > 1) kl_sb_puts(b, i ? ", " : "(");
    if (elsewhere)
      put_buffer(g, b, &g->v[root[i]]);
    else
      put_shape(b, &g->v[root[i]]);
  }
  if (n > 1) kl_sb_putc(b, ')');
}

static void put_header(gen *g, kl_sb *out, const unsigned *root, unsigned n) {
  kl_sb_puts(out, "HloModule random");
  if (chance(g, 25)) {
    kl_sb_puts(out, ", entry_computation_layout={");
    for (unsigned i = 0; i < g->params; i++) {
      kl_sb_puts(out, i ? ", " : "(");
      put_buffer(g, out, &g->v[i]);
    }
    kl_sb_puts(out, ")->");
    put_roots(g, out, root, n, true);
    kl_sb_puts(out, "}");
  }
  kl_sb_puts(out, "\n\n");
}

static void put_entry(gen *g, kl_sb *out, const unsigned *root, unsigned n) {
  kl_sb_puts(out, "ENTRY main {\n");
  for (unsigned i = 0; i < g->params; i++) {
    kl_sbf(out, "  p%u = ", i);
    put_buffer(g, out, &g->v[i]);
    kl_sbf(out, " parameter(%u)\n", i);
  }
  kl_sb_puts(out, "  ROOT fusion = ");
  put_roots(g, out, root, n, true);
  kl_sb_puts(out, " fusion(");
  for (unsigned i = 0; i < g->params; i++) kl_sbf(out, i ? ", p%u" : "p%u", i);
  kl_sb_puts(out, "), kind=kLoop, calls=fused\n}\n");
}

void gen_fusion(gen_source *src, unsigned nops, kl_sb *out) {
  kl_sb body;
  gen g = {.src = src, .out = &body};
  unsigned root[MAX_ROOTS], n;
  kl_sb_init(&body, out->cx);
  kl_sb_init(&g.called, out->cx);
  g.tiles = src->whole && chance(&g, 50);
  parameters(&g);
  for (unsigned i = 0; i < nops && !full(&g); i++) ops[pick(&g, KL_COUNT(ops) - (src->whole ? 0 : WHOLE_OPS))](&g);
  roots(&g, root, &n);
  put_header(&g, out, root, n);
  kl_sb_put(out, (kl_str){g.called.p, g.called.n});
  kl_sb_puts(out, "fused {\n");
  kl_sb_put(out, (kl_str){body.p, body.n});
  kl_sb_puts(out, "  ROOT root = ");
  put_roots(&g, out, root, n, false);
  kl_sb_puts(out, n > 1 ? " tuple(" : " copy(");
  for (unsigned i = 0; i < n; i++) kl_sbf(out, i ? ", v%u" : "v%u", root[i]);
  kl_sb_puts(out, ")\n}\n\n");
  put_entry(&g, out, root, n);
  kl_sb_free(&g.called);
  kl_sb_free(&body);
}

// --- inputs ----------------------------------------------------------------------------------------------------------

static uint64_t wild_bits(kl_dtype t, gen_source *s) {
  static const double special[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   0.5,
                                   2.0,
                                   __builtin_inf(),
                                   -__builtin_inf(),
                                   __builtin_nan(""),
                                   1e-40,
                                   -1e-40,
                                   1e-310,
                                   65504,
                                   448,
                                   57344,
                                   3e38,
                                   1e300,
                                   -128,
                                   255,
                                   2147483648.0,
                                   9.3e18};
  uint64_t r = next(s);
  if (t == KILN_PRED) return r & 1;
  if (!kl_is_float(t)) return r & 3 ? next(s) & kl_int_mask(t) : (r >> 8) % 3 - 1;
  if ((r & 3) == 0) return kl_float_encode(t, special[(r >> 8) % KL_COUNT(special)]);
  if ((r & 3) == 1) return next(s) & kl_int_mask(t);
  return kl_float_encode(t, ((double)(r >> 11) * 0x1p-53 - 0.5) * 16);
}

static uint64_t sane_bits(kl_dtype t, gen_source *s) {
  uint64_t r = next(s);
  if (t == KILN_PRED) return r & 1;
  if (!kl_is_float(t)) return (uint64_t)((int64_t)(r % 41) - (kl_is_signed(t) ? 20 : 0)) & kl_int_mask(t);
  return kl_float_encode(t, ((double)(r >> 11) * 0x1p-53 - (t == KILN_F8E8M0FNU ? 0 : 0.5)) * 8);
}

void gen_fill(uint64_t seed, kl_dtype t, int64_t bytes, bool wild, void *buffer) {
  gen_source s = {.seed = seed};
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  unsigned bits = kl_info(part)->bits;
  unsigned char *p = buffer;
  for (int64_t at = 0; at < bytes;) {
    uint64_t word = 0;
    for (unsigned b = 0; b < (bits < 8 ? 8 : bits); b += bits)
      word |= (wild ? wild_bits(part, &s) : sane_bits(part, &s)) << b;
    memcpy(p + at, &word, bits < 8 ? 1 : bits / 8);
    at += bits < 8 ? 1 : bits / 8;
  }
}

// Drawing, and the pool of values.

#include "impl.h"

uint64_t gen_next(gen_source *s) {
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

unsigned pick(gen *g, unsigned n) {
  return n ? (unsigned)(gen_next(g->src) % n) : 0;
}
bool chance(gen *g, unsigned percent) {
  return pick(g, 100) < percent;
}

// Mostly a recent value, so that operations build on each other.
unsigned operand(gen *g) {
  unsigned recent = g->n < 5 ? g->n : 5;
  return chance(g, 75) ? g->n - 1 - pick(g, recent) : pick(g, g->n);
}

void shuffle(gen *g, uint32_t n, int64_t *v) {
  for (uint32_t i = n; i > 1; i--) {
    uint32_t k = pick(g, i);
    int64_t t = v[i - 1];
    v[i - 1] = v[k], v[k] = t;
  }
}

uint32_t draw_set(gen *g, uint32_t k, uint32_t n, int64_t *out) {
  for (uint32_t i = 0, at = 0; i < n; i++)
    if (pick(g, n - i) < k - at) out[at++] = i;
  return k;
}

int64_t count(const value *v) {
  int64_t n = 1;
  for (uint32_t d = 0; d < v->rank; d++) n *= v->dims[d];
  return n;
}

bool same_dims(const value *a, const value *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    if (a->dims[d] != b->dims[d]) return false;
  }
  return true;
}

// Every type, the usual ones more often.
kl_dtype any_dtype(gen *g) {
  static const kl_dtype usual[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F32, KILN_S32};
  dtype_list all = dtypes_that(kl_is_array_dtype);
  unsigned i = pick(g, (unsigned)all.n + KL_COUNT(usual));
  return i < (unsigned)all.n ? all.at[i] : usual[i - (unsigned)all.n];
}

void default_layout(value *v) {
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

void put_shape(kl_sb *b, const value *v) {
  kl_sb_puts(b, kl_info(v->t)->name);
  kl_sb_putc(b, '[');
  for (uint32_t d = 0; d < v->rank; d++) kl_sbf(b, d ? ",%lld" : "%lld", (long long)v->dims[d]);
  kl_sb_putc(b, ']');
  if (!v->custom) return;
  for (uint32_t d = 0; d < v->rank; d++) kl_sbf(b, d ? ",%u" : "{%u", v->layout[d]);
  kl_sb_putc(b, '}');
}

void put_tuple(kl_sb *b, unsigned n, const value *const *v) {
  kl_sb_putc(b, '(');
  for (unsigned i = 0; i < n; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_shape(b, v[i]);
  }
  kl_sb_putc(b, ')');
}

// The value as another computation may have it.
void put_shape_elsewhere(gen *g, kl_sb *b, const value *v) {
  value other = *v;
  if (chance(g, 15)) any_layout(g, &other, 80);
  put_shape(b, &other);
}

// The same for what is a buffer there.
void put_buffer(gen *g, kl_sb *b, const value *v) {
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
unsigned begin(gen *g, const value *v, const char *op, unsigned percent) {
  g->v[g->n] = *v;
  any_layout(g, &g->v[g->n], percent);
  kl_sbf(g->out, "  v%u = ", g->n);
  put_shape(g->out, &g->v[g->n]);
  kl_sbf(g->out, " %s(", op);
  return g->n++;
}

static bool moves_only(const char *op) {
  static const char *const moves[] = {"broadcast",  "reshape", "transpose",     "reverse",
                                      "slice",      "pad",     "concatenate",   "iota",
                                      "copy",       "gather",  "dynamic-slice", "dynamic-update-slice",
                                      "opt-barrier"};
  for (size_t i = 0; i < KL_COUNT(moves); i++) {
    if (strcmp(op, moves[i]) == 0) return true;
  }
  return false;
}

unsigned emit(gen *g, const value *v, const char *op, unsigned n, const unsigned *operands, const char *attrs) {
  unsigned r = begin(g, v, op, 12);
  g->v[r].computed = kl_is_float(v->t) && !moves_only(op);
  for (unsigned i = 0; i < n; i++) g->v[r].computed |= kl_is_float(v->t) && g->v[operands[i]].computed;
  for (unsigned i = 0; i < n; i++) kl_sbf(g->out, i ? ", v%u" : "v%u", operands[i]);
  kl_sbf(g->out, ")%s\n", attrs);
  return r;
}

void put_results(gen *g, unsigned n, const value *v, const char *op, const char *arguments) {
  const value *all[MAX_ROOTS] = {NULL};
  for (unsigned i = 0; i < n; i++) all[i] = &v[i];
  if (n == 1) {
    begin(g, &v[0], op, 12);
    kl_sbf(g->out, "%s\n", arguments);
    return;
  }
  unsigned t = g->tuples++;
  kl_sbf(g->out, "  t%u = ", t);
  put_tuple(g->out, n, all);
  kl_sbf(g->out, " %s(%s\n", op, arguments);
  for (unsigned i = 0; i < n; i++) {
    begin(g, &v[i], "get-tuple-element", 12);
    kl_sbf(g->out, "t%u), index=%u\n", t, i);
  }
}

bool full(const gen *g) {
  return g->n + 8 >= MAX_VALUES;
}

// A value of type t with the dims of `like`: `like` itself, another one, or a conversion.
unsigned of_type(gen *g, unsigned like, kl_dtype t) {
  for (unsigned tries = 0; tries < 4; tries++) {
    unsigned i = pick(g, g->n);
    if (g->v[i].t == t && same_dims(&g->v[i], &g->v[like])) return i;
  }
  if (g->v[like].t == t) return like;
  value v = g->v[like];
  v.t = t;
  return emit(g, &v, "convert", 1, &like, "");
}

unsigned scalar_constant(gen *g, kl_dtype t) {
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

void put_list(char *text, size_t size, const char *key, uint32_t n, const int64_t *dims) {
  size_t at = (size_t)snprintf(text, size, ", %s={", key);
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, size - at, i ? ",%lld" : "%lld", (long long)dims[i]);
  snprintf(text + at, size - at, "}");
}

unsigned number(gen *g, kl_dtype t, unsigned n) {
  unsigned r = begin(g, &(value){.t = t}, "constant", 0);
  kl_sbf(g->out, "%u)\n", n);
  return r;
}

unsigned scalar_of(gen *g, unsigned from) {
  value one = g->v[from], scalar = {.t = one.t, .computed = one.computed};
  if (!one.rank) return from;
  char attrs[256];
  size_t at = (size_t)snprintf(attrs, sizeof attrs, ", slice={");
  for (uint32_t d = 0; d < one.rank; d++, one.dims[d - 1] = 1)
    at += (size_t)snprintf(attrs + at, sizeof attrs - at, "%s[0:1]", d ? ", " : "");
  snprintf(attrs + at, sizeof attrs - at, "}");
  from = emit(g, &one, "slice", 1, &from, attrs);
  return emit(g, &scalar, "reshape", 1, &from, "");
}

unsigned parameter(gen *g, const value *v) {
  unsigned r = begin(g, v, g->packed ? "get-tuple-element" : "parameter", 12);
  g->v[r].computed = false;
  kl_sbf(g->out, g->packed ? "p), index=%u\n" : "%u)\n", g->params);
  g->param[g->params++] = r;
  return r;
}

static unsigned reshaped(gen *g, unsigned a, const value *v) {
  value w = *v;
  w.t = g->v[a].t;
  if (!same_dims(&g->v[a], v)) a = emit(g, &w, "reshape", 1, &a, "");
  return of_type(g, a, v->t);
}

unsigned made(gen *g, const value *v) {
  int64_t n = count(v);
  char attrs[64];
  for (unsigned tries = 0; tries < 6; tries++) {
    unsigned a = pick(g, g->n);
    if (count(&g->v[a]) == n && chance(g, 60)) return reshaped(g, a, v);
  }
  if (!g->depth && g->params < MAX_PARAMS && chance(g, 70)) return parameter(g, v);
  if (v->rank && v->t != KILN_PRED && chance(g, 50)) {
    snprintf(attrs, sizeof attrs, ", iota_dimension=%u", pick(g, v->rank));
    return emit(g, v, "iota", 0, NULL, attrs);
  }
  unsigned a = scalar_constant(g, v->t);
  return v->rank ? emit(g, v, "broadcast", 1, &a, ", dimensions={}") : a;
}

// Dots and convolutions: random modules on the host and on the simulator against the evaluator, with the same bits on
// both; their PTX through ptxas. Any dimension numbers, types, layouts, windows and groups, what is made of operands
// before and of results behind.
//
// 24 (support/share.h); KILN_FUSION_SEED sets one seed to run alone and print.

#include "counts.h"
#include "harness.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/bits.h"
#include "support/draw.h"
#include "support/gpu_sim.h"
#include "support/share.h"
#include "support/suite.h"

#include <kiln/cuda.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct types {
  const char *lhs, *rhs, *out;
} types;
static const types type_cases[] = {
    {"f32", "f32", "f32"},         {"f32", "f32", "f32"},        {"bf16", "bf16", "bf16"}, {"f16", "f16", "f32"},
    {"f64", "f64", "f64"},         {"f32", "f32", "f64"},        {"bf16", "f32", "f32"},   {"f16", "f16", "f16"},
    {"s8", "s8", "s32"},           {"u8", "s8", "s32"},          {"s8", "s8", "s8"},       {"s4", "u4", "s32"},
    {"s32", "s32", "s32"},         {"u64", "u64", "u64"},        {"s16", "s16", "s64"},    {"pred", "pred", "pred"},
    {"c64", "c64", "c64"},         {"c128", "c128", "c128"},     {"c64", "c64", "c128"},   {"s8", "s8", "f32"},
    {"f8e4m3fn", "f8e5m2", "f32"}, {"f8e4m3", "f8e4m3", "bf16"}, {"u1", "s1", "u1"},       {"s2", "s2", "s16"},
    {"f4e2m1fn", "f8e3m4", "f16"}, {"s32", "s32", "pred"},       {"u16", "u16", "u16"},
};

enum { MOST = 8 };
typedef struct shape {
  uint32_t rank;
  int64_t dims[MOST];
  char layout[3 * MOST]; // with its braces; empty: the default
} shape;

static int64_t count_of(const shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dims[d];
  return n;
}

static void shuffle(uint32_t n, uint32_t *p) {
  for (uint32_t i = 0; i < n; i++) p[i] = i;
  for (uint32_t i = n; i-- > 1;) {
    uint32_t other = below(i + 1), t = p[i];
    p[i] = p[other];
    p[other] = t;
  }
}

static void draw_layout(shape *s) {
  uint32_t order[MOST];
  *s->layout = 0;
  if (s->rank < 2 || chance(60)) return;
  shuffle(s->rank, order);
  char *at = s->layout;
  for (uint32_t d = 0; d < s->rank; d++) at += sprintf(at, "%c%u", d ? ',' : '{', order[d]);
  strcpy(at, "}");
}

static void put_shape(kl_sb *b, const char *type, const shape *s) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0; d < s->rank; d++) kl_sbf(b, "%s%lld", d ? "," : "", (long long)s->dims[d]);
  kl_sbf(b, "]%s", s->layout);
}

static void put_list(kl_sb *b, const char *name, uint32_t n, const uint32_t *p) {
  if (n == 0) return;
  kl_sbf(b, ", %s={", name);
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, "%s%u", i ? "," : "", p[i]);
  kl_sb_puts(b, "}");
}

// --- dot ------------------------------------------------------------------------------------------------------------

typedef struct contraction {
  shape lhs, rhs, out;
  kl_sb attributes;
  const char *op;
} contraction;

// One side: where its batch, contracted and other dims stand.
static void draw_side(shape *s, uint32_t nb, const int64_t *b, uint32_t nk, const int64_t *k, uint32_t *batch,
                      uint32_t *sums, shape *out) {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33, 64};
  uint32_t order[MOST], nfree = below(3);
  s->rank = nb + nk + nfree;
  shuffle(s->rank, order);
  for (uint32_t i = 0; i < nb; i++) s->dims[batch[i] = order[i]] = b[i];
  for (uint32_t i = 0; i < nk; i++) s->dims[sums[i] = order[nb + i]] = k[i];
  bool is_free[MOST] = {false};
  for (uint32_t i = nb + nk; i < s->rank; i++) is_free[order[i]] = true;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!is_free[d]) continue;
    s->dims[d] = extents[below(sizeof extents / sizeof *extents)];
    if (chance(3)) s->dims[d] = 0;
    out->dims[out->rank++] = s->dims[d];
  }
}

static void draw_dot(contraction *c) {
  static const int64_t sums[] = {1, 2, 3, 5, 8, 16, 17, 32, 40};
  uint32_t nb = chance(60) ? 0 : 1 + below(2), nk = chance(8) ? 0 : 1 + below(2), list[4][MOST];
  int64_t b[2] = {0}, k[2] = {0};
  for (uint32_t i = 0; i < nb; i++) b[i] = 1 + below(4);
  for (uint32_t i = 0; i < nk; i++) k[i] = sums[below(sizeof sums / sizeof *sums)];
  if (nk == 1 && chance(25)) k[0] = 250 + below(600);
  if (nk && chance(3)) k[0] = 0;
  c->out.rank = nb;
  memcpy(c->out.dims, b, sizeof b);
  draw_side(&c->lhs, nb, b, nk, k, list[0], list[1], &c->out);
  draw_side(&c->rhs, nb, b, nk, k, list[2], list[3], &c->out);
  put_list(&c->attributes, "lhs_batch_dims", nb, list[0]);
  put_list(&c->attributes, "rhs_batch_dims", nb, list[2]);
  put_list(&c->attributes, "lhs_contracting_dims", nk, list[1]);
  put_list(&c->attributes, "rhs_contracting_dims", nk, list[3]);
  c->op = "dot";
}

// --- convolution ----------------------------------------------------------------------------------------------------

typedef struct window {
  int64_t size, stride, low, high, lhs, rhs;
  bool reversed;
} window;

static void put_window(kl_sb *b, uint32_t n, const window *w) {
#define EACH_DIM(name, ...)                                                                                            \
  kl_sb_puts(b, name);                                                                                                 \
  for (uint32_t i = 0; i < n; i++) {                                                                                   \
    if (i) kl_sb_puts(b, "x");                                                                                         \
    kl_sbf(b, __VA_ARGS__);                                                                                            \
  }
  if (n == 0) return;
  EACH_DIM(", window={size=", "%lld", (long long)w[i].size)
  EACH_DIM(" stride=", "%lld", (long long)w[i].stride)
  EACH_DIM(" pad=", "%lld_%lld", (long long)w[i].low, (long long)w[i].high)
  EACH_DIM(" lhs_dilate=", "%lld", (long long)w[i].lhs)
  EACH_DIM(" rhs_dilate=", "%lld", (long long)w[i].rhs)
  EACH_DIM(" rhs_reversal=", "%d", w[i].reversed)
  kl_sb_puts(b, "}");
#undef EACH_DIM
}

// Dims in random order; `names` are those of the first two, and digits of the others.
static void put_labels(kl_sb *b, uint32_t n, const char *names, const int64_t *extents, shape *s) {
  uint32_t order[MOST];
  s->rank = n + 2;
  shuffle(s->rank, order);
  for (uint32_t d = 0; d < s->rank; d++) {
    s->dims[d] = extents[order[d]];
    kl_sbf(b, "%c", order[d] < 2 ? names[order[d]] : (char)('0' + order[d] - 2));
  }
}

static void draw_convolution(contraction *c) {
  uint32_t n = chance(10) ? 0 : 1 + below(3);
  int64_t groups = chance(70) ? 1 : 1 + below(3), batch = 1 + below(3), channels = 1 + below(5);
  int64_t features = groups * (1 + (int64_t)below(6));
  bool by_batch = groups > 1 && chance(40);
  int64_t in[MOST] = {by_batch ? batch * groups : batch, by_batch ? channels : channels * groups};
  int64_t kernel[MOST] = {channels, features}, out[MOST] = {batch, features};
  window w[3];
  for (uint32_t i = 0; i < n; i++) {
    w[i] = (window){1 + below(4), 1 + below(3), below(3), below(3), chance(75) ? 1 : 2, chance(75) ? 1 : 2, chance(20)};
    if (chance(10)) w[i].low = -1;
    in[2 + i] = 2 + below(n > 1 ? 7 : 20);
    kernel[2 + i] = w[i].size;
    int64_t padded = (in[2 + i] - 1) * w[i].lhs + 1 + w[i].low + w[i].high, reach = (w[i].size - 1) * w[i].rhs + 1;
    out[2 + i] = padded < reach ? 0 : (padded - reach) / w[i].stride + 1;
  }
  put_window(&c->attributes, n, w);
  kl_sb_puts(&c->attributes, ", dim_labels=");
  put_labels(&c->attributes, n, "bf", in, &c->lhs);
  kl_sb_puts(&c->attributes, "_");
  put_labels(&c->attributes, n, "io", kernel, &c->rhs);
  kl_sb_puts(&c->attributes, "->");
  put_labels(&c->attributes, n, "bf", out, &c->out);
  if (groups > 1)
    kl_sbf(&c->attributes, ", %s=%lld", by_batch ? "batch_group_count" : "feature_group_count", (long long)groups);
  c->op = "convolution";
}

// --- modules --------------------------------------------------------------------------------------------------------

static void put_line(kl_sb *b, const char *name, const char *type, const shape *s, const char *what) {
  kl_sbf(b, "  %s = ", name);
  put_shape(b, type, s);
  kl_sbf(b, " %s\n", what);
}

static void put_transposed(kl_sb *b, const char *type, const shape *s) {
  uint32_t order[MOST];
  shape t = {.rank = s->rank};
  shuffle(s->rank, order);
  for (uint32_t d = 0; d < s->rank; d++) t.dims[d] = s->dims[order[d]];
  kl_sb_puts(b, "  ROOT q = ");
  put_shape(b, type, &t);
  kl_sb_puts(b, " transpose(d)");
  put_list(b, "dimensions", s->rank, order);
  kl_sb_puts(b, s->rank ? "\n" : ", dimensions={}\n");
}

// Each dim as two, these in another order, and all in a row: as heads of attention are put behind one another.
static void put_split(kl_sb *b, const char *type, const shape *s) {
  shape two = {.rank = 0}, t, flat = {.rank = 1, .dims = {count_of(s)}};
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t low = 1 + below(4);
    if (two.rank + s->rank - d >= MOST || s->dims[d] % low) low = 1;
    if (low > 1) two.dims[two.rank++] = s->dims[d] / low;
    two.dims[two.rank++] = low > 1 ? low : s->dims[d];
  }
  uint32_t order[MOST];
  shuffle(two.rank, order);
  t.rank = two.rank;
  *t.layout = 0;
  for (uint32_t d = 0; d < two.rank; d++) t.dims[d] = two.dims[order[d]];
  put_line(b, "s", type, &two, "reshape(d)");
  kl_sb_puts(b, "  t = ");
  put_shape(b, type, &t);
  kl_sb_puts(b, " transpose(s)");
  put_list(b, "dimensions", t.rank, order);
  kl_sb_puts(b, t.rank ? "\n  ROOT" : ", dimensions={}\n  ROOT");
  put_line(b, "q", type, chance(50) ? &flat : &t, "reshape(t)");
}

static bool is_number(const char *type) {
  return strcmp(type, "pred") && strcmp(type, "u1") && strcmp(type, "s1");
}

// Operands of narrow floats in blocks that share a scale.
static void put_scaled(kl_sb *b, unsigned number) {
  static const char *const operands[] = {"f8e4m3fn", "f8e5m2", "f4e2m1fn", "bf16", "f32"};
  static const char *const scales[] = {"f8e8m0fnu", "f8e4m3fn", "bf16"};
  const char *t = operands[below(5)], *u = operands[below(3)], *s = scales[below(3)];
  uint32_t m = 1 + below(40), n = 1 + below(40), blocks = 1 + below(4), k = blocks * (1 + below(20));
  kl_sbf(b, "HloModule m%u\nENTRY e {\n  x = %s[%u,%u] parameter(0)\n  y = %s[%u,%u] parameter(1)\n", number, t, m, k,
         u, k, n);
  kl_sbf(b, "  s = %s[%u,%u] parameter(2)\n  u = %s[%u,%u] parameter(3)\n", s, chance(20) ? 1 : m, blocks, s, blocks,
         n);
  kl_sbf(b, "  ROOT d = %s[%u,%u] scaled-dot(x, y, s, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
         chance(50) ? "f32" : "bf16", m, n);
}

static void put_module(kl_sb *b, unsigned number) {
  if (chance(12)) return put_scaled(b, number);
  contraction c = {.op = NULL};
  kl_sb_init(&c.attributes, b->cx);
  types t = type_cases[(number + below(4)) % KL_COUNT(type_cases)];
  do {
    kl_sb_free(&c.attributes);
    kl_sb_init(&c.attributes, b->cx);
    kl_sb_puts(&c.attributes, "");
    c.lhs.rank = c.rhs.rank = c.out.rank = 0;
    (chance(65) ? draw_dot : draw_convolution)(&c);
  } while (count_of(&c.lhs) > 30000 || count_of(&c.rhs) > 30000 || count_of(&c.out) > 6000);
  draw_layout(&c.lhs);
  draw_layout(&c.rhs);
  draw_layout(&c.out);
  kl_sbf(b, "HloModule m%u\nENTRY e {\n", number);
  put_line(b, "x", t.lhs, &c.lhs, "parameter(0)");
  put_line(b, "y", t.rhs, &c.rhs, "parameter(1)");
  uint32_t before = below(3), behind = below(5);
  if (before == 0 && is_number(t.lhs)) put_line(b, "xn", t.lhs, &c.lhs, "negate(x)");
  if (before == 1 && is_number(t.rhs)) put_line(b, "yn", t.rhs, &c.rhs, "add(y, y)");
  kl_sb_puts(b, behind ? "  " : "  ROOT ");
  kl_sb_puts(b, "d = ");
  put_shape(b, t.out, &c.out);
  kl_sbf(b, " %s(%s, %s)%s\n", c.op, before == 0 && is_number(t.lhs) ? "xn" : "x",
         before == 1 && is_number(t.rhs) ? "yn" : "y", c.attributes.n ? c.attributes.p : "");
  if (behind == 1) {
    put_line(b, "z", t.out, &c.out, "parameter(2)");
    kl_sb_puts(b, "  ROOT");
    put_line(b, "q", t.out, &c.out, is_number(t.out) ? "add(d, z)" : "or(d, z)");
  } else if (behind == 2) {
    put_transposed(b, t.out, &c.out);
  } else if (behind == 4) {
    put_split(b, t.out, &c.out);
  } else if (behind == 3) {
    shape whole = c.out;
    memmove(whole.dims + 1, whole.dims, whole.rank * sizeof *whole.dims);
    whole.dims[0] = 2;
    whole.rank++;
    *whole.layout = 0;
    kl_sb_puts(b, "  w = ");
    put_shape(b, t.out, &whole);
    kl_sb_puts(b, " broadcast(d)");
    uint32_t dims[MOST];
    for (uint32_t i = 0; i < c.out.rank; i++) dims[i] = i + 1;
    put_list(b, "dimensions", c.out.rank, dims);
    kl_sb_puts(b, c.out.rank ? "\n  ROOT q = (" : ", dimensions={}\n  ROOT q = (");
    put_shape(b, t.out, &whole);
    kl_sb_puts(b, ", ");
    put_shape(b, t.out, &c.out);
    kl_sb_puts(b, ") tuple(w, d)\n");
  }
  kl_sb_puts(b, "}\n");
  kl_sb_free(&c.attributes);
}

static unsigned all, tiled;

static void compare(const kiln_module *m, void *const *want, void *const *got, const char *what, const char *text) {
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    kiln_array_type t;
    ck_assert(kiln_module_result_leaf_type(m, i, &t));
    EXPECT(same_bits(t.dtype, want[i], got[i], (size_t)kiln_module_result_leaf_bytes(m, i)),
           "result %zu of %s has other bits than the evaluator's\n%s", i, what, text);
  }
}

static const kl_strategy ways[] = {{.chooser = "tiled contraction", .split = 1},
                                   {.chooser = "tiled contraction", .split = 2},
                                   {.chooser = "contraction of few rows", .split = 1},
                                   {.chooser = "contraction of few rows", .split = 2},
                                   {.chooser = "contraction", .split = 2}};

static bool is_compiled(kiln_context *cx, const kiln_module *m, unsigned target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[target]};
  kiln_artifact *a = NULL;
  kiln_status st = kl_compile_as(cx, m, &p, &strategy, &a);
  kiln_artifact_destroy(&a);
  if (st != KILN_OK && st != KILN_E_UNSUPPORTED) give_up(0, "compiling", cx, "");
  if (st != KILN_OK) kiln_diagnostics_clear(cx);
  return st == KILN_OK;
}

// The evaluator has the order from the graph, as kernels do: of exact operands the bits are equal.
typedef struct evaluated {
  void *in[MOST], *want[MOST], *got[MOST];
} evaluated;

static void evaluate(kiln_context *cx, const kiln_module *m, const char *text, evaluated *e) {
  *e = (evaluated){.in = {NULL}};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    kiln_array_type t;
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    ck_assert(kiln_module_parameter_leaf_type(m, i, &t));
    e->in[i] = aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15);
    gen_fill((unsigned)i, t.dtype, bytes, false, e->in[i]);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    size_t room = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    e->want[i] = aligned_alloc(16, room);
    e->got[i] = aligned_alloc(16, room);
  }
  if (kiln_module_eval(cx, m, (const void *const *)e->in, e->want, NULL) != KILN_OK) give_up(0, "eval", cx, text);
}

static void evaluated_free(evaluated *e) {
  for (size_t i = 0; i < MOST; i++) free(e->in[i]), free(e->want[i]), free(e->got[i]);
}

static void check_bits(kiln_context *cx, const kiln_module *m, unsigned target, const char *text) {
  evaluated e;
  evaluate(cx, m, text, &e);
  run_on(cx, m, HOST, 2, 0, (const void *const *)e.in, e.got, text);
  compare(m, e.want, e.got, "the host", text);
  for (size_t i = 0; i < KL_COUNT(ways); i++) {
    strategy = ways[i];
    if (!is_compiled(cx, m, target)) continue;
    run_on(cx, m, target, 1, 0, (const void *const *)e.in, e.got, text);
    compare(m, e.want, e.got, ways[i].chooser, text);
    tiled += i == 0;
  }
  strategy = (kl_strategy){0};
  evaluated_free(&e);
}

static void one(kiln_context *cx, unsigned number, batch *batches, bool print) {
  kl_sb text;
  kl_sb_init(&text, cx);
  seed = number * 0x9e3779b97f4a7c15ull;
  put_module(&text, number);
  if (print) printf("# %s", text.p);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "contract.hlo", text.p, text.n, &m) != KILN_OK) give_up(number, "parse", cx, text.p);
  unsigned t = number % TARGETS;
  strategy = (kl_strategy){0}; // whatever failed before
  run_both_and_check(cx, m, t, number, text.p);
  check_bits(cx, m, t, text.p);
  all++;
  strategy = ways[number % KL_COUNT(ways)];
  if (!is_compiled(cx, m, t)) strategy = (kl_strategy){0};
  batch_add(batches, t, cx, m, number, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}

enum { SLICES = 10 };

START_TEST(random_contractions) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), batches, true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : share_of(24); s < n; s += SLICES)
    one(cx, (unsigned)s, batches, false);
  batches_free(batches);
  strategy = (kl_strategy){0};
  kiln_context_destroy(&cx);
}
END_TEST

// Of a tile's kernel for sums of one leaf, all code counted, so many of 100 instructions of SASS are products at least.
typedef struct dense {
  const char *type, *target;
  unsigned rows, share;
} dense;
static const dense dense_cases[] = {
    {"f32", "sm_80", 2048, 70}, {"f32", "sm_90", 2048, 70},  {"f32", "sm_100", 2048, 70},
    {"f32", "sm_90", 512, 55},  {"bf16", "sm_90", 2048, 75}, {"f32", "sm_75", 2048, 70},
};

START_TEST(products_are_most_of_the_code) {
  const dense *d = &dense_cases[_i];
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  char text[600];
  sprintf(text,
          "HloModule m\nENTRY e {\n x = %s[%u,256] parameter(0)\n y = %s[256,%u] parameter(1)\n ROOT d = %s[%u,%u] "
          "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
          d->type, d->rows, d->type, d->rows, d->type, d->rows, d->rows);
  kiln_compile_params p = {.struct_size = sizeof p, .target = d->target};
  if (kiln_module_parse(cx, "m", text, strlen(text), &m) != KILN_OK) give_up(0, "parse", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, d->target, cx, text);
  size_t size;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  unsigned products = occurrences(ptx, "fma.rn");
  ck_assert_uint_ge(products, 256);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, size, d->target);
    printf("# %s, %u rows, %s: %u products of %ld instructions\n", d->type, d->rows, d->target, products, r.sass);
    EXPECT(r.ok && r.spill_stores == 0 && 100 * products >= d->share * (unsigned)r.sass,
           "%s: %u products of %ld instructions, %d bytes spilled", d->target, products, r.sass, r.spill_stores);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// Sizes that no tile divides, rows that no access of 16 bytes is aligned to: of 100 instructions of SASS that a warp
// issues in the main loop 60 are products at least, and its loads touch no more than twice the sectors that their bytes
// are, its shared memory takes as good as no pass more. In a clock a multiprocessor passes over shared memory once,
// issues four instructions, and begins two products of f64: passes take no longer than what is issued, or products of
// f64. Where there is no tile, as of a matrix and a vector, memory is the limit: for a product and what it reads there
// are no more than 5 instructions.
typedef struct odd {
  const char *type, *lhs, *rhs, *out, *what;
  bool no_tile;
} odd;
#define PLAIN                     "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
#define TURNED                    "dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}"
#define WINDOW(size, stride, pad) "convolution(x, y), window={size=" size " stride=" stride " pad=" pad "}, "
static const odd odd_cases[] = {
    {"f32", "[512,512]", "[512,512]", "f32[512,512]", PLAIN},
    {"f32", "[512,777]", "[777,333]", "f32[512,333]", PLAIN},
    {"f32", "[777,512]", "[333,777]", "f32[512,333]{0,1}", TURNED},
    {"f32", "[640,333]", "[333,1111]", "f32[640,1111]", PLAIN},
    {"f32", "[768,768]", "[768,768]", "f32[768,768]", PLAIN},
    {"f32", "[876,780]", "[2496,780]", "f32[876,2496]",
     "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"}, // of registers for 4 blocks some are spilled
    {"f32", "[1023,1023]", "[1023,1023]", "f32[1023,1023]", PLAIN},
    {"f32", "[1023,1023]", "[1023,1023]", "f32[1023,1023]", TURNED},
    {"f32", "[513,1025]", "[1025,769]", "f32[513,769]", PLAIN},
    {"f32", "[4095,4095]", "[4095,4095]", "f32[4095,4095]", PLAIN},
    {"f32", "[65537,65]", "[65,33]", "f32[65537,33]", PLAIN},
    {"f32", "[33,4097]", "[4097,4097]", "f32[33,4097]", PLAIN},
    {"f32", "[7,129,301]", "[7,301,97]", "f32[7,129,97]",
     "dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"},
    {"f16", "[1023,1023]", "[1023,1023]", "f32[1023,1023]", PLAIN},
    {"bf16", "[1025,513]", "[769,1025]", "bf16[513,769]", TURNED},
    {"f64", "[513,1025]", "[1025,769]", "f64[513,769]", PLAIN},
    {"c64", "[513,1025]", "[1025,769]", "c64[513,769]", PLAIN},
    {"f32", "[8,224,224,3]", "[7,7,3,64]", "f32[8,112,112,64]",
     WINDOW("7x7", "2x2", "3_3x3_3") "dim_labels=b01f_01io->b01f"},
    {"f32", "[8,56,56,63]", "[3,3,63,63]", "f32[8,56,56,63]",
     WINDOW("3x3", "1x1", "1_1x1_1") "dim_labels=b01f_01io->b01f"},
    {"f32", "[1,4097]", "[4097,4097]", "f32[1,4097]", PLAIN, true},
    {"f32", "[4097,4097]", "[4097,1]", "f32[4097,1]", PLAIN, true},
    {"f32", "[7,4097]", "[4097,4095]", "f32[7,4095]", PLAIN, true},
};

// Arrays of shared memory follow each other: the first, or the one behind it.
static unsigned shared_slot(const char *plan, unsigned which) {
  const char *at = strstr(plan, ": shared ");
  while (at && at > plan && at[-1] != 's') at--;
  ck_assert_msg(at != NULL, "nothing is shared");
  return (unsigned)strtoul(at, NULL, 10) + which;
}

// Of one block, in clocks of a multiprocessor; `share` of its instructions are products.
static void check_passes(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, double share,
                         const char *text) {
  kiln_profile_info all = {.struct_size = 0};
  if (counts_profile(cx, m, a, 1, &all) != KILN_OK) give_up(0, "profile", cx, text);
  double wide = (double)all.warps[KILN_CLASS_F64_FMA], products = wide + (double)all.warps[KILN_CLASS_F32_FMA];
  double clocks = wide / 2 > products / share / 4 ? wide / 2 : products / share / 4;
  uint64_t passes =
      all.accesses[KILN_ACCESS_SHARED_LOAD].wavefronts + all.accesses[KILN_ACCESS_SHARED_STORE].wavefronts;
  printf("# %llu passes, %.0f clocks of products\n", (unsigned long long)passes, clocks);
  EXPECT(products > 0 && (double)passes <= clocks, "%llu passes, %.0f clocks of products\n%s",
         (unsigned long long)passes, clocks, text);
}

static unsigned sectors_beyond(const char *plan, const char *unit, unsigned slot) {
  char line[32], of[64];
  unsigned long long requests, there, least;
  snprintf(line, sizeof line, "\n  s%u: ", slot);
  snprintf(of, sizeof of, " requests, %%llu %s of %%llu", unit);
  for (const char *p = plan; (p = strstr(p, line)); p++) {
    const char *at = p + strlen(line);
    if (strncmp(at, "about ", 6) == 0) at += 6;
    const char *rest = strchr(at, ' ');
    if (sscanf(at, "%llu", &requests) == 1 && rest && sscanf(rest, of, &there, &least) == 2 && least)
      return (unsigned)(100 * there / least);
  }
  return UINT_MAX;
}

START_TEST(odd_sizes_are_mostly_products) {
  const odd *d = &odd_cases[_i];
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  char text[800];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n x = %s%s parameter(0)\n y = %s%s parameter(1)\n ROOT d = %s %s\n}\n", d->type,
           d->lhs, d->type, d->rhs, d->out, d->what);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .keep = KILN_KEEP_PLAN};
  if (kiln_module_parse(cx, "m", text, strlen(text), &m) != KILN_OK) give_up(0, "parse", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compile", cx, text);
  size_t size;
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, &size);
  for (unsigned slot = 0; slot < 2 && !d->no_tile; slot++) {
    unsigned shared = shared_slot(plan, slot);
    unsigned sectors = sectors_beyond(plan, "sectors", slot), passes = sectors_beyond(plan, "wavefronts", shared);
    EXPECT(sectors <= 200, "s%u: %u %% of the least sectors\n%s", slot, sectors, text);
    EXPECT(passes <= 112, "s%u: %u %% of the least passes\n%s", shared, passes, text);
  }
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, size, "sm_90");
    printf("# %s%s by %s: %ld products of %ld instructions in the loop\n", d->type, d->lhs, d->rhs, r.products, r.loop);
    EXPECT(r.ok && r.spill_stores == 0 && r.products >= (d->no_tile ? 4 : 192) &&
               100 * r.products >= (d->no_tile ? 20 : 60) * r.loop,
           "%ld products of %ld instructions in the loop, %d bytes spilled\n%s", r.products, r.loop, r.spill_stores,
           text);
    if (!d->no_tile) check_passes(cx, m, a, (double)r.products / (double)r.loop, text);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// A GPU of one multiprocessor has the tile that leaves least over: of each size one, its grid and threads, and the
// other way round where columns lie together. Rows and columns are fewer than tiles have, and leaves several.
typedef struct tile_case {
  const char *type, *layout;
  int64_t rows, columns, pairs;
  uint32_t grid, block;
} tile_case;
static const tile_case tile_cases[] = {
    {"f32", "", 127, 125, 300, 1, 256},     {"f32", "", 63, 127, 37, 1, 128},      {"f32", "", 126, 63, 300, 2, 64},
    {"f64", "", 63, 127, 300, 1, 256},      {"bf16", "", 31, 127, 300, 1, 128},    {"f32", "", 63, 63, 300, 1, 128},
    {"c64", "", 47, 63, 270, 3, 64},        {"f32", "{0,1}", 127, 31, 77, 1, 128}, {"f64", "{0,1}", 63, 32, 20, 1, 128},
    {"f32", "{0,1}", 125, 127, 40, 1, 256},
};

START_TEST(tiles_of_each_size) {
  const tile_case *d = &tile_cases[_i];
  const kiln_device_info one = {.struct_size = sizeof one, .multiprocessors = 1};
  const kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .device = &one};
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  char text[600];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n x = %s[%lld,%lld] parameter(0)\n y = %s[%lld,%lld] parameter(1)\n ROOT d = "
           "%s[%lld,%lld]%s " PLAIN "\n}\n",
           d->type, (long long)d->rows, (long long)d->pairs, d->type, (long long)d->pairs, (long long)d->columns,
           d->type, (long long)d->rows, (long long)d->columns, d->layout);
  if (kiln_module_parse(cx, "m", text, strlen(text), &m) != KILN_OK) give_up(0, "parse", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compile", cx, text);
  const kiln_launch *l = kiln_artifact_manifest(a)->launches;
  EXPECT(l->grid[0] == d->grid && l->block[0] == d->block, "%u blocks of %u threads\n%s", l->grid[0], l->block[0],
         text);
  evaluated e;
  evaluate(cx, m, text, &e);
  gpu_sim_run(cx, a, (const void *const *)e.in, e.got, 0);
  compare(m, e.want, e.got, "the simulator", text);
  evaluated_free(&e);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// Sums of integers, whose order does not show, have several blocks for an element where elements are few.
START_TEST(integers_are_cut) {
  static const char *const cases[][2] = {{"s32[5,4097]", "s32[4097,129]"}, {"s32[65,4097]", "s32[4097,129]"}};
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb text;
  kl_sb_init(&text, cx);
  kl_sbf(&text, "HloModule m\nENTRY e {\n x = %s parameter(0)\n y = %s parameter(1)\n ROOT d = s32[%s,129] %s\n}\n",
         cases[_i][0], cases[_i][1], _i ? "65" : "5", PLAIN);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .keep = KILN_KEEP_PLAN};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  if (kiln_module_parse(cx, "m", text.p, text.n, &m) != KILN_OK) give_up(0, "parse", cx, text.p);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compile", cx, text.p);
  size_t size;
  EXPECT(strstr(kiln_artifact_text(a, KILN_TEXT_PLAN, &size), "block leaf < 17"), "one leaf\n%s", text.p);
  check_bits(cx, m, 0, text.p);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}
END_TEST

// Few rows, or columns, of a large operand: leaves side by side in a block, in rounds of which the last is short, or in
// blocks of their own; no more than 1.1 times the least sectors of the large operand.
static const struct {
  const char *lhs, *rhs, *out, *numbers;
  unsigned large; // operand
  int64_t blocks, split;
} few_cases[] = {
    {"bf16[2304]", "bf16[2304,160]", "bf16[160]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", 1, 5, 1},
    {"bf16[2304]", "bf16[2304,160]", "bf16[160]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", 1, 45, 2},
    {"f32[96,1056]", "f32[1056]", "f32[96]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", 0, 3, 1},
    {"bf16[3,7,288]", "bf16[3,64,288]", "f32[3,7,64]",
     "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}", 1, 6, 1},
    {"s8[5,544]", "s8[544,128]", "s32[5,128]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", 1, 4, 1},
};

START_TEST(few_rows) {
  kiln_context *cx = kiln_context_create(NULL);
  char text[600], grid[32];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n x = %s parameter(0)\n y = %s parameter(1)\n ROOT d = %s dot(x, y), %s\n}\n",
           few_cases[_i].lhs, few_cases[_i].rhs, few_cases[_i].out, few_cases[_i].numbers);
  snprintf(grid, sizeof grid, "grid %lld (", (long long)few_cases[_i].blocks);
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[_i % TARGETS], .keep = KILN_KEEP_PLAN};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  if (kiln_module_parse(cx, "m", text, strlen(text), &m) != KILN_OK) give_up(0, "parse", cx, text);
  strategy = (kl_strategy){.chooser = "contraction of few rows", .split = few_cases[_i].split};
  if (kl_compile_as(cx, m, &p, &strategy, &a) != KILN_OK) give_up(0, "compile", cx, text);
  strategy = (kl_strategy){0};
  size_t size;
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, &size);
  unsigned sectors = sectors_beyond(plan, "sectors", few_cases[_i].large);
  EXPECT(strstr(plan, grid), "not %s\n%s", grid, plan);
  EXPECT(sectors <= 110, "%u %% of the least sectors\n%s", sectors, text);
  check_bits(cx, m, _i % TARGETS, text);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// Nobody knows where a constant will lie while sizes of tiles are chosen: that was read behind the slots.
START_TEST(constants_are_multiplied) {
  static const char text[] =
      "HloModule m\nENTRY e {\n x = f32[7,500] parameter(0)\n y = f32[7,3] constant({{1,2,3},{4,5,6},{7,8,9},{1,2,3},"
      "{4,5,7},{7,8,9},{0,1,5}})\n ROOT d = f32[3,500] dot(y, x), lhs_contracting_dims={0}, "
      "rhs_contracting_dims={0}\n}\n";
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "m", text, sizeof text - 1, &m) != KILN_OK) give_up(0, "parse", cx, text);
  run_both_and_check(cx, m, 3, 0, text);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

START_TEST(many_have_tiles) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u of %u also by tiles\n", tiled, all);
  ck_assert_uint_ge(tiled, all / 3);
}
END_TEST

int main(void) {
  return RUN_TESTS("contract", NO_FRAME, {random_contractions, SLICES}, {many_have_tiles}, {integers_are_cut, 2},
                   {tiles_of_each_size, KL_COUNT(tile_cases)}, {few_rows, KL_COUNT(few_cases)},
                   {constants_are_multiplied}, {products_are_most_of_the_code, KL_COUNT(dense_cases)},
                   {odd_sizes_are_mostly_products, KL_COUNT(odd_cases)});
}

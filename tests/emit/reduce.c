// Reductions: random modules on the host and on the simulator against the evaluator, which has their order from the
// graph as kernels do; their PTX through ptxas. Rows of one element and of many, columns, several reduced dimensions,
// any reducer and layout, results for every element, one reduction behind another.
//
// 16 (support/share.h); KILN_FUSION_SEED sets one seed to run alone and print.

#include "harness.h"
#include "lower/choose/choose.h"
#include "support/draw.h"
#include "support/reductions.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct shape {
  const char *type;
  uint32_t rank;
  int64_t dims[4];
  uint32_t reduced; // mask
  char layout[24];  // of arrays of all dims, with its braces; empty: the default
} shape;

static const char *const types[] = {"f32", "f32", "f32",  "bf16", "f16",      "f64", "s32", "u8",
                                    "s8",  "u64", "pred", "c64",  "f8e4m3fn", "s4",  "s16", "f8e5m2"};

static bool is(const shape *s, const char *type) {
  return strcmp(s->type, type) == 0;
}

static bool is_whole(const shape *s) {
  return (s->type[0] == 's' || s->type[0] == 'u');
}

static int64_t count_of(const shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dims[d];
  return n;
}

static void draw_shape(shape *s) {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 128, 255, 256, 257, 300};
  *s = (shape){.type = types[below(sizeof types / sizeof *types)], .rank = 1 + below(4)};
  for (uint32_t d = 0; d < s->rank; d++) s->dims[d] = extents[below(sizeof extents / sizeof *extents)];
  while (count_of(s) > 40000) s->dims[below(s->rank)] = 1 + below(5);
  if (chance(10)) s->dims[below(s->rank)] = 1025 + 1500 * below(3);
  if (chance(4)) s->dims[below(s->rank)] = 0;
  while (count_of(s) > 400000) s->dims[below(s->rank)] = 1 + below(5);
  while (!s->reduced) s->reduced = below(1u << s->rank);
  if (s->rank == 1 || chance(70)) return;
  uint32_t order[4] = {0, 1, 2, 3};
  for (uint32_t d = s->rank; d-- > 1;) {
    uint32_t other = below(d + 1), t = order[d];
    order[d] = order[other];
    order[other] = t;
  }
  char *at = s->layout;
  for (uint32_t d = 0; d < s->rank; d++) at += sprintf(at, "%c%u", d ? ',' : '{', order[d]);
  strcpy(at, "}");
}

// The type and dimensions that are in the mask; all of them with the layout.
static void put_shape(kl_sb *b, const shape *s, const char *type, uint32_t mask, bool layout) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0, n = 0; d < s->rank; d++)
    if (mask >> d & 1) kl_sbf(b, "%s%lld", n++ ? "," : "", (long long)s->dims[d]);
  kl_sbf(b, "]%s", layout ? s->layout : "");
}

static void put_dims(kl_sb *b, const shape *s, uint32_t mask) {
  kl_sb_puts(b, "{");
  for (uint32_t d = 0, n = 0; d < s->rank; d++)
    if (mask >> d & 1) kl_sbf(b, "%s%u", n++ ? "," : "", d);
  kl_sb_puts(b, "}");
}

// "name = shape op(args)" of all elements, or of one for each that is kept.
static void put_line(kl_sb *b, const shape *s, const char *name, uint32_t mask, const char *what) {
  kl_sbf(b, "  %s = ", name);
  put_shape(b, s, s->type, mask, mask == (1u << s->rank) - 1);
  kl_sbf(b, " %s", what);
}

static const char *reducer_of(const shape *s, const char **init) {
  static const char *const ops[] = {"add", "maximum", "minimum", "multiply", "and", "or", "xor"};
  static const char *const inits[] = {"0", "1", "1", "1", "1", "0", "1"};
  uint32_t op = below(is_whole(s) ? 7 : 4);
  *init = inits[op];
  if (is(s, "c64")) return *init = "(1,-2)", chance(50) ? "add" : "multiply";
  if (is(s, "pred")) return *init = "true", chance(50) ? "and" : "or";
  return ops[op];
}

// One value, by an op; or by one that the kernel knows nothing of: its order shows in the result.
static void put_simple(kl_sb *b, const shape *s, uint32_t all) {
  const char *init, *op = reducer_of(s, &init);
  bool strange = is_whole(s) && !is(s, "s4") && chance(20), before = !is(s, "pred") && chance(50);
  kl_sbf(b, "reducer {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", s->type, s->type);
  if (strange) kl_sbf(b, "  t = %s[] constant(3)\n  u = %s[] multiply(a, t)\n", s->type, s->type);
  kl_sbf(b, "  ROOT r = %s[] %s(%s, b)\n}\n\nENTRY main {\n", s->type, strange ? "add" : op, strange ? "u" : "a");
  put_line(b, s, "x", all, "parameter(0)\n");
  kl_sbf(b, "  z = %s[] constant(%s)\n", s->type, init);
  if (before) put_line(b, s, "y", all, "add(x, x)\n");
  put_line(b, s, "r", all & ~s->reduced, "reduce(");
  kl_sbf(b, "%s, z), dimensions=", before ? "y" : "x");
  put_dims(b, s, s->reduced);
  kl_sb_puts(b, ", to_apply=reducer\n");
}

static void put_broadcast(kl_sb *b, const shape *s, uint32_t all, const char *name, const char *of) {
  put_line(b, s, name, all, "broadcast(");
  kl_sbf(b, "%s), dimensions=", of);
  put_dims(b, s, all & ~s->reduced);
  kl_sb_puts(b, "\n");
}

// Results: of the reduction, of what follows it, of every element, of a second reduction.
static void put_results(kl_sb *b, const shape *s, uint32_t all) {
  bool pred = is(s, "pred");
  uint32_t kind = below(4);
  if (kind == 0) {
    put_line(b, s, "ROOT q", all & ~s->reduced, pred ? "not(r)\n}\n" : "negate(r)\n}\n");
    return;
  }
  put_broadcast(b, s, all, "rb", "r");
  put_line(b, s, kind == 1 ? "ROOT q" : "q", all, pred ? "xor(x, rb)\n" : "subtract(x, rb)\n");
  if (kind == 1) {
    kl_sb_puts(b, "}\n");
    return;
  }
  if (kind == 3) {
    put_line(b, s, "r2", all & ~s->reduced, "reduce(q, z), dimensions=");
    put_dims(b, s, s->reduced);
    kl_sb_puts(b, ", to_apply=reducer\n");
    put_broadcast(b, s, all, "r2b", "r2");
    put_line(b, s, "q2", all, pred ? "or(q, r2b)\n" : "add(q, r2b)\n");
  }
  uint32_t other = kind == 2 && chance(60) ? 1 + below(all) : 0;
  if (other) {
    put_line(b, s, "r3", all & ~other, "reduce(q, z), dimensions=");
    put_dims(b, s, other);
    kl_sb_puts(b, ", to_apply=reducer\n");
  }
  kl_sb_puts(b, "  ROOT t = (");
  if (other) put_shape(b, s, s->type, all & ~other, false);
  kl_sb_puts(b, other ? ", " : "");
  put_shape(b, s, s->type, all, true);
  kl_sb_puts(b, ", ");
  put_shape(b, s, s->type, all & ~s->reduced, false);
  kl_sbf(b, ") tuple(%s%s, r)\n}\n", other ? "r3, " : "", kind == 3 ? "q2" : "q");
}

// Ways to say which of (a, i) and (b, j) is taken, in c: places decide nothing, which of equals is taken, all, or
// nothing that can be known before.
static const char *const ties[] = {
    "c = pred[] compare(a, b), direction=GE\n",
    "g = pred[] compare(a, b), direction=GT\n  e = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), "
    "direction=LT\n  t = pred[] and(e, l)\n  c = pred[] or(g, t)\n",
    "g = pred[] compare(a, b), direction=GT\n  n = pred[] compare(a, a), direction=NE\n  h = pred[] or(g, n)\n  e = "
    "pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), direction=LT\n  t = pred[] and(e, l)\n  c = "
    "pred[] or(h, t)\n",
    "g = pred[] compare(a, b), direction=LT\n  e = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(j, i), "
    "direction=GE\n  t = pred[] and(l, e)\n  c = pred[] or(t, g)\n",
    "g = pred[] compare(a, b), direction=LE\n  l = pred[] compare(i, j), direction=GT\n  n = pred[] compare(i, j), "
    "direction=NE\n  s = pred[] select(l, n, g)\n  e = pred[] compare(j, i), direction=EQ\n  c = pred[] or(s, e)\n",
    "g = pred[] compare(a, b), direction=GT\n  l = pred[] compare(i, j), direction=LE\n  c = pred[] xor(g, l)\n",
};

// One element and where it is, as its number in one dimension, or as a number that begins again.
static void put_argmax(kl_sb *b, const shape *s, uint32_t all) {
  const char *t = s->type, *numbers = chance(80) ? "s32" : chance(50) ? "u8" : "s8";
  uint32_t along = below(s->rank);
  kl_sbf(b, "reducer {\n  a = %s[] parameter(0)\n  i = %s[] parameter(1)\n  b = %s[] parameter(2)\n", t, numbers, t);
  kl_sbf(b, "  j = %s[] parameter(3)\n  %s  v = %s[] select(c, a, b)\n", numbers, ties[below(KL_COUNT(ties))], t);
  kl_sbf(b, "  k = %s[] select(c, i, j)\n  ROOT r = (%s[], %s[]) tuple(v, k)\n}\n\nENTRY main {\n", numbers, t,
         numbers);
  put_line(b, s, "x", all, "parameter(0)\n");
  if (chance(30)) {
    kl_sb_puts(b, "  m = ");
    put_shape(b, s, numbers, 1u << along, false);
    kl_sb_puts(b, " iota(), iota_dimension=0\n  n = ");
    put_shape(b, s, numbers, all, true);
    kl_sbf(b, " broadcast(m), dimensions={%u}\n", along);
  } else {
    kl_sb_puts(b, "  n = ");
    put_shape(b, s, numbers, all, true);
    kl_sbf(b, " iota(), iota_dimension=%u\n", along);
  }
  kl_sbf(b, "  z = %s[] constant(1)\n  k = %s[] constant(%s)\n  ROOT r = (", t, numbers, *numbers == 's' ? "-1" : "1");
  put_shape(b, s, t, all & ~s->reduced, false);
  kl_sb_puts(b, ", ");
  put_shape(b, s, numbers, all & ~s->reduced, false);
  kl_sb_puts(b, ") reduce(x, n, z, k), dimensions=");
  put_dims(b, s, s->reduced);
  kl_sb_puts(b, ", to_apply=reducer\n}\n");
}

static void put_module(kl_sb *b) {
  shape s;
  draw_shape(&s);
  uint32_t all = (1u << s.rank) - 1;
  kl_sb_puts(b, "HloModule fusion\n\n");
  if (!is(&s, "pred") && !is(&s, "c64") && chance(12)) return put_argmax(b, &s, all);
  put_simple(b, &s, all);
  put_results(b, &s, all);
}

// --- running --------------------------------------------------------------------------------------------------------

static unsigned compiled, refused;

static void one(kiln_context *cx, unsigned number, batch *batches, bool print) {
  seed = number * 0x9e3779b97f4a7c15ull;
  kl_sb text;
  kl_sb_init(&text, cx);
  put_module(&text);
  if (print) puts(text.p);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "reduce.hlo", text.p, text.n, &m) != KILN_OK) give_up(number, "parsing", cx, text.p);
  unsigned t = number % TARGETS;
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[t]};
  kiln_status st = kiln_compile_check(cx, m, &p);
  if (st == KILN_OK) {
    compiled++;
    run_and_check(cx, m, number, text.p);
    run_gpu_and_check(cx, m, t, number, text.p);
    batch_add(batches, t, cx, m, number, text.p);
  } else {
    refused++;
    if (st != KILN_E_UNSUPPORTED) give_up(number, "compiling", cx, text.p);
  }
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_diagnostics_clear(cx);
}

enum { SLICES = 4 };

// Each fourth as it is best.
static const kl_strategy strategies[] = {{0},
                                         {.split = 2},
                                         {.split = 4, .two_launches = true},
                                         {.split = 16, .across = true},
                                         {.split = 4, .cluster = true},
                                         {.teams = 4}};

START_TEST(random_reductions) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), batches, true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : share_of(16); s < n; s += SLICES) {
    strategy = strategies[s / 3 % KL_COUNT(strategies)];
    one(cx, (unsigned)s, batches, false);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// --- several launches -----------------------------------------------------------------------------------------------

enum { MOST_LEAVES = 8 };

// Inputs whose sums are rounded, results by the evaluator, and room for others.
typedef struct run {
  void *in[MOST_LEAVES], *want[MOST_LEAVES], *got[MOST_LEAVES];
} run;

static void make_run(kiln_context *cx, const kiln_module *m, const char *text, run *r) {
  *r = (run){{NULL}};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    kiln_array_type t;
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    ck_assert(kiln_module_parameter_leaf_type(m, i, &t));
    r->in[i] = aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15);
    gen_fill((unsigned)i, t.dtype, bytes, false, r->in[i]);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    size_t room = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    r->want[i] = aligned_alloc(16, room);
    r->got[i] = aligned_alloc(16, room);
  }
  if (kiln_module_eval(cx, m, (const void *const *)r->in, r->want, NULL) != KILN_OK) give_up(0, "eval", cx, text);
}

static void compare_runs(const kiln_module *m, const run *r, const char *what, const char *where) {
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++)
    EXPECT(memcmp(r->want[i], r->got[i], (size_t)kiln_module_result_leaf_bytes(m, i)) == 0,
           "%s on %s: result %zu has other bits", what, where, i);
}

static void free_run(run *r) {
  for (size_t i = 0; i < MOST_LEAVES; i++) free(r->in[i]), free(r->want[i]), free(r->got[i]);
}

// Of all fusions, strategies and machines one in eight.
START_TEST(bits_are_the_same_everywhere) {
  kiln_context *cx = kiln_context_create(NULL);
  const fusion_row *f = &fusions[_i];
  kl_sb text;
  kl_sb_init(&text, cx);
  put_fusion(&text, f);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "reduce.hlo", text.p, text.n, &m) != KILN_OK) give_up(0, f->what, cx, text.p);
  run r;
  make_run(cx, m, text.p, &r);
  for (unsigned i = 0; i < MACHINES * KL_COUNT(strategies); i++) {
    if (!share_has((uint64_t)_i * MACHINES * KL_COUNT(strategies) + i, 8)) continue;
    strategy = strategies[i / MACHINES];
    run_on(cx, m, machines[i % MACHINES], 2, 0, (const void *const *)r.in, r.got, text.p);
    compare_runs(m, &r, f->what, targets[machines[i % MACHINES]]);
  }
  free_run(&r);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}
END_TEST

// On the host several blocks have parts of a column, so that each reads more of a row at once; odd numbers of rows.
START_TEST(wide_columns_are_split) {
  static const char *const types[] = {"f32", "bf16", "s8"};
  if (!share_has((uint64_t)_i, 1)) return;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  const char *t = types[_i];
  char text[1024];
  run r;
  snprintf(text, sizeof text,
           "HloModule m\nf { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] add(a, b) }\nENTRY e {\n"
           " x = %s[1103,512] parameter(0)\n z = %s[] parameter(1)\n ROOT r = %s[512] reduce(x, z), dimensions={0}, "
           "to_apply=f\n}\n",
           t, t, t, t, t, t);
  if (kiln_module_parse(cx, "wide.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, t, cx, text);
  strategy = (kl_strategy){0};
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, t, cx, text);
  ck_assert_uint_eq(kiln_artifact_manifest(a)->launch_count, 2);
  make_run(cx, m, text, &r);
  run_on(cx, m, HOST, 2, 0, (const void *const *)r.in, r.got, text);
  compare_runs(m, &r, t, "host");
  free_run(&r);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// Few are left: columns of several thousand elements, and results whose bytes several threads would share.
START_TEST(few_are_refused) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u compiled, %u refused\n", compiled, refused);
  ck_assert_uint_le(refused, (compiled + refused) / 5 + 2);
}
END_TEST

int main(void) {
  return RUN_TESTS("reduce", NO_FRAME, {random_reductions, SLICES}, {few_are_refused},
                   {bits_are_the_same_everywhere, KL_COUNT(fusions)}, {wide_columns_are_split, 3});
}

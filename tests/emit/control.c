// Calls, maps, conditionals, barriers and tuples inside of fusions, against the evaluator on the host and as kernels.
#include "harness.h"
#include "lower/choose/choose.h"
#include "support/draw.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

// Each a module with a kernel called `fusion`.
static const char *const modules[] = {
    // a map's parameters are elements, whatever its computation does with them
    "HloModule fusion\n"
    "body {\n"
    "  x = f32[] parameter(0)\n"
    "  y = s32[] parameter(1)\n"
    "  k = f32[5] constant({1, -2, 4, 8, 16})\n"
    "  at = f32[1] dynamic-slice(k, y), dynamic_slice_sizes={1}\n"
    "  s = f32[] reshape(at)\n"
    "  ROOT r = f32[] multiply(x, s)\n"
    "}\n"
    "ENTRY e {\n"
    "  p = f32[37,9] parameter(0)\n"
    "  q = s32[37,9] parameter(1)\n"
    "  m = f32[37,9] map(p, q), dimensions={0,1}, to_apply=body\n"
    "  t = f32[9,37] transpose(m), dimensions={1,0}\n"
    "  ROOT r = (f32[9,37], f32[37,9]) tuple(t, m)\n"
    "}\n",
    // maps and calls in each other
    "HloModule fusion\n"
    "inner { x = bf16[] parameter(0) ROOT r = bf16[] multiply(x, x) }\n"
    "outer {\n"
    "  x = bf16[] parameter(0)\n"
    "  m = bf16[] map(x), dimensions={}, to_apply=inner\n"
    "  c = bf16[] call(m), to_apply=inner\n"
    "  ROOT r = bf16[] subtract(m, c)\n"
    "}\n"
    "f {\n"
    "  x = bf16[1000] parameter(0)\n"
    "  ROOT m = bf16[1000] map(x), dimensions={0}, to_apply=outer\n"
    "}\n"
    "ENTRY e { x = bf16[1000] parameter(0) ROOT r = bf16[1000] fusion(x), kind=kLoop, calls=f }\n",
    // a reducer that maps and calls; a reduction behind two calls
    "HloModule fusion\n"
    "twice { x = s32[] parameter(0) ROOT r = s32[] add(x, x) }\n"
    "join {\n"
    "  a = s32[] parameter(0)\n"
    "  b = s32[] parameter(1)\n"
    "  m = s32[] map(b), dimensions={}, to_apply=twice\n"
    "  c = s32[] call(a), to_apply=twice\n"
    "  d = s32[] subtract(c, a)\n"
    "  h = s32[] subtract(m, b)\n"
    "  ROOT r = s32[] maximum(d, h)\n"
    "}\n"
    "deep {\n"
    "  x = s32[20,33]{0,1} parameter(0)\n"
    "  z = s32[] constant(-2147483648)\n"
    "  r = s32[20] reduce(x, z), dimensions={1}, to_apply=join\n"
    "  flat = s32[660] bitcast(x)\n"
    "  ROOT t = (s32[20], s32[660]) tuple(r, flat)\n"
    "}\n"
    "less {\n"
    "  x = s32[20,33] parameter(0)\n"
    "  ROOT c = (s32[20], s32[660]) fusion(x), kind=kInput, calls=deep\n"
    "}\n"
    "ENTRY e { x = s32[20,33] parameter(0) ROOT c = (s32[20], s32[660]) call(x), to_apply=less }\n",
    // two branches, in tuples
    "HloModule fusion\n"
    "yes {\n"
    "  p = (f32[1000], s4[77]) parameter(0)\n"
    "  a = f32[1000] get-tuple-element(p), index=0\n"
    "  b = s4[77] get-tuple-element(p), index=1\n"
    "  n = f32[1000] reverse(a), dimensions={0}\n"
    "  u = (s4[77], f32[1000]) tuple(b, a)\n"
    "  ROOT t = (f32[1000], (s4[77], f32[1000])) tuple(n, u)\n"
    "}\n"
    "no {\n"
    "  p = f32[500] parameter(0)\n"
    "  c = f32[1000] concatenate(p, p), dimensions={0}\n"
    "  one = s4[] constant(1)\n"
    "  b = s4[77] broadcast(one), dimensions={}\n"
    "  u = (s4[77], f32[1000]) tuple(b, c)\n"
    "  ROOT t = (f32[1000], (s4[77], f32[1000])) tuple(c, u)\n"
    "}\n"
    "ENTRY e {\n"
    "  c = pred[] parameter(0)\n"
    "  p = (f32[1000], s4[77]) parameter(1)\n"
    "  q = f32[500] parameter(2)\n"
    "  ROOT r = (f32[1000], (s4[77], f32[1000])) conditional(c, p, q), true_computation=yes, false_computation=no\n"
    "}\n",
    // many branches, one of them twice; what is no branch's number is the last
    "HloModule fusion\n"
    "a { p = f32[300] parameter(0) ROOT r = f32[300] negate(p) }\n"
    "b { p = f32[] parameter(0) ROOT r = f32[300] broadcast(p), dimensions={} }\n"
    "c { p = () parameter(0) i = u8[300] iota(), iota_dimension=0 ROOT r = f32[300] convert(i) }\n"
    "ENTRY e {\n"
    "  i = s8[] parameter(0)\n"
    "  k = s32[] convert(i)\n"
    "  two = s32[] constant(2)\n"
    "  j = s32[] divide(k, two)\n"
    "  p = f32[300] parameter(1)\n"
    "  q = f32[300] parameter(2)\n"
    "  z = f32[] constant(7)\n"
    "  u = () tuple()\n"
    "  x = f32[300] conditional(j, p, z, u, q), branch_computations={a, b, c, a}\n"
    "  y = f32[300] conditional(k, x), branch_computations={a}\n"
    "  ROOT r = (f32[300], f32[300]) tuple(x, y)\n"
    "}\n",
    // a conditional for each element; places that a branch computes
    "HloModule fusion\n"
    "yes { x = s16[] parameter(0) ROOT r = s16[] not(x) }\n"
    "no { x = s16[] parameter(0) ROOT r = s16[] abs(x) }\n"
    "choose {\n"
    "  x = s16[] parameter(0)\n"
    "  z = s16[] constant(0)\n"
    "  c = pred[] compare(x, z), direction=LT\n"
    "  ROOT r = s16[] conditional(c, x, x), true_computation=yes, false_computation=no\n"
    "}\n"
    "near {\n"
    "  p = (s16[100], s32[]) parameter(0)\n"
    "  x = s16[100] get-tuple-element(p), index=0\n"
    "  i = s32[] get-tuple-element(p), index=1\n"
    "  ROOT r = s16[9] dynamic-slice(x, i), dynamic_slice_sizes={9}\n"
    "}\n"
    "far {\n"
    "  x = s16[100] parameter(0)\n"
    "  ROOT r = s16[9] slice(x), slice={[91:100]}\n"
    "}\n"
    "ENTRY e {\n"
    "  x = s16[100] parameter(0)\n"
    "  i = s32[] parameter(1)\n"
    "  c = pred[] parameter(2)\n"
    "  m = s16[100] map(x), dimensions={0}, to_apply=choose\n"
    "  t = (s16[100], s32[]) tuple(m, i)\n"
    "  d = s16[9] conditional(c, t, m), true_computation=near, false_computation=far\n"
    "  ROOT r = (s16[100], s16[9]) tuple(m, d)\n"
    "}\n",
    // barriers, domains, copies of tuples
    "HloModule fusion\n"
    "ENTRY e {\n"
    "  p = (f32[10,3]{0,1}, (s32[7], pred[])) parameter(0)\n"
    "  b = (f32[10,3], (s32[7], pred[])) opt-barrier(p)\n"
    "  k = (f32[10,3], (s32[7], pred[])) copy(b)\n"
    "  q = (s32[7], pred[]) get-tuple-element(k), index=1\n"
    "  s = s32[7] get-tuple-element(q), index=0\n"
    "  o = s32[7] opt-barrier(s)\n"
    "  n = s32[7] negate(o)\n"
    "  ROOT r = ((f32[10,3], (s32[7], pred[])), s32[7], (s32[7], pred[])) tuple(b, n, q)\n"
    "}\n",
    // rounds of each element, which would not end for what lies beside them
    "HloModule fusion\n"
    "on { x = f32[] parameter(0) e = f32[] constant(12) ROOT r = pred[] compare(x, e), direction=NE }\n"
    "do { x = f32[] parameter(0) o = f32[] constant(1) ROOT r = f32[] add(x, o) }\n"
    "each { x = f32[] parameter(0) ROOT w = f32[] while(x), condition=on, body=do }\n"
    "ENTRY e {\n"
    "  p = f32[5] parameter(0)\n"
    "  i = f32[13] iota(), iota_dimension=0\n"
    "  m = f32[13] map(i), dimensions={0}, to_apply=each\n"
    "  ROOT r = f32[23] concatenate(p, m, p), dimensions={0}\n"
    "}\n",
    // branches in rounds; a loop that is read at another index
    "HloModule fusion\n"
    "on { s = (s32[], f16[40]) parameter(0) k = s32[] get-tuple-element(s), index=0 e = s32[] constant(5) ROOT r = "
    "pred[] compare(k, e), direction=LT }\n"
    "yes { x = f16[40] parameter(0) ROOT r = f16[40] negate(x) }\n"
    "no { x = f16[40] parameter(0) ROOT r = f16[40] add(x, x) }\n"
    "do {\n"
    "  s = (s32[], f16[40]) parameter(0)\n"
    "  k = s32[] get-tuple-element(s), index=0\n"
    "  x = f16[40] get-tuple-element(s), index=1\n"
    "  o = s32[] constant(1)\n"
    "  j = s32[] add(k, o)\n"
    "  y = f16[40] conditional(k, x, x, x), branch_computations={yes, no, yes}\n"
    "  ROOT r = (s32[], f16[40]) tuple(j, y)\n"
    "}\n"
    "f {\n"
    "  k = s32[] parameter(0)\n"
    "  x = f16[40] parameter(1)\n"
    "  c = s32[] constant(-3)\n"
    "  b = s32[] maximum(k, c)\n"
    "  t = (s32[], f16[40]) tuple(b, x)\n"
    "  w = (s32[], f16[40]) while(t), condition=on, body=do\n"
    "  y = f16[40] get-tuple-element(w), index=1\n"
    "  ROOT r = f16[9,40] broadcast(y), dimensions={1}\n"
    "}\n"
    "ENTRY e { k = s32[] parameter(0) x = f16[40] parameter(1) ROOT r = f16[9,40] fusion(k, x), kind=kLoop, calls=f "
    "}\n",
};

enum { SEEDS = 6 };

START_TEST(against_the_evaluator) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *text = modules[_i];
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "control.hlo", text, strlen(text), &m) != KILN_OK)
    give_up((unsigned)_i, "parsing", cx, text);
  for (unsigned seed = 0; seed < SEEDS; seed++) {
    run_and_check(cx, m, seed, text);
    run_gpu_and_check(cx, m, seed % TARGETS, seed, text);
  }
  for (unsigned t = 0; t < TARGETS; t++) batch_add(batches, t, cx, m, (unsigned)_i, text);
  batches_free(batches);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// One conditional behind another, each of which takes the last one's value in both branches, is no more work than one
// after the other.
START_TEST(chains_stay_linear) {
  enum { LENGTH = 200 };
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule fusion\n"
                 "a { p = s32[100] parameter(0) ROOT r = s32[100] not(p) }\n"
                 "b { p = s32[100] parameter(0) ROOT r = s32[100] abs(p) }\n"
                 "ENTRY e {\n  c = pred[] parameter(0)\n  x0 = s32[100] parameter(1)\n");
  for (unsigned i = 0; i < LENGTH; i++)
    kl_sbf(&b, "  x%u = s32[100] conditional(c, x%u, x%u), true_computation=a, false_computation=b\n", i + 1, i, i);
  kl_sbf(&b, "  ROOT r = s32[100] copy(x%u)\n}\n", LENGTH);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "chain.hlo", b.p, b.n, &m) != KILN_OK) give_up(0, "parsing", cx, b.p);
  run_and_check(cx, m, 1, b.p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
}
END_TEST

// --- loops that each thread runs by itself ---------------------------------------------------------------------------

static const struct {
  const char *name, *one[3], *two[5];
} element[] = {{"f32", {"negate", "abs", "sqrt"}, {"add", "subtract", "multiply", "maximum", "minimum"}},
               {"f64", {"negate", "abs", "floor"}, {"add", "subtract", "multiply", "maximum", "divide"}},
               {"bf16", {"negate", "abs", "ceil"}, {"add", "subtract", "multiply", "maximum", "minimum"}},
               {"f16", {"negate", "abs", "sign"}, {"add", "subtract", "multiply", "divide", "minimum"}},
               {"f8e5m2", {"negate", "abs", "floor"}, {"add", "subtract", "multiply", "maximum", "minimum"}},
               {"s32", {"negate", "abs", "not"}, {"add", "subtract", "multiply", "xor", "divide"}},
               {"s8", {"negate", "abs", "not"}, {"add", "subtract", "multiply", "maximum", "remainder"}},
               {"u16", {"not", "not", "popcnt"}, {"add", "subtract", "multiply", "and", "minimum"}},
               {"s4", {"negate", "not", "abs"}, {"add", "subtract", "multiply", "or", "minimum"}},
               {"pred", {"not", "not", "not"}, {"and", "or", "xor", "and", "or"}},
               {"c64", {"negate", "negate", "negate"}, {"add", "subtract", "add", "subtract", "add"}}};
static const char *const dims_of[] = {"", "7", "37,5", "1000", "3,1,129", "0", "2,513"};

// A loop of a counter, its limit, two arrays that change, one that does not, and a table of which each round reads a
// place. The limit is data; where arrays are scalars, the rounds end as well as soon as these are one. `inner`: rounds
// have a loop of their own.
static void put_loop(kl_sb *b, const char *name, const char *type, const char *dims, unsigned t, bool inner) {
  char a[64], state[320], v[16][16];
  unsigned n = 0;
  snprintf(a, sizeof a, "%s[%s]", type, dims);
  snprintf(state, sizeof state, "(s32[], s32[], %s, %s, %s, %s[16])", a, a, a, type);
  const char *leaves = "k = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=1";
  kl_sbf(b, "%s_on { s = %s parameter(0) %s\n  l = pred[] compare(k, n), direction=LT\n", name, state, leaves);
  if (!*dims)
    kl_sbf(b,
           "  x = %s get-tuple-element(s), index=2 y = %s get-tuple-element(s), index=3\n"
           "  d = pred[] compare(x, y), direction=NE ROOT r = pred[] and(l, d) }\n",
           a, a);
  else
    kl_sb_puts(b, "  ROOT r = pred[] copy(l) }\n");
  kl_sbf(b, "%s_do { s = %s parameter(0) %s\n  one = s32[] constant(1) j = s32[] add(k, one)\n", name, state, leaves);
  for (unsigned i = 0; i < 3; i++) {
    snprintf(v[n], sizeof v[n], "a%u", i);
    kl_sbf(b, "  %s = %s get-tuple-element(s), index=%u\n", v[n++], a, i + 2);
  }
  kl_sbf(b,
         "  table = %s[16] get-tuple-element(s), index=5\n  e1 = %s[1] dynamic-slice(table, k), "
         "dynamic_slice_sizes={1} e = %s[] reshape(e1) eb = %s broadcast(e), dimensions={}\n",
         type, type, type, a);
  snprintf(v[n++], sizeof v[0], "eb");
  if (inner) {
    kl_sbf(b,
           "  z = s32[] constant(13) u = %s tuple(z, n, a1, a0, eb, table)\n"
           "  w = %s while(u), condition=in_on, body=in_do\n  iw = %s get-tuple-element(w), index=2\n",
           state, state, a);
    snprintf(v[n++], sizeof v[0], "iw");
  }
  for (unsigned i = 0, ops = 2 + below(5); i < ops; i++) {
    const char *x = v[below(n)], *y = v[below(n)], *z = v[n - 1];
    if (chance(20))
      kl_sbf(b, "  p%u = pred[%s] compare(%s, %s), direction=%s v%u = %s select(p%u, %s, %s)\n", i, dims, x, y,
             chance(50) ? "NE" : "EQ", i, a, i, z, x);
    else if (chance(30))
      kl_sbf(b, "  v%u = %s %s(%s)\n", i, a, element[t].one[below(3)], x);
    else
      kl_sbf(b, "  v%u = %s %s(%s, %s)\n", i, a, element[t].two[below(5)], z, y);
    snprintf(v[n++], sizeof v[0], "v%u", i);
  }
  kl_sbf(b, "  ROOT r = %s tuple(j, n, %s, %s, a2, table) }\n", state, v[n - 1], chance(40) ? "a0" : v[below(n)]);
}

// Calls the loop on parameters x, y, c of `dims`, a table and a number from which the limit is.
static void put_call(kl_sb *b, const char *type, const char *dims) {
  kl_sbf(b,
         "  fifteen = s32[] constant(15) n = s32[] and(q, fifteen) zero = s32[] constant(0)\n"
         "  s = (s32[], s32[], %s[%s], %s[%s], %s[%s], %s[16]) tuple(zero, n, x, y, c, t)\n"
         "  w = (s32[], s32[], %s[%s], %s[%s], %s[%s], %s[16]) while(s), condition=out_on, body=out_do\n",
         type, dims, type, dims, type, dims, type, type, dims, type, dims, type, dims, type);
}

static void put_parameters(kl_sb *b, const char *type, const char *dims, const char *number, bool table) {
  kl_sbf(b, "  x = %s[%s] parameter(0) y = %s[%s] parameter(1) c = %s[%s] parameter(2) q = s32[%s] parameter(3)\n",
         type, dims, type, dims, type, dims, number);
  if (table) kl_sbf(b, "  t = %s[16] parameter(4)\n", type);
}

// In ENTRY, with something before it and behind it, or of each element by itself, where some are wanted in one place
// and not in another.
static void put_rounds(kl_sb *b, uint64_t k) {
  unsigned t = below(KL_COUNT(element));
  const char *type = element[t].name, *dims = dims_of[below(KL_COUNT(dims_of))];
  bool mapped = *dims && chance(35), inner = chance(30);
  const char *of = mapped ? "" : dims;
  kl_sbf(b, "HloModule rounds_%u\n", (unsigned)k);
  if (inner) put_loop(b, "in", type, of, t, false);
  put_loop(b, "out", type, of, t, inner);
  if (!mapped) {
    kl_sb_puts(b, "ENTRY e {\n");
    kl_sbf(b,
           "  x0 = %s[%s] parameter(0) y = %s[%s] parameter(1) c = %s[%s] parameter(2) q = s32[] parameter(3) "
           "t = %s[16] parameter(4)\n  x = %s[%s] %s(x0, c)\n",
           type, dims, type, dims, type, dims, type, type, dims, element[t].two[0]);
    put_call(b, type, dims);
    kl_sbf(b,
           "  a = %s[%s] get-tuple-element(w), index=2 d = %s[%s] get-tuple-element(w), index=3 "
           "k = s32[] get-tuple-element(w), index=0\n  f = %s[%s] %s(a, d)\n"
           "  ROOT r = (%s[%s], %s[%s], s32[]) tuple(%s, d, k) }\n",
           type, dims, type, dims, type, dims, element[t].two[0], type, dims, type, dims, chance(50) ? "a" : "f");
    return;
  }
  kl_sb_puts(b, "each {\n");
  put_parameters(b, type, "", "", false);
  kl_sbf(b, "  t = %s[16] broadcast(c), dimensions={}\n", type);
  put_call(b, type, "");
  kl_sbf(b, "  ROOT a = %s[] get-tuple-element(w), index=2 }\nENTRY e {\n", type);
  put_parameters(b, type, dims, dims, false);
  unsigned rank = 1;
  for (const char *p = dims; *p; p++) rank += *p == ',';
  const char *all = rank == 1 ? "0" : rank == 2 ? "0,1" : "0,1,2";
  kl_sbf(b, "  m = %s[%s] map(x, y, c, q), dimensions={%s}, to_apply=each\n", type, dims, all);
  const char *last = strrchr(dims, ',') ? strrchr(dims, ',') + 1 : dims;
  kl_sbf(b, "  v = %s[%s] reverse(m), dimensions={0}\n", type, dims);
  kl_sbf(b, "  ROOT r = %s[%.*s%d] concatenate(v, m, y), dimensions={%u} }\n", type, (int)(last - dims), dims,
         3 * atoi(last), rank - 1);
}

START_TEST(rounds_that_data_says) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb b;
  kl_sb_init(&b, cx);
  for (uint64_t k = 0; k < share_of(24); k++) {
    kiln_module *m = NULL;
    seed = 77 * k + 5;
    b.n = 0;
    put_rounds(&b, k);
    if (kiln_module_parse(cx, "rounds.hlo", b.p, b.n, &m) != KILN_OK) give_up((unsigned)k, "parsing", cx, b.p);
    run_both_and_check(cx, m, (unsigned)k % TARGETS, 2 * (unsigned)k, b.p);
    kiln_module_destroy(&m);
  }
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
}
END_TEST

// --- loops of lanes -------------------------------------------------------------------------------------------------

// Lanes, arrays with more dims, and which of their dims the lanes' are; lanes' dims by which any is asked for at once.
static const struct {
  const char *lanes, *dims, *along, *all, *first, *rest, *last;
} lanes_of[] = {
    {"7", "7", "0", "0", NULL, NULL, NULL},          {"1000", "1000", "0", "0", NULL, NULL, NULL},
    {"37", "37,5", "0", "0", NULL, NULL, NULL},      {"5", "37,5", "1", "0", NULL, NULL, NULL},
    {"3,129", "3,129", "0,1", "0,1", "1", "3", "0"}, {"2,3", "2,40,3", "0,2", "0,1", "0", "3", "1"},
    {"4,4", "4,4,9", "0,1", "1,0", "1", "4", "0"},   {"4,4", "9,4,4", "2,1", "0,1", "1", "4", "0"},
    {"3,1", "3,1,29", "0,1", "0,1", "1", "3", "0"},  {"0", "0,6", "0", "0", NULL, NULL, NULL},
    {"2,0", "2,0", "0,1", "0,1", "0", "0", "1"},     {"513", "2,513", "1", "0", NULL, NULL, NULL},
};

// What may be wrong with it, so that it is no loop of lanes.
enum { NOTHING, ONE_GOES_ON, ANOTHER_CONDITION, TAKES_THE_OTHER, KEEPS_ANOTHER, DEFECTS };

static void put_pred(kl_sb *b, const char *name, unsigned r, bool bound) {
  const char *l = lanes_of[r].lanes;
  kl_sbf(b, "  %sl = pred[%s] compare(k, n), direction=LT\n", name, l);
  if (bound)
    kl_sbf(b,
           "  %sm = s32[] constant(40) %smb = s32[%s] broadcast(%sm), dimensions={} "
           "%su = pred[%s] compare(h, %smb), direction=LT %s = pred[%s] and(%sl, %su)\n",
           name, name, l, name, name, l, name, name, l, name, name);
  else
    kl_sbf(b, "  %s = pred[%s] copy(%sl)\n", name, l, name);
}

// A loop of counters, their limits, another integer of each lane, and two arrays that change. `twice`: as of lanes of
// lanes, which asks of all along some dims before.
static void put_lanes(kl_sb *b, const char *name, const char *type, unsigned r, unsigned t, bool inner,
                      unsigned defect) {
  const char *l = lanes_of[r].lanes, *d = lanes_of[r].dims, *al = lanes_of[r].along;
  char a[64], state[320], v[24][16];
  unsigned n = 0;
  bool twice = lanes_of[r].first && chance(50), any_too = twice && chance(60);
  bool bound = chance(50) || defect == ANOTHER_CONDITION; // a body that asks for less ends
  snprintf(a, sizeof a, "%s[%s]", type, d);
  snprintf(state, sizeof state, "(s32[%s], s32[%s], s32[%s], %s, %s, %s)", l, l, l, a, a, a);
  kl_sb leaves;
  kl_sb_init(&leaves, b->cx);
  kl_sbf(&leaves,
         "  s = %s parameter(0) k = s32[%s] get-tuple-element(s), index=0 n = s32[%s] get-tuple-element(s), index=1 "
         "h = s32[%s] get-tuple-element(s), index=2\n",
         state, l, l, l);
  kl_sbf(b, "%s_on {\n%s", name, leaves.p);
  put_pred(b, "p", r, bound);
  kl_sb_puts(b, "  no = pred[] constant(false)\n");
  if (twice)
    kl_sbf(b,
           "  f = pred[%s] reduce(p, no), dimensions={%s}, to_apply=either "
           "ROOT r = pred[] reduce(f, no), dimensions={0}, to_apply=either }\n",
           lanes_of[r].rest, lanes_of[r].first);
  else
    kl_sbf(b, "  ROOT r = pred[] reduce(p, no), dimensions={%s}, to_apply=either }\n", lanes_of[r].all);
  kl_sbf(b, "%s_do {\n%s", name, leaves.p);
  put_pred(b, "p", r, bound && defect != ANOTHER_CONDITION);
  for (unsigned i = 0; i < 3; i++) {
    snprintf(v[n], sizeof v[n], "a%u", i);
    kl_sbf(b, "  %s = %s get-tuple-element(s), index=%u\n", v[n++], a, i + 3);
  }
  kl_sbf(b,
         "  one = s32[] constant(1) ones = s32[%s] broadcast(one), dimensions={} j = s32[%s] add(k, ones) "
         "g = s32[%s] add(h, k)\n  kc = %s[%s] convert(h) kb = %s broadcast(kc), dimensions={%s}\n",
         l, l, l, type, l, a, al);
  if (!strchr(l, ',') && chance(50)) // as it is where a rank is raised
    kl_sbf(b, "  k1 = %s[%s,1] reshape(kc) k2 = %s[%s] reshape(k1) kd = %s broadcast(k2), dimensions={%s}\n", type, l,
           type, l, a, al);
  else
    kl_sbf(b, "  kd = %s copy(kb)\n", a);
  snprintf(v[n++], sizeof v[0], "kd");
  if (inner) {
    kl_sbf(b,
           "  z = s32[%s] broadcast(one), dimensions={} u = %s tuple(z, h, g, a1, a0, kb) w = %s while(u), "
           "condition=in_on, body=in_do iw = %s get-tuple-element(w), index=3\n",
           l, state, state, a);
    snprintf(v[n++], sizeof v[0], "iw");
  }
  for (unsigned i = 0, ops = 2 + below(4); i < ops; i++) {
    const char *x = v[below(n)], *y = v[below(n)], *z = v[n - 1];
    if (chance(25))
      kl_sbf(b, "  q%u = pred[%s] compare(%s, %s), direction=%s v%u = %s select(q%u, %s, %s)\n", i, d, x, y,
             chance(50) ? "NE" : "EQ", i, a, i, z, x);
    else if (chance(30))
      kl_sbf(b, "  v%u = %s %s(%s)\n", i, a, element[t].one[below(3)], x);
    else
      kl_sbf(b, "  v%u = %s %s(%s, %s)\n", i, a, element[t].two[below(5)], z, y);
    snprintf(v[n++], sizeof v[0], "v%u", i);
  }
  kl_sbf(b, "  pb = pred[%s] broadcast(p), dimensions={%s}\n", d, al);
  kl_sbf(b, "  j1 = s32[%s] select(p, j, k) g1 = s32[%s] select(p, g, h)\n", l, l);
  const char *kept = defect == KEEPS_ANOTHER ? "a1" : "a0";
  if (defect == TAKES_THE_OTHER)
    kl_sbf(b, "  pn = pred[%s] not(pb) x1 = %s select(pn, a0, %s)\n", d, a, v[n - 1]);
  else
    kl_sbf(b, "  x1 = %s select(pb, %s, %s)\n", a, v[n - 1], kept);
  const char *y = v[defect == ONE_GOES_ON ? n - 1 : below(n)];
  kl_sbf(b, defect == ONE_GOES_ON ? "  y1 = %s copy(%s)\n" : "  y1 = %s select(pb, %s, a1)\n", a, y);
  if (any_too) // of one of them only
    kl_sbf(b,
           "  no = pred[] constant(false) f = pred[%s] reduce(p, no), dimensions={%s}, to_apply=either "
           "fb = pred[%s] broadcast(f), dimensions={%s} j2 = s32[%s] select(fb, j1, k)\n",
           lanes_of[r].rest, lanes_of[r].first, l, lanes_of[r].last, l);
  kl_sbf(b, "  ROOT r = %s tuple(%s, n, g1, x1, y1, a2) }\n", state, any_too ? "j2" : "j1");
  kl_sb_free(&leaves);
}

static unsigned put_mapped(kl_sb *b, uint64_t k) {
  unsigned t = below(KL_COUNT(element)), r = (unsigned)k % KL_COUNT(lanes_of);
  unsigned defect = chance(65) ? NOTHING : 1 + below(DEFECTS - 1);
  bool inner = chance(30);
  const char *type = element[t].name, *l = lanes_of[r].lanes, *d = lanes_of[r].dims;
  kl_sbf(b,
         "HloModule lanes_%u\n\neither { a = pred[] parameter(0) c = pred[] parameter(1) ROOT r = pred[] or(a, c) }\n",
         (unsigned)k);
  if (inner) put_lanes(b, "in", type, r, t, false, NOTHING);
  put_lanes(b, "out", type, r, t, inner, defect);
  char state[320];
  snprintf(state, sizeof state, "(s32[%s], s32[%s], s32[%s], %s[%s], %s[%s], %s[%s])", l, l, l, type, d, type, d, type,
           d);
  kl_sbf(
      b,
      "ENTRY e {\n  x = %s[%s] parameter(0) y = %s[%s] parameter(1) c = %s[%s] parameter(2) q = s32[%s] parameter(3)\n"
      "  f = s32[] constant(15) fs = s32[%s] broadcast(f), dimensions={} n = s32[%s] and(q, fs)\n"
      "  z = s32[] constant(0) zs = s32[%s] broadcast(z), dimensions={} s = %s tuple(zs, n, zs, x, y, c)\n"
      "  w = %s while(s), condition=out_on, body=out_do\n",
      type, d, type, d, type, d, l, l, l, l, state, state);
  kl_sbf(b,
         "  a = %s[%s] get-tuple-element(w), index=3 e = %s[%s] get-tuple-element(w), index=4 "
         "k = s32[%s] get-tuple-element(w), index=0\n  g = %s[%s] %s(a, e)\n"
         "  ROOT r = (%s[%s], %s[%s], s32[%s]) tuple(%s, e, k) }\n",
         type, d, type, d, l, type, d, element[t].two[0], type, d, type, d, l, chance(50) ? "a" : "g");
  return defect;
}

// Loops of scalars as they are when mapped over arrays, and what looks like them: what they are is no loop for the
// host, what only looks like them is.
START_TEST(rounds_of_lanes) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb b;
  kl_sb_init(&b, cx);
  for (uint64_t k = 0; k < share_of(24); k++) {
    kiln_module *m = NULL;
    seed = 91 * k + 7;
    b.n = 0;
    unsigned defect = put_mapped(&b, k);
    if (kiln_module_parse(cx, "lanes.hlo", b.p, b.n, &m) != KILN_OK) give_up((unsigned)k, "parsing", cx, b.p);
    strategy.rounds = KL_NONE;
    const kiln_artifact *a = compiled_for(cx, m, (unsigned)k % TARGETS, (unsigned)k, b.p);
    bool loops = false;
    for (size_t i = 0; i < kiln_artifact_manifest(a)->step_count; i++)
      loops |= kiln_artifact_manifest(a)->steps[i].kind == KILN_STEP_WHILE;
    ck_assert_msg(loops == (defect != NOTHING), "%u: %s\n%s", (unsigned)k, loops ? "the host loops" : "no loop", b.p);
    if (k % 2) strategy.rounds = 0;
    run_both_and_check(cx, m, (unsigned)k % TARGETS, 2 * (unsigned)k, b.p);
    strategy.rounds = 0;
    kiln_module_destroy(&m);
  }
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("control", NO_FRAME, {against_the_evaluator, KL_COUNT(modules)}, {chains_stay_linear},
                   {rounds_that_data_says}, {rounds_of_lanes});
}

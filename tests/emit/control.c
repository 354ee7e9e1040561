// Calls, maps, conditionals, barriers and tuples inside of fusions, against the evaluator on the host and as kernels.
#include "harness.h"
#include "support/suite.h"

#include <stdio.h>

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

int main(void) {
  return RUN_TESTS("control", NO_FRAME, {against_the_evaluator, KL_COUNT(modules)}, {chains_stay_linear});
}

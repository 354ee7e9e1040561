// One value, several layouts: a computation may lay its parameters and its root out in other ways than its caller, and
// the header in another way than ENTRY. Values pass by logical index; a buffer lies as its owner has it. Every row says
// by hand what lies in memory, and host, GPU kernels and evaluator are held against it.

#include "support/context.h"
#include "support/gpu_sim.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BUFFERS = 4, BYTES = 6 };

typedef struct row {
  const char *what, *text;
  const char *fusion;  // picked out of ENTRY, or NULL
  const char *results; // bytes in memory, one result after the other; parameter i holds i*10, i*10 + 1 ... in memory
} row;

#define P           "  p = s8[2,3] parameter(0)\n"
#define ENTRY_OF(x) "ENTRY e {\n" P "  ROOT r = " x "\n}\n"

// clang-format off
static const row rows[] = {
  {"the root's layout is not the fusion's",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  ROOT n = s8[2,3]{0,1} copy(a)\n}\n"
   ENTRY_OF("s8[2,3] fusion(p), kind=kLoop, calls=f"), NULL, "0 1 2 3 4 5"},
  {"the fusion's layout is not the root's",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  ROOT n = s8[2,3] copy(a)\n}\n"
   ENTRY_OF("s8[2,3]{0,1} fusion(p), kind=kLoop, calls=f"), NULL, "0 3 1 4 2 5"},
  {"a transpose that its root hides",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  ROOT t = s8[3,2]{0,1} transpose(a), dimensions={1,0}\n}\n"
   ENTRY_OF("s8[3,2] fusion(p), kind=kLoop, calls=f"), NULL, "0 3 1 4 2 5"},
  {"a parameter's layout is not the operand's",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT n = s8[2,3] copy(a)\n}\n"
   ENTRY_OF("s8[2,3] fusion(p), kind=kLoop, calls=f"), NULL, "0 1 2 3 4 5"},
  {"bitcast reads a parameter as its computation has it",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[6] bitcast(a)\n}\n"
   ENTRY_OF("s8[6] fusion(p), kind=kLoop, calls=f"), NULL, "0 3 1 4 2 5"},
  {"bitcast to a root that lies otherwise for the caller",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  ROOT b = s8[2,3]{0,1} bitcast(a)\n}\n"
   ENTRY_OF("s8[2,3] fusion(p), kind=kLoop, calls=f"), NULL, "0 2 4 1 3 5"},
  {"a call in an ENTRY without fusions",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[3,2]{0,1} bitcast(a)\n}\n"
   ENTRY_OF("s8[3,2] call(p), to_apply=f"), NULL, "0 4 3 2 1 5"},
  {"a fusion in a fusion",
   "HloModule m\ng {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[6] bitcast(a)\n}\n"
   "f {\n  a = s8[2,3]{0,1} parameter(0)\n  i = s8[6] fusion(a), kind=kLoop, calls=g\n"
   "  ROOT b = s8[2,3]{0,1} bitcast(i)\n}\n"
   ENTRY_OF("s8[2,3] fusion(p), kind=kLoop, calls=f"), NULL, "0 1 2 3 4 5"},
  {"leaves of a tuple",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  n = s8[2,3]{0,1} copy(a)\n"
   "  ROOT t = (s8[2,3], s8[2,3]{0,1}) tuple(n, a)\n}\n"
   ENTRY_OF("(s8[2,3]{0,1}, s8[2,3]) fusion(p), kind=kLoop, calls=f"), NULL, "0 3 1 4 2 5  0 1 2 3 4 5"},
  {"a tuple as parameter",
   "HloModule m\nf {\n  t = (s8[2,3]{0,1}, s8[2,3]) parameter(0)\n  a = s8[2,3]{0,1} get-tuple-element(t), index=0\n"
   "  b = s8[2,3]{0,1} get-tuple-element(t), index=1\n  x = s8[6] bitcast(a)\n  y = s8[6] bitcast(b)\n"
   "  ROOT r = (s8[6], s8[6]) tuple(x, y)\n}\n"
   "ENTRY e {\n  p = s8[2,3] parameter(0)\n  q = s8[2,3]{0,1} parameter(1)\n"
   "  t = (s8[2,3], s8[2,3]{0,1}) tuple(p, q)\n  ROOT r = (s8[6], s8[6]) fusion(t), kind=kLoop, calls=f\n}\n",
   NULL, "0 3 1 4 2 5  10 11 12 13 14 15"},
  {"between two fusions",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[6] bitcast(a)\n}\n"
   "g {\n  a = s8[2,3] parameter(0)\n  ROOT n = s8[2,3]{0,1} copy(a)\n}\n"
   "ENTRY e {\n" P "  x = s8[2,3] fusion(p), kind=kLoop, calls=g\n"
   "  ROOT r = s8[6] fusion(x), kind=kLoop, calls=f\n}\n", NULL, "0 3 1 4 2 5"},
  {"a result that another fusion reads, in its own layout",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[6] bitcast(a)\n}\n"
   "g {\n  a = s8[2,3] parameter(0)\n  ROOT n = s8[2,3] copy(a)\n}\n"
   "ENTRY e {\n" P "  x = s8[2,3] fusion(p), kind=kLoop, calls=g\n  y = s8[6] fusion(x), kind=kLoop, calls=f\n"
   "  ROOT r = (s8[2,3]{0,1}, s8[6], s8[2,3]) tuple(x, y, x)\n}\n",
   NULL, "0 3 1 4 2 5  0 3 1 4 2 5  0 1 2 3 4 5"},
  {"a parameter as result",
   "HloModule m\nf {\n  a = s8[2,3] parameter(0)\n  ROOT n = s8[2,3] copy(a)\n}\n"
   "ENTRY e {\n" P "  x = s8[2,3] fusion(p), kind=kLoop, calls=f\n"
   "  ROOT r = (s8[2,3]{0,1}, s8[2,3]) tuple(p, x)\n}\n", NULL, "0 3 1 4 2 5  0 1 2 3 4 5"},
  {"the header's parameter, one kernel",
   "HloModule m, entry_computation_layout={(s8[2,3]{0,1})->s8[2,3]{1,0}}\n" ENTRY_OF("s8[2,3] copy(p)"), NULL,
   "0 2 4 1 3 5"},
  {"the header's result, one kernel",
   "HloModule m, entry_computation_layout={(s8[2,3]{1,0})->s8[2,3]{0,1}}\n" ENTRY_OF("s8[2,3] copy(p)"), NULL,
   "0 3 1 4 2 5"},
  {"a header without layouts leaves ENTRY's",
   "HloModule m, entry_computation_layout={(s8[2,3])->s8[2,3]}\n" ENTRY_OF("s8[2,3]{0,1} copy(p)"), NULL,
   "0 3 1 4 2 5"},
  {"bitcast in ENTRY reads as ENTRY has it, not the header",
   "HloModule m, entry_computation_layout={(s8[2,3]{0,1})->s8[6]{0}}\n" ENTRY_OF("s8[6] bitcast(p)"), NULL,
   "0 2 4 1 3 5"},
  {"the header and fusions",
   "HloModule m, entry_computation_layout={(s8[2,3]{0,1})->(s8[6]{0}, s8[2,3]{0,1})}\n"
   "f {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT b = s8[6] bitcast(a)\n}\n"
   "ENTRY e {\n" P "  x = s8[6] fusion(p), kind=kLoop, calls=f\n  ROOT r = (s8[6], s8[2,3]) tuple(x, p)\n}\n",
   NULL, "0 1 2 3 4 5  0 1 2 3 4 5"},
  {"a fusion picked out has the buffers it has in ENTRY",
   "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  b = s8[6] bitcast(a)\n  ROOT c = s8[2,3]{0,1} bitcast(b)\n}\n"
   "ENTRY e {\n" P "  x = s8[2,3] fusion(p), kind=kLoop, calls=f\n  ROOT y = s8[2,3] fusion(x), kind=kLoop, calls=f\n}\n",
   "x", "0 1 2 3 4 5"},
  {"a fusion picked out, tuples",
   "HloModule m\nf {\n  t = (s8[2,3]{0,1}, s8[2,3]) parameter(0)\n  a = s8[2,3]{0,1} get-tuple-element(t), index=0\n"
   "  b = s8[2,3] get-tuple-element(t), index=1\n  ROOT r = (s8[2,3], s8[2,3]) tuple(b, a)\n}\n"
   "ENTRY e {\n  t = (s8[2,3], s8[2,3]{0,1}) parameter(0)\n"
   "  ROOT r = (s8[2,3]{0,1}, s8[2,3]) fusion(t), kind=kLoop, calls=f\n}\n",
   "r", "10 11 12 13 14 15  0 1 2 3 4 5"},
  {"tiles: padding is read by nobody and written as zero",
   "HloModule m\nf {\n  a = s8[2,2] parameter(0)\n  ROOT n = s8[2,2] copy(a)\n}\n"
   "ENTRY e {\n  p = s8[2,2]{1,0:T(1,3)} parameter(0)\n"
   "  ROOT r = s8[2,2]{0,1:T(1,3)S(5)} fusion(p), kind=kLoop, calls=f\n}\n", NULL, "0 3 0 1 4 0"},
  {"tiles that swap neighbours",
   "HloModule m\nENTRY e {\n  p = s8[2,3] parameter(0)\n  ROOT r = s8[2,3]{1,0:T(2,1)} copy(p)\n}\n", NULL, "0 3 1 4 2 5"},
  {"padding at the tail",
   "HloModule m\nENTRY e {\n  p = s8[4] parameter(0)\n  ROOT r = s8[4]{0:L(6)} copy(p)\n}\n", NULL, "0 1 2 3 0 0"},
  {"elements of more bits than their type's",
   "HloModule m\nENTRY e {\n  p = s4[6]{0:E(8)} parameter(0)\n  o = s4[] constant(1)\n  b = s4[6] broadcast(o), dimensions={}\n"
   "  ROOT r = s4[6]{0:E(8)} subtract(p, b)\n}\n", NULL, "15 0 1 2 3 4"},
  {"elements of fewer bits",
   "HloModule m\nENTRY e {\n  p = pred[48]{0:E(1)} parameter(0)\n  ROOT r = pred[48]{0:E(1)} copy(p)\n}\n", NULL, "0 1 2 3 4 5"},
  {"bitcast to parts",
   "HloModule m\nENTRY e {\n  p = u16[3] parameter(0)\n  ROOT r = s8[2,3]{0,1} bitcast(p)\n}\n", NULL, "0 1 2 3 4 5"},
  {"bitcast of parts that lie in another order",
   "HloModule m\nENTRY e {\n  p = s8[2,3] parameter(0)\n  t = s8[2,3]{0,1} copy(p)\n  ROOT r = u16[3] bitcast(t)\n}\n", NULL,
   "0 3 1 4 2 5"},
};
// clang-format on

typedef struct buffers {
  int8_t in[MOST_BUFFERS][16] __attribute__((aligned(16))), out[MOST_BUFFERS][16] __attribute__((aligned(16)));
  const void *ins[MOST_BUFFERS];
  void *outs[MOST_BUFFERS];
} buffers;

static void fill(buffers *b) {
  memset(b->out, 0x55, sizeof b->out);
  for (int i = 0; i < MOST_BUFFERS; i++) {
    for (int k = 0; k < BYTES; k++) b->in[i][k] = (int8_t)(i * 10 + k);
    b->ins[i] = b->in[i];
    b->outs[i] = b->out[i];
  }
}

static void expect(const row *r, const char *where, const buffers *b) {
  const char *at = r->results;
  for (int i = 0; *at; i++) {
    char *end;
    long want = strtol(at, &end, 10);
    ck_assert_msg(b->out[i / BYTES][i % BYTES] == want, "%s, on %s: result %d byte %d: expected %ld, found %d", r->what,
                  where, i / BYTES, i % BYTES, want, b->out[i / BYTES][i % BYTES]);
    at = end + strspn(end, " ");
  }
}

static void check_evaluator(const row *r, const kiln_module *m, const char *where) {
  buffers b;
  fill(&b);
  ck_assert_msg(kiln_module_eval(cx, m, b.ins, b.outs, NULL) == KILN_OK, "%s: %s", r->what, last_finding());
  expect(r, where, &b);
}

static void check_compiled(const row *r, const kiln_module *m, const char *fusion, const char *target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .fusion = fusion};
  kiln_artifact *a;
  kiln_kernel *k = NULL;
  buffers b;
  fill(&b);
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s: %s", r->what, last_finding());
  if (strcmp(target, "host") != 0) {
    gpu_sim_run(cx, a, b.ins, b.outs, 0);
  } else {
    ck_assert_msg(kiln_kernel_load(cx, a, &k) == KILN_OK, "%s: %s", r->what, last_finding());
    ck_assert_msg(kiln_kernel_run(cx, k, b.ins, b.outs, NULL) == KILN_OK, "%s: %s", r->what, last_finding());
  }
  expect(r, target, &b);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
}

START_TEST(buffers_lie_as_their_owner_has_them) {
  const row *r = &rows[_i];
  kiln_module *m, *part = NULL;
  ck_assert_msg(kiln_module_parse(cx, "row", r->text, strlen(r->text), &m) == KILN_OK, "%s: %s", r->what,
                last_finding());
  check_compiled(r, m, r->fusion, "host");
  check_compiled(r, m, r->fusion, "sm_90");
  if (r->fusion) {
    ck_assert_msg(kiln_module_extract(cx, m, r->fusion, &part) == KILN_OK, "%s: %s", r->what, last_finding());
    check_compiled(r, part, NULL, "host");
  }
  check_evaluator(r, part ? part : m, "the evaluator");
  kiln_module_destroy(&part);
  kiln_module_destroy(&m);
}
END_TEST

// The other ways to the same module: each says the same of memory.
START_TEST(rewritten_modules_lie_so_too) {
  const row *r = &rows[_i];
  kiln_module *m, *to;
  ck_assert_int_eq(kiln_module_parse(cx, "row", r->text, strlen(r->text), &m), KILN_OK);
  if (!r->fusion) {
    char *text;
    size_t n;
    ck_assert_int_eq(kiln_module_inline(cx, m, &to), KILN_OK);
    check_evaluator(r, to, "the evaluator, inlined");
    check_compiled(r, to, NULL, "host");
    kiln_module_destroy(&to);
    ck_assert_int_eq(kiln_module_flatten_tuples(cx, m, &to), KILN_OK);
    check_evaluator(r, to, "the evaluator, flat");
    kiln_module_destroy(&to);
    ck_assert_int_eq(kiln_module_canonical_print(cx, m, &text, &n), KILN_OK);
    ck_assert_msg(kiln_module_parse(cx, "canonical", text, n, &to) == KILN_OK, "%s", last_finding());
    check_evaluator(r, to, "the evaluator, canonical");
    kiln_module_destroy(&to);
    kiln_text_free(cx, text, n);
  }
  kiln_module_destroy(&m);
}
END_TEST

// A buffer grows along its own slowest dimension, not its computation's.
START_TEST(counts_want_one_layout) {
  static const char text[] = "HloModule m\nf {\n  a = s8[2,3]{0,1} parameter(0)\n  ROOT n = s8[2,3]{0,1} negate(a)\n}\n"
                             "ENTRY e {\n  p = s8[2,3]%s parameter(0)\n"
                             "  ROOT r = s8[2,3]%s fusion(p), kind=kLoop, calls=f\n}\n";
  static const struct {
    const char *parameter, *result, *why;
  } cases[] = {
      {"{0,1}", "{0,1}", NULL},
      {"", "{0,1}", "parameter 0 lies otherwise in memory than row behind row"},
      {"{0,1}", "", "result 0 lies otherwise in memory than row behind row"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char own[512];
    snprintf(own, sizeof own, text, cases[i].parameter, cases[i].result);
    kiln_module *m;
    kiln_artifact *a = NULL;
    kiln_compile_params p = {.struct_size = sizeof p, .max_count = 1 << 10};
    ck_assert_msg(kiln_module_parse(cx, "count", own, strlen(own), &m) == KILN_OK, "%s", last_finding());
    kiln_status s = kiln_compile(cx, m, &p, &a);
    ck_assert_int_eq(s, cases[i].why ? KILN_E_UNSUPPORTED : KILN_OK);
    if (cases[i].why) ck_assert_msg(strstr(last_finding(), cases[i].why), "%s", last_finding());
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
    kiln_diagnostics_clear(cx);
  }
}
END_TEST

enum { ROWS = sizeof rows / sizeof *rows };

int main(void) {
  return RUN_TESTS("layouts", EACH(make_context, drop_context), {buffers_lie_as_their_owner_has_them, ROWS},
                   {rewritten_modules_lie_so_too, ROWS}, {counts_want_one_layout});
}

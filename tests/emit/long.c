// Kernels that are long in some way: many steps, many results, many operands of one concatenate. They are cut: into
// functions on the host, into parts of the domain, into groups of stores. Host and GPU kernels against the evaluator.

#include "harness.h"
#include "support/share.h"
#include "support/suite.h"
#include "support/gpu_sim.h"

#include <stdio.h>
#include <stdlib.h>

static kiln_context *cx;
static kl_sb text;

static void make(void) {
  cx = kiln_context_create(NULL);
  kl_sb_init(&text, cx);
}
static void drop(void) {
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}

static kiln_module *parse_text(void) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "long.hlo", text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  return m;
}

enum { GPU = 2 };

// On the host and as kernels; cases that have a number, of several in a row, on one of both, and sometimes on the
// other.
static void run_case(unsigned number) {
  kiln_module *m = parse_text();
  for (unsigned seed = 0; seed < 4; seed++) {
    if (!share_has(2 * (uint64_t)number + seed / 2, number % 2 == seed / 2 ? 1 : 4)) continue;
    if (seed < 2)
      run_and_check(cx, m, seed, text.p);
    else
      run_gpu_and_check(cx, m, GPU, seed % 2, text.p);
  }
  kiln_module_destroy(&m);
}

// --- values from far away -----------------------------------------------------------------------------------------

// Each value takes the one before it and one from the first half, so that many are held over many steps: in every form
// that a value has in registers.
static const struct {
  const char *type, *ops[3];
} chains[] = {
    {"f32", {"add", "maximum", "subtract"}},
    {"f64", {"minimum", "add", "subtract"}},
    {"bf16", {"add", "maximum", "subtract"}},
    {"f16", {"minimum", "multiply", "add"}},
    {"f8e4m3fn", {"add", "maximum", "subtract"}},
    {"s8", {"add", "xor", "multiply"}},
    {"u4", {"add", "xor", "maximum"}},
    {"s64", {"multiply", "xor", "add"}},
    {"pred", {"xor", "or", "and"}},
    {"c64", {"add", "subtract", "add"}},
    {"c128", {"subtract", "add", "subtract"}},
};

START_TEST(values_are_kept) {
  enum { STEPS = 700, N = 37 };
  const char *t = chains[_i].type;
  kl_sbf(&text, "HloModule fusion\n\nENTRY e {\n  x0 = %s[%d] parameter(0)\n  p = %s[%d] parameter(1)\n", t, N, t, N);
  kl_sbf(&text, "  x1 = %s[%d] reverse(p), dimensions={0}\n", t, N); // moved only: kept as bits
  for (int i = 2; i < STEPS; i++)
    kl_sbf(&text, "  x%d = %s[%d] %s(x%d, x%d)\n", i, t, N, chains[_i].ops[i % 3], i - 1, (i * 7919) % ((i + 1) / 2));
  kl_sbf(&text, "  ROOT t = (%s[%d], %s[%d], %s[%d]) tuple(x%d, x1, x%d)\n}\n", t, N, t, N, t, N, STEPS - 1, STEPS / 3);
  run_case((unsigned)_i);
}
END_TEST

// --- many results -------------------------------------------------------------------------------------------------

static void put_results(int n, int size) {
  kl_sbf(&text, "HloModule fusion\n\nENTRY e {\n  a = f32[%d] parameter(0)\n  b = f32[%d] parameter(1)\n", size, size);
  for (int i = 0; i < n; i++) {
    kl_sbf(&text, "  r%d = f32[%d] reverse(%c), dimensions={0}\n", i, size, i % 2 ? 'a' : 'b');
    kl_sbf(&text, "  x%d = f32[%d] %s(r%d, %c)\n", i, size, i % 3 ? "add" : "subtract", i, i % 5 ? 'a' : 'b');
  }
  kl_sb_puts(&text, "  ROOT t = (");
  for (int i = 0; i < n; i++) kl_sbf(&text, i ? ", f32[%d]" : "f32[%d]", size);
  kl_sb_puts(&text, ") tuple(");
  for (int i = 0; i < n; i++) kl_sbf(&text, i ? ", x%d" : "x%d", i);
  kl_sb_puts(&text, ")\n}\n");
}

START_TEST(results_are_stored_in_groups) {
  static const int sizes[][2] = {{16, 33}, {17, 33}, {50, 700}, {60, 1}};
  put_results(sizes[_i][0], sizes[_i][1]);
  run_case((unsigned)_i);
}
END_TEST

// The first result is the parameter's memory, and the last step still reads it, by a load of its own: under a
// condition, but the same element. The store has to wait.
START_TEST(stores_wait_for_reads) {
  enum { N = 40, SIZE = 300 };
  kl_sbf(&text, "HloModule fusion\n\nENTRY e {\n  a = f32[%d] parameter(0)\n", SIZE);
  for (int i = 0; i < N; i++) kl_sbf(&text, "  c%d = f32[] constant(%d)\n", i, i + 1);
  for (int i = 0; i < N; i++) kl_sbf(&text, "  b%d = f32[%d] broadcast(c%d), dimensions={}\n", i, SIZE, i);
  kl_sbf(&text, "  h = f32[%d] slice(a), slice={[0:%d]}\n", SIZE / 2, SIZE / 2);
  kl_sbf(&text, "  i = f32[%d] slice(a), slice={[%d:%d]}\n", SIZE / 2, SIZE / 2, SIZE);
  kl_sbf(&text, "  c = f32[%d] concatenate(h, i), dimensions={0}\n", SIZE);
  for (int i = 0; i < N; i++)
    kl_sbf(&text, "  x%d = f32[%d] add(b%d, %s)\n", i, SIZE, i, i == 0 ? "a" : i == N - 1 ? "c" : "b0");
  kl_sb_puts(&text, "  ROOT t = (");
  for (int i = 0; i < N; i++) kl_sbf(&text, i ? ", f32[%d]" : "f32[%d]", SIZE);
  kl_sb_puts(&text, ") tuple(");
  for (int i = 0; i < N; i++) kl_sbf(&text, i ? ", x%d" : "x%d", i);
  kl_sb_puts(&text, ")\n}\n");
  kiln_module *m = parse_text();
  for (int h = 0; h < 2; h++) {
    kiln_alias pair = {0, 0};
    kiln_compile_params p = {.struct_size = sizeof p, .aliases = &pair, .alias_count = 1};
    p.target = h ? "host" : "sm_90";
    kiln_artifact *a;
    kiln_kernel *k = NULL;
    if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, p.target, cx, text.p);
    float *memory = aligned_alloc(64, N * 1216);
    void *out[N];
    for (int i = 0; i < N; i++) out[i] = (char *)memory + i * 1216;
    for (int i = 0; i < SIZE; i++) memory[i] = (float)i;
    const void *in[1] = {memory};
    if (!h)
      gpu_sim_run(cx, a, in, out, 0);
    else if (kiln_kernel_load(cx, a, &k) != KILN_OK || kiln_kernel_run(cx, k, in, out, NULL) != KILN_OK)
      give_up(0, "running", cx, text.p);
    for (int i = 0; i < N; i++)
      for (int e = 0; e < SIZE; e++) {
        float want = (float)(i + 1) + (i % (N - 1) ? 1 : (float)e);
        EXPECT(((float *)out[i])[e] == want, "%s: result %d element %d is %g, not %g", p.target, i, e,
               (double)((float *)out[i])[e], (double)want);
      }
    free(memory);
    kiln_kernel_destroy(&k);
    kiln_artifact_destroy(&a);
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- many operands ------------------------------------------------------------------------------------------------

static const struct {
  const char *type, *shape, *slice, *dims; // %d: an extent, and where a slice begins and ends
  int dim, all, step;
  const char *root;
} concatenates[] = {
    {"f32", "[%d]", "[%d:%d]", "dimensions={0}", 0, 1000, 7, "negate(c)"},
    {"bf16", "[%d,3]", "[%d:%d], [0:3]", "dimensions={0}", 0, 210, 5, "copy(c)"},
    {"f32", "[5,%d]", "[0:5], [%d:%d]", "dimensions={1}", 1, 150, 1, "exponential(c)"},
    {"s4", "[%d,6]", "[%d:%d], [0:6]", "dimensions={0}", 0, 90, 3, "negate(c)"},
    {"c64", "[2,%d,2]", "[0:2], [%d:%d], [0:2]", "dimensions={1}", 1, 300, 20, "negate(c)"},
    {"u8", "[%d]", "[%d:%d]", "dimensions={0}", 0, 40000, 3600, "not(c)"},
};

static void put_with(const char *form, int a, int b) {
  for (int n = 0; *form; form++) {
    if (*form != '%') {
      kl_sb_putc(&text, *form);
      continue;
    }
    kl_sbf(&text, "%d", n++ ? b : a);
    form++;
  }
}

// Slices in reverse order, put together again.
START_TEST(concatenates_in_parts) {
  const char *t = concatenates[_i].type, *shape = concatenates[_i].shape;
  int all = concatenates[_i].all, step = concatenates[_i].step, n = 0;
  kl_sbf(&text, "HloModule fusion\n\nENTRY e {\n  p = %s", t);
  put_with(shape, all, 0);
  kl_sb_puts(&text, " parameter(0)\n");
  for (int end = all; end > 0; end -= step, n++) {
    int begin = end > step ? end - step : 0;
    kl_sbf(&text, "  x%d = %s", n, t);
    put_with(shape, end - begin, 0);
    kl_sb_puts(&text, " slice(p), slice={");
    put_with(concatenates[_i].slice, begin, end);
    kl_sb_puts(&text, "}\n");
  }
  kl_sbf(&text, "  c = %s", t);
  put_with(shape, all, 0);
  for (int i = 0; i < n; i++) kl_sbf(&text, i ? ", x%d" : " concatenate(x%d", i);
  kl_sbf(&text, "), %s\n  ROOT r = %s", concatenates[_i].dims, t);
  put_with(shape, all, 0);
  kl_sbf(&text, " %s\n}\n", concatenates[_i].root);
  run_case((unsigned)_i);
}
END_TEST

// --- how much code ------------------------------------------------------------------------------------------------

static size_t lines_of(int kind, int n, const char *target) {
  text.n = 0;
  if (kind == 0)
    put_results(n, 4096);
  else {
    kl_sb_puts(&text, "HloModule fusion\n\nENTRY e {\n");
    for (int i = 0; i < n; i++) kl_sbf(&text, "  x%d = f32[11] parameter(%d)\n", i, i);
    kl_sbf(&text, "  ROOT c = f32[%d] concatenate(", 11 * n);
    for (int i = 0; i < n; i++) kl_sbf(&text, i ? ", x%d" : "x%d", i);
    kl_sb_puts(&text, "), dimensions={0}\n}\n");
  }
  kiln_module *m = parse_text();
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .keep = KILN_KEEP_LLVM};
  kiln_artifact *a;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, target, cx, text.p);
  size_t lines = 0;
  for (const char *at = kiln_artifact_text(a, KILN_TEXT_LLVM, NULL); (at = strchr(at, '\n')); at++) lines++;
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  return lines;
}

START_TEST(code_grows_linearly) {
  for (int kind = 0; kind < 2; kind++)
    for (int h = 0; h < 2; h++) {
      const char *target = h ? "host" : "sm_90";
      size_t small = lines_of(kind, 50, target), large = lines_of(kind, 200, target);
      EXPECT(large < 5 * small, "%s: %zu lines, of four times as much %zu", target, small, large);
    }
}
END_TEST

// Lines of the longest of the host's functions for the text.
static size_t longest_of_host(void) {
  kiln_module *m = parse_text();
  const kiln_artifact *a = compiled_for(cx, m, HOST, 0, text.p);
  size_t lines = 0, most = 0;
  for (const char *at = kiln_artifact_text(a, KILN_TEXT_LLVM, NULL); at;
       at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    lines = strncmp(at, "define", 6) == 0 ? 0 : lines + 1;
    if (*at == '}' && lines > most) most = lines;
  }
  kiln_module_destroy(&m);
  return most;
}

// No function of the host's is long, whatever the kernel is.
START_TEST(host_functions_are_bounded) {
  put_results(600, 64);
  size_t most = longest_of_host();
  EXPECT(most > 0 && most < 8000, "a function of %zu lines", most);
}
END_TEST

// --- lanes that lie apart -----------------------------------------------------------------------------------------

// An iteration of the host has up to 1,024 elements, each of which lies where a division or data says. Their places are
// made by vectors, their functions called: each element adds ten to twenty lines to the longest function. In place a
// row that is not there reads what its own first one does.
static const struct {
  const char *header, *body;
  size_t most; // lines
} apart[] = {
    {"",
     ("p = f32[4,44,7]{2,1,0:T(3,2)} parameter(0) z = f32[] constant(0) "
      "ROOT r = f32[] reduce(p, z), dimensions={0,1,2}, to_apply=f32_add"),
     11500},
    {"",
     ("p = u2[4,44,7]{0,2,1} parameter(0) z = u2[] constant(1) "
      "ROOT r = u2[] reduce(p, z), dimensions={0,1,2}, to_apply=u2_max"),
     2200},
    {"",
     ("p = u2[3,93,5] parameter(0) z = u2[] constant(1) "
      "ROOT r = u2[93] reduce(p, z), dimensions={0,2}, to_apply=u2_max"),
     400},
    {"",
     ("p = f8e4m3fn[7,9,21]{1,2,0:T(2,5)E(16)} parameter(0) z = f8e4m3fn[] constant(1) "
      "ROOT r = f8e4m3fn[] reduce(p, z), dimensions={0,1,2}, to_apply=f8_max"),
     15500},
    {"",
     ("p = c64[4,44,7]{2,1,0:T(3,2)} parameter(0) z = c64[] constant((0, 1)) "
      "ROOT r = c64[] reduce(p, z), dimensions={0,1,2}, to_apply=c64_add"),
     17500},
    {"",
     ("p = c128[7,12,14]{2,1,0:T(5,3)} parameter(0) q = c128[7,12,14] atan2(p, p) z = c128[] constant((0, 1)) "
      "ROOT r = c128[] reduce(q, z), dimensions={0,1,2}, to_apply=c128_add"),
     18500},
    {"",
     ("p = f32[4,44,7]{2,1,0:T(3,2)} parameter(0) z = f32[] constant(0) q = f32[4,44,7] negate(p) "
      "r = f32[] reduce(p, z), dimensions={0,1,2}, to_apply=f32_add "
      "ROOT t = (f32[], f32[4,44,7]{2,1,0:T(3,5)}) tuple(r, q)"),
     11500},
    {"",
     ("p = f32[3000] parameter(0) i = s32[4,308,1] parameter(1) z = f32[] constant(0) "
      "g = f32[4,308] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=2, slice_sizes={1} ROOT r = f32[] reduce(g, z), dimensions={0,1}, to_apply=f32_add"),
     6500},
    {"",
     ("p = f32[37,45] parameter(0) q = f32[37,45] reverse(p), dimensions={0,1} "
      "ROOT r = f32[37,45]{0,1:T(4,3)} negate(q)"),
     400},
    {", input_output_alias={{0}: (0, {}, must-alias)}",
     ("p = f32[3,5,7]{2,1,0:T(3,2)} parameter(0) q = f32[3,5,7]{0,1,2:T(2,2)} parameter(1) "
      "n = f32[3,5,7] add(p, q) ROOT t = (f32[3,5,7]{2,1,0:T(3,2)}) tuple(n)"),
     500},
};

START_TEST(lanes_lie_apart) {
  if (!share_has((uint64_t)_i, 3)) return;
  static const char *const adders[][3] = {
      {"f32_add", "f32", "add"}, {"u2_max", "u2", "maximum"}, {"f8_max", "f8e4m3fn", "maximum"},
      {"c64_add", "c64", "add"}, {"c128_add", "c128", "add"},
  };
  kl_sbf(&text, "HloModule fusion%s\n\n", apart[_i].header);
  for (size_t i = 0; i < KL_COUNT(adders); i++) {
    const char *t = adders[i][1];
    kl_sbf(&text, "%s { a = %s[] parameter(0) b = %s[] parameter(1) ROOT c = %s[] %s(a, b) }\n", adders[i][0], t, t, t,
           adders[i][2]);
  }
  kl_sbf(&text, "ENTRY e {\n%s\n}\n", apart[_i].body);
  size_t most = longest_of_host();
  EXPECT(most > 0 && most < apart[_i].most, "%zu lines, at most %zu: %s", most, apart[_i].most, apart[_i].body);
  run_case((unsigned)_i);
}
END_TEST

// --- many functions -----------------------------------------------------------------------------------------------

// All of these on five arguments are long in every type, even with one lane.
START_TEST(functions_are_called_where_they_are_many) {
  if (!share_has((uint64_t)_i, 4)) return;
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "f8e4m3fn", "c64", "c128"};
  static const char *const functions[] = {"exponential", "log", "tanh", "logistic", "sine", "cosine", "rsqrt", "tan"};
  static const char of[] = "xypqr";
  enum { N = 37, COUNT = 8, SETS = 5 };
  const char *t = types[_i];
  kl_sbf(&text, "HloModule m\n\nENTRY kernel {\n  x = %s[%d] parameter(0)\n  y = %s[%d] parameter(1)\n", t, N, t, N);
  kl_sbf(&text, "  p = %s[%d] power(x, y)\n  q = %s[%d] atan2(x, y)\n  r = %s[%d] multiply(x, y)\n", t, N, t, N, t, N);
  for (int i = 0; i < SETS * COUNT; i++)
    kl_sbf(&text, "  a%d = %s[%d] %s(%c)\n", i, t, N, functions[i % COUNT], of[i / COUNT]);
  kl_sb_puts(&text, "  ROOT t = (");
  for (int i = 0; i < SETS * COUNT; i++) kl_sbf(&text, "%s%s[%d]", i ? ", " : "", t, N);
  kl_sb_puts(&text, ") tuple(");
  for (int i = 0; i < SETS * COUNT; i++) kl_sbf(&text, "%sa%d", i ? ", " : "", i);
  kl_sb_puts(&text, ")\n}\n");
  kiln_module *m = parse_text();
  const char *ptx = kiln_artifact_text(compiled_for(cx, m, GPU, 0, text.p), KILN_TEXT_PTX, NULL);
  ck_assert_msg(occurrences(ptx, "call") && occurrences(ptx, ".func"), "%s calls nothing", t);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, strlen(ptx), targets[GPU]);
    ck_assert_msg(r.ok, "%s: %s", t, r.log);
  }
  kiln_module_destroy(&m);
  run_case((unsigned)_i);
}
END_TEST

START_TEST(one_function_is_not_called) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "f8e4m3fn", "f4e2m1fn", "c64", "c128"};
  static const char *const functions[] = {"power", "sine", "atan2", "remainder", "tanh"};
  const char *t = types[_i % 8], *f = functions[_i / 8];
  if ((*t == 'c' && _i / 8 == 3) || !share_has((uint64_t)_i, 2)) return;
  text.n = 0;
  kl_sbf(&text, "HloModule m\n\nENTRY kernel {\n  x = %s[65536] parameter(0)\n  y = %s[65536] parameter(1)\n", t, t);
  kl_sbf(&text, "  ROOT r = %s[65536] %s(x%s)\n}\n", t, f, _i / 8 == 1 || _i / 8 == 4 ? "" : ", y");
  kiln_module *m = parse_text();
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text.p);
  ck_assert_msg(!occurrences(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "call"), "%s of %s", f, t);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- few copies -----------------------------------------------------------------------------------------------------

// What is behind a contraction or in front of a transposition is long: reads that lie apart, and guarded ones.
static const struct {
  const char *type, *first; // `first`: makes v0 of a and b
  const char *a, *b;        // dimensions
  int m, n;
  const char *few, *many; // variables of the host's plan with few copies, and with many; `few` NULL: many it is
} copied[] = {
    {"f32", "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "19,7", "7,37", 19, 37, "row_block < 19,",
     "reg i <"},
    {"bf16", "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "32,5", "5,48", 32, 48, "row_block < 32,",
     "reg i <"},
    {"s8", "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "21,6", "33,6", 21, 33, "row_block < 21,",
     "reg i <"},
    {"f32", "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "19,9000", "9000,37", 19, 37, NULL,
     "reg i <"},
    {"f32", "transpose(a), dimensions={1,0}", "48,32", "1", 32, 48, "reg a < 2", "reg a < 8"},
    {"f64", "transpose(a), dimensions={1,0}", "35,41", "1", 41, 35, "reg a < 2", "reg a < 8"},
    {"f16", "transpose(a), dimensions={1,0}", "70,50", "1", 50, 70, "reg a < 2", "reg a < 4"},
};

static void put_long_code(unsigned row, int ops) {
  const char *t = copied[row].type;
  int m = copied[row].m, n = copied[row].n;
  text.n = 0;
  kl_sbf(&text, "HloModule m\nf {\n  a = %s[%s] parameter(0)\n  b = %s[%s] parameter(1)\n", t, copied[row].a, t,
         copied[row].b);
  kl_sbf(&text, "  c = %s[%d,%d] parameter(2)\n  z = %s[] constant(0)\n  v0 = %s[%d,%d] %s\n", t, m, n, t, t, m, n,
         copied[row].first);
  for (int i = 1; i <= ops; i++) {
    int by = 1 + i % 7;
    if (i % 3)
      kl_sbf(&text,
             "  r%d = %s[%d,%d] slice(c), slice={[%d:%d],[0:%d]}\n  s%d = %s[%d,%d] pad(r%d, z), padding=0_%dx0_0\n", i,
             t, m - by, n, by, m, n, i, t, m, n, i, by);
    else
      kl_sbf(&text, "  r%d = %s[%d,%d] transpose(c), dimensions={1,0}\n  s%d = %s[%d,%d] reshape(r%d)\n", i, t, n, m, i,
             t, m, n, i);
    kl_sbf(&text, "  u%d = %s[%d,%d] %s(s%d, c)\n  v%d = %s[%d,%d] %s(v%d, u%d)\n", i, t, m, n,
           i % 2 ? "multiply" : "subtract", i, i, t, m, n, i % 2 ? "maximum" : "add", i - 1, i);
  }
  kl_sbf(&text, "  ROOT r = %s[%d,%d] copy(v%d)\n}\nENTRY e {\n  a = %s[%s] parameter(0)\n  b = %s[%s] parameter(1)\n",
         t, m, n, ops, t, copied[row].a, t, copied[row].b);
  kl_sbf(&text, "  c = %s[%d,%d] parameter(2)\n  ROOT r = %s[%d,%d] fusion(a, b, c), kind=kLoop, calls=f\n}\n", t, m, n,
         t, m, n);
}

static void has_copies(kiln_module *m, const char *variables) {
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host", .keep = KILN_KEEP_PLAN};
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text.p);
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, NULL);
  ck_assert_msg(strstr(plan, variables) != NULL, "expected '%s':\n%s", variables, plan);
  kiln_artifact_destroy(&a);
}

// Not where code is short, nor where copies share most of the work.
START_TEST(long_code_has_few_copies) {
  if (!share_has((uint64_t)_i, 2)) return;
  put_long_code((unsigned)_i, 1);
  kiln_module *m = parse_text();
  has_copies(m, copied[_i].many);
  kiln_module_destroy(&m);
  put_long_code((unsigned)_i, 12);
  m = parse_text();
  has_copies(m, copied[_i].few ? copied[_i].few : copied[_i].many);
  if (copied[_i].few) run_both_and_check(cx, m, 3, 2 * (unsigned)_i, text.p);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  keep = KILN_KEEP_LLVM;
  return RUN_TESTS("long", EACH(make, drop), {functions_are_called_where_they_are_many, 7},
                   {one_function_is_not_called, 40}, {values_are_kept, KL_COUNT(chains)},
                   {results_are_stored_in_groups, 4}, {stores_wait_for_reads},
                   {concatenates_in_parts, KL_COUNT(concatenates)}, {code_grows_linearly}, {host_functions_are_bounded},
                   {lanes_lie_apart, KL_COUNT(apart)}, {long_code_has_few_copies, KL_COUNT(copied)});
}

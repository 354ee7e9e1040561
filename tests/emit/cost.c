// What kernels may cost, counted: instructions of PTX and SASS, and of what kind. Of kernels and targets some are tried
// by default, each kernel for one target at least; all with KILN_TEST_SHARE=4 (support/share.h).

#include "harness.h"
#include "support/share.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const costed[] = {"sm_80", "sm_90", "sm_100"};
enum { COSTED = 3 };

static unsigned ptx_instructions(const char *ptx) {
  unsigned n = 0;
  for (const char *p = ptx; *p; p += strcspn(p, "\n"), p += *p == '\n') {
    size_t size = strcspn(p, "\n");
    const char *word = p + (*p == '\t');
    if (*p == '\t' && (*word == '@' || (*word >= 'a' && *word <= 'z')) && memchr(p, ';', size)) n++;
  }
  return n;
}

// What lanes exchange, so that accesses of narrow types are wide and fill their sectors, costs three selections to a
// shuffle, and besides the conditions and addresses of those types' own: counted apart.
static unsigned shuffles(const char *ptx) {
  return occurrences(ptx, "shfl.sync.bfly");
}

static unsigned cost_of_exchanges(const char *ptx, unsigned besides) {
  return shuffles(ptx) ? 4 * shuffles(ptx) + besides : 0;
}

// No more than they have been, but for exchanges. The numbers are the instructions of PTX and SASS for sm_80, sm_90,
// sm_100, the larger ones of gcc's and clang's builds of the library, whose orders of independent instructions are not
// the same.
static const struct {
  const char *name;
  unsigned ptx[COSTED], sass[COSTED];
} examples[] = {
    {"axpy", {25, 25, 25}, {25, 26, 26}},
    {"bias_relu", {151, 151, 151}, {113, 114, 114}}, // of 32 elements at once
    {"causal_mask", {26, 26, 26}, {27, 28, 28}},
    {"complex_multiply", {27, 27, 27}, {26, 28, 28}},
    {"concatenate", {49, 49, 49}, {38, 41, 41}}, // of three bodies: a thread executes one of them
    {"dequantise_s4", {95, 95, 95}, {91, 91, 91}},
    {"gelu", {157, 139, 139}, {140, 123, 123}},
    {"gelu_erf", {161, 161, 161}, {153, 154, 154}},
    {"gelu_f32", {168, 168, 168}, {156, 157, 157}},
    {"multi_output", {354, 316, 316}, {280, 234, 234}},
    {"pad_slice", {41, 41, 41}, {38, 38, 38}}, // what lanes have of their neighbours
    {"quantise_f8", {259, 47, 47}, {223, 42, 42}},
    {"residual_dropout", {106, 106, 106}, {99, 102, 102}},
    {"scale_rows", {129, 129, 129}, {107, 109, 109}}, // of 16 elements at once
    {"swiglu", {148, 106, 106}, {131, 95, 95}},
    {"transpose", {86, 86, 86}, {71, 75, 75}}, // of 16 elements a thread
};

// Rows at their real size: 24 elements a lane, 32 and 32. Most of what softmax has beyond the last one's is for
// quotients of rare values.
static const struct {
  const char *name;
  unsigned ptx[COSTED], sass[COSTED];
} rows_of[] = {
    {"softmax_small", {752, 752, 752}, {1162, 1141, 1134}},
    {"softmax", {1004, 1004, 1004}, {1492, 1466, 1455}},
    {"row_reductions", {555, 555, 555}, {464, 483, 483}},
};

START_TEST(workloads_cost_no_more) {
  if (!share_has((uint64_t)_i, 2)) return;
  const char *target = costed[_i % COSTED];
  char file[64];
  snprintf(file, sizeof file, "../benchmarks/workloads/%s.hlo", rows_of[_i / COSTED].name);
  char *ptx = compile_example(file, target, NULL);
  unsigned n = ptx_instructions(ptx), most = rows_of[_i / COSTED].ptx[_i % COSTED];
  EXPECT(n <= most, "%s for %s: %u instructions of PTX, %u were enough", file, target, n, most);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, strlen(ptx), target);
    most = rows_of[_i / COSTED].sass[_i % COSTED];
    EXPECT(r.ok && r.sass <= (long)most, "%s for %s: %ld instructions of SASS, %u were enough", file, target, r.sass,
           most);
  }
  free(ptx);
}
END_TEST

static int is_module(const struct dirent *e) {
  size_t size = strlen(e->d_name);
  return size > 4 && strcmp(e->d_name + size - 4, ".hlo") == 0;
}

// All workloads at their real size for all kinds of targets, some of them at a time.
START_TEST(workloads_have_no_local_memory) {
  static const char *const assembled[] = {"sm_75", "sm_80", "sm_90", "sm_100"};
  struct dirent **found;
  int n = scandir(KL_TESTS "/../benchmarks/workloads", &found, is_module, alphasort), seen = 0;
  ck_assert_msg(n >= 25, "%d workloads", n);
  for (unsigned i = 0; i < 4 * (unsigned)n && ptxas_path(); i++) {
    if (!share_has(i, 16)) continue;
    const char *target = assembled[i % 4];
    char file[300];
    snprintf(file, sizeof file, "../benchmarks/workloads/%s", found[i / 4]->d_name);
    char *ptx = compile_example(file, target, NULL);
    ptxas_result r = ptxas_run(ptx, strlen(ptx), target);
    EXPECT(r.ok && !r.stack && !r.spill_stores, "%s for %s: %d bytes of stack, %d spilled: %s", file, target, r.stack,
           r.spill_stores, r.log);
    seen++;
    free(ptx);
  }
  printf("# %d assembled\n", seen);
  for (int i = 0; i < n; i++) free(found[i]);
  free(found);
}
END_TEST

START_TEST(examples_cost_no_more) {
  if (!share_has((uint64_t)_i, 2)) return;
  const char *target = costed[_i % COSTED];
  char file[64];
  snprintf(file, sizeof file, "%s.hlo", examples[_i / COSTED].name);
  char *ptx = compile_example(file, target, NULL);
  unsigned more = cost_of_exchanges(ptx, 13), n = ptx_instructions(ptx);
  unsigned most = examples[_i / COSTED].ptx[_i % COSTED] + more;
  ck_assert_msg(n <= most, "%s for %s: %u instructions of PTX, %u were enough", file, target, n, most);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, strlen(ptx), target);
    ck_assert_msg(r.ok, "%s", r.log);
    most = examples[_i / COSTED].sass[_i % COSTED] + more;
    ck_assert_msg(r.sass <= (long)most, "%s for %s: %ld instructions of SASS, %u were enough", file, target, r.sass,
                  most);
  }
  free(ptx);
}
END_TEST

// --- functions ------------------------------------------------------------------------------------------------------

// SASS of a kernel of one function for sm_90, no more than it has been: f32 (4 elements a thread), f32 in numerics
// fast, f64 (2 elements), f16 and bf16 (8 elements; 0: as f32 does it). 13 of them and the like are the kernel's own:
// accesses and addresses.
static const struct {
  const char *op;
  unsigned sass[5];
} functions[] = {
    {"exponential", {83, 47, 100, 95, 58}},  {"exponential-minus-one", {143, 143, 133, 0, 0}},
    {"exp10", {147, 47, 136, 0, 0}},         {"log", {102, 33, 167, 170, 82}},
    {"log-plus-one", {207, 207, 205, 0, 0}}, {"logistic", {115, 63, 125, 172, 83}},
    {"tanh", {125, 75, 183, 139, 90}},       {"sinh", {177, 177, 166, 0, 0}},
    {"cosh", {169, 169, 155, 0, 0}},         {"asinh", {532, 532, 489, 0, 0}},
    {"acosh", {409, 409, 418, 0, 0}},        {"atanh", {358, 358, 347, 0, 0}},
    {"erf", {124, 91, 215, 138, 106}},       {"sqrt", {95, 29, 111, 41, 57}},
    {"rsqrt", {65, 29, 99, 33, 57}},         {"cbrt", {147, 147, 112, 0, 0}},
    {"sine", {436, 358, 559, 131, 227}},     {"cosine", {436, 358, 554, 131, 234}},
    {"tan", {626, 626, 678, 0, 0}},          {"asin", {215, 215, 277, 0, 0}},
    {"acos", {227, 227, 280, 0, 0}},         {"atan", {272, 272, 302, 0, 0}},
    {"divide", {178, 48, 152, 76, 104}},     {"power", {623, 623, 552, 1327, 1320}},
    {"atan2", {500, 500, 499, 1739, 1731}},  {"remainder", {230, 230, 244, 0, 0}},
};

START_TEST(functions_cost_no_more) {
  if (!ptxas_path()) return;
  static const char *const types[] = {"f32", "f32", "f64", "f16", "bf16"};
  for (int i = 0; i < 5 && functions[_i].sass[i]; i++) {
    if (!share_has(5 * (uint64_t)_i + (uint64_t)i, 2)) continue;
    kiln_compile_params p = {.struct_size = sizeof p, .numerics = i == 1 ? KILN_NUMERICS_FAST : KILN_NUMERICS_STRICT};
    const char *op = functions[_i].op, *t = types[i];
    char text[512];
    bool two = !strcmp(op, "divide") || !strcmp(op, "power") || !strcmp(op, "atan2") || !strcmp(op, "remainder");
    snprintf(text, sizeof text,
             "HloModule m\n\nENTRY e {\n  p = %s[1048576] parameter(0)\n  q = %s[1048576] parameter(1)\n"
             "  ROOT r = %s[1048576] %s(p%s)\n}\n",
             t, t, t, op, two ? ", q" : "");
    kiln_context *cx = kiln_context_create(NULL);
    kiln_module *m = NULL;
    kiln_artifact *a = NULL;
    if (kiln_module_parse(cx, "cost.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
    if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text);
    const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
    ptxas_result r = ptxas_run(ptx, strlen(ptx), "sm_90");
    EXPECT(r.ok && r.sass <= (long)functions[_i].sass[i], "%s of %s%s: %ld instructions of SASS, %u were enough", op, t,
           i == 1 ? ", fast" : "", r.sass, functions[_i].sass[i]);
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
    kiln_context_destroy(&cx);
  }
}
END_TEST

// --- conversions ----------------------------------------------------------------------------------------------------

// Kernels of one conversion: instructions of SASS for 100 elements. sm_80 has no conversions to 8 bits, sm_100a has
// some to 4.
static const char *const converting[] = {"sm_80", "sm_90", "sm_100", "sm_100a"};
enum { CONVERTING = 4 };
static const struct {
  const char *from, *to;
  unsigned most[CONVERTING];
} conversions[] = {
    {"f32", "f8e4m3fn", {1175, 350, 350, 350}},    {"f32", "f8e5m2", {1282, 300, 300, 300}},
    {"f32", "f8e4m3", {1282, 350, 350, 350}},      {"f16", "f8e4m3fn", {1163, 238, 238, 238}},
    {"f16", "f8e5m2", {1369, 238, 238, 238}},      {"bf16", "f8e4m3fn", {1263, 388, 388, 388}},
    {"f8e4m3fn", "f16", {438, 138, 138, 138}},     {"f8e4m3fn", "bf16", {594, 288, 288, 288}},
    {"f8e4m3fn", "f32", {550, 250, 250, 250}},     {"f8e5m2", "f16", {138, 138, 138, 138}},
    {"f8e5m2", "bf16", {288, 288, 288, 288}},      {"f8e5m2", "f32", {250, 250, 250, 250}},
    {"f8e4m3fn", "f8e5m2", {1707, 182, 182, 182}}, {"f8e5m2", "f8e4m3fn", {1200, 282, 282, 282}},
    {"f8e4m3fnuz", "f16", {525, 513, 513, 513}},   {"f8e3m4", "bf16", {594, 588, 588, 588}},
    {"f4e2m1fn", "bf16", {438, 438, 438, 275}},    {"s4", "bf16", {219, 219, 219, 219}},
    {"u4", "f16", {216, 216, 216, 216}},           {"s8", "bf16", {263, 263, 263, 263}},
    {"s8", "f16", {219, 219, 219, 219}},           {"f32", "s8", {250, 150, 150, 150}},
    {"bf16", "u8", {338, 238, 238, 238}},          {"bf16", "s4", {300, 300, 300, 300}},
    {"bf16", "f8e5m2", {1369, 388, 388, 388}},     {"bf16", "f8e4m3", {1369, 338, 338, 338}},
    {"f32", "f4e2m1fn", {1350, 1350, 1350, 375}},  {"f32", "f8e4m3fnuz", {1225, 1225, 1225, 1225}},
    {"f32", "f8e3m4", {1282, 1282, 1282, 1282}},
};

START_TEST(conversions_cost_no_more) {
  if (!share_has((uint64_t)_i, 2)) return;
  const char *target = converting[_i % CONVERTING], *from = conversions[_i / CONVERTING].from,
             *to = conversions[_i / CONVERTING].to;
  char text[256];
  snprintf(text, sizeof text,
           "HloModule c\n\nENTRY c {\n  p = %s[1048576] parameter(0)\n  ROOT r = %s[1048576] %s\n}\n", from, to,
           "convert(p)");
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  size_t size;
  if (kiln_module_parse(cx, "c.hlo", text, strlen(text), &m) != KILN_OK || kiln_compile(cx, m, &p, &a) != KILN_OK)
    give_up(0, "compiling", cx, text);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, size, target);
    ck_assert_msg(r.ok, "%s", r.log);
    unsigned most = conversions[_i / CONVERTING].most[_i % CONVERTING];
    unsigned lanes = kiln_artifact_manifest(a)->launches[0].lanes, more = cost_of_exchanges(ptx, 8);
    ck_assert_msg(4 * shuffles(ptx) <= lanes, "%s to %s for %s: %u shuffles for %u elements", from, to, target,
                  shuffles(ptx), lanes);
    unsigned n = (unsigned)(((r.sass - more) * 100 + lanes - 1) / lanes);
    ck_assert_msg(n <= most, "%s to %s for %s: %u instructions of SASS for 100 elements, %u were enough", from, to,
                  target, n, most);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// More blocks than any GPU has multiprocessors, which ptxas holds registers down for; and f64 beside a tile of f8.
static const char *const wide[] = {
    "p = f8e8m0fnu[400001] parameter(0) ROOT r = c128[400001] convert(p)",
    "p = u8[400001] parameter(0) ROOT r = f64[400001] convert(p)",
    "p = bf16[400001] parameter(0) ROOT r = c128[400001] convert(p)",
    "p = f8e3m4[63,8,11] parameter(0) e = f8e3m4[63,8,11]{0,2,1} exponential(p) q = f64[63,8,11]{1,2,0} parameter(1) "
    "y = f64[5544] reshape(q) x = f64[5544] exponential(y) c = s32[63,8,11] convert(p) "
    "b = pred[63,8,11] compare(c, c), direction=GE n = pred[63,8,11] not(b) "
    "v = pred[63,8,11] reverse(b), dimensions={0,2} o = pred[63,8,11] maximum(n, v) "
    "ROOT r = (f64[5544], f8e3m4[63,8,11]{0,2,1}, pred[63,8,11]) tuple(x, e, o)",
};

START_TEST(wide_results_do_not_spill) {
  if (!share_has((uint64_t)_i, 2)) return;
  const char *target = costed[_i % COSTED];
  char text[1024];
  snprintf(text, sizeof text, "HloModule c\nENTRY c { %s }\n", wide[_i / COSTED]);
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  size_t size;
  if (kiln_module_parse(cx, "c.hlo", text, strlen(text), &m) != KILN_OK || kiln_compile(cx, m, &p, &a) != KILN_OK)
    give_up(0, "compiling", cx, text);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, size, target);
    ck_assert_msg(r.ok && !r.spill_stores, "%s for %s: %d bytes are spilt: %s", text, target, r.spill_stores, r.log);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- patterns -------------------------------------------------------------------------------------------------------

// How often each word stands in the PTX for sm_90.
enum { SOME = -1 };
typedef struct word {
  const char *text;
  int count; // or SOME
} word;

// i: 0 to 4095, j: 4095 times; p: any integer. r is divided by 16.
#define INTEGERS                                                                                                       \
  "i = s32[4096] iota(), iota_dimension=0 n = s32[] constant(4095) j = s32[4096] broadcast(n), dimensions={} "         \
  "p = s32[4096] parameter(0) q = pred[4096] parameter(1) h = s32[] constant(100) "                                    \
  "k = s32[4096] broadcast(h), dimensions={} "
#define DIVIDED(type)                                                                                                  \
  " c = " type "[] constant(16) b = " type "[4096] broadcast(c), dimensions={} ROOT d = " type "[4096] divide(r, b)"
// clang-format off
#define NATURAL(text) INTEGERS "r = s32[4096] " text DIVIDED("s32"), {{"shr.s32", 0}, {"shr.s64", 0}}
#define SIGNED(text)  INTEGERS "r = s32[4096] " text DIVIDED("s32"), {{"shr.s32", SOME}}
// clang-format on

static const struct {
  const char *body;
  word words[8];
} rows[] = {
    // one wide product for arrays with one index, and one addition for each
    {"p = f32[4096] parameter(0) q = f32[4096] parameter(1) ROOT r = f32[4096] add(p, q)",
     {{"mul.wide.u32", 1}, {"add.s64", 3}, {"cvt.u64", 0}, {"shl.b64", 0}, {"mul.lo.s64", 0}, {"shl.b32", 1}}},
    {"p = bf16[8192] parameter(0) ROOT r = f32[8192] convert(p)",
     {{"mul.wide.u32", 2}, {"add.s64", 2}, {"cvt.u64", 0}, {"mul.lo.s64", 0}}},
    // a constant in the index is part of the address
    {"p = s4[131104] parameter(0) ROOT r = s4[131072] slice(p), slice={[8:131080]}", {{"mul.wide.u32", 1}, {"+4]", 1}}},
    // neighbours' elements: one vector of a thread's own, one of the warp's
    {"p = f32[4100] parameter(0) ROOT r = f32[4096] slice(p), slice={[3:4099]}",
     {{"ld.global.nc.v4.b32", 2}, {"shfl.sync", 1}, {"setp", 1}}},
    // the same of bytes, in rows that begin anywhere: words slide, and one element of 16 may be padding
    {"p = u8[64,1023] parameter(0) z = u8[] parameter(1) ROOT r = u8[64,1024] pad(p, z), padding=0_0x0_1",
     {{"ld.global.nc.v4.b32", 2}, {"shfl.sync", 4}, {"prmt.b32", 6}, {"ld.global.nc.b8", 1}, {"st.global", 1}}},
    // where a row ends among a lane's elements it loads those of the next one, too
    {"p = u8[64,1024] parameter(0) ROOT r = u8[64,1022] slice(p), slice={[0:64],[1:1023]}",
     {{"ld.global.nc.v4.b32", 4}, {"shfl.sync", 4}, {"prmt.b32", 8}}},
    // taps of a window along rows that begin anywhere: each is one load of a lane's own element, with no select
    {"p = f32[512,2048] parameter(0) z = f32[] parameter(1) "
     "ROOT r = f32[512,2043] reduce-window(p, z), window={size=1x6}, to_apply=sum",
     {{"ld.global.nc.b32", 6 + 1}, {"v4.b32", 0}, {"shfl.sync", 0}, {"selp", 0}}},
    // scalars need none at all
    {"p = f32[] parameter(0) ROOT r = f32[4096] broadcast(p), dimensions={}", {{"mul.wide.u32", 1}, {"add.s64", 1}}},
    // the columns of a table: the row number is not needed
    {"ROOT r = s32[64,1024] iota(), iota_dimension=1", {{"and.b32", 1}, {"shr", 0}, {"sub.s32", 0}, {"mul.lo", 0}}},
    // a dimension between two others
    {"ROOT r = s32[64,32,512] iota(), iota_dimension=1", {{"bfe.u32", 1}, {"sub.s32", 0}, {"mul.lo", 0}}},
    // a digit of an odd number: a product, and no more
    {"p = f32[63] parameter(0) ROOT r = f32[4096,63] broadcast(p), dimensions={1}",
     {{"mul.hi.u32", 4}, {"shr", 0}, {"sub.s32", 0}, {"mul.lo.s32", 4}}},
    // three of four lanes are never padding
    {"p = f32[64,2048] parameter(0) z = f32[] parameter(1) a = f32[64,2050] pad(p, z), padding=0_0x1_1 "
     "ROOT r = f32[64,2048] slice(a), slice={[0:64], [2:2050]}",
     {{"setp", 3}, {"selp", 3}}}, // and of the warp's last lane: is it, and is there a next warp
    // what counts from zero has no sign
    {"i = s32[4096] iota(), iota_dimension=0 c = s32[] constant(16) b = s32[4096] broadcast(c), dimensions={} "
     "ROOT r = s32[4096] remainder(i, b)",
     {{"and.b32", 4}, {"shr", 0}, {"sub.s32", 0}, {"rem.", 0}, {"setp", 0}}},
    {"i = s32[4096] iota(), iota_dimension=0 c = s32[] constant(16) b = s32[4096] broadcast(c), dimensions={} "
     "ROOT r = s32[4096] divide(i, b)",
     {{"shr.s32", 0}, {"div.", 0}, {"setp", 0}, {"mul.hi", 0}}},
    {"i = s64[4096] iota(), iota_dimension=0 c = s64[] constant(12) b = s64[4096] broadcast(c), dimensions={} "
     "ROOT r = s64[4096] remainder(i, b)",
     {{"rem.", 0}, {"shr.s64", 0}, {"mul.hi.s64", 0}}},
    // what may be negative keeps it
    {"p = s32[4096] parameter(0) c = s32[] constant(16) b = s32[4096] broadcast(c), dimensions={} "
     "ROOT r = s32[4096] divide(p, b)",
     {{"shr.s32", 8}, {"div.", 0}}},
    // so does what is made of them, if it does not wrap
    {NATURAL("and(i, v) v = s32[4096] multiply(i, i)")},
    {NATURAL("remainder(i, v) v = s32[4096] add(i, k)")},
    {NATURAL("divide(i, v) v = s32[4096] add(i, k)")},
    {NATURAL("add(i, j)")},
    {NATURAL("subtract(j, i)")},
    {NATURAL("multiply(i, j)")},
    {NATURAL("minimum(i, j)")},
    {NATURAL("maximum(p, i)")},
    {NATURAL("select(q, i, j)")},
    {NATURAL("concatenate(x, y), dimensions={0} x = s32[4000] iota(), iota_dimension=0 "
             "y = s32[96] broadcast(h), dimensions={}")},
    {INTEGERS "r = s64[4096] convert(i)" DIVIDED("s64"), {{"shr.s64", 0}, {"shr.s32", 0}}},
    {INTEGERS "u = u32[4096] convert(i) r = s64[4096] convert(u)" DIVIDED("s64"), {{"shr.s64", 0}, {"shr.s32", 0}}},
    {SIGNED("and(p, v) v = s32[4096] subtract(i, k)")},
    {SIGNED("remainder(p, j)")},
    {SIGNED("divide(p, v) v = s32[4096] add(i, k)")},
    {SIGNED("add(i, p)")},
    {SIGNED("subtract(i, k)")},
    {SIGNED("multiply(m, j) m = s32[4096] multiply(i, j)")},
    {SIGNED("minimum(p, i)")},
    {SIGNED("select(q, i, p)")},
    {INTEGERS "x = s16[4096] convert(m) m = s32[4096] multiply(i, k) r = s32[4096] convert(x)" DIVIDED("s32"),
     {{"shr.s32", SOME}}},
};

static kiln_module *module_of(kiln_context *cx, const char *body, char *text, size_t size) {
  kiln_module *m = NULL;
  snprintf(text, size,
           "HloModule m\n\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
           "ENTRY fusion {\n%s\n}\n",
           body);
  if (kiln_module_parse(cx, "cost.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  return m;
}

START_TEST(patterns) {
  char text[1024];
  if (!share_has((uint64_t)_i, 1)) return;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = module_of(cx, rows[_i].body, text, sizeof text);
  const char *ptx = kiln_artifact_text(compiled_for(cx, m, machines[1], 0, text), KILN_TEXT_PTX, NULL);
  for (const word *w = rows[_i].words; w->text; w++) {
    int n = (int)occurrences(ptx, w->text);
    ck_assert_msg(w->count == SOME ? n > 0 : n == w->count, "%s stands %d times, not %d, in\n%s\n%.2000s", w->text, n,
                  w->count, text, ptx);
  }
  run_gpu_and_check(cx, m, machines[1], 1, text);
  if (share_has((uint64_t)_i, 4)) run_gpu_and_check(cx, m, machines[0], 1, text);
  if (share_has((uint64_t)_i + 1, 4)) run_and_check(cx, m, 1, text);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- what the intervals must not believe ----------------------------------------------------------------------------

// %s: a signed type, three times. Sums, products and conversions that wrap, and bounds beyond the type.
static const char *const wrapping[] = {
    "i = %1$s[5000] iota(), iota_dimension=0 c = %1$s[] constant(7) b = %1$s[5000] broadcast(c), dimensions={} "
    "ROOT r = %1$s[5000] remainder(i, b)",
    "i = %1$s[5000] iota(), iota_dimension=0 m = %1$s[5000] multiply(i, i) n = %1$s[5000] multiply(m, m) "
    "c = %1$s[] constant(4) b = %1$s[5000] broadcast(c), dimensions={} ROOT r = %1$s[5000] divide(n, b)",
    "i = %1$s[5000] iota(), iota_dimension=0 c = %1$s[] constant(60) b = %1$s[5000] broadcast(c), dimensions={} "
    "s = %1$s[5000] subtract(i, b) d = %1$s[] constant(8) e = %1$s[5000] broadcast(d), dimensions={} "
    "ROOT r = %1$s[5000] remainder(s, e)",
    "i = %1$s[5000] iota(), iota_dimension=0 c = %1$s[] constant(100) b = %1$s[5000] broadcast(c), dimensions={} "
    "s = %1$s[5000] add(i, b) d = %1$s[] constant(8) e = %1$s[5000] broadcast(d), dimensions={} "
    "ROOT r = %1$s[5000] divide(s, e)",
    "i = u64[5000] iota(), iota_dimension=0 c = u64[] constant(18446744073709551000) "
    "b = u64[5000] broadcast(c), dimensions={} s = u64[5000] maximum(i, b) t = %1$s[5000] convert(s) "
    "d = %1$s[] constant(16) e = %1$s[5000] broadcast(d), dimensions={} ROOT r = %1$s[5000] divide(t, e)",
    "i = s32[5000] iota(), iota_dimension=0 c = s32[] constant(-3) b = s32[5000] broadcast(c), dimensions={} "
    "s = s32[5000] maximum(i, b) u = u8[5000] convert(s) t = %1$s[5000] convert(u) d = %1$s[] constant(5) "
    "e = %1$s[5000] broadcast(d), dimensions={} ROOT r = %1$s[5000] remainder(t, e)",
    "p = %1$s[5000] parameter(0) q = u64[5000] convert(p) t = %1$s[5000] convert(q) d = %1$s[] constant(4) "
    "e = %1$s[5000] broadcast(d), dimensions={} x = %1$s[5000] and(t, e) y = %1$s[5000] divide(t, e) "
    "ROOT r = %1$s[5000] add(x, y)",
    "p = %1$s[5000] parameter(0) c = pred[5000] parameter(1) i = %1$s[5000] iota(), iota_dimension=0 "
    "s = %1$s[5000] select(c, i, p) d = %1$s[] constant(2) e = %1$s[5000] broadcast(d), dimensions={} "
    "ROOT r = %1$s[5000] remainder(s, e)",
};

START_TEST(wrapping_is_seen) {
  static const char *const types[] = {"s8", "s16", "s32", "s64"};
  char body[1024], text[1200];
  kiln_context *cx = kiln_context_create(NULL);
  for (size_t t = 0; t < KL_COUNT(types); t++) {
    if (!share_has((uint64_t)_i * KL_COUNT(types) + t, 2)) continue;
    snprintf(body, sizeof body, wrapping[_i], types[t]);
    kiln_module *m = module_of(cx, body, text, sizeof text);
    run_gpu_and_check(cx, m, machines[1], 1, text);
    run_and_check(cx, m, 1, text);
    kiln_module_destroy(&m);
  }
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("cost", NO_FRAME, {examples_cost_no_more, KL_COUNT(examples) * COSTED},
                   {workloads_cost_no_more, KL_COUNT(rows_of) * COSTED}, {workloads_have_no_local_memory},
                   {functions_cost_no_more, KL_COUNT(functions)},
                   {conversions_cost_no_more, KL_COUNT(conversions) * CONVERTING},
                   {wide_results_do_not_spill, KL_COUNT(wide) * COSTED}, {patterns, KL_COUNT(rows)},
                   {wrapping_is_seen, KL_COUNT(wrapping)});
}

// Element counts that come at run time: one kernel for all of them.
#include "both.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/share.h"
#include <sys/mman.h>
#include <unistd.h>

// --- run-time element counts --------------------------------------------------------------------------------------

// %d is the size of the slowest dimension. `row`: elements of one of it.
static const struct {
  const char *name, *text;
  int row;
} counted[] = {
    {"vector", "ENTRY e { x = f32[%d] parameter(0) y = f32[%d] parameter(1) ROOT r = f32[%d] subtract(x, y) }", 1},
    {"bias",
     "ENTRY e { x = f32[%d,37] parameter(0) b = f32[37] parameter(1) c = f32[%d,37] broadcast(b), dimensions={1} "
     "ROOT r = f32[%d,37] add(x, c) }",
     37},
    {"scaled by a scalar",
     "ENTRY e { x = s16[%d,6] parameter(0) n = s16[] parameter(1) c = s16[%d,6] broadcast(n), dimensions={} "
     "ROOT r = s16[%d,6] multiply(x, c) }",
     6},
    {"numbers of rows and columns",
     "ENTRY e { x = s32[%d,5] parameter(0) i = s32[%d,5] iota(), iota_dimension=0 j = s32[%d,5] iota(), "
     "iota_dimension=1 t = s32[%d,5] multiply(i, j) ROOT r = s32[%d,5] add(x, t) }",
     5},
    {"several results",
     "ENTRY e { x = f32[%d,3] parameter(0) a = f32[%d,3] negate(x) p = pred[%d,3] compare(a, x), direction=LT "
     "h = f64[%d,3] convert(x) ROOT r = (f32[%d,3], pred[%d,3], f64[%d,3]) tuple(a, p, h) }",
     3},
    {"nibbles", "ENTRY e { x = s4[%d,6] parameter(0) y = s4[%d,6] parameter(1) ROOT r = s4[%d,6] add(x, y) }", 6},
    {"the slowest dimension is the last one",
     "ENTRY e { x = f32[7,%d]{0,1} parameter(0) b = f32[7] parameter(1) c = f32[7,%d]{0,1} broadcast(b), "
     "dimensions={0} "
     "ROOT r = f32[7,%d]{0,1} maximum(x, c) }",
     7},
    {"between scalars",
     "ENTRY e { x = s32[%d] parameter(0) lo = s32[] constant(-5) hi = s32[] parameter(1) ROOT r = s32[%d] clamp(lo, x, "
     "hi) }",
     1},
    {"rows made of an array that does not grow",
     "ENTRY e { x = f32[%d,12] parameter(0) w = f32[3,4] parameter(1) t = f32[4,3] transpose(w), dimensions={1,0} "
     "v = f32[12] reshape(t) c = f32[%d,12] broadcast(v), dimensions={1} ROOT r = f32[%d,12] multiply(x, c) }",
     12},
    {"a constant of equal elements",
     "ENTRY e { x = f32[%d,2] parameter(0) k = f32[] constant(2.5) c = f32[%d,2] broadcast(k), dimensions={} "
     "ROOT r = f32[%d,2] divide(x, c) }",
     2},
    {"a fusion of ENTRY",
     "f { p = bf16[] parameter(0) q = bf16[%d,9] parameter(1) c = bf16[%d,9] broadcast(p), dimensions={} "
     "ROOT r = bf16[%d,9] multiply(q, c) }\n"
     "ENTRY e { x = bf16[%d,9] parameter(0) s = bf16[] parameter(1) ROOT r = bf16[%d,9] fusion(s, x), kind=kLoop, "
     "calls=f }",
     9},
    {"functions", "ENTRY e { x = bf16[%d,8] parameter(0) t = bf16[%d,8] tanh(x) ROOT r = bf16[%d,8] add(t, x) }", 8},
};

START_TEST(one_kernel_serves_every_count) {
  static const int sizes[] = {0, 1, 2, 3, 7, 64, 127, 128, 129, 511, 513, 1000};
  const kiln_compile_params p = {.max_count = 1 << 20};
  char text[2000];
  spell(text, sizeof text, counted[_i].text, 4);
  kiln_module *four = parse(text);
  both c = compile_both(four, p, "sm_90");
  const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
  ck_assert_int_eq(f->count_unit, counted[_i].row);
  // `grid` is that of the largest count.
  const kiln_launch *l = &f->launches[0];
  int64_t whole = f->max_count / l->count_whole;
  ck_assert_int_eq(l->grid[0], (whole + (f->max_count - whole * l->count_whole + l->count_rest - 1) / l->count_rest) *
                                   l->count_blocks);
  assembles(c.gpu);
  for (size_t i = 0; i < 2 * KL_COUNT(sizes); i++) {
    spell(text, sizeof text, counted[_i].text, sizes[i / 2]);
    kiln_module *m = parse(text);
    buffers b = make_buffers(m, i);
    run_on(i % 2, &c, b.param, b.result, (int64_t)sizes[i / 2] * counted[_i].row);
    expect_right(m, &b, b.param, counted[_i].name);
    drop_buffers(&b);
    kiln_module_destroy(&m);
  }
  drop_both(&c);
  kiln_module_destroy(&four);
}
END_TEST

// Fewer elements at most than a thread takes.
START_TEST(tiny_counts) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[3] parameter(0) y = s4[3] parameter(1) f = f32[3] convert(y) "
                         "ROOT r = f32[3] add(x, f) }");
  both c = compile_both(m, (kiln_compile_params){.max_count = 3}, "sm_80");
  for (int64_t n = 0; n <= 3; n++)
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
      const float x[4] = {1, 2, 3, 4};
      const uint8_t y[2] = {0x2f, 0x07}; // -1, 2, 7
      const float want[4] = {0, 4, 10, -1};
      float r[4] = {-1, -1, -1, -1};
      const void *params[] = {x, y};
      void *results[] = {r};
      run_on(on_gpu, &c, params, results, n);
      for (int64_t i = 0; i < 4; i++) ck_assert_float_eq(r[i], i < n ? want[i] : -1);
    }
  // An odd count of nibbles has a last byte.
  const float x[4] = {0};
  float r[4];
  const void *params[] = {x, NULL};
  void *results[] = {r};
  kiln_run_params rp = {.struct_size = sizeof rp, .count = 1};
  ck_assert_int_eq(kiln_kernel_run(cx, c.k, params, results, &rp), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "parameter 1: expected an address, found 0"), "%s", last_finding());
  drop_both(&c);
  kiln_module_destroy(&m);
}
END_TEST

static const struct {
  const char *text, *message;
} not_counted[] = {
    {"ENTRY e { x = f32[4,4] parameter(0) ROOT r = f32[4,4] broadcast(x), dimensions={1,0} }",
     "parameter 0 lies otherwise in memory than row behind row"},
    {"ENTRY e { x = f32[2] parameter(0) t = (f32[2], f32[2]) constant(({1, 2}, {3, 3})) c = f32[2] "
     "get-tuple-element(t), index=0 ROOT r = f32[2] add(x, c) }",
     "constant: an array of different values"},
    {"ENTRY e { x = f32[2] parameter(0) t = (f32[2], f32[1]) constant(({3, 3}, {1})) c = f32[2] "
     "get-tuple-element(t), index=0 ROOT r = f32[2] add(x, c) }",
     NULL},
    {"ENTRY e { x = f32[4,5] parameter(0) ROOT r = f32[5,4] transpose(x), dimensions={1,0} }",
     "parameter 0 lies otherwise in memory than row behind row"},
    {"ENTRY e { x = f32[4,5] parameter(0) ROOT r = f32[4,5] reverse(x), dimensions={0} }",
     "reverse: it is not made row by row along the results' slowest dimension"},
    {"ENTRY e { x = f32[5,5] parameter(0) y = f32[4,5] slice(x), slice={[0:4],[0:5]} ROOT r = f32[4,5] add(y, y) }",
     "slice: it is not made row by row"},
    {"ENTRY e { x = f32[4,5] parameter(0) y = f32[4,5] slice(x), slice={[0:4],[0:5]} ROOT r = f32[4,5] add(x, y) }",
     NULL},
    {"a { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n"
     "ENTRY e { x = f32[4,5] parameter(0) z = f32[] constant(0) b = f32[5] reduce(x, z), dimensions={0}, to_apply=a "
     "c = f32[4,5] broadcast(b), dimensions={1} ROOT r = f32[4,5] add(x, c) }",
     "parameter: it is needed row by row, and otherwise, too"},
    {"a { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n"
     "ENTRY e { x = f32[4,5] parameter(0) z = f32[] constant(0) "
     "ROOT b = f32[4,5] reduce-window(x, z), window={size=1x5 pad=0_0x4_0}, to_apply=a }",
     "reduce-window: it is not made row by row"},
    {"ENTRY e { x = f32[4,5] parameter(0) i = s32[4] parameter(1) "
     "ROOT r = f32[5,4] gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,5} }",
     "gather: it is not made row by row"},
    {"ENTRY e { x = f32[4,5] parameter(0) i = s32[] parameter(1) z = s32[] constant(0) y = f32[2,5] dynamic-slice(x, "
     "i, "
     "z), dynamic_slice_sizes={2,5} ROOT r = f32[2,5] add(y, y) }",
     "dynamic-slice: it is not made row by row"},
    {"ENTRY e { x = f32[4,5] parameter(0) y = f32[4,5] parameter(1) ROOT c = f32[8,5] concatenate(x, y), "
     "dimensions={0} }",
     "concatenate: it is not made row by row"},
    {"ENTRY e { x = f32[4,5] parameter(0) z = f32[] constant(0) ROOT c = f32[6,5] pad(x, z), padding=1_1x0_0 }",
     "pad: it is not made row by row"},
    {"ENTRY e { x = f32[2] parameter(0) c = f32[2] constant({1, 2}) ROOT r = f32[2] add(x, c) }",
     "constant: an array of different values"},
    {"ENTRY e { x = f32[20] parameter(0) ROOT r = f32[4,5] reshape(x) }", "reshape: it is not made row by row"},
    {"ENTRY e { x = s4[4,5] parameter(0) ROOT r = s4[4,5] negate(x) }",
     "rows of 5 elements of 4 bits end inside a byte"},
    {"ENTRY e { x = f32[] parameter(0) b = u8[4] bitcast-convert(x) ROOT r = u8[4] add(b, b) }",
     "bitcast-convert: it is not made row by row"},
    {"ENTRY e { x = f32[] parameter(0) ROOT r = f32[] negate(x) }", "results without dimensions or elements"},
    {"ENTRY e { x = f32[4,0] parameter(0) ROOT r = f32[4,0] negate(x) }", "results without dimensions or elements"},
    {"ENTRY e { x = f32[4] parameter(0) y = f32[4] negate(x) z = f32[2,2] reshape(y) ROOT r = (f32[4], f32[2,2]) "
     "tuple(y, z) }",
     "results of different numbers of rows"},
    {"ENTRY e { x = f32[4]{0} parameter(0) s = f32[] parameter(1) b = f32[1] bitcast(s) n = f32[1] negate(b) "
     "t = f32[] bitcast(n) c = f32[4] broadcast(t), dimensions={} ROOT r = f32[4] add(x, c) }",
     NULL},
    {"ENTRY e { x = f32[4,<=5] parameter(0) ROOT r = f32[4,<=5] negate(x) }", "dimension 1 is dynamic (<=5)"},
    {"ENTRY e { x = f32[?,5] parameter(0) ROOT r = f32[?,5] negate(x) }", "rows of unknown number (?) have no bound"},
    {"f { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }\nENTRY e { x = f32[4] parameter(0) "
     "a = f32[4] fusion(x), kind=kLoop, calls=f ROOT b = f32[4] fusion(a), kind=kLoop, calls=f }",
     "a run-time element count takes one kernel, this module needs 2"},
};

START_TEST(what_has_no_count_is_refused) {
  char text[2000];
  snprintf(text, sizeof text, "HloModule m\n%s", not_counted[_i].text);
  kiln_module *m = parse(text);
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .max_count = 1000};
  kiln_status st = kiln_compile(cx, m, &p, &a);
  if (not_counted[_i].message) {
    ck_assert_int_eq(st, KILN_E_UNSUPPORTED);
    ck_assert_msg(strstr(last_finding(), not_counted[_i].message) != NULL, "%s", last_finding());
  } else {
    ck_assert_msg(st == KILN_OK, "%s", last_finding());
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(counts_are_checked) {
  static const struct {
    int64_t count;
    const char *message;
  } rows[] = {
      {-5, "count is -5: expected a multiple of 5 from 0 to 1000"},
      {7, "count is 7: expected a multiple of 5"},
      {1005, "count is 1005: expected a multiple of 5 from 0 to 1000"},
  };
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[4,5] parameter(0) ROOT r = f32[4,5] negate(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.max_count = 1004}, "host"), *fixed = NULL;
  kiln_kernel *k = NULL;
  float in[20] = {0}, out[20];
  const void *params[] = {in};
  void *results[] = {out};
  ck_assert_int_eq(kiln_artifact_manifest(a)->max_count, 1000);
  ck_assert_int_eq(kiln_kernel_load(cx, a, &k), KILN_OK);
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    kiln_run_params rp = {.struct_size = sizeof rp, .count = rows[i].count};
    ck_assert_int_eq(kiln_kernel_run(cx, k, params, results, &rp), KILN_E_INVALID);
    ck_assert_msg(strstr(last_finding(), rows[i].message) != NULL, "%s", last_finding());
  }
  kiln_kernel_destroy(&k);
  fixed = compile(m, (kiln_compile_params){0}, "host");
  ck_assert_int_eq(kiln_kernel_load(cx, fixed, &k), KILN_OK);
  kiln_run_params rp = {.struct_size = sizeof rp, .count = 20};
  ck_assert_int_eq(kiln_kernel_run(cx, k, params, results, &rp), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "expected 0, the artifact has a fixed element count") != NULL, "%s",
                last_finding());
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&fixed);
  kiln_compile_params p = {.struct_size = sizeof p, .max_count = 4};
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "max_count is 4: expected at least one row of 5 elements") != NULL, "%s",
                last_finding());
  p.max_count = -1;
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_INVALID);
  kiln_module_destroy(&m);
}
END_TEST

// More elements than 32 bits count.
START_TEST(huge_counts_take_64_bits) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = u8[4,5] parameter(0) ROOT r = u8[4,5] not(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.max_count = 1ll << 33}, "sm_90");
  ck_assert_int_eq(kiln_artifact_manifest(a)->max_count, (1ll << 33) / 5 * 5);
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "shr.u64"));
  assembles(a);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- rows -----------------------------------------------------------------------------------------------------------

#define ADD    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) } "
#define MAX    "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) } "
#define ZERO   "z = f32[] constant(0) "
#define LOWEST "l = f32[] constant(-inf) "
#define SOFTMAX(n)                                                                                                     \
  (MAX ADD "ENTRY e { x = f32[%d," #n "] parameter(0) " ZERO LOWEST                                                    \
           "m = f32[%d] reduce(x, l), dimensions={1}, to_apply=max c = f32[%d," #n "] broadcast(m), dimensions={0} "   \
           "d = f32[%d," #n "] subtract(x, c) q = f32[%d," #n "] exponential(d) "                                      \
           "s = f32[%d] reduce(q, z), dimensions={1}, to_apply=add t = f32[%d," #n "] broadcast(s), dimensions={0} "   \
           "ROOT y = f32[%d," #n "] divide(q, t) }")
#define SUM(n)                                                                                                         \
  (ADD "ENTRY e { x = f32[%d," #n "] parameter(0) " ZERO                                                               \
       "ROOT y = f32[%d] reduce(x, z), dimensions={1}, to_apply=add }")

// %d is the number of rows. `few`: a launch has no more blocks than rows ask for.
static const struct {
  const char *name, *text;
  int row; // elements of the first result
  bool few;
  kl_strategy strategy;
} rows[] = {
    {"short sums", SUM(37), 1, true, {0}},
    {"sums of one element", SUM(1), 1, true, {0}},
    {"sums of nothing", SUM(0), 1, false, {0}},
    {"sums of a warp", SUM(1000), 1, true, {0}},
    {"sums of a block", SUM(3000), 1, true, {0}},
    {"sums of several blocks, the last joins", SUM(3000), 1, true, {.split = 4}},
    {"sums of several blocks, a launch joins", SUM(3000), 1, true, {.split = 4, .two_launches = true}},
    {"sums of a cluster", SUM(4000), 1, true, {.split = 2, .cluster = true}},
    {"softmax of many rows in a warp", SOFTMAX(6), 6, true, {0}},
    {"softmax of odd rows", SOFTMAX(131), 131, true, {0}},
    {"softmax of rows in several warps", SOFTMAX(1040), 1040, true, {0}},
    {"softmax of rows in a cluster", SOFTMAX(3000), 3000, true, {.split = 2, .cluster = true}},
    {"softmax of 16 bits",
     MAX ADD "ENTRY e { h = bf16[%d,48] parameter(0) x = f32[%d,48] convert(h) " ZERO LOWEST
             "m = f32[%d] reduce(x, l), dimensions={1}, to_apply=max c = f32[%d,48] broadcast(m), dimensions={0} "
             "d = f32[%d,48] subtract(x, c) q = f32[%d,48] exponential(d) "
             "s = f32[%d] reduce(q, z), dimensions={1}, to_apply=add t = f32[%d,48] broadcast(s), dimensions={0} "
             "y = f32[%d,48] divide(q, t) ROOT r = bf16[%d,48] convert(y) }",
     48,
     true,
     {0}},
    {"argmax",
     "f { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) "
     "g = pred[] compare(a, b), direction=GE v = f32[] select(g, a, b) k = s32[] select(g, i, j) "
     "ROOT r = (f32[], s32[]) tuple(v, k) } "
     "ENTRY e { x = f32[%d,75] parameter(0) n = s32[%d,75] iota(), iota_dimension=1 " LOWEST "o = s32[] constant(0) "
     "p = (f32[%d], s32[%d]) reduce(x, n, l, o), dimensions={1}, to_apply=f "
     "ROOT k = s32[%d] get-tuple-element(p), index=1 }",
     1,
     true,
     {0}},
    {"layer norm with its mean",
     ADD "ENTRY e { x = f32[%d,130] parameter(0) w = f32[130] parameter(1) b = f32[130] parameter(2) " ZERO
         "k = f32[] constant(130) kn = f32[%d] broadcast(k), dimensions={} "
         "s = f32[%d] reduce(x, z), dimensions={1}, to_apply=add m = f32[%d] divide(s, kn) "
         "c = f32[%d,130] broadcast(m), dimensions={0} d = f32[%d,130] subtract(x, c) q = f32[%d,130] multiply(d, d) "
         "v = f32[%d] reduce(q, z), dimensions={1}, to_apply=add u = f32[%d] divide(v, kn) h = f32[%d] rsqrt(u) "
         "i = f32[%d,130] broadcast(h), dimensions={0} j = f32[%d,130] multiply(d, i) "
         "wb = f32[%d,130] broadcast(w), dimensions={1} bb = f32[%d,130] broadcast(b), dimensions={1} "
         "o = f32[%d,130] multiply(j, wb) y = f32[%d,130] add(o, bb) "
         "ROOT r = (f32[%d,130], f32[%d]) tuple(y, m) }",
     130,
     true,
     {0}},
    {"rms norm, several rows one behind the other",
     ADD "ENTRY e { x = f32[%d,64] parameter(0) w = f32[64] parameter(1) " ZERO
         "q = f32[%d,64] multiply(x, x) s = f32[%d] reduce(q, z), dimensions={1}, to_apply=add h = f32[%d] rsqrt(s) "
         "i = f32[%d,64] broadcast(h), dimensions={0} j = f32[%d,64] multiply(x, i) "
         "c = f32[%d,64] broadcast(w), dimensions={1} ROOT y = f32[%d,64] multiply(j, c) }",
     64,
     true,
     {.times = 4}},
    {"several sums in a row",
     ADD "ENTRY e { x = f32[%d,3,20] parameter(0) " ZERO
         "ROOT y = f32[%d,3] reduce(x, z), dimensions={2}, to_apply=add }",
     3,
     false,
     {0}},
    {"sums of columns in a row",
     ADD "ENTRY e { x = f32[%d,6,20] parameter(0) " ZERO
         "ROOT y = f32[%d,20] reduce(x, z), dimensions={1}, to_apply=add }",
     20,
     true,
     {0}},
    {"sums of columns of several blocks",
     ADD "ENTRY e { x = f32[%d,300,8] parameter(0) " ZERO
         "ROOT y = f32[%d,8] reduce(x, z), dimensions={1}, to_apply=add }",
     8,
     false,
     {.split = 4}},
    {"maxima and sums of different elements",
     ADD MAX "ENTRY e { x = f32[%d,5,8] parameter(0) " ZERO LOWEST
             "m = f32[%d,5] reduce(x, l), dimensions={2}, to_apply=max "
             "ROOT s = f32[%d] reduce(m, z), dimensions={1}, to_apply=add }",
     1,
     false,
     {0}},
    {"rows beside a sum of what has none",
     ADD "ENTRY e { x = f32[%d,12] parameter(0) w = f32[9,12] parameter(1) " ZERO
         "t = f32[12] reduce(w, z), dimensions={0}, to_apply=add c = f32[%d,12] broadcast(t), dimensions={1} "
         "p = f32[%d,12] multiply(x, c) ROOT s = f32[%d] reduce(p, z), dimensions={1}, to_apply=add }",
     1,
     false,
     {0}},
    {"sums turned within a row",
     ADD "ENTRY e { x = f32[%d,4,6] parameter(0) " ZERO "s = f32[%d,4] reduce(x, z), dimensions={2}, to_apply=add "
         "v = f32[%d,4] reverse(s), dimensions={1} c = f32[%d,4,6] broadcast(v), dimensions={0,1} "
         "ROOT y = f32[%d,4,6] add(x, c) }",
     24,
     false,
     {0}},
    {"embedding",
     "ENTRY e { i = s32[%d] parameter(0) t = f16[50,40] parameter(1) "
     "ROOT y = f16[%d,40] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,40} }",
     40,
     true,
     {0}},
    {"embedding of odd rows, with positions and a scale of each",
     "ENTRY e { i = u8[%d,3] parameter(0) t = f32[50,7] parameter(1) p = f32[3,7] parameter(2) s = f32[%d] "
     "parameter(3) "
     "g = f32[%d,3,7] gather(t, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=2, slice_sizes={1,7} b = f32[%d,3,7] broadcast(p), dimensions={1,2} "
     "a = f32[%d,3,7] add(g, b) c = f32[%d,3,7] broadcast(s), dimensions={0} ROOT y = f32[%d,3,7] multiply(a, c) }",
     21,
     true,
     {0}},
    {"a scale of each row",
     "ENTRY e { x = f32[%d,37] parameter(0) b = f32[%d] parameter(1) c = f32[%d,37] broadcast(b), dimensions={0} "
     "ROOT r = f32[%d,37] multiply(x, c) }",
     37,
     true,
     {0}},
    {"what is moved within a row",
     "ENTRY e { x = s16[%d,4,6] parameter(0) t = s16[%d,6,4] transpose(x), dimensions={0,2,1} "
     "r = s16[%d,24] reshape(t) v = s16[%d,24] reverse(r), dimensions={1} s = s16[%d,10] slice(v), "
     "slice={[0:%d],[3:13]} "
     "z = s16[] constant(7) p = s16[%d,15] pad(s, z), padding=0_0x2_3 "
     "ROOT c = s16[%d,39] concatenate(p, r), dimensions={1} }",
     39,
     false,
     {0}},
    {"padding wider than a row",
     "ENTRY e { x = f32[%d,1] parameter(0) z = f32[] constant(7) ROOT p = f32[%d,32] pad(x, z), padding=0_0x8_23 }",
     32,
     true,
     {0}},
    {"places that data says",
     "ENTRY e { x = f32[%d,24] parameter(0) u = f32[%d,3] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) "
     "s = f32[%d,8] dynamic-slice(x, z, i), dynamic_slice_sizes={%d,8} "
     "ROOT y = f32[%d,8] dynamic-update-slice(s, u, z, i) }",
     8,
     true,
     {0}},
    {"results of different rows",
     "ENTRY e { x = f32[%d,4] parameter(0) y = u8[%d,3] parameter(1) a = f32[%d,4] negate(x) b = u8[%d,3] not(y) "
     "ROOT r = (f32[%d,4], u8[%d,3]) tuple(a, b) }",
     4,
     false,
     {0}},
    {"rows are columns",
     ADD "ENTRY e { x = f32[7,%d]{0,1} parameter(0) " ZERO
         "ROOT y = f32[%d] reduce(x, z), dimensions={0}, to_apply=add }",
     1,
     true,
     {0}},
    {"nibbles of a row",
     "max { a = u4[] parameter(0) b = u4[] parameter(1) ROOT r = u4[] maximum(a, b) } "
     "ENTRY e { x = u4[%d,2,10] parameter(0) z = u4[] constant(0) "
     "ROOT y = u4[%d,2] reduce(x, z), dimensions={2}, to_apply=max }",
     2,
     false,
     {0}},
    {"a fusion that is called",
     ADD "f { x = f32[%d,9] parameter(0) q = f32[%d,9] multiply(x, x) " ZERO
         "ROOT s = f32[%d] reduce(q, z), dimensions={1}, to_apply=add } "
         "ENTRY e { x = f32[%d,9] parameter(0) ROOT r = f32[%d] fusion(x), kind=kInput, calls=f }",
     1,
     true,
     {0}},
};

enum { MOST_ROWS = 70 };

static kiln_artifact *compile_as(const kiln_module *m, const kl_strategy *s, const char *target, int64_t max_count) {
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .max_count = max_count};
  ck_assert_msg(kl_compile_as(cx, m, &p, s, &a) == KILN_OK, "%s", last_finding());
  return a;
}

// Memory that ends where a page begins that nobody may touch.
typedef struct fenced {
  char *map, *p;
  size_t bytes, all;
} fenced;

static fenced fence(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), all = (bytes + page - 1) / page * page + page;
  char *map = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(map != MAP_FAILED && mprotect(map + all - page, page, PROT_NONE) == 0);
  return (fenced){map, map + all - page - bytes, bytes, all};
}

// The kernel for this machine, its buffers fenced; the results go where the others' are.
static void run_fenced(const kiln_kernel *k, const buffers *b, int64_t count) {
  fenced in[MOST], out[MOST];
  const void *params[MOST];
  void *results[MOST];
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = 1 + (uint32_t)(count % 3), .count = count};
  for (size_t i = 0; i < b->nparams; i++) {
    in[i] = fence(b->param_bytes[i]);
    params[i] = memcpy(in[i].p, b->param[i], b->param_bytes[i]);
  }
  for (size_t i = 0; i < b->nresults; i++) results[i] = (out[i] = fence(b->result_bytes[i])).p;
  ck_assert_msg(kiln_kernel_run(cx, k, params, results, &rp) == KILN_OK, "%s", last_finding());
  for (size_t i = 0; i < b->nresults; i++) memcpy(b->result[i], out[i].p, out[i].bytes);
  for (size_t i = 0; i < b->nparams; i++) munmap(in[i].map, in[i].all);
  for (size_t i = 0; i < b->nresults; i++) munmap(out[i].map, out[i].all);
}

// What the kernel of just so many rows makes.
static void expect_bits(const kiln_module *m, const kl_strategy *s, const char *target, const buffers *b,
                        const char *what, int n) {
  buffers own = *b;
  kiln_kernel *k = NULL;
  kiln_artifact *a = compile_as(m, s, target, 0);
  for (size_t i = 0; i < b->nresults; i++) own.result[i] = padded(b->result_bytes[i]);
  if (strcmp(target, "host") != 0)
    gpu_sim_run(cx, a, (const void *const *)own.param, (void *const *)own.result, 0);
  else if (kiln_kernel_load(cx, a, &k) != KILN_OK ||
           kiln_kernel_run(cx, k, (const void *const *)own.param, (void *const *)own.result, NULL) != KILN_OK)
    ck_abort_msg("%s", last_finding());
  for (size_t i = 0; i < b->nresults; i++)
    ck_assert_msg(memcmp(own.result[i], b->result[i], b->result_bytes[i]) == 0,
                  "%s: of %d rows result %zu has other bits on %s than a kernel of as many", what, n, i, target);
  for (size_t i = 0; i < b->nresults; i++) free(own.result[i]);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
}

START_TEST(rows_come_at_run_time) {
  static const int sizes[] = {0, 1, 2, 5, 33, MOST_ROWS};
  const kl_strategy *s = &rows[_i].strategy;
  const char *target = _i % 2 && !s->cluster ? "sm_75" : "sm_90";
  char text[4000];
  spell(text, sizeof text, rows[_i].text, 4);
  kiln_module *four = parse(text);
  int64_t most = (int64_t)MOST_ROWS * rows[_i].row;
  both c = {compile_as(four, s, target, most + rows[_i].row - 1), compile_as(four, s, "host", most), NULL};
  ck_assert_msg(kiln_kernel_load(cx, c.host, &c.k) == KILN_OK, "%s", last_finding());
  const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
  ck_assert_int_eq(f->count_unit, rows[_i].row);
  ck_assert_int_eq(f->max_count, most);
  for (size_t i = 0; i < f->launch_count && rows[_i].few; i++)
    ck_assert_msg(f->launches[i].count_whole > 0 || f->launches[i].grid[0] == 1,
                  "%s: launch %zu is whole for any count", rows[_i].name, i);
  assembles(c.gpu);
  for (size_t i = 0; i < KL_COUNT(sizes); i++) {
    if (!share_has((uint64_t)_i * KL_COUNT(sizes) + i, 3)) continue;
    spell(text, sizeof text, rows[_i].text, sizes[i]);
    kiln_module *m = parse(text);
    buffers b = make_buffers(m, i);
    for (int by = 0; by < 2; by++) {
      clear_results(&b);
      if (by)
        gpu_sim_run(cx, c.gpu, (const void *const *)b.param, (void *const *)b.result, sizes[i] * rows[_i].row);
      else
        run_fenced(c.k, &b, sizes[i] * rows[_i].row);
      expect_right(m, &b, b.param, rows[_i].name);
      expect_bits(m, s, by ? target : "host", &b, rows[_i].name, sizes[i]);
    }
    drop_buffers(&b);
    kiln_module_destroy(&m);
  }
  drop_both(&c);
  kiln_module_destroy(&four);
}
END_TEST

// The module itself has a bound.
START_TEST(dynamic_rows_are_given_at_run_time) {
  static const char text[] = MAX "ENTRY e { x = f32[<=20,6] parameter(0) b = f32[<=20] parameter(1) " LOWEST
                                 "m = f32[<=20] reduce(x, l), dimensions={1}, to_apply=max "
                                 "ROOT r = f32[<=20] add(m, b) }";
  static const char fixed[] = MAX "ENTRY e { x = f32[%d,6] parameter(0) b = f32[%d] parameter(1) " LOWEST
                                  "m = f32[%d] reduce(x, l), dimensions={1}, to_apply=max "
                                  "ROOT r = f32[%d] add(m, b) }";
  static const int64_t bounds[] = {0, 7, 100};
  char own[1000];
  snprintf(own, sizeof own, "HloModule m\n%s", text);
  kiln_module *dynamic = parse(own);
  for (size_t i = 0; i < KL_COUNT(bounds); i++) {
    both c = compile_both(dynamic, (kiln_compile_params){.max_count = bounds[i]}, "sm_90");
    const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
    ck_assert(f->counted && f->slots[0].counted && f->slots[1].counted);
    ck_assert_int_eq(f->max_count, bounds[i] == 7 ? 7 : 20);
    for (int n = 0; n <= f->max_count; n += f->max_count == 7 ? 7 : 5) {
      spell(own, sizeof own, fixed, n);
      kiln_module *m = parse(own);
      buffers b = make_buffers(m, (uint64_t)n);
      for (int by = 0; by < 2; by++) {
        clear_results(&b);
        run_on(by, &c, b.param, b.result, n);
        expect_right(m, &b, b.param, "dynamic rows");
      }
      drop_buffers(&b);
      kiln_module_destroy(&m);
    }
    kiln_run_params rp = {.struct_size = sizeof rp, .count = f->max_count + 1};
    const float in[130] = {0};
    float out[22];
    ck_assert_int_eq(kiln_kernel_run(cx, c.k, (const void *const[]){in, in}, (void *const[]){out}, &rp),
                     KILN_E_INVALID);
    ck_assert_msg(strstr(last_finding(), bounds[i] == 7 ? "count is 8: expected a multiple of 1 from 0 to 7"
                                                        : "count is 21: expected a multiple of 1 from 0 to 20"),
                  "%s", last_finding());
    drop_both(&c);
  }
  kiln_module_destroy(&dynamic);
}
END_TEST

int main(void) {
  return RUN_TESTS("counts", EACH(make_context, drop_context), {one_kernel_serves_every_count, KL_COUNT(counted)},
                   {rows_come_at_run_time, KL_COUNT(rows)}, {what_has_no_count_is_refused, KL_COUNT(not_counted)},
                   {dynamic_rows_are_given_at_run_time}, {tiny_counts}, {counts_are_checked},
                   {huge_counts_take_64_bits});
}

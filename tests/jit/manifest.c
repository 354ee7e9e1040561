// The artifact's interface: parameters by value, shared buffers, launches in order, what a launch checks. Kernels for
// the GPU run on the simulator, those for the host as always.
#include "both.h"

// --- by value -----------------------------------------------------------------------------------------------------

static const char *const integers[] = {"pred", "s1",  "u1",  "s4",  "u4",  "s8", "u8",
                                       "s16",  "u16", "s32", "u32", "s64", "u64"};

START_TEST(integers_go_by_value) {
  char text[600];
  const char *t = integers[_i];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e { n = %s[] parameter(0) x = %s[300] parameter(1) f = f32[] parameter(2) "
           "b = %s[300] broadcast(n), dimensions={} g = f32[300] broadcast(f), dimensions={} "
           "y = %s[300] xor(x, b) ROOT r = (%s[300], f32[300]) tuple(y, g) }",
           t, t, t, t, t);
  kiln_module *m = parse(text);
  kiln_artifact *a = compile(m, (kiln_compile_params){.scalars_by_value = true}, "sm_80");
  const kiln_manifest *f = kiln_artifact_manifest(a);
  ck_assert(f->slots[0].by_value && !f->slots[1].by_value && !f->slots[2].by_value);
  assembles(a);
  for (unsigned seed = 0; seed < 8; seed++) {
    buffers b = make_buffers(m, seed);
    gpu_sim_run(cx, a, (const void *const *)b.param, (void *const *)b.result, 0);
    expect_right(m, &b, b.param, t);
    drop_buffers(&b);
  }
  kiln_artifact_destroy(&a);
  a = compile(m, (kiln_compile_params){.scalars_by_value = true}, "host");
  ck_assert(!kiln_artifact_manifest(a)->slots[0].by_value);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- shared buffers -------------------------------------------------------------------------------------------------

static const struct {
  const char *text;
  uint32_t parameter, result;
} in_place[] = {
    {"ENTRY e { x = f32[1000] parameter(0) y = f32[1000] parameter(1) ROOT r = f32[1000] add(x, y) }", 0, 0},
    {"ENTRY e { x = f32[1000] parameter(0) y = f32[1000] parameter(1) ROOT r = f32[1000] add(x, y) }", 1, 0},
    {"ENTRY e { x = f32[777] parameter(0) i = s32[777] bitcast-convert(x) n = f32[777] negate(x) "
     "ROOT r = (s32[777], f32[777]) tuple(i, n) }",
     0, 0},
    {"ENTRY e { x = f32[777] parameter(0) i = s32[777] bitcast-convert(x) n = f32[777] negate(x) "
     "ROOT r = (s32[777], f32[777]) tuple(i, n) }",
     0, 1},
    {"ENTRY e { x = s4[1001] parameter(0) y = s4[1001] parameter(1) ROOT r = s4[1001] add(x, y) }", 1, 0},
    {"ENTRY e { x = f32[30,30]{0,1} parameter(0) ROOT r = f32[30,30]{0,1} negate(x) }", 0, 0},
    {"ENTRY e { x = f32[300] parameter(0) y = f32[180] parameter(1) h = f32[120] slice(x), slice={[0:120]} "
     "ROOT r = f32[300] concatenate(h, y), dimensions={0} }",
     0, 0},
    {"ENTRY e { x = f32[300] parameter(0) y = f32[15,20] reshape(x) ROOT r = f32[15,20] negate(y) }", 0, 0},
    {"f { x = f32[300] parameter(0) y = f32[300] parameter(1) ROOT r = f32[300] multiply(x, y) }\n"
     "ENTRY e { x = f32[300] parameter(0) ROOT r = f32[300] fusion(x, x), kind=kLoop, calls=f }",
     0, 0},
    {"f { x = f32[300] parameter(0) ROOT r = f32[300] negate(x) }\ng { x = f32[300] parameter(0) y = f32[300] "
     "parameter(1) "
     "ROOT r = f32[300] add(x, y) }\nENTRY e { x = f32[300] parameter(0) a = f32[300] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[300] fusion(x, a), kind=kLoop, calls=g }",
     0, 0},
};

START_TEST(results_may_overwrite_parameters) {
  char text[2000];
  snprintf(text, sizeof text, "HloModule m\n%s", in_place[_i].text);
  kiln_module *m = parse(text);
  kiln_alias pair = {in_place[_i].parameter, in_place[_i].result};
  const kiln_compile_params p = {.aliases = &pair, .alias_count = 1};
  both c = compile_both(m, p, "sm_75");
  const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
  uint32_t result = (uint32_t)f->parameter_count + pair.result;
  ck_assert_uint_eq(f->slots[pair.parameter].alias, result);
  ck_assert_uint_eq(f->slots[result].alias, pair.parameter);
  assembles(c.gpu);
  for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
    buffers b = make_buffers(m, 5), as_was = make_buffers(m, 5);
    char *own = b.result[pair.result];
    memcpy(own, b.param[pair.parameter], b.result_bytes[pair.result]);
    char *params[MOST];
    memcpy(params, b.param, sizeof params);
    params[pair.parameter] = own;
    expect_right(m, &b, as_was.param, run_on(on_gpu, &c, params, b.result, 0));
    drop_buffers(&b);
    drop_buffers(&as_was);
  }
  drop_both(&c);
  kiln_module_destroy(&m);
}
END_TEST

// In place, no element may be taken twice, whatever the count.
START_TEST(counts_in_place) {
  static const int sizes[] = {1, 3, 4, 7, 8, 127, 512, 513, 1000};
  static const char text[] = "ENTRY e { x = s16[%d] parameter(0) k = s16[] constant(3) c = s16[%d] broadcast(k), "
                             "dimensions={} ROOT r = s16[%d] multiply(x, c) }";
  const kiln_alias pair = {0, 0};
  const kiln_compile_params p = {.aliases = &pair, .alias_count = 1, .max_count = 1 << 16};
  char spelt[600];
  spell(spelt, sizeof spelt, text, 4);
  kiln_module *four = parse(spelt);
  both c = compile_both(four, p, "sm_90");
  for (size_t i = 0; i < 2 * KL_COUNT(sizes); i++) {
    spell(spelt, sizeof spelt, text, sizes[i / 2]);
    kiln_module *m = parse(spelt);
    buffers b = make_buffers(m, i);
    memcpy(b.result[0], b.param[0], b.result_bytes[0]);
    const void *in[] = {b.result[0]};
    expect_right(m, &b, b.param, run_on(i % 2, &c, in, b.result, sizes[i / 2]));
    drop_buffers(&b);
    kiln_module_destroy(&m);
  }
  drop_both(&c);
  kiln_module_destroy(&four);
}
END_TEST

static const struct {
  const char *text;
  kiln_alias pairs[2];
  size_t n;
  kiln_status status;
  const char *message;
} no_sharing[] = {
    {"ENTRY e { x = f32[30,30] parameter(0) ROOT r = f32[30,30] transpose(x), dimensions={1,0} }",
     {{0, 0}},
     1,
     KILN_E_UNSUPPORTED,
     "parameter 0 and result 0 cannot be the same memory: threads read elements that others overwrite"},
    {"ENTRY e { x = f32[30] parameter(0) y = f32[30] reverse(x), dimensions={0} ROOT r = f32[30] add(x, y) }",
     {{0, 0}},
     1,
     KILN_E_UNSUPPORTED,
     "threads read elements that others overwrite"},
    // the last thread's second nibble does not exist: guarded, it reads the first ones
    {"ENTRY e { x = s4[1001] parameter(0) y = s4[501] parameter(1) h = s4[500] slice(x), slice={[0:500]} "
     "ROOT r = s4[1001] concatenate(h, y), dimensions={0} }",
     {{0, 0}},
     1,
     KILN_E_UNSUPPORTED,
     "threads read elements that others overwrite"},
    {"ENTRY e { x = f32[30] parameter(0) ROOT r = f64[30] convert(x) }",
     {{0, 0}},
     1,
     KILN_E_UNSUPPORTED,
     "they differ in size or element width"},
    {"ENTRY e { x = f32[30] parameter(0) ROOT r = (f32[30], f32[30]) tuple(x, x) }",
     {{0, 0}, {0, 1}},
     2,
     KILN_E_INVALID,
     "aliases: expected one partner for parameter 0 and result 1, found two"},
    {"ENTRY e { x = f32[30] parameter(0) ROOT r = f32[30] negate(x) }",
     {{1, 0}},
     1,
     KILN_E_INVALID,
     "aliases: expected one of 1 parameters and one of 1 results, found 1 and 0"},
    {"ENTRY e { x = f32[30] parameter(0) ROOT r = f32[30] negate(x) }", {{0, 1}}, 1, KILN_E_INVALID, "found 0 and 1"},
    {"f { x = f32[300] parameter(0) ROOT r = f32[300] negate(x) }\ng { x = f32[300] parameter(0) y = f32[300] "
     "parameter(1) "
     "ROOT r = f32[300] add(x, y) }\nENTRY e { x = f32[300] parameter(0) a = f32[300] fusion(x), kind=kLoop, calls=f "
     "b = f32[300] fusion(x, a), kind=kLoop, calls=g ROOT r = (f32[300], f32[300]) tuple(a, b) }",
     {{0, 0}},
     1,
     KILN_E_UNSUPPORTED,
     "kernel 'b_1' reads the parameter after kernel 'a_0' has overwritten it"},
};

// What the module allows gives way to what the caller demands; a value has no memory.
START_TEST(pairs_meet) {
  const kiln_alias demanded = {0, 1}, of_a_value = {0, 0};
  kiln_module *m =
      parse("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\nENTRY e { x = f32[64] parameter(0) "
            "a = f32[64] negate(x) b = f32[64] abs(x) ROOT r = (f32[64], f32[64]) tuple(a, b) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.aliases = &demanded, .alias_count = 1}, "sm_90");
  ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[0].alias, 2);
  ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[1].alias, KILN_NO_SLOT);
  ck_assert_msg(strstr(last_finding(), "one of them has another partner"), "%s", last_finding());
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  m = parse("HloModule m\nENTRY e { x = s32[] parameter(0) ROOT r = s32[] negate(x) }");
  kiln_compile_params p = {.struct_size = sizeof p, .aliases = &of_a_value, .alias_count = 1, .scalars_by_value = true};
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_UNSUPPORTED);
  ck_assert_msg(strstr(last_finding(), "the parameter is passed by value"), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// Only arrays share memory.
START_TEST(aliases_of_tuples) {
  static const char text[] = "HloModule m, input_output_alias={ {}: (0, {}, %s-alias) }\nENTRY e { "
                             "x = (f32[64]) parameter(0) y = f32[64] get-tuple-element(x), index=0 n = f32[64] "
                             "negate(y) ROOT r = (f32[64]) tuple(n) }";
  for (int must = 0; must < 2; must++) {
    char spelt[600];
    kiln_artifact *a = NULL;
    snprintf(spelt, sizeof spelt, text, must ? "must" : "may");
    kiln_module *m = parse(spelt);
    ck_assert_int_eq(kiln_compile(cx, m, NULL, &a), must ? KILN_E_UNSUPPORTED : KILN_OK);
    ck_assert_msg(strstr(last_finding(), "names a tuple: only arrays share memory"), "%s", last_finding());
    if (a) ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[0].alias, KILN_NO_SLOT);
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
  }
}
END_TEST

START_TEST(what_cannot_be_shared_is_refused) {
  char text[2000];
  snprintf(text, sizeof text, "HloModule m\n%s", no_sharing[_i].text);
  kiln_module *m = parse(text);
  kiln_compile_params p = {.struct_size = sizeof p, .aliases = no_sharing[_i].pairs, .alias_count = no_sharing[_i].n};
  kiln_artifact *a = NULL;
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), no_sharing[_i].status);
  ck_assert_msg(strstr(last_finding(), no_sharing[_i].message) != NULL, "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// A must-alias of the module is refused, a may-alias dropped with a warning; one that can be is declared.
START_TEST(the_module_declares_aliases) {
  static const char transposed[] =
      "HloModule m, input_output_alias={ {}: (0, {}, %s-alias) }\n"
      "ENTRY e { x = f32[30,30] parameter(0) ROOT r = f32[30,30] transpose(x), dimensions={1,0} }";
  char text[600];
  kiln_artifact *a = NULL;
  snprintf(text, sizeof text, transposed, "must");
  kiln_module *m = parse(text);
  ck_assert_int_eq(kiln_compile(cx, m, NULL, &a), KILN_E_UNSUPPORTED);
  kiln_module_destroy(&m);
  snprintf(text, sizeof text, transposed, "may");
  m = parse(text);
  ck_assert_int_eq(kiln_compile(cx, m, NULL, &a), KILN_OK);
  ck_assert_msg(
      strstr(last_finding(), "warning: parameter 0 and result 0 may not be the same memory, as the module allows"),
      "%s", last_finding());
  ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[0].alias, KILN_NO_SLOT);
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "ld.global.nc"));
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  m = parse("HloModule m, input_output_alias={ {1}: (1, {0}, may-alias) }\nENTRY e { x = f32[64] parameter(0) "
            "t = (f32[64], f32[64]) parameter(1) y = f32[64] get-tuple-element(t), index=0 z = f32[64] "
            "get-tuple-element(t), index=1 a = f32[64] add(x, z) b = f32[64] subtract(y, x) "
            "ROOT r = (f32[64], f32[64]) tuple(a, b) }");
  ck_assert_msg(kiln_compile(cx, m, NULL, &a) == KILN_OK, "%s", last_finding());
  const kiln_manifest *f = kiln_artifact_manifest(a);
  ck_assert_uint_eq(f->slots[1].alias, 4);
  ck_assert_uint_eq(f->slots[4].alias, 1);
  ck_assert_uint_eq(f->slots[0].alias, KILN_NO_SLOT);
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "ld.global.nc"));
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "ld.global.b32"));
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- several kernels ------------------------------------------------------------------------------------------------

// Scratch memory in between, one result twice, a parameter as a result.
START_TEST(launches_in_order) {
  kiln_module *m = parse(
      "HloModule m\nf { x = f32[300] parameter(0) n = f32[300] negate(x) s = s32[300] bitcast-convert(x) "
      "ROOT r = (f32[300], s32[300]) tuple(n, s) }\ng { x = s32[300] parameter(0) k = s32[] parameter(1) "
      "b = s32[300] broadcast(k), dimensions={} ROOT r = s32[300] multiply(x, b) }\nENTRY e { x = f32[300] "
      "parameter(0) "
      "k = s32[] parameter(1) a = (f32[300], s32[300]) fusion(x), kind=kLoop, calls=f n = f32[300] "
      "get-tuple-element(a), index=0 s = s32[300] get-tuple-element(a), index=1 b = s32[300] fusion(s, k), kind=kLoop, "
      "calls=g ROOT r = (f32[300], s32[300], f32[300], f32[300], s32[]) tuple(n, b, x, n, k) }");
  for (int by_value = 0; by_value < 2; by_value++) {
    const kiln_compile_params p = {.scalars_by_value = by_value, .separate_launches = true};
    both c = compile_both(m, p, "sm_90");
    const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
    ck_assert_uint_eq(f->launch_count, 5); // two fusions, three copies
    ck_assert_uint_eq(f->scratch_bytes, 1280);
    ck_assert(f->slots[1].by_value == (by_value != 0));
    assembles(c.gpu);
    expect_both_right(m, &c, 3);
    drop_both(&c);
  }
  kiln_module_destroy(&m);
}
END_TEST

// A result that another kernel reads is an address, however small.
START_TEST(results_go_by_address) {
  kiln_module *m =
      parse("HloModule m\nf { x = s32[] parameter(0) ROOT r = s32[] negate(x) }\nENTRY e { x = s32[] "
            "parameter(0) a = s32[] fusion(x), kind=kLoop, calls=f b = s32[] fusion(a), kind=kLoop, calls=f "
            "ROOT r = (s32[], s32[]) tuple(a, b) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.scalars_by_value = true}, "sm_90");
  const kiln_manifest *f = kiln_artifact_manifest(a);
  ck_assert(f->slots[0].by_value && !f->slots[1].by_value && !f->slots[2].by_value);
  buffers b = make_buffers(m, 1);
  gpu_sim_run(cx, a, (const void *const *)b.param, (void *const *)b.result, 0);
  expect_right(m, &b, b.param, "gpu");
  drop_buffers(&b);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// Constants of several arrays, even ones and others.
START_TEST(tuple_constants) {
  kiln_module *m =
      parse("HloModule m\nENTRY e { t = (f32[4], (s32[], s16[3])) constant(({1, 2, 3, 4}, (7, {5, 5, 5}))) "
            "a = f32[4] get-tuple-element(t), index=0 u = (s32[], s16[3]) get-tuple-element(t), index=1 "
            "n = s32[] get-tuple-element(u), index=0 h = s16[3] get-tuple-element(u), index=1 "
            "s = s16[1] slice(h), slice={[1:2]} v = s16[] reshape(s) w = s32[] convert(v) k = s32[] add(n, w) "
            "f = f32[] convert(k) g = f32[4] broadcast(f), dimensions={} ROOT r = f32[4] multiply(a, g) }");
  both c = compile_both(m, (kiln_compile_params){0}, "sm_75");
  expect_both_right(m, &c, 1);
  drop_both(&c);
  kiln_module_destroy(&m);
}
END_TEST

// In PTX they would be text many times as long.
START_TEST(large_constants_are_in_scratch_memory) {
  enum { N = (1 << 20) + 5 };
  char *text = malloc(8 * N + 1024), *at = text;
  ck_assert_ptr_nonnull(text);
  at += sprintf(at, "HloModule large\nENTRY e {\n  x = u8[%d] parameter(0)\n  c = u8[%d] constant({", N, N);
  for (int i = 0; i < N; i++) at += sprintf(at, i ? ",%d" : "%d", i * 7 % 251);
  sprintf(at,
          "})\n  s = u8[%d] xor(x, c)\n  f = f32[%d] convert(x)\n  z = f32[] constant(0)\n"
          "  t = f32[] reduce(f, z), dimensions={0}, to_apply=add\n  ROOT r = (u8[%d], f32[]) tuple(s, t)\n}\n"
          "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n",
          N, N, N);
  kiln_module *m = parse(text);
  both c = compile_both(m, (kiln_compile_params){0}, "sm_90");
  const kiln_manifest *f = kiln_artifact_manifest(c.gpu);
  ck_assert_uint_eq(f->constant_bytes, (N + 255) / 256 * 256);
  ck_assert_uint_ge(f->scratch_bytes, f->scratch_zero_bytes + f->constant_bytes);
  ck_assert_uint_eq(kiln_artifact_manifest(c.host)->constant_bytes, 0);
  uint8_t *x = malloc(N), *y = malloc(N);
  for (int i = 0; i < N; i++) x[i] = (uint8_t)(i % 13);
  for (int by = 0; by < 2; by++) {
    float sum = 0;
    memset(y, 0, N);
    const char *where = run_on(by, &c, (const void *[]){x}, (void *[]){y, &sum}, 0);
    for (int i = 0; i < N; i++) ck_assert_msg(y[i] == (x[i] ^ (i * 7 % 251)), "%s: element %d is %d", where, i, y[i]);
  }
  free(x);
  free(y);
  free(text);
  drop_both(&c);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(programmatic_kernels_wait) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[300] parameter(0) ROOT r = f32[300] negate(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.programmatic = true}, "sm_90");
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL), *wait = strstr(ptx, "griddepcontrol.wait;");
  ck_assert(kiln_artifact_manifest(a)->launches[0].programmatic);
  ck_assert_ptr_nonnull(wait);
  ck_assert_ptr_nonnull(strstr(wait, "ld.global")); // nothing is read before
  ck_assert_ptr_null(strstr(strstr(ptx, ".entry"), "ld.global") < wait ? ptx : NULL);
  ck_assert_ptr_null(strstr(ptx, "ld.global.nc")); // the kernel before may have written it while this one ran
  assembles(a);
  kiln_artifact_destroy(&a);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_80", .programmatic = true};
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "programmatic launches: expected target sm_90 or newer, found sm_80"), "%s",
                last_finding());
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(numerics_are_one_of_two) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[300] parameter(0) ROOT r = f32[300] tanh(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.numerics = KILN_NUMERICS_FAST}, "sm_90");
  ck_assert_int_eq(kiln_artifact_manifest(a)->numerics, KILN_NUMERICS_FAST);
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), "ex2.approx"));
  assembles(a);
  kiln_artifact_destroy(&a);
  kiln_compile_params p = {.struct_size = sizeof p, .numerics = (kiln_numerics)2};
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "numerics is 2: expected strict (0) or fast (1)"), "%s", last_finding());
  kiln_eval_params ep = {.struct_size = sizeof ep, .numerics = (kiln_numerics)-1};
  float x[300] = {0};
  const void *in[1] = {x};
  void *out[1] = {x};
  ck_assert_int_eq(kiln_module_eval(cx, m, in, out, &ep), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "numerics is -1"), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// The device's limits come in with its description.
START_TEST(a_device_is_a_target) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[8192] parameter(0) ROOT r = f32[8192] negate(x) }");
  struct kiln_device_info d = {.struct_size = sizeof d, .target = "sm_100", .multiprocessors = 148};
  kiln_artifact *a = compile(m, (kiln_compile_params){.device = &d}, NULL),
                *any = compile(m, (kiln_compile_params){0}, NULL);
  ck_assert_str_eq(kiln_artifact_manifest(a)->target, "sm_100");
  ck_assert_str_eq(kiln_artifact_manifest(any)->target, "sm_90");
  ck_assert_uint_eq(kiln_artifact_manifest(any)->launches[0].lanes, 4);
  ck_assert_uint_eq(kiln_artifact_manifest(a)->launches[0].lanes, 1); // 64 blocks at most: all of them, one wave
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&any);
  kiln_module_destroy(&m);
}
END_TEST

// --- what a launch checks -------------------------------------------------------------------------------------------

START_TEST(the_host_checks_buffers) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[16] parameter(0) u = f32[16] parameter(1) "
                         "ROOT r = f32[16] negate(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){0}, "host");
  kiln_kernel *k = NULL;
  _Alignas(16) char memory[256] = {0};
  const struct {
    const void *in, *out;
    const char *message;
  } rows[] = {
      {NULL, memory, "parameter 0: expected an address, found 0"},
      {memory, NULL, "result 0: expected an address, found 0"},
      {memory + 2, memory + 128, "parameter 0: expected an address that is a multiple of 4, found"},
      {memory, memory + 129, "result 0: expected an address that is a multiple of 4, found"},
      {memory, memory, "expected to overlap nothing, found it over parameter 0"},
      {memory, memory + 60, "expected to overlap nothing, found it over parameter 0"},
      {memory + 60, memory, "expected to overlap nothing, found it over parameter 0"},
      {memory, memory + 64, NULL},
      {memory + 68, memory + 4, NULL},
  };
  ck_assert_int_eq(kiln_kernel_load(cx, a, &k), KILN_OK);
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    const void *params[] = {rows[i].in, memory + 192};
    void *results[] = {(void *)rows[i].out};
    kiln_status st = kiln_kernel_run(cx, k, params, results, NULL);
    ck_assert_int_eq(st, rows[i].message ? KILN_E_INVALID : KILN_OK);
    if (rows[i].message) ck_assert_msg(strstr(last_finding(), rows[i].message) != NULL, "%s", last_finding());
  }
  void *const results[] = {memory};
  ck_assert_int_eq(kiln_kernel_run(cx, k, NULL, results, NULL), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "expected 2 parameters and 1 results, found no array of parameters"), "%s",
                last_finding());
  ck_assert_int_eq(kiln_kernel_run(cx, k, (const void *const *)results, NULL, NULL), KILN_E_INVALID);
  ck_assert_msg(strstr(last_finding(), "found no array of results"), "%s", last_finding());
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("manifest", EACH(make_context, drop_context), {integers_go_by_value, KL_COUNT(integers)},
                   {results_may_overwrite_parameters, KL_COUNT(in_place)},
                   {what_cannot_be_shared_is_refused, KL_COUNT(no_sharing)}, {counts_in_place}, {pairs_meet},
                   {aliases_of_tuples}, {the_module_declares_aliases}, {launches_in_order}, {results_go_by_address},
                   {tuple_constants}, {large_constants_are_in_scratch_memory}, {programmatic_kernels_wait},
                   {numerics_are_one_of_two}, {a_device_is_a_target}, {the_host_checks_buffers});
}

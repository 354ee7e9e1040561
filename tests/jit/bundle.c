// Bundles: which artifact a device gets, what is no bundle, and all of it as bytes.
#include "support/context.h"
#include "support/share.h"

#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scale[] = "HloModule scale\n"
                            "ENTRY e { x = f32[100] parameter(0) y = f32[100] add(x, x) ROOT z = f32[100] tanh(y) }\n";

static kiln_artifact *compile(const char *text, const kiln_compile_params *p) {
  kiln_module *m = parse(text);
  kiln_artifact *a = NULL;
  EXPECT(kiln_compile(cx, m, p, &a) == KILN_OK, "%s", kiln_diagnostics_get(cx, 0)->message);
  kiln_module_destroy(&m);
  return a;
}

static kiln_artifact *compile_for(const char *target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  return compile(scale, &p);
}

static kiln_bundle *bundle_of(const char *const *targets, size_t n) {
  kiln_module *m = parse(scale);
  kiln_bundle *b = NULL;
  EXPECT(kiln_bundle_compile(cx, m, targets, n, NULL, &b) == KILN_OK, "%s", kiln_diagnostics_get(cx, 0)->message);
  kiln_module_destroy(&m);
  return b;
}

static const char *target_of(const kiln_artifact *a) {
  return kiln_artifact_manifest(a)->target;
}

// --- which one ------------------------------------------------------------------------------------------------------

// By NVIDIA's rules of compatibility: PTX goes forward, "f" within its major version, "a" nowhere else.
static const struct {
  uint32_t sm;
  const char *target; // NULL: none
} choices[] = {
    {0, "host"},     {70, NULL},       {75, "sm_75"},    {80, "sm_75"},   {89, "sm_75"},
    {90, "sm_90a"},  {100, "sm_100f"}, {101, "sm_100"},  {103, "sm_103"}, {110, "sm_103"},
    {119, "sm_103"}, {120, "sm_120f"}, {121, "sm_120f"}, {130, "sm_103"},
};

START_TEST(a_device_gets_the_best_that_it_can_run) {
  const char *const targets[] = {"sm_90a", "sm_75", "sm_100f", "host", "sm_120f", "sm_100", "sm_103"};
  kiln_bundle *b = bundle_of(targets, 7);
  ck_assert_uint_eq(kiln_bundle_count(b), 7);
  static const char *const order[] = {"sm_120f", "sm_103", "sm_100f", "sm_100", "sm_90a", "sm_75", "host"};
  for (size_t i = 0; i < 7; i++) ck_assert_str_eq(target_of(kiln_bundle_get(b, i)), order[i]);
  ck_assert_ptr_null(kiln_bundle_get(b, 7));
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
    kiln_artifact *a = NULL;
    kiln_status st = kiln_bundle_choose(cx, b, choices[i].sm, &a);
    ck_assert_int_eq(st, choices[i].target ? KILN_OK : KILN_E_UNSUPPORTED);
    if (a) ck_assert_str_eq(target_of(a), choices[i].target);
    kiln_artifact_destroy(&a);
  }
  ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->message,
                   "expected an artifact that runs on sm_70, found those for sm_120f, sm_103, sm_100f, sm_100, sm_90a, "
                   "sm_75, host");
  kiln_bundle_destroy(&b);
}
END_TEST

START_TEST(an_artifact_outlives_its_bundle_and_shares_its_code) {
  kiln_artifact *own = compile_for("sm_80"), *chosen = NULL;
  kiln_bundle *b = NULL;
  ck_assert_int_eq(kiln_bundle_create(cx, (const kiln_artifact *const *)&own, 1, &b), KILN_OK);
  ck_assert_int_eq(kiln_bundle_choose(cx, b, 90, &chosen), KILN_OK);
  ck_assert_ptr_eq(chosen, own);
  kiln_bundle_destroy(&b);
  kiln_artifact_destroy(&own);
  ck_assert_ptr_nonnull(strstr(kiln_artifact_text(chosen, KILN_TEXT_PTX, NULL), ".target sm_80"));
  kiln_artifact_destroy(&chosen);
}
END_TEST

START_TEST(a_host_artifact_of_a_bundle_runs) {
  const char *const targets[] = {"sm_90", "host"};
  kiln_bundle *b = bundle_of(targets, 2), *again = NULL;
  kiln_artifact *a = NULL;
  kiln_kernel *k = NULL;
  void *bytes = NULL;
  size_t n = 0;
  float x[100] = {0}, z[100];
  const void *in[] = {x};
  void *out[] = {z};
  ck_assert_int_eq(kiln_bundle_save(cx, b, &bytes, &n), KILN_OK);
  kiln_bundle_destroy(&b);
  ck_assert_int_eq(kiln_bundle_load(cx, bytes, n, &again), KILN_OK);
  kiln_artifact_bytes_free(cx, bytes, n);
  ck_assert_int_eq(kiln_bundle_choose(cx, again, 0, &a), KILN_OK);
  kiln_bundle_destroy(&again);
  ck_assert_int_eq(kiln_kernel_load(cx, a, &k), KILN_OK);
  memset(z, 1, sizeof z);
  ck_assert_int_eq(kiln_kernel_run(cx, k, in, out, NULL), KILN_OK);
  for (int i = 0; i < 100; i++) ck_assert(z[i] == 0);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
}
END_TEST

// --- what is no bundle ----------------------------------------------------------------------------------------------

#define REFUSED(call, text)                                                                                            \
  do {                                                                                                                 \
    b = (void *)&b;                                                                                                    \
    ck_assert_int_eq((call), KILN_E_INVALID);                                                                          \
    ck_assert_ptr_null(b);                                                                                             \
    size_t last = kiln_diagnostics_count(cx);                                                                          \
    ck_assert_uint_gt(last, 0);                                                                                        \
    ck_assert_msg(strstr(kiln_diagnostics_get(cx, last - 1)->message, (text)) != NULL, "%s",                           \
                  kiln_diagnostics_get(cx, last - 1)->message);                                                        \
    kiln_diagnostics_clear(cx);                                                                                        \
  } while (0)

START_TEST(what_does_not_belong_together_is_refused) {
  kiln_bundle *b = NULL;
  const kiln_artifact *two[2] = {compile_for("sm_80"), compile_for("sm_80")};
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "are for the same target");
  REFUSED(kiln_bundle_create(cx, two, 0, &b), "at least one artifact");
  kiln_artifact_destroy((kiln_artifact **)&two[1]);
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "found NULL for number 1");
  two[1] = compile("HloModule scale\nENTRY e { x = f32[100] parameter(0) ROOT z = f32[100] negate(x) }",
                   &(kiln_compile_params){.struct_size = sizeof(kiln_compile_params), .target = "sm_90"});
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "are of different modules");
  kiln_artifact_destroy((kiln_artifact **)&two[1]);
  two[1] = compile(
      scale, &(kiln_compile_params){.struct_size = sizeof(kiln_compile_params), .target = "sm_90", .max_count = 200});
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "differ in their run-time count");
  kiln_artifact_destroy((kiln_artifact **)&two[1]);
  two[1] = compile(scale, &(kiln_compile_params){.struct_size = sizeof(kiln_compile_params),
                                                 .target = "sm_90",
                                                 .numerics = KILN_NUMERICS_FAST});
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "differ in numerics");
  kiln_artifact_destroy((kiln_artifact **)&two[1]);
  kiln_artifact_destroy((kiln_artifact **)&two[0]);
}
END_TEST

// By value on a GPU, by address on the host: no caller could serve both.
START_TEST(slots_that_are_given_differently_are_refused) {
  static const char text[] =
      "HloModule s\nENTRY e { n = s32[] parameter(0) ROOT r = s32[4] broadcast(n), dimensions={} }";
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .scalars_by_value = true};
  const kiln_artifact *two[2] = {compile(text, &p)};
  kiln_bundle *b = NULL;
  p.target = "sm_80";
  p.scalars_by_value = false;
  two[1] = compile(text, &p);
  REFUSED(kiln_bundle_create(cx, two, 2, &b), "have different slots");
  kiln_artifact_destroy((kiln_artifact **)&two[0]);
  kiln_artifact_destroy((kiln_artifact **)&two[1]);
}
END_TEST

START_TEST(a_target_that_fails_is_named) {
  const char *const targets[] = {"sm_80", "sm_1"}, *const twice[] = {"sm_80", "sm_80"}, *const hole[] = {"sm_80", NULL};
  kiln_module *m = parse(scale);
  kiln_bundle *b = NULL;
  kiln_compile_params p = {.struct_size = sizeof p};
  REFUSED(kiln_bundle_compile(cx, m, targets, 2, &p, &b), "not compiled for target sm_1");
  REFUSED(kiln_bundle_compile(cx, m, twice, 2, &p, &b), "are for the same target");
  REFUSED(kiln_bundle_compile(cx, m, hole, 2, &p, &b), "found NULL for number 1");
  REFUSED(kiln_bundle_compile(cx, m, targets, 0, &p, &b), "at least one target");
  p.target = "sm_80";
  REFUSED(kiln_bundle_compile(cx, m, targets, 1, &p, &b), "target: expected NULL beside a list");
  kiln_module_destroy(&m);
}
END_TEST

// --- bytes ----------------------------------------------------------------------------------------------------------

START_TEST(bytes_give_the_same_bytes_again) {
  const char *const targets[] = {"sm_80", "host", "sm_90"}, *const other_order[] = {"sm_90", "sm_80", "host"};
  kiln_bundle *b[3] = {bundle_of(targets, 3), bundle_of(other_order, 3)};
  void *bytes[3] = {0};
  size_t n[3] = {0};
  ck_assert_int_eq(kiln_bundle_save(cx, b[0], &bytes[0], &n[0]), KILN_OK);
  ck_assert_int_eq(kiln_bundle_save(cx, b[1], &bytes[1], &n[1]), KILN_OK);
  ck_assert(kiln_bundle_is_saved(bytes[0], n[0]));
  ck_assert_int_eq(kiln_bundle_load(cx, bytes[0], n[0], &b[2]), KILN_OK);
  ck_assert_int_eq(kiln_bundle_save(cx, b[2], &bytes[2], &n[2]), KILN_OK);
  for (int i = 1; i < 3; i++) {
    ck_assert_uint_eq(n[0], n[i]);
    ck_assert_int_eq(memcmp(bytes[0], bytes[i], n[0]), 0);
  }
  for (int i = 0; i < 3; i++) {
    kiln_artifact_bytes_free(cx, bytes[i], n[i]);
    kiln_bundle_destroy(&b[i]);
  }
}
END_TEST

START_TEST(a_single_artifact_is_a_bundle_of_one) {
  kiln_artifact *a = compile_for("sm_80");
  kiln_bundle *b = NULL;
  void *bytes = NULL;
  size_t n = 0;
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &n), KILN_OK);
  ck_assert(kiln_bundle_is_saved(bytes, n));
  ck_assert_int_eq(kiln_bundle_load(cx, bytes, n, &b), KILN_OK);
  ck_assert_uint_eq(kiln_bundle_count(b), 1);
  ck_assert_str_eq(target_of(kiln_bundle_get(b, 0)), "sm_80");
  kiln_bundle_destroy(&b);
  kiln_artifact_bytes_free(cx, bytes, n);
  kiln_artifact_destroy(&a);
}
END_TEST

// Each byte changed in one bit, evenly some of them by default; and each length up to the right one.
START_TEST(damage_is_told) {
  const char *const targets[] = {"sm_80", "sm_90"};
  kiln_bundle *b = bundle_of(targets, 2);
  uint8_t *bytes = NULL;
  size_t n = 0;
  ck_assert_int_eq(kiln_bundle_save(cx, b, (void **)&bytes, &n), KILN_OK);
  kiln_bundle_destroy(&b);
  size_t every = n / (size_t)share_up_to(1000, n) + 1;
  for (size_t i = 0; i < n; i += i < 64 ? 1 : every) {
    bytes[i] ^= (uint8_t)(1 << i % 8);
    REFUSED(kiln_bundle_load(cx, bytes, n, &b), "expected artifacts as kiln_bundle_save or kiln_artifact_save");
    bytes[i] ^= (uint8_t)(1 << i % 8);
    uint8_t *part = malloc(i + 1); // of exactly that size, for sanitizers to see what is read behind it
    memcpy(part, bytes, i);
    REFUSED(kiln_bundle_load(cx, part, i, &b), "expected artifacts as kiln_bundle_save or kiln_artifact_save");
    free(part);
  }
  ck_assert(!kiln_bundle_is_saved("HloModule", 9) && !kiln_bundle_is_saved("kilnbn", 6));
  kiln_artifact_bytes_free(cx, bytes, n);
}
END_TEST

int main(void) {
  return RUN_TESTS("bundle", EACH(make_context, drop_context), {a_device_gets_the_best_that_it_can_run},
                   {an_artifact_outlives_its_bundle_and_shares_its_code}, {a_host_artifact_of_a_bundle_runs},
                   {what_does_not_belong_together_is_refused}, {slots_that_are_given_differently_are_refused},
                   {a_target_that_fails_is_named}, {bytes_give_the_same_bytes_again},
                   {a_single_artifact_is_a_bundle_of_one}, {damage_is_told});
}

// The first promise kept: the tanh GELU of examples/gelu.hlo, and what its PTX and SASS may cost.

#include "harness.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void replace_all(char *text, const char *from, const char *to) {
  ck_assert(strlen(from) >= strlen(to));
  for (char *p = text; (p = strstr(p, from)); p += strlen(to)) {
    memcpy(p, to, strlen(to));
    memmove(p + strlen(to), p + strlen(from), strlen(p + strlen(from)) + 1);
  }
}

// The example with its shape cut down to one element for each bf16 pattern.
START_TEST(all_inputs_on_host) {
  size_t size;
  char *text = example("gelu.hlo", &size);
  replace_all(text, "[6,512,4096]", "[65536]");
  kiln_context *cx = kiln_context_create(NULL);
  kiln_mismatch x = {0};
  int64_t wrong = wrong_of_all_16_bit(cx, text, -1, &x);
  ck_assert_msg(wrong == 0, "%lld inputs differ, first 0x%04llx: found %s, expected %s", (long long)wrong,
                (long long)x.element, x.found, x.expected);
  wrong = wrong_of_all_16_bit(cx, text, 0x3f80, &x);
  ck_assert_msg(wrong == 1 && x.element == 0x3f80, "one wrong bit went unseen");
  free(text);
  kiln_context_destroy(&cx);
}
END_TEST

// Counted, not timed: 16-byte accesses only, no local memory, at most 40 registers and 24 instructions an element.
START_TEST(cost) {
  const char *target = targets[_i];
  kiln_launch l;
  char *ptx = compile_example("gelu.hlo", target, &l);
  ck_assert_uint_eq(l.lanes, 8);
  ck_assert_uint_eq(l.vector_bytes, 16);
  ck_assert_uint_eq(occurrences(ptx, "ld.global"), 1);
  ck_assert_uint_eq(occurrences(ptx, "ld.global.nc.v4.b32"), 1);
  ck_assert_uint_eq(occurrences(ptx, "st.global"), 1);
  ck_assert_uint_eq(occurrences(ptx, "st.global.v4.b32"), 1);
  ck_assert_msg(!strstr(ptx, ".local"), "local memory");
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, strlen(ptx), target);
    ck_assert_msg(r.ok, "%s", r.log);
    ck_assert_int_eq(r.stack, 0);
    ck_assert_int_eq(r.spill_stores, 0);
    printf("# gelu %s: %d registers, %.1f SASS instructions an element\n", target, r.registers,
           (double)r.sass / l.lanes);
    if (atoi(target + 3) >= 80) { // older ones have no bf16 arithmetic
      ck_assert_int_le(r.registers, 40);
      ck_assert_msg(r.sass <= 24 * (long)l.lanes, "%s: %ld SASS instructions for %u elements", target, r.sass, l.lanes);
    }
  }
  free(ptx);
}
END_TEST

// The lowest PTX version that target and instructions allow, so that old drivers load it.
START_TEST(version_floor) {
  static const struct {
    const char *target, *version;
  } rows[] = {
      {"sm_75", "6.3"},  {"sm_80", "7.0"},  {"sm_86", "7.1"},  {"sm_87", "7.4"},   {"sm_89", "7.8"},
      {"sm_90", "7.8"},  {"sm_90a", "8.0"}, {"sm_100", "8.6"}, {"sm_100a", "8.6"}, {"sm_103", "8.8"},
      {"sm_120", "8.7"}, {"sm_121", "8.8"}, {"sm_70", "6.0"},  {"sm_72", "6.1"},   {"sm_110", "9.0"},
  };
  char want[64];
  char *ptx = compile_example("bias_relu.hlo", rows[_i].target, NULL);
  snprintf(want, sizeof want, ".version %s\n", rows[_i].version);
  ck_assert_msg(strstr(ptx, want) != NULL, "%s: expected %s", rows[_i].target, want);
  snprintf(want, sizeof want, ".target %s\n", rows[_i].target);
  ck_assert_msg(strstr(ptx, want) != NULL, "%s", want);
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, strlen(ptx), rows[_i].target);
    ck_assert_msg(r.ok, "%s", r.log);
  }
  free(ptx);
}
END_TEST

START_TEST(unknown_targets) {
  static const char *const names[] = {"",       "sm_",      "sm_91",  "sm_900",   "sm_90b",        "sm_75a", "sm90",
                                      "sm_075", "sm_0090a", "gfx90a", "sm_100aa", "sm_4294967386", "Host"};
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  const char *text = "HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n";
  kiln_compile_params p = {.struct_size = sizeof p, .target = names[_i]};
  ck_assert_int_eq(kiln_module_parse(cx, "m", text, strlen(text), &m), KILN_OK);
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_INVALID);
  ck_assert_ptr_null(a);
  ck_assert(strstr(kiln_diagnostics_get(cx, 0)->message, "unknown target"));
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// Arguments of less alignment get narrower accesses; less than an element's is refused.
START_TEST(declared_alignment) {
  static const struct {
    const char *type;
    uint32_t align;
    kiln_status status;
    const char *access;
  } rows[] = {
      {"f32", 16, KILN_OK, "ld.global.nc.v4.b32"},
      {"f32", 8, KILN_OK, "ld.global.nc.v2.b32"},
      {"f32", 4, KILN_OK, "ld.global.nc.b32"},
      {"f32", 2, KILN_E_INVALID, NULL},
      {"bf16", 4, KILN_OK, "ld.global.nc.b32"},
      {"bf16", 2, KILN_OK, "ld.global.nc.b16"},
      {"s8", 1, KILN_OK, "ld.global.nc.s8"},
      {"s4", 1, KILN_OK, "ld.global.nc.b8"},
      {"c128", 8, KILN_OK, "ld.global.nc.b64"},
      {"c128", 4, KILN_E_INVALID, NULL},
      {"f64", 3, KILN_E_INVALID, NULL},
      {"f64", 8192, KILN_E_INVALID, NULL},
  };
  char text[256];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  p = %s[4096] parameter(0)\n  ROOT r = %s[4096] reverse(p), dimensions={}\n}\n",
           rows[_i].type, rows[_i].type);
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .argument_align = rows[_i].align};
  ck_assert_int_eq(kiln_module_parse(cx, "m", text, strlen(text), &m), KILN_OK);
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), rows[_i].status);
  if (a) {
    const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
    ck_assert_msg(strstr(ptx, rows[_i].access) != NULL, "%s aligned to %u: no %s in %s", rows[_i].type, rows[_i].align,
                  rows[_i].access, ptx);
    ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[0].align, rows[_i].align);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

static void *compile_in_thread(void *name) {
  return compile_example(name, "sm_90", NULL);
}

// Same input, same bytes: again, and from several threads at once, each with its context.
START_TEST(same_input_same_bytes) {
  static const char *const names[] = {"gelu.hlo", "multi_output.hlo", "pad_slice.hlo", "dequantise_s4.hlo"};
  enum { THREADS = 4 };
  char *first = compile_example(names[_i], "sm_90", NULL);
  pthread_t id[THREADS];
  for (int t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_create(&id[t], NULL, compile_in_thread, (void *)names[_i]), 0);
  for (int t = 0; t < THREADS; t++) {
    void *ptx;
    pthread_join(id[t], &ptx);
    ck_assert_str_eq(first, ptx);
    free(ptx);
  }
  free(first);
}
END_TEST

int main(void) {
  return RUN_TESTS("gelu", NO_FRAME, {all_inputs_on_host}, {cost, TARGETS}, {version_floor, 15}, {unknown_targets, 13},
                   {declared_alignment, 12}, {same_input_same_bytes, 4});
}

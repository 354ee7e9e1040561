// Builders: what is missing, and calls after the end.
#include "misuse.h"

// Where a list is missing, the builder says so once and is poisoned.
static kiln_builder *b;
static void begin(void) {
  kiln_builder_destroy(&b);
  kiln_diagnostics_clear(cx);
  b = kiln_builder_create(cx, NULL);
  kiln_builder_begin(b, "main");
}
#define REFUSES(call)                                                                                                  \
  do {                                                                                                                 \
    begin();                                                                                                           \
    EXPECT((call) == UINT32_MAX && kiln_diagnostics_count(cx) == 1, "%s: %s", #call, first_finding());                 \
    NULLS(POISONED, kiln_module *, kiln_builder_finish(b, &o));                                                        \
  } while (0)

START_TEST(null_builder) {
  const kiln_attr listless = {.key = "dimensions", .form = KILN_ATTR_INTS, .count = 2},
                  textless = {.key = "metadata", .form = KILN_ATTR_RAW}, keyless = {.form = KILN_ATTR_RAW};
  kiln_array_type type = {.dtype = KILN_F32}, got;
  ck_assert_ptr_null(kiln_builder_create(NULL, "m"));
  kiln_builder_destroy(NULL);
  ck_assert_uint_eq(kiln_type_text(NULL, "f32[]"), KILN_NO_TYPE);
  ck_assert_uint_eq(kiln_type_array(NULL, &type), KILN_NO_TYPE);
  ck_assert_uint_eq(kiln_type_tuple(NULL, NULL, 0), KILN_NO_TYPE);
  ck_assert_uint_eq(kiln_type_of(NULL, 0), KILN_NO_TYPE);
  ck_assert(!kiln_type_get_array(NULL, 0, &got));
  kiln_builder_begin(NULL, "main");
  ck_assert_uint_eq(kiln_build_parameter(NULL, 0, 0, "p"), KILN_NO_VALUE);
  ck_assert_uint_eq(kiln_build_constant(NULL, 0, in, 4, "c"), KILN_NO_VALUE);
  ck_assert_uint_eq(kiln_build_scalar(NULL, KILN_F32, 1), KILN_NO_VALUE);
  ck_assert_uint_eq(kiln_build(NULL, "add", NULL, 0, KILN_NO_TYPE, NULL, 0), KILN_NO_VALUE);
  kiln_build_annotate(NULL, 0, "metadata", "{}");
  kiln_builder_annotate_computation(NULL, "k", "v");
  kiln_builder_annotate_module(NULL, "k", "v");
  ck_assert_uint_eq(kiln_builder_end(NULL, 0, true), UINT32_MAX);
  NULLS(INVALID_CX, kiln_module *, kiln_builder_finish(NULL, &o));

  REFUSES(kiln_type_text(b, NULL));
  REFUSES(kiln_type_array(b, NULL));
  REFUSES(kiln_type_tuple(b, NULL, 2));
  REFUSES(kiln_build_constant(b, kiln_type_text(b, "f32[]"), NULL, 4, NULL));
  REFUSES(kiln_build(b, NULL, NULL, 0, KILN_NO_TYPE, NULL, 0));
  REFUSES(kiln_build(b, "add", NULL, 2, KILN_NO_TYPE, NULL, 0));
  REFUSES(kiln_build(b, "iota", NULL, 0, kiln_type_text(b, "f32[2]"), NULL, 1));
  REFUSES(kiln_build(b, "reverse", (kiln_value[]){kiln_build_scalar(b, KILN_F32, 1)}, 1, KILN_NO_TYPE, &listless, 1));
  REFUSES(kiln_build(b, "after-all", NULL, 0, KILN_NO_TYPE, &textless, 1));
  REFUSES(kiln_build(b, "after-all", NULL, 0, KILN_NO_TYPE, &keyless, 1));
  REFUSES((kiln_build_annotate(b, kiln_build_scalar(b, KILN_F32, 1), NULL, "{}"), UINT32_MAX));
  REFUSES((kiln_build_annotate(b, kiln_build_scalar(b, KILN_F32, 1), "metadata", NULL), UINT32_MAX));
  REFUSES((kiln_builder_annotate_computation(b, NULL, "v"), UINT32_MAX));
  REFUSES((kiln_builder_annotate_computation(b, "k", NULL), UINT32_MAX));
  REFUSES((kiln_builder_annotate_module(b, NULL, "v"), UINT32_MAX));
  REFUSES((kiln_builder_annotate_module(b, "k", NULL), UINT32_MAX));
  REFUSES((kiln_builder_end(b, kiln_build_scalar(b, KILN_F32, 1), true), kiln_builder_begin(b, NULL), UINT32_MAX));

  begin();
  kiln_type t = kiln_type_text(b, "f32[]");
  ck_assert(!kiln_type_get_array(b, t, NULL) && kiln_type_get_array(b, t, &got));
  kiln_builder_end(b, kiln_build_parameter(b, 0, t, NULL), true);
  INVALID(kiln_builder_finish(b, NULL));
  kiln_module *made = NULL;
  ck_assert_int_eq(kiln_builder_finish(b, &made), KILN_OK); // nothing was lost
  kiln_module_destroy(&made);
  kiln_builder_destroy(&b);
}
END_TEST

static kiln_builder *finished(void) {
  kiln_builder *own = kiln_builder_create(cx, "m");
  kiln_module *made = NULL;
  kiln_builder_begin(own, "main");
  kiln_builder_end(own, kiln_build_parameter(own, 0, kiln_type_text(own, "f32[]"), NULL), true);
  ck_assert_int_eq(kiln_builder_finish(own, &made), KILN_OK);
  kiln_module_destroy(&made);
  kiln_diagnostics_clear(cx);
  return own;
}

START_TEST(a_finished_builder_says_so) {
  kiln_builder *own = finished();
  NULLS(POISONED, kiln_module *, kiln_builder_finish(own, &o));
  ck_assert_ptr_nonnull(strstr(first_finding(), "found one that has"));
  ck_assert_uint_eq(kiln_type_text(own, "f32[]"), KILN_NO_TYPE);
  kiln_builder_destroy(&own);
  own = finished();
  ck_assert_uint_eq(kiln_type_text(own, "f32[]"), KILN_NO_TYPE);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  kiln_array_type t;
  ck_assert(!kiln_type_get_array(own, 0, &t));
  kiln_builder_begin(own, "again");
  kiln_builder_annotate_module(own, "k", "v");
  NULLS(POISONED, kiln_module *, kiln_builder_finish(own, &o));
  kiln_builder_destroy(&own);
}
END_TEST

// Findings that were cleared before the end: the status does not come alone.
START_TEST(a_poisoned_builder_says_so) {
  kiln_diagnostics_clear(cx);
  kiln_builder *own = kiln_builder_create(cx, "m");
  kiln_builder_begin(own, "main");
  kiln_build(own, "no-such-op", NULL, 0, KILN_NO_TYPE, NULL, 0);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  NULLS(POISONED, kiln_module *, kiln_builder_finish(own, &o));
  kiln_diagnostics_clear(cx);
  NULLS(POISONED, kiln_module *, kiln_builder_finish(own, &o));
  ck_assert_ptr_nonnull(strstr(first_finding(), "found that one had failed"));
  kiln_builder_destroy(&own);
}
END_TEST

void misuse_builder(Suite *s) {
  ADD("builder", {null_builder}, {a_finished_builder_says_so}, {a_poisoned_builder_says_so});
}

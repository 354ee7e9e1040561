// Evaluation, compilation, the host; what outlives its context.
#include "misuse.h"

#include <stdlib.h>

static const void *const none[] = {NULL};
static void *const no_results[] = {NULL};
static kiln_eval_params threads = {.struct_size = sizeof threads, .threads = 1};

START_TEST(null_evaluator) {
  size_t n;
  kiln_mismatch x[1];
  INVALID_CX(kiln_module_eval(NULL, m, args, results, &threads));
  INVALID(kiln_module_eval(cx, NULL, args, results, &threads));
  INVALID(kiln_module_eval(cx, m, NULL, results, &threads));
  INVALID(kiln_module_eval(cx, m, none, results, &threads));
  INVALID(kiln_module_eval(cx, m, args, NULL, &threads));
  INVALID(kiln_module_eval(cx, m, args, no_results, &threads));
  ck_assert_int_eq(kiln_module_eval(cx, m, args, results, NULL), KILN_OK);
  const void *const *found = (const void *const *)results;
  NULLS(INVALID_CX, size_t, kiln_module_check(NULL, m, args, found, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, NULL, args, found, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, m, NULL, found, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, m, none, found, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, m, args, NULL, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, m, args, none, x, 1, &o, &threads));
  NULLS(INVALID, size_t, kiln_module_check(cx, m, args, found, NULL, 1, &o, &threads));
  INVALID(kiln_module_check(cx, m, args, found, x, 1, NULL, &threads));
  ck_assert_int_eq(kiln_module_check(cx, m, args, found, NULL, 0, &n, NULL), KILN_OK);
  ck_assert_uint_eq(n, 0);
  // Buffers that hold nothing may be missing.
  kiln_module *nothing = parse("HloModule m\nENTRY e { p = f32[0] parameter(0) ROOT r = f32[0] negate(p) }\n"),
              *constant = parse("HloModule m\nENTRY e { ROOT r = f32[] constant(3) }\n");
  ck_assert_int_eq(kiln_module_eval(cx, nothing, none, no_results, &threads), KILN_OK);
  ck_assert_int_eq(kiln_module_eval(cx, constant, NULL, results, &threads), KILN_OK);
  ck_assert(kiln_module_parameter_leaf_pack(nothing, 0, NULL, NULL) &&
            kiln_module_result_leaf_unpack(nothing, 0, NULL, NULL));
  kiln_module_destroy(&nothing);
  kiln_module_destroy(&constant);
}
END_TEST

START_TEST(null_compiler) {
  kiln_compile_params p = {.struct_size = sizeof p, .alias_count = 1};
  NULLS(INVALID_CX, kiln_artifact *, kiln_compile(NULL, m, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_compile(cx, NULL, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_compile(cx, m, &p, &o));
  INVALID(kiln_compile(cx, m, NULL, NULL));
  INVALID_CX(kiln_compile_check(NULL, m, NULL));
  INVALID(kiln_compile_check(cx, NULL, NULL));
  INVALID(kiln_compile_check(cx, m, &p));
  ck_assert_int_eq(kiln_compile_check(cx, m, NULL), KILN_OK);
  kiln_artifact_destroy(NULL);
  size_t size = 3;
  ck_assert_ptr_null(kiln_artifact_text(NULL, KILN_TEXT_PTX, &size));
  ck_assert_uint_eq(size, 0);
  ck_assert_ptr_nonnull(kiln_artifact_text(gpu, KILN_TEXT_PTX, NULL));
  ck_assert_ptr_null(kiln_artifact_manifest(NULL));
  ck_assert_ptr_null(kiln_artifact_less(NULL));
  ck_assert_ptr_null(kiln_artifact_less(gpu));
  NULLS(INVALID_CX, kiln_kernel *, kiln_kernel_load(NULL, host, &o));
  NULLS(INVALID, kiln_kernel *, kiln_kernel_load(cx, NULL, &o));
  INVALID(kiln_kernel_load(cx, host, NULL));
  kiln_kernel_destroy(NULL);
  INVALID_CX(kiln_kernel_run(NULL, on_host, args, results, NULL));
  INVALID(kiln_kernel_run(cx, NULL, args, results, NULL));
  kiln_diagnostics_clear(cx);
  ck_assert_int_eq(kiln_kernel_run(cx, on_host, NULL, results, NULL), KILN_E_INVALID);
  ck_assert_int_eq(kiln_kernel_run(cx, on_host, args, NULL, NULL), KILN_E_INVALID);
  ck_assert_int_eq(kiln_kernel_run(cx, on_host, none, results, NULL), KILN_E_INVALID);
  ck_assert_int_eq(kiln_kernel_run(cx, on_host, args, no_results, NULL), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 4);
}
END_TEST

typedef struct blocks {
  size_t alive;
} blocks;
static void *resize(void *user, void *p, size_t old_size, size_t size) {
  blocks *of = user;
  of->alive += size - old_size;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

// What is made from a context may live longer, work on, and be destroyed.
START_TEST(the_context_goes_first) {
  blocks alive = {0};
  kiln_context_params p = {.struct_size = sizeof p, .allocator = {&alive, resize, NULL}};
  kiln_context *own = kiln_context_create(&p);
  kiln_builder *idle = kiln_builder_create(own, "m"), *failing = kiln_builder_create(own, "m");
  kiln_module *built = NULL, *copy = NULL;
  kiln_artifact *a = NULL;
  kiln_layout *layout = NULL;
  char *text = NULL;
  ck_assert_int_eq(kiln_layout_parse(own, "f32[3]", &layout), KILN_OK);
  kiln_builder_begin(failing, "main");
  ck_assert_int_eq(kiln_module_clone(own, m, &copy), KILN_OK);
  ck_assert_int_eq(kiln_compile(own, copy, NULL, &a), KILN_OK); // the context has LLVM's state, too
  kiln_context_destroy(&own);
  ck_assert_ptr_null(own);
  ck_assert_uint_eq(kiln_build(failing, "no-such-op", NULL, 0, KILN_NO_TYPE, NULL, 0), KILN_NO_VALUE);
  ck_assert_int_eq(kiln_builder_finish(failing, &built), KILN_E_INVALID);
  kiln_builder_destroy(&failing);
  kiln_builder_begin(idle, "main");
  kiln_builder_end(idle, kiln_build_parameter(idle, 0, kiln_type_text(idle, "f32[]"), NULL), true);
  ck_assert_int_eq(kiln_builder_finish(idle, &built), KILN_OK);
  kiln_builder_destroy(&idle);
  ck_assert_int_eq(kiln_module_print(cx, built, &text, NULL), KILN_OK);
  kiln_text_free(cx, text, strlen(text));
  kiln_module_destroy(&built);
  ck_assert_int_eq(kiln_module_eval(cx, copy, args, results, &threads), KILN_OK);
  kiln_module_destroy(&copy);
  ck_assert_ptr_nonnull(kiln_artifact_text(a, KILN_TEXT_PTX, NULL));
  kiln_artifact_destroy(&a);
  ck_assert_str_eq(kiln_layout_describe(layout)->shape, "f32[3]");
  kiln_layout_destroy(&layout);
  ck_assert_uint_eq(alive.alive, 0);
}
END_TEST

void misuse_running(Suite *s) {
  ADD("running", {null_evaluator}, {null_compiler}, {the_context_goes_first});
}

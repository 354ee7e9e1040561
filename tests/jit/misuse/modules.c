// Contexts; modules, their text and what is made of them; arrays of .npy files.
#include "misuse.h"

START_TEST(null_base) {
  kiln_context_destroy(NULL);
  ck_assert_uint_eq(kiln_diagnostics_count(NULL), 0);
  ck_assert_ptr_null(kiln_diagnostics_get(NULL, 0));
  kiln_diagnostics_clear(NULL);
  kiln_context *own = kiln_context_create(NULL);
  kiln_context_destroy(&own);
  kiln_context_destroy(&own);
}
END_TEST

START_TEST(null_modules) {
  size_t size = 3;
  char *text = NULL;
  const char *name;
  kiln_array_type type;
  uint8_t hash[KILN_HASH_SIZE];
  ck_assert_int_eq(kiln_dtype_from_name(NULL), KILN_DTYPE_NONE);
  ck_assert_int_eq(kiln_array_bytes(NULL), -1);
  NULLS(INVALID_CX, kiln_module *, kiln_module_parse(NULL, "m", "HloModule", 9, &o));
  NULLS(INVALID, kiln_module *, kiln_module_parse(cx, "m", NULL, 9, &o));
  INVALID(kiln_module_parse(cx, "m", "HloModule", 9, NULL));
  kiln_diagnostics_clear(cx);
  kiln_module *unnamed = (kiln_module *)in;
  ck_assert_int_eq(kiln_module_parse(cx, NULL, "?", 1, &unnamed), KILN_E_INVALID);
  ck_assert_ptr_null(unnamed);
  kiln_module_destroy(NULL);
  kiln_module_destroy(&unnamed);
  NULLS(INVALID_CX, char *, kiln_module_print(NULL, m, &o, &size));
  NULLS(INVALID, char *, kiln_module_print(cx, NULL, &o, &size));
  ck_assert_uint_eq(size, 0);
  INVALID(kiln_module_print(cx, m, NULL, &size));
  ck_assert_int_eq(kiln_module_print(cx, m, &text, NULL), KILN_OK);
  kiln_text_free(NULL, NULL, 0);
  kiln_text_free(cx, NULL, 3);
  kiln_text_free(cx, text, strlen(text));
  NULLS(INVALID_CX, char *, kiln_module_canonical_print(NULL, m, &o, &size));
  NULLS(INVALID, char *, kiln_module_canonical_print(cx, NULL, &o, &size));
  INVALID(kiln_module_canonical_print(cx, m, NULL, &size));
  INVALID_CX(kiln_module_hash(NULL, m, hash));
  INVALID(kiln_module_hash(cx, NULL, hash));
  INVALID(kiln_module_hash(cx, m, NULL));
  ck_assert_str_eq(kiln_module_name(NULL), "");
  ck_assert_uint_eq(kiln_module_computation_count(NULL), 0);
  ck_assert_uint_eq(kiln_module_instruction_count(NULL), 0);
  ck_assert_uint_eq(kiln_module_parameter_count(NULL), 0);
  ck_assert_str_eq(kiln_module_parameter_name(NULL, 0), "");
  ck_assert_uint_eq(kiln_module_fusions(NULL, &name, 1), 0);
  ck_assert_uint_eq(kiln_module_fusions(m, NULL, 1), 1);
  ck_assert_uint_eq(kiln_module_result_leaf_count(NULL), 0);
  ck_assert_uint_eq(kiln_module_parameter_leaf_count(NULL), 0);
  ck_assert(!kiln_module_parameter_leaf_type(NULL, 0, &type) && !kiln_module_parameter_leaf_type(m, 0, NULL));
  ck_assert(!kiln_module_result_leaf_type(NULL, 0, &type) && !kiln_module_result_leaf_type(m, 0, NULL));
  ck_assert(kiln_module_parameter_leaf_bytes(NULL, 0) == -1 && kiln_module_result_leaf_bytes(NULL, 0) == -1);
  ck_assert(!kiln_module_parameter_leaf_pack(NULL, 0, in, out) && !kiln_module_parameter_leaf_pack(m, 0, NULL, out) &&
            !kiln_module_parameter_leaf_pack(m, 0, in, NULL));
  ck_assert(!kiln_module_parameter_leaf_unpack(NULL, 0, in, out) &&
            !kiln_module_parameter_leaf_unpack(m, 0, NULL, out));
  ck_assert(!kiln_module_result_leaf_pack(NULL, 0, in, out) && !kiln_module_result_leaf_pack(m, 0, in, NULL));
  ck_assert(!kiln_module_result_leaf_unpack(NULL, 0, in, out) && !kiln_module_result_leaf_unpack(m, 0, NULL, out) &&
            !kiln_module_result_leaf_unpack(m, 0, in, NULL));
  ck_assert(!kiln_module_parameter_leaf_fill(NULL, 0, 0, out) && !kiln_module_parameter_leaf_fill(m, 0, 0, NULL));
}
END_TEST

START_TEST(null_rewriting) {
  NULLS(INVALID_CX, kiln_module *, kiln_module_extract(NULL, m, "r", &o));
  NULLS(INVALID, kiln_module *, kiln_module_extract(cx, NULL, "r", &o));
  NULLS(INVALID, kiln_module *, kiln_module_extract(cx, m, NULL, &o));
  INVALID(kiln_module_extract(cx, m, "r", NULL));
  static kiln_status (*const rewrite[])(kiln_context *, const kiln_module *, kiln_module **) = {
      kiln_module_clone, kiln_module_remove_dead, kiln_module_inline, kiln_module_flatten_tuples};
  for (size_t i = 0; i < sizeof rewrite / sizeof rewrite[0]; i++) {
    NULLS(INVALID_CX, kiln_module *, rewrite[i](NULL, m, &o));
    NULLS(INVALID, kiln_module *, rewrite[i](cx, NULL, &o));
    INVALID(rewrite[i](cx, m, NULL));
  }
}
END_TEST

START_TEST(null_npy) {
  unsigned char bytes[KILN_NPY_WRITTEN];
  char error[256], shape[64] = "as it was";
  kiln_array_type type = {.dtype = KILN_F32, .rank = 1, .dims = {3}};
  kiln_npy_header h;
  size_t n = kiln_npy_header_write(&type, bytes);
  ck_assert(n > 0 && kiln_npy_header_write(NULL, bytes) == 0 && kiln_npy_header_write(&type, NULL) == 0);
  ck_assert(kiln_npy_header_size(bytes, n, NULL, 0) == n && kiln_npy_header_size(NULL, n, error, sizeof error) == 0 &&
            strstr(error, "no .npy file"));
  ck_assert(kiln_npy_header_read(bytes, n, &h, NULL, 0) && !kiln_npy_header_read(bytes, 9, &h, NULL, 0));
  ck_assert(!kiln_npy_header_read(NULL, n, &h, error, sizeof error) &&
            !kiln_npy_header_read(bytes, n, NULL, error, sizeof error) && strstr(error, "found NULL"));
  ck_assert(kiln_npy_dtype_holds("<f4", KILN_F32) && !kiln_npy_dtype_holds(NULL, KILN_F32));
  ck_assert(kiln_npy_dtype_parse("<f4") == KILN_F32 && kiln_npy_dtype_parse(NULL) == KILN_DTYPE_NONE);
  ck_assert(kiln_npy_bytes(&type) == 12 && kiln_npy_bytes(NULL) == 0 && kiln_npy_item_size(KILN_F32) == 4);
  ck_assert_str_eq(kiln_npy_dtype(KILN_F32), "<f4");
  kiln_npy_shape_text(NULL, 1, shape, sizeof shape);
  kiln_npy_shape_text(type.dims, 1, NULL, sizeof shape);
  ck_assert_str_eq(shape, "as it was");
}
END_TEST

void misuse_modules(Suite *s) {
  ADD("modules", {null_base}, {null_modules}, {null_rewriting}, {null_npy});
}

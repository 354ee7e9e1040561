// Encodings, stored tensors and files of them.
#include "misuse.h"

static kiln_status visit(void *user, const int64_t *coordinates, const void *value) {
  (void)user, (void)coordinates, (void)value;
  return KILN_OK;
}

START_TEST(null_sparse) {
  static const char csr[] = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>";
  kiln_encoding_params typed = {.struct_size = sizeof typed, .type = "4x4xf32"};
  kiln_encoding_parts parts = {.struct_size = sizeof parts};
  kiln_sparse_entries entries = {.struct_size = sizeof entries};
  kiln_sparse_array arrays[3] = {{0}};
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  kiln_level level;
  kiln_encoding_rule rule;
  kiln_sparse_buffer buffer;
  int64_t first, size;
  float dense[16];
  NULLS(INVALID_CX, kiln_encoding *, kiln_encoding_parse(NULL, "e", csr, sizeof csr - 1, NULL, &o));
  NULLS(INVALID, kiln_encoding *, kiln_encoding_parse(cx, "e", NULL, 3, NULL, &o));
  INVALID(kiln_encoding_parse(cx, "e", csr, sizeof csr - 1, NULL, NULL));
  NULLS(INVALID_CX, kiln_encoding *, kiln_encoding_create(NULL, &parts, NULL, &o));
  NULLS(INVALID, kiln_encoding *, kiln_encoding_create(cx, NULL, NULL, &o));
  INVALID(kiln_encoding_create(cx, &parts, NULL, NULL));
  ck_assert_int_eq(kiln_encoding_parse(cx, "e", csr, sizeof csr - 1, &typed, &e), KILN_OK);
  ck_assert(!kiln_encoding_describe(NULL) && !kiln_encoding_level_at(NULL, 0, &level) &&
            !kiln_encoding_level_at(e, 0, NULL) && !kiln_encoding_level_at(e, 2, &level));
  ck_assert(!kiln_encoding_is_equal(e, NULL) && !kiln_encoding_rule_at(0, NULL) && !kiln_encoding_rule_at(9999, &rule));
  NULLS(INVALID_CX, kiln_sparse_layout *, kiln_sparse_layout_create(NULL, e, KILN_F32, NULL, &o));
  NULLS(INVALID, kiln_sparse_layout *, kiln_sparse_layout_create(cx, NULL, KILN_F32, NULL, &o));
  INVALID(kiln_sparse_layout_create(cx, e, KILN_F32, NULL, NULL));
  ck_assert_int_eq(kiln_sparse_layout_create(cx, e, KILN_F32, NULL, &l), KILN_OK);
  ck_assert(kiln_sparse_layout_buffer_count(NULL) == 0 && !kiln_sparse_layout_buffer_at(NULL, 0, &buffer) &&
            !kiln_sparse_layout_buffer_at(l, 0, NULL) && !kiln_sparse_layout_buffer_at(l, 3, &buffer));
  ck_assert(!kiln_sparse_layout_level_at(NULL, 0, &first, &size) && !kiln_sparse_layout_level_at(l, 2, &first, &size) &&
            !kiln_sparse_layout_dimension_at(NULL, 0) && !kiln_sparse_layout_dimension_at(l, 2));
  INVALID(kiln_sparse_pack(cx, NULL, &entries, arrays));
  INVALID(kiln_sparse_pack(cx, l, NULL, arrays));
  INVALID(kiln_sparse_pack(cx, l, &entries, NULL));
  INVALID(kiln_sparse_pack_dense(cx, NULL, dense, arrays));
  INVALID(kiln_sparse_pack_dense(cx, l, NULL, arrays));
  INVALID(kiln_sparse_pack_dense(cx, l, dense, NULL));
  INVALID(kiln_sparse_verify(cx, NULL, arrays, KILN_SPARSE_CHECK_SIZES));
  INVALID(kiln_sparse_verify(cx, l, NULL, KILN_SPARSE_CHECK_SIZES));
  INVALID(kiln_sparse_unpack(cx, NULL, arrays, dense));
  INVALID(kiln_sparse_unpack(cx, l, NULL, dense));
  int64_t positions[5] = {0};
  arrays[0] = (kiln_sparse_array){positions, 5};
  INVALID(kiln_sparse_unpack(cx, l, arrays, NULL));
  INVALID(kiln_sparse_walk(cx, NULL, arrays, visit, NULL));
  INVALID(kiln_sparse_walk(cx, l, NULL, visit, NULL));
  INVALID(kiln_sparse_walk(cx, l, arrays, NULL, NULL));
  INVALID(kiln_sparse_convert(cx, NULL, arrays, l, arrays));
  INVALID(kiln_sparse_convert(cx, l, NULL, l, arrays));
  INVALID(kiln_sparse_convert(cx, l, arrays, NULL, arrays));
  INVALID(kiln_sparse_convert(cx, l, arrays, l, NULL));
  INVALID(kiln_sparse_convert_slice(cx, NULL, arrays, NULL, l, arrays));
  INVALID(kiln_sparse_convert_slice(cx, l, NULL, NULL, l, arrays));
  INVALID(kiln_sparse_convert_slice(cx, l, arrays, NULL, NULL, arrays));
  INVALID(kiln_sparse_convert_slice(cx, l, arrays, NULL, l, NULL));
  int64_t counts[4] = {0};
  INVALID_CX(kiln_sparse_check_counts(NULL, l, counts, arrays));
  INVALID(kiln_sparse_check_counts(cx, NULL, counts, arrays));
  INVALID(kiln_sparse_check_counts(cx, l, NULL, arrays));
  INVALID(kiln_sparse_check_counts(cx, l, counts, NULL));
  NULLS(INVALID_CX, kiln_module *, kiln_module_densify(NULL, m, NULL, 0, &o));
  NULLS(INVALID, kiln_module *, kiln_module_densify(cx, NULL, NULL, 0, &o));
  NULLS(INVALID, kiln_module *, kiln_module_densify(cx, m, NULL, 1, &o));
  INVALID(kiln_module_densify(cx, m, NULL, 0, NULL));
  ck_assert(!kiln_module_parameter_leaf_encoding(NULL, 0) && !kiln_module_parameter_leaf_encoding(m, 99));
  ck_assert(!kiln_module_result_leaf_encoding(NULL, 0) && !kiln_module_result_leaf_encoding(m, 99));
  kiln_sparse_layout_destroy(NULL);
  kiln_sparse_layout_destroy(&l);
  kiln_encoding_destroy(NULL);
  kiln_encoding_destroy(&e);
}
END_TEST

START_TEST(null_sparse_files) {
  static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n";
  kiln_sparse_npy npy = {"a.npy", text, sizeof text - 1}, none = {"a.npy", NULL, 0};
  kiln_sparse_list *list = NULL;
  char *a, *b;
  size_t n, k;
  NULLS(INVALID_CX, kiln_sparse_list *,
        kiln_sparse_list_read(NULL, KILN_SPARSE_MATRIX_MARKET, "m", text, 3, KILN_F32, &o));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_read(cx, KILN_SPARSE_MATRIX_MARKET, NULL, text, 3, KILN_F32, &o));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_read(cx, KILN_SPARSE_MATRIX_MARKET, "m", NULL, 3, KILN_F32, &o));
  INVALID(kiln_sparse_list_read(cx, KILN_SPARSE_MATRIX_MARKET, "m", text, 3, KILN_F32, NULL));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_create(cx, NULL, NULL, &o));
  INVALID(kiln_sparse_list_create(cx, NULL, NULL, NULL));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_read_npy(cx, NULL, &npy, NULL, 0, KILN_F32, &o));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_read_npy(cx, &npy, NULL, NULL, 0, KILN_F32, &o));
  NULLS(INVALID, kiln_sparse_list *, kiln_sparse_list_read_npy(cx, &npy, &none, NULL, 0, KILN_F32, &o));
  INVALID(kiln_sparse_list_read_npy(cx, &npy, &npy, NULL, 0, KILN_F32, NULL));
  ck_assert_int_eq(kiln_sparse_list_read(cx, KILN_SPARSE_MATRIX_MARKET, "m", text, sizeof text - 1, KILN_F32, &list),
                   KILN_OK);
  INVALID(kiln_sparse_list_write(cx, NULL, KILN_SPARSE_NPZ_CSR, &a, &n));
  INVALID(kiln_sparse_list_write(cx, list, KILN_SPARSE_NPZ_CSR, NULL, &n));
  INVALID(kiln_sparse_list_write(cx, list, KILN_SPARSE_NPZ_CSR, &a, NULL));
  INVALID(kiln_sparse_list_write_npy(cx, NULL, &a, &n, &b, &k));
  INVALID(kiln_sparse_list_write_npy(cx, list, NULL, &n, &b, &k));
  INVALID(kiln_sparse_list_write_npy(cx, list, &a, NULL, &b, &k));
  INVALID(kiln_sparse_list_write_npy(cx, list, &a, &n, NULL, &k));
  INVALID(kiln_sparse_list_write_npy(cx, list, &a, &n, &b, NULL));
  ck_assert(!kiln_sparse_list_describe(NULL));
  kiln_sparse_list_destroy(NULL);
  kiln_sparse_list_destroy(&list);
}
END_TEST

void misuse_sparse(Suite *s) {
  ADD("sparse", {null_sparse}, {null_sparse_files});
}

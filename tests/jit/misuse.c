// What callers do wrong and must survive: NULL in every place of every public function, calls after the end, handles
// that outlive their context.
#include "handles.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const void *const none[] = {NULL};
static void *const no_results[] = {NULL};
static kiln_eval_params threads = {.struct_size = sizeof threads, .threads = 1};

static void setup(void) {
  make_context();
  m = parse("HloModule m\nf { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }\n"
            "ENTRY e { p = f32[64] parameter(0) ROOT r = f32[64] fusion(p), kind=kLoop, calls=f }\n");
  open_handles(m, m);
}

static void teardown(void) {
  close_handles();
  drop_context();
}

// --- NULL -----------------------------------------------------------------------------------------------------------

static const char *first_finding(void) {
  return kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->message : "";
}

// INVALID, with a finding that speaks of NULL; without one where the context itself is missing.
#define INVALID(call)                                                                                                  \
  do {                                                                                                                 \
    kiln_diagnostics_clear(cx);                                                                                        \
    EXPECT((call) == KILN_E_INVALID, "%s", #call);                                                                     \
    EXPECT(strstr(first_finding(), "NULL"), "%s: %s", #call, first_finding());                                         \
  } while (0)
#define INVALID_CX(call)                                                                                               \
  do {                                                                                                                 \
    kiln_diagnostics_clear(cx);                                                                                        \
    EXPECT((call) == KILN_E_INVALID, "%s", #call);                                                                     \
    EXPECT(kiln_diagnostics_count(cx) == 0, "%s: %s", #call, first_finding());                                         \
  } while (0)
// Also nulls what it would have made in `o`.
#define NULLS(check, T, call)                                                                                          \
  do {                                                                                                                 \
    T o;                                                                                                               \
    memset(&o, 0x55, sizeof o);                                                                                        \
    check(call);                                                                                                       \
    T zero = {0};                                                                                                      \
    EXPECT(memcmp(&o, &zero, sizeof o) == 0, "%s: what it makes is not nulled", #call);                                \
  } while (0)

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

START_TEST(null_maps) {
  static const char text[] = "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 9], s0 in [0, 3]";
  kiln_map *map = NULL, *constant = NULL;
  kiln_interval x;
  int64_t v[1] = {1}, r[1];
  size_t size;
  NULLS(INVALID_CX, kiln_map *, kiln_map_parse(NULL, "m", text, sizeof text - 1, &o));
  NULLS(INVALID, kiln_map *, kiln_map_parse(cx, "m", NULL, 3, &o));
  INVALID(kiln_map_parse(cx, "m", text, sizeof text - 1, NULL));
  ck_assert_int_eq(kiln_map_parse(cx, NULL, text, sizeof text - 1, &map), KILN_OK);
  ck_assert_int_eq(kiln_map_parse(cx, NULL, "() -> (5)", 9, &constant), KILN_OK);
  NULLS(INVALID_CX, char *, kiln_map_print(NULL, map, KILN_MAP_LINE, &o, &size));
  NULLS(INVALID, char *, kiln_map_print(cx, NULL, KILN_MAP_LINE, &o, &size));
  INVALID(kiln_map_print(cx, map, KILN_MAP_LINE, NULL, &size));
  static kiln_status (*const make[])(kiln_context *, const kiln_map *,
                                     kiln_map **) = {kiln_map_simplify, kiln_map_invert, kiln_map_remove_unused};
  for (size_t i = 0; i < sizeof make / sizeof make[0]; i++) {
    NULLS(INVALID_CX, kiln_map *, make[i](NULL, map, &o));
    NULLS(INVALID, kiln_map *, make[i](cx, NULL, &o));
    INVALID(make[i](cx, map, NULL));
  }
  NULLS(INVALID_CX, kiln_map *, kiln_map_compose(NULL, map, map, &o));
  NULLS(INVALID, kiln_map *, kiln_map_compose(cx, NULL, map, &o));
  NULLS(INVALID, kiln_map *, kiln_map_compose(cx, map, NULL, &o));
  INVALID(kiln_map_compose(cx, map, map, NULL));
  ck_assert_int_eq(kiln_map_get_state(NULL), KILN_MAP_UNDEFINED);
  ck_assert_str_eq(kiln_map_reason(NULL), "");
  ck_assert(!kiln_map_variable_count(NULL, KILN_MAP_DIM) && !kiln_map_result_count(NULL) &&
            !kiln_map_constraint_count(NULL));
  ck_assert(!kiln_map_bounds(NULL, KILN_MAP_DIM, 0, &x) && !kiln_map_bounds(map, KILN_MAP_DIM, 0, NULL));
  ck_assert(!kiln_map_result_range(NULL, 0, &x) && !kiln_map_result_range(map, 0, NULL));
  ck_assert(kiln_map_is_empty(NULL, 0) == KILN_UNKNOWN && kiln_map_is_included(NULL, map, 0) == KILN_UNKNOWN &&
            kiln_map_is_included(map, NULL, 0) == KILN_UNKNOWN && kiln_map_is_equal(NULL, map, 0) == KILN_UNKNOWN &&
            kiln_map_is_equal(map, NULL, 0) == KILN_UNKNOWN);
  ck_assert(!kiln_map_contains(NULL, v, v, v) && !kiln_map_contains(map, NULL, v, v) &&
            !kiln_map_contains(map, v, NULL, v) && kiln_map_contains(map, v, v, NULL));
  ck_assert(!kiln_map_evaluate(NULL, v, v, v, r) && !kiln_map_evaluate(map, NULL, v, v, r) &&
            !kiln_map_evaluate(map, v, NULL, v, r) && !kiln_map_evaluate(map, v, v, NULL, NULL));
  ck_assert(kiln_map_evaluate(map, v, v, NULL, r) && r[0] == 2);
  ck_assert(kiln_map_evaluate(constant, NULL, NULL, NULL, r) && r[0] == 5);
  kiln_map_destroy(NULL);
  kiln_map_destroy(&constant);
  kiln_map_destroy(&map);
}
END_TEST

START_TEST(null_indexing) {
  NULLS(INVALID_CX, kiln_indexing *, kiln_module_index(NULL, m, NULL, &o));
  NULLS(INVALID, kiln_indexing *, kiln_module_index(cx, NULL, NULL, &o));
  INVALID(kiln_module_index(cx, m, NULL, NULL));
  ck_assert(kiln_indexing_count(NULL) == 0 && !kiln_indexing_at(NULL, 0));
  kiln_indexing_destroy(NULL);
}
END_TEST

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

START_TEST(null_counts) {
  kiln_indexing *list = NULL;
  kiln_index_counts counts = {.struct_size = sizeof counts}, wrong = {.struct_size = 3};
  ck_assert_int_eq(kiln_module_index(cx, m, NULL, &list), KILN_OK);
  ck_assert(kiln_indexing_counts(list, 0, &counts) && counts.elements == 64 && counts.distinct == 64 &&
            counts.total == 64 && counts.distinct_exact && counts.total_exact);
  ck_assert(!kiln_indexing_counts(NULL, 0, &counts) && !kiln_indexing_counts(list, 0, NULL) &&
            !kiln_indexing_counts(list, 1, &counts) && !kiln_indexing_counts(list, 0, &wrong));
  kiln_indexing_destroy(&list);
}
END_TEST

START_TEST(null_tiles) {
  kiln_tiling *t = NULL;
  kiln_tile_choices *c = NULL;
  kiln_tiling_dim dim = {.struct_size = sizeof dim};
  kiln_tiling_runtime runtime = {.struct_size = sizeof runtime};
  kiln_tiling_region region = {.struct_size = sizeof region};
  kiln_tile_schedule schedule = {.struct_size = sizeof schedule};
  int64_t tile[8];
  kiln_tiled_value value = {.struct_size = sizeof value};
  kiln_tile_text text = {.struct_size = sizeof text};
  kiln_tile_choice choice = {.struct_size = sizeof choice};
  kiln_tile_range range;
  int64_t tiles[1] = {0}, sizes[1] = {8};
  const char *said;
  bool any;
  NULLS(INVALID_CX, kiln_tiling *, kiln_tiling_make(NULL, m, NULL, &o));
  NULLS(INVALID, kiln_tiling *, kiln_tiling_make(cx, NULL, NULL, &o));
  INVALID(kiln_tiling_make(cx, m, NULL, NULL));
  NULLS(INVALID_CX, kiln_tile_choices *, kiln_tile_search(NULL, m, NULL, &o));
  NULLS(INVALID, kiln_tile_choices *, kiln_tile_search(cx, NULL, NULL, &o));
  INVALID(kiln_tile_search(cx, m, NULL, NULL));
  ck_assert_int_eq(kiln_tiling_make(cx, m, NULL, &t), KILN_OK);
  ck_assert_int_eq(kiln_tile_search(cx, m, NULL, &c), KILN_OK);
  ck_assert(!kiln_tiling_dim_count(NULL) && !kiln_tiling_parallel_count(NULL) && !kiln_tiling_runtime_count(NULL) &&
            !kiln_tiling_region_count(NULL) && !kiln_tiling_value_count(NULL) && !kiln_tile_choice_count(NULL));
  ck_assert(!kiln_tiling_dim_at(NULL, 0, &dim) && !kiln_tiling_dim_at(t, 0, NULL));
  ck_assert(!kiln_tiling_runtime_at(NULL, 0, &runtime) && !kiln_tiling_runtime_at(t, 0, NULL));
  ck_assert(!kiln_tiling_region_at(NULL, 0, &region) && !kiln_tiling_region_at(t, 0, NULL));
  ck_assert(!kiln_tiling_value_at(NULL, 0, &value) && !kiln_tiling_value_at(t, 0, NULL));
  ck_assert(!kiln_tiling_condition_at(NULL, 0, 0, &said) && !kiln_tiling_condition_at(t, 0, 0, NULL));
  ck_assert(!kiln_tiling_box_at(NULL, 0, 0, 0, &text) && !kiln_tiling_box_at(t, 0, 0, 0, NULL));
  ck_assert(!kiln_tiling_guard_at(NULL, 0, 0, 0, &said) && !kiln_tiling_guard_at(t, 0, 0, 0, NULL));
  ck_assert(!kiln_tiling_evaluate(NULL, 0, 0, tiles, sizes, NULL, &any, &range) &&
            !kiln_tiling_evaluate(t, 0, 0, NULL, sizes, NULL, &any, &range) &&
            !kiln_tiling_evaluate(t, 0, 0, tiles, NULL, NULL, &any, &range) &&
            !kiln_tiling_evaluate(t, 0, 0, tiles, sizes, NULL, NULL, &range) &&
            !kiln_tiling_evaluate(t, 0, 0, tiles, sizes, NULL, &any, NULL));
  ck_assert(!kiln_tiling_schedule(NULL, &schedule) && !kiln_tiling_schedule(t, NULL));
  ck_assert(!kiln_tiling_schedule_at(NULL, 0, &said) && !kiln_tiling_schedule_at(t, 0, NULL));
  ck_assert(!kiln_tiling_schedule_tile(NULL, 0, 0, tile) && !kiln_tiling_schedule_tile(t, 0, 0, NULL));
  ck_assert(!kiln_tile_choices_all(NULL) && !kiln_tile_choice_at(NULL, 0, &choice) && !kiln_tile_choice_at(c, 0, NULL));
  kiln_tiling_destroy(NULL);
  kiln_tile_choices_destroy(NULL);
  kiln_tile_choices_destroy(&c);
  kiln_tiling_destroy(&t);
}
END_TEST

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
#define POISONED(call) EXPECT((call) == KILN_E_INVALID && kiln_diagnostics_count(cx) == 1, "%s", first_finding())

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

START_TEST(null_layouts) {
  kiln_layout *l = NULL;
  int64_t index[2], extent, stride;
  unsigned bit;
  const char *name, *value;
  bool padding;
  NULLS(INVALID_CX, kiln_layout *, kiln_layout_parse(NULL, "f32[2]", &o));
  NULLS(INVALID, kiln_layout *, kiln_layout_parse(cx, NULL, &o));
  INVALID(kiln_layout_parse(cx, "f32[2]", NULL));
  ck_assert_int_eq(kiln_layout_parse(cx, "f32[3,5]{1,0:T(*,2)}", &l), KILN_OK);
  NULLS(INVALID_CX, kiln_map *, kiln_layout_map(NULL, l, &o));
  NULLS(INVALID, kiln_map *, kiln_layout_map(cx, NULL, &o));
  INVALID(kiln_layout_map(cx, l, NULL));
  NULLS(INVALID_CX, kiln_map *, kiln_layout_inverse_map(NULL, l, &o));
  NULLS(INVALID, kiln_map *, kiln_layout_inverse_map(cx, NULL, &o));
  INVALID(kiln_layout_inverse_map(cx, l, NULL));
  ck_assert_ptr_null(kiln_layout_describe(NULL));
  ck_assert(!kiln_layout_digit_at(NULL, 0, &extent, &stride, &value) &&
            !kiln_layout_digit_at(l, 0, NULL, &stride, &value) && !kiln_layout_digit_at(l, 0, &extent, NULL, &value) &&
            !kiln_layout_digit_at(l, 0, &extent, &stride, NULL));
  ck_assert(!kiln_layout_name_at(NULL, 0, &name, &value) && !kiln_layout_name_at(l, 0, NULL, &value) &&
            !kiln_layout_name_at(l, 0, &name, NULL));
  INVALID_CX(kiln_layout_read_index(NULL, l, "1,2", index));
  INVALID(kiln_layout_read_index(cx, NULL, "1,2", index));
  INVALID(kiln_layout_read_index(cx, l, NULL, index));
  INVALID(kiln_layout_read_index(cx, l, "1,2", NULL));
  ck_assert_int_eq(kiln_layout_read_index(cx, l, "1,2", index), KILN_OK);
  NULLS(INVALID_CX, int64_t, kiln_layout_position(NULL, l, index, &o));
  NULLS(INVALID, int64_t, kiln_layout_position(cx, NULL, index, &o));
  NULLS(INVALID, int64_t, kiln_layout_position(cx, l, NULL, &o));
  INVALID(kiln_layout_position(cx, l, index, NULL));
  NULLS(INVALID_CX, bool, kiln_layout_index(NULL, l, 0, index, &o));
  NULLS(INVALID, bool, kiln_layout_index(cx, NULL, 0, index, &o));
  NULLS(INVALID, bool, kiln_layout_index(cx, l, 0, NULL, &o));
  INVALID(kiln_layout_index(cx, l, 0, index, NULL));
  ck_assert(kiln_layout_index(cx, l, 0, index, &padding) == KILN_OK && !padding);
  ck_assert_int_eq(kiln_layout_next_padding(NULL, 0), -1);
  ck_assert(!kiln_layout_address(NULL, 0, &extent, &bit) && !kiln_layout_address(l, 0, NULL, &bit) &&
            !kiln_layout_address(l, 0, &extent, NULL));
  ck_assert(!kiln_layout_pack(NULL, in, out) && !kiln_layout_pack(l, NULL, out) && !kiln_layout_pack(l, in, NULL));
  ck_assert(!kiln_layout_unpack(NULL, in, out) && !kiln_layout_unpack(l, NULL, out) &&
            !kiln_layout_unpack(l, in, NULL));
  ck_assert(!kiln_layout_reshape_moves_nothing(NULL, l) && !kiln_layout_reshape_moves_nothing(l, NULL));
  ck_assert(!kiln_layout_transpose_moves_nothing(NULL, l, index) &&
            !kiln_layout_transpose_moves_nothing(l, NULL, index) && !kiln_layout_transpose_moves_nothing(l, l, NULL));
  ck_assert(!kiln_layout_bitcast_reads_elements(NULL, l) && !kiln_layout_bitcast_reads_elements(l, NULL));
  kiln_layout_destroy(NULL);
  kiln_layout_destroy(&l);
  kiln_layout_destroy(&l);
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

static void null_caches(const kiln_artifact *a) {
  kiln_cache_params p = {.struct_size = sizeof p, .folder = ""};
  kiln_cache_info info = {.struct_size = sizeof info};
  kiln_cache *c = NULL;
  void *bytes = NULL;
  size_t n = 0;
  INVALID_CX(kiln_artifact_save(NULL, a, &bytes, &n));
  INVALID(kiln_artifact_save(cx, NULL, &bytes, &n));
  INVALID(kiln_artifact_save(cx, a, NULL, &n));
  INVALID(kiln_artifact_save(cx, a, &bytes, NULL));
  kiln_artifact_bytes_free(NULL, NULL, 0);
  kiln_artifact_bytes_free(cx, NULL, 0);
  NULLS(INVALID_CX, kiln_artifact *, kiln_artifact_load(NULL, "x", 1, &o));
  NULLS(INVALID, kiln_artifact *, kiln_artifact_load(cx, NULL, 1, &o));
  INVALID(kiln_artifact_load(cx, "x", 1, NULL));
  NULLS(INVALID_CX, kiln_cache *, kiln_cache_open(NULL, &p, &o));
  INVALID(kiln_cache_open(cx, &p, NULL));
  ck_assert_int_eq(kiln_cache_open(cx, &p, &c), KILN_OK);
  NULLS(INVALID_CX, kiln_artifact *, kiln_cache_compile(NULL, c, m, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_cache_compile(cx, NULL, m, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_cache_compile(cx, c, NULL, NULL, &o));
  INVALID(kiln_cache_compile(cx, c, m, NULL, NULL));
  INVALID_CX(kiln_cache_describe(NULL, c, &info));
  INVALID(kiln_cache_describe(cx, NULL, &info));
  INVALID(kiln_cache_describe(cx, c, NULL));
  kiln_cache_close(&c);
  kiln_cache_close(&c);
  kiln_cache_close(NULL);
}

START_TEST(null_cuda) {
  kiln_device_info info = {.struct_size = sizeof info};
  kiln_cuda_resources r = {.struct_size = sizeof r};
  kiln_cuda_launch_params p = {.struct_size = sizeof p};
  void *context = kiln_device_context(device);
  uint64_t address;
  NULLS(INVALID_CX, kiln_driver *, kiln_driver_open(NULL, NULL, &o));
  INVALID(kiln_driver_open(cx, NULL, NULL));
  kiln_driver_close(NULL);
  ck_assert_int_eq(kiln_driver_version(NULL), 0);
  NULLS(INVALID_CX, uint32_t, kiln_device_count(NULL, driver, &o));
  NULLS(INVALID, uint32_t, kiln_device_count(cx, NULL, &o));
  INVALID(kiln_device_count(cx, driver, NULL));
  INVALID_CX(kiln_device_describe(NULL, driver, 0, &info));
  INVALID(kiln_device_describe(cx, NULL, 0, &info));
  INVALID(kiln_device_describe(cx, driver, 0, NULL));
  NULLS(INVALID_CX, kiln_cuda_kernel *, kiln_cuda_kernel_create(NULL, driver, gpu, context, &o));
  NULLS(INVALID, kiln_cuda_kernel *, kiln_cuda_kernel_create(cx, NULL, gpu, context, &o));
  NULLS(INVALID, kiln_cuda_kernel *, kiln_cuda_kernel_create(cx, driver, NULL, context, &o));
  INVALID(kiln_cuda_kernel_create(cx, driver, gpu, context, NULL));
  kiln_cuda_kernel_destroy(NULL);
  NULLS(INVALID_CX, kiln_xla_kernel *, kiln_xla_kernel_create(NULL, gpu, driver, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, NULL, driver, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, gpu, NULL, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, gpu, driver, NULL, &o));
  INVALID(kiln_xla_kernel_create(cx, gpu, driver, context, NULL));
  kiln_xla_kernel_destroy(NULL);
  ck_assert_ptr_null(kiln_xla_call(NULL));
  null_caches(gpu);
  INVALID_CX(kiln_cuda_kernel_prepare(NULL, on_gpu));
  INVALID(kiln_cuda_kernel_prepare(cx, NULL));
  INVALID_CX(kiln_cuda_kernel_resources(NULL, on_gpu, 0, &r));
  INVALID(kiln_cuda_kernel_resources(cx, NULL, 0, &r));
  INVALID(kiln_cuda_kernel_resources(cx, on_gpu, 0, NULL));
  INVALID_CX(kiln_cuda_kernel_launch(NULL, on_gpu, &p));
  INVALID(kiln_cuda_kernel_launch(cx, NULL, &p));
  INVALID(kiln_cuda_kernel_launch(cx, on_gpu, NULL));
  kiln_diagnostics_clear(cx);
  ck_assert_int_eq(kiln_cuda_kernel_launch(cx, on_gpu, &p), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  NULLS(INVALID_CX, kiln_device *, kiln_device_open(NULL, driver, 0, &o));
  NULLS(INVALID, kiln_device *, kiln_device_open(cx, NULL, 0, &o));
  INVALID(kiln_device_open(cx, driver, 0, NULL));
  kiln_device_close(NULL);
  ck_assert(!kiln_device_context(NULL) && !kiln_device_stream(NULL));
  NULLS(INVALID_CX, uint64_t, kiln_device_alloc(NULL, device, 8, &o));
  NULLS(INVALID, uint64_t, kiln_device_alloc(cx, NULL, 8, &o));
  INVALID(kiln_device_alloc(cx, device, 8, NULL));
  ck_assert_int_eq(kiln_device_alloc(cx, device, 8, &address), KILN_OK);
  INVALID_CX(kiln_device_upload(NULL, device, address, in, 8));
  INVALID(kiln_device_upload(cx, NULL, address, in, 8));
  INVALID(kiln_device_upload(cx, device, address, NULL, 8));
  ck_assert_int_eq(kiln_device_upload(cx, device, address, NULL, 0), KILN_OK);
  INVALID_CX(kiln_device_download(NULL, device, out, address, 8));
  INVALID(kiln_device_download(cx, NULL, out, address, 8));
  INVALID(kiln_device_download(cx, device, NULL, address, 8));
  ck_assert_int_eq(kiln_device_download(cx, device, NULL, address, 0), KILN_OK);
  INVALID_CX(kiln_device_copy(NULL, device, address, address, 8));
  INVALID(kiln_device_copy(cx, NULL, address, address, 8));
  INVALID_CX(kiln_device_fill(NULL, device, address, 0, 8));
  INVALID(kiln_device_fill(cx, NULL, address, 0, 8));
  INVALID_CX(kiln_device_synchronize(NULL, device));
  INVALID(kiln_device_synchronize(cx, NULL));
  INVALID_CX(kiln_device_mark_begin(NULL, device));
  INVALID(kiln_device_mark_begin(cx, NULL));
  INVALID_CX(kiln_device_mark_end(NULL, device));
  INVALID(kiln_device_mark_end(cx, NULL));
  NULLS(INVALID_CX, double, kiln_device_elapsed(NULL, device, &o));
  NULLS(INVALID, double, kiln_device_elapsed(cx, NULL, &o));
  INVALID(kiln_device_elapsed(cx, device, NULL));
  kiln_device_free(NULL, address);
  kiln_device_free(device, address);
}
END_TEST

static char *read_all(const char *path) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "cannot read %s", path);
  char *text = calloc(1, 1 << 20);
  ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, f), (1 << 20) - 1);
  fclose(f);
  return text;
}

// Functions of a header's text that take a pointer and are not called in `own`, the text of this file; their number.
static int look_for(char *text, const char *own) {
  int functions = 0;
  for (char *p = text; (p = strstr(p, "\nKILN_API "));) {
    char *open = strchr(p, '('), *name = open;
    size_t n = strcspn(open, ";");
    while (name[-1] == '_' || isalnum((unsigned char)name[-1])) name--;
    p = open + n;
    if (!memchr(open, '*', n) && !memchr(open, '[', n)) continue;
    *open = 0;
    ck_assert_msg(strstr(own, name) != NULL, "%s is not tested with NULL", name);
    *open = '(';
    functions++;
  }
  return functions;
}

static void null_profile(kiln_sim_kernel *k) {
  uint32_t n = 5;
  const void *arguments[] = {&n};
  kiln_sim_launch_params lp = {.struct_size = sizeof lp, .arguments = arguments};
  kiln_profile *p = NULL;
  kiln_profile_info info = {.struct_size = sizeof info};
  kiln_profile_assembly made = {.struct_size = sizeof made};
  size_t size = 5;
  NULLS(INVALID_CX, kiln_profile *, kiln_sim_kernel_profile(NULL, k, &lp, NULL, NULL, &o));
  NULLS(INVALID, kiln_profile *, kiln_sim_kernel_profile(cx, NULL, &lp, NULL, NULL, &o));
  NULLS(INVALID, kiln_profile *, kiln_sim_kernel_profile(cx, k, NULL, NULL, NULL, &o));
  INVALID(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, NULL));
  kiln_profile_destroy(NULL);
  kiln_profile_destroy(&p);
  ck_assert_ptr_null(kiln_profile_source(NULL, false, &size));
  ck_assert_uint_eq(size, 0);
  lp.checks = KILN_SIM_CHECK_RACE;
  ck_assert_int_eq(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, &p), KILN_E_INVALID);
  lp.checks = 0;
  ck_assert_int_eq(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, &p), KILN_OK);
  ck_assert_ptr_nonnull(kiln_profile_source(p, false, NULL));
  INVALID_CX(kiln_profile_describe(NULL, p, &info));
  INVALID(kiln_profile_describe(cx, NULL, &info));
  INVALID(kiln_profile_describe(cx, p, NULL));
  INVALID_CX(kiln_profile_assembled(NULL, p, &made));
  INVALID(kiln_profile_assembled(cx, NULL, &made));
  INVALID(kiln_profile_assembled(cx, p, NULL));
  INVALID(kiln_profile_assembled(cx, p, &made)); // no cubin
  kiln_profile_destroy(&p);
  ck_assert_ptr_null(p);
}

// A function that any header declares and that takes a pointer is called above.
START_TEST(null_sim) {
  kiln_sim_params p = {.struct_size = sizeof p};
  INVALID_CX(kiln_sim_configure(NULL, &p));
  INVALID(kiln_sim_configure(cx, NULL));
  ck_assert_ptr_null(kiln_sim_resolve(NULL, NULL, 12000));
  ck_assert_ptr_nonnull(kiln_sim_resolve(NULL, "cuInit", 12000));
  kiln_simulator *sim = NULL;
  kiln_sim_module *sm = NULL;
  kiln_sim_kernel *k = NULL;
  kiln_sim_launch_params lp = {.struct_size = sizeof lp};
  uint64_t at, size;
  static const char ptx[] =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }\n";
  NULLS(INVALID_CX, kiln_simulator *, kiln_simulator_open(NULL, &o));
  INVALID(kiln_simulator_open(cx, NULL));
  kiln_simulator_close(NULL);
  kiln_simulator_close(&sim);
  ck_assert_int_eq(kiln_simulator_open(cx, &sim), KILN_OK);
  NULLS(INVALID_CX, uint64_t, kiln_simulator_alloc(NULL, sim, 4, &o));
  NULLS(INVALID, uint64_t, kiln_simulator_alloc(cx, NULL, 4, &o));
  INVALID(kiln_simulator_alloc(cx, sim, 4, NULL));
  ck_assert(!kiln_simulator_free(NULL, 4) && !kiln_simulator_free(sim, 0));
  ck_assert_ptr_null(kiln_simulator_bytes(NULL, 4, 4));
  NULLS(INVALID_CX, kiln_sim_module *, kiln_simulator_load(NULL, sim, "m", ptx, 4, &o));
  NULLS(INVALID, kiln_sim_module *, kiln_simulator_load(cx, NULL, "m", ptx, 4, &o));
  NULLS(INVALID, kiln_sim_module *, kiln_simulator_load(cx, sim, "m", NULL, 4, &o));
  INVALID(kiln_simulator_load(cx, sim, "m", ptx, 4, NULL));
  ck_assert_int_eq(kiln_simulator_load(cx, sim, NULL, ptx, sizeof ptx - 1, &sm), KILN_OK);
  ck_assert_ptr_null(kiln_sim_module_kernel_at(NULL, 0));
  ck_assert(!kiln_sim_module_variable(NULL, "v", &at, &size) && !kiln_sim_module_variable(sm, NULL, &at, &size));
  ck_assert(!kiln_sim_module_variable(sm, "v", NULL, &size) && !kiln_sim_module_variable(sm, "v", &at, NULL));
  NULLS(INVALID_CX, kiln_sim_kernel *, kiln_sim_module_kernel(NULL, sm, "k", &o));
  NULLS(INVALID, kiln_sim_kernel *, kiln_sim_module_kernel(cx, NULL, "k", &o));
  NULLS(INVALID, kiln_sim_kernel *, kiln_sim_module_kernel(cx, sm, NULL, &o));
  INVALID(kiln_sim_module_kernel(cx, sm, "k", NULL));
  ck_assert_int_eq(kiln_sim_module_kernel(cx, sm, "k", &k), KILN_OK);
  ck_assert_ptr_null(kiln_sim_kernel_describe(NULL));
  INVALID_CX(kiln_sim_kernel_launch(NULL, k, &lp, NULL));
  INVALID(kiln_sim_kernel_launch(cx, NULL, &lp, NULL));
  INVALID(kiln_sim_kernel_launch(cx, k, NULL, NULL));
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL)); // its argument
  lp.arguments = none;
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL));
  null_profile(k);
  uint32_t word = 0;
  const void *one[] = {&word};
  kiln_sim_range nowhere = {64, 4};
  kiln_sim_finding finding = {.struct_size = sizeof finding};
  lp.arguments = one;
  lp.checks = KILN_SIM_CHECK_ALL + 1;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, k, &lp, NULL), KILN_E_INVALID);
  lp.checks = KILN_SIM_CHECK_ALL;
  lp.output_count = 1;
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL));
  lp.outputs = &nowhere;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, k, &lp, NULL), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_simulator_finding_count(NULL), 0);
  ck_assert_uint_eq(kiln_simulator_finding_count(sim), 0);
  INVALID_CX(kiln_simulator_finding(NULL, sim, 0, &finding));
  INVALID(kiln_simulator_finding(cx, NULL, 0, &finding));
  INVALID(kiln_simulator_finding(cx, sim, 0, NULL));
  ck_assert_int_eq(kiln_simulator_finding(cx, sim, 0, &finding), KILN_E_INVALID);
  kiln_simulator_close(&sim);
  p.checks = KILN_SIM_CHECK_ALL + 1;
  ck_assert_int_eq(kiln_sim_configure(cx, &p), KILN_E_INVALID);
  INVALID_CX(kiln_sim_finding_get(NULL, 0, &finding));
  INVALID(kiln_sim_finding_get(cx, 0, NULL));
  ck_assert_int_eq(kiln_sim_finding_get(cx, kiln_sim_finding_count(), &finding), KILN_E_INVALID);
}
END_TEST

START_TEST(every_function_is_here) {
  char *own = read_all(KL_TESTS "/jit/misuse.c"), path[1000];
  int functions = 0;
  DIR *folder = opendir(KL_TESTS "/../include/kiln");
  ck_assert(folder != NULL);
  for (struct dirent *e; (e = readdir(folder));) {
    size_t n = strlen(e->d_name);
    if (n < 3 || strcmp(e->d_name + n - 2, ".h") != 0) continue;
    snprintf(path, sizeof path, KL_TESTS "/../include/kiln/%s", e->d_name);
    char *text = read_all(path);
    functions += look_for(text, own);
    free(text);
  }
  ck_assert_int_gt(functions, 80);
  closedir(folder);
  free(own);
}
END_TEST

// --- after the end --------------------------------------------------------------------------------------------------

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

int main(void) {
  return RUN_TESTS("misuse", ONCE(setup, teardown), {null_base}, {null_modules}, {null_rewriting}, {null_maps},
                   {null_counts}, {null_sparse}, {null_sparse_files}, {null_npy}, {null_tiles}, {null_indexing},
                   {null_layouts}, {null_builder}, {null_evaluator}, {null_compiler}, {null_cuda}, {null_sim},
                   {every_function_is_here}, {a_finished_builder_says_so}, {a_poisoned_builder_says_so},
                   {the_context_goes_first});
}

// Index maps, and those of modules.
#include "misuse.h"

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

void misuse_maps(Suite *s) {
  ADD("maps", {null_maps}, {null_indexing}, {null_counts});
}

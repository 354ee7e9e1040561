// Tiles of computations.
#include "misuse.h"

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

void misuse_tiles(Suite *s) {
  ADD("tiles", {null_tiles});
}

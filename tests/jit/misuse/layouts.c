// Layouts of arrays.
#include "misuse.h"

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

void misuse_layouts(Suite *s) {
  ADD("layouts", {null_layouts});
}

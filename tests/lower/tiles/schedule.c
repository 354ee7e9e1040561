// Which block makes which tiles: known orders, and every tile once.
#include "support/context.h"

#include <kiln/tile.h>
#include <stdio.h>
#include <stdlib.h>

// clang-format off
static const struct {
  const char *entry;
  size_t nsizes;
  int64_t sizes[6], per_block, blocks, tiles;
  const char *at; // "; " after each dim's
} rows[] = {
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 2, {1, 32}, 1, 8, 8, "block / 4; block mod 4; "},
  // elsewhere (block * 2 + step) / 4 and (block * 2 + step) mod 4
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 2, {1, 32}, 2, 4, 8, "block / 2; (block mod 2) * 2 + step; "},
  // the last block has two
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 2, {1, 32}, 3, 3, 8, "(block * 3 + step) / 4; (block * 3 + step) mod 4; "},
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 2, {1, 32}, 100, 1, 8, "step / 4; step mod 4; "},
  {"a = f32[5] parameter(0) ROOT r = f32[5] negate(a)", 1, {9}, 0, 1, 1, "0; "},
  {"a = f32[] parameter(0) ROOT r = f32[] negate(a)", 0, {0}, 1, 1, 1, ""},
  // nothing to compute is one tile of nothing
  {"a = f32[0,6] parameter(0) ROOT r = f32[0,6] negate(a)", 2, {1, 2}, 1, 3, 3, "0; block; "},
  // of a contraction the rows go fastest, batches slowest
  {"a = f32[64,256] parameter(0) b = f32[256,96] parameter(1) ROOT d = f32[64,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
   2, {32, 32}, 1, 6, 6, "block mod 2; block / 2; "},
  {"a = f32[2,3,64,256] parameter(0) b = f32[2,3,256,96] parameter(1) ROOT d = f32[2,3,64,96] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}",
   4, {1, 1, 32, 96}, 1, 12, 12, "block / 6; (block / 2) mod 3; block mod 2; 0; "},
  {"a = f32[2,3,64,256] parameter(0) b = f32[2,3,256,96] parameter(1) ROOT d = f32[2,3,64,96] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}",
   4, {2, 3, 32, 32}, 1, 6, 6, "0; 0; block mod 2; block / 2; "},
  // wherever the rows are in the end
  {"a = f32[64,256] parameter(0) b = f32[256,96] parameter(1) d = f32[64,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[96,64] transpose(d), dimensions={1,0}",
   2, {32, 32}, 1, 6, 6, "block / 2; block mod 2; "},
  {"a = f32[64,256] parameter(0) b = f32[256,96] parameter(1) d = f32[64,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[2,32,96] reshape(d)",
   3, {1, 32, 32}, 1, 6, 6, "block mod 2; 0; block / 2; "},
  // where a dim has rows and columns, there is nothing to choose
  {"a = f32[4,8] parameter(0) b = f32[8,6] parameter(1) d = f32[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[24] reshape(d)",
   1, {12}, 1, 2, 2, "block; "},
  {"a = f32[64,256] parameter(0) b = f32[256] parameter(1) ROOT d = f32[64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 1, {32}, 1, 2, 2, "block; "},
  // scales change nothing
  {"a = f8e4m3fn[64,128] parameter(0) b = f8e4m3fn[96,128] parameter(1) s = f8e8m0fnu[64,4] parameter(2) t = f8e8m0fnu[96,4] parameter(3) ROOT d = f32[64,96] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
   2, {32, 32}, 1, 6, 6, "block mod 2; block / 2; "},
  // groups of 16 rows and 96 columns: rows fastest; of 128 rows: columns
  {"a = f32[64,256] parameter(0) b = f32[4,256,96] parameter(1) g = s32[4] parameter(2) ROOT d = f32[64,96] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
   2, {32, 32}, 1, 6, 6, "block mod 2; block / 2; "},
  {"a = f32[512,256] parameter(0) b = f32[4,256,96] parameter(1) g = s32[4] parameter(2) ROOT d = f32[512,96] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
   2, {256, 32}, 1, 6, 6, "block / 3; block mod 3; "},
  // more tiles than 32 bits count
  {"a = f32[65538,65537] parameter(0) ROOT r = f32[65538,65537] negate(a)", 2, {1, 1}, 1, 4295163906, 4295163906, "block / 65537; block mod 65537; "},
};

// No order: sizes that are open, tiles beyond 64 bits.
static const struct {
  const char *entry;
  size_t nsizes;
  int64_t sizes[3];
} none[] = {
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 0, {0}},
  {"a = f32[2,97] parameter(0) ROOT r = f32[2,97] negate(a)", 2, {1, 0}},
  {"a = f32[1099511627776] parameter(0) b = f32[1099511627777] parameter(1) ROOT r = (f32[1099511627776], f32[1099511627777]) tuple(a, b)", 2, {1, 1}},
};
// clang-format on

static kiln_tiling *tile(const char *entry, size_t n, const int64_t *sizes, int64_t per_block) {
  char text[2048];
  kiln_tiling *t = NULL;
  kiln_tiling_params how = {.struct_size = sizeof how, .sizes = sizes, .size_count = n, .per_block = per_block};
  snprintf(text, sizeof text, "HloModule m\nENTRY e { %s }\n", entry);
  kiln_module *m = parse(text);
  kiln_status s = kiln_tiling_make(cx, m, &how, &t);
  ck_assert_msg(s == KILN_OK, "%s", entry);
  kiln_module_destroy(&m);
  return t;
}

// Every tile in one step of one block.
static void count_tiles(const kiln_tiling *t, const kiln_tile_schedule *s) {
  uint8_t *seen = calloc((size_t)s->tiles, 1);
  kiln_tiling_dim d = {.struct_size = sizeof d};
  int64_t made = 0, tiles[8];
  for (int64_t b = 0; b < s->blocks; b++)
    for (int64_t i = 0; kiln_tiling_schedule_tile(t, b, i, tiles); i++) {
      int64_t at = 0;
      for (size_t k = 0; k < kiln_tiling_parallel_count(t) && kiln_tiling_dim_at(t, k, &d); k++) {
        int64_t n = d.extent > 0 ? (d.extent - 1) / d.size + 1 : 1;
        ck_assert(tiles[k] >= 0 && tiles[k] < n);
        at = at * n + tiles[k];
      }
      ck_assert(i < s->per_block && !seen[at]);
      seen[at] = 1, made++;
    }
  ck_assert_int_eq(made, s->tiles);
  free(seen);
}

START_TEST(known_orders) {
  kiln_tiling *t = tile(rows[_i].entry, rows[_i].nsizes, rows[_i].sizes, rows[_i].per_block);
  kiln_tile_schedule s = {.struct_size = sizeof s};
  char all[512] = "";
  const char *text;
  int64_t tiles[8];
  ck_assert(kiln_tiling_schedule(t, &s));
  ck_assert_int_eq(s.blocks, rows[_i].blocks);
  ck_assert_int_eq(s.tiles, rows[_i].tiles);
  for (size_t i = 0; kiln_tiling_schedule_at(t, i, &text); i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s; ", text);
  ck_assert_str_eq(all, rows[_i].at);
  ck_assert(!kiln_tiling_schedule_tile(t, s.blocks, 0, tiles) && !kiln_tiling_schedule_tile(t, -1, 0, tiles));
  ck_assert(!kiln_tiling_schedule_tile(t, 0, s.per_block, tiles) && !kiln_tiling_schedule_tile(t, 0, -1, tiles));
  if (s.tiles <= 4096) count_tiles(t, &s);
  kiln_tiling_destroy(&t);
}
END_TEST

START_TEST(no_order) {
  kiln_tiling *t = tile(none[_i].entry, none[_i].nsizes, none[_i].sizes, 1);
  kiln_tile_schedule s = {.struct_size = sizeof s};
  const char *text;
  int64_t tiles[3];
  ck_assert(!kiln_tiling_schedule(t, &s) && !kiln_tiling_schedule_at(t, 0, &text));
  ck_assert(!kiln_tiling_schedule_tile(t, 0, 0, tiles));
  kiln_tiling_destroy(&t);
}
END_TEST

START_TEST(misuse) {
  kiln_tiling *t = tile(rows[0].entry, rows[0].nsizes, rows[0].sizes, 1);
  kiln_tile_schedule s = {.struct_size = sizeof s};
  const char *text;
  ck_assert(!kiln_tiling_schedule(NULL, &s) && !kiln_tiling_schedule(t, NULL));
  ck_assert(!kiln_tiling_schedule_at(NULL, 0, &text) && !kiln_tiling_schedule_at(t, 0, NULL));
  ck_assert(!kiln_tiling_schedule_at(t, 2, &text) && !kiln_tiling_schedule_tile(t, 0, 0, NULL));
  s.struct_size = 3;
  ck_assert(!kiln_tiling_schedule(t, &s));
  kiln_tiling_destroy(&t);
}
END_TEST

START_TEST(bad_number_of_tiles) {
  kiln_module *m = parse("HloModule m\nENTRY e { ROOT a = f32[4] parameter(0) }\n");
  kiln_tiling_params how = {.struct_size = sizeof how, .per_block = -1};
  kiln_tiling *t;
  ck_assert_int_eq(kiln_tiling_make(cx, m, &how, &t), KILN_E_INVALID);
  ck_assert(strstr(last_finding(), "expected at least 1 tile for a block, or 0 for 1, found -1"));
  ck_assert_ptr_null(t);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("schedule", EACH(make_context, drop_context), {known_orders, sizeof rows / sizeof rows[0]},
                   {no_order, sizeof none / sizeof none[0]}, {misuse}, {bad_number_of_tiles});
}

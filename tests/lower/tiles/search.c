// Sizes of tiles that are found: which ones, in which order, at which cost, within which limits.
#include "lower/analysis/tiles/tiles.h"
#include "support/context.h"

#include <stdio.h>

static kl_arena arena;
static kl_affs *pool;
static kiln_module *module;

static const kl_tile_limits wide = {INT64_MAX, INT64_MAX, INT64_MAX, false, 4096, 1 << 16};

static const kl_tile_choice *find(const char *entry, const kl_tile_limits *limits, uint32_t *n, bool *all) {
  char text[4096];
  snprintf(
      text, sizeof text,
      "HloModule m\nsum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\nENTRY e {\n%s\n}\n",
      entry);
  module = parse(text);
  kl_arena_init(&arena, module->cx);
  pool = kl_affs_create(module->cx, &arena);
  return kl_tiling_search(pool, module, &module->comp[module->entry], limits, n, all);
}

static void drop(void) {
  kl_affs_destroy(&pool);
  kl_arena_free(&arena);
  kiln_module_destroy(&module);
}

// Sizes of the first dim, from large to small, that are found at all; the first choice's cost, counted by hand.
static const struct {
  const char *entry;
  bool divide;
  const char *sizes;
  int64_t cost; // 0: not counted
} rows[] = {
    // 11 elements are 44 bytes in 2 sectors, written are 44 bytes, and 11 are computed
    {"a = f32[11] parameter(0) ROOT r = f32[11] negate(a)", false, "11 8 4 2 1", 64 + 44 + 11},
    {"a = f32[11] parameter(0) ROOT r = f32[11] negate(a)", true, "11 1", 64 + 44 + 11},
    {"a = f32[] parameter(0) ROOT r = f32[] negate(a)", false, "", 32 + 4 + 1},
    {"a = f32[16] parameter(0) ROOT r = f32[16] negate(a)", true, "16 8 4 2 1", 64 + 64 + 16},
    // parts of a row of 6, or whole rows
    {"a = f32[8,6] parameter(0) ROOT r = f32[48] reshape(a)", false, "48 2 1", 192 + 192 + 48},
    {"a = s4[64] parameter(0) ROOT r = s4[64] negate(a)", true, "64 32 16 8 4 2 1", 32 + 32 + 64},
    // one row of a, and of b all columns: 64 bytes and 16 rows of one sector each
    {"a = f32[1,16] parameter(0) b = f32[16,8] parameter(1) ROOT d = f32[1,8] dot(a, b), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0}",
     false, "1", 64 + 16 * 32 + 32 + 8},
    {"a = f32[0,3] parameter(0) ROOT r = f32[0,3] negate(a)", false, "1", 0},
};

START_TEST(sizes_are_found) {
  kl_tile_limits l = wide;
  uint32_t n;
  bool all;
  char found[256] = "";
  l.divide = rows[_i].divide;
  const kl_tile_choice *c = find(rows[_i].entry, &l, &n, &all);
  ck_assert(all && n > 0);
  if (rows[_i].cost) ck_assert_int_eq(c[0].cost, rows[_i].cost);
  for (int64_t size = 64; *rows[_i].sizes && size > 0; size--)
    for (uint32_t i = 0; i < n; i++) {
      if (c[i].sizes[0] != size) continue;
      snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", *found ? " " : "", (long long)size);
      break;
    }
  ck_assert_str_eq(found, rows[_i].sizes);
  for (uint32_t i = 1; i < n; i++) ck_assert(c[i].cost >= c[i - 1].cost);
  drop();
}
END_TEST

static const char transposed[] =
    "a = f32[32,64,128] parameter(0) ROOT t = f32[128,64,32] transpose(a), dimensions={2,1,0}";

// Tiles of a transpose are put into shared memory: none is found that needs more than there is, and the best is lost
// with less.
START_TEST(limits_hold) {
  kl_tile_limits l = wide;
  uint32_t n;
  bool all;
  int64_t best = 0;
  for (int64_t shared = 1 << 20; shared >= 64; shared /= 4) {
    l.shared = shared;
    const kl_tile_choice *c = find(transposed, &l, &n, &all);
    ck_assert(n > 0);
    for (uint32_t i = 0; i < n; i++) {
      int64_t tile = c[i].sizes[0] * c[i].sizes[1] * c[i].sizes[2] * 4;
      ck_assert_int_eq(c[i].shared, tile);
      ck_assert(tile <= shared);
    }
    ck_assert(c[0].cost >= best);
    best = c[0].cost;
    drop();
  }
  l = wide;
  l.elements = 100, l.registers = 300;
  const kl_tile_choice *c = find(transposed, &l, &n, &all);
  for (uint32_t i = 0; i < n; i++) ck_assert(c[i].sizes[0] * c[i].sizes[1] * c[i].sizes[2] * 8 <= 300);
  drop();
}
END_TEST

START_TEST(quota_ends_it) {
  kl_tile_limits l = wide;
  uint32_t n;
  bool all;
  l.quota = 20;
  const kl_tile_choice *c = find(transposed, &l, &n, &all);
  ck_assert(!all && n > 0 && n <= 20 && c[0].sizes[0] == 128);
  drop();
}
END_TEST

int main(void) {
  return RUN_TESTS("tile_search", EACH(make_context, drop_context), {sizes_are_found, KL_COUNT(rows)}, {limits_hold},
                   {quota_ends_it});
}

// Physical layouts as index maps, against their definition: arrays of element numbers that are padded, reshaped and
// transposed.
#include "ir/index/layout/map.h"
#include "ir/shape.h"
#include "ir/text/text.h"
#include "layout_model.h"
#include "map_support.h"

static kiln_module *module;

// False outside of the domain.
static bool value_at(const kl_map *m, const int64_t *at, int64_t *results) {
  kl_point x = {{at}};
  return kl_map_contains(pool, m, &x) && kl_map_eval(pool, m, &x, results);
}

static void make(void) {
  open_pool();
  module = kl_module_new(cx);
}
static void drop(void) {
  kiln_module_destroy(&module);
  close_pool();
}

static const kl_shape *shape_of(const char *text) {
  const kl_shape *s = NULL;
  EXPECT(kl_read_shape(cx, module, "shape", text, &s) == KILN_OK, "%s\n%s", text, last_finding());
  return s;
}

// Which elements have which positions, by both maps.
static void check_maps(const char *text, const kl_shape *s, const cells *m, const kl_map *forth, const kl_map *back) {
  int64_t n = count_of(m), at[8] = {0}, found, index[8], elements = 0;
  for (int64_t i = 0; i < n; i++) {
    bool element = value_at(back, &i, index);
    EXPECT(element == (m->p[i] != PADDING), "%s: position %ld holds %ld\n%s", text, (long)i, (long)m->p[i],
           print_map(back));
    if (!element) continue;
    int64_t rest = m->p[i];
    for (uint32_t d = s->rank; d-- > 0; rest /= s->dims[d]) at[d] = rest % s->dims[d];
    for (uint32_t d = 0; d < s->rank; d++)
      EXPECT(index[d] == at[d], "%s: position %ld, index %u: %ld\n%s", text, (long)i, d, (long)index[d],
             print_map(back));
    EXPECT(value_at(forth, at, &found) && found == i, "%s: element %ld at %ld, not %ld\n%s", text, (long)m->p[i],
           (long)i, (long)found, print_map(forth));
    elements++;
  }
  EXPECT(elements == s->count, "%s: %ld elements", text, (long)elements);
  for (int64_t i = n; i < n + 3; i++) EXPECT(!value_at(back, &i, index), "%s: position %ld is outside", text, (long)i);
  for (uint32_t d = 0; d < s->rank; d++) {
    memset(at, 0, sizeof at);
    at[d] = s->dims[d];
    EXPECT(!value_at(forth, at, &found), "%s: index %u is outside", text, d);
  }
}

START_TEST(maps_are_what_the_definition_says) {
  random_state += (uint64_t)_i * 77777;
  for (int k = 0; k < 60; k++) {
    char text[600];
    random_shape(text, "f32", _i % 5, k % 4);
    const kl_shape *s = shape_of(text);
    cells m = model_of(s);
    const kl_map *forth = kl_layout_map(pool, s), *back = kl_layout_inverse_map(pool, s);
    check_maps(text, s, &m, forth, back);
    check_maps(text, s, &m, kl_map_simplify(pool, forth, 0), kl_map_simplify(pool, back, 0));
    free(m.p);
  }
}
END_TEST

static const struct {
  const char *shape, *forth, *back;
} rows[] = {
    {"f32[]", "() -> (0)", "(d0) -> (), domain: d0 in [0, 0]"},
    {"f32[5]", "(d0) -> (d0), domain: d0 in [0, 4]", "(d0) -> (d0), domain: d0 in [0, 4]"},
    {"f32[3,5]", "(d0, d1) -> (d0 * 5 + d1), domain: d0 in [0, 2], d1 in [0, 4]",
     "(d0) -> (d0 / 5, d0 mod 5), domain: d0 in [0, 14]"},
    {"f32[3,5]{0,1}", "(d0, d1) -> (d1 * 3 + d0), domain: d0 in [0, 2], d1 in [0, 4]",
     "(d0) -> (d0 mod 3, d0 / 3), domain: d0 in [0, 14]"},
    {"f32[3,5]{1,0:T(2,2)}",
     "(d0, d1) -> ((d0 / 2) * 8 + (d1 / 2) * 2 + d0 * 2 + d1), domain: d0 in [0, 2], d1 in [0, 4]",
     "(d0) -> ((d0 / 12) * 2 + (d0 / 2) mod 2, ((d0 / 4) mod 3) * 2 + d0 mod 2), domain: d0 in [0, 21], "
     "((d0 / 4) mod 3) * 2 + d0 mod 2 in [0, 4], (d0 / 12) * 4 + d0 mod 4 in [0, 5]"},
    {"f32[4,6]{1,0:T(*,3)}", "(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 3], d1 in [0, 5]",
     "(d0) -> (d0 / 6, d0 mod 6), domain: d0 in [0, 23]"},
    {"s8[65537,65537]{1,0:T(8,128)}", NULL, NULL},
};

// In short texts; the inverse undoes the map, whatever the sizes.
START_TEST(known_maps) {
  const kl_shape *s = shape_of(rows[_i].shape);
  const kl_map *forth = kl_layout_map(pool, s), *back = kl_layout_inverse_map(pool, s);
  const char *f = print_map(kl_map_simplify(pool, forth, 0)), *b = print_map(kl_map_simplify(pool, back, 0));
  EXPECT(!rows[_i].forth || same_text(f, rows[_i].forth), "%s\nfound    %s\nexpected %s", rows[_i].shape, f,
         rows[_i].forth);
  EXPECT(!rows[_i].back || same_text(b, rows[_i].back), "%s\nfound    %s\nexpected %s", rows[_i].shape, b,
         rows[_i].back);
  const kl_map *both = kl_map_simplify(pool, kl_map_compose(pool, forth, back), 0);
  int64_t last[8], x[8];
  for (uint32_t d = 0; d < s->rank; d++) last[d] = s->dims[d] - 1;
  EXPECT(value_at(both, last, x), "%s: the last element is lost", rows[_i].shape);
  for (uint32_t d = 0; d < s->rank; d++) EXPECT(x[d] == last[d], "%s: index %u is %ld", rows[_i].shape, d, (long)x[d]);
}
END_TEST

START_TEST(shapes_without_places_say_why) {
  static const char *const shapes[][2] = {{"f32[3,?]", "a dimension without a bound"},
                                          {"f32[3]{0:D(C)}", "a sparse layout"}};
  for (size_t i = 0; i < KL_COUNT(shapes); i++) {
    const kl_map *m[] = {kl_layout_map(pool, shape_of(shapes[i][0])),
                         kl_layout_inverse_map(pool, shape_of(shapes[i][0]))};
    for (int k = 0; k < 2; k++)
      EXPECT(m[k]->state == KL_MAP_UNDEFINED && strstr(m[k]->why, shapes[i][1]), "%s", shapes[i][0]);
  }
  const kl_shape *none = shape_of("f32[3,0,2]{1,0,2:T(2,2)}");
  EXPECT(kl_layout_map(pool, none)->state == KL_MAP_EMPTY && kl_layout_inverse_map(pool, none)->state == KL_MAP_EMPTY,
         "no elements");
}
END_TEST

int main(void) {
  return RUN_TESTS("layout_map", EACH(make, drop), {maps_are_what_the_definition_says, 20},
                   {known_maps, KL_COUNT(rows)}, {shapes_without_places_say_why});
}

// Maps between indices and places in memory, against the definition of tiled layouts.
#include "places.h"
#include "support/context.h"

#include "lower/analysis/reads/reads.h"
#include "ir/index/layout/layout.h"

#include <stdio.h>

static kl_affs *p;
static kl_arena arena;

static void make(void) {
  make_context();
  kl_arena_init(&arena, (kl_ctx *)cx);
  p = kl_affs_create((kl_ctx *)cx, &arena);
}

static void drop(void) {
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  drop_context();
}

// Digits of a layout as one number: the position, tail aside.
static int64_t number(const kl_physical *l, const int64_t *digits) {
  int64_t at = 0;
  for (uint32_t i = 0; i < l->ndigits; i++) at = at * l->digits[i].extent + digits[i];
  return at;
}

static void into_digits(const kl_physical *l, int64_t at, int64_t *digits) {
  for (uint32_t i = l->ndigits; i-- > 0; at /= l->digits[i].extent) digits[i] = at % l->digits[i].extent;
}

static void into_index(const kl_shape *s, int64_t at, int64_t *index) {
  for (uint32_t d = s->rank; d-- > 0; at /= s->dims[d]) index[d] = at % s->dims[d];
}

// Both converses over all places of a shape: every element lies where the definition says, padding is no element's.
static void check_shape(const kl_shape *s, const char *text) {
  kl_physical l;
  int64_t n, at[KL_AFF_VARS][KL_MAX_DIGITS] = {{0}}, out[KL_MAX_DIGITS];
  EXPECT(kl_physical_of(s, &l) == KL_PHYSICAL_OK, "%s has no layout", text);
  int64_t *places = places_of(s, &n);
  const kl_map *same = kl_map_identity(p, s->rank, s->dims);
  const kl_map *in = kl_in_memory(p, same, NULL, s), *from = kl_in_memory(p, same, s, NULL);
  kl_point x = {.at = {at[0], at[1], at[2]}};
  int64_t seen = 0;
  for (int64_t i = 0; i < l.tiled; i++) {
    into_digits(&l, i, at[0]);
    bool element = from->state == KL_MAP_DEFINED && kl_map_contains(p, from, &x);
    EXPECT(element == (places[i] >= 0), "position %ld of %s: padding or not?", (long)i, text);
    if (!element) continue;
    EXPECT(kl_map_eval(p, from, &x, out), "%s: no value", text);
    into_index(s, places[i], at[0]);
    for (uint32_t d = 0; d < s->rank; d++) EXPECT(out[d] == at[0][d], "position %ld of %s", (long)i, text);
    EXPECT(kl_map_contains(p, in, &x) && kl_map_eval(p, in, &x, out), "%s: no value", text);
    EXPECT(number(&l, out) == i, "element %ld of %s lies at %ld", (long)places[i], text, (long)number(&l, out));
    seen++;
  }
  EXPECT(seen == s->count, "%s: %ld elements", text, (long)seen);
  free(places);
}

static void check_text(const char *shape) {
  char text[512];
  snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  ROOT a = %s parameter(0)\n}\n", shape);
  kiln_module *m = parse(text);
  check_shape(kl_root(&m->comp[m->entry])->shape, shape);
  kiln_module_destroy(&m);
}

// clang-format off
static const char *const shapes[] = {
  "f32[]", "f32[3]", "f32[3,0]", "f32[2,3,4]{0,2,1}", "f32[3,5]{1,0:T(2,2)}", "f32[4,8]{1,0:T(2,4)(2,1)}", "f32[8,8]{1,0:T(2,4)(2,1,1,1)}",
  "f32[2,3,2,5,4]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[7]{0:T(4)L(16)}", "f32[3]{0:T(2,2)}", "f32[0,3]{0,1:T(2,2)}", "bf16[5,3]{0,1:T(2,2)(2,1)}",
};
// clang-format on

START_TEST(layouts) {
  check_text(shapes[_i]);
}
END_TEST

START_TEST(random_layouts) {
  char text[512];
  for (int i = 0; i < 1000; i++) {
    random_place(text);
    check_text(text);
  }
}
END_TEST

// What has no place in memory says so.
START_TEST(no_layout) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  ROOT a = f32[2,3]{1,0:D(D,C)} foo()\n}\n");
  const kl_shape *s = kl_root(&m->comp[m->entry])->shape;
  const kl_map *map = kl_in_memory(p, kl_map_identity(p, 2, s->dims), s, NULL);
  EXPECT(map->state == KL_MAP_UNDEFINED && strstr(map->why, "sparse"), "%s", map->why);
  kiln_module_destroy(&m);
}
END_TEST

// The order of dimensions alone: on one side, the other, and both, where the map is the identity again.
START_TEST(orders) {
  static const struct {
    const char *result, *operand, *want;
  } rows[] = {
      {"f32[10,20,30]{1,0,2}", "f32[10,20,30]",
       "(d0, d1, d2) -> (d1, d2, d0), domain: d0 in [0, 29], d1 in [0, 9], d2 in [0, 19]"},
      {"f32[10,20,30]", "f32[10,20,30]{1,0,2}",
       "(d0, d1, d2) -> (d2, d0, d1), domain: d0 in [0, 9], d1 in [0, 19], d2 in [0, 29]"},
      {"f32[10,20,30]{1,0,2}", "f32[10,20,30]{1,0,2}",
       "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 29], d1 in [0, 9], d2 in [0, 19]"},
  };
  char text[512];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  ROOT r = %s exponential(a)\n}\n",
             rows[i].operand, rows[i].result);
    kiln_module *m = parse(text);
    const kl_comp *c = &m->comp[m->entry];
    struct kl_runtimes *runtimes = kl_runtimes_create((kl_ctx *)cx, &arena);
    kl_frame frame = {c, 0, 0};
    kl_reader r = {p, m, &frame, 0, runtimes};
    kl_dependences d = kl_reads(&r, c->root, 0);
    kl_sb b = {.cx = (kl_ctx *)cx};
    kl_map_print(p, &b, kl_in_memory(p, d.p[0].map, kl_root(c)->shape, c->instr[c->params[0]].shape), KL_MAP_LINE);
    EXPECT(strcmp(b.p, rows[i].want) == 0, "%s\n%s", rows[i].want, b.p);
    kl_sb_free(&b);
    kl_runtimes_destroy(&runtimes);
    kiln_module_destroy(&m);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("reads_memory", EACH(make, drop), {layouts, sizeof shapes / sizeof *shapes}, {random_layouts},
                   {no_layout}, {orders});
}

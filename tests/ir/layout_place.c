// Positions in memory: an index taken apart and put together is itself, at every point of small shapes and at the ends
// of 32 and 64 bits.
#include "ir/index/domain/domain.h"
#include "ir/index/layout/map.h"
#include "ir/shape.h"
#include "map_support.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned shapes; // looked at so far

// Valid until the next one.
static const char *text_of(const kl_aff *e) {
  static char text[4096];
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "");
  kl_aff_print(pool, &b, e, NULL);
  snprintf(text, sizeof text, "%s", b.p);
  kl_sb_free(&b);
  return text;
}

typedef struct shape_case {
  kl_shape shape;
  int64_t dims[4], layout[4];
} shape_case;

static void set_layout(shape_case *s, unsigned permutation) {
  for (uint32_t i = 0; i < s->shape.rank; i++) s->layout[i] = i;
  for (uint32_t i = s->shape.rank; i > 1; i--) {
    unsigned o = permutation % i;
    permutation /= i;
    int64_t t = s->layout[i - 1];
    s->layout[i - 1] = s->layout[o];
    s->layout[o] = t;
  }
  s->shape.layout = (kl_layout){.present = true, .rank = s->shape.rank, .minor_to_major = s->layout, .tail_padding = 1};
}

static const char *shape_name(const shape_case *s) {
  static char text[128];
  int at = 0;
  for (uint32_t d = 0; d < s->shape.rank; d++) at += sprintf(text + at, "%ld,", (long)s->dims[d]);
  at += sprintf(text + at, " minor to major ");
  for (uint32_t d = 0; d < s->shape.rank; d++) at += sprintf(text + at, "%ld,", (long)s->layout[d]);
  return text;
}

// Every shape of the rank with dims from a short list, under every layout.
static void for_shapes(uint32_t rank, void (*f)(shape_case *)) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 8};
  unsigned shapes = 1, layouts = 1;
  for (uint32_t d = 0; d < rank; d++) shapes *= KL_COUNT(sizes), layouts *= d + 1;
  for (unsigned n = 0; n < shapes; n++) {
    shape_case s = {.shape = {.dtype = KILN_F32, .rank = rank, .count = 1}};
    s.shape.dims = s.dims;
    for (uint32_t d = 0, r = n; d < rank; d++, r /= KL_COUNT(sizes))
      s.shape.count *= s.dims[d] = sizes[r % KL_COUNT(sizes)];
    // All layouts of small ranks, some of each large one.
    for (unsigned l = 0; l < layouts; l += rank < 4 ? 1 : 5) {
      set_layout(&s, l + (rank < 4 ? 0 : n % 5));
      f(&s);
    }
  }
}

// first + lanes*d0 + d1.
static const kl_aff *thread_and_lane(int64_t lanes, int64_t first) {
  return kl_aff_addc(pool, kl_aff_addmul(pool, kl_aff_dim(pool, 1), kl_aff_dim(pool, 0), lanes), first);
}

static kl_dom *threads_and_lanes(const shape_case *s, int64_t lanes, int64_t first) {
  return kl_dom_make(pool, 2, (kl_interval[]){{0, (s->shape.count - first) / lanes - 1}, {0, lanes - 1}});
}

static void check_value(const kl_aff *e, const int64_t *at, int64_t want, const shape_case *s) {
  int64_t v;
  EXPECT(kl_aff_eval(pool, e, &(kl_point){.at = {at}}, &v) && v == want, "%s: %s is not %ld", shape_name(s), text_of(e),
         (long)want);
}

static void index_of(const shape_case *s, int64_t element, int64_t *index) {
  for (uint32_t i = 0; i < s->shape.rank; i++) {
    int64_t d = s->layout[i];
    index[d] = element % s->dims[d];
    element /= s->dims[d];
  }
}

// Each index, as simple as it gets there, has the right values and bounds, and all together are `linear` again.
static void check_round_trip(shape_case *s, int64_t lanes, int64_t first) {
  const kl_aff *index[4], *linear = thread_and_lane(lanes, first);
  kl_dom *dom = threads_and_lanes(s, lanes, first);
  kl_index_at(pool, &s->shape, linear, index);
  if (s->shape.rank) EXPECT(kl_position_of(pool, &s->shape, index) == linear, "%s: as it is made", shape_name(s));
  for (uint32_t d = 0; d < s->shape.rank; d++) {
    index[d] = kl_dom_simplify(dom, index[d]);
    kl_interval in = kl_dom_interval(dom, index[d]);
    EXPECT(in.lo >= 0 && in.hi < s->dims[d], "%s: dim %u in %ld..%ld of %s", shape_name(s), d, (long)in.lo, (long)in.hi,
           text_of(index[d]));
  }
  const kl_aff *back = kl_dom_simplify(dom, kl_position_of(pool, &s->shape, index));
  linear = kl_dom_simplify(dom, linear);
  EXPECT(back == linear, "%s: %s comes back as %s", shape_name(s), text_of(linear), strdup(text_of(back)));
  for (int64_t e = first; e < first + (s->shape.count - first) / lanes * lanes; e++) {
    int64_t want[4], at[2] = {(e - first) / lanes, (e - first) % lanes};
    index_of(s, e, want);
    for (uint32_t d = 0; d < s->shape.rank; d++) check_value(index[d], at, want[d], s);
  }
}

static void apart_and_together(shape_case *s) {
  static const struct { int64_t lanes, first; } walks[] = {{1, 0}, {4, 0}, {16, 0}, {2, 6}, {1, 5}, {8, 16}};
  const kl_aff *index[4], *back[4];
  kl_interval bounds[4];
  for (uint32_t d = 0; d < s->shape.rank; d++) {
    index[d] = kl_aff_dim(pool, d);
    bounds[d] = (kl_interval){0, s->dims[d] - 1};
  }
  kl_dom *dom = kl_dom_make(pool, s->shape.rank, bounds);
  kl_index_at(pool, &s->shape, kl_position_of(pool, &s->shape, index), back);
  for (uint32_t d = 0; d < s->shape.rank; d++)
    EXPECT(kl_dom_simplify(dom, back[d]) == kl_dom_simplify(dom, index[d]), "%s: dim %u comes back as %s",
           shape_name(s), d, text_of(back[d]));
  for (size_t i = 0; i < KL_COUNT(walks); i++) {
    if (s->shape.count >= walks[i].first + walks[i].lanes) check_round_trip(s, walks[i].lanes, walks[i].first);
  }
  if (++shapes % 64 == 0) new_pool();
}

START_TEST(taking_apart_is_undone) {
  for (uint32_t rank = 0; rank <= 4; rank++) for_shapes(rank, apart_and_together);
}
END_TEST

// The same at sizes that cannot be enumerated, around the places where 32 bits end.
START_TEST(large_shapes_come_back) {
  static const int64_t dims[][4] = {
      {1 << 20, 5, 2, 400}, {3, 715827883, 1, 2}, {7, 5, 3, 1 << 30},    {1, 1ll << 40, 3, 5},
      {2, 536870913, 2, 1}, {6, 178956971, 2, 1}, {1000000007, 3, 2, 3}, {5, 2, 5, 1ll << 50},
  };
  for (size_t i = 0; i < KL_COUNT(dims); i++) {
    for (unsigned l = 0; l < 24; l++) {
      shape_case s = {.shape = {.dtype = KILN_S8, .rank = 4, .count = 1}};
      s.shape.dims = memcpy(s.dims, dims[i], sizeof s.dims);
      for (int d = 0; d < 4; d++) s.shape.count *= s.dims[d];
      set_layout(&s, l);
      for (int64_t lanes = 1; lanes <= 16; lanes *= 2) {
        kl_dom *dom = threads_and_lanes(&s, lanes, 0);
        const kl_aff *linear = kl_dom_simplify(dom, thread_and_lane(lanes, 0)), *index[4];
        kl_index_at(pool, &s.shape, linear, index);
        for (int d = 0; d < 4; d++) index[d] = kl_dom_simplify(dom, index[d]);
        const kl_aff *back = kl_dom_simplify(dom, kl_position_of(pool, &s.shape, index));
        EXPECT(back == linear, "%s, %ld lanes: %s", shape_name(&s), (long)lanes, text_of(back));
        for (int64_t at[2] = {0}, n = 0; n < 40; n++) {
          at[0] = n % 2 ? s.shape.count / lanes - 1 - n * n : n * n * n * 99991 % (s.shape.count / lanes);
          at[1] = n % lanes;
          int64_t want[4];
          index_of(&s, at[0] * lanes + at[1], want);
          for (int d = 0; d < 4; d++) check_value(index[d], at, want[d], &s);
        }
      }
      new_pool();
    }
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("positions", EACH(open_pool, close_pool), {taking_apart_is_undone}, {large_shapes_come_back});
}

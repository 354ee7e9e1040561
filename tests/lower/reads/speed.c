// How long the analysis of long and tangled computations takes: linear, and bounded with room to spare.
#include "support/slow.h"
#include "support/context.h"

#include "lower/analysis/reads/reach.h"

#include <stdio.h>
#include <time.h>

static kl_sb text;

static void make(void) {
  make_context();
  kl_sb_init(&text, (kl_ctx *)cx);
}

static void drop(void) {
  kl_sb_free(&text);
  drop_context();
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static kiln_module *finish(void) {
  kl_sb_puts(&text, "}\n");
  return parse(text.p);
}

static void begin(void) {
  text.n = 0;
  kl_sb_puts(&text, "HloModule m\n"
                    "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
                    "ENTRY e {\n  c = f32[] constant(0)\n  x0 = f32[8,12,20] parameter(0)\n  i = s32[] parameter(1)\n");
}

// Walks both ways over ENTRY; the time in seconds of the longer one. *maps: of the value where it ends.
static double walk(const kiln_module *m, uint32_t *maps) {
  const kl_comp *c = &m->comp[m->entry];
  double most = 0;
  for (int way = KL_REACH_OPERANDS; way <= KL_REACH_USERS; way++) {
    kl_arena arena;
    kl_arena_init(&arena, m->cx);
    kl_affs *p = kl_affs_create(m->cx, &arena);
    kl_reach r;
    uint32_t from = way == KL_REACH_OPERANDS ? c->root : c->params[0],
             to = way == KL_REACH_OPERANDS ? c->params[0] : c->root;
    double begin = now();
    kl_reach_make(p, m, c, from, 0, (kl_reach_way)way, &r);
    double took = now() - begin;
    if (took > most) most = took;
    *maps = kl_reach_find(&r, 0, to, 0).n;
    EXPECT(*maps > 0, "the end is not reached");
    kl_reach_free(&r);
    kl_affs_destroy(&p);
    kl_arena_free(&arena);
  }
  return most;
}

// Ten ops that together give the shape they take. The second kind shuffles an array of 8 by 12 as cards are shuffled,
// so that its index is taken apart in another way each time.
static const char *const links[2][10] = {
    {
        "f32[8,12,20] negate(x%d)",
        "f32[20,12,8] transpose(x%d), dimensions={2,1,0}",
        "f32[240,8] reshape(x%d)",
        "f32[240,8] reverse(x%d), dimensions={0}",
        "f32[20,12,8] reshape(x%d)",
        "f32[8,12,20] transpose(x%d), dimensions={2,1,0}",
        "f32[9,12,24] pad(x%d, c), padding=1_0_0x0_0_0x2_2_0",
        "f32[8,12,20] slice(x%d), slice={[1:9], [0:12], [2:22]}",
        "f32[8,12,20] exponential(x%d)",
        "f32[8,12,20] reverse(x%d), dimensions={0}",
    },
    {
        "f32[8,12,20] negate(x%d)",
        "f32[20,12,8] transpose(x%d), dimensions={2,1,0}",
        "f32[20,96] reshape(x%d)",
        "f32[20,96] reverse(x%d), dimensions={1}",
        "f32[20,8,12] reshape(x%d)",
        "f32[8,12,20] transpose(x%d), dimensions={1,2,0}",
        "f32[9,12,24] pad(x%d, c), padding=1_0_0x0_0_0x2_2_0",
        "f32[8,12,20] slice(x%d), slice={[1:9], [0:12], [2:22]}",
        "f32[8,12,20] exponential(x%d)",
        "f32[8,12,20] reverse(x%d), dimensions={0}",
    },
};

static void expect_time(double took, double most, const char *what) {
  EXPECT(took < most, "%s took %.1f ms, at most %.1f", what, took * 1e3, most * 1e3);
}

START_TEST(chain) {
  uint32_t maps;
  begin();
  for (int i = 0; i < 1000; i++) {
    kl_sbf(&text, "  x%d = ", i + 1);
    kl_sbf(&text, links[_i][i % 10], i);
    kl_sb_putc(&text, '\n');
  }
  kiln_module *m = finish();
  double took = 1e9;
  for (int i = 0; i < 3; i++) { // other work on the machine shows in time of the processor, too
    double once = walk(m, &maps);
    if (once < took) took = once;
  }
  EXPECT(maps == 1, "%u maps at the end of a chain", maps);
  if (getenv("KILN_TIMES")) printf("# chain %.1f ms\n", took * 1e3);
  expect_time(took, (_i ? 0.25 : 0.05) * SLACK, "a chain of 1,000 ops");
  kiln_module_destroy(&m);
}
END_TEST

// 30 levels, each of two paths: they meet again as one map, as two, or as one more each time.
START_TEST(diamonds) {
  static const struct {
    const char *level;
    uint32_t maps;
  } kinds[] = {
      {"  a%1$d = f32[8,12,20] negate(x%1$d)\n  b%1$d = f32[8,12,20] exponential(x%1$d)\n  x%2$d = f32[8,12,20] "
       "add(a%1$d, b%1$d)\n",
       1},
      {"  a%1$d = f32[8,12,20] reverse(x%1$d), dimensions={1}\n  x%2$d = f32[8,12,20] add(a%1$d, x%1$d)\n", 2},
      {"  a%1$d = f32[8,12,21] pad(x%1$d, c), padding=0_0_0x0_0_0x0_1_0\n  b%1$d = f32[8,12,20] slice(a%1$d), "
       "slice={[0:8], [0:12], [1:21]}\n  x%2$d = f32[8,12,20] add(b%1$d, x%1$d)\n",
       20},
  };
  uint32_t maps;
  begin();
  for (int i = 0; i < 30; i++) kl_sbf(&text, kinds[_i].level, i, i + 1);
  kiln_module *m = finish();
  double took = walk(m, &maps);
  EXPECT(maps == kinds[_i].maps, "%u maps behind 30 levels, expected %u", maps, kinds[_i].maps);
  if (getenv("KILN_TIMES")) printf("# diamond %d %.1f ms\n", _i, took * 1e3);
  expect_time(took, 0.05 * SLACK, "2^30 paths");
  kiln_module_destroy(&m);
}
END_TEST

static double both_ways(const kiln_module *m) {
  const kl_comp *c = &m->comp[m->entry];
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  struct kl_runtimes *runtimes = kl_runtimes_create(m->cx, &arena);
  kl_frame frame = {c, 0, 0};
  kl_reader r = {p, m, &frame, 0, runtimes};
  double begin = now();
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t leaf = 0; leaf < kl_shape_leaf_count(c->instr[i].shape); leaf++) {
      kl_dependences d = kl_reads(&r, i, leaf);
      for (uint32_t k = 0; k < d.n; k++) {
        kl_dependence f = kl_converse(&r, i, &d.p[k], KL_MAP_QUOTA);
        EXPECT(f.map->state != KL_MAP_UNDEFINED, "unknown");
      }
    }
  double took = now() - begin;
  kl_runtimes_destroy(&runtimes);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  return took;
}

// 50,000 instructions of a usual mix.
START_TEST(module) {
  begin();
  for (int i = 0; i < 50000; i += 10) {
    kl_sbf(&text,
           "  a%1$d = f32[8,12,20] negate(x%1$d)\n  b%1$d = f32[8,12] reduce(a%1$d, c), dimensions={2}, to_apply=sum\n"
           "  d%1$d = f32[8,12,20] broadcast(b%1$d), dimensions={0,1}\n  e%1$d = f32[8,12,20] subtract(a%1$d, d%1$d)\n"
           "  f%1$d = f32[96,20] reshape(e%1$d)\n  g%1$d = f32[20,7] slice(f%1$d), slice={[0:20], [3:10]}\n"
           "  h%1$d = f32[96,7] dot(f%1$d, g%1$d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
           "  j%1$d = f32[20,96] transpose(f%1$d), dimensions={1,0}\n  k%1$d = f32[1,96] dynamic-slice(j%1$d, i, i), "
           "dynamic_slice_sizes={1,96}\n"
           "  x%2$d = f32[8,12,20] exponential(e%1$d)\n",
           i, i + 10);
  }
  kiln_module *m = finish();
  double took = both_ways(m);
  if (getenv("KILN_TIMES")) printf("# module %.1f ms\n", took * 1e3);
  expect_time(took, 2.0 * SLACK, "both ways of 50,000 instructions");
  kiln_module_destroy(&m);
}
END_TEST

// Instructions with as many operands or results: neither way is quadratic in them.
START_TEST(wide) {
  enum { N = 8000 };
  begin();
  for (int i = 0; i < N; i++)
    kl_sbf(&text, "  s%d = f32[1,12,20] slice(x0), slice={[%d:%d], [0:12], [0:20]}\n", i, i % 8, i % 8 + 1);
  if (_i) kl_sb_puts(&text, "  t = (");
  for (int i = 0; i < N && _i; i++) kl_sbf(&text, "%sf32[1,12,20]", i ? ", " : "");
  kl_sb_puts(&text, _i ? ") tuple(" : "  t = f32[8000,12,20] concatenate(");
  for (int i = 0; i < N; i++) kl_sbf(&text, "%ss%d", i ? ", " : "", i);
  kl_sb_puts(&text, _i ? ")\n" : "), dimensions={0}\n");
  for (int i = 0; i < N && _i; i++) kl_sbf(&text, "  g%d = f32[1,12,20] get-tuple-element(t), index=%d\n", i, i);
  kiln_module *m = finish();
  double took = both_ways(m);
  uint32_t maps;
  took += walk(m, &maps);
  if (getenv("KILN_TIMES")) printf("# wide %d %.1f ms\n", _i, took * 1e3);
  expect_time(took, 2.0 * SLACK, "8,000 operands");
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("reads_speed", EACH(make, drop), {chain, 2}, {diamonds, 3}, {module}, {wide, 2});
}

// How fast index maps are: simplified one by one, composed in long chains, where one value is used twice at every step,
// and tiled.
//
// CPU times of the thread: medians of several runs. Simplifying copies a map first, so that nothing is known of it
// before.

#include "measure.h"

#include <kiln/index.h>
#include <kiln/kiln.h>
#include <string.h>

enum { RUNS = 9, ROUNDS = 200 };

// Reshapes, transposes, slices, pads, windows, bitcasts, concatenated pieces, as they come from fusions.
static const char *const maps[] = {
    "(d0, d1) -> (d0, d1), domain: d0 in [0, 1023], d1 in [0, 2047]",
    "(d0, d1, d2) -> (d0, d2, d1), domain: d0 in [0, 9], d1 in [0, 19], d2 in [0, 29]",
    "(d0, d1) -> (d0 + d1 / 16, d1 mod 16), domain: d0 in [0, 6], d1 in [0, 14]",
    "(d0, d1, d2) -> ((100d0 + 10d1 + d2) / 100, ((100d0 + 10d1 + d2) mod 100) / 10, d2 mod 10), domain: d0 in [0, 9], "
    "d1 in [0, 9], d2 in [0, 9]",
    "(d0, d1, d2) -> ((16d0 + 4d1 + d2) / 8, (16d0 + 4d1 + d2) mod 8), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, "
    "9]",
    "(d0, d1) -> (-((-11d0 - d1 + 109) / 11) + 9), domain: d0 in [0, 9], d1 in [0, 10]",
    "(d0, d1) -> ((d0 mod 8) * 128 + d1 + (d0 / 8) * 1024), domain: d0 in [0, 99], d1 in [0, 127]",
    "(d0, d1) -> (((2d1 + d0 / 64) mod 3) * 256 + (d0 mod 64) * 4 + ((128d1 + d0) / 192) * 768), domain: d0 in [0, "
    "127], "
    "d1 in [0, 3071]",
    "(d0, d1, d2) -> (d0 - 5, (d1 - 3) / 7, d2 / 2), domain: d0 in [5, 9], d1 in [3, 17], d2 in [0, 48], "
    "(d1 - 3) mod 7 in [0, 0], d2 mod 2 in [0, 0]",
    "(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 + s1), domain: d0 in [0, 6], d1 in [0, 16], s0 in [0, 2], s1 in [0, 1], "
    "d0 * 2 + s0 in [1, 13], d1 + s1 in [0, 16]",
    "(d0, d1, d2) -> (d0, d1 - 16, d2), domain: d0 in [0, 1], d1 in [16, 32], d2 in [0, 6]",
    "(d0, d1){rt0} -> (d0 + rt0, d1), domain: d0 in [0, 3], d1 in [0, 4], rt0 in [0, 6]",
    "(d0)[s0, s1, s2] -> (s0, s2, d0, s1), domain: d0 in [0, 9], s0 in [0, 149], s1 in [0, 49], s2 in [0, 19]",
    "()[s0] -> (-(s0 / 144) + (32s0 + 4639) / 4608), domain: s0 in [0, 99999]",
    "(bl_x, th_x)[v] -> ((bl_x * 512 + th_x * 4 + v) / 3000, (bl_x * 512 + th_x * 4 + v) mod 3000), domain: "
    "bl_x in [0, 99], th_x in [0, 127], v in [0, 3], bl_x * 512 + th_x * 4 + v in [0, 50999]",
    "(d0, d1) -> (d0 / 8, d0 mod 8, d1 * 4), domain: d0 in [0, 31], d1 in [0, 2]",
};
enum { MAPS = sizeof maps / sizeof *maps };

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static kiln_map *read_map(kiln_context *cx, const char *text) {
  kiln_map *m = NULL;
  if (kiln_map_parse(cx, "map", text, strlen(text), &m) == KILN_OK) return m;
  fputs(kiln_diagnostics_get(cx, 0)->text, stderr);
  exit(2);
}

static double simplify_all(kiln_context *cx) {
  kiln_map *m[MAPS], *s;
  for (int i = 0; i < MAPS; i++) m[i] = read_map(cx, maps[i]);
  double begin = cpu_ms();
  for (int i = 0; i < ROUNDS * MAPS; i++) {
    if (kiln_map_simplify(cx, m[i % MAPS], &s) != KILN_OK) exit(4);
    kiln_map_destroy(&s);
  }
  double took = cpu_ms() - begin;
  for (int i = 0; i < MAPS; i++) kiln_map_destroy(&m[i]);
  return took;
}

// A map composed `n` times with steps that take turns, simplified each time.
static double chain(kiln_context *cx, const char *first, const char *const *steps, int nsteps, int n) {
  kiln_map *step[8], *m = read_map(cx, first);
  for (int i = 0; i < nsteps; i++) step[i] = read_map(cx, steps[i]);
  double begin = cpu_ms();
  for (int i = 0; i < n; i++) {
    kiln_map *composed, *simple;
    if (kiln_map_compose(cx, m, step[i % nsteps], &composed) != KILN_OK) exit(4);
    if (kiln_map_simplify(cx, composed, &simple) != KILN_OK) exit(4);
    kiln_map_destroy(&m);
    kiln_map_destroy(&composed);
    m = simple;
  }
  double took = cpu_ms() - begin;
  kiln_map_destroy(&m);
  for (int i = 0; i < nsteps; i++) kiln_map_destroy(&step[i]);
  return took;
}

static const char *const reshapes[] = {
    "(d0, d1) -> (d0 + 1, d1), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
    "(d0, d1) -> (d1, d0), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
    "(d0, d1) -> ((d0 * 1000001 + d1) / 1000001, (d0 * 1000001 + d1) mod 1000001), domain: d0 in [0, 1000000], "
    "d1 in [0, 1000000]",
    "(d0, d1) -> (d0, -d1 + 1000000), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
    "(d0, d1) -> ((d0 / 4) * 4 + d0 mod 4, d1), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
};
// Each step uses its argument twice: written out, 2^n terms.
static const char *const diamond[] = {
    "(d0) -> (d0 / 2 + (d0 + 1) / 3), domain: d0 in [0, 1000000000]",
};

// Two reshapes of rank 8, under sizes that do not fit all dimensions.
static const char eight[] = "HloModule m\nENTRY e {\n  a = f32[8,4,6,8,2,16,4,8] parameter(0)\n"
                            "  b = f32[32,48,32,32] reshape(a)\n"
                            "  ROOT r = f32[4,8,12,4,16,2,8,4] reshape(b)\n}\n";

static double tile_eight(kiln_context *cx) {
  static const int64_t sizes[] = {3, 5, 12, 4, 16, 2, 8, 4};
  kiln_tiling_params p = {.struct_size = sizeof p, .sizes = sizes, .size_count = sizeof sizes / sizeof *sizes};
  kiln_module *m = NULL;
  kiln_tiling *t = NULL;
  if (kiln_module_parse(cx, "eight", eight, strlen(eight), &m) != KILN_OK) exit(2);
  double begin = cpu_ms();
  if (kiln_tiling_make(cx, m, &p, &t) != KILN_OK) exit(4);
  double took = cpu_ms() - begin;
  kiln_tiling_destroy(&t);
  kiln_module_destroy(&m);
  return took;
}

int main(void) {
  kiln_context *cx = kiln_context_create(NULL);
  double simplify[RUNS], chained[RUNS], shared[RUNS], tiled[RUNS];
  for (int i = -1; i < RUNS; i++) {
    double a = simplify_all(cx);
    double b = chain(cx, "(d0, d1) -> (d0, d1), domain: d0 in [0, 99], d1 in [0, 99]", reshapes, 5, 1000);
    double c = chain(cx, "(d0) -> (d0), domain: d0 in [0, 1000000000]", diamond, 1, 30);
    double d = tile_eight(cx);
    if (i < 0) continue; // to warm up
    simplify[i] = a;
    chained[i] = b;
    shared[i] = c;
    tiled[i] = d;
  }
  printf("%-44s %10s %12s\n", "", "ms", "maps/s");
  double each = median(simplify, RUNS);
  printf("%-44s %10.3f %12.0f\n", "small maps, simplified", each, ROUNDS * MAPS / each * 1e3);
  double time = median(chained, RUNS);
  printf("%-44s %10.3f %12.0f\n", "a chain of 1000, composed and simplified", time, 1000 / time * 1e3);
  time = median(shared, RUNS);
  printf("%-44s %10.3f %12.0f\n", "30 steps that use their argument twice", time, 30 / time * 1e3);
  time = median(tiled, RUNS);
  printf("%-44s %10.3f %12.0f\n", "tiles of two reshapes of rank 8", time, 2 / time * 1e3);
  kiln_context_destroy(&cx);
  return 0;
}

// Finds coefficients with which a function is correctly rounded to a 16-bit type on all its inputs.
//
//   search f16|bf16 FUNCTION [TRIALS [SEED]]
//
// Starts from the type's table in math_coeff.c, changes coefficients by a few units in their last place at random,
// keeps what does not round more inputs wrongly, and prints the polynomials when none is left (or the best found).

#include "emit/math_jit.h"
#include "emit/math_ref.h"
#include "lower/emit/math/impl.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252ull;
static uint64_t rnd(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

typedef struct job {
  km_fn fn;
  kl_dtype t;
  km_consts m;
} job;

static kb_reg emit(kb *k, const void *user, kb_reg a, kb_reg b) {
  const job *j = user;
  return km_encode(k, km_round(k, km_expand(k, j->fn, &j->m, km_decode(k, a, j->t)), j->t), j->t);
}

static uint32_t in[65536], want[65536], got[65536];

static int wrong(mj *j, const job *b) {
  mj_fn f = mj_compile(j, &(mj_spec){KB_I32, KB_I32, 16, emit, b});
  f(in, in, got, 65536);
  mj_clear(j);
  int n = 0;
  for (int i = 0; i < 65536; i++) n += !mr_same(b->t, got[i], want[i]);
  return n;
}

static km_poly *poly(km_consts *m, int i) {
  km_poly *all[] = {&m->exp, &m->exp2, &m->log, &m->tanh_small, &m->tanh_large, &m->erf_small, &m->erf_large};
  return all[i];
}
static const unsigned used[KM_FN_COUNT] = {1, 2, 4, 8 | 16, 1, 32 | 64, 0};
enum { POLYS = 7 };
static const char *const poly_names[POLYS] = {"exp",        "exp2",      "log",      "tanh_small",
                                              "tanh_large", "erf_small", "erf_large"};

static void disturb(km_consts *m, unsigned which, double c[POLYS][KM_MOST_TERMS]) {
  int changes = 1 + (int)(rnd() % 3);
  for (int n = 0; n < changes; n++) {
    int i;
    do i = (int)(rnd() % POLYS);
    while (!(which >> i & 1));
    unsigned at = (unsigned)(rnd() % poly(m, i)->n);
    float v = (float)c[i][at], to = rnd() & 1 ? INFINITY : -INFINITY;
    for (int s = (int)(rnd() % 6) + 1; s > 0; s--) v = nextafterf(v, to);
    c[i][at] = v;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  job b = {.t = strcmp(argv[1], "f16") == 0 ? KILN_F16 : KILN_BF16};
  b.m = b.t == KILN_F16 ? km_f16 : km_f32;
  while (b.fn < KM_FN_COUNT && strcmp(argv[2], mr_names[b.fn]) != 0) b.fn++;
  int trials = argc > 3 ? atoi(argv[3]) : 1000;
  if (argc > 4) state += strtoull(argv[4], NULL, 0) * 0x9e3779b97f4a7c15ull;
  mj *j = mj_open();
  for (uint32_t i = 0; i < 65536; i++) in[i] = i;
  mr_table(b.fn, b.t, want);
  static double now[POLYS][KM_MOST_TERMS], next[POLYS][KM_MOST_TERMS];
  for (int i = 0; i < POLYS; i++) {
    for (unsigned n = 0; n < poly(&b.m, i)->n; n++) now[i][n] = poly(&b.m, i)->c[n];
    poly(&b.m, i)->c = next[i];
  }
  memcpy(next, now, sizeof now);
  int best = wrong(j, &b);
  printf("%s %s: %d wrong\n", argv[1], argv[2], best);
  for (int n = 0; n < trials && best > 0; n++) {
    memcpy(next, now, sizeof now);
    disturb(&b.m, used[b.fn], next);
    int w = wrong(j, &b);
    if (w > best) continue;
    if (w < best) printf("%d: %d wrong\n", n, w), fflush(stdout);
    memcpy(now, next, sizeof now);
    best = w;
  }
  for (int i = 0; i < POLYS; i++) {
    if (!(used[b.fn] >> i & 1)) continue;
    printf("%s:", poly_names[i]);
    for (unsigned n = 0; n < poly(&b.m, i)->n; n++) printf(" %a,", now[i][n]);
    printf("\n");
  }
  mj_close(j);
  return best != 0;
}

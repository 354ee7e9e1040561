// Leaves of consecutive pairs, each a chain of fused multiply-adds, joined from left to right.
#include "eval/fold/chain.h"

#include <math.h>
#include <string.h>

enum { N = KL_CHAINS };

static int64_t leaf_of(int64_t depth) {
  int64_t leaf = 256;
  while (leaf * 4096 < depth) leaf *= 2;
  return leaf;
}

#define LEAF(T)                                                                                                        \
  T sum[N][N];                                                                                                         \
  for (int i = 0; i < N; i++)                                                                                          \
    for (int j = 0; j < N; j++) sum[i][j] = 0;                                                                         \
  for (int64_t k = first; k < end; k++)                                                                                \
    for (int p = 0; p < parts; p++) {                                                                                  \
      int64_t at = (p * depth + k) * N;                                                                                \
      for (int i = 0; i < N; i++)                                                                                      \
        for (int j = 0; j < N; j++) sum[i][j] = FMA((T)a[at + i], (T)b[at + j], sum[i][j]);                            \
    }                                                                                                                  \
  for (int i = 0; i < N; i++)                                                                                          \
    for (int j = 0; j < N; j++) out[i][j] = sum[i][j]

#define FMA fma
static void leaf_wide(int64_t depth, int parts, int64_t first, int64_t end, const double *a, const double *b,
                      double out[N][N]) {
  LEAF(double);
}
#undef FMA
#define FMA fmaf
static void leaf_single(int64_t depth, int parts, int64_t first, int64_t end, const double *a, const double *b,
                        double out[N][N]) {
  LEAF(float);
}
#undef FMA

typedef void leaf_fn(int64_t depth, int parts, int64_t first, int64_t end, const double *a, const double *b,
                     double out[N][N]);

#ifdef __x86_64__
// The same by instructions that the processor may have.
#include <immintrin.h>

__attribute__((target("avx2,fma"))) static void leaf_wide_fast(int64_t depth, int parts, int64_t first, int64_t end,
                                                               const double *a, const double *b, double out[N][N]) {
  __m256d sum[N];
  for (int i = 0; i < N; i++) sum[i] = _mm256_setzero_pd();
  for (int64_t k = first; k < end; k++)
    for (int p = 0; p < parts; p++) {
      const double *x = a + (p * depth + k) * N;
      __m256d y = _mm256_loadu_pd(b + (p * depth + k) * N);
      for (int i = 0; i < N; i++) sum[i] = _mm256_fmadd_pd(_mm256_set1_pd(x[i]), y, sum[i]);
    }
  for (int i = 0; i < N; i++) _mm256_storeu_pd(out[i], sum[i]);
}

__attribute__((target("avx2,fma"))) static void leaf_single_fast(int64_t depth, int parts, int64_t first, int64_t end,
                                                                 const double *a, const double *b, double out[N][N]) {
  __m128 sum[N];
  for (int i = 0; i < N; i++) sum[i] = _mm_setzero_ps();
  for (int64_t k = first; k < end; k++)
    for (int p = 0; p < parts; p++) {
      const double *x = a + (p * depth + k) * N;
      __m128 y = _mm256_cvtpd_ps(_mm256_loadu_pd(b + (p * depth + k) * N));
      for (int i = 0; i < N; i++) sum[i] = _mm_fmadd_ps(_mm_set1_ps((float)x[i]), y, sum[i]);
    }
  for (int i = 0; i < N; i++) _mm256_storeu_pd(out[i], _mm256_cvtps_pd(sum[i]));
}

static leaf_fn *leaf_for(bool wide) {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return wide ? leaf_wide_fast : leaf_single_fast;
  return wide ? leaf_wide : leaf_single;
}
#else
static leaf_fn *leaf_for(bool wide) {
  return wide ? leaf_wide : leaf_single;
}
#endif

void kl_chain(bool wide, int64_t depth, int parts, const double *a, const double *b, double out[N][N]) {
  int64_t leaf = leaf_of(depth);
  leaf_fn *run = leaf_for(wide);
  memset(out, 0, N * sizeof *out);
  for (int64_t first = 0; first < depth; first += leaf) {
    double next[N][N];
    run(depth, parts, first, first + leaf < depth ? first + leaf : depth, a, b, next);
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        double both = out[i][j] + next[i][j];
        out[i][j] = first == 0 ? next[i][j] : wide ? both : (double)(float)both;
      }
  }
}

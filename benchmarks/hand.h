// Included by hand.c once for each width: loops over vectors of VECTOR floats, compiled for ISA, called NAME(n).

#if VECTOR == 16
#include <immintrin.h>
#endif
#define WITH __attribute__((target(ISA), unused)) static
#define vec  NAME(vec)
#define ints NAME(ints)

typedef float vec __attribute__((vector_size(VECTOR * 4)));
typedef float NAME(loose) __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(VECTOR * 4)));

WITH vec NAME(load)(const float *p) {
  return *(const NAME(loose) *)p;
}

WITH void NAME(store)(float *p, vec v) {
  *(NAME(loose) *)p = v;
}

WITH vec NAME(greater)(vec a, vec b) {
#if VECTOR == 16
  return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#else
  return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#endif
}

WITH vec NAME(madd)(vec a, vec b, vec c) {
#if VECTOR == 16
  return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

// kiln's exp (src/lower/emit/math), for what is at most 0: there is no need to look at what is too large.
WITH vec NAME(exp)(vec x) {
  static const float c[] = {0x1p+0f,        0x1p+0f,        0x1.fffffcp-2f, 0x1.55548cp-3f,
                            0x1.555858p-5f, 0x1.123ddep-7f, 0x1.6ac718p-10f};
  vec zero = {0}, magic = zero + 0x1.8p23f + 254;
  x = NAME(greater)(x, zero - 104);
  vec t = NAME(madd)(x, zero + 0x1.715476p0f, magic), n = t - magic;
  vec r = NAME(madd)(n, zero + 0x1.05c61p-29f, NAME(madd)(n, zero - 0x1.62e43p-1f, x)), p = zero + c[6];
  for (int i = 5; i >= 0; i--) p = NAME(madd)(p, r, zero + c[i]);
  ints first = ((ints)t << 22) & 0x7f800000, second = ((ints)t << 23) - first;
  return p * (vec)first * (vec)second;
}

WITH float NAME(sum_of)(vec v) {
  float s = 0;
  for (int i = 0; i < VECTOR; i++) s += v[i];
  return s;
}

WITH void NAME(softmax)(const job *j) {
  int64_t n = j->columns;
  for (int64_t r = j->first; r < j->end; r++) {
    const float *in = j->in + r * n;
    float *out = j->out + r * n;
    vec m[4], s[4], zero = {0};
    for (int u = 0; u < 4; u++) m[u] = zero - INFINITY, s[u] = zero;
    for (int64_t i = 0; i < n; i += 4 * VECTOR)
      for (int u = 0; u < 4; u++) m[u] = NAME(greater)(m[u], NAME(load)(in + i + u * VECTOR));
    vec all = NAME(greater)(NAME(greater)(m[0], m[1]), NAME(greater)(m[2], m[3]));
    float most = all[0];
    for (int i = 1; i < VECTOR; i++) most = all[i] > most ? all[i] : most;
    for (int64_t i = 0; i < n; i += 4 * VECTOR) {
      for (int u = 0; u < 4; u++) {
        vec e = NAME(exp)(NAME(load)(in + i + u * VECTOR) - most);
        NAME(store)(out + i + u * VECTOR, e);
        s[u] += e;
      }
    }
    vec whole = zero + NAME(sum_of)((s[0] + s[1]) + (s[2] + s[3]));
    for (int64_t i = 0; i < n; i += VECTOR) NAME(store)(out + i, NAME(load)(out + i) / whole);
  }
}

WITH void NAME(row_sum)(const job *j) {
  int64_t n = j->columns;
  for (int64_t r = j->first; r < j->end; r++) {
    const float *in = j->in + r * n;
    vec s[8] = {{0}};
    for (int64_t i = 0; i < n; i += 8 * VECTOR)
      for (int u = 0; u < 8; u++) s[u] += NAME(load)(in + i + u * VECTOR);
    j->out[r] = NAME(sum_of)(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
  }
}

// Threads have columns, and add eight rows of them at a time to what they have.
WITH void NAME(column_sum)(const job *j) {
  memset(j->out + j->first, 0, (size_t)(j->end - j->first) * sizeof(float));
  for (int64_t r = 0; r < j->rows; r += 8) {
    for (int64_t c = j->first; c < j->end; c += VECTOR) {
      vec s[8];
      for (int u = 0; u < 8; u++) s[u] = NAME(load)(j->in + (r + u) * j->columns + c);
      vec all = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
      NAME(store)(j->out + c, NAME(load)(j->out + c) + all);
    }
  }
}

// Halves are added to halves until a vector holds sums of its own rows only.
WITH void NAME(short_sum)(const job *j) {
  for (int64_t r = j->first; r < j->end; r += VECTOR) {
    vec v[VECTOR];
    for (int i = 0; i < VECTOR; i++) {
      const float *in = j->in + (r + i) * 32;
      v[i] = NAME(load)(in);
      for (int k = VECTOR; k < 32; k += VECTOR) v[i] += NAME(load)(in + k);
    }
    for (int n = VECTOR, step = 1; n > 1; n /= 2, step *= 2) {
      ints low, high;
      for (int l = 0; l < VECTOR; l++) {
        bool odd = l & step;
        low[l] = odd ? VECTOR + l - step : l;
        high[l] = odd ? VECTOR + l : l + step;
      }
      for (int i = 0; i < n / 2; i++) {
        vec a = v[2 * i], b = v[2 * i + 1];
        v[i] = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
      }
    }
    NAME(store)(j->out + r, v[0]);
  }
}

// Squares of VECTOR x VECTOR in registers, over blocks of 64 x 64; the results' rows are dealt out.
WITH void NAME(transpose)(const job *j) {
  for (int64_t x = j->first; x < j->end; x += 64) {
    for (int64_t y = 0; y < j->rows; y += 64) {
      for (int64_t a = x; a < x + 64; a += VECTOR) {
        for (int64_t b = y; b < y + 64; b += VECTOR) {
          vec v[VECTOR], w[VECTOR];
          for (int i = 0; i < VECTOR; i++) v[i] = NAME(load)(j->in + (b + i) * j->columns + a);
          for (int step = 1; step < VECTOR; step *= 2) {
            ints low, high;
            for (int l = 0; l < VECTOR; l++) {
              bool odd = l & step;
              low[l] = odd ? VECTOR + l - step : l;
              high[l] = odd ? VECTOR + l : l + step;
            }
            for (int i = 0; i < VECTOR; i++) {
              if (i & step) continue;
              w[i] = __builtin_shuffle(v[i], v[i + step], low);
              w[i + step] = __builtin_shuffle(v[i], v[i + step], high);
            }
            for (int i = 0; i < VECTOR; i++) v[i] = w[i];
          }
          for (int i = 0; i < VECTOR; i++) NAME(store)(j->out + (a + i) * j->rows + b, v[i]);
        }
      }
    }
  }
}

#undef vec
#undef ints
#undef WITH

// Roots of unity as tables, computed in numbers of 113 bits, so that each is the nearest of its type.

#include "lower/choose/staged/fft/fft.h"

#include "ir/dtype.h"

typedef __float128 quad;

typedef struct root {
  quad re, im;
} root;

// cos and sin of a quarter turn times x, |x| <= 1/2, by their series, from its end on: term k is so many parts of the
// one before it.
static root small_root(quad x) {
#define INVERSE(k) ((quad)1 / ((2 * (k)-1) * (2 * (k)))), ((quad)1 / ((2 * (k)) * (2 * (k) + 1)))
  static const quad parts[] = {INVERSE(15), INVERSE(14), INVERSE(13), INVERSE(12), INVERSE(11),
                               INVERSE(10), INVERSE(9),  INVERSE(8),  INVERSE(7),  INVERSE(6),
                               INVERSE(5),  INVERSE(4),  INVERSE(3),  INVERSE(2),  INVERSE(1)};
#undef INVERSE
  const quad quarter = (quad)0x1.921fb54442d18p+0 + (quad)0x1.1a62633145c07p-54 - (quad)0x1.f1976b7ed8fbcp-110;
  quad a = x * quarter, square = a * a, even = 1, odd = 1;
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k += 2) {
    even = 1 - square * parts[k] * even;
    odd = 1 - square * parts[k + 1] * odd;
  }
  return (root){even, a * odd};
}

// exp(-2 pi i k / n), 0 <= k < n.
static root root_of(int64_t k, int64_t n) {
  __int128 four = 4 * (__int128)k, turn = (2 * four + n) / (2 * (__int128)n);
  root r = small_root((quad)(four - turn * n) / (quad)n);
  switch ((int)turn % 4) {
  case 0: return (root){r.re, -r.im};
  case 1: return (root){-r.im, -r.re};
  case 2: return (root){-r.re, r.im};
  default: return (root){r.im, r.re};
  }
}

static void put(kl_dtype whole, void *out, int64_t i, root r) {
  if (whole == KILN_C64) {
    ((float *)out)[2 * i] = (float)r.re;
    ((float *)out)[2 * i + 1] = (float)r.im;
  } else {
    ((double *)out)[2 * i] = (double)r.re;
    ((double *)out)[2 * i + 1] = (double)r.im;
  }
}

void kl_roots(kl_dtype whole, int64_t n, int64_t step, int64_t count, void *out) {
  for (int64_t k = 0; k < count; k++) put(whole, out, k, root_of(k * step, n));
}

static root chirp_at(int64_t k, int64_t n) {
  return root_of((int64_t)((__int128)k * k % (2 * (__int128)n)), 2 * n);
}

void kl_chirp(kl_dtype whole, int64_t n, void *out) {
  for (int64_t k = 0; k < n; k++) put(whole, out, k, chirp_at(k, n));
}

// In long double: more than either type has.
typedef struct wide {
  long double re, im;
} wide;

static wide wide_of(root r) {
  return (wide){(long double)r.re, (long double)r.im};
}

static wide times(wide x, wide y) {
  return (wide){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// The transform of n numbers in bit-reversed order, n a power of two.
static void transform(wide *x, const wide *roots, int64_t n) {
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t i = 0; i < n; i += 2 * half)
      for (int64_t k = 0; k < half; k++) {
        wide a = x[i + k], b = times(x[i + k + half], roots[k * (n / (2 * half))]);
        x[i + k] = (wide){a.re + b.re, a.im + b.im};
        x[i + k + half] = (wide){a.re - b.re, a.im - b.im};
      }
}

static int64_t reversed(int64_t k, int64_t n) {
  int64_t r = 0;
  for (int64_t bit = 1; bit < n; bit *= 2) r = 2 * r + ((k & bit) != 0);
  return r;
}

bool kl_chirp_filter(kl_ctx *cx, kl_dtype whole, int64_t n, int64_t size, void *out) {
  size_t bytes;
  if (__builtin_mul_overflow((size_t)size, sizeof(wide), &bytes)) return false;
  wide *x = kl_try_alloc(cx, bytes), *roots = kl_try_alloc(cx, bytes);
  bool ok = x && roots;
  if (ok) memset(x, 0, bytes);
  for (int64_t k = 0; ok && k < size / 2; k++) roots[k] = wide_of(root_of(k, size));
  for (int64_t k = 0; ok && k < n; k++) {
    wide c = wide_of(chirp_at(k, n));
    c.im = -c.im;
    x[reversed(k, size)] = x[reversed(k ? size - k : 0, size)] = c;
  }
  if (ok) transform(x, roots, size);
  for (int64_t k = 0; ok && k < size; k++)
    put(whole, out, k, (root){(quad)(x[k].re / (long double)size), (quad)(x[k].im / (long double)size)});
  if (x) kl_free(cx, x, bytes);
  if (roots) kl_free(cx, roots, bytes);
  return ok;
}

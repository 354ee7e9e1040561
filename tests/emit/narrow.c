// Formats of fewer than 32 bits as expanded for the host: bits to values, values to bits, rounding.
//
// The judge is an enumeration: the values of all patterns (kl_float_decode, which test_dtype checks by itself), and the
// nearest of them by comparing distances in double, where both are exact.
#include "math_jit.h"
#include "support/bits.h"
#include "support/dtypes.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static mj *jit;
static void open_jit(void) {
  jit = mj_open();
}
static void close_jit(void) {
  mj_close(jit);
}

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static kb_reg emit_decode(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_decode(k, a, *(const kl_dtype *)user);
}
static kb_reg emit_encode(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_encode(k, a, *(const kl_dtype *)user);
}
static kb_reg emit_round(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_round(k, a, *(const kl_dtype *)user);
}
static kb_reg emit_odd(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_narrow_odd(k, a);
}

enum { MOST = 65536 };
static uint32_t bits[MOST], back[MOST];
static float values[MOST], rounded[MOST];

START_TEST(patterns_have_their_values) {
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  uint32_t n = 1u << kl_info(t)->bits;
  // Bits above the format's are ignored.
  for (uint32_t i = 0; i < MOST; i++) bits[i] = i % n | ((uint32_t)random_bits() & ~(n - 1));
  mj_compile(jit, &(mj_spec){KB_I32, KB_F32, 16, emit_decode, &t})(bits, bits, values, MOST);
  mj_compile(jit, &(mj_spec){KB_F32, KB_I32, 16, emit_encode, &t})(values, values, back, MOST);
  for (uint32_t i = 0; i < MOST; i++) {
    uint32_t b = i % n;
    EXPECT(same(kl_float_decode(t, b), values[i]), "%s %#x is %a", kl_info(t)->name, b, values[i]);
    EXPECT(back[i] == b || (kl_float_is_nan(t, b) && back[i] < n && kl_float_is_nan(t, back[i])), "%s %#x became %#x",
           kl_info(t)->name, b, back[i]);
  }
}
END_TEST

// --- rounding --------------------------------------------------------------------------------------------------------

// Values of the patterns 0, 1, 2 ... that are finite and positive, and one more that the format has no pattern for.
typedef struct grid {
  kl_dtype t;
  uint32_t n;
  double v[MOST / 2 + 1];
} grid;

static grid grid_of(kl_dtype t) {
  static grid g;
  uint32_t patterns = 1u << (kl_info(t)->bits - (kl_info(t)->kind != KL_E8M0));
  g.t = t;
  for (g.n = 0; g.n < patterns && isfinite(kl_float_decode(t, g.n)); g.n++) g.v[g.n] = kl_float_decode(t, g.n);
  g.v[g.n] = kl_info(t)->kind == KL_E8M0 ? 2 * g.v[g.n - 1] : 2 * g.v[g.n - 1] - g.v[g.n - 2];
  return g;
}

// Index of the value nearest to a >= 0, an even one at a tie (the upper one for e8m0); n if a overflows.
static uint32_t nearest(const grid *g, double a) {
  uint32_t lo = 0, hi = g->n;
  if (a >= g->v[hi]) return hi;
  if (a <= g->v[0]) return 0;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (g->v[mid] <= a)
      lo = mid;
    else
      hi = mid;
  }
  double down = a - g->v[lo], up = g->v[hi] - a;
  if (down != up) return down < up ? lo : hi;
  return kl_info(g->t)->kind == KL_E8M0 || lo % 2 == 1 ? hi : lo;
}

static double oracle(const grid *g, double x) {
  kl_float_kind kind = kl_info(g->t)->kind;
  if (kind == KL_E8M0 && !(x > 0)) return NAN;
  if (isnan(x)) return kind == KL_FN0 ? -0.0 : NAN;
  uint32_t i = nearest(g, fabs(x));
  double r = g->v[i];
  if (i == g->n) {
    if (kind != KL_IEEE && kind != KL_FN0) return NAN;
    r = kind == KL_IEEE ? INFINITY : g->v[i - 1];
  }
  return kind == KL_FNUZ && r == 0 ? 0.0 : copysign(r, x);
}

static void check_rounding(const grid *g, mj_fn f, mj_fn encode) {
  f(values, values, rounded, MOST);
  encode(rounded, rounded, back, MOST);
  for (uint32_t i = 0; i < MOST; i++) {
    double want = oracle(g, values[i]);
    EXPECT(same(want, rounded[i]), "%s: %a rounds to %a, not %a", kl_info(g->t)->name, values[i], want, rounded[i]);
    double got = back[i] >> kl_info(g->t)->bits ? INFINITY : kl_float_decode(g->t, back[i]);
    EXPECT(same(want, got), "%s: %a is encoded as %#x", kl_info(g->t)->name, want, back[i]);
  }
}

// Patterns all over f32, and around every value and every tie of the format.
START_TEST(rounding_is_to_nearest) {
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  static grid g;
  g = grid_of(t);
  mj_fn f = mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, emit_round, &t});
  mj_fn encode = mj_compile(jit, &(mj_spec){KB_F32, KB_I32, 16, emit_encode, &t});
  for (uint64_t k = 0, all = share_up_to(1 << 20, 1ull << 32); k < all;) {
    for (int i = 0; i < MOST; i++) values[i] = float_of(share_pattern(k++, 32));
    check_rounding(&g, f, encode);
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < g.n; i++) {
    float at[2] = {(float)g.v[i], (float)((g.v[i] + g.v[i + 1]) / 2)};
    for (int j = 0; j < 12; j++) {
      float v = at[j / 6];
      if (j % 3) v = nextafterf(v, j % 3 == 1 ? INFINITY : -INFINITY);
      values[n++] = j / 3 % 2 ? -v : v;
      if (n == MOST || (i == g.n - 1 && j == 11)) check_rounding(&g, f, encode), n = 0;
    }
  }
}
END_TEST

// By way of rounding to odd, F64 is rounded once.
START_TEST(f64_is_rounded_once) {
  enum { N = 16384 };
  static double x[N];
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  static grid g;
  g = grid_of(t);
  mj_fn odd = mj_compile(jit, &(mj_spec){KB_F64, KB_F32, 8, emit_odd, NULL});
  mj_fn f = mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, emit_round, &t});
  for (int i = 0; i < N; i++) {
    uint32_t at = (uint32_t)(random_bits() % g.n);
    x[i] = (g.v[at] + g.v[at + 1]) / 2;
    if (i % 3) x[i] = nextafter(x[i], i % 3 == 1 ? INFINITY : -INFINITY);
    if (i % 7 == 0) x[i] *= 1 + 0x1p-40;
    if (i % 2) x[i] = -x[i];
  }
  for (int i = 0; i < N; i += 16) {
    uint64_t b = random_bits();
    memcpy(&x[i], &b, sizeof b);
  }
  odd(x, x, values, N);
  f(values, values, rounded, N);
  for (int i = 0; i < N; i++) {
    double want = oracle(&g, x[i]);
    EXPECT(same(want, rounded[i]), "%s: %a rounds to %a, not %a", kl_info(t)->name, x[i], want, rounded[i]);
  }
}
END_TEST

// The f32 that narrow_odd gives is x, or the odd one of its two neighbours; never infinite for finite x.
START_TEST(odd_is_odd) {
  enum { N = 1 << 16 };
  static double x[N];
  for (int i = 0; i < N; i++) {
    uint64_t b = random_bits();
    if (i % 2) b = (b & 0x800fffffffffffff) | (1023 - 155 + random_bits() % 290) << 52;
    if (i % 3 == 0) b &= ~0x1fffffffull;
    memcpy(&x[i], &b, sizeof b);
  }
  mj_compile(jit, &(mj_spec){KB_F64, KB_F32, 8, emit_odd, NULL})(x, x, values, N);
  for (int i = 0; i < N; i++) {
    float near = (float)x[i], v = values[i];
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    if (isnan(x[i]) || (double)near == x[i]) {
      EXPECT(same(x[i], v), "%a became %a", x[i], v);
      continue;
    }
    float other = fabs(near) > fabs(x[i]) ? nextafterf(near, 0) : nextafterf(near, copysignf(INFINITY, near));
    if (near == 0) other = copysignf(0x1p-149f, (float)copysign(1, x[i]));
    EXPECT((v == near || v == other) && (u & 1), "%a became %a", x[i], v);
  }
}
END_TEST

// The machine's own conversions where it has them.
START_TEST(ptx_converts) {
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  for (unsigned sm = 75; sm <= 90; sm += sm == 75 ? 5 : 10) {
    char *round = mj_ptx(jit, &(mj_spec){KB_F32, KB_F32, 1, emit_round, &t}, sm);
    char *encode = mj_ptx(jit, &(mj_spec){KB_F32, KB_I32, 1, emit_encode, &t}, sm);
    char *decode = mj_ptx(jit, &(mj_spec){KB_I32, KB_F32, 1, emit_decode, &t}, sm);
    if (t == KILN_BF16 && sm >= 80) ck_assert(strstr(round, "cvt.rn.bf16") && strstr(encode, "cvt.rn.bf16"));
    if (t == KILN_F16) ck_assert(strstr(round, "cvt.rn.f16") && strstr(decode, "cvt.f32.f16"));
    if (t != KILN_F16) ck_assert(!strstr(decode, "cvt.f32"));
    free(round);
    free(encode);
    free(decode);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("narrow", ONCE(open_jit, close_jit), {patterns_have_their_values, dtypes_that(is_narrow_float).n},
                   {rounding_is_to_nearest, dtypes_that(is_narrow_float).n},
                   {f64_is_rounded_once, dtypes_that(is_narrow_float).n}, {odd_is_odd},
                   {ptx_converts, dtypes_that(is_narrow_float).n});
}

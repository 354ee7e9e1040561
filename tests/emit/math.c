// Elementary functions, hypotenuse and remainder, as expanded for the host, and the proof that the approximate
// instructions of NVPTX change no result of strict numerics.
//
// Of the f32 functions one input in 4,000 is tried: all 2^32 with KILN_TEST_SHARE=4000 (support/share.h), in some
// ten minutes, and in as many for each function with approximate instructions.
#include "eval/eval.h"
#include "math_jit.h"
#include "math_ref.h"
#include "support/bits.h"
#include "support/dtypes.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static mj *jit;
static void open_jit(void) {
  jit = mj_open();
}
static void close_jit(void) {
  mj_close(jit);
}

// How many of all f32 are tried.
static uint64_t tried_of_f32(void) {
  return share_up_to(1073742, 1ull << 32);
}
// KILN_TEST_FUNCTION=NAME: bounds of that function alone.
static bool left_out(int fn) {
  const char *only = getenv("KILN_TEST_FUNCTION");
  return only && strcmp(only, mr_names[fn]) != 0;
}

// --- expansions ------------------------------------------------------------------------------------------------------

typedef struct call {
  km_fn fn;
  kl_dtype t;
} call;

static kb_reg emit_call(kb *k, const void *user, kb_reg a, kb_reg b) {
  const call *c = user;
  return km_call(k, c->fn, c->t, a);
}

static kb_reg emit_on_bits(kb *k, const void *user, kb_reg a, kb_reg b) {
  const call *c = user;
  return km_encode(k, km_round_computed(k, km_call(k, c->fn, c->t, km_decode(k, a, c->t)), c->t), c->t);
}

static kb_reg emit_fmod(kb *k, const void *user, kb_reg a, kb_reg b) {
  kb_reg r = a;
  return km_fmod(k, a, b, &r) ? r : a;
}

static kb_reg emit_hypot(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_hypot(k, a, b);
}

// --- 16 bits and fewer ----------------------------------------------------------------------------------------------

static uint32_t all_bits[65536], want[65536], got[65536];

// Of all types and functions one pair in three.
START_TEST(narrow_types_are_correctly_rounded) {
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  int n = 1 << kl_info(t)->bits;
  for (int i = 0; i < 65536; i++) all_bits[i] = (uint32_t)(i % n);
  for (int fn = 0; fn < KM_FN_COUNT; fn++) {
    call c = {(km_fn)fn, t};
    if (!share_has((uint64_t)(_i * KM_FN_COUNT + fn), 3)) continue;
    mr_table(c.fn, t, want);
    mj_compile(jit, &(mj_spec){KB_I32, KB_I32, 16, emit_on_bits, &c})(all_bits, all_bits, got, n);
    for (int i = 0; i < n; i++)
      EXPECT(mr_same(t, got[i], want[i]), "%s %s(%a) = %#x, correctly rounded %#x", kl_info(t)->name, mr_names[fn],
             kl_float_decode(t, (uint64_t)i), got[i], want[i]);
  }
}
END_TEST

// Every f32 value that an approximate instruction may return within its error, at every call, for every input; of one
// function and type in four.
START_TEST(approximate_instructions_change_no_narrow_result) {
  static float x[65536], y[65536];
  kl_dtype t = dtypes_that(is_narrow_float).at[_i];
  int n = 1 << kl_info(t)->bits;
  for (int fn = 0; fn < KM_FN_COUNT; fn++) {
    call c = {(km_fn)fn, t};
    unsigned sites, runs = 1;
    if (!share_has((uint64_t)(_i * KM_FN_COUNT + fn), 4)) continue;
    mr_table(c.fn, t, want);
    for (int i = 0; i < n; i++) x[i] = (float)kl_float_decode(t, (uint64_t)i);
    mj_fn f = mj_compile_approx(jit, &(mj_spec){KB_F32, KB_F32, 1, emit_call, &c}, 80, &sites);
    ck_assert_uint_le(sites, MJ_SITES);
    ck_assert(t != KILN_BF16 || sites > 0 || fn > KM_RSQRT);
    if (sites == 0) continue;
    for (unsigned s = 0; s < sites; s++) runs *= MJ_PICKS;
    for (unsigned r = 0; r < runs; r++) {
      for (unsigned s = 0, rest = r; s < sites; s++, rest /= MJ_PICKS) mj_pick[s] = rest % MJ_PICKS;
      f(x, x, y, n);
      for (int i = 0; i < n; i++)
        EXPECT(mr_same(t, (uint32_t)kl_float_encode(t, y[i]), want[i]), "%s %s(%a) may be %a, correctly rounded %#x",
               kl_info(t)->name, mr_names[fn], x[i], y[i], want[i]);
    }
  }
}
END_TEST

// Every seed of logistic (within a unit there are four at most), and lg2.approx where log takes it, which is where it
// has one value: the same bits as on the host.
START_TEST(approximate_instructions_change_no_f32_result) {
  static float x[65536], y[65536], z[65536];
  call c = {_i ? KM_LOGISTIC : KM_LOG, KILN_F32};
  // Where results with other constants were seen to differ: near ties.
  static const float hard[] = {0x1.000002p-23f, 0x1.8p-22f, 0x1.800002p-22f, -0x1.b78ce4p+1f, 1, 0, -0x1p-149f, NAN};
  unsigned sites;
  if (left_out(c.fn)) return;
  mj_fn host = mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, emit_call, &c});
  mj_fn f = mj_compile_approx(jit, &(mj_spec){KB_F32, KB_F32, 1, emit_call, &c}, 80, &sites);
  ck_assert_uint_eq(sites, 1);
  for (uint64_t k = 0, all = tried_of_f32(); k < all;) {
    int n = 0;
    for (; k == 0 && n < (int)KL_COUNT(hard); n++) x[n] = hard[n];
    for (; n < 65536 && k < all; n++) x[n] = float_of(share_pattern(k++, 32));
    host(x, x, z, 65536);
    for (mj_pick[0] = 0; mj_pick[0] < 4; mj_pick[0]++) {
      f(x, x, y, n);
      for (int i = 0; i < n; i++)
        EXPECT(memcmp(&y[i], &z[i], 4) == 0 || (isnan(y[i]) && isnan(z[i])), "%s(%a) = %a with %u, %a on the host",
               mr_names[c.fn], x[i], y[i], mj_pick[0], z[i]);
    }
  }
  mj_pick[0] = 0;
}
END_TEST

// Every seed of every significand: the same result, which is the correctly rounded one.
START_TEST(rsqrt_does_not_depend_on_its_seed) {
  if (left_out(KM_RSQRT)) return;
  static float x[65536], y[65536];
  call c = {KM_RSQRT, KILN_F32};
  unsigned sites;
  mj_fn f = mj_compile_approx(jit, &(mj_spec){KB_F32, KB_F32, 1, emit_call, &c}, 80, &sites);
  ck_assert_uint_eq(sites, 1);
  for (uint64_t k = 0, all = share_up_to(1 << 17, 1 << 24); k < all;) {
    int n = 0;
    for (; n < 65536 && k < all; n++) x[n] = float_of(0x3f800000 + share_pattern(k++, 24));
    for (mj_pick[0] = 0; mj_pick[0] < MJ_PICKS; mj_pick[0]++) {
      f(x, x, y, n);
      for (int i = 0; i < n; i++)
        EXPECT(y[i] == (float)(1 / sqrtl(x[i])), "rsqrt(%a) = %a with seed %u", x[i], y[i], mj_pick[0]);
    }
  }
  mj_pick[0] = 0;
}
END_TEST

// --- F32 -------------------------------------------------------------------------------------------------------------

static double logistic(double x) {
  return 1 / (1 + exp(-x));
}
static double rsqrt(double x) {
  return 1 / sqrt(x);
}

// The worst errors found, rounded up; math.c states them. F32: over all inputs. F64: over samples, so no proof.
static const struct function {
  double (*reference)(double);
  kl_op op;
  double f32, f64;
  double low, high; // the function's range
} functions[KM_FN_COUNT] = {
    [KM_EXP] = {exp, KL_OP_EXP, 0.90, 0.91, 0, INFINITY},
    [KM_EXP2] = {exp2, KL_OP_EXP, 0.90, 0.90, 0, INFINITY},
    [KM_LOG] = {log, KL_OP_LOG, 0.95, 0.83, -INFINITY, INFINITY},
    [KM_TANH] = {tanh, KL_OP_TANH, 1, 1, -1, 1},
    [KM_LOGISTIC] = {logistic, KL_OP_LOGISTIC, 1, 1, 0, 1},
    [KM_ERF] = {erf, KL_OP_ERF, 1, 1, -1, 1},
    [KM_RSQRT] = {rsqrt, KL_OP_RSQRT, 0.5000001, 0.51, -INFINITY, INFINITY},
    [KM_EXPM1] = {expm1, KL_OP_EXPM1, 1, 1, -1, INFINITY},
    [KM_EXP10] = {exp10, KL_OP_EXP10, 1, 1, 0, INFINITY},
    [KM_SINH] = {sinh, KL_OP_SINH, 1, 1, -INFINITY, INFINITY},
    [KM_COSH] = {cosh, KL_OP_COSH, 1, 1, 1, INFINITY},
    [KM_LOG1P] = {log1p, KL_OP_LOG1P, 1, 1, -INFINITY, INFINITY},
    [KM_ASINH] = {asinh, KL_OP_ASINH, 1, 1, -INFINITY, INFINITY},
    [KM_ACOSH] = {acosh, KL_OP_ACOSH, 1, 1, 0, INFINITY},
    [KM_ATANH] = {atanh, KL_OP_ATANH, 1, 1, -INFINITY, INFINITY},
    [KM_CBRT] = {cbrt, KL_OP_CBRT, 1, 1, -INFINITY, INFINITY},
    [KM_SIN] = {sin, KL_OP_SIN, 1, 1, -1, 1},
    [KM_COS] = {cos, KL_OP_COS, 1, 1, -1, 1},
    [KM_TAN] = {tan, KL_OP_TAN, 1, 1, -INFINITY, INFINITY},
    [KM_ASIN] = {asin, KL_OP_ASIN, 1, 1, -1.5707964, 1.5707964},
    [KM_ACOS] = {acos, KL_OP_ACOS, 1, 1, 0, 3.1415928},
    [KM_ATAN] = {atan, KL_OP_ATAN, 1, 1, -1.5707964, 1.5707964},
};

// |y - r| in units of the last place that r has in a format of `bits` bits and least exponent `least`.
static double error_in_units(double y, long double r, int bits, int least) {
  int e;
  frexpl(r, &e);
  e -= bits;
  return (double)(fabsl(y - r) / ldexpl(1, e < least ? least : e));
}

// Compares one f32 result; returns its error. Zeros and infinities of r come with their sign, or one step away.
static double check_f32(int fn, float x, float y) {
  const struct function *f = &functions[fn];
  double r = f->reference(x);
  float nearest = (float)r;
  EXPECT(isnan(r) == isnan(y), "%s(%a) = %a, exactly %a", mr_names[fn], x, y, r);
  if (isnan(r)) return 0;
  EXPECT(!signbit(r) == !signbit(y) && y >= f->low && y <= f->high, "%s(%a) = %a, exactly %a", mr_names[fn], x, y, r);
  if (isinf(r) || r == 0) {
    EXPECT(y == nearest, "%s(%a) = %a, exactly %a", mr_names[fn], x, y, r);
    return 0;
  }
  if (isinf(y) || isinf(nearest)) {
    EXPECT(fabs(r) > 0x1.fffffep127 * (1 - 0x1p-24), "%s(%a) = %a, exactly %a", mr_names[fn], x, y, r);
    return 0;
  }
  return error_in_units(y, r, 24, -149);
}

enum { BATCH = 1 << 16 };

START_TEST(f32_within_its_bound) {
  if (left_out(_i)) return;
  static float x[BATCH], y[BATCH];
  call c = {(km_fn)_i, KILN_F32};
  mj_fn f = mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, emit_call, &c});
  double worst = 0, at = 0;
  for (uint64_t k = 0, all = tried_of_f32(); k < all;) {
    int n = 0;
    for (; n < BATCH && k < all; n++) x[n] = float_of(share_pattern(k++, 32));
    f(x, x, y, BATCH);
    for (int i = 0; i < n; i++) {
      double e = check_f32(_i, x[i], y[i]);
      if (e > worst) worst = e, at = x[i];
    }
  }
  const struct function *fn = &functions[_i];
  if (test_share() > 1) printf("# f32 %s: %.4f ulp at %a\n", mr_names[_i], worst, at);
  ck_assert_msg(worst <= fn->f32, "f32 %s: %.4f ulp at %a", mr_names[_i], worst, at);
  ck_assert_double_le(fn->f32, kl_op_ulp_bound(fn->op, KILN_F32));
}
END_TEST

// --- F64 -------------------------------------------------------------------------------------------------------------

// Where the error was seen to peak: seams, ends of the reduced argument, the first binade of denormal results.
static const struct peak {
  double low, high;
} peaks[KM_FN_COUNT][2] = {
    [KM_EXP] = {{-709.1, -708.39}, {-0.36, 0.36}},
    [KM_EXP2] = {{-1023, -1022}, {-0.5, 0.5}},
    [KM_LOG] = {{0.66, 1.5}, {1.3, 2.8}},
    [KM_TANH] = {{0.6, 0.8}, {-0.7, -0.5}},
    [KM_LOGISTIC] = {{-709.1, -708.39}, {-6.5, -1}},
    [KM_ERF] = {{0.9, 1.2}, {-0.5, -0.3}},
    [KM_RSQRT] = {{1, 1.02}, {0x1p-1030, 0x1p-1026}},
    [KM_EXPM1] = {{-0.8, 0.8}, {0.3, 0.5}},
    [KM_EXP10] = {{-308.3, -307.5}, {-0.16, 0.16}},
    [KM_SINH] = {{0.3, 0.5}, {0.9, 1.8}},
    [KM_COSH] = {{0.2, 0.6}, {0.9, 1.8}},
    [KM_LOG1P] = {{-0.5, 1}, {0.3, 0.4}},
    [KM_ASINH] = {{0.2, 0.6}, {0x1p28, 0x1p30}},
    [KM_ACOSH] = {{1, 1.1}, {1, 3}},
    [KM_ATANH] = {{0.1, 0.3}, {0.9, 1}},
    [KM_CBRT] = {{1, 8}, {0x1p-1030, 0x1p-1022}},
    [KM_SIN] = {{0.7, 0.9}, {-400, 400}},
    [KM_COS] = {{1.4, 1.7}, {-400, 400}},
    [KM_TAN] = {{0.7, 0.9}, {-400, 400}},
    [KM_ASIN] = {{0.45, 0.55}, {0.9, 1}},
    [KM_ACOS] = {{0.45, 0.55}, {0.9, 1}},
    [KM_ATAN] = {{0.9, 1.1}, {1, 4}},
};

// Arguments where the function has something to do, of all sizes, near its peaks, and any pattern at all.
static double f64_argument(int fn, int i) {
  static const double reach[KM_FN_COUNT] = {750, 1080, 4,   22,  750, 7,   4,   750, 330, 720, 720,
                                            50,  1e9,  1e9, 1.1, 1e6, 1e6, 1e6, 1e6, 1.1, 1.1, 50};
  double u = (double)(int64_t)random_bits() * 0x1p-63;
  bool positive = fn == KM_LOG || fn == KM_RSQRT || fn == KM_ACOSH;
  const struct peak *p = &peaks[fn][i % 2];
  switch (i / 2 % 6) {
  case 0: return double_of(random_bits());
  case 1: return positive ? fabs(u) * reach[fn] : u * reach[fn];
  case 2: return positive ? 1 + u * 0.4 : u;
  case 3: return double_of((random_bits() >> 12) | (uint64_t)(1023 - 40 + random_bits() % 44) << 52);
  case 4: return double_of(random_bits() >> (i % 2 ? 12 : 11 + i / 12 % 53)); // denormals among them
  default: return p->low + (p->high - p->low) * fabs(u);
  }
}

static double check_f64(int fn, double x, double y, mpfr_t a, mpfr_t r) {
  const struct function *f = &functions[fn];
  mpfr_set_d(a, x, MPFR_RNDN);
  mr_function((km_fn)fn, r, a);
  double nearest = mpfr_get_d(r, MPFR_RNDN);
  EXPECT(isnan(nearest) == isnan(y), "%s(%a) = %a, exactly %a", mr_names[fn], x, y, nearest);
  if (isnan(nearest)) return 0;
  EXPECT(!signbit(nearest) == !signbit(y) && y >= f->low && y <= f->high, "%s(%a) = %a, exactly %a", mr_names[fn], x, y,
         nearest);
  if (isinf(nearest) || nearest == 0 || isinf(y)) {
    EXPECT(y == nearest, "%s(%a) = %a, exactly %a", mr_names[fn], x, y, nearest);
    return 0;
  }
  int e;
  frexp(nearest, &e);
  mpfr_sub_d(r, r, y, MPFR_RNDN);
  mpfr_mul_2si(r, r, -(e - 53 < -1074 ? -1074 : e - 53), MPFR_RNDN);
  return fabs(mpfr_get_d(r, MPFR_RNDN));
}

START_TEST(f64_within_its_bound) {
  if (left_out(_i)) return;
  enum { N = 1000 };
  static double x[N], y[N];
  call c = {(km_fn)_i, KILN_F64};
  mj_fn f = mj_compile(jit, &(mj_spec){KB_F64, KB_F64, 8, emit_call, &c});
  double worst = 0, at = 0;
  mpfr_t a, r;
  mpfr_init2(a, 53);
  mpfr_init2(r, 130);
  random_seed((uint64_t)_i);
  for (uint64_t batch = share_of(15); batch > 0; batch--) {
    for (int i = 0; i < N; i++) x[i] = f64_argument(_i, i);
    f(x, x, y, N);
    for (int i = 0; i < N; i++) {
      double e = check_f64(_i, x[i], y[i], a, r);
      if (e > worst) worst = e, at = x[i];
    }
  }
  mpfr_clear(a);
  mpfr_clear(r);
  const struct function *fn = &functions[_i];
  if (test_share() > 1) printf("# f64 %s: %.4f ulp at %a\n", mr_names[_i], worst, at);
  ck_assert_msg(worst <= fn->f64, "f64 %s: %.4f ulp at %a", mr_names[_i], worst, at);
  ck_assert_double_le(fn->f64, kl_op_ulp_bound(fn->op, KILN_F64));
}
END_TEST

// --- corners ---------------------------------------------------------------------------------------------------------

// Results that are exact, in both kinds.
static const struct corner {
  km_fn fn;
  double x, want;
} corners[] = {
    {KM_EXP, 0.0, 1},
    {KM_EXP, -0.0, 1},
    {KM_EXP, INFINITY, INFINITY},
    {KM_EXP, -INFINITY, 0},
    {KM_EXP, 1e30, INFINITY},
    {KM_EXP, -1e30, 0},
    {KM_EXP, NAN, NAN},
    {KM_EXP, 0x1p-149, 1},
    {KM_EXP2, 0.0, 1},
    {KM_EXP2, -0.0, 1},
    {KM_EXP2, 1, 2},
    {KM_EXP2, -126, 0x1p-126},
    {KM_EXP2, -149, 0x1p-149},
    {KM_EXP2, 127, 0x1p127},
    {KM_EXP2, INFINITY, INFINITY},
    {KM_EXP2, -INFINITY, 0},
    {KM_EXP2, -1e30, 0},
    {KM_EXP2, 1e30, INFINITY},
    {KM_EXP2, NAN, NAN},
    {KM_LOG, 1, 0.0},
    {KM_LOG, 0.0, -INFINITY},
    {KM_LOG, -0.0, -INFINITY},
    {KM_LOG, INFINITY, INFINITY},
    {KM_LOG, -INFINITY, NAN},
    {KM_LOG, -1, NAN},
    {KM_LOG, -0x1p-149, NAN},
    {KM_LOG, NAN, NAN},
    {KM_TANH, 0.0, 0.0},
    {KM_TANH, -0.0, -0.0},
    {KM_TANH, INFINITY, 1},
    {KM_TANH, -INFINITY, -1},
    {KM_TANH, 30, 1},
    {KM_TANH, -1e30, -1},
    {KM_TANH, NAN, NAN},
    {KM_TANH, 0x1p-149, 0x1p-149},
    {KM_TANH, -0x1p-140, -0x1p-140},
    {KM_LOGISTIC, 0.0, 0.5},
    {KM_LOGISTIC, -0.0, 0.5},
    {KM_LOGISTIC, INFINITY, 1},
    {KM_LOGISTIC, -INFINITY, 0},
    {KM_LOGISTIC, 1e30, 1},
    {KM_LOGISTIC, -1e30, 0},
    {KM_LOGISTIC, NAN, NAN},
    {KM_LOGISTIC, 0x1p-149, 0.5},
    {KM_ERF, 0.0, 0.0},
    {KM_ERF, -0.0, -0.0},
    {KM_ERF, INFINITY, 1},
    {KM_ERF, -INFINITY, -1},
    {KM_ERF, 7, 1},
    {KM_ERF, -1e30, -1},
    {KM_ERF, NAN, NAN},
    {KM_RSQRT, 1, 1},
    {KM_RSQRT, 4, 0.5},
    {KM_RSQRT, 0x1p-126, 0x1p63},
    {KM_RSQRT, 0x1p-148, 0x1p74},
    {KM_RSQRT, 0.0, INFINITY},
    {KM_RSQRT, -0.0, -INFINITY},
    {KM_RSQRT, INFINITY, 0},
    {KM_RSQRT, -INFINITY, NAN},
    {KM_RSQRT, -1, NAN},
    {KM_RSQRT, -0x1p-149, NAN},
    {KM_RSQRT, NAN, NAN},
    {KM_RSQRT, 0x1p126, 0x1p-63},
    {KM_EXPM1, -0.0, -0.0},
    {KM_EXPM1, INFINITY, INFINITY},
    {KM_EXPM1, -INFINITY, -1},
    {KM_EXPM1, -1e30, -1},
    {KM_EXPM1, 1e30, INFINITY},
    {KM_EXPM1, -0x1p-149, -0x1p-149},
    {KM_EXPM1, NAN, NAN},
    {KM_EXP10, 0.0, 1},
    {KM_EXP10, 1, 10},
    {KM_EXP10, 5, 1e5},
    {KM_EXP10, 10, 1e10},
    {KM_EXP10, INFINITY, INFINITY},
    {KM_EXP10, -INFINITY, 0},
    {KM_EXP10, NAN, NAN},
    {KM_SINH, -0.0, -0.0},
    {KM_SINH, -INFINITY, -INFINITY},
    {KM_SINH, 0x1p-149, 0x1p-149},
    {KM_SINH, NAN, NAN},
    {KM_COSH, 0.0, 1},
    {KM_COSH, -INFINITY, INFINITY},
    {KM_COSH, NAN, NAN},
    {KM_LOG1P, -0.0, -0.0},
    {KM_LOG1P, -1, -INFINITY},
    {KM_LOG1P, -2, NAN},
    {KM_LOG1P, -INFINITY, NAN},
    {KM_LOG1P, INFINITY, INFINITY},
    {KM_LOG1P, 0x1p-149, 0x1p-149},
    {KM_LOG1P, NAN, NAN},
    {KM_ASINH, -0.0, -0.0},
    {KM_ASINH, -INFINITY, -INFINITY},
    {KM_ASINH, -0x1p-149, -0x1p-149},
    {KM_ASINH, NAN, NAN},
    {KM_ACOSH, 1, 0.0},
    {KM_ACOSH, 0.5, NAN},
    {KM_ACOSH, -1e30, NAN},
    {KM_ACOSH, -INFINITY, NAN},
    {KM_ACOSH, INFINITY, INFINITY},
    {KM_ACOSH, NAN, NAN},
    {KM_ATANH, -0.0, -0.0},
    {KM_ATANH, 1, INFINITY},
    {KM_ATANH, -1, -INFINITY},
    {KM_ATANH, 1.5, NAN},
    {KM_ATANH, INFINITY, NAN},
    {KM_ATANH, -0x1p-149, -0x1p-149},
    {KM_ATANH, NAN, NAN},
    {KM_CBRT, -0.0, -0.0},
    {KM_CBRT, 27, 3},
    {KM_CBRT, -1000, -10},
    {KM_CBRT, 0x1p-147, 0x1p-49},
    {KM_CBRT, -INFINITY, -INFINITY},
    {KM_CBRT, NAN, NAN},
    {KM_SIN, 0.0, 0.0},
    {KM_SIN, -0.0, -0.0},
    {KM_SIN, -0x1p-149, -0x1p-149},
    {KM_SIN, INFINITY, NAN},
    {KM_SIN, NAN, NAN},
    {KM_COS, -0.0, 1},
    {KM_COS, -INFINITY, NAN},
    {KM_COS, NAN, NAN},
    {KM_TAN, -0.0, -0.0},
    {KM_TAN, 0x1p-149, 0x1p-149},
    {KM_TAN, INFINITY, NAN},
    {KM_TAN, NAN, NAN},
    {KM_ASIN, -0.0, -0.0},
    {KM_ASIN, 1.5, NAN},
    {KM_ASIN, 0x1p-149, 0x1p-149},
    {KM_ASIN, NAN, NAN},
    {KM_ACOS, 1, 0.0},
    {KM_ACOS, -1.5, NAN},
    {KM_ACOS, NAN, NAN},
    {KM_ATAN, -0.0, -0.0},
    {KM_ATAN, 0x1p-149, 0x1p-149},
    {KM_ATAN, NAN, NAN},
};

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void check_corner(const struct corner *c, const char *type, double y) {
  ck_assert_msg(same(c->want, y), "%s %s(%a) = %a, exactly %a", type, mr_names[c->fn], c->x, y, c->want);
}

// All of one function, in one call each.
START_TEST(corners_are_exact) {
  enum { MOST = 16 };
  const struct corner *of[MOST];
  double x[MOST], y[MOST];
  float xf[MOST], yf[MOST];
  int n = 0;
  call f32 = {(km_fn)_i, KILN_F32}, f64 = {(km_fn)_i, KILN_F64};
  for (size_t k = 0; k < KL_COUNT(corners); k++) {
    if (corners[k].fn != (km_fn)_i) continue;
    ck_assert_int_lt(n, MOST);
    x[n] = corners[k].x, xf[n] = (float)x[n], of[n++] = &corners[k];
  }
  mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 1, emit_call, &f32})(xf, xf, yf, n);
  mj_compile(jit, &(mj_spec){KB_F64, KB_F64, 1, emit_call, &f64})(x, x, y, n);
  for (int k = 0; k < n; k++) check_corner(of[k], "f32", yf[k]), check_corner(of[k], "f64", y[k]);
  mj_clear(jit);
}
END_TEST

// NaN in every shape: quiet, signalling, of either sign, with payloads in the low bits.
START_TEST(nan_stays_nan) {
  static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff,
                                  0x7f800001, 0xff800001, 0x7fa5a5a5, 0x7f800017};
  float x[8], y[8];
  for (int i = 0; i < 8; i++) x[i] = float_of(nans[i]);
  for (int s = 0; s < 2; s++) {
    call c = {(km_fn)_i, s ? KILN_F16 : KILN_F32};
    mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 8, emit_call, &c})(x, x, y, 8);
    for (int i = 0; i < 8; i++) ck_assert_msg(isnan(y[i]), "%s(NaN %#x) = %a", mr_names[_i], nans[i], y[i]);
  }
}
END_TEST

// Of each function some numbers of lanes, against one.
START_TEST(lanes_do_not_matter) {
  static const unsigned lanes[] = {1, 2, 3, 4, 8, 16, 32, 64, 128};
  enum { N = 384 };
  float x[N], y[N], z[N];
  random_seed((uint64_t)_i);
  for (int i = 0; i < N; i++) x[i] = float_of((uint32_t)random_bits());
  for (int i = 0; i < N; i += 2) x[i] = (float)((double)(int64_t)random_bits() * 0x1p-60);
  call c = {(km_fn)_i, KILN_F32};
  for (size_t l = 0; l < KL_COUNT(lanes); l++) {
    if (l && !share_has((uint64_t)_i * KL_COUNT(lanes) + l, 3)) continue;
    mj_compile(jit, &(mj_spec){KB_F32, KB_F32, lanes[l], emit_call, &c})(x, x, l ? z : y, N);
    for (int i = 0; l && i < N; i++)
      EXPECT(memcmp(&y[i], &z[i], 4) == 0 || (isnan(y[i]) && isnan(z[i])), "%s(%a): %a, with %u lanes %a", mr_names[_i],
             x[i], y[i], lanes[l], z[i]);
  }
}
END_TEST

// --- hypotenuse and remainder ----------------------------------------------------------------------------------------

static const double odd_values[] = {
    0.0,       -0.0,           1,        -1,         3,        0.5,       -2.5, 1e-30,    1e30, 0x1p-149,
    -0x1p-149, 0x1.fffffep127, 0x1p-126, 0x1.8p-127, INFINITY, -INFINITY, NAN,  16777215, 1.5,  0x1.000002p0};
enum { NODD = 20, PAIRS = 20000 };

static void pairs_f32(float *x, float *y) {
  random_seed(32);
  for (int i = 0; i < PAIRS; i++) {
    x[i] = float_of((uint32_t)random_bits());
    y[i] = float_of((uint32_t)random_bits());
    if (i % 4 == 1) y[i] = float_of((uint32_t)(random_bits() % 0x2000000)); // denormal or nearly
    if (i % 4 == 2) x[i] = y[i] * (float)(random_bits() % 1000);
    if (i % 4 == 3) x[i] = y[i] * (float)(random_bits() >> 40) * 0x1p-22f; // to four times as large
    if (i < NODD * NODD) x[i] = (float)odd_values[i / NODD], y[i] = (float)odd_values[i % NODD];
  }
}

static void pairs_f64(double *x, double *y) {
  random_seed(64);
  for (int i = 0; i < PAIRS; i++) {
    x[i] = double_of(random_bits());
    y[i] = double_of(random_bits());
    if (i % 4 == 1) y[i] = double_of(random_bits() >> 11);
    if (i % 4 == 2) x[i] = y[i] * (double)(random_bits() % 1000);
    if (i % 4 == 3) x[i] = y[i] * (double)(random_bits() >> 11) * 0x1p-51;
    if (i < NODD * NODD) x[i] = odd_values[i / NODD], y[i] = odd_values[i % NODD];
  }
  x[NODD * NODD] = 0x1.fffffffffffffp1023, y[NODD * NODD] = 0x1.8p-1073;
}

static const unsigned pair_lanes[] = {1, 2, 4, 5, 8, 16, 32};

START_TEST(fmod_is_exact) {
  static float xf[PAIRS], yf[PAIRS], zf[PAIRS];
  static double x[PAIRS], y[PAIRS], z[PAIRS];
  unsigned lanes = pair_lanes[_i];
  pairs_f32(xf, yf);
  mj_compile(jit, &(mj_spec){KB_F32, KB_F32, lanes, emit_fmod, NULL})(xf, yf, zf, PAIRS);
  for (int i = 0; i < PAIRS; i++)
    EXPECT(same(fmodf(xf[i], yf[i]), zf[i]), "f32 %a rem %a = %a, exactly %a", xf[i], yf[i], zf[i],
           fmodf(xf[i], yf[i]));
  pairs_f64(x, y);
  mj_compile(jit, &(mj_spec){KB_F64, KB_F64, lanes, emit_fmod, NULL})(x, y, z, PAIRS);
  for (int i = 0; i < PAIRS; i++)
    EXPECT(same(fmod(x[i], y[i]), z[i]), "f64 %a rem %a = %a, exactly %a", x[i], y[i], z[i], fmod(x[i], y[i]));
}
END_TEST

static double hypot_error(double x, double y, double z, long double r, int bits, int least) {
  if (isnan(r) || isinf(r) || isinf(z)) {
    EXPECT(same((double)r, z), "hypot(%a, %a) = %a, exactly %La", x, y, z, r);
    return 0;
  }
  return error_in_units(z, r, bits, least);
}

START_TEST(hypot_within_its_bound) {
  static float xf[PAIRS], yf[PAIRS], zf[PAIRS];
  static double x[PAIRS], y[PAIRS], z[PAIRS];
  double worst = 0;
  pairs_f32(xf, yf);
  mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, emit_hypot, NULL})(xf, yf, zf, PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    double r = hypot(xf[i], yf[i]);
    if (fabs(r) > 0x1.fffffep127 * (1 + 0x1p-25)) r = (double)(float)r;
    worst = fmax(worst, hypot_error(xf[i], yf[i], zf[i], r, 24, -149));
  }
  ck_assert_msg(worst <= 1.3, "f32 hypot: %.3f ulp", worst);
  worst = 0;
  pairs_f64(x, y);
  mj_compile(jit, &(mj_spec){KB_F64, KB_F64, 8, emit_hypot, NULL})(x, y, z, PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    long double r = hypotl(x[i], y[i]);
    if (r > 0x1.fffffffffffffp1023L) r = (double)r;
    worst = fmax(worst, hypot_error(x[i], y[i], z[i], r, 53, -1074));
  }
  ck_assert_msg(worst <= 1.3, "f64 hypot: %.3f ulp", worst);
}
END_TEST

static kb_reg emit_atan2(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_atan2(k, a, b);
}
static kb_reg emit_power(kb *k, const void *user, kb_reg a, kb_reg b) {
  return km_power(k, a, b);
}

static const struct of_two {
  const char *name;
  kb_reg (*emit)(kb *k, const void *user, kb_reg a, kb_reg b);
  double (*f32)(double, double);
  int (*f64)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
  kl_op op;
} of_two[] = {{"atan2", emit_atan2, atan2, mpfr_atan2, KL_OP_ATAN2}, {"pow", emit_power, pow, mpfr_pow, KL_OP_POWER}};

// Bases of all sizes, exponents that keep the result in range; half of the bases near 1.
static void powers(double *x, double *y, double range) {
  for (int i = NODD * NODD; i < PAIRS; i += 2) {
    double u = (double)(random_bits() >> 11) * 0x1p-53, v = (double)(int64_t)random_bits() * 0x1p-63;
    x[i] = i % 4 ? exp(range * (2 * u - 1)) : 1 + v * exp(-20 * u);
    if (i % 16 == 10) x[i] = (1 + v * 0.05) * (u < 0.5 ? 4.0 / 3 : 2.0 / 3); // where ln 2 and a series cancel
    y[i] = i % 8 == 0 ? (double)(int)(v * 40) : v * 1.01 * range / fmax(fabs(log(fabs(x[i]))), 1e-12);
    if (i % 16 == 6) x[i] = -x[i], y[i] = rint(y[i]);
  }
}

// The result for zeros, infinities and NaN is exact; else its error is returned.
static double check_of_two(const char *name, double x, double y, double z, double nearest, mpfr_t r, int bits,
                           int least) {
  EXPECT(isnan(nearest) == isnan(z) && (isnan(z) || !signbit(nearest) == !signbit(z)), "%s(%a, %a) = %a, exactly %a",
         name, x, y, z, nearest);
  if (isnan(nearest)) return 0;
  if (isinf(nearest) || isinf(z) || mpfr_zero_p(r)) {
    EXPECT(nearest == z, "%s(%a, %a) = %a, exactly %a", name, x, y, z, nearest);
    return 0;
  }
  long e = mpfr_get_exp(r) - bits;
  mpfr_sub_d(r, r, z, MPFR_RNDN);
  mpfr_mul_2si(r, r, -(e < least ? least : e), MPFR_RNDN);
  return fabs(mpfr_get_d(r, MPFR_RNDN));
}

START_TEST(functions_of_two_within_their_bounds) {
  static float xf[PAIRS], yf[PAIRS], zf[PAIRS];
  static double x[PAIRS], y[PAIRS], z[PAIRS];
  const struct of_two *f = &of_two[_i];
  double worst = 0, at_x = 0, at_y = 0;
  mpfr_t a, b, r;
  mpfr_init2(a, 53), mpfr_init2(b, 53), mpfr_init2(r, 130);
  pairs_f32(xf, yf);
  if (_i) {
    for (int i = 0; i < PAIRS; i++) x[i] = xf[i], y[i] = yf[i];
    powers(x, y, 88);
    for (int i = 0; i < PAIRS; i++) xf[i] = (float)x[i], yf[i] = (float)y[i];
  }
  mj_compile(jit, &(mj_spec){KB_F32, KB_F32, 16, f->emit, NULL})(xf, yf, zf, PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    mpfr_set_d(a, xf[i], MPFR_RNDN), mpfr_set_d(b, yf[i], MPFR_RNDN);
    f->f64(r, a, b, MPFR_RNDN);
    float nearest = (float)f->f32(xf[i], yf[i]);
    double e = check_of_two(f->name, xf[i], yf[i], zf[i], nearest, r, 24, -149);
    if (e > worst) worst = e, at_x = xf[i], at_y = yf[i];
  }
  ck_assert_msg(worst <= kl_op_ulp_bound(f->op, KILN_F32), "f32 %s(%a, %a): %.3f ulp", f->name, at_x, at_y, worst);
  if (test_share() > 1) printf("# f32 %s: %.4f ulp\n", f->name, worst);
  worst = 0;
  pairs_f64(x, y);
  if (_i) powers(x, y, 700);
  mj_compile(jit, &(mj_spec){KB_F64, KB_F64, 8, f->emit, NULL})(x, y, z, PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    mpfr_set_d(a, x[i], MPFR_RNDN), mpfr_set_d(b, y[i], MPFR_RNDN);
    f->f64(r, a, b, MPFR_RNDN);
    double e = check_of_two(f->name, x[i], y[i], z[i], mpfr_get_d(r, MPFR_RNDN), r, 53, -1074);
    if (e > worst) worst = e, at_x = x[i], at_y = y[i];
  }
  if (test_share() > 1) printf("# f64 %s: %.4f ulp\n", f->name, worst);
  ck_assert_msg(worst <= kl_op_ulp_bound(f->op, KILN_F64), "f64 %s(%a, %a): %.3f ulp", f->name, at_x, at_y, worst);
  mpfr_clear(a), mpfr_clear(b), mpfr_clear(r);
}
END_TEST

// --- NVPTX -----------------------------------------------------------------------------------------------------------

// Exactly specified instructions: no call, no sum or product without its rounding mode, no division or square root in
// the cheap functions, no approximation but where it changes nothing. Of machines and types one pair in four.
START_TEST(ptx_is_exact) {
  static const unsigned sms[] = {75, 80, 90, 100};
  static const kl_dtype types[] = {KILN_F32, KILN_F16, KILN_BF16, KILN_F64};
  static const char *const never[] = {"div.",  "sqrt.", "rcp.rn", "call",  ".local",
                                      "add.f", "mul.f", "sub.f",  "fma.f", "add.ftz"};
  for (size_t s = 0; s < KL_COUNT(sms); s++) {
    for (size_t t = 0; t < KL_COUNT(types); t++) {
      if (!share_has(((uint64_t)_i * KL_COUNT(sms) + s) * KL_COUNT(types) + t, 4)) continue;
      call c = {(km_fn)_i, types[t]};
      kb_kind kind = types[t] == KILN_F64 ? KB_F64 : KB_F32;
      char *ptx = mj_ptx(jit, &(mj_spec){kind, kind, 1, emit_call, &c}, sms[s]);
      for (size_t n = 0; n < KL_COUNT(never); n++) {
        if (n < 3 && _i >= KM_RSQRT) continue; // rsqrt.approx; others divide, exactly
        ck_assert_msg(!strstr(ptx, never[n]), "%s in\n%s", never[n], ptx);
      }
      bool seeded = (_i == KM_RSQRT || _i == KM_LOGISTIC || _i == KM_LOG) && types[t] != KILN_F64;
      ck_assert_msg(types[t] == KILN_BF16 || seeded || !strstr(ptx, "approx"), "approx in\n%s", ptx);
      free(ptx);
    }
  }
}
END_TEST

START_TEST(ptx_of_pairs) {
  for (unsigned sm = 75; sm <= 90; sm += 15) {
    kb_kind kind = _i % 2 ? KB_F64 : KB_F32;
    char *ptx = mj_ptx(jit, &(mj_spec){kind, kind, 1, _i / 2 ? emit_fmod : emit_hypot, NULL}, sm);
    ck_assert(!strstr(ptx, "call") && !strstr(ptx, ".local") && !strstr(ptx, "approx"));
    free(ptx);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS(
      "math", ONCE(open_jit, close_jit), {narrow_types_are_correctly_rounded, dtypes_that(is_narrow_float).n},
      {approximate_instructions_change_no_narrow_result, dtypes_that(is_narrow_float).n},
      {approximate_instructions_change_no_f32_result, 2}, {rsqrt_does_not_depend_on_its_seed},
      {f32_within_its_bound, KM_FN_COUNT}, {f64_within_its_bound, KM_FN_COUNT}, {corners_are_exact, KM_FN_COUNT},
      {nan_stays_nan, KM_FN_COUNT}, {lanes_do_not_matter, KM_FN_COUNT}, {fmod_is_exact, KL_COUNT(pair_lanes)},
      {hypot_within_its_bound}, {functions_of_two_within_their_bounds, KL_COUNT(of_two)}, {ptx_is_exact, KM_FN_COUNT},
      {ptx_of_pairs, 4});
}

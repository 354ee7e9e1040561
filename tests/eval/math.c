// The evaluator's functions: that every op has an evaluation on every type that the op table allows; functions on all
// patterns of types of 8 bits and fewer, and on samples of the wider ones (support/share.h), against MPFR; complex
// functions at infinities and NaN against the tables of C's Annex G. (Further values: data/functions.txt, which eval.c
// runs.)
#include "eval/impl.h"
#include "support/dtypes.h"
#include "support/share.h"
#include "support/suite.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

// --- every op on every type ----------------------------------------------------------------------------------------

static kl_dtype result_type(kl_op op, kl_dtype t) {
  switch (kl_op_table[op].result) {
  case KL_RESULT_PRED: return KILN_PRED;
  case KL_RESULT_PART: return kl_is_complex(t) ? kl_info(t)->part : t;
  case KL_RESULT_CPLX: return t == KILN_F32 ? KILN_C64 : t == KILN_F64 ? KILN_C128 : KILN_DTYPE_NONE;
  default: return t;
  }
}

START_TEST(every_op_on_every_type) {
  kl_op op = (kl_op)_i;
  const kl_op_info *info = &kl_op_table[op];
  if (!kl_op_is_elementwise(op) || op == KL_OP_BITCAST_CONVERT) return; // a move of bits, no function of elements
  for (int t = 0; t < KILN_DTYPE_COUNT; t++) {
    kl_ew e = {.op = op, .nin = (uint32_t)info->arity, .out = result_type(op, (kl_dtype)t)};
    if (!(kl_type_mask((kl_dtype)t) & info->types) || e.out == KILN_DTYPE_NONE) continue;
    for (uint32_t k = 0; k < e.nin; k++) e.in[k] = op == KL_OP_SELECT && k == 0 ? KILN_PRED : (kl_dtype)t;
    e.exponent_bits = e.mantissa_bits = 1;
    EXPECT(kl_ew_bind(&e), "%s on %s", info->name, kiln_dtype_name((kl_dtype)t));
    _Alignas(16) char in[3][16] = {{1}, {0}, {1}}, out[16];
    e.run(&e, 1, (const void *const[]){in[0], in[1], in[2]}, out);
  }
  for (int to = 0; op == KL_OP_CONVERT && to < KILN_DTYPE_COUNT; to++)
    for (int t = 0; kl_type_mask((kl_dtype)to) && t < KILN_DTYPE_COUNT; t++) {
      kl_ew e = {.op = op, .nin = 1, .in = {(kl_dtype)t}, .out = (kl_dtype)to};
      EXPECT(!kl_type_mask((kl_dtype)t) || kl_ew_bind(&e), "%s to %s", kiln_dtype_name((kl_dtype)t),
             kiln_dtype_name((kl_dtype)to));
    }
}
END_TEST

// --- functions of real numbers -------------------------------------------------------------------------------------

typedef int mpfr_function(mpfr_t, const mpfr_t, mpfr_rnd_t);

static int logistic(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
  mpfr_neg(r, x, rnd);
  mpfr_exp(r, r, rnd);
  mpfr_add_ui(r, r, 1, rnd);
  return mpfr_ui_div(r, 1, r, rnd);
}
static int rsqrt(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
  mpfr_rec_sqrt(r, x, rnd);
  if (mpfr_zero_p(x)) mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1); // as 1 / sqrt(x)
  return 0;
}

static const struct {
  kl_op op;
  mpfr_function *fn;
} functions[] = {
    {KL_OP_EXP, mpfr_exp},      {KL_OP_EXPM1, mpfr_expm1}, {KL_OP_LOG, mpfr_log},   {KL_OP_LOG1P, mpfr_log1p},
    {KL_OP_LOGISTIC, logistic}, {KL_OP_TANH, mpfr_tanh},   {KL_OP_ERF, mpfr_erf},   {KL_OP_SQRT, mpfr_sqrt},
    {KL_OP_RSQRT, rsqrt},       {KL_OP_CBRT, mpfr_cbrt},   {KL_OP_SIN, mpfr_sin},   {KL_OP_COS, mpfr_cos},
    {KL_OP_TAN, mpfr_tan},      {KL_OP_EXP10, mpfr_exp10}, {KL_OP_SINH, mpfr_sinh}, {KL_OP_COSH, mpfr_cosh},
    {KL_OP_ASIN, mpfr_asin},    {KL_OP_ACOS, mpfr_acos},   {KL_OP_ATAN, mpfr_atan}, {KL_OP_ASINH, mpfr_asinh},
    {KL_OP_ACOSH, mpfr_acosh},  {KL_OP_ATANH, mpfr_atanh},
};

// r rounded to odd in double, so that one more rounding sees on which side of its ties r lies.
static double odd_double(mpfr_t r) {
  double d = mpfr_get_d(r, MPFR_RNDZ);
  if (!isfinite(d) || mpfr_cmp_d(r, d) == 0) return d;
  uint64_t b = kl_ev_f64_bits(d) | 1;
  return copysign(kl_ev_f64(b), mpfr_sgn(r));
}

static bool same(kl_dtype t, uint64_t a, uint64_t b) {
  return a == b || (kl_float_is_nan(t, a) && kl_float_is_nan(t, b));
}

static void expect_narrow(mpfr_function *fn, kl_op op, kl_dtype t, mpfr_t x, mpfr_t r) {
  static uint16_t in[65536], out[65536];
  uint8_t *in8 = (uint8_t *)in, *out8 = (uint8_t *)out;
  bool byte = kl_info(t)->bytes == 1;
  uint32_t n = byte ? 1u << kl_info(t)->bits : (uint32_t)share_up_to(10000, 65536);
  for (uint32_t i = 0; i < n && byte; i++) in8[i] = (uint8_t)i;
  for (uint32_t i = 0; i < n && !byte; i++) in[i] = (uint16_t)share_pattern(i, 16);
  kl_ew e = {.op = op, .nin = 1, .in = {t}, .out = t};
  ck_assert(kl_ew_bind(&e));
  e.run(&e, n, (const void *const[]){in, NULL, NULL}, out);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t from = byte ? in8[i] : in[i];
    mpfr_set_d(x, kl_float_decode(t, from), MPFR_RNDN);
    fn(r, x, MPFR_RNDN);
    uint64_t want = kl_float_encode(t, odd_double(r)), got = byte ? out8[i] : out[i];
    EXPECT(same(t, got, want), "%s on %s %#x: %#llx, not %#llx", kl_op_name(op), kiln_dtype_name(t), from,
           (unsigned long long)got, (unsigned long long)want);
  }
}

START_TEST(narrow_types_are_correctly_rounded) {
  mpfr_t x, r;
  mpfr_init2(x, 53);
  mpfr_init2(r, 200);
  dtype_list narrow = dtypes_that(is_narrow_float);
  for (int k = 0; k < narrow.n; k++) expect_narrow(functions[_i].fn, functions[_i].op, narrow.at[k], x, r);
  mpfr_clear(x);
  mpfr_clear(r);
}
END_TEST

// Doubles at and around every tie between values of 16 bits: the fast paths round as the exact ones do, and read back
// what was there.
START_TEST(stores_round_once) {
  for (uint32_t i = 0; i < 65536; i++) {
    for (int k = 0; k < 2; k++) {
      kl_dtype t = k ? KILN_BF16 : KILN_F16;
      double v = kl_float_decode(t, i), up = kl_float_decode(t, kl_float_next(t, i, true)), tie = v / 2 + up / 2;
      double read = k ? (double)kl_ev_bf16_load((uint16_t)i) : (double)kl_ev_f16_load((uint16_t)i);
      const double near[] = {
          v, tie, nextafter(tie, INFINITY), nextafter(tie, -INFINITY), tie * (1 + 0x1p-40), tie * (1 - 0x1p-30)};
      EXPECT(read == v || (isnan(read) && isnan(v)), "%s %#x reads %a, not %a", kiln_dtype_name(t), i, read, v);
      for (size_t j = 0; j < KL_COUNT(near); j++) {
        uint64_t got = k ? kl_ev_bf16_store(near[j]) : kl_ev_f16_store(near[j]), want = kl_float_encode(t, near[j]);
        EXPECT(same(t, got, want), "%s of %a: %#llx, not %#llx", kiln_dtype_name(t), near[j], (unsigned long long)got,
               (unsigned long long)want);
      }
    }
  }
}
END_TEST

static uint64_t next_random(uint64_t *seed) {
  *seed += 0x9e3779b97f4a7c15ull;
  return kl_hash(seed, sizeof *seed, 11);
}

// Any patterns, and numbers where the functions do most.
static uint64_t sample(kl_dtype t, uint64_t *seed) {
  uint64_t bits = next_random(seed);
  double v = (double)(int64_t)next_random(seed) * 0x1p-63;
  switch (bits % 4) {
  case 0: return bits >> (64 - kl_info(t)->bits);
  case 1: return kl_float_encode(t, v);
  case 2: return kl_float_encode(t, v * 20);
  default: return kl_float_encode(t, 1 + v * v * v * v * v);
  }
}

// f32 comes from double and f64 from _Float128: right but for results within some units of those beside a tie, which
// are one in millions.
START_TEST(wide_types_are_correctly_rounded) {
  uint64_t n = share_of(1500);
  mpfr_t x, r;
  mpfr_init2(x, 53);
  mpfr_init2(r, 1200);
  for (int wide = 0; wide < 2; wide++) {
    kl_dtype t = wide ? KILN_F64 : KILN_F32;
    kl_ew e = {.op = functions[_i].op, .nin = 1, .in = {t}, .out = t};
    uint64_t seed = 1, in, out = 0;
    ck_assert(kl_ew_bind(&e));
    for (uint64_t i = 0; i < n; i++) {
      in = sample(t, &seed);
      e.run(&e, 1, (const void *const[]){&in, NULL, NULL}, &out);
      mpfr_set_d(x, kl_float_decode(t, in), MPFR_RNDN);
      functions[_i].fn(r, x, MPFR_RNDN);
      uint64_t want = wide ? kl_ev_f64_bits(mpfr_get_d(r, MPFR_RNDN)) : kl_float_encode(t, odd_double(r));
      EXPECT(same(t, out, want), "%s on %s %a: %#llx, not %#llx", kl_op_name(e.op), kiln_dtype_name(t),
             kl_float_decode(t, in), (unsigned long long)out, (unsigned long long)want);
    }
  }
  mpfr_clear(x);
  mpfr_clear(r);
}
END_TEST

// --- complex functions where C's Annex G prescribes ----------------------------------------------------------------

static const struct {
  kl_op op;
  double x, y, re, im;
} corners[] = {
    // acosh
    {KL_OP_ACOSH, 0.0, 0.0, 0.0, M_PI_2},
    {KL_OP_ACOSH, -0.0, 0.0, 0.0, M_PI_2},
    {KL_OP_ACOSH, 1, INFINITY, INFINITY, M_PI_2},
    {KL_OP_ACOSH, 0.0, NAN, NAN, M_PI_2},
    {KL_OP_ACOSH, 1, NAN, NAN, NAN},
    {KL_OP_ACOSH, -INFINITY, 1, INFINITY, M_PI},
    {KL_OP_ACOSH, INFINITY, 1, INFINITY, 0.0},
    {KL_OP_ACOSH, -INFINITY, INFINITY, INFINITY, 3 * M_PI_4},
    {KL_OP_ACOSH, INFINITY, INFINITY, INFINITY, M_PI_4},
    {KL_OP_ACOSH, INFINITY, NAN, INFINITY, NAN},
    {KL_OP_ACOSH, NAN, INFINITY, INFINITY, NAN},
    {KL_OP_ACOSH, NAN, NAN, NAN, NAN},
    // acos
    {KL_OP_ACOS, 0.0, NAN, M_PI_2, NAN},
    {KL_OP_ACOS, 1, INFINITY, M_PI_2, -INFINITY},
    {KL_OP_ACOS, -INFINITY, 1, M_PI, -INFINITY},
    {KL_OP_ACOS, INFINITY, 1, 0.0, -INFINITY},
    {KL_OP_ACOS, -INFINITY, INFINITY, 3 * M_PI_4, -INFINITY},
    {KL_OP_ACOS, INFINITY, INFINITY, M_PI_4, -INFINITY},
    {KL_OP_ACOS, NAN, INFINITY, NAN, -INFINITY},
    // asinh, asin(z) = -i asinh(iz)
    {KL_OP_ASINH, 1, INFINITY, INFINITY, M_PI_2},
    {KL_OP_ASINH, INFINITY, 1, INFINITY, 0.0},
    {KL_OP_ASINH, INFINITY, INFINITY, INFINITY, M_PI_4},
    {KL_OP_ASINH, INFINITY, NAN, INFINITY, NAN},
    {KL_OP_ASINH, NAN, 0.0, NAN, 0.0},
    {KL_OP_ASINH, NAN, 1, NAN, NAN},
    {KL_OP_ASIN, INFINITY, 1, M_PI_2, INFINITY},
    {KL_OP_ASIN, 1, INFINITY, 0.0, INFINITY},
    {KL_OP_ASIN, INFINITY, INFINITY, M_PI_4, INFINITY},
    {KL_OP_ASIN, NAN, INFINITY, NAN, INFINITY},
    // atanh, atan(z) = -i atanh(iz)
    {KL_OP_ATANH, 0.0, NAN, 0.0, NAN},
    {KL_OP_ATANH, 1, 0.0, INFINITY, 0.0},
    {KL_OP_ATANH, 1, INFINITY, 0.0, M_PI_2},
    {KL_OP_ATANH, 1, NAN, NAN, NAN},
    {KL_OP_ATANH, INFINITY, 1, 0.0, M_PI_2},
    {KL_OP_ATANH, INFINITY, INFINITY, 0.0, M_PI_2},
    {KL_OP_ATANH, INFINITY, NAN, 0.0, NAN},
    {KL_OP_ATANH, NAN, 1, NAN, NAN},
    {KL_OP_ATAN, INFINITY, 1, M_PI_2, 0.0},
    {KL_OP_ATAN, 1, INFINITY, M_PI_2, 0.0},
    {KL_OP_ATAN, 0.0, 1, 0.0, INFINITY},
    // cosh, sinh
    {KL_OP_COSH, 0.0, 0.0, 1, 0.0},
    {KL_OP_COSH, 1, INFINITY, NAN, NAN},
    {KL_OP_COSH, INFINITY, 0.0, INFINITY, 0.0},
    {KL_OP_COSH, INFINITY, 2, -INFINITY, INFINITY},
    {KL_OP_COSH, NAN, 1, NAN, NAN},
    {KL_OP_SINH, 0.0, 0.0, 0.0, 0.0},
    {KL_OP_SINH, 1, INFINITY, NAN, NAN},
    {KL_OP_SINH, INFINITY, 0.0, INFINITY, 0.0},
    {KL_OP_SINH, INFINITY, 2, -INFINITY, INFINITY},
    {KL_OP_SINH, NAN, 0.0, NAN, 0.0},
    // exp, and 10^z with the angle y ln 10: of 2, past a half turn
    {KL_OP_EXP, -INFINITY, 1, 0.0, 0.0},
    {KL_OP_EXP, INFINITY, 2, -INFINITY, INFINITY},
    {KL_OP_EXP, NAN, 0.0, NAN, 0.0},
    {KL_OP_EXP10, -INFINITY, 2, -0.0, -0.0},
    {KL_OP_EXP10, INFINITY, 2, -INFINITY, -INFINITY},
    {KL_OP_EXP10, INFINITY, 0.0, INFINITY, 0.0},
    {KL_OP_EXP10, NAN, 0.0, NAN, 0.0},
    {KL_OP_EXP10, 1, INFINITY, NAN, NAN},
    {KL_OP_EXP10, 2, 0.0, 100, 0.0},
    // tanh
    {KL_OP_TANH, 1, INFINITY, NAN, NAN},
    {KL_OP_TANH, INFINITY, 1, 1, 0.0},
    {KL_OP_TANH, NAN, 0.0, NAN, 0.0},
    // log, sqrt
    {KL_OP_LOG, -0.0, 0.0, -INFINITY, M_PI},
    {KL_OP_LOG, 1, INFINITY, INFINITY, M_PI_2},
    {KL_OP_LOG, -INFINITY, INFINITY, INFINITY, 3 * M_PI_4},
    {KL_OP_LOG, NAN, INFINITY, INFINITY, NAN},
    {KL_OP_SQRT, 1, INFINITY, INFINITY, INFINITY},
    {KL_OP_SQRT, NAN, INFINITY, INFINITY, INFINITY},
    {KL_OP_SQRT, -INFINITY, 1, 0.0, INFINITY},
    {KL_OP_SQRT, INFINITY, 1, INFINITY, 0.0},
};

static bool same_number(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

START_TEST(complex_corners) {
  // conj f(z) = f(conj z)
  for (int mirrored = 0; mirrored < (isnan(corners[_i].y) ? 1 : 2); mirrored++) {
    double flip = mirrored ? -1 : 1, x = corners[_i].x, y = flip * corners[_i].y, re = corners[_i].re,
           im = flip * corners[_i].im;
    kl_ew e = {.op = corners[_i].op, .nin = 1, .in = {KILN_C128}, .out = KILN_C128}, f = e;
    f.in[0] = f.out = KILN_C64;
    ck_assert(kl_ew_bind(&e) && kl_ew_bind(&f));
    double in[2] = {x, y}, out[2];
    float in32[2] = {(float)x, (float)y}, out32[2];
    e.run(&e, 1, (const void *const[]){in, NULL, NULL}, out);
    f.run(&f, 1, (const void *const[]){in32, NULL, NULL}, out32);
    EXPECT(same_number(out[0], re) && same_number(out[1], im), "%s of %g %g: %g %g, not %g %g", kl_op_name(e.op), x, y,
           out[0], out[1], re, im);
    EXPECT(same_number(out32[0], (float)re) && same_number(out32[1], (float)im), "c64 %s of %g %g: %g %g, not %g %g",
           kl_op_name(e.op), x, y, out32[0], out32[1], re, im);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_math", NO_FRAME, {every_op_on_every_type, KL_OP_COUNT - 1, 1},
                   {narrow_types_are_correctly_rounded, (int)KL_COUNT(functions)}, {stores_round_once},
                   {wide_types_are_correctly_rounded, (int)KL_COUNT(functions)},
                   {complex_corners, (int)KL_COUNT(corners)});
}

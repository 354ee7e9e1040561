// Approximations: the correctly rounded values of MPFR, the ISA's tables of special operands (9.7.3, 9.7.4), and
// results that are perturbed within their documented bounds.
#include "../../support/suite.h"
#include "rounding.h"

static const char *type_of(const instruction *i) {
  return strrchr(i->mnemonic, '.') + 1;
}

// The function's value to 300 bits. Undefined values are NaN, and the limits of the tables are MPFR's own.
static void function_of(const instruction *i, mpfr_t r, double a, double b) {
  mpfr_t x;
  mpfr_set_emin(-100000);
  mpfr_set_emax(100000);
  mpfr_init2(x, 53);
  mpfr_set_d(x, a, MPFR_RNDN);
  if (is(i, "ex2")) mpfr_exp2(r, x, MPFR_RNDN);
  if (is(i, "lg2")) mpfr_log2(r, x, MPFR_RNDN);
  if (is(i, "sin")) mpfr_sin(r, x, MPFR_RNDN);
  if (is(i, "cos")) mpfr_cos(r, x, MPFR_RNDN);
  if (is(i, "tanh")) mpfr_tanh(r, x, MPFR_RNDN);
  if (is(i, "sqrt")) mpfr_sqrt(r, x, MPFR_RNDN);
  if (is(i, "rcp")) mpfr_ui_div(r, 1, x, MPFR_RNDN);
  if (is(i, "div")) mpfr_div_d(r, x, b, MPFR_RNDN);
  if (is(i, "rsqrt")) {
    mpfr_rec_sqrt(r, x, MPFR_RNDN);
    if (a == 0 && signbit(a)) mpfr_set_inf(r, -1); // "-0.0: -Inf"
  }
  mpfr_clear(x);
}

// Rounded to nearest once, with precision and range of the format.
static double nearest(const number_format *f, const mpfr_t v) {
  mpfr_t r;
  mpfr_init2(r, f->fraction + 1);
  mpfr_set_emin(2 - f->bias - f->fraction);
  mpfr_set_emax(f->bias + 1);
  int t = mpfr_set(r, v, MPFR_RNDN);
  t = mpfr_check_range(r, t, MPFR_RNDN);
  mpfr_subnormalize(r, t, MPFR_RNDN);
  double d = mpfr_get_d(r, MPFR_RNDN);
  mpfr_set_emin(-100000);
  mpfr_set_emax(100000);
  mpfr_clear(r);
  return d;
}

// "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 delivers NaN, otherwise it delivers 0."
static bool reciprocal_is_0(const instruction *i, double b) {
  return has(i, ".approx") && is(i, "div") && fabs(b) > 0x1p126 && !isinf(b);
}

static double operand(const instruction *i, const number_format *f, value s) {
  double v = number_value(f, s);
  return has(i, ".ftz") ? number_flush(f, v) : v;
}

static value one(const instruction *i, const number_format *f, value sa, value sb) {
  static mpfr_t r;
  static bool made;
  if (!made) mpfr_init2(r, 300);
  made = true;
  double a = operand(i, f, sa), b = operand(i, f, sb), d;
  if (reciprocal_is_0(i, b)) {
    d = isinf(a) || isnan(a) ? (double)NAN : copysign(0, a) * copysign(1, b);
  } else {
    function_of(i, r, a, b);
    d = nearest(f, r);
  }
  return number_bits(f, has(i, ".ftz") ? number_flush(f, d) : d);
}

// Of f64 the upper 32 bits count: 20 of the fraction; "input subnormals and results are flushed to zeros of their
// sign".
static value upper_half(const instruction *i, value s) {
  static const number_format upper = {"f64", 52, 20, 1023, 0};
  mpfr_t r;
  mpfr_init2(r, 300);
  double a = number_flush(&number_f64, number_value(&number_f64, s >> 32 << 32));
  if (number_is_small(&number_f64, number_value(&number_f64, s))) a = copysign(0, a);
  if (isnan(number_value(&number_f64, s))) a = (double)NAN;
  function_of(i, r, a, 0);
  double d = nearest(&upper, r);
  mpfr_clear(r);
  return isnan(d) ? (value)0x7fffffff << 32 : number_bits(&number_f64, number_flush(&number_f64, d));
}

static void model(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const number_format *f = number_of_type(type_of(i));
  if (f == &number_f64 && has(i, ".ftz")) {
    r[0] = upper_half(i, s[0]);
  } else if (strstr(type_of(i), "x2")) {
    r[0] = one(i, f, s[0] & 0xffff, 0) | one(i, f, s[0] >> 16, 0) << 16;
  } else {
    r[0] = one(i, f, s[0], s[1]);
    if (f == &number_f64 && isnan(number_value(f, s[0]))) r[0] = s[0] | (value)1 << 51;
  }
}

static bool is_half(const instruction *i) {
  return strstr(type_of(i), "f16") != NULL;
}
static bool is_wide(const instruction *i) {
  return !is_half(i);
}
START_TEST(test_rounded) {
  ck_assert_uint_eq(topic_against_model("special", is_wide, model, 220), 22);
}
END_TEST
// 2^x where it ceases to be normal, to be more than 0, to be finite and to be a power itself: the numbers next to these
// on both sides, or the place alone in all lanes, as warps are computed at once.
static void around_exponents(uint64_t *state, const instruction *i, uint64_t number, warp *w) {
  static const float places[] = {-126, -125.5f, -127, -149, -150, -151, -160, 128, 127, 130, 0, -1, 1, -0.5f, 64};
  float place = places[number / 2 % (sizeof places / sizeof *places)];
  uint32_t bits;
  (void)state, (void)i;
  memcpy(&bits, &place, sizeof bits);
  for (int l = 0; l < KL_LANES; l++) w->source[0][l] = bits + (number % 2 ? (uint32_t)(l - KL_LANES / 2) : 0);
  w->mask = KL_ALL_LANES;
}
START_TEST(test_exponents) {
  instruction i = instruction_find(_i ? "ex2.approx.ftz.f32" : "ex2.approx.f32", 1);
  against_model_of(&i, model, 30, around_exponents);
}
END_TEST
START_TEST(test_halves) {
  ck_assert_uint_eq(topic_over_all_operands("special", is_half, model, 8), 8);
}
END_TEST

// --- perturbed -----------------------------------------------------------------------------------------------------

// Mnemonic and bound: units in the last place, part of the value, constant.
static const struct {
  const char *mnemonic;
  double ulps, relative, absolute;
} perturbed[] = {
    {"div.full.f32", 2, 0, 0},
    {"div.approx.ftz.f32", 2, 0, 0},
    {"rcp.approx.ftz.f32", 1, 0, 0},
    {"rcp.approx.f32", 1, 0, 0},
    {"sqrt.approx.f32", 0, 0x1p-23, 0},
    {"rsqrt.approx.ftz.f32", 0, 1.28e-7, 0},
    {"sin.approx.f32", 0, 0, 3.77e-5}, // 2^-14.7
    {"cos.approx.f32", 0, 0, 3.77e-5},
    {"lg2.approx.f32", 0, 0x1p-22, 0x1p-22},
    {"ex2.approx.ftz.f32", 2, 0, 0},
    {"ex2.approx.f32", 2, 0, 0},
    {"tanh.approx.f32", 0, 0x1p-11, 0},
    {"tanh.approx.f16", 0, 0, 4.94e-4}, // 2^-10.987
    {"tanh.approx.bf16", 0, 0, 0x1p-8},
    {"ex2.approx.f16", 0, 1.05e-3, 0}, // 2^-9.9
    {"ex2.approx.ftz.bf16", 0, 0x1p-7, 0},
};

static double unit(const number_format *f, double v) {
  int e = ilogb(v) < 1 - f->bias ? 1 - f->bias : ilogb(v);
  return ldexp(1, e - f->fraction);
}

// One warp of operands about one, perturbed by a seed, in a set.
static void perturb(const kl_lane_set *set, const instruction *i, uint64_t seed, warp *w) {
  memset(w, 0, sizeof *w);
  for (int l = 0; l < KL_LANES; l++) {
    for (int k = 0; k < i->sources; k++) {
      double v = l == 0 ? 0 : l == 1 ? INFINITY : l == 2 ? (double)NAN : ldexp(1 + l / 64., l % 5 - 2);
      w->source[k][l] = number_bits(number_of_type(type_of(i)), k ? v * 1.25 : v);
    }
  }
  w->mask = KL_ALL_LANES;
  w->alias = -1;
  w->perturb = seed;
  warp_run(set, i, w);
}

START_TEST(test_perturbed) {
  instruction i = instruction_find(perturbed[_i].mnemonic, strncmp(perturbed[_i].mnemonic, "div", 3) == 0 ? 2 : 1);
  const number_format *f = number_of_type(type_of(&i));
  size_t n, differ = 0;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  for (uint64_t seed = 1; seed <= 200; seed++) {
    static warp w, other;
    perturb(sets[0], &i, seed, &w);
    for (size_t s = 0; s < n; s++) {
      perturb(sets[s], &i, seed, &other);
      ck_assert_int_eq(memcmp(w.result, other.result, sizeof w.result), 0);
    }
    for (int l = 0; l < KL_LANES; l++) {
      double exact = number_value(f, one(&i, f, w.source[0][l], w.source[1][l])), v = number_value(f, w.result[0][l]);
      if (exact == 0 || isinf(exact) || isnan(exact)) {
        ck_assert(w.result[0][l] == number_bits(f, exact));
        continue;
      }
      double u = unit(f, exact);
      double most = fmax(fmax(perturbed[_i].ulps * u, perturbed[_i].relative * fabs(exact)), perturbed[_i].absolute);
      // The value itself is half a unit from what it rounds to.
      EXPECT(fabs(v - exact) <= most + u / 2, "%s: %a is too far from %a", i.mnemonic, v, exact);
      differ += v != exact;
    }
  }
  ck_assert_uint_gt(differ, 200);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: approximations", NO_FRAME, {test_rounded}, {test_exponents, 2}, {test_halves},
                   {test_perturbed, sizeof perturbed / sizeof *perturbed});
}

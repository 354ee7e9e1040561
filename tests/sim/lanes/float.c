// Floating point against its text (PTX ISA 9.7.3 to 9.7.5) and MPFR, which rounds once in every direction: f32, f64,
// f16, bf16 and their pairs. Every instruction is tried on some of the pairs of edges, on all by KILN_TEST_SHARE=4.
#include "../../support/share.h"
#include "../../support/suite.h"
#include "rounding.h"

static const char *type_of(const instruction *i) {
  return strrchr(i->mnemonic, '.') + 1;
}

// min and max as their text has them.
static double extremum(const instruction *i, double a, double b) {
  bool sign = (signbit(a) != 0) != (signbit(b) != 0), xorsign = has(i, ".xorsign");
  if (xorsign || (has(i, ".abs") && !xorsign)) a = fabs(a), b = fabs(b);
  double d;
  if (isnan(a) && isnan(b))
    d = (double)NAN;
  else if (has(i, ".NaN") && (isnan(a) || isnan(b)))
    d = (double)NAN;
  else if (isnan(a))
    d = b;
  else if (isnan(b))
    d = a;
  else if (a == b) // "+0.0 > -0.0"
    d = (signbit(a) != 0) == is(i, "min") ? a : b;
  else
    d = (a < b) == is(i, "min") ? a : b;
  return xorsign && !isnan(d) ? copysign(d, sign ? -1 : 1) : d;
}

static double operate(const instruction *i, const number_format *f, double a, double b, double c, mpfr_rnd_t to) {
  if (is(i, "add")) return rounded(f, '+', a, b, 0, to);
  if (is(i, "sub")) return rounded(f, '-', a, b, 0, to);
  if (is(i, "mul")) return rounded(f, '*', a, b, 0, to);
  if (is(i, "div")) return rounded(f, '/', a, b, 0, to);
  if (is(i, "fma") || is(i, "mad")) return rounded(f, 'f', a, b, c, to);
  if (is(i, "rcp")) return rounded(f, '/', 1, a, 0, to);
  if (is(i, "sqrt")) return rounded(f, 's', a, 0, 0, to);
  if (is(i, "abs")) return fabs(a);
  if (is(i, "neg")) return -a;
  double r = extremum(i, a, b);
  return i->sources > 2 ? extremum(i, r, c) : r;
}

// What .relu and .sat make of a result.
static double limited(const instruction *i, double v) {
  if (has(i, ".sat")) return v > 0 ? fmin(v, 1) : 0;
  if (has(i, ".relu") && v <= 0) return 0;
  return v;
}

// f64: the first operand that is a NaN, quiet; abs and neg pass it.
static value nan64(const instruction *i, const value *s) {
  for (int k = 0; k < i->sources; k++) {
    if (!isnan(number_value(&number_f64, s[k]))) continue;
    return is(i, "abs") || is(i, "neg") ? s[k] : s[k] | (value)1 << 51;
  }
  return number_f64.nan;
}

// One number of the operands, `shift` bits up.
static value one(const instruction *i, const number_format *f, const value *s, int shift) {
  double v[3] = {0};
  for (int k = 0; k < i->sources; k++) {
    const number_format *from = i->source_bits[k] == 16 && f == &number_f32 ? number_of_type(type_of(i)) : f;
    value mask = from->bits == 64 ? UINT64_MAX : ((value)1 << from->bits) - 1;
    v[k] = number_value(from, s[k] >> shift & mask);
    if (has(i, ".oob") && k < 2 && (s[k] >> shift & mask) == 0x7fff) return 0;
    if (has(i, ".ftz")) v[k] = number_flush(from, v[k]);
  }
  double r = operate(i, f, v[0], v[1], v[2], direction_of(i));
  // Subnormal before it is rounded, as GPUs have it: what is cut off keeps it below the least normal number.
  if (has(i, ".ftz") && number_is_small(f, operate(i, f, v[0], v[1], v[2], MPFR_RNDZ))) r = copysign(0, r);
  r = limited(i, r);
  if (f == &number_f64 && isnan(r)) return nan64(i, s);
  return number_bits(f, r);
}

static bool property(const instruction *i, double v, const number_format *f) {
  return has(i, ".finite")       ? !isnan(v) && !isinf(v)
         : has(i, ".infinite")   ? isinf(v)
         : has(i, ".number")     ? !isnan(v)
         : has(i, ".notanumber") ? isnan(v)
         : has(i, ".normal")     ? v == 0 || (!isnan(v) && !isinf(v) && !number_is_small(f, v)) // zeros count
                                 : v != 0 && number_is_small(f, v);
}

static void model(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = type_of(i);
  const number_format *f = number_of_type(strstr(i->mnemonic, ".f32.") ? "f32" : type);
  if (is(i, "testp")) {
    r[0] = property(i, number_value(f, s[0]), f);
  } else if (is(i, "copysign")) {
    value sign = (value)1 << (f->bits - 1);
    r[0] = (s[0] & sign) | (s[1] & (sign - 1));
  } else if (strstr(type, "x2")) {
    r[0] = one(i, f, s, 0) | one(i, f, s, f->bits) << f->bits;
  } else {
    r[0] = one(i, f, s, 0);
  }
}

enum { BATCHES = 220 };

static bool directed(const instruction *i) {
  return direction_of(i) != MPFR_RNDN;
}
static bool nearest(const instruction *i) {
  return !directed(i);
}

START_TEST(test_float) {
  ck_assert_uint_gt(topic_against_model("float", _i ? directed : nearest, model, BATCHES), 60);
}
END_TEST
START_TEST(test_half) {
  ck_assert_uint_gt(topic_against_model("half", NULL, model, BATCHES), 60);
}
END_TEST

// Products of bf16 whose lanes all have about one exponent, and summands to which they matter, or that all are zeros:
// executors may compute such warps in another way than those that have everything.
static uint32_t bf16_near(uint64_t *state, int exponent, int by) {
  uint64_t r = random_next(state);
  exponent += (int)(r >> 8 & 0xffff) % (2 * by + 1) - by;
  exponent = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
  return (uint32_t)(r & 0x7f) | (uint32_t)exponent << 7 | (uint32_t)(r >> 63) << 15;
}
enum { SIZES = 300 };
static void of_one_size(uint64_t *state, const instruction *i, uint64_t number, warp *w) {
  int batch = (int)(number * share_step(3 * SIZES) % (3 * SIZES));
  int product = batch / 3 - 40, sum = product + 127; // exponents of the product, and of both in all
  int summand = batch % 3   ? product
                : batch % 2 ? 0
                            : 252,
      least = sum > 254 ? sum - 254 : 0, most = sum < 254 ? sum : 254;
  for (int l = 0; l < KL_LANES; l++)
    for (int half = 0; half < i->source_bits[0]; half += 16) {
      int a = least + (int)(random_next(state) % (uint64_t)(most - least + 1)), b = sum - a;
      uint32_t v[3] = {bf16_near(state, a, 0), bf16_near(state, b, 0),
                       bf16_near(state, summand, batch % 3 == 1 ? 12 : 2)};
      if (random_next(state) % 64 == 0) v[random_next(state) % 3] &= 0x8000;
      if (number % 4 == 3) v[2] &= 0x8000;
      for (int k = 0; k < 3; k++) w->source[k][l] = half ? (w->source[k][l] & 0xffff) | (value)v[k] << 16 : (value)v[k];
    }
  w->mask = KL_ALL_LANES;
}
START_TEST(test_half_of_one_size) {
  static const char *const mnemonics[] = {"fma.rn.bf16", "fma.rn.bf16x2", "fma.rn.relu.bf16x2"};
  instruction i = instruction_find(mnemonics[_i], 3);
  against_model_of(&i, model, SIZES, of_one_size);
}
END_TEST

// Products of two significands of 8 bits, any two of them, from 2^-136 to 2^-122: what lies below the least bf16 is cut
// off. At a share of 12 they are all.
enum { EXPONENTS = 14, PRODUCTS = EXPONENTS << 14, PRODUCT_BATCHES = 300, EXPONENT_OF_A = 60, LEAST_OF_B = 58 };
static void of_small_products(uint64_t *state, const instruction *i, uint64_t number, warp *w) {
  (void)state, (void)i;
  for (uint64_t l = 0; l < KL_LANES; l++)
    for (uint64_t half = 0; half < 2; half++) {
      uint64_t p = (number * 2 * KL_LANES + 2 * l + half) * share_step(PRODUCTS) % PRODUCTS;
      value a = (p & 0x7f) | EXPONENT_OF_A << 7, b = (p >> 7 & 0x7f) | (LEAST_OF_B + (p >> 14)) << 7;
      w->source[0][l] = half ? w->source[0][l] | a << 16 : a;
      w->source[1][l] = half ? w->source[1][l] | b << 16 : b;
    }
  for (int l = 0; l < KL_LANES; l++) w->source[2][l] = 0x80008000;
  w->mask = KL_ALL_LANES;
}
START_TEST(test_small_products) {
  instruction i = instruction_find("fma.rn.bf16x2", 3);
  against_model_of(&i, model, PRODUCT_BATCHES, of_small_products);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: floating point", NO_FRAME, {test_float, 2}, {test_half}, {test_half_of_one_size, 3},
                   {test_small_products});
}

// Numbers as text, both ways. The C library under its own rounding modes is the judge.
#include "base/base.h"
#include "support/decimal.h"
#include "support/random.h"
#include "support/suite.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
  double v;
  const char *text;
} double_texts[] = {
    {0.0, "0"},
    {-0.0, "-0.0"},
    {0.5, "0.5"},
    {1, "1"},
    {-3, "-3"},
    {1e-5, "1e-05"},
    {-1e30, "-1e+30"},
    {0.0001, "0.0001"},
    {0.00012345, "0.00012345"},
    {100000, "100000"},
    {999999, "999999"},
    {1e6, "1000000"},
    {123456789012345, "123456789012345"},
    {1e14, "100000000000000"},
    {1e15, "1e+15"},
    {1e100, "1e+100"},
    {1234567890123456, "1234567890123456"},
    {0x1p-44, "5.684341886080802e-14"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {0.1, "0.1"},
    {0.30000000000000004, "0.30000000000000004"},
    {1.0 / 3, "0.3333333333333333"},
    {INFINITY, "inf"},
    {-INFINITY, "-inf"},
    {NAN, "nan"},
    {123.456, "123.456"},
};

static const struct {
  float v;
  const char *text;
} float_texts[] = {
    {0.1f, "0.1"},
    {1e6f, "1e+06"},
    {999999, "999999"},
    {16777216, "16777216"},
    {1.0f / 3, "0.33333334"},
    {1e-45f, "1e-45"},
    {3.4028235e38f, "3.4028235e+38"},
    {1.17549435e-38f, "1.1754944e-38"},
    {-0.0f, "-0.0"},
    {INFINITY, "inf"},
    {-INFINITY, "-inf"},
    {NAN, "nan"},
    {-1234.5f, "-1234.5"},
};

START_TEST(number_texts) {
  char buf[32];
  for (size_t i = 0; i < KL_COUNT(double_texts); i++) {
    ck_assert_uint_eq(kl_text_from_double(buf, double_texts[i].v), strlen(double_texts[i].text));
    ck_assert_str_eq(buf, double_texts[i].text);
  }
  for (size_t i = 0; i < KL_COUNT(float_texts); i++) {
    ck_assert_uint_eq(kl_text_from_float(buf, float_texts[i].v), strlen(float_texts[i].text));
    ck_assert_str_eq(buf, float_texts[i].text);
  }
}
END_TEST

// The C library is the judge: text reads back as v, and neither decimal of one digit less beside v does.
static void check_shortest(double v, bool is_float) {
  char buf[32], less[64];
  if (is_float)
    kl_text_from_float(buf, (float)v);
  else
    kl_text_from_double(buf, v);
  EXPECT((is_float ? (double)strtof(buf, NULL) : strtod(buf, NULL)) == v, "%a gave %s", v, buf);
  int n = significant_digits(buf);
  static const int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD};
  for (size_t i = 0; n > 1 && i < KL_COUNT(directions); i++) {
    fesetround(directions[i]);
    snprintf(less, sizeof less, "%.*e", n - 2, v);
    fesetround(FE_TONEAREST);
    double w = is_float ? (double)strtof(less, NULL) : strtod(less, NULL);
    EXPECT(w != v, "%a gave %s, but %s would do", v, buf, less);
  }
}

START_TEST(shortest_round_trip) {
  for (int i = 0; i < 20000; i++) {
    uint64_t u = random_bits();
    double v;
    float f;
    memcpy(&v, &u, 8);
    memcpy(&f, &u, 4);
    if (isfinite(v)) check_shortest(v, false);
    if (isfinite(f)) check_shortest((double)f, true);
    check_shortest((double)(int64_t)(u >> 30) / 1000.0, false);
    check_shortest((double)((float)(int32_t)(u >> 45) / 100.0f), true);
  }
  // Below a power of two the values lie twice as close as above it.
  for (int e = -1074; e < 1024; e++) check_shortest(ldexp(1, e), false);
  for (int e = -149; e < 128; e++) check_shortest(ldexp(1, e), true);
}
END_TEST

static const struct {
  const char *text;
  double near, odd;
} decimals[] = {
    {"1", 1, 1},
    {"+1.50", 1.5, 1.5},
    {".5", .5, .5},
    {"5.", 5, 5},
    {"-0", -0.0, -0.0},
    {"1e2", 100, 100},
    {"0.1", 0.1, 0x1.9999999999999p-4},
    {"0.3", 0.3, 0x1.3333333333333p-2},
    {"9007199254740993", 9007199254740992, 0x1.0000000000001p53},
    {"-9007199254740993", -0x1p53, -0x1.0000000000001p53},
    {"9007199254740993.000000000000000000000000000000000001", 0x1.0000000000001p53, 0x1.0000000000001p53},
    {"1e400", INFINITY, 0x1.fffffffffffffp1023},
    {"1e-400", 0, 0x1p-1074},
    {"-1e-400", -0.0, -0x1p-1074},
    {"2.4703282292062328e-324", 0x1p-1074, 0x1p-1074},
    {"1e22", 1e22, 1e22},
    {"1e23", 1e23, 0x1.52d02c7e14af7p76},
    {"0x1.8p1", 3, 3},
    {"0X.8P+0", .5, .5},
    {"0x1p-1074", 0x1p-1074, 0x1p-1074},
    {"0x1p-1075", 0, 0x1p-1074},
    {"0x1.00000000000008p0", 1, 0x1.0000000000001p0},
    {"0x1.00000000000008000000000000001p0", 0x1.0000000000001p0, 0x1.0000000000001p0},
    {"0x123456789abcdef01", 0x1.23456789abcdfp64, 0x1.23456789abcdfp64},
    {"inf", INFINITY, INFINITY},
    {"-Infinity", -INFINITY, -INFINITY},
    {"1e99999999999999999999", INFINITY, 0x1.fffffffffffffp1023},
    {"1e-99999999999999999999", 0, 0x1p-1074},
    {"0e99999999999999999999", 0, 0},
};

static const char *const not_numbers[] = {"",   "-",    "+",     ".",    "e5",    "1e",    "1e+",  "1x",
                                          "0x", "0xp1", "0x.p1", "1..2", "1.2.3", "--1",   "nanx", " 1",
                                          "1 ", "1,5",  "1f",    "in",   "infin", "1e5.0", "1p3",  "0x1g"};

START_TEST(text_to_double) {
  double v;
  for (size_t i = 0; i < KL_COUNT(decimals); i++) {
    kl_str s = kl_str_of(decimals[i].text);
    EXPECT(kl_double_from_text(s, &v), "%s", s.p);
    EXPECT(v == decimals[i].near && signbit(v) == signbit(decimals[i].near), "%s: %a", s.p, v);
    ck_assert(kl_double_from_text_odd(s, &v));
    EXPECT(v == decimals[i].odd && signbit(v) == signbit(decimals[i].odd), "%s: odd %a", s.p, v);
  }
  for (size_t i = 0; i < KL_COUNT(not_numbers); i++)
    EXPECT(!kl_double_from_text(kl_str_of(not_numbers[i]), &v), "%s", not_numbers[i]);
  ck_assert(kl_double_from_text(KL_STR("nan"), &v) && isnan(v));
  ck_assert(!kl_double_from_text((kl_str){"1\0", 2}, &v));
  // More digits than are kept: only whether the rest is zero counts.
  char *z = malloc(6000);
  memset(z, '0', 6000);
  memcpy(z, "9007199254740993.", 17);
  ck_assert(kl_double_from_text((kl_str){z, 5000}, &v) && v == 0x1p53);
  z[4999] = '1';
  ck_assert(kl_double_from_text((kl_str){z, 5000}, &v) && v == 0x1.0000000000001p53);
  memset(z, '0', 6000);
  memcpy(z, "0.", 2);
  memcpy(z + 5000, "125e4999", 8);
  ck_assert(kl_double_from_text((kl_str){z, 5008}, &v) && v == 1.25);
  free(z);
}
END_TEST

// Rounding the odd double to float equals rounding the text to float.
START_TEST(odd_rounds_once) {
  char z[128];
  for (int i = 0; i < 20000; i++) {
    uint64_t u = random_bits();
    float f, g;
    memcpy(&f, &u, 4);
    if (!isfinite(f) || f == 0 || f >= 0x1.fffffep127f || f <= -0x1.fffffep127f) continue;
    g = nextafterf(f, INFINITY);
    // A tie between two floats, or a hair beside it: where rounding by way of a nearest double goes wrong.
    int n = snprintf(z, sizeof z, "%.110e", ((double)f + (double)g) / 2);
    if (i % 3) z[strcspn(z, "e") - 1] = '1';
    double v;
    EXPECT(kl_double_from_text_odd((kl_str){z, (size_t)n}, &v) && (float)v == strtof(z, NULL), "%s", z);
    EXPECT(kl_double_from_text((kl_str){z, (size_t)n}, &v) && v == strtod(z, NULL), "%s", z);
  }
}
END_TEST

START_TEST(text_to_integer) {
  static const struct {
    const char *text;
    bool i_ok, u_ok;
    int64_t i;
    uint64_t u;
  } rows[] = {{"0", 1, 1, 0, 0},
              {"-0", 1, 1, 0, 0},
              {"+7", 1, 1, 7, 7},
              {"-1", 1, 0, -1, 0},
              {"007", 1, 1, 7, 7},
              {"9223372036854775807", 1, 1, INT64_MAX, INT64_MAX},
              {"9223372036854775808", 0, 1, 0, 1ull << 63},
              {"-9223372036854775808", 1, 0, INT64_MIN, 0},
              {"-9223372036854775809", 0, 0, 0, 0},
              {"18446744073709551615", 0, 1, 0, UINT64_MAX},
              {"18446744073709551616", 0, 0, 0, 0},
              {"99999999999999999999999", 0, 0, 0, 0},
              {"", 0, 0, 0, 0},
              {"-", 0, 0, 0, 0},
              {"1.0", 0, 0, 0, 0},
              {" 1", 0, 0, 0, 0},
              {"1 ", 0, 0, 0, 0},
              {"0x1", 0, 0, 0, 0},
              {"1e3", 0, 0, 0, 0},
              {"+-1", 0, 0, 0, 0},
              {"\xb2", 0, 0, 0, 0}};
  for (size_t k = 0; k < KL_COUNT(rows); k++) {
    int64_t i = 0;
    uint64_t u = 0;
    kl_str s = kl_str_of(rows[k].text);
    EXPECT(kl_i64_from_text(s, &i) == rows[k].i_ok && i == rows[k].i, "%s", s.p);
    EXPECT(kl_u64_from_text(s, &u) == rows[k].u_ok && u == rows[k].u, "%s", s.p);
  }
}
END_TEST

// Takes on a locale with a decimal comma, building one in a scratch folder where none is installed.
static bool use_comma_locale(void) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "it_IT.UTF-8", "es_ES.UTF-8", "ru_RU.UTF-8"};
  for (size_t i = 0; i < KL_COUNT(names); i++)
    if (setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',') return true;
  char dir[] = "/tmp/kiln-locale-XXXXXX", command[200];
  if (!mkdtemp(dir)) return false;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", dir);
  bool done = system(command) == 0 && setenv("LOCPATH", dir, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8") &&
              localeconv()->decimal_point[0] == ',';
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "rm -r %s", dir);
  if (system(command) != 0) printf("# %s stays behind\n", dir);
  return done;
}

START_TEST(locale_and_rounding_mode_do_not_matter) {
  char buf[32];
  double v;
  bool comma = use_comma_locale();
  if (!comma) printf("# no locale with a decimal comma to be had: only rounding modes are tested\n");
  static const int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
  for (size_t k = 0; k < KL_COUNT(directions); k++) {
    fesetround(directions[k]);
    kl_text_from_double(buf, 1234.56789012345678);
    bool printed = strcmp(buf, "1234.567890123457") == 0;
    bool parsed = kl_double_from_text(KL_STR("0.3333333333333333"), &v) && v == 0x1.5555555555555p-2;
    bool small =
        kl_double_from_text(KL_STR("0.1"), &v) && v == 0.1 && kl_double_from_text(KL_STR("0.3"), &v) && v == 0.3;
    bool big = kl_double_from_text(KL_STR("1.7976931348623157e308"), &v) && v == 0x1.fffffffffffffp1023;
    bool comma_read = kl_double_from_text(KL_STR("0,5"), &v);
    int direction = fegetround();
    fesetround(FE_TONEAREST);
    EXPECT(printed, "%s", buf);
    ck_assert(parsed && small && big && !comma_read);
    ck_assert_int_eq(direction, directions[k]);
  }
  setlocale(LC_ALL, "C");
}
END_TEST

int main(void) {
  return RUN_TESTS("numtext", NO_FRAME, {number_texts}, {shortest_round_trip}, {text_to_double}, {odd_rounds_once},
                   {text_to_integer}, {locale_and_rounding_mode_do_not_matter});
}

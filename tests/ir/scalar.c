// Scalars as literal text, both ways.
#include "ir/dtype.h"
#include "samples.h"
#include "support/decimal.h"
#include "support/suite.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>

static void check_round_trip(kl_dtype t, const uint64_t bits[2]) {
  char buf[96];
  uint64_t back[2];
  const char *why = "";
  size_t n = kl_scalar_text(buf, t, bits);
  EXPECT(n == strlen(buf) && n < 96, "%zu bytes: %s", n, buf);
  bool ok = kl_scalar_parse((kl_str){buf, n}, t, back, &why);
  EXPECT(ok && back[0] == bits[0] && back[1] == bits[1], "%s %#lx: %s (%s)", kl_info(t)->name, (unsigned long)bits[0],
         buf, why);
}

START_TEST(every_scalar_round_trips) {
  for (kl_dtype t = KILN_PRED; t <= KILN_F64; t++) {
    bool all = kl_info(t)->bits <= 16;
    for (uint32_t i = 0; i < (all ? patterns_of(t) : 20000); i++)
      check_round_trip(t, (uint64_t[2]){all ? i : sample_bits(t, i), 0});
  }
  for (kl_dtype t = KILN_C64; t <= KILN_C128; t++)
    for (uint32_t i = 0; i < 2000; i++) {
      kl_dtype part = kl_info(t)->part;
      check_round_trip(t, (uint64_t[2]){sample_bits(part, i), sample_bits(part, i * 7 % 2000)});
    }
}
END_TEST

// No decimal with one digit less, next below or next above, names the same value. (Whole numbers below a million are
// written out, and powers of two keep four digits.)
START_TEST(text_is_shortest) {
  char buf[96], less[64];
  for (kl_dtype t = KILN_F4E2M1FN; t <= KILN_F32; t++)
    for (uint32_t i = 0; i < 3000 && t != KILN_F8E8M0FNU; i++) {
      uint64_t bits[2] = {sample_bits(t, i), 0}, back[2];
      double v = kl_float_decode(t, bits[0]);
      const char *why;
      kl_scalar_text(buf, t, bits);
      int n = significant_digits(buf);
      if (!isfinite(v) || n < 2 || (fabs(v) < 1e6 && v == trunc(v))) continue;
      static const int directions[] = {FE_DOWNWARD, FE_UPWARD};
      for (int d = 0; d < 2; d++) {
        fesetround(directions[d]);
        snprintf(less, sizeof less, "%.*e", n - 2, v);
        fesetround(FE_TONEAREST);
        bool same = kl_scalar_parse(kl_str_of(less), t, back, &why) && back[0] == bits[0];
        EXPECT(!same, "%s: %s, but %s would do", kl_info(t)->name, buf, less);
      }
    }
}
END_TEST

START_TEST(scalar_texts) {
  static const struct {
    kl_dtype t;
    uint64_t bits[2];
    const char *text;
  } rows[] = {
      {KILN_PRED, {1}, "true"},
      {KILN_PRED, {0}, "false"},
      {KILN_S1, {0}, "0"},
      {KILN_S1, {1}, "-1"},
      {KILN_U1, {1}, "1"},
      {KILN_S2, {2}, "-2"},
      {KILN_U2, {3}, "3"},
      {KILN_S4, {8}, "-8"},
      {KILN_S8, {0x80}, "-128"},
      {KILN_U8, {0xff}, "255"},
      {KILN_S64, {1ull << 63}, "-9223372036854775808"},
      {KILN_U64, {UINT64_MAX}, "18446744073709551615"},
      {KILN_F32, {0x3f000000}, "0.5"},
      {KILN_F32, {0x3727c5ac}, "1e-05"},
      {KILN_F32, {0x7fc00000}, "nan"},
      {KILN_F32, {0xffc00000}, "-nan"},
      {KILN_F32, {0x7f800001}, "nan(0x1)"},
      {KILN_F32, {0xffffffff}, "-nan(0x7fffff)"},
      {KILN_F32, {0xff800000}, "-inf"},
      {KILN_F32, {0x80000000}, "-0.0"},
      {KILN_F64, {0x8000000000000000}, "-0.0"},
      {KILN_BF16, {0x8000}, "-0.0"},
      {KILN_F16, {0x8000}, "-0.0"},
      {KILN_F8E3M4, {0x80}, "-0.0"},
      {KILN_F8E4M3, {0x80}, "-0.0"},
      {KILN_F8E4M3FN, {0x80}, "-0.0"},
      {KILN_F8E5M2, {0x80}, "-0.0"},
      {KILN_F32, {0}, "0"},
      {KILN_F64, {0xfff8000000000001}, "-nan(0x8000000000001)"},
      {KILN_F64, {0x3fb999999999999a}, "0.1"},
      {KILN_BF16, {0x3dcd}, "0.1"},
      {KILN_BF16, {0x447a}, "1000"},
      {KILN_BF16, {0x7f7f}, "3.39e+38"},
      {KILN_BF16, {1}, "9e-41"},
      {KILN_F16, {0x7bff}, "65504"},
      {KILN_F16, {1}, "6e-08"},
      {KILN_F16, {0x3555}, "0.3333"},
      {KILN_F16, {0xfe01}, "-nan(0x201)"},
      {KILN_F8E4M3FN, {0x7f}, "nan"},
      {KILN_F8E4M3FN, {0xff}, "-nan"},
      {KILN_F8E4M3FN, {0x7e}, "448"},
      {KILN_F8E4M3FN, {1}, "0.002"},
      {KILN_F8E4M3FNUZ, {0x80}, "nan"},
      {KILN_F8E5M2, {0x7d}, "nan(0x1)"},
      {KILN_F8E5M2, {0xfc}, "-inf"},
      {KILN_F8E8M0FNU, {0xff}, "nan"},
      {KILN_F8E8M0FNU, {0x7d}, "0.25"},
      {KILN_F8E8M0FNU, {0}, "5.877e-39"},
      {KILN_F8E8M0FNU, {0x7f + 10}, "1024"},
      {KILN_F4E2M1FN, {0xf}, "-6"},
      {KILN_F4E2M1FN, {1}, "0.5"},
      {KILN_F4E2M1FN, {8}, "-0.0"},
      {KILN_C64, {0x3f800000, 0xc0000000}, "(1, -2)"},
      {KILN_C64, {0x80000000, 0x80000000}, "(-0.0, -0.0)"},
      {KILN_C128, {0x8000000000000000, 0}, "(-0.0, 0)"},
      {KILN_C128, {0, 0xfff0000000000000}, "(0, -inf)"},
      {KILN_C64, {0x7f800001, 0x7fc00000}, "(nan(0x1), nan)"},
  };
  char buf[96];
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    ck_assert_uint_eq(kl_scalar_text(buf, rows[i].t, rows[i].bits), strlen(rows[i].text));
    ck_assert_str_eq(buf, rows[i].text);
    check_round_trip(rows[i].t, rows[i].bits);
  }
}
END_TEST

START_TEST(scalar_parsing) {
  static const struct {
    kl_dtype t;
    const char *text;
    uint64_t bits[2];
  } rows[] = {
      {KILN_PRED, "1", {1}},
      {KILN_PRED, "false", {0}},
      {KILN_PRED, "2", {1}},
      {KILN_PRED, "-10", {1}},
      {KILN_PRED, "+00", {0}},
      {KILN_U64, "-1", {UINT64_MAX}},
      {KILN_U64, "-0", {0}},
      {KILN_S8, " -5 ", {0xfb}},
      {KILN_U8, "-0", {0}},
      {KILN_S8, "+007", {7}},
      {KILN_F32, "1", {0x3f800000}},
      {KILN_F32, "16777217", {0x4b800000}},
      {KILN_F32, "16777217.000000000000000001", {0x4b800001}},
      {KILN_F32, "0x1.8p1", {0x40400000}},
      {KILN_F32, "nan(0x7f)", {0x7f80007f}},
      {KILN_F32, "-NaN", {0xffc00000}},
      {KILN_F32, "infinity", {0x7f800000}},
      {KILN_F32, "1e-60", {0}},
      {KILN_F32, "-1e-60", {0x80000000}},
      {KILN_F32, "3.4028235677973366e38", {0x7f800000 - 1}},
      {KILN_F32, "1e-45", {1}},
      {KILN_F64, "2.5e-324", {1}},
      {KILN_BF16, "1.00390625", {0x3f80}},
      {KILN_BF16, "1.00390625000000000000000000000000001", {0x3f81}},
      {KILN_F16, "65519.99999999999999999999", {0x7bff}},
      {KILN_F8E4M3FN, "464", {0x7e}},
      {KILN_F8E4M3FN, "-inf", {0xff}},
      {KILN_F8E4M3FN, "nan(0x7)", {0x7f}},
      {KILN_F8E5M2FNUZ, "-nan", {0x80}},
      {KILN_F8E5M2FNUZ, "-0", {0}},
      {KILN_F8E5M2FNUZ, "inf", {0x80}},
      {KILN_F4E2M1FN, "6.9999", {7}},
      {KILN_F4E2M1FN, "inf", {7}},
      {KILN_F4E2M1FN, "-inf", {0xf}},
      {KILN_F8E8M0FNU, "1e-38", {1}},
      {KILN_F8E8M0FNU, "3", {0x81}},
      {KILN_F8E8M0FNU, "2.99", {0x80}},
      {KILN_F8E8M0FNU, "inf", {0xff}},
      {KILN_C64, "( 1 ,\t-2 )", {0x3f800000, 0xc0000000}},
      {KILN_C64, "3", {0x40400000, 0}},
      {KILN_C128, "(nan, 1)", {0x7ff8000000000000, 0x3ff0000000000000}},
  };
  static const struct {
    kl_dtype t;
    const char *text, *why;
  } refused[] = {
      {KILN_PRED, "0.5", "expected true, false or an integer"},
      {KILN_PRED, "TRUE", "expected true, false or an integer"},
      {KILN_PRED, "", "expected true, false or an integer"},
      {KILN_U64, "-9223372036854775809", "out of range for u64 (0 to 18446744073709551615)"},
      {KILN_S8, "128", "out of range for s8 (-128 to 127)"},
      {KILN_S8, "-129", "out of range for s8 (-128 to 127)"},
      {KILN_U8, "-1", "out of range for u8 (0 to 255)"},
      {KILN_U8, "256", "out of range for u8 (0 to 255)"},
      {KILN_S1, "1", "out of range for s1 (-1 to 0)"},
      {KILN_S1, "-2", "out of range for s1 (-1 to 0)"},
      {KILN_U1, "-1", "out of range for u1 (0 to 1)"},
      {KILN_U1, "2", "out of range for u1 (0 to 1)"},
      {KILN_S2, "2", "out of range for s2 (-2 to 1)"},
      {KILN_U4, "16", "out of range for u4 (0 to 15)"},
      {KILN_S64, "9223372036854775808", "out of range for s64 (-9223372036854775808 to 9223372036854775807)"},
      {KILN_U64, "18446744073709551616", "out of range for u64 (0 to 18446744073709551615)"},
      {KILN_S32, "1.0", "expected an integer"},
      {KILN_S32, "", "expected an integer"},
      {KILN_S32, "1 2", "expected an integer"},
      {KILN_S32, "true", "expected an integer"},
      {KILN_F32, "", "expected a number"},
      {KILN_F32, "-", "expected a number"},
      {KILN_F32, "one", "expected a number"},
      {KILN_F32, "i", "expected a number"},
      {KILN_F32, "(1, 2)", "expected a number"},
      {KILN_F32, "1e39", "out of range for f32 (about -3.4e38 to 3.4e38)"},
      {KILN_F32, "nan()", "expected nan or nan(0x...)"},
      {KILN_F32, "3.4028235677973367e38", "out of range for f32 (about -3.4e38 to 3.4e38)"},
      {KILN_F32, "nan(1)", "expected nan or nan(0x...)"},
      {KILN_F32, "nan(0x1", "expected nan or nan(0x...)"},
      {KILN_F32, "nan(0x10000000000000001)", "expected nan or nan(0x...)"},
      {KILN_F32, "nanx", "expected nan or nan(0x...)"},
      {KILN_F32, "nan(0x0)", "no NaN of this type has this payload"},
      {KILN_F32, "nan(0x800000)", "no NaN of this type has this payload"},
      {KILN_F8E4M3FN, "nan(0x1)", "no NaN of this type has this payload"},
      {KILN_F64, "1e309", "out of range for f64 (about -1.8e308 to 1.8e308)"},
      {KILN_F16, "65520", "out of range for f16 (-65504 to 65504)"},
      {KILN_F8E4M3FN, "464.00000000000000000001", "out of range for f8e4m3fn (-448 to 448)"},
      {KILN_F8E4M3FNUZ, "248", "out of range for f8e4m3fnuz (-240 to 240)"},
      {KILN_F4E2M1FN, "7", "out of range for f4e2m1fn (-6 to 6)"},
      {KILN_F4E2M1FN, "nan", "f4e2m1fn has no NaN"},
      {KILN_F8E8M0FNU, "0", "f8e8m0fnu has positive values only"},
      {KILN_F8E8M0FNU, "-1", "f8e8m0fnu has positive values only"},
      {KILN_F8E8M0FNU, "1e-300", "out of range for f8e8m0fnu (powers of two from 2^-127 to 2^127)"},
      {KILN_C64, "(1, 2", "expected (real, imaginary)"},
      {KILN_C64, "(1)", "expected (real, imaginary)"},
      {KILN_C64, "(,)", "expected a number"},
      {KILN_C64, "(1, 2, 3)", "expected a number"},
      {KILN_C64, "", "expected a number"},
      {KILN_C64, "(", "expected (real, imaginary)"},
      {KILN_C64, "(1e40, 0)", "out of range for f32 (about -3.4e38 to 3.4e38)"},
      {KILN_TUPLE, "1", "no scalar of this type can be written"},
  };
  uint64_t bits[2];
  const char *why;
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    why = "";
    bool ok = kl_scalar_parse(kl_str_of(rows[i].text), rows[i].t, bits, &why);
    EXPECT(ok && bits[0] == rows[i].bits[0] && bits[1] == rows[i].bits[1], "%s %s: %#lx %#lx %s",
           kl_info(rows[i].t)->name, rows[i].text, (unsigned long)bits[0], (unsigned long)bits[1], why);
  }
  for (size_t i = 0; i < KL_COUNT(refused); i++) {
    why = "accepted";
    bool ok = kl_scalar_parse(kl_str_of(refused[i].text), refused[i].t, bits, &why);
    EXPECT(!ok && strcmp(why, refused[i].why) == 0, "%s %s: %s", kl_info(refused[i].t)->name, refused[i].text, why);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("scalar", NO_FRAME, {every_scalar_round_trips}, {text_is_shortest}, {scalar_texts},
                   {scalar_parsing});
}

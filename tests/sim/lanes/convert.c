// Conversions against their text (PTX ISA 9.7.9.21) and MPFR: between integers in unbounded ones, everything else
// rounded once. Operands of 8 bits are tried all, one in eight of those of 16: all by KILN_TEST_SHARE=8.
#include "../../support/suite.h"
#include "rounding.h"

// --- types ---------------------------------------------------------------------------------------------------------

// The last two modifiers: to and from.
static const char *from_of(const instruction *i) {
  return strrchr(i->mnemonic, '.') + 1;
}
static const char *to_of(const instruction *i) {
  static char text[16];
  const char *end = from_of(i) - 1, *from = end;
  while (from[-1] != '.') from--;
  memcpy(text, from, (size_t)(end - from));
  text[end - from] = 0;
  return text;
}

// Integers: 8 to 64 bits, with sign or without.
static bool is_integer(const char *type) {
  return type[0] == 'u' ? type[1] != 'e' : type[0] == 's';
}
static int width_of(const char *type) {
  return strstr(type, "64") ? 64 : strstr(type, "32") ? 32 : strstr(type, "16") ? 16 : 8;
}
typedef __int128 wide;
static wide integer_of(value v, const char *type) {
  int bits = width_of(type);
  value low = v & (((value)1 << bits) - 1);
  return type[0] == 's' && low >> (bits - 1) ? (wide)low - ((wide)1 << bits) : (wide)low;
}
static wide least(const char *type) {
  return type[0] == 's' ? -((wide)1 << (width_of(type) - 1)) : 0;
}
static wide most(const char *type) {
  return ((wide)1 << (width_of(type) - (type[0] == 's'))) - 1;
}
static wide clamped(wide v, const char *type) {
  return v < least(type) ? least(type) : v > most(type) ? most(type) : v;
}
// As it lies in its register: of 8 bits extended to 16.
static value kept(wide v, const char *type) {
  int bits = width_of(type);
  wide low = integer_of((value)v, type);
  return (value)low & (((value)1 << (bits < 16 ? 16 : bits)) - 1);
}

// --- the model -----------------------------------------------------------------------------------------------------

// A number of 64 bits as MPFR has it, rounded once.
static double from_integer(const number_format *f, wide v, mpfr_rnd_t to) {
  mpfr_t x, r;
  mpfr_set_emin(-2000);
  mpfr_set_emax(2000);
  mpfr_init2(x, 70);
  mpfr_init2(r, f->fraction + 1);
  mpfr_set_si(x, (long)(v >> 32), MPFR_RNDN);
  mpfr_mul_2ui(x, x, 32, MPFR_RNDN);
  mpfr_add_ui(x, x, (unsigned long)(v & UINT32_MAX), MPFR_RNDN);
  mpfr_set_emax(f->bias + 1);
  int t = mpfr_set(r, x, to);
  mpfr_check_range(r, t, to);
  double d = mpfr_get_d(r, MPFR_RNDN);
  mpfr_clears(x, r, NULL);
  return d;
}

static double to_integral(double v, mpfr_rnd_t to) {
  return to == MPFR_RNDZ ? trunc(v) : to == MPFR_RNDD ? floor(v) : to == MPFR_RNDU ? ceil(v) : nearbyint(v);
}

static value integer_from_float(const instruction *i, double v, const char *from, const char *to) {
  // "zero if source is not .f64 and destination is not .s64, .u64; otherwise 1 << (BitWidth(dst) - 1)"
  if (isnan(v)) return strcmp(from, "f64") != 0 && width_of(to) != 64 ? 0 : kept((wide)1 << (width_of(to) - 1), to);
  v = to_integral(v, direction_of(i));
  wide r = v >= 0x1p65 ? (wide)1 << 66 : v <= -0x1p65 ? -((wide)1 << 66) : (wide)v;
  return kept(clamped(r, to), to);
}

static double limited(const instruction *i, const number_format *f, double v) {
  double greatest = number_value(f, number_bits(f, INFINITY) - 1);
  if (has(i, ".satfinite") && fabs(v) > greatest) v = copysign(greatest, v);
  if (has(i, ".sat")) return v > 0 ? fmin(v, 1) : 0;
  if (has(i, ".relu") && v <= 0) return 0;
  return v;
}

static value float_from(const instruction *i, const number_format *f, const char *from, value s) {
  double v;
  if (is_integer(from)) {
    v = from_integer(f, integer_of(s, from), direction_of(i));
  } else {
    const number_format *g = number_of_type(from);
    v = number_value(g, s);
    // To f16 GPUs take a subnormal number as it is.
    if (has(i, ".ftz") && g == &number_f32 && f != &number_f16) v = number_flush(g, v);
    if (isnan(v) && f == &number_f64 && !has(i, ".sat")) {
      // The bits of a single NaN move up; those of a half's are the canonical single one's.
      value single = g == &number_f32 ? s : 0x7fffffff;
      value moved = (single >> 31) << 63 | (value)0x7ff8 << 48 | (single & 0x7fffff) << 29;
      return g == &number_f64 ? s | (value)1 << 51 : moved;
    }
    bool integral = has(i, ".rni") || has(i, ".rzi") || has(i, ".rmi") || has(i, ".rpi");
    if (integral && !isnan(v)) v = copysign(to_integral(v, direction_of(i)), v);
    if (has(i, ".ftz") && f == &number_f32 && number_is_small(f, v))
      v = copysign(0, v); // before it is rounded
    else
      v = rounded(f, '=', v, 0, 0, direction_of(i));
  }
  v = limited(i, f, v);
  return number_bits(f, v);
}

static void model(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *from = from_of(i), *to = to_of(i);
  if (is_integer(to) && is_integer(from)) {
    wide v = integer_of(s[0], from);
    r[0] = kept(has(i, ".sat") ? clamped(v, to) : v, to);
  } else if (is_integer(to)) {
    const number_format *g = number_of_type(from);
    double v = number_value(g, s[0]);
    r[0] = integer_from_float(i, has(i, ".ftz") ? number_flush(g, v) : v, from, to);
  } else if (strstr(to, "x2")) {
    const number_format *f = number_of_type(to);
    r[0] = float_from(i, f, from, s[0]) << 16 | float_from(i, f, from, s[1]);
  } else {
    r[0] = float_from(i, number_of_type(to), from, s[0]);
  }
}

enum { BATCHES = 24 };

START_TEST(test_sampled) {
  ck_assert_uint_gt(topic_against_model("convert", NULL, model, BATCHES), 500);
}
END_TEST

static bool narrow(const instruction *i) {
  return i->source_bits[0] <= 16;
}
START_TEST(test_all_operands) {
  ck_assert_uint_gt(topic_over_all_operands("convert", narrow, model, 8), 200);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: conversions", NO_FRAME, {test_sampled}, {test_all_operands});
}

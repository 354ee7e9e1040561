// Conversions of narrow formats against their text (PTX ISA 9.7.9.21, 9.7.9.22): every number of a format is listed,
// and the nearest one is looked for. Stochastic rounding adds its bits to what is cut off.
#include "../../support/suite.h"
#include "number.h"

// Bits of exponent and fraction, bias; codes from `special` on are no numbers: infinity where the format has one, NaN.
typedef struct narrow_format {
  const char *name;
  int exponent, fraction, bias;
  uint32_t special;
  bool infinite, nan;
} narrow_format;
static const narrow_format formats[] = {
    {"e4m3", 4, 3, 7, 0x7f, false, true},  {"e5m2", 5, 2, 15, 0x7c, true, true}, {"e2m3", 2, 3, 1, 0x20, false, false},
    {"e3m2", 3, 2, 3, 0x20, false, false}, {"e2m1", 2, 1, 1, 8, false, false},
};

static const narrow_format *format_in(const instruction *i) {
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
    if (strstr(i->mnemonic, formats[k].name)) return &formats[k];
  return NULL;
}
static uint32_t sign_of(const narrow_format *f) {
  return 1u << (f->exponent + f->fraction);
}

static double code_value(const narrow_format *f, uint32_t code) {
  uint32_t size = code & (sign_of(f) - 1), m = size & ((1u << f->fraction) - 1);
  int e = (int)(size >> f->fraction);
  double v = e ? ldexp((double)(m | 1u << f->fraction), e - f->bias - f->fraction)
               : ldexp((double)m, 1 - f->bias - f->fraction);
  if (size >= f->special) v = f->infinite && m == 0 ? (double)INFINITY : (double)NAN;
  return code & sign_of(f) ? -v : v;
}

// "If the input is NaN, the result is NaN in the format, or its positive greatest number; beyond the greatest number
// the result is that one, with its sign." To nearest even.
static uint32_t nearest(const narrow_format *f, double v) {
  if (isnan(v)) return f->nan ? sign_of(f) - 1 : f->special - 1;
  uint32_t best = 0, sign = signbit(v) ? sign_of(f) : 0;
  v = fmin(fabs(v), code_value(f, f->special - 1));
  for (uint32_t code = 1; code < f->special; code++) {
    double was = fabs(code_value(f, best) - v), is = fabs(code_value(f, code) - v);
    if (is < was || (is == was && code % 2 == 0)) best = code;
  }
  return best | sign;
}

static double relu(const instruction *i, double v) {
  return has(i, ".relu") && v <= 0 ? 0 : v;
}

// --- 8 bits and fewer ----------------------------------------------------------------------------------------------

static void pairs(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const narrow_format *f = format_in(i);
  int step = f->exponent + f->fraction == 3 ? 4 : 8;
  if (strstr(i->mnemonic, "f16x2.e")) { // widened
    for (int k = 0; k < 2; k++) {
      uint32_t code = (uint32_t)(s[0] >> step * k) & (2 * sign_of(f) - 1);
      r[0] |= number_bits(&number_f16, relu(i, code_value(f, code))) << 16 * k;
    }
    return;
  }
  bool halves = strstr(i->mnemonic, ".f16x2");
  double high = halves ? number_value(&number_f16, s[0] >> 16) : number_value(&number_f32, s[0]);
  double low = halves ? number_value(&number_f16, s[0] & 0xffff) : number_value(&number_f32, s[1]);
  r[0] = (value)nearest(f, relu(i, high)) << step | nearest(f, relu(i, low));
}

static bool is_pair(const instruction *i) {
  return format_in(i) && strstr(i->mnemonic, "x2") && !has(i, ".rs");
}

// --- powers of two -------------------------------------------------------------------------------------------------

static uint32_t power_code(const instruction *i, double v) {
  if (isnan(v)) return 255;
  v = fabs(v);
  uint32_t best = 0;
  for (uint32_t code = 0; code < 255; code++) // the last one not above v, or the first not below
    if (has(i, ".rz") ? ldexp(1, (int)code - 127) <= v : code == 0 || ldexp(1, (int)code - 128) < v) best = code;
  if (v > 0x1p127 && (has(i, ".rp") || isinf(v))) best = has(i, ".satfinite") ? 254 : 255;
  return best;
}

static void powers(const instruction *i, const value *s, value *r, uint32_t *carry) {
  if (has(i, ".bf16x2") && strstr(i->mnemonic, ".bf16x2.ue8m0x2")) {
    for (int k = 0; k < 2; k++) {
      int code = (int)(s[0] >> 8 * k & 255);
      r[0] |= number_bits(&number_bf16, code == 255 ? (double)NAN : ldexp(1, code - 127)) << 16 * k;
    }
    return;
  }
  bool halves = strstr(i->mnemonic, ".bf16x2");
  double high = halves ? number_value(&number_bf16, s[0] >> 16) : number_value(&number_f32, s[0]);
  double low = halves ? number_value(&number_bf16, s[0] & 0xffff) : number_value(&number_f32, s[1]);
  r[0] = power_code(i, high) << 8 | power_code(i, low);
}
static bool is_power(const instruction *i) {
  return strstr(i->mnemonic, "ue8m0") != NULL;
}

// --- tf32 ----------------------------------------------------------------------------------------------------------

// Of the bits of f32 the low 13 are cut off; an addition carries into the exponent by itself.
static void tf32(const instruction *i, const value *s, value *r, uint32_t *carry) {
  uint32_t size = (uint32_t)s[0] & 0x7fffffff, sign = (uint32_t)s[0] & 0x80000000, rest = size & 0x1fff;
  uint32_t kept = size - rest;
  r[0] = 0x7fffffff;
  if (size > 0x7f800000) return;
  if (has(i, ".rna") && rest >= 0x1000) kept += 0x2000;
  if (has(i, ".rn") && (rest > 0x1000 || (rest == 0x1000 && (kept & 0x2000)))) kept += 0x2000;
  if (has(i, ".satfinite") && kept >= 0x7f800000) kept = 0x7f7fe000;
  r[0] = has(i, ".relu") && sign ? 0 : sign | kept;
}
static bool is_tf32(const instruction *i) {
  return has(i, ".tf32");
}

// --- stochastic ----------------------------------------------------------------------------------------------------

// One number: the value of the code is the truncated one, or the next above it in size, where the random bits, added
// to as many of the bits cut off, carry. Codes of f16 and bf16 are listed as well.
static uint32_t random_code(const instruction *i, const narrow_format *f, double v, uint32_t random, int bits) {
  if (has(i, ".relu") && v <= 0) v = 0;
  if (isnan(v)) return nearest(f, v);
  uint32_t sign = signbit(v) ? sign_of(f) : 0;
  double greatest = code_value(f, f->special - 1), size = fabs(v);
  if (size > greatest && has(i, ".satfinite")) return sign | (f->special - 1);
  if (isinf(v)) return sign | f->special;
  uint32_t low = 0, high = f->special - 1;
  while (low < high) { // the greatest code not above
    uint32_t middle = (low + high + 1) / 2;
    if (code_value(f, middle) <= size)
      low = middle;
    else
      high = middle - 1;
  }
  double unit =
      low == f->special - 1 ? code_value(f, low) - code_value(f, low - 1) : code_value(f, low + 1) - code_value(f, low);
  double part = floor((size - code_value(f, low)) / unit * ldexp(1, bits));
  // Far beyond the range the unit is not that of the number; it is infinite all the same.
  if (size >= code_value(f, f->special - 1) + unit) return sign | f->special;
  uint32_t code = low + (part + random >= ldexp(1, bits));
  return sign | (code == f->special && has(i, ".satfinite") ? code - 1 : code);
}

static void stochastic(const instruction *i, const value *s, value *r, uint32_t *carry) {
  static const narrow_format f16 = {"f16", 5, 10, 15, 0x7c00, true, true},
                             bf16 = {"bf16", 8, 7, 127, 0x7f80, true, true};
  const narrow_format *f = format_in(i);
  double v[4];
  for (int k = 0; k < i->sources - 1; k++) v[k] = number_value(&number_f32, s[k]);
  uint32_t random = (uint32_t)s[i->sources - 1];
  if (!f) {
    f = strstr(i->mnemonic, "bf16") ? &bf16 : &f16;
    int bits = f == &f16 ? 13 : 16;
    uint32_t mask = (1u << bits) - 1;
    r[0] =
        (value)random_code(i, f, v[0], random >> 16 & mask, bits) << 16 | random_code(i, f, v[1], random & mask, bits);
    return;
  }
  bool four = strcmp(f->name, "e2m1") == 0;
  uint32_t upper = random >> 16, lower = random & 0xffff;
  uint32_t bits[4] = {upper, upper, lower, lower};
  if (four) bits[0] = upper >> 8, bits[1] = lower >> 8, bits[2] = upper & 255, bits[3] = lower & 255;
  for (int k = 0; k < 4; k++) r[0] = r[0] << (four ? 4 : 8) | random_code(i, f, v[k], bits[k], four ? 8 : 16);
}
static bool is_stochastic(const instruction *i) {
  return has(i, ".rs");
}

// --- cvt.pack ------------------------------------------------------------------------------------------------------

static void packed(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = strstr(i->mnemonic, ".sat.") + 5;
  int bits = atoi(type + 1);
  int64_t least = type[0] == 's' ? -(1ll << (bits - 1)) : 0, most = (1ll << (bits - (type[0] == 's'))) - 1;
  value mask = ((value)1 << bits) - 1;
  for (int k = 0; k < 2; k++) {
    int64_t v = (int32_t)(uint32_t)s[1 - k];
    r[0] |= ((value)(v < least ? least : v > most ? most : v) & mask) << bits * k;
  }
  if (bits < 16) r[0] |= s[2] << 2 * bits & UINT32_MAX;
}
static bool is_packed(const instruction *i) {
  return has(i, ".pack");
}

enum { BATCHES = 250 };

static const struct {
  bool (*wanted)(const instruction *);
  model_fn *model;
  size_t least;
} kinds[] = {{is_pair, pairs, 24},
             {is_power, powers, 9},
             {is_tf32, tf32, 10},
             {is_stochastic, stochastic, 18},
             {is_packed, packed, 8}};

START_TEST(test_narrow) {
  ck_assert_uint_ge(topic_against_model("narrow", kinds[_i].wanted, kinds[_i].model, BATCHES), kinds[_i].least);
}
END_TEST

static bool is_widened(const instruction *i) {
  return is_pair(i) && i->sources == 1;
}
START_TEST(test_codes) {
  ck_assert_uint_eq(topic_over_all_operands("narrow", is_widened, pairs, 4), 16);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: narrow formats", NO_FRAME, {test_narrow, sizeof kinds / sizeof *kinds}, {test_codes});
}

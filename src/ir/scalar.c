// Scalars as HLO literal text, both ways.
#include "ir/dtype.h"

#include <math.h>

// --- printing -----------------------------------------------------------------------------------------------------

typedef struct target {
  kl_dtype type;
  uint64_t bits;
} target;

static bool same_bits(const void *arg, kl_str text) {
  const target *want = arg;
  uint64_t got[2];
  const char *why;
  return kl_scalar_parse(text, want->type, got, &why) && got[0] == want->bits;
}

static size_t put_hex(char *buf, uint64_t v) {
  char t[16];
  size_t n = 0;
  do t[n++] = "0123456789abcdef"[v & 15];
  while (v >>= 4);
  for (size_t i = 0; i < n; i++) buf[i] = t[n - 1 - i];
  return n;
}

static uint64_t mantissa_mask(kl_dtype t) {
  return (1ull << kl_info(t)->man_bits) - 1;
}

static uint64_t sign_mask(kl_dtype t) {
  return kl_info(t)->kind == KL_E8M0 ? 0 : 1ull << (kl_info(t)->bits - 1);
}

static uint64_t quiet_nan(kl_dtype t) {
  return kl_float_encode(t, (double)NAN) & kl_int_mask(t);
}

// "nan" is the quiet default with the sign in front; any other payload follows as the mantissa field, quiet bit
// included.
static size_t nan_text(char *buf, kl_dtype t, uint64_t bits) {
  char *p = buf;
  uint64_t quiet = quiet_nan(t);
  if (bits != quiet && (bits & sign_mask(t))) *p++ = '-';
  p = stpcpy(p, "nan");
  if ((bits & mantissa_mask(t)) != (quiet & mantissa_mask(t))) {
    p = stpcpy(p, "(0x");
    p += put_hex(p, bits & mantissa_mask(t));
    p = stpcpy(p, ")");
  }
  return (size_t)(p - buf);
}

static size_t float_text(char *buf, kl_dtype t, uint64_t bits) {
  bits &= kl_int_mask(t);
  if (kl_float_is_nan(t, bits)) return nan_text(buf, t, bits);
  double v = kl_float_decode(t, bits);
  if (t == KILN_F64) return kl_text_from_double(buf, v);
  // Infinities, and whole numbers, whose digits are as few as any and say the value itself.
  if (t == KILN_F32 || isinf(v) || (fabs(v) < 1e6 && v == trunc(v))) return kl_text_from_float(buf, (float)v);
  // One digit names a power of two well enough to parse back; four let a reader recognise it.
  int least = kl_info(t)->kind == KL_E8M0 ? 4 : 1;
  return kl_text_shortest(buf, v, least, 6, 9, same_bits, &(target){t, bits});
}

static size_t int_text(char *buf, kl_dtype t, uint64_t bits) {
  int64_t v = kl_int_decode(t, bits);
  bool neg = kl_is_signed(t) && v < 0;
  uint64_t u = neg ? 0 - (uint64_t)v : (uint64_t)v;
  char digits[20];
  size_t n = 0, size = 0;
  do digits[n++] = (char)('0' + u % 10);
  while (u /= 10);
  if (neg) buf[size++] = '-';
  while (n) buf[size++] = digits[--n];
  return size;
}

static size_t put_scalar(char *buf, kl_dtype t, uint64_t bits) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return (size_t)(stpcpy(buf, bits ? "true" : "false") - buf);
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return int_text(buf, t, bits);
  case KL_CLASS_FLOAT: return float_text(buf, t, bits);
  default: return 0;
  }
}

size_t kl_scalar_text(char buf[96], kl_dtype t, const uint64_t bits[2]) {
  size_t n;
  if (kl_is_complex(t)) {
    kl_dtype part = kl_info(t)->part;
    char *p = buf;
    *p++ = '(';
    p += put_scalar(p, part, bits[0]);
    p = stpcpy(p, ", ");
    p += put_scalar(p, part, bits[1]);
    *p++ = ')';
    n = (size_t)(p - buf);
  } else {
    n = put_scalar(buf, t, bits[0]);
  }
  buf[n] = 0;
  return n;
}

// --- parsing ------------------------------------------------------------------------------------------------------

static const char *const range_reasons[KILN_DTYPE_COUNT] = {
    [KILN_S1] = "out of range for s1 (-1 to 0)",
    [KILN_U1] = "out of range for u1 (0 to 1)",
    [KILN_S2] = "out of range for s2 (-2 to 1)",
    [KILN_U2] = "out of range for u2 (0 to 3)",
    [KILN_S4] = "out of range for s4 (-8 to 7)",
    [KILN_U4] = "out of range for u4 (0 to 15)",
    [KILN_S8] = "out of range for s8 (-128 to 127)",
    [KILN_U8] = "out of range for u8 (0 to 255)",
    [KILN_S16] = "out of range for s16 (-32768 to 32767)",
    [KILN_U16] = "out of range for u16 (0 to 65535)",
    [KILN_S32] = "out of range for s32 (-2147483648 to 2147483647)",
    [KILN_U32] = "out of range for u32 (0 to 4294967295)",
    [KILN_S64] = "out of range for s64 (-9223372036854775808 to 9223372036854775807)",
    [KILN_U64] = "out of range for u64 (0 to 18446744073709551615)",
    [KILN_F4E2M1FN] = "out of range for f4e2m1fn (-6 to 6)",
    [KILN_F8E3M4] = "out of range for f8e3m4 (-15.5 to 15.5)",
    [KILN_F8E4M3] = "out of range for f8e4m3 (-240 to 240)",
    [KILN_F8E4M3FN] = "out of range for f8e4m3fn (-448 to 448)",
    [KILN_F8E4M3FNUZ] = "out of range for f8e4m3fnuz (-240 to 240)",
    [KILN_F8E4M3B11FNUZ] = "out of range for f8e4m3b11fnuz (-30 to 30)",
    [KILN_F8E5M2] = "out of range for f8e5m2 (-57344 to 57344)",
    [KILN_F8E5M2FNUZ] = "out of range for f8e5m2fnuz (-57344 to 57344)",
    [KILN_F8E8M0FNU] = "out of range for f8e8m0fnu (powers of two from 2^-127 to 2^127)",
    [KILN_F16] = "out of range for f16 (-65504 to 65504)",
    [KILN_BF16] = "out of range for bf16 (about -3.39e38 to 3.39e38)",
    [KILN_F32] = "out of range for f32 (about -3.4e38 to 3.4e38)",
    [KILN_F64] = "out of range for f64 (about -1.8e308 to 1.8e308)",
};

static bool refuse(const char **why, const char *reason) {
  *why = reason;
  return false;
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static kl_str trim(kl_str s) {
  while (s.n && is_space(s.p[0])) s = (kl_str){s.p + 1, s.n - 1};
  while (s.n && is_space(s.p[s.n - 1])) s.n--;
  return s;
}

static bool is_whole_number(kl_str s) {
  size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
  if (i == s.n) return false;
  for (; i < s.n; i++)
    if (s.p[i] < '0' || s.p[i] > '9') return false;
  return true;
}

// A number is true where it is not 0.
static bool parse_pred(kl_str s, uint64_t *out, const char **why) {
  *out = kl_str_is(s, "true");
  if (*out || kl_str_is(s, "false")) return true;
  if (!is_whole_number(s)) return refuse(why, "expected true, false or an integer");
  for (size_t i = 0; i < s.n; i++) *out |= s.p[i] >= '1' && s.p[i] <= '9';
  return true;
}

static bool parse_int(kl_str s, kl_dtype t, uint64_t *out, const char **why) {
  if (!is_whole_number(s)) return refuse(why, "expected an integer");
  bool known;
  if (kl_is_signed(t)) {
    int64_t v;
    known = kl_i64_from_text(s, &v);
    *out = known ? (uint64_t)v & kl_int_mask(t) : 0;
    known = known && kl_int_decode(t, *out) == v;
  } else {
    known = kl_u64_from_text(s, out) && *out <= kl_int_mask(t);
    if (!known && t == KILN_U64 && s.p[0] == '-') known = kl_i64_from_text(s, (int64_t *)out); // its pattern
  }
  return known || refuse(why, range_reasons[t]);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hex(kl_str s, uint64_t *out) {
  if (s.n < 3 || s.p[0] != '0' || (s.p[1] | 0x20) != 'x') return false;
  uint64_t v = 0;
  for (size_t i = 2; i < s.n; i++) {
    int d = hex_digit(s.p[i]);
    if (d < 0 || v >> 60) return false;
    v = v << 4 | (uint64_t)d;
  }
  *out = v;
  return true;
}

// `s` begins with "nan" behind its sign.
static bool parse_nan(kl_str s, bool neg, kl_dtype t, uint64_t *out, const char **why) {
  if (kl_info(t)->kind == KL_FN0) return refuse(why, "f4e2m1fn has no NaN");
  uint64_t quiet = quiet_nan(t), mask = mantissa_mask(t), payload = quiet & mask;
  if (s.n > 3) {
    if (s.n < 6 || s.p[3] != '(' || s.p[s.n - 1] != ')' || !parse_hex((kl_str){s.p + 4, s.n - 5}, &payload))
      return refuse(why, "expected nan or nan(0x...)");
    bool one_nan = kl_info(t)->kind != KL_IEEE;
    if (payload > mask || (one_nan ? payload != (quiet & mask) : payload == 0))
      return refuse(why, "no NaN of this type has this payload");
  }
  *out = (quiet & ~mask) | payload | (neg ? sign_mask(t) : 0);
  return true;
}

// Greater than the largest finite value after rounding as if there were no end; or so far below the least value of a
// format without zero that the nearer of the two would be zero.
static bool beyond_range(kl_dtype t, double odd, uint64_t bits) {
  switch (kl_info(t)->kind) {
  case KL_IEEE: return isinf(kl_float_decode(t, bits));
  case KL_FN0: return fabs(odd) >= 7; // the tie between 6 and the 8 that would follow goes to 8
  case KL_E8M0: return kl_float_is_nan(t, bits) || odd < 0x1p-128;
  default: return kl_float_is_nan(t, bits);
  }
}

static bool parse_float(kl_str s, kl_dtype t, uint64_t *out, const char **why) {
  bool neg = s.n && s.p[0] == '-';
  size_t sign = neg || (s.n && s.p[0] == '+');
  kl_str body = {s.p + sign, s.n - sign};
  if (body.n >= 3 && (body.p[0] | 0x20) == 'n' && (body.p[1] | 0x20) == 'a' && (body.p[2] | 0x20) == 'n')
    return parse_nan(body, neg, t, out, why);
  double v;
  if (!(t == KILN_F64 ? kl_double_from_text(s, &v) : kl_double_from_text_odd(s, &v)))
    return refuse(why, "expected a number");
  *out = kl_float_encode(t, v);
  if (kl_info(t)->kind == KL_E8M0 && v <= 0) return refuse(why, "f8e8m0fnu has positive values only");
  bool infinite = (body.p[0] | 0x20) == 'i';
  if (!infinite && beyond_range(t, v, *out)) return refuse(why, range_reasons[t]);
  return true;
}

static bool parse_part(kl_str s, kl_dtype t, uint64_t *out, const char **why) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return parse_pred(s, out, why);
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return parse_int(s, t, out, why);
  case KL_CLASS_FLOAT: return parse_float(s, t, out, why);
  default: return refuse(why, "no scalar of this type can be written");
  }
}

static bool parse_complex(kl_str s, kl_dtype part, uint64_t bits[2], const char **why) {
  if (!s.n || s.p[0] != '(') {
    bits[1] = 0;
    return parse_part(s, part, &bits[0], why);
  }
  const char *comma = memchr(s.p, ',', s.n);
  if (!comma || s.p[s.n - 1] != ')') return refuse(why, "expected (real, imaginary)");
  kl_str real = {s.p + 1, (size_t)(comma - s.p) - 1}, imag = {comma + 1, (size_t)(s.p + s.n - comma) - 2};
  return parse_part(trim(real), part, &bits[0], why) && parse_part(trim(imag), part, &bits[1], why);
}

bool kl_scalar_parse(kl_str s, kl_dtype t, uint64_t bits[2], const char **why) {
  s = trim(s);
  bits[0] = bits[1] = 0;
  return kl_is_complex(t) ? parse_complex(s, kl_info(t)->part, bits, why) : parse_part(s, t, &bits[0], why);
}

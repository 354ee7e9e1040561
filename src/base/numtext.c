// Numbers as text, exact both ways and independent of the locale.
//
// Decimals and hex floats are first brought to "DIGITSe±N" or "0xDIGITSp±N": no decimal point, so that strtod reads
// them alike in every locale; and from printf only digits and exponent are taken. Rounding to odd is truncation with
// the last bit set if anything was cut off: it keeps which side of any shorter format's ties the number lies on.
#include "base/base.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// --- integers -----------------------------------------------------------------------------------------------------

static bool magnitude_from_text(kl_str s, bool *neg, uint64_t *out) {
  size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
  *neg = i && s.p[0] == '-';
  if (i == s.n) return false;
  uint64_t v = 0;
  for (; i < s.n; i++) {
    unsigned d = (unsigned)(unsigned char)s.p[i] - '0';
    if (d > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v)) return false;
  }
  *out = v;
  return true;
}

bool kl_i64_from_text(kl_str s, int64_t *out) {
  bool neg;
  uint64_t v;
  if (!magnitude_from_text(s, &neg, &v) || v > (uint64_t)INT64_MAX + neg) return false;
  *out = (int64_t)(neg ? 0 - v : v);
  return true;
}

bool kl_u64_from_text(kl_str s, uint64_t *out) {
  bool neg;
  uint64_t v;
  if (!magnitude_from_text(s, &neg, &v) || (neg && v)) return false;
  *out = v;
  return true;
}

// --- text to double -----------------------------------------------------------------------------------------------

// A halfway point between doubles has at most 767 significant decimal digits, so of longer numbers it is enough to
// know whether the rest is zero; 800 hex digits are more than enough too.
enum { MAX_DIGITS = 800 };

typedef struct number {
  bool neg, hex;
  kl_str word;  // "inf", "nan" ... in place of digits, else empty
  int n;        // digits kept, no leading zeros
  int64_t exp;  // value is DIGITS * 10^exp, or * 2^exp for hex
  uint64_t low; // the digits as an integer if n <= 15
  char digits[MAX_DIGITS + 2];
} number;

static int digit_value(char c, bool hex) {
  if (c >= '0' && c <= '9') return c - '0';
  if (!hex) return -1;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool word_is(kl_str s, const char *lower) {
  if (s.n != strlen(lower)) return false;
  for (size_t i = 0; i < s.n; i++)
    if ((s.p[i] | 0x20) != lower[i]) return false;
  return true;
}

// Reads an exponent's optional sign and digits up to the end of the text. Saturates far outside any format's range.
static bool read_exponent(kl_str s, int64_t *out) {
  const int64_t limit = INT64_MAX / 4;
  size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
  bool neg = i && s.p[0] == '-';
  if (i == s.n) return false;
  int64_t v = 0;
  for (; i < s.n; i++) {
    int d = digit_value(s.p[i], false);
    if (d < 0) return false;
    v = v < limit / 16 ? v * 10 + d : limit;
  }
  *out = neg ? -v : v;
  return true;
}

// Reads digits and at most one point; returns the bytes read, 0 where there is no digit.
static size_t read_digits(kl_str s, number *x) {
  size_t i = 0, seen = 0;
  bool point = false, sticky = false;
  for (; i < s.n; i++) {
    if (s.p[i] == '.' && !point) {
      point = true;
      continue;
    }
    int d = digit_value(s.p[i], x->hex);
    if (d < 0) break;
    seen++;
    if (point) x->exp--;
    if (x->n == 0 && d == 0) continue;
    if (x->n == MAX_DIGITS) {
      sticky |= d != 0;
      x->exp++;
      continue;
    }
    x->digits[x->n++] = s.p[i];
    if (x->n <= 15) x->low = x->low * 10 + (uint64_t)d; // of use for decimals only
  }
  if (sticky) {
    x->digits[x->n++] = '1';
    x->exp--;
  }
  return seen ? i : 0;
}

static bool read_number(kl_str s, number *x) {
  x->neg = x->hex = false;
  x->word = KL_STR("");
  x->n = 0;
  x->exp = 0;
  x->low = 0;
  if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
    x->neg = s.p[0] == '-';
    s = (kl_str){s.p + 1, s.n - 1};
  }
  if (word_is(s, "inf") || word_is(s, "infinity") || word_is(s, "nan")) {
    x->word = s;
    return true;
  }
  if (s.n > 2 && s.p[0] == '0' && (s.p[1] | 0x20) == 'x') {
    x->hex = true;
    s = (kl_str){s.p + 2, s.n - 2};
  }
  size_t i = read_digits(s, x);
  if (!i) return false;
  if (x->hex) x->exp *= 4;
  if (i == s.n) return true;
  int64_t e;
  if ((s.p[i] | 0x20) != (x->hex ? 'p' : 'e') || !read_exponent((kl_str){s.p + i + 1, s.n - i - 1}, &e)) return false;
  x->exp += e;
  return true;
}

static double from_bits(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}

static uint64_t to_bits(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

enum { MAX_POWER = 22 };
static const double pow10_exact[MAX_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// w * 10^exp. 15 digits and powers up to 10^22 are exact doubles, so one operation rounds once, and the sign of what an
// fma finds left over tells which neighbour is the odd one.
static double scaled(uint64_t digits, int exp, bool odd) {
  double w = (double)digits, p = pow10_exact[exp < 0 ? -exp : exp];
  double r = exp < 0 ? w / p : w * p;
  if (!odd) return r;
  double left = exp < 0 ? fma(-r, p, w) : fma(w, p, -r);
  uint64_t u = to_bits(r);
  return left != 0 && !(u & 1) ? from_bits(left > 0 ? u + 1 : u - 1) : r;
}

static bool small_decimal(const number *x, bool odd, double *out) {
  if (x->hex || x->n > 15 || x->exp < -MAX_POWER || x->exp > MAX_POWER || fegetround() != FE_TONEAREST) return false;
  *out = scaled(x->low, (int)x->exp, odd);
  return true;
}

static double any_number(number *x, bool odd) {
  char text[MAX_DIGITS + 32];
  // Beyond these exponents every number of up to MAX_DIGITS + 1 digits is out of a double's range.
  int64_t limit = 20000, e = x->exp < -limit ? -limit : x->exp > limit ? limit : x->exp;
  snprintf(text, sizeof text, "%s%.*s%c%lld", x->hex ? "0x" : "", x->n, x->digits, x->hex ? 'p' : 'e', (long long)e);
  fenv_t env;
  feholdexcept(&env);
  fesetround(odd ? FE_TOWARDZERO : FE_TONEAREST);
  double v = strtod(text, NULL);
  bool inexact = fetestexcept(FE_INEXACT);
  fesetenv(&env);
  return odd && inexact ? from_bits(to_bits(v) | 1) : v;
}

static bool double_from_text(kl_str s, bool odd, double *out) {
  number x;
  if (!read_number(s, &x)) return false;
  double v = 0;
  if (x.word.n)
    v = (x.word.p[0] | 0x20) == 'n' ? (double)NAN : (double)INFINITY;
  else if (x.n && !small_decimal(&x, odd, &v))
    v = any_number(&x, odd);
  *out = x.neg ? -v : v;
  return true;
}

bool kl_double_from_text_odd(kl_str s, double *out) {
  return double_from_text(s, true, out);
}

bool kl_double_from_text(kl_str s, double *out) {
  return double_from_text(s, false, out);
}

// --- double to text -----------------------------------------------------------------------------------------------

typedef struct decimal {
  bool neg;
  int n, exp; // 0.d1 d2 ... dn * 10^(exp + 1): exp is the exponent of the first digit
  char d[20];
} decimal;

static int put_unsigned(char *p, uint64_t v) {
  char t[20];
  int n = 0;
  do t[n++] = (char)('0' + v % 10);
  while (v /= 10);
  for (int i = 0; i < n; i++) p[i] = t[n - 1 - i];
  return n;
}

// The form of printf's %g: plain for exponents from -4 up to the precision, else with an exponent of two digits or
// more.
static size_t put_decimal(char *buf, const decimal *x, int precision) {
  char *p = buf;
  if (x->neg) *p++ = '-';
  if (x->exp >= -4 && x->exp < precision) {
    if (x->exp < 0) {
      memcpy(p, "0.000", 5);
      p += 1 - x->exp;
    }
    for (int i = 0; i < x->n || i <= x->exp; i++) {
      if (i == x->exp + 1 && i > 0) *p++ = '.';
      *p++ = i < x->n ? x->d[i] : '0';
    }
  } else {
    *p++ = x->d[0];
    if (x->n > 1) *p++ = '.';
    memcpy(p, x->d + 1, (size_t)x->n - 1);
    p += x->n - 1;
    *p++ = 'e';
    *p++ = x->exp < 0 ? '-' : '+';
    unsigned e = (unsigned)(x->exp < 0 ? -x->exp : x->exp);
    if (e < 10) *p++ = '0';
    p += put_unsigned(p, e);
  }
  *p = 0;
  return (size_t)(p - buf);
}

// `digits` significant digits of v under the present rounding direction, trailing zeros dropped.
static decimal digits_of(double v, int digits) {
  char t[64];
  decimal x = {.neg = signbit(v)};
  snprintf(t, sizeof t, "%.*e", digits - 1, fabs(v));
  const char *p = t;
  for (; *p != 'e'; p++)
    if (*p >= '0' && *p <= '9') x.d[x.n++] = *p; // passes over the point, whatever the locale makes of it
  bool neg = *++p == '-';
  for (p++; *p; p++) x.exp = x.exp * 10 + (*p - '0');
  if (neg) x.exp = -x.exp;
  while (x.n > 1 && x.d[x.n - 1] == '0') x.n--;
  return x;
}

static decimal digits_rounded(double v, int digits, int direction) {
  fenv_t env;
  feholdexcept(&env);
  fesetround(direction);
  decimal x = digits_of(v, digits);
  fesetenv(&env);
  return x;
}

// `x`, the nearest decimal of 17 digits to v, rounded to n digits. Where it seems to lie half way, what was cut off
// before decides, and v is asked again.
static decimal shortened(const decimal *x, double v, int n) {
  decimal y = *x;
  if (y.n <= n) return y;
  if (y.d[n] == '5' && y.n == n + 1) return digits_rounded(v, n, FE_TONEAREST);
  bool up = y.d[n] >= '5';
  for (y.n = n; up && y.n && y.d[y.n - 1] == '9';) y.n--;
  if (up && y.n == 0) {
    y.d[y.n++] = '1';
    y.exp++;
  } else if (up) {
    y.d[y.n - 1]++;
  }
  while (y.n > 1 && y.d[y.n - 1] == '0') y.n--;
  return y;
}

// The decimal of n <= 15 digits that is nearest to v > 0, as `digits` * 10^*exp, in two operations that round: known
// only where the scaled number is far from a tie between integers, and the powers of ten are exact.
static bool quick_digits(double v, int n, uint64_t *digits, int *exp) {
  int two;
  frexp(v, &two);
  *exp = (int)floor((two - 1) * 0.30102999566398120) - (n - 1); // log10(2): the first digit's exponent, or one less
  for (int try = 0; try < 2; try++, ++*exp) {
    if (*exp < -MAX_POWER || *exp > MAX_POWER) return false;
    double p = *exp < 0 ? v * pow10_exact[-*exp] : v / pow10_exact[*exp];
    double whole = floor(p + 0.5);
    if (whole >= pow10_exact[n]) continue;
    *digits = (uint64_t)whole;
    return whole >= pow10_exact[n - 1] && fabs(p - whole) < 0.5 - p * 0x1p-52;
  }
  return false;
}

static decimal decimal_of(bool neg, uint64_t digits, int exp) {
  decimal x = {.neg = neg};
  char t[20];
  for (; digits % 10 == 0; digits /= 10) exp++;
  x.n = put_unsigned(t, digits);
  memcpy(x.d, t, (size_t)x.n);
  x.exp = exp + x.n - 1;
  return x;
}

// The shortest text of at most `most` <= 15 digits that names v, a double or a float; 0 where the quick way does not
// tell. At powers of two, where the interval of what names v is lopsided, it does not.
static size_t quick_text(char *buf, double v, bool is_float, int least, int plain, int most) {
  double a = fabs(v);
  if ((to_bits(a) & ((1ull << 52) - 1)) == 0 || a < 1e-30 || fegetround() != FE_TONEAREST) return 0;
  for (int n = least; n <= most; n++) {
    uint64_t digits;
    int exp;
    if (!quick_digits(a, n, &digits, &exp)) return 0;
    if (is_float ? (float)scaled(digits, exp, true) != (float)a : scaled(digits, exp, false) != a) continue;
    decimal x = decimal_of(signbit(v), digits, exp);
    return put_decimal(buf, &x, x.n <= plain ? plain : most);
  }
  return 0;
}

// What parses back to v is an interval around v. It is centred on v, so that the nearest decimal of n digits is in it
// if any is, but at powers of two: there the decimals next below and next above v are tried as well.
size_t kl_text_shortest(char buf[32], double v, int least, int plain, int most,
                        bool (*same)(const void *arg, kl_str text), const void *arg) {
  bool lopsided = (to_bits(v) & ((1ull << 52) - 1)) == 0, quick = fegetround() == FE_TONEAREST;
  decimal nearest = {0};
  for (int n = least;; n++)
    for (int try = 0; try < (lopsided ? 3 : 1); try++) {
      decimal x;
      uint64_t digits;
      int exp;
      if (try == 0 && quick && n <= 9 && quick_digits(fabs(v), n, &digits, &exp)) {
        x = decimal_of(signbit(v), digits, exp);
      } else {
        if (!nearest.n) nearest = digits_rounded(v, 17, FE_TONEAREST);
        x = try ? digits_rounded(v, n, try == 1 ? FE_DOWNWARD : FE_UPWARD) : shortened(&nearest, v, n);
      }
      size_t size = put_decimal(buf, &x, x.n <= plain ? plain : most);
      if (n >= most || same(arg, (kl_str){buf, size})) return size;
    }
}

// Small whole numbers and what has no digits. A zero's sign needs the point: without it the text is an integer to
// others.
static size_t easy_text(char *buf, double v) {
  char *p = buf;
  if (signbit(v)) *p++ = '-';
  double a = fabs(v);
  if (a == 0 && p > buf)
    p = stpcpy(p, "0.0");
  else if (a < 1e6 && a == (double)(uint32_t)a)
    p += put_unsigned(p, (uint32_t)a);
  else if (isinf(v))
    p = stpcpy(p, "inf");
  else if (isnan(v))
    p = stpcpy(buf, "nan");
  else
    return 0;
  *p = 0;
  return (size_t)(p - buf);
}

static bool same_double(const void *arg, kl_str text) {
  double v;
  return kl_double_from_text(text, &v) && v == *(const double *)arg;
}

static bool same_float(const void *arg, kl_str text) {
  double v;
  return kl_double_from_text_odd(text, &v) && (float)v == *(const float *)arg;
}

// Fewer than 15 (6) digits always survive the way through a normal double (float), so the search can begin there;
// below, formats get coarser and the search begins at one digit.
size_t kl_text_from_double(char buf[32], double v) {
  size_t n = easy_text(buf, v);
  if (!n && fabs(v) >= 0x1p-1022) n = quick_text(buf, v, false, 15, 15, 15);
  return n ? n : kl_text_shortest(buf, v, fabs(v) < 0x1p-1022 ? 1 : 15, 15, 17, same_double, &v);
}

size_t kl_text_from_float(char buf[32], float v) {
  size_t n = easy_text(buf, v);
  if (!n && fabsf(v) >= 0x1p-126f) n = quick_text(buf, v, true, 6, 6, 9);
  return n ? n : kl_text_shortest(buf, v, fabsf(v) < 0x1p-126f ? 1 : 6, 6, 9, same_float, &v);
}

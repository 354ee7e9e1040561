// One complex type's operations; included by complex.c once per type with
//   P          part type: arithmetic rounds to it at every step, as eval.h writes it down
//   W          wider real type in which functions are computed, rounded once per part
//   Z(name)    name with the type's suffix
//   M(f)       libm's f for W
//   MC(f, z)   libm's complex f for W, on and giving Z(wide)
typedef struct Z(part) {
  P re, im;
} Z(part);
typedef struct Z(wide) {
  W re, im;
} Z(wide);

// --- arithmetic ---------------------------------------------------------------------------------------------------

static inline Z(part) Z(multiply)(Z(part) x, Z(part) y) {
  P ac = x.re * y.re, bd = x.im * y.im, ad = x.re * y.im, bc = x.im * y.re;
  return (Z(part)){ac - bd, ad + bc};
}

// Products of two parts are exact in W, and none is too large or too small for it. A zero comes as if from the parts.
static Z(part) Z(finite_quotient)(Z(part) x, Z(part) y) {
  W a = x.re, b = x.im, c = y.re, d = y.im, norm = c * c + d * d;
  return (Z(part)){(P)((a * c + b * d) / norm), (P)((b * c - a * d) / norm)};
}

// 1 for what is infinite, else 0, with its sign; of NaN, on whose sign machines do not agree, 0.
static P Z(boxed)(P a) {
  return isnan(a) ? 0 : (P)copysign(isinf(a) ? 1 : 0, a);
}

static Z(part) Z(divide)(Z(part) x, Z(part) y) {
  P a = x.re, b = x.im, c = y.re, d = y.im, inf = (P)INFINITY, zero = 0;
  bool finite_x = isfinite(a) && isfinite(b), finite_y = isfinite(c) && isfinite(d);
  if (c == 0 && d == 0 && !(isnan(a) && isnan(b))) {
    P k = (P)copysign(INFINITY, c);
    return (Z(part)){k * a, k * b};
  }
  if ((isinf(a) || isinf(b)) && finite_y) {
    a = Z(boxed)(a);
    b = Z(boxed)(b);
    P ac = a * c, bd = b * d, bc = b * c, ad = a * d;
    return (Z(part)){inf * (P)(ac + bd), inf * (P)(bc - ad)};
  }
  if ((isinf(c) || isinf(d)) && finite_x) {
    c = Z(boxed)(c);
    d = Z(boxed)(d);
    P ac = a * c, bd = b * d, bc = b * c, ad = a * d;
    return (Z(part)){zero * (P)(ac + bd), zero * (P)(bc - ad)};
  }
  if (finite_x && finite_y && (c != 0 || d != 0)) return Z(finite_quotient)(x, y);
  return (Z(part)){(P)NAN, (P)NAN};
}

// Lexicographic, with NaN comparing false.
static inline bool Z(greater_equal)(Z(part) x, Z(part) y) {
  return x.re > y.re || (x.re == y.re && x.im >= y.im);
}

static inline Z(part) Z(arithmetic)(kl_op op, Z(part) x, Z(part) y) {
  switch (op) {
  case KL_OP_ADD: return (Z(part)){x.re + y.re, x.im + y.im};
  case KL_OP_SUBTRACT: return (Z(part)){x.re - y.re, x.im - y.im};
  case KL_OP_MULTIPLY: return Z(multiply)(x, y);
  case KL_OP_DIVIDE: return Z(divide)(x, y);
  case KL_OP_MAXIMUM: return Z(greater_equal)(x, y) ? x : y;
  default: return Z(greater_equal)(y, x) ? x : y;
  }
}

// --- functions ----------------------------------------------------------------------------------------------------

static inline bool Z(finite)(Z(wide) z) {
  return isfinite((double)z.re) && isfinite((double)z.im);
}

static Z(wide) Z(quotient)(Z(wide) x, Z(wide) y) {
  W norm = y.re * y.re + y.im * y.im;
  return (Z(wide)){(x.re * y.re + x.im * y.im) / norm, (x.im * y.re - x.re * y.im) / norm};
}

// e^x cos y - 1 without cancellation where x and y are small.
static Z(wide) Z(expm1)(Z(wide) z) {
  if (!Z(finite)(z)) {
    Z(wide) e = MC(exp, z);
    return (Z(wide)){e.re - 1, e.im};
  }
  if (z.im == 0) return (Z(wide)){M(expm1)(z.re), z.im};
  W half = M(sin)(z.im / 2);
  return (Z(wide)){M(expm1)(z.re) * M(cos)(z.im) - 2 * half * half, M(exp)(z.re) * M(sin)(z.im)};
}

// a + b + c with all that is lost of two sums added last.
static W Z(sum3)(W a, W b, W c) {
  W s = a + b, part = s - a, lost = (a - (s - part)) + (b - part);
  W t = s + c, next = t - s;
  return t + ((s - (t - next)) + (c - next) + lost);
}

// log |1 + z| through |1 + z|^2 - 1, of which all three terms are exact, where that is small.
static Z(wide) Z(log1p)(Z(wide) z) {
  if (!Z(finite)(z)) return MC(log, ((Z(wide)){z.re + 1, z.im}));
  if (z.im == 0 && z.re >= -1) return (Z(wide)){M(log1p)(z.re), z.im};
  W excess = Z(sum3)(2 * z.re, z.im * z.im, z.re * z.re);
  bool near = excess > -0.5 && excess < 0.5;
  W re = near ? M(log1p)(excess) / 2 : M(log)(M(hypot)(1 + z.re, z.im));
  return (Z(wide)){re, M(atan2)(z.im, 1 + z.re)};
}

// On each side through the exponential that cannot overflow: 1 / (1 + e) or e / (1 + e), whose imaginary parts are -im
// e and im e over |1 + e|^2.
static Z(wide) Z(logistic)(Z(wide) z) {
  bool right = z.re >= 0;
  Z(wide) e = MC(exp, ((Z(wide)){right ? -z.re : z.re, right ? -z.im : z.im})), den = {1 + e.re, e.im};
  if (!Z(finite)(e)) return Z(quotient)(right ? (Z(wide)){1, 0} : e, den);
  W square = e.im * e.im, norm = den.re * den.re + square;
  if (right) return (Z(wide)){den.re / norm, -e.im / norm};
  return (Z(wide)){(square == 0 ? e.re * den.re : e.re * den.re + square) / norm, e.im / norm}; // -0 + 0 is +0
}

static Z(wide) Z(rsqrt)(Z(wide) z) {
  if (z.re == 0 && z.im == 0) return (Z(wide)){INFINITY, NAN};
  if (isinf((double)z.re) || isinf((double)z.im)) return (Z(wide)){0, -copysign(0, (double)z.im)};
  Z(wide) s = MC(sqrt, z);
  W norm = M(hypot)(z.re, z.im); // |s|^2
  return (Z(wide)){s.re / norm, -s.im / norm};
}

static Z(wide) Z(sign)(Z(wide) z) {
  if (z.re == 0 && z.im == 0) return z;
  W size = M(hypot)(z.re, z.im);
  return (Z(wide)){z.re / size, z.im / size};
}

static Z(wide) Z(power)(Z(wide) x, Z(wide) y) {
  if (y.re == 0 && y.im == 0) return (Z(wide)){1, 0};
  if (x.re == 0 && x.im == 0 && y.re > 0) return (Z(wide)){0, 0};
  Z(wide) l = MC(log, x);
  return MC(exp, ((Z(wide)){l.re * y.re - l.im * y.im, l.re * y.im + l.im * y.re}));
}

// -i log((x + iy) / sqrt(x^2 + y^2)), which loses all where it is small; so there it only says whether the result is
// atan(y / x), or on the other side of 0 and pi less. Next to the poles, where y / x is i or -i, it is the other way
// round: of x + iy and x - iy nothing is lost, of the quotient's distance from the pole half of all bits.
static Z(wide) Z(atan2)(Z(wide) y, Z(wide) x) {
  const W pi = M(atan2)(0, -1);
  if (x.im == 0 && y.im == 0) return (Z(wide)){M(atan2)(y.re, x.re), 0};
  Z(wide) sum = {x.re - y.im, x.im + y.re}, other = {x.re + y.im, x.im - y.re};
  if (sum.re == 0 && sum.im == 0) return (Z(wide)){NAN, INFINITY};
  if (other.re == 0 && other.im == 0) return (Z(wide)){NAN, -INFINITY};
  Z(wide) squares = {sum.re * other.re - sum.im * other.im, 2 * (x.re * x.im + y.re * y.im)};
  Z(wide) l = MC(log, Z(quotient)(sum, MC(sqrt, squares))), rough = {l.im, -l.re}, q = Z(quotient)(y, x);
  W distance = M(hypot)(q.re, (q.im < 0 ? -q.im : q.im) - 1);
  bool next = 1 + distance * distance == 1;
  if (!Z(finite)(q) || !Z(finite)(rough) || next) return rough;
  Z(wide) a = MC(atan, q);
  if (M(cos)(rough.re - a.re) < 0) a.re += signbit((double)a.re) ? pi : -pi;
  return a;
}

// 10^x (cos t + i sin t) with t = y ln 10, whose pieces are exact: their angles are added as products.
static Z(wide) Z(exp10)(Z(wide) z) {
  if (!isfinite((double)z.im)) return MC(exp, z); // the same limits
  W size = M(exp10)(z.re), c = 1, s = 0;
  if (fabs((double)z.im) < 0x1p-64) return (Z(wide)){size, z.im == 0 ? z.im : size * (z.im * M(log)(10))};
  double scale = 1;
  for (int i = 0; i < LN10_PIECES && fabs((double)z.im) * scale > 0x1p-160; i++, scale *= 0x1p-40) {
    __float128 t = (__float128)z.im * ln10_pieces[i] * scale;
    W ct = (W)cosf128(t), st = (W)sinf128(t), next = c * ct - s * st;
    s = s * ct + c * st;
    c = next;
  }
  return (Z(wide)){size * c, z.im == 0 ? z.im : size * s};
}

static Z(wide) Z(function)(kl_op op, Z(wide) z) {
  switch (op) {
  case KL_OP_EXP: return MC(exp, z);
  case KL_OP_EXPM1: return Z(expm1)(z);
  case KL_OP_LOG: return MC(log, z);
  case KL_OP_LOG1P: return Z(log1p)(z);
  case KL_OP_LOGISTIC: return Z(logistic)(z);
  case KL_OP_TANH: return MC(tanh, z);
  case KL_OP_SQRT: return MC(sqrt, z);
  case KL_OP_RSQRT: return Z(rsqrt)(z);
  case KL_OP_SIN: return MC(sin, z);
  case KL_OP_COS: return MC(cos, z);
  case KL_OP_TAN: return MC(tan, z);
  case KL_OP_EXP10: return Z(exp10)(z);
  case KL_OP_SINH: return MC(sinh, z);
  case KL_OP_COSH: return MC(cosh, z);
  case KL_OP_ASIN: return MC(asin, z);
  case KL_OP_ACOS: return MC(acos, z);
  case KL_OP_ATAN: return MC(atan, z);
  case KL_OP_ASINH: return MC(asinh, z);
  case KL_OP_ACOSH: return MC(acosh, z);
  case KL_OP_ATANH: return MC(atanh, z);
  case KL_OP_SIGN: return Z(sign)(z);
  default: return z;
  }
}

// --- loops --------------------------------------------------------------------------------------------------------

#define ARITHMETIC_LOOP(OP)                                                                                            \
  static void Z(run_##OP)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                             \
    const Z(part) *a = in[0], *b = in[1];                                                                              \
    Z(part) *o = out;                                                                                                  \
    for (int64_t i = 0; i < n; i++) o[i] = Z(arithmetic)(KL_OP_##OP, a[i], b[i]);                                      \
  }
ARITHMETIC_LOOP(ADD)
ARITHMETIC_LOOP(SUBTRACT)
ARITHMETIC_LOOP(MULTIPLY)
ARITHMETIC_LOOP(DIVIDE)
ARITHMETIC_LOOP(MAXIMUM)
ARITHMETIC_LOOP(MINIMUM)
#undef ARITHMETIC_LOOP

static void Z(run_clamp)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *lo = in[0], *x = in[1], *hi = in[2];
  Z(part) *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = Z(arithmetic)(KL_OP_MINIMUM, Z(arithmetic)(KL_OP_MAXIMUM, lo[i], x[i]), hi[i]);
}

static void Z(run_negate)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const P *a = in[0];
  P *o = out;
  for (int64_t i = 0; i < 2 * n; i++) o[i] = -a[i];
}

static void Z(run_real)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *a = in[0];
  P *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = a[i].re;
}

static void Z(run_imag)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *a = in[0];
  P *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = a[i].im;
}

static void Z(run_make)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const P *re = in[0], *im = in[1];
  Z(part) *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = (Z(part)){re[i], im[i]};
}

static void Z(run_abs)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *a = in[0];
  P *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = (P)M(hypot)(a[i].re, a[i].im);
}

static void Z(run_function)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *a = in[0];
  Z(part) *o = out;
  for (int64_t i = 0; i < n; i++) {
    Z(wide) z = Z(function)(e->op, (Z(wide)){a[i].re, a[i].im});
    o[i] = (Z(part)){(P)z.re, (P)z.im};
  }
}

static void Z(run_function2)(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const Z(part) *a = in[0], *b = in[1];
  Z(part) *o = out;
  for (int64_t i = 0; i < n; i++) {
    Z(wide) x = {a[i].re, a[i].im}, y = {b[i].re, b[i].im};
    Z(wide) z = e->op == KL_OP_POWER ? Z(power)(x, y) : Z(atan2)(x, y);
    o[i] = (Z(part)){(P)z.re, (P)z.im};
  }
}

static kl_ew_run *Z(select)(kl_op op) {
  switch (op) {
  case KL_OP_ADD: return Z(run_ADD);
  case KL_OP_SUBTRACT: return Z(run_SUBTRACT);
  case KL_OP_MULTIPLY: return Z(run_MULTIPLY);
  case KL_OP_DIVIDE: return Z(run_DIVIDE);
  case KL_OP_MAXIMUM: return Z(run_MAXIMUM);
  case KL_OP_MINIMUM: return Z(run_MINIMUM);
  case KL_OP_CLAMP: return Z(run_clamp);
  case KL_OP_NEGATE: return Z(run_negate);
  case KL_OP_REAL: return Z(run_real);
  case KL_OP_IMAG: return Z(run_imag);
  case KL_OP_COMPLEX: return Z(run_make);
  case KL_OP_ABS: return Z(run_abs);
  case KL_OP_EXP:
  case KL_OP_EXPM1:
  case KL_OP_LOG:
  case KL_OP_LOG1P:
  case KL_OP_LOGISTIC:
  case KL_OP_TANH:
  case KL_OP_SQRT:
  case KL_OP_RSQRT:
  case KL_OP_SIN:
  case KL_OP_COS:
  case KL_OP_TAN:
  case KL_OP_EXP10:
  case KL_OP_SINH:
  case KL_OP_COSH:
  case KL_OP_ASIN:
  case KL_OP_ACOS:
  case KL_OP_ATAN:
  case KL_OP_ASINH:
  case KL_OP_ACOSH:
  case KL_OP_ATANH:
  case KL_OP_SIGN: return Z(run_function);
  case KL_OP_POWER:
  case KL_OP_ATAN2: return Z(run_function2);
  default: return NULL;
  }
}

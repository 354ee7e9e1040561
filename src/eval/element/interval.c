// Intervals of elementwise ops. Where an op is monotone in each operand by itself, its values over a box lie between
// its values at the corners, and rounding is monotone too: so the op itself is run on the corners. Ops that are not
// monotone everywhere have a check that opens the element (anything is right) where their corners prove nothing.
// Elementary functions are widened afterwards by their stated bound.
//
// NaN: a result is open if it is NaN at one corner and a number at another, or if NaN was born somewhere inside an
// interval in a way that corners cannot see.
#include "eval/element/interval.h"

#include <math.h>

const size_t kl_iv_scratch_size = sizeof(kl_iv_scratch);

// --- keys ---------------------------------------------------------------------------------------------------------

int64_t kl_iv_key(kl_dtype t, uint64_t bits) {
  const kl_dtype_info *f = kl_info(t);
  if (f->cls != KL_CLASS_FLOAT) return t == KILN_U64 ? (int64_t)(bits ^ 1ull << 63) : kl_int_decode(t, bits);
  if (kl_float_is_nan(t, bits)) return KL_KEY_NAN;
  if (f->kind == KL_E8M0) return (int64_t)bits;
  uint64_t sign = 1ull << (f->exp_bits + f->man_bits);
  return bits & sign ? -1 - (int64_t)(bits ^ sign) : (int64_t)bits;
}

uint64_t kl_iv_key_bits(kl_dtype t, int64_t key) {
  const kl_dtype_info *f = kl_info(t);
  if (f->cls != KL_CLASS_FLOAT) return t == KILN_U64 ? (uint64_t)key ^ 1ull << 63 : (uint64_t)key & kl_int_mask(t);
  return key >= 0 ? (uint64_t)key : (uint64_t)(-1 - key) | 1ull << (f->exp_bits + f->man_bits);
}

#define KEY_LOOP(T, INF)                                                                                               \
  do {                                                                                                                 \
    const T *v = p;                                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      T sign = (T)((T)1 << (8 * sizeof(T) - 1)), a = v[i] & (T)~sign;                                                  \
      keys[i] = a > (INF) ? KL_KEY_NAN : v[i] & sign ? -1 - (int64_t)a : (int64_t)a;                                   \
    }                                                                                                                  \
  } while (0)

void kl_iv_keys(kl_dtype t, int64_t n, const void *p, int64_t *keys) {
  switch (kl_iv_part(t)) {
  case KILN_F16: KEY_LOOP(uint16_t, 0x7c00); break;
  case KILN_BF16: KEY_LOOP(uint16_t, 0x7f80); break;
  case KILN_F32:
    n *= kl_iv_lanes(t);
    KEY_LOOP(uint32_t, 0x7f800000u);
    break;
  case KILN_F64:
    n *= kl_iv_lanes(t);
    KEY_LOOP(uint64_t, 0x7ff0000000000000ull);
    break;
  default:
    for (int64_t i = 0; i < n; i++) keys[i] = kl_iv_key(t, kl_element_get(t, p, i, 0));
  }
}

#define STORE_LOOP(T)                                                                                                  \
  do {                                                                                                                 \
    T *v = (T *)p, sign = (T)((T)1 << (8 * sizeof(T) - 1));                                                            \
    for (int64_t j = 0; j < n * lanes; j++)                                                                            \
      if (s->seen[j] & KL_IV_NUMBER && !s->open[lanes == 1 ? j : j / 2])                                               \
        v[j] = keys[j] >= 0 ? (T)keys[j] : (T)((T)(-1 - keys[j]) | sign);                                              \
  } while (0)

// Keys as patterns; NaN and open elements follow the data.
static void store_keys(kl_dtype t, const kl_iv_scratch *s, int64_t n, const int64_t *keys, const char *data, char *p) {
  int lanes = kl_iv_lanes(t);
  memcpy(p, data, (size_t)n * kl_ev_size(t));
  switch (kl_iv_part(t)) {
  case KILN_F16:
  case KILN_BF16: STORE_LOOP(uint16_t); break;
  case KILN_F32: STORE_LOOP(uint32_t); break;
  case KILN_F64: STORE_LOOP(uint64_t); break;
  default:
    for (int64_t i = 0; i < n; i++)
      if (s->seen[i] & KL_IV_NUMBER && !s->open[i]) kl_element_set(t, p, i, 0, kl_iv_key_bits(t, keys[i]));
  }
}

void kl_iv_load(kl_iv_scratch *s, int operand, kl_dtype t, int64_t n, const kl_iv_in *in) {
  kl_iv_keys(t, n, in->lo, s->in_lo[operand]);
  kl_iv_keys(t, n, in->hi, s->in_hi[operand]);
}

// --- corners ------------------------------------------------------------------------------------------------------

static void take_keys(kl_iv_scratch *s, int64_t n, bool is_float) {
  for (int64_t j = 0; j < n; j++) {
    int64_t k = s->key[j];
    if (is_float && k == KL_KEY_NAN) {
      s->seen[j] |= KL_IV_NAN;
      continue;
    }
    bool first = !(s->seen[j] & KL_IV_NUMBER);
    s->lo[j] = first || k < s->lo[j] ? k : s->lo[j];
    s->hi[j] = first || k > s->hi[j] ? k : s->hi[j];
    s->seen[j] |= KL_IV_NUMBER;
  }
}

void kl_iv_start(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_out *out) {
  int lanes = kl_iv_lanes(e->out);
  memset(s->seen, 0, (size_t)(n * lanes));
  kl_iv_keys(e->out, n, out->data, s->key);
  take_keys(s, n * lanes, kl_is_float(kl_iv_part(e->out)));
}

void kl_iv_take(const kl_ew *e, kl_iv_scratch *s, int64_t n, const void *const in[3]) {
  e->run(e, n, in, s->a);
  kl_iv_keys(e->out, n, s->a, s->key);
  take_keys(s, n * kl_iv_lanes(e->out), kl_is_float(kl_iv_part(e->out)));
}

// Absent operands have no planes, and so count as exact.
static void corners(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  unsigned inexact = 0;
  for (int k = 0; k < 3; k++) inexact |= (unsigned)(in[k].lo != in[k].data || in[k].hi != in[k].data) << k;
  for (unsigned corner = 0; inexact && corner < 8; corner++) {
    if (corner & ~inexact) continue;
    const void *at[3];
    for (int k = 0; k < 3; k++) at[k] = corner >> k & 1 ? in[k].hi : in[k].lo;
    kl_iv_take(e, s, n, at);
  }
}

#define EQUAL_LOOP(T)                                                                                                  \
  case sizeof(T):                                                                                                      \
    for (int64_t i = 0; i < n; i++) point[i] &= ((const T *)lo)[i] == ((const T *)hi)[i];                              \
    break;

static void keep_equal(size_t size, int64_t n, const void *lo, const void *hi, uint8_t *point) {
  switch (size) {
    EQUAL_LOOP(uint8_t)
    EQUAL_LOOP(uint16_t)
    EQUAL_LOOP(uint32_t)
    EQUAL_LOOP(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++)
      point[i] &= memcmp((const char *)lo + (size_t)i * size, (const char *)hi + (size_t)i * size, size) == 0;
  }
}

static void find_points(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  memset(s->open, 0, (size_t)n);
  memset(s->point, 1, (size_t)n);
  for (uint32_t k = 0; k < e->nin; k++) {
    size_t size = kl_ev_size(e->in[k]);
    bool exact = in[k].lo == in[k].data && in[k].hi == in[k].data;
    if (!exact) keep_equal(size, n, in[k].lo, in[k].hi, s->point);
    for (int64_t i = 0; i < n && in[k].any; i++) s->open[i] |= in[k].any[i];
  }
}

// --- where corners are not enough ---------------------------------------------------------------------------------

typedef enum rule {
  RULE_CORNERS,
  RULE_POINT, // nothing is known unless all operands are points
  RULE_MULTIPLY,
  RULE_DIVIDE,
  RULE_ABS,
  RULE_COSH,
  RULE_RSQRT,
  RULE_REMAINDER,
  RULE_POWER,
  RULE_INT,       // wrapping arithmetic
  RULE_INT_WIDTH, // integer to integer
  RULE_TO_PRED,
  RULE_COMPARE,
  RULE_FINITE,
  RULE_WAVE, // sine, cosine
  RULE_COMPLEX_ABS,
  RULE_COMPLEX_PRODUCT,
  RULE_SELECT,
} rule;

static rule int_rule(kl_op op) {
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
  case KL_OP_MULTIPLY:
  case KL_OP_DIVIDE:
  case KL_OP_NEGATE:
  case KL_OP_ABS: return RULE_INT;
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_CLAMP:
  case KL_OP_NOT:
  case KL_OP_SIGN: return RULE_CORNERS;
  default: return RULE_POINT;
  }
}

static rule float_rule(kl_op op) {
  switch (op) {
  case KL_OP_MULTIPLY: return RULE_MULTIPLY;
  case KL_OP_DIVIDE: return RULE_DIVIDE;
  case KL_OP_ABS: return RULE_ABS;
  case KL_OP_COSH: return RULE_COSH;
  case KL_OP_RSQRT: return RULE_RSQRT;
  case KL_OP_REMAINDER: return RULE_REMAINDER;
  case KL_OP_POWER: return RULE_POWER;
  case KL_OP_IS_FINITE: return RULE_FINITE;
  case KL_OP_SIN:
  case KL_OP_COS: return RULE_WAVE;
  case KL_OP_TAN:
  case KL_OP_ATAN2: return RULE_POINT;
  default: return RULE_CORNERS;
  }
}

static rule complex_rule(kl_op op) {
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
  case KL_OP_NEGATE:
  case KL_OP_REAL:
  case KL_OP_IMAG: return RULE_CORNERS;
  case KL_OP_MULTIPLY:
  case KL_OP_DIVIDE: return RULE_COMPLEX_PRODUCT;
  case KL_OP_ABS: return RULE_COMPLEX_ABS;
  default: return RULE_POINT;
  }
}

static rule rule_of(const kl_ew *e) {
  kl_dtype from = e->in[0];
  switch (e->op) {
  case KL_OP_COPY: return RULE_CORNERS;
  case KL_OP_SELECT: return RULE_SELECT;
  case KL_OP_COMPARE: return kl_is_complex(from) ? RULE_POINT : RULE_COMPARE;
  case KL_OP_CONVERT:
    if (e->out == KILN_PRED) return kl_is_complex(from) ? RULE_POINT : RULE_TO_PRED;
    return kl_is_int(from) && kl_is_int(e->out) ? RULE_INT_WIDTH : RULE_CORNERS;
  default: break;
  }
  // All two values of pred are corners.
  if (from == KILN_PRED) return RULE_CORNERS;
  return kl_is_int(from) ? int_rule(e->op) : kl_is_float(from) ? float_rule(e->op) : complex_rule(e->op);
}

static __int128 int_value(kl_dtype t, int64_t key) {
  return t == KILN_U64 ? (__int128)key + ((__int128)1 << 63) : key;
}

static bool int_fits(kl_dtype t, __int128 v) {
  int bits = kl_info(t)->bits;
  __int128 least = kl_is_signed(t) ? -((__int128)1 << (bits - 1)) : 0, span = (__int128)1 << bits;
  return v >= least && v < least + span;
}

// Does the exact result leave the type at some corner?
static bool int_wraps(const kl_ew *e, const kl_iv_scratch *s, int64_t i) {
  kl_dtype t = e->in[0];
  for (unsigned corner = 0; corner < 1u << e->nin; corner++) {
    __int128 x = int_value(t, corner & 1 ? s->in_hi[0][i] : s->in_lo[0][i]), r = x;
    __int128 y = e->nin == 2 ? int_value(t, corner & 2 ? s->in_hi[1][i] : s->in_lo[1][i]) : 0;
    switch (e->op) {
    case KL_OP_ADD: r = x + y; break;
    case KL_OP_SUBTRACT: r = x - y; break;
    case KL_OP_MULTIPLY:
      if (__builtin_mul_overflow(x, y, &r)) return true;
      break;
    case KL_OP_DIVIDE: r = y ? x / y : x; break;
    case KL_OP_NEGATE: r = -x; break;
    default: r = x < 0 ? -x : x; break;
    }
    if (!int_fits(t, r)) return true;
  }
  return false;
}

static bool int_has_zero(kl_dtype t, const kl_iv_scratch *s, int operand, int64_t i) {
  return int_value(t, s->in_lo[operand][i]) <= 0 && int_value(t, s->in_hi[operand][i]) >= 0;
}

static bool int_open(const kl_ew *e, kl_iv_scratch *s, int64_t i) {
  kl_dtype t = e->in[0];
  bool zero = int_has_zero(t, s, (int)e->nin - 1, i);
  if (e->op == KL_OP_DIVIDE && zero) return true;
  if (e->op == KL_OP_ABS && zero) s->lo[i] = kl_iv_key(t, 0);
  return int_wraps(e, s, i);
}

int64_t kl_iv_infinity(kl_dtype t) {
  const kl_dtype_info *f = kl_info(t);
  return f->kind == KL_IEEE ? (int64_t)(((1ull << f->exp_bits) - 1) << f->man_bits) : INT64_MAX;
}

static int64_t one_key(kl_dtype t) {
  return kl_iv_key(t, kl_float_encode(t, 1));
}

static bool has_infinity(kl_dtype t, const kl_iv_scratch *s, int operand, int64_t i) {
  int64_t inf = kl_iv_infinity(t);
  return s->in_hi[operand][i] >= inf || s->in_lo[operand][i] <= -1 - inf;
}

// x rem y moves with x as long as the truncated quotient stays; a jump inside an interval shorter than |y| shows as a
// decrease.
static bool remainder_open(const kl_ew *e, const kl_iv_scratch *s, int64_t i) {
  kl_dtype t = e->in[0];
  if (s->in_lo[1][i] != s->in_hi[1][i] || has_infinity(t, s, 0, i)) return true;
  double lo = kl_float_decode(t, kl_iv_key_bits(t, s->in_lo[0][i]));
  double hi = kl_float_decode(t, kl_iv_key_bits(t, s->in_hi[0][i]));
  double y = __builtin_fabs(kl_float_decode(t, kl_iv_key_bits(t, s->in_lo[1][i])));
  return !(hi - lo < y && __builtin_fmod(lo, y) <= __builtin_fmod(hi, y));
}

static bool open_by_rule(rule r, const kl_ew *e, kl_iv_scratch *s, int64_t i) {
  kl_dtype t = e->in[0];
  if (r == RULE_INT) return int_open(e, s, i);
  if (r == RULE_INT_WIDTH)
    return !int_fits(e->out, int_value(t, s->in_lo[0][i])) || !int_fits(e->out, int_value(t, s->in_hi[0][i]));
  if (kl_is_float(t) && (kl_iv_is_nan(s, 0, i) || (e->nin == 2 && kl_iv_is_nan(s, 1, i)))) return r == RULE_POWER;
  switch (r) {
  case RULE_MULTIPLY:
    return (kl_iv_has_zero(s, 0, i) && has_infinity(t, s, 1, i)) ||
           (kl_iv_has_zero(s, 1, i) && has_infinity(t, s, 0, i));
  case RULE_DIVIDE: return kl_iv_has_zero(s, 1, i);
  case RULE_ABS:
    if (kl_iv_has_zero(s, 0, i)) s->lo[i] = 0;
    return false;
  case RULE_COSH:
    if (kl_iv_has_zero(s, 0, i)) s->lo[i] = one_key(t);
    return false;
  case RULE_RSQRT: return kl_iv_has_zero(s, 0, i);
  case RULE_REMAINDER: return remainder_open(e, s, i);
  case RULE_POWER: return s->in_lo[0][i] <= 0 || has_infinity(t, s, 0, i) || has_infinity(t, s, 1, i);
  case RULE_TO_PRED:
    if (kl_is_float(t) ? kl_iv_has_zero(s, 0, i) : int_has_zero(t, s, 0, i)) s->lo[i] = 0;
    return false;
  default: return false;
  }
}

static bool needs_operands(rule r) {
  return r >= RULE_MULTIPLY && r <= RULE_TO_PRED;
}

// NaN at every corner is certain if an operand is NaN, or if a one-operand op has its interval on one side of zero,
// since no such op is NaN both at and beyond a number of that side.
static bool nan_open(const kl_ew *e, kl_iv_scratch *s, int64_t i) {
  if (kl_iv_is_nan(s, 0, i) || (e->nin >= 2 && kl_iv_is_nan(s, 1, i))) return false;
  return e->nin != 1 || (s->in_lo[0][i] < 0) != (s->in_hi[0][i] < 0);
}

static void settle_nan(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  int lanes = kl_iv_lanes(e->out);
  bool loaded = false, same_lanes = lanes == kl_iv_lanes(e->in[0]) && e->nin <= 2;
  for (int64_t j = 0; j < n * lanes; j++) {
    int64_t i = j / lanes;
    if (!(s->seen[j] & KL_IV_NAN) || s->point[i] || s->open[i]) continue;
    if (s->seen[j] & KL_IV_NUMBER) {
      s->open[i] = 1;
      continue;
    }
    if (!same_lanes || !kl_is_float(kl_iv_part(e->in[0]))) continue;
    for (uint32_t k = 0; k < e->nin && !loaded; k++) kl_iv_load(s, (int)k, e->in[k], n, &in[k]);
    loaded = true;
    s->open[i] = nan_open(e, s, j);
  }
}

// --- widening -----------------------------------------------------------------------------------------------------

static bool special(int64_t key, int64_t inf) {
  return key == 0 || key == -1 || key == inf || key == -1 - inf;
}

// Points where functions are exact by contract.
static bool exact_at(const kl_ew *e, const kl_iv_scratch *s, int64_t i, int64_t inf, int64_t one) {
  if (!s->point[i] || kl_is_complex(e->in[0])) return false;
  int64_t x = s->in_lo[0][i];
  if (e->fast && e->in[0] == KILN_F32 && (x == 0 || x == -1)) { // 1 and 1/2 come from an approximation
    if (e->op == KL_OP_EXP || e->op == KL_OP_EXP10 || e->op == KL_OP_LOGISTIC || e->op == KL_OP_COS) return false;
    if (e->op == KL_OP_COSH) return false;
  }
  if (special(x, inf) || (e->nin == 2 && special(s->in_lo[1][i], inf))) return true;
  switch (e->op) {
  case KL_OP_LOG: return x == one && kl_op_bound(e->op, e->in[0], e->fast).absolute == 0;
  case KL_OP_POWER:
  case KL_OP_ACOS:
  case KL_OP_ACOSH: return x == one;
  case KL_OP_ATANH: return x == one || x == -1 - one;
  default: return false;
  }
}

// What a function of real numbers keeps to: from -bottom to top, and from `least` up where it is positive. As keys.
typedef struct range {
  int64_t bottom, top, least;
} range;

static range range_of(const kl_ew *e, int64_t inf, int64_t one) {
  kl_dtype t = kl_iv_part(e->out);
  int64_t pi = kl_iv_key(t, kl_float_encode(t, M_PI)), half = kl_iv_key(t, kl_float_encode(t, M_PI_2));
  switch (kl_is_complex(e->out) ? KL_OP_UNKNOWN : e->op) {
  case KL_OP_TANH:
  case KL_OP_ERF:
  case KL_OP_LOGISTIC:
  case KL_OP_SIN:
  case KL_OP_COS: return (range){one, one, 0};
  case KL_OP_EXPM1: return (range){one, inf, 0};
  case KL_OP_ASIN:
  case KL_OP_ATAN: return (range){half, half, 0};
  case KL_OP_ACOS:
  case KL_OP_ATAN2: return (range){pi, pi, 0};
  case KL_OP_COSH: return (range){inf, inf, one};
  default: return (range){inf, inf, 0};
  }
}

// Magnitudes `near` and `far` of an interval on one side of zero: how many values below `near` a result may lie. With
// the exact result in [2^k, 2^(k+1)) the bound is bound * 2^(k-man); values below 2^k lie twice as close. If the
// interval meets several binades, a higher one may reach below `near`.
static int64_t inner_steps(int64_t near, int64_t far, double bound, int man_bits) {
  int64_t above = near & ((1ll << man_bits) - 1), plain = (int64_t)(bound + 0.5);
  if (near >> man_bits != far >> man_bits) return (int64_t)(2 * bound + 1);
  return above >= plain ? plain : above + (int64_t)(2 * bound + 1 - 2 * (double)above);
}

static int64_t moved(kl_dtype t, int64_t key, double by) {
  uint64_t bits = kl_float_encode(t, kl_float_decode(t, kl_iv_key_bits(t, key)) + by);
  return kl_iv_key(t, kl_float_next(t, bits, by > 0));
}

static void widen(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], kl_bound b) {
  double bound = b.ulps;
  kl_dtype part = kl_iv_part(e->out);
  const kl_dtype_info *f = kl_info(part);
  int lanes = kl_iv_lanes(e->out);
  int64_t inf = kl_iv_infinity(part), one = one_key(part), outer = (int64_t)(bound + 0.5);
  range r = range_of(e, inf, one);
  for (uint32_t k = 0; k < e->nin; k++) kl_iv_load(s, (int)k, e->in[k], n, &in[k]);
  for (int64_t j = 0; j < n * lanes; j++) {
    if (!(s->seen[j] & KL_IV_NUMBER) || s->open[j / lanes] || exact_at(e, s, j / lanes, inf, one)) continue;
    int64_t lo = s->lo[j], hi = s->hi[j];
    if (lo >= 0) {
      int64_t steps = inner_steps(lo, hi, bound, f->man_bits);
      s->lo[j] = lo - steps > r.least ? lo - steps : r.least;
    } else {
      s->lo[j] = lo - outer < -1 - r.bottom ? -1 - r.bottom : lo - outer;
    }
    if (hi < 0) {
      int64_t steps = inner_steps(-1 - hi, -1 - lo, bound, f->man_bits);
      s->hi[j] = hi + steps > -1 ? -1 : hi + steps;
    } else {
      s->hi[j] = hi + outer > r.top ? r.top : hi + outer;
    }
    if (b.absolute == 0) continue;
    int64_t least = moved(part, lo, -b.absolute), most = moved(part, hi, b.absolute);
    if (least < s->lo[j]) s->lo[j] = least < -1 - r.bottom ? -1 - r.bottom : least;
    if (most > s->hi[j]) s->hi[j] = most > r.top ? r.top : most;
  }
}

// --- the whole ----------------------------------------------------------------------------------------------------

bool kl_iv_widens(const kl_ew *e) {
  return kl_op_bound(e->op, e->in[0], e->fast).ulps > 0;
}

static void finish(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_out *out) {
  store_keys(e->out, s, n, s->lo, out->data, out->lo);
  store_keys(e->out, s, n, s->hi, out->data, out->hi);
  if (e->out == KILN_PRED) {
    memset(out->any, 0, (size_t)n);
    for (int64_t i = 0; i < n; i++)
      if (s->open[i]) out->lo[i] = 0, out->hi[i] = 1;
  } else {
    memcpy(out->any, s->open, (size_t)n);
  }
}

static void by_corners(rule r, const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  corners(e, s, n, in);
  if (!needs_operands(r)) return;
  for (uint32_t k = 0; k < e->nin; k++) kl_iv_load(s, (int)k, e->in[k], n, &in[k]);
  for (int64_t i = 0; i < n; i++)
    if (!s->point[i] && !s->open[i]) s->open[i] = open_by_rule(r, e, s, i);
}

static bool is_one_value(const kl_ew *e, const kl_iv_in in[3]) {
  return e->nin == 2 && e->in[0] == e->in[1] && in[0].data == in[1].data && in[0].lo == in[1].lo &&
         in[0].hi == in[1].hi && in[0].any == in[1].any;
}

static void by_rule(rule r, const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3],
                    const bool nan_open_in[3], const kl_iv_out *out) {
  switch (r) {
  case RULE_POINT:
    for (int64_t i = 0; i < n; i++) s->open[i] |= !s->point[i];
    break;
  case RULE_COMPARE: kl_iv_compare(e, s, n, in, nan_open_in, out); break;
  case RULE_FINITE: kl_iv_finite(e, s, n, in); break;
  case RULE_WAVE: kl_iv_wave(e, s, n, in, out); break;
  case RULE_COMPLEX_ABS: kl_iv_complex_abs(e, s, n, in); break;
  case RULE_COMPLEX_PRODUCT:
    kl_iv_load(s, 0, e->in[0], n, &in[0]);
    kl_iv_load(s, 1, e->in[1], n, &in[1]);
    kl_iv_complex_product(e, s, n);
    break;
  default: by_corners(r, e, s, n, in); break;
  }
}

void kl_iv_run(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const bool nan_open_in[3],
               const kl_iv_out *out) {
  const void *data[3] = {in[0].data, in[1].data, in[2].data};
  e->run(e, n, data, out->data);
  rule r = rule_of(e);
  if (r == RULE_SELECT) {
    kl_iv_select(e, s, n, in, out);
    return;
  }
  find_points(e, s, n, in);
  kl_iv_start(e, s, n, out);
  if (!is_one_value(e, in) || !kl_iv_same(e, s, n, &in[0])) by_rule(r, e, s, n, in, nan_open_in, out);
  settle_nan(e, s, n, in);
  kl_bound b = kl_op_bound(e->op, e->in[0], e->fast);
  double bound = b.ulps;
  if (bound > 0 && kl_is_complex(e->out)) kl_iv_complex_corners(e, s, n, in, out);
  if (bound > 0 && kl_op_bound_is_normwise(e->op, e->in[0]))
    kl_iv_complex_function(e, s, n, in, out, bound);
  else if (bound > 0)
    widen(e, s, n, in, b);
  finish(e, s, n, out);
}

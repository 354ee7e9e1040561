// Intervals of ops on one value twice: f(y, y) is a function of y alone, of which less is open than of two values.
#include "eval/element/interval.h"

typedef enum same_rule {
  SAME_NONE,    // nothing but what holds for two values
  SAME_KNOWN,   // one result for every y, NaN and all
  SAME_ORDERED, // one result for every y that is no NaN, and one for NaN
  SAME_FINITE,  // one result for every y that is finite, and NaN for NaN
  SAME_NONZERO, // likewise, y not zero
  SAME_SIGNED,  // one result for every y of one sign, zero aside
  SAME_ENDS,    // monotone in y
  SAME_SQUARE,  // y * y
} same_rule;

static same_rule compare_rule(const kl_ew *e) {
  bool ordered = !kl_is_float(e->in[0]) && !kl_is_complex(e->in[0]);
  ordered |= kl_is_float(e->in[0]) && e->compare == KL_CMP_TOTALORDER;
  return ordered || e->direction == KL_LT || e->direction == KL_GT ? SAME_KNOWN : SAME_ORDERED;
}

static same_rule int_rule(kl_op op) {
  switch (op) {
  case KL_OP_SUBTRACT:
  case KL_OP_XOR:
  case KL_OP_REMAINDER: return SAME_KNOWN;
  case KL_OP_AND:
  case KL_OP_OR: return SAME_ENDS;
  default: return SAME_NONE; // maximum, minimum and add gain nothing, and products may wrap
  }
}

static same_rule pred_rule(kl_op op) {
  return op == KL_OP_XOR ? SAME_KNOWN : SAME_NONE;
}

static same_rule float_rule(kl_op op) {
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM: return SAME_ENDS;
  case KL_OP_SUBTRACT: return SAME_FINITE;
  case KL_OP_DIVIDE:
  case KL_OP_REMAINDER: return SAME_NONZERO; // of y's sign the remainder is a zero
  case KL_OP_ATAN2: return SAME_SIGNED;
  case KL_OP_MULTIPLY: return SAME_SQUARE;
  default: return SAME_NONE;
  }
}

static same_rule complex_rule(kl_op op) {
  switch (op) {
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM: return SAME_ENDS;
  case KL_OP_SUBTRACT: return SAME_FINITE;
  default: return SAME_NONE;
  }
}

static same_rule rule_of(const kl_ew *e) {
  kl_dtype t = e->in[0];
  if (e->op == KL_OP_COMPARE) return compare_rule(e);
  if (e->op == KL_OP_COMPLEX) return SAME_NONE;
  if (t == KILN_PRED) return pred_rule(e->op);
  return kl_is_int(t) ? int_rule(e->op) : kl_is_float(t) ? float_rule(e->op) : complex_rule(e->op);
}

// Is the result the same for all that y's element may be? Its own, since NaN is known to be NaN.
static bool is_constant(same_rule r, kl_dtype t, const kl_iv_scratch *s, int64_t i) {
  int64_t inf = kl_iv_infinity(kl_iv_part(t));
  int lanes = kl_iv_lanes(t);
  for (int64_t j = i * lanes; j < (i + 1) * lanes; j++) {
    if (kl_iv_is_nan(s, 0, j)) continue;
    if (r != SAME_SIGNED && (s->in_hi[0][j] >= inf || s->in_lo[0][j] <= -1 - inf)) return false;
    if (r != SAME_FINITE && kl_iv_has_zero(s, 0, j)) return false;
  }
  return true;
}

static void take_ends(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in *in) {
  kl_iv_take(e, s, n, (const void *const[3]){in->lo, in->lo, NULL});
  kl_iv_take(e, s, n, (const void *const[3]){in->hi, in->hi, NULL});
}

bool kl_iv_same(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in *in) {
  same_rule r = rule_of(e);
  switch (r) {
  case SAME_NONE: return false;
  case SAME_KNOWN: memset(s->open, 0, (size_t)n); return true;
  case SAME_ORDERED: return true; // an open y may be NaN
  default: break;
  }
  if (r == SAME_ENDS || r == SAME_SQUARE) take_ends(e, s, n, in);
  if (r == SAME_ENDS) return true;
  kl_iv_load(s, 0, e->in[0], n, in);
  for (int64_t i = 0; i < n; i++) {
    if (s->point[i] || s->open[i]) continue;
    if (r != SAME_SQUARE)
      s->open[i] = !is_constant(r, e->in[0], s, i);
    else if (!kl_iv_is_nan(s, 0, i) && kl_iv_has_zero(s, 0, i))
      s->lo[i] = 0;
  }
  return true;
}

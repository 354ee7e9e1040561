// sin and cos of pairs: n = x / pi rounded to an integer, or for cos to an odd half; r = x - n pi on +-pi/2; an odd
// polynomial; the sign by n's last bit. pi comes in two parts for f16, three for bf16.

#include "lower/emit/math/half/impl.h"

enum { PI_PARTS = 3 };

// r without c[2] of pi where that is 0: f16 does not reach so far.
static kb_reg reduce(kb *k, const double *c, kb_reg x, kb_reg n) {
  for (unsigned i = 0; i < PI_PARTS && c[i] != 0; i++) x = kb_fma(k, n, kb_flike(k, n, c[i]), x);
  return x;
}

static kb_reg odd_polynomial(kb *k, const double *c, kb_reg r) {
  kb_reg s = kb_fmul(k, r, r);
  unsigned n = c[3] != 0 ? 4 : 3;
  return kb_fmul(k, r, kb_fma(k, kh_horner(k, s, c, n), s, kb_flike(k, r, 1)));
}

static kb_reg with_sign(kb *k, kb_reg y, kb_reg sign) {
  return kb_bitcast(k, kb_xor(k, kb_bitcast(k, y, KB_I32, 1), sign), KB_F32, 1);
}

static kb_reg sin_of(kb *k, const double *c, kb_reg x) {
  const double magic = 0x1.8p23;
  kb_reg t = kh_fmai(k, x, c[0], magic), n = kb_faddi(k, t, -magic);
  kb_reg y = odd_polynomial(k, c + 1 + PI_PARTS, reduce(k, c + 1, x, n));
  return with_sign(k, y, kb_shli(k, kb_bitcast(k, t, KB_I32, 1), 31));
}

// With half the magic the last bit of t counts halves: rounded down and set, it makes the odd half next to x / pi. All
// but the bit is negated, which puts the sign right.
static kb_reg cos_of(kb *k, const double *c, kb_reg x) {
  const double magic = 0x1.8p22;
  kb_reg t = kb_fma_down(k, x, kb_flike(k, x, c[0]), kb_flike(k, x, magic));
  kb_reg u = kb_or(k, kb_bitcast(k, t, KB_I32, 1), kb_int(k, KB_I32, 1, 1));
  kb_reg n = kb_fsub(k, kb_flike(k, x, magic), kb_bitcast(k, u, KB_F32, 1));
  kb_reg y = odd_polynomial(k, c + 1 + PI_PARTS, reduce(k, c + 1, kb_fneg(k, x), n));
  return with_sign(k, y, kb_andi(k, kb_shli(k, u, 30), 0x80000000));
}

kb_reg kh_sin(kb *k, const double *c, const kb_reg *x) {
  kb_reg r = kh_each(k, c, *x, sin_of);
  return x->kind == KB_F16 ? kh_ending(k, r, kb_fabs(k, *x), 0x1.accp-3, 1, 1) : r;
}

kb_reg kh_cos(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, cos_of);
}

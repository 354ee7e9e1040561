// The quotient, and the functions of two numbers that are made of it.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// Of F32 in F64, where products are exact and nothing overflows: sums are rounded once.
static km_complex quotient_f32(kb *k, km_complex x, km_complex y) {
  kb_reg a = kb_fpext(k, x.re), b = kb_fpext(k, x.im), c = kb_fpext(k, y.re), d = kb_fpext(k, y.im);
  kb_reg re = kb_fma(k, a, c, kb_fmul(k, b, d)), im = kb_fma(k, b, c, kb_fneg(k, kb_fmul(k, a, d)));
  kb_reg below = kb_fma(k, c, c, kb_fmul(k, d, d)), inverse = kb_fdiv(k, kb_flike(k, below, 1), below);
  return (km_complex){kb_fptrunc(k, kb_fmul(k, re, inverse)), kb_fptrunc(k, kb_fmul(k, im, inverse))};
}

// v = mantissa 2^exponent, the mantissa with v's sign; 0 has an exponent below all others.
static km_split signed_split(kb *k, const km_consts *m, kb_reg v) {
  km_split s = km_split_of(k, m, v);
  kb_reg zero = km_is_zero(k, v);
  s.mantissa = kb_select(k, zero, v, kb_fcopysign(k, s.mantissa, v));
  s.exponent = kb_select(k, zero, kb_ilike(k, s.exponent, -4000), s.exponent);
  return s;
}

// A factor 2^(n - most) that is 0 in effect where it is far below.
static kb_reg power_below(kb *k, const km_consts *m, kb_reg n, kb_reg most) {
  kb_reg e = kb_smax(k, kb_sub(k, n, most), kb_ilike(k, n, -900));
  return km_float(k, kb_addi(k, kb_shli(k, e, m->man_bits), m->one_bits));
}

// p q + r s over 2^(most's exponent), as a sum of two with nothing lost: the products are sums of two with the
// exponents of their factors kept apart.
static km_two sum_of_products(kb *k, const km_consts *m, km_split p, km_split q, km_split r, km_split s, kb_reg *most) {
  kb_reg e = kb_add(k, p.exponent, q.exponent), f = kb_add(k, r.exponent, s.exponent);
  *most = kb_smax(k, e, f);
  km_two a = km_times(k, km_product(k, p.mantissa, q.mantissa), power_below(k, m, e, *most));
  km_two b = km_times(k, km_product(k, r.mantissa, s.mantissa), power_below(k, m, f, *most));
  km_two sum = km_total(k, (kb_reg[]){a.lo, b.lo, a.hi, b.hi}, 4);
  sum.hi = kb_select(k, km_is_zero(k, sum.hi), kb_fadd(k, a.hi, b.hi), sum.hi); // the sign of an exact zero
  return sum;
}

static kb_reg scaled_quotient(kb *k, const km_consts *m, km_two n, km_two d, kb_reg inverse, kb_reg exponent) {
  kb_reg e = kb_smax(k, kb_smin(k, exponent, kb_ilike(k, exponent, 2000)), kb_ilike(k, exponent, -2000));
  kb_reg q = km_scale(k, m, km_rounded(k, km_quotient(k, n, d, inverse)), e);
  return kb_select(k, km_is_zero(k, n.hi), n.hi, q);
}

static km_complex quotient_f64(kb *k, km_complex x, km_complex y) {
  const km_consts *m = km_consts_of(x.re);
  km_split a = signed_split(k, m, x.re), b = signed_split(k, m, x.im), c = signed_split(k, m, y.re),
           d = signed_split(k, m, y.im), minus_a = {kb_fneg(k, a.mantissa), a.exponent};
  kb_reg e, f, g;
  km_two re = sum_of_products(k, m, a, c, b, d, &e), im = sum_of_products(k, m, b, c, minus_a, d, &f);
  km_two below = sum_of_products(k, m, c, c, d, d, &g);
  kb_reg inverse = km_inverse(k, below);
  return (km_complex){scaled_quotient(k, m, re, below, inverse, kb_sub(k, e, g)),
                      scaled_quotient(k, m, im, below, inverse, kb_sub(k, f, g))};
}

// copysign(a infinite ? 1 : 0, a), of NaN plus.
static kb_reg boxed(kb *k, kb_reg a) {
  kb_reg one = kb_flike(k, a, 1), zero = kb_flike(k, a, 0);
  return kb_fcopysign(k, kb_select(k, km_is_inf(k, a), one, zero), km_unsigned_nan(k, a));
}

static kb_reg either(kb *k, kb_reg (*is)(kb *, kb_reg), km_complex z) {
  return kb_or(k, is(k, z.re), is(k, z.im));
}
static kb_reg all(kb *k, kb_reg (*is)(kb *, kb_reg), km_complex z) {
  return kb_and(k, is(k, z.re), is(k, z.im));
}

// What eval.h's rules give where an operand is not finite or the divisor is zero; rules 2 and 3 are one form: the
// product by the conjugate with one side boxed, times infinity or zero.
km_complex km_complex_divide(kb *k, km_complex x, km_complex y) {
  kb_reg inf = kb_flike(k, x.re, (double)INFINITY), zero = kb_flike(k, x.re, 0), nan = kb_flike(k, x.re, (double)NAN);
  kb_reg finite_x = all(k, km_is_finite, x), finite_y = all(k, km_is_finite, y), zero_y = all(k, km_is_zero, y);
  kb_reg one = kb_and(k, zero_y, kb_not(k, all(k, km_is_nan, x)));
  kb_reg two = kb_and(k, either(k, km_is_inf, x), finite_y), three = kb_and(k, either(k, km_is_inf, y), finite_x);
  km_complex r = x.re.kind == KB_F32 ? quotient_f32(k, x, y) : quotient_f64(k, x, y);
  kb_reg plain = kb_and(k, kb_and(k, finite_x, finite_y), kb_not(k, zero_y));
  r = km_choose(k, plain, r, (km_complex){nan, nan});

  km_complex xb = km_choose(k, two, (km_complex){boxed(k, x.re), boxed(k, x.im)}, x);
  km_complex yb = km_choose(k, two, y, (km_complex){boxed(k, y.re), boxed(k, y.im)});
  kb_reg scale = kb_select(k, two, inf, zero), s = kb_fcopysign(k, inf, y.re);
  km_complex by_box = {kb_fmul(k, scale, kb_fadd(k, kb_fmul(k, xb.re, yb.re), kb_fmul(k, xb.im, yb.im))),
                       kb_fmul(k, scale, kb_fsub(k, kb_fmul(k, xb.im, yb.re), kb_fmul(k, xb.re, yb.im)))};
  r = km_choose(k, kb_or(k, two, three), by_box, r);
  return km_choose(k, one, (km_complex){kb_fmul(k, s, x.re), kb_fmul(k, s, x.im)}, r);
}

// --- atan2 --------------------------------------------------------------------------------------------------------

// z 2^e, the greater part of z next to 1 in size; or 0.
typedef struct near_one {
  km_complex z;
  kb_reg e;
} near_one;

// Parts of F64, of which nothing that counts beside the greater one is lost. A denormal one is made larger first.
static near_one brought_near(kb *k, const km_consts *m, km_complex z) {
  kb_reg size = km_greater(k, kb_fabs(k, z.re), kb_fabs(k, z.im)), one = kb_flike(k, size, 1);
  kb_reg tiny = kb_fcmp(k, LLVMRealOLT, size, kb_flike(k, size, m->min_normal));
  kb_reg up = kb_select(k, tiny, kb_flike(k, size, 0x1p64), one);
  kb_reg field = km_field(k, m, kb_fmul(k, size, up), 1, 2 * km_bias(m) - 1), down = km_power_down(k, m, field);
  near_one r = {{kb_fmul(k, kb_fmul(k, z.re, up), down), kb_fmul(k, kb_fmul(k, z.im, up), down)},
                kb_addi(k, field, -km_bias(m))};
  r.e = kb_select(k, tiny, kb_addi(k, r.e, -64), r.e);
  return r;
}

// x + iy, each part rounded once. What is beyond all numbers is made of halves: then a bit less of the lesser part is
// nothing.
static near_one turned_sum(kb *k, const km_consts *m, km_complex x, km_complex y) {
  km_complex s = {kb_fsub(k, x.re, y.im), kb_fadd(k, x.im, y.re)};
  km_complex h = {kb_fsub(k, kb_fmuli(k, x.re, 0.5), kb_fmuli(k, y.im, 0.5)),
                  kb_fadd(k, kb_fmuli(k, x.im, 0.5), kb_fmuli(k, y.re, 0.5))};
  kb_reg beyond = either(k, km_is_inf, s);
  near_one r = brought_near(k, m, km_choose(k, beyond, h, s));
  r.e = kb_select(k, beyond, kb_addi(k, r.e, 1), r.e);
  return r;
}

// Operands in F64, and what both questions below are asked of: plus = x + iy, which is 0 for y / x = i, and minus = x -
// iy.
typedef struct operands {
  const km_consts *m;
  km_complex x, y;
  near_one plus, minus;
} operands;

static operands operands_of(kb *k, km_complex y, km_complex x) {
  operands o = {.x = x, .y = y};
  if (x.re.kind == KB_F32) {
    o.x = (km_complex){kb_fpext(k, x.re), kb_fpext(k, x.im)};
    o.y = (km_complex){kb_fpext(k, y.re), kb_fpext(k, y.im)};
  }
  o.m = km_consts_of(o.x.re);
  o.plus = turned_sum(k, o.m, o.x, o.y);
  o.minus = turned_sum(k, o.m, o.x, (km_complex){kb_fneg(k, o.y.re), kb_fneg(k, o.y.im)});
  return o;
}

// Is w = (x + iy) / sqrt(x^2 + y^2) on the other side of 0 from e^(i angle)? It is that or its opposite, so the greater
// part tells. Which root it is may hang on the sign of the square's imaginary part alone, of which therefore nothing is
// lost: products of F32 are exact in F64, and those of F64 keep their exponents apart.
static kb_reg is_opposite(kb *k, const operands *o, bool narrow, kb_reg angle) {
  const km_consts *m = o->m;
  km_complex x = o->x, y = o->y, p = o->plus.z, q = o->minus.z;
  kb_reg mixed, e = kb_ilike(k, o->plus.e, 0), zero = kb_flike(k, x.re, 0);
  if (narrow) {
    mixed = kb_fadd(k, kb_fmul(k, x.re, x.im), kb_fmul(k, y.re, y.im));
    angle = kb_fpext(k, angle);
  } else {
    km_two sum = sum_of_products(k, m, signed_split(k, m, x.re), signed_split(k, m, x.im), signed_split(k, m, y.re),
                                 signed_split(k, m, y.im), &e);
    mixed = kb_select(k, km_is_zero(k, sum.hi), sum.hi, km_rounded(k, sum)); // zero with its sign
  }
  e = kb_sub(k, kb_sub(k, e, o->plus.e), o->minus.e);
  e = kb_smax(k, kb_smin(k, e, kb_ilike(k, e, 2000)), kb_ilike(k, e, -2000));
  mixed = kb_fmuli(k, km_scale(k, m, mixed, e), 2);
  kb_reg square = kb_fsub(k, kb_fmul(k, p.re, q.re), kb_fmul(k, p.im, q.im));
  km_two s, t;
  km_root_signed(k, km_one(k, square), mixed, &s, &t);
  kb_reg cos = kb_fadd(k, kb_fmul(k, p.re, s.hi), kb_fmul(k, p.im, t.hi));
  kb_reg sin = kb_fsub(k, kb_fmul(k, p.im, s.hi), kb_fmul(k, p.re, t.hi));
  kb_reg upright = kb_fcmp(k, LLVMRealOGT, kb_fabs(k, sin), kb_fabs(k, cos));
  return kb_fcmp(k, LLVMRealOLT, kb_select(k, upright, kb_fmul(k, sin, angle), cos), zero);
}

// How far q = y / x is from i or -i, whichever is nearer: 1 + i y / x = (x + iy) / x, of whose dividend nothing is lost
// where q's own rounding is as large as what is left. Elsewhere it is nothing that anybody asks for.
static km_pole_distance distance_of(kb *k, const operands *o, const km_consts *result, kb_reg below) {
  const km_consts *m = o->m;
  near_one x = brought_near(k, m, o->x);
  km_complex w = km_choose(k, below, o->minus.z, o->plus.z), z = x.z;
  kb_reg e = kb_sub(k, kb_select(k, below, o->minus.e, o->plus.e), x.e);
  kb_reg inverse = kb_fdiv(k, kb_flike(k, z.re, 1), kb_fma(k, z.re, z.re, kb_fmul(k, z.im, z.im)));
  kb_reg d = kb_fmul(k, kb_fma(k, w.re, z.re, kb_fmul(k, w.im, z.im)), inverse);
  kb_reg y = kb_fmul(k, kb_fma(k, w.im, z.re, kb_fneg(k, kb_fmul(k, w.re, z.im))), inverse);
  // What a number of the result's can say well enough is such a number.
  kb_reg tiny = kb_icmp(k, LLVMIntSLT, e, kb_ilike(k, e, -km_pole_reach(result))), none = kb_ilike(k, e, 0);
  kb_reg power = kb_smin(k, kb_select(k, tiny, none, e), kb_ilike(k, e, 8));
  power = km_float(k, kb_addi(k, kb_shli(k, power, m->man_bits), m->one_bits));
  d = kb_fmul(k, d, power), y = kb_fmul(k, y, power);
  km_pole_distance r = {.d = km_one(k, d), .y = y, .e = kb_select(k, tiny, e, none)};
  if (result == m) return r;
  r.d.hi = kb_fptrunc(k, d), r.y = kb_fptrunc(k, y);
  r.d.lo = kb_fptrunc(k, kb_fsub(k, d, kb_fpext(k, r.d.hi)));
  r.e = kb_trunc(k, r.e, KB_I32);
  return r;
}

// atan(y / x), or pi less on the other side of 0. Real operands have a real result.
km_complex km_complex_atan2(kb *k, km_complex y, km_complex x) {
  const km_consts *m = km_consts_of(x.re);
  kb_reg zero = kb_flike(k, x.re, 0), nan = kb_flike(k, zero, (double)NAN);
  operands o = operands_of(k, y, x);
  km_complex q = km_complex_divide(k, y, x);
  kb_reg below = kb_icmp(k, LLVMIntSLT, km_bits(k, q.im), kb_ilike(k, km_bits(k, q.im), 0));
  km_pole_distance left = distance_of(k, &o, m, below);
  km_complex a = km_swap(km_complex_atanh(k, m, km_swap(q), &left));
  kb_reg pi = kb_fcopysign(k, kb_flike(k, zero, 2 * m->half_pi[0]), kb_fneg(k, a.re));
  a.re = kb_select(k, is_opposite(k, &o, !km_is_wide(m), a.re), kb_fadd(k, a.re, pi), a.re);
  kb_reg finite = km_both(k, all(k, km_is_finite, x), all(k, km_is_finite, y));
  a = km_choose(k, finite, a, (km_complex){nan, nan});
  kb_reg real = km_both(k, km_is_zero(k, x.im), km_is_zero(k, y.im));
  return km_choose(k, real, (km_complex){km_atan2(k, y.re, x.re), zero}, a);
}

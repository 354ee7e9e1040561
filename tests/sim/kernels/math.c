// Expected values of elementary functions, and how far off they may be: the errors that the CUDA documentation states
// (in units of the last place of the result, or absolute), and half a unit for our own rounding.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cases.h"
#include <float.h>
#include <math.h>
#include <string.h>

static void elements(kernel_case *c, uint32_t n, kernel_type type, uint32_t functions) {
  launch(c, blocks_for(n, 64), 64);
  if (type == KERNEL_F32)
    fill_f32(arg_input(c, type, n), n, -20, 20);
  else
    fill_f64(arg_input(c, type, n), n, -20, 20);
  arg_output(c, type, n * functions);
  compare_as(c, KERNEL_BOUNDED);
  arg_i32(c, (int)n);
}

static void math_float_setup(kernel_case *c, uint32_t n) {
  elements(c, n, KERNEL_F32, 24);
}
static void math_double_setup(kernel_case *c, uint32_t n) {
  elements(c, n, KERNEL_F64, 16);
}
static void math_fast_setup(kernel_case *c, uint32_t n) {
  elements(c, n, KERNEL_F32, 10);
}

static double unit_f32(double v) {
  float f = fabsf((float)v);
  return f < FLT_MIN ? 0x1p-149 : ldexp(1, ilogbf(f) - 23);
}
static double unit_f64(double v) {
  return fabs(v) < DBL_MIN ? 0x1p-1074 : ldexp(1, ilogb(v) - 52);
}

typedef struct expected {
  float *value;
  double *bound;
} expected;

static void within(expected *e, double exact, double units) {
  *e->value++ = (float)exact;
  *e->bound++ = (units + 0.5) * unit_f32(exact);
}
static void within_absolute(expected *e, double exact, double error) {
  *e->value++ = (float)exact;
  *e->bound++ = error + 0.5 * unit_f32(exact);
}

static void math_float_expect(kernel_case *c) {
  const float *in = c->buffers[0].before;
  expected e = {c->buffers[1].expected, c->buffers[1].bound};
  for (uint32_t i = 0; i < c->size; i++) {
    float x = in[i], p = fabsf(x) + 0.01f, small = x * 0.05f, fifth = x * 0.2f, turns = x * 100.0f, many = x * 1e6f;
    within(&e, exp(x), 2);
    within(&e, exp2(x), 2);
    within(&e, expm1(x), 1);
    within(&e, log(p), 1);
    within(&e, log2(p), 1);
    within(&e, log1p(p), 1);
    within(&e, sin(turns), 2);
    within(&e, cos(turns), 2);
    within(&e, sin(many), 2);
    within(&e, tan(x), 4);
    within(&e, atan(x), 2);
    within(&e, atan2(x, 1.5), 3);
    within(&e, asin(small), 2);
    within(&e, acos(small), 2);
    within(&e, sinh(x), 3);
    within(&e, cosh(x), 2);
    within(&e, tanh(x), 2);
    within(&e, pow(p, 1.7f), 4);
    within(&e, cbrt(x), 1);
    within(&e, erf(x), 2);
    within(&e, erfc(fifth), 4);
    within(&e, 1 / sqrt(p), 2);
    within(&e, hypot(x, 3), 3);
    within(&e, fmod(x, 0.3f), 0);
  }
}

static void within_f64(double **value, double **bound, long double exact, double units) {
  *(*value)++ = (double)exact;
  *(*bound)++ = (units + 0.5) * unit_f64((double)exact);
}

static void math_double_expect(kernel_case *c) {
  const double *in = c->buffers[0].before;
  double *v = c->buffers[1].expected, *b = c->buffers[1].bound;
  for (uint32_t i = 0; i < c->size; i++) {
    double x = in[i], p = fabs(x) + 0.01, turns = x * 100.0, many = x * 1e8;
    within_f64(&v, &b, expl(x), 1);
    within_f64(&v, &b, exp2l(x), 1);
    within_f64(&v, &b, logl(p), 1);
    within_f64(&v, &b, log2l(p), 1);
    within_f64(&v, &b, sinl(turns), 2);
    within_f64(&v, &b, cosl(many), 2);
    within_f64(&v, &b, tanl(x), 2);
    within_f64(&v, &b, atanl(x), 2);
    within_f64(&v, &b, tanhl(x), 2);
    within_f64(&v, &b, powl(p, 1.7), 2);
    within_f64(&v, &b, cbrtl(x), 1);
    within_f64(&v, &b, erfl(x), 2);
    within_f64(&v, &b, 1 / sqrtl(p), 1);
    within_f64(&v, &b, expm1l(x), 1);
    within_f64(&v, &b, log1pl(p), 1);
    within_f64(&v, &b, fmodl(x, 0.3), 0);
  }
}

static void math_fast_expect(kernel_case *c) {
  const float *in = c->buffers[0].before;
  expected e = {c->buffers[1].expected, c->buffers[1].bound};
  for (uint32_t i = 0; i < c->size; i++) {
    float x = in[i], p = fabsf(x) + 0.01f, quarter = x * 0.25f, angle = x * 0.15f;
    bool near_one = p >= 0.5f && p <= 2;
    within(&e, exp(x), 2 + floor(fabs(1.173 * x)));
    within(&e, exp10(quarter), 2 + floor(fabs(2.97 * quarter)));
    if (near_one)
      within_absolute(&e, log(p), 0x1p-21 + 0x1p-22); // 2^-21.41
    else
      within(&e, log(p), 3);
    if (near_one)
      within_absolute(&e, log2(p), 0x1p-22);
    else
      within(&e, log2(p), 2);
    within_absolute(&e, sin(angle), 0x1p-21 + 0x1p-22); // 2^-21.41, |angle| at most pi
    within_absolute(&e, cos(angle), 0x1p-21 + 0x1p-22); // 2^-21.19
    within(&e, (double)x / p, 2);
    within(&e, 1 / sqrt(p), 2);
    within(&e, 1 / sqrt(p), 0);
    within_absolute(&e, tanh(x), fabs(tanh(x)) * 0x1p-11); // PTX ISA, tanh: 2^-11 of the result
  }
}

const kernel_row math_rows[] = {
    ROW_EXPECT("math", math_float, 75, 1, 128, 1001),
    ROW_EXPECT("math", math_double, 75, 3, 128, 501),
    ROW_EXPECT("math", math_fast, 75, 5, 128, 1003),
};
const size_t math_nrow = sizeof math_rows / sizeof *math_rows;

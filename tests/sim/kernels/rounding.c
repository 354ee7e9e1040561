#include "cases.h"
#include "rounding.cu"

// Numbers of all magnitudes from 2^-low to 2^low with edge values among them.
static const double edges[] = {0,          -0.0,          1,          -1,   0.5,     2.5,   -3.5, 1e30, -1e30,
                               2147483647, -2147483648.0, 4294967295, 9e18, -9.3e18, 1.9e19};

static double wild(uint64_t *s, int range) {
  double m = 1 + (double)(random_bits(s) >> 12) * 0x1p-52;
  uint64_t r = random_bits(s);
  return ldexp(r >> 63 ? -m : m, (int)(r % (2 * (uint64_t)range)) - range);
}

static void wild_f64(double *p, size_t n, int range) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = i % 5 == 3 ? edges[i / 5 % 15] : wild(&s, range);
  if (n > 20) p[11] = NAN, p[12] = INFINITY, p[17] = -INFINITY;
}

static void wild_f32(float *p, size_t n, int range) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = (float)(i % 5 == 3 ? edges[i / 5 % 15] : wild(&s, range));
  if (n > 20) p[11] = NAN, p[12] = INFINITY, p[17] = -INFINITY;
}

static void rounding_float_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  wild_f32(arg_input(c, KERNEL_F32, n * 3), n * 3, 20 + (int)(n % 100));
  arg_output(c, KERNEL_F32, n * 32);
  arg_i32(c, (int)n);
}

static void rounding_double_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  wild_f64(arg_input(c, KERNEL_F64, n * 3), n * 3, 20 + (int)n);
  arg_output(c, KERNEL_F64, n * 30);
  arg_i32(c, (int)n);
}

static void rounding_to_integer_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  wild_f32(arg_input(c, KERNEL_F32, n), n, 66);
  wild_f64(arg_input(c, KERNEL_F64, n), n, 66);
  arg_output(c, KERNEL_U64, n * 32);
  arg_i32(c, (int)n);
}

static void rounding_from_integer_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  int64_t *in = arg_input(c, KERNEL_U64, n);
  fill_bits(in, n * 8);
  for (uint32_t i = 0; i < n; i += 3) in[i] >>= i % 64;
  arg_output(c, KERNEL_F64, n * 28);
  arg_i32(c, (int)n);
}

static void rounding_flush_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  float *in = arg_input(c, KERNEL_F32, n * 2);
  wild_f32(in, n * 2, 3);
  for (uint32_t i = 0; i < n * 2; i += 2 + i % 3) in[i] = ldexpf(in[i], -125 - (int)(i % 4));
  arg_output(c, KERNEL_F32, n * 7);
  arg_i32(c, (int)n);
}

const kernel_row rounding_rows[] = {
    ROW("rounding", rounding_float, 75, 5, 96, 1009),       ROW("rounding", rounding_double, 75, 5, 96, 1003),
    ROW("rounding", rounding_to_integer, 75, 7, 128, 1001), ROW("rounding", rounding_from_integer, 75, 7, 128, 999),
    ROW("rounding", rounding_flush, 75, 3, 128, 777),
};
const size_t rounding_nrow = sizeof rounding_rows / sizeof *rounding_rows;

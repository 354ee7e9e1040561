#include "cases.h"

static void objects_templates_setup(kernel_case *c, uint32_t n) {
  launch(c, 3, 64);
  fill_f64(arg_input(c, KERNEL_F64, n * 10), n * 10, -1, 1);
  arg_output(c, KERNEL_F64, n);
  fill_bits(arg_input(c, KERNEL_U32, n * 10), n * 40);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}
static void objects_templates_expect(kernel_case *c) {
  const double *d = c->buffers[0].before;
  const uint32_t *s = c->buffers[2].before;
  double *dout = c->buffers[1].expected;
  uint32_t *sout = c->buffers[3].expected;
  for (uint32_t i = 0; i < c->size; i++, d += 10, s += 10) {
    dout[i] = 0;
    sout[i] = 0;
    for (int k = 0; k < 5; k++) {
      dout[i] += d[k] * d[5 + k];
      sout[i] += s[k] * s[5 + k];
    }
  }
}

static void objects_virtual_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_f32(arg_input(c, KERNEL_F32, n), n, 0, 3);
  arg_output(c, KERNEL_F32, n);
  arg_i32(c, (int)n);
}
static float measure(uint32_t kind, float v, float by) {
  float area = kind == 0 ? v * v : kind == 1 ? v * 2.0f : 3.0f * v * v, grown = area * by;
  if (kind == 1) grown += 2.0f;
  return grown - area;
}
static void objects_virtual_expect(kernel_case *c) {
  const float *in = c->buffers[0].before;
  float *out = c->buffers[1].expected;
  for (uint32_t i = 0; i < c->size; i++) out[i] = measure(i % 3, in[i], in[i] + 1.0f) + measure(i / 3 % 3, in[i], 0.5f);
}

enum { WIDTH = 11 };
static void objects_lambda_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_bits(arg_input(c, KERNEL_U32, n * WIDTH), n * WIDTH * 4);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, WIDTH);
  arg_i32(c, (int)n);
}
static void objects_lambda_expect(kernel_case *c) {
  const uint32_t *in = c->buffers[0].before;
  uint32_t *out = c->buffers[1].expected;
  for (uint32_t i = 0; i < c->size; i++, in += WIDTH) {
    uint32_t folded = 1, odd = 0, ring = 0;
    for (uint32_t k = 0; k < WIDTH; k++) {
      folded = folded * 5 + (in[k] ^ i);
      odd += in[k] & 1;
      if (k % 4 == (i & 3)) ring += in[k];
    }
    out[i] = folded + odd * 1000 + ring;
  }
}

static void objects_atomic_setup(kernel_case *c, uint32_t n) {
  uint32_t grid = blocks_for(n, 64);
  launch(c, grid, 64);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_inout(c, KERNEL_U32, 4 + grid);
  arg_inout(c, KERNEL_U32, 1);
  arg_output(c, KERNEL_U32, 1);
  arg_i32(c, (int)n);
}
static void objects_atomic_expect(kernel_case *c) {
  const uint32_t *in = c->buffers[0].before;
  uint32_t *counts = c->buffers[1].expected, *flag = c->buffers[2].expected, *seen = c->buffers[3].expected;
  for (uint32_t i = 0; i < c->size; i++) {
    counts[0] += in[i];
    if (in[i] > counts[1]) counts[1] = in[i];
    counts[2] = counts[2] * 5 + 3;
    counts[4 + i / 64] ^= in[i];
  }
  *flag = c->grid[0];
  *seen = counts[0];
}

const kernel_row objects_rows[] = {
    ROW_EXPECT("objects", objects_templates, 75, 1, 192, 1001),
    ROW_EXPECT("objects", objects_virtual, 75, 5, 96, 1003),
    ROW_EXPECT("objects", objects_lambda, 75, 7, 128, 501),
    ROW_EXPECT("objects", objects_atomic, 75, 1, 128, 777),
};
const size_t objects_nrow = sizeof objects_rows / sizeof *objects_rows;

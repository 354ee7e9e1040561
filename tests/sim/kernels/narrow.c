#include "cases.h"
#include "narrow.cu"

// Narrow numbers of all kinds: ordinary, denormal, large, infinite, NaN. No pair of zeros of both signs, of which CUDA
// does not say everywhere which is the smaller.
static void fill_narrow(uint16_t *p, size_t n, const simt_format *f) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) {
    uint64_t r = random_bits(&s);
    double v = ldexp(1 + (double)(r % 4096) / 4096, (int)(r >> 20 & 7) - 4);
    if (i % 11 == 5) v = ldexp(v, f->least - 4);
    if (i % 13 == 7) v = ldexp(v, -f->least - 1);
    p[i] = (uint16_t)simt_pack(f, 0x8000, r >> 63 ? -v : v, FE_TONEAREST);
    if (i % 37 == 30) p[i] = (uint16_t)f->infinity;
    if (i % 41 == 33) p[i] = 0x7fff;
  }
}

static void narrow_half_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_narrow(arg_input(c, KERNEL_F16, n * 6), n * 6, &simt_half);
  arg_output(c, KERNEL_F16, n * 28);
  arg_i32(c, (int)n);
}
static void narrow_bfloat_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_narrow(arg_input(c, KERNEL_BF16, n * 6), n * 6, &simt_bf16);
  arg_output(c, KERNEL_BF16, n * 24);
  arg_i32(c, (int)n);
}

// Magnitudes from 2^-20 to 2^20.
static void fill_wide(float *p, size_t n) {
  uint64_t s = n;
  fill_f32(p, n, -2, 2);
  for (size_t i = 0; i < n; i++) p[i] = ldexpf(p[i], (int)(random_bits(&s) % 40) - 20);
}

static void narrow_convert_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_wide(arg_input(c, KERNEL_F32, n), n);
  arg_output(c, KERNEL_U16, n * 8);
  arg_output(c, KERNEL_F32, n * 4);
  arg_i32(c, (int)n);
}

static void narrow_fp8_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  float *in = arg_input(c, KERNEL_F32, n);
  fill_wide(in, n);
  if (n > 100) in[50] = INFINITY;
  arg_output(c, KERNEL_U8, n * 2);
  arg_output(c, KERNEL_U16, n * 2);
  arg_output(c, KERNEL_F16, n * 2);
  arg_i32(c, (int)n);
}

static void fill_half(uint16_t *p, size_t n) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = __float2half_rn((float)(random_bits(&s) % 2048) / 1024 - 1).bits;
}

// Extents of n + 3, 2 n and n + 7.
static void narrow_matmul_setup(kernel_case *c, uint32_t n) {
  uint32_t m = n + 3, k = n + 7;
  launch3(c, (uint32_t[]){blocks_for(n, 16), blocks_for(m, 16), 1}, (uint32_t[]){16, 16, 1});
  fill_half(arg_input(c, KERNEL_F16, m * k), m * k);
  fill_half(arg_input(c, KERNEL_F16, k * n * 2), k * n * 2);
  arg_output(c, KERNEL_F16, m * n * 2);
  arg_output(c, KERNEL_F32, m * n * 2);
  arg_i32(c, (int)m);
  arg_i32(c, (int)n);
  arg_i32(c, (int)k);
}

static void narrow_atomics_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_inout(c, KERNEL_F16, 10);
  arg_inout(c, KERNEL_F16, 8);
  arg_inout(c, KERNEL_BF16, 62);
  arg_i32(c, (int)n);
}
// Sums stay below 2048 and 256, where halves and bfloat16s hold every whole number.
static void narrow_atomics_expect(kernel_case *c) {
  const uint32_t *in = c->buffers[0].before;
  double pairs[10] = {0}, halves[8] = {0}, bf[62] = {0};
  for (uint32_t i = 0; i < c->size; i++) {
    pairs[i % 5 * 2] += in[i] % 3;
    pairs[i % 5 * 2 + 1] -= in[i] % 2;
    halves[i % 7] += in[i] % 4;
    bf[i % 31 * 2] += in[i] % 2;
    bf[i % 31 * 2 + 1] += in[i] % 3;
  }
  uint16_t *p = c->buffers[1].expected, *h = c->buffers[2].expected, *b = c->buffers[3].expected;
  for (int i = 0; i < 10; i++) p[i] = (uint16_t)simt_pack(&simt_half, 0x8000, pairs[i] + 0.0, FE_TONEAREST);
  for (int i = 0; i < 8; i++) h[i] = (uint16_t)simt_pack(&simt_half, 0x8000, halves[i], FE_TONEAREST);
  for (int i = 0; i < 62; i++) b[i] = (uint16_t)simt_pack(&simt_bf16, 0x8000, bf[i], FE_TONEAREST);
}

static void narrow_approx_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  uint16_t *in = arg_input(c, KERNEL_F16, n);
  uint64_t s = n;
  for (uint32_t i = 0; i < n; i++) in[i] = __float2half_rn((float)(random_bits(&s) % 4096) / 256 - 8).bits;
  arg_output(c, KERNEL_F16, n * 4);
  compare_as(c, KERNEL_BOUNDED);
  arg_i32(c, (int)n);
}
// PTX ISA: ex2.approx.f16 has a relative error of 2^-9.9, tanh.approx.f16 an absolute one of 2^-10.987.
static void narrow_approx_expect(kernel_case *c) {
  const uint16_t *in = c->buffers[0].before;
  uint16_t *out = c->buffers[1].expected;
  double *bound = c->buffers[1].bound;
  for (uint32_t i = 0; i < c->size * 4; i++) {
    double x = simt_unpack(&simt_half, 0x8000, in[i / 4]), v = i % 2 ? tanh(x) : exp2(x);
    out[i] = (uint16_t)simt_pack(&simt_half, 0x8000, v, FE_TONEAREST);
    double unit = ldexp(1, (ilogb(v) < -14 ? -14 : ilogb(v)) - 10);
    bound[i] = (i % 2 ? 0x1.03p-11 : v * 0x1.13p-10) + unit / 2;
  }
}

const kernel_row narrow_rows[] = {
    ROW("narrow", narrow_half, 80, 3, 96, 1003),          ROW("narrow", narrow_bfloat, 80, 3, 96, 1003),
    ROW("narrow", narrow_convert, 75, 5, 128, 2001),      ROW("narrow", narrow_fp8, 75, 7, 256, 999),
    ROW("narrow", narrow_matmul, 75, 1, 32, 45),          ROW_EXPECT("narrow", narrow_atomics, 80, 5, 192, 1001),
    ROW_EXPECT("narrow", narrow_approx, 75, 3, 128, 777),
};
const size_t narrow_nrow = sizeof narrow_rows / sizeof *narrow_rows;

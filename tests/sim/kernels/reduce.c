#include "cases.h"
#include "reduce.cu"

static void float_sums(kernel_case *c, uint32_t n, uint32_t grid, uint32_t block) {
  launch(c, grid, block);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -1, 1);
  arg_output(c, KERNEL_F32, grid);
  arg_i32(c, (int)n);
}

static void reduce_shared_setup(kernel_case *c, uint32_t n) {
  float_sums(c, n, blocks_for(n, 256), 256);
}
static void reduce_shuffle_setup(kernel_case *c, uint32_t n) {
  float_sums(c, n, 5, 192);
}

static void reduce_last_block_setup(kernel_case *c, uint32_t n) {
  launch(c, 7, 128);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -1, 1);
  arg_scratch(c, KERNEL_F32, 7);
  arg_output(c, KERNEL_F32, 1);
  arg_i32(c, (int)n);
  memset(symbol_input(c, "blocks_done", &blocks_done, KERNEL_U32, 1), 0, 4);
}

static void reduce_atomics_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 4096);
  totals *t = arg_inout(c, KERNEL_U8, sizeof(totals));
  t->least = INT32_MAX; // one by one: padding is compared, too
  t->most = INT32_MIN;
  t->all = 0xffffffff;
  t->down = 4;
  arg_i32(c, (int)n);
}

static void reduce_argmax_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  uint32_t *in = arg_input(c, KERNEL_U32, n);
  fill_u32(in, n, 1000);
  for (uint32_t i = 0; i < n; i++) in[i] -= 500;
  arg_inout(c, KERNEL_U64, 1);
  arg_i32(c, (int)n);
}

static void reduce_moments_setup(kernel_case *c, uint32_t n) {
  launch(c, 3, 96);
  fill_f32(arg_input(c, KERNEL_F32, n), n, 99, 101);
  arg_output(c, KERNEL_F64, 3 * 3);
  arg_i32(c, (int)n);
}

static void reduce_redux_setup(kernel_case *c, uint32_t n) {
  uint32_t grid = blocks_for(n, 64);
  launch(c, grid, 64);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, grid * 2 * 10);
  arg_i32(c, (int)n);
}

const kernel_row reduce_rows[] = {
    ROW("reduce", reduce_shared, 75, 1, 256, 5001),       ROW("reduce", reduce_shuffle, 75, 31, 960, 20011),
    ROW("reduce", reduce_last_block, 75, 77, 896, 30001), ROW("reduce", reduce_atomics, 75, 13, 96, 1999),
    ROW("reduce", reduce_argmax, 75, 1, 257, 4096),       ROW("reduce", reduce_moments, 75, 5, 288, 10007),
    ROW("reduce", reduce_redux, 80, 33, 64, 1111),
};
const size_t reduce_nrow = sizeof reduce_rows / sizeof *reduce_rows;

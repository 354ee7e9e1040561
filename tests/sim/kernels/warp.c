#include "cases.h"
#include "warp.cu"

static void warp_compact_setup(kernel_case *c, uint32_t n) {
  uint32_t grid = blocks_for(n, 128);
  launch(c, grid, 128);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_set(c, KERNEL_U32, n);
  arg_inout(c, KERNEL_U32, 1);
  arg_output(c, KERNEL_U32, grid * 2);
  arg_i32(c, (int)n);
}

static void warp_aggregate_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_f32(arg_input(c, KERNEL_F32, n), n, 0, 1);
  arg_set(c, KERNEL_F32, n);
  arg_inout(c, KERNEL_U32, 1);
  arg_i32(c, (int)n);
}

static void warp_match_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  uint32_t *in = arg_input(c, KERNEL_U32, n);
  for (uint32_t i = 0; i < n; i++) in[i] = i / 32 % 3 == 1 ? 7 : i * i % 11;
  arg_output(c, KERNEL_U32, n);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void below_1000(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}
static void warp_votes_setup(kernel_case *c, uint32_t n) {
  below_1000(c, n);
}
static void warp_worklist_setup(kernel_case *c, uint32_t n) {
  below_1000(c, n);
}

static void warp_bit_transpose_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

const kernel_row warp_rows[] = {
    ROW("warp", warp_compact, 75, 1, 256, 3333), ROW("warp", warp_aggregate, 75, 31, 960, 4001),
    ROW("warp", warp_match, 75, 5, 192, 999),    ROW("warp", warp_votes, 75, 1, 96, 1001),
    ROW("warp", warp_worklist, 75, 3, 192, 501), ROW("warp", warp_bit_transpose, 75, 31, 64, 1003),
};
const size_t warp_nrow = sizeof warp_rows / sizeof *warp_rows;

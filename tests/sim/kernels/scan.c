#include "cases.h"
#include "scan.cu"

static void scan_block_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void scan_warp_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -1, 1);
  uint8_t *flag = arg_input(c, KERNEL_U8, n);
  for (uint32_t i = 0; i < n; i++) flag[i] = i % 7 == 3 || i % 45 == 9;
  arg_output(c, KERNEL_F32, n);
  arg_output(c, KERNEL_F32, n);
  arg_i32(c, (int)n);
}

static void scan_tree_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 256), 128);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 100000);
  arg_output(c, KERNEL_U32, n);
  arg_output(c, KERNEL_U32, blocks_for(n, 256));
  arg_i32(c, (int)n);
}

static void scan_lookback_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, n);
  arg_inout(c, KERNEL_U32, 1);
  arg_inout(c, KERNEL_U64, blocks_for(n, 128));
  arg_i32(c, (int)n);
}

const kernel_row scan_rows[] = {
    ROW("scan", scan_block, 75, 1, 128, 3001),
    ROW("scan", scan_warp, 75, 17, 96, 2999),
    ROW("scan", scan_tree, 75, 3, 256, 5003),
    ROW("scan", scan_lookback, 75, 127, 1024, 6007),
};
const size_t scan_nrow = sizeof scan_rows / sizeof *scan_rows;

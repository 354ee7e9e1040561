#include "cases.h"
#include "sync.cu"

static void whole(kernel_case *c, uint32_t n, uint32_t block, uint32_t below) {
  launch(c, blocks_for(n, block), block);
  fill_u32(arg_input(c, KERNEL_U32, n), n, below);
}

static void sync_block_lock_setup(kernel_case *c, uint32_t n) {
  whole(c, n, 64, 100);
  arg_inout(c, KERNEL_U32, 1);
  arg_inout(c, KERNEL_U64, 3);
  arg_i32(c, (int)n);
}
static void sync_lane_lock_setup(kernel_case *c, uint32_t n) {
  whole(c, n, 48, 10000);
  arg_inout(c, KERNEL_U32, 1);
  arg_inout(c, KERNEL_U32, 3);
  arg_i32(c, (int)n);
}

// `n` blocks.
static void sync_block_chain_setup(kernel_case *c, uint32_t n) {
  launch(c, n, 96);
  fill_f32(arg_input(c, KERNEL_F32, n * 96), n * 96, -1, 1);
  arg_output(c, KERNEL_F32, n * 96);
  arg_inout(c, KERNEL_U32, n);
  arg_inout(c, KERNEL_U32, 1);
}

static void sync_lane_chain_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  uint32_t *in = arg_input(c, KERNEL_U32, n);
  fill_u32(in, n, 2);
  for (uint32_t i = 0; i < n; i += 9) in[i] = 0; // so that sums of 3^31 stay away from the sign
  for (uint32_t i = 0; i < n; i++) in[i] *= i % 32 < 16;
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void sync_named_setup(kernel_case *c, uint32_t rounds) {
  launch(c, 3, 128);
  fill_f32(arg_input(c, KERNEL_F32, 3 * rounds * 64), 3 * rounds * 64, -1, 1);
  arg_output(c, KERNEL_F32, 3 * 64);
  arg_i32(c, (int)rounds);
}

static void sync_votes_setup(kernel_case *c, uint32_t n) {
  whole(c, n, 80, 100);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void sync_scopes_setup(kernel_case *c, uint32_t n) {
  uint32_t grid = blocks_for(n, 64);
  launch(c, grid, 64);
  fill_f32(arg_input(c, KERNEL_F32, n), n, 0, 1);
  arg_inout(c, KERNEL_U32, grid + 1);
  arg_inout(c, KERNEL_F32, 1);
  arg_inout(c, KERNEL_U32, 8);
  arg_i32(c, (int)n);
}

// Blocks of `n`, four of them.
static void sync_release_setup(kernel_case *c, uint32_t n) {
  launch(c, 4, n);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_output(c, KERNEL_U32, n);
  arg_inout(c, KERNEL_U32, 2);
  arg_output(c, KERNEL_U32, n * 4);
}

static void sync_clock_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

const kernel_row sync_rows[] = {
    ROW("sync", sync_block_lock, 75, 1, 640, 2001), ROW("sync", sync_lane_lock, 75, 33, 96, 301),
    ROW("sync", sync_block_chain, 75, 1, 8, 33),    ROW("sync", sync_lane_chain, 75, 31, 256, 777),
    ROW("sync", sync_named, 75, 1, 8, 33),          ROW("sync", sync_votes, 75, 7, 160, 999),
    ROW("sync", sync_scopes, 75, 5, 128, 1001),     ROW("sync", sync_release, 75, 1, 64, 97),
    ROW("sync", sync_clock, 75, 1, 64, 333),
};
const size_t sync_nrow = sizeof sync_rows / sizeof *sync_rows;

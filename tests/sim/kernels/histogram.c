#include "cases.h"
#include "histogram.cu"

static void bytes_to_bins(kernel_case *c, uint32_t n) {
  fill_bits(arg_input(c, KERNEL_U8, n), n);
  arg_inout(c, KERNEL_U32, 256);
  arg_i32(c, (int)n);
}

static void histogram_global_setup(kernel_case *c, uint32_t n) {
  launch(c, 4, 64);
  bytes_to_bins(c, n);
}

static void histogram_shared_setup(kernel_case *c, uint32_t n) {
  launch(c, 3, 96);
  bytes_to_bins(c, n);
}

static void histogram_match_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -0.25f, 1.25f);
  arg_inout(c, KERNEL_U32, 11);
  arg_i32(c, 11);
  arg_i32(c, (int)n);
}

static void histogram_private_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128 * 64), 64);
  c->dynamic_shared = 64 * 64 * 4;
  bytes_to_bins(c, n);
}

const kernel_row histogram_rows[] = {
    ROW("histogram", histogram_global, 75, 1, 1000, 10007),
    ROW("histogram", histogram_shared, 75, 15, 1000, 20011),
    ROW("histogram", histogram_match, 75, 33, 1024, 5555),
    ROW("histogram", histogram_private, 75, 63, 8192, 20001),
};
const size_t histogram_nrow = sizeof histogram_rows / sizeof *histogram_rows;

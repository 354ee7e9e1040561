#include "cases.h"
#include "matmul.cu"

// Odd extents of n, n + 5 and n + 9.
static void matmul_tiled_setup(kernel_case *c, uint32_t n) {
  uint32_t m = n + 5, k = n + 9;
  launch3(c, (uint32_t[]){blocks_for(n, 16), blocks_for(m, 16), 1}, (uint32_t[]){16, 16, 1});
  fill_f32(arg_input(c, KERNEL_F32, m * k), m * k, -1, 1);
  fill_f32(arg_input(c, KERNEL_F32, k * n), k * n, -1, 1);
  arg_output(c, KERNEL_F32, m * n);
  arg_i32(c, (int)m);
  arg_i32(c, (int)n);
  arg_i32(c, (int)k);
}

static void matmul_register_setup(kernel_case *c, uint32_t n) {
  launch3(c, (uint32_t[]){n / 64, n / 64, 1}, (uint32_t[]){256, 1, 1});
  fill_f32(arg_input(c, KERNEL_F32, n * n), n * n, -1, 1);
  fill_f32(arg_input(c, KERNEL_F32, n * n), n * n, -2, 2);
  fill_f32(arg_inout(c, KERNEL_F32, n * n), n * n, -3, 3);
  arg_i32(c, (int)n);
  arg_f32(c, 0.75f);
  arg_f32(c, -1.5f);
}

static void matvec_double_setup(kernel_case *c, uint32_t m) {
  uint32_t k = 130;
  launch(c, blocks_for(m, 4), 128);
  fill_f64(arg_input(c, KERNEL_F64, m * k), m * k, -1, 1);
  fill_f64(arg_input(c, KERNEL_F64, k), k, -1, 1);
  arg_output(c, KERNEL_F64, m);
  arg_i32(c, (int)m);
  arg_i32(c, (int)k);
}

static void matvec_pipeline_setup(kernel_case *c, uint32_t k) {
  uint32_t m = 5;
  launch(c, m, 64);
  fill_f32(arg_input(c, KERNEL_F32, m * k), m * k, -1, 1);
  fill_f32(arg_input(c, KERNEL_F32, k), k, -1, 1);
  arg_output(c, KERNEL_F32, m);
  arg_i32(c, (int)k);
}

const kernel_row matmul_rows[] = {
    ROW("matmul", matmul_tiled, 75, 3, 32, 77),
    ROW("matmul", matmul_register, 75, 64, 128, 192),
    ROW("matmul", matvec_double, 75, 1, 16, 101),
    ROW("matmul", matvec_pipeline, 75, 64, 448, 4096),
};
const size_t matmul_nrow = sizeof matmul_rows / sizeof *matmul_rows;

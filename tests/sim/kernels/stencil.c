#include "cases.h"
#include "stencil.cu"

static void stencil_line_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -1, 1);
  arg_output(c, KERNEL_F32, n);
  arg_i32(c, (int)n);
  fill_f32(symbol_input(c, "weights", weights, KERNEL_F32, 9), 9, -1, 1);
}

static void stencil_jacobi_setup(kernel_case *c, uint32_t n) {
  launch3(c, (uint32_t[]){blocks_for(n, 32), blocks_for(n, 8), 1}, (uint32_t[]){32, 8, 1});
  fill_f64(arg_input(c, KERNEL_F64, n * n), n * n, 0, 1);
  arg_output(c, KERNEL_F64, n * n);
  arg_inout(c, KERNEL_U32, 1);
  arg_i32(c, (int)n);
}

static void stencil_life_setup(kernel_case *c, uint32_t n) {
  uint32_t height = n / 2 + 1;
  launch3(c, (uint32_t[]){blocks_for(n, 128), height, 1}, (uint32_t[]){32, 1, 1});
  uint8_t *in = arg_input(c, KERNEL_U8, n * height);
  fill_bits(in, n * height);
  for (uint32_t i = 0; i < n * height; i++) in[i] &= 1;
  arg_output(c, KERNEL_U8, n * height);
  arg_i32(c, (int)n);
  arg_i32(c, (int)height);
}

static void transpose_padded_setup(kernel_case *c, uint32_t n) {
  uint32_t rows = n, cols = n * 2 - 1;
  launch3(c, (uint32_t[]){blocks_for(cols, 32), blocks_for(rows, 32), 1}, (uint32_t[]){32, 8, 1});
  fill_f32(arg_input(c, KERNEL_F32, rows * cols), rows * cols, -1, 1);
  arg_output(c, KERNEL_F32, rows * cols);
  arg_i32(c, (int)rows);
  arg_i32(c, (int)cols);
}

static void transpose_swizzled_setup(kernel_case *c, uint32_t n) {
  uint32_t rows = n, cols = n + 64;
  launch3(c, (uint32_t[]){cols / 32, rows / 32, 1}, (uint32_t[]){128, 1, 1});
  fill_bits(arg_input(c, KERNEL_U16, rows * cols), rows * cols * 2);
  arg_output(c, KERNEL_U16, rows * cols);
  arg_i32(c, (int)rows);
  arg_i32(c, (int)cols);
}

static void reverse_dynamic_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 77), 77);
  c->dynamic_shared = 77 * (8 + 4);
  fill_f64(arg_input(c, KERNEL_F64, n), n, -1, 1);
  arg_output(c, KERNEL_F64, n);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

const kernel_row stencil_rows[] = {
    ROW("stencil", stencil_line, 75, 1, 128, 2001),      ROW("stencil", stencil_jacobi, 75, 3, 32, 77),
    ROW("stencil", stencil_life, 75, 5, 64, 131),        ROW("stencil", transpose_padded, 75, 1, 64, 101),
    ROW("stencil", transpose_swizzled, 75, 32, 64, 160), ROW("stencil", reverse_dynamic, 75, 1, 154, 1000),
};
const size_t stencil_nrow = sizeof stencil_rows / sizeof *stencil_rows;

#include "cases.h"
#include "memory.cu"

static void memory_vectors_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_f32(arg_input(c, KERNEL_F32, n * 4), n * 4, 1, 2);
  fill_bits(arg_input(c, KERNEL_U8, n * 4), n * 4);
  fill_bits(arg_input(c, KERNEL_U16, n * 8), n * 16);
  arg_output(c, KERNEL_F32, n * 2);
  arg_output(c, KERNEL_U16, n * 2);
  arg_i32(c, (int)n);
}

static void memory_hints_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_f32(arg_input(c, KERNEL_F32, n + 1), n + 1, -1, 1);
  arg_output(c, KERNEL_F32, n * 4);
  arg_i32(c, (int)n);
}

static void memory_tables_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_F64, n);
  arg_i32(c, (int)n);
}

static void memory_generic_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

// A box of n by n + 2 by 5.
static void memory_registers_setup(kernel_case *c, uint32_t n) {
  uint32_t grid[3] = {blocks_for(n, 5), blocks_for(n + 2, 3), 2}, block[3] = {5, 3, 3};
  launch3(c, grid, block);
  arg_output(c, KERNEL_U32, n * (n + 2) * 5);
  arg_i32(c, (int)n);
  arg_i32(c, (int)n + 2);
  arg_i32(c, 5);
  arg_output(c, KERNEL_U32, (size_t)grid[0] * grid[1] * grid[2] * 45);
}

static void memory_early_exit_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 128), 128);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void memory_printf_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_f32(arg_input(c, KERNEL_F32, n), n, 0, 1);
  arg_output(c, KERNEL_F32, n);
  arg_i32(c, (int)n);
}

static void memory_unaligned_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_bits(arg_input(c, KERNEL_U8, n * 9), n * 9);
  arg_output(c, KERNEL_U64, n);
  arg_i32(c, (int)n);
}

const kernel_row memory_rows[] = {
    ROW("memory", memory_vectors, 75, 1, 128, 1001),
    ROW("memory", memory_hints, 75, 6, 96, 1003),
    ROW("memory", memory_tables, 75, 7, 128, 999),
    ROW("memory", memory_generic, 75, 1, 64, 333),
    ROW("memory", memory_registers, 75, 1, 10, 23),
    ROW("memory", memory_early_exit, 75, 1, 256, 1001),
    {"memory", "memory_printf", 75, {1, 64, 501}, memory_printf_setup, NULL, host_memory_printf, "printf"},
    ROW("memory", memory_unaligned, 75, 1, 64, 333),
};
const size_t memory_nrow = sizeof memory_rows / sizeof *memory_rows;

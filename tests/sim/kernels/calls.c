#include "cases.h"
#include <alloca.h>
#include "calls.cu"

static void calls_recursion_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  arg_output(c, KERNEL_U32, n * 3);
  arg_i32(c, (int)n);
}

static void calls_quicksort_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_u32(arg_input(c, KERNEL_U32, n * 24), n * 24, 100);
  arg_output(c, KERNEL_U32, n * 24);
  arg_i32(c, (int)n);
}

static void calls_table_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  fill_bits(arg_input(c, KERNEL_U8, n), n);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -2, 2);
  fill_f32(arg_input(c, KERNEL_F32, n), n, -3, 3);
  arg_output(c, KERNEL_F32, n);
  arg_i32(c, (int)n);
}

static void calls_interpreter_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  uint8_t *program = arg_input(c, KERNEL_U8, 60);
  uint64_t s = 1;
  for (int i = 0; i < 60; i++) program[i] = (uint8_t)(random_bits(&s) % 11);
  for (int i = 0; i < 60; i += 2)
    program[i] = (uint8_t)(program[i] == 1 || program[i] == 9 ? 7 : program[i]); // keeps numbers small
  arg_i32(c, 60);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

static void calls_queens_setup(kernel_case *c, uint32_t size) {
  uint32_t n = size * size;
  launch(c, blocks_for(n, 32), 32);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)size);
  arg_i32(c, (int)n);
}

static void calls_structs_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_f32(buffer_input(c, KERNEL_F32, n), n, -1, 1);
  buffer_output(c, KERNEL_F32, n);
  char sign = (char)(n % 2 ? -3 : 3);
  options o = {.tag = 'x', .scale = 2.5, .shape = {-3, 7, 11}, .inner = {3, 200, -(INT64_C(1) << 20)}};
  uint16_t add = 60000;
  quad q = {1, 10, 100, 1000};
  arg_value(c, &sign, sizeof sign, _Alignof(char));
  arg_value(c, &o, sizeof o, _Alignof(options));
  patch_buffer(c, offsetof(options, in), 0);
  patch_buffer(c, offsetof(options, out), 1);
  arg_value(c, &add, sizeof add, sizeof add);
  arg_value(c, &q, sizeof q, _Alignof(quad));
  arg_i32(c, (int)n);
}

static void calls_alloca_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_bits(arg_input(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)n);
}

const kernel_row calls_rows[] = {
    ROW("calls", calls_recursion, 75, 3, 128, 333), ROW("calls", calls_quicksort, 75, 1, 64, 301),
    ROW("calls", calls_table, 75, 5, 192, 1001),    ROW("calls", calls_interpreter, 75, 7, 128, 777),
    ROW("calls", calls_queens, 75, 4, 6, 7),        ROW("calls", calls_structs, 75, 1, 128, 501),
    ROW("calls", calls_alloca, 75, 1, 64, 333),
};
const size_t calls_nrow = sizeof calls_rows / sizeof *calls_rows;

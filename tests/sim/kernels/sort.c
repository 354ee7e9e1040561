#include "cases.h"
#include "sort.cu"
#include <stdlib.h>

static void sort_bitonic_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 512), 256);
  uint32_t *keys = arg_inout(c, KERNEL_U32, n), *values = arg_inout(c, KERNEL_U32, n);
  fill_bits(keys, n * 4); // distinct, or else the network's choice among equals would be seen too: it is the same
  for (uint32_t i = 0; i < n; i++) values[i] = i;
  arg_i32(c, (int)n);
}

static void sort_odd_even_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  c->dynamic_shared = 96 * 2;
  fill_bits(arg_inout(c, KERNEL_U16, n), n * 2);
  arg_i32(c, (int)n);
}

static void sort_warp_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 64), 64);
  fill_f32(arg_inout(c, KERNEL_F32, n), n, -10, 10);
  arg_i32(c, (int)n);
}

static int compare_int(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static void sort_merge_setup(kernel_case *c, uint32_t n) {
  uint32_t na = n / 3, nb = n - na;
  launch(c, blocks_for(n, 8 * 64), 64);
  int *a = arg_input(c, KERNEL_U32, na), *b = arg_input(c, KERNEL_U32, nb);
  fill_u32((uint32_t *)a, na, 1000);
  fill_u32((uint32_t *)b, nb, 700);
  qsort(a, na, sizeof *a, compare_int);
  qsort(b, nb, sizeof *b, compare_int);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, (int)na);
  arg_i32(c, (int)nb);
}

static void sort_radix_pass_setup(kernel_case *c, uint32_t n) {
  launch(c, 3, 128);
  fill_bits(arg_input(c, KERNEL_U32, 3 * n), 3 * n * 4);
  arg_output(c, KERNEL_U32, 3 * n);
  arg_i32(c, 8);
  arg_i32(c, (int)n);
}

const kernel_row sort_rows[] = {
    ROW("sort", sort_bitonic, 75, 1, 512, 2001),    ROW("sort", sort_odd_even, 75, 95, 96, 500),
    ROW("sort", sort_warp, 75, 31, 256, 999),       ROW("sort", sort_merge, 75, 7, 1024, 5001),
    ROW("sort", sort_radix_pass, 75, 5, 256, 1301),
};
const size_t sort_nrow = sizeof sort_rows / sizeof *sort_rows;

#include "cases.h"
#include "integer.cu"

// Words with edge values among them: 0, 1, -1, the extremes.
static void edge_words(uint32_t *p, size_t n) {
  static const uint32_t edges[] = {0, 1, UINT32_MAX, 0x80000000, 0x7fffffff, 0xff, 0xffff, 0x10000, 0x80, 0x8000};
  fill_bits(p, n * 4);
  for (size_t i = 0; i < n; i += 3) p[i] = edges[i / 3 % 10];
}

static void words(kernel_case *c, uint32_t n, uint32_t in, kernel_type type, uint32_t out) {
  launch(c, blocks_for(n, 96), 96);
  edge_words(arg_input(c, KERNEL_U32, n * in), n * in);
  arg_output(c, type, n * out);
}

static void integer_bits_setup(kernel_case *c, uint32_t n) {
  words(c, n, 2, KERNEL_U32, 20);
  arg_i32(c, (int)n);
}
static void integer_products_setup(kernel_case *c, uint32_t n) {
  words(c, n, 3, KERNEL_U32, 18);
  arg_i32(c, (int)n);
}
static void integer_lanes_setup(kernel_case *c, uint32_t n) {
  words(c, n, 2, KERNEL_U32, 10);
  arg_i32(c, (int)n);
}
static void integer_division_setup(kernel_case *c, uint32_t n) {
  words(c, n, 4, KERNEL_U64, 10);
  arg_i32(c, -37);
  arg_i32(c, (int)n);
}
static void integer_carries_setup(kernel_case *c, uint32_t n) {
  words(c, n, 4, KERNEL_U64, 8);
  arg_i32(c, (int)n);
}

const kernel_row integer_rows[] = {
    ROW("integer", integer_bits, 75, 1, 96, 1001),     ROW("integer", integer_products, 75, 3, 192, 1111),
    ROW("integer", integer_lanes, 75, 5, 96, 777),     ROW("integer", integer_division, 75, 7, 288, 501),
    ROW("integer", integer_carries, 75, 31, 192, 999),
};
const size_t integer_nrow = sizeof integer_rows / sizeof *integer_rows;

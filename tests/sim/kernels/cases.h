// What the files of rows are written with: launches, arguments, contents.
#ifndef CASES_H
#define CASES_H

#include "kernels.h"

#define ROW(file, name, sm, a, b, c)                                                                                   \
  { file, #name, sm, {a, b, c}, name##_setup, NULL, host_##name, NULL }
#define ROW_EXPECT(file, name, sm, a, b, c)                                                                            \
  { file, #name, sm, {a, b, c}, name##_setup, name##_expect, NULL, NULL }

void launch(kernel_case *c, uint32_t grid, uint32_t block);
void launch3(kernel_case *c, const uint32_t grid[3], const uint32_t block[3]);
uint32_t blocks_for(uint32_t n, uint32_t block); // at least one

// Adds a buffer. Returns its contents before the launch, zeroed, to be filled; for `output` they are undefined. Never
// NULL: where memory is short the program ends.
void *buffer_input(kernel_case *c, kernel_type type, size_t count);
void *buffer_inout(kernel_case *c, kernel_type type, size_t count);
void buffer_output(kernel_case *c, kernel_type type, size_t count);
void buffer_scratch(kernel_case *c, kernel_type type, size_t count); // undefined, not looked at
// As input, in the module's variable `symbol`; `host` is the variable of the kernel's source compiled for the host.
void *symbol_input(kernel_case *c, const char *symbol, void *host, kernel_type type, size_t count);
void compare_as(kernel_case *c, kernel_compare compare); // the last buffer
// The same, and the address is the next argument.
void *arg_input(kernel_case *c, kernel_type type, size_t count);
void *arg_inout(kernel_case *c, kernel_type type, size_t count);
void arg_output(kernel_case *c, kernel_type type, size_t count);
void arg_scratch(kernel_case *c, kernel_type type, size_t count);
void arg_set(kernel_case *c, kernel_type type, size_t count); // inout, compared as KERNEL_SET

void arg_i32(kernel_case *c, int32_t v);
void arg_i64(kernel_case *c, int64_t v);
void arg_f32(kernel_case *c, float v);
void arg_f64(kernel_case *c, double v);
void arg_value(kernel_case *c, const void *v, size_t size, size_t align);
// The address of the buffer of this index goes to byte `offset` of the last argument.
void patch_buffer(kernel_case *c, size_t offset, uint32_t buffer);

// Deterministic contents: whole numbers below `below`, of either sign if `sign`; and any bits. Whole floats add up
// exactly in any order while sums stay below 2^24.
uint64_t random_bits(uint64_t *state);
void fill_f32(float *p, size_t n, float low, float high);
void fill_f64(double *p, size_t n, double low, double high);
void fill_whole_f32(float *p, size_t n, uint32_t below, bool sign);
void fill_u32(uint32_t *p, size_t n, uint32_t below);
void fill_bits(void *p, size_t bytes);

#endif

// What kernels of each kind have to do, one small module for each: edges of concatenates, slices, transposes, updates,
// reductions, gathers and scatters; several results; narrow types.
#include "harness.h"
#include "support/suite.h"

#include <stdio.h>

// clang-format off
static const small rows[] = {
  {"concatenate, four bits", "ENTRY e { a = s4[20] parameter(0)\n b = s4[31] parameter(1)\n c = s4[5] parameter(2)\n ROOT r = s4[56] concatenate(a, b, c), dimensions={0}\n}\n", "s4"},
  {"concatenate along the slowest dimension, work before and behind", "ENTRY e { a = f32[7,12] parameter(0)\n b = f32[3,12] parameter(1)\n x = f32[7,12] negate(a)\n y = f32[3,12] abs(b)\n c = f32[10,12] concatenate(x, y), dimensions={0}\n ROOT r = f32[10,12] sqrt(c)\n}\n", "f32"},
  {"concatenate: a bitcast behind, and another parameter", "ENTRY e { a = bf16[8,6] parameter(0)\n b = bf16[8,10] parameter(1)\n q = bf16[128] parameter(2)\n c = bf16[8,16] concatenate(a, b), dimensions={1}\n d = bf16[128] bitcast(c)\n ROOT r = bf16[128] add(d, q)\n}\n", "bf16"},
  {"concatenate: several results of one, each with its own work", "ENTRY e { a = f32[33] parameter(0)\n b = f32[40] parameter(1)\n c = f32[73] concatenate(a, b), dimensions={0}\n n = f32[73] negate(c)\n m = f16[73] convert(c)\n ROOT r = (f32[73], f16[73], f32[73]) tuple(n, m, c)\n}\n", "f32"},
  {"concatenate: a small dimension, several operands", "ENTRY e { a = s8[50,1] parameter(0)\n b = s8[50,2] parameter(1)\n c = s8[50,1] parameter(2)\n ROOT r = s8[50,6] concatenate(a, b, c, b), dimensions={1}\n}\n", "s8"},
  {"slices of a pad, one without elements", "ENTRY e { a = f32[6,10] parameter(0)\n z = f32[] parameter(1)\n p = f32[9,14] pad(a, z), padding=1_2x3_1\n x = f32[4,14] slice(p), slice={[0:4], [0:14]}\n y = f32[9,3] slice(p), slice={[0:9], [2:5]}\n w = f32[9,0] slice(p), slice={[0:9], [5:5]}\n ROOT r = (f32[4,14], f32[9,3], f32[9,0]) tuple(x, y, w)\n}\n", "f32"},
  {"the bounds of a slice of a pad", "ENTRY e { a = s32[17] parameter(0)\n z = s32[] constant(7)\n p = s32[40] pad(a, z), padding=11_12\n ROOT r = s32[20] slice(p), slice={[9:29]}\n}\n", "s32"},
  {"transposes of four dimensions, four bits", "ENTRY e { a = s4[6,5,10,8] parameter(0)\n ROOT r = s4[5,8,6,10] transpose(a), dimensions={1,3,0,2}\n}\n", "s4"},
  {"a transpose and its operand through a bitcast", "ENTRY e { a = f32[20,33] parameter(0)\n t = f32[33,20] transpose(a), dimensions={1,0}\n n = f32[33,20] negate(t)\n b = f32[660] bitcast(n)\n c = f32[660] bitcast(a)\n d = f32[660] multiply(b, c)\n ROOT r = (f32[33,20], f32[660], f32[660]) tuple(n, b, d)\n}\n", "f32"},
  {"two transposes in one, of narrow types", "ENTRY e { a = s8[40,50] parameter(0)\n b = f16[40,50] parameter(1)\n t = s8[50,40] transpose(a), dimensions={1,0}\n u = f16[50,40] transpose(b), dimensions={1,0}\n v = f16[50,40] convert(t)\n w = f16[50,40] add(u, v)\n ROOT r = (f16[50,40], s8[50,40]) tuple(w, t)\n}\n", "s8"},
  {"updates of two parameters at places that differ", "ENTRY e { a = f32[10,12] parameter(0)\n b = f32[10,12] parameter(1)\n u = f32[3,12] parameter(2)\n i = s32[] parameter(3)\n j = s32[] add(i, i)\n k = s32[] multiply(i, j)\n z = s32[] constant(0)\n x = f32[10,12] dynamic-update-slice(a, u, j, z)\n y = f32[10,12] dynamic-update-slice(b, u, k, z)\n ROOT r = (f32[10,12], f32[10,12]) tuple(x, y)\n}\n", "f32"},
  {"an update of four bits, far outside, through a bitcast", "ENTRY e { a = s4[6,5] parameter(0)\n u = s4[2,2] parameter(1)\n i = s64[] constant(9000000000)\n j = s64[] constant(-7)\n x = s4[6,5] dynamic-update-slice(a, u, i, j)\n ROOT r = s4[30] bitcast(x)\n}\n", "s4"},
  {"constants of two and four bits", "ENTRY e { a = s4[2,3] constant({{1,-2,3},{-4,5,-6}})\n b = s4[5,2,3] broadcast(a), dimensions={1,2}\n c = s2[7] constant({1,0,-1,-2,1,0,1})\n d = s8[7] convert(c)\n ROOT r = (s4[5,2,3], s8[7]) tuple(b, d)\n}\n", "s4"},
  {"positions, copied and turned", "ENTRY e { a = s32[6,20] iota(), iota_dimension=1\n c = s32[6,20]{0,1} copy(a)\n ROOT r = s32[20,6] bitcast(c)\n}\n", "s32"},
  {"results that reshape each other, of several types", "ENTRY e { a = f32[4,30] parameter(0)\n b = f32[4,30] exponential(a)\n c = f32[8,15] reshape(b)\n z = f32[] constant(1)\n y = f32[4,30] broadcast(z), dimensions={}\n p = pred[4,30] compare(b, y), direction=GT\n ROOT r = (f32[4,30], f32[8,15], pred[4,30]) tuple(b, c, p)\n}\n", "f32"},
  {"a gather that turns its places", "ENTRY e { a = f32[9,11] parameter(0)\n i = s32[25,2] parameter(1)\n ROOT r = f32[25,3,2] gather(a, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, slice_sizes={3,2}, index_vector_dim=1\n}\n", "f32"},
  {"truths", "ENTRY e { a = pred[41] parameter(0)\n b = pred[41] parameter(1)\n m = pred[41] multiply(a, b)\n n = pred[41] not(m)\n ROOT r = s32[41] convert(n)\n}\n", "pred"},
  {"reductions one behind another, of four elements", "ENTRY e { x = f64[4] parameter(0)\n z = f64[] constant(0)\n a = f64[] reduce(x, z), dimensions={0}, to_apply=f\n b = f64[4] broadcast(a), dimensions={}\n c = f64[4] divide(x, b)\n d = f64[] reduce(c, z), dimensions={0}, to_apply=f\n g = f64[4] broadcast(d), dimensions={}\n ROOT r = f64[4] subtract(c, g)\n}\n", "f64"},
  {"rows of no parameter", "ENTRY e { x = f32[20,8] iota(), iota_dimension=1\n z = f32[] constant(0)\n ROOT r = f32[20] reduce(x, z), dimensions={1}, to_apply=f\n}\n", "f32"},
  {"groups of reductions of bitcasts, four bits beside", "ENTRY e { x = f32[16,12] parameter(0)\n y = f32[4,48] bitcast(x)\n z = f32[] constant(0)\n a = f32[12] reduce(x, z), dimensions={0}, to_apply=f\n b = f32[48] reduce(y, z), dimensions={0}, to_apply=f\n s = s4[16,12] convert(x)\n ROOT r = (f32[12], f32[48], s4[16,12]) tuple(a, b, s)\n}\n", "f32"},
  {"batches of rows and columns at once", "ENTRY e { x = s32[7,5,13] parameter(0)\n z = s32[] parameter(1)\n ROOT r = s32[5] reduce(x, z), dimensions={0,2}, to_apply=f\n}\n", "s32"},
  {"a scatter without places in its indices", "ENTRY e { x = f32[5] parameter(0)\n i = s32[3,0] parameter(1)\n u = f32[3,5] parameter(2)\n ROOT r = f32[5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, indices_are_sorted=true, to_apply=f\n}\n", "f32"},
  {"a scatter of unsigned numbers at permuted places", "ENTRY e { x = u8[9,8,7] parameter(0)\n i = u32[12,2] parameter(1)\n u = u8[12,7] parameter(2)\n ROOT r = u8[9,8,7] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=f\n}\n", "u8"},
};
// clang-format on

START_TEST(is_right_everywhere) {
  check_small(&rows[_i], (unsigned)_i);
}
END_TEST

int main(void) {
  return RUN_TESTS("cases", NO_FRAME, {is_right_everywhere, KL_COUNT(rows)});
}

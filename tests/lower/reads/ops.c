// What elements need of operands and go into, op by op and along walks, against HLO's definitions element by element:
// rows for every op of the op table, then random fusions.
#include "compare.h"
#include "random.h"
#include "support/context.h"
#include "support/modules.h"
#include "support/share.h"

#include <stdio.h>

#define STEPS                                                                                                          \
  "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"                                   \
  "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] compare(x, y), direction=LT }\n"               \
  "pair { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3) "                \
  "ROOT z = (f32[], f32[]) tuple(add(a, c), add(b, d)) }\n"                                                            \
  "step { x = f32[3] parameter(0) y = f32[3] parameter(1) z = f32[3] add(x, y) ROOT t = (f32[3], f32[3]) tuple(z, z) " \
  "}\n"                                                                                                                \
  "slice_at { p = f32[6] parameter(0) q = s32[] parameter(1) n = s32[] add(q, q) ROOT d = f32[2] dynamic-slice(p, "    \
  "n), dynamic_slice_sizes={2} }\n"                                                                                    \
  "mixing { x = f32[3] parameter(0) y = f32[3] parameter(1) w = f32[3] reverse(x), dimensions={0} z = f32[3] add(w, "  \
  "y) ROOT t = (f32[3], f32[3]) tuple(z, z) }\n"

// clang-format off
// Instructions of ENTRY, parameters first.
static const char *const rows[] = {
  // elementwise, of all ranks; scalars beside arrays
  "a = f32[2,3] parameter(0) ROOT r = f32[2,3] negate(a)",
  "a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b)",
  "a = f32[2,0] parameter(0) ROOT r = f32[2,0] add(a, a)",
  "a = f32[2,3] parameter(0) ROOT r = bf16[2,3] convert(a)",
  "a = f32[2,3] parameter(0) b = u32[2,3] parameter(1) ROOT r = bf16[2,3] stochastic-convert(a, b)",
  "a = f32[2,3] parameter(0) b = f32[2,3] parameter(1) p = pred[2,3] parameter(2) ROOT r = f32[2,3] select(p, a, b)",
  "a = f32[2,3] parameter(0) b = f32[2,3] parameter(1) p = pred[] parameter(2) ROOT r = f32[2,3] select(p, a, b)",
  "a = f32[2,3] parameter(0) lo = f32[] parameter(1) hi = f32[] parameter(2) ROOT r = f32[2,3] clamp(lo, a, hi)",
  "a = f32[2,3] parameter(0) b = f32[2,3] parameter(1) ROOT r = f32[2,3] map(a, b), dimensions={0,1}, to_apply=sum",
  // bitcast-convert: widths up, down, alike
  "a = f32[2,3] parameter(0) ROOT r = s32[2,3] bitcast-convert(a)",
  "a = f32[2,3] parameter(0) ROOT r = u8[2,3,4] bitcast-convert(a)",
  "a = u8[2,3,4] parameter(0) ROOT r = f32[2,3] bitcast-convert(a)",
  "a = f32[] parameter(0) ROOT r = u16[2] bitcast-convert(a)",
  "a = u16[2] parameter(0) ROOT r = f32[] bitcast-convert(a)",
  "a = u8[3] parameter(0) ROOT r = u4[3,2] bitcast-convert(a)",
  // movement
  "a = f32[2,3] parameter(0) ROOT r = f32[4,2,5,3] broadcast(a), dimensions={1,3}",
  "a = f32[2,3] parameter(0) ROOT r = f32[3,2] broadcast(a), dimensions={1,0}",
  "a = f32[] parameter(0) ROOT r = f32[3,2] broadcast(a), dimensions={}",
  "a = f32[1,3] parameter(0) ROOT r = f32[1,3,2] broadcast(a), dimensions={0,1}",
  "a = f32[4,6] parameter(0) ROOT r = f32[24] reshape(a)",
  "a = f32[24] parameter(0) ROOT r = f32[2,3,4] reshape(a)",
  "a = f32[4,6] parameter(0) ROOT r = f32[6,4] reshape(a)",
  "a = f32[4,6] parameter(0) ROOT r = f32[8,3] reshape(a)",
  "a = f32[2,4,4] parameter(0) ROOT r = f32[4,8] reshape(a)",
  "a = f32[1,4,1,6,1] parameter(0) ROOT r = f32[2,1,2,6] reshape(a)",
  "a = f32[1,1] parameter(0) ROOT r = f32[] reshape(a)",
  "a = f32[] parameter(0) ROOT r = f32[1,1,1] reshape(a)",
  "a = f32[1,0,3] parameter(0) ROOT r = f32[0] reshape(a)",
  "a = f32[2,3,4] parameter(0) ROOT r = f32[4,2,3] transpose(a), dimensions={2,0,1}",
  "a = f32[9,7] parameter(0) ROOT r = f32[3,3] slice(a), slice={[1:8:3], [0:6:2]}",
  "a = f32[9] parameter(0) ROOT r = f32[0] slice(a), slice={[9:9]}",
  "a = f32[2,3,4] parameter(0) ROOT r = f32[2,3,4] reverse(a), dimensions={2,0}",
  "a = f32[2,3] parameter(0) ROOT r = f32[2,3] reverse(a), dimensions={}",
  "a = f32[2,3] parameter(0) b = f32[2,0] parameter(1) c = f32[2,1] parameter(2) d = f32[2,4] parameter(3) ROOT r = f32[2,8] concatenate(a, b, c, d), dimensions={1}",
  "a = f32[2,3] parameter(0) ROOT r = f32[6,3] concatenate(a, a, a), dimensions={0}",
  "a = f32[2] parameter(0) ROOT r = f32[2] concatenate(a), dimensions={0}",
  "a = f32[0] parameter(0) b = f32[0] parameter(1) ROOT r = f32[0] concatenate(a, b), dimensions={0}",
  "a = f32[4,3] parameter(0) v = f32[] parameter(1) ROOT r = f32[12,8] pad(a, v), padding=1_4_1x4_1_0",
  "a = f32[7] parameter(0) v = f32[] parameter(1) ROOT r = f32[5] pad(a, v), padding=-3_-5_1",
  "a = f32[7,3] parameter(0) v = f32[] parameter(1) ROOT r = f32[15,4] pad(a, v), padding=-4_-0_2x-2_3_0",
  "a = f32[0,3] parameter(0) v = f32[] parameter(1) ROOT r = f32[3,4] pad(a, v), padding=1_2_1x1_0_0",
  "a = f32[3] parameter(0) v = f32[] parameter(1) ROOT r = f32[4] pad(a, v), padding=-4_5_0",
  "a = f32[] parameter(0) v = f32[] parameter(1) ROOT r = f32[] pad(a, v), padding=",
  // bitcasts between orders of dimensions and between widths
  "a = f32[4,6]{1,0} parameter(0) ROOT r = f32[2,12]{1,0} bitcast(a)",
  "a = f32[4,6]{0,1} parameter(0) ROOT r = f32[6,4]{1,0} bitcast(a)",
  // tiles that take other amounts of memory: not every element is there on the other side
  "a = f32[3,5]{1,0:T(2,2)} parameter(0) ROOT r = u8[3,5,4]{2,1,0:T(1,2,4)} bitcast(a)",
  "a = f32[4,5,3]{2,1,0} parameter(0) ROOT r = f32[15,4]{0,1} bitcast(a)",
  "a = f32[4,6]{0,1} parameter(0) ROOT r = f32[8,3]{1,0} bitcast(a)",
  "a = f32[4,3] parameter(0) ROOT r = u8[4,12] bitcast(a)",
  "a = u8[4,12]{0,1} parameter(0) ROOT r = f32[12] bitcast(a)",
  "a = f32[0,3] parameter(0) ROOT r = f32[3,0] bitcast(a)",
  "a = f32[4,6]{1,0:T(2,2)} parameter(0) ROOT r = f32[2,3,2,2] bitcast(a)",
  "a = f32[2,3,2,2] parameter(0) ROOT r = f32[4,6]{1,0:T(2,2)} bitcast(a)",
  "a = f32[3,5]{1,0:T(2,2)} parameter(0) ROOT r = f32[5,3]{0,1:T(2,2)} bitcast(a)",
  "a = f32[3,5]{1,0:T(2,2)} parameter(0) ROOT r = u8[3,5,4]{2,1,0:T(2,2,4)} bitcast(a)",
  "a = bf16[5,3]{0,1:T(2,4)(2,1)} parameter(0) ROOT r = bf16[3,5]{1,0:T(2,4)(2,1)} bitcast(a)",
  "a = f32[2,3,4]{2,1,0:T(*,2,2)} parameter(0) ROOT r = f32[6,4]{1,0:T(2,2)} bitcast(a)",
  // contractions
  "a = f32[2,3] parameter(0) b = f32[3,4] parameter(1) ROOT r = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
  "a = f32[2,3] parameter(0) b = f32[4] parameter(1) ROOT r = f32[2,3,4] dot(a, b)",
  "a = f32[5,2,3,2] parameter(0) b = f32[3,2,4,2] parameter(1) ROOT r = f32[2,5,4] dot(a, b), lhs_batch_dims={3}, rhs_batch_dims={1}, lhs_contracting_dims={2,1}, rhs_contracting_dims={0,3}",
  "a = f32[2,0] parameter(0) b = f32[0,4] parameter(1) ROOT r = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
  "a = f32[3] parameter(0) b = f32[3] parameter(1) ROOT r = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
  "a = f32[4,3] parameter(0) b = f32[2,3,5] parameter(1) g = s32[2] parameter(2) ROOT r = f32[4,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
  "a = f32[2,4,3] parameter(0) b = f32[2,2,3,2] parameter(1) g = s32[2] parameter(2) ROOT r = f32[2,4,2] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}",
  "a = f32[3,5] parameter(0) b = f32[5,2] parameter(1) g = s32[3] parameter(2) ROOT r = f32[3,3,2] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
  "a = f32[2,3,4] parameter(0) b = f32[2,4,2] parameter(1) g = s32[2] parameter(2) ROOT r = f32[2,3,2] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
  "a = f8e4m3fn[2,8] parameter(0) b = f8e4m3fn[3,8] parameter(1) s = f8e8m0fnu[2,2] parameter(2) t = f8e8m0fnu[1,4] parameter(3) ROOT r = f32[2,3] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
  "a = f8e4m3fn[2,8] parameter(0) b = f8e4m3fn[3,8] parameter(1) s = f8e8m0fnu[] parameter(2) t = f8e8m0fnu[3,8] parameter(3) ROOT r = f32[2,3] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
  // convolution: plain, padding of both signs, strides, dilations, reversal, groups of features and of the batch, orders
  "a = f32[1,5,4,2] parameter(0) k = f32[3,2,2,3] parameter(1) ROOT r = f32[1,3,3,3] convolution(a, k), window={size=3x2}, dim_labels=b01f_01io->b01f",
  "a = f32[2,5,4,2] parameter(0) k = f32[3,2,2,3] parameter(1) ROOT r = f32[2,3,3,3] convolution(a, k), window={size=3x2 stride=2x2 pad=1_1x1_2}, dim_labels=b01f_01io->b01f",
  "a = f32[1,5,4,2] parameter(0) k = f32[3,2,2,1] parameter(1) ROOT r = f32[1,8,3,1] convolution(a, k), window={size=3x2 pad=0_1x-1_0 lhs_dilate=2x2 rhs_dilate=1x3}, dim_labels=b01f_01io->b01f",
  "a = f32[6,2,1] parameter(0) k = f32[2,1,3] parameter(1) ROOT r = f32[1,1,6] convolution(a, k), window={size=3 pad=1_1 rhs_reversal=1}, dim_labels=0fb_io0->bf0",
  "a = f32[6,2,1] parameter(0) k = f32[2,1,3] parameter(1) ROOT r = f32[1,1,8] convolution(a, k), window={size=3 pad=3_3 stride=1 rhs_dilate=2 rhs_reversal=1 lhs_dilate=1}, dim_labels=0fb_io0->bf0",
  "a = f32[1,4,4] parameter(0) k = f32[2,2,6] parameter(1) ROOT r = f32[1,3,6] convolution(a, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2",
  "a = f32[4,4,2] parameter(0) k = f32[2,2,6] parameter(1) ROOT r = f32[2,3,6] convolution(a, k), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2",
  "a = f32[2,3] parameter(0) k = f32[3,4] parameter(1) ROOT r = f32[2,4] convolution(a, k), dim_labels=bf_io->bf",
  "a = f32[1,0,2] parameter(0) k = f32[2,2,1] parameter(1) ROOT r = f32[1,3,1] convolution(a, k), window={size=2 pad=2_2}, dim_labels=b0f_0io->b0f",
  "a = f32[1,3,0] parameter(0) k = f32[2,0,1] parameter(1) ROOT r = f32[1,2,1] convolution(a, k), window={size=2}, dim_labels=b0f_0io->b0f",
  // windows
  "a = f32[4,5] parameter(0) s = f32[] parameter(1) ROOT r = f32[3,2] reduce-window(a, s), window={size=2x3 stride=1x2}, to_apply=sum",
  "a = f32[4,5] parameter(0) s = f32[] parameter(1) ROOT r = f32[3,7] reduce-window(a, s), window={size=3x2 stride=2x1 pad=1_2x1_2}, to_apply=sum",
  "a = f32[4,5] parameter(0) s = f32[] parameter(1) ROOT r = f32[6,2] reduce-window(a, s), window={size=2x2 pad=0_0x-1_-1 lhs_dilate=2x1 rhs_dilate=1x1}, to_apply=sum",
  "a = f32[7,3] parameter(0) s = f32[] parameter(1) ROOT r = f32[4,5] reduce-window(a, s), window={size=2x1 rhs_dilate=3x1 lhs_dilate=1x2}, to_apply=sum",
  "a = f32[4] parameter(0) b = f32[4] parameter(1) s = f32[] parameter(2) ROOT r = (f32[3], f32[3]) reduce-window(a, b, s, s), window={size=2}, to_apply=pair",
  "a = f32[0] parameter(0) s = f32[] parameter(1) ROOT r = f32[3] reduce-window(a, s), window={size=2 pad=2_2}, to_apply=sum",
  "a = f32[] parameter(0) s = f32[] parameter(1) ROOT r = f32[] reduce-window(a, s), window={}, to_apply=sum",
  "a = f32[4,6] parameter(0) b = f32[2,3] parameter(1) s = f32[] parameter(2) ROOT r = f32[4,6] select-and-scatter(a, b, s), window={size=2x2 stride=2x2}, select=less, scatter=sum",
  "a = f32[4,5] parameter(0) b = f32[4,3] parameter(1) s = f32[] parameter(2) ROOT r = f32[4,5] select-and-scatter(a, b, s), window={size=3x3 stride=1x2 pad=1_1x1_1}, select=less, scatter=sum",
  "a = f32[5] parameter(0) b = f32[1] parameter(1) s = f32[] parameter(2) ROOT r = f32[5] select-and-scatter(a, b, s), window={size=2 stride=3 pad=-1_-1}, select=less, scatter=sum",
  // reductions, scans, orders
  "a = f32[2,3,4] parameter(0) s = f32[] parameter(1) ROOT r = f32[3] reduce(a, s), dimensions={2,0}, to_apply=sum",
  "a = f32[2,3] parameter(0) s = f32[] parameter(1) ROOT r = f32[] reduce(a, s), dimensions={0,1}, to_apply=sum",
  "a = f32[2,0] parameter(0) s = f32[] parameter(1) ROOT r = f32[2] reduce(a, s), dimensions={1}, to_apply=sum",
  "a = f32[2,3] parameter(0) s = f32[] parameter(1) ROOT r = f32[2,3] reduce(a, s), dimensions={}, to_apply=sum",
  "a = f32[2,3] parameter(0) b = f32[2,3] parameter(1) s = f32[] parameter(2) t = f32[] parameter(3) ROOT r = (f32[3], f32[3]) reduce(a, b, s, t), dimensions={0}, to_apply=pair",
  "a = f32[4,3] parameter(0) c = f32[3] parameter(1) ROOT r = (f32[4,3], f32[3]) scan(a, c), dimensions={0}, num_carries=1, to_apply=step",
  "a = f32[3,4] parameter(0) c = f32[3] parameter(1) ROOT r = (f32[3,4], f32[3]) scan(a, c), dimensions={1}, num_carries=1, is_reverse=true, to_apply=step",
  "a = f32[4,3] parameter(0) c = f32[3] parameter(1) ROOT r = (f32[4,3], f32[3]) scan(a, c), dimensions={0}, num_carries=1, to_apply=mixing",
  "a = f32[3,4] parameter(0) ROOT r = f32[3,4] sort(a), dimensions={0}, to_apply=less",
  "a = f32[3,4] parameter(0) b = s32[3,4] parameter(1) ROOT r = (f32[3,4], s32[3,4]) sort(a, b), dimensions={1}, is_stable=true, to_apply={"
  " x = f32[] parameter(0) y = f32[] parameter(1) z = s32[] parameter(2) w = s32[] parameter(3) ROOT q = pred[] compare(x, y), direction=LT }",
  "a = f32[3,5] parameter(0) ROOT r = (f32[3,2], s32[3,2]) topk(a), k=2, largest=true",
  // dynamic slices: starts below, inside and above; as an array; of one type and the other
  "a = f32[4,6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) ROOT r = f32[2,3] dynamic-slice(a, i, j), dynamic_slice_sizes={2,3}",
  "a = f32[4,6] parameter(0) i = u8[] parameter(1) j = u8[] parameter(2) ROOT r = f32[2,3] dynamic-slice(a, i, j), dynamic_slice_sizes={2,3}",
  "a = f32[4,6] parameter(0) i = s32[] parameter(1) ROOT r = f32[4,3] dynamic-slice(a, i, i), dynamic_slice_sizes={4,3}",
  "a = f32[4,6] parameter(0) i = s32[2] parameter(1) ROOT r = f32[2,3] dynamic-slice(a, i), dynamic_slice_sizes={2,3}",
  "a = f32[4] parameter(0) i = s32[] constant(-3) ROOT r = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}",
  "a = f32[4] parameter(0) i = s32[] constant(1) ROOT r = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}",
  "a = f32[4] parameter(0) i = u64[] constant(18446744073709551615) ROOT r = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}",
  "a = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[0] dynamic-slice(a, i), dynamic_slice_sizes={0}",
  "a = f32[4,6] parameter(0) u = f32[2,3] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[4,6] dynamic-update-slice(a, u, i, j)",
  "a = f32[4,6] parameter(0) u = f32[4,3] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[4,6] dynamic-update-slice(a, u, i, j)",
  "a = f32[4,6] parameter(0) u = f32[4,0] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[4,6] dynamic-update-slice(a, u, i, j)",
  "a = f32[4,6] parameter(0) u = f32[1,6] parameter(1) i = s32[2] parameter(2) ROOT r = f32[4,6] dynamic-update-slice(a, u, i)",
  "a = f32[] parameter(0) u = f32[] parameter(1) ROOT r = f32[] dynamic-update-slice(a, u)",
  "a = f32[6] parameter(0) u = f32[2] parameter(1) i = s32[] constant(9) ROOT r = f32[6] dynamic-update-slice(a, u, i)",
  // gather: vectors in all places, scalars, collapsed, offset dims before, between and behind, batching dims
  "a = f32[4,5,3] parameter(0) i = s32[6,2] parameter(1) ROOT r = f32[6,2,3,2] gather(a, i), offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={2,3,2}",
  "a = f32[4,5,3] parameter(0) i = s32[2,3] parameter(1) ROOT r = f32[2,3,3] gather(a, i), offset_dims={0,2}, collapsed_slice_dims={1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,1,3}",
  "a = f32[4,3] parameter(0) i = s32[2,2] parameter(1) ROOT r = f32[2,2,3] gather(a, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,3}",
  "a = f32[2,4,3] parameter(0) i = s32[2,2] parameter(1) ROOT r = f32[2,2,3] gather(a, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}",
  "a = f32[4,3,2] parameter(0) i = s32[2,1,3] parameter(1) ROOT r = f32[2,2,3] gather(a, i), offset_dims={0}, collapsed_slice_dims={}, start_index_map={0}, operand_batching_dims={1,2}, start_indices_batching_dims={2,0}, index_vector_dim=1, slice_sizes={2,1,1}",
  "a = f32[4] parameter(0) i = s32[1] parameter(1) ROOT r = f32[2] gather(a, i), offset_dims={0}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={2}",
  "a = f32[4] parameter(0) i = s32[0,1] parameter(1) ROOT r = f32[0] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
  "a = f32[4] parameter(0) i = s32[3,0] parameter(1) ROOT r = f32[3,4] gather(a, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim=1, slice_sizes={4}",
  "a = f32[4] parameter(0) i = s32[3,1] constant({{5},{1},{-1}}) ROOT r = f32[3] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
  "a = f32[4] parameter(0) i = s32[6,1] iota(), iota_dimension=0 ROOT r = f32[6] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
  // scatter: likewise; several operands; windows that leave the operand
  "a = f32[4,3] parameter(0) i = s32[3,1] parameter(1) u = f32[3,3] parameter(2) ROOT r = f32[4,3] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  "a = f32[4,3] parameter(0) i = s32[3] parameter(1) u = f32[3,3] parameter(2) ROOT r = f32[4,3] scatter(a, i, u), update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  "a = f32[4,3] parameter(0) i = s32[2,2] parameter(1) u = f32[2,2,2] parameter(2) ROOT r = f32[4,3] scatter(a, i, u), update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0, to_apply=sum",
  "a = f32[3,4,2] parameter(0) i = s32[2,3,1] parameter(1) u = f32[2,3,2] parameter(2) ROOT r = f32[3,4,2] scatter(a, i, u), update_window_dims={2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1}, input_batching_dims={0,2}, scatter_indices_batching_dims={1,0}, index_vector_dim=2, to_apply=sum",
  "a = f32[4] parameter(0) b = f32[4] parameter(1) i = s32[2,1] parameter(2) u = f32[2,2] parameter(3) v = f32[2,2] parameter(4) ROOT r = (f32[4], f32[4]) scatter(a, b, i, u, v), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=pair",
  "a = f32[4] parameter(0) i = s32[0,1] parameter(1) u = f32[0] parameter(2) ROOT r = f32[4] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  "a = f32[4] parameter(0) i = s32[3,1] iota(), iota_dimension=0 u = f32[3,2] parameter(1) ROOT r = f32[4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  // random numbers, mathematics
  "a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[2,3] rng(a, b), distribution=rng_uniform",
  "k = u64[2] parameter(0) ROOT r = (u64[2], u32[4]) rng-bit-generator(k), algorithm=rng_philox",
  "a = f32[4,3,2] parameter(0) v = f32[3] parameter(1) w = f32[3] parameter(2) ROOT r = (f32[4,3,2], f32[3], f32[3]) batch-norm-training(a, v, w), epsilon=0.001, feature_index=1",
  "a = f32[4,3,2] parameter(0) v = f32[3] parameter(1) ROOT r = f32[4,3,2] batch-norm-inference(a, v, v, v, v), epsilon=0.001, feature_index=1",
  "a = f32[4,3,2] parameter(0) v = f32[3] parameter(1) g = f32[4,3,2] parameter(2) ROOT r = (f32[4,3,2], f32[3], f32[3]) batch-norm-grad(a, v, v, v, g), epsilon=0.001, feature_index=1",
  "a = f32[3] parameter(0) v = f32[3] parameter(1) g = f32[3] parameter(2) ROOT r = (f32[3], f32[3], f32[3]) batch-norm-grad(a, v, v, v, g), epsilon=0.001, feature_index=0",
  "a = f32[3] parameter(0) v = f32[3] parameter(1) ROOT r = (f32[3], f32[3], f32[3]) batch-norm-training(a, v, v), epsilon=0.001, feature_index=0",
  "a = f32[2,3,3] parameter(0) ROOT r = f32[2,3,3] cholesky(a), lower=true",
  "a = f32[3,3] parameter(0) ROOT r = f32[3,3] cholesky(a), lower=false",
  "a = f32[3,3] parameter(0) b = f32[3,2] parameter(1) ROOT r = f32[3,2] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
  "a = f32[2,3,3] parameter(0) b = f32[2,4,3] parameter(1) ROOT r = f32[2,4,3] triangular-solve(a, b), left_side=false, lower=true, unit_diagonal=true, transpose_a=TRANSPOSE",
  "a = c64[2,3,4] parameter(0) ROOT r = c64[2,3,4] fft(a), fft_type=FFT, fft_length={3,4}",
  "a = f32[2,6] parameter(0) ROOT r = c64[2,4] fft(a), fft_type=RFFT, fft_length={6}",
  "a = c64[2,4] parameter(0) ROOT r = f32[2,6] fft(a), fft_type=IRFFT, fft_length={6}",
  // sizes, tuples, copies, order
  "a = f32[2,<=3] parameter(0) ROOT r = s32[] get-dimension-size(a), dimensions={1}",
  "a = f32[2,3] parameter(0) n = s32[] parameter(1) ROOT r = f32[2,<=3] set-dimension-size(a, n), dimensions={1}",
  "a = f32[2,3] parameter(0) n = s32[] parameter(1) ROOT r = f32[<=6] dynamic-reshape(a, n)",
  "a = f32[2] parameter(0) b = (f32[3], (f32[2], s32[])) parameter(1) t = (f32[2], (f32[3], (f32[2], s32[])), f32[2]) tuple(a, b, a) "
  "u = (f32[3], (f32[2], s32[])) get-tuple-element(t), index=1 v = (f32[2], s32[]) get-tuple-element(u), index=1 ROOT r = f32[2] get-tuple-element(v), index=0",
  "a = (f32[3], f32[2]) parameter(0) ROOT r = (f32[3], f32[2]) opt-barrier(a)",
  "a = f32[3] parameter(0) k = token[] after-all() ROOT r = f32[3] add-dependency(a, k)",
  "a = f32[3] parameter(0) y = (f32[3], f32[3], u32[]) copy-start(a) ROOT x = f32[3] copy-done(y)",
  "a = (f32[2], f32[3]) parameter(0) ROOT y = ((f32[2], f32[3]), (f32[2], f32[3]), u32[]) copy-start(a)",
  "a = (f32[2], f32[3]) parameter(0) y = ((f32[2], f32[3]), (f32[2], f32[3]), u32[]) copy-start(a) ROOT x = (f32[2], f32[3]) copy-done(y)",
  "a = () parameter(0) ROOT y = ((), (), u32[]) copy-start(a)",
  "p = pred[] parameter(0) a = f32[3] parameter(1) ROOT r = f32[3] conditional(p, a, a), true_computation={ ROOT q = f32[3] parameter(0) }, false_computation={ q = f32[3] parameter(0) ROOT n = f32[3] negate(q) }",
  "a = (f32[3], s32[]) parameter(0) ROOT r = (f32[3], s32[]) while(a), condition={ q = (f32[3], s32[]) parameter(0) ROOT c = pred[] constant(false) }, body={ ROOT q = (f32[3], s32[]) parameter(0) }",
  "a = f32[3] parameter(0) ROOT r = f32[3] custom-call(a), custom_call_target=\"c\"",
  // between devices: which elements of the operand, whatever the device
  "a = f32[2,3] parameter(0) ROOT r = f32[4,3] all-gather(a), replica_groups={{0,1}}, dimensions={0}",
  "a = f32[2,3] parameter(0) b = f32[2,1] parameter(1) ROOT r = (f32[4,3], f32[4,1]) all-gather(a, b), replica_groups={{0,1}}, dimensions={0}",
  "a = f32[2,3] parameter(0) y = (f32[2,3], f32[4,3]) all-gather-start(a), replica_groups={{0,1}}, dimensions={0} ROOT x = f32[4,3] all-gather-done(y)",
  "a = f32[2,3] parameter(0) ROOT r = f32[2,3] all-reduce(a), replica_groups={}, to_apply=sum",
  "a = f32[2,3] parameter(0) y = f32[2,3] all-reduce-start(a), replica_groups={}, to_apply=sum ROOT x = f32[2,3] all-reduce-done(y)",
  "a = f32[4,3] parameter(0) ROOT r = f32[2,3] reduce-scatter(a), replica_groups={{0,1}}, dimensions={0}, to_apply=sum",
  "a = f32[4,3] parameter(0) ROOT r = f32[4,3] all-to-all(a), replica_groups={{0,1}}, dimensions={0}",
  "a = f32[2] parameter(0) b = f32[2] parameter(1) ROOT r = (f32[2], f32[2]) all-to-all(a, b), replica_groups={{1,0}}",
  "a = f32[2,3] parameter(0) g = s32[2] parameter(1) ROOT x = f32[2,3] ragged-all-to-all(a, a, g, g, g, g), replica_groups={{0,1}}",
  "a = f32[2,3] parameter(0) ROOT r = f32[2,3] collective-permute(a), source_target_pairs={{0,1},{1,0}}",
  "a = f32[2,3] parameter(0) y = (f32[2,3], f32[2,3], u32[], u32[]) collective-permute-start(a), channel_id=2, source_target_pairs={{0,1}, {1,2}} ROOT x = f32[2,3] collective-permute-done(y)",
  "a = f32[4,3] parameter(0) o = f32[4,3] parameter(1) i = s32[2] parameter(2) ROOT r = (f32[7], f32[4,3], s32[]) collective-permute-start(a, o, i, i), source_target_pairs={{0,1}}, slice_sizes={{2,3}}",
  "a = f32[2,3] parameter(0) ROOT r = f32[2,3] collective-broadcast(a), replica_groups={{1,0}}",
  "a = f32[4,4] parameter(0) u = f32[2,2] parameter(1) i = s32[] parameter(2) ROOT r = f32[4,4] dynamic-update-slice(a, u, i, i)",
  // walks: paths that meet, runtime values of runtime values, calls
  "a = f32[6] parameter(0) b = f32[4] slice(a), slice={[0:4]} c = f32[4] slice(a), slice={[2:6]} ROOT r = f32[4] add(b, c)",
  "a = f32[4,6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[3,4] dynamic-slice(a, i, j), dynamic_slice_sizes={3,4} ROOT r = f32[2,2] dynamic-slice(b, j, i), dynamic_slice_sizes={2,2}",
  "a = f32[5] parameter(0) n = s32[4] parameter(1) i = s32[] parameter(2) s = s32[1] dynamic-slice(n, i), dynamic_slice_sizes={1} j = s32[] reshape(s) ROOT r = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}",
  "a = f32[5] parameter(0) n = s32[4,1] parameter(1) m = s32[3,1] parameter(2) g = s32[3,1] gather(n, m), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1} "
  "ROOT r = f32[3] gather(a, g), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
  "a = f32[4] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2) b = f32[4] dynamic-update-slice(a, u, i) ROOT r = f32[2] dynamic-slice(b, i), dynamic_slice_sizes={2}",
  "a = f32[6] parameter(0) i = s32[] parameter(1) f = f32[2] fusion(a, i), kind=kLoop, calls={ p = f32[6] parameter(0) q = s32[] parameter(1) ROOT d = f32[2] dynamic-slice(p, q), dynamic_slice_sizes={2} } "
  "g = f32[2] fusion(f, i), kind=kLoop, calls={ p = f32[2] parameter(0) q = s32[] parameter(1) d = f32[1] dynamic-slice(p, q), dynamic_slice_sizes={1} ROOT b = f32[2] broadcast(f32[] reshape(d)), dimensions={} } ROOT r = f32[2] add(f, g)",
  "a = f32[2,2,2,2] parameter(0) i = s32[2,2,2] parameter(1) u = f32[2,2] parameter(2) b = f32[2,2,2,2] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0,3}, scatter_dims_to_operand_dims={0,3}, input_batching_dims={1,2}, scatter_indices_batching_dims={0,1}, index_vector_dim=2, to_apply=sum ROOT r = f32[4,4] reshape(b)",
  "a = f32[4] parameter(0) i = s32[3,1] parameter(1) u = f32[3,2] parameter(2) ROOT r = f32[4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  "a = f32[6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2} c = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2} ROOT r = f32[2] add(b, c)",
  "a = f32[6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[2] call(a, i), to_apply=slice_at c = f32[2] call(a, j), to_apply=slice_at ROOT r = f32[2] add(b, c)",
  "a = f32[6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) t = (f32[6], (s32[], s32[])) tuple(a, (s32[], s32[]) tuple(i, j)) "
  "u = (s32[], s32[]) get-tuple-element(t), index=1 k = s32[] get-tuple-element(u), index=1 ROOT r = f32[2] dynamic-slice(a, k), dynamic_slice_sizes={2}",
};
// clang-format on

static void check(const char *text, uint64_t seed) {
  kiln_module *m = parse(text);
  model s;
  EXPECT(model_make(&s, m, &m->comp[m->entry], seed, 1 << 20), "the model is too small");
  compare_ops(&s, text);
  compare_walks(&s, text);
  model_free(&s);
  kiln_module_destroy(&m);
}

START_TEST(every_op) {
  char text[8192];
  snprintf(text, sizeof text, "HloModule m\n" STEPS "ENTRY e {\n%s\n}\n", rows[_i]);
  for (uint64_t seed = 0; seed < 8; seed++) check(text, seed);
}
END_TEST

// --- every op has an answer ---------------------------------------------------------------------------------------

static void is_sound(kl_dependences d, const kl_instr *in, const char *text) {
  for (uint32_t i = 0; i < d.n; i++) {
    EXPECT(d.p[i].operand < in->noperands, "no such operand\n%s", text);
    EXPECT(i == 0 || d.p[i].operand >= d.p[i - 1].operand, "not in the order of operands\n%s", text);
    EXPECT(d.p[i].exact ? d.p[i].map->state != KL_MAP_UNDEFINED : d.p[i].why != NULL, "exact or a reason\n%s", text);
  }
}

static void ask_everything(const kiln_module *m, const kl_comp *c, const char *text) {
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  struct kl_runtimes *runtimes = kl_runtimes_create(m->cx, &arena);
  kl_frame frame = {c, 0, 0};
  kl_reader r = {p, m, &frame, 0, runtimes};
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t leaf = 0; leaf < kl_shape_leaf_count(c->instr[i].shape); leaf++) {
      const kl_instr *in = &c->instr[i];
      kl_dependences d = kl_reads(&r, i, leaf);
      is_sound(d, in, text);
      for (uint32_t k = 0; k < d.n; k++) is_sound(kl_feeds(&r, i, d.p[k].operand, d.p[k].leaf, leaf), in, text);
      for (int way = KL_REACH_OPERANDS; way <= KL_REACH_USERS; way++) {
        kl_reach reach;
        kl_reach_make(p, m, c, i, leaf, (kl_reach_way)way, &reach);
        kl_reach_free(&reach);
      }
    }
  kl_runtimes_destroy(&runtimes);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
}

// Extents that are not known beside all that is.
static const char *const unbounded[] = {
    "x = f32[?,3] foo(a)\n  ROOT y = f32[?,3] negate(x)",
    "x = f32[?,3] foo(a)\n  ROOT y = f32[?] reduce(x, s), dimensions={1}, to_apply=sum",
    "x = f32[?,3] foo(a)\n  ROOT y = f32[?,3] reverse(x), dimensions={0}",
    "x = f32[?,3] foo(a)\n  ROOT y = f32[3,?] transpose(x), dimensions={1,0}",
};

static kiln_module *sample(const char *lines) {
  static char text[1 << 16];
  wrap(text, sizeof text, lines, true);
  kiln_module *m = parse(text);
  ask_everything(m, &m->comp[m->entry], text);
  return m;
}

START_TEST(every_sample) {
  kiln_module *m = sample(instructions[_i][0]);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(unknown_extents) {
  kiln_module *m = sample(unbounded[_i]);
  const kl_comp *c = &m->comp[m->entry];
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  kl_reach r;
  kl_reach_make(p, m, c, c->root, 0, KL_REACH_OPERANDS, &r);
  for (uint32_t i = 0; i < r.n; i++)
    for (uint32_t k = 0; k < r.values[i].n; k++)
      EXPECT(r.values[i].maps[k].map->state != KL_MAP_EMPTY, "no elements: %s", unbounded[_i]);
  kl_reach_free(&r);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_module_destroy(&m);
}
END_TEST

// --- random fusions -----------------------------------------------------------------------------------------------

START_TEST(random_fusions) {
  static char text[1 << 16];
  compared = (compare_counts){0};
  for (uint64_t i = 0, all = share_of(1500); i < all; i++) {
    EXPECT(random_module(i, 2 + (int)(i % 6), text, sizeof text), "module %llu is too long", (unsigned long long)i);
    check(text, i);
  }
  EXPECT(compared.unknown == 0, "%ld of %ld maps are unknown", (long)compared.unknown, (long)compared.maps);
  EXPECT(compared.exact * 10 > compared.maps * 9, "%ld of %ld maps are exact", (long)compared.exact,
         (long)compared.maps);
}
END_TEST

int main(void) {
  return RUN_TESTS("reads", EACH(make_context, drop_context), {every_op, sizeof rows / sizeof *rows},
                   {every_sample, sizeof instructions / sizeof *instructions},
                   {unknown_extents, sizeof unbounded / sizeof *unbounded}, {random_fusions});
}

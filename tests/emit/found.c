// What random fusions have found: each a case that was refused, or taken for a defect.
#include "harness.h"
#include "support/suite.h"

#include <stdio.h>

// clang-format off
static const small rows[] = {
  {"the sign of a NaN, which is not the same on all machines, is in no quotient",
   "ENTRY e { x = f32[40] parameter(0)\n o = f32[] constant(-1)\n b = f32[40] broadcast(o), dimensions={}\n a = f32[40] abs(x)\n m = f32[40] subtract(b, a)\n n = f32[40] sqrt(m)\n i = f32[] constant(inf)\n j = f32[40] broadcast(i), dimensions={}\n"
   " z = f32[40] subtract(x, x)\n t = c64[40] complex(z, x)\n u = c64[40] complex(x, z)\n v = c64[40] complex(n, j)\n w = c64[40] complex(j, n)\n p = c64[40] divide(t, v)\n q = c64[40] divide(u, w)\n r = c64[40] divide(u, v)\n ROOT y = (c64[40], c64[40], c64[40]) tuple(p, q, r)\n}\n", "f32"},
  {"a factor of no matrices",
   "ENTRY e { a = f32[0,8,2,1] parameter(0)\n lu = (f32[0,8,2,1], s32[0,8,1], s32[0,8]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"\n p = s32[0,8,1] get-tuple-element(lu), index=1\n"
   " ROOT r = s32[0,8,2] custom-call(p), custom_call_target=\"cu_lu_pivots_to_permutation\"\n}\n", "f32"},
  {"an unknown that is next to nothing, and one that is made of it",
   "ENTRY e { o = f32[2,2] parameter(0)\n z = f32[2,2] subtract(o, o)\n p = pred[2,2] compare(z, z), direction=EQ\n a = f32[2,2] constant({{-3.86e35, 0}, {-1688.5, -2.3e-15}})\n b = f32[2,2] constant({{4.467e-7, 4.5e-7}, {0, 0}})\n"
   " s = f32[2,2] select(p, a, o)\n ROOT x = f32[2,2] triangular-solve(s, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE\n}\n", "f32"},
  {"a factor, whose columns have as many rows as 16 do not divide",
   "ENTRY e { x = f32[44,44] parameter(0)\n p = f32[44,44] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n i = s32[44,44] iota(), iota_dimension=0\n j = s32[44,44] iota(), iota_dimension=1\n e = pred[44,44] compare(i, j), direction=EQ\n"
   " u = f32[44,44] convert(e)\n a = f32[44,44] add(p, u)\n ROOT l = f32[44,44] cholesky(a), lower=false\n}\n", "f32"},
  {"a column whose first element makes nothing of the squares of the others",
   "ENTRY e { o = f64[2,1] parameter(0)\n f = f64[1,1] constant({{4e306}})\n m = f64[2,1] maximum(o, o)\n l = f64[2,1] constant({{4.75}, {-0.25}})\n s = f64[2,1] add(m, l)\n a = f64[3,1] concatenate(f, s), dimensions={0}\n"
   " ROOT qr = (f64[3,1], f64[1]) custom-call(a), custom_call_target=\"lapack_dgeqrf_ffi\"\n}\n", "f64"},
  {"a scatter in a branch, whose results are two",
   "b { p = (s16[4], s16[1]) parameter(0)\n x = s16[4] get-tuple-element(p), index=0\n u = s16[1] get-tuple-element(p), index=1\n i = s32[1,1] constant({{2}})\n"
   " s = s16[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n ROOT r = (s16[4], s16[4]) tuple(s, x)\n}\n"
   "c { p = (s16[4], s16[1]) parameter(0)\n x = s16[4] get-tuple-element(p), index=0\n n = s16[4] negate(x)\n ROOT r = (s16[4], s16[4]) tuple(n, n)\n}\n"
   "ENTRY e { k = s32[] parameter(0)\n x = s16[4] parameter(1)\n u = s16[1] parameter(2)\n t = (s16[4], s16[1]) tuple(x, u)\n"
   " c = (s16[4], s16[4]) conditional(k, t, t, t), branch_computations={b, c, b}\n a = s16[4] get-tuple-element(c), index=0\n d = s16[4] get-tuple-element(c), index=1\n ROOT r = s16[4] subtract(a, d)\n}\n", "s16"},
  {"a reduction in a branch",
   "b { x = f32[40] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=f\n}\n"
   "c { x = f32[40] parameter(0)\n s = f32[1] slice(x), slice={[3:4]}\n ROOT r = f32[] reshape(s)\n}\n"
   "ENTRY e { k = pred[] parameter(0)\n x = f32[40] parameter(1)\n ROOT r = f32[] conditional(k, x, x), true_computation=b, false_computation=c\n}\n", "f32"},
  {"a scalar and a tuple as results",
   "ENTRY e { x = f16[11,4] parameter(0)\n y = f16[11,4] negate(x)\n t = f16[4,11] transpose(y), dimensions={1,0}\n s = f16[1,1] slice(y), slice={[0:1], [0:1]}\n c = f16[] reshape(s)\n"
   " n = (f16[11,4], f16[4,11]) tuple(y, t)\n ROOT r = (f16[], (f16[11,4], f16[4,11])) tuple(c, n)\n}\n", "f16"},
  {"one result of less than a byte", "ENTRY e { x = u4[1] parameter(0)\n z = u4[] constant(1)\n ROOT r = u4[] reduce(x, z), dimensions={0}, to_apply=f\n}\n", "u4"},
  {"columns of less than a byte", "ENTRY e { x = u4[3,33] parameter(0)\n z = u4[] constant(1)\n ROOT r = u4[33] reduce(x, z), dimensions={0}, to_apply=f\n}\n", "u4"},
  {"sums of less than a byte, in another order", "ENTRY e { x = s4[2,5,3,8,1]{0,2,1,4,3} parameter(0)\n z = s4[] constant(0)\n ROOT r = s4[5,3,8,1] reduce(x, z), dimensions={0}, to_apply=f\n}\n", "s4"},
  {"an element handed on as if it lay otherwise, beside a scatter",
   "ENTRY e { x = s32[5,3] parameter(0)\n i = s32[2,1] parameter(1)\n u = s32[2,3] parameter(2)\n t = (s32[5,3], s32[2,3]) tuple(x, u)\n o = (s32[5,3], s32[2,3]) opt-barrier(t)\n g = s32[5,3]{0,1} get-tuple-element(o), index=0\n b = s32[15] bitcast(g)\n"
   " s = s32[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n q = s32[5,3] multiply(s, s)\n w = s32[3] slice(b), slice={[4:7]}\n ROOT r = (s32[5,3], s32[3], s32[5,3]) tuple(q, w, s)\n}\n", "s32"},
  {"a parameter and scattered arrays as results that lie otherwise",
   "g { x = s2[5,3] parameter(0)\n i = s32[2,1] parameter(1)\n u = s2[2,3] parameter(2)\n"
   " s = s2[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n q = s2[5,3] multiply(s, s)\n ROOT r = (s2[5,3], s2[5,3], s2[5,3], s2[5,3]) tuple(q, x, s, s)\n}\n"
   "ENTRY e { x = s2[5,3] parameter(0)\n i = s32[2,1] parameter(1)\n u = s2[2,3] parameter(2)\n ROOT r = (s2[5,3], s2[5,3]{0,1}, s2[5,3]{1,0:T(2,2)}, s2[5,3]{0,1}) fusion(x, i, u), kind=kLoop, calls=g\n}\n", "s2"},
  {"an index that is not proved, on the host",
   "ENTRY e { x = s2[3,5,3,8,4,1] parameter(0)\n u = s2[2,1,1,4,4,1] parameter(1)\n i = s32[] parameter(2)\n k = s32[] constant(3)\n d = s2[3,5,3,8,4,1] dynamic-update-slice(x, u, k, i, k, i, k, i)\n"
   " b = s2[3,4,8,1,3,5]{0,3,1,5,4,2} bitcast(d)\n v = s2[3,4,8,1,3,5]{4,5,1,0,2,3} reverse(b), dimensions={1,2,3,4}\n ROOT r = s2[6,240] reshape(v)\n}\n", "s2"},
  {"scattered windows whose indices are not proved",
   "ENTRY e { u = u32[6,10,12,6,1]{3,0,4,2,1} parameter(0)\n x = f32[6,10,12,6,1]{4,2,1,0,3} parameter(1)\n j = s8[12,10,3] parameter(2)\n w = f32[12,5,1,10] parameter(3)\n"
   " m = s8[] constant(7)\n b = s8[12,10,3] broadcast(m), dimensions={}\n i = s8[12,10,3] and(j, b)\n"
   " s = f32[6,10,12,6,1] scatter(x, i, w), update_window_dims={1,2}, inserted_window_dims={3}, scatter_dims_to_operand_dims={3,4,0}, input_batching_dims={1,2}, scatter_indices_batching_dims={1,0}, index_vector_dim=2, to_apply=f\n"
   " v = u32[6,10,12,6,1] copy(u)\n ROOT r = (f32[6,10,12,6,1], u32[6,10,12,6,1]) tuple(s, v)\n}\n", "f32"},
  {"a reduction whose indices are not proved",
   "ENTRY e { x = bf16[2,2,46,5,6] parameter(0)\n u = bf16[2,2,12,4,6]{3,1,2,0,4} parameter(1)\n i = s32[] parameter(2)\n k = s32[] parameter(3)\n m = s32[] constant(3)\n j = s32[] and(i, m)\n l = s32[] and(k, m)\n"
   " d = bf16[2,2,46,5,6] dynamic-update-slice(x, u, j, i, l, m, l)\n q = bf16[2,2,46,5,6] floor(d)\n z = bf16[] constant(2)\n"
   " ROOT r = bf16[] reduce(q, z), dimensions={0,1,2,3,4}, to_apply=f\n}\n", "bf16"},
  {"distances of shifts that a mask holds below the width, and below twice that",
   "ENTRY e { x = u32[77] parameter(0)\n y = u32[77] parameter(1)\n w = u64[77] parameter(2)\n a = u32[] constant(31)\n b = u32[] constant(63)\n m = u32[77] broadcast(a), dimensions={}\n"
   " n = u32[77] broadcast(b), dimensions={}\n p = u32[77] and(y, m)\n q = u32[77] and(y, n)\n v = u64[77] convert(q)\n c = u32[77] shift-left(x, p)\n d = u32[77] shift-right-logical(x, p)\n"
   " g = u32[77] shift-left(x, q)\n h = u32[77] shift-right-logical(x, q)\n i = u64[77] shift-left(w, v)\n j = u64[77] shift-right-logical(w, v)\n"
   " ROOT r = (u32[77], u32[77], u32[77], u32[77], u64[77], u64[77]) tuple(c, d, g, h, i, j)\n}\n", "u32"},
  {"columns of many bytes beside those of few, whose partial values have no room for as many as the few's vectors have",
   "first { v0 = c128[] parameter(0)\n v1 = u8[] parameter(1)\n v2 = c128[] parameter(2)\n v3 = u8[] parameter(3)\n v4 = pred[] compare(v0, v2), direction=NE\n"
   " v5 = c128[] select(v4, v0, v2)\n v6 = u8[] select(v4, v1, v3)\n ROOT root = (c128[], u8[]) tuple(v5, v6)\n}\n"
   "ENTRY e { i = u8[12,448] parameter(0)\n j = c128[12,448] parameter(1)\n c = c128[] constant((0, 0))\n d = u8[] constant(0)\n"
   " ROOT r = (c128[448], u8[448]) reduce(j, i, c, d), dimensions={0}, to_apply=first\n}\n", "u8"},
  {"what a loop of each thread carries in a tuple in a tuple",
   "again { s = ((s32[], s32[3]), s32[3]) parameter(0)\n t = (s32[], s32[3]) get-tuple-element(s), index=0\n i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(9)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "body { s = ((s32[], s32[3]), s32[3]) parameter(0)\n t = (s32[], s32[3]) get-tuple-element(s), index=0\n i = s32[] get-tuple-element(t), index=0\n x = s32[3] get-tuple-element(t), index=1\n y = s32[3] get-tuple-element(s), index=1\n"
   " d = s32[] constant(3)\n j = s32[] add(i, d)\n z = s32[3] multiply(x, y)\n w = s32[3] subtract(y, x)\n u = (s32[], s32[3]) tuple(j, z)\n ROOT r = ((s32[], s32[3]), s32[3]) tuple(u, w)\n}\n"
   "ENTRY e { k = s32[] parameter(0)\n x = s32[3] parameter(1)\n c = s32[] constant(7)\n i = s32[] and(k, c)\n t = (s32[], s32[3]) tuple(i, x)\n s = ((s32[], s32[3]), s32[3]) tuple(t, x)\n"
   " ROOT w = ((s32[], s32[3]), s32[3]) while(s), condition=again, body=body\n}\n", "s32"},
  {"what was started before a round is done in it",
   "again { s = ((f32[3,8]{0,1}, f32[3,8], u32[]), ((f32[3,8]), f32[8], (s32[], token[])), s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=2\n n = s32[] constant(9)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "most { x = f32[3,8] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[8] reduce(x, z), dimensions={0}, to_apply=f\n}\n"
   "body { s = ((f32[3,8]{0,1}, f32[3,8], u32[]), ((f32[3,8]), f32[8], (s32[], token[])), s32[]) parameter(0)\n c = (f32[3,8]{0,1}, f32[3,8], u32[]) get-tuple-element(s), index=0\n"
   " a = ((f32[3,8]), f32[8], (s32[], token[])) get-tuple-element(s), index=1\n i = s32[] get-tuple-element(s), index=2\n x = f32[3,8]{0,1} copy-done(c)\n m = f32[8] async-done(a)\n b = f32[3,8] broadcast(m), dimensions={1}\n"
   " y = f32[3,8] subtract(b, x)\n o = s32[] constant(1)\n j = s32[] add(i, o)\n d = (f32[3,8]{0,1}, f32[3,8], u32[]) copy-start(y)\n e = ((f32[3,8]), f32[8], (s32[], token[])) async-start(y), calls=most\n"
   " ROOT r = ((f32[3,8]{0,1}, f32[3,8], u32[]), ((f32[3,8]), f32[8], (s32[], token[])), s32[]) tuple(d, e, j)\n}\n"
   "ENTRY e { k = s32[] parameter(0)\n x = f32[3,8] parameter(1)\n n = s32[] constant(7)\n i = s32[] and(k, n)\n c = (f32[3,8]{0,1}, f32[3,8], u32[]) copy-start(x)\n a = ((f32[3,8]), f32[8], (s32[], token[])) async-start(x), calls=most\n"
   " s = ((f32[3,8]{0,1}, f32[3,8], u32[]), ((f32[3,8]), f32[8], (s32[], token[])), s32[]) tuple(c, a, i)\n w = ((f32[3,8]{0,1}, f32[3,8], u32[]), ((f32[3,8]), f32[8], (s32[], token[])), s32[]) while(s), condition=again, body=body\n"
   " g = (f32[3,8]{0,1}, f32[3,8], u32[]) get-tuple-element(w), index=0\n h = ((f32[3,8]), f32[8], (s32[], token[])) get-tuple-element(w), index=1\n y = f32[3,8] copy-done(g)\n m = f32[8] async-done(h)\n ROOT r = (f32[3,8], f32[8]) tuple(y, m)\n}\n", "f32"},
  {"a copy that is started and handed out", "ENTRY e { x = f32[8,2]{0,1} parameter(0)\n ROOT r = (f32[8,2]{1,0}, f32[8,2]{0,1}, u32[]) copy-start(x)\n}\n", "f32"},
  {"tokens that loops and branches hand on",
   "again { s = (token[], s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=1\n n = s32[] constant(9)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "body { s = (token[], s32[], f32[40]) parameter(0)\n t = token[] get-tuple-element(s), index=0\n i = s32[] get-tuple-element(s), index=1\n x = f32[40] get-tuple-element(s), index=2\n u = token[] after-all(t)\n d = s32[] constant(2)\n"
   " j = s32[] add(i, d)\n z = f32[] constant(1)\n m = f32[] reduce(x, z), dimensions={0}, to_apply=f\n b = f32[40] broadcast(m), dimensions={}\n y = f32[40] subtract(b, x)\n ROOT r = (token[], s32[], f32[40]) tuple(u, j, y)\n}\n"
   "b { s = (token[], f32[40]) parameter(0)\n t = token[] get-tuple-element(s), index=0\n x = f32[40] get-tuple-element(s), index=1\n z = f32[] constant(0)\n m = f32[] reduce(x, z), dimensions={0}, to_apply=f\n"
   " y = f32[40] broadcast(m), dimensions={}\n ROOT r = (token[], f32[40]) tuple(t, y)\n}\n"
   "c { ROOT s = (token[], f32[40]) parameter(0)\n}\n"
   "ENTRY e { k = s32[] parameter(0)\n x = f32[40] parameter(1)\n p = pred[] parameter(2)\n t = token[] after-all()\n n = s32[] constant(7)\n i = s32[] and(k, n)\n s = (token[], s32[], f32[40]) tuple(t, i, x)\n"
   " w = (token[], s32[], f32[40]) while(s), condition=again, body=body\n u = token[] get-tuple-element(w), index=0\n y = f32[40] get-tuple-element(w), index=2\n v = (token[], f32[40]) tuple(u, y)\n"
   " q = (token[], f32[40]) conditional(p, v, v), true_computation=b, false_computation=c\n ROOT r = f32[40] get-tuple-element(q), index=1\n}\n", "f32"},
  {"ops that are started by their own names: what is made of other ops, what is known by name, a loop of kernels",
   "by { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER\n}\n"
   "again { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(90)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "body { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = f32[40] get-tuple-element(s), index=1\n d = s32[] constant(17)\n j = s32[] add(i, d)\n z = f32[] constant(0)\n"
   " m = f32[] reduce(x, z), dimensions={0}, to_apply=f\n b = f32[40] broadcast(m), dimensions={}\n y = f32[40] subtract(b, x)\n ROOT r = (s32[], f32[40]) tuple(j, y)\n}\n"
   "loop { x = f32[40] parameter(0)\n i = s32[] parameter(1)\n s = (s32[], f32[40]) tuple(i, x)\n w = (s32[], f32[40]) while(s), condition=again, body=body\n ROOT r = f32[40] get-tuple-element(w), index=1\n}\n"
   "ENTRY e { x = f32[40] parameter(0)\n k = s32[] parameter(1)\n u = u64[2] parameter(2)\n n = s32[] constant(63)\n i = s32[] and(k, n)\n o = f32[] constant(1)\n c = ((f32[40], s32[]), f32[40], u32[]) call-start(x, i), to_apply=loop\n"
   " c1 = ((f32[40], s32[]), f32[40], u32[]) call-update(c)\n g = ((u64[2]), (u64[2], u32[5]), u32[]) rng-bit-generator-start(u), algorithm=rng_philox\n t = ((f32[40]), (f32[4], s32[4])) custom-call-start(x), custom_call_target=\"TopK\", called_computations={by}\n"
   " v = ((f32[], f32[]), f32[7], u32[]) rng-start(o, o), distribution=rng_normal\n w = f32[7] rng(o, o), distribution=rng_normal\n c2 = f32[40] call-done(c1)\n g2 = (u64[2], u32[5]) rng-bit-generator-done(g)\n t2 = (f32[4], s32[4]) custom-call-done(t)\n"
   " v2 = f32[7] rng-done(v)\n ROOT r = (f32[40], (u64[2], u32[5]), (f32[4], s32[4]), f32[7], f32[7]) tuple(c2, g2, t2, v2, w)\n}\n", "f32"},
  {"pieces that a device sends itself: several that meet, rows that are not there, none, the ends of integers",
   "ENTRY e { x = s4[9,3] parameter(0)\n o = s4[17,3] parameter(1)\n i = s8[4] parameter(2)\n j = s8[4] parameter(3)\n k = s8[4] parameter(4)\n m = s8[] constant(7)\n b = s8[4] broadcast(m), dimensions={}\n i7 = s8[4] and(i, b)\n j7 = s8[4] and(j, b)\n"
   " k7 = s8[4] and(k, b)\n a = s4[17,3] ragged-all-to-all(x, o, i, j, k, j), replica_groups={{0}}\n c = s4[17,3] ragged-all-to-all(x, a, i7, j7, k7, j7), replica_groups={{0}}\n"
   " y = c64[9]{0} parameter(5)\n u = u64[3] constant({18446744073709551615, 2, 4})\n v = u64[3] constant({18446744073709551615, 18446744073709551615, 1})\n w = u64[3] constant({0, 3, 18446744073709551614})\n d = c64[9] ragged-all-to-all(y, y, u, v, w, v)\n"
   " q = s64[4] constant({-9223372036854775808, 9223372036854775807, 0, -3})\n s = s64[4] constant({9223372036854775807, 9223372036854775807, 9223372036854775807, 40})\n t = s64[4] constant({-9223372036854775808, 3, -9223372036854775808, 2})\n"
   " h = s4[17,3] ragged-all-to-all(c, o, q, s, t, s)\n z = c64[0] parameter(6)\n n = s32[0] constant({})\n g = c64[9] ragged-all-to-all(z, d, u, v, w, v)\n l = c64[9] ragged-all-to-all(y, g, n, n, n, n)\n"
   " p = ((c64[0], c64[0], s32[0], s32[0], s32[0], s32[0]), c64[0]) ragged-all-to-all-start(z, z, n, n, n, n)\n f0 = c64[0] ragged-all-to-all-done(p)\n ROOT r = (s4[17,3], s4[17,3], c64[9], c64[0]) tuple(c, h, l, f0)\n}\n", "s32"},
  {"a loop of kernels in a fusion in a fusion",
   "again { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(9)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "body { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = f32[40] get-tuple-element(s), index=1\n o = s32[] constant(1)\n j = s32[] add(i, o)\n z = f32[] constant(0)\n"
   " m = f32[] reduce(x, z), dimensions={0}, to_apply=f\n b = f32[40] broadcast(m), dimensions={}\n y = f32[40] subtract(b, x)\n ROOT r = (s32[], f32[40]) tuple(j, y)\n}\n"
   "in { x = f32[40] parameter(0)\n i = s32[] parameter(1)\n s = (s32[], f32[40]) tuple(i, x)\n w = (s32[], f32[40]) while(s), condition=again, body=body\n ROOT r = f32[40] get-tuple-element(w), index=1\n}\n"
   "out { x = f32[40] parameter(0)\n i = s32[] parameter(1)\n y = f32[40] fusion(x, i), kind=kLoop, calls=in\n n = f32[40] negate(y)\n ROOT r = (f32[40], f32[40]) tuple(y, n)\n}\n"
   "ENTRY e { x = f32[40] parameter(0)\n k = s32[] parameter(1)\n n = s32[] constant(7)\n i = s32[] and(k, n)\n ROOT r = (f32[40], f32[40]) fusion(x, i), kind=kInput, calls=out\n}\n", "f32"},
  {"a loop that is one launch, behind kernels that are one",
   "u { x = f32[9,1024] parameter(0)\n y = f32[9,1024] parameter(1)\n ROOT r = f32[9,1024] multiply(x, y)\n}\ng { x = f32[9,1024] parameter(0)\n ROOT r = f16[9,1024] convert(x)\n}\n"
   "h { x = f16[9,1024] parameter(0)\n ROOT r = f16[9,1024] negate(x)\n}\n"
   "again { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(9)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
   "body { s = (s32[], f32[40]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = f32[40] get-tuple-element(s), index=1\n o = s32[] constant(1)\n j = s32[] add(i, o)\n z = f32[] constant(0)\n"
   " m = f32[] reduce(x, z), dimensions={0}, to_apply=f\n b = f32[40] broadcast(m), dimensions={}\n y = f32[40] subtract(b, x)\n ROOT r = (s32[], f32[40]) tuple(j, y)\n}\n"
   "ENTRY e { x = f32[9,1024] parameter(0)\n y = f32[9,1024] parameter(1)\n k = s32[] parameter(2)\n c = f32[40] parameter(3)\n p = f32[9,1024] fusion(x, y), kind=kLoop, calls=u\n q = f16[9,1024] fusion(p), kind=kLoop, calls=g\n"
   " t = f16[9,1024] fusion(q), kind=kLoop, calls=h\n n = s32[] constant(7)\n i = s32[] and(k, n)\n s = (s32[], f32[40]) tuple(i, c)\n w = (s32[], f32[40]) while(s), condition=again, body=body\n v = f32[40] get-tuple-element(w), index=1\n"
   " ROOT r = (f16[9,1024], f32[40]) tuple(t, v)\n}\n", "f32"},
};
// clang-format on

START_TEST(is_right_everywhere) {
  check_small(&rows[_i], (unsigned)_i);
}
END_TEST

// Of an op that a chooser of its own makes, who is refused hears what that one says, in whatever way it was tried.
START_TEST(a_refusal_says_why) {
  enum { ARRAYS = 33 };
  static const char *const machine[] = {"host", "sm_90"};
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nf {\n");
  for (int i = 0; i < 2 * ARRAYS; i++) kl_sbf(&b, " p%d = f32[] parameter(%d)\n", i, i);
  kl_sb_puts(&b, " ROOT r = (");
  for (int i = 0; i < ARRAYS; i++) kl_sb_puts(&b, i ? ", f32[]" : "f32[]");
  kl_sb_puts(&b, ") tuple(");
  for (int i = 0; i < ARRAYS; i++) kl_sbf(&b, i ? ", p%d" : "p%d", i);
  kl_sb_puts(&b,
             ")\n}\nENTRY e {\n x = f32[9] parameter(0)\n i = s32[4,1] parameter(1)\n u = f32[4] parameter(2)\n s = (");
  for (int i = 0; i < ARRAYS; i++) kl_sb_puts(&b, i ? ", f32[9]" : "f32[9]");
  kl_sb_puts(&b, ") scatter(");
  for (int i = 0; i < 2 * ARRAYS + 1; i++) kl_sb_puts(&b, i < ARRAYS ? "x, " : i == ARRAYS ? "i" : ", u");
  kl_sb_puts(&b, "), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                 "index_vector_dim=1, to_apply=f\n g = f32[9] get-tuple-element(s), index=3\n"
                 " ROOT n = f32[9] negate(g)\n}\n");
  if (kiln_module_parse(cx, "many.hlo", b.p, b.n, &m) != KILN_OK) give_up(0, "parsing", cx, b.p);
  for (int t = 0; t < 2; t++) {
    kiln_compile_params p = {.struct_size = sizeof p, .target = machine[t]};
    ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_E_UNSUPPORTED);
    ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
    const char *text = kiln_diagnostics_get(cx, 0)->text;
    ck_assert_msg(strstr(text, "scatter is not compiled here: it has more than 32 arrays"), "%s", text);
    kiln_diagnostics_clear(cx);
  }
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
}
END_TEST

#define ADD      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
#define OUT      "t = token[] after-all() s = token[] outfeed(x, t), outfeed_shape=f32[8] "
#define CALLBACK "c = () custom-call(x), custom_call_target=\"cb\", custom_call_has_side_effect=true "
#define ENTRY    "ENTRY e {\n x = f32[8] parameter(0)\n "
#define NEGATE   " ROOT r = f32[8] negate(x) }\n"
#define SHARDED  "custom_call_target=\"Sharding\", custom_call_has_side_effect=true"

// What acts on more than its result is refused whether anyone uses that or not, each in one list, by its line; what one
// device need not do is taken out.
START_TEST(effects_are_refused) {
  static const struct {
    const char *text, *fusion, *found[6];
    uint64_t max_count;
  } rows[] = {
      {ENTRY OUT "\n" NEGATE, NULL, {"4:outfeed"}, 0},
      {ENTRY OUT "\n" NEGATE, NULL, {"4:outfeed"}, 64},
      {ENTRY CALLBACK "\n" NEGATE, NULL, {"4:custom-call of \"cb\""}, 0},
      {ENTRY CALLBACK "\n" NEGATE, NULL, {"4:custom-call of \"cb\""}, 64},
      {ENTRY "q = f32[8] frobnicate(x)\n" NEGATE, NULL, {"4:frobnicate"}, 0},
      {ENTRY "q = f32[8] population-count(x)\n" NEGATE, NULL, {"4:population-count"}, 0},
      {ENTRY "t = token[] custom-call(x), custom_call_target=\"cb\"\n u = token[] after-all(t)\n"
             " ROOT r = (f32[8], token[]) tuple(x, u) }\n",
       NULL,
       {"4:custom-call of \"cb\""},
       0},
      {ENTRY "t = token[] after-all()\n i = (f32[8], token[]) infeed(t)\n o = token[] outfeed(x, t), "
             "outfeed_shape=f32[8]\n s = (f32[8], u32[], token[]) send(x, t), channel_id=3, is_host_transfer=true\n"
             " d = token[] send-done(s), channel_id=3, is_host_transfer=true\n" CALLBACK "\n" NEGATE,
       NULL,
       {"5:infeed", "6:outfeed", "7:send ", "8:send-done", "9:custom-call of \"cb\""},
       0},
      {"f {\n x = f32[8] parameter(0)\n " OUT "\n" NEGATE ENTRY
       "y = f32[8] fusion(x), kind=kLoop, calls=f\n ROOT z = f32[8] fusion(y), kind=kLoop, calls=f }\n",
       NULL,
       {"4:outfeed"},
       0},
      {"f {\n x = f32[8] parameter(0)\n " OUT "\n" NEGATE ENTRY
       "y = f32[8] fusion(x), kind=kLoop, calls=f\n ROOT z = f32[8] fusion(y), kind=kLoop, calls=f }\n",
       "y",
       {"4:outfeed"},
       0},
      {"f {\n x = f32[] parameter(0)\n t = token[] after-all()\n s = token[] outfeed(x, t), outfeed_shape=f32[]\n"
       " ROOT r = f32[] negate(x) }\n" ENTRY "ROOT y = f32[8] map(x), dimensions={0}, to_apply=f }\n",
       NULL,
       {"5:outfeed"},
       0},
      {"f {\n x = f32[] parameter(0)\n t = token[] after-all()\n s = token[] outfeed(x, t), outfeed_shape=f32[]\n"
       " ROOT r = f32[] negate(x) }\n" ENTRY "ROOT y = f32[8] map(x), dimensions={0}, to_apply=f }\n",
       NULL,
       {"5:outfeed"},
       64},
      {"c {\n x = f32[8] parameter(0)\n ROOT r = pred[] constant(false) }\nb {\n x = f32[8] parameter(0)\n " OUT
       "\n" NEGATE ENTRY "ROOT w = f32[8] while(x), condition=c, body=b }\n",
       NULL,
       {"7:outfeed"},
       0},
      {"HloModule m, replica_count=2\n" ADD ENTRY
       "y = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=add\n" NEGATE,
       NULL,
       {"5:all-reduce"},
       0},
      {ADD ENTRY "y = f32[8] all-reduce(x), replica_groups={}, to_apply=add\n" NEGATE, NULL, {NULL}, 0},
      {ENTRY "y = f32[8] custom-call(x), " SHARDED "\n" NEGATE, NULL, {NULL}, 0},
      {ENTRY "y = f32[8] custom-call(x), " SHARDED "\n ROOT r = f32[8] negate(y) }\n", NULL, {NULL}, 0},
      {ENTRY
       "y = f32[8] custom-call(), custom_call_target=\"AllocateBuffer\", custom_call_has_side_effect=true\n" NEGATE,
       NULL,
       {NULL},
       0},
      {ENTRY "u = u32[8] rng-bit-generator-like(x)\n" NEGATE, NULL, {"4:rng-bit-generator-like"}, 0},
      {ENTRY "t = token[] after-all()\n" NEGATE, NULL, {NULL}, 0},
  };
  static const char *const machine[] = {"host", "sm_90"};
  kiln_context *cx = kiln_context_create(NULL);
  for (size_t i = 0; i < 2 * KL_COUNT(rows); i++) {
    const char *text = rows[i / 2].text;
    kiln_module *m = NULL;
    kiln_artifact *a = NULL;
    kl_sb b;
    kl_sb_init(&b, cx);
    kl_sb_puts(&b, text);
    if (strncmp(text, "HloModule", 9) != 0) b.n = 0, kl_sbf(&b, "HloModule m\n%s", text);
    kiln_compile_params p = {.struct_size = sizeof p,
                             .target = machine[i % 2],
                             .fusion = rows[i / 2].fusion,
                             .max_count = rows[i / 2].max_count};
    if (kiln_module_parse(cx, "e.hlo", b.p, b.n, &m) != KILN_OK) give_up((unsigned)i, "parsing", cx, b.p);
    kiln_status st = kiln_compile(cx, m, &p, &a);
    size_t n = 0;
    for (size_t k = 0; k < kiln_diagnostics_count(cx); k++) {
      const kiln_diagnostic *d = kiln_diagnostics_get(cx, k);
      char found[200];
      if (d->severity != KILN_ERROR) continue;
      const char *want = rows[i / 2].found[n++];
      snprintf(found, sizeof found, "%u:%s", (unsigned)d->line, d->message);
      ck_assert_msg(want && strncmp(found, want, strlen(want)) == 0, "%s\nfound %s", b.p, found);
    }
    ck_assert_msg(!rows[i / 2].found[n] && st == (n ? KILN_E_UNSUPPORTED : KILN_OK), "%s\n%u findings", b.p,
                  (unsigned)n);
    kiln_diagnostics_clear(cx);
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
    kl_sb_free(&b);
  }
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("found", NO_FRAME, {is_right_everywhere, KL_COUNT(rows)}, {a_refusal_says_why},
                   {effects_are_refused});
}

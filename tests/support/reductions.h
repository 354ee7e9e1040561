// Reductions over other elements, one behind the other and side by side; results of other sizes and at other places.
#ifndef KL_TEST_REDUCTIONS_H
#define KL_TEST_REDUCTIONS_H

#include "base/base.h"

// `f` adds two f32.
typedef struct fusion_row {
  const char *what, *text;
} fusion_row;

// clang-format off
static const fusion_row fusions[] = {
  {"the mean of what rows have", "p = f32[19,130] parameter(0)\n z = f32[] parameter(1)\n a = f32[19] reduce(p, z), dimensions={1}, to_apply=f\n n = f32[19] negate(a)\n ROOT r = f32[] reduce(n, z), dimensions={0}, to_apply=f"},
  {"rows, then columns of what they leave", "p = f32[33,70] parameter(0)\n z = f32[] parameter(1)\n a = f32[33] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[33,70] broadcast(a), dimensions={0}\n d = f32[33,70] subtract(p, b)\n c = f32[70] reduce(d, z), dimensions={0}, to_apply=f\n ROOT t = (f32[33,70], f32[70], f32[33]) tuple(d, c, a)"},
  {"rows and columns", "p = f32[40,24] parameter(0)\n z = f32[] parameter(1)\n a = f32[40] reduce(p, z), dimensions={1}, to_apply=f\n c = f32[24] reduce(p, z), dimensions={0}, to_apply=f\n ROOT t = (f32[40], f32[24]) tuple(a, c)"},
  {"of two arrays", "p = f32[40,24] parameter(0)\n q = f32[7,300] parameter(1)\n z = f32[] parameter(2)\n a = f32[40] reduce(p, z), dimensions={1}, to_apply=f\n c = f32[7] reduce(q, z), dimensions={1}, to_apply=f\n ROOT t = (f32[40], f32[7]) tuple(a, c)"},
  {"columns, rows, all", "p = f32[10,12,14] parameter(0)\n z = f32[] parameter(1)\n a = f32[10,14] reduce(p, z), dimensions={1}, to_apply=f\n c = f32[10] reduce(a, z), dimensions={1}, to_apply=f\n ROOT r = f32[] reduce(c, z), dimensions={0}, to_apply=f"},
  {"all elements by their sum", "p = f32[50,30] parameter(0)\n z = f32[] parameter(1)\n a = f32[] reduce(p, z), dimensions={0,1}, to_apply=f\n b = f32[50,30] broadcast(a), dimensions={}\n ROOT r = f32[50,30] divide(p, b)"},
  {"a row's sum for elements of another array", "p = f32[50,30] parameter(0)\n q = f32[50,7] parameter(1)\n z = f32[] parameter(2)\n a = f32[50] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[50,7] broadcast(a), dimensions={0}\n ROOT r = f32[50,7] multiply(q, b)"},
  {"results turned", "p = f32[20,30] parameter(0)\n z = f32[] parameter(1)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[20,30] broadcast(a), dimensions={0}\n d = f32[20,30] subtract(p, b)\n ROOT r = f32[30,20] transpose(d), dimensions={1,0}"},
  {"results backwards", "p = f32[20,30] parameter(0)\n z = f32[] parameter(1)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n ROOT r = f32[20] reverse(a), dimensions={0}"},
  {"rows by other rows' sums", "p = f32[20,20] parameter(0)\n z = f32[] parameter(1)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[20,20] broadcast(a), dimensions={1}\n d = f32[20,20] subtract(p, b)\n ROOT r = f32[20] reduce(d, z), dimensions={1}, to_apply=f"},
  {"a slice of sums", "p = f32[20,30] parameter(0)\n z = f32[] parameter(1)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n ROOT r = f32[7] slice(a), slice={[3:17:2]}"},
  {"results of no elements", "p = f32[20,30] parameter(0)\n q = f32[0,4] parameter(1)\n z = f32[] parameter(2)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n c = f32[4] reduce(q, z), dimensions={0}, to_apply=f\n e = f32[0] reduce(q, z), dimensions={1}, to_apply=f\n ROOT t = (f32[20], f32[4], f32[0]) tuple(a, c, e)"},
  {"nothing but no elements", "q = f32[0,4] parameter(0)\n z = f32[] parameter(1)\n ROOT e = f32[0] reduce(q, z), dimensions={1}, to_apply=f"},
  {"a long row's elements by its sum", "p = f32[3000] parameter(0)\n z = f32[] parameter(1)\n a = f32[] reduce(p, z), dimensions={0}, to_apply=f\n b = f32[3000] broadcast(a), dimensions={}\n d = f32[3000] subtract(p, b)\n c = f32[] reduce(d, z), dimensions={0}, to_apply=f\n e = f32[3000] broadcast(c), dimensions={}\n g = f32[3000] divide(d, e)\n ROOT t = (f32[3000], f32[]) tuple(g, c)"},
  {"long columns by their sums", "p = f32[300,11] parameter(0)\n z = f32[] parameter(1)\n a = f32[11] reduce(p, z), dimensions={0}, to_apply=f\n b = f32[300,11] broadcast(a), dimensions={1}\n d = f32[300,11] subtract(p, b)\n q = f32[300,11] multiply(d, d)\n c = f32[11] reduce(q, z), dimensions={0}, to_apply=f\n ROOT t = (f32[11], f32[11]) tuple(a, c)"},
  {"beside elementwise results", "p = f32[20,30] parameter(0)\n q = f32[11] parameter(1)\n z = f32[] parameter(2)\n a = f32[20] reduce(p, z), dimensions={1}, to_apply=f\n m = f32[11] negate(q)\n n = f32[20,30] negate(p)\n ROOT t = (f32[20], f32[11], f32[20,30]) tuple(a, m, n)"},
  {"rows that begin anywhere", "p = f32[8,1029] parameter(0)\n z = f32[] parameter(1)\n n = f32[8,1029] negate(p)\n a = f32[8] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[8,1029] broadcast(a), dimensions={0}\n d = f32[8,1029] multiply(n, b)\n c = f32[8] reduce(d, z), dimensions={1}, to_apply=f\n ROOT t = (f32[8], f32[8]) tuple(a, c)"},
  {"elements of rows that begin anywhere", "p = f32[8,1021] parameter(0)\n z = f32[] parameter(1)\n a = f32[8] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[8,1021] broadcast(a), dimensions={0}\n d = f32[8,1021] subtract(p, b)\n q = f32[8,1021] multiply(d, d)\n c = f32[8] reduce(q, z), dimensions={1}, to_apply=f\n e = f32[8,1021] broadcast(c), dimensions={0}\n g = f32[8,1021] divide(d, e)\n ROOT t = (f32[8,1021], f32[8]) tuple(g, c)"},
  {"elements of narrow rows that begin anywhere", "p = f16[40,333] parameter(0)\n z = f32[] parameter(1)\n x = f32[40,333] convert(p)\n a = f32[40] reduce(x, z), dimensions={1}, to_apply=f\n b = f32[40,333] broadcast(a), dimensions={0}\n d = f32[40,333] divide(x, b)\n ROOT g = f16[40,333] convert(d)"},
  {"rows of bytes that begin anywhere", "p = s8[2,32,331] parameter(0)\n z = f32[] parameter(1)\n q = f32[2,32,331] convert(p)\n ROOT a = f32[2,32] reduce(q, z), dimensions={2}, to_apply=f"},
  {"rows of what is turned", "p = f32[300,40] parameter(0)\n z = f32[] parameter(1)\n t = f32[40,300] transpose(p), dimensions={1,0}\n n = f32[40,300] negate(t)\n ROOT a = f32[40] reduce(n, z), dimensions={1}, to_apply=f"},
  {"long rows of what is turned, few side by side", "p = f32[2,2100,3] parameter(0)\n z = f32[] parameter(1)\n t = f32[2,3,2100] transpose(p), dimensions={0,2,1}\n a = f32[2,3] reduce(t, z), dimensions={2}, to_apply=f\n b = f32[2,3,2100] broadcast(a), dimensions={0,1}\n d = f32[2,3,2100] subtract(t, b)\n q = f32[2,3,2100] multiply(d, d)\n c = f32[2,3] reduce(q, z), dimensions={2}, to_apply=f\n ROOT r = (f32[2,3], f32[2,3]) tuple(a, c)"},
  {"rows, and two sums of columns beside them", "p = f32[150,300] parameter(0)\n w = f32[300] parameter(1)\n z = f32[] parameter(2)\n a = f32[150] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[150,300] broadcast(a), dimensions={0}\n d = f32[150,300] subtract(p, b)\n q = f32[150,300] multiply(d, d)\n e = f32[150] reduce(q, z), dimensions={1}, to_apply=f\n g = f32[150,300] broadcast(e), dimensions={0}\n h = f32[150,300] divide(d, g)\n u = f32[150,300] broadcast(w), dimensions={1}\n v = f32[150,300] multiply(h, u)\n i = f32[300] reduce(v, z), dimensions={0}, to_apply=f\n j = f32[300] reduce(p, z), dimensions={0}, to_apply=f\n ROOT t = (f32[150,300], f32[300], f32[300], f32[150]) tuple(v, i, j, e)"},
  {"columns of what is turned", "p = f32[50,4,70] parameter(0)\n z = f32[] parameter(1)\n t = f32[50,70,4] transpose(p), dimensions={0,2,1}\n a = f32[70,4] reduce(t, z), dimensions={0}, to_apply=f\n b = f32[50,70,4] broadcast(a), dimensions={1,2}\n ROOT r = f32[50,70,4] subtract(t, b)"},
};
// clang-format on

static inline void put_fusion(kl_sb *b, const fusion_row *r) {
  kl_sb_puts(b,
             "HloModule fusion\nf {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n");
  kl_sbf(b, "ENTRY e {\n %s\n}\n", r->text);
}

#endif

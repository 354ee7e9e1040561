// Types of several widths in one kernel: lanes exchange what is narrow, and whatever is done to its index before comes
// from the right place. 4096 elements are whole blocks of chunks, 77 more a tail.
#include "harness.h"
#include "support/context.h"

#include <stdio.h>

static const char *const rows[] = {
    // all widths at once, and each of them kept
    "a = s4[4173] parameter(0) b = s8[4173] parameter(1) c = bf16[4173] parameter(2) d = f32[4173] parameter(3) "
    "a8 = s8[4173] convert(a) ab = s8[4173] add(a8, b) x = bf16[4173] convert(ab) xc = bf16[4173] add(x, c) "
    "y = f32[4173] convert(xc) yd = f32[4173] add(y, d) n = s4[4173] convert(ab) "
    "ROOT t = (f32[4173], bf16[4173], s8[4173], s4[4173]) tuple(yd, xc, ab, n)",
    "m = pred[4173] parameter(0) x = f64[4173] parameter(1) y = u16[4173] parameter(2) z = f64[4173] convert(y) "
    "s = f64[4173] select(m, x, z) n = pred[4173] not(m) w = u16[4173] add(y, y) "
    "ROOT t = (f64[4173], pred[4173], u16[4173]) tuple(s, n, w)",
    "x = c64[4173] parameter(0) q = f16[4173] parameter(1) r = f32[4173] real(x) i = f32[4173] convert(q) "
    "c = c64[4173] complex(r, i) h = f16[4173] negate(q) ROOT t = (c64[4173], f16[4173]) tuple(c, h)",
    // packed operands side by side, and one behind a branch of a choice
    "a = s4[2600] parameter(0) b = s4[1573] parameter(1) c = s4[4173] concatenate(a, b), dimensions={0} "
    "ROOT r = bf16[4173] convert(c)",
    "a = bf16[16,200] parameter(0) b = bf16[16,56] parameter(1) side = f32[16,256] parameter(2) "
    "c = bf16[16,256] concatenate(a, b), dimensions={1} n = bf16[16,256] negate(c) w = f32[16,256] convert(c) "
    "s = f32[16,256] add(w, side) ROOT t = (f32[16,256], bf16[16,256]) tuple(s, n)",
    // operands that begin anywhere, elements between their parts; rows that begin apart from their padding
    "a = f32[3001] parameter(0) b = f32[2503] parameter(1) d = f32[2777] parameter(2) c = f32[8281] concatenate(a, b, "
    "d), "
    "dimensions={0} n = f32[8281] negate(c) w = bf16[8281] convert(c) ROOT t = (f32[8281], bf16[8281]) tuple(n, w)",
    "a = f16[40,3,16] parameter(0) b = f16[30,3,16] parameter(1) v = f16[50,3,16] parameter(2) c = f16[120,3,16] "
    "concatenate(a, b, v), dimensions={0} q = f16[120,3,16] reverse(c), dimensions={0} ROOT r = s8[120,3,16] "
    "convert(q)",
    "p = f32[40,100] parameter(0) z = f32[] parameter(1) v = f32[40,104] pad(p, z), padding=0_0x1_3 "
    "ROOT r = f32[40,104] negate(v)",
    // places that are not the results'
    "p = s8[4096] parameter(0) v = s8[4096] reverse(p), dimensions={0} ROOT r = f32[4096] convert(v)",
    "p = bf16[64,60] parameter(0) z = bf16[] parameter(1) v = bf16[64,64] pad(p, z), padding=0_0x3_1 "
    "ROOT r = f32[64,64] convert(v)",
    "p = f8e5m2[5000] parameter(0) v = f8e5m2[4096] slice(p), slice={[700:4796]} ROOT r = f32[4096] convert(v)",
    "p = s8[9000] parameter(0) i = s32[] parameter(1) v = s8[4096] dynamic-slice(p, i), dynamic_slice_sizes={4096} "
    "ROOT r = bf16[4096] convert(v)",
    "p = bf16[4096] parameter(0) b = f32[64] parameter(1) w = f32[4096] convert(p) t = f32[64,64] broadcast(b), "
    "dimensions={1} u = f32[4096] reshape(t) s = f32[4096] add(w, u) n = bf16[4096] convert(s) "
    "ROOT r = (bf16[4096], f32[4096]) tuple(n, s)",
    // digits of odd dimensions, which nothing is proved of unless a thread's elements lie together
    "x = s32[192,6,7]{2,0,1} parameter(0) p = s32[6,7,192]{1,0,2} transpose(x), dimensions={1,2,0} "
    "ROOT r = f64[6,7,192]{1,0,2} convert(p)",
    // and of which each place has to be looked at
    "x = f32[11,4,12,4,2,1]{1,4,0,5,2,3} parameter(0) r = f32[1,8,1,8,6,11]{1,3,0,4,5,2} reshape(x) "
    "ROOT c = f32[1,8,1,8,6,11]{1,3,0,4,5,2} copy(r)",
};

START_TEST(narrow_beside_wide) {
  char text[1200];
  kiln_module *m = NULL;
  snprintf(text, sizeof text, "HloModule m\n\nENTRY fusion {\n%s\n}\n", rows[_i]);
  if (kiln_module_parse(cx, "widths.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  for (unsigned k = 0; k < MACHINES - 1; k++) run_gpu_and_check(cx, m, machines[k], 1, text);
  run_and_check(cx, m, 1, text);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("widths", EACH(make_context, drop_context), {narrow_beside_wide, KL_COUNT(rows)});
}

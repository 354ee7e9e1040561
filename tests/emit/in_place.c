// Updates of parameters: with results in memory of their own, and in that of the parameters; on the host and on the
// simulator, against the evaluator.
#include "harness.h"
#include "jit/jit.h"
#include "support/share.h"
#include "support/context.h"
#include "support/suite.h"
#include <stdio.h>

typedef struct row {
  const char *text;     // of a module behind its first line
  int pairs;            // of parameter and result, that there must be; -1: as the plan has it
  const char *in_place; // "": only what changes is made in place, else by a plan of this kind
  bool odd;             // not all is proved: digits of odd dimensions
} row;

// clang-format off
static const row rows[] = {
  // rows, columns, single elements, everything
  {"ENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) ROOT r = f32[64,32] dynamic-update-slice(p, u, i, z) }", 1, ""},
  {"ENTRY e { p = f32[64,33] parameter(0) u = f32[50,7] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[64,33] dynamic-update-slice(p, u, i, j) }", 1, "", true},
  {"ENTRY e { p = f64[300] parameter(0) u = f64[1] parameter(1) i = u8[] parameter(2) ROOT r = f64[300] dynamic-update-slice(p, u, i) }", 1, ""},
  {"ENTRY e { p = bf16[40,24] parameter(0) u = bf16[40,24] parameter(1) i = s64[] parameter(2) ROOT r = bf16[40,24] dynamic-update-slice(p, u, i, i) }", 1, ""},
  {"ENTRY e { p = f32[] parameter(0) u = f32[] parameter(1) ROOT r = f32[] dynamic-update-slice(p, u) }", 1, ""},
  // a thousand rows, of which blocks and rests are made
  {"ENTRY e { p = f16[1200,20] parameter(0) u = f16[1011,20] parameter(1) i = s16[] parameter(2) z = s16[] constant(0) ROOT r = f16[1200,20] dynamic-update-slice(p, u, i, z) }", 1, ""},
  // updates that are computed, of what they replace, too
  {"ENTRY e { p = f32[64,32] parameter(0) u = s8[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) f = f32[5,32] convert(u) s = f32[5,32] dynamic-slice(p, i, z), dynamic_slice_sizes={5,32} a = f32[5,32] add(f, s) ROOT r = f32[64,32] dynamic-update-slice(p, a, i, z) }", 1, ""},
  // starts that are computed; signed ones below zero and beyond the end are clamped
  {"ENTRY e { p = s16[100] parameter(0) u = s16[13] parameter(1) i = s32[] parameter(2) k = s32[] constant(7) j = s32[] multiply(i, k) ROOT r = s16[100] dynamic-update-slice(p, u, j) }", 1, ""},
  {"ENTRY e { p = s16[100] parameter(0) u = s16[13] parameter(1) i = s32[] constant(-5) ROOT r = s16[100] dynamic-update-slice(p, u, i) }", 1, ""},
  {"ENTRY e { p = s16[100] parameter(0) u = s16[13] parameter(1) i = u32[] constant(4000000000) ROOT r = s16[100] dynamic-update-slice(p, u, i) }", 1, ""},
  // narrow types, on bytes and off them
  {"ENTRY e { p = s4[64,32] parameter(0) u = s4[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) ROOT r = s4[64,32] dynamic-update-slice(p, u, i, z) }", 1, ""},
  {"ENTRY e { p = s4[64,32] parameter(0) u = s4[9,7] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = s4[64,32] dynamic-update-slice(p, u, i, j) }", 1, "", true},
  {"ENTRY e { p = u1[640] parameter(0) u = u1[77] parameter(1) i = s32[] parameter(2) ROOT r = u1[640] dynamic-update-slice(p, u, i) }", 1, ""},
  {"ENTRY e { p = u2[7] parameter(0) u = u2[3] parameter(1) i = s8[] parameter(2) ROOT r = u2[7] dynamic-update-slice(p, u, i) }", -1, NULL},
  {"ENTRY e { p = pred[100] parameter(0) u = pred[31] parameter(1) i = s32[] parameter(2) ROOT r = pred[100] dynamic-update-slice(p, u, i) }", 1, ""},
  {"ENTRY e { p = c128[50] parameter(0) u = c128[31] parameter(1) i = s32[] parameter(2) ROOT r = c128[50] dynamic-update-slice(p, u, i) }", 1, ""},
  // layouts, bitcasts, copies
  {"ENTRY e { p = f32[64,32]{0,1} parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) ROOT r = f32[64,32]{0,1} dynamic-update-slice(p, u, i, z) }", 1, ""},
  {"ENTRY e { p = f32[2048] parameter(0) b = f32[64,32] bitcast(p) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) d = f32[64,32] dynamic-update-slice(b, u, i, z) ROOT r = f32[32,64]{0,1} bitcast(d) }", 1, ""},
  {"ENTRY e { p = f32[64,32] parameter(0) u = s32[5,32] parameter(1) i = s32[] parameter(2) b = s32[64,32] bitcast(p) z = s32[] constant(0) d = s32[64,32] dynamic-update-slice(b, u, i, z) ROOT r = f32[64,32] bitcast(d) }", 1, ""},
  {"HloModule m, entry_computation_layout={(f32[64,32]{1,0}, f32[5,32]{1,0}, s32[])->f32[64,32]{0,1}}\nENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) ROOT r = f32[64,32] dynamic-update-slice(p, u, i, z) }", 0, NULL},
  // several, of the same size and of others, beside other results
  {"ENTRY e { p = f32[64,32] parameter(0) q = s8[99] parameter(1) u = f32[5,32] parameter(2) v = s8[50] parameter(3) i = s32[] parameter(4) z = s32[] constant(0) d = f32[64,32] dynamic-update-slice(p, u, i, z) c = s8[99] dynamic-update-slice(q, v, i) ROOT t = (f32[64,32], s8[99]) tuple(d, c) }", 2, ""},
  {"ENTRY e { p = f32[64,32] parameter(0) q = f32[64,32] parameter(1) u = f32[5,32] parameter(2) i = s32[] parameter(3) z = s32[] constant(0) n = f32[5,32] negate(u) d = f32[64,32] dynamic-update-slice(p, u, i, z) c = f32[64,32] dynamic-update-slice(q, n, z, i) g = f32[64,32] exponential(q) ROOT t = (f32[64,32], f32[5,32], f32[64,32]) tuple(d, n, c) }", 2, ""},
  // results that read what would be overwritten: apart
  {"ENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) d = f32[64,32] dynamic-update-slice(p, u, i, z) g = f32[64,32] negate(p) ROOT t = (f32[64,32], f32[64,32]) tuple(d, g) }", 0, NULL},
  {"ENTRY e { p = f32[64,32] parameter(0) i = s32[] parameter(1) z = s32[] constant(0) u = f32[5,32] slice(p), slice={[0:5],[0:32]} ROOT d = f32[64,32] dynamic-update-slice(p, u, i, z) }", 0, NULL},
  {"ENTRY e { p = f32[64] parameter(0) i = s32[] parameter(1) s = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} u = f32[5] reverse(s), dimensions={0} ROOT d = f32[64] dynamic-update-slice(p, u, i) }", 0, NULL},
  {"ENTRY e { p = s32[64] parameter(0) u = s32[3] parameter(1) f = s32[1] slice(p), slice={[0:1]} i = s32[] reshape(f) ROOT d = s32[64] dynamic-update-slice(p, u, i) }", 0, NULL},
  {"ENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) d = f32[64,32] dynamic-update-slice(p, u, i, z) c = f32[64,32] dynamic-update-slice(p, u, z, i) ROOT t = (f32[64,32], f32[64,32]) tuple(d, c) }", 0, NULL},
  {"ENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) d = f32[64,32] dynamic-update-slice(p, u, i, z) ROOT c = f32[64,32] dynamic-update-slice(d, u, z, i) }", 0, NULL},
  {"f { p = f32[64] parameter(0) q = f32[64] parameter(1) u = f32[8] slice(q), slice={[0:8]} i = s32[] constant(5) ROOT d = f32[64] dynamic-update-slice(p, u, i) }\nENTRY e { p = f32[64] parameter(0) ROOT r = f32[64] fusion(p, p), kind=kLoop, calls=f }", 0, NULL},
  // a later kernel reads it
  {"f { p = f32[64] parameter(0) u = f32[8] parameter(1) i = s32[] constant(5) ROOT d = f32[64] dynamic-update-slice(p, u, i) }\ng { p = f32[64] parameter(0) d = f32[64] parameter(1) ROOT a = f32[64] add(p, d) }\nENTRY e { p = f32[64] parameter(0) u = f32[8] parameter(1) d = f32[64] fusion(p, u), kind=kLoop, calls=f a = f32[64] fusion(p, d), kind=kLoop, calls=g ROOT t = (f32[64], f32[64]) tuple(d, a) }", 0, NULL},
  {"f { p = f32[64] parameter(0) u = f32[8] parameter(1) i = s32[] constant(5) ROOT d = f32[64] dynamic-update-slice(p, u, i) }\ng { p = f32[64] parameter(0) ROOT a = f32[64] negate(p) }\nENTRY e { p = f32[64] parameter(0) u = f32[8] parameter(1) a = f32[64] fusion(p), kind=kLoop, calls=g d = f32[64] fusion(p, u), kind=kLoop, calls=f ROOT t = (f32[64], f32[64]) tuple(d, a) }", 1, ""},
  // nothing to write
  {"ENTRY e { p = f32[64,32] parameter(0) u = f32[0,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) ROOT r = f32[64,32] dynamic-update-slice(p, u, i, z) }", 0, NULL},
  {"ENTRY e { p = f32[0,32] parameter(0) u = f32[0,32] parameter(1) i = s32[] parameter(2) ROOT r = f32[0,32] dynamic-update-slice(p, u, i, i) }", 0, NULL},
  // scatter
  {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\nENTRY e { p = s32[64,32] parameter(0) i = s32[40,1] parameter(1) u = s32[40,32] parameter(2) ROOT r = s32[64,32] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }", 1, "scatter"},
  {"take { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\nENTRY e { p = f32[64,32] parameter(0) n = s32[40,1] iota(), iota_dimension=0 u = f32[40,32] parameter(1) ROOT r = f32[64,32] scatter(p, n, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=take }", 1, "scatter"},
  {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\nENTRY e { p = s32[64,32] parameter(0) i = s32[40,1] parameter(1) u = s32[40,32] slice(p), slice={[0:40],[0:32]} ROOT r = s32[64,32] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }", 0, NULL},
  // tiles that are not full: threads beyond the end read nothing that others write
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = f32[37,101] parameter(0) x = f32[101,37] parameter(1) t = f32[37,101] transpose(x), dimensions={1,0} ROOT r = f32[37,101] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = bf16[37,300] parameter(0) x = bf16[300,37] parameter(1) t = bf16[37,300] transpose(x), dimensions={1,0} ROOT r = bf16[37,300] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = f64[37,300] parameter(0) x = f64[300,37] parameter(1) t = f64[37,300] transpose(x), dimensions={1,0} ROOT r = f64[37,300] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = c64[5,33,70] parameter(0) x = c64[5,70,33] parameter(1) t = c64[5,33,70] transpose(x), dimensions={0,2,1} ROOT r = c64[5,33,70] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = u8[70,129] parameter(0) x = u8[129,70] parameter(1) t = u8[70,129] transpose(x), dimensions={1,0} ROOT r = u8[70,129] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = s4[37,300] parameter(0) x = s4[300,37] parameter(1) t = s4[37,300] transpose(x), dimensions={1,0} ROOT r = s4[37,300] add(t, p) }", 1, "transpose"},
  {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { p = u1[40,304] parameter(0) x = u1[304,40] parameter(1) t = u1[40,304] transpose(x), dimensions={1,0} ROOT r = u1[40,304] xor(t, p) }", 1, "transpose"},
  // the cheapest kind would read an element in several threads
  {"HloModule m, input_output_alias={ {0}: (1, {}, must-alias) }\nENTRY e { q = u32[112,11,1]{0,2,1} parameter(0) p = u32[112,11,1] parameter(1) c = u32[112,11,1] clamp(q, p, q) ROOT t = (u32[112,11,1], u32[112,11,1]) tuple(c, p) }", 1, "loop"},
};
// clang-format on

// --- running --------------------------------------------------------------------------------------------------------

static kiln_artifact *compile(const kiln_module *m, const char *target, const char *text) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .keep = KILN_KEEP_PLAN};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, target, cx, text);
  return a;
}

static void try_all(const kiln_module *m, const row *r, const char *target) {
  kiln_artifact *a = compile(m, target, r->text);
  unsigned all = pairs_of(a);
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, NULL);
  EXPECT(r->pairs < 0 || __builtin_popcount(all) == r->pairs, "%x may be shared\n%s\n%s", all, r->text, plan);
  if (r->in_place)
    EXPECT(strstr(plan, *r->in_place ? r->in_place : "where they are in place") != NULL, "%s\n%s", r->text, plan);
  EXPECT(r->odd || !strstr(plan, "not proved"), "%s\n%s", r->text, plan);
  for (unsigned seed = 0; seed < 3; seed++) {
    run_in_place_and_check(cx, m, a, 0, seed, r->text);
    if (all) run_in_place_and_check(cx, m, a, all, seed, r->text);
    if (all & (all - 1)) run_in_place_and_check(cx, m, a, all & (all - 1), seed, r->text);
  }
  kiln_artifact_destroy(&a);
}

// Each on one machine at least.
START_TEST(updates) {
  char text[4000];
  static const char *const on[] = {"host", "sm_75", "sm_90"};
  snprintf(text, sizeof text, "%s%s", strncmp(rows[_i].text, "HloModule", 9) ? "HloModule m\n" : "", rows[_i].text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "test", text, strlen(text), &m) != KILN_OK) give_up((unsigned)_i, "parsing", cx, text);
  for (unsigned k = 0; k < 3; k++)
    if (share_has(3 * (uint64_t)_i + k, k == (unsigned)_i % 3 ? 1 : 4)) try_all(m, &rows[_i], on[k]);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("in place", EACH(make_context, drop_context), {updates, KL_COUNT(rows)});
}

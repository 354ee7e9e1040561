// What changes elements of a scatter's result, by type, combiner and target: the instruction where the machine has one,
// tries where it has not, and never the other way round. All of it runs on the simulator, judged by the evaluator.
#include "harness.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/context.h"
#include "support/gpu_sim.h"

#include <stdio.h>
#include <stdlib.h>

static const char rows_of_8[] = ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                                "index_vector_dim=1";

enum { SM_70, SM_75, SM_80, SM_90, SM_100 };

// --- instructions ---------------------------------------------------------------------------------------------------

typedef struct row {
  const char *type, *made; // of a and b
  int target;
  int64_t columns;
  const char *by; // all that changes elements in the PTX; of extremes of floats, which are two, one of them
} row;

#define TRIES  "atom.relaxed.gpu.global.cas"
#define WIDE16 "c = f32[] convert(a) d = f32[] convert(b) s = f32[] add(c, d) "
static const row rows[] = {
    {"f32", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.f32"},
    {"f32", "add(a, b)", SM_90, 8, "red.relaxed.gpu.global.add.v4.f32"},
    {"f32", "add(b, a)", SM_100, 6, "red.relaxed.gpu.global.add.v2.f32"},
    {"f32", "add(a, b)", SM_90, 7, "red.relaxed.gpu.global.add.f32"},
    {"f64", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.f64"},
    {"f16", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.noftz.f16x2"},
    {"f16", "add(a, b)", SM_90, 8, "red.relaxed.gpu.global.add.noftz.v4.f16x2"},
    {"f16", "add(a, b)", SM_80, 7, "red.relaxed.gpu.global.add.noftz.f16 ["},
    {"bf16", "add(a, b)", SM_90, 8, "red.relaxed.gpu.global.add.noftz.v4.bf16x2"},
    {"bf16", "convert(s) " WIDE16, SM_90, 4, "red.relaxed.gpu.global.add.noftz.v2.bf16x2"},
    {"bf16", "add(a, b)", SM_80, 8, TRIES ".b16"}, // no such instruction before sm_90
    {"c64", "add(a, b)", SM_80, 8, "red.relaxed.gpu.global.add.f32"},
    {"c64", "add(a, b)", SM_90, 8, "red.relaxed.gpu.global.add.v4.f32"},
    {"c64", "add(a, b)", SM_90, 7, "red.relaxed.gpu.global.add.v2.f32"},
    {"c128", "add(a, b)", SM_90, 8, "red.relaxed.gpu.global.add.f64"},
    {"s32", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.u32"},
    {"u64", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.u64"},
    {"s64", "add(a, b)", SM_70, 8, "red.relaxed.gpu.global.add.u64"},
    {"s32", "minimum(a, b)", SM_70, 8, "red.relaxed.gpu.global.min.s32"},
    {"u32", "maximum(a, b)", SM_70, 8, "red.relaxed.gpu.global.max.u32"},
    {"s64", "maximum(a, b)", SM_70, 8, "red.relaxed.gpu.global.max.s64"},
    {"u64", "minimum(a, b)", SM_70, 8, "red.relaxed.gpu.global.min.u64"},
    {"f32", "maximum(a, b)", SM_70, 8, "red.relaxed.gpu.global.max.s32"},
    {"f32", "minimum(a, b)", SM_90, 8, "red.relaxed.gpu.global.max.u32"},
    {"f64", "maximum(a, b)", SM_70, 8, "red.relaxed.gpu.global.min.u64"},
    {"s32", "and(a, b)", SM_70, 8, "red.relaxed.gpu.global.and.b32"},
    {"u64", "xor(a, b)", SM_70, 8, "red.relaxed.gpu.global.xor.b64"},
    {"pred", "or(a, b)", SM_70, 8, "red.relaxed.gpu.global.or.b32"},
    {"pred", "maximum(a, b)", SM_70, 8, "red.relaxed.gpu.global.or.b32"},
    {"pred", "and(a, b)", SM_70, 8, "red.relaxed.gpu.global.and.b32"},
    {"pred", "minimum(a, b)", SM_70, 4, "red.relaxed.gpu.global.and.b32"},
    {"pred", "xor(a, b)", SM_90, 8, "red.relaxed.gpu.global.xor.b32"},
    {"u8", "and(a, b)", SM_70, 8, "red.relaxed.gpu.global.and.b32"},
    {"s16", "xor(a, b)", SM_70, 8, "red.relaxed.gpu.global.xor.b32"},
    {"s4", "and(a, b)", SM_90, 8, "red.relaxed.gpu.global.and.b32"},
    {"u2", "or(a, b)", SM_90, 8, "red.relaxed.gpu.global.or.b32"},
    {"pred", "or(a, b)", SM_90, 9, TRIES ".b16"}, // 270 bytes are no whole words
    {"u8", "add(a, b)", SM_90, 8, TRIES ".b16"},
    {"s16", "maximum(a, b)", SM_90, 8, TRIES ".b16"},
    {"f32", "multiply(a, b)", SM_90, 8, TRIES ".b32"},
    {"f8e5m2", "add(a, b)", SM_90, 8, TRIES ".b16"},
};

static kiln_module *module_of(const row *r, char *text, size_t size) {
  long long n = r->columns;
  snprintf(text, size,
           "HloModule m\nf {\n  a = %1$s[] parameter(0)\n  b = %1$s[] parameter(1)\n  ROOT r = %1$s[] %2$s\n}\n"
           "ENTRY e {\n  x = %1$s[30,%3$lld] parameter(0)\n  i = s32[40,1] parameter(1)\n"
           "  u = %1$s[40,%3$lld] parameter(2)\n  ROOT y = %1$s[30,%3$lld] scatter(x, i, u)%4$s, to_apply=f\n}\n",
           r->type, r->made, n, rows_of_8);
  return parse(text);
}

START_TEST(instructions) {
  const row *r = &rows[_i];
  gpu_sim_order_shows = true;
  char text[1024];
  kiln_module *m = module_of(r, text, sizeof text);
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[r->target]};
  kiln_artifact *a = NULL;
  strategy.chooser = "scatter";
  EXPECT(kl_compile_as(cx, m, &p, &strategy, &a) == KILN_OK, "%s\n%s", last_finding(), text);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  bool extreme = strstr(r->made, "imum") && r->type[0] == 'f';
  unsigned n = occurrences(ptx, r->by), all = occurrences(ptx, "red.relaxed") + occurrences(ptx, "atom.relaxed");
  EXPECT(n && all == n << extreme, "%s %s for %s: %u of %u changes are %s\n%.3000s", r->type, r->made,
         targets[r->target], n, all, r->by, ptx);
  for (unsigned seed = 0; seed < 2; seed++) run_gpu_and_check(cx, m, (unsigned)r->target, seed, text);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- indices that differ --------------------------------------------------------------------------------------------

// What nobody else touches is loaded and stored, 16 bytes at once.
static const struct {
  const char *type, *made;
  int64_t columns;
  unsigned words; // of one access
} alone[] = {
    {"f32", "add(a, b)", 8, 4},      {"bf16", "maximum(a, b)", 8, 4}, {"u8", "multiply(a, b)", 16, 4},
    {"c64", "multiply(a, b)", 8, 4}, {"f16", "subtract(a, b)", 4, 2}, {"f32", "divide(a, b)", 6, 2},
    {"f8e5m2", "add(a, b)", 16, 4},
};

START_TEST(unique_rows) {
  char text[1024], words[2][32];
  const char *type = alone[_i].type;
  long long n = alone[_i].columns;
  gpu_sim_order_shows = false;
  snprintf(text, sizeof text,
           "HloModule m\nf {\n  a = %1$s[] parameter(0)\n  b = %1$s[] parameter(1)\n  ROOT r = %1$s[] %2$s\n}\n"
           "ENTRY e {\n  x = %1$s[50,%3$lld] parameter(0)\n  i = s32[40,1] iota(), iota_dimension=0\n"
           "  u = %1$s[40,%3$lld] parameter(1)\n"
           "  ROOT y = %1$s[50,%3$lld] scatter(x, i, u)%4$s, unique_indices=true, to_apply=f\n}\n",
           type, alone[_i].made, n, rows_of_8);
  kiln_module *m = parse(text);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
  kiln_artifact *a = NULL;
  EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s\n%s", last_finding(), text);
  const char *ptx = strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), ".entry m_then1");
  for (int k = 0; k < 2; k++)
    snprintf(words[k], sizeof *words, "%s.v%u.b32", k ? "st.global" : "ld.global", alone[_i].words);
  EXPECT(ptx && occurrences(ptx, words[0]) && occurrences(ptx, words[1]), "%s %s: no %s and %s\n%.3000s", type,
         alone[_i].made, words[0], words[1], ptx);
  EXPECT(!strstr(ptx, "red.") && !strstr(ptx, "atom."), "%s %s is an atomic operation\n%.3000s", type, alone[_i].made,
         ptx);
  for (unsigned seed = 0; seed < 2; seed++) run_gpu_and_check(cx, m, SM_90, seed, text);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("updates", EACH(make_context, drop_context), {instructions, KL_COUNT(rows)},
                   {unique_rows, KL_COUNT(alone)});
}

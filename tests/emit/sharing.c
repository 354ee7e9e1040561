// What elements that lie apart read alike is read once by a thread that makes several of them. Every shape of a domain
// with such reads, whole and with rests, in loops and in registers, of all widths: on the simulator with all checks,
// against the evaluator, and through ptxas. Shapes are small, so that what cost would not choose is asked for.
#include "harness.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/context.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
  const char *what, *text; // of ENTRY
  const char *plan;        // what the plan says with `times` 4 for sm_90; NULL: it has no loop, and no rows
} row;

// clang-format off
static const row rows[] = {
  {"a bias for each row",
   "x = f32[13,1024] parameter(0)\n b = f32[1024] parameter(1)\n w = f32[13,1024] broadcast(b), dimensions={1}\n"
   "ROOT y = f32[13,1024] add(x, w)\n", "reg row < 4, reg v < 4"},
  {"scale and bias of 16 bits",
   "x = bf16[33,768] parameter(0)\n s = bf16[768] parameter(1)\n b = bf16[768] parameter(2)\n"
   "v = bf16[33,768] broadcast(s), dimensions={1}\n w = bf16[33,768] broadcast(b), dimensions={1}\n"
   "m = bf16[33,768] multiply(x, v)\n ROOT y = bf16[33,768] add(m, w)\n", "reg row < 4, reg v < 8"},
  {"rows of an odd length",
   "x = f16[101,37] parameter(0)\n b = f16[37] parameter(1)\n w = f16[101,37] broadcast(b), dimensions={1}\n"
   "ROOT y = f16[101,37] add(x, w)\n", "row < "},
  {"a wider bias, and a mask that is narrower",
   "x = bf16[9,2048] parameter(0)\n b = f32[2048] parameter(1)\n m = pred[9,2048] parameter(2)\n"
   "c = bf16[2048] convert(b)\n w = bf16[9,2048] broadcast(c), dimensions={1}\n a = bf16[9,2048] add(x, w)\n"
   "ROOT y = bf16[9,2048] select(m, a, x)\n", "step round < "},
  {"a bias that is twice as wide",
   "x = bf16[37,1024] parameter(0)\n b = f32[1024] parameter(1)\n c = f32[37,1024] convert(x)\n"
   "w = f32[37,1024] broadcast(b), dimensions={1}\n a = f32[37,1024] add(c, w)\n ROOT y = bf16[37,1024] convert(a)\n", "reg row < 4"},
  {"the same with rows that end in a block",
   "x = f16[66,504] parameter(0)\n b = f32[504] parameter(1)\n c = f32[66,504] convert(x)\n"
   "w = f32[66,504] broadcast(b), dimensions={1}\n a = f32[66,504] multiply(c, w)\n ROOT y = f16[66,504] convert(a)\n", "round < 3"},
  {"halves that change places, by a table that is twice as wide",
   "t = f32[4,128] parameter(0)\n x = bf16[4,16,128] parameter(1)\n l = bf16[4,16,64] slice(x), slice={[0:4],[0:16],[0:64]}\n"
   "h = bf16[4,16,64] slice(x), slice={[0:4],[0:16],[64:128]}\n r = bf16[4,16,128] concatenate(h, l), dimensions={2}\n"
   "c = f32[4,16,128] convert(r)\n w = f32[4,16,128] broadcast(t), dimensions={0,2}\n m = f32[4,16,128] multiply(c, w)\n"
   "s = bf16[4,16,128] convert(m)\n ROOT y = bf16[4,16,128] add(s, x)\n", "step round < 4"},
  {"halves that change places, beside what is the result's own",
   "r = f32[4,16,128] parameter(0)\n x = f32[4,16,128] parameter(1)\n t = f32[4,128] parameter(2)\n"
   "l = f32[4,16,64] slice(x), slice={[0:4],[0:16],[0:64]}\n h = f32[4,16,64] slice(x), slice={[0:4],[0:16],[64:128]}\n"
   "n = f32[4,16,64] negate(h)\n c = f32[4,16,128] concatenate(n, l), dimensions={2}\n"
   "w = f32[4,16,128] broadcast(t), dimensions={0,2}\n m = f32[4,16,128] multiply(c, w)\n"
   "a = f32[4,16,128] multiply(x, w)\n s = f32[4,16,128] add(a, m)\n ROOT y = f32[4,16,128] add(s, r)\n", "lane_b < 16, step round < 4"},
  {"halves alone",
   "x = bf16[40,64] parameter(0)\n l = bf16[40,32] slice(x), slice={[0:40],[0:32]}\n h = bf16[40,32] slice(x), slice={[0:40],[32:64]}\n"
   "c = bf16[40,64] concatenate(h, l), dimensions={1}\n ROOT y = bf16[40,64] subtract(x, c)\n", "lane_b < 4"},
  {"halves of several warps",
   "x = f32[6,512] parameter(0)\n l = f32[6,256] slice(x), slice={[0:6],[0:256]}\n h = f32[6,256] slice(x), slice={[0:6],[256:512]}\n"
   "c = f32[6,512] concatenate(h, l), dimensions={1}\n ROOT y = f32[6,512] subtract(x, c)\n", "warp_b < 2"},
  {"halves of several blocks, of rows and not of columns",
   "x = f32[3,4,512] parameter(0)\n l = f32[3,2,512] slice(x), slice={[0:3],[0:2],[0:512]}\n h = f32[3,2,512] slice(x), slice={[0:3],[2:4],[0:512]}\n"
   "c = f32[3,4,512] concatenate(h, l), dimensions={1}\n ROOT y = f32[3,4,512] subtract(x, c)\n", "block column < 2"},
  {"halves of an odd length",
   "x = f32[50,72] parameter(0)\n l = f32[50,36] slice(x), slice={[0:50],[0:36]}\n h = f32[50,36] slice(x), slice={[0:50],[36:72]}\n"
   "c = f32[50,72] concatenate(h, l), dimensions={1}\n ROOT y = f32[50,72] subtract(x, c)\n", NULL},
  {"thirds",
   "x = f32[50,96] parameter(0)\n l = f32[50,32] slice(x), slice={[0:50],[0:32]}\n h = f32[50,64] slice(x), slice={[0:50],[32:96]}\n"
   "c = f32[50,96] concatenate(h, l), dimensions={1}\n ROOT y = f32[50,96] subtract(x, c)\n", NULL},
  {"one table for all heads",
   "t = f32[5,64] parameter(0)\n x = bf16[3,5,8,64] parameter(1)\n c = f32[3,5,8,64] convert(x)\n"
   "w = f32[3,5,8,64] broadcast(t), dimensions={1,3}\n m = f32[3,5,8,64] multiply(c, w)\n"
   "ROOT y = bf16[3,5,8,64] convert(m)\n", "step round < 3"},
  {"heads of an odd number",
   "t = f32[5,128] parameter(0)\n x = f32[3,5,7,128] parameter(1)\n w = f32[3,5,7,128] broadcast(t), dimensions={1,3}\n"
   "ROOT y = f32[3,5,7,128] multiply(x, w)\n", "step round < 3"},
  {"positions for each of a batch, and rows that data says",
   "t = bf16[50,256] parameter(0)\n i = s32[6,16] parameter(1)\n p = bf16[16,256] parameter(2)\n"
   "g = bf16[6,16,256] gather(t, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,256}\n"
   "w = bf16[6,16,256] broadcast(p), dimensions={1,2}\n ROOT y = bf16[6,16,256] add(g, w)\n", "step round < 3"},
  {"a scale for each row, along it",
   "x = s8[7,4096] parameter(0)\n s = f32[7] parameter(1)\n c = f32[7,4096] convert(x)\n"
   "w = f32[7,4096] broadcast(s), dimensions={0}\n ROOT y = f32[7,4096] multiply(c, w)\n", "row < "},
  {"two results of two widths",
   "x = f32[161,512] parameter(0)\n b = f32[512] parameter(1)\n w = f32[161,512] broadcast(b), dimensions={1}\n"
   "y = f32[161,512] add(x, w)\n n = s8[161,512] convert(y)\n ROOT r = (f32[161,512], s8[161,512]) tuple(y, n)\n", "round < "},
  {"results of two shapes",
   "x = f32[12,512] parameter(0)\n b = f32[512] parameter(1)\n w = f32[12,512] broadcast(b), dimensions={1}\n"
   "y = f32[12,512] add(x, w)\n z = f32[6,1024] reshape(y)\n ROOT r = (f32[12,512], f32[6,1024]) tuple(y, z)\n", "row < "},
  {"elements of four bits",
   "x = s4[300,512] parameter(0)\n b = s4[512] parameter(1)\n w = s4[300,512] broadcast(b), dimensions={1}\n"
   "ROOT y = s4[300,512] add(x, w)\n", "row < "},
  {"elements of four bits, rows that begin in a byte",
   "x = s4[64,33] parameter(0)\n b = s4[33] parameter(1)\n w = s4[64,33] broadcast(b), dimensions={1}\n"
   "ROOT y = s4[64,33] add(x, w)\n", "reg row < 2"},
  {"numbers of 128 bits",
   "x = c128[40,64] parameter(0)\n b = c128[64] parameter(1)\n w = c128[40,64] broadcast(b), dimensions={1}\n"
   "ROOT y = c128[40,64] add(x, w)\n", "row < 4"},
  {"columns in memory",
   "x = f32[256,40]{0,1} parameter(0)\n b = f32[256] parameter(1)\n w = f32[256,40]{0,1} broadcast(b), dimensions={0}\n"
   "ROOT y = f32[256,40]{0,1} add(x, w)\n", "row < 4"},
  {"a bias that is padded, beside its neighbours",
   "x = f32[15,256] parameter(0)\n b = f32[250] parameter(1)\n z = f32[] constant(1)\n p = f32[256] pad(b, z), padding=2_4\n"
   "w = f32[15,256] broadcast(p), dimensions={1}\n ROOT y = f32[15,256] add(x, w)\n", NULL},
  {"halves that change places",
   "t = f32[4,128] parameter(0)\n x = f32[4,8,128] parameter(1)\n l = f32[4,8,64] slice(x), slice={[0:4],[0:8],[0:64]}\n"
   "h = f32[4,8,64] slice(x), slice={[0:4],[0:8],[64:128]}\n c = f32[4,8,128] concatenate(h, l), dimensions={2}\n"
   "w = f32[4,8,128] broadcast(t), dimensions={0,2}\n m = f32[4,8,128] multiply(c, w)\n ROOT y = f32[4,8,128] add(m, x)\n", "step round < 4"},
  {"scale and bias of rows that are reduced",
   "x = f16[40,256] parameter(0)\n w = f16[256] parameter(1)\n b = f16[256] parameter(2)\n z = f32[] constant(0)\n"
   "c = f32[40,256] convert(x)\n s = f32[40] reduce(c, z), dimensions={1}, to_apply=add\n"
   "m = f32[40,256] broadcast(s), dimensions={0}\n d = f32[40,256] subtract(c, m)\n e = f16[40,256] convert(d)\n"
   "v = f16[40,256] broadcast(w), dimensions={1}\n u = f16[40,256] broadcast(b), dimensions={1}\n"
   "p = f16[40,256] multiply(e, v)\n ROOT y = f16[40,256] add(p, u)\n", "step row_round < "},
  {"the same of rows that no block has all of, and sums of each",
   "x = f32[37,1000] parameter(0)\n w = f32[1000] parameter(1)\n z = f32[] constant(1)\n"
   "q = f32[37,1000] multiply(x, x)\n s = f32[37] reduce(q, z), dimensions={1}, to_apply=add\n"
   "m = f32[37,1000] broadcast(s), dimensions={0}\n d = f32[37,1000] divide(x, m)\n"
   "v = f32[37,1000] broadcast(w), dimensions={1}\n p = f32[37,1000] multiply(d, v)\n"
   "ROOT r = (f32[37,1000], f32[37]) tuple(p, s)\n", NULL},
  {"weights in what is summed, of rows of several warps",
   "x = bf16[6,4096] parameter(0)\n w = bf16[4096] parameter(1)\n z = f32[] constant(0)\n"
   "c = f32[6,4096] convert(x)\n k = f32[4096] convert(w)\n v = f32[6,4096] broadcast(k), dimensions={1}\n"
   "p = f32[6,4096] multiply(c, v)\n ROOT s = f32[6] reduce(p, z), dimensions={1}, to_apply=add\n", "step row_round < 3"},
  {"a scalar alone",
   "x = f32[40,256] parameter(0)\n s = f32[] parameter(1)\n w = f32[40,256] broadcast(s), dimensions={}\n"
   "ROOT y = f32[40,256] multiply(x, w)\n", NULL},
  {"one row",
   "x = f32[1,4096] parameter(0)\n b = f32[4096] parameter(1)\n w = f32[1,4096] broadcast(b), dimensions={1}\n"
   "ROOT y = f32[1,4096] add(x, w)\n", NULL},
  {"no row",
   "x = f32[0,4096] parameter(0)\n b = f32[4096] parameter(1)\n w = f32[0,4096] broadcast(b), dimensions={1}\n"
   "ROOT y = f32[0,4096] add(x, w)\n", NULL},
  {"of rank 0",
   "x = f32[] parameter(0)\n b = f32[4] parameter(1)\n s = f32[1] slice(b), slice={[2:3]}\n w = f32[] reshape(s)\n"
   "ROOT y = f32[] add(x, w)\n", NULL},
};
// clang-format on

static kiln_context *all; // of what lives as long as the program
static batch batches[TARGETS];

static void open_batches(void) {
  all = kiln_context_create(NULL);
  batches_init(batches, all);
}
static void close_all(void) {
  kiln_context_destroy(&all);
}

static const uint32_t times[] = {4, 2, 3, 5, 32, 0};

static const char adder[] = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n";

static kiln_module *parse_row(kiln_context *cx, const row *r, unsigned number, const char *header, kl_sb *text) {
  kiln_module *m = NULL;
  kl_sb_init(text, cx);
  kl_sbf(text, "HloModule m%u%s\n%sENTRY e {\n%s}\n", number, header, adder, r->text);
  if (kiln_module_parse(cx, "sharing.hlo", text->p, text->n, &m) != KILN_OK) give_up(0, r->what, cx, text->p);
  return m;
}

static bool shares(const char *plan) {
  return strstr(plan, "step round < ") || strstr(plan, "reg row < ") || strstr(plan, "step row_round < ") ||
         strstr(plan, "_b < ") || strstr(plan, "block column < ");
}

// Of rows and numbers of times some, each for another target.
START_TEST(elements_apart) {
  kiln_context *cx = kiln_context_create(NULL);
  const row *r = &rows[_i];
  for (unsigned i = 0; i < KL_COUNT(times); i++) {
    unsigned t = ((unsigned)_i + i) % TARGETS;
    if (!share_has((uint64_t)_i * KL_COUNT(times) + i, 2)) continue;
    kl_sb text;
    kiln_module *m = parse_row(cx, r, i, "", &text);
    strategy = (kl_strategy){.times = times[i], .teams = times[i] ? i % 3 : 0};
    run_gpu_and_check(cx, m, t, 2 * i, text.p);
    run_gpu_and_check(cx, m, t, 2 * i + 1, text.p);
    batch_add(batches, t, cx, m, (unsigned)_i * KL_COUNT(times) + i, text.p);
    kiln_module_destroy(&m);
    kl_sb_free(&text);
  }
  kiln_context_destroy(&cx);
}
END_TEST

START_TEST(the_rest_is_assembled) {
  batches_free(batches);
}
END_TEST

static kiln_artifact *compile(kiln_context *cx, const kiln_module *m, const char *text, uint32_t n) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .keep = KILN_KEEP_PLAN};
  kiln_artifact *a = NULL;
  if (kl_compile_as(cx, m, &p, &(kl_strategy){.times = n}, &a) != KILN_OK) give_up(0, "compiling", cx, text);
  return a;
}

static unsigned exchanged; // rows whose neighbours exchange halves

// Only where something is read alike, and where it was asked for.
START_TEST(plans_say_so) {
  if (!share_has((uint64_t)_i, 1)) return;
  kiln_context *cx = kiln_context_create(NULL);
  const row *r = &rows[_i];
  kl_sb text;
  kiln_module *m = parse_row(cx, r, 0, "", &text);
  kiln_artifact *four = compile(cx, m, text.p, 4), *one = compile(cx, m, text.p, 1), *all = compile(cx, m, text.p, 32);
  const char *plan = kiln_artifact_text(four, KILN_TEXT_PLAN, NULL);
  EXPECT(r->plan ? strstr(plan, r->plan) != NULL : !shares(plan), "%s: not \"%s\":\n%s", r->what,
         r->plan ? r->plan : "", plan);
  plan = kiln_artifact_text(all, KILN_TEXT_PLAN, NULL);
  EXPECT(!r->plan || !strstr(plan, "not proved"), "%s:\n%s", r->what, plan);
  EXPECT(shares(plan) == (r->plan != NULL), "%s, all of them:\n%s", r->what, plan);
  exchanged += strstr(plan, "exchange v / 4 with neighbour") != NULL;
  EXPECT(!shares(kiln_artifact_text(one, KILN_TEXT_PLAN, NULL)), "%s: shares with nobody", r->what);
  kiln_artifact_destroy(&four);
  kiln_artifact_destroy(&one);
  kiln_artifact_destroy(&all);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}
END_TEST

// What is wider than a thread's results takes two accesses, of which neighbours have halves of the same sectors.
START_TEST(neighbours_exchange_halves) {
  EXPECT(exchanged >= 3 || test_share() < 1, "%u of them", exchanged);
}
END_TEST

// Results of the first few rows may overwrite their first parameter.
enum { IN_PLACE = 5 };

// What a result may overwrite is read before, in each round.
START_TEST(in_place) {
  kiln_context *cx = kiln_context_create(NULL);
  for (unsigned i = 0; i < KL_COUNT(times); i++) {
    if (!share_has((uint64_t)_i * KL_COUNT(times) + i, 2)) continue;
    kl_sb text;
    kiln_module *m = parse_row(cx, &rows[_i], 0, ", input_output_alias={ {}: (0, {}, must-alias) }", &text);
    strategy = (kl_strategy){.times = times[i]};
    run_gpu_and_check(cx, m, 3, i, text.p);
    kiln_module_destroy(&m);
    kl_sb_free(&text);
  }
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("sharing", ONCE(open_batches, close_all), {elements_apart, KL_COUNT(rows)},
                   {plans_say_so, KL_COUNT(rows)}, {neighbours_exchange_halves, 1}, {in_place, IN_PLACE},
                   {the_rest_is_assembled});
}

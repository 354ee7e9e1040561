// Random fusions: host against evaluator, and their PTX through ptxas.
//
// 2000 (support/share.h); KILN_FUSION_SEED sets one seed to run alone and print.

#include "harness.h"
#include "lower/choose/choose.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static void print_all(kiln_context *cx, const kiln_module *m, const char *text, const char *target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .keep = KILN_KEEP_PLAN};
  kiln_artifact *a = NULL;
  puts(text);
  if (kiln_compile(cx, m, &p, &a) == KILN_OK)
    puts(kiln_artifact_text(a, KILN_TEXT_PLAN, NULL)), puts(kiln_artifact_text(a, KILN_TEXT_PTX, NULL));
  kiln_artifact_destroy(&a);
}

enum { LONG = 300 }; // operations of some fusions: enough to be cut into functions on the host

static unsigned counted; // of all, those that can take their element count at run time

static void one(kiln_context *cx, unsigned seed, batch *batches, bool print) {
  gen_source src = {.seed = seed * 0x9e3779b97f4a7c15ull, .whole = seed % 4 == 3};
  kl_sb text;
  kl_sb_init(&text, cx);
  gen_fusion(&src, seed % 64 == 9 ? LONG : 3 + seed % 29, &text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "random.hlo", text.p, text.n, &m) != KILN_OK) give_up(seed, "parsing", cx, text.p);
  strategy = (kl_strategy){.times = seed % 3 == 1 ? 2 + seed % 5 : 0};
  if (print) print_all(cx, m, text.p, targets[seed % TARGETS]);
  run_and_check(cx, m, seed, text.p);
  if (seed % 2) run_gpu_and_check(cx, m, seed / 2 % TARGETS, seed, text.p);
  counted += run_parts_and_check(cx, m, seed % TARGETS, seed, text.p);
  batch_add(batches, seed % TARGETS, cx, m, seed, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_diagnostics_clear(cx);
}

static unsigned total(void) {
  return (unsigned)share_up_to(2000, UINT32_MAX);
}

// Slices of the seeds, so that the report shows progress and a failure does not hide the others.
enum { SLICES = 20 };

START_TEST(random_fusions) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), batches, true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : total(); s < n; s += SLICES) one(cx, (unsigned)s, batches, false);
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// What is left out above must not be nearly everything.
START_TEST(enough_take_a_count) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u of %u fusions take their element count at run time\n", counted, total());
  ck_assert_uint_ge(counted, total() / 50);
}
END_TEST

int main(void) {
  return RUN_TESTS("fusions", NO_FRAME, {random_fusions, SLICES}, {enough_take_a_count});
}

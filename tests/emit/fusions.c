// Random fusions of every kind (support/gen.h): evaluator, host and simulator, whose bits must be the same; PTX of one
// in three through ptxas. None may be refused.
//
// 100 (support/share.h): KILN_TEST_SHARE=200 are 20,000. KILN_FUSION_FROM says which seed is the first;
// KILN_FUSION_SEED sets one seed to run alone and print.

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

static unsigned counted, simple; // of those of one element after the other, those that can take their count at run time

// Three of four may hold anything; reductions are made in each way there is, updates in any order or in one.
static void one(kiln_context *cx, unsigned seed, batch *batches, bool print) {
  static const kl_strategy strategies[] = {{0}, {0}, {2, false}, {4, true}, {16, false}};
  gen_source src = {.seed = seed * 0xd1342543de82ef95ull, .whole = seed % 4 != 0};
  unsigned ops = src.whole ? 1 + seed / 4 % 40 : seed % 64 == 8 ? LONG : 3 + seed % 29, t = seed / 2 % TARGETS;
  kl_sb text;
  kl_sb_init(&text, cx);
  strategy = strategies[seed / 3 % KL_COUNT(strategies)];
  strategy.times = seed / 5 % 3 == 1 ? 2 + seed % 5 : 0;
  deterministic = seed / 8 % 2;
  gen_fusion(&src, ops, &text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "random.hlo", text.p, text.n, &m) != KILN_OK) give_up(seed, "parsing", cx, text.p);
  if (print) print_all(cx, m, text.p, targets[t]);
  run_both_and_check(cx, m, t, seed, text.p);
  if (!src.whole) counted += run_parts_and_check(cx, m, seed / 4 % TARGETS, seed, text.p), simple++;
  if (seed % 3 == 0) batch_add(batches, seed / 3 % TARGETS, cx, m, seed, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_diagnostics_clear(cx);
}

static unsigned total(void) {
  return (unsigned)share_up_to(100, UINT32_MAX);
}

static unsigned first(void) {
  const char *from = getenv("KILN_FUSION_FROM");
  return from ? (unsigned)strtoul(from, NULL, 10) : 0;
}

// Slices of the seeds, so that the report shows progress and a failure does not hide the others.
enum { SLICES = 20 };

START_TEST(random_fusions) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), batches, true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : total(); s < n; s += SLICES)
    one(cx, first() + (unsigned)s, batches, false);
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// What is left out above must not be nearly everything.
START_TEST(enough_take_a_count) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u of %u fusions take their element count at run time\n", counted, simple);
  ck_assert_uint_ge(counted, simple / 100);
}
END_TEST

int main(void) {
  return RUN_TESTS("fusions", NO_FRAME, {random_fusions, SLICES}, {enough_take_a_count});
}

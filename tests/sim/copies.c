// cp.async: when what is copied arrives, for whom, and what the checks say of what is read before. PTX ISA 9.7.9.25.
#include "sim/check/checks.h"
#include "words.h"

enum { THREADS = 4, SEEDS = 32 };
#define COPY   "cp.async.ca.shared.global [%r3], [%rd5], 4;\n"
#define COMMIT "cp.async.commit_group;\n"
#define READ   "ld.shared.u32 %r9, [%r3];\n"

// What four threads write: 77 where the copy is late, 100 and more where it has arrived.
static const struct {
  const char *body;
  uint32_t words[THREADS];
} rows[] = {
    {KERNEL(COPY READ), {77, 77, 77, 77}},
    {KERNEL(COPY "cp.async.wait_all;\n" READ), {100, 101, 102, 103}},
    // what is not committed belongs to no group that can be waited for
    {KERNEL(COPY "cp.async.wait_group 0;\n" READ), {77, 77, 77, 77}},
    {KERNEL(COPY COMMIT "cp.async.wait_group 0;\n" READ), {100, 101, 102, 103}},
    {KERNEL(COPY COMMIT "cp.async.wait_group 1;\n" READ), {77, 77, 77, 77}},
    // the group before: an empty one is one
    {KERNEL(COPY COMMIT COMMIT "cp.async.wait_group 1;\n" READ), {100, 101, 102, 103}},
    {KERNEL(COPY COMMIT COPY COMMIT "cp.async.wait_group 1;\n" READ), {100, 101, 102, 103}},
    {KERNEL(COMMIT COPY COMMIT "cp.async.wait_group 1;\n" READ), {77, 77, 77, 77}},
    {KERNEL(COPY COMMIT COMMIT COMMIT "cp.async.wait_group 3;\n" READ), {77, 77, 77, 77}},
    // groups are a thread's own, and so is waiting
    {KERNEL(COPY "@%p1 cp.async.commit_group;\ncp.async.wait_group 0;\n" READ), {77, 101, 77, 103}},
    {KERNEL(COPY "@%p1 cp.async.wait_all;\n" READ), {77, 101, 77, 103}},
    {KERNEL(COPY "@%p1 cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r9, [%r5];\n"),
     {101, 77, 103, 77}},
    // the source is read as late
    {KERNEL(COPY "mov.u32 %r5, 5;\nst.global.u32 [%rd5], %r5;\ncp.async.wait_all;\n" READ), {5, 5, 5, 5}},
    // of a thread that exits all arrives
    {KERNEL(COPY "@%p1 exit;\nbar.sync 0;\nadd.u32 %r5, %r3, 4;\nld.shared.u32 %r9, [%r5];\n"), {101, 0, 103, 0}},
    // more copies than are kept: 40,000 of four threads each
    {KERNEL("mov.u32 %r5, 0;\nL:\n" COPY "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 40000;\n@%p2 bra L;\n"
            "cp.async.wait_all;\n" READ),
     {100, 101, 102, 103}},
};

START_TEST(arrives) {
  expect_words(rows[_i].body, rows[_i].words, THREADS);
}
END_TEST

// In other orders it may arrive before it is waited for, at a time that follows from the seed; never later.
START_TEST(may_be_early) {
  static const char early[] = KERNEL(COPY COMMIT "bar.sync 0;\nbar.sync 0;\n" READ),
                    waited[] = KERNEL(COPY COMMIT "bar.sync 0;\ncp.async.wait_group 0;\n" READ);
  uint32_t out[THREADS], again[THREADS], late = 0, arrived = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    run_words(early, (kl_launch){.shuffle = seed}, THREADS, out);
    run_words(early, (kl_launch){.shuffle = seed, .workers = 3}, THREADS, again);
    for (uint32_t i = 0; i < THREADS; i++) {
      ck_assert(out[i] == 77 || out[i] == 100 + i);
      ck_assert_uint_eq(out[i], again[i]);
      late += out[i] == 77;
      arrived += out[i] != 77;
    }
    run_words(waited, (kl_launch){.shuffle = seed}, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) ck_assert_uint_eq(out[i], 100 + i);
  }
  ck_assert_uint_gt(late, SEEDS / 4);
  ck_assert_uint_gt(arrived, SEEDS / 4);
}
END_TEST

// What is read before is a race, and has no value.
static const struct {
  const char *body;
  uint32_t checks;
  kl_found_kind found; // KINDS: nothing
} checked[] = {
    {KERNEL(COPY READ), KL_CHECK_RACE, KL_FOUND_RACE},
    {KERNEL(COPY READ), KL_CHECK_UNDEFINED, KL_FOUND_UNDEFINED_OUTPUT},
    {KERNEL(COPY COMMIT "cp.async.wait_group 1;\n" READ), KL_CHECK_UNDEFINED, KL_FOUND_UNDEFINED_OUTPUT},
    {KERNEL(COPY READ "setp.eq.u32 %p2, %r9, 77;\n@%p2 mov.u32 %r9, 1;\n"), KL_CHECK_UNDEFINED,
     KL_FOUND_UNDEFINED_BRANCH},
    {KERNEL(COPY COMMIT "cp.async.wait_group 0;\n" READ), KL_CHECK_ALL, KL_FOUND_KINDS},
    {KERNEL(COPY "cp.async.wait_all;\n" READ), KL_CHECK_ALL, KL_FOUND_KINDS},
    {KERNEL(COPY), KL_CHECK_ALL, KL_FOUND_KINDS},
    // what the source lacks, the target lacks; beyond the size there are zeros
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.wait_all;\n" READ), KL_CHECK_UNDEFINED,
     KL_FOUND_UNDEFINED_OUTPUT},
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd1], 4, 0;\ncp.async.wait_all;\n" READ), KL_CHECK_UNDEFINED,
     KL_FOUND_KINDS},
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd5], 4, %r12;\ncp.async.wait_all;\n" READ), KL_CHECK_UNDEFINED,
     KL_FOUND_UNDEFINED_OUTPUT},
};

START_TEST(is_checked) {
  stage s;
  kl_fault fault;
  kl_checks c;
  uint64_t params[2];
  kl_launch l = word_launch(&s, checked[_i].body, (kl_launch){0}, THREADS, params);
  kl_checks_init(&c, s.cx, &s.m, checked[_i].checks);
  ck_assert_int_eq(kl_checks_run(&c, &l, &fault), KILN_OK);
  size_t n = checked[_i].found != KL_FOUND_KINDS;
  EXPECT(c.report.found.n == n && (!n || c.report.found.p[0].kind == checked[_i].found), "row %d: %zu findings: %s", _i,
         c.report.found.n, c.report.found.n ? kl_found_text(c.report.found.p[0].kind) : "");
  kl_checks_free(&c);
  stage_close(&s);
}
END_TEST

static const struct {
  const char *body, *message;
} refused[] = {
    {KERNEL("cp.async.wait_group %r1;\n"), "expected the number of groups"},
    {KERNEL("cp.async.wait_group -1;\n"), "expected the number of groups"},
    {KERNEL("cp.async.wait_group;\n"), "operand"},
    {KERNEL("cp.async.wait_all 0;\n"), "operand"},
    {KERNEL("cp.async.commit_group 1;\n"), "operand"},
};

START_TEST(is_refused) {
  stage s;
  stage_open(&s);
  ck_assert(!stage_load(&s, kl_str_of(refused[_i].body), "k"));
  ck_assert_msg(strstr(stage_why(&s), refused[_i].message), "%s", stage_why(&s));
  stage_close(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("copies", NO_FRAME, {arrives, KL_COUNT(rows)}, {may_be_early}, {is_checked, KL_COUNT(checked)},
                   {is_refused, KL_COUNT(refused)});
}

// Forms of the machine's own instructions, one small kernel each: what four threads write.
#include "words.h"
#include <stdio.h>

enum { THREADS = 4 };

#define FROM_SHARED "cp.async.wait_all;\nld.shared.u32 %r9, [%r3];\n"

static const struct {
  const char *body;
  uint32_t words[THREADS];
} rows[] = {
    // cp.async: sizes, and predicates that leave the source out, which is then not read wherever its address points
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd5], 4;\n" FROM_SHARED), {100, 101, 102, 103}},
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd5], 4, %p1;\n" FROM_SHARED), {100, 0, 102, 0}},
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd5], 4, !%p1;\n" FROM_SHARED), {0, 101, 0, 103}},
    {KERNEL("selp.b64 %rd6, 8, %rd5, %p1;\ncp.async.ca.shared.global [%r3], [%rd6], 4, %p1;\n" FROM_SHARED),
     {100, 0, 102, 0}},
    {KERNEL("selp.b64 %rd6, 8, %rd5, %p1;\nselp.b32 %r5, 0, 4, %p1;\n"
            "cp.async.ca.shared.global [%r3], [%rd6], 4, %r5;\n" FROM_SHARED),
     {100, 0, 102, 0}},
    {KERNEL("mov.b64 %rd6, 8;\ncp.async.ca.shared.global [%r3], [%rd6], 4, 0;\n" FROM_SHARED), {0, 0, 0, 0}},
    {KERNEL("createpolicy.fractional.L2::evict_last.b64 %rd6;\n"
            "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%r3], [%rd5], 4, %p1, %rd6;\n" FROM_SHARED),
     {100, 0, 102, 0}},
    {KERNEL("cp.async.ca.shared.global [%r3], [%rd5], 4, 1;\n" FROM_SHARED), {100, 101, 102, 103}},
    // vector atomics: results may be left out
    {KERNEL("setp.eq.u32 %p2, %r1, 0;\nmov.f32 %r5, 0f3f800000;\nmov.u32 %r6, 0;\nst.global.u32 [%rd1], %r6;\n"
            "@%p2 atom.global.add.v4.f32 _, [%rd3], {%r5, %r5, %r5, %r5};\nbar.warp.sync 0xffffffff;\n"
            "ld.global.u32 %r9, [%rd1];\n"),
     {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000}},
    {KERNEL("setp.eq.u32 %p2, %r1, 0;\nmov.u32 %r6, 0x3c00;\ncvt.u16.u32 %h1, %r6;\nmov.u32 %r6, 0;\n"
            "st.global.u32 [%rd1], %r6;\n@%p2 red.global.v2.f16.max.noftz [%rd3], {%h1, %h1};\n"
            "bar.warp.sync 0xffffffff;\nld.global.u32 %r9, [%rd1];\n"),
     {0x3c003c00, 0, 0, 0}},
    // special registers
    {KERNEL("mov.u32 %r9, %tid.w;\nmov.u32 %r5, %ntid.w;\nadd.u32 %r9, %r9, %r5;\nmov.u32 %r5, %nclusterid.w;\n"
            "add.u32 %r9, %r9, %r5;\nmov.u64 %rd6, %pm3_64;\ncvt.u32.u64 %r5, %rd6;\nadd.u32 %r9, %r9, %r5;\n"),
     {0, 0, 0, 0}},
    {KERNEL("mov.v4.u32 {%r5, %r6, %r7, %r8}, %ntid;\nmad.lo.u32 %r9, %r5, 10, %r6;\nmad.lo.u32 %r9, %r9, 10, %r7;\n"
            "mad.lo.u32 %r9, %r9, 10, %r8;\n"),
     {4110, 4110, 4110, 4110}},
    {KERNEL("mov.v4.u32 {%r9, _, _, _}, %tid;\n"), {0, 1, 2, 3}},
    {KERNEL("mov.v4.u16 {%h1, _, _, _}, %tid;\ncvt.u32.u16 %r9, %h1;\n"), {0, 1, 2, 3}},
    // what changes nothing that is seen here
    {KERNEL("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd6, [%rd2], 64, 128;\n"
            "createpolicy.cvt.L2.b64 %rd7, %rd6;\nld.global.L2::cache_hint.u32 %r9, [%rd5], %rd7;\n"),
     {100, 101, 102, 103}},
    {KERNEL("fence.acquire.sync_restrict::shared::cluster.cluster;\nfence.release.sync_restrict::shared::cta.cluster;\n"
            "fence.proxy.tensormap::generic.release.gpu;\nfence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n"
            "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n"
            "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\nmembar.proxy.alias;\n"
            "fence.proxy.alias;\nfence.proxy.async;\nfence.proxy.async.global;\nfence.proxy.async.shared::cta;\n"
            "fence.mbarrier_init.release.cluster;\n"),
     {77, 77, 77, 77}},
    {KERNEL("ld.volatile.global.L2::evict_last.v8.b32 {%r9, %r5, %r6, %r7, _, _, _, _}, [%rd2];\n"),
     {100, 100, 100, 100}},
};

START_TEST(test_forms) {
  expect_words(rows[_i].body, rows[_i].words, THREADS);
}
END_TEST

// --- perturbation -------------------------------------------------------------------------------------------------

// Each thread: ex2.approx.f32 of its number of the input, which is (100 + thread) / 128.
static const char *const exponential = KERNEL(
    "ld.global.u32 %r5, [%rd5];\ncvt.rn.f32.u32 %r6, %r5;\nmul.f32 %r6, %r6, 0f3c000000;\nex2.approx.f32 %r9, %r6;\n");

static void run_exponential(uint64_t perturb, unsigned workers, uint32_t out[16]) {
  run_words(exponential, (kl_launch){.perturb = perturb, .workers = workers}, 16, out);
}

// Other values with a seed, the same ones with the same seed, all within two units in the last place.
START_TEST(test_perturbation) {
  uint32_t nearest[16], one[16], again[16], other[16], differ = 0, apart = 0;
  run_exponential(0, 1, nearest);
  run_exponential(7, 1, one);
  run_exponential(7, 2, again);
  run_exponential(8, 1, other);
  for (int i = 0; i < 16; i++) {
    uint32_t up = one[i] - nearest[i], down = nearest[i] - one[i];
    ck_assert_uint_eq(one[i], again[i]);
    ck_assert_uint_le(up < down ? up : down, 2);
    differ += one[i] != nearest[i];
    apart += one[i] != other[i];
  }
  ck_assert_uint_gt(differ, 4);
  ck_assert_uint_gt(apart, 4);
}
END_TEST

int main(void) {
  return RUN_TESTS("forms", NO_FRAME, {test_forms, KL_COUNT(rows)}, {test_perturbation});
}

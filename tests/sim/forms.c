// Forms of the machine's own instructions, one small kernel each: what four threads write.
#include "sim/machine/machine.h"
#include "support/ptxas.h"
#include "support/suite.h"
#include <stdio.h>

enum { THREADS = 4, WORDS = 64 };

// %rd1 is the thread's word of the output, %rd2 the input: words 100, 101, ...; %r1 the thread's number.
#define KERNEL(body)                                                                                                   \
  ".version 8.8\n.target sm_100\n.address_size 64\n.shared .align 16 .b8 s[64];\n"                                     \
  ".visible .entry k(.param .u64 out, .param .u64 in) {\n"                                                             \
  ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"                                       \
  "mov.u32 %r1, %tid.x;\nld.param.u64 %rd3, [out];\nld.param.u64 %rd2, [in];\nmul.wide.u32 %rd4, %r1, 4;\n"            \
  "add.u64 %rd1, %rd3, %rd4;\nadd.u64 %rd5, %rd2, %rd4;\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r3, %r2, "    \
  "%r3;\n"                                                                                                             \
  "and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p1, %r4, 1;\nmov.u32 %r9, 77;\nst.shared.u32 [%r3], %r9;\n" body                 \
  "st.global.u32 [%rd1], %r9;\nret;\n}\n"
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
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  uint64_t address[2];
  kl_memory_init(&m, cx, UINT64_MAX);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(kl_memory_alloc(&m, 4 * WORDS, KL_REGION_USER, KL_STR("words"), &address[i]), KILN_OK);
  uint32_t *out = (uint32_t *)(void *)kl_memory_at(&m, address[0], 4 * WORDS);
  uint32_t *in = (uint32_t *)(void *)kl_memory_at(&m, address[1], 4 * WORDS);
  for (uint32_t i = 0; i < WORDS; i++) in[i] = 100 + i;
  bool ok = kl_load(cx, &m, "k.ptx", kl_str_of(rows[_i].body), &loaded) == KILN_OK &&
            kl_kernel_prepare(cx, loaded, KL_STR("k"), &k) == KILN_OK;
  kl_launch l = {.kernel = k, .grid = {1, 1, 1}, .block = {THREADS, 1, 1}, .params = address};
  ok = ok && kl_launch_run(cx, &m, &l, &fault) == KILN_OK;
  ck_assert_msg(ok, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "");
  for (int i = 0; i < THREADS; i++) ck_assert_uint_eq(out[i], rows[_i].words[i]);
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
  if (!ptxas_path()) return;
  ptxas_result r = ptxas_run(rows[_i].body, strlen(rows[_i].body), "sm_100");
  ck_assert_msg(r.ok, "%s", r.log);
}
END_TEST

// --- perturbation -------------------------------------------------------------------------------------------------

// Each thread: ex2.approx.f32 of its number of the input, which is (100 + thread) / 128.
static const char *const exponential = KERNEL(
    "ld.global.u32 %r5, [%rd5];\ncvt.rn.f32.u32 %r6, %r5;\nmul.f32 %r6, %r6, 0f3c000000;\nex2.approx.f32 %r9, %r6;\n");

static void run_exponential(uint64_t perturb, unsigned workers, uint32_t out[32]) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  uint64_t address[2];
  kl_memory_init(&m, cx, UINT64_MAX);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(kl_memory_alloc(&m, 4 * WORDS, KL_REGION_USER, KL_STR("words"), &address[i]), KILN_OK);
  uint32_t *in = (uint32_t *)(void *)kl_memory_at(&m, address[1], 4 * WORDS);
  for (uint32_t i = 0; i < WORDS; i++) in[i] = 100 + i;
  ck_assert_int_eq(kl_load(cx, &m, "k.ptx", kl_str_of(exponential), &loaded), KILN_OK);
  ck_assert_int_eq(kl_kernel_prepare(cx, loaded, KL_STR("k"), &k), KILN_OK);
  kl_launch l = {
      .kernel = k, .grid = {1, 1, 1}, .block = {16, 1, 1}, .params = address, .perturb = perturb, .workers = workers};
  ck_assert_int_eq(kl_launch_run(cx, &m, &l, &fault), KILN_OK);
  memcpy(out, kl_memory_at(&m, address[0], 4 * 16), 4 * 16);
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}

// Other values with a seed, the same ones with the same seed, all within two units in the last place.
START_TEST(test_perturbation) {
  uint32_t nearest[32], one[32], again[32], other[32], differ = 0, apart = 0;
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

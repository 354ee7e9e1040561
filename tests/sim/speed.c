// What checks cost: a launch under all of them beside the same one without, so that neither the machine nor its load
// matters. benchmarks/sim.c has the figures; here it is told when a way that most accesses take is lost, which costs
// twice as much as is measured without it.

#include "sim/check/checks.h"
#include "stage.h"
#include "support/suite.h"

#include <stdio.h>
#include <time.h>

enum { BLOCKS = 64, THREADS = 256, PASSES = 15 };

#define HEAD                                                                                                           \
  ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to) {\n"             \
  ".shared .align 16 .b8 s[4096];\n.reg .pred %p<4>;\n.reg .b32 %r<40>;\n.reg .b64 %d<8>;\n"                           \
  "ld.param.u64 %d1, [from];\nld.param.u64 %d2, [to];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"                 \
  "mad.lo.u32 %r3, %r1, 256, %r2;\nmul.wide.u32 %d3, %r3, 16;\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;\n"
#define LOAD  "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d1];\n"
#define STORE "st.global.v4.u32 [%d2], {%r4, %r5, %r6, %r7};\nret;\n}\n"

static const struct {
  const char *name, *ptx;
  double most; // times as long
} kernels[] = {
    {"a loop of arithmetic",
     HEAD LOAD
     "mov.u32 %r8, 0;\nagain:\nmad.lo.u32 %r4, %r4, %r5, %r8;\nxor.b32 %r5, %r5, %r4;\nadd.u32 %r6, %r6, %r5;\n"
     "shl.b32 %r7, %r6, 3;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 100;\n@%p1 bra again;\n" STORE,
     8},
    {"a copy", HEAD LOAD STORE, 4.5},
    {"columns of shared memory",
     HEAD LOAD "and.b32 %r9, %r2, 15;\nshr.u32 %r10, %r2, 4;\nshl.b32 %r11, %r9, 8;\nshl.b32 %r12, %r10, 4;\n"
               "mov.u32 %r13, s;\nadd.u32 %r13, %r13, %r11;\nadd.u32 %r13, %r13, %r12;\nshl.b32 %r14, %r2, 4;\n"
               "mov.u32 %r15, s;\nadd.u32 %r15, %r15, %r14;\nst.shared.v4.u32 [%r13], {%r4, %r5, %r6, %r7};\n"
               "bar.sync 0;\nld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r15];\n" STORE,
     8}, // against launches that became 1.8 times as fast without checks: 5.5 before
    {"shared memory that every warp reads",
     HEAD LOAD "and.b32 %r9, %r2, 31;\nshl.b32 %r9, %r9, 4;\nmov.u32 %r13, s;\nadd.u32 %r14, %r13, %r9;\n"
               "and.b32 %r10, %r2, 3;\nshl.b32 %r10, %r10, 2;\nadd.u32 %r15, %r13, %r10;\n"
               "setp.lt.u32 %p2, %r2, 32;\nshl.b32 %r11, %r2, 2;\nadd.u32 %r11, %r13, %r11;\nmov.u32 %r8, 0;\n"
               "@%p2 st.shared.v4.u32 [%r14], {%r4, %r5, %r6, %r7};\n@%p2 st.shared.u32 [%r11+1024], %r4;\n"
               "again:\nbar.sync 0;\nld.shared.v4.u32 {%r16, %r17, %r18, %r19}, [%r14];\nadd.u32 %r4, %r4, %r16;\n"
               "add.u32 %r5, %r5, %r17;\nxor.b32 %r6, %r6, %r18;\nxor.b32 %r7, %r7, %r19;\n"
               "ld.shared.u32 %r20, [%r15+1024];\nadd.u32 %r4, %r4, %r20;\nadd.u32 %r8, %r8, 1;\n"
               "setp.lt.u32 %p1, %r8, 20;\n@%p1 bra again;\n" STORE,
     16}, // 100 where readers are judged cell by cell: 9
};

// Instrumented code costs what it likes.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { INSTRUMENTED = 4 };
#else
enum { INSTRUMENTED = 1 };
#endif

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// The least of several, of a launch that finds nothing.
static double time_of(stage *s, const uint64_t params[2], uint32_t checks) {
  double least = 1e9;
  kl_launch l = {.kernel = s->k, .grid = {BLOCKS, 1, 1}, .block = {THREADS, 1, 1}, .params = params, .workers = 1};
  for (int n = 0; n < PASSES; n++) {
    double begin = cpu_ms();
    ck_assert_int_eq(kl_checks_expect_nothing(s->cx, &s->m, &l, checks), KILN_OK);
    double took = cpu_ms() - begin;
    least = took < least ? took : least;
  }
  return least;
}

START_TEST(checks_cost_little) {
  stage s;
  stage_open(&s);
  stage_expect(&s, kernels[_i].name, kernels[_i].ptx, "k");
  uint64_t params[2] = {stage_words(&s, BLOCKS * THREADS * 4, 1), stage_memory(&s, BLOCKS * THREADS * 16)};
  double none = time_of(&s, params, 0), all = time_of(&s, params, KL_CHECK_ALL);
  printf("# %s: %.1f times as long under all checks\n", kernels[_i].name, all / none);
  EXPECT(all < kernels[_i].most * INSTRUMENTED * none,
         "%s: %.3f ms without checks, %.3f ms under all of them: more than %.1f times", kernels[_i].name, none, all,
         kernels[_i].most);
  stage_close(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("speed", NO_FRAME, {checks_cost_little, (int)KL_COUNT(kernels)});
}

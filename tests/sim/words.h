// A small kernel whose threads each write one word.
#ifndef TESTS_SIM_WORDS_H
#define TESTS_SIM_WORDS_H

#include "stage.h"
#include "support/ptxas.h"
#include "support/suite.h"

enum { WORDS = 64 };

// %rd1 is the thread's word of the output, %rd2 the input: words 100, 101, ..., %rd5 the thread's own; %r1 the thread's
// number, %p1 whether it is odd, %r3 its word of shared memory, which holds 77; %r9 is what it writes.
#define KERNEL(body)                                                                                                   \
  ".version 8.8\n.target sm_100\n.address_size 64\n.shared .align 16 .b8 s[64];\n"                                     \
  ".visible .entry k(.param .u64 out, .param .u64 in) {\n"                                                             \
  ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"                                       \
  "mov.u32 %r1, %tid.x;\nld.param.u64 %rd3, [out];\nld.param.u64 %rd2, [in];\nmul.wide.u32 %rd4, %r1, 4;\n"            \
  "add.u64 %rd1, %rd3, %rd4;\nadd.u64 %rd5, %rd2, %rd4;\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r3, %r2, "    \
  "%r3;\n"                                                                                                             \
  "and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p1, %r4, 1;\nmov.u32 %r9, 77;\nst.shared.u32 [%r3], %r9;\n" body                 \
  "st.global.u32 [%rd1], %r9;\nret;\n}\n"

// The launch of `text` in one block of so many threads; what is not given in `how` is 0.
static inline kl_launch word_launch(stage *s, const char *text, kl_launch how, uint32_t threads, uint64_t params[2]) {
  stage_open(s);
  stage_expect(s, "a kernel", text, "k");
  params[0] = stage_memory(s, 4 * WORDS);
  params[1] = stage_words(s, WORDS, 100);
  how.kernel = s->k;
  how.grid[0] = how.grid[1] = how.grid[2] = how.block[1] = how.block[2] = 1;
  how.block[0] = threads;
  how.params = params;
  return how;
}

// What the threads wrote.
static inline void run_words(const char *text, kl_launch how, uint32_t threads, uint32_t *out) {
  stage s;
  kl_fault fault;
  uint64_t params[2];
  kl_launch l = word_launch(&s, text, how, threads, params);
  ck_assert_msg(kl_launch_run(s.cx, &s.m, &l, &fault) == KILN_OK, "%s", stage_why(&s));
  memcpy(out, stage_read(&s, params[0], threads), threads * sizeof *out);
  stage_close(&s);
}

// The same of a launch as it is, against what is expected; ptxas, where there is one, takes the kernel too.
static inline void expect_words(const char *text, const uint32_t *words, uint32_t threads) {
  uint32_t out[WORDS];
  run_words(text, (kl_launch){0}, threads, out);
  for (uint32_t i = 0; i < threads; i++) ck_assert_uint_eq(out[i], words[i]);
  if (!ptxas_path()) return;
  ptxas_result r = ptxas_run(text, strlen(text), "sm_100");
  ck_assert_msg(r.ok, "%s", r.log);
}

#endif

// What findings say: kernels with one mistake each, and the whole text of what is told about it.

#include "base/base.h"
#include "support/suite.h"

#include <kiln/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_context *cx;
static kiln_simulator *s;
static kiln_sim_module *m;
static uint64_t in, out;

static void make(void) {
  cx = kiln_context_create(NULL);
  ck_assert_int_eq(kiln_simulator_open(cx, &s), KILN_OK);
  m = NULL;
}
static void drop(void) {
  kiln_simulator_close(&s);
  kiln_context_destroy(&cx);
}

#define HEADER ".version 8.3\n.target sm_90\n.address_size 64\n"
// Lines 4 to 11, with nothing before them. %r1 is the thread's number, %rd1 its word of `out`, %rd2 that of `in`.
#define BEGIN                                                                                                          \
  ".visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>; "    \
  ".reg .b16 %h<9>; .reg .b128 %q<3>; .reg .f32 %f<9>;\n"                                                              \
  "mov.u32 %r1, %tid.x;\nld.param.u64 %rd3, [in]; ld.param.u64 %rd4, [out];\nmul.wide.u32 %rd5, %r1, 4;\n"             \
  "add.u64 %rd1, %rd4, %rd5; add.u64 %rd2, %rd3, %rd5;\n"
#define END "st.global.b32 [%rd1], %r1;\nret;\n}\n"

// Runs kernel k of 64 threads in 2 blocks: `in` has 64 words, of which the last is not written, `out` 64 others.
static void run(const char *ptx, uint32_t checks) {
  kiln_sim_kernel *k = NULL;
  ck_assert_msg(kiln_simulator_load(cx, s, "k.ptx", ptx, strlen(ptx), &m) == KILN_OK &&
                    kiln_sim_module_kernel(cx, m, "k", &k) == KILN_OK,
                "%s\n%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "", ptx);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 256, &in), KILN_OK);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 256, &out), KILN_OK);
  uint32_t *words = kiln_simulator_bytes(s, in, 252);
  for (uint32_t i = 0; i < 63; i++) words[i] = i;
  const void *arguments[] = {&in, &out};
  kiln_sim_range written = {out, 128};
  kiln_sim_launch_params p = {.struct_size = sizeof p,
                              .grid = {2},
                              .block = {32},
                              .dynamic_shared_bytes = 64,
                              .arguments = arguments,
                              .checks = checks,
                              .outputs = &written,
                              .output_count = 1,
                              .most_branches = 100000};
  kiln_status st = kiln_sim_kernel_launch(cx, k, &p, NULL);
  ck_assert_msg(st == KILN_OK || st == KILN_E_DEVICE, "status %d", st);
}

// The first finding, and how many there are.
static const struct {
  const char *ptx, *text;
  size_t n;
} rows[] = {
    {HEADER BEGIN "st.global.b32 [%rd4+256], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x10000100300, right behind "
     "the end of what out points to (256 bytes at 0x10000100200)",
     1},
    {HEADER BEGIN "st.global.b32 [%rd4+254], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x100001002fe, of which 2 "
     "lie behind the end of what out points to (256 bytes at 0x10000100200)",
     1},
    {HEADER BEGIN "st.global.b64 [%rd4+252], %rd1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 8 bytes at 0x100001002fc, of which 4 "
     "lie behind the end of what out points to (256 bytes at 0x10000100200)",
     1},
    {HEADER ".shared .align 4 .b8 a[64];\n.shared .align 16 .b8 b[32];\n" BEGIN
            "mov.u32 %r2, b;\nst.shared.b32 [%r2+100], %r1;\nst.shared.b32 [a], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0xa4 of shared memory, 4 "
     "bytes behind the end of dynamic shared memory (64 bytes at 0x60)",
     1},
    {HEADER ".shared .align 4 .b8 a[64];\n" BEGIN "mov.u32 %r2, a;\nst.shared.b32 [%r2+-4], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0xfffffffc of shared memory, "
     "4 bytes before a (64 bytes at 0x0)",
     1},
    {HEADER ".extern .shared .align 4 .b8 d[];\n.shared .align 4 .b8 a[64];\n" BEGIN
            "mov.u32 %r2, d;\nst.shared.b32 [%r2+64], %r1;\nst.shared.b32 [a], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x80 of shared memory, right "
     "behind the end of d (64 bytes at 0x40)",
     1},
    {HEADER BEGIN ".local .align 4 .b8 l[32];\nmov.u64 %rd6, l;\nst.local.b32 [%rd6+40], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x28 of local memory, 8 "
     "bytes behind the end of l (32 bytes at 0x0)",
     1},
    {HEADER BEGIN "ld.param.b64 %rd6, [out+8];\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 8 bytes at 0x10 of the parameters, "
     "right behind the end of out (8 bytes at 0x8)",
     1},
    {HEADER BEGIN "ld.b32 %r2, [16];\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x10, which belongs to no "
     "space",
     1},
    {HEADER ".const .align 4 .b8 c[16];\n" BEGIN "cvta.const.u64 %rd6, c;\nst.b32 [%rd6+8], %r1;\n" END,
     "a store to what is read-only in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x10000000008, 8 bytes into c (16 "
     "bytes at 0x10000000000)",
     1},
    {HEADER ".func f(.param .b64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.b64 %rd1, [p];\nst.b32 [%rd1+2], "
            "%r1;\nret;\n}\n.func g(.param .b64 p) {\n.reg .b64 %rd<3>;\nld.param.b64 %rd1, [p];\n{\n.param .b64 "
            "q;\nst.param.b64 [q], %rd1;\ncall.uni f, (q);\n}\nret;\n}\n" BEGIN
            "{\n.param .b64 q;\nst.param.b64 [q], %rd1;\ncall.uni g, (q);\n}\n" END,
     "a misaligned address in f, block (0,0,0), thread (0,0,0), 4 bytes at 0x10000100202, 2 bytes into what out points "
     "to (256 bytes at 0x10000100200); called in line 17 of g, called in line 32 of k",
     1},
    {HEADER BEGIN "mov.u32 %r2, 7;\nst.global.b32 [%rd1], %r9;\nret;\n}\n",
     "an output made from values that were never written in k, block (1,0,0), thread (0,0,0), 4 bytes at "
     "0x10000100200, at the start of what out points to (256 bytes at 0x10000100200), holding 0x0 (bits 0xffffffff "
     "without a value); from %r9, which line 13 reads before anything sets it; 32 times",
     1},
    {HEADER BEGIN "ld.global.b32 %r2, [%rd3+252];\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "an output made from values that were never written in k, block (1,0,0), thread (0,0,0), 4 bytes at "
     "0x10000100200, at the start of what out points to (256 bytes at 0x10000100200), holding 0x1 (bits 0xffffffff "
     "without a value); from line 12, which loads what has no value yet, 4 bytes at 0x100000000fc, 252 bytes into what "
     "in points to (256 bytes at 0x10000000000); 32 times",
     1},
    {HEADER BEGIN "setp.eq.u32 %p1, %r9, 0;\n@%p1 bra L;\nL:\n" END,
     "a branch on values that were never written in k, block (0,0,0), thread (0,0,0); from %r9, which line 12 reads "
     "before anything sets it; 64 times",
     1},
    {HEADER BEGIN "cvt.u64.u32 %rd7, %r9;\nadd.u64 %rd7, %rd7, %rd1;\nld.global.b32 %r2, [%rd7];\n" END,
     "an address made from values that were never written in k, block (0,0,0), thread (0,0,0), value 0x10000100200 "
     "(bits 0xffffffffffffffff without a value); from %r9, which line 12 reads before anything sets it; 64 times",
     2},
    {HEADER BEGIN "setp.lt.u32 %p1, %r1, 20;\n@%p1 st.global.b32 [%rd1], %r1;\nret;\n}\n",
     "an output that was not written in k, 48 bytes at 0x10000100250, 80 bytes into what out points to (256 bytes at "
     "0x10000100200)",
     1},
    {HEADER ".shared .align 4 .b8 a[128];\n" BEGIN "st.shared.b32 [a+4], %r1;\n" END,
     "two accesses that nothing orders: a write after a write in k, block (0,0,0), thread (1,0,0), 4 bytes at 0x4 of "
     "shared memory, 4 bytes into a (128 bytes at 0x0), holding 0x0; the other: line 13, block (0,0,0), thread "
     "(0,0,0); 62 times",
     1},
    {HEADER BEGIN "atom.global.add.u32 %r2, [%rd3], 1;\nst.global.b32 [%rd3], %r1;\n" END,
     "two accesses that nothing orders: a write after an atomic operation in k, block (0,0,0), thread (0,0,0), 4 bytes "
     "at 0x10000000000, at the start of what in points to (256 bytes at 0x10000000000), holding 0x20; the other: line "
     "12, block (0,0,0), thread (1,0,0); 94 times",
     2},
    {HEADER BEGIN "setp.lt.u32 %p1, %r1, 20;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 0;\n" END,
     "threads that are not together where they must be: lanes of a warp in different instructions of a barrier in k, "
     "block (0,0,0), thread (20,0,0); the other: line 13, block (0,0,0), thread (0,0,0); 2 times",
     1},
    {HEADER BEGIN "bar.sync 0, 64;\n" END,
     "a barrier's number of threads: more than the block has in k, block (0,0,0), thread (0,0,0), 64 threads", 3},
    {HEADER BEGIN "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nret;\nL: shfl.sync.bfly.b32 %r2, %r1, 16, 31, 0xffff;\n" END,
     "a value from a lane that takes no part: a shuffle from a lane outside of the member mask in k, block (0,0,0), "
     "thread (0,0,0); the other: block (0,0,0), thread (16,0,0); 2 times",
     2},
    {HEADER BEGIN "bar.sync 3, 33;\n" END,
     "a barrier that does not exist, or a thread count that is no multiple of 32 in k, block (0,0,0), thread (0,0,0)",
     1},
    {HEADER BEGIN "trap;\n" END, "a trap in k, block (0,0,0), thread (0,0,0)", 1},
    {HEADER BEGIN "L: bra L;\n" END, "more branches than the launch allows in k, block (0,0,0), thread (0,0,0)", 1},
    {".version 8.3\n.target sm_90\n.address_size 64\n" BEGIN
     ".loc 1 7 3\nmov.u32 %r2, 1;\n.loc 1 20 5, function_name $L, inlined_at 1 7 3\nmov.u32 %r2, 2;\n.loc 2 31 9, "
     "function_name $M, inlined_at 1 20 5\nst.global.b32 [%rd4+256], %r2;\n" END ".file 1 \"a.cu\"\n.file 2 \"b.h\"\n",
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), b.h:31, inlined at a.cu:20, inlined at "
     "a.cu:7, 4 bytes at 0x10000100300, right behind the end of what out points to (256 bytes at 0x10000100200)",
     1},
    {HEADER ".func f(.param .b64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.b64 %rd1, [p];\nst.b32 [%rd1], "
            "%r1;\nret;\n}\n" BEGIN
            "{\n.param .b64 q;\nst.param.b64 [q], %rd1;\n.loc 3 9 1\ncall.uni f, (q);\n}\nret;\n}\n",
     "an output made from values that were never written in f, block (1,0,0), thread (0,0,0), 4 bytes at "
     "0x10000100200, at the start of what out points to (256 bytes at 0x10000100200), holding 0x0 (bits 0xffffffff "
     "without a value); called in line 23 of k (source line 9); from %r1, which line 8 reads before anything sets it; "
     "32 times",
     1},
    {HEADER ".func f(.param .b64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.b64 %rd1, [p];\nadd.u64 %rd1, "
            "%rd1, 4;\n{\n.param .b64 q;\nst.param.b64 [q], %rd1;\ncall.uni f, (q);\n}\nret;\n}\n" BEGIN
            "{\n.param .b64 q;\nst.param.b64 [q], %rd1;\ncall.uni f, (q);\n}\n" END,
     "a call too deep for the stack in f, block (0,0,0), thread (0,0,0); called in line 12 of f 100 times over, and "
     "32667 more calls",
     1},
    {HEADER ".func f() {\nbar.sync 0, 64;\nret;\n}\n" BEGIN "call.uni f, ();\n" END,
     "a barrier's number of threads: more than the block has in f, block (0,0,0), thread (0,0,0), 64 threads; called "
     "in line 16 of k",
     3},
    {HEADER ".shared .align 4 .b8 a[128];\n.func f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, "
            "[x];\nst.shared.b32 [a], %r1;\nret;\n}\n" BEGIN
            "{\n.param .b32 q;\nst.param.b32 [q], %r1;\ncall.uni f, (q);\n}\n" END,
     "two accesses that nothing orders: a write after a write in f, block (0,0,0), thread (1,0,0), 4 bytes at 0x0 of "
     "shared memory, at the start of a (128 bytes at 0x0), holding 0x0; called in line 22 of k; the other: line 8, "
     "block (0,0,0), thread (0,0,0); 62 times",
     1},
    {HEADER BEGIN ".local .align 8 .b8 l[32];\ncvta.local.u64 %rd6, l;\nst.b32 [%rd6+33], %r1;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x21 of local memory "
     "(generic 0x200000021), 1 byte behind the end of l (32 bytes at 0x0)",
     1},
    {HEADER BEGIN
     ".local .align 8 .b8 l[32];\nmov.u64 %rd7, 32;\nalloca.u64 %rd6, %rd7, 16;\nst.local.b64 [%rd6+28], %rd7;\n" END,
     "an address with no memory behind it in k, block (0,0,0), thread (0,0,0), 8 bytes at 0x3c of local memory, of "
     "which 4 lie behind the end of what alloca gave (32 bytes at 0x20)",
     1},
};

static const char *first_text(void) {
  kiln_sim_finding f = {.struct_size = sizeof f};
  if (kiln_simulator_finding_count(s) == 0) return "nothing";
  ck_assert_int_eq(kiln_simulator_finding(cx, s, 0, &f), KILN_OK);
  return f.text;
}

START_TEST(says) {
  run(rows[_i].ptx, KILN_SIM_CHECK_ALL);
  if (getenv("SHOW")) printf("# %zu %s\n", kiln_simulator_finding_count(s), first_text());
  EXPECT(strcmp(first_text(), rows[_i].text) == 0, "expected %s\nfound    %s\n%s", rows[_i].text, first_text(),
         rows[_i].ptx);
  ck_assert_uint_eq(kiln_simulator_finding_count(s), rows[_i].n);
}
END_TEST

// Where values come from that were never written: of the first finding.
#define KERNEL(body) HEADER BEGIN body "ret;\n}\n"
#define SHARED       ".shared .align 16 .b8 a[128];\n"
static const struct {
  const char *ptx, *origin;
} origins[] = {
    {KERNEL("add.u32 %r2, %r9, 1;\nmov.u32 %r3, %r2;\nst.global.b32 [%rd1], %r3;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("add.u32 %r2, %r2, %r1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r2, which line 12 reads before anything sets it"},
    {KERNEL("mov.u32 %r2, 5;\nadd.u32 %r2, %r2, %r9;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 13 reads before anything sets it"},
    {KERNEL("add.u32 %r2, %r9, 1;\nld.global.b32 %r2, [%rd3+252];\nst.global.b32 [%rd1], %r2;\n"),
     "line 13, which loads what has no value yet, 4 bytes at 0x100000000fc, 252 bytes into what in points to (256 "
     "bytes at 0x10000000000)"},
    {KERNEL("setp.lt.u32 %p1, %r1, 20;\n@%p1 mov.u32 %r2, 6;\n@!%p1 ld.global.b32 %r2, [%rd3+252];\nst.global.b32 "
            "[%rd1], %r2;\n"),
     "line 14, which loads what has no value yet, 4 bytes at 0x100000000fc, 252 bytes into what in points to (256 "
     "bytes at 0x10000000000)"},
    {KERNEL("setp.lt.u32 %p1, %r1, 20;\n@%p1 add.u32 %r2, %r9, 6;\n@!%p1 ld.global.b32 %r2, [%rd3+252];\nsetp.ge.u32 "
            "%p2, %r1, 20;\n@%p2 st.global.b32 [%rd1], %r2;\n"),
     "line 14, which loads what has no value yet, 4 bytes at 0x100000000fc, 252 bytes into what in points to (256 "
     "bytes at 0x10000000000)"},
    {KERNEL("setp.lt.u32 %p1, %r9, 20;\nselp.b32 %r2, 1, 2, %p1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nst.global.b32 [%rd1], %r2;\n"),
     "%h2, which line 13 reads before anything sets it"},
    {KERNEL("add.cc.u32 %r2, %r9, 1;\naddc.u32 %r3, %r1, 0;\nst.global.b32 [%rd1], %r3;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("mov.b128 %q1, {%rd7, %rd8};\nmov.b128 {%rd9, %rd10}, %q1;\ncvt.u32.u64 %r2, %rd10;\nst.global.b32 [%rd1], "
            "%r2;\n"),
     "%rd7, which line 12 reads before anything sets it"},
    {HEADER SHARED BEGIN
     "shl.b32 %r2, %r1, 2;\nmov.u32 %r3, a;\nadd.u32 %r3, %r3, %r2;\nadd.u32 %r4, %r9, 1;\nst.shared.b32 [%r3], "
     "%r4;\nbar.sync 0;\nld.shared.b32 %r5, [a+12];\nst.global.b32 [%rd1], %r5;\nret;\n}\n",
     "%r9, which line 16 reads before anything sets it"},
    {HEADER SHARED BEGIN "ld.shared.v2.b32 {%r2, %r3}, [a+8];\nst.global.b32 [%rd1], %r3;\nret;\n}\n",
     "line 13, which loads what has no value yet, 4 bytes at 0xc of shared memory, 12 bytes into a (128 bytes at 0x0)"},
    {HEADER SHARED BEGIN "atom.shared.add.u32 %r2, [a], 1;\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "line 13, which loads what has no value yet, 4 bytes at 0x0 of shared memory, at the start of a (128 bytes at "
     "0x0)"},
    {HEADER SHARED BEGIN
     "st.shared.b32 [a], 0;\nbar.sync 0;\natom.shared.add.u32 %r2, [a], %r9;\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "%r9, which line 15 reads before anything sets it"},
    {HEADER SHARED BEGIN "cp.async.ca.shared.global [a], [%rd3+252], 4;\ncp.async.wait_all;\nld.shared.b32 %r2, "
                         "[a];\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "line 13, which loads what has no value yet, 4 bytes at 0x100000000fc, 252 bytes into what in points to (256 "
     "bytes at 0x10000000000)"},
    {HEADER SHARED BEGIN "cp.async.ca.shared.global [a], [%rd3], 4;\nld.shared.b32 %r2, "
                         "[a];\ncp.async.wait_all;\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "line 13, whose copy has not arrived"},
    {KERNEL(".local .align 4 .b8 l[16];\nld.local.b32 %r2, [l+8];\nst.global.b32 [%rd1], %r2;\n"),
     "line 13, which loads what has no value yet, 4 bytes at 0x8 of local memory, 8 bytes into l (16 bytes at 0x0)"},
    {KERNEL(".local .align 4 .b8 l[16];\nst.local.b32 [l+4], %r9;\nld.local.b32 %r2, [l+4];\nst.global.b32 [%rd1], "
            "%r2;\n"),
     "%r9, which line 13 reads before anything sets it"},
    {KERNEL("st.global.b32 [%rd1+128], %r9;\nld.global.b32 %r2, [%rd1+128];\nst.global.b32 [%rd1+128], "
            "%r1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {HEADER ".global .align 4 .b8 g[128];\n" BEGIN
            "st.global.b32 [g], %r9;\nld.global.b32 %r2, [g];\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "%r9, which line 13 reads before anything sets it"},
    {HEADER ".func (.param .b32 y) f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nst.param.b32 [y], "
            "%r1;\nret;\n}\n" BEGIN "{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %r9;\ncall.uni (q), f, "
            "(p);\nld.param.b32 %r2, [q];\n}\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "%r9, which line 21 reads before anything sets it"},
    {HEADER ".func (.param .b32 y) f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nst.param.b32 [y], "
            "%r1;\nret;\n}\n" BEGIN "{\n.param .b32 p;\n.param .b32 q;\ncall.uni (q), f, (p);\nld.param.b32 %r2, "
            "[q];\n}\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "line 6 of f, which loads what has no value yet, 4 bytes at 0x14 of local memory, at the start of x (4 bytes at "
     "0x14)"},
    {HEADER ".func (.param .b32 y) f() {\n.reg .b32 %r<3>;\nret;\n}\n" BEGIN
            "{\n.param .b32 q;\ncall.uni (q), f, ();\nld.param.b32 %r2, [q];\n}\nst.global.b32 [%rd1], %r2;\nret;\n}\n",
     "line 19, which loads what has no value yet, 4 bytes at 0x0 of local memory, at the start of q (4 bytes at 0x0)"},
    {KERNEL("shfl.sync.bfly.b32 %r2, %r9, 1, 31, -1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nret;\nL: shfl.sync.bfly.b32 %r2, %r1, 16, 31, "
            "0xffff;\nst.global.b32 [%rd1], %r2;\n"),
     "line 15, which takes it from a lane that takes no part"},
    {KERNEL("shfl.sync.idx.b32 %r2, %r1, %r9, 31, -1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("vote.sync.ballot.b32 %r2, %p5, -1;\nst.global.b32 [%rd1], %r2;\n"),
     "%p5, which line 12 reads before anything sets it"},
    {KERNEL("redux.sync.add.u32 %r2, %r9, -1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("match.any.sync.b32 %r2, %r9, -1;\nst.global.b32 [%rd1], %r2;\n"),
     "%r9, which line 12 reads before anything sets it"},
    {KERNEL("bar.red.popc.u32 %r2, 0, %p5;\nst.global.b32 [%rd1], %r2;\n"),
     "%p5, which line 12 reads before anything sets it"},
    {KERNEL("mov.u32 %r3, 0;\nL: add.u32 %r2, %r2, %r3;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 4;\n@%p1 bra "
            "L;\nst.global.b32 [%rd1], %r2;\n"),
     "%r2, which line 13 reads before anything sets it"},
    {KERNEL("fma.rn.f32 %f1, %f2, %f3, %f4;\nst.global.f32 [%rd1], %f1;\n"),
     "%f2, which line 12 reads before anything sets it"},
};

START_TEST(comes_from) {
  kiln_sim_finding f = {.struct_size = sizeof f, .origin = "nothing is found"};
  run(origins[_i].ptx, KILN_SIM_CHECK_UNDEFINED);
  if (kiln_simulator_finding_count(s)) kiln_simulator_finding(cx, s, 0, &f);
  if (getenv("SHOW")) printf("# %s\n", f.origin);
  EXPECT(strcmp(f.origin, origins[_i].origin) == 0, "expected %s\nfound    %s\n%s", origins[_i].origin, f.origin,
         origins[_i].ptx);
}
END_TEST

// Accesses beyond their variable, within memory that is there.
#define TWO ".shared .align 4 .b8 a[64];\n.shared .align 4 .b8 b[64];\n.extern .shared .align 4 .b8 d[];\n"
static const struct {
  const char *ptx, *text;
} beyond[] = {
    {HEADER TWO BEGIN "shl.b32 %r2, %r1, 2;\nmov.u32 %r3, a;\nadd.u32 %r3, %r3, %r2;\nst.shared.b32 [%r3], "
                      "%r1;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (16,0,0), 4 bytes at 0x40 "
     "of shared memory, at the start of b (64 bytes at 0x40); from a (64 bytes at 0x0); 32 times"},
    {HEADER TWO BEGIN "st.shared.b32 [a+60], %r1;\nst.shared.b32 [b], %r1;\n" END, "nothing"},
    {HEADER TWO BEGIN "st.shared.b64 [a+64], %rd1;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 8 bytes at 0x40 "
     "of shared memory, at the start of b (64 bytes at 0x40); from a (64 bytes at 0x0); 64 times"},
    {HEADER TWO BEGIN "mov.u32 %r2, b;\nst.shared.b32 [%r2+-4], %r1;\nst.shared.b32 [a], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x3c "
     "of shared memory, 60 bytes into a (64 bytes at 0x0); from b (64 bytes at 0x40); 64 times"},
    {HEADER TWO BEGIN
     "mov.u32 %r2, b;\nadd.u32 %r2, %r2, 128;\nst.shared.b32 [%r2+-128], %r1;\nst.shared.b32 [a], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "mov.u32 %r2, b;\nst.shared.b32 [%r2+64], %r1;\nmov.u32 %r3, d;\nst.shared.b32 [%r3+60], "
                      "%r1;\nst.shared.b32 [a], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x80 "
     "of shared memory, at the start of d (64 bytes at 0x80); from b (64 bytes at 0x40); 64 times"},
    {HEADER TWO BEGIN "mov.u32 %r3, d;\nst.shared.b32 [%r3+-4], %r1;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x3c "
     "of shared memory, 60 bytes into b (64 bytes at 0x0); from d (64 bytes at 0x40); 64 times"},
    {HEADER TWO BEGIN "setp.lt.u32 %p1, %r1, 20;\nmov.u32 %r2, a;\nmov.u32 %r3, b;\nselp.b32 %r4, %r2, %r3, "
                      "%p1;\nst.shared.b32 [%r4+60], %r1;\nmov.u32 %r5, d;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "setp.lt.u32 %p1, %r1, 20;\nmov.u32 %r2, a;\nmov.u32 %r3, b;\nselp.b32 %r4, %r2, %r3, "
                      "%p1;\nst.shared.b32 [%r4+64], %r1;\nmov.u32 %r5, d;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (20,0,0), 4 bytes at 0x80 "
     "of shared memory, at the start of d (64 bytes at 0x80); from b (64 bytes at 0x40); 24 times"},
    {HEADER TWO BEGIN "mov.u32 %r2, a;\nmov.u32 %r3, 0;\nL: st.shared.b32 [%r2], %r1;\nadd.u32 %r2, %r2, 4;\nadd.u32 "
                      "%r3, %r3, 1;\nsetp.le.u32 %p1, %r3, 16;\n@%p1 bra L;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x40 "
     "of shared memory, at the start of b (64 bytes at 0x40); from a (64 bytes at 0x0); 64 times"},
    {HEADER TWO BEGIN
     "mov.u32 %r2, a;\nxor.b32 %r2, %r2, 60;\nst.shared.b32 [%r2], %r1;\nst.shared.b32 [b], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "mov.u32 %r2, a;\nmov.u32 %r3, b;\nsub.u32 %r4, %r3, %r2;\nadd.u32 %r4, %r2, %r4;\nst.shared.b32 "
                      "[%r4], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "mov.u32 %r2, a;\nadd.u32 %r3, %r2, 60;\nsub.u32 %r4, %r3, %r2;\nmov.u32 %r5, b;\nadd.u32 %r4, "
                      "%r5, %r4;\nst.shared.b32 [%r4], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "mov.u32 %r2, a;\nmov.u32 %r3, b;\nsub.u32 %r4, %r3, %r2;\nadd.u32 %r5, %r2, %r4;\nst.shared.b32 "
                      "[%r5], %r1;\nadd.u32 %r6, %r2, %r3;\nst.shared.b32 [%r6], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN "mov.u32 %r2, a;\nmapa.shared::cluster.u32 %r3, %r2, 0;\nst.shared::cluster.b32 [%r3+60], "
                      "%r1;\nst.shared.b32 [b], %r1;\n" END,
     "nothing"},
    {HEADER TWO BEGIN
     "cvta.shared.u64 %rd6, a;\nadd.u64 %rd6, %rd6, 80;\nst.b32 [%rd6], %r1;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x50 "
     "of shared memory (generic 0x100000050), 16 bytes into b (64 bytes at 0x40); from a (64 bytes at 0x0); 64 times"},
    {HEADER TWO BEGIN
     "mov.u64 %rd6, a;\ncvt.u32.u64 %r2, %rd6;\natom.shared.add.u32 %r3, [%r2+68], 1;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x44 "
     "of shared memory, 4 bytes into b (64 bytes at 0x40); from a (64 bytes at 0x0); 64 times"},
    {HEADER TWO BEGIN "cp.async.ca.shared.global [a+64], [%rd3], 4;\ncp.async.wait_all;\nst.shared.b32 [b], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x40 "
     "of shared memory, at the start of b (64 bytes at 0x40); from a (64 bytes at 0x0); 64 times"},
    {HEADER TWO BEGIN
     "mov.u32 %r2, a;\nst.shared.b32 [b], %r2;\nld.shared.b32 %r3, [b];\nst.shared.b32 [%r3+64], %r1;\n" END,
     "nothing"},
    {HEADER TWO
     ".func f(.param .b32 p) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [p];\nst.shared.b32 [%r1+64], %r1;\nret;\n}\n" BEGIN
     "{\n.param .b32 q;\nmov.u32 %r2, a;\nst.param.b32 [q], %r2;\ncall.uni f, (q);\n}\nst.shared.b32 [b], %r1;\n" END,
     "nothing"},
    {HEADER ".func f(.param .align 4 .b8 p[8], .param .b32 q) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, "
            "[p+8];\nld.param.b32 %r2, [p+4];\nret;\n}\n" BEGIN
            "{\n.param .align 4 .b8 s[8];\n.param .b32 q;\nst.param.b32 [s], %r1;\nst.param.b32 [q], %r1;\ncall.uni f, "
            "(s, q);\n}\n" END,
     "an access beyond the variable that its address comes from in f, block (0,0,0), thread (0,0,0), 4 bytes at 0x18 "
     "of local memory, at the start of q (4 bytes at 0x18); called in line 23 of k; from p (8 bytes at 0x10); 64 "
     "times"},
    // the first instruction is not what keeps a parameter
    {HEADER ".func (.reg .b32 y) f(.reg .b32 x) {\n.shared .align 4 .b8 s[4];\nst.shared.b32 [s], 1;\nmov.u32 y, "
            "x;\nret;\n}\n" BEGIN "setp.eq.u32 %p1, %r1, 0;\n@%p1 call (%r2), f, (%r1);\n" END,
     "nothing"},
    // a parameter that is as long as what is given for it
    {HEADER ".func f(.param .align 4 .b8 p[]) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [p+4];\nret;\n}\n" BEGIN
            "{\n.param .align 4 .b8 q[8];\nst.param.b32 [q], %r1;\nst.param.b32 [q+4], %r1;\ncall.uni f, (q);\n}\n" END,
     "nothing"},
    {HEADER BEGIN ".local .align 4 .b8 l[16];\n.local .align 4 .b8 m[16];\nmov.u64 %rd6, l;\nmad.wide.u32 %rd7, %r1, "
                  "1, %rd6;\nst.local.b8 [%rd7], %r1;\nst.local.b32 [m], %r1;\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (16,0,0), 1 byte at 0x10 "
     "of local memory, at the start of m (16 bytes at 0x10); from l (16 bytes at 0x0); 32 times"},
    {HEADER BEGIN "ld.param.b32 %r2, [in+8];\n" END,
     "an access beyond the variable that its address comes from in k, block (0,0,0), thread (0,0,0), 4 bytes at 0x8 of "
     "the parameters, at the start of out (8 bytes at 0x8); from in (8 bytes at 0x0); 64 times"},
    {HEADER ".global .align 4 .b8 g[16];\n" BEGIN
            "mov.u64 %rd6, g;\nsub.u64 %rd7, %rd4, %rd6;\nadd.u64 %rd7, %rd6, %rd7;\nld.global.b32 %r2, [%rd7];\n" END,
     "nothing"},
    {HEADER ".global .align 4 .b8 g[16];\n.const .align 4 .b8 c[16];\n" BEGIN
            "ld.global.b32 %r2, [g+12];\nld.const.b32 %r2, [c+12];\nmov.u64 %rd6, g;\nand.b64 %rd6, %rd6, "
            "-8;\nld.global.b32 %r2, [%rd6+12];\n" END,
     "nothing"},
};

START_TEST(lands_beyond) {
  run(beyond[_i].ptx, KILN_SIM_CHECK_MEMORY);
  if (getenv("SHOW")) printf("# %s\n", first_text());
  EXPECT(strcmp(first_text(), beyond[_i].text) == 0, "expected %s\nfound    %s\n%s", beyond[_i].text, first_text(),
         beyond[_i].ptx);
}
END_TEST

// The same in fields of its own: a loop of calls reaches behind an allocation.
START_TEST(fields) {
  run(HEADER ".file 1 \"a.cu\"\n.func f(.param .b64 p, .param .b32 n) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n.reg "
             ".pred %p;\nld.param.b64 %rd1, [p]; ld.param.b32 %r1, [n];\nsetp.eq.u32 %p, %r1, 0; @%p bra E;\nsub.u32 "
             "%r1, %r1, 1;\n{ .param .b64 q; .param .b32 m; st.param.b64 [q], %rd1; st.param.b32 [m], %r1;\n.loc 1 5 "
             "2\ncall.uni f, (q, m); }\nret;\nE:\n.loc 1 7 2\nst.b32 [%rd1+260], %r1;\nret;\n}\n" BEGIN
             "{ .param .b64 q; .param .b32 m; st.param.b64 [q], %rd4; st.param.b32 [m], 3;\n.loc 1 9 1\ncall.uni f, "
             "(q, m); }\n" END,
      KILN_SIM_CHECK_MEMORY);
  kiln_sim_finding f = {.struct_size = sizeof f};
  ck_assert_int_eq(kiln_simulator_finding(cx, s, 0, &f), KILN_OK);
  ck_assert_str_eq(f.kernel, "k");
  ck_assert_str_eq(f.function, "f");
  ck_assert_str_eq(f.source, "a.cu:7");
  ck_assert_str_eq(f.space, "global");
  ck_assert_str_eq(f.place, "what out points to (256 bytes at 0x10000100200)");
  ck_assert(f.place_offset == 260 && f.place_bytes == 256 && f.address == out + 260 && f.bytes == 4);
  ck_assert(f.line == 18 && f.source_line == 7 && f.call_count == 2);
  ck_assert_str_eq(f.calls[0].function, "f");
  ck_assert(f.calls[0].line == 14 && f.calls[0].source_line == 5 && f.calls[0].times == 3);
  ck_assert_str_eq(f.calls[1].function, "k");
  ck_assert(f.calls[1].line == 31 && f.calls[1].source_line == 9 && f.calls[1].times == 1);
}
END_TEST

int main(void) {
  return RUN_TESTS("findings", EACH(make, drop), {says, KL_COUNT(rows)}, {lands_beyond, KL_COUNT(beyond)},
                   {comes_from, KL_COUNT(origins)}, {fields});
}

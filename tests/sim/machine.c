// The machine: what ends a launch and how that is told, what lanes do that part and wait for each other, what a launch
// may be. Kernels are rows of PTX; each writes a word for every thread to its parameter.

#include "sim/machine/observe.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>

enum { WORDS = 4096 };

typedef struct outcome {
  kiln_status status;
  kl_fault fault;
  char message[1024];
  uint32_t words[WORDS];
} outcome;

#define HEADER ".version 7.8\n.target sm_90\n.address_size 64\n"
// A kernel whose %rd1 is its thread's word, %r1 its number in the grid, %r2 in the block.
#define BEGIN                                                                                                          \
  ".visible .entry k(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"   \
  "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r1, %r3, %r4, %r2;\n"              \
  "ld.param.u64 %rd2, [p];\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd1, %rd2, %rd3;\n"
#define END "ret;\n}\n"

static void run_with(const char *ptx, kl_launch l, outcome *out) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  uint64_t address = 0;
  memset(out, 0, sizeof *out);
  kl_memory_init(&m, cx, UINT64_MAX);
  ck_assert_int_eq(kl_memory_alloc(&m, sizeof out->words, KL_REGION_USER, KL_STR("words"), &address), KILN_OK);
  out->status = kl_load(cx, &m, "k.ptx", kl_str_of(ptx), &loaded);
  if (!out->status) out->status = kl_kernel_prepare(cx, loaded, KL_STR("k"), &k);
  if (!out->status) {
    l.kernel = k;
    l.params = &address;
    out->status = kl_launch_run(cx, &m, &l, &out->fault);
  }
  if (kiln_diagnostics_count(cx)) snprintf(out->message, sizeof out->message, "%s", kiln_diagnostics_get(cx, 0)->text);
  memcpy(out->words, kl_memory_at(&m, address, sizeof out->words), sizeof out->words);
  out->fault.func = NULL;
  out->fault.instr = NULL;
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}

static void run(const char *ptx, uint32_t grid, uint32_t block, outcome *out) {
  run_with(ptx, (kl_launch){.grid = {grid, 1, 1}, .block = {block, 1, 1}, .most_branches = 100000}, out);
}

// --- faults -------------------------------------------------------------------------------------------------------

static const struct {
  const char *ptx;
  kl_fault_kind kind;
  uint32_t thread, block;
  const char *message;
} faults[] = {
    {HEADER BEGIN "add.u64 %rd4, %rd1, 16384;\nst.global.u32 [%rd4], %r1;\n" END, KL_FAULT_ADDRESS, 0, 0,
     "no memory behind it in k, block (0,0,0), thread (0,0,0)"},
    {HEADER BEGIN "setp.eq.u32 %p1, %r2, 5;\n@%p1 ld.global.u32 %r5, [%rd2+-4];\n" END, KL_FAULT_ADDRESS, 5, 0,
     "thread (5,0,0)"},
    {HEADER BEGIN "st.u32 [64], %r1;\n" END, KL_FAULT_ADDRESS, 0, 0, "4 bytes at 0x40, which belongs to no space"},
    {HEADER BEGIN "add.u64 %rd4, %rd1, 2;\nld.global.u32 %r5, [%rd4];\n" END, KL_FAULT_MISALIGNED, 0, 0, "misaligned"},
    {HEADER ".const .align 4 .b8 c[16];\n" BEGIN
            "mov.u64 %rd4, c;\ncvta.const.u64 %rd5, %rd4;\nst.u32 [%rd5], %r1;\n" END,
     KL_FAULT_READ_ONLY, 0, 0, "read-only"},
    {HEADER ".shared .align 4 .b8 s[64];\n" BEGIN
            "mov.u32 %r5, s;\nshl.b32 %r6, %r2, 2;\nadd.u32 %r5, %r5, %r6;\nst.shared.u32 [%r5], %r1;\n" END,
     KL_FAULT_ADDRESS, 16, 0, "thread (16,0,0)"},
    {HEADER ".func f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\n{\n.param .b32 y;\n"
            "st.param.b32 [y], %r1;\ncall.uni f, (y);\n}\nret;\n}\n" BEGIN
            "{\n.param .b32 y;\nst.param.b32 [y], %r1;\ncall.uni f, (y);\n}\n" END,
     KL_FAULT_STACK, 0, 0, "too deep"},
    {HEADER BEGIN "mov.u64 %rd4, 12345;\nproto: .callprototype _ ();\ncall %rd4, (), proto;\n" END, KL_FAULT_TARGET, 0,
     0, "nowhere"},
    {HEADER BEGIN "ts: .branchtargets A, B;\nbrx.idx %r2, ts;\nA:\nB:\n" END, KL_FAULT_TARGET, 2, 0, "nowhere"},
    {HEADER BEGIN "setp.eq.u32 %p1, %r1, 40;\n@%p1 trap;\n" END, KL_FAULT_TRAP, 8, 1, "block (1,0,0), thread (8,0,0)"},
    {HEADER BEGIN "setp.lt.u32 %p1, %r2, 16;\n@%p1 bar.sync 1, 64;\n" END, KL_FAULT_DEADLOCK, 0, 0, "wait"},
    {HEADER BEGIN "setp.lt.u32 %p1, %r2, 16;\n@!%p1 bra L;\nbar.warp.sync 0xffffffff;\nL: bar.sync 0;\n" END,
     KL_FAULT_DEADLOCK, 0, 0, "wait"},
    {HEADER BEGIN "bar.sync 16;\n" END, KL_FAULT_BARRIER, 0, 0, "barrier"},
    {HEADER BEGIN "ld.local.u32 %r5, [64];\n" END, KL_FAULT_ADDRESS, 0, 0, "4 bytes at 0x40 of local memory"},
    {HEADER BEGIN "ld.u32 %r5, [0x200000040];\n" END, KL_FAULT_ADDRESS, 0, 0,
     "4 bytes at 0x40 of local memory (generic 0x200000040)"},
    {HEADER BEGIN "ld.u32 %r5, [0x300000008];\n" END, KL_FAULT_ADDRESS, 0, 0,
     "4 bytes at 0x8 of the parameters (generic 0x300000008), right behind the end of p (8 bytes at 0x0)"},
    {HEADER BEGIN "add.u64 %rd4, %rd2, 20000;\nld.u32 %r5, [%rd4];\n" END, KL_FAULT_ADDRESS, 0, 0,
     "3616 bytes behind the end of words (16384 bytes at 0x10000000000)"},
    {HEADER BEGIN "ld.u64 %rd5, [%rd2+16380];\n" END, KL_FAULT_ADDRESS, 0, 0,
     "8 bytes at 0x10000003ffc, of which 4 lie behind the end of words (16384 bytes"},
    {HEADER BEGIN "mov.u64 %rd4, 0x40000000;\nalloca.u64 %rd5, %rd4;\n" END, KL_FAULT_STACK, 0, 0, "too deep"},
    {HEADER BEGIN "L: bra L;\n" END, KL_FAULT_TIME, 0, 0, "branches"},
};

START_TEST(ends_with_a_fault) {
  outcome o;
  run(faults[_i].ptx, 2, 32, &o);
  ck_assert_int_eq(o.status, KILN_E_DEVICE);
  ck_assert_int_eq(o.fault.kind, faults[_i].kind);
  ck_assert_uint_eq(o.fault.block[0], faults[_i].block);
  ck_assert_uint_eq(o.fault.thread[0], faults[_i].thread);
  ck_assert_msg(strstr(o.message, faults[_i].message) != NULL, "expected '%s' in: %s", faults[_i].message, o.message);
  ck_assert_msg(strstr(o.message, "k.ptx:") != NULL, "no place in: %s", o.message);
}
END_TEST

// --- what cannot be decoded ---------------------------------------------------------------------------------------

static const struct {
  const char *ptx;
  kiln_status status;
  const char *message;
} refusals[] = {
    {HEADER BEGIN "frobnicate.u32 %r1, %r2;\n" END, KILN_E_UNSUPPORTED, "instruction is not simulated: frobnicate.u32"},
    {HEADER BEGIN "add.u99 %r1, %r2, %r3;\n" END, KILN_E_UNSUPPORTED, "form of the instruction"},
    {HEADER BEGIN "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1,%rd2}, {%rd3}, {%rd4}, {%rd5,%rd6};\n" END,
     KILN_E_UNSUPPORTED, "mma is not simulated, it belongs to tensor cores: mma.sync"},
    {HEADER BEGIN "add.u32 %r1, %r2, %rd3;\n" END, KILN_E_INVALID, "%rd3 has 64 bits, where 32 are expected"},
    {HEADER BEGIN "add.u32 %r1, %r2;\n" END, KILN_E_INVALID, "expected more operands"},
    {HEADER BEGIN "add.u32 %r1, %r2, %r3, %r4;\n" END, KILN_E_INVALID, "expected 3 operands, found 4"},
    {HEADER BEGIN "ld.global.u64 %r1, [%rd1];\n" END, KILN_E_INVALID, "cannot hold 64 bits"},
    {HEADER BEGIN "@%r1 bra L;\nL:\n" END, KILN_E_INVALID, "type .pred"},
    {HEADER BEGIN "st.param.u32 [p], %r1;\n" END, KILN_E_INVALID, "cannot be written"},
    {HEADER BEGIN "add.u32 %r1, %r2.b0, %r3;\n" END, KILN_E_UNSUPPORTED, "parts of registers"},
    {HEADER BEGIN "alloca.u64 %rd4, %rd5, 24;\n" END, KILN_E_INVALID, "a power of two"},
    {HEADER BEGIN ".local .align 4 .b8 l[600000];\n" END, KILN_E_UNSUPPORTED, "does not fit a thread's stack"},
    {HEADER BEGIN ".local .align 4 .b8 a[4];\n.local .align 1048576 .b8 l[4];\n" END, KILN_E_UNSUPPORTED,
     "do not fit a thread's stack"},
    {HEADER BEGIN ".shared .align 4 .b8 s[4294967312];\n" END, KILN_E_UNSUPPORTED, "s does not fit"},
    {HEADER ".visible .entry k(.param .align 4 .b8 p[40000]) {\nret;\n}\n", KILN_E_UNSUPPORTED, "p does not fit"},
    {HEADER ".func f(.param .b64 x) {\nret;\n}\n" BEGIN "{\n.param .b32 y;\ncall.uni f, (y);\n}\n" END, KILN_E_INVALID,
     "y has 4 bytes, where the function has 8"},
    {HEADER ".func f(.param .b8 x[]) {\nret;\n}\n" BEGIN "call.uni f, (%r1);\n" END, KILN_E_INVALID,
     "x takes a variable in .param"},
    {HEADER ".func f(.param .b8 x[]) {\nret;\n}\n" BEGIN "{\n.param .b8 y[600000];\ncall.uni f, (y);\n}\n" END,
     KILN_E_UNSUPPORTED, "does not fit a thread's stack"},
    {HEADER ".func f(.param .b64 x) {\nret;\n}\n" BEGIN "call.uni f, (p);\n" END, KILN_E_UNSUPPORTED,
     "p is no register, number or variable in .param"},
    {HEADER ".func (.reg .pred b) f() {\nret;\n}\n" BEGIN "call (%p1), f, ();\n" END, KILN_E_UNSUPPORTED,
     "b is a predicate"},
    {HEADER ".func f(.reg .pred b) {\nret;\n}\n" BEGIN "call f, (%p1);\n" END, KILN_E_UNSUPPORTED, "b is a predicate"},
    {HEADER ".extern .func g;\n" BEGIN "call g;\n" END, KILN_E_UNSUPPORTED, "declared, but not defined"},
};

START_TEST(is_refused) {
  outcome o;
  run(refusals[_i].ptx, 1, 32, &o);
  ck_assert_msg(o.status == refusals[_i].status, "status %d: %s", o.status, o.message);
  ck_assert_msg(strstr(o.message, refusals[_i].message) != NULL, "expected '%s' in: %s", refusals[_i].message,
                o.message);
}
END_TEST

// --- launches that cannot be --------------------------------------------------------------------------------------

static const struct {
  uint32_t grid[3], block[3], cluster[3], shared;
  const char *message;
} launches[] = {
    {{0, 1, 1}, {32, 1, 1}, {0}, 0, "cannot be launched"},      {{1, 1, 1}, {0, 1, 1}, {0}, 0, "cannot be launched"},
    {{1, 65536, 1}, {32, 1, 1}, {0}, 0, "cannot be launched"},  {{1, 1, 1}, {32, 32, 2}, {0}, 0, "2048 threads"},
    {{1, 1, 1}, {1, 1, 65}, {0}, 0, "cannot be launched"},      {{3, 1, 1}, {32, 1, 1}, {2, 1, 1}, 0, "do not divide"},
    {{32, 1, 1}, {32, 1, 1}, {32, 1, 1}, 0, "the most are 16"}, {{1, 1, 1}, {32, 1, 1}, {0}, 300000, "shared memory"},
};

START_TEST(cannot_be_launched) {
  outcome o;
  kl_launch l = {.dynamic_shared = launches[_i].shared};
  memcpy(l.grid, launches[_i].grid, sizeof l.grid);
  memcpy(l.block, launches[_i].block, sizeof l.block);
  memcpy(l.cluster, launches[_i].cluster, sizeof l.cluster);
  run_with(HEADER BEGIN END, l, &o);
  ck_assert_int_eq(o.status, KILN_E_INVALID);
  ck_assert_msg(strstr(o.message, launches[_i].message) != NULL, "expected '%s' in: %s", launches[_i].message,
                o.message);
}
END_TEST

// --- lanes that part ----------------------------------------------------------------------------------------------

// Each thread goes round its number mod 7 times, in a loop of its own length, with a branch of its own inside.
static const char *const loops = HEADER BEGIN
    "mov.u32 %r5, 0;\nrem.u32 %r6, %r1, 7;\nmov.u32 %r7, 0;\n"
    "L: setp.ge.u32 %p1, %r7, %r6;\n@%p1 bra E;\nand.b32 %r8, %r7, 1;\nsetp.eq.u32 %p2, %r8, 0;\n@%p2 bra O;\n"
    "add.u32 %r5, %r5, 100;\nbra N;\nO: add.u32 %r5, %r5, %r1;\nN: add.u32 %r7, %r7, 1;\nbra L;\n"
    "E: activemask.b32 %r9;\nst.global.u32 [%rd1], %r5;\n" END;

static uint32_t loops_of(uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t k = 0; k < n % 7; k++) sum += k % 2 ? 100 : n;
  return sum;
}

START_TEST(lanes_part_and_join) {
  outcome o;
  static const uint32_t blocks[] = {1, 31, 32, 33, 100, 1024};
  uint32_t block = blocks[_i];
  run(loops, 3, block, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 3 * block; n++) EXPECT(o.words[n] == loops_of(n), "thread %u: %u", n, o.words[n]);
  for (uint32_t n = 3 * block; n < WORDS; n++) EXPECT(o.words[n] == 0, "word %u was written", n);
}
END_TEST

// Lanes that went two ways are together again behind.
START_TEST(lanes_are_together_behind_a_branch) {
  outcome o;
  run(HEADER BEGIN "and.b32 %r5, %r2, 3;\nsetp.eq.u32 %p1, %r5, 1;\n@%p1 bra A;\nadd.u32 %r6, %r2, 1;\nbra B;\n"
                   "A: add.u32 %r6, %r2, 2;\nB: activemask.b32 %r7;\nst.global.u32 [%rd1], %r7;\n" END,
      1, 48, &o);
  for (uint32_t n = 0; n < 48; n++) ck_assert_uint_eq(o.words[n], n < 32 ? 0xffffffff : 0xffff);
}
END_TEST

// However long they went round together before.
START_TEST(lanes_are_together_behind_a_loop) {
  outcome o;
  run(HEADER BEGIN "mov.u32 %r5, 0;\nOUTER: mov.u32 %r6, 0;\nsetp.ge.u32 %p1, %r2, 9;\n@%p1 bra BEHIND;\n"
                   "INNER: add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 32;\n@%p2 bra INNER;\n"
                   "BEHIND: activemask.b32 %r7;\nst.global.u32 [%rd1], %r7;\nsetp.ne.u32 %p3, %r7, 0xffffffff;\n"
                   "@%p3 bra DONE;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, 100;\n@%p3 bra OUTER;\nDONE:\n" END,
      1, 32, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 32; n++) ck_assert_uint_eq(o.words[n], 0xffffffff);
}
END_TEST

// Lanes that part and join in each round of waiting for another one, of their warp or not, give way to it.
START_TEST(lanes_that_part_each_round_give_way) {
  outcome o;
  char ptx[2048];
  snprintf(ptx, sizeof ptx, "%s%d%s%s", HEADER BEGIN "add.u64 %rd5, %rd2, 8000;\nsetp.eq.u32 %p1, %r2, ", _i ? 40 : 3,
           ";\n@%p1 bra LAST;\n"
           "ROUND: and.b32 %r6, %r2, 1;\nsetp.eq.u32 %p2, %r6, 0;\n@%p2 bra EVEN;\nadd.u32 %r6, %r6, 2;\n"
           "EVEN: ld.volatile.global.u32 %r7, [%rd5];\nsetp.eq.u32 %p3, %r7, 0;\n@%p3 bra ROUND;\nbra OUT;\n"
           "LAST: mov.u32 %r7, 7;\nst.volatile.global.u32 [%rd5], %r7;\nOUT: st.global.u32 [%rd1], %r7;\n",
           END);
  run(ptx, 1, 64, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 64; n++) ck_assert_uint_eq(o.words[n], 7);
  // Nobody comes: rounds are counted all the same.
  static const char alone[] = HEADER BEGIN "ROUND: and.b32 %r6, %r2, 1;\nsetp.eq.u32 %p2, %r6, 0;\n@%p2 bra EVEN;\n"
                                           "add.u32 %r6, %r6, 2;\nEVEN: bra ROUND;\n" END;
  run(alone, 1, 32, &o);
  ck_assert(o.status != KILN_OK && o.fault.kind == KL_FAULT_TIME);
}
END_TEST

// A lane waits at an instruction for one that comes there from another place and by another way.
START_TEST(lanes_meet_in_different_places) {
  outcome o;
  run(HEADER BEGIN "setp.lt.u32 %p1, %r2, 9;\n@%p1 bra A;\nshfl.sync.idx.b32 %r5, %r2, 3, 31, 0xffffffff;\nbra B;\n"
                   "A: add.u32 %r6, %r2, 1000;\nshfl.sync.idx.b32 %r5, %r6, 3, 31, 0xffffffff;\n"
                   "B: st.global.u32 [%rd1], %r5;\n" END,
      1, 32, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 32; n++) ck_assert_uint_eq(o.words[n], 1003);
}
END_TEST

// Lanes that exit are not waited for, at a barrier, in a warp or in a vote.
START_TEST(nobody_waits_for_who_has_gone) {
  outcome o;
  run(HEADER BEGIN
      "setp.gt.u32 %p1, %r2, 69;\n@%p1 exit;\nbar.sync 0;\nbar.warp.sync 0xffffffff;\n"
      "setp.gt.u32 %p2, %r2, 65;\nvote.sync.ballot.b32 %r5, %p2, 0xffffffff;\nst.global.u32 [%rd1], %r5;\n" END,
      1, 128, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 128; n++) ck_assert_uint_eq(o.words[n], n < 64 || n > 69 ? 0 : 0x3c);
}
END_TEST

// --- memory of blocks and threads ---------------------------------------------------------------------------------

// What has no size lies where the dynamic part begins, behind all that has one.
START_TEST(dynamic_memory_lies_behind_the_rest) {
  outcome o;
  run_with(HEADER ".shared .align 4 .b8 s[20];\n.extern .shared .align 16 .b8 t[];\n"
                  ".extern .shared .align 8 .b8 u[];\n" BEGIN
                  ".shared .align 4 .b8 v[4];\nmov.u32 %r5, v;\nmov.u32 %r6, t;\nmov.u32 %r7, u;\n"
                  "mad.lo.u32 %r8, %r6, 1000, %r7;\nmad.lo.u32 %r8, %r8, 1000, %r5;\nst.global.u32 [%rd1], %r8;\n" END,
           (kl_launch){.grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamic_shared = 64}, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  ck_assert_uint_eq(o.words[0], 16016000); // s is not used
}
END_TEST

// Every lane has room of its own from alloca, between other calls as well.
// Arguments and results of calls that are registers and numbers, of functions whose parameters are either; through a
// recursion, a loop at the function's begin, a guard, and an address.
#define VALUES                                                                                                         \
  ".func (.reg .u32 sum, .reg .u16 low) add (.reg .u32 a, .reg .u64 b, .reg .b8 c) {\n.reg .u32 t;\nadd.u32 a, a, "    \
  "0;\n"                                                                                                               \
  "cvt.u32.u64 t, b;\nadd.u32 sum, a, t;\ncvt.u32.u8 t, c;\nadd.u32 sum, sum, t;\ncvt.u16.u32 low, sum;\nret;\n}\n"    \
  ".func (.reg .u32 r) sum_to (.reg .u32 n) {\n.reg .pred p;\n.reg .u32 t, m;\nmov.u32 r, 0;\nsetp.eq.u32 p, n, 0;\n"  \
  "@p ret;\nsub.u32 m, n, 1;\ncall (t), sum_to, (m);\nadd.u32 r, t, n;\n}\n"                                           \
  ".func (.param .u32 r) twice (.param .u32 a) {\n.reg .u32 t;\nld.param.u32 t, [a];\nadd.u32 t, t, t;\n"              \
  "st.param.u32 [r], t;\nret;\n}\n"                                                                                    \
  ".func (.reg .u32 r) shift (.reg .u32 a, .reg .u32 n) {\nagain:\nadd.u32 a, a, a;\nsub.u32 n, n, 1;\n.reg .pred "    \
  "p;\n"                                                                                                               \
  "setp.ne.u32 p, n, 0;\n@p bra again;\nmov.u32 r, a;\nret;\n}\n"                                                      \
  ".func (.reg .u32 r) ends (.reg .u32 n, .param .align 8 .b8 v[]) {\n.reg .pred p;\n.reg .u32 t;\n.local .u32 "       \
  "l[8];\n"                                                                                                            \
  "st.local.u32 [l], 1;\nld.param.u32 r, [v];\nsetp.eq.u32 p, n, 1;\n@p ret;\nld.param.u32 t, [v+20];\n"               \
  "add.u32 r, r, t;\nld.local.u32 t, [l];\nadd.u32 r, r, t;\nret;\n}\n"

START_TEST(values_of_calls) {
  static const struct {
    const char *body;
    uint32_t first, each; // what thread n writes: first + each * n
  } rows[] = {
      {"mov.u64 %rd5, 100;\ncvt.u16.u32 %h1, 7;\ncall (%r5, %h2), add, (%r1, %rd5, %h1);\n", 107, 1},
      {"mov.u64 %rd5, 100;\ncall (%r6, %h2), add, (3, %rd5, 1);\ncvt.u32.u16 %r5, %h2;\n", 104, 0},
      {"call (%r5), sum_to, (100);\n", 5050, 0},
      {"call (%r5), twice, (%r1);\ncall (%r5), twice, (%r5);\n", 0, 4},
      {"mov.u32 %r5, 5;\nsetp.gt.u32 %p1, %r1, 1000;\n@%p1 call (%r5), twice, (21);\n", 5, 0},
      {"call (%r5), shift, (%r1, 3);\n", 0, 8},
      {"mov.u64 %rd5, shift;\nT: .calltargets shift;\ncall (%r5), %rd5, (%r1, 2), T;\n", 0, 4},
      {"mov.u64 %rd5, twice;\nP: .callprototype (.param .u32 _) _ (.param .u32 _);\ncall (%r5), %rd5, (%r1), P;\n", 0,
       2},
      {"{\n.param .u32 x;\nst.param.u32 [x], %r1;\ncall (%r5), shift, (x, 1);\n}\n", 0, 2},
      // an array that is as long as the caller's
      {"{\n.param .align 8 .b8 x[4];\nst.param.u32 [x], %r1;\ncall (%r5), ends, (1, x);\n}\n", 0, 1},
      {"{\n.param .align 8 .b8 x[24];\nst.param.u32 [x], %r1;\nst.param.u32 [x+20], 40;\ncall (%r5), ends, (6, x);\n"
       ".param .align 8 .b8 y[4];\nst.param.u32 [y], %r5;\ncall (%r5), ends, (1, y);\n}\n",
       41, 1},
      {"{\n.param .align 8 .b8 x[24];\nst.param.u32 [x], %r1;\nst.param.u32 [x+20], %r1;\nmov.u64 %rd5, ends;\n"
       "P: .callprototype (.reg .u32 _) _ (.reg .u32 _, .param .align 8 .b8 _[]);\ncall (%r5), %rd5, (6, x), P;\n}\n",
       1, 2},
  };
  for (size_t k = 0; k < KL_COUNT(rows); k++) {
    char text[4096];
    outcome out;
    snprintf(text, sizeof text, "%s%sst.global.u32 [%%rd1], %%r5;\n%s", HEADER VALUES BEGIN, rows[k].body, END);
    run_with(text, (kl_launch){.grid = {2, 1, 1}, .block = {48, 1, 1}}, &out);
    EXPECT(out.status == KILN_OK, "%s: %s", rows[k].body, out.message);
    for (uint32_t n = 0; n < 96; n++)
      EXPECT(out.words[n] == rows[k].first + rows[k].each * n, "%s: thread %u writes %u", rows[k].body, n,
             out.words[n]);
  }
}
END_TEST

START_TEST(room_on_the_stack) {
  outcome o;
  run(HEADER BEGIN "mov.u64 %rd4, 8;\nalloca.u64 %rd5, %rd4, 16;\nalloca.u64 %rd6, %rd4;\n"
                   "st.local.u32 [%rd5], %r1;\nadd.u32 %r5, %r1, 7;\nst.local.u32 [%rd6], %r5;\n"
                   "ld.local.u32 %r6, [%rd5];\nld.local.u32 %r7, [%rd6];\nadd.u32 %r6, %r6, %r7;\n"
                   "st.global.u32 [%rd1], %r6;\n" END,
      2, 40, &o);
  ck_assert_msg(o.status == KILN_OK, "%s", o.message);
  for (uint32_t n = 0; n < 80; n++) ck_assert_uint_eq(o.words[n], 2 * n + 7);
}
END_TEST

// Findings from before, more than a context keeps, do not end the decoding of a kernel.
START_TEST(prints_nothing_and_says_so) {
  outcome out;
  run(HEADER
      ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 values);\n"
      ".global .align 1 .b8 text[4] = {37, 100, 10, 0};\n" BEGIN
      "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\nmov.u64 %rd4, text;\ncvta.global.u64 %rd4, %rd4;\n"
      "st.param.b64 [a], %rd4;\nst.param.b64 [b], 0;\ncall.uni (c), vprintf, (a, b);\nld.param.b32 %r5, [c];\n}\n"
      "st.global.u32 [%rd1], %r1;\n" END,
      2, 40, &out);
  ck_assert_int_eq(out.status, KILN_OK);
  EXPECT(strstr(out.message, "warning: vprintf prints nothing here") && strstr(out.message, "k.ptx:26:"), "%s",
         out.message);
  for (uint32_t i = 0; i < 80; i++) ck_assert_uint_eq(out.words[i], i);
}
END_TEST

START_TEST(findings_from_before_do_not_matter) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  uint64_t address = 0;
  for (int i = 0; i < 5000; i++) kl_warn(cx, KL_NOWHERE, "number %d", i);
  ck_assert_uint_gt(cx->dropped, 0);
  kl_memory_init(&m, cx, UINT64_MAX);
  ck_assert_int_eq(kl_memory_alloc(&m, 128, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  ck_assert_int_eq(kl_load(cx, &m, "k", kl_str_of(HEADER BEGIN "st.global.u32 [%rd1], 5;\n" END), &loaded), KILN_OK);
  ck_assert_int_eq(kl_kernel_prepare(cx, loaded, KL_STR("k"), &k), KILN_OK);
  kl_launch l = {.kernel = k, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &address};
  ck_assert_int_eq(kl_launch_run(cx, &m, &l, &fault), KILN_OK);
  ck_assert_int_eq(*kl_memory_at(&m, address, 4), 5);
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// What was freed is remembered for a while, so that a late use is told, but not for ever.
START_TEST(freed_memory_is_forgotten_at_last) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  uint64_t kept = 0, last = 0;
  kl_memory_init(&m, cx, UINT64_MAX);
  ck_assert_int_eq(kl_memory_alloc(&m, 100, KL_REGION_USER, KL_STR(""), &kept), KILN_OK);
  for (int i = 0; i < 20000; i++) {
    ck_assert_int_eq(kl_memory_alloc(&m, 100, KL_REGION_USER, KL_STR(""), &last), KILN_OK);
    ck_assert(kl_memory_release(&m, last));
    ck_assert(!kl_memory_release(&m, last));
  }
  ck_assert_uint_lt(m.regions.n, 5000);
  ck_assert(kl_memory_find(&m, last)->freed);
  ck_assert(kl_memory_at(&m, last, 1) == NULL);
  ck_assert(kl_memory_at(&m, kept, 100) != NULL);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// The caller's allocator is called on the caller's thread alone.
static pthread_t owner;
static bool strayed;
static void *noting(void *user, void *p, size_t old_size, size_t size) {
  (void)user, (void)old_size;
  if (!pthread_equal(pthread_self(), owner)) strayed = true;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

START_TEST(workers_leave_the_allocator_alone) {
  kiln_context_params params = {.struct_size = sizeof params, .allocator = {.resize = noting}};
  owner = pthread_self();
  kiln_context *cx = kiln_context_create(&params);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  uint64_t address = 0;
  kl_memory_init(&m, cx, UINT64_MAX);
  ck_assert_int_eq(kl_memory_alloc(&m, sizeof(uint32_t) * WORDS, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  ck_assert_int_eq(kl_load(cx, &m, "k", kl_str_of(loops), &loaded), KILN_OK);
  ck_assert_int_eq(kl_kernel_prepare(cx, loaded, KL_STR("k"), &k), KILN_OK);
  kl_launch l = {.kernel = k, .grid = {32, 1, 1}, .block = {128, 1, 1}, .params = &address, .workers = 4};
  ck_assert_int_eq(kl_launch_run(cx, &m, &l, &fault), KILN_OK);
  ck_assert(!strayed);
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- the same every time ------------------------------------------------------------------------------------------

START_TEST(is_the_same_on_any_number_of_workers) {
  static const char *const kernels[] = {
      NULL, // loops
      HEADER BEGIN "atom.global.add.u32 %r5, [%rd2+8192], 1;\nst.global.u32 [%rd1], %r5;\n" END,
  };
  outcome one, many;
  const char *ptx = kernels[_i] ? kernels[_i] : loops;
  kl_launch l = {.grid = {16, 1, 1}, .block = {128, 1, 1}, .workers = 1};
  run_with(ptx, l, &one);
  ck_assert_msg(one.status == KILN_OK, "%s", one.message);
  for (l.workers = 2; l.workers < 6; l.workers++) {
    run_with(ptx, l, &many);
    ck_assert_mem_eq(one.words, many.words, sizeof one.words);
  }
}
END_TEST

// Another order of lanes, warps and blocks: what depends on none comes out alike, what does shows.
START_TEST(order_is_shuffled) {
  outcome straight, other;
  kl_launch l = {.grid = {15, 1, 1}, .block = {100, 1, 1}};
  static const char *const tickets =
      HEADER BEGIN "atom.global.add.u32 %r5, [%rd2+16380], 1;\nst.global.u32 [%rd1], %r5;\n" END;
  run_with(loops, l, &straight);
  for (l.shuffle = 1; l.shuffle < 9; l.shuffle++) {
    run_with(loops, l, &other);
    ck_assert_msg(other.status == KILN_OK, "%s", other.message);
    ck_assert_mem_eq(straight.words, other.words, sizeof other.words);
  }
  l.shuffle = 0;
  run_with(tickets, l, &straight);
  for (uint32_t n = 0; n < 1500; n++) ck_assert_uint_eq(straight.words[n], n);
  l.shuffle = 12345;
  run_with(tickets, l, &other);
  uint32_t moved = 0, seen[1500] = {0};
  for (uint32_t n = 0; n < 1500; n++) {
    ck_assert_uint_lt(other.words[n], 1500);
    seen[other.words[n]]++;
    moved += other.words[n] != n;
  }
  for (uint32_t n = 0; n < 1500; n++) ck_assert_uint_eq(seen[n], 1);
  ck_assert_uint_gt(moved, 1000);
  moved = 0;
  run_with(tickets, (kl_launch){.grid = {100, 1, 1}, .block = {1, 1, 1}, .shuffle = 12345}, &other); // blocks alone
  for (uint32_t n = 0; n < 100; n++) moved += other.words[n] != n;
  ck_assert_uint_gt(moved, 50);
}
END_TEST

// Of a sample of blocks each runs once, and sees the whole grid; one that reaches out of it is refused.
static const struct {
  kl_sample sample;
  uint32_t cluster, ran; // a bit for each of 8 blocks
} samples[] = {
    {{0}, 0, 0xff},
    {{0, 8, 1, 1}, 0, 0xff},
    {{1, 3, 2, 1}, 0, 0x2a},
    {{7, 1, 1, 1}, 0, 0x80},
    {{1, 2, 2, 1}, 2, 0xcc},
    {{6, 1, 99, 1}, 0, 0x40},
    {{0, 4, 4, 2}, 0, 0x33},
    {{1, 5, 3, 2}, 0, 0xb6},
    {{0, 3, 2, 2}, 2, 0x3f},
    {{2, 6, 6, 6}, 0, 0xfc},
    {{0, 9, 1, 1}, 0, 0},
    {{8, 1, 1, 1}, 0, 0},
    {{1, 3, 0, 1}, 0, 0},
    {{1, 3, 2, 0}, 0, 0},
    {{0, 5, 1, 1}, 2, 0},
    {{1, 2, UINT64_MAX, 1}, 0, 0},
    {{1, UINT64_MAX, 1, 1}, 0, 0},
    {{1, 6, 3, 2}, 0, 0},
    {{0, 4, 2, 3}, 0, 0},
    {{2, 7, 8, 8}, 0, 0},
    {{0, UINT64_MAX, UINT64_MAX, UINT64_MAX}, 0, 0},
};

START_TEST(a_sample_of_blocks) {
  static const char *const ptx = HEADER BEGIN "mov.u32 %r5, %nctaid.x;\natom.global.add.u32 %r6, [%rd1], %r5;\n" END;
  outcome o;
  for (uint64_t shuffle = 0; shuffle < 3; shuffle++) {
    kl_launch l = {.grid = {8, 1, 1}, .block = {32, 1, 1}, .sample = samples[_i].sample, .shuffle = shuffle};
    l.cluster[0] = samples[_i].cluster;
    if (l.cluster[0]) l.cluster[1] = l.cluster[2] = 1;
    run_with(ptx, l, &o);
    ck_assert_int_eq(o.status, samples[_i].ran ? KILN_OK : KILN_E_INVALID);
    if (!samples[_i].ran) ck_assert_msg(strstr(o.message, "expected a sample within the") != NULL, "%s", o.message);
    for (uint32_t n = 0; n < 256; n++) ck_assert_uint_eq(o.words[n], samples[_i].ran >> n / 32 & 1 ? 8 : 0);
  }
}
END_TEST

// Observers are told of all that happens, once each.
typedef struct watcher {
  kl_observer o; // first
  uint64_t begun, ended, steps, lanes, stored, arrived, opened, waiting, met, calls, returns, faults, idle;
} watcher;

static void on_begin(kl_observer *o, kl_block *b) {
  ((watcher *)o)->begun += b->number + 1;
}
static void on_end(kl_observer *o, kl_block *b) {
  ((watcher *)o)->ended += b->number + 1;
}
static void on_step(kl_observer *o, kl_warp *w, const kl_sim_op *op) {
  const kl_form *f = w->strand.frame->code->forms[kl_op_number(w, op)];
  ((watcher *)o)->idle += f && strncmp(f->pattern, "prefetch", 8) == 0;
  if (!f || strncmp(f->pattern, "add", 3) != 0) return; // not the ops of the guard
  ((watcher *)o)->steps++;
  ((watcher *)o)->lanes += (uint32_t)__builtin_popcount(w->x.mask);
}
static void on_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  (void)op;
  for (unsigned i = 0; i < KL_LANES; i++)
    if (m->store && m->where == KL_AT_GLOBAL && w->x.mask >> i & 1) ((watcher *)o)->stored += p->address[i] & 0xffff;
}
static void on_arrive(kl_observer *o, kl_warp *w, const kl_sim_op *op, unsigned barrier, uint32_t expected,
                      uint32_t lanes) {
  (void)w, (void)op;
  ((watcher *)o)->arrived += barrier * (expected + (uint32_t)__builtin_popcount(lanes));
}
static void on_open(kl_observer *o, kl_block *b, unsigned barrier) {
  ((watcher *)o)->opened += barrier;
  for (uint32_t k = 0; k < b->nwarps; k++)
    ((watcher *)o)->waiting += (uint32_t)__builtin_popcount(b->warps[k].arrived[barrier]);
}
static void on_meet(kl_observer *o, const kl_party *p) {
  ((watcher *)o)->met += (uint32_t)__builtin_popcount(p->mask);
}
static void on_call(kl_observer *o, kl_warp *w, const kl_frame *f, uint32_t lanes) {
  ck_assert_ptr_eq(f->caller, w->strand.frame);
  ((watcher *)o)->calls += (uint32_t)__builtin_popcount(lanes);
}
static void on_return(kl_observer *o, kl_warp *w, const kl_frame *f, uint32_t lanes) {
  ck_assert_ptr_eq(f, w->strand.frame);
  ((watcher *)o)->returns += (uint32_t)__builtin_popcount(lanes);
}
static void on_fault(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_fault *f) {
  (void)w, (void)op;
  ((watcher *)o)->faults += f->kind;
}

START_TEST(observers_see_all) {
  outcome out;
  watcher a = {{.begin = on_begin,
                .end = on_end,
                .step = on_step,
                .access = on_access,
                .call = on_call,
                .ret = on_return,
                .meet = on_meet,
                .arrive = on_arrive,
                .open = on_open,
                .fault = on_fault},
               .begun = 0},
          b = {{.step = on_step}, .begun = 0};
  kl_observer *both[] = {&a.o, &b.o};
  kl_launch l = {.grid = {3, 1, 1}, .block = {48, 1, 1}, .observers = both, .nobservers = 2, .workers = 2};
  run_with(HEADER ".func f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nret;\n}\n" BEGIN
                  "setp.lt.u32 %p1, %r2, 8;\n@%p1 add.u32 %r5, %r1, 1;\nbar.sync 3;\nprefetch.global.L2 "
                  "[%rd1];\nshfl.sync.down.b32 %r6, %r1, 1, 31, "
                  "0xffff;\n"
                  "{\n.param .b32 y;\nst.param.b32 [y], %r1;\ncall.uni f, (y);\n}\nst.global.u32 [%rd1], %r1;\n"
                  "setp.eq.u32 %p2, %r1, 96;\n@%p2 trap;\n" END,
           l, &out);
  ck_assert_int_eq(out.fault.kind, KL_FAULT_TRAP);
  ck_assert_uint_eq(a.begun, 1 + 2 + 3);
  ck_assert_uint_eq(a.ended, 1 + 2 + 3);
  ck_assert_uint_eq(a.lanes, 3 * (48 + 8));
  ck_assert_uint_eq(b.lanes, a.lanes);
  ck_assert_uint_eq(b.begun, 0);
  ck_assert_uint_eq(a.stored, 4 * 143 * 144 / 2);
  ck_assert_uint_eq(a.arrived, 3 * 3 * 48);
  ck_assert_uint_eq(a.opened, 3 * 3);
  ck_assert_uint_eq(a.waiting, 3 * 48);
  ck_assert_uint_eq(a.met, 3 * (16 + 16 + 16));
  ck_assert_uint_eq(a.calls, 3 * 48);
  ck_assert_uint_eq(a.returns, 3 * 48);
  ck_assert_uint_eq(a.faults, KL_FAULT_TRAP);
  ck_assert_uint_eq(a.idle, 3 * 2); // what has no effect here is told as well
}
END_TEST

int main(void) {
  return RUN_TESTS(
      "machine", NO_FRAME, {ends_with_a_fault, (int)KL_COUNT(faults)}, {is_refused, (int)KL_COUNT(refusals)},
      {cannot_be_launched, (int)KL_COUNT(launches)}, {lanes_part_and_join, 6}, {lanes_are_together_behind_a_branch},
      {lanes_are_together_behind_a_loop}, {lanes_that_part_each_round_give_way, 2}, {lanes_meet_in_different_places},
      {nobody_waits_for_who_has_gone}, {dynamic_memory_lies_behind_the_rest}, {room_on_the_stack}, {values_of_calls},
      {prints_nothing_and_says_so}, {findings_from_before_do_not_matter}, {freed_memory_is_forgotten_at_last},
      {workers_leave_the_allocator_alone}, {is_the_same_on_any_number_of_workers, 2}, {order_is_shuffled},
      {a_sample_of_blocks, (int)KL_COUNT(samples)}, {observers_see_all});
}

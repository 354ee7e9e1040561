// Order: what is found in small kernels, with both lines and both threads; and what is not. Each row runs in several
// orders of lanes, warps and blocks, which must not change which pairs of lines are found.

#include "../stage.h"
#include "sim/check/order.h"
#include "support/suite.h"

#include <stdio.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
// %r1 the thread, %r2 the block, %d1 global memory, %r4 shared memory, %r5 the thread's word of it, %d2 of global
// memory; %pN: is it thread N of its block (0, 1, 32)? %b1: is it in block 1?
#define BEGIN                                                                                                          \
  ".visible .entry k(.param .u64 p) {\n.shared .align 16 .b8 s[8192];\n"                                               \
  ".reg .pred %p<64>, %b<4>, %q<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<40>;\n.reg .b64 %d<20>;\n"                         \
  "ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r4, s;\n"                            \
  "shl.b32 %r6, %r1, 2;\nadd.u32 %r5, %r4, %r6;\nmov.u32 %r7, %ntid.x;\nmad.lo.u32 %r8, %r2, %r7, %r1;\n"              \
  "mul.wide.u32 %d3, %r8, 4;\nadd.u64 %d2, %d1, %d3;\nsetp.eq.u32 %p0, %r1, 0;\nsetp.eq.u32 %p1, %r1, 1;\n"            \
  "setp.eq.u32 %p32, %r1, 32;\nsetp.eq.u32 %b1, %r2, 1;\nsetp.lt.u32 %q1, %r1, 16;\nsetp.lt.u32 %q2, %r1, 32;\n"       \
  "setp.eq.u32 %b2, %r2, 0;\n"
#define END       "ret;\n}\n"
// The thread's word of shared memory is written; that of a thread of the other warp is read, of the lane beside, of the
// same thread of the cluster's other block; the word is copied from global memory; a cluster's blocks meet, or do so
// without ordering memory.
#define WRITE     "st.shared.u32 [%r5], %r1;\n"
#define READ_WARP "xor.b32 %r9, %r5, 128;\nld.shared.u32 %r10, [%r9];\n"
#define READ_LANE "xor.b32 %r9, %r5, 4;\nld.shared.u32 %r10, [%r9];\n"
#define READ_BLOCK                                                                                                     \
  "xor.b32 %r9, %r2, 1;\nmapa.shared::cluster.u32 %r10, %r5, %r9;\nld.shared::cluster.u32 %r11, [%r10];\n"
#define COPY         "cp.async.ca.shared.global [%r5], [%d2], 4;\n"
#define MEET         "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
#define MEET_RELAXED "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"

typedef struct expected {
  kl_found_kind kind;
  const char *at, *other; // how the instructions begin; NULL: nowhere, or the end
  int thread, block, other_thread, other_block;
} expected;

enum { MOST = 4 };
// clang-format off
static const struct {
  const char *name, *body;
  uint32_t grid, block, cluster;
  expected found[MOST];
  unsigned checks; // 0: all but LITERAL
} rows[] = {
#define RACE(at, t, b, other, ot, ob)                                                                                  \
  { KL_FOUND_RACE, at, other, t, b, ot, ob }
    // --- barriers of a block
    {"a barrier",
     WRITE "bar.sync 0;\n" READ_WARP, 2, 64, 1, {{0}},
     0},
    {"no barrier",
     WRITE READ_WARP, 1, 64, 1,
     {RACE("st.shared", 32, 0, "ld.shared", 0, 0)}, 0},
    {"no barrier between reading and writing",
     WRITE "bar.sync 0;\n" READ_WARP "add.u32 %r10, %r10, 7;\nst.shared.b32 [%r5], %r10;\n", 1, 64, 1,
     {RACE("ld.shared", 0, 0, "st.shared.b32", 32, 0)}, 0},
    {"lanes of a warp are not in lockstep",
     WRITE READ_LANE, 1, 32, 1,
     {RACE("ld.shared", 0, 0, "st.shared", 1, 0)}, 0},
    {"bar.warp.sync",
     WRITE "bar.warp.sync -1;\n" READ_LANE, 1, 32, 1,
     {{0}}, 0},
    {"bar.warp.sync is no barrier of the block",
     WRITE "bar.warp.sync -1;\n" READ_WARP, 1, 64, 1,
     {RACE("st.shared", 32, 0, "ld.shared", 0, 0)}, 0},
    {"bar.warp.sync of half a warp",
     "mov.u32 %r11, 0xffff;\nselp.u32 %r11, 0xffff, 0xffff0000, %q1;\n" WRITE "bar.warp.sync %r11;\n"
     "xor.b32 %r9, %r5, 64;\nld.shared.u32 %r10, [%r9];\n", 1, 32, 1,
     {RACE("ld.shared", 0, 0, "st.shared", 16, 0)}, 0},
    {"a shuffle orders",
     WRITE "shfl.sync.idx.b32 %r11, %r1, 0, 31, -1;\n" READ_LANE, 1, 32, 1, {{0}}, 0},
    {"a shuffle does not order, to the letter",
     WRITE "shfl.sync.idx.b32 %r11, %r1, 0, 31, -1;\n"
     READ_LANE, 1, 32, 1, {RACE("ld.shared", 0, 0, "st.shared", 1, 0)},
     KL_ORDER_RACES | KL_ORDER_SYNC | KL_ORDER_LITERAL},
    {"bar.arrive and bar.sync",
     "@%q2 bra P;\nbar.sync 1, 64;\nsub.u32 %r9, %r5, 128;\nld.shared.u32 %r10, [%r9];\nbra Q;\n"
     "P: " WRITE "bar.arrive 1, 64;\nQ:\n", 1, 64, 1, {{0}}, 0},
    {"bar.arrive orders nothing behind it",
     "@%q2 bra P;\n" WRITE "bar.sync 1, 64;\nbra Q;\nP: bar.arrive 1, 64;\nadd.u32 %r9, %r5, 128;\n"
     "ld.shared.u32 %r10, [%r9];\nQ:\n", 1, 64, 1,
     {RACE("st.shared", 32, 0, "ld.shared", 0, 0)}, 0},
    {"a write behind bar.arrive",
     "@%q2 bra P;\nbar.sync 1, 64;\nsub.u32 %r9, %r5, 128;\nld.shared.u32 %r10, [%r9];\nbra Q;\n"
     "P: bar.arrive 1, 64;\n" WRITE "Q:\n", 1, 64, 1, {RACE("ld.shared", 32, 0, "st.shared", 0, 0)},
     0},
    {"a named barrier is for those who come",
     "setp.lt.u32 %q3, %r1, 64;\n" WRITE "@!%q3 bra Q;\nbar.sync 1, 64;\nadd.u32 %r9, %r5, 256;\n"
     "ld.shared.u32 %r10, [%r9];\nQ:\n", 1, 128, 1,
     {RACE("st.shared", 96, 0, "ld.shared", 32, 0)}, 0},
    {"bar.red",
     WRITE "bar.red.popc.u32 %r11, 0, %p1;\n" READ_WARP, 1, 64, 1, {{0}}, 0},
    {"who has exited takes no part",
     WRITE "@%p32 exit;\nbar.sync 0;\nld.shared.u32 %r10, [%r4+128];\n", 1, 64, 1,
     {RACE("ld.shared", 33, 0, "st.shared", 32, 0)}, 0},
    // --- sizes
    {"bytes beside each other",
     "add.u32 %r9, %r4, %r1;\nmov.u16 %h1, 1;\nst.shared.u8 [%r9], %h1;\n", 1, 64, 1, {{0}}, 0},
    {"a word over bytes",
     "add.u32 %r9, %r4, %r1;\ncvt.u16.u32 %h1, %r1;\n@!%p0 st.shared.u8 [%r9], %h1;\n@%p0 ld.shared.u32 %r10, [%r4];\n",
     1, 4, 1, {RACE("ld.shared.u32", 0, 0, "st.shared.u8", 1, 0)}, 0},
    {"vectors",
     "shl.b32 %r9, %r1, 4;\nadd.u32 %r9, %r9, %r4;\nst.shared.v4.u32 [%r9], {%r1,%r1,%r1,%r1};\n", 1, 64, 1, {{0}},
     0},
    {"a vector over a neighbour",
     "@%p0 st.shared.v2.u32 [%r4], {%r1,%r1};\n@%p1 st.shared.b32 [%r4+4], %r1;\n", 1, 32, 1,
     {RACE("st.shared.b32", 1, 0, "st.shared.v2", 0, 0)}, 0},
    {"the same value", "mov.u32 %r9, 5;\nst.shared.u32 [%r4], %r9;\n", 1, 64, 1, {{0}}, 0},
    {"different values",
     "st.shared.u32 [%r4], %r1;\n", 1, 64, 1, {RACE("st.shared.u32", 1, 0, "st.shared.u32", 0, 0)}, 0},
    {"the same value, and who reads it",
     "mov.u32 %r9, 5;\n@!%p0 st.shared.u32 [%r4], %r9;\n@%p0 ld.shared.u32 %r10, [%r4];\n", 1, 32, 1,
     {RACE("ld.shared", 0, 0, "st.shared", 1, 0)}, 0},
    // --- global memory
    {"blocks are not ordered",
     "@%b1 bra P;\n@%p0 st.global.u32 [%d1], %r2;\nbra Q;\nP: @%p0 ld.global.u32 %r10, [%d1];\nQ:\n", 2, 32, 1,
     {RACE("ld.global", 0, 1, "st.global", 0, 0)}, 0},
    {"everybody reads", "ld.global.u32 %r10, [%d1];\nst.global.u32 [%d2+4096], %r10;\n", 4, 64, 1, {{0}}, 0},
    {"one of many blocks writes what all read",
     "ld.global.u32 %r10, [%d1];\nsetp.eq.u32 %b3, %r2, 3;\nand.pred %b3, %b3, %p0;\n@%b3 st.global.u32 [%d1], %r1;\n",
     4, 64, 1, {RACE("st.global", 0, 3, "ld.global", 0, 0)}, 0},
    {"atomic operations",
     "atom.global.add.u32 %r10, [%d1], 1;\nred.global.max.u32 [%d1+4], %r1;\n", 3, 64, 1, {{0}}, 0},
    {"atomic operations of a block's own scope",
     "@%p0 atom.relaxed.cta.global.add.u32 %r10, [%d1], 1;\n", 2, 32, 1, {RACE("atom", 0, 1, "atom", 0, 0)}, 0},
    {"within the block they do",
     "atom.relaxed.cta.global.add.u32 %r10, [%d2], 1;\nred.shared.add.u32 [%r4], 1;\n", 2, 64, 1, {{0}}, 0},
    {"an atomic operation and a plain read",
     "@%p0 atom.shared.add.u32 %r10, [%r4], 1;\n@%p1 ld.shared.u32 %r10, [%r4];\n", 1, 32, 1,
     {RACE("ld.shared", 1, 0, "atom", 0, 0)}, 0},
    {"a plain read that a compare-and-swap checks",
     "ld.shared.u32 %r9, [%r4];\nL: add.u32 %r10, %r9, 1;\natom.shared.cas.b32 %r11, [%r4], %r9, %r10;\n"
     "setp.ne.u32 %q3, %r11, %r9;\nmov.u32 %r9, %r11;\n@%q3 bra L;\n", 1, 64, 1, {{0}}, 0},
    {"a plain write that compare-and-swaps meet",
     "@%p0 st.shared.u32 [%r4], %r1;\n@%p1 atom.shared.cas.b32 %r11, [%r4], 0, 1;\n", 1, 32, 1,
     {RACE("atom", 1, 0, "st.shared", 0, 0)}, 0},
    {"volatile accesses",
     "@%p0 st.volatile.shared.u32 [%r4], %r1;\n@%p1 ld.volatile.shared.u32 %r10, [%r4];\n", 1, 32, 1, {{0}}, 0},
    {"volatile and plain",
     "@%p0 st.volatile.shared.u32 [%r4], %r1;\n@%p1 ld.shared.u32 %r10, [%r4];\n", 1, 32, 1,
     {RACE("ld.shared", 1, 0, "st.volatile", 0, 0)}, 0},
    {"strong accesses of different sizes",
     "@%p0 st.relaxed.cta.shared.u32 [%r4], %r1;\n@%p1 ld.relaxed.cta.shared.u64 %d4, [%r4];\n", 1, 32, 1,
     {RACE("ld.relaxed", 1, 0, "st.relaxed", 0, 0)}, 0},
    // --- messages
    {"the last block: tickets behind fences",
     "@!%p0 bra Q;\nst.global.u32 [%d2+64], %r2;\nmembar.gl;\natom.global.add.u32 %r10, [%d1], 1;\nmembar.gl;\n"
     "setp.ne.u32 %q3, %r10, 2;\n@%q3 bra Q;\nld.global.u32 %r11, [%d1+64];\nst.global.u32 [%d1], 0;\nQ:\n", 3, 32, 1,
     {{0}}, 0},
    {"the last block without its own fence: the ticket alone is its own",
     "@!%p0 bra Q;\nst.global.u32 [%d2+64], %r2;\nmembar.gl;\natom.global.add.u32 %r10, [%d1], 1;\n"
     "setp.ne.u32 %q3, %r10, 2;\n@%q3 bra Q;\nst.global.u32 [%d1], 0;\nQ:\n", 3, 32, 1, {{0}}, 0},
    // --- clusters
    {"a cluster's barrier",
     WRITE MEET READ_BLOCK MEET, 2, 64, 2, {{0}}, 0},
    {"a relaxed arrival",
     WRITE MEET_RELAXED
     READ_BLOCK MEET, 2, 32, 2, {RACE("ld.shared::cluster", 0, 1, "st.shared", 0, 0)}, 0},
    {"a block that nobody keeps from ending",
     WRITE MEET READ_BLOCK, 2, 64, 2, {{KL_FOUND_ABSENT, "ld.shared::cluster", NULL, 0, 1, -1, 0}}, 0},
    {"a block that a relaxed arrival keeps from ending",
     WRITE MEET READ_BLOCK MEET_RELAXED, 2, 64, 2, {{0}}, 0},
    {"an arrival before the access does not",
     WRITE MEET "barrier.cluster.arrive;\n" READ_BLOCK "barrier.cluster.wait;\n", 2, 32, 2,
     {{KL_FOUND_ABSENT, "ld.shared::cluster", NULL, 0, 1, -1, 0}}, 0},
    {"one thread that waits keeps its block",
     WRITE MEET READ_BLOCK "bar.sync 0;\n@!%p0 bra Q;\nmembar.gl;\nred.global.add.u32 [%d1], 1;\n"
     "L:\nld.volatile.global.u32 %r12, [%d1];\nsetp.lt.u32 %q3, %r12, 2;\n@%q3 bra L;\nmembar.gl;\nQ:\n", 2, 64, 2,
     {{0}}, 0},
    {"a block that may not have begun",
     "xor.b32 %r9, %r2, 1;\nmapa.shared::cluster.u32 %r10, %r5, %r9;\nst.shared::cluster.u32 [%r10], %r1;\n" MEET, 2,
     32, 2, {{KL_FOUND_ABSENT, "st.shared::cluster", NULL, 0, 0, -1, 0}}, 0},
    {"a block that has met the others",
     MEET_RELAXED
     "xor.b32 %r9, %r2, 1;\nmapa.shared::cluster.u32 %r10, %r5, %r9;\nst.shared::cluster.u32 [%r10], %r1;\n" MEET, 2,
     32, 2, {{0}}, 0},
    // --- cp.async
    {"cp.async, waited for",
     COPY "cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r10, [%r5];\nbar.sync 0;\n"
     READ_LANE, 1, 64, 1, {{0}},
     0},
    {"cp.async, not waited for",
     COPY "ld.shared.u32 %r10, [%r5];\n", 1, 32, 1,
     {RACE("ld.shared", 0, 0, "cp.async", 0, 0)}, 0},
    {"cp.async, the group before waited for",
     COPY "cp.async.commit_group;\ncp.async.ca.shared.global [%r5+256], [%d2], 4;\ncp.async.commit_group;\n"
     "cp.async.wait_group 1;\nld.shared.u32 %r10, [%r5];\nld.shared.b32 %r10, [%r5+256];\n", 1, 32, 1,
     {RACE("ld.shared.b32", 0, 0, "cp.async", 0, 0)}, 0},
    {"cp.async, waited for behind the barrier",
     COPY "bar.sync 0;\ncp.async.wait_all;\n" READ_LANE, 1, 32, 1, {RACE("ld.shared", 0, 0, "cp.async", 1, 0)}, 0},
    {"the source of cp.async, overwritten",
     COPY "st.global.u32 [%d2], %r1;\n", 1, 32, 1,
     {RACE("st.global", 0, 0, "cp.async", 0, 0)}, 0},
    // --- barriers, used wrongly
    {"lanes of a warp at two instructions of a barrier",
     "@%q1 bra P;\nbar.sync 0;\nbra Q;\nP: bar.sync 0, 32;\nQ:\n", 1, 32, 1,
     {{KL_FOUND_DIVERGENCE, "bar.sync 0, 32", "bar.sync 0;", 0, 0, 16, 0}}, 0},
    {"barrier.sync may stand in two places",
     "@%q1 bra P;\nbarrier.sync 0;\nbra Q;\nP: barrier.sync 0;\nQ:\n", 1, 32, 1, {{0}}, 0},
    {"lanes of a warp at two barriers",
     "selp.u32 %r9, 1, 2, %q1;\nbar.sync %r9, 32;\n", 1, 32, 1,
     {{KL_FOUND_DIVERGENCE, "bar.sync", "bar.sync", 0, 0, 16, 0},
     {KL_FOUND_DIVERGENCE, "bar.sync", NULL, 0, 0, -1, 0}}, 0},
    {"others have exited", "@%q1 exit;\nbar.sync 0;\n", 1, 64, 1, {{0}}, 0},
    {"counts that differ",
     "@%q2 bra P;\nbar.sync 1, 96;\nbra Q;\nP: bar.sync 1, 64;\nQ:\n", 1, 64, 1,
     {{KL_FOUND_COUNT, "bar.sync 1, 96", NULL, 32, 0, -1, 0},
      {KL_FOUND_COUNT, "bar.sync 1, 96", "bar.sync 1, 64", 32, 0, 0, 0},
     {KL_FOUND_DIVERGENCE, "bar.sync 1, 64", NULL, 0, 0, -1, 0}, {KL_FOUND_DIVERGENCE, "bar.sync 1, 96", NULL, 32, 0, -1, 0}}, 0},
    {"arriving twice",
     "@%q2 bra P;\nbar.sync 1, 64;\nbra Q;\nP: bar.arrive 1, 96;\nbar.arrive 1, 96;\nQ: bar.sync 0;\n", 1, 96, 1,
     {{KL_FOUND_COUNT, "bar.arrive", "bar.arrive", 0, 0, 0, 0},
      {KL_FOUND_COUNT, "bar.sync 1", "bar.arrive", 32, 0, 0, 0},
     {KL_FOUND_DIVERGENCE, "bar.sync 0", NULL, 0, 0, -1, 0}, {KL_FOUND_DIVERGENCE, "bar.sync 1", NULL, 64, 0, -1, 0}}, 0},
    {"nobody waits for who arrived",
     "@%q2 bar.arrive 1, 64;\n", 1, 64, 1, {{KL_FOUND_COUNT, "bar.arrive", NULL, 0, 0, -1, 0}}, 0},
    {"a reduction and a barrier",
     "@%q2 bra P;\nbar.red.popc.u32 %r9, 1, 64, %p0;\nbra Q;\nP: bar.sync 1, 64;\nQ:\n", 1, 64, 1,
     {{KL_FOUND_COUNT, "bar.red", "bar.sync", 32, 0, 0, 0}}, 0},
    {"a deadlock",
     "@%q2 bra P;\nbar.sync 1, 64;\nbra Q;\nP: bar.sync 2, 64;\nQ:\n", 1, 64, 1,
     {{KL_FOUND_DIVERGENCE, "bar.sync 2", NULL, 0, 0, -1, 0}, {KL_FOUND_DIVERGENCE, "bar.sync 1", NULL, 32, 0, -1, 0}},
     0},
    {"cluster.wait alone",
     "barrier.cluster.wait;\n" MEET, 2, 32, 2,
     {{KL_FOUND_COUNT, "barrier.cluster.wait", NULL, 0, 0, -1, 0},
      {KL_FOUND_DIVERGENCE, "barrier.cluster.wait", NULL, 0, 0, -1, 0}}, 0},
    {"cluster.arrive twice",
     "barrier.cluster.arrive;\n" MEET, 2, 32, 2,
     {{KL_FOUND_COUNT, "barrier.cluster.arrive", "barrier.cluster.arrive", 0, 0, 0, 0}}, 0},
    // --- lanes that take no part
    {"a shuffle of all", "shfl.sync.down.b32 %r9, %r1, 16, 31, -1;\n", 1, 64, 1, {{0}}, 0},
    {"a shuffle from outside of the mask",
     "@!%q1 bra Q;\nshfl.sync.down.b32 %r9, %r1, 8, 31, 0xffff;\nQ:\n", 1, 32, 1,
     {{KL_FOUND_INACTIVE, "shfl", NULL, 8, 0, 16, 0}}, 0},
    {"a shuffle within its segment",
     "@!%q1 bra Q;\nshfl.sync.down.b32 %r9, %r1, 8, 0x100f, 0xffff;\nQ:\n", 1, 32, 1, {{0}}, 0},
    {"a shuffle from who has exited",
     "@!%q1 exit;\nshfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;\n", 1, 32, 1,
     {{KL_FOUND_INACTIVE, "shfl", NULL, 0, 0, 16, 0}}, 0},
    {"a shuffle from beyond the block",
     "shfl.sync.down.b32 %r9, %r1, 1, 31, -1;\n", 1, 8, 1, {{KL_FOUND_INACTIVE, "shfl", NULL, 7, 0, -1, 0}}, 0},
    {"not in its own mask",
     "@%p0 vote.sync.any.pred %q3, %p0, 2;\n@%p1 vote.sync.any.pred %q3, %p0, 2;\n", 1, 32, 1,
     {{KL_FOUND_INACTIVE, "vote", NULL, 0, 0, -1, 0}}, 0},
    {"masks that differ",
     "selp.u32 %r9, 3, 1, %p0;\n@%p32 bra Q;\nsetp.gt.u32 %q3, %r1, 1;\n@%q3 bra Q;\nselp.u32 %r9, 3, 2, %p0;\n"
     "shfl.sync.idx.b32 %r10, %r1, %r1, 31, %r9;\nQ:\n", 1, 32, 1,
     {{KL_FOUND_INACTIVE, "shfl", "shfl", 0, 0, 1, 0}}, 0},
};
// clang-format on

// --- running ------------------------------------------------------------------------------------------------------

typedef struct run {
  stage s;
  kl_report report;
  char *text;
} run;

static void run_row(int i, uint64_t shuffle, run *r) {
  kl_fault fault;
  size_t n = strlen(HEAD BEGIN END) + strlen(rows[i].body) + 1;
  *r = (run){.text = malloc(n)};
  snprintf(r->text, n, "%s%s%s", HEAD BEGIN, rows[i].body, END);
  stage_open(&r->s);
  stage_expect(&r->s, rows[i].name, r->text, "k");
  uint64_t address = stage_memory(&r->s, 65536);
  kl_observer *o = kl_order_new(r->s.cx, &r->report, rows[i].checks ? rows[i].checks : KL_ORDER_RACES | KL_ORDER_SYNC);
  kl_launch l = {.kernel = r->s.k,
                 .grid = {rows[i].grid, 1, 1},
                 .block = {rows[i].block, 1, 1},
                 .cluster = {rows[i].cluster > 1 ? rows[i].cluster : 0, 1, 1},
                 .params = &address,
                 .shuffle = shuffle,
                 .most_branches = 100000,
                 .observers = &o,
                 .nobservers = 1};
  if (rows[i].cluster <= 1) l.cluster[1] = l.cluster[2] = 0;
  kl_launch_run(r->s.cx, &r->s.m, &l, &fault); // a deadlock is one of the findings
  kl_order_free(o);
}

static void end_run(run *r) {
  kl_report_free(r->s.cx, &r->report);
  stage_close(&r->s);
  free(r->text);
}

static void put(kl_sb *b, const run *r) {
  for (size_t k = 0; k < r->report.found.n; k++) {
    const kl_found *f = &r->report.found.p[k];
    kl_sbf(b, "  line %u: ", f->at.instr ? f->at.instr->at.line : 0);
    kl_report_put(b, f);
    kl_sb_putc(b, '\n');
  }
}

static bool begins(const run *r, const kl_found_at *at, const char *text) {
  if (!text) return at->instr == NULL;
  const char *p = at->instr ? r->text + at->instr->at.begin : "";
  if (*p == '@') p += strcspn(p, " "), p++;
  return strncmp(p, text, strlen(text)) == 0;
}

static bool is_thread(const kl_found_at *at, int thread, int block) {
  if (thread < 0) return at->func == NULL;
  return at->func && at->thread[0] == (uint32_t)thread && at->block[0] == (uint32_t)block;
}

START_TEST(finds) {
  run r;
  kl_sb b;
  size_t n = 0;
  run_row(_i, 0, &r);
  kl_sb_init(&b, r.s.cx);
  put(&b, &r);
  while (n < MOST && rows[_i].found[n].at) n++;
  EXPECT(r.report.found.n == n, "%s: expected %zu findings, found %zu:\n%s", rows[_i].name, n, r.report.found.n,
         b.n ? b.p : "");
  for (size_t k = 0; k < n; k++) {
    const expected *e = &rows[_i].found[k];
    const kl_found *f = &r.report.found.p[k];
    bool same = f->kind == e->kind && begins(&r, &f->at, e->at) && is_thread(&f->at, e->thread, e->block) &&
                begins(&r, &f->other, e->other) && is_thread(&f->other, e->other_thread, e->other_block);
    EXPECT(same, "%s: finding %zu is another one:\n%s", rows[_i].name, k, b.p);
  }
  kl_sb_free(&b);
  end_run(&r);
}
END_TEST

// Pairs of lines, the lower one first, in their order.
static void pairs_of(const run *r, char *to, size_t room) {
  uint32_t pairs[64][2];
  size_t n = 0, at = 0;
  for (size_t k = 0; k < r->report.found.n && n < 64; k++) {
    const kl_found *f = &r->report.found.p[k];
    if (f->kind != KL_FOUND_RACE) continue;
    uint32_t x = f->at.instr->at.line, y = f->other.instr->at.line;
    pairs[n][0] = x < y ? x : y;
    pairs[n++][1] = x < y ? y : x;
  }
  to[0] = 0;
  for (size_t done = 0; done < n; done++) {
    size_t least = done;
    for (size_t k = done; k < n; k++)
      if (pairs[k][0] < pairs[least][0] || (pairs[k][0] == pairs[least][0] && pairs[k][1] < pairs[least][1])) least = k;
    uint32_t x = pairs[least][0], y = pairs[least][1];
    memcpy(pairs[least], pairs[done], sizeof pairs[0]);
    at += (size_t)snprintf(to + at, room - at, "%u-%u ", x, y);
  }
}

START_TEST(order_of_running_changes_nothing) {
  char straight[1024], other[1024];
  for (uint64_t seed = 0; seed < 12; seed++) {
    run r;
    run_row(_i, seed, &r);
    pairs_of(&r, seed ? other : straight, sizeof other);
    if (seed)
      EXPECT(strcmp(straight, other) == 0, "%s: seed %d finds %s, not %s", rows[_i].name, (int)seed, other, straight);
    end_run(&r);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("order_rows", NO_FRAME, {finds, (int)KL_COUNT(rows)},
                   {order_of_running_changes_nothing, (int)KL_COUNT(rows)});
}

// Issues, lanes and divergence of kernels whose counts are known by hand; samples of blocks; the caches, against a
// model that remembers when each line was last used.
#include "profile.h"

#define BEGIN                                                                                                          \
  ".visible .entry k(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"   \
  "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r1, %r3, %r4, %r2;\n"              \
  "ld.param.u64 %rd2, [p];\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd1, %rd2, %rd3;\n"
#define END "ret;\n}\n"

// --- issues ---------------------------------------------------------------------------------------------------------

// One instruction of a kernel: launched as two blocks of 48 threads, warps of 32 and 16 lanes.
typedef struct row {
  const char *ptx, *text;
  uint64_t warps, active, lanes, partial, divergent;
} row;

#define FUNCTION ".func f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nadd.u32 %r2, %r1, 1;\nret;\n}\n"
#define CALL     "{\n.param .b32 y;\nst.param.b32 [y], %r1;\ncall.uni f, (y);\n}\n"

static const row rows[] = {
    {BEGIN END, "mov.u32 %r2", 4, 96, 96, 0, 0},
    {BEGIN END, "ret", 4, 96, 96, 0, 0},
    // guards: lanes below 8 of each block's first warp
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 add.u32 %r5, %r1, 1;\n" END, "@%p1 add", 4, 96, 16, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@!%p1 add.u32 %r5, %r1, 1;\n" END, "@!%p1 add", 4, 96, 80, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\nadd.u32 %r5, %r1, 7;\nL: add.u32 %r6, %r1, 9;\n" END, "bra", 4, 96,
     16, 0, 2},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\nadd.u32 %r5, %r1, 7;\nL: add.u32 %r6, %r1, 9;\n" END, ", 7", 4, 80,
     80, 2, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\nadd.u32 %r5, %r1, 7;\nL: add.u32 %r6, %r1, 9;\n" END, ", 9", 4, 96,
     96, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra L;\nadd.u32 %r5, %r1, 7;\nL:\n" END, ", 7", 2, 32, 32, 0, 0},
    {BEGIN "bra L;\nL:\n" END, "bra", 4, 96, 96, 0, 0},
    // exits: those that have gone are not missing
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 exit;\nadd.u32 %r5, %r1, 7;\n" END, "exit", 4, 96, 16, 0, 2},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 exit;\nadd.u32 %r5, %r1, 7;\n" END, ", 7", 4, 80, 80, 0, 0},
    // a loop of tid % 4 + 1 rounds: all lanes branch until round by round a quarter leaves
    {BEGIN "and.b32 %r5, %r2, 3;\nL: sub.s32 %r5, %r5, 1;\nsetp.ge.s32 %p1, %r5, 0;\n@%p1 bra L;\n" END, "sub.s32", 16,
     96 + 72 + 48 + 24, 96 + 72 + 48 + 24, 12, 0},
    {BEGIN "and.b32 %r5, %r2, 3;\nL: sub.s32 %r5, %r5, 1;\nsetp.ge.s32 %p1, %r5, 0;\n@%p1 bra L;\n" END, "bra", 16,
     96 + 72 + 48 + 24, 72 + 48 + 24, 12, 12},
    // by index: three ways
    {BEGIN
     "ts: .branchtargets A, B, C;\nmul.lo.u32 %r5, %r3, 0;\nand.b32 %r6, %r2, 3;\nmin.u32 %r6, %r6, 2;\nbrx.idx %r6, "
     "ts;\nA: bra C;\nB: add.u32 %r7, %r1, 5;\nC:\n" END,
     "brx.idx", 4, 96, 96, 0, 4},
    // what waits is issued once, what a warp's lanes reach apart is issued apart
    {BEGIN "bar.sync 0;\n" END, "bar.sync", 4, 96, 96, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\nbar.sync 0;\nbra M;\nL: bar.sync 0;\nM:\n" END, "bar.sync", 4, 80,
     80, 2, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\nselp.u32 %r5, 1, 2, %p1;\nbarrier.arrive %r5, 64;\n" END, "barrier", 6, 96, 96, 4,
     0},
    {BEGIN "setp.lt.u32 %p1, %r2, 64;\n@%p1 bar.sync 0;\n" END, "bar.sync", 4, 96, 96, 0, 0},
    {BEGIN "activemask.b32 %r5;\nshfl.sync.bfly.b32 %r6, %r1, 1, 31, %r5;\n" END, "shfl", 4, 96, 96, 0, 0},
    {BEGIN "activemask.b32 %r5;\nsetp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\nshfl.sync.bfly.b32 %r6, %r1, 1, 31, %r5;\nbra "
           "M;\nL: shfl.sync.bfly.b32 %r6, %r1, 1, 31, %r5;\nM:\n" END,
     "shfl", 4, 80, 80, 2, 0},
    {BEGIN "bar.warp.sync 0xffffffff;\n" END, "bar.warp", 4, 96, 96, 0, 0},
    {BEGIN "membar.gl;\n" END, "membar", 4, 96, 96, 0, 0},
    {BEGIN "prefetch.global.L2 [%rd1];\n" END, "prefetch", 4, 96, 96, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 prefetch.global.L2 [%rd1];\n" END, "prefetch", 4, 96, 16, 0, 0},
    {BEGIN "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" END, "cluster.arrive", 4, 96, 96, 0, 0},
    {BEGIN "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" END, "cluster.wait", 4, 96, 96, 0, 0},
    // calls, by name and by address: two callees are two issues
    {FUNCTION BEGIN CALL END, "call", 4, 96, 96, 0, 0},
    {FUNCTION BEGIN CALL END, "add.u32 %r2, %r1, 1", 4, 96, 96, 0, 0},
    {FUNCTION BEGIN "setp.lt.u32 %p1, %r2, 8;\n@%p1 bra L;\n" CALL "L:\n" END, "call", 4, 80, 80, 2, 0},
    {FUNCTION ".func g(.param .b32 x) {\nret;\n}\n" BEGIN
              "mov.u64 %rd4, f;\nmov.u64 %rd5, g;\nsetp.lt.u32 %p1, %r2, 8;\nselp.u64 %rd4, %rd4, %rd5, %p1;\n"
              "proto: .callprototype _ (.param .b32 _);\n{\n.param .b32 y;\nst.param.b32 [y], %r1;\ncall %rd4, (y), "
              "proto;\n}\n" END,
     "call", 6, 96, 96, 4, 0},
    // moves and glue are one instruction each
    {BEGIN "mov.b64 {%r5, %r6}, %rd1;\n" END, "mov.b64", 4, 96, 96, 0, 0},
    {BEGIN "setp.lt.u32 %p1, %r2, 8;\nnot.pred %p2, %p1;\nand.pred %p3, %p1, %p2;\n" END, "and.pred", 4, 96, 96, 0, 0},
};

START_TEST(by_hand) {
  const row *r = &rows[_i];
  fixture f;
  char ptx[4096];
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  snprintf(ptx, sizeof ptx, "%s%s", HEADER, r->ptx);
  for (uint64_t shuffle = 0; shuffle < 2; shuffle++) {
    kiln_sim_launch_params l = {.grid = {2}, .block = {48}, .shuffle = shuffle * 77};
    if (strstr(r->ptx, "cluster")) l.cluster[0] = 2, l.cluster[1] = l.cluster[2] = 1;
    fixture_run(&f, ptx, l, arguments, NULL);
    if (shuffle && strstr(r->ptx, "setp")) continue; // where lanes part and join is left to the order
    const kiln_profile_line *x = line_with(&f, r->text, 0);
    EXPECT(x->warps == r->warps && x->active == r->active && x->lanes == r->lanes && x->partial == r->partial &&
               x->divergent == r->divergent,
           "%s: found %llu warps, %llu active, %llu lanes, %llu partial, %llu divergent", x->text,
           (unsigned long long)x->warps, (unsigned long long)x->active, (unsigned long long)x->lanes,
           (unsigned long long)x->partial, (unsigned long long)x->divergent);
  }
  fixture_close(&f);
}
END_TEST

// --- classes --------------------------------------------------------------------------------------------------------

static const struct {
  const char *instr;
  kiln_profile_class kind;
  unsigned f32, f64, half; // flops of a lane
} classes[] = {
    {"add.s32 %r5, %r1, 1", KILN_CLASS_INTEGER, 0, 0, 0},
    {"mad.lo.u32 %r5, %r1, %r1, %r1", KILN_CLASS_MULTIPLY, 0, 0, 0},
    {"setp.lt.u32 %p1, %r1, %r2", KILN_CLASS_INTEGER, 0, 0, 0},
    {"fma.rn.f32 %r5, %r1, %r1, %r1", KILN_CLASS_F32_FMA, 2, 0, 0},
    {"add.f32 %r5, %r1, %r1", KILN_CLASS_F32_ADD, 1, 0, 0},
    {"sub.rn.ftz.f32 %r5, %r1, %r1", KILN_CLASS_F32_ADD, 1, 0, 0},
    {"mul.rz.f32 %r5, %r1, %r1", KILN_CLASS_F32_MULTIPLY, 1, 0, 0},
    {"max.f32 %r5, %r1, %r1", KILN_CLASS_F32_OTHER, 0, 0, 0},
    {"div.rn.f32 %r5, %r1, %r1", KILN_CLASS_F32_OTHER, 0, 0, 0},
    {"setp.lt.f32 %p1, %r1, %r2", KILN_CLASS_F32_OTHER, 0, 0, 0},
    {"fma.rn.f64 %rd5, %rd1, %rd1, %rd1", KILN_CLASS_F64_FMA, 0, 2, 0},
    {"add.f64 %rd5, %rd1, %rd1", KILN_CLASS_F64_ADD, 0, 1, 0},
    {"mul.f64 %rd5, %rd1, %rd1", KILN_CLASS_F64_MULTIPLY, 0, 1, 0},
    {"fma.rn.f16 %h1, %h1, %h1, %h1", KILN_CLASS_HALF_FMA, 0, 0, 2},
    {"fma.rn.bf16x2 %r5, %r1, %r1, %r1", KILN_CLASS_HALF_FMA, 0, 0, 4},
    {"add.f16x2 %r5, %r1, %r1", KILN_CLASS_HALF_ADD, 0, 0, 2},
    {"mul.bf16 %h1, %h1, %h1", KILN_CLASS_HALF_MULTIPLY, 0, 0, 1},
    {"max.f16x2 %r5, %r1, %r1", KILN_CLASS_HALF_OTHER, 0, 0, 0},
    {"cvt.rn.f32.s32 %r5, %r1", KILN_CLASS_CONVERT, 0, 0, 0},
    {"ex2.approx.f32 %r5, %r1", KILN_CLASS_SPECIAL, 0, 0, 0},
    {"ld.global.u32 %r5, [%rd1]", KILN_CLASS_LOAD, 0, 0, 0},
    {"prefetch.global.L2 [%rd1]", KILN_CLASS_LOAD, 0, 0, 0},
    {"st.global.u32 [%rd1], %r1", KILN_CLASS_STORE, 0, 0, 0},
    {"atom.global.add.u32 %r5, [%rd1], 1", KILN_CLASS_ATOMIC, 0, 0, 0},
    {"bra.uni L", KILN_CLASS_BRANCH, 0, 0, 0},
    {"nanosleep.u32 5", KILN_CLASS_CONTROL, 0, 0, 0},
    {"bar.sync 0", KILN_CLASS_BARRIER, 0, 0, 0},
    {"fence.acq_rel.gpu", KILN_CLASS_FENCE, 0, 0, 0},
    {"bar.warp.sync -1", KILN_CLASS_WARP, 0, 0, 0},
    {"shfl.sync.idx.b32 %r5, %r1, 0, 31, -1", KILN_CLASS_WARP, 0, 0, 0},
    {"vote.sync.ballot.b32 %r5, %p1, -1", KILN_CLASS_WARP, 0, 0, 0},
};

START_TEST(class_of_each) {
  fixture f;
  char ptx[2048];
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  snprintf(ptx, sizeof ptx, "%s%s;\nL:\n%s", HEADER BEGIN, classes[_i].instr, END);
  fixture_run(&f, ptx, (kiln_sim_launch_params){.block = {64}}, arguments, NULL);
  const kiln_profile_line *l = line_with(&f, classes[_i].instr, 0);
  EXPECT(l->kind == classes[_i].kind, "%s: found %s", l->text, kiln_profile_class_name(l->kind));
  ck_assert_uint_eq(f.t.f32_flops, 64 * classes[_i].f32);
  ck_assert_uint_eq(f.t.f64_flops, 64 * classes[_i].f64);
  ck_assert_uint_eq(f.t.half_flops, 64 * classes[_i].half);
  uint64_t warps = 0, lanes = 0;
  for (int c = 0; c < KILN_CLASS_COUNT; c++) warps += f.t.warps[c], lanes += f.t.lanes[c];
  ck_assert(warps == 2 * 9 && f.t.all_warps == warps && f.t.all_lanes == lanes && lanes == 64 * 9);
  fixture_close(&f);
}
END_TEST

// --- samples --------------------------------------------------------------------------------------------------------

START_TEST(samples) {
  fixture f;
  kiln_profile_params how = {.struct_size = sizeof how, .gpu = "a100", .first = 2, .count = 3, .stride = 5};
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 20 * 256, NULL)};
  fixture_run(&f, HEADER BEGIN "st.global.u32 [%rd1], %r1;\n" END,
              (kiln_sim_launch_params){.grid = {20}, .block = {64}}, arguments, &how);
  ck_assert(f.t.blocks == 20 && f.t.sampled == 3 && f.t.scale == 20.0 / 3 && strcmp(f.t.gpu, "A100") == 0);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_STORE].requests, 6);
  ck_assert_uint_eq(f.t.buffers[0].written_bytes, 3 * 256);
  const uint32_t *words = kiln_simulator_bytes(f.s, arguments[0], 20 * 256);
  for (uint32_t i = 0; i < 20 * 64; i++) ck_assert_uint_eq(words[i], i / 64 % 5 == 2 && i / 64 < 13 ? i : 0);
  fixture_close(&f);
}
END_TEST

// Tensors that no machine has room for: what is not touched takes none.
START_TEST(huge_tensors) {
  fixture f;
  uint64_t bytes = (uint64_t)1 << 42, blocks = bytes / 4096; // 4 TiB; each block stores 64 words
  kiln_profile_params how = {.struct_size = sizeof how, .first = 5, .count = 4, .stride = blocks / 5};
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, bytes, NULL)};
  fixture_run(&f,
              HEADER BEGIN
              "mul.wide.u32 %rd4, %r3, 4096;\nadd.u64 %rd4, %rd4, %rd2;\nmul.wide.u32 %rd5, %r2, 4;\nadd.u64 "
              "%rd4, %rd4, %rd5;\nld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd4], %r5;\n" END,
              (kiln_sim_launch_params){.grid = {(uint32_t)blocks}, .block = {64}}, arguments, &how);
  ck_assert(f.t.buffers[0].written_bytes == 4 * 256 && f.t.buffers[0].read_bytes == 4 * 256);
  ck_assert_uint_eq(f.t.dram_read, 4 * 256);
  fixture_close(&f);
}
END_TEST

// --- the same every time --------------------------------------------------------------------------------------------

// Where lanes part, their order is left to the launch; where they do not, no count depends on it.
static const char *const kernels[] = {
    HEADER BEGIN "ld.global.u32 %r6, [%rd1];\nshfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;\nred.global.add.u32 [%rd2], 1;\n"
                 "bar.sync 0;\nst.global.u32 [%rd1], %r7;\n" END,
    HEADER BEGIN "and.b32 %r5, %r2, 7;\nL: sub.s32 %r5, %r5, 1;\nsetp.ge.s32 %p1, %r5, 0;\n@%p1 bra "
                 "L;\nred.global.add.u32 [%rd2], 1;\n" END,
};

START_TEST(the_same_every_time) {
  fixture f, g;
  fixture_open(&f), fixture_open(&g);
  uint64_t a[16] = {fixture_memory(&f, 300 * 512, NULL)}, b[16] = {fixture_memory(&g, 300 * 512, NULL)};
  fixture_run(&f, kernels[_i], (kiln_sim_launch_params){.grid = {300}, .block = {128}}, a, NULL);
  for (uint64_t shuffle = 0; shuffle < (_i ? 1 : 4); shuffle++) {
    fixture_run(&g, kernels[_i],
                (kiln_sim_launch_params){.grid = {300}, .block = {128}, .workers = 2, .shuffle = shuffle}, b, NULL);
    ck_assert_mem_eq(f.t.warps, g.t.warps, sizeof f.t.warps);
    ck_assert_mem_eq(f.t.lanes, g.t.lanes, sizeof f.t.lanes);
    for (int k = 0; k < KILN_ACCESS_COUNT; k++) { // another order of blocks meets the caches in another way
      if (shuffle) g.t.accesses[k].l1_hits = f.t.accesses[k].l1_hits, g.t.accesses[k].l2_hits = f.t.accesses[k].l2_hits;
      ck_assert_mem_eq(&f.t.accesses[k], &g.t.accesses[k], sizeof f.t.accesses[k]);
    }
    ck_assert(f.t.hottest_requests == 1200 && g.t.hottest_requests == 1200 && f.t.hottest_address == a[0]);
  }
  fixture_close(&f), fixture_close(&g);
}
END_TEST

// --- caches ---------------------------------------------------------------------------------------------------------

// One thread goes through a table of addresses and how to access them: bit 0 a store, bit 1 past L1.
static const char *const walk = HEADER
    ".visible .entry k(.param .u64 table, .param .u64 buffer, .param .u64 n) {\n.reg .pred %p<4>;\n.reg .b32 "
    "%r<9>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [table];\nld.param.u64 %rd2, [buffer];\nld.param.u64 %rd3, "
    "[n];\nLOOP:\nld.global.cg.u64 %rd4, [%rd1];\nadd.u64 %rd1, %rd1, 8;\nand.b64 %rd5, %rd4, -32;\nadd.u64 %rd5, "
    "%rd5, %rd2;\ncvt.u32.u64 %r1, %rd4;\nand.b32 %r1, %r1, 3;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r1, "
    "1;\nsetp.eq.u32 %p3, %r1, 2;\n@%p1 ld.global.u32 %r2, [%rd5];\n@%p2 st.global.u32 [%rd5], %r1;\n@%p3 "
    "ld.global.cg.u32 %r3, [%rd5+4];\nsub.u64 %rd3, %rd3, 1;\nsetp.ne.u64 %p1, %rd3, 0;\n@%p1 bra LOOP;\nret;\n}\n";

// Lines by when they were last used; a set is all lines whose hash is the same.
enum { LINES = 1 << 20, WAYS = 16, NONE = -1 };
typedef struct naive {
  uint32_t sets;
  struct {
    int64_t line, used;
    uint8_t valid, dirty;
  } * ways;
  int64_t now, written;
} naive;

static int64_t way_of(naive *c, int64_t line, bool make) {
  uint64_t set = ((uint64_t)line ^ (uint64_t)line >> 10 ^ (uint64_t)line >> 20) % c->sets;
  int64_t oldest = (int64_t)set * WAYS;
  c->now++;
  for (int64_t w = (int64_t)set * WAYS; w < ((int64_t)set + 1) * WAYS; w++) {
    if (c->ways[w].used && c->ways[w].line == line) { // with or without sectors
      c->ways[w].used = c->now;
      return w;
    }
    if (c->ways[w].used < c->ways[oldest].used) oldest = w;
  }
  if (!make) return NONE;
  c->written += __builtin_popcount(c->ways[oldest].dirty);
  c->ways[oldest].line = line;
  c->ways[oldest].used = c->now;
  c->ways[oldest].valid = c->ways[oldest].dirty = 0;
  return oldest;
}

static naive naive_make(uint64_t bytes) {
  naive c = {.sets = (uint32_t)(bytes / 128 / WAYS)};
  c.ways = calloc((size_t)c.sets * WAYS, sizeof *c.ways);
  return c;
}

static int64_t naive_use(naive *c, uint64_t address, bool store) {
  int64_t w = way_of(c, (int64_t)(address / 128), true);
  uint8_t bit = (uint8_t)(1 << address / 32 % 4), had = c->ways[w].valid & bit;
  c->ways[w].valid |= bit;
  if (store) c->ways[w].dirty |= bit;
  return had != 0;
}

static const struct {
  uint64_t span, n; // addresses lie in so many bytes
  unsigned ways;    // how they are accessed, by chance
} walks[] = {{100000, 5000, 1}, {400000, 40000, 3}, {90000000, 600000, 3}, {60000000, 1200000, 2}};

START_TEST(caches) {
  fixture f;
  void *host;
  kiln_profile_params how = {.struct_size = sizeof how, .gpu = "A100"};
  uint64_t span = walks[_i].span, n = walks[_i].n, seed = 11, l1_hits = 0, l2_hits = 0, l2_stores = 0, read = 0;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, n * 8, &host), fixture_memory(&f, span + 64, NULL), n};
  uint64_t *table = host;
  naive l1 = naive_make(192 * 1024), l2 = naive_make(40 << 20);
  for (uint64_t i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t at = (seed >> 33) % span & ~31ull, near = (seed >> 20) % 4;
    if (near && i) at = ((table[i - 1] & ~31ull) + 32 * near) % span & ~31ull; // not all by chance
    table[i] = at | (seed >> 12) % walks[_i].ways;
    uint64_t how_at = table[i] % 4, own = arguments[0] + i * 8, address = arguments[1] + at;
    int64_t w = way_of(&l1, (int64_t)(own / 128), false); // the table, past L1
    if (w != NONE) l1.ways[w].valid &= (uint8_t) ~(1 << own / 32 % 4);
    int64_t had = naive_use(&l2, own, false);
    l2_hits += (uint64_t)had, read += !had;
    if (how_at == 0 && naive_use(&l1, address, false)) {
      l1_hits++;
      continue;
    }
    if (how_at == 2) {
      w = way_of(&l1, (int64_t)(address / 128), false);
      if (w != NONE) l1.ways[w].valid &= (uint8_t) ~(1 << address / 32 % 4);
    }
    had = naive_use(&l2, address, how_at == 1);
    *(how_at == 1 ? &l2_stores : &l2_hits) += (uint64_t)had;
    read += how_at != 1 && !had;
  }
  fixture_run(&f, walk, (kiln_sim_launch_params){0}, arguments, &how);
  ck_assert_uint_eq(f.t.occupancy.l1_bytes, 192 * 1024);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_LOAD].l1_hits, l1_hits);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_LOAD].l2_hits, l2_hits);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_STORE].l2_hits, l2_stores);
  ck_assert_uint_eq(f.t.dram_read, read * 32);
  ck_assert_uint_eq(f.t.dram_written, (uint64_t)l2.written * 32);
  uint64_t dirty = 0;
  for (size_t w = 0; w < (size_t)l2.sets * WAYS; w++) dirty += (unsigned)__builtin_popcount(l2.ways[w].dirty);
  ck_assert_uint_eq(f.t.dram_dirty, dirty * 32);
  printf("# %llu accesses: %llu L1 hits, %llu L2 hits, %llu sectors read, %llu written\n", (unsigned long long)n,
         (unsigned long long)l1_hits, (unsigned long long)l2_hits, (unsigned long long)read,
         (unsigned long long)l2.written);
  free(l1.ways), free(l2.ways);
  fixture_close(&f);
}
END_TEST

// Blocks go round the multiprocessors: what a block loaded, the 108th behind it finds.
START_TEST(blocks_go_round) {
  fixture f;
  kiln_profile_params how = {.struct_size = sizeof how, .gpu = "A100"};
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  fixture_run(&f, HEADER BEGIN "ld.global.u32 %r5, [%rd2];\n" END,
              (kiln_sim_launch_params){.grid = {250}, .block = {32}}, arguments, &how);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_LOAD].l1_hits, 250 - 108);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_LOAD].l2_hits, 107);
  ck_assert_uint_eq(f.t.dram_read, 32);
  fixture_close(&f);
}
END_TEST

int main(void) {
  return RUN_TESTS("count_counts", NO_FRAME, {by_hand, sizeof rows / sizeof rows[0]},
                   {class_of_each, sizeof classes / sizeof classes[0]}, {samples}, {huge_tensors},
                   {the_same_every_time, sizeof kernels / sizeof kernels[0]}, {caches, sizeof walks / sizeof walks[0]},
                   {blocks_go_round});
}

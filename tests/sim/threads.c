// The simulator on several threads, for ThreadSanitizer to watch: launches of many blocks over workers, in several
// contexts at once, faults among them, and the driver called from all sides. What is computed is what one thread does.

#include "cu.h"
#include "sim/machine/machine.h"
#include "support/share.h"

#include <kiln/sim.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 64, WIDE = 96, WORDS = BLOCKS * WIDE, WORKERS = 4 };

// Each thread's word: a table of constants, its warp's sum, what others of its block have put into shared memory, a
// loop of its own length, an array on the stack and a recursion of its own depth. %r1 is the thread's number in the
// grid.
#define BODY(own)                                                                                                      \
  PTX_HEAD                                                                                                             \
  ".const .align 4 .u32 c[4] = {3, 5, 7, 11};\n"                                                                       \
  ".func (.param .b32 y) down(.param .b32 x) {\n.reg .b32 %r<4>;\n.reg .pred %p;\nld.param.b32 %r1, [x];\n"            \
  "setp.eq.u32 %p, %r1, 0;\n@%p bra E;\n{\n.param .b32 a;\n.param .b32 b;\nsub.u32 %r2, %r1, 1;\n"                     \
  "st.param.b32 [a], %r2;\ncall.uni (b), down, (a);\nld.param.b32 %r3, [b];\n}\nadd.u32 %r1, %r1, %r3;\nE:\n"          \
  "st.param.b32 [y], %r1;\nret;\n}\n"                                                                                  \
  ".visible .entry k(.param .u64 p) {\n.shared .align 4 .b8 s[384];\n.local .align 4 .b8 l[32];\n.reg .pred %p<4>;\n"  \
  ".reg .b32 %r<20>;\n.reg .b64 %rd<9>;\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"        \
  "mad.lo.u32 %r1, %r3, %r4, %r2;\nld.param.u64 %rd1, [p];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"   \
  "and.b32 %r5, %r1, 3;\nmul.wide.u32 %rd3, %r5, 4;\nmov.u64 %rd4, c;\nadd.u64 %rd4, %rd4, %rd3;\n"                    \
  "ld.const.u32 %r6, [%rd4];\nredux.sync.add.u32 %r7, %r6, -1;\nmov.u32 %r8, s;\nshl.b32 %r9, %r2, 2;\n"               \
  "add.u32 %r9, %r8, %r9;\nst.shared.u32 [%r9], %r1;\nbar.sync 0;\nsub.u32 %r10, 95, %r2;\nshl.b32 %r10, %r10, 2;\n"   \
  "add.u32 %r10, %r8, %r10;\nld.shared.u32 %r11, [%r10];\nmov.u32 %r12, 0;\nL:\nadd.u32 %r12, %r12, %r11;\n"           \
  "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 9;\n@%p1 bra L;\nst.local.u32 [l+12], %r12;\n" own                      \
  "and.b32 %r13, %r1, 15;\n{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r13;\ncall.uni (b), down, (a);\n"     \
  "ld.param.b32 %r14, [b];\n}\nld.local.u32 %r15, [l+12];\nadd.u32 %r16, %r14, %r15;\nadd.u32 %r16, %r16, %r7;\n"      \
  "st.global.u32 [%rd1], %r16;\nret;\n}\n"
// The thread of each block whose number is that of the block in the grid stores beyond everything, from block 9 on.
#define FAILS "setp.ge.u32 %p2, %r3, 9;\nsetp.eq.and.u32 %p2, %r2, %r3, %p2;\n@%p2 st.global.u32 [%rd1+1048576], %r1;\n"
static const char *const right = BODY(""), *const failing = BODY(FAILS);

static uint32_t expected[WORDS];

static void expect(void) {
  static const uint32_t c[] = {3, 5, 7, 11};
  for (uint32_t i = 0; i < WORDS; i++) {
    uint32_t depth = i & 15, other = i / WIDE * WIDE + (WIDE - 1 - i % WIDE);
    expected[i] = depth * (depth + 1) / 2 + (9 - (i & 3)) * other + 8 * (c[0] + c[1] + c[2] + c[3]);
  }
}

// Of each thread.
static uint64_t launches(void) {
  return share_of(30);
}

// --- threads --------------------------------------------------------------------------------------------------------

typedef struct worker {
  int id;
  pthread_t thread;
  void (*body)(struct worker *);
  char failure[1000]; // what was wrong first; Check's own assertions serve the main thread only
} worker;

#define BLAME(w, ...)                                                                                                  \
  do {                                                                                                                 \
    if (!(w)->failure[0]) snprintf((w)->failure, sizeof(w)->failure, __VA_ARGS__);                                     \
  } while (0)

static void *work(void *arg) {
  worker *w = arg;
  w->body(w);
  return NULL;
}

static void on_threads(void (*body)(worker *)) {
  worker all[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) {
    all[i] = (worker){.id = i, .body = body};
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) ck_assert_msg(!all[i].failure[0], "thread %d: %s", i, all[i].failure);
}

static void compare(worker *w, const uint32_t *words) {
  for (uint32_t i = 0; i < WORDS; i++)
    if (words[i] != expected[i]) {
      BLAME(w, "word %u is %u, expected %u", i, words[i], expected[i]);
      return;
    }
}

// --- launches in contexts of their own
// --------------------------------------------------------------------------------

static void launch(worker *w, const char *ptx, kl_launch l, kl_fault *fault, uint32_t *words) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  uint64_t address = 0;
  kl_memory_init(&m, cx, UINT64_MAX);
  if (kl_memory_alloc(&m, 4 * WORDS, KL_REGION_USER, KL_STR(""), &address) ||
      kl_load(cx, &m, "k.ptx", kl_str_of(ptx), &loaded) || kl_kernel_prepare(cx, loaded, KL_STR("k"), &k)) {
    BLAME(w, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "no memory");
  } else {
    l.kernel = k;
    l.grid[0] = BLOCKS, l.grid[1] = l.grid[2] = 1;
    l.block[0] = WIDE, l.block[1] = l.block[2] = 1;
    l.params = &address;
    kiln_status s = kl_launch_run(cx, &m, &l, fault);
    if (s != (ptx == right ? KILN_OK : KILN_E_DEVICE)) BLAME(w, "status %d", s);
    memcpy(words, kl_memory_at(&m, address, 4 * WORDS), 4 * WORDS);
  }
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}

static void launches_of(worker *w) {
  static uint32_t words[THREADS][WORDS];
  for (unsigned n = 0; n < launches(); n++) {
    kl_fault fault;
    launch(w, right, (kl_launch){.workers = WORKERS, .shuffle = n}, &fault, words[w->id]);
    compare(w, words[w->id]);
  }
}

START_TEST(launches_over_workers) {
  on_threads(launches_of);
}
END_TEST

// Whichever worker is first, and in whatever order blocks run, the lowest block's fault is told.
static void faults_of(worker *w) {
  static uint32_t words[THREADS][WORDS];
  for (unsigned n = 0; n < launches(); n++) {
    kl_fault fault = {0};
    launch(w, failing, (kl_launch){.workers = WORKERS, .shuffle = n}, &fault, words[w->id]);
    if (fault.kind != KL_FAULT_ADDRESS || fault.block[0] != 9 || fault.thread[0] != 9)
      BLAME(w, "fault %d of block %u, thread %u", fault.kind, fault.block[0], fault.thread[0]);
  }
}

START_TEST(faults_on_workers) {
  on_threads(faults_of);
}
END_TEST

// --- the driver
// -------------------------------------------------------------------------------------------------------

static CUcontext context;
static CUfunction function;

static void drives(worker *w) {
  static uint32_t words[THREADS][WORDS];
  CUstream s = NULL;
  CUdeviceptr p = 0;
  CUresult code = cu.cuCtxSetCurrent(context);
  if (!code) code = cu.cuStreamCreate(&s, 0);
  if (!code) code = cu.cuMemAlloc_v2(&p, 4 * WORDS);
  for (unsigned n = 0; n < launches() && !code; n++) {
    void *params[] = {&p};
    memset(words[w->id], 0, sizeof words[w->id]);
    code = cu.cuMemcpyHtoD_v2(p, words[w->id], 4 * WORDS);
    if (!code) code = cu.cuLaunchKernel(function, BLOCKS, 1, 1, WIDE, 1, 1, 0, s, params, NULL);
    if (!code) code = cu.cuStreamSynchronize(s);
    if (!code) code = cu.cuMemcpyDtoH_v2(words[w->id], p, 4 * WORDS);
    if (!code) compare(w, words[w->id]);
  }
  if (!code) code = cu.cuMemFree_v2(p);
  if (code) BLAME(w, "error %d", code);
}

START_TEST(the_driver_from_all_sides) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_sim_params params = {.struct_size = sizeof params, .workers = WORKERS};
  ck_assert_int_eq(kiln_sim_configure(cx, &params), KILN_OK);
  cu_begin();
  WORKS(cu.cuCtxGetCurrent(&context));
  function = cu_function(cu_module(right), "k");
  on_threads(drives);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  expect();
  return RUN_TESTS("simulator threads", NO_FRAME, {launches_over_workers}, {faults_on_workers},
                   {the_driver_from_all_sides});
}

// Runs anything that is PTX, on two blocks of 40 threads. Whatever a kernel does, it ends, or the launch with it;
// nothing outside its memory is touched; a second time, under all checks, gives the same status, the same words about a
// fault and the same bytes.
#include "mutate.h"
#include "sim/check/checks.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { BUFFER = 1024, MOST_PARAMS = 4096 };

// What one time gives: a hash of the bytes and texts.
typedef struct outcome {
  kiln_status status;
  uint64_t hash;
} outcome;

static void add(outcome *o, const void *p, size_t n) {
  o->hash = kl_hash(p, n, o->hash);
}

static void run_kernel(kl_ctx *cx, kl_memory *m, kl_loaded *l, kl_str name, uint64_t buffer, bool checked, outcome *o) {
  static char params[MOST_PARAMS];
  kl_kernel *k = NULL;
  kl_fault fault;
  kiln_status s = kl_kernel_prepare(cx, l, name, &k);
  add(o, &s, sizeof s);
  if (s) return;
  kl_kernel_facts f = kl_kernel_describe(k);
  if (f.param_bytes > sizeof params || f.shared_bytes > 65536) return;
  for (size_t at = 0; at + 8 <= sizeof params; at += 8) memcpy(params + at, &buffer, 8);
  kl_launch launch = {.kernel = k,
                      .grid = {2, 1, 1},
                      .block = {40, 1, 1},
                      .dynamic_shared = 64,
                      .params = params,
                      .workers = 1,
                      .most_branches = 500};
  if (checked) {
    kl_checks c;
    kl_checks_init(&c, cx, m, KL_CHECK_ALL);
    kl_checks_use(&c, buffer, BUFFER, KL_USE_OUTPUT);
    s = kl_checks_run(&c, &launch, &fault);
    for (size_t i = 0; i < c.report.found.n; i++) {
      kl_sb text;
      kl_sb_init(&text, cx);
      kl_report_put(&text, &c.report.found.p[i]);
      kl_sb_free(&text);
    }
    kl_checks_free(&c);
  } else {
    s = kl_launch_run(cx, m, &launch, &fault);
  }
  add(o, &s, sizeof s);
}

static outcome run(const uint8_t *data, size_t size, bool checked) {
  kl_ctx *cx = kiln_context_create(NULL);
  outcome o = {0};
  kl_memory m;
  kl_loaded *l = NULL;
  uint64_t buffer = 0;
  kl_limit_memory(cx, (uint64_t)256 << 20);
  kl_memory_init(&m, cx, (uint64_t)1 << 26);
  if (kl_memory_alloc(&m, BUFFER, KL_REGION_USER, KL_STR("buffer"), &buffer) != KILN_OK) abort();
  o.status = kl_load(cx, &m, "input", (kl_str){(const char *)data, size}, &l);
  if (o.status == KILN_OK) {
    const kl_ptx_module *p = kl_loaded_ptx(l);
    for (uint32_t k = 0; k < p->nfuncs && k < 8; k++)
      if (p->funcs[k].entry && p->funcs[k].defined) run_kernel(cx, &m, l, p->funcs[k].name, buffer, checked, &o);
    add(&o, kl_memory_at(&m, buffer, BUFFER), BUFFER);
    kl_unload(cx, l);
  }
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) {
    const char *text = kiln_diagnostics_get(cx, i)->text;
    add(&o, text, strlen(text));
  }
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
  return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  outcome one = run(data, size, false), two = run(data, size, true);
  if (one.status != two.status || one.hash != two.hash) {
    fprintf(stderr, "two runs differ\n");
    abort();
  }
  return 0;
}

// --- mutations ----------------------------------------------------------------------------------------------------

static void change_word(kl_mutation *m) {
  static const char *const words[] = {
      "%r1",
      "%r2",
      "%r9",
      "%r39",
      "%rd1",
      "%rd2",
      "%rd19",
      "%h1",
      "%f3",
      "%p1",
      "!%p2",
      "@%p3",
      "0",
      "1",
      "4",
      "7",
      "31",
      "32",
      "64",
      "-1",
      "-4",
      "1020",
      "4096",
      "0x7fffffff",
      "0xffffffff",
      "0x100000000",
      "0x200000000",
      "0x300000004",
      "0x10000000000",
      "0x7fffffffffffffff",
      ".u8",
      ".s8",
      ".u16",
      ".b16",
      ".s32",
      ".u32",
      ".b32",
      ".f32",
      ".u64",
      ".b64",
      ".f64",
      ".b128",
      ".v2",
      ".v4",
      ".global",
      ".shared",
      ".local",
      ".param",
      ".const",
      ".volatile",
      ".sync",
      ".sat",
      ".ftz",
      ".rz",
      "add",
      "ld",
      "st",
      "bra",
      "call",
      "ret",
      "exit",
      "trap",
      "mov",
      "cvt",
      "shl",
      "atom",
      "[%rd1]",
      "[%rd1+4]",
      "[%r5]",
      "[s]",
      "[l+8]",
      "[p]",
      "{%r1, %r2}",
      "%r1|%p1",
      "_",
      "L",
      "M",
      "s",
      "d",
      "l",
      "%laneid",
      "%clock",
      "%envreg1",
      "%lanemask_lt",
      "%is_explicit_cluster",
      "%reserved_smem_offset_1",
  };
  kl_replace_text(m, kl_any_token(m), words[kl_below(m, KL_COUNT(words))]);
}

static void add_line(kl_mutation *m) {
  static const char *const lines[] = {
      "L:\n",
      "M:\n",
      "bra L;\n",
      "@%p1 bra M;\n",
      "@!%p2 exit;\n",
      "bar.sync 0;\n",
      "bar.sync 1, 32;\n",
      "bar.arrive 2, 64;\n",
      "barrier.sync 3;\n",
      "bar.warp.sync %r9;\n",
      "@%p1 ret;\n",
      "activemask.b32 %r9;\n",
      "setp.lt.u32 %p1, %r2, 5;\n",
      "add.u64 %rd1, %rd1, %rd4;\n",
      "ld.global.v2.u64 {%rd6, %rd7}, [%rd1];\n",
      "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\n",
      "ld.u32 %r5, [%rd5];\n",
      "ld.local.u64 %rd6, [%rd7];\n",
      "atom.global.cas.b32 %r7, [%rd1], %r8, %r9;\n",
      "atom.add.f32 %f1, [%rd2], %f2;\n",
      "red.shared.and.b32 [%r5], %r6;\n",
      "shfl.sync.bfly.b32 %r5, %r6, %r7, %r8, %r9;\n",
      "match.all.sync.b64 %r5|%p4, %rd5, %r9;\n",
      "barrier.cluster.arrive;\n",
      "barrier.cluster.wait;\n",
      "nanosleep.u32 5;\n",
      "membar.gl;\n",
      "alloca.u64 %rd5, %rd6;\n",
      "stackrestore.u64 %rd5;\n",
      "mapa.u64 %rd5, %rd6, %r7;\n",
      "getctarank.shared::cluster.u32 %r5, %r6;\n",
      "cvta.to.shared.u64 %rd5, %rd6;\n",
      "isspacep.local %p5, %rd5;\n",
      "cp.async.cg.shared.global [%r5], [%rd1], 16, %r6;\n",
      "mov.b64 %rd5, {%r6, %r7};\n",
      "mov.b32 {%h1, _}, %r5;\n",
      "cvt.rni.sat.s8.f32 %r5, %f1;\n",
      "mov.u64 %rd5, k;\n",
      "mov.u64 %rd5, f;\n",
      "rem.s64 %rd5, %rd6, %rd7;\n",
      "fns.b32 %r5, %r6, %r7, %r8;\n",
      "prmt.b32.rc8 %r5, %r6, %r7, %r8;\n",
      "sin.approx.f32 %f1, %f2;\n",
      "mov.u64 %rd5, %globaltimer;\n",
      "griddepcontrol.wait;\n",
      "setmaxnreg.inc.sync.aligned.u32 24;\n",
  };
  kl_token at = kl_line_at(m, kl_any_token(m).begin);
  const char *line = lines[kl_below(m, KL_COUNT(lines))];
  kl_replace(m, at.begin, at.begin, line, strlen(line));
}

// Text that is nearly a kernel.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static void (*const kinds[])(kl_mutation *) = {change_word, change_word, add_line};
  if (seed % 32 == 0 && LLVMFuzzerMutate) return LLVMFuzzerMutate(data, size, max);
  return kl_mutate_text(data, size, max, seed, (kl_kinds){kinds, KL_COUNT(kinds)});
}

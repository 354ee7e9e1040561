// The checks of values and memory: kernels that are right but for one thing, each with what is found, and kernels that
// are right, in which nothing is.

#include "sim/check/checks.h"
#include "support/suite.h"

#include <stdio.h>

enum { WORDS = 1024 };

#define HEADER ".version 8.7\n.target sm_100a\n.address_size 64\n"
// A kernel of one block whose %rd1 is its thread's word of the output, %rd2 that of the input; %r1 its number.
#define BEGIN                                                                                                          \
  ".visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n"     \
  ".reg .b64 %rd<20>;\n.reg .f32 %f<9>;\n.reg .b128 %q<3>;\nmov.u32 %r1, %tid.x;\nld.param.u64 %rd3, [in];\n"          \
  "ld.param.u64 %rd4, [out];\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd1, %rd4, %rd5;\nadd.u64 %rd2, %rd3, %rd5;\n"
#define END        "ret;\n}\n"
#define K(body)    HEADER BEGIN body END
#define STORE(reg) "st.global.b32 [%rd1], " reg ";\n"
#define NOTHING    ((kl_found_kind)-1)
#define ADDRESS    KL_FOUND_UNDEFINED_ADDRESS
#define BRANCH     KL_FOUND_UNDEFINED_BRANCH
#define OUTPUT     KL_FOUND_UNDEFINED_OUTPUT
#define LEFT       KL_FOUND_NOT_WRITTEN
#define FAULT      KL_FOUND_FAULT

// --- one launch ---------------------------------------------------------------------------------------------------

typedef struct seen {
  kiln_context *cx;
  kl_memory memory;
  kl_loaded *loaded;
  kl_checks checks;
  kl_fault fault;
  kiln_status status;
  uint64_t in, out;
} seen;

// The input is written by the host, but for its last word; the output by nobody.
static void look(const char *ptx, uint32_t which, uint32_t grid, uint32_t threads, seen *s) {
  kl_kernel *k = NULL;
  memset(s, 0, sizeof *s);
  s->cx = kiln_context_create(NULL);
  kl_memory_init(&s->memory, s->cx, UINT64_MAX);
  ck_assert_int_eq(kl_memory_alloc(&s->memory, 4 * WORDS, KL_REGION_USER, KL_STR("in"), &s->in), KILN_OK);
  ck_assert_int_eq(kl_memory_alloc(&s->memory, 4 * threads * grid, KL_REGION_USER, KL_STR("out"), &s->out), KILN_OK);
  for (uint32_t n = 0; n < WORDS; n++) memcpy(kl_memory_at(&s->memory, s->in + 4 * n, 4), &n, 4);
  kl_memory_define(&s->memory, s->in, 4 * WORDS - 4);
  if (kl_load(s->cx, &s->memory, "k.ptx", kl_str_of(ptx), &s->loaded) ||
      kl_kernel_prepare(s->cx, s->loaded, KL_STR("k"), &k))
    ck_abort_msg("%s\n%s", kiln_diagnostics_get(s->cx, 0)->text, ptx);
  uint64_t params[] = {s->in, s->out};
  kl_launch l = {
      .kernel = k, .grid = {grid, 1, 1}, .block = {threads, 1, 1}, .params = params, .most_branches = 100000};
  kl_checks_init(&s->checks, s->cx, &s->memory, which);
  kl_checks_use(&s->checks, s->out, 4 * threads * grid, KL_USE_OUTPUT);
  s->status = kl_checks_run(&s->checks, &l, &s->fault);
}

static void forget(seen *s) {
  kl_checks_free(&s->checks);
  kl_unload(s->cx, s->loaded);
  kl_memory_free(&s->memory);
  kiln_context_destroy(&s->cx);
}

static const char *line_of(const char *ptx, uint32_t line, char *out, size_t room) {
  for (uint32_t n = 1; n < line; n++) ptx = strchr(ptx, '\n') + 1;
  snprintf(out, room, "%.*s", (int)strcspn(ptx, "\n"), ptx);
  return out;
}

static const char *text_of(const seen *s, const char *ptx) {
  static char all[4096];
  char line[256];
  all[0] = 0;
  for (size_t k = 0; k < s->checks.report.found.n && k < 8; k++) {
    const kl_found *f = &s->checks.report.found.p[k];
    kl_sb b;
    kl_sb_init(&b, s->cx);
    kl_report_put(&b, f);
    snprintf(all + strlen(all), sizeof all - strlen(all), "[%s: %s] ",
             f->at.instr ? line_of(ptx, f->at.instr->at.line, line, sizeof line) : "", b.p);
    kl_sb_free(&b);
  }
  return all;
}

// --- what is found ------------------------------------------------------------------------------------------------

static const struct {
  const char *ptx;
  kl_found_kind kind; // NOTHING
  const char *line;   // the finding's line begins so; NULL: it has none
  uint32_t thread;
  uint64_t times;
} rows[] = {
    // registers
    {K(STORE("%r1")), NOTHING, NULL, 0, 0},
    {K(STORE("%r9")), OUTPUT, "st.global.b32 [%rd1], %r9", 0, 32},
    {K("setp.eq.u32 %p1, %r9, 0;\n@%p1 bra L;\nL:\n" STORE("%r1")), BRANCH, "@%p1 bra", 0, 32},
    {K("setp.eq.u32 %p1, %r9, 0;\nselp.b32 %r2, 1, 1, %p1;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("setp.eq.u32 %p1, %r9, 0;\nselp.b32 %r2, 1, 2, %p1;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("mov.u32 %r2, 5;\n@%p1 mov.u32 %r2, 6;\n" STORE("%r2")), BRANCH, "@%p1 mov", 0, 32},
    {K("setp.lt.u32 %p1, %r1, 20;\n@%p1 mov.u32 %r2, 6;\n" STORE("%r2")), OUTPUT, "st.global", 20, 12},
    {K("setp.lt.u32 %p1, %r1, 20;\n@!%p1 bra L;\nmov.u32 %r2, 6;\nL:\n" STORE("%r2")), OUTPUT, "st.global", 20, 12},
    {K("setp.lt.u32 %p1, %r1, 20;\nmov.u32 %r3, 7;\nadd.u32 %r4, %r3, 1;\n@!%p1 bra L;\nadd.u32 %r2, %r4, "
       "6;\nL:\n" STORE("%r2")),
     OUTPUT, "st.global", 20, 12},
    {K("add.u64 %rd7, %rd1, %rd9;\nst.global.b32 [%rd7], %r1;\n"), ADDRESS, "st.global.b32 [%rd7]", 0, 32},
    {K("ld.global.b32 %r2, [%rd9];\n" STORE("%r1")), ADDRESS, "ld.global.b32 %r2", 0, 32},
    {K("and.b32 %r2, %r9, 0;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("and.b32 %r2, %r9, 1;\nshl.b32 %r2, %r2, 31;\nshl.b32 %r2, %r2, 1;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("or.b32 %r2, %r9, -1;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("xor.b32 %r2, %r9, %r9;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("bfi.b32 %r2, %r1, %r9, 0, 32;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("mov.b32 %r2, {%h1, %h2};\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nand.b32 %r2, %r2, 0xffff;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nshl.b32 %r2, %r2, 16;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nadd.u32 %r2, %r2, 1;\nand.b32 %r2, %r2, 0xffff;\n" STORE("%r2")),
     NOTHING, NULL, 0, 0},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nprmt.b32 %r2, %r2, 0, 0x1010;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nprmt.b32 %r2, %r2, 0, 0x1210;\n" STORE("%r2")), OUTPUT, "st.global",
     0, 32},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nmov.b32 {%h3, %h4}, %r2;\ncvt.u32.u16 %r3, %h3;\n" STORE("%r3")),
     NOTHING, NULL, 0, 0},
    {K("add.cc.u32 %r2, %r9, 1;\naddc.u32 %r3, %r1, 0;\n" STORE("%r3")), OUTPUT, "st.global", 0, 32},
    {K("add.cc.u32 %r2, %r1, 1;\naddc.u32 %r3, %r1, 0;\n" STORE("%r3")), NOTHING, NULL, 0, 0},
    {K("lop3.b32 %r2, %r1, %r9, %r1, 0xf0;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("lop3.b32 %r2, %r1, %r9, %r1, 0xe8;\n" STORE("%r2")), NOTHING, NULL, 0, 0}, // of three bits, two are known alike
    {K("cvt.rn.f32.u32 %f1, %r9;\nst.global.f32 [%rd1], %f1;\n"), OUTPUT, "st.global.f32", 0, 32},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nbfe.u32 %r2, %r2, 4, 12;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nbfe.u32 %r2, %r2, 4, 13;\n" STORE("%r2")), OUTPUT, "st.global", 0,
     32},
    {K("mov.b16 %h1, 3;\nmov.b32 %r2, {%h1, %h2};\nbfi.b32 %r2, %r1, %r2, 16, 16;\n" STORE("%r2")), NOTHING, NULL, 0,
     0},
    {K("shf.l.wrap.b32 %r2, %r9, %r1, 0;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("cvt.rn.f32.u32 %f1, %r1;\ncvt.rs.satfinite.e4m3x4.f32 %r2, {%f1, %f1, %f1, %f1}, %r1;\n" STORE("%r2")), NOTHING,
     NULL, 0, 0},
    {K("cvt.rn.f32.u32 %f1, %r1;\ncvt.rs.satfinite.e4m3x4.f32 %r2, {%f1, %f1, %f1, %f1}, %r9;\n" STORE("%r2")), OUTPUT,
     "st.global", 0, 32},
    // memory
    {K("ld.global.b32 %r2, [%rd2];\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("ld.global.b32 %r2, [%rd3+4092];\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("ld.global.b32 %r2, [%rd3+4092];\nadd.u32 %r2, %r2, 1;\n" STORE("%r1")), NOTHING, NULL, 0, 0},
    {K("ld.global.b32 %r2, [%rd1];\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K(STORE("%r9") STORE("%r1")), NOTHING, NULL, 0, 0}, // written over
    {K("ld.global.u8 %r2, [%rd3+4092];\nand.b32 %r2, %r2, 0xff00;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("ld.global.s8 %r2, [%rd3+4092];\nand.b32 %r2, %r2, 0xff00;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("ld.global.v2.b32 {%r2, %r3}, [%rd3+4088];\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("ld.global.v2.b32 {%r2, %r3}, [%rd3+4088];\n" STORE("%r3")), OUTPUT, "st.global", 0, 32},
    {HEADER ".shared .align 4 .b8 s[128];\n" BEGIN
            "mov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r5, %r5, %r6;\nst.shared.b32 [%r5], %r1;\nbar.sync 0;\n"
            "ld.shared.b32 %r2, [%r5];\n" STORE("%r2") END,
     NOTHING, NULL, 0, 0},
    {HEADER ".shared .align 4 .b8 s[128];\n" BEGIN
            "mov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r5, %r5, %r6;\nsetp.ne.u32 %p1, %r1, 7;\n"
            "@%p1 st.shared.b32 [%r5], %r1;\nbar.sync 0;\nld.shared.b32 %r2, [%r5];\n" STORE("%r2") END,
     OUTPUT, "st.global", 7, 1},
    {HEADER ".global .align 4 .b8 g[128];\n" BEGIN "ld.global.b32 %r2, [g];\n" STORE("%r2") END, NOTHING, NULL, 0, 0},
    {HEADER BEGIN ".local .align 4 .b8 l[16];\nst.local.b32 [l], %r1;\nld.local.b32 %r2, [l];\n" STORE("%r2") END,
     NOTHING, NULL, 0, 0},
    {HEADER BEGIN ".local .align 4 .b8 l[16];\nst.local.b32 [l], %r1;\nld.local.b32 %r2, [l+4];\n" STORE("%r2") END,
     OUTPUT, "st.global", 0, 32},
    {HEADER BEGIN "stacksave.u64 %rd8;\nalloca.u64 %rd9, 16, 16;\nst.local.b32 [%rd9], %r1;\nstackrestore.u64 %rd8;\n"
                  "alloca.u64 %rd9, 16, 16;\nld.local.b32 %r2, [%rd9];\n" STORE("%r2") END,
     OUTPUT, "st.global", 0, 32},
    {HEADER BEGIN
     ".shared .align 4 .b8 s[512];\nshl.b32 %r6, %r1, 2;\nmov.u32 %r5, s;\nadd.u32 %r5, %r5, %r6;\n"
     "cp.async.ca.shared.global [%r5], [%rd2], 4;\ncp.async.wait_all;\nld.shared.b32 %r2, [%r5];\n" STORE("%r2") END,
     NOTHING, NULL, 0, 0},
    {HEADER BEGIN ".shared .align 4 .b8 s[512];\nshl.b32 %r6, %r1, 2;\nmov.u32 %r5, s;\nadd.u32 %r5, %r5, %r6;\n"
                  "cp.async.ca.shared.global [%r5], [%rd3+4092], 4;\ncp.async.wait_all;\nld.shared.b32 %r2, "
                  "[%r5];\n" STORE("%r2") END,
     OUTPUT, "st.global", 0, 32},
    {HEADER BEGIN
     ".shared .align 4 .b8 s[4];\nst.shared.b32 [s], 0;\nbar.sync 0;\natom.shared.add.u32 %r2, [s], 1;\n" STORE("%r2")
         END,
     NOTHING, NULL, 0, 0},
    {HEADER BEGIN ".shared .align 4 .b8 s[4];\natom.shared.add.u32 %r2, [s], 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra "
                  "L;\nL:\n" STORE("%r1") END,
     BRANCH, "@%p1 bra", 0, 32},
    {HEADER BEGIN ".shared .align 4 .b8 s[4];\natom.shared.add.u32 %r2, [s], 1;\n" STORE("%r2") END, OUTPUT,
     "st.global", 0, 32},
    {K("atom.global.exch.b32 %r2, [%rd1], %r1;\n"), NOTHING, NULL, 0, 0},
    {K("red.global.add.u32 [%rd1], %r1;\n"), OUTPUT, "red.global", 0, 32},
    // what lanes do together
    {K("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    {K("setp.ne.u32 %p1, %r1, 5;\n@%p1 mov.u32 %r3, 1;\nshfl.sync.bfly.b32 %r2, %r3, 1, 31, -1;\n" STORE("%r2")),
     OUTPUT, "st.global", 4, 1},
    {K("vote.sync.ballot.b32 %r2, %p1, -1;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("redux.sync.add.u32 %r2, %r9, -1;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("bar.warp.sync %r9;\n" STORE("%r1")), BRANCH, "bar.warp.sync", 0, 32},
    {K("bar.red.popc.u32 %r2, 0, %p1;\n" STORE("%r2")), OUTPUT, "st.global", 0, 32},
    {K("setp.eq.u32 %p1, %r1, 0;\nbar.red.popc.u32 %r2, 0, %p1;\n" STORE("%r2")), NOTHING, NULL, 0, 0},
    // calls
    {HEADER ".func (.param .b32 y) f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nadd.u32 %r2, %r1, 1;\n"
            "st.param.b32 [y], %r2;\nret;\n}\n" BEGIN
            "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall.uni (b), f, (a);\nld.param.b32 %r2, "
            "[b];\n}\n" STORE("%r2") END,
     NOTHING, NULL, 0, 0},
    {HEADER ".func (.param .b32 y) f(.param .b32 x) {\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nadd.u32 %r2, %r1, 1;\n"
            "st.param.b32 [y], %r2;\nret;\n}\n" BEGIN
            "{\n.param .b32 a;\n.param .b32 b;\ncall.uni (b), f, (a);\nld.param.b32 %r2, [b];\n}\n" STORE("%r2") END,
     OUTPUT, "st.global", 0, 32},
    {HEADER ".func (.param .b32 y) f() {\n.reg .b32 %r<3>;\nst.param.b32 [y], %r1;\nret;\n}\n" BEGIN
            "{\n.param .b32 b;\ncall.uni (b), f, ();\nld.param.b32 %r2, [b];\n}\n" STORE("%r2") END,
     OUTPUT, "st.global", 0, 32},
    // outputs that are not written
    {K(""), LEFT, NULL, 0, 1},
    {K("setp.lt.u32 %p1, %r1, 20;\n@%p1 " STORE("%r1")), LEFT, NULL, 0, 1},
    {K("st.global.b8 [%rd1], %r1;\nst.global.b16 [%rd1+2], %r1;\nst.global.b8 [%rd1+1], %r1;\n"), NOTHING, NULL, 0, 0},
    // faults
    {K(STORE("%r1") "ld.global.b32 %r2, [%rd4+132];\n"), FAULT, "ld.global", 0, 1},
};

START_TEST(finds) {
  seen s;
  look(rows[_i].ptx, KL_CHECK_ALL, 1, 32, &s);
  const kl_report *r = &s.checks.report;
  const char *text = text_of(&s, rows[_i].ptx);
  char line[256];
  EXPECT(s.status == (rows[_i].kind == FAULT ? KILN_E_DEVICE : KILN_OK) ||
             (rows[_i].kind == ADDRESS && s.status == KILN_E_DEVICE),
         "status %d: %s", s.status, text);
  if (rows[_i].kind == NOTHING) {
    EXPECT(r->found.n == 0, "row %d: %s\n%s", _i, text, rows[_i].ptx);
  } else {
    EXPECT(r->found.n >= 1, "row %d: nothing found in\n%s", _i, rows[_i].ptx);
    const kl_found *f = &r->found.p[0];
    EXPECT(f->kind == rows[_i].kind && f->times == rows[_i].times && f->at.thread[0] == rows[_i].thread, "row %d: %s",
           _i, text);
    const char *at = f->at.instr ? line_of(rows[_i].ptx, f->at.instr->at.line, line, sizeof line) : NULL;
    EXPECT((at == NULL) == (rows[_i].line == NULL) && (!at || strncmp(at, rows[_i].line, strlen(rows[_i].line)) == 0),
           "row %d: %s", _i, text);
  }
  forget(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("checks: values", NO_FRAME, {finds, KL_COUNT(rows)});
}

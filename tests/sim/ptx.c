// PTX text: what parses holds what it should and prints as it should, what does not is told exactly, and nothing in
// between hurts.
//
// The values of constant expressions and initial values are those that NVIDIA's assembler puts into its output.
#include "sim/ptx/ptx.h"
#include "support/slow.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

typedef struct malformed_case {
  const char *text;
  size_t size;
  int kind;
  uint32_t line, column;
  size_t findings;
  kiln_status status;
  const char *message;
} malformed_case;
#define TEXT(s)   s, sizeof(s) - 1, 0
#define MODULE(s) s, sizeof(s) - 1, 1
#define BODY(s)   s, sizeof(s) - 1, 2
#include "malformed/ptx.h"

#define HEAD     ".version 8.0\n.target sm_90\n.address_size 64\n"
#define HEAD_OUT HEAD "\n"

static kiln_context *cx;

static void setup(void) {
  cx = kiln_context_create(NULL);
}

static void teardown(void) {
  kiln_context_destroy(&cx);
}

static const char *first_text(void) {
  return kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "";
}

static kl_ptx_module *parse_n(const char *text, size_t n) {
  kl_ptx_module *m = NULL;
  kiln_status s = kl_ptx_parse(cx, "test", (kl_str){text, n}, &m);
  EXPECT(s == KILN_OK && m, "%s\n%s", first_text(), n < 3000 ? text : "");
  return m;
}

static kl_ptx_module *parse(const char *text) {
  return parse_n(text, strlen(text));
}

// Prints, checks that the text is a fixed point, frees the module; the caller frees the text.
static kl_sb canonical(kl_ptx_module *m) {
  kl_sb text, again;
  kl_sb_init(&text, cx);
  kl_sb_init(&again, cx);
  kl_ptx_print(&text, m);
  kl_ptx_free(cx, m);
  m = parse_n(text.p, text.n);
  kl_ptx_print(&again, m);
  kl_ptx_free(cx, m);
  EXPECT(again.n == text.n && memcmp(again.p, text.p, text.n) == 0, "%s\n--- again\n%s", text.p, again.p);
  kl_sb_free(&again);
  return text;
}

// --- what is printed ----------------------------------------------------------------------------------------------

// clang-format off
static const char *const modules[][2] = {
  {HEAD "", HEAD_OUT},
  {".version 6.0\n.target sm_75\n", ".version 6.0\n.target sm_75\n.address_size 64\n\n"},
  {"/* a\n */ .version 9.3 // b\n.target compute_100a , debug\n.address_size 64", ".version 9.3\n.target compute_100a , debug\n.address_size 64\n\n"},
  {HEAD ".file 2 \"b.cu\", 1, 2\n.file 1 \"a.cu\"\n.pragma \"nounroll\", \"x\";", HEAD_OUT ".file 1 \"a.cu\"\n.file 2 \"b.cu\"\n.pragma \"nounroll\";\n.pragma \"x\";\n"},
  {HEAD ".section .debug_str { L: .b8 1, 2 .b32 L+4, -1 }\n@@DWARF .byte 1, { \"\n", HEAD_OUT},
  // variables
  {HEAD ".global .u32 a, b[3], c[2][3]; .const .align 16 .f64 d; .visible .shared .v2 .u16 e[4]; .weak .global .b128 f;",
   HEAD_OUT ".global .u32 a;\n.global .u32 b[3];\n.global .u32 c[6];\n.const .align 16 .f64 d;\n.visible .shared .align 4 .u16 e[8];\n.weak .global .b128 f;\n"},
  {HEAD ".extern .shared .align 8 .b8 a[]; .extern .shared .b32 b[0]; .const[3] .f32 c; .common .global .attribute(.managed, .unified(1, 0x2)) .u8 d;",
   HEAD_OUT ".extern .shared .align 8 .b8 a[];\n.extern .shared .b32 b[];\n.const [3] .f32 c;\n.common .global .u8 d;\n"},
  {HEAD ".extern .global .u32 a[]; .extern .global .u32 a[4]; .visible .global .u32 a[4] = {1}; .extern .global .u32 a[];",
   HEAD_OUT ".extern .global .u32 a[4];\n.visible .global .u32 a[4] = {1};\n"},
  {HEAD ".extern .global .u64 b; .global .u64 a = b; .visible .global .u64 b = a;",
   HEAD_OUT ".extern .global .u64 b;\n.global .u64 a = b;\n.visible .global .u64 b = a;\n"},
  {HEAD ".entry k(); .func f(); .global .u64 a[] = {f, k}; .global .u32 b = a; .entry k() {}",
   HEAD_OUT ".func f();\n.entry k();\n.global .u64 a[2] = {f, k};\n.global .u32 b = a;\n\n.entry k()\n{\n}\n"},
  {HEAD ".global .u32 a; .const .u8 b[4] = {0xff(a), 0xFF00(a+4), 0xff0000(generic(a)+-8), 7}; .global .u64 c[3] = {generic(a)+2*4, a, 0};",
   HEAD_OUT ".global .u32 a;\n.const .u8 b[4] = {0xff(a), 0xff00(a+4), 0xff0000(generic(a)+-8), 7};\n.global .u64 c[3] = {generic(a)+8, a};\n"},
  {HEAD ".global .f32 a[2] = {1.5, 0f3f800000}, b = 1e60; .global .f64 c = .5e1; .global .b32 d = 1.5; .global .s8 e[4] = {-1, 300};",
   HEAD_OUT ".global .f32 a[2] = {0f3fc00000, 0f3f800000};\n.global .f32 b = 0f7f800000;\n.global .f64 c = 0d4014000000000000;\n.global .b32 d = 1069547520;\n.global .s8 e[4] = {255, 44};\n"},
  // functions
  {HEAD ".extern .func (.param .b32 r) g(.param .b64 a, .param .align 4 .b8 v[]); .weak .func f() .noreturn .unique .abi_preserve 0 .abi_preserve_control 3;",
   HEAD_OUT ".extern .func (.param .b32 r) g(.param .b64 a, .param .align 4 .b8 v[]);\n.weak .func f() .noreturn .unique .abi_preserve 0 .abi_preserve_control 3;\n"},
  {HEAD ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u64 .ptr q, .param .align 8 .b8 s[24])\n.maxntid 32, 2 .minnctapersm 2 .maxnctapersm 3 .maxnreg 64 .pragma \"x\"; .explicitcluster { ret; }",
   HEAD_OUT "\n.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u64 .ptr q, .param .align 8 .b8 s[24]) .maxntid 32, 2, 1 .minnctapersm 2 .maxnctapersm 3 .maxnreg 64 .explicitcluster .pragma \"x\";\n{\n  ret;\n}\n"},
  {HEAD ".entry k .reqntid 8 .reqnctapercluster 2, 1 .blocksareclusters { } .entry l() .maxclusterrank 8 {}",
   HEAD_OUT "\n.entry k() .reqntid 8, 1, 1 .reqnctapercluster 2, 1, 1 .blocksareclusters\n{\n}\n\n.entry l() .maxclusterrank 8\n{\n}\n"},
  {HEAD ".func g(.param .u32 x); .entry k() { ret; } .visible .func g(.param .u32 y) { ret; } .func h(.param .u32 z); .alias h, g;",
   HEAD_OUT ".visible .func g(.param .u32 y);\n.func h(.param .u32 z);\n\n.visible .func g(.param .u32 y)\n{\n  ret;\n}\n\n.entry k()\n{\n  ret;\n}\n.alias h, g;\n"},
  {HEAD ".visible .func g(); .func g(); .func g() { } .weak .func h(); .visible .func h() { }",
   HEAD_OUT ".visible .func g();\n.weak .func h();\n\n.visible .func g()\n{\n}\n\n.weak .func h()\n{\n}\n"},
  {HEAD ".func (.reg .u32 r, .reg .f64 s) f(.reg .pred p, .param .b32 x) { .reg .b32 q; mov.u32 r, q; @p ret; }",
   HEAD_OUT ".func (.reg .u32 r, .reg .f64 s) f(.reg .pred p, .param .b32 x);\n\n.func (.reg .u32 r, .reg .f64 s) f(.reg .pred p, .param .b32 x)\n{\n  .reg .b32 q;\n  mov.u32 r, q;\n  @p ret;\n}\n"},
};

// Bodies, with what they print as. There are:
//   .global .u32 g[4]; .func (.param .b32 r) f(.param .b32 x);
//   .entry k(.param .u64 q) { .reg .pred p, s; .reg .b32 %r<9>, a; .reg .b64 %rd<3>; .reg .v4 .f32 v<2>; .reg .v2 .b64 w;
static const char *const bodies[][2] = {
  {"ret;", "ret;"},
  {"ld .global .u32 a , [ g + 4 ] ;", "ld.global.u32 a, [g+4];"},
  {"ld.global.L1::no_allocate.L2::128B.v2.b32 {%r1, _}, [%rd1+-16];", "ld.global.L1::no_allocate.L2::128B.v2.b32 {%r1, _}, [%rd1+-16];"},
  {"ld.local.u32 a, [4+4*3]; ld.param.u64 %rd1, [q+8-4];", "ld.local.u32 a, [16];\n  ld.param.u64 %rd1, [q+4];"},
  {"ld.global.u32 a, g[2]; mov.u64 %rd1, g[-1]; mov.u64 %rd2, g+4*(2+1); mov.u64 %rd2, g-4;", "ld.global.u32 a, g[2];\n  mov.u64 %rd1, g[-1];\n  mov.u64 %rd2, g+12;\n  mov.u64 %rd2, g+-4;"},
  {"@p add.s32 a, -1, WARP_SZ-1; @ ! s mov.f32 v1.y, 0F3f800000;", "@p add.s32 a, -1, 31;\n  @!s mov.f32 v1.y, 0f3f800000;"},
  {"mov.f64 w.x, 1e5; mov.f64 w.g, .5; mov.b64 w.y, -0d3ff0000000000000;", "mov.f64 w.x, 0d40f86a0000000000;\n  mov.f64 w.y, 0d3fe0000000000000;\n  mov.b64 w.y, 0dbff0000000000000;"},
  {"st.global.v4.f32 [%rd0], v0; mov.v4.f32 v1, {v0.x, v0.r, v0.w, 0f00000000};", "st.global.v4.f32 [%rd0], {v0.x, v0.y, v0.z, v0.w};\n  mov.v4.f32 {v1.x, v1.y, v1.z, v1.w}, {v0.x, v0.x, v0.w, 0f00000000};"},
  {"mov.u32 a, %tid.x; mov.u32 a, %tid /**/ .y; mov.u32 a, %envreg31; mov.u64 %rd1, %pm7_64; mov.u32 a, %reserved_smem_offset_1;",
   "mov.u32 a, %tid.x;\n  mov.u32 a, %tid.y;\n  mov.u32 a, %envreg31;\n  mov.u64 %rd1, %pm7_64;\n  mov.u32 a, %reserved_smem_offset_1;"},
  {"setp.lt.and.s32 p|s, a, -5, !p; setp.eq.s32 p|_, a, 1; setp.eq.s32 _|p, a, 18446744073709551615;", "setp.lt.and.s32 p|s, a, -5, !p;\n  setp.eq.s32 p|_, a, 1;\n  setp.eq.s32 _|p, a, 18446744073709551615;"},
  {"vadd.u32.u32.s32 a, %r1.b0, -%r2.h1; mov.b32 a, 1 ? 2 : 3;", "vadd.u32.u32.s32 a, %r1.b0, -%r2.h1;\n  mov.b32 a, 2;"},
  {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2, {a, %r0}], [%rd0+8];", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2, {a, %r0}], [%rd0+8];"},
  {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {a, %r1}, %rd1, %rd2, p, 1, -1, 0, 1;", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {a, %r1}, %rd1, %rd2, p, 1, -1, 0, 1;"},
  {"tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r0, %r1, %r2, %r3}, [a];", "tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r0, %r1, %r2, %r3}, [a];"},
  // calls
  {"call.uni (a), f, (%r1, (1+2), q); call f; call f, (); call %rd1;", "call.uni (a), f, (%r1, 3, q);\n  call f;\n  call f, ();\n  call %rd1;"},
  {"P: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[12]) .abi_preserve 10; Q: .callprototype _; T: .calltargets f; call (a), %rd1, (%r1), P; call (a), %rd1, (%r1), T;",
   "P: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[12]) .abi_preserve 10;\n  Q: .callprototype _ ();\n  T: .calltargets f;\n  call (a), %rd1, (%r1), P;\n  call (a), %rd1, (%r1), T;"},
  // labels, tables, scopes
  {"A: t: .branchtargets A, L<2>, A; @p brx.idx a, t; L0: L1: bra.uni A; E:", "A:\n  t: .branchtargets A, L0, L1, A;\n  @p brx.idx a, t;\nL0:\nL1:\n  bra.uni A;\nE:"},
  {"L: { bra L; { bra L; L: } bra g; g: } g: bra g;", "L:\n  {\n    bra L;\n    {\n      bra L;\n    L:\n    }\n    bra g;\n  g:\n  }\ng:\n  bra g;"},
  {"{ .reg .f64 %r<2>, %r5; { .reg .b16 %r1; mov.b16 %r1, %r0; } mov.f64 %r5, %r1; mov.b32 %r2, 1; } mov.b32 %r1, %r5;", 
   "{\n    .reg .f64 %r<2>;\n    .reg .f64 %r5;\n    {\n      .reg .b16 %r1;\n      mov.b16 %r1, %r0;\n    }\n    mov.f64 %r5, %r1;\n    mov.b32 %r2, 1;\n  }\n  mov.b32 %r1, %r5;"},
  {"{ .reg .u32 x1, z<0>; .local .align 8 .b8 x[12]; .param .b32 y; .shared .u32 t; { } mov.u64 %rd1, x+4; st.param.b32 [y], x1; mov.u32 a, t; } { .param .b32 y; }",
   "{\n    .reg .u32 x1;\n    .reg .u32 z<0>;\n    .local .align 8 .b8 x[12];\n    .param .b32 y;\n    .shared .u32 t;\n    {\n    }\n    mov.u64 %rd1, x+4;\n    st.param.b32 [y], x1;\n    mov.u32 a, t;\n  }\n  {\n    .param .b32 y;\n  }"},
  {"{ mov.b32 %r1, a; .reg .b32 a; mov.b32 a, %r1; .reg .f32 %r<3>; mov.f32 %r1, 0f00000000; mov.b32 %r3, a; }",
   "{\n    mov.b32 %r1, a;\n    .reg .b32 a;\n    mov.b32 a, %r1;\n    .reg .f32 %r<3>;\n    mov.f32 %r1, 0f00000000;\n    mov.b32 %r3, a;\n  }"},
  {"T: .calltargets f; call %rd1, (), T; { .reg .b32 f, g; .pragma \"x\"; L: ret; }",
   "T: .calltargets f;\n  call %rd1, (), T;\n  {\n    .reg .b32 f;\n    .reg .b32 g;\n    .pragma \"x\";\n  L:\n    ret;\n  }"},
  {"L: { { bra L; } L: { .pragma \"x\"; ret; } } .pragma \"y\";",
   "L:\n  {\n    {\n      bra L;\n    }\n  L:\n    {\n      .pragma \"x\";\n      ret;\n    }\n  }\n  .pragma \"y\";"},
  {"L: .pragma \"nounroll\"; .pragma \"a\", \"b\"; bra L;", "L:\n  .pragma \"nounroll\";\n  .pragma \"a\";\n  .pragma \"b\";\n  bra L;"},
  {".loc 1 7 3\nadd.s32 a, a, 1; mov.b32 a, 1; .loc 1 8 3, function_name $L__s+4, inlined_at 1 7 3\nret; .loc 1 8 9, function_name .debug_str, inlined_at 1 7 3\nexit;",
   ".loc 1 7 0\n  add.s32 a, a, 1;\n  mov.b32 a, 1;\n  .loc 1 8 0\n  ret;\n  exit;"},
};
#define BODY_HEAD ".global .u32 g[4];\n.func (.param .b32 r) f(.param .b32 x);\n.entry k(.param .u64 q)\n{\n  .reg .pred p, s;\n  .reg .b32 %r<9>, a;\n  .reg .b64 %rd<3>;\n  .reg .v4 .f32 v<2>;\n  .reg .v2 .b64 w;\n  "
#define BODY_OUT  ".func (.param .b32 r) f(.param .b32 x);\n.global .u32 g[4];\n\n.entry k(.param .u64 q)\n{\n  .reg .pred p;\n  .reg .pred s;\n  .reg .b32 %r<9>;\n  .reg .b32 a;\n  .reg .b64 %rd<3>;\n  .reg .v4 .f32 v<2>;\n  .reg .v2 .b64 w;\n"
// clang-format on

START_TEST(module_prints) {
  kl_sb text = canonical(parse(modules[_i][0]));
  ck_assert_str_eq(text.p, modules[_i][1]);
  kl_sb_free(&text);
}
END_TEST

// Drivers take text that a NUL ends.
START_TEST(what_follows_a_nul_is_not_read) {
  kl_ptx_module *m = parse_n(HEAD "\0}", sizeof HEAD + 1);
  ck_assert_uint_eq(m->source.text.n, strlen(HEAD));
  kl_ptx_free(cx, m);
}
END_TEST

// The caller frees it.
static char *join(const char *head, const char *blanks, const char *body) {
  char *text = malloc(strlen(head) + strlen(blanks) + strlen(body) + 4);
  return strcat(strcat(strcat(strcpy(text, head), blanks), body), "\n}\n") ? text : NULL;
}

START_TEST(body_prints) {
  // Labels stand two columns to the left of what they name.
  bool label = strchr("ABCDEFGHIJKL", bodies[_i][1][0]) != NULL;
  char *in = join(HEAD BODY_HEAD, "", bodies[_i][0]), *want = join(HEAD_OUT BODY_OUT, label ? "" : "  ", bodies[_i][1]);
  kl_sb text = canonical(parse(in));
  ck_assert_str_eq(text.p, want);
  kl_sb_free(&text);
  free(in);
  free(want);
}
END_TEST

// --- values -------------------------------------------------------------------------------------------------------

// clang-format off
static const struct {
  const char *text;
  int64_t value;
} expressions[] = {
  {"7 % 3", 1}, {"(0-7) % 3", 0}, {"((0-7) % 3) < 0", 0}, {"(7%(0-3))>>1", 3}, {"(5 % 7 - 6) < 0", 0}, {"~5 < 0", 0},
  {"1<<64", 1}, {"1<<65", 2}, {"-1>>64", -1}, {"-1>>63", -1}, {"-8>>1", -4}, {"0-8>>1", -4},
  {"-8U>>1", INT64_MAX - 3}, {"(.s64)(-8U)>>1", -4}, {"1?-1:1U", -1}, {"(5&-1)<(0-1)", 0},
  {"((0-1)&(0-1))<0", 1}, {"((0-1)|(0-1))<0", 1}, {"((0-1)^0)<0", 1}, {"7/(0-2)", -3}, {"(1<2)<3", 1}, {"!5", 0},
  {"!!5", 1}, {"2&&0", 0}, {"0||3", 1}, {"1.5<2.5", 1}, {"1.5==1.5", 1}, {"1?2:0?3:4", 2}, {"-(1==1)", -1},
  {"5-3-1", 1}, {"2+3*4<<1", 28}, {"1|2^3&4", 3}, {"0xffffffffffffffff > 0", 1}, {"017", 15}, {"0b101U", 5},
  {"-1 < 1U", 0}, {"1 < 2 == 1", 1}, {"(.u64)(0-1) > 5", 1}, {"(.s64)0xffffffffffffffff < 0", 1}, {"(.s64)-1", -1},
  {"-(.s64)1", -1}, {"- - 1", 1}, {"+1", 1}, {"~~1", 1}, {"WARP_SZ*2", 64}, {"((1))", 1}, {"0XfFU", 255},
  // Here the manual decides: the assembler converts neither operand of ?:, and dies of the quotient, which wraps.
  {"(1?-1:1U)<0", 0},
  {"(0-9223372036854775807-1)/(0-1)", INT64_MIN},
};

static const struct {
  const char *text, *bytes;
} initials[] = {
  {".u8 x[4] = {300, -1, 0x1ff, 5}", "2cffff05"},
  {".f32 x = 1.1", "cdcc8c3f"},
  {".f32 x = 0d3ff199999999999a", "cdcc8c3f"},
  {".f32 x = 1e60", "0000807f"},
  {".f32 x = 1e-42", "ca020000"},
  {".f32 x = -1.5", "0000c0bf"},
  {".b32 x = 1.5", "0000c03f"},
  {".b64 x = 1.5", "000000000000f83f"},
  {".b32 x = 0d3ff8000000000000", "0000c03f"},
  {".b32 x = 0f3f800000", "0000803f"},
  {".b16 x = 70000", "7011"},
  {".u16 x = WARP_SZ", "2000"},
  {".u64 x = -1", "ffffffffffffffff"},
  {".b128 x[2] = {1, 0}", "0100000000000000000000000000000000000000000000000000000000000000"},
  {".b128 x = 0xffffffffffffffffU", "ffffffffffffffff0000000000000000"},
  {".u8 x[2][3] = {{1, 2, 3}, {4}}", "010203040000"},
  {".u8 x[][2] = {{1, 2}, {3}}", "01020300"},
  {".u8 x[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}}}", "0102030405060000"},
  {".v2 .u8 x[2] = {{1, 2}, {3, 4}}", "01020304"},
  {".v4 .u8 x = {1, 2, 3, 4}", "01020304"},
  {".u8 x[3] = {}", "000000"},
};
// clang-format on

START_TEST(expression_has_value) {
  char text[200];
  snprintf(text, sizeof text, HEAD ".global .u64 x = %s;", expressions[_i].text);
  kl_ptx_module *m = parse(text);
  int64_t got;
  memcpy(&got, m->vars[0].init, sizeof got);
  EXPECT(got == expressions[_i].value, "%s: expected %lld, found %lld", expressions[_i].text,
         (long long)expressions[_i].value, (long long)got);
  kl_ptx_free(cx, m);
}
END_TEST

START_TEST(initial_has_bytes) {
  char text[200], got[200] = "";
  snprintf(text, sizeof text, HEAD ".global %s;", initials[_i].text);
  kl_ptx_module *m = parse(text);
  const kl_ptx_var *v = &m->vars[0];
  for (uint64_t i = 0; i < v->bytes; i++) snprintf(got + 2 * i, 3, "%02x", v->init[i]);
  ck_assert_str_eq(got, initials[_i].bytes);
  for (uint64_t i = v->ninit; i < v->bytes; i++) ck_assert_uint_eq(v->init[i], 0);
  kl_ptx_free(cx, m);
}
END_TEST

// --- the data -----------------------------------------------------------------------------------------------------

static const kl_ptx_func *func(const kl_ptx_module *m, const char *name) {
  for (uint32_t i = 0; i < m->nfuncs; i++)
    if (kl_str_is(m->funcs[i].name, name)) return &m->funcs[i];
  ck_abort_msg("no function '%s'", name);
}

START_TEST(module_is_as_said) {
  kl_ptx_module *m = parse(".version 8.7\n.target sm_100a, debug\n.address_size 64\n.file 3 \"c.cu\"\n"
                           ".visible .func f(.param .b32 x);\n.func g(.param .b32 x) { ret; }\n.alias f, g;\n"
                           ".entry k(.param .u64 .ptr .shared .align 32 p, .param .align 8 .b8 s[20]) { ret; }\n");
  ck_assert_uint_eq(m->version, 87);
  ck_assert_uint_eq(m->sm, 100);
  ck_assert_int_eq(m->variant, 'a');
  ck_assert(kl_str_is(m->target, "sm_100a, debug"));
  ck_assert_uint_eq(m->nfiles, 4);
  ck_assert(kl_str_is(m->files[3], "c.cu") && m->files[0].n == 0);
  ck_assert_uint_eq(m->funcs[0].alias, 2);
  ck_assert(m->funcs[0].visible && !m->funcs[0].defined && m->funcs[1].defined && !m->funcs[1].visible);
  const kl_ptx_func *k = func(m, "k");
  ck_assert(k->entry && k->nparams == 2 && k->nreturns == 0 && !k->register_params);
  ck_assert(k->vars[0].pointer && k->vars[0].pointer_space == KL_PTX_SHARED && k->vars[0].pointer_align == 32);
  ck_assert(k->vars[0].align == 8 && k->vars[1].align == 8 && k->vars[1].bytes == 20 && !k->vars[1].pointer);
  kl_ptx_free(cx, m);
}
END_TEST

START_TEST(body_is_as_said) {
  kl_ptx_module *m = parse(HEAD ".global .u32 g;\n"
                                ".func (.reg .u32 o) f(.reg .u32 i, .param .b32 j)\n"
                                "{\n"
                                "  .reg .b32 %r<4>;\n"
                                "  .reg .v2 .f64 v<3>;\n"
                                "  .reg .pred p;\n"
                                "  .local .u32 l[2];\n"
                                "  .loc 2 30 1\n"
                                "A: @!p add.s32 o, i, %r3;\n"
                                "  { .param .b32 l; mov.f64 v2.y, 0d0000000000000000; mov.u64 %r0, l+4; }\n"
                                "  bra A; B:\n"
                                "}\n");
  const kl_ptx_func *f = func(m, "f");
  ck_assert(f->register_params && f->nreturns == 1 && f->nparams == 2);
  ck_assert_uint_eq(f->vars[0].reg, 1);
  ck_assert_uint_eq(f->vars[1].reg, 2);
  ck_assert_uint_eq(f->vars[2].reg, 0);
  ck_assert_uint_eq(f->nvars, 5);
  ck_assert(f->vars[3].space == KL_PTX_LOCAL && f->vars[3].bytes == 8);
  ck_assert_uint_eq(f->registers, 2 + 4 + 6 + 1);
  ck_assert_uint_eq(f->ninstrs, 4);
  const kl_ptx_instr *add = &f->instrs[0], *mov = &f->instrs[1], *lea = &f->instrs[2], *bra = &f->instrs[3];
  ck_assert(kl_str_is(add->opcode, "add") && add->nmods == 1 && kl_str_is(add->mods[0], "s32"));
  ck_assert(add->guard == 13 && add->guard_negated && add->noperands == 3);
  ck_assert(add->operands[0].index == 0 && add->operands[1].index == 1 && add->operands[2].index == 5);
  ck_assert(add->at.line == 12 && add->at.file == 2 && add->at.src_line == 30);
  ck_assert(mov->operands[0].kind == KL_PTX_REG && mov->operands[0].index == 6 + 2 * 2 + 1);
  ck_assert(mov->operands[1].kind == KL_PTX_FLOAT64);
  ck_assert(lea->operands[1].kind == KL_PTX_LOCALVAR && lea->operands[1].index == 4 && lea->operands[1].offset == 4);
  ck_assert(bra->operands[0].kind == KL_PTX_LABEL && bra->operands[0].index == 0);
  ck_assert(f->nlabels == 2 && f->labels[0].at == 0 && f->labels[1].at == 4);
  static const int marks[][2] = {{KL_PTX_MARK_REG, 0}, {KL_PTX_MARK_REG, 0},   {KL_PTX_MARK_REG, 0},
                                 {KL_PTX_MARK_VAR, 0}, {KL_PTX_MARK_LABEL, 0}, {KL_PTX_MARK_OPEN, 1},
                                 {KL_PTX_MARK_VAR, 1}, {KL_PTX_MARK_CLOSE, 3}, {KL_PTX_MARK_LABEL, 4}};
  ck_assert_uint_eq(f->nmarks, KL_COUNT(marks));
  for (uint32_t i = 0; i < f->nmarks; i++)
    ck_assert((int)f->marks[i].kind == marks[i][0] && (int)f->marks[i].at == marks[i][1]);
  ck_assert_int_eq(kl_ptx_register_type(f, 0), KL_PTX_u32);
  ck_assert_int_eq(kl_ptx_register_type(f, 5), KL_PTX_b32);
  ck_assert_int_eq(kl_ptx_register_type(f, 11), KL_PTX_f64);
  ck_assert_int_eq(kl_ptx_register_type(f, 12), KL_PTX_pred);
  kl_span at = kl_ptx_span(m, add->at);
  ck_assert(at.end - at.begin == strlen("@!p add.s32 o, i, %r3") &&
            memcmp(at.src->text.p + at.begin, "@!p add", 7) == 0);
  kl_ptx_free(cx, m);
}
END_TEST

// A label may come behind the braces that name it; the innermost one counts.
START_TEST(labels_are_those_of_the_scope) {
  kl_ptx_module *m = parse(HEAD ".func L();\n.entry k()\n{\nL: { { bra L; call L; } L: { bra L; L: } } bra L;\n}\n");
  static const uint32_t labels[] = {1, 1, 2, 0};
  const kl_ptx_func *k = func(m, "k");
  ck_assert_uint_eq(k->ninstrs, KL_COUNT(labels));
  for (uint32_t i = 0; i < k->ninstrs; i++) {
    ck_assert_int_eq(k->instrs[i].operands[0].kind, KL_PTX_LABEL);
    ck_assert_uint_eq(k->instrs[i].operands[0].index, labels[i]);
  }
  kl_ptx_free(cx, m);
}
END_TEST

// --- malformed text -----------------------------------------------------------------------------------------------

static const char *const heads[] = {"", HEAD,
                                    HEAD ".global .u32 g[4];\n.func f(.param .b32 x);\n.entry k(.param .u64 q)\n{\n"
                                         "  .reg .pred p;\n  .reg .b32 a, b, r<4>;\n  "};
static const char *const tails[] = {"", "\n", "\n}\n"};

START_TEST(malformed_is_told) {
  const malformed_case *row = &malformed[_i];
  const char *head = heads[row->kind], *tail = tails[row->kind];
  size_t size = strlen(head) + row->size + strlen(tail);
  char *text = malloc(size ? size : 1); // without a NUL: reading behind the end is seen
  memcpy(text, head, strlen(head));
  memcpy(text + strlen(head), row->text, row->size);
  memcpy(text + strlen(head) + row->size, tail, strlen(tail));
  kl_ptx_module *m = (kl_ptx_module *)&m;
  ck_assert_int_eq(kl_ptx_parse(cx, "test", (kl_str){text, size}, &m), row->status);
  ck_assert_ptr_null(m);
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
  EXPECT(d->line == row->line && d->column == row->column, "%s\nexpected at %u:%u\n%s", row->text, row->line,
         row->column, d->text);
  ck_assert_str_eq(d->message, row->message);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), row->findings);
  ck_assert_str_eq(d->file, "test");
  free(text);
}
END_TEST

START_TEST(many_findings_come_at_once) {
  const char *text = HEAD ".global .u33 x;\n" // 4:9
                          ".entry k(.param .u64 p) {\n"
                          "  .reg .b32 a, a;\n"                        // 6:16
                          "  add.s32 a b, c;\n"                        // 7:13
                          "  sub.s32 a, nothing;\n"                    // 8:14, known when the body ends
                          "  mov.b32 {a, [a]}, {a, a};\n"              // 9:15
                          "  bra nowhere; }\n"                         // 10:7
                          ".global .u32 y[2][2] = {{1, z}, {3, 4}};\n" // 11:29
                          ".func f() { %x; }\n";                       // 12:13
  static const uint32_t places[][2] = {{4, 9}, {6, 16}, {7, 13}, {9, 15}, {8, 14}, {10, 7}, {11, 29}, {12, 13}};
  kl_ptx_module *m;
  ck_assert_int_eq(kl_ptx_parse(cx, "test", kl_str_of(text), &m), KILN_E_INVALID);
  for (size_t i = 0; i < KL_COUNT(places); i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    EXPECT(d && d->line == places[i][0] && d->column == places[i][1], "finding %zu: %s", i, d ? d->text : "none");
  }
  ck_assert_uint_eq(kiln_diagnostics_count(cx), KL_COUNT(places));
}
END_TEST

START_TEST(findings_have_an_end) {
  kl_sb text;
  kl_sb_init(&text, cx);
  kl_sb_puts(&text, HEAD ".entry k() {\n");
  for (int i = 0; i < 5000; i++) kl_sb_puts(&text, "add 'x';\n");
  kl_ptx_module *m;
  ck_assert_int_eq(kl_ptx_parse(cx, "test", (kl_str){text.p, text.n}, &m), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 100);
  kl_sb_free(&text);
}
END_TEST

START_TEST(carets_point) {
  kl_ptx_module *m;
  ck_assert_int_eq(kl_ptx_parse(cx, "k.ptx", KL_STR(HEAD ".entry k() {\n  bra nowhere;\n}\n"), &m), KILN_E_INVALID);
  ck_assert_str_eq(first_text(), "k.ptx:5:7: error: expected a name that is declared, found 'nowhere'\n"
                                 "      bra nowhere;\n          ^~~~~~~\n");
}
END_TEST

// --- texts of compilers -------------------------------------------------------------------------------------------

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  EXPECT(f && fseek(f, 0, SEEK_END) == 0, "%s", path);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n + 1);
  ck_assert_uint_eq(fread(p, 1, *n, f), *n);
  p[*n] = 0;
  fclose(f);
  return p;
}

static void visit_text(const char *path, void (*visit)(const char *text, size_t n)) {
  size_t n;
  char *text = read_file(path, &n);
  visit(text, n);
  free(text);
}

// Calls `visit` for each file of the folder, and of those in it, whose name ends in .ptx; returns their number.
static size_t each_text(const char *folder, void (*visit)(const char *text, size_t n)) {
  struct dirent **names;
  int n = scandir(folder, &names, NULL, alphasort);
  size_t seen = 0;
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    size_t length = strlen(name);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool text = length > 4 && strcmp(name + length - 4, ".ptx") == 0;
    if (text) visit_text(path, visit);
    seen += text ? 1 : name[0] == '.' ? 0 : each_text(path, visit);
    free(names[i]);
  }
  if (n >= 0) free(names);
  return seen;
}

// Nothing of a module is left when it is freed.
static void expect_canonical(const char *text, size_t n) {
  int64_t before = atomic_load(&cx->in_use);
  kl_sb printed = canonical(parse_n(text, n));
  kl_sb_free(&printed);
  ck_assert_int_eq(atomic_load(&cx->in_use), before);
}

START_TEST(texts_of_compilers_parse) {
  ck_assert_uint_ge(each_text(KL_TESTS "/sim/samples", expect_canonical), 3);
  each_text(KL_TESTS "/sim/kernels/ptx", expect_canonical);
}
END_TEST

// Every beginning of a text is read without harm, and refused unless it ends between declarations.
static void try_prefixes(const char *text, size_t n) {
  for (size_t i = 0; i < n; i += 1 + i / 300) {
    char *part = malloc(i ? i : 1);
    memcpy(part, text, i);
    kl_ptx_module *m;
    kiln_status s = kl_ptx_parse(cx, "test", (kl_str){part, i}, &m);
    ck_assert((s == KILN_OK) == (kiln_diagnostics_count(cx) == 0));
    kl_ptx_free(cx, m);
    kiln_diagnostics_clear(cx);
    free(part);
  }
}

START_TEST(prefixes_do_no_harm) {
  ck_assert_uint_ge(each_text(KL_TESTS "/sim/samples", try_prefixes), 3);
}
END_TEST

START_TEST(a_kernel_is_found) {
  size_t n;
  char *text = read_file(KL_TESTS "/sim/samples/nvcc_O3.ptx", &n);
  kl_ptx_module *m = parse_n(text, n);
  free(text);
  uint32_t entries = 0, defined = 0;
  for (uint32_t i = 0; i < m->nfuncs; i++) {
    entries += m->funcs[i].entry;
    defined += m->funcs[i].defined;
  }
  ck_assert_uint_eq(entries, 1);
  ck_assert_uint_eq(defined, m->nfuncs - 1); // all but vprintf
  const kl_ptx_func *k = NULL;
  for (uint32_t i = 0; i < m->nfuncs; i++)
    if (m->funcs[i].entry) k = &m->funcs[i];
  ck_assert(k->tuning.maxntid[0] == 256 && k->tuning.minnctapersm == 2 && k->nparams == 4);
  ck_assert(k->vars[1].align == 8 && k->vars[1].bytes == 24);
  uint32_t lines = 0;
  for (uint32_t i = 0; i < k->ninstrs; i++) lines += k->instrs[i].at.src_line >= 43 && k->instrs[i].at.src_line <= 72;
  ck_assert_uint_gt(lines, k->ninstrs / 2);
  kl_ptx_free(cx, m);
}
END_TEST

// --- size ---------------------------------------------------------------------------------------------------------

// Texts of n parts, with the parts that grow. What is quadratic anywhere takes minutes.
// clang-format off
static const struct {
  const char *head, *part, *tail; // %1$d in a part: its number; %2$d: another one below n
} growing[] = {
  {".entry k() { .reg .b32 %r<100000>;\n", "add.s32 %%r%1$d, %%r%2$d, 1;\n", "}"},
  {".entry k() {\n", ".reg .b32 x%1$d;\nmov.b32 x%1$d, 1;\n", "}"},
  {".entry k() {\n", ".reg .b32 x%1$d_<5>, y%1$d;\n", "}"},
  {".entry k() {\n", "bra L%2$d; L%1$d:\n", "}"},
  {".entry k() {\n", "{ bra L; L: }\n", "}"},
  {".entry k() {\n", "{ bra E; }\n", "E: }"},
  {".entry k() {\n", "bra E%1$d;\n", "}"},
  {".entry k() {\n", "add %%r%1$d;\n", "}"},
  {".entry k() {\n", "{ P%1$d: .pragma \"x\"; }\n", "}"},
  {".entry k() { add 1", ", -1", "; }"},
  {".entry k() { add", ".x", "; }"},
  {".entry k() { add ", "(", "; }"},
  {".entry k() {\n", "a", ": }"},
  {".entry k() { .reg .b32 a; .reg .b64 p;\n", "ld.b32 a, [p+%1$d];\n/* c */ // d\n", "}"},
  {".entry k() { A0: A1: A2: A3: .reg .b32 a;\n", "t%1$d: .branchtargets A<4>;\n", "}"},
  {"", ".func f%1$d(.param .u32 a);\n.func f%1$d(.param .u32 a) { call f%1$d, (1); }\n", ""},
  {"", ".global .u32 x%1$d;\n.global .u64 y%1$d = generic(x%1$d)+4;\n", ""},
  {"", ".global .u32 x\n", ""},
  {".global .b8 x[] = {0", ", %1$d", "};"},
  {".global .b8 x[] = {", "{", "};"},
  {"", "/ * ", ""},
  {"", "/* ", ""},
  {"\"", "\n\"", ""},
};
// clang-format on

START_TEST(time_is_linear) {
  enum { N = 50000 };
  kl_sb text;
  kl_sb_init(&text, cx);
  kl_sb_puts(&text, HEAD);
  kl_sb_puts(&text, growing[_i].head);
  for (int i = 0; i < N; i++) {
    char part[200];
    snprintf(part, sizeof part, growing[_i].part, i, (int)((uint64_t)i * 7919 % N));
    kl_sb_puts(&text, part);
  }
  kl_sb_puts(&text, growing[_i].tail);
  struct timespec begin, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  kl_ptx_module *m;
  if (kl_ptx_parse(cx, "test", (kl_str){text.p, text.n}, &m) == KILN_OK) {
    kl_sb printed;
    kl_sb_init(&printed, cx);
    kl_ptx_print(&printed, m);
    kl_sb_free(&printed);
    kl_ptx_free(cx, m);
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
  EXPECT(seconds < 1.5 * SLACK, "%s: %.3f s", growing[_i].part, seconds);
  kl_sb_free(&text);
}
END_TEST

// Numbers in a short text ask for much memory: that is a status, not the process's end.
START_TEST(memory_is_asked_for) {
  static const char *const texts[] = {
      HEAD ".global .b8 x[4000000000] = {1};",
      HEAD ".global .b8 x[][2000000000] = {{1}};",
  };
  for (size_t i = 0; i < KL_COUNT(texts); i++) {
    kl_ptx_module *m;
    kl_memory_limit before = kl_limit_memory(cx, 100 << 20);
    ck_assert_int_eq(kl_ptx_parse(cx, "test", kl_str_of(texts[i]), &m), KILN_E_MEMORY);
    ck_assert_ptr_null(m);
    cx->limit = before;
  }
  kl_ptx_free(cx, parse(HEAD ".entry k() { .reg .b32 r<2000000000>; mov.b32 r1999999999, 1; }"));
}
END_TEST

int main(void) {
  return RUN_TESTS("ptx", EACH(setup, teardown), {module_prints, KL_COUNT(modules)}, {body_prints, KL_COUNT(bodies)},
                   {expression_has_value, KL_COUNT(expressions)}, {initial_has_bytes, KL_COUNT(initials)},
                   {what_follows_a_nul_is_not_read}, {module_is_as_said}, {body_is_as_said},
                   {labels_are_those_of_the_scope}, {malformed_is_told, KL_COUNT(malformed)},
                   {many_findings_come_at_once}, {findings_have_an_end}, {carets_point}, {texts_of_compilers_parse},
                   {prefixes_do_no_harm}, {a_kernel_is_found}, {time_is_linear, KL_COUNT(growing)},
                   {memory_is_asked_for});
}

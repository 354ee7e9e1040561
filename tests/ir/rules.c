// The verifier's rules one by one: each broken once, by one instruction of a module that has what ops need.
#include "support/context.h"
#include "ir/hlo.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS(s) s

typedef struct rule_case {
  const char *line, *message;
} rule_case;

// clang-format off
static const rule_case window_cases[] = {
#include "malformed/window.h"
};
static const rule_case control_cases[] = {
#include "malformed/control.h"
};
// clang-format on

static const char head[] =
    "HloModule m\n"
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    "gt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GT\n}\n"
    "add16 {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT r = bf16[] add(a, b)\n}\n"
    "wide {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  ROOT r = f32[2] add(a, b)\n}\n"
    "neg {\n  a = f32[] parameter(0)\n  ROOT r = f32[] negate(a)\n}\n"
    "pos {\n  a = f32[] parameter(0)\n  ROOT r = pred[] is-finite(a)\n}\n"
    "none {\n  ROOT r = f32[] constant(0)\n}\n"
    "step {\n  a = f32[6] parameter(0)\n  b = f32[6] parameter(1)\n  ROOT r = (f32[6], f32[6]) tuple(a, b)\n}\n"
    "lone {\n  a = f32[6] parameter(0)\n  b = f32[6] parameter(1)\n  ROOT r = f32[6] add(a, b)\n}\n"
    "turn {\n  a = f32[6] parameter(0)\n  b = f32[6] parameter(1)\n  z = f32[] constant(0)\n"
    "  ROOT r = (f32[6], f32[]) tuple(a, z)\n}\n"
    "ENTRY e {\n"
    "  x = f32[4,6] parameter(0)\n  y = f32[6,5] parameter(1)\n  w = f32[4,6] parameter(2)\n"
    "  k = f32[3,3,2,8] parameter(3)\n  v = f32[2,8,8,2] parameter(4)\n  z = f32[] parameter(5)\n"
    "  h = bf16[4,6] parameter(6)\n  c = c64[4,6] parameter(7)\n  g = s32[2] parameter(8)\n"
    "  q = pred[] parameter(9)\n  n = s32[] parameter(10)\n  t = token[] parameter(11)\n"
    "  u = f32[6] parameter(12)\n";

// The line must give a finding, in its own line, that says so; two if two computations do not fit.
static void expect_refused(const rule_case *c) {
  char module[4000];
  uint32_t line = 1;
  kiln_module *m = NULL;
  snprintf(module, sizeof module, "%s  ROOT %s\n}\n", head, c->line);
  for (const char *p = head; *p; p++) line += *p == '\n';
  kiln_diagnostics_clear(cx);
  kiln_status st = kiln_module_parse(cx, "test", module, strlen(module), &m);
  const kiln_diagnostic *d = NULL;
  size_t errors = 0;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) {
    if (kiln_diagnostics_get(cx, i)->severity != KILN_ERROR) continue;
    if (!errors++) d = kiln_diagnostics_get(cx, i);
  }
  ck_assert_msg(st == KILN_E_INVALID && d, "%s\nwas accepted", c->line);
  ck_assert_msg(strstr(d->message, c->message), "%s\nexpected: %s\nfound: %s", c->line, c->message, d->message);
  ck_assert_msg(d->line == line && d->column > 5, "%s\nat %u:%u", c->line, d->line, d->column);
  ck_assert_msg(errors <= 2, "%s\n%zu findings", c->line, errors);
}

START_TEST(window_rules) {
  expect_refused(&window_cases[_i]);
}
END_TEST
START_TEST(control_rules) {
  expect_refused(&control_cases[_i]);
}
END_TEST

// --- types that the text leaves out ---------------------------------------------------------------------------------

#include "inferred.h"

static const char callees[] =
    "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
    "cmp { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"
    "cmp2 { a = f32[] parameter(0) b = f32[] parameter(1) x = s32[] parameter(2) y = s32[] parameter(3) "
    "ROOT c = pred[] compare(a, b), direction=LT }\n"
    "f2 { a = f32[] parameter(0) b = s32[] parameter(1) x = f32[] parameter(2) y = s32[] parameter(3) "
    "ROOT c = (f32[], s32[]) tuple(a, b) }\n"
    "n { a = f32[] parameter(0) ROOT b = f32[] negate(a) }\n"
    "g { a = f32[3,4]{0,1} parameter(0) ROOT b = f32[3,4]{0,1} negate(a) }\n"
    "wc { a = f32[3,4]{0,1} parameter(0) ROOT c = pred[] constant(false) }\n"
    "wb { a = f32[3,4]{0,1} parameter(0) ROOT b = f32[3,4]{0,1} negate(a) }\n";

// With the default layout where none is said.
static void put_whole(kl_sb *b, const kl_shape *s) {
  if (s->dtype == KILN_TUPLE) kl_sb_putc(b, '(');
  for (uint32_t i = 0; s->dtype == KILN_TUPLE && i < s->nelems; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_whole(b, s->elems[i]);
  }
  if (s->dtype == KILN_TUPLE) {
    kl_sb_putc(b, ')');
    return;
  }
  kl_shape_print(b, s, true);
  if (s->layout.present || s->rank == 0) return;
  for (uint32_t i = 0; i < s->rank; i++) kl_sbf(b, "%s%u", i ? "," : "{", s->rank - 1 - i);
  kl_sb_putc(b, '}');
}

START_TEST(types_are_inferred) {
  char text[4000];
  kiln_module *m = NULL;
  snprintf(text, sizeof text, "HloModule m\n%sENTRY e { %s ROOT root = %s }\n", callees, inferred[_i].params,
           inferred[_i].op);
  kiln_diagnostics_clear(cx);
  kiln_status s = kiln_module_parse(cx, "test", text, strlen(text), &m);
  ck_assert_msg(s == KILN_OK, "%s\n%s", inferred[_i].op, s ? kiln_diagnostics_get(cx, 0)->message : "");
  kl_sb b;
  kl_sb_init(&b, cx);
  put_whole(&b, kl_root(&m->comp[m->entry])->shape);
  ck_assert_msg(strcmp(b.p, inferred[_i].type) == 0, "%s\n%s\nexpected: %s\nfound: %s", inferred[_i].params,
                inferred[_i].op, inferred[_i].type, b.p);
  kl_sb_free(&b);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("rules", ONCE(make_context, drop_context), {window_rules, KL_COUNT(window_cases)},
                   {control_rules, KL_COUNT(control_cases)}, {types_are_inferred, KL_COUNT(inferred)});
}

// The rules that results' types follow: each broken once, and types that the text leaves out.
#include "support/context.h"
#include "ir/hlo.h"
#include "ir/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>

// A row of BODY is one instruction in a module that has what ops need; its place is counted from where it stands.
typedef struct malformed_case {
  const char *text;
  size_t size;
  bool body;
  uint32_t line, column;
  size_t findings;
  const char *message; // a part of the first finding
} malformed_case;
#define TEXT(s) s, sizeof(s) - 1, false
#define BODY(s) s, sizeof(s) - 1, true
#include "malformed/indexed.h"
#include "malformed/math.h"

static const char head[] =
    "HloModule m\n"
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    "addi {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}\n"
    "addh {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT r = bf16[] add(a, b)\n}\n"
    "one {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = (f32[]) tuple(b)\n}\n"
    "wide {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  ROOT r = f32[2] add(a, b)\n}\n"
    "mixed {\n  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = f32[] negate(a)\n}\n"
    "neg {\n  a = f32[] parameter(0)\n  ROOT r = f32[] negate(a)\n}\n"
    "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
    "lessh {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
    "less_first {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = u32[] parameter(2)\n"
    "  d = u32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
    "add4 {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] parameter(2)\n"
    "  d = f32[] parameter(3)\n  ROOT r = f32[] add(a, b)\n}\n"
    "two {\n  a = f32[] parameter(0)\n  b = u32[] parameter(1)\n  c = f32[] parameter(2)\n"
    "  d = u32[] parameter(3)\n  ROOT r = (f32[], u32[]) tuple(a, d)\n}\n"
    "pair {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = (f32[], f32[]) tuple(a, b)\n}\n"
    "tuples {\n  a = (f32[]) parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] negate(b)\n}\n"
    "ENTRY e {\n"
    "  x = f32[4,6] parameter(0)\n  y = f32[4,6] parameter(1)\n  h = bf16[4,6] parameter(2)\n"
    "  v = f32[6] parameter(3)\n  u = u32[4,6] parameter(4)\n  c = c64[4,6] parameter(5)\n"
    "  q = f32[2,3,3] parameter(6)\n  w = f32[2,3,4] parameter(7)\n  wt = f32[2,4,3] parameter(8)\n"
    "  w3 = f32[3,3,3] parameter(9)\n  z = f32[] parameter(10)\n  zc = c64[] parameter(11)\n"
    "  n = s32[] parameter(12)\n  l = s64[] parameter(13)\n  g = s32[2] parameter(14)\n"
    "  i = s32[5,2] parameter(15)\n  o = f32[5] parameter(16)\n  ho = bf16[5] parameter(17)\n"
    "  k = f32[5,4] parameter(18)\n  kk = f32[5,7] parameter(19)\n  j = s32[4,5] parameter(20)\n"
    "  jo = f32[4,5] parameter(21)\n  m = s32[1,4] parameter(22)\n  st = u64[2] parameter(23)\n"
    "  t = (f32[4,6], s32[]) parameter(24)\n  d = f64[4,6] parameter(25)\n  none = f32[0,6] parameter(26)\n"
    "  uo = u32[5] parameter(27)\n  b = pred[] parameter(28)\n  nc = c64[4,0] parameter(29)\n"
    "  lo = c64[4,1] parameter(30)\n  na = s32[0] parameter(31)\n  dyn = f32[<=4,6] parameter(32)\n  w2 = f32[2,3] "
    "parameter(33)\n";

typedef struct table {
  const malformed_case *rows;
  size_t n;
} table;
static const table tables[] = {
    {malformed_indexed, KL_COUNT(malformed_indexed)},
    {malformed_math, KL_COUNT(malformed_math)},
};

// clang-format off
static const struct {
  const char *instruction, *type; // what the root is, and the type that follows
} inferred[] = {
  {"dynamic-slice(x, n, n), dynamic_slice_sizes={2,5}", "f32[2,5]"},
  {"dynamic-slice(x, l, l), dynamic_slice_sizes={4,0}", "f32[4,0]"},
  {"dynamic-slice(x, g), dynamic_slice_sizes={1,6}", "f32[1,6]"},
  {"dynamic-slice(z), dynamic_slice_sizes={}", "f32[]"},
  {"dynamic-slice(v, n), dynamic_slice_sizes={6}", "f32[6]"},
  {"dynamic-update-slice(kk, jo, n, n)", "f32[5,7]"},
  {"dynamic-update-slice(x, none, g)", "f32[4,6]"},
  {"dynamic-update-slice(z, z)", "f32[]"},
  {"gather(x, i)" GATHER("", "0,1", "0,1", "1", "1,1"), "f32[5]"},
  {"gather(x, i)" GATHER("1", "0", "1,0", "1", "1,3"), "f32[5,3]"},
  {"gather(x, i)" GATHER("0", "0", "1,0", "1", "1,3"), "f32[3,5]"},
  {"gather(x, i)" GATHER("0,2", "", "1,0", "1", "2,3"), "f32[2,5,3]"},
  {"gather(x, i)" GATHER("2", "0", "0", "2", "1,6"), "f32[5,2,6]"},
  {"gather(x, g)" GATHER("0,1", "", "0,1", "0", "4,0"), "f32[4,0]"},
  {"gather(x, n)" GATHER("0", "0", "0", "0", "1,6"), "f32[6]"},
  {"gather(none, i)" GATHER("1", "0", "0,1", "1", "0,6"), "f32[5,6]"},
  {"gather(x, j)" GATHER("2", "", "1", "2", "1,2") GATHER_BATCH("0", "0"), "f32[4,5,2]"},
  {"gather(x, m)" GATHER("1", "", "1", "0", "1,2") GATHER_BATCH("0", "1"), "f32[4,2]"},
  {"gather(none, na)" GATHER("1", "", "1", "1", "0,2") GATHER_BATCH("0", "0"), "f32[0,2]"},
  {"scatter(x, i, o)" POINTS, "f32[4,6]"},
  {"scatter(x, i, o)" SCATTER("", "0,1", "0,1", "1", "addh"), "f32[4,6]"},
  {"scatter(x, i, o)" SCATTER("", "0,1", "0,1", "1", "one"), "f32[4,6]"},
  {"scatter(h, i, ho)" POINTS, "bf16[4,6]"},
  {"scatter(x, i, k)" SCATTER("1", "0", "0,1", "1", "add"), "f32[4,6]"},
  {"scatter(x, j, jo)" SCATTER("", "1", "1", "2", "add") SCATTER_BATCH("0", "0"), "f32[4,6]"},
  {"scatter(x, u, i, o, uo)" SCATTER("", "0,1", "0,1", "1", "two"), "(f32[4,6], u32[4,6])"},
  {"sort(x), dimensions={1}, to_apply=less", "f32[4,6]"},
  {"sort(h), dimensions={0}, to_apply=less", "bf16[4,6]"},
  {"sort(x), dimensions={0}, to_apply=lessh", "f32[4,6]"},
  {"sort(x, u), dimensions={0}, to_apply=less_first, is_stable=true", "(f32[4,6], u32[4,6])"},
  {"topk(x), k=2, largest=true", "(f32[4,2], s32[4,2])"},
  {"topk(u), k=0, largest=false", "(u32[4,0], s32[4,0])"},
  {"shuffle(x)", "f32[4,6]"},
  {"get-dimension-size(x), dimensions={1}", "s32[]"},
  {"set-dimension-size(x, n), dimensions={1}", "f32[4,<=6]"},
  {"set-dimension-size(dyn, n), dimensions={1}", "f32[<=4,<=6]"},
  {"f32[4,6] set-dimension-size(x, n), dimensions={1}", "f32[4,6]"},
  {"f32[<=24] dynamic-reshape(x, n)", "f32[<=24]"},
  {"f32[<=4,3,2] dynamic-reshape(x, n, n, n)", "f32[<=4,3,2]"},
  {"f32[] dynamic-reshape(z)", "f32[]"},
  {"f32[7,0] rng(z, z), distribution=rng_normal", "f32[7,0]"},
  {"pred[3] rng(b, b), distribution=rng_uniform", "pred[3]"},
  {"s32[3] rng(n, n), distribution=rng_uniform", "s32[3]"},
  {"(u64[2], u32[7]) rng-bit-generator(st), algorithm=rng_philox", "(u64[2], u32[7])"},
  {"u8[7] rng-bit-generator(st), algorithm=rng_default", "u8[7]"},
  {"rng-get-and-update-state(), delta=4", "u64[2]"},
  {"bf16[4,6] stochastic-convert(x, u)", "bf16[4,6]"},
  {"s8[4,6] stochastic-convert(x, u)", "s8[4,6]"},
  {"batch-norm-training(x, v, v)" BN, "(f32[4,6], f32[6], f32[6])"},
  {"batch-norm-inference(x, v, v, v, v)" BN, "f32[4,6]"},
  {"batch-norm-grad(x, v, v, v, y)" BN, "(f32[4,6], f32[6], f32[6])"},
  {"cholesky(q), lower=true", "f32[2,3,3]"},
  {"triangular-solve(q, w), left_side=true" SOLVE, "f32[2,3,4]"},
  {"triangular-solve(q, wt), left_side=false" SOLVE, "f32[2,4,3]"},
  {"fft(c), fft_type=FFT, fft_length={4,6}", "c64[4,6]"},
  {"fft(c), fft_type=IFFT, fft_length={6}", "c64[4,6]"},
  {"fft(x), fft_type=RFFT, fft_length={4,6}", "c64[4,4]"},
  {"fft(d), fft_type=RFFT, fft_length={6}", "c128[4,4]"},
  {"fft(q), fft_type=RFFT, fft_length={2,3,3}", "c64[2,3,2]"},
  {"fft(c), fft_type=IRFFT, fft_length={10}", "f32[4,10]"},
  {"fft(c), fft_type=IRFFT, fft_length={4,11}", "f32[4,11]"},
  {"fft(none), fft_type=RFFT, fft_length={0,6}", "c64[0,4]"},
  {"fft(nc), fft_type=IRFFT, fft_length={0}", "f32[4,0]"},
  {"fft(lo), fft_type=IRFFT, fft_length={0}", "f32[4,0]"},
  {"fft(lo), fft_type=IRFFT, fft_length={1}", "f32[4,1]"},
};
// clang-format on

static const kiln_diagnostic *first_error(size_t *n) {
  const kiln_diagnostic *first = NULL;
  *n = 0;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    if (d->severity == KILN_ERROR && !(*n)++) first = d;
  }
  return first;
}

// "  " and the instruction as the last one of the head's ENTRY; the caller frees it.
static char *in_module(const char *instruction, size_t size) {
  size_t at = sizeof head - 1;
  char *text = malloc(at + 2 + size + 4);
  memcpy(text, head, at);
  memcpy(text + at, "  ", 2);
  memcpy(text + at + 2, instruction, size);
  memcpy(text + at + 2 + size, "\n}\n", 4);
  return text;
}

static uint32_t line_breaks(const char *text) {
  uint32_t n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

static void expect_told(const malformed_case *row) {
  char *text = row->body ? in_module(row->text, row->size) : NULL;
  uint32_t line = row->line + (row->body ? line_breaks(head) : 0);
  const char *given = text ? text : row->text;
  kiln_module *m = NULL;
  size_t n;
  kiln_diagnostics_clear(cx);
  kiln_status status = kiln_module_parse(cx, "test", given, strlen(given), &m);
  const kiln_diagnostic *d = first_error(&n);
  ck_assert_msg(status == KILN_E_INVALID && d, "%s\nwas accepted", row->text);
  ck_assert_msg(strstr(d->message, row->message), "%s\nexpected: %s\nfound: %s", row->text, row->message, d->message);
  ck_assert_msg(d->line == line && d->column == row->column, "%s\nexpected at %u:%u\n%s", row->text, line, row->column,
                d->text);
  ck_assert_msg(n == row->findings, "%s\nexpected %zu findings, found %zu", row->text, row->findings, n);
  free(text);
}

START_TEST(malformed_is_told) {
  size_t row = (size_t)_i;
  const table *t = tables;
  while (row >= t->n) row -= t++->n;
  expect_told(&t->rows[row]);
}
END_TEST

START_TEST(type_is_inferred) {
  char line[400];
  size_t n;
  kiln_module *m = NULL;
  int size = snprintf(line, sizeof line, "ROOT r = %s", inferred[_i].instruction);
  char *text = in_module(line, (size_t)size);
  kiln_diagnostics_clear(cx);
  kiln_status status = kiln_module_parse(cx, "test", text, strlen(text), &m);
  const kiln_diagnostic *d = first_error(&n);
  ck_assert_msg(status == KILN_OK, "%s\n%s", line, d ? d->message : "no finding");
  const char *found = kl_shape_text(&m->arena, kl_root(&m->comp[m->entry])->shape);
  ck_assert_msg(strcmp(found, inferred[_i].type) == 0, "%s\nexpected %s, found %s", line, inferred[_i].type, found);
  ck_assert_int_eq(kl_verify(m), KILN_OK);
  kiln_module_destroy(&m);
  free(text);
}
END_TEST

int main(void) {
  int rows = 0;
  for (size_t i = 0; i < KL_COUNT(tables); i++) rows += (int)tables[i].n;
  return RUN_TESTS("verify", ONCE(make_context, drop_context), {malformed_is_told, rows},
                   {type_is_inferred, KL_COUNT(inferred)});
}

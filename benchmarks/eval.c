// How fast the reference evaluator is: results of single operations per second, on all cores.
//
// Each row evaluates one program, most of 16 operations on 2^20 elements; a result is one element
// of one operation's value, for reductions one element taken in. Columns: the median time of a program, and results a
// second, without and with intervals (as the checker uses them: what a correct device may return).

#include "measure.h"

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 15, CHAIN = 16, ELEMENTS = 1 << 20 };

// `op` is applied to v<i-1> in a chain; X stands for it, Y for the second parameter.
typedef struct row {
  const char *name, *type, *op;
} row;

static const row rows[] = {
    {"add", "f32", "add(X, Y)"},
    {"multiply", "f32", "multiply(X, Y)"},
    {"divide", "f32", "divide(X, Y)"},
    {"maximum", "f32", "maximum(X, Y)"},
    {"clamp", "f32", "clamp(Y, X, Y)"},
    {"sqrt", "f32", "sqrt(X)"},
    {"exponential", "f32", "exponential(X)"},
    {"tanh", "f32", "tanh(X)"},
    {"add", "bf16", "add(X, Y)"},
    {"multiply", "f16", "multiply(X, Y)"},
    {"tanh", "bf16", "tanh(X)"},
    {"exponential", "f16", "exponential(X)"},
    {"add", "f64", "add(X, Y)"},
    {"tanh", "f64", "tanh(X)"},
    {"add", "s32", "add(X, Y)"},
    {"multiply", "s8", "multiply(X, Y)"},
    {"add", "f8e4m3fn", "add(X, Y)"},
    {"multiply", "c64", "multiply(X, Y)"},
};

// Programs written out.
static const struct {
  const char *name, *type, *text;
  double results;
} programs[] = {
    {"compare, select", "f32",
     "HloModule m\nENTRY e { x = f32[1048576] parameter(0)\n y = f32[1048576] parameter(1)\n"
     " c = pred[1048576] compare(x, y), direction=LT\n s = f32[1048576] select(c, x, y)\n"
     " d = pred[1048576] compare(s, x), direction=GE\n ROOT r = f32[1048576] select(d, s, y) }",
     4.0 * ELEMENTS},
    {"broadcast, add", "f32",
     "HloModule m\nENTRY e { x = f32[1024,1024] parameter(0)\n y = f32[1024] parameter(1)\n"
     " b = f32[1024,1024] broadcast(y), dimensions={1}\n a = f32[1024,1024] add(x, b)\n"
     " c = f32[1024,1024] broadcast(y), dimensions={0}\n ROOT r = f32[1024,1024] add(a, c) }",
     4.0 * ELEMENTS},
    {"scalar broadcast, multiply", "f32",
     "HloModule m\nENTRY e { x = f32[1048576] parameter(0)\n y = f32[] parameter(1)\n"
     " b = f32[1048576] broadcast(y), dimensions={}\n a = f32[1048576] multiply(x, b)\n"
     " ROOT r = f32[1048576] multiply(a, b) }",
     2.0 * ELEMENTS},
    {"convert", "f32 to bf16",
     "HloModule m\nENTRY e { x = f32[1048576] parameter(0)\n a = bf16[1048576] convert(x)\n"
     " b = f32[1048576] convert(a)\n c = bf16[1048576] convert(b)\n ROOT r = f32[1048576] convert(c) }",
     4.0 * ELEMENTS},
    {"transpose", "f32",
     "HloModule m\nENTRY e { x = f32[1024,1024] parameter(0)\n a = f32[1024,1024] transpose(x), dimensions={1,0}\n"
     " b = f32[1024,1024] add(a, x)\n ROOT r = f32[1024,1024] transpose(b), dimensions={1,0} }",
     3.0 * ELEMENTS},
    {"reduce rows by add", "f32",
     "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[4096] reduce(x, z), dimensions={1}, to_apply=add }",
     4.0 * ELEMENTS},
    {"reduce columns by maximum", "f32",
     "HloModule m\nmax { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"
     "ENTRY e { x = f32[4096,1024] parameter(0)\n z = f32[] constant(-inf)\n"
     " ROOT r = f32[1024] reduce(x, z), dimensions={0}, to_apply=max }",
     4.0 * ELEMENTS},
    {"running sum of 40,000", "f32",
     "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[40000] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[40000] reduce-window(x, z), window={size=40000 pad=39999_0}, to_apply=add }",
     40000.0},
    {"32x32 window, add", "f32",
     "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[1024,1024] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[993,993] reduce-window(x, z), window={size=32x32}, to_apply=add }",
     993.0 * 993.0},
    {"32x32 window, maximum", "f32",
     "HloModule m\nmax { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"
     "ENTRY e { x = f32[1024,1024] parameter(0)\n z = f32[] constant(-inf)\n"
     " ROOT r = f32[993,993] reduce-window(x, z), window={size=32x32}, to_apply=max }",
     993.0 * 993.0},
    {"3x3 pooling, maximum", "bf16",
     "HloModule m\nmax { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT r = bf16[] maximum(a, b) }\n"
     "ENTRY e { x = bf16[16,64,64,64] parameter(0)\n z = bf16[] constant(-inf)\n"
     " ROOT r = bf16[16,32,32,64] reduce-window(x, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0}, "
     "to_apply=max }",
     1.0 * ELEMENTS},
    {"5x5 window, any reducer", "f32",
     "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] multiply(a, b)\n"
     " ROOT r = f32[] subtract(b, c) }\n"
     "ENTRY e { x = f32[512,512] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[508,508] reduce-window(x, z), window={size=5x5}, to_apply=f }",
     508.0 * 508.0},
    {"32x32 window, selection", "f32",
     "HloModule m\nge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE "
     "}\n"
     "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[1024,1024] parameter(0)\n y = f32[993,993] parameter(1)\n z = f32[] constant(0)\n"
     " ROOT r = f32[1024,1024] select-and-scatter(x, y, z), window={size=32x32}, select=ge, scatter=add }",
     993.0 * 993.0},
    {"3x3 pooling, selection", "f32",
     "HloModule m\nge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE "
     "}\n"
     "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[16,64,64,64] parameter(0)\n y = f32[16,32,32,64] parameter(1)\n z = f32[] constant(0)\n"
     " ROOT r = f32[16,64,64,64] select-and-scatter(x, y, z), window={size=1x3x3x1 stride=1x2x2x1 "
     "pad=0_0x0_1x0_1x0_0}, select=ge, scatter=add }",
     1.0 * ELEMENTS},
    {"philox", "u32",
     "HloModule m\nENTRY e { x = u64[2] parameter(0)\n"
     " ROOT r = (u64[2], u32[1048576]) rng-bit-generator(x), algorithm=rng_philox }",
     1.0 * ELEMENTS},
    {"threefry", "u32",
     "HloModule m\nENTRY e { x = u64[2] parameter(0)\n"
     " ROOT r = (u64[2], u32[1048576]) rng-bit-generator(x), algorithm=rng_three_fry }",
     1.0 * ELEMENTS},
};

static void chain_text(const row *r, char *text, size_t room) {
  int at = snprintf(text, room, "HloModule m\nENTRY e { v0 = %s[%d] parameter(0)\n y = %s[%d] parameter(1)\n", r->type,
                    ELEMENTS, r->type, ELEMENTS);
  for (int i = 1; i <= CHAIN; i++) {
    at += snprintf(text + at, room - (size_t)at, " %sv%d = %s[%d] ", i == CHAIN ? "ROOT " : "", i, r->type, ELEMENTS);
    for (const char *p = r->op; *p; p++)
      at += *p == 'X'   ? snprintf(text + at, room - (size_t)at, "v%d", i - 1)
            : *p == 'Y' ? snprintf(text + at, room - (size_t)at, "y")
                        : snprintf(text + at, room - (size_t)at, "%c", *p);
    at += snprintf(text + at, room - (size_t)at, "\n");
  }
  snprintf(text + at, room - (size_t)at, "}\n");
}

typedef struct buffers {
  void *in[4], *out[4];
} buffers;

static void fill(kiln_module *m, buffers *b) {
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    b->in[i] = malloc((size_t)kiln_module_parameter_leaf_bytes(m, i) + 64);
    if (b->in[i]) kiln_module_parameter_leaf_fill(m, i, 0, b->in[i]);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++)
    b->out[i] = malloc((size_t)kiln_module_result_leaf_bytes(m, i) + 64);
}

// Median seconds of an evaluation, or of a check of its own results, over 15 runs, or as many as take two seconds;
// below 0 on failure.
static double median_of(kiln_context *cx, kiln_module *m, buffers *b, int check) {
  double t[RUNS + 1], begin = now_ms();
  int n = 0;
  while (n <= RUNS && (n < 4 || now_ms() - begin < 2000)) {
    kiln_eval_params p = {.struct_size = sizeof p};
    kiln_mismatch wrong;
    size_t count = 0;
    double start = now_ms();
    const void *const *in = (const void *const *)b->in, *const *out = (const void *const *)b->out;
    kiln_status s =
        check ? kiln_module_check(cx, m, in, out, &wrong, 1, &count, &p) : kiln_module_eval(cx, m, in, b->out, &p);
    if (s != KILN_OK || count) return -1;
    t[n++] = (now_ms() - start) * 1e-3;
  }
  return median(t + 1, n - 1); // the first warms up
}

static int measure(kiln_context *cx, const char *name, const char *type, const char *text, double results) {
  kiln_module *m = NULL;
  buffers b = {{0}, {0}};
  if (kiln_module_parse(cx, name, text, strlen(text), &m) != KILN_OK) return 1;
  fill(m, &b);
  double eval = median_of(cx, m, &b, 0), check = eval < 0 ? -1 : median_of(cx, m, &b, 1);
  for (int i = 0; i < 4; i++) free(b.in[i]), free(b.out[i]);
  kiln_module_destroy(&m);
  if (check < 0) return 1;
  printf("%-28s %-12s %9.3f %13.3e %9.3f %13.3e\n", name, type, eval * 1e3, results / eval, check * 1e3,
         results / check);
  fflush(stdout);
  return 0;
}

int main(int argc, char **argv) {
  kiln_context *cx = kiln_context_create(NULL);
  const char *only = argc > 1 ? argv[1] : "";
  char text[8192];
  int status = 0;
  printf("%-28s %-12s %9s %13s %9s %13s\n", "ms (median)", "type", "evaluate", "results/s", "check", "results/s");
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++) {
    if (!strstr(rows[i].name, only)) continue;
    chain_text(&rows[i], text, sizeof text);
    status = measure(cx, rows[i].name, rows[i].type, text, (double)CHAIN * ELEMENTS);
  }
  for (size_t i = 0; i < sizeof programs / sizeof *programs && !status; i++)
    if (strstr(programs[i].name, only))
      status = measure(cx, programs[i].name, programs[i].type, programs[i].text, programs[i].results);
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  kiln_context_destroy(&cx);
  return status;
}

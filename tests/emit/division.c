// Several numbers divided by one, and exponentials of what is at most 0: the bits of the general code for less.

#include "support/bits.h"
#include "support/context.h"
#include "support/gpu_sim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 512 };

static void run(const kiln_module *m, const char *target, const void *const *in, void *const *out) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  kiln_artifact *a;
  kiln_kernel *k = NULL;
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  if (strcmp(target, "host") != 0) {
    gpu_sim_run(cx, a, in, out, 0);
  } else {
    ck_assert_msg(kiln_kernel_load(cx, a, &k) == KILN_OK, "%s", last_finding());
    ck_assert_msg(kiln_kernel_run(cx, k, in, out, NULL) == KILN_OK, "%s", last_finding());
  }
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
}

static uint32_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

// Where a bound lies, and both sides of it.
static const float edges[] = {0.0f,
                              -0.0f,
                              INFINITY,
                              -INFINITY,
                              NAN,
                              0x1p-149f,
                              0x1p-126f,
                              -0x1p-140f,
                              0x1p-96f,
                              0x1p-97f,
                              0x1p96f,
                              0x1p97f,
                              0x1p-24f,
                              0x1p-25f,
                              0x1p24f,
                              0x1p25f,
                              0x1.8p24f,
                              1.0f,
                              -1.0f,
                              3.0f,
                              0x1.fffffep-97f,
                              0x1.fffffep23f,
                              0x1.fffffep127f,
                              0x1.fffffep0f,
                              0x1.000002p0f,
                              0x1.fffffep96f,
                              0x1.000002p96f,
                              0x1.fffffep-1f};
enum { EDGES = sizeof edges / sizeof *edges };

// Rows that a thread has a part of are all of one kind: of numbers that need no care, of such but for one, of any bits.
static void draw_operands(float *x, float *y) {
  uint64_t state = 7;
  for (int r = 0; r < ROWS; r++) {
    y[r] = r < EDGES ? edges[r] : float_of((127 - 24 + draw(&state) % 49) << 23 | draw(&state) >> 9);
    if (r >= ROWS - 4) y[r] = float_of(0x3fffffff - (uint32_t)(ROWS - 1 - r));
    for (int c = 0; c < COLUMNS; c++) {
      uint32_t u = draw(&state), kind = (uint32_t)(c / 32 % 4);
      float plain = float_of((127 - 90 + u % 180) << 23 | draw(&state) >> 9 | (u & 0x80000000));
      x[r * COLUMNS + c] = kind == 2 ? float_of(draw(&state)) : kind == 1 && c % 8 == 3 ? edges[u % EDGES] : plain;
    }
  }
}

static bool same(float a, float b) {
  return same_bits(KILN_F32, &a, &b, sizeof a);
}

static const char *const operands_of[] = {"  v = f32[64,512] copy(x)\n", // any
                                          ("  l = f32[] constant(-1e28)\n  h = f32[] constant(1e28)\n"
                                           "  v = f32[64,512] clamp(l, x, h)\n"), // moderate
                                          "  v = f32[64,512] exponential(x)\n"};  // positive

START_TEST(quotients_by_one_number) {
  static float x[ROWS * COLUMNS], y[ROWS], dividend[ROWS * COLUMNS], q[ROWS * COLUMNS];
  char text[1024];
  draw_operands(x, y);
  snprintf(text, sizeof text,
           "HloModule quotients\nENTRY e {\n  x = f32[64,512] parameter(0)\n  y = f32[64] parameter(1)\n%s"
           "  b = f32[64,512] broadcast(y), dimensions={0}\n  q = f32[64,512] divide(v, b)\n"
           "  ROOT r = (f32[64,512], f32[64,512]) tuple(v, q)\n}\n",
           operands_of[_i]);
  kiln_module *m = parse(text);
  run(m, "sm_90", (const void *[]){x, y}, (void *[]){dividend, q});
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    float want = dividend[i] / y[i / COLUMNS];
    ck_assert_msg(same(q[i], want), "%a / %a: expected %a, found %a", (double)dividend[i], (double)y[i / COLUMNS],
                  (double)want, (double)q[i]);
  }
  kiln_module_destroy(&m);
}
END_TEST

#define MAX "m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"

// The same function where the graph says that its argument is at most 0, and where it does not.
START_TEST(exponentials_of_what_is_at_most_0) {
  static const char known[] =
      "HloModule known\n" MAX "ENTRY e {\n  x = f32[64,512] parameter(0)\n  g = f32[64] parameter(1)\n"
      "  z = f32[] constant(-inf)\n  r = f32[64] reduce(x, z), dimensions={1}, to_apply=m\n"
      "  b = f32[64,512] broadcast(r), dimensions={0}\n  s = f32[64,512] subtract(x, b)\n"
      "  ROOT e = f32[64,512] exponential(s)\n}\n";
  static const char unknown[] =
      "HloModule unknown\nENTRY e {\n  x = f32[64,512] parameter(0)\n  g = f32[64] parameter(1)\n"
      "  b = f32[64,512] broadcast(g), dimensions={0}\n  s = f32[64,512] subtract(x, b)\n"
      "  ROOT e = f32[64,512] exponential(s)\n}\n";
  static float x[ROWS * COLUMNS], greatest[ROWS], a[ROWS * COLUMNS], b[ROWS * COLUMNS];
  static const char *const targets[] = {"host", "sm_90"};
  uint64_t state = 11;
  for (int r = 0; r < ROWS; r++) {
    greatest[r] = -INFINITY;
    for (int c = 0; c < COLUMNS; c++) {
      float v = 110.0f * (float)draw(&state) * 0x1p-32f - (float)(r % 3 * 40);
      if (r == 5) v = edges[draw(&state) % EDGES];
      if (r == 6 && c % 3) v = -INFINITY;
      x[r * COLUMNS + c] = v;
      greatest[r] = isnan(v) || isnan(greatest[r]) ? NAN : v > greatest[r] ? v : greatest[r];
    }
  }
  for (int i = 0; i < 2; i++) {
    kiln_module *m = parse(known), *n = parse(unknown);
    run(m, targets[i], (const void *[]){x, greatest}, (void *[]){a});
    run(n, targets[i], (const void *[]){x, greatest}, (void *[]){b});
    for (int k = 0; k < ROWS * COLUMNS; k++)
      ck_assert_msg(same(a[k], b[k]), "%s: exp(%a - %a): %a and %a", targets[i], (double)x[k],
                    (double)greatest[k / COLUMNS], (double)a[k], (double)b[k]);
    kiln_module_destroy(&m);
    kiln_module_destroy(&n);
  }
}
END_TEST

// --- what the graph says ------------------------------------------------------------------------------------------

typedef struct fact {
  const char *what, *text; // between the parameters and ROOT: s, the difference
  bool nonpositive;
} fact;

#define TOP "  r = f32[8] reduce(x, z), dimensions={1}, to_apply=m\n"
static const fact facts[] = {
    {"x less the greatest of its row",
     TOP "  b = f32[8,8] broadcast(r), dimensions={0}\n  s = f32[8,8] subtract(x, b)\n", true},
    {"of its column", TOP "  b = f32[8,8] broadcast(r), dimensions={1}\n  s = f32[8,8] subtract(x, b)\n", false},
    {"of another's row",
     "  y = f32[8,8] negate(x)\n  r = f32[8] reduce(y, z), dimensions={1}, to_apply=m\n"
     "  b = f32[8,8] broadcast(r), dimensions={0}\n  s = f32[8,8] subtract(x, b)\n",
     false},
    {"the least",
     "  r = f32[8] reduce(x, z), dimensions={1}, to_apply=n\n"
     "  b = f32[8,8] broadcast(r), dimensions={0}\n  s = f32[8,8] subtract(x, b)\n",
     false},
    {"the other way round", TOP "  b = f32[8,8] broadcast(r), dimensions={0}\n  s = f32[8,8] subtract(b, x)\n", false},
    {"more than that",
     TOP "  c = f32[8] broadcast(z), dimensions={}\n  t = f32[8] maximum(c, r)\n"
         "  b = f32[8,8] broadcast(t), dimensions={0}\n  s = f32[8,8] subtract(x, b)\n",
     true},
    {"of all",
     "  r = f32[] reduce(x, z), dimensions={0,1}, to_apply=m\n"
     "  b = f32[8,8] broadcast(r), dimensions={}\n  s = f32[8,8] subtract(x, b)\n",
     true},
    {"of what is converted",
     "  h = bf16[8,8] convert(x)\n  v = f32[8,8] convert(h)\n  w = f32[8,8] convert(h)\n"
     "  r = f32[8] reduce(v, z), dimensions={1}, to_apply=m\n"
     "  b = f32[8,8] broadcast(r), dimensions={0}\n  s = f32[8,8] subtract(w, b)\n",
     true},
    {"converted behind",
     TOP "  h = bf16[8] convert(r)\n  v = bf16[8,8] convert(x)\n"
         "  b = bf16[8,8] broadcast(h), dimensions={0}\n  d = bf16[8,8] subtract(v, b)\n"
         "  s = f32[8,8] convert(d)\n",
     true},
    {"converted on one side",
     TOP "  h = bf16[8] convert(r)\n  f = f32[8] convert(h)\n"
         "  b = f32[8,8] broadcast(f), dimensions={0}\n  s = f32[8,8] subtract(x, b)\n",
     false},
};

START_TEST(the_graph_says_what_is_at_most_0) {
  const fact *f = &facts[_i];
  char text[2048];
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .keep = KILN_KEEP_PLAN};
  kiln_artifact *a;
  snprintf(text, sizeof text,
           "HloModule fact\n" MAX "n { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] minimum(a, b) }\n"
           "ENTRY e {\n  x = f32[8,8] parameter(0)\n  z = f32[] constant(-inf)\n%s"
           "  ROOT e = f32[8,8] exponential(s)\n}\n",
           f->text);
  kiln_module *m = parse(text);
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s: %s", f->what, last_finding());
  size_t n;
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, &n);
  ck_assert_msg((strstr(plan, "at most 0") != NULL) == f->nonpositive, "%s: %s", f->what, plan);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void) {
  return RUN_TESTS("division", EACH(make_context, drop_context), {quotients_by_one_number, COUNT(operands_of)},
                   {exponentials_of_what_is_at_most_0, 1}, {the_graph_says_what_is_at_most_0, COUNT(facts)});
}

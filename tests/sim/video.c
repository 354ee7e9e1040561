// Video instructions with all their selectors, masks and signs, drawn at random: the simulator against a model that
// follows the PTX ISA's text, and every line against ptxas. PTX ISA 9.7.18.
#include "lanes/warp.h"
#include "stage.h"
#include "support/draw.h"
#include "support/ptxas.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

enum { LANES = 32, INSTRUCTIONS = 400, KERNELS = 12 };
typedef __int128 wide;

// What an instruction is made of, by number: the first so many of a name are of that shape.
static const char *const scalars[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax"};
static const char *const simds[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};
static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
static const char *const seconds[] = {"", ".add", ".min", ".max"};

typedef enum shape { SCALAR, SHIFT, COMPARE, MAD, SIMD, SIMD_COMPARE, SHAPES } shape;

typedef struct video {
  shape shape;
  const char *op;
  int count;            // elements of SIMD
  bool ds, as, bs, sat; // signs
  int second;           // of seconds; of SIMD 1: .add
  int compare;
  bool wrap, po;
  int shift;
  bool minus_a, minus_b, minus_c;
  int asel, bsel, dsel; // scalar: 0 the word, 1 to 4 .b0 to .b3, 5 and 6 .h0 and .h1
  int a[4], b[4];       // SIMD: which of both operands' elements
  bool given_a, given_b, given_d;
  unsigned mask;
} video;

static video draw_video(void) {
  video v = {.shape = (shape)below(SHAPES), .ds = chance(50), .as = chance(50), .bs = chance(50), .sat = chance(50)};
  v.count = chance(50) ? 2 : 4;
  v.compare = (int)below(6);
  v.wrap = chance(50);
  v.mask = (1u << v.count) - 1;
  switch (v.shape) {
  case SCALAR: v.op = scalars[below(5)]; break;
  case SHIFT: v.op = chance(50) ? "vshl" : "vshr", v.bs = false; break;
  case COMPARE: v.op = "vset", v.ds = v.sat = false; break;
  case MAD:
    v.op = "vmad", v.po = chance(30), v.shift = (int[]){0, 7, 15}[below(3)];
    if (!v.po) v.minus_a = chance(25), v.minus_b = chance(25), v.minus_c = v.minus_a == v.minus_b && chance(30);
    break;
  default: v.op = v.shape == SIMD ? simds[below(6)] : "vset"; break;
  }
  if (v.shape >= SIMD) {
    v.second = chance(40);
    if (v.second || v.shape == SIMD_COMPARE) v.sat = false;
    v.given_a = chance(60), v.given_b = chance(60), v.given_d = chance(60);
    for (int i = 0; i < v.count; i++) {
      v.a[i] = v.given_a ? (int)below(2 * (uint32_t)v.count) : i;
      v.b[i] = v.given_b ? (int)below(2 * (uint32_t)v.count) : v.count + i;
    }
    if (v.given_d) v.mask = 1 + below((1u << v.count) - 1);
  } else {
    v.asel = (int)below(7), v.bsel = (int)below(7);
    if (v.shape != MAD) v.second = (int)below(4);
    if (v.shape != MAD && !v.second && chance(50)) v.dsel = 1 + (int)below(6);
  }
  return v;
}

// --- as text ------------------------------------------------------------------------------------------------------

static const char *const parts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};

static void put_elements(FILE *f, const video *v, bool given, const int *which) {
  if (!given) return;
  fputs(v->count == 2 ? ".h" : ".b", f);
  for (int i = v->count - 1; i >= 0; i--) fprintf(f, "%d", which[i]);
}

static void put_video(FILE *f, const video *v) {
  const char *sat = v->sat ? ".sat" : "";
  char s[] = {'u', 's'};
  fputs(v->op, f);
  if (v->shape >= SIMD) fprintf(f, "%d", v->count);
  if (v->shape != COMPARE && v->shape != SIMD_COMPARE) fprintf(f, ".%c32", s[v->ds]);
  fprintf(f, ".%c32.%c32", s[v->as], s[v->bs]);
  if (v->shape == COMPARE || v->shape == SIMD_COMPARE) fprintf(f, ".%s", compares[v->compare]);
  if (v->po) fputs(".po", f);
  fputs(sat, f);
  if (v->shape == SHIFT) fputs(v->wrap ? ".wrap" : ".clamp", f);
  if (v->shift) fprintf(f, ".shr%d", v->shift);
  fputs(seconds[v->second], f);
  fputs(" %w3", f);
  if (v->shape >= SIMD) {
    if (v->given_d) {
      fputs(v->count == 2 ? ".h" : ".b", f);
      for (int i = v->count - 1; i >= 0; i--)
        if (v->mask >> i & 1) fprintf(f, "%d", i);
    }
    fputs(", %w0", f);
    put_elements(f, v, v->given_a, v->a);
    fputs(", %w1", f);
    put_elements(f, v, v->given_b, v->b);
    fputs(", %w2;\n", f);
    return;
  }
  fprintf(f, "%s, %s%%w0%s, %s%%w1%s", parts[v->dsel], v->minus_a ? "-" : "", parts[v->asel], v->minus_b ? "-" : "",
          parts[v->bsel]);
  if (v->shape == MAD || v->second || v->dsel) fprintf(f, ", %s%%w2", v->minus_c ? "-" : "");
  fputs(";\n", f);
}

// --- the model ----------------------------------------------------------------------------------------------------

static wide extended(uint64_t v, int bits, bool sign) {
  v &= ((uint64_t)1 << bits) - 1;
  return sign && v >> (bits - 1) ? (wide)v - ((wide)1 << bits) : (wide)v;
}
static wide select_part(uint32_t v, int sel, bool sign) {
  return sel == 0  ? extended(v, 32, sign)
         : sel < 5 ? extended(v >> 8 * (sel - 1), 8, sign)
                   : extended(v >> 16 * (sel - 5), 16, sign);
}
static wide clamped(wide v, int bits, bool sign) {
  wide most = sign ? ((wide)1 << (bits - 1)) - 1 : ((wide)1 << bits) - 1, least = sign ? -((wide)1 << (bits - 1)) : 0;
  return v > most ? most : v < least ? least : v;
}

static wide operation(const video *v, wide a, wide b) {
  const bool held[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  if (strcmp(v->op, "vadd") == 0) return a + b;
  if (strcmp(v->op, "vsub") == 0) return a - b;
  if (strcmp(v->op, "vavrg") == 0) return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  if (strcmp(v->op, "vabsdiff") == 0) return a > b ? a - b : b - a;
  if (strcmp(v->op, "vmin") == 0) return a < b ? a : b;
  if (strcmp(v->op, "vmax") == 0) return a > b ? a : b;
  if (strcmp(v->op, "vset") == 0) return held[v->compare];
  int n = (int)(v->wrap ? b % 32 : b > 32 ? 32 : b);
  for (int k = 0; strcmp(v->op, "vshl") == 0 && k < n; k++) a *= 2;
  return strcmp(v->op, "vshr") == 0 ? a >> n : a;
}

static uint32_t simd_model(const video *v, uint32_t a, uint32_t b, uint32_t c) {
  uint64_t both = a | (uint64_t)b << 32;
  int bits = 32 / v->count;
  uint32_t d = v->second ? c : 0;
  for (int i = 0; i < v->count; i++) {
    wide t = operation(v, extended(both >> bits * v->a[i], bits, v->as), extended(both >> bits * v->b[i], bits, v->bs));
    uint32_t ones = (uint32_t)(((uint64_t)1 << bits) - 1);
    if (v->sat) t = clamped(t, bits, v->ds);
    if (v->second)
      d += v->mask >> i & 1 ? (uint32_t)t : 0;
    else
      d |= v->mask >> i & 1 ? ((uint32_t)t & ones) << bits * i : c & ones << bits * i;
  }
  return d;
}

static uint32_t mad_model(const video *v, uint32_t a, uint32_t b, uint32_t c) {
  bool minus = v->minus_a != v->minus_b, sign = v->as || v->bs || minus || v->minus_c;
  wide t = select_part(a, v->asel, v->as) * select_part(b, v->bsel, v->bs);
  int lsb = v->po || minus || v->minus_c;
  if (minus)
    t = ~t;
  else if (v->minus_c)
    c = ~c;
  t = (t + extended(c, 32, sign) + lsb) >> v->shift;
  return (uint32_t)(v->sat ? clamped(t, 32, sign) : t);
}

static uint32_t model(const video *v, uint32_t a, uint32_t b, uint32_t c) {
  if (v->shape >= SIMD) return simd_model(v, a, b, c);
  if (v->shape == MAD) return mad_model(v, a, b, c);
  int bits = v->dsel == 0  ? 32
             : v->dsel < 5 ? 8
                           : 16,
      at = v->dsel == 0  ? 0
           : v->dsel < 5 ? 8 * (v->dsel - 1)
                         : 16 * (v->dsel - 5);
  wide t = operation(v, select_part(a, v->asel, v->as), select_part(b, v->bsel, v->bs)), o = extended(c, 32, v->ds);
  if (v->sat) t = clamped(t, bits, v->ds);
  if (v->second == 1) t += o;
  if (v->second == 2) t = t < o ? t : o;
  if (v->second == 3) t = t > o ? t : o;
  if (!v->dsel) return (uint32_t)t;
  uint32_t ones = ((1u << bits) - 1) << at;
  return ((uint32_t)t << at & ones) | (c & ~ones);
}

// --- kernels ------------------------------------------------------------------------------------------------------

// Instruction n reads words n * LANES + lane of the arrays a, b and c, one behind the other, and writes that of out.
static char *kernel_of(const video *v, size_t *size) {
  char *text = NULL;
  FILE *f = open_memstream(&text, size);
  fputs(".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b32 %w<9>; .reg .b64 %l<9>;\nmov.u32 %w4, %tid.x;\nmul.wide.u32 %l0, %w4, 4;\nld.param.u64 %l1, [in];\n"
        "ld.param.u64 %l2, [out];\nadd.u64 %l1, %l1, %l0;\nadd.u64 %l2, %l2, %l0;\n",
        f);
  for (size_t n = 0; n < INSTRUCTIONS; n++) {
    size_t at = n * LANES * 4, all = (size_t)INSTRUCTIONS * LANES * 4;
    fprintf(f, "ld.global.u32 %%w0, [%%l1+%zu];\nld.global.u32 %%w1, [%%l1+%zu];\nld.global.u32 %%w2, [%%l1+%zu];\n",
            at, at + all, at + 2 * all);
    put_video(f, &v[n]);
    fprintf(f, "st.global.u32 [%%l2+%zu], %%w3;\n", at);
  }
  fputs("ret;\n}\n", f);
  fclose(f);
  return text;
}

START_TEST(test_selectors) {
  static video v[INSTRUCTIONS];
  enum { WORDS = INSTRUCTIONS * LANES };
  stage st;
  kl_fault fault;
  size_t size = 0;
  seed = (uint64_t)_i + 1;
  for (size_t n = 0; n < INSTRUCTIONS; n++) v[n] = draw_video();
  char *text = kernel_of(v, &size);
  stage_open(&st);
  stage_expect(&st, "video instructions", text, "k");
  uint64_t address[] = {stage_memory(&st, 12 * WORDS), stage_memory(&st, 4 * WORDS)};
  uint32_t *in = (uint32_t *)(void *)kl_memory_at(&st.m, address[0], 12 * WORDS);
  const uint32_t *out = stage_read(&st, address[1], WORDS);
  for (size_t i = 0; i < 3 * WORDS; i++) in[i] = (uint32_t)draw_value(&seed, 32);
  kl_launch l = {.kernel = st.k, .grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = address};
  ck_assert_msg(kl_launch_run(st.cx, &st.m, &l, &fault) == KILN_OK, "%s", stage_why(&st));
  for (size_t i = 0; i < WORDS; i++) {
    uint32_t a = in[i], b = in[i + WORDS], c = in[i + 2 * WORDS], want = model(&v[i / LANES], a, b, c);
    if (out[i] == want) continue;
    put_video(stdout, &v[i / LANES]);
    ck_abort_msg("of %#x, %#x, %#x gives %#x, expected %#x", a, b, c, out[i], want);
  }
  if (ptxas_path() && _i == 0) {
    ptxas_result r = ptxas_run(text, size, "sm_75");
    ck_assert_msg(r.ok, "%s", r.log);
  }
  stage_close(&st);
  free(text);
}
END_TEST

// --- what is refused ----------------------------------------------------------------------------------------------

static const struct {
  const char *line, *message;
} refusals[] = {
    {"vadd.u32.u32.u32 %w0, %w1.b4, %w2;", "expected .b0 to .b3, .h0 or .h1, found .b4"},
    {"vadd.u32.u32.u32 %w0, %w1.h10, %w2;", "expected .b0 to .b3"},
    {"vadd.u32.u32.u32 %w0.b0, %w1, %w2;", "a third operand belongs"},
    {"vadd.u32.u32.u32 %w0, %w1, %w2, %w3;", "a third operand belongs"},
    {"vadd.u32.u32.u32.add %w0.b0, %w1, %w2, %w3;", "the result is a whole register"},
    {"vadd.u32.u32.u32.add %w0, %w1, %w2, %w3.b0;", "parts of registers"},
    {"vmad.u32.u32.u32 %w0, %w1, %w2, %w3.b0;", "the third operand has no selector"},
    {"vadd.u32.u32.u32 %w0, -%w1, %w2;", "cannot be negated"},
    {"vmad.u32.u32.u32.po %w0, -%w1, %w2, %w3;", "cannot be negated"},
    {"vmad.s32.u32.u32 %w0, -%w1, %w2, -%w3;", "either the product or the third operand"},
    {"vadd2.u32.u32.u32 %w0, %w1.h14, %w2, %w3;", "expected .h and two halves"},
    {"vadd2.u32.u32.u32 %w0, %w1.b10, %w2, %w3;", "expected .h and two halves"},
    {"vadd4.u32.u32.u32 %w0, %w1.b210, %w2, %w3;", "expected .b and four bytes"},
    {"vadd4.u32.u32.u32 %w0.b02, %w1, %w2, %w3;", "the highest first"},
    {"vadd4.u32.u32.u32 %w0.h0, %w1, %w2, %w3;", "expected elements to write"},
    {"add.u32 %w0, %w1.b0, %w2;", "parts of registers"},
};

START_TEST(test_refusals) {
  char text[512];
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  snprintf(text, sizeof text,
           ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() {\n.reg .b32 %%w<9>;\n%s\nret;\n}\n",
           refusals[_i].line);
  kl_memory_init(&m, cx, UINT64_MAX);
  ck_assert_int_eq(kl_load(cx, &m, "k.ptx", kl_str_of(text), &loaded), KILN_OK);
  ck_assert_int_ne(kl_kernel_prepare(cx, loaded, KL_STR("k"), &k), KILN_OK);
  const char *found = kiln_diagnostics_get(cx, 0)->text;
  ck_assert_msg(strstr(found, refusals[_i].message) != NULL, "expected '%s' in %s", refusals[_i].message, found);
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("video", NO_FRAME, {test_selectors, KERNELS}, {test_refusals, KL_COUNT(refusals)});
}

// Every compiled op on its dtypes, host and simulator against the evaluator on special values, and PTX through ptxas:
// of the pairs of an op and a dtype some by default, every op on one of its dtypes at least; all of them, on each
// machine, with KILN_TEST_SHARE=9 (support/share.h). Conversions of every value there is are convert.c's.

#include "harness.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 1031 }; // odd: every kernel has a tail

static const kl_op elementary[] = {KL_OP_EXP,   KL_OP_LOG,   KL_OP_TANH,  KL_OP_LOGISTIC, KL_OP_ERF,  KL_OP_SQRT,
                                   KL_OP_RSQRT, KL_OP_EXPM1, KL_OP_EXP10, KL_OP_SINH,     KL_OP_COSH, KL_OP_LOG1P,
                                   KL_OP_ASINH, KL_OP_ACOSH, KL_OP_ATANH, KL_OP_CBRT,     KL_OP_SIN,  KL_OP_COS,
                                   KL_OP_TAN,   KL_OP_ASIN,  KL_OP_ACOS,  KL_OP_ATAN};

static kiln_context *all; // of what lives as long as the program
static batch batches[TARGETS];

static void open_batches(void) {
  all = kiln_context_create(NULL);
  batches_init(batches, all);
}
static void close_all(void) {
  kiln_context_destroy(&all);
}

static bool allowed(kl_op op, kl_dtype t) {
  static const uint8_t bit[] = {[KL_CLASS_PRED] = KL_T_P,
                                [KL_CLASS_SINT] = KL_T_I,
                                [KL_CLASS_UINT] = KL_T_I,
                                [KL_CLASS_FLOAT] = KL_T_F,
                                [KL_CLASS_COMPLEX] = KL_T_C};
  if (!kl_is_array_dtype(t) || (op == KL_OP_COMPLEX && t != KILN_F32 && t != KILN_F64)) return false;
  return kl_op_table[op].types & bit[kl_info(t)->cls];
}

// Bits of NaN are promised to nobody, so what depends on them cannot be compared.
static const char *attributes(kl_op op, kl_dtype t, unsigned variant) {
  static const char *const dirs[] = {", direction=EQ", ", direction=NE", ", direction=LT",
                                     ", direction=LE", ", direction=GT", ", direction=GE"};
  static char text[64];
  if (op == KL_OP_COMPARE) return dirs[variant % 6];
  if (op != KL_OP_REDUCE_PRECISION) return "";
  snprintf(text, sizeof text, ", exponent_bits=%u, mantissa_bits=%u", 1 + variant % kl_info(t)->exp_bits,
           variant * 7 % (kl_info(t)->man_bits + 1u));
  return text;
}

static kl_dtype result_type(kl_op op, kl_dtype t) {
  switch (kl_op_table[op].result) {
  case KL_RESULT_PRED: return KILN_PRED;
  case KL_RESULT_PART: return kl_is_complex(t) ? kl_info(t)->part : t;
  case KL_RESULT_CPLX: return t == KILN_F64 ? KILN_C128 : KILN_C64;
  default: return t;
  }
}

static void module_text(char *text, size_t size, kl_op op, kl_dtype t, unsigned variant) {
  const char *name = kl_info(t)->name;
  int n = kl_op_table[op].arity;
  size_t at = (size_t)snprintf(text, size, "HloModule fusion\n\nENTRY fusion {\n");
  for (int i = 0; i < n; i++) {
    const char *ti = op == KL_OP_SELECT && i == 0 ? "pred" : name;
    at += (size_t)snprintf(text + at, size - at, "  p%d = %s[%d] parameter(%d)\n", i, ti, SIZE, i);
  }
  snprintf(text + at, size - at, "  ROOT r = %s[%d] %s(%s)%s\n}\n", kl_info(result_type(op, t))->name, SIZE,
           kl_op_name(op),
           n == 1   ? "p0"
           : n == 2 ? "p0, p1"
                    : "p0, p1, p2",
           attributes(op, t, variant));
}

// One text, whose number no other has, on the host and perhaps on the simulator, by kernels that are also assembled.
static void check_text(kiln_context *cx, const char *text, unsigned number, bool gpu) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "op.hlo", text, strlen(text), &m) != KILN_OK) give_up(number, "parsing", cx, text);
  run_and_check(cx, m, number | 1, text);
  run_and_check(cx, m, (number | 1) + 1, text);
  if (gpu) {
    run_gpu_and_check(cx, m, number % TARGETS, number | 1, text);
    batch_add(batches, number % TARGETS, cx, m, number, text);
  }
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}

// Of pairs (a, b) one in `every`: of those with one a, and of those with one b, too.
static bool has_pair(unsigned a, unsigned b, unsigned every) {
  return share_has(2 * (uint64_t)a + b, every);
}

static void check_op(kiln_context *cx, kl_op op, kl_dtype t) {
  char text[2048];
  unsigned variants = op == KL_OP_COMPARE ? 6 : op == KL_OP_REDUCE_PRECISION ? 5 : 1, before = 0, types = 0;
  for (unsigned u = 1; u < KILN_DTYPE_COUNT; u++) {
    before += u < t && allowed(op, (kl_dtype)u);
    types += allowed(op, (kl_dtype)u);
  }
  for (unsigned v = 0; v < variants; v++) {
    bool one = before == (op + v) % types && share_has(op + v, 1);
    if (!one && !has_pair(op, t + 3 * v, 4)) continue;
    module_text(text, sizeof text, op, t, v);
    check_text(cx, text, (op * KILN_DTYPE_COUNT + t) * 8 + v, one || has_pair(op, t + 3 * v, 9));
  }
}

// One test per dtype: no op of the table is refused on a type that it takes.
START_TEST(every_op) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_dtype t = (kl_dtype)_i;
  for (unsigned op = 1; kl_is_array_dtype(t) && op < KL_OP_COUNT; op++) {
    if (kl_op_is_elementwise((kl_op)op) && kl_op_table[op].kind != KL_KIND_CONVERT && allowed((kl_op)op, t))
      check_op(cx, (kl_op)op, t);
  }
  kiln_context_destroy(&cx);
}
END_TEST

// Numbers of texts of conversions are beyond those of ops.
static unsigned number_of(unsigned what, kl_dtype from, kl_dtype to) {
  return ((KL_OP_COUNT + what) * KILN_DTYPE_COUNT + from) * KILN_DTYPE_COUNT * 8 + to;
}

// Conversions from one dtype to some of the others; NaN to bits of other formats stays within the formats' own NaNs.
START_TEST(every_convert) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_dtype from = (kl_dtype)_i;
  for (unsigned to = 1; kl_is_array_dtype(from) && to < KILN_DTYPE_COUNT; to++) {
    if (!kl_is_array_dtype((kl_dtype)to) || !has_pair(from, to, 4)) continue;
    char text[512];
    snprintf(text, sizeof text,
             "HloModule fusion\n\nENTRY fusion {\n  p = %s[%d] parameter(0)\n  ROOT r = %s[%d] convert(p)\n}\n",
             kl_info(from)->name, SIZE, kl_info((kl_dtype)to)->name, SIZE);
    check_text(cx, text, number_of(0, from, (kl_dtype)to), has_pair(from, to, 12));
  }
  kiln_context_destroy(&cx);
}
END_TEST

// The bits of one type as those of some of the others, of elements side by side where widths differ. Bits of complex
// numbers are those of others by a bitcast only, in memory.
START_TEST(every_bitcast) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_dtype from = (kl_dtype)_i;
  for (unsigned t = 1; kl_is_array_dtype(from) && t < KILN_DTYPE_COUNT; t++) {
    kl_dtype to = (kl_dtype)t;
    if (!kl_is_array_dtype(to)) continue;
    bool alike = kl_is_complex(from) == kl_is_complex(to);
    bool few = from == KILN_PRED || (alike && kl_is_complex(from));
    if ((from == KILN_PRED) != (to == KILN_PRED) || !has_pair(from, to, few ? 1 : 4)) continue;
    unsigned in = kl_info(from)->bits, out = kl_info(to)->bits;
    char text[512], shape[2][32];
    for (int k = 0; k < 2; k++) {
      unsigned own = k ? out : in, other = k ? in : out;
      snprintf(shape[k], sizeof shape[k], own < other ? "%s[%d,%u]" : "%s[%d]", kl_info(k ? to : from)->name, SIZE,
               other / own);
    }
    snprintf(text, sizeof text, "HloModule fusion\n\nENTRY fusion {\n  p = %s parameter(0)\n  ROOT r = %s %s(p)\n}\n",
             shape[0], shape[1], alike ? "bitcast-convert" : "bitcast");
    check_text(cx, text, number_of(1, from, to), has_pair(from, to, few ? 2 : 12));
  }
  kiln_context_destroy(&cx);
}
END_TEST

// --- stochastic-convert -------------------------------------------------------------------------------------------

// Is one of the results of type t? Of those of each type, and of all of one type, one in three.
static bool is_result(kl_dtype from, unsigned t) {
  bool number = kl_is_float((kl_dtype)t) || (kl_is_array_dtype((kl_dtype)t) && kl_is_int((kl_dtype)t));
  return number && has_pair(from, t, 3);
}

// From one type to several at once. Of types of 8 bits and fewer every pair of a value and a random number.
START_TEST(every_stochastic_convert) {
  kl_dtype from = (kl_dtype)_i;
  if (!kl_is_float(from)) return;
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb text;
  kl_sb_init(&text, cx);
  unsigned bits = kl_info(from)->bits, count = 0;
  int n = bits <= 8 ? 1 << 2 * bits : 6007;
  kl_sbf(&text, "HloModule fusion\n\nENTRY fusion {\n  q = u%u[%d] parameter(1)\n", bits, n);
  if (bits <= 8) { // values in the upper half of the index, random numbers in the lower one
    kl_sbf(&text, "  i = u32[%d] iota(), iota_dimension=0\n  c = u32[] constant(%u)\n", n, bits);
    kl_sbf(&text, "  d = u32[%d] broadcast(c), dimensions={}\n  e = u32[%d] shift-right-logical(i, d)\n", n, n);
    kl_sbf(&text, "  f = u%u[%d] convert(e)\n  x = %s[%d] bitcast-convert(f)\n", bits, n, kl_info(from)->name, n);
    kl_sbf(&text, "  g = u32[] constant(%u)\n  h = u32[%d] broadcast(g), dimensions={}\n", (1u << bits) - 1, n);
    kl_sbf(&text, "  j = u32[%d] and(i, h)\n  r = u%u[%d] convert(j)\n  unused = %s[%d] parameter(0)\n", n, bits, n,
           kl_info(from)->name, n);
  } else {
    kl_sbf(&text, "  x = %s[%d] parameter(0)\n  r = u%u[%d] copy(q)\n", kl_info(from)->name, n, bits, n);
  }
  for (unsigned t = 1; t < KILN_DTYPE_COUNT; t++) {
    if (is_result(from, t))
      kl_sbf(&text, "  s%u = %s[%d] stochastic-convert(x, r)\n", count++, kl_info((kl_dtype)t)->name, n);
  }
  if (!count) {
    kl_sb_free(&text);
    kiln_context_destroy(&cx);
    return;
  }
  kl_sb_puts(&text, "  ROOT t = (");
  for (unsigned t = 1, k = 0; t < KILN_DTYPE_COUNT; t++) {
    if (is_result(from, t)) kl_sbf(&text, "%s%s[%d]", k++ ? ", " : "", kl_info((kl_dtype)t)->name, n);
  }
  kl_sb_puts(&text, ") tuple(");
  for (unsigned k = 0; k < count; k++) kl_sbf(&text, "%ss%u", k ? ", " : "", k);
  kl_sb_puts(&text, ")\n}\n");
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "stochastic.hlo", text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  for (unsigned seed = 0; seed < (bits <= 8 ? 1 : 4); seed++) run_and_check(cx, m, seed, text.p);
  run_gpu_and_check(cx, m, machines[from % 2], bits <= 8 ? 1 : from / 2 % 2, text.p);
  kl_sb_free(&text);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- all inputs ---------------------------------------------------------------------------------------------------

// Elementary functions of 16-bit types over all 65,536 inputs: each of one type, and of some the other.
START_TEST(all_16_bit_inputs) {
  if (!share_has((uint64_t)_i, _i % 2 == _i / 2 % 2 ? 1 : 4)) return;
  kl_dtype t = _i % 2 ? KILN_BF16 : KILN_F16;
  kl_op op = elementary[_i / 2];
  char text[256];
  snprintf(text, sizeof text,
           "HloModule all\n\nENTRY fusion {\n  p = %s[65536] parameter(0)\n  ROOT r = %s[65536] %s(p)\n}\n",
           kl_info(t)->name, kl_info(t)->name, kl_op_name(op));
  kiln_context *cx = kiln_context_create(NULL);
  kiln_mismatch x = {0};
  int64_t wrong = wrong_of_all_16_bit(cx, text, -1, &x);
  ck_assert_msg(wrong == 0, "%s of %s: %lld of 65536 differ, first input 0x%04llx: found %s, expected %s",
                kl_op_name(op), kl_info(t)->name, (long long)wrong, (long long)x.element, x.found, x.expected);
  kiln_context_destroy(&cx);
}
END_TEST

START_TEST(the_rest_is_assembled) {
  batches_free(batches);
}
END_TEST

int main(void) {
  return RUN_TESTS("ops", ONCE(open_batches, close_all), {every_stochastic_convert, KILN_DTYPE_COUNT - 1, 1},
                   {every_bitcast, KILN_DTYPE_COUNT - 1, 1}, {every_op, KILN_DTYPE_COUNT - 1, 1},
                   {every_convert, KILN_DTYPE_COUNT - 1, 1}, {all_16_bit_inputs, 2 * (int)KL_COUNT(elementary)},
                   {the_rest_is_assembled});
}

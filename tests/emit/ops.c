// Every compiled op on every dtype: host against evaluator on special values, and PTX for every target through ptxas.

#include "harness.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 1031 }; // odd: every kernel has a tail

static const kl_op elementary[] = {KL_OP_EXP,   KL_OP_LOG,   KL_OP_TANH,  KL_OP_LOGISTIC, KL_OP_ERF,  KL_OP_SQRT,
                                   KL_OP_RSQRT, KL_OP_EXPM1, KL_OP_EXP10, KL_OP_SINH,     KL_OP_COSH, KL_OP_LOG1P,
                                   KL_OP_ASINH, KL_OP_ACOSH, KL_OP_ATANH, KL_OP_CBRT,     KL_OP_SIN,  KL_OP_COS,
                                   KL_OP_TAN,   KL_OP_ASIN,  KL_OP_ACOS,  KL_OP_ATAN};

static bool allowed(kl_op op, kl_dtype t) {
  static const uint8_t bit[] = {[KL_CLASS_PRED] = KL_T_P,
                                [KL_CLASS_SINT] = KL_T_I,
                                [KL_CLASS_UINT] = KL_T_I,
                                [KL_CLASS_FLOAT] = KL_T_F,
                                [KL_CLASS_COMPLEX] = KL_T_C};
  if (!kl_is_array_dtype(t)) return false;
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

static unsigned compiled; // modules that went all the way

static void check_text(kiln_context *cx, const char *text, batch *batches, unsigned number) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "op.hlo", text, strlen(text), &m) != KILN_OK) give_up(number, "parsing", cx, text);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  kiln_artifact *a = NULL;
  kiln_status st = kiln_compile(cx, m, &p, &a);
  kiln_artifact_destroy(&a);
  if (st == KILN_E_UNSUPPORTED) {
    ck_assert_msg(strstr(kiln_diagnostics_get(cx, 0)->message, "not compiled yet"), "%s", text);
  } else {
    run_and_check(cx, m, number | 1, text);
    run_and_check(cx, m, (number | 1) + 1, text);
    if (number * 2654435761u >> 31) run_gpu_and_check(cx, m, number % TARGETS, number | 1, text); // half of them, mixed
    for (unsigned t = 0; t < TARGETS; t++) batch_add(batches, t, cx, m, number, text);
    compiled++;
  }
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}

static void check_op(kiln_context *cx, kl_op op, kl_dtype t, batch *batches, unsigned number) {
  char text[2048];
  unsigned variants = op == KL_OP_COMPARE ? 6 : op == KL_OP_REDUCE_PRECISION ? 5 : 1;
  for (unsigned v = 0; v < variants; v++) {
    module_text(text, sizeof text, op, t, v);
    check_text(cx, text, batches, number * 8 + v);
  }
}

// One test per dtype.
START_TEST(every_op) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  kl_dtype t = (kl_dtype)_i;
  compiled = 0;
  for (unsigned op = 1; kl_is_array_dtype(t) && op < KL_OP_COUNT; op++) {
    if (!kl_op_is_elementwise((kl_op)op) || kl_op_table[op].kind == KL_KIND_CONVERT || !allowed((kl_op)op, t)) continue;
    if (op == KL_OP_COMPLEX && t != KILN_F32 && t != KILN_F64) continue;
    check_op(cx, (kl_op)op, t, batches, op);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
  ck_assert_msg(!kl_is_array_dtype(t) || compiled >= 8, "only %u ops of %s are compiled", compiled, kl_info(t)->name);
}
END_TEST

// All conversions from one dtype; NaN to bits of other formats stays within the formats' own NaNs.
START_TEST(every_convert) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  kl_dtype from = (kl_dtype)_i;
  for (unsigned to = 1; kl_is_array_dtype(from) && to < KILN_DTYPE_COUNT; to++) {
    if (!kl_is_array_dtype((kl_dtype)to)) continue;
    char text[512];
    snprintf(text, sizeof text,
             "HloModule fusion\n\nENTRY fusion {\n  p = %s[%d] parameter(0)\n  ROOT r = %s[%d] convert(p)\n}\n",
             kl_info(from)->name, SIZE, kl_info((kl_dtype)to)->name, SIZE);
    check_text(cx, text, batches, 1000 + to);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// Elementary functions of 16-bit types over all 65,536 inputs.
START_TEST(all_16_bit_inputs) {
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

int main(void) {
  return RUN_TESTS("ops", NO_FRAME, {every_op, KILN_DTYPE_COUNT - 1, 1}, {every_convert, KILN_DTYPE_COUNT - 1, 1},
                   {all_16_bit_inputs, 2 * (int)KL_COUNT(elementary)});
}

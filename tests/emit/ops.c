// Every compiled op on every dtype: host against evaluator on special values, and PTX for every target through ptxas.

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

// On the host always; on the simulator one in three, assembled for one target in ten.
static void check_text(kiln_context *cx, const char *text, batch *batches, unsigned number) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "op.hlo", text, strlen(text), &m) != KILN_OK) give_up(number, "parsing", cx, text);
  run_and_check(cx, m, number | 1, text);
  run_and_check(cx, m, (number | 1) + 1, text);
  if (share_has(number, 3)) run_gpu_and_check(cx, m, number % TARGETS, number | 1, text);
  for (unsigned t = 0; t < TARGETS; t++)
    if (share_has(number * TARGETS + t, 10)) batch_add(batches, t, cx, m, number, text);
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

// One test per dtype: no op of the table is refused on a type that it takes.
START_TEST(every_op) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  kl_dtype t = (kl_dtype)_i;
  for (unsigned op = 1; kl_is_array_dtype(t) && op < KL_OP_COUNT; op++) {
    if (!kl_op_is_elementwise((kl_op)op) || kl_op_table[op].kind == KL_KIND_CONVERT || !allowed((kl_op)op, t)) continue;
    if (op == KL_OP_COMPLEX && t != KILN_F32 && t != KILN_F64) continue;
    check_op(cx, (kl_op)op, t, batches, op);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// Conversions from one dtype to half of the others; NaN to bits of other formats stays within the formats' own NaNs.
START_TEST(every_convert) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  kl_dtype from = (kl_dtype)_i;
  for (unsigned to = 1; kl_is_array_dtype(from) && to < KILN_DTYPE_COUNT; to++) {
    if (!kl_is_array_dtype((kl_dtype)to) || !share_has(from * KILN_DTYPE_COUNT + to, 2)) continue;
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

// The bits of one type as those of half of the others, of elements side by side where widths differ.
START_TEST(every_bitcast_convert) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  kl_dtype from = (kl_dtype)_i;
  for (unsigned t = 1; kl_is_array_dtype(from) && t < KILN_DTYPE_COUNT; t++) {
    kl_dtype to = (kl_dtype)t;
    if (!kl_is_array_dtype(to) || kl_is_complex(from) != kl_is_complex(to)) continue;
    if ((from == KILN_PRED) != (to == KILN_PRED) || !share_has(from * KILN_DTYPE_COUNT + to, 2)) continue;
    unsigned in = kl_info(from)->bits, out = kl_info(to)->bits;
    char text[512], shape[2][32];
    for (int k = 0; k < 2; k++) {
      unsigned own = k ? out : in, other = k ? in : out;
      snprintf(shape[k], sizeof shape[k], own < other ? "%s[%d,%u]" : "%s[%d]", kl_info(k ? to : from)->name, SIZE,
               other / own);
    }
    snprintf(text, sizeof text,
             "HloModule fusion\n\nENTRY fusion {\n  p = %s parameter(0)\n  ROOT r = %s bitcast-convert(p)\n}\n",
             shape[0], shape[1]);
    check_text(cx, text, batches, 2000 + t);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

// --- stochastic-convert -------------------------------------------------------------------------------------------

// From one type to all others at once. Of types of 8 bits and fewer every pair of a value and a random number.
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
    if (kl_is_float((kl_dtype)t) || (kl_is_array_dtype((kl_dtype)t) && kl_is_int((kl_dtype)t)))
      kl_sbf(&text, "  s%u = %s[%d] stochastic-convert(x, r)\n", count++, kl_info((kl_dtype)t)->name, n);
  }
  kl_sb_puts(&text, "  ROOT t = (");
  for (unsigned t = 1, k = 0; t < KILN_DTYPE_COUNT; t++) {
    if (kl_is_float((kl_dtype)t) || (kl_is_array_dtype((kl_dtype)t) && kl_is_int((kl_dtype)t)))
      kl_sbf(&text, "%s%s[%d]", k++ ? ", " : "", kl_info((kl_dtype)t)->name, n);
  }
  kl_sb_puts(&text, ") tuple(");
  for (unsigned k = 0; k < count; k++) kl_sbf(&text, "%ss%u", k ? ", " : "", k);
  kl_sb_puts(&text, ")\n}\n");
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "stochastic.hlo", text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  for (unsigned seed = 0; seed < (bits <= 8 ? 1 : 4); seed++) run_and_check(cx, m, seed, text.p);
  run_gpu_and_check(cx, m, machines[0], 1, text.p);
  run_gpu_and_check(cx, m, machines[1], bits <= 8 ? 1 : 2, text.p);
  kl_sb_free(&text);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- floats to integers: every value at which a conversion changes its mind
// -----------------------------------------------

enum { MOST_SPECIALS = 65536 };

// All patterns of types of 16 bits and fewer. Else zeros, the least and the largest numbers, infinities, NaNs quiet and
// signalling of both signs, and every power of two that bounds an integer type with its neighbours and their halves.
static size_t special_values(kl_dtype t, uint64_t *out) {
  unsigned bits = kl_info(t)->bits;
  size_t n = 0;
  for (; bits <= 16 && n < 1u << bits; n++) out[n] = n;
  if (bits <= 16) return n;
  uint64_t inf = bits == 64 ? 0x7ffull << 52 : 0xffull << 23, sign = 1ull << (bits - 1);
  uint64_t base[64] = {0, 1, inf - 1, inf, inf + 1, inf | inf >> 1, sign - 1, kl_float_encode(t, 0.5)};
  size_t nbase = 8;
  for (unsigned k = 0; k <= 64; k += k < 4 ? 1 : k % 8 == 0 ? 7 : 1)
    base[nbase++] = kl_float_encode(t, ldexp(1, (int)k));
  for (size_t i = 0; i < nbase; i++) {
    uint64_t near[6] = {base[i], base[i] + 1, base[i] - 1};
    near[3] = kl_float_encode(t, kl_float_decode(t, base[i]) + 0.5),
    near[4] = kl_float_encode(t, kl_float_decode(t, base[i]) - 0.5);
    near[5] = kl_float_encode(t, kl_float_decode(t, base[i]) - 1);
    for (size_t k = 0; k < 12; k++) out[n++] = (near[k % 6] & (sign | (sign - 1))) ^ (k < 6 ? 0 : sign);
  }
  return n;
}

// The real part of each element is special; the imaginary one is none of that.
static void *special_input(kl_dtype t, size_t *n) {
  static uint64_t values[MOST_SPECIALS];
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  *n = special_values(part, values);
  size_t bytes = (size_t)kl_info(part)->bits / 8 + !(kl_info(part)->bits / 8),
         step = bytes * (kl_is_complex(t) ? 2 : 1);
  unsigned per_byte = 8 / (kl_info(part)->bits < 8 ? kl_info(part)->bits : 8);
  uint8_t *p = aligned_alloc(16, (*n * step + 31) & ~(size_t)15);
  memset(p, 0, (*n * step + 31) & ~(size_t)15);
  for (size_t i = 0; i < *n; i++) {
    if (per_byte > 1)
      p[i / per_byte] |= (uint8_t)(values[i] << i % per_byte * kl_info(part)->bits);
    else
      memcpy(p + i * step, &values[i], bytes);
  }
  return p;
}

// One module with all integer types as its results.
START_TEST(every_float_to_every_integer) {
  kl_dtype from = (kl_dtype)_i, to[32];
  if (!kl_is_float(from) && !kl_is_complex(from)) return;
  kiln_context *cx = kiln_context_create(NULL);
  kl_sb text;
  size_t n, count = 0;
  void *in = special_input(from, &n), *out[32];
  kl_sb_init(&text, cx);
  for (unsigned t = 1; t < KILN_DTYPE_COUNT; t++) {
    if (kl_is_array_dtype((kl_dtype)t) && kl_is_int((kl_dtype)t)) to[count++] = (kl_dtype)t;
  }
  kl_sbf(&text, "HloModule m\n\nENTRY fusion {\n  p = %s[%zu] parameter(0)\n", kl_info(from)->name, n);
  for (size_t i = 0; i < count; i++) kl_sbf(&text, "  r%zu = %s[%zu] convert(p)\n", i, kl_info(to[i])->name, n);
  kl_sb_puts(&text, "  ROOT r = (");
  for (size_t i = 0; i < count; i++) kl_sbf(&text, "%s%s[%zu]", i ? ", " : "", kl_info(to[i])->name, n);
  kl_sb_puts(&text, ") tuple(");
  for (size_t i = 0; i < count; i++) kl_sbf(&text, "%sr%zu", i ? ", " : "", i);
  kl_sb_puts(&text, ")\n}\n");
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "m", text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  for (size_t i = 0; i < count; i++) out[i] = aligned_alloc(16, (n * 8 + 31) & ~(size_t)15);
  for (unsigned k = 0; k < MACHINES; k++) {
    unsigned t = machines[k];
    kiln_mismatch x[32];
    size_t bad = 0;
    run_on(cx, m, t, 1, 0, (const void *const *)&in, out, text.p);
    ck_assert_int_eq(kiln_module_check(cx, m, (const void *const *)&in, (const void *const *)out, x, 32, &bad, NULL),
                     KILN_OK);
    ck_assert_msg(bad == 0, "%s: %s to %s, %lld differ, first %lld: found %s, expected %s", targets[t],
                  kl_info(from)->name, kl_info(to[x[0].result])->name, (long long)x[0].count, (long long)x[0].element,
                  x[0].found, x[0].expected);
  }
  for (size_t i = 0; i < count; i++) free(out[i]);
  free(in);
  kl_sb_free(&text);
  kiln_module_destroy(&m);
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
  return RUN_TESTS("ops", NO_FRAME, {every_stochastic_convert, KILN_DTYPE_COUNT - 1, 1},
                   {every_bitcast_convert, KILN_DTYPE_COUNT - 1, 1}, {every_op, KILN_DTYPE_COUNT - 1, 1},
                   {every_convert, KILN_DTYPE_COUNT - 1, 1}, {every_float_to_every_integer, KILN_DTYPE_COUNT - 1, 1},
                   {all_16_bit_inputs, 2 * (int)KL_COUNT(elementary)});
}

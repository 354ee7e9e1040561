// Conversions from every type to every other: all patterns of types of 16 bits and fewer, and of wider ones every
// number at which a conversion to a type of 8 bits or fewer changes its mind, with its neighbours, and some of those of
// types of 16 bits. On the host and as kernels, with the machine's own conversions and without.

#include "harness.h"
#include "ir/dtype.h"
#include "support/share.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>

// sm_70: scalars; sm_80: pairs of 16 bits; sm_90: of 8 bits; sm_100a: of 4 bits.
static const unsigned code[] = {0, 2, 3, FAMILY, HOST};
enum { MOST = 1 << 20 };

typedef struct numbers {
  uint64_t at[MOST];
  size_t n;
} numbers;

static void add(numbers *v, kl_dtype t, uint64_t bits) {
  uint64_t mask = kl_info(t)->bits == 64 ? ~0ull : (1ull << kl_info(t)->bits) - 1;
  EXPECT(v->n < MOST, "too many numbers");
  v->at[v->n++] = bits & mask;
}

// The nearest number of type t with its neighbours, of both signs.
static void add_around(numbers *v, kl_dtype t, double x) {
  uint64_t b = kl_float_encode(t, x), sign = 1ull << (kl_info(t)->bits - 1);
  for (int i = -1; i <= 1; i++) {
    add(v, t, b + (uint64_t)i);
    add(v, t, (b + (uint64_t)i) ^ sign);
  }
}

// Finite numbers of a narrow format and the ties between them, also the one behind the last. Of 16-bit formats only
// some.
static void add_boundaries(numbers *v, kl_dtype t, kl_dtype to) {
  const kl_dtype_info *f = kl_info(to);
  unsigned bits = f->bits - (f->kind != KL_E8M0);
  uint32_t patterns = 1u << bits, last = patterns - 1;
  uint64_t n = bits <= 8 ? patterns : share_up_to(patterns / 128, patterns);
  while (!isfinite(kl_float_decode(to, last))) last--;
  double largest = kl_float_decode(to, last), gap = largest - kl_float_decode(to, last - 1);
  for (uint64_t k = 0; k < n; k++) {
    uint32_t p = share_pattern(k, bits);
    double x = kl_float_decode(to, p);
    if (p > last) continue;
    add_around(v, t, x);
    add_around(v, t, x + (p < last ? kl_float_decode(to, p + 1) - x : gap) / 2);
  }
  add_around(v, t, largest + gap);
}

// Zeros, the least and the largest numbers, infinities, NaNs quiet and signalling, and every power of two that bounds
// an integer type with its neighbours and their halves.
static void add_special(numbers *v, kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  uint64_t inf = bits == 64 ? 0x7ffull << 52 : 0xffull << 23, sign = 1ull << (bits - 1);
  uint64_t base[] = {0, 1, inf - 1, inf, inf + 1, inf | inf >> 1, sign - 1};
  for (size_t i = 0; i < KL_COUNT(base); i++) add(v, t, base[i]), add(v, t, base[i] | sign);
  for (int k = -1; k <= 64; k++) {
    add_around(v, t, ldexp(1, k));
    for (double d = -1; d <= 1; d += 0.5) add_around(v, t, ldexp(1, k) + d);
  }
}

static const numbers *numbers_of(kl_dtype t) {
  static numbers v;
  unsigned bits = kl_info(t)->bits;
  v.n = 0;
  // Every pattern comes in every lane of a word: each time all are through, the next begins one lane later.
  uint32_t all = bits <= 16 ? 1u << bits : 0, rounds = bits > 8 ? 2 : 8;
  for (uint32_t i = 0; i < all * rounds; i++) add(&v, t, t == KILN_PRED ? i & 1 : (i + i / all) % all);
  if (bits <= 16) return &v;
  if (!kl_is_float(t)) {
    for (unsigned k = 0; k < bits; k++)
      for (int i = -2; i <= 2; i++) add(&v, t, (1ull << k) + (uint64_t)i), add(&v, t, (uint64_t)i - (1ull << k));
    for (uint64_t i = 0; i < 70000; i += 7) add(&v, t, i), add(&v, t, 0 - i);
    return &v;
  }
  add_special(&v, t);
  for (unsigned to = 1; to < KILN_DTYPE_COUNT; to++)
    if (kl_is_float((kl_dtype)to) && kl_info((kl_dtype)to)->bits <= 16) add_boundaries(&v, t, (kl_dtype)to);
  return &v;
}

// The real part of each element is one of the numbers; the imaginary one is 0.
static void *input_of(kl_dtype t, const numbers *v) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  unsigned bits = kl_info(part)->bits, per_byte = bits < 8 ? 8 / bits : 1;
  size_t bytes = bits < 8 ? 1 : bits / 8, step = bytes * (kl_is_complex(t) ? 2 : 1);
  size_t size = (v->n * step + 31) & ~(size_t)15;
  uint8_t *p = aligned_alloc(16, size);
  memset(p, 0, size);
  for (size_t i = 0; i < v->n; i++) {
    if (per_byte > 1)
      p[i / per_byte] |= (uint8_t)(v->at[i] << i % per_byte * bits);
    else
      memcpy(p + i * step, &v->at[i], bytes);
  }
  return p;
}

// Runs the module, whose parameter is of type `from`, on the host and one GPU in five, and compares with the evaluator.
static void check_everywhere(kiln_context *cx, kl_dtype from, const void *in, const char *text) {
  enum { RESULTS = 40 };
  kiln_module *m = NULL;
  void *out[RESULTS];
  if (kiln_module_parse(cx, "m", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  size_t n = kiln_module_result_leaf_count(m);
  ck_assert(n <= RESULTS);
  for (size_t i = 0; i < n; i++) {
    size_t bytes = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    out[i] = aligned_alloc(16, bytes);
  }
  static uint64_t tried;
  for (unsigned k = 0; k < KL_COUNT(code); k++) {
    if (!share_has(tried++, code[k] == HOST ? 1 : 5)) continue;
    kiln_mismatch x[RESULTS];
    size_t bad = 0;
    run_on(cx, m, code[k], 1, 0, &in, out, text);
    ck_assert_int_eq(kiln_module_check(cx, m, &in, (const void *const *)out, x, RESULTS, &bad, NULL), KILN_OK);
    ck_assert_msg(bad == 0, "%s: %s to result %zu, %lld differ, first %lld: found %s, expected %s in\n%.600s",
                  targets[code[k]], kl_info(from)->name, x[0].result, (long long)x[0].count, (long long)x[0].element,
                  x[0].found, x[0].expected, text);
  }
  for (size_t i = 0; i < n; i++) free(out[i]);
  kiln_module_destroy(&m);
}

// One module for the result types of each width, so that a thread has as many lanes as with one result.
START_TEST(every_type_to_every_type) {
  kl_dtype from = (kl_dtype)_i;
  if (!kl_is_array_dtype(from)) return;
  kiln_context *cx = kiln_context_create(NULL);
  const numbers *v = numbers_of(kl_is_complex(from) ? kl_info(from)->part : from);
  void *in = input_of(from, v);
  for (unsigned bits = 1; bits <= 128; bits *= 2) {
    kl_dtype to[32];
    size_t count = 0;
    for (unsigned t = 1; t < KILN_DTYPE_COUNT; t++)
      if (kl_is_array_dtype((kl_dtype)t) && kl_info((kl_dtype)t)->bits == bits && t != from) to[count++] = (kl_dtype)t;
    if (!count) continue;
    kl_sb text;
    kl_sb_init(&text, cx);
    kl_sbf(&text, "HloModule m\n\nENTRY fusion {\n  p = %s[%zu] parameter(0)\n", kl_info(from)->name, v->n);
    for (size_t i = 0; i < count; i++) kl_sbf(&text, "  r%zu = %s[%zu] convert(p)\n", i, kl_info(to[i])->name, v->n);
    kl_sb_puts(&text, "  ROOT r = (");
    for (size_t i = 0; i < count; i++) kl_sbf(&text, "%s%s[%zu]", i ? ", " : "", kl_info(to[i])->name, v->n);
    kl_sb_puts(&text, ") tuple(");
    for (size_t i = 0; i < count; i++) kl_sbf(&text, "%sr%zu", i ? ", " : "", i);
    kl_sb_puts(&text, ")\n}\n");
    check_everywhere(cx, from, in, text.p);
    kl_sb_free(&text);
  }
  free(in);
  kiln_context_destroy(&cx);
}
END_TEST

// --- clamps before a conversion that clamps by itself
// -----------------------------------------------------------------

// %1$s: the source, %2$s: the result, %3$zu: elements. Bounds within, at and beyond the numbers that the machine's
// conversion takes to the largest one.
static const char *const clamps[] = {
    "clamp(l448, p, h448)",     "clamp(l464, p, h464)", "clamp(l448, p, h464)",     "clamp(l440, p, h440)",
    "clamp(l472, p, h472)",     "clamp(l448, p, h472)", "clamp(h448, p, l448)",     "clamp(l448, p, nan)",
    "minimum(p, h448)",         "maximum(l448, p)",     "clamp(l57344, p, h57344)", "clamp(l61440, p, h61440)",
    "clamp(l49152, p, h57344)",
};

START_TEST(clamps_before_conversions) {
  static const kl_dtype from[] = {KILN_F32, KILN_BF16, KILN_F16}, to[] = {KILN_F8E4M3FN, KILN_F8E4M3, KILN_F8E5M2};
  static const char *const bounds[] = {"440", "448", "464", "472", "49152", "57344", "61440"};
  kiln_context *cx = kiln_context_create(NULL);
  for (size_t f = 0; f < KL_COUNT(from); f++) {
    const numbers *v = numbers_of(from[f]);
    const char *name = kl_info(from[f])->name;
    void *in = input_of(from[f], v);
    kl_sb text;
    kl_sb_init(&text, cx);
    kl_sbf(&text, "HloModule m\n\nENTRY fusion {\n  p = %s[%zu] parameter(0)\n", name, v->n);
    for (size_t i = 0; i < KL_COUNT(bounds); i++) {
      kl_sbf(&text, "  ch%s = %s[] constant(%s)\n  h%s = %s[%zu] broadcast(ch%s), dimensions={}\n", bounds[i], name,
             bounds[i], bounds[i], name, v->n, bounds[i]);
      kl_sbf(&text, "  cl%s = %s[] constant(-%s)\n  l%s = %s[%zu] broadcast(cl%s), dimensions={}\n", bounds[i], name,
             bounds[i], bounds[i], name, v->n, bounds[i]);
    }
    kl_sbf(&text, "  cnan = %s[] constant(nan)\n  nan = %s[%zu] broadcast(cnan), dimensions={}\n", name, name, v->n);
    kl_sbf(&text, "  c = %s[%zu] %s\n", name, v->n, clamps[_i]);
    for (size_t t = 0; t < KL_COUNT(to); t++)
      kl_sbf(&text, "  r%zu = %s[%zu] convert(c)\n", t, kl_info(to[t])->name, v->n);
    kl_sb_puts(&text, "  ROOT r = (");
    for (size_t t = 0; t < KL_COUNT(to); t++) kl_sbf(&text, "%s%s[%zu]", t ? ", " : "", kl_info(to[t])->name, v->n);
    kl_sb_puts(&text, ") tuple(r0, r1, r2)\n}\n");
    check_everywhere(cx, from[f], in, text.p);
    kl_sb_free(&text);
    free(in);
  }
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("convert", NO_FRAME, {every_type_to_every_type, KILN_DTYPE_COUNT - 1, 1},
                   {clamps_before_conversions, KL_COUNT(clamps)});
}

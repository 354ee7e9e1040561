// What only moves data keeps every bit, on the host and as GPU kernels, for every type of float.
//
// The judge of a move is the same module over unsigned integers of the type's width, as the evaluator has it. Rows that
// move data beside computed values run it twice, with those values made zeros and then ones: where both agree, an
// element was moved.
#include "harness.h"
#include "support/share.h"
#include "support/context.h"
#include "support/random.h"

#include <stdio.h>

// $T: the type; $N: the element count, $H: half of it rounded up, $L: 3 less, $E: 1 less, $G: 1 if it is even; $K: a
// constant; $C: arithmetic, in the integer module none.
static const char before[] = //
    "  p = $T[$N] parameter(0)\n"
    "  q = $T[$N] parameter(1)\n"
    "  r = $T[$N] parameter(2)\n"
    "  z = $T[] parameter(3)\n"
    "  c = pred[$N] parameter(4)\n"
    "  a = pred[] parameter(5)\n"
    "  one = $T[] constant($K)\n"
    "  k = $T[$N] broadcast(one), dimensions={}\n"
    "  all = pred[$N] broadcast(a), dimensions={}\n"
    "  front = $T[$L] slice(p), slice={[2:$E]}\n"
    "  half = $T[$H] slice(p), slice={[0:$H]}\n"
    "  three = $T[3] slice(q), slice={[5:8]}\n"
    "  three_k = $T[3] broadcast(one), dimensions={}\n"
    "  sum = $T[$N] $C\n"
    "  front_sum = $T[$L] slice(sum), slice={[2:$E]}\n"
    "  padded = $T[$N] pad(front, z), padding=3_0\n"
    "  padded_sum = $T[$N] pad(front_sum, z), padding=3_0\n"
    "  chosen = $T[$N] select(c, q, k)\n";

static const struct {
  const char *text;
  bool computed;
} rows[] = {
    {"copy(p)", false},
    {"convert(p)", false},
    {"select(c, p, q)", false},
    {"select(c, p, k)", false},
    {"select(c, k, p)", false},
    {"select(all, p, q)", false},
    {"pad(front, z), padding=1_2", false},
    {"pad(front, one), padding=2_1", false},
    {"pad(half, one), padding=0_$G_1", false},
    {"pad(p, one), padding=-3_3", false},
    {"concatenate(front, three), dimensions={0}", false},
    {"concatenate(three_k, front), dimensions={0}", false},
    {"reverse(p), dimensions={0}", false},
    {"broadcast(z), dimensions={}", false},
    {"select(c, padded, chosen)", false},
    {"select(c, p, sum)", true},
    {"select(c, sum, chosen)", true},
    {"select(c, padded_sum, p)", true},
};

enum { ROWS = sizeof rows / sizeof *rows, PARAMETERS = 6 };

static const kl_dtype types[] = {KILN_F4E2M1FN, KILN_F8E3M4,     KILN_F8E4M3,        KILN_F8E4M3FN,  KILN_F8E4M3FNUZ,
                                 KILN_F8E5M2,   KILN_F8E5M2FNUZ, KILN_F8E4M3B11FNUZ, KILN_F8E8M0FNU, KILN_F16,
                                 KILN_BF16,     KILN_F32,        KILN_F64,           KILN_C64};

static kl_dtype integers_like(kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  return bits == 4 ? KILN_U4 : bits == 8 ? KILN_U8 : bits == 16 ? KILN_U16 : bits == 32 ? KILN_U32 : KILN_U64;
}

// --- modules ------------------------------------------------------------------------------------------------------

typedef struct words {
  const char *type, *constant, *computed;
  int n;
} words;

static void put(kl_sb *b, const char *text, const words *w) {
  for (const char *p = text; *p; p++) {
    if (*p != '$') {
      kl_sbf(b, "%c", *p);
      continue;
    }
    switch (*++p) {
    case 'T': kl_sb_puts(b, w->type); break;
    case 'K': kl_sb_puts(b, w->constant); break;
    case 'C': kl_sb_puts(b, w->computed); break;
    case 'N': kl_sbf(b, "%d", w->n); break;
    case 'H': kl_sbf(b, "%d", (w->n + 1) / 2); break;
    case 'L': kl_sbf(b, "%d", w->n - 3); break;
    case 'E': kl_sbf(b, "%d", w->n - 1); break;
    default: kl_sbf(b, "%d", w->n % 2 == 0);
    }
  }
}

// One result for each row from `first` to `last`. For `t` itself, or for integers of its width.
static kiln_module *rows_module(kl_sb *b, kl_dtype t, bool integers, int n, size_t first, size_t last) {
  char constant[32];
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  words w = {kl_info(integers ? integers_like(t) : t)->name, kl_is_complex(t) ? "(2, 0)" : "2", "add(r, r)", n};
  if (integers) {
    snprintf(constant, sizeof constant, "%llu", (unsigned long long)kl_float_encode(part, 2));
    w.constant = constant, w.computed = "copy(r)";
  }
  b->n = 0;
  kl_sb_puts(b, "HloModule m\n\nENTRY fusion {\n");
  put(b, before, &w);
  for (size_t i = first; i <= last; i++) {
    kl_sbf(b, "  r%zu = ", i);
    put(b, "$T[$N] ", &w);
    put(b, rows[i].text, &w);
    kl_sb_puts(b, "\n");
  }
  kl_sb_puts(b, "  ROOT t = (");
  for (size_t i = first; i <= last; i++) put(b, i > first ? ", $T[$N]" : "$T[$N]", &w);
  kl_sb_puts(b, ") tuple(");
  for (size_t i = first; i <= last; i++) kl_sbf(b, i > first ? ", r%zu" : "r%zu", i);
  kl_sb_puts(b, ")\n}\n");
  return parse(b->p);
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct data {
  void *in[PARAMETERS];
  void *out[ROWS], *want[2][ROWS];
} data;

static void *room(unsigned bits, int n) {
  size_t size = ((size_t)n * bits / 8 + 47) & ~(size_t)15;
  return memset(aligned_alloc(16, size), 0, size);
}

// Any pattern; half of those of more than 8 bits with an exponent of all ones.
static void fill(kl_dtype t, void *p, int n) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  const kl_dtype_info *f = kl_info(part);
  uint64_t exponent = ((1ull << f->exp_bits) - 1) << f->man_bits;
  size_t bytes = f->bits < 8 ? 1 : f->bits / 8, count = ((size_t)n * kl_info(t)->bits / 8 + bytes - 1) / bytes;
  for (size_t i = 0; i < count; i++) {
    uint64_t v = random_bits();
    if (bytes > 1 && random_bits() % 2) v |= exponent;
    memcpy((char *)p + i * bytes, &v, bytes);
  }
}

static void make_data(data *d, kl_dtype t, int n) {
  unsigned bits = kl_info(t)->bits;
  for (int i = 0; i < 4; i++) {
    d->in[i] = room(bits, i == 3 ? 1 : n);
    fill(t, d->in[i], i == 3 ? 1 : n);
  }
  d->in[4] = room(8, n), d->in[5] = room(8, 1);
  for (int i = 0; i < n; i++) ((uint8_t *)d->in[4])[i] = random_bits() % 2;
  *(uint8_t *)d->in[5] = random_bits() % 2;
  for (size_t i = 0; i < ROWS; i++)
    d->out[i] = room(bits, n), d->want[0][i] = room(bits, n), d->want[1][i] = room(bits, n);
}

static void drop_data(data *d) {
  for (size_t i = 0; i < PARAMETERS; i++) free(d->in[i]);
  for (size_t i = 0; i < ROWS; i++) free(d->out[i]), free(d->want[0][i]), free(d->want[1][i]);
}

// The integer module's results with zeros, then with ones, in the place of what is computed.
static void expect(data *d, const kiln_module *m, kl_dtype t, int n) {
  const void *in[PARAMETERS];
  void *computed = room(kl_info(t)->bits, n);
  memcpy(in, d->in, sizeof in);
  in[2] = computed;
  for (int i = 0; i < 2; i++) {
    memset(computed, i ? 0xff : 0, (size_t)n * kl_info(t)->bits / 8);
    ck_assert_int_eq(kiln_module_eval(cx, m, in, d->want[i], NULL), KILN_OK);
  }
  free(computed);
}

static uint64_t element(const void *p, unsigned bits, int i) {
  uint64_t v = 0;
  if (bits < 8) return ((const uint8_t *)p)[i / 2] >> i % 2 * 4 & 15;
  memcpy(&v, (const char *)p + (size_t)i * bits / 8, bits / 8);
  return v;
}

static void compare(const data *d, kl_dtype t, int n, const char *where) {
  unsigned bits = kl_info(t)->bits;
  for (size_t r = 0; r < ROWS; r++) {
    int moved = 0;
    for (int i = 0; i < n; i++) {
      uint64_t want = element(d->want[0][r], bits, i), found = element(d->out[r], bits, i);
      if (want != element(d->want[1][r], bits, i)) continue;
      EXPECT(want == found, "%s: %s of %s[%d], element %d: %#llx became %#llx", where, rows[r].text, kl_info(t)->name,
             n, i, (unsigned long long)want, (unsigned long long)found);
      moved++;
    }
    ck_assert_int_ge(moved, rows[r].computed ? n / 3 : n);
  }
}

static const int sizes[] = {391, 1024}; // no alignment to speak of, and the best

// Of types, sizes and machines every other one.
START_TEST(bits_stay) {
  kl_dtype t = types[_i / 2];
  int n = sizes[_i % 2];
  uint32_t align = _i % 2 ? 16 : kl_info(t)->bits < 8 ? 1 : kl_info(t)->bits / 8;
  kl_sb text;
  data d;
  kl_sb_init(&text, cx);
  make_data(&d, t, n);
  kiln_module *m = rows_module(&text, t, true, n, 0, ROWS - 1);
  expect(&d, m, t, n);
  kiln_module_destroy(&m);
  m = rows_module(&text, t, false, n, 0, ROWS - 1);
  ck_assert_int_eq(kiln_module_eval(cx, m, (const void *const *)d.in, d.out, NULL), KILN_OK);
  compare(&d, t, n, "evaluator");
  for (size_t k = 0; k < MACHINES; k++) {
    if (!share_has((uint64_t)_i * MACHINES + k, 2)) continue;
    run_on(cx, m, machines[k], 1, align, (const void *const *)d.in, d.out, text.p);
    compare(&d, t, n, targets[machines[k]]);
  }
  kiln_module_destroy(&m);
  drop_data(&d);
  kl_sb_free(&text);
}
END_TEST

// --- the PTX --------------------------------------------------------------------------------------------------------

// The first conversion from or to a float, or NULL.
static const char *float_conversion(const char *ptx) {
  for (const char *p = ptx; (p = strstr(p, "cvt.")); p++) {
    size_t n = strcspn(p, " \t\n");
    if (memchr(p, 'f', n)) return p;
  }
  return NULL;
}

// Of types, ops and targets one in three.
START_TEST(no_conversion) {
  kl_dtype t = types[_i / 2];
  int n = sizes[_i % 2];
  kl_sb text;
  kl_sb_init(&text, cx);
  for (size_t r = 0; r < ROWS; r++) {
    if (rows[r].computed) continue;
    kiln_module *m = rows_module(&text, t, false, n, r, r);
    for (unsigned on = 0; on < TARGETS; on++) {
      if (!share_has(((uint64_t)_i * ROWS + r) * TARGETS + on, 3)) continue;
      kiln_compile_params p = {.struct_size = sizeof p, .target = targets[on]};
      kiln_artifact *a = NULL;
      EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s\n%s", last_finding(), text.p);
      const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL), *found = float_conversion(ptx);
      EXPECT(!found, "%s: %s of %s[%d] converts: %.60s\n%s", targets[on], rows[r].text, kl_info(t)->name, n, found,
             ptx);
      kiln_artifact_destroy(&a);
    }
    kiln_module_destroy(&m);
  }
  kl_sb_free(&text);
}
END_TEST

// --- the total order ------------------------------------------------------------------------------------------------

// Zeros, ones, the least and the largest numbers, infinities and NaNs of several payloads, with both signs; all
// patterns of 8 bits and fewer.
static size_t ordered_patterns(kl_dtype t, uint64_t *out) {
  const kl_dtype_info *f = kl_info(t);
  size_t n = 0;
  if (f->bits <= 8) {
    for (; n < 1u << f->bits; n++) out[n] = n;
    return n;
  }
  uint64_t inf = ((1ull << f->exp_bits) - 1) << f->man_bits, quiet = 1ull << (f->man_bits - 1),
           sign = 1ull << (f->bits - 1);
  uint64_t positive[] = {0,       1,   quiet,   quiet * 2 - 1,   quiet * 2,   (uint64_t)f->bias << f->man_bits,
                         inf - 1, inf, inf + 1, inf + quiet - 1, inf + quiet, inf + quiet + 1,
                         sign - 1};
  for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) out[n++] = positive[i], out[n++] = positive[i] | sign;
  return n;
}

// Every pair in all six directions. The keys are IEEE 754's: sign and magnitude, the one type without a sign as it is.
START_TEST(total_order) {
  static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  kl_dtype t = types[_i];
  if (!kl_is_float(t)) return;
  const kl_dtype_info *f = kl_info(t);
  uint64_t patterns[256];
  size_t np = ordered_patterns(t, patterns), n = np * np;
  void *in[2] = {room(f->bits, (int)n), room(f->bits, (int)n)}, *out[6];
  int64_t *key[2] = {malloc(n * sizeof(int64_t)), malloc(n * sizeof(int64_t))};
  for (size_t i = 0; i < n; i++) {
    for (int o = 0; o < 2; o++) {
      uint64_t v = patterns[o ? i % np : i / np], sign = 1ull << (f->bits - 1);
      key[o][i] = t != KILN_F8E8M0FNU && v & sign ? -1 - (int64_t)(v ^ sign) : (int64_t)v;
      if (f->bits < 8)
        ((uint8_t *)in[o])[i / 2] |= (uint8_t)(v << i % 2 * 4);
      else
        memcpy((char *)in[o] + i * (f->bits / 8), &v, f->bits / 8);
    }
  }
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule m\n\nENTRY fusion {\n  p = %s[%zu] parameter(0)\n  q = %s[%zu] parameter(1)\n", f->name, n,
         f->name, n);
  for (int d = 0; d < 6; d++)
    kl_sbf(&b, "  r%d = pred[%zu] compare(p, q), direction=%s, type=TOTALORDER\n", d, n, directions[d]);
  kl_sbf(&b, "  ROOT t = (pred[%zu]", n);
  for (int d = 1; d < 6; d++) kl_sbf(&b, ", pred[%zu]", n);
  kl_sb_puts(&b, ") tuple(r0, r1, r2, r3, r4, r5)\n}\n");
  kiln_module *m = parse(b.p);
  for (int d = 0; d < 6; d++) out[d] = room(8, (int)n);
  for (size_t k = 0; k <= MACHINES; k++) {
    unsigned on = k < MACHINES ? machines[k] : HOST + 1;
    if (on > HOST)
      ck_assert_int_eq(kiln_module_eval(cx, m, (const void *const *)in, out, NULL), KILN_OK);
    else
      run_on(cx, m, on, 1, 0, (const void *const *)in, out, b.p);
    for (size_t i = 0; i < n; i++) {
      int64_t x = key[0][i], y = key[1][i];
      const bool want[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
      for (int d = 0; d < 6; d++)
        EXPECT(((uint8_t *)out[d])[i] == want[d], "%s: %s %#llx %s %#llx is not %d",
               on > HOST ? "evaluator" : targets[on], f->name, (unsigned long long)patterns[i / np], directions[d],
               (unsigned long long)patterns[i % np], want[d]);
    }
  }
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  for (int d = 0; d < 6; d++) free(out[d]);
  for (int o = 0; o < 2; o++) free(in[o]), free(key[o]);
}
END_TEST

int main(void) {
  return RUN_TESTS("moves", EACH(make_context, drop_context), {bits_stay, 2 * KL_COUNT(types)},
                   {no_conversion, 2 * KL_COUNT(types)}, {total_order, KL_COUNT(types)});
}

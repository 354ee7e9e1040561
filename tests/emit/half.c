// f16 and bf16 functions on pairs of lanes: every input, with every value that the approximate instructions may return;
// and whole kernels, on the simulator for several targets and on the host, which must give the same bits. MPFR judges.
// It takes about 10 seconds: 144 pairs of values where there are two approximations, on all inputs.
#include "harness.h"
#include "lower/emit/math/half/impl.h"
#include "math_jit.h"
#include "math_ref.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static mj *jit;
static void open_jit(void) {
  jit = mj_open();
}
static void close_jit(void) {
  mj_close(jit);
}

enum { ALL = 65536 };

static kl_dtype type_of(const kh_row *r) {
  return r->kind == KB_F16 ? KILN_F16 : KILN_BF16;
}

static const uint32_t *want;

// What each input of a row has as its result. Lives as long as the program.
static const uint32_t *table_of(int row) {
  static uint32_t *tables[64];
  ck_assert_int_lt(row, (int)KL_COUNT(tables));
  if (!tables[row]) {
    tables[row] = malloc(ALL * sizeof *tables[row]);
    mr_table_of_op(kh_rows[row].op, type_of(&kh_rows[row]), tables[row]);
  }
  return tables[row];
}

static kb_reg emit_row(kb *k, const void *user, kb_reg a, kb_reg b) {
  const kh_row *r = user;
  kb_reg x = kb_bitcast(k, a, r->kind, 2), y = kb_bitcast(k, b, r->kind, 2), out;
  kh_emit(k, r, 1, (const kb_reg *const[]){&x, &y}, &out);
  return kb_bitcast(k, out, KB_I32, 1);
}

static void check(const kh_row *r, uint32_t x, uint32_t got, const char *how) {
  EXPECT(mr_same(type_of(r), got, want[x]), "%s %s(%a = %#x) %s: %#x, correctly rounded %#x", kl_info(type_of(r))->name,
         kl_op_table[r->op].name, kl_float_decode(type_of(r), x), x, how, got, want[x]);
}

// Each input stands in both halves once. Of what the instructions may give one combination in three is tried.
START_TEST(approximations_change_no_result) {
  static uint32_t x[ALL], y[ALL];
  const kh_row *row = &kh_rows[_i];
  if (row->op == KL_OP_DIVIDE || !share_has((uint64_t)_i, 1)) return; // quotients: below
  unsigned sites, runs = 1;
  char picks[64];
  want = table_of(_i);
  for (uint32_t i = 0; i < ALL; i++) x[i] = i | (ALL - 1 - i) << 16;
  mj_fn f = mj_compile_approx(jit, &(mj_spec){KB_I32, KB_I32, 1, emit_row, row}, 90, &sites);
  ck_assert_uint_le(sites, MJ_SITES);
  for (unsigned s = 0; s < sites / 2; s++) runs *= MJ_PICKS;
  for (unsigned r = 0; r < runs; r++) {
    if (!share_has((uint64_t)_i << 16 | r, 3)) continue;
    for (unsigned s = 0, rest = r; s < sites / 2; s++, rest /= MJ_PICKS)
      mj_pick[s] = mj_pick[s + sites / 2] = rest % MJ_PICKS;
    snprintf(picks, sizeof picks, "with picks %u, %u", mj_pick[0], mj_pick[1]);
    f(x, x, y, ALL);
    for (uint32_t i = 0; i < ALL; i++) {
      check(row, x[i] & 0xffff, y[i] & 0xffff, picks);
      check(row, x[i] >> 16, y[i] >> 16, picks);
    }
  }
}
END_TEST

START_TEST(kernels_are_correctly_rounded) {
  static const unsigned on[] = {1, 2, 3, HOST}; // sm_75: the way of those without pairs; of GPUs one in four
  static uint16_t x[ALL], y[ALL];
  const kh_row *row = &kh_rows[_i];
  if (row->op == KL_OP_DIVIDE || !share_has((uint64_t)_i, 1)) return;
  want = table_of(_i);
  char text[256];
  const char *type = kl_info(type_of(row))->name;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  snprintf(text, sizeof text, "HloModule m\n\nENTRY fusion {\n  p = %s[%d] parameter(0)\n  ROOT r = %s[%d] %s(p)\n}\n",
           type, ALL, type, ALL, kl_op_table[row->op].name);
  if (kiln_module_parse(cx, "half.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  for (uint32_t i = 0; i < ALL; i++) x[i] = (uint16_t)i;
  for (size_t t = 0; t < KL_COUNT(on); t++) {
    if (on[t] != HOST && !share_has((size_t)_i * KL_COUNT(on) + t, 4)) continue;
    memset(y, 0x5a, sizeof y);
    run_on(cx, m, on[t], 1, 0, (const void *[]){x}, (void *[]){y}, text);
    for (uint32_t i = 0; i < ALL; i++) check(row, i, y[i], targets[on[t]]);
  }
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- quotients ------------------------------------------------------------------------------------------------------

// a / b rounded to odd in double.
static double quotient(double a, double b) {
  double q = a / b, rest = fma(-q, b, a);
  uint64_t u;
  memcpy(&u, &q, sizeof u);
  if (!isfinite(q) || q == 0 || rest == 0 || u & 1) return q;
  return nextafter(q, (rest > 0) == (b > 0) ? INFINITY : -INFINITY);
}

static void check_quotient(kl_dtype t, uint32_t a, uint32_t b, uint32_t got, const char *how) {
  double x = kl_float_decode(t, a), y = kl_float_decode(t, b);
  uint32_t right = (uint32_t)kl_float_encode(t, quotient(x, y));
  EXPECT(mr_same(t, got, right), "%s %a / %a %s: %#x, correctly rounded %#x", kl_info(t)->name, x, y, how, got, right);
}

enum { BATCH = 1 << 15 };

// All pairs of significands with exponents of all kinds, drawn so that quotients often are denormal, or nearly.
static uint32_t exponents(const kl_dtype_info *f, uint32_t *b) {
  uint32_t most = (1u << f->exp_bits) - 1, r = (uint32_t)(random_bits() >> 32), e = r % (most + 1);
  *b = r >> 8 & most;
  if (r >> 30 == 1) *b = (e + (uint32_t)f->bias - 3 + (r >> 20) % (f->man_bits + 6u)) & most; // a denormal quotient
  if (r >> 30 == 2) *b = (r >> 20) % 4 ? 0 : most, e = (r >> 24) % 3;
  if (r >> 30 == 3) *b = (e - (uint32_t)f->bias + 2 - (r >> 20) % 4) & most; // nearly too large a one
  return e;
}

static int64_t next_pairs(kl_dtype t, int64_t at, uint32_t *a, uint32_t *b) {
  const kl_dtype_info *f = kl_info(t);
  int64_t mans = 1ll << f->man_bits;
  for (int i = 0; i < BATCH; i++) {
    a[i] = b[i] = 0;
    for (int h = 0; h < 32; h += 16, at++) {
      uint32_t eb, ea = exponents(f, &eb), sign = (uint32_t)(random_bits() >> 62);
      a[i] |= ((sign & 1) << 15 | ea << f->man_bits | (uint32_t)(at % mans)) << h;
      b[i] |= ((sign >> 1) << 15 | eb << f->man_bits | (uint32_t)(at / mans % mans)) << h;
    }
  }
  return at;
}

START_TEST(quotients_are_correctly_rounded) {
  static uint32_t a[BATCH], b[BATCH], y[BATCH];
  const kh_row *row = &kh_rows[_i];
  if (row->op != KL_OP_DIVIDE) return;
  kl_dtype t = type_of(row);
  unsigned sites;
  mj_fn f = mj_compile_approx(jit, &(mj_spec){KB_I32, KB_I32, 1, emit_row, row}, 90, &sites);
  int64_t rounds = (int64_t)share_of(2), pairs = 1ll << 2 * kl_info(t)->man_bits;
  if (pairs < 1 << 20) rounds *= (1 << 20) / pairs;
  random_seed((uint64_t)_i);
  for (int64_t at = 0; at < rounds * pairs;) {
    at = next_pairs(t, at, a, b);
    mj_pick[0] = mj_pick[1] = (unsigned)(random_bits() >> 32) % MJ_PICKS;
    f(a, b, y, BATCH);
    for (int i = 0; i < BATCH; i++) {
      check_quotient(t, a[i] & 0xffff, b[i] & 0xffff, y[i] & 0xffff, "of pairs");
      check_quotient(t, a[i] >> 16, b[i] >> 16, y[i] >> 16, "of pairs");
    }
  }
}
END_TEST

START_TEST(quotients_of_kernels) {
  static const unsigned on[] = {1, 2, 3, HOST};
  static uint32_t a[BATCH], b[BATCH], y[BATCH];
  const kh_row *row = &kh_rows[_i];
  if (row->op != KL_OP_DIVIDE) return;
  kl_dtype t = type_of(row);
  char text[256];
  const char *type = kl_info(t)->name;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  snprintf(text, sizeof text,
           "HloModule m\n\nENTRY fusion {\n  p = %1$s[%2$d] parameter(0)\n  q = %1$s[%2$d] parameter(1)\n"
           "  ROOT r = %1$s[%2$d] divide(p, q)\n}\n",
           type, 2 * BATCH);
  if (kiln_module_parse(cx, "half.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  random_seed((uint64_t)_i);
  next_pairs(t, 0, a, b);
  for (size_t i = 0; i < KL_COUNT(on); i++) {
    run_on(cx, m, on[i], 1, 0, (const void *[]){a, b}, (void *[]){y}, text);
    for (int k = 0; k < BATCH; k++) {
      check_quotient(t, a[k] & 0xffff, b[k] & 0xffff, y[k] & 0xffff, targets[on[i]]);
      check_quotient(t, a[k] >> 16, b[k] >> 16, y[k] >> 16, targets[on[i]]);
    }
  }
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// --- power and atan2
// --------------------------------------------------------------------------------------------------

static const struct of_two {
  kl_op op;
  double (*nearest)(double, double);
  int (*exact)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
} of_two[] = {{KL_OP_POWER, pow, mpfr_pow}, {KL_OP_ATAN2, atan2, mpfr_atan2}};
enum { ASKED = 1 << 17 };

// Double decides where its neighbours are rounded alike; MPFR elsewhere, with the side on which the exact value lies of
// what it gives.
static uint32_t right_of_two(const struct of_two *f, kl_dtype t, double x, double y, mpfr_t r) {
  double v = f->nearest(x, y), above = nextafter(v, INFINITY), below = nextafter(v, -INFINITY);
  uint32_t up = (uint32_t)kl_float_encode(t, above), down = (uint32_t)kl_float_encode(t, below);
  if (isnan(v) || v == 0 || isinf(v) || up == down) return (uint32_t)kl_float_encode(t, v);
  mpfr_t a, b;
  mpfr_init2(a, 53), mpfr_init2(b, 53);
  mpfr_set_d(a, x, MPFR_RNDN), mpfr_set_d(b, y, MPFR_RNDN);
  int off = f->exact(r, a, b, MPFR_RNDN); // the sign of what r is too much
  if (off > 0) mpfr_nextbelow(r);
  if (off < 0) mpfr_nextabove(r);
  mpfr_clear(a), mpfr_clear(b);
  return (uint32_t)kl_float_encode(t, mr_odd_double(r));
}

// Pairs evenly from all; small whole and half powers of every number, whose results are ties where they are exact;
// small angles, which would be ties if they were their quotients; bases near 1.
enum { KINDS = 4 };
static void pairs_of_two(const kl_dtype_info *f, int64_t round, uint16_t *x, uint16_t *y) {
  for (int i = 0; i < ASKED; i++) {
    uint64_t r = random_bits();
    x[i] = (uint16_t)(r >> 16), y[i] = (uint16_t)(r >> 32);
    kl_dtype t = f->man_bits == 10 ? KILN_F16 : KILN_BF16;
    uint32_t pair = share_pattern((uint64_t)(round / KINDS * ASKED + i), 32);
    switch (round % KINDS) {
    case 0: x[i] = (uint16_t)(pair >> 16), y[i] = (uint16_t)pair; break;
    case 1: y[i] = (uint16_t)kl_float_encode(t, (double)(int)(r % 89 - 24) / 2); break;
    case 2: x[i] &= 0xff, y[i] = (uint16_t)kl_float_encode(t, ldexp(1 + (double)(r % 4) / 2, (int)(r >> 8) % 8)); break;
    case 3: x[i] = (uint16_t)kl_float_encode(t, 1 + ldexp((double)(r % 512) - 256, -1 - (int)(r >> 12) % 12)); break;
    default: break;
    }
  }
}

static void check_of_two(const struct of_two *f, kl_dtype t, const uint16_t *x, const uint16_t *y, const uint16_t *z,
                         int n, const char *where) {
  mpfr_t r;
  mpfr_init2(r, 200);
  for (int i = 0; i < n; i++) {
    double a = kl_float_decode(t, x[i]), b = kl_float_decode(t, y[i]);
    uint32_t right = right_of_two(f, t, a, b, r);
    EXPECT(mr_same(t, z[i], right), "%s %s(%a, %a) on %s: %#x, correctly rounded %#x", kl_info(t)->name,
           kl_op_table[f->op].name, a, b, where, z[i], right);
  }
  mpfr_clear(r);
}

// Half a million pairs; with KILN_TEST_SHARE=32768 all 2^32, in some forty minutes for each op and type.
START_TEST(powers_and_angles_are_correctly_rounded) {
  static uint16_t x[ASKED], y[ASKED], z[ASKED];
  const struct of_two *f = &of_two[_i / 2];
  kl_dtype t = _i % 2 ? KILN_F16 : KILN_BF16;
  char text[256], type[32];
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_kernel *k = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  snprintf(type, sizeof type, "%s[%d]", kl_info(t)->name, ASKED);
  snprintf(text, sizeof text,
           "HloModule m\n\nENTRY fusion {\n  p = %1$s parameter(0)\n  q = %1$s parameter(1)\n  ROOT r = %1$s %2$s(p, "
           "q)\n}\n",
           type, kl_op_table[f->op].name);
  if (kiln_module_parse(cx, "half.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK || kiln_kernel_load(cx, a, &k) != KILN_OK) give_up(0, "host", cx, text);
  random_seed((uint64_t)_i);
  for (int64_t round = 0, rounds = (int64_t)share_of(KINDS); round < rounds; round++) {
    pairs_of_two(kl_info(t), round, x, y);
    if (kiln_kernel_run(cx, k, (const void *[]){x, y}, (void *[]){z}, NULL) != KILN_OK) give_up(0, "run", cx, text);
    check_of_two(f, t, x, y, z, ASKED, "host");
  }
  pairs_of_two(kl_info(t), 1 + _i / 2, x, y);
  run_on(cx, m, 3, 1, 0, (const void *[]){x, y}, (void *[]){z}, text);
  check_of_two(f, t, x, y, z, ASKED, targets[3]);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("half", ONCE(open_jit, close_jit), {approximations_change_no_result, (int)kh_row_count},
                   {kernels_are_correctly_rounded, (int)kh_row_count},
                   {quotients_are_correctly_rounded, (int)kh_row_count}, {quotients_of_kernels, (int)kh_row_count},
                   {powers_and_angles_are_correctly_rounded, 2 * KL_COUNT(of_two)});
}

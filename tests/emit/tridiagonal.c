// Tridiagonal systems, as LAPACK's calls have them: what is found solves them, by arithmetic of this file's own; the
// evaluator finds it right, and what is moved from it wrong; host and simulator have the same bits; PTX goes through
// ptxas.
#include "harness.h"
#include "numbers.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/share.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 80, SIDES = 3, BYTES = MOST * SIDES * 16, ALL = 5 };

// `batch`: as in "2,", with two of all.
static void put_text(kl_sb *b, kl_dtype t, const char *batch, int64_t m, int64_t n, bool sparse) {
  const char *name = kl_info(t)->name;
  char list[60], sides[60];
  int letter = 0;
  while (types[letter] != t) letter++;
  snprintf(list, sizeof list, "%s[%s%d]", name, batch, (int)m);
  snprintf(sides, sizeof sides, "%s[%s%d,%d]", name, batch, (int)m, (int)n);
  kl_sbf(b, "  l = %s parameter(0)\n  d = %s parameter(1)\n  u = %s parameter(2)\n  b = %s parameter(3)\n  ROOT x = ",
         list, list, list, sides);
  if (sparse)
    kl_sbf(b, "%s custom-call(l, d, u, b), custom_call_target=\"cusparse_gtsv2_ffi\"\n", sides);
  else
    kl_sbf(b, "(%s, %s, %s, %s, s32[%.*s]) custom-call(l, d, u, b), custom_call_target=\"lapack_%cgtsv_ffi\"\n", list,
           list, list, sides, *batch ? (int)strlen(batch) - 1 : 0, batch, letters[letter]);
}

static kiln_module *module_of(kl_dtype t, const char *batch, int64_t m, int64_t n, bool sparse) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY m {\n");
  put_text(&b, t, batch, m, n, sparse);
  kl_sb_puts(&b, "}\n");
  kiln_module *module = parse(b.p);
  kl_sb_free(&b);
  return module;
}

static char in[4][BYTES] __attribute__((aligned(16))), out[2][ALL][BYTES] __attribute__((aligned(16)));

// Elimination with exchanges is stable: as good as another system, whose elements are nearly these.
static void expect_solved(kl_dtype t, int64_t m, int64_t n, const void *x, const char *where) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < n; k++) {
      number left = -get(t, in[3], i * n + k);
      double size = cabs(left);
      for (int64_t j = i ? i - 1 : 0; j < m && j <= i + 1; j++) {
        number p = get(t, in[j - i + 1], i) * get(t, x, j * n + k);
        left += p;
        size += cabs(p);
      }
      // What row i was made of may be rows of other sizes.
      double most = 0;
      for (int64_t j = 0; j < m; j++) most = fmax(most, cabs(get(t, x, j * n + k)));
      EXPECT(cabs(left) <= 64 * unit_of(t) * (size + 8 * most), "%s: row %d of side %d is off by %g", where, (int)i,
             (int)k, cabs(left));
    }
}

static size_t found_wrong(const kiln_module *m, bool sparse, char (*x)[BYTES]) {
  kiln_mismatch found[3];
  size_t count = 0;
  const void *given[] = {in[0], in[1], in[2], in[3]}, *all[] = {x[0], x[1], x[2], x[3], x[4]}, *one[] = {x[3]};
  ck_assert_int_eq(kiln_module_check(cx, m, given, sparse ? one : all, found, 3, &count, NULL), KILN_OK);
  return count;
}

static void run_all(const kiln_module *m, bool sparse, int gpu) {
  char(*x)[BYTES] = out[gpu];
  void *all[] = {x[0], x[1], x[2], x[3], x[4]}, *one[] = {x[3]};
  memset(x, 0x55, sizeof out[gpu]);
  run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){in[0], in[1], in[2], in[3]}, sparse ? one : all, "gtsv");
}

static const int64_t orders[] = {1, 2, 3, 4, 7, 16, 33, 80};
enum { ORDERS = sizeof orders / sizeof *orders };

START_TEST(systems_are_solved) {
  kl_dtype t = types[_i % 4];
  int64_t m = orders[_i / 4], n = 1 + _i % 3;
  bool sparse = _i / 4 % 2;
  char where[60];
  if (!share_has((unsigned)_i, 3)) return;
  seed = (uint64_t)_i;
  memset(in, 0, sizeof in);
  for (int k = 0; k < 4; k++)
    for (int64_t i = 0; i < (k < 3 ? m : m * n); i++) {
      double re = (double)below(2001) / 1000 - 1, im = (double)below(2001) / 1000 - 1;
      put(t, in[k], i, number_of(re, kl_is_complex(t) ? im : 0));
    }
  // Nothing is there, whatever it is.
  put(t, in[0], 0, NAN), put(t, in[2], m - 1, NAN);
  kiln_module *module = module_of(t, "", m, n, sparse);
  for (int gpu = 0; gpu < 2; gpu++) {
    snprintf(where, sizeof where, "%s, order %d on the %s", kl_info(t)->name, (int)m, gpu ? "GPU" : "host");
    run_all(module, sparse, gpu);
    expect_solved(t, m, n, out[gpu][3], where);
    EXPECT(sparse || *(int32_t *)out[gpu][4] == 0, "%s: info", where);
    EXPECT(found_wrong(module, sparse, out[gpu]) == 0, "%s: found wrong", where);
  }
  EXPECT(memcmp(out[0][3], out[1][3], BYTES) == 0, "%s: other bits", where);
  if (m < 8) {
    number x = get(t, out[0][3], m * n - 1);
    put(t, out[0][3], m * n - 1, x * (1 + 1e-3));
    EXPECT(found_wrong(module, sparse, out[0]) == 1, "%s: what is moved is right", where);
  }
  kiln_module_destroy(&module);
}
END_TEST

// Diagonals of order 3, and the number of the first pivot that is zero, by LAPACK.
static const struct {
  double lower[3], diagonal[3], upper[3];
  int info;
} singular[] = {
    {{0, 1, 0}, {1, 1, 2}, {1, 1, 0}, 2}, {{0, 1, 0}, {0, 0, 2}, {1, 1, 0}, 0}, {{0, 0, 1}, {0, 1, 1}, {1, 1, 0}, 1},
    {{0, 0, 2}, {1, 1, 2}, {0, 1, 0}, 3}, {{0, 4, 0}, {2, 2, 1}, {1, 1, 0}, 2}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 1},
};

START_TEST(info_is_lapack_s) {
  for (size_t k = 0; k < sizeof singular / sizeof *singular; k++) {
    kl_dtype t = types[_i];
    kiln_module *module = module_of(t, "", 3, 1, false);
    memset(in, 0, sizeof in);
    for (int64_t i = 0; i < 3; i++) {
      put(t, in[0], i, singular[k].lower[i]), put(t, in[1], i, singular[k].diagonal[i]);
      put(t, in[2], i, singular[k].upper[i]), put(t, in[3], i, 1);
    }
    for (int gpu = 0; gpu < 2; gpu++) {
      run_all(module, false, gpu);
      EXPECT(*(int32_t *)out[gpu][4] == singular[k].info, "system %d: info %d", (int)k, *(int32_t *)out[gpu][4]);
      ck_assert_uint_eq(found_wrong(module, false, out[gpu]), 0);
    }
    kiln_module_destroy(&module);
  }
}
END_TEST

// Where rounding decides which row is the pivot's, who judges does not say what is right.
START_TEST(near_ties_are_open) {
  static const double lower[] = {0, 1, 2. / 3}, diagonal[] = {3, 1, 5}, upper[] = {1, 1, 0};
  kl_dtype t = types[_i];
  kiln_module *module = module_of(t, "", 3, 1, true);
  for (int even = 0; even < 2; even++) {
    memset(in, 0, sizeof in);
    for (int64_t i = 0; i < 3; i++) {
      put(t, in[0], i, lower[i] * (1 + even)), put(t, in[1], i, diagonal[i]), put(t, in[2], i, upper[i]);
      put(t, in[3], i, 1);
    }
    run_all(module, true, 0);
    ck_assert_uint_eq(found_wrong(module, true, out[0]), 0);
    put(t, out[0][3], 1, 77);
    ck_assert_uint_eq(found_wrong(module, true, out[0]), even);
  }
  kiln_module_destroy(&module);
}
END_TEST

static const char *const misfits[] = {
    "f32[3,2] custom-call(d, d, d), custom_call_target=\"cusparse_gtsv2_ffi\"",
    "f32[3,3] custom-call(d, d, d, b), custom_call_target=\"cusparse_gtsv2_ffi\"",
    "f32[3,2] custom-call(d, d, e, b), custom_call_target=\"cusparse_gtsv2_ffi\"",
    "f32[3,2] custom-call(d, d, d, b), custom_call_target=\"lapack_dgtsv_ffi\"",
    "(f32[3], f32[3], f32[3], f32[3,2]) custom-call(d, d, d, b), custom_call_target=\"lapack_sgtsv_ffi\"",
    "(f32[3], f32[3], f32[3], f32[3,2], s32[1]) custom-call(d, d, d, b), custom_call_target=\"lapack_sgtsv_ffi\"",
};

START_TEST(misfits_are_refused) {
  char text[400];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m { d = f32[3] parameter(0) e = f32[2] parameter(1) b = f32[3,2] parameter(2) ROOT r = "
           "%s }\n",
           misfits[_i]);
  kiln_module *m = parse(text);
  kiln_artifact *artifact = NULL;
  kiln_compile_params params = {.struct_size = sizeof params};
  ck_assert_int_eq(kiln_compile(cx, m, &params, &artifact), KILN_E_UNSUPPORTED);
  const char *said = kiln_diagnostics_get(cx, 0)->message;
  EXPECT(strstr(said, "tridiagonal systems by"), "%s", said);
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}
END_TEST

// --- random modules -------------------------------------------------------------------------------------------------

static batch batches[TARGETS];

static void open_batches(void) {
  make_context();
  batches_init(batches, cx);
}
static void close_batches(void) {
  batches_free(batches);
  drop_context();
}

enum { CASES = 24 };

// Batches, no elements, and wild numbers.
START_TEST(random_systems) {
  static const char *const counts[] = {"", "", "2,", "3,2,", "0,"};
  for (unsigned i = 0; i < share_of(CASES); i++) {
    kl_sb b;
    seed = i * 0x9e3779b97f4a7c15ull;
    kl_sb_init(&b, cx);
    kl_sb_puts(&b, "HloModule m\nENTRY m {\n");
    put_text(&b, types[below(4)], counts[below(5)], chance(10) ? 0 : 1 + below(40), chance(10) ? 0 : 1 + below(9),
             chance(40));
    kl_sb_puts(&b, "}\n");
    kiln_module *m = parse(b.p);
    run_both_and_check(cx, m, i % TARGETS, i, b.p);
    if (share_has(i, 3)) batch_add(batches, i % TARGETS, cx, m, i, b.p);
    kiln_module_destroy(&m);
    kl_sb_free(&b);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("tridiagonal", EACH(open_batches, close_batches), {systems_are_solved, 4 * ORDERS},
                   {info_is_lapack_s, 4}, {near_ties_are_open, 4},
                   {misfits_are_refused, sizeof misfits / sizeof *misfits}, {random_systems});
}

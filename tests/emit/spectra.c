// Eigenvalues and eigenvectors of Hermitian matrices, singular values and vectors of all, as LAPACK's calls have them.
// What is found must be what it says (A v = w v, columns of length 1 at right angles), by arithmetic of this file's
// own; the evaluator must find it right, and wrong what is moved from it; host and simulator must have the same bits.
#include "eval/eval.h"
#include "harness.h"
#include "numbers.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40, BYTES = MOST * MOST * 16 };

static double least_of(kl_dtype t) {
  return ldexp(1, 1 - kl_info(part_of(t))->bias - kl_info(part_of(t))->man_bits);
}

// --- matrices -------------------------------------------------------------------------------------------------------

typedef enum content {
  RANDOM,
  UNIT,
  DIAGONAL,
  NOTHING,
  ONES,     // of rank 1
  REPEATED, // a sum of few of the unit matrix's multiples
  HILBERT,
  CHAIN, // of neighbours, whose eigenvalues are 2 cos(k pi / (n + 1))
  FAINT, // beside the diagonal the least numbers there are, but for one pair
  STEEP, // upper triangles whose first row is far above the others, and hardly not at right angles to them
  CONTENTS
} content;

static number random_number(kl_dtype t) {
  double re = (double)below(2001) / 1000 - 1, im = (double)below(2001) / 1000 - 1;
  return number_of(re, kl_is_complex(t) ? im : 0);
}

static number element(content c, kl_dtype t, int64_t i, int64_t j) {
  switch (c) {
  case UNIT: return i == j;
  case DIAGONAL: return i == j ? (double)(i * 7 % 11) - 4 : 0;
  case NOTHING: return 0;
  case ONES: return 1;
  case REPEATED: return (i == j) + (i / 3 == j / 3);
  case HILBERT: return 1. / (double)(i + j + 1);
  case CHAIN: return i - j == 1 || j - i == 1;
  case FAINT: return i == j ? 1 : i + j == 1 ? .5 : number_of(least_of(t), kl_is_complex(t) ? least_of(t) : 0);
  case STEEP: return (i ? 0x1p-48 : 1) * (i == j ? 1 : i < j ? 0x1p-18 : 0);
  default: return random_number(t);
  }
}

static void fill(content c, kl_dtype t, int64_t m, int64_t n, double scale, void *a) {
  for (int64_t i = 0; i < m * n; i++) put(t, a, i, element(c, t, i / n, i % n) * scale);
}

// --- eigenvalues ----------------------------------------------------------------------------------------------------

// The Hermitian matrix whose named triangle it is.
static number hermitian(kl_dtype t, const void *a, int64_t n, bool lower, int64_t i, int64_t j) {
  bool named = lower ? i >= j : i <= j;
  number x = named ? get(t, a, i * n + j) : conj(get(t, a, j * n + i));
  return i == j ? creal(x) : x;
}

static void expect_spectrum(kl_dtype t, int64_t n, bool lower, const void *a, const void *v, const void *w,
                            const char *where) {
  static number h[MOST * MOST], x[MOST * MOST];
  double size = 0, off = 0, skew = 0, scale = 0, bound = 8 * (double)(n + 8) * unit_of(t);
  for (int64_t i = 0; i < n * n; i++) {
    h[i] = hermitian(t, a, n, lower, i / n, i % n);
    x[i] = get(t, v, i);
    scale = fmax(scale, cabs(h[i]));
  }
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) {
      number sum = -get(part_of(t), w, k) / scale * x[i * n + k], dot = -(number)(i == k);
      for (int64_t j = 0; j < n; j++) {
        sum += h[i * n + j] / scale * x[j * n + k];
        dot += conj(x[j * n + i]) * x[j * n + k];
      }
      off += creal(sum * conj(sum)), skew += creal(dot * conj(dot));
      size += creal(h[i * n + k] / scale * conj(h[i * n + k] / scale));
      double last = k ? creal(get(part_of(t), w, k - 1)) : -INFINITY;
      EXPECT(creal(get(part_of(t), w, k)) >= last, "%s: eigenvalue %d comes too early", where, (int)k);
    }
  // Numbers below the normal ones have an absolute error, and so has what is made of them.
  double least = least_of(t) / scale * (double)(8 * n);
  EXPECT(sqrt(off) <= bound * sqrt(size) + least, "%s: A V is off by %g of %g", where, sqrt(off), sqrt(size));
  EXPECT(sqrt(skew) <= bound * sqrt((double)n), "%s: V is off by %g", where, sqrt(skew));
}

static kiln_module *eigh_of(kl_dtype t, int64_t n, bool lower, bool solver, char text[800]) {
  const char *name = kl_info(t)->name, *part = kl_info(part_of(t))->name;
  char target[40];
  int letter = 0;
  while (types[letter] != t) letter++;
  snprintf(target, sizeof target, solver ? "cusolver_syevd_ffi" : "lapack_%c%sevd_ffi", letters[letter],
           kl_is_complex(t) ? "he" : "sy");
  snprintf(
      text, 800,
      "HloModule m\nENTRY m {\n  a = %s[%d,%d] parameter(0)\n  ROOT r = (%s[%d,%d], %s[%d], s32[]) custom-call(a), "
      "custom_call_target=\"%s\", api_version=API_VERSION_TYPED_FFI, backend_config={%s}\n}\n",
      name, (int)n, (int)n, name, (int)n, (int)n, part, (int)n, target,
      solver  ? lower ? "algorithm = 0 : ui8, lower = true" : "algorithm = 2 : ui8, lower = false"
      : lower ? "mode = 86 : ui8, uplo = 76 : ui8"
              : "mode = 86 : ui8, uplo = 85 : ui8");
  return parse(text);
}

static size_t found_wrong(const kiln_module *m, const void *a, const void *const *results) {
  kiln_mismatch x[3];
  size_t count = 0;
  ck_assert_int_eq(kiln_module_check(cx, m, &a, results, x, 3, &count, NULL), KILN_OK);
  return count;
}

static char a[BYTES] __attribute__((aligned(16))), v[2][BYTES] __attribute__((aligned(16))),
    w[2][MOST * 8] __attribute__((aligned(16)));

static void expect_eigh(content c, kl_dtype t, int64_t n, bool lower, double scale) {
  char text[800], where[100];
  int32_t info[2] __attribute__((aligned(16)));
  kiln_module *m = eigh_of(t, n, lower, n % 3 == 0, text);
  fill(c, t, n, n, scale, a);
  for (int gpu = 0; gpu < 2; gpu++) {
    snprintf(where, sizeof where, "content %d, %s, order %d, scale %g on the %s", (int)c, kl_info(t)->name, (int)n,
             scale, gpu ? "GPU" : "host");
    memset(v[gpu], 0x55, sizeof v[gpu]), memset(w[gpu], 0x55, sizeof w[gpu]);
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a}, (void *[]){v[gpu], w[gpu], &info[gpu]}, text);
    expect_spectrum(t, n, lower, a, v[gpu], w[gpu], where);
    EXPECT(info[gpu] == 0, "%s: info %d", where, info[gpu]);
    EXPECT(found_wrong(m, a, (const void *[]){v[gpu], w[gpu], &info[gpu]}) == 0, "%s: found wrong", where);
  }
  EXPECT(memcmp(v[0], v[1], sizeof v[0]) == 0 && memcmp(w[0], w[1], sizeof w[0]) == 0, "%s: other bits", where);
  kiln_module_destroy(&m);
}

static const int64_t orders[] = {1, 2, 3, 4, 5, 8, 11, 19};
enum { ORDERS = sizeof orders / sizeof *orders };

START_TEST(eigh_of_all_kinds) {
  kl_dtype t = types[_i % 4];
  double huge = t == KILN_F32 || t == KILN_C64 ? 1e37 : 1e306, tiny = t == KILN_F32 || t == KILN_C64 ? 1e-37 : 1e-307;
  int64_t n = orders[_i / 4];
  seed = (uint64_t)_i;
  if (!share_has((unsigned)_i, n > 8 ? 2 : 4)) return;
  for (content c = 0; c < CONTENTS; c++) expect_eigh(c, t, n, (c + n) % 2, 1);
  expect_eigh(RANDOM, t, n, true, huge);
  expect_eigh(RANDOM, t, n, false, tiny);
  expect_eigh(REPEATED, t, n, true, tiny / 1e5);
}
END_TEST

// Numbers that are known: of each column the sign that is promised.
START_TEST(vectors_have_signs) {
  char text[800];
  int32_t info;
  kl_dtype t = types[_i];
  kiln_module *m = eigh_of(t, 2, true, false, text);
  put(t, a, 0, 2), put(t, a, 1, 99), put(t, a, 2, kl_is_complex(t) ? number_of(0, 1) : -1), put(t, a, 3, 2);
  run_on(cx, m, HOST, 1, 0, (const void *[]){a}, (void *[]){v[0], w[0], &info}, text);
  // a is ((2, -i), (i, 2)), with eigenvectors (1, -i) and (1, i), or ((2, -1), (-1, 2)), with (1, 1) and (1, -1).
  number first = kl_is_complex(t) ? number_of(0, -1) : 1, r = sqrt(.5), expected[] = {r, r, first * r, -first * r};
  for (int i = 0; i < 4; i++)
    EXPECT(cabs(get(t, v[0], i) - expected[i]) < 1e-6, "element %d is %g + %gi", i, creal(get(t, v[0], i)),
           cimag(get(t, v[0], i)));
  for (int i = 0; i < 2; i++) EXPECT(cabs(get(part_of(t), w[0], i) - (1 + 2 * i)) < 1e-6, "eigenvalue %d", i);
  // Any move is found, and so is another sign.
  const void *results[] = {v[0], w[0], &info};
  ck_assert_uint_eq(found_wrong(m, a, results), 0);
  put(t, v[0], 0, r + 4000 * unit_of(t));
  ck_assert_uint_eq(found_wrong(m, a, results), 1);
  put(t, v[0], 0, -r), put(t, v[0], 2, -get(t, v[0], 2));
  ck_assert_uint_eq(found_wrong(m, a, results), 1);
  put(part_of(t), w[0], 1, 3 + 2000 * unit_of(t));
  ck_assert_uint_eq(found_wrong(m, a, results), 2);
  info = 1;
  ck_assert_uint_eq(found_wrong(m, a, results), 3);
  kiln_module_destroy(&m);
}
END_TEST

// What is no number in the named triangle makes all of its matrix NaN, and no other.
START_TEST(no_numbers) {
  static const char text[] =
      "HloModule m\nENTRY m {\n  a = f32[3,3,3] parameter(0)\n  ROOT r = (f32[3,3,3], f32[3,3], s32[3]) "
      "custom-call(a), "
      "custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}\n}\n";
  kiln_module *m = parse(text);
  for (int gpu = 0; gpu < 2; gpu++)
    for (int where = 0; where < 9; where++) {
      float in[27], *vectors = (float *)v[gpu], *values = (float *)w[gpu];
      int32_t info[3] = {5, 5, 5};
      for (int i = 0; i < 27; i++) in[i] = (float)(i % 5);
      in[9 + where] = where % 2 ? NAN : INFINITY;
      memset(v[gpu], 0, sizeof v[gpu]), memset(w[gpu], 0, sizeof w[gpu]);
      run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){in}, (void *[]){vectors, values, info}, text);
      for (int i = 0; i < 27; i++)
        EXPECT(isnan(vectors[i]) == (i / 9 == 1 && where / 3 >= where % 3), "element %d with %d", i, where);
      for (int i = 0; i < 9; i++)
        EXPECT(isnan(values[i]) == (i / 3 == 1 && where / 3 >= where % 3), "eigenvalue %d", i);
      EXPECT(!info[0] && !info[1] && !info[2], "info");
      ck_assert_uint_eq(found_wrong(m, in, (const void *[]){vectors, values, info}), 0);
    }
  kiln_module_destroy(&m);
}
END_TEST

// --- singular values ------------------------------------------------------------------------------------------------

// A call's form: its target, where U and V are, and which of V and V^H that is.
typedef struct form {
  const char *target, *config; // target: of a type, or of all
  bool vectors, full;
  int u, v;
  bool adjoint;
} form;
static const form forms[] = {
    {"lapack_%cgesdd_ffi", "mode = 65 : ui8", true, true, 2, 3, true},
    {"lapack_%cgesvd_ffi", "mode = 83 : ui8", true, false, 2, 3, true},
    {"cusolver_gesvdj_ffi", "compute_uv = true, full_matrices = true", true, true, 2, 3, false},
    {"cusolver_gesvd_ffi", "compute_uv = true, full_matrices = false, transposed = true", true, false, 3, 2, true},
    {"cusolver_gesvd_ffi", "compute_uv = true, full_matrices = true, transposed = false", true, true, 2, 3, true},
    {"lapack_%cgesdd_ffi", "mode = 78 : ui8", false, true, 2, 3, true},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void put_svd(kl_sb *b, const form *f, kl_dtype t, const char *batch, int64_t m, int64_t n, const char *layout) {
  const char *name = kl_info(t)->name;
  int letter = 0;
  int64_t k = m < n ? m : n, q = f->full ? m : k, r = f->full ? n : k;
  char target[40], u[60], v[60];
  while (types[letter] != t) letter++;
  snprintf(target, sizeof target, f->target, letters[letter]);
  snprintf(u, sizeof u, "%s[%s%d,%d]", name, batch, (int)m, (int)q);
  snprintf(v, sizeof v, "%s[%s%d,%d]", name, batch, (int)(f->adjoint ? r : n), (int)(f->adjoint ? n : r));
  kl_sbf(b, "  a = %s[%s%d,%d]%s parameter(0)\n  ROOT r = (%s[%s%d,%d], %s[%s%d], %s, %s, s32[%.*s]) custom-call(a), ",
         name, batch, (int)m, (int)n, layout, name, batch, (int)m, (int)n, kl_info(part_of(t))->name, batch, (int)k,
         f->u == 2 ? u : v, f->u == 2 ? v : u, *batch ? (int)strlen(batch) - 1 : 0, batch);
  kl_sbf(b, "custom_call_target=\"%s\", backend_config={%s}\n", target, f->config);
}

static double norm(const number *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += creal(x[i] * conj(x[i]));
  return sqrt(sum);
}

// Are n columns of x, [m, n], at right angles?
static double skew_of(int64_t m, int64_t n, const number *x) {
  static number dots[MOST * MOST];
  for (int64_t i = 0; i < n * n; i++) {
    dots[i] = -(number)(i / n == i % n);
    for (int64_t j = 0; j < m; j++) dots[i] += conj(x[j * n + i / n]) * x[j * n + i % n];
  }
  return norm(dots, n * n);
}

static void expect_singular(const form *f, kl_dtype t, int64_t m, int64_t n, const void *of, const void *values,
                            const void *of_u, const void *of_v, const char *where) {
  static number h[MOST * MOST], u[MOST * MOST], x[MOST * MOST];
  int64_t k = m < n ? m : n, q = f->full ? m : k, r = f->full ? n : k;
  double scale = 0, bound = 8 * (double)(m + n + 8) * unit_of(t);
  for (int64_t i = 0; i < m * n; i++) scale = fmax(scale, cabs(h[i] = get(t, of, i)));
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < m * n; i++) h[i] /= scale;
  double size = norm(h, m * n), least = least_of(t) / scale * (double)(8 * (m + n)), squares = 0;
  for (int64_t i = 0; i < k; i++) {
    double s = creal(get(part_of(t), values, i)) / scale;
    EXPECT(s >= 0 && (!i || s <= creal(get(part_of(t), values, i - 1)) / scale), "%s: value %d is %g", where, (int)i,
           s);
    squares += s * s;
  }
  EXPECT(fabs(sqrt(squares) - size) <= bound * size + least, "%s: values are off by %g of %g", where,
         sqrt(squares) - size, size);
  if (!f->vectors) return;
  for (int64_t i = 0; i < m * q; i++) u[i] = get(t, of_u, i);
  for (int64_t i = 0; i < n * r; i++) {
    int64_t row = i / r, column = i % r;
    x[i] = f->adjoint ? conj(get(t, of_v, column * n + row)) : get(t, of_v, i);
  }
  for (int64_t i = 0; i < m * n; i++)
    for (int64_t j = 0; j < k; j++)
      h[i] -= u[i / n * q + j] * (creal(get(part_of(t), values, j)) / scale) * conj(x[i % n * r + j]);
  EXPECT(norm(h, m * n) <= bound * size + least, "%s: U s V^H is off by %g of %g", where, norm(h, m * n), size);
  EXPECT(skew_of(m, q, u) <= bound * sqrt((double)q), "%s: U is off by %g", where, skew_of(m, q, u));
  EXPECT(skew_of(n, r, x) <= bound * sqrt((double)r), "%s: V is off by %g", where, skew_of(n, r, x));
}

static kiln_module *svd_of(const form *f, kl_dtype t, int64_t m, int64_t n) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY m {\n");
  put_svd(&b, f, t, "", m, n, "");
  kl_sb_puts(&b, "}\n");
  kiln_module *module = parse(b.p);
  kl_sb_free(&b);
  return module;
}

static char parts[2][5][BYTES] __attribute__((aligned(16)));

static void expect_svd(const form *f, content c, kl_dtype t, int64_t m, int64_t n, double scale) {
  char where[120];
  kiln_module *module = svd_of(f, t, m, n);
  fill(c, t, m, n, scale, a);
  memset(parts, 0x55, sizeof parts);
  for (int gpu = 0; gpu < 2; gpu++) {
    char(*p)[BYTES] = parts[gpu];
    snprintf(where, sizeof where, "form %d, content %d, %s, %d x %d, scale %g on the %s", (int)(f - forms), (int)c,
             kl_info(t)->name, (int)m, (int)n, scale, gpu ? "GPU" : "host");
    run_on(cx, module, gpu ? 3 : HOST, 1, 0, (const void *[]){a}, (void *[]){p[0], p[1], p[2], p[3], p[4]}, where);
    expect_singular(f, t, m, n, a, p[1], p[f->u], p[f->v], where);
    int32_t info;
    memcpy(&info, p[4], sizeof info);
    EXPECT(info == 0, "%s: info %d", where, info);
    EXPECT(found_wrong(module, a, (const void *[]){p[0], p[1], p[2], p[3], p[4]}) == 0, "%s: found wrong", where);
  }
  EXPECT(memcmp(parts[0], parts[1], sizeof parts[0]) == 0, "%s: other bits", where);
  kiln_module_destroy(&module);
}

static const int64_t sides[][2] = {{1, 1}, {1, 3}, {4, 1}, {2, 2}, {3, 3}, {5, 3}, {2, 6}, {6, 6}, {11, 8}, {7, 13}};
enum { SIDES = sizeof sides / sizeof *sides };

START_TEST(svd_of_all_kinds) {
  kl_dtype t = types[_i % 4];
  double huge = t == KILN_F32 || t == KILN_C64 ? 1e37 : 1e306, tiny = t == KILN_F32 || t == KILN_C64 ? 1e-37 : 1e-307;
  int64_t m = sides[_i / 4][0], n = sides[_i / 4][1];
  const form *f = &forms[(_i + _i / 4) % FORMS];
  seed = (uint64_t)_i;
  if (!share_has((unsigned)_i, m > 6 ? 2 : 4)) return;
  for (content c = 0; c < CONTENTS; c++) expect_svd(f, c, t, m, n, 1);
  expect_svd(f, RANDOM, t, m, n, huge);
  expect_svd(f, RANDOM, t, m, n, tiny);
  expect_svd(f, REPEATED, t, m, n, tiny / 1e5);
}
END_TEST

// Of a row of V^H the sign that is promised; and any move is found, and another sign of u or v alone.
START_TEST(singular_vectors_have_signs) {
  kl_dtype t = types[_i];
  kiln_module *m = svd_of(&forms[0], t, 2, 2);
  number z = kl_is_complex(t) ? number_of(0, 1) : 1;
  put(t, a, 0, 0), put(t, a, 1, -3 * z), put(t, a, 2, 2 * z), put(t, a, 3, 0);
  char(*p)[BYTES] = parts[0];
  run_on(cx, m, HOST, 1, 0, (const void *[]){a}, (void *[]){p[0], p[1], p[2], p[3], p[4]}, "signs");
  number u[] = {-z, 0, 0, z}, v[] = {0, 1, 1, 0};
  for (int i = 0; i < 4; i++) {
    EXPECT(cabs(get(t, p[2], i) - u[i]) < 1e-6, "u %d is %g + %gi", i, creal(get(t, p[2], i)), cimag(get(t, p[2], i)));
    EXPECT(cabs(get(t, p[3], i) - v[i]) < 1e-6, "v %d is %g + %gi", i, creal(get(t, p[3], i)), cimag(get(t, p[3], i)));
  }
  for (int i = 0; i < 2; i++) EXPECT(cabs(get(part_of(t), p[1], i) - (3 - i)) < 1e-6, "value %d", i);
  const void *results[] = {p[0], p[1], p[2], p[3], p[4]};
  ck_assert_uint_eq(found_wrong(m, a, results), 0);
  put(t, p[2], 0, z);
  ck_assert_uint_eq(found_wrong(m, a, results), 1);
  put(t, p[3], 1, 1 + 9000 * unit_of(t));
  ck_assert_uint_eq(found_wrong(m, a, results), 2);
  put(part_of(t), p[1], 1, 2 + 2000 * unit_of(t));
  ck_assert_uint_eq(found_wrong(m, a, results), 3);
  put(part_of(t), p[1], 1, 2), put(t, p[2], 0, -z), put(t, p[3], 1, 1);
  ck_assert_uint_eq(found_wrong(m, a, results), 0);
  p[4][0] = 1;
  ck_assert_uint_eq(found_wrong(m, a, results), 1);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(no_numbers_no_singular_values) {
  kiln_module *m = svd_of(&forms[0], KILN_F32, 3, 2);
  for (int gpu = 0; gpu < 2; gpu++)
    for (int i = 0; i < 6; i++) {
      char(*p)[BYTES] = parts[gpu];
      fill(UNIT, KILN_F32, 3, 2, 1, a);
      put(KILN_F32, a, i, i % 2 ? NAN : -INFINITY);
      memset(parts, 0, sizeof parts);
      run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a}, (void *[]){p[0], p[1], p[2], p[3], p[4]}, "no numbers");
      for (int j = 0; j < 9; j++) EXPECT(isnan(creal(get(KILN_F32, p[2], j))), "u %d", j);
      for (int j = 0; j < 4; j++) EXPECT(isnan(creal(get(KILN_F32, p[3], j))), "v %d", j);
      for (int j = 0; j < 2; j++) EXPECT(isnan(creal(get(KILN_F32, p[1], j))), "value %d", j);
      ck_assert_uint_eq(found_wrong(m, a, (const void *[]){p[0], p[1], p[2], p[3], p[4]}), 0);
    }
  kiln_module_destroy(&m);
}
END_TEST

// What a call has that the routine does not: it is refused, and what it should have is said.
static const char *const misfits[] = {
    "(f32[3,3], f32[3], s32[]) custom-call(a), custom_call_target=\"lapack_dsyevd_ffi\", backend_config={mode = 86 : "
    "ui8, "
    "uplo = 76 : ui8}",
    "(f32[3,3], f32[3], s32[]) custom-call(a), custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 78 : "
    "ui8, "
    "uplo = 76 : ui8}",
    "(f32[3,3], f32[3], s32[]) custom-call(a), custom_call_target=\"lapack_ssyevd_ffi\", backend_config={uplo = 76 : "
    "ui8}",
    "(f32[3,3], f32[3], s32[]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = "
    "3 : "
    "ui8, lower = true}",
    "(f32[3,3], f32[2], s32[]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = "
    "0 : "
    "ui8, lower = true}",
    "(f32[3,3], f64[3], s32[]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = "
    "0 : "
    "ui8, lower = true}",
    "(f32[3,3], f32[3], s32[1]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = "
    "0 : "
    "ui8, lower = true}",
    "(f32[3,3], f32[3]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = 0 : "
    "ui8, "
    "lower = true}",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"lapack_sgesdd_ffi\"",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"lapack_sgesdd_ffi\", "
    "backend_config={mode = 83 : ui8}",
    "(f32[3,2], f32[2], f32[3,2], f32[2,2], s32[]) custom-call(b), custom_call_target=\"lapack_sgesdd_ffi\", "
    "backend_config={mode = 65 : ui8}",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"lapack_dgesvd_ffi\", "
    "backend_config={mode = 65 : ui8}",
    "(f32[3,2], f32[3], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"lapack_sgesvd_ffi\", "
    "backend_config={mode = 65 : ui8}",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2]) custom-call(b), custom_call_target=\"lapack_sgesvd_ffi\", "
    "backend_config={mode = 65 : ui8}",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"cusolver_gesvd_ffi\", "
    "backend_config={compute_uv = true, full_matrices = true}",
    "(f32[3,2], f32[2], f32[3,3], f32[2,2], s32[]) custom-call(b), custom_call_target=\"cusolver_gesvd_ffi\", "
    "backend_config={compute_uv = true, full_matrices = true, transposed = true}",
    "(f32[3,2], f32[2], f32[3,2], f32[3,2], s32[]) custom-call(b), custom_call_target=\"cusolver_gesvdj_ffi\", "
    "backend_config={compute_uv = true, full_matrices = false}",
    // Nowhere is room for twice as much.
    "(f32[1000000000,1000000000], f32[1000000000], f32[1000000000,1000000000], f32[1000000000,1000000000], s32[]) "
    "custom-call(c), custom_call_target=\"lapack_sgesdd_ffi\", backend_config={mode = 65 : ui8}",
    "(f32[576460752303423488,1,1], f32[576460752303423488,1], s32[576460752303423488]) custom-call(d), "
    "custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}",
    "(f32[3,2], f32[2], s32[]) custom-call(b), custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = "
    "0 : "
    "ui8, lower = true}",
};

START_TEST(misfits_are_refused) {
  char text[800];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m { a = f32[3,3] parameter(0) b = f32[3,2] parameter(1) c = f32[1000000000,1000000000] "
           "parameter(2) d = f32[576460752303423488,1,1] parameter(3) ROOT r = %s }\n",
           misfits[_i]);
  kiln_module *m = parse(text);
  kiln_artifact *artifact = NULL;
  kiln_compile_params params = {.struct_size = sizeof params};
  ck_assert_int_eq(kiln_compile(cx, m, &params, &artifact), KILN_E_UNSUPPORTED);
  const char *said = kiln_diagnostics_get(cx, 0)->message;
  EXPECT(strstr(said, "lapack_?") && strstr(said, strstr(misfits[_i], "evd") ? "eigenvalues by" : "singular"), "%s",
         said);
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

static const char *const layouts[] = {"", "{1,2,0}", "{0,2,1}"};

static void draw_eigh(kl_sb *b, kl_dtype t, int64_t batch, int64_t n) {
  const char *name = kl_info(t)->name, *part = kl_info(part_of(t))->name;
  kl_sbf(b, "  a = %s[%d,%d,%d]%s parameter(0)\n  ROOT r = (%s[%d,%d,%d]%s, %s[%d,%d], s32[%d]) custom-call(a), ", name,
         (int)batch, (int)n, (int)n, layouts[below(3)], name, (int)batch, (int)n, (int)n, layouts[below(3)], part,
         (int)batch, (int)n, (int)batch);
  kl_sbf(b, "custom_call_target=\"cusolver_syevd_ffi\", backend_config={algorithm = 1 : ui8, lower = %s}\n",
         chance(50) ? "true" : "false");
}

enum { SLICES = 4, CASES = 32 };

// Layouts, batches and wild numbers; PTX goes through ptxas.
static void run_one(unsigned number) {
  kl_sb b;
  seed = number * 0x9e3779b97f4a7c15ull;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\n\nENTRY m {\n");
  kl_dtype t = types[below(4)];
  int64_t n = chance(10) ? 0 : 1 + below(chance(20) ? 24 : 9);
  if (chance(40)) {
    draw_eigh(&b, t, chance(10) ? 0 : 1 + below(3), n);
  } else {
    char batch[20];
    snprintf(batch, sizeof batch, "%d,", chance(10) ? 0 : 1 + (int)below(3));
    put_svd(&b, &forms[below(FORMS)], t, batch, n, chance(10) ? 0 : 1 + below(9), layouts[below(3)]);
  }
  kl_sb_puts(&b, "}\n");
  kiln_module *m = parse(b.p);
  run_both_and_check(cx, m, number % TARGETS, number, b.p);
  if (share_has(number, 3)) batch_add(batches, number % TARGETS, cx, m, number, b.p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}

START_TEST(random_spectra) {
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i);
}
END_TEST

int main(void) {
  return RUN_TESTS("spectra", EACH(open_batches, close_batches), {eigh_of_all_kinds, 4 * ORDERS},
                   {vectors_have_signs, 4}, {no_numbers}, {svd_of_all_kinds, 4 * SIDES},
                   {singular_vectors_have_signs, 4}, {no_numbers_no_singular_values},
                   {misfits_are_refused, sizeof misfits / sizeof *misfits}, {random_spectra, SLICES});
}

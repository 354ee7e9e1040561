// What stands in benchmarks/results/numerics.txt holds: no function has changed a bit since it was measured, on host
// and simulator alike; the errors there are within what docs/numerics.md promises, and found again at their arguments;
// so are those of arguments that are known to be hard; and the document shows these rows.
//
// Of the rows one in three has its bits and errors tried by default, of each function and each type some (all of them:
// KILN_TEST_SHARE=3, support/share.h).
//
// A row is stale where code has changed what it computes: `./bootstrap numerics` measures it again.
#include "hard.h"
#include "rows.h"
#include "worst.h"

#include "eval/eval.h"
#include "support/share.h"
#include "support/slow.h"
#include "support/suite.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static nu_rows rows;
static kiln_context *cx;
static nu_kernel *kernels[64 * NU_TYPES]; // of the host, of rows that have been tried

static void make(void) {
  cx = kiln_context_create(NULL);
  ck_assert_uint_le(nu_function_count * NU_TYPES, sizeof kernels / sizeof *kernels);
  ck_assert(nu_rows_read(&rows, KL_TESTS "/../benchmarks/results/numerics.txt"));
}
static void drop(void) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) nu_kernel_close(kernels[i]);
  nu_rows_free(&rows);
  kiln_context_destroy(&cx);
}

// NULL: fast is strict, or the row is not one of those that are tried where one in `every` is.
static const nu_row *row_of(int i, unsigned every) {
  if (!share_has((uint64_t)i, every)) return NULL;
  const nu_row *r = nu_row_of(&rows, &nu_functions[i / NU_TYPES], (nu_type)(i % NU_TYPES));
  bool own = nu_is_of_its_own(cx, &nu_functions[i / NU_TYPES], (nu_type)(i % NU_TYPES));
  ck_assert_msg(own == (r->f != NULL), "%s %s was not measured: ./bootstrap numerics", nu_functions[i / NU_TYPES].op,
                nu_types[i % NU_TYPES].name);
  return own ? r : NULL;
}

static nu_kernel *open_kernel(const nu_row *r, nu_device device) {
  nu_kernel *k = nu_kernel_open(cx, r->f, r->t, device, 0);
  ck_assert_msg(k != NULL, "%s %s: %s", r->f->op, nu_types[r->t].name, kiln_diagnostics_get(cx, 0)->text);
  return k;
}

// The row's kernel for the host, which is compiled once and lives as long as the rows.
static nu_kernel *on_host(const nu_row *r) {
  nu_kernel **k = &kernels[r - nu_row_of(&rows, nu_functions, (nu_type)0)];
  if (!*k) *k = open_kernel(r, NU_HOST);
  return *k;
}

static bool is_correctly_rounded(const nu_row *r) {
  static const char *const exact[] = {"sqrt", "divide", "remainder"};
  if (nu_is_complex(r->t)) return false;
  if (nu_types[r->t].bits == 16) return true;
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    if (strcmp(r->f->op, exact[i]) == 0) return true;
  return r->t == NU_F32 && strcmp(r->f->op, "rsqrt") == 0;
}

static double bound_of(const nu_row *r) {
  if (nu_is_complex(r->t)) return kl_op_ulp_bound(r->f->complex, r->t == NU_C64 ? KILN_C64 : KILN_C128);
  return is_correctly_rounded(r) ? 0.5 : strcmp(r->f->op, "power") == 0 ? 4 : 1;
}

START_TEST(bits_are_those_that_were_measured) {
  const nu_row *r = row_of(_i, 3);
  if (!r) return;
  for (nu_device d = r->t == NU_F32_FAST ? NU_SIM : NU_HOST; d <= NU_SIM; d++) {
    nu_kernel *k = d == NU_HOST ? on_host(r) : open_kernel(r, d);
    uint64_t now = nu_fingerprint(cx, k, r->f, r->t);
    if (d != NU_HOST) nu_kernel_close(k);
    ck_assert_msg(now == r->fingerprint, "%s %s computes other bits on the %s than were measured: ./bootstrap numerics",
                  r->f->op, nu_types[r->t].name, d == NU_HOST ? "host" : "simulator");
  }
}
END_TEST

// What was measured of `fast` is within what is promised; errors are the greater near the zeros of functions that
// promise absolute ones. The test of that name tries it.
static void fast_is_within_its_bounds(const nu_row *r) {
  kl_op op;
  ck_assert(kl_op_from_str(kl_str_of(r->f->op), &op));
  kl_bound b = kl_op_bound(op, KILN_F32, true);
  ck_assert_uint_eq(r->errors.wrong, 0);
  ck_assert(r->all || r->errors.inputs >= 100000000);
  ck_assert_msg(r->errors.worst <= b.ulps || b.absolute > 0, "fast %s: %.4f, not %g", r->f->op, r->errors.worst,
                b.ulps);
}

START_TEST(errors_are_within_their_bounds) {
  const nu_row *r = row_of(_i, 3);
  if (r && r->t == NU_F32_FAST) fast_is_within_its_bounds(r);
  if (!r || r->t == NU_F32_FAST) return;
  nu_errors now;
  ck_assert_uint_eq(r->errors.wrong, 0);
  ck_assert(r->all || r->errors.inputs >= (r->t == NU_C128 ? 50000 : r->t == NU_C64 ? 250000 : 100000000));
  ck_assert(r->all || r->f->operands == 2 || r->t == NU_F64 || nu_is_complex(r->t));
  ck_assert(!nu_is_complex(r->t) || r->f->normwise == kl_op_bound_is_normwise(r->f->complex, KILN_C64));
  ck_assert_msg(r->errors.worst <= bound_of(r), "%s %s: %.4f", r->f->op, nu_types[r->t].name, r->errors.worst);
  ck_assert(!is_correctly_rounded(r) || r->errors.off == 0);
  // a sample from behind those of the long run
  uint64_t count = nu_is_complex(r->t) ? NU_BATCH / 128 : NU_BATCH;
  ck_assert(nu_measure(cx, on_host(r), r->f, r->t, false, r->errors.inputs, count, 1, &now));
  ck_assert_msg(now.wrong == 0 && now.worst <= (r->all ? r->errors.worst + 1e-4 : bound_of(r)),
                "%s %s: %.4f at %a %a, %a %a", r->f->op, nu_types[r->t].name, now.worst, now.worst_at[0].re,
                now.worst_at[0].im, now.worst_at[1].re, now.worst_at[1].im);
}
END_TEST

// The first element of an array, and back. Little-endian.
static void put(nu_type t, void *at, nu_number v) {
  nu_type part = nu_is_complex(t) ? nu_types[t].part : t;
  uint64_t re = nu_encode(part, v.re), im = nu_encode(part, v.im);
  memcpy(at, &re, nu_types[part].bits / 8);
  if (part != t) memcpy((char *)at + nu_types[part].bits / 8, &im, nu_types[part].bits / 8);
}
static nu_number get(nu_type t, const void *at) {
  nu_type part = nu_is_complex(t) ? nu_types[t].part : t;
  uint64_t re = 0, im = 0;
  memcpy(&re, at, nu_types[part].bits / 8);
  if (part == t) return (nu_number){nu_decode(t, re), 0};
  memcpy(&im, (const char *)at + nu_types[part].bits / 8, nu_types[part].bits / 8);
  return (nu_number){nu_decode(part, re), nu_decode(part, im)};
}

// f(x, y) by the kernel.
static nu_number value_at(const nu_row *r, nu_number x, nu_number y) {
  static nu_number a[NU_BATCH], b[NU_BATCH], c[NU_BATCH];
  put(r->t, a, x), put(r->t, b, y);
  ck_assert(nu_kernel_run(cx, on_host(r), a, b, c));
  return get(nu_result_type(r->f, r->t), c);
}
static double error_at(const nu_row *r, nu_number x, nu_number y) {
  return nu_error(r->f, r->t, x, y, value_at(r, x, y));
}

START_TEST(the_worst_argument_has_its_error) {
  const nu_row *r = row_of(_i, 2);
  if (!r || r->t == NU_F32_FAST) return; // approximations return other values each time
  nu_number x = r->errors.worst_at[0], y = r->errors.worst_at[1];
  double error = error_at(r, x, y);
  ck_assert_msg(fabs(error - r->errors.worst) < 1e-4, "%s %s at %a %a, %a %a: %.4f, not %.4f", r->f->op,
                nu_types[r->t].name, x.re, x.im, y.re, y.im, error, r->errors.worst);
}
END_TEST

START_TEST(near_multiples_of_half_pi) {
  static const char *const ops[] = {"sine", "cosine", "tan"};
  for (size_t i = 0; i < nu_function_count; i++) {
    const nu_function *f = &nu_functions[i];
    if (strcmp(f->op, ops[_i / 2]) != 0) continue;
    const nu_row *r = nu_row_of(&rows, f, _i % 2 ? NU_F64 : NU_F32);
    size_t n = _i % 2 ? sizeof hard_f64 / sizeof *hard_f64 : sizeof hard_f32 / sizeof *hard_f32;
    for (size_t h = 0; h < 2 * n; h++) {
      double x = _i % 2 ? hard_f64[h / 2] : (double)hard_f32[h / 2];
      if (h % 2) x = -x;
      double error = error_at(r, (nu_number){x, 0}, (nu_number){0, 0});
      ck_assert_msg(error <= 1, "%s %s at %a: %.4f", f->op, nu_types[r->t].name, x, error);
    }
    return;
  }
  ck_abort_msg("%s is no function", ops[_i / 2]);
}
END_TEST

// CUDA counts whole units from the correctly rounded result: none where all are the nearest.
START_TEST(no_bound_of_cuda_is_tighter) {
  const nu_function *f = &nu_functions[_i / 2];
  nu_type t = _i % 2 ? NU_F64 : NU_F32;
  double cuda = t == NU_F64 ? f->cuda_f64 : f->cuda_f32;
  if (cuda < 0) return;
  const nu_errors *e = &nu_row_of(&rows, f, t)->errors;
  ck_assert_msg(cuda == 0 ? e->off == 0 : e->worst <= cuda, "%s %s: %.4f, CUDA's %g", f->op, nu_types[t].name, e->worst,
                cuda);
}
END_TEST

START_TEST(known_worst_cases_are_within_the_bounds) {
  for (size_t i = 0; i < sizeof worst_cases / sizeof *worst_cases; i++) {
    const nu_function *f = nu_function_of(worst_cases[i].op);
    ck_assert_ptr_nonnull(f);
    const nu_row *r = nu_row_of(&rows, f, worst_cases[i].t);
    nu_number x = {worst_cases[i].x, 0}, y = {worst_cases[i].y, 0};
    double error = error_at(r, x, y), bits = nu_hardness(f, r->t, x, y);
    ck_assert_msg(error <= bound_of(r), "%s %s at %a %a: %.4f", f->op, nu_types[r->t].name, x.re, y.re, error);
    ck_assert_msg(bits >= worst_cases[i].bits, "%s %s at %a %a is within 2^-%.1f only", f->op, nu_types[r->t].name,
                  x.re, y.re, bits);
  }
}
END_TEST

// One case in two.
START_TEST(known_worst_complex_cases_are_within_the_bounds) {
  for (size_t i = 0; i < sizeof worst_complex / sizeof *worst_complex; i++) {
    if (!share_has(i, 2)) continue;
    const nu_function *f = nu_function_of(worst_complex[i].op);
    ck_assert_ptr_nonnull(f);
    const nu_row *r = nu_row_of(&rows, f, worst_complex[i].t);
    nu_number x = worst_complex[i].x, y = worst_complex[i].y;
    double error = error_at(r, x, y);
    ck_assert_msg(error <= bound_of(r), "%s %s at %a %a, %a %a: %.4f", f->op, nu_types[r->t].name, x.re, x.im, y.re,
                  y.im, error);
  }
}
END_TEST

START_TEST(the_document_shows_these_rows) {
  char *tables = NULL, *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&tables, &size);
  nu_rows_print(&rows, f);
  fclose(f);
  f = fopen(KL_TESTS "/../docs/numerics.md", "r");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_ge(getdelim(&text, &size, 0, f), 0);
  fclose(f);
  ck_assert_msg(strstr(text, tables) != NULL, "docs/numerics.md has other tables: ./bootstrap numerics");
  free(text);
  free(tables);
}
END_TEST

// The references, and what the rest of the program believes of formats, against MPFR and against each other.
START_TEST(references_agree_with_mpfr) {
  const nu_function *f = &nu_functions[_i];
  for (uint64_t i = 0, n = share_of(1000); i < n && nu_takes(f, NU_F64); i++) {
    uint64_t x, y;
    double r, a, b;
    nu_sample(f, NU_F64, i, &x, &y);
    a = nu_decode(NU_F64, x), b = nu_decode(NU_F64, y);
    f->values(&a, &b, &r, 1);
    nu_number at = {a, 0}, and = {b, 0};
    double error = nu_error(f, NU_F64, at, and, (nu_number){r, 0}),
           wide = nu_error(f, NU_F64, at, and, (nu_number){(double)f->wide(a, b), 0});
    ck_assert_msg(error <= 4, "%s(%a, %a) in double: %.2f", f->op, a, b, error);
    ck_assert_msg(wide <= 0.51, "%s(%a, %a) in long double: %.3f", f->op, a, b, wide);
  }
}
END_TEST

START_TEST(formats_round_trip) {
  for (uint64_t bits = 0; bits < 65536; bits++)
    for (nu_type t = NU_F16; t <= NU_BF16; t++) {
      double v = nu_decode(t, bits);
      if (isnan(v))
        ck_assert(isnan(nu_decode(t, nu_encode(t, v))));
      else if (nu_encode(t, v) != bits)
        ck_abort_msg("%s %#" PRIx64, nu_types[t].name, bits);
      // halfway to the next one: the even one; a little more: the next one
      double next = nu_decode(t, bits + 1), half = (v + next) / 2;
      if ((bits & 0x7fff) == 0x7fff || !isfinite(v) || !isfinite(next)) continue;
      if (nu_encode(t, half) != bits + (bits & 1) || nu_encode(t, nextafter(half, next)) != bits + 1)
        ck_abort_msg("%s %#" PRIx64, nu_types[t].name, bits);
    }
  for (uint64_t i = 0; i < 100000; i++) {
    float v = (float)nu_decode(NU_F64, i * 0x9e3779b97f4a7c15u);
    ck_assert(isnan(v) || nu_encode(NU_F32, v) == (nu_encode(NU_F32, nu_decode(NU_F64, i * 0x9e3779b97f4a7c15u))));
  }
}
END_TEST

int main(void) {
  int n = (int)nu_function_count;
  return RUN_TESTS("numerics", ONCE(make, drop), {formats_round_trip}, {references_agree_with_mpfr, n},
                   {bits_are_those_that_were_measured, n * NU_TYPES}, {errors_are_within_their_bounds, n * NU_TYPES},
                   {the_worst_argument_has_its_error, n * NU_TYPES}, {near_multiples_of_half_pi, 6},
                   {known_worst_cases_are_within_the_bounds}, {known_worst_complex_cases_are_within_the_bounds},
                   {no_bound_of_cuda_is_tighter, 2 * n}, {the_document_shows_these_rows});
}

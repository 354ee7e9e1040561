// cholesky, triangular-solve, LU and QR decompositions, and LAPACK's calls that stand for them: random types, batches,
// orders, sides and layouts, operands that are parameters or computed, results that are more than one thing. The
// evaluator judges, on the host and on the simulator with all of its checks, which must have the same bits; PTX goes
// through ptxas.
//
// KILN_LINALG_SEED runs one seed alone and prints its text.
#include "eval/eval.h"
#include "harness.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/dtypes.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BATCH = 2 };

// What matrices there are, while a module is drawn.
typedef struct drawn {
  kl_sb text;
  const char *type, *part; // part: of complex numbers, NULL: they are real
  uint32_t nbatch;
  int64_t batch[MOST_BATCH], n, vectors;
} drawn;

static void put_type(kl_sb *b, const drawn *d, const char *type, int64_t rows, int64_t columns) {
  kl_sbf(b, "%s[", type);
  for (uint32_t k = 0; k < d->nbatch; k++) kl_sbf(b, "%lld,", (long long)d->batch[k]);
  kl_sbf(b, "%lld,%lld]", (long long)rows, (long long)columns);
}

// Sometimes with the rows side by side, or the batch.
static void put_array(kl_sb *b, const drawn *d, int64_t rows, int64_t columns) {
  uint32_t rank = d->nbatch + 2;
  put_type(b, d, d->type, rows, columns);
  if (chance(70)) return;
  bool batch = chance(30) && d->nbatch;
  kl_sb_puts(b, "{");
  if (batch) kl_sb_puts(b, "0,");
  kl_sbf(b, "%u,%u", rank - 2, rank - 1);
  for (uint32_t k = d->nbatch; k-- > batch;) kl_sbf(b, ",%u", k);
  kl_sb_puts(b, "}");
}

static void put_line(drawn *d, const char *name, const char *type, const char *rest) {
  kl_sbf(&d->text, "  %s = ", name);
  put_type(&d->text, d, type, d->n, d->n);
  kl_sbf(&d->text, " %s\n", rest);
}

// a = x x^H + the identity, from which rounding does not lead far for matrices this small.
static void put_definite(drawn *d) {
  char rest[200], batch[20] = "";
  if (d->nbatch) strcpy(batch, d->nbatch == 1 ? "0" : "0,1");
  put_line(d, "x", d->type, "parameter(0)");
  if (d->part) {
    put_line(d, "re", d->part, "real(x)");
    put_line(d, "im", d->part, "imag(x)");
    put_line(d, "ni", d->part, "negate(im)");
    put_line(d, "c", d->type, "complex(re, ni)");
  }
  snprintf(rest, sizeof rest,
           "dot(x, %s), lhs_batch_dims={%s}, rhs_batch_dims={%s}, lhs_contracting_dims={%u}, rhs_contracting_dims={%u}",
           d->part ? "c" : "x", batch, batch, d->nbatch + 1, d->nbatch + 1);
  put_line(d, "p", d->type, rest);
  snprintf(rest, sizeof rest, "iota(), iota_dimension=%u", d->nbatch);
  put_line(d, "i", "s32", rest);
  snprintf(rest, sizeof rest, "iota(), iota_dimension=%u", d->nbatch + 1);
  put_line(d, "j", "s32", rest);
  put_line(d, "e", "pred", "compare(i, j), direction=EQ");
  put_line(d, "u", d->type, "convert(e)");
  put_line(d, "a", d->type, "add(p, u)");
}

// The letter of a routine for the type; 0: there is none.
static char routine_letter(const drawn *d) {
  static const char *const types[] = {"f32", "f64", "c64", "c128"};
  for (int i = 0; i < 4; i++)
    if (strcmp(d->type, types[i]) == 0) return "sdcz"[i];
  return 0;
}

static void draw_cholesky(drawn *d) {
  bool more = chance(25);
  char letter = chance(30) ? routine_letter(d) : 0;
  if (chance(60)) {
    put_definite(d);
  } else {
    kl_sb_puts(&d->text, "  a = ");
    put_array(&d->text, d, d->n, d->n);
    kl_sb_puts(&d->text, " parameter(0)\n");
  }
  if (letter) {
    kl_sb_puts(&d->text, "  ROOT l = (");
    put_array(&d->text, d, d->n, d->n);
    kl_sb_puts(&d->text, ", s32[");
    for (uint32_t k = 0; k < d->nbatch; k++) kl_sbf(&d->text, "%s%lld", k ? "," : "", (long long)d->batch[k]);
    kl_sbf(&d->text, "]) custom-call(a), custom_call_target=\"lapack_%cpotrf_ffi\", backend_config={uplo = %d : ui8}\n",
           letter, chance(50) ? 'L' : 'U');
    return;
  }
  kl_sb_puts(&d->text, more ? "  l = " : "  ROOT l = ");
  put_array(&d->text, d, d->n, d->n);
  kl_sbf(&d->text, " cholesky(a), lower=%s\n", chance(50) ? "true" : "false");
  if (more) put_line(d, "ROOT y", d->type, "add(l, l)");
}

static void draw_solve(drawn *d) {
  static const char *const transposed[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  bool left = chance(50), more = chance(25), computed = chance(25);
  int64_t rows = left ? d->n : d->vectors, columns = left ? d->vectors : d->n;
  kl_sb_puts(&d->text, "  a = ");
  put_array(&d->text, d, d->n, d->n);
  kl_sb_puts(&d->text, " parameter(0)\n  b = ");
  put_array(&d->text, d, rows, columns);
  kl_sb_puts(&d->text, " parameter(1)\n");
  if (computed) {
    kl_sb_puts(&d->text, "  w = ");
    put_type(&d->text, d, d->type, rows, columns);
    kl_sbf(&d->text, " reverse(b), dimensions={%u}\n", d->nbatch);
  }
  kl_sb_puts(&d->text, more ? "  y = " : "  ROOT y = ");
  put_array(&d->text, d, rows, columns);
  kl_sbf(&d->text, " triangular-solve(a, %s), left_side=%s, lower=%s, unit_diagonal=%s, transpose_a=%s\n",
         computed ? "w" : "b", left ? "true" : "false", chance(50) ? "true" : "false", chance(30) ? "true" : "false",
         transposed[below(3)]);
  if (!more) return;
  kl_sb_puts(&d->text, "  ROOT z = ");
  put_type(&d->text, d, d->type, rows, columns);
  kl_sb_puts(&d->text, " subtract(y, b)\n");
}

// Rows exchanged, as JAX calls it; sometimes with the permutation, as its programs for GPUs have it.
static void draw_lu(drawn *d) {
  static const char *const part[] = {"f32", "f64", "c64", "c128"};
  int64_t rows = d->n, columns = chance(50) ? d->n : d->vectors, steps = rows < columns ? rows : columns;
  bool permutes = chance(30);
  char batch[40] = "";
  for (uint32_t k = 0; k < d->nbatch; k++)
    snprintf(batch + strlen(batch), sizeof batch - strlen(batch), "%lld,", (long long)d->batch[k]);
  if (!routine_letter(d)) d->type = part[below(2)];
  kl_sb_puts(&d->text, "  a = ");
  put_array(&d->text, d, rows, columns);
  kl_sbf(&d->text, " parameter(0)\n  %slu = (", permutes ? "" : "ROOT ");
  put_array(&d->text, d, rows, columns);
  kl_sbf(&d->text, ", s32[%s%lld], s32[%.*s]) custom-call(a), custom_call_target=\"lapack_%cgetrf_ffi\"\n", batch,
         (long long)steps, (int)strlen(batch) - (*batch != 0), batch, routine_letter(d));
  if (!permutes) return;
  kl_sbf(&d->text,
         "  p = s32[%s%lld] get-tuple-element(lu), index=1\n  one = s32[] constant(1)\n"
         "  o = s32[%s%lld] broadcast(one), dimensions={}\n  q = s32[%s%lld] subtract(p, o)\n"
         "  ROOT r = s32[%s%lld] custom-call(q), custom_call_target=\"cu_lu_pivots_to_permutation\"\n",
         batch, (long long)steps, batch, (long long)steps, batch, (long long)steps, batch, (long long)rows);
}

// The factor R with reflections, of columns exchanged, as JAX calls it.
static void draw_pivoted(drawn *d, char letter, int64_t rows, int64_t columns, const char *taus) {
  char numbers[60];
  int n = snprintf(numbers, sizeof numbers, "s32[");
  for (uint32_t k = 0; k < d->nbatch; k++)
    n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%lld,", (long long)d->batch[k]);
  snprintf(numbers + n, sizeof numbers - (size_t)n, "%lld]", (long long)columns);
  kl_sb_puts(&d->text, "  a = ");
  put_array(&d->text, d, rows, columns);
  if (chance(50))
    kl_sbf(&d->text, " parameter(0)\n  zero = s32[] constant(0)\n  p = %s broadcast(zero), dimensions={}\n", numbers);
  else
    kl_sbf(&d->text,
           " parameter(0)\n  g = %s parameter(1)\n  one = s32[] constant(1)\n  o = %s broadcast(one), dimensions={}\n"
           "  p = %s and(g, o)\n",
           numbers, numbers, numbers);
  kl_sb_puts(&d->text, "  ROOT qr = (");
  put_type(&d->text, d, d->type, rows, columns);
  kl_sbf(&d->text, ", %s, %s) custom-call(a, p), custom_call_target=\"lapack_%cgeqp3_ffi\"\n", numbers, taus, letter);
}

// The factor R with reflections, as JAX calls it; sometimes Q.
static void draw_qr(drawn *d) {
  static const char *const part[] = {"f32", "f64", "c64", "c128"};
  int64_t rows = d->n, columns = chance(50) ? d->n : d->vectors, steps = rows < columns ? rows : columns;
  if (!routine_letter(d)) d->type = part[below(2)];
  char letter = routine_letter(d);
  bool product = chance(50) && columns <= rows;
  char taus[60];
  int n = snprintf(taus, sizeof taus, "%s[", d->type);
  for (uint32_t k = 0; k < d->nbatch; k++)
    n += snprintf(taus + n, sizeof taus - (size_t)n, "%lld,", (long long)d->batch[k]);
  snprintf(taus + n, sizeof taus - (size_t)n, "%lld]", (long long)steps);
  if (!product && chance(50)) return draw_pivoted(d, letter, rows, columns, taus);
  kl_sb_puts(&d->text, "  a = ");
  put_array(&d->text, d, rows, columns);
  kl_sbf(&d->text, " parameter(0)\n  %sqr = (", product ? "" : "ROOT ");
  put_type(&d->text, d, d->type, rows, columns);
  kl_sbf(&d->text, ", %s) custom-call(a), custom_call_target=\"lapack_%cgeqrf_ffi\"\n", taus, letter);
  if (!product) return;
  kl_sb_puts(&d->text, "  r = ");
  put_type(&d->text, d, d->type, rows, columns);
  kl_sbf(&d->text, " get-tuple-element(qr), index=0\n  t = %s get-tuple-element(qr), index=1\n  ROOT q = ", taus);
  put_array(&d->text, d, rows, columns);
  kl_sbf(&d->text, " custom-call(r, t), custom_call_target=\"lapack_%c%sgqr_ffi\"\n", letter,
         letter == 'c' || letter == 'z' ? "un" : "or");
}

static bool is_number(kl_dtype t) {
  return kl_is_float(t) || kl_is_complex(t);
}

// Half of them of the types that people have.
static kl_dtype draw_type(void) {
  static const kl_dtype common[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
  dtype_list all = dtypes_that(is_number);
  return chance(60) ? common[below(4)] : all.at[below((uint32_t)all.n)];
}

static int64_t draw_order(bool large) {
  if (large) return 65 + below(80);
  return chance(5) ? below(2) : chance(40) ? 1 + below(8) : chance(20) ? 30 + below(40) : 8 + below(25);
}

static batch batches[TARGETS];

static void open_batches(void) {
  make_context();
  batches_init(batches, cx);
}
static void close_batches(void) {
  batches_free(batches);
  drop_context();
}

static void run_text(const char *text, unsigned number) {
  unsigned t = number % TARGETS;
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, t, number, text);
  if (share_has(number, 3)) batch_add(batches, t, cx, m, number, text);
  kiln_module_destroy(&m);
}

static void run_one(unsigned number, bool print) {
  seed = number * 0x9e3779b97f4a7c15ull;
  kl_dtype t = draw_type();
  bool large = number % 32 >= 30;
  drawn d = {.type = kl_info(t)->name, .part = kl_is_complex(t) ? kl_info(kl_info(t)->part)->name : NULL};
  d.n = draw_order(large);
  d.vectors = chance(5) ? 0 : chance(30) ? 1 : 1 + below(chance(20) ? 80 : 20);
  d.nbatch = below(MOST_BATCH + 1);
  for (uint32_t k = 0; k < d.nbatch; k++) d.batch[k] = chance(3) ? 0 : 1 + below(large ? 2 : d.n < 9 ? 9 : 3);
  kl_sb_init(&d.text, cx);
  kl_sb_puts(&d.text, "HloModule m\n\nENTRY m {\n");
  static void (*const draw[])(drawn *) = {draw_cholesky, draw_solve, draw_lu, draw_cholesky, draw_solve, draw_qr};
  draw[number % 6](&d);
  kl_sb_puts(&d.text, "}\n");
  if (print) puts(d.text.p);
  run_text(d.text.p, number / 2);
  kl_sb_free(&d.text);
}

enum { SLICES = 4, CASES = 48 };

START_TEST(random_matrices) {
  const char *alone = getenv("KILN_LINALG_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// Many panels: on the host, as the simulator would take minutes.
static const char *const many[] = {
    ("x = f32[320,320] parameter(0) p = f32[320,320] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
     "ROOT l = f32[320,320] cholesky(p), lower=true"),
    ("a = f32[320,320] parameter(0) b = f32[320,3] parameter(1) ROOT y = f32[320,3] triangular-solve(a, b), "
     "left_side=true, lower=true, unit_diagonal=false, transpose_a=TRANSPOSE"),
    ("x = c128[328,130] parameter(0) l = c128[328,328] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
     "ROOT y = c128[328,130] triangular-solve(l, x), left_side=true, lower=false, unit_diagonal=true, "
     "transpose_a=ADJOINT"),
};

START_TEST(many_panels) {
  char text[500];
  snprintf(text, sizeof text, "HloModule m\nENTRY m { %s }\n", many[_i]);
  if (!share_has((unsigned)_i + 1, 2)) return;
  kiln_module *m = parse(text);
  run_and_check(cx, m, 2, text);
  kiln_module_destroy(&m);
}
END_TEST

// x with (a a^H + 1) x = b by way of the factor: what people have these ops for.
START_TEST(solving_by_the_factor) {
  static const char text[] =
      "HloModule solve\n"
      "ENTRY solve {\n"
      "  g = f64[7,12,12] parameter(0)\n"
      "  b = f64[7,12,3] parameter(1)\n"
      "  p = f64[7,12,12] dot(g, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={2}\n"
      "  i = s32[7,12,12] iota(), iota_dimension=1\n"
      "  j = s32[7,12,12] iota(), iota_dimension=2\n"
      "  e = pred[7,12,12] compare(i, j), direction=EQ\n"
      "  u = f64[7,12,12] convert(e)\n"
      "  a = f64[7,12,12] add(p, u)\n"
      "  l = f64[7,12,12] cholesky(a), lower=true\n"
      "  y = f64[7,12,3] triangular-solve(l, b), left_side=true, lower=true, unit_diagonal=false, "
      "transpose_a=NO_TRANSPOSE\n"
      "  x = f64[7,12,3] triangular-solve(l, y), left_side=true, lower=true, unit_diagonal=false, "
      "transpose_a=ADJOINT\n"
      "  ax = f64[7,12,3] dot(a, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={1}\n"
      "  ROOT r = f64[7,12,3] subtract(ax, b)\n"
      "}\n";
  enum { ORDERS = 7 * 12 * 12, RESULTS = 7 * 12 * 3 };
  double *g = malloc(ORDERS * sizeof *g), *b = malloc(RESULTS * sizeof *b), *r = calloc(RESULTS, sizeof *r);
  kiln_module *m = parse(text);
  seed = 1;
  for (int i = 0; i < ORDERS; i++) g[i] = (double)below(2001) / 1000 - 1;
  for (int i = 0; i < RESULTS; i++) b[i] = (double)below(2001) / 1000 - 1;
  for (int gpu = 0; gpu < 2; gpu++) {
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){g, b}, (void *[]){r}, text);
    for (int i = 0; i < RESULTS; i++) EXPECT(r[i] < 1e-12 && r[i] > -1e-12, "element %d is off by %g", i, r[i]);
  }
  kiln_module_destroy(&m);
  free(g), free(b), free(r);
}
END_TEST

// --- LAPACK's calls -------------------------------------------------------------------------------------------------

#define N NAN
// Matrices of order 3 as they lie, the info that potrf gives of them, and what it makes of the first; computed by
// LAPACK but for those with NaN, of which its libraries differ: here they are as LAPACK's own text says.
static const struct {
  double a[9];
  int info;
  bool open; // rounding decides elsewhere, and who judges does not say
} minors[] = {
    {{4, 2, -2, 2, 5, 3, -2, 3, 14}, 0, false}, {{-1, 0, 0, 0, 1, 0, 0, 0, 1}, 1, false},
    {{1, 2, 0, 2, 1, 0, 0, 0, 1}, 2, false},    {{1, 0, 1, 0, 1, 1, 1, 1, 1}, 3, false},
    {{1, 0, 0, 0, 1, N, 0, N, 1}, 3, false},    {{N, 0, 0, 0, 1, 0, 0, 0, 1}, 1, false},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0}, 1, true},     {{1, 1, 0, 1, 1, 0, 0, 0, 1}, 2, true},
    {{1, 0, 0, 0, 4, 0, 0, 0, -0.0}, 3, true},  {{1, 0, 0, 0, 1, 0, 0, 0, INFINITY}, 0, true},
};
#undef N
static const double factor_of_first[9] = {2, 0, 0, 1, 2, 0, -1, 2, 3};
enum { MINORS = sizeof minors / sizeof *minors, OTHER = 77 };

typedef struct potrf_case {
  kl_dtype t;
  bool lower;
  char a[MINORS * 9 * 16] __attribute__((aligned(16))), l[MINORS * 9 * 16] __attribute__((aligned(16)));
  int32_t info[MINORS] __attribute__((aligned(16)));
} potrf_case;

static double real_of(const potrf_case *p, const char *from, int64_t i) {
  kl_dtype part = kl_is_complex(p->t) ? kl_info(p->t)->part : p->t;
  return kl_float_decode(part, kl_element_get(p->t, from, i, 0));
}

static bool is_other(const potrf_case *p, int i, int j) {
  return p->lower ? j > i : j < i;
}

static void fill_matrices(potrf_case *p) {
  kl_dtype part = kl_is_complex(p->t) ? kl_info(p->t)->part : p->t;
  for (int m = 0; m < MINORS; m++)
    for (int k = 0; k < 9; k++) {
      double v = is_other(p, k / 3, k % 3) ? OTHER : minors[m].a[k];
      kl_element_set(p->t, p->a, 9 * m + k, 0, kl_float_encode(part, v));
      if (kl_is_complex(p->t)) kl_element_set(p->t, p->a, 9 * m + k, 1, 0);
    }
}

static void expect_minors(const potrf_case *p, const char *where) {
  for (int m = 0; m < MINORS; m++) {
    EXPECT(p->info[m] == minors[m].info, "%s, matrix %d: info %d", where, m, p->info[m]);
    for (int k = 0; k < 9; k++) {
      double l = real_of(p, p->l, 9 * m + k);
      if (is_other(p, k / 3, k % 3))
        EXPECT(l == OTHER, "%s, matrix %d: element %d is %g", where, m, k, l);
      else if (m == 0)
        EXPECT(l == factor_of_first[p->lower ? k : k % 3 * 3 + k / 3], "%s: element %d is %g", where, k, l);
    }
  }
}

// That the evaluator says the same, and is sure of it where it can be.
static void expect_judged(const kiln_module *m, potrf_case *p) {
  kl_result r[2];
  kl_array a = {m->comp[m->entry].instr[m->comp[m->entry].params[0]].shape, p->a};
  ck_assert_int_eq(kl_eval(cx, m, m->entry, &a, &(kl_eval_opts){.intervals = true}, r), KILN_OK);
  for (int64_t i = 0; i < MINORS; i++) {
    bool open = r[1].any && r[1].any[i / 64] >> i % 64 & 1;
    EXPECT(open == minors[i].open, "matrix %d is %s", (int)i, open ? "open" : "known");
    if (!open) ck_assert_int_eq((int)kl_element_get(KILN_S32, r[1].data.data, i, 0), minors[i].info);
  }
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
}

START_TEST(potrf_is_lapack_s) {
  static const char letters[] = "sdcz", *const both[] = {"lapack_%cpotrf_ffi", "cusolver_potrf_ffi",
                                                         "hipsolver_potrf_ffi"};
  static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
  static potrf_case p;
  char text[600], target[40];
  if (!share_has((unsigned)_i, 4)) return;
  p = (potrf_case){.t = types[_i % 4], .lower = _i / 4 % 2};
  snprintf(target, sizeof target, both[_i % 3], letters[_i % 4]);
  const char *t = kl_info(p.t)->name;
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m {\n  a = %s[%d,3,3]{1,2,0} parameter(0)\n  ROOT r = (%s[%d,3,3]{1,2,0}, s32[%d]{0}) "
           "custom-call(a), custom_call_target=\"%s\", operand_layout_constraints={%s[%d,3,3]{1,2,0}}, "
           "output_to_operand_aliasing={{0}: (0, {})}, api_version=API_VERSION_TYPED_FFI, backend_config={%s}\n}\n",
           t, MINORS, t, MINORS, MINORS, target, t, MINORS,
           _i % 3    ? p.lower ? "lower = true" : "lower = false"
           : p.lower ? "uplo = 76 : ui8"
                     : "uplo = 85 : ui8");
  fill_matrices(&p);
  kiln_module *m = parse(text);
  expect_judged(m, &p);
  // As it lies in memory: of each matrix the columns.
  potrf_case flipped = p;
  for (int i = 0; i < MINORS * 9; i++)
    for (int part = 0; part <= kl_is_complex(p.t); part++)
      kl_element_set(p.t, flipped.a, i / 9 * 9 + i % 3 * 3 + i / 3 % 3, part, kl_element_get(p.t, p.a, i, part));
  for (int gpu = 0; gpu < 2; gpu++) {
    memset(flipped.l, 0, sizeof flipped.l);
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){flipped.a}, (void *[]){flipped.l, flipped.info}, text);
    potrf_case back = flipped;
    for (int i = 0; i < MINORS * 9; i++)
      kl_element_set(p.t, back.l, i, 0, kl_element_get(p.t, flipped.l, i / 9 * 9 + i % 3 * 3 + i / 3 % 3, 0));
    expect_minors(&back, gpu ? "GPU" : "host");
  }
  kiln_module_destroy(&m);
}
END_TEST

// Every combination of letters is the op of these attributes, bit for bit.
START_TEST(trsm_is_lapack_s) {
  static const struct {
    char letter;
    const char *means;
  } uplo[] = {{'L', "lower=true"}, {'U', "lower=false"}}, side[] = {{'L', "left_side=true"}, {'R', "left_side=false"}},
    diag[] = {{'N', "unit_diagonal=false"}, {'U', "unit_diagonal=true"}},
    trans[] = {{'N', "transpose_a=NO_TRANSPOSE"}, {'T', "transpose_a=TRANSPOSE"}, {'C', "transpose_a=ADJOINT"}};
  static const char letters[] = "sdcz", *const types[] = {"f32", "f64", "c64", "c128"};
  int u = _i % 2, s = _i / 2 % 2, d = _i / 4 % 2, n = _i / 8 % 3, t = _i % 4;
  const char *b = s ? "2,3,5" : "2,5,3";
  char text[900];
  if (!share_has((unsigned)_i, 4)) return;
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m {\n  a = %s[2,5,5] parameter(0)\n  b = %s[%s] parameter(1)\n"
           "  x = %s[%s]{1,2,0} custom-call(a, b), custom_call_target=\"lapack_%ctrsm_ffi\", "
           "api_version=API_VERSION_TYPED_FFI, backend_config={diag = %d : ui8, side = %d : ui8, trans_x = %d : ui8, "
           "uplo = %d : ui8}\n"
           "  y = %s[%s]{1,2,0} triangular-solve(a, b), %s, %s, %s, %s\n"
           "  ROOT r = (%s[%s]{1,2,0}, %s[%s]{1,2,0}) tuple(x, y)\n}\n",
           types[t], types[t], b, types[t], b, letters[t], diag[d].letter, side[s].letter, trans[n].letter,
           uplo[u].letter, types[t], b, side[s].means, uplo[u].means, diag[d].means, trans[n].means, types[t], b,
           types[t], b);
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, 3, (unsigned)_i, text);
  static char in[2][50 * 16] __attribute__((aligned(16))), out[2][30 * 16] __attribute__((aligned(16)));
  kl_dtype type = m->comp[m->entry].instr[0].shape->dtype, part = kl_is_complex(type) ? kl_info(type)->part : type;
  seed = (uint64_t)_i;
  for (int i = 0; i < 100; i++)
    for (int k = 0; k <= kl_is_complex(type); k++)
      kl_element_set(type, in[i / 50], i % 50, k, kl_float_encode(part, 1 + (double)below(100) / 64));
  memset(out, 0, sizeof out);
  run_on(cx, m, HOST, 1, 0, (const void *[]){in[0], in[1]}, (void *[]){out[0], out[1]}, text);
  ck_assert(memcmp(out[0], out[1], sizeof out[0]) == 0 && memcmp(out[0], in[1], sizeof out[0]) != 0);
  kiln_module_destroy(&m);
}
END_TEST

// Matrices of real numbers, what LAPACK makes of them, its exchanges and info; by LAPACK. The last one has a pivot that
// is zero, where the evaluator says nothing, as rounding may decide.
typedef struct lu_case {
  int m, n;
  double a[20], lu[20];
  int32_t pivots[4], info;
} lu_case;
static const lu_case decompositions[] = {
    {3, 3, {1, 2, 3, 4, 5, 6, 7, 8, 10}, {7, 8, 10, 1. / 7, 6. / 7, 11. / 7, 4. / 7, .5, -.5}, {3, 3, 3}, 0},
    {3,
     4,
     {1, 2, 3, 1, 4, 5, 6, 0, 7, 8, 10, -2},
     {7, 8, 10, -2, 1. / 7, 6. / 7, 11. / 7, 9. / 7, 4. / 7, .5, -.5, .5},
     {3, 3, 3},
     0},
    {4, 2, {0, 2, 1, 1, -4, 8, 2, 2}, {-4, 8, -.5, 6, 0, 1. / 3, -.25, .5}, {3, 4}, 0},
    {3, 3, {0, 1, 2, 0, 0, 3, 0, 2, 4}, {0, 1, 2, 0, 2, 4, 0, 0, 3}, {1, 3, 3}, 1},
};

static void expect_lu(const lu_case *c, kl_dtype t, const char *lu, const int32_t *pivots, int32_t info,
                      const char *where) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  for (int i = 0; i < c->m * c->n; i++) {
    double d = kl_float_decode(part, kl_element_get(t, lu, i, 0)) - c->lu[i];
    EXPECT(d < 1e-5 && d > -1e-5, "%s: element %d is off by %g", where, i, d);
  }
  for (int k = 0; k < (c->m < c->n ? c->m : c->n); k++)
    EXPECT(pivots[k] == c->pivots[k], "%s: pivot %d is %d", where, k, pivots[k]);
  EXPECT(info == c->info, "%s: info %d", where, info);
}

// How many results the evaluator finds wrong.
static size_t found_wrong(const kiln_module *m, const void *a, const void *lu, const void *pivots, const void *info) {
  kiln_mismatch x[3];
  size_t count = 0;
  ck_assert_int_eq(kiln_module_check(cx, m, &a, (const void *[]){lu, pivots, info}, x, 3, &count, NULL), KILN_OK);
  return count;
}

START_TEST(getrf_is_lapack_s) {
  static const char letters[] = "sdcz", *const names[] = {"lapack_%cgetrf_ffi", "cusolver_getrf_ffi"};
  static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
  const lu_case *c = &decompositions[_i / 4];
  kl_dtype t = types[_i % 4], part = kl_is_complex(t) ? kl_info(t)->part : t;
  int steps = c->m < c->n ? c->m : c->n;
  char text[600], target[40];
  static char a[20 * 16] __attribute__((aligned(16))), lu[20 * 16] __attribute__((aligned(16)));
  static int32_t pivots[4] __attribute__((aligned(16))), info __attribute__((aligned(16)));
  if (!share_has((unsigned)_i + 1, 4)) return;
  snprintf(target, sizeof target, names[_i / 4 % 2], letters[_i % 4]);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m {\n  a = %s[%d,%d] parameter(0)\n  ROOT r = (%s[%d,%d], s32[%d], s32[]) "
           "custom-call(a), custom_call_target=\"%s\", api_version=API_VERSION_TYPED_FFI, backend_config={}\n}\n",
           kl_info(t)->name, c->m, c->n, kl_info(t)->name, c->m, c->n, steps, target);
  memset(a, 0, sizeof a);
  for (int i = 0; i < c->m * c->n; i++) kl_element_set(t, a, i, 0, kl_float_encode(part, c->a[i]));
  kiln_module *m = parse(text);
  for (int gpu = 0; gpu < 2; gpu++) {
    memset(lu, 0x55, sizeof lu);
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a}, (void *[]){lu, pivots, &info}, text);
    expect_lu(c, t, lu, pivots, info, gpu ? "GPU" : "host");
  }
  ck_assert_uint_eq(found_wrong(m, a, lu, pivots, &info), 0);
  if (!c->info) {
    kl_element_set(t, lu, c->m * c->n - 1, 0, kl_float_encode(part, c->lu[c->m * c->n - 1] + 1e-3));
    ck_assert_uint_eq(found_wrong(m, a, lu, pivots, &info), 1);
    pivots[0]--;
    info = 1;
    ck_assert_uint_eq(found_wrong(m, a, lu, pivots, &info), 3);
  }
  kiln_module_destroy(&m);
}
END_TEST

// A real matrix and a complex one, parts side by side; R with what is below, the taus, and Q, by LAPACK.
typedef struct qr_case {
  double a[12], r[12], taus[4], q[12];
} qr_case;
static const qr_case of_real = {{2, 0, -1, 0, 1, 0, 0, 0, 2, 0, 3, 0},
                                {-3, 0, -1.33333333333, 0, 0.2, 0, 2.86744175568, 0, 0.4, 0, -0.977014565935, 0},
                                {1.66666666667, 0, 1.02324952775, 0},
                                {-0.666666666667, 0, -0.658736619548, 0, -0.333333333333, 0, -0.154996851658, 0,
                                 -0.666666666667, 0, 0.736235045378, 0}},
                     of_complex = {{2, 1, -1, 2, 1, -1, 0, 1, 2, 0, 3, .5},
                                   {-3.31662479036, 0, -1.50755672289, -2.11057941204, 0.147493718553, -0.215831239518,
                                    2.91937104061, 0, 0.363324958071, -0.0683375209645, -0.67373173357, 0.159664955128},
                                   {1.60302268916, 0.301511344578, 1.32954114592, -0.172387115833},
                                   {-0.603022689156, -0.301511344578, -0.43595940873, 0.0934198732994, -0.301511344578,
                                    0.301511344578, -0.373679493198, 0.280259619898, -0.603022689156, 0, 0.716219028629,
                                    -0.264689641015}};

static void put_numbers(kl_dtype t, char *to, const double *from, int n) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  for (int i = 0; i < 2 * n; i++)
    if (i % 2 == 0 || kl_is_complex(t)) kl_element_set(t, to, i / 2, i % 2, kl_float_encode(part, from[i]));
}

static void expect_close(kl_dtype t, const char *found, const double *expected, int n, const char *what) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  for (int i = 0; i < 2 * n; i += kl_is_complex(t) ? 1 : 2) {
    double d = kl_float_decode(part, kl_element_get(t, found, i / 2, i % 2)) - expected[i];
    EXPECT(d < 1e-5 && d > -1e-5, "%s: element %d is off by %g", what, i / 2, d);
  }
}

START_TEST(geqrf_is_lapack_s) {
  static const char *const names[][2] = {{"lapack_sgeqrf_ffi", "lapack_sorgqr_ffi"},
                                         {"lapack_dgeqrf_ffi", "cusolver_orgqr_ffi"},
                                         {"lapack_cgeqrf_ffi", "lapack_cungqr_ffi"},
                                         {"cusolver_geqrf_ffi", "lapack_zungqr_ffi"}};
  static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
  static char a[6 * 16] __attribute__((aligned(16))), r[6 * 16] __attribute__((aligned(16))),
      taus[2 * 16] __attribute__((aligned(16))), q[6 * 16] __attribute__((aligned(16)));
  kl_dtype t = types[_i];
  const qr_case *c = kl_is_complex(t) ? &of_complex : &of_real;
  const char *name = kl_info(t)->name;
  char text[900];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m {\n  a = %s[3,2] parameter(0)\n  qr = (%s[3,2], %s[2]) custom-call(a), "
           "custom_call_target=\"%s\"\n  r = %s[3,2] get-tuple-element(qr), index=0\n  t = %s[2] "
           "get-tuple-element(qr), index=1\n  q = %s[3,2] custom-call(r, t), custom_call_target=\"%s\"\n"
           "  ROOT x = (%s[3,2], %s[2], %s[3,2]) tuple(r, t, q)\n}\n",
           name, name, name, names[_i][0], name, name, name, names[_i][1], name, name, name);
  put_numbers(t, a, c->a, 6);
  kiln_module *m = parse(text);
  for (int gpu = 0; gpu < 2; gpu++) {
    memset(r, 0x55, sizeof r);
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a}, (void *[]){r, taus, q}, text);
    expect_close(t, r, c->r, 6, gpu ? "R on the GPU" : "R on the host");
    expect_close(t, taus, c->taus, 2, "taus");
    expect_close(t, q, c->q, 6, "Q");
  }
  ck_assert_uint_eq(found_wrong(m, a, r, taus, q), 0);
  for (size_t k = 0; k < 3; k++) {
    double moved[] = {(k == 0 ? c->r : k == 1 ? c->taus : c->q)[0] + 1e-3, 0};
    put_numbers(t, k == 0 ? r : k == 1 ? taus : q, moved, 1);
    ck_assert_uint_eq(found_wrong(m, a, r, taus, q), k + 1);
  }
  kiln_module_destroy(&m);
}
END_TEST

// A matrix whose longest column is the last, R with what is below, and the taus, by LAPACK; numbers of columns where
// none is given, and where the second is.
static const qr_case exchanged_real = {{1, 0, 2, 0, -4, 0, 0, 0, 3, 0, 1, 0},
                                       {4.12310562562, 0, -1.21267812518, 0, -0.970142500145, 0, -0.123105625618, 0,
                                        3.39549875051, 0, 0.242535625036, 0},
                                       {1.97014250015, 0, 0, 0},
                                       {0}},
                     exchanged_complex = {{1, .5, 2, -1, -4, 0, 0, 2, 3, 0, 1, 1},
                                          {4.24264068712, 0, -1.17851130198, 0.235702260396, -0.471404520791, 0,
                                           -0.12132034356, -0.12132034356, -3.54338193758, 0, -0.266537579375,
                                           -2.22637272184},
                                          {1.94280904158, 0, 1.99778515786, 0.0665190105238},
                                          {0}};

START_TEST(geqp3_is_lapack_s) {
  static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
  static char a[6 * 16] __attribute__((aligned(16))), r[6 * 16] __attribute__((aligned(16))),
      taus[2 * 16] __attribute__((aligned(16)));
  static const int32_t none[3] __attribute__((aligned(16))) = {0}, second[3] __attribute__((aligned(16))) = {0, 7, 0};
  int32_t numbers[3] __attribute__((aligned(16)));
  kl_dtype t = types[_i];
  const qr_case *c = kl_is_complex(t) ? &exchanged_complex : &exchanged_real;
  const char *name = kl_info(t)->name;
  char text[400];
  snprintf(
      text, sizeof text,
      "HloModule m\nENTRY m {\n  a = %s[2,3] parameter(0)\n  p = s32[3] parameter(1)\n  ROOT x = (%s[2,3], s32[3], "
      "%s[2]) custom-call(a, p), custom_call_target=\"%s\"\n}\n",
      name, name, name,
      _i == 3 ? "cuhybrid_geqp3" : (const char *[]){"lapack_sgeqp3_ffi", "lapack_dgeqp3_ffi", "lapack_cgeqp3_ffi"}[_i]);
  put_numbers(t, a, c->a, 6);
  kiln_module *m = parse(text);
  for (int gpu = 0; gpu < 2; gpu++) {
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a, second}, (void *[]){r, numbers, taus}, text);
    EXPECT(numbers[0] == 2 && numbers[1] == 3 && numbers[2] == 1, "%d comes first", numbers[0]);
    memset(r, 0x55, sizeof r);
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, (const void *[]){a, none}, (void *[]){r, numbers, taus}, text);
    expect_close(t, r, c->r, 6, gpu ? "R on the GPU" : "R on the host");
    expect_close(t, taus, c->taus, 2, "taus");
    EXPECT(numbers[0] == 3 && numbers[1] == 2 && numbers[2] == 1, "%d comes first, then %d", numbers[0], numbers[1]);
  }
  kiln_mismatch x[3];
  size_t wrong = 0;
  const void *in[] = {a, none}, *out[] = {r, numbers, taus};
  ck_assert_int_eq(kiln_module_check(cx, m, in, out, x, 3, &wrong, NULL), KILN_OK);
  ck_assert_uint_eq(wrong, 0);
  numbers[1] = 1, numbers[2] = 2;
  ck_assert_int_eq(kiln_module_check(cx, m, in, out, x, 3, &wrong, NULL), KILN_OK);
  ck_assert_uint_eq(wrong, 1);
  put_numbers(t, r, (double[]){c->r[0] + 1e-3, 0}, 1);
  ck_assert_int_eq(kiln_module_check(cx, m, in, out, x, 3, &wrong, NULL), KILN_OK);
  ck_assert_uint_eq(wrong, 2);
  // Of columns that are as long as each other any may come first.
  put_numbers(t, a, (double[]){1, 0, 2, 0, -2, 0, 2, 0, 1, 0, 1, 0}, 6);
  ck_assert_int_eq(kiln_module_check(cx, m, in, out, x, 3, &wrong, NULL), KILN_OK);
  ck_assert_uint_eq(wrong, 0);
  kiln_module_destroy(&m);
}
END_TEST

// What a call has that the routine does not: it is refused, and what it should have is said.
static const char *const misfits[] = {
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_dpotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 78 : ui8}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\"",
    ("(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", "
     "backend_config={uplo = 76 : ui8, uplo = 76 : ui8}"),
    ("(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", "
     "backend_config={uplo = 76 : ui8, jobz = 76 : ui8}"),
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 844424930132 : "
    "ui8}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={lower = true}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"cusolver_potrf_ffi\", backend_config={lower = 76 : ui8}",
    "(f32[3,3], s32[1]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "(f32[3,3], s64[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "(f32[9], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "f32[3,3] custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "(f32[3,3], s32[]) custom-call(a, a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
    "(f32[3,3], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf\", backend_config={uplo = 76 : ui8}",
    ("f32[3,3] custom-call(a, a), custom_call_target=\"lapack_strsm_ffi\", "
     "backend_config={diag = 78 : ui8, side = 76 : ui8, uplo = 76 : ui8}"),
    ("f32[3,3] custom-call(a, a, a), custom_call_target=\"lapack_strsm_ffi\", "
     "backend_config={diag = 78 : ui8, side = 76 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8}"),
    ("f32[3,2] custom-call(a, b), custom_call_target=\"lapack_strsm_ffi\", "
     "backend_config={diag = 78 : ui8, side = 82 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8}"),
    ("f32[3,2] custom-call(b, b), custom_call_target=\"lapack_strsm_ffi\", "
     "backend_config={diag = 78 : ui8, side = 82 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8}"),
    "(f32[3,2], s32[2], s32[]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"",
    "(f32[3,3], s32[2], s32[]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"",
    "(f32[3,3], s64[3], s32[]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"",
    "(f32[3,3], s32[3], s32[1]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"",
    "(f32[3,3], s32[3]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\"",
    "(f32[3,3], s32[3], s32[]) custom-call(a), custom_call_target=\"lapack_dgetrf_ffi\"",
    "(f32[3,3], f32[2]) custom-call(a), custom_call_target=\"lapack_sgeqrf_ffi\"",
    "(f32[3,3], f64[3]) custom-call(a), custom_call_target=\"lapack_sgeqrf_ffi\"",
    "(f32[3,3], s32[3], f32[3]) custom-call(a), custom_call_target=\"lapack_sgeqp3_ffi\"",
    "(f32[3,3], s32[3], f32[3]) custom-call(a, b), custom_call_target=\"lapack_sgeqp3_ffi\"",
    "f32[3,3] custom-call(a, b), custom_call_target=\"lapack_sorgqr_ffi\"",
    "f32[3,3] custom-call(a), custom_call_target=\"lapack_sorgqr_ffi\"",
};

START_TEST(what_lapack_has_not_is_refused) {
  char text[500];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m { a = f32[3,3] parameter(0) b = f32[3,2] parameter(1) ROOT r = %s }\n", misfits[_i]);
  kiln_module *m = parse(text);
  kiln_artifact *a = NULL;
  kiln_compile_params params = {.struct_size = sizeof params};
  ck_assert_int_eq(kiln_compile(cx, m, &params, &a), KILN_E_UNSUPPORTED);
  const char *said = kiln_diagnostics_get(cx, 0)->message;
  const char *op = strstr(misfits[_i], "trsm")                               ? "triangular-solve"
                   : strstr(misfits[_i], "getrf")                            ? "LU"
                   : strstr(misfits[_i], "geq") || strstr(misfits[_i], "qr") ? "QR"
                                                                             : "cholesky";
  EXPECT(strstr(said, "lapack_?") && strstr(said, op), "%s", said);
  kl_result r[2];
  static float zeros[9];
  kl_array in[] = {{m->comp[m->entry].instr[0].shape, zeros}, {m->comp[m->entry].instr[1].shape, zeros}};
  ck_assert_int_eq(kl_eval(cx, m, m->entry, in, &(kl_eval_opts){0}, r), KILN_E_UNSUPPORTED);
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("linalg", EACH(open_batches, close_batches), {random_matrices, SLICES},
                   {many_panels, sizeof many / sizeof *many}, {solving_by_the_factor}, {potrf_is_lapack_s, 24},
                   {trsm_is_lapack_s, 24}, {getrf_is_lapack_s, 4 * (sizeof decompositions / sizeof *decompositions)},
                   {geqrf_is_lapack_s, 4}, {geqp3_is_lapack_s, 4},
                   {what_lapack_has_not_is_refused, sizeof misfits / sizeof *misfits});
}

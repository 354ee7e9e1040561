// cholesky and triangular-solve: random types, batches, orders, sides and layouts, operands that are parameters or
// computed, results that are more than one thing. The evaluator judges, on the host and on the simulator with all of
// its checks, which must have the same bits; PTX goes through ptxas.
//
// KILN_LINALG_SEED runs one seed alone and prints its text.
#include "counts.h"
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

static void draw_cholesky(drawn *d) {
  bool more = chance(25);
  if (chance(60)) {
    put_definite(d);
  } else {
    kl_sb_puts(&d->text, "  a = ");
    put_array(&d->text, d, d->n, d->n);
    kl_sb_puts(&d->text, " parameter(0)\n");
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

static void run_text(const char *text, unsigned number, bool large) {
  unsigned t = number % TARGETS;
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, t, number, text);
  if (!large && share_has(number, 4)) {
    kiln_compile_params p = {.struct_size = sizeof p, .target = targets[t]};
    char why[300];
    EXPECT(counts_differ(cx, m, &p, why, sizeof why) != 1, "seed %u: %s\n%s", number, why, text);
  }
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
  (number % 2 ? draw_solve : draw_cholesky)(&d);
  kl_sb_puts(&d.text, "}\n");
  if (print) puts(d.text.p);
  run_text(d.text.p, number / 2, large);
  kl_sb_free(&d.text);
}

enum { SLICES = 16, CASES = 64 };

START_TEST(random_matrices) {
  const char *alone = getenv("KILN_LINALG_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// Many panels: on the host, as the simulator would take minutes.
static const char *const many[] = {
    ("x = f32[512,512] parameter(0) p = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
     "ROOT l = f32[512,512] cholesky(p), lower=true"),
    ("a = f32[512,512] parameter(0) b = f32[512,3] parameter(1) ROOT y = f32[512,3] triangular-solve(a, b), "
     "left_side=true, lower=true, unit_diagonal=false, transpose_a=TRANSPOSE"),
    ("x = c128[520,130] parameter(0) l = c128[520,520] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
     "ROOT y = c128[520,130] triangular-solve(l, x), left_side=true, lower=false, unit_diagonal=true, "
     "transpose_a=ADJOINT"),
};

START_TEST(many_panels) {
  char text[500];
  snprintf(text, sizeof text, "HloModule m\nENTRY m { %s }\n", many[_i]);
  if (!share_has((unsigned)_i, 2)) return;
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

int main(void) {
  return RUN_TESTS("linalg", EACH(open_batches, close_batches), {random_matrices, SLICES},
                   {many_panels, sizeof many / sizeof *many}, {solving_by_the_factor});
}

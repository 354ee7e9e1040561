#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

nu_row *nu_row_of(nu_rows *rows, const nu_function *f, nu_type t) {
  if (!rows->at) rows->at = calloc(nu_function_count * NU_TYPES, sizeof *rows->at);
  return &rows->at[(size_t)(f - nu_functions) * NU_TYPES + (size_t)t];
}

void nu_rows_free(nu_rows *rows) {
  free(rows->at);
  rows->at = NULL;
}

static const char header[] =
    "# Errors and cost of elementary functions, made by tests/numerics; docs/numerics.md says what the columns are.\n"
    "# op type inputs(all|number) wrong worst at at off inversions first lanes ptx sass registers fingerprint\n"
    "# at: of complex numbers re,im\n";

static bool read_line(nu_rows *rows, const char *line) {
  char op[64], type[16], inputs[32], at[2][64];
  nu_row r = {0};
  nu_errors *e = &r.errors;
  if (sscanf(line, "%63s %15s %31s %" SCNu64 " %la %63s %63s %" SCNu64 " %" SCNu64 " %la %u %u %u %u %" SCNx64, op,
             type, inputs, &e->wrong, &e->worst, at[0], at[1], &e->off, &e->inversions, &e->inversion_at, &r.cost.lanes,
             &r.cost.ptx, &r.cost.sass, &r.cost.registers, &r.fingerprint) != 15)
    return false;
  for (int i = 0; i < 2; i++)
    if (sscanf(at[i], "%la,%la", &e->worst_at[i].re, &e->worst_at[i].im) < 1) return false;
  r.f = nu_function_of(op);
  while (r.t < NU_TYPES && strcmp(nu_types[r.t].name, type) != 0) r.t++;
  r.all = strcmp(inputs, "all") == 0;
  if (!r.f || r.t == NU_TYPES || !nu_takes(r.f, r.t)) return false;
  e->inputs = r.all ? nu_all_count(r.f, r.t) : strtoull(inputs, NULL, 10);
  *nu_row_of(rows, r.f, r.t) = r;
  return true;
}

bool nu_rows_read(nu_rows *rows, const char *path) {
  char line[1024];
  int number = 0;
  bool good = true;
  FILE *f = fopen(path, "r");
  while (f && good && fgets(line, sizeof line, f)) {
    number++;
    good = line[0] == '#' || read_line(rows, line);
    if (!good) fprintf(stderr, "%s:%d: expected a row of 15 columns, found '%s'\n", path, number, line);
  }
  if (f) fclose(f);
  return good;
}

static void write_number(nu_type t, nu_number v, FILE *f) {
  fprintf(f, nu_is_complex(t) ? "%a,%a " : "%a ", v.re, v.im);
}

static void write_row(const nu_row *r, FILE *f) {
  const nu_errors *e = &r->errors;
  char inputs[32] = "all";
  if (!r->all) snprintf(inputs, sizeof inputs, "%" PRIu64, e->inputs);
  fprintf(f, "%s %s %s %" PRIu64 " %.4f ", r->f->op, nu_types[r->t].name, inputs, e->wrong, e->worst);
  for (int i = 0; i < 2; i++) write_number(r->t, e->worst_at[i], f);
  fprintf(f, "%" PRIu64 " %" PRIu64 " %a %u %u %u %u %016" PRIx64 "\n", e->off, e->inversions, e->inversion_at,
          r->cost.lanes, r->cost.ptx, r->cost.sass, r->cost.registers, r->fingerprint);
}

bool nu_rows_write(const nu_rows *rows, const char *path) {
  char other[4096];
  snprintf(other, sizeof other, "%s.new", path);
  FILE *f = fopen(other, "w");
  if (!f) return perror(other), false;
  fputs(header, f);
  for (size_t i = 0; rows->at && i < nu_function_count * NU_TYPES; i++)
    if (rows->at[i].f) write_row(&rows->at[i], f);
  bool good = !ferror(f);
  good = fclose(f) == 0 && good && rename(other, path) == 0;
  if (!good) perror(other);
  return good;
}

// --- tables ----------------------------------------------------------------------------------------------------------

static void print_number(FILE *out, double per_element) {
  fprintf(out, per_element < 99.95 ? " %.1f |" : " %.0f |", per_element);
}

static void print_row(const nu_row *r, FILE *out) {
  const nu_errors *e = &r->errors;
  unsigned lanes = r->cost.lanes ? r->cost.lanes : 1;
  fprintf(out, e->worst < 1e4 ? "| %s | %.4f | " : "| %s | %.2g | ", r->f->op, e->worst);
  if (e->worst == 0)
    fprintf(out, "–");
  else
    for (int i = 0; i < r->f->operands; i++)
      fprintf(out, nu_is_complex(r->t) ? "%s(%a, %a)" : "%s%a", i ? ", " : "", e->worst_at[i].re, e->worst_at[i].im);
  if (e->off == 0)
    fprintf(out, " | 0 |");
  else
    fprintf(out, " | %.2g %% |", 100 * (double)e->off / (double)e->inputs);
  if (r->f->operands == 2 || nu_is_complex(r->t))
    fprintf(out, " – |");
  else if (e->inversions == 0)
    fprintf(out, " yes |");
  else
    fprintf(out, " %" PRIu64 ", first at %a |", e->inversions, e->inversion_at);
  print_number(out, (double)r->cost.ptx / lanes);
  if (r->cost.sass)
    print_number(out, (double)r->cost.sass / lanes);
  else
    fprintf(out, " – |");
  fprintf(out, r->cost.registers ? " %u |\n" : " – |\n", r->cost.registers);
}

static void print_type(nu_rows *rows, nu_type t, FILE *out) {
  fprintf(out,
          "### %s\n\n| op | largest error | at | not nearest | monotonic | PTX | SASS | registers |\n"
          "|---|---|---|---|---|---|---|---|\n",
          nu_types[t].name);
  for (size_t i = 0; i < nu_function_count; i++) {
    const nu_row *r = nu_row_of(rows, &nu_functions[i], t);
    if (r->f) print_row(r, out);
  }
  fprintf(out, "\n");
}

static void print_cuda(nu_rows *rows, FILE *out) {
  fprintf(out, "### Beside CUDA's\n\nCUDA's own functions, by the tables of its programming guide (editions differ by "
               "some units): whole units between a "
               "result\nand the correctly rounded one, from tests that it calls extensive but not exhaustive. In that "
               "measure each of kiln's is "
               "at most 1, and 0 where none is off the nearest value. f16 and bf16 are correctly rounded.\n\n| op | "
               "f32, CUDA | f32, kiln | f64, CUDA | f64, kiln |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < nu_function_count; i++) {
    const nu_function *f = &nu_functions[i];
    if (f->cuda_f32 < 0) continue;
    fprintf(out, "| %s | %g | %.3f | %g | %.3f |\n", f->op, f->cuda_f32, nu_row_of(rows, f, NU_F32)->errors.worst,
            f->cuda_f64, nu_row_of(rows, f, NU_F64)->errors.worst);
  }
}

void nu_rows_print(nu_rows *rows, FILE *out) {
  static const nu_type order[] = {NU_F32, NU_F64, NU_F16, NU_BF16, NU_F32_FAST, NU_C64, NU_C128};
  for (size_t t = 0; t < NU_TYPES; t++) print_type(rows, order[t], out);
  print_cuda(rows, out);
}

// numerics RESULTS DOCUMENT [WORD...]: measures what RESULTS has no row for, or a row of other code; writes RESULTS
// after each function, so that a run that was ended goes on where it was; then puts the tables into DOCUMENT, between
// its two marks. With words: only functions or types of these names.
//
// 10^8 samples of a function whose arguments are not run through, 250,000 of c64 and 50,000 of c128 (support/share.h:
// with KILN_TEST_SHARE=43 all pairs of 16 bits and all f32 in `fast` are); KILN_NUMERICS_THREADS.
#include "rows.h"
#include "support/share.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t number_of(const char *variable, uint64_t otherwise) {
  const char *v = getenv(variable);
  uint64_t n = v ? strtoull(v, NULL, 10) : 0;
  return n ? n : otherwise;
}

static bool is_wanted(const nu_function *f, nu_type t, int n, char **words) {
  bool op = false, type = false, any_op = false, any_type = false;
  for (int i = 0; i < n; i++) {
    bool is_type = false;
    for (int k = 0; k < NU_TYPES; k++) is_type |= strcmp(words[i], nu_types[k].name) == 0;
    if (is_type)
      any_type = true, type |= strcmp(words[i], nu_types[t].name) == 0;
    else
      any_op = true, op |= strcmp(words[i], f->op) == 0;
  }
  return (op || !any_op) && (type || !any_type);
}

static bool measure(kiln_context *cx, nu_rows *rows, const nu_function *f, nu_type t) {
  nu_row *row = nu_row_of(rows, f, t);
  if (!nu_is_of_its_own(cx, f, t)) return true;
  // What is approximate only GPUs have: it is measured with approximations that lie anywhere in their bounds.
  bool fast = t == NU_F32_FAST;
  nu_kernel *k = nu_kernel_open(cx, f, t, fast ? NU_SIM : NU_HOST, 0);
  // All pairs of 16 bits take minutes, and so do all f32 on the simulator: a wish for as many samples is one for them.
  uint64_t count = share_of(t == NU_C64 ? 250000 : t == NU_C128 ? 50000 : 100000000), there_are = nu_all_count(f, t);
  bool all = there_are && ((f->operands == 1 && !fast) || there_are <= count);
  if (all) count = there_are;
  uint64_t fingerprint = k ? nu_fingerprint(cx, k, f, t) : 0;
  bool stale = !row->f || row->fingerprint != fingerprint || row->errors.inputs < count;
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  nu_errors errors = row->errors;
  nu_cost cost = {0};
  bool good = fingerprint && nu_cost_of(cx, f, t, &cost);
  unsigned threads = (unsigned)number_of("KILN_NUMERICS_THREADS", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
  if (good && stale && fast) {
    nu_kernel_close(k);
    k = nu_kernel_open(cx, f, t, NU_SIM, 1);
    threads = 1; // the simulator has its own
  }
  if (good && stale) good = k && nu_measure(cx, k, f, t, all, 0, count, threads, &errors);
  clock_gettime(CLOCK_MONOTONIC, &end);
  nu_kernel_close(k);
  if (!good) {
    size_t n = kiln_diagnostics_count(cx);
    fprintf(stderr, "%s %s: %s\n", f->op, nu_types[t].name, n ? kiln_diagnostics_get(cx, n - 1)->text : "no result");
    return false;
  }
  *row = (nu_row){f, t, stale ? all : row->all, errors, cost, fingerprint};
  if (stale)
    printf("%s %s: %.4f at %a %a %a %a; not nearest %.3g %%; %llu inversions; %.0f s\n", f->op, nu_types[t].name,
           errors.worst, errors.worst_at[0].re, errors.worst_at[0].im, errors.worst_at[1].re, errors.worst_at[1].im,
           100 * (double)errors.off / (double)errors.inputs, (unsigned long long)errors.inversions,
           (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
  if (errors.wrong)
    fprintf(stderr, "%s %s: %llu results of the wrong kind, the first at %a %a, %a %a\n", f->op, nu_types[t].name,
            (unsigned long long)errors.wrong, errors.wrong_at[0].re, errors.wrong_at[0].im, errors.wrong_at[1].re,
            errors.wrong_at[1].im);
  fflush(stdout);
  return errors.wrong == 0;
}

static char *whole_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return perror(path), NULL;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *text = calloc(1, (size_t)size + 1);
  size_t n = fread(text, 1, (size_t)size, f);
  fclose(f);
  text[n] = 0;
  return text;
}

static const char first_mark[] = "<!-- made by ./bootstrap numerics: begin -->\n";
static const char last_mark[] = "<!-- made by ./bootstrap numerics: end -->\n";

static bool write_tables(nu_rows *rows, const char *path) {
  char *text = whole_file(path), *from = text ? strstr(text, first_mark) : NULL,
       *to = from ? strstr(from, last_mark) : NULL;
  if (!to) {
    if (text)
      fprintf(stderr, "%s: expected the marks '%.*s' and '%.*s'\n", path, (int)strlen(first_mark) - 1, first_mark,
              (int)strlen(last_mark) - 1, last_mark);
    free(text);
    return false;
  }
  char other[4096];
  snprintf(other, sizeof other, "%s.new", path);
  FILE *f = fopen(other, "w");
  bool good = f != NULL;
  if (f) {
    fwrite(text, 1, (size_t)(from - text) + strlen(first_mark), f);
    fputc('\n', f);
    nu_rows_print(rows, f);
    fprintf(f, "\n%s", to);
    good = !ferror(f);
    good = fclose(f) == 0 && good && rename(other, path) == 0;
  }
  if (!good) perror(other);
  free(text);
  return good;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: numerics RESULTS DOCUMENT [OP | TYPE]...\n");
    return 2;
  }
  nu_rows rows = {0};
  bool good = nu_rows_read(&rows, argv[1]), wrong = false;
  kiln_context *cx = kiln_context_create(NULL);
  for (size_t i = 0; good && i < nu_function_count; i++)
    for (nu_type t = 0; good && t < NU_TYPES; t++) {
      if (!is_wanted(&nu_functions[i], t, argc - 3, argv + 3)) continue;
      if (!measure(cx, &rows, &nu_functions[i], t))
        wrong = true;
      else
        good = nu_rows_write(&rows, argv[1]);
    }
  good = good && write_tables(&rows, argv[2]);
  kiln_context_destroy(&cx);
  nu_rows_free(&rows);
  return good && !wrong ? 0 : 1;
}

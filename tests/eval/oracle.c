// The evaluator against results computed without it: oracle/data/*.txt, written by oracle/make.py. Every case is
// evaluated with intervals and without.
#include "support/suite.h"
#include "oracle/cases.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDER KL_TESTS "/eval/oracle/data"

enum { MAX_FILES = 400, SHOWN = 6 };
static char *files[MAX_FILES];
static int file_count;
static int case_count, least_case_count;

static kl_ctx *cx;

static void make_context(void) {
  cx = kiln_context_create(NULL);
}
static void drop_context(void) {
  kiln_context_destroy(&cx);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_files(void) {
  DIR *d = opendir(FOLDER);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d)) && file_count < MAX_FILES;) {
    size_t n = strlen(e->d_name);
    if (n > 4 && !strcmp(e->d_name + n - 4, ".txt")) files[file_count++] = strdup(e->d_name);
  }
  closedir(d);
  qsort(files, (size_t)file_count, sizeof files[0], by_name);
}

static bool run_case(const test_case *t, char *why, size_t size) {
  kiln_module *m = NULL;
  kiln_diagnostics_clear(cx);
  if (kiln_module_parse(cx, t->name, t->module, t->module_size, &m) != KILN_OK) {
    snprintf(why, size, "%s", kiln_diagnostics_get(cx, 0)->text);
    return false;
  }
  bool ok = true;
  for (int intervals = 0; intervals < 2 && ok; intervals++) {
    kl_eval_opts opts = {.intervals = intervals, .threads = intervals ? 1 : 0};
    ok = case_holds(cx, m, t, &opts, why, size);
  }
  kiln_module_destroy(&m);
  return ok;
}

START_TEST(cases_hold) {
  char path[4096], why[1200], all[SHOWN * 1500] = "";
  snprintf(path, sizeof path, "%s/%s", FOLDER, files[_i]);
  case_file f;
  static test_case t;
  size_t used = 0;
  int failed = 0, n = 0;
  ck_assert_msg(case_file_open(path, &f), "%s: %s", path, f.error);
  for (; case_file_next(&f, &t); n++) {
    if (run_case(&t, why, sizeof why)) continue;
    if (failed++ < SHOWN)
      used += (size_t)snprintf(all + used, sizeof all - used, "\n%s:%d: %s: %s", files[_i], t.line, t.name, why);
  }
  case_count += n;
  ck_assert_msg(!f.error[0], "%s: %s", files[_i], f.error);
  case_file_close(&f);
  ck_assert_msg(!failed, "%s: %d of %d cases fail%s", files[_i], failed, n, all);
  ck_assert_int_gt(n, 0);
}
END_TEST

// No file may go missing unnoticed.
START_TEST(cases_are_all_there) {
  ck_assert_int_ge(case_count, least_case_count);
}
END_TEST

int main(void) {
  least_case_count = 5000;
  list_files();
  int status = RUN_TESTS("oracle", EACH(make_context, drop_context), {cases_hold, file_count}, {cases_are_all_there});
  for (int i = 0; i < file_count; i++) free(files[i]);
  return status;
}

// The corpus: modules dumped from JAX and written by hand. Each parses, verifies and prints, and what is printed parses
// to the same text again; those with an .io file evaluate to JAX's results (corpus/dump.py says how near).
#include "support/suite.h"
#include "oracle/cases.h"
#include "ir/custom/custom.h"
#include "ir/rules/rules.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define CORPUS KL_TESTS "/eval/corpus"

enum { MAX_MODULES = 1000 };
static char *modules[MAX_MODULES];
static int module_count;

static kl_ctx *cx;

static void make_context(void) {
  cx = kiln_context_create(NULL);
}
static void drop_context(void) {
  kiln_context_destroy(&cx);
}

static const char *findings(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, 0)->text : "";
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_folder(const char *folder) {
  DIR *d = opendir(folder);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d)) && module_count < MAX_MODULES;) {
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 4, ".hlo")) continue;
    char *path = malloc(strlen(folder) + n + 2);
    sprintf(path, "%s/%s", folder, e->d_name);
    modules[module_count++] = path;
  }
  closedir(d);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static kiln_module *parse(const char *name, const char *text, size_t size) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, name, text, size, &m) != KILN_OK) ck_abort_msg("%s: %s", name, findings());
  return m;
}

// No row of the corpus may go missing unnoticed.
START_TEST(corpus_is_there) {
  ck_assert_int_ge(module_count, 150);
}
END_TEST

START_TEST(round_trips) {
  const char *path = modules[_i], *name = base_name(path);
  size_t size = 0, first_size, second_size;
  char *text = read_whole_file(path, &size), *first, *second;
  ck_assert_ptr_nonnull(text);
  kiln_module *m = parse(name, text, size);
  ck_assert_int_eq(kl_verify(m), KILN_OK);
  ck_assert_int_eq(kiln_module_print(cx, m, &first, &first_size), KILN_OK);
  kiln_module *again = parse(name, first, first_size);
  ck_assert_int_eq(kiln_module_print(cx, again, &second, &second_size), KILN_OK);
  if (first_size != second_size || memcmp(first, second, first_size))
    ck_abort_msg("%s: printed and printed again differ:\n%s\n%s", name, first, second);
  kiln_text_free(cx, first, first_size);
  kiln_text_free(cx, second, second_size);
  kiln_module_destroy(&m);
  kiln_module_destroy(&again);
  free(text);
}
END_TEST

// Calls of libraries that XLA's compilers put in the place of HLO, and that nobody here knows.
static bool calls_a_library(const kiln_module *m) {
  for (uint32_t c = 0; c < m->ncomp; c++)
    for (uint32_t i = 0; i < m->comp[c].ninstr; i++) {
      const kl_instr *in = &m->comp[c].instr[i];
      kl_custom kind = kl_custom_of(&m->comp[c], in);
      if (in->op == KL_OP_CUSTOM_CALL && (kind == KL_CUSTOM_UNKNOWN || kind == KL_CUSTOM_ADVISED)) return true;
    }
  return false;
}

START_TEST(evaluates_as_jax) {
  const char *path = modules[_i], *name = base_name(path);
  char io[4096], why[1000] = "";
  snprintf(io, sizeof io, "%.*s%.*s.io", (int)(name - path), path, (int)strcspn(name, "."), name);
  case_file f;
  if (!case_file_open(io, &f)) return;
  static test_case t;
  if (!case_file_next(&f, &t)) ck_abort_msg("%s: %s", io, f.error);
  size_t size = 0;
  char *text = read_whole_file(path, &size);
  kiln_module *m = parse(name, text, size);
  if (!calls_a_library(m))
    for (int intervals = 0; intervals < 2; intervals++) {
      kl_eval_opts opts = {.intervals = intervals};
      if (!case_holds(cx, m, &t, &opts, why, sizeof why)) ck_abort_msg("%s: %s", name, why);
    }
  kiln_module_destroy(&m);
  free(text);
  case_file_close(&f);
}
END_TEST

int main(void) {
  list_folder(CORPUS "/dumped");
  list_folder(CORPUS "/written");
  qsort(modules, (size_t)module_count, sizeof modules[0], by_name);
  int status = RUN_TESTS("corpus", EACH(make_context, drop_context), {corpus_is_there}, {round_trips, module_count},
                         {evaluates_as_jax, module_count});
  for (int i = 0; i < module_count; i++) free(modules[i]);
  return status;
}

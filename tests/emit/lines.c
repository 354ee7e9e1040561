// Lines of the HLO text in PTX: they are the instructions' own, and nothing else of the code changes.

#include "harness.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static char *ptx_of(kiln_context *cx, const kiln_module *m, const char *target, bool lines, const char *name) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .lineinfo = lines};
  kiln_artifact *a = NULL;
  kiln_status st = kiln_compile(cx, m, &p, &a);
  ck_assert_msg(st == KILN_OK, "%s", name);
  char *ptx = strdup(kiln_artifact_text(a, KILN_TEXT_PTX, NULL));
  kiln_artifact_destroy(&a);
  return ptx;
}

// Directives, labels that only they want, and empty lines.
static bool says_nothing(const char *line, size_t n) {
  static const char *const begins[] = {".loc", ".file", ".section\t.debug", "$L__tmp", "$L__func"};
  while (n && (*line == '\t' || *line == ' ')) line++, n--;
  for (size_t i = 0; i < KL_COUNT(begins); i++)
    if (strncmp(line, begins[i], strlen(begins[i])) == 0) return true;
  return n == 0;
}

static void strip(char *ptx) {
  char *to = ptx;
  for (const char *p = ptx; *p;) {
    size_t n = strcspn(p, "\n"), all = n + (p[n] == '\n');
    if (!says_nothing(p, n)) memmove(to, p, all), to += all;
    p += all;
  }
  *to = 0;
}

static void same_code(const char *with, const char *without, const char *target, const char *name) {
  if (!ptxas_path()) return;
  ptxas_result a = ptxas_run(with, strlen(with), target), b = ptxas_run(without, strlen(without), target);
  ck_assert_msg(a.ok && b.ok, "%s: %s%s", name, a.log, b.log);
  ck_assert_msg(a.sass == b.sass && a.registers == b.registers, "%s: %ld instructions of SASS, %ld without lines", name,
                a.sass, b.sass);
}

// Every place is one in the text where an instruction begins.
static void places_are_right(const char *ptx, const char *text, const char *name) {
  unsigned places = 0;
  for (const char *p = ptx; (p = strstr(p, "\t.loc\t")); p++) {
    unsigned file, line, column;
    ck_assert_int_eq(sscanf(p, "\t.loc\t%u %u %u", &file, &line, &column), 3);
    const char *at = text;
    for (unsigned i = 1; i < line; i++) at = strchr(at, '\n') + 1;
    ck_assert_msg(memchr(at, '=', strcspn(at, "\n")) != NULL, "%s: line %u is no instruction: %.40s", name, line, at);
    ck_assert_uint_le(column, strcspn(at, "\n"));
    places++;
  }
  ck_assert_msg(places > 1, "%s: %u places", name, places);
}

static const char *const target[] = {"sm_75", "sm_90"};

START_TEST(examples_stay_the_same) {
  kiln_context *cx = kiln_context_create(NULL);
  DIR *d = opendir(KL_EXAMPLES);
  ck_assert(d != NULL);
  for (struct dirent *f; (f = readdir(d));) {
    size_t n = strlen(f->d_name), size;
    if (n < 4 || strcmp(f->d_name + n - 4, ".hlo") != 0) continue;
    char *text = example(f->d_name, &size), file[300];
    kiln_module *m = NULL;
    ck_assert(kiln_module_parse(cx, f->d_name, text, size, &m) == KILN_OK);
    char *with = ptx_of(cx, m, target[_i], true, f->d_name), *without = ptx_of(cx, m, target[_i], false, f->d_name);
    snprintf(file, sizeof file, "\t.file\t1 \"%s\"", f->d_name);
    ck_assert_msg(strstr(with, file) && !strstr(without, ".loc"), "%s", f->d_name);
    places_are_right(with, text, f->d_name);
    same_code(with, without, target[_i], f->d_name);
    kiln_simulator *s = NULL;
    kiln_sim_module *code = NULL;
    ck_assert(kiln_simulator_open(cx, &s) == KILN_OK);
    ck_assert_msg(kiln_simulator_load(cx, s, "k.ptx", with, strlen(with), &code) == KILN_OK, "%s", f->d_name);
    kiln_simulator_close(&s);
    strip(with), strip(without);
    ck_assert_msg(strcmp(with, without) == 0, "%s: other code", f->d_name);
    kiln_module_destroy(&m);
    free(text), free(with), free(without);
  }
  closedir(d);
  kiln_context_destroy(&cx);
}
END_TEST

// The load of a parameter has the parameter's line, what is computed its own; several kernels, each its fusion's.
START_TEST(instructions_have_their_lines) {
  static const char text[] = "HloModule two\n"
                             "a { p = f32[64] parameter(0)\n"
                             " ROOT r = f32[64] add(p, p) }\n"
                             "b { q = f32[64] parameter(0)\n"
                             " ROOT s = f32[64] multiply(q, q) }\n"
                             "ENTRY e { x = f32[64] parameter(0)\n"
                             " y = f32[64] fusion(x), kind=kLoop, calls=a\n"
                             " ROOT z = f32[64] fusion(y), kind=kLoop, calls=b }\n";
  static const struct {
    const char *code;
    unsigned line;
  } want[] = {{"ld.global", 2}, {"add.rn.f32", 3}, {"mul.rn.f32", 5}};
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  ck_assert(kiln_module_parse(cx, "two.hlo", text, sizeof text - 1, &m) == KILN_OK);
  char *ptx = ptx_of(cx, m, "sm_90", true, "two");
  for (size_t i = 0; i < KL_COUNT(want); i++) {
    char *at = strstr(ptx, want[i].code), *loc = NULL;
    ck_assert_msg(at != NULL, "%s\n%s", want[i].code, ptx);
    for (char *p = ptx; (p = strstr(p, "\t.loc\t")) && p < at; p++) loc = p;
    unsigned file = 0, line = 0;
    ck_assert(loc && sscanf(loc, "\t.loc\t%u %u", &file, &line) == 2);
    ck_assert_msg(line == want[i].line, "%s is of line %u, found %u\n%s", want[i].code, want[i].line, line, ptx);
  }
  ck_assert_uint_eq(occurrences(ptx, ".file\t"), 1);
  free(ptx);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("lines", NO_FRAME, {examples_stay_the_same, 2}, {instructions_have_their_lines});
}

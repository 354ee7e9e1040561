// kiln verify: parse, check, print the canonical text.

#include "kiln.h"

enum { O_JSON };
static const option options[] = {
    {"--json", NULL, "print counts and times as JSON instead of the text"},
    {0},
};

static int print_json(const kiln_module *m, double seconds) {
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(m));
  printf(", \"computations\": %zu, \"instructions\": %zu, \"parameters\": %zu, \"results\": %zu, \"parse_ms\": %.3f}\n",
         kiln_module_computation_count(m), kiln_module_instruction_count(m), kiln_module_parameter_count(m),
         kiln_module_result_leaf_count(m), seconds * 1e3);
  return EXIT_DONE;
}

static int print_text(kiln_context *cx, const kiln_module *m) {
  char *text;
  size_t size;
  kiln_status s = kiln_module_print(cx, m, &text, &size);
  if (s != KILN_OK) return report(cx, s);
  int status = write_output(NULL, text, size);
  kiln_text_free(cx, text, size);
  return status;
}

static int run(const args *a) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  double start = now_seconds();
  int status = open_module(cx, a->file, NULL, &m);
  double seconds = now_seconds() - start;
  if (!status) status = a->values[O_JSON] ? print_json(m, seconds) : print_text(cx, m);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_verify = {"verify",
                          "verify FILE.hlo [--json]",
                          "parse, check, print the canonical text",
                          "Parses and checks HLO text and prints it in canonical form.",
                          options,
                          run,
                          true};

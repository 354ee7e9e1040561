// kiln map: parse an index map, print it simplified.

#include "kiln.h"
#include <stdlib.h>
#include <string.h>

enum { O_JSON, O_LINES };
static const option options[] = {
    {"--json", NULL, "print the map with what is known of it as JSON"},
    {"--lines", NULL, "print a line for each variable and constraint, and floordiv for /"},
    {0},
};

static void json_range(const kiln_map *m, size_t i) {
  kiln_interval in;
  if (i) printf(", ");
  if (kiln_map_result_range(m, i, &in) && in.lo <= in.hi)
    printf("[%lld, %lld]", (long long)in.lo, (long long)in.hi);
  else
    printf("null");
}

static void print_json(const kiln_map *m, const char *text) {
  static const char *const truth[] = {"no", "yes", "unknown"}, *const state[] = {"defined", "empty", "undefined"};
  printf("{\"map\": ");
  json_string(stdout, text);
  printf(
      ", \"state\": \"%s\", \"empty\": \"%s\", \"dims\": %zu, \"ranges\": %zu, \"runtime\": %zu, \"constraints\": %zu, "
      "\"result_ranges\": [",
      state[kiln_map_get_state(m)], truth[kiln_map_is_empty(m, 0)], kiln_map_variable_count(m, KILN_MAP_DIM),
      kiln_map_variable_count(m, KILN_MAP_RANGE), kiln_map_variable_count(m, KILN_MAP_RUNTIME),
      kiln_map_constraint_count(m));
  for (size_t i = 0; i < kiln_map_result_count(m); i++) json_range(m, i);
  printf("]}\n");
}

static int show(kiln_context *cx, const kiln_map *m, const args *a) {
  char *text;
  size_t size;
  kiln_status s = kiln_map_print(cx, m, a->values[O_LINES] ? KILN_MAP_LINES : KILN_MAP_LINE, &text, &size);
  if (s != KILN_OK) return report(cx, s);
  if (a->values[O_JSON])
    print_json(m, text);
  else
    printf("%s\n", text);
  kiln_text_free(cx, text, size);
  return EXIT_DONE;
}

static int run(const args *a) {
  size_t size = strlen(a->file);
  char *input = strcmp(a->file, "-") == 0 ? read_file(a->file, &size) : NULL;
  if (!input && strcmp(a->file, "-") == 0) return EXIT_BAD_INPUT;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_map *m = NULL, *simple = NULL;
  kiln_status s = kiln_map_parse(cx, "map", input ? input : a->file, size, &m);
  if (s == KILN_OK) s = kiln_map_simplify(cx, m, &simple);
  int status = s == KILN_OK ? show(cx, simple, a) : report(cx, s);
  kiln_map_destroy(&simple);
  kiln_map_destroy(&m);
  kiln_context_destroy(&cx);
  free(input);
  return status;
}

const verb verb_map = {
    "map",
    "map MAP [--json]",
    "an index map, simplified",
    "Reads an index map, such as '(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]', in any of the forms\n"
    "that XLA has printed, and prints it simplified. MAP may be - for standard input.",
    options,
    run,
    true};

// kiln indexing: which elements need which, as index maps.

#include "kiln.h"
#include <string.h>

enum { O_FROM, O_INSTRUCTION, O_FUSION, O_PHYSICAL, O_COUNTS, O_JSON };
static const option options[] = {
    {"--from", "END", "output (default): what an element of the result needs; input: what an element goes into"},
    {"--instruction", "NAME", "look at this instruction by itself; without it, at ENTRY from parameters to result"},
    {"--fusion", "NAME", "look at one fusion of ENTRY instead of ENTRY"},
    {"--physical", NULL, "indices are places in memory, by the layouts, slowest dimension first"},
    {"--counts", NULL, "say how many elements are read, and how many different ones"},
    {"--json", NULL, "print the maps as JSON"},
    {0},
};

typedef struct shown {
  kiln_context *cx;
  const kiln_indexing *list;
  const char *from;
  bool counts;
} shown;

static void print_end(FILE *to, const char *name, size_t leaf, const char *type) {
  fprintf(to, "%s", name);
  if (leaf) fprintf(to, ".%zu", leaf);
  fprintf(to, " %s", type);
}

static bool same_ends(const kiln_dependence *a, const kiln_dependence *b) {
  return a && strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 && a->from_leaf == b->from_leaf &&
         a->to_leaf == b->to_leaf && a->operand == b->operand;
}

static void print_runtime(const kiln_dependence *d) {
  for (size_t i = 0; i < d->runtime_count; i++) {
    const kiln_runtime_value *r = &d->runtime[i];
    printf("    rt%zu: %s", i, r->instruction);
    if (r->leaf) printf(".%zu", r->leaf);
    if (strcmp(r->index, "()")) printf(" at %s", r->index);
    if (r->clamped) printf(", clamped to [%lld, %lld]", (long long)r->to.lo, (long long)r->to.hi);
    printf("\n");
  }
}

static void print_counts(const shown *s, size_t i) {
  kiln_index_counts c = {.struct_size = sizeof c};
  kiln_indexing_counts(s->list, i, &c);
  printf("  %s%lld of %lld elements, ", c.distinct_exact ? "" : "at most ", (long long)c.distinct,
         (long long)c.elements);
  if (c.total == INT64_MAX)
    printf("how often is not known\n");
  else
    printf("%s%lld times\n", c.total_exact ? "" : "at most ", (long long)c.total);
}

static int print_text(const shown *s) {
  const kiln_dependence *last = NULL;
  for (size_t i = 0; i < kiln_indexing_count(s->list); i++) {
    const kiln_dependence *d = kiln_indexing_at(s->list, i);
    char *text;
    kiln_status status = kiln_map_print(s->cx, d->map, KILN_MAP_LINE, &text, NULL);
    if (status != KILN_OK) return report(s->cx, status);
    if (!same_ends(last, d)) {
      print_end(stdout, d->from, d->from_leaf, d->from_type);
      printf(" -> ");
      print_end(stdout, d->to, d->to_leaf, d->to_type);
      printf(" (%s %zu)\n", strcmp(s->from, "operand") ? "parameter" : "operand", d->operand);
      if (s->counts) print_counts(s, i);
    }
    printf("  %s\n", text);
    kiln_text_free(s->cx, text, strlen(text));
    print_runtime(d);
    bool known = kiln_map_get_state(d->map) != KILN_MAP_UNDEFINED;
    if (d->reason[0]) printf("    %s%s\n", d->exact ? "" : known ? "not exact: " : "not known: ", d->reason);
    last = d;
  }
  return EXIT_DONE;
}

static void json_field(const char *key, const char *value) {
  printf("\"%s\": ", key);
  json_string(stdout, value);
  printf(", ");
}

static void json_runtime(const kiln_dependence *d) {
  printf("\"runtime\": [");
  for (size_t i = 0; i < d->runtime_count; i++) {
    const kiln_runtime_value *r = &d->runtime[i];
    printf("%s{", i ? ", " : "");
    json_field("instruction", r->instruction);
    json_field("index", r->index);
    printf("\"leaf\": %zu, \"clamped\": ", r->leaf);
    if (r->clamped)
      printf("[%lld, %lld]}", (long long)r->to.lo, (long long)r->to.hi);
    else
      printf("null}");
  }
  printf("]");
}

static void json_counts(const shown *s, size_t i) {
  kiln_index_counts c = {.struct_size = sizeof c};
  kiln_indexing_counts(s->list, i, &c);
  printf(", \"counts\": {\"elements\": %lld, \"distinct\": %lld, \"distinct_exact\": %s, \"total\": ",
         (long long)c.elements, (long long)c.distinct, c.distinct_exact ? "true" : "false");
  if (c.total == INT64_MAX)
    printf("null, ");
  else
    printf("%lld, ", (long long)c.total);
  printf("\"total_exact\": %s}", c.total_exact ? "true" : "false");
}

static int print_json(const shown *s) {
  static const char *const states[] = {"defined", "empty", "undefined"};
  printf("{\"dependences\": [");
  for (size_t i = 0; i < kiln_indexing_count(s->list); i++) {
    const kiln_dependence *d = kiln_indexing_at(s->list, i);
    char *text;
    kiln_status status = kiln_map_print(s->cx, d->map, KILN_MAP_LINE, &text, NULL);
    if (status != KILN_OK) return report(s->cx, status);
    printf("%s\n{", i ? "," : "");
    json_field("from", d->from);
    json_field("from_type", d->from_type);
    json_field("to", d->to);
    json_field("to_type", d->to_type);
    json_field("map", text);
    json_field("state", states[kiln_map_get_state(d->map)]);
    json_field("reason", d->reason);
    printf("\"from_leaf\": %zu, \"to_leaf\": %zu, \"operand\": %zu, \"exact\": %s, \"remote\": %s, ", d->from_leaf,
           d->to_leaf, d->operand, d->exact ? "true" : "false", d->remote ? "true" : "false");
    json_runtime(d);
    if (s->counts) json_counts(s, i);
    printf("}");
    kiln_text_free(s->cx, text, strlen(text));
  }
  printf("]}\n");
  return EXIT_DONE;
}

static int run(const args *a) {
  const char *from = a->values[O_FROM] ? a->values[O_FROM] : "output";
  bool output = strcmp(from, "output") == 0;
  if (!output && strcmp(from, "input")) return bad_value(a, O_FROM, from, "expected output or input");
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_indexing *list = NULL;
  kiln_index_params how = {.struct_size = sizeof how,
                           .way = output ? KILN_INDEX_FROM_OUTPUT : KILN_INDEX_FROM_INPUT,
                           .instruction = a->values[O_INSTRUCTION],
                           .physical = a->values[O_PHYSICAL] != NULL};
  int status = open_module(cx, a->file, a->values[O_FUSION], &m);
  if (!status) {
    kiln_status s = kiln_module_index(cx, m, &how, &list);
    shown all = {cx, list, a->values[O_INSTRUCTION] ? "operand" : "parameter", a->values[O_COUNTS] != NULL};
    status = s != KILN_OK ? report(cx, s) : a->values[O_JSON] ? print_json(&all) : print_text(&all);
  }
  kiln_indexing_destroy(&list);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_indexing = {
    "indexing",
    "indexing FILE.hlo [OPTION]...",
    "which elements need which",
    "Prints index maps: which elements of each parameter an element of ENTRY's result needs, along all paths,\n"
    "or which elements of the result an element of a parameter goes into; the same of one instruction. Maps\n"
    "between the same two arrays stand for their union. Where there is no map, nothing is read.",
    options,
    run,
    true};

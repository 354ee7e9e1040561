// kiln layout: where elements lie in memory.

#include "kiln.h"
#include <string.h>

enum { O_AT, O_MAP, O_INVERSE, O_JSON };
static const option options[] = {
    {"--at", "POSITION", "the logical index of a position, or 'padding', in place of an index's position"},
    {"--map", NULL, "print the index map from the logical index to the position"},
    {"--inverse-map", NULL, "print the map from positions of elements to the logical index"},
    {"--json", NULL, "print one JSON object"},
    {0},
};

// --- the whole layout -----------------------------------------------------------------------------------------------

static int digit_width(const kiln_layout *l, size_t n) {
  int64_t extent, stride;
  const char *value;
  size_t widest = 0;
  for (size_t i = 0; i < n && kiln_layout_digit_at(l, i, &extent, &stride, &value); i++)
    if (extent != 1 && strlen(value) > widest) widest = strlen(value);
  return widest < 60 ? (int)widest : 60;
}

static void print_layout(const kiln_layout *l) {
  const kiln_layout_info *info = kiln_layout_describe(l);
  const char *name, *value;
  int64_t extent, stride;
  printf("shape      %s\n", info->shape);
  printf("elements   %lld, each of %lld bit%s\n", (long long)info->elements, (long long)info->element_bits,
         info->element_bits == 1 ? "" : "s");
  printf("positions  %lld, %lld of them padding\n", (long long)info->positions,
         (long long)(info->positions - info->elements));
  printf("bytes      %lld", (long long)info->bytes);
  if (info->prefix_bytes) printf(", %lld of them before the data", (long long)info->prefix_bytes);
  printf("\nphysical   [");
  for (size_t i = 0; kiln_layout_digit_at(l, i, &extent, &stride, &value); i++)
    printf("%s%lld", i ? "," : "", (long long)extent);
  printf("] major to minor\n");
  for (size_t i = 0; kiln_layout_name_at(l, i, &name, &value); i++) printf("where      %s = %s\n", name, value);
  int width = digit_width(l, info->digit_count);
  for (size_t i = 0; kiln_layout_digit_at(l, i, &extent, &stride, &value); i++) {
    if (extent == 1) continue; // always 0
    printf("digit      %-*s  stride %lld\n", width, value, (long long)stride);
  }
}

static void print_layout_json(const kiln_layout *l) {
  const kiln_layout_info *info = kiln_layout_describe(l);
  const char *name, *value;
  int64_t extent, stride;
  printf("{\"shape\": ");
  json_string(stdout, info->shape);
  printf(
      ", \"elements\": %lld, \"element_bits\": %lld, \"positions\": %lld, \"padding\": %lld, \"prefix_bytes\": %lld, "
      "\"bytes\": %lld, \"names\": [",
      (long long)info->elements, (long long)info->element_bits, (long long)info->positions,
      (long long)(info->positions - info->elements), (long long)info->prefix_bytes, (long long)info->bytes);
  for (size_t i = 0; kiln_layout_name_at(l, i, &name, &value); i++) {
    printf("%s{\"name\": \"%s\", \"value\": ", i ? ", " : "", name);
    json_string(stdout, value);
    printf("}");
  }
  printf("], \"digits\": [");
  for (size_t i = 0; kiln_layout_digit_at(l, i, &extent, &stride, &value); i++) {
    printf("%s{\"extent\": %lld, \"stride\": %lld, \"value\": ", i ? ", " : "", (long long)extent, (long long)stride);
    json_string(stdout, value);
    printf("}");
  }
  printf("]}\n");
}

// --- one element ----------------------------------------------------------------------------------------------------

static void print_index(uint32_t rank, const int64_t *index, const char *between) {
  for (uint32_t d = 0; d < rank; d++) printf("%s%lld", d ? between : "", (long long)index[d]);
}

static void print_json(const kiln_layout *l, int64_t position, const int64_t *index) {
  int64_t byte = 0;
  unsigned bit = 0;
  kiln_layout_address(l, position, &byte, &bit);
  printf("{\"shape\": ");
  json_string(stdout, kiln_layout_describe(l)->shape);
  printf(", \"position\": %lld, \"byte\": %lld, \"bit\": %u, \"padding\": %s, \"index\": ", (long long)position,
         (long long)byte, bit, index ? "false" : "true");
  if (index) {
    printf("[");
    print_index(kiln_layout_describe(l)->type.rank, index, ", ");
    printf("]}\n");
  } else {
    printf("null}\n");
  }
}

static int print_position(kiln_context *cx, const kiln_layout *l, const char *text, bool json) {
  int64_t index[KILN_MAX_RANK], position = 0;
  kiln_status s = kiln_layout_read_index(cx, l, text, index);
  if (s == KILN_OK) s = kiln_layout_position(cx, l, index, &position);
  if (s != KILN_OK) return report(cx, s);
  if (json)
    print_json(l, position, index);
  else
    printf("%lld\n", (long long)position);
  return EXIT_DONE;
}

static int print_at(kiln_context *cx, const kiln_layout *l, const args *a, bool json) {
  unsigned long long position = 0;
  int64_t index[KILN_MAX_RANK];
  bool padding = false;
  int status = read_number(a, O_AT, 0, INT64_MAX, "expected a position, a whole number of at least 0", &position);
  if (status) return status;
  kiln_status s = kiln_layout_index(cx, l, (int64_t)position, index, &padding);
  if (s != KILN_OK) return report(cx, s);
  if (json) {
    print_json(l, (int64_t)position, padding ? NULL : index);
  } else if (padding) {
    printf("padding\n");
  } else {
    print_index(kiln_layout_describe(l)->type.rank, index, ",");
    printf("\n");
  }
  return EXIT_DONE;
}

static int print_map(kiln_context *cx, const kiln_layout *l, bool inverse, bool json) {
  kiln_map *m = NULL;
  char *text = NULL;
  size_t size = 0;
  kiln_status s = (inverse ? kiln_layout_inverse_map : kiln_layout_map)(cx, l, &m);
  if (s == KILN_OK) s = kiln_map_print(cx, m, KILN_MAP_LINE, &text, &size);
  if (s == KILN_OK && json) {
    printf("{\"shape\": ");
    json_string(stdout, kiln_layout_describe(l)->shape);
    printf(", \"%s\": ", inverse ? "inverse_map" : "map");
    json_string(stdout, text);
    printf("}\n");
  } else if (s == KILN_OK) {
    printf("%s\n", text);
  }
  kiln_text_free(cx, text, size);
  kiln_map_destroy(&m);
  return report(cx, s);
}

static int print(kiln_context *cx, const kiln_layout *l, const args *a) {
  bool json = a->values[O_JSON];
  if (a->second) return print_position(cx, l, a->second, json);
  if (a->values[O_AT]) return print_at(cx, l, a, json);
  if (a->values[O_MAP] || a->values[O_INVERSE]) return print_map(cx, l, a->values[O_INVERSE], json);
  (json ? print_layout_json : print_layout)(l);
  return EXIT_DONE;
}

static int run(const args *a) {
  if (a->second && a->values[O_AT]) {
    fprintf(stderr, "kiln layout: expected an index or --at, found both\n");
    return EXIT_BAD_INPUT;
  }
  bool map = a->values[O_MAP] || a->values[O_INVERSE], one = a->second || a->values[O_AT];
  if ((map && one) || (a->values[O_MAP] && a->values[O_INVERSE])) {
    fprintf(stderr, "kiln layout: expected one of an index, --at, --map and --inverse-map, found several\n");
    return EXIT_BAD_INPUT;
  }
  kiln_context *cx = kiln_context_create(NULL);
  kiln_layout *l = NULL;
  kiln_status s = kiln_layout_parse(cx, a->file, &l);
  int status = s == KILN_OK ? print(cx, l, a) : report(cx, s);
  kiln_layout_destroy(&l);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_layout = {.name = "layout",
                          .synopsis = "layout 'SHAPE' [INDEX]",
                          .summary = "where elements lie in memory",
                          .help = "Reads a shape with its layout, as HLO writes it, and prints its size, padding and "
                                  "physical dimensions; with\nan INDEX such as 2,3 the element's position alone, in "
                                  "elements from the data's beginning, with --at the\nreverse. "
                                  "--map prints where every element lies as one index map.",
                          .options = options,
                          .run = run,
                          .takes_file = true,
                          .takes_second = true};

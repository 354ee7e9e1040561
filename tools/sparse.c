// kiln sparse: an encoding of sparse tensors, checked, and how a tensor is stored by it.

#include "kiln.h"
#include <stdlib.h>
#include <string.h>

enum { O_TYPE, O_STRICT, O_RULES, O_JSON };
static const option options[] = {
    {"--type", "TYPE", "the tensor's type, 4x?xf32 or f32[4,8]: print its arrays, too"},
    {"--strict", NULL, "take what MLIR 22.1.8 takes, and nothing else"},
    {"--rules", NULL, "print the rules that encodings keep, with the modes they hold in"},
    {"--json", NULL, "print one JSON object"},
    {0},
};

static const char *const roles[] = {"positions", "coordinates", "values"};

// --- text -----------------------------------------------------------------------------------------------------------

static void put_number(int64_t v) {
  if (v < 0)
    printf("?");
  else
    printf("%lld", (long long)v);
}

static void print_buffer(const kiln_sparse_buffer *b, const char *type) {
  char name[64];
  if (b->role == KILN_SPARSE_VALUES)
    snprintf(name, sizeof name, "values");
  else
    snprintf(name, sizeof name, "%s[%zu]", roles[b->role], b->level);
  printf("%-15s %s[", name, type);
  if (b->batches != 1) {
    put_number(b->batches);
    printf(",");
  }
  if (b->columns > 1) {
    put_number(b->count < 0 ? -1 : b->count / b->columns);
    printf(",%lld]", (long long)b->columns);
  } else {
    put_number(b->count);
    printf("]");
  }
  if (b->count < 0 && b->most >= 0) printf("  at most %lld", (long long)(b->most / b->columns));
  printf("\n");
}

// "u32", or of values the type's name.
static const char *element(const kiln_sparse_buffer *b, char out[16]) {
  if (b->role == KILN_SPARSE_VALUES) return b->dtype ? kiln_dtype_name(b->dtype) : "?";
  snprintf(out, 16, "u%u", b->bits);
  return out;
}

static void print_layout(const kiln_encoding *e, const kiln_sparse_layout *l) {
  const kiln_encoding_info *info = kiln_encoding_describe(e);
  char type[16];
  for (size_t i = 0; i < info->level_count; i++) {
    int64_t first = 0, size = -1;
    kiln_level level;
    kiln_encoding_level_at(e, i, &level);
    kiln_sparse_layout_level_at(l, i, &first, &size);
    printf("level %zu         %s: ", i, level.value);
    put_number(size);
    printf(first ? " from %lld on\n" : "\n", (long long)first);
  }
  for (size_t d = 0; d < info->dimension_count; d++) {
    const char *value = kiln_sparse_layout_dimension_at(l, d);
    printf("d%-14zu %s\n", d, value ? value : "no way back from the levels is found");
  }
  kiln_sparse_buffer b;
  for (size_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b); i++) print_buffer(&b, element(&b, type));
}

// --- JSON -----------------------------------------------------------------------------------------------------------

static void json_number(const char *name, int64_t v) {
  printf(", \"%s\": ", name);
  if (v < 0)
    printf("null");
  else
    printf("%lld", (long long)v);
}

static void json_optional(const char *name, const char *text) {
  printf(", \"%s\": ", name);
  if (text && *text)
    json_string(stdout, text);
  else
    printf("null");
}

static void json_levels(const kiln_encoding *e, const kiln_sparse_layout *l) {
  static const char *const formats[] = {"dense", "batch", "compressed", "loose_compressed", "singleton", "structured"};
  kiln_level level;
  printf(", \"levels\": [");
  for (size_t i = 0; kiln_encoding_level_at(e, i, &level); i++) {
    int64_t first, size;
    printf("%s{\"value\": ", i ? ", " : "");
    json_string(stdout, level.value);
    printf(", \"format\": \"%s\", \"nonunique\": %s, \"nonordered\": %s, \"soa\": %s", formats[level.format],
           level.properties & KILN_LEVEL_NONUNIQUE ? "true" : "false",
           level.properties & KILN_LEVEL_NONORDERED ? "true" : "false",
           level.properties & KILN_LEVEL_SOA ? "true" : "false");
    if (level.format == KILN_LEVEL_STRUCTURED)
      printf(", \"n\": %lld, \"m\": %lld", (long long)level.n, (long long)level.m);
    if (l && kiln_sparse_layout_level_at(l, i, &first, &size)) {
      printf(", \"first\": %lld", (long long)first);
      json_number("size", size);
    }
    printf("}");
  }
  printf("]");
}

static void json_layout(const kiln_encoding *e, const kiln_sparse_layout *l) {
  kiln_sparse_buffer b;
  char type[16];
  printf(", \"dimensions\": [");
  for (size_t d = 0; d < kiln_encoding_describe(e)->dimension_count; d++) {
    const char *value = kiln_sparse_layout_dimension_at(l, d);
    if (d) printf(", ");
    if (value)
      json_string(stdout, value);
    else
      printf("null");
  }
  printf("], \"buffers\": [");
  for (size_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    printf("%s{\"role\": \"%s\", \"level\": %zu, \"type\": \"%s\", \"columns\": %lld", i ? ", " : "", roles[b.role],
           b.level, element(&b, type), (long long)b.columns);
    json_number("batches", b.batches);
    json_number("count", b.count);
    json_number("most", b.most);
    printf("}");
  }
  printf("]");
}

static void print_json(const kiln_encoding *e, const kiln_sparse_layout *l) {
  const kiln_encoding_info *info = kiln_encoding_describe(e);
  printf("{\"encoding\": ");
  json_string(stdout, info->text);
  printf(", \"pos_width\": %u, \"crd_width\": %u", info->pos_width, info->crd_width);
  json_optional("explicit_value", info->explicit_value);
  json_optional("implicit_value", info->implicit_value);
  json_levels(e, l);
  if (l) json_layout(e, l);
  printf("}\n");
}

static int print_rules(bool json) {
  kiln_encoding_rule r;
  if (json) printf("{\"rules\": [");
  for (size_t i = 0; kiln_encoding_rule_at(i, &r); i++) {
    if (!json) {
      printf("%-9s  %-15s  %s\n", r.name, !r.relaxed ? "strict" : !r.strict ? "default" : "both", r.text);
      continue;
    }
    printf("%s{\"name\": \"%s\", \"strict\": %s, \"default\": %s, \"text\": ", i ? ", " : "", r.name,
           r.strict ? "true" : "false", r.relaxed ? "true" : "false");
    json_string(stdout, r.text);
    printf("}");
  }
  if (json) printf("]}\n");
  return EXIT_DONE;
}

// --------------------------------------------------------------------------------------------------------------------

static int show(kiln_context *cx, const kiln_encoding *e, const args *a) {
  kiln_sparse_layout *l = NULL;
  kiln_status s = a->values[O_TYPE] ? kiln_sparse_layout_create(cx, e, KILN_DTYPE_NONE, NULL, &l) : KILN_OK;
  if (s == KILN_OK && a->values[O_JSON]) {
    print_json(e, l);
  } else if (s == KILN_OK) {
    printf("%s\n", kiln_encoding_describe(e)->text);
    if (l) print_layout(e, l);
  }
  kiln_sparse_layout_destroy(&l);
  return report(cx, s);
}

static int run(const args *a) {
  if (a->values[O_RULES]) return print_rules(a->values[O_JSON]);
  if (!a->file) {
    fprintf(stderr, "kiln sparse: expected an encoding, or --rules\n");
    return EXIT_BAD_INPUT;
  }
  size_t size = strlen(a->file);
  char *input = strcmp(a->file, "-") == 0 ? read_file(a->file, &size) : NULL;
  if (!input && strcmp(a->file, "-") == 0) return EXIT_BAD_INPUT;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_encoding *e = NULL;
  kiln_encoding_params params = {
      .struct_size = sizeof params, .strict = a->values[O_STRICT] != NULL, .type = a->values[O_TYPE]};
  kiln_status s = kiln_encoding_parse(cx, "encoding", input ? input : a->file, size, &params, &e);
  int status = s == KILN_OK ? show(cx, e, a) : report(cx, s);
  kiln_encoding_destroy(&e);
  kiln_context_destroy(&cx);
  free(input);
  return status;
}

const verb verb_sparse = {.name = "sparse",
                          .synopsis = "sparse 'ENCODING' [--type TYPE]",
                          .summary = "an encoding of sparse tensors, checked",
                          .help =
                              "Reads an encoding, '#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : "
                              "compressed) }>' or its fields alone, and\nprints its normal form; with a type, how "
                              "large its levels are, how dimensions follow from them, and the arrays\nthat a tensor is "
                              "stored in. ENCODING may be - for standard input.",
                          .options = options,
                          .run = run,
                          .takes_file = true};

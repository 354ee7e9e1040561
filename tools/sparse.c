// kiln sparse: an encoding of sparse tensors, checked, and how a tensor is stored by it.

#include "kiln.h"
#include <stdlib.h>
#include <string.h>

enum { O_TYPE, O_READ, O_WRITE, O_STRICT, O_RULES, O_JSON };
static const option options[] = {
    {"--type", "TYPE", "the tensor's type, 4x?xf32 or f32[4,8]: print its arrays, too"},
    {"--read", "FILE",
     "store the tensor of a file: .mtx (Matrix Market), .npz (SciPy), or COORDINATES.npy,VALUES.npy; --type is the\n"
     "file's where it is not given"},
    {"--write", "FILE", "write what is stored, as a file of these kinds"},
    {"--strict", NULL, "take what MLIR 22.1.8 takes, and nothing else"},
    {"--rules", NULL, "print the rules that encodings keep, with the modes they hold in", .alone = true},
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

// --- files ----------------------------------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static int unknown_file(const char *path) {
  fprintf(stderr, "kiln sparse: %s: expected FILE.mtx, FILE.npz, or COORDINATES.npy,VALUES.npy\n", path);
  return EXIT_BAD_INPUT;
}

static int read_pair(kiln_context *cx, const char *path, const char *comma, kiln_sparse_list **out) {
  char *first = strndup(path, (size_t)(comma - path));
  kiln_sparse_npy c = {.name = first}, v = {.name = comma + 1};
  int status = EXIT_BAD_INPUT;
  char *cbytes = first ? read_file(first, &c.size) : NULL, *vbytes = cbytes ? read_file(comma + 1, &v.size) : NULL;
  c.bytes = cbytes;
  v.bytes = vbytes;
  if (vbytes) status = report(cx, kiln_sparse_list_read_npy(cx, &c, &v, NULL, 0, KILN_DTYPE_NONE, out));
  free(vbytes);
  free(cbytes);
  free(first);
  return status;
}

static int read_list(kiln_context *cx, const char *path, kiln_sparse_list **out) {
  const char *comma = strchr(path, ',');
  bool text = ends_with(path, ".mtx");
  size_t size;
  if (comma) return read_pair(cx, path, comma, out);
  if (!text && !ends_with(path, ".npz")) return unknown_file(path);
  char *bytes = read_file(path, &size);
  if (!bytes) return EXIT_BAD_INPUT;
  kiln_sparse_file kind = text ? KILN_SPARSE_MATRIX_MARKET : KILN_SPARSE_NPZ_COO;
  int status = report(cx, kiln_sparse_list_read(cx, kind, path, bytes, size, KILN_DTYPE_NONE, out));
  free(bytes);
  return status;
}

static int put_file(const char *path, const char *bytes, size_t size) {
  FILE *f = output_open(path);
  if (f) fwrite(bytes, 1, size, f);
  return output_close(f, path);
}

static int write_pair(kiln_context *cx, const kiln_sparse_list *l, const char *path, const char *comma) {
  char *first = strndup(path, (size_t)(comma - path)), *c = NULL, *v = NULL;
  size_t cn = 0, vn = 0;
  int status = report(cx, kiln_sparse_list_write_npy(cx, l, &c, &cn, &v, &vn));
  if (!status) status = first ? put_file(first, c, cn) : EXIT_BAD_INPUT;
  if (!status) status = put_file(comma + 1, v, vn);
  kiln_text_free(cx, c, cn);
  kiln_text_free(cx, v, vn);
  free(first);
  return status;
}

// SciPy's format that stores as the encoding does, or coo.
static kiln_sparse_file format_of(const kiln_encoding *e) {
  kiln_level a, b;
  if (kiln_encoding_describe(e)->level_count != 2 || !kiln_encoding_level_at(e, 0, &a) ||
      !kiln_encoding_level_at(e, 1, &b) || a.format != KILN_LEVEL_DENSE || b.format != KILN_LEVEL_COMPRESSED)
    return KILN_SPARSE_NPZ_COO;
  if (strcmp(a.value, "d0") == 0 && strcmp(b.value, "d1") == 0) return KILN_SPARSE_NPZ_CSR;
  return strcmp(a.value, "d1") == 0 && strcmp(b.value, "d0") == 0 ? KILN_SPARSE_NPZ_CSC : KILN_SPARSE_NPZ_COO;
}

static int write_list(kiln_context *cx, const kiln_encoding *e, const kiln_sparse_list *l, const char *path) {
  const char *comma = strchr(path, ',');
  char *bytes = NULL;
  size_t size = 0;
  if (comma) return write_pair(cx, l, path, comma);
  if (!ends_with(path, ".mtx") && !ends_with(path, ".npz")) return unknown_file(path);
  kiln_sparse_file kind = ends_with(path, ".mtx") ? KILN_SPARSE_MATRIX_MARKET : format_of(e);
  int status = report(cx, kiln_sparse_list_write(cx, l, kind, &bytes, &size));
  if (!status) status = put_file(path, bytes, size);
  kiln_text_free(cx, bytes, size);
  return status;
}

// --- stored tensors -------------------------------------------------------------------------------------------------

enum { MOST_ARRAYS = 300 };

static kiln_status allocate(const kiln_sparse_layout *l, kiln_sparse_array *arrays) {
  kiln_sparse_buffer b;
  for (size_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    arrays[i].data = malloc(((size_t)arrays[i].count * b.bits + 7) / 8 + 1);
    if (!arrays[i].data) return KILN_E_MEMORY;
  }
  return KILN_OK;
}

static void print_stored(const kiln_sparse_layout *l, const kiln_sparse_array *arrays, bool json) {
  kiln_sparse_buffer b;
  char type[16];
  if (json) printf("{\"arrays\": [");
  for (size_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    if (json) {
      printf("%s{\"role\": \"%s\", \"level\": %zu, \"type\": \"%s\", \"count\": %lld}", i ? ", " : "", roles[b.role],
             b.level, element(&b, type), (long long)arrays[i].count);
      continue;
    }
    b.count = b.batches > 1 ? arrays[i].count / b.batches : arrays[i].count;
    print_buffer(&b, element(&b, type));
  }
  if (json) printf("]}\n");
}

static int store(kiln_context *cx, const kiln_encoding *e, const args *a) {
  kiln_sparse_list *list = NULL, *again = NULL;
  kiln_sparse_layout *l = NULL;
  kiln_sparse_array arrays[MOST_ARRAYS] = {{0}};
  int status = read_list(cx, a->values[O_READ], &list);
  if (status) return status;
  const kiln_sparse_list_info *info = kiln_sparse_list_describe(list);
  kiln_status s = KILN_OK;
  if (info->rank != kiln_encoding_describe(e)->dimension_count) {
    fprintf(stderr, "kiln sparse: %s: expected %zu dimensions, as the encoding has, found %zu\n", a->values[O_READ],
            kiln_encoding_describe(e)->dimension_count, info->rank);
    status = EXIT_BAD_INPUT;
  }
  if (!status) s = kiln_sparse_layout_create(cx, e, info->dtype, a->values[O_TYPE] ? NULL : info->sizes, &l);
  if (!status && s == KILN_OK) s = kiln_sparse_pack(cx, l, &info->entries, arrays);
  if (!status && s == KILN_OK) s = allocate(l, arrays);
  if (!status && s == KILN_OK) s = kiln_sparse_pack(cx, l, &info->entries, arrays);
  if (!status && s == KILN_OK && a->values[O_WRITE]) s = kiln_sparse_list_create(cx, l, arrays, &again);
  if (!status) status = report(cx, s);
  if (!status && again) status = write_list(cx, e, again, a->values[O_WRITE]);
  if (!status) print_stored(l, arrays, a->values[O_JSON] != NULL);
  for (size_t i = 0; i < MOST_ARRAYS; i++) free(arrays[i].data);
  kiln_sparse_list_destroy(&again);
  kiln_sparse_layout_destroy(&l);
  kiln_sparse_list_destroy(&list);
  return status;
}

static int run(const args *a) {
  if (a->values[O_RULES]) return print_rules(a->values[O_JSON]);
  if (!a->file || (a->values[O_WRITE] && !a->values[O_READ])) {
    fprintf(stderr, "kiln sparse: expected %s\n", a->file ? "--read FILE with --write" : "an encoding, or --rules");
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
  int status = s != KILN_OK ? report(cx, s) : a->values[O_READ] ? store(cx, e, a) : show(cx, e, a);
  kiln_encoding_destroy(&e);
  kiln_context_destroy(&cx);
  free(input);
  return status;
}

const verb verb_sparse = {.name = "sparse",
                          .synopsis = "sparse 'ENCODING' [--type TYPE] [--read FILE [--write FILE]]",
                          .summary = "an encoding of sparse tensors, checked",
                          .help =
                              "Reads an encoding, '#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : "
                              "compressed) }>' or its fields alone, and\nprints its normal form; with a type, how "
                              "large its levels are, how dimensions follow from them, and the arrays\nthat a tensor is "
                              "stored in. With a file it stores the tensor that the file holds, and writes it again.\n"
                              "ENCODING may be - for standard input.",
                          .options = options,
                          .run = run,
                          .takes_file = true};

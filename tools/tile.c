// kiln tile: which elements of every array a tile of the results needs.

#include "kiln.h"
#include <stdlib.h>
#include <string.h>

enum { O_SIZES, O_PER_BLOCK, O_FUSION, O_SEARCH, O_SHARED, O_REGISTERS, O_DIVIDE, O_JSON };
static const option options[] = {
    {"--sizes", "8,32", "elements of a tile along each dim, parallel ones first; ? leaves one open. Without: all are"},
    {"--per-block", "N", "tell which block makes which tiles, where each makes N"},
    {"--fusion", "NAME", "the fusion of ENTRY to tile, in place of all of ENTRY"},
    {"--search", "N", "list the N cheapest sizes instead, with cost, registers and shared memory in bytes"},
    {"--shared", "BYTES", "of --search: shared memory of a block (default 49152)"},
    {"--registers", "BYTES", "of --search: registers of a block (default 65536)"},
    {"--divide", NULL, "of --search: sizes that divide their dims, so that no tile is cut"},
    {"--json", NULL, "print one JSON object"},
    {0},
};

// --- readable -------------------------------------------------------------------------------------------------------

static void print_dims(const kiln_tiling *t) {
  kiln_tiling_dim d = {.struct_size = sizeof d};
  if (kiln_tiling_dim_count(t)) printf("dims\n");
  for (size_t i = 0; kiln_tiling_dim_at(t, i, &d); i++) {
    printf("  t%zu  %-10s  ", i, d.sequential ? "sequential" : "parallel");
    if (d.size)
      printf("%lld by %lld", (long long)d.extent, (long long)d.size);
    else
      printf("%lld by s%zu", (long long)d.extent, i);
    if (d.sequential)
      printf("  of %s\n", d.instruction);
    else
      printf("  of %s, dimension %zu\n", d.instruction, d.number);
  }
}

static void print_runtimes(const kiln_tiling *t) {
  kiln_tiling_runtime r = {.struct_size = sizeof r};
  if (kiln_tiling_runtime_count(t)) printf("runtime values\n");
  for (size_t i = 0; kiln_tiling_runtime_at(t, i, &r); i++) {
    printf("  rt%zu in [%lld, %lld]  %s", i, (long long)r.lo, (long long)r.hi, r.instruction);
    printf(*r.index ? "[%s]\n" : "\n", r.index);
  }
}

static void print_regions(const kiln_tiling *t) {
  kiln_tiling_region r = {.struct_size = sizeof r};
  if (kiln_tiling_region_count(t) > 1) printf("regions\n");
  for (size_t i = 1; kiln_tiling_region_at(t, i, &r); i++) {
    printf("  %zu  ", i);
    if (r.kind == KILN_REGION_LOOP)
      printf("the loop of %s", r.instruction);
    else
      printf("operand %zu of %s", r.operand, r.instruction);
    if (r.parent) printf(", in region %zu", r.parent);
    printf("\n");
  }
}

static void print_schedule(const kiln_tiling *t) {
  kiln_tile_schedule s = {.struct_size = sizeof s};
  const char *text;
  if (!kiln_tiling_schedule(t, &s)) return;
  printf("blocks  %lld, tiles  %lld\n", (long long)s.blocks, (long long)s.tiles);
  for (size_t i = 0; kiln_tiling_schedule_at(t, i, &text); i++) printf("  t%zu = %s\n", i, text);
}

static const char *part(const kiln_tile_text *x, int which) {
  const char *const parts[] = {x->offset, x->size, x->stride, x->lower, x->upper};
  return parts[which];
}

// One line "offset [..]": of lower and upper bounds only where there are any, of strides where one is not 1.
static void print_part(const kiln_tiling *t, size_t value, size_t box, size_t rank, int which) {
  static const char *const words[] = {"offset", "size", "stride", "from", "below"};
  kiln_tile_text x = {.struct_size = sizeof x};
  bool any = which < 2;
  for (size_t d = 0; kiln_tiling_box_at(t, value, box, d, &x); d++)
    any |= which == 2 ? strcmp(x.stride, "1") != 0 : which > 2 && *part(&x, which);
  if (!any) return;
  printf("    %-7s[", words[which]);
  for (size_t d = 0; d < rank && kiln_tiling_box_at(t, value, box, d, &x); d++)
    printf("%s%s", d ? ", " : "", *part(&x, which) ? part(&x, which) : "-");
  printf("]\n");
}

static void print_value(const kiln_tiling *t, size_t i, const kiln_tiled_value *v) {
  static const char *const states[] = {"", "  covers: ", "  unknown: "};
  const char *text;
  printf("%s", v->instruction);
  if (v->leaf) printf(" (part %zu)", v->leaf);
  printf("  %s", v->shape);
  if (v->region) printf("  region %zu", v->region);
  printf("%s%s\n", states[v->state], v->reason);
  for (size_t k = 0; kiln_tiling_condition_at(t, i, k, &text); k++) printf("    needs  %s\n", text);
  if (v->state != KILN_TILE_UNKNOWN && !v->box_count) printf("    no elements\n");
  for (size_t b = 0; b < v->box_count; b++) {
    if (v->box_count > 1) printf("  box %zu\n", b);
    for (int which = 0; which < 5 && v->rank; which++) print_part(t, i, b, v->rank, which);
    for (size_t k = 0; kiln_tiling_guard_at(t, i, b, k, &text); k++) printf("    if     %s\n", text);
  }
}

static void print_tiling(const kiln_tiling *t, bool schedule) {
  kiln_tiled_value v = {.struct_size = sizeof v};
  print_dims(t);
  if (schedule) print_schedule(t);
  print_runtimes(t);
  print_regions(t);
  for (size_t i = 0; kiln_tiling_value_at(t, i, &v); i++) print_value(t, i, &v);
}

// --- JSON -----------------------------------------------------------------------------------------------------------

static void member(const char *before, const char *name, const char *text) {
  printf("%s\"%s\": ", before, name);
  json_string(stdout, text);
}

static void json_dims(const kiln_tiling *t) {
  kiln_tiling_dim d = {.struct_size = sizeof d};
  for (size_t i = 0; kiln_tiling_dim_at(t, i, &d); i++) {
    printf("%s{\"kind\": \"%s\", \"extent\": %lld, \"size\": ", i ? ", " : "", d.sequential ? "sequential" : "parallel",
           (long long)d.extent);
    if (d.size)
      printf("%lld", (long long)d.size);
    else
      printf("null");
    member(", ", "instruction", d.instruction);
    printf(", \"number\": %zu}", d.number);
  }
}

static void json_runtimes(const kiln_tiling *t) {
  kiln_tiling_runtime r = {.struct_size = sizeof r};
  for (size_t i = 0; kiln_tiling_runtime_at(t, i, &r); i++) {
    printf("%s{\"lo\": %lld, \"hi\": %lld", i ? ", " : "", (long long)r.lo, (long long)r.hi);
    member(", ", "instruction", r.instruction);
    printf(", \"leaf\": %zu", r.leaf);
    member(", ", "index", r.index);
    printf("}");
  }
}

static void json_regions(const kiln_tiling *t) {
  static const char *const kinds[] = {"top", "loop", "branch"};
  kiln_tiling_region r = {.struct_size = sizeof r};
  for (size_t i = 0; kiln_tiling_region_at(t, i, &r); i++) {
    printf("%s{\"kind\": \"%s\", \"parent\": %zu", i ? ", " : "", kinds[r.kind], r.parent);
    member(", ", "instruction", r.instruction);
    printf(", \"operand\": %zu}", r.operand);
  }
}

static void json_box(const kiln_tiling *t, size_t value, size_t box) {
  kiln_tile_text x = {.struct_size = sizeof x};
  const char *text;
  printf("{\"dims\": [");
  for (size_t d = 0; kiln_tiling_box_at(t, value, box, d, &x); d++) {
    member(d ? ", {" : "{", "offset", x.offset);
    member(", ", "size", x.size);
    member(", ", "stride", x.stride);
    if (*x.lower) member(", ", "lower", x.lower);
    if (*x.upper) member(", ", "upper", x.upper);
    printf("}");
  }
  printf("], \"guards\": [");
  for (size_t k = 0; kiln_tiling_guard_at(t, value, box, k, &text); k++) {
    if (k) printf(", ");
    json_string(stdout, text);
  }
  printf("]}");
}

static void json_value(const kiln_tiling *t, size_t i, const kiln_tiled_value *v) {
  static const char *const states[] = {"exact", "covers", "unknown"};
  const char *text;
  member(i ? ",\n {" : "\n {", "instruction", v->instruction);
  printf(", \"leaf\": %zu", v->leaf);
  member(", ", "shape", v->shape);
  printf(", \"region\": %zu, \"state\": \"%s\"", v->region, states[v->state]);
  member(", ", "reason", v->reason);
  printf(", \"conditions\": [");
  for (size_t k = 0; kiln_tiling_condition_at(t, i, k, &text); k++) {
    if (k) printf(", ");
    json_string(stdout, text);
  }
  printf("], \"boxes\": [");
  for (size_t b = 0; b < v->box_count; b++) {
    if (b) printf(", ");
    json_box(t, i, b);
  }
  printf("]}");
}

static void json_schedule(const kiln_tiling *t) {
  kiln_tile_schedule s = {.struct_size = sizeof s};
  const char *text;
  if (!kiln_tiling_schedule(t, &s)) return;
  printf("\"blocks\": %lld, \"tiles\": %lld, \"per_block\": %lld, \"schedule\": [", (long long)s.blocks,
         (long long)s.tiles, (long long)s.per_block);
  for (size_t i = 0; kiln_tiling_schedule_at(t, i, &text); i++) {
    if (i) printf(", ");
    json_string(stdout, text);
  }
  printf("], ");
}

static void print_json(const kiln_tiling *t, bool schedule) {
  kiln_tiled_value v = {.struct_size = sizeof v};
  printf("{\"dims\": [");
  json_dims(t);
  printf("], ");
  if (schedule) json_schedule(t);
  printf("\"runtime\": [");
  json_runtimes(t);
  printf("], \"regions\": [");
  json_regions(t);
  printf("], \"values\": [");
  for (size_t i = 0; kiln_tiling_value_at(t, i, &v); i++) json_value(t, i, &v);
  printf("]}\n");
}

// --- the verb -------------------------------------------------------------------------------------------------------

enum { MOST_SIZES = 4096 };

// "8,32,?": 0 for ?. Their number, or -1 where the text is something else.
static int read_sizes(const char *text, int64_t *sizes) {
  int n = 0;
  for (const char *p = text;; p++) {
    char word[24];
    size_t length = strcspn(p, ",");
    unsigned long long size = 0;
    if (n == MOST_SIZES || length >= sizeof word) return -1;
    memcpy(word, p, length);
    word[length] = '\0';
    if (strcmp(word, "?") != 0 && !number(word, 1, INT64_MAX, &size)) return -1;
    sizes[n++] = (int64_t)size;
    p += length;
    if (!*p) return n;
  }
}

static void print_choices(const kiln_tile_choices *c, size_t dims) {
  kiln_tile_choice x = {.struct_size = sizeof x};
  for (size_t i = 0; kiln_tile_choice_at(c, i, &x); i++) {
    printf("sizes ");
    for (size_t d = 0; d < dims; d++) printf("%s%lld", d ? "," : "", (long long)x.sizes[d]);
    printf("  cost %lld  blocks %lld  registers %lld  shared %lld\n", (long long)x.cost, (long long)x.blocks,
           (long long)x.registers, (long long)x.shared);
  }
  if (!kiln_tile_choices_all(c)) printf("not all sizes were tried\n");
}

static void print_choices_json(const kiln_tile_choices *c, size_t dims) {
  kiln_tile_choice x = {.struct_size = sizeof x};
  printf("{\"all\": %s, \"choices\": [", kiln_tile_choices_all(c) ? "true" : "false");
  for (size_t i = 0; kiln_tile_choice_at(c, i, &x); i++) {
    printf("%s{\"sizes\": [", i ? ", " : "");
    for (size_t d = 0; d < dims; d++) printf("%s%lld", d ? ", " : "", (long long)x.sizes[d]);
    printf("], \"cost\": %lld, \"blocks\": %lld, \"registers\": %lld, \"shared\": %lld}", (long long)x.cost,
           (long long)x.blocks, (long long)x.registers, (long long)x.shared);
  }
  printf("]}\n");
}

static int read_limits(const args *a, kiln_tile_limits *l) {
  unsigned long long n = 1, shared = 0, registers = 0;
  static const char bytes[] = "expected a whole number of bytes, at least 1";
  int status = read_number(a, O_SEARCH, 1, 1 << 20, "expected a whole number from 1 to 1048576", &n);
  if (!status) status = read_number(a, O_SHARED, 1, INT64_MAX, bytes, &shared);
  if (!status) status = read_number(a, O_REGISTERS, 1, INT64_MAX, bytes, &registers);
  *l = (kiln_tile_limits){.struct_size = sizeof *l, .choices = (size_t)n, .shared = (int64_t)shared};
  l->registers = (int64_t)registers;
  l->divide = a->values[O_DIVIDE];
  return status;
}

static int search(kiln_context *cx, const kiln_module *m, const args *a) {
  kiln_tile_limits l;
  kiln_tile_choices *c = NULL;
  kiln_tiling *t = NULL;
  int status = read_limits(a, &l);
  if (status) return status;
  kiln_status s = kiln_tiling_make(cx, m, NULL, &t);
  if (s == KILN_OK) s = kiln_tile_search(cx, m, &l, &c);
  if (s == KILN_OK)
    (a->values[O_JSON] ? print_choices_json : print_choices)(c, kiln_tiling_dim_count(t));
  else
    status = report(cx, s);
  kiln_tile_choices_destroy(&c);
  kiln_tiling_destroy(&t);
  return status;
}

static int show(kiln_context *cx, const kiln_module *m, const args *a, const int64_t *sizes, int n) {
  kiln_tiling *t = NULL;
  unsigned long long per_block = 0;
  int status = read_number(a, O_PER_BLOCK, 1, INT64_MAX, "expected a whole number of tiles, at least 1", &per_block);
  if (status) return status;
  kiln_tiling_params p = {.struct_size = sizeof p, .sizes = sizes, .size_count = (size_t)n};
  p.per_block = (int64_t)per_block;
  kiln_status s = kiln_tiling_make(cx, m, &p, &t);
  if (s != KILN_OK) return report(cx, s);
  kiln_tile_schedule schedule = {.struct_size = sizeof schedule};
  if (per_block && !kiln_tiling_schedule(t, &schedule)) {
    kiln_tiling_destroy(&t);
    fprintf(stderr, "kiln tile: expected --sizes of all dims of results beside --per-block, and tiles that 64 bits "
                    "count\n");
    return EXIT_BAD_INPUT;
  }
  (a->values[O_JSON] ? print_json : print_tiling)(t, per_block > 0);
  kiln_tiling_destroy(&t);
  return EXIT_DONE;
}

static int run(const args *a) {
  static int64_t sizes[MOST_SIZES];
  int n = a->values[O_SIZES] ? read_sizes(a->values[O_SIZES], sizes) : 0;
  if (n < 0)
    return bad_value(a, O_SIZES, a->values[O_SIZES], "expected whole numbers of at least 1 or ?, with commas between");
  bool searches = a->values[O_SEARCH];
  if (searches && a->values[O_SIZES]) {
    fprintf(stderr, "kiln tile: expected --sizes or --search, found both\n");
    return EXIT_BAD_INPUT;
  }
  if (!searches && (a->values[O_SHARED] || a->values[O_REGISTERS] || a->values[O_DIVIDE])) {
    fprintf(stderr, "kiln tile: expected --search beside its limits\n");
    return EXIT_BAD_INPUT;
  }
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  int status = open_module(cx, a->file, a->values[O_FUSION], &m);
  if (!status) status = searches ? search(cx, m, a) : show(cx, m, a, sizes, n);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_tile = {"tile",
                        "tile FILE.hlo [--sizes 8,32]",
                        "which elements a tile of the results needs",
                        "Tiles ENTRY, or one fusion of it: prints the dims of the space that tiles are taken of, and "
                        "for every array\nwhich of its elements a tile needs, as boxes over the numbers of the tile.",
                        options,
                        run,
                        true};

// Sizes of tiles in the first line ("4,?,32", or nothing; without such a line all are whole), and a map or a module.
// Every text that a tiling has can be asked for, and it has numbers in its first and its last tile. Where there are few
// points all of them are looked at: boxes hold what the map of a value needs, and where they are exact nothing else;
// with sizes as numbers, and with sizes left open where those satisfy the conditions. Sizes that a search finds are
// such that hold.
#include "lower/tiles/enumerate.h"
#include "mutate.h"

#include <kiln/tile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { MOST_DIMS = 48, MOST_INSTRS = 400, MOST_POINTS = 1 << 11, MOST_SEARCHED = 8, MOST_SIZES = 64 };

static volume v;

static void fail(const char *what, const char *text) {
  fprintf(stderr, "%s\n%s\n", what, text);
  abort();
}

// --- sizes ----------------------------------------------------------------------------------------------------------

// Numbers of the first line, one after the other, again from the first where there are too few; 0: open.
typedef struct sizes {
  int64_t p[MOST_SIZES];
  size_t n;
} sizes;

static sizes read_sizes(const char *text, size_t n) {
  sizes s = {{0}, 0};
  for (size_t i = 0; i < n && s.n < MOST_SIZES; i++) {
    if (text[i] == '?') s.p[s.n++] = 0;
    if (text[i] < '0' || text[i] > '9') continue;
    int64_t x = 0;
    for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
      if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, text[i] - '0', &x)) x = INT64_MAX / 16;
    s.p[s.n++] = x;
  }
  return s;
}

// The length of a first line of sizes; 0 where it is none.
static size_t sizes_line(const char *text, size_t n) {
  size_t i = 0;
  while (i < n && ((text[i] >= '0' && text[i] <= '9') || text[i] == '?' || text[i] == ',' || text[i] == ' ')) i++;
  return i < n && text[i] == '\n' ? i + 1 : 0;
}

// Of dim i, as a number.
static int64_t size_at(const sizes *s, size_t i, int64_t extent) {
  int64_t x = s->n ? s->p[i % s->n] : 0, most = extent > 1 ? extent : 1;
  return x <= 0 || x > most ? most : x;
}

// --- enumeration ----------------------------------------------------------------------------------------------------

static void report(kl_affs *p, const kl_map *m, const kl_map_tile *t, const finding *f, const char *form) {
  kl_sb b;
  kl_sb_init(&b, kl_affs_context(p));
  kl_map_print(p, &b, m, KL_MAP_LINE);
  kl_sb_puts(&b, "\n");
  tile_describe(p, &b, t);
  kl_sbf(&b, "%s: %lld missing, %lld too many; tile", form, (long long)f->missing, (long long)f->extra);
  for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM]; i++) kl_sbf(&b, " %lld", (long long)f->tile[i]);
  kl_sb_puts(&b, ", runtime");
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) kl_sbf(&b, " %lld", (long long)f->runtime[i]);
  fail("a tile is wrong", b.p);
}

// Where an index may have no value, more may be needed than is said, and less: nothing to compare with.
static bool is_partial(const kl_map *m) {
  bool any = false;
  for (uint32_t i = 0; i < m->nresults; i++) any |= m->results[i]->partial;
  for (uint32_t i = 0; i < m->nconstraints; i++) any |= m->constraints[i].e->partial;
  return any;
}

static void compare(kl_affs *p, const kl_map *m, const kl_map_tile *t, const enumeration *e, const char *form) {
  finding f;
  if (is_partial(m) || !volume_open(&v, p, m)) return;
  if (enumerate_tiles(&v, t, e, &f) == ENUMERATED_WRONG) report(p, m, t, &f, form);
}

// --- maps -----------------------------------------------------------------------------------------------------------

static void check_map(kl_affs *p, const kl_map *m, const sizes *from) {
  int64_t extents[MOST_DIMS], at[MOST_DIMS], shape[ENUMERATE_MOST_RESULTS];
  const kl_aff *open[MOST_DIMS], *fixed[MOST_DIMS];
  kl_interval in[ENUMERATE_MOST_RESULTS];
  uint32_t n = m->nvars[KL_AFF_DIM];
  if (m->state != KL_MAP_DEFINED || n > MOST_DIMS || m->nresults > ENUMERATE_MOST_RESULTS) return;
  for (uint32_t i = 0; i < n; i++) {
    int64_t hi = m->vars[KL_AFF_DIM][i].in.hi;
    if (hi == INT64_MAX) return;
    extents[i] = hi >= 0 ? hi + 1 : 1;
    at[i] = size_at(from, i, extents[i]);
    open[i] = kl_aff_range(p, i), fixed[i] = kl_aff_const(p, at[i]);
  }
  bool within = kl_map_result_ranges(p, m, in); // an array that the results are indices of
  for (uint32_t i = 0; i < m->nresults; i++) {
    within = within && in[i].lo >= 0 && in[i].hi < INT64_MAX / 4;
    shape[i] = within ? in[i].hi + 1 : 0;
  }
  for (int form = 0; form < (within ? 4 : 2); form++) {
    kl_map_tile t;
    kl_tile_of_map(p, m, &(kl_tile_grid){n, extents, form % 2 ? fixed : open}, form / 2 ? shape : NULL, &t);
    if (t.state != KL_TILE_EXACT && !t.why[0]) fail("neither exact nor a reason", "");
    if (!kl_tile_clauses_hold(p, &t, at, n)) continue;
    compare(p, m, &t, &(enumeration){extents, at, NULL, MOST_POINTS},
            form % 2 ? "sizes are numbers" : "sizes are open");
  }
}

// --- modules --------------------------------------------------------------------------------------------------------

// Every text that there is.
static size_t read_all(const kiln_tiling *t) {
  kiln_tiled_value value = {.struct_size = sizeof value};
  kiln_tile_text x = {.struct_size = sizeof x};
  kiln_tiling_dim dim = {.struct_size = sizeof dim};
  kiln_tiling_runtime rt = {.struct_size = sizeof rt};
  kiln_tiling_region region = {.struct_size = sizeof region};
  const char *text;
  size_t length = 0, i, k;
  for (i = 0; kiln_tiling_dim_at(t, i, &dim); i++) length += strlen(dim.instruction);
  if (i != kiln_tiling_dim_count(t) || i < kiln_tiling_parallel_count(t)) fail("dims", "");
  for (i = 0; kiln_tiling_runtime_at(t, i, &rt); i++) length += strlen(rt.instruction) + strlen(rt.index);
  if (i != kiln_tiling_runtime_count(t)) fail("runtime values", "");
  for (i = 0; kiln_tiling_region_at(t, i, &region); i++)
    if (i ? region.parent >= i : region.kind != KILN_REGION_TOP) fail("regions are no tree", region.instruction);
  for (i = 0; kiln_tiling_value_at(t, i, &value); i++) {
    if (value.region >= kiln_tiling_region_count(t)) fail("a region that is not there", value.instruction);
    if ((value.state == KILN_TILE_EXACT) != !value.reason[0]) fail("neither exact nor a reason", value.instruction);
    for (k = 0; kiln_tiling_condition_at(t, i, k, &text); k++) length += strlen(text);
    if (k != value.condition_count) fail("conditions", value.instruction);
    for (size_t b = 0; b < value.box_count; b++) {
      for (k = 0; kiln_tiling_box_at(t, i, b, k, &x); k++)
        length += strlen(x.offset) + strlen(x.size) + strlen(x.stride) + strlen(x.lower) + strlen(x.upper);
      if (k != value.rank) fail("dimensions of a box", value.instruction);
      for (k = 0; kiln_tiling_guard_at(t, i, b, k, &text); k++) length += strlen(text);
    }
  }
  if (i != kiln_tiling_value_count(t)) fail("values", "");
  return length;
}

// Its first and its last tile, in numbers.
static void evaluate(const kiln_tiling *t, const int64_t *at) {
  int64_t tiles[2][MOST_DIMS], runtime[MOST_SIZES] = {0};
  kiln_tiling_dim dim = {.struct_size = sizeof dim};
  kiln_tiling_runtime rt = {.struct_size = sizeof rt};
  kiln_tiled_value value = {.struct_size = sizeof value};
  kiln_tile_range ranges[KILN_MAX_RANK];
  bool any;
  if (kiln_tiling_runtime_count(t) > MOST_SIZES) return;
  for (size_t i = 0; kiln_tiling_dim_at(t, i, &dim); i++)
    tiles[0][i] = 0, tiles[1][i] = dim.extent > 0 ? (dim.extent - 1) / at[i] : 0;
  for (size_t i = 0; kiln_tiling_runtime_at(t, i, &rt); i++) runtime[i] = rt.lo;
  for (size_t i = 0; kiln_tiling_value_at(t, i, &value); i++)
    for (size_t b = 0; b < value.box_count; b++)
      for (int k = 0; k < 2; k++) kiln_tiling_evaluate(t, i, b, tiles[k], at, runtime, &any, ranges);
}

// What each value's boxes hold in tiles of these sizes, against its map.
static void compare_values(kl_affs *p, const kl_tiling *t, const int64_t *at, const char *form) {
  for (uint32_t i = 0; i < t->n; i++) {
    const kl_tiled *x = &t->values[i];
    int64_t extents[MOST_DIMS], own[MOST_DIMS];
    if (x->map->state != KL_MAP_DEFINED || x->map->nvars[KL_AFF_RT]) continue; // its variables have other numbers here
    for (uint32_t d = 0; d < x->ndims; d++) {
      extents[d] = t->dims[x->dims[d]].extent > 1 ? t->dims[x->dims[d]].extent : 1;
      own[d] = at[x->dims[d]];
    }
    if (!kl_tile_clauses_hold(p, &x->tile, at, t->ndims)) continue;
    compare(p, x->map, &x->tile, &(enumeration){extents, own, x->dims, MOST_POINTS}, form);
  }
}

static void check_against_maps(const kiln_module *m, const int64_t *at, uint32_t ndims) {
  kl_arena arena;
  kl_tiling t;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  for (int open = 0; open < 2; open++) {
    kl_tiling_make(p, m, &m->comp[m->entry], open ? NULL : at, open ? 0 : ndims, &t);
    compare_values(p, &t, at, open ? "sizes are open" : "sizes are numbers");
  }
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
}

// Whatever sizes are found, their tilings have one box each.
static void check_search(kiln_context *cx, const kiln_module *m, size_t ndims) {
  kiln_tile_limits limits = {.struct_size = sizeof limits, .choices = 2};
  kiln_tile_choice c = {.struct_size = sizeof c};
  kiln_tiled_value value = {.struct_size = sizeof value};
  kiln_tile_choices *found;
  if (kiln_tile_search(cx, m, &limits, &found) != KILN_OK) fail("no search", "");
  for (size_t i = 0; kiln_tile_choice_at(found, i, &c); i++) {
    kiln_tiling_params how = {.struct_size = sizeof how, .sizes = c.sizes, .size_count = ndims};
    kiln_tiling *t;
    if (kiln_tiling_make(cx, m, &how, &t) != KILN_OK) fail("sizes that were found are none", "");
    for (size_t k = 0; kiln_tiling_value_at(t, k, &value); k++)
      if (value.box_count > 1) fail("sizes that were found need several boxes", value.instruction);
    kiln_tiling_destroy(&t);
  }
  kiln_tile_choices_destroy(&found);
}

static void check_module(kiln_context *cx, const kiln_module *m, const sizes *from) {
  kiln_tiling *open, *t;
  kiln_tiling_dim dim = {.struct_size = sizeof dim};
  int64_t at[MOST_DIMS], given[MOST_DIMS];
  if (kiln_tiling_make(cx, m, NULL, &open) != KILN_OK) fail("no tiling", "");
  size_t n = kiln_tiling_dim_count(open);
  read_all(open);
  if (n <= MOST_DIMS) {
    for (size_t i = 0; kiln_tiling_dim_at(open, i, &dim); i++) {
      at[i] = size_at(from, i, dim.extent);
      given[i] = from->n ? from->p[i % from->n] : 0;
    }
    evaluate(open, at);
    kiln_tiling_params how = {.struct_size = sizeof how, .sizes = given, .size_count = n};
    if (kiln_tiling_make(cx, m, &how, &t) != KILN_OK) fail("no tiling of these sizes", "");
    read_all(t);
    evaluate(t, at);
    kiln_tiling_destroy(&t);
    check_against_maps(m, at, (uint32_t)n);
    if (n <= 3 && kiln_tiling_value_count(open) <= MOST_SEARCHED) check_search(cx, m, n);
  }
  kiln_tiling_destroy(&open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  size_t first = sizes_line(text, size);
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_affs *p = kl_affs_create(cx, &arena);
  sizes from = read_sizes(text, first);
  kl_source src = {"input", {text + first, size - first}};
  const kl_map *map;
  kiln_module *m = NULL;
  if (size > first && text[first] == '(') {
    if (kl_map_parse(p, &src, &map) == KILN_OK) check_map(p, kl_map_simplify(p, map, KL_MAP_KEEP_POINTS), &from);
  } else if (kiln_module_parse(cx, "input", text + first, size - first, &m) == KILN_OK &&
             kiln_module_instruction_count(m) <= MOST_INSTRS)
    check_module(cx, m, &from);
  kiln_module_destroy(&m);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
  return 0;
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 4 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}

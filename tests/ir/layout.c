// Physical layouts against their definition: arrays of element numbers that are padded, reshaped and transposed.
#include "ir/index/layout.h"
#include "ir/shape.h"
#include "ir/text/text.h"
#include "support/context.h"
#include "support/random.h"

#include <stdio.h>

static kiln_module *module;
static kl_physical physical;

static void make(void) {
  make_context();
  module = kl_module_new(cx);
}
static void drop(void) {
  kiln_module_destroy(&module);
  drop_context();
}

static const kl_shape *shape_of(const char *text) {
  const kl_shape *s = NULL;
  EXPECT(kl_read_shape(cx, module, "shape", text, &s) == KILN_OK, "%s\n%s", text, last_finding());
  return s;
}

static const kl_shape *measured(const char *text) {
  const kl_shape *s = shape_of(text);
  kl_physical_error e = kl_physical_of(s, &physical);
  EXPECT(!e, "%s: %s", text, kl_physical_error_text(e));
  return s;
}

// --- the definition -----------------------------------------------------------------------------------------------

enum { PADDING = -1, MOST_CELLS = 1 << 16, MOST_DIMS = 32 };

// A row-major array of element numbers.
typedef struct cells {
  int rank;
  int64_t dims[MOST_DIMS];
  int64_t *p;
} cells;

static int64_t count_of(const cells *c) {
  int64_t n = 1;
  for (int d = 0; d < c->rank; d++) n *= c->dims[d];
  return n;
}

static int64_t linear_of(const cells *c, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < c->rank; d++) at = at * c->dims[d] + index[d];
  return at;
}

// The next index of an array of these dims in row-major order; false after the last.
static bool next_index(int rank, const int64_t *dims, int64_t *index) {
  for (int d = rank; d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

static void take(cells *c, const cells *from) {
  free(c->p);
  *c = *from;
}

static cells new_cells(int rank, const int64_t *dims) {
  cells c = {.rank = rank};
  memcpy(c.dims, dims, (size_t)rank * sizeof *dims);
  c.p = malloc((size_t)(count_of(&c) + 1) * sizeof *c.p);
  for (int64_t i = 0; i < count_of(&c); i++) c.p[i] = PADDING;
  return c;
}

// Result dimension d is the operand's dimension perm[d].
static void transpose(cells *c, const int *perm) {
  int64_t dims[MOST_DIMS], at[MOST_DIMS] = {0}, from[MOST_DIMS];
  for (int d = 0; d < c->rank; d++) dims[d] = c->dims[perm[d]];
  cells r = new_cells(c->rank, dims);
  for (bool more = count_of(&r) > 0; more; more = next_index(r.rank, r.dims, at)) {
    for (int d = 0; d < c->rank; d++) from[perm[d]] = at[d];
    r.p[linear_of(&r, at)] = c->p[linear_of(c, from)];
  }
  take(c, &r);
}

static void pad(cells *c, const int64_t *dims) {
  int64_t at[MOST_DIMS] = {0};
  cells r = new_cells(c->rank, dims);
  for (bool more = count_of(c) > 0; more; more = next_index(c->rank, c->dims, at))
    r.p[linear_of(&r, at)] = c->p[linear_of(c, at)];
  take(c, &r);
}

static void reshape(cells *c, int rank, const int64_t *dims) {
  int64_t before = count_of(c);
  c->rank = rank;
  memcpy(c->dims, dims, (size_t)rank * sizeof *dims);
  EXPECT(count_of(c) == before, "the model reshapes %ld elements to %ld", (long)before, (long)count_of(c));
}

static void reshape_for_tile(cells *c, const kl_tile *t, int64_t *tile, int *ntile) {
  int64_t dims[MOST_DIMS];
  int rank = 0, ones = (int)t->n > c->rank ? (int)t->n - c->rank : 0, first = c->rank + ones - (int)t->n;
  int64_t pending = 1;
  *ntile = 0;
  for (int d = 0; d < c->rank + ones; d++) {
    int64_t extent = d < ones ? 1 : c->dims[d - ones];
    bool joins = d >= first && t->dims[d - first] == KL_TILE_COMBINE;
    pending *= extent;
    if (joins) continue;
    if (d >= first) tile[(*ntile)++] = t->dims[d - first];
    dims[rank++] = pending;
    pending = 1;
  }
  reshape(c, rank, dims);
}

static void apply(cells *c, const kl_tile *t) {
  int64_t tile[MOST_DIMS], dims[MOST_DIMS];
  int n, perm[MOST_DIMS];
  reshape_for_tile(c, t, tile, &n);
  int first = c->rank - n;
  for (int d = 0; d < c->rank; d++)
    dims[d] = d < first ? c->dims[d] : (c->dims[d] + tile[d - first] - 1) / tile[d - first] * tile[d - first];
  pad(c, dims);
  for (int i = 0; i < n; i++) {
    dims[first + 2 * i] = c->dims[first + i] / tile[i];
    dims[first + 2 * i + 1] = tile[i];
    perm[first + i] = first + 2 * i;
    perm[first + n + i] = first + 2 * i + 1;
  }
  for (int d = 0; d < first; d++) perm[d] = d;
  reshape(c, first + 2 * n, dims);
  transpose(c, perm);
}

// What the positions hold: numbers of elements in row-major order, or PADDING.
static cells model_of(const kl_shape *s) {
  cells c = new_cells((int)s->rank, s->dims);
  int perm[MOST_DIMS];
  for (int64_t i = 0; i < count_of(&c); i++) c.p[i] = i;
  for (uint32_t d = 0; d < s->rank; d++) perm[d] = (int)kl_shape_minor_to_major(s, s->rank - 1 - d);
  transpose(&c, perm);
  for (uint32_t i = 0; i < s->layout.ntiles; i++) apply(&c, &s->layout.tiles[i]);
  int64_t n = count_of(&c), tail = s->layout.tail_padding;
  reshape(&c, 1, &n);
  if (n % tail) pad(&c, (int64_t[]){(n / tail + 1) * tail});
  return c;
}

// --- random shapes ------------------------------------------------------------------------------------------------

static int below(int n) {
  return (int)((random_bits() >> 20) % (unsigned)n);
}

static void put_order(char **at, int rank) {
  int order[8];
  for (int i = 0; i < rank; i++) {
    int k = below(i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  for (int i = 0; i < rank; i++) *at += sprintf(*at, "%s%d", i ? "," : "", order[i]);
}

static void put_tiles(char **at, int tiles, int most) {
  *at += sprintf(*at, "T");
  for (int k = 0; k < tiles; k++) {
    int n = 1 + below(most);
    *at += sprintf(*at, "(");
    for (int i = 0; i < n; i++)
      *at +=
          i + 1 < n && below(4) == 0 ? sprintf(*at, "*,") : sprintf(*at, "%d%s", 1 + below(4), i + 1 < n ? "," : ")");
  }
}

static void put_layout(char **at, int rank, int tiles) {
  *at += sprintf(*at, "{");
  put_order(at, rank);
  *at += sprintf(*at, ":");
  if (tiles) put_tiles(at, tiles, rank + 2);
  if (below(4) == 0) *at += sprintf(*at, "L(%d)", 1 + below(7));
  *at += sprintf(*at, "S(1)}");
}

static void random_shape(char *at, const char *type, int rank, int tiles) {
  at += sprintf(at, "%s[", type);
  for (int d = 0; d < rank; d++) {
    bool empty = below(40) == 0, dynamic = below(20) == 0;
    at += sprintf(at, "%s%s%d", d ? "," : "", dynamic ? "<=" : "", empty ? 0 : 1 + below(rank < 4 ? 7 : 4));
  }
  at += sprintf(at, "]");
  put_layout(&at, rank, tiles);
}

// --- one layout against its model ---------------------------------------------------------------------------------

static void index_of(const kl_shape *s, int64_t element, int64_t *index) {
  for (uint32_t d = s->rank; d-- > 0; element /= s->dims[d]) index[d] = element % s->dims[d];
}

static int64_t number_of(const kl_shape *s, const int64_t *index) {
  int64_t at = 0;
  for (uint32_t d = 0; d < s->rank; d++) at = at * s->dims[d] + index[d];
  return at;
}

static void check_positions(const char *text, const kl_shape *s, const kl_physical *p, const cells *m) {
  int64_t padding = -1, index[KILN_MAX_RANK], n, none[KILN_MAX_RANK];
  for (int64_t i = 0; i < p->positions; i++) {
    bool element = kl_physical_index(p, i, index);
    EXPECT(element == (m->p[i] != PADDING), "%s: position %ld holds %ld", text, (long)i, (long)m->p[i]);
    EXPECT(!element || number_of(s, index) == m->p[i], "%s: position %ld holds %ld", text, (long)i, (long)m->p[i]);
    EXPECT(kl_physical_stretch(p, i, &n) == element && n >= 1 && i + n <= p->positions, "%s: stretch at %ld", text,
           (long)i);
    for (int64_t k = i; k < i + n; k++)
      EXPECT((m->p[k] != PADDING) == element, "%s: %ld alike from %ld, not %ld", text, (long)n, (long)i, (long)k);
    if (element) continue;
    EXPECT(kl_physical_next_padding(p, padding + 1) == i, "%s: padding behind %ld", text, (long)padding);
    padding = i;
  }
  EXPECT(kl_physical_next_padding(p, padding + 1) == -1, "%s: padding behind %ld", text, (long)padding);
  EXPECT(!kl_physical_index(p, -1, none) && !kl_physical_index(p, p->positions, none), "%s: outside", text);
}

static void check_runs(const char *text, const kl_shape *s, const kl_physical *p, const int64_t *place) {
  int64_t index[KILN_MAX_RANK], next[KILN_MAX_RANK], n, step;
  for (int64_t i = 0; i < s->count; i++) {
    index_of(s, i, index);
    EXPECT(kl_physical_position(p, index) == place[i], "%s: element %ld at %ld", text, (long)i, (long)place[i]);
    for (uint32_t d = 0; d < s->rank; d++) {
      EXPECT(kl_physical_run(p, index, d, &n, &step) == place[i], "%s: element %ld", text, (long)i);
      EXPECT(n >= 1 && index[d] + n <= s->dims[d], "%s: a run of %ld", text, (long)n);
      memcpy(next, index, sizeof next);
      for (int64_t k = 0; k < n; k++, next[d]++)
        EXPECT(place[number_of(s, next)] == place[i] + k * step, "%s: element %ld, dim %u, run %ld of %ld", text,
               (long)i, d, (long)k, (long)n);
    }
  }
}

// Every value as the digit that its form says, and the position as the sum of digits.
static void check_forms(const char *text, const kl_shape *s, const kl_physical *p, const int64_t *place) {
  kl_form forms[KL_MAX_VALUES];
  int64_t at[KL_MAX_VALUES];
  kl_physical_forms(p, NULL, forms);
  for (int64_t i = 0; i < s->count; i++) {
    index_of(s, i, at);
    int64_t position = 0;
    for (uint32_t k = 0; k < p->nvalues; k++) {
      const kl_value *v = &p->values[k];
      if (v->kind == KL_VALUE_UNIT) at[k] = 0;
      if (v->kind == KL_VALUE_COMBINED) at[k] = at[v->a] * v->by + at[v->b];
      if (v->kind == KL_VALUE_QUOTIENT) at[k] = at[v->a] / v->by;
      if (v->kind == KL_VALUE_REMAINDER) at[k] = at[v->a] % v->by;
      int64_t want = forms[k].base == KL_FORM_ZERO ? 0 : at[forms[k].base] / forms[k].div;
      EXPECT((forms[k].mod ? want % forms[k].mod : want) == at[k] && at[k] < v->bound, "%s: value %u", text, k);
    }
    for (uint32_t k = 0; k < p->ndigits; k++) position += at[p->digits[k].value] * p->digits[k].stride;
    EXPECT(position == place[i], "%s: element %ld at %ld", text, (long)i, (long)place[i]);
  }
}

static int64_t *places_of(const kl_shape *s, const cells *m, int64_t positions) {
  int64_t *place = malloc((size_t)(s->count + 1) * sizeof *place), found = 0;
  for (int64_t i = 0; i < positions; i++)
    if (m->p[i] != PADDING) place[m->p[i]] = i, found++;
  EXPECT(found == s->count, "the model lost elements");
  return place;
}

static void check_layout(const char *text) {
  const kl_shape *s = measured(text);
  const kl_physical *p = &physical;
  cells m = model_of(s);
  EXPECT(p->positions == count_of(&m) && p->elements == s->count, "%s: %ld positions, not %ld", text,
         (long)p->positions, (long)count_of(&m));
  EXPECT(p->bytes == (p->positions * p->bits + 7) / 8 && p->bytes == kl_shape_bytes(s), "%s: bytes", text);
  int64_t *place = places_of(s, &m, p->positions);
  check_positions(text, s, p, &m);
  check_runs(text, s, p, place);
  check_forms(text, s, p, place);
  free(place);
  free(m.p);
}

START_TEST(random_layouts_are_what_the_definition_says) {
  char text[512];
  for (int i = 0; i < 1500; i++) {
    random_shape(text, "f32", _i / 4, _i % 4);
    check_layout(text);
  }
}
END_TEST

// All dims and tiles of up to 4 over ranks 0 to 2, one tile and two.
START_TEST(all_small_layouts_are_what_the_definition_says) {
  char text[64];
  for (int n = 0; n < 5 * 5 * 4 * 4 * 6; n++) {
    int a = n % 5, b = n / 5 % 5, t = 1 + n / 25 % 4, u = 1 + n / 100 % 4;
    static const char *const second[] = {"", "(2)", "(2,1)", "(1,3)", "(*,2)", "(2,3,2)"};
    sprintf(text, "f32[%d,%d]{1,0:T(%d,%d)%s}", a, b, t, u, second[n / 400]);
    check_layout(text);
    if (a) continue;
    sprintf(text, "f32[%d]{0:T(%d,%d)%s}", b, t, u, second[n / 400]);
    check_layout(text);
    sprintf(text, "f32[]{:T(%d,%d)%s}", t, u, second[n / 400]);
    check_layout(text);
  }
}
END_TEST

// --- known places and sizes ---------------------------------------------------------------------------------------

static const struct {
  const char *shape;
  int64_t index[5], position, positions, bytes;
} known[] = {
    {"f32[3,5]{1,0:T(2,2)}", {2, 3}, 17, 24, 96},
    {"f32[3,5]", {2, 3}, 13, 15, 60},
    {"f32[3,5]{0,1}", {2, 3}, 11, 15, 60},
    {"f32[4,8]{1,0:T(2,4)(2,1)}", {1, 0}, 1, 32, 128}, // pairs of rows
    {"f32[4,8]{1,0:T(2,4)(2,1)}", {0, 1}, 2, 32, 128},
    {"f32[4,8]{1,0:T(2,4)(2,1)}", {1, 3}, 7, 32, 128},
    {"f32[4,8]{1,0:T(2,4)(2,1)}", {0, 4}, 8, 32, 128},
    {"f32[4,8]{1,0:T(2,4)(2,1)}", {3, 7}, 31, 32, 128},
    {"f32[8,8]{1,0:T(2,4)(2,1,1,1)}", {6, 5}, 51, 64, 256}, // a tile over numbers of tiles
    {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {1, 6, 7, 10, 9}, 12430, 12432, 49728},
    {"f32[112,110]{1,0:T(2,3)}", {111, 109}, 12430, 12432, 49728},
    // the common formats: none, 8x128, small tiles, 16 bits, 8 bits, 1 bit
    {"f32[100,300]{1,0}", {99, 299}, 29999, 30000, 120000},
    {"f32[100,300]{1,0:T(8,128)}", {99, 299}, 39339, 39936, 159744},
    {"f32[2,300]{1,0:T(2,128)}", {1, 299}, 683, 768, 3072},
    {"f32[4,300]{1,0:T(4,128)}", {3, 299}, 1451, 1536, 6144},
    {"bf16[100,300]{1,0:T(8,128)(2,1)}", {99, 299}, 39255, 39936, 79872},
    {"s8[100,300]{1,0:T(8,128)(4,1)}", {99, 299}, 39087, 39936, 39936},
    {"pred[100,300]{1,0:T(32,128)(32,1)E(1)}", {99, 299}, 46435, 49152, 6144},
    {"pred[100,300]{1,0:T(32,128)(32,1)}", {99, 299}, 46435, 49152, 49152},
    {"bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}", {7, 0, 1279, 16383}, 167772159, 167772160, 335544320},
    {"bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}", {31, 31, 4095}, 4194303, 4194304, 8388608},
    {"s32[16384]{0:T(1024)S(1)}", {16383}, 16383, 16384, 65536},
    {"s32[5]{0:T(128)}", {4}, 4, 128, 512},
    {"f32[5]{0:T(8,128)}", {4}, 4, 1024, 4096}, // dimensions that are missing have extent 1
    {"f32[]{:T(128)}", {0}, 0, 128, 512},
    {"u32[]{:S(2)}", {0}, 0, 1, 4},
    // bits of elements, and what goes in front and behind
    {"s4[16]{0:E(4)}", {15}, 15, 16, 8},
    {"s4[16]", {15}, 15, 16, 8},
    {"s4[5]{0:E(8)}", {4}, 4, 5, 5},
    {"s4[5]{0:T(8,128)(2,1)E(4)S(1)}", {4}, 8, 1024, 512},
    {"u2[3]{0:L(16)}", {2}, 2, 16, 4},
    {"s8[3]{0:E(24)}", {2}, 2, 3, 9},
    {"pred[9]{0:E(1)}", {8}, 8, 9, 2},
    {"f32[3,5]{1,0:T(2,2)L(100)}", {2, 3}, 17, 100, 400},
    {"f32[5]{0:M(64)}", {4}, 4, 5, 84},
    {"f32[<=3,5]{1,0:T(2,2)}", {2, 3}, 17, 24, 96},
    // later tiles that do not divide pad as well, though the first one's padding is all that some count
    {"f32[3]{0:T(3)(2)}", {2}, 2, 4, 16},
    {"f32[6,5]{1,0:T(3,5)(2,2)}", {5, 4}, 44, 48, 192},
    {"f32[0,5]{1,0:T(8,128)}", {0}, 0, 0, 0},
    {"f32[5,0]{1,0:T(8,128)L(7)M(3)}", {0}, 0, 0, 3},
    {"f32[0,5]{1,0:T(*,8)}", {0}, 0, 0, 0},
    // beyond 32 bits
    {"s8[65537,65537]{1,0:T(8,128)}", {65536, 65536}, 4303880192, 4303881216, 4303881216},
    {"s4[1152921504606846975]{0:T(2)}",
     {1152921504606846974},
     1152921504606846974,
     1152921504606846976,
     576460752303423488},
};

START_TEST(known_places_and_sizes) {
  const kl_shape *s = measured(known[_i].shape);
  EXPECT(physical.positions == known[_i].positions && physical.bytes == known[_i].bytes, "%s: %ld positions, %ld bytes",
         known[_i].shape, (long)physical.positions, (long)physical.bytes);
  if (!s->count) return;
  int64_t at = kl_physical_position(&physical, known[_i].index), back[KILN_MAX_RANK];
  EXPECT(at == known[_i].position, "%s: %ld", known[_i].shape, (long)at);
  EXPECT(kl_physical_index(&physical, at, back) && memcmp(back, known[_i].index, s->rank * sizeof *back) == 0,
         "%s: not back", known[_i].shape);
}
END_TEST

// Merged dimensions are the ones written out.
START_TEST(combined_dimensions_are_one) {
  static const int64_t wide[] = {112, 110};
  kl_physical *plain = malloc(sizeof *plain);
  measured("f32[112,110]{1,0:T(2,3)}");
  *plain = physical;
  const kl_shape *s = measured("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}");
  for (int64_t i = 0; i < s->count; i++) {
    int64_t index[5], merged[2] = {i / wide[1], i % wide[1]};
    index_of(s, i, index);
    EXPECT(kl_physical_position(&physical, index) == kl_physical_position(plain, merged), "element %ld", (long)i);
  }
  free(plain);
}
END_TEST

static const struct {
  const char *shape;
  kl_physical_error error;
} without_places[] = {
    {"(f32[2], f32[3])", KL_PHYSICAL_NO_ARRAY},
    {"token[]", KL_PHYSICAL_NO_ARRAY},
    {"f32[2,?]", KL_PHYSICAL_UNKNOWN},
    {"f32[?]{0:T(128)}", KL_PHYSICAL_UNKNOWN},
    {"f32[8]{0:D(C)}", KL_PHYSICAL_SPARSE},
    {"f32[8]{0:SC(0:4)}", KL_PHYSICAL_SPLIT},
    {"f32[8]{0:T(8)P(f32[9])}", KL_PHYSICAL_OTHER},
    {"f32[8]{0:T(8)E(31)}", KL_PHYSICAL_BITS},
    {"s4[8]{0:E(3)}", KL_PHYSICAL_BITS},
    {"f8e4m3fn[8]{0:E(7)}", KL_PHYSICAL_BITS},
    {"c128[8]{0:E(64)}", KL_PHYSICAL_BITS},
};

START_TEST(shapes_without_places_say_why) {
  const kl_shape *s = shape_of(without_places[_i].shape);
  EXPECT(kl_physical_of(s, &physical) == without_places[_i].error, "%s", without_places[_i].shape);
  EXPECT(*kl_physical_error_text(without_places[_i].error), "no text");
  if (!s->dynamic) EXPECT(kl_shape_bytes(s) == -1, "%s", without_places[_i].shape);
}
END_TEST

// Tiles that no parser lets through.
START_TEST(bad_tiles_are_refused) {
  static const int64_t many[KL_MAX_TILE_SIZES + 1] = {1};
  const kl_tile tiles[] = {{0, many},
                           {1, (int64_t[]){0}},
                           {2, (int64_t[]){2, KL_TILE_COMBINE}},
                           {1, (int64_t[]){-5}},
                           {KL_MAX_TILE_SIZES + 1, many}};
  static const int64_t order[] = {0}, dims[] = {4};
  for (size_t i = 0; i < KL_COUNT(tiles); i++) {
    kl_shape s = {.dtype = KILN_F32, .rank = 1, .dims = dims, .count = 4};
    s.layout = (kl_layout){.present = true, .rank = 1, .minor_to_major = order, .ntiles = 1, .tiles = &tiles[i]};
    ck_assert_int_eq(kl_physical_of(&s, &physical), i == 4 ? KL_PHYSICAL_TILES : KL_PHYSICAL_TILE);
  }
}
END_TEST

// As many dimensions and tile sizes as there may be.
START_TEST(the_largest_layout) {
  char text[2048], *at = text;
  at += sprintf(at, "f32[");
  for (int d = 0; d < KILN_MAX_RANK; d++) at += sprintf(at, "%s%d", d ? "," : "", d < 4 ? 3 : 1);
  at += sprintf(at, "]{");
  for (int d = 0; d < KILN_MAX_RANK; d++) at += sprintf(at, "%s%d", d ? "," : "", d);
  at += sprintf(at, ":T(");
  for (int i = 0; i < KL_MAX_TILE_SIZES - 1; i++) at += sprintf(at, "%s,", i % 3 ? "1" : "*");
  at += sprintf(at, "2)}");
  const kl_shape *s = measured(text);
  for (int64_t i = 0; i < s->count; i++) {
    int64_t index[KILN_MAX_RANK], back[KILN_MAX_RANK];
    index_of(s, i, index);
    EXPECT(kl_physical_index(&physical, kl_physical_position(&physical, index), back) &&
               memcmp(index, back, sizeof index) == 0,
           "element %ld", (long)i);
  }
}
END_TEST

// --- arrays through layouts ---------------------------------------------------------------------------------------

// Bit k of a buffer.
static unsigned bit_of(const unsigned char *buffer, int64_t k) {
  return buffer[k / 8] >> (k % 8) & 1;
}

static void check_buffer(const char *text, const kl_shape *s, const cells *m, const unsigned char *data,
                         const unsigned char *buffer) {
  unsigned bytes = kl_info(s->dtype)->bytes, bits = kl_info(s->dtype)->bits;
  int64_t width = physical.bits;
  unsigned held = (int64_t)bits < width ? bits : (unsigned)width;
  for (int64_t k = 0; k < physical.prefix; k++) EXPECT(buffer[k] == 0, "%s: prefix", text);
  for (int64_t i = 0; i < physical.positions; i++)
    for (unsigned b = 0; b < width; b++) {
      unsigned want = m->p[i] == PADDING || b >= held ? 0 : bit_of(data + m->p[i] * bytes, b);
      EXPECT(bit_of(buffer + physical.prefix, i * width + b) == want, "%s: bit %u of position %ld", text, b, (long)i);
    }
}

static void check_packing(const char *text) {
  const kl_shape *s = measured(text);
  cells m = model_of(s);
  size_t held = (size_t)s->count * kl_info(s->dtype)->bytes, size = (size_t)physical.bytes;
  unsigned char *data = malloc(held + 1), *back = malloc(held + 1), *buffer = malloc(size + 1);
  unsigned bits = kl_info(s->dtype)->bits;
  for (size_t i = 0; i < held; i++)
    data[i] = (unsigned char)(random_bits() & (s->dtype == KILN_PRED ? 1 : bits < 8 ? kl_int_mask(s->dtype) : 0xff));
  memset(buffer, 0xcc, size + 1);
  memset(back, 0xcc, held + 1);
  kl_array_pack(&(kl_array){s, data}, buffer);
  if (s->count) check_buffer(text, s, &m, data, buffer);
  // What padding holds does not matter.
  for (int64_t i = 0; i < physical.positions && physical.bits % 8 == 0; i++)
    if (m.p[i] == PADDING) memset(buffer + kl_physical_bit(&physical, i).byte, 0xee, (size_t)physical.bits / 8);
  kl_array_unpack(&(kl_array){s, back}, buffer);
  EXPECT(held == 0 || memcmp(back, data, held) == 0, "%s: unpacked", text);
  EXPECT(buffer[size] == 0xcc && back[held] == 0xcc, "%s: too far", text);
  free(data);
  free(back);
  free(buffer);
  free(m.p);
}

static void insert_fields(char *text, const char *fields) {
  char *at = strstr(text, "S(1)}");
  sprintf(at, "%sS(1)%s}", fields, below(4) ? "" : "M(5)");
}

START_TEST(arrays_of_every_type_go_in_and_out) {
  for (kl_dtype t = KILN_PRED; t <= KILN_C128; t++)
    for (int i = 0; i < 120; i++) {
      char text[512], field[32] = "";
      random_shape(text, kl_info(t)->name, i % 5, i / 5 % 4);
      unsigned least = t == KILN_PRED ? 1 : kl_info(t)->bits;
      if (i % 3 == 0) sprintf(field, "E(%u)", least + (unsigned)below(12));
      if (i % 3 == 1) sprintf(field, "E(%u)", (least + 7) / 8 * 8 + 8 * (unsigned)below(3));
      insert_fields(text, field);
      check_packing(text);
    }
}
END_TEST

// --- two layouts --------------------------------------------------------------------------------------------------

// Splits count into dims.
static int random_dims(int64_t count, int64_t *dims) {
  int n = 0;
  while (n < 5 && count > 1) {
    int64_t d = 1 + below(8);
    if (count % d) continue;
    dims[n++] = d;
    count /= d;
  }
  if (count > 1 || !n) dims[n++] = count;
  return n;
}

static void layout_text(char *at, int rank, const int64_t *dims, int tiles) {
  at += sprintf(at, "f32[");
  for (int d = 0; d < rank; d++) at += sprintf(at, "%s%ld", d ? "," : "", (long)dims[d]);
  at += sprintf(at, "]{");
  if (below(2))
    put_order(&at, rank);
  else
    for (int d = rank; d-- > 0;) at += sprintf(at, "%d%s", d, d ? "," : "");
  at += sprintf(at, ":");
  if (tiles) put_tiles(&at, tiles, rank < 2 ? 2 : rank);
  sprintf(at, "S(1)}");
}

static bool same_places(const kl_shape *a, const kl_shape *b, const int64_t *perm) {
  kl_physical *pa = malloc(sizeof *pa), *pb = malloc(sizeof *pb);
  int64_t x[KILN_MAX_RANK], y[KILN_MAX_RANK];
  bool same = true;
  kl_physical_of(a, pa);
  kl_physical_of(b, pb);
  for (int64_t i = 0; i < a->count && same; i++) {
    index_of(a, i, x);
    index_of(b, i, y);
    for (uint32_t d = 0; perm && d < b->rank; d++) y[d] = x[perm[d]];
    same = kl_physical_position(pa, x) == kl_physical_position(pb, y);
  }
  free(pa);
  free(pb);
  return same;
}

static int64_t random_count(void) {
  static const int64_t counts[] = {1, 6, 8, 12, 16, 24, 30, 36, 48, 60, 64, 72, 96, 120};
  return counts[below(KL_COUNT(counts))];
}

START_TEST(reshapes_that_move_nothing) {
  int yes = 0;
  for (int i = 0; i < 20000; i++) {
    char ta[256], tb[256];
    int64_t count = random_count(), a[8], b[8];
    int ra = random_dims(count, a), rb = random_dims(count, b);
    if (below(3) == 0) memcpy(b, a, sizeof b), rb = ra;
    layout_text(ta, ra, a, below(3));
    layout_text(tb, rb, b, below(3));
    const kl_shape *x = shape_of(ta), *y = shape_of(tb);
    bool want = same_places(x, y, NULL);
    yes += want;
    EXPECT(kl_reshape_is_bitcast(x, y) == (want ? KL_ANSWER_YES : KL_ANSWER_NO), "%s to %s: %d", ta, tb, want);
  }
  EXPECT(yes > 1000, "only %d move nothing", yes);
}
END_TEST

START_TEST(transposes_that_move_nothing) {
  int yes = 0;
  for (int i = 0; i < 20000; i++) {
    char ta[256], tb[256];
    int64_t a[8], b[8], perm[8];
    int rank = random_dims(random_count(), a);
    for (int d = 0; d < rank; d++) {
      int k = below(d + 1);
      perm[d] = perm[k];
      perm[k] = d;
    }
    for (int d = 0; d < rank; d++) b[d] = a[perm[d]];
    layout_text(ta, rank, a, below(3));
    layout_text(tb, rank, b, below(3));
    const kl_shape *x = shape_of(ta), *y = shape_of(tb);
    bool want = same_places(x, y, perm);
    yes += want;
    EXPECT(kl_transpose_is_bitcast(x, y, perm) == (want ? KL_ANSWER_YES : KL_ANSWER_NO), "%s to %s: %d", ta, tb, want);
  }
  EXPECT(yes > 1000, "only %d move nothing", yes);
}
END_TEST

static const struct {
  const char *from, *to;
  kl_answer answer;
} pairs[] = {
    {"f32[8,128]{1,0:T(8,128)}", "f32[1024]", KL_ANSWER_YES},
    {"f32[8,256]{1,0:T(8,128)}", "f32[2048]", KL_ANSWER_NO},
    {"f32[8,100]{1,0:T(8,128)}", "f32[1,8,100]{2,1,0:T(8,128)}", KL_ANSWER_YES},
    {"f32[16,100]{1,0:T(8,128)}", "f32[2,8,100]{2,1,0:T(8,128)}", KL_ANSWER_YES},
    {"f32[12,100]{1,0:T(8,128)}", "f32[2,6,100]{2,1,0:T(8,128)}", KL_ANSWER_NO},
    {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[112,110]{1,0:T(2,3)}", KL_ANSWER_YES},
    {"f32[1048576,1024,1024]{2,1,0:T(8,128)}", "f32[1073741824,1024]{1,0:T(8,128)}", KL_ANSWER_YES},
    {"f32[1073741824,1000]{1,0:T(8,128)}", "f32[32768,32768,1000]{2,1,0:T(8,128)}", KL_ANSWER_YES},
    {"f32[1073741825,4]{1,0:T(3,4)}", "f32[214748365,5,4]{2,1,0:T(*,3,4)}", KL_ANSWER_YES},
    {"f32[8]", "f32[8]{0:T(128)}", KL_ANSWER_YES}, // places are the same, though one has padding behind them
    {"f32[8]", "f32[8]{0:E(64)}", KL_ANSWER_NO},
    {"f32[8]", "f32[8]{0:M(4)}", KL_ANSWER_NO},
    {"f32[8]", "f32[9]", KL_ANSWER_NO},
    {"f32[8]", "f16[8]", KL_ANSWER_NO},
    {"f32[8]", "s32[2,4]", KL_ANSWER_YES},
    {"f32[0,8]{0,1}", "f32[3,0]{1,0:T(8,128)}", KL_ANSWER_YES},
    {"f32[8]{0:D(C)}", "f32[8]", KL_ANSWER_NO},
    // padding inside of dimensions that a reshape splits: run by run, and given up where those are too many
    {"f32[3000]{0:T(7)(4)}", "f32[1000,3]{1,0:T(*,7)(4)}", KL_ANSWER_YES},
    {"f32[1073741823]{0:T(7)(4)}", "f32[357913941,3]{1,0:T(*,7)(4)}", KL_ANSWER_UNDECIDED},
};

START_TEST(known_reshapes) {
  kl_answer answer = kl_reshape_is_bitcast(shape_of(pairs[_i].from), shape_of(pairs[_i].to));
  EXPECT(answer == pairs[_i].answer, "%s to %s: %d", pairs[_i].from, pairs[_i].to, answer);
}
END_TEST

// By bits: which ones hold elements.
static bool *element_bits(const char *text, int64_t *n) {
  const kl_shape *s = measured(text);
  cells m = model_of(s);
  *n = (physical.positions * physical.bits) + physical.prefix * 8;
  bool *bits = calloc((size_t)*n + 1, sizeof *bits);
  for (int64_t i = 0; i < *n - physical.prefix * 8; i++)
    bits[physical.prefix * 8 + i] = m.p[i / physical.bits] != PADDING;
  free(m.p);
  return bits;
}

START_TEST(bitcasts_that_read_elements_only) {
  static const char *const types[] = {"u8", "u4", "u16", "u2", "f32"};
  int yes = 0, no = 0;
  for (int i = 0; i < 6000; i++) {
    char ta[256], tb[256];
    kl_physical *from = malloc(sizeof *from);
    random_shape(ta, types[below(5)], below(3), below(3));
    random_shape(tb, types[below(5)], below(3), below(3));
    insert_fields(ta, "");
    insert_fields(tb, "");
    int64_t na, nb;
    bool *a = element_bits(ta, &na), want = true;
    *from = physical;
    bool *b = element_bits(tb, &nb);
    for (int64_t k = 0; k < nb; k++) want &= !b[k] || (k < na && a[k]);
    EXPECT(kl_bitcast_reads_elements(from, &physical, INT64_MAX) == (want ? KL_ANSWER_YES : KL_ANSWER_NO), "%s as %s",
           ta, tb);
    yes += want;
    no += !want;
    free(a);
    free(b);
    free(from);
  }
  EXPECT(yes > 500 && no > 500, "%d and %d", yes, no);
  kl_physical *from = malloc(sizeof *from);
  measured("f32[3,1000000]{1,0:T(2,2)}");
  *from = physical;
  measured("f32[3,1000000]{1,0:T(2,2)}");
  ck_assert_int_eq(kl_bitcast_reads_elements(from, &physical, 1000), KL_ANSWER_UNDECIDED);
  free(from);
}
END_TEST

int main(void) {
  return RUN_TESTS("layout", EACH(make, drop), {random_layouts_are_what_the_definition_says, 24},
                   {all_small_layouts_are_what_the_definition_says}, {known_places_and_sizes, KL_COUNT(known)},
                   {combined_dimensions_are_one}, {shapes_without_places_say_why, KL_COUNT(without_places)},
                   {bad_tiles_are_refused}, {the_largest_layout}, {arrays_of_every_type_go_in_and_out},
                   {reshapes_that_move_nothing}, {transposes_that_move_nothing}, {known_reshapes, KL_COUNT(pairs)},
                   {bitcasts_that_read_elements_only});
}

// Physical layouts against their definition: arrays of element numbers that are padded, reshaped and transposed.
#include "ir/index/layout/layout.h"
#include "ir/shape.h"
#include "ir/text/text.h"
#include "support/context.h"
#include "support/share.h"
#include "layout_model.h"

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
  for (uint64_t i = 0; i < share_of(400); i++) {
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
    {"(f32[2], f32[3])", KL_PHYSICAL_NO_ARRAY}, {"token[]", KL_PHYSICAL_NO_ARRAY},
    {"f32[2,?]", KL_PHYSICAL_UNKNOWN},          {"f32[?]{0:T(128)}", KL_PHYSICAL_UNKNOWN},
    {"f32[8]{0:D(C)}", KL_PHYSICAL_SPARSE},     {"f32[8]{0:SP(map = (i) -> (i : compressed))}", KL_PHYSICAL_ENCODED},
    {"f32[8]{0:SC(0:4)}", KL_PHYSICAL_SPLIT},   {"f32[8]{0:T(8)P(f32[9])}", KL_PHYSICAL_OTHER},
    {"f32[8]{0:T(8)E(31)}", KL_PHYSICAL_BITS},  {"s4[8]{0:E(3)}", KL_PHYSICAL_BITS},
    {"f8e4m3fn[8]{0:E(7)}", KL_PHYSICAL_BITS},  {"c128[8]{0:E(64)}", KL_PHYSICAL_BITS},
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
    for (int i = 0; i < 60; i++) {
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
    EXPECT(kl_reshape_is_bitcast(x, y) == (want ? KILN_YES : KILN_NO), "%s to %s: %d", ta, tb, want);
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
    EXPECT(kl_transpose_is_bitcast(x, y, perm) == (want ? KILN_YES : KILN_NO), "%s to %s: %d", ta, tb, want);
  }
  EXPECT(yes > 1000, "only %d move nothing", yes);
}
END_TEST

static const struct {
  const char *from, *to;
  kiln_truth answer;
} pairs[] = {
    {"f32[8,128]{1,0:T(8,128)}", "f32[1024]", KILN_YES},
    {"f32[8,256]{1,0:T(8,128)}", "f32[2048]", KILN_NO},
    {"f32[8,100]{1,0:T(8,128)}", "f32[1,8,100]{2,1,0:T(8,128)}", KILN_YES},
    {"f32[16,100]{1,0:T(8,128)}", "f32[2,8,100]{2,1,0:T(8,128)}", KILN_YES},
    {"f32[12,100]{1,0:T(8,128)}", "f32[2,6,100]{2,1,0:T(8,128)}", KILN_NO},
    {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[112,110]{1,0:T(2,3)}", KILN_YES},
    {"f32[1048576,1024,1024]{2,1,0:T(8,128)}", "f32[1073741824,1024]{1,0:T(8,128)}", KILN_YES},
    {"f32[1073741824,1000]{1,0:T(8,128)}", "f32[32768,32768,1000]{2,1,0:T(8,128)}", KILN_YES},
    {"f32[1073741825,4]{1,0:T(3,4)}", "f32[214748365,5,4]{2,1,0:T(*,3,4)}", KILN_YES},
    {"f32[8]", "f32[8]{0:T(128)}", KILN_YES}, // places are the same, though one has padding behind them
    {"f32[8]", "f32[8]{0:E(64)}", KILN_NO},
    {"f32[8]", "f32[8]{0:M(4)}", KILN_NO},
    {"f32[8]", "f32[9]", KILN_NO},
    {"f32[8]", "f16[8]", KILN_NO},
    {"f32[8]", "s32[2,4]", KILN_YES},
    {"f32[0,8]{0,1}", "f32[3,0]{1,0:T(8,128)}", KILN_YES},
    {"f32[8]{0:D(C)}", "f32[8]", KILN_NO},
    // padding inside of dimensions that a reshape splits: run by run, and given up where those are too many
    {"f32[3000]{0:T(7)(4)}", "f32[1000,3]{1,0:T(*,7)(4)}", KILN_YES},
    {"f32[1073741823]{0:T(7)(4)}", "f32[357913941,3]{1,0:T(*,7)(4)}", KILN_UNKNOWN},
};

START_TEST(known_reshapes) {
  kiln_truth answer = kl_reshape_is_bitcast(shape_of(pairs[_i].from), shape_of(pairs[_i].to));
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
    EXPECT(kl_bitcast_reads_elements(from, &physical, INT64_MAX) == (want ? KILN_YES : KILN_NO), "%s as %s", ta, tb);
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
  ck_assert_int_eq(kl_bitcast_reads_elements(from, &physical, 1000), KILN_UNKNOWN);
  free(from);
}
END_TEST

// --- the public interface -----------------------------------------------------------------------------------------

static kiln_layout *open_layout(const char *text) {
  kiln_layout *l = NULL;
  EXPECT(kiln_layout_parse(cx, text, &l) == KILN_OK, "%s", last_finding());
  return l;
}

// Values of digits as text: + below *, / and mod, which go from left to right.
typedef struct reading {
  const char *at;
  const kiln_layout *l;
  const int64_t *index;
} reading;

static int64_t sum(reading *r);

static int64_t value_of(const kiln_layout *l, const char *text, const int64_t *index) {
  reading r = {text, l, index};
  int64_t v = sum(&r);
  EXPECT(!*r.at, "%s: what is %s?", text, r.at);
  return v;
}

static int64_t factor(reading *r) {
  char *end;
  char kind = *r->at;
  if (kind == '(') {
    r->at++;
    int64_t v = sum(r);
    EXPECT(*r->at++ == ')', "no ) at %s", r->at - 1);
    return v;
  }
  r->at += kind == 'd' || kind == 'c';
  int64_t number = strtoll(r->at, &end, 10);
  EXPECT(end > r->at, "no number at %s", r->at);
  r->at = end;
  if (kind == 'd') return r->index[number];
  if (kind != 'c') return number;
  const char *name, *means;
  EXPECT(kiln_layout_name_at(r->l, (size_t)number, &name, &means) && name[0] == 'c' && atoi(name + 1) == number,
         "no c%ld", (long)number);
  return value_of(r->l, means, r->index);
}

static int64_t product(reading *r) {
  int64_t v = factor(r);
  for (;;) {
    if (strncmp(r->at, " * ", 3) == 0)
      r->at += 3, v *= factor(r);
    else if (strncmp(r->at, " / ", 3) == 0)
      r->at += 3, v /= factor(r);
    else if (strncmp(r->at, " mod ", 5) == 0)
      r->at += 5, v %= factor(r);
    else
      return v;
  }
}

static int64_t sum(reading *r) {
  int64_t v = product(r);
  while (strncmp(r->at, " + ", 3) == 0) r->at += 3, v += product(r);
  return v;
}

START_TEST(texts_of_digits_are_the_position) {
  char text[512];
  for (int i = 0; i < 400; i++) {
    random_shape(text, "f32", i % 5, i / 5 % 4);
    kiln_layout *l = open_layout(text);
    const kl_shape *s = shape_of(text);
    const kiln_layout_info *info = kiln_layout_describe(l);
    ck_assert(info->elements == s->count && info->bytes == kl_shape_bytes(s));
    for (int64_t k = 0; k < s->count; k += 1 + s->count / 50) {
      int64_t index[KILN_MAX_RANK] = {0}, want, position = 0, extent, stride;
      const char *value;
      index_of(s, k, index);
      for (size_t d = 0; kiln_layout_digit_at(l, d, &extent, &stride, &value); d++) {
        int64_t v = value_of(l, value, index);
        EXPECT(v >= 0 && v < extent, "%s: digit %zu, %s, is %ld", text, d, value, (long)v);
        position += v * stride;
      }
      EXPECT(kiln_layout_position(cx, l, index, &want) == KILN_OK && want == position, "%s: element %ld at %ld", text,
             (long)k, (long)position);
    }
    kiln_layout_destroy(&l);
  }
}
END_TEST

// Shared dimensions of dimensions do not double their text.
START_TEST(texts_stay_short) {
  char text[1024], *at = text;
  size_t total = 0;
  at += sprintf(at, "f32[1000,1000]{1,0:T");
  for (int i = 0; i < KL_MAX_TILE_SIZES / 2; i++) at += sprintf(at, "(*,%d)", 3 + i % 4);
  sprintf(at, "}");
  kiln_layout *l = open_layout(text);
  int64_t extent, stride;
  const char *name, *value;
  for (size_t i = 0; kiln_layout_digit_at(l, i, &extent, &stride, &value); i++) total += strlen(value);
  for (size_t i = 0; kiln_layout_name_at(l, i, &name, &value); i++) total += strlen(value);
  ck_assert_uint_lt(total, 20000);
  kiln_layout_destroy(&l);
}
END_TEST

static const struct {
  const char *shape, *index, *finding;
} wrong[] = {
    {"f32[3,5]", "3,0", "index:1:1: error: dimension 0: expected an index of 0 to 2, found 3"},
    {"f32[3,5]", "0, 5", "index:1:4: error: dimension 1: expected an index of 0 to 4, found 5"},
    {"f32[3,5]", "0,-1", "index:1:3: error: dimension 1: expected an index of 0 to 4, found -1"},
    {"f32[3,5]", "1", "index:1:2: error: expected the index of dimension 1, found ''"},
    {"f32[3,5]", "", "index:1:1: error: expected the index of dimension 0, found ''"},
    {"f32[3,5]", "1,", "index:1:3: error: expected the index of dimension 1, found ''"},
    {"f32[3,5]", "1,x", "index:1:3: error: expected the index of dimension 1, found 'x'"},
    {"f32[3,5]", "1,99999999999999999999", "index:1:3: error: expected the index of dimension 1, found '999"},
    {"f32[3,5]", "1,2,3", "index:1:5: error: expected the end, for the shape has 2 dimensions"},
    {"f32[3]", "1,", "index:1:3: error: expected the end, for the shape has 1 dimension"},
    {"f32[]", "0", "index:1:1: error: expected the end, for the shape has 0 dimensions"},
    {"f32[0]", "0", "index:1:1: error: dimension 0 has no elements: expected no index, found 0"},
    {"(f32[3], f32[])", NULL, "shape:1:1: error: expected an array's shape, found tuple"},
    {"f32[3", NULL, "shape:1:6: error: expected ']' after the dimensions, found the end"},
    {"F33[3]", NULL, "shape:1:1: error: expected an element type such as f32, found 'f33'"},
    {"f32[3]{0:T(2,0)}", NULL, "shape:1:14: error: expected a tile's size of at least 1, found 0"},
    {"f32[3] f32[3]", NULL, "shape:1:8: error: expected the end of the text"},
    {"f32[2,?]", NULL, "shape:1:1: error: a dimension without a bound does not say where elements lie"},
    {"f32[2]{0:E(8)}", NULL, "shape:1:1: error: a layout whose elements take fewer bits (E) than their type does not"},
};

START_TEST(wrong_texts_have_a_place) {
  kiln_layout *l = NULL;
  kiln_status status = kiln_layout_parse(cx, wrong[_i].shape, &l);
  int64_t index[KILN_MAX_RANK] = {7, 7};
  if (wrong[_i].index) {
    ck_assert_int_eq(status, KILN_OK);
    status = kiln_layout_read_index(cx, l, wrong[_i].index, index);
    for (uint32_t d = 0; d < kiln_layout_describe(l)->type.rank; d++) ck_assert_int_eq(index[d], 0);
  } else {
    ck_assert_ptr_null(l);
  }
  ck_assert(status == KILN_E_INVALID || (status == KILN_E_UNSUPPORTED && strstr(last_finding(), "does not")));
  EXPECT(strncmp(last_finding(), wrong[_i].finding, strlen(wrong[_i].finding)) == 0, "%s", last_finding());
  kiln_layout_destroy(&l);
}
END_TEST

START_TEST(the_public_functions) {
  kiln_layout *l = open_layout("F32[3,5]{1,0:T(2,2)}"), *e = open_layout("u4[5]{0:L(8)M(2)}"),
              *s = open_layout(" BF16[]");
  int64_t index[2], at, byte;
  unsigned bit;
  bool padding;
  ck_assert_str_eq(kiln_layout_describe(l)->shape, "f32[3,5]{1,0:T(2,2)}");
  ck_assert(kiln_layout_describe(l)->type.rank == 2 && kiln_layout_describe(l)->type.dims[1] == 5);
  ck_assert(kiln_layout_read_index(cx, l, " 2 , 3 ", index) == KILN_OK && index[0] == 2 && index[1] == 3);
  ck_assert(kiln_layout_position(cx, l, index, &at) == KILN_OK && at == 17);
  ck_assert(kiln_layout_index(cx, l, 17, index, &padding) == KILN_OK && !padding && index[0] == 2 && index[1] == 3);
  ck_assert(kiln_layout_index(cx, l, 23, index, &padding) == KILN_OK && padding && index[0] == 0);
  ck_assert_int_eq(kiln_layout_index(cx, l, 24, index, &padding), KILN_E_INVALID);
  ck_assert_int_eq(kiln_layout_index(cx, l, -1, index, &padding), KILN_E_INVALID);
  index[0] = 3;
  ck_assert_int_eq(kiln_layout_position(cx, l, index, &at), KILN_E_INVALID);
  ck_assert_int_eq(kiln_layout_next_padding(l, 0), 9);
  ck_assert(kiln_layout_address(l, 17, &byte, &bit) && byte == 68 && bit == 0);
  ck_assert(kiln_layout_address(e, 3, &byte, &bit) && byte == 3 && bit == 4);
  ck_assert(!kiln_layout_address(e, 8, &byte, &bit) && !kiln_layout_address(e, -1, &byte, &bit));
  ck_assert(kiln_layout_read_index(cx, s, "", index) == KILN_OK && kiln_layout_position(cx, s, index, &at) == KILN_OK &&
            at == 0);
  unsigned char elements[5] = {1, 2, 3, 4, 5}, buffer[6], back[5];
  ck_assert(kiln_layout_pack(e, elements, buffer) && kiln_layout_unpack(e, buffer, back));
  ck_assert_mem_eq(buffer, ((unsigned char[]){0, 0, 0x21, 0x43, 0x05, 0}), 6);
  ck_assert_mem_eq(back, elements, 5);
  kiln_map *forth, *home;
  ck_assert_int_eq(kiln_layout_map(cx, NULL, &forth), KILN_E_INVALID);
  ck_assert_int_eq(kiln_layout_inverse_map(cx, l, NULL), KILN_E_INVALID);
  ck_assert(kiln_layout_map(cx, l, &forth) == KILN_OK && kiln_layout_inverse_map(cx, l, &home) == KILN_OK);
  kiln_layout_destroy(&l), kiln_layout_destroy(&e), kiln_layout_destroy(&s); // maps stay
  ck_assert(kiln_map_variable_count(forth, KILN_MAP_DIM) == 2 && kiln_map_result_count(forth) == 1);
  ck_assert(kiln_map_variable_count(home, KILN_MAP_DIM) == 1 && kiln_map_result_count(home) == 2);
  kiln_map_destroy(&forth), kiln_map_destroy(&home);
  l = open_layout("f32[2,3]"), e = open_layout("f32[3,2]{0,1}"), s = open_layout("f32[6]");
  ck_assert_int_eq(kiln_layout_transpose_moves_nothing(l, e, (int64_t[]){1, 0}), KILN_YES);
  ck_assert_int_eq(kiln_layout_transpose_moves_nothing(l, e, (int64_t[]){0, 0}), KILN_NO);
  ck_assert_int_eq(kiln_layout_transpose_moves_nothing(l, e, (int64_t[]){1, 2}), KILN_NO);
  ck_assert_int_eq(kiln_layout_transpose_moves_nothing(l, s, (int64_t[]){1, 0}), KILN_NO);
  ck_assert_int_eq(kiln_layout_reshape_moves_nothing(l, s), KILN_YES);
  ck_assert_int_eq(kiln_layout_reshape_moves_nothing(e, s), KILN_NO);
  ck_assert(kiln_layout_bitcast_reads_elements(e, s) && kiln_layout_bitcast_reads_elements(s, e));
  kiln_layout_destroy(&l), kiln_layout_destroy(&e), kiln_layout_destroy(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("layout", EACH(make, drop), {random_layouts_are_what_the_definition_says, 24},
                   {all_small_layouts_are_what_the_definition_says}, {known_places_and_sizes, KL_COUNT(known)},
                   {combined_dimensions_are_one}, {shapes_without_places_say_why, KL_COUNT(without_places)},
                   {bad_tiles_are_refused}, {the_largest_layout}, {arrays_of_every_type_go_in_and_out},
                   {reshapes_that_move_nothing}, {transposes_that_move_nothing}, {known_reshapes, KL_COUNT(pairs)},
                   {bitcasts_that_read_elements_only}, {texts_of_digits_are_the_position}, {texts_stay_short},
                   {wrong_texts_have_a_place, KL_COUNT(wrong)}, {the_public_functions});
}

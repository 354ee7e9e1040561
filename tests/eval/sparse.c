// Arrays with encodings mean dense tensors: the evaluator computes on them as if they had none, and parameters that are
// filled from a seed can be stored.
#include "ir/dtype.h"
#include "support/context.h"
#include "support/dtypes.h"
#include "support/random.h"
#include "support/share.h"
#include "support/sparse_formats.h"

#include <kiln/kiln.h>

enum { MOST_TEXT = 1 << 15, MOST_BYTES = 1 << 16 };

// --- the same as without -------------------------------------------------------------------------------------------

// Arrays of one type and shape, each with the format's encoding, or without.
static void put_module(char text[MOST_TEXT], const char *type, const char *encoding, int rank) {
  char a[2048], order[64] = "";
  for (int d = rank; d-- > 0;) sprintf(order + strlen(order), d ? "%d," : "%d", d);
  snprintf(a, sizeof a, *encoding ? "%s{%s:SP(%s)}" : "%s", type, order, encoding);
  sprintf(text,
          "HloModule m\n"
          "inner {\n  a = %s parameter(0)\n  b = %s parameter(1)\n  c = %s add(a, b)\n  ROOT d = %s multiply(c, a)\n}\n"
          "ENTRY e {\n  t = (%s, %s) parameter(0)\n  x = %s get-tuple-element(t), index=0\n"
          "  y = %s get-tuple-element(t), index=1\n  z = %s fusion(x, y), kind=kLoop, calls=inner\n"
          "  ROOT r = (%s, %s) tuple(z, x)\n}\n",
          a, type, a, a, a, type, a, type, a, a, a);
}

static void draw_sizes(int rank, int64_t sizes[MOST_RANK]) {
  static const int64_t some[] = {1, 2, 3, 5, 8, 13}, few[] = {1, 2, 3};
  for (int d = 0; d < rank; d++) sizes[d] = rank > 3 ? few[random_bits() % 3] : some[random_bits() % 6];
  if (rank && random_bits() % 8 == 0) sizes[random_bits() % (unsigned)rank] = 0;
}

static void put_type(char text[256], kiln_dtype t, int rank, const int64_t *sizes) {
  int n = sprintf(text, "%s[", kiln_dtype_name(t));
  for (int d = 0; d < rank; d++) n += sprintf(text + n, d ? ",%d" : "%d", (int)sizes[d]);
  sprintf(text + n, "]");
}

static void evaluate(const kiln_module *m, const void *const *in, void *const *out) {
  kiln_mismatch x;
  size_t wrong = 1;
  EXPECT(kiln_module_eval(cx, m, in, out, NULL) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_module_check(cx, m, in, (const void *const *)out, &x, 1, &wrong, NULL) == KILN_OK && !wrong, "%s",
         last_finding());
}

// All encodings, also those that no way back leads from: meaning needs none.
START_TEST(dense_definition) {
  format f = parse_format(formats[_i]);
  int64_t sizes[MOST_RANK];
  static char in[2][MOST_BYTES], out[2][2][MOST_BYTES];
  random_seed((uint64_t)_i);
  for (int t = KILN_DTYPE_NONE + 1; t < KILN_DTYPE_COUNT; t++) {
    char type[256], encoding[1024], text[MOST_TEXT];
    if (!kl_is_array_dtype((kiln_dtype)t)) continue;
    draw_sizes(f.rank, sizes);
    print_format(&f, 0, 0, encoding);
    put_type(type, (kiln_dtype)t, f.rank, sizes);
    for (int k = 0; k < 2; k++) {
      put_module(text, type, k ? encoding : "", f.rank);
      kiln_module *m = parse(text);
      EXPECT(kiln_module_parameter_leaf_bytes(m, 0) == kiln_module_parameter_leaf_bytes(m, 1), "%s", text);
      if (k == 0)
        for (size_t i = 0; i < 2; i++) kiln_module_parameter_leaf_fill(m, i, 7, in[i]);
      evaluate(m, (const void *[]){in[0], in[1]}, (void *[]){out[k][0], out[k][1]});
      for (size_t i = 0; i < 2 && k; i++)
        EXPECT(memcmp(out[0][i], out[1][i], (size_t)kiln_module_result_leaf_bytes(m, i)) == 0, "%s", text);
      kiln_module_destroy(&m);
    }
  }
}
END_TEST

// --- what the seed gives can be stored -----------------------------------------------------------------------------

static void check_filled(const char *type, const char *encoding, int rank, uint64_t seed) {
  char text[MOST_TEXT], order[64] = "";
  static char buffer[MOST_BYTES], elements[MOST_BYTES], again[MOST_BYTES];
  for (int d = rank; d-- > 0;) sprintf(order + strlen(order), d ? "%d," : "%d", d);
  sprintf(text, "HloModule m\nENTRY e {\n  ROOT a = %s{%s:SP(%s)} parameter(0)\n}\n", type, order, encoding);
  kiln_module *m = parse(text);
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  kiln_sparse_array arrays[MOST_BUFFERS] = {{0}};
  kiln_sparse_buffer b;
  kiln_array_type t;
  EXPECT(kiln_module_parameter_leaf_fill(m, 0, seed, buffer), "%s", text);
  EXPECT(kiln_module_parameter_leaf_type(m, 0, &t), "%s", text);
  EXPECT(kiln_module_result_leaf_unpack(m, 0, buffer, elements), "%s", text);
  EXPECT(kiln_encoding_parse(cx, "test", encoding, strlen(encoding), NULL, &e) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_layout_create(cx, e, t.dtype, t.dims, &l) == KILN_OK, "%s", last_finding());
  for (int k = 0; k < 2; k++) {
    EXPECT(kiln_sparse_pack_dense(cx, l, elements, arrays) == KILN_OK, "%s\n%s", last_finding(), text);
    for (size_t i = 0; !k && kiln_sparse_layout_buffer_at(l, i, &b); i++)
      arrays[i].data = malloc(((size_t)arrays[i].count * b.bits + 7) / 8 + 1);
  }
  EXPECT(kiln_sparse_unpack(cx, l, arrays, again) == KILN_OK, "%s", last_finding());
  int64_t n = 1, stored = 0, size = kl_info(t.dtype)->bytes;
  for (uint32_t d = 0; d < t.rank; d++) n *= t.dims[d];
  for (int64_t i = 0; i < n; i++) {
    uint64_t mask = kl_info(t.dtype)->bits < 8 ? (1u << kl_info(t.dtype)->bits) - 1 : 255;
    for (int64_t k = 0; k < size; k++)
      EXPECT(((elements[i * size + k] ^ again[i * size + k]) & (char)mask) == 0, "element %d\n%s", (int)i, text);
    stored += memcmp(elements + i * size, elements + (n - 1 - i) * size, (size_t)size) != 0;
  }
  EXPECT(n < 60 || t.dtype == KILN_PRED || stored || strstr(encoding, "Width = 2"), "nothing is stored\n%s", text);
  for (size_t i = 0; i < MOST_BUFFERS; i++) free(arrays[i].data);
  kiln_sparse_layout_destroy(&l);
  kiln_encoding_destroy(&e);
  kiln_module_destroy(&m);
}

START_TEST(filled_for_each_format) {
  format f = parse_format(formats[_i]);
  int64_t sizes[MOST_RANK];
  char type[256], encoding[1024];
  print_format(&f, 0, 0, encoding);
  random_seed(100 + (uint64_t)_i);
  for (int t = KILN_DTYPE_NONE + 1; t < KILN_DTYPE_COUNT; t++) {
    if (!kl_is_array_dtype((kiln_dtype)t)) continue;
    draw_sizes(f.rank, sizes);
    put_type(type, (kiln_dtype)t, f.rank, sizes);
    check_filled(type, encoding, f.rank, random_bits());
  }
}
END_TEST

START_TEST(filled_for_others) {
  for (uint64_t seed = 0; seed < share_of(8); seed++) {
    check_filled("s32[13,7]", others[_i], 2, seed);
    check_filled("f32[9,300]", others[_i], 2, seed);
    check_filled("bf16[0,4]", others[_i], 2, seed);
  }
}
END_TEST

// --- over arrays ----------------------------------------------------------------------------------------------------

static kiln_sparse_layout *layout_of(const char *encoding, const kiln_array_type *t) {
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  EXPECT(kiln_encoding_parse(cx, "test", encoding, strlen(encoding), NULL, &e) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_layout_create(cx, e, t->dtype, t->dims, &l) == KILN_OK, "%s", last_finding());
  kiln_encoding_destroy(&e);
  return l;
}

static size_t room_of(const kiln_sparse_layout *l, size_t i, int64_t count) {
  kiln_sparse_buffer b;
  kiln_sparse_layout_buffer_at(l, i, &b);
  return ((size_t)count * b.bits + 7) / 8 + 1;
}

// Elements without the bits that their type lacks.
static bool same_elements(kiln_dtype t, const char *a, const char *b, int64_t n) {
  unsigned bits = kl_info(t)->bits, mask = bits < 8 ? (1u << bits) - 1 : 255;
  for (int64_t i = 0; i < n * kl_info(t)->bytes; i++)
    if ((a[i] ^ b[i]) & (int)mask) return false;
  return true;
}

// The module over the tensor's arrays has the results of the module itself, as the evaluator says both.
static void check_over_arrays(const char *type, const char *which, const char *encoding, int rank, uint64_t seed) {
  static char text[MOST_TEXT], a[MOST_BYTES], p[MOST_BYTES], dense[2][MOST_BYTES], elements[MOST_BYTES],
      again[MOST_BYTES];
  char sparse[2048], order[64] = "";
  for (int d = rank; d-- > 0;) sprintf(order + strlen(order), d ? "%d," : "%d", d);
  snprintf(sparse, sizeof sparse, "%s{%s:SP(%s)}", type, order, encoding);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  p = %s parameter(1)\n  z = %s subtract(a, a)\n"
           "  s = %s select(p, a, z)\n  c = %s copy(a)\n  ROOT r = (%s, %s) tuple(s, c)\n}\n",
           sparse, which, type, sparse, type, sparse, type);
  kiln_module *m = parse(text), *stored = NULL;
  kiln_array_type t;
  kiln_sparse_array in[MOST_BUFFERS] = {{0}}, out[MOST_BUFFERS] = {{0}};
  int64_t counts[MOST_BUFFERS], n = 1;
  size_t all = 0;
  EXPECT(kiln_module_parameter_leaf_fill(m, 0, seed, a) && kiln_module_parameter_leaf_fill(m, 1, seed, p), "%s", text);
  EXPECT(kiln_module_eval(cx, m, (const void *[]){a, p}, (void *[]){dense[0], dense[1]}, NULL) == KILN_OK, "%s\n%s",
         last_finding(), text);
  kiln_module_result_leaf_type(m, 1, &t);
  for (uint32_t d = 0; d < t.rank; d++) n *= t.dims[d];
  kiln_module_result_leaf_unpack(m, 1, dense[1], elements);
  kiln_sparse_layout *l = layout_of(encoding, &t);
  EXPECT(kiln_sparse_pack_dense(cx, l, elements, in) == KILN_OK, "%s\n%s", last_finding(), text);
  all = kiln_sparse_layout_buffer_count(l);
  for (size_t i = 0; i < all; i++) {
    // Garbage behind what is stored; batches lie one behind the other.
    kiln_sparse_buffer b;
    kiln_sparse_layout_buffer_at(l, i, &b);
    counts[i] = in[i].count + (b.count < 0 && b.batches == 1 ? (int64_t)(seed >> i) % 3 * b.columns : 0);
    in[i].data = malloc(room_of(l, i, counts[i]));
    memset(in[i].data, 0xa5, room_of(l, i, counts[i]));
  }
  EXPECT(kiln_sparse_pack_dense(cx, l, elements, in) == KILN_OK, "%s\n%s", last_finding(), text);
  // What is left of it needs no more.
  kiln_sparse_slot slots[] = {{.leaf = 0, .counts = counts}, {.result = true, .leaf = 0, .counts = counts}};
  EXPECT(kiln_module_densify(cx, m, slots, 2, &stored) == KILN_OK, "%s\n%s", last_finding(), text);
  const void *args[MOST_BUFFERS + 1];
  void *results[MOST_BUFFERS + 2];
  for (size_t i = 0; i < all; i++) {
    args[i] = in[i].data;
    out[i] = (kiln_sparse_array){malloc(room_of(l, i, counts[i])), counts[i]};
    results[i] = out[i].data;
  }
  int64_t need[MOST_BUFFERS + 1];
  args[all] = p;
  results[all] = need;
  results[all + 1] = dense[1];
  EXPECT(kiln_module_eval(cx, stored, args, results, NULL) == KILN_OK, "%s\n%s", last_finding(), text);
  EXPECT(kiln_sparse_check_counts(cx, l, need, out) == KILN_OK, "%s\n%s", last_finding(), text);
  EXPECT(kiln_sparse_unpack(cx, l, out, again) == KILN_OK, "%s\n%s", last_finding(), text);
  kiln_module_result_leaf_unpack(m, 0, dense[0], elements);
  EXPECT(same_elements(t.dtype, elements, again, n), "what is packed\n%s", text);
  kiln_module_result_leaf_unpack(m, 1, dense[1], again);
  kiln_module_eval(cx, m, (const void *[]){a, p}, (void *[]){dense[0], dense[1]}, NULL);
  kiln_module_result_leaf_unpack(m, 1, dense[1], elements);
  EXPECT(same_elements(t.dtype, elements, again, n), "what is unpacked\n%s", text);
  for (size_t i = 0; i < all; i++) free(in[i].data), free(out[i].data);
  kiln_sparse_layout_destroy(&l);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}

static const kiln_dtype subtracted[] = {KILN_S4, KILN_U8, KILN_S16, KILN_S32, KILN_U64, KILN_BF16, KILN_F32, KILN_C64};

START_TEST(over_arrays) {
  format f = parse_format(formats[_i]);
  int64_t sizes[MOST_RANK];
  char type[256], which[256], encoding[1024];
  print_format(&f, _i % 3 ? 0 : 32, _i % 4 ? 0 : 16, encoding);
  random_seed(200 + (uint64_t)_i);
  for (uint64_t k = 0; k < share_of(4); k++) {
    draw_sizes(f.rank, sizes);
    put_type(type, subtracted[random_bits() % KL_COUNT(subtracted)], f.rank, sizes);
    put_type(which, KILN_PRED, f.rank, sizes);
    check_over_arrays(type, which, encoding, f.rank, random_bits());
  }
}
END_TEST

START_TEST(others_over_arrays) {
  if (strstr(others[_i], "licitVal")) return; // what is left out would be another value
  for (uint64_t k = 0; k < share_of(4); k++) check_over_arrays("s32[7,11]", "pred[7,11]", others[_i], 2, k);
}
END_TEST

// What its encoding cannot store is said, and what has no room.
static const struct {
  const char *type, *encoding, *found;
} unstorable[] = {
    {"s32[3,8]", "map = (d0, d1) -> (d0 : dense, d1 : structured[2, 4])", "more entries of a group"},
    {"s32[3,8]", "map = (d0, d1) -> (d0 : compressed, d1 : singleton)", "behind a unique level"},
    {"s32[3,8]", "map = [s0](d0, d1) -> (d0 * (s0 * 3) : dense, d0 : dense, d1 : compressed)", "a slot"},
    {"s32[3,8]", "map = (d0, d1) -> (d0 : dense, d1 : compressed), crdWidth = 2", "a coordinate that its width"},
    {"s32[3,8]", "map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton), crdWidth = 2", "a coordinate"},
    {"s32[3,8]", "map = (d0, d1) -> (d0 : dense, d1 : structured[8, 8]), crdWidth = 2", "a coordinate"},
    {"s32[30,9]", "map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 8", "a position that its width"},
    {"s32[30,9]", "map = (d0, d1) -> (d0 : dense, d1 : loose_compressed), posWidth = 8", "a position"},
    {"s32[3,8]", "map = (d0, d1) -> (d0 : dense, d1 : compressed), explicitVal = 1 : i32",
     "not the one of explicitVal"},
};

START_TEST(unstorable_results) {
  static char text[MOST_TEXT];
  snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  ROOT r = %s{1,0:SP(%s)} copy(a)\n}\n",
           unstorable[_i].type, unstorable[_i].type, unstorable[_i].encoding);
  kiln_module *m = parse(text), *stored = NULL;
  kiln_array_type t;
  int32_t a[270], full = 270;
  for (int i = 0; i < full; i++) a[i] = i + 2;
  EXPECT(kiln_module_densify(cx, m, NULL, 0, &stored) == KILN_OK, "%s", last_finding());
  void *results[MOST_BUFFERS] = {NULL};
  kiln_sparse_array arrays[MOST_BUFFERS] = {{0}};
  size_t n = kiln_module_result_leaf_count(stored);
  for (size_t i = 0; i < n; i++) {
    kiln_module_result_leaf_type(stored, i, &t);
    results[i] = malloc((size_t)kiln_module_result_leaf_bytes(stored, i) + 1);
    arrays[i] = (kiln_sparse_array){results[i], t.dims[0]};
  }
  EXPECT(kiln_module_eval(cx, stored, (const void *[]){a}, results, NULL) == KILN_OK, "%s", last_finding());
  kiln_module_result_leaf_type(m, 0, &t);
  kiln_sparse_layout *l = layout_of(unstorable[_i].encoding, &t);
  kiln_status st = kiln_sparse_check_counts(cx, l, results[n - 1], arrays);
  EXPECT(st == KILN_E_INVALID && strstr(last_finding(), unstorable[_i].found), "%s\n%s", last_finding(), text);
  // As the packer says.
  kiln_sparse_array none[MOST_BUFFERS] = {{0}};
  EXPECT(kiln_sparse_pack_dense(cx, l, a, none) == KILN_E_INVALID, "%s", text);
  for (size_t i = 0; i < n; i++) free(results[i]);
  kiln_sparse_layout_destroy(&l);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}
END_TEST

// Too little room is said, and what there is has what came first.
START_TEST(too_little_room) {
  const char *encoding = "map = (d0, d1) -> (d0 : dense, d1 : compressed)";
  char text[1024];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = s32[3,4] parameter(0)\n  ROOT r = s32[3,4]{1,0:SP(%s)} copy(a)\n}\n",
           encoding);
  kiln_module *m = parse(text), *stored = NULL;
  static const int32_t a[] = {0, 5, 0, 0, 7, 0, 0, 8, 0, 0, 9, 0};
  kiln_sparse_slot slot = {.result = true, .counts = (int64_t[]){4, 4, 3}};
  uint64_t p[4], c[4];
  int32_t v[4] = {1, 1, 1, 1};
  int64_t need[4];
  EXPECT(kiln_module_densify(cx, m, &slot, 1, &stored) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_module_eval(cx, stored, (const void *[]){a}, (void *[]){p, c, v, need}, NULL) == KILN_OK, "%s",
         last_finding());
  kiln_sparse_layout *l = layout_of(encoding, &(kiln_array_type){.dtype = KILN_S32, .rank = 2, .dims = {3, 4}});
  kiln_sparse_array arrays[] = {{p, 4}, {c, 4}, {v, 3}};
  EXPECT(kiln_sparse_check_counts(cx, l, need, arrays) == KILN_E_INVALID &&
             strstr(last_finding(), "array 2: expected room for 4 values of level 1, found 3"),
         "%s", last_finding());
  EXPECT(v[0] == 5 && v[1] == 7 && v[2] == 8 && v[3] == 1 && need[2] == 4 && c[3] == 2 && p[3] == 4, "what is there");
  kiln_sparse_layout_destroy(&l);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(bitcast_of_an_encoding) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  a = f32[4,2]{1,0:SP(map = (i, j) -> (i : dense, j : compressed))} "
                         "parameter(0)\n  ROOT b = f32[8] bitcast(a)\n}\n");
  char in[32] = {0}, out[32];
  EXPECT(kiln_module_eval(cx, m, (const void *[]){in}, (void *[]){out}, NULL) == KILN_E_UNSUPPORTED, "evaluated");
  EXPECT(strstr(last_finding(), "bitcast with a sparse encoding"), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse", EACH(make_context, drop_context), {dense_definition, FORMATS},
                   {filled_for_each_format, FORMATS}, {filled_for_others, OTHERS}, {over_arrays, FORMATS},
                   {others_over_arrays, OTHERS}, {unstorable_results, KL_COUNT(unstorable)}, {too_little_room},
                   {bitcast_of_an_encoding});
}

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
                   {filled_for_each_format, FORMATS}, {filled_for_others, OTHERS}, {bitcast_of_an_encoding});
}

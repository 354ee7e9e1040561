// Comparisons and selections against their text (PTX ISA 9.7.6, 9.7.7), and what a decoder puts around instructions.
#include "../../support/suite.h"
#include "number.h"

static const char *type_of(const instruction *i) {
  return strrchr(i->mnemonic, '.') + 1;
}
static int width_of(const char *type) {
  return strstr(type, "16") ? 16 : strstr(type, "32") ? 32 : 64;
}

// The order of a and b: -1, 0, 1, or 2 where one is a NaN.
static int order(const instruction *i, value a, value b) {
  const char *type = type_of(i);
  int bits = width_of(type);
  a &= ((value)1 << bits) - 1, b &= ((value)1 << bits) - 1;
  const number_format *f = number_of_type(type);
  if (f) {
    double x = number_value(f, a), y = number_value(f, b);
    if (has(i, ".ftz")) x = number_flush(f, x), y = number_flush(f, y);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
  }
  if (type[0] == 's') a ^= (value)1 << (bits - 1), b ^= (value)1 << (bits - 1);
  return (a > b) - (a < b);
}

// The comparison's name is the first modifier.
static bool holds(const instruction *i, int order) {
  const struct {
    const char *name;
    bool less, equal, greater, unordered;
  } kinds[] = {
      {".eq", 0, 1, 0, 0},  {".ne", 1, 0, 1, 0},  {".lt", 1, 0, 0, 0},  {".lo", 1, 0, 0, 0},  {".le", 1, 1, 0, 0},
      {".ls", 1, 1, 0, 0},  {".gt", 0, 0, 1, 0},  {".hi", 0, 0, 1, 0},  {".ge", 0, 1, 1, 0},  {".hs", 0, 1, 1, 0},
      {".equ", 0, 1, 0, 1}, {".neu", 1, 0, 1, 1}, {".ltu", 1, 0, 0, 1}, {".leu", 1, 1, 0, 1}, {".gtu", 0, 0, 1, 1},
      {".geu", 0, 1, 1, 1}, {".num", 1, 1, 1, 0}, {".nan", 0, 0, 0, 1},
  };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (!has(i, kinds[k].name)) continue;
    return order == 2 ? kinds[k].unordered : order < 0 ? kinds[k].less : order > 0 ? kinds[k].greater : kinds[k].equal;
  }
  ck_abort_msg("%s compares in no way", i->mnemonic);
}

static bool combined(const instruction *i, bool t, value c) {
  return has(i, ".and") ? t && c : has(i, ".or") ? t || c : has(i, ".xor") ? t != (c != 0) : t;
}

static value one_of(const instruction *i, bool pair) {
  const char *type = type_of(i);
  char to[16]; // the type before the last
  const char *end = type - 1, *from = end;
  while (from[-1] != '.') from--;
  memcpy(to, from, (size_t)(end - from));
  to[end - from] = 0;
  if (strncmp(to, "f16", 3) == 0) return 0x3c00;
  if (strncmp(to, "bf16", 4) == 0) return 0x3f80;
  if (strcmp(to, "f32") == 0) return 0x3f800000;
  return pair || strstr(to, "16") ? 0xffff : 0xffffffff;
}

static value selected(const instruction *i, const value *s) {
  if (is(i, "selp")) return s[2] ? s[0] : s[1];
  if (has(i, ".s32") && strcmp(type_of(i), "s32") == 0) return s[2] >> 31 ? s[1] : s[0];
  double c = number_value(&number_f32, s[2]);
  if (has(i, ".ftz")) c = number_flush(&number_f32, c);
  return c >= 0 ? s[0] : s[1];
}

static void comparison(const instruction *i, const value *s, value *r, uint32_t *carry) {
  if (is(i, "selp") || is(i, "slct")) {
    r[0] = selected(i, s);
    return;
  }
  bool pair = strstr(type_of(i), "x2");
  bool low = holds(i, order(i, s[0], s[1])), high = pair && holds(i, order(i, s[0] >> 16, s[1] >> 16));
  if (is(i, "setp")) {
    r[0] = combined(i, low, s[2]);
    r[1] = pair ? combined(i, high, s[2]) : combined(i, !low, s[2]);
  } else {
    value one = one_of(i, pair);
    r[0] = combined(i, low, s[2]) ? one : 0;
    if (pair && combined(i, high, s[2])) r[0] |= one << 16;
  }
}

// --- glue ----------------------------------------------------------------------------------------------------------

static value extend(value v, int bits, bool sign) {
  value low = v & (((value)1 << bits) - 1);
  return sign && low >> (bits - 1) ? low | ~(value)0 << bits : low;
}
static value cut(value v, int bits) {
  return bits >= 128 ? v : v & (((value)1 << bits) - 1);
}

static void glue(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *m = i->mnemonic;
  int from = i->source_bits[0], to = i->result_bits[0];
  if (strncmp(m, "mov_", 4) == 0) r[0] = s[0];
  if (strcmp(m, "not_of_pred") == 0) r[0] = !s[0];
  if (strcmp(m, "and_of_preds") == 0) r[0] = s[0] && s[1];
  if (strcmp(m, "andn_of_preds") == 0) r[0] = s[0] && !s[1];
  if (strncmp(m, "pred_", 5) == 0) r[0] = s[0] != 0;
  if (strcmp(m, "select_32") == 0) r[0] = s[2] ? s[0] : s[1];
  if (strncmp(m, "zext_", 5) == 0) r[0] = extend(s[0], from, false);
  if (strncmp(m, "sext_", 5) == 0) r[0] = cut(extend(s[0], from, true), to);
  if (strncmp(m, "trunc_", 6) == 0) r[0] = cut(s[0], strcmp(strrchr(m, '_'), "_8") == 0 ? 8 : to);
  for (int k = 0; strncmp(m, "pack_", 5) == 0 && k < i->sources; k++) r[0] |= cut(s[k], from) << from * k;
  for (int k = 0; strncmp(m, "unpack_", 7) == 0 && k < i->results; k++) r[k] = cut(s[0] >> to * k, to);
}

enum { BATCHES = 160 };

// One kind of comparison of each type over many pairs of edges; whatever else is made of it, over fewer.
static bool plain(const instruction *i) {
  return is(i, "selp") || is(i, "slct") || (is(i, "setp") && !has(i, ".and") && !has(i, ".or") && !has(i, ".xor"));
}
static bool derived(const instruction *i) {
  return !plain(i);
}

START_TEST(test_comparisons) {
  ck_assert_uint_gt(topic_against_model("compare", plain, comparison, BATCHES), 100);
  ck_assert_uint_gt(topic_against_model("compare", derived, comparison, 8), 1000);
}
END_TEST
START_TEST(test_glue) {
  ck_assert_uint_gt(topic_against_model("glue", NULL, glue, BATCHES), 40);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: comparisons", NO_FRAME, {test_comparisons}, {test_glue});
}

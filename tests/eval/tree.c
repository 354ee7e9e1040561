// The order of reductions: bits of the evaluator's values against the rule as tree_model.h reads it, over types,
// lengths, layouts and reducers that tell orders apart.
#include "support/dtypes.h"
#include "support/share.h"
#include "support/suite.h"
#include "tree_model.h"

// --- numbers ------------------------------------------------------------------------------------------------------

static const struct {
  const char *shape; // of an operand that is reduced over `mask`
  unsigned mask;
  int64_t length, width, chain;
} numbers[] = {
    {"f32[]", 0, 1, 8, 16},
    {"f32[1]", 1, 1, 8, 16},
    {"f32[5]", 1, 5, 256, 4},
    {"f32[5]", 0, 1, 8, 16},
    {"f32[0]", 1, 0, 8, 16},
    {"f32[0,3]", 2, 0, 256, 4},
    {"f32[7,3]", 1, 7, 8, 16},
    {"f32[7,3]", 2, 3, 256, 4},
    {"f32[7,3]", 3, 21, 256, 4},
    {"f32[7,3]{0,1}", 1, 7, 256, 4},
    {"f32[7,3]{0,1}", 2, 3, 8, 16},
    {"f32[7,3,1]", 2, 3, 256, 4},
    {"f32[7,3,1]", 6, 3, 256, 4},
    {"f32[7,3,1]", 4, 1, 8, 16},
    {"f32[7,1,3]{1,0,2}", 1, 7, 256, 4},
    {"f32[7,3]{1,0:T(8,128)}", 2, 3, 256, 4},
    {"f32[4194304]", 1, 4194304, 256, 4},
    {"f32[4194305]", 1, 4194305, 256, 8},
    {"f32[8388608]", 1, 8388608, 256, 8},
    {"f32[8388609]", 1, 8388609, 256, 16},
    {"f32[524288,2]", 1, 524288, 8, 16},
    {"f32[524289,2]", 1, 524289, 8, 32},
    {"s8[1000000000,1000000000]", 3, 1000000000000000000, 256, 1099511627776},
};

START_TEST(tree_numbers) {
  char text[300];
  sprintf(text, "HloModule m\nENTRY e { ROOT p = %s parameter(0) }", numbers[_i].shape);
  kiln_module *m = parse(text);
  int64_t dims[8];
  uint32_t n = 0;
  for (uint32_t d = 0; d < 8; d++)
    if (numbers[_i].mask >> d & 1) dims[n++] = d;
  kl_fold_tree t = kl_reduce_tree(kl_root(&m->comp[m->entry])->shape, n, dims);
  EXPECT(t.length == numbers[_i].length && t.width == numbers[_i].width && t.chain == numbers[_i].chain,
         "%s: length %lld, width %lld, chain %lld", numbers[_i].shape, (long long)t.length, (long long)t.width,
         (long long)t.chain);
  EXPECT(t.row == (t.width == 256), "%s: class", numbers[_i].shape);
  kiln_module_destroy(&m);
}
END_TEST

static void shuffle(uint32_t n, int64_t *v) {
  for (uint32_t i = n; i > 1; i--) {
    int64_t j = below(i), t = v[i - 1];
    v[i - 1] = v[j];
    v[j] = t;
  }
}

// --- sums and products --------------------------------------------------------------------------------------------

// Values whose sums round, and whose products neither vanish nor grow beyond bounds.
static void fill_for(array *a, bool product) {
  fill_array(a, FILL_PLAIN);
  if (!product || !kl_is_float(part_of(a->t))) return;
  bool unsigned_type = a->t == KILN_F8E8M0FNU;
  for (int64_t i = 0; i < a->count; i++)
    for (int part = 0; part < parts(a->t); part++) {
      double v = part ? 0.05 : 1, spread = (double)(int64_t)next_random() * 0x1p-63;
      v = unsigned_type ? (spread > 0 ? 2 : 0.5) : (spread > 0 ? 1 : -1) * v * (1 + spread * 0.1);
      put(a, i, part, kl_float_encode(part_of(a->t), v));
    }
}

// "3,5", the result's dimensions, and "1,0", the reduced ones in some order.
typedef struct dims_text {
  const char *kept, *reduced;
} dims_text;

static dims_text spell_dims(const array *a, unsigned mask) {
  int64_t kept[8], reduced[8];
  uint32_t nkept = 0, nreduced = 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (mask >> d & 1)
      reduced[nreduced++] = d;
    else
      kept[nkept++] = a->dims[d];
  shuffle(nreduced, reduced);
  return (dims_text){list_text(nkept, kept, ","), list_text(nreduced, reduced, ",")};
}

static void module_text(char *text, const array *a, unsigned mask, bool product, int form) {
  const char *n = kiln_dtype_name(a->t), *op = product ? "multiply" : "add";
  dims_text dims = spell_dims(a, mask);
  text += sprintf(text, "HloModule m\nf { a = %s[] parameter(0) b = %s[] parameter(1) ", n, n);
  if (form == 2)
    text += sprintf(text, "c = f32[] convert(a) d = f32[] convert(b) o = f32[] %s(c, d) ROOT r = %s[] convert(o) }\n",
                    op, n);
  else
    text += sprintf(text, "ROOT r = %s[] %s(%s) }\n", n, op, form ? "b, a" : "a, b");
  sprintf(text,
          "ENTRY e { a = %s parameter(0) i = %s[] parameter(1) ROOT r = %s[%s] reduce(a, i), dimensions={%s}, "
          "to_apply=f }",
          type_text(a), n, n, dims.kept, dims.reduced);
}

static void expect_bits(const kl_result *z, int64_t i, const uint64_t want[2], const char *text) {
  kl_dtype t = z->data.shape->dtype;
  for (int part = 0; part < parts(t); part++) {
    uint64_t got = result_bits(z, z->data.data, i, part);
    EXPECT(same_bits(part_of(t), got, want[part]), "element %lld: %s, expected %s\n%s", (long long)i,
           bits_text(part_of(t), got), bits_text(part_of(t), want[part]), text);
    if (is_open(z, i)) continue;
    double lo = result_value(z, z->lo, i, part), hi = result_value(z, z->hi, i, part),
           v = result_value(z, z->data.data, i, part);
    EXPECT((lo <= v && v <= hi) || v != v, "element %lld: %g is not in [%g, %g]\n%s", (long long)i, v, lo, hi, text);
  }
}

static void check_sum(const array *a, unsigned mask, bool product, int form) {
  array init = new_scalar(a->t), args[2];
  char text[2000];
  fill_for(&init, product);
  args[0] = *a, args[1] = init;
  module_text(text, a, mask, product, form);
  model_shape s = {a->rank, a->dims, NULL, mask};
  for (int intervals = 0; intervals < 2; intervals++) {
    run r = evaluate(text, 2, args, intervals);
    for (int64_t i = 0; i < r.r[0].data.shape->count; i++) {
      uint64_t want[2];
      sum_model(&s, a, &init, (arithmetic){a->t, product, form == 2}, i, want);
      expect_bits(&r.r[0], i, want, text);
    }
    drop_run(&r);
  }
  free(init.data);
}

static bool adds_up(kl_dtype t) {
  return kl_is_float(t) || kl_is_complex(t) || kl_is_int(t);
}

static const int64_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 100, 127, 128, 129, 255, 256, 257, 1024, 1025, 5000};

START_TEST(sums) {
  kl_dtype t = dtypes_that(adds_up).at[_i];
  bool converts = t == KILN_F16 || t == KILN_BF16;
  for (size_t k = 0; k < KL_COUNT(lengths); k++)
    for (int row = 0; row < 2; row++) {
      const int64_t dims[2] = {row ? 3 : lengths[k], row ? lengths[k] : 3};
      array a = new_array(t, 2, dims);
      seed = (uint64_t)(_i * 100 + (int)k * 2 + row);
      for (int product = 0; product < 2; product++)
        for (int form = 0; form < 2 + converts; form++) {
          fill_for(&a, product);
          check_sum(&a, row ? 2 : 1, product, form);
        }
      free(a.data);
    }
}
END_TEST

static const struct {
  kl_dtype t;
  uint32_t rank;
  int64_t dims[3];
  unsigned mask;
} long_cases[] = {
    {KILN_F32, 1, {70000}, 1},         {KILN_BF16, 1, {70000}, 1},      {KILN_C64, 2, {70000, 2}, 1},
    {KILN_F64, 2, {2, 70000}, 2},      {KILN_F16, 2, {70000, 3}, 1},    {KILN_F8E5M2, 2, {70000, 40}, 1},
    {KILN_F32, 2, {3000, 33}, 1},      {KILN_F32, 2, {50, 700}, 1},     {KILN_F32, 2, {4100, 3}, 2},
    {KILN_F32, 2, {100, 300}, 2},      {KILN_F32, 2, {9, 2000}, 1},     {KILN_F32, 3, {40, 129, 7}, 2},
    {KILN_F32, 3, {90, 20, 11}, 5},    {KILN_BF16, 3, {90, 20, 11}, 3}, {KILN_F32, 1, {(1 << 21) + 3}, 1},
    {KILN_F32, 1, {(1 << 22) + 5}, 1}, {KILN_F32, 2, {524400, 2}, 1},   {KILN_BF16, 1, {(1 << 21) + 3}, 1},
    {KILN_F64, 2, {1 << 20, 1}, 2},    {KILN_F32, 2, {1, 1 << 18}, 2},
};

START_TEST(long_sums) {
  array a = new_array(long_cases[_i].t, long_cases[_i].rank, long_cases[_i].dims);
  fill_for(&a, false);
  check_sum(&a, long_cases[_i].mask, false, 0);
  free(a.data);
}
END_TEST

// In f32 until the end: two thousand ones do not stop at 256, nor do large values that cancel leave the type.
START_TEST(rounds_once) {
  const int64_t dims[1] = {2000};
  array args[2] = {new_array(_i ? KILN_F16 : KILN_BF16, 1, dims), new_scalar(_i ? KILN_F16 : KILN_BF16)};
  kl_dtype t = args[0].t;
  char text[2000];
  for (int64_t i = 0; i < 2000; i++) put(&args[0], i, 0, kl_float_encode(t, _i ? i % 2 ? -60000 : 60000 : 1));
  if (_i) put(&args[0], 1999, 0, kl_float_encode(t, -59968));
  module_text(text, &args[0], 1, false, 0);
  run r = evaluate(text, 2, args, true);
  EXPECT(result_value(&r.r[0], r.r[0].data.data, 0, 0) == (_i ? 32 : 2000), "%s: %g", kiln_dtype_name(t),
         result_value(&r.r[0], r.r[0].data.data, 0, 0));
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// Only negative zeros add up to one; nothing joins what is absent.
START_TEST(negative_zero) {
  const int64_t dims[1] = {_i};
  array args[2] = {new_array(KILN_F32, 1, dims), new_scalar(KILN_F32)};
  char text[2000];
  for (int64_t i = 0; i < _i; i++) put(&args[0], i, 0, kl_float_encode(KILN_F32, -0.0));
  put(&args[1], 0, 0, kl_float_encode(KILN_F32, -0.0));
  module_text(text, &args[0], 1, false, 0);
  run r = evaluate(text, 2, args, false);
  EXPECT(result_bits(&r.r[0], r.r[0].data.data, 0, 0) == 0x80000000, "of %d", _i);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// --- reducers that tell orders apart ------------------------------------------------------------------------------

// No two trees, and no two orders, are likely to give the same.
#define MARK                                                                                                           \
  "f { a = u32[] parameter(0) b = u32[] parameter(1) t = u32[] constant(3) c = u32[] multiply(a, t) "                  \
  "ROOT r = u32[] xor(c, b) }\n"

static cell mark(const void *how, cell x, cell y) {
  return (cell){.n = ((3 * x.n) ^ y.n) & 0xffffffff};
}

static void check_mark(const array *a, const int64_t *minor_to_major, unsigned mask) {
  array args[2] = {*a, new_scalar(KILN_U32)};
  model_shape s = {a->rank, a->dims, minor_to_major, mask};
  dims_text dims = spell_dims(a, mask);
  char text[1000];
  put(&args[1], 0, 0, 12345);
  sprintf(text,
          "HloModule m\n" MARK "ENTRY e { a = %s{%s} parameter(0) i = u32[] parameter(1) "
          "ROOT r = u32[%s] reduce(a, i), dimensions={%s}, to_apply=f }",
          type_text(a), list_text(a->rank, minor_to_major, ","), dims.kept, dims.reduced);
  run r = evaluate(text, 2, args, true);
  EXPECT(r.r[0].lo == r.r[0].data.data, "inexact\n%s", text);
  tree_model m = {.length = model_length(&s), .join = mark};
  cell *elements = calloc((size_t)m.length + 1, sizeof *elements);
  m.elements = elements;
  set_numbers(&m, is_row(&s));
  for (int64_t i = 0; i < r.r[0].data.shape->count; i++) {
    for (int64_t k = 0; k < m.length; k++) elements[k] = cell_of(a, place_of(&s, i, k));
    uint64_t want[2] = {reduce_model(&m, cell_of(&args[1], 0)).n, 0};
    expect_bits(&r.r[0], i, want, text);
  }
  drop_run(&r);
  free(elements);
  free(args[1].data);
}

// Ranks up to 4, all layouts and sets of dimensions, ones and zeros among the sizes.
START_TEST(layouts) {
  static const int64_t sizes[] = {1, 1, 2, 3, 5, 8, 17, 40, 0, 130};
  seed = (uint64_t)_i;
  uint32_t rank = (uint32_t)between(0, 4);
  int64_t dims[4], minor_to_major[4] = {0, 1, 2, 3};
  for (uint32_t d = 0; d < rank; d++) dims[d] = sizes[below(KL_COUNT(sizes))];
  shuffle(rank, minor_to_major);
  array a = new_array(KILN_U32, rank, dims);
  if (a.count < 1 << 17) {
    fill_array(&a, FILL_WILD);
    for (unsigned mask = 0; mask < 1u << rank; mask++) check_mark(&a, minor_to_major, mask);
  }
  free(a.data);
}
END_TEST

START_TEST(long_marks) {
  static const int64_t shapes[][3] = {{300, 1000, 1}, {1000, 300, 1}, {1, 3, 90000},
                                      {70001, 1, 1},  {40, 50, 60},   {2, 257, 513}};
  static const int64_t orders[][3] = {{2, 1, 0}, {0, 1, 2}, {1, 2, 0}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}};
  array a = new_array(KILN_U32, 3, shapes[_i]);
  fill_array(&a, FILL_WILD);
  for (int order = 0; order < 6; order++)
    for (unsigned mask = 1; mask < 8; mask++)
      if (share_has((uint64_t)(_i * 48 + order * 8) + mask, 1)) check_mark(&a, orders[order], mask);
  free(a.data);
}
END_TEST

// Values of two components, each of which follows from both; operand 1 has another layout, which does not count.
static void mark_pair(const uint64_t x[2], const uint64_t y[2], uint64_t out[2]) {
  out[0] = ((3 * x[0]) ^ y[1]) & 0xffffffff;
  out[1] = ((5 * x[1]) + y[0]) & 0xffff;
}

static cell mark_cell(const void *how, cell x, cell y) {
  uint64_t out[2];
  mark_pair((uint64_t[2]){x.n >> 16, x.n & 0xffff}, (uint64_t[2]){y.n >> 16, y.n & 0xffff}, out);
  return (cell){.n = out[0] << 16 | out[1]};
}

START_TEST(pairs) {
  static const int64_t shapes[][3] = {{70, 9, 40}, {3, 700, 5}, {1, 5000, 1}, {9, 1, 300}};
  array args[4] = {new_array(KILN_U32, 3, shapes[_i]), new_array(KILN_U16, 3, shapes[_i]), new_scalar(KILN_U32),
                   new_scalar(KILN_U16)};
  static const int64_t order[3] = {1, 2, 0};
  for (int k = 0; k < 4; k++) fill_array(&args[k], FILL_WILD);
  for (unsigned mask = 1; mask < 8; mask++) {
    model_shape s = {3, shapes[_i], order, mask};
    dims_text dims = spell_dims(&args[0], mask);
    char text[2000];
    sprintf(text,
            "HloModule m\nf { a = u32[] parameter(0) b = u16[] parameter(1) c = u32[] parameter(2) d = u16[] "
            "parameter(3) t = u32[] constant(3) v = u16[] constant(5) e = u32[] multiply(a, t) g = u32[] convert(d) "
            "h = u32[] xor(e, g) i = u16[] multiply(b, v) j = u16[] convert(c) k = u16[] add(i, j) "
            "ROOT r = (u32[], u16[]) tuple(h, k) }\nENTRY e { a = %s{1,2,0} parameter(0) b = %s{0,1,2} parameter(1) "
            "c = u32[] parameter(2) d = u16[] parameter(3) "
            "ROOT r = (u32[%s], u16[%s]) reduce(a, b, c, d), dimensions={%s}, to_apply=f }",
            type_text(&args[0]), type_text(&args[1]), dims.kept, dims.kept, dims.reduced);
    run r = evaluate(text, 4, args, mask & 1);
    tree_model m = {.length = model_length(&s), .join = mark_cell};
    cell *elements = calloc((size_t)m.length + 1, sizeof *elements);
    m.elements = elements;
    set_numbers(&m, is_row(&s));
    for (int64_t i = 0; i < r.r[0].data.shape->count; i++) {
      for (int64_t k = 0; k < m.length; k++) {
        int64_t at = place_of(&s, i, k);
        elements[k].n = get(&args[0], at, 0) << 16 | get(&args[1], at, 0);
      }
      cell want = reduce_model(&m, (cell){.n = get(&args[2], 0, 0) << 16 | get(&args[3], 0, 0)});
      expect_bits(&r.r[0], i, (uint64_t[2]){want.n >> 16, 0}, text);
      expect_bits(&r.r[1], i, (uint64_t[2]){want.n & 0xffff, 0}, text);
    }
    drop_run(&r);
    free(elements);
  }
  for (int k = 0; k < 4; k++) free(args[k].data);
}
END_TEST

// --- what is no order's ---------------------------------------------------------------------------------------------

// A reducer of several values rounds at each step, each of them, though it adds; one that converts does so, too.
START_TEST(sums_in_pairs) {
  const int64_t dims[2] = {5, 900};
  array args[4] = {new_array(KILN_BF16, 2, dims), new_array(KILN_F32, 2, dims), new_scalar(KILN_BF16),
                   new_scalar(KILN_F32)};
  for (int k = 0; k < 4; k++) fill_array(&args[k], FILL_PLAIN);
  for (unsigned mask = 1; mask < 3; mask++) {
    model_shape s = {2, dims, NULL, mask};
    char text[1000];
    sprintf(text,
            "HloModule m\nf { a = bf16[] parameter(0) b = f32[] parameter(1) c = bf16[] parameter(2) d = f32[] "
            "parameter(3) e = bf16[] add(a, c) g = f32[] maximum(b, d) ROOT r = (bf16[], f32[]) tuple(e, g) }\n"
            "ENTRY e { a = bf16[5,900] parameter(0) b = f32[5,900] parameter(1) c = bf16[] parameter(2) "
            "d = f32[] parameter(3) ROOT r = (bf16[%d], f32[%d]) reduce(a, b, c, d), dimensions={%d}, to_apply=f }",
            mask == 1 ? 900 : 5, mask == 1 ? 900 : 5, mask == 1 ? 0 : 1);
    run r = evaluate(text, 4, args, true);
    for (int64_t i = 0; i < r.r[0].data.shape->count; i++) {
      uint64_t want[2];
      // The sum of two bf16 is the same with f32 in between.
      sum_model(&s, &args[0], &args[2], (arithmetic){KILN_BF16, false, true}, i, want);
      expect_bits(&r.r[0], i, want, text);
      double most = value(&args[3], 0, 0);
      for (int64_t k = 0; k < model_length(&s); k++) most = fmax(most, value(&args[1], place_of(&s, i, k), 0));
      EXPECT(result_value(&r.r[1], r.r[1].data.data, i, 0) == most, "maximum %d\n%s", (int)i, text);
    }
    EXPECT(r.r[1].lo == r.r[1].data.data, "a maximum is inexact");
    drop_run(&r);
  }
  for (int k = 0; k < 4; k++) free(args[k].data);
}
END_TEST

static cell twice_the_higher(const void *how, cell x, cell y) {
  return (cell){.re = round_to(KILN_BF16, 2 * y.re)};
}

// An add, but of one parameter.
START_TEST(one_parameter_twice) {
  const int64_t dims[1] = {_i};
  array args[2] = {new_array(KILN_BF16, 1, dims), new_scalar(KILN_BF16)};
  char text[1000];
  fill_array(&args[0], FILL_PLAIN), fill_array(&args[1], FILL_PLAIN);
  sprintf(text,
          "HloModule m\nf { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(b, b) }\n"
          "ENTRY e { a = bf16[%d] parameter(0) i = bf16[] parameter(1) ROOT r = bf16[] reduce(a, i), dimensions={0}, "
          "to_apply=f }",
          _i);
  run r = evaluate(text, 2, args, true);
  cell elements[10];
  tree_model m = {.length = _i, .elements = elements, .join = twice_the_higher};
  for (int64_t k = 0; k < _i; k++) elements[k] = cell_of(&args[0], k);
  set_numbers(&m, true);
  uint64_t want[2] = {kl_float_encode(KILN_BF16, reduce_model(&m, cell_of(&args[1], 0)).re), 0};
  expect_bits(&r.r[0], 0, want, text);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

static cell three_quarters_less(const void *how, cell x, cell y) {
  float m = (float)x.re * 0.75f;
  return (cell){.re = m - (float)y.re};
}

// Inexact elements of a reducer with one order only: whatever each may be, the tree's result is allowed.
START_TEST(inexact_elements) {
  const int64_t dims[2] = {_i % 2 ? 600 : 7, _i % 2 ? 7 : 600};
  array args[2] = {new_array(KILN_F32, 2, dims), new_scalar(KILN_F32)};
  char text[1000];
  fill_array(&args[0], FILL_PLAIN);
  put(&args[1], 0, 0, kl_float_encode(KILN_F32, 0.5));
  sprintf(text,
          "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] constant(0.75) "
          "m = f32[] multiply(a, c) ROOT r = f32[] subtract(m, b) }\nENTRY e { p = %s parameter(0) "
          "i = f32[] parameter(1) s = %s sine(p) r = f32[7] reduce(s, i), dimensions={%d}, to_apply=f "
          "ROOT t = (%s, f32[7]) tuple(s, r) }",
          type_text(&args[0]), type_text(&args[0]), _i % 2 ? 0 : 1, type_text(&args[0]));
  run r = evaluate(text, 2, args, true);
  model_shape s = {2, dims, NULL, _i % 2 ? 1 : 2};
  tree_model m = {.length = 600, .join = three_quarters_less};
  cell elements[600];
  m.elements = elements;
  set_numbers(&m, is_row(&s));
  for (int64_t i = 0; i < 7; i++)
    for (int trial = 0; trial < 40; trial++) {
      for (int64_t k = 0; k < 600; k++) {
        bool high = trial == 0 || (trial > 1 && next_random() & 1);
        elements[k].re = result_value(&r.r[0], high ? r.r[0].hi : r.r[0].lo, place_of(&s, i, k), 0);
      }
      double got = reduce_model(&m, cell_of(&args[1], 0)).re;
      uint64_t bits[2] = {kl_float_encode(KILN_F32, got), 0};
      EXPECT(kl_result_allows(&r.r[1], i, bits), "element %d: %.9g is not in [%.9g, %.9g]", (int)i, got,
             result_value(&r.r[1], r.r[1].lo, i, 0), result_value(&r.r[1], r.r[1].hi, i, 0));
    }
  EXPECT(r.r[1].lo != r.r[1].data.data, "exact");
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_tree", EACH(make_context, drop_context), {tree_numbers, KL_COUNT(numbers)},
                   {sums, dtypes_that(adds_up).n}, {long_sums, KL_COUNT(long_cases)}, {rounds_once, 2},
                   {negative_zero, 12}, {layouts, 400}, {long_marks, 6}, {pairs, 4}, {sums_in_pairs},
                   {one_parameter_twice, 9}, {inexact_elements, 2});
}

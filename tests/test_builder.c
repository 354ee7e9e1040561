// The builder makes the same modules as text, refuses what text refuses, and stays refused once it did. Literals: every
// bit pattern goes into text and comes back.
#include "ir/hlo.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static kiln_context *cx;

static void setup(void) {
  cx = kiln_context_create(NULL);
}

static void teardown(void) {
  kiln_context_destroy(&cx);
}

#define TYPE(t, ...)                                                                                                   \
  (&(kiln_array_type){.dtype = KILN_##t, .rank = sizeof((int64_t[]){0, ##__VA_ARGS__}) / 8 - 1, .dims = {__VA_ARGS__}})
#define ATTRS(...)    (&(kiln_attrs){.struct_size = sizeof(kiln_attrs), __VA_ARGS__})
#define OPERANDS(...) ((kiln_value[]){__VA_ARGS__}), sizeof((kiln_value[]){__VA_ARGS__}) / sizeof(kiln_value)
#define INTS(...)     ((int64_t[]){__VA_ARGS__})

static char *print(const kiln_module *m) {
  char *text;
  ck_assert_int_eq(kiln_module_print(cx, m, &text, NULL), KILN_OK);
  return text;
}

static void expect_text(kiln_builder *b, const char *want) {
  kiln_module *m = NULL;
  kiln_status s = kiln_builder_finish(b, &m);
  ck_assert_msg(s == KILN_OK, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "");
  char *text = print(m);
  ck_assert_str_eq(text, want);
  kiln_module_destroy(&m);
  ck_assert_int_eq(kiln_module_parse(cx, "again", text, strlen(text), &m), KILN_OK);
  kiln_module_destroy(&m);
  kiln_text_free(cx, text, strlen(text));
  kiln_builder_destroy(&b);
  ck_assert_ptr_null(b);
}

// --- what can be built --------------------------------------------------------------------------------------------

static kiln_computation build_gelu_part(kiln_builder *b) {
  kiln_builder_begin(b, "body");
  const kiln_array_type *t = TYPE(BF16, 4, 8);
  kiln_value x = kiln_build_parameter(b, 0, t, "x"), half = kiln_build_scalar(b, KILN_BF16, 0.5);
  kiln_value h = kiln_build(b, "broadcast", OPERANDS(half), t, NULL);
  kiln_value y = kiln_build(b, "multiply", OPERANDS(x, h), NULL, NULL);
  y = kiln_build(b, "tanh", OPERANDS(y), NULL, NULL);
  return kiln_builder_end(b, kiln_build(b, "multiply", OPERANDS(x, y), t, NULL), false);
}

START_TEST(fusion_builds) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_computation body = build_gelu_part(b);
  kiln_builder_begin(b, "main");
  kiln_value p = kiln_build_parameter(b, 0, TYPE(BF16, 4, 8), NULL);
  kiln_value f = kiln_build(b, "fusion", OPERANDS(p), TYPE(BF16, 4, 8), ATTRS(.called = body, .name = "gelu"));
  ck_assert_uint_eq(kiln_builder_end(b, f, true), 1);
  expect_text(b, "HloModule m\n\n%body {\n  %x = bf16[4,8] parameter(0)\n  %constant = bf16[] constant(0.5)\n"
                 "  %broadcast = bf16[4,8] broadcast(%constant), dimensions={}\n"
                 "  %multiply = bf16[4,8] multiply(%x, %broadcast)\n  %tanh = bf16[4,8] tanh(%multiply)\n"
                 "  ROOT %multiply.1 = bf16[4,8] multiply(%x, %tanh)\n}\n\nENTRY %main {\n"
                 "  %parameter = bf16[4,8] parameter(0)\n"
                 "  ROOT %gelu = bf16[4,8] fusion(%parameter), kind=kLoop, calls=%body\n}\n");
}
END_TEST

START_TEST(every_attribute_builds) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_begin(b, "main");
  kiln_value a = kiln_build_parameter(b, 0, TYPE(F32, 2, 3), "a"), s = kiln_build_parameter(b, 1, TYPE(F32), "s");
  kiln_value out[16], n = 0;
  out[n++] =
      kiln_build(b, "broadcast", OPERANDS(a), TYPE(F32, 3, 2), ATTRS(.dimensions = INTS(1, 0), .dimension_count = 2));
  out[n++] = kiln_build(b, "transpose", OPERANDS(a), NULL, ATTRS(.dimensions = INTS(1, 0), .dimension_count = 2));
  out[n++] = kiln_build(b, "reverse", OPERANDS(a), NULL, ATTRS(.dimensions = INTS(0), .dimension_count = 1));
  out[n++] = kiln_build(b, "concatenate", OPERANDS(a, a), NULL, ATTRS(.dimensions = INTS(1), .dimension_count = 1));
  out[n++] = kiln_build(b, "iota", NULL, 0, TYPE(S4, 5), ATTRS(.dimensions = INTS(0), .dimension_count = 1));
  out[n++] = kiln_build(b, "slice", OPERANDS(a), NULL, ATTRS(.starts = INTS(0, 1), .limits = INTS(2, 3)));
  out[n++] = kiln_build(b, "slice", OPERANDS(a), NULL,
                        ATTRS(.starts = INTS(0, 0), .limits = INTS(2, 3), .strides = INTS(1, 2)));
  out[n++] = kiln_build(b, "pad", OPERANDS(a, s), NULL, ATTRS(.low = INTS(1, -1), .interior = INTS(0, 2)));
  out[n++] = kiln_build(b, "compare", OPERANDS(a, a), NULL, ATTRS(.direction = "GE", .comparison_type = "TOTALORDER"));
  out[n++] = kiln_build(b, "reduce-precision", OPERANDS(a), NULL, ATTRS(.exponent_bits = 5, .mantissa_bits = 0));
  out[n++] = kiln_build(b, "convert", OPERANDS(a), TYPE(F8E4M3FN, 2, 3), NULL);
  out[n++] = kiln_build(b, "clamp", OPERANDS(s, a, s), NULL, NULL);
  kiln_value t = kiln_build(b, "tuple", out, n, NULL, NULL);
  kiln_value g = kiln_build(b, "get-tuple-element", OPERANDS(t), NULL, ATTRS(.index = 2));
  kiln_builder_end(b, kiln_build(b, "tuple", OPERANDS(g), NULL, NULL), true);
  expect_text(b, "HloModule m\n\nENTRY %main {\n  %a = f32[2,3] parameter(0)\n  %s = f32[] parameter(1)\n"
                 "  %broadcast = f32[3,2] broadcast(%a), dimensions={1,0}\n"
                 "  %transpose = f32[3,2] transpose(%a), dimensions={1,0}\n"
                 "  %reverse = f32[2,3] reverse(%a), dimensions={0}\n"
                 "  %concatenate = f32[2,6] concatenate(%a, %a), dimensions={1}\n"
                 "  %iota = s4[5] iota(), iota_dimension=0\n"
                 "  %slice = f32[2,2] slice(%a), slice={[0:2], [1:3]}\n"
                 "  %slice.1 = f32[2,2] slice(%a), slice={[0:2], [0:3:2]}\n"
                 "  %pad = f32[3,6] pad(%a, %s), padding=1_0x-1_0_2\n"
                 "  %compare = pred[2,3] compare(%a, %a), direction=GE, type=TOTALORDER\n"
                 "  %reduce-precision = f32[2,3] reduce-precision(%a), exponent_bits=5, mantissa_bits=0\n"
                 "  %convert = f8e4m3fn[2,3] convert(%a)\n  %clamp = f32[2,3] clamp(%s, %a, %s)\n"
                 "  %tuple = (f32[3,2], f32[3,2], f32[2,3], f32[2,6], s4[5], f32[2,2], f32[2,2], f32[3,6], pred[2,3], "
                 "f32[2,3], f8e4m3fn[2,3], f32[2,3]) tuple(%broadcast, %transpose, %reverse, %concatenate, %iota, "
                 "%slice, %slice.1, %pad, %compare, %reduce-precision, %convert, %clamp)\n"
                 "  %get-tuple-element = f32[2,3] get-tuple-element(%tuple), index=2\n"
                 "  ROOT %tuple.1 = (f32[2,3]) tuple(%get-tuple-element)\n}\n");
}
END_TEST

START_TEST(packed_constants_build) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_begin(b, "main");
  kiln_build_constant(b, TYPE(S4, 3), (uint8_t[]){0x81, 0x07}, 2);
  kiln_build_constant(b, TYPE(U2, 2, 2), (uint8_t[]){0xe4}, 1);
  kiln_build_constant(b, TYPE(C64, 1), (float[]){1.5f, -2}, 8);
  kiln_build_constant(b, TYPE(F32, 0, 3), NULL, 0);
  kiln_value r = kiln_build_constant(b, TYPE(PRED, 2), (uint8_t[]){1, 0}, 2);
  kiln_builder_end(b, r, true);
  expect_text(b, "HloModule m\n\nENTRY %main {\n  %constant = s4[3] constant({1, -8, 7})\n"
                 "  %constant.1 = u2[2,2] constant({{0, 1}, {2, 3}})\n  %constant.2 = c64[1] constant({(1.5, -2)})\n"
                 "  %constant.3 = f32[0,3] constant({})\n  ROOT %constant.4 = pred[2] constant({true, false})\n}\n");
}
END_TEST

START_TEST(scalars_are_nearest) {
  static const struct {
    kiln_dtype type;
    double value;
    const char *text;
  } rows[] = {
      {KILN_F32, 0.1, "f32[] constant(0.1)"},        {KILN_BF16, 1.00390625, "bf16[] constant(1)"},
      {KILN_S32, 2.5, "s32[] constant(2)"},          {KILN_S32, -2.6, "s32[] constant(-3)"},
      {KILN_S8, 1000, "s8[] constant(127)"},         {KILN_U8, -1, "u8[] constant(0)"},
      {KILN_PRED, 2, "pred[] constant(true)"},       {KILN_C64, -1.5, "c64[] constant((-1.5, 0))"},
      {KILN_C128, 0.1, "c128[] constant((0.1, 0))"}, {KILN_F64, INFINITY, "f64[] constant(inf)"},
      {KILN_F8E5M2, NAN, "f8e5m2[] constant(nan)"},  {KILN_S64, 9007199254740993.0, "s64[] constant(9007199254740992)"},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    char want[200];
    kiln_builder *b = kiln_builder_create(cx, NULL);
    kiln_builder_begin(b, "main");
    kiln_builder_end(b, kiln_build_scalar(b, rows[i].type, rows[i].value), true);
    snprintf(want, sizeof want, "HloModule module\n\nENTRY %%main {\n  ROOT %%constant = %s\n}\n", rows[i].text);
    expect_text(b, want);
  }
}
END_TEST

// A given name may be one the builder would make: then it makes the next.
START_TEST(names_stay_distinct) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  for (int i = 0; i < 2; i++) {
    kiln_builder_begin(b, i ? "main" : "other");
    kiln_value p = kiln_build_parameter(b, 0, TYPE(F32), "negate"),
               q = kiln_build(b, "negate", OPERANDS(p), NULL, NULL);
    q = kiln_build(b, "negate", OPERANDS(q), NULL, ATTRS(.name = "negate.2"));
    kiln_builder_end(b, kiln_build(b, "negate", OPERANDS(q), NULL, NULL), i == 0);
  }
#define COMP(head)                                                                                                     \
  head " {\n  %negate = f32[] parameter(0)\n  %negate.1 = f32[] negate(%negate)\n  %negate.2 = f32[] "                 \
       "negate(%negate.1)\n"                                                                                           \
       "  ROOT %negate.3 = f32[] negate(%negate.2)\n}\n"
  expect_text(b, "HloModule m\n\n" COMP("ENTRY %other") "\n" COMP("%main"));
}
END_TEST

// --- what is refused ----------------------------------------------------------------------------------------------

static void no_begin(kiln_builder *b) {
  kiln_builder_end(b, 0, true);
}
static void in_main(kiln_builder *b) {
  kiln_builder_begin(b, "main");
}
static kiln_value param(kiln_builder *b) {
  in_main(b);
  return kiln_build_parameter(b, 0, TYPE(F32, 2, 3), "p");
}
static void begin_twice(kiln_builder *b) {
  in_main(b), in_main(b);
}
static void begin_unnamed(kiln_builder *b) {
  kiln_builder_begin(b, "two words");
}
static void begin_same(kiln_builder *b) {
  kiln_builder_end(b, param(b), true), in_main(b);
}
static void end_without_root(kiln_builder *b) {
  param(b), kiln_builder_end(b, 1, true);
}
static void never_end(kiln_builder *b) {
  param(b);
}
static void nothing(kiln_builder *b) {}
static void bad_opcode(kiln_builder *b) {
  kiln_build(b, "ad", OPERANDS(param(b)), NULL, NULL);
}
static void parameter_opcode(kiln_builder *b) {
  kiln_build(b, "parameter", OPERANDS(param(b)), NULL, NULL);
}
static void bad_operand(kiln_builder *b) {
  param(b), kiln_build(b, "negate", OPERANDS(1), NULL, NULL);
}
static void no_operand(kiln_builder *b) {
  param(b), kiln_build(b, "negate", OPERANDS(KILN_NO_VALUE), NULL, NULL);
}
static void arity(kiln_builder *b) {
  kiln_build(b, "add", OPERANDS(param(b)), NULL, NULL);
}
static void bad_type(kiln_builder *b) {
  kiln_build(b, "negate", OPERANDS(param(b)), TYPE(F32, 3, 2), NULL);
}
static void no_type(kiln_builder *b) {
  kiln_build(b, "convert", OPERANDS(param(b)), NULL, NULL);
}
static void tuple_type(kiln_builder *b) {
  in_main(b), kiln_build_parameter(b, 0, TYPE(TUPLE), NULL);
}
static void negative_dim(kiln_builder *b) {
  in_main(b), kiln_build_parameter(b, 0, TYPE(F32, -1), NULL);
}
static void huge_rank(kiln_builder *b) {
  in_main(b), kiln_build_parameter(b, 0, &(kiln_array_type){.dtype = KILN_F32, .rank = 33}, NULL);
}
static void no_dtype(kiln_builder *b) {
  in_main(b), kiln_build_parameter(b, 0, &(kiln_array_type){0}, NULL);
}
static void negative_number(kiln_builder *b) {
  in_main(b), kiln_build_parameter(b, -1, TYPE(F32), NULL);
}
static void number_gap(kiln_builder *b) {
  in_main(b), kiln_builder_end(b, kiln_build_parameter(b, 1, TYPE(F32), NULL), true);
}
static void number_twice(kiln_builder *b) {
  param(b), kiln_builder_end(b, kiln_build_parameter(b, 0, TYPE(F32), NULL), true);
}
static void same_name(kiln_builder *b) {
  kiln_build(b, "negate", OPERANDS(param(b)), NULL, ATTRS(.name = "p"));
}
static void bad_name(kiln_builder *b) {
  kiln_build(b, "negate", OPERANDS(param(b)), NULL, ATTRS(.name = "a->b"));
}
static void constant_size(kiln_builder *b) {
  in_main(b), kiln_build_constant(b, TYPE(S4, 3), "ab", 3);
}
static void constant_pred(kiln_builder *b) {
  in_main(b), kiln_build_constant(b, TYPE(PRED, 2), "\1\2", 2);
}
static void no_slice(kiln_builder *b) {
  kiln_build(b, "slice", OPERANDS(param(b)), NULL, NULL);
}
static void no_direction(kiln_builder *b) {
  kiln_value p = param(b);
  kiln_build(b, "compare", OPERANDS(p, p), NULL, NULL);
}
static void bad_comparison(kiln_builder *b) {
  kiln_value p = param(b);
  kiln_build(b, "compare", OPERANDS(p, p), NULL, ATTRS(.direction = "EQ", .comparison_type = "LOOSE"));
}
static void no_iota_dimension(kiln_builder *b) {
  in_main(b), kiln_build(b, "iota", NULL, 0, TYPE(F32, 2), NULL);
}
static void too_many_dims(kiln_builder *b) {
  kiln_build(b, "reverse", OPERANDS(param(b)), NULL, ATTRS(.dimensions = INTS(0), .dimension_count = 33));
}
static void null_dims(kiln_builder *b) {
  kiln_build(b, "reverse", OPERANDS(param(b)), NULL, ATTRS(.dimension_count = 1));
}
static void no_called(kiln_builder *b) {
  kiln_build(b, "call", OPERANDS(param(b)), NULL, NULL);
}
static void call_itself(kiln_builder *b) {
  kiln_build(b, "call", OPERANDS(param(b)), NULL, ATTRS(.called = 0));
}
static void bad_kind(kiln_builder *b) {
  kiln_build(b, "fusion", OPERANDS(param(b)), NULL, ATTRS(.fusion_kind = "kFast"));
}
static void wrong_call(kiln_builder *b) {
  kiln_computation body = build_gelu_part(b);
  kiln_build(b, "call", OPERANDS(param(b)), NULL, ATTRS(.called = body));
}
static void deep_tuple(kiln_builder *b) {
  kiln_value t = param(b);
  for (int i = 0; i < 101; i++) t = kiln_build(b, "tuple", &t, 1, NULL, NULL);
}
static void wide_tuple(kiln_builder *b) {
  kiln_value t = param(b);
  for (int i = 0; i < 64; i++) t = kiln_build(b, "tuple", OPERANDS(t, t), NULL, NULL);
}

static const struct {
  void (*build)(kiln_builder *b);
  const char *message;
} refusals[] = {
    {no_begin, "expected kiln_builder_begin before it"},
    {begin_twice, "expected the computation before to have ended"},
    {begin_unnamed, "found 'two words'"},
    {begin_same, "expected a computation name not yet used, found 'main'"},
    {end_without_root, "expected a root among the computation's values"},
    {never_end, "expected the last computation to have ended"},
    {nothing, "expected at least one computation"},
    {bad_opcode, "expected an opcode that kiln knows, found 'ad'"},
    {parameter_opcode, "expected kiln_build_parameter"},
    {bad_operand, "expected a value of the open computation for operand 0"},
    {no_operand, "expected a value of the open computation for operand 0"},
    {arity, "add: expected 2 operands, found 1"},
    {bad_type, "negate: expected the result type f32[2,3], found f32[3,2]"},
    {no_type, "convert: expected an array as the result type, found none"},
    {tuple_type, "element type 'tuple'"},
    {negative_dim, "expected dimensions of at least 0"},
    {huge_rank, "found rank 33"},
    {no_dtype, "element type ''"},
    {negative_number, "expected a number of at least 0, found -1"},
    {number_gap, "each number from 0 to 0 once, found 1"},
    {number_twice, "each number from 0 to 1 once, found 0 again"},
    {same_name, "expected a name not yet used in this computation, found 'p'"},
    {bad_name, "found 'a->b'"},
    {constant_size, "constant: expected 2 bytes, found 3"},
    {constant_pred, "constant: expected 0 or 1 for pred, found 2 in element 1"},
    {no_slice, "slice: expected starts and limits"},
    {no_direction, "expected a direction"},
    {bad_comparison, "found 'LOOSE'"},
    {no_iota_dimension, "iota: expected a dimension from 0 to 0, found -1"},
    {too_many_dims, "reverse: expected at most 32 dimensions, found 33"},
    {null_dims, "behind NULL"},
    {no_called, "call: expected a computation that has ended"},
    {call_itself, "call: expected a computation that has ended"},
    {bad_kind, "found 'kFast'"},
    {wrong_call, "call: expected bf16[4,8] for operand 0 ('p') as parameter 0 of 'body', found f32[2,3]"},
    {deep_tuple, "nested at most 100 deep"},
    {wide_tuple, "expected a tuple of at most 2^24 arrays"},
};

START_TEST(builder_refuses) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  refusals[_i].build(b);
  // Whatever comes after the first error is refused without a word.
  if (kiln_diagnostics_count(cx)) {
    kiln_builder_begin(b, "after");
    ck_assert_uint_eq(kiln_build_scalar(b, KILN_F32, 1), KILN_NO_VALUE);
    ck_assert_uint_eq(kiln_builder_end(b, 0, true), UINT32_MAX);
  }
  kiln_module *m = (kiln_module *)b;
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_E_INVALID);
  ck_assert_ptr_null(m);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  ck_assert_msg(strstr(kiln_diagnostics_get(cx, 0)->message, refusals[_i].message), "expected: %s\nfound: %s",
                refusals[_i].message, kiln_diagnostics_get(cx, 0)->message);
  kiln_builder_destroy(&b);
}
END_TEST

START_TEST(finished_builder_is_empty) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_end(b, param(b), true);
  kiln_module *m, *none;
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_OK);
  kiln_builder_begin(b, "more");
  ck_assert_uint_eq(kiln_build_scalar(b, KILN_F32, 1), KILN_NO_VALUE);
  ck_assert_int_eq(kiln_builder_finish(b, &none), KILN_E_INVALID);
  kiln_builder_destroy(&b);
  ck_assert_uint_eq(kiln_module_param_count(m), 1); // lives on
  kiln_module_destroy(&m);
  b = kiln_builder_create(cx, "bad name");
  ck_assert_int_eq(kiln_builder_finish(b, &none), KILN_E_INVALID);
  kiln_builder_destroy(&b);
}
END_TEST

// --- literals -----------------------------------------------------------------------------------------------------

// Patterns to try: all of a type of at most 16 bits; else a walk that reaches every byte.
static uint64_t pattern(unsigned bits, uint64_t i) {
  uint64_t v = bits <= 16 ? i : (i + 1) * 0x9e3779b97f4a7c15u;
  if (bits > 16 && i % 7 == 0) v |= (bits == 32 ? 0x7f800000u : 0x7ffull << 52); // infinities and NaN
  return bits == 64 ? v : v & ((1ull << bits) - 1);
}

START_TEST(literals_come_back) {
  kiln_dtype t = (kiln_dtype)_i;
  kiln_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  unsigned bits = kl_info(part)->bits, per = kl_is_complex(t) ? 2 : 1;
  int64_t n = (t == KILN_PRED ? 2 : bits <= 16 ? 1 << bits : 20000) / per;
  size_t size = (size_t)n * kl_info(t)->bytes;
  kiln_array_type type = {.dtype = t, .rank = 2, .dims = {2, n / 2}};
  uint8_t *data = calloc(size, 1), *packed = calloc((size_t)kiln_array_bytes(&type), 1);
  for (int64_t i = 0; i < n; i++)
    for (unsigned k = 0; k < per; k++) kl_element_set(t, data, i, (int)k, pattern(bits, (uint64_t)i * per + k));
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_module *m;
  const kl_shape *shape;
  kiln_builder_begin(b, "main");
  // The packing is array.c's and tested there; here only the text counts.
  kl_shape plain = {.dtype = t, .rank = 2, .dims = type.dims, .count = n, .layout.tail_padding = 1};
  kl_array_pack(&(kl_array){&plain, data}, packed);
  kiln_builder_end(b, kiln_build_constant(b, &type, packed, (size_t)kiln_array_bytes(&type)), true);
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_OK);
  char *text = print(m);
  kiln_module_destroy(&m);
  ck_assert_int_eq(kiln_module_parse(cx, "again", text, strlen(text), &m), KILN_OK);
  shape = kl_root(&m->comp[0])->literal->shape;
  ck_assert(shape->dtype == t && shape->count == n);
  ck_assert_msg(memcmp(kl_root(&m->comp[0])->literal->data, data, size) == 0, "%s", kl_info(t)->name);
  kiln_module_destroy(&m);
  kiln_builder_destroy(&b);
  kiln_text_free(cx, text, strlen(text));
  free(data);
  free(packed);
}
END_TEST

int main(void) {
  Suite *s = suite_create("builder");
  TCase *t = tcase_create("builder");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, fusion_builds);
  tcase_add_test(t, every_attribute_builds);
  tcase_add_test(t, packed_constants_build);
  tcase_add_test(t, scalars_are_nearest);
  tcase_add_test(t, names_stay_distinct);
  tcase_add_loop_test(t, builder_refuses, 0, KL_COUNT(refusals));
  tcase_add_test(t, finished_builder_is_empty);
  tcase_add_loop_test(t, literals_come_back, KILN_PRED, KILN_C128 + 1);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  srunner_set_tap(r, "-");
  srunner_run_all(r, CK_SILENT);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

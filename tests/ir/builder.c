// The builder makes the same modules as text, refuses what text refuses, and stays refused once it did. Literals: every
// bit pattern goes into text and comes back.
#include "support/context.h"
#include "ir/hlo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/modules.h"
#include "rebuild.h"

// A type by its text: TYPE("f32[2,3]"). An array type in C: ARRAY(F32, 2, 3).
#define TYPE(text) kiln_type_text(b, text)
#define ARRAY(t, ...)                                                                                                  \
  (&(kiln_array_type){.dtype = KILN_##t, .rank = sizeof((int64_t[]){0, ##__VA_ARGS__}) / 8 - 1, .dims = {__VA_ARGS__}})
// No type, no attributes.
#define PLAIN KILN_NO_TYPE, KILN_NONE

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
  kiln_type t = TYPE("bf16[4,8]");
  kiln_value x = kiln_build_parameter(b, 0, t, "x"), half = kiln_build_scalar(b, KILN_BF16, 0.5);
  kiln_value h = kiln_build(b, "broadcast", KILN_VALUES(half), t, KILN_NONE);
  kiln_value y = kiln_build(b, "multiply", KILN_VALUES(x, h), PLAIN);
  y = kiln_build(b, "tanh", KILN_VALUES(y), PLAIN);
  return kiln_builder_end(b, kiln_build(b, "multiply", KILN_VALUES(x, y), t, KILN_NONE), false);
}

START_TEST(fusion_builds) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_computation body = build_gelu_part(b);
  kiln_builder_begin(b, "main");
  kiln_value p = kiln_build_parameter(b, 0, kiln_type_array(b, ARRAY(BF16, 4, 8)), NULL);
  kiln_value f = kiln_build(b, "fusion", KILN_VALUES(p), kiln_type_of(b, p),
                            KILN_ATTRS(KILN_COMP("calls", body), KILN_NAME("kind", "kLoop"), KILN_NAMED("gelu")));
  ck_assert_uint_eq(kiln_builder_end(b, f, true), 1);
  expect_text(b, "HloModule m\n\n%body {\n  %x = bf16[4,8] parameter(0)\n  %constant = bf16[] constant(0.5)\n"
                 "  %broadcast = bf16[4,8] broadcast(%constant), dimensions={}\n"
                 "  %multiply = bf16[4,8] multiply(%x, %broadcast)\n  %tanh = bf16[4,8] tanh(%multiply)\n"
                 "  ROOT %multiply.1 = bf16[4,8] multiply(%x, %tanh)\n}\n\nENTRY %main {\n"
                 "  %parameter = bf16[4,8] parameter(0)\n"
                 "  ROOT %gelu = bf16[4,8] fusion(%parameter), kind=kLoop, calls=%body\n}\n");
}
END_TEST

// Builds one instruction on a: f32[2,3], s: f32[], and compares its line.
#define EXPECT_LINE(line, ...)                                                                                         \
  do {                                                                                                                 \
    kiln_builder *b = kiln_builder_create(cx, "m");                                                                    \
    kiln_builder_begin(b, "e");                                                                                        \
    kiln_value a = kiln_build_parameter(b, 0, TYPE("f32[2,3]"), "a"),                                                  \
               s = kiln_build_parameter(b, 1, TYPE("f32[]"), "s");                                                     \
    (void)a, (void)s;                                                                                                  \
    kiln_builder_end(b, kiln_build(b, __VA_ARGS__), true);                                                             \
    expect_text(b, "HloModule m\n\nENTRY %e {\n  %a = f32[2,3] parameter(0)\n  %s = f32[] parameter(1)\n"              \
                   "  ROOT " line "\n}\n");                                                                            \
  } while (0)

// Every form of an attribute in C, and beside it the same in text.
START_TEST(every_form_builds) {
#define BOTH(line, form, key, text, ...)                                                                               \
  EXPECT_LINE(line, __VA_ARGS__, KILN_ATTRS(form));                                                                    \
  EXPECT_LINE(line, __VA_ARGS__, KILN_ATTRS(KILN_RAW(key, text)))
  BOTH("%transpose = f32[3,2] transpose(%a), dimensions={1,0}", KILN_INTS("dimensions", 1, 0), "dimensions", " {1, 0} ",
       "transpose", KILN_VALUES(a), KILN_NO_TYPE);
  BOTH("%reverse = f32[2,3] reverse(%a), dimensions={}", KILN_NO_INTS("dimensions"), "dimensions", "{}", "reverse",
       KILN_VALUES(a), KILN_NO_TYPE);
  BOTH("%iota = s4[5] iota(), iota_dimension=0", KILN_INT("iota_dimension", 0), "iota_dimension", "0", "iota",
       KILN_NONE, TYPE("s4[5]"));
  BOTH("%slice = f32[2,1] slice(%a), slice={[0:2], [0:3:3]}", KILN_SLICES({0, 2}, {0, 3, 3}), "slice",
       "{[0:2],[0:3:3]}", "slice", KILN_VALUES(a), KILN_NO_TYPE);
  BOTH("%pad = f32[3,6] pad(%a, %s), padding=1_0x-1_0_2", KILN_PADDING({.low = 1}, {-1, 0, 2}), "padding", "1_0x-1_0_2",
       "pad", KILN_VALUES(a, s), KILN_NO_TYPE);
  BOTH("%pad = f32[] pad(%s, %s)", ((kiln_attr){.key = "padding", .form = KILN_ATTR_PADDING}), "padding", "", "pad",
       KILN_VALUES(s, s), KILN_NO_TYPE);
  BOTH("%compare = pred[2,3] compare(%a, %a), direction=GE", KILN_NAME("direction", "GE"), "direction", "GE", "compare",
       KILN_VALUES(a, a), KILN_NO_TYPE);
  BOTH("%custom-call = f32[] custom-call(%a), custom_call_target=\"a\\\"b\\\\c\\012\"",
       KILN_TEXT("custom_call_target", "a\"b\\c\n"), "custom_call_target", "\"a\\\"b\\\\c\\012\"", "custom-call",
       KILN_VALUES(a), TYPE("f32[]"));
  EXPECT_LINE("%reduce-precision = f32[2,3] reduce-precision(%a), exponent_bits=5, mantissa_bits=0", "reduce-precision",
              KILN_VALUES(a), KILN_NO_TYPE, KILN_ATTRS(KILN_INT("mantissa_bits", 0), KILN_INT("exponent_bits", 5)));
  EXPECT_LINE("%dot = f32[2,2] dot(%a, %a), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
              "operand_precision={highest,default}",
              "dot", KILN_VALUES(a, a), TYPE("f32[2,2]"),
              KILN_ATTRS(KILN_INTS("lhs_contracting_dims", 1), KILN_INTS("rhs_contracting_dims", 1),
                         KILN_NAMES("operand_precision", "highest", "default")));
  EXPECT_LINE("%collective-permute = f32[2,3] collective-permute(%a), channel_id=3, source_target_pairs={{0,1},{1,0}}",
              "collective-permute", KILN_VALUES(a), TYPE("f32[2,3]"),
              KILN_ATTRS(KILN_PAIRS("source_target_pairs", 0, 1, 1, 0), KILN_INT("channel_id", 3)));
  EXPECT_LINE("%custom-call = f32[] custom-call(), custom_call_target=\"f\", "
              "window={size=3x1 stride=2x1 pad=1_0x0_-1 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=1x0}, "
              "dim_labels=b01f_01io->b01f",
              "custom-call", KILN_NONE, TYPE("f32[]"),
              KILN_ATTRS(KILN_TEXT("custom_call_target", "f"), KILN_DIM_LABELS("b01f_01io->b01f"),
                         KILN_WINDOW({.size = 3, .stride = 2, .low = 1, .window_dilation = 3, .reversed = true},
                                     {.size = 1, .high = -1, .base_dilation = 2})));
  EXPECT_LINE("%all-gather = f32[4,3] all-gather(%a), replica_groups=[1, 2]<=[2], dimensions={0}", "all-gather",
              KILN_VALUES(a), TYPE("f32[4,3]"), KILN_ATTRS(KILN_GROUPS("[1,2]<=[2]"), KILN_INTS("dimensions", 0)));
  EXPECT_LINE("%custom-call = f32[] custom-call(%a), custom_call_target=\"f\", control-predecessors={%s, %a}, "
              "sharding={replicated}, backend_config={\"k\":[1,{}]}, opaque=\"x,y\"",
              "custom-call", KILN_VALUES(a), TYPE("f32[]"),
              KILN_ATTRS(KILN_RAW("sharding", "{ replicated }"), KILN_TEXT("custom_call_target", "f"),
                         KILN_RAW("backend_config", "{\"k\":[1,{}]}"), KILN_AFTER(s, a), KILN_TEXT("opaque", "x,y")));
}
END_TEST

START_TEST(every_kind_of_type_builds) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_array_type got;
  kiln_builder_begin(b, "e");
  kiln_type array = kiln_type_array(b, ARRAY(F32, 2, 3)), scalar = kiln_type_array(b, ARRAY(S32));
  kiln_type none = kiln_type_tuple(b, NULL, 0), token = TYPE("token[]"),
            tiled = TYPE("bf16[4,8]{0,1:T(8,128)(2,1)S(1)}");
  kiln_type pair = kiln_type_tuple(b, (kiln_type[]){array, scalar}, 2);
  kiln_type nested = kiln_type_tuple(b, (kiln_type[]){none, pair, token, tiled}, 4);
  ck_assert(kiln_type_get_array(b, array, &got) && got.rank == 2 && got.dims[1] == 3);
  ck_assert(!kiln_type_get_array(b, pair, &got) && !kiln_type_get_array(b, token, &got));
  ck_assert(!kiln_type_get_array(b, TYPE("f32[<=3]"), &got) && !kiln_type_get_array(b, KILN_NO_TYPE, &got));
  kiln_value p = kiln_build_parameter(b, 0, nested, "p");
  kiln_value g = kiln_build(b, "get-tuple-element", KILN_VALUES(p), KILN_NO_TYPE, KILN_ATTRS(KILN_INT("index", 3)));
  ck_assert(kiln_type_get_array(b, kiln_type_of(b, g), &got) && got.dtype == KILN_BF16 && got.dims[0] == 4);
  kiln_builder_end(b, kiln_build_parameter(b, 1, TYPE("f32[<=16]"), "q"), true);
  expect_text(b, "HloModule m\n\nENTRY %e {\n"
                 "  %p = ((), (f32[2,3], s32[]), token[], bf16[4,8]{0,1:T(8,128)(2,1)S(1)}) parameter(0)\n"
                 "  %get-tuple-element = bf16[4,8]{0,1:T(8,128)(2,1)S(1)} get-tuple-element(%p), index=3\n"
                 "  ROOT %q = f32[<=16] parameter(1)\n}\n");
}
END_TEST

START_TEST(annotations_build) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_annotate_module(b, "num_partitions", "2");
  kiln_builder_begin(b, "body");
  kiln_builder_annotate_computation(b, "execution_thread", "\"side\"");
  kiln_computation body = kiln_builder_end(b, kiln_build_parameter(b, 0, TYPE("f32[2]"), "p"), false);
  kiln_builder_begin(b, "e");
  kiln_value p = kiln_build_parameter(b, 0, TYPE("f32[2]"), "p");
  kiln_build_annotate(b, p, "sharding", "{devices=[2]0,1}");
  kiln_build_annotate(b, p, "metadata", "{op_name=\"x\"}");
  kiln_value s = kiln_build(b, "call-start", KILN_VALUES(p), TYPE("((f32[2]), f32[2], s32[])"),
                            KILN_ATTRS(KILN_COMP("to_apply", body)));
  kiln_builder_end(b, kiln_build(b, "call-done", KILN_VALUES(s), TYPE("f32[2]"), KILN_NONE), true);
  kiln_builder_annotate_module(b, "input_output_alias", "{ {}: (0, {}, may-alias) }");
  expect_text(b, "HloModule m, num_partitions=2, input_output_alias={{}: (0, {}, may-alias)}\n\n%body {\n"
                 "  ROOT %p = f32[2] parameter(0)\n}, execution_thread=\"side\"\n\nENTRY %e {\n"
                 "  %p = f32[2] parameter(0), sharding={devices=[2]0, 1}, metadata={op_name=\"x\"}\n"
                 "  %call-start = ((f32[2]), f32[2], s32[]) call-start(%p), to_apply=%body\n"
                 "  ROOT %call-done = f32[2] call-done(%call-start)\n}\n");
}
END_TEST

START_TEST(constants_build) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_begin(b, "main");
  kiln_build_constant(b, TYPE("s4[3]"), (uint8_t[]){0x81, 0x07}, 2, NULL);
  kiln_build_constant(b, TYPE("u2[2,2]"), (uint8_t[]){0xe4}, 1, "four");
  kiln_build_constant(b, TYPE("c64[1]"), (float[]){1.5f, -2}, 8, NULL);
  kiln_build_constant(b, TYPE("f32[0,3]"), NULL, 0, NULL);
  kiln_build_constant(b, TYPE("u8[2,2]{0,1}"), (uint8_t[]){1, 2, 3, 4}, 4, NULL);
  kiln_build_constant(b, TYPE("(s8[2], (), (pred[], s16[1]))"), (uint8_t[]){1, 0xff, 1, 2, 1}, 5, NULL);
  kiln_value r = kiln_build_constant(b, TYPE("pred[2]"), (uint8_t[]){1, 0}, 2, NULL);
  kiln_builder_end(b, r, true);
  expect_text(b, "HloModule m\n\nENTRY %main {\n  %constant = s4[3] constant({1, -8, 7})\n"
                 "  %four = u2[2,2] constant({{0, 1}, {2, 3}})\n  %constant.1 = c64[1] constant({(1.5, -2)})\n"
                 "  %constant.2 = f32[0,3] constant({})\n  %constant.3 = u8[2,2]{0,1} constant({{1, 2}, {3, 4}})\n"
                 "  %constant.4 = (s8[2], (), (pred[], s16[1])) constant(({1, -1}, (), (true, {258})))\n"
                 "  ROOT %constant.5 = pred[2] constant({true, false})\n}\n");
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
    kiln_value p = kiln_build_parameter(b, 0, TYPE("f32[]"), "negate"),
               q = kiln_build(b, "negate", KILN_VALUES(p), PLAIN);
    q = kiln_build(b, "negate", KILN_VALUES(q), KILN_NO_TYPE, KILN_ATTRS(KILN_NAMED("negate.2")));
    kiln_builder_end(b, kiln_build(b, "negate", KILN_VALUES(q), PLAIN), i == 0);
  }
#define COMP(head)                                                                                                     \
  head " {\n  %negate = f32[] parameter(0)\n  %negate.1 = f32[] negate(%negate)\n  %negate.2 = f32[] "                 \
       "negate(%negate.1)\n"                                                                                           \
       "  ROOT %negate.3 = f32[] negate(%negate.2)\n}\n"
  expect_text(b, "HloModule m\n\n" COMP("ENTRY %other") "\n" COMP("%main"));
}
END_TEST

// --- what is refused ----------------------------------------------------------------------------------------------

static void in_main(kiln_builder *b) {
  kiln_builder_begin(b, "main");
}
static kiln_value param(kiln_builder *b) {
  in_main(b);
  return kiln_build_parameter(b, 0, TYPE("f32[2,3]"), "p");
}
static void wide_tuple(kiln_builder *b) {
  kiln_value t = param(b);
  for (int i = 0; i < 64; i++) t = kiln_build(b, "tuple", KILN_VALUES(t, t), PLAIN);
}
static void deep_tuple(kiln_builder *b) {
  kiln_value t = param(b);
  for (int i = 0; i < 101; i++) t = kiln_build(b, "tuple", &t, 1, PLAIN);
}
static void wrong_call(kiln_builder *b) {
  kiln_computation body = build_gelu_part(b);
  kiln_build(b, "call", KILN_VALUES(param(b)), KILN_NO_TYPE, KILN_ATTRS(KILN_COMP("to_apply", body)));
}

// Rows: a number, what is done, and what the first finding says.
// clang-format off
#define P (p = param(b))
#define BUILD(opcode, ...) kiln_build(b, opcode, KILN_VALUES(P), KILN_NO_TYPE, __VA_ARGS__)
#define REFUSALS(X) \
  X(kiln_builder_end(b, 0, true), "expected kiln_builder_begin before it") \
  X((in_main(b), in_main(b)), "expected the computation before to have ended") \
  X(kiln_builder_begin(b, "two words"), "found 'two words'") \
  X(kiln_builder_begin(b, NULL), "expected a computation name") \
  X((kiln_builder_end(b, param(b), true), in_main(b)), "expected a computation name not yet used, found 'main'") \
  X((P, kiln_builder_end(b, 1, true)), "expected a root among the computation's values") \
  X((void)P, "expected the last computation to have ended") \
  X((void)0, "expected at least one computation") \
  X(BUILD("ad", KILN_NONE), "expected an opcode that kiln knows, found 'ad'") \
  X(BUILD(NULL, KILN_NONE), "expected an opcode that kiln knows, found ''") \
  X(BUILD("ad-start", KILN_NONE), "expected an opcode that kiln knows, found 'ad-start'") \
  X(BUILD("parameter", KILN_NONE), "expected kiln_build_parameter") \
  X((P, kiln_build(b, "negate", KILN_VALUES(1), PLAIN)), "expected a value of the open computation for operand 0") \
  X((P, kiln_build(b, "negate", KILN_VALUES(KILN_NO_VALUE), PLAIN)), "a value of the open computation for operand 0") \
  X((P, kiln_build(b, "negate", NULL, 1, PLAIN)), "negate: expected 1 operands, found NULL") \
  X(BUILD("add", KILN_NONE), "add: expected 2 operands, found 1") \
  X(kiln_build(b, "negate", KILN_VALUES(P), TYPE("f32[3,2]"), KILN_NONE), "negate: expected the result type f32[2,3], found f32[3,2]") \
  X(BUILD("convert", KILN_NONE), "convert: expected an array as the result type, found none") \
  X(kiln_build(b, "negate", KILN_VALUES(P), 7, KILN_NONE), "negate: expected a type of this builder, found none") \
  X((in_main(b), kiln_build_parameter(b, 0, KILN_NO_TYPE, NULL)), "parameter: expected a type of this builder, found none") \
  X(kiln_type_array(b, ARRAY(TUPLE)), "element type 'tuple'") \
  X(kiln_type_array(b, ARRAY(F32, -1)), "expected dimensions of at least 0") \
  X(kiln_type_array(b, ARRAY(F32, 1ll << 62)), "less than 2^60 elements") \
  X(kiln_type_array(b, &(kiln_array_type){.dtype = KILN_F32, .rank = 33}), "found rank 33") \
  X(kiln_type_array(b, &(kiln_array_type){0}), "element type ''") \
  X(kiln_type_tuple(b, (kiln_type[]){3}, 1), "type: expected a type of this builder") \
  X(kiln_type_tuple(b, NULL, SIZE_MAX), "expected a tuple of at most 2^24 elements") \
  X(TYPE("f33[2]"), "expected an element type such as f32") \
  X(TYPE("f32[2"), "expected") \
  X(TYPE("f32[2] f32[3]"), "expected the end of the text") \
  X(TYPE(NULL), "expected an element type") \
  X(kiln_type_of(b, 0), "expected kiln_builder_begin before it") \
  X((in_main(b), kiln_type_of(b, 0)), "kiln_type_of: expected a value of the open computation") \
  X((in_main(b), kiln_build_parameter(b, -1, TYPE("f32[]"), NULL)), "expected a number of at least 0, found -1") \
  X((in_main(b), kiln_builder_end(b, kiln_build_parameter(b, 1, TYPE("f32[]"), NULL), true)), "each number from 0 to 0 once, found 1") \
  X((P, kiln_builder_end(b, kiln_build_parameter(b, 0, TYPE("f32[]"), NULL), true)), "each number from 0 to 1 once, found 0 again") \
  X(BUILD("negate", KILN_ATTRS(KILN_NAMED("p"))), "expected a name not yet used in this computation, found 'p'") \
  X(BUILD("negate", KILN_ATTRS(KILN_NAMED("a->b"))), "found 'a->b'") \
  X((in_main(b), kiln_build_constant(b, TYPE("s4[3]"), "ab", 3, NULL)), "constant: expected 2 bytes, found 3") \
  X((in_main(b), kiln_build_constant(b, TYPE("s4[3]"), NULL, 2, NULL)), "constant: expected 2 bytes, found 2 behind NULL") \
  X((in_main(b), kiln_build_constant(b, TYPE("pred[2]"), "\1\2", 2, NULL)), "constant: expected 0 or 1 for pred, found 2 in element 1") \
  X((in_main(b), kiln_build_constant(b, TYPE("(s8[], token[])"), "a", 1, NULL)), "expected a type made of dense arrays") \
  X((in_main(b), kiln_build_constant(b, TYPE("s8[<=2]"), "ab", 2, NULL)), "expected a type made of dense arrays") \
  X(kiln_build_scalar(b, KILN_F32, 1), "constant: expected kiln_builder_begin") \
  X((in_main(b), kiln_build_scalar(b, KILN_TOKEN, 1)), "element type 'token'") \
  X(BUILD("slice", KILN_NONE), "slice: expected an attribute 'slice' (KILN_SLICES), found none") \
  X(BUILD("fusion", KILN_ATTRS(KILN_NAME("kind", "kLoop"))), "fusion: expected an attribute 'calls' (KILN_COMP), found none") \
  X(BUILD("fusion-start", KILN_NONE), "fusion-start: expected an attribute 'kind' (KILN_NAME), found none") \
  X(BUILD("compare", KILN_ATTRS(KILN_NAME("direction", "EQUAL"))), "compare: expected a direction, one of EQ NE LT LE GT GE, found 'EQUAL'") \
  X(BUILD("compare", KILN_ATTRS(KILN_RAW("direction", "EQUAL"))), "expected a direction, one of EQ NE LT LE GT GE, found 'EQUAL'") \
  X(BUILD("compare", KILN_ATTRS(KILN_NAME("direction", NULL))), "compare: expected a text for 'direction', found none") \
  X(BUILD("compare", KILN_ATTRS(KILN_INT("direction", 0))), "compare: expected KILN_NAME or KILN_RAW for the attribute 'direction', found KILN_INT") \
  X(BUILD("convolution", KILN_ATTRS(KILN_NAME("dim_labels", "bf_io->bf"))), "convolution: expected KILN_RAW for the attribute 'dim_labels', found KILN_NAME") \
  X(BUILD("call", KILN_ATTRS(KILN_RAW("to_apply", "%f"))), "call: expected KILN_COMP for the attribute 'to_apply', found KILN_RAW") \
  X(BUILD("reverse", KILN_ATTRS(KILN_INTS("dimensions", 0), KILN_NO_INTS("dimensions"))), "reverse: expected the attribute 'dimensions' once, found it again") \
  X(BUILD("reverse", KILN_ATTRS(KILN_INTS("dims", 0))), "reverse: expected an attribute that it has (dimensions) or KILN_RAW, found 'dims'") \
  X(BUILD("negate", KILN_ATTRS(KILN_INT(NULL, 0))), "negate: expected an attribute that it has (none) or KILN_RAW, found ''") \
  X(BUILD("reverse", KILN_ATTRS({.key = "dimensions", .form = KILN_ATTR_INTS, .count = 1})), "reverse: expected 1 entries for 'dimensions', found NULL") \
  X(BUILD("reverse", KILN_ATTRS({.key = "dimensions", .form = KILN_ATTR_INTS, .count = SIZE_MAX})), "expected at most 2^24 entries for 'dimensions'") \
  X(BUILD("reverse", KILN_ATTRS({.key = "dimensions", .form = (kiln_attr_form)99})), "reverse: expected a form of attributes, found 99") \
  X(BUILD("reverse", NULL, 1), "reverse: expected 1 attributes, found NULL") \
  X(BUILD("reverse", KILN_ATTRS(KILN_RAW("dimensions", "{0} {1}"))), "expected the end of the text") \
  X(BUILD("reverse", KILN_ATTRS(KILN_RAW("dimensions", "{0"))), "expected '}' after the dimensions") \
  X(BUILD("reverse", KILN_ATTRS(KILN_INTS("dimensions", 2))), "reverse: expected a dimension from 0 to 1, found 2") \
  X(BUILD("negate", KILN_ATTRS(KILN_RAW("sharding", "{a"))), "expected") \
  X(BUILD("negate", KILN_ATTRS(KILN_RAW("sharding", "{a}, b=c"))), "expected the end of the text") \
  X(BUILD("negate", KILN_ATTRS(KILN_RAW("sharding", ""))), "expected a value for the attribute 'sharding'") \
  X(BUILD("negate", KILN_ATTRS(KILN_RAW("two words", "{}"))), "expected a key of letters") \
  X(BUILD("negate", KILN_ATTRS(KILN_RAW(NULL, "{}"))), "expected a key of letters") \
  X(BUILD("negate", KILN_ATTRS(KILN_AFTER(9))), "negate: expected a value of the open computation for control predecessor 0") \
  X(BUILD("reduce-precision", KILN_ATTRS(KILN_INT("exponent_bits", 65), KILN_INT("mantissa_bits", 1))), "expected a number of bits from 0 to 64 for 'exponent_bits', found 65") \
  X(BUILD("collective-permute", KILN_ATTRS(KILN_PAIRS("source_target_pairs", 0, 1, 2))), "expected pairs for 'source_target_pairs', found 3 numbers") \
  X(BUILD("collective-permute", KILN_ATTRS(KILN_PAIRS("source_target_pairs", 0, -1))), "expected device numbers of at least 0") \
  X(BUILD("custom-call", KILN_ATTRS({.key = "window", .form = KILN_ATTR_WINDOW, .count = 33, .as.window = (kiln_window_dim[33]){{0}}})), "expected a window of at most 32 dimensions, found 33") \
  X(BUILD("outfeed", KILN_ATTRS(KILN_TYPE("outfeed_shape", 9))), "outfeed: expected a type of this builder") \
  X(BUILD("call", KILN_ATTRS(KILN_COMP("to_apply", 0))), "call: expected a computation that has ended for 'to_apply', found none") \
  X(BUILD("fusion", KILN_ATTRS(KILN_NAME("kind", "kFast"))), "found 'kFast'") \
  X(wrong_call(b), "call: expected bf16[4,8] for operand 0 ('p') as parameter 0 of 'body', found f32[2,3]") \
  X(deep_tuple(b), "nested at most 100 deep") \
  X(wide_tuple(b), "expected a tuple of at most 2^24 arrays") \
  X((P, kiln_build_annotate(b, 1, "a", "b")), "kiln_build_annotate: expected a value of the open computation") \
  X(kiln_build_annotate(b, (BUILD("reverse", KILN_ATTRS(KILN_NO_INTS("dimensions")))), "dimensions", "{0}"), "reverse: expected the attribute 'dimensions' where the instruction is built, found it later") \
  X((P, kiln_build_annotate(b, p, "a", NULL)), "parameter: expected a text for 'a', found none") \
  X(kiln_builder_annotate_computation(b, "a", "b"), "expected kiln_builder_begin before it") \
  X(kiln_builder_annotate_module(b, "1", "b"), "HloModule: expected a key of letters") \
  X(kiln_builder_annotate_module(b, "num_partitions", "two"), "expected a number of partitions, found 'two'") \
  X((kiln_builder_annotate_module(b, "is_scheduled", "true"), kiln_builder_annotate_module(b, "is_scheduled", "true")), "expected the attribute 'is_scheduled' once") \
  X((kiln_builder_annotate_module(b, "entry_computation_layout", "{(f32[2])->f32[2,3]}"), kiln_builder_end(b, param(b), true)), "expected f32[2,3] for parameter 0 of ENTRY, found f32[2]")
// clang-format on

#define X(...) +1
enum { NREFUSALS = REFUSALS(X) };
#undef X

// Does what row `i` says; returns what is expected of it.
static const char *refuse(kiln_builder *b, int i) {
  const char *message = NULL;
  kiln_value p = 0;
  int row = 0;
  (void)p;
#define X(action, text)                                                                                                \
  if (row++ == i) {                                                                                                    \
    action;                                                                                                            \
    message = text;                                                                                                    \
  }
  REFUSALS(X)
#undef X
  return message;
}

START_TEST(builder_refuses) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  const char *message = refuse(b, _i);
  // Whatever comes after the first error is refused without a word.
  if (kiln_diagnostics_count(cx)) {
    kiln_builder_begin(b, "after");
    ck_assert_uint_eq(kiln_build_scalar(b, KILN_F32, 1), KILN_NO_VALUE);
    ck_assert_uint_eq(TYPE("f32[]"), KILN_NO_TYPE);
    ck_assert_uint_eq(kiln_builder_end(b, 0, true), UINT32_MAX);
  }
  kiln_module *m = (kiln_module *)b;
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_E_INVALID);
  ck_assert_ptr_null(m);
  ck_assert_msg(kiln_diagnostics_count(cx) > 0, "expected: %s\nfound nothing", message);
  ck_assert_msg(strstr(kiln_diagnostics_get(cx, 0)->message, message), "expected: %s\nfound: %s", message,
                kiln_diagnostics_get(cx, 0)->message);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  kiln_builder_destroy(&b);
}
END_TEST

START_TEST(finished_builder_is_empty) {
  kiln_builder *b = kiln_builder_create(cx, "m");
  kiln_builder_end(b, param(b), true);
  kiln_module *m, *none;
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_OK);
  kiln_builder_begin(b, "more");
  kiln_builder_annotate_module(b, "a", "b");
  ck_assert_uint_eq(kiln_build_scalar(b, KILN_F32, 1), KILN_NO_VALUE);
  ck_assert_int_eq(kiln_builder_finish(b, &none), KILN_E_INVALID);
  kiln_builder_destroy(&b);
  ck_assert_uint_eq(kiln_module_parameter_count(m), 1); // lives on
  kiln_module_destroy(&m);
  b = kiln_builder_create(cx, "bad name");
  ck_assert_int_eq(kiln_builder_finish(b, &none), KILN_E_INVALID);
  kiln_builder_destroy(&b);
}
END_TEST

// --- every op, every attribute ------------------------------------------------------------------------------------

// What the builder cannot make: unknown opcodes, constants without values, source places.
static bool rebuilds(const char *text, bool as_text) {
  kiln_module *m = NULL, *built = NULL;
  ck_assert_int_eq(kiln_module_parse(cx, "given", text, strlen(text), &m), KILN_OK);
  bool can = rebuild_can(m) && m->tables.n == 0;
  if (can) {
    kiln_status s = rebuild_module(cx, m, as_text, &built);
    size_t n = kiln_diagnostics_count(cx);
    ck_assert_msg(s == KILN_OK, "%s\n%s", n ? kiln_diagnostics_get(cx, n - 1)->text : "", text);
    char *want = print(m), *got = print(built);
    ck_assert_str_eq(got, want);
    kiln_text_free(cx, want, strlen(want));
    kiln_text_free(cx, got, strlen(got));
    kiln_module_destroy(&built);
  }
  kiln_module_destroy(&m);
  return can;
}

// Each instruction and module that the parser's tests know, built from values and from text.
START_TEST(everything_rebuilds) {
  bool met[KL_OP_COUNT] = {0};
  unsigned built = 0, distinct = 0;
  for (size_t i = 0; i < KL_COUNT(instructions) + KL_COUNT(modules); i++) {
    char text[8000];
    if (i < KL_COUNT(instructions)) wrap(text, sizeof text, instructions[i][0], false);
    const char *source = i < KL_COUNT(instructions) ? text : modules[i - KL_COUNT(instructions)][0];
    if (!rebuilds(source, false)) continue;
    built += rebuilds(source, true);
    kiln_module *m = NULL;
    ck_assert_int_eq(kiln_module_parse(cx, "given", source, strlen(source), &m), KILN_OK);
    for (uint32_t k = 0; k < m->comp[m->entry].ninstr; k++) met[m->comp[m->entry].instr[k].op] = true;
    kiln_module_destroy(&m);
  }
  for (int op = 1; op < KL_OP_COUNT; op++) {
    ck_assert_msg(met[op], "no case of %s", kl_op_name((kl_op)op));
    distinct += met[op];
  }
  ck_assert_uint_eq(distinct, KL_OP_COUNT - 1);
  ck_assert_uint_ge(built, 200);
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
  kiln_builder_end(b, kiln_build_constant(b, kiln_type_array(b, &type), packed, (size_t)kiln_array_bytes(&type), NULL),
                   true);
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
  return RUN_TESTS("builder", EACH(make_context, drop_context), {fusion_builds}, {every_form_builds}, {constants_build},
                   {every_kind_of_type_builds}, {annotations_build}, {everything_rebuilds}, {scalars_are_nearest},
                   {names_stay_distinct}, {builder_refuses, NREFUSALS}, {finished_builder_is_empty},
                   {literals_come_back, KILN_C128 + 1 - KILN_PRED, KILN_PRED});
}

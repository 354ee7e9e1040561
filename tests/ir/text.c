// HLO text: what parses prints as it should, what does not is told exactly, and nothing in between hurts.
#include "ir/hlo.h"
#include "ir/rules/rules.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/modules.h"

typedef struct malformed_case {
  const char *text;
  size_t size;
  bool body; // one instruction, to be put into a computation
  uint32_t line, column;
  size_t findings;
  const char *message;
} malformed_case;
#define TEXT(s) s, sizeof(s) - 1, false
#define BODY(s) s, sizeof(s) - 1, true
#include "malformed/cases.h"
#include "malformed/text.h"

static kiln_context *cx;

static void setup(void) {
  cx = kiln_context_create(NULL);
}

static void teardown(void) {
  kiln_context_destroy(&cx);
}

static size_t errors(void) {
  size_t n = 0;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) n += kiln_diagnostics_get(cx, i)->severity == KILN_ERROR;
  return n;
}

static const kiln_diagnostic *first_error(void) {
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++)
    if (kiln_diagnostics_get(cx, i)->severity == KILN_ERROR) return kiln_diagnostics_get(cx, i);
  return NULL;
}

static const char *first_text(void) {
  return first_error() ? first_error()->text : "";
}

static kiln_module *parse_n(const char *text, size_t size) {
  kiln_module *m = NULL;
  kiln_status s = kiln_module_parse(cx, "test", text, size, &m);
  ck_assert_msg(s == KILN_OK && m, "%s\n%s", first_text(), size < 2000 ? text : "");
  return m;
}

static kiln_module *parse(const char *text) {
  return parse_n(text, strlen(text));
}

// Prints, checks that the text is a fixed point, destroys the module; the caller frees the text.
static char *canonical(kiln_module **m) {
  char *text, *again;
  size_t n, k;
  ck_assert_int_eq(kiln_module_print(cx, *m, &text, &n), KILN_OK);
  ck_assert_uint_eq(strlen(text), n);
  kiln_module_destroy(m);
  kiln_module *second = parse_n(text, n);
  ck_assert_int_eq(kiln_module_print(cx, second, &again, &k), KILN_OK);
  ck_assert_str_eq(again, text);
  kiln_module_destroy(&second);
  kiln_text_free(cx, again, k);
  return text;
}

static void expect_canonical(const char *text, const char *want) {
  kiln_module *m = parse(text);
  char *got = canonical(&m);
  ck_assert_str_eq(got, want);
  kiln_text_free(cx, got, strlen(got));
}

static void expect_invalid(const char *text, size_t size) {
  kiln_module *m = NULL;
  kiln_diagnostics_clear(cx);
  ck_assert_int_eq(kiln_module_parse(cx, "test", text, size, &m), KILN_E_INVALID);
  ck_assert_ptr_null(m);
  ck_assert_uint_ge(errors(), 1);
}

// --- valid text ---------------------------------------------------------------------------------------------------

START_TEST(instruction_prints) {
  char text[4000], want[4000];
  wrap(text, sizeof text, instructions[_i][0], false);
  wrap(want, sizeof want, instructions[_i][1], true);
  expect_canonical(text, want);
  ck_assert_uint_eq(errors(), 0);
}
END_TEST

START_TEST(module_prints) {
  expect_canonical(modules[_i][0], modules[_i][1]);
}
END_TEST

// The same on one line, but for comments that reach to its end.
START_TEST(lines_do_not_matter) {
  char text[4000], want[4000];
  wrap(text, sizeof text, instructions[_i][0], false);
  wrap(want, sizeof want, instructions[_i][1], true);
  if (strstr(text, "//") || strchr(instructions[_i][0], '"')) return; // strings keep their lines
  for (char *p = text; *p; p++)
    if (*p == '\n') *p = ' ';
  expect_canonical(text, want);
}
END_TEST

START_TEST(every_op_is_tried) {
  bool seen[KL_OP_COUNT] = {[KL_OP_PARAMETER] = true};
  for (size_t i = 0; i < KL_COUNT(instructions); i++) {
    char text[4000];
    wrap(text, sizeof text, instructions[i][0], false);
    kiln_module *m = parse(text);
    const kl_comp *c = &m->comp[m->entry];
    for (uint32_t k = c->nparams; k < c->ninstr; k++) seen[c->instr[k].op] = true;
    kiln_module_destroy(&m);
  }
  for (kl_op op = 0; op < KL_OP_COUNT; op++) ck_assert_msg(seen[op], "no row tries '%s'", kl_op_name(op));
}
END_TEST

START_TEST(op_names_are_found) {
  for (kl_op op = KL_OP_UNKNOWN + 1; op < KL_OP_COUNT; op++) {
    kl_op found;
    ck_assert(kl_op_from_str(kl_str_of(kl_op_name(op)), &found));
    ck_assert_int_eq(found, op);
  }
  kl_op found;
  ck_assert(!kl_op_from_str(KL_STR("addd"), &found));
  ck_assert(!kl_op_from_str(KL_STR("ad"), &found));
  ck_assert(!kl_op_from_str(KL_STR(""), &found));
}
END_TEST

START_TEST(unknown_attributes_are_warned_of) {
  kiln_module *m =
      parse("HloModule m, shade=dark\nENTRY e {\n  p = f32[] parameter(0), sharding={replicated}, metadata={}\n"
            "  q = f32[] negate(p), colour=blue\n  r = f32[] frobnicate(q), colour=blue\n}, tone=a\n");
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 4);
  ck_assert_ptr_nonnull(strstr(kiln_diagnostics_get(cx, 0)->message, "HloModule: the attribute 'shade'"));
  ck_assert_ptr_nonnull(strstr(kiln_diagnostics_get(cx, 3)->message, "computation: the attribute 'tone'"));
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 1);
  ck_assert_int_eq(d->severity, KILN_WARNING);
  ck_assert_uint_eq(d->line, 4);
  ck_assert_uint_eq(d->column, 24);
  ck_assert_ptr_nonnull(strstr(d->message, "'colour'"));
  const kl_comp *c = &m->comp[m->entry];
  ck_assert_int_eq(c->instr[2].op, KL_OP_UNKNOWN);
  ck_assert_uint_eq(c->instr[2].noperands, 1);
  ck_assert_uint_eq(c->instr[2].operands[0], 1);
  ck_assert_uint_eq(c->instr[2].raw_operands.n, 0);
  kiln_module_destroy(&m);
}
END_TEST

// An opcode that is one or two letters beside a known one is a mistake; any other is kept, with a warning.
START_TEST(misspelt_opcodes_are_told) {
  static const struct {
    const char *opcode, *similar;
    bool refused;
  } rows[] = {
      {"multipy", "multiply", true},
      {"mutliply", "multiply", true},
      {"mltply", "multiply", true},
      {"Negate", "negate", true},
      {"ngeate", "negate", true},
      {"negat", "negate", true},
      {"addd", "add", true},
      {"ad", "add", true},
      {"tnah", "tanh", true},
      {"get_tuple_element", "get-tuple-element", true},
      {"dynamic_update_slice", "dynamic-update-slice", true},
      {"shift-rigth-aritmetic", "shift-right-arithmetic", true},
      {"reduce-windows", "reduce-window", true},
      {"fusoin-start", "fusion-start", true},
      {"fusion-strat", "fusion-start", true},
      {"al-reduce-done", "all-reduce-done", true},
      {"max", "maximum", true},
      {"sin", "sine", true},
      {"cos", "cosine", true},
      {"mul", "multiply", false},
      {"exp", "exponential", false},
      {"sigmoid", "logistic", false},
      {"neg", "negate", false},
      {"population-count", "popcnt", false},
      {"relu", NULL, false},
      {"gelu", NULL, false},
      {"foo", NULL, false},
      {"f", NULL, false},
      {"foo-done", NULL, false},
      {"frobnicate", NULL, false},
      {"a-very-long-opcode-that-nobody-has-ever-seen-and-that-goes-on-and-on", NULL, false},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    char text[400], want[200];
    kiln_module *m = NULL;
    snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = f32[] %s(p)\n}\n",
             rows[i].opcode);
    kiln_diagnostics_clear(cx);
    kiln_status s = kiln_module_parse(cx, "test", text, strlen(text), &m);
    ck_assert_msg((s != KILN_OK) == rows[i].refused, "%s", text);
    ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
    snprintf(want, sizeof want,
             rows[i].refused   ? "expected an opcode, found '%s'; the most similar one is '%s'"
             : rows[i].similar ? "the opcode '%s' is not known and kept as text; HLO has '%s'"
                               : "the opcode '%s' is not known and kept as text",
             rows[i].opcode, rows[i].similar);
    ck_assert_str_eq(d->message, want);
    ck_assert_int_eq(d->severity, rows[i].refused ? KILN_ERROR : KILN_WARNING);
    ck_assert(d->line == 4 && d->column == 18);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Each name once.
START_TEST(unknown_opcodes_are_warned_of_once) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  a = f32[] foo(p)\n  b = f32[] bar(a)\n"
                         "  ROOT r = f32[] foo(b)\n}\n");
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 2);
  ck_assert_uint_eq(kiln_diagnostics_get(cx, 0)->line, 4);
  ck_assert_uint_eq(kiln_diagnostics_get(cx, 1)->line, 5);
  kiln_module_destroy(&m);
}
END_TEST

// Other forms of programs, as JAX prints and writes them.
START_TEST(foreign_text_is_told) {
  static const struct {
    const char *text;
    size_t size;
    const char *kind;
  } rows[] = {
#define ROW(text, kind) {text, sizeof(text) - 1, kind}
      ROW("module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main(%arg0: tensor<4xf32>) "
          "-> "
          "tensor<4xf32> {\n    %0 = stablehlo.tanh %arg0 : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n",
          "MLIR (StableHLO)"),
      ROW("// c\nmodule {\n  func.func @main() { return }\n}\n", "MLIR (StableHLO)"),
      ROW("#loc1 = loc(\"x\")\nmodule @jit_f {\n}\n", "MLIR (StableHLO)"),
      ROW("func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n  return %arg0 : tensor<4xf32>\n}\n",
          "MLIR (StableHLO)"),
      ROW("{ lambda ; a:f32[4]. let b:f32[4] = tanh a in (b,) }\n", "a jaxpr"),
      ROW("{ \x1b[34m\x1b[22m\x1b[1mlambda \x1b[39m\x1b[22m\x1b[22m; a\x1b[35m:f32[4]\x1b[39m. let in (a,) }\n",
          "a jaxpr"),
      ROW("\x0a\x0bjit__lambda\x12\x06main.1\x1a\x95\x03\x0a\x06main.1\x12\x34\x0a\x03x.1\x12\x09parameter",
          "binary data, such as a serialized HloModuleProto"),
      ROW("\x0a\x97\x04\x0a\x0bjit__lambda\x12\x06main.1", "binary data, such as a serialized HloModuleProto"),
      ROW("\0\0\0\0", "binary data, such as a serialized HloModuleProto"),
      ROW("ML\xefR\x0dStableHLO_v1.0", "MLIR bytecode"),
      ROW("hlo_module {\n  name: \"jit_f\"\n}\n", "the text form of a protocol buffer"),
      ROW("name: \"jit_f\"\nentry_computation_name: \"main\"\n", "the text form of a protocol buffer"),
#undef ROW
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    char want[400];
    expect_invalid(rows[i].text, rows[i].size);
    ck_assert_msg(kiln_diagnostics_count(cx) == 1, "row %zu: %s", i, first_text());
    snprintf(want, sizeof want,
             "expected HLO text, found %s; JAX gives HLO text by jax.jit(f).lower(x).compile().as_text(), or as it is "
             "before any optimization by jax.jit(f).lower(x).as_text(dialect=\"hlo\")",
             rows[i].kind);
    ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->message, want);
  }
  expect_canonical("module { ROOT p = f32[] parameter(0) }",
                   "HloModule module_module\n\nENTRY %module {\n  ROOT %p = f32[] parameter(0)\n}\n");
}
END_TEST

// What a signature says does not count, but is told.
START_TEST(signatures_are_warned_of) {
  static const struct {
    const char *signature, *warning;
  } rows[] = {
      {"(p: f32[2]) -> f32[]", "the signature of 'e' says f32[2] for parameter 0, its body f32[]: the body counts"},
      {"(p: f32[], q: f32[]) -> f32[]", "the signature of 'e' says 2 parameters, its body has 1: the body counts"},
      {"(p: f32[]) -> s32[]", "the signature of 'e' says the result s32[], its body f32[]: the body counts"},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    char text[200];
    snprintf(text, sizeof text, "HloModule m\nENTRY e %s {\n  ROOT p = f32[] parameter(0)\n}\n", rows[i].signature);
    kiln_diagnostics_clear(cx);
    expect_canonical(text, "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n");
    ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
    ck_assert_int_eq(d->severity, KILN_WARNING);
    ck_assert_str_eq(d->message, rows[i].warning);
    ck_assert(d->line == 2 && d->column == 9);
  }
}
END_TEST

START_TEST(directions_are_told_apart) {
  for (int d = KL_EQ; d <= KL_GE; d++) {
    static const char *const names[] = {
        [KL_EQ] = "EQ", [KL_NE] = "NE", [KL_LT] = "LT", [KL_LE] = "LE", [KL_GT] = "GT", [KL_GE] = "GE"};
    static const char *const types[] = {
        [KL_CMP_FLOAT] = ", type=FLOAT", [KL_CMP_TOTALORDER] = ", type=TOTALORDER", [KL_CMP_DEFAULT] = ""};
    char text[200];
    snprintf(text, sizeof text,
             "HloModule m\nENTRY e { p = f32[] parameter(0) ROOT r = compare(p, p), direction=%s%s }", names[d],
             types[d % 3]);
    kiln_module *m = parse(text);
    ck_assert_int_eq(kl_root(&m->comp[0])->direction, d);
    ck_assert_int_eq(kl_root(&m->comp[0])->compare_type, d % 3);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Layouts that differ in one field are different shapes.
START_TEST(layout_fields_count) {
  static const char *const layouts[] = {
      "",         "{0}",        "{0:D(D)}",   "{0:D(C)}", "{0:T(2)}", "{0:T(4)}",    "{0:T(2)(2)}",  "{0:T(*,2)}",
      "{0:L(2)}", "{0:#(u32)}", "{0:*(u32)}", "{0:E(4)}", "{0:S(1)}", "{0:SC(0:1)}", "{0:P(f32[])}", "{0:M(8)}"};
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n");
  for (size_t i = 0; i < KL_COUNT(layouts); i++) kl_sbf(&b, "  p%zu = f32[4]%s parameter(%zu)\n", i, layouts[i], i);
  kl_sbf(&b, "  q = f32[<=4] parameter(%zu)\n}\n", KL_COUNT(layouts));
  kiln_module *m = parse_n(b.p, b.n);
  const kl_comp *c = &m->comp[0];
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t k = 0; k < i; k++) ck_assert_msg(c->instr[i].shape != c->instr[k].shape, "%u is %u", i, k);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

START_TEST(uses_in_unknown_operands_count) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  q = f32[2] constant({1,2})\n"
                         "  ROOT r = f32[] foo(f32[2]{0} q /* c */, {p}, 7, \"p, q\", p)\n}\n");
  const kl_instr *r = kl_root(&m->comp[0]);
  ck_assert_uint_eq(r->noperands, 2);
  ck_assert_uint_eq(r->operands[0], 1);
  ck_assert_uint_eq(r->operands[1], 0);
  ck_assert(kl_str_is(r->raw_operands, "f32[2]{0} q, {p}, 7, \"p, q\", p"));
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(interface_is_told) {
  kiln_module *m =
      parse("HloModule jit_f.1\nf { ROOT p = f32[] parameter(0) }\nENTRY e {\n  p = bf16[6,512]{0,1} parameter(0)\n"
            "  t = (f32[], s32[2]) parameter(1)\n  d = f32[<=4] parameter(2)\n  c = s4[3] constant({1,2,3})\n"
            "  u = (s32[2], s4[3]) foo(t)\n  ROOT r = (bf16[6,512], (s32[2], s4[3]), ()) foo(p, u)\n}\n");
  kiln_array_type t;
  ck_assert_str_eq(kiln_module_name(m), "jit_f.1");
  ck_assert_uint_eq(kiln_module_computation_count(m), 2);
  ck_assert_uint_eq(kiln_module_instruction_count(m), 7);
  ck_assert_uint_eq(kiln_module_parameter_count(m), 3);
  ck_assert(kiln_module_parameter_leaf_type(m, 0, &t));
  ck_assert(t.dtype == KILN_BF16 && t.rank == 2 && t.dims[0] == 6 && t.dims[1] == 512);
  ck_assert_str_eq(kiln_module_parameter_name(m, 1), "t");
  ck_assert_str_eq(kiln_module_parameter_name(m, 3), "");
  ck_assert_uint_eq(kiln_module_parameter_leaf_count(m), 4);
  ck_assert(kiln_module_parameter_leaf_type(m, 1, &t) && t.dtype == KILN_F32 && t.rank == 0);
  ck_assert(kiln_module_parameter_leaf_type(m, 2, &t) && t.dtype == KILN_S32 && t.rank == 1 && t.dims[0] == 2);
  ck_assert(kiln_module_parameter_leaf_type(m, 3, &t) && t.rank == 1 && t.dims[0] == 4); // the bound of what is dynamic
  ck_assert(!kiln_module_parameter_leaf_type(m, 4, &t));
  ck_assert_uint_eq(kiln_module_result_leaf_count(m), 3);
  ck_assert(kiln_module_result_leaf_type(m, 2, &t));
  ck_assert(t.dtype == KILN_S4 && t.rank == 1 && t.dims[0] == 3);
  ck_assert(!kiln_module_result_leaf_type(m, 3, &t));
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(fusions_are_listed) {
  kiln_module *m =
      parse("HloModule m\nf { ROOT p = f32[] parameter(0) }\ng { p = f32[] parameter(0) ROOT i = f32[] fusion(p), "
            "kind=kLoop, calls=f }\nENTRY e {\n  p = f32[] parameter(0)\n  b.1 = f32[] fusion(p), kind=kLoop, calls=f\n"
            "  n = f32[] negate(p)\n  a = f32[] fusion(n), kind=kLoop, calls=g\n  ROOT c = f32[] add(a, b.1)\n}\n");
  const char *names[3] = {"", "", "untouched"};
  ck_assert_uint_eq(kiln_module_fusions(m, NULL, 0), 2);
  ck_assert_uint_eq(kiln_module_fusions(m, names, 1), 2);
  ck_assert_str_eq(names[0], "b.1");
  ck_assert_str_eq(names[1], "");
  ck_assert_uint_eq(kiln_module_fusions(m, names, 3), 2);
  ck_assert_str_eq(names[1], "a");
  ck_assert_str_eq(names[2], "untouched");
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(header_is_read) {
  kiln_module *m = parse(
      "HloModule m, entry_computation_layout={(f32[2]{0}, (s32[], f32[]))->(f32[2]{0}, f32[])}, is_scheduled=true, "
      "input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {1}) }, buffer_donor={ (1, {0}) }, replica_count=2, "
      "num_partitions=4\nENTRY e {\n  p = f32[2] parameter(0)\n  q = (s32[], f32[]) parameter(1)\n"
      "  g = f32[] get-tuple-element(q), index=1\n  ROOT t = (f32[2], f32[]) tuple(p, g)\n}\n");
  const kl_header *h = &m->header;
  ck_assert(h->is_scheduled && h->replica_count == 2 && h->num_partitions == 4);
  ck_assert_uint_eq(h->nparams, 2);
  ck_assert(h->params[0]->layout.present && h->params[1]->nelems == 2 && h->result->nelems == 2);
  ck_assert_uint_eq(h->naliases, 2);
  ck_assert(h->aliases[0].must && h->aliases[0].param == 0 && h->aliases[0].path.n == 0);
  ck_assert(h->aliases[0].result.n == 1 && h->aliases[0].result.p[0] == 0);
  ck_assert(!h->aliases[1].must && h->aliases[1].param == 1 && h->aliases[1].path.n == 1);
  ck_assert(h->aliases[1].path.p[0] == 1 && h->aliases[1].result.p[0] == 1);
  ck_assert_uint_eq(h->ndonors, 1);
  ck_assert(h->donors[0].param == 1 && h->donors[0].path.n == 1 && h->donors[0].path.p[0] == 0);
  kiln_module_destroy(&m);
  m = parse("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }");
  ck_assert(!m->header.is_scheduled && !m->header.result && !m->header.naliases && !m->header.ndonors);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(literals_are_read) {
  kiln_module *m =
      parse("HloModule m\nENTRY e {\n  a = f32[4] constant({...})\n  b = (f32[], f32[4]) constant((1, {...}))\n"
            "  c = ((f32[], ()), s32[2], pred[0,3]) constant(((7, ()), {8, 9}, {}))\n"
            "  ROOT t = f32[] constant(5)\n}\n");
  const kl_instr *in = m->comp[0].instr;
  ck_assert(!in[0].literal && kl_str_is(in[0].raw_operands, "{...}"));
  ck_assert(!in[1].literal && kl_str_is(in[1].raw_operands, "(1, {...})"));
  ck_assert(in[2].literal && !in[2].raw_operands.n);
  ck_assert_float_eq(*(const float *)in[2].literal[0].data, 7);
  ck_assert_int_eq(((const int32_t *)in[2].literal[1].data)[1], 9);
  ck_assert_ptr_eq(in[2].literal[2].shape, in[2].shape->elems[2]);
  kiln_module_destroy(&m);
}
END_TEST

// --- shapes -------------------------------------------------------------------------------------------------------

START_TEST(shapes_are_one_pointer) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  a = f32[2,3] parameter(0)\n  b = f32[2,3]{1,0} parameter(1)\n"
                         "  c = f32[2,3]{0,1} parameter(2)\n  d = (f32[2,3], (f32[2,3]{0,1})) parameter(3)\n"
                         "  e = f32[ 2, 3 ] parameter(4)\n  f = (f32[2,3], (f32[2,3]{0,1})) parameter(5)\n"
                         "  g = s4[5]{0:E(4)} parameter(6)\n  h = f32[2,3]{1,0:T(2)} parameter(7)\n}\n");
  const kl_instr *in = m->comp[0].instr;
  ck_assert_ptr_eq(in[0].shape, in[4].shape);
  ck_assert_ptr_eq(in[3].shape, in[5].shape);
  ck_assert_ptr_ne(in[0].shape, in[1].shape);
  ck_assert_ptr_eq(in[3].shape->elems[0], in[0].shape);
  ck_assert_ptr_eq(kl_shape_array(m, KILN_F32, 2, (int64_t[]){2, 3}), in[0].shape);
  ck_assert(kl_shape_compatible(in[0].shape, in[2].shape));
  ck_assert(!kl_shape_compatible(in[0].shape, in[6].shape));
  ck_assert(kl_shape_default_layout(in[0].shape) && kl_shape_default_layout(in[1].shape));
  ck_assert(!kl_shape_default_layout(in[2].shape) && !kl_shape_default_layout(in[7].shape));
  ck_assert(kl_shape_default_layout(in[6].shape));
  ck_assert_int_eq(kl_shape_minor_to_major(in[0].shape, 0), 1);
  ck_assert_int_eq(kl_shape_minor_to_major(in[2].shape, 0), 0);
  ck_assert_int_eq(kl_shape_bytes(in[0].shape), 24);
  ck_assert_int_eq(kl_shape_bytes(in[6].shape), 3);
  ck_assert_int_eq(kl_shape_bytes(in[3].shape), -1);
  ck_assert_uint_eq(kl_shape_leaf_count(in[3].shape), 2);
  ck_assert_ptr_eq(kl_shape_leaf(in[3].shape, 1), in[2].shape);
  ck_assert_ptr_eq(kl_shape_leaf(in[0].shape, 0), in[0].shape);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(shape_sizes_are_bounded) {
  kiln_module *m = parse("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }");
  ck_assert_ptr_nonnull(kl_shape_array(m, KILN_F32, 1, (int64_t[]){(1ll << 60) - 1}));
  ck_assert_ptr_null(kl_shape_array(m, KILN_F32, 1, (int64_t[]){1ll << 60}));
  ck_assert_ptr_null(kl_shape_array(m, KILN_S8, 1, (int64_t[]){1ll << 62}));
  ck_assert_ptr_null(kl_shape_array(m, KILN_S8, 1, (int64_t[]){-1}));
  ck_assert_ptr_null(kl_shape_array(m, KILN_C128, 1, (int64_t[]){1ll << 59}));
  ck_assert_ptr_null(kl_shape_array(m, KILN_F32, 3, (int64_t[]){0, 1ll << 40, 1ll << 40}));
  const kl_shape *t = kl_shape_array(m, KILN_F32, 0, NULL);
  for (int i = 0; i < 24; i++) ck_assert_ptr_nonnull(t = kl_shape_tuple(m, 2, (const kl_shape *[]){t, t}));
  ck_assert_uint_eq(kl_shape_leaf_count(t), 1u << 24);
  ck_assert_ptr_null(kl_shape_tuple(m, 2, (const kl_shape *[]){t, t}));
  t = kl_shape_tuple(m, 0, NULL);
  for (int i = 1; i < 100; i++) ck_assert_ptr_nonnull(t = kl_shape_tuple(m, 1, &t));
  ck_assert_ptr_null(kl_shape_tuple(m, 1, &t));
  kiln_module_destroy(&m);
}
END_TEST

// --- malformed text -----------------------------------------------------------------------------------------------

#define MALFORMED_HEAD                                                                                                 \
  "HloModule m\nENTRY e {\n  a = f32[2,3] parameter(0)\n  b = f32[2,3] parameter(1)\n  i = s32[4] parameter(2)\n"      \
  "  c = c64[2] parameter(3)\n  s = f32[] parameter(4)\n  p = pred[2,3] parameter(5)\n"                                \
  "  t = (f32[2,3], s32[]) parameter(6)\n  "

static void expect_told(const malformed_case *row) {
  const char *head = row->body ? MALFORMED_HEAD : "", *tail = row->body ? "\n}\n" : "";
  size_t size = strlen(head) + row->size + strlen(tail);
  char *text = malloc(size ? size : 1); // without a NUL: reading behind the end is seen
  memcpy(text, head, strlen(head));
  memcpy(text + strlen(head), row->text, row->size);
  memcpy(text + strlen(head) + row->size, tail, strlen(tail));
  expect_invalid(text, size);
  const kiln_diagnostic *d = first_error();
  ck_assert_msg(d->line == row->line && d->column == row->column, "%s\nexpected at %u:%u\n%s", row->text, row->line,
                row->column, d->text);
  ck_assert_msg(strstr(d->message, row->message), "%s\nexpected: %s\nfound: %s", row->text, row->message, d->message);
  ck_assert_msg(errors() == row->findings, "%s\nexpected %zu findings, found %zu", row->text, row->findings, errors());
  ck_assert_str_eq(d->file, "test");
  ck_assert_int_eq(d->status, KILN_E_INVALID);
  free(text);
}

START_TEST(malformed_is_told) {
  expect_told(&malformed_cases[_i]);
}
END_TEST

START_TEST(malformed_text_is_told) {
  expect_told(&malformed_text[_i]);
}
END_TEST

START_TEST(many_findings_come_at_once) {
  const char *text = "HloModule m\n"
                     "f {\n"
                     "  p = f32[2,3 parameter(0)\n"  // 3:15
                     "  ROOT r = f32[2] negate(q)\n" // 4:26
                     "}\n"
                     "ENTRY e {\n"
                     "  p = f32[2] parameter(0)\n"
                     "  v = f32[2] negate(w), when={\n" // an attribute over several lines
                     "    now}\n"
                     "  w = f33[2] negate(p)\n"                // 10:7
                     "  x = f32[2] add(p, w)\n"                // not complained about: w was
                     "  y = f32[3] add(p, p)\n"                // 12:14
                     "  ROOT z = f32[3] call(y), to_apply=f\n" // not: f was
                     "}, \n";                                  // 15:1
  static const uint32_t places[][2] = {{3, 15}, {4, 26}, {10, 7}, {12, 14}, {15, 1}};
  expect_invalid(text, strlen(text));
  size_t k = 0;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    if (d->severity != KILN_ERROR) continue;
    ck_assert_msg(k < KL_COUNT(places) && d->line == places[k][0] && d->column == places[k][1], "finding %zu: %s", k,
                  d->text);
    k++;
  }
  ck_assert_uint_eq(k, KL_COUNT(places));
}
END_TEST

START_TEST(carets_point) {
  const char *text = "HloModule m\nENTRY e {\n  r = f32[2] negate(q)\n}\n";
  expect_invalid(text, strlen(text));
  ck_assert_str_eq(first_text(),
                   "test:3:21: error: expected the name of an instruction of 'e', found 'q'; the most similar "
                   "name is 'r'\n      r = f32[2] negate(q)\n                        ^\n");
}
END_TEST

// Prefixes of a text are refused, but those that only lack white space at the end.
START_TEST(prefixes_are_refused) {
  char text[4000];
  uint64_t number = 0;
  for (size_t row = 0; row < KL_COUNT(instructions); row += 7) {
    wrap(text, sizeof text, instructions[row][1], true);
    size_t size = strlen(text), whole = size - 1;
    for (size_t n = 0; n <= size; n++) {
      if (!share_has(number++, 3) && n < whole) continue;
      char *part = malloc(n ? n : 1);
      memcpy(part, text, n);
      kiln_module *m = NULL;
      kiln_diagnostics_clear(cx);
      // The first computation is a module of its own once it is closed; so is the text before ENTRY's next byte.
      kiln_status s = kiln_module_parse(cx, "test", part, n, &m);
      if (n >= whole) ck_assert_int_eq(s, KILN_OK);
      if (s != KILN_OK) ck_assert(errors() > 0 && !m);
      kiln_module_destroy(&m);
      free(part);
    }
  }
}
END_TEST

// --- monsters -----------------------------------------------------------------------------------------------------

static char *repeat(const char *head, const char *unit, size_t n, const char *tail, size_t *size) {
  size_t h = strlen(head), u = strlen(unit), t = strlen(tail);
  char *text = malloc(h + n * u + t);
  memcpy(text, head, h);
  for (size_t i = 0; i < n; i++) memcpy(text + h + i * u, unit, u);
  memcpy(text + h + n * u, tail, t);
  *size = h + n * u + t;
  return text;
}

static const char *const monsters[][3] = {
    {"HloModule m\nENTRY e {\n  x = ", "(", "\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[] foo(", "(", ")\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[] foo(), a=", "{", "\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[2] constant(", "{", "})\n}\n"},
    {"HloModule m\nENTRY e {\n  x = c64[] constant(", "(", ")\n}\n"},
    {"HloModule m\nENTRY e {\n  x = (f32[2]) constant(", "(", ")\n}\n"},
    {"HloModule m\nENTRY e (p: ", "(", ") -> f32[] {\n}\n"},
    {"HloModule m, a=", "[", "\n"},
    {"HloModule m", "{", "\n"},
    {"", "(", ""},
    {"HloModule m\nENTRY e {\n  x = f32[", "1,", "1] iota(), iota_dimension=0\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[1]{0:T", "(1)", "T} iota(), iota_dimension=0\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[1]{0:SC", "(1)", "X} iota(), iota_dimension=0\n}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] y\n", "}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] negate(y)\n", "}\n"},
    {"HloModule m\n", "e {\n}\n", ""},
    {"HloModule m\n", "/* ", ""},
    {"HloModule m\nENTRY e {\n  ROOT x = f32[] foo(), a=\"", "\\", "\n}\n"},
    {"HloModule m\nENTRY e {\n  ROOT x = f32[", "9", "] foo()\n}\n"},
    {"HloModule m\nENTRY e {\n  ROOT x = f32[] constant(", "x", ")\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[] ", "add(", "\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[] call(), ", "to_apply={ y = f32[] call(), ", "\n}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] call(), to_apply={\n", "}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] call(), to_apply={ }\n", "}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] foo(), a={\"b\": {\n", "}\n"},
    {"HloModule m\nENTRY e {\n", "  x = f32[] foo(), a='\\'\\'\n", "}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[] call(), to_apply={", "\"\\\"", "\n}\n"},
    {"HloModule m", ", is_scheduled=true", "\n"},
    {"HloModule m, input_output_alias=", "{", "\n"},
    {"HloModule m, buffer_donor={", "(0,{}),", "}\n"},
    {"HloModule m\nFileNames\n", "1 \"a\"\n", ""},
    {"", "x = f32[2] add(f32[2], f32[2] y)\n", ""},
    {"x = f32[2] add(", "f32[2],", "f32[2] y)\n"},
    {"x = f32[2] add(", "add(f32[2] y),", "f32[2] y)\n"},
    {"HloModule m\nENTRY e {\n  x = (f32[2]) constant((", "{", ")\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[2] constant({", "...,", "\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[", "?,", "1] foo()\n}\n"},
    {"HloModule m\nENTRY e {\n  x = f32[1] custom-call(), custom_call_target=\"c\", dim_labels=b", "?",
     "f_io->bf\n}\n"},
};

START_TEST(monsters_are_refused) {
  size_t size;
  char *text = repeat(monsters[_i][0], monsters[_i][1], share_up_to(250000, 100000000), monsters[_i][2], &size);
  expect_invalid(text, size);
  free(text);
}
END_TEST

START_TEST(wide_tuples_parse) {
  int N = (int)share_up_to(300000, 10000000);
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n  c = f32[] constant(1)\n  ROOT t = (");
  for (int i = 0; i < N; i++) kl_sb_puts(&b, i ? ",f32[]" : "f32[]");
  kl_sb_puts(&b, ") tuple(");
  for (int i = 0; i < N - 1; i++) kl_sb_puts(&b, "c,");
  size_t common = b.n;
  kl_sb_puts(&b, "c)\n}\n");
  kiln_module *m = parse_n(b.p, b.n);
  ck_assert_uint_eq(kiln_module_result_leaf_count(m), N);
  kiln_module_destroy(&m);
  b.n = common;
  kl_sb_puts(&b, "c,c)\n}\n");
  expect_invalid(b.p, b.n);
  kl_sb_free(&b);
}
END_TEST

// Calls fifty thousand deep, and a cycle as long: order and recursion are found without recursing.
START_TEST(deep_calls_parse) {
  enum { N = 50000 };
  kl_sb b;
  for (int cycle = 0; cycle < 2; cycle++) {
    kl_sb_init(&b, cx);
    kl_sb_puts(&b, "HloModule m\n");
    for (int i = 0; i < N; i++)
      kl_sbf(&b, "c%d { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c%d }\n", i,
             i + 1 < N || cycle ? (i + 1) % N : N);
    if (!cycle) kl_sbf(&b, "c%d { ROOT p = f32[] parameter(0) }\n", N);
    if (cycle) {
      expect_invalid(b.p, b.n);
      ck_assert_ptr_nonnull(strstr(first_text(), "recursion"));
    } else {
      kiln_module *m = parse_n(b.p, b.n);
      ck_assert_uint_eq(m->entry, 0);
      ck_assert_uint_eq(m->comp[N].instr[1].called[0], N - 1);
      kiln_module_destroy(&m);
    }
    kl_sb_free(&b);
  }
}
END_TEST

// Refuses blocks above a limit; a hook sees the sizes that were asked for.
static void *limited_resize(void *user, void *p, size_t old_size, size_t size) {
  if (size > *(size_t *)user) return NULL;
  if (size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, size);
}

START_TEST(short_memory_is_a_status) {
  size_t limit = 2 << 20, size;
  kiln_context *small = kiln_context_create(&(kiln_context_params){
      .struct_size = sizeof(kiln_context_params), .allocator = {.user = &limit, .resize = limited_resize}});
  char *text = repeat("HloModule m\nENTRY e {\n  x = c128[200000] constant({", "(0,0),", 199999, "(0,0)})\n}\n", &size);
  kiln_module *m = NULL;
  ck_assert_int_eq(kiln_module_parse(small, "test", text, size, &m), KILN_E_MEMORY);
  ck_assert_ptr_null(m);
  limit = 1 << 20;
  ck_assert_int_eq(kiln_module_parse(small, "test", text, size, &m), KILN_E_MEMORY);
  ck_assert_uint_eq(kiln_diagnostics_count(small), 2);
  limit = 64 << 20;
  ck_assert_int_eq(kiln_module_parse(small, "test", text, size, &m), KILN_OK);
  limit = 8 << 20;
  char *again;
  ck_assert_int_eq(kiln_module_print(small, m, &again, &size), KILN_E_MEMORY);
  limit = 64 << 20;
  ck_assert_int_eq(kiln_module_print(small, m, &again, &size), KILN_OK);
  kiln_text_free(small, again, size);
  kiln_module_destroy(&m);
  kiln_context_destroy(&small);
  free(text);
}
END_TEST

// --- checking modules made otherwise ------------------------------------------------------------------------------

static kiln_module *two_computations(void) {
  return parse(
      "HloModule m\nf { p = f32[2] parameter(0) ROOT r = f32[2] negate(p) }\nENTRY e {\n  p = f32[2] parameter(0)\n"
      "  q = f32[2] parameter(1)\n  c = f32[2] call(p), to_apply=f\n  ROOT r = f32[2] add(c, q)\n}\n");
}

static void break_root(kiln_module *m) {
  m->comp[1].root = 4;
}
static void break_entry(kiln_module *m) {
  m->entry = 2;
}
static void break_order(kiln_module *m) {
  ((uint32_t *)m->comp[1].instr[2].operands)[0] = 3;
}
static void break_number(kiln_module *m) {
  m->comp[1].instr[1].number = 0;
}
static void break_params(kiln_module *m) {
  m->comp[1].nparams = 1;
}
static void break_call(kiln_module *m) {
  *(uint32_t *)m->comp[1].instr[2].called = 1;
}
static void break_arity(kiln_module *m) {
  m->comp[1].instr[3].noperands = 1;
}
static void break_shape(kiln_module *m) {
  m->comp[1].instr[3].shape = kl_shape_array(m, KILN_F32, 0, NULL);
}
static void break_nothing(kiln_module *m) {}

static const struct {
  void (*damage)(kiln_module *m);
  const char *message;
} damages[] = {
    {break_root, "expected a root"},
    {break_entry, "entry computation"},
    {break_order, "to be defined before it"},
    {break_number, "each number from 0 to 1 once, found 0"},
    {break_params, "each number from 0 to 0 once, found 1"},
    {break_call, "complete before 'e', found itself"},
    {break_arity, "add: expected 2 operands, found 1"},
    {break_shape, "add: expected the result type f32[2], found f32[]"},
    {break_nothing, NULL},
};

START_TEST(verify_finds) {
  kiln_module *m = two_computations();
  damages[_i].damage(m);
  kiln_status s = kl_verify(m);
  if (damages[_i].message) {
    ck_assert_int_eq(s, KILN_E_INVALID);
    ck_assert_msg(strstr(first_text(), damages[_i].message), "%s", first_text());
  } else {
    ck_assert_int_eq(s, KILN_OK);
    ck_assert_uint_eq(kiln_diagnostics_count(cx), 0);
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS(
      "ir", EACH(setup, teardown), {instruction_prints, KL_COUNT(instructions)}, {module_prints, KL_COUNT(modules)},
      {every_op_is_tried}, {op_names_are_found}, {unknown_attributes_are_warned_of}, {directions_are_told_apart},
      {layout_fields_count}, {uses_in_unknown_operands_count}, {interface_is_told}, {fusions_are_listed},
      {header_is_read}, {literals_are_read}, {shapes_are_one_pointer}, {shape_sizes_are_bounded},
      {malformed_is_told, KL_COUNT(malformed_cases)}, {malformed_text_is_told, KL_COUNT(malformed_text)},
      {many_findings_come_at_once}, {carets_point}, {prefixes_are_refused}, {monsters_are_refused, KL_COUNT(monsters)},
      {wide_tuples_parse}, {deep_calls_parse}, {short_memory_is_a_status}, {verify_finds, KL_COUNT(damages)},
      {lines_do_not_matter, KL_COUNT(instructions)}, {signatures_are_warned_of}, {misspelt_opcodes_are_told},
      {unknown_opcodes_are_warned_of_once}, {foreign_text_is_told});
}

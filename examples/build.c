// A graph built call by call: softmax of every row. Prints it as HLO and evaluates it.
#include <kiln/kiln.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 2, COLUMNS = 4 };

// The computation that folds a row: `opcode` of two scalars.
static kiln_computation build_fold(kiln_builder *b, const char *opcode) {
  kiln_builder_begin(b, opcode);
  kiln_type scalar = kiln_type_text(b, "f32[]");
  kiln_value x = kiln_build_parameter(b, 0, scalar, "x"), y = kiln_build_parameter(b, 1, scalar, "y");
  return kiln_builder_end(b, kiln_build(b, opcode, KILN_VALUES(x, y), KILN_NO_TYPE, KILN_NONE), false);
}

// Folds each row of `x`, starting from `start`, and gives every element of a row the result.
static kiln_value build_by_row(kiln_builder *b, kiln_value x, kiln_computation fold, double start) {
  kiln_value s = kiln_build_scalar(b, KILN_F32, start);
  kiln_value folded = kiln_build(b, "reduce", KILN_VALUES(x, s), KILN_NO_TYPE,
                                 KILN_ATTRS(KILN_INTS("dimensions", 1), KILN_COMP("to_apply", fold)));
  return kiln_build(b, "broadcast", KILN_VALUES(folded), kiln_type_of(b, x), KILN_ATTRS(KILN_INTS("dimensions", 0)));
}

static kiln_status build_softmax(kiln_context *cx, kiln_module **out) {
  kiln_builder *b = kiln_builder_create(cx, "softmax");
  kiln_computation max = build_fold(b, "maximum"), sum = build_fold(b, "add");
  kiln_builder_begin(b, "main");
  kiln_type type = kiln_type_array(b, &(kiln_array_type){KILN_F32, 2, {ROWS, COLUMNS}});
  kiln_value x = kiln_build_parameter(b, 0, type, "x");
  kiln_value shifted =
      kiln_build(b, "subtract", KILN_VALUES(x, build_by_row(b, x, max, -INFINITY)), KILN_NO_TYPE, KILN_NONE);
  kiln_value e = kiln_build(b, "exponential", KILN_VALUES(shifted), KILN_NO_TYPE, KILN_NONE);
  kiln_value y = kiln_build(b, "divide", KILN_VALUES(e, build_by_row(b, e, sum, 0)), KILN_NO_TYPE,
                            KILN_ATTRS(KILN_NAMED("y"), KILN_RAW("metadata", "{op_name=\"softmax\"}")));
  kiln_builder_end(b, y, true);
  kiln_status status = kiln_builder_finish(b, out); // the first mistake of all these calls would show here
  kiln_builder_destroy(&b);
  return status;
}

int main(void) {
  float x[ROWS][COLUMNS] = {{1, 2, 3, 4}, {0, -1, 100, 99}}, y[ROWS][COLUMNS] = {{0}};
  const void *parameters[] = {x};
  void *results[] = {y};
  kiln_module *module = NULL;
  char *text = NULL;
  size_t size = 0;
  kiln_context *cx = kiln_context_create(NULL);
  if (!cx) return 1;

  bool ok = build_softmax(cx, &module) == KILN_OK && kiln_module_print(cx, module, &text, &size) == KILN_OK &&
            kiln_module_eval(cx, module, parameters, results, NULL) == KILN_OK;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  if (ok) fputs(text, stdout);
  for (int i = 0; ok && i < ROWS; i++) {
    float total = 0;
    for (int k = 0; k < COLUMNS; k++) total += y[i][k];
    for (int k = 0; k < COLUMNS; k++) printf("%-12.6g", (double)y[i][k]);
    printf("sum %.6g\n", (double)total);
    ok = total > 0.999999f && total < 1.000001f;
  }

  kiln_text_free(cx, text, size);
  kiln_module_destroy(&module);
  kiln_context_destroy(&cx);
  return ok ? 0 : 1;
}

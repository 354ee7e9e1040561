// A graph built call by call in C++: softmax of every row. Prints it as HLO and evaluates it.
#include <cmath>
#include <cstdio>
#include <kiln/kiln.hpp>

namespace {

const int rows = 2, columns = 4;

// The computation that folds a row: `opcode` of two scalars.
kiln_computation build_fold(kiln_builder *b, const char *opcode) {
  kiln_builder_begin(b, opcode);
  kiln_type scalar = kiln::array(b, KILN_F32, {});
  kiln_value x = kiln_build_parameter(b, 0, scalar, "x"), y = kiln_build_parameter(b, 1, scalar, "y");
  return kiln_builder_end(b, kiln::build(b, opcode, {x, y}), false);
}

// Folds each row of `x`, starting from `start`, and gives every element of a row the result.
kiln_value build_by_row(kiln_builder *b, kiln_value x, kiln_computation fold, double start) {
  kiln_value s = kiln_build_scalar(b, KILN_F32, start);
  kiln_value folded =
      kiln::build(b, "reduce", {x, s}, {kiln::ints("dimensions", {1}), kiln::computation("to_apply", fold)});
  return kiln::build(b, "broadcast", {folded}, kiln_type_of(b, x), {kiln::ints("dimensions", {0})});
}

kiln::module_owner build_softmax(kiln_context *cx) {
  kiln::builder_owner b(kiln_builder_create(cx, "softmax"));
  kiln_computation max = build_fold(b, "maximum"), sum = build_fold(b, "add");
  kiln_builder_begin(b, "main");
  kiln_value x = kiln_build_parameter(b, 0, kiln::array(b, KILN_F32, {rows, columns}), "x");
  kiln_value e = kiln::build(b, "exponential", {kiln::build(b, "subtract", {x, build_by_row(b, x, max, -INFINITY)})});
  kiln_builder_end(b, kiln::build(b, "divide", {e, build_by_row(b, e, sum, 0)}, {kiln::named("y")}), true);
  kiln::module_owner m;
  kiln_builder_finish(b, m.out()); // the first mistake of all these calls would show here
  return m;
}

} // namespace

int main() {
  const float x[rows][columns] = {{1, 2, 3, 4}, {0, -1, 100, 99}};
  float y[rows][columns];
  const void *parameters[] = {x};
  void *results[] = {y};
  kiln::context_owner cx(kiln_context_create(nullptr));
  kiln_eval_params p = kiln::params<kiln_eval_params>();
  p.threads = 1;

  kiln::module_owner module = build_softmax(cx);
  bool ok = module && kiln_module_eval(cx, module, parameters, results, &p) == KILN_OK;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) std::fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  if (ok) std::fputs(kiln::print(cx, module).c_str(), stdout);
  for (int i = 0; ok && i < rows; i++) {
    float total = 0;
    for (int k = 0; k < columns; k++) total += y[i][k];
    for (int k = 0; k < columns; k++) std::printf("%-12.6g", static_cast<double>(y[i][k]));
    std::printf("sum %.6g\n", static_cast<double>(total));
    ok = std::fabs(total - 1) < 1e-6f;
  }
  return ok ? 0 : 1;
}

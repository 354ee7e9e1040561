// The other file of the program.
#include <kiln/kiln.hpp>

std::string second_file(kiln_context *cx);
std::string second_file(kiln_context *cx) {
  kiln::builder_owner b(kiln_builder_create(cx, "two"));
  kiln::module_owner m;
  kiln_builder_begin(b, "e");
  kiln_builder_end(b, kiln_build_parameter(b, 0, kiln::array(b, KILN_F32, {}), "p"), true);
  kiln_builder_finish(b, m.out());
  return kiln::print(cx, m);
}

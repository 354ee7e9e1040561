// The C API from C++11: every form of attribute, types and constants, owners, params; in a program whose other file
// includes the header, too. Prints TAP.
#include <cstdio>
#include <functional>
#include <kiln/kiln.hpp>
#include <string>

std::string second_file(kiln_context *cx); // cplusplus_two.cpp

namespace {

int count, bad;

void check(bool ok, const std::string &name, const std::string &why) {
  std::printf("%s %d - %s\n", ok ? "ok" : "not ok", ++count, name.c_str());
  bad += !ok;
  if (!ok) std::printf("# %s\n", why.c_str());
}

std::string findings(kiln_context *cx) {
  std::string all;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) all += kiln_diagnostics_get(cx, i)->message;
  return all;
}

kiln_computation build_fold(kiln_builder *b) {
  kiln_builder_begin(b, "fold");
  kiln_type scalar = kiln_type_text(b, "f32[]");
  kiln_value x = kiln_build_parameter(b, 0, scalar, "x"), y = kiln_build_parameter(b, 1, scalar, "y");
  return kiln_builder_end(b, kiln::build(b, "add", {x, y}), false);
}

kiln_computation build_identity(kiln_builder *b, const char *name) {
  kiln_builder_begin(b, name);
  return kiln_builder_end(b, kiln_build_parameter(b, 0, kiln::array(b, KILN_F32, {}), "x"), false);
}

// What rows build of.
struct parts {
  kiln_builder *b;
  kiln_computation fold, one, other;
  kiln_value a, s, i; // f32[2,3], f32[], s32[]
  kiln_type type(const char *text) const { return kiln_type_text(b, text); }
};

struct row {
  const char *line; // of the text
  std::function<kiln_value(const parts &)> build;
};

const row rows[] = {
    {"transpose(%a), dimensions={1,0}",
     [](const parts &p) {
       return kiln::build(p.b, "transpose", {p.a}, {kiln::ints("dimensions", {1, 0})});
     }},
    {"reverse(%a), dimensions={}",
     [](const parts &p) { return kiln::build(p.b, "reverse", {p.a}, {kiln::ints("dimensions", {})}); }},
    {"broadcast(%s), dimensions={}",
     [](const parts &p) {
       return kiln::build(p.b, "broadcast", {p.s}, kiln::array(p.b, KILN_F32, {4}), {kiln::ints("dimensions", {})});
     }},
    {"s4[5] iota(), iota_dimension=0",
     [](const parts &p) {
       return kiln::build(p.b, "iota", {}, p.type("s4[5]"), {kiln::integer("iota_dimension", 0)});
     }},
    {"f32[2,3] add(%a, %a)",
     [](const parts &p) {
       return kiln::build(p.b, "add", {p.a, p.a});
     }},
    {"bf16[2,3] convert(%a)", [](const parts &p) { return kiln::build(p.b, "convert", {p.a}, p.type("bf16[2,3]")); }},
    {"slice(%a), slice={[0:2], [0:3:3]}",
     [](const parts &p) {
       return kiln::build(p.b, "slice", {p.a}, {kiln::slices({{0, 2, 0}, {0, 3, 3}})});
     }},
    {"pad(%a, %s), padding=1_0x-1_0_2",
     [](const parts &p) {
       return kiln::build(p.b, "pad", {p.a, p.s}, {kiln::padding({{1, 0, 0}, {-1, 0, 2}})});
     }},
    {"compare(%a, %a), direction=GE",
     [](const parts &p) {
       return kiln::build(p.b, "compare", {p.a, p.a}, {kiln::name("direction", "GE")});
     }},
    {"reduce(%a, %s), dimensions={1}, to_apply=%fold",
     [](const parts &p) {
       return kiln::build(p.b, "reduce", {p.a, p.s},
                          {kiln::ints("dimensions", {1}), kiln::computation("to_apply", p.fold)});
     }},
    {"conditional(%i, %s, %s), branch_computations={%one, %other}",
     [](const parts &p) {
       return kiln::build(p.b, "conditional", {p.i, p.s, p.s},
                          {kiln::computations("branch_computations", {p.one, p.other})});
     }},
    {"custom-call(%a), custom_call_target=\"a\\\"b\"",
     [](const parts &p) {
       return kiln::build(p.b, "custom-call", {p.a}, p.type("f32[]"), {kiln::text("custom_call_target", "a\"b")});
     }},
    {"operand_precision={highest,default}",
     [](const parts &p) {
       return kiln::build(p.b, "dot", {p.a, p.a},
                          {kiln::ints("lhs_contracting_dims", {1}), kiln::ints("rhs_contracting_dims", {1}),
                           kiln::names("operand_precision", {"highest", "default"})});
     }},
    {"channel_id=3, source_target_pairs={{0,1},{1,0}}",
     [](const parts &p) {
       return kiln::build(p.b, "collective-permute", {p.a},
                          {kiln::pairs("source_target_pairs", {{0, 1}, {1, 0}}), kiln::integer("channel_id", 3)});
     }},
    {"window={size=3x1 stride=2x1 pad=1_0x0_-1 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=1x0}, "
     "dim_labels=b01f_01io->b01f",
     [](const parts &p) {
       return kiln::build(p.b, "custom-call", {}, p.type("f32[]"),
                          {kiln::text("custom_call_target", "f"), kiln::dim_labels("b01f_01io->b01f"),
                           kiln::window({{3, 2, 1, 0, 0, 3, true}, {1, 0, 0, -1, 2, 0, false}})});
     }},
    {"custom_call_has_side_effect=true",
     [](const parts &p) {
       return kiln::build(p.b, "custom-call", {p.a}, p.type("f32[]"),
                          {kiln::text("custom_call_target", "f"), kiln::boolean("custom_call_has_side_effect", true)});
     }},
    {"outfeed_shape=f32[2,3]{1,0}",
     [](const parts &p) {
       return kiln::build(p.b, "outfeed", {p.a, kiln::build(p.b, "after-all", {})}, p.type("token[]"),
                          {kiln::type("outfeed_shape", p.type("f32[2,3]{1,0}"))});
     }},
    {"replica_groups=[1, 2]<=[2], dimensions={0}",
     [](const parts &p) {
       return kiln::build(p.b, "all-gather", {p.a}, p.type("f32[4,3]"),
                          {kiln::groups("[1,2]<=[2]"), kiln::ints("dimensions", {0})});
     }},
    {"%mine = f32[2,3] negate(%a), control-predecessors={%s, %i}, sharding={replicated}",
     [](const parts &p) {
       return kiln::build(p.b, "negate", {p.a},
                          {kiln::named("mine"), kiln::after({p.s, p.i}), kiln::raw("sharding", "{replicated}")});
     }},
    {"epsilon=0.5, feature_index=1",
     [](const parts &p) {
       kiln_value v = kiln::constant<float>(p.b, p.type("f32[3]"), {1, 2, 3});
       return kiln::build(p.b, "batch-norm-training", {p.a, v, v},
                          {kiln::real("epsilon", 0.5), kiln::integer("feature_index", 1)});
     }},
    {"f32[2,2] constant({{1, 2}, {3, 4}})",
     [](const parts &p) {
       return kiln::constant<float>(p.b, kiln::array(p.b, KILN_F32, {2, 2}), {1, 2, 3, 4}, "k");
     }},
    {"(f32[2,3], s32[]) parameter(3)",
     [](const parts &p) {
       return kiln_build_parameter(p.b, 3, kiln::tuple(p.b, {kiln_type_of(p.b, p.a), kiln_type_of(p.b, p.i)}), "t");
     }},
};

void check_row(const row &r) {
  kiln::context_owner cx(kiln_context_create(nullptr));
  kiln::builder_owner b(kiln_builder_create(cx, "m"));
  parts p = {b, build_fold(b), build_identity(b, "one"), build_identity(b, "other"), 0, 0, 0};
  kiln_builder_begin(b, "main");
  p.a = kiln_build_parameter(b, 0, p.type("f32[2,3]"), "a");
  p.s = kiln_build_parameter(b, 1, p.type("f32[]"), "s");
  p.i = kiln_build_parameter(b, 2, p.type("s32[]"), "i");
  kiln_builder_end(b, r.build(p), true);
  kiln::module_owner m;
  kiln_status st = kiln_builder_finish(b, m.out());
  std::string text = st == KILN_OK ? kiln::print(cx, m) : findings(cx);
  check(text.find(r.line) != std::string::npos, r.line, text);
}

// Handles go from owner to owner, and what fails leaves none.
void check_owners() {
  kiln::context_owner cx(kiln_context_create(nullptr));
  kiln::module_owner m, n;
  const std::string text = "HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }\n";
  bool ok = kiln_module_parse(cx, "m", text.data(), text.size(), m.out()) == KILN_OK && m.get();
  const kiln_module *was = m;
  n = std::move(m);
  check(ok && !m.get() && n.get() == was, "an owner gives its handle away", findings(cx));
  kiln::module_owner o(std::move(n));
  check(o.get() == was && !n, "also when another is made of it", "");
  check(kiln_module_parse(cx, "m", "?", 1, o.out()) == KILN_E_INVALID && !o, "a failure leaves none", "");
  kiln_compile_params p = kiln::params<kiln_compile_params>();
  check(p.struct_size == sizeof p && !p.target && !p.fusion && p.max_count == 0, "params are the defaults", "");
  kiln::attribute a = kiln::ints("dimensions", {1, 2}), b = a;
  a = kiln::named("other");
  check(b.get().count == 2 && b.get().as.ints[1] == 2 && std::string(b.get().key) == "dimensions" &&
            std::string(a.get().as.text) == "other",
        "copies of attributes keep what they are made of", "");
  check(kiln::print(cx, nullptr).empty(), "printing nothing gives nothing", "");
  check(second_file(cx) == "HloModule two\n\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n",
        "the header in two files", "");
}

} // namespace

int main() {
  for (const row &r : rows) check_row(r);
  check_owners();
  std::printf("1..%d\n", count);
  return bad != 0;
}

// kiln for C++11 and newer: owners of handles, params structs, and for the builder what macros do in C.
//
// Everything of the C headers is there as it is; this adds names in C++'s notation and no code to link. Nothing throws
// but for want of memory (std::bad_alloc): failures are kiln_status, and findings are in the context.
//
//   kiln::context_owner cx(kiln_context_create(nullptr));
//   kiln::builder_owner b(kiln_builder_create(cx, "softmax"));
//   kiln_value y = kiln::build(b, "reduce", {x, zero}, {kiln::ints("dimensions", {1}), kiln::computation("to_apply",
//   f)});
#ifndef KILN_HPP
#define KILN_HPP

#include <kiln/kiln.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// --- owners -------------------------------------------------------------------------------------------------------

// Destroys what it holds. Goes where the handle does; out() is for functions that store one: what was held before is
// destroyed.
template <class T, void (*Destroy)(T **)> class owner {
public:
  explicit owner(T *handle = nullptr) : handle_(handle) {}
  owner(owner &&other) noexcept : handle_(other.release()) {}
  owner &operator=(owner &&other) noexcept {
    if (this != &other) {
      Destroy(&handle_);
      handle_ = other.release();
    }
    return *this;
  }
  owner(const owner &) = delete;
  owner &operator=(const owner &) = delete;
  ~owner() { Destroy(&handle_); }
  operator T *() const { return handle_; }
  T *get() const { return handle_; }
  T **out() {
    Destroy(&handle_);
    return &handle_;
  }
  T *release() {
    T *handle = handle_;
    handle_ = nullptr;
    return handle;
  }

private:
  T *handle_;
};

using context_owner = owner<kiln_context, kiln_context_destroy>;
using module_owner = owner<kiln_module, kiln_module_destroy>;
using builder_owner = owner<kiln_builder, kiln_builder_destroy>;
using map_owner = owner<kiln_map, kiln_map_destroy>;
using indexing_owner = owner<kiln_indexing, kiln_indexing_destroy>;
using tiling_owner = owner<kiln_tiling, kiln_tiling_destroy>;
using layout_owner = owner<kiln_layout, kiln_layout_destroy>;
using tile_choices_owner = owner<kiln_tile_choices, kiln_tile_choices_destroy>;
using encoding_owner = owner<kiln_encoding, kiln_encoding_destroy>;
using sparse_layout_owner = owner<kiln_sparse_layout, kiln_sparse_layout_destroy>;
using sparse_list_owner = owner<kiln_sparse_list, kiln_sparse_list_destroy>;
using artifact_owner = owner<kiln_artifact, kiln_artifact_destroy>;
using job_owner = owner<kiln_job, kiln_job_destroy>;
using bundle_owner = owner<kiln_bundle, kiln_bundle_destroy>;
using cache_owner = owner<kiln_cache, kiln_cache_close>;
using kernel_owner = owner<kiln_kernel, kiln_kernel_destroy>;
using xla_kernel_owner = owner<kiln_xla_kernel, kiln_xla_kernel_destroy>;
using simulator_owner = owner<kiln_simulator, kiln_simulator_close>;
using profile_owner = owner<kiln_profile, kiln_profile_destroy>;
using driver_owner = owner<kiln_driver, kiln_driver_close>;
using device_owner = owner<kiln_device, kiln_device_close>;
using cuda_kernel_owner = owner<kiln_cuda_kernel, kiln_cuda_kernel_destroy>;
using cuda_frozen_owner = owner<kiln_cuda_frozen, kiln_cuda_frozen_destroy>; // before its kernel
using cuda_graph_owner = owner<kiln_cuda_graph, kiln_cuda_graph_destroy>;    // likewise

// A params struct of defaults: auto p = kiln::params<kiln_compile_params>().
template <class T> T params() {
  T p = T();
  p.struct_size = sizeof(T);
  return p;
}

// kiln_module_print; "" if that fails.
inline std::string print(kiln_context *cx, const kiln_module *m) {
  struct text {
    kiln_context *cx;
    char *p;
    size_t size;
    ~text() { kiln_text_free(cx, p, size); }
  } t = {cx, nullptr, 0};
  return kiln_module_print(cx, m, &t.p, &t.size) == KILN_OK ? std::string(t.p, t.size) : std::string();
}

// --- types --------------------------------------------------------------------------------------------------------

inline kiln_array_type array_type(kiln_dtype dtype, const std::vector<int64_t> &dims) {
  kiln_array_type t = kiln_array_type();
  t.dtype = dtype;
  t.rank = static_cast<uint32_t>(dims.size()); // more than KILN_MAX_RANK are refused by who takes it
  for (size_t i = 0; i < dims.size() && i < KILN_MAX_RANK; i++) t.dims[i] = dims[i];
  return t;
}

inline kiln_type array(kiln_builder *b, kiln_dtype dtype, const std::vector<int64_t> &dims) {
  const kiln_array_type t = array_type(dtype, dims);
  return kiln_type_array(b, &t);
}

inline kiln_type tuple(kiln_builder *b, const std::vector<kiln_type> &elements) {
  return kiln_type_tuple(b, elements.data(), elements.size());
}

// --- attributes ---------------------------------------------------------------------------------------------------

// One attribute of an instruction, with what it is made of. Copies share that.
class attribute {
public:
  attribute(std::string key, kiln_attr_form form) : key_(std::move(key)), value_(kiln_attr()) { value_.form = form; }
  // Lives as long as this does, unchanged.
  kiln_attr get() const {
    kiln_attr a = value_;
    a.key = key_.c_str();
    return a;
  }
  kiln_attr &value() { return value_; }
  template <class T> const T *keep(std::vector<T> list) {
    value_.count = list.size();
    std::shared_ptr<std::vector<T>> own = std::make_shared<std::vector<T>>(std::move(list));
    data_ = own;
    return own->data();
  }
  const char *keep(std::string text) {
    std::shared_ptr<std::string> own = std::make_shared<std::string>(std::move(text));
    data_ = own;
    return own->c_str();
  }

private:
  std::string key_;
  kiln_attr value_;
  std::shared_ptr<const void> data_;
};

// As KILN_RAW and the other macros in C (kiln/ir.h): a key as in HLO text, and a value of the form that the key has.
inline attribute textual(std::string key, kiln_attr_form form, std::string t) {
  attribute a(std::move(key), form);
  a.value().as.text = a.keep(std::move(t));
  return a;
}
inline attribute raw(std::string key, std::string t) { // HLO text
  return textual(std::move(key), KILN_ATTR_RAW, std::move(t));
}
inline attribute name(std::string key, std::string t) { // "direction", "LT"
  return textual(std::move(key), KILN_ATTR_NAME, std::move(t));
}
inline attribute text(std::string key, std::string t) { // is quoted: "custom_call_target", "f"
  return textual(std::move(key), KILN_ATTR_TEXT, std::move(t));
}
inline attribute named(std::string t) { // the instruction's own name
  return textual("", KILN_ATTR_NAMED, std::move(t));
}
inline attribute dim_labels(std::string t) { // "b01f_01io->b01f"
  return raw("dim_labels", std::move(t));
}
inline attribute groups(std::string t) { // "{{0,1},{2,3}}"
  return raw("replica_groups", std::move(t));
}
inline attribute integer(std::string key, int64_t v) {
  attribute a(std::move(key), KILN_ATTR_INT);
  a.value().as.integer = v;
  return a;
}
inline attribute boolean(std::string key, bool v) {
  attribute a(std::move(key), KILN_ATTR_BOOL);
  a.value().as.flag = v;
  return a;
}
inline attribute real(std::string key, double v) {
  attribute a(std::move(key), KILN_ATTR_REAL);
  a.value().as.real = v;
  return a;
}
inline attribute computation(std::string key, kiln_computation c) {
  attribute a(std::move(key), KILN_ATTR_COMP);
  a.value().as.comp = c;
  return a;
}
inline attribute type(std::string key, kiln_type t) {
  attribute a(std::move(key), KILN_ATTR_TYPE);
  a.value().as.type = t;
  return a;
}
inline attribute ints(std::string key, std::vector<int64_t> v) { // {} is the empty list
  attribute a(std::move(key), KILN_ATTR_INTS);
  a.value().as.ints = a.keep(std::move(v));
  return a;
}
inline attribute names(std::string key, std::vector<const char *> v) { // of texts that outlive it, literals for example
  attribute a(std::move(key), KILN_ATTR_NAMES);
  a.value().as.names = a.keep(std::move(v));
  return a;
}
inline attribute computations(std::string key, std::vector<kiln_computation> v) {
  attribute a(std::move(key), KILN_ATTR_COMPS);
  a.value().as.comps = a.keep(std::move(v));
  return a;
}
inline attribute pairs(std::string key, const std::vector<std::pair<int64_t, int64_t>> &v) { // {{0, 1}, {1, 0}}
  attribute a(std::move(key), KILN_ATTR_PAIRS);
  std::vector<int64_t> flat;
  for (const std::pair<int64_t, int64_t> &p : v) {
    flat.push_back(p.first);
    flat.push_back(p.second);
  }
  a.value().as.ints = a.keep(std::move(flat));
  return a;
}
inline attribute slices(std::vector<kiln_slice_dim> v) { // {{0, 4, 1}, {1, 9, 2}}
  attribute a("slice", KILN_ATTR_SLICES);
  a.value().as.slices = a.keep(std::move(v));
  return a;
}
inline attribute padding(std::vector<kiln_pad_dim> v) {
  attribute a("padding", KILN_ATTR_PADDING);
  a.value().as.padding = a.keep(std::move(v));
  return a;
}
inline attribute window(std::vector<kiln_window_dim> v) {
  attribute a("window", KILN_ATTR_WINDOW);
  a.value().as.window = a.keep(std::move(v));
  return a;
}
inline attribute after(std::vector<kiln_value> v) { // control predecessors
  attribute a("control-predecessors", KILN_ATTR_AFTER);
  a.value().as.values = a.keep(std::move(v));
  return a;
}

// --- instructions -------------------------------------------------------------------------------------------------

// kiln_build: build(b, "add", {x, y}); with a type, with attributes, with both.
inline kiln_value build(kiln_builder *b, const char *opcode, const std::vector<kiln_value> &operands, kiln_type type,
                        const std::vector<attribute> &attributes) {
  std::vector<kiln_attr> list;
  for (const attribute &a : attributes) list.push_back(a.get());
  return kiln_build(b, opcode, operands.data(), operands.size(), type, list.data(), list.size());
}
inline kiln_value build(kiln_builder *b, const char *opcode, const std::vector<kiln_value> &operands,
                        const std::vector<attribute> &attributes) {
  return build(b, opcode, operands, KILN_NO_TYPE, attributes);
}
inline kiln_value build(kiln_builder *b, const char *opcode, const std::vector<kiln_value> &operands,
                        kiln_type type = KILN_NO_TYPE) {
  return kiln_build(b, opcode, operands.data(), operands.size(), type, nullptr, 0);
}

// kiln_build_constant: row-major values as they lie in memory.
template <class T>
kiln_value constant(kiln_builder *b, kiln_type type, const std::vector<T> &values, const char *name = nullptr) {
  return kiln_build_constant(b, type, values.data(), values.size() * sizeof(T), name);
}

} // namespace kiln
#endif

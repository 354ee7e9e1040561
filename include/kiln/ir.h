// kiln: element types, HLO modules as text and as built through the API, and the reference evaluator.
//
// A module is immutable once made: parsing or kiln_builder_finish returns it checked. It may then be read and compiled
// from several threads, each with a context of its own.
#ifndef KILN_IR_H
#define KILN_IR_H

#include <kiln/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Element types, named as in HLO text. Sub-byte types are packed in memory, element 0 in the low bits.
typedef enum kiln_dtype {
  KILN_DTYPE_NONE = 0,
  KILN_PRED, // one byte, 0 or 1
  KILN_S1,   // -1 or 0
  KILN_U1,
  KILN_S2,
  KILN_U2,
  KILN_S4,
  KILN_U4,
  KILN_S8,
  KILN_U8,
  KILN_S16,
  KILN_U16,
  KILN_S32,
  KILN_U32,
  KILN_S64,
  KILN_U64,
  KILN_F4E2M1FN,
  KILN_F8E3M4,
  KILN_F8E4M3,
  KILN_F8E4M3FN,
  KILN_F8E4M3FNUZ,
  KILN_F8E4M3B11FNUZ,
  KILN_F8E5M2,
  KILN_F8E5M2FNUZ,
  KILN_F8E8M0FNU,
  KILN_F16,
  KILN_BF16,
  KILN_F32,
  KILN_F64,
  KILN_C64,
  KILN_C128, // real part first
  KILN_TUPLE,
  KILN_TOKEN,
  KILN_OPAQUE,
  KILN_DTYPE_COUNT,
} kiln_dtype;

// "bf16"; "" for KILN_DTYPE_NONE or a value out of range. Static.
KILN_API const char *kiln_dtype_name(kiln_dtype t);
// KILN_DTYPE_NONE if no type has this name.
KILN_API kiln_dtype kiln_dtype_from_name(const char *name);
// Bits of one element in memory: 8 for pred, 4 for s4, 128 for c128; 0 for tuple, token, opaque.
KILN_API unsigned kiln_dtype_bits(kiln_dtype t);

#define KILN_MAX_RANK 32

// An array type: dtype and dims, major to minor as HLO writes them. Default (descending) layout.
typedef struct kiln_array_type {
  kiln_dtype dtype;
  uint32_t rank;
  int64_t dims[KILN_MAX_RANK]; // elements
} kiln_array_type;

// Bytes that an array of this type occupies, sub-byte elements packed; -1 if that exceeds int64.
KILN_API int64_t kiln_array_bytes(const kiln_array_type *t);

typedef struct kiln_module kiln_module;

// Parses and checks HLO text of `size` bytes (need not end in NUL). `name` is used in diagnostics. On success stores a
// module that the caller owns. Errors: INVALID (every finding is recorded with its place), MEMORY.
// Opcodes and attributes that kiln does not know parse and print; what cannot be compiled is refused later, by name.
KILN_API kiln_status kiln_module_parse(kiln_context *cx, const char *name, const char *text, size_t size,
                                       kiln_module **out);
KILN_API void kiln_module_destroy(kiln_module **m);
// The canonical text, NUL-terminated; parsing it gives the same text again. Free with kiln_text_free.
KILN_API kiln_status kiln_module_print(kiln_context *cx, const kiln_module *m, char **text, size_t *size);
KILN_API void kiln_text_free(kiln_context *cx, char *text, size_t size);

KILN_API const char *kiln_module_name(const kiln_module *m);
KILN_API size_t kiln_module_computation_count(const kiln_module *m);
KILN_API size_t kiln_module_instruction_count(const kiln_module *m); // over all computations

// ENTRY's parameters, a tuple as one; their leaves are counted below.
KILN_API size_t kiln_module_parameter_count(const kiln_module *m);
// As the text names it; "" if there is no such parameter. Lives as long as the module.
KILN_API const char *kiln_module_parameter_name(const kiln_module *m, size_t i);

// The fusions of ENTRY, in order: stores the names of the first `max` of them, which live as long as the module, and
// returns how many there are. kiln_compile_check (kiln/compile.h) says of each whether it can be compiled.
KILN_API size_t kiln_module_fusions(const kiln_module *m, const char **names, size_t max);

// A module of its own whose ENTRY is the computation of one fusion instruction of `m`'s ENTRY. Its buffers lie as the
// fusion's operands and result do there: entry_computation_layout says so where the computation has other layouts.
// Owned by the caller.
KILN_API kiln_status kiln_module_extract(kiln_context *cx, const kiln_module *m, const char *fusion, kiln_module **out);

// --- buffers of ENTRY's interface ---------------------------------------------------------------------------------
//
// A buffer holds an array as devices see it: in the layout that entry_computation_layout states for it, else in that of
// ENTRY's parameter or root, sub-byte elements packed. Elements are the same values in row-major order, one byte each
// for sub-byte types, as numpy has them. The buffer of an array with a sparse encoding (kiln/sparse.h) is the dense
// tensor that it means, row-major.
//
// Leaves are the arrays (and tokens, which have no buffer) of all parameters, or of the result, tuples flattened depth
// first; i is the number of a leaf, as everywhere where buffers are given.

KILN_API size_t kiln_module_parameter_leaf_count(const kiln_module *m);
KILN_API size_t kiln_module_result_leaf_count(const kiln_module *m);
// Of dynamic dimensions the bound. False if there is no such leaf, or it is no dense array (a token, say, or one with a
// dimension without a bound).
KILN_API bool kiln_module_parameter_leaf_type(const kiln_module *m, size_t i, kiln_array_type *out);
KILN_API bool kiln_module_result_leaf_type(const kiln_module *m, size_t i, kiln_array_type *out);
// Bytes of a buffer, with the padding of its layout (docs/layouts.md), which is written as zero and not read; 0 of a
// token, which has no buffer; -1: no such leaf, or no array whose layout says where elements lie.
KILN_API int64_t kiln_module_parameter_leaf_bytes(const kiln_module *m, size_t i);
KILN_API int64_t kiln_module_result_leaf_bytes(const kiln_module *m, size_t i);
// Between elements and a buffer; false where the leaf has none, or one of them is missing.
KILN_API bool kiln_module_parameter_leaf_pack(const kiln_module *m, size_t i, const void *elements, void *buffer);
KILN_API bool kiln_module_parameter_leaf_unpack(const kiln_module *m, size_t i, const void *buffer, void *elements);
KILN_API bool kiln_module_result_leaf_pack(const kiln_module *m, size_t i, const void *elements, void *buffer);
KILN_API bool kiln_module_result_leaf_unpack(const kiln_module *m, size_t i, const void *buffer, void *elements);
// Fills a parameter's buffer with values that follow from seed, i and the element's index alone: floats in -4..4,
// integers in -100..100 as far as the type goes, fair preds. Of an array with an encoding about one element in eight
// has such a value, or the encoding's explicit one, as far as it has room for them; the others have the implicit value.
KILN_API bool kiln_module_parameter_leaf_fill(const kiln_module *m, size_t i, uint64_t seed, void *buffer);

// --- building -----------------------------------------------------------------------------------------------------

// Builds one module; the same checks as for text run at each call. The first failing call reports to the context and
// poisons the builder: later calls return KILN_NO_VALUE (KILN_NO_TYPE) and kiln_builder_finish fails, so that checking
// once, at the end, is enough.
typedef struct kiln_builder kiln_builder;
typedef uint32_t kiln_value; // an instruction of the computation being built
#define KILN_NO_VALUE UINT32_MAX
typedef uint32_t kiln_computation;
typedef uint32_t kiln_type; // a type of the module being built
#define KILN_NO_TYPE UINT32_MAX

KILN_API kiln_builder *kiln_builder_create(kiln_context *cx, const char *module_name);
KILN_API void kiln_builder_destroy(kiln_builder **b);

// Types. Text is what HLO writes: "f32[8,128]", "bf16[4,8]{0,1:T(8,128)}", "f32[<=16]", "token[]",
// "(s32[], (f32[4], pred[]))".
KILN_API kiln_type kiln_type_text(kiln_builder *b, const char *text);
KILN_API kiln_type kiln_type_array(kiln_builder *b, const kiln_array_type *t);
KILN_API kiln_type kiln_type_tuple(kiln_builder *b, const kiln_type *elements, size_t count);
// The type of a value, given or inferred.
KILN_API kiln_type kiln_type_of(kiln_builder *b, kiln_value value);
// False unless it is a dense array (a tuple, say, or one with dynamic dimensions).
KILN_API bool kiln_type_get_array(const kiln_builder *b, kiln_type type, kiln_array_type *out);

// Attributes: a key as in HLO text, and a value of the form that the key has. Anything may be given as HLO text
// (KILN_RAW); keys that an op has no form for (sharding, metadata, frontend_attributes, backend_config ...) are kept as
// that text. Everything is copied.
typedef struct kiln_slice_dim {
  int64_t start, limit, stride; // stride 0: 1
} kiln_slice_dim;
typedef struct kiln_pad_dim {
  int64_t low, high, interior;
} kiln_pad_dim;
typedef struct kiln_window_dim {
  int64_t size, stride, low, high, base_dilation, window_dilation; // stride, dilations 0: 1
  bool reversed;
} kiln_window_dim;

typedef enum kiln_attr_form {
  KILN_ATTR_RAW, // text
  KILN_ATTR_INT,
  KILN_ATTR_BOOL,
  KILN_ATTR_REAL,
  KILN_ATTR_NAME, // text
  KILN_ATTR_NAMES,
  KILN_ATTR_TEXT, // text
  KILN_ATTR_INTS,
  KILN_ATTR_SLICES,
  KILN_ATTR_PADDING,
  KILN_ATTR_WINDOW,
  KILN_ATTR_PAIRS,
  KILN_ATTR_COMP,
  KILN_ATTR_COMPS,
  KILN_ATTR_TYPE,
  KILN_ATTR_AFTER, // values
  KILN_ATTR_NAMED, // text
} kiln_attr_form;

typedef struct kiln_attr {
  const char *key;
  kiln_attr_form form; // says which member holds the value
  size_t count;        // entries of a list
  union {
    const char *text;
    int64_t integer;
    bool flag;
    double real;
    kiln_computation comp;
    kiln_type type;
    const char *const *names;
    const int64_t *ints; // PAIRS: two each
    const kiln_slice_dim *slices;
    const kiln_pad_dim *padding;
    const kiln_window_dim *window;
    const kiln_computation *comps;
    const kiln_value *values;
  } as;
} kiln_attr;

// One attribute in C's notation; C++, which has no such literals, has functions for the same (kiln/kiln.hpp). `...` is
// one value or more.
#ifndef __cplusplus
#define KILN_COUNT_OF(T, ...) (sizeof((const T[]){__VA_ARGS__}) / sizeof(T))
#define KILN_ONE(k, f, m, v)  ((kiln_attr){.key = (k), .form = KILN_ATTR_##f, .as.m = (v)})
#define KILN_LIST(k, f, m, T, ...)                                                                                     \
  ((kiln_attr){                                                                                                        \
      .key = (k), .form = KILN_ATTR_##f, .count = KILN_COUNT_OF(T, __VA_ARGS__), .as.m = (const T[]){__VA_ARGS__}})
// clang-format off
#define KILN_RAW(k, t)      KILN_ONE(k, RAW, text, t)       // HLO text
#define KILN_INT(k, v)      KILN_ONE(k, INT, integer, v)
#define KILN_BOOL(k, v)     KILN_ONE(k, BOOL, flag, v)
#define KILN_REAL(k, v)     KILN_ONE(k, REAL, real, v)
#define KILN_NAME(k, t)     KILN_ONE(k, NAME, text, t)      // "direction", "LT"
#define KILN_TEXT(k, t)     KILN_ONE(k, TEXT, text, t)      // is quoted: "custom_call_target", "f"
#define KILN_COMP(k, c)     KILN_ONE(k, COMP, comp, c)
#define KILN_TYPE(k, t)     KILN_ONE(k, TYPE, type, t)
#define KILN_NAMES(k, ...)  KILN_LIST(k, NAMES, names, char *const, __VA_ARGS__)
#define KILN_INTS(k, ...)   KILN_LIST(k, INTS, ints, int64_t, __VA_ARGS__)
#define KILN_NO_INTS(k)     KILN_ONE(k, INTS, ints, NULL)   // the empty list
#define KILN_COMPS(k, ...)  KILN_LIST(k, COMPS, comps, kiln_computation, __VA_ARGS__)
#define KILN_PAIRS(k, ...)  KILN_LIST(k, PAIRS, ints, int64_t, __VA_ARGS__) // 0, 1, 1, 0 is {{0,1},{1,0}}
#define KILN_SLICES(...)    KILN_LIST("slice", SLICES, slices, kiln_slice_dim, __VA_ARGS__) // {0, 4}, {1, 9, 2}
#define KILN_PADDING(...)   KILN_LIST("padding", PADDING, padding, kiln_pad_dim, __VA_ARGS__)
#define KILN_WINDOW(...)    KILN_LIST("window", WINDOW, window, kiln_window_dim, __VA_ARGS__)
#define KILN_DIM_LABELS(t)  KILN_RAW("dim_labels", t)       // "b01f_01io->b01f"
#define KILN_GROUPS(t)      KILN_RAW("replica_groups", t)   // "{{0,1},{2,3}}"
#define KILN_AFTER(...)     KILN_LIST("control-predecessors", AFTER, values, kiln_value, __VA_ARGS__)
#define KILN_NAMED(t)       KILN_ONE("", NAMED, text, t)    // the instruction's own name
// clang-format on

// Lists for kiln_build: a pointer and a count.
#define KILN_NONE        NULL, 0
#define KILN_VALUES(...) (const kiln_value[]){__VA_ARGS__}, KILN_COUNT_OF(kiln_value, __VA_ARGS__)
#define KILN_ATTRS(...)  (const kiln_attr[]){__VA_ARGS__}, KILN_COUNT_OF(kiln_attr, __VA_ARGS__)
#endif

// Computations are built one at a time; the last one finished with `entry` is ENTRY. Names may be NULL where an
// instruction is named: then it is named after its opcode.
KILN_API void kiln_builder_begin(kiln_builder *b, const char *computation_name);
KILN_API kiln_value kiln_build_parameter(kiln_builder *b, int64_t number, kiln_type type, const char *name);
// `data` is row-major, packed as in memory; copied. A tuple's arrays follow one another without gaps. `size` must be
// the sum of their kiln_array_bytes.
KILN_API kiln_value kiln_build_constant(kiln_builder *b, kiln_type type, const void *data, size_t size,
                                        const char *name);
// A rank-0 constant of `dtype` nearest to `value`.
KILN_API kiln_value kiln_build_scalar(kiln_builder *b, kiln_dtype dtype, double value);
// Any opcode by its HLO name, the short forms of async pairs ("fusion-start") too. The result type is inferred from
// operands and attributes; where HLO cannot infer it (broadcast, reshape, convert, iota, custom-call ...) `type` gives
// it, elsewhere it may be KILN_NO_TYPE or must agree (and brings its layout along). A layout that a type says goes on
// to what is elementwise and through transposes; where none is said there is none.
KILN_API kiln_value kiln_build(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t operand_count,
                               kiln_type type, const kiln_attr *attrs, size_t attr_count);
// Adds `key=text` to a value that is there, parameters and constants included: sharding, metadata ...
KILN_API void kiln_build_annotate(kiln_builder *b, kiln_value value, const char *key, const char *text);
// Adds `key=text` to the open computation (execution_thread), or to the module's header (input_output_alias,
// num_partitions ...).
KILN_API void kiln_builder_annotate_computation(kiln_builder *b, const char *key, const char *text);
KILN_API void kiln_builder_annotate_module(kiln_builder *b, const char *key, const char *text);
KILN_API kiln_computation kiln_builder_end(kiln_builder *b, kiln_value root, bool entry);
// Checks the whole, stores the module (owned by the caller) and empties the builder, which can only be destroyed then:
// every other call says that it has finished. Errors: INVALID, MEMORY; those of a call before, too.
KILN_API kiln_status kiln_builder_finish(kiln_builder *b, kiln_module **out);

// --- comparing and rewriting --------------------------------------------------------------------------------------

// A hash of what the module computes: isomorphic modules have equal hashes (but where control dependencies are so
// regular that only a search would match them: then hashes may differ). Names, metadata, the order of the text and dead
// instructions without effect do not matter; types with their layouts, literals (bit by bit), attributes, sharding,
// backend_config, frontend_attributes and the header do. Good against accident, as the key of a cache, not against
// malice. The same on every machine; another version may give another. Errors: MEMORY.
enum { KILN_HASH_SIZE = 16 };
KILN_API kiln_status kiln_module_hash(kiln_context *cx, const kiln_module *m, uint8_t out[KILN_HASH_SIZE]);
// The text behind the hash: valid HLO, equal for two modules if and only if their hashes are. Free with kiln_text_free.
KILN_API kiln_status kiln_module_canonical_print(kiln_context *cx, const kiln_module *m, char **text, size_t *size);

// Each of these makes a new module, owned by the caller, that computes the same and shares nothing with `m`; it may
// belong to another context. Errors: MEMORY, and what is said beside them.
KILN_API kiln_status kiln_module_clone(kiln_context *cx, const kiln_module *m, kiln_module **out);
// Without instructions that nothing needs and computations that nothing calls. What has an effect stays: infeed,
// outfeed, send, recv, collectives, rng, custom calls marked so, unknown ops, and what calls a computation with one.
KILN_API kiln_status kiln_module_remove_dead(kiln_context *cx, const kiln_module *m, kiln_module **out);
// Fusions and calls replaced by what they call, in all computations; what is dead then is removed. Async pairs stay.
// UNSUPPORTED: this would make 2^20 instructions more.
KILN_API kiln_status kiln_module_inline(kiln_context *cx, const kiln_module *m, kiln_module **out);
// ENTRY with tuple parameters replaced by one parameter per array (in the order of the buffers above), and its result,
// if it is a tuple, by a tuple of arrays; everywhere, elements of tuples made in sight taken from there. What is dead
// then is removed. input_output_alias and buffer_donor follow. UNSUPPORTED: header attributes that cannot follow.
KILN_API kiln_status kiln_module_flatten_tuples(kiln_context *cx, const kiln_module *m, kiln_module **out);

// How exact functions of f32 are. STRICT: within 1 unit in the last place, division and square root correctly rounded,
// with the same bits on every device. FAST: GPUs take their approximate instructions for exp, exp10, log, tanh,
// logistic, erf, sin, cos, rsqrt, sqrt and division of f32, within the bounds that docs/kiln.1 lists; bits may differ
// between GPUs. All else, other types and the host are as STRICT has them.
typedef enum kiln_numerics { KILN_NUMERICS_STRICT, KILN_NUMERICS_FAST } kiln_numerics;

// --- evaluating ---------------------------------------------------------------------------------------------------

// Evaluates ENTRY by the reference evaluator: slow beside a kernel, and right by definition.
// args[i]: the buffer of parameter leaf i. results[i]: a buffer for result leaf i, written as a whole. Buffers are as
// above (row-major where the shape states no layout); their alignment is the element's; those of tokens are not looked
// at, and those without elements may be NULL. Loops run for as long as the program has them run. Asynchronous ops are
// evaluated where they start. Errors: UNSUPPORTED (what needs other devices or a host: collectives, infeed, outfeed,
// send, recv, replica-id, partition-id; custom-call; dynamic dimensions that have no bound, or are set to less than it;
// constants without values; unknown opcodes - by name, where ENTRY's result needs them), MEMORY (also where more than
// max_bytes would be needed: nothing beyond is taken, and where the arrays of ENTRY alone need more, nothing is
// evaluated; the diagnostic says how much was wanted and how much available).
typedef struct kiln_eval_params {
  size_t struct_size;
  uint32_t threads;       // 0: all cores
  uint64_t max_bytes;     // memory that evaluating may take beside the buffers; 0: what the machine has available
  kiln_numerics numerics; // whose bounds kiln_module_check allows
} kiln_eval_params;
KILN_API kiln_status kiln_module_eval(kiln_context *cx, const kiln_module *m, const void *const *args,
                                      void *const *results, const kiln_eval_params *params);

// One result that differs from what the evaluator allows.
typedef struct kiln_mismatch {
  size_t result;      // index of the result
  int64_t element;    // first differing element, row-major
  int64_t count;      // differing elements of this result
  char found[96];     // as HLO literal text
  char expected[200]; // a value, or "[LO, HI]" where an interval is allowed
} kiln_mismatch;

// Evaluates ENTRY and compares `results` with it: equal bits (NaN as NaN) for integers and types of 16 bits or fewer,
// inside the evaluator's interval otherwise; no tolerances. Stores up to `max` mismatches, one per result, and their
// number in *count (0: all results are right). Not finding agreement is no error: the status is KILN_OK. Where the
// program chooses - an index, a branch, an end of a loop, an order of keys - by values that are known within bounds
// only, results that depend on the choice are not judged. Nor is the order of a line by a comparator that is seen to be
// none (NaNs that are compared by value, for one): there each element of the line comes once, what the sort moves with
// it beside it. The last of these is judged only of results that are the sort's own.
KILN_API kiln_status kiln_module_check(kiln_context *cx, const kiln_module *m, const void *const *args,
                                       const void *const *results, kiln_mismatch *out, size_t max, size_t *count,
                                       const kiln_eval_params *params);

#ifdef __cplusplus
}
#endif
#endif

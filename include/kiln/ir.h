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

// ENTRY's interface: parameters in order, results with tuples flattened depth first.
KILN_API size_t kiln_module_param_count(const kiln_module *m);
KILN_API size_t kiln_module_result_count(const kiln_module *m);
// False if i is out of range or the slot is no dense array (a tuple parameter, say).
KILN_API bool kiln_module_param_type(const kiln_module *m, size_t i, kiln_array_type *out);
KILN_API bool kiln_module_result_type(const kiln_module *m, size_t i, kiln_array_type *out);

// A module of its own whose ENTRY is the computation of one fusion instruction of `m`'s ENTRY. Owned by the caller.
KILN_API kiln_status kiln_module_extract(kiln_context *cx, const kiln_module *m, const char *fusion, kiln_module **out);

// --- buffers of ENTRY's interface
// -------------------------------------------------------------------------------------
//
// A buffer holds an array as devices see it: in the layout of its shape, sub-byte elements packed. Elements are the
// same values in row-major order, one byte each for sub-byte types, as numpy has them. Indices count flattened leaves.

KILN_API size_t kiln_module_param_leaves(const kiln_module *m);
// Bytes of a buffer, or of the elements (-1: no such leaf, or no dense array).
KILN_API int64_t kiln_module_param_bytes(const kiln_module *m, size_t i);
KILN_API int64_t kiln_module_result_bytes(const kiln_module *m, size_t i);
KILN_API bool kiln_module_param_pack(const kiln_module *m, size_t i, const void *elements, void *buffer);
KILN_API bool kiln_module_result_unpack(const kiln_module *m, size_t i, const void *buffer, void *elements);
// Fills a parameter's buffer with values that follow from seed, i and the element's index alone: floats in -4..4,
// integers in -100..100 as far as the type goes, fair preds.
KILN_API bool kiln_module_param_fill(const kiln_module *m, size_t i, uint64_t seed, void *buffer);

// --- building -----------------------------------------------------------------------------------------------------

// Builds one module; the same checks as for text run at each call. The first failing call reports to the context and
// poisons the builder: later calls return KILN_NO_VALUE and kiln_builder_finish fails.
typedef struct kiln_builder kiln_builder;
typedef uint32_t kiln_value; // an instruction of the computation being built
#define KILN_NO_VALUE UINT32_MAX
typedef uint32_t kiln_computation;

KILN_API kiln_builder *kiln_builder_create(kiln_context *cx, const char *module_name);
KILN_API void kiln_builder_destroy(kiln_builder **b);

// Attributes beyond operands; which ones an opcode reads is said beside it. Zero is the default.
typedef struct kiln_attrs {
  size_t struct_size;
  const int64_t *dimensions; // broadcast, transpose, reverse, concatenate (1), iota (1)
  size_t dimension_count;
  const int64_t *starts, *limits, *strides; // slice: one per dim; strides NULL means 1
  const int64_t *low, *high, *interior;     // pad: one per dim; NULL means 0
  const char *direction;                    // compare: "EQ" "NE" "LT" "LE" "GT" "GE"
  const char *comparison_type;              // compare: "FLOAT" "TOTALORDER" "SIGNED" "UNSIGNED" or NULL
  int64_t index;                            // get-tuple-element
  int32_t exponent_bits, mantissa_bits;     // reduce-precision
  kiln_computation called;                  // fusion, call
  const char *fusion_kind;                  // fusion: "kLoop" (default), "kInput", "kOutput", "kCustom"
  const char *name;                         // of the instruction; NULL: made from the opcode
} kiln_attrs;

// Computations are built one at a time; the last one finished with `entry` is ENTRY.
KILN_API void kiln_builder_begin(kiln_builder *b, const char *computation_name);
KILN_API kiln_value kiln_build_parameter(kiln_builder *b, int64_t number, const kiln_array_type *type,
                                         const char *name);
// `data` is dense, row-major, packed as in memory; copied. `size` must be kiln_array_bytes(type).
KILN_API kiln_value kiln_build_constant(kiln_builder *b, const kiln_array_type *type, const void *data, size_t size);
// A rank-0 constant of `dtype` nearest to `value`.
KILN_API kiln_value kiln_build_scalar(kiln_builder *b, kiln_dtype dtype, double value);
// Any opcode by its HLO name. The result type is inferred from operands and attrs; where HLO cannot infer it
// (broadcast, reshape, bitcast, bitcast-convert, convert, iota, fusion ...) `type` gives it, elsewhere it may be NULL
// or must agree. `attrs` may be NULL. Tuples: opcode "tuple".
KILN_API kiln_value kiln_build(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t count,
                               const kiln_array_type *type, const kiln_attrs *attrs);
KILN_API kiln_computation kiln_builder_end(kiln_builder *b, kiln_value root, bool entry);
// Checks the whole, stores the module (owned by the caller) and empties the builder.
KILN_API kiln_status kiln_builder_finish(kiln_builder *b, kiln_module **out);

// --- evaluating ---------------------------------------------------------------------------------------------------

// Evaluates ENTRY by the reference evaluator: slow beside a kernel, and right by definition.
// args[i]: the buffer of parameter leaf i. results[i]: a buffer for result i, written as a whole. Buffers are as above
// (row-major where the shape states no layout); their alignment is the element's. Errors: UNSUPPORTED (an op without
// evaluation, by name), MEMORY.
typedef struct kiln_eval_params {
  size_t struct_size;
  uint32_t threads; // 0: all cores
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
// number in *count (0: all results are right). Not finding agreement is no error: the status is KILN_OK.
KILN_API kiln_status kiln_module_check(kiln_context *cx, const kiln_module *m, const void *const *args,
                                       const void *const *results, kiln_mismatch *out, size_t max, size_t *count,
                                       const kiln_eval_params *params);

#ifdef __cplusplus
}
#endif
#endif

// The HLO graph: shapes, attributes, instructions, computations, modules. Immutable once checked.
//
// Shapes are interned per module: equal type, dims, layout and everything else means equal pointer. Instructions live
// in one array per computation, in topological order (operands first); operands are indices into it.
#ifndef KL_HLO_H
#define KL_HLO_H

#include "base/base.h"
#include "ir/dtype.h"
#include "ir/ops.h"

// --- shapes -------------------------------------------------------------------------------------------------------

#define KL_TILE_COMBINE INT64_MIN // "*" in a tile's text

typedef struct kl_tile {
  uint32_t n;
  const int64_t *dims;
} kl_tile;

// Everything between the braces of HLO's shape text, kept whether or not kiln can use it.
typedef struct kl_layout {
  bool present; // false: no layout was written; then it means the default
  uint32_t rank;
  const int64_t *minor_to_major; // rank entries
  const char *dim_level_types;   // "D(D,C,...)" list text without the parens, NULL if absent
  uint32_t ntiles;
  const kl_tile *tiles;
  int64_t tail_padding;       // L(n), in elements; 1 if absent
  kl_dtype index_type;        // #(u32); KILN_DTYPE_NONE if absent
  kl_dtype pointer_type;      // *(u64)
  int64_t element_bits;       // E(n); 0 if absent
  int64_t memory_space;       // S(n); 0 if absent
  const char *split_configs;  // SC(...) inner text, NULL if absent
  const char *physical_shape; // P(...) inner text, NULL if absent
  int64_t metadata_prefix;    // M(n); 0 if absent
} kl_layout;

typedef struct kl_shape {
  kl_dtype dtype; // may be KILN_TUPLE, KILN_TOKEN, KILN_OPAQUE
  uint32_t rank;
  const int64_t *dims; // extents; bounds for dynamic dims
  const bool *dynamic; // NULL if no dim is dynamic
  kl_layout layout;
  uint32_t nelems; // tuple
  const struct kl_shape *const *elems;
  uint32_t depth; // of nested tuples; 0 for an array
  int64_t count;  // arrays: product of dims (elements and bytes fit int64), 1 for rank 0; tuples: number of leaves
} kl_shape;

struct kl_module_;
const kl_shape *kl_shape_array(kiln_module *m, kl_dtype t, uint32_t rank,
                               const int64_t *dims); // no layout text; NULL on overflow
const kl_shape *kl_shape_tuple(kiln_module *m, uint32_t n, const kl_shape *const *elems); // NULL: too deep or too wide
// Copies what s points to, but a tuple's elements: those are interned before. Fills in depth and count. NULL where the
// rank, the number of elements or bytes, or the tuple's depth or width exceeds what is allowed.
const kl_shape *kl_shape_intern(kiln_module *m, const kl_shape *s);
// Same dtype and dims (tuples: in every part); layouts and dynamic marks aside.
bool kl_shape_compatible(const kl_shape *a, const kl_shape *b);
bool kl_shape_same_dims(const kl_shape *a, const kl_shape *b);
bool kl_shape_is_array(const kl_shape *s);
// minor_to_major[i] of an array shape, default layout where none is written.
int64_t kl_shape_minor_to_major(const kl_shape *s, uint32_t i);
bool kl_shape_default_layout(const kl_shape *s); // descending order, no tiles or other fields that move data
// Bytes in memory, sub-byte packed, no tiles; -1 on overflow or no array.
int64_t kl_shape_bytes(const kl_shape *s);
// Number of array leaves of a (nested) tuple, depth first; 1 for an array.
size_t kl_shape_leaf_count(const kl_shape *s);
const kl_shape *kl_shape_leaf(const kl_shape *s, size_t i);
void kl_shape_print(kl_sb *b, const kl_shape *s, bool with_layout);
const char *kl_shape_text(kl_arena *a, const kl_shape *s); // for messages, without layout

// --- arrays of values ---------------------------------------------------------------------------------------------

// Values held on the CPU: row-major in logical order, unpacked (kl_info(dtype)->bytes per element).
typedef struct kl_array {
  const kl_shape *shape; // an array shape; its layout does not matter here
  void *data;
} kl_array;
// Between kl_array and a buffer in the shape's layout with packed sub-byte elements (no tiles).
void kl_array_pack(const kl_array *a, void *buffer);
void kl_array_unpack(const kl_array *a, const void *buffer);

// --- instructions -------------------------------------------------------------------------------------------------

typedef enum kl_op {
  KL_OP_UNKNOWN = 0, // parsed and printed by the generic rule, reported as not supported when used
#define X(name, text, arity, kind, result, types) KL_OP_##name,
  KL_OPS(X)
#undef X
      KL_OP_COUNT,
} kl_op;

typedef enum kl_op_kind {
  KL_KIND_UNKNOWN,
  KL_KIND_UNARY,
  KL_KIND_BINARY,
  KL_KIND_CONVERT,
  KL_KIND_SELECT,
  KL_KIND_CLAMP,
  KL_KIND_PARAMETER,
  KL_KIND_CONSTANT,
  KL_KIND_IOTA,
  KL_KIND_BROADCAST,
  KL_KIND_RESHAPE,
  KL_KIND_BITCAST,
  KL_KIND_TRANSPOSE,
  KL_KIND_SLICE,
  KL_KIND_REVERSE,
  KL_KIND_CONCATENATE,
  KL_KIND_PAD,
  KL_KIND_TUPLE,
  KL_KIND_GTE,
  KL_KIND_CALL,
} kl_op_kind;

typedef enum kl_op_result {
  KL_RESULT_SAME,
  KL_RESULT_PRED,
  KL_RESULT_GIVEN,
  KL_RESULT_PART,
  KL_RESULT_CPLX
} kl_op_result;
enum {
  KL_T_P = 1,
  KL_T_I = 2,
  KL_T_F = 4,
  KL_T_C = 8,
  KL_T_PI = 3,
  KL_T_IF = 6,
  KL_T_FC = 12,
  KL_T_IFC = 14,
  KL_T_A = 15
};

typedef struct kl_op_info {
  const char *name;
  int8_t arity;
  kl_op_kind kind;
  kl_op_result result;
  uint8_t types; // KL_T_* mask
} kl_op_info;
extern const kl_op_info kl_op_table[KL_OP_COUNT];
bool kl_op_from_str(kl_str name, kl_op *out);
static inline const char *kl_op_name(kl_op op) {
  return kl_op_table[op].name;
}
static inline bool kl_op_is_elementwise(kl_op op) {
  kl_op_kind k = kl_op_table[op].kind;
  return k == KL_KIND_UNARY || k == KL_KIND_BINARY || k == KL_KIND_CONVERT || k == KL_KIND_SELECT || k == KL_KIND_CLAMP;
}

typedef enum kl_direction { KL_EQ, KL_NE, KL_LT, KL_LE, KL_GT, KL_GE } kl_direction;
typedef enum kl_compare_type {
  KL_CMP_DEFAULT,
  KL_CMP_FLOAT,
  KL_CMP_TOTALORDER,
  KL_CMP_SIGNED,
  KL_CMP_UNSIGNED
} kl_compare_type;

extern const char *const kl_direction_names[6];    // "EQ"; by kl_direction
extern const char *const kl_compare_type_names[5]; // "FLOAT"; by kl_compare_type, NULL for the default

typedef struct kl_slice_dim {
  int64_t start, limit, stride;
} kl_slice_dim;
typedef struct kl_pad_dim {
  int64_t low, high, interior;
} kl_pad_dim;

// An attribute kept as text: metadata, sharding, backend_config, anything unknown. `value` is canonical (one space
// after each comma outside strings, comments dropped), so that printing it is a fixed point.
typedef struct kl_raw_attr {
  kl_str key, value;
} kl_raw_attr;

typedef struct kl_instr {
  kl_op op;
  uint32_t name;        // symbol
  uint32_t opcode_text; // symbol; of KL_OP_UNKNOWN only
  const kl_shape *shape;
  uint32_t noperands;
  const uint32_t *operands; // indices < this instruction's own
  // Attributes of known ops; which are valid follows from `op`.
  uint32_t ndims;            // entries of dims, slice or pad, whichever the op has
  const int64_t *dims;       // dimensions={...}
  int64_t number;            // parameter number, tuple index, iota_dimension
  const kl_slice_dim *slice; // rank entries
  const kl_pad_dim *pad;     // rank entries
  kl_direction direction;
  kl_compare_type compare_type;
  int32_t exponent_bits, mantissa_bits;
  uint32_t called;         // computation index (fusion, call), else UINT32_MAX
  kl_str fusion_kind;      // "kLoop"
  kl_str raw_operands;     // of KL_OP_UNKNOWN with operands that are no names (a custom literal), else empty
  const kl_array *literal; // constant of array shape
  uint32_t nraw;
  const kl_raw_attr *raw; // in the order of the text
  kl_span span;           // of the opcode in the text, or nowhere
} kl_instr;

typedef struct kl_comp {
  uint32_t name; // symbol
  uint32_t ninstr;
  kl_instr *instr;
  uint32_t root;
  uint32_t nparams;
  const uint32_t *params; // instruction index of parameter i
  uint32_t nraw;          // e.g. execution_thread
  const kl_raw_attr *raw;
  kl_span span;
} kl_comp;

struct kiln_module {
  kl_ctx *cx;
  kl_arena arena; // owns everything below
  kl_interner names;
  kl_source *source; // a copy of the text, so that later findings can point into it; NULL for built modules
  uint32_t name;
  uint32_t nraw;
  const kl_raw_attr *raw; // header attributes, in order
  uint32_t ncomp;
  kl_comp *comp; // called computations before their callers
  uint32_t entry;
  void *shapes; // intern table of shape.c
};

static inline const kl_instr *kl_root(const kl_comp *c) {
  return &c->instr[c->root];
}
static inline const kl_instr *kl_operand(const kl_comp *c, const kl_instr *in, uint32_t i) {
  return &c->instr[in->operands[i]];
}

// --- checking -----------------------------------------------------------------------------------------------------

// Result shape that op, operands and attributes in `in` determine (in->shape is the wanted shape or NULL where it can
// be inferred). Reports every broken rule; KILN_OK stores the shape. Parser, builder and verifier all go through here.
kiln_status kl_infer_shape(kiln_module *m, const kl_comp *c, const kl_instr *in, const kl_shape **out);
// Checks a whole module: every instruction, parameter numbering, roots, call signatures, recursion. Collects all
// findings.
kiln_status kl_verify(kiln_module *m);

#endif

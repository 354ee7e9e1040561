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
#define KL_DIM_UNKNOWN  (-1)      // "?": an extent without a bound; such a dim is dynamic

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
  const char *sparse;         // SP(...) inner text, an encoding's fields in normal form (sparse/encoding.h), or NULL
} kl_layout;

typedef struct kl_shape {
  kl_dtype dtype; // may be KILN_TUPLE, KILN_TOKEN, KILN_OPAQUE
  uint32_t rank;
  const int64_t *dims; // extents; bounds or KL_DIM_UNKNOWN for dynamic dims
  const bool *dynamic; // NULL if no dim is dynamic
  kl_layout layout;
  uint32_t nelems; // tuple; 1 for the opaque type of a buffer that holds an array
  const struct kl_shape *const *elems;
  const uint32_t *first_leaf; // tuple: of each element its first leaf's number, then the number of leaves
  uint32_t depth;             // of nested tuples; 0 for an array
  // Arrays: product of dims (elements and bytes fit int64), 1 for rank 0, 0 if one is unknown; tuples: number of
  // leaves.
  int64_t count;
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
// The array shape of a module without its encoding, in the default layout; one that has none as it is.
const kl_shape *kl_shape_without_encoding(kiln_module *m, const kl_shape *s);
// minor_to_major[i] of an array shape, default layout where none is written.
int64_t kl_shape_minor_to_major(const kl_shape *s, uint32_t i);
bool kl_shape_default_layout(const kl_shape *s); // descending order, no tiles or other fields that move data
// Does each element of two compatible shapes lie at the same place?
bool kl_shape_same_in_memory(const kl_shape *a, const kl_shape *b);
// Bytes in memory with all padding of the layout, sub-byte packed; -1 without a physical layout
// (index/layout/layout.h).
int64_t kl_shape_bytes(const kl_shape *s);
int64_t kl_shape_dense_bytes(const kl_shape *s); // as if without layout; -1: no array
// Number of array leaves of a (nested) tuple, depth first; 1 for an array.
size_t kl_shape_leaf_count(const kl_shape *s);
const kl_shape *kl_shape_leaf(const kl_shape *s, size_t i); // takes time by depth, not by width
// Writes the leaves, depth first; returns what is behind the last.
const kl_shape **kl_shape_leaves(const kl_shape *s, const kl_shape **out);
// The element of a tuple that leaf i is in.
uint32_t kl_shape_element_of_leaf(const kl_shape *s, size_t i);
void kl_shape_print(kl_sb *b, const kl_shape *s, bool with_layout);
const char *kl_shape_text(kl_arena *a, const kl_shape *s); // for messages, without layout
void kl_layout_print(kl_sb *b, const kl_shape *s);         // of an array: "{1,0}", also where none is written

// --- arrays of values ---------------------------------------------------------------------------------------------

// Values held on the CPU: row-major in logical order, unpacked (kl_info(dtype)->bytes per element).
typedef struct kl_array {
  const kl_shape *shape; // an array shape; its layout does not matter here
  void *data;
} kl_array;
// Between kl_array and a buffer of kl_shape_bytes in the shape's layout, sub-byte elements packed. Packing writes zero
// to padding, unpacking does not look at it. The shape must have a physical layout.
void kl_array_pack(const kl_array *a, void *buffer);
void kl_array_unpack(const kl_array *a, const void *buffer);
// Are all elements the same bits?
bool kl_array_is_splat(const kl_array *a);

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
  KL_KIND_STOCHASTIC,
  KL_KIND_DOT,
  KL_KIND_CONVOLUTION,
  KL_KIND_REDUCE,
  KL_KIND_REDUCE_WINDOW,
  KL_KIND_SELECT_AND_SCATTER,
  KL_KIND_SCAN,
  KL_KIND_MAP,
  KL_KIND_DYNAMIC_SLICE,
  KL_KIND_DYNAMIC_UPDATE_SLICE,
  KL_KIND_GATHER,
  KL_KIND_SCATTER,
  KL_KIND_SORT,
  KL_KIND_TOPK,
  KL_KIND_SHUFFLE,
  KL_KIND_RNG,
  KL_KIND_RNG_BITS,
  KL_KIND_RNG_STATE,
  KL_KIND_BATCH_NORM,
  KL_KIND_CHOLESKY,
  KL_KIND_TRIANGULAR_SOLVE,
  KL_KIND_FFT,
  KL_KIND_DIMENSION_SIZE,
  KL_KIND_DYNAMIC_RESHAPE,
  KL_KIND_TUPLE,
  KL_KIND_GTE,
  KL_KIND_CALL,
  KL_KIND_WHILE,
  KL_KIND_CONDITIONAL,
  KL_KIND_CUSTOM_CALL,
  KL_KIND_FORWARD, // the value of operand 0
  KL_KIND_TOKEN,
  KL_KIND_COPY_ASYNC,
  KL_KIND_ASYNC,
  KL_KIND_COLLECTIVE,
  KL_KIND_DEVICE_ID,
  KL_KIND_HOST, // infeed, outfeed, send, recv
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
uint8_t kl_type_mask(kl_dtype t); // KL_T_*; 0 for what is no array's type
bool kl_op_from_str(kl_str name, kl_op *out);
// Also knows fusion-start, dot-done and the like: an async op and, in *wrapped, what it wraps (else 0).
bool kl_op_from_text(kl_str name, kl_op *out, kl_op *wrapped);
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

typedef struct kl_ints {
  uint32_t n;
  const int64_t *p;
} kl_ints;

// One dimension of a window that slides over an array; base dilation puts holes between the array's elements, window
// dilation between the window's.
typedef struct kl_window_dim {
  int64_t size, stride, low, high, base_dilation, window_dilation;
  bool reversed;
} kl_window_dim;

// Which dimension of a convolution's input, kernel and result is what; each list of spatial dimensions has n entries.
// Ranks count dimensions of no meaning ("?" in the text) as well; 0 if there are none.
typedef struct kl_conv_dims {
  int64_t input_batch, input_feature, kernel_input, kernel_output, result_batch, result_feature;
  uint32_t n;
  const int64_t *input, *kernel, *result;
  uint32_t input_rank, kernel_rank, result_rank;
} kl_conv_dims;

// Which devices take part in a collective: `ngroups` groups of `size` (listed in `ids`, group by group; -1 fills up
// shorter groups), or the iota form [dims]<=[reshape]T(perm) expanded. n of ids is 0 for the empty list (one group of
// all). `text` is what is printed.
typedef struct kl_groups {
  kl_str text; // canonical
  uint32_t ngroups;
  int64_t size;
  kl_ints ids;
} kl_groups;

typedef enum kl_triangle_op { KL_NO_TRANSPOSE, KL_TRANSPOSE, KL_ADJOINT } kl_triangle_op;
typedef enum kl_fft_type { KL_FFT, KL_IFFT, KL_RFFT, KL_IRFFT } kl_fft_type;
typedef enum kl_rng_algorithm { KL_RNG_DEFAULT, KL_RNG_THREE_FRY, KL_RNG_PHILOX } kl_rng_algorithm;
typedef enum kl_rng_distribution { KL_RNG_UNIFORM, KL_RNG_NORMAL } kl_rng_distribution;

// Attributes of the rarer ops. The rows in attrs.c say which op has which, and under what name in the text.
typedef struct kl_more {
  kl_ints lhs_batch, lhs_contracting, rhs_batch, rhs_contracting, lhs_ragged, rhs_group; // dot and its kin
  kl_ints precision; // one per operand, by kl_precision_names
  int algorithm;     // by kl_dot_algorithm_names; 0: unset
  uint32_t nwindow;
  const kl_window_dim *window;
  const kl_conv_dims *conv; // convolution
  int64_t feature_groups, batch_groups;
  // gather; scatter: update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims ...
  kl_ints offset_dims, collapsed_dims, start_index_map, operand_batching_dims, indices_batching_dims;
  int64_t index_vector_dim;
  kl_ints sizes; // gather: slice_sizes, dynamic-slice: dynamic_slice_sizes, fft: fft_length
  bool indices_are_sorted, unique_indices;
  bool is_stable, is_reverse, is_associative, largest, lower, left_side, unit_diagonal, side_effect, host_transfer;
  bool constrain_layout, global_device_ids;
  kl_triangle_op transpose_a;
  kl_fft_type fft;
  kl_rng_algorithm rng;
  kl_rng_distribution distribution;
  double epsilon;        // batch-norm, rounded to f32
  int64_t feature_index; // batch-norm
  int64_t k;             // topk
  int64_t carries;       // scan: num_carries
  int64_t delta;         // rng-get-and-update-state
  int64_t channel;       // channel_id; -1: none
  kl_groups groups;      // replica_groups
  kl_ints pairs;         // source_target_pairs, flat
  kl_str target;         // custom_call_target, quoted as in the text
  const kl_shape *outfeed;
} kl_more;
extern const kl_more kl_no_more;

// An attribute kept as text: metadata, sharding, backend_config, anything unknown. `value` is canonical (one space
// after each comma outside strings, comments dropped), so that printing it is a fixed point.
typedef struct kl_raw_attr {
  kl_str key, value;
} kl_raw_attr;

typedef struct kl_instr {
  kl_op op;
  kl_op wrapped;        // of async ops written as fusion-start, dot-done ...: the op before the dash, else 0
  uint32_t name;        // symbol
  uint32_t opcode_text; // symbol; of KL_OP_UNKNOWN only
  const kl_shape *shape;
  uint32_t noperands;
  const uint32_t *operands; // indices < this instruction's own
  uint32_t ncontrol;
  const uint32_t *control; // control-predecessors, likewise
  uint32_t ncalled;
  const uint32_t *called; // computations, in the order of the op's rows (while: condition, body)
  // Attributes; which are valid follows from `op` (attrs.c).
  uint64_t given;            // by row of the op: written in the text, or set by the builder
  uint32_t ndims;            // entries of dims, slice or pad, whichever the op has
  const int64_t *dims;       // dimensions={...}
  int64_t number;            // parameter number, tuple index, iota_dimension
  const kl_slice_dim *slice; // rank entries
  const kl_pad_dim *pad;     // rank entries
  kl_direction direction;
  kl_compare_type compare_type;
  int32_t exponent_bits, mantissa_bits;
  int fusion_kind;         // by kl_fusion_kind_names
  const kl_more *more;     // never NULL in a finished module
  kl_str raw_operands;     // constants without values ({...}), unknown ops whose operands are no names; else empty
  const kl_array *literal; // constant: one array per leaf of its shape, depth first; NULL if the text leaves them out
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

// A part of the result that shares memory with a part of a parameter; paths are indices into nested tuples.
typedef struct kl_alias {
  kl_ints result;
  int64_t param;
  kl_ints path;
  bool must; // else it may
} kl_alias;

// A part of a parameter whose memory may be written once it is no longer needed.
typedef struct kl_donor {
  int64_t param;
  kl_ints path;
} kl_donor;

// What the header's attributes say.
typedef struct kl_header {
  bool is_scheduled;                     // instructions stand in the order of execution
  int64_t replica_count, num_partitions; // 0: not said
  uint32_t nparams;                      // entry_computation_layout
  const kl_shape *const *params;
  const kl_shape *result; // NULL: not said
  uint32_t naliases;
  const kl_alias *aliases;
  uint32_t ndonors;
  const kl_donor *donors;
} kl_header;

// The buffers of ENTRY: the leaves of its parameters in order, then those of its result. A value has one index in every
// computation it passes, and a buffer one layout, that of its owner: of ENTRY's buffers the one that the header's
// entry_computation_layout states, else that of the parameter or root. An array with an encoding is a dense tensor to
// whoever computes on it: `dense` has its shape without, and all others as they are.
typedef struct kl_interface {
  size_t nparams, nresults; // leaves
  const kl_shape *const *shapes, *const *dense;
} kl_interface;

enum { KL_HASH_UNKNOWN, KL_HASH_WRITING, KL_HASH_KNOWN };
// The hash of a module that is complete, once somebody has asked for it; any thread may.
typedef struct kl_hash_cache {
  atomic_int state;
  uint8_t value[KILN_HASH_SIZE];
  _Atomic uint64_t names; // 0: nobody has asked
} kl_hash_cache;

struct kiln_module {
  kl_ctx *cx;
  kl_arena arena; // owns everything below
  kl_interner names;
  kl_source *source; // a copy of the text, so that later findings can point into it; NULL for built modules
  uint32_t name;
  uint32_t nraw;
  const kl_raw_attr *raw; // header attributes, in order: the text that `header` was read from, and all others
  kl_header header;
  kl_str tables; // FileNames and its like: canonical text, from the line break before the first title on
  uint32_t ncomp;
  kl_comp *comp; // called computations before their callers
  uint32_t entry;
  kl_interface interface;
  void *shapes; // intern table of shape.c
  kl_hash_cache *hash;
};

// Lists ENTRY's buffers: the last step of making a module.
void kl_interface_make(kiln_module *m);

static inline const kl_instr *kl_root(const kl_comp *c) {
  return &c->instr[c->root];
}
// Does it make its results of parameters that are arrays, and of constants, by elementwise ops alone?
static inline bool kl_is_elementwise(const kl_comp *c) {
  bool all = true;
  for (uint32_t i = 0; i < c->ninstr && all; i++) {
    const kl_instr *in = &c->instr[i];
    bool given = in->op == KL_OP_PARAMETER || in->op == KL_OP_CONSTANT, tuple = in->op == KL_OP_TUPLE;
    all = tuple ? i == c->root : (given || kl_op_is_elementwise(in->op)) && in->shape->dtype != KILN_TUPLE;
  }
  return all;
}
static inline const kl_instr *kl_operand(const kl_comp *c, const kl_instr *in, uint32_t i) {
  return &c->instr[in->operands[i]];
}

#endif

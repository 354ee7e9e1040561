// kiln: sparse tensors, their encodings and how they are stored; docs/sparse.md tells the text and its rules.
//
// An encoding maps the coordinates of a tensor's dimensions to those of levels, and says of each level how it is
// stored. Its text is that of MLIR's #sparse_tensor.encoding; encodings that MLIR cannot read, kiln mostly can.
#ifndef KILN_SPARSE_H
#define KILN_SPARSE_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// Immutable. Belongs to the context that it was made with and is destroyed before it; several threads may read it.
typedef struct kiln_encoding kiln_encoding;

typedef enum kiln_level_format {
  KILN_LEVEL_DENSE,            // every coordinate
  KILN_LEVEL_BATCH,            // every coordinate, as an axis of all arrays behind it
  KILN_LEVEL_COMPRESSED,       // coordinates that are there, intervals back to back
  KILN_LEVEL_LOOSE_COMPRESSED, // coordinates that are there, intervals anywhere
  KILN_LEVEL_SINGLETON,        // one coordinate for each entry of the level before
  KILN_LEVEL_STRUCTURED,       // n of every m
} kiln_level_format;

enum {
  KILN_LEVEL_NONUNIQUE = 1,  // coordinates may come again
  KILN_LEVEL_NONORDERED = 2, // coordinates need not ascend
  KILN_LEVEL_SOA = 4,        // of singletons: an array for each level of their run
};

typedef struct kiln_level {
  kiln_level_format format;
  unsigned properties; // KILN_LEVEL_NONUNIQUE and so on
  int64_t n, m;        // of KILN_LEVEL_STRUCTURED, else 0
  const char *value;   // what the level stores, by the dimensions: "d0 floordiv 2"
} kiln_level;

typedef struct kiln_encoding_params {
  size_t struct_size;
  bool strict;       // as MLIR 22.1.8 reads it; else more is read
  const char *type;  // of the tensor, "4x?xf32" or "f32[4,8]"; NULL: no tensor
  const char **rule; // where not NULL, gets the name of the rule that is broken, "" if none is; static
} kiln_encoding_params;

// Reads and verifies a text of `size` bytes: the attribute "#sparse_tensor.encoding<{ ... }>", a name and = may stand
// before it, or its fields alone. Owned by the caller. Errors: INVALID (with its place, and the rule), UNSUPPORTED
// (more levels, nesting or digits than there is room for).
KILN_API kiln_status kiln_encoding_parse(kiln_context *cx, const char *name, const char *text, size_t size,
                                         const kiln_encoding_params *params, kiln_encoding **out);

// An encoding by its parts. Dimensions are d0, d1 ... in texts, symbols s0 ..., levels l0 ...
typedef struct kiln_encoding_parts {
  size_t struct_size;
  size_t dimension_count, symbol_count, level_count;
  const kiln_level *levels;
  const char *const *inverse;    // by dimension, of the levels: "l0 * 2 + l2"; NULL: none is given
  const char *const *slices;     // by dimension, "0, 4, ?": offset, size, stride; NULL, or NULL entries: none
  unsigned pos_width, crd_width; // bits; 0: as the machine has it, 64
  const char *explicit_value, *implicit_value; // "1.0 : f32"; NULL: none
} kiln_encoding_parts;
// As kiln_encoding_parse of the parts' text, to which findings point.
KILN_API kiln_status kiln_encoding_create(kiln_context *cx, const kiln_encoding_parts *parts,
                                          const kiln_encoding_params *params, kiln_encoding **out);
KILN_API void kiln_encoding_destroy(kiln_encoding **e);

typedef struct kiln_encoding_info {
  const char *text;   // normal form: reading it gives an encoding of the same text
  const char *fields; // what stands between its braces
  size_t dimension_count, symbol_count, level_count;
  unsigned pos_width, crd_width;               // bits; 0: 64
  const char *explicit_value, *implicit_value; // with their type; "" where not given
  bool sliced;
} kiln_encoding_info;
// Lives as long as the encoding.
KILN_API const kiln_encoding_info *kiln_encoding_describe(const kiln_encoding *e);
// False if i is out of range. The text lives as long as the encoding.
KILN_API bool kiln_encoding_level_at(const kiln_encoding *e, size_t i, kiln_level *out);
// Do both read as the same text?
KILN_API bool kiln_encoding_is_equal(const kiln_encoding *a, const kiln_encoding *b);

// A rule that encodings keep; findings end with its name.
typedef struct kiln_encoding_rule {
  const char *name, *text;
  bool strict, relaxed; // holds in strict mode; by default
} kiln_encoding_rule;
KILN_API bool kiln_encoding_rule_at(size_t i, kiln_encoding_rule *out);

typedef enum kiln_sparse_role { KILN_SPARSE_POSITIONS, KILN_SPARSE_COORDINATES, KILN_SPARSE_VALUES } kiln_sparse_role;

// One of the arrays that a tensor is stored in. What is not known before there are values, or sizes, is -1.
typedef struct kiln_sparse_buffer {
  kiln_sparse_role role;
  size_t level;     // that it belongs to; of values, the last
  unsigned bits;    // of an element; less than 8 are packed, the first in the low bits
  kiln_dtype dtype; // of values; KILN_DTYPE_NONE of others, which are unsigned integers, and of types kiln lacks
  int64_t batches;  // so many arrays of `count` elements, one behind the other
  int64_t columns;  // of a run of levels that share an array: so many elements belong to an entry
  int64_t count;    // elements, columns included
  int64_t most;     // there can be no more, duplicates and gaps aside
} kiln_sparse_buffer;
// How a tensor of an encoding, a type and sizes is stored. Keeps what it needs of the encoding. Serves one thread at a
// time; destroyed before its context.
typedef struct kiln_sparse_layout kiln_sparse_layout;

// `sizes`: a number for each dimension, -1 where it is not known. NULL: sizes and element type are those of the type
// that the encoding was read with. Owned by the caller. Errors: INVALID (no type, sizes below -1).
KILN_API kiln_status kiln_sparse_layout_create(kiln_context *cx, const kiln_encoding *e, kiln_dtype dtype,
                                               const int64_t *sizes, kiln_sparse_layout **out);
KILN_API void kiln_sparse_layout_destroy(kiln_sparse_layout **l);
KILN_API size_t kiln_sparse_layout_buffer_count(const kiln_sparse_layout *l);
// The arrays in order: of each level positions, then coordinates; values. False if i is out of range.
KILN_API bool kiln_sparse_layout_buffer_at(const kiln_sparse_layout *l, size_t i, kiln_sparse_buffer *out);
// Coordinates of level i are *first .. *first + *size - 1, and are stored less *first. A size of -1 is not known. False
// if i is out of range.
KILN_API bool kiln_sparse_layout_level_at(const kiln_sparse_layout *l, size_t i, int64_t *first, int64_t *size);
// Dimension i by the levels l0, l1 ...: "l0 * 2 + l2". NULL where it does not follow from them (sizes that are not
// known may hide that it does), or i is out of range.
KILN_API const char *kiln_sparse_layout_dimension_at(const kiln_sparse_layout *l, size_t i);

// --- stored tensors -------------------------------------------------------------------------------------------------
//
// A tensor is as many arrays of the caller's as its layout has buffers, in that order. Where there are batches, each
// array has those of all batches one behind the other, all as long as the longest needs. All sizes have to be known,
// and the encoding a way back from levels to dimensions: else UNSUPPORTED. What is stored of a sliced tensor is the
// whole that slices are of, and the layout's sizes are those of that. Elements that callers give or get one by one are
// unpacked: one byte each for types of fewer bits.

typedef struct kiln_sparse_array {
  void *data;    // packed elements; may be NULL where there are none
  int64_t count; // elements
} kiln_sparse_array;

typedef struct kiln_sparse_entries {
  size_t struct_size;
  int64_t count;
  const int64_t *coordinates; // [count][dimensions], in any order; those that come again are summed
  const void *values;         // [count], unpacked
} kiln_sparse_entries;

// Stores these entries. Every `count` of the arrays says how many elements there is room for, and becomes how many
// there are; where no array has data, only that is done. A level that counts takes entries in the order of the other
// levels. Errors: INVALID (a coordinate outside the tensor; an array without enough room; a position or coordinate that
// its width does not hold; more entries of a group, a slot or behind a unique level than there may be; nothing is said
// of arrays then), MEMORY, UNSUPPORTED.
KILN_API kiln_status kiln_sparse_pack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_entries *entries,
                                      kiln_sparse_array *arrays);
// The same of a dense tensor, row-major and unpacked: of all elements that are not, bit by bit, the implicit value.
KILN_API kiln_status kiln_sparse_pack_dense(kiln_context *cx, const kiln_sparse_layout *l, const void *elements,
                                            kiln_sparse_array *arrays);

typedef enum kiln_sparse_check {
  KILN_SPARSE_CHECK_SIZES,  // arrays are as long as they have to be
  KILN_SPARSE_CHECK_BOUNDS, // and positions ascend, within coordinates; coordinates are within their level
  KILN_SPARSE_CHECK_ORDER,  // and coordinates ascend, each once, where the level says so
} kiln_sparse_check;
// INVALID, with level, place, what was expected and what found, where one does not hold. Reads nothing outside the
// arrays.
KILN_API kiln_status kiln_sparse_verify(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                                        kiln_sparse_check level);

// The dense tensor, row-major and unpacked: entries of one element are summed, others have the implicit value.
// Checks the arrays up to their bounds. INVALID: what kiln_sparse_verify says.
KILN_API kiln_status kiln_sparse_unpack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                                        void *elements);
// Called for a stored entry; anything but OK ends the walk.
typedef kiln_status kiln_sparse_visit(void *user, const int64_t *coordinates, const void *value);
// Every entry, in the order in which they are stored, fillers of blocks and groups within the tensor included. Returns
// what the last call did, or what kiln_sparse_verify says of bounds.
KILN_API kiln_status kiln_sparse_walk(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                                      kiln_sparse_visit *visit, void *user);
// From one layout to another of the same sizes and element type, any to any: entries other than the implicit value of
// `from`, which must be that of `to`. As kiln_sparse_pack where there is no data. INVALID: what walking and packing
// say, other sizes, types or implicit values.
KILN_API kiln_status kiln_sparse_convert(kiln_context *cx, const kiln_sparse_layout *from,
                                         const kiln_sparse_array *arrays, const kiln_sparse_layout *to,
                                         kiln_sparse_array *out);

// Element i of the slice is element offset + i * stride, for i < size.
typedef struct kiln_sparse_slice {
  int64_t offset, size, stride; // -1: as the encoding of the whole has it
} kiln_sparse_slice;
// A slice of a stored tensor, as a tensor of its own: as kiln_sparse_convert, but that `to` has the sizes of the slice.
// `slices`: by dimension. NULL: those of the encoding of `from`; a dimension without one is whole. INVALID also: a
// number that neither gives, or that both give differently; elements outside `from`.
KILN_API kiln_status kiln_sparse_convert_slice(kiln_context *cx, const kiln_sparse_layout *from,
                                               const kiln_sparse_array *arrays, const kiln_sparse_slice *slices,
                                               const kiln_sparse_layout *to, kiln_sparse_array *out);

// --- in modules -----------------------------------------------------------------------------------------------------
//
// An array of a module with an encoding means a dense tensor, and every op computes on that. A device takes and gives
// the arrays that it is stored in, whose lengths are known when a module is compiled, while what is stored in them is
// known when it runs: there may be room for more.

// The fields of a leaf's encoding, in normal form; NULL: it has none, or there is no such leaf. Lives as long as the
// module.
KILN_API const char *kiln_module_parameter_leaf_encoding(const kiln_module *m, size_t i);
KILN_API const char *kiln_module_result_leaf_encoding(const kiln_module *m, size_t i);

// The arrays of a parameter's or result's leaf with an encoding.
typedef struct kiln_sparse_slot {
  bool result;
  size_t leaf;           // among those of the parameters, or of the result
  const int64_t *counts; // by buffer of its layout, elements, all batches together, at least as many as the layout
                         // says; -1: as many as a tensor of its sizes can need. NULL: all so
  // Of a parameter: its positions and coordinates are those of this parameter's leaf, which has another or the same
  // encoding but for explicit and implicit values; they are not given again, and are as long.
  bool shares;
  size_t with;
} kiln_sparse_slot;

// The same module over arrays: each leaf with an encoding becomes one leaf for each buffer of its layout, in that
// order, of one dimension, and behind those of a result one more, s64[buffers + 1]: how many elements each has to have,
// all batches together, then a number that is not 0 where the tensor cannot be stored (kiln_sparse_check_counts says
// why). Parameters and results are flat. Arrays of a result have zeros behind what is stored, and lack what they have
// no room for. Those of a parameter may have anything there, and whatever is in them, nothing outside is read or
// written; what they mean is said of arrays that kiln_sparse_verify finds right. Entries of one element are summed in
// the order in which they are stored, where the encoding says that they may come again; two slots of a level that
// counts have no element in common. The new module is the caller's. `slots`: those of which something is to be said.
// Errors: INVALID (a slot that is none, or twice; lengths below the layout's), UNSUPPORTED (a tensor that cannot be
// stored, or is too large; a bitcast of one).
KILN_API kiln_status kiln_module_densify(kiln_context *cx, const kiln_module *m, const kiln_sparse_slot *slots,
                                         size_t slot_count, kiln_module **out);
// Did a result's arrays, of these lengths, have room for what its last leaf counts? INVALID, with what is missing.
// Fills in how many elements each has: between batches lie as many as there is room for.
KILN_API kiln_status kiln_sparse_check_counts(kiln_context *cx, const kiln_sparse_layout *l, const int64_t *counts,
                                              kiln_sparse_array *arrays);

// --- files ----------------------------------------------------------------------------------------------------------

// The entries of a tensor, its sizes and its type, as files have them.
typedef struct kiln_sparse_list kiln_sparse_list;

typedef struct kiln_sparse_list_info {
  size_t rank;
  const int64_t *sizes;
  kiln_dtype dtype;
  kiln_sparse_entries entries;
} kiln_sparse_list_info;
// Lives as long as the list.
KILN_API const kiln_sparse_list_info *kiln_sparse_list_describe(const kiln_sparse_list *l);
KILN_API void kiln_sparse_list_destroy(kiln_sparse_list **l);
// Those of a stored tensor, in the order in which they are stored. Owned by the caller. INVALID: what
// kiln_sparse_verify says of bounds.
KILN_API kiln_status kiln_sparse_list_create(kiln_context *cx, const kiln_sparse_layout *l,
                                             const kiln_sparse_array *arrays, kiln_sparse_list **out);

typedef enum kiln_sparse_file {
  KILN_SPARSE_MATRIX_MARKET, // a text; "coordinate" and "array", of every field and symmetry
  KILN_SPARSE_NPZ_COO,       // SciPy's archives. What is read may have any of its formats, also bsr and dia
  KILN_SPARSE_NPZ_CSR,
  KILN_SPARSE_NPZ_CSC,
} kiln_sparse_file;

// Reads a file's bytes. `name` is for findings. `dtype`: what values are read as; NONE: as the file says. Owned by the
// caller. INVALID: what is wrong, and where in the file, or in which of its arrays.
KILN_API kiln_status kiln_sparse_list_read(kiln_context *cx, kiln_sparse_file kind, const char *name, const void *bytes,
                                           size_t size, kiln_dtype dtype, kiln_sparse_list **out);
// A file's bytes. Free with kiln_text_free. UNSUPPORTED: a type that such files have not; what is no matrix, but for
// coo; archives of more than 4 GiB.
KILN_API kiln_status kiln_sparse_list_write(kiln_context *cx, const kiln_sparse_list *l, kiln_sparse_file kind,
                                            char **bytes, size_t *size);

// Two .npy files: integers [entries][rank], and values [entries].
typedef struct kiln_sparse_npy {
  const char *name;
  const void *bytes;
  size_t size;
} kiln_sparse_npy;
// `sizes`: by dimension, `rank` of them; NULL: the least that coordinates fit.
KILN_API kiln_status kiln_sparse_list_read_npy(kiln_context *cx, const kiln_sparse_npy *coordinates,
                                               const kiln_sparse_npy *values, const int64_t *sizes, size_t rank,
                                               kiln_dtype dtype, kiln_sparse_list **out);
// Free both with kiln_text_free.
KILN_API kiln_status kiln_sparse_list_write_npy(kiln_context *cx, const kiln_sparse_list *l, char **coordinates,
                                                size_t *coordinates_size, char **values, size_t *values_size);

#ifdef __cplusplus
}
#endif
#endif

// kiln: physical layouts, where the elements of an array lie in memory.
//
// A layout is made from a shape as HLO writes it and is immutable: several threads may read it. Logical indices are
// those of the shape, one for each dimension; a position counts elements from the data's beginning, padding included.
// docs/layouts.md has the rules.
#ifndef KILN_LAYOUT_H
#define KILN_LAYOUT_H

#include <kiln/index.h>
#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_layout kiln_layout;

// Reads a shape such as "f32[3,5]{1,0:T(2,2)}" or, with the type in upper case, "F32[3,5]". Without a layout the
// default order holds. On success stores a layout that the caller owns; destroy it before the context. Errors: INVALID
// (no array shape; the finding has its place in the text), UNSUPPORTED (shapes that do not say where elements lie:
// dimensions without a bound, sparse layouts, split dimensions, a physical shape of its own, E(n) below the type's
// bits).
KILN_API kiln_status kiln_layout_parse(kiln_context *cx, const char *shape, kiln_layout **out);
KILN_API void kiln_layout_destroy(kiln_layout **l);

typedef struct kiln_layout_info {
  kiln_array_type type; // dimensions that may be smaller at run time are at their bounds
  const char *shape;    // canonical text
  int64_t elements;     // logical ones
  int64_t positions;    // with all padding
  int64_t element_bits; // from one position to the next
  int64_t prefix_bytes; // before the data
  int64_t bytes;        // the buffer's: prefix and positions
  size_t digit_count;   // physical dimensions
  size_t name_count;    // of kiln_layout_name_at
} kiln_layout_info;
// Lives as long as the layout.
KILN_API const kiln_layout_info *kiln_layout_describe(const kiln_layout *l);

// Physical dimension i, major to minor: position = sum(digit * stride), 0 <= digit < extent. *value is the digit of an
// element, by logical indices d0, d1 ... and names: "(d0 / 8) mod 4"; / rounds down. False if i is out of range.
KILN_API bool kiln_layout_digit_at(const kiln_layout *l, size_t i, int64_t *extent, int64_t *stride,
                                   const char **value);
// What a name in the digits' values stands for: "c0" is "d0 * 7 + d1". Names use d's and names before them.
KILN_API bool kiln_layout_name_at(const kiln_layout *l, size_t i, const char **name, const char **value);

// Reads "2,3", one number for each dimension (nothing for rank 0). INVALID: with its place in the text.
KILN_API kiln_status kiln_layout_read_index(kiln_context *cx, const kiln_layout *l, const char *text, int64_t *index);
// Position of the element at `index` (one number for each dimension). INVALID: outside the shape.
KILN_API kiln_status kiln_layout_position(kiln_context *cx, const kiln_layout *l, const int64_t *index,
                                          int64_t *position);
// The element at a position, or *padding (then `index` is all 0). INVALID: outside 0..positions-1.
KILN_API kiln_status kiln_layout_index(kiln_context *cx, const kiln_layout *l, int64_t position, int64_t *index,
                                       bool *padding);
// New maps, owned by the caller: from the logical index to the position; from positions to the logical index, whose
// domain are the positions of elements.
KILN_API kiln_status kiln_layout_map(kiln_context *cx, const kiln_layout *l, kiln_map **out);
KILN_API kiln_status kiln_layout_inverse_map(kiln_context *cx, const kiln_layout *l, kiln_map **out);
// First padding position from `from` on; -1 if there is none.
KILN_API int64_t kiln_layout_next_padding(const kiln_layout *l, int64_t from);
// A position's lowest bit: *byte of the buffer, *bit (0..7) of that byte. False outside 0..positions-1.
KILN_API bool kiln_layout_address(const kiln_layout *l, int64_t position, int64_t *byte, unsigned *bit);

// Between elements (row-major, unpacked, one byte each for sub-byte types) and a buffer of `bytes` in the layout.
// Packing writes zero to padding and prefix, unpacking does not look at them. Without elements nothing is read or
// written.
KILN_API bool kiln_layout_pack(const kiln_layout *l, const void *elements, void *buffer);
KILN_API bool kiln_layout_unpack(const kiln_layout *l, const void *buffer, void *elements);

// Is a reshape (elements keep their row-major order), or a transpose (dimension i of `to` is dimension perm[i] of
// `from`), without movement: every element at the same bits? UNKNOWN is rare: where padding stands inside of
// dimensions that the reshape splits, and only beyond 2^18 runs of elements.
KILN_API kiln_truth kiln_layout_reshape_moves_nothing(const kiln_layout *from, const kiln_layout *to);
KILN_API kiln_truth kiln_layout_transpose_moves_nothing(const kiln_layout *from, const kiln_layout *to,
                                                        const int64_t *perm);
// Does a bitcast have a value: does every element of `to` lie on elements of `from`, on no padding?
KILN_API bool kiln_layout_bitcast_reads_elements(const kiln_layout *from, const kiln_layout *to);

#ifdef __cplusplus
}
#endif
#endif

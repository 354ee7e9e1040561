// Physical layouts: where the elements of an array lie in memory, by everything that its shape's layout says.
//
// A layout is a list of values, each made from earlier ones with constants:
//   index      value d is dimension d of the logical index, d < rank
//   unit       0: a dimension of extent 1, where a tile has more sizes than there are dimensions
//   combined   a * by + b, by = extent of b: dimensions that a tile's '*' merges
//   quotient   a / by, and behind it the
//   remainder  a mod by: a dimension and one of a tile's sizes
// Every value feeds one combined value, or one quotient and its remainder, or is a digit: a physical dimension. The
// position of an element, in elements from the data's beginning, is sum(digit * stride), mixed radix: a digit's stride
// is the product of the extents behind it. This is pad, reshape, transpose, tile by tile, written as arithmetic:
// quasi-affine, all divisors constant.
//
// Inverse: taking a position apart into digits and undoing the values last to first gives the one candidate; it is an
// element if every value lies below its bound, else the position is padding.
//
// What overflows is refused when the layout is made: nothing later can.
#ifndef KL_LAYOUT_H
#define KL_LAYOUT_H

#include "ir/hlo.h"
#include <kiln/layout.h>

enum {
  KL_MAX_TILE_SIZES = 128, // of all tiles of a layout together
  KL_MAX_VALUES = KILN_MAX_RANK + 3 * KL_MAX_TILE_SIZES,
  KL_MAX_DIGITS = KILN_MAX_RANK + 2 * KL_MAX_TILE_SIZES,
};

typedef enum kl_value_kind {
  KL_VALUE_INDEX,
  KL_VALUE_UNIT,
  KL_VALUE_COMBINED,
  KL_VALUE_QUOTIENT,
  KL_VALUE_REMAINDER,
} kl_value_kind;

typedef struct kl_value {
  kl_value_kind kind;
  uint16_t a, b;  // operands: values before this one
  uint16_t tile;  // 1 + number of the tile that made it; 0: an index
  int64_t by;     // > 0 wherever the shape has elements
  int64_t extent; // with padding: as a digit it takes 0..extent-1
  int64_t bound;  // of elements: 0 <= value < bound <= extent
} kl_value;

typedef struct kl_digit {
  uint16_t value;
  int64_t extent, stride;
} kl_digit;

typedef struct kl_physical {
  uint32_t rank, nvalues, ndigits;
  int64_t elements;  // logical ones; bounds of dynamic dimensions count whole
  int64_t tiled;     // product of the digits' extents
  int64_t positions; // with the padding at the tail
  int64_t bits;      // from one element to the next
  int64_t prefix;    // bytes before the data
  int64_t bytes;     // prefix and all positions
  kl_value values[KL_MAX_VALUES];
  kl_digit digits[KL_MAX_DIGITS]; // major to minor
} kl_physical;

typedef enum kl_physical_error {
  KL_PHYSICAL_OK,
  KL_PHYSICAL_NO_ARRAY,
  KL_PHYSICAL_UNKNOWN, // a dimension without a bound
  KL_PHYSICAL_SPARSE,  // D
  KL_PHYSICAL_ENCODED, // SP
  KL_PHYSICAL_SPLIT,   // SC
  KL_PHYSICAL_OTHER,   // P: another shape stands for it in memory
  KL_PHYSICAL_TILE,    // an empty tile, a size below 1, or '*' as the last one
  KL_PHYSICAL_TILES,   // more than KL_MAX_TILE_SIZES
  KL_PHYSICAL_BITS,    // E(n): elements do not fit n bits
  KL_PHYSICAL_LARGE,   // more than int64 positions or bytes
} kl_physical_error;

kl_physical_error kl_physical_of(const kl_shape *s, kl_physical *out);
const char *kl_physical_error_text(kl_physical_error e); // "a layout of split dimensions (SC)"
// Nothing but an order of dimensions: positions are those of an array without tiles, bits those of the type.
bool kl_layout_is_order(const kl_shape *s);

// Position of an element; the index must lie inside the shape.
int64_t kl_physical_position(const kl_physical *p, const int64_t *index);
// The element at a position; false if it is padding or outside 0..positions-1.
bool kl_physical_index(const kl_physical *p, int64_t position, int64_t *index);
// Positions from here on that are alike: elements (true) or padding. *n >= 1 is not always the most. The position must
// lie inside.
bool kl_physical_stretch(const kl_physical *p, int64_t position, int64_t *n);
// First padding position from `from` on; -1 if there is none.
int64_t kl_physical_next_padding(const kl_physical *p, int64_t from);
// The first element of a run: *n >= 1 elements that follow in dimension `dim` lie *step positions apart. *n is not
// always the most. Returns the position of the first.
int64_t kl_physical_run(const kl_physical *p, const int64_t *index, uint32_t dim, int64_t *n, int64_t *step);

typedef struct kl_run {
  const int64_t *index; // of the first element
  uint32_t dim;
  int64_t n, position, step; // of the first element, and to the next one
} kl_run;
// Visits every element of the shape that `p` was made from once, in runs.
void kl_physical_runs(const kl_shape *s, const kl_physical *p, void (*visit)(void *arg, const kl_run *r), void *arg);

// The lowest bit of a position.
typedef struct kl_bit {
  int64_t byte; // from the buffer's beginning
  unsigned bit; // 0..7
} kl_bit;
kl_bit kl_physical_bit(const kl_physical *p, int64_t position);

// A value as one digit of another: (base / div) mod m. Quotients of quotients, and remainders of remainders that divide
// them, are such digits of the same base.
typedef struct kl_form {
  uint16_t base; // an index, a combined value, or one that is no digit of those; KL_FORM_ZERO: the value is 0
  int64_t div;
  int64_t mod; // 0: none
} kl_form;
#define KL_FORM_ZERO UINT16_MAX
// forms[v] for every value v. `indices` gives those of the logical indices, in which case bases of KL_MAX_VALUES and
// more are the caller's; NULL: each is its own base.
void kl_physical_forms(const kl_physical *p, const kl_form *indices, kl_form *forms);

// --- two layouts ----------------------------------------------------------------------------------------------------

// A bitcast gives each element of its result the bits at the element's place. Sizes in bits of elements may differ.

// Does every element of `to` lie on elements of `from`? Looks at no more than `most` stretches (INT64_MAX: decided
// always).
kiln_truth kl_bitcast_reads_elements(const kl_physical *from, const kl_physical *to, int64_t most);
// Are reshape (equal row-major order of elements) or transpose (result dimension i is operand dimension perm[i]) from
// one shape to the other without movement: every element at the same bits? Shapes must have as many elements, or
// fitting dimensions, and types of the same bits. UNKNOWN, for padding in the middle of dimensions that a reshape
// splits, beyond 2^18 runs of elements; a shape without a physical layout: NO.
kiln_truth kl_reshape_is_bitcast(const kl_shape *from, const kl_shape *to);
kiln_truth kl_transpose_is_bitcast(const kl_shape *from, const kl_shape *to, const int64_t *perm);

#endif

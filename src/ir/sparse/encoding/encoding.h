// Encodings of sparse tensors: how the coordinates of a tensor's dimensions become the levels of a tree that is stored.
//
// An encoding is made from text (docs/sparse.md has the grammar), is immutable, and lives in an arena. Two ways of
// reading: strict takes what MLIR 22.1.8 takes, and nothing else; the default takes more, and refuses what can mean
// nothing. Both print the same normal form, and reading that gives the same encoding.
#ifndef KL_ENCODING_H
#define KL_ENCODING_H

#include "ir/dtype.h"
#include "ir/index/map/map.h"
#include "ir/sparse/encoding/tree.h"
#include <kiln/sparse.h>

enum { KL_MOST_LEVELS = 128 }; // also of dimensions

typedef struct kl_level {
  kiln_level_format format;
  unsigned properties; // KILN_LEVEL_NONUNIQUE and so on
  int64_t n, m;        // structured; else 0
  const kl_tree *value;
} kl_level;

enum { KL_SLICE_DYNAMIC = -1 };
typedef struct kl_slice {
  bool given;
  int64_t offset, size, stride; // KL_SLICE_DYNAMIC: known when the program runs
} kl_slice;

typedef enum kl_number_class { KL_NUMBER_NONE, KL_NUMBER_INT, KL_NUMBER_FLOAT, KL_NUMBER_COMPLEX } kl_number_class;

// An element type as MLIR writes it: "f32", "si8", "complex<f32>", "vector<4xf32>".
typedef struct kl_mtype {
  kl_str text;
  kl_number_class cls; // NONE: no number
  unsigned bits;       // integers; index has 64
  char sign;           // 's' or 'u' where written, else 0
  kl_dtype dtype;      // KILN_DTYPE_NONE: kiln has no such type
  kl_dtype part;       // of a complex type
} kl_mtype;

// The value of explicitVal or implicitVal.
typedef struct kl_number {
  kl_number_class cls; // NONE: not given
  kl_mtype type;
  bool bare;        // no type was written: in default mode it takes that of the tensor
  bool negative;    // integers: value = -size, or size
  uint64_t size;    //
  double value[2];  // floats: real and imaginary part
  uint64_t bits[2]; // in type.dtype
  kl_str text;      // normal form, with its type
} kl_number;

// A tensor's type.
typedef struct kl_tensor_type {
  bool given;
  uint32_t rank;
  int64_t sizes[KL_MOST_LEVELS]; // -1: not known
  kl_mtype element;
} kl_tensor_type;

typedef struct kl_encoding {
  kl_ctx *cx;
  bool strict;
  uint32_t ndims, nlevels, nsymbols;
  const kl_level *levels;
  const kl_tree *const *inverse; // as written, by dimension, of the levels as dims; NULL: not written
  bool complete;                 // an inverse was written for every dimension
  const kl_slice *slices;        // by dimension; NULL: none
  unsigned pos_width, crd_width; // bits; 0: 64
  kl_number explicit_value, implicit_value;
  kl_tensor_type type;
  bool needs_inverse; // it does not follow from the levels: printed
  kl_trees trees;
} kl_encoding;

// Where levels begin and how large they are, for dimensions of these sizes, and the way back.
typedef struct kl_level_extent {
  int64_t lo;    // a level's coordinates are stored as the value of its expression less this
  int64_t size;  // -1: depends on what is not known
  int32_t count; // the dimension that the level counts the elements of, or -1
} kl_level_extent;

typedef struct kl_binding {
  kl_level_extent levels[KL_MOST_LEVELS];
  const kl_aff *dims[KL_MOST_LEVELS]; // by dimension, of the values of level expressions as dims; where `why` is NULL
  const char *why;                    // no way back from levels to dimensions: the reason
  bool unsure;                        // with these sizes there may be one
} kl_binding;

// Sizes of -1 are not known. Expressions are of the pool.
void kl_encoding_bind(const kl_encoding *e, kl_affs *p, const int64_t *sizes, kl_binding *out);
// As kiln_encoding_buffer_at; the number of buffers. UNSUPPORTED: a number beyond 64 bits.
uint32_t kl_encoding_buffer_count(const kl_encoding *e);
bool kl_encoding_buffer(const kl_encoding *e, const kl_binding *b, kl_dtype t, uint32_t i, kiln_sparse_buffer *out);

#endif

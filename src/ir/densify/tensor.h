// A tensor with an encoding as kernels see it: arrays whose lengths are known, of whatever is stored in them. Private
// to this room.
#ifndef KL_DENSIFY_TENSOR_H
#define KL_DENSIFY_TENSOR_H

#include "ir/densify/expression.h"
#include "ir/sparse/store/store.h"

typedef struct kl_tensor {
  const kl_shape *shape; // with the encoding
  kiln_sparse_layout *l;
  kl_store s; // without arrays
  uint32_t nbuffers;
  kiln_sparse_buffer *buffers;
  kl_dtype *types;                                             // of their elements
  int64_t *lengths;                                            // of their elements, for each batch
  uint64_t implicit[KL_VALUE_WORDS], explicit[KL_VALUE_WORDS]; // bits of the real and imaginary part
  bool has_explicit;
  const kl_aff **values;     // by level, of dimensions; NULL where it counts
  int64_t *sizes, *first;    // by level: coordinates that there are, whole groups of a structured one; of 0 the value
  int64_t space;             // product of those sizes
  kl_dom *by_level, *by_dim; // what bounds of levels' and dimensions' values say
  bool plain;                // levels are dimensions as they are, each once
  bool narrow;               // 32 bits do for indices
} kl_tensor;

// The arrays that a leaf is stored in. `counts`: their lengths, all batches together, -1: as long as they have to be at
// most; NULL: all so. `what` begins messages: "parameter 0". INVALID, UNSUPPORTED. To be closed in any case.
kiln_status kl_tensor_open(kl_ctx *cx, kl_arena *arena, const kl_shape *s, const int64_t *counts, const char *what,
                           kl_tensor *out);
void kl_tensor_close(kl_tensor *x);
// Makes its arrays as long as those of a tensor of the same structure.
void kl_tensor_take_lengths(kl_tensor *x, const kl_tensor *of);
// Array i as a module has it.
const kl_shape *kl_tensor_array(const kl_tensor *x, kiln_module *m, uint32_t i);
static inline int64_t kl_tensor_batches(const kl_tensor *x) {
  return x->s.batches;
}
// May entries of one element come again?
bool kl_tensor_repeats(const kl_tensor *x);
// What unpacking and packing combine with.
void kl_tensor_combiners(kl_graph *g, const kl_tensor *x);

// The computation (arrays) -> dense tensor. What data say is held to the arrays: nothing else is read or written,
// whatever they say.
uint32_t kl_unpack(kl_graph *g, const kl_tensor *x, const char *name);
// By array, how many elements each has to have, [batches], as what is stored in positions says. `arrays` are those of
// the open computation; values are not looked at.
void kl_stored_needs(kl_graph *g, const kl_tensor *x, uint32_t *arrays, uint32_t *need);

// The computation (dense tensor) -> (arrays, counts). counts: s64, of each array how many elements it has to have, all
// batches together, then KL_PACK_* of what cannot be stored. What arrays have no room for is left out; behind what is
// stored they are zero. UNSUPPORTED, with the reason.
enum {
  KL_PACK_FULL = 1,       // a group, a slot or a unique level that a singleton follows
  KL_PACK_COORDINATE = 2, // does not fit its width
  KL_PACK_POSITION = 4,
  KL_PACK_VALUE = 8, // is not the explicit one
};
kiln_status kl_pack_check(kl_ctx *cx, const kl_tensor *x, const char *what);
uint32_t kl_pack_tensor(kl_graph *g, const kl_tensor *x, const char *name);
// Counts: of what each array needs, and a code, s64[], or UINT32_MAX: nothing is wrong.
uint32_t kl_put_counts(kl_graph *g, const kl_tensor *x, const uint32_t *need, uint32_t code);

#endif

// An encoding bound to a type and sizes: what storage works on.
#ifndef KL_SPARSE_LAYOUT_H
#define KL_SPARSE_LAYOUT_H

#include "ir/sparse/encoding/encoding.h"

struct kiln_sparse_layout {
  kl_ctx *cx;
  kl_arena arena;
  kl_affs *pool;
  struct kiln_encoding *held;
  const kl_encoding *e;                     // of it
  kl_tensor_type type;                      // that it is bound to
  kl_number explicit_value, implicit_value; // in the tensor's type
  kl_binding binding;
  const char **dims; // texts by dimension; NULL where there is no way back
};

// What it is of, which then lives until the handle is destroyed once more.
const kl_encoding *kl_encoding_hold(const struct kiln_encoding *h);
struct kl_shape;
// How arrays of a shape with an encoding are stored. Owned by the caller. UNSUPPORTED: dynamic dimensions.
kiln_status kl_sparse_layout_of(kl_ctx *cx, const struct kl_shape *s, kiln_sparse_layout **out);

#endif

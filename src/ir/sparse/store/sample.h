// Dense tensors that an encoding can store.
#ifndef KL_SPARSE_SAMPLE_H
#define KL_SPARSE_SAMPLE_H

#include "ir/hlo.h"

// Of a dense tensor of a shape with an encoding, row-major and packed, keeps about one element in eight, and no more
// than the encoding has room for: others become the implicit value. What is kept follows from `stream` alone. False
// where there is no memory, or the encoding has no value of the type.
bool kl_sparse_sample(kl_ctx *cx, const kl_shape *s, uint64_t stream, void *buffer);

#endif

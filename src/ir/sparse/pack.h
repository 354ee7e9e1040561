// Packing, which dense tensors and conversions go through, too.
#ifndef KL_SPARSE_PACK_H
#define KL_SPARSE_PACK_H

#include "ir/sparse/store.h"

// sum += x, both unpacked: wraps, rounds once, or for pred.
void kl_value_add(kl_dtype t, void *sum, const void *x);
// As kiln_sparse_pack, its arguments checked.
kiln_status kl_pack(kl_store *s, const kiln_sparse_entries *in);

#endif

// Encodings as text, and what is wrong with them.
#ifndef KL_SPARSE_TEXT_H
#define KL_SPARSE_TEXT_H

#include "ir/sparse/encoding/encoding.h"
#include "ir/sparse/text/rules.h"

typedef struct kl_encoding_reading {
  bool strict;
  const char *type;             // text of a tensor type, or NULL
  const kl_tensor_type *tensor; // the same, read already, or NULL
  size_t begin;                 // where in the source it begins
  kl_sparse_rule broken;        // set where a rule was
} kl_encoding_reading;

// Reads, verifies. INVALID with a place and the rule that is broken; UNSUPPORTED for what is too large.
kiln_status kl_encoding_read(kl_ctx *cx, kl_arena *arena, const kl_source *src, kl_encoding_reading *how,
                             const kl_encoding **out);
// The fields in normal form; NULL after a finding.
const char *kl_encoding_normal(kl_ctx *cx, kl_arena *arena, const kl_source *src, kl_encoding_reading *how);
// kiln's types as MLIR writes them.
kl_mtype kl_mtype_of(kl_dtype t);
// What is not in the arena.
void kl_encoding_free(const kl_encoding *e);
// "map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32".
void kl_encoding_print_fields(kl_sb *b, const kl_encoding *e);
void kl_encoding_print(kl_sb *b, const kl_encoding *e); // the whole attribute
// The value in another type; false where it has none there.
bool kl_number_convert(kl_arena *a, const kl_number *x, const kl_mtype *type, kl_number *out);

#endif

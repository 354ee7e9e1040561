// What the rooms of sparse share: inverses, and the table of formats.
#ifndef KL_SPARSE_IMPL_H
#define KL_SPARSE_IMPL_H

#include "ir/sparse/encoding/encoding.h"

// --- inverses (encoding/inverse.c) ----------------------------------------------------------------------------------

// MLIR's own: permutations and blocks. NULL where it finds none; else by dimension, *n of them.
const kl_tree *const *sp_infer_blocks(kl_encoding *e, kl_arena *arena, uint32_t *n);
// Is the map one of blocks as MLIR has them?
bool sp_is_blocks(const kl_encoding *e);
// Is there a value wherever variables have one? Remainders are by positive numbers.
bool sp_has_value(const kl_encoding *e, const kl_tree *v);
// A dimension that no level tells of, or -1.
int32_t sp_missing(const kl_encoding *e);
// Do dimensions follow from levels, whatever the sizes?
bool sp_inverse_follows(const kl_encoding *e);
// Does the inverse that is written lead back, for all dimensions that it can give? *at: one where it does not.
bool sp_inverse_holds(const kl_encoding *e, uint32_t *at);
// The dimension that a level counts elements of, or -1; *slots: how many of them, -1 where the text does not say.
int32_t sp_counts(const kl_tree *value, int64_t *slots);

// --- formats (encoding/level.c) -------------------------------------------------------------------------------------

typedef struct level_word {
  const char *word;
  kiln_level_format format;
  unsigned properties; // that the word brings
  int64_t n, m;        // sizes that the word brings
  bool old;            // of default mode alone
} level_word;
const level_word *sp_level_word(kl_str word, bool strict);
const char *sp_format_name(kiln_level_format f);
unsigned sp_format_allows(kiln_level_format f); // properties
bool sp_property(kl_str word, unsigned *out);
void sp_put_level_type(kl_sb *b, const kl_level *l);
static inline bool sp_is_compressed(const kl_level *l) {
  return l->format == KILN_LEVEL_COMPRESSED || l->format == KILN_LEVEL_LOOSE_COMPRESSED;
}

#endif

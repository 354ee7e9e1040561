// What the files of this room share: the reader of texts, numbers, stages of verification.
#ifndef KL_SPARSE_IMPL_H
#define KL_SPARSE_IMPL_H

#include "ir/text/scan.h"
#include "ir/sparse/encoding.h"

typedef enum token {
  T_END,
  T_WORD,    // map, d0, f32; dots inside
  T_INTEGER, // decimal or 0x
  T_FLOAT,
  T_STRING,
  T_HASH, // #complex.number; `text` with the #
  T_ARROW,
  T_PUNCT, // one character, in `punct`
} token;

typedef struct variables {
  VEC(kl_str) of[3]; // by variable_kind
} variables;
typedef enum variable_kind { V_DIM, V_SYMBOL, V_LEVEL } variable_kind;

typedef struct reader {
  kl_ctx *cx;
  kl_arena *arena;
  kl_scan scan;
  kl_encoding *e;
  kl_encoding_reading *how;
  token kind;
  char punct;
  unsigned depth; // of parentheses
  kiln_status status;
  // of the map
  variables vars;
  VEC(kl_level) levels;
  VEC(const kl_tree *) inverse; // by dimension, NULL where none is written
  VEC(kl_slice) slices;
  uint32_t nlast; // levels of the last map
  bool empty_map; // () -> ()
  bool has_map;
  kl_span map_span, pos_span, crd_span, explicit_span, implicit_span;
  VEC(kl_span) level_spans;
  int64_t pos_width, crd_width;
} reader;

// --- reading (read.c) ---------------------------------------------------------------------------------------------

void sp_next(reader *r);
kl_str sp_text(const reader *r);
kl_span sp_here(const reader *r);
kl_span sp_since(const reader *r, size_t begin);
// Records that the rule is broken, once. Returns false.
bool sp_broken(reader *r, kl_span where, kl_sparse_rule rule, const char *fmt, ...) KL_PRINTF(4, 5);
// "expected WHAT, found ..." at the token.
bool sp_expected(reader *r, kl_sparse_rule rule, const char *what);
bool sp_is(const reader *r, char punct);
bool sp_eat(reader *r, char punct);
bool sp_need(reader *r, char punct, kl_sparse_rule rule, const char *what);
bool sp_is_word(const reader *r, const char *word);

// --- the map (read_map.c) -----------------------------------------------------------------------------------------

bool sp_read_map(reader *r);

// --- numbers and types (number.c) ---------------------------------------------------------------------------------

// The type that begins at the token.
bool sp_read_mtype(reader *r, kl_mtype *out);
// A number with its type, or one with none, which is an i64 or f64. *number is false, and nothing is found, where
// something else stands there.
bool sp_read_number(reader *r, kl_number *out, bool *number);
bool sp_number_is_zero(const kl_number *x);
// "4x?xf32", "tensor<4x?xf32>", "f32[4,8]".
bool sp_read_type(reader *r, kl_tensor_type *out);

// --- verifying (verify.c), inverses (inverse.c) -------------------------------------------------------------------

bool sp_verify(reader *r);
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

// --- formats (level.c) --------------------------------------------------------------------------------------------

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

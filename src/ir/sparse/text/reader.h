// What the files of this room share: the reader of texts, numbers, verification.
#ifndef KL_SPARSE_READER_H
#define KL_SPARSE_READER_H

#include "ir/sparse/impl.h"
#include "ir/sparse/text/text.h"
#include "ir/text/scan.h"

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

// --- the map (map.c) -----------------------------------------------------------------------------------------

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

// --- verifying (verify.c) -------------------------------------------------------------------------------------------

bool sp_verify(reader *r);

#endif

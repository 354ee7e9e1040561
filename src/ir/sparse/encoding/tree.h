// Expressions of a sparse encoding's map, as they are written: trees, folded only as far as MLIR folds its affine
// expressions when it makes them, so that the text is the same, and so is what MLIR compares by structure. What they
// mean is kl_aff's affair (kl_tree_aff).
//
// Trees are interned in their pool: equal structure, equal pointer. A pool lives in its arena and serves one thread.
#ifndef KL_TREE_H
#define KL_TREE_H

#include "ir/index/aff/aff.h"

typedef enum kl_tree_kind {
  KL_TREE_ADD,
  KL_TREE_MUL,
  KL_TREE_MOD,
  KL_TREE_FLOOR,
  KL_TREE_CEIL,
  KL_TREE_CONST, // leaves from here on
  KL_TREE_DIM,   // of the map: a dimension, or a level in the inverse
  KL_TREE_SYMBOL,
} kl_tree_kind;

typedef struct kl_tree {
  kl_tree_kind kind;
  bool symbolic;  // of symbols and constants alone
  uint32_t depth; // 0 for a leaf
  int64_t value;  // a constant's; a variable's number
  const struct kl_tree *a, *b;
} kl_tree;

enum { KL_TREE_DEEPEST = 300 };

typedef struct kl_trees {
  kl_arena *arena;
  VEC(const kl_tree *) all;
  kl_ids ids;
} kl_trees;

void kl_trees_init(kl_trees *p, kl_arena *arena);
void kl_trees_free(kl_trees *p);

const kl_tree *kl_tree_leaf(kl_trees *p, kl_tree_kind kind, int64_t value);
// Folded. NULL where an operand is, or the tree would be deeper than KL_TREE_DEEPEST.
const kl_tree *kl_tree_binary(kl_trees *p, kl_tree_kind kind, const kl_tree *a, const kl_tree *b);
// The constant's value.
bool kl_tree_const(const kl_tree *e, int64_t *out);
bool kl_tree_is(const kl_tree *e, kl_tree_kind kind);
bool kl_tree_uses(const kl_tree *e, kl_tree_kind kind, int64_t number);
// Variables print as the letter and their number, symbols as s and theirs.
void kl_tree_print(kl_sb *b, const kl_tree *e, char letter);
// The same value: dims stay dims, symbols become ranges. An error value where kl_aff has none.
const kl_aff *kl_tree_aff(kl_affs *p, const kl_tree *e);
// Bounds of the value where dimension i is in lo[i] .. hi[i], by those of each operand: sound, exact where nothing
// occurs twice. False where there is no value, or it leaves 64 bits. No symbols.
bool kl_tree_bounds(const kl_tree *e, const int64_t *lo, const int64_t *hi, int64_t *least, int64_t *most);

#endif

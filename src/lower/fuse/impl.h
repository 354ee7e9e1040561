// Private to src/lower/fuse: nodes, which are kernels to be or instructions that stay, and who needs whom.
#ifndef KL_FUSE_IMPL_H
#define KL_FUSE_IMPL_H

#include "lower/choose/choose.h"
#include "lower/choose/rough.h"
#include "lower/fuse/fuse.h"

// What a kernel does beside elements one by one.
typedef enum kl_hero {
  KL_HERO_NONE,
  KL_HERO_REDUCTION,
  KL_HERO_CONTRACTION,
  KL_HERO_CHANGE,
  KL_HERO_ROUNDS, // of a loop that each thread runs by itself
  KL_HERO_ALONE
} kl_hero;

// How what is wanted lies to the elements of a node's results, as numbers of its own. FULL: at the same index.
enum { KL_SPREADS = 6, KL_ORDERS = 6 };
enum { KL_AT_OTHERS, KL_AT_FULL, KL_AT_FIRST_FREE };

typedef struct kl_maker {
  uint32_t instr; // that stays; or the first result
  bool stays;
  kl_hero hero;
  uint32_t rounds;       // of its hero: the loop
  const kl_shape *full;  // dims of the results that are made one by one
  const kl_instr *space; // the first reduction: its operand's dims and the reduced ones
  uint32_t space_at, row_at;
  // The first broadcasts over `full` that are read at FULL, of different dims, and how their operands are wanted.
  uint32_t nspread;
  struct {
    const kl_instr *instr;
    uint32_t at;
  } spread[KL_SPREADS];
  // How each element is wanted once, in another order than the results'; neighbours of the first one differ in `dim`.
  uint32_t norders;
  struct {
    uint32_t at, dim;
  } order[KL_ORDERS];
  uint32_t next_at;
  uint32_t size, results;
  uint32_t into;       // another node that it has become part of, or itself
  VEC(uint32_t) needs; // nodes, as they were when they were noted
} kl_maker;

// A node that wants a value.
typedef struct kl_use {
  uint32_t node;
  uint32_t at;
  bool outside;  // it has to be there, written
  double made;   // times that an element of the value is made there
  double copies; // indices at which it is wanted: so often its code is there
} kl_use;

typedef struct kl_uses {
  uint32_t n, cap;
  kl_use *p;
} kl_uses;

typedef enum kl_written {
  KL_MADE_INSIDE,
  KL_FOR_OUTSIDE,
  KL_FOR_HERO,
  KL_FOR_TIME,
  KL_FOR_LINES,
  KL_FOR_ORDER,
  KL_FOR_SIZE
} kl_written;

typedef struct kl_fuser {
  kl_ctx *cx;
  kl_arena *arena;
  const kiln_module *m;
  const kl_comp *c;
  const bool *has; // by computation: it has an op that needs a kernel
  uint32_t *home;  // by instruction: node
  bool *given;
  const bool **changes;         // by instruction, of a loop that a kernel runs: by leaf, does it change? NULL: others
  uint8_t *why;                 // by instruction: kl_written
  uint32_t *node_of;            // by instruction that stays, or hands on what one makes: that one; KL_NO_GROUP: none
  kl_uses *uses;                // by instruction
  uint32_t *first_user, *users; // by instruction, instructions
  bool *folded;                 // by instruction: it is made of a reduction, element by element
  uint32_t *home_at;            // by instruction: how its home wants it
  double *work, *bytes_in;      // by instruction: instructions for an element, what all of it reads
  VEC(kl_maker) nodes;
  uint32_t *seen; // by node, of the search at hand
  uint32_t nseen, search;
  VEC(uint32_t) stack;
} kl_fuser;

// nodes.c
uint32_t kl_fuse_node(kl_fuser *f, uint32_t instr, bool stays);
kl_maker *kl_fuse_at(kl_fuser *f, uint32_t node); // what it has become
uint32_t kl_fuse_number(kl_fuser *f, uint32_t node);
void kl_fuse_need(kl_fuser *f, uint32_t node, uint32_t what);
// Does it need `what`, by whatever way? True also where that is not found out within a bounded search.
bool kl_fuse_needs(kl_fuser *f, uint32_t node, uint32_t what);
bool kl_fuse_join(kl_fuser *f, uint32_t a, uint32_t b); // makes them one, unless one needs the other

// fuse.c
// Is it a parameter of ENTRY whose buffer lies otherwise than its values? What reads memory as it lies reads a copy
// then.
bool kl_fuse_lies_otherwise(const kiln_module *m, const kl_comp *c, uint32_t i);
bool kl_fuse_same_space(const kl_fuser *f, const kl_instr *a, const kl_instr *b);

// why.c: what becomes of it, a line for each fusion and each value that is written.
void kl_fuse_tell(kl_fuser *f, const kl_fused *how, kl_sb *b);

// siblings.c: kernels over the same elements that read something alike become one.
void kl_fuse_siblings(kl_fuser *f);

#endif

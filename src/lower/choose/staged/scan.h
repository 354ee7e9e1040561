// Private to scans: what is scanned, and lines of it.
//
// Order (docs/numerics.md): element i of a line has digits to the base 16. Blocks of level 0 are 16 elements that
// follow one another, those of level j 16 blocks of level j-1. A block's chain joins what its parts make of their
// elements, from left to right: elements, or whole blocks of the level below. Result i is ((init, c_m) .. c_1), c_0,
// where c_j is the chain of what comes before i's own part in its block of level j, and c_0 that of elements up to i
// itself.
#ifndef KL_SCAN_H
#define KL_SCAN_H

#include "lower/choose/staged/staged.h"

enum { KL_SCAN_BASE = 16, KL_SCAN_LEVELS = 16 };

typedef struct kl_scan {
  const kl_stage *s; // operands: the arrays, and what each line begins with, one for all or one for each
  uint32_t dim;      // along which lines go
  int64_t length;    // of a line
  bool reverse;      // from its end on
  bool lasts;        // the last result of each line is a result of its own, without the dimension
  bool inits;        // one for each
  kl_combiner by;    // of n values: arrays, and what lines begin with, by value
  const kl_comp
      *step;    // of `scan`: makes two of each value, of arrays' elements and of what comes before; NULL: a reducer
  bool swapped; // of two values the one that comes later is the reducer's first
  const kl_shape *out; // of results
  // Lines lie beside each other, `inner` of them; and `outer` such groups behind each other.
  int64_t outer, inner;
} kl_scan;

// A body whose threads, or blocks, have lines.
typedef struct kl_scan_body {
  const kl_scan *x;
  kl_stage_body b;
  const kl_aff *outer, *inner; // of the line
  const kl_aff *number;        // of the line among those that are counted by threads; which it may exceed
  int64_t numbers;
} kl_scan_body;

// scan.c
// Begins a body whose threads have a line each.
void kl_scan_begin_lines(kl_scan_body *x, const kl_scan *of);
// The guard that the line is there: sets b.keep.
void kl_scan_guard_lines(kl_scan_body *x);
// Values are tuples of x->by.n, in arrays of as many, `out` too; it may be an array that is given.
uint32_t *kl_scan_values(const kl_scan_body *x);
kiln_status kl_scan_init(kl_scan_body *x, uint32_t *values);
// What is folded of element i, where the guard holds; and stores the result there.
kiln_status kl_scan_fetch(kl_scan_body *x, const kl_aff *i, uint32_t guard, uint32_t *values);
kiln_status kl_scan_store(kl_scan_body *x, const kl_aff *i, uint32_t guard, const uint32_t *values);
// Values that nobody looks at; the guard that e is `value`.
void kl_scan_nothing(kl_scan_body *x, uint32_t *values);
uint32_t kl_scan_is(kl_scan_body *x, const kl_aff *e, int64_t value);
// a, b joined; b alone where the guard holds; a alone where it does.
kiln_status kl_scan_join(kl_scan_body *x, const uint32_t *a, const uint32_t *b, uint32_t *out);
kiln_status kl_scan_behind(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out);
kiln_status kl_scan_before(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out);

// Loops over digits of blocks above the level `lowest`, whose blocks `block` writes: block `number` of that level, what
// comes before it, and what it makes of its elements, if all are there.
typedef struct kl_scan_nest {
  kl_scan_body *l;
  uint32_t lowest, top;
  kl_stage_box digit[KL_SCAN_LEVELS]; // by level
  kiln_status (*block)(void *arg, const kl_aff *number, const uint32_t *base, uint32_t *chain);
  void *arg;
} kl_scan_nest;
// Before the body is written: its variables.
void kl_scan_nest_vars(kl_scan_nest *x, kl_scan_body *l, uint32_t lowest);
kiln_status kl_scan_nest_write(kl_scan_nest *x, const uint32_t *base);

// tiles.c: a line in a block, or some. False: lines are better for threads.
bool kl_scan_is_for_blocks(const kl_scan *x);
kiln_status kl_scan_by_blocks(const kl_scan *x);

#endif

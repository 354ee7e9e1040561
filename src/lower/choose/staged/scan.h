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
  const kl_stage *s;
  uint32_t n;            // arrays
  uint32_t dim;          // along which lines go
  int64_t length;        // of a line
  bool reverse;          // from its end on
  bool lasts;            // the last result of each line is a result of its own, without the dimension
  const uint32_t *array; // operands: arrays, and what each line begins with, one for all or one for each
  const uint32_t *init;
  bool inits; // one for each
  kl_combiner by;
  const kl_shape *out; // of results
  // Lines lie beside each other, `inner` of them; and `outer` such groups behind each other.
  int64_t outer, inner;
} kl_scan;

// A body whose threads have lines.
typedef struct kl_scan_body {
  const kl_scan *x;
  kl_stage_body b;
  const kl_aff *outer, *inner; // of the line
  const kl_aff *number;        // of the line among those along which threads lie; which it may exceed
  int64_t numbers;
} kl_scan_body;

// scan.c
// Begins it: a thread has a line.
void kl_scan_lines(kl_scan_body *x, const kl_scan *of);
// The index of element i of the line in results and operands; without the dimension, in what has one for each line.
void kl_scan_index(const kl_scan_body *x, const kl_aff *i, const kl_aff **index);
void kl_scan_line_index(const kl_scan_body *x, const kl_aff **index);
kiln_status kl_scan_inits(kl_scan_body *x, uint32_t *values);
// What is folded of element i, where the guard holds.
kiln_status kl_scan_fetch(kl_scan_body *x, const kl_aff *i, uint32_t guard, uint32_t *values);
kiln_status kl_scan_store(kl_scan_body *x, const kl_aff *i, uint32_t guard, const uint32_t *values);
// first: `b` where the guard holds, else the two joined.
kiln_status kl_scan_join(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out);

#endif

// Private to sorts: what is sorted, and by what.
#ifndef KL_SORT_H
#define KL_SORT_H

#include "lower/choose/staged/staged.h"

typedef struct kl_sort {
  const kl_stage *s;
  uint32_t n;            // arrays
  const kl_dtype *type;  // of each
  const kl_shape *out;   // of what is left
  const kl_shape *shape; // and of whole lines, in the same order
  uint32_t dim;
  int64_t length;      // of a line
  const kl_comp *less; // NULL: topk
  bool *compared;      // by array: the comparator looks at it
  kl_dtype integer;    // of places
} kl_sort;

// What a comparator that is a plain order of one value compares: of an element of one array the value, of which all
// are in order, as the integers that kl_sort_digits gives are.
typedef struct kl_sort_key {
  uint32_t array;
  const kl_comp *of; // the value, of the comparator's parameters; NULL: the element itself
  kl_dtype type;     // of the value
  bool falls;        // the greatest comes first
} kl_sort_key;

// sort.c. Of a stage whose slots are not known yet `out` is that of whole lines.
void kl_sort_describe(const kl_stage *s, kl_sort *x);

// key.c: false: the comparator is no such order, as far as is known.
bool kl_sort_finds_key(const kl_sort *x, kl_sort_key *key);
// Bits of the integers.
unsigned kl_sort_key_bits(const kl_sort_key *key);
// The integer of an element, u32 or u64: less if the element is to come before, the same if neither is.
kiln_status kl_sort_key_of(const kl_sort *x, const kl_sort_key *key, kl_stage_body *b, uint32_t element, uint32_t *out);
// And back: the element of an integer, where elements are compared themselves.
uint32_t kl_sort_element_of(const kl_sort_key *key, kl_stage_body *b, uint32_t value);

// sort.c: the way that lines are sorted where one is wanted, and can be: MERGES: it can not.
kl_sorting kl_sort_way(const kl_sort *x, kl_sorting wanted);

// digits.c: the way that lines are to be sorted by digits: MERGES: not at all; SORTED_TILES, only where there are
// several of a line.
kl_sorting kl_sort_digits_way(const kl_sort *x, kl_sorting wanted);
// Lines, into the stage's own slots.
kiln_status kl_sort_by_digits(const kl_sort *x);
// Tiles of lines, into arrays of whole lines. *size: elements of one.
kiln_status kl_sort_tiles_by_digits(const kl_sort *x, const uint32_t *to, int64_t *size);

// top.c: topk of few elements: is it? The first of lines, into the stage's own slots.
bool kl_sort_keeps_few(const kl_sort *x);
kiln_status kl_sort_top(const kl_sort *x);

// passes.c: lines, into the stage's own slots, by merging; `way` is MERGES or MERGES_SORTED_TILES.
kiln_status kl_sort_by_merging(const kl_sort *x, kl_sorting way);

#endif

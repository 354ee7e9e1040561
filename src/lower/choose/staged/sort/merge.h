// Private to sorts: bodies that merge runs of neighbours in pairs, piece by piece.
//
// A pair is a left and a right run. It is merged in pieces of so many places each: the cut of a piece is how many of
// the elements before its first place are the left run's. A search by halves gives a raw cut, which is right where the
// comparator is an order. Where it is none, the raw cuts of two pieces may contradict each other. So cuts are settled
// from the middle of the pair outwards, in a binary tree over its pieces: a node knows the cuts at both of its ends,
// and holds the raw one of its middle to what lies between: neither run goes backwards. Whoever needs a piece goes down
// to it, and all that meet a node settle it alike; so the pieces have each element once, whatever the comparator says.
#ifndef KL_MERGE_H
#define KL_MERGE_H

#include "lower/choose/staged/sort/sort.h"

// A body that has a line, or a row of one that a block shares. Places are numbers in it.
typedef struct kl_merging {
  const kl_sort *x;
  kl_stage_body b;
  kl_dtype integer;            // of places as values
  const uint32_t *from;        // slots of whole lines; NULL: what the op is given
  const kl_aff *outer, *inner; // the line
  uint32_t there;              // guard: there is the line
  const uint32_t *shared;      // slots of arrays that a block shares, which places are of; NULL: they are the line's
  const kl_aff *row;           // where the row begins in these
  int64_t span;                // places that there are
} kl_merging;

// Values: places where runs begin, and how many elements they have. Behind the right run may be more, which count as
// last and are nobody's.
typedef struct kl_merge_runs {
  uint32_t left, right, nleft, nright;
} kl_merge_runs;

// What lies between two neighbouring cuts. Both count elements of the left run.
typedef struct kl_merge_cuts {
  uint32_t begin, end;
} kl_merge_cuts;

enum { KL_SORT_EACH = 8 }; // most places of a piece that a thread merges

// The element of an array at a place, under a guard.
kiln_status kl_merge_fetch(kl_merging *m, uint32_t array, const kl_aff *place, uint32_t keep, uint32_t *value);
uint32_t kl_merge_whole(kl_merging *m, int64_t n);
// The pair of runs of so many elements that a place is in, where the row begins at `base` of the line.
kl_merge_runs kl_merge_find_pair(kl_merging *m, const kl_aff *place, const kl_aff *base, int64_t run);
// Rounds of a search in runs of so many elements.
int64_t kl_merge_rounds(int64_t run);
// The raw cut at place d of a pair, a value. `step`: the variable of as many rounds, KL_NONE: of one.
kiln_status kl_merge_search(kl_merging *m, const kl_merge_runs *r, uint32_t d, uint32_t step, uint32_t *cut);
// Raw cuts of pieces that are stored: of all pieces of a line one behind the other.
typedef struct kl_merge_raw {
  uint32_t slot;
  const kl_aff *first; // where the line's begin
  const kl_aff *piece; // the thread's, by number in the line
  int64_t there;       // that are stored; those behind lie behind both runs
  int64_t pieces;      // of a pair, a power of two
  int64_t size;        // places of one
} kl_merge_raw;
kl_merge_cuts kl_merge_stored_cuts(kl_merging *m, const kl_merge_runs *r, const kl_merge_raw *raw);
// The same by searches, of the piece at place d of a pair with `whole` places. Variables: as many rounds as halves make
// a piece of these; and those of a search.
kiln_status kl_merge_searched_cuts(kl_merging *m, const kl_merge_runs *r, uint32_t d, int64_t whole,
                                   const uint32_t step[2], kl_merge_cuts *cuts);
// The elements of the piece at d of a pair: of each array that is wanted `each` of them.
kiln_status kl_merge_piece(kl_merging *m, const kl_merge_runs *r, uint32_t d, const kl_merge_cuts *cuts, int64_t each,
                           const bool *wanted, uint32_t *const *values);
// Sorts so many elements of each array that is wanted, among them those that are compared, which lie from `place` of
// the line on.
kiln_status kl_merge_few(kl_merging *m, const kl_aff *place, int64_t each, const bool *wanted, uint32_t *const *values);

#endif

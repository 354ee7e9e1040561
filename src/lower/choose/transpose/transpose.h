// Private to src/lower/choose/transpose: results whose neighbours in memory are made of what is far apart.
//
// The number of a result's element is written with digits, the axes, so that what is read lies at a sum of multiples of
// them. What has its neighbours along another axis than the results have theirs is read across: each of a warp's lanes
// from a sector of its own. A tile of X along the results' fastest axes and Y along those of what is read goes through
// shared memory: values are made in the one order, put, and taken in the other.
#ifndef KL_TRANSPOSE_H
#define KL_TRANSPOSE_H

#include "lower/choose/chooser.h"

enum { KL_MOST_AXES = 12, KL_MOST_HEROES = 8 };
_Static_assert(2 * (int)KL_MOST_AXES <= (int)KL_MAX_NAMES, "an axis has two names");

// Digits of a number 0 .. count-1, the fastest first: digit i counts place[i].
typedef struct kl_axes {
  uint32_t n;
  int64_t size[KL_MOST_AXES], place[KL_MOST_AXES];
} kl_axes;

// Some of the axes as one number, the fastest first.
typedef struct kl_side {
  uint32_t n, axis[KL_MOST_AXES];
  int64_t size; // product
} kl_side;

// A value that is made in the order of what is read and wanted in that of the results.
typedef struct kl_hero {
  uint32_t instr, leaf; // of the plan's computation
  uint32_t rank;
  const kl_aff *const *index; // in the axes, as variables
  kl_dtype dtype;
} kl_hero;

typedef struct kl_transposition {
  kl_axes axes;                 // of results
  int64_t stride[KL_MOST_AXES]; // of each axis in the order of what is read
  kl_side x, y;
  uint32_t nheroes;
  kl_hero hero[KL_MOST_HEROES];
  uint32_t nroots;
  bool *early;         // by result: it is made in the order of what is read, and stored in it
  int64_t v_in, v_out; // neighbours that can be read, and written, at once
  uint32_t bits_in;    // of the widest that is read across
} kl_transposition;

// What there is to be transposed. *why_not as choosers say it.
kiln_status kl_find_transposition(kl_choosing *c, kl_transposition *out, const char **why_not);

// Sectors that 32 lanes touch that read elements of `bits` bits in the order of the axes `order`, `v` neighbours each,
// for each 1024 of their elements.
int64_t kl_sectors_in_order(const kl_axes *a, const uint32_t *order, const int64_t *stride, uint32_t bits, int64_t v);

// Who does what: a tile, and its share of each thread.
typedef struct kl_dealt {
  int64_t tx, ty;
  int64_t threads;
  // Making: unit u is `a` values of x and `v` of y; `units` of them are a thread's.
  int64_t a, v, units;
  // Taking: unit u is `v2` values of x and one of y.
  int64_t v2, units2;
  int64_t pad[KL_MOST_HEROES]; // elements between groups of v rows, by hero
} kl_dealt;

// False, with a sentence, where there is no tile that is worth it.
bool kl_choose_tile(const kl_choosing *c, const kl_transposition *t, kl_dealt *out, const char **why_not);
// Elements of shared memory for a hero, and where value (x, y) of the tile lies there.
int64_t kl_tile_elements(const kl_dealt *d, uint32_t hero, bool host);
const kl_aff *kl_tile_place(kl_affs *p, const kl_dealt *d, uint32_t hero, bool host, const kl_aff *x, const kl_aff *y);

kiln_status kl_write_transposition(kl_choosing *c, const kl_transposition *t, const kl_dealt *d, const char **why_not);

#endif

// What the files of this room share. Nobody else includes it.
//
// A tile of a map is found in terms of numbers. A number takes consecutive values over a tile: a tiled variable, up to
// sign and shift, or a sum of such that results are the digits of. It is taken apart into digits, and each result is a
// sum of digits, with coefficients.
#ifndef KL_TILES_IMPL_H
#define KL_TILES_IMPL_H

#include "lower/analysis/tiles/tiles.h"

enum {
  TILE_MOST_RESULTS = 40,
  TILE_MOST_LEVELS = 12,
  TILE_MOST_USES = 64,
  TILE_MOST_FORMS = TILE_MOST_RESULTS,
  TILE_MOST_NUMBERS = KL_TILE_MOST_VARIABLES + TILE_MOST_FORMS,
  TILE_MOST_CONSTRAINTS = 64,
  TILE_MOST_MADE = 192, // boxes made on the way to a tile's
};

// Values o, o+1, .. o+n-1, of which those in lo..hi count (NULL: no cut).
typedef struct tile_axis {
  const kl_aff *o, *n, *lo, *hi;
  bool overhang;       // lo is NULL, and hi is where the tiled dimension ends
  const kl_aff *uncut; // 0 for sizes with which lo and hi are where tiles begin and end; NULL: nobody knows
  int64_t most;        // n is at most that, where it is no number; 0: nobody knows
  bool aligned; // o is a multiple of `align`, of anything where that is 0; where n is no number, n*something more
  int64_t align;
} tile_axis;

// Values o + k*stride.
typedef struct tile_steps {
  tile_axis a; // lo and hi bound values; n counts steps
  const kl_aff *stride;
} tile_steps;

typedef struct tile_use {
  uint32_t number, level; // digit `level` of the number
  int64_t coef;
} tile_use;

// rest + sum of coef*digit; of `div` > 1, that divided by it, for values that it divides.
typedef struct tile_form {
  const kl_aff *e;    // the same, over the map's variables
  const kl_aff *rest; // without dims
  uint32_t n;
  tile_use use[TILE_MOST_USES];
  int64_t div, times;    // result = times * (form / div) + plus
  const kl_aff *plus;    // without dims; NULL: 0
  const kl_aff *lo, *hi; // bounds on e, without dims; NULL: none
  bool complex;          // something in e is no digit
} tile_form;

// Digit l of a number y is floor(y / k[l]) mod (k[l+1] / k[l]); the last one has no mod. k[0] may be above 1.
typedef struct tile_number {
  bool live;     // something uses it
  bool is_form;  // the values of a form, else sign * variable + shift
  uint32_t from; // form or variable
  int sign;
  const kl_aff *shift;
  uint32_t nlevels;
  int64_t k[TILE_MOST_LEVELS];
  bool used[TILE_MOST_LEVELS];
} tile_number;

// One way to take a number apart; `guard` >= 0, where not NULL, is its condition.
typedef struct tile_digits {
  tile_axis at[TILE_MOST_LEVELS + 1];
  const kl_aff *guard;
} tile_digits;

typedef struct tiler {
  kl_ctx *cx;
  kl_affs *p;
  kl_arena *arena;
  const kl_map *m; // no ranges
  const int64_t *shape;
  uint32_t nvars;
  tile_axis var[KL_TILE_MOST_VARIABLES]; // as tiled, cut to bounds and simple constraints
  uint32_t nforms;                       // results first
  tile_form form[2 * TILE_MOST_FORMS];
  uint32_t of_result[TILE_MOST_RESULTS]; // the form of each
  uint32_t nnumbers;
  tile_number number[TILE_MOST_NUMBERS];
  const tile_digits *digits[TILE_MOST_NUMBERS]; // as chosen on the way to a box
  VEC(kl_tile_box) boxes;
  VEC(kl_tile_clause) clauses;
  VEC(kl_constraint) guards; // of the box under construction
  VEC(kl_constraint) always; // of every box
  bool exact;
  const char *why;
  bool hull;     // numbers are not split into several boxes
  bool full;     // too many boxes
  bool unknown;  // a result may be anything
  uint32_t made; // boxes in all
} tiler;

static inline const kl_aff *add(tiler *t, const kl_aff *a, const kl_aff *b) {
  return kl_aff_add(t->p, a, b);
}
static inline const kl_aff *sub(tiler *t, const kl_aff *a, const kl_aff *b) {
  return kl_aff_sub(t->p, a, b);
}
static inline const kl_aff *addc(tiler *t, const kl_aff *a, int64_t c) {
  return kl_aff_addc(t->p, a, c);
}
static inline const kl_aff *mulc(tiler *t, const kl_aff *a, int64_t c) {
  return kl_aff_mulc(t->p, a, c);
}
static inline const kl_aff *divc(tiler *t, const kl_aff *a, int64_t c) { // floor
  return kl_aff_floordivc(t->p, a, c);
}
static inline const kl_aff *num(tiler *t, int64_t c) {
  return kl_aff_const(t->p, c);
}
static inline bool is_const(const kl_aff *e) {
  return kl_aff_is_const(e);
}
static inline bool is_one(const kl_aff *e) {
  return kl_aff_is_const(e) && e->c == 1;
}
static inline int64_t gcd64(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t r = x % y;
    x = y;
    y = r;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}
// The greater, the smaller; NULL is no bound.
const kl_aff *tile_max(tiler *t, const kl_aff *a, const kl_aff *b);
const kl_aff *tile_min(tiler *t, const kl_aff *a, const kl_aff *b);
const kl_aff *tile_first(tiler *t, const tile_axis *a); // that counts
const kl_aff *tile_last(tiler *t, const tile_axis *a);
const kl_aff *tile_mod(tiler *t, int64_t c, const kl_aff *n); // c mod n, n >= 1
void tile_inexact(tiler *t, const char *why);
// One of the conditions must hold; those known to fail are left out, and none is left: not exact.
void tile_require(tiler *t, const kl_constraint *any, uint32_t n, const char *why);
void tile_guard(tiler *t, const kl_aff *e); // e >= 0 for the box to have elements

void tile_guard_axis(tiler *t, const tile_axis *a); // some value counts

// forms.c: what results are made of.
void tile_forms(tiler *t);
bool tile_has_dims(tiler *t, const kl_aff *e);
// digits.c: ways to take a number's values apart; their number, or 0 where there are too many.
uint32_t tile_split(tiler *t, const tile_number *y, const tile_axis *a, const tile_digits **out);
// sum.c: the values of a form, given the digits chosen; `exact` as far as it is so.
tile_steps tile_sum(tiler *t, const tile_form *f);

#endif

// What the rooms of index share. Nobody else includes it.
#ifndef KL_INDEX_IMPL_H
#define KL_INDEX_IMPL_H

#include "ir/index/domain/domain.h"

typedef __int128 wide;

enum {
  KL_MOST_TERMS = 4096,      // of one sum
  KL_MOST_FACTORS = 32,      // of one product
  KL_MOST_DEPTH = 1200,      // levels of atoms: every walk over an expression goes as deep
  KL_MOST_UNITS = 24,        // sums of more terms are taken as they stand
  KL_MOST_PRINTED = 1 << 16, // terms written out
};

// An interval and a residue class: lo <= v <= hi, v = r mod m. INT64_MIN and INT64_MAX are no bound. m = 1: nothing is
// known. Of a single value m is 0 and r the value.
typedef struct kl_span64 {
  int64_t lo, hi;
  int64_t m, r;
} kl_span64;

// What walks leave at an expression, valid while its stamp is that of the walk.
typedef struct kl_note {
  uint32_t range_at, lite_at, simple_at, walk_at;
  kl_span64 range, lite;
  const kl_aff *simple;
  union {
    const kl_aff *aff;
    wide value;
  } walk;
} kl_note;

struct kl_affs {
  kl_ctx *cx;
  kl_arena *arena;
  VEC(const kl_aff *) sums;
  VEC(const kl_aff_atom *) atoms;
  uint32_t *sum_slots, *atom_slots; // hash tables of id + 1
  size_t nsum_slots, natom_slots;
  const kl_aff *errors[KL_AFF_ERRORS];
  VEC(kl_note) notes; // by id of sums
  uint32_t stamp;     // of the newest walk
};

// A stamp that no note carries.
uint32_t kl_affs_stamp(kl_affs *p);
// The note of e. Valid until the next expression is made.
kl_note *kl_aff_note(kl_affs *p, const kl_aff *e);
// The sum c + terms (in any order, zero and equal atoms allowed); `terms` is overwritten.
const kl_aff *kl_aff_sum(kl_affs *p, wide c, kl_aff_term *terms, uint32_t n);
// A sum of many parts, taken in one by one and made once.
typedef struct kl_adder {
  kl_aff_term small[16], *t; // NULL: small
  size_t n, cap;
  wide c;
  const kl_aff *error;
} kl_adder;
void kl_adder_open(kl_adder *a, int64_t c);
void kl_adder_add(kl_affs *p, kl_adder *a, const kl_aff *e, int64_t k); // k*e
const kl_aff *kl_adder_sum(kl_affs *p, kl_adder *a);                    // and starts anew
// The atom's value with arguments in place of its own, through the constructors above.
const kl_aff *kl_aff_rebuild(kl_affs *p, const kl_aff_atom *a, const kl_aff *const *arg);
// An atom by its fields; arguments in normal form.
const kl_aff_atom *kl_affs_atom(kl_affs *p, kl_aff_kind kind, uint32_t var, int64_t k, const kl_aff *const *arg,
                                uint32_t n);
int kl_aff_atom_compare(const kl_aff_atom *a, const kl_aff_atom *b);

// Values beyond 64 bits, too. False where e has none, or none that 128 bits hold.
bool kl_aff_eval_wide(kl_affs *p, const kl_aff *e, const kl_point *x, wide *out);
// Ends of int64 are no bounds.
static inline bool kl_in_interval(wide v, kl_interval in) {
  return (in.lo == INT64_MIN || v >= in.lo) && (in.hi == INT64_MAX || v <= in.hi);
}

// So an interval of nothing but an end is more than one value.
static inline bool kl_is_value(kl_interval in) {
  return in.lo == in.hi && in.lo > INT64_MIN && in.lo < INT64_MAX;
}

static inline int64_t kl_floor64(int64_t a, int64_t k) { // k > 0
  int64_t q = a / k;
  return a % k < 0 ? q - 1 : q;
}
static inline wide kl_floor128(wide a, wide k) {
  wide q = a / k;
  return a % k < 0 ? q - 1 : q;
}
static inline uint64_t kl_abs64(int64_t a) {
  return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}
static inline uint64_t kl_gcd64(uint64_t x, uint64_t y) {
  while (y) {
    uint64_t t = x % y;
    x = y;
    y = t;
  }
  return x;
}

// --- sums with their mods found again (aff/units.c) -----------------------------------------------------------------

// An atom, or sub mod b with sub of fewer atoms.
typedef struct kl_unit {
  int64_t coef;
  const kl_aff_atom *atom; // NULL: sub mod b
  const kl_aff *sub;
  int64_t b;
} kl_unit;
typedef struct kl_units {
  wide c;
  uint32_t n;
  kl_unit u[KL_MOST_UNITS];
} kl_units;
// e = c + sum(coef * unit), as short as it is easily found. With modulus > 0 equal to e only up to multiples of it.
// False for sums of more than KL_MOST_UNITS terms.
bool kl_aff_units(kl_affs *p, const kl_aff *e, int64_t modulus, kl_units *out);
const kl_aff *kl_unit_value(kl_affs *p, const kl_unit *u); // without its coefficient

// --- what is known of values (domain/bounds.c) ----------------------------------------------------------------------

// e, without a constant, lies in the span.
typedef struct kl_fact {
  const kl_aff *e;
  kl_span64 in;
} kl_fact;

// Spans of variables, and facts that hold besides. Changing either needs a new stamp.
struct kl_dom {
  kl_affs *p;
  kl_span64 *vars[KL_AFF_VARS];
  uint32_t n[KL_AFF_VARS];
  kl_fact *facts;
  uint32_t nfacts;
  bool keep_points; // variables of one value stay variables
  bool empty;       // a contradiction was met
  uint32_t stamp;
};

// A bound at the end of int64 may stand for what lies beyond.
static inline bool kl_span_is_point(const kl_span64 *s) {
  return s->lo == s->hi && s->lo != INT64_MAX && s->lo != INT64_MIN;
}
kl_span64 kl_span_of(kl_interval in);
// s with what of the interval and residue class it has; lo > hi if nothing.
void kl_span_meet(kl_span64 *s, kl_interval in, int64_t m, int64_t r);
// Values of e. Sets d->empty if there are none.
kl_span64 kl_dom_range(kl_dom *d, const kl_aff *e);

// e = m * (floor(y/k) + g) + *rest with m*floor(y/k) its term i: y + k*g, so that floor of it over k is floor(y/k) + g.
// NULL if g has no terms, or what would be returned leaves int64.
const kl_aff *kl_aff_unfold(kl_affs *p, const kl_aff *e, uint32_t i, const kl_aff **rest);

// x = r1 mod m1 and x = r2 mod m2 (m > 0) as one class; false if there is none. *fits: the modulus fits int64.
bool kl_crt(int64_t m1, int64_t r1, int64_t m2, int64_t r2, int64_t *m, int64_t *r, bool *fits);

#endif

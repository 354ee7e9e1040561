// Quasi-affine integer expressions: what indices are made of.
//
// Normal form. An expression is c + sum(coef_i * atom_i): atoms distinct, in structural order, coefficients not zero.
// An atom is
//   a variable        dim, range or runtime variable number i
//   floor(e / k)      k > 1 constant; e has no constant factor with k, coefficients below k in magnitude, a constant in
//                     0..k-1, a first coefficient above zero, and is no floor plus the rest of a longer division
//   floor(e / f)      f not constant; no value where f = 0
//   min, max          of two arguments or more; what all have in common is taken out
//   a product         of two atoms or more: products of sums are multiplied out
// There is no atom for mod: e mod k is e - |k| * floor(e / |k|), so that taking an index apart and putting it together
// cancels by itself; nor for ceildiv, which is -floor(-e / k). The printer finds both again.
//
// Expressions are interned in their pool: equal structure, equal pointer. Order is structural and knows neither ids nor
// addresses, so a text is the same whatever else the pool holds. Expressions carry no bounds: those belong to maps.
//
// What cancels is gone, also where it may have had no value: q - q is 0, and so are q * 0 and q mod 1.
//
// Arithmetic is exact. What leaves int64, divides by zero or grows out of bounds is an error value, which every
// operation hands on; nothing wraps. A pool serves one thread.
#ifndef KL_AFF_H
#define KL_AFF_H

#include "base/base.h"

typedef struct kl_aff kl_aff;
typedef struct kl_aff_atom kl_aff_atom;

typedef enum kl_aff_kind {
  KL_AFF_DIM, // variables come first: their kind is also the index of their kind in kl_point
  KL_AFF_RANGE,
  KL_AFF_RT,
  KL_AFF_PRODUCT,
  KL_AFF_FLOOR,
  KL_AFF_QUOTIENT,
  KL_AFF_MIN,
  KL_AFF_MAX,
} kl_aff_kind;
#define KL_AFF_VARS 3 // kinds of variables

typedef enum kl_aff_error {
  KL_AFF_OK,
  KL_AFF_OVERFLOW,    // a coefficient or constant outside int64
  KL_AFF_DIV_BY_ZERO, // a constant divisor of 0
  KL_AFF_TOO_LARGE,   // too many terms, or nested too deeply
  KL_AFF_ERRORS,
} kl_aff_error;

typedef struct kl_aff_term {
  int64_t coef;
  const kl_aff_atom *atom;
} kl_aff_term;

struct kl_aff {
  uint32_t id;    // position in the pool
  uint32_t n;     // terms
  uint32_t depth; // 0 for a constant; one more for each level of atoms
  bool partial;   // has a divisor that is not constant: there may be no value
  kl_aff_error error;
  int64_t c;
  uint64_t size; // terms, those inside of atoms too, each as often as it is written out; stops at UINT32_MAX
  kl_aff_term terms[];
};

struct kl_aff_atom {
  uint32_t id;
  kl_aff_kind kind;
  uint32_t var;   // variables
  uint32_t n;     // arguments: floor 1, quotient 2; a product's factors are its arguments, each one atom alone
  uint32_t depth; // 1 for a variable
  bool partial;   // as of sums
  int64_t k;      // floor
  uint64_t size;
  const kl_aff *arg[];
};

typedef struct kl_affs kl_affs;

kl_affs *kl_affs_create(kl_ctx *cx, kl_arena *arena); // expressions live in the arena
void kl_affs_destroy(kl_affs **p);
kl_ctx *kl_affs_context(const kl_affs *p);
kl_arena *kl_affs_arena(const kl_affs *p);
uint32_t kl_affs_count(const kl_affs *p); // different expressions so far

const char *kl_aff_error_text(kl_aff_error e); // "a coefficient leaves 64 bits"
const kl_aff *kl_aff_error_value(kl_affs *p, kl_aff_error e);

const kl_aff *kl_aff_const(kl_affs *p, int64_t c);
const kl_aff *kl_aff_var(kl_affs *p, kl_aff_kind kind, uint32_t i);
static inline const kl_aff *kl_aff_dim(kl_affs *p, uint32_t i) {
  return kl_aff_var(p, KL_AFF_DIM, i);
}
static inline const kl_aff *kl_aff_range(kl_affs *p, uint32_t i) {
  return kl_aff_var(p, KL_AFF_RANGE, i);
}
static inline const kl_aff *kl_aff_rt(kl_affs *p, uint32_t i) {
  return kl_aff_var(p, KL_AFF_RT, i);
}
const kl_aff *kl_aff_of(kl_affs *p, const kl_aff_atom *a);
const kl_aff *kl_aff_addmul(kl_affs *p, const kl_aff *a, const kl_aff *b, int64_t k); // a + k*b
const kl_aff *kl_aff_add(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_sub(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_addc(kl_affs *p, const kl_aff *a, int64_t c);
const kl_aff *kl_aff_mulc(kl_affs *p, const kl_aff *a, int64_t k);
const kl_aff *kl_aff_mul(kl_affs *p, const kl_aff *a, const kl_aff *b);
// Divisors of any sign, constant or not. Floor and ceiling are mathematical; mod is in 0..|b|-1.
const kl_aff *kl_aff_floordiv(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_ceildiv(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_mod(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_floordivc(kl_affs *p, const kl_aff *a, int64_t k);
const kl_aff *kl_aff_modc(kl_affs *p, const kl_aff *a, int64_t k);
const kl_aff *kl_aff_min(kl_affs *p, const kl_aff *a, const kl_aff *b);
const kl_aff *kl_aff_max(kl_affs *p, const kl_aff *a, const kl_aff *b);
// KL_AFF_MIN or KL_AFF_MAX of n > 0 at once.
const kl_aff *kl_aff_extremum(kl_affs *p, kl_aff_kind kind, const kl_aff *const *e, uint32_t n);

static inline bool kl_aff_is_const(const kl_aff *e) {
  return e->n == 0 && !e->error;
}
// The variable that e is, or NULL.
static inline const kl_aff_atom *kl_aff_is_var(const kl_aff *e) {
  return e->n == 1 && e->c == 0 && e->terms[0].coef == 1 && e->terms[0].atom->kind < KL_AFF_VARS ? e->terms[0].atom
                                                                                                 : NULL;
}
// Total structural order: less than, equal to or greater than 0. Equal only for the same pointer.
int kl_aff_compare(const kl_aff *a, const kl_aff *b);

// Values of variables by kind; counts are the caller's affair.
typedef struct kl_point {
  const int64_t *at[KL_AFF_VARS];
} kl_point;
// False where e has no value (a divisor of 0, an error value) or none that int64 holds.
bool kl_aff_eval(kl_affs *p, const kl_aff *e, const kl_point *x, int64_t *out);

// Expressions in the place of variables: by kind, `n` of them; variables beyond stay.
typedef struct kl_aff_subst {
  const kl_aff *const *to[KL_AFF_VARS];
  uint32_t n[KL_AFF_VARS];
} kl_aff_subst;
// out[i] = e[i] with all variables replaced at once; out may be e.
void kl_aff_replace(kl_affs *p, const kl_aff_subst *s, const kl_aff *const *e, uint32_t n, const kl_aff **out);

// Marks used[kind][i] for every variable i < n[kind] that occurs.
void kl_aff_mark(kl_affs *p, const kl_aff *e, bool *const used[KL_AFF_VARS], const uint32_t n[KL_AFF_VARS]);
// Does the dim occur, and where: *inside is set where it stands within another atom. Takes time by the size of e.
bool kl_aff_uses(const kl_aff *e, uint32_t dim, bool *inside);
// Coefficient of the dim outside of other atoms.
int64_t kl_aff_coef(const kl_aff *e, uint32_t dim);
// Largest k >= 0 that divides every coefficient (not the constant); 0 for a constant.
uint64_t kl_aff_content(const kl_aff *e);

typedef enum kl_aff_style {
  KL_AFF_SLASH, // a / b
  KL_AFF_WORDS, // a floordiv b
} kl_aff_style;
typedef struct kl_aff_names {
  const kl_str *of[KL_AFF_VARS]; // by kind: names, empty for the default d0, s0, rt0; NULL: all default
  kl_aff_style style;
} kl_aff_names;
// False, with nothing appended, where the text would be too long (an expression whose parts are shared many times over)
// or e is an error value.
bool kl_aff_print(kl_affs *p, kl_sb *b, const kl_aff *e, const kl_aff_names *names);

#endif

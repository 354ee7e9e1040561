// Quasi-affine integer expressions over bounded variables: the arithmetic of index maps.
//
// Normal form: an expression is c + sum(coef_i * atom_i), atoms distinct, in order of creation, coefficients non-zero.
// An atom is a variable or floor(expr / k), k > 1. There is no mod atom: e mod k is e - k*floor(e/k), so that taking an
// index apart and putting it together again cancels by itself. Expressions are interned in their pool: equal means same
// pointer. Every expression knows a sound interval of its values.
//
// All arithmetic is exact; a result outside int64 poisons the pool (`overflow`), which the owner checks at the end. So
// does an expression that is too large written out (`too_large`): floors in floors double with every level.
#ifndef KL_AFFINE_H
#define KL_AFFINE_H

#include "base/base.h"

typedef struct kl_expr kl_expr;

typedef struct kl_atom {
  uint32_t id;
  int32_t var; // >= 0: a variable; -1: floor(inner / k)
  const kl_expr *inner;
  int64_t k;
  int64_t lo, hi; // inclusive
} kl_atom;

typedef struct kl_term {
  int64_t coef;
  const kl_atom *atom;
} kl_term;

struct kl_expr {
  uint32_t id;
  uint32_t n;
  uint32_t size; // terms, those under floors too, each as often as it is written out
  int64_t c;
  int64_t lo, hi; // inclusive
  kl_term terms[];
};

typedef struct kl_exprs {
  kl_ctx *cx;
  kl_arena *arena;
  VEC(const kl_expr *) exprs;
  VEC(const kl_atom *) atoms;
  uint32_t *expr_slots, *atom_slots; // hash tables of id + 1
  size_t nexpr_slots, natom_slots;
  bool overflow, too_large;
} kl_exprs;

void kl_exprs_init(kl_exprs *p, kl_ctx *cx, kl_arena *arena);
void kl_exprs_free(kl_exprs *p);

const kl_expr *kl_expr_const(kl_exprs *p, int64_t c);
// Variable number `var` with values lo..hi. The range is part of it: one number with two ranges is two atoms.
const kl_expr *kl_expr_var(kl_exprs *p, int32_t var, int64_t lo, int64_t hi);
const kl_expr *kl_expr_add(kl_exprs *p, const kl_expr *a, const kl_expr *b);
const kl_expr *kl_expr_sub(kl_exprs *p, const kl_expr *a, const kl_expr *b);
const kl_expr *kl_expr_addc(kl_exprs *p, const kl_expr *a, int64_t c);
const kl_expr *kl_expr_mul(kl_exprs *p, const kl_expr *a, int64_t k);
const kl_expr *kl_expr_div(kl_exprs *p, const kl_expr *a, int64_t k); // floor, k >= 1
const kl_expr *kl_expr_mod(kl_exprs *p, const kl_expr *a, int64_t k); // in 0..k-1, k >= 1

static inline bool kl_expr_is_const(const kl_expr *e) {
  return e->n == 0;
}
// Does the variable occur, and where: *inside tells whether it occurs below a floor.
bool kl_expr_uses(const kl_expr *e, int32_t var, bool *inside);
// Coefficient of the variable outside of floors.
int64_t kl_expr_coef(const kl_expr *e, int32_t var);
// Largest k that divides every coefficient but that of `except_var` (-1: none) and the constant; 0 if all are zero.
int64_t kl_expr_gcd(const kl_expr *e, int32_t except_var);
// Value at var[i] = values[i].
int64_t kl_expr_eval(const kl_expr *e, const int64_t *values);
// Prints with names of variables, e.g. "d0 * 4 + d1 floordiv 8 + 3".
void kl_expr_print(kl_sb *b, const kl_expr *e, const char *const *var_names);

#endif

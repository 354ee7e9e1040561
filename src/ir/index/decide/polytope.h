// Integer points of polytopes: lo <= A*x <= hi. For solve.c alone.
#ifndef KL_INDEX_POLYTOPE_H
#define KL_INDEX_POLYTOPE_H

#include "ir/index/impl.h"

typedef struct kl_polytope kl_polytope;

enum { KL_MOST_COORDINATES = 24 };

// Of n <= KL_MOST_COORDINATES coordinates, bounded by `most` rows.
kl_polytope *kl_polytope_open(kl_ctx *cx, uint32_t n, uint32_t most);
void kl_polytope_close(kl_polytope *p);
// lo <= sum(coef[i] * x[i]) <= hi. False where numbers are too large for it, which loses nothing but a bound.
bool kl_polytope_add(kl_polytope *p, const wide *coef, wide lo, wide hi);

// What is found at a point: KL_NO ends the walk, KL_UNKNOWN lets it go on without a proof.
typedef kl_truth kl_polytope_visit(void *state, const wide *x);

// Is there no point that satisfies (KL_YES), is there one (KL_NO, from the visit), or is it not known: *left, which
// counts rows looked at, ran out, numbers got too large, or the rows leave some direction without bounds.
kl_truth kl_polytope_walk(kl_polytope *p, uint32_t *left, kl_polytope_visit *visit, void *state);

#endif

// Kernels that are alike: modules of many layers have the same fusions again and again, which share their code.

#include "jit/kernels.h"

#include "ir/rewrite/canonical.h"

#include <stdlib.h>

// In place of a computation of the module: of copies the shapes of their buffers say which are alike.
#define COPY (KL_NONE - 1)

typedef struct entry {
  const kl_kernel_unit *u;
  uint32_t unit, same; // same: of its computations the first, KL_NONE before these are known; COPY
} entry;

static int compare(uint64_t a, uint64_t b) {
  return a < b ? -1 : a > b;
}

// Which of two comes first depends on addresses; which are equal does not.
static int by_look(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int order = compare(x->same, y->same);
  if (!order) order = compare(x->u->comp->ninstr, y->u->comp->ninstr);
  if (!order) order = compare(x->u->narguments, y->u->narguments);
  for (uint32_t i = 0; !order && i < x->u->narguments; i++)
    order = compare((uintptr_t)x->u->shapes[i], (uintptr_t)y->u->shapes[i]); // shapes are interned
  return order;
}

static bool any_equal(const entry *all, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (all[i].same == KL_NONE && by_look(&all[i - 1], &all[i]) == 0) return true;
  return false;
}

// Equal ones lie together: the one that runs first is whom the others are like.
static void join(kl_kernels *k, const entry *all, uint32_t n) {
  for (uint32_t i = 0, end; i < n; i = end) {
    uint32_t first = all[i].unit;
    for (end = i + 1; end < n && by_look(&all[i], &all[end]) == 0; end++)
      if (all[end].unit < first) first = all[end].unit;
    for (uint32_t e = i; e < end; e++) {
      k->units[all[e].unit].like = first;
      k->units[all[e].unit].repeated = end - i > 1;
    }
  }
}

kiln_status kl_find_repeats(kl_ctx *cx, kl_kernels *k) {
  entry *all = kl_alloc(cx, (k->n + 1) * sizeof *all);
  uint32_t *same = kl_alloc(cx, (k->m->ncomp + 1) * sizeof *same);
  uint32_t n = 0;
  kiln_status st = KILN_OK;
  for (uint32_t i = 0; i < k->n; i++) {
    k->units[i].like = i;
    all[n++] = (entry){&k->units[i], i, k->units[i].calls == KL_NONE ? COPY : KL_NONE};
  }
  qsort(all, n, sizeof *all, by_look);
  if (any_equal(all, n)) { // digests of computations take time, which nothing is gained by else
    st = kl_module_same(cx, k->m, same);
    for (uint32_t i = 0; i < n && st == KILN_OK; i++)
      if (all[i].same == KL_NONE) all[i].same = same[all[i].u->calls];
    qsort(all, n, sizeof *all, by_look);
  }
  if (st == KILN_OK) join(k, all, n);
  kl_free(cx, all, (k->n + 1) * sizeof *all);
  kl_free(cx, same, (k->m->ncomp + 1) * sizeof *same);
  return st;
}

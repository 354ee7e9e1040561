// What holds of any plan: its life, and the proof that 32-bit indices do.

#include "lower/plan/plan.h"

void kl_plan_free(kl_plan *p) {
  kl_exprs_free(&p->exprs);
}

// Sums and products may wrap on the way, only their value counts; what stands under a floor must be right by itself.
static bool fits32(const kl_expr *e) {
  if (e->lo < INT32_MIN || e->hi > INT32_MAX) return false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_atom *a = e->terms[i].atom;
    if (a->lo < INT32_MIN || a->hi > INT32_MAX) return false;
    if (a->var >= 0) continue;
    // A negative dividend is moved up by a multiple of k before the unsigned division; the sum must stay below 2^32.
    if (a->inner->lo < 0 && (a->inner->lo < -(1 << 30) || a->k > 1 << 30)) return false;
    if (a->k > INT32_MAX || !fits32(a->inner)) return false;
  }
  return true;
}

static bool access_fits32(const kl_access *a) {
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!fits32(a->base[c])) return false;
  }
  return a->stride >= INT32_MIN && a->stride <= INT32_MAX;
}

bool kl_body_fits32(const kl_body *b) {
  if (b->threads > INT32_MAX) return false;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind == KL_STEP_LOAD && !access_fits32(&s->access)) return false;
    if (s->expr && !fits32(s->expr)) return false;
  }
  for (uint32_t i = 0; i < b->nguards; i++) {
    const kl_guard *g = &b->guards[i];
    if (!fits32(g->expr) || g->lo < INT32_MIN || g->hi > INT32_MAX) return false;
  }
  for (uint32_t i = 0; i < b->nstores; i++) {
    if (!access_fits32(&b->stores[i].access)) return false;
  }
  return true;
}

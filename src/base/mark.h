// Findings of ways that are not taken.
#ifndef KL_BASE_MARK_H
#define KL_BASE_MARK_H

#include "base/base.h"

// What has been found so far; and back to that, as if nothing had been found since. Nothing may clear them between.
typedef struct kl_diag_mark {
  size_t n, errors, dropped;
} kl_diag_mark;

static inline kl_diag_mark kl_diag_now(const kl_ctx *cx) {
  return (kl_diag_mark){cx->diags.n, cx->errors, cx->dropped};
}

static inline void kl_diag_back(kl_ctx *cx, kl_diag_mark to) {
  cx->diags.n = to.n;
  cx->errors = to.errors;
  cx->dropped = to.dropped;
}

#endif

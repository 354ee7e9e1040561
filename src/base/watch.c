// Work that somebody follows from another thread.
#include "base/base.h"

kiln_status kl_go_on(kl_ctx *cx, size_t done, size_t all) {
  kl_watch *w = cx->watch;
  if (!w) return KILN_OK;
  if (atomic_load(&w->stop)) return kl_fail(cx, KILN_E_CANCELLED, KL_NOWHERE, "cancelled before it was done");
  if (w->step) w->step(w->user, done, all);
  return KILN_OK;
}

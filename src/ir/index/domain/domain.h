// What is known of expressions whose variables have bounds: their values, and their simplest form.
#ifndef KL_DOMAIN_H
#define KL_DOMAIN_H

#include "ir/index/map/map.h"

typedef struct kl_dom kl_dom;

// Dims 0 .. n-1 within their bounds; other variables may have any value. Lives in the pool's arena, and remembers what
// it has been asked.
kl_dom *kl_dom_make(kl_affs *p, uint32_t n, const kl_interval *bounds);
// The same, and runtime variable i is within `in`: of no expression with it has anything been asked yet.
void kl_dom_add_runtime(kl_dom *d, uint32_t i, kl_interval in);
// Holds every value of e, as tight as is known; INT64_MIN and INT64_MAX are no bound.
kl_interval kl_dom_interval(kl_dom *d, const kl_aff *e);
// e in its simplest form where the domain holds.
const kl_aff *kl_dom_simplify(kl_dom *d, const kl_aff *e);

#endif

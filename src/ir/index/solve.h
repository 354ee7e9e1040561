// Systems of linear constraints over bounded integers: is there a point? See solve.c. For this room alone.
#ifndef KL_INDEX_SOLVE_H
#define KL_INDEX_SOLVE_H

#include "ir/index/impl.h"

typedef struct kl_system kl_system;

// The domain of m with, if e is not NULL, e in `in` besides. Lives in the pool's arena; done with kl_system_close.
kl_system *kl_system_open(kl_affs *p, const kl_map *m, const kl_aff *e, kl_interval in);
// Is there no point? KL_NO was checked at a point, which `at` (by kind, where not NULL) receives.
kl_truth kl_system_is_empty(kl_system *s, uint32_t quota, int64_t *const at[KL_AFF_VARS], const char **why);
void kl_system_close(kl_system *s);

// Is a defined map's domain empty, as it stands?
kl_truth kl_domain_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why);

// invert.c: range variables of m as expressions, in another space, over what its results are there (y) and what its
// other variables are there (known). False if some are not found. A proposal only; *unique: no other values give y.
bool kl_map_solve_ranges(kl_affs *p, const kl_map *m, const kl_aff_subst *known, const kl_aff *const *y, uint32_t quota,
                         const kl_aff **out, bool *unique);

#endif

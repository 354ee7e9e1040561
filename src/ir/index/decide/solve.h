// Systems of linear constraints over bounded integers: is there a point? For the rooms of index alone.
#ifndef KL_INDEX_SOLVE_H
#define KL_INDEX_SOLVE_H

#include "ir/index/impl.h"

// Is a defined map's domain empty, as it stands? KL_NO was checked at a point. *why, if not NULL, is set with
// KL_UNKNOWN. All constraints as one system (solve.c), or part by part (parts.c).
kl_truth kl_system_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why);
kl_truth kl_domain_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why);
// Has the domain no point where e is in `in`?
kl_truth kl_domain_excludes(kl_affs *p, const kl_map *m, const kl_aff *e, kl_interval in, uint32_t quota,
                            const char **why);

// invert.c: range variables of m as expressions, in another space, over what its results are there (y) and what its
// other variables are there (known). False if some are not found. A proposal only; *unique: no other values give y.
bool kl_map_solve_ranges(kl_affs *p, const kl_map *m, const kl_aff_subst *known, const kl_aff *const *y, uint32_t quota,
                         const kl_aff **out, bool *unique);

#endif

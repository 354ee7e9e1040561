// Between check.c and arranged.c.
#ifndef KL_EVAL_ARRANGED_H
#define KL_EVAL_ARRANGED_H

#include "eval/impl.h"

// Do lines whose order is open have the elements that they should, those of all results with this arrangement beside
// each other? Results are those of `expected`, n of them, found[k] the array that is there. Stores what differs in the
// first such line's first element that it should not have.
kiln_status kl_check_arranged(const kl_ev *ev, const kl_arrangement *a, size_t n, const kl_result *expected,
                              const kl_array *found, int64_t *count, int64_t *first);

#endif

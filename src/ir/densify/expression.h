// Index expressions as ops on whole arrays. Private to this room.
#ifndef KL_DENSIFY_EXPRESSION_H
#define KL_DENSIFY_EXPRESSION_H

#include "ir/index/domain/domain.h"
#include "ir/rewrite/graph.h"

// The value of an expression of dims, which are values of one shape within bounds of the domain. The expression has
// been looked at by kl_graph_is_narrow, or indices are s64.
uint32_t kl_graph_expression(kl_graph *g, kl_dom *d, const kl_aff *e, const uint32_t *dims, uint32_t like);
// Does 31 bits hold it, and what stands within it?
bool kl_graph_is_narrow(kl_dom *d, const kl_aff *e);
// Can it be written: is there no divisor that is not constant?
bool kl_graph_is_writable(const kl_aff *e);

#endif

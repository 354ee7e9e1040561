// The canonical order of a computation, and hashes of contents.
#ifndef KL_CANONICAL_H
#define KL_CANONICAL_H

#include "ir/rewrite/transform.h"

typedef struct kl_digest {
  uint64_t v[2];
} kl_digest;

// SipHash-2-4 with 128 bits of result, under the key 0. Two different inputs have equal digests by accident with
// probability 2^-128: among 2^32 of them, some pair has with probability 2^-65. The key is public, so nothing is
// promised against somebody who looks for collisions.
kl_digest kl_digest_of(const void *p, size_t n);
static inline bool kl_digest_equal(kl_digest a, kl_digest b) {
  return a.v[0] == b.v[0] && a.v[1] == b.v[1];
}

// Says of one instruction, by itself, what it is: attributes, type and callees, not operands or name.
typedef uint64_t kl_content_fn(void *arg, uint32_t instr);

// Lists the live instructions of a computation in canonical order, operands and control predecessors first; returns
// their number. Isomorphic computations get corresponding lists:
//
// Parameters come first, by number. Then a depth-first walk from the root, through the operands in order and then the
// control predecessors, lists each instruction behind what it needs. What has an effect and is not needed by the root
// is walked from after that. The only choices are among sets, control predecessors and such further roots: the member
// with the least colour goes first, a colour being a hash of what the instruction is, of all that it is computed from
// and of all that uses it; among equal colours the one with the least trace, a hash of the walk from it through what is
// not listed yet. Members that still tie are interchangeable, or differ in a way that only a search would tell: then
// the order of the text decides, which can cost a hit in a cache, and never gives a wrong one.
uint32_t kl_canonical_order(kl_ctx *cx, const kl_comp *c, const bool *live, kl_content_fn *content, void *arg,
                            uint32_t *order);

// A hash of all that the module's hash leaves out and code shows: names, in the order of the text. Never 0. It is
// computed once.
uint64_t kl_module_names_hash(const kiln_module *m);

// same[i]: the first computation that computes what computation i does, in the same way and of the same parameters, by
// their digests; i itself for those that nothing calls. Errors: MEMORY.
kiln_status kl_module_same(kl_ctx *cx, const kiln_module *m, uint32_t *same);

#endif

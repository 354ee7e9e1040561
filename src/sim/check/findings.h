// Findings as users are told: texts and numbers of their own, which outlive the module and the launch.
#ifndef KL_CHECK_FINDINGS_H
#define KL_CHECK_FINDINGS_H

#include "sim/check/checks.h"

#include <kiln/sim.h>

typedef struct kl_findings {
  kl_ctx *cx;
  kl_arena arena;
  VEC(kiln_sim_finding) list;
} kl_findings;

void kl_findings_init(kl_findings *f, kl_ctx *cx);
void kl_findings_free(kl_findings *f);
void kl_findings_clear(kl_findings *f);
// Adds what a report holds and tells it as findings of the context, with places in the module's text; a fault, which
// the launch has told itself, is only added. What is there already, of the same line and kernel, counts on. True if
// there was anything.
bool kl_findings_take(kl_findings *f, const kl_checks *c, const kl_ptx_module *ptx);
// Bytes that the host reads and nobody has written.
void kl_findings_unwritten(kl_findings *f, const kl_memory *m, uint64_t address, uint64_t bytes);
// The i-th into a struct of the caller's. INVALID: there are fewer.
kiln_status kl_findings_get(kl_ctx *cx, const kl_findings *f, size_t i, kiln_sim_finding *out);

#endif

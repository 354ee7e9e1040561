// The rules of HLO: what shape an instruction's result has, and what makes a module well formed.
#ifndef KL_RULES_H
#define KL_RULES_H

#include "ir/hlo.h"

// Puts in what the text may leave out and the operands tell: the dimensions of map.
void kl_complete(kiln_module *m, const kl_comp *c, kl_instr *in);
// Result shape that op, operands and attributes in `in` determine (in->shape is the wanted shape or NULL where it can
// be inferred). Reports every broken rule; KILN_OK stores the shape. Parser, builder and verifier all go through here.
kiln_status kl_infer_shape(kiln_module *m, const kl_comp *c, const kl_instr *in, const kl_shape **out);
// Checks instruction by instruction, storing inferred shapes, but for those marked in `skip` (NULL: none), which have
// been complained about already, and their users where the shape is unknown; then the computation's own rules.
kiln_status kl_check_computation(kiln_module *m, kl_comp *c, const bool *skip);
// Checks a whole module: every instruction, parameter numbering, roots, call signatures, recursion. Collects all
// findings.
kiln_status kl_verify(kiln_module *m);

#endif

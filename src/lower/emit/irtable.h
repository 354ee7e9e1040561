// The closed table of IR operations that kiln lets into code generation.
#ifndef KL_IRTABLE_H
#define KL_IRTABLE_H

#include "base/base.h"
#include <llvm-c/Core.h>

// Checks every instruction of the module against the table: opcode or intrinsic, types, address space, ordering.
// LLVM's instruction selection aborts the process, or succeeds with wrong PTX, on what it does not know; what is in the
// table has been seen to select right. INTERNAL, with the instruction, for anything else. *ptx receives the least PTX
// version (63 for 6.3) that the rows in use need on sm `sm`; sm 0 is the host.
kiln_status kl_ir_check(kl_ctx *cx, LLVMModuleRef m, uint32_t sm, uint32_t *ptx);

// Least PTX version that knows target sm_NN with the variant suffix ('a', 'f' or 0); 0 if the target is unknown.
uint32_t kl_ptx_floor(uint32_t sm, char variant);

#endif

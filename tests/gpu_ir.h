// Runs what was built for a GPU on this CPU: the LLVM IR of its kernels, thread by thread, launched as the manifest
// says. Only control flow, indices and arithmetic that the CPU has: none of NVPTX's own instructions but the numbers of
// thread and block.
#ifndef KL_TEST_GPU_IR_H
#define KL_TEST_GPU_IR_H

#include <kiln/kiln.h>
#include <stdbool.h>

// The artifact was compiled with KILN_KEEP_LLVM. params[i], results[i]: buffers; a parameter that goes by value is read
// from its buffer. False where the kernels need an instruction that the CPU lacks; fails the running test otherwise.
bool gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count);

#endif

// Runs what was built for a GPU on this CPU: the LLVM IR of its kernels, thread by thread, launched as the manifest
// says. NVPTX's own instructions are done in words that the CPU has. What comes after the IR, LLVM's NVPTX backend and
// ptxas, is not seen here.
#ifndef KL_TEST_GPU_IR_H
#define KL_TEST_GPU_IR_H

#include <kiln/kiln.h>

// The artifact was compiled with KILN_KEEP_LLVM. params[i], results[i]: buffers; a parameter that goes by value is read
// from its buffer. Fails the running test where that cannot be.
void gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count);

#endif

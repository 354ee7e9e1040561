// Runs what was built for a GPU on this CPU: the LLVM IR of its kernels, thread by thread, launched as the manifest
// says. Each operation on floats does what the PTX instruction that LLVM selects for it does (ptx_isa.h), with what the
// CPU would do otherwise about NaN, rounding or overflow left out; what the IR leaves open comes out wrong on purpose.
// What comes after the IR, LLVM's NVPTX backend and ptxas, is not seen here, but gpu_ir_selections says what of it is
// taken for granted.
#ifndef KL_TEST_GPU_IR_H
#define KL_TEST_GPU_IR_H

#include <kiln/kiln.h>

// The artifact was compiled with KILN_KEEP_LLVM. params[i], results[i]: buffers; a parameter that goes by value is read
// from its buffer. Fails the running test where that cannot be.
void gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count);

// What is taken for granted of LLVM's instruction selection, row by row: writes a kernel that does one IR operation
// into ir[n] and returns the PTX instruction that it must become; NULL behind the last row.
const char *gpu_ir_selection(size_t row, char *ir, size_t n);

#endif

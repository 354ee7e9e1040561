// The kernels that tests run on the simulator, on a GPU as well, which must leave the same bits: where KILN_TEST_CUDA
// is set to the driver's library (libcuda.so.1), and the GPU runs code of their target. tests/on_gpu does it for all
// tests.
#ifndef KL_TEST_GPU_CUDA_H
#define KL_TEST_GPU_CUDA_H

#include <kiln/kiln.h>

typedef struct gpu_cuda_run gpu_cuda_run;

// Launches what the artifact says on copies of the buffers, whose contents stay as they are; NULL: not wanted, or not
// for this GPU. Arguments as for gpu_sim_run. Fails the running test where a launch fails.
gpu_cuda_run *gpu_cuda_begin(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                             int64_t count);

// Frees it. Where `same`: fails the running test unless the results that the GPU left have the bits of these, NaNs
// aside.
void gpu_cuda_end(gpu_cuda_run *g, void *const *results, bool same);

#endif

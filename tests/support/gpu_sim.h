// Runs what was built for a GPU on the simulator: the PTX of its kernels, launched as the manifest says. Every buffer
// is memory of its own of exactly the size that the manifest gives it, so that an access behind it is a fault.
// Launches run under the simulator's checks, which may find nothing, and every byte of a result must be written. Some
// run again with lanes, warps and blocks in another order, which must leave the same bytes. Where a GPU is asked for
// (gpu_cuda.h), it must leave the same bits.
#ifndef KL_TEST_GPU_SIM_H
#define KL_TEST_GPU_SIM_H

#include <kiln/kiln.h>

// params[i], results[i]: buffers; a parameter that goes by value is read from its buffer. `count`: elements, where the
// artifact takes it. Fails the running test where that cannot be.
void gpu_sim_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                 int64_t count);

// Bits of results depend on the order of lanes, warps and blocks, as sums by several threads do: every run has another
// order, and its results are whoever asks to judge.
extern bool gpu_sim_order_shows;

// Seed of other values of approximations, within their documented errors, in launches to come; 0: the nearest ones.
extern uint64_t gpu_sim_perturb;

#endif

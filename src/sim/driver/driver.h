// The CUDA driver's entry points, as the simulator implements them.
//
// One process-wide driver behind one lock: any thread may call, and each has its own stack of current contexts. What is
// put on a stream happens at once, on the calling thread, in the order of the calls: a legal schedule, and always the
// same one. A kernel that fails is told as the hardware tells it, by the calls after its launch. Handles are numbers
// that are looked up, never addresses: a stale or made-up one gets the driver's error.
#ifndef KL_SIM_DRIVER_H
#define KL_SIM_DRIVER_H

#include "base/base.h"

// The address of the entry point that cuGetProcAddress would give for this name and version (12040 is 12.4), or NULL.
// Thread-safe.
void *kl_sim_resolve(const char *name, int version);

// How launches run, and which devices there are. What is zero here is taken from the environment, then from the
// default.
typedef struct kl_sim_options {
  const char *devices;    // names of the table, separated by commas; KILN_SIM_GPU; "H100". Only before cuInit
  unsigned workers;       // threads that a launch runs on; KILN_SIM_WORKERS; as many as there are cores
  uint64_t shuffle;       // seed of the order of lanes, warps and blocks; KILN_SIM_SHUFFLE; 0: rising
  uint64_t perturb;       // seed of other values of approximations; KILN_SIM_PERTURB; 0: the nearest ones
  uint64_t most_branches; // as kl_launch has it; KILN_SIM_LIMIT; 0: no limit
  uint32_t checks;        // bits, as check/checks.h has them: of all launches; KILN_SIM_CHECK; 0: none
} kl_sim_options;
// INVALID: no such device, or devices that differ after cuInit.
kiln_status kl_sim_configure(kl_ctx *cx, const kl_sim_options *o);

#endif

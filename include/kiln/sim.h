// kiln: NVIDIA GPUs simulated on this machine's CPU, from PTX.
//
// The simulator implements the CUDA driver's entry points. kiln_sim_resolve gives them to kiln_driver_open, so that
// kernels take the way that they take on a GPU; the library libkilnsim.so exports them under the driver's names and can
// be loaded in the place of libcuda.so.1 by any program of the driver API. docs/simulator.md says what it does and does
// not.
//
// There is one driver in a process, as with CUDA. Its functions are thread-safe.
#ifndef KILN_SIM_H
#define KILN_SIM_H

#include <kiln/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_sim_params {
  size_t struct_size;
  // Names of simulated GPUs, separated by commas: A100, H100, H200, L40S, B200, RTX 4090. NULL: what the environment's
  // KILN_SIM_GPU says, or H100. To be chosen before the driver is first used.
  const char *devices;
  uint32_t workers; // threads that a launch runs on; 0: KILN_SIM_WORKERS, or as many as there are cores
  uint64_t shuffle; // seed of another order of lanes, warps and blocks; 0: KILN_SIM_SHUFFLE, or by rising number
} kiln_sim_params;

// Sets how the driver's launches run, and which devices there are. What is zero stays as it is. Errors: INVALID (no
// such device; other devices after cuInit).
KILN_API kiln_status kiln_sim_configure(kiln_context *cx, const kiln_sim_params *params);

// For kiln_driver_params.resolve: the address of an entry point of the simulator, by name and version as
// cuGetProcAddress takes them (12040 is 12.4), or NULL. `user` is ignored.
KILN_API void *kiln_sim_resolve(void *user, const char *name, int version);

#ifdef __cplusplus
}
#endif
#endif

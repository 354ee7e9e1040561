// Holds kiln's own description of the CUDA driver's interface against NVIDIA's header, at compile time.
#define __CUDA_API_VERSION_INTERNAL // earlier versions of entry points are declared as well
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#define KL_CUDA_REAL
#define CUstreamAttrValue CUstreamAttrValue_v1
#include "sim/driver/calls.h"

#define X(name, value) _Static_assert((int)(name) == (value), #name);
KL_CUDA_CONSTANTS(X)
KL_CUDA_MORE_CONSTANTS(X)
#undef X
#define X(type, size) _Static_assert(sizeof(type) == (size), #type);
KL_CUDA_SIZES(X)
KL_CUDA_MORE_SIZES(X)
#undef X
#define X(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member);
KL_CUDA_LAYOUT(X)
KL_CUDA_MORE_LAYOUT(X)
#undef X
#define X(name, symbol, version, need, signature)                                                                      \
  _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), CUresult signature), #name);
KL_CUDA_CALLS(X)
#undef X
// The rows of the simulator: the version that brought a name, and the symbol that it was given.
#define X(name, symbol, since, need, stream, params, args)                                                             \
  _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##since, CUresult(*) params), #name);                      \
  _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), CUresult params), #symbol);
KL_SIM_CALLS(X)
#undef X

int main(void) {
  return 0;
}

// Holds kiln's own description of the CUDA driver's interface against NVIDIA's header, at compile time.
#include <cuda.h>
#define KL_CUDA_REAL
#include "cuda/abi.h"

#define X(name, value) _Static_assert((int)(name) == (value), #name);
KL_CUDA_CONSTANTS(X)
#undef X
#define X(type, size) _Static_assert(sizeof(type) == (size), #type);
KL_CUDA_SIZES(X)
#undef X
#define X(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member);
KL_CUDA_LAYOUT(X)
#undef X
#define X(name, symbol, version, need, signature)                                                                      \
  _Static_assert(__builtin_types_compatible_p(__typeof__(name), CUresult signature), #name);
KL_CUDA_CALLS(X)
#undef X

int main(void) {
  return 0;
}

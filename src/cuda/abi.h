// The part of the CUDA driver's binary interface that kiln uses, written from NVIDIA's documentation of the driver API
// so that neither building nor running needs a toolkit.
//
// Three tables and a few types. The entry points and their signatures are rows of KL_CUDA_CALLS, the constants rows of
// KL_CUDA_CONSTANTS, the layout of structs rows of KL_CUDA_LAYOUT. A test that finds NVIDIA's cuda.h includes it in the
// types' place (KL_CUDA_REAL) and checks every row against it.
#ifndef KL_CUDA_ABI_H
#define KL_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

// clang-format off
//  name                                              value
#define KL_CUDA_CONSTANTS(X)                                                                                           \
  X(CUDA_SUCCESS,                                     0)                                                               \
  X(CUDA_ERROR_INVALID_VALUE,                         1)                                                               \
  X(CUDA_ERROR_OUT_OF_MEMORY,                         2)                                                               \
  X(CUDA_ERROR_NOT_INITIALIZED,                       3)                                                               \
  X(CUDA_ERROR_DEINITIALIZED,                         4)                                                               \
  X(CUDA_ERROR_STUB_LIBRARY,                          34)                                                              \
  X(CUDA_ERROR_NO_DEVICE,                             100)                                                             \
  X(CUDA_ERROR_INVALID_DEVICE,                        101)                                                             \
  X(CUDA_ERROR_INVALID_IMAGE,                         200)                                                             \
  X(CUDA_ERROR_INVALID_CONTEXT,                       201)                                                             \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU,                     209)                                                             \
  X(CUDA_ERROR_ECC_UNCORRECTABLE,                     214)                                                             \
  X(CUDA_ERROR_INVALID_PTX,                           218)                                                             \
  X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND,                221)                                                             \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,               222)                                                             \
  X(CUDA_ERROR_JIT_COMPILATION_DISABLED,              223)                                                             \
  X(CUDA_ERROR_INVALID_HANDLE,                        400)                                                             \
  X(CUDA_ERROR_NOT_FOUND,                             500)                                                             \
  X(CUDA_ERROR_NOT_READY,                             600)                                                             \
  X(CUDA_ERROR_ILLEGAL_ADDRESS,                       700)                                                             \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,               701)                                                             \
  X(CUDA_ERROR_LAUNCH_TIMEOUT,                        702)                                                             \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED,                  709)                                                             \
  X(CUDA_ERROR_ASSERT,                                710)                                                             \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR,                  714)                                                             \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION,                   715)                                                             \
  X(CUDA_ERROR_MISALIGNED_ADDRESS,                    716)                                                             \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE,                 717)                                                             \
  X(CUDA_ERROR_INVALID_PC,                            718)                                                             \
  X(CUDA_ERROR_LAUNCH_FAILED,                         719)                                                             \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,                803)                                                             \
  X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,        804)                                                             \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,            900)                                                             \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,            901)                                                             \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,           908)                                                             \
  X(CUDA_ERROR_UNKNOWN,                               999)                                                             \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,  8)                                                               \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE,                   13)                                                              \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,         16)                                                              \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,            36)                                                              \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,      37)                                                              \
  X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,                38)                                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                                            \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,     75)                                                              \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,     76)                                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                                      \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                                          \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                                         \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,              1)                                                               \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,               3)                                                               \
  X(CU_FUNC_ATTRIBUTE_NUM_REGS,                       4)                                                               \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,  8)                                                               \
  X(CU_JIT_INFO_LOG_BUFFER,                           3)                                                               \
  X(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,                4)                                                               \
  X(CU_JIT_ERROR_LOG_BUFFER,                          5)                                                               \
  X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,               6)                                                               \
  X(CU_JIT_INPUT_PTX,                                 1)                                                               \
  X(CU_STREAM_NON_BLOCKING,                           1)                                                               \
  X(CU_STREAM_CAPTURE_STATUS_NONE,                    0)                                                               \
  X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,            4)                                                               \
  X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)

// clang-format on

#ifndef KL_CUDA_REAL
typedef int CUresult; // the enums of the interface are ints in it
typedef int CUdevice;
typedef int CUdevice_attribute, CUfunction_attribute, CUjit_option, CUlibraryOption, CUstreamCaptureStatus;
typedef int CUlaunchAttributeID;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlinkState_st *CUlinkState;
typedef int CUjitInputType;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
// What nodes are made of: driver.h.
typedef struct CUDA_KERNEL_NODE_PARAMS_v1 CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct CUgraphNodeParams CUgraphNodeParams;
typedef struct CUgraphEdgeData CUgraphEdgeData;

typedef union CUlaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int cooperative;
  int priority;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;

enum {
#define X(name, value) name = value,
  KL_CUDA_CONSTANTS(X)
#undef X
};
#endif

// type, size; then type, member, offset
#define KL_CUDA_SIZES(X)                                                                                               \
  X(CUresult, 4)                                                                                                       \
  X(CUdevice, 4)                                                                                                       \
  X(CUdevice_attribute, 4)                                                                                             \
  X(CUfunction_attribute, 4)                                                                                           \
  X(CUjit_option, 4)                                                                                                   \
  X(CUlibraryOption, 4)                                                                                                \
  X(CUstreamCaptureStatus, 4)                                                                                          \
  X(CUdeviceptr, 8)                                                                                                    \
  X(CUlaunchAttributeValue, 64)                                                                                        \
  X(CUlaunchAttribute, 72)                                                                                             \
  X(CUlaunchConfig, 56)
#define KL_CUDA_LAYOUT(X)                                                                                              \
  X(CUlaunchAttribute, id, 0)                                                                                          \
  X(CUlaunchAttribute, value, 8)                                                                                       \
  X(CUlaunchAttributeValue, clusterDim, 0)                                                                             \
  X(CUlaunchAttributeValue, programmaticStreamSerializationAllowed, 0)                                                 \
  X(CUlaunchAttributeValue, cooperative, 0)                                                                            \
  X(CUlaunchAttributeValue, priority, 0)                                                                               \
  X(CUlaunchConfig, blockDimX, 12)                                                                                     \
  X(CUlaunchConfig, sharedMemBytes, 24)                                                                                \
  X(CUlaunchConfig, hStream, 32)                                                                                       \
  X(CUlaunchConfig, attrs, 40)                                                                                         \
  X(CUlaunchConfig, numAttrs, 48)

#ifndef KL_CUDA_REAL
#define X(type, size) _Static_assert(sizeof(type) == (size), #type);
KL_CUDA_SIZES(X)
#undef X
#define X(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member);
KL_CUDA_LAYOUT(X)
#undef X
#endif

// clang-format off
// name: as cuGetProcAddress takes it. symbol: the same entry point's name in the library, for where that call is missing.
// version: of the interface that is asked for (12040 is 12.4). need: least driver version that must have it; 0: optional,
// kiln does without.
//
//   name                    symbol                         version need   signature
#define KL_CUDA_CALLS(X)                                                                                               \
  X(cuInit,                  cuInit,                        11080, 11080, (unsigned))                                  \
  X(cuDriverGetVersion,      cuDriverGetVersion,            11080, 11080, (int *))                                     \
  X(cuGetErrorName,          cuGetErrorName,                11080, 11080, (CUresult, const char **))                   \
  X(cuGetErrorString,        cuGetErrorString,              11080, 11080, (CUresult, const char **))                   \
  X(cuDeviceGetCount,        cuDeviceGetCount,              11080, 11080, (int *))                                     \
  X(cuDeviceGet,             cuDeviceGet,                   11080, 11080, (CUdevice *, int))                           \
  X(cuDeviceGetName,         cuDeviceGetName,               11080, 11080, (char *, int, CUdevice))                     \
  X(cuDeviceGetAttribute,    cuDeviceGetAttribute,          11080, 11080, (int *, CUdevice_attribute, CUdevice))       \
  X(cuDeviceTotalMem,        cuDeviceTotalMem_v2,           11080, 11080, (size_t *, CUdevice))                        \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,     11080, 11080, (CUcontext *, CUdevice))                     \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11080, 11080, (CUdevice))                                 \
  X(cuCtxGetCurrent,         cuCtxGetCurrent,               11080, 11080, (CUcontext *))                               \
  X(cuCtxPushCurrent,        cuCtxPushCurrent_v2,           11080, 11080, (CUcontext))                                 \
  X(cuCtxPopCurrent,         cuCtxPopCurrent_v2,            11080, 11080, (CUcontext *))                               \
  X(cuCtxGetDevice,          cuCtxGetDevice,                11080, 11080, (CUdevice *))                                \
  X(cuModuleLoadDataEx,      cuModuleLoadDataEx,            11080, 11080,                                              \
    (CUmodule *, const void *, unsigned, CUjit_option *, void **))                                                     \
  X(cuModuleUnload,          cuModuleUnload,                11080, 11080, (CUmodule))                                  \
  X(cuModuleGetFunction,     cuModuleGetFunction,           11080, 11080, (CUfunction *, CUmodule, const char *))      \
  X(cuLibraryLoadData,       cuLibraryLoadData,             12000, 0,                                                  \
    (CUlibrary *, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *, void **, unsigned))              \
  X(cuLibraryUnload,         cuLibraryUnload,               12000, 0,     (CUlibrary))                                 \
  X(cuLibraryGetKernel,      cuLibraryGetKernel,            12000, 0,     (CUkernel *, CUlibrary, const char *))       \
  X(cuKernelGetFunction,     cuKernelGetFunction,           12000, 0,     (CUfunction *, CUkernel))                    \
  X(cuLinkCreate,            cuLinkCreate_v2,               11080, 11080, (unsigned, CUjit_option *, void **, CUlinkState *)) \
  X(cuLinkAddData,           cuLinkAddData_v2,              11080, 11080,                                              \
    (CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned, CUjit_option *, void **))                    \
  X(cuLinkComplete,          cuLinkComplete,                11080, 11080, (CUlinkState, void **, size_t *))            \
  X(cuLinkDestroy,           cuLinkDestroy,                 11080, 11080, (CUlinkState))                               \
  X(cuFuncGetAttribute,      cuFuncGetAttribute,            11080, 11080, (int *, CUfunction_attribute, CUfunction))   \
  X(cuFuncSetAttribute,      cuFuncSetAttribute,            11080, 11080, (CUfunction, CUfunction_attribute, int))     \
  X(cuFuncLoad,              cuFuncLoad,                    12040, 0,     (CUfunction))                                \
  X(cuLaunchKernelEx,        cuLaunchKernelEx,              11080, 11080,                                              \
    (const CUlaunchConfig *, CUfunction, void **, void **))                                                            \
  X(cuStreamCreate,          cuStreamCreate,                11080, 11080, (CUstream *, unsigned))                      \
  X(cuStreamDestroy,         cuStreamDestroy_v2,            11080, 11080, (CUstream))                                  \
  X(cuStreamSynchronize,     cuStreamSynchronize,           11080, 11080, (CUstream))                                  \
  X(cuStreamIsCapturing,     cuStreamIsCapturing,           11080, 11080, (CUstream, CUstreamCaptureStatus *))         \
  X(cuEventCreate,           cuEventCreate,                 11080, 11080, (CUevent *, unsigned))                       \
  X(cuEventDestroy,          cuEventDestroy_v2,             11080, 11080, (CUevent))                                   \
  X(cuEventRecord,           cuEventRecord,                 11080, 11080, (CUevent, CUstream))                         \
  X(cuEventSynchronize,      cuEventSynchronize,            11080, 11080, (CUevent))                                   \
  X(cuEventElapsedTime,      cuEventElapsedTime,            11080, 11080, (float *, CUevent, CUevent))                 \
  X(cuMemAlloc,              cuMemAlloc_v2,                 11080, 11080, (CUdeviceptr *, size_t))                     \
  X(cuMemFree,               cuMemFree_v2,                  11080, 11080, (CUdeviceptr))                               \
  X(cuMemcpyHtoDAsync,       cuMemcpyHtoDAsync_v2,          11080, 11080, (CUdeviceptr, const void *, size_t, CUstream)) \
  X(cuMemcpyDtoHAsync,       cuMemcpyDtoHAsync_v2,          11080, 11080, (void *, CUdeviceptr, size_t, CUstream))     \
  X(cuMemcpyDtoDAsync,       cuMemcpyDtoDAsync_v2,          11080, 11080, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  X(cuMemsetD8Async,         cuMemsetD8Async,               11080, 11080, (CUdeviceptr, unsigned char, size_t, CUstream)) \
  X(cuGraphCreate,           cuGraphCreate,                 11080, 11080, (CUgraph *, unsigned))                       \
  X(cuGraphDestroy,          cuGraphDestroy,                11080, 11080, (CUgraph))                                   \
  X(cuGraphAddKernelNode,    cuGraphAddKernelNode,          11080, 11080,                                              \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS_v1 *))                         \
  X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, 11080, 11080,                                        \
    (CUgraphNode, CUlaunchAttributeID, const CUlaunchAttributeValue *))                                                \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11080, 11080,                                            \
    (CUgraphExec *, CUgraph, unsigned long long))                                                                      \
  X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 11080, 11080,                                      \
    (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *))                                                    \
  X(cuGraphExecDestroy,      cuGraphExecDestroy,            11080, 11080, (CUgraphExec))                               \
  X(cuGraphLaunch,           cuGraphLaunch,                 11080, 11080, (CUgraphExec, CUstream))                     \
  X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate, 12030, 0,                                          \
    (uint64_t *, CUgraph, CUcontext, unsigned, unsigned))                                                              \
  X(cuGraphAddNode,          cuGraphAddNode_v2,             12030, 0,                                                  \
    (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUgraphNodeParams *))               \
  X(cuStreamGetCaptureInfo,  cuStreamGetCaptureInfo_v2,     11080, 11080,                                              \
    (CUstream, CUstreamCaptureStatus *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *))                        \
  X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 11080, 11080,                                \
    (CUstream, CUgraphNode *, size_t, unsigned))
// clang-format on

#endif

// The entry points that the simulator implements, a row each.
//
// name: as cuGetProcAddress takes it. symbol: the entry point's name in the library. since: the version of the
// interface that brought it; of rows of one name, a caller gets the last one that is no newer than what it asks for.
// needs: what must hold before it does anything (kl_need). stream: PTSZ or PTDS where there is a second entry point, of
// that suffix, for which stream 0 is the calling thread's own. Then the parameters, and their names alone.
//
// needs: NOTHING; INIT, that cuInit was called; CONTEXT, that a context is current, and not lost; UNCAPTURED, that as
// well, and that no capture forbids the call.
#ifndef KL_SIM_CALLS_H
#define KL_SIM_CALLS_H

#include "cuda/driver.h"

// clang-format off
// the driver itself and its devices
#define KL_SIM_DEVICE_CALLS(X)                                                                                         \
  X(cuInit, cuInit, 2000, NOTHING, PLAIN, (unsigned a), (a))                                                           \
  X(cuDriverGetVersion, cuDriverGetVersion, 2020, NOTHING, PLAIN, (int *a), (a))                                       \
  X(cuGetErrorName, cuGetErrorName, 6000, NOTHING, PLAIN, (CUresult a, const char **b), (a, b))                        \
  X(cuGetErrorString, cuGetErrorString, 6000, NOTHING, PLAIN, (CUresult a, const char **b), (a, b))                    \
  X(cuGetProcAddress, cuGetProcAddress, 11030, NOTHING, PLAIN,                                                         \
    (const char *a, void **b, int c, cuuint64_t d), (a, b, c, d))                                                      \
  X(cuGetProcAddress, cuGetProcAddress_v2, 12000, NOTHING, PLAIN,                                                      \
    (const char *a, void **b, int c, cuuint64_t d, CUdriverProcAddressQueryResult *e), (a, b, c, d, e))                \
  X(cuGetExportTable, cuGetExportTable, 3000, NOTHING, PLAIN, (const void **a, const CUuuid *b), (a, b))               \
  X(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, NOTHING, PLAIN, (CUmoduleLoadingMode *a), (a))              \
  X(cuDeviceGet, cuDeviceGet, 2000, INIT, PLAIN, (CUdevice *a, int b), (a, b))                                         \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000, INIT, PLAIN, (int *a), (a))                                              \
  X(cuDeviceGetName, cuDeviceGetName, 2000, INIT, PLAIN, (char *a, int b, CUdevice c), (a, b, c))                      \
  X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, INIT, PLAIN, (CUuuid *a, CUdevice b), (a, b))                              \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, INIT, PLAIN, (CUuuid *a, CUdevice b), (a, b))                          \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, INIT, PLAIN, (size_t *a, CUdevice b), (a, b))                         \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, INIT, PLAIN,                                                     \
    (int *a, CUdevice_attribute b, CUdevice c), (a, b, c))                                                             \
  X(cuDeviceGetProperties, cuDeviceGetProperties, 2000, INIT, PLAIN, (CUdevprop *a, CUdevice b), (a, b))               \
  X(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000, INIT, PLAIN, (int *a, int *b, CUdevice c), (a, b, c))  \
  X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, INIT, PLAIN, (CUdevice *a, const char *b), (a, b))             \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, INIT, PLAIN, (char *a, int b, CUdevice c), (a, b, c))              \
  X(cuDeviceGetExecAffinitySupport, cuDeviceGetExecAffinitySupport, 11040, INIT, PLAIN,                                \
    (int *a, CUexecAffinityType b, CUdevice c), (a, b, c))                                                             \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, INIT, PLAIN, (int *a, CUdevice b, CUdevice c), (a, b, c))      \
  X(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, INIT, PLAIN,                                               \
    (int *a, CUdevice_P2PAttribute b, CUdevice c, CUdevice d), (a, b, c, d))                                           \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, INIT, PLAIN, (CUmemoryPool *a, CUdevice b), (a, b))   \
  X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, INIT, PLAIN, (CUmemoryPool *a, CUdevice b), (a, b))                 \
  X(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, INIT, PLAIN, (CUdevice a, CUmemoryPool b), (a, b))                  \
  X(cuLogsRegisterCallback, cuLogsRegisterCallback, 12090, INIT, PLAIN,                                                \
    (CUlogsCallback a, void *b, CUlogsCallbackHandle *c), (a, b, c))                                                   \
  X(cuLogsUnregisterCallback, cuLogsUnregisterCallback, 12090, INIT, PLAIN, (CUlogsCallbackHandle a), (a))             \
  X(cuLogsCurrent, cuLogsCurrent, 12090, INIT, PLAIN, (CUlogIterator *a, unsigned b), (a, b))                          \
  X(cuLogsDumpToFile, cuLogsDumpToFile, 12090, INIT, PLAIN, (CUlogIterator *a, const char *b, unsigned c), (a, b, c))  \
  X(cuLogsDumpToMemory, cuLogsDumpToMemory, 12090, INIT, PLAIN,                                                        \
    (CUlogIterator *a, char *b, size_t *c, unsigned d), (a, b, c, d))

// contexts
#define KL_SIM_CONTEXT_CALLS(X)                                                                                        \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, INIT, PLAIN, (CUcontext *a, CUdevice b), (a, b))         \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, INIT, PLAIN, (CUdevice a), (a))                    \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000, INIT, PLAIN, (CUdevice a, unsigned b), (a, b))   \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, INIT, PLAIN,                                         \
    (CUdevice a, unsigned *b, int *c), (a, b, c))                                                                      \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, INIT, PLAIN, (CUdevice a), (a))                        \
  X(cuCtxCreate, cuCtxCreate_v2, 3020, INIT, PLAIN, (CUcontext *a, unsigned b, CUdevice c), (a, b, c))                 \
  X(cuCtxCreate, cuCtxCreate_v3, 11040, INIT, PLAIN,                                                                   \
    (CUcontext *a, CUexecAffinityParam *b, int c, unsigned d, CUdevice e), (a, b, c, d, e))                            \
  X(cuCtxCreate, cuCtxCreate_v4, 12050, INIT, PLAIN,                                                                   \
    (CUcontext *a, CUctxCreateParams *b, unsigned c, CUdevice d), (a, b, c, d))                                        \
  X(cuCtxDestroy, cuCtxDestroy_v2, 4000, INIT, PLAIN, (CUcontext a), (a))                                              \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, INIT, PLAIN, (CUcontext a), (a))                                      \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, INIT, PLAIN, (CUcontext *a), (a))                                       \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, INIT, PLAIN, (CUcontext a), (a))                                           \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, INIT, PLAIN, (CUcontext *a), (a))                                          \
  X(cuCtxGetDevice, cuCtxGetDevice, 2000, INIT, PLAIN, (CUdevice *a), (a))                                             \
  X(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, INIT, PLAIN, (CUdevice *a, CUcontext b), (a, b))                         \
  X(cuCtxGetId, cuCtxGetId, 12000, INIT, PLAIN, (CUcontext a, unsigned long long *b), (a, b))                          \
  X(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, INIT, PLAIN, (CUcontext a, unsigned *b), (a, b))                     \
  X(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, INIT, PLAIN, (CUcontext a), (a))                                     \
  X(cuCtxGetFlags, cuCtxGetFlags, 7000, CONTEXT, PLAIN, (unsigned *a), (a))                                            \
  X(cuCtxSetFlags, cuCtxSetFlags, 12010, CONTEXT, PLAIN, (unsigned a), (a))                                            \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000, CONTEXT, PLAIN, (void), ())                                              \
  X(cuProfilerStart, cuProfilerStart, 4000, CONTEXT, PLAIN, (void), ())                                                \
  X(cuProfilerStop, cuProfilerStop, 4000, CONTEXT, PLAIN, (void), ())                                                  \
  X(cuCtxSetLimit, cuCtxSetLimit, 3010, CONTEXT, PLAIN, (CUlimit a, size_t b), (a, b))                                 \
  X(cuCtxGetLimit, cuCtxGetLimit, 3010, CONTEXT, PLAIN, (size_t *a, CUlimit b), (a, b))                                \
  X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, CONTEXT, PLAIN, (CUfunc_cache *a), (a))                            \
  X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, CONTEXT, PLAIN, (CUfunc_cache a), (a))                             \
  X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, CONTEXT, PLAIN, (CUsharedconfig *a), (a))                  \
  X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, CONTEXT, PLAIN, (CUsharedconfig a), (a))                   \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, CONTEXT, PLAIN, (int *a, int *b), (a, b))          \
  X(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, CONTEXT, PLAIN, (void), ())                       \
  X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, CONTEXT, PLAIN, (CUcontext a, unsigned b), (a, b))             \
  X(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, CONTEXT, PLAIN, (CUcontext a), (a))

// modules, libraries, functions
#define KL_SIM_MODULE_CALLS(X)                                                                                         \
  X(cuModuleLoad, cuModuleLoad, 2000, UNCAPTURED, PLAIN, (CUmodule *a, const char *b), (a, b))                         \
  X(cuModuleLoadData, cuModuleLoadData, 2000, UNCAPTURED, PLAIN, (CUmodule *a, const void *b), (a, b))                 \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, UNCAPTURED, PLAIN,                                                   \
    (CUmodule *a, const void *b, unsigned c, CUjit_option *d, void **e), (a, b, c, d, e))                              \
  X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, UNCAPTURED, PLAIN, (CUmodule *a, const void *b), (a, b))       \
  X(cuModuleUnload, cuModuleUnload, 2000, UNCAPTURED, PLAIN, (CUmodule a), (a))                                        \
  X(cuModuleGetFunction, cuModuleGetFunction, 2000, CONTEXT, PLAIN,                                                    \
    (CUfunction *a, CUmodule b, const char *c), (a, b, c))                                                             \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, CONTEXT, PLAIN,                                                     \
    (CUdeviceptr *a, size_t *b, CUmodule c, const char *d), (a, b, c, d))                                              \
  X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, CONTEXT, PLAIN, (unsigned *a, CUmodule b), (a, b))      \
  X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, CONTEXT, PLAIN,                                     \
    (CUfunction *a, unsigned b, CUmodule c), (a, b, c))                                                                \
  X(cuLinkCreate, cuLinkCreate_v2, 6050, CONTEXT, PLAIN,                                                               \
    (unsigned a, CUjit_option *b, void **c, CUlinkState *d), (a, b, c, d))                                             \
  X(cuLinkAddData, cuLinkAddData_v2, 6050, CONTEXT, PLAIN,                                                             \
    (CUlinkState a, CUjitInputType b, void *c, size_t d, const char *e, unsigned f, CUjit_option *g, void **h), (a,    \
    b, c, d, e, f, g, h))                                                                                              \
  X(cuLinkAddFile, cuLinkAddFile_v2, 6050, CONTEXT, PLAIN,                                                             \
    (CUlinkState a, CUjitInputType b, const char *c, unsigned d, CUjit_option *e, void **f), (a, b, c, d, e, f))       \
  X(cuLinkComplete, cuLinkComplete, 5050, CONTEXT, PLAIN, (CUlinkState a, void **b, size_t *c), (a, b, c))             \
  X(cuLinkDestroy, cuLinkDestroy, 5050, CONTEXT, PLAIN, (CUlinkState a), (a))                                          \
  X(cuLibraryLoadData, cuLibraryLoadData, 12000, INIT, PLAIN,                                                          \
    (CUlibrary *a, const void *b, CUjit_option *c, void **d, unsigned e, CUlibraryOption *f, void **g, unsigned h),    \
    (a, b, c, d, e, f, g, h))                                                                                          \
  X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, INIT, PLAIN,                                                  \
    (CUlibrary *a, const char *b, CUjit_option *c, void **d, unsigned e, CUlibraryOption *f, void **g, unsigned h),    \
    (a, b, c, d, e, f, g, h))                                                                                          \
  X(cuLibraryUnload, cuLibraryUnload, 12000, INIT, PLAIN, (CUlibrary a), (a))                                          \
  X(cuLibraryGetKernel, cuLibraryGetKernel, 12000, INIT, PLAIN, (CUkernel *a, CUlibrary b, const char *c), (a, b, c))  \
  X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, INIT, PLAIN, (unsigned *a, CUlibrary b), (a, b))          \
  X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, INIT, PLAIN,                                          \
    (CUkernel *a, unsigned b, CUlibrary c), (a, b, c))                                                                 \
  X(cuKernelGetLibrary, cuKernelGetLibrary, 12050, INIT, PLAIN, (CUlibrary *a, CUkernel b), (a, b))                    \
  X(cuKernelGetName, cuKernelGetName, 12030, INIT, PLAIN, (const char **a, CUkernel b), (a, b))                        \
  X(cuKernelGetAttribute, cuKernelGetAttribute, 12000, INIT, PLAIN,                                                    \
    (int *a, CUfunction_attribute b, CUkernel c, CUdevice d), (a, b, c, d))                                            \
  X(cuKernelSetAttribute, cuKernelSetAttribute, 12000, INIT, PLAIN,                                                    \
    (CUfunction_attribute a, int b, CUkernel c, CUdevice d), (a, b, c, d))                                             \
  X(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, INIT, PLAIN,                                                \
    (CUkernel a, CUfunc_cache b, CUdevice c), (a, b, c))                                                               \
  X(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040, INIT, PLAIN,                                                    \
    (CUkernel a, size_t b, size_t *c, size_t *d), (a, b, c, d))                                                        \
  X(cuLibraryGetModule, cuLibraryGetModule, 12000, CONTEXT, PLAIN, (CUmodule *a, CUlibrary b), (a, b))                 \
  X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, CONTEXT, PLAIN,                                                     \
    (CUdeviceptr *a, size_t *b, CUlibrary c, const char *d), (a, b, c, d))                                             \
  X(cuLibraryGetManaged, cuLibraryGetManaged, 12000, CONTEXT, PLAIN,                                                   \
    (CUdeviceptr *a, size_t *b, CUlibrary c, const char *d), (a, b, c, d))                                             \
  X(cuLibraryGetUnifiedFunction, cuLibraryGetUnifiedFunction, 12000, CONTEXT, PLAIN,                                   \
    (void **a, CUlibrary b, const char *c), (a, b, c))                                                                 \
  X(cuKernelGetFunction, cuKernelGetFunction, 12000, CONTEXT, PLAIN, (CUfunction *a, CUkernel b), (a, b))              \
  X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, CONTEXT, PLAIN,                                                      \
    (int *a, CUfunction_attribute b, CUfunction c), (a, b, c))                                                         \
  X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, CONTEXT, PLAIN,                                                      \
    (CUfunction a, CUfunction_attribute b, int c), (a, b, c))                                                          \
  X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, CONTEXT, PLAIN, (CUfunction a, CUfunc_cache b), (a, b))          \
  X(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, CONTEXT, PLAIN,                                          \
    (CUfunction a, CUsharedconfig b), (a, b))                                                                          \
  X(cuFuncGetModule, cuFuncGetModule, 11000, CONTEXT, PLAIN, (CUmodule *a, CUfunction b), (a, b))                      \
  X(cuFuncGetName, cuFuncGetName, 12030, CONTEXT, PLAIN, (const char **a, CUfunction b), (a, b))                       \
  X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, CONTEXT, PLAIN,                                                     \
    (CUfunction a, size_t b, size_t *c, size_t *d), (a, b, c, d))                                                      \
  X(cuFuncIsLoaded, cuFuncIsLoaded, 12040, CONTEXT, PLAIN, (CUfunctionLoadingState *a, CUfunction b), (a, b))          \
  X(cuFuncLoad, cuFuncLoad, 12040, CONTEXT, PLAIN, (CUfunction a), (a))                                                \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, CONTEXT, PLAIN,    \
    (int *a, CUfunction b, int c, size_t d), (a, b, c, d))                                                             \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, CONTEXT, PLAIN,\
    (int *a, CUfunction b, int c, size_t d, unsigned e), (a, b, c, d, e))                                              \
  X(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, CONTEXT, PLAIN,                          \
    (int *a, int *b, CUfunction c, CUoccupancyB2DSize d, size_t e, int f), (a, b, c, d, e, f))                         \
  X(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, CONTEXT, PLAIN,        \
    (int *a, int *b, CUfunction c, CUoccupancyB2DSize d, size_t e, int f, unsigned g), (a, b, c, d, e, f, g))          \
  X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, CONTEXT, PLAIN,           \
    (size_t *a, CUfunction b, int c, int d), (a, b, c, d))                                                             \
  X(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize, 11070, CONTEXT, PLAIN,                     \
    (int *a, CUfunction b, const CUlaunchConfig *c), (a, b, c))                                                        \
  X(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, 11070, CONTEXT, PLAIN,                                 \
    (int *a, CUfunction b, const CUlaunchConfig *c), (a, b, c))

// memory
#define KL_SIM_MEMORY_CALLS(X)                                                                                         \
  X(cuMemAlloc, cuMemAlloc_v2, 3020, UNCAPTURED, PLAIN, (CUdeviceptr *a, size_t b), (a, b))                            \
  X(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, UNCAPTURED, PLAIN,                                                      \
    (CUdeviceptr *a, size_t *b, size_t c, size_t d, unsigned e), (a, b, c, d, e))                                      \
  X(cuMemFree, cuMemFree_v2, 3020, UNCAPTURED, PLAIN, (CUdeviceptr a), (a))                                            \
  X(cuMemAllocHost, cuMemAllocHost_v2, 3020, UNCAPTURED, PLAIN, (void **a, size_t b), (a, b))                          \
  X(cuMemFreeHost, cuMemFreeHost, 2000, UNCAPTURED, PLAIN, (void *a), (a))                                             \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, UNCAPTURED, PLAIN, (void **a, size_t b, unsigned c), (a, b, c))              \
  X(cuMemHostRegister, cuMemHostRegister_v2, 6050, UNCAPTURED, PLAIN, (void *a, size_t b, unsigned c), (a, b, c))      \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000, UNCAPTURED, PLAIN, (void *a), (a))                                 \
  X(cuMemAllocManaged, cuMemAllocManaged, 6000, UNCAPTURED, PLAIN, (CUdeviceptr *a, size_t b, unsigned c), (a, b, c))  \
  X(cuMemGetInfo, cuMemGetInfo_v2, 3020, CONTEXT, PLAIN, (size_t *a, size_t *b), (a, b))                               \
  X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, CONTEXT, PLAIN,                                               \
    (CUdeviceptr *a, size_t *b, CUdeviceptr c), (a, b, c))                                                             \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, CONTEXT, PLAIN,                                     \
    (CUdeviceptr *a, void *b, unsigned c), (a, b, c))                                                                  \
  X(cuMemHostGetFlags, cuMemHostGetFlags, 2030, CONTEXT, PLAIN, (unsigned *a, void *b), (a, b))                        \
  X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, INIT, PLAIN,                                                   \
    (void *a, CUpointer_attribute b, CUdeviceptr c), (a, b, c))                                                        \
  X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, INIT, PLAIN,                                                 \
    (unsigned a, CUpointer_attribute *b, void **c, CUdeviceptr d), (a, b, c, d))                                       \
  X(cuPointerSetAttribute, cuPointerSetAttribute, 6000, INIT, PLAIN,                                                   \
    (const void *a, CUpointer_attribute b, CUdeviceptr c), (a, b, c))                                                  \
  X(cuMemPoolCreate, cuMemPoolCreate, 11020, INIT, PLAIN, (CUmemoryPool *a, const CUmemPoolProps *b), (a, b))          \
  X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, INIT, PLAIN, (CUmemoryPool a), (a))                                     \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, INIT, PLAIN, (CUmemoryPool a, size_t b), (a, b))                          \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, INIT, PLAIN,                                                  \
    (CUmemoryPool a, CUmemPool_attribute b, void *c), (a, b, c))                                                       \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, INIT, PLAIN,                                                  \
    (CUmemoryPool a, CUmemPool_attribute b, void *c), (a, b, c))                                                       \
  X(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, INIT, PLAIN,                                                        \
    (CUmemoryPool a, const CUmemAccessDesc *b, size_t c), (a, b, c))                                                   \
  X(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020, INIT, PLAIN,                                                        \
    (CUmemAccess_flags *a, CUmemoryPool b, CUmemLocation *c), (a, b, c))                                               \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020, CONTEXT, PTSZ, (CUdeviceptr *a, size_t b, CUstream c), (a, b, c))         \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, CONTEXT, PTSZ,                                            \
    (CUdeviceptr *a, size_t b, CUmemoryPool c, CUstream d), (a, b, c, d))                                              \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020, CONTEXT, PTSZ, (CUdeviceptr a, CUstream b), (a, b))                         \
  X(cuMemAdvise, cuMemAdvise, 8000, CONTEXT, PLAIN,                                                                    \
    (CUdeviceptr a, size_t b, CUmem_advise c, CUdevice d), (a, b, c, d))                                               \
  X(cuMemAdvise, cuMemAdvise_v2, 12020, CONTEXT, PLAIN,                                                                \
    (CUdeviceptr a, size_t b, CUmem_advise c, CUmemLocation d), (a, b, c, d))                                          \
  X(cuMemPrefetchAsync, cuMemPrefetchAsync, 8000, CONTEXT, PTSZ,                                                       \
    (CUdeviceptr a, size_t b, CUdevice c, CUstream d), (a, b, c, d))                                                   \
  X(cuMemPrefetchAsync, cuMemPrefetchAsync_v2, 12020, CONTEXT, PTSZ,                                                   \
    (CUdeviceptr a, size_t b, CUmemLocation c, unsigned d, CUstream e), (a, b, c, d, e))                               \
  X(cuMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, CONTEXT, PLAIN,                                              \
    (void *a, size_t b, CUmem_range_attribute c, CUdeviceptr d, size_t e), (a, b, c, d, e))                            \
  X(cuMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, CONTEXT, PLAIN,                                            \
    (void **a, size_t *b, CUmem_range_attribute *c, size_t d, CUdeviceptr e, size_t f), (a, b, c, d, e, f))            \
  X(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, CONTEXT, PTSZ,                                               \
    (CUstream a, CUdeviceptr b, size_t c, unsigned d), (a, b, c, d))

// copies and fills
#define KL_SIM_COPY_CALLS(X)                                                                                           \
  X(cuMemcpy, cuMemcpy, 4000, CONTEXT, PTDS, (CUdeviceptr a, CUdeviceptr b, size_t c), (a, b, c))                      \
  X(cuMemcpyAsync, cuMemcpyAsync, 4000, CONTEXT, PTSZ,                                                                 \
    (CUdeviceptr a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d))                                                \
  X(cuMemcpyPeer, cuMemcpyPeer, 4000, CONTEXT, PTDS,                                                                   \
    (CUdeviceptr a, CUcontext b, CUdeviceptr c, CUcontext d, size_t e), (a, b, c, d, e))                               \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, CONTEXT, PTSZ,                                                         \
    (CUdeviceptr a, CUcontext b, CUdeviceptr c, CUcontext d, size_t e, CUstream f), (a, b, c, d, e, f))                \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, CONTEXT, PTDS, (CUdeviceptr a, const void *b, size_t c), (a, b, c))           \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, CONTEXT, PTSZ,                                                      \
    (CUdeviceptr a, const void *b, size_t c, CUstream d), (a, b, c, d))                                                \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, CONTEXT, PTDS, (void *a, CUdeviceptr b, size_t c), (a, b, c))                 \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, CONTEXT, PTSZ,                                                      \
    (void *a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d))                                                      \
  X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, CONTEXT, PTDS, (CUdeviceptr a, CUdeviceptr b, size_t c), (a, b, c))           \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, CONTEXT, PTSZ,                                                      \
    (CUdeviceptr a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d))                                                \
  X(cuMemcpy2D, cuMemcpy2D_v2, 3020, CONTEXT, PTDS, (const CUDA_MEMCPY2D *a), (a))                                     \
  X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, CONTEXT, PTDS, (const CUDA_MEMCPY2D *a), (a))                   \
  X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, CONTEXT, PTSZ, (const CUDA_MEMCPY2D *a, CUstream b), (a, b))            \
  X(cuMemcpy3D, cuMemcpy3D_v2, 3020, CONTEXT, PTDS, (const CUDA_MEMCPY3D *a), (a))                                     \
  X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, CONTEXT, PTSZ, (const CUDA_MEMCPY3D *a, CUstream b), (a, b))            \
  X(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, CONTEXT, PTDS, (const CUDA_MEMCPY3D_PEER *a), (a))                           \
  X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, CONTEXT, PTSZ, (const CUDA_MEMCPY3D_PEER *a, CUstream b), (a, b))  \
  X(cuMemsetD8, cuMemsetD8_v2, 3020, CONTEXT, PTDS, (CUdeviceptr a, unsigned char b, size_t c), (a, b, c))             \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020, CONTEXT, PTSZ,                                                             \
    (CUdeviceptr a, unsigned char b, size_t c, CUstream d), (a, b, c, d))                                              \
  X(cuMemsetD16, cuMemsetD16_v2, 3020, CONTEXT, PTDS, (CUdeviceptr a, unsigned short b, size_t c), (a, b, c))          \
  X(cuMemsetD16Async, cuMemsetD16Async, 3020, CONTEXT, PTSZ,                                                           \
    (CUdeviceptr a, unsigned short b, size_t c, CUstream d), (a, b, c, d))                                             \
  X(cuMemsetD32, cuMemsetD32_v2, 3020, CONTEXT, PTDS, (CUdeviceptr a, unsigned b, size_t c), (a, b, c))                \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020, CONTEXT, PTSZ,                                                           \
    (CUdeviceptr a, unsigned b, size_t c, CUstream d), (a, b, c, d))                                                   \
  X(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, CONTEXT, PTDS,                                                                \
    (CUdeviceptr a, size_t b, unsigned char c, size_t d, size_t e), (a, b, c, d, e))                                   \
  X(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020, CONTEXT, PTSZ,                                                         \
    (CUdeviceptr a, size_t b, unsigned char c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f))                    \
  X(cuMemsetD2D16, cuMemsetD2D16_v2, 3020, CONTEXT, PTDS,                                                              \
    (CUdeviceptr a, size_t b, unsigned short c, size_t d, size_t e), (a, b, c, d, e))                                  \
  X(cuMemsetD2D16Async, cuMemsetD2D16Async, 3020, CONTEXT, PTSZ,                                                       \
    (CUdeviceptr a, size_t b, unsigned short c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f))                   \
  X(cuMemsetD2D32, cuMemsetD2D32_v2, 3020, CONTEXT, PTDS,                                                              \
    (CUdeviceptr a, size_t b, unsigned c, size_t d, size_t e), (a, b, c, d, e))                                        \
  X(cuMemsetD2D32Async, cuMemsetD2D32Async, 3020, CONTEXT, PTSZ,                                                       \
    (CUdeviceptr a, size_t b, unsigned c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f))

// streams and events
#define KL_SIM_STREAM_CALLS(X)                                                                                         \
  X(cuStreamCreate, cuStreamCreate, 2000, CONTEXT, PLAIN, (CUstream *a, unsigned b), (a, b))                           \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, CONTEXT, PLAIN,                                      \
    (CUstream *a, unsigned b, int c), (a, b, c))                                                                       \
  X(cuStreamGetPriority, cuStreamGetPriority, 5050, CONTEXT, PTSZ, (CUstream a, int *b), (a, b))                       \
  X(cuStreamGetFlags, cuStreamGetFlags, 5050, CONTEXT, PTSZ, (CUstream a, unsigned *b), (a, b))                        \
  X(cuStreamGetId, cuStreamGetId, 12000, CONTEXT, PTSZ, (CUstream a, unsigned long long *b), (a, b))                   \
  X(cuStreamGetDevice, cuStreamGetDevice, 12080, CONTEXT, PTSZ, (CUstream a, CUdevice *b), (a, b))                     \
  X(cuStreamGetCtx, cuStreamGetCtx, 9020, CONTEXT, PTSZ, (CUstream a, CUcontext *b), (a, b))                           \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, CONTEXT, PTSZ, (CUstream a, CUevent b, unsigned c), (a, b, c))         \
  X(cuStreamAddCallback, cuStreamAddCallback, 5000, CONTEXT, PTSZ,                                                     \
    (CUstream a, CUstreamCallback b, void *c, unsigned d), (a, b, c, d))                                               \
  X(cuStreamQuery, cuStreamQuery, 2000, CONTEXT, PTSZ, (CUstream a), (a))                                              \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000, CONTEXT, PTSZ, (CUstream a), (a))                                  \
  X(cuStreamDestroy, cuStreamDestroy_v2, 4000, CONTEXT, PLAIN, (CUstream a), (a))                                      \
  X(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, CONTEXT, PTSZ, (CUstream a, CUstream b), (a, b))            \
  X(cuStreamGetAttribute, cuStreamGetAttribute, 11000, CONTEXT, PTSZ,                                                  \
    (CUstream a, CUstreamAttrID b, CUstreamAttrValue *c), (a, b, c))                                                   \
  X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, CONTEXT, PTSZ,                                                  \
    (CUstream a, CUstreamAttrID b, const CUstreamAttrValue *c), (a, b, c))                                             \
  X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, CONTEXT, PTSZ, (CUstream a, CUhostFn b, void *c), (a, b, c))            \
  X(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, CONTEXT, PTSZ,                                               \
    (CUstream a, CUdeviceptr b, cuuint32_t c, unsigned d), (a, b, c, d))                                               \
  X(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, CONTEXT, PTSZ,                                                 \
    (CUstream a, CUdeviceptr b, cuuint32_t c, unsigned d), (a, b, c, d))                                               \
  X(cuStreamWriteValue64, cuStreamWriteValue64_v2, 11070, CONTEXT, PTSZ,                                               \
    (CUstream a, CUdeviceptr b, cuuint64_t c, unsigned d), (a, b, c, d))                                               \
  X(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070, CONTEXT, PTSZ,                                                 \
    (CUstream a, CUdeviceptr b, cuuint64_t c, unsigned d), (a, b, c, d))                                               \
  X(cuStreamBatchMemOp, cuStreamBatchMemOp_v2, 11070, CONTEXT, PTSZ,                                                   \
    (CUstream a, unsigned b, CUstreamBatchMemOpParams *c, unsigned d), (a, b, c, d))                                   \
  X(cuEventCreate, cuEventCreate, 2000, CONTEXT, PLAIN, (CUevent *a, unsigned b), (a, b))                              \
  X(cuEventRecord, cuEventRecord, 2000, CONTEXT, PTSZ, (CUevent a, CUstream b), (a, b))                                \
  X(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, CONTEXT, PTSZ,                                              \
    (CUevent a, CUstream b, unsigned c), (a, b, c))                                                                    \
  X(cuEventQuery, cuEventQuery, 2000, CONTEXT, PLAIN, (CUevent a), (a))                                                \
  X(cuEventSynchronize, cuEventSynchronize, 2000, CONTEXT, PLAIN, (CUevent a), (a))                                    \
  X(cuEventDestroy, cuEventDestroy_v2, 4000, CONTEXT, PLAIN, (CUevent a), (a))                                         \
  X(cuEventElapsedTime, cuEventElapsedTime, 2000, CONTEXT, PLAIN, (float *a, CUevent b, CUevent c), (a, b, c))         \
  X(cuEventElapsedTime, cuEventElapsedTime_v2, 12080, CONTEXT, PLAIN, (float *a, CUevent b, CUevent c), (a, b, c))

// launches
#define KL_SIM_LAUNCH_CALLS(X)                                                                                         \
  X(cuLaunchKernel, cuLaunchKernel, 4000, CONTEXT, PTSZ,                                                               \
    (CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h, CUstream i,     \
    void **j, void **k), (a, b, c, d, e, f, g, h, i, j, k))                                                            \
  X(cuLaunchKernelEx, cuLaunchKernelEx, 11060, CONTEXT, PTSZ,                                                          \
    (const CUlaunchConfig *a, CUfunction b, void **c, void **d), (a, b, c, d))                                         \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, CONTEXT, PTSZ,                                         \
    (CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h, CUstream i,     \
    void **j), (a, b, c, d, e, f, g, h, i, j))

// capture of streams
#define KL_SIM_CAPTURE_CALLS(X)                                                                                        \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, CONTEXT, PTSZ, (CUstream a, CUstreamCaptureMode b), (a, b))  \
  X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, CONTEXT, PTSZ,                                    \
    (CUstream a, CUgraph b, const CUgraphNode *c, const CUgraphEdgeData *d, size_t e, CUstreamCaptureMode f), (a, b,   \
    c, d, e, f))                                                                                                       \
  X(cuStreamEndCapture, cuStreamEndCapture, 10000, CONTEXT, PTSZ, (CUstream a, CUgraph *b), (a, b))                    \
  X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, CONTEXT, PTSZ, (CUstream a, CUstreamCaptureStatus *b), (a, b))    \
  X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, CONTEXT, PTSZ,                                              \
    (CUstream a, CUstreamCaptureStatus *b, cuuint64_t *c), (a, b, c))                                                  \
  X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030, CONTEXT, PTSZ,                                           \
    (CUstream a, CUstreamCaptureStatus *b, cuuint64_t *c, CUgraph *d, const CUgraphNode **e, size_t *f), (a, b, c,     \
    d, e, f))                                                                                                          \
  X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030, CONTEXT, PTSZ,                                           \
    (CUstream a, CUstreamCaptureStatus *b, cuuint64_t *c, CUgraph *d, const CUgraphNode **e, const CUgraphEdgeData     \
    **f, size_t *g), (a, b, c, d, e, f, g))                                                                            \
  X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 11030, CONTEXT, PTSZ,                        \
    (CUstream a, CUgraphNode *b, size_t c, unsigned d), (a, b, c, d))                                                  \
  X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2, 12030, CONTEXT, PTSZ,                     \
    (CUstream a, CUgraphNode *b, const CUgraphEdgeData *c, size_t d, unsigned e), (a, b, c, d, e))                     \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, INIT, PLAIN,                          \
    (CUstreamCaptureMode *a), (a))

// graphs
#define KL_SIM_GRAPH_CALLS(X)                                                                                          \
  X(cuGraphCreate, cuGraphCreate, 10000, INIT, PLAIN, (CUgraph *a, unsigned b), (a, b))                                \
  X(cuGraphDestroy, cuGraphDestroy, 10000, INIT, PLAIN, (CUgraph a), (a))                                              \
  X(cuGraphClone, cuGraphClone, 10000, INIT, PLAIN, (CUgraph *a, CUgraph b), (a, b))                                   \
  X(cuGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, INIT, PLAIN,                                                \
    (CUgraphNode *a, CUgraphNode b, CUgraph c), (a, b, c))                                                             \
  X(cuGraphNodeGetType, cuGraphNodeGetType, 10000, INIT, PLAIN, (CUgraphNode a, CUgraphNodeType *b), (a, b))           \
  X(cuGraphGetNodes, cuGraphGetNodes, 10000, INIT, PLAIN, (CUgraph a, CUgraphNode *b, size_t *c), (a, b, c))           \
  X(cuGraphGetRootNodes, cuGraphGetRootNodes, 10000, INIT, PLAIN, (CUgraph a, CUgraphNode *b, size_t *c), (a, b, c))   \
  X(cuGraphGetEdges, cuGraphGetEdges, 10000, INIT, PLAIN,                                                              \
    (CUgraph a, CUgraphNode *b, CUgraphNode *c, size_t *d), (a, b, c, d))                                              \
  X(cuGraphGetEdges, cuGraphGetEdges_v2, 12030, INIT, PLAIN,                                                           \
    (CUgraph a, CUgraphNode *b, CUgraphNode *c, CUgraphEdgeData *d, size_t *e), (a, b, c, d, e))                       \
  X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, CUgraphNode *b, size_t *c), (a, b, c))                                                             \
  X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, 12030, INIT, PLAIN,                                     \
    (CUgraphNode a, CUgraphNode *b, CUgraphEdgeData *c, size_t *d), (a, b, c, d))                                      \
  X(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes, 10000, INIT, PLAIN,                                    \
    (CUgraphNode a, CUgraphNode *b, size_t *c), (a, b, c))                                                             \
  X(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, 12030, INIT, PLAIN,                                 \
    (CUgraphNode a, CUgraphNode *b, CUgraphEdgeData *c, size_t *d), (a, b, c, d))                                      \
  X(cuGraphAddDependencies, cuGraphAddDependencies, 10000, INIT, PLAIN,                                                \
    (CUgraph a, const CUgraphNode *b, const CUgraphNode *c, size_t d), (a, b, c, d))                                   \
  X(cuGraphAddDependencies, cuGraphAddDependencies_v2, 12030, INIT, PLAIN,                                             \
    (CUgraph a, const CUgraphNode *b, const CUgraphNode *c, const CUgraphEdgeData *d, size_t e), (a, b, c, d, e))      \
  X(cuGraphRemoveDependencies, cuGraphRemoveDependencies, 10000, INIT, PLAIN,                                          \
    (CUgraph a, const CUgraphNode *b, const CUgraphNode *c, size_t d), (a, b, c, d))                                   \
  X(cuGraphRemoveDependencies, cuGraphRemoveDependencies_v2, 12030, INIT, PLAIN,                                       \
    (CUgraph a, const CUgraphNode *b, const CUgraphNode *c, const CUgraphEdgeData *d, size_t e), (a, b, c, d, e))      \
  X(cuGraphDestroyNode, cuGraphDestroyNode, 10000, INIT, PLAIN, (CUgraphNode a), (a))                                  \
  X(cuGraphDebugDotPrint, cuGraphDebugDotPrint, 11030, INIT, PLAIN, (CUgraph a, const char *b, unsigned c), (a, b, c)) \
  X(cuGraphAddKernelNode, cuGraphAddKernelNode, 10000, INIT, PLAIN,                                                    \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_KERNEL_NODE_PARAMS_v1 *e), (a, b, c, d,     \
    e))                                                                                                                \
  X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, 12000, INIT, PLAIN,                                                 \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_KERNEL_NODE_PARAMS *e), (a, b, c, d, e))    \
  X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, CUDA_KERNEL_NODE_PARAMS_v1 *b), (a, b))                                                            \
  X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, 12000, INIT, PLAIN,                                     \
    (CUgraphNode a, CUDA_KERNEL_NODE_PARAMS *b), (a, b))                                                               \
  X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, const CUDA_KERNEL_NODE_PARAMS_v1 *b), (a, b))                                                      \
  X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2, 12000, INIT, PLAIN,                                     \
    (CUgraphNode a, const CUDA_KERNEL_NODE_PARAMS *b), (a, b))                                                         \
  X(cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, 11000, INIT, PLAIN,                                  \
    (CUgraphNode a, CUkernelNodeAttrID b, CUkernelNodeAttrValue *c), (a, b, c))                                        \
  X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, 11000, INIT, PLAIN,                                  \
    (CUgraphNode a, CUkernelNodeAttrID b, const CUkernelNodeAttrValue *c), (a, b, c))                                  \
  X(cuGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, 11000, INIT, PLAIN,                              \
    (CUgraphNode a, CUgraphNode b), (a, b))                                                                            \
  X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000, INIT, PLAIN,                                                    \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_MEMCPY3D *e, CUcontext f), (a, b, c, d,     \
    e, f))                                                                                                             \
  X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, CUDA_MEMCPY3D *b), (a, b))                                                                         \
  X(cuGraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, const CUDA_MEMCPY3D *b), (a, b))                                                                   \
  X(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000, INIT, PLAIN,                                                    \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_MEMSET_NODE_PARAMS *e, CUcontext f), (a,    \
    b, c, d, e, f))                                                                                                    \
  X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, CUDA_MEMSET_NODE_PARAMS *b), (a, b))                                                               \
  X(cuGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, 10000, INIT, PLAIN,                                        \
    (CUgraphNode a, const CUDA_MEMSET_NODE_PARAMS *b), (a, b))                                                         \
  X(cuGraphAddHostNode, cuGraphAddHostNode, 10000, INIT, PLAIN,                                                        \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_HOST_NODE_PARAMS *e), (a, b, c, d, e))      \
  X(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams, 10000, INIT, PLAIN,                                            \
    (CUgraphNode a, CUDA_HOST_NODE_PARAMS *b), (a, b))                                                                 \
  X(cuGraphHostNodeSetParams, cuGraphHostNodeSetParams, 10000, INIT, PLAIN,                                            \
    (CUgraphNode a, const CUDA_HOST_NODE_PARAMS *b), (a, b))                                                           \
  X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, INIT, PLAIN,                                            \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUgraph e), (a, b, c, d, e))                           \
  X(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, INIT, PLAIN,                                  \
    (CUgraphNode a, CUgraph *b), (a, b))                                                                               \
  X(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000, INIT, PLAIN,                                                      \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d), (a, b, c, d))                                         \
  X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010, INIT, PLAIN,                                          \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUevent e), (a, b, c, d, e))                           \
  X(cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, 11010, INIT, PLAIN,                                \
    (CUgraphNode a, CUevent *b), (a, b))                                                                               \
  X(cuGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, 11010, INIT, PLAIN,                                \
    (CUgraphNode a, CUevent b), (a, b))                                                                                \
  X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010, INIT, PLAIN,                                              \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUevent e), (a, b, c, d, e))                           \
  X(cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, 11010, INIT, PLAIN,                                    \
    (CUgraphNode a, CUevent *b), (a, b))                                                                               \
  X(cuGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, 11010, INIT, PLAIN,                                    \
    (CUgraphNode a, CUevent b), (a, b))                                                                                \
  X(cuGraphAddNode, cuGraphAddNode, 12020, INIT, PLAIN,                                                                \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUgraphNodeParams *e), (a, b, c, d, e))                \
  X(cuGraphAddNode, cuGraphAddNode_v2, 12030, INIT, PLAIN,                                                             \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, const CUgraphEdgeData *d, size_t e, CUgraphNodeParams *f), (a,   \
    b, c, d, e, f))                                                                                                    \
  X(cuGraphNodeSetParams, cuGraphNodeSetParams, 12020, INIT, PLAIN, (CUgraphNode a, CUgraphNodeParams *b), (a, b))     \
  X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate, 12030, INIT, PLAIN,                                \
    (CUgraphConditionalHandle *a, CUgraph b, CUcontext c, unsigned d, unsigned e), (a, b, c, d, e))                    \
  X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, INIT, PLAIN,                                                \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUDA_MEM_ALLOC_NODE_PARAMS *e), (a, b, c, d, e))       \
  X(cuGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, INIT, PLAIN,                                    \
    (CUgraphNode a, CUDA_MEM_ALLOC_NODE_PARAMS *b), (a, b))                                                            \
  X(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, INIT, PLAIN,                                                  \
    (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUdeviceptr e), (a, b, c, d, e))                       \
  X(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, INIT, PLAIN,                                      \
    (CUgraphNode a, CUdeviceptr *b), (a, b))                                                                           \
  X(cuGraphRetainUserObject, cuGraphRetainUserObject, 11030, INIT, PLAIN,                                              \
    (CUgraph a, CUuserObject b, unsigned c, unsigned d), (a, b, c, d))                                                 \
  X(cuGraphReleaseUserObject, cuGraphReleaseUserObject, 11030, INIT, PLAIN,                                            \
    (CUgraph a, CUuserObject b, unsigned c), (a, b, c))                                                                \
  X(cuUserObjectCreate, cuUserObjectCreate, 11030, INIT, PLAIN,                                                        \
    (CUuserObject *a, void *b, CUhostFn c, unsigned d, unsigned e), (a, b, c, d, e))                                   \
  X(cuUserObjectRetain, cuUserObjectRetain, 11030, INIT, PLAIN, (CUuserObject a, unsigned b), (a, b))                  \
  X(cuUserObjectRelease, cuUserObjectRelease, 11030, INIT, PLAIN, (CUuserObject a, unsigned b), (a, b))

// graphs made ready
#define KL_SIM_EXEC_CALLS(X)                                                                                           \
  X(cuGraphInstantiate, cuGraphInstantiate_v2, 11000, CONTEXT, PLAIN,                                                  \
    (CUgraphExec *a, CUgraph b, CUgraphNode *c, char *d, size_t e), (a, b, c, d, e))                                   \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, CONTEXT, PLAIN,                                   \
    (CUgraphExec *a, CUgraph b, unsigned long long c), (a, b, c))                                                      \
  X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, CONTEXT, PTSZ,                                  \
    (CUgraphExec *a, CUgraph b, CUDA_GRAPH_INSTANTIATE_PARAMS *c), (a, b, c))                                          \
  X(cuGraphUpload, cuGraphUpload, 11010, CONTEXT, PTSZ, (CUgraphExec a, CUstream b), (a, b))                           \
  X(cuGraphLaunch, cuGraphLaunch, 10000, CONTEXT, PTSZ, (CUgraphExec a, CUstream b), (a, b))                           \
  X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, INIT, PLAIN, (CUgraphExec a), (a))                                  \
  X(cuGraphExecGetFlags, cuGraphExecGetFlags, 12000, INIT, PLAIN, (CUgraphExec a, cuuint64_t *b), (a, b))              \
  X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, INIT, PLAIN,                                                          \
    (CUgraphExec a, CUgraph b, CUgraphNode *c, CUgraphExecUpdateResult *d), (a, b, c, d))                              \
  X(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000, INIT, PLAIN,                                                       \
    (CUgraphExec a, CUgraph b, CUgraphExecUpdateResultInfo *c), (a, b, c))                                             \
  X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, INIT, PLAIN,                                \
    (CUgraphExec a, CUgraphNode b, const CUDA_KERNEL_NODE_PARAMS_v1 *c), (a, b, c))                                    \
  X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, 12000, INIT, PLAIN,                             \
    (CUgraphExec a, CUgraphNode b, const CUDA_KERNEL_NODE_PARAMS *c), (a, b, c))                                       \
  X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, INIT, PLAIN,                                \
    (CUgraphExec a, CUgraphNode b, const CUDA_MEMCPY3D *c, CUcontext d), (a, b, c, d))                                 \
  X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, INIT, PLAIN,                                \
    (CUgraphExec a, CUgraphNode b, const CUDA_MEMSET_NODE_PARAMS *c, CUcontext d), (a, b, c, d))                       \
  X(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, 10020, INIT, PLAIN,                                    \
    (CUgraphExec a, CUgraphNode b, const CUDA_HOST_NODE_PARAMS *c), (a, b, c))                                         \
  X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, INIT, PLAIN,                        \
    (CUgraphExec a, CUgraphNode b, CUgraph c), (a, b, c))                                                              \
  X(cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, 11010, INIT, PLAIN,                        \
    (CUgraphExec a, CUgraphNode b, CUevent c), (a, b, c))                                                              \
  X(cuGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, 11010, INIT, PLAIN,                            \
    (CUgraphExec a, CUgraphNode b, CUevent c), (a, b, c))                                                              \
  X(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, INIT, PLAIN,                                            \
    (CUgraphExec a, CUgraphNode b, CUgraphNodeParams *c), (a, b, c))                                                   \
  X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, INIT, PLAIN,                                                  \
    (CUgraphExec a, CUgraphNode b, unsigned c), (a, b, c))                                                             \
  X(cuGraphNodeGetEnabled, cuGraphNodeGetEnabled, 11060, INIT, PLAIN,                                                  \
    (CUgraphExec a, CUgraphNode b, unsigned *c), (a, b, c))

#define KL_SIM_CALLS(X)                                                                                                \
  KL_SIM_DEVICE_CALLS(X) KL_SIM_CONTEXT_CALLS(X) KL_SIM_MODULE_CALLS(X) KL_SIM_MEMORY_CALLS(X) KL_SIM_COPY_CALLS(X)    \
  KL_SIM_STREAM_CALLS(X) KL_SIM_LAUNCH_CALLS(X) KL_SIM_CAPTURE_CALLS(X) KL_SIM_GRAPH_CALLS(X) KL_SIM_EXEC_CALLS(X)

// Further names of entry points: name, since, symbol.
#define KL_SIM_NAMES(X) X(cuGraphInstantiate, 12000, cuGraphInstantiateWithFlags)
// clang-format on

#endif

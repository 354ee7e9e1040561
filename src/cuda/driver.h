// The rest of the CUDA driver's binary interface: what programs use beside what kiln does (abi.h), and the simulator
// implements. Written from NVIDIA's documentation of the driver API, and held against its header where there is one.
#ifndef KL_CUDA_DRIVER_H
#define KL_CUDA_DRIVER_H

#include "cuda/abi.h"

// clang-format off
// name, value
#define KL_CUDA_RESULTS(X)                                                                                             \
  X(CUDA_ERROR_PROFILER_DISABLED,                                 5)                                                   \
  X(CUDA_ERROR_PROFILER_NOT_INITIALIZED,                          6)                                                   \
  X(CUDA_ERROR_PROFILER_ALREADY_STARTED,                          7)                                                   \
  X(CUDA_ERROR_PROFILER_ALREADY_STOPPED,                          8)                                                   \
  X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,                        36)                                                  \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE,                                46)                                                  \
  X(CUDA_ERROR_DEVICE_NOT_LICENSED,                               102)                                                 \
  X(CUDA_ERROR_CONTEXT_ALREADY_CURRENT,                           202)                                                 \
  X(CUDA_ERROR_MAP_FAILED,                                        205)                                                 \
  X(CUDA_ERROR_UNMAP_FAILED,                                      206)                                                 \
  X(CUDA_ERROR_ARRAY_IS_MAPPED,                                   207)                                                 \
  X(CUDA_ERROR_ALREADY_MAPPED,                                    208)                                                 \
  X(CUDA_ERROR_ALREADY_ACQUIRED,                                  210)                                                 \
  X(CUDA_ERROR_NOT_MAPPED,                                        211)                                                 \
  X(CUDA_ERROR_NOT_MAPPED_AS_ARRAY,                               212)                                                 \
  X(CUDA_ERROR_NOT_MAPPED_AS_POINTER,                             213)                                                 \
  X(CUDA_ERROR_UNSUPPORTED_LIMIT,                                 215)                                                 \
  X(CUDA_ERROR_CONTEXT_ALREADY_IN_USE,                            216)                                                 \
  X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,                           217)                                                 \
  X(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT,                          219)                                                 \
  X(CUDA_ERROR_NVLINK_UNCORRECTABLE,                              220)                                                 \
  X(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,                         224)                                                 \
  X(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,                          225)                                                 \
  X(CUDA_ERROR_CONTAINED,                                         226)                                                 \
  X(CUDA_ERROR_INVALID_SOURCE,                                    300)                                                 \
  X(CUDA_ERROR_FILE_NOT_FOUND,                                    301)                                                 \
  X(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,                    302)                                                 \
  X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,                         303)                                                 \
  X(CUDA_ERROR_OPERATING_SYSTEM,                                  304)                                                 \
  X(CUDA_ERROR_ILLEGAL_STATE,                                     401)                                                 \
  X(CUDA_ERROR_LOSSY_QUERY,                                       402)                                                 \
  X(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING,                     703)                                                 \
  X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,                       704)                                                 \
  X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,                           705)                                                 \
  X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,                            708)                                                 \
  X(CUDA_ERROR_TOO_MANY_PEERS,                                    711)                                                 \
  X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,                    712)                                                 \
  X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,                        713)                                                 \
  X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,                      720)                                                 \
  X(CUDA_ERROR_TENSOR_MEMORY_LEAK,                                721)                                                 \
  X(CUDA_ERROR_NOT_PERMITTED,                                     800)                                                 \
  X(CUDA_ERROR_NOT_SUPPORTED,                                     801)                                                 \
  X(CUDA_ERROR_SYSTEM_NOT_READY,                                  802)                                                 \
  X(CUDA_ERROR_MPS_CONNECTION_FAILED,                             805)                                                 \
  X(CUDA_ERROR_MPS_RPC_FAILURE,                                   806)                                                 \
  X(CUDA_ERROR_MPS_SERVER_NOT_READY,                              807)                                                 \
  X(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,                           808)                                                 \
  X(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,                       809)                                                 \
  X(CUDA_ERROR_MPS_CLIENT_TERMINATED,                             810)                                                 \
  X(CUDA_ERROR_CDP_NOT_SUPPORTED,                                 811)                                                 \
  X(CUDA_ERROR_CDP_VERSION_MISMATCH,                              812)                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE,                              902)                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,                          903)                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,                           904)                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,                          905)                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,                           906)                                                 \
  X(CUDA_ERROR_CAPTURED_EVENT,                                    907)                                                 \
  X(CUDA_ERROR_TIMEOUT,                                           909)                                                 \
  X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,                         910)                                                 \
  X(CUDA_ERROR_EXTERNAL_DEVICE,                                   911)                                                 \
  X(CUDA_ERROR_INVALID_CLUSTER_SIZE,                              912)                                                 \
  X(CUDA_ERROR_FUNCTION_NOT_LOADED,                               913)                                                 \
  X(CUDA_ERROR_INVALID_RESOURCE_TYPE,                             914)                                                 \
  X(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,                    915)                                                 \
  X(CUDA_ERROR_KEY_ROTATION,                                      916)

#define KL_CUDA_DEVICE_ATTRIBUTES(X)                                                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,                    1)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,                          2)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,                          3)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,                          4)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,                           5)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,                           6)                                                   \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,                           7)                                                   \
  X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,                    9)                                                   \
  X(CU_DEVICE_ATTRIBUTE_WARP_SIZE,                                10)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_PITCH,                                11)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,                  12)                                                  \
  X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,                        14)                                                  \
  X(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT,                      17)                                                  \
  X(CU_DEVICE_ATTRIBUTE_INTEGRATED,                               18)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,                      19)                                                  \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,                             20)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH,                  21)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,                  22)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,                 23)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,                  24)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,                 25)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,                  26)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,          27)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,         28)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,         29)                                                  \
  X(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT,                        30)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,                       31)                                                  \
  X(CU_DEVICE_ATTRIBUTE_ECC_ENABLED,                              32)                                                  \
  X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,                               33)                                                  \
  X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,                            34)                                                  \
  X(CU_DEVICE_ATTRIBUTE_TCC_DRIVER,                               35)                                                  \
  X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,                       40)                                                  \
  X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,                       41)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,          42)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,         43)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER,                         44)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,           45)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT,          46)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,        47)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,       48)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,        49)                                                  \
  X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,                            50)                                                  \
  X(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,                  51)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,             52)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,     53)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,    54)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH,                  55)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,                  56)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,                 57)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,                  58)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,                 59)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,                  60)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,          61)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,         62)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,          63)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,         64)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,         65)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,             66)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,     67)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,    68)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,           69)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,           70)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,          71)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,           72)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,        73)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT,       74)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH,        77)                                                  \
  X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,              78)                                                  \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED,                79)                                                  \
  X(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED,                 80)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,                           83)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD,                          84)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID,                 85)                                                  \
  X(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,             86)                                                  \
  X(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,    87)                                                  \
  X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,                   88)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,                89)                                                  \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED,             90)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,  91)                                                  \
  X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,                       95)                                                  \
  X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,          96)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,                  98)                                                  \
  X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,                  99)                                                  \
  X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,100)                                              \
  X(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,      101)                                                 \
  X(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED,     102)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,103)                                               \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED,       104)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED,   105)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,            106)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,            107)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,             108)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,            109)                                                 \
  X(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,         111)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,  110)                                                 \
  X(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,              112)                                                 \
  X(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,        113)                                                 \
  X(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,     114)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,                   115)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,                116)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,     117)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,          118)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,           119)                                                 \
  X(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,                           120)                                                 \
  X(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,    121)                                                 \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,            122)                                                 \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,            123)                                                 \
  X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,                        124)                                                 \
  X(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,                      125)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT,                    126)                                                 \
  X(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,              127)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,             128)                                                 \
  X(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,                129)                                                 \
  X(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG,                              130)                                                 \
  X(CU_DEVICE_ATTRIBUTE_NUMA_ID,                                  131)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,                      132)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MPS_ENABLED,                              133)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,                             134)                                                 \
  X(CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED,                      135)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,            136)                                                 \
  X(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,            137)                                                 \
  X(CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED,                     138)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID,                        139)                                                 \
  X(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID,                     140)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,141)                                             \
  X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,         142)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,        143)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,              144)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 145)                                                 \
  X(CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,             146)                                                 \
  X(CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED,147)

#define KL_CUDA_OPTIONS(X)                                                                                             \
  X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,                      0)                                                   \
  X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,                           2)                                                   \
  X(CU_FUNC_ATTRIBUTE_PTX_VERSION,                                5)                                                   \
  X(CU_FUNC_ATTRIBUTE_BINARY_VERSION,                             6)                                                   \
  X(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,                              7)                                                   \
  X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,           9)                                                   \
  X(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,                   10)                                                  \
  X(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,                     11)                                                  \
  X(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,                    12)                                                  \
  X(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,                     13)                                                  \
  X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,          14)                                                  \
  X(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,       15)                                                  \
  X(CU_JIT_MAX_REGISTERS,                                         0)                                                   \
  X(CU_JIT_THREADS_PER_BLOCK,                                     1)                                                   \
  X(CU_JIT_WALL_TIME,                                             2)                                                   \
  X(CU_JIT_OPTIMIZATION_LEVEL,                                    7)                                                   \
  X(CU_JIT_TARGET_FROM_CUCONTEXT,                                 8)                                                   \
  X(CU_JIT_TARGET,                                                9)                                                   \
  X(CU_JIT_FALLBACK_STRATEGY,                                     10)                                                  \
  X(CU_JIT_GENERATE_DEBUG_INFO,                                   11)                                                  \
  X(CU_JIT_LOG_VERBOSE,                                           12)                                                  \
  X(CU_JIT_GENERATE_LINE_INFO,                                    13)                                                  \
  X(CU_JIT_CACHE_MODE,                                            14)                                                  \
  X(CU_JIT_NEW_SM3X_OPT,                                          15)                                                  \
  X(CU_JIT_FAST_COMPILE,                                          16)                                                  \
  X(CU_JIT_GLOBAL_SYMBOL_NAMES,                                   17)                                                  \
  X(CU_JIT_GLOBAL_SYMBOL_ADDRESSES,                               18)                                                  \
  X(CU_JIT_GLOBAL_SYMBOL_COUNT,                                   19)                                                  \
  X(CU_JIT_LTO,                                                   20)                                                  \
  X(CU_JIT_FTZ,                                                   21)                                                  \
  X(CU_JIT_PREC_DIV,                                              22)                                                  \
  X(CU_JIT_PREC_SQRT,                                             23)                                                  \
  X(CU_JIT_FMA,                                                   24)                                                  \
  X(CU_JIT_REFERENCED_KERNEL_NAMES,                               25)                                                  \
  X(CU_JIT_REFERENCED_KERNEL_COUNT,                               26)                                                  \
  X(CU_JIT_REFERENCED_VARIABLE_NAMES,                             27)                                                  \
  X(CU_JIT_REFERENCED_VARIABLE_COUNT,                             28)                                                  \
  X(CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,                      29)                                                  \
  X(CU_JIT_POSITION_INDEPENDENT_CODE,                             30)                                                  \
  X(CU_JIT_MIN_CTA_PER_SM,                                        31)                                                  \
  X(CU_JIT_MAX_THREADS_PER_BLOCK,                                 32)                                                  \
  X(CU_JIT_OVERRIDE_DIRECTIVE_VALUES,                             33)                                                  \
  X(CU_JIT_SPLIT_COMPILE,                                         34)                                                  \
  X(CU_POINTER_ATTRIBUTE_CONTEXT,                                 1)                                                   \
  X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE,                             2)                                                   \
  X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER,                          3)                                                   \
  X(CU_POINTER_ATTRIBUTE_HOST_POINTER,                            4)                                                   \
  X(CU_POINTER_ATTRIBUTE_P2P_TOKENS,                              5)                                                   \
  X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,                             6)                                                   \
  X(CU_POINTER_ATTRIBUTE_BUFFER_ID,                               7)                                                   \
  X(CU_POINTER_ATTRIBUTE_IS_MANAGED,                              8)                                                   \
  X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,                          9)                                                   \
  X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,              10)                                                  \
  X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,                        11)                                                  \
  X(CU_POINTER_ATTRIBUTE_RANGE_SIZE,                              12)                                                  \
  X(CU_POINTER_ATTRIBUTE_MAPPED,                                  13)                                                  \
  X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,                    14)                                                  \
  X(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,              15)                                                  \
  X(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,                            16)                                                  \
  X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,                          17)                                                  \
  X(CU_POINTER_ATTRIBUTE_MAPPING_SIZE,                            18)                                                  \
  X(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,                       19)                                                  \
  X(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,                         20)                                                  \
  X(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE,                21)                                                  \
  X(CU_LIMIT_STACK_SIZE,                                          0)                                                   \
  X(CU_LIMIT_PRINTF_FIFO_SIZE,                                    1)                                                   \
  X(CU_LIMIT_MALLOC_HEAP_SIZE,                                    2)                                                   \
  X(CU_LIMIT_PERSISTING_L2_CACHE_SIZE,                            6)                                                   \
  X(CU_GRAPH_NODE_TYPE_KERNEL,                                    0)                                                   \
  X(CU_GRAPH_NODE_TYPE_MEMCPY,                                    1)                                                   \
  X(CU_GRAPH_NODE_TYPE_MEMSET,                                    2)                                                   \
  X(CU_GRAPH_NODE_TYPE_HOST,                                      3)                                                   \
  X(CU_GRAPH_NODE_TYPE_GRAPH,                                     4)                                                   \
  X(CU_GRAPH_NODE_TYPE_EMPTY,                                     5)                                                   \
  X(CU_GRAPH_NODE_TYPE_WAIT_EVENT,                                6)                                                   \
  X(CU_GRAPH_NODE_TYPE_EVENT_RECORD,                              7)                                                   \
  X(CU_GRAPH_NODE_TYPE_MEM_ALLOC,                                 10)                                                  \
  X(CU_GRAPH_NODE_TYPE_MEM_FREE,                                  11)                                                  \
  X(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,                              12)                                                  \
  X(CU_GRAPH_NODE_TYPE_CONDITIONAL,                               13)                                                  \
  X(CU_MEMORYTYPE_HOST,                                           1)                                                   \
  X(CU_MEMORYTYPE_DEVICE,                                         2)                                                   \
  X(CU_MEMORYTYPE_ARRAY,                                          3)                                                   \
  X(CU_MEMORYTYPE_UNIFIED,                                        4)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_IGNORE,                                   0)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,                     1)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE,                              2)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,                   3)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,     5)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,                       7)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_PRIORITY,                                 8)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,                      9)                                                   \
  X(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,                          10)                                                  \
  X(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,              11)                                                  \
  X(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,                  12)                                                  \
  X(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,             13)                                                  \
  X(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,         14)                                                  \
  X(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,           16)                                                  \
  X(CU_CTX_SCHED_AUTO,                                            0)                                                   \
  X(CU_CTX_SCHED_SPIN,                                            1)                                                   \
  X(CU_CTX_SCHED_YIELD,                                           2)                                                   \
  X(CU_CTX_SCHED_BLOCKING_SYNC,                                   4)                                                   \
  X(CU_CTX_MAP_HOST,                                              8)                                                   \
  X(CU_CTX_SYNC_MEMOPS,                                           128)                                                 \
  X(CU_EVENT_DEFAULT,                                             0)                                                   \
  X(CU_EVENT_BLOCKING_SYNC,                                       1)                                                   \
  X(CU_EVENT_DISABLE_TIMING,                                      2)                                                   \
  X(CU_EVENT_INTERPROCESS,                                        4)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_SUCCESS,                                 0)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR,                                   1)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,                  2)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,                 3)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED,                  4)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,                5)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,                     6)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,       7)                                                   \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,                8)                                                   \
  X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,              1)                                                   \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,                    2)                                                   \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,            3)                                                   \
  X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,                            4)                                                   \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,                         5)                                                   \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,                            6)                                                   \
  X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT,                             7)                                                   \
  X(CU_MEMPOOL_ATTR_USED_MEM_HIGH,                                8)                                                   \
  X(CU_GET_PROC_ADDRESS_SUCCESS,                                  0)                                                   \
  X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,                         1)                                                   \
  X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,                   2)                                                   \
  X(CU_GRAPH_COND_TYPE_IF,                                        0)                                                   \
  X(CU_GRAPH_COND_TYPE_WHILE,                                     1)                                                   \
  X(CU_GRAPH_COND_TYPE_SWITCH,                                    2)                                                   \
  X(CU_MEM_ATTACH_GLOBAL,                                         1)                                                   \
  X(CU_MEM_ATTACH_HOST,                                           2)                                                   \
  X(CU_MEM_ATTACH_SINGLE,                                         4)                                                   \
  X(CU_STREAM_MEM_OP_WAIT_VALUE_32,                               1)                                                   \
  X(CU_STREAM_MEM_OP_WRITE_VALUE_32,                              2)                                                   \
  X(CU_STREAM_MEM_OP_WAIT_VALUE_64,                               4)                                                   \
  X(CU_STREAM_MEM_OP_WRITE_VALUE_64,                              5)                                                   \
  X(CU_STREAM_MEM_OP_BARRIER,                                     6)                                                   \
  X(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,                         3)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_SUCCESS,                               0)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_ERROR,                                 1)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,                     2)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,          3)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED,           4)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED,             5)                                                   \
  X(CU_STREAM_CAPTURE_MODE_GLOBAL,                                0)                                                   \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,                          1)                                                   \
  X(CU_STREAM_CAPTURE_MODE_RELAXED,                               2)                                                   \
  X(CU_STREAM_CAPTURE_STATUS_ACTIVE,                              1)                                                   \
  X(CU_STREAM_CAPTURE_STATUS_INVALIDATED,                         2)                                                   \
  X(CU_MEM_LOCATION_TYPE_INVALID,                                 0)                                                   \
  X(CU_MEM_LOCATION_TYPE_DEVICE,                                  1)                                                   \
  X(CU_MEM_LOCATION_TYPE_HOST,                                    2)                                                   \
  X(CU_MEM_LOCATION_TYPE_HOST_NUMA,                               3)                                                   \
  X(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,                       4)                                                   \
  X(CU_MEM_ALLOCATION_TYPE_PINNED,                                1)                                                   \
  X(CU_MEM_ALLOCATION_TYPE_MANAGED,                               2)                                                   \
  X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK,                     1)                                                   \
  X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,                     2)                                                   \
  X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,              3)                                                   \
  X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED,              4)                                                   \
  X(CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, 5)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,              1)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,                           2)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,                    4)                                                   \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,                8)                                                   \
  X(CU_STREAM_ADD_CAPTURE_DEPENDENCIES,                           0)                                                   \
  X(CU_STREAM_SET_CAPTURE_DEPENDENCIES,                           1)                                                   \
  X(CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE,            0)                                                   \
  X(CU_LIBRARY_BINARY_IS_PRESERVED,                               1)                                                   \
  X(CU_JIT_INPUT_CUBIN,                                           0)                                                   \
  X(CU_JIT_INPUT_FATBINARY,                                       2)                                                   \
  X(CU_JIT_INPUT_OBJECT,                                          3)                                                   \
  X(CU_JIT_INPUT_LIBRARY,                                         4)                                                   \
  X(CU_JIT_INPUT_NVVM,                                            5)                                                   \
  X(CU_OCCUPANCY_DEFAULT,                                         0)                                                   \
  X(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE,                        1)                                                   \
  X(CU_EVENT_WAIT_DEFAULT,                                        0)                                                   \
  X(CU_EVENT_WAIT_EXTERNAL,                                       1)                                                   \
  X(CU_EVENT_RECORD_DEFAULT,                                      0)                                                   \
  X(CU_EVENT_RECORD_EXTERNAL,                                     1)                                                   \
  X(CU_COMPUTEMODE_DEFAULT,                                       0)                                                   \
  X(CU_COMPUTEMODE_PROHIBITED,                                    2)                                                   \
  X(CU_COMPUTEMODE_EXCLUSIVE_PROCESS,                             3)                                                   \
  X(CU_STREAM_WAIT_VALUE_GEQ,                                     0)                                                   \
  X(CU_STREAM_WAIT_VALUE_EQ,                                      1)                                                   \
  X(CU_STREAM_WAIT_VALUE_AND,                                     2)                                                   \
  X(CU_STREAM_WAIT_VALUE_NOR,                                     3)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,                           1)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,                    2)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,                           3)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,                4)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,               5)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,                 6)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,           7)                                                   \
  X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,             8)                                                   \
  X(CU_MEM_ADVISE_SET_READ_MOSTLY,                                1)                                                   \
  X(CU_MEM_ADVISE_UNSET_READ_MOSTLY,                              2)                                                   \
  X(CU_MEM_ADVISE_SET_PREFERRED_LOCATION,                         3)                                                   \
  X(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,                       4)                                                   \
  X(CU_MEM_ADVISE_SET_ACCESSED_BY,                                5)                                                   \
  X(CU_MEM_ADVISE_UNSET_ACCESSED_BY,                              6)                                                   \
  X(CU_MEM_ACCESS_FLAGS_PROT_NONE,                                0)                                                   \
  X(CU_MEM_ACCESS_FLAGS_PROT_READ,                                1)                                                   \
  X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE,                           3)                                                   \
  X(CU_FUNC_CACHE_PREFER_NONE,                                    0)                                                   \
  X(CU_FUNC_CACHE_PREFER_SHARED,                                  1)                                                   \
  X(CU_FUNC_CACHE_PREFER_L1,                                      2)                                                   \
  X(CU_FUNC_CACHE_PREFER_EQUAL,                                   3)                                                   \
  X(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE,                       0)                                                   \
  X(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE,                     1)                                                   \
  X(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE,                    2)                                                   \
  X(CU_FUNCTION_LOADING_STATE_UNLOADED,                           0)                                                   \
  X(CU_FUNCTION_LOADING_STATE_LOADED,                             1)                                                   \
  X(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC,                            1)                                                   \
  X(CU_GRAPH_USER_OBJECT_MOVE,                                    1)                                                   \
  X(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,                           0)                                                   \
  X(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,                              1)                                                   \
  X(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,                       2)                                                   \
  X(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,                          3)                                                   \
  X(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE,                         0)                                                   \
  X(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,                          1)                                                   \
  X(CU_GET_PROC_ADDRESS_LEGACY_STREAM,                            1)                                                   \
  X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,                2)                                                   \
  X(CU_CTX_LMEM_RESIZE_TO_MAX,                                    16)                                                  \
  X(CU_LOG_LEVEL_ERROR,                                           0)                                                   \
  X(CU_LOG_LEVEL_WARNING,                                         1)                                                   \
  X(CU_MODULE_EAGER_LOADING,                                      1)                                                   \
  X(CU_MODULE_LAZY_LOADING,                                       2)                                                   \
  X(CU_MEMHOSTALLOC_PORTABLE,                                     1)                                                   \
  X(CU_MEMHOSTALLOC_DEVICEMAP,                                    2)                                                   \
  X(CU_MEMHOSTALLOC_WRITECOMBINED,                                4)                                                   \
  X(CU_MEMHOSTREGISTER_READ_ONLY,                                 8)                                                   \
  X(CU_GRAPH_COND_ASSIGN_DEFAULT,                                 1)

#define KL_CUDA_MORE_CONSTANTS(X) KL_CUDA_RESULTS(X) KL_CUDA_DEVICE_ATTRIBUTES(X) KL_CUDA_OPTIONS(X)
// clang-format on

#ifndef KL_CUDA_REAL
enum {
#define X(name, value) name = value,
  KL_CUDA_MORE_CONSTANTS(X)
#undef X
};

// Special values of handles and of `extra` arguments.
#define CU_STREAM_LEGACY               ((CUstream)1)
#define CU_STREAM_PER_THREAD           ((CUstream)2)
#define CU_LAUNCH_PARAM_END            ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)
#define CU_DEVICE_CPU                  ((CUdevice)-1)
#define CU_DEVICE_INVALID              ((CUdevice)-2)

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUpointer_attribute, CUlimit, CUfunc_cache, CUsharedconfig, CUdevice_P2PAttribute, CUmem_range_attribute;
typedef int CUmem_advise, CUmemorytype, CUmoduleLoadingMode, CUfunctionLoadingState;
typedef int CUstreamCaptureMode, CUgraphNodeType, CUgraphConditionalNodeType, CUgraphExecUpdateResult;
typedef int CUgraphInstantiateResult, CUgraphChildGraphNodeOwnership, CUmemAllocationType, CUmemAllocationHandleType;
typedef int CUmemLocationType, CUmemAccess_flags, CUmemPool_attribute, CUdriverProcAddressQueryResult, CUlogLevel;
typedef int CUexecAffinityType, CUstreamBatchMemOpType, CUgraphMem_attribute;
typedef CUlaunchAttributeID CUstreamAttrID, CUkernelNodeAttrID;
typedef CUlaunchAttributeValue CUstreamAttrValue, CUkernelNodeAttrValue;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUlogsCallbackEntry_st *CUlogsCallbackHandle;
typedef unsigned CUlogIterator;
typedef cuuint64_t CUgraphConditionalHandle;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef size_t (*CUoccupancyB2DSize)(int block);
typedef void (*CUlogsCallback)(void *data, CUlogLevel level, char *message, size_t length);

typedef struct CUuuid {
  char bytes[16];
} CUuuid;
typedef struct CUdevprop {
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch;
  int regsPerBlock, clockRate, textureAlign;
} CUdevprop;

typedef struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;
typedef struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
typedef struct CUDA_MEMCPY3D_PEER {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  CUcontext srcContext;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  CUcontext dstContext;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

typedef struct CUmemLocation {
  CUmemLocationType type;
  int id;
} CUmemLocation;
typedef struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;
typedef struct CUmemPoolProps {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUexecAffinityParam {
  CUexecAffinityType type;
  unsigned smCount;
} CUexecAffinityParam;
typedef struct CUctxCreateParams {
  CUexecAffinityParam *execAffinityParams;
  int numExecAffinityParams;
  void *cigParams;
} CUctxCreateParams;

typedef struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;
typedef struct CUDA_MEMSET_NODE_PARAMS_v2 {
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
  CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;
typedef struct CUDA_MEMCPY_NODE_PARAMS {
  int flags, reserved;
  CUcontext copyCtx;
  CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;
typedef struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void *userData;
} CUDA_HOST_NODE_PARAMS;
typedef struct CUDA_CHILD_GRAPH_NODE_PARAMS {
  CUgraph graph;
  CUgraphChildGraphNodeOwnership ownership;
} CUDA_CHILD_GRAPH_NODE_PARAMS;
typedef struct CUDA_EVENT_RECORD_NODE_PARAMS {
  CUevent event;
} CUDA_EVENT_RECORD_NODE_PARAMS;
typedef struct CUDA_EVENT_WAIT_NODE_PARAMS {
  CUevent event;
} CUDA_EVENT_WAIT_NODE_PARAMS;
typedef struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps poolProps;
  const CUmemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct CUDA_MEM_FREE_NODE_PARAMS {
  CUdeviceptr dptr;
} CUDA_MEM_FREE_NODE_PARAMS;
typedef struct CUDA_CONDITIONAL_NODE_PARAMS {
  CUgraphConditionalHandle handle;
  CUgraphConditionalNodeType type;
  unsigned size;
  CUgraph *phGraph_out;
  CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;
typedef struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS memcpy;
    CUDA_MEMSET_NODE_PARAMS_v2 memset;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
    CUDA_EVENT_WAIT_NODE_PARAMS eventWait;
    CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUDA_MEM_FREE_NODE_PARAMS free;
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
} CUgraphNodeParams;
typedef struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
typedef struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  cuuint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef union CUstreamBatchMemOpParams {
  CUstreamBatchMemOpType operation;
  struct {
    CUstreamBatchMemOpType operation;
    CUdeviceptr address;
    cuuint64_t value64; // its lower half where the value has 32 bits
    unsigned flags;
    CUdeviceptr alias;
  } waitValue, writeValue;
  cuuint64_t pad[6];
} CUstreamBatchMemOpParams;
#endif

// type, size; then type, member, offset
// clang-format off
#define KL_CUDA_MORE_SIZES(X)                                                                                          \
  X(CUuuid, 16)                     X(CUdevprop, 56)                  X(CUDA_MEMCPY2D, 128)                            \
  X(CUDA_MEMCPY3D, 200)             X(CUDA_MEMCPY3D_PEER, 200)        X(CUmemLocation, 8)                              \
  X(CUmemAccessDesc, 12)            X(CUmemPoolProps, 88)             X(CUexecAffinityParam, 8)                        \
  X(CUctxCreateParams, 24)          X(CUDA_KERNEL_NODE_PARAMS_v1, 56) X(CUDA_KERNEL_NODE_PARAMS, 72)                   \
  X(CUDA_MEMSET_NODE_PARAMS, 40)    X(CUDA_MEMSET_NODE_PARAMS_v2, 48) X(CUDA_MEMCPY_NODE_PARAMS, 216)                  \
  X(CUDA_HOST_NODE_PARAMS, 16)      X(CUDA_CHILD_GRAPH_NODE_PARAMS, 16) X(CUDA_EVENT_RECORD_NODE_PARAMS, 8)            \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, 120) X(CUDA_MEM_FREE_NODE_PARAMS, 8)  X(CUDA_CONDITIONAL_NODE_PARAMS, 32)              \
  X(CUgraphNodeParams, 256)         X(CUgraphEdgeData, 8)             X(CUgraphExecUpdateResultInfo, 24)               \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, 32) X(CUstreamBatchMemOpParams, 48) X(CUlimit, 4)                                   \
  X(CUpointer_attribute, 4)         X(CUstreamCaptureMode, 4)         X(CUlogIterator, 4)                              \
  X(CUgraphConditionalHandle, 8)    X(CUmemPool_attribute, 4)         X(CUlogLevel, 4)
#define KL_CUDA_MORE_LAYOUT(X)                                                                                         \
  X(CUDA_MEMCPY2D, srcDevice, 32)   X(CUDA_MEMCPY2D, srcPitch, 48)    X(CUDA_MEMCPY2D, dstXInBytes, 56)                \
  X(CUDA_MEMCPY2D, dstDevice, 88)   X(CUDA_MEMCPY2D, WidthInBytes, 112)                                                \
  X(CUDA_MEMCPY3D, srcDevice, 48)   X(CUDA_MEMCPY3D, srcPitch, 72)    X(CUDA_MEMCPY3D, dstXInBytes, 88)                \
  X(CUDA_MEMCPY3D, dstDevice, 136)  X(CUDA_MEMCPY3D, dstHeight, 168)  X(CUDA_MEMCPY3D, WidthInBytes, 176)              \
  X(CUDA_MEMCPY3D_PEER, srcContext, 64) X(CUDA_MEMCPY3D_PEER, dstContext, 152)                                         \
  X(CUmemPoolProps, location, 8)    X(CUmemPoolProps, maxSize, 24)    X(CUctxCreateParams, cigParams, 16)              \
  X(CUDA_KERNEL_NODE_PARAMS, kernelParams, 40) X(CUDA_KERNEL_NODE_PARAMS, kern, 56)                                    \
  X(CUDA_MEMSET_NODE_PARAMS_v2, elementSize, 20) X(CUDA_MEMSET_NODE_PARAMS_v2, ctx, 40)                                \
  X(CUDA_MEMCPY_NODE_PARAMS, copyParams, 16) X(CUDA_CHILD_GRAPH_NODE_PARAMS, ownership, 8)                             \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize, 104) X(CUDA_MEM_ALLOC_NODE_PARAMS, dptr, 112)                                \
  X(CUDA_CONDITIONAL_NODE_PARAMS, size, 12) X(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out, 16)                           \
  X(CUgraphNodeParams, kernel, 16)  X(CUgraphNodeParams, reserved2, 248) X(CUgraphExecUpdateResultInfo, errorFromNode, 16) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out, 24) X(CUstreamBatchMemOpParams, waitValue.value64, 16)                  \
  X(CUstreamBatchMemOpParams, writeValue.flags, 24) X(CUdevprop, SIMDWidth, 36) X(CUgraphEdgeData, type, 2)
// clang-format on

#ifndef KL_CUDA_REAL
#define X(type, size) _Static_assert(sizeof(type) == (size), #type);
KL_CUDA_MORE_SIZES(X)
#undef X
#define X(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member);
KL_CUDA_MORE_LAYOUT(X)
#undef X
#endif

#endif

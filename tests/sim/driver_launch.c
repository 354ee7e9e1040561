// Modules, libraries, functions and launches of the simulator's driver.
#include "cu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- loading
// ----------------------------------------------------------------------------------------------------------

typedef struct image_row {
  const char *image;
  CUresult code;
  const char *found; // in the error log
} image_row;
static const image_row image_rows[] = {
    {PTX_HEAD PTX_STORE, CUDA_SUCCESS, ""},
    {"// a comment\n/* another */ " PTX_HEAD, CUDA_SUCCESS, ""},
    {"", CUDA_ERROR_INVALID_IMAGE, "expected PTX"},
    {"hello, this is text", CUDA_ERROR_INVALID_IMAGE, "expected PTX"},
    {"/* without an end", CUDA_ERROR_INVALID_IMAGE, "expected PTX"},
    {"\177ELF\002\001\001", CUDA_ERROR_NO_BINARY_FOR_GPU, "runs PTX"},
    {"P\355U\272\001\000\020", CUDA_ERROR_NO_BINARY_FOR_GPU, "runs PTX"},
    {".version 9.9\n.target sm_80\n.address_size 64\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "found 9.9"},
    {".version 7.8\n.target sm_100\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "sm_100 cannot run on sm_90"},
    {".version 8.6\n.target sm_100a\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "sm_100a"},
    {".version 8.0\n.target sm_90a\n.address_size 64\n", CUDA_SUCCESS, ""},
    {PTX_HEAD ".visible .entry k( {\n", CUDA_ERROR_INVALID_PTX, "ptx:4"},
    {PTX_HEAD ".visible .entry k() { add.u32 %a, %b, %c; ret; }\n", CUDA_ERROR_INVALID_PTX, "%a"},
};

START_TEST(images) {
  const image_row *r = &image_rows[_i];
  char padded[4096] = "", log[1024], info[1024] = "untouched";
  CUmodule m = (CUmodule)1;
  CUlibrary l = (CUlibrary)1;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE,      CU_JIT_WALL_TIME};
  void *values[] = {log, (void *)sizeof log, info, (void *)sizeof info, (void *)1, NULL};
  cu_begin();
  memcpy(padded, r->image, strlen(r->image));
  SAME(cu.cuModuleLoadDataEx(&m, padded, 6, options, values), r->code);
  ck_assert((m != NULL) == (r->code == CUDA_SUCCESS));
  ck_assert_msg(strstr(log, r->found) != NULL, "%s", log);
  ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
  ck_assert_str_eq(info, "");
  SAME(cu.cuModuleLoadData(&m, padded), r->code);
  CUresult early = r->code == CUDA_ERROR_INVALID_PTX && strstr(r->found, "sm_100") ? CUDA_SUCCESS : r->code;
  SAME(cu.cuLibraryLoadData(&l, padded, NULL, NULL, 0, NULL, NULL, 0), early); // a library knows no device
  ck_assert((l != NULL) == (early == CUDA_SUCCESS));
  if (l) SAME(cu.cuLibraryGetModule(&m, l), r->code);
}
END_TEST

typedef struct log_row {
  unsigned size;
  const char *text;
} log_row;

// As much of the log as there is room for, always with its NUL.
START_TEST(logs_are_cut) {
  CUmodule m;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  cu_begin();
  for (unsigned size = 0; size < 12; size++) {
    char log[16];
    memset(log, '#', sizeof log);
    void *values[] = {(void *)(uintptr_t)size, log};
    SAME(cu.cuModuleLoadDataEx(&m, "no PTX at all", 2, options, values), CUDA_ERROR_INVALID_IMAGE);
    ck_assert_uint_eq((uintptr_t)values[0], size ? size - 1 : 0);
    if (size) ck_assert_uint_eq(strlen(log), size - 1);
    ck_assert_uint_eq(log[size], '#');
  }
  CUjit_option wrong[] = {(CUjit_option)1000};
  void *zero[] = {NULL};
  SAME(cu.cuModuleLoadDataEx(&m, PTX_HEAD, 1, wrong, zero), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuModuleLoadDataEx(&m, PTX_HEAD, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static const char two[] = PTX_HEAD PTX_STORE PTX_ADD
    ".visible .global .align 4 .u32 counter = 41;\n"
    ".const .align 4 .b8 table[12];\n"
    ".visible .entry wide(.param .u8 a, .param .align 16 .b8 b[20], .param .u64 c) { ret; }\n";

START_TEST(what_is_in_a_module) {
  CUfunction f = NULL, all[4] = {0};
  CUmodule m, of;
  CUdeviceptr p;
  size_t size, at, bytes;
  unsigned n, value;
  const char *name;
  cu_begin();
  m = cu_module(two);
  WORKS(cu.cuModuleGetFunctionCount(&n, m));
  ck_assert_uint_eq(n, 3);
  WORKS(cu.cuModuleEnumerateFunctions(all, 4, m));
  ck_assert(all[0] && all[1] && all[2] && !all[3]);
  SAME(cu.cuModuleGetFunction(&f, m, "nothing"), CUDA_ERROR_NOT_FOUND);
  SAME(cu.cuModuleGetFunction(&f, m, ""), CUDA_ERROR_NOT_FOUND);
  WORKS(cu.cuModuleGetFunction(&f, m, "add"));
  ck_assert_ptr_eq(f, all[1]);
  WORKS(cu.cuFuncGetName(&name, f));
  ck_assert_str_eq(name, "add");
  WORKS(cu.cuFuncGetModule(&of, f));
  ck_assert_ptr_eq(of, m);
  WORKS(cu.cuModuleGetGlobal_v2(&p, &size, m, "counter"));
  ck_assert_uint_eq(size, 4);
  WORKS(cu.cuMemcpyDtoH_v2(&value, p, 4));
  ck_assert_uint_eq(value, 41);
  WORKS(cu.cuModuleGetGlobal_v2(NULL, &size, m, "table"));
  ck_assert_uint_eq(size, 12);
  SAME(cu.cuModuleGetGlobal_v2(&p, &size, m, "add"), CUDA_ERROR_NOT_FOUND);
  static const size_t places[][2] = {{0, 1}, {16, 20}, {40, 8}};
  for (size_t i = 0; i < 3; i++) {
    WORKS(cu.cuFuncGetParamInfo(all[2], i, &at, &bytes));
    ck_assert_uint_eq(at, places[i][0]);
    ck_assert_uint_eq(bytes, places[i][1]);
  }
  SAME(cu.cuFuncGetParamInfo(all[2], 3, &at, &bytes), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuModuleUnload(m));
  SAME(cu.cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuFuncGetName(&name, f), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(libraries) {
  CUlibrary l, of;
  CUkernel k, all[3];
  CUfunction f, g;
  CUcontext first, second;
  CUdeviceptr p, q;
  unsigned n, value = 7, found;
  const char *name;
  int v;
  size_t size;
  CUlibraryOption keep[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  cu_begin();
  WORKS(cu.cuCtxGetCurrent(&first));
  WORKS(cu.cuLibraryLoadData(&l, two, NULL, NULL, 0, keep, NULL, 1));
  WORKS(cu.cuLibraryGetKernelCount(&n, l));
  ck_assert_uint_eq(n, 3);
  WORKS(cu.cuLibraryEnumerateKernels(all, 3, l));
  SAME(cu.cuLibraryGetKernel(&k, l, "nothing"), CUDA_ERROR_NOT_FOUND);
  WORKS(cu.cuLibraryGetKernel(&k, l, "add"));
  ck_assert_ptr_eq(k, all[1]);
  WORKS(cu.cuKernelGetName(&name, k));
  ck_assert_str_eq(name, "add");
  WORKS(cu.cuKernelGetLibrary(&of, k));
  ck_assert_ptr_eq(of, l);
  WORKS(cu.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, k, 0));
  WORKS(cu.cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
  ck_assert_int_eq(v, 100000);
  WORKS(cu.cuKernelGetFunction(&f, k));
  WORKS(cu.cuLibraryGetGlobal(&p, &size, l, "counter"));
  void *params[] = {&p, &value};
  WORKS(cu_run((CUfunction)k, NULL, params)); // a kernel is launched like a function
  WORKS(cu.cuMemcpyDtoH_v2(&found, p, 4));
  ck_assert_uint_eq(found, 48);
  // Another context has variables of its own.
  WORKS(cu.cuCtxCreate_v2(&second, 0, 0));
  WORKS(cu.cuKernelGetFunction(&g, k));
  ck_assert_ptr_ne(f, g);
  WORKS(cu.cuLibraryGetGlobal(&q, &size, l, "counter"));
  WORKS(cu.cuMemcpyDtoH_v2(&found, q, 4));
  ck_assert_uint_eq(found, 41);
  params[0] = &q;
  SAME(cu_run(f, NULL, params), CUDA_ERROR_INVALID_HANDLE); // of the other context
  WORKS(cu_run(g, NULL, params));
  WORKS(cu.cuCtxDestroy_v2(second));
  SAME(cu.cuFuncGetName(&name, g), CUDA_ERROR_INVALID_HANDLE);
  WORKS(cu.cuLibraryUnload(l));
  SAME(cu.cuKernelGetName(&name, k), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuFuncGetName(&name, f), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuLibraryUnload(l), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(linking) {
  static const char callee[] = PTX_HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) {\n .reg .b32 %v;\n"
                                        " ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }\n";
  static const char caller[] =
      PTX_HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
               ".visible .entry k(.param .u64 to) {\n .reg .b64 %a; .reg .b32 %v;\n ld.param.u64 %a, [to];\n"
               " { .param .b32 x; .param .b32 r; st.param.b32 [x], 21; call (r), twice, (x); ld.param.b32 %v, [r]; }\n"
               " st.global.u32 [%a], %v; ret; }\n";
  CUlinkState l;
  CUmodule m;
  void *image;
  size_t size;
  unsigned found;
  cu_begin();
  WORKS(cu.cuLinkCreate_v2(0, NULL, NULL, &l));
  SAME(cu.cuLinkComplete(l, &image, &size), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)caller, sizeof caller, "caller", 0, NULL, NULL));
  WORKS(cu.cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)callee, sizeof callee, "callee", 0, NULL, NULL));
  SAME(cu.cuLinkAddData_v2(l, CU_JIT_INPUT_CUBIN, (void *)callee, sizeof callee, "", 0, NULL, NULL),
       CUDA_ERROR_NO_BINARY_FOR_GPU);
  SAME(cu.cuLinkAddFile_v2(l, CU_JIT_INPUT_PTX, "/nowhere", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
  WORKS(cu.cuLinkComplete(l, &image, &size));
  WORKS(cu.cuModuleLoadData(&m, image));
  WORKS(cu.cuLinkDestroy(l));
  SAME(cu.cuLinkDestroy(l), CUDA_ERROR_INVALID_HANDLE);
  CUdeviceptr p = cu_memory(4);
  void *params[] = {&p};
  WORKS(cu_run(cu_function(m, "k"), NULL, params));
  WORKS(cu.cuMemcpyDtoH_v2(&found, p, 4));
  ck_assert_uint_eq(found, 42);
}
END_TEST

START_TEST(files) {
  char name[] = "/tmp/kiln_ptx_XXXXXX";
  int fd = mkstemp(name);
  FILE *f = fdopen(fd, "w");
  CUmodule m;
  CUlibrary l;
  cu_begin();
  for (int i = 0; i < 5000; i++) fprintf(f, "// line %d of a long comment before it\n", i);
  fputs(two, f);
  fclose(f);
  WORKS(cu.cuModuleLoad(&m, name));
  cu_function(m, "store");
  WORKS(cu.cuLibraryLoadFromFile(&l, name, NULL, NULL, 0, NULL, NULL, 0));
  remove(name);
  SAME(cu.cuModuleLoad(&m, name), CUDA_ERROR_FILE_NOT_FOUND);
  SAME(cu.cuModuleLoad(&m, "/"), CUDA_ERROR_FILE_NOT_FOUND);
  SAME(cu.cuModuleLoad(&m, "/dev/null"), CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

// --- functions
// --------------------------------------------------------------------------------------------------------

typedef struct attribute_row {
  CUfunction_attribute which;
  int value; // as it is at first; -1000: any
  int set;
  CUresult code;
} attribute_row;
static const attribute_row attribute_rows[] = {
    {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 256, 1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 400, 1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 12, 1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_PTX_VERSION, 80, 1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, 90, 1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 * 1024 - 400, 227 * 1024 - 400, CUDA_SUCCESS},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 * 1024 - 400, 227 * 1024 - 399, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 * 1024 - 400, -1, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1, 100, CUDA_SUCCESS},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1, 101, CUDA_ERROR_INVALID_VALUE},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0, 1, CUDA_SUCCESS},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 0, 2, CUDA_SUCCESS},
    {CU_FUNC_ATTRIBUTE_NUM_REGS, -1000, 1, CUDA_ERROR_INVALID_VALUE},
};

static const char tuned[] = PTX_HEAD ".const .align 4 .b8 table[12];\n.visible .entry k() .maxntid 256, 1, 1 {\n"
                                     " .shared .align 4 .b8 own[400]; .reg .b32 %a; mov.u32 %a, own; ret; }\n";

START_TEST(attributes_of_functions) {
  const attribute_row *r = &attribute_rows[_i];
  int v = -77;
  cu_begin();
  CUfunction f = cu_function(cu_module(tuned), "k");
  WORKS(cu.cuFuncGetAttribute(&v, r->which, f));
  if (r->value != -1000) ck_assert_int_eq(v, r->value);
  SAME(cu.cuFuncSetAttribute(f, r->which, r->set), r->code);
  WORKS(cu.cuFuncGetAttribute(&v, r->which, f));
  if (r->value != -1000) ck_assert_int_eq(v, r->code ? r->value : r->set);
  SAME(cu.cuFuncGetAttribute(&v, 77, f), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuFuncSetAttribute(f, 77, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

typedef struct occupancy_row {
  const char *gpu;
  int threads;
  size_t shared;
  int blocks;
} occupancy_row;
static const occupancy_row occupancy_rows[] = {
    {"H100", 1024, 0, 2},     {"H100", 128, 0, 16},     {"H100", 32, 0, 32},  {"H100", 33, 0, 32},
    {"H100", 256, 100000, 2}, {"H100", 256, 232449, 0}, {"L40S", 1024, 0, 1}, {"L40S", 32, 0, 24},
    {"L40S", 512, 0, 3},      {"A100", 256, 40000, 4},  {"H100", 1025, 0, 0},
};

START_TEST(occupancy) {
  const occupancy_row *r = &occupancy_rows[_i];
  int n = -1, grid, block;
  size_t room;
  setenv("KILN_SIM_GPU", r->gpu, 1);
  cu_begin();
  CUfunction f = cu_function(cu_module(PTX_HEAD PTX_STORE), "store");
  WORKS(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, r->threads, r->shared));
  ck_assert_int_eq(n, r->blocks);
  SAME(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 2), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, r->shared, 0));
  if (r->shared > 232448) ck_assert_int_eq(block, 0);
  if (!r->shared) ck_assert_int_ge(block, 512);
  if (r->blocks && !r->shared) {
    WORKS(cu.cuOccupancyAvailableDynamicSMemPerBlock(&room, f, r->blocks, r->threads));
    WORKS(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, r->threads, room));
    ck_assert_int_eq(n, r->blocks);
  }
}
END_TEST

// --- launches
// ---------------------------------------------------------------------------------------------------------

typedef struct shape_row {
  unsigned grid[3], block[3], shared;
  CUresult code;
} shape_row;
static const shape_row shape_rows[] = {
    {{1, 1, 1}, {1, 1, 1}, 0, CUDA_SUCCESS},
    {{2, 3, 2}, {8, 4, 2}, 0, CUDA_SUCCESS},
    {{1, 1, 1}, {1, 1, 1}, 48 * 1024, CUDA_SUCCESS},
    {{0, 1, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 0}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {1, 0, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 65536, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{0x80000000u, 1, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {1025, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {32, 33, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {1, 1, 65}, 0, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {1, 1, 1}, 48 * 1024 + 1, CUDA_ERROR_INVALID_VALUE}, // not asked for
};

START_TEST(shapes_of_launches) {
  const shape_row *r = &shape_rows[_i];
  unsigned value = 3, found[12];
  cu_begin();
  CUdeviceptr p = cu_memory(4096);
  CUfunction f = cu_function(cu_module(PTX_HEAD PTX_STORE), "store");
  void *params[] = {&p, &value};
  SAME(cu.cuLaunchKernel(f, r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->shared, NULL,
                         params, NULL),
       r->code);
  WORKS(cu.cuMemcpyDtoH_v2(found, p, sizeof found)); // a refused launch ruins nothing
  ck_assert_uint_eq(found[0], r->code ? 0 : 3);
}
END_TEST

START_TEST(arguments_in_both_forms) {
  unsigned value = 9, found;
  cu_begin();
  CUdeviceptr p = cu_memory(16);
  CUfunction f = cu_function(cu_module(two), "store");
  struct {
    CUdeviceptr to;
    unsigned value;
  } buffer = {p + 4, 11};
  size_t size = sizeof buffer, small = 11;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void *params[] = {&p, &value}, *missing[] = {&p, NULL};
  WORKS(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  WORKS(cu.cuMemcpyDtoH_v2(&found, p + 4, 4));
  ck_assert_uint_eq(found, 11);
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL), CUDA_ERROR_INVALID_VALUE);
  extra[3] = &small;
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
  extra[0] = (void *)9;
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuLaunchKernel((CUfunction)p, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)77, params, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

typedef struct launch_row {
  const char *gpu;
  CUlaunchAttributeID which;
  unsigned value[3], grid;
  CUresult code;
} launch_row;
static const launch_row launch_rows[] = {
    {"H100", CU_LAUNCH_ATTRIBUTE_PRIORITY, {0}, 4, CUDA_SUCCESS},
    {"H100", CU_LAUNCH_ATTRIBUTE_IGNORE, {0}, 4, CUDA_SUCCESS},
    {"H100", CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {1}, 4, CUDA_SUCCESS},
    {"H100", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {2, 1, 1}, 4, CUDA_SUCCESS},
    {"H100", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {3, 1, 1}, 4, CUDA_ERROR_INVALID_CLUSTER_SIZE},
    {"H100", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {16, 1, 1}, 16, CUDA_ERROR_INVALID_CLUSTER_SIZE}, // not portable
    {"H100", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {0, 1, 1}, 4, CUDA_ERROR_INVALID_VALUE},
    {"A100", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {2, 1, 1}, 4, CUDA_ERROR_INVALID_CLUSTER_SIZE},
    {"H100", CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1}, 4, CUDA_SUCCESS},
    {"H100", CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1}, 132 * 32 + 1, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE},
    {"H100", CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, {0}, 4, CUDA_ERROR_NOT_SUPPORTED},
    {"H100", 99, {0}, 4, CUDA_ERROR_INVALID_VALUE},
};

START_TEST(attributes_of_launches) {
  const launch_row *r = &launch_rows[_i];
  unsigned value = 1;
  setenv("KILN_SIM_GPU", r->gpu, 1);
  cu_begin();
  CUdeviceptr p = cu_memory((size_t)4 * r->grid);
  CUlaunchAttribute a = {.id = r->which};
  memcpy(&a.value, r->value, sizeof r->value);
  CUlaunchConfig c = {r->grid, 1, 1, 1, 1, 1, 0, NULL, &a, 1};
  void *params[] = {&p, &value};
  CUfunction f = cu_function(cu_module(PTX_HEAD PTX_STORE), "store");
  SAME(cu.cuLaunchKernelEx(&c, f, params, NULL), r->code);
  c.attrs = NULL;
  SAME(cu.cuLaunchKernelEx(&c, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
  if (r->which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    SAME(cu.cuLaunchCooperativeKernel(f, r->grid, 1, 1, 1, 1, 1, 0, NULL, params), r->code);
  WORKS(cu.cuCtxSynchronize());
}
END_TEST

// Some approximation of e is another one with a seed, from the environment or as configured.
enum { SEED_OF_ENVIRONMENT, SEED_CONFIGURED, SEEDS };

START_TEST(perturbation) {
  static const char ptx[] = PTX_HEAD ".visible .entry power(.param .u64 to) {\n"
                                     "  .reg .b64 %a, %b; .reg .f32 %v; .reg .b32 %i;\n"
                                     "  mov.u32 %i, %tid.x; cvt.rn.f32.u32 %v, %i; mul.f32 %v, %v, 0f3dcccccd;\n"
                                     "  mul.wide.u32 %b, %i, 4; ld.param.u64 %a, [to]; add.u64 %a, %a, %b;\n"
                                     "  ex2.approx.f32 %v, %v; st.global.f32 [%a], %v; ret;\n}\n";
  kl_sim_options seed = {.perturb = 5};
  uint32_t out[32], differ = 0;
  if (_i == SEED_OF_ENVIRONMENT) setenv("KILN_SIM_PERTURB", "5", 1);
  cu_begin();
  if (_i == SEED_CONFIGURED) ck_assert_int_eq(kl_sim_configure(NULL, &seed), KILN_OK);
  CUdeviceptr p = cu_memory(sizeof out);
  void *params[] = {&p};
  WORKS(cu.cuLaunchKernel(cu_function(cu_module(ptx), "power"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
  WORKS(cu.cuMemcpyDtoH_v2(out, p, sizeof out));
  for (int i = 0; i < 32; i++) {
    float nearest = (float)exp2((double)((float)i * 0.1f));
    differ += memcmp(&out[i], &nearest, 4) != 0;
  }
  ck_assert_uint_gt(differ, 10);
}
END_TEST

int main(void) {
  return RUN_TESTS("driver_launch", IN_CHILDREN, {images, KL_COUNT(image_rows)}, {logs_are_cut}, {what_is_in_a_module},
                   {libraries}, {linking}, {files}, {attributes_of_functions, KL_COUNT(attribute_rows)},
                   {occupancy, KL_COUNT(occupancy_rows)}, {shapes_of_launches, KL_COUNT(shape_rows)},
                   {arguments_in_both_forms}, {attributes_of_launches, KL_COUNT(launch_rows)}, {perturbation, SEEDS});
}

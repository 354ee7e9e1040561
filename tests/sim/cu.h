// The simulator's entry points as a program gets them: by name and version. Where KILN_TEST_CUDA names the driver's
// library, that one's, so that a GPU says whether tests expect what it does (tests/on_gpu).
#ifndef KL_TEST_CU_H
#define KL_TEST_CU_H

#include "sim/driver/calls.h"
#include "sim/driver/driver.h"
#include "support/suite.h"

typedef struct cu_table {
#define X(name, symbol, since, need, stream, params, args) CUresult(*symbol) params;
  KL_SIM_CALLS(X)
#undef X
} cu_table;
extern cu_table cu;

// Fills the table.
void cu_open(void);
// As well as that: cuInit, and the primary context of device 0 current.
void cu_begin(void);
// A module from PTX, and its kernel.
CUmodule cu_module(const char *ptx);
CUfunction cu_function(CUmodule m, const char *name);
CUdeviceptr cu_memory(size_t bytes);
// Launches one block of one thread with these arguments on a stream.
CUresult cu_run(CUfunction f, CUstream s, void **params);

#define SAME(call, code) ck_assert_int_eq((call), (code))
#define WORKS(call)      ck_assert_int_eq((call), CUDA_SUCCESS)

#define PTX_HEAD         ".version 7.8\n.target sm_80\n.address_size 64\n"
// store(to, value): *to = value for each thread, at its number.
#define PTX_STORE                                                                                                      \
  ".visible .entry store(.param .u64 to, .param .u32 value) {\n"                                                       \
  "  .reg .b64 %a, %b; .reg .b32 %v, %t, %n, %c;\n"                                                                    \
  "  ld.param.u64 %a, [to]; ld.param.u32 %v, [value];\n"                                                               \
  "  mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %t, %c, %n, %t;\n"                      \
  "  mul.wide.u32 %b, %t, 4; add.u64 %a, %a, %b; st.global.u32 [%a], %v; ret;\n}\n"
// add(to, value): *to += value.
#define PTX_ADD                                                                                                        \
  ".visible .entry add(.param .u64 to, .param .u32 value) {\n"                                                         \
  "  .reg .b64 %a; .reg .b32 %v, %o;\n"                                                                                \
  "  ld.param.u64 %a, [to]; ld.param.u32 %v, [value]; ld.global.u32 %o, [%a]; add.u32 %o, %o, %v;\n"                   \
  "  st.global.u32 [%a], %o; ret;\n}\n"

#endif

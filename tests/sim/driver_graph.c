// Capture and graphs of the simulator's driver. Order shows in the result: x -> x * 3 + value for each node that runs.
#include "cu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char step_ptx[] = PTX_HEAD PTX_STORE
    ".visible .entry step(.param .u64 to, .param .u32 value) {\n"
    "  .reg .b64 %a; .reg .b32 %v, %o;\n"
    "  ld.param.u64 %a, [to]; ld.param.u32 %v, [value]; ld.global.u32 %o, [%a]; mad.lo.u32 %o, %o, 3, %v;\n"
    "  st.global.u32 [%a], %o; ret;\n}\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    // count(at, condition, handle): ++*at; the condition holds while *at < limit
    ".visible .entry count(.param .u64 at, .param .u64 handle, .param .u32 limit) {\n"
    "  .reg .b64 %a, %h; .reg .b32 %v, %l; .reg .pred %p;\n"
    "  ld.param.u64 %a, [at]; ld.param.u64 %h, [handle]; ld.param.u32 %l, [limit];\n"
    "  ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v;\n"
    "  setp.lt.u32 %p, %v, %l; selp.u32 %v, 1, 0, %p;\n"
    "  { .param .b64 h; .param .b32 v; st.param.b64 [h], %h; st.param.b32 [v], %v;\n"
    "    call cudaGraphSetConditional, (h, v); }\n  ret;\n}\n";

static CUstream s;
static CUfunction step, count;
static CUdeviceptr x;

static void begin(void) {
  cu_begin();
  CUmodule m = cu_module(step_ptx);
  step = cu_function(m, "step");
  count = cu_function(m, "count");
  x = cu_memory(64);
  WORKS(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

static void put(CUstream on, unsigned value) {
  void *params[] = {&x, &value};
  WORKS(cu_run(step, on, params));
}

static unsigned get(void) {
  unsigned v;
  WORKS(cu.cuMemcpyDtoH_v2(&v, x, 4));
  return v;
}

static void clear(void) {
  WORKS(cu.cuMemsetD8_v2(x, 0, 64));
}

static size_t nodes_of(CUgraph g) {
  size_t n = 0;
  WORKS(cu.cuGraphGetNodes(g, NULL, &n));
  return n;
}

static CUgraphExec ready(CUgraph g) {
  CUgraphExec e = NULL;
  WORKS(cu.cuGraphInstantiateWithFlags(&e, g, 0));
  return e;
}

static CUgraphNode node(CUgraph g, unsigned value, CUgraphNode *before, size_t n) {
  CUgraphNode made = NULL;
  void *params[] = {&x, &value};
  CUDA_KERNEL_NODE_PARAMS p = {.func = step,
                               .gridDimX = 1,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = 1,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .kernelParams = params};
  WORKS(cu.cuGraphAddKernelNode_v2(&made, g, before, n, &p));
  return made;
}

// --- capture
// ----------------------------------------------------------------------------------------------------------

START_TEST(capture_of_one_stream) {
  CUgraph g = NULL;
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  const CUgraphNode *after;
  size_t n;
  begin();
  SAME(cu.cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
  SAME(cu.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  SAME(cu.cuStreamBeginCapture_v2(s, 3), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  put(s, 1);
  put(s, 2);
  WORKS(cu.cuMemsetD32Async(x + 8, 7, 1, s));
  WORKS(cu.cuMemcpyDtoDAsync_v2(x + 4, x, 4, s));
  WORKS(cu.cuStreamIsCapturing(s, &status));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  WORKS(cu.cuStreamGetCaptureInfo_v2(s, &status, &id, &g, &after, &n));
  ck_assert(id && g && n == 1 && after);
  CUgraphNodeType type;
  WORKS(cu.cuGraphNodeGetType(after[0], &type));
  ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  SAME(cu.cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE); // not while it is captured into
  WORKS(cu.cuStreamEndCapture(s, &g));
  ck_assert_uint_eq(get(), 0); // nothing has happened
  ck_assert_uint_eq(nodes_of(g), 4);
  CUgraphExec e = ready(g);
  WORKS(cu.cuGraphDestroy(g));
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 1 * 3 + 2);
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), (5 * 3 + 1) * 3 + 2);
  unsigned v[3];
  WORKS(cu.cuMemcpyDtoH_v2(v, x, 12));
  ck_assert(v[1] == v[0] && v[2] == 7);
  WORKS(cu.cuGraphExecDestroy(e));
  SAME(cu.cuGraphLaunch(e, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(capture_across_streams) {
  CUgraph g;
  CUstream t;
  CUevent fork, join;
  size_t edges = 0;
  begin();
  WORKS(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
  WORKS(cu.cuEventCreate(&fork, 0));
  WORKS(cu.cuEventCreate(&join, 0));
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  put(s, 1);
  WORKS(cu.cuEventRecord(fork, s));
  SAME(cu.cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
  WORKS(cu.cuStreamWaitEvent(t, fork, 0));
  put(t, 2);
  WORKS(cu.cuEventRecord(join, t));
  WORKS(cu.cuStreamWaitEvent(s, join, 0));
  put(s, 3);
  WORKS(cu.cuStreamEndCapture(s, &g));
  CUstreamCaptureStatus status;
  WORKS(cu.cuStreamIsCapturing(t, &status));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
  WORKS(cu.cuGraphGetEdges(g, NULL, NULL, &edges));
  ck_assert_uint_eq(edges, 3); // 1-2, 1-3, 2-3
  WORKS(cu.cuGraphLaunch(ready(g), t));
  ck_assert_uint_eq(get(), (1 * 3 + 2) * 3 + 3);
  WORKS(cu.cuEventRecord(fork, s)); // it serves again
  WORKS(cu.cuEventSynchronize(fork));
}
END_TEST

START_TEST(what_a_capture_does_not_like) {
  CUgraph g = (CUgraph)1;
  CUstream t, blocking;
  CUevent e, before;
  CUdeviceptr p;
  begin();
  WORKS(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
  WORKS(cu.cuStreamCreate(&blocking, 0));
  WORKS(cu.cuEventCreate(&e, 0));
  WORKS(cu.cuEventCreate(&before, 0));
  WORKS(cu.cuEventRecord(before, t));
  CUresult expected = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUstream on = _i == 6 ? blocking : s;
  WORKS(cu.cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_GLOBAL));
  put(on, 1);
  switch (_i) {
  case 0: SAME(cu.cuMemAlloc_v2(&p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
  case 1: SAME(cu.cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
  case 2: SAME(cu.cuMemcpyDtoH_v2(&p, x, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
  case 3: SAME(cu.cuStreamWaitEvent(s, before, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION); break;
  case 4: SAME(cu.cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
  case 5: // what was forked and not joined
    WORKS(cu.cuEventRecord(e, s));
    WORKS(cu.cuStreamWaitEvent(t, e, 0));
    put(t, 2);
    expected = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    break;
  case 6: // stream 0 would wait for it
    SAME(cu.cuMemsetD8Async(x, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    break;
  case 7: // two captures
    WORKS(cu.cuStreamBeginCapture_v2(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORKS(cu.cuEventRecord(e, t));
    SAME(cu.cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    break;
  case 8: SAME(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE); break;
  }
  SAME(cu.cuStreamEndCapture(on, &g), expected);
  ck_assert_ptr_null(g);
  if (_i == 7) SAME(cu.cuStreamEndCapture(t, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  put(on, 5); // it serves again
  ck_assert_uint_eq(get(), 5);
}
END_TEST

START_TEST(modes_of_capture) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr p;
  CUgraph g;
  begin();
  WORKS(cu.cuThreadExchangeStreamCaptureMode(&mode));
  ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  WORKS(cu.cuMemAlloc_v2(&p, 4)); // allowed now
  WORKS(cu.cuStreamEndCapture(s, &g));
  mode = 7;
  SAME(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  WORKS(cu.cuThreadExchangeStreamCaptureMode(&mode));
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  WORKS(cu.cuMemAlloc_v2(&p, 4));
  WORKS(cu.cuStreamEndCapture(s, &g));
}
END_TEST

static void *end_elsewhere(void *arg) {
  CUcontext c;
  CUgraph g;
  cu.cuDevicePrimaryCtxRetain(&c, 0);
  cu.cuCtxSetCurrent(c);
  *(CUresult *)arg = cu.cuStreamEndCapture(s, &g);
  return NULL;
}

START_TEST(captures_end_where_they_began) {
  pthread_t t;
  CUresult code = CUDA_SUCCESS;
  CUgraph g;
  begin();
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  pthread_create(&t, NULL, end_elsewhere, &code);
  pthread_join(t, NULL);
  SAME(code, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  WORKS(cu.cuStreamEndCapture(s, &g));
  ck_assert_uint_eq(nodes_of(g), 0);
  WORKS(cu.cuGraphLaunch(ready(g), s));
}
END_TEST

// The thread's own default stream can be captured; stream 0 of entry points with that suffix is it.
START_TEST(streams_of_threads) {
  CUgraph g;
  unsigned value = 4;
  begin();
  void *p = NULL;
  WORKS(cu.cuGetProcAddress_v2("cuLaunchKernel", &p, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
  void *params[] = {&x, &value};
  WORKS(cu.cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  WORKS(((__typeof__(cu.cuLaunchKernel))p)(step, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  WORKS(cu.cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
  ck_assert_uint_eq(nodes_of(g), 1);
  ck_assert_uint_eq(get(), 0);
}
END_TEST

START_TEST(capture_into_a_graph) {
  CUgraph g, same;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  CUgraphNode first = node(g, 1, NULL, 0);
  WORKS(cu.cuStreamBeginCaptureToGraph(s, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  put(s, 2);
  WORKS(cu.cuStreamUpdateCaptureDependencies(s, &first, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  put(s, 3);
  WORKS(cu.cuStreamEndCapture(s, &same));
  ck_assert_ptr_eq(g, same);
  size_t edges = 0;
  WORKS(cu.cuGraphGetEdges_v2(g, NULL, NULL, NULL, &edges));
  ck_assert_uint_eq(edges, 3);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  ck_assert_uint_eq(get(), (1 * 3 + 2) * 3 + 3);
}
END_TEST

// --- graphs
// -----------------------------------------------------------------------------------------------------------

START_TEST(order_is_that_of_dependencies) {
  CUgraph g;
  CUgraphNode a, b, c, from[4], to[4];
  size_t n = 4;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  a = node(g, 1, NULL, 0);
  b = node(g, 2, NULL, 0);
  c = node(g, 3, &b, 1);
  WORKS(cu.cuGraphAddDependencies(g, &c, &a, 1));                          // b, c, a
  SAME(cu.cuGraphAddDependencies(g, &a, &b, 1), CUDA_ERROR_INVALID_VALUE); // a ring
  SAME(cu.cuGraphAddDependencies(g, &c, &a, 1), CUDA_ERROR_INVALID_VALUE); // twice
  SAME(cu.cuGraphAddDependencies(g, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphGetEdges(g, from, to, &n));
  ck_assert_uint_eq(n, 2);
  ck_assert(!from[2] && !to[3]);
  CUgraphNode roots[3];
  n = 3;
  WORKS(cu.cuGraphGetRootNodes(g, roots, &n));
  ck_assert(n == 1 && roots[0] == b && !roots[1]);
  n = 1;
  WORKS(cu.cuGraphNodeGetDependentNodes(b, roots, &n));
  ck_assert(n == 1 && roots[0] == c);
  n = 0;
  WORKS(cu.cuGraphNodeGetDependencies(a, NULL, &n));
  ck_assert_uint_eq(n, 1);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  ck_assert_uint_eq(get(), (2 * 3 + 3) * 3 + 1);
  clear();
  WORKS(cu.cuGraphRemoveDependencies(g, &c, &a, 1));
  SAME(cu.cuGraphRemoveDependencies(g, &c, &a, 1), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  ck_assert_uint_eq(get(), (1 * 3 + 2) * 3 + 3); // as they were made
  clear();
  WORKS(cu.cuGraphDestroyNode(b));
  SAME(cu.cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(nodes_of(g), 2);
  CUgraph copy;
  WORKS(cu.cuGraphClone(&copy, g));
  WORKS(cu.cuGraphNodeFindInClone(&b, c, copy));
  ck_assert_ptr_ne(b, c);
  SAME(cu.cuGraphNodeFindInClone(&b, (CUgraphNode)g, copy), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphDestroy(g));
  SAME(cu.cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphLaunch(ready(copy), s));
  ck_assert_uint_eq(get(), 1 * 3 + 3);
}
END_TEST

static int calls;
static void call(void *data) {
  calls += *(int *)data;
}

START_TEST(nodes_of_every_kind) {
  CUgraph g, child;
  CUgraphNode last = NULL, n;
  CUevent e;
  int by = 5;
  unsigned host = 0;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphCreate(&child, 0));
  node(child, 9, NULL, 0);
  CUDA_MEMSET_NODE_PARAMS fill = {.dst = x, .value = 2, .elementSize = 4, .width = 1, .height = 1}, f2;
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = x,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = &host,
                        .WidthInBytes = 4,
                        .Height = 1,
                        .Depth = 1},
                c2;
  CUDA_HOST_NODE_PARAMS fn = {call, &by}, h2;
  CUcontext context;
  WORKS(cu.cuCtxGetCurrent(&context));
  WORKS(cu.cuEventCreate(&e, 0));
  WORKS(cu.cuGraphAddMemsetNode(&last, g, NULL, 0, &fill, context));
  WORKS(cu.cuGraphMemsetNodeGetParams(last, &f2));
  ck_assert_mem_eq(&fill, &f2, sizeof fill);
  WORKS(cu.cuGraphAddChildGraphNode(&n, g, &last, 1, child));
  WORKS(cu.cuGraphDestroy(child)); // it was copied
  CUgraph inner;
  WORKS(cu.cuGraphChildGraphNodeGetGraph(n, &inner));
  SAME(cu.cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphAddEmptyNode(&last, g, &n, 1));
  WORKS(cu.cuGraphAddHostNode(&n, g, &last, 1, &fn));
  WORKS(cu.cuGraphHostNodeGetParams(n, &h2));
  ck_assert(h2.fn == call && h2.userData == &by);
  WORKS(cu.cuGraphAddEventRecordNode(&last, g, &n, 1, e));
  WORKS(cu.cuGraphAddEventWaitNode(&n, g, &last, 1, e));
  CUevent found;
  WORKS(cu.cuGraphEventWaitNodeGetEvent(n, &found));
  ck_assert_ptr_eq(found, e);
  SAME(cu.cuGraphEventRecordNodeGetEvent(n, &found), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphAddMemcpyNode(&last, g, &n, 1, &copy, context));
  WORKS(cu.cuGraphMemcpyNodeGetParams(last, &c2));
  ck_assert(c2.dstHost == &host && c2.WidthInBytes == 4);
  SAME(cu.cuGraphMemsetNodeGetParams(last, &f2), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode twice[] = {n, n};
  SAME(cu.cuGraphAddEmptyNode(&n, g, twice, 2), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  ck_assert(host == 2 * 3 + 9 && calls == 5);
  WORKS(cu.cuEventQuery(e));
}
END_TEST

START_TEST(parameters_are_copied_and_changed) {
  CUgraph g;
  CUgraphNode a;
  CUDA_KERNEL_NODE_PARAMS p;
  unsigned value = 8, enabled = 9;
  CUlaunchAttributeValue v = {.priority = -3}, back;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  a = node(g, 4, NULL, 0); // its arguments are gone by now
  CUgraphExec e = ready(g);
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 4);
  WORKS(cu.cuGraphKernelNodeGetParams_v2(a, &p));
  ck_assert(p.func == step && p.gridDimX == 1 && *(unsigned *)p.kernelParams[1] == 4);
  void *params[] = {&x, &value};
  p.kernelParams = params;
  WORKS(cu.cuGraphExecKernelNodeSetParams_v2(e, a, &p));
  clear();
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 8);
  clear();
  WORKS(cu.cuGraphLaunch(ready(g), s)); // the graph has not changed
  ck_assert_uint_eq(get(), 4);
  WORKS(cu.cuGraphKernelNodeSetParams_v2(a, &p));
  p.gridDimX = 0;
  SAME(cu.cuGraphKernelNodeSetParams_v2(a, &p), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuGraphExecKernelNodeSetParams_v2(e, (CUgraphNode)g, &p), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  WORKS(cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
  ck_assert_int_eq(back.priority, -3);
  WORKS(cu.cuGraphNodeSetEnabled(e, a, 0));
  WORKS(cu.cuGraphNodeGetEnabled(e, a, &enabled));
  ck_assert_uint_eq(enabled, 0);
  clear();
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 0);
}
END_TEST

START_TEST(updates_of_whole_graphs) {
  CUgraph g, h, other;
  CUgraphExecUpdateResultInfo info;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphCreate(&h, 0));
  WORKS(cu.cuGraphCreate(&other, 0));
  CUgraphNode a = node(g, 1, NULL, 0), b = node(h, 5, NULL, 0), c = node(other, 1, NULL, 0), d;
  node(g, 2, &a, 1);
  node(h, 6, &b, 1);
  WORKS(cu.cuGraphAddEmptyNode(&d, other, &c, 1));
  CUgraphExec e = ready(g);
  WORKS(cu.cuGraphExecUpdate_v2(e, h, &info));
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 5 * 3 + 6);
  SAME(cu.cuGraphExecUpdate_v2(e, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == d);
  node(h, 7, NULL, 0);
  SAME(cu.cuGraphExecUpdate_v2(e, h, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  clear();
  WORKS(cu.cuGraphLaunch(e, s)); // as before
  ck_assert_uint_eq(get(), 5 * 3 + 6);
}
END_TEST

// --- conditions
// -------------------------------------------------------------------------------------------------------

static CUgraph conditional(CUgraph g, CUgraphConditionalHandle h, CUgraphConditionalNodeType type, unsigned size,
                           CUgraph *bodies) {
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                         .conditional = {.handle = h, .type = type, .size = size}};
  CUgraphNode n;
  WORKS(cu.cuGraphAddNode(&n, g, NULL, 0, &p));
  memcpy(bodies, p.conditional.phGraph_out, size * sizeof *bodies);
  return bodies[0];
}

typedef struct condition_row {
  CUgraphConditionalNodeType type;
  unsigned size, value, expected;
} condition_row;
static const condition_row condition_rows[] = {
    {CU_GRAPH_COND_TYPE_IF, 1, 1, 10},    {CU_GRAPH_COND_TYPE_IF, 1, 0, 0},      {CU_GRAPH_COND_TYPE_IF, 2, 7, 10},
    {CU_GRAPH_COND_TYPE_IF, 2, 0, 20},    {CU_GRAPH_COND_TYPE_SWITCH, 3, 0, 10}, {CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 30},
    {CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 0}, {CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0},
};

START_TEST(conditions) {
  const condition_row *r = &condition_rows[_i];
  CUgraph g, bodies[3];
  CUgraphConditionalHandle h;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphConditionalHandleCreate(&h, g, NULL, r->value, CU_GRAPH_COND_ASSIGN_DEFAULT));
  conditional(g, h, r->type, r->size, bodies);
  for (unsigned i = 0; i < r->size; i++) node(bodies[i], 10 * (i + 1), NULL, 0);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  ck_assert_uint_eq(get(), r->expected);
}
END_TEST

START_TEST(a_kernel_ends_a_loop) {
  CUgraph g, body;
  CUgraphConditionalHandle h;
  unsigned limit = 7;
  CUgraphNode n;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphConditionalHandleCreate(&h, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  conditional(g, h, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
  void *params[] = {&x, &h, &limit};
  CUDA_KERNEL_NODE_PARAMS p = {.func = count,
                               .gridDimX = 1,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = 1,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .kernelParams = params};
  WORKS(cu.cuGraphAddKernelNode_v2(&n, body, NULL, 0, &p));
  CUgraphExec e = ready(g);
  WORKS(cu.cuGraphDestroy(g));
  WORKS(cu.cuGraphLaunch(e, s));
  ck_assert_uint_eq(get(), 7);
  WORKS(cu.cuGraphLaunch(e, s)); // the value is 1 again at first
  ck_assert_uint_eq(get(), 8);
}
END_TEST

START_TEST(an_endless_loop) {
  CUgraph g, body;
  CUgraphConditionalHandle h;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphConditionalHandleCreate(&h, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  conditional(g, h, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
  WORKS(cu.cuGraphLaunch(ready(g), s));
  SAME(cu.cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_TIMEOUT);
}
END_TEST

// --- what is gone
// -----------------------------------------------------------------------------------------------------

// A graph outlives what its nodes name: they are refused, and nothing else happens.
START_TEST(nodes_of_what_is_gone) {
  CUgraph g;
  CUmodule m;
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  node(g, 1, NULL, 0);
  CUgraphExec e = ready(g);
  WORKS(cu.cuFuncGetModule(&m, step));
  WORKS(cu.cuModuleUnload(m));
  SAME(cu.cuGraphLaunch(e, s), CUDA_ERROR_INVALID_HANDLE);
  CUcontext c;
  WORKS(cu.cuDevicePrimaryCtxReset_v2(0));
  WORKS(cu.cuDevicePrimaryCtxRetain(&c, 0));
  WORKS(cu.cuCtxSetCurrent(c));
  SAME(cu.cuGraphLaunch(e, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  WORKS(cu.cuGraphExecDestroy(e));
}
END_TEST

static CUgraphExec running;
static CUresult ended;
static void *end_exec(void *arg) {
  ended = cu.cuGraphExecDestroy(running);
  return NULL;
}
static void end_it_meanwhile(void *data) {
  pthread_t t;
  pthread_create(&t, NULL, end_exec, NULL);
  pthread_join(t, NULL);
}

START_TEST(an_exec_that_is_ended_while_it_runs) {
  CUgraph g;
  CUgraphNode n, m;
  CUDA_HOST_NODE_PARAMS fn = {end_it_meanwhile, NULL};
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphAddHostNode(&n, g, NULL, 0, &fn));
  m = node(g, 6, &n, 1);
  (void)m;
  running = ready(g);
  WORKS(cu.cuGraphLaunch(running, s));
  WORKS(ended);
  ck_assert_uint_eq(get(), 6);
  SAME(cu.cuGraphLaunch(running, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(user_objects) {
  CUgraph g;
  CUuserObject u;
  int by = 1;
  begin();
  SAME(cu.cuUserObjectCreate(&u, &by, call, 1, 0), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuUserObjectCreate(&u, &by, call, 2, 1));
  WORKS(cu.cuGraphCreate(&g, 0));
  WORKS(cu.cuGraphRetainUserObject(g, u, 1, 1)); // moved
  WORKS(cu.cuUserObjectRelease(u, 1));
  ck_assert_int_eq(calls, 0);
  WORKS(cu.cuGraphDestroy(g));
  ck_assert_int_eq(calls, 1);
  SAME(cu.cuUserObjectRetain(u, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_in_graphs) {
  CUgraph g;
  CUdeviceptr p;
  unsigned found = 0, value = 4;
  begin();
  WORKS(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  WORKS(cu.cuMemAllocAsync(&p, 4, s));
  void *params[] = {&p, &value};
  WORKS(cu_run(step, s, params));
  WORKS(cu.cuMemcpyDtoDAsync_v2(x, p, 4, s));
  WORKS(cu.cuMemFreeAsync(p, s));
  WORKS(cu.cuStreamEndCapture(s, &g));
  CUgraphExec e = ready(g);
  for (int i = 0; i < 3; i++) {
    clear();
    WORKS(cu.cuGraphLaunch(e, s));
    WORKS(cu.cuMemcpyDtoH_v2(&found, x, 4));
    ck_assert_uint_eq(found % 3, 1); // whatever the memory held
  }
}
END_TEST

START_TEST(graphs_as_pictures) {
  CUgraph g;
  char name[] = "/tmp/kiln_dot_XXXXXX", text[512] = "";
  int fd = mkstemp(name);
  begin();
  WORKS(cu.cuGraphCreate(&g, 0));
  CUgraphNode a = node(g, 1, NULL, 0);
  node(g, 2, &a, 1);
  WORKS(cu.cuGraphDebugDotPrint(g, name, 0));
  ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
  ck_assert(strstr(text, "digraph") && strstr(text, "step") && strstr(text, "n0 -> n1"));
  remove(name);
  SAME(cu.cuGraphDebugDotPrint(g, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM);
}
END_TEST

int main(void) {
  return RUN_TESTS("driver_graph", IN_CHILDREN, {capture_of_one_stream}, {capture_across_streams},
                   {what_a_capture_does_not_like, 9}, {modes_of_capture}, {captures_end_where_they_began},
                   {streams_of_threads}, {capture_into_a_graph}, {order_is_that_of_dependencies}, {nodes_of_every_kind},
                   {parameters_are_copied_and_changed}, {updates_of_whole_graphs},
                   {conditions, KL_COUNT(condition_rows)}, {a_kernel_ends_a_loop}, {an_endless_loop},
                   {nodes_of_what_is_gone}, {an_exec_that_is_ended_while_it_runs}, {user_objects}, {memory_in_graphs},
                   {graphs_as_pictures});
}

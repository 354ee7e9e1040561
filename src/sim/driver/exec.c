// Graphs made ready: a copy, whose nodes can be given new parameters.

#include "sim/driver/impl.h"

enum {
  INSTANTIATE_FLAGS = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
};

static CUresult exec_check(CUgraphExec handle, kl_cu_exec **out) {
  *out = kl_object_find(handle, KL_EXEC);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
  kl_cu_graph *g;
  KL_GIVEN(out);
  *out = NULL;
  KL_RESULT(kl_graph_check(handle, &g));
  if (flags & ~(unsigned long long)INSTANTIATE_FLAGS || g->inner || g->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  kl_cu_exec *e = kl_object_new(KL_EXEC, sizeof *e, NULL);
  kl_cu_graph *copy = e ? kl_graph_copy(g) : NULL;
  if (!copy) {
    if (e) kl_object_delete(e, sizeof *e);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  copy->inner = true;
  e->graph = copy;
  e->flags = flags;
  *out = KL_HANDLE(CUgraphExec, e);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphInstantiate_v2(CUgraphExec *out, CUgraph handle, CUgraphNode *failed, char *log, size_t size) {
  if (failed) *failed = NULL;
  if (log && size) *log = 0;
  return kl_cuGraphInstantiateWithFlags(out, handle, 0);
}

CUresult kl_cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
  KL_GIVEN(p);
  CUresult code = kl_cuGraphInstantiateWithFlags(out, handle, p->flags);
  p->hErrNode_out = NULL;
  p->result_out = code ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return code;
}

static void exec_delete(kl_cu_exec *e) {
  kl_graph_delete(e->graph);
  kl_object_delete(e, sizeof *e);
}

CUresult kl_cuGraphExecDestroy(CUgraphExec handle) {
  kl_cu_exec *e;
  KL_RESULT(exec_check(handle, &e));
  if (e->ended) return CUDA_ERROR_INVALID_VALUE;
  e->ended = true;
  if (!e->running) exec_delete(e);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *out) {
  kl_cu_exec *e;
  KL_GIVEN(out);
  KL_RESULT(exec_check(handle, &e));
  *out = e->flags;
  return CUDA_SUCCESS;
}

// --- launching ------------------------------------------------------------------------------------------------------

static void assign_defaults(const kl_cu_graph *g) {
  for (size_t i = 0; i < g->values.n; i++) {
    char *at = g->values.p[i].flags ? kl_memory_at(&kl_sim.memory, g->values.p[i].handle, sizeof(unsigned)) : NULL;
    if (at) memcpy(at, &g->values.p[i].initial, sizeof(unsigned));
  }
  for (size_t i = 0; i < g->nodes.n; i++) {
    const kl_work *w = &g->nodes.p[i]->work;
    if (w->type == CU_GRAPH_NODE_TYPE_GRAPH) assign_defaults(w->child);
    for (unsigned k = 0; w->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < w->conditional.size; k++)
      assign_defaults(w->conditional.bodies[k]);
  }
}

CUresult kl_cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  kl_cu_exec *e;
  kl_cu_stream *s;
  KL_RESULT(exec_check(handle, &e));
  KL_RESULT(kl_stream_check(stream, &s));
  if (s->capture) {
    kl_work w = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = kl_graph_copy(e->graph)};
    if (!w.child) return CUDA_ERROR_OUT_OF_MEMORY;
    w.child->inner = true;
    return kl_submit(s, &w);
  }
  e->running++;
  assign_defaults(e->graph);
  CUresult code = kl_graph_perform(e->graph);
  if (--e->running == 0 && e->ended) exec_delete(e);
  return code;
}

CUresult kl_cuGraphUpload(CUgraphExec handle, CUstream stream) {
  kl_cu_exec *e;
  kl_cu_stream *s;
  KL_RESULT(exec_check(handle, &e));
  return kl_stream_check(stream, &s);
}

// --- new parameters -------------------------------------------------------------------------------------------------

// The exec's copy of a node of the graph that it was made from.
static CUresult copy_of(CUgraphExec handle, CUgraphNode original, kl_cu_node **out) {
  kl_cu_exec *e;
  KL_RESULT(exec_check(handle, &e));
  if (e->running) return CUDA_ERROR_INVALID_VALUE;
  *out = kl_graph_find_copy(e->graph, (uint64_t)(uintptr_t)original);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set(CUgraphExec handle, CUgraphNode original, const CUgraphNodeParams *p) {
  kl_cu_node *n;
  KL_RESULT(copy_of(handle, original, &n));
  return kl_node_set(n, p);
}

CUresult kl_cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams *p) {
  KL_GIVEN(p);
  return set(handle, node, p);
}

CUresult kl_cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
  kl_cu_node *n;
  KL_GIVEN(p);
  KL_RESULT(copy_of(handle, node, &n));
  return kl_cuGraphKernelNodeSetParams_v2(KL_HANDLE(CUgraphNode, n), p);
}
CUresult kl_cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  kl_cu_node *n;
  KL_GIVEN(p);
  KL_RESULT(copy_of(handle, node, &n));
  return kl_cuGraphKernelNodeSetParams(KL_HANDLE(CUgraphNode, n), p);
}

CUresult kl_cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D *c, CUcontext cx) {
  KL_GIVEN(c);
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  p.memcpy = (CUDA_MEMCPY_NODE_PARAMS){.copyCtx = cx, .copyParams = *c};
  return set(handle, node, &p);
}

CUresult kl_cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *f,
                                           CUcontext cx) {
  KL_GIVEN(f);
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  p.memset = (CUDA_MEMSET_NODE_PARAMS_v2){f->dst, f->pitch, f->value, f->elementSize, f->width, f->height, cx};
  return set(handle, node, &p);
}

CUresult kl_cuGraphExecHostNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *h) {
  KL_GIVEN(h);
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *h};
  return set(handle, node, &p);
}

CUresult kl_cuGraphExecEventRecordNodeSetEvent(CUgraphExec handle, CUgraphNode node, CUevent e) {
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {e}};
  return set(handle, node, &p);
}
CUresult kl_cuGraphExecEventWaitNodeSetEvent(CUgraphExec handle, CUgraphNode node, CUevent e) {
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {e}};
  return set(handle, node, &p);
}

CUresult kl_cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  kl_cu_node *n;
  KL_RESULT(copy_of(handle, node, &n));
  if (n->work.type != CU_GRAPH_NODE_TYPE_KERNEL && n->work.type != CU_GRAPH_NODE_TYPE_MEMCPY &&
      n->work.type != CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  n->disabled = !enabled;
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(copy_of(handle, node, &n));
  *out = !n->disabled;
  return CUDA_SUCCESS;
}

// --- the parameters of a whole graph --------------------------------------------------------------------------------

typedef struct update {
  CUgraphExecUpdateResult result;
  const kl_cu_node *node;
} update;

// Do the nodes, in order of their making, have the same types and dependencies?
static update compare(kl_cu_graph *now, kl_cu_graph *next) {
  size_t n = now->nodes.n;
  if (n != next->nodes.n) return (update){CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL};
  for (size_t i = 0; i < n; i++) now->nodes.p[i]->mark = next->nodes.p[i]->mark = (uint32_t)i;
  for (size_t i = 0; i < n; i++) {
    const kl_cu_node *a = now->nodes.p[i], *b = next->nodes.p[i];
    if (a->work.type != b->work.type) return (update){CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b};
    if (a->before.n != b->before.n) return (update){CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b};
    for (size_t k = 0; k < a->before.n; k++)
      if (a->before.p[k]->mark != b->before.p[k]->mark) return (update){CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b};
    if (a->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      update in = compare(a->work.child, b->work.child);
      if (in.result) return in;
    }
    if (a->work.type == CU_GRAPH_NODE_TYPE_KERNEL && a->work.context != b->work.context)
      return (update){CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, b};
    if (a->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL || a->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        a->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return (update){CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b};
  }
  return (update){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL};
}

// The copy stays one of the first graph's nodes, by which it is asked for.
static void take_over(kl_cu_graph *now, kl_cu_graph *next) {
  for (size_t i = 0; i < now->nodes.n; i++) {
    kl_cu_node *a = now->nodes.p[i], *b = next->nodes.p[i];
    if (a->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      take_over(a->work.child, b->work.child);
      continue;
    }
    kl_work w = a->work;
    a->work = b->work;
    b->work = w;
  }
}

CUresult kl_cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  kl_cu_exec *e;
  kl_cu_graph *g;
  KL_GIVEN(info);
  *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
  KL_RESULT(exec_check(handle, &e));
  KL_RESULT(kl_graph_check(graph, &g));
  if (e->running) return CUDA_ERROR_INVALID_VALUE;
  update u = compare(e->graph, g);
  info->result = u.result;
  info->errorNode = u.node ? KL_HANDLE(CUgraphNode, u.node) : NULL;
  if (u.result) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  kl_cu_graph *copy = kl_graph_copy(g);
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  take_over(e->graph, copy);
  kl_graph_delete(copy);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *failed, CUgraphExecUpdateResult *result) {
  CUgraphExecUpdateResultInfo info;
  KL_GIVEN(result);
  CUresult code = kl_cuGraphExecUpdate_v2(handle, graph, &info);
  if (failed) *failed = info.errorNode;
  *result = info.result;
  return code;
}

CUresult kl_cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraph graph) {
  kl_cu_node *n;
  kl_cu_graph *g;
  KL_RESULT(copy_of(handle, node, &n));
  KL_RESULT(kl_graph_check(graph, &g));
  if (n->work.type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  if (compare(n->work.child, g).result) return CUDA_ERROR_INVALID_VALUE;
  kl_cu_graph *copy = kl_graph_copy(g);
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  take_over(n->work.child, copy);
  kl_graph_delete(copy);
  return CUDA_SUCCESS;
}

// Nodes of graphs by kind: parameters to work and back.

#include "sim/driver/impl.h"

// --- from parameters to work ----------------------------------------------------------------------------------------

static uint64_t context_of(CUcontext handle) {
  kl_cu_context *c = handle ? kl_object_find(handle, KL_CONTEXT) : kl_current();
  return c ? c->o.handle : 0;
}

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, kl_work *out) {
  CUlaunchConfig c = {p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                      p->blockDimZ, p->sharedMemBytes, NULL,        NULL,         0};
  if (!p->func && !p->kern) return CUDA_ERROR_INVALID_VALUE;
  if (!p->func && !kl_current()) return CUDA_ERROR_INVALID_CONTEXT;
  return kl_kernel_work_make(p->func ? p->func : (CUfunction)p->kern, &c, p->kernelParams, p->extra, out);
}

static CUresult conditional_work(const CUDA_CONDITIONAL_NODE_PARAMS *p, kl_work *out) {
  unsigned most = p->type == CU_GRAPH_COND_TYPE_IF ? 2 : p->type == CU_GRAPH_COND_TYPE_WHILE ? 1 : 1024;
  if (p->type < CU_GRAPH_COND_TYPE_IF || p->type > CU_GRAPH_COND_TYPE_SWITCH || p->size == 0 || p->size > most)
    return CUDA_ERROR_INVALID_VALUE;
  if (!kl_memory_at(&kl_sim.memory, p->handle, sizeof(unsigned))) return CUDA_ERROR_INVALID_VALUE;
  out->context = context_of(p->ctx);
  if (!out->context) return CUDA_ERROR_INVALID_CONTEXT;
  kl_conditional *c = &out->conditional;
  *c = (kl_conditional){.handle = p->handle, .type = p->type, .size = p->size};
  c->bodies = kl_try_alloc(kl_sim.cx, c->size * sizeof *c->bodies);
  bool whole = c->bodies != NULL;
  for (unsigned i = 0; whole && i < c->size; i++) {
    c->bodies[i] = kl_graph_new();
    whole = c->bodies[i] != NULL;
    if (whole) c->bodies[i]->inner = true;
  }
  out->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if (whole) return CUDA_SUCCESS;
  if (!c->bodies) c->size = 0;
  kl_work_free(out);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult child_work(CUgraph handle, kl_work *out) {
  kl_cu_graph *g;
  KL_RESULT(kl_graph_check(handle, &g));
  out->child = kl_graph_copy(g);
  if (!out->child) return CUDA_ERROR_OUT_OF_MEMORY;
  out->child->inner = true;
  return CUDA_SUCCESS;
}

static CUresult alloc_work(const CUDA_MEM_ALLOC_NODE_PARAMS *p, kl_work *out) {
  kl_cu_context *c = kl_current();
  uint64_t base;
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (p->bytesize == 0 || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_allocate(c, KL_MEM_ASYNC, p->bytesize, 0, NULL, &base));
  kl_allocation_find(base)->of_graph = true;
  out->alloc = *p;
  out->alloc.dptr = base;
  return CUDA_SUCCESS;
}

static CUresult event_work(CUevent handle, kl_work *out) {
  kl_cu_event *e;
  KL_RESULT(kl_event_check(handle, &e));
  out->event = handle;
  out->context = e->o.context->o.handle;
  return CUDA_SUCCESS;
}

CUresult kl_node_work(const CUgraphNodeParams *p, kl_work *out) {
  *out = (kl_work){.type = p->type};
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_work(&p->kernel, out);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    out->copy = p->memcpy.copyParams;
    out->context = context_of(p->memcpy.copyCtx);
    return kl_copy_check(&out->copy);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    out->fill = (CUDA_MEMSET_NODE_PARAMS){p->memset.dst,         p->memset.pitch, p->memset.value,
                                          p->memset.elementSize, p->memset.width, p->memset.height};
    out->context = context_of(p->memset.ctx);
    return kl_fill_check(&out->fill);
  case CU_GRAPH_NODE_TYPE_HOST:
    out->host.fn = p->host.fn;
    out->host.data = p->host.userData;
    return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_GRAPH_NODE_TYPE_GRAPH: return child_work(p->graph.graph, out);
  case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_work(p->eventWait.event, out);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_work(p->eventRecord.event, out);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return alloc_work(&p->alloc, out);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    out->free = p->free.dptr;
    return kl_allocation_find(out->free) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return conditional_work(&p->conditional, out);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_node_set(kl_cu_node *n, const CUgraphNodeParams *p) {
  kl_work w;
  if (p->type != n->work.type) return CUDA_ERROR_INVALID_VALUE;
  if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;
  KL_RESULT(kl_node_work(p, &w));
  kl_work_free(&n->work);
  n->work = w;
  return CUDA_SUCCESS;
}

// --- adding ---------------------------------------------------------------------------------------------------------

static CUresult dependencies(const kl_cu_graph *g, const CUgraphNode *before, size_t n, kl_nodes *out) {
  *out = (kl_nodes){0};
  if (n && !before) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < n; i++) {
    kl_cu_node *d = kl_object_find(before[i], KL_NODE);
    size_t count = out->n;
    if (!d || d->graph != g) return CUDA_ERROR_INVALID_VALUE;
    if (!kl_nodes_add(out, d)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (out->n == count) return CUDA_ERROR_INVALID_VALUE; // twice the same
  }
  return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *before, size_t n, const CUgraphNodeParams *p) {
  kl_cu_graph *g;
  kl_cu_node *node;
  kl_nodes list;
  kl_work w;
  KL_GIVEN(out);
  *out = NULL;
  KL_RESULT(kl_graph_check(handle, &g));
  CUresult code = dependencies(g, before, n, &list);
  if (!code) code = kl_node_work(p, &w);
  if (!code) code = kl_graph_add(g, list.p, list.n, &w, &node);
  if (!code) *out = KL_HANDLE(CUgraphNode, node);
  kl_nodes_free(&list);
  return code;
}

CUresult kl_cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n, CUgraphNodeParams *p) {
  KL_GIVEN(p);
  if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && !p->conditional.phGraph_out && p->conditional.size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(add(out, g, before, n, p));
  kl_cu_node *node = kl_object_find(*out, KL_NODE);
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) p->alloc.dptr = node->work.alloc.dptr;
  if (p->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_SUCCESS;
  kl_conditional *c = &node->work.conditional;
  if (!node->bodies) node->bodies = kl_alloc(kl_sim.cx, c->size * sizeof *node->bodies);
  for (unsigned i = 0; i < c->size; i++) node->bodies[i] = KL_HANDLE(CUgraph, c->bodies[i]);
  p->conditional.phGraph_out = node->bodies;
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *before, const CUgraphEdgeData *edges,
                              size_t n, CUgraphNodeParams *p) {
  return kl_cuGraphAddNode(out, g, before, n, p);
}

CUresult kl_cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *p) {
  kl_cu_node *n;
  KL_GIVEN(p);
  KL_RESULT(kl_node_check(handle, &n));
  return kl_node_set(n, p);
}

CUresult kl_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph handle, CUcontext context,
                                           unsigned initial, unsigned flags) {
  kl_cu_graph *g;
  uint64_t address;
  KL_GIVEN(out);
  KL_RESULT(kl_graph_check(handle, &g));
  if (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  kl_cu_context *c = context ? kl_object_find(context, KL_CONTEXT) : kl_current();
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  KL_RESULT(kl_allocate(c, KL_MEM_DEVICE, sizeof(unsigned), 0, NULL, &address));
  memcpy(kl_memory_at(&kl_sim.memory, address, sizeof initial), &initial, sizeof initial);
  kl_memory_define(&kl_sim.memory, address, sizeof initial);
  VEC_PUSH(kl_sim.cx, &g->values, (kl_value){address, initial, flags});
  *out = address;
  return CUDA_SUCCESS;
}

// --- by kind --------------------------------------------------------------------------------------------------------

static CUresult node_of(CUgraphNode handle, CUgraphNodeType type, kl_cu_node **out) {
  KL_RESULT(kl_node_check(handle, out));
  return (*out)->work.type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Parameters of a node of a kind, with a member of that name.
#define PARAMS(NAME, member, value)                                                                                    \
  (CUgraphNodeParams) {                                                                                                \
    .type = CU_GRAPH_NODE_TYPE_##NAME, .member = value                                                                 \
  }

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  CUDA_KERNEL_NODE_PARAMS k = {0};
  _Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof *p, "the later struct begins with the earlier one");
  memcpy(&k, p, sizeof *p);
  return k;
}

CUresult kl_cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                    const CUDA_KERNEL_NODE_PARAMS *p) {
  KL_GIVEN(p);
  return add(out, g, before, n, &PARAMS(KERNEL, kernel, *p));
}
CUresult kl_cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  KL_GIVEN(p);
  return add(out, g, before, n, &PARAMS(KERNEL, kernel, from_v1(p)));
}

CUresult kl_cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
  const kl_kernel_work *k = &n->work.kernel;
  *out = (CUDA_KERNEL_NODE_PARAMS){.func = k->kern ? NULL : (CUfunction)(uintptr_t)k->function,
                                   .gridDimX = k->grid[0],
                                   .gridDimY = k->grid[1],
                                   .gridDimZ = k->grid[2],
                                   .blockDimX = k->block[0],
                                   .blockDimY = k->block[1],
                                   .blockDimZ = k->block[2],
                                   .sharedMemBytes = k->shared,
                                   .kernelParams = k->pointers,
                                   .kern = k->kern,
                                   .ctx = (CUcontext)(uintptr_t)n->work.context};
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
  CUDA_KERNEL_NODE_PARAMS p;
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(kl_cuGraphKernelNodeGetParams_v2(handle, &p));
  KL_RESULT(kl_node_check(handle, &n));
  p.func = (CUfunction)(uintptr_t)n->work.kernel.function;
  memcpy(out, &p, sizeof *out);
  return CUDA_SUCCESS;
}

// Attributes stay as they are.
CUresult kl_cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *p) {
  kl_cu_node *n;
  KL_GIVEN(p);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
  kl_kernel_work before = n->work.kernel;
  KL_RESULT(kl_node_set(n, &PARAMS(KERNEL, kernel, *p)));
  memcpy(n->work.kernel.cluster, before.cluster, sizeof before.cluster);
  n->work.kernel.cooperative = before.cooperative;
  n->work.kernel.priority = before.priority;
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphKernelNodeSetParams(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  KL_GIVEN(p);
  CUDA_KERNEL_NODE_PARAMS k = from_v1(p);
  return kl_cuGraphKernelNodeSetParams_v2(handle, &k);
}

CUresult kl_cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID which, CUkernelNodeAttrValue *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
  const kl_kernel_work *k = &n->work.kernel;
  *out = (CUkernelNodeAttrValue){{0}};
  switch (which) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: out->cooperative = k->cooperative; return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_PRIORITY: out->priority = k->priority; return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    out->clusterDim.x = k->cluster[0], out->clusterDim.y = k->cluster[1], out->clusterDim.z = k->cluster[2];
    return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID which,
                                          const CUkernelNodeAttrValue *value) {
  kl_cu_node *n;
  KL_GIVEN(value);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
  kl_kernel_work k = n->work.kernel;
  KL_RESULT(kl_kernel_work_attribute(&k, which, value));
  KL_RESULT(kl_kernel_work_check(&k));
  n->work.kernel = k;
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  kl_cu_node *a, *b;
  KL_RESULT(node_of(to, CU_GRAPH_NODE_TYPE_KERNEL, &a));
  KL_RESULT(node_of(from, CU_GRAPH_NODE_TYPE_KERNEL, &b));
  memcpy(a->work.kernel.cluster, b->work.kernel.cluster, sizeof a->work.kernel.cluster);
  a->work.kernel.cooperative = b->work.kernel.cooperative;
  a->work.kernel.priority = b->work.kernel.priority;
  return CUDA_SUCCESS;
}

static CUgraphNodeParams copy_params(const CUDA_MEMCPY3D *c, CUcontext context) {
  return PARAMS(MEMCPY, memcpy, ((CUDA_MEMCPY_NODE_PARAMS){.copyCtx = context, .copyParams = *c}));
}

CUresult kl_cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                 const CUDA_MEMCPY3D *c, CUcontext context) {
  KL_GIVEN(c);
  CUgraphNodeParams p = copy_params(c, context);
  return add(out, g, before, n, &p);
}
CUresult kl_cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY, &n));
  *out = n->work.copy;
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D *c) {
  kl_cu_node *n;
  KL_GIVEN(c);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY, &n));
  CUgraphNodeParams p = copy_params(c, (CUcontext)(uintptr_t)n->work.context);
  return kl_node_set(n, &p);
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *f, CUcontext c) {
  CUDA_MEMSET_NODE_PARAMS_v2 v = {f->dst, f->pitch, f->value, f->elementSize, f->width, f->height, c};
  return PARAMS(MEMSET, memset, v);
}

CUresult kl_cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                 const CUDA_MEMSET_NODE_PARAMS *f, CUcontext context) {
  KL_GIVEN(f);
  CUgraphNodeParams p = fill_params(f, context);
  return add(out, g, before, n, &p);
}
CUresult kl_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET, &n));
  *out = n->work.fill;
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *f) {
  kl_cu_node *n;
  KL_GIVEN(f);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET, &n));
  CUgraphNodeParams p = fill_params(f, (CUcontext)(uintptr_t)n->work.context);
  return kl_node_set(n, &p);
}

CUresult kl_cuGraphAddHostNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                               const CUDA_HOST_NODE_PARAMS *p) {
  KL_GIVEN(p);
  return add(out, g, before, n, &PARAMS(HOST, host, *p));
}
CUresult kl_cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_HOST, &n));
  *out = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.data};
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *p) {
  kl_cu_node *n;
  KL_GIVEN(p);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_HOST, &n));
  return kl_node_set(n, &PARAMS(HOST, host, *p));
}

CUresult kl_cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n, CUgraph child) {
  return add(out, g, before, n, &PARAMS(GRAPH, graph.graph, child));
}
CUresult kl_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH, &n));
  *out = KL_HANDLE(CUgraph, n->work.child);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n) {
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
  return add(out, g, before, n, &p);
}

#define EVENT_NODES(NAME, TYPE, member)                                                                                \
  CUresult kl_cuGraphAdd##NAME##Node(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n, CUevent e) {    \
    return add(out, g, before, n, &PARAMS(TYPE, member.event, e));                                                     \
  }                                                                                                                    \
  CUresult kl_cuGraph##NAME##NodeGetEvent(CUgraphNode handle, CUevent *out) {                                          \
    kl_cu_node *n;                                                                                                     \
    KL_GIVEN(out);                                                                                                     \
    KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_##TYPE, &n));                                                         \
    *out = n->work.event;                                                                                              \
    return CUDA_SUCCESS;                                                                                               \
  }                                                                                                                    \
  CUresult kl_cuGraph##NAME##NodeSetEvent(CUgraphNode handle, CUevent e) {                                             \
    kl_cu_node *n;                                                                                                     \
    KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_##TYPE, &n));                                                         \
    return kl_node_set(n, &PARAMS(TYPE, member.event, e));                                                             \
  }
EVENT_NODES(EventRecord, EVENT_RECORD, eventRecord)
EVENT_NODES(EventWait, WAIT_EVENT, eventWait)

CUresult kl_cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                   CUDA_MEM_ALLOC_NODE_PARAMS *p) {
  KL_GIVEN(p);
  CUgraphNodeParams all = PARAMS(MEM_ALLOC, alloc, *p);
  KL_RESULT(kl_cuGraphAddNode(out, g, before, n, &all));
  p->dptr = all.alloc.dptr;
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &n));
  *out = n->work.alloc;
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n, CUdeviceptr p) {
  return add(out, g, before, n, &PARAMS(MEM_FREE, free.dptr, p));
}
CUresult kl_cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(node_of(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, &n));
  *out = n->work.free;
  return CUDA_SUCCESS;
}

// --- user objects ---------------------------------------------------------------------------------------------------

static CUresult user_check(CUuserObject handle, kl_cu_user_object **out) {
  *out = kl_object_find(handle, KL_USER_OBJECT);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void kl_user_object_drop(uint64_t handle, uint64_t count) {
  kl_cu_user_object *u = kl_object_find((void *)(uintptr_t)handle, KL_USER_OBJECT);
  if (!u) return;
  if (u->count > count) {
    u->count -= count;
    return;
  }
  CUhostFn destroy = u->destroy;
  void *data = u->data;
  kl_object_delete(u, sizeof *u);
  kl_sim_call_out(destroy, data);
}

CUresult kl_cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags) {
  KL_GIVEN(out);
  if (!destroy || count == 0 || count > INT32_MAX || flags != 1) return CUDA_ERROR_INVALID_VALUE;
  kl_cu_user_object *u = kl_object_new(KL_USER_OBJECT, sizeof *u, NULL);
  if (!u) return CUDA_ERROR_OUT_OF_MEMORY;
  u->destroy = destroy;
  u->data = data;
  u->count = count;
  *out = KL_HANDLE(CUuserObject, u);
  return CUDA_SUCCESS;
}

CUresult kl_cuUserObjectRetain(CUuserObject handle, unsigned count) {
  kl_cu_user_object *u;
  KL_RESULT(user_check(handle, &u));
  if (count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  u->count += count;
  return CUDA_SUCCESS;
}

CUresult kl_cuUserObjectRelease(CUuserObject handle, unsigned count) {
  kl_cu_user_object *u;
  KL_RESULT(user_check(handle, &u));
  if (count == 0 || count > u->count) return CUDA_ERROR_INVALID_VALUE;
  kl_user_object_drop(u->o.handle, count);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count, unsigned flags) {
  kl_cu_graph *g;
  kl_cu_user_object *u;
  KL_RESULT(kl_graph_check(graph, &g));
  KL_RESULT(user_check(handle, &u));
  if (count == 0 || count > INT32_MAX || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  if (!flags) u->count += count; // else the caller's are moved
  for (size_t i = 0; i < g->users.n; i++)
    if (g->users.p[i].handle == u->o.handle) {
      g->users.p[i].count += count;
      return CUDA_SUCCESS;
    }
  VEC_PUSH(kl_sim.cx, &g->users, (kl_user){u->o.handle, count});
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count) {
  kl_cu_graph *g;
  kl_cu_user_object *u;
  KL_RESULT(kl_graph_check(graph, &g));
  KL_RESULT(user_check(handle, &u));
  for (size_t i = 0; i < g->users.n; i++) {
    if (g->users.p[i].handle != u->o.handle) continue;
    if (count == 0 || count > g->users.p[i].count) return CUDA_ERROR_INVALID_VALUE;
    g->users.p[i].count -= count;
    if (!g->users.p[i].count) g->users.p[i] = g->users.p[--g->users.n];
    kl_user_object_drop(u->o.handle, count);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Work: what is put on a stream or stands in a graph.

#include "sim/driver/impl.h"

#include <stdlib.h>

// --- copies of it ---------------------------------------------------------------------------------------------------

static CUresult copy_kernel(const kl_kernel_work *k, kl_kernel_work *out) {
  uint32_t n = k->nparams;
  *out = *k;
  out->params = kl_try_alloc(kl_sim.cx, k->param_bytes + 1);
  out->pointers = kl_try_alloc(kl_sim.cx, (n + 1) * sizeof *out->pointers);
  if (out->params && out->pointers) {
    memcpy(out->params, k->params, k->param_bytes);
    for (uint32_t i = 0; i < n; i++)
      out->pointers[i] = (char *)out->params + ((char *)k->pointers[i] - (char *)k->params);
    return CUDA_SUCCESS;
  }
  kl_free(kl_sim.cx, out->params, k->param_bytes + 1);
  kl_free(kl_sim.cx, out->pointers, (n + 1) * sizeof *out->pointers);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult copy_conditional(const kl_conditional *c, kl_conditional *out) {
  *out = *c;
  out->bodies = kl_try_alloc(kl_sim.cx, c->size * sizeof *out->bodies);
  bool whole = out->bodies != NULL;
  for (unsigned i = 0; whole && i < c->size; i++) whole = (out->bodies[i] = kl_graph_copy(c->bodies[i])) != NULL;
  if (whole) return CUDA_SUCCESS;
  for (unsigned i = 0; out->bodies && i < c->size; i++) kl_graph_delete(out->bodies[i]);
  kl_free(kl_sim.cx, out->bodies, c->size * sizeof *out->bodies);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult kl_work_copy(const kl_work *w, kl_work *out) {
  CUresult code = CUDA_SUCCESS;
  *out = *w;
  if (w->type == CU_GRAPH_NODE_TYPE_KERNEL) code = copy_kernel(&w->kernel, &out->kernel);
  if (w->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) code = copy_conditional(&w->conditional, &out->conditional);
  if (w->type == CU_GRAPH_NODE_TYPE_GRAPH && !(out->child = kl_graph_copy(w->child))) code = CUDA_ERROR_OUT_OF_MEMORY;
  if (code) *out = (kl_work){.type = CU_GRAPH_NODE_TYPE_EMPTY};
  return code;
}

void kl_work_free(kl_work *w) {
  if (w->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    kl_free(kl_sim.cx, w->kernel.params, w->kernel.param_bytes + 1);
    kl_free(kl_sim.cx, w->kernel.pointers, (w->kernel.nparams + 1) * sizeof *w->kernel.pointers);
  }
  if (w->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    for (unsigned i = 0; i < w->conditional.size; i++) kl_graph_delete(w->conditional.bodies[i]);
    kl_free(kl_sim.cx, w->conditional.bodies, w->conditional.size * sizeof *w->conditional.bodies);
  }
  if (w->type == CU_GRAPH_NODE_TYPE_GRAPH) kl_graph_delete(w->child);
  *w = (kl_work){.type = CU_GRAPH_NODE_TYPE_EMPTY};
}

// --- kernels --------------------------------------------------------------------------------------------------------

// What the hardware calls a fault.
static CUresult result_of(kl_fault_kind kind) {
  switch (kind) {
  case KL_FAULT_NONE: return CUDA_ERROR_UNKNOWN;
  case KL_FAULT_ADDRESS:
  case KL_FAULT_READ_ONLY: return CUDA_ERROR_ILLEGAL_ADDRESS;
  case KL_FAULT_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
  case KL_FAULT_STACK: return CUDA_ERROR_HARDWARE_STACK_ERROR;
  case KL_FAULT_TARGET: return CUDA_ERROR_INVALID_PC;
  case KL_FAULT_BARRIER: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case KL_FAULT_TRAP: return CUDA_ERROR_LAUNCH_FAILED;
  case KL_FAULT_DEADLOCK:
  case KL_FAULT_TIME: return CUDA_ERROR_LAUNCH_TIMEOUT;
  case KL_FAULT_MEMORY: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

// What checks find is told and kept, and the program goes on.
static kiln_status run_checked(const kl_cu_function *f, const kl_launch *l, kl_fault *fault) {
  kl_checks c;
  kl_checks_init(&c, kl_sim.cx, &kl_sim.memory, kl_sim.options.checks);
  kiln_status s = kl_checks_run(&c, l, fault);
  kl_findings_take(&kl_sim.findings, &c, kl_loaded_ptx(kl_kernel_module(f->kernel)));
  kl_checks_free(&c);
  return s;
}

// A fault is the context's: the launch itself has succeeded.
static CUresult run_kernel(kl_cu_context *c, const kl_kernel_work *k) {
  kl_fault fault;
  const kl_cu_function *f = kl_object_find((void *)(uintptr_t)k->function, KL_FUNCTION);
  if (!f || !c) return CUDA_ERROR_INVALID_HANDLE;
  kl_launch l = {.kernel = f->kernel,
                 .dynamic_shared = k->shared,
                 .params = k->params,
                 .cooperative = k->cooperative,
                 .workers = kl_sim.options.workers,
                 .shuffle = kl_sim.options.shuffle,
                 .perturb = kl_sim.options.perturb,
                 .most_branches = kl_sim.options.most_branches};
  memcpy(l.grid, k->grid, sizeof l.grid);
  memcpy(l.block, k->block, sizeof l.block);
  memcpy(l.cluster, k->cluster, sizeof l.cluster);
  kiln_status s =
      kl_sim.options.checks ? run_checked(f, &l, &fault) : kl_launch_run(kl_sim.cx, &kl_sim.memory, &l, &fault);
  if (s == KILN_OK) return CUDA_SUCCESS;
  if (s != KILN_E_DEVICE && fault.kind == KL_FAULT_NONE)
    return s == KILN_E_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  c->lost = result_of(fault.kind);
  return CUDA_SUCCESS;
}

// --- doing it -------------------------------------------------------------------------------------------------------

typedef struct told_stream {
  CUstreamCallback fn;
  CUstream stream;
  CUresult status;
  void *data;
} told_stream;

static void tell_stream(void *arg) {
  told_stream *t = arg;
  t->fn(t->stream, t->status, t->data);
}

static CUresult write_value(const kl_work *w) {
  char *to = kl_memory_at(&kl_sim.memory, w->write.to, w->write.bytes);
  if (!to) return CUDA_ERROR_INVALID_VALUE;
  memcpy(to, &w->write.value, w->write.bytes);
  kl_memory_define(&kl_sim.memory, w->write.to, w->write.bytes);
  return CUDA_SUCCESS;
}

// Rounds of a loop whose condition nothing changes would never end.
enum { MOST_ROUNDS = 1 << 20 };

static CUresult run_conditional(uint64_t context, const kl_conditional *k) {
  for (int round = 0;; round++) {
    kl_cu_context *c = kl_object_find((void *)(uintptr_t)context, KL_CONTEXT);
    const char *at = kl_memory_at(&kl_sim.memory, k->handle, sizeof(unsigned));
    unsigned value;
    if (!at || !c) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&value, at, sizeof value);
    switch (k->type) {
    case CU_GRAPH_COND_TYPE_IF:
      if (value) return kl_graph_perform(k->bodies[0]);
      return k->size > 1 ? kl_graph_perform(k->bodies[1]) : CUDA_SUCCESS;
    case CU_GRAPH_COND_TYPE_SWITCH: return value < k->size ? kl_graph_perform(k->bodies[value]) : CUDA_SUCCESS;
    case CU_GRAPH_COND_TYPE_WHILE:
      if (!value) return CUDA_SUCCESS;
      if (round == MOST_ROUNDS) c->lost = CUDA_ERROR_LAUNCH_TIMEOUT;
      if (c->lost) return CUDA_SUCCESS;
      KL_RESULT(kl_graph_perform(k->bodies[0]));
    }
  }
}

CUresult kl_perform(const kl_work *w) {
  kl_cu_event *e;
  kl_cu_context *c = w->context ? kl_object_find((void *)(uintptr_t)w->context, KL_CONTEXT) : NULL;
  if (w->context && !c) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (c && c->lost) return c->lost;
  switch (w->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: return run_kernel(c, &w->kernel);
  case CU_GRAPH_NODE_TYPE_MEMCPY: return kl_copy_perform(&w->copy);
  case CU_GRAPH_NODE_TYPE_MEMSET: return kl_fill_perform(&w->fill);
  case CU_GRAPH_NODE_TYPE_HOST:
    if (w->host.callback) {
      told_stream t = {w->host.callback, w->host.stream, CUDA_SUCCESS, w->host.data};
      kl_sim_call_out(tell_stream, &t);
    } else
      kl_sim_call_out(w->host.fn, w->host.data);
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_GRAPH: return kl_graph_perform(w->child);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    KL_RESULT(kl_event_check(w->event, &e));
    kl_event_happens(e);
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_MEM_FREE: {
    kl_allocation *a = kl_allocation_find(w->free);
    if (!a || a->base != w->free) return CUDA_ERROR_INVALID_VALUE;
    return a->of_graph ? CUDA_SUCCESS : kl_release(a);
  }
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return write_value(w);
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return run_conditional(w->context, &w->conditional);
  }
  return CUDA_SUCCESS; // empty nodes, waits for what has happened, memory that is there
}

CUresult kl_submit(kl_cu_stream *s, kl_work *w) {
  if (!s->capture) {
    CUresult code = kl_perform(w);
    kl_work_free(w);
    return code;
  }
  kl_cu_node *n = NULL;
  if (s->capture->invalid) {
    kl_work_free(w);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUresult code = kl_graph_add(s->capture->graph, s->after.p, s->after.n, w, &n);
  if (code) s->capture->invalid = true;
  if (code) return code;
  s->after.n = 0;
  return kl_nodes_add(&s->after, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

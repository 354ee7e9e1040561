// Graphs: nodes and what they depend on.

#include "sim/driver/impl.h"

#include <stdio.h>

// --- lists of nodes -------------------------------------------------------------------------------------------------

static bool reserve(kl_nodes *v, size_t n) {
  if (n <= v->cap) return true;
  size_t cap = v->cap ? 2 * v->cap : 4;
  while (cap < n) cap *= 2;
  kl_cu_node **p = kl_try_alloc(kl_sim.cx, cap * sizeof *p);
  if (!p) return false;
  if (v->n) memcpy(p, v->p, v->n * sizeof *p);
  kl_free(kl_sim.cx, v->p, v->cap * sizeof *p);
  v->p = p;
  v->cap = cap;
  return true;
}

static size_t position(const kl_nodes *v, const kl_cu_node *n) {
  size_t i = 0;
  while (i < v->n && v->p[i] != n) i++;
  return i;
}

static bool append(kl_nodes *to, kl_cu_node *n) {
  if (!reserve(to, to->n + 1)) return false;
  to->p[to->n++] = n;
  return true;
}

bool kl_nodes_add(kl_nodes *to, kl_cu_node *n) {
  return position(to, n) < to->n || append(to, n);
}

bool kl_nodes_copy(kl_nodes *to, const kl_nodes *from) {
  for (size_t i = 0; i < from->n; i++)
    if (!kl_nodes_add(to, from->p[i])) return false;
  return true;
}

static void drop(kl_nodes *v, const kl_cu_node *n) {
  size_t i = position(v, n);
  if (i == v->n) return;
  memmove(v->p + i, v->p + i + 1, (v->n - i - 1) * sizeof *v->p);
  v->n--;
}

void kl_nodes_free(kl_nodes *v) {
  kl_free(kl_sim.cx, v->p, v->cap * sizeof *v->p);
  *v = (kl_nodes){0};
}

// --- life -----------------------------------------------------------------------------------------------------------

kl_cu_graph *kl_graph_new(void) {
  return kl_object_new(KL_GRAPH, sizeof(kl_cu_graph), NULL);
}

static void node_free(kl_cu_node *n) {
  if (n->bodies) kl_free(kl_sim.cx, n->bodies, n->work.conditional.size * sizeof *n->bodies);
  kl_work_free(&n->work);
  kl_nodes_free(&n->before);
  kl_nodes_free(&n->behind);
  kl_object_delete(n, sizeof *n);
}

void kl_graph_delete(kl_cu_graph *g) {
  if (!g) return;
  for (size_t i = 0; i < g->nodes.n; i++) node_free(g->nodes.p[i]);
  kl_nodes_free(&g->nodes);
  VEC_FREE(kl_sim.cx, &g->values);
  while (g->users.n) {
    kl_user u = g->users.p[--g->users.n];
    kl_user_object_drop(u.handle, u.count);
  }
  VEC_FREE(kl_sim.cx, &g->users);
  kl_object_delete(g, sizeof *g);
}

static bool connect(kl_cu_node *from, kl_cu_node *to) {
  if (!append(&from->behind, to)) return false;
  if (append(&to->before, from)) return true;
  from->behind.n--;
  return false;
}

CUresult kl_graph_add(kl_cu_graph *g, kl_cu_node *const *before, size_t n, kl_work *w, kl_cu_node **out) {
  kl_cu_node *node = kl_object_new(KL_NODE, sizeof *node, NULL);
  *out = NULL;
  if (!node) {
    kl_work_free(w);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  node->graph = g;
  node->work = *w;
  node->number = ++kl_sim.serial;
  *w = (kl_work){.type = CU_GRAPH_NODE_TYPE_EMPTY};
  bool whole = append(&g->nodes, node);
  for (size_t i = 0; whole && i < n; i++) whole = connect(before[i], node);
  if (whole) {
    *out = node;
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < node->before.n; i++) drop(&node->before.p[i]->behind, node);
  drop(&g->nodes, node);
  node_free(node);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Copies nodes, then edges: a node's copy has its place in the list.
kl_cu_graph *kl_graph_copy(const kl_cu_graph *g) {
  kl_cu_graph *to = kl_graph_new();
  if (!to) return NULL;
  to->origin = g->o.handle;
  bool whole = true;
  for (size_t i = 0; whole && i < g->nodes.n; i++) {
    kl_cu_node *from = g->nodes.p[i], *node = NULL;
    kl_work w;
    whole = kl_work_copy(&from->work, &w) == CUDA_SUCCESS && kl_graph_add(to, NULL, 0, &w, &node) == CUDA_SUCCESS;
    if (!whole) break;
    node->origin = from->o.handle;
    node->disabled = from->disabled;
    from->mark = (uint32_t)i;
  }
  for (size_t i = 0; whole && i < g->nodes.n; i++)
    for (size_t k = 0; whole && k < g->nodes.p[i]->before.n; k++)
      whole = connect(to->nodes.p[g->nodes.p[i]->before.p[k]->mark], to->nodes.p[i]);
  for (size_t i = 0; whole && i < g->values.n; i++) VEC_PUSH(kl_sim.cx, &to->values, g->values.p[i]);
  if (whole) return to;
  kl_graph_delete(to);
  return NULL;
}

// --- order ----------------------------------------------------------------------------------------------------------

// A heap of nodes by the number of their making.
static void sift_down(kl_nodes *h) {
  for (size_t i = 0;;) {
    size_t k = 2 * i + 1;
    if (k >= h->n) return;
    if (k + 1 < h->n && h->p[k + 1]->number < h->p[k]->number) k++;
    if (h->p[i]->number <= h->p[k]->number) return;
    kl_cu_node *swap = h->p[i];
    h->p[i] = h->p[k];
    h->p[k] = swap;
    i = k;
  }
}

static void heap_push(kl_nodes *h, kl_cu_node *n) { // there is room
  size_t i = h->n++;
  for (; i > 0 && h->p[(i - 1) / 2]->number > n->number; i = (i - 1) / 2) h->p[i] = h->p[(i - 1) / 2];
  h->p[i] = n;
}

static kl_cu_node *heap_pop(kl_nodes *h) {
  kl_cu_node *n = h->p[0];
  h->p[0] = h->p[--h->n];
  sift_down(h);
  return n;
}

bool kl_graph_order(const kl_cu_graph *g, kl_nodes *out) {
  kl_nodes ready = {0};
  *out = (kl_nodes){0};
  bool whole = reserve(&ready, g->nodes.n) && reserve(out, g->nodes.n);
  for (size_t i = 0; whole && i < g->nodes.n; i++) {
    g->nodes.p[i]->mark = (uint32_t)g->nodes.p[i]->before.n;
    if (!g->nodes.p[i]->mark) heap_push(&ready, g->nodes.p[i]);
  }
  while (whole && ready.n) {
    kl_cu_node *n = heap_pop(&ready);
    out->p[out->n++] = n;
    for (size_t i = 0; i < n->behind.n; i++)
      if (--n->behind.p[i]->mark == 0) heap_push(&ready, n->behind.p[i]);
  }
  kl_nodes_free(&ready);
  if (whole && out->n == g->nodes.n) return true;
  kl_nodes_free(out);
  return false;
}

CUresult kl_graph_perform(const kl_cu_graph *g) {
  kl_nodes order;
  CUresult code = CUDA_SUCCESS;
  if (!kl_graph_order(g, &order)) return g->nodes.n ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  for (size_t i = 0; i < order.n && !code; i++)
    if (!order.p[i]->disabled) code = kl_perform(&order.p[i]->work);
  kl_nodes_free(&order);
  return code;
}

// --- the calls ------------------------------------------------------------------------------------------------------

CUresult kl_graph_check(CUgraph handle, kl_cu_graph **out) {
  *out = kl_object_find(handle, KL_GRAPH);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_node_check(CUgraphNode handle, kl_cu_node **out) {
  *out = kl_object_find(handle, KL_NODE);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuGraphCreate(CUgraph *out, unsigned flags) {
  KL_GIVEN(out);
  *out = NULL;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  kl_cu_graph *g = kl_graph_new();
  if (!g) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = KL_HANDLE(CUgraph, g);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphDestroy(CUgraph handle) {
  kl_cu_graph *g;
  KL_RESULT(kl_graph_check(handle, &g));
  if (g->inner || g->capturing) return CUDA_ERROR_INVALID_VALUE;
  kl_graph_delete(g);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphClone(CUgraph *out, CUgraph handle) {
  kl_cu_graph *g;
  KL_GIVEN(out);
  *out = NULL;
  KL_RESULT(kl_graph_check(handle, &g));
  kl_cu_graph *to = kl_graph_copy(g);
  if (!to) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = KL_HANDLE(CUgraph, to);
  return CUDA_SUCCESS;
}

kl_cu_node *kl_graph_find_copy(const kl_cu_graph *g, uint64_t origin) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    kl_cu_node *n = g->nodes.p[i];
    if (n->origin == origin) return n;
    kl_cu_node *in = n->work.type == CU_GRAPH_NODE_TYPE_GRAPH ? kl_graph_find_copy(n->work.child, origin) : NULL;
    for (unsigned k = 0; !in && n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->work.conditional.size; k++)
      in = kl_graph_find_copy(n->work.conditional.bodies[k], origin);
    if (in) return in;
  }
  return NULL;
}

CUresult kl_cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone) {
  kl_cu_graph *g;
  kl_cu_node *n;
  KL_GIVEN(out);
  *out = NULL;
  KL_RESULT(kl_graph_check(clone, &g));
  KL_RESULT(kl_node_check(original, &n));
  kl_cu_node *copy = kl_graph_find_copy(g, n->o.handle);
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  *out = KL_HANDLE(CUgraphNode, copy);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *out) {
  kl_cu_node *n;
  KL_GIVEN(out);
  KL_RESULT(kl_node_check(handle, &n));
  *out = n->work.type;
  return CUDA_SUCCESS;
}

// As many as there is room for, the rest NULL; without a list, how many there are.
static CUresult list(const kl_nodes *v, CUgraphNode *out, size_t *n) {
  KL_GIVEN(n);
  for (size_t i = 0; out && i < *n; i++) out[i] = i < v->n ? KL_HANDLE(CUgraphNode, v->p[i]) : NULL;
  *n = !out || v->n < *n ? v->n : *n;
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphGetNodes(CUgraph handle, CUgraphNode *out, size_t *n) {
  kl_cu_graph *g;
  KL_RESULT(kl_graph_check(handle, &g));
  return list(&g->nodes, out, n);
}

CUresult kl_cuGraphGetRootNodes(CUgraph handle, CUgraphNode *out, size_t *n) {
  kl_cu_graph *g;
  kl_nodes roots = {0};
  KL_RESULT(kl_graph_check(handle, &g));
  bool whole = true;
  for (size_t i = 0; i < g->nodes.n; i++)
    if (!g->nodes.p[i]->before.n) whole &= append(&roots, g->nodes.p[i]);
  CUresult code = whole ? list(&roots, out, n) : CUDA_ERROR_OUT_OF_MEMORY;
  kl_nodes_free(&roots);
  return code;
}

CUresult kl_cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *out, size_t *n) {
  kl_cu_node *node;
  KL_RESULT(kl_node_check(handle, &node));
  return list(&node->before, out, n);
}
CUresult kl_cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode *out, size_t *n) {
  kl_cu_node *node;
  KL_RESULT(kl_node_check(handle, &node));
  return list(&node->behind, out, n);
}

// Edges carry nothing.
static void clear_edges(CUgraphEdgeData *edges, const void *list, const size_t *n) {
  if (edges && list && n) memset(edges, 0, *n * sizeof *edges);
}

CUresult kl_cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n) {
  KL_RESULT(kl_cuGraphNodeGetDependencies(handle, out, n));
  clear_edges(edges, out, n);
  return CUDA_SUCCESS;
}
CUresult kl_cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n) {
  KL_RESULT(kl_cuGraphNodeGetDependentNodes(handle, out, n));
  clear_edges(edges, out, n);
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *n) {
  kl_cu_graph *g;
  size_t count = 0;
  KL_GIVEN(n);
  KL_RESULT(kl_graph_check(handle, &g));
  if (!from != !to) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < g->nodes.n; i++)
    for (size_t k = 0; k < g->nodes.p[i]->behind.n; k++, count++) {
      if (!from || count >= *n) continue;
      from[count] = KL_HANDLE(CUgraphNode, g->nodes.p[i]);
      to[count] = KL_HANDLE(CUgraphNode, g->nodes.p[i]->behind.p[k]);
    }
  for (size_t i = count; from && i < *n; i++) from[i] = to[i] = NULL;
  *n = !from || count < *n ? count : *n;
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *n) {
  KL_RESULT(kl_cuGraphGetEdges(handle, from, to, n));
  clear_edges(edges, from, n);
  return CUDA_SUCCESS;
}

// Does a way lead from one node to another? Each is seen once: marked with `seen`.
static bool leads_to(kl_cu_graph *g, kl_cu_node *from, const kl_cu_node *to) {
  kl_nodes todo = {0};
  for (size_t i = 0; i < g->nodes.n; i++) g->nodes.p[i]->mark = 0;
  bool found = !reserve(&todo, g->nodes.n); // short of memory: nothing is added
  if (!found) todo.p[todo.n++] = from, from->mark = 1;
  while (todo.n && !found) {
    kl_cu_node *n = todo.p[--todo.n];
    found = n == to;
    for (size_t i = 0; i < n->behind.n; i++)
      if (!n->behind.p[i]->mark) n->behind.p[i]->mark = 1, todo.p[todo.n++] = n->behind.p[i];
  }
  kl_nodes_free(&todo);
  return found;
}

static CUresult add_edge(kl_cu_graph *g, CUgraphNode from, CUgraphNode to) {
  kl_cu_node *a, *b;
  KL_RESULT(kl_node_check(from, &a));
  KL_RESULT(kl_node_check(to, &b));
  if (a->graph != g || b->graph != g || a == b || position(&a->behind, b) < a->behind.n)
    return CUDA_ERROR_INVALID_VALUE;
  if (leads_to(g, b, a)) return CUDA_ERROR_INVALID_VALUE;
  return connect(a, b) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult kl_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
  kl_cu_graph *g;
  KL_RESULT(kl_graph_check(handle, &g));
  if (n) KL_GIVEN(from, to);
  for (size_t i = 0; i < n; i++) KL_RESULT(add_edge(g, from[i], to[i]));
  return CUDA_SUCCESS;
}

CUresult kl_cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
  kl_cu_graph *g;
  KL_RESULT(kl_graph_check(handle, &g));
  if (n) KL_GIVEN(from, to);
  for (size_t i = 0; i < n; i++) {
    kl_cu_node *a, *b;
    KL_RESULT(kl_node_check(from[i], &a));
    KL_RESULT(kl_node_check(to[i], &b));
    if (a->graph != g || position(&a->behind, b) == a->behind.n) return CUDA_ERROR_INVALID_VALUE;
    drop(&a->behind, b);
    drop(&b->before, a);
  }
  return CUDA_SUCCESS;
}

// A dependency on a kernel's early end is one on its end: a legal schedule.
CUresult kl_cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t n) {
  return kl_cuGraphAddDependencies(handle, from, to, n);
}
CUresult kl_cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                         const CUgraphEdgeData *edges, size_t n) {
  return kl_cuGraphRemoveDependencies(handle, from, to, n);
}

CUresult kl_cuGraphDestroyNode(CUgraphNode handle) {
  kl_cu_node *n;
  KL_RESULT(kl_node_check(handle, &n));
  if (n->graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL || n->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      n->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < n->before.n; i++) drop(&n->before.p[i]->behind, n);
  for (size_t i = 0; i < n->behind.n; i++) drop(&n->behind.p[i]->before, n);
  drop(&n->graph->nodes, n);
  node_free(n);
  return CUDA_SUCCESS;
}

static const char *const type_names[] = {"kernel", "memcpy",     "memset",       "host",       "graph",
                                         "empty",  "wait event", "record event", "signal",     "wait",
                                         "alloc",  "free",       "memory op",    "conditional"};

CUresult kl_cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned flags) {
  kl_cu_graph *g;
  KL_GIVEN(path);
  KL_RESULT(kl_graph_check(handle, &g));
  FILE *f = fopen(path, "w");
  if (!f) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(f, "digraph {\n");
  for (size_t i = 0; i < g->nodes.n; i++) {
    const kl_cu_node *n = g->nodes.p[i];
    const kl_cu_function *k = n->work.type == CU_GRAPH_NODE_TYPE_KERNEL
                                  ? kl_object_find((void *)(uintptr_t)n->work.kernel.function, KL_FUNCTION)
                                  : NULL;
    fprintf(f, "  n%zu [label=\"%zu %s%s%s\"];\n", i, i, type_names[n->work.type], k ? " " : "", k ? k->name : "");
    g->nodes.p[i]->mark = (uint32_t)i;
  }
  for (size_t i = 0; i < g->nodes.n; i++)
    for (size_t k = 0; k < g->nodes.p[i]->behind.n; k++)
      fprintf(f, "  n%zu -> n%u;\n", i, g->nodes.p[i]->behind.p[k]->mark);
  fprintf(f, "}\n");
  return fclose(f) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

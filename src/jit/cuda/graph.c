// Launches as nodes of graphs: of graphs of their own, and of one that a stream is captured into. A loop is a
// conditional node there, and so is each branch, so that nobody waits for conditions; what is repeated is there as
// often.

#include "cuda/driver.h"
#include "jit/cuda/kernel.h"

// --- conditions -----------------------------------------------------------------------------------------------------

// Sets a node's condition: is what lies at `at`, a number of 4 bytes or a truth, which is 0 for one that holds and 1
// else, `which` of `count`, or beyond them and that the last? The function that it calls is the driver's own, which its
// compiler links; the text is of a version and for a target that all drivers read which have such nodes.
static const char condition_ptx[] =
    "//\n.version 7.8\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry kiln_condition(.param .u64 at, .param .u64 node, .param .u32 bytes, .param .u32 which, "
    ".param .u32 count) {\n"
    "  .reg .b64 %rd<3>;\n  .reg .b32 %r<8>;\n  .reg .pred %p<4>;\n"
    "  ld.param.u64 %rd1, [at];\n  ld.param.u64 %rd2, [node];\n"
    "  ld.param.u32 %r1, [bytes];\n  ld.param.u32 %r2, [which];\n  ld.param.u32 %r3, [count];\n"
    "  setp.eq.u32 %p1, %r1, 4;\n  mov.u32 %r4, 0;\n"
    "  @%p1 ld.global.u32 %r4, [%rd1];\n  @!%p1 ld.global.u8 %r4, [%rd1];\n"
    "  setp.eq.u32 %p2, %r4, 0;\n  selp.u32 %r5, 1, 0, %p2;\n  selp.b32 %r4, %r4, %r5, %p1;\n"
    "  sub.u32 %r6, %r3, 1;\n  min.u32 %r4, %r4, %r6;\n"
    "  setp.eq.u32 %p3, %r4, %r2;\n  selp.u32 %r7, 1, 0, %p3;\n"
    "  {\n  .param .b64 handle;\n  st.param.b64 [handle], %rd2;\n"
    "  .param .b32 value;\n  st.param.b32 [value], %r7;\n"
    "  call.uni cudaGraphSetConditional, (handle, value);\n  }\n  ret;\n}\n";

static bool has_conditions(const kiln_driver *d) {
  return d->fn.cuGraphConditionalHandleCreate && d->fn.cuGraphAddNode;
}

void kl_conditions_load(kiln_cuda_kernel *k) {
  const kl_cuda_table *fn = &k->d->fn;
  if (!k->program.manifest.step_count || !has_conditions(k->d)) return;
  CUresult code = fn->cuModuleLoadDataEx(&k->conditions, condition_ptx, 0, NULL, NULL);
  if (code == CUDA_SUCCESS) {
    code = fn->cuModuleGetFunction(&k->set_condition, k->conditions, "kiln_condition");
    if (code == CUDA_SUCCESS && fn->cuFuncLoad) code = fn->cuFuncLoad(k->set_condition);
  } else {
    k->conditions = NULL;
  }
  k->no_conditions = code;
}

// Is the condition what the caller has passed itself?
static bool is_passed(const kiln_cuda_kernel *k, const kiln_argument *a) {
  return a->kind == KILN_ARGUMENT_SLOT && k->program.manifest.slots[a->slot].by_value;
}

// Can all steps be nodes? Asked before there is one of them.
static kiln_status check_conditions(kl_ctx *cx, const kiln_cuda_kernel *k) {
  const kiln_manifest *f = &k->program.manifest;
  size_t loops = 0;
  for (size_t i = 0; i < f->step_count; i++)
    loops += kl_reads_condition(&f->steps[i]) && !is_passed(k, &f->steps[i].condition);
  if (!loops) return KILN_OK;
  if (!has_conditions(k->d))
    return kl_unsupported(
        cx, KL_NOWHERE,
        "the module has a loop or a branch, which in a graph takes a driver for CUDA 12.3 or newer, found one for "
        "%d.%d: launch it on a stream that is not being captured",
        k->d->version / 1000, k->d->version % 1000 / 10);
  if (k->no_conditions != CUDA_SUCCESS)
    return kl_cuda_failed(
        cx, k->d, NULL, "cuModuleLoadDataEx", k->no_conditions,
        "The module has a loop or a branch, and what sets its condition in a graph could not be loaded: launch it "
        "on a stream that is not being captured.");
  return KILN_OK;
}

// --- building -------------------------------------------------------------------------------------------------------

typedef struct node {
  CUgraphNode node;
  uint32_t launch;
} node;
typedef VEC(node) node_list;

// One graph that nodes are added to, each behind the one before.
typedef struct builder {
  kl_ctx *cx;
  const kl_volley *v;
  CUgraph graph;
  const CUgraphNode *before; // what the next node waits for
  size_t waits;
  CUgraphNode last;
  kl_ctx *memory;   // of the list
  node_list *nodes; // launches outside of loops; NULL: nobody wants to know
} builder;

static void add_last(builder *b, CUgraphNode n) {
  b->last = n;
  b->before = &b->last;
  b->waits = 1;
}

static CUDA_KERNEL_NODE_PARAMS_v1 node_params(const kl_volley *v, size_t i) {
  const CUlaunchConfig *c = &v->shots[i].config;
  return (CUDA_KERNEL_NODE_PARAMS_v1){.func = v->k->fn[i],
                                      .gridDimX = c->gridDimX,
                                      .gridDimY = c->gridDimY,
                                      .gridDimZ = c->gridDimZ,
                                      .blockDimX = c->blockDimX,
                                      .blockDimY = c->blockDimY,
                                      .blockDimZ = c->blockDimZ,
                                      .sharedMemBytes = c->sharedMemBytes,
                                      .kernelParams = v->shots[i].args};
}

static kiln_status add_kernel(builder *b, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  kiln_cuda_kernel *k = b->v->k;
  CUgraphNode n;
  KL_CUDA_TRY(b->cx, k->d, &k->fate, cuGraphAddKernelNode, &n, b->graph, b->before, b->waits, p);
  add_last(b, n);
  return KILN_OK;
}

// A node waits for all of the one before: programmatic launches lose their head start.
static kiln_status add_launch(builder *b, size_t i) {
  kiln_cuda_kernel *k = b->v->k;
  const kl_shot *s = &b->v->shots[i];
  if (s->config.gridDimX == 0 || !kl_program_launches(&k->program, &k->program.manifest.launches[i], b->v->at))
    return KILN_OK;
  CUDA_KERNEL_NODE_PARAMS_v1 p = node_params(b->v, i);
  KL_TRY(add_kernel(b, &p));
  for (unsigned n = 0; n < s->config.numAttrs; n++)
    if (s->attributes[n].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      KL_CUDA_TRY(b->cx, k->d, &k->fate, cuGraphKernelNodeSetAttribute, b->last, s->attributes[n].id,
                  &s->attributes[n].value);
  if (b->nodes) VEC_PUSH(b->memory, b->nodes, (node){b->last, (uint32_t)i});
  return KILN_OK;
}

// Of a node that is done if the condition says `which` of `count`; that a loop goes on is the first of two.
static kiln_status add_condition(builder *b, const kiln_step *s, uint64_t handle, uint32_t which, uint32_t count) {
  uint64_t at = kl_program_argument(&s->condition, b->v->at, b->v->count, b->v->scratch);
  uint32_t bytes = s->condition_bytes;
  void *args[] = {&at, &handle, &bytes, &which, &count};
  CUDA_KERNEL_NODE_PARAMS_v1 p = {.func = b->v->k->set_condition,
                                  .gridDimX = 1,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 1,
                                  .blockDimY = 1,
                                  .blockDimZ = 1,
                                  .kernelParams = args};
  return add_kernel(b, &p);
}

static kiln_status add_steps(builder *b, size_t first, size_t count);

// *body: what is added to is done as the condition of the handle says.
static kiln_status add_conditional(builder *b, uint64_t handle, int type, builder *body) {
  kiln_cuda_kernel *k = b->v->k;
  CUgraphNode n;
  CUgraphNodeParams p = {
      .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
      .conditional = {.handle = handle, .type = type, .size = 1, .ctx = k->context},
  };
  KL_CUDA_TRY(b->cx, k->d, &k->fate, cuGraphAddNode, &n, b->graph, b->before, NULL, b->waits, &p);
  add_last(b, n);
  *body = (builder){.cx = b->cx, .v = b->v, .graph = p.conditional.phGraph_out[0]};
  return KILN_OK;
}

static kiln_status new_handle(builder *b, uint64_t *out) {
  kiln_cuda_kernel *k = b->v->k;
  KL_CUDA_TRY(b->cx, k->d, &k->fate, cuGraphConditionalHandleCreate, out, b->graph, k->context, 0, 0);
  return KILN_OK;
}

// The condition stands before the node, and at the end of what it repeats.
static kiln_status add_while(builder *b, size_t i) {
  const kiln_step *s = &b->v->k->program.manifest.steps[i];
  builder body;
  uint64_t handle;
  KL_TRY(new_handle(b, &handle));
  KL_TRY(add_steps(b, i + 1, s->count));
  KL_TRY(add_condition(b, s, handle, 0, 2));
  KL_TRY(add_conditional(b, handle, CU_GRAPH_COND_TYPE_WHILE, &body));
  KL_TRY(add_steps(&body, i + 1 + s->count, s->body));
  KL_TRY(add_steps(&body, i + 1, s->count));
  return add_condition(&body, s, handle, 0, 2);
}

static kiln_status add_launches(builder *b, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) KL_TRY(add_launch(b, i));
  return KILN_OK;
}

// Each branch is a node. All conditions are set first: branches may write where they lie.
static kiln_status add_cases(builder *b, size_t i, uint64_t *handles) {
  const kiln_step *steps = b->v->k->program.manifest.steps, *s = &steps[i];
  for (uint32_t k = 0; k < s->count; k++) {
    KL_TRY(new_handle(b, &handles[k]));
    KL_TRY(add_condition(b, s, handles[k], k, (uint32_t)s->count));
  }
  for (size_t k = 0, at = i + 1; k < s->count; at += 1 + steps[at].body, k++) {
    builder body;
    KL_TRY(add_conditional(b, handles[k], CU_GRAPH_COND_TYPE_IF, &body));
    KL_TRY(add_steps(&body, at + 1, steps[at].body));
  }
  return KILN_OK;
}

static kiln_status add_branch(builder *b, size_t i) {
  const kl_program *p = &b->v->k->program;
  const kiln_step *s = &p->manifest.steps[i];
  size_t taken;
  if (kl_program_knows(p, b->v->at, i, &taken)) return add_steps(b, taken + 1, p->manifest.steps[taken].body);
  uint64_t *handles = kl_alloc(b->cx, s->count * sizeof *handles);
  kiln_status st = add_cases(b, i, handles);
  kl_free(b->cx, handles, s->count * sizeof *handles);
  return st;
}

enum { MOST_REPEATED = 1 << 20 };

static kiln_status add_repeated(builder *b, size_t i) {
  const kiln_step *s = &b->v->k->program.manifest.steps[i];
  if (s->times > MOST_REPEATED)
    return kl_unsupported(b->cx, KL_NOWHERE,
                          "the module has a loop of %llu rounds: expected at most %d of them in a graph, each of which "
                          "is nodes of its own",
                          (unsigned long long)s->times, MOST_REPEATED);
  for (uint64_t k = 0; k < s->times; k++) KL_TRY(add_steps(b, i + 1, s->body));
  return KILN_OK;
}

static kiln_status add_steps(builder *b, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    const kiln_step *s = &b->v->k->program.manifest.steps[i];
    switch (s->kind) {
    case KILN_STEP_LAUNCHES: KL_TRY(add_launches(b, s->first, s->count)); break;
    case KILN_STEP_WHILE:
      KL_TRY(add_while(b, i));
      i += s->count + s->body;
      break;
    case KILN_STEP_REPEAT:
      KL_TRY(add_repeated(b, i));
      i += s->body;
      break;
    case KILN_STEP_BRANCH:
      KL_TRY(add_branch(b, i));
      i += s->body;
      break;
    case KILN_STEP_CASE: i += s->body; break; // not outside of branches
    }
  }
  return KILN_OK;
}

static kiln_status add_all(builder *b) {
  const kiln_manifest *f = &b->v->k->program.manifest;
  KL_TRY(check_conditions(b->cx, b->v->k));
  return f->step_count ? add_steps(b, 0, f->step_count) : add_launches(b, 0, f->launch_count);
}

kiln_status kl_capture_steps(kl_ctx *cx, const kl_volley *v, CUstream stream) {
  kiln_cuda_kernel *k = v->k;
  CUstreamCaptureStatus status;
  uint64_t id;
  builder b = {.cx = cx, .v = v};
  KL_CUDA_TRY(cx, k->d, &k->fate, cuStreamGetCaptureInfo, stream, &status, &id, &b.graph, &b.before, &b.waits);
  KL_TRY(add_all(&b));
  if (!b.last) return KILN_OK;
  KL_CUDA_TRY(cx, k->d, &k->fate, cuStreamUpdateCaptureDependencies, stream, &b.last, 1,
              CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  return KILN_OK;
}

// --- graphs of their own --------------------------------------------------------------------------------------------

typedef struct built {
  CUgraph graph;
  CUgraphExec exec;    // NULL: there is none that may be launched
  kiln_cuda_kernel *k; // whose launches the nodes are
  node_list nodes;
} built;

struct kiln_cuda_graph {
  kl_ctx *cx; // its own
  kiln_cuda_kernel *k;
  kl_volley v;
  built made;
};

static void drop_built(kl_ctx *memory, const kiln_driver *d, built *x, bool there) {
  if (x->exec && there) d->fn.cuGraphExecDestroy(x->exec);
  if (x->graph) d->fn.cuGraphDestroy(x->graph); // of no context
  VEC_FREE(memory, &x->nodes);
  *x = (built){0};
}

static kiln_status build(kl_ctx *cx, kiln_cuda_graph *g, built *out) {
  kiln_cuda_kernel *k = out->k = g->v.k;
  KL_CUDA_TRY(cx, k->d, &k->fate, cuGraphCreate, &out->graph, 0);
  builder b = {.cx = cx, .v = &g->v, .graph = out->graph, .memory = g->cx, .nodes = &out->nodes};
  KL_TRY(add_all(&b));
  KL_CUDA_TRY(cx, k->d, &k->fate, cuGraphInstantiateWithFlags, &out->exec, out->graph, 0);
  return KILN_OK;
}

static kiln_status build_anew(kl_ctx *cx, kiln_cuda_graph *g) {
  built fresh = {0};
  const kiln_driver *d = g->v.k->d;
  kiln_status st = build(cx, g, &fresh);
  drop_built(g->cx, d, st == KILN_OK ? &g->made : &fresh, true);
  if (st == KILN_OK) g->made = fresh;
  return st;
}

// Other arguments for the nodes that there are.
static kiln_status set_nodes(kl_ctx *cx, kiln_cuda_graph *g) {
  kiln_cuda_kernel *k = g->v.k;
  for (size_t i = 0; i < g->made.nodes.n; i++) {
    CUDA_KERNEL_NODE_PARAMS_v1 p = node_params(&g->v, g->made.nodes.p[i].launch);
    KL_CUDA_TRY(cx, k->d, &k->fate, cuGraphExecKernelNodeSetParams, g->made.exec, g->made.nodes.p[i].node, &p);
  }
  return KILN_OK;
}

// Are the nodes those of these launches, and all of them?
static bool same_nodes(const kiln_cuda_graph *g) {
  if (!g->made.exec || g->made.k != g->v.k || g->v.k->program.manifest.step_count || g->made.nodes.n != g->v.listed)
    return false;
  for (size_t i = 0; i < g->v.listed; i++)
    if (g->made.nodes.p[i].launch != g->v.list[i]) return false;
  return true;
}

// What a failing driver has changed in part is launched no more.
static kiln_status bind(kl_ctx *cx, kiln_cuda_graph *g) {
  kiln_cuda_kernel *k = g->v.k;
  kl_cuda_scope scope;
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = same_nodes(g) ? set_nodes(cx, g) : build_anew(cx, g);
  if (st != KILN_OK) drop_built(g->cx, k->d, &g->made, true);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

kiln_status kiln_cuda_graph_update(kiln_context *cx, kiln_cuda_graph *g, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  KL_EXPECT(cx, g, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  KL_TRY(kl_check_silent(cx, &p, "a graph"));
  KL_TRY(kl_volley_set(cx, g->cx, g->k, &p, &g->v));
  return bind(cx, g);
}

kiln_status kiln_cuda_graph_create(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params,
                                   kiln_cuda_graph **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, k, params, out);
  KL_TRY(kiln_cuda_kernel_prepare(cx, k));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *gcx = kiln_context_create(&own);
  if (!gcx) return kl_out_of_memory(cx, sizeof *gcx, "a graph");
  kiln_cuda_graph *g = kl_alloc(gcx, sizeof *g);
  *g = (kiln_cuda_graph){.cx = gcx, .k = k};
  kiln_status st = kiln_cuda_graph_update(cx, g, params);
  if (st == KILN_OK)
    *out = g;
  else
    kiln_cuda_graph_destroy(&g);
  return st;
}

// Failures are not told. What was made ready in a context that is gone went with it.
void kiln_cuda_graph_destroy(kiln_cuda_graph **gp) {
  if (!gp || !*gp) return;
  kiln_cuda_graph *g = *gp;
  kl_ctx *cx = g->cx;
  const kiln_driver *d = g->k->d;
  CUcontext popped;
  if (kl_cuda_is_forked(d)) g->made.graph = NULL, g->made.exec = NULL; // the parent's
  CUresult code = g->made.graph ? d->fn.cuCtxPushCurrent(g->k->context) : CUDA_ERROR_INVALID_VALUE;
  drop_built(cx, d, &g->made, code != CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (code == CUDA_SUCCESS) d->fn.cuCtxPopCurrent(&popped);
  kl_volley_free(cx, &g->v);
  kl_free(cx, g, sizeof *g);
  kiln_context_destroy(&cx);
  *gp = NULL;
}

kiln_status kiln_cuda_graph_launch(kiln_context *cx, kiln_cuda_graph *g, void *stream) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, g);
  kiln_cuda_kernel *k = g->v.k;
  KL_TRY(kl_cuda_alive(cx, k->d, &k->fate));
  if (!g->made.exec) return kl_invalid(cx, KL_NOWHERE, "expected a graph whose last update worked: update it again");
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  CUresult code = k->d->fn.cuGraphLaunch(g->made.exec, stream);
  kiln_status st = code == CUDA_SUCCESS ? KILN_OK : kl_cuda_failed(cx, k->d, &k->fate, "cuGraphLaunch", code, NULL);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

void *kiln_cuda_graph_handle(const kiln_cuda_graph *g) {
  return g ? g->made.graph : NULL;
}

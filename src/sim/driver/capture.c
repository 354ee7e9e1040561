// Capture: what is put on a stream becomes nodes of a graph.

#include "sim/driver/impl.h"

static _Thread_local CUstreamCaptureMode thread_mode; // how strictly this thread is kept from what captures forbid

static kl_capture *capture_find(uint64_t id) {
  for (kl_capture *c = kl_sim.captures; c; c = c->next)
    if (c->id == id) return c;
  return NULL;
}

// --- what captures forbid -------------------------------------------------------------------------------------------

// Global captures keep all threads whose mode is global from such calls; thread-local ones their own thread.
CUresult kl_capture_permits(void) {
  CUresult code = CUDA_SUCCESS;
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (kl_capture *c = kl_sim.captures; c; c = c->next) {
    bool own = c->thread == kl_thread();
    bool forbids = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? own || thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                                                            : c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own;
    if (!forbids) continue;
    c->invalid = true;
    code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return code;
}

CUresult kl_stream_uncaptured(kl_cu_stream *s) {
  if (!s->capture) return CUDA_SUCCESS;
  s->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult kl_capture_spares_legacy(kl_cu_context *c) {
  size_t at = 0;
  CUresult code = CUDA_SUCCESS;
  if (!kl_sim.captures) return CUDA_SUCCESS;
  for (kl_cu_stream *s; (s = kl_object_next(KL_STREAM, &at));)
    if (s->o.context == c && s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
      s->capture->invalid = true;
      code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  return code;
}

CUresult kl_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  KL_GIVEN(mode);
  if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUstreamCaptureMode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

// --- beginning and ending -------------------------------------------------------------------------------------------

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, kl_cu_graph *given, kl_cu_stream **out) {
  kl_cu_stream *s;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_stream_check(handle, &s));
  if (s == s->o.context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s->capture) {
    s->capture->invalid = true;
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  kl_capture *c = kl_try_alloc(kl_sim.cx, sizeof *c);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  *c = (kl_capture){.id = ++kl_sim.serial,
                    .mode = mode,
                    .thread = kl_thread(),
                    .graph = given ? given : kl_graph_new(),
                    .origin = s,
                    .given = given != NULL,
                    .next = kl_sim.captures};
  if (!c->graph) {
    kl_free(kl_sim.cx, c, sizeof *c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  kl_sim.captures = c;
  c->graph->capturing = true;
  s->capture = c;
  s->after.n = 0;
  *out = s;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  kl_cu_stream *s;
  return begin(handle, mode, NULL, &s);
}

// Nodes of a graph by their handles.
static CUresult add_given(kl_nodes *to, const kl_cu_graph *g, const CUgraphNode *nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    kl_cu_node *d = kl_object_find(nodes[i], KL_NODE);
    if (!d || d->graph != g) return CUDA_ERROR_INVALID_VALUE;
    if (!kl_nodes_add(to, d)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *before,
                                        const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode) {
  kl_cu_stream *s;
  kl_cu_graph *g = kl_object_find(graph, KL_GRAPH);
  if (!g || g->capturing || (n && !before)) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(begin(handle, mode, g, &s));
  CUresult code = add_given(&s->after, g, before, n);
  if (code) kl_capture_end(s->capture);
  return code;
}

void kl_capture_end(kl_capture *c) {
  size_t at = 0;
  for (kl_cu_stream *s; (s = kl_object_next(KL_STREAM, &at));)
    if (s->capture == c) {
      s->capture = NULL;
      s->after.n = 0;
    }
  for (kl_capture **p = &kl_sim.captures; *p; p = &(*p)->next)
    if (*p == c) {
      *p = c->next;
      break;
    }
  if (c->graph) c->graph->capturing = false;
  if (c->graph && !c->given) kl_graph_delete(c->graph);
  kl_free(kl_sim.cx, c, sizeof *c);
}

// Has every stream that was drawn in been waited for? What was captured last in it must lead to the origin's last work.
static bool is_joined(const kl_capture *c) {
  size_t at = 0;
  for (kl_cu_stream *s; (s = kl_object_next(KL_STREAM, &at));) {
    if (s->capture != c || s == c->origin) continue;
    for (size_t i = 0; i < s->after.n; i++) {
      bool found = s->after.p[i]->behind.n > 0;
      for (size_t k = 0; k < c->origin->after.n && !found; k++) found = c->origin->after.p[k] == s->after.p[i];
      if (!found) return false;
    }
  }
  return true;
}

CUresult kl_cuStreamEndCapture(CUstream handle, CUgraph *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  *out = NULL;
  KL_RESULT(kl_stream_check(handle, &s));
  kl_capture *c = s->capture;
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != kl_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult code = c->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                  : s != c->origin ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
                  : !is_joined(c)  ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                   : CUDA_SUCCESS;
  if (code == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
    c->invalid = true;
    return code;
  }
  if (!code) {
    *out = KL_HANDLE(CUgraph, c->graph);
    c->graph->capturing = false;
    c->graph = NULL;
  }
  kl_capture_end(c);
  return code;
}

// --- across streams -------------------------------------------------------------------------------------------------

CUresult kl_capture_join(kl_cu_stream *s, kl_cu_event *e) {
  if (!e->capture) {
    if (!s->capture) return CUDA_SUCCESS;
    if (!e->recorded) return CUDA_SUCCESS;
    s->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  kl_capture *c = capture_find(e->capture);
  if (!c) return CUDA_ERROR_CAPTURED_EVENT;
  if (c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s == s->o.context->legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (s->capture && s->capture != c) {
    s->capture->invalid = c->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!s->capture) {
    s->capture = c;
    s->after.n = 0;
  }
  return kl_nodes_copy(&s->after, &e->after) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- questions ------------------------------------------------------------------------------------------------------

static CUstreamCaptureStatus status_of(const kl_cu_stream *s) {
  if (!s->capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult kl_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(kl_stream_check(handle, &s));
  *out = status_of(s);
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                      const CUgraphNode **after, size_t *n) {
  kl_cu_stream *s;
  KL_GIVEN(status);
  KL_RESULT(kl_stream_check(handle, &s));
  *status = status_of(s);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = s->capture->id;
  if (graph) *graph = KL_HANDLE(CUgraph, s->capture->graph);
  if (n) *n = s->after.n;
  if (!after) return CUDA_SUCCESS;
  kl_free(kl_sim.cx, s->told, s->ntold * sizeof *s->told);
  s->ntold = s->after.n;
  s->told = kl_try_alloc(kl_sim.cx, (s->ntold ? s->ntold : 1) * sizeof *s->told);
  if (!s->told) {
    s->ntold = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!s->ntold) s->ntold = 1; // its block's size; there is nothing in it
  for (size_t i = 0; i < s->after.n; i++) s->told[i] = KL_HANDLE(CUgraphNode, s->after.p[i]);
  *after = s->told;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id) {
  return kl_cuStreamGetCaptureInfo_v2(handle, status, id, NULL, NULL, NULL);
}

// Edges carry nothing here.
CUresult kl_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                      const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *n) {
  if (edges) *edges = NULL;
  return kl_cuStreamGetCaptureInfo_v2(handle, status, id, graph, after, n);
}

CUresult kl_cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, size_t n, unsigned flags) {
  kl_cu_stream *s;
  kl_nodes given = {0};
  KL_RESULT(kl_stream_check(handle, &s));
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !nodes)) return CUDA_ERROR_INVALID_VALUE;
  if (!s->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (s->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUresult code = add_given(&given, s->capture->graph, nodes, n);
  if (!code && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) s->after.n = 0;
  if (!code && !kl_nodes_copy(&s->after, &given)) code = CUDA_ERROR_OUT_OF_MEMORY;
  kl_nodes_free(&given);
  return code;
}

CUresult kl_cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                                 size_t n, unsigned flags) {
  return kl_cuStreamUpdateCaptureDependencies(handle, nodes, n, flags);
}

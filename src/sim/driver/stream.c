// Streams and events. What is put on a stream has happened when the call returns.

#include "sim/driver/impl.h"

#include <time.h>

uint64_t kl_thread(void) {
  static _Thread_local uint64_t number;
  if (!number) number = ++kl_sim.serial;
  return number;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// --- streams --------------------------------------------------------------------------------------------------------

kl_cu_stream *kl_stream_new(kl_cu_context *c, unsigned flags, int priority) {
  kl_cu_stream *s = kl_object_new(KL_STREAM, sizeof *s, c);
  if (!s) return NULL;
  s->flags = flags;
  s->priority = priority;
  s->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = priority;
  return s;
}

void kl_stream_delete(kl_cu_stream *s) {
  if (s->capture) kl_capture_end(s->capture);
  kl_nodes_free(&s->after);
  kl_free(kl_sim.cx, s->told, s->ntold * sizeof *s->told);
  kl_object_delete(s, sizeof *s);
}

// The stream of the current context that is this thread's own.
static CUresult own_stream_of(kl_cu_context *c, kl_cu_stream **out) {
  size_t at = 0;
  for (kl_cu_stream *s; (s = kl_object_next(KL_STREAM, &at));)
    if (s->o.context == c && s->thread == kl_thread()) {
      *out = s;
      return CUDA_SUCCESS;
    }
  *out = kl_stream_new(c, 0, 0);
  if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
  (*out)->is_default = true;
  (*out)->thread = kl_thread();
  return CUDA_SUCCESS;
}

CUresult kl_stream_check(CUstream handle, kl_cu_stream **out) {
  kl_cu_context *c = kl_current();
  if (handle == CU_STREAM_PER_THREAD || (!handle && kl_own_stream())) return own_stream_of(c, out);
  if (!handle || handle == CU_STREAM_LEGACY) {
    *out = c->legacy;
    return kl_capture_spares_legacy(c);
  }
  *out = kl_object_find(handle, KL_STREAM);
  if (!*out) return CUDA_ERROR_INVALID_HANDLE;
  return (*out)->o.context->lost;
}

CUresult kl_cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  KL_GIVEN(out);
  if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  priority = priority > 0 ? 0 : priority < KL_GREATEST_PRIORITY ? KL_GREATEST_PRIORITY : priority;
  kl_cu_stream *s = kl_stream_new(kl_current(), flags, priority);
  if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = KL_HANDLE(CUstream, s);
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamCreate(CUstream *out, unsigned flags) {
  return kl_cuStreamCreateWithPriority(out, flags, 0);
}

CUresult kl_cuStreamDestroy_v2(CUstream handle) {
  kl_cu_stream *s = kl_object_find(handle, KL_STREAM);
  if (!s || s->is_default) return CUDA_ERROR_INVALID_HANDLE;
  kl_stream_delete(s);
  return CUDA_SUCCESS;
}

// Questions that no capture minds: also of the default stream while others are captured.
static CUresult ask(CUstream handle, kl_cu_stream **out) {
  CUresult code = kl_stream_check(handle, out);
  return code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? CUDA_SUCCESS : code;
}

CUresult kl_cuStreamGetPriority(CUstream handle, int *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  *out = s->priority;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetFlags(CUstream handle, unsigned *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  *out = s->flags;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetId(CUstream handle, unsigned long long *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  *out = s->o.handle & 0xffffffffffffff;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetDevice(CUstream handle, CUdevice *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  *out = s->o.context->device;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetCtx(CUstream handle, CUcontext *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  *out = KL_HANDLE(CUcontext, s->o.context);
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamQuery(CUstream handle) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(handle, &s));
  return kl_stream_uncaptured(s);
}

CUresult kl_cuStreamSynchronize(CUstream handle) {
  return kl_cuStreamQuery(handle);
}

// --- attributes -----------------------------------------------------------------------------------------------------

static bool is_stream_attribute(CUstreamAttrID which) {
  return which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
         which == CU_LAUNCH_ATTRIBUTE_PRIORITY || which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
         which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUresult kl_cuStreamCopyAttributes(CUstream to, CUstream from) {
  kl_cu_stream *a, *b;
  KL_RESULT(ask(to, &a));
  KL_RESULT(ask(from, &b));
  memcpy(a->attributes, b->attributes, sizeof a->attributes);
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamGetAttribute(CUstream handle, CUstreamAttrID which, CUstreamAttrValue *out) {
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(ask(handle, &s));
  if (!is_stream_attribute(which)) return CUDA_ERROR_INVALID_VALUE;
  *out = s->attributes[which];
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamSetAttribute(CUstream handle, CUstreamAttrID which, const CUstreamAttrValue *value) {
  kl_cu_stream *s;
  KL_GIVEN(value);
  KL_RESULT(ask(handle, &s));
  if (!is_stream_attribute(which)) return CUDA_ERROR_INVALID_VALUE;
  s->attributes[which] = *value;
  if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) s->priority = value->priority;
  return CUDA_SUCCESS;
}

// --- the host's functions, and values in memory
// -----------------------------------------------------------------------

static CUresult submit_host(CUstream handle, CUhostFn fn, CUstreamCallback callback, void *data) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(handle, &s));
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_HOST, .context = s->o.context->o.handle};
  w.host.fn = fn;
  w.host.callback = callback;
  w.host.stream = handle;
  w.host.data = data;
  return kl_submit(s, &w);
}

CUresult kl_cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *data) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  return submit_host(handle, fn, NULL, data);
}

CUresult kl_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data, unsigned flags) {
  kl_cu_stream *s;
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_stream_check(handle, &s));
  KL_RESULT(kl_stream_uncaptured(s));
  return submit_host(handle, NULL, callback, data);
}

static CUresult write_value(CUstream handle, CUdeviceptr to, uint64_t value, unsigned bytes) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(handle, &s));
  if (to % bytes || !kl_memory_at(&kl_sim.memory, to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .context = s->o.context->o.handle};
  w.write.to = to;
  w.write.value = value;
  w.write.bytes = bytes;
  return kl_submit(s, &w);
}

// All that could write the value has happened: a wait that is not over would last for ever.
static CUresult wait_value(CUstream handle, CUdeviceptr from, uint64_t value, unsigned flags, unsigned bytes) {
  kl_cu_stream *s;
  uint64_t found = 0;
  KL_RESULT(kl_stream_check(handle, &s));
  const char *at = from % bytes ? NULL : kl_memory_at(&kl_sim.memory, from, bytes);
  if (!at || flags & ~3u) return CUDA_ERROR_INVALID_VALUE;
  if (s->capture) return CUDA_SUCCESS;
  memcpy(&found, at, bytes);
  bool over = false;
  switch (flags) {
  case CU_STREAM_WAIT_VALUE_GEQ:
    over = bytes == 4 ? (int32_t)((uint32_t)found - (uint32_t)value) >= 0 : (int64_t)(found - value) >= 0;
    break;
  case CU_STREAM_WAIT_VALUE_EQ: over = found == value; break;
  case CU_STREAM_WAIT_VALUE_AND: over = (found & value) != 0; break;
  case CU_STREAM_WAIT_VALUE_NOR: over = (bytes == 4 ? (uint32_t) ~(found | value) : ~(found | value)) != 0; break;
  }
  if (!over) s->o.context->lost = CUDA_ERROR_LAUNCH_TIMEOUT;
  return CUDA_SUCCESS;
}

CUresult kl_cuStreamWriteValue32_v2(CUstream s, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  return flags & ~1u ? CUDA_ERROR_INVALID_VALUE : write_value(s, to, value, 4);
}
CUresult kl_cuStreamWriteValue64_v2(CUstream s, CUdeviceptr to, cuuint64_t value, unsigned flags) {
  return flags & ~1u ? CUDA_ERROR_INVALID_VALUE : write_value(s, to, value, 8);
}
CUresult kl_cuStreamWaitValue32_v2(CUstream s, CUdeviceptr from, cuuint32_t value, unsigned flags) {
  return wait_value(s, from, value, flags, 4);
}
CUresult kl_cuStreamWaitValue64_v2(CUstream s, CUdeviceptr from, cuuint64_t value, unsigned flags) {
  return wait_value(s, from, value, flags, 8);
}

CUresult kl_cuStreamBatchMemOp_v2(CUstream s, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags) {
  KL_GIVEN(ops);
  if (n == 0 || n > 256 || flags) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < n; i++) {
    const CUstreamBatchMemOpParams *o = &ops[i];
    switch (o->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      KL_RESULT(wait_value(s, o->waitValue.address, (uint32_t)o->waitValue.value64, o->waitValue.flags, 4));
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      KL_RESULT(wait_value(s, o->waitValue.address, o->waitValue.value64, o->waitValue.flags, 8));
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      KL_RESULT(write_value(s, o->writeValue.address, (uint32_t)o->writeValue.value64, 4));
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      KL_RESULT(write_value(s, o->writeValue.address, o->writeValue.value64, 8));
      break;
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

// --- events ---------------------------------------------------------------------------------------------------------

void kl_event_happens(kl_cu_event *e) {
  e->recorded = true;
  e->capture = 0;
  kl_nodes_free(&e->after);
  e->at = now();
}

void kl_event_delete(kl_cu_event *e) {
  kl_nodes_free(&e->after);
  kl_object_delete(e, sizeof *e);
}

CUresult kl_event_check(CUevent handle, kl_cu_event **out) {
  *out = kl_object_find(handle, KL_EVENT);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuEventCreate(CUevent *out, unsigned flags) {
  KL_GIVEN(out);
  if (flags > 7 || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS) return CUDA_ERROR_NOT_SUPPORTED;
  kl_cu_event *e = kl_object_new(KL_EVENT, sizeof *e, kl_current());
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->flags = flags;
  *out = KL_HANDLE(CUevent, e);
  return CUDA_SUCCESS;
}

CUresult kl_cuEventDestroy_v2(CUevent handle) {
  kl_cu_event *e;
  KL_RESULT(kl_event_check(handle, &e));
  kl_event_delete(e);
  return CUDA_SUCCESS;
}

// In a capture an event stands for the work before it; an external one becomes a node.
CUresult kl_cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
  kl_cu_event *e;
  kl_cu_stream *s;
  if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_event_check(handle, &e));
  KL_RESULT(kl_stream_check(stream, &s));
  if (e->o.context != s->o.context) return CUDA_ERROR_INVALID_HANDLE;
  if (!s->capture || flags == CU_EVENT_RECORD_EXTERNAL) {
    kl_work w = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .context = s->o.context->o.handle};
    w.event = handle;
    return kl_submit(s, &w);
  }
  if (s->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  e->capture = s->capture->id;
  e->after.n = 0;
  return kl_nodes_copy(&e->after, &s->after) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult kl_cuEventRecord(CUevent handle, CUstream stream) {
  return kl_cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult kl_cuEventQuery(CUevent handle) {
  kl_cu_event *e;
  KL_RESULT(kl_event_check(handle, &e));
  if (e->o.context->lost) return e->o.context->lost;
  return e->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult kl_cuEventSynchronize(CUevent handle) {
  return kl_cuEventQuery(handle);
}

CUresult kl_cuEventElapsedTime_v2(float *out, CUevent from, CUevent to) {
  kl_cu_event *a, *b;
  KL_GIVEN(out);
  KL_RESULT(kl_event_check(from, &a));
  KL_RESULT(kl_event_check(to, &b));
  if (a->capture || b->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (!a->recorded || !b->recorded || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  *out = (float)(b->at - a->at);
  return CUDA_SUCCESS;
}

CUresult kl_cuEventElapsedTime(float *out, CUevent from, CUevent to) {
  return kl_cuEventElapsedTime_v2(out, from, to);
}

// What happened is waited for; what is being captured is made a dependency, and draws the stream into the capture.
CUresult kl_cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
  kl_cu_event *e;
  kl_cu_stream *s;
  if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_event_check(handle, &e));
  KL_RESULT(kl_stream_check(stream, &s));
  if (flags == CU_EVENT_WAIT_EXTERNAL) {
    kl_work w = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .context = s->o.context->o.handle};
    w.event = handle;
    if (!s->capture) return CUDA_ERROR_INVALID_VALUE;
    return kl_submit(s, &w);
  }
  return kl_capture_join(s, e);
}

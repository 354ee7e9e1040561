// The example of a runtime with a pool of streams (examples/streams.c), on a driver that is late: what is put on a
// stream is done when somebody waits, or at any time before, in an order that a seed draws from all that streams and
// events allow. Where an event is missing, a kernel reads what is not there yet, and a request is wrong. The simulator
// does each thing as it is put on a stream, and would hide that.
#include "cuda/abi.h"
#include "support/share.h"
#include "support/suite.h"

#include <kiln/kiln.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- the late driver
// --------------------------------------------------------------------------------------------------

#define EARLIER(X)                                                                                                     \
  X(cuLaunchKernelEx, 11060, (const CUlaunchConfig *, CUfunction, void **, void **))                                   \
  X(cuFuncGetParamInfo, 12040, (CUfunction, size_t, size_t *, size_t *))                                               \
  X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))                                            \
  X(cuMemcpyDtoHAsync, 3020, (void *, CUdeviceptr, size_t, CUstream))                                                  \
  X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                             \
  X(cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream))
#define X(name, version, signature) static CUresult(*sim_##name) signature;
EARLIER(X)
#undef X

typedef enum { LAUNCH, UPLOAD, DOWNLOAD, COPY, FILL, RECORD, WAIT } kind;

enum { MOST = 4096, MOST_ARGUMENTS = 16, MOST_ATTRIBUTES = 4 };
typedef struct work {
  kind kind;
  CUstream stream;
  bool done;
  int behind;    // of a wait: the record it waits for; -1: none
  CUevent event; // of a record
  CUdeviceptr to, from;
  void *host;
  size_t bytes;
  unsigned char value;
  CUlaunchConfig config;
  CUlaunchAttribute attributes[MOST_ATTRIBUTES];
  CUfunction function;
  uint64_t arguments[MOST_ARGUMENTS];
} work;
static work all[MOST];
static int count;
static uint64_t seed;
static bool is_idle; // does nothing before somebody waits

static unsigned draw(unsigned n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((seed >> 33) % n);
}

static bool is_next(int i) {
  const work *w = &all[i];
  if (w->done || (w->kind == WAIT && w->behind >= 0 && !all[w->behind].done)) return false;
  for (int k = 0; k < i; k++)
    if (!all[k].done && all[k].stream == w->stream) return false;
  return true;
}

static CUresult perform(work *w) {
  w->done = true;
  void *pointers[MOST_ARGUMENTS];
  switch (w->kind) {
  case LAUNCH:
    w->config.attrs = w->attributes;
    for (int i = 0; i < MOST_ARGUMENTS; i++) pointers[i] = &w->arguments[i];
    return sim_cuLaunchKernelEx(&w->config, w->function, pointers, NULL);
  case UPLOAD: return sim_cuMemcpyHtoDAsync(w->to, w->host, w->bytes, w->stream);
  case DOWNLOAD: return sim_cuMemcpyDtoHAsync(w->host, w->from, w->bytes, w->stream);
  case COPY: return sim_cuMemcpyDtoDAsync(w->to, w->from, w->bytes, w->stream);
  case FILL: return sim_cuMemsetD8Async(w->to, w->value, w->bytes, w->stream);
  default: return CUDA_SUCCESS;
  }
}

// Does one thing that may be done now. False where there is none.
static bool step(CUresult *code) {
  int ready[MOST], n = 0;
  for (int i = 0; i < count; i++)
    if (is_next(i)) ready[n++] = i;
  if (n) *code = perform(&all[ready[draw((unsigned)n)]]);
  return n > 0;
}

// Behind a call, some of what there is may be done at once.
static CUresult put(work w) {
  CUresult code = CUDA_SUCCESS;
  ck_assert_int_lt(count, MOST);
  all[count++] = w;
  if (!is_idle)
    for (unsigned n = draw(4); n && !code && step(&code); n--) continue;
  return code;
}

static CUresult finish(CUstream stream, int record) {
  CUresult code = CUDA_SUCCESS;
  for (bool open = true; open && !code;) {
    open = false;
    for (int i = 0; i < count; i++) open |= !all[i].done && (record < 0 ? all[i].stream == stream : i == record);
    if (open && !step(&code)) return CUDA_ERROR_UNKNOWN;
  }
  return code;
}

static int last_record(CUevent e) {
  for (int i = count - 1; i >= 0; i--)
    if (all[i].kind == RECORD && all[i].event == e) return i;
  return -1;
}

static CUresult late_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  work w = {.kind = LAUNCH, .stream = c->hStream, .config = *c, .function = f};
  size_t offset, bytes;
  ck_assert_uint_le(c->numAttrs, MOST_ATTRIBUTES);
  if (c->numAttrs) memcpy(w.attributes, c->attrs, c->numAttrs * sizeof *w.attributes);
  for (size_t i = 0; sim_cuFuncGetParamInfo(f, i, &offset, &bytes) == CUDA_SUCCESS; i++) {
    ck_assert_uint_lt(i, MOST_ARGUMENTS);
    memcpy(&w.arguments[i], arguments[i], bytes);
  }
  ck_assert_ptr_null(extra);
  return put(w);
}
static CUresult late_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
  return put((work){.kind = UPLOAD, .stream = s, .to = to, .host = (void *)from, .bytes = n});
}
static CUresult late_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
  return put((work){.kind = DOWNLOAD, .stream = s, .host = to, .from = from, .bytes = n});
}
static CUresult late_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  return put((work){.kind = COPY, .stream = s, .to = to, .from = from, .bytes = n});
}
static CUresult late_cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
  return put((work){.kind = FILL, .stream = s, .to = to, .value = v, .bytes = n});
}
static CUresult late_cuEventRecord(CUevent e, CUstream s) {
  return put((work){.kind = RECORD, .stream = s, .event = e});
}
static CUresult late_cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
  return put((work){.kind = WAIT, .stream = s, .behind = last_record(e)});
}
static CUresult late_cuEventSynchronize(CUevent e) {
  int record = last_record(e);
  return record < 0 ? CUDA_SUCCESS : finish(NULL, record);
}
static CUresult late_cuStreamSynchronize(CUstream s) {
  return finish(s, -1);
}

static void *late_resolve(void *user, const char *name, int version) {
#define X(call)                                                                                                        \
  if (strcmp(name, #call) == 0) return (void *)late_##call;
  X(cuLaunchKernelEx)
  X(cuMemcpyHtoDAsync)
  X(cuMemcpyDtoHAsync)
  X(cuMemcpyDtoDAsync)
  X(cuMemsetD8Async)
  X(cuEventRecord)
  X(cuStreamWaitEvent)
  X(cuEventSynchronize)
  X(cuStreamSynchronize)
#undef X
  return kiln_sim_resolve(user, name, version);
}

// --- the example
// ------------------------------------------------------------------------------------------------------

int run_example(int argc, char **argv);
#define kiln_sim_resolve late_resolve
#define main             run_example
#include "../../examples/streams.c"
#undef kiln_sim_resolve
#undef main

START_TEST(every_order) {
  char *words[] = {(char *)"streams", NULL};
  EXPECT(freopen("/dev/null", "w", stdout) != NULL, "no /dev/null");
#define X(name, version, signature)                                                                                    \
  sim_##name = (CUresult(*) signature)kiln_sim_resolve(NULL, #name, version);                                          \
  EXPECT(sim_##name != NULL, #name);
  EARLIER(X)
#undef X
  for (uint64_t k = 0; k < share_of(8); k++) {
    seed = k;
    is_idle = k % 4 == 0;
    count = 0;
    EXPECT(run_example(1, words) == 0, "seed %llu: a request is wrong", (unsigned long long)k);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("streams", IN_CHILDREN, {every_order});
}

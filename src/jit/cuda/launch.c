// Launches: bound to buffers once for each call, or once for many.

#include "jit/cuda/kernel.h"

// --- binding --------------------------------------------------------------------------------------------------------

static size_t slot_count(const kiln_manifest *f) {
  return f->parameter_count + f->result_count;
}

static void init(kl_ctx *memory, kiln_cuda_kernel *k, kl_volley *v) {
  const kiln_manifest *f = &k->program.manifest;
  size_t slots = slot_count(f), launches = f->launch_count, arguments = 0;
  for (size_t i = 0; i < launches; i++) arguments += f->launches[i].argument_count;
  size_t words = slots + 2 * arguments + 1;
  *v = (kl_volley){.k = k, .bytes = words * sizeof(uint64_t) + launches * (sizeof(kl_shot) + sizeof(uint32_t))};
  v->memory = kl_alloc(memory, v->bytes);
  v->shots = v->memory;
  v->at = (uint64_t *)(v->shots + launches);
  void **args = (void **)(v->at + slots);
  uint64_t *values = (uint64_t *)(args + arguments);
  v->list = (uint32_t *)(values + arguments + 1);
  for (size_t i = 0; i < launches; i++) {
    v->shots[i].args = args;
    for (size_t n = 0; n < f->launches[i].argument_count; n++) *args++ = values++;
  }
}

void kl_volley_free(kl_ctx *memory, kl_volley *v) {
  if (v->memory) kl_free(memory, v->memory, v->bytes);
  *v = (kl_volley){0};
}

static void make_shot(const kl_volley *v, const kiln_launch *l, kl_shot *s) {
  unsigned n = 0;
  for (size_t i = 0; i < l->argument_count; i++)
    *(uint64_t *)s->args[i] = kl_program_argument(&l->arguments[i], v->at, v->count, v->scratch);
  if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1)
    s->attributes[n++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value = {.clusterDim = {l->cluster[0], l->cluster[1], l->cluster[2]}},
    };
  if (l->programmatic)
    s->attributes[n++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value = {.programmaticStreamSerializationAllowed = 1},
    };
  s->config = (CUlaunchConfig){.gridDimX = kl_program_grid(&v->k->program, l, v->count),
                               .gridDimY = l->grid[1],
                               .gridDimZ = l->grid[2],
                               .blockDimX = l->block[0],
                               .blockDimY = l->block[1],
                               .blockDimZ = l->block[2],
                               .sharedMemBytes = l->dynamic_shared_bytes,
                               .attrs = n ? s->attributes : NULL,
                               .numAttrs = n};
}

// The slots' new values are looked at in a place of their own, so that a failure changes nothing.
static kiln_status take_slots(kl_ctx *cx, kl_volley *v, const kiln_cuda_launch_params *p, uint64_t *at) {
  const kl_program *program = &v->k->program;
  const kiln_manifest *f = &program->manifest;
  KL_TRY(kl_program_arrays(cx, program, p->parameters, p->results));
  if (f->parameter_count) memcpy(at, p->parameters, f->parameter_count * sizeof *at);
  if (f->result_count) memcpy(at + f->parameter_count, p->results, f->result_count * sizeof *at);
  return kl_program_check(cx, program, at, p->count, p->scratch);
}

enum { FEW = 64 };

static kiln_status set(kl_ctx *cx, kl_volley *v, const kiln_cuda_launch_params *p) {
  const kl_program *program = &v->k->program;
  const kiln_manifest *f = &program->manifest;
  uint64_t few[FEW], *at = few;
  size_t slots = slot_count(f);
  if (slots > FEW) at = kl_alloc(cx, slots * sizeof *at);
  kiln_status st = take_slots(cx, v, p, at);
  if (st == KILN_OK) {
    memcpy(v->at, at, slots * sizeof *at);
    v->count = p->count;
    v->scratch = p->scratch;
    v->listed = 0;
  }
  if (at != few) kl_free(cx, at, slots * sizeof *at);
  for (size_t i = 0; i < f->launch_count && st == KILN_OK; i++) {
    make_shot(v, &f->launches[i], &v->shots[i]);
    if (v->shots[i].config.gridDimX && kl_program_launches(program, &f->launches[i], v->at))
      v->list[v->listed++] = (uint32_t)i;
  }
  return st;
}

kiln_status kl_volley_set(kl_ctx *cx, kl_ctx *memory, kiln_cuda_kernel *k, const kiln_cuda_launch_params *p,
                          kl_volley *v) {
  if (k->less && !kl_program_is_aligned(&k->program, p->parameters, p->results, p->count)) k = k->less;
  if (v->k == k) return set(cx, v, p);
  kl_volley fresh;
  init(memory, k, &fresh);
  kiln_status st = set(cx, &fresh, p);
  kl_volley_free(memory, st == KILN_OK ? v : &fresh);
  if (st == KILN_OK) *v = fresh;
  return st;
}

// --- launching ------------------------------------------------------------------------------------------------------

// One call's.
typedef struct launch {
  kl_ctx *cx;
  const kl_volley *v;
  CUstream stream;
  const kiln_cuda_launch_params *p; // NULL: nobody is told
} launch;

static CUresult fire(const kl_volley *v, size_t i, CUstream stream) {
  const kl_shot *s = &v->shots[i];
  CUlaunchConfig config = s->config;
  config.hStream = stream;
  return v->k->d->fn.cuLaunchKernelEx(&config, v->k->fn[i], s->args, NULL);
}

static kiln_status launch_failed(kl_ctx *cx, const kl_volley *v, CUresult code) {
  return kl_cuda_failed(cx, v->k->d, &v->k->fate, "cuLaunchKernelEx", code, NULL);
}

static kiln_status launch_one(void *user, size_t i) {
  const launch *l = user;
  if (l->v->shots[i].config.gridDimX == 0) return KILN_OK;
  double start = l->p ? kl_seconds() : 0;
  CUresult code = fire(l->v, i, l->stream);
  if (code != CUDA_SUCCESS) return launch_failed(l->cx, l->v, code);
  if (!l->p) return KILN_OK;
  KL_CUDA_TRY(l->cx, l->v->k->d, &l->v->k->fate, cuStreamSynchronize, l->stream);
  l->p->launched(l->p->user, i, kl_seconds() - start);
  return KILN_OK;
}

static kiln_status is_capturing(kl_ctx *cx, kiln_cuda_kernel *k, CUstream stream, bool *out) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  KL_CUDA_TRY(cx, k->d, &k->fate, cuStreamIsCapturing, stream, &status);
  *out = status != CU_STREAM_CAPTURE_STATUS_NONE;
  return KILN_OK;
}

// By a copy behind what was launched, which is waited for.
static kiln_status read_condition(void *user, const kiln_argument *a, void *to, uint32_t bytes) {
  const launch *l = user;
  kiln_cuda_kernel *k = l->v->k;
  KL_CUDA_TRY(l->cx, k->d, &k->fate, cuMemcpyDtoHAsync, to,
              kl_program_argument(a, l->v->at, l->v->count, l->v->scratch), bytes, l->stream);
  KL_CUDA_TRY(l->cx, k->d, &k->fate, cuStreamSynchronize, l->stream);
  return KILN_OK;
}

// Loading while a stream is captured would end the capture.
kiln_status kl_prepare_unless_capturing(kl_ctx *cx, kiln_cuda_kernel *k, CUstream stream) {
  bool capturing = false;
  if (atomic_load(&k->ready)) return KILN_OK;
  KL_TRY(is_capturing(cx, k, stream, &capturing));
  if (capturing)
    return kl_invalid(cx, KL_NOWHERE,
                      "the stream is being captured and the kernel is not loaded yet: call kiln_cuda_kernel_prepare "
                      "before the capture begins");
  return kiln_cuda_kernel_prepare(cx, k);
}

// Launches that somebody waits for, one by one or for a condition.
static kiln_status launch_steps(kl_ctx *cx, const kl_volley *v, CUstream stream, const kiln_cuda_launch_params *p) {
  launch l = {cx, v, stream, p};
  kl_runner runner = {&l, launch_one, read_condition};
  bool capturing = false;
  KL_TRY(is_capturing(cx, v->k, stream, &capturing));
  if (capturing && p)
    return kl_invalid(cx, KL_NOWHERE,
                      "the stream is being captured: expected no `launched`, as nothing can be waited for");
  if (capturing) return kl_capture_steps(cx, v, stream);
  return kl_program_run(&v->k->program, v->at, &runner);
}

static kiln_status launch_all(kl_ctx *cx, const kl_volley *v, CUstream stream, const kiln_cuda_launch_params *p) {
  bool told = p && p->launched;
  if (told || v->k->program.manifest.step_count) return launch_steps(cx, v, stream, told ? p : NULL);
  for (size_t i = 0; i < v->listed; i++) {
    CUresult code = fire(v, v->list[i], stream);
    if (code != CUDA_SUCCESS) return launch_failed(cx, v, code);
  }
  return KILN_OK;
}

kiln_status kiln_cuda_kernel_launch(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  kl_cuda_scope scope;
  kl_volley v = {0};
  KL_EXPECT(cx, k, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  kiln_status st = kl_volley_set(cx, cx, k, &p, &v);
  if (st == KILN_OK) st = kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope);
  if (st == KILN_OK) {
    st = kl_prepare_unless_capturing(cx, k, p.stream);
    if (st == KILN_OK) st = launch_all(cx, &v, p.stream, &p);
    st = kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
  }
  kl_volley_free(cx, &v);
  return st;
}

kiln_status kl_check_silent(kl_ctx *cx, const kiln_cuda_launch_params *p, const char *what) {
  return p->launched ? kl_invalid(cx, KL_NOWHERE, "%s tells of no launches: expected no `launched`, found one", what)
                     : KILN_OK;
}

// --- frozen launches ------------------------------------------------------------------------------------------------

struct kiln_cuda_frozen {
  kl_ctx *cx; // its own
  kiln_cuda_kernel *k;
  kl_volley v;
};

kiln_status kiln_cuda_frozen_create(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params,
                                    kiln_cuda_frozen **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, k, params, out);
  KL_TRY(kiln_cuda_kernel_prepare(cx, k));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *fcx = kiln_context_create(&own);
  if (!fcx) return kl_out_of_memory(cx, sizeof *fcx, "a frozen launch");
  kiln_cuda_frozen *f = kl_alloc(fcx, sizeof *f);
  *f = (kiln_cuda_frozen){.cx = fcx, .k = k};
  kiln_status st = kiln_cuda_frozen_bind(cx, f, params);
  if (st == KILN_OK)
    *out = f;
  else
    kiln_cuda_frozen_destroy(&f);
  return st;
}

void kiln_cuda_frozen_destroy(kiln_cuda_frozen **fp) {
  if (!fp || !*fp) return;
  kiln_cuda_frozen *f = *fp;
  kl_ctx *cx = f->cx;
  kl_volley_free(cx, &f->v);
  kl_free(cx, f, sizeof *f);
  kiln_context_destroy(&cx);
  *fp = NULL;
}

kiln_status kiln_cuda_frozen_bind(kiln_context *cx, kiln_cuda_frozen *f, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  KL_EXPECT(cx, f, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  KL_TRY(kl_check_silent(cx, &p, "a frozen launch"));
  return kl_volley_set(cx, f->cx, f->k, &p, &f->v);
}

kiln_status kiln_cuda_frozen_launch(kiln_context *cx, const kiln_cuda_frozen *f, void *stream) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, f);
  kiln_cuda_kernel *k = f->v.k;
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = launch_all(cx, &f->v, stream, NULL);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

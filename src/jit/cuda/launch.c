// Launches: bound to buffers once for each call, or once for many.

#include "jit/cuda/kernel.h"

// --- binding --------------------------------------------------------------------------------------------------------

static size_t slot_count(const kiln_manifest *f) {
  return f->parameter_count + f->result_count;
}

void kl_volley_init(kl_ctx *memory, kiln_cuda_kernel *k, kl_volley *b) {
  const kiln_manifest *f = &k->program.manifest;
  size_t slots = slot_count(f), launches = f->launch_count, arguments = 0;
  for (size_t i = 0; i < launches; i++) arguments += f->launches[i].argument_count;
  size_t words = slots + 2 * arguments + 1;
  *b = (kl_volley){.k = k, .bytes = words * sizeof(uint64_t) + launches * (sizeof(kl_shot) + sizeof(uint32_t))};
  b->memory = kl_alloc(memory, b->bytes);
  b->shots = b->memory;
  b->at = (uint64_t *)(b->shots + launches);
  void **args = (void **)(b->at + slots);
  uint64_t *values = (uint64_t *)(args + arguments);
  b->list = (uint32_t *)(values + arguments + 1);
  for (size_t i = 0; i < launches; i++) {
    b->shots[i].args = args;
    for (size_t n = 0; n < f->launches[i].argument_count; n++) *args++ = values++;
  }
}

void kl_volley_free(kl_ctx *memory, kl_volley *b) {
  if (b->memory) kl_free(memory, b->memory, b->bytes);
  *b = (kl_volley){0};
}

static void make_shot(const kl_volley *b, const kiln_launch *l, kl_shot *s) {
  unsigned n = 0;
  for (size_t i = 0; i < l->argument_count; i++)
    *(uint64_t *)s->args[i] = kl_program_argument(&l->arguments[i], b->at, b->count, b->scratch);
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
  s->config = (CUlaunchConfig){.gridDimX = kl_program_grid(&b->k->program, l, b->count),
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
static kiln_status take_slots(kl_ctx *cx, kl_volley *b, const kiln_cuda_launch_params *p, uint64_t *at) {
  const kl_program *program = &b->k->program;
  const kiln_manifest *f = &program->manifest;
  KL_TRY(kl_program_arrays(cx, program, p->parameters, p->results));
  if (f->parameter_count) memcpy(at, p->parameters, f->parameter_count * sizeof *at);
  if (f->result_count) memcpy(at + f->parameter_count, p->results, f->result_count * sizeof *at);
  return kl_program_check(cx, program, at, p->count, p->scratch);
}

enum { FEW = 64 };

kiln_status kl_volley_set(kl_ctx *cx, kl_volley *b, const kiln_cuda_launch_params *p) {
  const kl_program *program = &b->k->program;
  const kiln_manifest *f = &program->manifest;
  uint64_t few[FEW], *at = few;
  size_t slots = slot_count(f);
  if (slots > FEW) at = kl_alloc(cx, slots * sizeof *at);
  kiln_status st = take_slots(cx, b, p, at);
  if (st == KILN_OK) {
    memcpy(b->at, at, slots * sizeof *at);
    b->count = p->count;
    b->scratch = p->scratch;
    b->listed = 0;
  }
  if (at != few) kl_free(cx, at, slots * sizeof *at);
  for (size_t i = 0; i < f->launch_count && st == KILN_OK; i++) {
    make_shot(b, &f->launches[i], &b->shots[i]);
    if (b->shots[i].config.gridDimX && kl_program_launches(program, &f->launches[i], b->at))
      b->list[b->listed++] = (uint32_t)i;
  }
  return st;
}

// --- launching ------------------------------------------------------------------------------------------------------

// One call's.
typedef struct launch {
  kl_ctx *cx;
  const kl_volley *b;
  CUstream stream;
  const kiln_cuda_launch_params *p; // NULL: nobody is told
} launch;

static CUresult fire(const kl_volley *b, size_t i, CUstream stream) {
  const kl_shot *s = &b->shots[i];
  CUlaunchConfig config = s->config;
  config.hStream = stream;
  return b->k->d->fn.cuLaunchKernelEx(&config, b->k->fn[i], s->args, NULL);
}

static kiln_status launch_failed(kl_ctx *cx, const kl_volley *b, CUresult code) {
  return kl_cuda_failed(cx, b->k->d, &b->k->fate, "cuLaunchKernelEx", code, NULL);
}

static kiln_status launch_one(void *user, size_t i) {
  const launch *l = user;
  if (l->b->shots[i].config.gridDimX == 0) return KILN_OK;
  double start = l->p ? kl_seconds() : 0;
  CUresult code = fire(l->b, i, l->stream);
  if (code != CUDA_SUCCESS) return launch_failed(l->cx, l->b, code);
  if (!l->p) return KILN_OK;
  KL_CUDA_TRY(l->cx, l->b->k->d, &l->b->k->fate, cuStreamSynchronize, l->stream);
  l->p->launched(l->p->user, i, kl_seconds() - start);
  return KILN_OK;
}

static kiln_status is_capturing(kl_ctx *cx, kiln_cuda_kernel *k, CUstream stream, bool *out) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  KL_CUDA_TRY(cx, k->d, &k->fate, cuStreamIsCapturing, stream, &status);
  *out = status != CU_STREAM_CAPTURE_STATUS_NONE;
  return KILN_OK;
}

// By a copy behind what was launched, which is waited for: a stream that is being captured cannot be.
static kiln_status read_condition(void *user, const kiln_argument *a, bool *again) {
  const launch *l = user;
  kiln_cuda_kernel *k = l->b->k;
  uint8_t byte = 0;
  bool capturing;
  KL_TRY(is_capturing(l->cx, k, l->stream, &capturing));
  if (capturing)
    return kl_unsupported(l->cx, KL_NOWHERE,
                          "the stream is being captured and the module has a loop whose condition is read on the way");
  KL_CUDA_TRY(l->cx, k->d, &k->fate, cuMemcpyDtoHAsync, &byte,
              kl_program_argument(a, l->b->at, l->b->count, l->b->scratch), 1, l->stream);
  KL_CUDA_TRY(l->cx, k->d, &k->fate, cuStreamSynchronize, l->stream);
  *again = byte != 0;
  return KILN_OK;
}

// Loading while a stream is captured would end the capture.
kiln_status kl_prepare_unless_capturing(kl_ctx *cx, kiln_cuda_kernel *k, CUstream stream) {
  bool capturing;
  if (atomic_load(&k->ready)) return KILN_OK;
  KL_TRY(is_capturing(cx, k, stream, &capturing));
  if (capturing)
    return kl_invalid(cx, KL_NOWHERE,
                      "the stream is being captured and the kernel is not loaded yet: call kiln_cuda_kernel_prepare "
                      "before the capture begins");
  return kiln_cuda_kernel_prepare(cx, k);
}

static kiln_status launch_all(kl_ctx *cx, const kl_volley *b, CUstream stream, const kiln_cuda_launch_params *p) {
  launch l = {cx, b, stream, p && p->launched ? p : NULL};
  kl_runner runner = {&l, launch_one, read_condition};
  if (l.p || b->k->program.manifest.step_count) return kl_program_run(&b->k->program, b->at, &runner);
  for (size_t i = 0; i < b->listed; i++) {
    CUresult code = fire(b, b->list[i], stream);
    if (code != CUDA_SUCCESS) return launch_failed(cx, b, code);
  }
  return KILN_OK;
}

kiln_status kiln_cuda_kernel_launch(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  kl_cuda_scope scope;
  kl_volley b;
  KL_EXPECT(cx, k, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  kl_volley_init(cx, k, &b);
  kiln_status st = kl_volley_set(cx, &b, &p);
  if (st == KILN_OK) st = kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope);
  if (st == KILN_OK) {
    st = kl_prepare_unless_capturing(cx, k, p.stream);
    if (st == KILN_OK) st = launch_all(cx, &b, p.stream, &p);
    st = kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
  }
  kl_volley_free(cx, &b);
  return st;
}

// --- frozen launches ------------------------------------------------------------------------------------------------

struct kiln_cuda_frozen {
  kl_ctx *cx; // its own
  kl_volley b;
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
  *f = (kiln_cuda_frozen){.cx = fcx};
  kl_volley_init(fcx, k, &f->b);
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
  kl_volley_free(cx, &f->b);
  kl_free(cx, f, sizeof *f);
  kiln_context_destroy(&cx);
  *fp = NULL;
}

kiln_status kiln_cuda_frozen_bind(kiln_context *cx, kiln_cuda_frozen *f, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  KL_EXPECT(cx, f, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  if (p.launched)
    return kl_invalid(cx, KL_NOWHERE, "a frozen launch tells of nothing: expected no `launched`, found one");
  return kl_volley_set(cx, &f->b, &p);
}

kiln_status kiln_cuda_frozen_launch(kiln_context *cx, const kiln_cuda_frozen *f, void *stream) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, f);
  kiln_cuda_kernel *k = f->b.k;
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = launch_all(cx, &f->b, stream, NULL);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

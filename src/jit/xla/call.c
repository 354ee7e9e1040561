// Calls of XLA's foreign function interface, on the host and on a GPU.

#include "jit/jit.h"
#include "jit/xla/abi.h"
#include <kiln/cuda.h>
#include <kiln/xla.h>

#include <stdio.h>

struct kiln_xla_kernel {
  kl_ctx *cx; // its own
  kl_arena arena;
  kl_program program;
  kiln_kernel *host;
  kiln_cuda_kernel *gpu;
  const kiln_driver *d;
  void *context;
};

// --- life ---------------------------------------------------------------------------------------------------------

static kiln_status check_manifest(kl_ctx *cx, const kiln_manifest *f) {
  if (f->counted)
    return kl_fail(cx, KILN_E_UNSUPPORTED, KL_NOWHERE,
                   "the artifact takes an element count at run time: XLA's calls have shapes alone");
  for (size_t i = 0; i < f->parameter_count; i++)
    if (f->slots[i].by_value)
      return kl_fail(cx, KILN_E_UNSUPPORTED, KL_NOWHERE,
                     "parameter %zu is passed by value: XLA's calls have buffers alone", i);
  return KILN_OK;
}

static kiln_status load(kl_ctx *cx, kiln_xla_kernel *k, const kiln_artifact *a) {
  KL_TRY(check_manifest(cx, &a->manifest));
  if (a->host) return kiln_kernel_load(cx, a, &k->host);
  KL_TRY(kiln_cuda_kernel_create(cx, k->d, a, k->context, &k->gpu));
  return kiln_cuda_kernel_prepare(cx, k->gpu);
}

kiln_status kiln_xla_kernel_create(kiln_context *cx, const kiln_artifact *a, const kiln_driver *d, void *context,
                                   kiln_xla_kernel **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, a, out);
  if (!a->host) KL_EXPECT(cx, d, context);
  kiln_context_params params = {.struct_size = sizeof params, .allocator = cx->allocator};
  kl_ctx *own = kiln_context_create(&params);
  if (!own) return kl_out_of_memory(cx, sizeof *own, "a kernel");
  kiln_xla_kernel *k = kl_alloc(own, sizeof *k);
  *k = (kiln_xla_kernel){.cx = own, .d = a->host ? NULL : d, .context = a->host ? NULL : context};
  kl_arena_init(&k->arena, own);
  kl_program_make(&k->program, &k->arena, a);
  kiln_status st = load(cx, k, a);
  if (st == KILN_OK)
    *out = k;
  else
    kiln_xla_kernel_destroy(&k);
  return st;
}

void kiln_xla_kernel_destroy(kiln_xla_kernel **kp) {
  if (!kp || !*kp) return;
  kiln_xla_kernel *k = *kp;
  kl_ctx *cx = k->cx;
  kiln_kernel_destroy(&k->host);
  kiln_cuda_kernel_destroy(&k->gpu);
  kl_arena_free(&k->arena);
  kl_free(cx, k, sizeof *k);
  kiln_context_destroy(&cx);
  *kp = NULL;
}

bool kiln_xla_kernel_waits(const kiln_xla_kernel *k) {
  for (size_t i = 0; k && k->gpu && i < k->program.manifest.step_count; i++)
    if (kl_reads_condition(&k->program.manifest.steps[i])) return true;
  return false;
}

// --- operands -----------------------------------------------------------------------------------------------------

// XLA's numbers of element types.
static const uint8_t types[KILN_DTYPE_COUNT] = {
    [KILN_PRED] = 1,      [KILN_S1] = 30,         [KILN_U1] = 31,
    [KILN_S2] = 26,       [KILN_U2] = 27,         [KILN_S4] = 21,
    [KILN_U4] = 22,       [KILN_S8] = 2,          [KILN_U8] = 6,
    [KILN_S16] = 3,       [KILN_U16] = 7,         [KILN_S32] = 4,
    [KILN_U32] = 8,       [KILN_S64] = 5,         [KILN_U64] = 9,
    [KILN_F4E2M1FN] = 32, [KILN_F8E3M4] = 29,     [KILN_F8E4M3] = 28,
    [KILN_F8E4M3FN] = 20, [KILN_F8E4M3FNUZ] = 25, [KILN_F8E4M3B11FNUZ] = 23,
    [KILN_F8E5M2] = 19,   [KILN_F8E5M2FNUZ] = 24, [KILN_F8E8M0FNU] = 33,
    [KILN_F16] = 10,      [KILN_BF16] = 16,       [KILN_F32] = 11,
    [KILN_F64] = 12,      [KILN_C64] = 15,        [KILN_C128] = 18,
    [KILN_TOKEN] = 17,
};

static void put_type(kl_sb *b, const char *name, int64_t rank, const int64_t *dims) {
  kl_sbf(b, "%s[", name);
  for (int64_t i = 0; i < rank; i++) kl_sbf(b, "%s%lld", i ? "," : "", (long long)dims[i]);
  kl_sbf(b, "]");
}

static const char *type_name(int dtype) {
  for (int t = 0; t < KILN_DTYPE_COUNT; t++)
    if (types[t] == dtype && dtype) return kiln_dtype_name((kiln_dtype)t);
  return "?";
}

static kiln_status check_buffer(kl_ctx *cx, const kiln_slot *s, const xla_buffer *b) {
  const kiln_array_type *t = &s->type;
  bool fits = b->dtype == types[t->dtype] && b->rank == (int64_t)t->rank;
  for (uint32_t i = 0; fits && i < t->rank; i++) fits = b->dims[i] == t->dims[i];
  if (fits || s->bytes <= 0) return KILN_OK;
  kl_sb text = {.cx = cx};
  put_type(&text, kiln_dtype_name(t->dtype), t->rank, t->dims);
  kl_sbf(&text, ", found ");
  put_type(&text, type_name(b->dtype), b->rank, b->dims);
  kiln_status st =
      kl_invalid(cx, KL_NOWHERE, "%s %u: expected %.*s", s->result ? "result" : "parameter", s->index, KL_FMT(text));
  kl_sb_free(&text);
  return st;
}

static kiln_status take_buffers(kl_ctx *cx, const kiln_slot *slots, size_t n, const xla_list *list, const char *what,
                                void **out) {
  if (list->size != (int64_t)n)
    return kl_invalid(cx, KL_NOWHERE, "expected %zu %s, found %lld", n, what, (long long)list->size);
  for (size_t i = 0; i < n; i++) {
    if (list->types[i] != XLA_ARGUMENT_BUFFER)
      return kl_invalid(cx, KL_NOWHERE, "%s: expected number %zu to be a buffer", what, i);
    const xla_buffer *b = list->items[i];
    KL_TRY(check_buffer(cx, &slots[i], b));
    out[i] = b->data;
  }
  return KILN_OK;
}

static kiln_xla_kernel *kernel_of(const xla_attributes *list) {
  static const char name[] = "kernel";
  for (int64_t i = 0; i < list->size; i++) {
    const xla_scalar *s = list->items[i];
    if (list->names[i]->size != sizeof name - 1 || memcmp(list->names[i]->text, name, sizeof name - 1) != 0) continue;
    if (list->types[i] != XLA_ATTRIBUTE_SCALAR || s->dtype != XLA_TYPE_S64) return NULL;
    return (kiln_xla_kernel *)(uintptr_t) * (const int64_t *)s->value;
  }
  return NULL;
}

// --- running ------------------------------------------------------------------------------------------------------

// A call, with an error of XLA's own where one of its functions failed.
typedef struct call {
  kl_ctx *cx;
  const xla_call *frame;
  kiln_xla_kernel *k;
  void **at; // by slot
  xla_error *error;
} call;

static kiln_status launch(const call *c, void *stream, uint64_t scratch) {
  const kiln_manifest *f = &c->k->program.manifest;
  _Static_assert(sizeof(void *) == sizeof(uint64_t), "addresses of the device are as wide as the host's");
  KL_TRY(kiln_cuda_kernel_fill_scratch(c->cx, c->k->gpu, stream, scratch));
  kiln_cuda_launch_params p = {.struct_size = sizeof p,
                               .stream = stream,
                               .parameters = (const uint64_t *)c->at,
                               .results = (const uint64_t *)c->at + f->parameter_count,
                               .scratch = scratch};
  return kiln_cuda_kernel_launch(c->cx, c->k->gpu, &p);
}

// XLA frees what it gave in the order of the stream: what is launched still has it.
static kiln_status run_gpu(call *c) {
  const kiln_manifest *f = &c->k->program.manifest;
  const xla_api *api = c->frame->api;
  xla_stream_args stream = {.struct_size = sizeof stream, .context = c->frame->context};
  xla_allocate_args memory = {.struct_size = sizeof memory,
                              .context = c->frame->context,
                              .size = f->scratch_bytes,
                              .alignment = f->scratch_align ? f->scratch_align : 1};
  if ((c->error = api->stream_get(&stream))) return KILN_E_DEVICE;
  if (f->scratch_bytes && (c->error = api->allocate(&memory))) return KILN_E_MEMORY;
  kiln_status st = launch(c, stream.stream, (uint64_t)(uintptr_t)memory.data);
  xla_free_args freed = {
      .struct_size = sizeof freed, .context = c->frame->context, .size = memory.size, .data = memory.data};
  if (!f->scratch_bytes) return st;
  xla_error *error = api->free(&freed);
  if (error && st == KILN_OK) st = KILN_E_DEVICE, c->error = error;
  return st;
}

static kiln_status run(call *c) {
  const kiln_manifest *f = &c->k->program.manifest;
  KL_TRY(take_buffers(c->cx, f->slots, f->parameter_count, &c->frame->arguments, "parameters", c->at));
  KL_TRY(take_buffers(c->cx, f->slots + f->parameter_count, f->result_count, &c->frame->results, "results",
                      c->at + f->parameter_count));
  if (c->k->gpu) return run_gpu(c);
  return kiln_kernel_run(c->cx, c->k->host, (const void *const *)c->at, c->at + f->parameter_count, NULL);
}

static xla_error *error_of(const xla_api *api, int code, const char *message) {
  xla_error_args args = {.struct_size = sizeof args, .message = message, .code = code};
  return api->error_create(&args);
}

static xla_error *status_error(const call *c, kiln_status st) {
  static const int codes[] = {
      [KILN_E_INVALID] = XLA_INVALID_ARGUMENT,  [KILN_E_UNSUPPORTED] = XLA_UNIMPLEMENTED,
      [KILN_E_MEMORY] = XLA_RESOURCE_EXHAUSTED, [KILN_E_DEVICE] = XLA_INTERNAL,
      [KILN_E_INTERNAL] = XLA_INTERNAL,         [KILN_E_CANCELLED] = XLA_INTERNAL,
  };
  kl_sb text = {.cx = c->cx};
  kl_sbf(&text, "kiln, %s:", c->k->program.manifest.module);
  for (size_t i = 0; i < kiln_diagnostics_count(c->cx); i++)
    kl_sbf(&text, " %s", kiln_diagnostics_get(c->cx, i)->message);
  xla_error *e = error_of(c->frame->api, codes[st], text.p);
  kl_sb_free(&text);
  return e;
}

static xla_error *execute(const xla_call *frame, kiln_xla_kernel *k) {
  kiln_context_params params = {.struct_size = sizeof params, .allocator = k->cx->allocator};
  kl_ctx *cx = kiln_context_create(&params);
  if (!cx) return error_of(frame->api, XLA_RESOURCE_EXHAUSTED, "kiln: no memory for a context");
  const kiln_manifest *f = &k->program.manifest;
  size_t bytes = (f->parameter_count + f->result_count + 1) * sizeof(void *);
  call c = {.cx = cx, .frame = frame, .k = k, .at = kl_alloc(cx, bytes)};
  kiln_status st = run(&c);
  if (st != KILN_OK && !c.error) c.error = status_error(&c, st);
  kl_free(cx, c.at, bytes);
  kiln_context_destroy(&cx);
  return c.error;
}

// XLA asks for the version first. The fields used here are the same in all that there are, so the answer is its own.
static bool answer(const xla_call *frame, uint32_t traits) {
  for (xla_extension *x = frame->extension; x; x = x->next) {
    if (x->type != XLA_EXTENSION_METADATA) continue;
    xla_metadata *m = ((xla_metadata_extension *)x)->metadata;
    m->version.major = frame->api ? frame->api->version.major : 0;
    m->version.minor = frame->api ? frame->api->version.minor : 1;
    m->traits = traits;
    return true;
  }
  return false;
}

static void *handle(const xla_call *frame, uint32_t traits) {
  if (!frame || answer(frame, traits)) return NULL;
  if (frame->stage != XLA_STAGE_EXECUTE) return NULL;
  kiln_xla_kernel *k = kernel_of(&frame->attributes);
  if (!k)
    return error_of(frame->api, XLA_INVALID_ARGUMENT,
                    "kiln: expected the attribute 'kernel', the address of a kiln_xla_kernel as an s64");
  if (traits & XLA_TRAIT_COMMAND_BUFFER && kiln_xla_kernel_waits(k))
    return error_of(frame->api, XLA_INVALID_ARGUMENT,
                    "kiln: the kernel waits for what its loops or branches go by, which calls that XLA may capture "
                    "cannot: expected the handler kiln_xla_call_waiting");
  return execute(frame, k);
}

void *kiln_xla_call(void *call_frame) {
  return handle(call_frame, XLA_TRAIT_COMMAND_BUFFER);
}

void *kiln_xla_call_waiting(void *call_frame) {
  return handle(call_frame, 0);
}

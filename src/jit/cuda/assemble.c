// Machine code by NVIDIA's nvJitLink, a library of CUDA toolkits, which is loaded where it is wanted, or by an
// assembler of the caller's.
//
// What is used of its interface has the same names and layout since CUDA 12: handles are pointers, results ints of
// which 0 is success, options words.

#include "jit/cuda/kernel.h"

#include <dlfcn.h>
#include <kiln/cache.h>
#include <stdio.h>

enum { INPUT_PTX = 2 }; // NVJITLINK_INPUT_PTX

// clang-format off
#define CALLS(X)                                                                                                       \
  X(nvJitLinkCreate,             (void **handle, uint32_t count, const char **options))                                \
  X(nvJitLinkDestroy,            (void **handle))                                                                      \
  X(nvJitLinkAddData,            (void *handle, int kind, const void *data, size_t size, const char *name))            \
  X(nvJitLinkComplete,           (void *handle))                                                                       \
  X(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *size))                                                         \
  X(nvJitLinkGetLinkedCubin,     (void *handle, void *cubin))                                                          \
  X(nvJitLinkGetErrorLogSize,    (void *handle, size_t *size))                                                         \
  X(nvJitLinkGetErrorLog,        (void *handle, char *log))
// clang-format on

typedef struct linker {
  const char *name; // of the library
#define X(call, signature) int(*call) signature;
  CALLS(X)
#undef X
  void *handle;
} linker;

// --- the library ----------------------------------------------------------------------------------------------------

static kiln_status find_calls(kl_ctx *cx, void *library, linker *l) {
  void *at;
#define X(call, signature)                                                                                             \
  at = dlsym(library, #call);                                                                                          \
  if (!at) return kl_unsupported(cx, KL_NOWHERE, "%s has no function " #call ": is it nvJitLink?", l->name);           \
  memcpy(&l->call, &at, sizeof at);
  CALLS(X)
#undef X
  return KILN_OK;
}

// It stays loaded, as what a library has started outlives a call.
static kiln_status open_library(kl_ctx *cx, const char *asked, linker *l) {
  static const char *const known[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
  void *library = NULL;
  size_t n = asked ? 1 : KL_COUNT(known);
  for (size_t i = 0; i < n && !library; i++) {
    l->name = asked ? asked : known[i];
    library = dlopen(l->name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library) return find_calls(cx, library, l);
  return kl_unsupported(cx, KL_NOWHERE, "no nvJitLink, which a CUDA toolkit from 12.0 on brings: %s%s", dlerror(),
                        asked ? "" : " (nor libnvJitLink.so.13)");
}

// --- machine code ----------------------------------------------------------------------------------------------------

// As kiln_artifact_bytes_free wants it.
static kiln_status make_room(kl_ctx *cx, size_t n, const char *by, void **out) {
  if (!n || n == SIZE_MAX) return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "%s has made no machine code", by);
  *out = kl_try_alloc(cx, n + 1);
  return *out ? KILN_OK : kl_out_of_memory(cx, n, "a cubin");
}

// --- one compilation ------------------------------------------------------------------------------------------------

// What it has to say of a failure; the caller's to free (kl_free with *bytes), or NULL.
static char *read_log(kl_ctx *cx, const linker *l, size_t *bytes) {
  size_t n = 0;
  char *log = NULL;
  if (!l->handle || l->nvJitLinkGetErrorLogSize(l->handle, &n) || !n) return NULL;
  if (__builtin_add_overflow(n, 1, bytes) || !(log = kl_try_alloc(cx, *bytes))) return NULL;
  memset(log, 0, *bytes);
  if (!l->nvJitLinkGetErrorLog(l->handle, log) && log[0]) return log;
  kl_free(cx, log, *bytes);
  return NULL;
}

static kiln_status failed(kl_ctx *cx, const linker *l, const char *call, int code) {
  size_t bytes = 0;
  char *log = read_log(cx, l, &bytes);
  kiln_status st = kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "%s of %s failed with %d%s%s", call, l->name, code,
                           log ? ": " : "", log ? log : "");
  if (log) kl_free(cx, log, bytes);
  return st;
}

#define LINK_TRY(call, ...)                                                                                            \
  do {                                                                                                                 \
    int code = l->call(__VA_ARGS__);                                                                                   \
    if (code) return failed(cx, l, #call, code);                                                                       \
  } while (0)

static kiln_status take_cubin(kl_ctx *cx, linker *l, void **out, size_t *size) {
  size_t n = 0;
  LINK_TRY(nvJitLinkGetLinkedCubinSize, l->handle, &n);
  KL_TRY(make_room(cx, n, l->name, out));
  int code = l->nvJitLinkGetLinkedCubin(l->handle, *out);
  *size = n;
  return code ? failed(cx, l, "nvJitLinkGetLinkedCubin", code) : KILN_OK;
}

static kiln_status assemble(kl_ctx *cx, linker *l, const kiln_artifact *a, void **out, size_t *size) {
  char arch[40];
  snprintf(arch, sizeof arch, "-arch=%s", a->target);
  const char *options[] = {arch};
  LINK_TRY(nvJitLinkCreate, &l->handle, 1, options);
  LINK_TRY(nvJitLinkAddData, l->handle, INPUT_PTX, a->text[KILN_TEXT_PTX], a->text_size[KILN_TEXT_PTX] + 1, "kiln");
  LINK_TRY(nvJitLinkComplete, l->handle);
  return take_cubin(cx, l, out, size);
}

static kiln_status by_library(kl_ctx *cx, const kiln_artifact *a, const char *library, void **out, size_t *size) {
  linker l = {0};
  KL_TRY(open_library(cx, library, &l));
  kiln_status st = assemble(cx, &l, a, out, size);
  if (l.handle) l.nvJitLinkDestroy(&l.handle);
  return st;
}

// --- the caller's
// -----------------------------------------------------------------------------------------------------

static kiln_status by_caller(kl_ctx *cx, const kiln_artifact *a, const kiln_assemble_params *p, void **out,
                             size_t *size) {
  kiln_assembly made = {.struct_size = sizeof made};
  if (!p->assemble(p->user, a->target, a->text[KILN_TEXT_PTX], a->text_size[KILN_TEXT_PTX], &made))
    return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "the caller's assembler has failed%s%s", made.log ? ": " : "",
                   made.log ? made.log : "");
  KL_TRY(make_room(cx, made.cubin ? made.size : 0, "the caller's assembler", out));
  memcpy(*out, made.cubin, made.size);
  *size = made.size;
  return KILN_OK;
}

kiln_status kiln_artifact_assemble(kiln_context *cx, const kiln_artifact *a, const kiln_assemble_params *params,
                                   void **cubin, size_t *size) {
  kiln_assemble_params p;
  void *made = NULL;
  size_t n = 0;
  KL_CLEAR(cubin);
  KL_CLEAR(size);
  KL_EXPECT(cx, a, cubin, size);
  KL_TRY(KL_PARAMS_IN(cx, kiln_assemble_params, params, &p));
  if (a->host) return kl_invalid(cx, KL_NOWHERE, "expected an artifact for a GPU, found one for the host");
  kiln_status st = p.assemble ? by_caller(cx, a, &p, &made, &n) : by_library(cx, a, p.library, &made, &n);
  if (st == KILN_OK && !kl_cubin_is_whole(made, n))
    st = kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "the assembler has made %zu bytes that are no whole cubin", n);
  if (st != KILN_OK) {
    kiln_artifact_bytes_free(cx, made, n);
    return st;
  }
  *cubin = made;
  *size = n;
  return KILN_OK;
}

// Modules from PTX text, and what loading tells.

#include "sim/driver/impl.h"
#include "sim/driver/module.h"

#include <stdio.h>
#include <stdlib.h>

// --- options --------------------------------------------------------------------------------------------------------

CUresult kl_jit_options_read(unsigned n, const CUjit_option *options, void **values, kl_jit_options *out) {
  *out = (kl_jit_options){0};
  if (n && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < n; i++) {
    uintptr_t v = (uintptr_t)values[i];
    switch (options[i]) {
    case CU_JIT_INFO_LOG_BUFFER: out->info.p = values[i]; break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: out->info.size = (unsigned)v, out->info.told = &values[i]; break;
    case CU_JIT_ERROR_LOG_BUFFER: out->error.p = values[i]; break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: out->error.size = (unsigned)v, out->error.told = &values[i]; break;
    case CU_JIT_WALL_TIME: out->wall_time = &values[i]; break;
    case CU_JIT_OPTIMIZATION_LEVEL:
      if (v > 4) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_JIT_TARGET_FROM_CUCONTEXT: break;
    case CU_JIT_THREADS_PER_BLOCK: break; // what was given is what is used
    case CU_JIT_LTO:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
      if (v) return CUDA_ERROR_NOT_SUPPORTED;
      break;
    default: // those that change how hardware code is made, and there is none
      if (options[i] < 0 || options[i] > CU_JIT_SPLIT_COMPILE) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

static void put_log(kl_jit_log *to, CUlogLevel level) {
  size_t used = 0, n = kiln_diagnostics_count(kl_sim.cx);
  if (to->p && to->size) {
    to->p[0] = 0;
    for (size_t i = 0; i < n; i++) {
      const kiln_diagnostic *d = kiln_diagnostics_get(kl_sim.cx, i);
      if ((d->severity == KILN_ERROR) != (level == CU_LOG_LEVEL_ERROR)) continue;
      size_t line = strlen(d->text), room = to->size - 1 - used;
      if (line > room) line = room;
      memcpy(to->p + used, d->text, line);
      used += line;
      to->p[used] = 0;
    }
  }
  if (to->told) *to->told = (void *)(uintptr_t)used;
}

void kl_jit_options_answer(kl_jit_options *o) {
  put_log(&o->error, CU_LOG_LEVEL_ERROR);
  put_log(&o->info, CU_LOG_LEVEL_WARNING);
  float none = 0; // nothing is compiled
  if (o->wall_time) memcpy(o->wall_time, &none, sizeof none);
}

// --- texts ----------------------------------------------------------------------------------------------------------

enum { MOST_PTX_VERSION = 90 };

static const char *skip_blank(const char *p) {
  for (;;) {
    p += strspn(p, " \t\r\n\f\v");
    if (p[0] == '/' && p[1] == '/') {
      p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");
      if (!end) return p + strlen(p);
      p = end + 2;
    } else
      return p;
  }
}

// Is it PTX at all, and of a version that this driver knows?
CUresult kl_ptx_check(const char *image) {
  static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'}, fatbin[] = {0x50, 0xed, 0x55, 0xba};
  int major = 0, minor = 0;
  if (memcmp(image, elf, sizeof elf) == 0 || memcmp(image, fatbin, sizeof fatbin) == 0) {
    kl_fail(kl_sim.cx, KILN_E_UNSUPPORTED, KL_NOWHERE,
            "the simulator runs PTX: this is code for one GPU. Load the PTX that it was made from");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  const char *p = skip_blank(image);
  if (strncmp(p, ".version", 8) != 0) {
    kl_fail(kl_sim.cx, KILN_E_INVALID, KL_NOWHERE, "expected PTX, which begins with .version");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (sscanf(p + 8, "%d.%d", &major, &minor) == 2 && major * 10 + minor > MOST_PTX_VERSION && major < 100) {
    kl_fail(kl_sim.cx, KILN_E_UNSUPPORTED, KL_NOWHERE, "expected PTX of version 9.0 at most, found %d.%d", major,
            minor);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  return CUDA_SUCCESS;
}

// What nvcc's device runtime would give: the value of a condition lies where its handle says.
static const char runtime[] = "\n.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)\n"
                              "{ .reg .b64 %a; .reg .b32 %v; ld.param.b64 %a, [handle]; ld.param.b32 %v, [value];\n"
                              "  st.global.b32 [%a], %v; ret; }\n";

bool kl_ptx_define(char *text, size_t at, bool whole) {
  size_t begin = at;
  while (begin > 0 && !strchr(";}", text[begin - 1])) begin--;
  char *word = memmem(text + begin, at - begin, ".extern", 7);
  if (!word) return false;
  size_t n = whole ? strcspn(word, ";") + 1 : 7;
  for (size_t i = 0; i < n && word[i]; i++)
    if (word[i] != '\n') word[i] = ' ';
  return true;
}

// Where a text says that somebody else has a function.
static bool declares(char *text, const char *name) {
  for (char *p = text; (p = strstr(p, name)); p += strlen(name))
    if (kl_ptx_define(text, (size_t)(p - text), false)) return true;
  return false;
}

// A copy of a text, with what it wants of the runtime.
char *kl_ptx_text(const char *image, size_t *size) {
  static const char name[] = "cudaGraphSetConditional";
  size_t n = strlen(image);
  const char *wants = strstr(image, name);
  *size = n + (wants ? sizeof runtime : 1); // zeroed
  char *text = kl_try_alloc(kl_sim.cx, *size);
  if (!text) return NULL;
  memcpy(text, image, n);
  if (wants && declares(text, name)) memcpy(text + n, runtime, sizeof runtime);
  return text;
}

// May code for this target run on the device?
static bool runs_on(const kl_ptx_module *m, const kl_gpu *g) {
  if (m->variant == 'a') return m->sm == g->sm;
  if (m->variant == 'f') return m->sm / 10 == g->sm / 10u && m->sm <= g->sm;
  return m->sm <= g->sm;
}

static CUresult result_of(kiln_status s) {
  return s == KILN_OK ? CUDA_SUCCESS : s == KILN_E_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

CUresult kl_module_load(kl_cu_context *c, kl_str text, kl_cu_module **out) {
  kl_loaded *loaded = NULL;
  *out = NULL;
  KL_RESULT(result_of(kl_load(kl_sim.cx, &kl_sim.memory, "ptx", text, &loaded)));
  const kl_ptx_module *ptx = kl_loaded_ptx(loaded);
  const kl_gpu *g = kl_sim.devices[c->device].gpu;
  if (!runs_on(ptx, g)) {
    kl_fail(kl_sim.cx, KILN_E_INVALID, KL_NOWHERE, "PTX for %.*s cannot run on sm_%u (%s)", KL_FMT(ptx->target), g->sm,
            g->name);
    kl_unload(kl_sim.cx, loaded);
    return CUDA_ERROR_INVALID_PTX;
  }
  kl_cu_module *m = kl_object_new(KL_MODULE, sizeof *m, c);
  if (!m) {
    kl_unload(kl_sim.cx, loaded);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  m->loaded = loaded;
  *out = m;
  return CUDA_SUCCESS;
}

static void function_delete(kl_cu_function *f) {
  kl_free(kl_sim.cx, f->name, strlen(f->name) + 1);
  kl_object_delete(f, sizeof *f);
}

void kl_module_unload(kl_cu_module *m) {
  for (kl_cu_function *f = m->functions, *next; f; f = next) {
    next = f->next;
    function_delete(f);
  }
  if (m->library)
    for (kl_cu_module **p = &m->library->modules; *p; p = &(*p)->next)
      if (*p == m) {
        *p = m->next;
        break;
      }
  kl_unload(kl_sim.cx, m->loaded);
  kl_object_delete(m, sizeof *m);
}

static CUresult load(CUmodule *out, const void *image, kl_jit_options *o) {
  size_t size;
  kl_cu_module *m = NULL;
  KL_GIVEN(out, image);
  *out = NULL;
  CUresult code = kl_ptx_check(image);
  char *text = code ? NULL : kl_ptx_text(image, &size);
  if (!code && !text) code = CUDA_ERROR_OUT_OF_MEMORY;
  if (!code) code = kl_module_load(kl_current(), (kl_str){text, size - 1}, &m);
  if (text) kl_free(kl_sim.cx, text, size);
  kl_jit_options_answer(o);
  if (!code) *out = KL_HANDLE(CUmodule, m);
  return code;
}

CUresult kl_cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values) {
  kl_jit_options o;
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  return load(out, image, &o);
}

CUresult kl_cuModuleLoadData(CUmodule *out, const void *image) {
  kl_jit_options o = {0};
  return load(out, image, &o);
}

CUresult kl_cuModuleLoadFatBinary(CUmodule *out, const void *image) {
  return kl_cuModuleLoadData(out, image);
}

// A file's bytes and a NUL behind them.
CUresult kl_file_read(const char *name, char **out, size_t *size) {
  size_t cap = 1 << 16, n = 0, got;
  FILE *f = fopen(name, "rb");
  *out = NULL;
  if (!f) return CUDA_ERROR_FILE_NOT_FOUND;
  char *p = kl_try_alloc(kl_sim.cx, cap);
  while (p && (got = fread(p + n, 1, cap - n - 1, f)) > 0) {
    n += got;
    if (n < cap - 1) continue;
    char *more = kl_try_alloc(kl_sim.cx, cap * 2);
    if (more) memcpy(more, p, n);
    kl_free(kl_sim.cx, p, cap);
    p = more;
    cap *= 2;
  }
  bool failed = ferror(f);
  fclose(f);
  if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
  if (failed || n < 4) {
    kl_free(kl_sim.cx, p, cap);
    return failed ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
  }
  *out = p;
  *size = cap;
  return CUDA_SUCCESS;
}

CUresult kl_cuModuleLoad(CUmodule *out, const char *name) {
  char *image;
  size_t size;
  KL_GIVEN(out, name);
  KL_RESULT(kl_file_read(name, &image, &size));
  CUresult code = kl_cuModuleLoadData(out, image);
  kl_free(kl_sim.cx, image, size);
  return code;
}

static CUresult module_check(CUmodule handle, kl_cu_module **out) {
  *out = kl_object_find(handle, KL_MODULE);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuModuleUnload(CUmodule handle) {
  kl_cu_module *m;
  KL_RESULT(module_check(handle, &m));
  if (m->library) return CUDA_ERROR_NOT_PERMITTED; // it goes with its library
  kl_module_unload(m);
  return CUDA_SUCCESS;
}

// --- what is in them ------------------------------------------------------------------------------------------------

CUresult kl_module_function(kl_cu_module *m, const char *name, kl_cu_function **out) {
  kl_kernel *kernel = NULL;
  size_t size = strlen(name) + 1;
  for (kl_cu_function *f = m->functions; f; f = f->next)
    if (strcmp(f->name, name) == 0) {
      *out = f;
      return CUDA_SUCCESS;
    }
  const kl_ptx_module *ptx = kl_loaded_ptx(m->loaded);
  bool found = false;
  for (uint32_t i = 0; i < ptx->nfuncs && !found; i++)
    found = ptx->funcs[i].entry && ptx->funcs[i].defined && kl_str_is(ptx->funcs[i].name, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  KL_RESULT(result_of(kl_kernel_prepare(kl_sim.cx, m->loaded, kl_str_of(name), &kernel)));
  kl_cu_function *f = kl_object_new(KL_FUNCTION, sizeof *f, m->o.context);
  if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
  f->module = m;
  f->kernel = kernel;
  f->facts = kl_kernel_describe(kernel);
  f->name = kl_alloc(kl_sim.cx, size);
  memcpy(f->name, name, size);
  int room = 48 * 1024 - (int)f->facts.shared_bytes;
  f->dynamic_shared = room > 0 ? room : 0;
  f->carveout = -1;
  f->next = m->functions;
  m->functions = f;
  *out = f;
  return CUDA_SUCCESS;
}

CUresult kl_cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
  kl_cu_module *m;
  kl_cu_function *f;
  KL_GIVEN(out, name);
  KL_RESULT(module_check(handle, &m));
  KL_RESULT(kl_module_function(m, name, &f));
  *out = KL_HANDLE(CUfunction, f);
  return CUDA_SUCCESS;
}

CUresult kl_module_global(kl_cu_module *m, const char *name, CUdeviceptr *out, size_t *size) {
  uint64_t address, bytes;
  if (!name || (!out && !size)) return CUDA_ERROR_INVALID_VALUE;
  if (!kl_loaded_variable(m->loaded, kl_str_of(name), &address, &bytes)) return CUDA_ERROR_NOT_FOUND;
  if (out) *out = address;
  if (size) *size = bytes;
  return CUDA_SUCCESS;
}

CUresult kl_cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *size, CUmodule handle, const char *name) {
  kl_cu_module *m;
  KL_RESULT(module_check(handle, &m));
  return kl_module_global(m, name, out, size);
}

static bool is_kernel(const kl_ptx_func *f) {
  return f->entry && f->defined;
}

CUresult kl_cuModuleGetFunctionCount(unsigned *out, CUmodule handle) {
  kl_cu_module *m;
  KL_GIVEN(out);
  KL_RESULT(module_check(handle, &m));
  const kl_ptx_module *ptx = kl_loaded_ptx(m->loaded);
  *out = 0;
  for (uint32_t i = 0; i < ptx->nfuncs; i++) *out += is_kernel(&ptx->funcs[i]);
  return CUDA_SUCCESS;
}

CUresult kl_cuModuleEnumerateFunctions(CUfunction *out, unsigned n, CUmodule handle) {
  kl_cu_module *m;
  kl_cu_function *f;
  unsigned k = 0;
  KL_GIVEN(out);
  KL_RESULT(module_check(handle, &m));
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  const kl_ptx_module *ptx = kl_loaded_ptx(m->loaded);
  for (uint32_t i = 0; i < ptx->nfuncs && k < n; i++) {
    char name[4096];
    if (!is_kernel(&ptx->funcs[i])) continue;
    snprintf(name, sizeof name, "%.*s", KL_FMT(ptx->funcs[i].name));
    KL_RESULT(kl_module_function(m, name, &f));
    out[k++] = KL_HANDLE(CUfunction, f);
  }
  return CUDA_SUCCESS;
}

// Libraries: PTX that is loaded into each context when it is first needed there.

#include "sim/driver/module.h"

static CUresult library_check(CUlibrary handle, kl_cu_library **out) {
  *out = kl_object_find(handle, KL_LIBRARY);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_check(CUkernel handle, kl_cu_kernel **out) {
  *out = kl_object_find(handle, KL_LIBRARY_KERNEL);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// --- life -----------------------------------------------------------------------------------------------------------

static void library_delete(kl_cu_library *l) {
  while (l->modules) kl_module_unload(l->modules);
  for (uint32_t i = 0; i < l->nkernels; i++)
    if (l->kernels[i]) {
      kl_free(kl_sim.cx, l->kernels[i]->name, l->kernels[i]->func->name.n + 1);
      kl_object_delete(l->kernels[i], sizeof *l->kernels[i]);
    }
  kl_free(kl_sim.cx, l->kernels, l->nkernels * sizeof *l->kernels);
  if (l->ptx) kl_ptx_free(kl_sim.cx, l->ptx);
  kl_free(kl_sim.cx, l->text, l->length + 1);
  kl_object_delete(l, sizeof *l);
}

static CUresult make_kernels(kl_cu_library *l) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->ptx->nfuncs; i++) n += l->ptx->funcs[i].entry && l->ptx->funcs[i].defined;
  l->kernels = kl_alloc(kl_sim.cx, n * sizeof *l->kernels);
  l->nkernels = n;
  n = 0;
  for (uint32_t i = 0; i < l->ptx->nfuncs; i++) {
    const kl_ptx_func *f = &l->ptx->funcs[i];
    if (!f->entry || !f->defined) continue;
    kl_cu_kernel *k = l->kernels[n++] = kl_object_new(KL_LIBRARY_KERNEL, sizeof *k, NULL);
    if (!k) return CUDA_ERROR_OUT_OF_MEMORY;
    k->library = l;
    k->func = f;
    k->dynamic_shared = k->carveout = -1;
    k->name = kl_alloc(kl_sim.cx, f->name.n + 1);
    memcpy(k->name, f->name.p, f->name.n);
  }
  return CUDA_SUCCESS;
}

static CUresult fill_library(kl_cu_library *l, const void *image) {
  size_t size;
  KL_RESULT(kl_ptx_check(image));
  l->text = kl_ptx_text(image, &size);
  if (!l->text) return CUDA_ERROR_OUT_OF_MEMORY;
  l->length = size - 1;
  kiln_status s = kl_ptx_parse(kl_sim.cx, "ptx", (kl_str){l->text, l->length}, &l->ptx);
  if (s) return s == KILN_E_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
  return make_kernels(l);
}

CUresult kl_cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *options, void **values, unsigned n,
                              CUlibraryOption *library_options, void **library_values, unsigned nlibrary) {
  kl_jit_options o;
  KL_GIVEN(out, image);
  *out = NULL;
  if (nlibrary && !library_options) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < nlibrary; i++)
    if (library_options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  kl_cu_library *l = kl_object_new(KL_LIBRARY, sizeof *l, NULL);
  if (!l) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult code = fill_library(l, image);
  kl_jit_options_answer(&o);
  if (code)
    library_delete(l);
  else
    *out = KL_HANDLE(CUlibrary, l);
  return code;
}

CUresult kl_cuLibraryLoadFromFile(CUlibrary *out, const char *name, CUjit_option *options, void **values, unsigned n,
                                  CUlibraryOption *library_options, void **library_values, unsigned nlibrary) {
  char *image;
  size_t size;
  KL_GIVEN(out, name);
  *out = NULL;
  for (unsigned i = 0; i < nlibrary && library_options; i++) // what is read here cannot be preserved
    if (library_options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_file_read(name, &image, &size));
  CUresult code = kl_cuLibraryLoadData(out, image, options, values, n, library_options, library_values, nlibrary);
  kl_free(kl_sim.cx, image, size);
  return code;
}

CUresult kl_cuLibraryUnload(CUlibrary handle) {
  kl_cu_library *l;
  KL_RESULT(library_check(handle, &l));
  library_delete(l);
  return CUDA_SUCCESS;
}

// --- in the current context -----------------------------------------------------------------------------------------

static CUresult module_here(kl_cu_library *l, kl_cu_module **out) {
  kl_cu_context *c = kl_current();
  for (*out = l->modules; *out; *out = (*out)->next)
    if ((*out)->o.context == c) return CUDA_SUCCESS;
  KL_RESULT(kl_capture_permits());
  KL_RESULT(kl_module_load(c, (kl_str){l->text, l->length}, out));
  (*out)->library = l;
  (*out)->next = l->modules;
  l->modules = *out;
  return CUDA_SUCCESS;
}

static CUresult function_here(kl_cu_kernel *k, kl_cu_function **out) {
  kl_cu_module *m;
  KL_RESULT(module_here(k->library, &m));
  KL_RESULT(kl_module_function(m, k->name, out));
  if (k->dynamic_shared >= 0) (*out)->dynamic_shared = k->dynamic_shared;
  if (k->carveout >= 0) (*out)->carveout = k->carveout;
  return CUDA_SUCCESS;
}

CUresult kl_function_check(CUfunction handle, kl_cu_function **out) {
  *out = kl_object_find(handle, KL_FUNCTION);
  if (*out) return CUDA_SUCCESS;
  kl_cu_kernel *k = kl_object_find(handle, KL_LIBRARY_KERNEL);
  return k ? function_here(k, out) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuLibraryGetModule(CUmodule *out, CUlibrary handle) {
  kl_cu_library *l;
  kl_cu_module *m;
  KL_GIVEN(out);
  KL_RESULT(library_check(handle, &l));
  KL_RESULT(module_here(l, &m));
  *out = KL_HANDLE(CUmodule, m);
  return CUDA_SUCCESS;
}

CUresult kl_cuLibraryGetGlobal(CUdeviceptr *out, size_t *size, CUlibrary handle, const char *name) {
  kl_cu_library *l;
  kl_cu_module *m;
  KL_RESULT(library_check(handle, &l));
  KL_RESULT(module_here(l, &m));
  return kl_module_global(m, name, out, size);
}

// PTX says of no variable that it is managed but in an attribute, which the simulator does not read.
CUresult kl_cuLibraryGetManaged(CUdeviceptr *out, size_t *size, CUlibrary handle, const char *name) {
  kl_cu_library *l;
  KL_GIVEN(name);
  KL_RESULT(library_check(handle, &l));
  return CUDA_ERROR_NOT_FOUND;
}

CUresult kl_cuLibraryGetUnifiedFunction(void **out, CUlibrary handle, const char *name) {
  kl_cu_library *l;
  KL_GIVEN(out, name);
  KL_RESULT(library_check(handle, &l));
  return CUDA_ERROR_NOT_FOUND;
}

CUresult kl_cuKernelGetFunction(CUfunction *out, CUkernel handle) {
  kl_cu_kernel *k;
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kernel_check(handle, &k));
  KL_RESULT(function_here(k, &f));
  *out = KL_HANDLE(CUfunction, f);
  return CUDA_SUCCESS;
}

// --- what is in them ------------------------------------------------------------------------------------------------

CUresult kl_cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name) {
  kl_cu_library *l;
  KL_GIVEN(out, name);
  KL_RESULT(library_check(handle, &l));
  for (uint32_t i = 0; i < l->nkernels; i++)
    if (strcmp(l->kernels[i]->name, name) == 0) {
      *out = KL_HANDLE(CUkernel, l->kernels[i]);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult kl_cuLibraryGetKernelCount(unsigned *out, CUlibrary handle) {
  kl_cu_library *l;
  KL_GIVEN(out);
  KL_RESULT(library_check(handle, &l));
  *out = l->nkernels;
  return CUDA_SUCCESS;
}

CUresult kl_cuLibraryEnumerateKernels(CUkernel *out, unsigned n, CUlibrary handle) {
  kl_cu_library *l;
  KL_GIVEN(out);
  KL_RESULT(library_check(handle, &l));
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < l->nkernels && i < n; i++) out[i] = KL_HANDLE(CUkernel, l->kernels[i]);
  return CUDA_SUCCESS;
}

CUresult kl_cuKernelGetLibrary(CUlibrary *out, CUkernel handle) {
  kl_cu_kernel *k;
  KL_GIVEN(out);
  KL_RESULT(kernel_check(handle, &k));
  *out = KL_HANDLE(CUlibrary, k->library);
  return CUDA_SUCCESS;
}

CUresult kl_cuKernelGetName(const char **out, CUkernel handle) {
  KL_GIVEN(out);
  kl_cu_kernel *k = kl_object_find(handle, KL_LIBRARY_KERNEL);
  kl_cu_function *f = kl_object_find(handle, KL_FUNCTION); // some programs hold one for the other
  if (!k && !f) return CUDA_ERROR_INVALID_HANDLE;
  *out = k ? k->name : f->name;
  return CUDA_SUCCESS;
}

// Of a device: as its function in the context that is current, if that is the device's.
CUresult kl_cuKernelGetAttribute(int *out, CUfunction_attribute which, CUkernel handle, CUdevice device) {
  kl_cu_kernel *k;
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kernel_check(handle, &k));
  KL_RESULT(kl_device_check(device, &d));
  if (!kl_current()) return CUDA_ERROR_INVALID_CONTEXT;
  return kl_cuFuncGetAttribute(out, which, (CUfunction)handle);
}

CUresult kl_cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel handle, CUdevice device) {
  kl_cu_kernel *k;
  kl_cu_device *d;
  KL_RESULT(kernel_check(handle, &k));
  KL_RESULT(kl_device_check(device, &d));
  if (!kl_current()) return CUDA_ERROR_INVALID_CONTEXT;
  KL_RESULT(kl_cuFuncSetAttribute((CUfunction)handle, which, value));
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) k->dynamic_shared = value;
  if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) k->carveout = value;
  return CUDA_SUCCESS;
}

CUresult kl_cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  kl_cu_kernel *k;
  kl_cu_device *d;
  KL_RESULT(kernel_check(handle, &k));
  KL_RESULT(kl_device_check(device, &d));
  return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Where parameter i lies among all of them.
static CUresult param_info(const kl_ptx_func *f, size_t i, size_t *at, size_t *bytes) {
  size_t offset = 0;
  KL_GIVEN(at);
  if (i >= f->nparams) return CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0;; n++) {
    const kl_ptx_var *v = &f->vars[f->nreturns + n];
    size_t align = v->align ? v->align : 1;
    offset = (offset + align - 1) / align * align;
    if (n == i) {
      *at = offset;
      if (bytes) *bytes = v->bytes;
      return CUDA_SUCCESS;
    }
    offset += v->bytes;
  }
}

CUresult kl_cuKernelGetParamInfo(CUkernel handle, size_t i, size_t *at, size_t *bytes) {
  kl_cu_kernel *k;
  KL_RESULT(kernel_check(handle, &k));
  return param_info(k->func, i, at, bytes);
}

CUresult kl_cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *at, size_t *bytes) {
  kl_cu_function *f;
  KL_RESULT(kl_function_check(handle, &f));
  return param_info(f->facts.func, i, at, bytes);
}

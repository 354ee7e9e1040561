// Linking: the texts of several modules become one.

#include "sim/driver/module.h"

typedef struct kl_link {
  kl_object o;
  kl_sb text;
  bool complete;
} kl_link;

static CUresult link_check(CUlinkState handle, kl_link **out) {
  *out = kl_object_find(handle, KL_LINK);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *out) {
  kl_jit_options o;
  KL_GIVEN(out);
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  kl_link *l = kl_object_new(KL_LINK, sizeof *l, kl_current());
  if (!l) return CUDA_ERROR_OUT_OF_MEMORY;
  kl_sb_init(&l->text, kl_sim.cx);
  kl_jit_options_answer(&o);
  *out = KL_HANDLE(CUlinkState, l);
  return CUDA_SUCCESS;
}

// The first text stays as it is; of the others the head, .version to .address_size, is left out.
static kl_str without_head(kl_str text) {
  static const char *const heads[] = {".version", ".target", ".address_size"};
  kl_str rest = text;
  for (size_t i = 0; i < KL_COUNT(heads); i++) {
    size_t n = strlen(heads[i]);
    for (size_t at = 0; at + n <= rest.n; at++) {
      if (memcmp(rest.p + at, heads[i], n) != 0) continue;
      const char *end = memchr(rest.p + at, '\n', rest.n - at);
      size_t used = end ? (size_t)(end - rest.p) : rest.n;
      rest = (kl_str){rest.p + used, rest.n - used};
      break;
    }
  }
  return rest;
}

CUresult kl_cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data, size_t size, const char *name,
                             unsigned n, CUjit_option *options, void **values) {
  kl_link *l;
  kl_jit_options o;
  KL_GIVEN(data);
  KL_RESULT(link_check(handle, &l));
  if (l->complete || size < 4) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  if (type != CU_JIT_INPUT_PTX)
    return type == CU_JIT_INPUT_CUBIN ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_NOT_SUPPORTED;
  const char *end = memchr(data, 0, size);
  kl_str text = {data, end ? (size_t)(end - (char *)data) : size};
  char *copy = kl_try_alloc(kl_sim.cx, text.n + 4);
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(copy, text.p, text.n);
  CUresult code = kl_ptx_check(copy);
  kl_free(kl_sim.cx, copy, text.n + 4);
  if (!code) kl_sb_put(&l->text, l->text.n ? without_head(text) : text), kl_sb_putc(&l->text, '\n');
  return code;
}

CUresult kl_cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path, unsigned n,
                             CUjit_option *options, void **values) {
  char *image;
  size_t size;
  KL_GIVEN(path);
  KL_RESULT(kl_file_read(path, &image, &size));
  CUresult code = kl_cuLinkAddData_v2(handle, type, image, strlen(image) + 1, path, n, options, values);
  kl_free(kl_sim.cx, image, size);
  return code;
}

// What the driver calls a cubin is the text; it can be loaded, here alone.
CUresult kl_cuLinkComplete(CUlinkState handle, void **out, size_t *size) {
  kl_link *l;
  kl_ptx_module *ptx = NULL;
  KL_GIVEN(out);
  KL_RESULT(link_check(handle, &l));
  if (!l->text.n) return CUDA_ERROR_INVALID_VALUE;
  if (kl_ptx_parse(kl_sim.cx, "linked", (kl_str){l->text.p, l->text.n}, &ptx)) return CUDA_ERROR_INVALID_PTX;
  kl_ptx_free(kl_sim.cx, ptx);
  l->complete = true;
  *out = l->text.p;
  if (size) *size = l->text.n + 1;
  return CUDA_SUCCESS;
}

CUresult kl_cuLinkDestroy(CUlinkState handle) {
  kl_link *l;
  KL_RESULT(link_check(handle, &l));
  kl_sb_free(&l->text);
  kl_object_delete(l, sizeof *l);
  return CUDA_SUCCESS;
}

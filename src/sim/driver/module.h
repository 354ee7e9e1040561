// What modules and libraries share: options of loading, texts.
#ifndef KL_SIM_MODULE_H
#define KL_SIM_MODULE_H

#include "sim/driver/impl.h"

typedef struct kl_jit_log {
  char *p;
  unsigned size;
  void **told; // where the bytes that were written are noted
} kl_jit_log;
typedef struct kl_jit_options {
  kl_jit_log info, error;
  void **wall_time;
} kl_jit_options;

CUresult kl_jit_options_read(unsigned n, const CUjit_option *options, void **values, kl_jit_options *out);
// Writes what was found since the call began into the caller's buffers.
void kl_jit_options_answer(kl_jit_options *o);

// Is an image PTX, of a version that is known? NO_BINARY_FOR_GPU: code of hardware; INVALID_IMAGE: neither;
// UNSUPPORTED_PTX_VERSION.
CUresult kl_ptx_check(const char *image);
// The image's text with what it wants of CUDA's device runtime, in a block of *size bytes, its NUL included; or NULL.
char *kl_ptx_text(const char *image, size_t *size);
// A declaration whose name stands at `at` is no longer .extern, or, with `whole`, no longer there: what defines it
// stands in the same text. Blanks take its place. False if it is not .extern.
bool kl_ptx_define(char *text, size_t at, bool whole);
// FILE_NOT_FOUND. The block is *size bytes long; a NUL stands behind the file's.
CUresult kl_file_read(const char *name, char **out, size_t *size);

CUresult kl_module_load(kl_cu_context *c, kl_str text, kl_cu_module **out);
CUresult kl_module_function(kl_cu_module *m, const char *name, kl_cu_function **out);
CUresult kl_module_global(kl_cu_module *m, const char *name, CUdeviceptr *out, size_t *size);

#endif

// A stand-in for NVIDIA's nvJitLink: it assembles nothing, fails where it is told to, and keeps account.
#include "linker_library.h"

#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) linker_account linker;
#define EXPORT __attribute__((visibility("default"))) int

// The n-th call fails.
static int enter(void) {
  return ++linker.calls == linker.fail_at ? 7 : 0;
}

EXPORT nvJitLinkCreate(void **handle, unsigned count, const char **options);
EXPORT nvJitLinkDestroy(void **handle);
EXPORT nvJitLinkAddData(void *handle, int kind, const void *data, size_t size, const char *name);
EXPORT nvJitLinkComplete(void *handle);
EXPORT nvJitLinkGetLinkedCubinSize(void *handle, size_t *size);
EXPORT nvJitLinkGetLinkedCubin(void *handle, void *cubin);
EXPORT nvJitLinkGetErrorLogSize(void *handle, size_t *size);
EXPORT nvJitLinkGetErrorLog(void *handle, char *log);

int nvJitLinkCreate(void **handle, unsigned count, const char **options) {
  if (enter()) return 7;
  if (count == 1) snprintf(linker.option, sizeof linker.option, "%s", options[0]);
  linker.alive++;
  *handle = &linker;
  return 0;
}
int nvJitLinkDestroy(void **handle) {
  linker.alive--;
  *handle = NULL;
  return 0;
}
int nvJitLinkAddData(void *handle, int kind, const void *data, size_t size, const char *name) {
  if (enter()) return 7;
  linker.is_ptx = handle == &linker && kind == 2 && name && size && ((const char *)data)[size - 1] == 0;
  linker.ptx_size = size - 1;
  return 0;
}
int nvJitLinkComplete(void *handle) {
  return enter();
}
int nvJitLinkGetLinkedCubinSize(void *handle, size_t *size) {
  if (enter()) return 7;
  *size = linker.makes_nothing ? 0 : LINKER_CUBIN_SIZE;
  return 0;
}
int nvJitLinkGetLinkedCubin(void *handle, void *cubin) {
  if (enter()) return 7;
  memset(cubin, 0, LINKER_CUBIN_SIZE);
  memcpy(cubin, "\177ELF\002", 5);
  return 0;
}
int nvJitLinkGetErrorLogSize(void *handle, size_t *size) {
  *size = linker.log ? strlen(linker.log) + 1 : 0;
  return 0;
}
int nvJitLinkGetErrorLog(void *handle, char *log) {
  strcpy(log, linker.log);
  return 0;
}

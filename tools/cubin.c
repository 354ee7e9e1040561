// Machine code from PTX.

#include "manifest.h"
#include "ptxas.h"

#include <stdlib.h>

static int by_ptxas(FILE *out, const char *ptxas, const kiln_artifact *a) {
  size_t size;
  assembly made;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size), *target = kiln_artifact_manifest(a)->target;
  int status = ptxas_assemble(ptxas, NULL, target, ptx, size, false, &made);
  if (status == EXIT_NOT_SUPPORTED)
    fprintf(stderr, "%skiln compile: %s refused the PTX for %s\n", made.log ? made.log : "", ptxas, target);
  if (made.cubin) fwrite(made.cubin, 1, made.cubin_size, out);
  assembly_free(&made);
  return status;
}

static int by_library(FILE *out, kiln_context *cx, const char *library, const kiln_artifact *a) {
  kiln_assemble_params p = {.struct_size = sizeof p, .library = library};
  void *cubin;
  size_t size;
  kiln_status st = kiln_artifact_assemble(cx, a, &p, &cubin, &size);
  if (st == KILN_OK) fwrite(cubin, 1, size, out);
  kiln_artifact_bytes_free(cx, cubin, size);
  if (st == KILN_E_UNSUPPORTED && !library) {
    kiln_diagnostics_clear(cx);
    fprintf(stderr,
            "kiln compile: --emit cubin needs NVIDIA's ptxas, found none in PATH, CUDA_HOME or /usr/local/cuda, "
            "or its nvJitLink, found no libnvJitLink.so.13 or .12 (KILN_NVJITLINK names one)\n");
    return EXIT_NOT_SUPPORTED;
  }
  return report(cx, st);
}

int put_cubin(FILE *out, kiln_context *cx, const kiln_artifact *a) {
  char ptxas[4096];
  const char *library = getenv("KILN_NVJITLINK");
  if (library && *library) return by_library(out, cx, library, a);
  return ptxas_find(ptxas, sizeof ptxas) ? by_ptxas(out, ptxas, a) : by_library(out, cx, NULL, a);
}

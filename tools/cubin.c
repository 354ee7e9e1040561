// Machine code from PTX.

#include "manifest.h"
#include "ptxas.h"

#include <stdlib.h>
#include <string.h>

static int by_ptxas(const char *ptxas, const kiln_artifact *a, machine_code *out) {
  size_t size;
  assembly made;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size), *target = kiln_artifact_manifest(a)->target;
  int status = ptxas_assemble(ptxas, NULL, target, ptx, size, false, &made);
  if (status == EXIT_NOT_SUPPORTED)
    fprintf(stderr, "%skiln compile: %s refused the PTX for %s\n", made.log ? made.log : "", ptxas, target);
  if (!status) {
    *out = (machine_code){made.cubin, made.cubin_size};
    made.cubin = NULL;
  }
  assembly_free(&made);
  return status;
}

static int by_library(kiln_context *cx, const char *library, const kiln_artifact *a, machine_code *out) {
  kiln_assemble_params p = {.struct_size = sizeof p, .library = library};
  void *cubin;
  size_t size;
  kiln_status st = kiln_artifact_assemble(cx, a, &p, &cubin, &size);
  if (st == KILN_OK) *out = (machine_code){malloc(size), size};
  if (out->bytes) memcpy(out->bytes, cubin, size);
  kiln_artifact_bytes_free(cx, cubin, size);
  if (st == KILN_OK && !out->bytes) return out_of_memory((int64_t)size);
  if (st == KILN_E_UNSUPPORTED && !library) {
    kiln_diagnostics_clear(cx);
    fprintf(stderr,
            "kiln compile: machine code needs NVIDIA's ptxas, found none in PATH, CUDA_HOME or /usr/local/cuda, "
            "or its nvJitLink, found no libnvJitLink.so.13 or .12 (KILN_NVJITLINK names one)\n");
    return EXIT_NOT_SUPPORTED;
  }
  return report(cx, st);
}

int make_cubin(kiln_context *cx, const kiln_artifact *a, machine_code *out) {
  char ptxas[4096];
  const char *library = getenv("KILN_NVJITLINK");
  *out = (machine_code){0};
  if (library && *library) return by_library(cx, library, a, out);
  return ptxas_find(ptxas, sizeof ptxas) ? by_ptxas(ptxas, a, out) : by_library(cx, NULL, a, out);
}

int put_cubin(FILE *out, kiln_context *cx, const kiln_artifact *a) {
  machine_code made;
  int status = make_cubin(cx, a, &made);
  if (!status) fwrite(made.bytes, 1, made.size, out);
  free(made.bytes);
  return status;
}

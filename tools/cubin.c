// Machine code from PTX.

#include "manifest.h"
#include "ptxas.h"

int put_cubin(FILE *out, const kiln_artifact *a) {
  char ptxas[4096];
  size_t size;
  assembly made;
  if (!ptxas_find(ptxas, sizeof ptxas)) {
    fprintf(stderr,
            "kiln compile: --emit cubin needs NVIDIA's ptxas: found none in PATH, CUDA_HOME or /usr/local/cuda\n");
    return EXIT_NOT_SUPPORTED;
  }
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size), *target = kiln_artifact_manifest(a)->target;
  int status = ptxas_assemble(ptxas, NULL, target, ptx, size, false, &made);
  if (status == EXIT_NOT_SUPPORTED)
    fprintf(stderr, "%skiln compile: %s refused the PTX for %s\n", made.log ? made.log : "", ptxas, target);
  if (made.cubin) fwrite(made.cubin, 1, made.cubin_size, out);
  assembly_free(&made);
  return status;
}

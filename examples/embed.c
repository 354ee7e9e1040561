// kiln as a library: one graph, compiled to PTX for a GPU elsewhere, and to code for this machine, which runs it.
#include <kiln/kiln.h>
#include <stdio.h>
#include <string.h>

static const char text[] = "HloModule swish\n"
                           "ENTRY main {\n"
                           "  x = f32[8] parameter(0)\n"
                           "  s = f32[8] logistic(x)\n"
                           "  ROOT y = f32[8] multiply(x, s)\n"
                           "}\n";

int main(void) {
  float x[8] = {-4, -2, -1, 0, 1, 2, 4, 8}, y[8] = {0};
  const void *parameters[] = {x};
  void *results[] = {y};
  kiln_module *module = NULL;
  kiln_artifact *gpu = NULL, *host = NULL;
  kiln_kernel *kernel = NULL;
  kiln_compile_params for_gpu = {.struct_size = sizeof for_gpu, .target = "sm_90"};
  kiln_compile_params for_host = {.struct_size = sizeof for_host, .target = "host"};
  kiln_context *cx = kiln_context_create(NULL);
  if (!cx) return 1;

  bool ok = kiln_module_parse(cx, "swish.hlo", text, strlen(text), &module) == KILN_OK &&
            kiln_compile(cx, module, &for_gpu, &gpu) == KILN_OK &&
            kiln_compile(cx, module, &for_host, &host) == KILN_OK && kiln_kernel_load(cx, host, &kernel) == KILN_OK &&
            kiln_kernel_run(cx, kernel, parameters, results, NULL) == KILN_OK;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  if (ok) {
    const kiln_launch *launch = kiln_artifact_manifest(gpu)->launches;
    printf("%s\n", kiln_artifact_text(gpu, KILN_TEXT_PTX, NULL));
    printf("launch %s: grid %u, block %u\n", launch->kernel, launch->grid[0], launch->block[0]);
    for (int i = 0; i < 8; i++) printf("swish(%g) = %.9g\n", (double)x[i], (double)y[i]);
  }

  kiln_kernel_destroy(&kernel);
  kiln_artifact_destroy(&host);
  kiln_artifact_destroy(&gpu);
  kiln_module_destroy(&module);
  kiln_context_destroy(&cx);
  return ok ? 0 : 1;
}

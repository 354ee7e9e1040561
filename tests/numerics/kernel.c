#include "kernel.h"

#include "support/ptxas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nu_kernel {
  const nu_function *f;
  kiln_kernel *host;
  kiln_context *cx; // of the simulator
  kiln_simulator *sim;
  kiln_sim_kernel *kernel;
  kiln_launch launch; // its texts and arrays are not used
  uint64_t bytes, at[3], perturb;
};

static kiln_artifact *compile(kiln_context *cx, const nu_function *f, nu_type t, const char *target, size_t n) {
  char text[512];
  const char *type = nu_types[t].dtype, *result = nu_types[nu_result_type(f, t)].dtype;
  int size = snprintf(text, sizeof text,
                      "HloModule m\n\nENTRY fusion {\n  x = %s[%zu] parameter(0)\n  y = %s[%zu] parameter(1)\n"
                      "  ROOT r = %s[%zu] %s(x%s)\n}\n",
                      type, n, type, n, result, n, f->op, f->operands == 2 ? ", y" : "");
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params params = {.struct_size = sizeof params,
                                .target = target,
                                .numerics = t == NU_F32_FAST ? KILN_NUMERICS_FAST : KILN_NUMERICS_STRICT};
  if (kiln_module_parse(cx, f->op, text, (size_t)size, &m) == KILN_OK) kiln_compile(cx, m, &params, &a);
  kiln_module_destroy(&m);
  return a;
}

static bool open_sim(nu_kernel *k, const kiln_artifact *a) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  kiln_sim_module *module;
  size_t size;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  k->launch = m->launches[0];
  return kiln_simulator_open(k->cx, &k->sim) == KILN_OK &&
         kiln_simulator_load(k->cx, k->sim, k->f->op, ptx, size, &module) == KILN_OK &&
         kiln_sim_module_kernel(k->cx, module, k->launch.kernel, &k->kernel) == KILN_OK &&
         kiln_simulator_alloc(k->cx, k->sim, k->bytes, &k->at[0]) == KILN_OK &&
         kiln_simulator_alloc(k->cx, k->sim, k->bytes, &k->at[1]) == KILN_OK &&
         kiln_simulator_alloc(k->cx, k->sim, k->bytes, &k->at[2]) == KILN_OK;
}

nu_kernel *nu_kernel_open(kiln_context *cx, const nu_function *f, nu_type t, nu_device device, uint64_t perturb) {
  nu_kernel *k = calloc(1, sizeof *k);
  *k = (nu_kernel){.f = f, .cx = cx, .bytes = NU_BATCH * nu_types[t].bits / 8, .perturb = perturb};
  kiln_artifact *a = compile(cx, f, t, device == NU_HOST ? "host" : "sm_90", NU_BATCH);
  bool good = a && (device == NU_HOST ? kiln_kernel_load(cx, a, &k->host) == KILN_OK : open_sim(k, a));
  kiln_artifact_destroy(&a);
  if (good) return k;
  nu_kernel_close(k);
  return NULL;
}

void nu_kernel_close(nu_kernel *k) {
  if (!k) return;
  kiln_kernel_destroy(&k->host);
  kiln_simulator_close(&k->sim);
  free(k);
}

bool nu_kernel_run(kiln_context *cx, nu_kernel *k, const void *x, const void *y, void *r) {
  const void *in[2] = {x, k->f->operands == 2 ? y : x};
  if (k->host) {
    kiln_run_params params = {.struct_size = sizeof params, .threads = 1};
    return kiln_kernel_run(cx, k->host, in, &r, &params) == KILN_OK;
  }
  kiln_sim_launch_params launch = {.struct_size = sizeof launch,
                                   .perturb = k->perturb,
                                   .arguments = (const void *[]){&k->at[0], &k->at[1], &k->at[2]}};
  memcpy(launch.grid, k->launch.grid, sizeof launch.grid);
  memcpy(launch.block, k->launch.block, sizeof launch.block);
  for (int i = 0; i < 2; i++) memcpy(kiln_simulator_bytes(k->sim, k->at[i], k->bytes), in[i], k->bytes);
  if (kiln_sim_kernel_launch(k->cx, k->kernel, &launch, NULL) != KILN_OK) return false;
  memcpy(r, kiln_simulator_bytes(k->sim, k->at[2], k->bytes), k->bytes);
  return true;
}

bool nu_is_of_its_own(kiln_context *cx, const nu_function *f, nu_type t) {
  if (!nu_takes(f, t)) return false;
  if (t != NU_F32_FAST) return true;
  kiln_artifact *fast = compile(cx, f, t, "sm_90", NU_BATCH), *strict = compile(cx, f, NU_F32, "sm_90", NU_BATCH);
  bool same =
      fast && strict &&
      strcmp(kiln_artifact_text(fast, KILN_TEXT_PTX, NULL), kiln_artifact_text(strict, KILN_TEXT_PTX, NULL)) == 0;
  kiln_artifact_destroy(&fast);
  kiln_artifact_destroy(&strict);
  return !same;
}

static unsigned ptx_instructions(const char *ptx) {
  unsigned n = 0;
  for (const char *p = ptx; *p; p += strcspn(p, "\n"), p += *p == '\n')
    n += p[0] == '\t' && (p[1] == '@' || (p[1] >= 'a' && p[1] <= 'z')) && memchr(p, ';', strcspn(p, "\n"));
  return n;
}

bool nu_cost_of(kiln_context *cx, const nu_function *f, nu_type t, nu_cost *out) {
  kiln_artifact *a = compile(cx, f, t, "sm_90", (size_t)1 << 22);
  if (!a) return false;
  size_t size;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  *out = (nu_cost){.lanes = kiln_artifact_manifest(a)->launches[0].lanes, .ptx = ptx_instructions(ptx)};
  bool good = true;
  if (ptxas_path()) {
    ptxas_result r = ptxas_run(ptx, size, "sm_90");
    good = r.ok;
    out->sass = (unsigned)r.sass, out->registers = (unsigned)r.registers;
  }
  kiln_artifact_destroy(&a);
  return good;
}

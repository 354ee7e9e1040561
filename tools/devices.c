// kiln devices: what kernels can run on here.

#include "kiln.h"
#include <stdlib.h>
#include <unistd.h>

enum { O_JSON };
static const option options[] = {
    {"--json", NULL, "print one JSON object"},
    {0},
};

// What the driver says of its devices; *why: what it says where there are none.
static uint32_t find_gpus(kiln_context *cx, kiln_driver **d, const char **why) {
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true};
  uint32_t n = 0;
  *why = "the driver sees no GPU";
  kiln_status st = kiln_driver_open(cx, &p, d);
  if (st == KILN_OK) st = kiln_device_count(cx, *d, &n);
  if (st != KILN_OK) *why = kiln_diagnostics_get(cx, 0)->message;
  return st == KILN_OK ? n : 0;
}

static void print_gpu(const kiln_device_info *g, uint32_t i) {
  printf("cuda:%u %s, %s, %u multiprocessors, %.1f GiB", i, g->name, g->target, g->multiprocessors,
         (double)g->memory_bytes / (1 << 30));
  if (g->bytes_per_second > 0) printf(", %.0f GB/s", g->bytes_per_second * 1e-9);
  printf(", %.0f MiB L2, %u KiB shared a block\n", (double)g->l2_bytes / (1 << 20), g->block_shared_optin / 1024);
}

static void print_gpu_json(const kiln_device_info *g, uint32_t i) {
  printf("%s{\"name\": ", i ? ", " : "");
  json_string(stdout, g->name);
  printf(", \"target\": \"%s\", \"multiprocessors\": %u, \"memory_bytes\": %llu, \"bytes_per_second\": %.0f, "
         "\"l2_bytes\": %u, \"registers\": %u, \"shared_bytes\": %u, \"block_shared_optin\": %u}",
         g->target, g->multiprocessors, (unsigned long long)g->memory_bytes, g->bytes_per_second, g->l2_bytes,
         g->registers, g->shared_bytes, g->block_shared_optin);
}

static void print_json_head(long cores, const kiln_driver *d, const kiln_device_info *sim) {
  printf("{\"cores\": %ld, \"driver\": %d, \"simulated\": [", cores, d ? kiln_driver_version(d) : 0);
  print_gpu_json(sim, 0);
  printf("], \"gpus\": [");
}

// What --device sim plays.
static kiln_status describe_simulated(kiln_context *cx, kiln_device_info *out) {
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true, .resolve = kiln_sim_resolve};
  kiln_driver *d = NULL;
  kiln_status st = kiln_driver_open(cx, &p, &d);
  if (st == KILN_OK) st = kiln_device_describe(cx, d, 0, out);
  kiln_driver_close(&d);
  return st;
}

static void print(const kiln_driver *d, const kiln_device_info *sim, const kiln_device_info *gpus, uint32_t n,
                  const char *why, bool json) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (json)
    print_json_head(cores, d, sim);
  else
    printf("host   this machine's CPU through ORC, %ld core%s\neval   the reference evaluator\n"
           "sim    PTX on a simulated GPU: %s, %s\n",
           cores, cores == 1 ? "" : "s", sim->name, sim->target);
  for (uint32_t i = 0; i < n; i++) (json ? print_gpu_json : print_gpu)(&gpus[i], i);
  if (!json && n == 0) printf("cuda   none: %s\n", why);
  if (json) printf("]}\n");
}

static int list(kiln_context *cx, bool json) {
  kiln_driver *d = NULL;
  const char *why;
  uint32_t n = find_gpus(cx, &d, &why);
  kiln_device_info *gpus = calloc((size_t)n + 1, sizeof *gpus);
  kiln_status st = gpus ? KILN_OK : KILN_E_MEMORY;
  for (uint32_t i = 0; i < n && st == KILN_OK; i++) {
    gpus[i].struct_size = sizeof *gpus;
    st = kiln_device_describe(cx, d, i, &gpus[i]);
  }
  kiln_device_info sim = {.struct_size = sizeof sim};
  char said[512];
  snprintf(said, sizeof said, "%s", why);
  if (n == 0) kiln_diagnostics_clear(cx); // no GPU is no error
  if (st == KILN_OK) st = describe_simulated(cx, &sim);
  if (st == KILN_OK) print(d, &sim, gpus, n, said, json);
  kiln_driver_close(&d);
  free(gpus);
  return report(cx, st);
}

static int run(const args *a) {
  kiln_context *cx = kiln_context_create(NULL);
  int status = list(cx, a->values[O_JSON] != NULL);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_devices = {
    "devices", "devices [--json]", "what can run here", "Lists the devices that kiln run --device knows.", options, run,
    false};

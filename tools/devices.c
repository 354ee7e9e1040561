// kiln devices: what kernels can run on here.

#include "kiln.h"
#include <unistd.h>

enum { O_JSON };
static const option options[] = {
    {"--json", NULL, "print one JSON object"},
    {0},
};

static const struct {
  const char *name, *about;
  bool usable;
} devices[] = {
    {"host", "this machine's CPU through ORC", true},
    {"eval", "the reference evaluator", true},
    {"sim", "the PTX simulator", false},
    {"cuda", "NVIDIA GPUs through the CUDA driver", false},
};
enum { DEVICES = sizeof devices / sizeof devices[0] };

static int run(const args *a) {
  bool json = a->values[O_JSON] != NULL;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (json) printf("{\"cores\": %ld, \"devices\": [", cores);
  for (int i = 0; i < DEVICES; i++) {
    const char *name = devices[i].name;
    if (json)
      printf("%s{\"name\": \"%s\", \"supported\": %s}", i ? ", " : "", name, devices[i].usable ? "true" : "false");
    else if (i == 0)
      printf("%-6s %s, %ld core%s\n", name, devices[i].about, cores, cores == 1 ? "" : "s");
    else
      printf("%-6s %s%s\n", name, devices[i].usable ? "" : "not supported yet: ", devices[i].about);
  }
  if (json) printf("]}\n");
  return EXIT_DONE;
}

const verb verb_devices = {
    "devices", "devices [--json]", "what can run here", "Lists the devices that kiln run --device knows.", options, run,
    false};

// kiln devices: what kernels can run on here.

#include "kiln.h"
#include <unistd.h>

static const option options[] = {{0}};

static int run(const args *a) {
  (void)a;
  printf("host   this machine's CPU through ORC, %ld cores\n", sysconf(_SC_NPROCESSORS_ONLN));
  printf("eval   the reference evaluator\n");
  printf("sim    not supported yet: the PTX simulator\n");
  printf("cuda   not supported yet: NVIDIA GPUs through the CUDA driver\n");
  return EXIT_DONE;
}

const verb verb_devices = {"devices", "devices", "Lists the devices that `kiln run --device` knows.",
                           options,   run,       false};

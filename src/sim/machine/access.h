// Where the lanes of an access lie on the host.
#ifndef KL_MACHINE_ACCESS_H
#define KL_MACHINE_ACCESS_H

#include "sim/machine/warp.h"

typedef struct kl_places {
  uint64_t address[KL_LANES];
  char *host[KL_LANES]; // of the lanes that execute
} kl_places;

// Of an access of op `o`. False after a fault, which ends the launch.
bool kl_access_places(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, kl_places *out);

#endif

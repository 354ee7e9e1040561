// The driver for those who embed it.

#include "sim/driver/driver.h"

#include <kiln/sim.h>

kiln_status kiln_sim_configure(kiln_context *cx, const kiln_sim_params *params) {
  kiln_sim_params p;
  KL_EXPECT(cx, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_sim_params, params, &p));
  kl_sim_options o = {.devices = p.devices, .workers = p.workers, .shuffle = p.shuffle, .perturb = p.perturb};
  return kl_sim_configure(cx, &o);
}

void *kiln_sim_resolve(void *user, const char *name, int version) {
  return kl_sim_resolve(name, version);
}

// The driver for those who embed it.

#include "sim/driver/impl.h"

#include <kiln/sim.h>

kiln_status kiln_sim_configure(kiln_context *cx, const kiln_sim_params *params) {
  kiln_sim_params p;
  KL_EXPECT(cx, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_sim_params, params, &p));
  kl_sim_options o = {
      .devices = p.devices, .workers = p.workers, .shuffle = p.shuffle, .perturb = p.perturb, .checks = p.checks};
  return kl_sim_configure(cx, &o);
}

size_t kiln_sim_finding_count(void) {
  size_t n = kl_sim_enter(KL_NEED_NOTHING, false) == CUDA_SUCCESS ? kl_sim.findings.list.n : 0;
  kl_sim_leave();
  return n;
}

kiln_status kiln_sim_finding_get(kiln_context *cx, size_t i, kiln_sim_finding *out) {
  KL_EXPECT(cx, out);
  kl_sim_enter(KL_NEED_NOTHING, false);
  kiln_status s = kl_findings_get(cx, &kl_sim.findings, i, out);
  kl_sim_leave();
  return s;
}

void *kiln_sim_resolve(void *user, const char *name, int version) {
  return kl_sim_resolve(name, version);
}

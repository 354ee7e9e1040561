// Simulated GPUs, and profiles of what ran on them.
#include "misuse.h"

static const void *const none[] = {NULL};

static void null_profile(kiln_sim_kernel *k) {
  uint32_t n = 5;
  const void *arguments[] = {&n};
  kiln_sim_launch_params lp = {.struct_size = sizeof lp, .arguments = arguments};
  kiln_profile *p = NULL;
  kiln_profile_info info = {.struct_size = sizeof info};
  kiln_profile_assembly made = {.struct_size = sizeof made};
  size_t size = 5;
  NULLS(INVALID_CX, kiln_profile *, kiln_sim_kernel_profile(NULL, k, &lp, NULL, NULL, &o));
  NULLS(INVALID, kiln_profile *, kiln_sim_kernel_profile(cx, NULL, &lp, NULL, NULL, &o));
  NULLS(INVALID, kiln_profile *, kiln_sim_kernel_profile(cx, k, NULL, NULL, NULL, &o));
  INVALID(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, NULL));
  kiln_profile_destroy(NULL);
  kiln_profile_destroy(&p);
  ck_assert_ptr_null(kiln_profile_source(NULL, false, &size));
  ck_assert_uint_eq(size, 0);
  lp.checks = KILN_SIM_CHECK_RACE;
  ck_assert_int_eq(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, &p), KILN_E_INVALID);
  lp.checks = 0;
  ck_assert_int_eq(kiln_sim_kernel_profile(cx, k, &lp, NULL, NULL, &p), KILN_OK);
  ck_assert_ptr_nonnull(kiln_profile_source(p, false, NULL));
  INVALID_CX(kiln_profile_describe(NULL, p, &info));
  INVALID(kiln_profile_describe(cx, NULL, &info));
  INVALID(kiln_profile_describe(cx, p, NULL));
  INVALID_CX(kiln_profile_assembled(NULL, p, &made));
  INVALID(kiln_profile_assembled(cx, NULL, &made));
  INVALID(kiln_profile_assembled(cx, p, NULL));
  INVALID(kiln_profile_assembled(cx, p, &made)); // no cubin
  kiln_profile_destroy(&p);
  ck_assert_ptr_null(p);
}

START_TEST(null_sim) {
  kiln_sim_params p = {.struct_size = sizeof p};
  INVALID_CX(kiln_sim_configure(NULL, &p));
  INVALID(kiln_sim_configure(cx, NULL));
  ck_assert_ptr_null(kiln_sim_resolve(NULL, NULL, 12000));
  ck_assert_ptr_nonnull(kiln_sim_resolve(NULL, "cuInit", 12000));
  kiln_simulator *sim = NULL;
  kiln_sim_module *sm = NULL;
  kiln_sim_kernel *k = NULL;
  kiln_sim_launch_params lp = {.struct_size = sizeof lp};
  uint64_t at, size;
  static const char ptx[] =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }\n";
  NULLS(INVALID_CX, kiln_simulator *, kiln_simulator_open(NULL, &o));
  INVALID(kiln_simulator_open(cx, NULL));
  kiln_simulator_close(NULL);
  kiln_simulator_close(&sim);
  ck_assert_int_eq(kiln_simulator_open(cx, &sim), KILN_OK);
  NULLS(INVALID_CX, uint64_t, kiln_simulator_alloc(NULL, sim, 4, &o));
  NULLS(INVALID, uint64_t, kiln_simulator_alloc(cx, NULL, 4, &o));
  INVALID(kiln_simulator_alloc(cx, sim, 4, NULL));
  ck_assert(!kiln_simulator_free(NULL, 4) && !kiln_simulator_free(sim, 0));
  ck_assert_ptr_null(kiln_simulator_bytes(NULL, 4, 4));
  NULLS(INVALID_CX, kiln_sim_module *, kiln_simulator_load(NULL, sim, "m", ptx, 4, &o));
  NULLS(INVALID, kiln_sim_module *, kiln_simulator_load(cx, NULL, "m", ptx, 4, &o));
  NULLS(INVALID, kiln_sim_module *, kiln_simulator_load(cx, sim, "m", NULL, 4, &o));
  INVALID(kiln_simulator_load(cx, sim, "m", ptx, 4, NULL));
  ck_assert_int_eq(kiln_simulator_load(cx, sim, NULL, ptx, sizeof ptx - 1, &sm), KILN_OK);
  ck_assert_ptr_null(kiln_sim_module_kernel_at(NULL, 0));
  ck_assert(!kiln_sim_module_variable(NULL, "v", &at, &size) && !kiln_sim_module_variable(sm, NULL, &at, &size));
  ck_assert(!kiln_sim_module_variable(sm, "v", NULL, &size) && !kiln_sim_module_variable(sm, "v", &at, NULL));
  NULLS(INVALID_CX, kiln_sim_kernel *, kiln_sim_module_kernel(NULL, sm, "k", &o));
  NULLS(INVALID, kiln_sim_kernel *, kiln_sim_module_kernel(cx, NULL, "k", &o));
  NULLS(INVALID, kiln_sim_kernel *, kiln_sim_module_kernel(cx, sm, NULL, &o));
  INVALID(kiln_sim_module_kernel(cx, sm, "k", NULL));
  ck_assert_int_eq(kiln_sim_module_kernel(cx, sm, "k", &k), KILN_OK);
  ck_assert_ptr_null(kiln_sim_kernel_describe(NULL));
  INVALID_CX(kiln_sim_kernel_launch(NULL, k, &lp, NULL));
  INVALID(kiln_sim_kernel_launch(cx, NULL, &lp, NULL));
  INVALID(kiln_sim_kernel_launch(cx, k, NULL, NULL));
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL)); // its argument
  lp.arguments = none;
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL));
  null_profile(k);
  uint32_t word = 0;
  const void *one[] = {&word};
  kiln_sim_range nowhere = {64, 4};
  kiln_sim_finding finding = {.struct_size = sizeof finding};
  lp.arguments = one;
  lp.checks = KILN_SIM_CHECK_ALL + 1;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, k, &lp, NULL), KILN_E_INVALID);
  lp.checks = KILN_SIM_CHECK_ALL;
  lp.output_count = 1;
  INVALID(kiln_sim_kernel_launch(cx, k, &lp, NULL));
  lp.outputs = &nowhere;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, k, &lp, NULL), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_simulator_finding_count(NULL), 0);
  ck_assert_uint_eq(kiln_simulator_finding_count(sim), 0);
  INVALID_CX(kiln_simulator_finding(NULL, sim, 0, &finding));
  INVALID(kiln_simulator_finding(cx, NULL, 0, &finding));
  INVALID(kiln_simulator_finding(cx, sim, 0, NULL));
  ck_assert_int_eq(kiln_simulator_finding(cx, sim, 0, &finding), KILN_E_INVALID);
  kiln_simulator_close(&sim);
  p.checks = KILN_SIM_CHECK_ALL + 1;
  ck_assert_int_eq(kiln_sim_configure(cx, &p), KILN_E_INVALID);
  INVALID_CX(kiln_sim_finding_get(NULL, 0, &finding));
  INVALID(kiln_sim_finding_get(cx, 0, NULL));
  ck_assert_int_eq(kiln_sim_finding_get(cx, kiln_sim_finding_count(), &finding), KILN_E_INVALID);
}
END_TEST

void misuse_simulator(Suite *s) {
  ADD("simulator", {null_sim});
}

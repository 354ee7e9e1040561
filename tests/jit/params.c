// Structs that carry their own size: callers older and newer than this version, and callers that forgot.
#include "handles.h"
#include "support/share.h"

#include <stdio.h>
#include <string.h>

static uint64_t at_in[1], at_out[1];

static void setup(void) {
  make_context();
  m = parse("HloModule m\nENTRY e { p = f32[256] parameter(0) ROOT r = f32[256] negate(p) }\n");
  open_handles(m, m);
  at_in[0] = (uintptr_t)in;
  at_out[0] = (uintptr_t)out;
}

static void teardown(void) {
  close_handles();
  drop_context();
}

// --- the structs ----------------------------------------------------------------------------------------------------

static kiln_status context(void *p) {
  kiln_context *own = kiln_context_create(p);
  bool made = own != NULL;
  kiln_context_destroy(&own);
  return made ? KILN_OK : KILN_E_INVALID;
}
static kiln_status eval(void *p) {
  return kiln_module_eval(cx, m, args, results, p);
}
static kiln_status check(void *p) {
  size_t n = 7;
  kiln_status st = kiln_module_check(cx, m, args, (const void *const *)results, NULL, 0, &n, p);
  ck_assert(st == KILN_OK || n == 0);
  return st;
}
static kiln_status compile(void *p) {
  kiln_artifact *a = gpu;
  kiln_status st = kiln_compile(cx, m, p, &a);
  ck_assert_int_eq(st == KILN_OK, a != NULL);
  kiln_artifact_destroy(&a);
  return st;
}
static kiln_status compile_check(void *p) {
  return kiln_compile_check(cx, m, p);
}
static kiln_status compile_for_device(void *p) {
  kiln_compile_params cp = {.struct_size = sizeof cp, .target = "sm_80", .device = p};
  return compile(&cp);
}
static kiln_status run(void *p) {
  return kiln_kernel_run(cx, on_host, args, results, p);
}
static kiln_status open_driver(void *p) {
  kiln_driver *d = driver;
  kiln_status st = kiln_driver_open(cx, p, &d);
  ck_assert(st == KILN_OK || !d);
  kiln_driver_close(&d);
  return st == KILN_E_DEVICE ? KILN_OK : st; // without the table that an older caller does not know of
}
static kiln_status describe(void *p) {
  return kiln_device_describe(cx, driver, 0, p);
}
static kiln_status resources(void *p) {
  return kiln_cuda_kernel_resources(cx, on_gpu, 0, p);
}
static kiln_status launch(void *p) {
  kiln_cuda_launch_params own = {0};
  size_t size;
  memcpy(&size, p, sizeof size);
  if (size >= sizeof own) {
    own = *(kiln_cuda_launch_params *)p;
    own.parameters = at_in;
    own.results = at_out;
    memcpy(p, &own, sizeof own);
  }
  kiln_status st = kiln_cuda_kernel_launch(cx, on_gpu, p);
  return size >= sizeof size && size < sizeof own && st == KILN_E_INVALID ? KILN_OK : st; // its buffers are missing
}

static kiln_status simulated_launch(void *p, kiln_sim_fault *fault) {
  static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
  kiln_simulator *s = NULL;
  kiln_sim_module *sm = NULL;
  kiln_sim_kernel *k = NULL;
  kiln_sim_launch_params own = {.struct_size = sizeof own};
  ck_assert_int_eq(kiln_simulator_open(cx, &s), KILN_OK);
  ck_assert_int_eq(kiln_simulator_load(cx, s, NULL, ptx, sizeof ptx - 1, &sm), KILN_OK);
  ck_assert_int_eq(kiln_sim_module_kernel(cx, sm, "k", &k), KILN_OK);
  kiln_status st = kiln_sim_kernel_launch(cx, k, p ? p : &own, fault);
  kiln_simulator_close(&s);
  return st;
}
static kiln_status sim_launch(void *p) {
  return simulated_launch(p, NULL);
}
static kiln_status sim_fault(void *p) {
  return simulated_launch(NULL, p);
}
// The same kernel, profiled; what is not given has its size and nothing else.
static kiln_status profiled(void *how, void *info, void *assembly) {
  static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
  kiln_simulator *s = NULL;
  kiln_sim_module *sm = NULL;
  kiln_sim_kernel *k = NULL;
  kiln_profile *p = NULL;
  kiln_sim_launch_params own = {.struct_size = sizeof own};
  ck_assert_int_eq(kiln_simulator_open(cx, &s), KILN_OK);
  ck_assert_int_eq(kiln_simulator_load(cx, s, NULL, ptx, sizeof ptx - 1, &sm), KILN_OK);
  ck_assert_int_eq(kiln_sim_module_kernel(cx, sm, "k", &k), KILN_OK);
  kiln_status st = kiln_sim_kernel_profile(cx, k, &own, how, NULL, &p);
  if (info && st == KILN_OK) st = kiln_profile_describe(cx, p, info);
  if (assembly && st == KILN_OK) {
    st = kiln_profile_assembled(cx, p, assembly);
    if (strstr(kiln_diagnostics_get(cx, 0)->message, "expected a cubin, found NULL")) st = KILN_OK;
  }
  kiln_profile_destroy(&p);
  kiln_simulator_close(&s);
  return st;
}
static kiln_status profile_params(void *p) {
  return profiled(p, NULL, NULL);
}
static kiln_status profile_info(void *p) {
  return profiled(NULL, p, NULL);
}
static kiln_status profile_assembly(void *p) {
  return profiled(NULL, NULL, p);
}
// Of a kernel that leaves its output.
static kiln_status sim_finding(void *p) {
  static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
  kiln_simulator *s = NULL;
  kiln_sim_module *sm = NULL;
  kiln_sim_kernel *k = NULL;
  kiln_sim_range out = {.bytes = 4};
  kiln_sim_launch_params own = {
      .struct_size = sizeof own, .checks = KILN_SIM_CHECK_UNWRITTEN, .outputs = &out, .output_count = 1};
  ck_assert_int_eq(kiln_simulator_open(cx, &s), KILN_OK);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 4, &out.address), KILN_OK);
  ck_assert_int_eq(kiln_simulator_load(cx, s, NULL, ptx, sizeof ptx - 1, &sm), KILN_OK);
  ck_assert_int_eq(kiln_sim_module_kernel(cx, sm, "k", &k), KILN_OK);
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, k, &own, NULL), KILN_E_DEVICE);
  kiln_diagnostics_clear(cx);
  kiln_status st = kiln_simulator_finding(cx, s, 0, p);
  kiln_simulator_close(&s);
  return st;
}
static kiln_status simulate(void *p) {
  return kiln_sim_configure(cx, p);
}

// By an assembler that an older caller does not know of; then by a library that there may not be.
static bool none(void *user, const char *target, const char *ptx, size_t size, kiln_assembly *made) {
  static const char nothing[64] = "\177ELF\002";
  ck_assert(!user && target && strlen(ptx) == size);
  made->cubin = nothing;
  made->size = sizeof nothing;
  return true;
}
static kiln_status assemble(void *p) {
  kiln_assemble_params own = {0};
  size_t bytes, size;
  void *cubin;
  memcpy(&size, p, sizeof size);
  if (size >= sizeof own) {
    own = *(kiln_assemble_params *)p;
    own.assemble = none;
    memcpy(p, &own, sizeof own);
  }
  kiln_status st = kiln_artifact_assemble(cx, gpu, p, &cubin, &bytes);
  kiln_artifact_bytes_free(cx, cubin, bytes);
  return st == KILN_E_UNSUPPORTED ? KILN_OK : st;
}

#define IN(T, call)                                                                                                    \
  { #T, sizeof(T), call, false }
#define OUT(T, call)                                                                                                   \
  { #T, sizeof(T), call, true }
static const struct {
  const char *type;
  size_t size;
  kiln_status (*call)(void *params);
  bool out; // kiln fills it in
} structs[] = {
    IN(kiln_context_params, context),
    IN(kiln_eval_params, eval),
    IN(kiln_eval_params, check),
    IN(kiln_compile_params, compile),
    IN(kiln_compile_params, compile_check),
    IN(kiln_device_info, compile_for_device),
    IN(kiln_run_params, run),
    IN(kiln_driver_params, open_driver),
    IN(kiln_assemble_params, assemble),
    OUT(kiln_device_info, describe),
    OUT(kiln_cuda_resources, resources),
    IN(kiln_cuda_launch_params, launch),
    IN(kiln_sim_params, simulate),
    IN(kiln_sim_launch_params, sim_launch),
    OUT(kiln_sim_fault, sim_fault),
    IN(kiln_profile_params, profile_params),
    OUT(kiln_profile_info, profile_info),
    IN(kiln_profile_assembly, profile_assembly),
    OUT(kiln_sim_finding, sim_finding),
};
enum { STRUCTS = sizeof structs / sizeof structs[0] };

static unsigned char room[8192] __attribute__((aligned(16)));

static kiln_status call(int i, size_t size) {
  memcpy(room, &size, sizeof size);
  kiln_diagnostics_clear(cx);
  return structs[i].call(room);
}

static void expect_refused(int i, const char *what) {
  if (structs[i].call == context) return; // no context, no findings
  ck_assert_uint_ge(kiln_diagnostics_count(cx), 1);
  const char *found = kiln_diagnostics_get(cx, 0)->message;
  ck_assert_msg(strstr(found, structs[i].type) && strstr(found, what), "%s: %s", structs[i].type, found);
}

START_TEST(no_size) {
  static const size_t sizes[] = {0, 1, 7, 4097, SIZE_MAX};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    char found[40];
    memset(room, 0, sizeof room);
    ck_assert_msg(call(_i, sizes[k]) == KILN_E_INVALID, "%s of %zu bytes", structs[_i].type, sizes[k]);
    snprintf(found, sizeof found, "found %zu", sizes[k]);
    expect_refused(_i, found);
  }
}
END_TEST

START_TEST(older_callers) {
  memset(room, 0, sizeof room);
  for (size_t first = sizeof(size_t), size = first; size <= structs[_i].size; size += 4) {
    if (size != first && size + 4 <= structs[_i].size && !share_has(size / 4, 3)) continue;
    ck_assert_msg(call(_i, size) == KILN_OK, "%s of %zu bytes: %s", structs[_i].type, size,
                  kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->message : "");
  }
}
END_TEST

// What an older caller does not know of is neither read nor written.
START_TEST(nothing_beyond_an_older_struct) {
  if (structs[_i].call == context) return;
  memset(room, 0xff, sizeof room);
  ck_assert_msg(call(_i, sizeof(size_t)) == KILN_OK, "%s: %s", structs[_i].type,
                kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->message : "");
  for (size_t i = sizeof(size_t); i < sizeof room; i++) ck_assert_uint_eq(room[i], 0xff);
}
END_TEST

START_TEST(newer_callers) {
  size_t size = structs[_i].size;
  memset(room, 0, sizeof room);
  ck_assert_msg(call(_i, size + 40) == KILN_OK, "%s", structs[_i].type);
  for (size_t at = size; at < size + 40; at++) {
    memset(room, 0, sizeof room);
    room[at] = 3;
    if (structs[_i].out) {
      ck_assert_int_eq(call(_i, size + 40), KILN_OK);
      ck_assert_uint_eq(room[at], 0);
      continue;
    }
    ck_assert_msg(call(_i, size + 40) == KILN_E_INVALID, "%s with 3 in byte %zu", structs[_i].type, at);
    expect_refused(_i, "found 3 in byte");
  }
  memset(room, 0xff, sizeof room);
  memset(room, 0, size + 40);
  call(_i, size + 40);
  for (size_t i = size + 40; i < sizeof room; i++) ck_assert_uint_eq(room[i], 0xff);
}
END_TEST

// Parameters given with the right size count.
START_TEST(parameters_count) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_80"};
  kiln_artifact *a = NULL;
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_OK);
  ck_assert_str_eq(kiln_artifact_manifest(a)->target, "sm_80");
  kiln_artifact_destroy(&a);
  p.struct_size = offsetof(kiln_compile_params, fusion);
  p.fusion = "of a caller that has no such field";
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_OK);
  ck_assert_str_eq(kiln_artifact_manifest(a)->target, "sm_80");
  kiln_artifact_destroy(&a);
  kiln_device_info info = {.struct_size = sizeof info};
  ck_assert_int_eq(kiln_device_describe(cx, driver, 0, &info), KILN_OK);
  ck_assert_uint_eq(info.struct_size, sizeof info);
  ck_assert_uint_ne(info.sm, 0);
}
END_TEST

int main(void) {
  return RUN_TESTS("params", EACH(setup, teardown), {no_size, STRUCTS}, {older_callers, STRUCTS},
                   {nothing_beyond_an_older_struct, STRUCTS}, {newer_callers, STRUCTS}, {parameters_count});
}

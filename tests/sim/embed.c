// The simulator's own interface: memory, modules, kernels, launches.
#include "support/suite.h"

#include <kiln/sim.h>
#include <stdio.h>
#include <string.h>

static kiln_context *cx;
static kiln_simulator *s;

static void make(void) {
  cx = kiln_context_create(NULL);
  ck_assert_int_eq(kiln_simulator_open(cx, &s), KILN_OK);
}
static void drop(void) {
  kiln_simulator_close(&s);
  kiln_context_destroy(&cx);
}

static const char *finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

static kiln_sim_module *load(const char *body) {
  char text[4096];
  kiln_sim_module *m = NULL;
  snprintf(text, sizeof text, ".version 7.8\n.target sm_80\n.address_size 64\n%s", body);
  kiln_status st = kiln_simulator_load(cx, s, "test.ptx", text, strlen(text), &m);
  ck_assert_msg(st == KILN_OK, "%s", finding());
  return m;
}

static kiln_sim_kernel *kernel(kiln_sim_module *m, const char *name) {
  kiln_sim_kernel *k = NULL;
  ck_assert_msg(kiln_sim_module_kernel(cx, m, name, &k) == KILN_OK, "%s", finding());
  return k;
}

START_TEST(memory_is_given_and_taken) {
  uint64_t p, q;
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 0, &p), KILN_E_INVALID);
  ck_assert_uint_eq(p, 0);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, UINT64_MAX, &p), KILN_E_MEMORY);
  ck_assert_uint_eq(p, 0);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 100, &p), KILN_OK);
  ck_assert_uint_eq(p % 256, 0);
  char *bytes = kiln_simulator_bytes(s, p + 90, 10);
  ck_assert(bytes && !*bytes);
  ck_assert_ptr_null(kiln_simulator_bytes(s, p + 90, 11));
  ck_assert_ptr_null(kiln_simulator_bytes(s, 8, 1));
  ck_assert(!kiln_simulator_free(s, p + 1) && kiln_simulator_free(s, p) && !kiln_simulator_free(s, p));
  ck_assert_ptr_null(kiln_simulator_bytes(s, p, 1));
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 100, &q), KILN_OK);
  ck_assert_uint_ne(p, q);
}
END_TEST

static const char two[] = ".visible .global .align 4 .u32 counter = 41;\n.const .align 4 .b8 table[12];\n"
                          ".visible .entry first(.param .u8 a, .param .align 16 .b8 b[20]) .reqntid 4, 2 {\n"
                          "  .shared .align 8 .b8 own[24]; .reg .b32 %a; mov.u32 %a, own; ret; }\n"
                          ".func helper() { ret; }\n"
                          ".visible .entry second(.param .u64 to, .param .u32 v) .maxntid 64, 1, 1 {\n"
                          "  .reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [to]; ld.param.u32 %v, [v]; "
                          "atom.global.add.u32 %v, [%a], %v; ret; }\n";

START_TEST(what_is_in_a_module) {
  uint64_t at, size;
  kiln_sim_module *m = load(two);
  kiln_sim_kernel *k = kernel(m, "first"), *none = k;
  ck_assert_str_eq(kiln_sim_module_kernel_at(m, 0), "first");
  ck_assert_str_eq(kiln_sim_module_kernel_at(m, 1), "second");
  ck_assert_ptr_null(kiln_sim_module_kernel_at(m, 2));
  ck_assert_int_eq(kiln_sim_module_kernel(cx, m, "helper", &none), KILN_E_INVALID);
  ck_assert_ptr_null(none);
  ck_assert_ptr_eq(kernel(m, "first"), k);
  const kiln_sim_kernel_info *info = kiln_sim_kernel_describe(k);
  ck_assert_str_eq(info->name, "first");
  ck_assert_uint_eq(info->parameter_count, 2);
  ck_assert_str_eq(info->parameters[1].name, "b");
  ck_assert_str_eq(info->parameters[1].type, "b8");
  ck_assert(info->parameters[1].bytes == 20 && info->parameters[1].alignment == 16 && info->parameters[0].bytes == 1);
  ck_assert(info->shared_bytes >= 24 && info->most_threads == 8);
  ck_assert(info->block[0] == 4 && info->block[1] == 2 && info->block[2] == 1);
  info = kiln_sim_kernel_describe(kernel(m, "second"));
  ck_assert(info->most_threads == 64 && info->block[0] == 0);
  ck_assert(kiln_sim_module_variable(m, "counter", &at, &size) && size == 4);
  ck_assert_uint_eq(*(uint32_t *)kiln_simulator_bytes(s, at, 4), 41);
  ck_assert(!kiln_simulator_free(s, at)); // the module's
  ck_assert(!kiln_sim_module_variable(m, "first", &at, &size));
  ck_assert_uint_eq(at, 0);
}
END_TEST

START_TEST(launches) {
  kiln_sim_module *m = load(two);
  uint64_t at, size;
  uint32_t v = 3;
  ck_assert(kiln_sim_module_variable(m, "counter", &at, &size));
  const void *arguments[] = {&at, &v};
  kiln_sim_fault fault = {.struct_size = sizeof fault, .what = "something"};
  kiln_sim_launch_params p = {.struct_size = sizeof p, .grid = {5, 2}, .block = {64}, .arguments = arguments};
  ck_assert_msg(kiln_sim_kernel_launch(cx, kernel(m, "second"), &p, &fault) == KILN_OK, "%s", finding());
  ck_assert_ptr_null(fault.what);
  ck_assert_uint_eq(*(uint32_t *)kiln_simulator_bytes(s, at, 4), 41 + 3 * 640);
  p.block[0] = 65;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "second"), &p, &fault), KILN_E_INVALID);
  ck_assert_ptr_null(fault.what);
  p.block[0] = 64;
  at += 4; // behind it
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "second"), &p, &fault), KILN_E_DEVICE);
  ck_assert(fault.what && fault.line == 10 && fault.address == at && fault.block[0] == 0 && fault.thread[0] == 0);
  ck_assert_msg(strstr(finding(), "test.ptx:10:"), "%s", finding());
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "second"), &p, NULL), KILN_E_DEVICE);
  kiln_sim_launch_params wrong = {.struct_size = sizeof wrong};
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "first"), &wrong, &fault), KILN_E_INVALID); // no arguments
}
END_TEST

// A kernel that adds what it finds: where the host has written, and where nobody has. It leaves every second word.
START_TEST(checks_tell_what_they_find) {
  kiln_sim_module *m = load(".visible .entry k(.param .u64 to, .param .u64 from) {\n"
                            "  .reg .b64 %a, %b, %o; .reg .b32 %i, %v;\n"
                            "  ld.param.u64 %a, [to]; ld.param.u64 %b, [from]; mov.u32 %i, %tid.x;\n"
                            "  mul.wide.u32 %o, %i, 4; add.u64 %b, %b, %o; add.u64 %a, %a, %o; add.u64 %a, %a, %o;\n"
                            "  ld.global.u32 %v, [%b]; add.u32 %v, %v, 1;\n"
                            "  st.global.u32 [%a], %v; ret;\n}\n");
  uint64_t to, from;
  kiln_sim_fault fault = {.struct_size = sizeof fault, .what = "something"};
  kiln_sim_finding f = {.struct_size = sizeof f};
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 8, &to), KILN_OK);
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 8, &from), KILN_OK);
  kiln_simulator_bytes(s, from, 4);
  const void *arguments[] = {&to, &from};
  kiln_sim_range out = {to, 16};
  kiln_sim_launch_params p = {
      .struct_size = sizeof p, .block = {1}, .arguments = arguments, .checks = KILN_SIM_CHECK_ALL};
  ck_assert_msg(kiln_sim_kernel_launch(cx, kernel(m, "k"), &p, &fault) == KILN_OK, "%s", finding());
  ck_assert_uint_eq(kiln_simulator_finding_count(s), 0);
  p.outputs = &out, p.output_count = 1;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "k"), &p, &fault), KILN_E_INVALID); // 8 bytes are there
  ck_assert_int_eq(kiln_simulator_alloc(cx, s, 16, &to), KILN_OK);
  out.address = to;
  p.block[0] = 2;
  ck_assert_int_eq(kiln_sim_kernel_launch(cx, kernel(m, "k"), &p, &fault), KILN_E_DEVICE);
  ck_assert_ptr_null(fault.what);
  ck_assert_uint_eq(kiln_simulator_finding_count(s), 3);
  ck_assert_int_eq(kiln_simulator_finding(cx, s, 0, &f), KILN_OK);
  ck_assert_str_eq(f.check, "undefined");
  ck_assert_str_eq(f.kernel, "k");
  ck_assert(f.line == 9 && f.thread[0] == 1 && f.address == to + 8 && f.bytes == 4 && f.times == 1);
  for (uint32_t k = 0; k < 2; k++) {
    ck_assert_int_eq(kiln_simulator_finding(cx, s, 1 + k, &f), KILN_OK);
    ck_assert_str_eq(f.check, "unwritten");
    ck_assert(f.line == 0 && f.address == to + 4 + 8 * k && f.bytes == 4);
  }
  ck_assert_int_eq(kiln_simulator_finding(cx, s, 3, &f), KILN_E_INVALID);
  p.scratch = &out, p.scratch_count = 1, p.output_count = 0; // may be left as it is
  ck_assert_msg(kiln_sim_kernel_launch(cx, kernel(m, "k"), &p, &fault) == KILN_OK, "%s", finding());
  ck_assert_uint_eq(kiln_simulator_finding_count(s), 0);
}
END_TEST

START_TEST(one_context) {
  kiln_context *other = kiln_context_create(NULL);
  uint64_t p;
  kiln_sim_module *m = NULL;
  ck_assert_int_eq(kiln_simulator_alloc(other, s, 4, &p), KILN_E_INVALID);
  ck_assert_int_eq(kiln_simulator_load(other, s, "m", "", 0, &m), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(other), 2);
  kiln_context_destroy(&other);
  load(two);
  kiln_context_destroy(&cx); // the simulator keeps its memory
  ck_assert_ptr_null(kiln_simulator_bytes(s, 8, 1));
}
END_TEST

int main(void) {
  return RUN_TESTS("embed", EACH(make, drop), {memory_is_given_and_taken}, {what_is_in_a_module}, {launches},
                   {checks_tell_what_they_find}, {one_context});
}

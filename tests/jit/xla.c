// Artifacts as XLA's custom calls, by an XLA that is played here: on the host, and on the simulator as a GPU. That the
// structs are XLA's own is tests/python's affair.
#include "support/standin.h"
#include "support/suite.h"

#include "jit/xla/abi.h"
#include <kiln/kiln.h>

#include <stdio.h>
#include <string.h>

static kiln_context *cx;
static kiln_driver *driver;
static kiln_device *device;
static long allocations;
static bool out_of_memory;
static uint8_t before = 0xa5; // what is in memory that is allocated

// --- XLA ----------------------------------------------------------------------------------------------------------

struct xla_error {
  int code;
  char message[500];
};
static xla_error last;

static xla_error *error_create(xla_error_args *a) {
  ck_assert_uint_eq(a->struct_size, sizeof *a);
  last.code = a->code;
  snprintf(last.message, sizeof last.message, "%s", a->message);
  return &last;
}

static xla_error *stream_get(xla_stream_args *a) {
  a->stream = kiln_device_stream(device);
  return NULL;
}

static xla_error *allocate(xla_allocate_args *a) {
  uint64_t at;
  ck_assert(a->size > 0 && a->alignment > 0);
  if (out_of_memory || kiln_device_alloc(cx, device, a->size, &at) != KILN_OK)
    return error_create(&(xla_error_args){sizeof(xla_error_args), NULL, "none left", 8});
  kiln_device_fill(cx, device, at, before, a->size); // which may fail where the driver is made to
  a->data = (void *)(uintptr_t)at;
  allocations++;
  return NULL;
}

static xla_error *release(xla_free_args *a) {
  allocations--;
  kiln_device_synchronize(cx, device);
  kiln_device_free(device, (uint64_t)(uintptr_t)a->data);
  return NULL;
}

static const xla_api api = {.struct_size = sizeof api,
                            .version = {sizeof(xla_version), NULL, 0, 3},
                            .error_create = error_create,
                            .stream_get = stream_get,
                            .allocate = allocate,
                            .free = release};

enum { MOST = 4 };
typedef struct operand {
  int dtype;
  void *data;
  int64_t rank, dims[3];
} operand;

typedef struct scene {
  xla_buffer buffers[2][MOST];
  void *items[2][MOST];
  int types[MOST];
  int64_t kernel;
  xla_scalar scalar;
  xla_name name;
  int scalar_type;
  xla_name *names[1];
  void *values[1];
  xla_call call;
} scene;

static void play(scene *s, const kiln_xla_kernel *k, operand *in, int nin, operand *out, int nout) {
  operand *given[2] = {in, out};
  int n[2] = {nin, nout};
  *s = (scene){.kernel = (int64_t)(uintptr_t)k, .name = {"kernel", 6}, .scalar_type = XLA_ATTRIBUTE_SCALAR};
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < n[l]; i++) {
      operand *o = &given[l][i];
      s->buffers[l][i] = (xla_buffer){sizeof(xla_buffer), NULL, o->dtype, o->data, o->rank, o->dims};
      s->items[l][i] = &s->buffers[l][i];
      s->types[i] = XLA_ARGUMENT_BUFFER;
    }
  s->scalar = (xla_scalar){XLA_TYPE_S64, &s->kernel};
  s->names[0] = &s->name;
  s->values[0] = &s->scalar;
  s->call = (xla_call){.struct_size = sizeof s->call,
                       .api = &api,
                       .stage = XLA_STAGE_EXECUTE,
                       .arguments = {sizeof(xla_list), NULL, nin, s->types, s->items[0]},
                       .results = {sizeof(xla_list), NULL, nout, s->types, s->items[1]},
                       .attributes = {sizeof(xla_attributes), NULL, 1, &s->scalar_type, s->names, s->values}};
}

// --- artifacts ----------------------------------------------------------------------------------------------------

static const char two_results[] = "HloModule two\n"
                                  "ENTRY e {\n"
                                  "  x = f32[3,5] parameter(0)\n"
                                  "  k = s32[] parameter(1)\n"
                                  "  f = f32[] convert(k)\n"
                                  "  b = f32[3,5] broadcast(f), dimensions={}\n"
                                  "  y = f32[3,5] multiply(x, b)\n"
                                  "  p = pred[3,5] compare(x, b), direction=LT\n"
                                  "  ROOT t = (f32[3,5], pred[3,5]) tuple(y, p)\n"
                                  "}\n";
// Two kernels with scratch memory between them.
static const char chain[] = "HloModule chain\n"
                            "f {\n  p = f32[64] parameter(0)\n  ROOT r = f32[64] negate(p)\n}\n"
                            "g {\n  p = f32[64] parameter(0)\n  ROOT r = f32[64] add(p, p)\n}\n"
                            "ENTRY e {\n"
                            "  p = f32[64] parameter(0)\n"
                            "  a = f32[64] fusion(p), kind=kLoop, calls=f\n"
                            "  ROOT b = f32[64] fusion(a), kind=kLoop, calls=g\n"
                            "}\n";

// Doubles x, which is positive, as long as a value of it is below 100: as often as what is computed says. Then a
// branch.
static const char loop[] =
    "HloModule loop\n"
    "most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] minimum(a, b) }\n"
    "goes { x = f32[64] parameter(0) o = f32[] constant(1e9) m = f32[] reduce(x, o), dimensions={0}, to_apply=most "
    "k = f32[] constant(100) ROOT c = pred[] compare(m, k), direction=LT }\n"
    "twice { x = f32[64] parameter(0) ROOT y = f32[64] add(x, x) }\n"
    "plain { ROOT x = f32[64] parameter(0) }\n"
    "turned { x = f32[64] parameter(0) ROOT y = f32[64] reverse(x), dimensions={0} }\n"
    "ENTRY e {\n"
    "  x = f32[64] parameter(0)\n"
    "  w = s32[] parameter(1)\n"
    "  l = f32[64] while(x), condition=goes, body=twice\n"
    "  f = f32[64] sort(l), dimensions={0}, to_apply=less\n"
    "  ROOT b = f32[64] conditional(w, f, f), branch_computations={plain, turned}\n"
    "}\n"
    "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n";

// Loops are steps.
static kiln_artifact *compile(const char *text, const char *target, bool by_value, int64_t max_count) {
  kiln_compile_params p = {.struct_size = sizeof p,
                           .target = target,
                           .scalars_by_value = by_value,
                           .max_count = max_count,
                           .separate_launches = true};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  ck_assert_int_eq(kiln_module_parse(cx, "test", text, strlen(text), &m), KILN_OK);
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), KILN_OK);
  kiln_module_destroy(&m);
  return a;
}

static kiln_xla_kernel *make(const char *text, const char *target) {
  kiln_artifact *a = compile(text, target, false, 0);
  kiln_xla_kernel *k = NULL;
  kiln_status st = strcmp(target, "host") == 0 ? kiln_xla_kernel_create(cx, a, NULL, NULL, &k)
                                               : kiln_xla_kernel_create(cx, a, driver, kiln_device_context(device), &k);
  ck_assert_int_eq(st, KILN_OK);
  kiln_artifact_destroy(&a); // it may go before the kernel
  return k;
}

static void setup(void) {
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true, .resolve = kiln_sim_resolve};
  cx = kiln_context_create(NULL);
  ck_assert_int_eq(kiln_driver_open(cx, &p, &driver), KILN_OK);
  ck_assert_int_eq(kiln_device_open(cx, driver, 0, &device), KILN_OK);
}

static void teardown(void) {
  kiln_device_close(&device);
  kiln_driver_close(&driver);
  kiln_context_destroy(&cx);
}

static uint64_t upload(const void *p, size_t bytes) {
  uint64_t at;
  ck_assert_int_eq(kiln_device_alloc(cx, device, bytes, &at), KILN_OK);
  ck_assert_int_eq(kiln_device_upload(cx, device, at, p, bytes), KILN_OK);
  return at;
}

// --- tests --------------------------------------------------------------------------------------------------------

static float x[15] __attribute__((aligned(16))), y[15] __attribute__((aligned(16)));
static int32_t k __attribute__((aligned(16)));
static bool less[15] __attribute__((aligned(16)));

static void fill(void) {
  for (int i = 0; i < 15; i++) x[i] = (float)i - 7.5f, y[i] = 0;
  k = 3;
}

static void expect_results(void) {
  for (int i = 0; i < 15; i++) ck_assert(y[i] == x[i] * 3 && less[i] == (x[i] < 3));
}

START_TEST(host_calls_read_and_write_xla_s_buffers) {
  kiln_xla_kernel *kernel = make(two_results, "host");
  operand in[] = {{11, x, 2, {3, 5}}, {4, &k, 0, {0}}}, out[] = {{11, y, 2, {3, 5}}, {1, less, 2, {3, 5}}};
  scene s;
  fill();
  play(&s, kernel, in, 2, out, 2);
  ck_assert_ptr_null(kiln_xla_call(&s.call));
  expect_results();
  kiln_xla_kernel_destroy(&kernel);
  ck_assert_ptr_null(kernel);
}
END_TEST

START_TEST(gpu_calls_launch_on_xla_s_stream) {
  kiln_xla_kernel *kernel = make(two_results, "sm_90");
  fill();
  uint64_t at[4] = {upload(x, sizeof x), upload(&k, sizeof k), upload(y, sizeof y), upload(less, sizeof less)};
  operand in[] = {{11, (void *)(uintptr_t)at[0], 2, {3, 5}}, {4, (void *)(uintptr_t)at[1], 0, {0}}},
          out[] = {{11, (void *)(uintptr_t)at[2], 2, {3, 5}}, {1, (void *)(uintptr_t)at[3], 2, {3, 5}}};
  scene s;
  play(&s, kernel, in, 2, out, 2);
  ck_assert_ptr_null(kiln_xla_call(&s.call));
  ck_assert_int_eq(kiln_device_download(cx, device, y, at[2], sizeof y), KILN_OK);
  ck_assert_int_eq(kiln_device_download(cx, device, less, at[3], sizeof less), KILN_OK);
  expect_results();
  for (int i = 0; i < 4; i++) kiln_device_free(device, at[i]);
  kiln_xla_kernel_destroy(&kernel);
}
END_TEST

START_TEST(scratch_is_xla_s_memory_and_goes_back) {
  kiln_xla_kernel *kernel = make(chain, "sm_90");
  float in[64], out[64] = {0};
  for (int i = 0; i < 64; i++) in[i] = (float)i;
  uint64_t at[2] = {upload(in, sizeof in), upload(out, sizeof out)};
  operand p = {11, (void *)(uintptr_t)at[0], 1, {64}}, r = {11, (void *)(uintptr_t)at[1], 1, {64}};
  scene s;
  play(&s, kernel, &p, 1, &r, 1);
  ck_assert_ptr_null(kiln_xla_call(&s.call));
  ck_assert_int_eq(allocations, 0);
  ck_assert_int_eq(kiln_device_download(cx, device, out, at[1], sizeof out), KILN_OK);
  for (int i = 0; i < 64; i++) ck_assert(out[i] == -2.0f * (float)i);
  out_of_memory = true;
  xla_error *e = kiln_xla_call(&s.call);
  out_of_memory = false;
  ck_assert_ptr_eq(e, &last);
  ck_assert_str_eq(last.message, "none left");
  for (int i = 0; i < 2; i++) kiln_device_free(device, at[i]);
  kiln_xla_kernel_destroy(&kernel);
}
END_TEST

// Loops and branches that read what was computed: on the host by any handler, on a GPU by the one that waits.
START_TEST(calls_wait_for_what_loops_go_by) {
  bool gpu = _i & 1;
  float in[64] __attribute__((aligned(16))), out[64] __attribute__((aligned(16))) = {0};
  int32_t which __attribute__((aligned(16))) = _i >> 1;
  kiln_xla_kernel *kernel = make(loop, gpu ? "sm_90" : "host");
  ck_assert(kiln_xla_kernel_waits(kernel) == gpu && !kiln_xla_kernel_waits(NULL));
  for (int i = 0; i < 64; i++) in[i] = (float)(64 - i);
  void *at[3] = {in, &which, out};
  if (gpu) {
    at[0] = (void *)(uintptr_t)upload(in, sizeof in);
    at[1] = (void *)(uintptr_t)upload(&which, sizeof which);
    at[2] = (void *)(uintptr_t)upload(out, sizeof out);
  }
  operand p[] = {{11, at[0], 1, {64}}, {4, at[1], 0, {0}}}, r = {11, at[2], 1, {64}};
  scene s;
  play(&s, kernel, p, 2, &r, 1);
  if (gpu) {
    ck_assert_ptr_eq(kiln_xla_call(&s.call), &last);
    ck_assert_int_eq(last.code, XLA_INVALID_ARGUMENT);
    EXPECT(strstr(last.message, "expected the handler kiln_xla_call_waiting"), "%s", last.message);
    ck_assert_int_eq(kiln_device_download(cx, device, out, (uint64_t)(uintptr_t)at[2], sizeof out), KILN_OK);
    ck_assert(out[0] == 0);
  } else {
    ck_assert_ptr_null(kiln_xla_call(&s.call));
    memset(out, 0, sizeof out);
  }
  ck_assert_ptr_null(kiln_xla_call_waiting(&s.call));
  if (gpu) ck_assert_int_eq(kiln_device_download(cx, device, out, (uint64_t)(uintptr_t)at[2], sizeof out), KILN_OK);
  ck_assert_int_eq(allocations, 0);
  for (int i = 0; i < 64; i++) ck_assert(out[i] == 128.0f * (float)(which ? 64 - i : i + 1));
  for (int i = 0; gpu && i < 3; i++) kiln_device_free(device, (uint64_t)(uintptr_t)at[i]);
  kiln_xla_kernel_destroy(&kernel);
}
END_TEST

// What a call may have wrong, and what is said of it.
static const struct {
  operand in[2];
  int nin, nout;
  const char *says;
} wrong[] = {
    {{{11, x, 2, {3, 5}}}, 1, 2, "kiln, two: expected 2 parameters, found 1"},
    {{{11, x, 2, {3, 5}}, {4, &k, 0, {0}}}, 2, 1, "kiln, two: expected 2 results, found 1"},
    {{{12, x, 2, {3, 5}}, {4, &k, 0, {0}}}, 2, 2, "kiln, two: parameter 0: expected f32[3,5], found f64[3,5]"},
    {{{11, x, 2, {5, 3}}, {4, &k, 0, {0}}}, 2, 2, "kiln, two: parameter 0: expected f32[3,5], found f32[5,3]"},
    {{{11, x, 1, {15}}, {4, &k, 0, {0}}}, 2, 2, "kiln, two: parameter 0: expected f32[3,5], found f32[15]"},
    {{{11, x, 2, {3, 5}}, {99, &k, 0, {0}}}, 2, 2, "kiln, two: parameter 1: expected s32[], found ?[]"},
    {{{11, (char *)x + 1, 2, {3, 5}}, {4, &k, 0, {0}}},
     2,
     2,
     "parameter 0: expected an address that is a multiple of "},
};

START_TEST(what_does_not_fit_is_said) {
  kiln_xla_kernel *kernel = make(two_results, "host");
  operand in[2], out[] = {{11, y, 2, {3, 5}}, {1, less, 2, {3, 5}}};
  scene s;
  memcpy(in, wrong[_i].in, sizeof in);
  play(&s, kernel, in, wrong[_i].nin, out, wrong[_i].nout);
  ck_assert_ptr_eq(kiln_xla_call(&s.call), &last);
  ck_assert_int_eq(last.code, XLA_INVALID_ARGUMENT);
  EXPECT(strstr(last.message, wrong[_i].says), "%s", last.message);
  kiln_xla_kernel_destroy(&kernel);
}
END_TEST

START_TEST(a_call_needs_its_attribute) {
  operand in[1] = {{11, x, 2, {3, 5}}};
  scene s;
  play(&s, NULL, in, 1, in, 1);
  ck_assert_ptr_eq(kiln_xla_call(&s.call), &last);
  EXPECT(strstr(last.message, "attribute 'kernel'"), "%s", last.message);
  play(&s, NULL, in, 1, in, 1);
  s.name = (xla_name){"kernels", 7};
  ck_assert_ptr_eq(kiln_xla_call(&s.call), &last);
  s.name = (xla_name){"kernel", 6};
  s.scalar.dtype = 4;
  ck_assert_ptr_eq(kiln_xla_call(&s.call), &last);
  s.call.stage = 1; // not to be run yet
  ck_assert_ptr_null(kiln_xla_call(&s.call));
  ck_assert_ptr_null(kiln_xla_call(NULL));
}
END_TEST

START_TEST(xla_asks_for_the_version_first) {
  xla_metadata m = {.struct_size = sizeof m};
  xla_metadata_extension x = {{sizeof x, XLA_EXTENSION_METADATA, NULL}, &m};
  xla_call c = {.struct_size = sizeof c, .extension = &x.base, .api = &api};
  ck_assert_ptr_null(kiln_xla_call(&c));
  ck_assert(m.version.major == 0 && m.version.minor == 3 && m.traits == XLA_TRAIT_COMMAND_BUFFER);
  m = (xla_metadata){.struct_size = sizeof m};
  ck_assert_ptr_null(kiln_xla_call_waiting(&c));
  ck_assert(m.version.major == 0 && m.version.minor == 3 && m.traits == 0);
}
END_TEST

START_TEST(kernels_that_calls_cannot_have) {
  kiln_xla_kernel *kernel = (kiln_xla_kernel *)cx;
  kiln_artifact *a = compile(two_results, "sm_90", true, 0);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, a, driver, kiln_device_context(device), &kernel), KILN_E_UNSUPPORTED);
  ck_assert_ptr_null(kernel);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, a, driver, NULL, &kernel), KILN_E_INVALID);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, a, NULL, kiln_device_context(device), &kernel), KILN_E_INVALID);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, NULL, NULL, NULL, &kernel), KILN_E_INVALID);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, a, NULL, NULL, NULL), KILN_E_INVALID);
  kiln_artifact_destroy(&a);
  a = compile("HloModule c\nENTRY e {\n  p = f32[8,4] parameter(0)\n  ROOT r = f32[8,4] negate(p)\n}\n", "host", false,
              64);
  ck_assert_int_eq(kiln_xla_kernel_create(cx, a, NULL, NULL, &kernel), KILN_E_UNSUPPORTED);
  kiln_artifact_destroy(&a);
  kiln_xla_kernel_destroy(&kernel);
  kiln_xla_kernel_destroy(NULL);
}
END_TEST

// Without a GPU every failure of the driver, one after the other: an error each time, and nothing left behind.
static const struct {
  const char *text;
  int nin;
  long launches; // 0: not so many that it matters
} failing[] = {
    {"HloModule n\nENTRY e {\n  p = f32[64] parameter(0)\n  ROOT r = f32[64] negate(p)\n}\n", 1, 1},
    {loop, 2, 0},
};

START_TEST(every_call_of_the_driver_may_fail) {
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true, .resolve = standin_resolve};
  static float memory[3][64] __attribute__((aligned(256)));
  for (int i = 0; i < 64; i++) memory[0][i] = 200;
  kiln_artifact *a = compile(failing[_i].text, "sm_90", false, 0);
  operand in[] = {{11, memory[0], 1, {64}}, {4, memory[2], 0, {0}}}, out = {11, memory[1], 1, {64}};
  kiln_device *real = device;
  before = 0; // no kernel says whether to go on
  long calls = 0;
  for (long n = 0; n <= calls; n++) {
    kiln_driver *d = NULL;
    kiln_xla_kernel *kernel = NULL;
    scene s;
    standin_reset();
    standin_state.fail_at = n;
    standin_state.code = 2;
    device = NULL;
    kiln_status st = kiln_driver_open(cx, &p, &d);
    if (st == KILN_OK) st = kiln_device_open(cx, d, 0, &device);
    if (st == KILN_OK) st = kiln_xla_kernel_create(cx, a, d, kiln_device_context(device), &kernel);
    xla_error *e = NULL;
    if (st == KILN_OK) {
      play(&s, kernel, in, failing[_i].nin, &out, 1);
      e = kiln_xla_call_waiting(&s.call);
    }
    kiln_xla_kernel_destroy(&kernel);
    kiln_device_close(&device);
    kiln_driver_close(&d);
    if (n == 0) {
      ck_assert(st == KILN_OK && !e);
      ck_assert(!failing[_i].launches || standin_state.launches == failing[_i].launches);
      calls = standin_state.calls;
    }
    kiln_diagnostics_clear(cx);
    ck_assert(standin_is_clean());
  }
  ck_assert_int_gt(calls, 5);
  device = real;
  before = 0xa5;
  kiln_artifact_destroy(&a);
}
END_TEST

int main(void) {
  return RUN_TESTS("xla", ONCE(setup, teardown), {host_calls_read_and_write_xla_s_buffers},
                   {gpu_calls_launch_on_xla_s_stream}, {scratch_is_xla_s_memory_and_goes_back},
                   {calls_wait_for_what_loops_go_by, 4}, {what_does_not_fit_is_said, sizeof wrong / sizeof wrong[0]},
                   {a_call_needs_its_attribute}, {xla_asks_for_the_version_first}, {kernels_that_calls_cannot_have},
                   {every_call_of_the_driver_may_fail, sizeof failing / sizeof failing[0]});
}

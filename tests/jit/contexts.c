// Several devices, several contexts of one, primary and not, on the simulator; and processes that fork.
#include "support/context.h"

#include "cuda/driver.h"
#include <kiln/kiln.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000, CONTEXTS = 4 };

// The caller's own use of the driver.
#define CALL(name, version, signature, ...)                                                                            \
  do {                                                                                                                 \
    CUresult code = ((CUresult(*) signature)kiln_sim_resolve(NULL, #name, version))(__VA_ARGS__);                      \
    EXPECT(code == CUDA_SUCCESS, "%s gave %d", #name, code);                                                           \
  } while (0)

static kiln_artifact *compile(const char *target) {
  kiln_module *m = parse("HloModule m\nf { p = f32[1000] parameter(0) ROOT r = f32[1000] negate(p) }\n"
                         "g { p = f32[1000] parameter(0) ROOT r = f32[1000] add(p, p) }\n"
                         "ENTRY e { p = f32[1000] parameter(0) a = f32[1000] fusion(p), kind=kLoop, calls=f "
                         "ROOT b = f32[1000] fusion(a), kind=kLoop, calls=g }\n");
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  kiln_artifact *a = NULL;
  EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  kiln_module_destroy(&m);
  return a;
}

static kiln_driver *open_driver(bool initialize) {
  kiln_driver_params p = {.struct_size = sizeof p, .resolve = kiln_sim_resolve, .initialize = initialize};
  kiln_driver *d = NULL;
  EXPECT(kiln_driver_open(cx, &p, &d) == KILN_OK, "%s", last_finding());
  return d;
}

// --- contexts -------------------------------------------------------------------------------------------------------

typedef struct place {
  CUcontext context;
  CUstream stream;
  CUdeviceptr in, out, scratch;
  kiln_cuda_kernel *k;
  kiln_cuda_frozen *f;
  kiln_cuda_graph *g;
} place;

static CUcontext current(void) {
  CUcontext c = NULL;
  CALL(cuCtxGetCurrent, 12000, (CUcontext *), &c);
  return c;
}

static void push(CUcontext c) {
  CALL(cuCtxPushCurrent, 12000, (CUcontext), c);
}

static void pop(void) {
  CUcontext c;
  CALL(cuCtxPopCurrent, 12000, (CUcontext *), &c);
}

static void open_place(place *p, const kiln_driver *d, const kiln_artifact *a, float first) {
  float x[N];
  for (int i = 0; i < N; i++) x[i] = first + (float)i;
  push(p->context);
  CALL(cuStreamCreate, 12000, (CUstream *, unsigned), &p->stream, CU_STREAM_NON_BLOCKING);
  CALL(cuMemAlloc, 12000, (CUdeviceptr *, size_t), &p->in, sizeof x);
  CALL(cuMemAlloc, 12000, (CUdeviceptr *, size_t), &p->out, sizeof x);
  CALL(cuMemAlloc, 12000, (CUdeviceptr *, size_t), &p->scratch, kiln_artifact_manifest(a)->scratch_bytes);
  CALL(cuMemcpyHtoD, 12000, (CUdeviceptr, const void *, size_t), p->in, x, sizeof x);
  pop();
  kiln_cuda_launch_params lp = {.struct_size = sizeof lp,
                                .parameters = (uint64_t[]){p->in},
                                .results = (uint64_t[]){p->out},
                                .scratch = p->scratch};
  EXPECT(kiln_cuda_kernel_create(cx, d, a, p->context, &p->k) == KILN_OK &&
             kiln_cuda_frozen_create(cx, p->k, &lp, &p->f) == KILN_OK &&
             kiln_cuda_graph_create(cx, p->k, &lp, &p->g) == KILN_OK,
         "%s", last_finding());
}

// Launches in each way by turns; `first` is of its own.
static void use_place(place *p, int way, float first) {
  float y[N] = {0};
  uint64_t in = p->in, out = p->out;
  CUcontext before = current();
  kiln_cuda_launch_params lp = {
      .struct_size = sizeof lp, .stream = p->stream, .parameters = &in, .results = &out, .scratch = p->scratch};
  kiln_status st = way == 0   ? kiln_cuda_kernel_launch(cx, p->k, &lp)
                   : way == 1 ? kiln_cuda_frozen_launch(cx, p->f, p->stream)
                              : kiln_cuda_graph_launch(cx, p->g, p->stream);
  EXPECT(st == KILN_OK, "%s", last_finding());
  ck_assert_ptr_eq(current(), before); // whichever it was
  push(p->context);
  CALL(cuStreamSynchronize, 12000, (CUstream), p->stream);
  CALL(cuMemcpyDtoH, 12000, (void *, CUdeviceptr, size_t), y, p->out, sizeof y);
  CALL(cuMemsetD8, 12000, (CUdeviceptr, unsigned char, size_t), p->out, 0x77, sizeof y);
  pop();
  for (int i = 0; i < N; i++) EXPECT(y[i] == -2 * (first + (float)i), "way %d, element %d is %g", way, i, (double)y[i]);
}

static void close_place(place *p) {
  kiln_cuda_graph_destroy(&p->g);
  kiln_cuda_frozen_destroy(&p->f);
  kiln_cuda_kernel_destroy(&p->k);
}

// Two devices: of each the primary context, and one more. Contexts that go leave the others alone.
START_TEST(several_devices_and_contexts) {
  kiln_sim_params sp = {.struct_size = sizeof sp, .devices = "H100,A100"};
  make_context();
  ck_assert_int_eq(kiln_sim_configure(cx, &sp), KILN_OK);
  kiln_driver *d = open_driver(true);
  kiln_artifact *a = compile("sm_80"); // runs on both
  uint32_t devices = 0;
  place p[CONTEXTS] = {{0}};
  ck_assert_int_eq(kiln_device_count(cx, d, &devices), KILN_OK);
  ck_assert_uint_eq(devices, 2);
  for (int i = 0; i < CONTEXTS; i++) {
    if (i < 2) CALL(cuDevicePrimaryCtxRetain, 12000, (CUcontext *, CUdevice), &p[i].context, i);
    if (i < 2) continue;
    CALL(cuCtxCreate, 11000, (CUcontext *, unsigned, CUdevice), &p[i].context, 0, i - 2);
    pop();
  }
  ck_assert_ptr_null(current());
  for (int i = 0; i < CONTEXTS; i++) open_place(&p[i], d, a, (float)(100 * i));
  kiln_artifact_destroy(&a);
  for (int turn = 0; turn < 3 * CONTEXTS; turn++) {
    int other = (turn + 1) % CONTEXTS;
    if (turn % 2) push(p[other].context);
    use_place(&p[turn % CONTEXTS], turn / CONTEXTS, (float)(100 * (turn % CONTEXTS)));
    if (turn % 2) pop();
  }
  for (int gone = CONTEXTS - 1; gone >= 0; gone--) {
    close_place(&p[gone]);
    if (gone < 2)
      CALL(cuDevicePrimaryCtxRelease, 12000, (CUdevice), gone);
    else
      CALL(cuCtxDestroy, 12000, (CUcontext), p[gone].context);
    for (int i = 0; i < gone; i++) use_place(&p[i], gone % 3, (float)(100 * i));
  }
  kiln_driver_close(&d);
  drop_context();
}
END_TEST

// Code for one device on another: the status says what to do.
START_TEST(code_of_a_newer_device) {
  kiln_sim_params sp = {.struct_size = sizeof sp, .devices = "A100"};
  make_context();
  ck_assert_int_eq(kiln_sim_configure(cx, &sp), KILN_OK);
  kiln_driver *d = open_driver(true);
  kiln_device *dev = NULL;
  kiln_artifact *a = compile("sm_90");
  kiln_cuda_kernel *k = NULL;
  ck_assert_int_eq(kiln_device_open(cx, d, 0, &dev), KILN_OK);
  ck_assert_int_eq(kiln_cuda_kernel_create(cx, d, a, kiln_device_context(dev), &k), KILN_OK);
  ck_assert_int_eq(kiln_cuda_kernel_prepare(cx, k), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "compile for the device's own target"), "%s", last_finding());
  kiln_cuda_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_device_close(&dev);
  kiln_driver_close(&d);
  drop_context();
}
END_TEST

// --- forks ----------------------------------------------------------------------------------------------------------

// What a child's exit status says; 99: it hangs or dies.
static int in_child(int (*body)(void *), void *arg) {
  pid_t pid = fork();
  int status = 0;
  if (pid == 0) {
    alarm(60);
    _exit(body(arg));
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

typedef struct family {
  kiln_driver *d;
  kiln_device *dev;
  kiln_artifact *a;
  kiln_cuda_kernel *k;
  kiln_cuda_frozen *f;
  kiln_cuda_graph *g;
  uint64_t in, out, scratch;
} family;

static bool open_family(family *w) {
  kiln_cuda_launch_params p = {.struct_size = sizeof p, .parameters = &w->in, .results = &w->out};
  return kiln_device_open(cx, w->d, 0, &w->dev) == KILN_OK &&
         kiln_cuda_kernel_create(cx, w->d, w->a, kiln_device_context(w->dev), &w->k) == KILN_OK &&
         kiln_device_alloc(cx, w->dev, 4 * N, &w->in) == KILN_OK &&
         kiln_device_alloc(cx, w->dev, 4 * N, &w->out) == KILN_OK &&
         kiln_device_alloc(cx, w->dev, kiln_artifact_manifest(w->a)->scratch_bytes, &w->scratch) == KILN_OK &&
         (p.scratch = w->scratch, kiln_cuda_frozen_create(cx, w->k, &p, &w->f)) == KILN_OK &&
         kiln_cuda_graph_create(cx, w->k, &p, &w->g) == KILN_OK;
}

static bool use_family(family *w) {
  return kiln_device_fill(cx, w->dev, w->in, 0, 4 * N) == KILN_OK &&
         kiln_cuda_frozen_launch(cx, w->f, kiln_device_stream(w->dev)) == KILN_OK &&
         kiln_cuda_graph_launch(cx, w->g, kiln_device_stream(w->dev)) == KILN_OK &&
         kiln_device_synchronize(cx, w->dev) == KILN_OK;
}

static void close_family(family *w) {
  kiln_cuda_graph_destroy(&w->g);
  kiln_cuda_frozen_destroy(&w->f);
  kiln_cuda_kernel_destroy(&w->k);
  if (w->dev) {
    kiln_device_free(w->dev, w->in);
    kiln_device_free(w->dev, w->out);
    kiln_device_free(w->dev, w->scratch);
  }
  kiln_device_close(&w->dev);
}

static int uses_it_all(void *arg) {
  family *w = arg;
  if (!open_family(w) || !use_family(w)) return 1;
  close_family(w);
  kiln_driver_close(&w->d);
  return 0;
}

static bool refused(kiln_status st) {
  bool said = strstr(last_finding(), "the process has forked since the driver was first used") != NULL;
  kiln_diagnostics_clear(cx);
  return st == KILN_E_DEVICE && said;
}

// Each use is refused with the reason; destroying does no harm.
static int is_refused(void *arg) {
  family *w = arg;
  uint32_t n;
  kiln_device *dev = NULL;
  kiln_device_info info = {.struct_size = sizeof info};
  kiln_cuda_kernel *k = NULL;
  uint64_t at;
  kiln_cuda_launch_params p = {
      .struct_size = sizeof p, .parameters = &w->in, .results = &w->out, .scratch = w->scratch};
  if (!refused(kiln_cuda_kernel_launch(cx, w->k, &p)) || !refused(kiln_cuda_frozen_launch(cx, w->f, NULL))) return 1;
  if (!refused(kiln_cuda_graph_launch(cx, w->g, NULL)) || !refused(kiln_cuda_kernel_prepare(cx, w->k))) return 2;
  if (!refused(kiln_device_count(cx, w->d, &n)) || !refused(kiln_device_describe(cx, w->d, 0, &info))) return 3;
  if (!refused(kiln_device_open(cx, w->d, 0, &dev)) || !refused(kiln_device_alloc(cx, w->dev, 8, &at))) return 4;
  if (!refused(kiln_cuda_kernel_create(cx, w->d, w->a, NULL, &k)) || dev || k) return 5;
  close_family(w);
  kiln_driver_close(&w->d);
  return 0;
}

// torch's and Triton's workers die or hang where the parent has used the driver (triton#9721, pytorch#148651).
START_TEST(fork_before_use_works_and_after_use_says_so) {
  make_context();
  family w = {.d = open_driver(false), .a = compile("sm_90")};
  EXPECT(((CUresult(*)(unsigned))kiln_sim_resolve(NULL, "cuInit", 12000))(0) == CUDA_SUCCESS, "cuInit");
  ck_assert_int_eq(in_child(uses_it_all, &w), 0);
  EXPECT(open_family(&w) && use_family(&w), "%s", last_finding());
  ck_assert_int_eq(in_child(is_refused, &w), 0);
  EXPECT(use_family(&w), "%s", last_finding()); // the parent goes on
  close_family(&w);
  kiln_artifact_destroy(&w.a);
  kiln_driver_close(&w.d);
  drop_context();
}
END_TEST

static int compiles_and_runs_on_the_host(void *arg) {
  kiln_artifact *a = compile("host");
  kiln_kernel *k = NULL;
  static float x[N], y[N];
  const void *in[] = {x};
  void *out[] = {y};
  for (int i = 0; i < N; i++) x[i] = (float)i;
  if (kiln_kernel_load(cx, a, &k) || kiln_kernel_run(cx, k, in, out, NULL)) return 1;
  for (int i = 0; i < N; i++)
    if (y[i] != -2 * x[i]) return 2;
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  return 0;
}

// Compilers with pools of threads do not survive it (triton#9721); here no thread outlives its call.
START_TEST(children_compile) {
  make_context();
  ck_assert_int_eq(compiles_and_runs_on_the_host(NULL), 0);
  for (int i = 0; i < 3; i++) ck_assert_int_eq(in_child(compiles_and_runs_on_the_host, NULL), 0);
  drop_context();
}
END_TEST

int main(void) {
  return RUN_TESTS("contexts", IN_CHILDREN, {several_devices_and_contexts}, {code_of_a_newer_device},
                   {fork_before_use_works_and_after_use_says_so}, {children_compile});
}

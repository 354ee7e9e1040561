// The driver itself and its devices.

#include "sim/driver/impl.h"

#include <stdio.h>
#include <stdlib.h>

// --- which devices there are --------------------------------------------------------------------------------------

static const char *from_environment(const char *name, const char *otherwise) {
  const char *v = getenv(name);
  return v && *v ? v : otherwise;
}

static uint64_t number_from_environment(const char *name) {
  uint64_t v = 0;
  const char *text = getenv(name);
  return text && kl_u64_from_text(kl_str_of(text), &v) ? v : 0;
}

// Names separated by commas. INVALID: one that is not in the table, or too many.
static kiln_status read_devices(kl_ctx *cx, const char *names, const kl_gpu **out, int *n) {
  *n = 0;
  for (const char *at = names;; at++) {
    kl_str name = {at, strcspn(at, ",")};
    const kl_gpu *g = kl_gpu_find(name);
    if (!g && cx) {
      kl_sb known;
      kl_sb_init(&known, cx);
      for (size_t i = 0; i < kl_gpus_n; i++) kl_sbf(&known, "%s%s", i ? ", " : "", kl_gpus[i].name);
      kiln_status s =
          kl_invalid(cx, KL_NOWHERE, "expected a device of the simulator (%s), found '%.*s'", known.p, KL_FMT(name));
      kl_sb_free(&known);
      return s;
    }
    if (!g) return KILN_E_INVALID;
    if (*n == KL_MOST_DEVICES)
      return cx ? kl_invalid(cx, KL_NOWHERE, "expected at most %d devices, found '%s'", KL_MOST_DEVICES, names)
                : KILN_E_INVALID;
    out[(*n)++] = g;
    at += name.n;
    if (!*at) return KILN_OK;
  }
}

static const kl_gpu *chosen[KL_MOST_DEVICES];
static int nchosen;

// Kernels that ran unchecked may have written anything.
static void choose_checks(uint32_t checks) {
  if (kl_sim.initialised && !(kl_sim.options.checks & KL_CHECK_UNDEFINED)) kl_memory_define_all(&kl_sim.memory);
  kl_sim.options.checks = checks;
}

kiln_status kl_sim_configure(kl_ctx *cx, const kl_sim_options *o) {
  const kl_gpu *devices[KL_MOST_DEVICES];
  int n = 0;
  if (o->checks & ~(uint32_t)KL_CHECK_ALL)
    return kl_invalid(cx, KL_NOWHERE, "expected checks of kiln_sim_check (KILN_SIM_CHECK_ALL: all), found 0x%x",
                      o->checks);
  if (o->devices) KL_TRY(read_devices(cx, o->devices, devices, &n));
  CUresult code = kl_sim_enter(KL_NEED_NOTHING, false);
  kiln_status s = code ? KILN_E_INTERNAL : KILN_OK;
  if (n && kl_sim.initialised) {
    bool same = n == kl_sim.ndevices;
    for (int i = 0; i < n && same; i++) same = devices[i] == kl_sim.devices[i].gpu;
    if (!same)
      s = kl_invalid(cx, KL_NOWHERE, "the simulator's devices can be chosen before its first use alone; it has %s",
                     kl_sim.devices[0].gpu->name);
  }
  if (s == KILN_OK) {
    if (n) memcpy(chosen, devices, sizeof chosen), nchosen = n;
    if (o->workers) kl_sim.options.workers = o->workers;
    if (o->shuffle) kl_sim.options.shuffle = o->shuffle;
    if (o->perturb) kl_sim.options.perturb = o->perturb;
    if (o->most_branches) kl_sim.options.most_branches = o->most_branches;
    if (o->checks) choose_checks(o->checks);
  }
  kl_sim_leave();
  return s;
}

static CUresult open_devices(void) {
  if (!nchosen && read_devices(NULL, from_environment("KILN_SIM_GPU", "H100"), chosen, &nchosen)) {
    nchosen = 0;
    return CUDA_ERROR_NO_DEVICE;
  }
  uint64_t memory = 0;
  for (int i = 0; i < nchosen; i++) {
    kl_sim.devices[i] = (kl_cu_device){.gpu = chosen[i]};
    memory += chosen[i]->memory;
  }
  kl_sim.ndevices = nchosen;
  kl_memory_init(&kl_sim.memory, kl_sim.cx, memory);
  return CUDA_SUCCESS;
}

CUresult kl_cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (kl_sim.initialised) return CUDA_SUCCESS;
  if (!kl_sim.cx) kl_sim.cx = kiln_context_create(NULL);
  if (!kl_sim.cx) return CUDA_ERROR_OUT_OF_MEMORY;
  kl_sim_options *o = &kl_sim.options;
  const char *checks = from_environment("KILN_SIM_CHECK", "");
  if (!o->checks && *checks && !kl_checks_from_text(kl_str_of(checks), &o->checks)) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(open_devices());
  kl_findings_init(&kl_sim.findings, kl_sim.cx);
  if (!o->workers) o->workers = (unsigned)number_from_environment("KILN_SIM_WORKERS");
  if (!o->shuffle) o->shuffle = number_from_environment("KILN_SIM_SHUFFLE");
  if (!o->perturb) o->perturb = number_from_environment("KILN_SIM_PERTURB");
  if (!o->most_branches) o->most_branches = number_from_environment("KILN_SIM_LIMIT");
  kl_log_open();
  kl_sim.initialised = true;
  return CUDA_SUCCESS;
}

CUresult kl_cuDriverGetVersion(int *out) {
  KL_GIVEN(out);
  *out = KL_DRIVER_VERSION;
  return CUDA_SUCCESS;
}

CUresult kl_cuModuleGetLoadingMode(CUmoduleLoadingMode *out) {
  KL_GIVEN(out);
  *out = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// --- one device ---------------------------------------------------------------------------------------------------

CUresult kl_device_check(CUdevice device, kl_cu_device **out) {
  if (device < 0 || device >= kl_sim.ndevices) return CUDA_ERROR_INVALID_DEVICE;
  *out = &kl_sim.devices[device];
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetCount(int *out) {
  KL_GIVEN(out);
  *out = kl_sim.ndevices;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGet(CUdevice *out, int ordinal) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(ordinal, &d));
  *out = ordinal;
  return CUDA_SUCCESS;
}

static CUresult put_text(char *out, int size, const char *text) {
  if (!out || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, (size_t)size, "%s", text);
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetName(char *out, int size, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  return put_text(out, size, d->gpu->model);
}

// The same for the same device, always.
CUresult kl_cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  uint64_t words[2];
  for (uint64_t i = 0; i < 2; i++) words[i] = kl_hash(d->gpu->name, strlen(d->gpu->name), (uint64_t)device * 2 + i);
  memcpy(out->bytes, words, sizeof out->bytes);
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetUuid(CUuuid *out, CUdevice device) {
  return kl_cuDeviceGetUuid_v2(out, device);
}

CUresult kl_cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  *out = d->gpu->memory;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice device) {
  kl_cu_device *d;
  int value = 0;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  if (!kl_gpu_attribute(d->gpu, device, which, &value)) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetProperties(CUdevprop *out, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  *out = (CUdevprop){.maxThreadsPerBlock = 1024,
                     .maxThreadsDim = {1024, 1024, 64},
                     .maxGridSize = {INT32_MAX, 65535, 65535},
                     .sharedMemPerBlock = 48 * 1024,
                     .totalConstantMemory = 64 * 1024,
                     .SIMDWidth = 32,
                     .memPitch = INT32_MAX,
                     .regsPerBlock = 65536,
                     .clockRate = (int)d->gpu->clock_khz,
                     .textureAlign = 512};
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(major, minor);
  KL_RESULT(kl_device_check(device, &d));
  *major = d->gpu->sm / 10;
  *minor = d->gpu->sm % 10;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
  kl_cu_device *d;
  char text[32];
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  snprintf(text, sizeof text, "0000:%02X:00.0", (unsigned)(device + 1) & 0xff);
  return put_text(out, size, text);
}

CUresult kl_cuDeviceGetByPCIBusId(CUdevice *out, const char *text) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  KL_GIVEN(out, text);
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
    domain = 0;
    if (sscanf(text, "%x:%x.%x", &bus, &device, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
  }
  if (domain || device || function || bus == 0 || bus > (unsigned)kl_sim.ndevices) return CUDA_ERROR_INVALID_DEVICE;
  *out = (CUdevice)bus - 1;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetExecAffinitySupport(int *out, CUexecAffinityType type, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  if (type != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  return CUDA_SUCCESS;
}

// --- peers: all memory is one ---------------------------------------------------------------------------------------

CUresult kl_cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  KL_RESULT(kl_device_check(peer, &d));
  *out = device != peer;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(from, &d));
  KL_RESULT(kl_device_check(to, &d));
  if (from == to) return CUDA_ERROR_INVALID_DEVICE;
  switch (which) {
  case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
  case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *out = 0; return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *out = 1; return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

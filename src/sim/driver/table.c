// The entry points as a table, and how each is entered.

#include "sim/driver/entry.h"

#include <pthread.h>

kl_sim_state kl_sim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool own_stream;
static _Thread_local unsigned called_out;

// --- entering -----------------------------------------------------------------------------------------------------

static CUresult check(kl_need need) {
  if (need >= KL_NEED_INIT && called_out) return CUDA_ERROR_NOT_PERMITTED;
  if (need >= KL_NEED_INIT && !kl_sim.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (need >= KL_NEED_CONTEXT) {
    kl_cu_context *c = kl_current();
    if (!c) return kl_current_is_stale() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    if (c->lost) return c->lost;
  }
  return need == KL_NEED_UNCAPTURED ? kl_capture_permits() : CUDA_SUCCESS;
}

CUresult kl_sim_enter(kl_need need, bool own) {
  pthread_mutex_lock(&lock);
  own_stream = own;
  CUresult code = check(need);
  if (code) kl_sim_leave();
  return code;
}

void kl_sim_leave(void) {
  kl_log_findings();
  pthread_mutex_unlock(&lock);
}

void kl_sim_call_out(CUhostFn fn, void *data) {
  bool own = own_stream;
  pthread_mutex_unlock(&lock);
  called_out++;
  fn(data);
  called_out--;
  pthread_mutex_lock(&lock);
  own_stream = own;
}

bool kl_own_stream(void) {
  return own_stream;
}

// --- the table ----------------------------------------------------------------------------------------------------

#define X(name, symbol, since, need, stream, params, args) KL_ENTRIES(static, call_, symbol, need, stream, params, args)
KL_SIM_CALLS(X)
#undef X

typedef void (*kl_call)(void);
typedef struct row {
  const char *name, *symbol;
  int since;
  kl_call call, own_stream; // the second where there is one
} row;

#define KL_OWN_PLAIN(symbol) NULL
#define KL_OWN_PTSZ(symbol)  (kl_call) call_##symbol##_ptsz
#define KL_OWN_PTDS(symbol)  (kl_call) call_##symbol##_ptds
static const row rows[] = {
#define X(name, symbol, since, need, stream, params, args)                                                             \
  {#name, #symbol, since, (kl_call)call_##symbol, KL_OWN_##stream(symbol)},
    KL_SIM_CALLS(X)
#undef X
#define X(name, since, symbol) {#name, #symbol, since, (kl_call)call_##symbol, NULL},
        KL_SIM_NAMES(X)
#undef X
};

// The row for a name at a version; `known`: the name is there at some version.
static const row *find(const char *name, int version, bool *known) {
  const row *best = NULL;
  *known = false;
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    if (strcmp(rows[i].name, name) != 0) continue;
    *known = true;
    if (rows[i].since <= version && (!best || rows[i].since >= best->since)) best = &rows[i];
  }
  return best;
}

void *kl_sim_resolve(const char *name, int version) {
  bool known;
  const row *r = name ? find(name, version, &known) : NULL;
  return r ? (void *)(uintptr_t)r->call : NULL;
}

CUresult kl_cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *found) {
  bool known;
  KL_GIVEN(name, out);
  *out = NULL;
  if (found) *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
    return CUDA_ERROR_INVALID_VALUE;
  const row *r = find(name, version, &known);
  if (known && !r && found) *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  if (!r) return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  bool own = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && r->own_stream;
  *out = (void *)(uintptr_t)(own ? r->own_stream : r->call);
  if (found) *found = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult kl_cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags) {
  return kl_cuGetProcAddress_v2(name, out, version, flags, NULL);
}

// Tables of NVIDIA's own that its runtime library asks for.
CUresult kl_cuGetExportTable(const void **out, const CUuuid *id) {
  KL_GIVEN(out, id);
  *out = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

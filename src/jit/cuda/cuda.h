// The CUDA driver as a table of entry points. Private to src/jit/cuda.
#ifndef KL_CUDA_H
#define KL_CUDA_H

#include "base/base.h"
#include "cuda/abi.h"
#include <kiln/cuda.h>
#include <stdatomic.h>

typedef struct kl_cuda_table {
#define X(name, symbol, version, need, signature) CUresult(*name) signature;
  KL_CUDA_CALLS(X)
#undef X
} kl_cuda_table;

struct kiln_driver {
  kl_ctx *cx; // its own
  kl_cuda_table fn;
  int version;
  char origin[256]; // for messages: the library's name
  // Whether it is in use, and again in memory that a child of this process finds zero: a driver in use there is one
  // that does not work.
  atomic_bool *used, *used_here;
};

// Was it in use when this process was forked? Asked before each use, by loads alone.
bool kl_cuda_is_forked(const kiln_driver *d);

// What befell a context: the code of the first failure that ruined it, else 0. Kernels and devices have one each.
typedef _Atomic(int) kl_cuda_fate;

// Reports a failed call: name, code, what to do. A code that ruins contexts is stored in `fate` (may be NULL).
kiln_status kl_cuda_failed(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, const char *call, CUresult code,
                           const char *detail);
// KILN_OK, or why nothing can be done in a context any more.
kiln_status kl_cuda_alive(kl_ctx *cx, const kiln_driver *d, const kl_cuda_fate *fate);
// The same for who has no context yet.
kiln_status kl_cuda_usable(kl_ctx *cx, const kiln_driver *d);

// Calls entry point `name` and returns from the function unless it succeeds.
#define KL_CUDA_TRY(cx, d, fate, name, ...)                                                                            \
  do {                                                                                                                 \
    CUresult kl_code = (d)->fn.name(__VA_ARGS__);                                                                      \
    if (kl_code != CUDA_SUCCESS) return kl_cuda_failed((cx), (d), (fate), #name, kl_code, NULL);                       \
  } while (0)

// Makes a context current, and the one before afterwards.
typedef struct kl_cuda_scope {
  bool pushed;
} kl_cuda_scope;
kiln_status kl_cuda_enter(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, CUcontext context, kl_cuda_scope *out);
// Returns `st`, or the failure to leave.
kiln_status kl_cuda_leave(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, kl_cuda_scope *s, kiln_status st);

// --- machine code that is kept --------------------------------------------------------------------------------------

// What a driver's compiler makes machine code from, and what for.
typedef struct kl_code_key {
  const char *ptx;
  size_t size;
  int driver;  // its version
  uint32_t sm; // of the device
} kl_code_key;

// Where machine code is kept from one process to the next.
typedef struct kl_code_store {
  void *user;
  // The code, which is the caller's (kl_free with *size + 1); false: there is none.
  bool (*get)(void *user, kl_ctx *cx, const kl_code_key *key, void **code, size_t *size);
  void (*put)(void *user, kl_ctx *cx, const kl_code_key *key, const void *code, size_t size);
  void (*drop)(void *user, kl_ctx *cx, const kl_code_key *key); // the driver has refused what was there
} kl_code_store;

// kiln_cuda_kernel_prepare with machine code from a store, and into it. What goes wrong with that is not told: then it
// is as without a store.
kiln_status kl_cuda_prepare_kept(kl_ctx *cx, kiln_cuda_kernel *k, const kl_code_store *store);

// Least driver version (12080) that reads this version of PTX (80 for 8.0); 0 if unknown.
int kl_cuda_driver_for_ptx(int ptx);

#endif

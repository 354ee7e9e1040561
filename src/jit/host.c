// The host device: object code in this process through ORC, iterations spread over threads.
//
// The JIT is given no symbols at all: a kernel that wanted a library function would fail to link here.

#include "jit/jit.h"
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef void (*kl_host_fn)(void *const *slots, int64_t begin, int64_t end, int64_t count);

struct kiln_kernel {
  kl_ctx *cx; // its own
  kl_arena arena;
  LLVMOrcLLJITRef jit;
  kl_program program;
  kl_host_fn *fn;
  kl_host_launch *host;
  char *constants; // those of the manifest, which are read here, not in each run's scratch memory
};

// --- loading ------------------------------------------------------------------------------------------------------

typedef struct found {
  LLVMErrorRef error;
  uint64_t address;
} found;

static void on_found(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, size_t n, void *user) {
  found *f = user;
  f->error = error;
  if (!error && n) f->address = pairs[0].Sym.Address;
}

kiln_status kl_object_look_up(kl_ctx *cx, LLVMOrcLLJITRef jit, LLVMOrcJITDylibRef library, const char *name,
                              uintptr_t *address) {
  found f = {0};
  LLVMOrcCJITDylibSearchOrderElement order = {library, LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly};
  LLVMOrcCLookupSetElement symbol = {LLVMOrcLLJITMangleAndIntern(jit, name), LLVMOrcSymbolLookupFlagsRequiredSymbol};
  LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(jit), LLVMOrcLookupKindStatic, &order, 1, &symbol, 1,
                                on_found, &f);
  *address = (uintptr_t)f.address;
  return kl_llvm_error(cx, f.error, "linking the kernel");
}

// A bare library sees nothing of this process; LLJIT's own would.
kiln_status kl_objects_load(kl_ctx *cx, const kl_object *objects, size_t n, LLVMOrcLLJITRef *jit,
                            LLVMOrcJITDylibRef *library) {
  kiln_status st = kl_llvm_error(cx, LLVMOrcCreateLLJIT(jit, NULL), "starting the JIT");
  if (st != KILN_OK) {
    *jit = NULL;
    return st;
  }
  *library = LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcLLJITGetExecutionSession(*jit), "kiln");
  for (size_t i = 0; i < n && st == KILN_OK; i++) {
    LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(objects[i].bytes, objects[i].size, "kernels");
    st = kl_llvm_error(cx, LLVMOrcLLJITAddObjectFile(*jit, *library, copy), "loading kernels");
  }
  return st;
}

static kiln_status load_kernels(kl_ctx *cx, kiln_kernel *k, const kiln_artifact *a) {
  LLVMOrcJITDylibRef library;
  KL_TRY(kl_objects_load(cx, a->objects, a->object_count, &k->jit, &library));
  for (size_t i = 0; i < k->program.manifest.launch_count; i++) {
    uintptr_t address = 0;
    KL_TRY(kl_object_look_up(cx, k->jit, library, k->program.manifest.launches[i].kernel, &address));
    k->fn[i] = (kl_host_fn)address;
  }
  return KILN_OK;
}

static kiln_status copy_constants(kl_ctx *cx, kiln_kernel *k, const kiln_manifest *f) {
  size_t n = (size_t)f->constant_bytes, align = f->scratch_align;
  if (!n) return KILN_OK;
  char *p = kl_arena_try_alloc(&k->arena, n + align);
  if (!p) return kl_out_of_memory(cx, n + align, "constants");
  k->constants = p + (align - (uintptr_t)p % align) % align;
  memcpy(k->constants, f->constants, n);
  return KILN_OK;
}

kiln_status kiln_kernel_load(kiln_context *cx, const kiln_artifact *a, kiln_kernel **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, a, out);
  if (!a->host) return kl_invalid(cx, KL_NOWHERE, "the artifact is for %s: expected target host", a->target);
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *kcx = kiln_context_create(&own);
  if (!kcx) return kl_out_of_memory(cx, sizeof *kcx, "a kernel");
  kiln_kernel *k = kl_alloc(kcx, sizeof *k);
  k->cx = kcx;
  kl_arena_init(&k->arena, kcx);
  kl_program_make(&k->program, &k->arena, a);
  k->fn = KL_NEW_N(&k->arena, kl_host_fn, a->manifest.launch_count);
  k->host = kl_arena_dup(&k->arena, a->host_launches, a->manifest.launch_count * sizeof *k->host);
  kl_jit *jit;
  kiln_status st = kl_jit_get(cx, &jit);
  if (st == KILN_OK) st = copy_constants(cx, k, &a->manifest);
  if (st == KILN_OK) st = load_kernels(cx, k, a);
  if (st == KILN_OK)
    *out = k;
  else
    kiln_kernel_destroy(&k);
  return st;
}

void kiln_kernel_destroy(kiln_kernel **kp) {
  if (!kp || !*kp) return;
  kiln_kernel *k = *kp;
  kl_ctx *cx = k->cx;
  if (k->jit) LLVMConsumeError(LLVMOrcDisposeLLJIT(k->jit));
  kl_arena_free(&k->arena);
  kl_free(cx, k, sizeof *k);
  kiln_context_destroy(&cx);
  *kp = NULL;
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct work {
  kl_host_fn fn;
  void *const *slots;
  int64_t begin, end, count;
} work;

// Kernels are right in one floating-point environment only: round to nearest, denormals kept, nothing trapping.
static void *run_part(void *arg) {
  const work *w = arg;
#if defined(__x86_64__)
  unsigned saved = _mm_getcsr();
  _mm_setcsr(0x1f80);
#endif
  w->fn(w->slots, w->begin, w->end, w->count);
#if defined(__x86_64__)
  _mm_setcsr(saved);
#endif
  return NULL;
}

enum { MAX_THREADS = 256 };

// The part that begins at 0 also runs the tail; it runs on this thread. A thread that cannot start leaves its part
// here.
static void run_parallel(kl_host_fn fn, void *const *slots, int64_t iterations, int64_t least, int64_t count,
                         uint32_t threads) {
  int64_t most = iterations / least + 1;
  int64_t n = threads < most ? threads : most;
  if (n > MAX_THREADS) n = MAX_THREADS;
  work parts[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  bool started[MAX_THREADS] = {0};
  int64_t each = iterations / n, more = iterations % n, at = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t size = each + (i < more);
    parts[i] = (work){fn, slots, at, at + size, count};
    at += size;
  }
  for (int64_t i = 1; i < n; i++) started[i] = pthread_create(&ids[i], NULL, run_part, &parts[i]) == 0;
  for (int64_t i = 0; i < n; i++) {
    if (!started[i]) run_part(&parts[i]);
  }
  for (int64_t i = 1; i < n; i++) {
    if (started[i]) pthread_join(ids[i], NULL);
  }
}

typedef struct run {
  const kiln_kernel *k;
  uint64_t *at;     // by slot
  void **arguments; // of one kernel
  char *scratch;
  int64_t count;
  uint32_t threads;
  const kiln_run_params *params;
} run;

static int64_t iterations_of(const kiln_launch *l, const kl_host_launch *h, int64_t count) {
  if (!l->count_whole) return h->iterations;
  return (count / l->count_whole + (!h->flat && count % l->count_whole)) * l->count_blocks;
}

static void *argument(const run *r, const kiln_argument *a) {
  const kiln_manifest *f = &r->k->program.manifest;
  uint64_t in_constants = a->offset - f->scratch_zero_bytes;
  if (a->kind == KILN_ARGUMENT_SCRATCH && in_constants < f->constant_bytes) return r->k->constants + in_constants;
  return (void *)(uintptr_t)kl_program_argument(a, r->at, r->count, (uintptr_t)r->scratch);
}

static kiln_status run_launch(void *user, size_t i) {
  const run *r = user;
  const kiln_launch *l = &r->k->program.manifest.launches[i];
  const kl_host_launch *h = &r->k->host[i];
  bool counted = r->k->program.manifest.counted;
  double start = r->params->launched ? kl_seconds() : 0;
  int64_t iterations = counted ? iterations_of(l, h, r->count) : h->iterations;
  for (size_t s = 0; s < l->argument_count; s++) r->arguments[s] = argument(r, &l->arguments[s]);
  if (counted ? r->count != 0 : h->any)
    run_parallel(r->k->fn[i], r->arguments, iterations, h->least, r->count, r->threads);
  if (r->params->launched) r->params->launched(r->params->user, i, kl_seconds() - start);
  return KILN_OK;
}

static kiln_status read_condition(void *user, const kiln_argument *a, void *to, uint32_t bytes) {
  memcpy(to, argument(user, a), bytes);
  return KILN_OK;
}

static uint32_t default_threads(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (uint32_t)n;
}

static kiln_status run_all(kl_ctx *cx, run *r, const void *const *parameters, void *const *results) {
  const kiln_manifest *f = &r->k->program.manifest;
  KL_TRY(kl_program_arrays(cx, &r->k->program, parameters, results));
  for (size_t i = 0; i < f->parameter_count; i++) r->at[i] = (uintptr_t)parameters[i];
  for (size_t i = 0; i < f->result_count; i++) r->at[f->parameter_count + i] = (uintptr_t)results[i];
  KL_TRY(kl_program_check(cx, &r->k->program, r->at, r->count, (uintptr_t)r->scratch));
  return kl_program_run(&r->k->program, r->at, &(kl_runner){r, run_launch, read_condition});
}

kiln_status kiln_kernel_run(kiln_context *cx, const kiln_kernel *k, const void *const *parameters, void *const *results,
                            const kiln_run_params *params) {
  kiln_run_params p;
  KL_EXPECT(cx, k);
  KL_TRY(KL_PARAMS_IN(cx, kiln_run_params, params, &p));
  const kiln_manifest *f = &k->program.manifest;
  size_t slots = f->parameter_count + f->result_count + 1, arguments = k->program.most_arguments + 1;
  size_t scratch = (size_t)f->scratch_bytes + f->scratch_align;
  run r = {.k = k, .params = &p, .count = p.count, .threads = p.threads ? p.threads : default_threads()};
  char *memory = f->scratch_bytes ? kl_try_alloc(cx, scratch) : NULL;
  if (f->scratch_bytes && !memory) return kl_out_of_memory(cx, scratch, "scratch memory");
  r.scratch = memory ? memory + (f->scratch_align - (uintptr_t)memory % f->scratch_align) : NULL;
  r.at = kl_alloc(cx, slots * sizeof *r.at);
  r.arguments = kl_alloc(cx, arguments * sizeof *r.arguments);
  kiln_status st = run_all(cx, &r, parameters, results);
  kl_free(cx, r.arguments, arguments * sizeof *r.arguments);
  kl_free(cx, r.at, slots * sizeof *r.at);
  if (memory) kl_free(cx, memory, scratch);
  return st;
}

// What the files of this room share: objects behind handles, the driver's state, entering and leaving it.
#ifndef KL_SIM_IMPL_H
#define KL_SIM_IMPL_H

#include "sim/check/findings.h"
#include "sim/driver/calls.h"
#include "sim/driver/driver.h"
#include "sim/gpu/gpu.h"
#include "sim/machine/machine.h"

#define KL_RESULT(expr)                                                                                                \
  do {                                                                                                                 \
    CUresult kl_result = (expr);                                                                                       \
    if (kl_result) return kl_result;                                                                                   \
  } while (0)
// Returns from an entry point where a pointer is missing.
#define KL_GIVEN(...)                                                                                                  \
  do {                                                                                                                 \
    const void *const kl_given[] = {__VA_ARGS__};                                                                      \
    for (size_t kl_g = 0; kl_g < KL_COUNT(kl_given); kl_g++)                                                           \
      if (!kl_given[kl_g]) return CUDA_ERROR_INVALID_VALUE;                                                            \
  } while (0)

// The bodies of the entry points: called with the lock held and what their row needs checked.
#define X(name, symbol, since, need, stream, params, args) CUresult kl_##symbol params;
KL_SIM_CALLS(X)
#undef X

// --- entering (table.c) -------------------------------------------------------------------------------------------

typedef enum kl_need { KL_NEED_NOTHING, KL_NEED_INIT, KL_NEED_CONTEXT, KL_NEED_UNCAPTURED } kl_need;

// Takes the lock; unless it succeeds, the lock is given back and the entry point returns the result. `own_stream`: 0 is
// the thread's own stream.
CUresult kl_sim_enter(kl_need need, bool own_stream);
void kl_sim_leave(void);
// Around code of the caller's that a stream runs: the lock is free meanwhile, and the driver refuses its calls.
void kl_sim_call_out(CUhostFn fn, void *data);

// --- objects behind handles (objects.c) ---------------------------------------------------------------------------

typedef enum kl_kind {
  KL_NO_OBJECT,
  KL_CONTEXT,
  KL_MODULE,
  KL_FUNCTION,
  KL_LIBRARY,
  KL_LIBRARY_KERNEL,
  KL_LINK,
  KL_STREAM,
  KL_EVENT,
  KL_POOL,
  KL_GRAPH,
  KL_NODE,
  KL_EXEC,
  KL_USER_OBJECT,
} kl_kind;

typedef struct kl_object {
  uint64_t handle;
  kl_kind kind;
  struct kl_cu_context *context; // that it goes with, or NULL
} kl_object;

// A zeroed object that begins with a kl_object, or NULL if memory is short.
void *kl_object_new(kl_kind kind, size_t size, struct kl_cu_context *context);
void kl_object_delete(void *object, size_t size);
// The object behind a handle, or NULL where there is none of this kind.
void *kl_object_find(const void *handle, kl_kind kind);
// The next object of a kind, from *at on (which starts at 0), or NULL.
void *kl_object_next(kl_kind kind, size_t *at);
#define KL_HANDLE(T, object) ((T)(uintptr_t)(object)->o.handle)

// --- devices (gpus.c, device.c) -----------------------------------------------------------------------------------

// An attribute of a device; false if there is none of this number.
bool kl_gpu_attribute(const kl_gpu *g, int ordinal, CUdevice_attribute which, int *out);

typedef struct kl_cu_device {
  const kl_gpu *gpu;
  struct kl_cu_context *primary; // NULL: none is alive
  uint64_t retains;
  unsigned primary_flags;
  struct kl_cu_pool *default_pool, *pool;
} kl_cu_device;

// --- contexts (context.c) -----------------------------------------------------------------------------------------

enum { KL_LIMITS = 10, KL_GREATEST_PRIORITY = -5 };
typedef struct kl_cu_context {
  kl_object o;
  CUdevice device;
  unsigned flags, api_version;
  bool primary;
  CUresult lost; // the failure that ruined it
  size_t limits[KL_LIMITS];
  int cache_config;
  unsigned peers;              // devices, by bit, whose memory it may use
  struct kl_cu_stream *legacy; // stream 0
} kl_cu_context;

// The thread's current context, or NULL: there is none, or it is destroyed.
kl_cu_context *kl_current(void);
bool kl_current_is_stale(void);
void kl_context_delete(kl_cu_context *c);
CUresult kl_context_check(CUcontext handle, kl_cu_context **out);
// What must be known of a device.
CUresult kl_device_check(CUdevice device, kl_cu_device **out);

// --- memory (memory.c) --------------------------------------------------------------------------------------------

typedef enum kl_memory_kind {
  KL_MEM_DEVICE,
  KL_MEM_ASYNC,      // of a pool
  KL_MEM_HOST,       // cuMemAllocHost
  KL_MEM_REGISTERED, // the caller's
  KL_MEM_MANAGED,
  KL_MEM_MODULE, // variables
} kl_memory_kind;

typedef struct kl_allocation {
  kl_memory_kind kind;
  bool alive;
  uint64_t base, size; // of the device's address
  char *host;          // KL_MEM_HOST, REGISTERED, MANAGED: the host's address
  unsigned flags;      // as it was made
  uint64_t id;
  kl_cu_context *context;
  struct kl_cu_pool *pool;
  bool sync_memops;
  bool of_graph; // its address is in a graph's nodes: it is there until the context ends
} kl_allocation;

typedef struct kl_cu_pool {
  kl_object o;
  CUdevice device;
  uint64_t used, used_high, threshold, most;
  int reuse[3];
} kl_cu_pool;

// The allocation that holds an address of the device or of pinned memory, or NULL.
kl_allocation *kl_allocation_find(uint64_t address);
CUresult kl_allocate(kl_cu_context *c, kl_memory_kind kind, uint64_t bytes, unsigned flags, kl_cu_pool *pool,
                     uint64_t *out);
CUresult kl_release(kl_allocation *a);
void kl_release_context_memory(kl_cu_context *c);

// --- work: what a stream or a graph's node does (work.c) -------------------------------------------------------------

typedef struct kl_kernel_work {
  uint64_t function; // its handle
  CUkernel kern;     // as given, where it was one
  unsigned grid[3], block[3], cluster[3], shared;
  bool cooperative;
  int priority;
  void *params; // bytes of all, owned
  size_t param_bytes;
  uint32_t nparams;
  void **pointers; // one to each within `params`, for those who ask; owned
} kl_kernel_work;

typedef struct kl_conditional {
  CUgraphConditionalHandle handle;
  CUgraphConditionalNodeType type;
  unsigned size;
  struct kl_cu_graph **bodies; // owned
} kl_conditional;

typedef struct kl_work {
  CUgraphNodeType type;
  uint64_t context; // its handle, or 0
  union {
    kl_kernel_work kernel;
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    struct {
      CUhostFn fn;
      CUstreamCallback callback; // in place of fn
      CUstream stream;
      void *data;
    } host;
    CUevent event;
    struct kl_cu_graph *child; // owned
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUdeviceptr free;
    struct {
      CUdeviceptr to;
      uint64_t value;
      unsigned bytes;
    } write;
    kl_conditional conditional;
  };
} kl_work;

// Does it now. What it names may be gone by then: INVALID_HANDLE, or CONTEXT_IS_DESTROYED.
CUresult kl_perform(const kl_work *w);
// Does it now, or adds it to the graph that the stream is captured into; takes what the work owns.
CUresult kl_submit(struct kl_cu_stream *s, kl_work *w);
// A copy that owns what it holds; on a failure it is empty.
CUresult kl_work_copy(const kl_work *w, kl_work *out);
void kl_work_free(kl_work *w);
// Work that launches a kernel; on a failure it owns nothing.
CUresult kl_kernel_work_make(CUfunction f, const CUlaunchConfig *c, void **params, void **extra, kl_work *out);
CUresult kl_kernel_work_attribute(kl_kernel_work *k, CUlaunchAttributeID which, const CUlaunchAttributeValue *v);
CUresult kl_kernel_work_check(const kl_kernel_work *k);
CUresult kl_copy_check(const CUDA_MEMCPY3D *c);
CUresult kl_copy_perform(const CUDA_MEMCPY3D *c);
CUresult kl_fill_check(const CUDA_MEMSET_NODE_PARAMS *f);
CUresult kl_fill_perform(const CUDA_MEMSET_NODE_PARAMS *f);

// --- modules (module.c, library.c) -----------------------------------------------------------------------------------

typedef struct kl_cu_function {
  kl_object o;
  struct kl_cu_module *module;
  kl_kernel *kernel;
  kl_kernel_facts facts;
  char *name;
  int dynamic_shared, carveout, cluster[3], cluster_must_be_set, nonportable, scheduling;
  struct kl_cu_function *next; // of the module
} kl_cu_function;

typedef struct kl_cu_module {
  kl_object o;
  kl_loaded *loaded;
  struct kl_cu_library *library; // whose it is, or NULL
  kl_cu_function *functions;
  struct kl_cu_module *next; // of the library
} kl_cu_module;

typedef struct kl_cu_kernel {
  kl_object o;
  struct kl_cu_library *library;
  const kl_ptx_func *func;
  char *name;
  int dynamic_shared, carveout; // for functions made from it; -1: as it is
} kl_cu_kernel;

typedef struct kl_cu_library {
  kl_object o;
  char *text;
  size_t length;
  kl_ptx_module *ptx;
  kl_cu_kernel **kernels;
  uint32_t nkernels;
  kl_cu_module *modules; // by context
} kl_cu_library;

// The function behind a CUfunction, or behind a CUkernel in the current context.
CUresult kl_function_check(CUfunction handle, kl_cu_function **out);
void kl_module_unload(kl_cu_module *m);
int kl_function_registers(const kl_cu_function *f); // of a thread
int kl_function_threads(const kl_cu_function *f);   // of a block at most
// Blocks that a multiprocessor holds at once.
int kl_function_resident(const kl_cu_function *f, int threads, uint64_t dynamic_shared);

// --- streams, events, capture (stream.c, capture.c) ------------------------------------------------------------------

typedef struct kl_capture {
  uint64_t id;
  CUstreamCaptureMode mode;
  uint64_t thread;
  struct kl_cu_graph *graph;
  struct kl_cu_stream *origin;
  bool invalid, given; // given: into a graph of the caller's
  struct kl_capture *next;
} kl_capture;

typedef struct kl_nodes {
  struct kl_cu_node **p;
  size_t n, cap;
} kl_nodes;

typedef struct kl_cu_stream {
  kl_object o;
  unsigned flags;
  int priority;
  bool is_default; // stream 0, or a thread's own
  uint64_t thread; // whose own it is, or 0
  kl_capture *capture;
  kl_nodes after;    // what the next piece of work depends on
  CUgraphNode *told; // what cuStreamGetCaptureInfo showed last
  size_t ntold;
  CUlaunchAttributeValue attributes[17];
} kl_cu_stream;

typedef struct kl_cu_event {
  kl_object o;
  unsigned flags;
  bool recorded;
  double at;        // milliseconds
  uint64_t capture; // in which it was recorded last, or 0
  kl_nodes after;
} kl_cu_event;

// The stream of the current context that a handle names.
CUresult kl_stream_check(CUstream handle, kl_cu_stream **out);
CUresult kl_event_check(CUevent handle, kl_cu_event **out);
kl_cu_stream *kl_stream_new(kl_cu_context *c, unsigned flags, int priority);
void kl_stream_delete(kl_cu_stream *s);
void kl_event_delete(kl_cu_event *e);
void kl_event_happens(kl_cu_event *e);
uint64_t kl_thread(void); // a number of the calling thread, from 1
bool kl_own_stream(void); // 0 is the thread's own stream in this call
// May this thread make a call that a capture forbids? If not, the captures in question are invalid from now on.
CUresult kl_capture_permits(void);
// For calls that wait or ask: they cannot be captured.
CUresult kl_stream_uncaptured(kl_cu_stream *s);
// Stream 0 would wait for blocking streams that are captured.
CUresult kl_capture_spares_legacy(kl_cu_context *c);
// The stream's next work depends on what the event stands for.
CUresult kl_capture_join(kl_cu_stream *s, kl_cu_event *e);
// No stream is captured by it any more; its graph is deleted unless it was given or taken out before.
void kl_capture_end(kl_capture *c);
bool kl_nodes_add(kl_nodes *to, struct kl_cu_node *n);
bool kl_nodes_copy(kl_nodes *to, const kl_nodes *from);
void kl_nodes_free(kl_nodes *v);

// --- graphs (graph.c, node.c, exec.c)
// ----------------------------------------------------------------------------------

typedef struct kl_cu_node {
  kl_object o;
  struct kl_cu_graph *graph;
  kl_work work;
  kl_nodes before, behind; // dependencies, and what depends on this one
  uint64_t number;         // rises with its making
  uint64_t origin;         // handle of the node that it is a copy of
  bool disabled;
  CUgraph *bodies; // of a condition, for the caller
  uint32_t mark;
} kl_cu_node;

typedef struct kl_value {
  CUgraphConditionalHandle handle; // the address of the value
  unsigned initial, flags;
} kl_value;

typedef struct kl_user {
  uint64_t handle; // of the user object
  unsigned count;
} kl_user;

typedef struct kl_cu_graph {
  kl_object o;
  kl_nodes nodes;  // as they were made
  uint64_t origin; // handle of the graph that it is a copy of
  bool inner;      // a node's: it goes with it
  bool capturing;
  VEC(kl_value) values; // of conditions; they go with their context
  VEC(kl_user) users;   // user objects that it holds
} kl_cu_graph;

typedef struct kl_cu_exec {
  kl_object o;
  kl_cu_graph *graph; // a copy
  unsigned long long flags;
  unsigned running; // launches that are calling the host's functions
  bool ended;       // destroyed meanwhile
} kl_cu_exec;

typedef struct kl_cu_user_object {
  kl_object o;
  CUhostFn destroy;
  void *data;
  uint64_t count;
} kl_cu_user_object;

kl_cu_graph *kl_graph_new(void);
void kl_graph_delete(kl_cu_graph *g);
kl_cu_graph *kl_graph_copy(const kl_cu_graph *g); // NULL if memory is short
// Adds a node that takes what the work owns, also where it fails.
CUresult kl_graph_add(kl_cu_graph *g, kl_cu_node *const *before, size_t n, kl_work *w, kl_cu_node **out);
// The nodes in an order that their dependencies allow, by their making; false if memory is short or there is none.
bool kl_graph_order(const kl_cu_graph *g, kl_nodes *out);
CUresult kl_graph_perform(const kl_cu_graph *g);
// INVALID_VALUE: there is no such graph, or node.
CUresult kl_graph_check(CUgraph handle, kl_cu_graph **out);
CUresult kl_node_check(CUgraphNode handle, kl_cu_node **out);
// The copy of a node, by the original's handle, in a graph and those within its nodes; or NULL.
kl_cu_node *kl_graph_find_copy(const kl_cu_graph *g, uint64_t origin);
// Gives references of a user object back; the last one destroys it.
void kl_user_object_drop(uint64_t handle, uint64_t count);
// What a node of these parameters does; INVALID_VALUE: nothing that can be done. A child graph is copied.
CUresult kl_node_work(const CUgraphNodeParams *p, kl_work *out);
// Takes new parameters of the same type.
CUresult kl_node_set(kl_cu_node *n, const CUgraphNodeParams *p);

// --- what was found (log.c) ------------------------------------------------------------------------------------------

// Opens the file that the environment names; once.
void kl_log_open(void);
// Moves the findings of kl_sim.cx to the log, the file and the callers' functions.
void kl_log_findings(void);

// --- the state
// ---------------------------------------------------------------------------------------------------------

enum { KL_MOST_DEVICES = 8, KL_DRIVER_VERSION = 13000 };
typedef struct kl_sim_state {
  kl_ctx *cx;
  bool initialised;
  kl_cu_device devices[KL_MOST_DEVICES];
  int ndevices;
  kl_memory memory;
  VEC(kl_allocation) allocations; // by the tag of their region
  VEC(uint32_t) free_allocations;
  kl_capture *captures;
  uint64_t serial; // of whatever is numbered
  kl_sim_options options;
  kl_findings findings;
} kl_sim_state;
extern kl_sim_state kl_sim;

#endif

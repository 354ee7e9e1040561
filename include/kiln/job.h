// kiln: compilation in the background, by a thread of its own.
#ifndef KILN_JOB_H
#define KILN_JOB_H

#include <kiln/cache.h>
#include <kiln/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

// One compilation under way. Any thread may ask, wait for and cancel it; one destroys it, when no other uses it.
typedef struct kiln_job kiln_job;

typedef enum kiln_job_state {
  KILN_JOB_RUNNING,
  KILN_JOB_DONE,      // there is an artifact
  KILN_JOB_FAILED,    // there are findings
  KILN_JOB_CANCELLED, // it has ended before it was done
} kiln_job_state;

typedef struct kiln_job_info {
  size_t struct_size;
  kiln_job_state state;
  // Pieces of work: the plan of each kernel, and its code. 0 of 0 before it is known how many there are. Where another
  // way to divide the module is tried, they begin again.
  size_t done, all;
} kiln_job_info;

typedef struct kiln_job_params {
  size_t struct_size;
  const kiln_compile_params *compile; // as for kiln_compile, copied with what it points to but `user`; NULL: defaults
  kiln_cache *cache;                  // where the artifact may come from and is put (kiln/cache.h); NULL: none
  // Called on the job's thread: `progress` between two pieces of work, `ended` once, last of all, when `state` is
  // another than RUNNING. Either may destroy the job; `ended` is called nevertheless. Either may be NULL.
  void (*progress)(void *user, kiln_job *j, size_t done, size_t all);
  void (*ended)(void *user, kiln_job *j, kiln_job_state state);
  void *user;
} kiln_job_params;

// Starts compiling and returns. The module must live until the job has ended, and the cache, too; the context is free
// for other work at once. The allocator hook of `cx` is called on the job's thread (kiln/base.h). The job is the
// caller's. Signals are not delivered to its thread. Errors: INVALID (params that no module could be compiled with),
// MEMORY (also where no thread can be had).
KILN_API kiln_status kiln_job_start(kiln_context *cx, const kiln_module *m, const kiln_job_params *params,
                                    kiln_job **out);

// Fills *out with where the job is now.
KILN_API kiln_status kiln_job_describe(kiln_context *cx, const kiln_job *j, kiln_job_info *out);
// Has it ended? Waits for so many seconds at most; 0: only asks; negative: as long as it takes. `ended` may still run.
// On the job's own thread it waits for nothing.
KILN_API bool kiln_job_wait(kiln_job *j, double seconds);
// Asks the job to end, and returns at once. What is in LLVM's hands is ended when that returns. Nothing, where it has
// ended already.
KILN_API void kiln_job_cancel(kiln_job *j);
// Waits for the end and stores the artifact, which is the caller's and may be the one that other calls gave. The job's
// findings become those of `cx` as well, warnings too. Errors: those of kiln_compile; CANCELLED; INVALID (by
// `progress`).
KILN_API kiln_status kiln_job_take(kiln_context *cx, kiln_job *j, kiln_artifact **out);
// Cancels it if it still runs, and waits for its thread, `ended` included; called on that thread, does not wait.
KILN_API void kiln_job_destroy(kiln_job **j);

#ifdef __cplusplus
}
#endif
#endif

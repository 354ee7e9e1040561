// A stand-in for the CUDA driver: it answers every entry point that kiln calls, can run nothing, and keeps account of
// what was made and not destroyed. Launches copy nothing; memory is the host's.
// Threads may call it at once while nobody changes what it is told to play.
//
// Every call counts. The n-th one can be made to fail with a chosen code, as a driver would: it does nothing then.
#ifndef STANDIN_H
#define STANDIN_H

#include "cuda/abi.h"
#include <kiln/cuda.h>
#include <stdbool.h>

typedef struct standin {
  int version;         // that cuDriverGetVersion gives; 13000 if 0
  const char *missing; // an entry point that is not there, or NULL
  int devices;         // 1 if 0; -1: none
  bool capturing;      // every stream is being captured
  CUcontext dead;      // a context that has been destroyed, and its modules with it
  // Takes each launch on the thread that makes it, in place of `last` and `arguments`, which serve one thread. Or NULL.
  void (*launched)(const CUlaunchConfig *config, void **arguments);
  // The failure to play.
  long fail_at; // number of the call that fails, from 1; 0: none
  CUresult code;
  bool sticky;     // every later call fails so, too
  const char *log; // what the compiler writes if loading fails
  // What happened.
  long calls;
  const char *failed;                                                                    // name of the call that failed
  long contexts, streams, events, modules, libraries, allocations, graphs, execs, links; // alive
  long depth;                     // of all threads' stacks of contexts
  long launches, loads, compiled; // loads: of code of either kind; compiled: PTX, by loading or linking
  bool refuses_cubins;            // as for another device
  const void *images[2];          // of the loads, in turns
  CUlaunchConfig last;
  CUfunction function;    // of the last launch: another one for each code that is loaded
  uint64_t arguments[16]; // of the last launch
} standin;

extern standin standin_state; // the entry points have no user pointer

void standin_reset(void);
// For kiln_driver_params.resolve.
void *standin_resolve(void *user, const char *name, int version);
// A context is gone, and all modules and graphs that were ready with it: what is done to them from now on is done to
// freed memory.
void standin_destroy_context(CUcontext context);
// Is everything that was made destroyed, and the stack of contexts empty?
bool standin_is_clean(void);

#endif

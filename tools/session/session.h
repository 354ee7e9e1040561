// A module with its buffers and artifacts, on one machine: what verbs that run modules work on.
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "params.h"
#include "session/saved.h"
#include "stored.h"

typedef enum machine { ON_CUDA, ON_HOST, ON_SIM, ON_EVAL } machine;

// Options of verbs that run modules: the rows after those that say how to compile.
enum { O_DEVICE = O_OTHERS, O_SEED, O_REPEAT, O_MEMORY, O_CACHE, O_CUBIN, O_JSON, O_VERB };
// clang-format off
#define SESSION_OPTIONS(target_help, devices, repeat)                                                                  \
  COMPILE_OPTIONS(target_help),                                                                                        \
  {"--device", "NAME", devices " (default auto: cuda if there is a GPU, else host)"},                                  \
  {"--seed", "N", "seed of the parameters that no file gives (default 0)"},                                            \
  {"--repeat", "N", "timed runs, of which the median counts (default " repeat ")"},                                    \
  {"--max-memory", "SIZE", "bytes that arrays and the evaluator may take, as 512M or 1.5G (default: what is free)"},     \
  {"--cache", "[=DIR]", "keep artifacts and machine code in this folder, or find them there (default the user's)"},    \
  {"--cubin", "FILE", "machine code for the GPU, which compile --emit cubin has made, in place of the driver's; with "   \
   "--least-align that\nof FILE.cubin, then that of FILE.less.cubin", true},                                            \
  {"--json", NULL, "report as one JSON object"}
// clang-format on

typedef struct session {
  const args *a;
  kiln_context *cx;
  kiln_module *m;     // as it is run: over arrays, where the file's has sparse tensors
  stored stored;      // those, and its buffers
  kiln_bundle *saved; // what the file has in place of a module, or NULL; then `m` tells of buffers alone
  kiln_artifact *gpu, *host;
  kiln_compile_params how;
  kiln_alias aliases[MOST_ALIASES];
  int64_t count; // of a launch, where the artifact takes it
  size_t nparams, nresults;
  void **params, **results;
  unsigned long long seed, repeat;
  int64_t memory; // bytes that are left for the evaluator
  machine machine;
  kiln_cache *cache; // or NULL
  kiln_cubin
      *cubins; // the GPU's code, where the words name files of it: of the artifact, of its kernels for less alignment
  size_t ncubins;
  kiln_driver *driver; // on cuda and sim
  kiln_device_info device;
  double compile_ms, seconds, check_seconds; // seconds: median of the runs
  bool by_launch;                            // times of single launches are wanted: of the last run, by number
  double *launch_seconds;
  size_t *launch_times; // how often it was done
  size_t mismatches;
  kiln_mismatch mismatch[16];
} session;

// What a verb wants of a session.
typedef struct session_rules {
  bool everywhere;           // on the simulator and the evaluator, too
  bool saved;                // files of artifacts are taken, too
  unsigned repeat;           // runs, where --repeat says nothing
  int (*inputs)(session *s); // takes parameters from files, once those of the file's module are filled; or NULL
  int (*work)(session *s);   // with the parameters filled: runs, checks, reports
  int64_t (*beside)(const session *s); // bytes that the work takes beside the parameters and results
  int64_t (*on_gpu)(const session *s); // the same, on a GPU; either may be NULL
} session_rules;

// Opens and compiles the file that the words name, for the device they name, makes buffers, fills the parameters from
// the seed and does the verb's work. An exit status, as from all of these.
int session_verb(const args *a, const session_rules *rules);
// On a GPU, real or simulated: one way, through a driver.
bool session_on_gpu(const session *s);
// Opens the driver and describes device 0. False, without a word if `quiet`, where there is none.
bool session_open_gpu(session *s, bool quiet);
int session_run_host(session *s);
int session_run_gpu(session *s);
int session_check(session *s);
// The module as the file has it, and its buffers.
const kiln_module *session_module(const session *s);
void **session_params(const session *s);
void **session_results(const session *s);
void session_launched(void *user, size_t launch, double seconds); // adds the time to a session's
void session_begin_launches(session *s);                          // from nothing
kiln_eval_params session_eval_params(const session *s);
int64_t session_bytes(const session *s);    // in and out
int64_t session_elements(const session *s); // of all results

// A module's buffers on a GPU, and the launches on them.
typedef struct device_buffers {
  uint64_t *params, *results, scratch;
  uint64_t *arguments; // what a launch is given for each parameter
} device_buffers;
kiln_status buffers_make(session *s, kiln_device *dev, device_buffers *b); // to be freed in any case
// Puts the parameters whose memory results are to be there again.
kiln_status buffers_refill(session *s, kiln_device *dev, device_buffers *b);
void buffers_free(const session *s, kiln_device *dev, device_buffers *b);
kiln_status buffers_launch(session *s, kiln_device *dev, kiln_cuda_kernel *k, const device_buffers *b);
// Loads the kernel's code, from where the words say.
kiln_status session_prepare(session *s, kiln_cuda_kernel *k);
kiln_status buffers_download(session *s, kiln_device *dev, const device_buffers *b);

const char *machine_name(machine m);     // as --device has it
double median(double *values, size_t n); // sorts them

#endif

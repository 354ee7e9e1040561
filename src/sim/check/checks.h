// Checks of launches: which of them, over which memory, and what they found. Each check is an observer of the machine;
// what it finds goes into one report.
#ifndef KL_CHECKS_H
#define KL_CHECKS_H

#include "sim/check/report.h"

// Bits, as kiln/sim.h has them.
enum {
  KL_CHECK_MEMORY = 1,    // addresses, alignment, stack, calls: what ends a launch; and what misses its variable
  KL_CHECK_UNDEFINED = 2, // values that were never written
  KL_CHECK_UNWRITTEN = 4, // outputs that were not written
  KL_CHECK_RACE = 8,      // accesses that nothing orders
  KL_CHECK_SYNC = 16,     // barriers, shuffles: who takes part
  KL_CHECK_ALL = 31,
};
// "all", or names separated by commas: memory, undefined, unwritten, race, sync. False: no such name.
bool kl_checks_from_text(kl_str text, uint32_t *out);

// What bytes of the caller's are for the kernel, where it is not an input or an output of any kind.
typedef enum kl_use {
  KL_USE_OUTPUT,  // must be written whole
  KL_USE_SCRATCH, // may be left with values made from what was never written
} kl_use;

typedef struct kl_checked_bytes {
  uint64_t address, bytes;
  kl_use use;
} kl_checked_bytes;

typedef struct kl_checks {
  kl_ctx *cx;
  kl_memory *memory;
  uint32_t which;
  VEC(kl_checked_bytes) bytes; // of the launches that follow
  kl_report report;            // grows from launch to launch
  bool failed;                 // the launch did not end well: what it has not done says nothing
  bool no_memory;              // a check had none left: what it says is not all
} kl_checks;

void kl_checks_init(kl_checks *c, kl_ctx *cx, kl_memory *m, uint32_t which);
void kl_checks_free(kl_checks *c);
// What these bytes are for, which must lie in one piece of memory.
void kl_checks_use(kl_checks *c, uint64_t address, uint64_t bytes, kl_use use);
// Runs a launch under the checks, and those that it already has. What kl_launch_run returns: findings are no failure.
// Without KL_CHECK_UNDEFINED all memory counts as defined from then on.
kiln_status kl_checks_run(kl_checks *c, const kl_launch *l, kl_fault *fault);

// As kl_checks_run, for one launch alone, with what is found first as a finding of the context: then DEVICE.
kiln_status kl_checks_expect_nothing(kl_ctx *cx, kl_memory *m, const kl_launch *l, uint32_t which);

// --- the checks: each an observer for one launch, or NULL where there is no memory for it ---------------------------

typedef struct kl_check {
  kl_observer *observer;
  void (*end)(kl_observer *); // of the launch: judges what is left to judge, and frees the observer
  bool shadows;               // it needs kl_launch.shadows
} kl_check;
typedef kl_check kl_check_open(kl_checks *c, const kl_launch *l);
kl_check_open kl_check_beyond, kl_check_values, kl_check_outputs;

#endif

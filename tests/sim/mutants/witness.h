// What a launch did, byte by byte and thread by thread, by other means than the checks': it forgets nothing and saves
// nothing, and so is for small launches only. It says whether accesses raced, and in what a launch differs from
// another one of nearly the same kernel.
#ifndef TESTS_MUTANTS_WITNESS_H
#define TESTS_MUTANTS_WITNESS_H

#include "sim/machine/observe.h"

typedef struct witness witness;
witness *witness_new(void);
void witness_free(witness *w);
kl_observer *witness_observer(witness *w);
// Bytes of the device's memory that have no value before the launch; all others have.
void witness_undefined(witness *w, uint64_t address, uint64_t bytes);

// Two accesses to the same byte of global or shared memory, a write among them, that nothing orders and that are not
// both strong for each other; writes of the same value aside.
bool witness_raced(const witness *w);

// In what a launch differs from the right one, by the first of these that holds.
typedef enum difference {
  SAME_BYTES,      // it reads and writes the same bytes: values alone are others
  READS_UNDEFINED, // it reads bytes that nobody has written
  NOT_WRITTEN,     // bytes of the undefined ones stay so, which the right one writes
  WRITES_OTHERS,   // it writes bytes that the right one does not
  KEEPS_OLDER,     // it writes bytes less often than the right one, so that they keep an older value
  READS_OTHERS,    // it reads bytes that the right one does not
  DIFFERENCES
} difference;
difference witness_compare(const witness *right, const witness *wrong);

#endif

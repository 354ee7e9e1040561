// How often loops run, where the text says it.
#ifndef KL_TRIPS_H
#define KL_TRIPS_H

#include "ir/attrs.h"

// The times that the body of `loop`, a while of `c`, is done, whatever the data: its condition compares what begins as
// a constant, and has a constant added in each round, with a constant. Calls and fusions on the way are looked through.
// False: not known, which is so too where a value would wrap around.
bool kl_trip_count(const kiln_module *m, const kl_comp *c, const kl_instr *loop, uint64_t *out);

#endif

// What is counted of a plan, beside what the simulator counts of the kernel.
#ifndef KL_TEST_COUNTS_H
#define KL_TEST_COUNTS_H

#include <kiln/kiln.h>
#include <kiln/profile.h>

// What the simulator counts of all launches together, each with any data; of each the first `blocks` blocks, 0: all.
kiln_status counts_profile(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, uint64_t blocks,
                           kiln_profile_info *sum);

// Runs the kernels of an artifact of `m`, which was compiled with KILN_KEEP_EXPLAIN, with any data on the simulator. 0:
// the counts agree; 1: they do not, with a line in `why`; 2: they cannot be compared, since data decides or warps stood
// for others; 4: LLVM has found that the value of a load does not matter (x xor x), or its upper half (u16 of s64), and
// all else agrees.
int counts_differ(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, char *why, size_t size);

// Are some of its launches several, and none a loop's rounds?
bool counts_have_chains(const kiln_artifact *a);

#endif

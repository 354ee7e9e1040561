// What the tests of whole modules share: running on the host against the evaluator, and assembling PTX in batches.
#ifndef KL_TEST_HARNESS_H
#define KL_TEST_HARNESS_H

#include "support/gen.h"
#include "support/ptxas.h"
#include <kiln/kiln.h>

enum { TARGETS = 5, HOST = TARGETS, FAMILY };
extern const char *const targets[TARGETS + 2]; // sm_70, sm_75, sm_80, sm_90, sm_100; host; sm_100a

// One for each code there is: the IR for GPUs differs at sm_80. The last one is the host.
enum { MACHINES = 3 };
extern const unsigned machines[MACHINES];

// How reductions and loops are made by what follows; all zero: as cost says.
extern struct kl_strategy strategy;
extern bool deterministic; // what follows is compiled so
extern uint32_t keep;      // texts that it keeps: KILN_KEEP_*
// Where it is set: called for each parameter of what runs, whose buffer is full of what `seed` made, to change it.
extern void (*change_parameter)(const kiln_module *m, size_t parameter, unsigned seed, void *buffer);

// Kernels of many modules in one PTX text, for one run of ptxas.
typedef struct batch {
  kl_sb text;
  unsigned version; // of the PTX, as 63
  unsigned kernels, first, last;
  kl_sb spilled; // of each batch that has one the first kernel that spills; found wanting when all is assembled
} batch;

void batches_init(batch *b, kiln_context *cx); // TARGETS of them
void batches_free(batch *b);                   // assembles what is left; fails where a kernel spilled
// Compiles `m` for target t, looks the PTX over (no local memory, every float add, sub and mul with its rounding) and
// takes it into the batch, which is assembled when it is full. `number` tells the kernels of a batch apart.
void batch_add(batch *b, unsigned t, kiln_context *cx, const kiln_module *m, unsigned number, const char *text);

// `m` for target t, or HOST, as the tests below run and assemble it: a module is compiled once for each. The harness's,
// until the next module, or until many others of this one were made. `number` names it where that fails.
const kiln_artifact *compiled_for(kiln_context *cx, const kiln_module *m, unsigned t, unsigned number,
                                  const char *text);

// Compiles `m` for target t, or HOST, and runs it: target t's kernels on the simulator (gpu_sim.h), those of
// the host with `threads`. Buffers are aligned to `align` bytes as far as it knows; 0: 16. Fails the test where that
// cannot be.
void run_on(kiln_context *cx, const kiln_module *m, unsigned t, unsigned threads, uint32_t align, const void *const *in,
            void *const *out, const char *text);

// Runs `m` on the host with inputs from `seed` (wild ones if it is odd) and fails the test unless the evaluator agrees
// with every result and nothing is written beside them.
void run_and_check(kiln_context *cx, kiln_module *m, unsigned seed, const char *text);

// The same for the kernels of target t.
void run_gpu_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text);

// Both, with the same inputs. Host and GPU must have the same bits, a NaN aside, unless the order of updates shows:
// without `deterministic`, in what has a scatter.
void run_both_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text);

// What the evaluator gives of `m`, with inputs from `seed`, must be right for the other module, which has the same
// parameters and results, by the evaluator.
void evaluates_as(kiln_context *cx, const kiln_module *m, const kiln_module *other, unsigned seed, const char *text);

// Runs an artifact of `m` with sane inputs from `seed`: results that may be a parameter's buffer (by bit of the
// parameter's number) are. The evaluator must agree, and nothing else of the parameters may change.
void run_in_place_and_check(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, unsigned shared,
                            unsigned seed, const char *text);
// Parameters that an artifact allows a result in, by bit of their number.
unsigned pairs_of(const kiln_artifact *a);

// Where the fusion can take its element count at run time: runs the first elements alone, on the host and as target t's
// kernels, beside other data; they must be the same as in the whole. False where it cannot.
bool run_parts_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text);

// Runs the module of one 16-bit parameter and one 16-bit result, 65,536 of each, on the host for all inputs. How many
// results the evaluator does not allow, and in *x the first of them. `flip`: a result whose last bit is changed before;
// -1: none.
int64_t wrong_of_all_16_bit(kiln_context *cx, const char *text, int flip, kiln_mismatch *x);

// Text of a file in examples/, and its PTX for a target; the first launch of its manifest, too, where it is wanted.
// free() them.
char *example(const char *name, size_t *size);
char *compile_example(const char *name, const char *target, kiln_launch *launch);
unsigned occurrences(const char *text, const char *what);

// Fails the running test with the context's first finding.
void give_up(unsigned number, const char *what, kiln_context *cx, const char *text);

// A computation e, and those that it calls; f adds two of the type.
typedef struct small {
  const char *what, *text, *type;
} small;
// Runs and checks it on host and simulator, which must have the same bits, and assembles it for one of the targets.
void check_small(const small *r, unsigned number);

#endif

// What of ENTRY becomes which kernel, and where each of a kernel's arguments lies. Private to src/jit.
#ifndef KL_KERNELS_H
#define KL_KERNELS_H

#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "lower/plan/rounds.h"

// An argument in scratch memory says, as long as sizes are not known, by its offset what it is: a place among the
// counters or the constants, or the number of a buffer.
#define KL_AMONG_COUNTERS  (UINT64_C(1) << 62)
#define KL_AMONG_CONSTANTS (UINT64_C(2) << 62)
#define KL_AMONG           (UINT64_C(3) << 62)

// What kernels leave each other, or themselves.
typedef struct kl_buffer {
  uint64_t bytes, at;
  uint32_t first, last; // kernels that it is there for
} kl_buffer;

// Constants that are arguments, each once; a multiple of the scratch memory's alignment each.
typedef struct kl_constant {
  uint64_t at, bytes;
  const void *data;
} kl_constant;

typedef struct kl_kernel_unit {
  const kl_comp *comp; // its parameters' leaves, then its results' leaves are the kernel's arguments
  const char *name;
  uint32_t narguments; // without a count
  kiln_argument *arguments;
  const kl_shape *const *shapes; // of the buffers behind them
  uint32_t calls;                // computation of the module that `comp` is; KL_NONE: a copy, or ENTRY
  uint32_t like;                 // the first kernel that does the same with buffers that lie the same; itself: none
  bool repeated;                 // others are like it
  bool idle;                     // a copy, for which there may be no need: nothing is launched
  bool in_place;                 // some result is written over an argument, both in scratch memory
} kl_kernel_unit;

// A declared pair of slots.
typedef struct kl_alias_pair {
  uint32_t parameter, result; // slots
  bool must;                  // else it is dropped, with a warning, where it cannot be
  bool asked;                 // by the module or who compiles it
  bool dropped;
} kl_alias_pair;

// Kernels from `first` to `last` that are launched again and again.
typedef struct kl_loop {
  uint32_t first, last;
  size_t step;
  const kl_instr *in;
} kl_loop;

// A kernel's plan and its launches, as they are described if each is one.
typedef struct kl_described {
  const kl_plan_launch *from;
  kiln_launch launch;
  kl_host_launch host;
  kl_member member; // once it is asked for: its plan is there
} kl_described;
typedef struct kl_planned {
  kl_plan *plan; // NULL: the kernel is idle
  bool own;      // the plan is this kernel's alone
  bool shares;   // it is that of a kernel before
  uint32_t n;
  kl_described *launches;
} kl_planned;

// Kernels first .. end - 1 that are one launch: those of `nsteps` steps from `step` on, and some before and behind; or
// kernels of one step, then `step` is SIZE_MAX.
typedef struct kl_grouped {
  uint32_t first, end;
  size_t step, nsteps;
  kl_rounds rounds;
  const kiln_argument *arguments;
} kl_grouped;

// A value that whoever launches reads from a slot before kernel `before` is run.
typedef struct kl_read {
  uint32_t slot, before;
} kl_read;

// Arguments of a kernel, a buffer that is read and written: if its plan does not find that right, it writes the buffer
// `beside`, and the idle kernel `copy` is not idle.
typedef struct kl_spare {
  uint32_t unit, in, out, copy;
  uint64_t beside;
} kl_spare;

typedef struct kl_kernels {
  kl_arena *arena;
  const kiln_module *m;
  const kl_comp *entry; // whose parameters and results are the slots; the picked fusion if one is picked
  uint32_t nslots, nparams, nresults;
  kiln_slot *slots;
  const kl_shape *const *shapes; // of the slots, in the layouts of the buffers
  uint32_t *param_base;          // slot of parameter i's first leaf
  uint32_t n;
  kl_kernel_unit *units;    // in order of execution, those of loops once
  VEC(kl_kernel_unit) list; // while they are found
  VEC(kl_loop) loops;       // callees' before their callers'
  VEC(kiln_step) steps;     // of kernels, not of launches; none: one after the other
  size_t stepped;           // kernels that are in steps, while they are found
  VEC(kl_grouped) grouped;
  VEC(kl_read) reads;
  VEC(kl_spare) spares; // in the order of kernels
  bool rolls;           // loops may be one launch
  bool asked;           // somebody has asked for slots that share memory
  kl_sb *why;           // what became of loops and branches, for people; NULL: nobody asks
  uint32_t npairs;
  kl_alias_pair *pairs;
  uint32_t *pair_of;              // by slot: number of its pair + 1; 0: none, or it has been dropped
  uint32_t *writer, *last_reader; // by slot: number of the kernel + 1; 0: none
  bool *rewritten;                // by slot: several kernels write it, of which one is launched
  VEC(kl_buffer) buffers;
  VEC(kl_constant) constants;
  kl_ids constant_ids;
  uint64_t constant_bytes, scratch_bytes; // scratch_bytes: of buffers, once they are placed
  uint32_t scratch_align;
} kl_kernels;

// Frees what is not in the arena.
void kl_kernels_free(kl_ctx *cx, kl_kernels *k);
// Adds a kernel of a computation of the module (or KL_NONE) for at most n arguments, and one more for a count; and an
// argument of it, the last one so far.
kl_kernel_unit *kl_add_unit(kl_ctx *cx, kl_kernels *k, const kl_comp *c, uint32_t calls, kl_str name, uint32_t n);
void kl_add_argument(kl_kernel_unit *u, kiln_argument a, const kl_shape *shape);
// place/: adds the kernels of all fusions of ENTRY and of what its loops and branches run, and copies.
void kl_place_all(kl_ctx *cx, kl_kernels *k);
// Names them, and says how long buffers are there: nothing is added behind it.
void kl_finish_units(kl_ctx *cx, kl_kernels *k);
// repeats.c: finds kernels that are alike.
kiln_status kl_find_repeats(kl_ctx *cx, kl_kernels *k);
// rounds.c: loops that one block runs. Kernels from `first` on of which the plans are needed at once to find out:
// behind the last of them; first + 1: none but its own.
uint32_t kl_planned_together(const kl_kernels *k, uint32_t first);
bool kl_is_in_loop(const kl_kernels *k, uint32_t unit);
// Finds those among kernels first .. end - 1, whose plans are `planned`, by kernel.
void kl_group(kl_ctx *cx, kl_kernels *k, const kl_target *t, const kl_strategy *s, uint32_t first, uint32_t end,
              kl_planned *planned);
// The group that begins with the kernel; NULL: none.
const kl_grouped *kl_group_at(const kl_kernels *k, uint32_t unit);
// The first group whose code is g's, too: the same plans in the same steps, with arguments that are alike; g: none is
// before it.
const kl_grouped *kl_group_like(const kl_kernels *k, const kl_grouped *g);
// Steps, with those of groups in their place.
void kl_list_steps(kl_ctx *cx, kl_kernels *k);
// Adds a constant if it is not there; its place among them.
uint64_t kl_add_constant(kl_ctx *cx, kl_kernels *k, const void *data, uint64_t bytes);
// Adds a buffer; its number.
uint32_t kl_add_buffer(kl_ctx *cx, kl_kernels *k, uint64_t bytes, uint32_t first, uint32_t last);
// buffers.c: places them, those that are there at the same time apart.
void kl_place_buffers(kl_ctx *cx, kl_kernels *k);

// Lists slots and kernels. A fusion's results are ENTRY's where they are used as such, else lie in the scratch memory.
// Says in `why`, if it is not NULL, what became of loops and branches. rolls: loops may be one launch.
kiln_status kl_kernels_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, bool rolls,
                            kl_arena *arena, kl_sb *why, kl_kernels *out);
// Collects the pairs of the module and of `params`; drops or refuses those that a later kernel would break.
kiln_status kl_kernels_alias(kl_ctx *cx, const kiln_compile_params *params, kl_kernels *k);
// The slot's pair, if it has one that is not dropped.
kl_alias_pair *kl_alias_of(const kl_kernels *k, uint32_t slot);
// Adds one that nobody has asked for and nothing forbids, of slots without.
void kl_add_alias(kl_kernels *k, uint32_t parameter, uint32_t result);
// Refuses the pair for this reason, or drops it.
kiln_status kl_alias_fails(kl_ctx *cx, const kl_kernels *k, kl_alias_pair *p, const char *why);

// What the manifest tells of slots, of its origin and of its code (describe.c). Its strings live in the kernels' arena.
void kl_describe_slots(kl_ctx *cx, kl_kernels *k);
kiln_status kl_describe_origin(kl_ctx *cx, const kl_kernels *k, const kiln_module *m, const char *fusion,
                               kiln_manifest *f);
void kl_describe_code(kiln_manifest *f, uint32_t ptx); // 80 for PTX 8.0; 0: none

#endif

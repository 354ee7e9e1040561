// Loops and branches around launches of plans, as one kernel of one block, or of the blocks of one cluster; and
// launches one behind the other, as one kernel of many blocks that know nothing of each other.
//
// A member is a launch of a plan. Its blocks are made one after the other, by teams: the threads of the kernel's block
// in groups of as many as the launch's blocks have, each with shared memory and a barrier of its own. All threads wait
// for each other behind every member and every condition, so that what one stores in global memory is there for those
// behind it. What is computed is what the plans say, by the threads that they name: the bits are those of launches.
//
// Of many blocks each does its share of every member: the launch's threads, block by block in one row, are cut into
// shares of one length, and block c does share c. Threads that do not wait for each other may be of one share though
// their block is not.
#ifndef KL_ROUNDS_H
#define KL_ROUNDS_H

#include "lower/plan/plan.h"

typedef struct kl_member {
  kl_plan *plan;
  const kl_plan_launch *launch;
  const uint32_t *args; // by argument of the launch: an argument of the kernel
  uint32_t teams;       // at least 1; side by side
  int64_t share;        // threads of the launch that a block does, where there are many
  uint32_t unit;        // of a share: kl_share_unit
  // Clocks of a multiprocessor: for all of its blocks, if nothing were waited for; for one of them; for all where all
  // multiprocessors have their part.
  double work, way, shared;
  double registers; // of a thread
  // Of a launch of its own: how often all multiprocessors have as many blocks as they run at once; threads at work
  // then.
  double ways, threads;
} kl_member;

typedef enum kl_round_kind {
  KL_ROUND_MEMBERS, // `count` members from `first` on
  KL_ROUND_WHILE,   // the `count` steps behind it; if what lies at `condition` is true, the `body` behind those, and
                    // again
  KL_ROUND_REPEAT,  // the `body` steps behind it, `times` times
  KL_ROUND_BRANCH,  // one of `count` cases, by what lies at `condition`: those steps of the `body` behind it
  KL_ROUND_CASE,    // the `body` steps behind it
} kl_round_kind;

// As kiln_step has them (kiln/artifact.h).
typedef struct kl_round {
  kl_round_kind kind;
  uint32_t first, count, body;
  uint64_t times;
  uint32_t condition, condition_bytes; // an argument of the kernel; 1: a truth, 4: an s32
} kl_round;

typedef struct kl_rounds {
  const char *name;
  uint32_t nargs, nmembers, nsteps;
  kl_member *members;
  const kl_round *steps;
  bool programmatic;
  // Blocks that know nothing of each other; 0: it is one, or a cluster. Then there is one step.
  int64_t grid;
  const uint32_t *same; // by argument, where there is a grid: the first that may be the same memory
  // What kl_rounds_fit finds.
  uint32_t block, cluster; // threads; blocks, 1 or more
  uint32_t shared_bytes;   // of a block
  uint32_t resident;       // blocks that a multiprocessor's registers are to hold at once; 0: the assembler's affair
  double clocks, apart;    // estimated, of all; and as launches, where whoever launches reads conditions
} kl_rounds;

// Why the launch cannot be a member; NULL: it can. in_place: are results that may be parameters' memory that?
const char *kl_no_member(const kl_plan *p, const kl_plan_launch *l, bool in_place);
// What it costs. The plan's cost is counted at each call.
kl_member kl_member_of(kl_plan *p, const kl_plan_launch *l);
// Finds block, cluster and teams that take least time; NULL, or why there are none. cluster: as many blocks; 0: as cost
// says.
const char *kl_rounds_fit(kl_rounds *r, const kl_target *t, uint32_t cluster);
// The same where there is a grid, of block and teams; several: shares may become some times as long, which is to be
// proved anew. False: there are none.
bool kl_shares_fit(kl_rounds *r, const kl_target *t, bool several);
// What a member costs by itself, and as one of these.
double kl_member_apart(const kl_member *m);
double kl_member_together(const kl_rounds *r, const kl_member *m, const kl_target *t);
static inline uint32_t kl_round_steps(const kl_round *s) { // with those that belong to it
  return 1 + s->body + (s->kind == KL_ROUND_WHILE ? s->count : 0);
}

// Proves that the kernel does what its steps say, if its plans are proved. KILN_E_INTERNAL is a defect of who made it.
kiln_status kl_rounds_verify(kl_ctx *cx, const kl_rounds *r, const kl_target *t);
void kl_rounds_print(kl_sb *b, const kl_rounds *r);

// --- shares (verify/shares.c) ---------------------------------------------------------------------------------------

// Why the launch cannot be one of which blocks do shares, if it can be a member; NULL: it can.
const char *kl_no_share(const kl_plan *p, const kl_plan_launch *l);
// Whole multiples of so many threads are a share of the launch.
uint32_t kl_share_unit(const kl_plan *p, const kl_plan_launch *l);
// Is it done block by block? Else thread by thread, whatever blocks they are of: those of a share that a block of the
// kernel has threads for at one time.
static inline bool kl_goes_by_blocks(const kl_member *m) {
  return !m->share || m->unit == m->launch->block;
}
// Blocks that all shares take.
int64_t kl_shares_grid(const kl_rounds *r);
// Finds the last member's share, and what the others' are to be multiplied by, so that what blocks of the kernel store
// and others touch is always one block's alone, if it is so of the others by themselves; sets these and the grid.
// False: none is found, and both are as they were.
bool kl_share_with(kl_ctx *cx, kl_rounds *r);
// Is that so of all members?
bool kl_shares_hold(kl_ctx *cx, const kl_rounds *r);

// Is there a launch whose blocks wait for others, so that it can be no member?
bool kl_blocks_wait(const kl_plan *p);
// Is a plan done by one block before a launch of its own would have begun, or soon after?
bool kl_is_quick(kl_plan *p);
// Do threads of a block wait for each other in some body of the launch?
bool kl_launch_waits(const kl_plan *p, const kl_plan_launch *l);
// Barriers that teams have; the first is the block's.
enum { KL_MOST_TEAMS = 15 };

#endif

// What the files that check order share.
#ifndef KL_ORDER_STATE_H
#define KL_ORDER_STATE_H

#include "sim/check/order.h"
#include "sim/check/order/clocks.h"
#include "sim/isa/match.h"
#include "sim/machine/execute.h"

#define KL_EACH_LANE(i, mask)                                                                                          \
  for (uint32_t left_##i = (mask), i; left_##i && (i = (uint32_t)__builtin_ctz(left_##i), 1); left_##i &= left_##i - 1)

// --- what instructions do -----------------------------------------------------------------------------------------

enum { KL_READS = 1, KL_WRITES = 2 };
// How far a scope reaches, and how far two blocks are apart: the same block, the same cluster, the device.
typedef enum kl_reach { KL_REACH_BLOCK, KL_REACH_CLUSTER, KL_REACH_ALL, KL_REACHES } kl_reach;

// An op that accesses memory. cp.async has four: source and target, each unfinished and then finished. Plain ones,
// which are neither strong nor unfinished, come first, of these such that only read.
typedef struct kl_site {
  const kl_code *code;
  uint32_t op;
  uint8_t does;  // KL_READS, KL_WRITES
  uint8_t bytes; // of an element
  uint8_t width; // of the whole access 1 << width bytes
  uint8_t order, reach;
  bool strong, unfinished;
  uint32_t finished; // of an unfinished one: the number of what it becomes
} kl_site;

// An op that has to do with order, by its instruction.
typedef enum kl_deed {
  KL_DEED_NONE,
  KL_DEED_ACCESS,
  KL_DEED_FENCE,
  KL_DEED_COMMIT, // cp.async.commit_group
  KL_DEED_WAIT,   // cp.async.wait_group, .wait_all
  KL_DEED_EXIT,
  KL_DEED_CLUSTER_ARRIVE,
  KL_DEED_CLUSTER_WAIT,
  KL_DEED_COLLECTIVE,
} kl_deed;
typedef struct kl_order_op {
  uint8_t deed, reach;
  bool acquires, releases; // of a fence or a cluster's barrier
  bool aligned;
  uint32_t number; // its site, of cp.async the source's; groups that may be left unfinished (UINT32_MAX: wait_all)
  uint32_t target; // cp.async: its target's site
} kl_order_op;

// --- memory -------------------------------------------------------------------------------------------------------

enum { KL_PAGE_BITS = 12, KL_PAGE_BYTES = 1 << KL_PAGE_BITS, KL_MOST_SEEN = 64, KL_CHUNK_BITS = 4, KL_ROW_BITS = 4 };
enum { KL_ROW = 1 << KL_ROW_BITS };

// Accesses that are remembered: lanes of a warp that did the same in the same step.
typedef struct kl_seen {
  uint64_t warp; // block << warp_bits | rank
  uint32_t step, lanes, site;
  bool cut; // a write that is not remembered came right behind it
} kl_seen;
// Two accesses of one lane each, packed, or one; or KL_MANY and a list.
typedef struct kl_cell {
  uint64_t a, b;
} kl_cell;
#define KL_MANY ((uint64_t)1 << 63)
typedef struct kl_seen_list {
  uint16_t n, cap;
  kl_seen of[];
} kl_seen_list;

// KL_ROW cells. As long as all of them have seen the same of lanes that lie in the order of the cells, one cell stands
// for all: `all` is the first one's, in the others the lanes are those behind (kl_beside). A row that was last looked
// at before its page was cleared has seen nothing.
typedef struct kl_row {
  kl_cell all;
  kl_cell *cells; // room for each by itself, or NULL
  uint32_t state; // its page's age when it was last looked at, and 1 more where the cells count, else `all`
} kl_row;
static inline bool kl_is_apart(const kl_row *row) {
  return row->state & 1;
}

// What a location that threads communicate through passes on.
typedef struct kl_near {
  uint64_t key; // block << 1, or cluster << 1 | 1
  kl_past *past;
} kl_near;
typedef struct kl_channel {
  struct kl_channel *next; // in the same bytes
  uint32_t at;             // in the page
  uint8_t bytes, reach;
  uint64_t block;  // of the last who wrote
  kl_past *all;    // of releases that reach the whole device
  VEC(kl_near) to; // of each release, for its own block and cluster
  VEC(struct kl_own_release {
    uint64_t thread; // warp << 5 | lane
    uint8_t reach;
    kl_past *past;
  })
  own; // of releases at this location: a later write of that thread passes them on as well
  VEC(struct kl_own_read {
    uint64_t thread;
    uint8_t reach;
    kl_past *past;
  })
  read; // what relaxed reads found here: a later acquire of that thread learns of it
} kl_channel;

// A page's cells each stand for 1 << shift bytes: those of the widest access that all so far consist of.
typedef struct kl_page {
  uint64_t number;
  struct kl_page *next;
  uint32_t age; // 2 more whenever it is cleared
  uint8_t shift;
  kl_row *rows;
  kl_channel **channels; // by 16 bytes; NULL: none
} kl_page;

// --- threads ------------------------------------------------------------------------------------------------------

// What few lanes have.
typedef struct kl_lane_more {
  struct {
    bool set;
    kl_moment at;
    kl_past *past; // the same, made when first asked for
  } fence[KL_REACHES];
  kl_past *seen[KL_REACHES]; // of what its strong reads found: for a fence that reaches so far
  kl_past *learned;          // last
} kl_lane_more;

typedef struct kl_copying { // cp.async that is not waited for yet
  kl_page *page;
  uint32_t at, bytes, site, group;
  uint8_t lane;
} kl_copying;

// Two accesses that race, as found when the later one came.
typedef struct kl_race {
  kl_seen x, y;
  uint8_t xlane, ylane;
  uint8_t lane;        // of a plain read that races with an atomic operation: its lane
  uint8_t value_bytes; // 0: too many
  uint64_t value;      // that is there
  const char *host;
  kl_spot spot;
  kl_calls calls; // of the later one
} kl_race;

typedef struct kl_order_warp {
  kl_ticks t;
  VEC(kl_race) unchecked; // that are none if the read's lane goes on with a compare-and-swap, which checks what it read
  kl_lane_more *more[KL_LANES];
  VEC(kl_copying) copying;
  uint32_t group[KL_LANES];          // committed ones
  const kl_sim_op *arrive[KL_LANES]; // at the cluster's barrier; NULL: not
  const kl_code *arrive_code[KL_LANES];
  uint32_t arrivals[KL_LANES], meetings[KL_LANES]; // there: of each lane so many, and that it has waited for
} kl_order_warp;

// Since the barrier last opened.
typedef struct kl_arrivals {
  kl_past *came;  // of those that do not wait
  uint32_t *come; // lanes, by warp
  const kl_sim_op *op;
  const kl_code *code; // of the first
  uint32_t expected, warp, lane;
  kl_calls calls;
} kl_arrivals;

typedef struct kl_visit kl_visit;
typedef struct kl_order_block {
  struct kl_order_block *next;
  const kl_block *of;
  uint64_t number;
  kl_order_warp *warps;
  kl_page **shared;
  size_t nshared;
  kl_arrivals arrivals[KL_BARRIERS];
  kl_past *cluster_came, *cluster_past; // at the cluster's barrier; of the first block
  uint32_t meetings;                    // there, the most that any of its threads has waited for
  kl_visit **visits;                    // of its shared memory, by block of the cluster and warp; NULL: none
} kl_order_block;

typedef struct kl_pair {
  uint32_t x, y;
  uint64_t index; // + 1 in the report; 0: free
} kl_pair;

enum { KL_BLOCK_TABLE = 1024, KL_RECENT_PAGES = 1024 };
typedef struct kl_ordering {
  kl_observer observer; // first
  kl_ctx *cx;
  kl_report *report;
  unsigned checks;
  bool begun, blind; // blind: nothing is said of races any more
  kl_run_state *run;
  kl_clocks clocks;
  // Packed accesses: site, step, lane, warp from the lowest bit on.
  unsigned site_bits, step_bits, warp_bits; // warp_bits: of a warp's rank
  VEC(kl_site) sites;
  uint32_t plain_reads, plain; // so many of these come first
  uint32_t warps;              // of a block
  kl_order_op **ops;           // by function of the module, then by op
  size_t *nops;                // by function
  size_t nfuncs;
  kl_order_block *blocks[KL_BLOCK_TABLE];
  kl_order_block *last;
  kl_order_block *free_blocks;
  kl_page **pages; // by number
  size_t npages, page_slots;
  kl_page *recent[KL_RECENT_PAGES]; // by the lowest bits of their number, or NULL
  VEC(kl_seen_list *) free_lists[8];
  VEC(kl_cell *) free_cells; // of rows
  kl_pair *pairs;
  size_t npairs, pair_slots;
} kl_ordering;

static inline kl_ordering *kl_order_of(kl_observer *o) {
  return (kl_ordering *)o;
}
kl_order_block *kl_order_block_of(kl_ordering *r, const kl_block *b);
bool kl_order_lives(const kl_ordering *r, uint64_t block);
static inline kl_order_op *kl_order_op_of(kl_ordering *r, const kl_warp *w, const kl_sim_op *o) {
  const kl_code *code = w->strand.frame->code;
  return &r->ops[code->function][o - code->ops];
}
static inline kl_reach kl_reach_of(unsigned scope) {
  return scope == KL_SCOPE_CTA ? KL_REACH_BLOCK : scope == KL_SCOPE_CLUSTER ? KL_REACH_CLUSTER : KL_REACH_ALL;
}
static inline kl_reach kl_apart(const kl_ordering *r, uint64_t a, uint64_t b) {
  if (a == b) return KL_REACH_BLOCK;
  return a / r->run->blocks == b / r->run->blocks ? KL_REACH_CLUSTER : KL_REACH_ALL;
}

// --- shadow.c -----------------------------------------------------------------------------------------------------

// The page of a number, or of a block's shared memory; NULL: no memory, and the checks are blind from now on. One that
// is new has cells of `bytes` bytes, one that has wider ones gets these.
kl_page *kl_page_of(kl_ordering *r, uint64_t number, unsigned bytes);
// The same page, if it was asked for recently; else NULL.
static inline kl_page *kl_recent_page(const kl_ordering *r, uint64_t number) {
  kl_page *p = r->recent[number % KL_RECENT_PAGES];
  return p && p->number == number ? p : NULL;
}
kl_page *kl_page_of_shared(kl_ordering *r, kl_order_block *b, uint64_t number, unsigned bytes);
void kl_pages_free(kl_ordering *r);
void kl_page_free(kl_ordering *r, kl_page *p);
// Nothing has been seen there.
void kl_page_clear(kl_ordering *r, kl_page *p);
// The row of cell number `at` of the page.
void kl_row_renew(kl_ordering *r, kl_row *row, uint32_t age);
static inline kl_row *kl_row_of(kl_ordering *r, const kl_page *p, uint32_t at) {
  kl_row *row = &p->rows[at / KL_ROW];
  if ((row->state & ~1u) != p->age) kl_row_renew(r, row, p->age);
  return row;
}
// Cell number `at` of the page, and behind it those to the end of its row, each by itself from now on; NULL: no memory,
// and the checks are blind from now on.
kl_cell *kl_cells_at(kl_ordering *r, kl_page *p, uint32_t at);
// One cell stands for the row again, whose cells are given back.
void kl_row_set(kl_ordering *r, kl_row *row, kl_cell all);
// What a cell has seen, oldest strong access first: how many of `out`, which has room for KL_MOST_SEEN.
uint32_t kl_cell_get(const kl_ordering *r, const kl_cell *c, kl_seen *out);
void kl_cell_put(kl_ordering *r, kl_cell *c, const kl_seen *seen, uint32_t n);
static inline uint64_t kl_pack(const kl_ordering *r, uint64_t warp, unsigned lane, uint32_t step, uint32_t site) {
  return (warp << 5 | lane) << (r->site_bits + r->step_bits) | (uint64_t)step << r->site_bits | site;
}

static inline const kl_site *kl_site_of(const kl_ordering *r, uint64_t packed) {
  return &r->sites.p[packed & (((uint64_t)1 << r->site_bits) - 1)];
}
// How many lanes behind the first one's the lane is whose bytes lie in cell `at` of a row of the page's `shift`, of an
// access that fills it from the first cell on.
static inline unsigned kl_lanes_beside(const kl_site *s, unsigned shift, uint32_t at) {
  return at >> (s->width - shift);
}

// --- race.c -------------------------------------------------------------------------------------------------------

void kl_race_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p);
// The warp's reads that wait for a compare-and-swap will not see one.
void kl_race_end(kl_ordering *r, kl_order_warp *ow);
// Copies of these lanes that belong to all but the last `left` groups are done.
void kl_race_copied(kl_ordering *r, kl_order_warp *ow, uint64_t warp, uint32_t lanes, uint32_t left);

// --- release.c ----------------------------------------------------------------------------------------------------

// A strong access of a lane to an element at `at` of a page. Reading comes first: what an acquire finds happened before
// it. A reduction reads nothing that could be acquired.
void kl_channel_read(kl_ordering *r, kl_order_warp *ow, uint64_t warp, unsigned lane, kl_page *page, uint32_t at,
                     const kl_site *s);
void kl_channel_write(kl_ordering *r, kl_order_warp *ow, uint64_t warp, unsigned lane, kl_page *page, uint32_t at,
                      const kl_site *s);
// Bytes are written by who passes nothing on.
void kl_channel_overwrite(kl_ordering *r, kl_page *page, uint32_t at, uint32_t bytes, uint32_t but_bytes);
void kl_fence(kl_ordering *r, kl_order_warp *ow, uint32_t lanes, const kl_order_op *op);
void kl_channels_free(kl_ordering *r, kl_page *p);
void kl_lane_more_free(kl_ordering *r, kl_lane_more *m);

// --- barriers.c ---------------------------------------------------------------------------------------------------

void kl_sync_arrive(kl_observer *o, kl_warp *w, const kl_sim_op *op, unsigned barrier, uint32_t expected,
                    uint32_t lanes);
void kl_sync_open(kl_observer *o, kl_block *b, unsigned barrier);
void kl_sync_open_cluster(kl_observer *o, kl_cluster *c);
void kl_sync_meet(kl_observer *o, const kl_party *p);
void kl_sync_cluster_arrive(kl_ordering *r, kl_warp *w, const kl_sim_op *op, const kl_order_op *how);
void kl_sync_cluster_wait(kl_ordering *r, kl_warp *w, const kl_sim_op *op, const kl_order_op *how);

// --- misuse.c -----------------------------------------------------------------------------------------------------

void kl_misuse_arrive(kl_ordering *r, kl_order_block *ob, kl_warp *w, const kl_sim_op *op, unsigned barrier,
                      uint32_t expected, uint32_t lanes);
void kl_misuse_open(kl_ordering *r, kl_block *b, unsigned barrier);
void kl_misuse_end(kl_ordering *r, kl_order_block *ob, const kl_block *b);
void kl_misuse_meet(kl_ordering *r, const kl_party *p);
void kl_misuse_collective(kl_ordering *r, kl_warp *w, const kl_sim_op *op);
void kl_misuse_cluster(kl_ordering *r, kl_order_warp *ow, kl_warp *w, const kl_sim_op *op, const kl_order_op *how,
                       bool arrives);
void kl_misuse_fault(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_fault *f);

// --- remote.c -----------------------------------------------------------------------------------------------------

// Lanes access memory, which may be shared memory of other blocks.
void kl_remote_access(kl_ordering *r, kl_order_block *ob, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m,
                      const kl_places *p, uint32_t site);
// The block is over; `failed`: the launch is.
void kl_remote_end(kl_ordering *r, kl_order_block *host, bool failed);

// --- found.c ------------------------------------------------------------------------------------------------------

// Without the calls that lead there.
kl_found_at kl_found_thread(const kl_ordering *r, uint64_t block, uint32_t rank, unsigned lane, const kl_code *code,
                            const kl_sim_op *op);
void kl_found_race(kl_ordering *r, const kl_race *u);
// Was the pair found before? Then it is counted.
bool kl_found_again(kl_ordering *r, const kl_seen *x, const kl_seen *y);

#endif

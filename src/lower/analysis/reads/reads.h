// What an element of a result needs of an operand, op by op, and the reverse.
//
// A dependence is a map from the index of an element of one array to the indices of elements of another, in logical
// order (ir/index/map/map.h). Its dims are the element asked about, its range variables run over all elements it is
// made from, and its runtime variables are values that the program computes: where a slice begins, say. Several
// dependences on one operand stand for their union. Reading counts as the op's definition in HLO reads, whatever the
// values turn out to be: both branches of a select, both factors of a product by zero.
//
// Total: every op of the op table has an answer for every operand. Where the set depends on data in a way that no map
// says, the dependence holds more than it (`exact` is false, and `why` tells); where nothing is known, its map is
// undefined, with the reason.
#ifndef KL_READS_H
#define KL_READS_H

#include "ir/hlo.h"
#include "ir/index/map/map.h"

// What a runtime variable stands for: kl_producer.payload. The element `producer.index` of a result leaf of an
// instruction, read as an integer (values of u64 beyond int64 count as its highest); held to [lo, hi] where `clamped`.
typedef struct kl_runtime {
  uint32_t frame; // where the instruction stands: kl_reader.frames
  uint32_t instr, leaf;
  bool clamped;
  int64_t lo, hi;
} kl_runtime;

typedef struct kl_dependence {
  uint32_t operand, leaf; // leaf: of the operand's shape, depth first
  const kl_map *map;
  bool exact;      // false: the map may hold elements that are not needed, never fewer than are
  bool remote;     // the elements are those of other devices' arrays, or of one among several devices'
  const char *why; // not exact, remote or undefined
} kl_dependence;

typedef struct kl_dependences {
  uint32_t n;
  const kl_dependence *p;
} kl_dependences;

// A computation as it is called: frame 0 is what is analysed, others are calls in it.
typedef struct kl_frame {
  const kl_comp *comp;
  uint32_t parent, caller; // frame, and instruction in it, that calls
  uint32_t first_operand;  // of the caller: what parameter 0 is
  // Parameters are scalars: elements of the caller's operands at `index`, or what only the frame's maker knows (NULL).
  bool scalars;
  uint32_t rank;
  const kl_aff *const *index;
  const bool *carried; // by leaf of parameter 0, in rounds of a loop: it is not the caller's operand; NULL: all are
} kl_frame;

// What one element needs of an operand, in the variables that its own index is given in. Range and runtime variables
// are counted from 0, to KL_NEED_VARS at most; the index must not use such variables of its own below that.
enum { KL_NEED_VARS = 2 * KILN_MAX_RANK };
typedef struct kl_need {
  uint32_t operand, leaf;
  uint32_t nindex, nranges, nrts, nconstraints;
  const kl_aff *const *index; // of the operand's element
  const kl_map_var *ranges, *rts;
  const kl_constraint *constraints; // needed where these hold
  bool known;                       // false: what is needed is not
  bool exact, remote;
  bool places;     // for nothing but the values of runtime variables
  const char *why; // as of a dependence
} kl_need;

typedef struct kl_needs {
  uint32_t n;
  const kl_need *p;
} kl_needs;

// Where rules look: expressions and results live in the pool's arena. A runtime variable's identity is interned, so
// that two of one element with one clamp are the same; parameters of calls stand for the caller's operands.
typedef struct kl_reader {
  kl_affs *affs;
  const kiln_module *m;
  const kl_frame *frames;
  uint32_t frame; // looked at
  struct kl_runtimes *runtimes;
} kl_reader;

struct kl_runtimes *kl_runtimes_create(kl_ctx *cx, kl_arena *arena);
void kl_runtimes_destroy(struct kl_runtimes **r);

// What the element `index` of result leaf `leaf` of an instruction needs of its operands, in the order of operands: the
// rules themselves. Nothing is simplified; all of it lives in the pool's arena.
kl_needs kl_needs_of(const kl_reader *r, uint32_t instr, uint32_t leaf, const kl_aff *const *index);
// Of a concatenate and one operand, which is known to begin at `offset`: takes time by rank, not by operands.
kl_need kl_need_of_concatenate(const kl_reader *r, uint32_t instr, uint32_t operand, int64_t offset,
                               const kl_aff *const *index);

// What an element of result leaf `leaf` of an instruction needs of its operands, ordered by operand. Calls (fusion,
// call) and tuple plumbing are followed by analyses of whole computations; here a call's operands are undefined.
kl_dependences kl_reads(const kl_reader *r, uint32_t instr, uint32_t leaf);
// The converse of what kl_reads says: the result's elements that an element of d's operand goes into. Exact where d is.
// A formula, where one is found within the quota (kl_map_invert); else all of the result, under the constraint that it
// reads the element.
kl_dependence kl_converse(const kl_reader *r, uint32_t instr, const kl_dependence *d, uint32_t quota);
// The converses of all dependences of result leaf `leaf` on an operand's leaf.
kl_dependences kl_feeds(const kl_reader *r, uint32_t instr, uint32_t operand, uint32_t operand_leaf, uint32_t leaf);

// The map with places in memory for indices: `from` is what the dims index, `to` what the results do; NULL: stays
// logical. A place is the digits of the shape's layout, slowest first (ir/index/layout/layout.h): without tiles, the
// dims in the order of memory. A map from places has no point where there is padding. Undefined for shapes without a
// physical layout.
const kl_map *kl_in_memory(kl_affs *p, const kl_map *m, const kl_shape *from, const kl_shape *to);

#endif

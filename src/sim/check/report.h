// What checks found in a launch: each thing once, with how often it was seen and where first.
#ifndef KL_CHECK_REPORT_H
#define KL_CHECK_REPORT_H

#include "sim/machine/machine.h"

typedef enum kl_found_kind {
  KL_FOUND_FAULT,  // what ended the launch, as kl_fault says
  KL_FOUND_BEYOND, // an access beyond the variable that its address comes from
  KL_FOUND_UNDEFINED_ADDRESS,
  KL_FOUND_UNDEFINED_BRANCH,
  KL_FOUND_UNDEFINED_OUTPUT, // a value stored where the host will read it
  KL_FOUND_NOT_WRITTEN,      // bytes of an output
  KL_FOUND_RACE,             // two accesses, one of them a write, that nothing orders
  KL_FOUND_ABSENT,           // shared memory of a block of the cluster that may not be there
  KL_FOUND_DIVERGENCE,       // threads of a warp, or of a block, that are not together where they must be
  KL_FOUND_COUNT,            // a barrier's number of threads is not what the block has
  KL_FOUND_INACTIVE,         // a value is taken from a lane that does not take part
  KL_FOUND_KINDS,
} kl_found_kind;

// An instruction in a thread. func NULL: nowhere.
typedef struct kl_found_at {
  const kl_ptx_func *func;
  const kl_ptx_instr *instr; // NULL: the end of the function
  uint32_t block[3], thread[3];
  kl_calls calls; // that lead to func, where they are known
} kl_found_at;

// Where bits without a value come from, or an address.
typedef enum kl_origin_kind {
  KL_ORIGIN_NONE,     // not known
  KL_ORIGIN_REGISTER, // an instruction reads a register that nothing has set
  KL_ORIGIN_MEMORY,   // one loads from memory what has no value
  KL_ORIGIN_VARIABLE, // the address of spot.piece
  KL_ORIGIN_LANE,     // one takes it from a lane that takes no part
  KL_ORIGIN_COPY,     // one copies it, and it has not arrived
} kl_origin_kind;
typedef struct kl_origin {
  uint8_t kind; // kl_origin_kind
  const kl_ptx_func *func;
  const kl_ptx_instr *instr;
  uint32_t reg; // of the function, + 1; 0: one that has no name
  kl_spot spot; // of memory; bytes 0: of many places
} kl_origin;

typedef struct kl_found {
  kl_found_kind kind;
  kl_fault_kind fault;
  kl_found_at at, other;   // other: the earlier one of two accesses, or the lanes elsewhere
  const kl_kernel *kernel; // that was launched, or NULL; set when it is added
  kl_spot spot;            // what is accessed; bytes 0: nothing
  uint64_t value, unknown; // what is there, or the address, or how many threads; and its bits without a value
  uint8_t value_bytes;     // 0: not known
  kl_origin origin;        // of bits without a value
  const char *detail;      // static, or NULL: more in a few words
  uint64_t times;          // 0 counts as 1
} kl_found;

typedef struct kl_report {
  const kl_kernel *kernel; // whose launch findings are from now on, or NULL: names of source files are not told
  VEC(kl_found) found;     // in the order in which they were first seen
  uint64_t lost;           // kinds of finding beyond the most that are kept
} kl_report;

// Same kind, same instructions: the first stays, `times` grows.
void kl_report_add(kl_ctx *cx, kl_report *r, const kl_found *f);
void kl_report_free(kl_ctx *cx, kl_report *r);
const char *kl_found_text(kl_found_kind kind); // in a few words
// Appends a finding as one line without its place in the PTX text: what, function, block, thread, line of the source,
// address and what lies there, value, calls, the other access's line and thread, how often.
void kl_report_put(kl_sb *b, const kl_found *f);
// Appends where bits without a value come from: "%r9, which line 12 reads before anything sets it".
void kl_origin_put(kl_sb *b, const kl_found *f);

#endif

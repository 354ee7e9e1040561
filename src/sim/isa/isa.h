// The table of PTX instructions: a row for each form, which says how it is written, what its operands are, how it is
// executed and where the PTX ISA describes it. Decoder, choice of executor and documentation read nothing else.
//
// A pattern is an opcode and its modifiers, as the PTX ISA orders them: `{.a|.b}` one of these or none, `(.a|.b)` one
// of these, the first that fits (so `.a.b` stands before `.a`). The first row that matches counts, so a row for what is
// common may stand before one for all. Instructions may have their modifiers in other orders: see match.h.
//
// Operands: a letter each, destinations before `=`:
//   h w l q   a register or constant of 16, 32, 64, 128 bits
//   H W L     a source register that may be wider, of which the low bits are taken; a destination that may be wider,
//             which is extended (by sign where the type is signed)
//   B         as H, of 8 bits, kept in 16
//   v         a register of 32 bits, which may have a selector of its bytes or halves: kl_sim_op.imm, as op.h says
//   p         a predicate; as a source also negated, which the flag KL_NOT_C says
//   P         a predicate, or two `p|q`
//   w|p       a destination of 32 bits, which may be `_`, then a predicate
//   i         an integer constant, which goes to kl_sim_op.imm and takes no place
//   ?         what follows may be missing
//   2w 4h     that many in braces
// Letters of other rooms (addresses, labels, functions) are described where their rows stand.
#ifndef KL_ISA_H
#define KL_ISA_H

#include "sim/isa/op.h"

// What of a machine executes it: counters and the roofline go by it.
typedef enum kl_unit {
  KL_UNIT_INTEGER,  // additions, shifts, logic, comparisons, selection, moves of registers
  KL_UNIT_MULTIPLY, // integer products and divisions
  KL_UNIT_FLOAT,    // f32
  KL_UNIT_DOUBLE,
  KL_UNIT_HALF, // f16, bf16 and their pairs
  KL_UNIT_CONVERT,
  KL_UNIT_SPECIAL, // ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh
  KL_UNIT_MEMORY,
  KL_UNIT_ATOMIC,
  KL_UNIT_CONTROL, // branches, calls
  KL_UNIT_SYNC,    // barriers, fences
  KL_UNIT_WARP,    // shuffles, votes
} kl_unit;

// How bits that are not initialised spread from sources to destinations.
typedef enum kl_spread {
  KL_SPREAD_EACH,  // each bit of the result depends on the same bit of the sources: and, or, xor, not
  KL_SPREAD_UP,    // on these and lower ones: add, sub, mul
  KL_SPREAD_ALL,   // every bit on every bit of the sources: comparisons, floats, divisions
  KL_SPREAD_PAIRS, // as ALL within each half of 16 bits: f16x2
  KL_SPREAD_SHIFT, // as the values of a moved by b, and all where b is not known
  KL_SPREAD_OWN,   // as the executor's own room says
} kl_spread;

typedef enum kl_grade {
  KL_EXACT,    // as the PTX ISA says, bit by bit
  KL_MODELLED, // the correctly rounded result, where the ISA allows an error
} kl_grade;

typedef struct kl_form {
  const char *pattern, *operands, *section;
  uint8_t unit, spread, grade; // kl_unit, kl_spread, kl_grade
} kl_form;

#endif

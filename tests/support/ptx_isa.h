// PTX instructions in C, as the PTX ISA manual has them: section 9.7.1 (integer), 9.7.3 (floating point), 9.7.4 (half
// precision), 9.7.9 (cvt). Written from that text alone; it knows nothing of what emits them.
//
// Where the manual leaves a result open, the choice is one that shows who counts on another: every NaN that arithmetic
// or a conversion makes is the canonical one, whatever NaN went in, and an approximation is some value within its
// documented error, picked by the input.
#ifndef KL_TEST_PTX_ISA_H
#define KL_TEST_PTX_ISA_H

#include <stdbool.h>
#include <stdint.h>

// One instruction. Operands and result are registers of 64 bits, of which an instruction takes and gives its type's.
typedef uint64_t (*ptx_fn)(uint64_t a, uint64_t b, uint64_t c);

// By mnemonic, such as "cvt.rzi.s32.f64"; NULL if there is none of that name.
ptx_fn ptx_instruction(const char *mnemonic);

// --- approximations: every f32 value that the documented error allows
// ---------------------------------------------------

typedef enum ptx_approx { PTX_EX2, PTX_RCP, PTX_RSQRT, PTX_SQRT, PTX_LG2 } ptx_approx;
enum { PTX_PICKS = 12 };

// The pick-th such value of ex2, rcp, rsqrt, sqrt or lg2 .approx.ftz.f32: the first half of the picks counts upwards
// from the least, the second half downwards from the greatest, so that all of them are all values, but of lg2 near 1.
float ptx_approx_value(ptx_approx kind, float x, unsigned pick);

#endif

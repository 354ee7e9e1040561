// A decoded instruction, and what one sees of the warp that executes it.
//
// A register is an array of 32 values, one of each lane, in its own width: 16, 32, 64 or 128 bits (those of 8 bits take
// 16). A predicate is one word, a bit for each lane. Constants and special registers are such arrays too, so that an
// operand is a place and nothing more.
#ifndef KL_SIM_OP_H
#define KL_SIM_OP_H

#include "base/base.h"

enum { KL_LANES = 32 };
#define KL_ALL_LANES 0xffffffffu

// Where an operand lies: which of the bases, in the low two bits, and the offset in bytes, a multiple of 4.
typedef uint32_t kl_ref;
enum { KL_IN_REGISTERS, KL_IN_CONSTANTS, KL_IN_SPECIAL };

// Modifiers that change what an executor does, in kl_sim_op.flags.
enum {
  KL_ROUND = 3, // the bits of the direction; nearest even is 0
  KL_RN = 0,
  KL_RZ = 1,
  KL_RM = 2,
  KL_RP = 3,
  KL_FTZ = 1 << 2,
  KL_SAT = 1 << 3,
  KL_NAN = 1 << 4,
  KL_XORSIGN_ABS = 1 << 5,
  KL_RELU = 1 << 6,
  KL_SATFINITE = 1 << 7,
  KL_ABS = 1 << 8,
  KL_COMPARE = 15 << 9,  // kl_compare of set and setp
  KL_COMBINE = 3 << 13,  // with the predicate c of set and setp: 0 none, then and, or, xor
  KL_NOT_C = 1 << 15,    // that predicate is negated
  KL_WRAP = 1 << 16,     // .wrap of shf
  KL_AWAY = 1 << 17,     // .rna: to nearest, ties away from zero
  KL_SHIFTAMT = 1 << 18, // .shiftamt of bfind
  KL_OOB = 1 << 19,      // .oob of fma
};
// Selectors of video instructions, in kl_sim_op.imm; 0: none is written. Of scalar ones four bits each for a, b and d:
// the word, .b0 to .b3, .h0, .h1; then whether the product and c are negated. Of SIMD ones four bits for each element
// of a, then of b: which of both operands' elements it is, exclusive or its own number (in b behind those of a); then
// the elements of d that are left as c has them.
enum { KL_PART_A = 0, KL_PART_B = 4, KL_PART_D = 8, KL_MINUS_PRODUCT = 1 << 12, KL_MINUS_C = 1 << 13 };
enum { KL_PART_WORD, KL_PART_B0, KL_PART_H0 = 5 };
enum { KL_SIMD_A = 0, KL_SIMD_B = 16, KL_SIMD_KEPT = 32 };
enum { KL_AND = 1, KL_OR, KL_XOR }; // of KL_COMBINE
enum {
  KL_CMP_EQ,
  KL_CMP_NE,
  KL_CMP_LT,
  KL_CMP_LE,
  KL_CMP_GT,
  KL_CMP_GE,
  KL_CMP_EQU, // from here on true if an operand is NaN
  KL_CMP_NEU,
  KL_CMP_LTU,
  KL_CMP_LEU,
  KL_CMP_GTU,
  KL_CMP_GEU,
  KL_CMP_NUM,   // neither is NaN
  KL_CMP_ISNAN, // one is
};
#define KL_COMPARE_OF(flags) (((flags)&KL_COMPARE) >> 9)
#define KL_COMBINE_OF(flags) (((flags)&KL_COMBINE) >> 13)

typedef struct kl_lanes kl_lanes;
typedef struct kl_sim_op kl_sim_op;
// Executes an instruction in the lanes of x->mask, which is not 0; other lanes of what it writes keep their values.
typedef void kl_run(kl_lanes *x, const kl_sim_op *o);

struct kl_sim_op {
  kl_run *run;
  kl_ref d, e;       // destinations; e the second one (p|q), KL_NO_REF where there is none
  kl_ref a, b, c, f; // sources; a fifth one takes e
  uint32_t flags;
  uint32_t index : 31; // of the instruction in its function
  uint32_t told : 1;   // more than registers or bytes of its own lanes may change: observers are told of it
  uint64_t imm;        // or a pointer to what an executor wants more
};
#define KL_NO_REF (~(kl_ref)3) // a destination `_` or none

struct kl_lanes {
  char *base[4];
  uint32_t mask;  // lanes that execute
  uint32_t carry; // CC.CF of every lane
  // 0, or a seed: approximations give some value within their documented bound (isa/special.h) instead of the nearest
  // one, always the same for the same seed and operands.
  uint64_t perturb;
  // All ones in the lanes that execute, else 0.
  _Alignas(64) uint16_t on16[KL_LANES];
  _Alignas(64) uint32_t on32[KL_LANES];
  _Alignas(64) uint64_t on64[KL_LANES];
};

// The array that holds an operand, for lanes `x`.
#define AT(T, ref) ((T *)__builtin_assume_aligned(x->base[(ref)&3] + ((ref) & ~(kl_ref)3), _Alignof(T)))

#endif

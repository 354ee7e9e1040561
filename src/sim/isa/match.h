// From the text of an instruction to its row in the table.
#ifndef KL_ISA_MATCH_H
#define KL_ISA_MATCH_H

#include "sim/isa/isa.h"
#include "sim/ptx/ptx.h"

// Rows by topic. The first topics are those of lanes/lanes.h, whose executors a set of lanes has; the others are the
// machine's.
typedef struct kl_topic {
  const char *name;
  const kl_form *rows;
  size_t n;
} kl_topic;
extern const kl_topic kl_topics[];
extern const size_t kl_ntopics;

// What is refused, and what it belongs to (refused.h).
typedef struct kl_refusal {
  const char *name, *part_of, *section;
} kl_refusal;
extern const kl_refusal kl_refusals[];
extern const size_t kl_nrefusals;

typedef struct kl_match {
  const kl_form *form; // NULL: none matches
  uint32_t topic, row;
  uint32_t flags; // of kl_sim_op, from the modifiers
  // Where form is NULL: other forms of this name exist; the instruction is known and refused.
  bool known_opcode;
  const kl_refusal *refused;
} kl_match;

// Rows by the names of instructions, and what was found for them before: an instruction's text is looked up once. Made
// for a module's decoding, by one thread; instructions given to it must outlive it.
typedef struct kl_isa_index kl_isa_index;
kl_isa_index *kl_isa_index_new(kl_ctx *cx);
void kl_isa_index_free(kl_isa_index *x);

// The first row that the instruction's opcode and modifiers match, of those that take as many operands; or that they
// match, if none does.
//
// Modifiers may stand in any order, as ptxas reads them, but for two things: types keep theirs, which is that of the
// operands, and what belongs to the name (mul.lo, cp.async) stands behind the opcode.
kl_match kl_isa_match(kl_isa_index *x, const kl_ptx_instr *i);

// A letter of a row's operands (isa.h).
typedef struct kl_isa_letter {
  unsigned bits, count;
  bool wider, optional, pair, constant, selected;
  bool second; // a predicate follows behind a bar
} kl_isa_letter;
// Takes the next one; false at '=' or the end.
bool kl_isa_next_letter(const char **p, kl_isa_letter *out);

// Has the instruction this modifier?
bool kl_isa_has(const kl_ptx_instr *i, const char *mod);

// What a modifier says that is a type.
typedef struct kl_isa_type {
  uint8_t bits; // 1 for pred; 0: no type
  char kind;    // 'b', 'u', 's', 'f' (also bf16 and packed ones), 'p'
} kl_isa_type;
// The n-th modifier that is a type, from 0; bits 0 if there is none.
kl_isa_type kl_isa_type_at(const kl_ptx_instr *i, unsigned n);

#endif

// What the tests of lanes share: every mnemonic that the table's patterns spell, and running one over a warp.
#ifndef TESTS_SIM_LANES_WARP_H
#define TESTS_SIM_LANES_WARP_H

#include "sim/isa/isa.h"
#include "sim/lanes/lanes.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_SOURCES = 5, MOST_RESULTS = 4 };

// A row of the table. What is glue has no pattern; its executor's name stands for one.
typedef struct lane_form {
  const char *executor, *pattern, *operands, *section, *topic;
  kl_grade grade;
} lane_form;
extern const lane_form lane_forms[];
extern const size_t lane_form_count;

kl_run *lane_executor(const kl_lane_set *set, const lane_form *f);

// An instruction: a row and the modifiers chosen.
typedef struct instruction {
  const lane_form *form;
  char mnemonic[96];
  uint32_t flags;
  // Widths in bits of results and sources in their order; 1 is a predicate, 0 an integer constant; 8 is kept in 16.
  int results, sources;
  int result_bits[MOST_RESULTS], source_bits[MOST_SOURCES];
} instruction;

// Writes the k-th spelling of a pattern; false if there are fewer.
bool spell(const char *pattern, size_t k, char *out, size_t n);
size_t spellings(const char *pattern);
// The k-th instruction of a row; false if there are fewer.
bool instruction_at(const lane_form *f, size_t k, instruction *i);
// Writes a line of PTX: `mnemonic`, with operands as the row's letters say, of registers %p %b %h %w %l and their
// number. How many operands there are.
uint32_t put_operands(FILE *f, const instruction *i, const char *mnemonic);
// By mnemonic, as a decoder finds it: the first row that spells it, with as many operands. Aborts if there is none.
instruction instruction_find(const char *mnemonic, int sources);
// Whether the mnemonic has the modifier, such as ".ftz".
bool has(const instruction *i, const char *modifier);
// Its opcode is this.
bool is(const instruction *i, const char *opcode);

typedef unsigned __int128 value; // of one lane
typedef struct warp {
  value source[MOST_SOURCES][KL_LANES], result[MOST_RESULTS][KL_LANES];
  uint32_t mask, carry;
  uint64_t constant;
  uint32_t not_c;
  uint64_t perturb;
  int alias; // the source whose register the first result shares; -1: none
} warp;

// Executes it: results of lanes that execute change, others are checked to be what they were, and so is all memory
// around. Predicates are values 0 or 1.
void warp_run(const kl_lane_set *set, const instruction *i, warp *w);

uint64_t random_next(uint64_t *state);
// The j-th of the values that tests of a width always try, of integers and floats of all kinds; *n of them.
uint64_t edge(int bits, size_t j);
size_t edge_count(int bits);
// A random value of the width: one of those, or random bits, or a float of a usual size.
uint64_t draw_value(uint64_t *state, int bits);

// Runs an instruction over `batches` warps of drawn operands (times the share, support/share.h) in every set, checks
// each lane against the model, and that nothing else changes. The model gives results for one lane, in the order of the
// places; *carry is CC.CF. What is a constant comes as the last source.
typedef void model_fn(const instruction *i, const value *source, value *result, uint32_t *carry);
void against_model(const instruction *i, model_fn *model, int batches);
// The same with sources of the caller's: `draw` changes those that were drawn, of the warps by number.
typedef void draw_fn(uint64_t *state, const instruction *i, uint64_t batch, warp *w);
void against_model_of(const instruction *i, model_fn *model, int batches, draw_fn *draw);
// All instructions of a topic that `wanted` (or NULL) accepts; their number.
size_t topic_against_model(const char *topic, bool (*wanted)(const instruction *), model_fn *model, int batches);
// The same over the patterns of the first source, which has 8 or 16 bits or is a pair of 16; the others are drawn. Of
// 16 bits one in `every` is tried by default, all by a share of as many.
size_t topic_over_all_operands(const char *topic, bool (*wanted)(const instruction *), model_fn *model, unsigned every);

#endif

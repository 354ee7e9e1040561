// What every element of a module is made from, element by element: HLO's definition of each op in plain loops. Knows
// nothing of maps; judges them.
#ifndef TESTS_READS_MODEL_H
#define TESTS_READS_MODEL_H

#include "lower/analysis/reads/reach.h"
#include "support/suite.h"

// The element `at`, in row-major order, of leaf `leaf` of an operand.
typedef struct model_edge {
  uint32_t operand, leaf;
  int64_t at;
} model_edge;

// One leaf of one instruction as it stands in one frame; its elements are nodes first, first + 1, ...
typedef struct model_value {
  uint32_t frame, instr, leaf;
  const kl_shape *shape;
  int64_t first, count;
} model_value;

// Frames are all calls that a computation makes, whether or not anything of them is used. Nodes are in topological
// order: an element is made from earlier ones.
typedef struct model {
  const kiln_module *m;
  uint64_t seed; // of the contents of parameters
  uint32_t nframes, most_frames;
  kl_frame *frames;
  uint32_t **value; // by frame and instruction: number of its first leaf's value
  uint32_t nvalues, most_values;
  model_value *values;
  int64_t nnodes, nedges, most_nodes, most_edges;
  uint32_t *owner; // by node: its value
  int64_t *begin;  // by node: its first edge; they end where the next node's begin
  model_edge *edges;
} model;

// Elements beyond `most` in all: false.
bool model_make(model *s, const kiln_module *m, const kl_comp *c, uint64_t seed, int64_t most);
void model_free(model *s);

const model_value *model_find(const model *s, uint32_t frame, uint32_t instr, uint32_t leaf);
// The node that an edge of a node leads to.
int64_t model_target(const model *s, int64_t node, const model_edge *e);
// The callee's frame of a call in a frame, or UINT32_MAX.
uint32_t model_callee(const model *s, uint32_t frame, uint32_t instr);
// An element as an integer: of parameters, constants, iota and what only moves them, what it is; of all else, anything.
int64_t model_integer(const model *s, int64_t node);

#endif

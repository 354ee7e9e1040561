// What the files of this folder share: one element looked at, and what is noted of it. Nobody else includes it.
#ifndef TESTS_READS_MODEL_LOOK_H
#define TESTS_READS_MODEL_LOOK_H

#include "model.h"

#include <string.h>

enum { RANK = KILN_MAX_RANK + 1 };

// --- arrays -------------------------------------------------------------------------------------------------------

static inline int64_t linear(const kl_shape *s, const int64_t *x) {
  int64_t at = 0;
  for (uint32_t d = 0; d < s->rank; d++) at = at * s->dims[d] + x[d];
  return at;
}

static inline int64_t elements(const kl_shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dims[d];
  return n;
}

// Begins at zeros; false where there is no index at all.
static inline bool first(uint32_t rank, const int64_t *dims, int64_t *x) {
  for (uint32_t d = 0; d < rank; d++) {
    x[d] = 0;
    if (dims[d] <= 0) return false;
  }
  return true;
}

static inline bool next(uint32_t rank, const int64_t *dims, int64_t *x) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++x[d] < dims[d]) return true;
    x[d] = 0;
  }
  return false;
}

static inline int find(kl_ints list, int64_t v) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == v) return (int)i;
  return -1;
}

static inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// --- one instruction looked at ------------------------------------------------------------------------------------

typedef struct look {
  model *s;
  uint32_t frame;
  const kl_comp *c;
  const kl_instr *in;
  uint32_t leaf;
  const kl_shape *out;
  const int64_t *x; // index of the element in `out`
} look;

static inline const kl_shape *shape_of(const look *k, uint32_t operand) {
  return kl_operand(k->c, k->in, operand)->shape;
}

static inline void edge(model *s, model_edge e) {
  if (s->nedges == s->most_edges) {
    s->most_edges = s->most_edges ? 2 * s->most_edges : 1024;
    s->edges = realloc(s->edges, (size_t)s->most_edges * sizeof *s->edges);
  }
  s->edges[s->nedges++] = e;
}

static inline void take(const look *k, uint32_t operand, uint32_t leaf, const int64_t *y) {
  const kl_shape *s = kl_shape_leaf(shape_of(k, operand), leaf);
  for (uint32_t d = 0; d < s->rank; d++)
    EXPECT(y[d] >= 0 && y[d] < s->dims[d], "the model reads outside of operand %u of %s", operand,
           kl_op_name(k->in->op));
  edge(k->s, (model_edge){operand, leaf, linear(s, y)});
}

static inline void take_same(const look *k, uint32_t operand) {
  take(k, operand, 0, k->x);
}

static inline void take_leaf(const look *k) {
  take(k, 0, k->leaf, k->x);
}

static inline void take_all(const look *k, uint32_t operand) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      take(k, operand, 0, y);
    while (next(s->rank, s->dims, y));
}

// An element of an operand as an integer.
static inline int64_t integer(const look *k, uint32_t operand, const int64_t *y) {
  const model_value *v = model_find(k->s, k->frame, k->in->operands[operand], 0);
  return model_integer(k->s, v->first + linear(v->shape, y));
}

static inline int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
  v = v > hi ? hi : v;
  return v < lo ? lo : v;
}

// Each takes what the element is made from, if the op is one of its file's; false if not.
bool look_move(const look *k);    // move.c
bool look_fold(const look *k);    // fold.c
bool look_window(const look *k);  // window.c
bool look_runtime(const look *k); // runtime.c
bool look_other(const look *k);   // other.c

#endif

// The rule of reductions in docs/numerics.md, word for word: every element by its number, every leaf and every node by
// a recursion of its own.
#ifndef EVAL_TREE_MODEL_H
#define EVAL_TREE_MODEL_H

#include "run.h"

typedef struct cell {
  double re, im; // floats, in the type that steps are rounded to
  uint64_t n;    // integers
} cell;

typedef cell join_cells(const void *how, cell lower, cell higher);

typedef struct tree_model {
  int64_t length, width, chain;
  const cell *elements; // by number
  join_cells *join;
  const void *how;
} tree_model;

static inline int64_t power_of_two_from(int64_t x) {
  int64_t p = 1;
  while (p < x) p *= 2;
  return p;
}

static inline void set_numbers(tree_model *m, bool row) {
  int64_t w = row ? 256 : 8, most = w * 4096, k = power_of_two_from((m->length + most - 1) / most);
  m->width = w;
  m->chain = row ? (k > 4 ? k : 4) : (k > 16 ? k : 16);
}

static inline bool leaf_is_there(const tree_model *m, int64_t n) {
  int64_t s = n / m->width, j = n % m->width;
  return s * m->chain * m->width + j < m->length;
}

static inline cell leaf_of(const tree_model *m, int64_t n) {
  int64_t s = n / m->width, j = n % m->width;
  cell c = m->elements[s * m->chain * m->width + j];
  for (int64_t k = 1; k < m->chain; k++) {
    int64_t r = (s * m->chain + k) * m->width + j;
    if (r < m->length) c = m->join(m->how, c, m->elements[r]);
  }
  return c;
}

// The node over 2^level leaves from number i * 2^level on, the first of which is there.
static inline cell node_of(const tree_model *m, int level, int64_t i) {
  if (level == 0) return leaf_of(m, i);
  cell left = node_of(m, level - 1, 2 * i);
  if (!leaf_is_there(m, (2 * i + 1) << (level - 1))) return left;
  return m->join(m->how, left, node_of(m, level - 1, 2 * i + 1));
}

static inline cell reduce_model(const tree_model *m, cell init) {
  int level = 0;
  if (m->length == 0) return init;
  while (leaf_is_there(m, 1ll << level)) level++;
  return m->join(m->how, init, node_of(m, level, 0));
}

// --- which element has which number ---------------------------------------------------------------------------------

// An operand, its layout (NULL: the default) and the dimensions that are reduced.
typedef struct model_shape {
  uint32_t rank;
  const int64_t *dims, *minor_to_major;
  unsigned mask;
} model_shape;

static inline int64_t dim_in_memory(const model_shape *s, uint32_t from_fastest) {
  return s->minor_to_major ? s->minor_to_major[from_fastest] : (int64_t)s->rank - 1 - from_fastest;
}

static inline bool is_row(const model_shape *s) {
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t d = dim_in_memory(s, i);
    if (s->dims[d] > 1) return s->mask >> d & 1;
  }
  return false;
}

static inline int64_t model_length(const model_shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->mask >> d & 1) n *= s->dims[d];
  return n;
}

// The row-major place, in the whole operand, of element r of result i.
static inline int64_t place_of(const model_shape *s, int64_t i, int64_t r) {
  int64_t index[8];
  for (uint32_t d = s->rank; d-- > 0;)
    if (!(s->mask >> d & 1)) {
      index[d] = i % s->dims[d];
      i /= s->dims[d];
    }
  for (uint32_t k = 0; k < s->rank; k++) {
    int64_t d = dim_in_memory(s, k);
    if (!(s->mask >> d & 1)) continue;
    index[d] = r % s->dims[d];
    r /= s->dims[d];
  }
  return linear(s->rank, s->dims, index);
}

// --- sums and products ----------------------------------------------------------------------------------------------

// `wide`: each step is f32's, rounded to `t` then (a reducer that converts); else it is t's.
typedef struct arithmetic {
  kl_dtype t;
  bool product, wide;
} arithmetic;

static inline double one_step(const arithmetic *a, double x, double y, bool product) {
  kl_dtype t = part_of(a->t);
  if (t == KILN_F64) return product ? x * y : x + y;
  float f = product ? (float)x * (float)y : (float)x + (float)y;
  return a->wide ? round_to(t, (double)f) : t == KILN_F32 ? f : round_to(t, product ? x * y : x + y);
}

static inline cell do_arithmetic(const void *how, cell x, cell y) {
  const arithmetic *a = how;
  if (!kl_is_float(part_of(a->t))) return (cell){.n = (a->product ? x.n * y.n : x.n + y.n) & kl_int_mask(a->t)};
  if (!kl_is_complex(a->t)) return (cell){.re = one_step(a, x.re, y.re, a->product)};
  if (!a->product) return (cell){one_step(a, x.re, y.re, false), one_step(a, x.im, y.im, false), 0};
  double ac = one_step(a, x.re, y.re, true), bd = one_step(a, x.im, y.im, true);
  double ad = one_step(a, x.re, y.im, true), bc = one_step(a, x.im, y.re, true);
  return (cell){one_step(a, ac, -bd, false), one_step(a, ad, bc, false), 0};
}

static inline cell cell_of(const array *a, int64_t i) {
  if (!kl_is_float(part_of(a->t))) return (cell){.n = get(a, i, 0)};
  return (cell){value(a, i, 0), kl_is_complex(a->t) ? value(a, i, 1) : 0, 0};
}

// Bits of result i of a reduction that adds or multiplies.
static inline void sum_model(const model_shape *s, const array *a, const array *init, arithmetic how, int64_t i,
                             uint64_t bits[2]) {
  kl_dtype t = a->t, p = part_of(t);
  tree_model m = {.length = model_length(s), .join = do_arithmetic, .how = &how};
  cell *elements = calloc((size_t)m.length + 1, sizeof *elements);
  for (int64_t r = 0; r < m.length; r++) elements[r] = cell_of(a, place_of(s, i, r));
  if (kl_is_float(t) && kl_info(t)->bits <= 16 && !how.wide) how.t = KILN_F32;
  m.elements = elements;
  set_numbers(&m, is_row(s));
  cell c = reduce_model(&m, cell_of(init, 0));
  bits[0] = kl_is_float(p) ? kl_float_encode(p, c.re) : c.n;
  bits[1] = kl_is_complex(t) ? kl_float_encode(p, c.im) : 0;
  free(elements);
}

#endif

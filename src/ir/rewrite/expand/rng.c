// rng-bit-generator as integer arithmetic: Threefry2x32 with 20 rounds and Philox4x32 with 10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011), with XLA's counters.
//
// A generator is run once for each counter, on arrays of counters; its two or four words become neighbours along a
// dimension of their own, which is merged with the one before it. So a thread that makes neighbouring elements runs it
// once for all of them, and any number of elements is a slice.
#include "ir/rewrite/expand/room.h"

enum { MOST_WORDS = 4 };

typedef struct bits {
  kl_graph *g;
  const kl_shape *shape; // of the bits
  bool wide;             // 64 bits: two words make an element
  uint32_t state;        // u64[2] or u64[3]
} bits;

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_shape *state = kl_operand(c, in, 0)->shape, *s = in->shape;
  if (s->dtype != KILN_TUPLE || state->dtype != KILN_U64 || state->rank != 1 || s->elems[1]->dynamic) return false;
  kl_dtype t = s->elems[1]->dtype;
  bool three = state->dims[0] == 3 && in->more->rng != KL_RNG_THREE_FRY;
  return (state->dims[0] == 2 || three) && (kl_is_int(t) || kl_is_float(t)) && s->elems[1]->count >= 0;
}

// --- words ----------------------------------------------------------------------------------------------------------

static uint32_t add(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_ADD, a, b);
}
static uint32_t exclusive_or(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_XOR, a, b);
}

// A number in every place of an array; numbers that are as many already as they are.
static uint32_t spread(kl_graph *g, uint32_t number, uint32_t like) {
  const kl_shape *s = kl_graph_shape(g, like);
  return kl_graph_shape(g, number)->rank < s->rank ? kl_graph_broadcast(g, number, s->rank, s->dims, NULL) : number;
}
static uint32_t add_number(kl_graph *g, uint32_t a, uint32_t number) {
  return add(g, a, spread(g, number, a));
}

// Word k of the state: u64[].
static uint32_t state_word(const bits *b, int64_t k) {
  return kl_graph_reshape(b->g, kl_graph_slice(b->g, b->state, 0, k, k + 1, 1), 0, NULL);
}

// u64 to its halves, the low one first.
static void split(kl_graph *g, uint32_t a, uint32_t half[2]) {
  half[0] = kl_graph_convert(g, a, KILN_U32);
  half[1] = kl_graph_convert(g, kl_graph_with(g, KL_OP_SHR_LOGICAL, a, 32), KILN_U32);
}

// low and high halves to u64.
static uint32_t join(kl_graph *g, uint32_t low, uint32_t high) {
  uint32_t h = kl_graph_with(g, KL_OP_SHL, kl_graph_convert(g, high, KILN_U64), 32);
  return kl_graph_binary(g, KL_OP_OR, h, kl_graph_convert(g, low, KILN_U64));
}

// counter + n of 128 bits, low word first.
static void add_wide(kl_graph *g, uint32_t counter[2], uint32_t n) {
  uint32_t low = add(g, counter[0], n), carry = kl_graph_compare(g, KL_LT, low, n);
  counter[0] = low;
  counter[1] = add(g, counter[1], kl_graph_convert(g, carry, KILN_U64));
}

// --- generators -----------------------------------------------------------------------------------------------------

void kl_expand_three_fry(kl_graph *g, const uint32_t key[2], uint32_t x[2]) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t parity = kl_graph_with(g, KL_OP_XOR, exclusive_or(g, key[0], key[1]), 0x1bd11bda);
  const uint32_t ks[3] = {key[0], key[1], parity};
  x[0] = add_number(g, x[0], ks[0]);
  x[1] = add_number(g, x[1], ks[1]);
  for (uint32_t step = 1; step <= 5; step++) {
    for (int i = 0; i < 4; i++) {
      int by = rotations[(step + 1) & 1][i];
      x[0] = add(g, x[0], x[1]);
      uint32_t turned = kl_graph_binary(g, KL_OP_OR, kl_graph_with(g, KL_OP_SHL, x[1], by),
                                        kl_graph_with(g, KL_OP_SHR_LOGICAL, x[1], 32 - by));
      x[1] = exclusive_or(g, turned, x[0]);
    }
    x[0] = add_number(g, x[0], ks[step % 3]);
    x[1] = add_number(g, x[1], kl_graph_with(g, KL_OP_ADD, ks[(step + 1) % 3], step));
  }
}

// x: four arrays of words.
static void philox(kl_graph *g, const uint32_t key[2], uint32_t x[4]) {
  uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    uint32_t a[2], b[2];
    a[0] = kl_graph_with(g, KL_OP_MULTIPLY, x[0], 0xd2511f53);
    a[1] = kl_graph_with(g, KL_OP_MULHI, x[0], 0xd2511f53);
    b[0] = kl_graph_with(g, KL_OP_MULTIPLY, x[2], 0xcd9e8d57);
    b[1] = kl_graph_with(g, KL_OP_MULHI, x[2], 0xcd9e8d57);
    x[0] = exclusive_or(g, exclusive_or(g, b[1], x[1]), spread(g, k[0], x[1]));
    x[2] = exclusive_or(g, exclusive_or(g, a[1], x[3]), spread(g, k[1], x[3]));
    x[1] = b[0];
    x[3] = a[0];
    k[0] = kl_graph_with(g, KL_OP_ADD, k[0], 0x9e3779b9);
    k[1] = kl_graph_with(g, KL_OP_ADD, k[1], 0xbb67ae85);
  }
}

// --- elements -------------------------------------------------------------------------------------------------------

static kl_dtype unsigned_of(kl_dtype t) {
  switch (kl_info(t)->bits) {
  case 1: return KILN_U1;
  case 2: return KILN_U2;
  case 4: return KILN_U4;
  case 8: return KILN_U8;
  case 16: return KILN_U16;
  case 32: return KILN_U32;
  default: return KILN_U64;
  }
}

// The low bits of words as elements.
static uint32_t as_elements(const bits *b, uint32_t words) {
  kl_dtype t = b->shape->dtype;
  uint32_t u = kl_graph_convert(b->g, words, unsigned_of(t));
  return kl_graph_shape(b->g, u)->dtype == t ? u : kl_graph_bitcast(b->g, u, t);
}

// Arrays of words whose elements are neighbours along dimension `dim`, of which the first `size` are taken.
static uint32_t interleave(const bits *b, uint32_t n, const uint32_t *words, uint32_t dim, int64_t size) {
  kl_graph *g = b->g;
  const kl_shape *s = kl_graph_shape(g, words[0]);
  int64_t apart[KILN_MAX_RANK + 1] = {0}, merged[KILN_MAX_RANK] = {0};
  uint32_t part[MOST_WORDS];
  for (uint32_t d = 0; d < s->rank; d++) {
    merged[d] = s->dims[d] * (d == dim ? n : 1);
    apart[d > dim ? d + 1 : d] = s->dims[d];
  }
  apart[dim + 1] = 1;
  for (uint32_t k = 0; k < n; k++) part[k] = kl_graph_reshape(g, as_elements(b, words[k]), s->rank + 1, apart);
  uint32_t all = kl_graph_reshape(g, kl_graph_concatenate(g, n, part, dim + 1), s->rank, merged);
  return kl_graph_slice(g, all, dim, 0, size, 1);
}

static uint32_t in_shape(const bits *b, uint32_t flat) {
  return kl_graph_reshape(b->g, flat, b->shape->rank, b->shape->dims);
}

static int64_t groups_of(int64_t n, int64_t per) {
  return n / per + (n % per != 0);
}

// Counters of n blocks: u64[n].
static uint32_t numbers(const bits *b, int64_t n) {
  return kl_graph_iota(b->g, KILN_U64, 1, &n, 0);
}

// Element i takes word i mod 4 of counter + i / 4; of 64 bits it takes two.
static uint32_t write_philox(const bits *b, const uint32_t key[2], const uint32_t counter[2], uint64_t *used) {
  kl_graph *g = b->g;
  int64_t per = b->wide ? 2 : 4, n = groups_of(b->shape->count, per);
  uint32_t i = numbers(b, n), c[2] = {spread(g, counter[0], i), spread(g, counter[1], i)}, x[4];
  *used = (uint64_t)n;
  add_wide(g, c, i);
  split(g, c[0], x);
  split(g, c[1], x + 2);
  philox(g, key, x);
  if (b->wide) {
    x[0] = join(g, x[0], x[1]);
    x[1] = join(g, x[2], x[3]);
  }
  return in_shape(b, interleave(b, (uint32_t)per, x, 0, b->shape->count));
}

// The first even dimension, else the longest.
static uint32_t split_dimension(const kl_shape *s) {
  uint32_t best = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (s->dims[d] % 2 == 0) return d;
    if (s->dims[d] > s->dims[best]) best = d;
  }
  return best;
}

// 64 bits: element i takes counter + i. Fewer: one dimension is cut in two halves, rounded up; elements 2 j and 2 j + 1
// of it are the two words of the counter plus the linear index of j in the array so halved.
static uint32_t write_threefry(const bits *b, const uint32_t key[2], uint32_t counter, uint64_t *used) {
  kl_graph *g = b->g;
  const kl_shape *s = b->shape;
  uint32_t dim = split_dimension(s), x[2];
  int64_t size = s->rank ? s->dims[dim] : 1, half[3] = {1, groups_of(size, 2), 1}, n = s->count;
  for (uint32_t d = 0; d < s->rank; d++) half[d < dim ? 0 : 2] *= d == dim ? 1 : s->dims[d];
  if (!b->wide) n = half[0] * half[1] * half[2];
  *used = (uint64_t)n;
  split(g, add_number(g, numbers(b, n), counter), x);
  kl_expand_three_fry(g, key, x);
  if (b->wide) return in_shape(b, as_elements(b, join(g, x[0], x[1])));
  for (int k = 0; k < 2; k++) x[k] = kl_graph_reshape(g, x[k], 3, half);
  return in_shape(b, interleave(b, 2, x, 1, size));
}

// --- both -----------------------------------------------------------------------------------------------------------

// state = {key, counter ...}; where Philox's state has two words only, the key is also the counter's high word, whose
// carry is then lost.
static uint32_t write(const kl_expansion *x) {
  kl_graph *g = x->g;
  bits b = {g, x->in->shape->elems[1], kl_info(x->in->shape->elems[1]->dtype)->bits == 64, x->operands[0]};
  int64_t words = kl_graph_shape(g, b.state)->dims[0];
  uint32_t seed = state_word(&b, 0), key[2], counter[2] = {state_word(&b, 1), words == 3 ? state_word(&b, 2) : seed};
  uint64_t used;
  split(g, seed, key);
  uint32_t made = x->in->more->rng == KL_RNG_THREE_FRY ? write_threefry(&b, key, counter[0], &used)
                                                       : write_philox(&b, key, counter, &used);
  add_wide(g, counter, kl_graph_number(g, KILN_U64, (int64_t)used, 0, NULL));
  uint32_t next[3] = {seed, counter[0], counter[1]};
  for (int64_t k = 0; k < words; k++) next[k] = kl_graph_reshape(g, next[k], 1, (int64_t[]){1});
  return kl_graph_tuple(g, 2, (uint32_t[]){kl_graph_concatenate(g, (uint32_t)words, next, 0), made});
}

uint32_t kl_expand_words(kl_graph *g, const kl_shape *s, uint64_t key, const uint64_t counter[2]) {
  bits b = {g, s, kl_info(s->dtype)->bits == 64, 0};
  uint32_t keys[2], counters[2];
  uint64_t used;
  for (int k = 0; k < 2; k++) {
    keys[k] = kl_graph_number(g, KILN_U32, (int64_t)(key >> 32 * k & UINT32_MAX), 0, NULL);
    counters[k] = kl_graph_number(g, KILN_U64, (int64_t)counter[k], 0, NULL);
  }
  return write_philox(&b, keys, counters, &used);
}

const kl_expander kl_expand_rng = {takes, NULL, write};

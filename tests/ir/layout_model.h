// The definition of tiled layouts: arrays of element numbers that are padded, reshaped and transposed. And random
// shapes to judge by it.
#ifndef TESTS_LAYOUT_MODEL_H
#define TESTS_LAYOUT_MODEL_H

#include "ir/hlo.h"
#include "support/random.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

// --- the definition -----------------------------------------------------------------------------------------------

enum { PADDING = -1, MOST_CELLS = 1 << 16, MOST_DIMS = 32 };

// A row-major array of element numbers.
typedef struct cells {
  int rank;
  int64_t dims[MOST_DIMS];
  int64_t *p;
} cells;

static inline int64_t count_of(const cells *c) {
  int64_t n = 1;
  for (int d = 0; d < c->rank; d++) n *= c->dims[d];
  return n;
}

static inline int64_t linear_of(const cells *c, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < c->rank; d++) at = at * c->dims[d] + index[d];
  return at;
}

// The next index of an array of these dims in row-major order; false after the last.
static inline bool next_index(int rank, const int64_t *dims, int64_t *index) {
  for (int d = rank; d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

static inline void take(cells *c, const cells *from) {
  free(c->p);
  *c = *from;
}

static inline cells new_cells(int rank, const int64_t *dims) {
  cells c = {.rank = rank};
  memcpy(c.dims, dims, (size_t)rank * sizeof *dims);
  c.p = malloc((size_t)(count_of(&c) + 1) * sizeof *c.p);
  for (int64_t i = 0; i < count_of(&c); i++) c.p[i] = PADDING;
  return c;
}

// Result dimension d is the operand's dimension perm[d].
static inline void transpose(cells *c, const int *perm) {
  int64_t dims[MOST_DIMS], at[MOST_DIMS] = {0}, from[MOST_DIMS];
  for (int d = 0; d < c->rank; d++) dims[d] = c->dims[perm[d]];
  cells r = new_cells(c->rank, dims);
  for (bool more = count_of(&r) > 0; more; more = next_index(r.rank, r.dims, at)) {
    for (int d = 0; d < c->rank; d++) from[perm[d]] = at[d];
    r.p[linear_of(&r, at)] = c->p[linear_of(c, from)];
  }
  take(c, &r);
}

static inline void pad(cells *c, const int64_t *dims) {
  int64_t at[MOST_DIMS] = {0};
  cells r = new_cells(c->rank, dims);
  for (bool more = count_of(c) > 0; more; more = next_index(c->rank, c->dims, at))
    r.p[linear_of(&r, at)] = c->p[linear_of(c, at)];
  take(c, &r);
}

static inline void reshape(cells *c, int rank, const int64_t *dims) {
  int64_t before = count_of(c);
  c->rank = rank;
  memcpy(c->dims, dims, (size_t)rank * sizeof *dims);
  EXPECT(count_of(c) == before, "the model reshapes %ld elements to %ld", (long)before, (long)count_of(c));
}

static inline void reshape_for_tile(cells *c, const kl_tile *t, int64_t *tile, int *ntile) {
  int64_t dims[MOST_DIMS];
  int rank = 0, ones = (int)t->n > c->rank ? (int)t->n - c->rank : 0, first = c->rank + ones - (int)t->n;
  int64_t pending = 1;
  *ntile = 0;
  for (int d = 0; d < c->rank + ones; d++) {
    int64_t extent = d < ones ? 1 : c->dims[d - ones];
    bool joins = d >= first && t->dims[d - first] == KL_TILE_COMBINE;
    pending *= extent;
    if (joins) continue;
    if (d >= first) tile[(*ntile)++] = t->dims[d - first];
    dims[rank++] = pending;
    pending = 1;
  }
  reshape(c, rank, dims);
}

static inline void apply(cells *c, const kl_tile *t) {
  int64_t tile[MOST_DIMS], dims[MOST_DIMS];
  int n, perm[MOST_DIMS];
  reshape_for_tile(c, t, tile, &n);
  int first = c->rank - n;
  for (int d = 0; d < c->rank; d++)
    dims[d] = d < first ? c->dims[d] : (c->dims[d] + tile[d - first] - 1) / tile[d - first] * tile[d - first];
  pad(c, dims);
  for (int i = 0; i < n; i++) {
    dims[first + 2 * i] = c->dims[first + i] / tile[i];
    dims[first + 2 * i + 1] = tile[i];
    perm[first + i] = first + 2 * i;
    perm[first + n + i] = first + 2 * i + 1;
  }
  for (int d = 0; d < first; d++) perm[d] = d;
  reshape(c, first + 2 * n, dims);
  transpose(c, perm);
}

// What the positions hold: numbers of elements in row-major order, or PADDING.
static inline cells model_of(const kl_shape *s) {
  cells c = new_cells((int)s->rank, s->dims);
  int perm[MOST_DIMS];
  for (int64_t i = 0; i < count_of(&c); i++) c.p[i] = i;
  for (uint32_t d = 0; d < s->rank; d++) perm[d] = (int)kl_shape_minor_to_major(s, s->rank - 1 - d);
  transpose(&c, perm);
  for (uint32_t i = 0; i < s->layout.ntiles; i++) apply(&c, &s->layout.tiles[i]);
  int64_t n = count_of(&c), tail = s->layout.tail_padding;
  reshape(&c, 1, &n);
  if (n % tail) pad(&c, (int64_t[]){(n / tail + 1) * tail});
  return c;
}

// --- random shapes ------------------------------------------------------------------------------------------------

static inline int below(int n) {
  return (int)((random_bits() >> 20) % (unsigned)n);
}

static inline void put_order(char **at, int rank) {
  int order[8];
  for (int i = 0; i < rank; i++) {
    int k = below(i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  for (int i = 0; i < rank; i++) *at += sprintf(*at, "%s%d", i ? "," : "", order[i]);
}

static inline void put_tiles(char **at, int tiles, int most) {
  *at += sprintf(*at, "T");
  for (int k = 0; k < tiles; k++) {
    int n = 1 + below(most);
    *at += sprintf(*at, "(");
    for (int i = 0; i < n; i++)
      *at +=
          i + 1 < n && below(4) == 0 ? sprintf(*at, "*,") : sprintf(*at, "%d%s", 1 + below(4), i + 1 < n ? "," : ")");
  }
}

static inline void put_layout(char **at, int rank, int tiles) {
  *at += sprintf(*at, "{");
  put_order(at, rank);
  *at += sprintf(*at, ":");
  if (tiles) put_tiles(at, tiles, rank + 2);
  if (below(4) == 0) *at += sprintf(*at, "L(%d)", 1 + below(7));
  *at += sprintf(*at, "S(1)}");
}

static inline void random_shape(char *at, const char *type, int rank, int tiles) {
  at += sprintf(at, "%s[", type);
  for (int d = 0; d < rank; d++) {
    bool empty = below(40) == 0, dynamic = below(20) == 0;
    at += sprintf(at, "%s%s%d", d ? "," : "", dynamic ? "<=" : "", empty ? 0 : 1 + below(rank < 4 ? 7 : 4));
  }
  at += sprintf(at, "]");
  put_layout(&at, rank, tiles);
}

#endif

// The ways in which values of a computation are needed, before they are tiled. Only this room includes it.
#ifndef KL_TILES_WALK_H
#define KL_TILES_WALK_H

#include "lower/analysis/tiles/tiles.h"

enum { WALK_WHOLE = 1 << 16 }; // numbers of a value's own dims, behind those that it folds

// A map from points of some dims of the space. Without ranges.
typedef struct way {
  const kl_map *map;
  uint32_t ndims, region;
  const uint32_t *dims; // ascending
  bool exact, remote;
  const char *why;
} way;
typedef VEC(way) ways;

typedef struct place {
  ways *leaves; // by leaf of the instruction; NULL: not needed
  uint32_t n;
} place;

typedef struct walk_frame {
  place *at;       // by instruction
  uint32_t next;   // one more than the next instruction
  uint32_t callee; // the frame entered for the instruction looked at, or 0
} walk_frame;

typedef struct kept {
  uint32_t frame, instr, leaf;
  way way;
} kept;

typedef struct tile_walk {
  kl_ctx *cx;
  kl_affs *p;
  const kiln_module *m;
  kl_arena scratch;
  struct kl_runtimes *runtimes;
  uint64_t ninstr; // of all frames
  uint32_t nparallel, first_of_instr, first_region;
  VEC(kl_frame) frames;
  VEC(walk_frame) state;
  VEC(kl_tiling_dim) dims;
  VEC(kl_region) regions;
  VEC(kept) kept;      // users before what they use
  uint32_t *first_dim; // of result shapes
} tile_walk;

enum { NO_RESULT_SHAPE = UINT32_MAX };

// One of the shapes that results have. It has dims of its own, or goes along with another one.
typedef struct result_shape {
  uint32_t rank;
  int64_t sizes[KILN_MAX_RANK];
  uint32_t with;       // the shape that it goes along with
  const kl_map *along; // from some of that one's dims to its indices, one to one; NULL: dims of its own
  uint32_t ndims;
  const uint32_t *dims; // those, by number of the dimension
} result_shape;

typedef struct result_shapes {
  uint32_t n, nleaves;
  result_shape *p;
  uint32_t *of_leaf; // NO_RESULT_SHAPE: no array
} result_shapes;

// roots.c. In the pool's arena.
result_shapes walk_result_shapes(kl_affs *p, const kl_instr *root);
// Finds, once the walk is done, shapes that go along with others. False if none does.
bool walk_join_results(const tile_walk *w, result_shapes *r);

void walk_open(tile_walk *w, kl_affs *p, const kiln_module *m, const kl_comp *c);
void walk_close(tile_walk *w);
bool walk_same(const way *a, const way *b);

#endif

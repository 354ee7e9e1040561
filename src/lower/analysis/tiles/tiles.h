// Tiles: which elements of an array a tile of another one needs.
//
// A tile of a space takes, of every dimension, `size` consecutive points from a multiple of `size` on, as far as the
// dimension goes. A map takes it to a set of elements, which is told as a union of boxes: strided, masked, guarded.
// Expressions are over variables of three kinds: dim i is the number of the tile along dimension i, range i the tile's
// size there, and runtime variables are those of the map.
#ifndef KL_TILES_H
#define KL_TILES_H

#include "ir/index/map.h"

// Indices offset + k*stride for 0 <= k < size, of which those from `lower` on and below `upper` count.
typedef struct kl_tile_dim {
  const kl_aff *offset, *size, *stride;
  const kl_aff *lower, *upper; // NULL: nothing is cut off there
} kl_tile_dim;

typedef struct kl_tile_box {
  const kl_tile_dim *dims; // by result of the map
  uint32_t nguards;
  const kl_constraint *guards; // the box has elements only for tiles and runtime values that satisfy all
} kl_tile_box;

// One of these at least must hold of the tile sizes.
typedef struct kl_tile_clause {
  uint32_t n;
  const kl_constraint *any;
} kl_tile_clause;

typedef enum kl_tile_state {
  KL_TILE_EXACT,   // the boxes hold what is needed, no more and no less
  KL_TILE_COVERS,  // the boxes hold what is needed, and perhaps more; `why` tells
  KL_TILE_UNKNOWN, // `why` tells; no boxes
} kl_tile_state;

typedef struct kl_tile {
  kl_tile_state state;
  const char *why; // "" for exact ones
  uint32_t rank, nboxes, nclauses;
  const kl_tile_box *boxes;
  const kl_tile_clause *clauses; // all must hold, or the boxes say nothing; none where sizes are numbers
} kl_tile;

// How a map's dims are tiled.
typedef struct kl_tile_grid {
  uint32_t n;
  const int64_t *extents;     // points 0 .. extent-1; at least as far as the map's bounds of the dim
  const kl_aff *const *sizes; // constants of at least 1, or range variable i for dim i: any of 1 .. extent
} kl_tile_grid;

enum {
  KL_TILE_MOST_VARIABLES = 48, // dims and ranges of a map; with more, nothing is known
  KL_TILE_MOST_BOXES = 64,     // of a tile: where more would be needed, fewer cover it
  KL_TILE_MOST_POINTS = 16,    // points of a tile's dimension that are looked at one by one
};

// The tile of a map. The map's ranges are run through whole. `shape`: extents of the array that results index, or NULL:
// then results that together are the digits of one number are told apart from others less often.
void kl_tile_of_map(kl_affs *p, const kl_map *m, const kl_tile_grid *grid, const int64_t *shape, kl_tile *out);

// Do these sizes of the grid's dims satisfy all clauses?
bool kl_tile_clauses_hold(kl_affs *p, const kl_tile *t, const int64_t *sizes, uint32_t n);

#endif

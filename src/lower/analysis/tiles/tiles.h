// Tiles: which elements of an array a tile of another one needs.
//
// A tile of a space takes, of every dimension, `size` consecutive points from a multiple of `size` on, as far as the
// dimension goes. A map takes it to a set of elements, which is told as a union of boxes: strided, masked, guarded.
// Expressions are over variables of three kinds: dim i is the number of the tile along dimension i, range i the tile's
// size there, and runtime variables are those of the map.
#ifndef KL_TILES_H
#define KL_TILES_H

#include "lower/analysis/reads/reads.h"

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
  const char *why; // what the boxes would be wrong for
} kl_tile_clause;

typedef enum kl_tile_state {
  KL_TILE_EXACT,   // the boxes hold what is needed, no more and no less
  KL_TILE_COVERS,  // the boxes hold what is needed, and perhaps more; `why` tells
  KL_TILE_UNKNOWN, // `why` tells; no boxes
} kl_tile_state;

typedef struct kl_map_tile {
  kl_tile_state state;
  const char *why; // "" for exact ones
  uint32_t rank, nboxes, nclauses;
  const kl_tile_box *boxes;
  const kl_tile_clause *clauses; // all must hold, or the boxes say nothing; none where sizes are numbers
} kl_map_tile;

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
void kl_tile_of_map(kl_affs *p, const kl_map *m, const kl_tile_grid *grid, const int64_t *shape, kl_map_tile *out);

// Of what is covered only, dimensions that have more indices than the array become those of the array.
void kl_tile_clip(kl_affs *p, kl_map_tile *t, const int64_t *shape);

// Do these sizes of the grid's dims satisfy all clauses?
bool kl_tile_clauses_hold(kl_affs *p, const kl_map_tile *t, const int64_t *sizes, uint32_t n);

// --- computations ---------------------------------------------------------------------------------------------------

// A dimension that a computation is tiled over. Variables of this number stand for it: dim i is the number of its tile,
// range i the size.
typedef struct kl_tiling_dim {
  bool sequential; // folded by an instruction: a loop; else one of a result's
  int64_t extent;
  const kl_aff *size;    // a constant of at most the extent, or range variable i
  uint32_t frame, instr; // that folds, or the root
  uint32_t number;       // among its folded dimensions; the result's dimension
} kl_tiling_dim;

typedef enum kl_region_kind {
  KL_REGION_TOP,
  KL_REGION_LOOP,   // over sequential dims, once for each of their tiles
  KL_REGION_BRANCH, // of one operand of a concatenate, where its guards hold
} kl_region_kind;

// Where tiles are made. Region 0 is all of it, once for each tile of the parallel dims.
typedef struct kl_region {
  kl_region_kind kind;
  uint32_t parent;
  uint32_t frame, instr, operand; // loops: the instruction that folds; branches: the operand of the concatenate
} kl_region;

// An array leaf as it is needed in one way.
typedef struct kl_tiled {
  uint32_t frame, instr, leaf;
  uint32_t region;
  const kl_map *map; // from points of the dims listed to elements
  uint32_t ndims;
  const uint32_t *dims; // ascending
  bool remote;          // elements of other devices' arrays
  kl_map_tile tile;
} kl_tiled;

typedef struct kl_tiling_runtime {
  kl_interval in;
  kl_producer from; // index over numbers and sizes of tiles; payload: kl_runtime, or NULL
} kl_tiling_runtime;

// Every array that a tile of the results needs, users before what they use. Lives in the pool's arena.
typedef struct kl_tiling {
  uint32_t nframes, ndims, nparallel, nregions, nruntimes, n;
  const kl_frame *frames;
  const kl_tiling_dim *dims; // parallel ones first
  const kl_region *regions;
  const kl_tiling_runtime *runtimes; // variable i in all expressions
  const kl_tiled *values;
} kl_tiling;

enum {
  KL_TILING_MOST_WAYS = 64,        // in which a value is needed; in more, all of it is, and its tile says so
  KL_TILING_MOST_INSTRS = 1 << 20, // looked at, those of calls as often as they are called
};

// The space of a computation's tiles: results of equal dims share theirs; others go along with those where they can, or
// have their own. `sizes`: by number of
// the dim, as far as there are any: 0 leaves one open, more than the extent is the extent. Without sizes (nsizes 0) all
// are open; else sequential dims beyond nsizes are taken whole, and parallel ones too.
void kl_tiling_make(kl_affs *p, const kiln_module *m, const kl_comp *c, const int64_t *sizes, uint32_t nsizes,
                    kl_tiling *out);

// --- schedules ------------------------------------------------------------------------------------------------------

// Which block of a grid makes which tiles of the parallel dims: neighbours in an order of all tiles.
typedef struct kl_tile_schedule {
  const uint32_t *order; // parallel dims, the one whose number changes slowest first
  int64_t tiles;         // of the parallel dims, at least 1
  int64_t blocks;        // each makes per_block of them in turn, the last one perhaps fewer
  int64_t per_block;     // at most `tiles`
  const kl_map *map;     // (block)[step] to the number of the tile along each parallel dim
} kl_tile_schedule;

// Parallel dims change as those of results do, the last one fastest; but of the first contraction, the dims of the left
// operand's rows alone do: then blocks that run together read one tile of the right operand and go through the left.
// Where the rows come in groups that are data, they do only if a group has fewer rows than there are columns. False
// where a size is open, or the tiles are too many for 64 bits. per_block is at least 1.
bool kl_tile_schedule_make(kl_affs *p, const kl_tiling *t, int64_t per_block, kl_tile_schedule *out);

// --- search -------------------------------------------------------------------------------------------------------

typedef struct kl_tile_limits {
  int64_t elements;  // of one tile of one array
  int64_t registers; // bytes: of an instruction's tile and those of its operands, wherever that is most
  int64_t shared;    // bytes: of all tiles of transposes, and of operands of contractions, together
  bool divide;       // sizes divide their extents: no tile is cut at the end of its dimension
  uint32_t most;     // choices
  uint32_t quota;    // sizes tried
} kl_tile_limits;

typedef struct kl_tile_choice {
  const int64_t *sizes; // by dim
  int64_t cost, blocks, registers, shared;
} kl_tile_choice;

// Sizes for which every value has its tile as one box (or is covered by one), from powers of two and whole extents,
// that keep to the limits; cheapest first, larger first where they cost the same. The cost is bytes of memory that are
// read and written, in sectors of 32, plus one for each element that is computed; both as often as they are over all
// tiles. *all tells that the quota did. In the pool's arena. Numbers beyond 64 bits count as the greatest.
const kl_tile_choice *kl_tiling_search(kl_affs *p, const kiln_module *m, const kl_comp *c, const kl_tile_limits *limits,
                                       uint32_t *n, bool *all);

#endif

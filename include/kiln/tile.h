// kiln: tiles, which elements of every array a tile of a computation's results needs. docs/tiles.md tells the rules.
//
// A computation is tiled over a space of dims: parallel ones are those of its results, sequential ones are folded by an
// instruction (a reduction, a contraction, a window). A result that goes along with others has no dims of its own;
// which elements of it are in a tile is told as of any value. Of each dim a tile has `size` points, from a multiple of
// it on. An array's tile is a union of boxes: for each dimension, indices offset + k * stride for 0 <= k < size, of
// which those from `lower` on and below `upper` count. Boxes are told as text over variables: t0, t1 ... are the
// numbers of the tile along the dims, s0, s1 ... the sizes that are open, rt0, rt1 ... values that the program
// computes; / rounds down.
#ifndef KILN_TILE_H
#define KILN_TILE_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// Immutable, and without need of the module that it was made from. Belongs to the context that it was made with and is
// destroyed before it; serves one thread at a time. What functions point to lives as long as the tiling.
typedef struct kiln_tiling kiln_tiling;

typedef struct kiln_tiling_params {
  size_t struct_size;
  const int64_t *sizes; // of tiles, by dim, in elements; 0 leaves one open; more than the extent is the extent
  size_t size_count;    // 0: all are open; else those of all parallel dims at least. Others are taken whole
  int64_t per_block;    // tiles that one block makes; 0: 1
} kiln_tiling_params;

// Tiles ENTRY of a module (kiln_module_extract makes a fusion one). `params` may be NULL. On success the caller owns
// *out. Errors: INVALID (a size or per_block below 0, fewer sizes than parallel dims, more than dims).
KILN_API kiln_status kiln_tiling_make(kiln_context *cx, const kiln_module *m, const kiln_tiling_params *params,
                                      kiln_tiling **out);
KILN_API void kiln_tiling_destroy(kiln_tiling **t);

typedef struct kiln_tiling_dim {
  size_t struct_size;
  bool sequential;
  int64_t extent, size;    // in elements; size 0: open
  const char *instruction; // that folds it; else the root, whose dimension it is
  size_t number;           // among what the instruction folds; else among the dimensions of one result
} kiln_tiling_dim;
KILN_API size_t kiln_tiling_dim_count(const kiln_tiling *t);
KILN_API size_t kiln_tiling_parallel_count(const kiln_tiling *t); // they come first
// This and the following: false if a number is out of range, or struct_size is wrong.
KILN_API bool kiln_tiling_dim_at(const kiln_tiling *t, size_t i, kiln_tiling_dim *out);

// A value rt0, rt1 ... that the program computes: an element of an instruction's result.
typedef struct kiln_tiling_runtime {
  size_t struct_size;
  int64_t lo, hi;          // it lies within, inclusive
  const char *instruction; // that computes it
  size_t leaf;             // of its result
  const char *index;       // of the element: "t0, 1"; "" for a scalar
} kiln_tiling_runtime;
KILN_API size_t kiln_tiling_runtime_count(const kiln_tiling *t);
KILN_API bool kiln_tiling_runtime_at(const kiln_tiling *t, size_t i, kiln_tiling_runtime *out);

typedef enum kiln_region_kind {
  KILN_REGION_TOP,    // once for each tile of the parallel dims
  KILN_REGION_LOOP,   // once for each tile of the dims that an instruction folds
  KILN_REGION_BRANCH, // where an operand of a concatenate is needed
} kiln_region_kind;

// Where tiles are made. Region 0 is the whole; loops of one step are none.
typedef struct kiln_tiling_region {
  size_t struct_size;
  kiln_region_kind kind;
  size_t parent;
  const char *instruction; // that folds, or the concatenate; "" for region 0
  size_t operand;          // of the concatenate
} kiln_tiling_region;
KILN_API size_t kiln_tiling_region_count(const kiln_tiling *t);
KILN_API bool kiln_tiling_region_at(const kiln_tiling *t, size_t i, kiln_tiling_region *out);

typedef enum kiln_tile_state {
  KILN_TILE_EXACT,   // the boxes hold what is needed, no more and no less
  KILN_TILE_COVERS,  // they hold what is needed, and perhaps more
  KILN_TILE_UNKNOWN, // nothing is known; there are no boxes
} kiln_tile_state;

// An array as it is needed in one way. One that is needed in several ways is there as often; their union is needed.
typedef struct kiln_tiled_value {
  size_t struct_size;
  const char *instruction; // those of called computations: "fusion.1/add"
  size_t leaf;             // of its result, depth first
  const char *shape;       // "f32[16,97]"
  size_t rank, region;
  kiln_tile_state state;
  const char *reason; // why it is not exact; else ""
  size_t box_count, condition_count;
} kiln_tiled_value;
// Users come before what they use.
KILN_API size_t kiln_tiling_value_count(const kiln_tiling *t);
KILN_API bool kiln_tiling_value_at(const kiln_tiling *t, size_t i, kiln_tiled_value *out);
// What open sizes must satisfy for the boxes to be right: "s0 mod 6 in [0, 0] or 6 mod s0 in [0, 0]". All of a value's.
KILN_API bool kiln_tiling_condition_at(const kiln_tiling *t, size_t value, size_t i, const char **text);

typedef struct kiln_tile_text {
  size_t struct_size;
  const char *offset, *size, *stride;
  const char *lower, *upper; // "": nothing is cut off there
} kiln_tile_text;
KILN_API bool kiln_tiling_box_at(const kiln_tiling *t, size_t value, size_t box, size_t dim, kiln_tile_text *out);
// Conditions under which the box has elements at all: "t0 * 4 in [-3, 9]". False behind the last.
KILN_API bool kiln_tiling_guard_at(const kiln_tiling *t, size_t value, size_t box, size_t i, const char **text);

typedef struct kiln_tile_range {
  int64_t offset, size, stride;
  int64_t lower, upper; // INT64_MIN, INT64_MAX: nothing is cut off there
} kiln_tile_range;
// The box in one tile: `tiles` and `sizes` by dim, `runtime` by runtime value; `sizes` and `runtime` may be NULL where
// none is open or computed. Stores a range for each dimension, and whether the box has elements there. False also where
// a condition on sizes does not hold, or a number leaves 64 bits.
KILN_API bool kiln_tiling_evaluate(const kiln_tiling *t, size_t value, size_t box, const int64_t *tiles,
                                   const int64_t *sizes, const int64_t *runtime, bool *any, kiln_tile_range *ranges);

// --- blocks

// Which block makes which tiles of the parallel dims. Tiles are in an order in which the last dim's number changes
// fastest, or, where there is a contraction, the number of the tile along its left operand's rows: then blocks that run
// together read the same tile of its right operand. A block makes neighbours in that order.
typedef struct kiln_tile_schedule {
  size_t struct_size;
  int64_t tiles;     // of the parallel dims
  int64_t blocks;    // of per_block tiles each; the last one has fewer where they do not divide
  int64_t per_block; // at most `tiles`
} kiln_tile_schedule;
// False where sizes of parallel dims are open, or the tiles are too many for 64 bits.
KILN_API bool kiln_tiling_schedule(const kiln_tiling *t, kiln_tile_schedule *out);
// The number of a tile along a parallel dim: "(block * 2 + step) mod 4". False also if dim is none of those.
KILN_API bool kiln_tiling_schedule_at(const kiln_tiling *t, size_t dim, const char **text);
// The same in numbers: stores the tile that a block makes in a step, its number along each parallel dim. False also if
// there is no such tile.
KILN_API bool kiln_tiling_schedule_tile(const kiln_tiling *t, int64_t block, int64_t step, int64_t *tiles);

// --- good sizes

typedef struct kiln_tile_limits {
  size_t struct_size;
  int64_t elements;  // of one tile of one array; 0: 1,048,576
  int64_t registers; // bytes of an instruction's tile and those of its operands; 0: 65,536
  int64_t shared;    // bytes of tiles of transposes and of operands of contractions, all together; 0: 49,152
  size_t choices;    // at most so many; 0: 16
  bool divide;       // sizes divide the extents, so that no tile is cut
} kiln_tile_limits;

typedef struct kiln_tile_choices kiln_tile_choices;

typedef struct kiln_tile_choice {
  size_t struct_size;
  const int64_t *sizes; // by dim
  int64_t cost, blocks; // blocks: tiles of the parallel dims
  int64_t registers, shared;
} kiln_tile_choice;

// Sizes from powers of two and whole extents for which every array's tile is one box, within the limits: cheapest
// first, larger first among equals. The cost is the bytes that are read and written, in sectors of 32, plus one for
// each element that is computed, over all tiles. Where there are very many lists of sizes not all are tried, larger
// ones first. `limits` may be NULL. On success the caller owns *out. Errors: INVALID (a limit below 0).
KILN_API kiln_status kiln_tile_search(kiln_context *cx, const kiln_module *m, const kiln_tile_limits *limits,
                                      kiln_tile_choices **out);
KILN_API void kiln_tile_choices_destroy(kiln_tile_choices **c);
KILN_API size_t kiln_tile_choice_count(const kiln_tile_choices *c);
KILN_API bool kiln_tile_choices_all(const kiln_tile_choices *c); // was every list of sizes tried?
// False if i is out of range, or struct_size is wrong.
KILN_API bool kiln_tile_choice_at(const kiln_tile_choices *c, size_t i, kiln_tile_choice *out);

#ifdef __cplusplus
}
#endif
#endif

// Tiles of a map against enumeration: the elements that the map gives for the points of a tile, and those that the
// tile's boxes have. Knows nothing of how tiles are found, and does not need Check: fuzzing uses it too.
#ifndef TESTS_TILES_ENUMERATE_H
#define TESTS_TILES_ENUMERATE_H

#include "lower/analysis/tiles/tiles.h"

enum {
  ENUMERATE_MOST_VOLUME = 1 << 16, // elements of the box around all results
  ENUMERATE_MOST_RESULTS = 8,
  ENUMERATE_MOST_VARS = 64,
};

// The elements among which those of a map lie. Large: not for the stack.
typedef struct volume {
  kl_affs *p;
  const kl_map *m;
  uint32_t n;
  kl_interval in[ENUMERATE_MOST_RESULTS];
  int64_t size;
  uint8_t needed[ENUMERATE_MOST_VOLUME], held[ENUMERATE_MOST_VOLUME];
} volume;

// False where there are too many, or nothing is known of them.
bool volume_open(volume *v, kl_affs *p, const kl_map *m);

typedef struct enumeration {
  const int64_t *extents, *sizes; // by dim of the map: what is tiled, the tile's size
  const uint32_t
      *dims;    // numbers that the tile's expressions have for them, below ENUMERATE_MOST_VARS; NULL: i for dim i
  int64_t most; // points looked at, in all tiles together
} enumeration;

typedef enum enumerated {
  ENUMERATED_RIGHT, // covers what is needed; holds nothing else where it says so
  ENUMERATED_WRONG, // see the finding
  ENUMERATED_NOT,   // there were more points than asked for, or a number left 64 bits
} enumerated;

typedef struct finding {
  int64_t tile[ENUMERATE_MOST_VARS], runtime[ENUMERATE_MOST_VARS];
  int64_t missing, extra; // elements that no box has; that are in one and not needed
  int64_t tiles;          // looked at
} finding;

// Every tile, each with the first few of the runtime values.
enumerated enumerate_tiles(volume *v, const kl_map_tile *t, const enumeration *e, finding *out);

// The tile as text, a line for each box, condition and guard.
void tile_describe(kl_affs *p, kl_sb *b, const kl_map_tile *t);

#endif

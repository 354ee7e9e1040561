// Accesses to memory as far as lanes do the same: their addresses, where these lie on the host, and bytes between
// there and registers. Compiled once for every instruction set, as executors are; the machine says what may be
// accessed.
#ifndef KL_LANES_MEMORY_H
#define KL_LANES_MEMORY_H

#include "sim/isa/op.h"

// Addresses that an access may have: from `base` to base + room, where `host` is on the host; each lane has its own,
// `skew` bytes behind that of the one before, or all have the same one (0).
typedef struct kl_window {
  uint64_t base, room, skew;
  char *host;
} kl_window;

// Where the bytes of lanes lie on the host: those of lane i at each[i] + by, of the lanes that execute; or, `each`
// being NULL, at first + i * step, and all execute.
typedef struct kl_lane_bytes {
  char *const *each;
  char *first;
  uint64_t step;
  int64_t by;
} kl_lane_bytes;

// An element of every lane that executes, `at` bytes behind its first, to a register or from there.
typedef void kl_move(kl_lanes *x, kl_ref reg, const kl_lane_bytes *b, unsigned at);
// Four words of all lanes.
typedef void kl_move_four(kl_lanes *x, const kl_ref regs[4], const kl_lane_bytes *b);

// By bits in memory, 8 to 128, then in the register: log 2 of the bytes.
enum { KL_MOVES = 5 };
static inline unsigned kl_move_of(unsigned bytes) {
  return (unsigned)__builtin_ctz(bytes);
}

// What is to be said of accesses that the check of races remembers, two numbers each for a cell of its shadow: fields,
// from the lowest bit on a site, a step, a lane of 5 bits and a warp; 0 is none.
typedef struct kl_glance {
  uint64_t first, warps;         // a warp, and a bit for it and each of those behind it that are asked for
  uint64_t least;                // the last step that is asked for
  uint64_t sites, first_sites;   // sites below that are asked for, and of these the first ones
  uint64_t site_mask, step_mask; // as wide as the fields
  unsigned of_step, of_warp;     // where they begin
} kl_glance;
enum { KL_GLANCE = 16 }; // cells

typedef struct kl_lane_memory {
  // Do the values of a register of `wide` bytes, 4 or 8, rise by one number from lane to lane? Which may be 0 or less.
  bool (*is_even)(const kl_lanes *x, kl_ref reg, unsigned wide, uint64_t *step);
  // to[i] = the value of lane i + offset, in so many bytes.
  void (*addresses)(const kl_lanes *x, kl_ref reg, unsigned wide, uint64_t offset, uint64_t to[KL_LANES]);
  // Are the addresses of lanes that execute in the window, and none of the bits `low` set in them? Then host[i] is
  // where lane i's lies.
  bool (*places)(const kl_lanes *x, const uint64_t address[KL_LANES], const kl_window *w, uint64_t low,
                 char *host[KL_LANES]);
  // Makes 32 numbers of 64 bits, or pointers, of which the i-th is first + i * step.
  void (*rise)(uint64_t first, uint64_t step, void *to);
  // The least and the greatest address of lanes that execute. Bit i of the result: lane i's `bytes` bytes lie right
  // behind those of the lane before, by address and on the host.
  uint32_t (*survey)(const kl_lanes *x, const uint64_t address[KL_LANES], char *const host[KL_LANES], uint64_t bytes,
                     uint64_t *least, uint64_t *most);
  // Adds to 32 numbers of 64 bits, and to pointers.
  void (*move_on)(uint64_t numbers[KL_LANES], char *pointers[KL_LANES], uint64_t by);
  // Bit i: of cell i the second number is 0, and the first one is 0 or asked for; bit i + 16: the first one is 0, or
  // asked for and of the first sites.
  uint32_t (*glance)(const kl_glance *g, const uint64_t cells[2 * KL_GLANCE]);
  kl_move *load[2][KL_MOVES][KL_MOVES], *store[KL_MOVES][KL_MOVES]; // load: whether by its sign; NULL: there is none
  kl_move_four *load_four, *store_four;
} kl_lane_memory;

#endif

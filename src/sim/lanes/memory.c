#include "sim/lanes/memory.h"
#include "sim/lanes/masks.h"

// Words of two lanes, or one word of eight lanes.
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint32_t eight __attribute__((vector_size(32)));

static inline eight get_eight(const void *p) {
  eight v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline void put_eight(void *p, eight v) {
  memcpy(p, &v, sizeof v);
}

// --- addresses ----------------------------------------------------------------------------------------------------

// The last lane first, which mostly tells; the first four in turn, then each beside the one four before it: whole
// vectors.
#define IS_EVEN(U)                                                                                                     \
  static bool is_even_##U(const U *a, U *step) {                                                                       \
    const U d = a[1] - a[0];                                                                                           \
    U other = ((a[2] - a[1]) ^ d) | ((a[3] - a[2]) ^ d);                                                               \
    *step = d;                                                                                                         \
    if (a[KL_LANES - 1] - a[0] != (KL_LANES - 1) * d) return false;                                                    \
    for (int i = 0; i < KL_LANES - 4; i++) other |= (a[i + 4] - a[i]) ^ (4 * d);                                       \
    return other == 0;                                                                                                 \
  }
IS_EVEN(u32)
IS_EVEN(u64)

static bool is_even(const kl_lanes *x, kl_ref reg, unsigned wide, uint64_t *step) {
  u64 far;
  u32 near;
  bool even = wide == 8 ? is_even_u64(AT(u64, reg), &far) : is_even_u32(AT(u32, reg), &near);
  *step = wide == 8 ? far : (uint64_t)(int64_t)(int32_t)near;
  return even;
}

static void addresses(const kl_lanes *x, kl_ref reg, unsigned wide, uint64_t offset, uint64_t to[KL_LANES]) {
  if (wide == 8) {
    const u64 *from = AT(u64, reg);
    ALL(KL_LANES, to[i] = from[i] + offset);
  } else {
    const u32 *from = AT(u32, reg), low = (u32)offset;
    ALL(KL_LANES, to[i] = (u32)(from[i] + low));
  }
}

// A number that is more than `room`, which is less than 2^63, has the highest bit, or room less it has.
static bool places(const kl_lanes *x, const uint64_t address[KL_LANES], const kl_window *w, uint64_t low,
                   char *host[KL_LANES]) {
  const uint64_t base = w->base, room = w->room, first = (uint64_t)(uintptr_t)w->host;
  uint64_t beyond = 0, bits = 0;
  if (x->mask == KL_ALL_LANES) KL_EACH for (int i = 0; i < KL_LANES; i++) {
      uint64_t in = address[i] - base;
      beyond |= in | (room - in);
      bits |= address[i];
      host[i] = (char *)(uintptr_t)(first + in);
    }
  else
    KL_EACH for (int i = 0; i < KL_LANES; i++) {
      uint64_t on = x->mask & kl_bit[i] ? ~(uint64_t)0 : 0, in = (address[i] - base) & on;
      beyond |= in | (room - in);
      bits |= address[i] & on;
      host[i] = (char *)(uintptr_t)(first + in);
    }
  if (w->skew)
    for (int i = 0; i < KL_LANES; i++) host[i] = (char *)((uintptr_t)host[i] + (uintptr_t)i * w->skew);
  return !(beyond >> 63) && !(bits & low);
}

static void rise(uint64_t first, uint64_t step, void *to) {
  typedef uint64_t lanes __attribute__((vector_size(32)));
  lanes v = {first, first + step, first + 2 * step, first + 3 * step};
  for (char *p = to, *end = p + KL_LANES * sizeof first; p < end; p += sizeof v, v += 4 * step) memcpy(p, &v, sizeof v);
}

// No memory has addresses of 2^63 or more.
static uint32_t survey(const kl_lanes *x, const uint64_t address[KL_LANES], char *const host[KL_LANES], uint64_t bytes,
                       uint64_t *least, uint64_t *most) {
  const s64 any = (s64)address[__builtin_ctz(x->mask)];
  s64 m[KL_LANES] = {0}, low = any, high = any;
  KL_EACH for (int i = 0; i < KL_LANES; i++) {
    s64 at = x->mask & kl_bit[i] ? (s64)address[i] : any;
    low = at < low ? at : low;
    high = at > high ? at : high;
  }
  KL_EACH for (int i = 1; i < KL_LANES; i++) {
    uint64_t gap = (uint64_t)((uintptr_t)host[i] - (uintptr_t)host[i - 1]) ^ bytes;
    gap |= (address[i] - address[i - 1]) ^ bytes;
    m[i] = gap ? 0 : -1;
  }
  *least = (uint64_t)low, *most = (uint64_t)high;
  return bits_of_64(m);
}

static void move_on(uint64_t numbers[KL_LANES], char *pointers[KL_LANES], uint64_t by) {
  KL_EACH for (int i = 0; i < KL_LANES; i++) numbers[i] += by;
  KL_EACH for (int i = 0; i < KL_LANES; i++) pointers[i] = (char *)((uintptr_t)pointers[i] + by);
}

static uint32_t glance(const kl_glance *g, const uint64_t cells[2 * KL_GLANCE]) {
  const kl_glance ask = *g;
  const s64 none = 0;
  s64 m[KL_LANES];
  KL_EACH for (int i = 0; i < KL_GLANCE; i++) {
    const u64 v = cells[2 * i], other = cells[2 * i + 1], site = v & ask.site_mask;
    const u64 warp = (v >> ask.of_warp) - ask.first, step = v >> ask.of_step & ask.step_mask;
    const u64 there = warp < 64 ? ask.warps >> (warp & 63) & 1 : 0;
    const s64 asked = step <= ask.least && site < ask.sites ? (s64)(0 - there) : none;
    const s64 empty = v == 0 ? -1 : none, of_first = site < ask.first_sites ? asked : none;
    m[i] = other == 0 ? empty | asked : none;
    m[i + KL_GLANCE] = empty | of_first;
  }
  return bits_of_64(m);
}

// --- elements -----------------------------------------------------------------------------------------------------

// Memory that the host may have at any address.
#define ANYWHERE(T) typedef T __attribute__((may_alias, aligned(1))) any_##T
__extension__ typedef unsigned __int128 __attribute__((may_alias)) u128;
ANYWHERE(u8);
ANYWHERE(s8);
ANYWHERE(u16);
ANYWHERE(s16);
ANYWHERE(u32);
ANYWHERE(s32);
ANYWHERE(u64);
ANYWHERE(u128);

// A lane's bytes behind those of the first, which may lie before them.
static inline int64_t behind(const kl_lane_bytes *b, int lane) {
  return (int64_t)((uint64_t)lane * b->step);
}

#define LOAD(M, R)                                                                                                     \
  static void load_##M##_##R(kl_lanes *x, kl_ref reg, const kl_lane_bytes *b, unsigned at) {                           \
    R *to = AT(R, reg);                                                                                                \
    const char *first = b->each ? NULL : b->first + at;                                                                \
    const int64_t far = b->by + at;                                                                                    \
    const any_##M *from = (const any_##M *)first;                                                                      \
    if (b->each && x->mask == KL_ALL_LANES)                                                                            \
      for (int i = 0; i < KL_LANES; i++) to[i] = (R) * (const any_##M *)(b->each[i] + far);                            \
    else if (b->each)                                                                                                  \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        if (x->mask >> i & 1) to[i] = (R) * (const any_##M *)(b->each[i] + far);                                       \
      }                                                                                                                \
    else if (b->step == 0)                                                                                             \
      ALL(KL_LANES, to[i] = (R)*from);                                                                                 \
    else if (b->step == sizeof(M))                                                                                     \
      ALL(KL_LANES, to[i] = (R)from[i]);                                                                               \
    else if (b->step == 2 * sizeof(M))                                                                                 \
      ALL(KL_LANES, to[i] = (R)from[2 * i]);                                                                           \
    else                                                                                                               \
      for (int i = 0; i < KL_LANES; i++) to[i] = (R) * (const any_##M *)(first + behind(b, i));                        \
  }
// Where lanes write the same bytes the last one's stay.
#define STORE(M, R)                                                                                                    \
  static void store_##M##_##R(kl_lanes *x, kl_ref reg, const kl_lane_bytes *b, unsigned at) {                          \
    const R *from = AT(R, reg);                                                                                        \
    char *first = b->each ? NULL : b->first + at;                                                                      \
    const int64_t far = b->by + at;                                                                                    \
    any_##M *to = (any_##M *)first;                                                                                    \
    if (b->each && x->mask == KL_ALL_LANES)                                                                            \
      for (int i = 0; i < KL_LANES; i++) *(any_##M *)(b->each[i] + far) = (M)from[i];                                  \
    else if (b->each)                                                                                                  \
      for (int i = 0; i < KL_LANES; i++) {                                                                             \
        if (x->mask >> i & 1) *(any_##M *)(b->each[i] + far) = (M)from[i];                                             \
      }                                                                                                                \
    else if (b->step == sizeof(M))                                                                                     \
      ALL(KL_LANES, to[i] = (M)from[i]);                                                                               \
    else                                                                                                               \
      for (int i = 0; i < KL_LANES; i++) *(any_##M *)(first + behind(b, i)) = (M)from[i];                              \
  }

// X(log 2 of bytes in memory, in the register, their types)
#define MOVES(X)                                                                                                       \
  X(0, 1, u8, u16)                                                                                                     \
  X(0, 2, u8, u32)                                                                                                     \
  X(0, 3, u8, u64)                                                                                                     \
  X(1, 1, u16, u16)                                                                                                    \
  X(1, 2, u16, u32)                                                                                                    \
  X(1, 3, u16, u64)                                                                                                    \
  X(2, 2, u32, u32)                                                                                                    \
  X(2, 3, u32, u64)                                                                                                    \
  X(3, 3, u64, u64)                                                                                                    \
  X(4, 4, u128, u128)
#define SIGNED_MOVES(X)                                                                                                \
  X(0, 1, s8, s16)                                                                                                     \
  X(0, 2, s8, s32)                                                                                                     \
  X(0, 3, s8, s64)                                                                                                     \
  X(1, 2, s16, s32)                                                                                                    \
  X(1, 3, s16, s64)                                                                                                    \
  X(2, 3, s32, s64)
#define LOADS(m, r, M, R) LOAD(M, R)
#define BOTH(m, r, M, R)  LOAD(M, R) STORE(M, R)
MOVES(BOTH)
SIGNED_MOVES(LOADS)

// --- four words of every lane, what vectorised code mostly moves --------------------------------------------------

static inline eight get_two(const void *low, const void *high) {
  four a, b;
  memcpy(&a, low, sizeof a);
  memcpy(&b, high, sizeof b);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}
static inline void put_low(void *p, eight v) {
  four a = __builtin_shufflevector(v, v, 0, 1, 2, 3);
  memcpy(p, &a, sizeof a);
}
static inline void put_high(void *p, eight v) {
  four a = __builtin_shufflevector(v, v, 4, 5, 6, 7);
  memcpy(p, &a, sizeof a);
}

// Rows become columns, in each half by itself.
static inline void turn(eight v[4]) {
  eight a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
  eight b = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
  eight c = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
  eight d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
  v[3] = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

#define LOAD_FOUR(place)                                                                                               \
  for (int i = 0; i < KL_LANES; i += 8) {                                                                              \
    eight v[4];                                                                                                        \
    for (int k = 0; k < 4; k++) v[k] = get_two(place(i + k), place(i + k + 4));                                        \
    turn(v);                                                                                                           \
    for (int k = 0; k < 4; k++) put_eight(to[k] + i, v[k]);                                                            \
  }
#define EACH_PLACE(lane) (b->each[lane] + by)
#define EVEN_PLACE(lane) (b->first + behind(b, lane))
static void load_four(kl_lanes *x, const kl_ref regs[4], const kl_lane_bytes *b) {
  uint32_t *to[4];
  const int64_t by = b->by;
  for (int k = 0; k < 4; k++) to[k] = AT(uint32_t, regs[k]);
  if (b->each)
    LOAD_FOUR(EACH_PLACE)
  else
    LOAD_FOUR(EVEN_PLACE)
}

// By rising lane: where several write, the last one's stay.
#define STORE_FOUR(place)                                                                                              \
  for (int i = 0; i < KL_LANES; i += 8) {                                                                              \
    eight v[4];                                                                                                        \
    for (int k = 0; k < 4; k++) v[k] = get_eight(from[k] + i);                                                         \
    turn(v);                                                                                                           \
    for (int k = 0; k < 4; k++) put_low(place(i + k), v[k]);                                                           \
    for (int k = 0; k < 4; k++) put_high(place(i + k + 4), v[k]);                                                      \
  }
static void store_four(kl_lanes *x, const kl_ref regs[4], const kl_lane_bytes *b) {
  const uint32_t *from[4];
  const int64_t by = b->by;
  for (int k = 0; k < 4; k++) from[k] = AT(uint32_t, regs[k]);
  if (b->each)
    STORE_FOUR(EACH_PLACE)
  else
    STORE_FOUR(EVEN_PLACE)
}

#define LOAD_ENTRY(m, r, M, R)        [0][m][r] = load_##M##_##R,
#define SIGNED_LOAD_ENTRY(m, r, M, R) [1][m][r] = load_##M##_##R,
#define STORE_ENTRY(m, r, M, R)       [m][r] = store_##M##_##R,
extern const kl_lane_memory KL_PASTE(kl_lanes_, KL_SET, _memory);
const kl_lane_memory KL_PASTE(kl_lanes_, KL_SET, _memory) = {
    .is_even = is_even,
    .addresses = addresses,
    .places = places,
    .rise = rise,
    .survey = survey,
    .move_on = move_on,
    .glance = glance,
    .load = {MOVES(LOAD_ENTRY) SIGNED_MOVES(SIGNED_LOAD_ENTRY)},
    .store = {MOVES(STORE_ENTRY)},
    .load_four = load_four,
    .store_four = store_four,
};

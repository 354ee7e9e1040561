// How large a tile is, and who does what of it.

#include "lower/choose/transpose/transpose.h"

enum {
  ROW_BITS = 2048,           // rows of a tile, where there is as much
  TILE_BITS = 16 << 10 << 3, // what it takes of shared memory, all heroes together
  LEAST_TILE_BITS = TILE_BITS / 2,
  UNIT_BITS = 1024,  // that a thread has in registers to turn at once
  MOST_BITS = 2048,  // and of what it does not turn
  FLIGHT_BITS = 512, // that it reads before it waits
  MOST_SINGLE = 64,  // of values that are read one by one
  MOST_THREADS = 256,
  WARP = 32,
  BANK_BYTES = 4,
  WAVE_BYTES = 128,
  HOST_ROWS = 8, // of a loop's round
  FEW_ROWS = 2,
  HOST_COPIES = 512,
};

static int64_t power_of_two(int64_t least) {
  int64_t p = 1;
  while (p < least) p *= 2;
  return p;
}

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static uint32_t bits_of(const kl_transposition *t, uint32_t hero) {
  return kl_info(t->hero[hero].dtype)->bits;
}

static uint32_t widest(const kl_transposition *t) {
  uint32_t bits = 1;
  for (uint32_t i = 0; i < t->nheroes; i++)
    if (bits_of(t, i) > bits) bits = bits_of(t, i);
  return bits;
}

static int64_t all_bits(const kl_transposition *t) {
  int64_t bits = 0;
  for (uint32_t i = 0; i < t->nheroes; i++) bits += bits_of(t, i);
  return bits;
}

// Values that a thread may read before it puts them: neighbours that are less than a byte are read one by one, and each
// has a register of its own.
static int64_t most_values(const kl_transposition *t) {
  return t->v_in * t->bits_in < 8 ? MOST_SINGLE / power_of_two(t->nheroes) : INT64_MAX / MOST_THREADS;
}

// --- its sides ------------------------------------------------------------------------------------------------------

static int64_t blocks_of(const kl_transposition *t, const kl_dealt *d) {
  int64_t n = ceil_div(t->x.size, d->tx) * ceil_div(t->y.size, d->ty);
  bool side[KL_MOST_AXES] = {false};
  for (uint32_t i = 0; i < t->x.n; i++) side[t->x.axis[i]] = true;
  for (uint32_t i = 0; i < t->y.n; i++) side[t->y.axis[i]] = true;
  for (uint32_t i = 0; i < t->axes.n; i++)
    if (!side[i]) n *= t->axes.size[i];
  return n;
}

// Both sides are powers of two, and full rows as far as there is so much; then no more than memory has; then enough
// that the sync pays; then so small that every multiprocessor has some. Of what is read one by one, no more than the
// threads have registers for.
static void choose_sides(const kl_target *target, const kl_transposition *t, kl_dealt *d) {
  int64_t bits = all_bits(t), most_x = power_of_two(t->x.size), most_y = power_of_two(t->y.size);
  int64_t x = ROW_BITS / widest(t), y = ROW_BITS / t->bits_in, most = TILE_BITS / bits;
  if (target->machine != KL_HOST && most > MOST_THREADS * most_values(t)) most = MOST_THREADS * most_values(t);
  d->tx = x < most_x ? x : most_x;
  d->ty = y < most_y ? y : most_y;
  while (d->tx * d->ty > most) *(d->tx >= d->ty ? &d->tx : &d->ty) /= 2;
  while (d->tx * d->ty * bits < LEAST_TILE_BITS && 2 * d->tx * d->ty <= most && (d->tx < most_x || d->ty < most_y)) {
    bool longer_x = d->tx < most_x && (d->tx <= d->ty || d->ty == most_y);
    *(longer_x ? &d->tx : &d->ty) *= 2;
  }
  int64_t least = WARP * 8 / widest(t) ? WARP * 8 / widest(t) : 1;
  while (blocks_of(t, d) < target->multiprocessors && (d->tx > 4 * least || d->ty > 4 * least))
    *(d->tx >= d->ty ? &d->tx : &d->ty) /= 2;
}

// --- conflicts ------------------------------------------------------------------------------------------------------

// Waves that 32 lanes take to touch `bytes` bytes each, at these places: 32 banks of 4 bytes. A piece is what one
// instruction takes, of as many lanes at a time as make 128 bytes.
static int64_t waves(const int64_t *at, int64_t bytes, int64_t align) {
  int64_t piece = bytes < 16 ? bytes : 16, sum = 0;
  while (piece > 1 && (align % piece || bytes % piece)) piece /= 2;
  int64_t lanes = piece < BANK_BYTES ? WARP : WAVE_BYTES / piece;
  if (lanes > WARP) lanes = WARP;
  for (int64_t from = 0; from < bytes; from += piece) {
    for (int64_t first = 0; first < WARP; first += lanes) {
      int64_t words[WARP * 4], most = 0;
      uint32_t n = 0, of_bank[32] = {0};
      for (int64_t i = first; i < first + lanes; i++) {
        for (int64_t b = 0; b < piece; b += BANK_BYTES) {
          int64_t word = (at[i] + from + b) / BANK_BYTES;
          bool known = false;
          for (uint32_t k = 0; k < n && !known; k++) known = words[k] == word;
          if (known) continue;
          words[n++] = word;
          if (++of_bank[word % 32] > most) most = of_bank[word % 32];
        }
      }
      sum += WARP * most;
    }
    sum++;
  }
  return sum;
}

static int64_t place_in_tile(const kl_dealt *d, int64_t pad, int64_t x, int64_t y) {
  return y * d->tx + y / d->v * pad + x;
}

// Of a warp that puts its first values and takes its first: waves, and as a small part of one each instruction.
static int64_t waves_with(const kl_dealt *d, uint32_t bits, int64_t pad) {
  int64_t put[WARP], take[WARP], of_row = d->ty / d->v, of_taken = d->tx / d->v2, align = 16;
  while (align > 1 && (pad * bits % (8 * align) || d->tx * bits % (8 * align))) align /= 2;
  for (int64_t i = 0; i < WARP; i++) {
    put[i] = place_in_tile(d, pad, i / of_row * d->a, i % of_row * d->v) * bits / 8;
    take[i] = place_in_tile(d, pad, i % of_taken * d->v2, i / of_taken) * bits / 8;
  }
  int64_t puts = waves(put, ceil_div(d->a * bits, 8), align) * d->v * d->v2;
  return puts + waves(take, ceil_div(d->v2 * bits, 8), align) * d->a * d->v;
}

// Values of one group of rows, which a thread has, lie side by side; between groups, what makes the fewest conflicts.
static int64_t choose_pad(const kl_dealt *d, uint32_t bits) {
  int64_t best = 0, least = waves_with(d, bits, 0), step = BANK_BYTES * 8 / bits ? BANK_BYTES * 8 / bits : 1;
  for (int64_t pad = step; pad * bits <= 8 * WAVE_BYTES; pad *= 2) {
    int64_t n = waves_with(d, bits, pad);
    if (n >= least) continue;
    least = n;
    best = pad;
  }
  return best;
}

// --- threads --------------------------------------------------------------------------------------------------------

// The widest of results and of parameters that are as large.
static int64_t widest_argument(const kl_choosing *c) {
  int64_t bits = 1, most = 0;
  for (uint32_t i = 0; i < c->slots.nargs; i++)
    if (c->slots.v.p[i].kind == KL_SLOT_OUT && c->slots.v.p[i].shape->count > most) most = c->slots.v.p[i].shape->count;
  for (uint32_t i = 0; i < c->slots.nargs; i++) {
    const kl_shape *s = c->slots.v.p[i].shape;
    if (s->count >= most / 2 && kl_info(s->dtype)->bits > bits) bits = kl_info(s->dtype)->bits;
  }
  return bits;
}

// A thread turns a square of so many values in registers that it reads, and puts, 16 bytes at once, as far as registers
// go, also for what is made beside; and has several such as far as threads do.
static bool choose_threads(const kl_choosing *c, const kl_transposition *t, kl_dealt *d) {
  int64_t beside = widest_argument(c) * UNIT_BITS / MOST_BITS;
  int64_t bits = widest(t) > t->bits_in ? widest(t) : t->bits_in, all = d->tx * d->ty;
  d->v = t->v_in < d->ty ? t->v_in : d->ty;
  d->v2 = t->v_out < d->tx ? t->v_out : d->tx;
  d->a = 128 / widest(t);
  while (d->a > d->tx) d->a /= 2;
  if (bits < beside) bits = beside;
  while (d->a * d->v * bits > UNIT_BITS && d->a * widest(t) > 8 * BANK_BYTES) d->a /= 2;
  while (d->a * d->v > most_values(t) && d->a * widest(t) > 8) d->a /= 2;
  while (d->a * d->v > most_values(t) && d->v > 1) d->v /= 2;
  while (all / (d->a * d->v) < WARP && d->a > 1) d->a /= 2;
  while (all / (d->a * d->v) < WARP && d->v > 1) d->v /= 2;
  while (all / d->v2 < WARP && d->v2 > 1) d->v2 /= 2;
  d->threads = all / (d->a * d->v);
  d->units = 1;
  while (d->threads > WARP && (d->threads > MOST_THREADS || d->threads > all / d->v2 ||
                               (d->a * d->v * d->units * all_bits(t) < FLIGHT_BITS &&
                                2 * d->a * d->v * d->units <= most_values(t) && d->threads > 2 * WARP))) {
    d->threads /= 2;
    d->units *= 2;
  }
  // Of an only tile that is not full, rows that are not there are not taken.
  int64_t rows = t->y.size < d->ty ? t->y.size : d->ty;
  bool some = all / (d->v2 * d->threads) > 0;
  d->units2 = ceil_div(rows * (d->tx / d->v2), d->threads);
  return d->threads >= WARP && some;
}

// Lanes are those of a vector, and there is one warp: it goes along Y, and then along X.
static bool choose_vectors(const kl_plan *p, const kl_transposition *t, kl_dealt *d) {
  int64_t lanes = p->target.host_lanes;
  d->threads = lanes;
  d->v = d->v2 = 1;
  if (d->tx < lanes || d->ty < lanes || t->x.size < lanes || t->y.size < lanes) return false;
  d->a = p->few ? FEW_ROWS : HOST_ROWS;
  while (d->a > 1 && (d->a > d->tx || d->a > d->ty || d->a * d->tx > HOST_COPIES || d->a * d->ty > HOST_COPIES))
    d->a /= 2;
  d->units = d->tx / d->a;
  d->units2 = d->ty / d->a;
  return d->units2 > 0;
}

bool kl_choose_tile(const kl_choosing *c, const kl_transposition *t, kl_dealt *out, const char **why_not) {
  const kl_target *target = &c->plan->target;
  *out = (kl_dealt){0};
  choose_sides(target, t, out);
  bool host = target->machine == KL_HOST;
  if (!(host ? choose_vectors(c->plan, t, out) : choose_threads(c, t, out))) {
    *why_not = "its tiles would be too small";
    return false;
  }
  for (uint32_t i = 0; i < t->nheroes && !host; i++) out->pad[i] = choose_pad(out, bits_of(t, i));
  return true;
}

int64_t kl_tile_elements(const kl_dealt *d, uint32_t hero, bool host) {
  return d->tx * d->ty + (host ? 0 : d->ty / d->v * d->pad[hero]);
}

// On the host a vector is put as it was read.
const kl_aff *kl_tile_place(kl_affs *p, const kl_dealt *d, uint32_t hero, bool host, const kl_aff *x, const kl_aff *y) {
  if (host) return kl_aff_addmul(p, y, x, d->ty);
  return kl_aff_addmul(p, kl_aff_addmul(p, x, y, d->tx), kl_aff_floordivc(p, y, d->v), d->pad[hero]);
}

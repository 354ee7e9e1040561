// Random numbers: rng-bit-generator with the bits that XLA gives, rng as docs/numerics.md has it, stochastic-convert.
//
// The two generators are those of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): Threefry2x32
// with 20 rounds and Philox4x32 with 10. Which counter goes with which element is XLA's choice and told below.
#include "eval/impl.h"

#include <math.h>

// --- generators ---------------------------------------------------------------------------------------------------

typedef struct pair {
  uint32_t v[2];
} pair;
typedef struct quad {
  uint32_t v[4];
} quad;

static pair split(uint64_t x) {
  return (pair){{(uint32_t)x, (uint32_t)(x >> 32)}};
}

static uint32_t rotate(uint32_t x, int by) {
  return x << by | x >> (32 - by);
}

static pair threefry(uint64_t key, uint64_t counter) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  pair k = split(key), x = split(counter);
  const uint32_t ks[3] = {k.v[0], k.v[1], k.v[0] ^ k.v[1] ^ 0x1bd11bdau};
  x.v[0] += ks[0];
  x.v[1] += ks[1];
  for (uint32_t step = 1; step <= 5; step++) {
    for (int i = 0; i < 4; i++) {
      x.v[0] += x.v[1];
      x.v[1] = rotate(x.v[1], rotations[(step + 1) & 1][i]) ^ x.v[0];
    }
    x.v[0] += ks[step % 3];
    x.v[1] += ks[(step + 1) % 3] + step;
  }
  return x;
}

static quad philox(uint64_t key, const uint64_t counter[2]) {
  pair k = split(key), low = split(counter[0]), high = split(counter[1]);
  quad x = {{low.v[0], low.v[1], high.v[0], high.v[1]}};
  for (int round = 0; round < 10; round++) {
    pair a = split((uint64_t)x.v[0] * 0xd2511f53u), b = split((uint64_t)x.v[2] * 0xcd9e8d57u);
    x = (quad){{b.v[1] ^ x.v[1] ^ k.v[0], b.v[0], a.v[1] ^ x.v[3] ^ k.v[1], a.v[0]}};
    k.v[0] += 0x9e3779b9u;
    k.v[1] += 0xbb67ae85u;
  }
  return x;
}

// --- rng-bit-generator --------------------------------------------------------------------------------------------

// state = {key, counter ...}. Threefry: one word of counter. Philox: two, low first; where the state has two words
// only, the key is also the counter's high word, whose carry is then lost.
typedef struct bits_job {
  const kl_shape *shape;
  uint64_t key, counter[2];
  int64_t split, inner; // Threefry of 32 bits: extent of the dimension that is cut in two, elements below it
  void *out;
} bits_job;

static void add128(uint64_t x[2], uint64_t n) {
  x[0] += n;
  x[1] += x[0] < n;
}

// The low bits of a word, as many as the type has.
static void put(const bits_job *job, int64_t i, uint32_t word) {
  kl_dtype t = job->shape->dtype;
  if (kl_info(t)->bits == 32)
    ((uint32_t *)job->out)[i] = word;
  else
    kl_element_set(t, job->out, i, 0, word & kl_int_mask(t));
}

static void philox_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const bits_job *job = arg;
  bool wide = kl_info(job->shape->dtype)->bits == 64;
  int64_t per = wide ? 2 : 4;
  for (int64_t i = begin; i < end;) {
    uint64_t counter[2] = {job->counter[0], job->counter[1]};
    add128(counter, (uint64_t)(i / per));
    quad q = philox(job->key, counter);
    for (int64_t k = i % per; k < per && i < end; k++, i++) {
      if (wide)
        kl_element_set(job->shape->dtype, job->out, i, 0, (uint64_t)q.v[2 * k + 1] << 32 | q.v[2 * k]);
      else
        put(job, i, q.v[k]);
    }
  }
}

// 64 bits: element i takes counter + i. Fewer: one dimension is cut in two halves, rounded up; elements 2 j and 2 j + 1
// of it are the two words of the counter plus the linear index of j in the array so halved.
static void threefry_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const bits_job *job = arg;
  bool wide = kl_info(job->shape->dtype)->bits == 64;
  int64_t half = job->split / 2 + job->split % 2, last = -1;
  pair x = {{0, 0}};
  for (int64_t i = begin; i < end; i++) {
    if (wide) {
      x = threefry(job->key, job->counter[0] + (uint64_t)i);
      kl_element_set(job->shape->dtype, job->out, i, 0, (uint64_t)x.v[1] << 32 | x.v[0]);
      continue;
    }
    int64_t low = i % job->inner, at = i / job->inner % job->split, high = i / job->inner / job->split;
    int64_t linear = (high * half + at / 2) * job->inner + low;
    if (linear != last) x = threefry(job->key, job->counter[0] + (uint64_t)linear);
    last = linear;
    put(job, i, x.v[at % 2]);
  }
}

// The first even dimension, else the longest; a scalar counts as one of one element.
static void choose_split(bits_job *job) {
  const kl_shape *s = job->shape;
  uint32_t best = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (s->dims[d] % 2 == 0) {
      best = d;
      break;
    }
    if (s->dims[d] > s->dims[best]) best = d;
  }
  job->split = s->rank ? s->dims[best] : 1;
  job->inner = 1;
  for (uint32_t d = best + 1; d < s->rank; d++) job->inner *= s->dims[d];
}

// How far the counter moves.
static uint64_t counters_used(const bits_job *job, bool is_philox) {
  uint64_t n = (uint64_t)job->shape->count;
  bool wide = kl_info(job->shape->dtype)->bits == 64;
  if (is_philox) return wide ? n / 2 + n % 2 : n / 4 + (n % 4 != 0);
  if (wide || n == 0) return n;
  return n / (uint64_t)job->split * (uint64_t)(job->split / 2 + job->split % 2);
}

static bool state_known(const kl_evval *v) {
  if (kl_ev_exact(v)) return true;
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  size_t n = v->splat ? 1 : (size_t)v->shape->count;
  return memcmp(kl_ev_plane(v, KL_EV_LO), kl_ev_plane(v, KL_EV_HI), n * sizeof(uint64_t)) == 0 &&
         !(any && memchr(any, 1, n));
}

static void open_all(kl_evval *v) {
  size_t size = (size_t)v->shape->count * kl_ev_size(v->shape->dtype);
  memcpy(kl_ev_plane(v, KL_EV_LO), kl_ev_plane(v, KL_EV_DATA), size);
  memcpy(kl_ev_plane(v, KL_EV_HI), kl_ev_plane(v, KL_EV_DATA), size);
  memset(kl_ev_plane(v, KL_EV_ANY), 1, (size_t)v->shape->count);
}

static kiln_status check_generator(kl_ev *ev, const kl_instr *in, const kl_shape *state, const kl_shape *bits) {
  bool is_philox = in->more->rng != KL_RNG_THREE_FRY;
  bool fits =
      state->dtype == KILN_U64 && state->rank == 1 && (state->dims[0] == 2 || (is_philox && state->dims[0] == 3));
  if (!fits) return kl_ev_refuse(ev, in, is_philox ? "the state is no u64[2] or u64[3]" : "the state is no u64[2]");
  if (!kl_is_int(bits->dtype) && !kl_is_float(bits->dtype))
    return kl_ev_refuse(ev, in, "random bits are integers or floats");
  return KILN_OK;
}

static void generate(kl_ev *ev, bits_job *job, bool is_philox, const uint64_t *state, int64_t words, uint64_t *next) {
  job->key = state[0];
  job->counter[0] = state[1];
  job->counter[1] = words == 3 ? state[2] : state[0];
  choose_split(job);
  kl_ev_parallel(ev, job->shape->count, 1 << 14, is_philox ? philox_piece : threefry_piece, job);
  add128(job->counter, counters_used(job, is_philox));
  memcpy(next, (uint64_t[3]){state[0], job->counter[0], job->counter[1]}, (size_t)words * sizeof(uint64_t));
}

kiln_status kl_ev_rng_bits(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                           kl_evval *out) {
  const kl_shape *state_shape = operands[0]->shape;
  if (in->shape->dtype != KILN_TUPLE) return kl_ev_refuse(ev, in, "its result has bits but no state");
  bits_job job = {.shape = kl_shape_leaf(in->shape, 1)};
  KL_TRY(check_generator(ev, in, state_shape, job.shape));
  kl_evval state;
  KL_TRY(kl_ev_expand(ev, operands[0], &state));
  bool open = ev->intervals && !state_known(&state);
  kiln_status status = kl_ev_new(ev, kl_shape_leaf(in->shape, 0), false, open, &out[0]);
  if (status == KILN_OK) status = kl_ev_new(ev, job.shape, false, open, &out[1]);
  if (status == KILN_OK) {
    job.out = kl_ev_plane(&out[1], KL_EV_DATA);
    generate(ev, &job, in->more->rng != KL_RNG_THREE_FRY, kl_ev_plane(&state, KL_EV_DATA), state_shape->dims[0],
             kl_ev_plane(&out[0], KL_EV_DATA));
    for (int k = 0; k < 2; k++) {
      out[k].raw = true; // the bits of a NaN are as random as any
      if (open) open_all(&out[k]);
    }
  } else {
    kl_ev_free(ev, &out[0]);
  }
  kl_ev_free(ev, &state);
  return status;
}

// --- rng ----------------------------------------------------------------------------------------------------------

// Walks from i, operands first and from left to right, over what is not done yet, and counts each rng. True: `at` was
// found, which is not counted.
static bool count_needed(const kl_comp *c, uint32_t i, uint32_t at, bool *done, uint32_t *path, uint64_t *found) {
  uint32_t depth = 0;
  path[depth++] = i;
  while (depth) {
    uint32_t now = path[depth - 1], k = 0;
    const kl_instr *in = &c->instr[now];
    while (k < in->noperands && done[in->operands[k]]) k++;
    if (done[now]) {
      depth--;
    } else if (k < in->noperands) {
      path[depth++] = in->operands[k];
    } else {
      done[now] = true;
      if (now == at) return true;
      *found += in->op == KL_OP_RNG || (in->op == KL_OP_ASYNC_START && in->wrapped == KL_OP_RNG);
      depth--;
    }
  }
  return false;
}

// How many are found before, from the root on and then from the others as they stand.
static uint64_t stream_of(kl_ev *ev, const kl_comp *c, uint32_t at) {
  size_t marks = c->ninstr * sizeof(bool), steps = (c->ninstr + 1) * sizeof(uint32_t);
  bool *done = kl_alloc(ev->cx, marks);
  uint32_t *path = kl_alloc(ev->cx, steps);
  uint64_t found = 0;
  memset(done, 0, marks);
  bool there = count_needed(c, c->root, at, done, path, &found);
  for (uint32_t i = 0; i < c->ninstr && !there; i++) there = count_needed(c, i, at, done, path, &found);
  kl_free(ev->cx, done, marks);
  kl_free(ev->cx, path, steps);
  return found;
}

typedef struct random_job {
  uint64_t stream;
  int64_t first; // word
  bool wide;
  kl_dtype t;            // of results
  unsigned digits, more; // of a float: how many bits count; added in the last place
  uint64_t from, to;     // of an integer or a truth, signs drawn out
  void *out;
} random_job;

static uint64_t word_of(const random_job *job, int64_t i) {
  uint64_t j = (uint64_t)(job->first + i), per = job->wide ? 2 : 4, counter[2] = {j / per, job->stream};
  quad q = philox(0x6b696c6e, counter);
  return job->wide ? (uint64_t)q.v[j % 2 * 2 + 1] << 32 | q.v[j % 2 * 2] : q.v[j % 4];
}

static void fractions(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const random_job *job = arg;
  for (int64_t i = begin; i < end; i++) {
    uint64_t top = word_of(job, i) >> ((job->wide ? 64 : 32) - job->digits);
    kl_element_set(job->t, job->out, i, 0,
                   kl_float_encode(job->t, ldexp((double)(top + job->more), -(int)job->digits)));
  }
}

static void integers(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const random_job *job = arg;
  uint64_t range = job->to - job->from;
  for (int64_t i = begin; i < end; i++) {
    uint64_t w = word_of(job, i), v;
    if (job->t == KILN_PRED)
      v = job->from != job->to ? w >> 31 : job->from;
    else if (job->wide)
      v = job->from + (uint64_t)((unsigned __int128)w * range >> 64);
    else
      v = job->from + (w * (uint32_t)range >> 32);
    kl_element_set(job->t, job->out, i, 0, job->t == KILN_PRED ? v : v & kl_int_mask(job->t));
  }
}

static kiln_status random_integers(kl_ev *ev, random_job *job, const kl_instr *in, const kl_evval *const *operands,
                                   kl_evval *out) {
  bool open = ev->intervals && !(kl_ev_exact(operands[0]) && kl_ev_exact(operands[1]));
  uint64_t ends[2];
  for (int k = 0; k < 2; k++) {
    uint64_t bits = kl_element_get(job->t, kl_ev_plane(operands[k], KL_EV_DATA), 0, 0);
    ends[k] = job->t == KILN_PRED ? bits != 0 : kl_is_signed(job->t) ? (uint64_t)kl_int_decode(job->t, bits) : bits;
  }
  job->from = ends[0];
  job->to = ends[1];
  KL_TRY(kl_ev_new(ev, in->shape, false, false, out));
  job->out = kl_ev_plane(out, KL_EV_DATA);
  kl_ev_parallel(ev, in->shape->count, 1 << 10, integers, job);
  kiln_status status = open && in->shape->count ? kl_ev_open(ev, out) : KILN_OK;
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

// Values of a chain of ops, each freed when the next one is there.
typedef struct chain {
  kl_ev *ev;
  const kl_shape *s;
  kiln_status status;
} chain;

static void then(chain *c, kl_op op, kl_evval *v, const kl_evval *other, bool other_first) {
  kl_evval next = {0};
  if (c->status != KILN_OK) return;
  const kl_evval *a = other && other_first ? other : v, *b = !other ? NULL : other_first ? v : other;
  c->status = kl_ev_apply_op(c->ev, op, c->s, a, b, &next);
  kl_ev_free(c->ev, v);
  *v = next;
}

static void begin_fractions(chain *c, random_job *job, int64_t first, unsigned more, kl_evval *v) {
  if (c->status == KILN_OK) c->status = kl_ev_new(c->ev, c->s, false, false, v);
  if (c->status != KILN_OK) return;
  job->first = first;
  job->more = more;
  job->out = kl_ev_plane(v, KL_EV_DATA);
  kl_ev_parallel(c->ev, c->s->count, 1 << 10, fractions, job);
}

static void number(chain *c, double x, kl_evval *v) {
  if (c->status == KILN_OK) c->status = kl_ev_new(c->ev, c->s, true, false, v);
  if (c->status != KILN_OK) return;
  kl_element_set(c->s->dtype, kl_ev_plane(v, KL_EV_DATA), 0, 0, kl_float_encode(c->s->dtype, x));
}

// An operand in the type that is computed in, everywhere.
static void end_of(chain *c, const kl_evval *operand, kl_evval *v) {
  kl_shape one = *operand->shape;
  kl_evval wide = {0};
  one.dtype = c->s->dtype;
  if (c->status == KILN_OK && operand->shape->dtype != one.dtype)
    c->status = kl_ev_apply_op(c->ev, KL_OP_CONVERT, &one, operand, NULL, &wide);
  else if (c->status == KILN_OK)
    wide = kl_ev_share(operand, operand->shape);
  if (c->status == KILN_OK) c->status = kl_ev_spread(c->ev, &wide, c->s, v);
  kl_ev_free(c->ev, &wide);
}

// uniform: from + f (to - from); normal: from + to sqrt(-2 log u) cos(2 pi f), with u = f + 2^-digits of other words.
static kiln_status random_floats(kl_ev *ev, random_job *job, const kl_instr *in, const kl_evval *const *operands,
                                 kl_evval *out) {
  kl_shape s = *in->shape;
  s.dtype = job->t = job->wide ? KILN_F64 : KILN_F32;
  chain c = {ev, &s, KILN_OK};
  kl_evval v = {0}, from = {0}, to = {0}, u = {0}, x = {0};
  bool normal = in->more->distribution == KL_RNG_NORMAL;
  job->digits = (unsigned)kl_info(normal ? s.dtype : in->shape->dtype)->man_bits + 1;
  end_of(&c, operands[0], &from);
  end_of(&c, operands[1], &to);
  begin_fractions(&c, job, normal ? s.count : 0, 0, &v);
  if (normal) {
    number(&c, 6.283185307179586, &x);
    then(&c, KL_OP_MULTIPLY, &v, &x, false);
    then(&c, KL_OP_COS, &v, NULL, false);
    begin_fractions(&c, job, 0, 1, &u);
    then(&c, KL_OP_LOG, &u, NULL, false);
    kl_ev_free(ev, &x);
    number(&c, -2, &x);
    then(&c, KL_OP_MULTIPLY, &u, &x, false);
    then(&c, KL_OP_SQRT, &u, NULL, false);
    then(&c, KL_OP_MULTIPLY, &v, &u, true);
  } else {
    then(&c, KL_OP_SUBTRACT, &to, &from, false);
  }
  then(&c, KL_OP_MULTIPLY, &v, &to, false);
  then(&c, KL_OP_ADD, &v, &from, true);
  if (c.status == KILN_OK && in->shape->dtype != s.dtype)
    c.status = kl_ev_apply_op(ev, KL_OP_CONVERT, in->shape, &v, NULL, out);
  else if (c.status == KILN_OK)
    *out = kl_ev_share(&v, in->shape);
  kl_evval *all[] = {&v, &from, &to, &u, &x};
  for (size_t k = 0; k < KL_COUNT(all); k++) kl_ev_free(ev, all[k]);
  return c.status;
}

// By its name: it may be a copy, of what an async op wraps.
static uint32_t place_of(const kl_comp *c, const kl_instr *in) {
  uint32_t i = 0;
  while (i < c->ninstr && c->instr[i].name != in->name) i++;
  return i;
}

kiln_status kl_ev_rng(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  kl_dtype t = in->shape->dtype;
  if (in->shape->dynamic) return kl_ev_refuse(ev, in, "its number of elements is not known");
  random_job job = {.t = t, .wide = kl_info(t)->bits == 64, .stream = stream_of(ev, c, place_of(c, in))};
  return kl_is_float(t) ? random_floats(ev, &job, in, operands, out) : random_integers(ev, &job, in, operands, out);
}

kiln_status kl_ev_rng_state(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                            kl_evval *out) {
  return kl_ev_refuse(ev, in, "its state belongs to the device and outlives the program");
}

// --- stochastic-convert -------------------------------------------------------------------------------------------

// |x| lies `fraction` of the way from one result to the next away from zero; the latter is taken where the random
// number is less than the fraction's first bits.
static bool takes_next(double fraction, kl_dtype random_type, uint64_t random) {
  return random < (uint64_t)ldexp(fraction, kl_info(random_type)->bits);
}

static uint64_t to_integer(kl_dtype to, double x, kl_dtype random_type, uint64_t random) {
  int bits = kl_info(to)->bits;
  double most = ldexp(1, bits - kl_is_signed(to)) - 1, least = kl_is_signed(to) ? -ldexp(1, bits - 1) : 0;
  uint64_t max = kl_is_signed(to) ? kl_int_mask(to) >> 1 : kl_int_mask(to);
  if (x != x) return 0;
  if (x >= most) return max;
  if (x <= least) return kl_is_signed(to) ? max + 1 : 0;
  double a = fabs(x), whole = floor(a);
  uint64_t r = (uint64_t)whole + takes_next(a - whole, random_type, random);
  return (x < 0 ? 0 - r : r) & kl_int_mask(to);
}

static uint64_t to_float(kl_dtype to, double x, kl_dtype random_type, uint64_t random) {
  uint64_t nearest = kl_float_encode(to, fabs(x));
  if (kl_float_is_nan(to, kl_float_encode(to, x)) || !isfinite(x)) return kl_float_encode(to, x);
  double a = fabs(x), top = kl_float_decode(to, kl_float_next(to, kl_float_encode(to, INFINITY), false));
  double down = fmin(kl_float_decode(to, nearest), top);
  if (down > a) down = kl_float_decode(to, kl_float_next(to, kl_float_encode(to, down), false));
  if (down > a || down == a) return kl_float_encode(to, copysign(down, x));
  double up = kl_float_decode(to, kl_float_next(to, kl_float_encode(to, down), true));
  if (!(up > down) || isinf(up))
    up = 2 * down - kl_float_decode(to, kl_float_next(to, kl_float_encode(to, down), false));
  bool next = a >= up || takes_next((a - down) / (up - down), random_type, random);
  return kl_float_encode(to, copysign(next ? up : down, x));
}

typedef struct convert_job {
  kl_dtype from, random_type, to;
  bool splat[2];
  const void *x, *random;
  void *out;
} convert_job;

static void convert_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const convert_job *job = arg;
  for (int64_t i = begin; i < end; i++) {
    double x = kl_float_decode(job->from, kl_element_get(job->from, job->x, job->splat[0] ? 0 : i, 0));
    uint64_t random = kl_element_get(job->random_type, job->random, job->splat[1] ? 0 : i, 0);
    uint64_t r = kl_is_int(job->to) ? to_integer(job->to, x, job->random_type, random)
                                    : to_float(job->to, x, job->random_type, random);
    kl_element_set(job->to, job->out, i, 0, r);
  }
}

// Is one end NaN, in a format that overflows to it, and another not?
static bool overflow_differs(const kl_evval *v, int64_t i) {
  int nans = 0;
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI && kl_is_float(v->shape->dtype); plane++)
    nans += kl_float_is_nan(v->shape->dtype, kl_element_get(v->shape->dtype, kl_ev_plane(v, plane), i, 0));
  return nans == 1 || nans == 2;
}

// With one random number the result grows with x, so the ends of x give the ends of the result. Another random number
// may give the other neighbour: results whose random number is not known are open.
static void convert_planes(kl_ev *ev, convert_job *job, const kl_evval *const *operands, kl_evval *out) {
  const uint8_t *any[2] = {kl_ev_plane(operands[0], KL_EV_ANY), kl_ev_plane(operands[1], KL_EV_ANY)};
  for (int plane = KL_EV_LO; plane <= KL_EV_HI; plane++) {
    job->x = kl_ev_plane(operands[0], plane);
    job->out = kl_ev_plane(out, plane);
    kl_ev_parallel(ev, out->shape->count, 1 << 13, convert_piece, job);
  }
  uint8_t *open = kl_ev_plane(out, KL_EV_ANY);
  for (int64_t i = 0; i < out->shape->count; i++) {
    int64_t at[2] = {job->splat[0] ? 0 : i, job->splat[1] ? 0 : i};
    uint64_t lo = kl_element_get(job->random_type, kl_ev_plane(operands[1], KL_EV_LO), at[1], 0);
    uint64_t hi = kl_element_get(job->random_type, kl_ev_plane(operands[1], KL_EV_HI), at[1], 0);
    open[i] = (any[0] && any[0][at[0]]) || (any[1] && any[1][at[1]]) || lo != hi || overflow_differs(out, i);
  }
}

kiln_status kl_ev_stochastic(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out) {
  convert_job job = {operands[0]->shape->dtype, operands[1]->shape->dtype, in->shape->dtype};
  bool is_unsigned = kl_info(job.random_type)->cls == KL_CLASS_UINT;
  if (!kl_is_float(job.from) || !is_unsigned || kl_info(job.from)->bits != kl_info(job.random_type)->bits)
    return kl_ev_refuse(ev, in, "it takes floats and unsigned integers of their width");
  if (!kl_is_int(job.to) && !kl_is_float(job.to)) return kl_ev_refuse(ev, in, "it gives integers or floats");
  bool inexact = ev->intervals && !(kl_ev_exact(operands[0]) && kl_ev_exact(operands[1]));
  KL_TRY(kl_ev_new(ev, in->shape, false, inexact, out));
  for (int k = 0; k < 2; k++) job.splat[k] = kl_ev_single(operands[k]);
  job.x = kl_ev_plane(operands[0], KL_EV_DATA);
  job.random = kl_ev_plane(operands[1], KL_EV_DATA);
  job.out = kl_ev_plane(out, KL_EV_DATA);
  kl_ev_parallel(ev, in->shape->count, 1 << 13, convert_piece, &job);
  if (inexact) convert_planes(ev, &job, operands, out);
  return KILN_OK;
}

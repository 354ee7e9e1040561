// Sums of products, in blocks. Operands become doubles (integers 64-bit words) in panels of four rows, [depth][4]; a
// tile of 4 x 4 sums runs down two panels. Products of types up to f32 are exact in double; those of f64 are carried
// as pairs. Complex numbers are twice as deep and have twice the columns: row (a, b) of the left side meets columns
// (c, -d) and (d, c).
//
// With intervals a second tile sums |x||y|. Inexact operands come as middle and radius, x = m + r: then
//   |sum x y - sum m n| <= sum (|m| + r)(|n| + s) - sum |m||n|.
// Where sums leave the numbers, or might in some order, the element is summed again with care.
#include "eval/fold/chain.h"
#include "eval/fold/contract.h"

#include <float.h>
#include <limits.h>
#include <math.h>

enum { TILE = 4, BLOCK = 32, MAX_PLANES = 3 };
enum { DATA, MIDDLE, TOP }; // planes of a panel: values, middles, |middle| + radius

typedef double lanes __attribute__((vector_size(16)));
typedef int64_t words __attribute__((vector_size(16)));

typedef struct row_info {
  int64_t nonzero;
  int quantum; // all are multiples of 2^quantum
  bool open;   // nothing is known of what it meets
  bool odd;    // numbers too large for pairs, or none
} row_info;

typedef struct scratch {
  int64_t *at;
  char *raw;        // gathered elements
  double *value[3]; // by plane of the operand: both parts, one after the other
  uint8_t *any;
  double *panel[MAX_PLANES]; // BLOCK / TILE panels of the left side
  row_info *info;
} scratch;

typedef struct job {
  const kl_contraction *c;
  kl_evval *out;
  bool integers, complex, wide, point, intervals, exact_products;
  int parts, planes;
  int64_t depth, block;      // of reals; rows
  double *panel[MAX_PLANES]; // of the right side
  row_info *info;
  size_t panel_bytes, info_bytes, scratch_bytes;
  char *scratch;          // one after the other
  double largest, normal; // of the narrow type
} job;

// --- packing ------------------------------------------------------------------------------------------------------

#define GATHER_LOOP(T)                                                                                                 \
  do {                                                                                                                 \
    const T *s = src;                                                                                                  \
    T *d = dst, zero = {0};                                                                                            \
    for (int64_t k = 0; k < n; k++) d[k] = at[k] < 0 ? zero : s[at[k] * step];                                         \
  } while (0)

static void gather(size_t size, int64_t n, const int64_t *at, int64_t step, const void *src, void *dst) {
  typedef struct c128 {
    double re, im;
  } c128;
  switch (size) {
  case 1: GATHER_LOOP(uint8_t); break;
  case 2: GATHER_LOOP(uint16_t); break;
  case 4: GATHER_LOOP(uint32_t); break;
  case 8: GATHER_LOOP(uint64_t); break;
  default: GATHER_LOOP(c128); break;
  }
}

static void decode_ints(kl_dtype from, kl_dtype to, int64_t n, const void *raw, double *out) {
  for (int64_t k = 0; k < n; k++) {
    uint64_t bits = kl_convert(from, to, kl_element_get(from, raw, k, 0));
    if (kl_is_float(to))
      out[k] = kl_float_decode(to, bits);
    else if (kl_is_signed(to) || to == KILN_PRED)
      out[k] = (double)kl_int_decode(to, bits);
    else
      out[k] = (double)bits;
  }
}

// One plane of a row as doubles, parts one after the other.
static void load(const job *job, const kl_side *side, scratch *s, int plane, double *out) {
  kl_dtype from = side->v->shape->dtype, to = job->complex ? kl_info(job->c->t)->part : job->c->t;
  int64_t n = job->c->depth;
  gather(kl_ev_size(from), n, s->at, kl_ev_single(side->v) ? 0 : 1, kl_ev_plane(side->v, plane), s->raw);
  bool floats = kl_is_float(from) || kl_is_complex(from);
  for (int part = 0; part < job->parts; part++) {
    double *to_part = out + part * n;
    if (floats && !job->integers && (part == 0 || kl_is_complex(from)))
      kl_ev_decode(from, n, s->raw, part, to_part);
    else if (part == 0)
      decode_ints(from, to, n, s->raw, to_part);
    else
      memset(to_part, 0, (size_t)n * sizeof(double));
    for (int64_t k = 0; k < n && from == KILN_F8E8M0FNU; k++)
      if (s->at[k] < 0) to_part[k] = 0;
  }
}

static void load_words(const job *job, const kl_side *side, scratch *s, uint64_t *out) {
  kl_dtype from = side->v->shape->dtype;
  int64_t n = job->c->depth;
  gather(kl_ev_size(from), n, s->at, kl_ev_single(side->v) ? 0 : 1, kl_ev_plane(side->v, KL_EV_DATA), s->raw);
  for (int64_t k = 0; k < n; k++)
    out[k] = s->at[k] < 0
                 ? 0
                 : (uint64_t)kl_int_decode(job->c->t, kl_convert(from, job->c->t, kl_element_get(from, s->raw, k, 0)));
}

static int quantum_of(double x) {
  uint64_t u = kl_ev_f64_bits(x), e = u >> 52 & 0x7ff, m = u & ((1ull << 52) - 1);
  if (e) m |= 1ull << 52;
  return (int)(e ? e : 1) - 1075 + __builtin_ctzll(m);
}

// Products of pairs want room above and below.
static bool is_odd(const job *job, double x) {
  return !(fabs(x) <= (job->wide ? 0x1p480 : DBL_MAX));
}

static void learn(const job *job, int64_t n, const double *x, row_info *info) {
  for (int64_t k = 0; k < n; k++) {
    if (x[k] == 0) continue;
    info->nonzero++;
    if (is_odd(job, x[k])) info->odd = true;
    int q = quantum_of(x[k]);
    if (q < info->quantum) info->quantum = q;
    if (job->normal > 0 && (fabs(x[k]) > job->largest || fabs(x[k]) < job->normal)) info->open = true;
  }
}

// Middles and tops from lo and hi; an end that is no number says nothing unless both are the same.
static void find_middles(const job *job, scratch *s, int64_t n, row_info *info) {
  double *lo = s->value[1], *hi = s->value[2];
  for (int64_t k = 0; k < n; k++) {
    double a = lo[k], b = hi[k];
    if (a == b || a != a || b != b) {
      lo[k] = a;
      hi[k] = fabs(a);
      info->nonzero += a != 0;
      info->odd |= is_odd(job, a);
      continue;
    }
    info->nonzero++;
    if (a > b || is_odd(job, a) || is_odd(job, b)) info->open = true;
    double middle = a / 2 + b / 2, radius = fmax(b - middle, middle - a) * (1 + 0x1p-51);
    lo[k] = middle;
    hi[k] = (fabs(middle) + radius) * (1 + 0x1p-51);
  }
}

static bool met_open(const kl_side *side, const scratch *s, int64_t n) {
  const uint8_t *any = kl_ev_plane(side->v, KL_EV_ANY);
  for (int64_t k = 0; k < n && any; k++)
    if (s->at[k] >= 0 && any[kl_ev_single(side->v) ? 0 : s->at[k]]) return true;
  return false;
}

// Row i of a side into values by plane, both parts.
static void load_row(const job *job, const kl_side *side, int64_t i, scratch *s, row_info *info) {
  int64_t n = job->c->depth;
  side->index(side->arg, i, s->at);
  *info = (row_info){.quantum = INT_MAX, .open = met_open(side, s, n)};
  if (job->integers)
    load_words(job, side, s, (uint64_t *)s->value[0]);
  else
    load(job, side, s, KL_EV_DATA, s->value[0]);
  if (job->point) {
    if (!job->integers) learn(job, n * job->parts, s->value[0], info);
    return;
  }
  load(job, side, s, KL_EV_LO, s->value[1]);
  load(job, side, s, KL_EV_HI, s->value[2]);
  find_middles(job, s, n * job->parts, info);
}

// Rows of the left side keep their parts in order.
static void pack_left(const job *job, scratch *s, int64_t row, int64_t slot) {
  load_row(job, &job->c->lhs, row, s, &s->info[slot]);
  for (int p = 0; p < job->planes; p++) {
    double *to = s->panel[p] + slot / TILE * job->depth * TILE + slot % TILE;
    for (int64_t k = 0; k < job->depth; k++) to[k * TILE] = s->value[p][k];
  }
}

// Column (c, -d) for the real part, (d, c) for the imaginary one. Tops have no sign.
static void pack_right(const job *job, scratch *s, int64_t row) {
  int64_t n = job->c->depth;
  row_info info;
  load_row(job, &job->c->rhs, row, s, &info);
  for (int part = 0; part < job->parts; part++) {
    int64_t slot = row * job->parts + part;
    job->info[slot] = info;
    for (int p = 0; p < job->planes; p++) {
      double *to = job->panel[p] + slot / TILE * job->depth * TILE + slot % TILE;
      const double *first = s->value[p] + part * n, *second = s->value[p] + (1 - part) * n;
      double sign = part == 0 && p != TOP ? -1 : 1;
      for (int64_t k = 0; k < n; k++) to[k * TILE] = first[k];
      for (int64_t k = 0; k < n && job->complex; k++) to[(n + k) * TILE] = sign * second[k];
    }
  }
}

// --- tiles --------------------------------------------------------------------------------------------------------

static inline __attribute__((always_inline)) lanes size_of(lanes x) {
  return (lanes)((words)x & (words){INT64_MAX, INT64_MAX});
}

static inline __attribute__((always_inline)) void tile(int64_t depth, const double *a, const double *b, bool sizes,
                                                       double out[TILE][TILE]) {
  lanes sum[TILE][2] = {{{0}}};
  for (int64_t k = 0; k < depth; k++, a += TILE, b += TILE) {
    lanes b0 = {b[0], b[1]}, b1 = {b[2], b[3]};
    if (sizes) b0 = size_of(b0), b1 = size_of(b1);
    for (int i = 0; i < TILE; i++) {
      lanes x = {a[i], a[i]};
      if (sizes) x = size_of(x);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  memcpy(out, sum, sizeof sum);
}

static void tile_plain(int64_t depth, const double *a, const double *b, double out[TILE][TILE]) {
  tile(depth, a, b, false, out);
}
static void tile_sizes(int64_t depth, const double *a, const double *b, double out[TILE][TILE]) {
  tile(depth, a, b, true, out);
}

// The leading half of the bits (Veltkamp); values are below 2^970.
static inline __attribute__((always_inline)) lanes leading(lanes x) {
  lanes t = x * 0x1.0000002p27;
  return t - (t - x);
}

static void tile_wide(int64_t depth, const double *a, const double *b, double out[TILE][TILE],
                      double rest[TILE][TILE]) {
  for (int half = 0; half < 2; half++) {
    lanes sum[TILE] = {{0}}, low[TILE] = {{0}};
    const double *x = a, *y = b + 2 * half;
    for (int64_t k = 0; k < depth; k++, x += TILE, y += TILE) {
      lanes v = {y[0], y[1]}, v1 = leading(v), v2 = v - v1;
      for (int i = 0; i < TILE; i++) {
        lanes u = {x[i], x[i]}, u1 = leading(u), u2 = u - u1, p = u * v;
        lanes e = ((u1 * v1 - p) + u1 * v2 + u2 * v1) + u2 * v2;
        lanes s = sum[i] + p, z = s - sum[i];
        low[i] += ((sum[i] - (s - z)) + (p - z)) + e;
        sum[i] = s;
      }
    }
    for (int i = 0; i < TILE; i++) {
      memcpy(&out[i][2 * half], &sum[i], sizeof(lanes));
      memcpy(&rest[i][2 * half], &low[i], sizeof(lanes));
    }
  }
}

static void tile_words(int64_t depth, const uint64_t *a, const uint64_t *b, uint64_t out[TILE][TILE]) {
  memset(out, 0, sizeof(uint64_t) * TILE * TILE);
  for (int64_t k = 0; k < depth; k++, a += TILE, b += TILE)
    for (int i = 0; i < TILE; i++)
      for (int j = 0; j < TILE; j++) out[i][j] += a[i] * b[j];
}

// --- with care ----------------------------------------------------------------------------------------------------

// Sums that may leave the numbers, term by term. `s` has what does not depend on them.
static void sum_again(const job *job, const double *const a[MAX_PLANES], const double *const b[MAX_PLANES],
                      kl_total *s) {
  __float128 sum = 0, middle = 0, radius = 0, plus = 0, minus = 0;
  double special = 0;
  int m = job->point ? DATA : MIDDLE;
  for (int64_t k = 0; k < job->depth * TILE; k += TILE) {
    __float128 x = (__float128)a[DATA][k] * b[DATA][k], c = (__float128)a[m][k] * b[m][k];
    __float128 size = c < 0 ? -c : c, top = job->point ? size : (__float128)a[TOP][k] * b[TOP][k];
    if (x - x != 0) {
      special += (double)x;
      s->nan |= x != x;
      s->plus_inf |= x > 0;
      s->minus_inf |= x < 0;
      if (!job->point) s->open = true;
      continue;
    }
    sum += x;
    middle += c;
    radius += top - size;
    plus += c > -top ? (c + (top - size) > 0 ? c + (top - size) : 0) : 0;
    minus += (top - size) - c > 0 ? (top - size) - c : 0;
  }
  double first = (double)sum, rest = fabs(first) <= DBL_MAX ? (double)(sum - first) : 0;
  s->data = special != 0 ? (kl_pair){special, 0} : (kl_pair){first, rest};
  s->lo = s->hi = (kl_pair){first, rest};
  if (!job->point) {
    s->lo = (kl_pair){(double)(middle - radius), 0};
    s->hi = (kl_pair){(double)(middle + radius), 0};
  }
  s->plus = (double)plus * (1 + 0x1p-50);
  s->minus = (double)minus * (1 + 0x1p-50);
  s->size = s->plus + s->minus;
}

// --- elements -----------------------------------------------------------------------------------------------------

_Static_assert((int)TILE == (int)KL_CHAINS, "a tile is one of chains");

typedef struct sums {
  double value[TILE][TILE]; // of the one order; of words, not set
  double data[TILE][TILE], rest[TILE][TILE], size[TILE][TILE];
  double middle[TILE][TILE], middle_rest[TILE][TILE], middle_size[TILE][TILE];
  uint64_t word[TILE][TILE];
} sums;

static void run_tiles(const job *job, const double *const a[MAX_PLANES], const double *const b[MAX_PLANES], sums *s) {
  int64_t depth = job->depth;
  if (!job->integers) kl_chain(job->c->sum == KILN_F64, job->c->depth, job->parts, a[DATA], b[DATA], s->value);
  if (job->integers)
    tile_words(depth, (const uint64_t *)a[DATA], (const uint64_t *)b[DATA], s->word);
  else if (!job->intervals)
    return;
  else if (job->wide)
    tile_wide(depth, a[DATA], b[DATA], s->data, s->rest);
  else
    tile_plain(depth, a[DATA], b[DATA], s->data);
  if (!job->intervals || (job->point && job->integers)) return;
  if (job->point) {
    tile_sizes(depth, a[DATA], b[DATA], s->size);
    return;
  }
  if (job->wide)
    tile_wide(depth, a[MIDDLE], b[MIDDLE], s->middle, s->middle_rest);
  else
    tile_plain(depth, a[MIDDLE], b[MIDDLE], s->middle);
  tile_sizes(depth, a[MIDDLE], b[MIDDLE], s->middle_size);
  tile_plain(depth, a[TOP], b[TOP], s->size);
}

// Sums of n products in double are off by n 2^-53 S, as pairs by n^2 2^-104 S, and a single product is exact.
static void float_total(const job *job, const sums *v, int i, int j, kl_total *s) {
  double n = (double)s->terms;
  s->data = (kl_pair){v->data[i][j], job->wide ? v->rest[i][j] : 0};
  s->size = v->size[i][j] * (1 + n * 0x1p-51);
  s->plus = s->minus = s->size;
  s->lo = s->hi = s->data;
  if (n > 1) s->slack = (job->wide ? n * n * 0x1p-104 : n * 0x1p-52) * s->size;
  s->slack += (job->c->extra + n * job->c->per_term) * s->size;
  if (job->point) return;
  double radius = (v->size[i][j] - v->middle_size[i][j]) + n * 0x1p-50 * s->size;
  s->lo = kl_pair_add((kl_pair){v->middle[i][j], job->wide ? v->middle_rest[i][j] : 0}, -radius);
  s->hi = kl_pair_add((kl_pair){v->middle[i][j], job->wide ? v->middle_rest[i][j] : 0}, radius);
}

static void store_float(const job *job, const row_info *row, const row_info *column, const sums *v, int i, int j,
                        const double *const a[MAX_PLANES], const double *const b[MAX_PLANES], const kl_iv_out *out,
                        int64_t at, int part) {
  const kl_contraction *c = job->c;
  bool rounded_operands = c->extra > 0 || c->per_term > 0;
  kl_total s = {.products = true,
                .ordered = true,
                .value = v->value[i][j],
                .exact_products = job->exact_products,
                .point = job->point,
                .zero_sign_open = true,
                .terms = row->nonzero < column->nonzero ? row->nonzero : column->nonzero,
                .quantum = INT_MIN,
                .open = row->open || column->open};
  if (job->point && s.terms && !rounded_operands) s.quantum = row->quantum + column->quantum;
  bool odd = row->odd || column->odd;
  if (job->intervals && (!odd || !job->wide)) float_total(job, v, i, j, &s);
  bool infinite = !(fabs(s.data.sum) <= DBL_MAX);
  if (job->intervals && (odd || infinite || !kl_total_stays_finite(&s, c->acc))) {
    const double *x[MAX_PLANES] = {NULL}, *y[MAX_PLANES] = {NULL};
    for (int p = 0; p < job->planes; p++) x[p] = a[p] + i, y[p] = b[p] + j;
    sum_again(job, x, y, &s);
    double n = (double)s.terms;
    s.slack = (c->extra + n * c->per_term + (job->point ? 0x1p-100 : 0x1p-50) * (n > 1 ? n : 0)) * s.size;
  }
  kl_total_store(&s, c->acc, c->t, out, at, part);
}

static bool int_fits(kl_dtype t, double lo, double hi) {
  int bits = kl_info(t)->bits;
  double least = kl_is_signed(t) ? -ldexp(1, bits - 1) : 0, past = ldexp(1, kl_is_signed(t) ? bits - 1 : bits);
  return lo >= least && hi < past;
}

static void store_word(const job *job, const row_info *row, const row_info *column, const sums *v, int i, int j,
                       const kl_iv_out *out, int64_t at) {
  kl_dtype t = job->c->t;
  uint64_t word = t == KILN_PRED ? v->word[i][j] != 0 : v->word[i][j];
  kl_element_set(t, out->data, at, 0, word);
  if (!out->lo) return;
  kl_element_set(t, out->lo, at, 0, word);
  kl_element_set(t, out->hi, at, 0, word);
  if (job->point && !row->open && !column->open) return;
  double radius = v->size[i][j] - v->middle_size[i][j], lo = v->middle[i][j] - radius, hi = v->middle[i][j] + radius;
  // Below 2^51 all of this is exact, halves included.
  bool known = !job->point && !row->open && !column->open && v->size[i][j] <= 0x1p51;
  if (t == KILN_PRED && known) {
    out->lo[at] = lo > 0;
    out->hi[at] = hi > 0;
  } else if (known && int_fits(t, ceil(lo), floor(hi))) {
    kl_element_set(t, out->lo, at, 0, (uint64_t)(int64_t)ceil(lo));
    kl_element_set(t, out->hi, at, 0, (uint64_t)(int64_t)floor(hi));
  } else {
    kl_ev_open_at(t, out, at);
  }
}

static void run_pair(const job *job, const scratch *s, int64_t first_row, int64_t rows, int64_t left, int64_t right) {
  const double *a[MAX_PLANES] = {NULL}, *b[MAX_PLANES] = {NULL};
  int64_t columns = job->c->rhs.rows * job->parts;
  kl_iv_out out = kl_ev_out(job->out, 0);
  sums v;
  for (int p = 0; p < job->planes; p++) {
    a[p] = s->panel[p] + left * job->depth * TILE;
    b[p] = job->panel[p] + right * job->depth * TILE;
  }
  run_tiles(job, a, b, &v);
  for (int i = 0; i < TILE && left * TILE + i < rows; i++)
    for (int j = 0; j < TILE && right * TILE + j < columns; j++) {
      int64_t column = right * TILE + j;
      int64_t at = job->c->row_at[first_row + left * TILE + i] + job->c->col_at[column / job->parts];
      const row_info *row_of = &s->info[left * TILE + i], *column_of = &job->info[column];
      if (job->integers)
        store_word(job, row_of, column_of, &v, i, j, &out, at);
      else
        store_float(job, row_of, column_of, &v, i, j, a, b, &out, at, (int)(column % job->parts));
    }
}

// --- running ------------------------------------------------------------------------------------------------------

static size_t aligned(size_t n) {
  return (n + 15) / 16 * 16;
}

// Cuts `memory` up; NULL only counts the bytes.
static size_t place(const job *job, char *memory, scratch *s) {
  size_t depth = (size_t)job->c->depth, reals = (size_t)job->depth, at = 0;
#define TAKE(field, bytes)                                                                                             \
  do {                                                                                                                 \
    if (memory) s->field = (void *)(memory + at);                                                                      \
    at += aligned(bytes);                                                                                              \
  } while (0)
  TAKE(at, depth * sizeof(int64_t));
  TAKE(raw, depth * 16);
  for (int p = 0; p < 3; p++) TAKE(value[p], reals * sizeof(double));
  for (int p = 0; p < job->planes; p++) TAKE(panel[p], reals * (size_t)job->block * sizeof(double));
  TAKE(info, (size_t)job->block * sizeof(row_info));
#undef TAKE
  return at;
}

static void pack_columns(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const job *job = arg;
  scratch s = {0};
  place(job, job->scratch + worker * job->scratch_bytes, &s);
  for (int64_t row = begin; row < end; row++) pack_right(job, &s, row);
}

static void run_rows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const job *job = arg;
  scratch s = {0};
  place(job, job->scratch + worker * job->scratch_bytes, &s);
  int64_t columns = job->c->rhs.rows * job->parts;
  for (int64_t row = begin; row < end; row++) pack_left(job, &s, row, row - begin);
  for (int64_t right = 0; right * TILE < columns; right++)
    for (int64_t left = 0; left * TILE < end - begin; left++) run_pair(job, &s, begin, end - begin, left, right);
}

static void describe(const kl_ev *ev, const kl_contraction *c, const kl_evval *out, job *job) {
  job->integers = !kl_is_float(c->t) && !kl_is_complex(c->t);
  job->complex = kl_is_complex(c->t);
  job->parts = job->complex ? 2 : 1;
  job->intervals = !kl_ev_exact(out);
  job->point = !job->intervals || (kl_ev_exact(c->lhs.v) && kl_ev_exact(c->rhs.v));
  job->wide = !job->integers && c->acc == KILN_F64;
  job->planes = job->point ? 1 : MAX_PLANES;
  job->depth = c->depth * job->parts;
  // Few rows at a time where they are long.
  job->block = job->depth > 1 << 15 ? TILE : BLOCK;
  if (!job->integers) {
    kl_dtype a = c->lhs.v->shape->dtype, b = c->rhs.v->shape->dtype;
    int digits = 2 + kl_info(kl_is_complex(a) ? kl_info(a)->part : a)->man_bits +
                 kl_info(kl_is_complex(b) ? kl_info(b)->part : b)->man_bits;
    job->exact_products = digits <= kl_info(c->acc)->man_bits + 1 && kl_is_float(a) && kl_is_float(b) &&
                          kl_limits_of(a).exponent + kl_limits_of(b).exponent >= kl_limits_of(c->acc).exponent;
  }
  if (c->narrow != KILN_DTYPE_NONE) {
    kl_limits l = kl_limits_of(c->narrow);
    job->largest = l.max;
    job->normal = ldexp(1, l.exponent + l.digits - 1);
  }
}

static bool allocate(kl_ev *ev, job *job, uint32_t workers) {
  int64_t columns = job->c->rhs.rows * job->parts, panels = columns / TILE + (columns % TILE != 0), bytes;
  size_t all;
  job->info_bytes = (size_t)(panels * TILE) * sizeof(row_info);
  job->scratch_bytes = place(job, NULL, NULL);
  if (__builtin_mul_overflow(panels * TILE * (int64_t)sizeof(double), job->depth, &bytes) ||
      __builtin_mul_overflow(job->scratch_bytes, workers, &all))
    return false;
  job->panel_bytes = (size_t)bytes;
  bool ok = (job->scratch = kl_try_alloc(ev->cx, all)) && (job->info = kl_try_alloc(ev->cx, job->info_bytes));
  for (int p = 0; p < job->planes && ok; p++) ok = (job->panel[p] = kl_try_alloc(ev->cx, job->panel_bytes)) != NULL;
  return ok;
}

kiln_status kl_contract(kl_ev *ev, const kl_contraction *c, kl_evval *out) {
  job job = {.c = c, .out = out};
  if (c->lhs.rows == 0 || c->rhs.rows == 0) return KILN_OK;
  describe(ev, c, out, &job);
  uint32_t workers = kl_ev_workers(ev, c->lhs.rows, job.block), packers = kl_ev_workers(ev, c->rhs.rows, 16);
  if (packers > workers) workers = packers;
  bool ok = allocate(ev, &job, workers);
  if (ok) {
    kl_ev_parallel(ev, c->rhs.rows, 16, pack_columns, &job);
    kl_ev_parallel(ev, c->lhs.rows, job.block, run_rows, &job);
  }
  for (int p = 0; p < MAX_PLANES; p++) kl_free(ev->cx, job.panel[p], job.panel_bytes);
  kl_free(ev->cx, job.info, job.info_bytes);
  kl_free(ev->cx, job.scratch, job.scratch_bytes * workers);
  return ok ? KILN_OK : kl_out_of_memory(ev->cx, job.panel_bytes, "a contraction");
}

kl_dtype kl_accumulation_type(kl_dtype a, kl_dtype b, kl_dtype t) {
  kl_dtype all[3] = {a, b, t};
  for (int k = 0; k < 3; k++)
    if (all[k] == KILN_F64 || all[k] == KILN_C128) return KILN_F64;
  return KILN_F32;
}

bool kl_contraction_rounds(const kl_contraction *c) {
  return kl_is_float(c->t) || kl_is_complex(c->t);
}

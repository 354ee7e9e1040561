// fft: the transforms of HLO over the last dimensions, of any lengths.
//
// One dimension after the other, in long double: mixed radix by decimation in time, and Bluestein's convolution for
// prime factors that are large. Real input is taken as complex, real output as the transform of the spectrum that is
// completed by symmetry.
#include "eval/special/num.h"

enum { LARGE_PRIME = 64 };

// --- one dimension ------------------------------------------------------------------------------------------------

// Transforms of n points. roots[k] = exp(-2 pi i k / n). A large prime factor p has a convolution of `size` points, a
// power of two from 2 p - 1 up: chirp[k] = exp(-pi i k^2 / p), filter the transform of its conjugate, made periodic.
typedef struct plan {
  int64_t n, prime, size;
  num *roots, *chirp, *filter;
  struct plan *inner;
} plan;

static num root(int64_t k, int64_t n) {
  // An eighth of the circle is enough, and exact at its ends.
  int64_t eighth = (int64_t)(((__int128)k * 8) / n);
  long double angle = 2 * M_PIl * (long double)k / (long double)n;
  if (eighth == 0 || eighth == 7) {
    if (eighth == 7) angle = -2 * M_PIl * (long double)(n - k) / (long double)n;
    return (num){cosl(angle), -sinl(angle)};
  }
  // Around a quarter turn: cos(q + d) = -sin d, sin(q + d) = cos d, and so on.
  int quarter = (int)((eighth + 1) / 2);
  long double d = 2 * M_PIl * (long double)(4 * (__int128)k - (__int128)quarter * n) / (4 * (long double)n);
  long double c = cosl(d), s = sinl(d);
  switch (quarter) {
  case 1: return (num){-s, -c};
  case 2: return (num){-c, s};
  default: return (num){s, c};
  }
}

static int64_t least_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t p = 2; p <= n / p; p++)
    if (n % p == 0) return p;
  return n;
}

static int64_t largest_prime(int64_t n) {
  int64_t most = 1;
  for (int64_t p = 2; n > 1; p = p > n / p ? n : p + 1)
    for (; n % p == 0; n /= p) most = p;
  return most;
}

static void free_plan(kl_ev *ev, plan *p) {
  if (p->inner) free_plan(ev, p->inner);
  kl_free(ev->cx, p->inner, sizeof *p->inner);
  kl_free(ev->cx, p->roots, p->roots ? (size_t)p->n * sizeof(num) : 0);
  kl_free(ev->cx, p->chirp, p->chirp ? (size_t)p->prime * sizeof(num) : 0);
  kl_free(ev->cx, p->filter, p->filter ? (size_t)p->size * sizeof(num) : 0);
}

static num *try_nums(kl_ev *ev, int64_t n) {
  size_t size;
  return __builtin_mul_overflow((size_t)n, sizeof(num), &size) ? NULL : kl_try_alloc(ev->cx, size);
}

// Numbers of room that one transform needs beside its result.
static int64_t scratch_of(const plan *p) {
  return p->inner ? 2 * p->size : 0;
}

static void transform(const plan *p, int64_t n, const num *x, int64_t stride, num *out, num *scratch);

// A convolution of power-of-two size stands for a transform of prime length.
static void bluestein(const plan *p, const num *x, int64_t stride, num *out, num *scratch) {
  num *a = scratch, *b = scratch + p->size;
  memset(a, 0, (size_t)p->size * sizeof(num));
  for (int64_t k = 0; k < p->prime; k++) a[k] = num_mul(x[k * stride], p->chirp[k]);
  transform(p->inner, p->size, a, 1, b, NULL);
  for (int64_t k = 0; k < p->size; k++) a[k] = num_conj(num_mul(b[k], p->filter[k]));
  transform(p->inner, p->size, a, 1, b, NULL);
  for (int64_t k = 0; k < p->prime; k++) {
    num y = num_mul(num_conj(b[k]), p->chirp[k]);
    out[k] = (num){y.re / (long double)p->size, y.im / (long double)p->size};
  }
}

static num times_i(num x) {
  return (num){-x.im, x.re};
}

// `radix` transforms of m points, one after the other in out, become one of radix * m.
static void combine(const plan *p, int64_t radix, int64_t m, num *out) {
  int64_t step = p->n / (radix * m);
  num t[LARGE_PRIME];
  for (int64_t k = 0; k < m; k++) {
    for (int64_t r = 0; r < radix; r++) t[r] = num_mul(out[r * m + k], p->roots[r * k * step]);
    if (radix == 4) {
      num even = num_add(t[0], t[2]), odd = num_add(t[1], t[3]), a = num_sub(t[0], t[2]),
          b = times_i(num_sub(t[1], t[3]));
      out[k] = num_add(even, odd);
      out[k + m] = num_sub(a, b);
      out[k + 2 * m] = num_sub(even, odd);
      out[k + 3 * m] = num_add(a, b);
      continue;
    }
    for (int64_t q = 0; q < radix; q++) {
      num sum = t[0];
      for (int64_t r = 1; r < radix; r++) sum = num_add(sum, num_mul(t[r], p->roots[q * r % radix * (p->n / radix)]));
      out[k + q * m] = sum;
    }
  }
}

// out[k] = sum of x[j * stride] exp(-2 pi i j k / n); n divides p->n. The depth is the number of factors.
static void transform(const plan *p, int64_t n, const num *x, int64_t stride, num *out, num *scratch) {
  if (n <= 1) {
    if (n) out[0] = x[0];
    return;
  }
  int64_t radix = least_factor(n), m = n / radix;
  if (radix > LARGE_PRIME) {
    bluestein(p, x, stride, out, scratch);
    return;
  }
  for (int64_t r = 0; r < radix; r++) transform(p, m, x + r * stride, stride * radix, out + r * m, scratch);
  combine(p, radix, m, out);
}

static bool make_plan(kl_ev *ev, int64_t n, plan *p);

static bool make_convolution(kl_ev *ev, plan *p) {
  for (p->size = 1; p->size < 2 * p->prime - 1;) p->size *= 2;
  p->inner = kl_alloc(ev->cx, sizeof *p->inner);
  p->chirp = try_nums(ev, p->prime);
  p->filter = try_nums(ev, p->size);
  num *x = try_nums(ev, p->size);
  bool ok = make_plan(ev, p->size, p->inner) && p->chirp && p->filter && x;
  for (int64_t k = 0; ok && k < p->prime; k++)
    p->chirp[k] = root((int64_t)((__int128)k * k % (2 * (__int128)p->prime)), 2 * p->prime);
  for (int64_t k = 0; ok && k < p->prime; k++) x[k] = x[k ? p->size - k : 0] = num_conj(p->chirp[k]);
  if (ok) transform(p->inner, p->size, x, 1, p->filter, NULL);
  kl_free(ev->cx, x, x ? (size_t)p->size * sizeof(num) : 0);
  return ok;
}

// False without memory; free_plan then frees what there is.
static bool make_plan(kl_ev *ev, int64_t n, plan *p) {
  *p = (plan){.n = n, .prime = largest_prime(n)};
  p->roots = try_nums(ev, n);
  if (!p->roots) return n == 0;
  for (int64_t k = 0; k < n; k++) p->roots[k] = root(k, n);
  return p->prime <= LARGE_PRIME || make_convolution(ev, p);
}

// --- all dimensions -----------------------------------------------------------------------------------------------

enum { MAX_FFT_RANK = 3 };

typedef struct fft_job {
  kl_fft_type type;
  uint32_t rank;
  const kl_evval *in;
  kl_evval *out;
  plan plan[MAX_FFT_RANK];
  int64_t length[MAX_FFT_RANK];
  int64_t points, in_row, out_row; // of one transform: all lengths; last dimension of operand and result
  double factor;                   // of the radius
  num **room;                      // per worker: 2 * points, and what a line needs
} fft_job;

// Two arrays of `points` numbers in turn, then a line, its result, and scratch.
static int64_t room_of(const fft_job *job) {
  int64_t longest = 0, scratch = 0;
  for (uint32_t d = 0; d < job->rank; d++) {
    longest = job->length[d] > longest ? job->length[d] : longest;
    scratch = scratch_of(&job->plan[d]) > scratch ? scratch_of(&job->plan[d]) : scratch;
  }
  return job->points + 2 * longest + scratch;
}

static void along(const fft_job *job, uint32_t d, bool inverse, num *x, num *line) {
  int64_t n = job->length[d], inner = 1, outer = 1;
  for (uint32_t k = d + 1; k < job->rank; k++) inner *= job->length[k];
  for (uint32_t k = 0; k < d; k++) outer *= job->length[k];
  num *result = line + n, *scratch = result + n;
  for (int64_t i = 0; i < outer * inner; i++) {
    num *at = x + i / inner * n * inner + i % inner;
    for (int64_t k = 0; k < n; k++) line[k] = inverse ? num_conj(at[k * inner]) : at[k * inner];
    transform(&job->plan[d], n, line, 1, result, scratch);
    for (int64_t k = 0; k < n; k++) at[k * inner] = inverse ? num_conj(result[k]) : result[k];
  }
}

// Of one transform: the sum of all magnitudes and slacks of its operand; NaN and infinities pass.
typedef struct norm {
  double size, slack;
} norm;

static norm load(const fft_job *job, int64_t which, num *x) {
  kl_dtype t = job->in->shape->dtype;
  int64_t rows = job->points / job->length[job->rank - 1], n = job->length[job->rank - 1];
  norm r = {0, 0};
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < job->in_row; k++) {
      int64_t at = (which * rows + i) * job->in_row + k;
      num v = num_get(t, kl_ev_plane(job->in, KL_EV_DATA), job->in->splat ? 0 : at);
      double size = num_size(v), slack = num_slack(job->in, at);
      int twice = job->type == KL_IRFFT ? 2 : 1; // the other half of the spectrum
      x[i * n + k] = v;
      r.size += twice * size;
      r.slack += twice * slack;
    }
  return r;
}

// The last dimension of a spectrum of real numbers: x[n - k] = conj x[k]. Imaginary parts that real numbers cannot
// have, at 0 and n / 2, only reach the imaginary part of the result, which nobody takes.
static void complete(const fft_job *job, num *x) {
  int64_t n = job->length[job->rank - 1], rows = job->points / n;
  for (int64_t i = 0; i < rows; i++, x += n)
    for (int64_t k = 1; k < n - k; k++) x[n - k] = num_conj(x[k]);
}

// Open where the sum of all magnitudes, which nothing on the way exceeds, may overflow.
static double radius_of(const fft_job *job, norm r) {
  kl_dtype part = num_part(job->out->shape->dtype);
  double most = kl_float_decode(part, kl_float_next(part, kl_float_encode(part, INFINITY), false));
  bool inverse = job->type == KL_IFFT || job->type == KL_IRFFT;
  if (!(r.size + r.slack < most / 4)) return INFINITY;
  double radius = (job->factor * num_unit(part) * r.size + r.slack) * (1 + 0x1p-20);
  return (inverse ? radius / (double)job->points : radius) + 2 * num_least(part);
}

// Is the spectrum of real numbers real at this index of a transform's result?
static bool real_at(const fft_job *job, int64_t row, int64_t k) {
  bool real = true;
  for (uint32_t d = job->rank; d-- > 0;) {
    int64_t n = job->length[d];
    if (d + 1 < job->rank) k = row % n, row /= n;
    real &= k == 0 || 2 * k == n;
  }
  return real;
}

static void transform_one(const fft_job *job, int64_t which, num *x) {
  uint32_t last = job->rank - 1;
  int64_t n = job->length[last], rows = job->points / n;
  num *line = x + job->points;
  norm r = load(job, which, x);
  bool inverse = job->type == KL_IFFT || job->type == KL_IRFFT;
  if (job->type == KL_IRFFT) {
    // The leading dimensions first: only then is the last one the spectrum of real numbers.
    for (uint32_t d = 0; d < last; d++) along(job, d, true, x, line);
    complete(job, x);
    along(job, last, true, x, line);
  } else {
    for (uint32_t d = job->rank; d-- > 0;) along(job, d, inverse, x, line);
  }
  double radius = radius_of(job, r);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < job->out_row; k++) {
      num v = x[i * n + k];
      if (job->type == KL_RFFT && real_at(job, i, k)) v.im = 0;
      if (inverse) v = (num){v.re / (long double)job->points, v.im / (long double)job->points};
      num_put(job->out, (which * rows + i) * job->out_row + k, v, radius);
    }
}

static void fft_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fft_job *job = arg;
  for (int64_t i = begin; i < end; i++) transform_one(job, i, job->room[worker]);
}

// The roundings that a result goes through, counted as eval.h says.
static double roundings(int64_t n) {
  double r = 0;
  for (int64_t p = 2; n > 1; p = p > n / p ? n : p + 1)
    for (; n % p == 0; n /= p) r += p <= 16 ? (double)p + 4 : 6 * log2((double)p) + 20;
  return r;
}

// What a convolution in place of a transform of prime length does to errors.
static double growth(int64_t n) {
  int64_t p = largest_prime(n);
  return p > 16 ? sqrt(2 * (double)p) : 1;
}

static kiln_status run(kl_ev *ev, fft_job *job, int64_t transforms) {
  uint32_t workers = kl_ev_workers(ev, transforms, 1);
  int64_t room = room_of(job);
  job->room = kl_alloc(ev->cx, workers * sizeof(num *));
  bool ok = true;
  for (uint32_t k = 0; k < workers; k++) ok &= (job->room[k] = try_nums(ev, room)) != NULL;
  if (ok) kl_ev_parallel(ev, transforms, 1, fft_piece, job);
  for (uint32_t k = 0; k < workers; k++) kl_free(ev->cx, job->room[k], job->room[k] ? (size_t)room * sizeof(num) : 0);
  kl_free(ev->cx, job->room, workers * sizeof(num *));
  return ok ? KILN_OK : kl_out_of_memory(ev->cx, (size_t)room * sizeof(num), "a Fourier transform");
}

static kiln_status check_fft(kl_ev *ev, const kl_instr *in, const kl_shape *from) {
  kl_ints sizes = in->more->sizes;
  kl_dtype t = from->dtype, part = num_part(t), to = in->shape->dtype;
  bool real_in = in->more->fft == KL_RFFT, real_out = in->more->fft == KL_IRFFT;
  if (sizes.n < 1 || sizes.n > MAX_FFT_RANK || sizes.n > from->rank)
    return kl_ev_refuse(ev, in, "a transform has 1 to 3 dimensions");
  bool types = (part == KILN_F32 || part == KILN_F64) && kl_is_complex(t) != real_in && kl_is_complex(to) != real_out &&
               num_part(to) == part;
  if (!types) return kl_ev_refuse(ev, in, "it is on c64 and c128, and f32 and f64 where numbers are real");
  for (uint32_t d = 0; d < sizes.n; d++) {
    uint32_t at = from->rank - sizes.n + d;
    int64_t n = sizes.p[d], half = d + 1 == sizes.n ? n / 2 + 1 : n;
    // Without points XLA leaves the half spectrum empty, or takes one of one number.
    bool fits = n == 0 || (from->dims[at] == (real_out ? half : n) && in->shape->dims[at] == (real_in ? half : n));
    if (n < 0 || !fits) return kl_ev_refuse(ev, in, "its lengths do not fit its shapes");
  }
  return KILN_OK;
}

kiln_status kl_ev_fft(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_evval *x = operands[0];
  const kl_shape *s = in->shape;
  KL_TRY(check_fft(ev, in, x->shape));
  kl_ints sizes = in->more->sizes;
  fft_job job = {.type = in->more->fft, .rank = sizes.n, .in = x, .out = out, .points = 1};
  for (uint32_t d = 0; d < job.rank; d++) {
    job.length[d] = sizes.p[d];
    if (__builtin_mul_overflow(job.points, sizes.p[d], &job.points)) return kl_out_of_memory(ev->cx, SIZE_MAX, "fft");
    job.factor += roundings(sizes.p[d]);
  }
  KL_TRY(kl_ev_new(ev, s, false, ev->intervals && s->count > 0, out));
  if (s->count == 0 || job.points == 0) return KILN_OK;
  job.in_row = x->shape->dims[x->shape->rank - 1];
  job.out_row = s->dims[s->rank - 1];
  job.factor = 3 * (job.factor + 4);
  for (uint32_t d = 0; d < job.rank; d++) job.factor *= growth(job.length[d]);
  kiln_status status = KILN_OK;
  for (uint32_t d = 0; d < job.rank && status == KILN_OK; d++)
    if (!make_plan(ev, job.length[d], &job.plan[d]))
      status = kl_out_of_memory(ev->cx, (size_t)job.length[d] * sizeof(num), "a Fourier transform");
  int64_t row = job.points / job.length[job.rank - 1] * job.out_row;
  if (status == KILN_OK) status = run(ev, &job, s->count / row);
  for (uint32_t d = 0; d < job.rank; d++) free_plan(ev, &job.plan[d]);
  if (status == KILN_OK)
    num_close(ev, out);
  else
    kl_ev_free(ev, out);
  return status;
}

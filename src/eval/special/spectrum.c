#include "eval/special/spectrum.h"

static num times(num x, long double by) {
  return (num){x.re * by, x.im * by};
}

static long double square(num x) {
  return x.re * x.re + x.im * x.im;
}

// --- to a tridiagonal matrix ----------------------------------------------------------------------------------------

// Column k of a below its diagonal, x, goes to a multiple of the first unit vector by 1 - f v v^H with
// v = x + |x| x_0 / |x_0| e_0. Returns f; 0: nothing is to be done.
static long double reflector(int64_t n, const num *a, int64_t k, num *v) {
  long double all = 0, below = 0;
  for (int64_t i = k + 1; i < n; i++) {
    v[i] = a[i * n + k];
    all += square(v[i]);
    if (i > k + 1) below += square(v[i]);
  }
  if (below == 0) return 0;
  long double length = sqrtl(all), first = sqrtl(square(v[k + 1]));
  num unit = first > 0 ? times(v[k + 1], 1 / first) : (num){1, 0};
  v[k + 1] = num_add(v[k + 1], times(unit, length));
  return 1 / (all + length * first); // 2 / |v|^2
}

// a := H a H, from row and column k on: a less v w^H + w v^H with p = f a v, w = p - f / 2 (v^H p) v.
static void reflect(int64_t n, num *a, int64_t k, const num *v, long double f, num *w) {
  num dot = {0, 0};
  for (int64_t i = k; i < n; i++) {
    num sum = {0, 0};
    for (int64_t j = k + 1; j < n; j++) sum = num_add(sum, num_mul(a[i * n + j], v[j]));
    w[i] = times(sum, f);
    if (i > k) dot = num_add(dot, num_mul(num_conj(v[i]), w[i]));
  }
  dot = times(dot, f / 2);
  for (int64_t i = k + 1; i < n; i++) w[i] = num_sub(w[i], num_mul(dot, v[i]));
  for (int64_t i = k; i < n; i++)
    for (int64_t j = k; j < n; j++) {
      num less = i > k ? num_mul(v[i], num_conj(w[j])) : (num){0, 0};
      if (j > k) less = num_add(less, num_mul(w[i], num_conj(v[j])));
      a[i * n + j] = num_sub(a[i * n + j], less);
    }
}

// Rows of z are columns of a product q, which becomes q H.
static void collect(int64_t n, num *z, int64_t k, const num *v, long double f, num *w) {
  for (int64_t i = 0; i < n; i++) w[i] = (num){0, 0};
  for (int64_t j = k + 1; j < n; j++)
    for (int64_t i = 0; i < n; i++) w[i] = num_add(w[i], num_mul(z[j * n + i], v[j]));
  for (int64_t j = k + 1; j < n; j++) {
    num by = times(num_conj(v[j]), f);
    for (int64_t i = 0; i < n; i++) z[j * n + i] = num_sub(z[j * n + i], num_mul(w[i], by));
  }
}

// d on the diagonal, |.| of what is beside it in e, whose phases go into the rows of z.
static void to_tridiagonal(int64_t n, num *a, num *z, num *d, num *line) {
  num *v = line, *w = line + n, phase = {1, 0};
  for (int64_t i = 0; i < n * n; i++) z[i] = (num){i / n == i % n, 0};
  for (int64_t k = 0; k + 2 < n; k++) {
    long double f = reflector(n, a, k, v);
    if (f == 0) continue;
    reflect(n, a, k, v, f, w);
    collect(n, z, k, v, f, w);
  }
  for (int64_t k = 0; k < n; k++) {
    num beside = k + 1 < n ? a[(k + 1) * n + k] : (num){0, 0};
    long double size = sqrtl(square(beside));
    d[k] = (num){a[k * n + k].re, size};
    for (int64_t i = 0; i < n; i++) z[k * n + i] = num_mul(z[k * n + i], phase);
    if (size > 0) phase = num_mul(phase, times(beside, 1 / size));
  }
}

// --- QL -------------------------------------------------------------------------------------------------------------

static void rotate(int64_t n, num *low, num *high, long double s, long double c) {
  for (int64_t i = 0; i < n; i++) {
    num x = low[i], y = high[i];
    high[i] = num_add(times(x, s), times(y, c));
    low[i] = num_sub(times(x, c), times(y, s));
  }
}

// One implicit step between l and m; d and e are parts of t.
static void step(int64_t n, num *t, num *z, int64_t l, int64_t m) {
  long double g = (t[l + 1].re - t[l].re) / (2 * t[l].im), r = hypotl(g, 1), s = 1, c = 1, p = 0;
  g = t[m].re - t[l].re + t[l].im / (g + copysignl(r, g));
  for (int64_t i = m - 1; i >= l; i--) {
    long double f = s * t[i].im, b = c * t[i].im;
    r = t[i + 1].im = hypotl(f, g);
    if (r == 0) {
      t[i + 1].re -= p;
      t[m].im = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = t[i + 1].re - p;
    r = (t[i].re - g) * s + 2 * c * b;
    p = s * r;
    t[i + 1].re = g + p;
    g = c * r - b;
    rotate(n, z + i * n, z + (i + 1) * n, s, c);
  }
  t[l].re -= p;
  t[l].im = g;
  t[m].im = 0;
}

enum { MOST_STEPS = 100 };

static bool diagonalise(int64_t n, num *t, num *z) {
  long double size = 0;
  for (int64_t i = 0; i < n; i++) size = fmaxl(size, fabsl(t[i].re) + t[i].im);
  for (int64_t l = 0; l < n; l++)
    for (int steps = 0;; steps++) {
      int64_t m = l;
      while (m + 1 < n && fabsl(t[m].im) > 0x1p-64L * size) m++;
      if (m == l) break;
      if (steps == MOST_STEPS) return false;
      step(n, t, z, l, m);
    }
  return true;
}

static void sort(int64_t n, num *t, num *z, long double *w, int64_t *order) {
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i;
    for (; k > 0 && t[order[k - 1]].re > t[i].re; k--) order[k] = order[k - 1];
    order[k] = i;
  }
  for (int64_t i = 0; i < n; i++) w[i] = t[order[i]].re;
  // Rows to their places, along the cycles of the permutation: row i comes from order[i].
  for (int64_t i = 0; i < n; i++) {
    int64_t from = order[i];
    while (from < i) from = order[from];
    for (int64_t j = 0; from != i && j < n; j++) {
      num x = z[i * n + j];
      z[i * n + j] = z[from * n + j];
      z[from * n + j] = x;
    }
  }
}

bool kl_ev_spectrum(int64_t n, kl_ev_spectra *r) {
  num *t = r->line + 2 * n;
  to_tridiagonal(n, r->a, r->z, t, r->line);
  if (!diagonalise(n, t, r->z)) return false;
  sort(n, t, r->z, r->w, r->order);
  return true;
}

// --- memory ---------------------------------------------------------------------------------------------------------

typedef struct spectra_job {
  const void *job;
  void (*one)(const void *job, int64_t which, kl_ev_spectra *r);
  int64_t n;
  char *memory;
  size_t bytes; // by worker
} spectra_job;

static size_t bytes_of(int64_t n) {
  size_t square, lines, size = (size_t)n;
  bool over = __builtin_mul_overflow(size, size, &square) || __builtin_mul_overflow(square, 2 * sizeof(num), &square) ||
              __builtin_mul_overflow(size, 3 * sizeof(num) + sizeof(long double) + sizeof(int64_t), &lines) ||
              __builtin_add_overflow(square, lines, &square) || square > SIZE_MAX - 64;
  return over ? SIZE_MAX : (square + 63) & ~(size_t)63;
}

static void run_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const spectra_job *j = arg;
  size_t n = (size_t)j->n;
  kl_ev_spectra r = {.a = (num *)(j->memory + worker * j->bytes)};
  r.z = r.a + n * n;
  r.line = r.z + n * n;
  r.w = (long double *)(r.line + 3 * n);
  r.order = (int64_t *)(r.w + n);
  for (int64_t which = begin; which < end; which++) j->one(j->job, which, &r);
}

kiln_status kl_ev_run_spectra(kl_ev *ev, int64_t batches, int64_t n, const void *job,
                              void (*one)(const void *job, int64_t which, kl_ev_spectra *r)) {
  spectra_job j = {job, one, n, NULL, bytes_of(n)};
  size_t workers = kl_ev_workers(ev, batches, 1), bytes;
  if (__builtin_mul_overflow(workers, j.bytes, &bytes)) bytes = SIZE_MAX;
  j.memory = bytes == SIZE_MAX ? NULL : kl_try_alloc(ev->cx, bytes);
  if (!j.memory) return kl_out_of_memory(ev->cx, bytes, "matrices");
  kl_ev_parallel(ev, batches, 1, run_piece, &j);
  kl_free(ev->cx, j.memory, bytes);
  return KILN_OK;
}

// --- errors ---------------------------------------------------------------------------------------------------------

double kl_ev_spectral_gamma(double unit, int64_t n) {
  double nu = 4 * (double)(n + 8) * unit;
  return nu < 0.5 ? nu / (1 - nu) : INFINITY;
}

double kl_ev_spectral_error(double gamma, double least, int64_t n, double size, double slack) {
  return (gamma + 64 * (double)n * 0x1p-64) * size + slack + 8 * (double)n * least;
}

// The sine of the angle is at most error / (gap - error) (Davis and Kahan, with Weyl's bound for the distances), and so
// far apart are vectors of that angle at most, times the root of 2.
double kl_ev_vector_radius(double error, double gap) {
  return gap > 2 * error ? 1.4143 * error / (gap - error) : INFINITY;
}

int64_t kl_ev_leading(int64_t n, const num *v, int64_t stride, double radius) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, num_size(v[i * stride]));
  for (int64_t i = 0; i < n; i++) {
    double size = num_size(v[i * stride]);
    if (8 * (size - radius) >= 5 * (most + radius)) return i;
    if (8 * (size + radius) >= 5 * (most - radius)) return -1;
  }
  return -1;
}

num kl_ev_phase(num leading) {
  long double size = sqrtl(square(leading));
  return size > 0 ? times(num_conj(leading), 1 / size) : (num){1, 0};
}

double kl_ev_turned_radius(double radius, num leading, bool is_complex) {
  return is_complex ? radius + 1.6 * radius / num_size(leading) : radius;
}

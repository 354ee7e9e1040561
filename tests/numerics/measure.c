#include "measure.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// --- one result, exactly ---------------------------------------------------------------------------------------------

// Enough to tell on which side of a tie the least bf16 angles lie: x^2 / 3 beside 1, with x = 2^-133.
enum { PRECISION = 320 };
typedef struct exact {
  mpfr_t x, y, r;
} exact;

static void exact_init(exact *e) {
  mpfr_init2(e->x, 53), mpfr_init2(e->y, 53), mpfr_init2(e->r, PRECISION);
}
static void exact_free(exact *e) {
  mpfr_clear(e->x), mpfr_clear(e->y), mpfr_clear(e->r);
}
static void evaluate(exact *e, const nu_function *f, double x, double y) {
  mpfr_set_d(e->x, x, MPFR_RNDN), mpfr_set_d(e->y, y, MPFR_RNDN);
  f->exact(e->r, e->x, e->y);
}

static double error_of(exact *e, const nu_function *f, nu_type t, double x, double y, double got) {
  const nu_type_info *i = &nu_types[t];
  evaluate(e, f, x, y);
  if (mpfr_nan_p(e->r) || isnan(got)) return mpfr_nan_p(e->r) && isnan(got) ? 0 : INFINITY;
  if (!mpfr_signbit(e->r) != !signbit(got)) return INFINITY;
  if (mpfr_zero_p(e->r)) return got == 0 ? 0 : INFINITY;
  if (mpfr_inf_p(e->r)) return isinf(got) ? 0 : INFINITY;
  long unit = mpfr_get_exp(e->r) - (long)i->significand;
  if (isinf(got)) { // stands for the next power of two, and for what is beyond
    long beyond = ilogb(i->largest) + 1;
    if (mpfr_get_exp(e->r) > beyond) return 0;
    mpfr_set_ui_2exp(e->x, 1, beyond, MPFR_RNDN);
    got = signbit(got) ? -1 : 1;
    mpfr_mul_d(e->x, e->x, got, MPFR_RNDN);
    mpfr_sub(e->r, e->r, e->x, MPFR_RNDN);
  } else {
    mpfr_sub_d(e->r, e->r, got, MPFR_RNDN);
  }
  mpfr_mul_2si(e->r, e->r, -(unit < i->least ? i->least : unit), MPFR_RNDN);
  mpfr_abs(e->r, e->r, MPFR_RNDN);
  double error = mpfr_get_d(e->r, MPFR_RNDN);
  int side = error == 0.5 ? mpfr_cmp_d(e->r, 0.5) : 0; // of a tie that is none
  return side ? nextafter(0.5, side < 0 ? 0 : 1) : error;
}

double nu_error(const nu_function *f, nu_type t, nu_number x, nu_number y, nu_number got) {
  if (nu_is_complex(t)) return nu_complex_error(f, t, x, y, got);
  exact e;
  exact_init(&e);
  double error = error_of(&e, f, t, x.re, y.re, got.re);
  exact_free(&e);
  return error;
}

double nu_hardness(const nu_function *f, nu_type t, nu_number x, nu_number y) {
  exact e;
  exact_init(&e);
  evaluate(&e, f, x.re, y.re);
  long unit = mpfr_get_exp(e.r) - (long)nu_types[t].significand;
  mpfr_mul_2si(e.r, e.r, 1 - (unit < nu_types[t].least ? nu_types[t].least : unit), MPFR_RNDN);
  mpfr_t whole;
  mpfr_init2(whole, PRECISION);
  mpfr_rint(whole, e.r, MPFR_RNDN);
  mpfr_sub(e.r, e.r, whole, MPFR_RNDN);
  double bits = mpfr_zero_p(e.r) ? INFINITY : 1 - log2(fabs(mpfr_get_d(e.r, MPFR_RNDN)));
  mpfr_clear(whole);
  exact_free(&e);
  return bits;
}

// --- a batch ---------------------------------------------------------------------------------------------------------

// Room for one batch and the result before it. Patterns are packed as the kernel wants them.
typedef struct batch {
  double x[NU_BATCH], y[NU_BATCH], r[NU_BATCH], got[NU_BATCH], errors[NU_BATCH];
  uint64_t bits[3][NU_BATCH];
  exact e;
  double largest; // error by the reference, in this batch
  size_t largest_at;
  bool before; // the batch before ended with these:
  double x_before, got_before, r_before;
} batch;

static void pack(nu_type t, void *to, size_t i, uint64_t bits) {
  if (nu_types[t].bits == 64)
    ((uint64_t *)to)[i] = bits;
  else if (nu_types[t].bits == 32)
    ((uint32_t *)to)[i] = (uint32_t)bits;
  else
    ((uint16_t *)to)[i] = (uint16_t)bits;
}

static void unpack(nu_type t, const void *from, double *to, size_t n) {
  if (t == NU_F64) memcpy(to, from, n * sizeof *to);
  for (size_t i = 0; nu_types[t].bits == 32 && i < n; i++) to[i] = ((const float *)from)[i];
  for (size_t i = 0; nu_types[t].bits == 16 && i < n; i++) to[i] = nu_decode(t, ((const uint16_t *)from)[i]);
}

static size_t fill(batch *b, const nu_function *f, nu_type t, bool all, uint64_t first, uint64_t count) {
  size_t n = count < NU_BATCH ? (size_t)count : NU_BATCH;
  for (size_t i = 0; i < NU_BATCH; i++) {
    uint64_t x, y = 0, index = first + (i < n ? i : n - 1);
    if (all)
      nu_all(f, t, index, &x, &y);
    else
      nu_sample(f, t, index, &x, &y);
    pack(t, b->bits[0], i, x);
    if (f->operands == 2) pack(t, b->bits[1], i, y);
  }
  unpack(t, b->bits[0], b->x, n);
  if (f->operands == 2) unpack(t, b->bits[1], b->y, n);
  return n;
}

// Errors of results against the reference, in units of the last place of the latter; no number where one of them is
// none or infinite, or the signs differ.
FOR_AVX2 static void errors_of(const nu_type_info *info, const double *r, const double *got, double *errors, size_t n) {
  int64_t least = info->least, digits = (int64_t)info->significand - 1;
  for (size_t i = 0; i < n; i++) {
    int64_t a, b;
    double scale, e;
    memcpy(&a, &r[i], sizeof a), memcpy(&b, &got[i], sizeof b);
    int64_t k = (int64_t)((uint64_t)a >> 52 & 2047) - 1023 - digits; // 2^k is the unit
    int64_t bits = (1023 - (k < least ? least : k)) << 52;
    memcpy(&scale, &bits, sizeof scale);
    e = fabs(got[i] - r[i]) * scale;
    errors[i] = (a ^ b) < 0 ? (double)NAN : e;
  }
}

// Takes a result's error by the reference, which is itself off by less than `slack` units: where that could decide,
// MPFR does. The largest error of a batch waits, so that one evaluation is enough for it.
static void judge(batch *b, const nu_function *f, nu_type t, size_t i, double error, double slack, bool sure,
                  nu_errors *out) {
  if (!sure || fabs(error - 0.5) <= slack) {
    error = error_of(&b->e, f, t, b->x[i], b->y[i], b->got[i]);
    out->off += error == 0.5 && (nu_encode(t, b->got[i]) & 1);
  }
  if (isinf(error)) {
    if (out->wrong++ == 0) out->wrong_at[0].re = b->x[i], out->wrong_at[1].re = b->y[i];
    return;
  }
  out->off += error > 0.5;
  if (error > b->largest) b->largest = error, b->largest_at = i;
}

static void take_largest(batch *b, const nu_function *f, nu_type t, double slack, nu_errors *out) {
  size_t i = b->largest_at;
  if (b->largest + slack <= out->worst || b->largest <= 2 * slack) return;
  double error = error_of(&b->e, f, t, b->x[i], b->y[i], b->got[i]);
  if (error > out->worst) out->worst = error, out->worst_at[0].re = b->x[i], out->worst_at[1].re = b->y[i];
}

#define NARROW_SLACK 0x1p-20
#define F64_SLACK    0x1p-9

static void compare_narrow(batch *b, const nu_function *f, nu_type t, size_t n, nu_errors *out) {
  double beyond = 2 * nu_types[t].largest;
  f->values(b->x, b->y, b->r, n);
  errors_of(&nu_types[t], b->r, b->got, b->errors, n);
  for (size_t i = 0; i < n; i++) {
    double r = b->r[i], got = b->got[i], error = b->errors[i];
    if (error < 0.5 - NARROW_SLACK) { // nearly all
      if (error > b->largest) b->largest = error, b->largest_at = i;
      continue;
    }
    if (isnan(r) && isnan(got)) continue;
    bool sure = !isnan(error);
    if (isinf(got) && (got > 0 ? r > beyond : r < -beyond)) continue;
    judge(b, f, t, i, error, NARROW_SLACK, sure && isfinite(error) && r != 0, out);
  }
  take_largest(b, f, t, NARROW_SLACK, out);
}

static void compare_f64(batch *b, const nu_function *f, size_t n, nu_errors *out) {
  for (size_t i = 0; i < n; i++) {
    long double r = f->wide(b->x[i], b->y[i]);
    double got = b->got[i];
    b->r[i] = (double)r;
    if (isnan(r) && isnan(got)) continue;
    bool sure = !signbit(r) == !signbit(got) && !isnan(r) && !isnan(got);
    if (sure && isinf(got) && fabsl(r) > 0x1p1024L) continue;
    if (sure && r == got && r == 0) continue;
    int e;
    frexpl(r, &e);
    double error = (double)ldexpl(fabsl(got - r), -(e - 53 < -1074 ? -1074 : e - 53));
    judge(b, f, NU_F64, i, error, F64_SLACK, sure && isfinite(error) && r != 0, out);
  }
  take_largest(b, f, NU_F64, F64_SLACK, out);
}

// Results of neighbours a < c that differ must differ as the exact ones do.
static void compare_neighbours(batch *b, const nu_function *f, double x, double got, double r, double x_next,
                               double got_next, double r_next, nu_errors *out) {
  if (!(x < x_next) || !(got < got_next || got > got_next) || isnan(r) || isnan(r_next)) return;
  double far = 0x1p-49 * (fabs(r) + fabs(r_next));
  if (got < got_next ? r_next - r > far : r - r_next > far) return;
  mpfr_t lower;
  mpfr_init2(lower, PRECISION);
  evaluate(&b->e, f, x, 0);
  mpfr_set(lower, b->e.r, MPFR_RNDN);
  evaluate(&b->e, f, x_next, 0);
  int order = mpfr_cmp(b->e.r, lower);
  mpfr_clear(lower);
  if (got < got_next ? order > 0 : order < 0) return;
  if (out->inversions++ == 0) out->inversion_at = x;
}

static bool measure_batch(kiln_context *cx, nu_kernel *k, batch *b, const nu_function *f, nu_type t, bool all,
                          uint64_t first, uint64_t count, nu_errors *out) {
  size_t n = fill(b, f, t, all, first, count);
  if (!nu_kernel_run(cx, k, b->bits[0], b->bits[1], b->bits[2])) return false;
  unpack(t, b->bits[2], b->got, n);
  b->largest = 0;
  if (t == NU_F64)
    compare_f64(b, f, n, out);
  else
    compare_narrow(b, f, t, n, out);
  out->inputs += n;
  if (f->operands == 2) return true;
  if (all && b->before)
    compare_neighbours(b, f, b->x_before, b->got_before, b->r_before, b->x[0], b->got[0], b->r[0], out);
  for (size_t i = 0; i + 1 < n; i++)
    if (b->got[i] != b->got[i + 1] && (all || ((first + i) % 2 == 0 && nu_neighbours(first + i)))) {
      size_t a = b->x[i] < b->x[i + 1] ? i : i + 1, c = a == i ? i + 1 : i;
      compare_neighbours(b, f, b->x[a], b->got[a], b->r[a], b->x[c], b->got[c], b->r[c], out);
    }
  b->before = true, b->x_before = b->x[n - 1], b->got_before = b->got[n - 1], b->r_before = b->r[n - 1];
  return true;
}

// --- all of them -----------------------------------------------------------------------------------------------------

typedef struct job {
  kiln_context *cx;
  nu_kernel *k;
  const nu_function *f;
  nu_type t;
  bool all, good;
  uint64_t first, count;
  nu_errors out;
} job;

static void *work(void *user) {
  job *j = user;
  if (nu_is_complex(j->t)) {
    j->good = nu_complex_measure(j->cx, j->k, j->f, j->t, j->first, j->count, &j->out);
    return NULL;
  }
  batch *b = calloc(1, sizeof *b);
  exact_init(&b->e);
  j->good = true;
  if (j->all && j->first > 0) { // the neighbour below the first belongs to this part
    nu_errors nothing = {0};
    j->good = measure_batch(j->cx, j->k, b, j->f, j->t, true, j->first - 1, 1, &nothing);
  }
  for (uint64_t done = 0; j->good && done < j->count; done += NU_BATCH)
    j->good = measure_batch(j->cx, j->k, b, j->f, j->t, j->all, j->first + done, j->count - done, &j->out);
  exact_free(&b->e);
  mpfr_free_cache();
  free(b);
  return NULL;
}

static void add(nu_errors *to, const nu_errors *from) {
  to->inputs += from->inputs, to->off += from->off;
  if (to->wrong == 0) memcpy(to->wrong_at, from->wrong_at, sizeof to->wrong_at);
  if (to->inversions == 0) to->inversion_at = from->inversion_at;
  to->wrong += from->wrong, to->inversions += from->inversions;
  if (from->worst > to->worst) to->worst = from->worst, memcpy(to->worst_at, from->worst_at, sizeof to->worst_at);
}

bool nu_measure(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t, bool all, uint64_t first,
                uint64_t count, unsigned threads, nu_errors *out) {
  enum { MOST = 256 };
  job jobs[MOST];
  pthread_t ids[MOST];
  bool good = true;
  if (threads > MOST) threads = MOST;
  uint64_t part = (count / threads + NU_BATCH) / NU_BATCH * NU_BATCH;
  for (unsigned i = 0; i < threads; i++) {
    uint64_t from = part * i < count ? part * i : count, to = from + part < count ? from + part : count;
    jobs[i] = (job){.cx = i ? kiln_context_create(NULL) : cx,
                    .k = k,
                    .f = f,
                    .t = t,
                    .all = all,
                    .first = first + from,
                    .count = to - from};
    if (i) pthread_create(&ids[i], NULL, work, &jobs[i]);
  }
  work(&jobs[0]);
  *out = (nu_errors){0};
  for (unsigned i = 0; i < threads; i++) {
    if (i) pthread_join(ids[i], NULL), kiln_context_destroy(&jobs[i].cx);
    good = good && jobs[i].good;
    add(out, &jobs[i].out);
  }
  return good;
}

uint64_t nu_hashed(uint64_t hash, nu_type t, double value) {
  uint64_t bits = isnan(value) ? UINT64_MAX : nu_encode(t, value);
  for (int byte = 0; byte < 8; byte++) hash = (hash ^ (bits >> 8 * byte & 255)) * 1099511628211u;
  return hash;
}

uint64_t nu_fingerprint(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t) {
  if (nu_is_complex(t)) return nu_complex_fingerprint(cx, k, f, t);
  batch *b = calloc(1, sizeof *b);
  uint64_t hash = nu_hash_seed;
  bool patterns = nu_all_count(f, t) == NU_BATCH;
  size_t n = fill(b, f, t, patterns, 0, patterns ? NU_BATCH : NU_BATCH / 8);
  bool good = nu_kernel_run(cx, k, b->bits[0], b->bits[1], b->bits[2]);
  unpack(t, b->bits[2], b->got, n);
  for (size_t i = 0; i < n; i++) hash = nu_hashed(hash, t, b->got[i]);
  free(b);
  return good ? hash : 0;
}

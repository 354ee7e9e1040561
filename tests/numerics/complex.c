#include "measure.h"

#include "emit/complex_cases.h"
#include <stdlib.h>
#include <string.h>

// Enough for what cancels between the least and the largest numbers.
static mpfr_prec_t precision(nu_type t) {
  return t == NU_C64 ? 420 : 2300;
}

typedef struct reference {
  cr_complex x, y, r;
} reference;

static void open_reference(reference *e, mpfr_prec_t bits) {
  cr_open(bits);
  cr_init(&e->x, 53), cr_init(&e->y, 53), cr_init(&e->r, bits);
}
static void close_reference(reference *e) {
  cr_clear(&e->x), cr_clear(&e->y), cr_clear(&e->r);
  cr_close();
}

static double error_of(reference *e, const nu_function *f, nu_type t, nu_number x, nu_number y, nu_number got,
                       bool *is_nearest) {
  kl_dtype type = t == NU_C64 ? KILN_C64 : KILN_C128;
  cr_set(&e->x, x.re, x.im), cr_set(&e->y, y.re, y.im);
  cr_function(f->complex, &e->r, &e->x, &e->y);
  *is_nearest = cc_part_error(type, e->r.re, got.re) <= 0.5 && cc_part_error(type, e->r.im, got.im) <= 0.5;
  return cc_error(f->complex, type, f->normwise, (cc_number){x.re, x.im}, (cc_number){y.re, y.im}, &e->r,
                  (cc_number){got.re, got.im});
}

double nu_complex_error(const nu_function *f, nu_type t, nu_number x, nu_number y, nu_number got) {
  reference e;
  bool is_nearest;
  open_reference(&e, precision(t));
  double error = error_of(&e, f, t, x, y, got, &is_nearest);
  close_reference(&e);
  return error;
}

void nu_complex_rough_errors(const nu_function *f, nu_type t, size_t n, const nu_number *x, const nu_number *y,
                             const nu_number *got, double *errors) {
  reference e;
  bool is_nearest;
  open_reference(&e, t == NU_C64 ? 128 : 192);
  for (size_t i = 0; i < n; i++) errors[i] = error_of(&e, f, t, x[i], y[i], got[i], &is_nearest);
  close_reference(&e);
}

// --- a batch ---------------------------------------------------------------------------------------------------------

typedef struct batch {
  nu_number x[NU_BATCH], y[NU_BATCH], got[NU_BATCH];
  bool counts[NU_BATCH];         // off the branch cuts
  nu_number memory[3][NU_BATCH]; // as the kernel has them
} batch;

static void pack(nu_type t, void *to, const nu_number *from) {
  if (t == NU_C128) memcpy(to, from, NU_BATCH * sizeof *from);
  for (size_t i = 0; t == NU_C64 && i < NU_BATCH; i++)
    ((float *)to)[2 * i] = (float)from[i].re, ((float *)to)[2 * i + 1] = (float)from[i].im;
}

static void unpack(nu_type t, const void *from, nu_number *to) {
  const float *f = from;
  const double *d = from;
  for (size_t i = 0; i < NU_BATCH; i++) switch (t) {
    case NU_C64: to[i] = (nu_number){f[2 * i], f[2 * i + 1]}; break;
    case NU_C128: to[i] = (nu_number){d[2 * i], d[2 * i + 1]}; break;
    case NU_F32: to[i] = (nu_number){f[i], 0}; break;
    default: to[i] = (nu_number){d[i], 0};
    }
}

static bool run(kiln_context *cx, nu_kernel *k, batch *b, const nu_function *f, nu_type t, uint64_t first, size_t n) {
  for (size_t i = 0; i < NU_BATCH; i++)
    b->counts[i] = nu_sample_complex(f, t, first + (i < n ? i : n - 1), &b->x[i], &b->y[i]);
  pack(t, b->memory[0], b->x), pack(t, b->memory[1], b->y);
  bool good = nu_kernel_run(cx, k, b->memory[0], b->memory[1], b->memory[2]);
  unpack(nu_result_type(f, t), b->memory[2], b->got);
  return good;
}

static void compare(reference *e, const batch *b, const nu_function *f, nu_type t, size_t n, nu_errors *out) {
  for (size_t i = 0; i < n; i++) {
    bool is_nearest;
    if (!b->counts[i]) continue;
    double error = error_of(e, f, t, b->x[i], b->y[i], b->got[i], &is_nearest);
    if (isinf(error)) {
      if (out->wrong++ == 0) out->wrong_at[0] = b->x[i], out->wrong_at[1] = b->y[i];
      continue;
    }
    out->off += !is_nearest;
    if (error > out->worst) out->worst = error, out->worst_at[0] = b->x[i], out->worst_at[1] = b->y[i];
  }
  out->inputs += n;
}

bool nu_complex_measure(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t, uint64_t first, uint64_t count,
                        nu_errors *out) {
  batch *b = calloc(1, sizeof *b);
  reference e;
  bool good = true;
  open_reference(&e, precision(t));
  for (uint64_t done = 0; good && done < count; done += NU_BATCH) {
    size_t n = count - done < NU_BATCH ? (size_t)(count - done) : NU_BATCH;
    good = run(cx, k, b, f, t, first + done, n);
    if (good) compare(&e, b, f, t, n, out);
  }
  close_reference(&e);
  free(b);
  return good;
}

uint64_t nu_complex_fingerprint(kiln_context *cx, nu_kernel *k, const nu_function *f, nu_type t) {
  batch *b = calloc(1, sizeof *b);
  uint64_t hash = nu_hash_seed;
  nu_type part = nu_types[t].part;
  bool good = run(cx, k, b, f, t, 0, NU_BATCH / 8);
  for (size_t i = 0; i < NU_BATCH / 8; i++)
    for (int p = 0; p < 2; p++) hash = nu_hashed(hash, part, p ? b->got[i].im : b->got[i].re);
  free(b);
  return good ? hash : 0;
}

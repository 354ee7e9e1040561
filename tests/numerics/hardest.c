// hardest [OP | TYPE]...: rows of worst.h. Of real f32 functions the arguments whose values lie closest to the middle
// between two f32: libm in double finds candidates, MPFR orders them, among all 2^32 or, of two operands, among 2^32
// samples. Of complex ones those with the largest errors that a climb from samples finds. KILN_TEST_SHARE: more of
// each.
#include "measure.h"

#include "support/random.h"
#include "support/share.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = NU_BATCH, MOST = 1 << 16, SHOWN = 6 };

// --- real functions --------------------------------------------------------------------------------------------------

typedef struct candidate {
  float x, y;
  double bits; // nu_hardness
} candidate;

static candidate found[MOST];
static size_t count;

// A double has 29 bits behind a normal f32's; the references are off by 4 of the last at most.
static void look(const nu_function *f, const double *x, const double *y, const double *r) {
  for (size_t i = 0; i < BATCH; i++) {
    uint64_t bits;
    memcpy(&bits, &r[i], sizeof bits);
    int64_t off = (int64_t)(bits & ((1u << 29) - 1)) - (1 << 28);
    if (off > 20 || off < -20 || !(fabs(r[i]) >= 0x1p-126) || fabs(r[i]) >= 0x1p128 || count == MOST) continue;
    double hardness = nu_hardness(f, NU_F32, (nu_number){x[i], 0}, (nu_number){y[i], 0});
    if (!isinf(hardness)) found[count++] = (candidate){(float)x[i], (float)y[i], hardness}; // not a middle itself
  }
}

static int closer(const void *a, const void *b) {
  const candidate *p = a, *q = b;
  return p->bits > q->bits ? -1 : p->bits < q->bits;
}

static float significand_of(float x) {
  int e;
  return fabsf(frexpf(x, &e));
}

static void search(const nu_function *f) {
  static double x[BATCH], y[BATCH], r[BATCH];
  bool all = f->operands == 1;
  uint64_t end = all ? UINT64_C(1) << 32 : share_of(UINT64_C(1) << 32);
  count = 0;
  for (uint64_t done = 0; done < end; done += BATCH) {
    for (uint64_t i = 0; i < BATCH; i++) {
      uint64_t bits, more = 0;
      if (all)
        nu_all(f, NU_F32, done + i, &bits, &more);
      else
        nu_sample(f, NU_F32, done + i, &bits, &more);
      x[i] = nu_decode(NU_F32, bits);
      y[i] = all ? 0 : nu_decode(NU_F32, more);
    }
    f->values(x, y, r, BATCH);
    look(f, x, y, r);
  }
  qsort(found, count, sizeof *found, closer);
  // Of arguments with the same significands, where a function is odd, a power or one of quotients, the first.
  float shown[SHOWN][2];
  for (size_t i = 0, n = 0; i < count && n < SHOWN; i++) {
    float a = significand_of(found[i].x), b = significand_of(found[i].y);
    bool again = false;
    for (size_t k = 0; k < n; k++) again |= shown[k][0] == a && shown[k][1] == b;
    if (again) continue;
    shown[n][0] = a, shown[n++][1] = b;
    printf("    {\"%s\", NU_F32, %a, %a, %.0f},\n", f->op, found[i].x, found[i].y, floor(found[i].bits));
  }
  fflush(stdout);
}

// --- complex functions -----------------------------------------------------------------------------------------------

enum { CLIMBERS = 64, TRIES = BATCH / 8, TOPS = 2 };

typedef struct place {
  nu_number x, y;
  double error;
} place;

// Another number of the same sign, up to half of all significands away, or a power of two; zeros, whose signs may
// count, stay.
static double moved(nu_type part, double v) {
  if (random_bits() % 16 == 0) {
    int reach = random_bits() % 2 ? 4 : part == NU_F32 ? 280 : 2100, by = (int)(random_bits() % (unsigned)reach);
    double w = nu_decode(part, nu_encode(part, ldexp(v, by - reach / 2)));
    return w == 0 || !isfinite(w) ? v : w;
  }
  uint64_t bits = nu_encode(part, v), sign = UINT64_C(1) << (nu_types[part].bits - 1);
  unsigned reach = (unsigned)(random_bits() % (nu_types[part].significand - 1));
  uint64_t step = random_bits() >> (63 - reach), other = (random_bits() & 1) ? bits + step : bits - step;
  double w = nu_decode(part, other);
  return v == 0 || (random_bits() & 1) || (other & sign) != (bits & sign) || w == 0 || !isfinite(w) ? v : w;
}

static nu_number moved_both(nu_type part, nu_number v) {
  return (nu_number){moved(part, v.re), moved(part, v.im)};
}

// Numbers as a kernel has them, and back.
static void pack(nu_type part, void *to, size_t i, nu_number v) {
  if (part == NU_F32)
    ((float *)to)[2 * i] = (float)v.re, ((float *)to)[2 * i + 1] = (float)v.im;
  else
    ((nu_number *)to)[i] = v;
}
static nu_number unpack(nu_type result, const void *from, size_t i) {
  const float *f = from;
  const double *d = from;
  switch (result) {
  case NU_C64: return (nu_number){f[2 * i], f[2 * i + 1]};
  case NU_F32: return (nu_number){f[i], 0};
  case NU_C128: return (nu_number){d[2 * i], d[2 * i + 1]};
  default: return (nu_number){d[i], 0};
  }
}

static int higher(const void *a, const void *b) {
  const place *p = a, *q = b;
  return p->error > q->error ? -1 : p->error < q->error;
}

// Each climber takes the best of the numbers around it, and of samples as long as those are higher.
static void climb(kiln_context *cx, const nu_function *f, nu_type t) {
  static nu_number x[TRIES], y[TRIES], got[TRIES], memory[3][BATCH];
  static double errors[TRIES];
  place best[CLIMBERS] = {0};
  nu_type part = nu_types[t].part;
  nu_kernel *k = nu_kernel_open(cx, f, t, NU_HOST, 0);
  uint64_t sampled = 0;
  random_seed(1);
  for (uint64_t round = 0, rounds = share_of(t == NU_C64 ? 192 : 48); k && round < rounds; round++) {
    for (size_t i = 0; i < TRIES; i++) {
      const place *from = &best[i % CLIMBERS];
      if (round > 0 && i % 4) {
        x[i] = moved_both(part, from->x), y[i] = moved_both(part, from->y);
      } else {
        while (!nu_sample_complex(f, t, sampled++, &x[i], &y[i])) {}
      }
      if (f->operands == 1) y[i] = (nu_number){0, 0};
      pack(part, memory[0], i, x[i]), pack(part, memory[1], i, y[i]);
    }
    if (!nu_kernel_run(cx, k, memory[0], memory[1], memory[2])) break;
    for (size_t i = 0; i < TRIES; i++) got[i] = unpack(nu_result_type(f, t), memory[2], i);
    nu_complex_rough_errors(f, t, TRIES, x, y, got, errors);
    for (size_t i = 0; i < TRIES; i++) {
      place *p = &best[i % CLIMBERS];
      if (!(errors[i] > p->error)) continue;
      double error = nu_complex_error(f, t, x[i], y[i], got[i]);
      if (error > p->error) *p = (place){x[i], y[i], error};
    }
  }
  nu_kernel_close(k);
  qsort(best, CLIMBERS, sizeof *best, higher);
  for (size_t i = 0; i < TOPS; i++)
    printf("    {\"%s\", NU_%s, {%a, %a}, {%a, %a}}, // %.4f\n", f->op, t == NU_C64 ? "C64" : "C128", best[i].x.re,
           best[i].x.im, best[i].y.re, best[i].y.im, best[i].error);
  fflush(stdout);
}

static bool is_named(int n, char **words, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  static const nu_type types[] = {NU_F32, NU_C64, NU_C128};
  kiln_context *cx = kiln_context_create(NULL);
  bool any_type = true, any_op = true;
  for (size_t k = 0; k < 3; k++) any_type &= !is_named(argc - 1, argv + 1, nu_types[types[k]].name);
  for (size_t i = 0; i < nu_function_count; i++) any_op &= !is_named(argc - 1, argv + 1, nu_functions[i].op);
  for (size_t i = 0; i < nu_function_count; i++)
    for (size_t k = 0; k < 3; k++) {
      const nu_function *f = &nu_functions[i];
      nu_type t = types[k];
      if (!any_type && !is_named(argc - 1, argv + 1, nu_types[t].name)) continue;
      if ((!any_op && !is_named(argc - 1, argv + 1, f->op)) || !nu_takes(f, t)) continue;
      if (t == NU_F32)
        search(f);
      else
        climb(cx, f, t);
    }
  kiln_context_destroy(&cx);
  return 0;
}

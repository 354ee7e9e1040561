// hardest [OP]...: the arguments of f32 functions whose values lie closest to the middle between two f32, found among
// all 2^32: libm in double finds candidates, MPFR orders them. Prints rows of worst.h.
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 16, MOST = 1 << 16, SHOWN = 6 };

typedef struct candidate {
  float x;
  double bits; // nu_hardness
} candidate;

static candidate found[MOST];
static size_t count;

// A double has 29 bits behind a normal f32's; the references are off by 4 of the last at most.
static void look(const nu_function *f, const double *x, const double *r) {
  for (size_t i = 0; i < BATCH; i++) {
    uint64_t bits;
    memcpy(&bits, &r[i], sizeof bits);
    int64_t off = (int64_t)(bits & ((1u << 29) - 1)) - (1 << 28);
    if (off > 20 || off < -20 || !(fabs(r[i]) >= 0x1p-126) || fabs(r[i]) >= 0x1p128 || count == MOST) continue;
    double hardness = nu_hardness(f, NU_F32, (nu_number){x[i], 0}, (nu_number){0, 0});
    if (!isinf(hardness)) found[count++] = (candidate){(float)x[i], hardness}; // not a middle itself
  }
}

static int closer(const void *a, const void *b) {
  const candidate *p = a, *q = b;
  return p->bits > q->bits ? -1 : p->bits < q->bits;
}

static void search(const nu_function *f) {
  static double x[BATCH], r[BATCH];
  count = 0;
  for (uint64_t done = 0; done < UINT64_C(1) << 32; done += BATCH) {
    for (uint64_t i = 0; i < BATCH; i++) {
      uint64_t bits, none;
      nu_all(f, NU_F32, done + i, &bits, &none);
      x[i] = nu_decode(NU_F32, bits);
    }
    f->values(x, x, r, BATCH);
    look(f, x, r);
  }
  qsort(found, count, sizeof *found, closer);
  // Of arguments with the same significand, where a function is odd or a power, the first.
  float shown[SHOWN];
  for (size_t i = 0, n = 0; i < count && n < SHOWN; i++) {
    int e;
    float significand = fabsf(frexpf(found[i].x, &e));
    bool again = false;
    for (size_t k = 0; k < n; k++) again |= shown[k] == significand;
    if (again) continue;
    shown[n++] = significand;
    printf("    {\"%s\", NU_F32, %a, 0, %.0f},\n", f->op, found[i].x, floor(found[i].bits));
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  for (size_t i = 0; i < nu_function_count; i++) {
    bool wanted = argc == 1;
    for (int k = 1; k < argc; k++) wanted |= strcmp(argv[k], nu_functions[i].op) == 0;
    if (wanted && nu_functions[i].operands == 1) search(&nu_functions[i]);
  }
  return 0;
}

// Finds constants with which an expansion for pairs (lower/emit/math/half) is correctly rounded on all inputs, with
// every value that its approximate instructions may return.
//
//   half_search f16|bf16 OP [TRIALS [SEED [FIRST [COUNT]]]]
//
// Starts from the row's constants, changes some of the COUNT ones from FIRST on by a few units in their last place or a
// small part of themselves, and keeps what does not round more inputs wrongly: counted first on the inputs that were
// ever seen wrong, and if that is promising, on all of them. Prints the best constants found.

#include "emit/math_jit.h"
#include "emit/math_ref.h"
#include "lower/emit/math/half/impl.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALL = 65536 };
static uint32_t in[ALL], got[ALL], want[ALL], suspects[ALL];
static bool suspected[ALL];
static int nsuspects;

static kb_reg emit(kb *k, const void *user, kb_reg a, kb_reg b) {
  const kh_row *r = user;
  kb_reg x = kb_bitcast(k, a, r->kind, 2), y = kb_bitcast(k, b, r->kind, 2), out;
  kh_emit(k, r, 1, (const kb_reg *const[]){&x, &y}, &out);
  return kb_bitcast(k, out, KB_I32, 1);
}

static kl_dtype type_of(const kh_row *r) {
  return r->kind == KB_F16 ? KILN_F16 : KILN_BF16;
}

// How many of the inputs x some pick rounds wrongly; they become suspects where `all` are tried.
static int wrong(mj *j, const kh_row *row, const uint32_t *x, int n, bool all) {
  static bool bad[ALL];
  unsigned sites, runs = 1;
  int count = 0;
  memset(bad, 0, sizeof bad);
  mj_fn f = mj_compile_approx(j, &(mj_spec){KB_I32, KB_I32, 1, emit, row}, 90, &sites);
  for (unsigned s = 0; s < sites / 2; s++) runs *= MJ_PICKS;
  for (unsigned r = 0; r < runs; r++) {
    for (unsigned s = 0, rest = r; s < sites / 2; s++, rest /= MJ_PICKS)
      mj_pick[s] = mj_pick[s + sites / 2] = rest % MJ_PICKS;
    f(x, x, got, n);
    for (int i = 0; i < n; i++) bad[i] |= !mr_same(type_of(row), got[i] & 0xffff, want[x[i]]);
  }
  mj_clear(j);
  for (int i = 0; i < n; i++) {
    if (!bad[i]) continue;
    count++;
    if (all && !suspected[x[i]]) suspected[x[i]] = true, suspects[nsuspects++] = x[i];
  }
  return count;
}

static void disturb(double *c, unsigned n) {
  if (!n) return;
  for (int changes = 1 + (int)(random_bits() >> 40) % 3; changes > 0; changes--) {
    double *v = &c[(random_bits() >> 32) % n];
    double part = (double)(int64_t)random_bits() * 0x1p-63;
    int fine = 24 - (int)(random_bits() >> 60); // of 2^-24 to 2^-9 of the constant
    float moved = (float)(*v * (1 + part * ldexp(1, -fine)));
    *v = moved == (float)*v ? nextafterf(moved, part > 0 ? INFINITY : -INFINITY) : moved;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  kb_kind kind = strcmp(argv[1], "f16") == 0 ? KB_F16 : KB_BF16;
  const kh_row *row = NULL;
  for (unsigned i = 0; i < kh_row_count; i++) {
    if (kh_rows[i].kind == kind && strcmp(argv[2], kl_op_table[kh_rows[i].op].name) == 0) row = &kh_rows[i];
  }
  if (!row || row->op == KL_OP_DIVIDE) return 2;
  int trials = argc > 3 ? atoi(argv[3]) : 1000;
  for (int skip = argc > 4 ? atoi(argv[4]) : 0; skip > 0; skip--) random_bits();
  unsigned first = argc > 5 ? (unsigned)atoi(argv[5]) : 0, count = argc > 6 ? (unsigned)atoi(argv[6]) : row->n - first;
  if (first > row->n || count > row->n - first) return 2;
  double now[KH_MAX_CONSTANTS], next[KH_MAX_CONSTANTS];
  kh_row trial = *row;
  mj *j = mj_open();
  for (uint32_t i = 0; i < ALL; i++) in[i] = i;
  mr_table_of_op(row->op, type_of(row), want);
  memcpy(now, row->c, row->n * sizeof *now);
  trial.c = next;
  memcpy(next, now, sizeof now);
  int best = wrong(j, &trial, in, ALL, true);
  printf("%s %s: %d wrong\n", argv[1], argv[2], best);
  for (int t = 0; t < trials && best > 0; t++) {
    memcpy(next, now, sizeof now);
    disturb(next + first, count);
    int w = wrong(j, &trial, suspects, nsuspects, false);
    if (w <= best) w = wrong(j, &trial, in, ALL, true);
    if (w > best) continue;
    if (w < best) printf("%d: %d wrong\n", t, w), fflush(stdout);
    memcpy(now, next, sizeof now);
    best = w;
  }
  for (unsigned i = 0; i < row->n; i++) printf("%a, ", now[i]);
  printf("\n%d wrong\n", best);
  mj_close(j);
  return best != 0;
}

// Which passes a line has, and what one does to the elements of a thread.

#include "lower/choose/staged/fft/fft.h"

#include "ir/dtype.h"
#include <stdlib.h>

// --- passes ---------------------------------------------------------------------------------------------------------

static uint32_t factors_of(int64_t n, uint32_t *radix, int64_t *rest) {
  static const uint32_t primes[] = {13, 11, 7, 5, 3};
  uint32_t count = 0, twos = 0;
  for (size_t i = 0; i < KL_COUNT(primes); i++)
    for (; n % primes[i] == 0; n /= primes[i]) radix[count++] = primes[i];
  for (; n % 2 == 0; n /= 2) twos++;
  for (; twos > 4 || twos == 3; twos -= 3) radix[count++] = 8;
  for (; twos > 1; twos -= 2) radix[count++] = 4;
  if (twos) radix[count++] = 2;
  *rest = n;
  return count;
}

// Into so many groups, each radix, the largest first, to the group that has the least. Returns the greatest product.
static int64_t share(const uint32_t *radix, uint32_t n, uint32_t groups, int64_t *product, uint32_t *group) {
  int64_t most = 1;
  for (uint32_t g = 0; g < groups; g++) product[g] = 1;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t least = 0;
    for (uint32_t g = 1; g < groups; g++)
      if (product[g] < product[least]) least = g;
    product[least] *= radix[i];
    group[i] = least;
    if (product[least] > most) most = product[least];
  }
  return most;
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? 1 : x > y ? -1 : 0;
}

void kl_find_passes(int64_t n, int64_t most, int64_t fair, kl_passes *out) {
  uint32_t radix[KL_MOST_PASSES], group[KL_MOST_PASSES], count = factors_of(n, radix, &out->rest), groups = 1, at = 0;
  int64_t product[KL_MOST_GROUPS];
  qsort(radix, count, sizeof *radix, by_size);
  if (share(radix, count, 1, product, group) > most)
    while (++groups < KL_MOST_GROUPS && share(radix, count, groups, product, group) > fair) continue;
  out->ngroups = groups;
  for (uint32_t g = 0; g < groups; g++) {
    out->first[g] = at;
    for (uint32_t i = 0; i < count; i++)
      if (group[i] == g) out->radix[at++] = radix[i];
  }
  out->first[groups] = at;
}

// --- a pass ---------------------------------------------------------------------------------------------------------

// exp(-2 pi i k / n) as numbers.
static void root_at(int64_t k, int64_t n, double *re, double *im) {
  double all[4];
  kl_roots(KILN_C128, n, k, 2, all);
  *re = all[2];
  *im = all[3];
}

static uint32_t negated(kl_stage_body *b, uint32_t x) {
  return kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_NEGATE}, b->w.steps.p[x].dtype, 1, &x);
}

static kl_number times_minus_i(kl_stage_body *b, kl_number x) {
  return (kl_number){x.im, negated(b, x.re)};
}

// Times exp(-2 pi i k / 8), 0 <= k < 4.
static kl_number turn(kl_stage_body *b, kl_dtype whole, kl_number x, uint32_t k) {
  if (k >= 2) x = times_minus_i(b, x);
  if (k % 2 == 0) return x;
  double re, im;
  root_at(1, 8, &re, &im);
  kl_number sum = {kl_stage_op(b, KL_OP_ADD, x.re, x.im), kl_stage_op(b, KL_OP_SUBTRACT, x.im, x.re)};
  return kl_number_scale(b, sum, kl_number_const(b, kl_number_part(whole), re, 0).re);
}

// Of 2, 4 or 8: those of even and odd numbers, together.
static void by_halves(kl_stage_body *b, kl_dtype whole, uint32_t r, const kl_number *x, uint32_t step, kl_number *y) {
  kl_number even[4], odd[4];
  if (r == 1) {
    y[0] = x[0];
    return;
  }
  by_halves(b, whole, r / 2, x, 2 * step, even);
  by_halves(b, whole, r / 2, x + step, 2 * step, odd);
  for (uint32_t k = 0; k < r / 2; k++) {
    kl_number t = turn(b, whole, odd[k], k * (8 / r));
    y[k] = kl_number_add(b, even[k], t);
    y[k + r / 2] = kl_number_sub(b, even[k], t);
  }
}

// Of an odd prime: elements j and r - j together, as their roots are conjugates.
static void by_pairs(kl_stage_body *b, kl_dtype whole, uint32_t r, const kl_number *x, kl_number *y) {
  uint32_t half = r / 2;
  kl_dtype part = kl_number_part(whole);
  kl_number sum[KL_MOST_RADIX / 2 + 1], difference[KL_MOST_RADIX / 2 + 1];
  y[0] = x[0];
  for (uint32_t j = 1; j <= half; j++) {
    sum[j] = kl_number_add(b, x[j], x[r - j]);
    difference[j] = kl_number_sub(b, x[j], x[r - j]);
    y[0] = kl_number_add(b, y[0], sum[j]);
  }
  for (uint32_t k = 1; k <= half; k++) {
    kl_number even = x[0], odd = {KL_NONE, KL_NONE};
    for (uint32_t j = 1; j <= half; j++) {
      double re, im;
      root_at(j * k % r, r, &re, &im);
      uint32_t c = kl_number_const(b, part, re, 0).re, s = kl_number_const(b, part, -im, 0).re;
      even.re = kl_write_fma(&b->w, sum[j].re, c, even.re);
      even.im = kl_write_fma(&b->w, sum[j].im, c, even.im);
      if (j == 1) {
        odd = kl_number_scale(b, difference[j], s);
      } else {
        odd.re = kl_write_fma(&b->w, difference[j].re, s, odd.re);
        odd.im = kl_write_fma(&b->w, difference[j].im, s, odd.im);
      }
    }
    kl_number turned = times_minus_i(b, odd);
    y[k] = kl_number_add(b, even, turned);
    y[r - k] = kl_number_sub(b, even, turned);
  }
}

void kl_small_transform(kl_stage_body *b, kl_dtype whole, uint32_t r, const kl_number *x, kl_number *y) {
  if (r & (r - 1))
    by_pairs(b, whole, r, x, y);
  else
    by_halves(b, whole, r, x, 1, y);
}

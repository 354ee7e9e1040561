// The verdict on lines that a sort may leave in some order: they have the elements that the evaluator's have, no matter
// where, and what several arrays have at a place stays together.
//
// An element, of all arrays, is a number of 64 bits that is mixed of its bits, of NaN but that it is one. Lines are the
// same where their sorted numbers are.
#include "eval/arranged.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct job {
  const kl_arrangement *a;
  size_t n;
  const kl_result *expected;
  const kl_array *found;
  uint64_t *memory; // by worker: numbers of a line, expected and found
  _Atomic int64_t count, first;
} job;

static uint64_t mixed(uint64_t h, uint64_t bits) {
  h = (h ^ bits) * 0x9e3779b97f4a7c15u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ h >> 29;
}

static uint64_t element_bits(kl_dtype t, const void *data, int64_t i, int part) {
  kl_dtype of = kl_is_complex(t) ? kl_info(t)->part : t;
  uint64_t bits = kl_element_get(t, data, i, part);
  if (t == KILN_PRED) return ((const uint8_t *)data)[i]; // others than 0 and 1 are none
  return kl_is_float(of) && kl_float_is_nan(of, bits) ? UINT64_MAX : bits;
}

static uint64_t number_of(const job *j, bool found, int64_t i) {
  uint64_t h = 0;
  for (size_t k = 0; k < j->n; k++) {
    if (j->expected[k].arranged != j->a) continue;
    kl_dtype t = j->expected[k].data.shape->dtype;
    const void *data = found ? j->found[k].data : j->expected[k].data.data;
    for (int part = 0; part <= kl_is_complex(t); part++) h = mixed(h, element_bits(t, data, i, part));
  }
  return h;
}

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// The place of the line's first element that is not among those expected, so often.
static int64_t first_strange(const job *j, int64_t base, const uint64_t *expected, const uint64_t *found) {
  int64_t n = j->a->n, e = 0, best = n;
  for (int64_t f = 0; f < n; f++) {
    while (e < n && expected[e] < found[f]) e++;
    if (e < n && expected[e] == found[f]) {
      e++;
      continue;
    }
    int64_t k = 0;
    while (k < best && number_of(j, true, base + k * j->a->stride) != found[f]) k++;
    if (k < best) best = k;
  }
  return base + best * j->a->stride;
}

static int64_t strange_count(int64_t n, const uint64_t *expected, const uint64_t *found) {
  int64_t count = 0, e = 0;
  for (int64_t f = 0; f < n; f++) {
    while (e < n && expected[e] < found[f]) e++;
    if (e < n && expected[e] == found[f])
      e++;
    else
      count++;
  }
  return count;
}

static void check_lines(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  job *j = arg;
  const kl_arrangement *a = j->a;
  uint64_t *expected = j->memory + 2 * worker * (size_t)a->n, *found = expected + a->n;
  for (int64_t line = begin; line < end; line++) {
    int64_t base = line / a->stride * a->n * a->stride + line % a->stride;
    if (!a->some[line]) continue;
    for (int64_t k = 0; k < a->n; k++) {
      expected[k] = number_of(j, false, base + k * a->stride);
      found[k] = number_of(j, true, base + k * a->stride);
    }
    qsort(expected, (size_t)a->n, sizeof *expected, by_number);
    qsort(found, (size_t)a->n, sizeof *found, by_number);
    int64_t count = strange_count(a->n, expected, found);
    if (!count) continue;
    int64_t first = first_strange(j, base, expected, found), seen = atomic_load(&j->first);
    atomic_fetch_add(&j->count, count);
    while (first < seen && !atomic_compare_exchange_weak(&j->first, &seen, first)) {}
  }
}

kiln_status kl_check_arranged(const kl_ev *ev, const kl_arrangement *a, size_t n, const kl_result *expected,
                              const kl_array *found, int64_t *count, int64_t *first) {
  job j = {.a = a, .n = n, .expected = expected, .found = found, .first = INT64_MAX};
  int64_t grain = a->n >= 4096 ? 1 : 4096 / a->n;
  size_t bytes = 2 * sizeof(uint64_t) * (size_t)a->n * kl_ev_workers(ev, a->lines, grain);
  j.memory = kl_try_alloc(ev->cx, bytes);
  if (!j.memory) return kl_out_of_memory(ev->cx, bytes, "a verdict on sorted lines");
  kl_ev_parallel(ev, a->lines, grain, check_lines, &j);
  kl_free(ev->cx, j.memory, bytes);
  *count = j.count;
  *first = j.first;
  return KILN_OK;
}

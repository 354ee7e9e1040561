// Conversions of sparse matrices beside counting sorts by hand: CSR to CSC, 32-bit values, positions and coordinates.
// The one by hand counts the entries of every column, adds the counts up and puts every entry where its column goes on,
// by one thread or by all, each for rows of its own. Both write the same arrays. They take turns; a ratio is the median
// of those of the turns, of times on the clock and of processors' times, which others on the machine change less.
//   sparse [ENTRIES]     10^8 where none are given
#include "measure.h"

#include <kiln/kiln.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1000000, TRIES = 5, MOST_THREADS = 64 };

typedef struct matrix {
  uint32_t *pos, *crd;
  float *values;
} matrix;

static matrix allocate(int64_t entries) {
  matrix m = {malloc((SIZE + 1) * sizeof(uint32_t)), malloc((size_t)entries * 4 + 4), malloc((size_t)entries * 4 + 4)};
  if (!m.pos || !m.crd || !m.values) {
    fprintf(stderr, "sparse: no memory for %lld entries\n", (long long)entries);
    exit(1);
  }
  memset(m.pos, 0, (SIZE + 1) * sizeof(uint32_t)); // pages are there before anything is measured
  memset(m.crd, 0, (size_t)entries * 4);
  memset(m.values, 0, (size_t)entries * 4);
  return m;
}

// Rows of `each` entries, one in every SIZE / each columns.
static matrix random_rows(int64_t each) {
  matrix m = allocate(each * SIZE);
  uint64_t state = 1;
  uint32_t gap = (uint32_t)(SIZE / each);
  for (int64_t i = 0; i < SIZE; i++)
    for (int64_t k = 0; k < each; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      m.crd[i * each + k] = (uint32_t)k * gap + (uint32_t)(state >> 33) % gap;
      m.values[i * each + k] = (float)(state >> 40) + 1;
    }
  for (int64_t i = 0; i <= SIZE; i++) m.pos[i] = (uint32_t)(i * each);
  return m;
}

// --- by hand --------------------------------------------------------------------------------------------------------

typedef struct hand {
  const matrix *from;
  matrix *to;
  uint32_t *counts, first, end; // of rows
  bool scatter;
} hand;

static void *by_rows(void *arg) {
  hand *h = arg;
  uint32_t *counts = h->counts;
  const uint32_t *crd = h->from->crd;
  if (!h->scatter) {
    memset(counts, 0, SIZE * sizeof *counts);
    for (uint32_t q = h->from->pos[h->first]; q < h->from->pos[h->end]; q++) counts[crd[q]]++;
    return NULL;
  }
  for (uint32_t i = h->first; i < h->end; i++)
    for (uint32_t q = h->from->pos[i]; q < h->from->pos[i + 1]; q++) {
      uint32_t at = counts[crd[q]]++;
      h->to->crd[at] = i;
      h->to->values[at] = h->from->values[q];
    }
  return NULL;
}

static void run_threads(hand *h, int threads, bool scatter) {
  pthread_t ids[MOST_THREADS];
  for (int t = 0; t < threads; t++) h[t].scatter = scatter;
  for (int t = 1; t < threads; t++) pthread_create(&ids[t], NULL, by_rows, &h[t]);
  by_rows(&h[0]);
  for (int t = 1; t < threads; t++) pthread_join(ids[t], NULL);
}

static void transpose_by_hand(const matrix *from, matrix *to, int threads, uint32_t *counts) {
  hand h[MOST_THREADS];
  uint32_t n = 0;
  for (int t = 0; t < threads; t++)
    h[t] = (hand){from,
                  to,
                  counts + (size_t)t * SIZE,
                  (uint32_t)((int64_t)SIZE * t / threads),
                  (uint32_t)((int64_t)SIZE * (t + 1) / threads),
                  false};
  run_threads(h, threads, false);
  for (uint32_t c = 0; c < SIZE; c++) {
    to->pos[c] = n;
    for (int t = 0; t < threads; t++) {
      uint32_t own = h[t].counts[c];
      h[t].counts[c] = n;
      n += own;
    }
  }
  to->pos[SIZE] = n;
  run_threads(h, threads, true);
}

// --- by kiln --------------------------------------------------------------------------------------------------------

static kiln_sparse_layout *layout(kiln_context *cx, const char *fields) {
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  if (kiln_encoding_parse(cx, "encoding", fields, strlen(fields), NULL, &e) != KILN_OK ||
      kiln_sparse_layout_create(cx, e, KILN_F32, (int64_t[]){SIZE, SIZE}, &l) != KILN_OK)
    exit(1);
  kiln_encoding_destroy(&e);
  return l;
}

static void arrays_of(const matrix *m, int64_t entries, kiln_sparse_array out[3]) {
  out[0] = (kiln_sparse_array){m->pos, SIZE + 1};
  out[1] = (kiln_sparse_array){m->crd, entries};
  out[2] = (kiln_sparse_array){m->values, entries};
}

static void convert(kiln_context *cx, const kiln_sparse_layout *csr, const kiln_sparse_layout *csc, const matrix *from,
                    matrix *to, int64_t entries) {
  kiln_sparse_array in[3], out[3];
  arrays_of(from, entries, in);
  arrays_of(to, entries, out);
  if (kiln_sparse_convert(cx, csr, in, csc, out) == KILN_OK) return;
  fprintf(stderr, "sparse: %s\n", kiln_diagnostics_get(cx, 0)->message);
  exit(1);
}

static bool same(const matrix *a, const matrix *b, int64_t entries) {
  return memcmp(a->pos, b->pos, (SIZE + 1) * 4) == 0 && memcmp(a->crd, b->crd, (size_t)entries * 4) == 0 &&
         memcmp(a->values, b->values, (size_t)entries * 4) == 0;
}

// --- what is measured -----------------------------------------------------------------------------------------------

enum way { ONE, ALL, KILN, WAYS };

typedef struct times {
  double clock[WAYS][TRIES], processors[WAYS][TRIES];
} times;

static double median_ratio(const double *a, const double *b) {
  double r[TRIES];
  for (int i = 0; i < TRIES; i++) r[i] = a[i] / b[i];
  return median(r, TRIES);
}

static void report(const char *name, times *t, enum way way, int64_t entries) {
  double clock[TRIES], processors[TRIES];
  memcpy(clock, t->clock[way], sizeof clock);
  memcpy(processors, t->processors[way], sizeof processors);
  double ms = median(clock, TRIES);
  printf("%-22s %7.0f ms  %6.1f million entries a second  %7.0f ms of processors\n", name, ms,
         (double)entries / ms / 1e3, median(processors, TRIES));
}

static void report_ratio(const char *name, const times *t, enum way hand) {
  printf("kiln beside it by %-11s %5.2f  %5.2f of processors\n", name, median_ratio(t->clock[hand], t->clock[KILN]),
         median_ratio(t->processors[hand], t->processors[KILN]));
}

int main(int argc, char **argv) {
  int64_t each = (argc > 1 ? strtoll(argv[1], NULL, 10) : 100000000) / SIZE, entries;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int threads = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
  if (each < 1 || each > 4000) {
    fprintf(stderr, "usage: sparse [ENTRIES], %d to %lld\n", SIZE, 4000ll * SIZE);
    return 1;
  }
  entries = each * SIZE;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_sparse_layout *csr = layout(cx, "map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32");
  kiln_sparse_layout *csc = layout(cx, "map = (i, j) -> (j : dense, i : compressed), posWidth = 32, crdWidth = 32");
  matrix from = random_rows(each), hand = allocate(entries), to = allocate(entries);
  uint32_t *counts = malloc((size_t)threads * SIZE * sizeof *counts);
  times t;
  for (int i = 0; counts && i < TRIES; i++) {
    for (enum way way = 0; way < WAYS; way++) {
      double clock = now_ms(), processors = processor_ms();
      if (way == KILN)
        convert(cx, csr, csc, &from, &to, entries);
      else
        transpose_by_hand(&from, &hand, way == ONE ? 1 : threads, counts);
      t.clock[way][i] = now_ms() - clock;
      t.processors[way][i] = processor_ms() - processors;
    }
    if (!same(&hand, &to, entries)) {
      fprintf(stderr, "sparse: another matrix than by hand\n");
      return 1;
    }
  }
  printf("CSR to CSC, %d x %d, %lld entries; %d threads\n", SIZE, SIZE, (long long)entries, threads);
  report("by hand, one thread", &t, ONE, entries);
  report("by hand, all threads", &t, ALL, entries);
  report("kiln", &t, KILN, entries);
  report_ratio("one thread", &t, ONE);
  report_ratio("all threads", &t, ALL);
  kiln_sparse_layout_destroy(&csr);
  kiln_sparse_layout_destroy(&csc);
  kiln_context_destroy(&cx);
  return 0;
}

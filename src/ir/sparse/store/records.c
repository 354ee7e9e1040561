// Sorting records: they are dealt out to buckets by the first bits of their keys, so many that a bucket fits a core's
// cache, and are sorted there digit by digit. A bucket that does not fit is dealt out again. Every step keeps the order
// of what it does not tell apart.
#include "ir/sparse/store/records.h"
#include "base/threads.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { MOST_BITS = 11, CACHE_WORDS = 1 << 17, FEW = 40, GRAIN = 1 << 16, LINE = 4, LINE_BYTES = 16 * LINE };

typedef kl_digit digit;

typedef struct sorter {
  kl_arena *arena; // of results
  kl_ctx *cx;
  uint32_t threads;
  const kl_record_form *form;
  uint64_t *scratch; // `room` words for each worker
  size_t room;
  atomic_bool repeats;
} sorter;

static inline uint32_t bucket_of(const uint64_t *r, digit d) {
  return (uint32_t)(r[d.word] >> d.shift) & ((1u << d.bits) - 1);
}

// --- dealing out ----------------------------------------------------------------------------------------------------

typedef struct dealing {
  const kl_record_stream *stream;
  const sorter *s;
  uint32_t stride;
  digit d;
  int64_t *counts; // [pieces][buckets]; then where the next goes
  uint64_t *out;
} dealing;

// Records of two words, which most are, are gathered by bucket and written LINE at a time, as many as a line of the
// host's cache has: so many buckets would come into the cache and leave it again for every record.
typedef struct deal {
  const dealing *of;
  int64_t *counts;
  int64_t *starts; // of the piece's, by bucket; NULL: not gathered
  uint64_t *lines; // [buckets][LINE] records
} deal;

static void count_some(void *to, const uint64_t *records, int64_t n) {
  deal *p = to;
  for (int64_t i = 0; i < n; i++) p->counts[bucket_of(records + i * p->of->stride, p->of->d)]++;
}

static void deal_some(void *to, const uint64_t *records, int64_t n) {
  deal *p = to;
  uint32_t stride = p->of->stride;
  digit d = p->of->d;
  uint64_t *out = p->of->out;
  for (int64_t i = 0; i < n; i++)
    memcpy(out + p->counts[bucket_of(records + i * stride, d)]++ * stride, records + i * stride, stride * 8ul);
}

// A whole line, which nobody reads for long: past the cache, where the host can.
static inline void stream_line(uint64_t *to, const uint64_t *line) {
#ifdef __SSE2__
  for (int k = 0; k < LINE; k++)
    _mm_stream_si128((__m128i *)(void *)(to + 2 * k), _mm_loadu_si128((const __m128i *)(const void *)(line + 2 * k)));
#else
  memcpy(to, line, LINE_BYTES);
#endif
}
// What was streamed is there for every thread.
static inline void end_streams(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

// Records of a line that ends before record `end`, as far as the piece has any there.
static void put_line(const deal *p, uint32_t bucket, int64_t end) {
  int64_t begin = (end - 1) & ~(int64_t)(LINE - 1);
  const uint64_t *line = p->lines + (size_t)bucket * 2 * LINE;
  if (begin < p->starts[bucket]) {
    line += (p->starts[bucket] - begin) * 2;
    begin = p->starts[bucket];
  }
  memcpy(p->of->out + begin * 2, line, (size_t)(end - begin) * 16);
}

static void gather_some(void *to, const uint64_t *records, int64_t n) {
  deal *p = to;
  const digit d = p->of->d;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t *r = records + i * 2;
    const uint32_t bucket = bucket_of(r, d);
    const int64_t at = p->counts[bucket]++;
    uint64_t *to_line = p->lines + (size_t)bucket * 2 * LINE, *line = to_line + (at & (LINE - 1)) * 2;
    line[0] = r[0], line[1] = r[1];
    if ((at & (LINE - 1)) != LINE - 1) continue;
    if (at - p->starts[bucket] >= LINE - 1)
      stream_line(p->of->out + (at - (LINE - 1)) * 2, to_line);
    else
      put_line(p, bucket, at + 1);
  }
}

// Gathers the piece's records in the worker's scratch.
static void gather_piece(const dealing *d, uint32_t worker, int64_t piece, deal *p) {
  const size_t buckets = (size_t)1 << d->d.bits;
  p->lines = d->s->scratch + (size_t)worker * d->s->room;
  p->starts = (int64_t *)(p->lines + buckets * 2 * LINE);
  memcpy(p->starts, p->counts, buckets * sizeof *p->starts);
  d->stream->run(d->stream->arg, worker, piece, gather_some, p);
  for (uint32_t b = 0; b < buckets; b++)
    if (p->counts[b] > p->starts[b] && p->counts[b] & (LINE - 1)) put_line(p, b, p->counts[b]);
  end_streams();
}

static void run_pieces(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const dealing *d = arg;
  const kl_record_stream *s = d->stream;
  const bool gathers = d->stride == 2 && ((size_t)(2 * LINE + 1) << d->d.bits) <= d->s->room;
  for (int64_t i = begin; i < end; i++) {
    deal p = {d, d->counts + (i << d->d.bits), NULL, NULL};
    if (!d->out && s->count)
      s->count(s->arg, worker, i, d->d, p.counts);
    else if (!d->out)
      s->run(s->arg, worker, i, count_some, &p);
    else if (gathers)
      gather_piece(d, worker, i, &p);
    else
      s->run(s->arg, worker, i, deal_some, &p);
  }
}

// Buckets one behind the other: ends[b] is where bucket b ends.
static kiln_status deal_out(sorter *s, const kl_record_stream *stream, digit d, int64_t *ends, uint64_t **out) {
  dealing x = {stream, s, s->form->stride, d, NULL, NULL};
  int64_t buckets = 1ll << d.bits, n = 0;
  size_t size = (size_t)(stream->pieces * buckets) * sizeof *x.counts;
  x.counts = kl_try_alloc(s->cx, size);
  if (!x.counts) return kl_out_of_memory(s->cx, size, "counts of entries");
  kl_parallel(s->threads, stream->pieces, 1, run_pieces, &x);
  for (int64_t b = 0; b < buckets; b++) {
    for (int64_t i = 0; i < stream->pieces; i++) {
      int64_t *c = &x.counts[i * buckets + b], own = *c;
      *c = n;
      n += own;
    }
    ends[b] = n;
  }
  bool failed = stream->failed && stream->failed(stream->arg);
  uint64_t *all = failed ? NULL : kl_arena_try_alloc(s->arena, (size_t)n * x.stride * 8 + LINE_BYTES);
  if (all) *out = x.out = (uint64_t *)(((uintptr_t)all + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1));
  if (x.out && n) kl_parallel(s->threads, stream->pieces, 1, run_pieces, &x);
  kl_free(s->cx, x.counts, size);
  if (failed) return KILN_E_INTERNAL;
  return x.out ? KILN_OK : kl_out_of_memory(s->cx, (size_t)n * x.stride * 8, "entries");
}

// --- in cache -------------------------------------------------------------------------------------------------------

static inline int compare(const uint64_t *a, const uint64_t *b, uint32_t words) {
  for (uint32_t w = 0; w < words; w++)
    if (a[w] != b[w]) return a[w] < b[w] ? -1 : 1;
  return 0;
}

static inline void copy(uint64_t *to, const uint64_t *from, uint32_t stride) {
  for (uint32_t w = 0; w < stride; w++) to[w] = from[w];
}

static inline __attribute__((always_inline)) void insert(uint64_t *at, int64_t n, uint64_t *spare, uint32_t words,
                                                         uint32_t stride) {
  for (int64_t i = 1; i < n; i++) {
    int64_t k = i;
    if (compare(at + (i - 1) * stride, at + i * stride, words) <= 0) continue;
    copy(spare, at + i * stride, stride);
    for (; k > 0 && compare(at + (k - 1) * stride, spare, words) > 0; k--)
      copy(at + k * stride, at + (k - 1) * stride, stride);
    copy(at + k * stride, spare, stride);
  }
}

// Bits of word w in which keys differ; of the last word those that input does not ascend in anyway. All: it ascends.
static inline __attribute__((always_inline)) uint64_t differing(const kl_record_form *f, const uint64_t *at, int64_t n,
                                                                uint32_t w, uint32_t words, uint32_t stride) {
  uint64_t vary = 0, masks[KL_MOST_BORDERS];
  bool ascends[KL_MOST_BORDERS];
  uint32_t nb = words == 1 ? f->nborders : 0;
  for (uint32_t b = 0; b < nb; b++) {
    masks[b] = f->borders[b] >= 64 ? UINT64_MAX : (1ull << f->borders[b]) - 1;
    ascends[b] = true;
  }
  for (int64_t i = 1; i < n; i++) {
    uint64_t x = at[(i - 1) * stride + w], y = at[i * stride + w];
    vary |= x ^ y;
    for (uint32_t b = 0; b < nb; b++) ascends[b] &= (x & masks[b]) <= (y & masks[b]);
  }
  for (uint32_t b = 0; b < nb; b++)
    if (ascends[b]) return vary & ~masks[b];
  return vary;
}

static inline __attribute__((always_inline)) void pass(const uint64_t *from, uint64_t *to, int64_t n, digit d,
                                                       uint32_t stride) {
  uint32_t ends[1 << MOST_BITS] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) ends[bucket_of(from + i * stride, d)]++;
  for (uint32_t b = 0; b < 1u << d.bits; b++) {
    uint32_t own = ends[b];
    ends[b] = at;
    at += own;
  }
  for (int64_t i = 0; i < n; i++)
    copy(to + (size_t)ends[bucket_of(from + i * stride, d)]++ * stride, from + i * stride, stride);
}

static inline __attribute__((always_inline)) void sort_cached(sorter *s, uint64_t *at, int64_t n, uint64_t *scratch,
                                                              uint32_t words, uint32_t stride) {
  uint64_t *from = at, *to = scratch;
  if (n < FEW) {
    insert(at, n, scratch, words, stride);
  } else {
    for (uint32_t w = words; w-- > 0;) {
      uint64_t vary = differing(s->form, from, n, w, words, stride);
      if (!vary) continue;
      unsigned low = (unsigned)__builtin_ctzll(vary), bits = 64 - low - (unsigned)__builtin_clzll(vary);
      unsigned passes = (bits + MOST_BITS - 1) / MOST_BITS, each = (bits + passes - 1) / passes;
      for (unsigned p = 0; p < passes; p++) {
        unsigned rest = bits - p * each;
        pass(from, to, n, (digit){w, low + p * each, rest < each ? rest : each}, stride);
        uint64_t *swap = from;
        from = to, to = swap;
      }
    }
    if (from != at) memcpy(at, from, (size_t)n * stride * 8);
  }
  bool repeats = false;
  for (int64_t i = 1; i < n; i++) repeats |= compare(at + (i - 1) * stride, at + i * stride, words) == 0;
  if (repeats) atomic_store_explicit(&s->repeats, true, memory_order_relaxed);
}

// --- buckets --------------------------------------------------------------------------------------------------------

typedef struct buckets {
  sorter *s;
  uint64_t *at;
  const int64_t *ends;
} buckets;

static int64_t cached(const sorter *s) {
  return CACHE_WORDS / s->form->stride;
}

static void sort_small(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const buckets *b = arg;
  uint32_t words = b->s->form->words, stride = b->s->form->stride;
  uint64_t *scratch = b->s->scratch + (size_t)worker * b->s->room;
  for (int64_t i = begin; i < end; i++) {
    int64_t first = i ? b->ends[i - 1] : 0, n = b->ends[i] - first;
    if (n < 2 || n > cached(b->s)) continue;
    if (words == 1 && stride == 2)
      sort_cached(b->s, b->at + first * 2, n, scratch, 1, 2);
    else
      sort_cached(b->s, b->at + first * stride, n, scratch, words, stride);
  }
}

static kiln_status sort_large(sorter *s, uint64_t *at, int64_t n);

static kiln_status sort_buckets(sorter *s, uint64_t *at, const int64_t *ends, int64_t count) {
  buckets b = {s, at, ends};
  kl_parallel(s->threads, count, count > 64 ? count / 64 : 1, sort_small, &b);
  for (int64_t i = 0; i < count; i++) {
    int64_t first = i ? ends[i - 1] : 0, n = ends[i] - first;
    if (n > cached(s)) KL_TRY(sort_large(s, at + first * s->form->stride, n));
  }
  return KILN_OK;
}

static void run_some(void *arg, uint32_t worker, int64_t piece, kl_records_put *put, void *to) {
  const kl_record_run *r = arg;
  int64_t first = piece * GRAIN;
  put(to, r->at + first * r->stride, r->n - first < GRAIN ? r->n - first : GRAIN);
}

kl_record_stream kl_record_stream_of(kl_record_run *r) {
  return (kl_record_stream){r->n, r->n / GRAIN + (r->n % GRAIN != 0), run_some, NULL, r, NULL};
}

// The first bits that differ among keys, and whether there are any and keys do not ascend.
static bool first_digit(const sorter *s, const uint64_t *at, int64_t n, digit *out) {
  uint32_t stride = s->form->stride, words = s->form->words;
  bool ascends = true;
  for (int64_t i = 1; i < n && ascends; i++) ascends = compare(at + (i - 1) * stride, at + i * stride, words) <= 0;
  if (ascends) return false;
  for (uint32_t w = 0; w < words; w++) {
    uint64_t vary = 0;
    for (int64_t i = 1; i < n; i++) vary |= at[i * stride + w] ^ at[w];
    if (!vary) continue;
    unsigned top = 64 - (unsigned)__builtin_clzll(vary);
    *out = (digit){w, top < MOST_BITS ? 0 : top - MOST_BITS, top < MOST_BITS ? top : MOST_BITS};
    return true;
  }
  return false;
}

static bool any_repeats(const sorter *s, const uint64_t *at, int64_t n) {
  for (int64_t i = 1; i < n; i++)
    if (compare(at + (i - 1) * s->form->stride, at + i * s->form->stride, s->form->words) == 0) return true;
  return false;
}

static kiln_status sort_large(sorter *s, uint64_t *at, int64_t n) {
  digit d;
  uint64_t *dealt;
  kl_arena own;
  kl_record_run all = {at, n, s->form->stride};
  kl_record_stream stream = kl_record_stream_of(&all);
  if (!first_digit(s, at, n, &d)) {
    if (any_repeats(s, at, n)) atomic_store(&s->repeats, true);
    return KILN_OK;
  }
  size_t size = sizeof(int64_t) << d.bits;
  int64_t *ends = kl_try_alloc(s->cx, size); // not on the stack: there may be as many calls as digits
  if (!ends) return kl_out_of_memory(s->cx, size, "counts of entries");
  sorter inner = {
      .arena = &own, .cx = s->cx, .threads = s->threads, .form = s->form, .scratch = s->scratch, .room = s->room};
  kl_arena_init(&own, s->cx);
  kiln_status status = deal_out(&inner, &stream, d, ends, &dealt);
  if (status == KILN_OK) memcpy(at, dealt, (size_t)n * s->form->stride * 8);
  kl_arena_free(&own);
  if (status == KILN_OK) status = sort_buckets(s, at, ends, 1ll << d.bits);
  kl_free(s->cx, ends, size);
  return status;
}

kiln_status kl_records_sort(kl_arena *a, uint32_t threads, const kl_record_form *form, const kl_record_stream *stream,
                            kl_records *out) {
  sorter s = {.arena = a, .cx = a->cx, .form = form};
  int64_t ends[1 << MOST_BITS];
  unsigned bits = 0;
  uint64_t *at;
  s.threads = stream->most > CACHE_WORDS ? threads : 1;
  while (bits < MOST_BITS && bits < form->used && stream->most >> bits > cached(&s) / 2) bits++;
  s.room = stream->most < cached(&s) ? (size_t)(stream->most + 1) * form->stride : CACHE_WORDS;
  size_t size = s.threads * s.room * 8;
  s.scratch = kl_try_alloc(s.cx, size);
  if (!s.scratch) return kl_out_of_memory(s.cx, size, "entries");
  kiln_status status = deal_out(&s, stream, (digit){0, bits ? form->used - bits : 0, bits}, ends, &at);
  if (status == KILN_OK) status = sort_buckets(&s, at, ends, 1ll << bits);
  kl_free(s.cx, s.scratch, size);
  if (status == KILN_OK) *out = (kl_records){at, ends[(1 << bits) - 1], s.repeats};
  return status;
}

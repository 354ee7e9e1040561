// Sorting records: they are dealt out to buckets by the first bits of their keys, so many that a bucket fits a core's
// cache, and are sorted there digit by digit. A bucket that does not fit is dealt out again. Every step keeps the order
// of what it does not tell apart.
//
// What takes time is memory. So where a key of one word, without the bits that a bucket's records share, leaves room
// for the value, a record is one word: the key's bits above, the value's below.
#include "ir/sparse/store/records.h"
#include "base/threads.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { MOST_BITS = 11, CACHE_WORDS = 1 << 17, FEW = 40, GRAIN = 1 << 16, LINE_WORDS = 8, LINE_BYTES = 8 * LINE_WORDS };

typedef kl_digit digit;

typedef struct sorter {
  kl_arena *arena; // of results
  kl_ctx *cx;
  uint32_t threads;
  const kl_record_form *form;
  uint32_t stride;
  unsigned low;      // as in kl_records
  uint64_t *scratch; // `room` words for each worker
  size_t room;
} sorter;

static inline uint32_t digit_of(uint64_t word, digit d) {
  return (uint32_t)(word >> d.shift) & ((1u << d.bits) - 1);
}

static inline __attribute__((always_inline)) void pack(const sorter *s, uint64_t *to, const uint64_t *key,
                                                       const uint64_t *value) {
  if (s->low) {
    to[0] = key[0] << s->low | value[0];
    return;
  }
  for (uint32_t w = 0; w < s->form->words; w++) to[w] = key[w];
  for (uint32_t w = 0; w < s->form->value_words; w++) to[s->form->words + w] = value[w];
}

// --- dealing out ----------------------------------------------------------------------------------------------------

typedef struct dealing {
  const kl_record_stream *stream;
  const sorter *s;
  digit d;
  int64_t *counts; // [pieces][buckets]; then where the next goes
  uint64_t *out;
} dealing;

// Records of one word or two, which most are, are gathered by bucket and written a line of the host's cache at a time:
// so many buckets would come into the cache and leave it again for every record.
typedef struct deal {
  const dealing *of;
  int64_t *counts;
  int64_t *starts; // of the piece's, by bucket; NULL: not gathered
  uint64_t *lines; // [buckets][LINE_WORDS]
} deal;

static void count_some(void *to, const uint64_t *keys, const uint64_t *values, int64_t n) {
  deal *p = to;
  const digit d = p->of->d;
  const uint32_t words = p->of->s->form->words;
  for (int64_t i = 0; i < n; i++) p->counts[digit_of(keys[i * words + d.word], d)]++;
}

static void deal_some(void *to, const uint64_t *keys, const uint64_t *values, int64_t n) {
  deal *p = to;
  const sorter *s = p->of->s;
  const digit d = p->of->d;
  for (int64_t i = 0; i < n; i++, keys += s->form->words, values += s->form->value_words)
    pack(s, p->of->out + p->counts[digit_of(keys[d.word], d)]++ * s->stride, keys, values);
}

// A whole line, which nobody reads for long: past the cache, where the host can.
static inline void stream_line(uint64_t *to, const uint64_t *line) {
#ifdef __SSE2__
  for (int k = 0; k < LINE_WORDS; k += 2)
    _mm_stream_si128((__m128i *)(void *)(to + k), _mm_loadu_si128((const __m128i *)(const void *)(line + k)));
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
static void put_line(const deal *p, uint32_t bucket, int64_t end, int64_t stride) {
  int64_t begin = (end - 1) & ~(LINE_WORDS / stride - 1);
  const uint64_t *line = p->lines + (size_t)bucket * LINE_WORDS;
  if (begin < p->starts[bucket]) {
    line += (p->starts[bucket] - begin) * stride;
    begin = p->starts[bucket];
  }
  memcpy(p->of->out + begin * stride, line, (size_t)((end - begin) * stride) * 8);
}

static inline __attribute__((always_inline)) void gather(deal *p, const uint64_t *keys, const uint64_t *values,
                                                         int64_t n, int64_t stride) {
  const digit d = p->of->d;
  const int64_t last = LINE_WORDS / stride - 1;
  const unsigned low = p->of->s->low;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bucket = digit_of(keys[i], d);
    const int64_t at = p->counts[bucket]++;
    uint64_t *line = p->lines + (size_t)bucket * LINE_WORDS, *to = line + (at & last) * stride;
    if (stride == 1)
      to[0] = keys[i] << low | values[i];
    else
      to[0] = keys[i], to[1] = values[i];
    if ((at & last) != last) continue;
    if (at - p->starts[bucket] >= last)
      stream_line(p->of->out + (at - last) * stride, line);
    else
      put_line(p, bucket, at + 1, stride);
  }
}

static void gather_words(void *to, const uint64_t *keys, const uint64_t *values, int64_t n) {
  gather(to, keys, values, n, 1);
}
static void gather_pairs(void *to, const uint64_t *keys, const uint64_t *values, int64_t n) {
  gather(to, keys, values, n, 2);
}

// Gathers the piece's records in the worker's scratch.
static void gather_piece(const dealing *d, uint32_t worker, int64_t piece, deal *p) {
  const size_t buckets = (size_t)1 << d->d.bits;
  const uint32_t stride = d->s->stride;
  p->lines = d->s->scratch + (size_t)worker * d->s->room;
  p->starts = (int64_t *)(p->lines + buckets * LINE_WORDS);
  memcpy(p->starts, p->counts, buckets * sizeof *p->starts);
  d->stream->run(d->stream->arg, worker, piece, stride == 1 ? gather_words : gather_pairs, p);
  for (uint32_t b = 0; b < buckets; b++)
    if (p->counts[b] > p->starts[b] && p->counts[b] & (LINE_WORDS / stride - 1)) put_line(p, b, p->counts[b], stride);
  end_streams();
}

static void run_pieces(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const dealing *d = arg;
  const kl_record_stream *s = d->stream;
  const bool gathers = d->s->stride <= 2 && ((size_t)(LINE_WORDS + 1) << d->d.bits) <= d->s->room;
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
  dealing x = {stream, s, d, NULL, NULL};
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
  uint64_t *all = failed ? NULL : kl_arena_try_alloc(s->arena, (size_t)n * s->stride * 8 + LINE_BYTES);
  if (all) *out = x.out = (uint64_t *)(((uintptr_t)all + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1));
  if (x.out && n) kl_parallel(s->threads, stream->pieces, 1, run_pieces, &x);
  kl_free(s->cx, x.counts, size);
  if (failed) return KILN_E_INTERNAL;
  return x.out ? KILN_OK : kl_out_of_memory(s->cx, (size_t)n * s->stride * 8, "entries");
}

// --- in cache -------------------------------------------------------------------------------------------------------

// Which kind of record: in functions that are made for each.
typedef struct kind {
  uint32_t words, stride;
  unsigned low;
} kind;

static inline __attribute__((always_inline)) int compare(const uint64_t *a, const uint64_t *b, kind k) {
  for (uint32_t w = 0; w < k.words; w++) {
    uint64_t x = a[w] >> k.low, y = b[w] >> k.low;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

static inline void copy(uint64_t *to, const uint64_t *from, uint32_t stride) {
  for (uint32_t w = 0; w < stride; w++) to[w] = from[w];
}

static inline __attribute__((always_inline)) void insert(uint64_t *at, int64_t n, uint64_t *spare, kind k) {
  const uint32_t stride = k.stride;
  for (int64_t i = 1; i < n; i++) {
    int64_t j = i;
    if (compare(at + (i - 1) * stride, at + i * stride, k) <= 0) continue;
    copy(spare, at + i * stride, stride);
    for (; j > 0 && compare(at + (j - 1) * stride, spare, k) > 0; j--)
      copy(at + j * stride, at + (j - 1) * stride, stride);
    copy(at + j * stride, spare, stride);
  }
}

// Bits of word w in which keys differ; of the last word those that input does not ascend in anyway. All: it ascends.
static inline __attribute__((always_inline)) uint64_t differing(const kl_record_form *f, const uint64_t *at, int64_t n,
                                                                uint32_t w, kind k) {
  uint64_t vary = 0, masks[KL_MOST_BORDERS];
  bool ascends[KL_MOST_BORDERS];
  uint32_t nb = k.words == 1 ? f->nborders : 0;
  for (uint32_t b = 0; b < nb; b++) {
    masks[b] = f->borders[b] >= 64 ? UINT64_MAX : (1ull << f->borders[b]) - 1;
    ascends[b] = true;
  }
  for (int64_t i = 1; i < n; i++) {
    uint64_t x = at[(i - 1) * k.stride + w] >> k.low, y = at[i * k.stride + w] >> k.low;
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
  for (int64_t i = 0; i < n; i++) ends[digit_of(from[i * stride + d.word], d)]++;
  for (uint32_t b = 0; b < 1u << d.bits; b++) {
    uint32_t own = ends[b];
    ends[b] = at;
    at += own;
  }
  for (int64_t i = 0; i < n; i++)
    copy(to + (size_t)ends[digit_of(from[i * stride + d.word], d)]++ * stride, from + i * stride, stride);
}

static inline __attribute__((always_inline)) void sort_cached(const sorter *s, uint64_t *at, int64_t n,
                                                              uint64_t *scratch, kind k) {
  uint64_t *from = at, *to = scratch;
  if (n < FEW) {
    insert(at, n, scratch, k);
    return;
  }
  for (uint32_t w = k.words; w-- > 0;) {
    uint64_t vary = differing(s->form, from, n, w, k);
    if (!vary) continue;
    unsigned low = (unsigned)__builtin_ctzll(vary), bits = 64 - low - (unsigned)__builtin_clzll(vary);
    unsigned passes = (bits + MOST_BITS - 1) / MOST_BITS, each = (bits + passes - 1) / passes;
    for (unsigned p = 0; p < passes; p++) {
      unsigned rest = bits - p * each;
      pass(from, to, n, (digit){w, k.low + low + p * each, rest < each ? rest : each}, k.stride);
      uint64_t *swap = from;
      from = to, to = swap;
    }
  }
  if (from != at) memcpy(at, from, (size_t)n * k.stride * 8);
}

// --- records of one key ---------------------------------------------------------------------------------------------

static void add(const sorter *s, uint64_t *sum, const uint64_t *x) {
  const kl_record_form *f = s->form;
  if (!s->low) {
    f->add(f->arg, sum + f->words, x + f->words);
    return;
  }
  uint64_t mask = (1ull << s->low) - 1, a = *sum & mask, b = *x & mask;
  f->add(f->arg, &a, &b);
  *sum = (*sum & ~mask) | (a & mask);
}

// Sorted records, those of one key made one; how many are left.
static inline __attribute__((always_inline)) int64_t unite(const sorter *s, uint64_t *at, int64_t n, kind k) {
  int64_t kept = 1;
  while (kept < n && compare(at + (kept - 1) * k.stride, at + kept * k.stride, k) != 0) kept++;
  for (int64_t i = kept; i < n; i++) {
    uint64_t *last = at + (kept - 1) * k.stride;
    if (compare(last, at + i * k.stride, k) == 0)
      add(s, last, at + i * k.stride);
    else
      copy(at + kept++ * k.stride, at + i * k.stride, k.stride);
  }
  return n ? kept : 0;
}

// --- buckets --------------------------------------------------------------------------------------------------------

typedef struct buckets {
  sorter *s;
  uint64_t *at;
  const int64_t *ends;
  int64_t *kept; // records that are left; NULL: those of one key stay as they are
} buckets;

static int64_t cached(const sorter *s) {
  return CACHE_WORDS / s->stride;
}

static inline __attribute__((always_inline)) void sort_bucket(const buckets *b, int64_t i, uint64_t *scratch, kind k) {
  int64_t first = i ? b->ends[i - 1] : 0, n = b->ends[i] - first;
  uint64_t *at = b->at + first * k.stride;
  if (n > cached(b->s)) return;
  if (n > 1) sort_cached(b->s, at, n, scratch, k);
  if (b->kept) b->kept[i] = unite(b->s, at, n, k);
}

static void sort_small(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const buckets *b = arg;
  const sorter *s = b->s;
  uint32_t words = s->form->words;
  uint64_t *scratch = s->scratch + (size_t)worker * s->room;
  for (int64_t i = begin; i < end; i++) {
    if (s->low)
      sort_bucket(b, i, scratch, (kind){1, 1, s->low});
    else if (words == 1 && s->stride == 2)
      sort_bucket(b, i, scratch, (kind){1, 2, 0});
    else
      sort_bucket(b, i, scratch, (kind){words, s->stride, 0});
  }
}

static kiln_status sort_large(sorter *s, uint64_t *at, int64_t n);

static kiln_status sort_buckets(sorter *s, uint64_t *at, const int64_t *ends, int64_t count, int64_t *kept) {
  buckets b = {s, at, ends, kept};
  kl_parallel(s->threads, count, count > 64 ? count / 64 : 1, sort_small, &b);
  for (int64_t i = 0; i < count; i++) {
    int64_t first = i ? ends[i - 1] : 0, n = ends[i] - first;
    if (n <= cached(s)) continue;
    KL_TRY(sort_large(s, at + first * s->stride, n));
    if (kept) kept[i] = unite(s, at + first * s->stride, n, (kind){s->form->words, s->stride, s->low});
  }
  return KILN_OK;
}

// --- buckets that do not fit ----------------------------------------------------------------------------------------

// Keys and values of records in memory, but for bits that all of them share.
static void unpack(const uint64_t *at, int64_t n, uint32_t words, uint32_t value_words, unsigned low, uint64_t *keys,
                   uint64_t *values) {
  if (low) {
    uint64_t mask = (1ull << low) - 1;
    for (int64_t i = 0; i < n; i++) keys[i] = at[i] >> low;
    for (int64_t i = 0; values && i < n; i++) values[i] = at[i] & mask;
    return;
  }
  const uint32_t stride = words + value_words;
  for (int64_t i = 0; i < n; i++)
    for (uint32_t w = 0; w < words; w++) keys[i * words + w] = at[i * stride + w];
  for (int64_t i = 0; values && i < n; i++)
    for (uint32_t w = 0; w < value_words; w++) values[i * value_words + w] = at[i * stride + words + w];
}

typedef struct large {
  const sorter *s;
  const uint64_t *at;
  int64_t n;
} large;

static void run_large(void *arg, uint32_t worker, int64_t piece, kl_records_put *put, void *to) {
  enum { WORDS = 1024 };
  const large *l = arg;
  const kl_record_form *f = l->s->form;
  uint64_t keys[WORDS], values[WORDS];
  int64_t each = WORDS / (f->words > f->value_words ? f->words : f->value_words), at = piece * GRAIN;
  int64_t end = l->n - at < GRAIN ? l->n : at + GRAIN;
  for (int64_t n; at < end; at += n) {
    n = end - at < each ? end - at : each;
    unpack(l->at + at * l->s->stride, n, f->words, f->value_words, l->s->low, keys, values);
    put(to, keys, values, n);
  }
}

// The first bits that differ among keys, and whether there are any and keys do not ascend.
static bool first_digit(const sorter *s, const uint64_t *at, int64_t n, digit *out) {
  const kind k = {s->form->words, s->stride, s->low};
  bool ascends = true;
  for (int64_t i = 1; i < n && ascends; i++) ascends = compare(at + (i - 1) * k.stride, at + i * k.stride, k) <= 0;
  if (ascends) return false;
  for (uint32_t w = 0; w < k.words; w++) {
    uint64_t vary = 0;
    for (int64_t i = 1; i < n; i++) vary |= (at[i * k.stride + w] ^ at[w]) >> k.low;
    if (!vary) continue;
    unsigned top = 64 - (unsigned)__builtin_clzll(vary);
    *out = (digit){w, top < MOST_BITS ? 0 : top - MOST_BITS, top < MOST_BITS ? top : MOST_BITS};
    return true;
  }
  return false;
}

static kiln_status sort_large(sorter *s, uint64_t *at, int64_t n) {
  digit d;
  uint64_t *dealt;
  kl_arena own;
  large all = {s, at, n};
  kl_record_stream stream = {n, n / GRAIN + (n % GRAIN != 0), run_large, NULL, &all, NULL};
  if (!first_digit(s, at, n, &d)) return KILN_OK;
  size_t size = sizeof(int64_t) << d.bits;
  int64_t *ends = kl_try_alloc(s->cx, size); // not on the stack: there may be as many calls as digits
  if (!ends) return kl_out_of_memory(s->cx, size, "counts of entries");
  sorter inner = *s;
  inner.arena = &own;
  kl_arena_init(&own, s->cx);
  kiln_status status = deal_out(&inner, &stream, d, ends, &dealt);
  if (status == KILN_OK) memcpy(at, dealt, (size_t)n * s->stride * 8);
  kl_arena_free(&own);
  if (status == KILN_OK) status = sort_buckets(s, at, ends, 1ll << d.bits, NULL);
  kl_free(s->cx, ends, size);
  return status;
}

// --- the whole ------------------------------------------------------------------------------------------------------

static unsigned bits_for(const kl_record_form *f, int64_t most, uint32_t stride) {
  unsigned bits = 0;
  while (bits < MOST_BITS && bits < f->used && most >> bits > CACHE_WORDS / stride / 2) bits++;
  return bits;
}

// How records lie in memory; how many bits of keys tell buckets apart.
static unsigned choose(sorter *s, int64_t most) {
  const kl_record_form *f = s->form;
  unsigned bits = bits_for(f, most, 1), beyond = f->used + f->value_bits > 64 ? f->used + f->value_bits - 64 : 0;
  if (f->words == 1 && f->value_words == 1 && f->value_bits < 64 && beyond <= MOST_BITS &&
      (beyond <= bits || most >> beyond >= FEW)) {
    s->low = f->value_bits;
    s->stride = 1;
    return bits < beyond ? beyond : bits;
  }
  s->stride = f->words + f->value_words;
  return bits_for(f, most, s->stride);
}

static kiln_status sort_all(sorter *s, const kl_record_stream *stream, digit d, kl_records *out) {
  const int64_t buckets = 1ll << d.bits;
  const size_t size = (size_t)(4 * buckets + 1) * sizeof(int64_t);
  int64_t *ends = kl_arena_try_alloc(s->arena, size), *kept = ends + buckets;
  if (!ends) return kl_out_of_memory(s->cx, size, "counts of entries");
  int64_t *firsts = kept + buckets, *starts = firsts + buckets + 1;
  KL_TRY(deal_out(s, stream, d, ends, &out->at));
  KL_TRY(sort_buckets(s, out->at, ends, buckets, kept));
  for (int64_t b = 0; b < buckets; b++) {
    firsts[b + 1] = firsts[b] + kept[b];
    starts[b] = b ? ends[b - 1] : 0;
  }
  out->n = firsts[buckets];
  out->firsts = firsts;
  out->starts = starts;
  out->buckets = (uint32_t)buckets;
  return KILN_OK;
}

kiln_status kl_records_sort(kl_arena *a, uint32_t threads, const kl_record_form *form, const kl_record_stream *stream,
                            kl_records *out) {
  sorter s = {.arena = a, .cx = a->cx, .form = form, .threads = stream->most > CACHE_WORDS ? threads : 1};
  unsigned bits = choose(&s, stream->most), top = bits ? form->used - bits : 0;
  s.room = stream->most < cached(&s) ? (size_t)(stream->most + 1) * s.stride : CACHE_WORDS;
  size_t size = s.threads * s.room * 8;
  s.scratch = kl_try_alloc(s.cx, size);
  if (!s.scratch) return kl_out_of_memory(s.cx, size, "entries");
  *out = (kl_records){
      .words = form->words, .value_words = form->value_words, .stride = s.stride, .low = s.low, .top = top};
  kiln_status status = sort_all(&s, stream, (digit){0, top, bits}, out);
  kl_free(s.cx, s.scratch, size);
  return status;
}

// --- reading --------------------------------------------------------------------------------------------------------

// The bucket that has record k.
static uint32_t bucket_with(const kl_records *r, int64_t k) {
  uint32_t lo = 0, hi = r->buckets;
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (r->firsts[mid] <= k)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

void kl_records_read(const kl_records *r, int64_t first, int64_t n, uint64_t *keys, uint64_t *values) {
  for (uint32_t b = n > 0 ? bucket_with(r, first) : 0; n > 0; b++) {
    int64_t some = r->firsts[b + 1] - first < n ? r->firsts[b + 1] - first : n;
    unpack(r->at + (r->starts[b] + first - r->firsts[b]) * r->stride, some, r->words, r->value_words, r->low, keys,
           values);
    if (r->low)
      for (int64_t i = 0; i < some; i++) keys[i] |= (uint64_t)b << r->top;
    keys += some * r->words;
    if (values) values += some * r->value_words;
    first += some;
    n -= some;
  }
}

static void run_some(void *arg, uint32_t worker, int64_t piece, kl_records_put *put, void *to) {
  const kl_record_run *r = arg;
  int64_t first = piece * GRAIN;
  put(to, r->keys + first * r->words, r->values + first * r->value_words, r->n - first < GRAIN ? r->n - first : GRAIN);
}

kl_record_stream kl_record_stream_of(kl_record_run *r) {
  return (kl_record_stream){r->n, r->n / GRAIN + (r->n % GRAIN != 0), run_some, NULL, r, NULL};
}

// Formats of stored tensors, of none to eight dimensions, in all types and widths, on shapes of all kinds: what is
// packed is found again, element by element, by a search of the arrays that knows nothing of how they were made; it
// unpacks to the same tensor, bit by bit, and converts to every other format of its rank. Of formats, types and
// fillings one in three is tried, all by KILN_TEST_SHARE=3.
#include "ir/dtype.h"
#include "support/context.h"
#include "support/dtypes.h"
#include "support/random.h"
#include "support/share.h"
#include "support/sparse_formats.h"

#include <ctype.h>
#include <kiln/kiln.h>
#include <stdio.h>

enum { MOST = 4096 }; // elements

// --- stored tensors -------------------------------------------------------------------------------------------------

typedef struct stored {
  format f;
  char text[1024];
  kiln_sparse_layout *l;
  kiln_sparse_array arrays[MOST_BUFFERS];
  kiln_sparse_buffer buffers[MOST_BUFFERS];
  size_t n;
} stored;

static stored open(const char *text, kiln_dtype t, const int64_t *sizes, unsigned pos, unsigned crd) {
  stored s = {.f = parse_format(text)};
  kiln_encoding *e = NULL;
  print_format(&s.f, pos, crd, s.text);
  EXPECT(kiln_encoding_parse(cx, "test", s.text, strlen(s.text), NULL, &e) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_layout_create(cx, e, t, sizes, &s.l) == KILN_OK, "%s\n%s", s.text, last_finding());
  kiln_encoding_destroy(&e);
  while (kiln_sparse_layout_buffer_at(s.l, s.n, &s.buffers[s.n])) s.n++;
  return s;
}

static size_t bytes_of(const stored *s, size_t i) {
  return ((size_t)s->arrays[i].count * s->buffers[i].bits + 7) / 8;
}

// Exactly the size, and full of other numbers.
static void allocate(stored *s) {
  for (size_t i = 0; i < s->n; i++) {
    size_t n = bytes_of(s, i);
    s->arrays[i].data = malloc(n + !n);
    memset(s->arrays[i].data, 0xa5, n);
  }
}

static void close(stored *s) {
  for (size_t i = 0; i < s->n; i++) free(s->arrays[i].data);
  kiln_sparse_layout_destroy(&s->l);
}

static uint64_t element(const stored *s, size_t i, int64_t k) {
  unsigned bits = s->buffers[i].bits;
  uint64_t v = 0;
  EXPECT(k >= 0 && k < s->arrays[i].count, "%s: element %d of array %d", s->text, (int)k, (int)i);
  if (bits < 8) return ((unsigned char *)s->arrays[i].data)[k * bits / 8] >> (k * bits % 8) & ((1u << bits) - 1);
  memcpy(&v, (char *)s->arrays[i].data + k * bits / 8, bits / 8 < 8 ? bits / 8 : 8);
  return v;
}

// --- the search -----------------------------------------------------------------------------------------------------

typedef struct search {
  const stored *s;
  const int64_t *sizes, *at; // of dimensions
  int64_t batch;
  int found;
  int64_t place; // of the value that was found last
} search;

static int64_t level_size(const level *l, const int64_t *sizes) {
  int64_t n = sizes[l->dim];
  if (l->div) n = (n + l->div - 1) / l->div;
  return l->mod ? l->mod : n;
}

static int64_t level_value(const level *l, const int64_t *at) {
  int64_t v = at[l->dim];
  if (l->div) v /= l->div;
  return l->mod ? v % l->mod : v;
}

static int find_buffer(const stored *s, kiln_sparse_role role, size_t level) {
  for (size_t i = 0; i < s->n; i++)
    if (s->buffers[i].role == role && (role == KILN_SPARSE_VALUES || s->buffers[i].level == level)) return (int)i;
  return -1;
}

static int64_t number(const search *x, int buffer, int64_t i) {
  int64_t batches = x->s->buffers[buffer].batches;
  return (int64_t)element(x->s, (size_t)buffer, x->s->arrays[buffer].count / batches * x->batch + i);
}

// A coordinate of entry q: its array may be that of the compressed level before.
static int64_t coordinate(const search *x, int l, int64_t q) {
  int head = l, column = 0;
  while (find_buffer(x->s, KILN_SPARSE_COORDINATES, (size_t)head) < 0) head--, column++;
  int b = find_buffer(x->s, KILN_SPARSE_COORDINATES, (size_t)head);
  return number(x, b, q * x->s->buffers[b].columns + column);
}

static void look(search *x, int l, int64_t p) {
  const format *f = &x->s->f;
  if (l == f->nlevels) {
    int b = find_buffer(x->s, KILN_SPARSE_VALUES, 0);
    x->found++;
    x->place = x->s->arrays[b].count / x->s->buffers[b].batches * x->batch + p;
    return;
  }
  const level *at = &f->levels[l];
  int64_t v = level_value(at, x->at), size = level_size(at, x->sizes), groups;
  int pos = find_buffer(x->s, KILN_SPARSE_POSITIONS, (size_t)l);
  switch (at->kind) {
  case 'B':
    x->batch = x->batch * size + v;
    look(x, l + 1, 0);
    return;
  case 'D': look(x, l + 1, p * size + v); return;
  case 'S':
    if (coordinate(x, l, p) == v) look(x, l + 1, p);
    return;
  case 'T':
    groups = (size + at->m - 1) / at->m;
    for (int64_t i = 0, q = (p * groups + v / at->m) * at->n; i < at->n; i++, q++)
      if (coordinate(x, l, q) == v % at->m) look(x, l + 1, q);
    return;
  default:
    for (int64_t q = number(x, pos, at->kind == 'L' ? 2 * p : p),
                 end = number(x, pos, at->kind == 'L' ? 2 * p + 1 : p + 1);
         q < end; q++)
      if (coordinate(x, l, q) == v) look(x, l + 1, q);
  }
}

// --- tensors --------------------------------------------------------------------------------------------------------

typedef struct tensor {
  kiln_dtype t;
  int rank;
  int64_t sizes[MOST_RANK], n; // elements
  unsigned char data[MOST * 16];
} tensor;

static size_t item(const tensor *x) {
  return kl_info(x->t)->bytes;
}

static void index_of(const tensor *x, int64_t i, int64_t at[MOST_RANK]) {
  for (int d = x->rank; d-- > 0; i /= x->sizes[d]) at[d] = i % x->sizes[d];
}

// Sizes of all kinds: none, one, prime, odd, even.
static void draw_shape(tensor *x, int rank) {
  static const int64_t few[] = {1, 2, 3, 4, 5, 7, 8, 13}, least[] = {1, 2, 3};
  x->rank = rank;
  do {
    x->n = 1;
    for (int d = 0; d < rank; d++) x->n *= x->sizes[d] = rank > 4 ? least[random_bits() % 3] : few[random_bits() % 8];
  } while (x->n > MOST);
  if (rank && random_bits() % 12 == 0) x->n = x->sizes[random_bits() % (unsigned)rank] = 0;
}

static void draw_values(tensor *x, unsigned one_of) {
  memset(x->data, 0, sizeof x->data);
  for (int64_t i = 0; i < x->n; i++) {
    if (random_bits() % one_of) continue;
    for (int part = 0; part < (kl_is_complex(x->t) ? 2 : 1); part++) {
      kl_dtype own = kl_is_complex(x->t) ? kl_info(x->t)->part : x->t;
      kl_element_set(x->t, x->data, i, part, x->t == KILN_PRED ? 1 : random_bits() & kl_int_mask(own));
    }
  }
}

static bool is_zero(const tensor *x, int64_t i) {
  static const unsigned char zero[16] = {0};
  return memcmp(x->data + (size_t)i * item(x), zero, item(x)) == 0;
}

// Has a group more elements than slots? By the elements' own coordinates.
static bool overfull(const format *f, const tensor *x) {
  for (int k = 0; k < f->nlevels; k++) {
    const level *l = &f->levels[k];
    if (l->kind != 'T') continue;
    for (int64_t i = 0; i < x->n; i++) {
      int64_t a[MOST_RANK], b[MOST_RANK], seen = 0;
      bool there[64] = {false};
      index_of(x, i, a);
      for (int64_t j = 0; j < x->n; j++) {
        if (is_zero(x, j)) continue;
        index_of(x, j, b);
        bool same = level_value(l, a) / l->m == level_value(l, b) / l->m;
        for (int q = 0; q < k; q++) same &= level_value(&f->levels[q], a) == level_value(&f->levels[q], b);
        if (!same || there[level_value(l, b) % l->m]) continue;
        there[level_value(l, b) % l->m] = true;
        seen++;
      }
      if (seen > l->n) return true;
    }
  }
  return false;
}

// --- checks ---------------------------------------------------------------------------------------------------------

static void check_search(const stored *s, const tensor *x) {
  unsigned char value[16];
  int v = find_buffer(s, KILN_SPARSE_VALUES, 0);
  unsigned bits = kl_info(x->t)->bits;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t at[MOST_RANK];
    index_of(x, i, at);
    search y = {.s = s, .sizes = x->sizes, .at = at};
    look(&y, 0, 0);
    EXPECT(y.found <= 1, "%s: element %d is there %d times", s->text, (int)i, y.found);
    EXPECT(y.found || is_zero(x, i), "%s: element %d is missing", s->text, (int)i);
    if (!y.found) continue;
    memset(value, 0, sizeof value);
    if (bits < 8)
      value[0] = (unsigned char)element(s, (size_t)v, y.place);
    else
      memcpy(value, (char *)s->arrays[v].data + (size_t)y.place * item(x), item(x));
    EXPECT(memcmp(value, x->data + (size_t)i * item(x), item(x)) == 0, "%s: element %d of %s is another", s->text,
           (int)i, kl_info(x->t)->name);
  }
}

static void check_whole(const stored *s, const tensor *x) {
  static unsigned char back[MOST * 16];
  memset(back, 0x5a, sizeof back);
  EXPECT(kiln_sparse_verify(cx, s->l, s->arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s\n%s", s->text,
         last_finding());
  EXPECT(kiln_sparse_unpack(cx, s->l, s->arrays, back) == KILN_OK, "%s\n%s", s->text, last_finding());
  EXPECT(memcmp(back, x->data, (size_t)x->n * item(x)) == 0, "%s: another %s tensor", s->text, kl_info(x->t)->name);
}

static unsigned draw_width(const tensor *x, bool coordinates) {
  static const unsigned widths[] = {0, 8, 16, 32, 64, 4};
  bool small = coordinates && x->n <= 225;
  for (int d = 0; d < x->rank; d++) small &= x->sizes[d] <= 15;
  unsigned w = widths[random_bits() % (small ? 6 : 5)];
  return w == 8 && !coordinates && x->n > 60 ? 16 : w;
}

static bool pack(stored *s, const tensor *x) {
  kiln_status status = kiln_sparse_pack_dense(cx, s->l, x->data, s->arrays);
  bool fits = !overfull(&s->f, x);
  EXPECT((status == KILN_OK) == fits, "%s: %s\n%s", s->text, fits ? "refused" : "stored", last_finding());
  if (!fits) return false;
  allocate(s);
  EXPECT(kiln_sparse_pack_dense(cx, s->l, x->data, s->arrays) == KILN_OK, "%s\n%s", s->text, last_finding());
  return true;
}

START_TEST(every_type_and_shape) {
  static tensor x;
  format f = parse_format(formats[_i]);
  random_seed((uint64_t)_i);
  for (int t = KILN_DTYPE_NONE + 1; t < KILN_DTYPE_COUNT; t++) {
    if (!kl_is_array_dtype((kiln_dtype)t)) continue;
    for (int k = 0; k < 4; k++) {
      if (!share_has((uint64_t)(_i * KILN_DTYPE_COUNT + t) * 4 + (unsigned)k, 3)) continue;
      x.t = (kiln_dtype)t;
      draw_shape(&x, f.rank);
      draw_values(&x, k == 3 ? 9 : 1 + (unsigned)k);
      stored s = open(formats[_i], x.t, x.sizes, draw_width(&x, false), draw_width(&x, true));
      if (pack(&s, &x)) {
        check_search(&s, &x);
        check_whole(&s, &x);
      }
      close(&s);
    }
  }
}
END_TEST

static void convert(const stored *s, const char *to, const tensor *x) {
  stored t = open(to, x->t, x->sizes, draw_width(x, false), draw_width(x, true));
  bool fits = !overfull(&t.f, x);
  kiln_status status = kiln_sparse_convert(cx, s->l, s->arrays, t.l, t.arrays);
  EXPECT((status == KILN_OK) == fits, "%s to %s\n%s", s->text, t.text, last_finding());
  if (fits) {
    allocate(&t);
    EXPECT(kiln_sparse_convert(cx, s->l, s->arrays, t.l, t.arrays) == KILN_OK, "%s to %s\n%s", s->text, t.text,
           last_finding());
    check_search(&t, x);
    check_whole(&t, x);
  }
  close(&t);
}

START_TEST(every_format_to_every_other) {
  static tensor x;
  int rank = parse_format(formats[_i]).rank;
  random_seed(1000 + (uint64_t)_i);
  for (int to = 0; to < FORMATS; to++) {
    if (parse_format(formats[to]).rank != rank) continue;
    do x.t = (kiln_dtype)(1 + random_bits() % (KILN_DTYPE_COUNT - 1));
    while (!kl_is_array_dtype(x.t));
    draw_shape(&x, rank);
    draw_values(&x, 2 + (unsigned)(random_bits() % 6));
    stored s = open(formats[_i], x.t, x.sizes, draw_width(&x, false), draw_width(&x, true));
    if (pack(&s, &x)) convert(&s, formats[to], &x);
    close(&s);
  }
}
END_TEST

// Enough entries for several pieces and threads, of which some come again; the same arrays as of one entry at a time
// would be too slow, so the model is a dense one of their sums.
static const char *const large[] = {"a:D b:C",
                                    "b:D a:C",
                                    "a:Cn b:S",
                                    "b:C a:C",
                                    "b:D a:L",
                                    "a/4:D b/4:C a%4:D b%4:D",
                                    "a:C b/8:C b%8:T8,8",
                                    "a:B b:C",
                                    "a:T2,2 b:Cn",
                                    "a/512:B b:D a%512:C",
                                    "a:D b/4:D b%4:T4,4"};
enum { LARGE = sizeof large / sizeof *large, ROWS = 1024, COLUMNS = 1000, MANY = 600000 };

START_TEST(many_entries) {
  int64_t sizes[] = {ROWS, COLUMNS}, *at = malloc(MANY * 2 * sizeof *at);
  int32_t *values = malloc(MANY * sizeof *values), *sums = calloc(ROWS * COLUMNS, sizeof *sums),
          *back = malloc(ROWS * COLUMNS * sizeof *back);
  random_seed(7 + (uint64_t)_i);
  for (int64_t k = 0; k < MANY; k++) {
    // half of them in few rows, so that some buckets are many times as large as others
    at[2 * k] = (int64_t)(random_bits() % (k % 2 ? 3 : ROWS));
    at[2 * k + 1] = (int64_t)(random_bits() % COLUMNS);
    values[k] = (int32_t)(random_bits() % 1000) + 1;
    sums[at[2 * k] * COLUMNS + at[2 * k + 1]] += values[k];
  }
  kiln_sparse_entries in = {sizeof in, MANY, at, values};
  stored s = open(large[_i], KILN_S32, sizes, 0, 32);
  EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", s.text, last_finding());
  allocate(&s);
  EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", s.text, last_finding());
  EXPECT(kiln_sparse_verify(cx, s.l, s.arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s\n%s", s.text, last_finding());
  EXPECT(kiln_sparse_unpack(cx, s.l, s.arrays, back) == KILN_OK, "%s", last_finding());
  EXPECT(memcmp(back, sums, ROWS * COLUMNS * sizeof *sums) == 0, "%s: another tensor", s.text);
  for (int to = 0; to < LARGE; to += 3) {
    if (!share_has((uint64_t)(_i * LARGE + to), 2)) continue;
    stored t = open(large[to], KILN_S32, sizes, 32, 0), again = open(large[_i], KILN_S32, sizes, 0, 32);
    EXPECT(kiln_sparse_convert(cx, s.l, s.arrays, t.l, t.arrays) == KILN_OK, "%s\n%s", t.text, last_finding());
    allocate(&t);
    EXPECT(kiln_sparse_convert(cx, s.l, s.arrays, t.l, t.arrays) == KILN_OK, "%s\n%s", t.text, last_finding());
    EXPECT(kiln_sparse_unpack(cx, t.l, t.arrays, back) == KILN_OK, "%s", last_finding());
    EXPECT(memcmp(back, sums, ROWS * COLUMNS * sizeof *sums) == 0, "%s to %s: another tensor", s.text, t.text);
    EXPECT(kiln_sparse_convert(cx, t.l, t.arrays, again.l, again.arrays) == KILN_OK, "%s", last_finding());
    allocate(&again);
    EXPECT(kiln_sparse_convert(cx, t.l, t.arrays, again.l, again.arrays) == KILN_OK, "%s", last_finding());
    for (size_t i = 0; i < s.n; i++)
      EXPECT(s.arrays[i].count == again.arrays[i].count &&
                 memcmp(s.arrays[i].data, again.arrays[i].data, bytes_of(&s, i)) == 0,
             "%s, back from %s: another array %d", s.text, t.text, (int)i);
    close(&again);
    close(&t);
  }
  close(&s);
  free(at), free(values), free(sums), free(back);
}
END_TEST

// The same in tensors so large that keys and values together are longer than a word, or just not.
static const char *const wide[] = {"b:C a:C", "a:Cn b:S", "a:C b:C", "a/512:C b:C a%512:C"};
static const kiln_dtype wide_types[] = {KILN_S16, KILN_S32, KILN_S64, KILN_C128};
enum { WIDE = sizeof wide / sizeof *wide, WIDE_TYPES = sizeof wide_types / sizeof *wide_types, SOME = 320000 };

static int64_t spread(int64_t i, int64_t step) {
  return i * step + i * 7 % step;
}

typedef struct walked {
  const int64_t *sums;
  int64_t n, wrong;
  kiln_dtype t;
} walked;

static kiln_status compare_sum(void *user, const int64_t *at, const void *value) {
  walked *w = user;
  int64_t i = at[0] / 1024, j = at[1] / 4096, sum = w->sums[i * COLUMNS + j];
  bool same = w->t == KILN_S16   ? *(const int16_t *)value == (int16_t)sum
              : w->t == KILN_S32 ? *(const int32_t *)value == (int32_t)sum
              : w->t == KILN_S64 ? *(const int64_t *)value == sum
                                 : *(const double *)value == (double)sum;
  w->wrong += !same || at[0] != spread(i, 1024) || at[1] != spread(j, 4096);
  w->n++;
  return KILN_OK;
}

static void put_number(void *values, kiln_dtype t, int64_t k, int64_t v) {
  if (t == KILN_S16) ((int16_t *)values)[k] = (int16_t)v;
  if (t == KILN_S32) ((int32_t *)values)[k] = (int32_t)v;
  if (t == KILN_S64) ((int64_t *)values)[k] = v;
  if (t == KILN_C128) ((double *)values)[2 * k] = (double)v, ((double *)values)[2 * k + 1] = 0;
}

static void expect_sums(const stored *s, kiln_dtype t, const int64_t *sums, int64_t distinct) {
  walked w = {sums, 0, 0, t};
  EXPECT(kiln_sparse_verify(cx, s->l, s->arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s\n%s", s->text,
         last_finding());
  EXPECT(kiln_sparse_walk(cx, s->l, s->arrays, compare_sum, &w) == KILN_OK, "%s", last_finding());
  EXPECT(w.n == distinct && w.wrong == 0, "%s: %lld of %lld entries, %lld wrong", s->text, (long long)w.n,
         (long long)distinct, (long long)w.wrong);
}

START_TEST(many_entries_of_large_tensors) {
  const kiln_dtype t = wide_types[_i];
  int64_t sizes[] = {ROWS * 1024, COLUMNS * 4096}, *at = malloc(SOME * 2 * sizeof *at), distinct = 0,
          *sums = calloc(ROWS * COLUMNS, sizeof *sums);
  void *values = malloc(SOME * 16);
  random_seed(70 + (uint64_t)_i);
  for (int64_t k = 0; k < SOME; k++) {
    // half of them in one row, which no core's cache holds
    int64_t i = k % 2 ? 5 : (int64_t)(random_bits() % ROWS), j = (int64_t)(random_bits() % COLUMNS);
    int64_t v = (int64_t)(random_bits() % 9) + 1, *sum = &sums[i * COLUMNS + j];
    at[2 * k] = spread(i, 1024);
    at[2 * k + 1] = spread(j, 4096);
    put_number(values, t, k, v);
    distinct += *sum == 0;
    *sum += v;
  }
  kiln_sparse_entries in = {sizeof in, SOME, at, values};
  for (int f = 0; f < WIDE; f++) {
    stored s = open(wide[f], t, sizes, 0, 32), to = open(wide[(f + 1) % WIDE], t, sizes, 32, 64);
    EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", s.text, last_finding());
    allocate(&s);
    EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", s.text, last_finding());
    expect_sums(&s, t, sums, distinct);
    EXPECT(kiln_sparse_convert(cx, s.l, s.arrays, to.l, to.arrays) == KILN_OK, "%s\n%s", to.text, last_finding());
    allocate(&to);
    EXPECT(kiln_sparse_convert(cx, s.l, s.arrays, to.l, to.arrays) == KILN_OK, "%s\n%s", to.text, last_finding());
    expect_sums(&to, t, sums, distinct);
    close(&to);
    close(&s);
  }
  free(at), free(values), free(sums);
}
END_TEST

// --- slices ---------------------------------------------------------------------------------------------------------

START_TEST(slices_of_every_format) {
  static tensor x, y;
  int rank = parse_format(formats[_i]).rank;
  random_seed(2000 + (uint64_t)_i);
  for (int round = 0; round < 6; round++) {
    kiln_sparse_slice slices[MOST_RANK];
    x.t = y.t = KILN_S16;
    draw_shape(&x, rank);
    draw_values(&x, 4);
    y.rank = rank;
    y.n = 1;
    for (int d = 0; d < rank; d++) {
      int64_t n = x.sizes[d], offset = (int64_t)(random_bits() % (uint64_t)(n + 1)),
              stride = 1 + (int64_t)(random_bits() % 3);
      int64_t most = (n - offset + stride - 1) / stride, size = (int64_t)(random_bits() % (uint64_t)(most + 1));
      slices[d] = (kiln_sparse_slice){offset, size, stride};
      y.n *= y.sizes[d] = size;
    }
    memset(y.data, 0, sizeof y.data);
    for (int64_t i = 0; i < y.n; i++) {
      int64_t at[MOST_RANK], from = 0;
      index_of(&y, i, at);
      for (int d = 0; d < rank; d++) from = from * x.sizes[d] + slices[d].offset + at[d] * slices[d].stride;
      memcpy(y.data + 2 * i, x.data + 2 * from, 2);
    }
    stored s = open(formats[_i], x.t, x.sizes, 0, 0);
    if (pack(&s, &x)) {
      const char *to;
      do to = formats[random_bits() % FORMATS];
      while (parse_format(to).rank != rank);
      stored t = open(to, y.t, y.sizes, 0, 0);
      kiln_status status = kiln_sparse_convert_slice(cx, s.l, s.arrays, slices, t.l, t.arrays);
      EXPECT((status == KILN_OK) == !overfull(&t.f, &y), "%s to %s\n%s", s.text, t.text, last_finding());
      if (status == KILN_OK) {
        allocate(&t);
        EXPECT(kiln_sparse_convert_slice(cx, s.l, s.arrays, slices, t.l, t.arrays) == KILN_OK, "%s", last_finding());
        check_search(&t, &y);
        check_whole(&t, &y);
      }
      close(&t);
    }
    close(&s);
  }
}
END_TEST

// The whole is 4 x 8: positions 0 3 4 4 7, coordinates 0 3 6, 2, -, 1 4 7.
static const struct {
  const char *slices;
  kiln_sparse_slice given[2];
  int64_t sizes[2];
  const char *finding; // NULL: it is this
  double dense[12];
} slices[] = {
    {"(i : #sparse_tensor<slice(0, 4, 1)>, j : #sparse_tensor<slice(0, 4, 2)>)",
     {{-1, -1, -1}, {-1, -1, -1}},
     {4, 4},
     NULL,
     {1, 0, 0, 3, 0, 4}},
    {"(i : #sparse_tensor<slice(1, 3, 1)>, j : #sparse_tensor<slice(?, 3, ?)>)",
     {{-1, -1, -1}, {1, -1, 3}},
     {3, 3},
     NULL,
     {[6] = 5, 6, 7}},
    {"(i, j)",
     {{-1, -1, -1}, {0, 2, 3}},
     {4, 2},
     "slice of dimension 0: expected a offset of at least 0, found none",
     {0}},
    {"(i, j)",
     {{0, 4, 1}, {6, 2, 2}},
     {4, 2},
     "slice of dimension 1: expected elements 0 to 7, found 2 from 6 on, each 2",
     {0}},
    {"(i, j)", {{0, 4, 1}, {0, 2, 0}}, {4, 2}, "expected a stride of at least 1, found 0", {0}},
    {"(i, j)", {{0, 4, 1}, {0, 3, 1}}, {4, 2}, "dimension 1: expected a layout of the slice's size, 3, found 2", {0}},
    {"(i : #sparse_tensor<slice(1, 3, 1)>, j)",
     {{2, -1, -1}, {0, 8, 1}},
     {3, 8},
     "slice of dimension 0: expected the encoding's offset, 1, found 2",
     {0}},
};

START_TEST(slices_by_encodings) {
  uint64_t pos[] = {0, 3, 4, 4, 7}, crd[] = {0, 3, 6, 2, 1, 4, 7};
  double values[] = {1, 2, 3, 4, 5, 6, 7}, back[12] = {0};
  kiln_sparse_array arrays[] = {{pos, 5}, {crd, 7}, {values, 7}};
  char text[400];
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  snprintf(text, sizeof text, "map = %s -> (i : dense, j : compressed)", slices[_i].slices);
  EXPECT(kiln_encoding_parse(cx, "test", text, strlen(text), NULL, &e) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_layout_create(cx, e, KILN_F64, (int64_t[]){4, 8}, &l) == KILN_OK, "%s", last_finding());
  kiln_encoding_destroy(&e);
  stored t = open("a:D b:D", KILN_F64, slices[_i].sizes, 0, 0);
  bool own = slices[_i].given[0].offset < 0 && slices[_i].given[1].offset < 0;
  kiln_status status = kiln_sparse_convert_slice(cx, l, arrays, own ? NULL : slices[_i].given, t.l, t.arrays);
  EXPECT((status == KILN_OK) == !slices[_i].finding, "%s\n%s", text, last_finding());
  if (status == KILN_OK) {
    t.arrays[0] = (kiln_sparse_array){back, 12};
    if (slices[_i].sizes[0] * slices[_i].sizes[1] <= 12)
      EXPECT(kiln_sparse_convert_slice(cx, l, arrays, own ? NULL : slices[_i].given, t.l, t.arrays) == KILN_OK &&
                 memcmp(back, slices[_i].dense, 9 * sizeof *back) == 0,
             "%s", text);
    t.arrays[0].data = NULL;
  } else {
    EXPECT(strstr(last_finding(), slices[_i].finding), "%s", last_finding());
  }
  close(&t);
  kiln_sparse_layout_destroy(&l);
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse_formats", EACH(make_context, drop_context), {every_type_and_shape, FORMATS},
                   {every_format_to_every_other, FORMATS}, {many_entries, LARGE},
                   {many_entries_of_large_tensors, WIDE_TYPES}, {slices_of_every_format, FORMATS},
                   {slices_by_encodings, sizeof slices / sizeof *slices});
}

// Stored tensors as the public API has them: sources of entries, and what takes them.
#include "base/threads.h"
#include "ir/sparse/store/store.h"

enum { WORTH = 1 << 15 }; // entries that threads are worth

static uint32_t workers_for(int64_t n) {
  return n < WORTH ? 1 : kl_cores();
}

static kiln_status opened(kl_ctx *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                          kiln_sparse_check upto, kl_store *out) {
  KL_TRY(kl_store_open(cx, l, (kiln_sparse_array *)arrays, out));
  return kl_store_check(out, upto);
}

kiln_status kiln_sparse_verify(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                               kiln_sparse_check level) {
  kl_store s;
  KL_EXPECT(cx, l, arrays);
  return opened(cx, l, arrays, level, &s);
}

// --- entries of the caller's ----------------------------------------------------------------------------------------

// One block for each worker.
typedef struct gathered {
  int64_t **dims;
  uint64_t *values;
} gathered;

typedef struct given {
  const kl_store *s;
  const int64_t *coordinates; // of entries; NULL: dense elements
  const unsigned char *values;
  int64_t n, grain;
  uint64_t implicit[KL_VALUE_WORDS];
  gathered *workers;
  _Atomic int64_t wrong; // the first entry outside the tensor, or INT64_MAX
} given;

static kiln_status open_given(kl_arena *a, given *g, uint32_t workers) {
  uint32_t nd = g->s->e->ndims;
  size_t row = KL_BLOCK * sizeof(int64_t);
  g->workers = KL_NEW_N(a, gathered, workers);
  kl_value_implicit(g->s, g->implicit);
  for (uint32_t i = 0; i < workers; i++) {
    gathered *w = &g->workers[i];
    int64_t *at = kl_arena_try_alloc(a, (nd + kl_value_words(g->s)) * row);
    w->dims = kl_arena_try_alloc(a, (nd + 1u) * sizeof *w->dims);
    if (!at || !w->dims) return kl_out_of_memory(g->s->cx, row, "blocks of entries");
    for (uint32_t d = 0; d < nd; d++) w->dims[d] = at + (size_t)d * KL_BLOCK;
    w->values = (uint64_t *)at + (size_t)nd * KL_BLOCK;
  }
  return KILN_OK;
}

static void note_wrong(given *g, int64_t k) {
  int64_t first = atomic_load(&g->wrong);
  while (k < first && !atomic_compare_exchange_weak(&g->wrong, &first, k)) continue;
}

static void run_entries(void *arg, uint32_t worker, int64_t piece, kl_entry_put *put, void *to) {
  given *g = arg;
  gathered *w = &g->workers[worker];
  uint32_t nd = g->s->e->ndims;
  size_t bytes = kl_info(g->s->l->type.element.dtype)->bytes;
  int64_t end = g->n - piece * g->grain < g->grain ? g->n : (piece + 1) * g->grain;
  for (int64_t k = piece * g->grain; k < end; k += KL_BLOCK) {
    int64_t n = end - k < KL_BLOCK ? end - k : KL_BLOCK, wrong = n;
    for (uint32_t d = 0; d < nd; d++) {
      int64_t size = g->s->l->type.sizes[d], *out = w->dims[d];
      const int64_t *in = g->coordinates + k * nd + d;
      for (int64_t i = 0; i < n; i++) {
        out[i] = in[i * nd];
        if ((out[i] < 0 || out[i] >= size) && i < wrong) wrong = i;
      }
    }
    if (wrong < n) {
      note_wrong(g, k + wrong);
      return;
    }
    kl_values_unpacked(g->s, g->values + (size_t)k * bytes, n, w->values);
    if (!put(to, &(kl_entry_block){n, w->dims, w->values})) return;
  }
}

static kiln_status wrong_entry(void *arg) {
  const given *g = arg;
  int64_t k = g->wrong;
  if (k == INT64_MAX) return KILN_OK;
  const int64_t *at = g->coordinates + k * g->s->e->ndims, *size = g->s->l->type.sizes;
  uint32_t d = 0;
  while (at[d] >= 0 && at[d] < size[d]) d++;
  return kl_invalid(g->s->cx, KL_NOWHERE, "entry %lld, dimension %u: expected 0 to %lld, found %lld", (long long)k, d,
                    (long long)size[d] - 1, (long long)at[d]);
}

static kiln_status check_entries(kl_ctx *cx, const kiln_sparse_layout *l, const kiln_sparse_entries *in) {
  if (in->count < 0 || (in->count && (!in->values || (l->e->ndims && !in->coordinates))))
    return kl_invalid(cx, KL_NOWHERE, "expected entries with coordinates and values, found %lld without",
                      (long long)in->count);
  return KILN_OK;
}

enum { GRAIN = 1 << 16 };

static kiln_status pack_given(kl_store *s, given *g, kl_entry_source *from) {
  kl_arena a;
  kl_arena_init(&a, s->cx);
  from->most = g->n;
  from->pieces = g->n / g->grain + (g->n % g->grain != 0);
  from->workers = workers_for(g->n);
  from->arg = g;
  kiln_status status = open_given(&a, g, from->workers);
  if (status == KILN_OK) status = kl_pack(s, from);
  kl_arena_free(&a);
  return status;
}

kiln_status kiln_sparse_pack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_entries *entries,
                             kiln_sparse_array *arrays) {
  kl_store s;
  kiln_sparse_entries own = {0};
  KL_EXPECT(cx, l, entries, arrays);
  KL_TRY(KL_PARAMS_IN(cx, kiln_sparse_entries, entries, &own));
  KL_TRY(kl_store_open(cx, l, arrays, &s));
  KL_TRY(check_entries(cx, l, &own));
  static const int64_t none = 0;
  given g = {&s, own.coordinates ? own.coordinates : &none, own.values, own.count, GRAIN, .wrong = INT64_MAX};
  return pack_given(&s, &g, &(kl_entry_source){.run = run_entries, .found = wrong_entry});
}

// --- dense tensors --------------------------------------------------------------------------------------------------

// The number of elements; INVALID beyond 64 bits.
static kiln_status elements_of(const kl_store *s, int64_t *out) {
  int64_t n = 1, bytes;
  for (uint32_t d = 0; d < s->e->ndims; d++)
    if (s->l->type.sizes[d] == 0) {
      *out = 0;
      return KILN_OK;
    }
  for (uint32_t d = 0; d < s->e->ndims; d++)
    if (__builtin_mul_overflow(n, s->l->type.sizes[d], &n) || __builtin_mul_overflow(n, 16, &bytes))
      return kl_unsupported(s->cx, KL_NOWHERE, "a dense tensor of more bytes than 64 bits count");
  *out = n;
  return KILN_OK;
}

// Coordinates of element k of a row-major tensor.
static void index_of(const kl_store *s, int64_t k, int64_t *at) {
  for (uint32_t d = s->e->ndims; d-- > 0; k /= s->l->type.sizes[d]) at[d] = k % s->l->type.sizes[d];
}

static void next_index(const kl_store *s, int64_t *at) {
  for (uint32_t d = s->e->ndims; d-- > 0;) {
    if (++at[d] < s->l->type.sizes[d]) return;
    at[d] = 0;
  }
}

// Elements other than the implicit value.
static void run_dense(void *arg, uint32_t worker, int64_t piece, kl_entry_put *put, void *to) {
  const given *g = arg;
  gathered *w = &g->workers[worker];
  uint32_t nd = g->s->e->ndims, words = kl_value_words(g->s);
  size_t bytes = kl_info(g->s->l->type.element.dtype)->bytes;
  int64_t at[KL_MOST_LEVELS], end = g->n - piece * g->grain < g->grain ? g->n : (piece + 1) * g->grain;
  index_of(g->s, piece * g->grain, at);
  for (int64_t k = piece * g->grain; k < end; k += KL_BLOCK) {
    int64_t n = end - k < KL_BLOCK ? end - k : KL_BLOCK, kept = 0;
    kl_values_unpacked(g->s, g->values + (size_t)k * bytes, n, w->values);
    for (int64_t i = 0; i < n; i++, next_index(g->s, at)) {
      const uint64_t *v = w->values + i * words;
      if (v[0] == g->implicit[0] && v[words - 1] == g->implicit[words - 1]) continue;
      for (uint32_t d = 0; d < nd; d++) w->dims[d][kept] = at[d];
      memmove(w->values + kept++ * words, v, words * sizeof *v);
    }
    if (kept && !put(to, &(kl_entry_block){kept, w->dims, w->values})) return;
  }
}

kiln_status kiln_sparse_pack_dense(kiln_context *cx, const kiln_sparse_layout *l, const void *elements,
                                   kiln_sparse_array *arrays) {
  kl_store s;
  int64_t n = 0;
  KL_EXPECT(cx, l, arrays);
  KL_TRY(kl_store_open(cx, l, arrays, &s));
  KL_TRY(elements_of(&s, &n));
  if (n) KL_EXPECT(cx, elements);
  given g = {&s, NULL, elements, n, GRAIN, .wrong = INT64_MAX};
  return pack_given(&s, &g, &(kl_entry_source){.run = run_dense});
}

// --- reading --------------------------------------------------------------------------------------------------------

// All entries by one worker, in order.
static kiln_status read_all(const kl_store *s, kl_entry_put *put, void *to, const bool *ended) {
  kl_arena a;
  kl_entry_source from;
  kl_arena_init(&a, s->cx);
  kiln_status status = kl_reading_open(&a, s, &(kl_reading_params){.workers = 1, .all = true}, &from);
  for (int64_t i = 0; status == KILN_OK && i < from.pieces && !*ended; i++) from.run(from.arg, 0, i, put, to);
  kl_arena_free(&a);
  return status;
}

typedef struct unpacking {
  const kl_store *s;
  char *elements;
  unsigned char *seen; // by element: has it a value yet?
} unpacking;

static bool unpack_block(void *to, const kl_entry_block *b) {
  const unpacking *u = to;
  kl_dtype t = u->s->l->type.element.dtype;
  size_t bytes = kl_info(t)->bytes, words = kl_value_words(u->s);
  for (int64_t k = 0; k < b->n; k++) {
    int64_t i = 0;
    for (uint32_t d = 0; d < u->s->e->ndims; d++) i = i * u->s->l->type.sizes[d] + b->dims[d][k];
    void *element = u->elements + (size_t)i * bytes;
    const uint64_t *value = b->values + (size_t)k * words;
    if (u->seen[i / 8] >> (i % 8) & 1)
      kl_value_add(t, element, value);
    else
      memcpy(element, value, bytes);
    u->seen[i / 8] |= (unsigned char)(1u << (i % 8));
  }
  return true;
}

kiln_status kiln_sparse_unpack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                               void *elements) {
  kl_store s;
  int64_t n = 0;
  uint64_t implicit[KL_VALUE_WORDS];
  static const bool never = false;
  KL_EXPECT(cx, l, arrays);
  KL_TRY(opened(cx, l, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  KL_TRY(elements_of(&s, &n));
  if (n == 0) return KILN_OK;
  KL_EXPECT(cx, elements);
  size_t bytes = kl_info(l->type.element.dtype)->bytes;
  unpacking u = {&s, elements, kl_try_alloc(cx, (size_t)n / 8 + 1)};
  if (!u.seen) return kl_out_of_memory(cx, (size_t)n / 8 + 1, "marks of elements");
  kl_value_implicit(&s, implicit);
  for (int64_t i = 0; i < n; i++) memcpy(u.elements + (size_t)i * bytes, implicit, bytes);
  kiln_status status = read_all(&s, unpack_block, &u, &never);
  kl_free(cx, u.seen, (size_t)n / 8 + 1);
  return status;
}

typedef struct visiting {
  const kl_store *s;
  kiln_sparse_visit *visit;
  void *user;
  kiln_status status;
  bool ended;
} visiting;

static bool visit_block(void *to, const kl_entry_block *b) {
  visiting *v = to;
  int64_t at[KL_MOST_LEVELS];
  for (int64_t k = 0; k < b->n; k++) {
    for (uint32_t d = 0; d < v->s->e->ndims; d++) at[d] = b->dims[d][k];
    v->status = v->visit(v->user, at, b->values + (size_t)k * kl_value_words(v->s));
    if (v->status == KILN_OK) continue;
    v->ended = true;
    return false;
  }
  return true;
}

kiln_status kiln_sparse_walk(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                             kiln_sparse_visit *visit, void *user) {
  kl_store s;
  KL_EXPECT(cx, l, arrays);
  if (!visit) return kl_invalid(cx, KL_NOWHERE, "kiln_sparse_walk: expected a function to call, found NULL");
  KL_TRY(opened(cx, l, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  visiting v = {.s = &s, .visit = visit, .user = user, .status = KILN_OK};
  KL_TRY(read_all(&s, visit_block, &v, &v.ended));
  return v.status;
}

// --- conversions ----------------------------------------------------------------------------------------------------

static kiln_status same_values(const kl_store *a, const kl_store *b) {
  const kl_tensor_type *x = &a->l->type, *y = &b->l->type;
  uint64_t u[KL_VALUE_WORDS], v[KL_VALUE_WORDS];
  if (x->rank != y->rank || x->element.dtype != y->element.dtype)
    return kl_invalid(a->cx, KL_NOWHERE, "expected layouts of the same rank and type, found others");
  kl_value_implicit(a, u);
  kl_value_implicit(b, v);
  if (memcmp(u, v, sizeof u))
    return kl_invalid(a->cx, KL_NOWHERE, "expected layouts of the same implicit value, found others");
  return KILN_OK;
}

static kiln_status convert(kl_store *from, const kl_slice *slices, kl_store *to) {
  kl_arena a;
  kl_entry_source source;
  int64_t stored = from->arrays[from->nbuffers - 1].count;
  kl_reading_params params = {.workers = workers_for(stored), .slices = slices};
  kl_arena_init(&a, from->cx);
  kiln_status status = kl_reading_open(&a, from, &params, &source);
  if (status == KILN_OK) status = kl_pack(to, &source);
  kl_arena_free(&a);
  return status;
}

kiln_status kiln_sparse_convert(kiln_context *cx, const kiln_sparse_layout *from, const kiln_sparse_array *arrays,
                                const kiln_sparse_layout *to, kiln_sparse_array *out) {
  kl_store s, t;
  KL_EXPECT(cx, from, arrays, to, out);
  KL_TRY(opened(cx, from, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  KL_TRY(kl_store_open(cx, to, out, &t));
  KL_TRY(same_values(&s, &t));
  if (memcmp(from->type.sizes, to->type.sizes, from->type.rank * sizeof *to->type.sizes))
    return kl_invalid(cx, KL_NOWHERE, "expected layouts of the same sizes, found others");
  return convert(&s, NULL, &t);
}

// One number of a slice: as given, or as the encoding has it.
static kiln_status slice_number(kl_ctx *cx, uint32_t d, const char *what, int64_t own, int64_t given, int64_t least,
                                int64_t *out) {
  *out = given < 0 ? own : given;
  if (*out < least)
    return kl_invalid(cx, KL_NOWHERE, "slice of dimension %u: expected a %s of at least %lld, found %s", d, what,
                      (long long)least, *out < 0 ? "none" : "0");
  if (own >= 0 && own != *out)
    return kl_invalid(cx, KL_NOWHERE, "slice of dimension %u: expected the encoding's %s, %lld, found %lld", d, what,
                      (long long)own, (long long)*out);
  return KILN_OK;
}

static kiln_status slice_of(const kl_store *s, uint32_t d, const kiln_sparse_slice *given, kl_slice *out) {
  int64_t size = s->l->type.sizes[d], last;
  kl_slice own = {false, KL_SLICE_DYNAMIC, KL_SLICE_DYNAMIC, KL_SLICE_DYNAMIC};
  kiln_sparse_slice none = {-1, -1, -1};
  bool sliced = s->e->slices && s->e->slices[d].given;
  if (sliced) own = s->e->slices[d];
  if (!given && !sliced) own = (kl_slice){true, 0, size, 1};
  if (!given) given = &none;
  out->given = true;
  KL_TRY(slice_number(s->cx, d, "offset", own.offset, given->offset, 0, &out->offset));
  KL_TRY(slice_number(s->cx, d, "size", own.size, given->size, 0, &out->size));
  KL_TRY(slice_number(s->cx, d, "stride", own.stride, given->stride, 1, &out->stride));
  if (out->size && (__builtin_mul_overflow(out->size - 1, out->stride, &last) ||
                    __builtin_add_overflow(last, out->offset, &last) || last >= size))
    return kl_invalid(s->cx, KL_NOWHERE,
                      "slice of dimension %u: expected elements 0 to %lld, found %lld from %lld on, each %lld", d,
                      (long long)size - 1, (long long)out->size, (long long)out->offset, (long long)out->stride);
  return KILN_OK;
}

kiln_status kiln_sparse_convert_slice(kiln_context *cx, const kiln_sparse_layout *from, const kiln_sparse_array *arrays,
                                      const kiln_sparse_slice *slices, const kiln_sparse_layout *to,
                                      kiln_sparse_array *out) {
  kl_store s, t;
  kl_slice all[KL_MOST_LEVELS];
  KL_EXPECT(cx, from, arrays, to, out);
  KL_TRY(opened(cx, from, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  KL_TRY(kl_store_open(cx, to, out, &t));
  KL_TRY(same_values(&s, &t));
  for (uint32_t d = 0; d < s.e->ndims; d++) {
    KL_TRY(slice_of(&s, d, slices ? &slices[d] : NULL, &all[d]));
    if (all[d].size != to->type.sizes[d])
      return kl_invalid(cx, KL_NOWHERE, "dimension %u: expected a layout of the slice's size, %lld, found %lld", d,
                        (long long)all[d].size, (long long)to->type.sizes[d]);
  }
  return convert(&s, all, &t);
}

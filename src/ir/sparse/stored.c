// Stored tensors as the public API has them: dense tensors and conversions go through entries.
#include "ir/sparse/pack.h"

static kiln_status opened(kl_ctx *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                          kiln_sparse_check upto, kl_store *out) {
  KL_TRY(kl_store_open(cx, l, (kiln_sparse_array *)arrays, out));
  return kl_store_check(out, upto);
}

static kiln_status check_entries(kl_ctx *cx, const kiln_sparse_layout *l, const kiln_sparse_entries *in) {
  if (in->count < 0 || (in->count && (!in->values || (l->e->ndims && !in->coordinates))))
    return kl_invalid(cx, KL_NOWHERE, "expected entries with coordinates and values, found %lld without",
                      (long long)in->count);
  return KILN_OK;
}

kiln_status kiln_sparse_pack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_entries *entries,
                             kiln_sparse_array *arrays) {
  kl_store s;
  kiln_sparse_entries own = {0};
  KL_EXPECT(cx, l, entries, arrays);
  KL_TRY(KL_PARAMS_IN(cx, kiln_sparse_entries, entries, &own));
  KL_TRY(kl_store_open(cx, l, arrays, &s));
  KL_TRY(check_entries(cx, l, &own));
  return kl_pack(&s, &own);
}

// Entries are gathered in two rounds: the first counts them.
typedef struct gathering {
  const kl_store *s;
  int64_t *coordinates; // NULL in the first round
  unsigned char *values;
  int64_t count, room;
  uint64_t implicit[2];
  size_t bytes;
} gathering;

static void gather_open(gathering *g, const kl_store *s) {
  *g = (gathering){.s = s, .bytes = kl_info(s->l->type.element.dtype)->bytes};
  kl_value_implicit(s, g->implicit);
}

static void gather(gathering *g, const int64_t *at, const void *value) {
  uint32_t n = g->s->e->ndims;
  if (memcmp(value, g->implicit, g->bytes) == 0) return;
  if (g->coordinates) {
    if (n) memcpy(g->coordinates + g->count * n, at, n * sizeof *at);
    memcpy(g->values + (size_t)g->count * g->bytes, value, g->bytes);
  }
  g->count++;
}

// Between the rounds.
static kiln_status gather_again(gathering *g) {
  size_t n = (size_t)g->count + 1, size = n * g->s->e->ndims * sizeof(int64_t) + 1;
  if (n > (size_t)1 << 48) return kl_out_of_memory(g->s->cx, SIZE_MAX, "entries");
  g->room = g->count;
  g->count = 0;
  g->coordinates = kl_try_alloc(g->s->cx, size);
  g->values = kl_try_alloc(g->s->cx, n * g->bytes);
  return g->coordinates && g->values ? KILN_OK : kl_out_of_memory(g->s->cx, size + n * g->bytes, "entries");
}

static kiln_status gather_close(gathering *g, kiln_status status, kl_store *to) {
  kiln_sparse_entries in = {sizeof in, g->count, g->coordinates, g->values};
  size_t n = (size_t)g->room + 1;
  if (status == KILN_OK) status = kl_pack(to, &in);
  if (g->coordinates) kl_free(g->s->cx, g->coordinates, n * g->s->e->ndims * sizeof(int64_t) + 1);
  if (g->values) kl_free(g->s->cx, g->values, n * g->bytes);
  return status;
}

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

static void next_index(const kl_store *s, int64_t *at) {
  for (uint32_t d = s->e->ndims; d-- > 0;) {
    if (++at[d] < s->l->type.sizes[d]) return;
    at[d] = 0;
  }
}

static void gather_dense(gathering *g, const void *elements, int64_t n) {
  int64_t at[KL_MOST_LEVELS] = {0};
  for (int64_t i = 0; i < n; i++, next_index(g->s, at)) gather(g, at, (const char *)elements + (size_t)i * g->bytes);
}

kiln_status kiln_sparse_pack_dense(kiln_context *cx, const kiln_sparse_layout *l, const void *elements,
                                   kiln_sparse_array *arrays) {
  kl_store s;
  gathering g;
  int64_t n = 0;
  KL_EXPECT(cx, l, arrays);
  KL_TRY(kl_store_open(cx, l, arrays, &s));
  KL_TRY(elements_of(&s, &n));
  if (n) KL_EXPECT(cx, elements);
  gather_open(&g, &s);
  gather_dense(&g, elements, n);
  kiln_status status = gather_again(&g);
  if (status == KILN_OK) gather_dense(&g, elements, n);
  return gather_close(&g, status, &s);
}

kiln_status kiln_sparse_verify(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                               kiln_sparse_check level) {
  kl_store s;
  KL_EXPECT(cx, l, arrays);
  return opened(cx, l, arrays, level, &s);
}

// --- walks ----------------------------------------------------------------------------------------------------------

typedef struct unpacking {
  const kl_store *s;
  char *elements;
  unsigned char *seen; // by element: has it a value yet?
  size_t bytes;
} unpacking;

static kiln_status unpack_entry(void *arg, const int64_t *at, int64_t place) {
  unpacking *u = arg;
  uint64_t value[2];
  int64_t i = 0;
  for (uint32_t d = 0; d < u->s->e->ndims; d++) i = i * u->s->l->type.sizes[d] + at[d];
  kl_value_get(u->s, place, value);
  void *element = u->elements + (size_t)i * u->bytes;
  if (u->seen[i / 8] >> (i % 8) & 1)
    kl_value_add(u->s->l->type.element.dtype, element, value);
  else
    memcpy(element, value, u->bytes);
  u->seen[i / 8] |= (unsigned char)(1u << (i % 8));
  return KILN_OK;
}

kiln_status kiln_sparse_unpack(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                               void *elements) {
  kl_store s;
  int64_t n = 0;
  uint64_t implicit[2];
  KL_EXPECT(cx, l, arrays);
  KL_TRY(opened(cx, l, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  KL_TRY(elements_of(&s, &n));
  if (n == 0) return KILN_OK;
  KL_EXPECT(cx, elements);
  unpacking u = {&s, elements, kl_try_alloc(cx, (size_t)n / 8 + 1), kl_info(l->type.element.dtype)->bytes};
  if (!u.seen) return kl_out_of_memory(cx, (size_t)n / 8 + 1, "marks of elements");
  kl_value_implicit(&s, implicit);
  for (int64_t i = 0; i < n; i++) memcpy(u.elements + (size_t)i * u.bytes, implicit, u.bytes);
  kiln_status status = kl_store_walk(&s, unpack_entry, &u);
  kl_free(cx, u.seen, (size_t)n / 8 + 1);
  return status;
}

typedef struct visiting {
  const kl_store *s;
  kiln_sparse_visit *visit;
  void *user;
} visiting;

static kiln_status visit_entry(void *arg, const int64_t *at, int64_t place) {
  visiting *v = arg;
  uint64_t value[2];
  kl_value_get(v->s, place, value);
  return v->visit(v->user, at, value);
}

kiln_status kiln_sparse_walk(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                             kiln_sparse_visit *visit, void *user) {
  kl_store s;
  KL_EXPECT(cx, l, arrays);
  if (!visit) return kl_invalid(cx, KL_NOWHERE, "kiln_sparse_walk: expected a function to call, found NULL");
  KL_TRY(opened(cx, l, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  return kl_store_walk(&s, visit_entry, &(visiting){&s, visit, user});
}

// --- conversions ----------------------------------------------------------------------------------------------------

static kiln_status gather_entry(void *arg, const int64_t *at, int64_t place) {
  gathering *g = arg;
  uint64_t value[2];
  kl_value_get(g->s, place, value);
  gather(g, at, value);
  return KILN_OK;
}

static kiln_status same_tensor(const kl_store *a, const kl_store *b) {
  const kl_tensor_type *x = &a->l->type, *y = &b->l->type;
  uint64_t u[2], v[2];
  bool same = x->rank == y->rank && x->element.dtype == y->element.dtype &&
              memcmp(x->sizes, y->sizes, x->rank * sizeof *x->sizes) == 0;
  if (!same) return kl_invalid(a->cx, KL_NOWHERE, "expected layouts of the same sizes and type, found others");
  kl_value_implicit(a, u);
  kl_value_implicit(b, v);
  if (memcmp(u, v, kl_info(x->element.dtype)->bytes))
    return kl_invalid(a->cx, KL_NOWHERE, "expected layouts of the same implicit value, found others");
  return KILN_OK;
}

kiln_status kiln_sparse_convert(kiln_context *cx, const kiln_sparse_layout *from, const kiln_sparse_array *arrays,
                                const kiln_sparse_layout *to, kiln_sparse_array *out) {
  kl_store s, t;
  gathering g;
  KL_EXPECT(cx, from, arrays, to, out);
  KL_TRY(opened(cx, from, arrays, KILN_SPARSE_CHECK_BOUNDS, &s));
  KL_TRY(kl_store_open(cx, to, out, &t));
  KL_TRY(same_tensor(&s, &t));
  gather_open(&g, &s);
  kiln_status status = kl_store_walk(&s, gather_entry, &g);
  if (status == KILN_OK) status = gather_again(&g);
  if (status == KILN_OK) status = kl_store_walk(&s, gather_entry, &g);
  return gather_close(&g, status, &t);
}

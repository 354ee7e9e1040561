// Tensors with an encoding, and the lengths of their arrays.
#include "ir/densify/tensor.h"

static kl_dtype unsigned_of(unsigned bits) {
  static const kl_dtype of[65] = {
      [2] = KILN_U2, [4] = KILN_U4, [8] = KILN_U8, [16] = KILN_U16, [32] = KILN_U32, [64] = KILN_U64};
  return of[bits];
}

// --- lengths -------------------------------------------------------------------------------------------------------

static const char *role_text(const kiln_sparse_buffer *b) {
  static const char *const texts[] = {"positions", "coordinates", "values"};
  return texts[b->role];
}

static kiln_status set_length(kl_ctx *cx, kl_tensor *x, uint32_t i, int64_t count, const char *what) {
  const kiln_sparse_buffer *b = &x->buffers[i];
  int64_t batches = kl_tensor_batches(x), least = b->count >= 0 ? b->count : 0, all;
  bool given = count >= 0;
  if (!given) count = b->count >= 0 ? b->count : b->most;
  if (!given && count < 0)
    return kl_invalid(cx, KL_NOWHERE, "%s: expected a length of its %s of level %zu, which has no bound, found none",
                      what, role_text(b), b->level);
  if (given && batches && (count % batches || count / batches < least))
    return kl_invalid(cx, KL_NOWHERE, "%s: expected %lld or more %s of level %zu for each of %lld batches, found %lld",
                      what, (long long)least, role_text(b), b->level, (long long)batches, (long long)count);
  if (given && count % b->columns)
    return kl_invalid(cx, KL_NOWHERE, "%s: expected %s of level %zu for %lld levels each, found %lld", what,
                      role_text(b), b->level, (long long)b->columns, (long long)count);
  x->lengths[i] = given ? batches ? count / batches : 0 : count;
  if (!__builtin_mul_overflow(x->lengths[i], batches, &all) && !__builtin_mul_overflow(all, 16, &all)) return KILN_OK;
  return kl_unsupported(cx, KL_NOWHERE, "%s: its %s of level %zu have more bytes than 64 bits count", what,
                        role_text(b), b->level);
}

// --- levels --------------------------------------------------------------------------------------------------------

static bool all_narrow(const kl_tensor *x) {
  const kl_binding *b = &x->l->binding;
  int64_t most = INT32_MAX / 4, batches = kl_tensor_batches(x);
  bool narrow = x->space < most && x->shape->count < most;
  for (uint32_t i = 0; i < x->nbuffers; i++) narrow &= x->lengths[i] < most && x->lengths[i] * batches < most;
  for (uint32_t d = 0; d < x->shape->rank && narrow; d++) narrow = kl_graph_is_narrow(x->by_level, b->dims[d]);
  for (uint32_t l = 0; l < x->s.e->nlevels && narrow; l++)
    narrow = !x->values[l] || kl_graph_is_narrow(x->by_dim, x->values[l]);
  return narrow;
}

static kl_dom *domain(kl_tensor *x, kl_arena *a, uint32_t n, const int64_t *first, const int64_t *sizes) {
  kl_interval *bounds = KL_NEW_N(a, kl_interval, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    int64_t lo = first ? first[i] : 0;
    bounds[i] = (kl_interval){lo, lo + (sizes[i] > 0 ? sizes[i] - 1 : 0)};
  }
  return kl_dom_make(x->l->pool, n, bounds);
}

static kiln_status set_levels(kl_ctx *cx, kl_arena *a, kl_tensor *x, const char *what) {
  const kl_encoding *e = x->s.e;
  const kl_binding *b = &x->l->binding;
  uint32_t n = 0;
  x->values = KL_NEW_N(a, const kl_aff *, e->nlevels + 1u);
  x->sizes = KL_NEW_N(a, int64_t, e->nlevels + 1u);
  x->first = KL_NEW_N(a, int64_t, e->nlevels + 1u);
  x->space = 1;
  x->plain = true;
  for (uint32_t l = 0; l < e->nlevels; l++) {
    int64_t m = e->levels[l].m;
    x->sizes[l] = b->levels[l].size;
    x->first[l] = b->levels[l].count < 0 ? b->levels[l].lo : 0;
    if (e->levels[l].format == KILN_LEVEL_STRUCTURED) x->sizes[l] = (x->sizes[l] / m + (x->sizes[l] % m != 0)) * m;
    if (__builtin_mul_overflow(x->space, x->sizes[l], &x->space)) x->space = INT64_MAX;
    if (b->levels[l].count >= 0) continue;
    x->values[l] = kl_tree_aff(x->l->pool, e->levels[l].value);
    x->plain &= kl_aff_is_var(x->values[l]) != NULL;
    n++;
    if (!kl_graph_is_writable(x->values[l]))
      return kl_unsupported(cx, KL_NOWHERE, "%s: level %u is divided by what is no constant", what, l);
  }
  x->plain &= n == e->ndims && n == e->nlevels;
  for (uint32_t d = 0; d < e->ndims; d++)
    if (!kl_graph_is_writable(b->dims[d]))
      return kl_unsupported(cx, KL_NOWHERE, "%s: dimension %u follows from levels by a division by what is no constant",
                            what, d);
  x->by_level = domain(x, a, e->nlevels, x->first, x->sizes);
  x->by_dim = domain(x, a, e->ndims, NULL, x->shape->dims);
  return KILN_OK;
}

static bool set_number(uint64_t bits[KL_VALUE_WORDS], const kl_number *x) {
  for (int i = 0; i < KL_VALUE_WORDS; i++) bits[i] = x->cls ? x->bits[i] : 0;
  return x->cls != KL_NUMBER_NONE;
}

kiln_status kl_tensor_open(kl_ctx *cx, kl_arena *arena, const kl_shape *s, const int64_t *counts, const char *what,
                           kl_tensor *out) {
  *out = (kl_tensor){.shape = s};
  KL_TRY(kl_sparse_layout_of(cx, s, &out->l));
  KL_TRY(kl_store_open(cx, out->l, NULL, &out->s));
  out->nbuffers = out->s.nbuffers;
  out->buffers = KL_NEW_N(arena, kiln_sparse_buffer, out->nbuffers);
  out->types = KL_NEW_N(arena, kl_dtype, out->nbuffers);
  out->lengths = KL_NEW_N(arena, int64_t, out->nbuffers);
  for (uint32_t i = 0; i < out->nbuffers; i++) {
    kiln_sparse_buffer *b = &out->buffers[i];
    kiln_sparse_layout_buffer_at(out->l, i, b);
    out->types[i] = b->role == KILN_SPARSE_VALUES ? s->dtype : unsigned_of(b->bits);
    KL_TRY(set_length(cx, out, i, counts ? counts[i] : -1, what));
  }
  set_number(out->implicit, &out->l->implicit_value);
  out->has_explicit = set_number(out->explicit, &out->l->explicit_value);
  KL_TRY(set_levels(cx, arena, out, what));
  out->narrow = all_narrow(out);
  return KILN_OK;
}

void kl_tensor_take_lengths(kl_tensor *x, const kl_tensor *of) {
  memcpy(x->lengths, of->lengths, x->nbuffers * sizeof *x->lengths);
  x->narrow = all_narrow(x);
}

void kl_tensor_close(kl_tensor *x) {
  kiln_sparse_layout_destroy(&x->l);
}

const kl_shape *kl_tensor_array(const kl_tensor *x, kiln_module *m, uint32_t i) {
  return kl_shape_array(m, x->types[i], 1, (int64_t[]){x->lengths[i] * kl_tensor_batches(x)});
}

bool kl_tensor_repeats(const kl_tensor *x) {
  for (uint32_t l = 0; l < x->s.e->nlevels; l++)
    if (sp_is_compressed(&x->s.e->levels[l]) &&
        x->s.e->levels[l + x->s.of[l].run - 1].properties & KILN_LEVEL_NONUNIQUE)
      return true;
  return false;
}

void kl_tensor_combiners(kl_graph *g, const kl_tensor *x) {
  static const kl_combiner of_values[] = {KL_COMBINE_LATER, KL_COMBINE_SUM};
  kl_dtype index = x->narrow ? KILN_S32 : KILN_S64;
  for (uint32_t i = 0; i < KL_COUNT(of_values); i++) kl_graph_combiner(g, of_values[i], x->shape->dtype);
  if (kl_is_int(x->shape->dtype)) kl_graph_combiner(g, KL_COMBINE_ADD, x->shape->dtype);
  for (uint32_t i = 0; i < x->nbuffers; i++) kl_graph_combiner(g, KL_COMBINE_LATER, x->types[i]);
  kl_graph_combiner(g, KL_COMBINE_OR, KILN_PRED);
  kl_graph_combiner(g, KL_COMBINE_MAX, index);
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S64);
  kl_graph_combiner(g, KL_COMBINE_ADD, index);
}

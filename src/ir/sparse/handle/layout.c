// Layouts of sparse tensors: encodings bound to a type and sizes, each with an arena and a pool of its own.
#include "ir/sparse/handle/layout.h"
#include "ir/hlo.h"
#include "ir/sparse/text/text.h"

static void print_dims(kiln_sparse_layout *h) {
  uint32_t n = h->e->nlevels;
  kl_str *names = KL_NEW_N(&h->arena, kl_str, n + 1u);
  h->dims = KL_NEW_N(&h->arena, const char *, h->e->ndims + 1u);
  if (h->binding.why) return;
  for (uint32_t i = 0; i < n; i++) names[i] = kl_str_of(kl_strf(&h->arena, "l%u", i));
  for (uint32_t d = 0; d < h->e->ndims; d++) {
    kl_sb b;
    kl_sb_init(&b, h->cx);
    if (kl_aff_print(h->pool, &b, h->binding.dims[d], &(kl_aff_names){.of = {names}, .style = KL_AFF_WORDS}))
      h->dims[d] = kl_str_dup(&h->arena, (kl_str){b.p, b.n}).p;
    kl_sb_free(&b);
  }
}

// A value of the encoding's in the type of elements.
static kiln_status bind_value(kiln_sparse_layout *h, const char *name, const kl_number *x, kl_number *out) {
  *out = *x;
  if (!x->cls || kl_str_eq(x->type.text, h->type.element.text)) return KILN_OK;
  if (kl_number_convert(&h->arena, x, &h->type.element, out)) return KILN_OK;
  return kl_invalid(h->cx, KL_NOWHERE, "expected elements of a type that %s has a value in, found %.*s for %.*s", name,
                    KL_FMT(h->type.element.text), KL_FMT(x->text));
}

static kiln_status type_of(kl_ctx *cx, const kl_encoding *e, kiln_dtype dtype, const int64_t *sizes,
                           kl_tensor_type *out) {
  *out = e->type;
  if (!sizes && !e->type.given)
    return kl_invalid(cx, KL_NOWHERE, "expected sizes, or an encoding that was read with a type, found neither");
  if (!sizes) return KILN_OK;
  if (!kl_is_array_dtype(dtype) || dtype >= KILN_DTYPE_COUNT)
    return kl_invalid(cx, KL_NOWHERE, "expected the type of an array's elements, found %d", (int)dtype);
  *out = (kl_tensor_type){.given = true, .rank = e->ndims, .element = kl_mtype_of(dtype)};
  for (uint32_t d = 0; d < e->ndims; d++) {
    if (sizes[d] < -1)
      return kl_invalid(cx, KL_NOWHERE, "dimension %u: expected a size, or -1, found %lld", d, (long long)sizes[d]);
    out->sizes[d] = sizes[d];
  }
  return KILN_OK;
}

kiln_status kiln_sparse_layout_create(kiln_context *cx, const kiln_encoding *e, kiln_dtype dtype, const int64_t *sizes,
                                      kiln_sparse_layout **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, e, out);
  const kl_encoding *own = kl_encoding_hold(e);
  kiln_sparse_layout *h = kl_alloc(cx, sizeof *h);
  h->cx = cx;
  h->held = (kiln_encoding *)e;
  h->e = own;
  kl_context_hold(cx);
  kl_arena_init(&h->arena, cx);
  h->pool = kl_affs_create(cx, &h->arena);
  kiln_status s = type_of(cx, own, dtype, sizes, &h->type);
  if (s == KILN_OK) s = bind_value(h, "explicitVal", &own->explicit_value, &h->explicit_value);
  if (s == KILN_OK) s = bind_value(h, "implicitVal", &own->implicit_value, &h->implicit_value);
  if (s != KILN_OK) {
    kiln_sparse_layout_destroy(&h);
    return s;
  }
  kl_encoding_bind(own, h->pool, h->type.sizes, &h->binding);
  print_dims(h);
  *out = h;
  return KILN_OK;
}

kiln_status kl_sparse_layout_of(kl_ctx *cx, const kl_shape *s, kiln_sparse_layout **out) {
  kiln_encoding *e = NULL;
  *out = NULL;
  for (uint32_t d = 0; s->dynamic && d < s->rank; d++)
    if (s->dynamic[d]) return kl_unsupported(cx, KL_NOWHERE, "dimension %u of an array with an encoding is dynamic", d);
  KL_TRY(kiln_encoding_parse(cx, "encoding", s->layout.sparse, strlen(s->layout.sparse), NULL, &e));
  kiln_status st = kiln_sparse_layout_create(cx, e, s->dtype, s->rank ? s->dims : &(int64_t){0}, out);
  kiln_encoding_destroy(&e);
  return st;
}

void kiln_sparse_layout_destroy(kiln_sparse_layout **l) {
  kiln_sparse_layout *h = l ? *l : NULL;
  if (!h) return;
  kl_ctx *cx = h->cx;
  kiln_encoding_destroy(&h->held);
  kl_affs_destroy(&h->pool);
  kl_arena_free(&h->arena);
  kl_free(cx, h, sizeof *h);
  kl_context_release(cx);
  *l = NULL;
}

size_t kiln_sparse_layout_buffer_count(const kiln_sparse_layout *l) {
  return l ? kl_encoding_buffer_count(l->e) : 0;
}

bool kiln_sparse_layout_buffer_at(const kiln_sparse_layout *l, size_t i, kiln_sparse_buffer *out) {
  if (!l || !out || i >= kl_encoding_buffer_count(l->e)) return false;
  return kl_encoding_buffer(l->e, &l->binding, l->type.element.dtype, (uint32_t)i, out);
}

bool kiln_sparse_layout_level_at(const kiln_sparse_layout *l, size_t i, int64_t *first, int64_t *size) {
  if (!l || !first || !size || i >= l->e->nlevels) return false;
  *first = l->binding.levels[i].lo;
  *size = l->binding.levels[i].size;
  return true;
}

const char *kiln_sparse_layout_dimension_at(const kiln_sparse_layout *l, size_t i) {
  return l && i < l->e->ndims ? l->dims[i] : NULL;
}

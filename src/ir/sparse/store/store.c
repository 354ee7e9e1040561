// Where a tensor's arrays are, and their elements.
#include "ir/sparse/store/store.h"

static kiln_status storable(kl_ctx *cx, const kiln_sparse_layout *l) {
  if (!l->type.element.dtype)
    return kl_unsupported(cx, KL_NOWHERE, "elements of type %.*s are not stored", KL_FMT(l->type.element.text));
  for (uint32_t d = 0; d < l->e->ndims; d++)
    if (l->type.sizes[d] < 0) return kl_unsupported(cx, KL_NOWHERE, "dimension %u: its size is not known", d);
  if (l->binding.why) return kl_unsupported(cx, KL_NOWHERE, "the encoding stores no tensor: %s", l->binding.why);
  for (uint32_t i = 0; i < l->e->nlevels; i++) {
    if (l->binding.levels[i].size < 0) return kl_unsupported(cx, KL_NOWHERE, "level %u: its size is not known", i);
    if (l->binding.levels[i].count >= 0 && l->e->levels[i].format == KILN_LEVEL_BATCH)
      return kl_unsupported(cx, KL_NOWHERE, "level %u: a batch counts nothing", i);
    if (l->e->levels[i].format != KILN_LEVEL_STRUCTURED) continue;
    if (l->e->levels[i].m == 0) return kl_unsupported(cx, KL_NOWHERE, "level %u: groups without elements", i);
    if (l->e->levels[i].n > l->e->levels[i].m) // MLIR keeps 8 bits of both
      return kl_unsupported(cx, KL_NOWHERE, "level %u: groups of %lld elements with %lld slots", i,
                            (long long)l->e->levels[i].m, (long long)l->e->levels[i].n);
  }
  return KILN_OK;
}

kiln_status kl_store_open(kl_ctx *cx, const kiln_sparse_layout *l, kiln_sparse_array *arrays, kl_store *out) {
  kiln_sparse_buffer b;
  KL_TRY(storable(cx, l));
  *out = (kl_store){.cx = cx, .l = l, .e = l->e, .arrays = arrays, .batches = 1};
  for (uint32_t i = 0; i < l->e->nlevels; i++) out->of[i] = (kl_level_arrays){-1, -1, 0, 1, 64, 64, 1, i};
  for (; kiln_sparse_layout_buffer_at(l, out->nbuffers, &b); out->nbuffers++) {
    if (b.role == KILN_SPARSE_POSITIONS) {
      out->of[b.level].positions = (int32_t)out->nbuffers;
      out->of[b.level].pos_bits = b.bits;
    }
    for (uint32_t c = 0; b.role == KILN_SPARSE_COORDINATES && c < b.columns; c++) {
      kl_level_arrays *a = &out->of[b.level + c];
      a->coordinates = (int32_t)out->nbuffers;
      a->column = c;
      a->columns = (uint32_t)b.columns;
      a->crd_bits = b.bits;
    }
    out->batches = b.batches;
  }
  if (out->batches < 0) return kl_unsupported(cx, KL_NOWHERE, "more batches than 64 bits hold");
  for (uint32_t i = 0; i < l->e->nlevels; i++) {
    out->nbatch += l->e->levels[i].format == KILN_LEVEL_BATCH;
    while (sp_is_compressed(&l->e->levels[i]) && i + out->of[i].run < l->e->nlevels &&
           l->e->levels[i + out->of[i].run].format == KILN_LEVEL_SINGLETON)
      out->of[i + out->of[i].run++].head = i;
  }
  return KILN_OK;
}

// --- values ---------------------------------------------------------------------------------------------------------

void kl_value_implicit(const kl_store *s, uint64_t value[KL_VALUE_WORDS]) {
  const kl_number *x = &s->l->implicit_value;
  kl_dtype t = s->l->type.element.dtype;
  memset(value, 0, KL_VALUE_WORDS * sizeof *value);
  if (!x->cls) return;
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) kl_element_set(t, value, 0, part, x->bits[part]);
}

void kl_values_get(const kl_store *s, int64_t at, int64_t n, uint64_t *out) {
  const void *data = s->arrays[s->nbuffers - 1].data;
  unsigned bits = kl_info(s->l->type.element.dtype)->bits;
  if (bits == 128)
    memcpy(out, (const char *)data + at * 16, (size_t)n * 16);
  else if (bits == 32)
    for (int64_t i = 0; i < n; i++) out[i] = ((const kl_u32 *)data)[at + i];
  else
    for (int64_t i = 0; i < n; i++) out[i] = kl_bits_get(data, bits, at + i);
}

void kl_values_put(const kl_store *s, int64_t at, int64_t n, const uint64_t *values) {
  void *data = s->arrays[s->nbuffers - 1].data;
  unsigned bits = kl_info(s->l->type.element.dtype)->bits;
  if (bits == 128)
    memcpy((char *)data + at * 16, values, (size_t)n * 16);
  else if (bits == 32)
    for (int64_t i = 0; i < n; i++) ((kl_u32 *)data)[at + i] = (uint32_t)values[i];
  else
    for (int64_t i = 0; i < n; i++) kl_bits_set(data, bits, at + i, values[i]);
}

void kl_values_unpacked(const kl_store *s, const void *elements, int64_t n, uint64_t *out) {
  kl_dtype t = s->l->type.element.dtype;
  unsigned bytes = kl_info(t)->bytes;
  if (bytes >= 8)
    memcpy(out, elements, (size_t)n * bytes);
  else
    for (int64_t i = 0; i < n; i++) out[i] = kl_bits_get(elements, 8 * bytes, i) & kl_int_mask(t);
}

static void add_part(kl_dtype t, void *sum, const void *x, int part) {
  uint64_t a = kl_element_get(t, sum, 0, part), b = kl_element_get(t, x, 0, part);
  kl_dtype own = kl_is_complex(t) ? kl_info(t)->part : t;
  if (own == KILN_PRED)
    a |= b;
  else if (kl_is_float(own))
    a = kl_float_encode(own, kl_float_decode(own, a) + kl_float_decode(own, b));
  else
    a = (a + b) & kl_int_mask(own);
  kl_element_set(t, sum, 0, part, a);
}

void kl_value_add(kl_dtype t, void *sum, const void *x) {
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) add_part(t, sum, x, part);
}

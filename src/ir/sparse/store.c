// Where a tensor's arrays are, and their elements.
#include "ir/sparse/store.h"

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
    if (l->e->levels[i].format == KILN_LEVEL_STRUCTURED && l->e->levels[i].m == 0)
      return kl_unsupported(cx, KL_NOWHERE, "level %u: groups without elements", i);
  }
  return KILN_OK;
}

kiln_status kl_store_open(kl_ctx *cx, const kiln_sparse_layout *l, kiln_sparse_array *arrays, kl_store *out) {
  kiln_sparse_buffer b;
  KL_TRY(storable(cx, l));
  *out = (kl_store){.cx = cx, .l = l, .e = l->e, .arrays = arrays, .batches = 1};
  for (uint32_t i = 0; i < l->e->nlevels; i++) out->of[i] = (kl_level_arrays){-1, -1, 0, 1, 64, 64, 1};
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
      out->of[i].run++;
  }
  return KILN_OK;
}

static unsigned char *values(const kl_store *s) {
  return s->arrays[s->nbuffers - 1].data;
}

void kl_value_get(const kl_store *s, int64_t at, void *value) {
  const kl_dtype_info *t = kl_info(s->l->type.element.dtype);
  if (t->bits < 8)
    *(unsigned char *)value = (unsigned char)kl_bits_get(values(s), t->bits, at);
  else
    memcpy(value, values(s) + at * (int64_t)t->bytes, t->bytes);
}

void kl_value_set(const kl_store *s, int64_t at, const void *value) {
  const kl_dtype_info *t = kl_info(s->l->type.element.dtype);
  if (t->bits < 8)
    kl_bits_set(values(s), t->bits, at, *(const unsigned char *)value);
  else
    memcpy(values(s) + at * (int64_t)t->bytes, value, t->bytes);
}

void kl_value_implicit(const kl_store *s, void *value) {
  const kl_number *x = &s->l->implicit_value;
  kl_dtype t = s->l->type.element.dtype;
  memset(value, 0, kl_info(t)->bytes);
  if (!x->cls) return;
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) kl_element_set(t, value, 0, part, x->bits[part]);
}

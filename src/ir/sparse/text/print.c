// The normal form of encodings, as MLIR prints it. An inverse is printed only where it does not follow from the levels.
#include "ir/sparse/impl.h"
#include "ir/sparse/text/text.h"

static void put_variables(kl_sb *b, char open, char close, char letter, uint32_t n) {
  kl_sb_putc(b, open);
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, "%s%c%u", i ? ", " : "", letter, i);
  kl_sb_putc(b, close);
}

static void put_slice_number(kl_sb *b, int64_t v) {
  if (v == KL_SLICE_DYNAMIC)
    kl_sb_putc(b, '?');
  else
    kl_sb_i64(b, v);
}

static void put_dim(kl_sb *b, const kl_encoding *e, uint32_t d) {
  kl_sbf(b, "%sd%u", d ? ", " : "", d);
  if (e->needs_inverse && e->inverse[d]) {
    kl_sb_puts(b, " = ");
    kl_tree_print(b, e->inverse[d], 'l');
  }
  if (!e->slices) return;
  kl_sb_puts(b, " : #sparse_tensor<slice(");
  put_slice_number(b, e->slices[d].offset);
  kl_sb_puts(b, ", ");
  put_slice_number(b, e->slices[d].size);
  kl_sb_puts(b, ", ");
  put_slice_number(b, e->slices[d].stride);
  kl_sb_puts(b, ")>");
}

static void put_map(kl_sb *b, const kl_encoding *e) {
  kl_sb_puts(b, "map = ");
  if (e->nsymbols) put_variables(b, '[', ']', 's', e->nsymbols);
  if (e->needs_inverse) put_variables(b, '{', '}', 'l', e->nlevels);
  kl_sb_putc(b, '(');
  for (uint32_t d = 0; d < e->ndims; d++) put_dim(b, e, d);
  kl_sb_puts(b, ") -> (");
  for (uint32_t i = 0; i < e->nlevels; i++) {
    if (i) kl_sb_puts(b, ", ");
    if (e->needs_inverse) kl_sbf(b, "l%u = ", i);
    kl_tree_print(b, e->levels[i].value, 'd');
    kl_sb_puts(b, " : ");
    sp_put_level_type(b, &e->levels[i]);
  }
  kl_sb_putc(b, ')');
}

void kl_encoding_print_fields(kl_sb *b, const kl_encoding *e) {
  put_map(b, e);
  if (e->pos_width) kl_sbf(b, ", posWidth = %u", e->pos_width);
  if (e->crd_width) kl_sbf(b, ", crdWidth = %u", e->crd_width);
  if (e->explicit_value.cls) kl_sbf(b, ", explicitVal = %.*s", KL_FMT(e->explicit_value.text));
  if (e->implicit_value.cls) kl_sbf(b, ", implicitVal = %.*s", KL_FMT(e->implicit_value.text));
}

void kl_encoding_print(kl_sb *b, const kl_encoding *e) {
  kl_sb_puts(b, "#sparse_tensor.encoding<{ ");
  kl_encoding_print_fields(b, e);
  kl_sb_puts(b, " }>");
}

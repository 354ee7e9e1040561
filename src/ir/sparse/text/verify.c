// What is checked of an encoding once it is read: the levels, then the map, then the tensor's type. In strict mode the
// order is MLIR's, so that of several rules the same one is named.
#include "ir/sparse/text/reader.h"

// --- levels -------------------------------------------------------------------------------------------------------

static bool width_is(int64_t w, bool small) {
  return w == 0 || w == 8 || w == 16 || w == 32 || w == 64 || (small && (w == 2 || w == 4));
}

static bool check_widths(reader *r) {
  bool small = !r->e->strict;
  if (!width_is(r->pos_width, false))
    return sp_broken(r, r->pos_span, KL_RULE_POSW, "expected 0, 8, 16, 32 or 64 bits for positions, found %lld",
                     (long long)r->pos_width);
  if (!width_is(r->crd_width, small))
    return sp_broken(r, r->crd_span, KL_RULE_CRDW, "expected 0, %s8, 16, 32 or 64 bits for coordinates, found %lld",
                     small ? "2, 4, " : "", (long long)r->crd_width);
  r->e->pos_width = (unsigned)r->pos_width;
  r->e->crd_width = (unsigned)r->crd_width;
  return true;
}

static bool check_singletons(reader *r) {
  for (uint32_t l = 0; l < r->e->nlevels; l++) {
    const kl_level *at = &r->e->levels[l], *before = at - 1;
    if (at->format != KILN_LEVEL_SINGLETON) continue;
    if (l == 0 || (!sp_is_compressed(before) && before->format != KILN_LEVEL_SINGLETON))
      return sp_broken(r, r->level_spans.p[l], KL_RULE_SNGPRED,
                       "expected compressed, loose_compressed or singleton before singleton, found %s",
                       l ? sp_format_name(before->format) : "the first level");
    if (before->format == KILN_LEVEL_SINGLETON && (at->properties ^ before->properties) & KILN_LEVEL_SOA)
      return sp_broken(r, r->level_spans.p[l], KL_RULE_SNGMIX,
                       "expected singletons in a row to be stored alike, found one with soa and one without");
  }
  return true;
}

static bool check_order(reader *r) {
  const kl_level *l = r->e->levels;
  for (uint32_t i = 1; i < r->e->nlevels; i++)
    if (l[i].format == KILN_LEVEL_BATCH && l[i - 1].format != KILN_LEVEL_BATCH)
      return sp_broken(r, r->level_spans.p[i], KL_RULE_BATCHLEAD, "expected batch levels first, found one behind %s",
                       sp_format_name(l[i - 1].format));
  for (uint32_t i = 0; i < r->e->nlevels; i++)
    if (l[i].properties & KILN_LEVEL_SOA && l[i].format != KILN_LEVEL_SINGLETON)
      return sp_broken(r, r->level_spans.p[i], KL_RULE_SOAONLY, "expected soa on singletons alone, found it on %s",
                       sp_format_name(l[i].format));
  return true;
}

// The divisor of a level of a block map, 0 of others.
static int64_t block_size(const kl_level *l) {
  int64_t c;
  return l->value->kind < KL_TREE_CONST && kl_tree_const(l->value->b, &c) && c > 0 ? c : 0;
}

static bool check_group_blocks(reader *r, uint32_t at) {
  const kl_encoding *e = r->e;
  int64_t block = 0;
  if (!sp_is_blocks(e))
    return sp_broken(r, r->map_span, KL_RULE_NMBLOCK, "expected a map of blocks, as there is a structured level");
  for (uint32_t i = 0; i < e->nlevels; i++) {
    int64_t size = block_size(&e->levels[i]);
    if (size && block && size != block)
      return sp_broken(r, r->level_spans.p[i], KL_RULE_NMCOEF1, "expected blocks of one size, found %lld and %lld",
                       (long long)block, (long long)size);
    if (size) block = size;
  }
  return block == e->levels[at].m ||
         sp_broken(r, r->level_spans.p[at], KL_RULE_NMCOEFM, "expected blocks of m = %lld elements, found %lld",
                   (long long)e->levels[at].m, (long long)block);
}

static bool check_groups_strictly(reader *r) {
  const kl_encoding *e = r->e;
  uint32_t at = 0;
  while (at < e->nlevels && e->levels[at].format != KILN_LEVEL_STRUCTURED) at++;
  if (at == e->nlevels) return true;
  if (at + 1 < e->nlevels)
    return sp_broken(r, r->level_spans.p[at], KL_RULE_NMLAST,
                     "expected structured as the last level, found it as %u of %u", at + 1, e->nlevels);
  for (uint32_t i = 0; i < at; i++)
    if (e->levels[i].format != KILN_LEVEL_DENSE)
      return sp_broken(r, r->level_spans.p[i], KL_RULE_NMDENSE, "expected dense levels before structured, found %s",
                       sp_format_name(e->levels[i].format));
  return e->ndims == e->nlevels || check_group_blocks(r, at);
}

static bool check_groups(reader *r) {
  const kl_encoding *e = r->e;
  int64_t c;
  if (e->strict) return check_groups_strictly(r);
  for (uint32_t i = 0; i < e->nlevels; i++) {
    const kl_level *l = &e->levels[i];
    if (l->format == KILN_LEVEL_STRUCTURED && l->value->kind == KL_TREE_MOD && kl_tree_const(l->value->b, &c) &&
        c % l->m)
      return sp_broken(r, r->level_spans.p[i], KL_RULE_NMCOEFM,
                       "expected blocks of a multiple of m = %lld elements, found %lld", (long long)l->m, (long long)c);
  }
  return true;
}

// --- the map ------------------------------------------------------------------------------------------------------

static bool no_inverse(reader *r, int32_t missing) {
  if (missing >= 0)
    return sp_broken(r, r->map_span, KL_RULE_NOINV, "expected levels that tell every dimension, found none of d%d",
                     missing);
  return sp_broken(r, r->map_span, KL_RULE_NOINV,
                   "expected levels that are dimensions, or d floordiv c and then d mod c, found other expressions");
}

static bool same_inverse(const kl_encoding *e, const kl_tree *const *inferred, uint32_t n) {
  if (!e->complete || !inferred || n != e->ndims) return false;
  for (uint32_t i = 0; i < n; i++)
    if (e->inverse[i] != inferred[i]) return false;
  return true;
}

static bool check_inverse_strictly(reader *r) {
  kl_encoding *e = r->e;
  uint32_t n = 0;
  const kl_tree *const *inferred = sp_infer_blocks(e, r->arena, &n);
  if (!inferred && !e->nsymbols) return no_inverse(r, sp_missing(e));
  if (e->inverse && !same_inverse(e, inferred, n))
    return sp_broken(r, r->map_span, KL_RULE_BADINV,
                     "expected the inverse that follows from the levels, found another");
  return e->ndims <= e->nlevels ||
         sp_broken(r, r->map_span, KL_RULE_DIMGTLVL, "expected as many levels as dimensions, %u, at least, found %u",
                   e->ndims, e->nlevels);
}

static bool check_inverse(reader *r) {
  kl_encoding *e = r->e;
  uint32_t at = 0;
  int32_t missing = sp_missing(e);
  for (uint32_t i = 0; i < e->nlevels; i++)
    if (!sp_has_value(e, e->levels[i].value))
      return sp_broken(r, r->level_spans.p[i], KL_RULE_NOINV,
                       "expected a level that has a value, found a division by 0 or less, or numbers beyond 64 bits");
  if (missing >= 0 && !e->nsymbols) return no_inverse(r, missing);
  if (e->inverse && !sp_inverse_holds(e, &at))
    return sp_broken(r, r->map_span, KL_RULE_BADINV,
                     "expected an inverse that leads from the levels back to d%u, found one that does not", at);
  e->needs_inverse = e->inverse && !e->nsymbols && !sp_inverse_follows(e);
  return true;
}

static bool check_ranks(reader *r) {
  const kl_encoding *e = r->e;
  if (e->strict && e->nlevels == 0)
    return sp_broken(r, sp_here(r), KL_RULE_EMPTY, "expected a level at least, found none");
  if (!r->has_map) return sp_broken(r, sp_here(r), KL_RULE_EMPTY, "expected a map, found none");
  if (r->nlast != e->nlevels)
    return sp_broken(r, r->map_span, KL_RULE_LRANK, "expected as many levels as level types, %u, found %u", e->nlevels,
                     r->nlast);
  return true;
}

static bool check_slices(reader *r) {
  const kl_encoding *e = r->e;
  if (!e->strict || !e->slices || e->ndims == e->nlevels) return true;
  return sp_broken(r, r->map_span, KL_RULE_SLICERANK, "expected as many levels as dimensions, %u, found %u", e->ndims,
                   e->nlevels);
}

// --- the tensor's type --------------------------------------------------------------------------------------------

static bool check_value(reader *r, kl_number *x, kl_span where, kl_sparse_rule rule) {
  const kl_mtype *t = &r->e->type.element;
  if (x->cls == KL_NUMBER_NONE || kl_str_eq(x->type.text, t->text)) return true;
  if (!r->e->strict && x->bare && kl_number_convert(r->arena, x, t, x)) return true;
  return sp_broken(r, where, rule, "expected a value of the tensor's type %.*s, found %.*s", KL_FMT(t->text),
                   KL_FMT(x->text));
}

static bool check_known_inverse(reader *r) {
  kl_binding *b;
  kl_encoding *e = r->e;
  kl_arena temporary;
  if (e->strict) return true;
  kl_arena_init(&temporary, r->cx);
  b = KL_NEW(&temporary, kl_binding);
  kl_affs *pool = kl_affs_create(r->cx, &temporary);
  kl_encoding_bind(e, pool, e->type.sizes, b);
  bool ok = !b->why || b->unsure || e->nsymbols ||
            sp_broken(r, r->map_span, KL_RULE_NOINV, "for the sizes of this tensor, %s", b->why);
  kl_affs_destroy(&pool);
  kl_arena_free(&temporary);
  return ok;
}

static bool check_type(reader *r) {
  kl_encoding *e = r->e;
  const kl_tensor_type *t = &e->type;
  if (!t->given) return true;
  if (e->strict && t->rank == 0)
    return sp_broken(r, r->map_span, KL_RULE_SCALAR, "expected a tensor with dimensions, found a scalar");
  if (t->rank != e->ndims)
    return sp_broken(r, r->map_span, KL_RULE_RANK, "expected a map of the tensor's %u dimensions, found one of %u",
                     t->rank, e->ndims);
  if (!check_value(r, &e->explicit_value, r->explicit_span, KL_RULE_EXPTY) ||
      !check_value(r, &e->implicit_value, r->implicit_span, KL_RULE_IMPTY))
    return false;
  if (e->strict && e->implicit_value.cls && !sp_number_is_zero(&e->implicit_value))
    return sp_broken(r, r->implicit_span, KL_RULE_IMPZERO, "expected zero, found %.*s", KL_FMT(e->implicit_value.text));
  return check_known_inverse(r);
}

// --- what is likely meant otherwise -------------------------------------------------------------------------------

static bool holds_size(unsigned bits, int64_t size) {
  return size < 0 || bits == 0 || bits == 64 || size <= (int64_t)1 << bits;
}

static void warn_of_slices(reader *r) {
  const kl_encoding *e = r->e;
  for (uint32_t d = 0; e->slices && d < e->ndims; d++) {
    const kl_slice *s = &e->slices[d];
    __int128 last = (__int128)s->offset + (__int128)(s->size - 1) * s->stride;
    bool known = s->offset >= 0 && s->size > 0 && s->stride > 0 && e->type.sizes[d] >= 0;
    if (known && last >= e->type.sizes[d])
      kl_warn(r->cx, r->map_span, "the slice of d%u reaches beyond the tensor's %lld elements", d,
              (long long)e->type.sizes[d]);
  }
}

static void warn(reader *r) {
  const kl_encoding *e = r->e;
  for (uint32_t s = 0; s < e->nsymbols; s++) {
    bool used = false;
    for (uint32_t l = 0; l < e->nlevels; l++) used |= kl_tree_uses(e->levels[l].value, KL_TREE_SYMBOL, s);
    if (!used) kl_warn(r->cx, r->map_span, "no level uses symbol s%u", s);
  }
  if (e->type.given) warn_of_slices(r);
  for (uint32_t l = 0; e->type.given && l < e->nlevels; l++) {
    const kl_tree *v = e->levels[l].value;
    int64_t size = v->kind == KL_TREE_DIM ? e->type.sizes[v->value] : -1;
    bool stored = e->levels[l].format > KILN_LEVEL_BATCH && e->levels[l].format != KILN_LEVEL_STRUCTURED;
    if (stored && !holds_size(e->crd_width, size))
      kl_warn(r->cx, r->crd_span, "%u bits do not hold every coordinate of level %u, which has %lld", e->crd_width, l,
              (long long)size);
  }
}

bool sp_verify(reader *r) {
  bool ok = check_widths(r) && check_singletons(r) && check_order(r) && check_groups(r) && check_ranks(r) &&
            (r->e->strict ? check_inverse_strictly : check_inverse)(r) && check_slices(r) && check_type(r);
  if (ok && !r->e->strict) warn(r);
  return ok;
}

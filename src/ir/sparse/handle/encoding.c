// Encodings as the public API has them: each with an arena of its own.
#include "ir/sparse/handle/layout.h"
#include "ir/sparse/impl.h"
#include "ir/sparse/text/text.h"

struct kiln_encoding {
  kl_ctx *cx;
  atomic_size_t holders; // the caller's handle, and layouts
  kl_arena arena;
  const kl_encoding *e;
  kiln_encoding_info info;
  const char **values; // by level
};

const kl_encoding *kl_encoding_hold(const kiln_encoding *h) {
  atomic_fetch_add(&((kiln_encoding *)h)->holders, 1);
  return h->e;
}

static const char *expression(kl_arena *a, const kl_tree *v) {
  kl_sb b;
  kl_sb_init(&b, a->cx);
  kl_tree_print(&b, v, 'd');
  const char *text = kl_str_dup(a, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

static const char *printed(kiln_encoding *h, void (*print)(kl_sb *, const kl_encoding *)) {
  kl_sb b;
  kl_sb_init(&b, h->cx);
  print(&b, h->e);
  const char *text = kl_str_dup(&h->arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

static const char *value_text(kiln_encoding *h, const kl_number *x) {
  return x->cls ? kl_str_dup(&h->arena, x->text).p : "";
}

static void describe(kiln_encoding *h) {
  const kl_encoding *e = h->e;
  h->values = KL_NEW_N(&h->arena, const char *, e->nlevels + 1u);
  for (uint32_t i = 0; i < e->nlevels; i++) h->values[i] = expression(&h->arena, e->levels[i].value);
  h->info = (kiln_encoding_info){.text = printed(h, kl_encoding_print),
                                 .fields = printed(h, kl_encoding_print_fields),
                                 .dimension_count = e->ndims,
                                 .symbol_count = e->nsymbols,
                                 .level_count = e->nlevels,
                                 .pos_width = e->pos_width,
                                 .crd_width = e->crd_width,
                                 .explicit_value = value_text(h, &e->explicit_value),
                                 .implicit_value = value_text(h, &e->implicit_value),
                                 .sliced = e->slices != NULL};
}

void kiln_encoding_destroy(kiln_encoding **e) {
  kiln_encoding *h = e ? *e : NULL;
  if (!h) return;
  *e = NULL;
  if (atomic_fetch_sub(&h->holders, 1) > 1) return;
  kl_ctx *cx = h->cx;
  kl_encoding_free(h->e);
  kl_arena_free(&h->arena);
  kl_free(cx, h, sizeof *h);
  kl_context_release(cx);
}

static kiln_status read(kl_ctx *cx, const kl_source *src, const kiln_encoding_params *params, kiln_encoding **out) {
  kiln_encoding_params own = {0};
  KL_TRY(KL_PARAMS_IN(cx, kiln_encoding_params, params, &own));
  kl_encoding_reading how = {.strict = own.strict, .type = own.type};
  kiln_encoding *h = kl_alloc(cx, sizeof *h);
  h->cx = cx;
  h->holders = 1;
  kl_context_hold(cx);
  kl_arena_init(&h->arena, cx);
  kiln_status s = kl_encoding_read(cx, &h->arena, src, &how, &h->e);
  if (own.rule) *own.rule = kl_sparse_rule_name(how.broken);
  if (s == KILN_OK) {
    describe(h);
    *out = h;
  } else {
    kiln_encoding_destroy(&h);
  }
  return s;
}

kiln_status kiln_encoding_parse(kiln_context *cx, const char *name, const char *text, size_t size,
                                const kiln_encoding_params *params, kiln_encoding **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, text, out);
  kl_source src = {name ? name : "encoding", {text, size}};
  return read(cx, &src, params, out);
}

// --- by parts -----------------------------------------------------------------------------------------------------

static void put_names(kl_sb *b, char open, char close, char letter, size_t n) {
  kl_sb_putc(b, open);
  for (size_t i = 0; i < n; i++) kl_sbf(b, "%s%c%zu", i ? ", " : "", letter, i);
  kl_sb_putc(b, close);
}

static void put_level(kl_sb *b, const kiln_level *l) {
  kl_level own = {.format = l->format, .properties = l->properties, .n = l->n, .m = l->m};
  kl_sbf(b, "%s : ", l->value);
  sp_put_level_type(b, &own);
}

static void put_parts(kl_sb *b, const kiln_encoding_parts *p) {
  kl_sb_puts(b, "map = ");
  if (p->symbol_count) put_names(b, '[', ']', 's', p->symbol_count);
  if (p->inverse && p->level_count) put_names(b, '{', '}', 'l', p->level_count);
  kl_sb_putc(b, '(');
  for (size_t d = 0; d < p->dimension_count; d++) {
    kl_sbf(b, "%sd%zu", d ? ", " : "", d);
    if (p->inverse && p->inverse[d]) kl_sbf(b, " = %s", p->inverse[d]);
    if (p->slices && p->slices[d]) kl_sbf(b, " : #sparse_tensor<slice(%s)>", p->slices[d]);
  }
  kl_sb_puts(b, ") -> (");
  for (size_t i = 0; i < p->level_count; i++) {
    if (i) kl_sb_puts(b, ", ");
    if (p->inverse) kl_sbf(b, "l%zu = ", i);
    put_level(b, &p->levels[i]);
  }
  kl_sb_putc(b, ')');
  if (p->pos_width) kl_sbf(b, ", posWidth = %u", p->pos_width);
  if (p->crd_width) kl_sbf(b, ", crdWidth = %u", p->crd_width);
  if (p->explicit_value) kl_sbf(b, ", explicitVal = %s", p->explicit_value);
  if (p->implicit_value) kl_sbf(b, ", implicitVal = %s", p->implicit_value);
}

static kiln_status check_parts(kl_ctx *cx, const kiln_encoding_parts *p) {
  enum { ALL = KILN_LEVEL_NONUNIQUE | KILN_LEVEL_NONORDERED | KILN_LEVEL_SOA };
  if (p->dimension_count > KL_MOST_LEVELS || p->symbol_count > KL_MOST_LEVELS || p->level_count > KL_MOST_LEVELS)
    return kl_unsupported(cx, KL_NOWHERE, "expected at most %d dimensions, symbols and levels, found more",
                          KL_MOST_LEVELS);
  if (p->level_count && !p->levels) return kl_invalid(cx, KL_NOWHERE, "expected levels, found NULL");
  for (size_t i = 0; i < p->level_count; i++) {
    const kiln_level *l = &p->levels[i];
    if (!l->value) return kl_invalid(cx, KL_NOWHERE, "level %zu: expected its value, found NULL", i);
    if ((unsigned)l->format > KILN_LEVEL_STRUCTURED || l->properties & ~(unsigned)ALL)
      return kl_invalid(cx, KL_NOWHERE, "level %zu: expected a format and properties there are, found %u and %u", i,
                        (unsigned)l->format, l->properties);
  }
  return KILN_OK;
}

kiln_status kiln_encoding_create(kiln_context *cx, const kiln_encoding_parts *parts, const kiln_encoding_params *params,
                                 kiln_encoding **out) {
  kiln_encoding_parts own = {0};
  KL_CLEAR(out);
  KL_EXPECT(cx, parts, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_encoding_parts, parts, &own));
  KL_TRY(check_parts(cx, &own));
  kl_sb b;
  kl_sb_init(&b, cx);
  put_parts(&b, &own);
  kl_source src = {"encoding", {b.p, b.n}};
  kiln_status s = read(cx, &src, params, out);
  kl_sb_free(&b);
  return s;
}

// --- questions ----------------------------------------------------------------------------------------------------

const kiln_encoding_info *kiln_encoding_describe(const kiln_encoding *e) {
  return e ? &e->info : NULL;
}

bool kiln_encoding_level_at(const kiln_encoding *e, size_t i, kiln_level *out) {
  if (!e || !out || i >= e->e->nlevels) return false;
  const kl_level *l = &e->e->levels[i];
  *out = (kiln_level){l->format, l->properties, l->n, l->m, e->values[i]};
  return true;
}

bool kiln_encoding_is_equal(const kiln_encoding *a, const kiln_encoding *b) {
  return a && b && strcmp(a->info.text, b->info.text) == 0;
}

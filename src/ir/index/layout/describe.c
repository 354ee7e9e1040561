// Layouts behind the public interface: from text, their digits as text, positions and indices.
#include "ir/index/layout/map.h"
#include "ir/shape.h"
#include "ir/text/text.h"

struct kiln_layout {
  kl_ctx *cx;
  kiln_module *m; // owns the shape and all texts
  const kl_shape *shape;
  kl_physical p;
  kiln_layout_info info;
  const char **digits;         // by digit
  const char **names, **means; // of values that digits are made of
};

// --- values as text -----------------------------------------------------------------------------------------------

typedef struct writer {
  const kl_physical *p;
  kl_form forms[KL_MAX_VALUES];
  bool used[KL_MAX_VALUES];    // digits are made of it, or of something that is
  int32_t name[KL_MAX_VALUES]; // c0, c1 ...; -1: written out where it stands
} writer;

static bool is_base(const writer *w, uint16_t v) {
  return w->forms[v].base == v && w->p->values[v].kind == KL_VALUE_COMBINED;
}

static void use(writer *w, uint16_t v) {
  if (w->forms[v].base != KL_FORM_ZERO) w->used[w->forms[v].base] = true;
}

// A combined value inside of another is written out; one that is split stands in both parts, so it gets a name. That
// bounds all texts together.
static size_t name_bases(writer *w) {
  const kl_physical *p = w->p;
  bool inside[KL_MAX_VALUES] = {0};
  for (uint32_t i = 0; i < p->ndigits; i++) use(w, p->digits[i].value);
  for (uint32_t i = p->nvalues; i-- > 0;) {
    const kl_value *v = &p->values[i];
    if (!w->used[i] || v->kind == KL_VALUE_INDEX) continue;
    if (v->kind == KL_VALUE_COMBINED) {
      inside[v->a] = is_base(w, v->a);
      use(w, v->a);
      use(w, v->b);
    } else {
      use(w, (uint16_t)i);
    }
  }
  size_t names = 0;
  for (uint32_t i = 0; i < p->nvalues; i++) {
    bool named = w->used[i] && p->values[i].kind != KL_VALUE_INDEX && !inside[i];
    w->name[i] = named ? (int32_t)names++ : -1;
  }
  return names;
}

static void put_value(kl_sb *b, const writer *w, uint16_t v, bool atomic);

static void put_combined(kl_sb *b, const writer *w, uint16_t i) {
  const kl_value *v = &w->p->values[i];
  put_value(b, w, v->a, true);
  kl_sbf(b, " * %lld", (long long)v->by);
  if (w->forms[v->b].base == KL_FORM_ZERO) return;
  kl_sb_puts(b, " + ");
  put_value(b, w, v->b, true);
}

static void put_base(kl_sb *b, const writer *w, uint16_t base) {
  if (w->p->values[base].kind == KL_VALUE_INDEX) {
    kl_sbf(b, "d%u", base);
  } else if (w->name[base] >= 0) {
    kl_sbf(b, "c%d", (int)w->name[base]);
  } else {
    kl_sb_putc(b, '(');
    put_combined(b, w, base);
    kl_sb_putc(b, ')');
  }
}

static void put_form(kl_sb *b, const writer *w, kl_form f, bool atomic) {
  bool compound = atomic && (f.div > 1 || f.mod);
  if (f.base == KL_FORM_ZERO) {
    kl_sb_putc(b, '0');
    return;
  }
  if (compound) kl_sb_putc(b, '(');
  if (f.div > 1 && f.mod) kl_sb_putc(b, '(');
  put_base(b, w, f.base);
  if (f.div > 1) kl_sbf(b, " / %lld", (long long)f.div);
  if (f.div > 1 && f.mod) kl_sb_putc(b, ')');
  if (f.mod) kl_sbf(b, " mod %lld", (long long)f.mod);
  if (compound) kl_sb_putc(b, ')');
}

static void put_value(kl_sb *b, const writer *w, uint16_t v, bool atomic) {
  put_form(b, w, w->forms[v], atomic);
}

static const char *keep(kiln_layout *l, kl_sb *b) {
  const char *text = kl_str_dup(&l->m->arena, (kl_str){b->p, b->n}).p;
  b->n = 0;
  return text;
}

static void write_values(kiln_layout *l, kl_sb *b, writer *w) {
  const kl_physical *p = &l->p;
  kl_arena *arena = &l->m->arena;
  size_t names = name_bases(w);
  l->info.name_count = names;
  l->names = KL_NEW_N(arena, const char *, names + 1);
  l->means = KL_NEW_N(arena, const char *, names + 1);
  for (uint32_t i = 0; i < p->nvalues; i++) {
    if (w->name[i] < 0) continue;
    kl_sbf(b, "c%d", (int)w->name[i]);
    l->names[w->name[i]] = keep(l, b);
    if (is_base(w, (uint16_t)i))
      put_combined(b, w, (uint16_t)i);
    else
      put_value(b, w, (uint16_t)i, false);
    l->means[w->name[i]] = keep(l, b);
  }
  l->digits = KL_NEW_N(arena, const char *, p->ndigits + 1);
  for (uint32_t i = 0; i < p->ndigits; i++) {
    put_value(b, w, p->digits[i].value, false);
    l->digits[i] = keep(l, b);
  }
}

static void describe(kiln_layout *l) {
  kl_sb b;
  kl_sb_init(&b, l->cx);
  const kl_shape *s = l->shape;
  l->info = (kiln_layout_info){.type = {.dtype = s->dtype, .rank = s->rank},
                               .elements = l->p.elements,
                               .positions = l->p.positions,
                               .element_bits = l->p.bits,
                               .prefix_bytes = l->p.prefix,
                               .bytes = l->p.bytes,
                               .digit_count = l->p.ndigits};
  if (s->rank) memcpy(l->info.type.dims, s->dims, s->rank * sizeof *s->dims);
  kl_shape_print(&b, s, true);
  l->info.shape = keep(l, &b);
  writer *w = KL_NEW(&l->m->arena, writer);
  w->p = &l->p;
  kl_physical_forms(&l->p, NULL, w->forms);
  write_values(l, &b, w);
  kl_sb_free(&b);
}

// --- life ---------------------------------------------------------------------------------------------------------

// Type names are also written in upper case.
static const char *with_lower_type(kl_arena *a, const char *text) {
  char *own = kl_strf(a, "%s", text);
  for (char *c = own; kl_is_name_char(*c) || *c == ' '; c++)
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
  return own;
}

static kiln_status read(kiln_layout *l, const char *text) {
  KL_TRY(kl_read_shape(l->cx, l->m, "shape", with_lower_type(&l->m->arena, text), &l->shape));
  kl_source source = {"shape", kl_str_of(text)};
  kl_span whole = {&source, 0, source.text.n};
  kl_physical_error e = kl_physical_of(l->shape, &l->p);
  if (e == KL_PHYSICAL_NO_ARRAY)
    return kl_invalid(l->cx, whole, "expected an array's shape, found %s", kl_info(l->shape->dtype)->name);
  if (e) return kl_unsupported(l->cx, whole, "%s does not say where elements lie", kl_physical_error_text(e));
  describe(l);
  return KILN_OK;
}

kiln_status kiln_layout_parse(kiln_context *cx, const char *shape, kiln_layout **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, shape, out);
  kiln_layout *l = kl_alloc(cx, sizeof *l);
  kl_context_hold(cx);
  l->cx = cx;
  l->m = kl_module_new(cx);
  kiln_status status = read(l, shape);
  if (status == KILN_OK)
    *out = l;
  else
    kiln_layout_destroy(&l);
  return status;
}

void kiln_layout_destroy(kiln_layout **l) {
  if (!l || !*l) return;
  kl_ctx *cx = (*l)->cx;
  kiln_module_destroy(&(*l)->m);
  kl_free(cx, *l, sizeof **l);
  kl_context_release(cx);
  *l = NULL;
}

const kiln_layout_info *kiln_layout_describe(const kiln_layout *l) {
  return l ? &l->info : NULL;
}

bool kiln_layout_digit_at(const kiln_layout *l, size_t i, int64_t *extent, int64_t *stride, const char **value) {
  if (!l || !extent || !stride || !value || i >= l->p.ndigits) return false;
  *extent = l->p.digits[i].extent;
  *stride = l->p.digits[i].stride;
  *value = l->digits[i];
  return true;
}

bool kiln_layout_name_at(const kiln_layout *l, size_t i, const char **name, const char **value) {
  if (!l || !name || !value || i >= l->info.name_count) return false;
  *name = l->names[i];
  *value = l->means[i];
  return true;
}

// --- positions ----------------------------------------------------------------------------------------------------

static kiln_status check_index(kl_ctx *cx, const kl_shape *s, uint32_t d, int64_t at, kl_span where) {
  if (at >= 0 && at < s->dims[d]) return KILN_OK;
  if (!s->dims[d])
    return kl_invalid(cx, where, "dimension %u has no elements: expected no index, found %lld", d, (long long)at);
  return kl_invalid(cx, where, "dimension %u: expected an index of 0 to %lld, found %lld", d,
                    (long long)(s->dims[d] - 1), (long long)at);
}

// The number between commas that begins at *at; *at: behind it.
static kiln_status read_number(kl_ctx *cx, const kl_source *source, uint32_t d, size_t *at, kl_span *where,
                               int64_t *out) {
  kl_str t = source->text;
  const char *comma = memchr(t.p + *at, ',', t.n - *at);
  size_t begin = *at, end = comma ? (size_t)(comma - t.p) : t.n;
  *at = end;
  while (begin < end && t.p[begin] == ' ') begin++;
  while (end > begin && t.p[end - 1] == ' ') end--;
  *where = (kl_span){source, begin, end > begin ? end : begin + 1};
  kl_str number = {t.p + begin, end - begin};
  if (kl_i64_from_text(number, out)) return KILN_OK;
  return kl_invalid(cx, *where, "expected the index of dimension %u, found '%.*s'", d, KL_FMT(number));
}

kiln_status kiln_layout_read_index(kiln_context *cx, const kiln_layout *l, const char *text, int64_t *index) {
  KL_EXPECT(cx, l, text, index);
  int64_t found[KILN_MAX_RANK] = {0};
  const kl_shape *s = l->shape;
  memset(index, 0, s->rank * sizeof *index);
  kl_source source = {"index", kl_str_of(text)};
  kl_str t = source.text;
  size_t at = 0;
  uint32_t d = 0;
  while (at < t.n && t.p[at] == ' ') at++;
  for (bool more = at < t.n || s->rank; more; d++) {
    kl_span where;
    int64_t v;
    if (d == s->rank)
      return kl_invalid(cx, (kl_span){&source, at, t.n}, "expected the end, for the shape has %u dimension%s", d,
                        d == 1 ? "" : "s");
    KL_TRY(read_number(cx, &source, d, &at, &where, &v));
    KL_TRY(check_index(cx, s, d, v, where));
    found[d] = v;
    more = at < t.n || d + 1 < s->rank;
    if (at < t.n) at++;
  }
  memcpy(index, found, s->rank * sizeof *index);
  return KILN_OK;
}

kiln_status kiln_layout_position(kiln_context *cx, const kiln_layout *l, const int64_t *index, int64_t *position) {
  KL_CLEAR(position);
  KL_EXPECT(cx, l, index, position);
  for (uint32_t d = 0; d < l->shape->rank; d++) KL_TRY(check_index(cx, l->shape, d, index[d], KL_NOWHERE));
  *position = kl_physical_position(&l->p, index);
  return KILN_OK;
}

kiln_status kiln_layout_index(kiln_context *cx, const kiln_layout *l, int64_t position, int64_t *index, bool *padding) {
  KL_CLEAR(padding);
  KL_EXPECT(cx, l, index, padding);
  memset(index, 0, l->shape->rank * sizeof *index);
  if (position < 0 || position >= l->p.positions) {
    if (!l->p.positions)
      return kl_invalid(cx, KL_NOWHERE, "the shape has no positions, found %lld", (long long)position);
    return kl_invalid(cx, KL_NOWHERE, "expected a position of 0 to %lld, found %lld", (long long)(l->p.positions - 1),
                      (long long)position);
  }
  *padding = !kl_physical_index(&l->p, position, index);
  return KILN_OK;
}

int64_t kiln_layout_next_padding(const kiln_layout *l, int64_t from) {
  return l ? kl_physical_next_padding(&l->p, from) : -1;
}

bool kiln_layout_address(const kiln_layout *l, int64_t position, int64_t *byte, unsigned *bit) {
  if (!l || !byte || !bit || position < 0 || position >= l->p.positions) return false;
  kl_bit at = kl_physical_bit(&l->p, position);
  *byte = at.byte;
  *bit = at.bit;
  return true;
}

bool kiln_layout_pack(const kiln_layout *l, const void *elements, void *buffer) {
  if (!l || (l->shape->count && !(elements && buffer))) return false;
  if (l->shape->count) kl_array_pack(&(kl_array){l->shape, (void *)elements}, buffer); // not written
  return true;
}

bool kiln_layout_unpack(const kiln_layout *l, const void *buffer, void *elements) {
  if (!l || (l->shape->count && !(elements && buffer))) return false;
  if (l->shape->count) kl_array_unpack(&(kl_array){l->shape, elements}, buffer);
  return true;
}

// --- two layouts --------------------------------------------------------------------------------------------------

kiln_truth kiln_layout_reshape_moves_nothing(const kiln_layout *from, const kiln_layout *to) {
  return from && to ? kl_reshape_is_bitcast(from->shape, to->shape) : KILN_NO;
}

kiln_truth kiln_layout_transpose_moves_nothing(const kiln_layout *from, const kiln_layout *to, const int64_t *perm) {
  uint64_t seen = 0;
  if (!from || !to || !perm || from->shape->rank != to->shape->rank) return KILN_NO;
  for (uint32_t d = 0; d < from->shape->rank; d++) {
    if (perm[d] < 0 || perm[d] >= from->shape->rank || (seen >> perm[d] & 1)) return KILN_NO;
    seen |= 1ull << perm[d];
  }
  return kl_transpose_is_bitcast(from->shape, to->shape, perm);
}

bool kiln_layout_bitcast_reads_elements(const kiln_layout *from, const kiln_layout *to) {
  return from && to && kl_bitcast_reads_elements(&from->p, &to->p, INT64_MAX) == KILN_YES;
}

// --- as maps --------------------------------------------------------------------------------------------------------

static kiln_map *publish(kl_ctx *cx, const kl_shape *s, const kl_map *(*write)(kl_affs *pool, const kl_shape *s)) {
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_affs *pool = kl_affs_create(cx, &arena);
  kiln_map *m = kl_map_publish(cx, kl_map_simplify(pool, write(pool, s), 0));
  kl_affs_destroy(&pool);
  kl_arena_free(&arena);
  return m;
}

kiln_status kiln_layout_map(kiln_context *cx, const kiln_layout *l, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, l, out);
  *out = publish(cx, l->shape, kl_layout_map);
  return KILN_OK;
}

kiln_status kiln_layout_inverse_map(kiln_context *cx, const kiln_layout *l, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, l, out);
  *out = publish(cx, l->shape, kl_layout_inverse_map);
  return KILN_OK;
}

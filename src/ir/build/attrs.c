// Attributes of the builder: values in C's forms, put where the op's row says. An attribute's key decides which form it
// takes; text takes the parser's way.
#include "ir/build/builder.h"
#include "ir/text/text.h"
#include "ir/shape.h"

#include <math.h>

static const char *const form_names[] = {
    [KILN_ATTR_RAW] = "KILN_RAW",         [KILN_ATTR_INT] = "KILN_INT",       [KILN_ATTR_BOOL] = "KILN_BOOL",
    [KILN_ATTR_REAL] = "KILN_REAL",       [KILN_ATTR_NAME] = "KILN_NAME",     [KILN_ATTR_NAMES] = "KILN_NAMES",
    [KILN_ATTR_TEXT] = "KILN_TEXT",       [KILN_ATTR_INTS] = "KILN_INTS",     [KILN_ATTR_SLICES] = "KILN_SLICES",
    [KILN_ATTR_PADDING] = "KILN_PADDING", [KILN_ATTR_WINDOW] = "KILN_WINDOW", [KILN_ATTR_PAIRS] = "KILN_PAIRS",
    [KILN_ATTR_COMP] = "KILN_COMP",       [KILN_ATTR_COMPS] = "KILN_COMPS",   [KILN_ATTR_TYPE] = "KILN_TYPE",
    [KILN_ATTR_AFTER] = "KILN_AFTER",     [KILN_ATTR_NAMED] = "KILN_NAMED",
};

// The form of a row's values in C; text does for all but computations, which have no names here.
static kiln_attr_form form_of(kl_attr_type type) {
  switch (type) {
  case KL_ATTR_DIMS:
  case KL_ATTR_INTS: return KILN_ATTR_INTS;
  case KL_ATTR_INT:
  case KL_ATTR_BITS: return KILN_ATTR_INT;
  case KL_ATTR_BOOL: return KILN_ATTR_BOOL;
  case KL_ATTR_REAL: return KILN_ATTR_REAL;
  case KL_ATTR_NAME: return KILN_ATTR_NAME;
  case KL_ATTR_NAMES: return KILN_ATTR_NAMES;
  case KL_ATTR_QUOTED: return KILN_ATTR_TEXT;
  case KL_ATTR_SLICES: return KILN_ATTR_SLICES;
  case KL_ATTR_PADDING: return KILN_ATTR_PADDING;
  case KL_ATTR_WINDOW: return KILN_ATTR_WINDOW;
  case KL_ATTR_DIM_LABELS:
  case KL_ATTR_GROUPS: return KILN_ATTR_RAW;
  case KL_ATTR_PAIRS: return KILN_ATTR_PAIRS;
  case KL_ATTR_COMP: return KILN_ATTR_COMP;
  case KL_ATTR_COMPS: return KILN_ATTR_COMPS;
  case KL_ATTR_SHAPE: return KILN_ATTR_TYPE;
  }
  return KILN_ATTR_RAW;
}

typedef struct reader {
  kiln_builder *b;
  const char *opcode;
  kl_instr *in;
  kl_attr_list rows;
  const kiln_attr *comps[64]; // by row: the attribute that gives its computations
} reader;

// --- single values ------------------------------------------------------------------------------------------------

static bool read_bits(reader *r, const kiln_attr *a, int32_t *out) {
  *out = (int32_t)a->as.integer;
  if (a->as.integer >= 0 && a->as.integer <= 64) return true;
  return kl_builder_refuse(r->b, "%s: expected a number of bits from 0 to 64 for '%s', found %lld", r->opcode, a->key,
                           (long long)a->as.integer);
}

// Index of `name` among the row's names; false after a finding.
static bool read_choice(reader *r, const kl_attr_row *row, const char *name, int64_t *out) {
  for (uint8_t i = 0; i < row->nnames; i++)
    if (name && row->names[i] && strcmp(row->names[i], name) == 0) {
      *out = i;
      return true;
    }
  kl_sb list;
  kl_sb_init(&list, r->b->cx);
  for (uint8_t i = 0; i < row->nnames; i++)
    if (row->names[i]) kl_sbf(&list, " %s", row->names[i]);
  kl_builder_refuse(r->b, "%s: expected %s, one of%s, found '%.200s'", r->opcode, row->what, list.p ? list.p : "",
                    name ? name : "");
  kl_sb_free(&list);
  return false;
}

static bool read_name(reader *r, const kl_attr_row *row, const kiln_attr *a, int *out) {
  int64_t choice;
  if (!read_choice(r, row, a->as.text, &choice)) return false;
  *out = (int)choice;
  return true;
}

// In quotes, as the text has it. What would end or change it there is escaped.
static kl_str quoted(kiln_builder *b, const char *text) {
  kl_sb out;
  kl_sb_init(&out, b->cx);
  kl_sb_putc(&out, '"');
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    if (*p == '"' || *p == '\\')
      kl_sbf(&out, "\\%c", *p);
    else if (*p < 0x20 || *p == 0x7f)
      kl_sbf(&out, "\\%03o", *p);
    else
      kl_sb_putc(&out, (char)*p);
  }
  kl_sb_putc(&out, '"');
  kl_str s = kl_str_dup(&b->m->arena, (kl_str){out.p, out.n});
  kl_sb_free(&out);
  return s;
}

// --- lists --------------------------------------------------------------------------------------------------------

static bool read_names(reader *r, const kl_attr_row *row, const kiln_attr *a, kl_ints *out) {
  int64_t *p = KL_NEW_N(&r->b->m->arena, int64_t, a->count);
  for (size_t i = 0; i < a->count; i++)
    if (!read_choice(r, row, a->as.names[i], &p[i])) return false;
  *out = (kl_ints){(uint32_t)a->count, p};
  return true;
}

static kl_ints dup_ints(reader *r, const kiln_attr *a) {
  return (kl_ints){(uint32_t)a->count, kl_arena_dup(&r->b->m->arena, a->as.ints, a->count * sizeof(int64_t))};
}

static void read_slices(reader *r, const kiln_attr *a) {
  kl_slice_dim *v = KL_NEW_N(&r->b->m->arena, kl_slice_dim, a->count);
  for (size_t i = 0; i < a->count; i++) {
    kiln_slice_dim d = a->as.slices[i];
    v[i] = (kl_slice_dim){d.start, d.limit, d.stride ? d.stride : 1};
  }
  r->in->slice = v;
  r->in->ndims = (uint32_t)a->count;
}

static void read_padding(reader *r, const kiln_attr *a) {
  kl_pad_dim *v = KL_NEW_N(&r->b->m->arena, kl_pad_dim, a->count);
  for (size_t i = 0; i < a->count; i++)
    v[i] = (kl_pad_dim){a->as.padding[i].low, a->as.padding[i].high, a->as.padding[i].interior};
  r->in->pad = v;
  r->in->ndims = (uint32_t)a->count;
}

static bool read_window(reader *r, const kiln_attr *a) {
  if (a->count > KILN_MAX_RANK)
    return kl_builder_refuse(r->b, "%s: expected a window of at most %d dimensions, found %zu", r->opcode,
                             KILN_MAX_RANK, a->count);
  kl_window_dim *v = KL_NEW_N(&r->b->m->arena, kl_window_dim, a->count);
  for (size_t i = 0; i < a->count; i++) {
    kiln_window_dim d = a->as.window[i];
    v[i] = (kl_window_dim){d.size,
                           d.stride ? d.stride : 1,
                           d.low,
                           d.high,
                           d.base_dilation ? d.base_dilation : 1,
                           d.window_dilation ? d.window_dilation : 1,
                           d.reversed};
  }
  kl_more *more = (kl_more *)r->in->more;
  more->window = v;
  more->nwindow = (uint32_t)a->count;
  return true;
}

static bool read_pairs(reader *r, const kiln_attr *a, kl_ints *out) {
  if (a->count % 2)
    return kl_builder_refuse(r->b, "%s: expected pairs for '%s', found %zu numbers", r->opcode, a->key, a->count);
  for (size_t i = 0; i < a->count; i++)
    if (a->as.ints[i] < 0)
      return kl_builder_refuse(r->b, "%s: expected device numbers of at least 0 for '%s', found %lld", r->opcode,
                               a->key, (long long)a->as.ints[i]);
  *out = dup_ints(r, a);
  return true;
}

// --- by type ------------------------------------------------------------------------------------------------------

static bool has_list(reader *r, const kiln_attr *a) {
  if (a->form == KILN_ATTR_NAME || a->form == KILN_ATTR_TEXT || a->form == KILN_ATTR_RAW ||
      a->form == KILN_ATTR_NAMED) {
    if (a->as.text) return true;
    return kl_builder_refuse(r->b, "%s: expected a text for '%s', found none", r->opcode, a->key);
  }
  if (a->count > KL_MAX_LEAVES)
    return kl_builder_refuse(r->b, "%s: expected at most 2^24 entries for '%s', found %zu", r->opcode, a->key,
                             a->count);
  if (a->count == 0 || a->as.ints) return true; // the pointers share their place
  return kl_builder_refuse(r->b, "%s: expected %zu entries for '%s', found NULL", r->opcode, a->count, a->key);
}

static bool read_value(reader *r, const kl_attr_row *row, const kiln_attr *a) {
  void *at = (void *)kl_attr_at(r->in, row);
  kl_ints list;
  switch (row->type) {
  case KL_ATTR_DIMS:
    list = dup_ints(r, a);
    r->in->ndims = list.n;
    r->in->dims = list.p;
    return true;
  case KL_ATTR_INTS: *(kl_ints *)at = dup_ints(r, a); return true;
  case KL_ATTR_INT: *(int64_t *)at = a->as.integer; return true;
  case KL_ATTR_BITS: return read_bits(r, a, at);
  case KL_ATTR_BOOL: *(bool *)at = a->as.flag; return true;
  case KL_ATTR_REAL: *(double *)at = (float)a->as.real; return true;
  case KL_ATTR_NAME: return read_name(r, row, a, at);
  case KL_ATTR_NAMES: return read_names(r, row, a, at);
  case KL_ATTR_QUOTED: *(kl_str *)at = quoted(r->b, a->as.text); return true;
  case KL_ATTR_SLICES: read_slices(r, a); return true;
  case KL_ATTR_PADDING: read_padding(r, a); return true;
  case KL_ATTR_WINDOW: return read_window(r, a);
  case KL_ATTR_PAIRS: return read_pairs(r, a, at);
  case KL_ATTR_COMP:
  case KL_ATTR_COMPS: return true; // in the order of the rows, later
  case KL_ATTR_SHAPE: return (*(const kl_shape **)at = kl_builder_shape(r->b, r->opcode, a->as.type)) != NULL;
  default: return true;
  }
}

static bool read_typed(reader *r, uint32_t index, const kiln_attr *a) {
  const kl_attr_row *row = &r->rows.p[index];
  kiln_attr_form form = form_of(row->type);
  bool names_comps = form == KILN_ATTR_COMP || form == KILN_ATTR_COMPS;
  if (r->in->given >> index & 1)
    return kl_builder_refuse(r->b, "%s: expected the attribute '%s' once, found it again", r->opcode, row->key);
  if (a->form != form && (a->form != KILN_ATTR_RAW || names_comps))
    return kl_builder_refuse(r->b, "%s: expected %s%s for the attribute '%s', found %s", r->opcode, form_names[form],
                             names_comps || form == KILN_ATTR_RAW ? "" : " or KILN_RAW", row->key, form_names[a->form]);
  r->in->given |= 1ull << index;
  r->comps[index] = a;
  if (a->form == KILN_ATTR_RAW)
    return kl_builder_took(r->b, kl_read_attr(r->b->cx, r->b->m, row->key, a->as.text, row, r->in));
  return read_value(r, row, a);
}

// --- attributes that no row names ---------------------------------------------------------------------------------

static bool is_key(const char *key) {
  if (!key || !kl_is_name_start(key[0])) return false;
  for (const char *p = key; *p; p++)
    if (!kl_is_name_char(*p)) return false;
  return true;
}

static bool read_after(reader *r, const kiln_attr *a) {
  for (size_t i = 0; i < a->count; i++)
    if (a->as.values[i] >= r->b->instrs.n)
      return kl_builder_refuse(r->b,
                               "%s: expected a value of the open computation for control predecessor %zu, found "
                               "none",
                               r->opcode, i);
  r->in->ncontrol = (uint32_t)a->count;
  r->in->control = kl_arena_dup(&r->b->m->arena, a->as.values, a->count * sizeof *a->as.values);
  return true;
}

bool kl_builder_is_key(kiln_builder *b, const char *what, const char *key, const char *text) {
  if (!is_key(key))
    return kl_builder_refuse(b, "%s: expected a key of letters, digits, '_', '.' and '-', found '%.200s'", what,
                             key ? key : "");
  return text || kl_builder_refuse(b, "%s: expected a text for '%s', found none", what, key);
}

bool kl_builder_add_raw(kiln_builder *b, const char *what, const char *key, const char *text, uint32_t *n,
                        const kl_raw_attr **raw) {
  if (!kl_builder_is_key(b, what, key, text)) return false;
  kl_raw_attr *list = KL_NEW_N(&b->m->arena, kl_raw_attr, *n + 1);
  if (*n) memcpy(list, *raw, *n * sizeof *list);
  if (!kl_builder_took(b, kl_read_raw(b->cx, b->m, key, text, &list[*n]))) return false;
  ++*n;
  *raw = list;
  return true;
}

static bool read_raw(reader *r, const kiln_attr *a) {
  const char *text = a->form == KILN_ATTR_TEXT ? quoted(r->b, a->as.text).p : a->as.text;
  return kl_builder_add_raw(r->b, r->opcode, a->key, text, &r->in->nraw, &r->in->raw);
}

static bool refuse_key(reader *r, const kiln_attr *a) {
  kl_sb list;
  kl_sb_init(&list, r->b->cx);
  for (uint32_t i = 0; i < r->rows.n; i++) kl_sbf(&list, "%s%s", i ? ", " : "", r->rows.p[i].key);
  kl_builder_refuse(r->b, "%s: expected an attribute that it has (%s) or KILN_RAW, found '%.200s'", r->opcode,
                    r->rows.n ? list.p : "none", a->key ? a->key : "");
  kl_sb_free(&list);
  return false;
}

// --- all of an instruction's --------------------------------------------------------------------------------------

static bool read_attr(reader *r, const kiln_attr *a, const char **name) {
  if ((unsigned)a->form >= KL_COUNT(form_names))
    return kl_builder_refuse(r->b, "%s: expected a form of attributes, found %d", r->opcode, (int)a->form);
  if (a->form == KILN_ATTR_NAMED) *name = a->as.text;
  if (a->form == KILN_ATTR_NAMED) return true;
  bool is_list = a->form == KILN_ATTR_NAMES || a->form == KILN_ATTR_INTS || a->form == KILN_ATTR_SLICES ||
                 a->form == KILN_ATTR_PADDING || a->form == KILN_ATTR_WINDOW || a->form == KILN_ATTR_PAIRS ||
                 a->form == KILN_ATTR_COMPS || a->form == KILN_ATTR_AFTER;
  bool is_text = a->form == KILN_ATTR_RAW || a->form == KILN_ATTR_TEXT || a->form == KILN_ATTR_NAME;
  if ((is_list || is_text) && !has_list(r, a)) return false;
  if (a->form == KILN_ATTR_AFTER) return read_after(r, a);
  for (uint32_t i = 0; a->key && i < r->rows.n; i++)
    if (strcmp(r->rows.p[i].key, a->key) == 0) return read_typed(r, i, a);
  return a->form == KILN_ATTR_RAW || a->form == KILN_ATTR_TEXT ? read_raw(r, a) : refuse_key(r, a);
}

// The done half of an async op written in short needs nothing: the start has said it.
static bool has_required(reader *r) {
  if (r->in->wrapped && r->in->op != KL_OP_ASYNC_START) return true;
  for (uint32_t i = 0; i < r->rows.n; i++)
    if (r->rows.p[i].need == KL_ATTR_MUST && !(r->in->given >> i & 1))
      return kl_builder_refuse(r->b, "%s: expected an attribute '%s' (%s), found none", r->opcode, r->rows.p[i].key,
                               form_names[form_of(r->rows.p[i].type)]);
  return true;
}

static bool read_called(reader *r) {
  VEC(uint32_t) called = {0};
  bool ok = true;
  for (uint32_t i = 0; ok && i < r->rows.n; i++) {
    const kiln_attr *a = r->comps[i];
    if (!a || (a->form != KILN_ATTR_COMP && a->form != KILN_ATTR_COMPS)) continue;
    const kiln_computation *list = a->form == KILN_ATTR_COMPS ? a->as.comps : &a->as.comp;
    size_t n = a->form == KILN_ATTR_COMPS ? a->count : 1;
    for (size_t k = 0; ok && k < n; k++) {
      ok = list[k] < r->b->comps.n ||
           kl_builder_refuse(r->b, "%s: expected a computation that has ended for '%s', found none", r->opcode, a->key);
      if (ok) VEC_PUSH(r->b->cx, &called, list[k]);
    }
  }
  r->in->ncalled = (uint32_t)called.n;
  r->in->called = VEC_FREEZE(r->b->cx, &r->b->m->arena, &called);
  return ok;
}

bool kl_builder_read_attrs(kiln_builder *b, const char *opcode, kl_instr *in, const kiln_attr *attrs, size_t n,
                           const char **name) {
  reader r = {.b = b, .opcode = opcode, .in = in, .rows = kl_instr_attrs(in)};
  kl_more *more = NULL;
  if (kl_op_has_more(in->wrapped ? in->wrapped : in->op))
    in->more = more = kl_arena_dup(&b->m->arena, &kl_no_more, sizeof *more);
  kl_attrs_default(in, more);
  if (n && !attrs) return kl_builder_refuse(b, "%s: expected %zu attributes, found NULL", opcode, n);
  for (size_t i = 0; i < n; i++)
    if (!read_attr(&r, &attrs[i], name)) return false;
  return has_required(&r) && read_called(&r);
}

// An encoding's text:
//
//   text   := ('#' NAME '=')? '#sparse_tensor.encoding' '<' braces '>' | '#sparse_tensor' '<' 'encoding' '<' braces '>'
//   '>'
//           | fields
//   braces := '{' fields '}'
//   fields := (field (',' field)* ','?)?
//   field  := 'map' '=' map | ('posWidth' | 'crdWidth' | 'explicitVal' | 'implicitVal') '=' number
//
// Comments begin with // and end with the line.
#include "ir/sparse/text/reader.h"
#include "ir/text/text.h"

// --- tokens -------------------------------------------------------------------------------------------------------

static char at(const reader *r, size_t i) {
  return kl_scan_at(&r->scan, i);
}
static bool is_word_start(char c) {
  return kl_is_name_start(c);
}
static bool is_word(char c) {
  return kl_is_name_start(c) || kl_is_digit(c) || c == '.' || c == '$';
}
static bool is_hex(char c) {
  return kl_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static void skip(reader *r) {
  for (;;) {
    kl_scan_skip_space(&r->scan);
    if (!kl_scan_eat(&r->scan, "//")) return;
    while (!kl_scan_ended(&r->scan) && at(r, r->scan.pos) != '\n') r->scan.pos++;
  }
}

static void take_number(reader *r) {
  r->kind = T_INTEGER;
  if (at(r, r->scan.pos) == '0' && (at(r, r->scan.pos + 1) | 0x20) == 'x' && is_hex(at(r, r->scan.pos + 2))) {
    for (r->scan.pos += 2; is_hex(at(r, r->scan.pos));) r->scan.pos++;
    return;
  }
  while (kl_is_digit(at(r, r->scan.pos))) r->scan.pos++;
  if (at(r, r->scan.pos) != '.') return;
  r->kind = T_FLOAT;
  for (r->scan.pos++; kl_is_digit(at(r, r->scan.pos));) r->scan.pos++;
  if ((at(r, r->scan.pos) | 0x20) != 'e') return;
  size_t sign = at(r, r->scan.pos + 1) == '-' || at(r, r->scan.pos + 1) == '+';
  if (!kl_is_digit(at(r, r->scan.pos + 1 + sign))) return;
  for (r->scan.pos += 1 + sign; kl_is_digit(at(r, r->scan.pos));) r->scan.pos++;
}

static void take_string(reader *r) {
  r->kind = T_STRING;
  for (r->scan.pos++; r->scan.pos < r->scan.src->text.n && at(r, r->scan.pos) != '"' && at(r, r->scan.pos) != '\n';
       r->scan.pos++)
    if (at(r, r->scan.pos) == '\\' && r->scan.pos + 1 < r->scan.src->text.n) r->scan.pos++;
  r->scan.pos += at(r, r->scan.pos) == '"';
}

void sp_next(reader *r) {
  r->scan.last_end = r->scan.pos;
  skip(r);
  r->scan.begin = r->scan.pos;
  r->punct = 0;
  char c = at(r, r->scan.pos);
  if (kl_scan_ended(&r->scan)) {
    r->kind = T_END;
  } else if (kl_is_digit(c)) {
    take_number(r);
  } else if (is_word_start(c) || (c == '#' && is_word_start(at(r, r->scan.pos + 1)))) {
    r->kind = c == '#' ? T_HASH : T_WORD;
    for (r->scan.pos++; is_word(at(r, r->scan.pos));) r->scan.pos++;
  } else if (c == '"') {
    take_string(r);
  } else if (kl_scan_eat(&r->scan, "->")) {
    r->kind = T_ARROW;
  } else {
    r->kind = T_PUNCT;
    r->punct = c;
    kl_scan_character(&r->scan);
  }
}

kl_str sp_text(const reader *r) {
  return kl_scan_text(&r->scan);
}
kl_span sp_here(const reader *r) {
  return kl_scan_here(&r->scan);
}
kl_span sp_since(const reader *r, size_t begin) {
  return kl_scan_since(&r->scan, begin);
}

bool sp_broken(reader *r, kl_span where, kl_sparse_rule rule, const char *fmt, ...) {
  va_list ap;
  if (r->status != KILN_OK) return false;
  va_start(ap, fmt);
  r->status = kl_sparse_vbroken(r->cx, where, rule, fmt, ap);
  va_end(ap);
  r->how->broken = rule;
  return false;
}

bool sp_expected(reader *r, kl_sparse_rule rule, const char *what) {
  if (r->kind == T_END) return sp_broken(r, sp_here(r), rule, "expected %s, found the end of the text", what);
  return sp_broken(r, sp_here(r), rule, "expected %s, found '%.*s'", what, KL_FMT(sp_text(r)));
}

bool sp_is(const reader *r, char punct) {
  return r->kind == T_PUNCT && r->punct == punct;
}
bool sp_eat(reader *r, char punct) {
  if (!sp_is(r, punct)) return false;
  sp_next(r);
  return true;
}
bool sp_need(reader *r, char punct, kl_sparse_rule rule, const char *what) {
  return sp_eat(r, punct) || sp_expected(r, rule, what);
}
bool sp_is_word(const reader *r, const char *word) {
  return r->kind == T_WORD && kl_str_is(sp_text(r), word);
}

// --- fields -------------------------------------------------------------------------------------------------------

static bool read_width(reader *r, kl_sparse_rule rule, const char *what, kl_span *where, int64_t *out) {
  kl_number x;
  bool number;
  size_t begin = r->scan.begin;
  if (!sp_read_number(r, &x, &number)) return false;
  *where = sp_since(r, begin);
  if (!number) return sp_expected(r, rule, what);
  if (x.cls != KL_NUMBER_INT) return sp_broken(r, *where, rule, "expected %s, found %.*s", what, KL_FMT(x.text));
  *out = (int64_t)(x.negative ? 0 - x.size : x.size);
  if (r->e->strict) *out = (uint32_t)*out; // it keeps 32 bits
  return true;
}

static bool read_value(reader *r, kl_sparse_rule rule, kl_span *where, kl_number *out) {
  bool number;
  size_t begin = r->scan.begin;
  if (!sp_read_number(r, out, &number)) return false;
  *where = sp_since(r, begin);
  return number || sp_expected(r, rule, "a number");
}

enum { F_MAP, F_POS, F_CRD, F_EXPLICIT, F_IMPLICIT, F_COUNT };
static const char *const keys[F_COUNT] = {"map", "posWidth", "crdWidth", "explicitVal", "implicitVal"};

static bool read_field(reader *r, int field) {
  switch (field) {
  case F_MAP: return sp_read_map(r);
  case F_POS: return read_width(r, KL_RULE_POSINT, "an integer, the bits of positions", &r->pos_span, &r->pos_width);
  case F_CRD: return read_width(r, KL_RULE_CRDINT, "an integer, the bits of coordinates", &r->crd_span, &r->crd_width);
  case F_EXPLICIT: return read_value(r, KL_RULE_EXPNUM, &r->explicit_span, &r->e->explicit_value);
  default: return read_value(r, KL_RULE_IMPNUM, &r->implicit_span, &r->e->implicit_value);
  }
}

static bool read_key(reader *r, int *field) {
  for (*field = 0; *field < F_COUNT; ++*field)
    if (sp_is_word(r, keys[*field])) return true;
  return sp_expected(r, KL_RULE_KEY, "map, posWidth, crdWidth, explicitVal or implicitVal");
}

// Up to the closing brace, or the end.
static bool read_fields(reader *r) {
  bool seen[F_COUNT] = {false};
  while (r->kind == T_WORD) {
    int f;
    if (!read_key(r, &f)) return false;
    if (seen[f] && !r->e->strict)
      return sp_broken(r, sp_here(r), KL_RULE_TWICE, "expected each field once, found '%s' again", keys[f]);
    seen[f] = true;
    sp_next(r);
    if (!sp_need(r, '=', KL_RULE_KEY, "'=' and the field's value") || !read_field(r, f)) return false;
    if (!sp_eat(r, ',')) break;
  }
  return true;
}

static bool read_braces(reader *r) {
  return sp_need(r, '<', KL_RULE_FORM, "'<{' and the fields") && sp_need(r, '{', KL_RULE_FORM, "'{' and the fields") &&
         read_fields(r) && sp_need(r, '}', KL_RULE_SEP, "',' and a field, or '}>'") &&
         sp_need(r, '>', KL_RULE_FORM, "'>'");
}

static bool read_attribute(reader *r) {
  if (kl_str_is(sp_text(r), "#sparse_tensor.encoding")) {
    sp_next(r);
    return read_braces(r);
  }
  if (!kl_str_is(sp_text(r), "#sparse_tensor")) return sp_expected(r, KL_RULE_FORM, "#sparse_tensor.encoding<{ ... }>");
  sp_next(r);
  if (!sp_need(r, '<', KL_RULE_FORM, "'<encoding<{'")) return false;
  if (!sp_is_word(r, "encoding")) return sp_expected(r, KL_RULE_FORM, "encoding<{ ... }>");
  sp_next(r);
  return read_braces(r) && sp_need(r, '>', KL_RULE_FORM, "'>'");
}

static bool read_text(reader *r) {
  if (r->kind == T_HASH && !kl_str_is(sp_text(r), "#sparse_tensor") &&
      !kl_str_is(sp_text(r), "#sparse_tensor.encoding")) { // the name of an alias
    sp_next(r);
    if (!sp_need(r, '=', KL_RULE_FORM, "'=' behind the encoding's name")) return false;
  }
  if (r->kind != T_HASH && r->kind != T_WORD)
    return sp_expected(r, KL_RULE_FORM, "#sparse_tensor.encoding<{ ... }>, or its fields");
  if (!(r->kind == T_HASH ? read_attribute(r) : read_fields(r))) return false;
  return r->kind == T_END || sp_expected(r, KL_RULE_SEP, "the end of the encoding");
}

// --- the whole ----------------------------------------------------------------------------------------------------

static void freeze_slices(reader *r, kl_encoding *e) {
  bool any = false;
  for (size_t i = 0; i < r->slices.n; i++) any |= r->slices.p[i].given;
  if (any) e->slices = kl_arena_dup(r->arena, r->slices.p, r->slices.n * sizeof(kl_slice));
}

static void freeze_inverse(reader *r, kl_encoding *e) {
  size_t written = 0;
  for (size_t i = 0; i < r->inverse.n; i++) written += r->inverse.p[i] != NULL;
  if (written) e->inverse = kl_arena_dup(r->arena, r->inverse.p, r->inverse.n * sizeof(*r->inverse.p));
  e->complete = written && written == r->inverse.n;
}

static void freeze(reader *r, kl_encoding *e) {
  e->ndims = (uint32_t)r->vars.of[V_DIM].n;
  e->nsymbols = (uint32_t)r->vars.of[V_SYMBOL].n;
  e->nlevels = (uint32_t)r->levels.n;
  e->levels = kl_arena_dup(r->arena, r->levels.p, r->levels.n * sizeof(kl_level));
  freeze_inverse(r, e);
  freeze_slices(r, e);
}

static void free_reader(reader *r) {
  for (int k = 0; k < 3; k++) VEC_FREE(r->cx, &r->vars.of[k]);
  VEC_FREE(r->cx, &r->levels);
  VEC_FREE(r->cx, &r->inverse);
  VEC_FREE(r->cx, &r->slices);
  VEC_FREE(r->cx, &r->level_spans);
}

// The type, of a text of its own.
static bool read_type(reader *r) {
  if (r->how->tensor) r->e->type = *r->how->tensor;
  if (r->how->tensor || !r->how->type) return true;
  kl_source src = {"type", kl_str_of(r->how->type)};
  reader t = {.cx = r->cx, .arena = r->arena, .scan = {.src = &src}, .e = r->e, .how = r->how};
  sp_next(&t);
  bool ok = sp_read_type(&t, &r->e->type);
  r->status = t.status;
  return ok;
}

void kl_encoding_free(const kl_encoding *e) {
  kl_encoding *own = (kl_encoding *)e;
  if (!own) return;
  kl_trees_free(&own->trees);
}

kiln_status kl_encoding_read(kl_ctx *cx, kl_arena *arena, const kl_source *src, kl_encoding_reading *how,
                             const kl_encoding **out) {
  kl_encoding *e = KL_NEW(arena, kl_encoding);
  reader r = {.cx = cx, .arena = arena, .scan = {.src = src, .pos = how->begin}, .e = e, .how = how};
  how->broken = KL_RULE_NONE;
  e->cx = cx;
  e->strict = how->strict;
  kl_trees_init(&e->trees, arena);
  sp_next(&r);
  if (read_type(&r) && read_text(&r)) {
    freeze(&r, e);
    sp_verify(&r);
  }
  free_reader(&r);
  if (r.status == KILN_OK)
    *out = e;
  else
    kl_encoding_free(e);
  return r.status;
}

const char *kl_encoding_normal(kl_ctx *cx, kl_arena *arena, const kl_source *src, kl_encoding_reading *how) {
  kl_arena temporary;
  const kl_encoding *e = NULL;
  const char *text = NULL;
  kl_arena_init(&temporary, cx);
  if (kl_encoding_read(cx, &temporary, src, how, &e) == KILN_OK) {
    kl_sb b;
    kl_sb_init(&b, cx);
    kl_encoding_print_fields(&b, e);
    text = kl_str_dup(arena, (kl_str){b.p, b.n}).p;
    kl_sb_free(&b);
    kl_encoding_free(e);
  }
  kl_arena_free(&temporary);
  return text;
}

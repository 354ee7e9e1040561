// The builder's way into the parser: types, values of attributes and attributes kept as text. Findings point into the
// text that was given, under the name of what it is for.
#include "ir/builder.h"
#include "ir/parse.h"

typedef struct reader {
  kl_parser ps;
  kl_source source;
} reader;

static bool start(kiln_builder *b, reader *r, const char *name, const char *text) {
  *r = (reader){.ps = {.cx = b->cx, .m = b->m, .arena = &b->m->arena}, .source = {name, kl_str_of(text)}};
  if (r->source.text.n >= INT32_MAX)
    return kl_builder_refuse(b, "%s: expected a text of less than 2 GiB, found one of %zu bytes", name,
                             r->source.text.n);
  r->ps.errors_before = b->cx->errors;
  kl_lex_init(&r->ps.lx, b->cx, &r->source);
  return true;
}

// Nothing may follow what was read.
static bool finish(kiln_builder *b, reader *r, bool ok) {
  ok = ok && (r->ps.lx.kind == KL_TOK_END || kl_lex_expected(&r->ps.lx, "the end of the text"));
  VEC_FREE(b->cx, &r->ps.uses);
  VEC_FREE(b->cx, &r->ps.callees);
  if (!ok) b->failed = r->ps.no_memory ? KILN_E_MEMORY : KILN_E_INVALID;
  return ok;
}

bool kl_builder_text_shape(kiln_builder *b, const char *text, const kl_shape **out) {
  reader r;
  return start(b, &r, "type", text) && finish(b, &r, kl_parse_shape(&r.ps, out));
}

bool kl_builder_text_value(kiln_builder *b, const char *key, const char *text, kl_instr *in, const kl_attr_row *row) {
  reader r;
  kl_draft_instr d = {.in = *in};
  if (!start(b, &r, key, text) || !finish(b, &r, kl_parse_value(&r.ps, &d, row))) return false;
  *in = d.in;
  return true;
}

// Read behind its key, as in a module's text: how a value ends depends on it.
bool kl_builder_text_raw(kiln_builder *b, const char *key, const char *text, kl_raw_attr *out) {
  reader r;
  kl_sb whole;
  kl_span span;
  size_t begin;
  kl_sb_init(&whole, b->cx);
  kl_sbf(&whole, "%s=%s", key, text);
  bool ok = start(b, &r, key, whole.p) && finish(b, &r, kl_parse_raw_attr(&r.ps, out, &span, &begin));
  kl_sb_free(&whole);
  return ok;
}

bool kl_read_header(kl_ctx *cx, kiln_module *m, kl_str text) {
  kl_source source = {"HloModule", text};
  kl_parser ps = {.cx = cx, .m = m, .arena = &m->arena, .errors_before = cx->errors};
  if (text.n >= INT32_MAX)
    return kl_invalid(cx, KL_NOWHERE, "HloModule: expected a header of less than 2 GiB, found %zu bytes", text.n),
           false;
  m->header = (kl_header){0};
  kl_lex_init(&ps.lx, cx, &source);
  bool ok = kl_parse_header(&ps) && (ps.lx.kind == KL_TOK_END || kl_lex_expected(&ps.lx, "the end of the text"));
  return ok && cx->errors == ps.errors_before;
}

void kl_put_header(kl_sb *b, const kiln_module *m) {
  kl_sb_puts(b, "HloModule %");
  kl_sb_put(b, kl_symbol_text(&m->names, m->name));
  for (uint32_t i = 0; i < m->nraw; i++) {
    kl_sb_puts(b, ", ");
    kl_sb_put(b, m->raw[i].key);
    kl_sb_putc(b, '=');
    kl_sb_put(b, m->raw[i].value);
  }
}

// The header is read as a whole each time: some keys may come once, and several are understood.
bool kl_builder_text_header(kiln_builder *b, const char *key, const char *text) {
  kl_sb whole;
  kl_sb_init(&whole, b->cx);
  kl_put_header(&whole, b->m);
  kl_sbf(&whole, ", %s=%s", key, text);
  bool ok = kl_read_header(b->cx, b->m, (kl_str){whole.p, whole.n});
  if (!ok) b->failed = KILN_E_INVALID;
  kl_sb_free(&whole);
  return ok;
}

kiln_status kl_builder_check_header(kiln_builder *b) {
  kl_parser ps = {.cx = b->cx, .m = b->m, .arena = &b->m->arena, .errors_before = b->cx->errors};
  kl_check_header(&ps);
  return b->cx->errors > ps.errors_before ? KILN_E_INVALID : KILN_OK;
}

// Pieces of HLO text by themselves: types, values of attributes, attributes kept as text, headers.
#include "ir/text/parse.h"

typedef struct reader {
  kl_parser ps;
  kl_source source;
} reader;

static bool start(reader *r, kl_ctx *cx, kiln_module *m, const char *name, kl_str text) {
  *r = (reader){.ps = {.cx = cx, .m = m, .arena = &m->arena, .errors_before = cx->errors}, .source = {name, text}};
  if (text.n >= INT32_MAX) {
    kl_invalid(cx, KL_NOWHERE, "%s: expected a text of less than 2 GiB, found one of %zu bytes", name, text.n);
    return false;
  }
  kl_lex_init(&r->ps.lx, cx, &r->source);
  return true;
}

// Nothing may follow what was read.
static kiln_status finish(reader *r, bool ok) {
  kl_parser *ps = &r->ps;
  ok = ok && (ps->lx.kind == KL_TOK_END || kl_lex_expected(&ps->lx, "the end of the text"));
  VEC_FREE(ps->cx, &ps->uses);
  VEC_FREE(ps->cx, &ps->callees);
  if (ps->no_memory) return KILN_E_MEMORY;
  return ok && ps->cx->errors == ps->errors_before ? KILN_OK : KILN_E_INVALID;
}

kiln_status kl_read_shape(kl_ctx *cx, kiln_module *m, const char *what, const char *text, const kl_shape **out) {
  reader r;
  return finish(&r, start(&r, cx, m, what, kl_str_of(text)) && kl_parse_shape(&r.ps, out));
}

kiln_status kl_read_attr(kl_ctx *cx, kiln_module *m, const char *key, const char *text, const kl_attr_row *row,
                         kl_instr *in) {
  reader r;
  kl_draft_instr d = {.in = *in};
  KL_TRY(finish(&r, start(&r, cx, m, key, kl_str_of(text)) && kl_parse_value(&r.ps, &d, row)));
  *in = d.in;
  return KILN_OK;
}

// Read behind its key, as in a module's text: how a value ends depends on it.
kiln_status kl_read_raw(kl_ctx *cx, kiln_module *m, const char *key, const char *text, kl_raw_attr *out) {
  reader r;
  kl_sb whole;
  kl_span span;
  size_t begin;
  kl_sb_init(&whole, cx);
  kl_sbf(&whole, "%s=%s", key, text);
  bool ok = start(&r, cx, m, key, (kl_str){whole.p, whole.n}) && kl_parse_raw_attr(&r.ps, out, &span, &begin);
  kiln_status s = finish(&r, ok);
  kl_sb_free(&whole);
  return s;
}

kiln_status kl_read_header(kl_ctx *cx, kiln_module *m, kl_str text) {
  reader r;
  m->header = (kl_header){0};
  return finish(&r, start(&r, cx, m, "HloModule", text) && kl_parse_header(&r.ps));
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

// What all pieces of the grammar need: expectations, going on after an error, declarations.
#include "sim/ptx/parse.h"

#include <stdio.h>

// Of a word behind a dot, with the dot.
static kl_span span_of(const kl_ptx_parser *ps, kl_str at) {
  const char *text = ps->m->source.text.p;
  size_t begin = (size_t)(at.p - text), end = begin + at.n;
  return (kl_span){&ps->m->source, begin - (begin && text[begin - 1] == '.'), end};
}

bool kl_ptx_expected(kl_ptx_parser *ps, const char *fmt, ...) {
  char found[64], what[300];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  ps->invalid++;
  kl_invalid(ps->cx, kl_ptx_lex_span(&ps->lx), "expected %s, found %s", what, kl_ptx_lex_found(&ps->lx, found));
  return false;
}

bool kl_ptx_wrong(kl_ptx_parser *ps, kl_str at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ps->invalid++;
  kl_vfail(ps->cx, KILN_E_INVALID, span_of(ps, at), fmt, ap);
  va_end(ap);
  return false;
}

bool kl_ptx_refused(kl_ptx_parser *ps, kl_str at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ps->unsupported++;
  kl_vfail(ps->cx, KILN_E_UNSUPPORTED, span_of(ps, at), fmt, ap);
  va_end(ap);
  return false;
}

bool kl_ptx_eat(kl_ptx_parser *ps, int punct) {
  if (ps->lx.punct != punct) return false;
  kl_ptx_lex_next(&ps->lx);
  return true;
}

bool kl_ptx_need(kl_ptx_parser *ps, int punct, const char *context) {
  return kl_ptx_eat(ps, punct) || kl_ptx_expected(ps, "'%c' %s", punct, context);
}

bool kl_ptx_at_dot(const kl_ptx_parser *ps, const char *word) {
  return ps->lx.kind == KL_PTX_TOK_DOT && kl_str_is(ps->lx.word, word);
}

bool kl_ptx_eat_dot(kl_ptx_parser *ps, const char *word) {
  if (!kl_ptx_at_dot(ps, word)) return false;
  kl_ptx_lex_next(&ps->lx);
  return true;
}

bool kl_ptx_name(kl_ptx_parser *ps, const char *what, kl_str *out) {
  if (ps->lx.kind != KL_PTX_TOK_NAME) return kl_ptx_expected(ps, "%s", what);
  *out = ps->lx.word;
  kl_ptx_lex_next(&ps->lx);
  return true;
}

bool kl_ptx_enter(kl_ptx_parser *ps) {
  if (ps->nesting == KL_PTX_MOST_NESTING)
    return kl_ptx_expected(ps, "nesting of at most %d levels", KL_PTX_MOST_NESTING);
  ps->nesting++;
  return true;
}

bool kl_ptx_too_many(const kl_ptx_parser *ps) {
  return ps->out_of_memory || ps->invalid + ps->unsupported >= KL_PTX_MOST_FINDINGS;
}

void kl_ptx_recover(kl_ptx_parser *ps) {
  size_t depth = ps->braces;
  ps->nesting = ps->braces = 0;
  for (; ps->lx.kind != KL_PTX_TOK_END; kl_ptx_lex_next(&ps->lx)) {
    if (kl_ptx_at(ps, '{')) depth++;
    if (kl_ptx_at(ps, '}') && depth-- == 0) return;
    if (kl_ptx_at(ps, ';') && depth == 0) {
      kl_ptx_lex_next(&ps->lx);
      return;
    }
  }
}

kl_ptx_place kl_ptx_here(const kl_ptx_parser *ps) {
  kl_ptx_place at = ps->loc;
  at.line = ps->lx.line;
  at.begin = ps->lx.begin;
  at.end = ps->lx.pos;
  return at;
}

bool kl_ptx_declare(kl_ptx_parser *ps, kl_ptx_symbol s) {
  if (!kl_ptx_names_depth(&ps->names) && kl_ptx_is_special(s.name))
    return kl_ptx_wrong(ps, s.name, "expected a name of its own, found the special register '%.*s'", KL_FMT(s.name));
  if (kl_ptx_names_add(&ps->names, s)) return true;
  return kl_ptx_wrong(ps, s.name, "expected a name that is new in its scope, found '%.*s'%s again", KL_FMT(s.name),
                      s.run ? " and its numbers" : "");
}

// The lexer of HLO text.
#include "ir/text/lex.h"

#include <stdio.h>

// --- white space and comments -------------------------------------------------------------------------------------

// Behind the comment that begins at `pos`, or `pos` if none does. A comment without end reaches to the text's end.
static size_t skip_comment(kl_str t, size_t pos) {
  if (pos + 1 >= t.n || t.p[pos] != '/') return pos;
  if (t.p[pos + 1] == '/') {
    const char *stop = memchr(t.p + pos, '\n', t.n - pos);
    return stop ? (size_t)(stop - t.p) : t.n;
  }
  if (t.p[pos + 1] != '*') return pos;
  const char *stop = memmem(t.p + pos + 2, t.n - pos - 2, "*/", 2);
  return stop ? (size_t)(stop - t.p) + 2 : t.n;
}

size_t kl_lex_skip(const kl_lexer *lx, size_t pos) {
  kl_str t = lx->src->text;
  for (;;) {
    while (pos < t.n && kl_is_space(t.p[pos])) pos++;
    size_t behind = skip_comment(t, pos);
    if (behind == pos) return pos;
    pos = behind;
  }
}

// Where in the skipped stretch a comment begins that never ends, or the text's end.
static size_t open_comment(kl_str t, size_t from) {
  for (size_t pos = from; pos < t.n;) {
    size_t behind = skip_comment(t, pos);
    if (behind == t.n && t.p[pos + 1] == '*') {
      bool closed = t.n - pos >= 4 && memcmp(t.p + t.n - 2, "*/", 2) == 0;
      return closed ? t.n : pos;
    }
    pos = behind > pos ? behind : pos + 1;
  }
  return t.n;
}

// --- tokens -------------------------------------------------------------------------------------------------------

static size_t name_end(kl_str t, size_t pos) {
  while (pos < t.n && kl_is_name_char(t.p[pos]) && !(t.p[pos] == '-' && pos + 1 < t.n && t.p[pos + 1] == '>')) pos++;
  return pos;
}

// May this stand behind a string that goes over several lines?
static bool ends_string(kl_str t, size_t pos) {
  return pos == t.n || kl_is_space(t.p[pos]) || memchr(",:})]/", t.p[pos], 6);
}

// Behind the closing quote, which is like the opening one, or 0 if there is none. A string may go over several lines,
// but what looks like the beginning of another string does not end it: that is how a forgotten quote is told.
static size_t string_end(kl_str t, size_t pos) {
  char quote = t.p[pos];
  bool lines = false;
  for (pos++; pos < t.n; pos++) {
    if (t.p[pos] == quote) return !lines || ends_string(t, pos + 1) ? pos + 1 : 0;
    if (t.p[pos] == '\\' && pos + 1 < t.n) pos++;
    lines |= t.p[pos] == '\n';
  }
  return 0;
}

static void set_bad(kl_lexer *lx, const char *why) {
  lx->kind = KL_TOK_BAD;
  lx->bad = why;
  lx->pos = lx->begin + 1;
}

static void lex_percent(kl_lexer *lx, kl_str t) {
  lx->kind = KL_TOK_PERCENT;
  lx->pos = name_end(t, lx->begin + 1);
  lx->text = (kl_str){t.p + lx->begin + 1, lx->pos - lx->begin - 1};
  if (lx->text.n == 0) set_bad(lx, "'%' without a name behind it");
}

static void lex_string(kl_lexer *lx, kl_str t) {
  lx->kind = KL_TOK_STRING;
  lx->pos = string_end(t, lx->begin);
  lx->text = (kl_str){t.p + lx->begin, lx->pos - lx->begin};
  if (lx->pos == 0) set_bad(lx, "a string without end");
}

static void lex_word(kl_lexer *lx, kl_str t, kl_tok kind) {
  lx->kind = kind;
  lx->pos = name_end(t, lx->begin + 1);
  lx->text = (kl_str){t.p + lx->begin, lx->pos - lx->begin};
}

static void lex_other(kl_lexer *lx, char c, char next) {
  lx->pos = lx->begin + 1;
  if ((c == '-' && next == '>') || (c == '<' && next == '=')) {
    lx->kind = c == '-' ? KL_TOK_ARROW : KL_TOK_AT_MOST;
    lx->pos++;
  } else if (c > ' ' && c < 0x7f) {
    lx->kind = KL_TOK_PUNCT;
    lx->punct = c;
  } else {
    set_bad(lx, (unsigned char)c < 0x80 ? "a control character" : "a byte outside of ASCII");
  }
}

void kl_lex_seek(kl_lexer *lx, size_t pos) {
  kl_str t = lx->src->text;
  lx->begin = kl_lex_skip(lx, pos);
  lx->punct = 0;
  lx->text = (kl_str){0};
  if (lx->begin >= t.n) {
    lx->begin = open_comment(t, pos);
    lx->pos = t.n;
    lx->kind = lx->begin < t.n ? KL_TOK_BAD : KL_TOK_END;
    lx->bad = "a comment without end";
    return;
  }
  char c = t.p[lx->begin], next = lx->begin + 1 < t.n ? t.p[lx->begin + 1] : 0;
  if (kl_is_name_start(c))
    lex_word(lx, t, KL_TOK_NAME);
  else if (kl_is_digit(c) || (c == '-' && kl_is_digit(next)))
    lex_word(lx, t, KL_TOK_NUMBER);
  else if (c == '%')
    lex_percent(lx, t);
  else if (c == '"' || c == '\'')
    lex_string(lx, t);
  else
    lex_other(lx, c, next);
}

size_t kl_lex_closing(const kl_lexer *lx, size_t pos) {
  kl_str t = lx->src->text;
  size_t depth = 0;
  while ((pos = kl_lex_skip(lx, pos)) < t.n) {
    char c = t.p[pos];
    size_t behind = c == '"' || c == '\'' ? string_end(t, pos) : pos + 1;
    depth += c == '{';
    if (c == '}' && --depth == 0) return pos;
    if (behind == 0) break;
    pos = behind;
  }
  return t.n;
}

void kl_lex_next(kl_lexer *lx) {
  lx->last_end = lx->pos;
  kl_lex_seek(lx, lx->pos);
}

void kl_lex_init(kl_lexer *lx, kl_ctx *cx, const kl_source *src) {
  *lx = (kl_lexer){.cx = cx, .src = src};
  kl_lex_seek(lx, 0);
}

// --- what must come -----------------------------------------------------------------------------------------------

static const char *found_text(const kl_lexer *lx, char buf[64]) {
  if (lx->kind == KL_TOK_END) return "the end of the text";
  if (lx->kind == KL_TOK_BAD) return lx->bad;
  size_t n = lx->pos - lx->begin;
  snprintf(buf, 64, n > 40 ? "'%.*s...'" : "'%.*s'", (int)(n > 40 ? 40 : n), lx->src->text.p + lx->begin);
  return buf;
}

bool kl_lex_expected(kl_lexer *lx, const char *fmt, ...) {
  char found[64], what[300];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  kl_invalid(lx->cx, kl_lex_span(lx), "expected %s, found %s", what, found_text(lx, found));
  return false;
}

bool kl_lex_eat(kl_lexer *lx, char punct) {
  if (lx->punct != punct) return false;
  kl_lex_next(lx);
  return true;
}

bool kl_lex_need(kl_lexer *lx, char punct, const char *context) {
  return kl_lex_eat(lx, punct) || kl_lex_expected(lx, "'%c' %s", punct, context);
}

bool kl_lex_is_name(const kl_lexer *lx, const char *name) {
  return lx->kind == KL_TOK_NAME && kl_str_is(lx->text, name);
}

bool kl_lex_int(kl_lexer *lx, const char *what, int64_t *out) {
  if (lx->kind != KL_TOK_NUMBER) return kl_lex_expected(lx, "%s", what);
  if (!kl_i64_from_text(lx->text, out)) return kl_lex_expected(lx, "%s, an integer of at most 64 bits", what);
  kl_lex_next(lx);
  return true;
}

// --- text kept as it is -------------------------------------------------------------------------------------------

typedef struct raw_scan {
  kl_lexer *lx;
  kl_sb out;
  kl_raw_end until;
  bool gap; // white space, a comment or a comma is due to become a space
  uint32_t depth;
  char closers[KL_MAX_BRACKETS];
  size_t opened[KL_MAX_BRACKETS];
} raw_scan;

static bool raw_fail(raw_scan *r, size_t at, const char *what) {
  kl_invalid(r->lx->cx, (kl_span){r->lx->src, at, at + 1}, "%s", what);
  return false;
}

static void raw_put(raw_scan *r, kl_str piece) {
  char last = r->out.n ? r->out.p[r->out.n - 1] : '(';
  if (r->gap && last != '(' && last != '[' && last != '{') kl_sb_putc(&r->out, ' ');
  r->gap = false;
  kl_sb_put(&r->out, piece);
}

static const char *const too_deep = "expected brackets at most 200 deep, found one more";

static bool raw_open(raw_scan *r, kl_str t, size_t pos) {
  if (r->depth == KL_MAX_BRACKETS) return raw_fail(r, pos, too_deep);
  r->closers[r->depth] = t.p[pos] == '(' ? ')' : t.p[pos] == '[' ? ']' : '}';
  r->opened[r->depth++] = pos;
  raw_put(r, (kl_str){t.p + pos, 1});
  return true;
}

static bool raw_close(raw_scan *r, kl_str t, size_t pos) {
  char want = r->closers[r->depth - 1];
  if (t.p[pos] != want) {
    kl_invalid(r->lx->cx, (kl_span){r->lx->src, pos, pos + 1}, "expected '%c', found '%c'", want, t.p[pos]);
    return false;
  }
  r->depth--;
  r->gap = false;
  kl_sb_putc(&r->out, want);
  return true;
}

// Do the braces that open at `pos` hold JSON? Its bytes are data: they are kept as they are.
static bool is_json(const raw_scan *r, kl_str t, size_t pos) {
  if (r->until == KL_RAW_JSON && r->depth == 0) return true;
  if (r->until == KL_RAW_FIELDS && r->depth == 1 && r->out.p[r->out.n - 1] == '=') return true;
  for (pos++; pos < t.n && kl_is_space(t.p[pos]);) pos++;
  return pos < t.n && t.p[pos] == '"';
}

// Takes JSON in braces. Only braces and strings count.
static bool raw_json(raw_scan *r, kl_str t, size_t *pos) {
  size_t begin = *pos, opened[KL_MAX_BRACKETS];
  uint32_t depth = 0;
  while (*pos < t.n) {
    char c = t.p[*pos];
    if (c == '{' && depth == KL_MAX_BRACKETS) return raw_fail(r, *pos, too_deep);
    if (c == '{') opened[depth++] = *pos;
    if (c == '}' && --depth == 0) {
      raw_put(r, (kl_str){t.p + begin, ++*pos - begin});
      return true;
    }
    size_t behind = c == '"' ? string_end(t, *pos) : *pos + 1;
    if (behind == 0) return raw_fail(r, *pos, "expected a closing '\"', found a string without end");
    *pos = behind;
  }
  return raw_fail(r, opened[depth - 1], "expected '}' that closes this bracket, found the end of the text");
}

// Behind the letters, digits and signs from `pos` on that mean nothing to the scan.
static size_t plain_end(kl_str t, size_t pos) {
  for (pos++; pos < t.n && (kl_is_name_char(t.p[pos]) || t.p[pos] == '='); pos++) continue;
  return pos;
}

static bool raw_is_end(const raw_scan *r, kl_str t, size_t pos) {
  if (r->depth) return false;
  char c = t.p[pos];
  if (r->until == KL_RAW_GROUP) return c == ')';
  if (r->out.n && r->out.p[0] == '{') return true; // braces that are closed again
  return c == ',' || c == ')' || c == '}' || c == ']' || kl_is_space(c) || skip_comment(t, pos) != pos;
}

// Appends one piece and steps behind it.
static bool raw_step(raw_scan *r, kl_str t, size_t *pos) {
  size_t at = *pos, behind = kl_lex_skip(r->lx, at);
  char c = t.p[at];
  *pos = at + 1;
  if (behind > at) {
    r->gap = true;
    *pos = behind;
  } else if (c == '"' || c == '\'') {
    *pos = string_end(t, at);
    if (*pos == 0 && c == '"') return raw_fail(r, at, "expected a closing '\"', found a string without end");
    if (*pos == 0) return raw_fail(r, at, "expected a closing \"'\", found a string without end");
    raw_put(r, (kl_str){t.p + at, *pos - at});
  } else if (c == '{' && is_json(r, t, at)) {
    *pos = at;
    return raw_json(r, t, pos);
  } else if (c == '(' || c == '[' || c == '{') {
    return raw_open(r, t, at);
  } else if (c == ')' || c == ']' || c == '}') {
    return r->depth ? raw_close(r, t, at) : raw_fail(r, at, "expected ')', found another closing bracket");
  } else if (c == ',') {
    kl_sb_putc(&r->out, ',');
    r->gap = true;
  } else if (c < ' ' || c == 0x7f) {
    return raw_fail(r, at,
                    (unsigned char)c < 0x80 ? "expected text, found a control character"
                                            : "expected text, found a byte outside of ASCII");
  } else {
    *pos = plain_end(t, at);
    raw_put(r, (kl_str){t.p + at, *pos - at});
  }
  return true;
}

static bool raw_run(raw_scan *r, size_t *pos) {
  kl_str t = r->lx->src->text;
  while (*pos < t.n && !raw_is_end(r, t, *pos))
    if (!raw_step(r, t, pos)) return false;
  if (*pos < t.n || (r->depth == 0 && r->until != KL_RAW_GROUP)) return true;
  if (r->depth == 0) return raw_fail(r, *pos, "expected ')', found the end of the text");
  size_t opened = r->opened[r->depth - 1];
  kl_invalid(r->lx->cx, (kl_span){r->lx->src, opened, opened + 1},
             "expected '%c' that closes this bracket, found the end of the text", r->closers[r->depth - 1]);
  return false;
}

bool kl_lex_raw(kl_lexer *lx, kl_arena *arena, kl_raw_end until, kl_str *out) {
  raw_scan r = {.lx = lx, .until = until};
  kl_sb_init(&r.out, lx->cx);
  size_t pos = lx->begin;
  bool ok = raw_run(&r, &pos);
  if (ok) {
    *out = kl_str_dup(arena, (kl_str){r.out.p, r.out.n});
    lx->last_end = pos;
    kl_lex_seek(lx, pos);
  }
  kl_sb_free(&r.out);
  return ok;
}

// The lexer of PTX text.
#include "sim/ptx/lex.h"

#include <stdio.h>

enum { SPACE = 1, DIGIT = 2, LETTER = 4, SIGN = 8, HEX = 16 };
static const uint8_t class[256] = {
    [' '] = SPACE,
    ['\t'] = SPACE,
    ['\n'] = SPACE,
    ['\r'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
    ['0' ... '9'] = DIGIT | HEX,
    ['a' ... 'f'] = LETTER | HEX,
    ['A' ... 'F'] = LETTER | HEX,
    ['g' ... 'z'] = LETTER,
    ['G' ... 'Z'] = LETTER,
    ['_'] = LETTER,
    ['$'] = SIGN,
};

static inline bool is(char c, int classes) {
  return class[(unsigned char)c] & classes;
}

static inline char at(const kl_ptx_lexer *lx, size_t pos) {
  return pos < lx->src->text.n ? lx->src->text.p[pos] : 0;
}

// --- white space and comments -------------------------------------------------------------------------------------

static uint32_t line_end(const kl_ptx_lexer *lx, uint32_t pos) {
  kl_str t = lx->src->text;
  const char *stop = pos < t.n ? memchr(t.p + pos, '\n', t.n - pos) : NULL;
  return (uint32_t)(stop ? (size_t)(stop - t.p) : t.n);
}

// Steps over a comment in slashes and stars; false if it has no end.
static bool skip_comment(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  const char *stop = memmem(t.p + lx->pos + 2, t.n - lx->pos - 2, "*/", 2);
  if (!stop) return false;
  for (const char *p = t.p + lx->pos; (p = memchr(p, '\n', (size_t)(stop - p))); p++) lx->line++;
  lx->pos = (uint32_t)(stop - t.p) + 2;
  return true;
}

// False at a comment without end.
static bool skip_space(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  for (;;) {
    for (; lx->pos < t.n && is(t.p[lx->pos], SPACE); lx->pos++) lx->line += t.p[lx->pos] == '\n';
    if (at(lx, lx->pos) != '/') return true;
    char next = at(lx, lx->pos + 1);
    if (next == '/')
      lx->pos = line_end(lx, lx->pos);
    else if (next != '*')
      return true;
    else if (!skip_comment(lx))
      return false;
  }
}

// --- tokens -------------------------------------------------------------------------------------------------------

static void set_bad(kl_ptx_lexer *lx, const char *why) {
  lx->kind = KL_PTX_TOK_BAD;
  lx->bad = why;
}

static void take_word(kl_ptx_lexer *lx, kl_ptx_tok kind, uint32_t begin, uint32_t end) {
  lx->kind = kind;
  lx->word = (kl_str){lx->src->text.p + begin, end - begin};
  lx->pos = end;
}

static void lex_name(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  uint32_t pos = lx->begin + 1;
  while (pos < t.n && is(t.p[pos], LETTER | DIGIT | SIGN)) pos++;
  take_word(lx, KL_PTX_TOK_NAME, lx->begin, pos);
}

static void lex_dot(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  uint32_t pos = lx->begin + 1;
  while (pos < t.n) {
    if (is(t.p[pos], LETTER | DIGIT))
      pos++;
    else if (t.p[pos] == ':' && at(lx, pos + 1) == ':' && is(at(lx, pos + 2), LETTER | DIGIT))
      pos += 2;
    else
      break;
  }
  take_word(lx, KL_PTX_TOK_DOT, lx->begin + 1, pos);
}

static void lex_string(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  uint32_t pos = lx->begin + 1;
  for (; pos < t.n && t.p[pos] != '"' && t.p[pos] != '\n'; pos++)
    if (t.p[pos] == '\\' && at(lx, pos + 1) != '\n' && pos + 1 < t.n) pos++;
  if (at(lx, pos) != '"') {
    lx->pos = pos;
    set_bad(lx, "a string without end");
    return;
  }
  take_word(lx, KL_PTX_TOK_STRING, lx->begin + 1, pos);
  lx->pos = pos + 1;
}

// --- numbers ------------------------------------------------------------------------------------------------------

static int digit_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

// Digits of that base from pos on; false if there are none, or 64 bits do not hold them.
static bool lex_digits(kl_ptx_lexer *lx, uint32_t base) {
  uint32_t begin = lx->pos;
  bool fits = true;
  uint64_t v = 0;
  for (; is(at(lx, lx->pos), HEX); lx->pos++) {
    uint32_t d = (uint32_t)digit_value(at(lx, lx->pos));
    if (d >= base) break;
    fits &= !__builtin_mul_overflow(v, (uint64_t)base, &v) && !__builtin_add_overflow(v, (uint64_t)d, &v);
  }
  lx->bits = v;
  if (lx->pos == begin) return set_bad(lx, "a number without digits"), false;
  if (!fits) return set_bad(lx, "an integer of more than 64 bits"), false;
  return true;
}

static void lex_integer(kl_ptx_lexer *lx, uint32_t base, uint32_t prefix) {
  lx->kind = KL_PTX_TOK_INT;
  lx->pos = lx->begin + prefix;
  lex_digits(lx, base);
  lx->is_unsigned = at(lx, lx->pos) == 'U' || (int64_t)lx->bits < 0;
  if (at(lx, lx->pos) == 'U') lx->pos++;
}

// 0f and 0d: exactly so many digits.
static void lex_float_bits(kl_ptx_lexer *lx, uint32_t digits) {
  lx->kind = digits == 8 ? KL_PTX_TOK_FLOAT32 : KL_PTX_TOK_FLOAT64;
  lx->pos = lx->begin + 2;
  lex_digits(lx, 16);
  if (lx->pos - lx->begin - 2 != digits)
    set_bad(lx, digits == 8 ? "0f without exactly 8 hexadecimal digits" : "0d without exactly 16 hexadecimal digits");
}

static uint32_t decimal_end(const kl_ptx_lexer *lx, uint32_t pos) {
  while (is(at(lx, pos), DIGIT)) pos++;
  return pos;
}

// Behind the exponent at `pos`, or `pos` if there is none.
static uint32_t exponent_end(const kl_ptx_lexer *lx, uint32_t pos) {
  if ((at(lx, pos) | 0x20) != 'e') return pos;
  uint32_t digits = pos + 1 + (at(lx, pos + 1) == '+' || at(lx, pos + 1) == '-');
  return is(at(lx, digits), DIGIT) ? decimal_end(lx, digits) : pos;
}

static void lex_decimal(kl_ptx_lexer *lx) {
  uint32_t whole = decimal_end(lx, lx->begin), end = whole;
  if (at(lx, end) == '.' && !is(at(lx, end + 1), LETTER)) end = decimal_end(lx, end + 1);
  end = exponent_end(lx, end);
  if (end == whole) {
    lex_integer(lx, at(lx, lx->begin) == '0' ? 8 : 10, 0);
    return;
  }
  double v;
  take_word(lx, KL_PTX_TOK_FLOAT64, lx->begin, end);
  if (!kl_double_from_text(lx->word, &v)) set_bad(lx, "a number that cannot be read");
  memcpy(&lx->bits, &v, sizeof v);
}

static void lex_number(kl_ptx_lexer *lx) {
  char second = at(lx, lx->begin) == '0' ? (char)(at(lx, lx->begin + 1) | 0x20) : 0;
  if (second == 'x')
    lex_integer(lx, 16, 2);
  else if (second == 'b')
    lex_integer(lx, 2, 2);
  else if (second == 'f')
    lex_float_bits(lx, 8);
  else if (second == 'd')
    lex_float_bits(lx, 16);
  else
    lex_decimal(lx);
  if (!is(at(lx, lx->pos), LETTER | DIGIT | SIGN)) return;
  while (is(at(lx, lx->pos), LETTER | DIGIT | SIGN)) lx->pos++;
  if (lx->kind != KL_PTX_TOK_BAD) set_bad(lx, "a number with letters or digits that do not belong to it");
}

// --- what a token begins with -------------------------------------------------------------------------------------

static void lex_other(kl_ptx_lexer *lx, char c, char next) {
  static const char pairs[][2] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "@@"};
  lx->kind = KL_PTX_TOK_PUNCT;
  lx->punct = (unsigned char)c;
  lx->pos = lx->begin + 1;
  for (size_t i = 0; i < KL_COUNT(pairs); i++) {
    if (c != pairs[i][0] || next != pairs[i][1]) continue;
    lx->punct = KL_PTX_TWO(c, next);
    lx->pos++;
  }
  if (c > ' ' && c < 0x7f) return;
  lx->punct = 0;
  set_bad(lx, (unsigned char)c < 0x80 ? "a control character" : "a byte outside of ASCII");
}

void kl_ptx_lex_next(kl_ptx_lexer *lx) {
  kl_str t = lx->src->text;
  lx->last_end = lx->pos;
  lx->punct = 0;
  bool closed = skip_space(lx);
  lx->begin = lx->pos;
  if (!closed) {
    set_bad(lx, "a comment without end");
    lx->pos = (uint32_t)t.n;
    return;
  }
  if (lx->pos >= t.n) {
    lx->kind = KL_PTX_TOK_END;
    return;
  }
  char c = t.p[lx->begin], next = at(lx, lx->begin + 1);
  if (is(c, LETTER) || ((c == '%' || c == '$') && is(next, LETTER | DIGIT | SIGN)))
    lex_name(lx);
  else if (c == '.' && is(next, LETTER | DIGIT))
    lex_dot(lx);
  else if (is(c, DIGIT))
    lex_number(lx);
  else if (c == '"')
    lex_string(lx);
  else
    lex_other(lx, c, next);
}

void kl_ptx_lex_as_number(kl_ptx_lexer *lx) {
  double v = 0;
  uint32_t end = exponent_end(lx, decimal_end(lx, lx->begin + 1));
  kl_str digits = {lx->src->text.p + lx->begin, end - lx->begin};
  lx->kind = KL_PTX_TOK_FLOAT64;
  lx->pos = end;
  if (is(at(lx, end), LETTER | DIGIT | SIGN) || !kl_double_from_text(digits, &v))
    set_bad(lx, "a number with letters or digits that do not belong to it");
  memcpy(&lx->bits, &v, sizeof v);
}

void kl_ptx_lex_skip_line(kl_ptx_lexer *lx) {
  lx->pos = line_end(lx, lx->begin);
  kl_ptx_lex_next(lx);
}

void kl_ptx_lex_init(kl_ptx_lexer *lx, kl_ctx *cx, const kl_source *src) {
  *lx = (kl_ptx_lexer){.cx = cx, .src = src, .line = 1};
  kl_ptx_lex_next(lx);
}

const char *kl_ptx_lex_found(const kl_ptx_lexer *lx, char buf[64]) {
  if (lx->kind == KL_PTX_TOK_END) return "the end of the text";
  if (lx->kind == KL_PTX_TOK_BAD) return lx->bad;
  uint32_t n = lx->pos - lx->begin;
  snprintf(buf, 64, n > 40 ? "'%.*s...'" : "'%.*s'", (int)(n > 40 ? 40 : n), lx->src->text.p + lx->begin);
  return buf;
}

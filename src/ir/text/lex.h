// Tokens of HLO text, and stretches of it that are kept as text.
//
// The lexer holds one current token. Comments and white space separate tokens and mean nothing else; lines matter only
// where the parser looks for a place to go on after an error.
#ifndef KL_LEX_H
#define KL_LEX_H

#include "ir/text/text.h"
#include "ir/text/scan.h"

enum { KL_MAX_BRACKETS = 200 }; // nesting depth of text kept raw

typedef enum kl_tok {
  KL_TOK_END,
  KL_TOK_NAME,    // add, bf16, get-tuple-element; `text` is the name
  KL_TOK_PERCENT, // %add.1; `text` is the name without the percent sign
  KL_TOK_NUMBER,  // a word that begins with a digit, maybe behind a minus sign
  KL_TOK_STRING,  // "..." or '...' with its quotes
  KL_TOK_ARROW,   // ->
  KL_TOK_AT_MOST, // <=
  KL_TOK_PUNCT,   // one character, in `punct`
  KL_TOK_BAD,     // what cannot be a token; `bad` says why. A comment without end reaches to the text's end
} kl_tok;

typedef struct kl_lexer {
  kl_ctx *cx;
  const kl_source *src;
  size_t pos;      // behind the current token
  size_t begin;    // of the current token
  size_t last_end; // of the token before
  kl_tok kind;
  char punct; // KL_TOK_PUNCT: the character, else 0
  kl_str text;
  const char *bad;
} kl_lexer;

// Starts at the beginning of the text; the first token is current.
void kl_lex_init(kl_lexer *lx, kl_ctx *cx, const kl_source *src);
void kl_lex_next(kl_lexer *lx);
// Makes the token at or behind `pos` current.
void kl_lex_seek(kl_lexer *lx, size_t pos);
// Where the brace is that closes the one at `pos`; the text's end if there is none.
size_t kl_lex_closing(const kl_lexer *lx, size_t pos);
// First position at or behind `pos` that is neither white space nor comment.
size_t kl_lex_skip(const kl_lexer *lx, size_t pos);

static inline kl_span kl_lex_span(const kl_lexer *lx) {
  return (kl_span){lx->src, lx->begin, lx->pos};
}
static inline kl_span kl_lex_span_from(const kl_lexer *lx, size_t begin) {
  return (kl_span){lx->src, begin, lx->last_end};
}

// Does the current token stand on another line than the one before?
static inline bool kl_lex_on_new_line(const kl_lexer *lx) {
  return memchr(lx->src->text.p + lx->last_end, '\n', lx->begin - lx->last_end) != NULL;
}

// "expected WHAT, found 'x'" at the current token. Returns false.
bool kl_lex_expected(kl_lexer *lx, const char *fmt, ...) KL_PRINTF(2, 3);
// Steps over the punctuation character if it is current.
bool kl_lex_eat(kl_lexer *lx, char punct);
// The same, or an error that says what it should come before or after, e.g. "after the operands".
bool kl_lex_need(kl_lexer *lx, char punct, const char *context);
bool kl_lex_is_name(const kl_lexer *lx, const char *name);
// Takes an integer; `what` names it in the error.
bool kl_lex_int(kl_lexer *lx, const char *what, int64_t *out);

typedef enum kl_raw_end {
  KL_RAW_VALUE,  // braces, or up to a comma, white space or closing bracket outside of brackets and strings
  KL_RAW_JSON,   // the same; braces at its beginning hold JSON
  KL_RAW_FIELDS, // the same; braces behind a field's `=` hold JSON
  KL_RAW_GROUP,  // up to the closing parenthesis that fits one opened just before
} kl_raw_end;

// Takes text from the current token's beginning on, brackets and strings balanced, and makes the token behind it
// current (for a group: the closing parenthesis). The text stored is canonical: one space after a comma, none inside
// brackets' ends or before a comma, other white space one space, no comments; JSON, which is braces that begin with a
// string or where `until` says so, byte by byte. False after reporting an error.
bool kl_lex_raw(kl_lexer *lx, kl_arena *arena, kl_raw_end until, kl_str *out);

#endif

// Tokens of PTX text. The lexer holds one current token; comments and white space separate tokens and mean nothing
// else.
#ifndef KL_PTX_LEX_H
#define KL_PTX_LEX_H

#include "base/base.h"

typedef enum kl_ptx_tok {
  KL_PTX_TOK_END,
  KL_PTX_TOK_NAME,    // add, %r1, $L__BB0_1, _; `word` is the name
  KL_PTX_TOK_DOT,     // .global, .L1::evict_last, .2d; `word` is what follows the dot
  KL_PTX_TOK_INT,     // `bits`; is_unsigned: of type u64
  KL_PTX_TOK_FLOAT32, // 0f3f800000: `bits`
  KL_PTX_TOK_FLOAT64, // 0d..., 1.5, 2e-3: `bits`
  KL_PTX_TOK_STRING,  // `word` is what stands between the quotes
  KL_PTX_TOK_PUNCT,   // one or two characters, in `punct`
  KL_PTX_TOK_BAD,     // what cannot be a token; `bad` says why
} kl_ptx_tok;

// The code of punctuation of two characters.
#define KL_PTX_TWO(a, b) ((a) << 8 | (b))

typedef struct kl_ptx_lexer {
  kl_ctx *cx;
  const kl_source *src;
  uint32_t pos;      // behind the current token
  uint32_t begin;    // of the current token
  uint32_t last_end; // of the token before
  uint32_t line;     // of the current token, from 1
  kl_ptx_tok kind;
  int punct; // KL_PTX_TOK_PUNCT: the character, or KL_PTX_TWO; else 0
  kl_str word;
  uint64_t bits;
  bool is_unsigned;
  const char *bad;
} kl_ptx_lexer;

// Starts at the beginning of the text, which is shorter than 4 GB; the first token is current.
void kl_ptx_lex_init(kl_ptx_lexer *lx, kl_ctx *cx, const kl_source *src);
void kl_ptx_lex_next(kl_ptx_lexer *lx);
// Makes what follows the current token's line current.
void kl_ptx_lex_skip_line(kl_ptx_lexer *lx);
// A dot token that begins with a digit, read again as the number that it is in an expression (.5, .5e-3).
void kl_ptx_lex_as_number(kl_ptx_lexer *lx);

static inline kl_span kl_ptx_lex_span(const kl_ptx_lexer *lx) {
  return (kl_span){lx->src, lx->begin, lx->pos};
}
// What the current token is, for "found ...".
const char *kl_ptx_lex_found(const kl_ptx_lexer *lx, char buf[64]);

#endif

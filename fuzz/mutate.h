// Mutations that keep text close to being valid: a byte-wise fuzzer hardly gets beyond the first syntax error.
#ifndef KL_FUZZ_MUTATE_H
#define KL_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct kl_token {
  size_t begin, end;
} kl_token;

// A text that is being changed, and what it was cut into.
typedef struct kl_mutation {
  uint8_t *p;
  size_t n, max;
  uint64_t random;
  kl_token *tokens;
  size_t ntokens;
} kl_mutation;

// Kinds of change that one language adds to those of all texts.
typedef struct kl_kinds {
  void (*const *p)(kl_mutation *m);
  size_t n;
} kl_kinds;

// Changes the text in place; returns its new size, at most `max`. The same seed gives the same change.
size_t kl_mutate_text(uint8_t *data, size_t size, size_t max, unsigned seed, kl_kinds more);
// The same for HLO text.
size_t kl_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

// --- for those who add kinds --------------------------------------------------------------------------------------

// A random number below n; 0 for 0.
size_t kl_below(kl_mutation *m, size_t n);
// Puts `n` bytes in the place of [begin, end), as far as there is room.
void kl_replace(kl_mutation *m, size_t begin, size_t end, const void *with, size_t n);
void kl_replace_text(kl_mutation *m, kl_token t, const char *with);
kl_token kl_any_token(kl_mutation *m);
// A token that begins like `c` says: 'd' a digit, 'a' a letter, else that character.
kl_token kl_token_like(kl_mutation *m, char c);
// The line around a position, with its end.
kl_token kl_line_at(const kl_mutation *m, size_t pos);

#endif

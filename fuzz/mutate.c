// The text is cut into tokens (words, numbers, single characters); a mutation replaces, copies, swaps or drops tokens
// or whole lines, or does what the target adds.
#include "mutate.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 14 };

static uint64_t next(kl_mutation *m) {
  m->random ^= m->random << 13;
  m->random ^= m->random >> 7;
  m->random ^= m->random << 17;
  return m->random;
}

size_t kl_below(kl_mutation *m, size_t n) {
  return n ? (size_t)(next(m) % n) : 0;
}

static bool in_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
}

static void cut(kl_mutation *m) {
  m->ntokens = 0;
  for (size_t i = 0; i < m->n && m->ntokens < MOST_TOKENS;) {
    size_t begin = i++;
    if (in_word(m->p[begin]))
      while (i < m->n && in_word(m->p[i])) i++;
    else if (m->p[begin] <= ' ')
      continue;
    m->tokens[m->ntokens++] = (kl_token){begin, i};
  }
}

void kl_replace(kl_mutation *m, size_t begin, size_t end, const void *with, size_t n) {
  uint8_t copy[4096];
  if (n > sizeof copy || m->n - (end - begin) + n > m->max) return;
  memcpy(copy, with, n);
  memmove(m->p + begin + n, m->p + end, m->n - end);
  memcpy(m->p + begin, copy, n);
  m->n = m->n - (end - begin) + n;
}

void kl_replace_text(kl_mutation *m, kl_token t, const char *with) {
  kl_replace(m, t.begin, t.end, with, strlen(with));
}

kl_token kl_any_token(kl_mutation *m) {
  return m->ntokens ? m->tokens[kl_below(m, m->ntokens)] : (kl_token){0, 0};
}

kl_token kl_token_like(kl_mutation *m, char c) {
  for (int tries = 0; tries < 64 && m->ntokens; tries++) {
    kl_token t = kl_any_token(m);
    uint8_t first = m->p[t.begin];
    bool digit = first >= '0' && first <= '9', letter = in_word(first) && !digit && first != '-' && first != '.';
    if (c == 'd' ? digit : c == 'a' ? letter : first == (uint8_t)c) return t;
  }
  return kl_any_token(m);
}

kl_token kl_line_at(const kl_mutation *m, size_t pos) {
  kl_token t = {pos, pos};
  while (t.begin > 0 && m->p[t.begin - 1] != '\n') t.begin--;
  while (t.end < m->n && m->p[t.end] != '\n') t.end++;
  t.end += t.end < m->n;
  return t;
}

static void change_number(kl_mutation *m) {
  static const char *const numbers[] = {"0",   "1",   "2",   "3",          "4",          "5",
                                        "7",   "8",   "-1",  "16",         "31",         "32",
                                        "127", "128", "255", "2147483647", "4294967296", "9223372036854775807"};
  kl_replace_text(m, kl_token_like(m, 'd'), numbers[kl_below(m, KL_COUNT(numbers))]);
}

static void copy_token(kl_mutation *m) {
  kl_token from = kl_token_like(m, 'a'), to = kl_token_like(m, 'a');
  kl_replace(m, to.begin, to.end, m->p + from.begin, from.end - from.begin);
}

static void drop_tokens(kl_mutation *m) {
  size_t first = kl_below(m, m->ntokens), last = first + kl_below(m, 4);
  if (!m->ntokens) return;
  if (last >= m->ntokens) last = m->ntokens - 1;
  kl_replace(m, m->tokens[first].begin, m->tokens[last].end, "", 0);
}

static void copy_line(kl_mutation *m) {
  kl_token from = kl_line_at(m, kl_any_token(m).begin), to = kl_line_at(m, kl_any_token(m).begin);
  kl_replace(m, to.begin, to.begin, m->p + from.begin, from.end - from.begin);
}

static void drop_line(kl_mutation *m) {
  kl_token t = kl_line_at(m, kl_any_token(m).begin);
  kl_replace(m, t.begin, t.end, "", 0);
}

static void double_token(kl_mutation *m) {
  kl_token t = kl_any_token(m);
  kl_replace(m, t.begin, t.begin, m->p + t.begin, t.end - t.begin);
}

size_t kl_mutate_text(uint8_t *data, size_t size, size_t max, unsigned seed, kl_kinds more) {
  static void (*const kinds[])(kl_mutation *) = {change_number, copy_token, copy_token,  drop_tokens,
                                                 copy_line,     drop_line,  double_token};
  kl_mutation m = {data, size, max, seed * 0x9e3779b97f4a7c15u + 1, malloc(MOST_TOKENS * sizeof(kl_token)), 0};
  if (!m.tokens) return size;
  for (size_t k = 1 + kl_below(&m, 3); k-- > 0;) {
    size_t kind = kl_below(&m, KL_COUNT(kinds) + more.n);
    cut(&m);
    (kind < KL_COUNT(kinds) ? kinds[kind] : more.p[kind - KL_COUNT(kinds)])(&m);
  }
  free(m.tokens);
  return m.n;
}

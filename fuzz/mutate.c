// The text is cut into tokens (words, numbers, single characters); a mutation replaces, copies, swaps or drops tokens
// or whole lines, and puts in opcodes, element types, numbers at borders, and attributes of the op table.
#include "mutate.h"
#include "ir/attrs.h"

#include <stdlib.h>
#include <string.h>

typedef struct token {
  size_t begin, end;
} token;

enum { MOST_TOKENS = 1 << 14 };

typedef struct mutation {
  uint8_t *p;
  size_t n, max;
  uint64_t random;
  token *tokens;
  size_t ntokens;
} mutation;

static uint64_t next(mutation *m) {
  m->random ^= m->random << 13;
  m->random ^= m->random >> 7;
  m->random ^= m->random << 17;
  return m->random;
}

static size_t below(mutation *m, size_t n) {
  return n ? (size_t)(next(m) % n) : 0;
}

static bool in_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
}

static void cut(mutation *m) {
  m->ntokens = 0;
  for (size_t i = 0; i < m->n && m->ntokens < MOST_TOKENS;) {
    size_t begin = i++;
    if (in_word(m->p[begin]))
      while (i < m->n && in_word(m->p[i])) i++;
    else if (m->p[begin] <= ' ')
      continue;
    m->tokens[m->ntokens++] = (token){begin, i};
  }
}

// Puts `n` bytes in the place of [begin, end), as far as there is room.
static void replace(mutation *m, size_t begin, size_t end, const void *with, size_t n) {
  uint8_t copy[4096];
  if (n > sizeof copy || m->n - (end - begin) + n > m->max) return;
  memcpy(copy, with, n);
  memmove(m->p + begin + n, m->p + end, m->n - end);
  memcpy(m->p + begin, copy, n);
  m->n = m->n - (end - begin) + n;
}

static void replace_text(mutation *m, token t, const char *with) {
  replace(m, t.begin, t.end, with, strlen(with));
}

static token any_token(mutation *m) {
  return m->ntokens ? m->tokens[below(m, m->ntokens)] : (token){0, 0};
}

// A token that begins like `c` says: 'd' a digit, 'a' a letter, else that character.
static token token_like(mutation *m, char c) {
  for (int tries = 0; tries < 64 && m->ntokens; tries++) {
    token t = any_token(m);
    uint8_t first = m->p[t.begin];
    bool digit = first >= '0' && first <= '9', letter = in_word(first) && !digit && first != '-' && first != '.';
    if (c == 'd' ? digit : c == 'a' ? letter : first == (uint8_t)c) return t;
  }
  return any_token(m);
}

static token line_at(const mutation *m, size_t pos) {
  token t = {pos, pos};
  while (t.begin > 0 && m->p[t.begin - 1] != '\n') t.begin--;
  while (t.end < m->n && m->p[t.end] != '\n') t.end++;
  t.end += t.end < m->n;
  return t;
}

static void change_number(mutation *m) {
  static const char *const numbers[] = {"0",   "1",   "2",   "3",          "4",          "5",
                                        "7",   "8",   "-1",  "16",         "31",         "32",
                                        "127", "128", "255", "2147483647", "4294967296", "9223372036854775807"};
  replace_text(m, token_like(m, 'd'), numbers[below(m, KL_COUNT(numbers))]);
}

static void change_type(mutation *m) {
  kl_dtype t = (kl_dtype)(1 + below(m, KILN_DTYPE_COUNT - 1));
  for (int tries = 0; tries < 64; tries++) {
    token at = any_token(m);
    if (at.end >= m->n || m->p[at.end] != '[') continue;
    replace_text(m, at, kiln_dtype_name(t));
    return;
  }
}

static void change_opcode(mutation *m) {
  kl_op op = (kl_op)(1 + below(m, KL_OP_COUNT - 1));
  for (int tries = 0; tries < 64; tries++) {
    token at = token_like(m, 'a');
    if (at.end >= m->n || m->p[at.end] != '(') continue;
    replace_text(m, at, kl_op_name(op));
    return;
  }
}

static void add_attribute(mutation *m) {
  static const char *const values[] = {
      "{}", "{0}", "{1,0}", "{0,1,2}", "true", "0", "1", "EQ", "{size=2x2 pad=1_0x0_1}", "b01f_01io->b01f", "%a"};
  kl_attr_list list = kl_op_attrs((kl_op)below(m, KL_OP_COUNT));
  char text[200] = ", ";
  if (!list.n) return;
  strncat(text, list.p[below(m, list.n)].key, 60);
  strcat(text, "=");
  strcat(text, values[below(m, KL_COUNT(values))]);
  token at = line_at(m, any_token(m).begin);
  size_t end = at.end > at.begin && m->p[at.end - 1] == '\n' ? at.end - 1 : at.end;
  replace(m, end, end, text, strlen(text));
}

static void copy_token(mutation *m) {
  token from = token_like(m, 'a'), to = token_like(m, 'a');
  replace(m, to.begin, to.end, m->p + from.begin, from.end - from.begin);
}

static void drop_tokens(mutation *m) {
  size_t first = below(m, m->ntokens), last = first + below(m, 4);
  if (!m->ntokens) return;
  if (last >= m->ntokens) last = m->ntokens - 1;
  replace(m, m->tokens[first].begin, m->tokens[last].end, "", 0);
}

static void copy_line(mutation *m) {
  token from = line_at(m, any_token(m).begin), to = line_at(m, any_token(m).begin);
  replace(m, to.begin, to.begin, m->p + from.begin, from.end - from.begin);
}

static void drop_line(mutation *m) {
  token t = line_at(m, any_token(m).begin);
  replace(m, t.begin, t.end, "", 0);
}

static void double_token(mutation *m) {
  token t = any_token(m);
  replace(m, t.begin, t.begin, m->p + t.begin, t.end - t.begin);
}

size_t kl_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static void (*const kinds[])(mutation *) = {change_number, change_number, change_type, change_opcode,
                                              add_attribute, copy_token,    copy_token,  drop_tokens,
                                              copy_line,     drop_line,     double_token};
  mutation m = {data, size, max, seed * 0x9e3779b97f4a7c15u + 1, malloc(MOST_TOKENS * sizeof(token)), 0};
  if (!m.tokens) return size;
  for (size_t k = 1 + below(&m, 3); k-- > 0;) {
    cut(&m);
    kinds[below(&m, KL_COUNT(kinds))](&m);
  }
  free(m.tokens);
  return m.n;
}

// Where a reader of a short text is: what the readers of maps, encodings and tables share, whatever their tokens are.
#ifndef KL_SCAN_H
#define KL_SCAN_H

#include "base/base.h"

typedef struct kl_scan {
  const kl_source *src;
  size_t pos, begin, last_end; // behind the token, of the token, behind the one before
} kl_scan;

static inline bool kl_is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}
static inline bool kl_scan_ended(const kl_scan *s) {
  return s->pos >= s->src->text.n;
}
// NUL behind the end.
static inline char kl_scan_at(const kl_scan *s, size_t i) {
  return i < s->src->text.n ? s->src->text.p[i] : '\0';
}
static inline void kl_scan_skip_space(kl_scan *s) {
  while (!kl_scan_ended(s) && kl_is_space(kl_scan_at(s, s->pos))) s->pos++;
}
// One character of UTF-8.
static inline void kl_scan_character(kl_scan *s) {
  do s->pos++;
  while (!kl_scan_ended(s) && ((unsigned char)kl_scan_at(s, s->pos) & 0xc0) == 0x80);
}
static inline bool kl_scan_eat(kl_scan *s, const char *what) {
  size_t n = strlen(what);
  if (s->src->text.n - s->pos < n || memcmp(s->src->text.p + s->pos, what, n) != 0) return false;
  s->pos += n;
  return true;
}
static inline kl_str kl_scan_text(const kl_scan *s) {
  return (kl_str){s->src->text.p + s->begin, s->pos - s->begin};
}
static inline kl_span kl_scan_here(const kl_scan *s) {
  return (kl_span){s->src, s->begin, s->pos};
}
// From there to the end of the token before.
static inline kl_span kl_scan_since(const kl_scan *s, size_t begin) {
  return (kl_span){s->src, begin, s->last_end > begin ? s->last_end : begin};
}

#endif

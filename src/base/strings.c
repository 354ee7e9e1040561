// Strings: copies in arenas, the text builder, interning, hashing.
#include "base/base.h"

#include <stdio.h>

kl_str kl_str_dup(kl_arena *a, kl_str s) {
  char *p = kl_arena_alloc_n(a, s.n + 1, 1);
  if (s.n) memcpy(p, s.p, s.n);
  return (kl_str){p, s.n};
}

char *kl_strf(kl_arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = kl_arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
  if (n > 0) vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

// --- the text builder ---------------------------------------------------------------------------------------------

void kl_sb_init(kl_sb *b, kl_ctx *cx) {
  *b = (kl_sb){.cx = cx};
}

void kl_sb_free(kl_sb *b) {
  kl_free(b->cx, b->p, b->cap);
  *b = (kl_sb){.cx = b->cx};
}

// Makes room for `more` bytes and the NUL behind them. Sums cannot wrap: no object exceeds PTRDIFF_MAX.
static char *sb_room(kl_sb *b, size_t more) {
  size_t need = b->n + more + 1;
  if (need > b->cap) b->p = kl_vec_grow(b->cx, b->p, &b->cap, need < 64 ? 64 : need, 1);
  return b->p + b->n;
}

void kl_sb_put(kl_sb *b, kl_str s) {
  char *p = sb_room(b, s.n);
  if (s.n) memcpy(p, s.p, s.n);
  p[s.n] = 0;
  b->n += s.n;
}

void kl_sb_puts(kl_sb *b, const char *z) {
  kl_sb_put(b, kl_str_of(z));
}

void kl_sb_putc(kl_sb *b, char c) {
  char *p = sb_room(b, 1);
  p[0] = c;
  p[1] = 0;
  b->n++;
}

void kl_sb_u64(kl_sb *b, uint64_t v) {
  char t[20];
  size_t i = sizeof t;
  do t[--i] = (char)('0' + v % 10);
  while (v /= 10);
  kl_sb_put(b, (kl_str){t + i, sizeof t - i});
}

void kl_sb_i64(kl_sb *b, int64_t v) {
  if (v < 0) kl_sb_putc(b, '-');
  kl_sb_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void kl_sbf(kl_sb *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  size_t room = b->cap ? b->cap - b->n : 0;
  int n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
  va_end(ap);
  if (n > 0 && (size_t)n >= room) vsnprintf(sb_room(b, (size_t)n), (size_t)n + 1, fmt, again);
  va_end(again);
  if (n > 0) b->n += (size_t)n;
}

char *kl_sb_take(kl_sb *b, size_t *n) {
  char *p = kl_resize(b->cx, b->p, b->cap, b->n + 1);
  p[b->n] = 0;
  if (n) *n = b->n;
  *b = (kl_sb){.cx = b->cx};
  return p;
}

// --- hashing and interning ----------------------------------------------------------------------------------------

// Little-endian whatever the machine, so that the hash is the same everywhere.
static uint64_t load_le(const unsigned char *p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

// The same of 8 bytes, in one load.
static uint64_t load_word(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(v) : v;
}

static uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

// Folds 16 bytes a step through a 64x64 -> 128 bit product; the constants are odd with balanced bits (digits of the
// golden ratio and of square roots of small primes). A zero factor would erase the state, hence the xor before it.
static const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xbb67ae8584caa73bu, k2 = 0x3c6ef372fe94f82bu;

static uint64_t begin(size_t n, uint64_t seed) {
  return mix(seed ^ k0, (uint64_t)n ^ k1);
}

static uint64_t step(uint64_t h, const unsigned char *p) {
  return mix(load_word(p) ^ h ^ k1, load_word(p + 8) ^ k2);
}

// With the last bytes, 16 or fewer.
static uint64_t finish(uint64_t h, const unsigned char *p, size_t n) {
  uint64_t lo = n < 8 ? load_le(p, n) : load_word(p), hi = n > 8 ? load_le(p + 8, n - 8) : 0;
  h = mix(lo ^ h ^ k1, hi ^ k2);
  return mix(h ^ k0, k2);
}

uint64_t kl_hash(const void *data, size_t n, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = begin(n, seed);
  for (; n > 16; p += 16, n -= 16) h = step(h, p);
  return finish(h, p, n);
}

// Each step waits for the one before it: the two go side by side.
void kl_hash_twice(const void *data, size_t n, const uint64_t seeds[2], uint64_t out[2]) {
  const unsigned char *p = data;
  uint64_t h = begin(n, seeds[0]), g = begin(n, seeds[1]);
  for (; n > 16; p += 16, n -= 16) h = step(h, p), g = step(g, p);
  out[0] = finish(h, p, n), out[1] = finish(g, p, n);
}

void kl_interner_init(kl_interner *t, kl_arena *arena) {
  *t = (kl_interner){.arena = arena};
  VEC_PUSH(arena->cx, &t->strings, KL_STR(""));
}

void kl_interner_free(kl_interner *t) {
  if (!t->arena) return;
  kl_free(t->arena->cx, t->slots, t->nslots * sizeof *t->slots);
  VEC_FREE(t->arena->cx, &t->strings);
  *t = (kl_interner){0};
}

// The slot that holds `s`, or the empty slot where it belongs. The table is never full.
static uint32_t *find_slot(const kl_interner *t, kl_str s) {
  size_t mask = t->nslots - 1;
  for (size_t i = kl_hash(s.p, s.n, 0) & mask;; i = (i + 1) & mask)
    if (!t->slots[i] || kl_str_eq(t->strings.p[t->slots[i] - 1], s)) return &t->slots[i];
}

static void grow_table(kl_interner *t) {
  uint32_t *old = t->slots;
  size_t n = t->nslots;
  t->nslots = n ? n * 2 : 64;
  t->slots = kl_alloc(t->arena->cx, t->nslots * sizeof *t->slots);
  for (size_t i = 0; i < n; i++)
    if (old[i]) *find_slot(t, t->strings.p[old[i] - 1]) = old[i];
  kl_free(t->arena->cx, old, n * sizeof *old);
}

bool kl_intern_known(const kl_interner *t, kl_str s, uint32_t *out) {
  uint32_t slot = s.n ? (t->nslots ? *find_slot(t, s) : 0) : 1;
  if (slot) *out = slot - 1;
  return slot != 0;
}

uint32_t kl_intern(kl_interner *t, kl_str s) {
  if (!s.n) return 0;
  if (t->strings.n * 2 >= t->nslots) grow_table(t);
  uint32_t *slot = find_slot(t, s);
  if (!*slot) {
    VEC_PUSH(t->arena->cx, &t->strings, kl_str_dup(t->arena, s));
    *slot = (uint32_t)t->strings.n;
  }
  return *slot - 1;
}

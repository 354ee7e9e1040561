// The deflate format: blocks that are stored, or coded by prefix codes of lengths that are fixed or come first. Codes
// are canonical: of one length they count up in the order of symbols, so that a code is told by how many there are of
// each length.
#include "ir/files/inflate.h"

#include <string.h>

enum { LONGEST = 15, LITERALS = 288, DISTANCES = 30, LENGTHS = 19 };

typedef struct code {
  uint16_t count[LONGEST + 1], symbols[LITERALS]; // by length; in order of their codes
} code;

typedef struct reader {
  const unsigned char *p, *end;
  unsigned char *out, *begin, *limit;
  uint64_t hold;
  unsigned n; // bits held
  const char *wrong;
} reader;

static bool fail(reader *r, const char *what) {
  if (!r->wrong) r->wrong = what;
  return false;
}

static void refill(reader *r) {
  for (; r->n <= 56 && r->p < r->end; r->n += 8) r->hold |= (uint64_t)*r->p++ << r->n;
}

static unsigned bits(reader *r, unsigned n) {
  if (r->n < n) refill(r);
  if (r->n < n) {
    fail(r, "the data is cut short");
    return 0;
  }
  unsigned v = (unsigned)(r->hold & ((1ull << n) - 1));
  r->hold >>= n;
  r->n -= n;
  return v;
}

// Codes may be missing where there is one symbol or none, and in no other case.
static bool make_code(reader *r, code *c, const uint8_t *lengths, unsigned n) {
  uint16_t at[LONGEST + 2] = {0};
  int left = 1;
  memset(c->count, 0, sizeof c->count);
  for (unsigned i = 0; i < n; i++) c->count[lengths[i]]++;
  for (unsigned l = 1; l <= LONGEST; l++) {
    left = left * 2 - c->count[l];
    if (left < 0) return fail(r, "more codes than fit their lengths");
  }
  if (left > 0 && n - c->count[0] > 1) return fail(r, "fewer codes than their lengths demand");
  for (unsigned l = 1; l < LONGEST; l++) at[l + 1] = (uint16_t)(at[l] + c->count[l]);
  for (unsigned i = 0; i < n; i++)
    if (lengths[i]) c->symbols[at[lengths[i]]++] = (uint16_t)i;
  return true;
}

static int symbol(reader *r, const code *c) {
  unsigned value = 0, first = 0, index = 0;
  if (r->n < LONGEST) refill(r);
  for (unsigned l = 1; l <= LONGEST && l <= r->n; l++) {
    value |= (unsigned)(r->hold >> (l - 1)) & 1;
    if (value < first + c->count[l]) {
      r->hold >>= l;
      r->n -= l;
      return c->symbols[index + value - first];
    }
    index += c->count[l];
    first = (first + c->count[l]) * 2;
    value *= 2;
  }
  fail(r, r->n < LONGEST ? "the data is cut short" : "a code that no symbol has");
  return -1;
}

static bool copy(reader *r, size_t distance, size_t length) {
  if (distance > (size_t)(r->out - r->begin)) return fail(r, "a repetition of what is before the beginning");
  if (length > (size_t)(r->limit - r->out)) return fail(r, "more data than was announced");
  for (; length; length--, r->out++) *r->out = r->out[-(ptrdiff_t)distance];
  return true;
}

static bool coded(reader *r, const code *literals, const code *distances) {
  static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  for (;;) {
    int s = symbol(r, literals);
    if (s < 0) return false;
    if (s == 256) return true;
    if (s < 256) {
      if (r->out == r->limit) return fail(r, "more data than was announced");
      *r->out++ = (unsigned char)s;
      continue;
    }
    if (s - 257 >= (int)sizeof more) return fail(r, "a length that there is not");
    size_t length = base[s - 257] + bits(r, more[s - 257]);
    int d = symbol(r, distances);
    if (d < 0) return false;
    if (d >= DISTANCES) return fail(r, "a distance that there is not");
    unsigned extra = d < 4 ? 0 : (unsigned)d / 2 - 1;
    size_t distance = d < 4 ? (size_t)d + 1 : ((2u + ((unsigned)d & 1)) << extra) + 1u;
    distance += bits(r, extra);
    if (r->wrong || !copy(r, distance, length)) return false;
  }
}

static bool stored(reader *r) {
  r->hold >>= r->n % 8;
  r->n -= r->n % 8;
  unsigned n = bits(r, 16), check = bits(r, 16);
  if (r->wrong) return false;
  if ((n ^ 0xffff) != check) return fail(r, "a stored block whose length is not its own complement's");
  if (n > (size_t)(r->limit - r->out)) return fail(r, "more data than was announced");
  for (; n && !r->wrong; n--) *r->out++ = (unsigned char)bits(r, 8);
  return !r->wrong;
}

static bool fixed(reader *r) {
  uint8_t lengths[LITERALS];
  code literals, distances;
  for (unsigned i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  make_code(r, &literals, lengths, LITERALS);
  memset(lengths, 5, 32);
  return make_code(r, &distances, lengths, 32) && coded(r, &literals, &distances);
}

static bool dynamic(reader *r) {
  static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  unsigned nl = bits(r, 5) + 257, nd = bits(r, 5) + 1, nc = bits(r, 4) + 4, i = 0;
  uint8_t lengths[LITERALS + 32] = {0};
  code literals, distances;
  if (nl > 286 || nd > DISTANCES) return fail(r, "more codes than there are symbols");
  for (unsigned k = 0; k < nc; k++) lengths[order[k]] = (uint8_t)bits(r, 3);
  if (r->wrong || !make_code(r, &literals, lengths, LENGTHS)) return false;
  memset(lengths, 0, sizeof lengths);
  while (i < nl + nd) {
    int s = symbol(r, &literals);
    if (s < 0) return false;
    if (s < 16) {
      lengths[i++] = (uint8_t)s;
      continue;
    }
    if (s == 16 && !i) return fail(r, "a repetition of no length");
    uint8_t last = s == 16 ? lengths[i - 1] : 0;
    unsigned times = s == 16 ? 3 + bits(r, 2) : s == 17 ? 3 + bits(r, 3) : 11 + bits(r, 7);
    if (r->wrong || times > nl + nd - i) return fail(r, "more lengths than codes");
    for (; times; times--) lengths[i++] = last;
  }
  if (!lengths[256]) return fail(r, "no code that ends the block");
  return make_code(r, &literals, lengths, nl) && make_code(r, &distances, lengths + nl, nd) &&
         coded(r, &literals, &distances);
}

const char *kl_inflate(const unsigned char *in, size_t n, unsigned char *out, size_t size, size_t *at) {
  reader r = {.p = in, .end = in + n, .out = out, .begin = out, .limit = out + size};
  bool last = false, ok = true;
  while (ok && !last) {
    last = bits(&r, 1);
    unsigned kind = bits(&r, 2);
    ok = !r.wrong && (kind == 0   ? stored(&r)
                      : kind == 1 ? fixed(&r)
                      : kind == 2 ? dynamic(&r)
                                  : fail(&r, "a block of no kind"));
  }
  if (ok && r.out != r.limit) fail(&r, "less data than was announced");
  if (ok && (size_t)(r.end - r.p) + r.n / 8) fail(&r, "the data goes on behind its last block");
  *at = (size_t)(r.p - in) - r.n / 8;
  return r.wrong;
}

uint32_t kl_crc32(uint32_t crc, const void *data, size_t n) {
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                     0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const unsigned char *p = data;
  crc = ~crc;
  for (size_t i = 0; i < n; i++) {
    crc = table[(crc ^ p[i]) & 15] ^ crc >> 4;
    crc = table[(crc ^ (uint32_t)(p[i] >> 4)) & 15] ^ crc >> 4;
  }
  return ~crc;
}

#include "arguments.h"

#include "npy/npy.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int bad(const char *word, const char *expected) {
  fprintf(stderr, "kiln sim: --arg '%s': %s\n", word, expected);
  return EXIT_BAD_INPUT;
}

// --- numbers --------------------------------------------------------------------------------------------------------

typedef enum number_kind { UNSIGNED, SIGNED, FLOAT, BITS } number_kind;
static const struct {
  const char *name;
  number_kind kind;
  unsigned bytes;
} number_types[] = {
    {"u8", UNSIGNED, 1}, {"u16", UNSIGNED, 2}, {"u32", UNSIGNED, 4}, {"u64", UNSIGNED, 8}, {"s8", SIGNED, 1},
    {"s16", SIGNED, 2},  {"s32", SIGNED, 4},   {"s64", SIGNED, 8},   {"f32", FLOAT, 4},    {"f64", FLOAT, 8},
    {"b8", BITS, 1},     {"b16", BITS, 2},     {"b32", BITS, 4},     {"b64", BITS, 8},
};
enum { NUMBER_TYPES = sizeof number_types / sizeof number_types[0] };

// In C's locale, as the command is.
static bool read_float(const char *text, unsigned bytes, uint64_t *out) {
  char *end;
  double d = strtod(text, &end);
  float f = strtof(text, NULL);
  if (!*text || *end) return false;
  *out = 0;
  if (bytes == 4)
    memcpy(out, &f, 4);
  else
    memcpy(out, &d, 8);
  return true;
}

static bool read_integer(const char *text, number_kind kind, unsigned bytes, uint64_t *out) {
  char *end;
  bool negative = *text == '-';
  const char *digits = text + negative;
  if ((*digits < '0' || *digits > '9') || (negative && kind != SIGNED)) return false;
  errno = 0;
  uint64_t v = strtoull(digits, &end, kind == BITS ? 0 : 10);
  uint64_t most = ~(uint64_t)0 >> (64 - 8 * bytes);
  if (kind == SIGNED) most = most / 2 + negative;
  if (errno || *end || v > most) return false;
  *out = negative ? -v : v;
  return true;
}

// 0: it is none. 1: it is one, read. -1: it is one and wrong.
static int read_number_word(const char *word, argument *out) {
  for (int i = 0; i < NUMBER_TYPES; i++) {
    size_t n = strlen(number_types[i].name);
    if (strncmp(word, number_types[i].name, n) != 0 || word[n] != ':') continue;
    out->bytes = number_types[i].bytes;
    bool ok = number_types[i].kind == FLOAT ? read_float(word + n + 1, out->bytes, &out->value)
                                            : read_integer(word + n + 1, number_types[i].kind, out->bytes, &out->value);
    return ok ? 1 : -1;
  }
  return 0;
}

// --- structs --------------------------------------------------------------------------------------------------------

enum { MOST_STRUCT = 32764 }; // bytes of all parameters of a kernel

// "{s8:1,f64:2.5}": each number behind the one before, aligned to its own size, all of it to the largest one's.
static int read_struct(const char *word, argument *out) {
  char member[64];
  unsigned align = 1, bytes = 0;
  const char *p = word;
  out->members = calloc(1, MOST_STRUCT);
  if (!out->members) return bad(word, "there is no memory for it");
  do {
    argument one = {0};
    size_t n = strcspn(++p, ",}");
    if (n < sizeof member) memcpy(member, p, n), member[n] = 0;
    if (n >= sizeof member || !p[n] || read_number_word(member, &one) <= 0)
      return bad(word, "expected numbers in braces, as {s8:1,f64:2.5}");
    unsigned at = (bytes + one.bytes - 1) / one.bytes * one.bytes;
    if (at + one.bytes > MOST_STRUCT) return bad(word, "a kernel's parameters have fewer bytes");
    memcpy(out->members + at, &one.value, one.bytes);
    bytes = at + one.bytes;
    align = one.bytes > align ? one.bytes : align;
    p += n;
  } while (*p == ',');
  out->bytes = (bytes + align - 1) / align * align;
  return p[1] ? bad(word, "expected nothing behind '}'") : 0;
}

void argument_free(argument *a) {
  free(a->members);
  a->members = NULL;
}

const void *argument_value(const argument *a) {
  return a->members ? (const void *)a->members : a->array ? (const void *)&a->address : (const void *)&a->value;
}

// --- arrays ---------------------------------------------------------------------------------------------------------

// "f32[8,16]"; *end is behind it. False if it is no array of whole bytes.
static bool read_type(const char *text, kiln_array_type *out, const char **end) {
  char name[32];
  size_t n = strcspn(text, "[");
  *out = (kiln_array_type){0};
  if (n >= sizeof name || text[n] != '[') return false;
  memcpy(name, text, n);
  name[n] = 0;
  out->dtype = kiln_dtype_from_name(name);
  if (!out->dtype || (out->dtype != KILN_PRED && kiln_dtype_bits(out->dtype) < 8)) return false;
  const char *p = text + n + 1;
  while (*p != ']') {
    char *after;
    if (out->rank == KILN_MAX_RANK || *p < '0' || *p > '9') return false;
    errno = 0;
    out->dims[out->rank++] = strtoll(p, &after, 10);
    if (errno || (*after != ',' && *after != ']') || (*after == ',' && after[1] == ']')) return false;
    p = *after == ',' ? after + 1 : after;
  }
  *end = p + 1;
  return kiln_array_bytes(out) >= 0;
}

static bool begins(const char *word, const char *with, const char **rest) {
  size_t n = strlen(with);
  *rest = word + n;
  return strncmp(word, with, n) == 0;
}

int argument_read(const char *word, argument *out) {
  const char *rest, *end;
  *out = (argument){.word = word};
  int number = read_number_word(word, out);
  if (number > 0) return 0;
  if (number < 0) return bad(word, "expected a number that the type holds, as u32:7, s64:-1, f32:1.5 or b16:0x3c00");
  if (*word == '{') return read_struct(word, out);
  out->array = true;
  out->bytes = 8;
  if (begins(word, "in:", &rest) && *rest) {
    out->from = rest;
    out->from_size = strlen(rest);
    return 0;
  }
  if (begins(word, "inout:", &rest)) {
    const char *equals = strchr(rest, '=');
    if (!equals || equals == rest || !equals[1]) return bad(word, "expected inout:A.npy=B.npy");
    out->from = rest;
    out->from_size = (size_t)(equals - rest);
    out->to = equals + 1;
    return 0;
  }
  if (begins(word, "zero:", &rest))
    return read_type(rest, &out->type, &end) && !*end ? 0 : bad(word, "expected an array, as zero:f32[8,16]");
  if (begins(word, "out:", &rest)) {
    bool ok = read_type(rest, &out->type, &end) && *end == '=' && end[1];
    out->to = ok ? end + 1 : NULL;
    return ok ? 0 : bad(word, "expected an array and a file, as out:f32[8,16]=B.npy");
  }
  return bad(word,
             "expected in:A.npy, out:f32[8]=B.npy, inout:A.npy=B.npy, zero:u8[64], a number, as u32:7 or f32:1.5, or "
             "numbers in braces");
}

// --- memory ---------------------------------------------------------------------------------------------------------

static size_t size_of(const argument *a) {
  return (size_t)kiln_npy_bytes(&a->type);
}

bool argument_is_output(const argument *a) {
  return a->array && a->to && !a->from;
}

uint64_t argument_bytes(const argument *a) {
  return size_of(a);
}

// An array of no elements has an address as well; nothing may be read there. What is asked for counts as written: so
// the bytes of an output are not.
int argument_fill(kiln_context *cx, kiln_simulator *s, argument *a) {
  if (!a->array) return 0;
  char *path = a->from ? strndup(a->from, a->from_size) : NULL;
  int status = path ? npy_type(path, &a->type) : a->from ? out_of_memory((int64_t)a->from_size) : 0;
  if (!status) status = report(cx, kiln_simulator_alloc(cx, s, size_of(a) ? size_of(a) : 1, &a->address));
  if (!status && path) status = npy_read(path, &a->type, kiln_simulator_bytes(s, a->address, size_of(a)));
  if (!status && !argument_is_output(a)) kiln_simulator_bytes(s, a->address, size_of(a));
  free(path);
  return status;
}

int argument_write(kiln_simulator *s, const argument *a) {
  return a->to ? npy_write(a->to, &a->type, kiln_simulator_bytes(s, a->address, size_of(a))) : 0;
}

// A float for an integer, or the other way round. Parameters of bits take both.
static bool is_mistaken(const argument *a, const kiln_sim_parameter *p) {
  char given = a->array ? 'u' : a->word[0], wanted = p->type[0];
  return given != 'b' && wanted != 'b' && (given == 'f') != (wanted == 'f');
}

int argument_fits(const argument *a, const kiln_sim_parameter *p, size_t i) {
  if (p->bytes == a->bytes && is_mistaken(a, p)) {
    fprintf(stderr, "kiln sim: --arg '%s': expected .%s for parameter %zu, '%s'%s\n", a->word, p->type, i, p->name,
            a->array ? ", found an address" : "; b16, b32 and b64 give bits, as b32:0x3f800000");
    return EXIT_BAD_INPUT;
  }
  if (p->bytes == a->bytes) return 0;
  fprintf(stderr, "kiln sim: --arg '%s': expected %llu bytes for parameter %zu, '%s' (.%s), found %u%s\n", a->word,
          (unsigned long long)p->bytes, i, p->name, p->type, a->bytes, a->array ? ", an address" : "");
  return EXIT_BAD_INPUT;
}

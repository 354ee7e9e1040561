// Headers of .npy files, to be read and written: a magic number, a version, a length, and a dictionary as Python writes
// it:
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
// As numpy does, it takes the three keys in any order, blanks anywhere between, quotes of either kind, and nothing
// else.

#include <kiln/npy.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// --- types ----------------------------------------------------------------------------------------------------------

const char *kiln_npy_dtype(kiln_dtype t) {
  switch (t) {
  case KILN_PRED: return "|b1";
  case KILN_S1:
  case KILN_S2:
  case KILN_S4:
  case KILN_S8: return "|i1";
  case KILN_U1:
  case KILN_U2:
  case KILN_U4:
  case KILN_U8: return "|u1";
  case KILN_S16: return "<i2";
  case KILN_U16: return "<u2";
  case KILN_S32: return "<i4";
  case KILN_U32: return "<u4";
  case KILN_S64: return "<i8";
  case KILN_U64: return "<u8";
  case KILN_F16: return "<f2";
  case KILN_F32: return "<f4";
  case KILN_F64: return "<f8";
  case KILN_C64: return "<c8";
  case KILN_C128: return "<c16";
  case KILN_BF16: return "|V2";
  default: return "|V1";
  }
}

size_t kiln_npy_item_size(kiln_dtype t) {
  unsigned bits = kiln_dtype_bits(t);
  return bits < 8 ? 1 : bits / 8;
}

int64_t kiln_npy_bytes(const kiln_array_type *t) {
  if (!t) return 0;
  int64_t n = (int64_t)kiln_npy_item_size(t->dtype);
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] == 0) return 0;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

void kiln_npy_shape_text(const int64_t *dims, uint32_t rank, char *out, size_t size) {
  if (!out || (rank && !dims)) return;
  size_t n = (size_t)snprintf(out, size, "(");
  for (uint32_t d = 0; d < rank && n < size; d++)
    n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)dims[d]);
  if (n < size) snprintf(out + n, size - n, rank == 1 ? ",)" : ")");
}

// numpy's own name of the type, or raw bytes of its size. ml_dtypes writes its types as "<V2" and "<f1".
bool kiln_npy_dtype_holds(const char *found, kiln_dtype t) {
  char raw[32];
  if (!found) return false;
  size_t size = kiln_npy_item_size(t);
  bool ordered = found[0] == '<' || found[0] == '='; // as this machine has it
  if (strcmp(found, kiln_npy_dtype(t)) == 0 || (ordered && size > 1 && strcmp(found + 1, kiln_npy_dtype(t) + 1) == 0))
    return true;
  if (!ordered && found[0] != '|' && (found[0] != '>' || size > 1)) return false;
  snprintf(raw, sizeof raw, "V%zu", size);
  if (strcmp(found + 1, raw) == 0) return true;
  if (size > 1) return false;
  return strcmp(found + 1, kiln_npy_dtype(t) + 1) == 0 || (kiln_npy_dtype(t)[1] == 'V' && strcmp(found + 1, "f1") == 0);
}

// Types that a name of numpy's may stand for, the likeliest first: raw bytes can be many.
static const kiln_dtype types[] = {KILN_PRED, KILN_F32, KILN_F64,  KILN_F16,     KILN_BF16, KILN_S8,
                                   KILN_U8,   KILN_S16, KILN_U16,  KILN_S32,     KILN_U32,  KILN_S64,
                                   KILN_U64,  KILN_C64, KILN_C128, KILN_F8E4M3FN};

kiln_dtype kiln_npy_dtype_parse(const char *found) {
  if (!found) return KILN_DTYPE_NONE;
  for (int exact = 1; exact >= 0; exact--)
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
      if (exact ? strcmp(kiln_npy_dtype(types[i]), found) == 0 : kiln_npy_dtype_holds(found, types[i])) return types[i];
  return KILN_DTYPE_NONE;
}

// --- reading --------------------------------------------------------------------------------------------------------

typedef struct reader {
  const char *p, *end;
  kiln_npy_header *out;
  bool has[3]; // by key
  char *error;
  size_t error_size;
} reader;

enum { DESCR, ORDER, SHAPE };
static const char *const keys[] = {"descr", "fortran_order", "shape"};

// --- what is wrong --------------------------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static bool say(char *error, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (error) vsnprintf(error, size, format, args);
  va_end(args);
  return false;
}

static bool is_printable(char c) {
  return c >= 32 && c < 127;
}

// Up to a dozen characters of what is there, without what a terminal would not show.
static const char *found(const reader *r, char out[24]) {
  if (r->p == r->end) return "the end";
  int n = r->end - r->p > 12 ? 12 : (int)(r->end - r->p);
  snprintf(out, 24, "%.*s%s", n, r->p, n < r->end - r->p ? "..." : "");
  for (char *p = out; *p; p++)
    if (!is_printable(*p)) *p = '?';
  return out;
}

static bool expected(reader *r, const char *what) {
  char text[24];
  return say(r->error, r->error_size, "its header: expected %s, found %s", what, found(r, text));
}

// --- pieces ---------------------------------------------------------------------------------------------------------

static char next(reader *r) {
  while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p) r->p++;
  return r->p < r->end ? *r->p : 0;
}

static bool take(reader *r, char c) {
  if (next(r) != c || !c) return false;
  r->p++;
  return true;
}

static bool is_quote(char c) {
  return c == '\'' || c == '"';
}

// A string of fewer than `size` printable characters, without escapes.
static bool take_string(reader *r, char *out, size_t size, const char *what) {
  char quote = next(r);
  if (!is_quote(quote)) return expected(r, what);
  const char *begin = r->p + 1, *close = memchr(begin, quote, (size_t)(r->end - begin));
  size_t n = close ? (size_t)(close - begin) : size;
  if (n >= size) return expected(r, what);
  for (size_t i = 0; i < n; i++)
    if (!is_printable(begin[i]) || begin[i] == '\\') return expected(r, what);
  memcpy(out, begin, n);
  out[n] = 0;
  r->p = close + 1;
  return true;
}

static bool take_word(reader *r, const char *word) {
  size_t n = strlen(word);
  next(r);
  if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) return false;
  r->p += n;
  return true;
}

static bool take_dimension(reader *r, int64_t *out) {
  int64_t v = 0;
  if (next(r) < '0' || *r->p > '9') return expected(r, "a dimension of 'shape', a whole number from 0");
  for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->p - '0', &v))
      return say(r->error, r->error_size, "its header: a dimension of 'shape' is no 64-bit number");
  }
  if (r->p < r->end && *r->p == 'L') r->p++; // as Python 2 wrote it
  *out = v;
  return true;
}

// A tuple: "()", "(3,)", "(2, 3)"; "(3)" is none.
static bool take_shape(reader *r) {
  kiln_npy_header *h = r->out;
  bool comma = false;
  if (!take(r, '(')) return expected(r, "a tuple after 'shape'");
  while (next(r) != ')') {
    if (h->rank && !comma) return expected(r, "',' or ')' in 'shape'");
    if (h->rank == KILN_MAX_RANK)
      return say(r->error, r->error_size, "its header: 'shape' has more than %d dimensions", KILN_MAX_RANK);
    if (!take_dimension(r, &h->dims[h->rank])) return false;
    h->rank++;
    comma = take(r, ',');
  }
  if (h->rank == 1 && !comma) return expected(r, "',' after the one dimension of 'shape'");
  r->p++;
  return true;
}

static bool take_value(reader *r, int key) {
  if (key == DESCR && next(r) == '[')
    return say(r->error, r->error_size, "its header: 'descr' is a list, of a structured type: expected one plain type");
  if (key == DESCR) return take_string(r, r->out->dtype, sizeof r->out->dtype, "a type's name after 'descr'");
  if (key == SHAPE) return take_shape(r);
  r->out->fortran = take_word(r, "True");
  return r->out->fortran || take_word(r, "False") || expected(r, "True or False after 'fortran_order'");
}

static bool take_entry(reader *r) {
  char name[24];
  int key = 0;
  if (!take_string(r, name, sizeof name, "'descr', 'fortran_order' or 'shape'")) return false;
  while (key < 3 && strcmp(name, keys[key]) != 0) key++;
  if (key == 3)
    return say(r->error, r->error_size, "its header has a key '%s': expected 'descr', 'fortran_order' and 'shape'",
               name);
  if (r->has[key]) return say(r->error, r->error_size, "its header has '%s' twice", name);
  r->has[key] = true;
  return take(r, ':') ? take_value(r, key) : expected(r, "':' after a key");
}

static bool take_dictionary(reader *r) {
  bool comma = true;
  if (!take(r, '{')) return expected(r, "'{'");
  while (!take(r, '}')) {
    if (!comma) return expected(r, "',' or '}'");
    if (!take_entry(r)) return false;
    comma = take(r, ',');
  }
  next(r);
  if (r->p != r->end) return expected(r, "nothing after '}'");
  for (int k = 0; k < 3; k++)
    if (!r->has[k]) return say(r->error, r->error_size, "its header has no '%s'", keys[k]);
  return true;
}

// --- the whole ------------------------------------------------------------------------------------------------------

size_t kiln_npy_header_size(const unsigned char *b, size_t n, char *error, size_t error_size) {
  if (!b || n < 8 || memcmp(b, "\x93NUMPY", 6) != 0)
    return (size_t)say(error, error_size, "this is no .npy file: it does not begin with \\x93NUMPY and a version");
  if (b[6] < 1 || b[6] > 3 || b[7] != 0)
    return (size_t)say(error, error_size, "it has version %d.%d: expected 1.0, 2.0 or 3.0", b[6], b[7]);
  size_t prefix = b[6] == 1 ? 10 : 12, length;
  if (n < prefix) return (size_t)say(error, error_size, "its header is cut short: the length is missing");
  length = b[8] | (size_t)b[9] << 8;
  if (prefix == 12) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (length > KILN_NPY_LONGEST - prefix)
    return (size_t)say(error, error_size, "its header has %zu bytes: expected at most %zu", length,
                       KILN_NPY_LONGEST - prefix);
  return prefix + length;
}

bool kiln_npy_header_read(const unsigned char *bytes, size_t n, kiln_npy_header *out, char *error, size_t error_size) {
  if (!out) return say(error, error_size, "kiln_npy_header_read: expected a header to fill, found NULL");
  size_t size = kiln_npy_header_size(bytes, n, error, error_size), prefix = size && bytes[6] > 1 ? 12 : 10;
  *out = (kiln_npy_header){0};
  if (!size) return false;
  if (n < size)
    return say(error, error_size, "its header is cut short: expected %zu bytes, found %zu", size - prefix, n - prefix);
  reader r = {.p = (const char *)bytes + prefix, .end = (const char *)bytes + size, .out = out};
  r.error = error;
  r.error_size = error_size;
  return take_dictionary(&r);
}

// --- writing --------------------------------------------------------------------------------------------------------

size_t kiln_npy_header_write(const kiln_array_type *type, unsigned char out[KILN_NPY_WRITTEN]) {
  char shape[KILN_NPY_WRITTEN / 2], text[KILN_NPY_WRITTEN];
  if (!type || !out) return 0;
  kiln_npy_shape_text(type->dims, type->rank, shape, sizeof shape);
  int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                   kiln_npy_dtype(type->dtype), shape);
  size_t size = ((size_t)n + 1 + 10 + 63) / 64 * 64; // the data begins at a multiple of 64 bytes
  memset(out, ' ', size);
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (unsigned char)(size - 10);
  out[9] = (unsigned char)((size - 10) >> 8);
  memcpy(out + 10, text, (size_t)n);
  out[size - 1] = '\n';
  return size;
}

// numpy's .npy files: version 1 and 2 headers, C order, little endian.

#include "kiln.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *descr(kiln_dtype t) {
  switch (t) {
  case KILN_PRED: return "|b1";
  case KILN_S2:
  case KILN_S4:
  case KILN_S8: return "|i1";
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

size_t npy_item_size(kiln_dtype t) {
  unsigned bits = kiln_dtype_bits(t);
  return bits < 8 ? 1 : bits / 8;
}

static int64_t elements(const kiln_array_type *t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

static void shape_text(const kiln_array_type *t, char *out, size_t size) {
  size_t n = (size_t)snprintf(out, size, "(");
  for (uint32_t d = 0; d < t->rank; d++)
    n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
  snprintf(out + n, size - n, t->rank == 1 ? ",)" : ")");
}

static int fail(const char *path, const char *what, const char *found, const char *expected) {
  fprintf(stderr, "kiln: %s: %s%s%s%s%s\n", path, what, found ? " " : "", found ? found : "",
          expected ? ", expected " : "", expected ? expected : "");
  return EXIT_BAD_INPUT;
}

// The text between key and the next comma outside brackets.
static bool field(const char *header, const char *key, char *out, size_t size) {
  const char *p = strstr(header, key);
  if (!p || !(p = strchr(p, ':'))) return false;
  for (p++; *p == ' '; p++) {}
  size_t n = 0;
  int depth = 0;
  for (; *p && n + 1 < size; p++) {
    if (*p == '(') depth++;
    if (*p == ')') depth--;
    if ((*p == ',' || *p == '}') && depth == 0) break;
    out[n++] = *p;
  }
  out[n] = 0;
  return n > 0;
}

static void strip(char *text, const char *drop) {
  char *to = text;
  for (char *p = text; *p; p++) {
    if (!strchr(drop, *p)) *to++ = *p;
  }
  *to = 0;
}

// numpy's own name of the type, or raw bytes of its size. ml_dtypes writes its types as "<V2" and "<f1".
static bool holds(const char *found, kiln_dtype t) {
  char raw[16];
  size_t size = npy_item_size(t);
  if (strcmp(found, descr(t)) == 0) return true;
  if (found[0] != '|' && found[0] != '<' && (found[0] != '>' || size > 1)) return false;
  snprintf(raw, sizeof raw, "V%zu", size);
  if (strcmp(found + 1, raw) == 0) return true;
  if (size > 1) return false;
  return strcmp(found + 1, descr(t) + 1) == 0 || (descr(t)[1] == 'V' && strcmp(found + 1, "f1") == 0);
}

static int check_header(const char *path, char *header, const kiln_array_type *type) {
  char found[512], want[1024];
  if (!field(header, "'descr'", found, sizeof found)) return fail(path, "the .npy header has no 'descr'", NULL, NULL);
  strip(found, "' ");
  snprintf(want, sizeof want, "%s (%s)", descr(type->dtype), kiln_dtype_name(type->dtype));
  if (!holds(found, type->dtype)) return fail(path, "the file holds", found, want);
  if (!field(header, "'fortran_order'", found, sizeof found) || strcmp(found, "False") != 0)
    return fail(path, "the array is in Fortran order", NULL, "C order");
  if (!field(header, "'shape'", found, sizeof found)) return fail(path, "the .npy header has no 'shape'", NULL, NULL);
  shape_text(type, want, sizeof want);
  strip(found, " ");
  strip(want, " ");
  return strcmp(found, want) == 0 ? 0 : fail(path, "the array has shape", found, want);
}

static int read_header(const char *path, FILE *f, const kiln_array_type *type) {
  unsigned char head[12];
  if (fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY", 6) != 0)
    return fail(path, "this is no .npy file", NULL, NULL);
  size_t n = head[8] | (size_t)head[9] << 8;
  if (head[6] > 1) {
    if (fread(head + 10, 1, 2, f) != 2) return fail(path, "the header is cut short", NULL, NULL);
    n |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
  }
  if (n > 65535) return fail(path, "the header is too long", NULL, NULL);
  char *header = calloc(1, n + 1);
  if (!header || fread(header, 1, n, f) != n) {
    free(header);
    return fail(path, "the header is cut short", NULL, NULL);
  }
  int status = check_header(path, header, type);
  free(header);
  return status;
}

// A byte holds more values than a type below 8 bits.
static int check_range(const char *path, const kiln_array_type *type, const unsigned char *data) {
  unsigned bits = type->dtype == KILN_PRED ? 1 : kiln_dtype_bits(type->dtype);
  if (bits >= 8) return 0;
  bool is_signed = type->dtype == KILN_S2 || type->dtype == KILN_S4;
  int lo = is_signed ? -(1 << (bits - 1)) : 0, hi = lo + (1 << bits) - 1;
  for (int64_t i = 0, n = elements(type); i < n; i++) {
    int value = is_signed ? (signed char)data[i] : data[i];
    if (value >= lo && value <= hi) continue;
    char found[64], want[64];
    snprintf(found, sizeof found, "%lld is %d", (long long)i, value);
    snprintf(want, sizeof want, "%d to %d (%s)", lo, hi, kiln_dtype_name(type->dtype));
    return fail(path, "element", found, want);
  }
  return 0;
}

int npy_read(const char *path, const kiln_array_type *type, void *data) {
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (f && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
    fclose(f);
    return fail(path, strerror(EISDIR), NULL, NULL);
  }
  if (!f) return fail(path, strerror(errno), NULL, NULL);
  int status = read_header(path, f, type);
  size_t bytes = (size_t)elements(type) * npy_item_size(type->dtype);
  if (!status && fread(data, 1, bytes, f) != bytes) status = fail(path, "the data is cut short", NULL, NULL);
  if (!status && fgetc(f) != EOF) status = fail(path, "the file goes on after the data", NULL, NULL);
  fclose(f);
  return status ? status : check_range(path, type, data);
}

int npy_write(const char *path, const kiln_array_type *type, const void *data) {
  char shape[1024], header[1400];
  shape_text(type, shape, sizeof shape);
  int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr(type->dtype),
                   shape);
  size_t total = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10; // the data begins at a multiple of 64 bytes
  unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)total, (unsigned char)(total >> 8)};
  FILE *f = output_open(path);
  if (f) {
    fwrite(head, 1, sizeof head, f);
    fprintf(f, "%-*s\n", (int)total - 1, header);
    fwrite(data, 1, (size_t)elements(type) * npy_item_size(type->dtype), f);
  }
  return output_close(f, path);
}

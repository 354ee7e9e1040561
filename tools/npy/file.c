// .npy files as a whole: header, data, order.

#include "npy.h"

#include "kiln.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// --- reading --------------------------------------------------------------------------------------------------------

static int fail(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(const char *path, const char *format, ...) {
  va_list args;
  fprintf(stderr, "kiln: %s: ", path);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  return EXIT_BAD_INPUT;
}

static int check_header(const char *path, const kiln_npy_header *h, const kiln_array_type *type) {
  char have[1024], want[1024];
  if (!kiln_npy_dtype_holds(h->dtype, type->dtype))
    return fail(path, "the file holds %s, expected %s (%s)", h->dtype, kiln_npy_dtype(type->dtype),
                kiln_dtype_name(type->dtype));
  kiln_npy_shape_text(h->dims, h->rank, have, sizeof have);
  kiln_npy_shape_text(type->dims, type->rank, want, sizeof want);
  return strcmp(have, want) == 0 ? 0 : fail(path, "the array has shape %s, expected %s", have, want);
}

static int read_header(const char *path, FILE *f, kiln_npy_header *h) {
  char error[256];
  unsigned char prefix[KILN_NPY_PREFIX];
  size_t n = fread(prefix, 1, 10, f); // as many as any file has; two bytes more where they are the length's
  if (n == 10 && prefix[6] > 1) n += fread(prefix + 10, 1, 2, f);
  size_t size = kiln_npy_header_size(prefix, n, error, sizeof error);
  if (!size) return fail(path, "%s", error);
  unsigned char *bytes = malloc(size);
  if (!bytes) return out_of_memory((int64_t)size);
  memcpy(bytes, prefix, n);
  n += fread(bytes + n, 1, size - n, f);
  bool ok = kiln_npy_header_read(bytes, n, h, error, sizeof error);
  free(bytes);
  return ok ? 0 : fail(path, "%s", error);
}

// The data of an array whose first dimension varies fastest, in row-major order. Bytes that were there.
static size_t read_fortran(FILE *f, const kiln_array_type *t, unsigned char *data) {
  size_t size = kiln_npy_item_size(t->dtype), at = 0, read = 0;
  size_t stride[KILN_MAX_RANK + 1]; // bytes
  int64_t index[KILN_MAX_RANK] = {0};
  stride[t->rank] = size;
  for (uint32_t d = t->rank; d-- > 0;) stride[d] = stride[d + 1] * (size_t)t->dims[d];
  while (fread(data + at, 1, size, f) == size) {
    uint32_t d = 0;
    read += size;
    for (; d < t->rank; d++) {
      at += stride[d + 1];
      if (++index[d] < t->dims[d]) break;
      at -= stride[d];
      index[d] = 0;
    }
    if (d == t->rank) break;
  }
  return read;
}

static int read_data(const char *path, FILE *f, const kiln_npy_header *h, const kiln_array_type *type, void *data) {
  size_t bytes = (size_t)kiln_npy_bytes(type);
  size_t n = h->fortran && bytes ? read_fortran(f, type, data) : fread(data, 1, bytes, f);
  if (n != bytes) return fail(path, "the data is cut short: expected %zu bytes, found %zu", bytes, n);
  return fgetc(f) == EOF ? 0 : fail(path, "the file goes on after the data: expected %zu bytes", bytes);
}

// A byte holds more values than a type below 8 bits.
static int check_range(const char *path, const kiln_array_type *type, const unsigned char *data) {
  unsigned bits = type->dtype == KILN_PRED ? 1 : kiln_dtype_bits(type->dtype);
  if (bits >= 8) return 0;
  bool is_signed = strcmp(kiln_npy_dtype(type->dtype), "|i1") == 0;
  int lo = is_signed ? -(1 << (bits - 1)) : 0, hi = lo + (1 << bits) - 1;
  for (int64_t i = 0, n = kiln_npy_bytes(type); i < n; i++) {
    int value = is_signed ? (signed char)data[i] : data[i];
    if (value < lo || value > hi)
      return fail(path, "element %lld is %d, expected %d to %d (%s)", (long long)i, value, lo, hi,
                  kiln_dtype_name(type->dtype));
  }
  return 0;
}

// Opens a file and reads its header; *f is NULL where that fails.
static int open_array(const char *path, FILE **f, kiln_npy_header *h) {
  struct stat st;
  *f = fopen(path, "rb");
  if (!*f) return fail(path, "%s", strerror(errno));
  int status = fstat(fileno(*f), &st) == 0 && S_ISDIR(st.st_mode) ? fail(path, "%s", strerror(EISDIR)) : 0;
  if (!status) status = read_header(path, *f, h);
  if (status) fclose(*f);
  if (status) *f = NULL;
  return status;
}

int npy_type(const char *path, kiln_array_type *out) {
  kiln_npy_header h;
  FILE *f;
  int status = open_array(path, &f, &h);
  if (status) return status;
  fclose(f);
  *out = (kiln_array_type){.rank = h.rank};
  memcpy(out->dims, h.dims, sizeof out->dims);
  out->dtype = kiln_npy_dtype_parse(h.dtype);
  if (out->dtype) return 0;
  return fail(path, "the file holds %s, expected numbers, truth values or raw bytes of up to 16 bytes", h.dtype);
}

int npy_read(const char *path, const kiln_array_type *type, void *data) {
  kiln_npy_header h;
  FILE *f;
  int status = open_array(path, &f, &h);
  if (status) return status;
  if (!status) status = check_header(path, &h, type);
  if (!status) status = read_data(path, f, &h, type, data);
  if (status && ferror(f)) fail(path, "%s", strerror(errno));
  fclose(f);
  return status ? status : check_range(path, type, data);
}

// --- writing --------------------------------------------------------------------------------------------------------

int npy_write(const char *path, const kiln_array_type *type, const void *data) {
  unsigned char header[KILN_NPY_WRITTEN];
  size_t n = kiln_npy_header_write(type, header);
  FILE *f = output_open(path);
  if (f) {
    fwrite(header, 1, n, f);
    fwrite(data, 1, (size_t)kiln_npy_bytes(type), f);
  }
  return output_close(f, path);
}

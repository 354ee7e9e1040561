// kiln: headers of numpy's .npy files: versions 1.0, 2.0 and 3.0, little endian, C and Fortran order.
#ifndef KILN_NPY_H
#define KILN_NPY_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// What stands before the data.
typedef struct kiln_npy_header {
  char dtype[64]; // numpy's name, such as "<f4"
  bool fortran;   // the first dimension varies fastest
  uint32_t rank;
  int64_t dims[KILN_MAX_RANK];
} kiln_npy_header;

enum { KILN_NPY_PREFIX = 12, KILN_NPY_LONGEST = 65536 };

// How many bytes stand before the data, by the first n of a file, which are KILN_NPY_PREFIX where it has as many; 0
// after having written to `error`, which may be NULL, what is wrong with them: magic, version, length. At most
// KILN_NPY_LONGEST.
KILN_API size_t kiln_npy_header_size(const unsigned char *bytes, size_t n, char *error, size_t error_size);
// Reads those bytes. False after having written to `error` what is wrong and what was expected.
KILN_API bool kiln_npy_header_read(const unsigned char *bytes, size_t n, kiln_npy_header *out, char *error,
                                   size_t error_size);
// The header of version 1.0 and C order that an array of this type gets; its size, 0 where an argument is NULL.
enum { KILN_NPY_WRITTEN = 2048 };
KILN_API size_t kiln_npy_header_write(const kiln_array_type *type, unsigned char out[KILN_NPY_WRITTEN]);

// numpy's name for a type, raw bytes of its size where numpy has none.
KILN_API const char *kiln_npy_dtype(kiln_dtype t);
// Does that name stand for the type? Also raw bytes of its size, and ml_dtypes' names.
KILN_API bool kiln_npy_dtype_holds(const char *dtype, kiln_dtype t);
// The likeliest type that the name stands for; NONE: there is none.
KILN_API kiln_dtype kiln_npy_dtype_parse(const char *dtype);
// Bytes of one element: at least one.
KILN_API size_t kiln_npy_item_size(kiln_dtype t);
// Of all of an array's elements.
KILN_API int64_t kiln_npy_bytes(const kiln_array_type *t);
// "(2, 3)".
KILN_API void kiln_npy_shape_text(const int64_t *dims, uint32_t rank, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif

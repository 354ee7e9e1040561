// numpy's .npy files: versions 1.0, 2.0 and 3.0, little endian, C and Fortran order.
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <kiln/ir.h>
#include <stdio.h>

// What stands before the data.
typedef struct npy_header {
  char dtype[64]; // numpy's name, such as "<f4"
  bool fortran;   // the first dimension varies fastest
  uint32_t rank;
  int64_t dims[KILN_MAX_RANK];
} npy_header;

enum { NPY_PREFIX = 12, NPY_LONGEST = 65536 };

// How many bytes stand before the data, by the first n of a file, which are NPY_PREFIX where it has as many; 0 after
// having written to `error` what is wrong with them: magic, version, length. At most NPY_LONGEST.
size_t npy_header_size(const unsigned char *bytes, size_t n, char *error, size_t error_size);
// Reads those bytes. False after having written to `error` what is wrong and what was expected.
bool npy_header_read(const unsigned char *bytes, size_t n, npy_header *out, char *error, size_t error_size);
// The header of version 1.0 and C order that an array of this type gets; its size.
enum { NPY_WRITTEN = 2048 };
size_t npy_header_write(const kiln_array_type *type, unsigned char out[NPY_WRITTEN]);

// numpy's name for a type, raw bytes of its size where numpy has none.
const char *npy_dtype(kiln_dtype t);
// Does that name stand for the type? Also raw bytes of its size, and ml_dtypes' names.
bool npy_dtype_holds(const char *dtype, kiln_dtype t);
// Bytes of one element: at least one.
size_t npy_item_size(kiln_dtype t);
// Of all of an array's elements.
int64_t npy_bytes(const kiln_array_type *t);
void npy_shape_text(const int64_t *dims, uint32_t rank, char *out, size_t size);

// The type of a file's array, by its header. 0, or an exit status after having said what is wrong.
int npy_type(const char *path, kiln_array_type *out);
// Reads elements of `type` in row-major order (one byte each for sub-byte types) into `elements`. 0, or an exit status
// after having said what does not fit.
int npy_read(const char *path, const kiln_array_type *type, void *elements);
int npy_write(const char *path, const kiln_array_type *type, const void *elements);

#endif

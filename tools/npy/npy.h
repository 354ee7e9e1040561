// numpy's .npy files as a whole; kiln/npy.h has their headers.
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <kiln/npy.h>
#include <stdio.h>

// The type of a file's array, by its header. 0, or an exit status after having said what is wrong.
int npy_type(const char *path, kiln_array_type *out);
// Reads elements of `type` in row-major order (one byte each for sub-byte types) into `elements`. 0, or an exit status
// after having said what does not fit.
int npy_read(const char *path, const kiln_array_type *type, void *elements);
int npy_write(const char *path, const kiln_array_type *type, const void *elements);

#endif

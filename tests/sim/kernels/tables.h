// One table of rows a file of kernels.
#ifndef TABLES_H
#define TABLES_H

#include "kernels.h"

// clang-format off
#define KERNEL_TABLES(X) \
  X(reduce) X(scan) X(histogram) X(matmul) X(sort) X(warp) X(stencil) X(integer) X(rounding) X(sync) X(calls) X(memory) \
  X(math) X(objects) X(narrow) X(groups) X(cluster)
// clang-format on

#define TABLE(name)                                                                                                    \
  extern const kernel_row name##_rows[];                                                                               \
  extern const size_t name##_nrow;
KERNEL_TABLES(TABLE)
#undef TABLE

#endif

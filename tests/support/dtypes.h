// Element types by kind, in the order of their enumeration: from the one table of types, so that a new one is tested.
#ifndef TESTS_DTYPES_H
#define TESTS_DTYPES_H

#include "ir/dtype.h"

typedef struct dtype_list {
  int n;
  kl_dtype at[KILN_DTYPE_COUNT];
} dtype_list;

static inline dtype_list dtypes_that(bool (*fit)(kl_dtype t)) {
  dtype_list list = {0};
  for (int t = 0; t < KILN_DTYPE_COUNT; t++)
    if (fit((kl_dtype)t)) list.at[list.n++] = (kl_dtype)t;
  return list;
}

static inline bool is_narrow_float(kl_dtype t) {
  return kl_is_float(t) && kl_info(t)->bits <= 16;
}
static inline bool is_real(kl_dtype t) {
  return kl_is_array_dtype(t) && !kl_is_complex(t);
}

#endif

// What the stand-in for nvJitLink is told, and what it has seen.
#ifndef TESTS_LINKER_LIBRARY_H
#define TESTS_LINKER_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

enum { LINKER_CUBIN_SIZE = 64 };

typedef struct linker_account {
  int fail_at; // number of the call that fails with 7, from 1; 0: none
  const char *log;
  bool makes_nothing;
  int calls, alive; // handles
  char option[40];
  bool is_ptx; // that ends with NUL
  size_t ptx_size;
} linker_account;

#endif

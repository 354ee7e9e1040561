// What was measured, as text: a line for each function, type and mode, and as tables for people.
#ifndef TESTS_NUMERICS_ROWS_H
#define TESTS_NUMERICS_ROWS_H

#include "measure.h"
#include <stdio.h>

typedef struct nu_row {
  const nu_function *f; // NULL: not measured
  nu_type t;
  bool all; // every input, else samples
  nu_errors errors;
  nu_cost cost;
  uint64_t fingerprint;
} nu_row;

typedef struct nu_rows {
  nu_row *at; // by function, then by type
} nu_rows;

nu_row *nu_row_of(nu_rows *rows, const nu_function *f, nu_type t);
// A file that is not there has no rows. False, with a line on stderr, if it says anything else than rows.
bool nu_rows_read(nu_rows *rows, const char *path);
// Replaces the file as a whole.
bool nu_rows_write(const nu_rows *rows, const char *path);
void nu_rows_free(nu_rows *rows);
// The tables in Markdown.
void nu_rows_print(nu_rows *rows, FILE *out);

#endif

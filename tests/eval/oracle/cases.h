// Cases as oracle/make.py and corpus/dump.py write them: a module, inputs, and results with a rule for each.
//
//   case NAME                        begins a case; lines before the first one are comments
//   by SOURCE                        who computed the results (a comment)
//   | HLO text                       one line of the module
//   in SHAPE = HEX HEX*N HEX..HEX ...         a parameter's leaf; the notation of elements is that of oracle/arrays.py
//   out RULE = HEX ...               a leaf of the result
//   (a line that begins with a space continues the one before; one with # is a comment)
//
// Rules:
//   exact          equal bits, NaN standing for any NaN
//   within N       the expected value lies in the evaluator's interval, and the evaluator's value no more than N units
//                  in the last place away from it, counted in values of the type (complex: per part); infinities count
//                  as values, NaN must meet NaN
//   near ABS REL   |value - expected| <= ABS + REL |expected|, complex by absolute value; infinite values are equal
#ifndef KL_TEST_CASES_H
#define KL_TEST_CASES_H

#include "eval/eval.h"

enum { CASE_MAX_ARRAYS = 128 };

typedef enum case_rule { CASE_INPUT, CASE_EXACT, CASE_WITHIN, CASE_NEAR } case_rule;

typedef struct case_array {
  case_rule rule;
  double a, b;             // N, or ABS and REL
  const char *shape;       // of an input, as in the file
  const char *begin, *end; // of the elements' text
} case_array;

typedef struct test_case {
  const char *name;
  const char *module; // "" where the file has none
  size_t module_size;
  int line, nin, nout;
  case_array in[CASE_MAX_ARRAYS], out[CASE_MAX_ARRAYS];
} test_case;

typedef struct case_file {
  char *text, *at;
  size_t size;
  int line;
  char error[200]; // empty where the file is well formed
} case_file;

// The file's bytes with a NUL behind them; NULL if it cannot be read. Freed by the caller.
char *read_whole_file(const char *path, size_t *size);
bool case_file_open(const char *path, case_file *f);
void case_file_close(case_file *f);
// False at the end of the file, or where it is malformed (f->error). `t` points into the file's text.
bool case_file_next(case_file *f, test_case *t);

// Runs the entry of `m` on the case's inputs, with or without intervals, and compares. False with the reason in `why`.
bool case_holds(kl_ctx *cx, const kiln_module *m, const test_case *t, const kl_eval_opts *opts, char *why, size_t size);

#endif

// What every test program has: its suite run in this process, with TAP on standard output, and EXPECT.
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

// Check records each of its assertions in a file; where there are millions, only failures go through it.
#define EXPECT(cond, ...)                                                                                              \
  do {                                                                                                                 \
    if (!(cond)) ck_abort_msg(__VA_ARGS__);                                                                            \
  } while (0)

typedef struct test_row {
  const TTest *test;
  int n, first; // n: a loop, _i from first on; 0: once
} test_row;

// Called around each test; or, where `once` is set, around all of them. NULL: nothing. `child`: each test runs in a
// process of its own, where what it tests is the process's.
typedef struct test_frame {
  void (*make)(void), (*drop)(void);
  bool once, child;
} test_frame;

// Adds tests without a time limit of their own.
static inline void add_tests(Suite *s, const char *name, test_frame frame, const test_row *rows, size_t n) {
  TCase *t = tcase_create(name);
  suite_add_tcase(s, t);
  tcase_set_timeout(t, 0);
  (frame.once ? tcase_add_unchecked_fixture : tcase_add_checked_fixture)(t, frame.make, frame.drop);
  for (const test_row *r = rows; r < rows + n; r++)
    tcase_add_loop_test(t, r->test, r->first, r->first + (r->n ? r->n : 1));
}

// Runs what was added; `child`: each test in a process of its own. The exit status of main.
static inline int run_suite(Suite *s, bool child) {
  SRunner *runner = srunner_create(s);
  srunner_set_fork_status(runner, child ? CK_FORK : CK_NOFORK);
  srunner_set_tap(runner, "-");
  srunner_run_all(runner, CK_SILENT);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int run_tests(const char *name, test_frame frame, const test_row *rows, size_t n) {
  Suite *s = suite_create(name);
  add_tests(s, name, frame, rows, n);
  return run_suite(s, frame.child);
}

// RUN_TESTS("name", EACH(make, drop), {one_test}, {loop_test, 10}, ...)
#define RUN_TESTS(name, frame, ...)                                                                                    \
  run_tests(name, frame, (const test_row[]){__VA_ARGS__}, sizeof((const test_row[]){__VA_ARGS__}) / sizeof(test_row))
// Where several files have tests of one program: each adds its own, and main calls run_suite.
#define ADD_TESTS(s, name, frame, ...)                                                                                 \
  add_tests(s, name, frame, (const test_row[]){__VA_ARGS__}, sizeof((const test_row[]){__VA_ARGS__}) / sizeof(test_row))
#define NO_FRAME         ((test_frame){0})
#define EACH(make, drop) ((test_frame){make, drop, false, false})
#define ONCE(make, drop) ((test_frame){make, drop, true, false})
#define IN_CHILDREN      ((test_frame){NULL, NULL, false, true})

#endif

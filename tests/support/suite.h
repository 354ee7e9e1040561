// What every test program has: its suite run in this process, with TAP on standard output, and EXPECT.
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

// Check records each of its assertions in a file; where there are millions, only failures go through it.
#define EXPECT(cond, ...)                                                                                              \
  do {                                                                                                                 \
    if (!(cond)) ck_abort_msg(__VA_ARGS__);                                                                            \
  } while (0)

// Takes the suite. The exit status of main.
static inline int run_suite(Suite *s) {
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  srunner_set_tap(r, "-");
  srunner_run_all(r, CK_SILENT);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif

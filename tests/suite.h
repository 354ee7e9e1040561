// How every test program runs its suite: in this process, with TAP on standard output.
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

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

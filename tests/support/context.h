// What tests of whole modules begin with: a context of their own, what it has found, modules from text.
#ifndef TESTS_CONTEXT_H
#define TESTS_CONTEXT_H

#include "suite.h"
#include <kiln/ir.h>
#include <string.h>

static kiln_context *cx;

static inline void make_context(void) {
  cx = kiln_context_create(NULL);
}
static inline void drop_context(void) {
  kiln_context_destroy(&cx);
}

static inline const char *last_finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

// The module of a valid text; the test fails if it is not.
static inline kiln_module *parse(const char *text) {
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s\n%s", last_finding(), text);
  return m;
}

#endif

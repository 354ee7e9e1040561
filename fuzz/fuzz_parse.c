// Parses anything; what parses must print, and what is printed must parse to the same text again.
#include "mutate.h"

#include <kiln/ir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static void fail(kiln_context *cx, const char *what, const char *text, const char *again) {
  fprintf(stderr, "%s\n--- first\n%s--- second\n%s", what, text, again ? again : "(none)\n");
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  abort();
}

static void check_again(kiln_context *cx, const char *text, size_t size) {
  kiln_module *m = NULL;
  char *again;
  size_t n;
  if (kiln_module_parse(cx, "printed", text, size, &m) != KILN_OK) fail(cx, "printed text does not parse", text, NULL);
  kiln_module_print(cx, m, &again, &n);
  if (n != size || memcmp(text, again, n) != 0) fail(cx, "printed text is no fixed point", text, again);
  kiln_text_free(cx, again, n);
  kiln_module_destroy(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  char *text;
  size_t n;
  kiln_status s = kiln_module_parse(cx, "input", (const char *)data, size, &m);
  if (s == KILN_OK) {
    kiln_module_print(cx, m, &text, &n);
    check_again(cx, text, n);
    kiln_text_free(cx, text, n);
    kiln_module_destroy(&m);
  } else if (m || kiln_diagnostics_count(cx) == 0) {
    fail(cx, "a failed parse left a module or no finding", "", NULL);
  }
  kiln_context_destroy(&cx);
  return 0;
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 4 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}

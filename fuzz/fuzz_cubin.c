// Anything as a cubin: what is read adds up, what is refused is refused with a reason.
#include "sim/count/count.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena a;
  kl_cubin c;
  uint64_t sum = 0;
  kl_arena_init(&a, cx);
  kiln_status st = kl_cubin_read(cx, &a, data, size, NULL, KL_STR("axpy"), 20, &c);
  if (st == KILN_OK) {
    for (uint32_t i = 0; i <= c.nlines; i++) sum += c.lines[i];
    if (sum != c.instructions || sum > size / 16) fail("lines do not add up to the instructions");
  } else if (st != KILN_E_INVALID || kiln_diagnostics_count(cx) != 1)
    fail("refused without a reason");
  kl_arena_free(&a);
  kiln_context_destroy(&cx);
  return 0;
}

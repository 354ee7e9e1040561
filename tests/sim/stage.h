// A machine with one module, for tests that launch a kernel and look at what it did.
#ifndef TESTS_SIM_STAGE_H
#define TESTS_SIM_STAGE_H

#include "sim/machine/machine.h"

typedef struct stage {
  kiln_context *cx;
  kl_memory m;
  kl_loaded *l;
  kl_kernel *k;
} stage;

void stage_open(stage *s);
// Loads the module and prepares its entry; false if either is refused, and stage_why tells why. The text must stay.
bool stage_load(stage *s, kl_str ptx, const char *entry);
// The same, and the test fails where it is refused; `name` says what that was.
void stage_expect(stage *s, const char *name, const char *ptx, const char *entry);
// New memory of the device, zeroed and undefined, of at least one byte.
uint64_t stage_memory(stage *s, uint64_t bytes);
// Words of new memory: i holds first + i, and has a value.
uint64_t stage_words(stage *s, uint32_t n, uint32_t first);
const uint32_t *stage_read(const stage *s, uint64_t address, uint32_t words);
const char *stage_why(const stage *s); // the first finding, or ""
void stage_close(stage *s);

#endif

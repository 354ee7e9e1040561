// Assembling PTX in tests, where ptxas is installed.
#ifndef KL_TEST_PTXAS_H
#define KL_TEST_PTXAS_H

#include "base/base.h"

// Path of ptxas (PATH, then the usual toolkit folder), or NULL. Says once on stdout, as a TAP comment, if there is
// none.
const char *ptxas_path(void);
const char *nvdisasm_path(void); // the same of the disassembler

typedef struct ptxas_result {
  bool ok;
  char log[2048];                     // ptxas's words
  int registers, spill_stores, stack; // of the kernel that has most, from -v
  char spiller[128];                  // the first kernel that spills; "": none does
  long sass;                          // instructions in all .text sections, those that fill them up aside
  long loop, products;                // of the innermost loop with most FFMA and DFMA: its instructions, and these
} ptxas_result;

// Assembles `ptx` for `target` ("sm_90"); what is older than sm_75, which ptxas may not know any more, as code for
// that: its PTX is held to its own .target all the same. Files go to a private folder that is removed.
ptxas_result ptxas_run(const char *ptx, size_t size, const char *target);

// What ptxas says of each line of the text, of which there are `lines`: wrong[k] if line k + 1 has an error. It may
// find more once these are gone. False if it could not be asked, or refuses the text for no line.
bool ptxas_lines(const char *ptx, size_t size, const char *target, bool *wrong, size_t lines);

#endif

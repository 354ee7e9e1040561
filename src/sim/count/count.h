// What a launch costs: it is observed while it runs, and what was counted is plain data (kiln/profile.h).
#ifndef KL_COUNT_COUNT_H
#define KL_COUNT_COUNT_H

#include "sim/gpu/gpu.h"
#include "sim/machine/machine.h"

#include <kiln/profile.h>

// Runs a launch with counters. `ptx`: the module of its kernel. *out is NULL after a failure; it holds the context's
// memory and nothing else of what it was made from.
kiln_status kl_profile_run(kl_ctx *cx, kl_memory *m, const kl_launch *l, const kl_ptx_module *ptx, const kl_gpu *gpu,
                           kl_fault *fault, kiln_profile **out);
kiln_profile_info kl_profile_info(const kiln_profile *p);

// --- machine code ---------------------------------------------------------------------------------------------------

// An instruction of SASS, as nvdisasm's text has it.
typedef struct kl_sass_instruction {
  uint32_t line; // of the table of lines; 0: none
  uint8_t kind;  // kiln_profile_class; KILN_CLASS_COUNT: none
  bool named;    // the text has it
  bool accesses; // memory, but for constants
  bool stays;    // others see what it does: it is done as often as its line
  bool witness;  // ptxas leaves it where the PTX has it: it runs as often as its line, and so does its block
  bool begins;   // a basic block, which ends before the next one that does
  bool jumps;
} kl_sass_instruction;
// What a cubin has of a kernel: for each line of its line table how many instructions, those that only fill up left
// out. The kernel's own code and functions that are no kernels.
typedef struct kl_cubin {
  uint32_t registers, stack_bytes, shared_bytes;
  uint64_t instructions;
  uint32_t *lines; // by line, 0 to nlines; line 0: those without one
  uint32_t nlines;
  kl_sass_instruction *code; // the same ones, block by block; NULL: not known
  uint32_t ncode;
} kl_cubin;
// `sass`: what nvdisasm -c says of it, or NULL. INVALID with a finding: no ELF file of the architecture, damaged, or
// without the kernel; a text that is not of this file. `most`: the highest line that counts. Arrays are the arena's.
kiln_status kl_cubin_read(kl_ctx *cx, kl_arena *a, const void *data, size_t size, const char *sass, kl_str kernel,
                          uint32_t most, kl_cubin *out);

#endif

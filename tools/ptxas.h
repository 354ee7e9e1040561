// NVIDIA's assembler and disassembler, run as programs of their own.
#ifndef TOOLS_PTXAS_H
#define TOOLS_PTXAS_H

#include "kiln.h"

// What KILN_PTXAS names, or the one in PATH, in CUDA_HOME, in /usr/local/cuda. False: there is none.
bool ptxas_find(char *path, size_t size);
bool nvdisasm_find(char *path, size_t size); // the same with KILN_NVDISASM

typedef struct assembly {
  char *cubin, *log, *sass; // log and sass end with NUL; NULL: none
  size_t cubin_size;
} assembly;
// Assembles PTX in a folder of its own, which is gone afterwards; `lines`: with -lineinfo -v. At most a minute. An exit
// status; the log says why ptxas refused, and what else was in the way has been said. `nvdisasm`: says what came out,
// or NULL; where it cannot, that is said and there is no `sass`. Free with assembly_free.
int ptxas_assemble(const char *ptxas, const char *nvdisasm, const char *target, const char *ptx, size_t size,
                   bool lines, assembly *out);
void assembly_free(assembly *a);

#endif

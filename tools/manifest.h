// What kiln compile writes of an artifact. Each takes one that has PTX, where that is what it writes.
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H

#include "kiln.h"

// In hexadecimal; returns `out`.
const char *hash_text(const kiln_manifest *m, char out[2 * KILN_HASH_SIZE + 1]);
// One JSON object, without a line break behind it.
void put_json(FILE *to, const kiln_artifact *a);
// A C header with the PTX for all targets, a function that loads what the device runs and one that launches it, all
// called after `prefix`, a C identifier. An exit status.
// With `cubins` it has machine code in place of PTX.
int put_header(FILE *to, kiln_context *cx, const char *prefix, const kiln_bundle *b, bool cubins);
// The names as a C identifier; `fusion` may be NULL. To be freed; NULL if memory is short.
char *header_prefix(const char *module, const char *fusion);
// Machine code by NVIDIA's ptxas, or by its nvJitLink, where one is installed (cubin.c). An exit status.
typedef struct machine_code {
  char *bytes; // free
  size_t size;
} machine_code;
int make_cubin(kiln_context *cx, const kiln_artifact *a, machine_code *out);
int put_cubin(FILE *to, kiln_context *cx, const kiln_artifact *a);

#endif

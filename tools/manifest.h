// What kiln compile writes beside code. To `path`, or standard output for NULL; an exit status.
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H

#include "kiln.h"

int write_json(const char *path, const kiln_artifact *a);
// A C header with the PTX, a function that loads it and one that launches it; `module` gives the names.
int write_header(const char *path, const char *module, const kiln_artifact *a);
// Machine code by NVIDIA's ptxas, where one is installed (cubin.c).
int write_cubin(const char *path, const kiln_artifact *a);

#endif

// Artifacts from a file, in place of a module that is compiled.
#ifndef TOOLS_SAVED_H
#define TOOLS_SAVED_H

#include "kiln.h"

// A module with the interface that the artifacts have, which says nothing of what they do: what tells how the buffers
// lie, fills them and takes them to files. Both are the caller's. An exit status.
int saved_open(kiln_context *cx, const char *path, const void *bytes, size_t size, kiln_bundle **b, kiln_module **m);

#endif

// What the makers of modules share: limits on shapes, and the module's life.
#ifndef KL_SHAPE_H
#define KL_SHAPE_H

#include "ir/hlo.h"

enum {
  KL_MAX_TUPLE_DEPTH = 100, // tuples in tuples: bounds every recursion over shapes
  KL_MAX_LEAVES = 1 << 24,  // arrays in one tuple: bounds every walk over them
};

void kl_shapes_free(kiln_module *m);

// An empty module, for the parser and the builder to fill.
kiln_module *kl_module_new(kl_ctx *cx);

#endif

// Results that are made value by value of parameters that share one structure: without the dense tensor. Private to
// this room.
#ifndef KL_DENSIFY_SAME_H
#define KL_DENSIFY_SAME_H

#include "ir/densify/tensor.h"

enum { KL_MOST_SHARING = 16 };

typedef struct kl_sharing {
  const kiln_module *m;
  const kl_tensor *tensors;  // by leaf of the interface; empty where there is no encoding
  const uint32_t *structure; // by leaf of the parameters: whose positions and coordinates it has
} kl_sharing;

// What a result is made of.
typedef struct kl_shared {
  uint32_t structure; // the parameter's leaf whose positions and coordinates it has
  uint32_t n;
  uint32_t leaves[KL_MOST_SHARING]; // whose values it is made of
} kl_shared;

// Same shape, and the same encoding but for explicit and implicit values?
bool kl_same_structure(kl_ctx *cx, const kl_tensor *a, const kl_tensor *b);
// Is result leaf `result`, of that shape and implicit value, an elementwise function of sparse parameters of one
// structure, and of constants, which makes the implicit value of the implicit values?
bool kl_is_shared(kl_ctx *cx, const kl_sharing *s, size_t result, kl_shared *out);
// The computation (positions and coordinates, values of each leaf) -> (arrays, counts), as kl_pack_tensor's.
uint32_t kl_share(kl_graph *g, const kl_sharing *s, size_t result, const kl_shared *of, const char *name);

#endif

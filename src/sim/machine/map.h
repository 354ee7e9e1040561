// Memory of the host straight from the system: zeros, which take no room before they are touched.
#ifndef KL_MACHINE_MAP_H
#define KL_MACHINE_MAP_H

#include <stdint.h>

// How much of what is mapped will be touched.
typedef enum kl_map_use {
  KL_MAP_DENSE,  // mostly all of it, as of a buffer
  KL_MAP_SPARSE, // a little here and there, as of stacks
} kl_map_use;

// The system hands out dense memory of middling size in huge pages where it has them: one fault for two MiB in place of
// 512, which cost more than what a kernel does with the bytes. What is larger is mostly looked at in samples. NULL: no
// memory, or no bytes are asked for.
void *kl_map(uint64_t bytes, kl_map_use use);
// Gives back what kl_map gave for as many bytes; NULL is nothing.
void kl_unmap(void *p, uint64_t bytes);

#endif

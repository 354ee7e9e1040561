// A program that leaves memory behind: the stand-in's account must end it badly.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Reachable at the end: a leak checker that looks before the stand-in finds nothing of its own to say.
static uint64_t at;

int main(int argc, char **argv) {
  int (*alloc)(uint64_t *, size_t);
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void *entry = library ? dlsym(library, "cuMemAlloc_v2") : NULL;
  if (!entry) return EXIT_FAILURE;
  memcpy(&alloc, &entry, sizeof alloc);
  return alloc(&at, 100);
}

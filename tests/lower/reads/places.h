// Where elements lie in memory, by the definition of tiled layouts.
#ifndef TESTS_READS_PLACES_H
#define TESTS_READS_PLACES_H

#include "ir/hlo.h"

// By position, the number of the element there, or -1 for padding; `n` positions. The caller frees.
int64_t *places_of(const kl_shape *s, int64_t *n);
// A random shape with a layout of up to two tiles, as text.
void random_place(char *text);

#endif

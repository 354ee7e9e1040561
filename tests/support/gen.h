// Random fusions as HLO text, from a seed or from a fuzzer's bytes. Every text is a valid module that kiln compiles.
#ifndef KL_GEN_H
#define KL_GEN_H

#include "ir/hlo.h"

typedef struct gen_source {
  uint64_t seed;        // state of the generator
  const uint8_t *bytes; // or, while they last, a fuzzer's bytes
  size_t size;
  bool whole; // also buffers in tiles, with padding, of elements of other sizes; bitcasts between widths; maps,
              // conditionals
} gen_source;

// Writes one module into `out`. `ops` is about how many operations it has.
void gen_fusion(gen_source *src, unsigned ops, kl_sb *out);

// Fills a parameter's buffer: sane values, or with `wild` also NaN, infinities, denormals and random bit patterns.
void gen_fill(uint64_t seed, kl_dtype t, int64_t bytes, bool wild, void *buffer);

#endif

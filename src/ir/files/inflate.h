// The deflate format (RFC 1951), read.
#ifndef KL_INFLATE_H
#define KL_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Exactly `size` bytes from exactly n. NULL, or what is wrong: static; *at: before which byte.
const char *kl_inflate(const unsigned char *in, size_t n, unsigned char *out, size_t size, size_t *at);
// The checksum of ZIP files.
uint32_t kl_crc32(uint32_t crc, const void *data, size_t n);

#endif

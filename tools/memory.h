// Amounts of memory.
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// "4096", "512K", "1.5G": bytes, in units of 1024. False if it is no such text, or no number of bytes from 1.
bool memory_parse(const char *text, int64_t *out);
// "48 bytes", "1.5 KiB", "3.6 PiB".
void memory_text(int64_t bytes, char *out, size_t size);
// a + b and a * b for bytes from 0; INT64_MAX where there are more.
int64_t memory_add(int64_t a, int64_t b);
int64_t memory_multiply(int64_t a, int64_t b);

#endif

// Amounts of memory, as numbers and as text.

#include "memory.h"

#include <stdio.h>
#include <string.h>

int64_t memory_add(int64_t a, int64_t b) {
  int64_t n;
  return __builtin_add_overflow(a, b, &n) ? INT64_MAX : n;
}

int64_t memory_multiply(int64_t a, int64_t b) {
  int64_t n;
  return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

// --- text -----------------------------------------------------------------------------------------------------------

static const char units[] = "KMGTPE";

bool memory_parse(const char *text, int64_t *out) {
  size_t digits = strspn(text, "0123456789"), fraction = 0;
  double value = 0, scale = 1;
  if (!digits) return false;
  for (size_t i = 0; i < digits; i++) value = 10 * value + (text[i] - '0');
  const char *p = text + digits;
  if (*p == '.') fraction = strspn(p + 1, "0123456789");
  if (*p == '.' && !fraction) return false;
  for (size_t i = 1; i <= fraction; i++) value += (p[i] - '0') * (scale /= 10);
  p += fraction ? fraction + 1 : 0;
  const char *unit = *p ? strchr(units, *p) : NULL;
  for (const char *u = units; unit && u <= unit; u++) value *= 1024;
  p += unit != NULL;
  if (*p || value < 1 || value >= 0x1p63 || (fraction && !unit)) return false;
  *out = (int64_t)value;
  return true;
}

void memory_text(int64_t bytes, char *out, size_t size) {
  double value = (double)bytes;
  int unit = -1;
  for (; value >= 1024; value /= 1024) unit++;
  if (unit < 0)
    snprintf(out, size, "%lld byte%s", (long long)bytes, bytes == 1 ? "" : "s");
  else
    snprintf(out, size, "%.1f %ciB", value, units[unit]);
}

// Decimal numbers as text.
#ifndef TESTS_DECIMAL_H
#define TESTS_DECIMAL_H

// Digits from the first to the last that is no zero.
static inline int significant_digits(const char *z) {
  int n = 0, zeros = 0;
  for (; *z && *z != 'e'; z++)
    if (*z >= '0' && *z <= '9' && (n || *z != '0')) {
      zeros = *z == '0' ? zeros + 1 : 0;
      n++;
    }
  return n - zeros;
}

#endif

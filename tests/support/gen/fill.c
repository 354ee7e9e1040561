// Inputs.

#include "impl.h"

static uint64_t wild_bits(kl_dtype t, gen_source *s) {
  static const double special[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   0.5,
                                   2.0,
                                   __builtin_inf(),
                                   -__builtin_inf(),
                                   __builtin_nan(""),
                                   1e-40,
                                   -1e-40,
                                   1e-310,
                                   65504,
                                   448,
                                   57344,
                                   3e38,
                                   1e300,
                                   -128,
                                   255,
                                   2147483648.0,
                                   9.3e18};
  uint64_t r = gen_next(s);
  if (t == KILN_PRED) return r & 1;
  if (!kl_is_float(t)) return r & 3 ? gen_next(s) & kl_int_mask(t) : (r >> 8) % 3 - 1;
  if ((r & 3) == 0) return kl_float_encode(t, special[(r >> 8) % KL_COUNT(special)]);
  if ((r & 3) == 1) return gen_next(s) & kl_int_mask(t);
  return kl_float_encode(t, ((double)(r >> 11) * 0x1p-53 - 0.5) * 16);
}

static uint64_t sane_bits(kl_dtype t, gen_source *s) {
  uint64_t r = gen_next(s);
  if (t == KILN_PRED) return r & 1;
  if (!kl_is_float(t)) return (uint64_t)((int64_t)(r % 41) - (kl_is_signed(t) ? 20 : 0)) & kl_int_mask(t);
  return kl_float_encode(t, ((double)(r >> 11) * 0x1p-53 - (t == KILN_F8E8M0FNU ? 0 : 0.5)) * 8);
}

void gen_fill(uint64_t seed, kl_dtype t, int64_t bytes, bool wild, void *buffer) {
  gen_source s = {.seed = seed};
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  unsigned bits = kl_info(part)->bits;
  unsigned char *p = buffer;
  for (int64_t at = 0; at < bytes;) {
    uint64_t word = 0;
    for (unsigned b = 0; b < (bits < 8 ? 8 : bits); b += bits)
      word |= (wild ? wild_bits(part, &s) : sane_bits(part, &s)) << b;
    memcpy(p + at, &word, bits < 8 ? 1 : bits / 8);
    at += bits < 8 ? 1 : bits / 8;
  }
}

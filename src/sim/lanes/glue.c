// Moves, extensions, packing: what no arithmetic is in.
#include "sim/isa/glue.h"
#include "sim/lanes/masks.h"

UNARY(mov_16, on16, u16, u16, a[i])
UNARY(mov_32, on32, u32, u32, a[i])
UNARY(mov_64, on64, u64, u64, a[i])
SLOW_UNARY(mov_128, b128, b128, a[i])

EXECUTOR(mov_pred) {
  put_pred(x, o->d, PRED(o->a));
}
EXECUTOR(not_of_pred) {
  put_pred(x, o->d, ~PRED(o->a));
}
EXECUTOR(and_of_preds) {
  put_pred(x, o->d, PRED(o->a) & PRED(o->b));
}
EXECUTOR(andn_of_preds) {
  put_pred(x, o->d, PRED(o->a) & ~PRED(o->b));
}

EXECUTOR(select_32) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b);
  u32 *d = AT(u32, o->d), p = PRED(o->c);
  LANES(on32, d, p & kl_bit[i] ? a[i] : b[i]);
}

#define OF_PRED(bits, U, S, on)                                                                                        \
  EXECUTOR(pred_to_##bits) {                                                                                           \
    U *d = AT(U, o->d);                                                                                                \
    uint32_t p = PRED(o->a);                                                                                           \
    LANES(on, d, p &kl_bit[i] ? 1 : 0);                                                                                \
  }                                                                                                                    \
  EXECUTOR(pred_of_##bits) {                                                                                           \
    const U *a = AT(U, o->a);                                                                                          \
    S m[KL_LANES];                                                                                                     \
    ALL(KL_LANES, m[i] = (S) - (a[i] != 0));                                                                           \
    put_pred(x, o->d, bits_of_##bits(m));                                                                              \
  }
OF_PRED(16, u16, s16, on16)
OF_PRED(32, u32, s32, on32)
OF_PRED(64, u64, s64, on64)

UNARY(zext_8_16, on16, u16, u16, a[i] & 255)
UNARY(zext_8_32, on32, u32, u16, a[i] & 255)
UNARY(zext_8_64, on64, u64, u16, a[i] & 255)
UNARY(zext_16_32, on32, u32, u16, a[i])
UNARY(zext_16_64, on64, u64, u16, a[i])
UNARY(zext_32_64, on64, u64, u32, a[i])
SLOW_UNARY(zext_64_128, b128, u64, ((b128){a[i], 0}))
UNARY(sext_8_16, on16, s16, u16, (s8)a[i])
UNARY(sext_8_32, on32, s32, u16, (s8)a[i])
UNARY(sext_8_64, on64, s64, u16, (s8)a[i])
UNARY(sext_16_32, on32, s32, s16, a[i])
UNARY(sext_16_64, on64, s64, s16, a[i])
UNARY(sext_32_64, on64, s64, s32, a[i])
UNARY(trunc_32_8, on16, u16, u32, (u8)a[i])
UNARY(trunc_64_8, on16, u16, u64, (u8)a[i])
UNARY(trunc_32_16, on16, u16, u32, (u16)a[i])
UNARY(trunc_64_16, on16, u16, u64, (u16)a[i])
UNARY(trunc_64_32, on32, u32, u64, (u32)a[i])
SLOW_UNARY(trunc_128_64, u64, b128, a[i].low)

// --- packing -------------------------------------------------------------------------------------------------------

BINARY(pack_2x8_16, on16, u16, u16, u16, (u16)((a[i] & 255) | b[i] << 8))
BINARY(pack_2x16_32, on32, u32, u16, u16, a[i] | (u32)b[i] << 16)
BINARY(pack_2x32_64, on64, u64, u32, u32, a[i] | (u64)b[i] << 32)
SLOW_BINARY(pack_2x64_128, b128, u64, u64, ((b128){a[i], b[i]}))

#define PACK4(name, on, D, S, value)                                                                                   \
  EXECUTOR(name) {                                                                                                     \
    const S *a = AT(S, o->a), *b = AT(S, o->b), *c = AT(S, o->c), *f = AT(S, o->f);                                    \
    D *d = AT(D, o->d);                                                                                                \
    LANES(on, d, value);                                                                                               \
  }
PACK4(pack_4x8_32, on32, u32, u16, (a[i] & 255u) | (b[i] & 255u) << 8 | (c[i] & 255u) << 16 | (u32)f[i] << 24)
PACK4(pack_4x16_64, on64, u64, u16, a[i] | (u64)b[i] << 16 | (u64)c[i] << 32 | (u64)f[i] << 48)
EXECUTOR(pack_4x32_128) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c), *f = AT(u32, o->f);
  b128 *d = AT(b128, o->d);
  SLOWLY(d, ((b128){a[i] | (u64)b[i] << 32, c[i] | (u64)f[i] << 32}));
}

#define PART(on, U, to, value)                                                                                         \
  do {                                                                                                                 \
    if ((to) == KL_NO_REF) break;                                                                                      \
    U *d = AT(U, to);                                                                                                  \
    LANES(on, d, value);                                                                                               \
  } while (0)
#define UNPACK2(name, on, U, S, low, high)                                                                             \
  EXECUTOR(name) {                                                                                                     \
    const S *a = AT(S, o->a);                                                                                          \
    PART(on, U, o->d, low);                                                                                            \
    PART(on, U, o->e, high);                                                                                           \
  }
#define UNPACK4(name, on, U, S, one, two, three, four)                                                                 \
  EXECUTOR(name) {                                                                                                     \
    const S *a = AT(S, o->a);                                                                                          \
    PART(on, U, o->d, one);                                                                                            \
    PART(on, U, o->e, two);                                                                                            \
    PART(on, U, o->c, three);                                                                                          \
    PART(on, U, o->f, four);                                                                                           \
  }
// Eight bits come out of registers as wide as those they go to, which may be the same one.
EXECUTOR(unpack_2x8_16) {
  u16 a[KL_LANES];
  memcpy(a, AT(u16, o->a), sizeof a);
  PART(on16, u16, o->d, a[i] & 255);
  PART(on16, u16, o->e, a[i] >> 8);
}
UNPACK2(unpack_2x16_32, on16, u16, u32, (u16)a[i], (u16)(a[i] >> 16))
UNPACK2(unpack_2x32_64, on32, u32, u64, (u32)a[i], (u32)(a[i] >> 32))
UNPACK2(unpack_2x64_128, on64, u64, b128, a[i].low, a[i].high)
UNPACK4(unpack_4x8_32, on16, u16, u32, a[i] & 255, a[i] >> 8 & 255, a[i] >> 16 & 255, (u16)(a[i] >> 24))
UNPACK4(unpack_4x16_64, on16, u16, u64, (u16)a[i], (u16)(a[i] >> 16), (u16)(a[i] >> 32), (u16)(a[i] >> 48))
UNPACK4(unpack_4x32_128, on32, u32, b128, (u32)a[i].low, (u32)(a[i].low >> 32), (u32)a[i].high, (u32)(a[i].high >> 32))

KL_TOPIC(glue, KL_ISA_GLUE);

// CUDA's integer intrinsics for the host.
#ifndef INTEGERS_H
#define INTEGERS_H

#include <stdint.h>

#define SIMT_FN static inline __attribute__((unused))

SIMT_FN int __popc(unsigned x) {
  return __builtin_popcount(x);
}
SIMT_FN int __popcll(uint64_t x) {
  return __builtin_popcountll(x);
}
SIMT_FN int __clz(int x) {
  return x ? __builtin_clz((unsigned)x) : 32;
}
SIMT_FN int __clzll(long long x) {
  return x ? __builtin_clzll((uint64_t)x) : 64;
}
SIMT_FN int __ffs(int x) {
  return __builtin_ffs(x);
}
SIMT_FN int __ffsll(long long x) {
  return __builtin_ffsll(x);
}

SIMT_FN unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
SIMT_FN unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}

SIMT_FN int __mulhi(int a, int b) {
  return (int)((int64_t)a * b >> 32);
}
SIMT_FN unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((uint64_t)a * b >> 32);
}
SIMT_FN long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
SIMT_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
SIMT_FN int __mul24(int a, int b) {
  return (int)(unsigned)((int64_t)((int)((unsigned)a << 8) >> 8) * ((int)((unsigned)b << 8) >> 8));
}
SIMT_FN unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffff) * (b & 0xffffff);
}
SIMT_FN unsigned __sad(int a, int b, unsigned c) {
  return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
SIMT_FN unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a > b ? a - b : b - a);
}
SIMT_FN int __hadd(int a, int b) {
  return (int)(((int64_t)a + b) >> 1);
}
SIMT_FN int __rhadd(int a, int b) {
  return (int)(((int64_t)a + b + 1) >> 1);
}
SIMT_FN unsigned __uhadd(unsigned a, unsigned b) {
  return (unsigned)(((uint64_t)a + b) >> 1);
}
SIMT_FN unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((uint64_t)a + b + 1) >> 1);
}

SIMT_FN unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  uint64_t all = (uint64_t)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (unsigned)(all >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
  return r;
}
SIMT_FN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
SIMT_FN unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) << (n < 32 ? n : 32) >> 32);
}
SIMT_FN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (n & 31));
}
SIMT_FN unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (n < 32 ? n : 32));
}

SIMT_FN int simt_dp4a_s(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c = (int)((unsigned)c + (unsigned)((int8_t)(a >> i) * (int8_t)(b >> i)));
  return c;
}
SIMT_FN unsigned simt_dp4a_u(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}
#define __dp4a(a, b, c) _Generic((c), int : simt_dp4a_s, unsigned : simt_dp4a_u)(a, b, c)

// a holds two halfwords, b bytes, of which the low or the high two count.
SIMT_FN int simt_dp2a_s(int a, int b, int c, int from) {
  for (int i = 0; i < 2; i++)
    c = (int)((unsigned)c + (unsigned)((int16_t)(a >> 16 * i) * (int8_t)(b >> (from + 8 * i))));
  return c;
}
#define __dp2a_lo(a, b, c) simt_dp2a_s(a, b, c, 0)
#define __dp2a_hi(a, b, c) simt_dp2a_s(a, b, c, 16)

// Words as four bytes or two halfwords, lane by lane.
#define SIMT_LANEWISE(name, bits, T, expr)                                                                             \
  SIMT_FN unsigned name(unsigned a, unsigned b) {                                                                      \
    unsigned r = 0;                                                                                                    \
    for (int i = 0; i < 32; i += bits) {                                                                               \
      int x = (T)(a >> i), y = (T)(b >> i);                                                                            \
      r |= ((unsigned)(expr) & ((1u << bits) - 1)) << i;                                                               \
    }                                                                                                                  \
    return r;                                                                                                          \
  }
#define SIMT_CLAMP(v, low, high) ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))
SIMT_LANEWISE(__vadd4, 8, uint8_t, x + y)
SIMT_LANEWISE(__vsub2, 16, uint16_t, x - y)
SIMT_LANEWISE(__vaddss2, 16, int16_t, SIMT_CLAMP(x + y, -32768, 32767))
SIMT_LANEWISE(__vsubus4, 8, uint8_t, SIMT_CLAMP(x - y, 0, 255))
SIMT_LANEWISE(__vavgu4, 8, uint8_t, (x + y + 1) >> 1)
SIMT_LANEWISE(__vabsdiffu4, 8, uint8_t, x > y ? x - y : y - x)
SIMT_LANEWISE(__vmaxs2, 16, int16_t, x > y ? x : y)
SIMT_LANEWISE(__vminu4, 8, uint8_t, x < y ? x : y)
SIMT_LANEWISE(__vcmpgts4, 8, int8_t, x > y ? 255 : 0)
SIMT_LANEWISE(__vseteq2, 16, uint16_t, x == y)

#endif

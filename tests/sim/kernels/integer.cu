// Integers: bits, bytes, products' high halves, sums with carries, lanes within a word, divisions, 64 and 128 bits.
#include "device.h"

#ifdef __CUDACC__
#define ASM3(name, T, code, reg, expr)                                                                                 \
  DEVICE T name(T a, unsigned b, unsigned c) {                                                                         \
    T r;                                                                                                               \
    asm(code : "=" reg(r) : reg(a), "r"(b), "r"(c));                                                                   \
    return r;                                                                                                          \
  }
#else
#define ASM3(name, T, code, reg, expr)                                                                                 \
  DEVICE T name(T a, unsigned b, unsigned c) {                                                                         \
    return expr;                                                                                                       \
  }

// PTX ISA, bfe: the last bit that lies inside gives the sign; bits above are filled with it.
static uint64_t extract(uint64_t a, unsigned pos, unsigned len, unsigned bits, bool sign) {
  pos &= 255;
  len &= 255;
  if (!len) return 0;
  unsigned last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
  uint64_t fill = sign && (a >> last & 1) ? ~UINT64_C(0) : 0, r = 0;
  for (unsigned i = 0; i < bits; i++) r |= (i < len && pos + i < bits ? a >> (pos + i) & 1 : fill >> i & 1) << i;
  return r;
}
#endif
ASM3(field_u32, unsigned, "bfe.u32 %0, %1, %2, %3;", "r", (unsigned)extract(a, b, c, 32, false))
ASM3(field_s32, int, "bfe.s32 %0, %1, %2, %3;", "r", (int)extract((unsigned)a, b, c, 32, true))
ASM3(field_u64, unsigned long long, "bfe.u64 %0, %1, %2, %3;", "l", extract(a, b, c, 64, false))
ASM3(field_s64, long long, "bfe.s64 %0, %1, %2, %3;", "l", (long long)extract((uint64_t)a, b, c, 64, true))

// PTX ISA, bfi.
DEVICE unsigned insert(unsigned a, unsigned into, unsigned pos, unsigned len) {
#ifdef __CUDACC__
  unsigned r;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(into), "r"(pos), "r"(len));
  return r;
#else
  unsigned r = into;
  for (unsigned i = 0; i < (len & 255) && i + (pos & 255) < 32; i++) {
    unsigned bit = 1u << (i + (pos & 255));
    r = a >> i & 1 ? r | bit : r & ~bit;
  }
  return r;
#endif
}

KERNEL3(integer_bits, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned a = in[2 * i], b = in[2 * i + 1], pos = b & 63, len = b >> 8 & 63, *r = out + i * 20;
  unsigned long long w = (unsigned long long)a << 32 | b;
  r[0] = (unsigned)(__popc(a) + 100 * __popcll(w));
  r[1] = (unsigned)(__clz((int)a) + 100 * __clzll((long long)w));
  r[2] = (unsigned)(__ffs((int)b) + 100 * __ffsll((long long)w));
  r[3] = __brev(a);
  r[4] = (unsigned)(__brevll(w) >> 16);
  r[5] = __byte_perm(a, b, 0x3715u);
  r[6] = __byte_perm(a, b, b);
  r[7] = __funnelshift_l(a, b, b >> 3);
  r[8] = __funnelshift_r(a, b, b >> 3);
  r[9] = __funnelshift_lc(a, b, b & 63);
  r[10] = __funnelshift_rc(a, b, b & 63);
  r[11] = field_u32(a, pos, len);
  r[12] = (unsigned)field_s32((int)a, pos, len);
  r[13] = (unsigned)(field_u64(w, pos, len) >> 3);
  r[14] = (unsigned)(field_s64((long long)w, pos, len) >> 3);
  r[15] = insert(a, b, pos, len);
  r[16] = (a & b) ^ (~a & 0x55555555u) ^ (b | 0xf0f0f0f0u);
  r[17] = a << (b & 31) ^ a >> (b & 31) ^ (unsigned)((int)a >> (b & 31));
  r[18] = (unsigned)(w << (b & 63)) ^ (unsigned)(w >> (b & 63)) ^ (unsigned)((long long)w >> (b & 63));
  r[19] = (unsigned)(unsigned char)a * (unsigned)(unsigned short)b + (unsigned)((int)(signed char)b * (int)(short)a);
}

KERNEL3(integer_products, const int *__restrict__, in, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  int a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = out + i * 18;
  unsigned ua = (unsigned)a, ub = (unsigned)b, uc = (unsigned)c;
  r[0] = __mulhi(a, b);
  r[1] = (int)__umulhi(ua, ub);
  r[2] = __mul24(a, b);
  r[3] = (int)__umul24(ua, ub);
  r[4] = (int)__sad(a, b, uc);
  r[5] = (int)__usad(ua, ub, uc);
  r[6] = __hadd(a, b);
  r[7] = __rhadd(a, b);
  r[8] = (int)__uhadd(ua, ub);
  r[9] = (int)__urhadd(ua, ub);
  r[10] = __dp4a(a, b, c);
  r[11] = (int)__dp4a(ua, ub, uc);
  r[12] = __dp2a_lo(a, b, c);
  r[13] = __dp2a_hi(a, b, c);
  r[14] = (int)(ua * ub + uc);
  r[15] = (int)((long long)a * b >> 7);
  r[16] = (int)(((unsigned long long)ua * ub + uc) >> 9);
  r[17] = min(a, b) ^ max(b, c) ^ (int)min(ua, uc) ^ (int)max(ub, uc) ^ (a < 0 ? (int)(0u - ua) : a);
}

// Lanes of a word: bytes and halfwords.
KERNEL3(integer_lanes, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned a = in[2 * i], b = in[2 * i + 1], *r = out + i * 10;
  r[0] = __vadd4(a, b);
  r[1] = __vsub2(a, b);
  r[2] = __vaddss2(a, b);
  r[3] = __vsubus4(a, b);
  r[4] = __vavgu4(a, b);
  r[5] = __vabsdiffu4(a, b);
  r[6] = __vmaxs2(a, b);
  r[7] = __vminu4(a, b);
  r[8] = __vcmpgts4(a, b);
  r[9] = __vseteq2(a, (b & 0xffff0000u) | (a & 0xffffu));
}

// Quotients and remainders by variables and by constants, of 32 and 64 bits, and a gcd.
KERNEL4(integer_division, const long long *__restrict__, in, long long *__restrict__, out, int, divisor, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  long long a = in[2 * i], b = in[2 * i + 1] | 1, *r = out + i * 10;
  int a32 = (int)a, b32 = (int)b;
  if (b == -1) b = 3;
  if (b32 == -1) b32 = 3;
  r[0] = a / b;
  r[1] = a % b;
  r[2] = (long long)((unsigned long long)a / (unsigned long long)b);
  r[3] = (long long)((unsigned long long)a % (unsigned long long)b);
  r[4] = a32 / b32 + (long long)(a32 % b32) * 65536;
  r[5] = (unsigned)a32 / (unsigned)b32 + (unsigned)a32 % (unsigned)b32;
  r[6] = a / 1000003 + a % 7;
  r[7] = a32 / divisor * 3 + a32 % divisor;
  r[8] = (short)a32 / (short)7 + (unsigned char)a32 % 10;
  unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;
  while (y) {
    unsigned long long t = x % y;
    x = y;
    y = t;
  }
  r[9] = (long long)x;
}

// Sums and products of 128 bits by the compiler, and of 160 bits by a chain of carries.
KERNEL3(integer_carries, const unsigned long long *__restrict__, in, unsigned long long *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned long long a = in[2 * i], b = in[2 * i + 1], *r = out + i * 8;
  unsigned __int128 wide = (unsigned __int128)a * b, sum = wide + ((unsigned __int128)b << 64 | a);
  __int128 sign = (__int128)((unsigned __int128)(long long)a * (unsigned __int128)(long long)b);
  sum -= (unsigned __int128)(sign >> 5);
  r[0] = (unsigned long long)sum;
  r[1] = (unsigned long long)(sum >> 64);
  r[2] = __umul64hi(a, b) ^ (unsigned long long)__mul64hi((long long)a, (long long)b);
  r[3] = (unsigned long long)(wide >> (a & 127));
  r[4] = wide > sum;
  unsigned x[5] = {(unsigned)a, (unsigned)(a >> 32), ~0u, ~0u, (unsigned)b},
           y[5] = {(unsigned)b, (unsigned)(b >> 32), 0u, 0u, 7u}, s[5], d[5];
#ifdef __CUDACC__
  asm("{\n\tadd.cc.u32 %0, %5, %10;\n\taddc.cc.u32 %1, %6, %11;\n\taddc.cc.u32 %2, %7, %12;\n\t"
      "addc.cc.u32 %3, %8, %13;\n\taddc.u32 %4, %9, %14;\n\t}"
      : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3]), "=&r"(s[4])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]));
  asm("{\n\tsub.cc.u32 %0, %5, %10;\n\tsubc.cc.u32 %1, %6, %11;\n\tsubc.cc.u32 %2, %7, %12;\n\t"
      "subc.cc.u32 %3, %8, %13;\n\tsubc.u32 %4, %9, %14;\n\t}"
      : "=&r"(d[0]), "=&r"(d[1]), "=&r"(d[2]), "=&r"(d[3]), "=&r"(d[4])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]));
#else
  unsigned long long carry = 0, borrow = 0;
  for (int k = 0; k < 5; k++) {
    unsigned long long t = (unsigned long long)x[k] + y[k] + carry, u = (unsigned long long)x[k] - y[k] - borrow;
    s[k] = (unsigned)t;
    d[k] = (unsigned)u;
    carry = t >> 32;
    borrow = u >> 63;
  }
#endif
  r[5] = (unsigned long long)s[1] << 32 | s[0];
  r[6] = (unsigned long long)(s[3] ^ d[3]) << 32 | (s[2] ^ d[2]);
  r[7] = (unsigned long long)s[4] << 32 | (d[4] ^ d[1] ^ d[0]);
}

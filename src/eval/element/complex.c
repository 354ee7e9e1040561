// Complex arithmetic and functions, one instance of complex_fn.h per type.
#include "eval/impl.h"

#include <math.h>

// libm's functions on complex numbers and on _Float128, declared here alike for every compiler: headers differ in what
// they show of the latter.
typedef _Complex float quad_complex __attribute__((mode(TC)));
#define COMPLEX_FUNCTIONS(X)                                                                                           \
  X(exp) X(log) X(tanh) X(sqrt) X(sin) X(cos) X(tan) X(sinh) X(cosh) X(asin) X(acos) X(atan) X(asinh) X(acosh) X(atanh)
#define DECLARE(f)                                                                                                     \
  extern _Complex double c##f(_Complex double);                                                                        \
  extern quad_complex c##f##f128(quad_complex);
COMPLEX_FUNCTIONS(DECLARE)
#define QUAD1(X)    X(exp) X(expm1) X(log) X(log1p) X(sin) X(cos) X(exp10)
#define DECLARE1(f) extern __float128 f##f128(__float128);
QUAD1(DECLARE1)
extern __float128 hypotf128(__float128, __float128);
extern __float128 atan2f128(__float128, __float128);

// ln 10 as a sum of 40-bit pieces p[i] * 2^(-40 i): the product of an f64 and a piece is exact in _Float128.
static const int64_t ln10_pieces[] = {
    0x2,          0x4d763776aa, 0xa2b05ba95b, 0x58ae0b4c28, 0xa38a3fb3e7, 0x6977e43a0f, 0x187a0807c0, 0xb5ca58bc0b,
    0x5ec6a04173, 0x31c32f00b1, 0x7c35a0b188, 0x9061042f8b, 0x6bee3de210, 0xb945b59e0,  0xb3e28a2a32, 0x4479d96a9b,
    0xec360c7ef,  0xbd9b3ac12a, 0xcf1be94586, 0xed2748671e, 0xef299ecd6c, 0x8d8142163a, 0x4cda3511e2, 0x713d6c22c1,
    0x5f57b7883d, 0x1a7a963a4c, 0x17a607891e, 0x3f2ab4ebba, 0x627356d0b9, 0xa89c586691, 0xfb2c9a5e31,
};
enum { LN10_PIECES = KL_COUNT(ln10_pieces) };

// NaN without a sign: signs that C leaves open are plus.
#define CALL_COMPLEX(f, T, TYPE, z)                                                                                    \
  ({                                                                                                                   \
    TYPE kl_z = (z);                                                                                                   \
    T kl_c;                                                                                                            \
    __real__ kl_c = kl_z.re == kl_z.re ? kl_z.re : (__typeof__(kl_z.re))NAN;                                           \
    __imag__ kl_c = kl_z.im == kl_z.im ? kl_z.im : (__typeof__(kl_z.im))NAN;                                           \
    kl_c = f(kl_c);                                                                                                    \
    (TYPE){__real__ kl_c, __imag__ kl_c};                                                                              \
  })

#define P        float
#define W        double
#define Z(name)  c64_##name
#define M(f)     f
#define MC(f, z) CALL_COMPLEX(c##f, _Complex double, c64_wide, z)
#include "eval/element/complex_fn.h"
#undef P
#undef W
#undef Z
#undef M
#undef MC

#define P        double
#define W        __float128
#define Z(name)  c128_##name
#define M(f)     f##f128
#define MC(f, z) CALL_COMPLEX(c##f##f128, quad_complex, c128_wide, z)
#include "eval/element/complex_fn.h"
#undef P
#undef W
#undef Z
#undef M
#undef MC

kl_ew_run *kl_ew_complex(const kl_ew *e) {
  kl_dtype t = e->op == KL_OP_COMPLEX ? e->out : e->in[0];
  kl_dtype part = kl_info(t)->part;
  bool gives_part = e->op == KL_OP_ABS || e->op == KL_OP_REAL || e->op == KL_OP_IMAG;
  if (e->op == KL_OP_COMPLEX ? e->in[0] != part || e->in[1] != part : e->out != (gives_part ? part : t)) return NULL;
  return t == KILN_C64 ? c64_select(e->op) : t == KILN_C128 ? c128_select(e->op) : NULL;
}

// Rows of approximations, and of the functions that only approximations compute. PTX ISA 9.7.3.
//
// Each gives the correctly rounded value of the function, where the ISA allows an error; the infinities, zeros and NaNs
// of its tables are as they say. Where a warp asks for it (kl_lanes.perturb), results lie anywhere within the bounds
// of KL_ISA_BOUNDS instead, picked by the operand; zeros, infinities and NaNs stay what they are, and so do signs.
#ifndef KL_ISA_SPECIAL_H
#define KL_ISA_SPECIAL_H

// clang-format off
//  executor        pattern                                operands  unit      spread  grade     section
#define KL_ISA_SPECIAL(X)                                                                                              \
  X(div_full_f32,   "div.full{.ftz}.f32",                  "w=ww",   SPECIAL,  ALL,    MODELLED, "9.7.3.8")            \
  X(div_approx_f32, "div.approx{.ftz}.f32",                "w=ww",   SPECIAL,  ALL,    MODELLED, "9.7.3.8")            \
  X(rcp_approx_f32, "rcp.approx{.ftz}.f32",                "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.13")           \
  X(rcp_approx_f64, "rcp.approx.ftz.f64",                  "l=l",    SPECIAL,  ALL,    MODELLED, "9.7.3.14")           \
  X(sqrt_approx_f32, "sqrt.approx{.ftz}.f32",              "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.15")           \
  X(rsqrt_approx_f32, "rsqrt.approx{.ftz}.f32",            "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.16")           \
  X(rsqrt_approx_f64, "rsqrt.approx.f64",                  "l=l",    SPECIAL,  ALL,    MODELLED, "9.7.3.16")           \
  X(rsqrt_approx_ftz_f64, "rsqrt.approx.ftz.f64",          "l=l",    SPECIAL,  ALL,    MODELLED, "9.7.3.17")           \
  X(sin_f32,        "sin.approx{.ftz}.f32",                "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.18")           \
  X(cos_f32,        "cos.approx{.ftz}.f32",                "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.19")           \
  X(lg2_f32,        "lg2.approx{.ftz}.f32",                "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.20")           \
  X(ex2_f32,        "ex2.approx{.ftz}.f32",                "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.21")           \
  X(tanh_f32,       "tanh.approx.f32",                     "w=w",    SPECIAL,  ALL,    MODELLED, "9.7.3.22")           \
  X(tanh_f16,       "tanh.approx.f16",                     "h=h",    SPECIAL,  ALL,    MODELLED, "9.7.4.10")           \
  X(tanh_f16x2,     "tanh.approx.f16x2",                   "w=w",    SPECIAL,  PAIRS,  MODELLED, "9.7.4.10")           \
  X(tanh_bf16,      "tanh.approx.bf16",                    "h=h",    SPECIAL,  ALL,    MODELLED, "9.7.4.10")           \
  X(tanh_bf16x2,    "tanh.approx.bf16x2",                  "w=w",    SPECIAL,  PAIRS,  MODELLED, "9.7.4.10")           \
  X(ex2_f16,        "ex2.approx.f16",                      "h=h",    SPECIAL,  ALL,    MODELLED, "9.7.4.11")           \
  X(ex2_f16x2,      "ex2.approx.f16x2",                    "w=w",    SPECIAL,  PAIRS,  MODELLED, "9.7.4.11")           \
  X(ex2_bf16,       "ex2.approx.ftz.bf16",                 "h=h",    SPECIAL,  ALL,    MODELLED, "9.7.4.11")           \
  X(ex2_bf16x2,     "ex2.approx.ftz.bf16x2",               "w=w",    SPECIAL,  PAIRS,  MODELLED, "9.7.4.11")

// How far a result may lie from the function's value v: the greatest of so many units in the last place of the rounded
// result, a part of |v|, and a constant. Where no bound is stated, as for sines beyond 100 pi, results are not
// perturbed.
//  function    ulps  relative         absolute         instructions                       in the words of the ISA
#define KL_ISA_BOUNDS(X)                                                                                               \
  X(DIV,         2,    0,               0,               "div.full.f32, div.approx.f32",    "2 ulp; .approx where |b| is in [2^-126, 2^126]")\
  X(RCP,         1,    0,               0,               "rcp.approx.f32",                  "1 ulp")                   \
  X(SQRT,        0,    0x1p-23,         0,               "sqrt.approx.f32",                 "relative 2^-23")          \
  X(RSQRT,       0,    0x1.125fbep-23,  0,               "rsqrt.approx.f32",                "relative 2^-22.9")        \
  X(SINE,        0,    0,               0x1.6a09e6p-21,  "sin.approx.f32, cos.approx.f32",  "absolute 2^-20.5 in [-2 pi, 2 pi]")\
  X(SINE_FAR,    0,    0,               0x1.3b2c47p-15,  "sin.approx.f32, cos.approx.f32",  "absolute 2^-14.7 in [-100 pi, 100 pi]")\
  X(LG2,         0,    0x1p-22,         0,               "lg2.approx.f32",                  "relative 2^-22 outside of (0.5, 2)")\
  X(LG2_NEAR,    0,    0,               0x1p-22,         "lg2.approx.f32",                  "absolute 2^-22 in (0.5, 2)")\
  X(EX2,         2,    0,               0,               "ex2.approx.f32",                  "2 ulp")                   \
  X(TANH,        0,    0x1p-11,         0,               "tanh.approx.f32",                 "relative 2^-11")          \
  X(TANH_F16,    0,    0,               0x1.025135p-11,  "tanh.approx.f16, .f16x2",         "absolute 2^-10.987")      \
  X(TANH_BF16,   0,    0,               0x1p-8,          "tanh.approx.bf16, .bf16x2",       "absolute 2^-8")           \
  X(EX2_F16,     0,    0x1.125fbep-10,  0,               "ex2.approx.f16, .f16x2",          "relative 2^-9.9")         \
  X(EX2_BF16,    0,    0x1p-7,          0,               "ex2.approx.ftz.bf16, .bf16x2",    "relative 2^-7")
// clang-format on

#define KL_ISA_BOUND_NAME(function, ...) KL_BOUND_##function,
enum { KL_ISA_BOUNDS(KL_ISA_BOUND_NAME) KL_BOUND_NONE };
#undef KL_ISA_BOUND_NAME

#endif

// Rows of approximations, and of the functions that only approximations compute. PTX ISA 9.7.3.
//
// Each gives the correctly rounded value of the function, where the ISA allows an error; the infinities, zeros and NaNs
// of its tables are as they say.
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
// clang-format on

#endif

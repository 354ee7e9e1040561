// Rows of floating point: f32, f64, pairs of f32, and halves added to f32. PTX ISA 9.7.3, 9.7.5 (mixed precision).
//
// A NaN of f32 is 0x7fffffff. One of f64, which the ISA leaves open, is the first operand that is one, made quiet, or
// 0xfff8000000000000 where none is; abs and neg of f64 pass NaNs unchanged.
#ifndef KL_ISA_FLOAT_H
#define KL_ISA_FLOAT_H

// clang-format off
#define KL_RND  "{.rn|.rz|.rm|.rp}"
#define KL_RND1 "(.rn|.rz|.rm|.rp)"

//  executor        pattern                                operands  unit      spread  grade  section
#define KL_ISA_FLOAT(X)                                                                                                \
  X(testp_finite_f32,     "testp.finite.f32",              "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_infinite_f32,   "testp.infinite.f32",            "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_number_f32,     "testp.number.f32",              "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_notanumber_f32, "testp.notanumber.f32",          "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_normal_f32,     "testp.normal.f32",              "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_subnormal_f32,  "testp.subnormal.f32",           "p=w",    FLOAT,    ALL,    EXACT, "9.7.3.1")               \
  X(testp_finite_f64,     "testp.finite.f64",              "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(testp_infinite_f64,   "testp.infinite.f64",            "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(testp_number_f64,     "testp.number.f64",              "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(testp_notanumber_f64, "testp.notanumber.f64",          "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(testp_normal_f64,     "testp.normal.f64",              "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(testp_subnormal_f64,  "testp.subnormal.f64",           "p=l",    DOUBLE,   ALL,    EXACT, "9.7.3.1")               \
  X(copysign_f32,   "copysign.f32",                        "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.2")               \
  X(copysign_f64,   "copysign.f64",                        "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.2")               \
  X(add_f32,        "add{.rn}.f32",                        "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.3")               \
  X(add_ftz_f32,    "add{.rn}.ftz.f32",                    "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.3")               \
  X(add_any_f32,    "add" KL_RND "{.ftz}{.sat}.f32",       "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.3")               \
  X(add_f32x2,      "add" KL_RND "{.ftz}.f32x2",           "l=ll",   FLOAT,    ALL,    EXACT, "9.7.3.3")               \
  X(add_f64,        "add{.rn}.f64",                        "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.3")               \
  X(add_any_f64,    "add(.rz|.rm|.rp).f64",                "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.3")               \
  X(sub_f32,        "sub{.rn}.f32",                        "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.4")               \
  X(sub_ftz_f32,    "sub{.rn}.ftz.f32",                    "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.4")               \
  X(sub_any_f32,    "sub" KL_RND "{.ftz}{.sat}.f32",       "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.4")               \
  X(sub_f32x2,      "sub" KL_RND "{.ftz}.f32x2",           "l=ll",   FLOAT,    ALL,    EXACT, "9.7.3.4")               \
  X(sub_f64,        "sub{.rn}.f64",                        "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.4")               \
  X(sub_any_f64,    "sub(.rz|.rm|.rp).f64",                "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.4")               \
  X(mul_f32,        "mul{.rn}.f32",                        "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.5")               \
  X(mul_ftz_f32,    "mul{.rn}.ftz.f32",                    "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.5")               \
  X(mul_any_f32,    "mul" KL_RND "{.ftz}{.sat}.f32",       "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.5")               \
  X(mul_f32x2,      "mul" KL_RND "{.ftz}.f32x2",           "l=ll",   FLOAT,    ALL,    EXACT, "9.7.3.5")               \
  X(mul_f64,        "mul{.rn}.f64",                        "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.5")               \
  X(mul_any_f64,    "mul(.rz|.rm|.rp).f64",                "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.5")               \
  X(fma_f32,        "fma.rn.f32",                          "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.6")               \
  X(fma_ftz_f32,    "fma.rn.ftz.f32",                      "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.6")               \
  X(fma_any_f32,    "fma" KL_RND1 "{.ftz}{.sat}.f32",      "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.6")               \
  X(fma_f32x2,      "fma" KL_RND1 "{.ftz}.f32x2",          "l=lll",  FLOAT,    ALL,    EXACT, "9.7.3.6")               \
  X(fma_f64,        "fma.rn.f64",                          "l=lll",  DOUBLE,   ALL,    EXACT, "9.7.3.6")               \
  X(fma_any_f64,    "fma(.rz|.rm|.rp).f64",                "l=lll",  DOUBLE,   ALL,    EXACT, "9.7.3.6")               \
  X(fma_f32,        "mad.rn.f32",                          "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.7")               \
  X(fma_any_f32,    "mad" KL_RND1 "{.ftz}{.sat}.f32",      "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.7")               \
  X(fma_any_f64,    "mad" KL_RND1 ".f64",                  "l=lll",  DOUBLE,   ALL,    EXACT, "9.7.3.7")               \
  X(div_f32,        "div.rn.f32",                          "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.8")               \
  X(div_any_f32,    "div" KL_RND1 "{.ftz}.f32",            "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.8")               \
  X(div_f64,        "div.rn.f64",                          "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.8")               \
  X(div_any_f64,    "div(.rz|.rm|.rp).f64",                "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.8")               \
  X(abs_f32,        "abs{.ftz}.f32",                       "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.9")               \
  X(abs_f64,        "abs.f64",                             "l=l",    DOUBLE,   ALL,    EXACT, "9.7.3.9")               \
  X(neg_f32,        "neg{.ftz}.f32",                       "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.10")              \
  X(neg_f64,        "neg.f64",                             "l=l",    DOUBLE,   ALL,    EXACT, "9.7.3.10")              \
  X(min_f32,        "min{.ftz}{.NaN}.f32",                 "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.11")              \
  X(min_xorsign_f32, "min{.ftz}{.NaN}.xorsign.abs.f32",    "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.11")              \
  X(min3_f32,       "min{.ftz}{.NaN}{.abs}.f32",           "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.11")              \
  X(min_f64,        "min.f64",                             "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.11")              \
  X(max_f32,        "max{.ftz}{.NaN}.f32",                 "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.12")              \
  X(max_xorsign_f32, "max{.ftz}{.NaN}.xorsign.abs.f32",    "w=ww",   FLOAT,    ALL,    EXACT, "9.7.3.12")              \
  X(max3_f32,       "max{.ftz}{.NaN}{.abs}.f32",           "w=www",  FLOAT,    ALL,    EXACT, "9.7.3.12")              \
  X(max_f64,        "max.f64",                             "l=ll",   DOUBLE,   ALL,    EXACT, "9.7.3.12")              \
  X(rcp_f32,        "rcp.rn.f32",                          "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.13")              \
  X(rcp_any_f32,    "rcp" KL_RND1 "{.ftz}.f32",            "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.13")              \
  X(rcp_any_f64,    "rcp" KL_RND1 ".f64",                  "l=l",    DOUBLE,   ALL,    EXACT, "9.7.3.13")              \
  X(sqrt_f32,       "sqrt.rn.f32",                         "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.15")              \
  X(sqrt_any_f32,   "sqrt" KL_RND1 "{.ftz}.f32",           "w=w",    FLOAT,    ALL,    EXACT, "9.7.3.15")              \
  X(sqrt_any_f64,   "sqrt" KL_RND1 ".f64",                 "l=l",    DOUBLE,   ALL,    EXACT, "9.7.3.15")              \
  X(add_f32_f16,    "add" KL_RND "{.sat}.f32.f16",         "w=hw",   FLOAT,    ALL,    EXACT, "9.7.5.1")               \
  X(add_f32_bf16,   "add" KL_RND "{.sat}.f32.bf16",        "w=hw",   FLOAT,    ALL,    EXACT, "9.7.5.1")               \
  X(sub_f32_f16,    "sub" KL_RND "{.sat}.f32.f16",         "w=hw",   FLOAT,    ALL,    EXACT, "9.7.5.2")               \
  X(sub_f32_bf16,   "sub" KL_RND "{.sat}.f32.bf16",        "w=hw",   FLOAT,    ALL,    EXACT, "9.7.5.2")               \
  X(fma_f32_f16,    "fma" KL_RND1 "{.sat}.f32.f16",        "w=hhw",  FLOAT,    ALL,    EXACT, "9.7.5.3")               \
  X(fma_f32_bf16,   "fma" KL_RND1 "{.sat}.f32.bf16",       "w=hhw",  FLOAT,    ALL,    EXACT, "9.7.5.3")
// clang-format on

#endif

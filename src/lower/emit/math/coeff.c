// Constants of math.c for F32 and F64. The polynomials are minimax ones (Remez) found by tests/math/coefficients.py,
// their coefficients rounded to the kind one by one with the rest fitted again; each line says what is approximated,
// where, and the largest error of the rounded polynomial in exact arithmetic, relative to the function named last.

#include "lower/emit/math/impl.h"

#define POLY(a)                                                                                                        \
  { a, KL_COUNT(a) }

// clang-format off
// exp on +-ln 2 / 2: 2^-28.22 relative
static const double f32_exp[] = {
    0x1p+0, 0x1p+0, 0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123ddep-7, 0x1.6ac718p-10,
};
// 2^x on +-0.5: 2^-27.51 relative
static const double f32_exp2[] = {
    0x1p+0, 0x1.62e432p-1, 0x1.ebfbe6p-3, 0x1.c6ada8p-5, 0x1.3b21cap-7, 0x1.5fbcd2p-10, 0x1.4be21p-13,
};
// (log(1 + x) - x) / x^2 on +-1/3: 2^-27.59 of log(1 + x)
static const double f32_log[] = {
    -0x1p-1, 0x1.5554fap-2, -0x1.ffff94p-3, 0x1.99d58ap-3, -0x1.557e2cp-3, 0x1.1e82acp-3, -0x1.f6b42cp-4,
    0x1.1ff1dap-3, -0x1.ffab54p-4,
};
// (tanh(x) / x - 1) / x^2 in x^2, |x| to 0.6: 2^-28.41 of tanh
static const double f32_tanh_small[] = {
    -0x1.55553ep-2, 0x1.1109bep-3, -0x1.b89abap-5, 0x1.54c3c2p-6, -0x1.828776p-8,
};
// 2 / (1 + q) for q to 0.302: 2^-29.44 of 1 - q P
static const double f32_tanh_large[] = {
    0x1.fffffap+0, -0x1.fffde6p+0, 0x1.ffc08ap+0, -0x1.fc6c86p+0, 0x1.e3d4eap+0, -0x1.804f66p+0, 0x1.6032dap-1,
};
// 1 / (1 + x) on [0, 1]: 2^-9.17 relative
static const double f32_reciprocal[] = {
    0x1.ff1cd2p-1, -0x1.e2b78ap-1, 0x1.54bd9ap-1, -0x1.c651d6p-3,
};
// erf(x) / x - 1 in x^2, |x| to 0.9375: 2^-30.12 of erf
static const double f32_erf_small[] = {
    0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2e1cp-4, -0x1.b8120ap-6, 0x1.54ee42p-8, -0x1.ab8f3cp-11, 0x1.60e77p-14,
};
// log2(erfc(x)) on [0.9375, 4]: 2^-29.33 of erf
static const double f32_erf_large[] = {
    -0x1.4fc7aep-12, -0x1.a071c8p+0, -0x1.d6cb7p-1, -0x1.329cf2p-3, 0x1.05caf8p-5, -0x1.1df012p-8, 0x1.257e6ap-12,
};

// exp on +-ln 2 / 2: 2^-57.90 relative
static const double f64_exp[] = {
    0x1p+0, 0x1p+0, 0x1.000000000000ap-1, 0x1.5555555555503p-3, 0x1.5555555550608p-5, 0x1.1111111124d45p-7,
    0x1.6c16c184b4219p-10, 0x1.a01a013d3edefp-13, 0x1.a01998936e402p-16, 0x1.71def47bf97b9p-19, 0x1.28aed0e0fc0c1p-22,
    0x1.add6938046f3p-26,
};
// 2^x on +-0.5: 2^-59.68 relative
static const double f64_exp2[] = {
    0x1p+0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a1c3p-5, 0x1.3b2ab6fba526bp-7,
    0x1.5d87fe7879f22p-10, 0x1.430912f6d74eep-13, 0x1.ffcbfd24efcd7p-17, 0x1.62c02a38d3d85p-20, 0x1.b5238c5cebbfdp-24,
    0x1.e4accc2f159edp-28, 0x1.ebd8b12c7b19fp-32, 0x1.f95c912aa8056p-36,
};
// (log(1 + x) - x) / x^2 on +-1/3: 2^-59.20 of log(1 + x)
static const double f64_log[] = {
    -0x1p-1, 0x1.5555555555532p-2, -0x1.fffffffffffd9p-3, 0x1.99999999a101bp-3, -0x1.5555555559cdbp-3,
    0x1.2492492046575p-3, -0x1.fffffffa618e7p-4, 0x1.c71c743e2fc25p-4, -0x1.99999b54c9f7bp-4, 0x1.745caf7479aa8p-4,
    -0x1.555507a9484e6p-4, 0x1.3b1e3923b509p-4, -0x1.249a9d9f13245p-4, 0x1.10632a934b69cp-4, -0x1.fedf2b7fd2f3p-5,
    0x1.f01d7c89706d4p-5, -0x1.d370e3ac1de69p-5, 0x1.5493e7436e871p-5, -0x1.4833e1babb694p-5, 0x1.5d709fb1a2f89p-4,
    -0x1.497503fc59b43p-4,
};
// (tanh(x) / x - 1) / x^2 in x^2, |x| to 0.625: 2^-56.44 of tanh
static const double f64_tanh_small[] = {
    -0x1.55555555554ffp-2, 0x1.111111110ac94p-3, -0x1.ba1ba1b503bp-5, 0x1.664f477a63ab1p-6, -0x1.226e161fceb9dp-7,
    0x1.d6cf2687628dbp-9, -0x1.7d68938403934p-10, 0x1.3365ac59a0fbfp-11, -0x1.df523c7eb2681p-13,
    0x1.4389c2541b242p-14, -0x1.0d98b770add9ap-16,
};
// 1 / (1 + x) on [0, 1]: 2^-11.72 relative
static const double f64_reciprocal[] = {
    0x1.ffd9060ad6091p-1, -0x1.f83c44f5dbb93p-1, 0x1.bb56546a3b4abp-1, -0x1.10d29d1bd4dfcp-1, 0x1.37cc114456867p-3,
};
// erf(x) / x - 1 in x^2, |x| to 1: 2^-56.03 of erf
static const double f64_erf_small[] = {
    0x1.06eba8214db68p-3, -0x1.812746b0379bdp-2, 0x1.ce2f21a041846p-4, -0x1.b82ce3123a43dp-6, 0x1.565bcd025850ap-8,
    -0x1.c02db1aac26bp-11, 0x1.f9a2dccc21945p-14, -0x1.f4cc5177a2a51p-17, 0x1.b99338aed0adcp-20,
    -0x1.5c7a6b634d55cp-23, 0x1.da1f209acf89ep-27, -0x1.b463d7b2cccf9p-31,
};
// log2(erfc(x)) on [1, 6]: 2^-59.06 of erf
static const double f64_erf_large[] = {
    -0x1.13d2104bc50b4p-22, -0x1.a0be57bb73a47p+0, -0x1.d64079e5cc257p-1, -0x1.2f94e78856a46p-3, 0x1.c2f625262890ap-6,
    0x1.a77ee118a777cp-12, -0x1.4e6671dd61b2cp-9, 0x1.e4973194b06d2p-11, -0x1.0d24e19ad013dp-14,
    -0x1.aaeae29ea9cf2p-14, 0x1.1102395291e11p-14, -0x1.905f6ca7825bp-16, 0x1.a3a73b9b59723p-18,
    -0x1.4a0300751ba64p-20, 0x1.863e23ccf38b6p-23, -0x1.527e264b76591p-26, 0x1.97bf9bf34bb6cp-30,
    -0x1.311edf5b302c8p-34, 0x1.ab773a0faffcap-40,
};

// For f16 coefficients were then changed at random by a few units in the last place (tests/math/search.c) until every
// result was rounded rightly; where one input was left, math.c nudges it.
static const double f16_exp[] = {
    0x1.fffffep-1, 0x1.000002p+0, 0x1.fffff6p-2, 0x1.555386p-3, 0x1.555848p-5, 0x1.123decp-7, 0x1.6ac736p-10,
};
static const double f16_exp2[] = {
    0x1p+0, 0x1.62e432p-1, 0x1.ebfbeap-3, 0x1.c6ad94p-5, 0x1.3b21b8p-7, 0x1.5fbcc8p-10, 0x1.4be216p-13,
};
static const double f16_log[] = {
    -0x1.ffffecp-2, 0x1.55553p-2, -0x1.ffff52p-3, 0x1.99d606p-3, -0x1.557c6p-3, 0x1.1e811ep-3, -0x1.f6b4aap-4,
    0x1.1fef56p-3, -0x1.ffa904p-4,
};
static const double f16_erf_small[] = {
    0x1.06eba4p-3, -0x1.812744p-2, 0x1.ce2e18p-4, -0x1.b81208p-6, 0x1.54ee3ep-8, -0x1.ab8f4p-11, 0x1.60e778p-14,
};
static const double f16_erf_large[] = {
    -0x1.4fc7aep-12, -0x1.a071bcp+0, -0x1.d6cb76p-1, -0x1.329d08p-3, 0x1.05cb08p-5, -0x1.1df01p-8, 0x1.257e76p-12,
};
// clang-format on

// What is computed in f32, for its own sake or for that of f16: the format, ranges, functions that both have alike.
#define IN_F32                                                                                                         \
  .man_bits = 23, .one_bits = 0x3f800000, .inf_bits = 0x7f800000, .two_thirds = 0x3f2aaaab, .rsqrt_seed = 0x5f3759df,  \
  .rsqrt_cubic = 1, .min_normal = 0x1p-126, .magic = 0x1.8p23, .log2e = 0x1.715476p0, .ln2 = 0x1.62e43p-1,             \
  .ln2_lo = -0x1.05c61p-29, .exp_low = -104, .exp_high = 89, .exp2_low = -150, .exp2_high = 128,                       \
  .tanh_split = 0x1.333334p-1, .tanh_one = 10, .erf_split = 0.9375, .erf_one = 4, .tanh_small = POLY(f32_tanh_small),  \
  .tanh_large = POLY(f32_tanh_large), .reciprocal = POLY(f32_reciprocal)

const km_consts km_f32 = {
    IN_F32,
    .exp = POLY(f32_exp),
    .exp2 = POLY(f32_exp2),
    .log = POLY(f32_log),
    .erf_small = POLY(f32_erf_small),
    .erf_large = POLY(f32_erf_large),
};

const km_consts km_f16 = {
    IN_F32,
    // logistic is 0.5 + x / 4 - x^3 / 48: F32 does not see the cube, and the rest can be a tie of f16.
    .logistic_small = 0x1p-6,
    .logistic_shrink = 1 - 0x1p-12,
    .nudge = {[KM_EXP] = {-0x1p-12, -0x1.ff8p-13},
              [KM_EXP2] = {0x1.714p-11, 0x1.716p-11},
              [KM_LOG] = {0x1.5ep-8, 0x1.5e04p-8}},
    .exp = POLY(f16_exp),
    .exp2 = POLY(f16_exp2),
    .log = POLY(f16_log),
    .erf_small = POLY(f16_erf_small),
    .erf_large = POLY(f16_erf_large),
};

const km_consts km_f64 = {
    .man_bits = 52,
    .one_bits = 0x3ff0000000000000,
    .inf_bits = 0x7ff0000000000000,
    .two_thirds = 0x3fe5555555555555,
    .rsqrt_seed = 0x5fe6eb50c7b537a9,
    .rsqrt_cubic = 2,
    .min_normal = 0x1p-1022,
    .magic = 0x1.8p52,
    .log2e = 0x1.71547652b82fep0,
    .ln2 = 0x1.62e42fefa39efp-1,
    .ln2_lo = 0x1.abc9e3b39803fp-56,
    .exp_low = -746,
    .exp_high = 710,
    .exp2_low = -1075,
    .exp2_high = 1024,
    .tanh_split = 0.625,
    .tanh_one = 20,
    .erf_split = 1,
    .erf_one = 6,
    .exp = POLY(f64_exp),
    .exp2 = POLY(f64_exp2),
    .log = POLY(f64_log),
    .tanh_small = POLY(f64_tanh_small),
    .reciprocal = POLY(f64_reciprocal),
    .erf_small = POLY(f64_erf_small),
    .erf_large = POLY(f64_erf_large),
};

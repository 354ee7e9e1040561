// Constants of math.c for F32 and F64. The polynomials are minimax ones (Remez) found by
// tests/emit/search/coefficients.py, their coefficients rounded to the kind one by one with the rest fitted again; each
// line says what is approximated, where, and the largest error of the rounded polynomial in exact arithmetic, relative
// to the function named last.

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
// (tanh(x) / x - 1) / x^2 in x^2, |x| to 0.8: 2^-27.99 of tanh
static const double f32_tanh_small[] = {
    -0x1.55553ep-2, 0x1.110b58p-3, -0x1.b92b2ep-5, 0x1.5d160cp-6, -0x1.e5e52p-8, 0x1.a0085p-10,
};
// 2 / (1 + q) for q to 0.203: 2^-28.96 of 1 - q P
static const double f32_tanh_large[] = {
    0x1.fffff6p+0, -0x1.fffc3p+0, 0x1.ff8354p+0, -0x1.f89442p+0, 0x1.c5300ap+0, -0x1.0a144p+0,
};
// erf(x) / x - 1 in x^2, |x| to 1: 2^-29.39 of erf
static const double f32_erf_small[] = {
    0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fcp-14,
};
// log2(erfc(x)) / x on [0.99, 4]: 2^-28.16 of erf
static const double f32_erf_large[] = {
    -0x1.a0c89p+0, -0x1.d5a674p-1, -0x1.36a56ap-3, 0x1.0d9bacp-5, -0x1.2db844p-8, 0x1.3f7068p-12,
};
// (expm1(x) - x) / x^2 on +-ln 2 / 2: 2^-28.16 of expm1(x)
static const double f32_expm1[] = {
    0x1p-1, 0x1.55552cp-3, 0x1.555502p-5, 0x1.1155aap-7, 0x1.6d2e4ep-10, 0x1.3b8568p-13,
};
// (sinh(x) / x - 1) / x^2 in x^2, |x| to ln 2 / 2: 2^-34.33 of sinh
static const double f32_sinh[] = {
    0x1.555556p-3, 0x1.110fbep-7, 0x1.a2e31p-13,
};
// (cosh(x) - 1) / x^2 in x^2, |x| to ln 2 / 2: 2^-31.25 of x
static const double f32_cosh[] = {
    0x1p-1, 0x1.5554f2p-5, 0x1.6d412cp-10,
};
// (sin(x) / x - 1) / x^2 in x^2, |x| to pi / 4: 2^-27.91 of sin
static const double f32_sin[] = {
    -0x1.555546p-3, 0x1.110778p-7, -0x1.9953fep-13,
};
// (cos(x) - 1 + x^2 / 2) / x^4 in x^2, |x| to pi / 4: 2^-33.13 absolute
static const double f32_cos[] = {
    0x1.55554ap-5, -0x1.6c0c1ap-10, 0x1.99e0eep-16,
};
// (tan(x) / x - 1) / x^2 in x^2, |x| to pi / 4: 2^-29.55 of tan
static const double f32_tan[] = {
    0x1.55556p-2, 0x1.110d9ep-3, 0x1.bad9c2p-5, 0x1.5cc0d2p-6, 0x1.62cb4ap-7, 0x1.9bf376p-14, 0x1.1e920ap-8,
};
// (asin(x) / x - 1) / x^2 in x^2, |x| to 1/2: 2^-27.62 of asin
static const double f32_asin[] = {
    0x1.5555c8p-3, 0x1.330204p-4, 0x1.747bb8p-5, 0x1.8c3e52p-6, 0x1.595c5cp-5,
};
// (atan(x) / x - 1) / x^2 in x^2, |x| to 1: 2^-28.50 of atan
static const double f32_atan[] = {
    -0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242084p-3, 0x1.c08c1ap-4, -0x1.580814p-4, 0x1.da24cap-5, -0x1.fd6fbcp-6,
    0x1.6410e6p-7, -0x1.d32dbcp-10,
};
// (atanh(x) / x - 1 - x^2 / 3) / x^4 in x^2, to 0.041: 2^-40.97 of atanh(x) / x
static const double f32_atanh[] = {
    0x1.999994p-3, 0x1.2495f6p-3, 0x1.c57646p-4, 0x1.9b63e4p-4,
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
// (tanh(x) / x - 1) / x^2 in x^2, |x| to 0.8: 2^-56.90 of tanh
static const double f64_tanh_small[] = {
    -0x1.5555555555521p-2, 0x1.111111110de54p-3, -0x1.ba1ba1b7f3e46p-5, 0x1.664f48240acbbp-6, -0x1.226e2bbeb758bp-7,
    0x1.d6d28db1eb562p-9, -0x1.7d94fc68ec677p-10, 0x1.34e4f1e461809p-11, -0x1.f05d3e7f85d12p-13,
    0x1.81991ed21ef2dp-14, -0x1.0cd7b00235df9p-15, 0x1.1eb27270706cdp-17, -0x1.4acd365855825p-20,
};
// erf(x) / x - 1 in x^2 - 1/2, |x| to 1.0625: 2^-58.85 of erf
static const double f64_erf_small[] = {
    -0x1.1ae14dc34815ap-5, -0x1.1fd16292151fdp-2, 0x1.454368017b051p-4, -0x1.2b902b7b2f452p-6, 0x1.c82aa249db1b1p-9,
    -0x1.263991b7b7ae7p-11, 0x1.486638c35336dp-14, -0x1.429e94892d3bdp-17, 0x1.1ad5e46a62545p-20,
    -0x1.bf8bf8ab2e02fp-24, 0x1.429aaa492b1bcp-27, -0x1.ad8ec2c20deefp-31, 0x1.009396765ac67p-34,
};
// log2(erfc(x)) / x on [0.99, 6]: 2^-57.14 of erf
static const double f64_erf_large[] = {
    -0x1.a0be82a9b5a2dp+0, -0x1.d63eeb4c80fe9p-1, -0x1.2fa6cdd98c005p-3, 0x1.c4139960c9335p-6,
    0x1.3ebc1accb391dp-12, -0x1.3fbb50b0fbc3fp-9, 0x1.b1520d58ff696p-11, 0x1.c7e99d9feaf07p-19,
    -0x1.23709976c29c2p-13, 0x1.558862755f04cp-14, -0x1.f048108ce8adcp-16, 0x1.06e17739a467ap-17,
    -0x1.a58b56191c688p-20, 0x1.feaa605ef4178p-23, -0x1.c7122495eaf67p-26, 0x1.1a139dd5e907ep-29,
    -0x1.b2e1dd81f26bcp-34, 0x1.39f29097de4c8p-39,
};
// (expm1(x) - x) / x^2 on +-ln 2 / 2: 2^-61.43 of expm1(x)
static const double f64_expm1[] = {
    0x1p-1, 0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f6f7p-7, 0x1.6c16c16c161bp-10,
    0x1.a01a01af9e278p-13, 0x1.a01a01a0e9c74p-16, 0x1.71ddf942ef271p-19, 0x1.27e4f2f83826ep-22, 0x1.af5ce127a312dp-26,
    0x1.1f41acfe368a2p-29,
};
// (sinh(x) / x - 1) / x^2 in x^2, |x| to ln 2 / 2: 2^-65.16 of sinh
static const double f64_sinh[] = {
    0x1.5555555555555p-3, 0x1.1111111111388p-7, 0x1.a01a019e9f5f7p-13, 0x1.71de408894e8cp-19, 0x1.ae4cb4b3e309bp-26,
    0x1.82e58f60aadcp-33,
};
// (cosh(x) - 1) / x^2 in x^2, |x| to ln 2 / 2: 2^-70.23 of x
static const double f64_cosh[] = {
    0x1p-1, 0x1.5555555555555p-5, 0x1.6c16c16c1701ep-10, 0x1.a01a019dfbd89p-16, 0x1.27e5038aca31p-22,
    0x1.1ed0ed8f3abe8p-29, 0x1.e08a8917ffafep-37,
};
// (sin(x) / x - 1) / x^2 in x^2, |x| to pi / 4: 2^-63.23 of sin
static const double f64_sin[] = {
    -0x1.5555555555555p-3, 0x1.1111111111069p-7, -0x1.a01a019ffe523p-13, 0x1.71de3a33a5803p-19,
    -0x1.ae642c51b4a32p-26, 0x1.6109bd7e37194p-33, -0x1.9ffd80fc8feffp-41,
};
// (cos(x) - 1 + x^2 / 2) / x^4 in x^2, |x| to pi / 4: 2^-69.08 absolute
static const double f64_cos[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16b2ap-10, 0x1.a01a019ffb553p-16, -0x1.27e4fb583864bp-22,
    0x1.1eed6d05ee806p-29, -0x1.93713e3b673f7p-37, 0x1.9c3462a74d477p-45,
};
// (tan(x) / x - 1) / x^2 in x^2, |x| to pi / 4: 2^-60.00 of tan
static const double f64_tan[] = {
    0x1.555555555555dp-2, 0x1.11111111106dap-3, 0x1.ba1ba1bab2774p-5, 0x1.664f485fb5731p-6, 0x1.226e3a31c86bep-7,
    0x1.d6d2f44fc406ap-9, 0x1.7db0df0f5573ep-10, 0x1.34c2dd28032c5p-11, 0x1.fecf223b5225dp-13, 0x1.605d8717a8fa1p-14,
    0x1.16873f05830d6p-14, -0x1.9cddf66fbce7bp-16, 0x1.90d8a16cba7e7p-15, -0x1.9033e6f028d82p-16,
    0x1.45ace5a5e24f7p-17,
};
// (asin(x) / x - 1) / x^2 in x^2, |x| to 1/2: 2^-59.86 of asin
static const double f64_asin[] = {
    0x1.5555555555577p-3, 0x1.333333332e131p-4, 0x1.6db6db721267ep-5, 0x1.f1c71a94f2f3bp-6, 0x1.6e8bdee03f52p-6,
    0x1.1c49f05cd7af2p-6, 0x1.ca1f8d72fc8f2p-7, 0x1.7585897fd5f68p-7, 0x1.613c8d7cdb895p-7, 0x1.e5f57ac41cbf3p-9,
    0x1.639c741bca827p-6, -0x1.57fd7a07be9bep-6, 0x1.0b46baef529fep-5,
};
// (atan(x) / x - 1) / x^2 in x^2, |x| to 1: 2^-60.19 of atan
static const double f64_atan[] = {
    -0x1.555555555554dp-2, 0x1.9999999998c65p-3, -0x1.2492492457698p-3, 0x1.c71c71b650c2ap-4, -0x1.745d15d2c9605p-4,
    0x1.3b139bec17b5fp-4, -0x1.11103358a030fp-4, 0x1.e1d4926da88ep-5, -0x1.aeda8623e02dbp-5, 0x1.84b509fb47ad4p-5,
    -0x1.5f262b00bf13fp-5, 0x1.3908d0ff248f2p-5, -0x1.0c9bebd37f31ap-5, 0x1.ac8de9ec072d5p-6, -0x1.311169efb6b4fp-6,
    0x1.730384dc03084p-7, -0x1.7003bcfb3ee67p-8, 0x1.1a33b76a61179p-9, -0x1.3717a91b654c4p-11, 0x1.b410703dfbc07p-14,
    -0x1.22ae43a75d4fdp-17,
};
// (atanh(x) / x - 1 - x^2 / 3 - x^4 / 5) / x^6 in x^2, to 0.041: 2^-74.80 of atanh(x) / x
static const double f64_atanh[] = {
    0x1.2492492492405p-3, 0x1.c71c71c739c6fp-4, 0x1.745d17321e877p-4, 0x1.3b13b851721ecp-4, 0x1.110f8eb7060bdp-4,
    0x1.e246431434ee6p-5, 0x1.a75e5043372acp-5, 0x1.da16bc285c0ffp-5,
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
    0x1.06eba6p-3, -0x1.81273ep-2, 0x1.ce2cf8p-4, -0x1.b7f71ap-6, 0x1.53f228p-8, -0x1.a3515ap-11, 0x1.4771fcp-14,
};
static const double f16_erf_large[] = {
    -0x1.a0c896p+0, -0x1.d5a674p-1, -0x1.36a564p-3, 0x1.0d9ba2p-5, -0x1.2db83ep-8, 0x1.3f7068p-12,
};
// clang-format on

// What is computed in f32, for its own sake or for that of f16: the format, ranges, functions that both have alike.
#define IN_F32                                                                                                         \
  .man_bits = 23, .one_bits = 0x3f800000, .inf_bits = 0x7f800000, .two_thirds = 0x3f2aaaab, .rsqrt_seed = 0x5f3759df,  \
  .rsqrt_cubic = 1, .min_normal = 0x1p-126, .magic = 0x1.8p23, .log2e = 0x1.715476p0, .ln2 = 0x1.62e43p-1,             \
  .ln2_lo = -0x1.05c61p-29, .exp_low = -104, .exp_high = 89, .exp2_low = -150, .exp2_high = 128,                       \
  .tanh_split = 0x1.99999ap-1, .tanh_one = 10, .erf_split = 0x1.fcp-1, .erf_one = 4, .logistic_one = 24,               \
  .tanh_small = POLY(f32_tanh_small), .tanh_large = POLY(f32_tanh_large), .cbrt_seed = 0x54a21d2a,                     \
  .ln10 = 0x1.26bb1cp1, .ln10_lo = -0x1.12aabap-25, .log2_10 = 0x1.a934fp1, .log10_2 = 0x1.344136p-2,                  \
  .log10_2_lo = -0x1.ec10cp-27, .half_pi = {0x1.921fb6p0, -0x1.777a5cp-25, -0x1.ee59dap-50},                           \
  .two_over_pi = 0x1.45f306p-1, .two_over_pi_ends = 0x1p16, .expm1_low = -17.5, .exp10_low = -45.375,                  \
  .exp10_high = 0x1.345p5, .cosh_high = 89.5, .log_large = 0x1p14, .expm1 = POLY(f32_expm1), .sinh = POLY(f32_sinh),   \
  .cosh = POLY(f32_cosh), .sin = POLY(f32_sin), .cos = POLY(f32_cos), .tan = POLY(f32_tan), .asin = POLY(f32_asin),    \
  .atan = POLY(f32_atan), .atanh = POLY(f32_atanh)

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
    .reciprocal_seed = 0x7fde623822fc16e6,
    .min_normal = 0x1p-1022,
    .magic = 0x1.8p52,
    .log2e = 0x1.71547652b82fep0,
    .ln2 = 0x1.62e42fefa39efp-1,
    .ln2_lo = 0x1.abc9e3b39803fp-56,
    .exp_low = -746,
    .exp_high = 710,
    .exp2_low = -1075,
    .exp2_high = 1024,
    .tanh_split = 0.8,
    .tanh_one = 20,
    .erf_split = 0x1.1p+0,
    .erf_middle = 0.5,
    .erf_one = 6,
    .logistic_one = 40,
    .exp = POLY(f64_exp),
    .exp2 = POLY(f64_exp2),
    .log = POLY(f64_log),
    .tanh_small = POLY(f64_tanh_small),
    .cbrt_seed = 0x553ef0ff289dd796,
    .ln10 = 0x1.26bb1bbb55516p1,
    .ln10_lo = -0x1.f48ad494ea3e9p-53,
    .log2_10 = 0x1.a934f0979a371p1,
    .log10_2 = 0x1.34413509f79ffp-2,
    .log10_2_lo = -0x1.9dc1da994fd21p-59,
    .half_pi = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110},
    .two_over_pi = 0x1.45f306dc9c883p-1,
    .two_over_pi_ends = 0x1p32,
    .expm1_low = -38,
    .exp10_low = -324,
    .exp10_high = 308.2578125,
    .cosh_high = 710.625,
    .log_large = 0x1p29,
    .expm1 = POLY(f64_expm1),
    .sinh = POLY(f64_sinh),
    .cosh = POLY(f64_cosh),
    .sin = POLY(f64_sin),
    .cos = POLY(f64_cos),
    .tan = POLY(f64_tan),
    .asin = POLY(f64_asin),
    .atan = POLY(f64_atan),
    .atanh = POLY(f64_atanh),
    .erf_small = POLY(f64_erf_small),
    .erf_large = POLY(f64_erf_large),
};

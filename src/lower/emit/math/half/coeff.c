// Constants of the expansions: minimax polynomials of tests/emit/search/coefficients.py, changed by half.c beside it
// until every result was right, and numbers like log2(e) with what the same search did to them.

#include "lower/emit/math/half/impl.h"

// log2(e) / 2 and a shift of the result
static const double exp_bf16[] = {0x1.71547ap-1, 0x1.ca1cbep-21};
// log2(e) and a shift; below the third, the cubic polynomial
static const double exp_f16[] = {0x1.715476p+0, 0x1.62e03p-22, 0x1.9d7d54p-5, 1,
                                 0x1.fffefcp-1, 0x1.00014cp-1, 0x1.6be33p-3};
// 2 log2(e), 1, -2, 1; for f16 also the bound of the polynomial, and (tanh(x) / x - 1) / x^2 in x^2
static const double tanh_bf16[] = {0x1.715476p+1, 1, -2, 1};
static const double tanh_f16[] = {0x1.715482p+1,  0x1.fffffcp-1, -0x1.fffff8p+0, 0x1.fffffap-1, 0.5,
                                  -0x1.5554e4p-2, 0x1.11093cp-3, -0x1.b899e6p-5, 0x1.54cadp-6,  -0x1.8288dap-8};
// -log2(e), and three times the scale
static const double logistic_bf16[] = {-0x1.715476p+0, -12, 0x1p-12, 0x1p-12};
// -log2(e), -ln 2; the slope of small arguments and their bound; exp on +-ln 2 / 2
static const double logistic_f16[] = {-0x1.715476p+0, -0x1.62e43p-1, 0x1.ffep-3,    0x1p-6,        0x1.fffffep-1,
                                      0x1.fffffep-1,  0x1.fffeecp-2, 0x1.5559b8p-3, 0x1.572814p-5, 0x1.111a0cp-7};
// erf(x) / x in x^2; for f16 less 1
static const double erf_bf16[] = {0x1.20dd7p+0,  -0x1.811312p-2,  0x1.cccb62p-4, -0x1.aef5dp-6,
                                  0x1.3720d2p-8, -0x1.46a4d8p-11, 0x1.b30f1p-15, -0x1.0d330ep-19};
static const double erf_f16[] = {0x1.06eba4p-3,  -0x1.812724p-2,  0x1.ce2c5ep-4,  -0x1.b80f48p-6,
                                 0x1.55b48ap-8,  -0x1.bbbbcep-11, 0x1.e602fap-14, -0x1.b9fe1cp-17,
                                 0x1.3ecbf2p-20, -0x1.5064e8p-24, 0x1.c514fep-29, -0x1.1fc6e6p-34};
// ln 2, a shift, and that less 24 ln 2
static const double log_bf16[] = {0x1.62e432p-1, -0x1.f36374p-26, -0x1.0a2b26p+4};
// ln 2 / 2^23; (log(1 + f) - f) / f^2 on [-1/3, 1/3]
static const double log_f16[] = {0x1.62e43p-24,  -0x1.fffff6p-2, 0x1.555104p-2,  -0x1.ffdefcp-3, 0x1.9b15eep-3,
                                 -0x1.597c1ep-3, 0x1.1f147ep-3,  -0x1.dd9dacp-4, 0x1.37da02p-4};
// 1 / pi; pi in two parts, negative; (sin(r) / r - 1) / r^2 in r^2; for bf16 that again, for the arguments that are
// reduced by integers
static const double sin_bf16[] = {
    0x1.45f306p-2,  -0x1.921fb4p+1, -0x1.4442dp-23,  -0x1.555112p-3, 0x1.107136p-7, -0x1.84dbf8p-13, 0,
    -0x1.555566p-3, 0x1.110fbp-7,   -0x1.9f6d26p-13, 0x1.5d5ffep-19};
static const double cos_bf16[] = {
    0x1.45f306p-2,  -0x1.921fb4p+1, -0x1.4442dp-23,  -0x1.555318p-3, 0x1.1088ccp-7, -0x1.85d4a4p-13, 0,
    -0x1.55554cp-3, 0x1.110edap-7,  -0x1.9f70eep-13, 0x1.5dc8c4p-19};
static const double sin_f16[] = {0x1.45f306p-2, -0x1.921fb4p+1,  -0x1.444276p-23, -0x1.55555p-3,
                                 0x1.110edap-7, -0x1.9f728cp-13, 0x1.5dd756p-19};
static const double cos_f16[] = {0x1.45f306p-2, -0x1.921fb4p+1,  -0x1.4442dp-23, -0x1.55554ap-3,
                                 0x1.110edap-7, -0x1.9f70eep-13, 0x1.5dc7a8p-19};

// clang-format off
#define ROW(op, kind, sm, fn, c)       {KL_OP_##op, KB_##kind, sm, fn, c, KL_COUNT(c), NULL}
#define FAR(op, kind, sm, fn, c, rest) {KL_OP_##op, KB_##kind, sm, fn, c, KL_COUNT(c), rest}
#define BARE(op, kind, sm, fn)         {KL_OP_##op, KB_##kind, sm, fn, NULL, 0, NULL}

// sm_80 has no comparison of bf16 pairs.
const kh_row kh_rows[] = {
    ROW(EXP, BF16, 90, kh_exp_bf16, exp_bf16),
    ROW(EXP, F16, 80, kh_exp_f16, exp_f16),
    ROW(TANH, BF16, 90, kh_tanh_bf16, tanh_bf16),
    ROW(TANH, F16, 80, kh_tanh_f16, tanh_f16),
    ROW(LOGISTIC, BF16, 90, kh_logistic_bf16, logistic_bf16),
    ROW(LOGISTIC, F16, 80, kh_logistic_f16, logistic_f16),
    ROW(ERF, BF16, 80, kh_erf_bf16, erf_bf16),
    ROW(ERF, F16, 80, kh_erf_f16, erf_f16),
    ROW(LOG, BF16, 90, kh_log_bf16, log_bf16),
    ROW(LOG, F16, 80, kh_log_f16, log_f16),
    BARE(RSQRT, BF16, 80, kh_rsqrt_bf16),
    BARE(RSQRT, F16, 80, kh_rsqrt_f16),
    BARE(SQRT, BF16, 80, kh_sqrt_bf16),
    BARE(SQRT, F16, 80, kh_sqrt_f16),
    BARE(DIVIDE, BF16, 80, kh_divide_bf16),
    BARE(DIVIDE, F16, 80, kh_divide_f16),
    FAR(SIN, BF16, 90, kh_sin, sin_bf16, kh_sin_far),
    FAR(COS, BF16, 90, kh_cos, cos_bf16, kh_cos_far),
    ROW(SIN, F16, 80, kh_sin, sin_f16),
    ROW(COS, F16, 80, kh_cos, cos_f16),
};
// clang-format on
const unsigned kh_row_count = KL_COUNT(kh_rows);

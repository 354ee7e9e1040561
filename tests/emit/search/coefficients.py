"""Prints the polynomials of src/lower/emit/math: coeff.c (f32, f64), bf16.c (bf16), half/coeff.c (half) and fast.c (fast):

  coefficients.py f32|f64|bf16|half|fast [NAME...]

Needs the Python package mpmath. Some bf16 and all f16 polynomials were changed by search.c afterwards, those of half by
half.c.
"""
import sys

from mpmath import mp, mpf, acosh, asin, asinh, atan, atanh, cos, cosh, erf, erfc, exp, expm1, log, log1p, sin, sinh, sqrt, tan, tanh

from minimax import Grid, rounded, show

LN2 = log(mpf(2))
TINY = mpf(10) ** -12  # below it closed forms cancel and series take over


def tanh_core(s):
    """(tanh(x) / x - 1) / s with s = x^2."""
    x = sqrt(s)
    return -mpf(1) / 3 + s * 2 / 15 if s < TINY else (tanh(x) / x - 1) / s


def erf_ratio(s):
    """erf(x) / x with s = x^2."""
    x = sqrt(s)
    return 2 / sqrt(mp.pi) * (1 - s / 3) if s < TINY else erf(x) / x


def log_core(x):
    """(log1p(x) - x) / x^2."""
    return -mpf(1) / 2 + x / 3 if abs(x) < TINY else (log1p(x) - x) / x**2


def odd_core(f, third):
    """(f(x) / x - 1) / s with s = x^2; third is its value at 0."""

    def core(s):
        x = sqrt(s)
        return third if s < TINY else (f(x) / x - 1) / s

    return core


def odd_weight(f):
    return lambda s: s * sqrt(s) / f(sqrt(s))


def expm1_core(x):
    """(expm1(x) - x) / x^2."""
    return mpf(1) / 2 + x / 6 if abs(x) < TINY else (expm1(x) - x) / x**2


def cosh_core(s):
    """(cosh(x) - 1) / s with s = x^2."""
    return mpf(1) / 2 + s / 24 if s < TINY else (cosh(sqrt(s)) - 1) / s


def cos_core(s):
    """(cos(x) - 1 + s / 2) / s^2 with s = x^2."""
    return mpf(1) / 24 - s / 720 if s < TINY else (cos(sqrt(s)) - 1 + s / 2) / s**2


def atanh_core(s):
    """(atanh(x) / x - 1 - s / 3) / s^2 with s = x^2."""
    return mpf(1) / 5 + s / 7 if s < TINY else (atanh(sqrt(s)) / sqrt(s) - 1 - s / 3) / s**2


def atanh_rest(s):
    """(atanh(x) / x - 1 - s / 3 - s^2 / 5) / s^3 with s = x^2."""
    return mpf(1) / 7 + s / 9 if s < TINY else (atanh(sqrt(s)) / sqrt(s) - 1 - s / 3 - s**2 / 5) / s**3


def acosh_ratio(d):
    """acosh(1 + d) / sqrt(2 d)."""
    return 1 - d / 12 if d < TINY else acosh(1 + d) / sqrt(2 * d)


def half_tanh_ratio(s):
    """(logistic(x) - 1/2) / x with s = x^2."""
    x = sqrt(s)
    return mpf(1) / 4 - s / 48 if s < TINY else tanh(x / 2) / 2 / x


def log2_erfc(t):
    return log(erfc(t)) / LN2


def erfc_weight(t):
    """An error of log2(erfc(t)) becomes this much of erf(t)."""
    return erfc(t) * LN2 / erf(t)


def log2_erfc_ratio(t):
    return log2_erfc(t) / t


def erfc_ratio_weight(t):
    return t * erfc_weight(t)


def erf_weight(s):
    return 1 / erf_ratio(s)


def tanh_weight(s):
    return s * sqrt(s) / tanh(sqrt(s))


ONE = mpf(1)
HALF = mpf("0.50005")  # reduced arguments may pass the half by a little
THIRD = mpf(1) / 3
EIGHTH = mp.pi / 4 * mpf("1.0001")


def rows(kind):
    """(name, degree, function, from, to, weight, fixed coefficients)"""
    if kind == "bf16":
        s, t = mpf("0.875"), mpf("0.25")
        yield "logistic_small", 1, half_tanh_ratio, 0, t * t, lambda s: 2 * sqrt(s), {}
        yield "erf_small", 3, erf_ratio, 0, s * s, erf_weight, {}
        yield "erf_large", 3, log2_erfc, s, 3, erfc_weight, {}
        return
    if kind == "half":
        turn = (mp.pi / 2 * mpf("1.0001")) ** 2
        yield "exp_f16", 3, exp, -mpf("0.0505"), mpf("0.0505"), lambda x: exp(-x), {0: ONE}
        yield "tanh_f16", 4, tanh_core, 0, mpf("0.25"), tanh_weight, {}
        yield "logistic_f16", 5, exp, -LN2 * HALF, LN2 * HALF, lambda x: exp(-x), {}
        yield "erf_bf16", 7, erf_ratio, 0, mpf("2.203125") ** 2, erf_weight, {}
        yield "erf_f16", 11, lambda s: erf_ratio(s) - 1, 0, mpf("2.6015625") ** 2, erf_weight, {}
        yield "log_f16", 7, log_core, -THIRD, THIRD, lambda x: x**2 / abs(log1p(x)), {}
        yield "sin_bf16", 2, odd_core(sin, -ONE / 6), 0, turn, odd_weight(sin), {}
        yield "sin_f16", 3, odd_core(sin, -ONE / 6), 0, turn, odd_weight(sin), {}
        return
    if kind == "fast":
        yield "sinh", 3, odd_core(sinh, ONE / 6), 0, 1, odd_weight(sinh), {}
        yield "asinh", 5, odd_core(asinh, -ONE / 6), 0, mpf("0.75") ** 2, odd_weight(asinh), {}
        yield "acosh", 4, acosh_ratio, 0, mpf("0.25"), lambda d: 1 / acosh_ratio(d), {0: ONE}
        yield "atanh", 3, odd_core(atanh, ONE / 3), 0, ONE / 9, odd_weight(atanh), {}
        return
    wide = kind == "f64"
    split = mpf("0.8")
    yield "exp", 11 if wide else 6, exp, -LN2 * HALF, LN2 * HALF, lambda x: exp(-x), {0: ONE, 1: ONE}
    yield "exp2", 12 if wide else 6, lambda x: 2**x, -HALF, HALF, lambda x: 2**-x, {0: ONE}
    yield "log", 20 if wide else 8, log_core, -THIRD, THIRD, lambda x: x**2 / abs(log1p(x)), {0: -ONE / 2}
    yield "tanh_small", 12 if wide else 5, tanh_core, 0, split**2, tanh_weight, {}
    if not wide:
        yield "tanh_large", 5, lambda q: 2 / (1 + q), 0, exp(-2 * split) * mpf("1.001"), lambda q: q, {}
    middle = mpf(1) / 2 if wide else 0
    at = lambda d: d + middle
    end = mpf("1.0625") ** 2 if wide else 1
    yield "erf_small", 12 if wide else 6, lambda d: erf_ratio(at(d)) - 1, -middle, end - middle, lambda d: erf_weight(at(d)), {}
    yield "erf_large", 17 if wide else 5, log2_erfc_ratio, mpf("0.99"), 6 if wide else 4, erfc_ratio_weight, {}
    end = LN2 * HALF
    yield "expm1", 10 if wide else 5, expm1_core, -end, end, lambda x: x**2 / abs(expm1(x)), {0: ONE / 2}
    yield "sinh", 5 if wide else 2, odd_core(sinh, ONE / 6), 0, end**2, odd_weight(sinh), {}
    yield "cosh", 6 if wide else 2, cosh_core, 0, end**2, lambda s: s / sqrt(s) if s else ONE, {0: ONE / 2}
    yield "sin", 6 if wide else 2, odd_core(sin, -ONE / 6), 0, EIGHTH**2, odd_weight(sin), {}
    yield "cos", 6 if wide else 2, cos_core, 0, EIGHTH**2, lambda s: s**2, {}
    yield "tan", 14 if wide else 6, odd_core(tan, ONE / 3), 0, EIGHTH**2, odd_weight(tan), {}
    yield "asin", 12 if wide else 4, odd_core(asin, ONE / 6), 0, mpf("0.25"), odd_weight(asin), {}
    yield "atan", 20 if wide else 8, odd_core(atan, -ONE / 3), 0, 1, odd_weight(atan), {}
    if wide:
        yield "atanh", 7, atanh_rest, 0, mpf("0.041"), lambda s: s**3, {}
    else:
        yield "atanh", 3, atanh_core, 0, mpf("0.041"), lambda s: s**2, {}


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind not in ("f32", "f64", "bf16", "half", "fast"):
        sys.exit(__doc__)
    for name, degree, f, a, b, weight, fixed in rows(kind):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        grid = Grid(f, a, b, weight, 1500 if kind == "f64" else 800)
        show(name, *rounded(grid, list(range(degree + 1)), 53 if kind == "f64" else 24, fixed))
        sys.stdout.flush()


if __name__ == "__main__":
    main()

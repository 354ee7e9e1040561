"""Prints the polynomials of src/lower/emit/math_coeff.c (f32, f64) and math_bf16.c (bf16):

  coefficients.py f32|f64|bf16 [NAME...]

Needs the Python package mpmath. Some bf16 and all f16 polynomials were changed by search.c afterwards.
"""
import sys

from mpmath import mp, mpf, erf, erfc, exp, log, log1p, sqrt, tanh

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


def half_tanh_ratio(s):
    """(logistic(x) - 1/2) / x with s = x^2."""
    x = sqrt(s)
    return mpf(1) / 4 - s / 48 if s < TINY else tanh(x / 2) / 2 / x


def log2_erfc(t):
    return log(erfc(t)) / LN2


def erfc_weight(t):
    """An error of log2(erfc(t)) becomes this much of erf(t)."""
    return erfc(t) * LN2 / erf(t)


def erf_weight(s):
    return 1 / erf_ratio(s)


def tanh_weight(s):
    return s * sqrt(s) / tanh(sqrt(s))


ONE = mpf(1)
HALF = mpf("0.50005")  # reduced arguments may pass the half by a little
THIRD = mpf(1) / 3


def rows(kind):
    """(name, degree, function, from, to, weight, fixed coefficients)"""
    if kind == "bf16":
        s, t = mpf("0.875"), mpf("0.25")
        yield "logistic_small", 1, half_tanh_ratio, 0, t * t, lambda s: 2 * sqrt(s), {}
        yield "erf_small", 3, erf_ratio, 0, s * s, erf_weight, {}
        yield "erf_large", 3, log2_erfc, s, 3, erfc_weight, {}
        return
    wide = kind == "f64"
    split = mpf("0.625") if wide else mpf("0.6")
    seam = ONE if wide else mpf("0.9375")
    yield "exp", 11 if wide else 6, exp, -LN2 * HALF, LN2 * HALF, lambda x: exp(-x), {0: ONE, 1: ONE}
    yield "exp2", 12 if wide else 6, lambda x: 2**x, -HALF, HALF, lambda x: 2**-x, {0: ONE}
    yield "log", 20 if wide else 8, log_core, -THIRD, THIRD, lambda x: x**2 / abs(log1p(x)), {0: -ONE / 2}
    yield "tanh_small", 10 if wide else 4, tanh_core, 0, split**2, tanh_weight, {}
    if not wide:
        yield "tanh_large", 6, lambda q: 2 / (1 + q), 0, exp(-2 * split) * mpf("1.001"), lambda q: q, {}
    yield "reciprocal", 4 if wide else 3, lambda q: 1 / (1 + q), 0, 1, lambda q: 1 + q, {}
    yield "erf_small", 11 if wide else 6, lambda s: erf_ratio(s) - 1, 0, seam**2, erf_weight, {}
    yield "erf_large", 18 if wide else 6, log2_erfc, seam * mpf("0.999"), 6 if wide else 4, erfc_weight, {}


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind not in ("f32", "f64", "bf16"):
        sys.exit(__doc__)
    for name, degree, f, a, b, weight, fixed in rows(kind):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        grid = Grid(f, a, b, weight, 1500 if kind == "f64" else 800)
        show(name, *rounded(grid, list(range(degree + 1)), 53 if kind == "f64" else 24, fixed))
        sys.stdout.flush()


if __name__ == "__main__":
    main()

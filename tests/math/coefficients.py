"""Prints the coefficients of src/lower/emit/math_*.c: coefficients.py [f32|f64|bf16] [NAME...]"""
import sys

from mpmath import mpf, mp, exp, log, log1p, tanh, erf, erfc, sqrt, expm1

from minimax import Grid, rounded, show

LN2 = log(mpf(2))


def series(f, terms, x):
    """Taylor value near 0, where the closed form cancels."""
    return sum(c * x**i for i, c in enumerate(terms))


def tanh_core(s):  # (tanh(x) / x - 1) / s, s = x^2
    x = sqrt(s)
    if s < mpf(10) ** -12:
        return mpf(-1) / 3 + s * 2 / 15 - s * s * 17 / 315
    return (tanh(x) / x - 1) / s


def erf_core(s):  # erf(x) / x - 1
    x = sqrt(s)
    if s < mpf(10) ** -12:
        return 2 / sqrt(mp.pi) * (1 - s / 3 + s * s / 10) - 1
    return erf(x) / x - 1


def log_core(x):  # (log1p(x) - x) / x^2
    if abs(x) < mpf(10) ** -12:
        return mpf(-1) / 2 + x / 3 - x * x / 4
    return (log1p(x) - x) / x**2


def tables(kind):
    f32 = kind == "f32"
    bits = {"f32": 24, "f64": 53, "bf16": 24}[kind]
    h = mpf("0.5") * mpf("1.0001")
    L = LN2 * h
    T = mpf("0.6") if f32 else mpf("0.625")
    S = mpf("0.9375") if f32 else mpf("1.0")

    def poly(f, a, b, degree, weight=None, fixed=None, first=0):
        g = Grid(f, a, b, weight, 800 if f32 else 1500)
        return rounded(g, list(range(first, degree + 1)), bits, fixed)

    yield "exp", lambda d: poly(exp, -L, L, d, lambda x: exp(-x), {0: mpf(1), 1: mpf(1)}), (6,) if f32 else (11, 12)
    yield "exp2", lambda d: poly(lambda x: 2**x, -h, h, d, lambda x: 2**-x, {0: mpf(1)}), (6,) if f32 else (11, 12)
    yield "exp2 free", lambda d: poly(lambda x: 2**x, -h, h, d, lambda x: 2**-x), (5,) if f32 else (10, 11)
    yield "log", lambda d: poly(log_core, -mpf(1) / 3, mpf(1) / 3, d, lambda x: x**2 / abs(log1p(x)), {0: mpf(-0.5)}), (
        (6, 7, 8) if f32 else (19, 20, 21))
    yield "tanh small", lambda d: poly(tanh_core, 0, T * T, d, lambda s: s * sqrt(s) / tanh(sqrt(s))), (
        (3, 4, 5) if f32 else (9, 10, 11))
    q = exp(-2 * T) * mpf("1.001")
    yield "tanh large", lambda d: poly(lambda x: 2 / (1 + x), 0, q, d, lambda x: x), (5, 6) if f32 else (3, 4)
    yield "reciprocal", lambda d: poly(lambda x: 1 / (1 + x), 0, 1, d, lambda x: 1 + x), (2, 3, 4)
    yield "erf small", lambda d: poly(erf_core, 0, S * S, d, lambda s: sqrt(s) / erf(sqrt(s))), (
        (5, 6) if f32 else (11, 12, 13))
    top = mpf(4) if f32 else mpf(6)
    yield "erf large", lambda d: poly(
        lambda t: log(erfc(t)) / LN2, S * mpf("0.999"), top, d, lambda t: erfc(t) * LN2 / erf(t)), (
        (6, 7, 8) if f32 else (18, 19, 20, 21))


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "f32"
    for name, make, degrees in tables(kind):
        if sys.argv[2:] and not any(a in name for a in sys.argv[2:]):
            continue
        for d in degrees:
            show(f"{name}, degree {d}", *make(d))
            sys.stdout.flush()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""More cases for tests/eval/math.c, in the form of cases.py: the functions that came after it, mulhi, and
every function of complex numbers on, beside and between its branch cuts. Values from mpmath at 2200 digits; a zero part
is computed as a signed infinitesimal, so that the side of a cut and the sign of a zero are those of the limit."""
import math

import mpmath
import numpy as np
from cases import FLOATS, FORMATS, INF, INTS, NAN, PARTS, RNG, Out, decode, exact, float_samples, int_samples, \
    is_special, signed_value

DIGITS, TINY = 2200, 1000  # digits; an infinitesimal is 10^-TINY, its root still far below every type

REAL = {"exp10": lambda x: mpmath.mpf(10) ** x, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "asin": mpmath.asin,
        "acos": mpmath.acos, "atan": mpmath.atan, "asinh": mpmath.asinh, "acosh": mpmath.acosh,
        "atanh": mpmath.atanh}
HALF_PI = "pi/2"
# at -inf, -0, +0, +inf
SPECIAL = {"exp10": (0.0, 1.0, 1.0, INF), "sinh": (-INF, -0.0, 0.0, INF), "cosh": (INF, 1.0, 1.0, INF),
           "asin": (NAN, -0.0, 0.0, NAN), "acos": (NAN, HALF_PI, HALF_PI, NAN),
           "atan": ("-" + HALF_PI, -0.0, 0.0, HALF_PI), "asinh": (-INF, -0.0, 0.0, INF),
           "acosh": (NAN, NAN, NAN, INF), "atanh": (NAN, -0.0, 0.0, NAN)}


def real(op, t, x):
    f = FORMATS[t]
    if x != x:
        return f.encode(NAN)
    if is_special(x):
        v = SPECIAL[op][0 if x == -INF else 3 if x == INF else 1 if np.signbit(x) else 2]
        if isinstance(v, str):
            return f.encode(exact(mpmath.pi / 2 * (-1 if v[0] == "-" else 1)))
        return f.encode(v)
    if op in ("asin", "acos", "atanh") and abs(x) > 1 or op == "acosh" and x < 1:
        return f.encode(NAN)
    if op == "atanh" and abs(x) == 1:
        return f.encode(math.copysign(INF, x))
    if op in ("exp10", "sinh", "cosh") and abs(x) > 20000:
        return f.encode((0.0 if op == "exp10" else -INF if op == "sinh" else INF) if x < 0 else INF)
    return f.encode(exact(REAL[op](mpmath.mpf(x))), negative_zero=np.signbit(x))


def reals(out):
    for t in FLOATS:
        for op in REAL:
            samples = float_samples(t, 64 if t in ("f32", "f64", "f16", "bf16") else 40)
            if t in ("f32", "f64", "f16", "bf16"):
                f = FORMATS[t]
                samples += [int(f.encode(v), 16) for v in (1e-3, -1e-3, 0.999, -0.999, 0.1, 1.001, 4.0, 23.0, 100.0, 30.5)]
                if op == "exp10":
                    samples += [int(f.encode(float(v)), 16) for v in range(-12, 40)]
            out.case(op, [t], t, [(f"{p:x}", real(op, t, decode(t, p))) for p in samples])


def mulhi(out):
    for t, (signed, bits) in INTS.items():
        s = int_samples(t, 12)
        pairs = [(p, q) for p in s[:9] for q in s[:9]] + [(RNG.choice(s), RNG.choice(s)) for _ in range(40)]
        rows = [(f"{p:x}", f"{q:x}", f"{(signed_value(t, p) * signed_value(t, q) >> bits) % (1 << bits):x}")
                for p, q in pairs]
        out.case("mulhi", [t, t], t, rows)


# --- complex -------------------------------------------------------------------------------------------------------


COMPLEX = {"exponential": mpmath.exp, "exponential-minus-one": lambda z: mpmath.exp(z) - 1, "log": mpmath.log,
           "log-plus-one": lambda z: mpmath.log(1 + z), "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
           "tanh": mpmath.tanh, "sqrt": mpmath.sqrt, "rsqrt": lambda z: 1 / mpmath.sqrt(z), "sine": mpmath.sin,
           "cosine": mpmath.cos, "tan": mpmath.tan, "exp10": lambda z: mpmath.exp(z * mpmath.log(10)),
           "sinh": mpmath.sinh, "cosh": mpmath.cosh, "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
           "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh}
# Sums of more than 700 digits' span, and poles, are left out.
EXPONENTIAL = ("exponential", "exponential-minus-one", "logistic", "tanh", "sine", "cosine", "tan", "exp10", "sinh", "cosh")
POLES = {"log": [(0, 0)], "log-plus-one": [(-1, 0)], "rsqrt": [(0, 0)], "atan": [(0, 1), (0, -1)],
         "atanh": [(1, 0), (-1, 0)]}
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-10, -3e-12, 1e10, -1e12, 0.99999, 1.00001, -1.00001, 3.0, 17.5]


def part_of(x):
    if x == 0:
        return mpmath.mpf(10) ** -TINY * (-1 if np.signbit(x) else 1)
    return mpmath.mpf(x)


def encode_part(f, v):
    if abs(v) < mpmath.mpf(10) ** (20 - TINY // 2):
        return f.encode(-0.0 if v < 0 else 0.0)
    return f.encode(exact(v), negative_zero=v < 0)


def complex_samples(t):
    f = FORMATS[t]
    pats = [(int(f.encode(a), 16), int(f.encode(b), 16)) for a in EDGES for b in EDGES]
    RNG.shuffle(pats)
    pats = pats[:110]
    pats += [(int(f.encode(a), 16), int(f.encode(b), 16)) for a in (0.0, -0.0, 2.0, -2.0, 0.5, -0.5) for b in (0.0, -0.0)]
    pats += [(int(f.encode(b), 16), int(f.encode(a), 16)) for a in (2.0, -2.0, 0.5, -0.5) for b in (0.0, -0.0)]
    for scale in (1e-3, 1, 1, 1, 8, 1e4):
        pats += [(int(f.encode(RNG.uniform(-scale, scale)), 16), int(f.encode(RNG.uniform(-scale, scale)), 16))
                 for _ in range(12)]
    return pats


def complexes(out):
    for t, part in PARTS.items():
        f = FORMATS[part]
        for op, g in COMPLEX.items():
            rows = []
            for p, q in complex_samples(t.replace("c64", "f32").replace("c128", "f64")):
                x, y = decode(part, p), decode(part, q)
                if (x, y) in POLES.get(op, []):
                    continue
                grows = y if op in ("sine", "cosine", "tan") else x
                if op in EXPONENTIAL and abs(grows) > 1e5:
                    continue
                with mpmath.workdps(DIGITS):
                    r = g(mpmath.mpc(part_of(x), part_of(y)))
                    # Where a part is so small that it went under in the other's digits.
                    if min(abs(r.real), abs(r.imag)) < mpmath.mpf(10) ** (60 - DIGITS) * max(abs(r.real), abs(r.imag)):
                        continue
                    rows.append((f"{p:x}:{q:x}", f"{encode_part(f, r.real)}:{encode_part(f, r.imag)}"))
            out.case(op, [t], t, rows)


def main():
    out = Out("functions")
    with mpmath.workdps(DIGITS):
        reals(out)
    mulhi(out)
    complexes(out)
    out.close()


if __name__ == "__main__":
    main()

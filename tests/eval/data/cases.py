#!/usr/bin/env python3
"""Cases for tests/eval/eval.c, computed without kiln: Python integers, exact fractions and mpmath at 80 digits, rounded
once by search among all values of a format. Needs numpy, ml_dtypes and mpmath. Writes *.txt beside this file.

A case is a header line and rows:
    OP IN[,IN...] OUT ROWS [ATTRIBUTES]
    a [b [c]] r          bit patterns in hex, complex parts joined by ':', 'n' for any NaN
"""
import os
import random
import struct
from fractions import Fraction
from bisect import bisect_left

import ml_dtypes
import mpmath
import numpy as np

mpmath.mp.dps = 80
HERE = os.path.dirname(os.path.abspath(__file__))
RNG = random.Random(20240611)
INF, NAN = float("inf"), float("nan")

INTS = {f"{s}{b}": (s == "s", b) for b in (2, 4, 8, 16, 32, 64) for s in "su"}
SMALL = {
    "f4e2m1fn": ml_dtypes.float4_e2m1fn, "f8e3m4": ml_dtypes.float8_e3m4, "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}
FLOATS = list(SMALL) + ["f32", "f64"]
PARTS = {"c64": "f32", "c128": "f64"}


class Format:
    """Values of a narrow format, with correct rounding from any exact number."""

    def __init__(self, name):
        self.name = name
        kind = SMALL[name]
        self.bits = 4 if name == "f4e2m1fn" else 8 * np.dtype(kind).itemsize
        raw = np.arange(1 << self.bits, dtype=np.uint8 if self.bits <= 8 else np.uint16)
        with np.errstate(all="ignore"):
            self.value = raw.view(kind).astype(np.float64)
        finite = sorted((Fraction(float(v)), p) for p, v in enumerate(self.value)
                        if np.isfinite(v) and not (v == 0 and np.signbit(v)))
        self.values = [v for v, _ in finite]
        self.pattern = [p for _, p in finite]
        self.nans = [p for p, v in enumerate(self.value) if np.isnan(v)]
        self.pinf = next((p for p, v in enumerate(self.value) if v == INF), None)
        self.ninf = next((p for p, v in enumerate(self.value) if v == -INF), None)
        zeros = [p for p, v in enumerate(self.value) if v == 0 and np.signbit(v)]
        self.nzero = zeros[0] if zeros else None
        self.unsigned = name == "f8e8m0fnu"

    def nan(self):
        # f4e2m1fn has no NaN: ml_dtypes takes it to negative zero.
        return "n" if self.nans else f"{self.nzero:x}"

    def overflow(self, negative):
        if self.pinf is not None:
            return f"{self.ninf if negative else self.pinf:x}"
        if self.name == "f4e2m1fn":
            return f"{self.pattern[0] if negative else self.pattern[-1]:x}"
        return self.nan()

    def encode(self, v, negative_zero=False):
        """v: Fraction, or float for specials."""
        if isinstance(v, float):
            if v != v:
                return self.nan()
            if v in (INF, -INF):
                return self.nan() if self.unsigned and v < 0 else self.overflow(v < 0)
            negative_zero = v == 0 and np.signbit(v)
            v = Fraction(v)
        if self.unsigned and v <= 0:
            return self.nan()
        if v == 0:
            return f"{self.nzero if negative_zero and self.nzero is not None else 0:x}"
        i = bisect_left(self.values, v)
        if i == len(self.values) or i == 0:
            edge = self.values[-1 if i else 0]
            step = abs(edge) - abs(self.values[-2 if i else 1])
            if self.unsigned:
                step = edge if i else Fraction(0)
            limit = abs(edge) + step / 2
            if not i and self.unsigned:
                return f"{self.pattern[0]:x}"
            even = self.pattern[-1 if i else 0] % 2 == 0
            if abs(v) < limit or (abs(v) == limit and even and not self.unsigned):
                return f"{self.pattern[-1 if i else 0]:x}"
            return self.overflow(v < 0)
        hi, lo = self.values[i], self.values[i - 1]
        if hi == v:
            return f"{self.pattern[i]:x}"
        d = (v - lo) - (hi - v)
        # On a tie the even significand; e8m0's significand is the hidden bit alone, which makes the upper power even.
        take_hi = d > 0 or (d == 0 and (self.unsigned or self.pattern[i] % 2 == 0))
        k = i if take_hi else i - 1
        if self.values[k] == 0 and v < 0 and self.nzero is not None:
            return f"{self.nzero:x}"
        return f"{self.pattern[k]:x}"


class Wide:
    def __init__(self, name):
        self.name, self.bits = name, 32 if name == "f32" else 64
        self.p, self.emin, self.emax = (24, -126, 127) if name == "f32" else (53, -1022, 1023)
        self.code, self.word = ("f", "I") if name == "f32" else ("d", "Q")

    def decode(self, bits):
        return struct.unpack("<" + self.code, struct.pack("<" + self.word, bits))[0]

    def pack(self, v):
        return struct.unpack("<" + self.word, struct.pack("<" + self.code, v))[0]

    def encode(self, v, negative_zero=False):
        if isinstance(v, float):
            if v != v:
                return "n"
            if v in (INF, -INF) or v == 0:
                return f"{self.pack(v):x}"
            v = Fraction(v)
        if v == 0:
            return f"{self.pack(-0.0 if negative_zero else 0.0):x}"
        a = abs(v)
        e = a.numerator.bit_length() - a.denominator.bit_length()
        if Fraction(2) ** e > a:
            e -= 1
        quantum = Fraction(2) ** (max(e, self.emin) - self.p + 1)
        r = round(a / quantum) * quantum  # Fraction rounds ties to even
        if r >= Fraction(2) ** (self.emax + 1):
            r = INF
        r = float(r)
        return f"{self.pack(-r if v < 0 else r):x}"


FORMATS = {n: Format(n) for n in SMALL}
FORMATS.update({n: Wide(n) for n in ("f32", "f64")})


def decode(t, bits):
    f = FORMATS[t]
    return float(f.value[bits]) if isinstance(f, Format) else f.decode(bits)


def exact(x):
    """mpf to Fraction."""
    if isinstance(x, Fraction):
        return x
    sign, man, exp, _ = x._mpf_
    return Fraction(-int(man) if sign else int(man)) * Fraction(2) ** int(exp)


# --- samples -------------------------------------------------------------------------------------------------------

def int_samples(t, n):
    signed, bits = INTS[t]
    top = 1 << bits
    edge = [0, 1, 2, 3, top - 1, top - 2, top >> 1, (top >> 1) - 1, (top >> 1) + 1, bits, bits - 1, bits + 1]
    return [v % top for v in edge] + [RNG.getrandbits(RNG.randint(1, bits)) for _ in range(n)]


def float_samples(t, n):
    f = FORMATS[t]
    if isinstance(f, Format) and f.bits <= 8:
        every = list(range(1 << f.bits))
        return every if n >= len(every) else RNG.sample(every, n)
    enc = lambda v: f.encode(v)
    edge = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.75, 3.0, -2.0, INF, -INF, 0.1, -0.3, 10.0, -20.0, 88.0]
    pats = [int(enc(v), 16) for v in edge]
    man = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[t]
    sign = 1 << (f.bits - 1)
    inf = sign - (1 << man)
    pats += [inf | 1 << (man - 1), 1, sign | 1, 1 << man, (1 << man) - 1, inf - 1, sign | (inf - 1), inf | 1]
    while len(pats) < n:
        pats.append(RNG.getrandbits(f.bits))
        pats.append(int(enc(RNG.uniform(-8, 8)), 16))
        pats.append(int(enc(float(RNG.randint(-40, 40)) / 4), 16))
    return pats[:n]


def signed_value(t, p):
    signed, bits = INTS[t]
    return p - (1 << bits) if signed and p >> (bits - 1) else p


# --- writing -------------------------------------------------------------------------------------------------------

class Out:
    def __init__(self, name):
        self.path, self.lines = os.path.join(HERE, name + ".txt"), []

    def case(self, op, ins, out, rows, attrs=""):
        self.lines.append(f"{op} {','.join(ins)} {out} {len(rows)} {attrs}".rstrip())
        self.lines += [" ".join(r) for r in rows]

    def close(self):
        with open(self.path, "w") as f:
            f.write("\n".join(self.lines) + "\n")


# --- integers ------------------------------------------------------------------------------------------------------

def trunc_div(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def int_op(op, t, p, q):
    signed, bits = INTS[t]
    a, b = signed_value(t, p), signed_value(t, q)
    if op == "add": r = a + b
    elif op == "subtract": r = a - b
    elif op == "multiply": r = a * b
    elif op == "divide": r = -1 if b == 0 else trunc_div(a, b)
    elif op == "remainder": r = a if b == 0 else a - b * trunc_div(a, b)
    elif op == "power":
        if b < 0: r = 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0
        else: r = pow(a, b, 1 << bits)
    elif op == "maximum": r = max(a, b)
    elif op == "minimum": r = min(a, b)
    elif op == "and": r = p & q
    elif op == "or": r = p | q
    elif op == "xor": r = p ^ q
    elif op == "shift-left": r = p << q if q < bits else 0
    elif op == "shift-right-logical": r = p >> q if q < bits else 0
    elif op == "shift-right-arithmetic":
        s = p - (1 << bits) if p >> (bits - 1) else p
        r = s >> min(q, bits)
    return f"{r % (1 << bits):x}"


def int_unary(op, t, p):
    signed, bits = INTS[t]
    a = signed_value(t, p)
    r = {"abs": abs(a), "negate": -a, "sign": (a > 0) - (a < 0), "not": ~a, "popcnt": bin(p).count("1"),
         "count-leading-zeros": bits - p.bit_length()}[op]
    return f"{r % (1 << bits):x}"


COMPARE = {"EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
           "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b}


def integers():
    out = Out("int")
    for t in INTS:
        for op in ("abs", "negate", "sign", "not", "popcnt", "count-leading-zeros"):
            out.case(op, [t], t, [(f"{p:x}", int_unary(op, t, p)) for p in int_samples(t, 8)])
        for op in ("add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "and", "or",
                   "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"):
            s = int_samples(t, 10)
            pairs = [(p, q) for p in s[:9] for q in s[:9:2]] + [(RNG.choice(s), RNG.choice(s)) for _ in range(24)]
            out.case(op, [t, t], t, [(f"{p:x}", f"{q:x}", int_op(op, t, p, q)) for p, q in pairs])
        s = int_samples(t, 12)
        pairs = [(RNG.choice(s), RNG.choice(s)) for _ in range(16)] + [(p, p) for p in s[:4]]
        for d, f in COMPARE.items():
            out.case("compare", [t, t], "pred",
                     [(f"{p:x}", f"{q:x}", f"{int(f(signed_value(t, p), signed_value(t, q))):x}") for p, q in pairs],
                     f"direction={d}")
        rows = []
        for _ in range(20):
            lo, x, hi = (RNG.choice(s) for _ in range(3))
            m = max(signed_value(t, lo), signed_value(t, x))
            m = min(m, signed_value(t, hi))
            rows.append((f"{lo:x}", f"{x:x}", f"{hi:x}", f"{m % (1 << INTS[t][1]):x}"))
        out.case("clamp", [t, t, t], t, rows)
    for op, f in {"add": lambda a, b: a | b, "multiply": lambda a, b: a & b, "maximum": lambda a, b: a | b,
                  "minimum": lambda a, b: a & b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
                  "xor": lambda a, b: a ^ b}.items():
        out.case(op, ["pred", "pred"], "pred", [(f"{a}", f"{b}", f"{f(a, b)}") for a in (0, 1) for b in (0, 1)])
    out.case("not", ["pred"], "pred", [("0", "1"), ("1", "0")])
    for d, f in COMPARE.items():
        out.case("compare", ["pred", "pred"], "pred",
                 [(f"{a}", f"{b}", f"{int(f(a, b))}") for a in (0, 1) for b in (0, 1)], f"direction={d}")
    out.close()


# --- floats --------------------------------------------------------------------------------------------------------

def is_special(x):
    return x != x or x in (INF, -INF) or x == 0


MP = {"exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log, "log-plus-one": mpmath.log1p,
      "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "tanh": mpmath.tanh, "erf": mpmath.erf, "sqrt": mpmath.sqrt,
      "rsqrt": lambda x: 1 / mpmath.sqrt(x), "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "sine": mpmath.sin,
      "cosine": mpmath.cos, "tan": mpmath.tan}
# at -inf, -0, +0, +inf
SPECIAL = {"exponential": (0.0, 1.0, 1.0, INF), "exponential-minus-one": (-1.0, -0.0, 0.0, INF),
           "log": (NAN, -INF, -INF, INF), "log-plus-one": (NAN, -0.0, 0.0, INF), "logistic": (0.0, 0.5, 0.5, 1.0),
           "tanh": (-1.0, -0.0, 0.0, 1.0), "erf": (-1.0, -0.0, 0.0, 1.0), "sqrt": (NAN, -0.0, 0.0, INF),
           "rsqrt": (NAN, -INF, INF, 0.0), "cbrt": (-INF, -0.0, 0.0, INF), "sine": (NAN, -0.0, 0.0, NAN),
           "cosine": (NAN, 1.0, 1.0, NAN), "tan": (NAN, -0.0, 0.0, NAN)}


def elementary(op, t, x):
    if x != x:
        return FORMATS[t].encode(NAN)
    if is_special(x):
        return FORMATS[t].encode(SPECIAL[op][0 if x == -INF else 3 if x == INF else 1 if np.signbit(x) else 2])
    if op in ("log", "sqrt", "rsqrt") and x < 0:
        return FORMATS[t].encode(NAN)
    if op == "log-plus-one" and x <= -1:
        return FORMATS[t].encode(-INF if x == -1 else NAN)
    # Huge arguments of exp: decide without building numbers of a million digits.
    if op in ("exponential", "exponential-minus-one", "logistic") and abs(x) > 1e5:
        if x > 0:
            return FORMATS[t].encode(1.0 if op == "logistic" else INF)
        return FORMATS[t].encode(-1.0 if op == "exponential-minus-one" else 0.0)
    with mpmath.workdps(420 if op in ("sine", "cosine", "tan") else 80):
        v = MP[op](mpmath.mpf(x))
        if op in ("tanh", "erf") and abs(v) == 1:
            v = v - mpmath.sign(x) * mpmath.mpf(2) ** -200
        return FORMATS[t].encode(exact(v), negative_zero=np.signbit(x))


def fraction_round(x, how):
    f = Fraction(x)
    if how == "ceil": return -((-f.numerator) // f.denominator)
    if how == "floor": return f.numerator // f.denominator
    if how == "round-nearest-even": return round(f)
    a = abs(f) + Fraction(1, 2)
    r = a.numerator // a.denominator
    return -r if x < 0 else r


def float_unary(op, t, bits):
    f, x = FORMATS[t], decode(t, bits)
    if op in MP:
        return elementary(op, t, x)
    if op == "is-finite":
        return "1" if np.isfinite(x) else "0"
    if op == "abs": return f.encode(abs(x))
    if op == "negate": return f.encode(-x)
    if op == "real": return f.encode(x) if x == x else "n"
    if op == "imag": return f.encode(0.0)
    if op == "sign": return f.encode(x if x != x or x == 0 else float(np.copysign(1, x)))
    if is_special(x): return f.encode(x)
    return f.encode(Fraction(fraction_round(x, op)), negative_zero=np.signbit(x))


def float_binary(op, t, p, q):
    f, x, y = FORMATS[t], decode(t, p), decode(t, q)
    with np.errstate(all="ignore"):
        special = {"add": lambda: np.float64(x) + y, "subtract": lambda: np.float64(x) - y,
                   "multiply": lambda: np.float64(x) * y, "divide": lambda: np.float64(x) / np.float64(y),
                   "remainder": lambda: np.fmod(np.float64(x), np.float64(y))}
        if op in ("maximum", "minimum"):
            if x != x or y != y:
                return f.encode(NAN)
            k = max if op == "maximum" else min
            return f.encode(k((x, y), key=lambda v: (v, not np.signbit(v))))
        if is_special(x) or is_special(y):
            return f.encode(float(special[op]()))
        a, b = Fraction(x), Fraction(y)
        if op == "remainder":
            n = abs(a) - abs(b) * (abs(a) // abs(b))
            return f.encode(-n if x < 0 else n, negative_zero=x < 0)
        r = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b if b else 0}[op]
        return f.encode(r, negative_zero=op in ("multiply", "divide") and (x < 0) != (y < 0))


def power(t, x, y):
    f = FORMATS[t]
    with np.errstate(all="ignore"):
        if is_special(x) or is_special(y) or (x < 0 and y != int(y)):
            return f.encode(float(np.power(np.float64(x), np.float64(y))))
    l = mpmath.mpf(y) * mpmath.log(abs(mpmath.mpf(x)))
    negative = x < 0 and int(y) % 2 == 1
    if l > 100000: return f.encode(-INF if negative else INF)
    if l < -100000: return f.encode(-0.0 if negative else 2.0**-127 if t == "f8e8m0fnu" else 0.0)  # no zero there
    if y == int(y) and abs(y) < 64:
        v = Fraction(x) ** int(y)
        return f.encode(v, negative_zero=negative)
    v = exact(mpmath.exp(l))
    return f.encode(-v if negative else v, negative_zero=negative)


def atan2(t, y, x):
    f = FORMATS[t]
    if is_special(x) or is_special(y):
        v = float(np.arctan2(np.longdouble(y), np.longdouble(x)))
        exactly = mpmath.atan2(mpmath.mpf(y), mpmath.mpf(x)) if x == x and y == y else None
        if exactly is None or v == 0: return f.encode(v)
        quarter = round(v / (mpmath.pi / 4))
        return f.encode(exact(mpmath.pi * quarter / 4))
    return f.encode(exact(mpmath.atan2(mpmath.mpf(y), mpmath.mpf(x))), negative_zero=y < 0)


def reduce_precision(t, bits, e, m):
    """By value: round to m bits at the type's quantum, then cut the exponent range."""
    f, x = FORMATS[t], decode(t, bits)
    man = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52, "f8e5m2": 2, "f8e4m3": 3}[t]
    ebits = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11, "f8e5m2": 5, "f8e4m3": 4}[t]
    if x != x: return "n" if m else f.encode(INF)
    if is_special(x): return f.encode(x)
    emin = 2 - (1 << (ebits - 1))
    a = abs(Fraction(x))
    exp = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** exp > a: exp -= 1
    if m < man:
        # With no mantissa left a tie goes to the even exponent field.
        quantum = Fraction(2) ** (max(exp, emin) - m)
        if m == 0 and a / quantum == Fraction(3, 2):
            field = max(exp, emin) - emin + 1
            a = quantum * (1 if field % 2 == 0 else 2)
        else:
            a = round(a / quantum) * quantum
    if a == 0: return f.encode(-0.0 if x < 0 else 0.0)
    exp = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** exp > a: exp -= 1
    reach = (1 << (e - 1)) - 1
    if e < ebits:
        if exp > reach: return f.encode(-INF if x < 0 else INF)
        if exp <= -reach: return f.encode(-0.0 if x < 0 else 0.0)
    return f.encode(-a if x < 0 else a)


def total_key(t, bits):
    f = FORMATS[t]
    if t == "f8e8m0fnu": return bits
    sign = 1 << (f.bits - 1)
    return -1 - (bits ^ sign) if bits & sign else bits


def floats():
    out = Out("float")
    for t in FLOATS:
        n = 40 if FORMATS[t].bits <= 8 else 48
        for op in ("abs", "negate", "sign", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "real", "imag"):
            out.case(op, [t], t, [(f"{p:x}", float_unary(op, t, p)) for p in float_samples(t, n // 2)])
        out.case("is-finite", [t], "pred", [(f"{p:x}", float_unary("is-finite", t, p)) for p in float_samples(t, 32)])
        for op in MP:
            out.case(op, [t], t, [(f"{p:x}", float_unary(op, t, p)) for p in float_samples(t, n)])
        for op in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"):
            s = float_samples(t, 96 if FORMATS[t].bits > 8 else 256)
            pairs = [(RNG.choice(s), RNG.choice(s)) for _ in range(48)] + [(p, q) for p in s[:3] for q in s[:3]]
            out.case(op, [t, t], t, [(f"{p:x}", f"{q:x}", float_binary(op, t, p, q)) for p, q in pairs])
        s = float_samples(t, 64 if FORMATS[t].bits > 8 else 256)
        pairs = [(RNG.choice(s), RNG.choice(s)) for _ in range(32)]
        out.case("power", [t, t], t, [(f"{p:x}", f"{q:x}", power(t, decode(t, p), decode(t, q))) for p, q in pairs])
        out.case("atan2", [t, t], t, [(f"{p:x}", f"{q:x}", atan2(t, decode(t, p), decode(t, q))) for p, q in pairs])
        pairs = [(RNG.choice(s), RNG.choice(s)) for _ in range(12)] + [(p, p) for p in s[:4]]
        for d, f in COMPARE.items():
            out.case("compare", [t, t], "pred", [(f"{p:x}", f"{q:x}", f"{int(f(decode(t, p), decode(t, q)))}")
                                                 for p, q in pairs], f"direction={d}")
            out.case("compare", [t, t], "pred", [(f"{p:x}", f"{q:x}", f"{int(f(total_key(t, p), total_key(t, q)))}")
                                                 for p, q in pairs], f"direction={d}, type=TOTALORDER")
        rows = []
        for _ in range(24):
            lo, x, hi = (RNG.choice(s) for _ in range(3))
            v = [decode(t, k) for k in (lo, x, hi)]
            if any(k != k for k in v): r = FORMATS[t].encode(NAN)
            else:
                key = lambda u: (u, not np.signbit(u))
                r = FORMATS[t].encode(min(max(v[0], v[1], key=key), v[2], key=key))
            rows.append((f"{lo:x}", f"{x:x}", f"{hi:x}", r))
        out.case("clamp", [t, t, t], t, rows)
    for t, e, m in [("f32", 5, 10), ("f32", 8, 7), ("f32", 4, 3), ("f32", 8, 0), ("f32", 2, 23), ("f32", 8, 23),
                    ("f64", 8, 23), ("f64", 5, 2), ("f64", 11, 30), ("f16", 4, 3), ("f16", 5, 2), ("f16", 5, 0),
                    ("bf16", 5, 7), ("bf16", 8, 3), ("bf16", 3, 1), ("f8e5m2", 4, 1), ("f8e4m3", 4, 1)]:
        out.case("reduce-precision", [t], t,
                 [(f"{p:x}", reduce_precision(t, p, e, m)) for p in float_samples(t, 64)],
                 f"exponent_bits={e}, mantissa_bits={m}")
    out.close()


# --- convert -------------------------------------------------------------------------------------------------------

def convert(frm, to, p):
    if frm in FORMATS:
        x = decode(frm, p)
        if to in FORMATS: return FORMATS[to].encode(x)
        if to == "pred": return "1" if x != 0 else "0"
        if x != x: return "0"
        signed, bits = INTS[to]
        lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        v = hi if x == INF else lo if x == -INF else min(max(int(x), lo), hi)
        return f"{v % (1 << bits):x}"
    v = p if frm == "pred" else signed_value(frm, p)
    if to == "pred": return f"{int(v != 0)}"
    if to in INTS: return f"{v % (1 << INTS[to][1]):x}"
    if to in ("f32", "f64"): return FORMATS[to].encode(Fraction(v))
    return FORMATS[to].encode(decode("f32", int(FORMATS["f32"].encode(Fraction(v)), 16)))


def converts():
    out = Out("convert")
    types = ["pred"] + list(INTS) + FLOATS
    for frm in types:
        s = [0, 1] if frm == "pred" else int_samples(frm, 3) if frm in INTS else float_samples(frm, 36)
        for to in types:
            rows = [(f"{p:x}", convert(frm, to, p)) for p in (s if len(s) < 16 else RNG.sample(s, 14))]
            out.case("convert", [frm], to, [r for r in rows if not (frm == to and r[1] == "n")])
    out.close()


# --- complex -------------------------------------------------------------------------------------------------------

def rounded(t, v, negative_zero=False):
    return decode(t, int(FORMATS[t].encode(v, negative_zero), 16))


class Part:
    """Arithmetic that rounds every step to the part type."""

    def __init__(self, t):
        self.t = t

    def add(self, a, b):
        if a + b == 0 and (a != -b or is_special(a)): return a + b
        return rounded(self.t, Fraction(a) + Fraction(b)) if a + b != 0 or Fraction(a) + Fraction(b) else 0.0

    def sub(self, a, b): return self.add(a, -b)
    def mul(self, a, b): return a * b if a * b == 0 and (a == 0 or b == 0) else rounded(
        self.t, Fraction(a) * Fraction(b), (a < 0) != (b < 0))
    def div(self, a, b): return a / b if a == 0 else rounded(self.t, Fraction(a) / Fraction(b), (a < 0) != (b < 0))


def complex_arith(op, k, x, y):
    (a, b), (c, d) = x, y
    if op == "add": return k.add(a, c), k.add(b, d)
    if op == "subtract": return k.sub(a, c), k.sub(b, d)
    if op == "multiply": return k.sub(k.mul(a, c), k.mul(b, d)), k.add(k.mul(a, d), k.mul(b, c))
    A, B, C, D = (Fraction(v) for v in (a, b, c, d))
    norm = C * C + D * D
    return rounded(k.t, (A * C + B * D) / norm), rounded(k.t, (B * C - A * D) / norm)


MPC = {"exponential": mpmath.exp, "exponential-minus-one": lambda z: mpmath.exp(z) - 1, "log": mpmath.log,
       "log-plus-one": lambda z: mpmath.log(1 + z), "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
       "tanh": mpmath.tanh, "sqrt": mpmath.sqrt, "rsqrt": lambda z: 1 / mpmath.sqrt(z), "sine": mpmath.sin,
       "cosine": mpmath.cos, "tan": mpmath.tan, "sign": lambda z: z / abs(z)}


def complexes():
    out = Out("complex")
    for t, part in PARTS.items():
        f, k = FORMATS[part], Part(part)
        enc = lambda v: f.encode(v) if isinstance(v, float) else f.encode(exact(v))
        join = lambda z: f"{enc(z[0])}:{enc(z[1])}"
        fixed = lambda v: rounded(part, v)
        sample = lambda: (fixed(RNG.uniform(-6, 6)), fixed(RNG.uniform(-6, 6)))
        tiny = lambda: (fixed(RNG.uniform(-1, 1) * 2.0 ** -20), fixed(RNG.uniform(-1, 1) * 2.0 ** -12))
        points = [sample() for _ in range(24)] + [tiny() for _ in range(6)]
        for op in ("add", "subtract", "multiply", "divide"):
            pairs = [(RNG.choice(points), RNG.choice(points)) for _ in range(40)]
            out.case(op, [t, t], t, [(join(x), join(y), join(complex_arith(op, k, x, y))) for x, y in pairs])
        for op, fn in MPC.items():
            rows = []
            for z in points:
                v = fn(mpmath.mpc(*z))
                rows.append((join(z), join((v.real, v.imag))))
            out.case(op, [t], t, rows)
        out.case("abs", [t], part, [(join(z), enc(abs(mpmath.mpc(*z)))) for z in points])
        out.case("real", [t], part, [(join(z), enc(z[0])) for z in points[:6]])
        out.case("imag", [t], part, [(join(z), enc(z[1])) for z in points[:6]])
        out.case("negate", [t], t, [(join(z), join((-z[0], -z[1]))) for z in points[:6]])
        out.case("complex", [part, part], t, [(enc(z[0]), enc(z[1]), join(z)) for z in points[:6]])
        pairs = [(RNG.choice(points), RNG.choice(points)) for _ in range(16)]
        rows, rows2 = [], []
        for x, y in (k for k in pairs if k[0] != k[1]):  # atan2(z, z) is real: its imaginary part is all error
            v = mpmath.power(mpmath.mpc(*x), mpmath.mpc(*y))
            rows.append((join(x), join(y), join((v.real, v.imag))))
            zx, zy = mpmath.mpc(*x), mpmath.mpc(*y)  # atan2(zx, zy)
            w = -1j * mpmath.log((zy + 1j * zx) / mpmath.sqrt(zy * zy + zx * zx))
            rows2.append((join(x), join(y), join((w.real, w.imag))))
        out.case("power", [t, t], t, rows)
        out.case("atan2", [t, t], t, rows2)
        pairs += [(p, p) for p in points[:4]] + [((p[0], q[1]), p) for p, q in pairs[:6]]
        for d in ("EQ", "NE"):
            out.case("compare", [t, t], "pred", [(join(x), join(y), f"{int(COMPARE[d](x, y))}") for x, y in pairs],
                     f"direction={d}")
        for op, fn in (("maximum", max), ("minimum", min)):
            out.case(op, [t, t], t, [(join(x), join(y), join(fn(x, y))) for x, y in pairs])
        for to in ("f16", "s32", "c64", "c128", "f64"):
            r = PARTS.get(to, to)
            rows = []
            for z in points[:12]:
                v = [convert(part, r, int(enc(p), 16)) for p in z]
                rows.append((join(z), ":".join(v) if to in PARTS else v[0]))
            out.case("convert", [t], to, rows)
        for frm in ("bf16", "s8", "f64", "u64"):
            s = [p for p in (float_samples(frm, 30) if frm in FORMATS else int_samples(frm, 3))]
            out.case("convert", [frm], t, [(f"{p:x}", convert(frm, part, p) + ":0") for p in s])
    out.close()


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    integers()
    floats()
    converts()
    complexes()

"""Exact arithmetic on HLO's float formats, from the formats' definitions alone.

A number is (sign, Fraction), with sign 0 or 1 beside zero too; INF and NAN stand in the Fraction's place."""
from fractions import Fraction

import mpmath

INF, NAN = 'inf', 'nan'
mpmath.mp.prec = 400


class Format:
    """kind: ieee; fn (no infinities, NaN is all ones); fn0 (neither); fnuz (NaN is -0's pattern); e8m0."""

    def __init__(self, name, kind, exponent, mantissa, bias):
        self.name, self.kind, self.e, self.m, self.bias = name, kind, exponent, mantissa, bias
        self.bits = exponent + mantissa + (kind != 'e8m0')
        self.sign_bit = 1 << (exponent + mantissa) if kind != 'e8m0' else 0
        ones = (1 << (exponent + mantissa)) - 1
        inf = ((1 << exponent) - 1) << mantissa
        self.inf = inf if kind == 'ieee' else None
        self.nan = {'ieee': inf | 1 << max(mantissa - 1, 0), 'fn': ones, 'fn0': 1 << (exponent + mantissa),
                    'fnuz': 1 << (exponent + mantissa), 'e8m0': 255}[kind]
        self.largest = {'ieee': inf - 1, 'fn': ones - 1, 'fn0': ones, 'fnuz': ones, 'e8m0': 254}[kind]

    def decode(self, bits):
        if self.kind == 'e8m0':
            return (0, NAN) if bits == 255 else (0, Fraction(2)**(bits - 127))
        sign, a = int(bool(bits & self.sign_bit)), bits & (self.sign_bit - 1)
        if self.kind == 'fnuz' and bits == self.sign_bit:
            return (0, NAN)
        if a > self.largest:
            return (sign, INF) if a == self.inf else (sign, NAN)
        exponent, fraction = a >> self.m, a & ((1 << self.m) - 1)
        if exponent:
            fraction |= 1 << self.m
        return (sign, Fraction(fraction) * Fraction(2)**(max(exponent, 1) - self.bias - self.m))

    def encode(self, number):
        """To nearest, ties to even; beyond the ends as ml_dtypes has it."""
        sign, v = number
        if v == NAN:
            return self.nan
        if self.kind == 'e8m0':
            return self.encode_power(sign, v)
        if v == INF:
            a = self.largest + 1
        else:
            a = self.round(v)
        if a > self.largest:
            if self.kind == 'fn0':
                a = self.largest
            elif self.kind == 'ieee':
                a = self.inf
            else:
                return self.nan
        if a == 0 and self.kind == 'fnuz':
            return 0
        return a | (self.sign_bit if sign else 0)

    def round(self, v):
        if v == 0:
            return 0
        e = exponent_of(v)
        low = 1 - self.bias
        quantum = max(e, low) - self.m
        n = half_even(v / Fraction(2)**quantum)
        return n + ((max(e, low) - low) << self.m) if e >= low else n

    def encode_power(self, sign, v):
        if v == INF or v == 0 or sign:
            return 255
        e = exponent_of(v)
        e += v / Fraction(2)**e >= Fraction(3, 2)
        return 255 if e > 127 else max(e + 127, 0)


def exponent_of(v):
    """floor(log2 v) for v > 0."""
    e = v.numerator.bit_length() - v.denominator.bit_length()
    return e if Fraction(2)**e <= v else e - 1


def half_even(v):
    n, rest = divmod(v.numerator, v.denominator)
    twice = 2 * rest
    return n + (twice > v.denominator or (twice == v.denominator and n & 1))


FORMATS = {f.name: f for f in [
    Format('f4e2m1fn', 'fn0', 2, 1, 1), Format('f8e3m4', 'ieee', 3, 4, 3), Format('f8e4m3', 'ieee', 4, 3, 7),
    Format('f8e4m3fn', 'fn', 4, 3, 7), Format('f8e4m3fnuz', 'fnuz', 4, 3, 8), Format('f8e4m3b11fnuz', 'fnuz', 4, 3, 11),
    Format('f8e5m2', 'ieee', 5, 2, 15), Format('f8e5m2fnuz', 'fnuz', 5, 2, 16), Format('f8e8m0fnu', 'e8m0', 8, 0, 127),
    Format('f16', 'ieee', 5, 10, 15), Format('bf16', 'ieee', 8, 7, 127), Format('f32', 'ieee', 8, 23, 127),
    Format('f64', 'ieee', 11, 52, 1023)]}
PART = {'c64': 'f32', 'c128': 'f64'}


# --- between numbers and mpmath -------------------------------------------------------------------------------------
def to_mp(number):
    sign, v = number
    if v == NAN:
        return mpmath.nan
    if v == INF:
        return -mpmath.inf if sign else mpmath.inf
    x = mpmath.mpf(v.numerator) / v.denominator
    return -x if sign else x


def from_mp(x, zero_sign=0):
    """Exact up to 2^+-20000; smaller values keep their sign and are not zero, greater ones are infinite."""
    if mpmath.isnan(x):
        return (0, NAN)
    if mpmath.isinf(x):
        return (int(x < 0), INF)
    if x == 0:
        return (zero_sign, Fraction(0))
    sign, man, exp, bc = x._mpf_
    if exp + bc > 20000:
        return (sign, INF)
    if exp + bc < -20000:
        return (sign, Fraction(2)**-20000)
    return (sign, Fraction(int(man)) * Fraction(2)**int(exp))


def is_nan(a):
    return a[1] == NAN


def is_zero(a):
    return a[1] == 0


def value(a):
    """A finite number as a signed Fraction."""
    return -a[1] if a[0] else a[1]


def number(v, zero_sign=0):
    v = Fraction(v)
    return (int(v < 0) if v else zero_sign, abs(v))


# --- IEEE operations, exact before rounding ---------------------------------------------------------------------------
def add(a, b):
    if is_nan(a) or is_nan(b) or (a[1] == INF and b[1] == INF and a[0] != b[0]):
        return (0, NAN)
    if a[1] == INF or b[1] == INF:
        return a if a[1] == INF else b
    return number(value(a) + value(b), a[0] & b[0])


def negate(a):
    return (a[0] ^ 1, a[1])


def sub(a, b):
    return add(a, negate(b))


def mul(a, b):
    sign = a[0] ^ b[0]
    if is_nan(a) or is_nan(b) or (INF in (a[1], b[1]) and (is_zero(a) or is_zero(b))):
        return (0, NAN)
    return (sign, INF) if INF in (a[1], b[1]) else (sign, a[1] * b[1])


def div(a, b):
    sign = a[0] ^ b[0]
    if is_nan(a) or is_nan(b) or (a[1] == INF and b[1] == INF) or (is_zero(a) and is_zero(b)):
        return (0, NAN)
    if a[1] == INF or is_zero(b):
        return (sign, INF)
    return (sign, Fraction(0)) if b[1] == INF else (sign, a[1] / b[1])


def remainder(a, b):
    """C's fmod."""
    if is_nan(a) or is_nan(b) or a[1] == INF or is_zero(b):
        return (0, NAN)
    if b[1] == INF:
        return a
    return (a[0], a[1] - (a[1] // b[1]) * b[1])


def key(a):
    """Order of numbers, -0 below +0."""
    v = Fraction(10)**400 if a[1] == INF else a[1]
    return (-v if a[0] else v, 0 if a[0] else 1)


def maximum(a, b):
    if is_nan(a) or is_nan(b):
        return (0, NAN)
    return a if key(a) >= key(b) else b


def minimum(a, b):
    if is_nan(a) or is_nan(b):
        return (0, NAN)
    return a if key(a) <= key(b) else b


def compare(a, b):
    """-1, 0, 1; None if unordered."""
    if is_nan(a) or is_nan(b):
        return None
    x, y = key(a)[0], key(b)[0]
    return (x > y) - (x < y)

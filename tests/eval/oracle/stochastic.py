"""stochastic-convert; while loops over random bits are elsewhere (xla.py runs rng-bit-generator)."""
from fractions import Fraction

from arrays import INTS
from cases import WIDTH, Arr, File
from conversions import to_int
from formats import FORMATS, INF, NAN
from inputs import floats, integers


def neighbours(f, v):
    """The greatest value of the format that is no greater than v > 0, and the next one; None beyond the end."""
    p = f.round(v)
    while f.decode(p)[1] in (INF, NAN) or f.decode(p)[1] > v:
        p -= 1
    x = f.decode(p)[1]
    y = f.decode(p + 1)[1] if p < f.largest else None
    return p, x, y


def convert(src, dst, bits, random, width):
    """Away from zero where `random` is less than the first `width` bits of the fraction that is dropped."""
    sign, v = FORMATS[src].decode(bits)
    if dst in INTS:
        if v in (INF, NAN):
            return to_int(dst, (sign, v))
        whole, part = v.numerator // v.denominator, v - v.numerator // v.denominator
        up = random < part * 2**width // 1
        return to_int(dst, (sign, Fraction(whole + up)))
    f = FORMATS[dst]
    if v in (INF, NAN, 0):
        return f.encode((sign, v))
    p, x, y = neighbours(f, v)
    if y in (None, INF, NAN):
        return None
    up = v != x and random < (v - x) / (y - x) * 2**width // 1
    return f.encode((sign, y if up else x))


def make():
    file = File('stochastic_convert', 'stochastic-convert: the random number decides by the fraction that is dropped.')
    rows = [('f32', 'bf16'), ('f32', 'f16'), ('f32', 'f8e5m2'), ('f32', 's8'), ('f32', 's32'), ('f64', 'f32'), ('f64', 's16'),
            ('f64', 'bf16'), ('bf16', 'f8e4m3fn'), ('f16', 'f8e5m2'), ('f16', 'u8'), ('bf16', 's4'), ('f32', 'u16'), ('f32', 's64')]
    for src, dst in rows:
        width = WIDTH[src]
        r = 'u%d' % width
        values = floats(src, 110, 3, spread=6)
        randoms = integers(r, len(values), 4)
        keep = [(v, n) for v, n in zip(values, randoms) if convert(src, dst, v, n, width) is not None]
        a = Arr(src, (len(keep),), [v for v, _ in keep])
        b = Arr(r, (len(keep),), [n for _, n in keep])
        y = Arr(dst, a.shape, [convert(src, dst, v, n, width) for v, n in keep])
        file.case('%s_%s' % (src, dst), 'r = %s stochastic-convert(a, b)' % y.text, [a, b], ('exact', y))

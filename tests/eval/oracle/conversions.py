"""convert, bitcast-convert and bitcast."""
from fractions import Fraction

import formats as F
from arrays import COMPLEX, FLOATS, INTS, TYPES
from cases import WIDTH, Arr, File, ints
from formats import FORMATS, INF, NAN, PART
from inputs import array, float_corners, floats, int_corners, patterns


def to_int(t, n):
    """Towards zero, saturating; NaN gives 0."""
    w = WIDTH[t]
    low, high = (-(1 << w - 1), (1 << w - 1) - 1) if t[0] == 's' else (0, (1 << w) - 1)
    sign, v = n
    if v == NAN:
        return 0
    if v == INF:
        return low if sign else high
    whole = v.numerator // v.denominator
    return min(max(-whole if sign else whole, low), high)


def from_int(t, v):
    """Types of 16 bits and fewer are reached through f32."""
    n = F.number(v)
    if WIDTH[t] <= 16:
        n = FORMATS['f32'].decode(FORMATS['f32'].encode(n))
    return FORMATS[t].encode(n)


def convert(src, dst, a):
    """Patterns of real type `dst` for the elements of real type `src`."""
    if src == dst:
        return a.bits
    if src in FLOATS:
        numbers = a.numbers()
        if dst in FLOATS:
            return [FORMATS[dst].encode(n) for n in numbers]
        if dst == 'pred':
            return [n[1] != 0 for n in numbers]
        return [to_int(dst, n) for n in numbers]
    values = a.bits if src == 'pred' else a.ints()
    if dst in FLOATS:
        return [from_int(dst, v) for v in values]
    return [v != 0 for v in values] if dst == 'pred' else values


def source(src, dst):
    if src in FLOATS:
        n = 48
        out = floats(src, 64, 3)[:n] if WIDTH[src] > 8 else float_corners(src)[::1 if WIDTH[src] == 4 else 5]
        if dst in INTS and WIDTH[src] > 8:  # values around the ends of the integers
            w = WIDTH[dst]
            ends = [Fraction((1 << w) - 1), Fraction(1 << w), Fraction(1 << w - 1), Fraction((1 << w - 1) - 1),
                    Fraction(1, 2) + (1 << w - 1), Fraction(3, 2), Fraction(999, 1000), Fraction(7, 2)]
            out = out + [FORMATS[src].encode((s, v)) for v in ends for s in (0, 1)]
        if dst in FLOATS and WIDTH[dst] < WIDTH[src]:  # ties and ends of the narrower type
            d, f = FORMATS[dst], FORMATS[src]
            for p in (1, d.largest, d.largest - 1, d.bias << d.m, (d.bias << d.m) + 1):
                x, y = d.decode(p)[1], d.decode(p - 1)[1] if p else 0
                for v in (x, (x + y) / 2, x + (x - y) / 2, x + (x - y) / 2 + (x - y) / 64, x + (x - y) / 2 - (x - y) / 64):
                    out.append(f.encode((0, v)))
                    out.append(f.encode((1, v)))
    elif src == 'pred':
        out = [0, 1, 1]
    else:
        out = patterns(src, 4 if WIDTH[src] == 2 else 40, 3)
    return Arr(src, (len(out),), out)


def convert_cases():
    real = ['pred'] + INTS + FLOATS
    for src in real:
        file = File('convert_' + src, 'convert from %s to every type. Exact.' % src)
        for dst in real:
            a = source(src, dst)
            file.case(dst, 'r = %s[%d] convert(a)' % (dst, a.count), [a], ('exact', Arr(dst, a.shape, convert(src, dst, a))))
        for dst in COMPLEX:
            a = source(src, PART[dst])
            parts = [x for p in convert(src, PART[dst], a) for x in (p, 0)]
            file.case(dst, 'r = %s[%d] convert(a)' % (dst, a.count), [a], ('exact', Arr(dst, a.shape, parts)))
    file = File('convert_complex', 'convert between the complex types. Exact.')
    for src in COMPLEX:
        for dst in COMPLEX:
            a = array(src, (40,), 5)
            bits = convert(PART[src], PART[dst], Arr(PART[src], (80,), a.bits))
            file.case('%s_%s' % (src, dst), 'r = %s[40] convert(a)' % dst, [a], ('exact', Arr(dst, a.shape, bits)))


# --- bits -----------------------------------------------------------------------------------------------------------
def words(a):
    """One integer per element."""
    if a.type in COMPLEX:
        w = WIDTH[a.type]
        return [a.bits[i] | a.bits[i + 1] << w for i in range(0, len(a.bits), 2)]
    return a.bits


def size_of(t):
    return WIDTH[t] * (2 if t in COMPLEX else 1)


def from_words(t, shape, values):
    if t in COMPLEX:
        w = WIDTH[t]
        return Arr(t, shape, [x for v in values for x in (v & (1 << w) - 1, v >> w)])
    return Arr(t, shape, values)


def reinterpret(a, t):
    """bitcast-convert: of another width, the minor dimension appears or goes; element 0 in the low bits."""
    ws, wd = size_of(a.type), size_of(t)
    values = words(a)
    if ws == wd:
        return from_words(t, a.shape, values)
    if ws > wd:
        n = ws // wd
        return from_words(t, a.shape + (n,), [v >> wd * i & (1 << wd) - 1 for v in values for i in range(n)])
    n = wd // ws
    assert a.shape[-1] == n
    out = [sum(values[i + j] << ws * j for j in range(n)) for i in range(0, len(values), n)]
    return from_words(t, a.shape[:-1], out)


def finite(t, shape):
    """No NaNs: the bits of those are promised for none but constants and parameters."""
    a = array(t, shape, 6)
    if t in FLOATS or t in COMPLEX:
        f = FORMATS[PART.get(t, t)]
        a.bits = [f.encode((0, Fraction(3, 2))) if f.decode(b)[1] == NAN else b for b in a.bits]
    return a


def bitcast_cases():
    types = INTS + FLOATS + COMPLEX
    file = File('bitcast_convert', 'bitcast-convert between all types of sizes that divide. Exact.')
    for src in types:
        for dst in types:
            ws, wd = size_of(src), size_of(dst)
            if (src in COMPLEX) != (dst in COMPLEX):
                continue  # HLO has none
            if ws == wd and (types.index(src) * 7 + types.index(dst)) % 3:
                continue  # a third of the pairs of equal size
            if max(ws, wd) % min(ws, wd) or (ws != wd and (types.index(src) * 5 + types.index(dst)) % 4):
                continue
            a = finite(src, (4, wd // ws) if wd > ws else (3, 2))
            y = reinterpret(a, dst)
            file.case('%s_%s' % (src, dst), 'r = %s bitcast-convert(a)' % y.text, [a], ('exact', y))
    file = File('bitcast', 'bitcast: the bytes of one layout read in another. Exact.')
    a = finite('f32', (2, 3))
    file.case('same', 'r = f32[3,2] bitcast(a)', [a], ('exact', Arr('f32', (3, 2), a.bits)))
    file.case('to_u32', 'r = u32[6] bitcast(a)', [a], ('exact', Arr('u32', (6,), a.bits)))
    file.case('transposing', 'r = f32[3,2]{0,1} bitcast(a)', [a],
              ('exact', a.moved(a.index().T)))
    b = finite('s16', (2, 3, 4))
    file.case('from_layout', 'b = s16[2,3,4]{0,2,1} copy(a)\nr = s16[3,4,2] bitcast(b)', [b],
              ('exact', b.moved(b.index().transpose(1, 2, 0))))
    c = finite('u4', (4, 2))
    file.case('packed', 'r = u8[4] bitcast(a)', [c], ('exact', reinterpret(c, 'u8')))
    file.case('empty', 'r = f64[0] bitcast(a)', [Arr('f64', (3, 0), [])], ('exact', Arr('f64', (0,), [])))


def make():
    convert_cases()
    bitcast_cases()

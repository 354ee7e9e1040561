"""What the cases are computed on: patterns of every type, corners first."""
import random

from arrays import INTS
from cases import WIDTH, Arr
from formats import FORMATS, PART


def float_corners(t):
    """NaN, infinities, zeros, ends, denormals, one, halves and their neighbours; as patterns, without duplicates."""
    f = FORMATS[t]
    if f.bits <= 8:
        return list(range(1 << f.bits))
    one, least_normal = f.bias << f.m, 1 << f.m
    half, two = one - (1 << f.m), one + (1 << f.m)
    plus = [0, 1, 2, least_normal - 1, least_normal, half, half + 1, half - 1, one - 1, one, one + 1, one + (1 << f.m - 1),
            two, two + (1 << f.m - 2), two + (1 << f.m - 1), f.largest, f.largest - 1, f.inf, f.nan, f.nan | 1,
            f.encode((0, 3)), f.encode((0, 100)), f.encode((0, 7))]
    return plus + [p | f.sign_bit for p in plus]


def floats(t, count, seed, spread=12):
    """Corners, then values of every size and values near 1."""
    f, r = FORMATS[t], random.Random('%s %s %s' % (t, count, seed))
    out = float_corners(t)
    while len(out) < count:
        if r.random() < 0.3:
            out.append(r.randrange(1 << f.bits))
        else:
            e = min(max(f.bias + r.randint(-spread, spread), 0), (1 << f.e) - 2)
            out.append(r.randrange(2) * f.sign_bit | e << f.m | r.randrange(1 << f.m))
    return out[:count]


def int_corners(t):
    w = WIDTH[t]
    if w <= 4:
        return list(range(1 << w))
    m = 1 << w
    return [0, 1, 2, 3, m - 1, m - 2, m >> 1, (m >> 1) - 1, (m >> 1) + 1, w, w - 1, w + 1, 5, m - 5, 10, 0x55 * (m // 255)]


def integers(t, count, seed):
    r = random.Random('%s %s %s' % (t, count, seed))
    w, out = WIDTH[t], int_corners(t)
    while len(out) < count:
        out.append(r.randrange(1 << w) >> r.randrange(w) & ((1 << w) - 1))
    return out[:count]


def patterns(t, count, seed=0):
    if t == 'pred':
        return [(i * 5 + seed >> 1) & 1 for i in range(count)]
    if t in INTS:
        return integers(t, count, seed)
    if t in PART:
        r = random.Random('%s %d' % (t, seed))
        pool = floats(PART[t], 60, seed)
        return [r.choice(pool) for _ in range(2 * count)]
    return floats(t, count, seed)


def array(t, shape, seed=0):
    n = 1
    for d in shape:
        n *= d
    return Arr(t, shape, patterns(t, n, seed))


def pairs(t, most, seed=0):
    """Two lists of equal length: all pairs of narrow patterns; pairs of corners and random ones of wide ones."""
    w = 1 if t == 'pred' else WIDTH[t]
    if w <= 4:
        both = [(a, b) for a in range(1 << w) for b in range(1 << w)]
    else:
        r = random.Random('pairs %s %d' % (t, seed))
        if t in INTS:
            corners = int_corners(t)
        elif w <= 8:
            f = FORMATS[t]
            corners = [0, 1, 2, 7, f.largest, f.nan, f.encode((0, 1)), f.encode((0, 2)), 0x35, 0x4c]
            corners += [c | f.sign_bit for c in corners[:-2]] + ([f.inf, f.inf | f.sign_bit] if f.inf else [])
        else:
            f = FORMATS[t]
            corners = [0, 1, f.largest, f.inf, f.nan, f.encode((0, 1)), f.encode((0, 3)), 1 << f.m]
            corners += [c | f.sign_bit for c in corners]
        both = [(a, b) for a in corners for b in corners]
        r.shuffle(both)
        both = both[:most * 2 // 3]
        near = integers(t, most, seed) if t in INTS else floats(t, most + 64, seed, spread=4)[-most:]
        while len(both) < most:
            both.append((r.choice(near), r.choice(near)))
    return [a for a, _ in both], [b for _, b in both]


def plain(t, count, seed, low=-4.0, high=4.0):
    """Ordinary values: floats between the ends, small integers; no specials. A flat list of patterns."""
    r = random.Random('plain %s %d %s' % (t, count, seed))
    if t == 'pred':
        return [r.randrange(2) for _ in range(count)]
    if t in INTS:
        w = WIDTH[t]
        return [r.randint(-5 if t[0] == 's' else 0, 9) & ((1 << w) - 1) for _ in range(count)]
    f = FORMATS[PART.get(t, t)]
    from formats import number
    from fractions import Fraction
    if f.kind == 'e8m0':
        return [f.encode(number(Fraction(2)**r.randint(-3, 3))) for _ in range(count)]
    out = [f.encode(number(Fraction(r.uniform(low, high)))) for _ in range(count * (2 if t in PART else 1))]
    return [0 if p == f.sign_bit else p for p in out]  # no -0

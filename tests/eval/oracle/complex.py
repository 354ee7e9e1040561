"""Elementwise ops of complex types."""
import cmath
import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np

import formats as F
from cases import Arr, File, ints, of, rounded
from formats import FORMATS, NAN, PART, from_mp, to_mp
from inputs import array, plain

PLANES = {'c64': np.float32, 'c128': np.float64}


# --- arithmetic, step by step in the part type ------------------------------------------------------------------------
def multiply(t, a, b, c, d):
    return a * c - b * d, a * d + b * c


def sign_of(t, x, flag):
    return t(math.copysign(1.0 if flag else 0.0, x))


def exactly(t, x, y, z, w, norm):
    """(x y + z w) / norm rounded once; a zero has the sign that its products give it."""
    v = (Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) * Fraction(float(w))) / norm
    if v == 0:
        zero = lambda p, q: np.copysign(t(0), p) * np.copysign(t(1), q)
        return t(0) if x and y else zero(x, y) + zero(z, w)
    f = FORMATS['f32' if t is np.float32 else 'f64']
    return np.array([f.encode(F.number(v))], np.uint32 if t is np.float32 else np.uint64).view(t)[0]


def divide(t, a, b, c, d):
    if all(np.isfinite((a, b, c, d))) and (c or d):
        norm = Fraction(float(c))**2 + Fraction(float(d))**2
        return exactly(t, a, c, b, d, norm), exactly(t, b, c, -a, d, norm)
    inf = t(np.inf)
    if c == 0 and d == 0 and not (np.isnan(a) and np.isnan(b)):
        k = np.copysign(inf, c)
        return k * a, k * b
    if (np.isinf(a) or np.isinf(b)) and np.isfinite(c) and np.isfinite(d):
        a, b = sign_of(t, a, np.isinf(a)), sign_of(t, b, np.isinf(b))
        return inf * (a * c + b * d), inf * (b * c - a * d)
    if (np.isinf(c) or np.isinf(d)) and np.isfinite(a) and np.isfinite(b):
        c, d = sign_of(t, c, np.isinf(c)), sign_of(t, d, np.isinf(d))
        return t(0) * (a * c + b * d), t(0) * (b * c - a * d)
    return t(np.nan), t(np.nan)


def less(x, y, equal):
    """Lexicographic; a comparison with NaN is false."""
    return bool(x[0] < y[0] or (x[0] == y[0] and (x[1] <= y[1] if equal else x[1] < y[1])))


def compare(direction, x, y):
    if direction in ('EQ', 'NE'):
        return (x == y) == (direction == 'EQ')
    if direction in ('GT', 'GE'):
        x, y = y, x
    return less(x, y, direction in ('LE', 'GE'))


BINARY = {
    'add': lambda t, a, b, c, d: (a + c, b + d), 'subtract': lambda t, a, b, c, d: (a - c, b - d),
    'multiply': multiply, 'divide': divide,
}


def corner_parts(t):
    return [t(v) for v in (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, np.finfo(t).max, np.finfo(t).tiny, 3e-3)]


def operands(name, seed):
    t = PLANES[name]
    parts = corner_parts(t)
    r = np.random.RandomState(seed)
    rows = [tuple(parts[k] for k in r.randint(0, len(parts), 4)) for _ in range(90)]
    rows += [tuple(t(v) for v in r.standard_normal(4) * 2.0**r.randint(-20, 20)) for _ in range(30)]
    flat = lambda cut: of(np.array([x for row in rows for x in row[cut]], t))
    arrays = [Arr(name, (len(rows),), flat(cut).bits) for cut in (slice(0, 2), slice(2, 4))]
    return rows, arrays


def arithmetic():
    file = File('complex_arithmetic', 'Complex arithmetic by the formulas of eval.h, every step rounded by NumPy; quotients by fractions, rounded once.')
    for name, t in PLANES.items():
        rows, (x, y) = operands(name, 11)
        for op, f in BINARY.items():
            with np.errstate(all='ignore'):
                z = [v for row in rows for v in f(t, *row)]
            file.case('%s_%s' % (op, name), 'r = %s %s(a, b)' % (x.text, op), [x, y],
                      ('within 0' if op == 'divide' else 'exact', Arr(name, x.shape, of(np.array(z, t)).bits)),
                      by='python' if op == 'divide' else 'numpy')
        for op in ('maximum', 'minimum'):
            left = [compare('GE' if op == 'maximum' else 'LE', r[:2], r[2:]) for r in rows]
            bits = [b for i, l in enumerate(left) for b in (x if l else y).bits[2 * i:2 * i + 2]]
            file.case('%s_%s' % (op, name), 'r = %s %s(a, b)' % (x.text, op), [x, y], ('exact', Arr(name, x.shape, bits)))
        for d in ('EQ', 'NE', 'LT', 'LE', 'GT', 'GE'):
            got = [compare(d, r[:2], r[2:]) for r in rows]
            file.case('compare_%s_%s' % (d, name), 'r = pred[%d] compare(a, b), direction=%s' % (x.count, d), [x, y],
                      ('exact', ints('pred', x.shape, got)))
        p = Arr(PART[name], x.shape, x.bits[::2])
        q = Arr(PART[name], x.shape, x.bits[1::2])
        file.case('complex_' + name, 'r = %s complex(a, b)' % x.text, [p, q], ('exact', x))
        file.case('real_' + name, 'r = %s real(a)' % p.text, [x], ('exact', p))
        file.case('imag_' + name, 'r = %s imag(a)' % q.text, [x], ('exact', q))
        flip = FORMATS[PART[name]].sign_bit
        file.case('negate_' + name, 'r = %s negate(a)' % x.text, [x], ('exact', Arr(name, x.shape, [b ^ flip for b in x.bits])))
        n = x.numbers()
        size = [hypot(a, b) for a, b in zip(n[::2], n[1::2])]
        file.case('abs_' + name, 'r = %s abs(a)' % p.text, [x], ('within 0', rounded(PART[name], x.shape, size)), by='mpmath')
        file.case('copy_' + name, 'r = %s copy(a)' % x.text, [x], ('exact', x))
        signs = [v for a, b in zip(n[::2], n[1::2]) for v in sign(a, b)]
        file.case('sign_' + name, 'r = %s sign(a)' % x.text, [x], ('within 0', rounded(name, x.shape, signs)), by='mpmath')


def hypot(a, b):
    if F.INF in (a[1], b[1]):
        return (0, F.INF)
    if NAN in (a[1], b[1]):
        return (0, NAN)
    with mp.workprec(4500):
        return from_mp(mp.sqrt(to_mp(a)**2 + to_mp(b)**2))


def sign(a, b):
    size = hypot(a, b)
    if NAN in (a[1], b[1]):
        return [(0, NAN)] * 2
    if F.is_zero(size):
        return [a, b]
    return [F.div(a, size), F.div(b, size)]


# --- functions --------------------------------------------------------------------------------------------------------
FUNCTIONS = {
    'exponential': mp.exp, 'exponential-minus-one': mp.expm1, 'log': mp.log, 'log-plus-one': lambda z: mp.log(1 + z),
    'logistic': lambda z: 1 / (1 + mp.exp(-z)), 'tanh': mp.tanh, 'sqrt': mp.sqrt, 'rsqrt': lambda z: 1 / mp.sqrt(z),
    'sine': mp.sin, 'cosine': mp.cos, 'tan': mp.tan, 'exp10': lambda z: mp.exp(z * mp.log(10)), 'sinh': mp.sinh,
    'cosh': mp.cosh, 'asin': mp.asin, 'acos': mp.acos, 'atan': mp.atan, 'asinh': mp.asinh, 'acosh': mp.acosh,
    'atanh': mp.atanh,
}
ANNEX_G = {  # ops that Python's cmath has, with the tables of C's Annex G
    'exponential': cmath.exp, 'log': cmath.log, 'tanh': cmath.tanh, 'sqrt': cmath.sqrt, 'sine': cmath.sin,
    'cosine': cmath.cos, 'tan': cmath.tan, 'sinh': cmath.sinh, 'cosh': cmath.cosh, 'asin': cmath.asin,
    'acos': cmath.acos, 'atan': cmath.atan, 'asinh': cmath.asinh, 'acosh': cmath.acosh, 'atanh': cmath.atanh,
}


def points(name):
    """Finite points off the axes, near 1, near 0, far out, on both sides of every branch cut."""
    t = PLANES[name]
    r = np.random.RandomState(5)
    z = list(r.standard_normal(24) + 1j * r.standard_normal(24))
    z += [a + b * 1j for a in (1.001, -0.999, 5, -3) for b in (1e-3, -1e-3, 0.5)]
    z += [a * 1e-6 * (1 + 0.3j) for a in (1, -1, 1j)] + [a * (30 + 17j) for a in (1, -1, 1j, -1j)]
    return np.array(z).astype(name.replace('c64', 'complex64').replace('c128', 'complex128')), t


def functions():
    for op, f in FUNCTIONS.items():
        file = File('complex_' + op, 'Complex %s. mpmath with 400 bits on finite points off the axes, rounded once: so '
                    'does the evaluator.\ncmath where a part is a zero, an infinity or a NaN, as C\'s Annex G has it: '
                    'within one unit, for its own error and for zeros,\nwhose signs are open there.' % op)
        for name in PLANES:
            z, _ = points(name)
            x = of(z)
            n = x.numbers()
            out = []
            for a, b in zip(n[::2], n[1::2]):
                w = mp.mpc(f(mp.mpc(to_mp(a), to_mp(b))))
                out += [from_mp(w.real), from_mp(w.imag)]
            file.case(name, 'r = %s %s(a)' % (x.text, op), [x], ('within 0', rounded(name, x.shape, out)), by='mpmath')
            if op in ANNEX_G:
                specials(file, op, name)


def left_open(op, a, b, w):
    """Annex G leaves the sign of an infinity beside a NaN open, and what these functions give for a zero and a NaN has
    changed with C17 (DR 471)."""
    if math.isnan(w.real) != math.isnan(w.imag) and (math.isinf(w.real) or math.isinf(w.imag)):
        return True
    return op in ('tanh', 'tan', 'acosh', 'acos') and (a == 0 or b == 0) and (math.isnan(a) or math.isnan(b))


def specials(file, op, name):
    t = PLANES[name]
    values, out = [], []
    for a, b in itertools.product([0.0, -0.0, math.inf, -math.inf, math.nan, 0.75, -1.0], repeat=2):
        if all(math.isfinite(v) and v for v in (a, b)):
            continue
        try:
            w = ANNEX_G[op](complex(a, b))
        except (ValueError, OverflowError):
            continue  # Python raises where C sets errno
        if left_open(op, a, b, w):
            continue
        values.append((a, b))
        out.append((w.real, w.imag))
    x = Arr(name, (len(values),), of(np.array(values, t).reshape(-1)).bits)
    y = Arr(name, (len(values),), of(np.array(out).astype(t).reshape(-1)).bits)
    file.case('special_' + name, 'r = %s %s(a)' % (x.text, op), [x], ('within 1', y), by='cmath')


def powers():
    file = File('complex_power', 'Complex power. mpmath with 400 bits; finite points off the axes.')
    for name in PLANES:
        x, y = Arr(name, (30,), plain(name, 30, 1)), Arr(name, (30,), plain(name, 30, 2, -2, 2))
        n, m = x.numbers(), y.numbers()
        pairs = [(mp.mpc(to_mp(n[i]), to_mp(n[i + 1])), mp.mpc(to_mp(m[i]), to_mp(m[i + 1]))) for i in range(0, 60, 2)]
        out = [from_mp(p) for z, w in pairs for u in [mp.exp(w * mp.log(z))] for p in (u.real, u.imag)]
        file.case('power_' + name, 'r = %s power(a, b)' % x.text, [x, y], ('within 0', rounded(name, x.shape, out)), by='mpmath')


def next_to_poles(t):
    """y and x with y / x next to i or -i: by their last places, and nearer than the least number can say."""
    e, big = np.finfo(t).smallest_subnormal, np.finfo(t).max * t(0.75)
    rows = [(0, 2, 2, e), (0, -2, 2, -e), (0, 2, -2, e), (e, big, big, 0), (e, big, big, -2 * e), (-big, e, 2 * e, big),
            (e, 3 * e, 3 * e, 0), (e, 2 * e, e, e), (1, 2, 2, t(-1) - np.finfo(t).eps), (1, t(2) - np.finfo(t).eps, -2, 1)]
    r = np.random.RandomState(5)
    for _ in range(30):
        a, b = t(r.standard_normal() * 2.0**r.randint(-60, 60)), t(r.standard_normal() * 2.0**r.randint(-60, 60))
        off = t(1 + r.randint(-4, 5) * np.finfo(t).eps)
        rows.append((-b * off, a, a, b) if abs(a) > abs(b) else (b, -a * off, a, b))
    return rows


def atans():
    file = File('complex_atan2', 'Complex atan2, -i log((x + iy) / sqrt(x^2 + y^2)). mpmath with 4500 bits; finite points.')
    for name, t in PLANES.items():
        r = np.random.RandomState(3)
        rows = [tuple(t(v) for v in r.standard_normal(4) * 2.0**r.randint(-3, 4)) for _ in range(30)] + next_to_poles(t)
        y, x = [Arr(name, (len(rows),), of(np.array([v for row in rows for v in row[cut]], t)).bits)
                for cut in (slice(0, 2), slice(2, 4))]
        out = []
        for row in rows:
            with mp.workprec(4500):
                u, v = mp.mpc(float(row[0]), float(row[1])), mp.mpc(float(row[2]), float(row[3]))
                w = u * u + v * v
                a = mp.log((v + 1j * u) / mp.sqrt(w)) if w else mp.mpc(0, 0)
                pole = mp.inf if v + 1j * u == 0 else -mp.inf
                out += [from_mp(p) for p in ((a.imag, 0 - a.real) if w else (mp.nan, pole))]
        file.case('atan2_' + name, 'r = %s atan2(a, b)' % x.text, [y, x], ('within 0', rounded(name, x.shape, out)), by='mpmath')


def make():
    arithmetic()
    functions()
    powers()
    atans()

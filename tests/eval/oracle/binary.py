"""Elementwise ops of two and three operands on real types."""
from fractions import Fraction

import mpmath as mp

import formats as F
from arrays import FLOATS, INTS
from cases import WIDTH, Arr, File, ints, rounded
from formats import FORMATS, INF, NAN, from_mp, to_mp
from inputs import array, float_corners, pairs, patterns

MOST = {2: 99, 4: 999, 8: 240}


def most_of(t):
    return MOST.get(WIDTH[t], 120)


def both(t, seed=0):
    a, b = pairs(t, most_of(t), seed)
    return Arr(t, (len(a),), a), Arr(t, (len(b),), b)


# --- floats ---------------------------------------------------------------------------------------------------------
def is_odd(y):
    return y[1] not in (INF, NAN) and y[1].denominator == 1 and y[1].numerator & 1


def power(x, y):
    """C's pow."""
    one = Fraction(1)
    if F.is_zero(y) or (x[0] == 0 and x[1] == 1):
        return (0, one)
    if NAN in (x[1], y[1]):
        return (0, NAN)
    if y[1] == INF:
        if x[1] == 1:
            return (0, one)
        grows = (x[1] == INF or x[1] > 1) != bool(y[0])
        return (0, INF if grows else Fraction(0))
    odd = is_odd(y)
    if F.is_zero(x) or x[1] == INF:
        big = (x[1] == INF) != bool(y[0])
        return (x[0] if odd else 0, INF if big else Fraction(0))
    if x[0] and y[1].denominator != 1:
        return (0, NAN)
    sign = int(bool(x[0] and odd))
    bits = mp.mpf(F.value(y).numerator) / y[1].denominator * mp.log(to_mp((0, x[1])), 2)
    if abs(bits) > 20000:
        return (sign, INF if bits > 0 else Fraction(2)**-20000)
    if y[1].denominator == 1 and y[1] < 3000:
        return (sign, x[1]**int(F.value(y)))
    with mp.workprec(900):
        return (sign, from_mp(mp.power(to_mp((0, x[1])), to_mp(y)))[1])


def atan2(y, x):
    if NAN in (x[1], y[1]):
        return (0, NAN)
    with mp.workprec(5000 if exponent_gap(y, x) else 400):
        if F.is_zero(y):
            return (y[0], from_mp(mp.pi)[1] if x[0] else Fraction(0))
        if y[1] == INF:
            angle = mp.pi / 2 if x[1] != INF else 3 * mp.pi / 4 if x[0] else mp.pi / 4
        elif x[1] == INF:
            if not x[0]:
                return (y[0], Fraction(0))
            angle = mp.pi
        elif F.is_zero(x):
            angle = mp.pi / 2
        else:
            angle = mp.atan2(to_mp((0, y[1])), to_mp(x))
        return (y[0], from_mp(angle)[1])


def exponent_gap(y, x):
    return INF not in (x[1], y[1]) and x[1] != 0 and y[1] != 0


FLOAT_OPS = {
    'add': F.add, 'subtract': F.sub, 'multiply': F.mul, 'divide': F.div, 'remainder': F.remainder,
    'maximum': F.maximum, 'minimum': F.minimum, 'power': power, 'atan2': atan2,
}


def float_cases():
    for op, f in FLOAT_OPS.items():
        file = File('binary_' + op, '%s of floats. One rounding of the exact result.' % op)
        for t in FLOATS:
            a, b = both(t, 1)
            y = [f(p, q) for p, q in zip(a.numbers(), b.numbers())]
            rule = 'within 0' if op in ('power', 'atan2') and t in ('f32', 'f64') else 'exact'
            by = 'mpmath' if op in ('power', 'atan2') else 'python'
            file.case(t, 'r = %s %s(a, b)' % (a.text, op), [a, b], (rule, rounded(t, a.shape, y)), by=by)


# --- integers -------------------------------------------------------------------------------------------------------
def divide(a, b):
    return -1 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def int_remainder(a, b):
    return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def int_power(a, b):
    if b >= 0:
        return pow(a, b, 1 << 64) if b > 200 else a**b
    return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0


def shift(op, bits, a, w):
    """`bits` as a pattern, `a` its value, by an amount that is a pattern."""
    def by(n):
        if n >= w:
            return (-1 if a < 0 else 0) if op == 'shift-right-arithmetic' else 0
        return bits << n if op == 'shift-left' else bits >> n if op == 'shift-right-logical' else a >> n
    return by


INT_OPS = {
    'add': lambda a, b: a + b, 'subtract': lambda a, b: a - b, 'multiply': lambda a, b: a * b, 'divide': divide,
    'remainder': int_remainder, 'power': int_power, 'maximum': max, 'minimum': min, 'and': lambda a, b: a & b,
    'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b,
}


def signed(b, w):
    return b - (1 << w) if b >> (w - 1) else b


def int_cases():
    for op, f in INT_OPS.items():
        file = File('binary_int_' + op, '%s of integers and pred. Exact.' % op)
        for t in INTS:
            a, b = both(t, 2)
            y = [f(p, q) for p, q in zip(a.ints(), b.ints())]
            file.case(t, 'r = %s %s(a, b)' % (a.text, op), [a, b], ('exact', ints(t, a.shape, y)))
        if op in ('add', 'multiply', 'maximum', 'minimum', 'and', 'or', 'xor'):
            a, b = both('pred')
            g = {'add': max, 'multiply': min}.get(op, f)
            y = [g(p, q) for p, q in zip(a.bits, b.bits)]
            file.case('pred', 'r = pred[4] %s(a, b)' % op, [a, b], ('exact', ints('pred', (4,), y)))
    file = File('binary_int_shift', 'Shifts and mulhi of integers; amounts outside the width. Exact.')
    for t in INTS:
        w = WIDTH[t]
        a, b = both(t, 3)
        for op in ('shift-left', 'shift-right-arithmetic', 'shift-right-logical'):
            y = [shift(op, p, signed(p, w), w)(q) for p, q in zip(a.bits, b.bits)]
            file.case('%s_%s' % (op, t), 'r = %s %s(a, b)' % (a.text, op), [a, b], ('exact', ints(t, a.shape, y)))
        y = [p * q >> w for p, q in zip(a.ints(), b.ints())]
        file.case('mulhi_' + t, 'r = %s mulhi(a, b)' % a.text, [a, b], ('exact', ints(t, a.shape, y)))


# --- comparisons ------------------------------------------------------------------------------------------------------
DIRECTIONS = ['EQ', 'NE', 'LT', 'LE', 'GT', 'GE']


def six(order):
    """order: -1, 0, 1 or None."""
    if order is None:
        return [0, 1, 0, 0, 0, 0]
    return [order == 0, order != 0, order < 0, order <= 0, order > 0, order >= 0]


def total_key(t, bits):
    f = FORMATS[t]
    return -1 - (bits & (f.sign_bit - 1)) if bits & f.sign_bit else bits


def compare_text(n, extra=''):
    lines = ['r%d = pred[%d] compare(a, b), direction=%s%s' % (i, n, d, extra) for i, d in enumerate(DIRECTIONS)]
    return '\n'.join(lines + ['t = (%s) tuple(%s)' % (', '.join(['pred[%d]' % n] * 6),
                                                     ', '.join('r%d' % i for i in range(6)))])


def compare_case(file, name, a, b, orders, extra=''):
    rows = [six(o) for o in orders]
    outs = [('exact', ints('pred', a.shape, [r[i] for r in rows])) for i in range(6)]
    file.case(name, compare_text(a.count, extra), [a, b], *outs)


def compare_cases():
    file = File('compare', 'All six directions; floats also by total order (-NaN < -inf < ... < -0 < 0 ... < NaN).')
    for t in FLOATS:
        a, b = both(t, 4)
        compare_case(file, t, a, b, [F.compare(p, q) for p, q in zip(a.numbers(), b.numbers())])
        compare_case(file, 'typed_' + t, a, b, [F.compare(p, q) for p, q in zip(a.numbers(), b.numbers())], ', type=FLOAT')
        if FORMATS[t].kind in ('ieee', 'fn'):
            keys = [(total_key(t, p), total_key(t, q)) for p, q in zip(a.bits, b.bits)]
            compare_case(file, 'total_' + t, a, b, [(p > q) - (p < q) for p, q in keys], ', type=TOTALORDER')
    for t in INTS + ['pred']:
        a, b = both(t, 4)
        orders = [(p > q) - (p < q) for p, q in zip(a.ints(), b.ints())]
        compare_case(file, t, a, b, orders)
        if t != 'pred':
            compare_case(file, 'typed_' + t, a, b, orders, ', type=' + ('SIGNED' if t[0] == 's' else 'UNSIGNED'))


# --- select, clamp ----------------------------------------------------------------------------------------------------
def select_cases():
    file = File('select_clamp', 'select of every type, clamp of real ones. Exact.')
    for t in FLOATS + INTS + ['pred', 'c64', 'c128']:
        n = 24
        p = array('pred', (n,), 3)
        a, b = array(t, (n,), 1), array(t, (n,), 2)
        flip = Arr(t, (n,), b.bits[::-1]) if t not in ('c64', 'c128') else b
        y = a.moved(a.index())
        y.bits = [x for i in range(n) for x in
                  (a if p.bits[i] else flip).bits[i * len(a.bits) // n:(i + 1) * len(a.bits) // n]]
        file.case('select_' + t, 'r = %s select(a, b, c)' % a.text, [p, a, flip], ('exact', y))
        one = Arr('pred', (), [1])
        file.case('select_scalar_' + t, 'r = %s select(a, b, c)' % a.text, [one, a, flip], ('exact', a))
        if t in ('c64', 'c128', 'pred'):
            continue
        xs = patterns(t, 40, 5)
        lo, hi = Arr(t, (40,), patterns(t, 40, 6)[::-1]), Arr(t, (40,), patterns(t, 41, 7)[1:])
        x = Arr(t, (40,), xs)
        if t in FLOATS:
            y = rounded(t, (40,), [F.minimum(F.maximum(l, v), h) for l, v, h in zip(lo.numbers(), x.numbers(), hi.numbers())])
        else:
            y = ints(t, (40,), [min(max(l, v), h) for l, v, h in zip(lo.ints(), x.ints(), hi.ints())])
        file.case('clamp_' + t, 'r = %s clamp(a, b, c)' % x.text, [lo, x, hi], ('exact', y))
        l, h = Arr(t, (), [xs[2]]), Arr(t, (), [xs[1]])
        if t in FLOATS:
            y = rounded(t, (40,), [F.minimum(F.maximum(l.numbers()[0], v), h.numbers()[0]) for v in x.numbers()])
        else:
            y = ints(t, (40,), [min(max(l.ints()[0], v), h.ints()[0]) for v in x.ints()])
        file.case('clamp_scalar_' + t, 'r = %s clamp(a, b, c)' % x.text, [l, x, h], ('exact', y))


def make():
    float_cases()
    int_cases()
    compare_cases()
    select_cases()

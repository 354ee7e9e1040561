"""Elementwise ops of one operand on real types, and reduce-precision."""
from fractions import Fraction

import mpmath as mp

from arrays import FLOATS, INTS
from cases import WIDTH, Arr, File, ints, rounded
from formats import FORMATS, INF, NAN, exponent_of, from_mp, half_even, is_nan, number, to_mp
from inputs import array


def logistic(x):
    return mp.mpf(0) if x == -mp.inf else 1 / (1 + mp.exp(-x))


def real_or_nan(x):
    return mp.nan if isinstance(x, mp.mpc) and x.imag != 0 else mp.mpf(x.real) if isinstance(x, mp.mpc) else x


def tan(x):
    return mp.sin(x) / mp.cos(x)


# op -> (function of an mpf, is odd or otherwise keeps the sign of a zero)
FUNCTIONS = {
    'exponential': (mp.exp, False), 'exponential-minus-one': (mp.expm1, True), 'log': (mp.log, False),
    'log-plus-one': (lambda x: mp.log1p(x), True), 'logistic': (logistic, False), 'tanh': (mp.tanh, True),
    'erf': (mp.erf, True), 'sqrt': (mp.sqrt, True), 'rsqrt': (lambda x: 1 / mp.sqrt(x), False),
    'cbrt': (lambda x: -mp.cbrt(-x) if x < 0 else mp.cbrt(x), True), 'sine': (mp.sin, True), 'cosine': (mp.cos, False),
    'tan': (tan, True), 'exp10': (lambda x: mp.power(10, x), False), 'sinh': (mp.sinh, True), 'cosh': (mp.cosh, False),
    'asin': (mp.asin, True), 'acos': (mp.acos, False), 'atan': (mp.atan, True), 'asinh': (mp.asinh, True),
    'acosh': (mp.acosh, False), 'atanh': (mp.atanh, True),
}
# Where mpmath has no value or another convention: at zeros, infinities, ends of domains. 'domain': NaN outside.
POLES = {'log': {0: '-inf'}, 'log-plus-one': {-1: '-inf'}, 'atanh': {1: 'inf', -1: '-inf'}}
AT_INFINITY = {  # +inf, -inf
    'exponential': ('inf', '0'), 'exponential-minus-one': ('inf', '-1'), 'log': ('inf', 'nan'),
    'log-plus-one': ('inf', 'nan'), 'logistic': ('1', '0'), 'tanh': ('1', '-1'), 'erf': ('1', '-1'),
    'sqrt': ('inf', 'nan'), 'rsqrt': ('0', 'nan'), 'cbrt': ('inf', '-inf'), 'sine': ('nan', 'nan'),
    'cosine': ('nan', 'nan'), 'tan': ('nan', 'nan'), 'exp10': ('inf', '0'), 'sinh': ('inf', '-inf'),
    'cosh': ('inf', 'inf'), 'asin': ('nan', 'nan'), 'acos': ('nan', 'nan'), 'atan': ('pi/2', '-pi/2'),
    'asinh': ('inf', '-inf'), 'acosh': ('inf', 'nan'), 'atanh': ('nan', 'nan'),
}


def symbol(text):
    sign, text = int(text[0] == '-'), text.lstrip('-')
    if text == 'pi/2':
        return (sign, from_mp(mp.pi / 2)[1])
    return (sign, {'inf': INF, 'nan': NAN}.get(text) or Fraction(text))


def in_domain(op, v):
    if op in ('log', 'sqrt', 'rsqrt'):
        return v >= 0
    if op == 'log-plus-one':
        return v >= -1
    if op in ('asin', 'acos', 'atanh'):
        return -1 <= v <= 1
    return v >= 1 if op == 'acosh' else True


def function(op, x):
    """op of a number, exact up to 400 bits."""
    f, odd = FUNCTIONS[op]
    if is_nan(x):
        return x
    if x[1] == INF:
        return symbol(AT_INFINITY[op][x[0]])
    v = -x[1] if x[0] else x[1]
    if v == 0 and odd:
        return x
    if v == 0 and op == 'rsqrt':
        return (x[0], INF)
    if v in POLES.get(op, {}):
        return symbol(POLES[op][v])
    if not in_domain(op, v):
        return (0, NAN)
    extra = max(0, -exponent_of(abs(v))) if v else 0
    if op in ('exponential', 'exp10', 'sinh', 'cosh', 'logistic', 'exponential-minus-one') and abs(v) > 10**6:
        below = {'exponential': Fraction(0), 'exp10': Fraction(0), 'logistic': Fraction(0),
                 'exponential-minus-one': Fraction(-1)}
        if v > 0:  # beyond every format, or just below 1
            return (0, Fraction(1)) if op == 'logistic' else (0, INF)
        return number(below[op]) if op in below and op != 'exponential-minus-one' else (
            (1, Fraction(1)) if op == 'exponential-minus-one' else (int(op == 'sinh'), INF))
    if op in ('tanh', 'erf') and abs(v) > 10**3:
        return (x[0], Fraction(1))
    with mp.workprec(400 + min(2 * extra, 4400)):
        return from_mp(real_or_nan(f(to_mp(x))))


# --- simple ones ----------------------------------------------------------------------------------------------------
def rounding_op(op, x):
    sign, v = x
    if v in (INF, NAN):
        return x
    whole, rest = divmod(v.numerator, v.denominator)
    if op in ('floor', 'ceil'):
        up = rest and (sign == (op == 'floor'))
    else:
        up = 2 * rest > v.denominator or (2 * rest == v.denominator and (op == 'round-nearest-afz' or whole & 1))
    return (sign, Fraction(whole + bool(up)))


SIMPLE = {
    'abs': lambda x: (0, x[1]), 'negate': lambda x: (x[0] ^ 1, x[1]),
    'sign': lambda x: x if x[1] in (NAN, 0) else (x[0], Fraction(1)), 'copy': lambda x: x, 'real': lambda x: x,
}


def reduce_precision(f, x, exponent, mantissa):
    """Mantissa to nearest even, ends of the reduced exponent range to infinity and zero."""
    sign, v = x
    if v == NAN:
        return (0, INF) if mantissa == 0 else x
    if v in (INF, 0):
        return x
    e = exponent_of(v)
    low = 1 - f.bias
    keep = max(e, low) - min(mantissa, f.m)
    if mantissa == 0 and e >= low:  # the even one of two patterns without mantissa has the even exponent field
        beyond = v / Fraction(2)**e - Fraction(3, 2)
        v = Fraction(2)**(e + (beyond > 0 or (beyond == 0 and (e - low) % 2 == 0)))
    else:
        v = half_even(v / Fraction(2)**keep) * Fraction(2)**keep
    if v == 0:
        return (sign, v)
    bias = (1 << (exponent - 1)) - 1
    if exponent < f.e:
        e = exponent_of(v)
        if e > bias:
            return (sign, INF)
        if e < 1 - bias:
            return (sign, Fraction(0))
    return (sign, v)


def float_cases():
    for op in list(SIMPLE) + ['ceil', 'floor', 'round-nearest-afz', 'round-nearest-even']:
        file = File('unary_' + op, 'Elementwise %s of floats; every pattern of the narrow types. Exact.' % op)
        for t in FLOATS:
            x = array(t, (len_of(t),), 1)
            y = [SIMPLE[op](n) if op in SIMPLE else rounding_op(op, n) for n in x.numbers()]
            file.case(t, '%s %s(a)' % ('r = ' + x.text, op), [x], ('exact', rounded(t, x.shape, y)))
    for op in FUNCTIONS:
        file = File('unary_' + op, 'Elementwise %s of floats. mpmath with 400 bits and more, rounded once: the evaluator '
                    'rounds once as well,\nfrom double for f32 and from _Float128 for f64.' % op)
        for t in FLOATS:
            x = array(t, (len_of(t),), 1)
            y = [function(op, n) for n in x.numbers()]
            rule = 'within 0' if t in ('f32', 'f64') else 'exact'
            file.case(t, 'r = %s %s(a)' % (x.text, op), [x], (rule, rounded(t, x.shape, y)), by='mpmath')


def len_of(t):
    return {4: 16, 8: 256}.get(WIDTH[t], 90)


def more_float_cases():
    file = File('unary_more', 'is-finite, imag and reduce-precision of floats. Exact.')
    for t in FLOATS:
        f = FORMATS[t]
        x = array(t, (len_of(t),), 2)
        yes = [n[1] not in (INF, NAN) for n in x.numbers()]
        file.case('is_finite_' + t, 'r = pred[%d] is-finite(a)' % x.count, [x], ('exact', ints('pred', x.shape, yes)))
        if f.kind != 'e8m0':
            zero = rounded(t, x.shape, [(0, Fraction(0))] * x.count)
            file.case('imag_' + t, 'r = %s imag(a)' % x.text, [x], ('exact', zero))
    for t in ('f16', 'bf16', 'f32', 'f64', 'f8e5m2'):
        f = FORMATS[t]
        for e, m in ((f.e, f.m), (5, 10), (8, 7), (4, 3), (5, 2), (2, 0), (1, 1), (f.e, 1), (f.e, 0), (8, 23), (11, 52),
                     (3, 30)):
            x = array(t, (len_of(t),), 3)
            y = [reduce_precision(f, n, e, m) for n in x.numbers()]
            file.case('reduce_precision_%s_e%dm%d' % (t, e, m),
                      'r = %s reduce-precision(a), exponent_bits=%d, mantissa_bits=%d' % (x.text, e, m), [x],
                      ('exact', rounded(t, x.shape, y)))


def int_cases():
    file = File('unary_int', 'Elementwise ops of integers and pred. Exact.')
    for t in INTS:
        w = WIDTH[t]
        x = array(t, (len(range(1 << w)) if w <= 4 else 40,), 4)
        ops = {
            'abs': [abs(v) for v in x.ints()], 'negate': [-v for v in x.ints()], 'not': [~v for v in x.ints()],
            'sign': [(v > 0) - (v < 0) for v in x.ints()], 'popcnt': [bin(b).count('1') for b in x.bits],
            'count-leading-zeros': [w - b.bit_length() for b in x.bits], 'copy': x.bits,
        }
        for op, y in ops.items():
            file.case(op + '_' + t, 'r = %s %s(a)' % (x.text, op), [x], ('exact', ints(t, x.shape, y)))
    p = Arr('pred', (2, 2), [0, 1, 1, 0])
    file.case('not_pred', 'r = pred[2,2] not(a)', [p], ('exact', Arr('pred', (2, 2), [1, 0, 0, 1])))
    for op in ('negate', 'popcnt'):
        file.case(op + '_scalar', 'r = s32[] %s(a)' % op, [Arr('s32', (), [7])],
                  ('exact', ints('s32', (), [-7 if op == 'negate' else 3])))
        file.case(op + '_none', 'r = s32[0,3] %s(a)' % op, [Arr('s32', (0, 3), [])], ('exact', Arr('s32', (0, 3), [])))


def make():
    float_cases()
    more_float_cases()
    int_cases()

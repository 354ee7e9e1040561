"""dot, ragged-dot, scaled-dot and convolution: sums of products in the order of docs/numerics.md, each product added exactly
and the sum rounded to f32 or f64, and once more to the result's type.

A device's order of adding may give others, which is what the interval is for. Integers wrap: their results are exact."""
import itertools
import random
from fractions import Fraction

import formats as F
from cases import WIDTH, Arr, File, ints, rounded
from formats import FORMATS, PART, number
from inputs import plain

FLOAT = ['f4e2m1fn', 'f8e3m4', 'f8e4m3', 'f8e4m3fn', 'f8e4m3fnuz', 'f8e4m3b11fnuz', 'f8e5m2', 'f8e5m2fnuz', 'f16', 'bf16',
         'f32', 'f64']
INT = ['s1', 'u1', 's2', 'u2', 's4', 'u4', 's8', 'u8', 's16', 'u16', 's32', 'u32', 's64', 'u64']
COMPLEX = ['c64', 'c128']


def values(a):
    """Elements as ints, Fractions, or pairs of Fractions; nothing infinite."""
    if a.type in INT:
        return a.ints()
    if a.type == 'pred':
        return a.bits
    n = [F.value(x) for x in a.numbers()]
    return list(zip(n[::2], n[1::2])) if a.type in COMPLEX else n


def product(x, y):
    if isinstance(x, tuple):
        return (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0])
    return x * y


def total(terms, zero):
    terms = list(terms)
    if terms and isinstance(terms[0], tuple):
        return (sum(t[0] for t in terms), sum(t[1] for t in terms))
    return sum(terms) if terms else zero


def contracted(pairs, zero, types):
    """Leaves of pairs, from left to right."""
    pairs = list(pairs)
    if not isinstance(zero, (tuple, Fraction)):
        return total([product(x, y) for x, y in pairs], zero)
    f = FORMATS['f64' if any(t in ('f64', 'c128') for t in types) else 'f32']
    near = lambda v: F.value(f.decode(f.encode(number(v))))
    size = 256
    while size * 4096 < len(pairs):
        size *= 2
    leaves = []
    for first in range(0, len(pairs), size):
        re = im = Fraction(0)
        for x, y in pairs[first:first + size]:
            if isinstance(x, tuple):
                re, im = near(x[0] * y[0] + re), near(x[0] * y[1] + im)
                re, im = near(-x[1] * y[1] + re), near(x[1] * y[0] + im)
            else:
                re = near(x * y + re)
        leaves.append((re, im))
    out = leaves[0] if leaves else (Fraction(0), Fraction(0))
    for leaf in leaves[1:]:
        out = (near(out[0] + leaf[0]), near(out[1] + leaf[1]))
    return out if isinstance(zero, tuple) else out[0]


def result(t, shape, sums):
    if t in INT:
        return ints(t, shape, sums)
    if t == 'pred':
        return ints(t, shape, [bool(s) for s in sums])
    parts = [p for s in sums for p in (s if isinstance(s, tuple) else (s,))]
    return rounded(t, shape, [number(p) for p in parts])


def zero_of(t):
    return (Fraction(0), Fraction(0)) if t in COMPLEX else 0 if t in INT + ['pred'] else Fraction(0)


def rule_of(t):
    return 'exact' if t in INT + ['pred'] else 'within 0'


def make_array(t, shape, seed):
    n = 1
    for d in shape:
        n *= d
    return Arr(t, shape, plain(t, n, seed))


def at(shape, values):
    strides, n = [], 1
    for d in reversed(shape):
        strides.insert(0, n)
        n *= d
    return lambda index: values[sum(i * s for i, s in zip(index, strides))]


def boxes(sizes):
    return itertools.product(*[range(n) for n in sizes])


def braces(values):
    return '{' + ','.join(map(str, values)) + '}'


# --- dot ------------------------------------------------------------------------------------------------------------
DOTS = [  # lhs shape, rhs shape, lhs batch, lhs contracting, rhs batch, rhs contracting
    ((3, 4), (4, 2), [], [1], [], [0]), ((4, 3), (2, 4), [], [0], [], [1]), ((5,), (5,), [], [0], [], [0]),
    ((2, 3, 4), (2, 4, 2), [0], [2], [0], [1]), ((2, 3), (2,), [], [], [], []), ((3, 2, 2), (2, 3, 2), [1], [0, 2], [2], [1, 0]),
    ((2, 0), (0, 3), [], [1], [], [0]), ((1, 40), (40, 1), [], [1], [], [0]), ((2, 3), (3, 2), [0, 1], [], [1, 0], []),
]


def dot(a, b, lb, lc, rb, rc, t):
    lf = [d for d in range(len(a.shape)) if d not in lb + lc]
    rf = [d for d in range(len(b.shape)) if d not in rb + rc]
    x, y = at(a.shape, values(a)), at(b.shape, values(b))
    sizes = [[s.shape[d] for d in dims] for s, dims in ((a, lb), (a, lf), (b, rf), (a, lc))]
    sums = []
    for batch, left, right in itertools.product(*[list(boxes(s)) for s in sizes[:3]]):
        def terms():
            for k in boxes(sizes[3]):
                i, j = [0] * len(a.shape), [0] * len(b.shape)
                for dims, index in ((lb, batch), (lf, left), (lc, k)):
                    for d, v in zip(dims, index):
                        i[d] = v
                for dims, index in ((rb, batch), (rf, right), (rc, k)):
                    for d, v in zip(dims, index):
                        j[d] = v
                yield x(i), y(j)
        sums.append(contracted(terms(), zero_of(t), (a.type, b.type, t)))
    return result(t, sizes[0] + sizes[1] + sizes[2], sums)


def dot_text(lb, lc, rb, rc):
    parts = [('lhs_batch_dims', lb), ('lhs_contracting_dims', lc), ('rhs_batch_dims', rb), ('rhs_contracting_dims', rc)]
    return ', '.join('%s=%s' % (k, braces(v)) for k, v in parts if v or 'contracting' in k)


def dot_cases():
    file = File('dot', 'dot of every type that rounds or wraps; wider results; algorithms.')
    for n, t in enumerate(FLOAT + INT + COMPLEX + ['pred']):
        for k in range(4) if t not in ('f32', 's8', 'c64', 'bf16') else range(len(DOTS)):
            ls, rs, *dims = DOTS[(k * 2 + n) % len(DOTS)] if t not in ('f32', 's8', 'c64', 'bf16') else DOTS[k]
            a, b = make_array(t, ls, n), make_array(t, rs, n + 50)
            y = dot(a, b, *dims, t)
            file.case('%s_%d' % (t, k), 'r = %s dot(a, b), %s' % (y.text, dot_text(*dims)), [a, b], (rule_of(t), y))
    wider = [('s8', 's8', 's32'), ('u8', 's8', 's32'), ('s4', 's4', 's8'), ('bf16', 'bf16', 'f32'), ('f16', 'f16', 'f32'),
             ('f8e4m3fn', 'f8e5m2', 'f32'), ('f8e4m3fn', 'f8e4m3fn', 'bf16'), ('f8e5m2fnuz', 'f8e4m3fnuz', 'f16'),
             ('f32', 'f32', 'f64'), ('s32', 's32', 's64'), ('f4e2m1fn', 'f4e2m1fn', 'f32'), ('bf16', 'f32', 'f32')]
    for l, r, t in wider:
        ls, rs, *dims = DOTS[0]
        a, b = make_array(l, ls, 1), make_array(r, rs, 2)
        y = dot(a, b, *dims, t)
        file.case('%s_%s_%s' % (l, r, t), 'r = %s dot(a, b), %s' % (y.text, dot_text(*dims)), [a, b], (rule_of(t), y))
    for alg in ('dot_f32_f32_f32', 'dot_bf16_bf16_f32', 'dot_tf32_tf32_f32', 'dot_bf16_bf16_f32_x3', 'dot_bf16_bf16_f32_x9',
                'dot_any_f8_any_f8_f32_fast_accum', 'dot_bf16_bf16_bf16'):
        t = 'f8e4m3fn' if 'f8' in alg else 'bf16' if 'bf16_bf16_bf16' in alg else 'f32'
        a, b = make_array(t, (3, 8), 3), make_array(t, (8, 3), 4)
        out = 'f32' if t == 'f8e4m3fn' else t
        y = dot(a, b, [], [1], [], [0], out)
        file.case(alg, 'r = %s dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=%s' % (y.text, alg),
                  [a, b], ('within 0', y))
    a, b = make_array('f32', (24, 48), 5), make_array('f32', (48, 24), 6)
    y = dot(a, b, [], [1], [], [0], 'f32')
    file.case('f32_blocks', 'r = %s dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}' % y.text, [a, b], ('within 0', y))
    a, b = make_array('s8', (33, 40), 5), make_array('s8', (40, 17), 6)
    y = dot(a, b, [], [1], [], [0], 's32')
    file.case('s8_blocks', 'r = %s dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}' % y.text, [a, b], ('exact', y))


# --- ragged-dot, scaled-dot -------------------------------------------------------------------------------------------
def ragged_cases():
    file = File('ragged_dot', 'ragged-dot: ragged rows, ragged contraction, batch.')
    for n, t in enumerate(['f32', 'bf16', 'f64', 's32', 'c64', 'f8e5m2']):
        for sizes in ([2, 0, 3], [5, 0, 0], [1, 1, 1], [0, 0, 0]):
            l, r = make_array(t, (5, 4), n), make_array(t, (3, 4, 2), n + 9)
            x, y = at(l.shape, values(l)), at(r.shape, values(r))
            ends = [sum(sizes[:i + 1]) for i in range(3)]
            sums = []
            for row in range(5):
                group = next((g for g in range(3) if row < ends[g]), None)
                for col in range(2):
                    terms = [] if group is None else [(x((row, k)), y((group, k, col))) for k in range(4)]
                    sums.append(contracted(terms, zero_of(t), [t]))
            out = result(t, (5, 2), sums)
            file.case('rows_' + t, 'r = %s ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, '
                      'lhs_ragged_dims={0}, rhs_group_dims={0}' % out.text, [l, r, ints('s32', (3,), sizes)],
                      (rule_of(t), out))
            l2, r2 = make_array(t, (2, 5), n), make_array(t, (5, 3), n + 9)
            x, y = at(l2.shape, values(l2)), at(r2.shape, values(r2))
            sums = [contracted([(x((i, k)), y((k, j))) for k in range(ends[g] - sizes[g], ends[g])], zero_of(t), [t])
                    for g in range(3) for i in range(2) for j in range(3)]
            out = result(t, (3, 2, 3), sums)
            file.case('depth_' + t, 'r = %s ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, '
                      'lhs_ragged_dims={1}' % out.text, [l2, r2, ints('s32', (3,), sizes)], (rule_of(t), out))


def scaled_cases():
    file = File('scaled_dot', 'scaled-dot: blocks of both operands share a scale.')
    for l, ls, t in (('f8e4m3fn', 'f8e8m0fnu', 'f32'), ('f8e5m2', 'f8e8m0fnu', 'bf16'), ('f4e2m1fn', 'f8e4m3fn', 'f32'),
                     ('f4e2m1fn', 'f8e8m0fnu', 'f32'), ('bf16', 'bf16', 'f32')):
        for blocks in (2, 4, 1):
            a, b = make_array(l, (3, 8), 1), make_array(l, (8, 2), 2)
            s, u = make_array(ls, (3, blocks), 3), make_array(ls, (blocks, 2), 4)
            x, y, p, q = (at(v.shape, values(v)) for v in (a, b, s, u))
            size = 8 // blocks
            near = lambda v: F.value(FORMATS['bf16'].decode(FORMATS['bf16'].encode(number(v))))  # of the product's type
            sums = [contracted([(near(x((i, k)) * p((i, k // size))), near(y((k, j)) * q((k // size, j)))) for k in range(8)],
                               Fraction(0), [t])
                    for i in range(3) for j in range(2)]
            out = result(t, (3, 2), sums)
            file.case('%s_%s_%s_%d' % (l, ls, t, blocks), 'r = %s scaled-dot(a, b, c, d), lhs_contracting_dims={1}, '
                      'rhs_contracting_dims={0}' % out.text, [a, b, s, u], ('within 0', out))


# --- convolution ------------------------------------------------------------------------------------------------------
def convolve(x, k, w, groups, batches, t):
    """x: batch, feature, space; k: out, in, space; one spatial window `w` per dimension."""
    nb, nf, space = x.shape[0], x.shape[1], x.shape[2:]
    no, ni, kernel = k.shape[0], k.shape[1], k.shape[2:]
    xa, ka = at(x.shape, values(x)), at(k.shape, values(k))
    out = []
    for n, d in zip(space, w):
        wide = (n - 1) * d['lhs'] + 1 if n else 0
        reach = (d['size'] - 1) * d['rhs'] + 1
        room = wide + d['low'] + d['high'] - reach
        out.append(room // d['stride'] + 1 if room >= 0 else 0)
    sums = []
    for b in range(nb // batches):
        for o in range(no):
            group, cut = o // (no // groups), o // (no // batches)
            for place in boxes(out):
                terms = []
                for tap in boxes(kernel):
                    index = []
                    of_kernel = tuple(d['size'] - 1 - q if d['reverse'] else q for q, d in zip(tap, w))
                    for p, q, n, d in zip(place, tap, space, w):
                        i = p * d['stride'] + q * d['rhs'] - d['low']
                        if i % d['lhs'] or not 0 <= i // d['lhs'] < n:
                            break
                        index.append(i // d['lhs'])
                    else:
                        for c in range(ni):
                            terms.append((xa((cut * (nb // batches) + b, group * ni + c) + tuple(index)),
                                          ka((o, c) + of_kernel)))
                sums.append(contracted(terms, zero_of(t), [t]))
    return result(t, [nb // batches, no] + out, sums)


def convolution_cases():
    file = File('convolution', 'convolution with strides, edges, dilations, reversal, feature and batch groups.')
    r = random.Random(3)
    types = ['f32', 'bf16', 's8', 'f64', 'c64', 'f16', 's32', 'f8e4m3fn', 'u8', 'c128', 'f8e5m2', 's4', 'f4e2m1fn', 's16']
    for n in range(56):
        t = types[n % len(types)]
        rank = r.choice([1, 1, 2, 2, 3, 0]) if n % 4 else 2
        groups, batches = r.choice([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1)])
        ni = r.randint(1, 3)
        no = r.randint(1, 2) * groups * batches
        nb = r.randint(1, 2) * batches
        w, space = [], []
        for _ in range(rank):
            while True:
                d = dict(size=r.randint(1, 3), stride=r.randint(1, 2), low=r.randint(-1, 2), high=r.randint(-1, 2),
                         lhs=r.choice([1, 1, 2]), rhs=r.choice([1, 1, 2]), reverse=r.random() < .3)
                s = r.randint(2, 4 if rank < 3 else 3)
                if (s - 1) * d['lhs'] + 1 + d['low'] + d['high'] >= (d['size'] - 1) * d['rhs'] + 1:
                    break
            w.append(d)
            space.append(s)
        x = make_array(t, [nb, ni * groups] + space, n)
        k = make_array(t, [no, ni] + [d['size'] for d in w], n + 70)
        y = convolve(x, k, w, groups, batches, t)
        keys = [('size', 'size'), ('stride', 'stride'), ('pad', None), ('lhs_dilate', 'lhs'), ('rhs_dilate', 'rhs'),
                ('rhs_reversal', 'reverse')]
        text = ' '.join('%s=%s' % (key, 'x'.join(str(int(d[f])) if f else '%d_%d' % (d['low'], d['high']) for d in w))
                        for key, f in keys) if rank else ''
        digits = '012'[:rank]
        file.case('%s_%dd_g%d_b%d' % (t, rank, groups, batches),
                  'r = %s convolution(a, b), window={%s}, dim_labels=bf%s_oi%s->bf%s%s%s' % (
                      y.text, text, digits, digits, digits, ', feature_group_count=%d' % groups if groups > 1 else '',
                      ', batch_group_count=%d' % batches if batches > 1 else ''), [x, k], (rule_of(t), y))


def make():
    dot_cases()
    ragged_cases()
    scaled_cases()
    convolution_cases()

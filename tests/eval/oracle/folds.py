"""reduce, reduce-window, select-and-scatter, scan.

They follow the orders of docs/numerics.md, in the steps and types that it names."""
import functools
import itertools
import random
from fractions import Fraction

import formats as F
from arrays import FLOATS, INTS
from cases import WIDTH, Arr, File, ints, rounded
from contraction import COMPLEX, at, boxes, braces, make_array, result, rule_of, total, values, zero_of
from formats import number
from inputs import array

REAL = [t for t in FLOATS if t != 'f8e8m0fnu']
SHAPES = [((7,), [0]), ((3, 4), [1]), ((3, 4), [0]), ((2, 3, 2), [0, 2]), ((2, 3), [0, 1]), ((0, 3), [0]), ((), []), ((2, 2), []),
          ((4, 0), [0]), ((300,), [0])]


def reducer(t, op, name='f'):
    return '%s { p = %s[] parameter(0)\n  q = %s[] parameter(1)\n  ROOT r = %s[] %s(p, q) }\n---\n' % (name, t, t, t, op)


def fold(t, op, terms):
    """Terms as `values` gives them; the first is the initial value."""
    if op == 'add':
        return max(terms) if t == 'pred' else total(terms, zero_of(t))
    if op == 'multiply':
        if t == 'pred':
            return min(terms)
        out = terms[0]
        for x in terms[1:]:
            out = (out[0] * x[0] - out[1] * x[1], out[0] * x[1] + out[1] * x[0]) if t in COMPLEX else out * x
        return out
    if op in ('maximum', 'minimum'):
        return max(terms) if op == 'maximum' else min(terms)
    out = terms[0]
    for x in terms[1:]:
        out = out & x if op == 'and' else out | x if op == 'or' else out ^ x
    return out


def fold_in_steps(t, op, terms):
    """As a device that combines one term after the other: each step rounds."""
    out = terms[0]
    for x in terms[1:]:
        out = values(result(t, (), [fold(t, op, [out, x])]))[0]
    return out


def tree(terms, row, join):
    """Of all terms but the first, which is the initial value."""
    init, terms = terms[0], terms[1:]
    width, chain = (256, 4) if row else (8, 16)
    assert len(terms) <= width * chain * 4096
    nodes = []
    for group in range(0, len(terms), width * chain):
        for first in range(group, min(group + width, len(terms))):
            nodes.append(terms[first])
            for r in range(first + width, min(group + width * chain, len(terms)), width):
                nodes[-1] = join(nodes[-1], terms[r])
    while len(nodes) > 1:
        nodes = [join(*nodes[i:i + 2]) if i + 1 < len(nodes) else nodes[i] for i in range(0, len(nodes), 2)]
    return join(init, nodes[0]) if nodes else init


def fold_by_tree(t, op, terms, row):
    """Narrow floats stay f32 until the end."""
    if t not in FLOATS and t not in COMPLEX:
        return fold(t, op, terms)
    wide = t if t in COMPLEX or WIDTH[t] > 16 else 'f32'
    return tree(terms, row, lambda x, y: values(result(wide, (), [fold(wide, op, [x, y])]))[0])


def steps_of(t, op):
    """What joins two terms, in the type that a fold has."""
    if t not in FLOATS and t not in COMPLEX:
        return lambda x, y: fold(t, op, [x, y])
    wide = t if t in COMPLEX or WIDTH[t] > 16 else 'f32'
    return lambda x, y: values(result(wide, (), [fold(wide, op, [x, y])]))[0]


def fold_in_order(t, op, terms):
    """Of a window: one after the other, the initial value first."""
    return functools.reduce(steps_of(t, op), terms)


def scan_in_blocks(t, op, init, terms):
    """By definition: what comes before a term in its block of each level is joined by itself, the highest level first."""
    join = steps_of(t, op)

    def block(level, k):  # of 16 ** level terms; all are there
        return terms[k] if level == 0 else functools.reduce(join, [block(level - 1, 16 * k + i) for i in range(16)])

    out = []
    for i in range(len(terms)):
        value = init
        for level in range(8, -1, -1):
            own = i >> 4 * level
            before = [block(level, k) for k in range(own & ~15, own + (level == 0))]
            if before:
                value = join(value, functools.reduce(join, before))
        out.append(value)
    return out


def is_row(shape, dims):
    return next((d in dims for d in reversed(range(len(shape))) if shape[d] > 1), False)


def ops_of(t):
    if t in COMPLEX:
        return ['add']
    return ['add', 'multiply', 'maximum', 'minimum'] + (['and', 'or', 'xor'] if t in INTS + ['pred'] else [])


def groups(shape, dims):
    """For each kept index, the indices that are folded, in order."""
    kept = [d for d in range(len(shape)) if d not in dims]
    for k in boxes([shape[d] for d in kept]):
        def members():
            for f in boxes([shape[d] for d in dims]):
                index = [0] * len(shape)
                for d, v in list(zip(kept, k)) + list(zip(dims, f)):
                    index[d] = v
                yield index
        yield list(members())


def reduce_cases():
    file = File('reduce', 'reduce by the usual reducers, every type; zero elements, rank 0, no dimensions, long rows.')
    for n, t in enumerate(REAL + INTS + COMPLEX + ['pred']):
        for k, op in enumerate(ops_of(t)):
            for j in range(2):
                shape, dims = SHAPES[(n + k * 3 + j * 5) % (len(SHAPES) - (op == 'multiply' or t not in ('f32', 'f64', 's32')))]
                a, z = make_array(t, shape, n + k), make_array(t, (), n + 5)
                x = at(shape, values(a))
                first = values(z)[0]
                sums = [fold_by_tree(t, op, [first] + [x(i) for i in g], is_row(shape, dims)) for g in groups(shape, dims)]
                kept = [shape[d] for d in range(len(shape)) if d not in dims]
                y = result(t, kept, sums)
                file.case('%s_%s' % (op, t), reducer(t, op) + 'r = %s reduce(a, b), dimensions=%s, to_apply=f' % (
                    y.text, braces(dims)), [a, z], ('within 0' if rule_of(t) != 'exact' else 'exact', y))
    specials(file)
    variadic(file)
    others(file)


def specials(file):
    """NaN, infinities and zeros among the terms; every order gives the same."""
    rows = [[0x7f800000, 0x3f800000, 0xc0000000], [0x7f800000, 0xff800000, 0x3f800000], [0x7fc00000, 0x3f800000, 0],
            [0x80000000, 0x80000000, 0x80000000], [0x80000000, 0, 0x80000000], [1, 1, 0x80000001]]
    a = Arr('f32', (6, 3), sum(rows, []))
    expect = {'add': [0x7f800000, 0x7fc00000, 0x7fc00000, 0x80000000, 0, 1],
              'maximum': [0x7f800000, 0x7f800000, 0x7fc00000, 0x80000000, 0, 1],
              'minimum': [0xc0000000, 0xff800000, 0x7fc00000, 0x80000000, 0x80000000, 0x80000001]}
    start = {'add': 0x80000000, 'maximum': 0xff800000, 'minimum': 0x7f800000}
    for op, bits in expect.items():
        file.case('special_' + op, reducer('f32', op) + 'r = f32[6] reduce(a, b), dimensions={1}, to_apply=f',
                  [a, Arr('f32', (), [start[op]])], ('within 0', Arr('f32', (6,), bits)))


def variadic(file):
    text = '''f { v = %(t)s[] parameter(0)
  i = s32[] parameter(1)
  w = %(t)s[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(v, w), direction=GT
  nan = pred[] compare(v, v), direction=NE
  first = pred[] or(gt, nan)
  eq = pred[] compare(v, w), direction=EQ
  lower = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lower)
  pick = pred[] or(first, tie)
  m = %(t)s[] select(first, v, w)
  k = s32[] select(pick, i, j)
  ROOT r = (%(t)s[], s32[]) tuple(m, k) }
---
r = (%(t)s[3], s32[3]) reduce(a, b, c, d), dimensions={1}, to_apply=f'''
    for t in ('f32', 'bf16', 's8', 'f8e5m2', 'u64', 'f64'):
        a = array(t, (3, 9), 4)
        if t in INTS:
            a.bits[3] = a.bits[7] = a.bits[5] = 0x7f
        index = ints('s32', (3, 9), list(range(9)) * 3)
        low = Arr(t, (), [F.FORMATS[t].inf | F.FORMATS[t].sign_bit if t in FLOATS else 0x80 if t == 's8' else 0])
        out, where = [], []
        for row in range(3):
            v, k = low.items()[0], 0
            for j in range(9):
                w = a.bits[row * 9 + j]
                x, y = Arr(t, (), [v]), Arr(t, (), [w])
                if t in FLOATS:
                    c = F.compare(x.numbers()[0], y.numbers()[0])
                    first = c == 1 or F.is_nan(x.numbers()[0])
                else:
                    c = (x.ints()[0] > y.ints()[0]) - (x.ints()[0] < y.ints()[0])
                    first = c == 1
                pick = first or (c == 0 and k < j)
                v, k = (v if first else w), (k if pick else j)
            out.append(v)
            where.append(k)
        file.case('argmax_' + t, text % dict(t=t), [a, index, low, ints('s32', (), [0])],
                  ('within 0' if t in FLOATS else 'exact', Arr(t, (3,), out)), ('exact', ints('s32', (3,), where)))


def others(file):
    a = array('s32', (5,), 9)
    text = '''f { p = s32[] parameter(0)
  q = s32[] parameter(1)
  three = s32[] constant(3)
  s = s32[] multiply(p, three)
  ROOT r = s32[] add(s, q) }
---
r = s32[] reduce(a, b), dimensions={0}, to_apply=f'''
    v = tree([7] + a.ints(), True, lambda x, y: 3 * x + y)
    file.case('by_the_tree', text, [a, ints('s32', (), [7])], ('exact', ints('s32', (), [v])))


# --- windows ----------------------------------------------------------------------------------------------------------
def random_window(r, rank):
    w, space = [], []
    while len(w) < rank:
        d = dict(size=r.randint(1, 3), stride=r.randint(1, 3), low=r.randint(0, 2), high=r.randint(0, 2),
                 lhs=r.choice([1, 1, 2]), rhs=r.choice([1, 1, 2]))
        n = r.randint(1, 5)
        if (n - 1) * d['lhs'] + 1 + d['low'] + d['high'] >= (d['size'] - 1) * d['rhs'] + 1:
            w.append(d)
            space.append(n)
    return w, space


def window_text(w):
    keys = [('size', 'size'), ('stride', 'stride'), ('pad', None), ('lhs_dilate', 'lhs'), ('rhs_dilate', 'rhs')]
    return 'window={' + ' '.join('%s=%s' % (k, 'x'.join(str(d[f]) if f else '%d_%d' % (d['low'], d['high']) for d in w))
                                 for k, f in keys) + '}'


def places(w, space):
    """The result's extents, and for each window the indices that it sees (None: nothing there)."""
    out = [((n - 1) * d['lhs'] + 1 + d['low'] + d['high'] - ((d['size'] - 1) * d['rhs'] + 1)) // d['stride'] + 1
           for n, d in zip(space, w)]

    def seen():
        for p in boxes(out):
            taps = []
            for tap in boxes([d['size'] for d in w]):
                index = []
                for i, q, n, d in zip(p, tap, space, w):
                    v = i * d['stride'] + q * d['rhs'] - d['low']
                    if v % d['lhs'] or not 0 <= v // d['lhs'] < n:
                        break
                    index.append(v // d['lhs'])
                else:
                    taps.append(index)
            yield taps
    return out, list(seen())


def same_bits(t):
    return 'exact' if rule_of(t) == 'exact' else 'within 0'


def cumulative(file):
    """Windows over all elements up to a place, or from it on: more than 16 are a scan."""
    for n, (t, reverse, length) in enumerate(itertools.product(['f32', 'bf16', 'f64', 's32', 'c64', 'f8e5m2'], [False, True],
                                                              [16, 17, 300])):
        op = 'multiply' if n % 5 == 4 and t not in COMPLEX and t != 'f8e5m2' else 'add'
        a, z = make_array(t, (2, length), n), make_array(t, (), n + 3)
        rows, first, out = values(a), values(z)[0], []
        for row in (rows[:length], rows[length:]):
            if length > 16:
                scanned = scan_in_blocks(t, op, first, row[::-1] if reverse else row)
                out += scanned[::-1] if reverse else scanned
            else:
                out += [fold_in_order(t, op, [first] + (row[i:] if reverse else row[:i + 1])) for i in range(length)]
        y = result(t, (2, length), out)
        pad = '0_%d' % (length - 1) if reverse else '%d_0' % (length - 1)
        file.case('cumulative_%s_%s' % (op, t), reducer(t, op) + 'r = %s reduce-window(a, b), window={size=1x%d pad=0_0x%s}, to_apply=f'
                  % (y.text, length, pad), [a, z], (same_bits(t), y))


def window_cases():
    file = File('reduce_window', 'reduce-window with strides, edges and dilations; places without elements count nothing.')
    r = random.Random(11)
    for n, t in enumerate((REAL + INTS + COMPLEX + ['pred']) * 2):
        op = ops_of(t)[n % len(ops_of(t))]
        w, space = random_window(r, r.randint(1, 3))
        out, seen = places(w, space)
        a, z = make_array(t, space, n), make_array(t, (), n + 3)
        x, first = at(space, values(a)), values(z)[0]
        y = result(t, out, [fold_in_order(t, op, [first] + [x(i) for i in taps]) for taps in seen])
        file.case('%s_%s' % (op, t), reducer(t, op) + 'r = %s reduce-window(a, b), %s, to_apply=f' % (y.text, window_text(w)),
                  [a, z], (same_bits(t), y))
    cumulative(file)
    file = File('select_and_scatter', 'select-and-scatter by GE and LE: the first of equal elements is taken.')
    for n, t in enumerate(['f32', 's32', 'bf16', 'f64', 's8', 'u16', 'f16', 'f8e4m3fn'] * 3):
        w, space = random_window(r, r.randint(1, 2))
        for d in w:
            d.update(lhs=1, rhs=1, low=min(d['low'], d['size'] - 1), high=min(d['high'], d['size'] - 1))
        if any(k + d['low'] + d['high'] < d['size'] for k, d in zip(space, w)):
            continue
        direction = 'GE' if n % 2 else 'LE'
        out, seen = places(w, space)
        a, s, z = make_array(t, space, n), make_array(t, out, n + 1), make_array(t, (), n + 2)
        x = at(space, values(a))
        acc = {tuple(i): [values(z)[0]] for i in boxes(space)}
        for taps, v in zip(seen, values(s)):
            best = taps[0]
            for tap in taps[1:]:
                keep = x(best) >= x(tap) if direction == 'GE' else x(best) <= x(tap)
                best = best if keep else tap
            acc[tuple(best)].append(v)
        y = result(t, space, [fold_in_order(t, 'add', acc[tuple(i)]) for i in boxes(space)])
        text = ('s { p = %s[] parameter(0)\n  q = %s[] parameter(1)\n  ROOT r = pred[] compare(p, q), direction=%s }\n'
                % (t, t, direction)) + reducer(t, 'add')
        keys = 'window={size=%s stride=%s pad=%s}' % tuple(
            'x'.join(str(d[f]) if f else '%d_%d' % (d['low'], d['high']) for d in w) for f in ('size', 'stride', None))
        file.case('%s_%s' % (direction, t), text + 'r = %s select-and-scatter(a, b, c), %s, select=s, scatter=f' % (
            a.text, keys), [a, s, z], (same_bits(t), y))


# --- scan -------------------------------------------------------------------------------------------------------------
def scan_cases():
    file = File('scan', 'scan: running sums, both directions; a reducer that is not associative.')
    for n, (t, reverse, shape, d) in enumerate(itertools.product(
            ['s32', 'f32', 'u8', 'f64'], [False, True], [(6,), (3, 4), (4, 3)], [0])):
        a = make_array(t, shape, n)
        carry = make_array(t, shape[1:], n + 1)
        inner = carry.text
        text = '''f { p = %s parameter(0)
  c = %s parameter(1)
  s = %s add(p, c)
  ROOT t = (%s, %s) tuple(s, s) }
---
r = (%s, %s) scan(a, b), dimensions={0}, num_carries=1%s%s, to_apply=f''' % (
            inner, inner, inner, inner, inner, a.text, inner, ', is_reverse=true' if reverse else '',
            ', is_associative=true' if n % 3 == 0 else '')
        rows = [values(Arr(t, shape[1:], a.bits[i * carry.count:(i + 1) * carry.count])) for i in range(shape[0])]
        state, out = values(carry), [None] * shape[0]
        for i in (range(shape[0])[::-1] if reverse else range(shape[0])):
            state = [x + y for x, y in zip(rows[i], state)]
            if t in FLOATS:
                state = [F.value(F.FORMATS[t].decode(F.FORMATS[t].encode(number(v)))) for v in state]
            elif t not in FLOATS:
                state = ints(t, shape[1:], state).ints()
            out[i] = state
        if n % 3 == 0:  # in any order
            order = range(shape[0])[::-1] if reverse else range(shape[0])
            lines = [scan_in_blocks(t, 'add', c, [rows[i][k] for i in order]) for k, c in enumerate(values(carry))]
            for k, i in enumerate(order):
                out[i] = state = [line[k] for line in lines]
        y, last = result(t, shape, sum(out, [])), result(t, shape[1:], state)
        rule = same_bits(t)
        file.case('sum_%s%s' % (t, '_reverse' if reverse else ''), text, [a, carry], (rule, y), (rule, last))


def make():
    reduce_cases()
    window_cases()
    scan_cases()

"""gather and scatter in general form, sort, topk: naive readings of their definitions in Python."""
import functools
import random

import formats as F
from arrays import COMPLEX, FLOATS, INTS
from cases import WIDTH, Arr, File, ints
from contraction import boxes, braces, make_array, result, rule_of, total, values
from folds import fold_in_steps, reducer
from formats import FORMATS
from inputs import array, plain

TYPES = ['f32', 's32', 'pred', 'u4', 's2', 'f4e2m1fn', 'f8e4m3fn', 'f8e8m0fnu', 'bf16', 'f16', 'f64', 'c64', 'c128', 'u64', 's8']
INDEX = ['s32', 's64', 'u32', 'u8', 's8', 'u64', 's16', 's4']


class Config:
    """Random dimension numbers: batching, collapsed and windowed operand dimensions, in any order."""

    def __init__(self, r):
        kinds = ['batch'] * r.randint(0, 1) + ['single'] * r.randint(0, 2) + ['window'] * r.randint(0, 2)
        r.shuffle(kinds)
        self.operand = [r.randint(1, 4) for _ in kinds]
        self.kinds = kinds
        self.sizes = [1 if k != 'window' else r.randint(1, n) for k, n in zip(kinds, self.operand)]
        self.batching = [d for d, k in enumerate(kinds) if k == 'batch']
        self.collapsed = [d for d, k in enumerate(kinds) if k == 'single']
        self.window = [d for d, k in enumerate(kinds) if k == 'window']
        self.map = [d for d, k in enumerate(kinds) if k != 'batch' and r.random() < .8]
        r.shuffle(self.map)
        places = [('batch', d) for d in self.batching] + [('free', None)] * r.randint(0, 2)
        r.shuffle(places)
        self.places = [self.operand[d] if k == 'batch' else r.randint(1, 3) for k, d in places]
        self.index_batching = [next(i for i, p in enumerate(places) if p == ('batch', d)) for d in self.batching]
        self.vector = r.randint(0, len(self.places))
        if len(self.map) == 1 and r.random() < .4:
            self.vector = len(self.places)
            self.indices = list(self.places)
        else:
            self.indices = self.places[:self.vector] + [len(self.map)] + self.places[self.vector:]
            self.index_batching = self.index_batching and [i + (i >= self.vector) for i in self.index_batching]
        n = len(self.places) + len(self.window)
        self.offset = sorted(r.sample(range(n), len(self.window)))
        window, place = iter(self.sizes[d] for d in self.window), iter(self.places)
        self.result = [next(window) if d in self.offset else next(place) for d in range(n)]

    def index_at(self, place, k):
        if len(self.indices) == len(self.places):
            return list(place)
        return list(place[:self.vector]) + [k] + list(place[self.vector:])

    def start(self, starts, place):
        out = [0] * len(self.operand)
        for k, d in enumerate(self.map):
            out[d] = starts(self.index_at(place, k))
        for d, i in zip(self.batching, self.index_batching):
            i -= len(self.indices) != len(self.places) and i > self.vector
            out[d] = place[i]
        return out

    def split(self, index):
        """A result's index as place and window index (per operand dimension)."""
        place = [v for d, v in enumerate(index) if d not in self.offset]
        window = [0] * len(self.operand)
        for d, v in zip(self.window, [index[d] for d in self.offset]):
            window[d] = v
        return place, window


def indexer(a, values):
    strides, n = [], 1
    for d in reversed(a.shape):
        strides.insert(0, n)
        n *= d
    return lambda i: values[sum(x * s for x, s in zip(i, strides))]


def make_indices(r, c, t):
    n = 1
    for d in c.indices:
        n *= d
    w = WIDTH[t]
    pool = [0, 1, 2, 3, 4, 5, (1 << w) - 1, (1 << w - 1) - 1, 1 << w - 1, 0, 1, 2]
    return Arr(t, c.indices, [r.choice(pool) for _ in range(n)])


def gather_cases():
    file = File('gather', 'gather: starts are clamped; batching dimensions; every width of index.')
    r = random.Random(21)
    for n in range(70):
        c = Config(r)
        t, it = TYPES[n % len(TYPES)], INDEX[n % len(INDEX)]
        a, s = array(t, c.operand, n), make_indices(r, c, it)
        start_of = indexer(s, s.ints())
        items, out = indexer(a, a.items()), []
        for index in boxes(c.result):
            place, window = c.split(index)
            start = c.start(start_of, place)
            where = [min(max(x, 0), m - k) + o for x, m, k, o in zip(start, c.operand, c.sizes, window)]
            out.append(items(where))
        bits = [b for i in out for b in (i if t in COMPLEX else [i])]
        y = Arr(t, c.result, bits)
        text = ('r = %s gather(a, b), offset_dims=%s, collapsed_slice_dims=%s, start_index_map=%s, index_vector_dim=%d, '
                'slice_sizes=%s' % (y.text, braces(c.offset), braces(c.collapsed), braces(c.map), c.vector, braces(c.sizes)))
        if c.batching:
            text += ', operand_batching_dims=%s, start_indices_batching_dims=%s' % (braces(c.batching), braces(c.index_batching))
        file.case('%s_%s' % (t, it), text, [a, s], ('exact', y))


def scatter_cases():
    file = File('scatter', 'scatter: windows that leave the operand are skipped as a whole; indices that meet.\nUpdates '
                'are combined in the order of the index vectors, each step rounded.')
    r = random.Random(22)
    for n in range(90):
        c = Config(r)
        t, it = TYPES[n % len(TYPES)], INDEX[(n + n // 8) % len(INDEX)]
        ops = ['add'] if t in COMPLEX else ['maximum'] if t == 'f8e8m0fnu' else ['add', 'maximum', 'minimum', 'multiply']
        op = ops[n // len(TYPES) % len(ops)]
        a, s, u = make_array(t, c.operand, n), make_indices(r, c, it), make_array(t, c.result, n + 1)
        start_of, updates = indexer(s, s.ints()), indexer(u, values(u))
        acc = {tuple(i): [([], v)] for i, v in zip(boxes(c.operand), values(a))}
        for index in boxes(c.result):
            place, window = c.split(index)
            start = c.start(start_of, place)
            if all(0 <= x <= m - k for x, m, k in zip(start, c.operand, c.sizes)):
                acc[tuple(x + o for x, o in zip(start, window))].append((list(place), updates(index)))
        ordered = {i: [v for _, v in sorted(terms, key=lambda p: p[0])] for i, terms in acc.items()}
        y = result(t, c.operand, [fold_in_steps(t, op, ordered[tuple(i)]) for i in boxes(c.operand)])
        text = reducer(t, op) + (
            'r = %s scatter(a, b, c), update_window_dims=%s, inserted_window_dims=%s, scatter_dims_to_operand_dims=%s, '
            'index_vector_dim=%d' % (a.text, braces(c.offset), braces(c.collapsed), braces(c.map), c.vector))
        if c.batching:
            text += ', input_batching_dims=%s, scatter_indices_batching_dims=%s' % (braces(c.batching), braces(c.index_batching))
        file.case('%s_%s_%s' % (op, t, it), text + ', to_apply=f', [a, s, u], (rule_of(t), y))


# --- sort, topk -------------------------------------------------------------------------------------------------------
def total_key(t, bits):
    if t in FLOATS:
        f = FORMATS[t]
        if f.kind == 'e8m0':
            return bits
        return -1 - (bits & (f.sign_bit - 1)) if bits & f.sign_bit else bits
    return Arr(t, (), [bits]).ints()[0]


def number_key(t, bits):
    n = FORMATS[t].decode(bits)
    return F.key(n)[0]


def sort_cases():
    file = File('sort', 'sort by one key and by several, stably; floats by total order or without NaNs. Other operands '
                'follow.')
    r = random.Random(23)
    kinds = [t for t in FLOATS if FORMATS[t].kind in ('ieee', 'fn')] + INTS + ['pred']
    for n, t in enumerate(kinds * 2):
        shape, d = [((11,), 0), ((3, 7), 1), ((7, 3), 0), ((2, 5, 2), 1), ((0, 4), 1), ((4, 0), 1), ((1, 3), 0)][n % 7]
        count = 1
        for k in shape:
            count *= k
        pool = array(t, (12,), n).bits
        a = Arr(t, shape, [r.choice(pool) for _ in range(count)])
        up = n % 3 != 1
        by_number = t in FLOATS and n >= len(kinds)
        if by_number:
            a.bits = [0 if F.is_nan(x) else b for x, b in zip(a.numbers(), a.bits)]
        follow = ints('s32', shape, range(count))
        key = number_key if by_number else total_key
        lines = {}
        for p, i in enumerate(boxes(shape)):
            lines.setdefault(tuple(i[:d]) + tuple(i[d + 1:]), []).append(p)
        order = [0] * count
        for line in lines.values():
            for to, p in zip(line, sorted(line, key=lambda p: key(t, a.bits[p]), reverse=not up) if up else
                             stable_down(line, lambda p: key(t, a.bits[p]))):
                order[to] = p
        kind = ', type=TOTALORDER' if t in FLOATS and not by_number else ''
        text = ('f { p = %s[] parameter(0)\n  q = %s[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n'
                '  ROOT r = pred[] compare(p, q), direction=%s%s }\n---\n'
                'r = (%s, %s) sort(a, b), dimensions={%d}, is_stable=true, to_apply=f') % (
                    t, t, 'LT' if up else 'GT', kind, a.text, follow.text, d)
        file.case('%s%s' % (t, '' if up else '_down'), text, [a, follow],
                  ('exact', Arr(t, shape, [a.bits[p] for p in order])), ('exact', ints('s32', shape, order)))
    two_keys(file, r)


def stable_down(line, key):
    return sorted(line, key=functools.cmp_to_key(lambda x, y: (key(x) < key(y)) - (key(x) > key(y))))


def two_keys(file, r):
    for n, (t, u) in enumerate([('s8', 'f32'), ('pred', 'u4'), ('u16', 's2'), ('s64', 'bf16')]):
        a = Arr(t, (13,), [r.randrange(2) for _ in range(13)])
        b = Arr(u, (13,), plain(u, 13, n))
        follow = ints('u8', (13,), range(13))
        keyb = (lambda p: number_key(u, b.bits[p])) if u in FLOATS else (lambda p: b.ints()[p])
        order = sorted(range(13), key=lambda p: (a.ints()[p] if t != 'pred' else a.bits[p], keyb(p)))
        text = ('f { p = %s[] parameter(0)\n  q = %s[] parameter(1)\n  v = %s[] parameter(2)\n  w = %s[] parameter(3)\n'
                '  i = u8[] parameter(4)\n  j = u8[] parameter(5)\n  lt = pred[] compare(p, q), direction=LT\n'
                '  eq = pred[] compare(p, q), direction=EQ\n  vw = pred[] compare(v, w), direction=LT\n'
                '  both = pred[] and(eq, vw)\n  ROOT r = pred[] or(lt, both) }\n---\n'
                'r = (%s, %s, %s) sort(a, b, c), dimensions={0}, is_stable=true, to_apply=f') % (
                    t, t, u, u, a.text, b.text, follow.text)
        pick = lambda x: [x.bits[p] for p in order]
        file.case('two_keys_%s_%s' % (t, u), text, [a, b, follow], ('exact', Arr(t, (13,), pick(a))),
                  ('exact', Arr(u, (13,), pick(b))), ('exact', Arr('u8', (13,), pick(follow))))


def topk_cases():
    file = File('topk', 'topk: largest and smallest in total order; of equal ones the first; k from none to all.')
    r = random.Random(24)
    for n, t in enumerate([t for t in FLOATS if FORMATS[t].kind in ('ieee', 'fn')] + [i for i in INTS]):
        for largest in (True, False):
            pool = array(t, (10,), n).bits
            if t in FLOATS:  # the bits of NaNs are not promised, so their order is not either
                f = FORMATS[t]
                pool = [f.encode((0, F.Fraction(1))) if F.is_nan(f.decode(p)) else p for p in pool]
            a = Arr(t, (2, 9), [r.choice(pool) for _ in range(18)])
            k = [3, 9, 0, 1][n % 4]
            v, where = [], []
            for row in range(2):
                line = range(row * 9, row * 9 + 9)
                key = lambda p: total_key(t, a.bits[p])
                order = (stable_down(line, key) if largest else sorted(line, key=key))[:k]
                v += [a.bits[p] for p in order]
                where += [p - row * 9 for p in order]
            file.case('%s_%s' % (t, 'largest' if largest else 'smallest'),
                      'r = (%s[2,%d], s32[2,%d]) topk(a), k=%d, largest=%s' % (t, k, k, k, str(largest).lower()), [a],
                      ('exact', Arr(t, (2, k), v)), ('exact', ints('s32', (2, k), where)))


def make():
    gather_cases()
    scatter_cases()
    sort_cases()
    topk_cases()

#!/usr/bin/env python3
"""Cases whose results XLA's CPU backend computes from the HLO text itself: ops with many attributes, in random valid
configurations with a fixed seed. `python3 xla.py` rewrites data/xla_*.txt; it needs jax, numpy and ml_dtypes.

Inputs are small whole numbers, so that every sum and product is exact in every order and the results must be equal bit
for bit; where an op cannot be exact (decompositions, transforms), the rule says how near it has to be."""
import random

import jax
import jaxlib._hlo as hlo
import jaxlib._jax as jaxlib_c
import ml_dtypes
import numpy as np
from jax._src import xla_bridge
from jax._src.lib import xla_client

import cases

TYPES = {'s8': np.int8, 's32': np.int32, 'u32': np.uint32, 's64': np.int64, 'f16': np.float16, 'bf16': ml_dtypes.bfloat16,
         'f32': np.float32, 'f64': np.float64, 'c64': np.complex64, 'c128': np.complex128, 'pred': np.bool_,
         'u8': np.uint8, 's16': np.int16, 'u64': np.uint64, 'u16': np.uint16}
WIDE = ['s32', 'f32', 'f64', 'bf16', 'f16', 'c64', 's8', 's64']


def run(text, args):
    client = xla_bridge.get_backend('cpu')
    proto = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    program = jaxlib_c.mlir.xla_computation_to_mlir_module(hlo.XlaComputation(proto))
    devices = jaxlib_c.DeviceList(tuple(client.local_devices()[:1]))
    loaded = client.compile_and_load(program, devices, xla_client.CompileOptions())
    return [np.asarray(o) for o in loaded.execute([jax.device_put(a) for a in args])]


def text_of(shape, t):
    return t + '[' + ','.join(map(str, shape)) + ']'


def braces(values):
    return '{' + ','.join(map(str, values)) + '}'


def binary(name, t, op):
    return '%s {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  ROOT r = %s[] %s(a, b)\n}\n' % (name, t, t, t, op)


def compare(name, types, direction):
    p = ''.join('  p%d = %s[] parameter(%d)\n' % (i, types[i // 2], i) for i in range(2 * len(types)))
    return '%s {\n%s  ROOT r = pred[] compare(p0, p1), direction=%s\n}\n' % (name, p, direction)


def identity(op, t):
    """The value that changes nothing: backends may leave an initial value out where there is nothing to reduce."""
    dtype = np.dtype(TYPES[t])
    if op in ('maximum', 'minimum'):
        if t[0] in 'su':
            v = np.iinfo(dtype).min if op == 'maximum' else np.iinfo(dtype).max
        else:
            v = -np.inf if op == 'maximum' else np.inf
    else:
        v = {'multiply': 1, 'and': True if t == 'pred' else -1}.get(op, 0)
    return np.asarray(v).astype(dtype)


def equal(t):
    """For sums of products: equal numbers. Whether a sum begins with +0 decides the sign of a zero."""
    return 'near 0 0' if t[0] in 'bfc' else 'exact'


class Maker:
    def __init__(self, name, about):
        self.file = cases.File('xla_' + name, about)
        self.random = random.Random(name)

    def shape(self, rank, low=1, high=4):
        return [self.random.randint(low, high) for _ in range(rank)]

    def array(self, shape, t, low=-4, high=4):
        rng = np.random.default_rng(self.random.getrandbits(32))
        if t == 'pred':
            return rng.integers(0, 2, shape).astype(np.bool_)
        if t[0] == 'u':
            low = max(low, 0)
        v = rng.integers(low, high + 1, shape)
        if t[0] == 'c':
            v = v + 1j * rng.integers(low, high + 1, shape)
        return np.asarray(v).astype(TYPES[t])

    def add(self, name, comps, body, args, types, rule='exact'):
        """args: arrays with their HLO types; body: instructions that use a, b, c ... for them."""
        names = 'abcdefghijkl'
        params = ''.join('  %s = %s parameter(%d)\n' % (names[i], text_of(np.shape(x), t), i)
                         for i, (x, t) in enumerate(zip(args, types)))
        module = 'HloModule m\n%sENTRY e {\n%s%s\n}\n' % (comps, params, '\n'.join('  ' + l for l in body))
        results = run(module, args)
        self.file.case(name, module, [cases.of(np.asarray(x)) for x in args], *[(rule, cases.of(r)) for r in results],
                       by="XLA's CPU backend")

    def window(self, shape, dilations=True):
        r, keys = self.random, {'size': [], 'stride': [], 'pad': [], 'lhs_dilate': [], 'rhs_dilate': []}
        for n in shape:
            while True:
                size, stride = r.randint(1, 3), r.randint(1, 2)
                low, high = r.randint(-1, 2), r.randint(-1, 2)
                base = r.choice([1, 1, 2, 3]) if dilations else 1
                inner = r.choice([1, 1, 2]) if dilations else 1
                if (n - 1) * base + 1 + low + high >= (size - 1) * inner + 1:
                    break
            for key, v in zip(keys, (size, stride, '%d_%d' % (low, high), base, inner)):
                keys[key].append(str(v))
        return keys

    @staticmethod
    def window_text(keys):
        return 'window={' + ' '.join(k + '=' + 'x'.join(v) for k, v in keys.items() if v) + '}'


def out_size(n, keys, i):
    low, high = map(int, keys['pad'][i].split('_'))
    padded = (n - 1) * int(keys['lhs_dilate'][i]) + 1 + low + high
    reach = (int(keys['size'][i]) - 1) * int(keys['rhs_dilate'][i]) + 1
    return (padded - reach) // int(keys['stride'][i]) + 1


def dots():
    m = Maker('dot', 'dot with all dimension numbers')
    r = m.random
    for k in range(110):
        t = r.choice(['s32', 'f32', 'f64', 'bf16', 'f16', 'c64', 's32', 'f32'])
        nb, nc, nl, nr = r.randint(0, 2), r.randint(0, 2), r.randint(0, 2), r.randint(0, 2)
        batch, contract = m.shape(nb, 1, 3), m.shape(nc, 0 if k % 9 == 0 else 1, 5)
        left, right = m.shape(nl), m.shape(nr)
        sides = []
        for free in (left, right):
            dims = [('b', i) for i in range(nb)] + [('c', i) for i in range(nc)] + [('f', i) for i in range(len(free))]
            r.shuffle(dims)
            size = {'b': batch, 'c': contract, 'f': free}
            where = {d: i for i, d in enumerate(dims)}
            sides.append(([size[c][i] for c, i in dims], [where['b', i] for i in range(nb)], [where['c', i] for i in range(nc)],
                          [size['f'][i] for c, i in dims if c == 'f']))
        (ls, lb, lc, lf), (rs, rb, rc, rf) = sides
        out = text_of(batch + lf + rf, t)
        line = 'r = %s dot(a, b), lhs_batch_dims=%s, lhs_contracting_dims=%s, rhs_batch_dims=%s, rhs_contracting_dims=%s' % (
            out, braces(lb), braces(lc), braces(rb), braces(rc))
        m.add('dot_' + t, '', ['ROOT ' + line], [m.array(ls, t), m.array(rs, t)], [t, t], equal(t))


def convolutions():
    m = Maker('convolution', 'convolutions: any dimension labels, padding, dilations, reversal, groups')
    r = m.random
    while m.file.count < 130:
        n, t = r.randint(1, 3), r.choice(['f32', 'f32', 'f64', 's32', 'bf16', 'f16'])
        groups, by_batch = r.choice([1, 1, 2, 3]), r.random() < 0.3
        f, b = (1, groups) if by_batch else (groups, 1)
        spatial = m.shape(n, 1, 5)
        keys = m.window(spatial)
        reverse = [str(r.randint(0, 1)) for _ in range(n)] if r.random() < 0.3 else []
        keys['rhs_reversal'] = reverse
        batch, kin, kout = b * r.randint(1, 2), r.randint(1, 3), groups * r.randint(1, 2)
        def place(first, second, sizes, a, c):
            names = [a, c] + [str(i) for i in range(n)]
            r.shuffle(names)
            size = dict(zip([a, c] + [str(i) for i in range(n)], [first, second] + sizes))
            return ''.join(names), [size[x] for x in names]
        li, si = place(batch, kin * f, spatial, 'b', 'f')
        lk, sk = place(kin, kout, [int(x) for x in keys['size']], 'i', 'o')
        lo, so = place(batch // b, kout, [out_size(spatial[i], keys, i) for i in range(n)], 'b', 'f')
        line = 'ROOT r = %s convolution(a, b), %s, dim_labels=%s_%s->%s' % (text_of(so, t), m.window_text(keys), li, lk, lo)
        line += ', feature_group_count=%d' % f if f > 1 else ''
        line += ', batch_group_count=%d' % b if b > 1 else ''
        try:
            m.add('conv%d_%s' % (n, t), '', [line], [m.array(si, t, -2, 2), m.array(sk, t, -2, 2)], [t, t], equal(t))
        except Exception:  # what this backend does not take
            continue


def reductions():
    m = Maker('reduce', 'reduce: one operand with any of its reducers, and argmax')
    r = m.random
    ops = {'add': WIDE, 'multiply': ['s32', 'f32', 's64'], 'maximum': WIDE[:5], 'minimum': WIDE[:5], 'and': ['s32', 'pred'],
           'or': ['s32', 'pred'], 'xor': ['u32']}
    for k in range(90):
        op = r.choice(sorted(ops))
        t = r.choice(ops[op])
        shape = m.shape(r.randint(1, 4), 0 if k % 11 == 0 else 1, 4)
        dims = sorted(r.sample(range(len(shape)), r.randint(0, len(shape))))
        out = text_of([n for i, n in enumerate(shape) if i not in dims], t)
        low = -2 if op == 'multiply' else -4
        m.add('reduce_%s_%s' % (op, t), binary('f', t, op),
              ['ROOT r = %s reduce(a, b), dimensions=%s, to_apply=f' % (out, braces(dims))],
              [m.array(shape, t, low, -low), identity(op, t)], [t, t])
    pick = ('pick {\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n'
            '  g = pred[] compare(a, b), direction=GT\n  e = pred[] compare(a, b), direction=EQ\n'
            '  l = pred[] compare(i, j), direction=LT\n  el = pred[] and(e, l)\n  k = pred[] or(g, el)\n'
            '  v = f32[] select(k, a, b)\n  w = s32[] select(k, i, j)\n  ROOT t = (f32[], s32[]) tuple(v, w)\n}\n')
    for _ in range(20):
        shape = m.shape(r.randint(1, 3))
        dim = r.randrange(len(shape))
        out = [n for i, n in enumerate(shape) if i != dim]
        m.add('argmax', pick, ['i = %s iota(), iota_dimension=%d' % (text_of(shape, 's32'), dim), 'z = f32[] constant(-inf)',
                               'k = s32[] constant(0)', 'ROOT r = (%s, %s) reduce(a, i, z, k), dimensions={%d}, to_apply=pick'
                               % (text_of(out, 'f32'), text_of(out, 's32'), dim)], [m.array(shape, 'f32')], ['f32'])


def windows():
    m = Maker('window', 'reduce-window and select-and-scatter')
    r = m.random
    for _ in range(110):
        t, op = r.choice(['f32', 's32', 'bf16', 'f64']), r.choice(['add', 'maximum', 'minimum', 'add'])
        shape = m.shape(r.randint(1, 3), 1, 6)
        keys = m.window(shape)
        out = [out_size(n, keys, i) for i, n in enumerate(shape)]
        m.add('reduce_window_%s_%s' % (op, t), binary('f', t, op),
              ['ROOT r = %s reduce-window(a, b), %s, to_apply=f' % (text_of(out, t), m.window_text(keys))],
              [m.array(shape, t), m.array([], t)], [t, t])
    for _ in range(50):
        t = r.choice(['f32', 's32', 'f64'])
        shape = m.shape(r.randint(1, 3), 2, 6)
        keys = m.window(shape, False)
        keys['pad'] = ['%d_%d' % (max(0, int(p.split('_')[0])), max(0, int(p.split('_')[1]))) for p in keys['pad']]
        keys['pad'] = ['%d_%d' % tuple(min(int(x), int(s) - 1) for x in p.split('_')) for p, s in zip(keys['pad'], keys['size'])]
        out = [out_size(n, keys, i) for i, n in enumerate(shape)]
        del keys['lhs_dilate'], keys['rhs_dilate']
        m.add('select_and_scatter_' + t, compare('ge', [t], 'GE') + binary('f', t, 'add'),
              ['ROOT r = %s select-and-scatter(a, b, c), %s, select=ge, scatter=f' % (text_of(shape, t), m.window_text(keys))],
              [m.array(shape, t, -9, 9), m.array(out, t), identity('add', t)], [t, t, t])


def indexed(m):
    """Dimension numbers shared by gather and scatter: an operand, indices and the window's place in the result."""
    r = m.random
    rank = r.randint(1, 4)
    operand = m.shape(rank, 1, 5)
    nbatching = r.randint(0, min(2, rank - 1))
    dims = list(range(rank))
    batching = sorted(r.sample(dims, nbatching))
    rest = [d for d in dims if d not in batching]
    mapped = r.sample(rest, r.randint(0 if nbatching else 1, len(rest)))
    collapsed = sorted(r.sample(rest, r.randint(0, len(rest))))
    sizes = [1 if d in collapsed or d in batching else r.randint(0 if r.random() < 0.05 else 1, operand[d]) for d in dims]
    scatter_dims = [operand[d] for d in batching] + m.shape(r.randint(0, 2), 1, 3)
    order = list(range(len(scatter_dims)))
    r.shuffle(order)
    lead = [scatter_dims[i] for i in order]
    where = {o: i for i, o in enumerate(order)}
    vector = r.randint(0, len(lead))
    implicit = len(mapped) == 1 and r.random() < 0.3
    if implicit:
        vector, indices = len(lead), lead
    else:
        indices = lead[:vector] + [len(mapped)] + lead[vector:]
    batch_of = [where[i] + (1 if not implicit and where[i] >= vector else 0) for i in range(nbatching)]
    window = [sizes[d] for d in dims if d not in collapsed and d not in batching]
    total = len(window) + len(lead)
    offset = sorted(r.sample(range(total), len(window)))
    out, w, l = [], iter(window), iter(lead)
    for i in range(total):
        out.append(next(w) if i in offset else next(l))
    return dict(operand=operand, batching=batching, mapped=mapped, collapsed=collapsed, sizes=sizes, indices=indices,
                vector=vector, batch_of=batch_of, offset=offset, out=out)


def gathers():
    m = Maker('gather', 'gather in general form, starts out of bounds too')
    r = m.random
    while m.file.count < 150:
        g, t, it = indexed(m), r.choice(['f32', 's8', 'bf16', 'c64', 's32']), r.choice(['s32', 's64', 'u32', 's8'])
        line = ('ROOT r = %s gather(a, b), offset_dims=%s, collapsed_slice_dims=%s, start_index_map=%s, operand_batching_dims=%s, '
                'start_indices_batching_dims=%s, index_vector_dim=%d, slice_sizes=%s') % (
                    text_of(g['out'], t), braces(g['offset']), braces(g['collapsed']), braces(g['mapped']),
                    braces(g['batching']), braces(g['batch_of']), g['vector'], braces(g['sizes']))
        try:
            m.add('gather_' + t, '', [line], [m.array(g['operand'], t, -99, 99), m.array(g['indices'], it, -3, 7)], [t, it])
        except Exception:
            continue


def scatters():
    m = Maker('scatter', 'scatter in general form, indices out of bounds and equal ones too')
    r = m.random
    while m.file.count < 150:
        g, t, it = indexed(m), r.choice(['f32', 's32', 's32', 'f64']), r.choice(['s32', 's64', 'u32'])
        op = r.choice(['add', 'add', 'maximum', 'minimum', 'multiply'])
        line = ('ROOT r = %s scatter(a, b, c), update_window_dims=%s, inserted_window_dims=%s, scatter_dims_to_operand_dims=%s, '
                'input_batching_dims=%s, scatter_indices_batching_dims=%s, index_vector_dim=%d, to_apply=f') % (
                    text_of(g['operand'], t), braces(g['offset']), braces(g['collapsed']), braces(g['mapped']),
                    braces(g['batching']), braces(g['batch_of']), g['vector'])
        try:
            m.add('scatter_%s_%s' % (op, t), binary('f', t, op), [line],
                  [m.array(g['operand'], t), m.array(g['indices'], it, -2, 6), m.array(g['out'], t, -2, 2)], [t, it, t])
        except Exception:
            continue


def moves():
    m = Maker('move', 'slices, pads and their kin, dynamic ones with starts out of bounds')
    r = m.random
    for _ in range(60):
        t, shape = r.choice(['f32', 's8', 'bf16', 'c64', 'pred']), m.shape(r.randint(1, 4), 1, 5)
        sizes, it = [r.randint(0, n) for n in shape], r.choice(['s32', 'u32', 's64', 's8', 'u64'])
        starts = [m.array([], it, -3, 6) for _ in shape]
        names = 'bcdefg'[:len(shape)]
        m.add('dynamic_slice_' + it, '', ['ROOT r = %s dynamic-slice(a, %s), dynamic_slice_sizes=%s' % (
            text_of(sizes, t), ', '.join(names), braces(sizes))], [m.array(shape, t)] + starts, [t] + [it] * len(shape))
        m.add('dynamic_update_slice_' + it, '', ['ROOT r = %s dynamic-update-slice(a, b, %s)' % (
            text_of(shape, t), ', '.join('cdefgh'[:len(shape)]))],
              [m.array(shape, t), m.array(sizes, t, 5, 9)] + starts, [t, t] + [it] * len(shape))
    while m.file.count < 180:
        t, shape = r.choice(['f32', 's32', 'f16', 'c128']), m.shape(r.randint(1, 4), 0, 5)
        pads, out = [], []
        for n in shape:
            low, high, inner = r.randint(-2, 3), r.randint(-2, 3), r.randint(0, 2)
            size = n + max(n - 1, 0) * inner + low + high
            pads.append((low, high, inner))
            out.append(size)
        if min(out) < 0:
            continue
        m.add('pad_' + t, '', ['ROOT r = %s pad(a, b), padding=%s' % (text_of(out, t), 'x'.join('%d_%d_%d' % p for p in pads))],
              [m.array(shape, t), m.array([], t)], [t, t])
    while m.file.count < 230:
        t, shape = r.choice(['f32', 's8', 'u16']), m.shape(r.randint(1, 4), 1, 6)
        perm = list(range(len(shape)))
        r.shuffle(perm)
        cut, out = [], []
        for n in [shape[p] for p in perm]:
            low = r.randint(0, n)
            high, step = r.randint(low, n), r.randint(1, 3)
            cut.append('[%d:%d:%d]' % (low, high, step))
            out.append(-(-(high - low) // step))
        moved = [shape[p] for p in perm]
        back = sorted(r.sample(range(len(shape)), r.randint(0, len(shape))))
        m.add('slice_of_transpose_' + t, '', ['t = %s transpose(a), dimensions=%s' % (text_of(moved, t), braces(perm)),
                                              'v = %s reverse(t), dimensions=%s' % (text_of(moved, t), braces(back)),
                                              'ROOT r = %s slice(v), slice={%s}' % (text_of(out, t), ', '.join(cut))],
              [m.array(shape, t, 0, 99)], [t])


def sorts():
    m = Maker('sort', 'stable sorts of one to three operands')
    r = m.random
    for _ in range(60):
        n, shape = r.randint(1, 3), m.shape(r.randint(1, 3), 1, 9)
        types = [r.choice(['f32', 's32', 's8', 'bf16', 'u32', 'f64']) for _ in range(n)]
        dim = r.randrange(len(shape))
        parts = [text_of(shape, t) for t in types]
        out = parts[0] if n == 1 else '(' + ', '.join(parts) + ')'
        m.add('sort_' + '_'.join(types), compare('f', types, r.choice(['LT', 'GT'])),
              ['ROOT r = %s sort(%s), dimensions={%d}, is_stable=true, to_apply=f' % (out, ', '.join('abc'[:n]), dim)],
              [m.array(shape, t, -3, 3) for t in types], types)


def random_bits():
    m = Maker('rng', 'rng-bit-generator: the bits and the next state')
    r = m.random
    for k in range(60):
        algorithm = ['rng_three_fry', 'rng_philox'][k % 2]
        t, shape = r.choice(['u32', 'u64', 's32', 'u8', 'u16', 's64']), m.shape(r.randint(0, 3), 0 if k % 13 == 0 else 1, 5)
        state = [2] if algorithm == 'rng_three_fry' else [r.choice([2, 3])]
        values = np.array([r.getrandbits(64) for _ in range(state[0])], np.uint64)
        try:
            m.add('%s_%s' % (algorithm, t), '', ['ROOT r = (%s, %s) rng-bit-generator(a), algorithm=%s' % (
                text_of(state, 'u64'), text_of(shape, t), algorithm)], [values], ['u64'])
        except Exception:
            continue


def control():
    m = Maker('control', 'loops and branches')
    r = m.random
    for k in range(20):
        n = r.randint(0, 6)
        comps = ('c {\n  p = (s32[], f32[3]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(%d)\n'
                 '  ROOT r = pred[] compare(i, n), direction=LT\n}\n'
                 'b {\n  p = (s32[], f32[3]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n'
                 '  v = f32[3] get-tuple-element(p), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n'
                 '  w = f32[3] add(v, v)\n  ROOT t = (s32[], f32[3]) tuple(j, w)\n}\n') % n
        m.add('while', comps, ['t = (s32[], f32[3]) tuple(a, b)', 'ROOT r = (s32[], f32[3]) while(t), condition=c, body=b'],
              [m.array([], 's32', 0, 3), m.array([3], 'f32')], ['s32', 'f32'])
        branches = ''.join('f%d {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] %s(p, p)\n}\n' % (i, op)
                           for i, op in enumerate(['add', 'multiply', 'subtract']))
        m.add('conditional', branches, ['ROOT r = f32[4] conditional(a, b, b, b), branch_computations={f0, f1, f2}'],
              [m.array([], 's32', -2, 4), m.array([4], 'f32')], ['s32', 'f32'])


if __name__ == '__main__':
    jax.config.update('jax_enable_x64', True)
    for family in (dots, convolutions, reductions, windows, gathers, scatters, moves, sorts, random_bits, control):
        family()
    for f in cases.File.all:
        f.write()
        print(f.name, f.count)

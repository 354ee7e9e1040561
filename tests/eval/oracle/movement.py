"""Ops that move elements: NumPy moves their positions. Every result is exact."""
import itertools
import random

import numpy as np

from arrays import COMPLEX, FLOATS, INTS
from cases import Arr, File, ints, rounded
from formats import FORMATS, PART, number
from inputs import array

ALL = ['pred'] + INTS + FLOATS + COMPLEX
SOME = ['pred', 's4', 'u8', 's64', 'f4e2m1fn', 'f8e5m2', 'bf16', 'f32', 'f64', 'c64', 'c128']
EXACT = 'exact'


def scalar(t, seed):
    return array(t, (), seed)


def item(a):
    return a.items()[0]


def braces(values):
    return '{' + ','.join(map(str, values)) + '}'


# --- iota, broadcast, reshape, transpose, reverse ---------------------------------------------------------------------
def iota_cases():
    file = File('iota', 'iota of every type. Floats of 16 bits and fewer are rounded once from the integer.')
    for t in INTS + FLOATS + COMPLEX:
        if t == 'f8e8m0fnu':
            continue  # has no zero
        for shape, d in (((5,), 0), ((3, 4), 1), ((2, 3, 2), 1), ((0, 4), 1)):
            at = np.indices(shape)[d].reshape(-1)
            if t in INTS:
                y = ints(t, shape, at)
            else:
                numbers = [n for v in at for n in ([number(int(v)), number(0)] if t in COMPLEX else [number(int(v))])]
                y = rounded(t, shape, numbers)
            file.case('%s_%d' % (t, d), 'r = %s iota(), iota_dimension=%d' % (y.text, d), [], (EXACT, y))


def plain_moves():
    file = File('moves', 'broadcast, reshape, transpose, reverse, concatenate of every type.')
    for t in ALL:
        a = array(t, (2, 3), 1)
        y = a.moved(np.broadcast_to(a.index()[:, None, :, None], (2, 4, 3, 2)))
        file.case('broadcast_' + t, 'r = %s broadcast(a), dimensions={0,2}' % y.text, [a], (EXACT, y))
        file.case('reshape_' + t, 'r = %s[3,1,2] reshape(a)' % t, [a], (EXACT, a.moved(a.index().reshape(3, 1, 2))))
        b = array(t, (2, 3, 4), 2)
        y = b.moved(b.index().transpose(2, 0, 1))
        file.case('transpose_' + t, 'r = %s transpose(a), dimensions={2,0,1}' % y.text, [b], (EXACT, y))
        file.case('reverse_' + t, 'r = %s reverse(a), dimensions={0,2}' % b.text, [b],
                  (EXACT, b.moved(b.index()[::-1, :, ::-1])))
        c = array(t, (2, 1), 3)
        both = Arr(t, (2, 4), [x for i in range(2) for x in
                               (a.bits[i * len(a.bits) // 2:(i + 1) * len(a.bits) // 2] +
                                c.bits[i * len(c.bits) // 2:(i + 1) * len(c.bits) // 2])])
        file.case('concatenate_' + t, 'r = %s concatenate(a, b), dimensions={1}' % both.text, [a, c], (EXACT, both))
        s = scalar(t, 4)
        y = s.moved(np.zeros((2, 2), int))
        file.case('splat_' + t, 'r = %s broadcast(a), dimensions={}' % y.text, [s], (EXACT, y))
    a, z = array('f32', (2, 3), 1), Arr('f32', (2, 0), [])
    file.case('concatenate_none', 'r = f32[2,6] concatenate(b, a, b, a, b), dimensions={1}', [a, z],
              (EXACT, a.moved(np.concatenate([a.index()] * 2, 1))))
    file.case('reverse_nothing', 'r = f32[2,3] reverse(a), dimensions={}', [a], (EXACT, a))
    file.case('rank_0', 'r = s8[] reshape(a)', [Arr('s8', (1, 1), [200])], (EXACT, Arr('s8', (), [200])))
    file.case('transpose_rank_0', 'r = s8[] transpose(a), dimensions={}', [Arr('s8', (), [3])], (EXACT, Arr('s8', (), [3])))


# --- slice, pad -------------------------------------------------------------------------------------------------------
def slices():
    file = File('slice', 'slice with all strides; empty ones.')
    rows = [((7,), [(0, 7, 1)]), ((7,), [(2, 7, 3)]), ((7,), [(3, 3, 1)]), ((7,), [(6, 7, 9)]), ((4, 5), [(1, 3, 1), (0, 5, 2)]),
            ((3, 4, 2), [(2, 3, 1), (1, 4, 3), (0, 2, 1)]), ((), []), ((0, 3), [(0, 0, 1), (1, 3, 1)])]
    for t in SOME:
        for shape, cut in rows:
            a = array(t, shape, 5)
            y = a.moved(a.index()[tuple(slice(*c) for c in cut)])
            text = ', '.join('[%d:%d:%d]' % c for c in cut)
            file.case('%s_%d' % (t, len(shape)), 'r = %s slice(a), slice={%s}' % (y.text, text), [a], (EXACT, y))


def padded(index, pads):
    """Positions after padding; -1 where the padding value stands. Interior first, then both ends, negative ones cut."""
    for d, (low, high, interior) in enumerate(pads):
        n = index.shape[d]
        size = n + max(n - 1, 0) * interior
        index = np.moveaxis(index, d, 0)
        wide = np.full((size,) + index.shape[1:], -1)
        wide[::interior + 1] = index
        wide = wide[max(-low, 0):size - max(-high, 0)]
        edge = lambda k: np.full((max(k, 0),) + wide.shape[1:], -1)
        index = np.moveaxis(np.concatenate([edge(low), wide, edge(high)]), 0, d)
    return index


def pads():
    file = File('pad', 'pad with edges, interiors and negative edges.')
    rows = [((5,), [(1, 2, 0)]), ((5,), [(-1, 3, 0)]), ((5,), [(-2, -1, 2)]), ((3, 2), [(0, 1, 1), (2, -1, 3)]), ((0,), [(2, 1, 4)]),
            ((2, 2, 3), [(1, 0, 0), (0, 0, 2), (-1, -1, 0)]), ((1,), [(0, 0, 7)]), ((4,), [(-4, 0, 0)]), ((3,), [(-3, 6, 1)]), ((), [])]
    for t in SOME:
        for shape, p in rows:
            a, z = array(t, shape, 6), scalar(t, 9)
            y = a.moved(padded(a.index(), p), item(z))
            text = 'x'.join('%d_%d_%d' % q for q in p)
            file.case('%s_%d' % (t, len(shape)), 'r = %s pad(a, b)%s' % (y.text, ', padding=' + text if p else ''),
                      [a, z], (EXACT, y))


# --- dynamic slices -----------------------------------------------------------------------------------------------------
def dynamic_slices():
    file = File('dynamic_slice', 'dynamic-slice and dynamic-update-slice: starts of every integer type, clamped.')
    r = random.Random(7)
    for n, (t, it) in enumerate(itertools.product(SOME, ['s32', 's8', 'u8', 's64', 'u64', 's4', 'u32'])):
        shape, sizes = ((5, 4), (2, 3)) if n % 3 else ((6,), (4,))
        a, u = array(t, shape, n), array(t, sizes, n + 1)
        w = {'s8': 8, 'u8': 8, 's4': 4}.get(it, int(it[1:]))
        starts = []
        for _ in shape:
            starts.append(Arr(it, (), [r.choice([0, 1, 2, 3, 7, (1 << w) - 1, 1 << w - 1, (1 << w - 1) - 1])]))
        at = [min(max(s.ints()[0], 0), d - k) for s, d, k in zip(starts, shape, sizes)]
        where = tuple(slice(p, p + k) for p, k in zip(at, sizes))
        names = ', '.join('bc'[i] for i in range(len(shape)))
        y = a.moved(a.index()[where])
        file.case('slice_%s_%s' % (t, it), 'r = %s dynamic-slice(a, %s), dynamic_slice_sizes=%s' % (
            y.text, names, braces(sizes)), [a] + starts, (EXACT, y))
        items = np.empty(shape, object)
        items.reshape(-1)[:] = a.items()
        new = np.empty(sizes, object)
        new.reshape(-1)[:] = u.items()
        items[where] = new
        flat = [x for i in items.reshape(-1) for x in (i if t in COMPLEX else [i])]
        names = ', '.join('cd'[i] for i in range(len(shape)))
        file.case('update_%s_%s' % (t, it), 'r = %s dynamic-update-slice(a, b, %s)' % (a.text, names), [a, u] + starts,
                  (EXACT, Arr(t, shape, flat)))
    a = array('f32', (3,), 1)
    v = ints('s32', (1,), [2])
    file.case('vector_of_starts', 'r = f32[2] dynamic-slice(a, b), dynamic_slice_sizes={2}', [a, v],
              (EXACT, a.moved(np.array([1, 2]))))


def make():
    iota_cases()
    plain_moves()
    slices()
    pads()
    dynamic_slices()

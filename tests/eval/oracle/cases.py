"""Arrays of bit patterns, and the files of cases."""
import os
import re

import numpy as np

import arrays
from formats import FORMATS, PART

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = {name: width for name, (_, width) in arrays.TYPES.items()}


class Arr:
    """type, shape and the elements' bits in row-major order; two for each element of a complex type."""

    def __init__(self, type, shape, bits):
        self.type, self.shape, self.bits = type, tuple(shape), [int(b) & ((1 << WIDTH[type]) - 1) for b in bits]
        assert len(self.bits) == self.count * (2 if type in PART else 1), (type, shape, len(self.bits))

    @property
    def count(self):
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def text(self):
        return self.type + '[' + ','.join(map(str, self.shape)) + ']'

    def np(self):
        return arrays.from_bits(self.type, self.bits, self.shape)

    def numbers(self):
        f = FORMATS[PART.get(self.type, self.type)]
        return [f.decode(b) for b in self.bits]

    def ints(self):
        w = WIDTH[self.type]
        return [b - (1 << w) if self.type[0] == 's' and b >> (w - 1) else b for b in self.bits]

    def items(self):
        """Elements as things that can be moved around: a pattern, or a pair of them."""
        if self.type in PART:
            return [tuple(self.bits[i:i + 2]) for i in range(0, len(self.bits), 2)]
        return self.bits

    def index(self):
        """The elements' positions as an array of the same shape, for numpy to move around."""
        return np.arange(self.count).reshape(self.shape)

    def moved(self, positions, fill=None):
        """The elements at `positions` (-1: `fill`, an item) in the shape of that array."""
        items = self.items()
        out = [fill if p < 0 else items[p] for p in positions.reshape(-1)]
        if self.type in PART:
            out = [x for pair in out for x in pair]
        return Arr(self.type, positions.shape, out)


def of(a):
    a = np.asarray(a)
    return Arr(arrays.type_name(a), a.shape, arrays.bits_of(a))


def rounded(type, shape, numbers):
    f = FORMATS[PART.get(type, type)]
    return Arr(type, shape, [f.encode(n) for n in numbers])


def ints(type, shape, values):
    return Arr(type, shape, [int(v) for v in values])


class File:
    """One file of cases. Names are made unique and say what the case is about."""

    all = []

    def __init__(self, name, about):
        self.name, self.parts, self.count, self.seen = name, ['# ' + about.replace('\n', '\n# ') + '\n'], 0, set()
        File.all.append(self)

    def case(self, name, hlo, inputs, *outputs, by='python'):
        """outputs: (rule, array). The HLO text may be the body of ENTRY alone, with %0, %1 ... for the parameters'
        shapes."""
        base, n = name, 1
        while name in self.seen:
            n += 1
            name = '%s_%d' % (base, n)
        self.seen.add(name)
        self.count += 1
        part = ['case %s\nby %s\n' % (name, by)]
        part += ['| ' + line + '\n' for line in module(hlo, inputs)]
        part += [line('in ' + a.text, a) for a in inputs]
        part += [line('out ' + rule, a) for rule, a in outputs]
        self.parts.append('\n' + ''.join(part))

    def write(self):
        with open(os.path.join(HERE, 'data', self.name + '.txt'), 'w') as f:
            f.write(''.join(self.parts))


def line(head, a):
    return arrays.text_of_bits(head, a.type, a.bits)


def module(hlo, inputs):
    lines = [l for l in hlo.strip('\n').split('\n') if l.strip()]
    if any(l.lstrip().startswith('HloModule') for l in lines):
        return lines
    comps, body = [], lines
    if '---' in lines:
        cut = lines.index('---')
        comps, body = lines[:cut], lines[cut + 1:]
    names = 'abcdefghijklmnopqrstuvwxyz'
    params = ['  %s = %s parameter(%d)' % (names[i], a.text, i) for i, a in enumerate(inputs)]
    body = ['  ' + l.strip() for l in body]
    if not any(re.match(r'\s*ROOT ', l) for l in body):
        body[-1] = '  ROOT ' + body[-1].strip()
    return ['HloModule m'] + comps + ['ENTRY e {'] + params + body + ['}']

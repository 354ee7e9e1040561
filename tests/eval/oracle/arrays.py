"""The text form of arrays, shared by the oracle's cases and the corpus' inputs and results.

One array is a line `KEYWORD ... = HEX HEX ...`, continued on lines that start with a space. An element is the number
that its bits make, in lower-case hexadecimal without leading zeros; a complex one is two of them, real part first.
Elements stand in row-major order; `HEX*N` is N equal ones in a row and `HEX..HEX` a rising run (neither for complex
ones). pred is 0 or 1; integers are in two's complement at
their own width; s1, u4, f4 and the like use their low bits only."""
import ml_dtypes
import numpy as np

# HLO's name of an element type -> numpy's type, bits
TYPES = {
    'pred': (np.bool_, 1),
    's1': (ml_dtypes.int1, 1), 'u1': (ml_dtypes.uint1, 1),
    's2': (ml_dtypes.int2, 2), 'u2': (ml_dtypes.uint2, 2), 's4': (ml_dtypes.int4, 4), 'u4': (ml_dtypes.uint4, 4),
    's8': (np.int8, 8), 'u8': (np.uint8, 8), 's16': (np.int16, 16), 'u16': (np.uint16, 16),
    's32': (np.int32, 32), 'u32': (np.uint32, 32), 's64': (np.int64, 64), 'u64': (np.uint64, 64),
    'f4e2m1fn': (ml_dtypes.float4_e2m1fn, 4),
    'f8e3m4': (ml_dtypes.float8_e3m4, 8), 'f8e4m3': (ml_dtypes.float8_e4m3, 8),
    'f8e4m3fn': (ml_dtypes.float8_e4m3fn, 8), 'f8e4m3fnuz': (ml_dtypes.float8_e4m3fnuz, 8),
    'f8e4m3b11fnuz': (ml_dtypes.float8_e4m3b11fnuz, 8), 'f8e5m2': (ml_dtypes.float8_e5m2, 8),
    'f8e5m2fnuz': (ml_dtypes.float8_e5m2fnuz, 8), 'f8e8m0fnu': (ml_dtypes.float8_e8m0fnu, 8),
    'f16': (np.float16, 16), 'bf16': (ml_dtypes.bfloat16, 16), 'f32': (np.float32, 32), 'f64': (np.float64, 64),
    'c64': (np.complex64, 32), 'c128': (np.complex128, 64),
}
NAMES = {np.dtype(t): name for name, (t, _) in TYPES.items()}
FLOATS = ['f4e2m1fn', 'f8e3m4', 'f8e4m3', 'f8e4m3fn', 'f8e4m3fnuz', 'f8e4m3b11fnuz', 'f8e5m2', 'f8e5m2fnuz', 'f8e8m0fnu',
          'f16', 'bf16', 'f32', 'f64']
SIGNED = ['s1', 's2', 's4', 's8', 's16', 's32', 's64']
UNSIGNED = ['u1', 'u2', 'u4', 'u8', 'u16', 'u32', 'u64']
INTS = [t for pair in zip(SIGNED, UNSIGNED) for t in pair]
COMPLEX = ['c64', 'c128']


def type_name(a):
    return NAMES[np.asarray(a).dtype]


def shape_text(a):
    a = np.asarray(a)
    return type_name(a) + '[' + ','.join(map(str, a.shape)) + ']'


def bits_of(a):
    """The elements of `a` as a flat list of non-negative integers; two for each complex one."""
    a = np.ascontiguousarray(a).reshape(-1)
    name = NAMES[a.dtype]
    if name in COMPLEX:
        a = a.view(np.float32 if name == 'c64' else np.float64)
    width = TYPES[name][1]
    raw = a.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])
    return [int(v) & ((1 << width) - 1) for v in raw]


def from_bits(name, bits, shape):
    """The inverse of bits_of."""
    dtype, width = TYPES[name]
    part = {'c64': np.float32, 'c128': np.float64}.get(name, dtype)
    size = np.dtype(part).itemsize
    bits = list(bits)
    if name in ('s1', 's2', 's4'):  # ml_dtypes holds them sign-extended
        bits = [b | (0x100 - (1 << width)) if b >> (width - 1) & 1 else b for b in bits]
    raw = np.array(bits, {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[size])
    return raw.view(part).view(dtype).reshape(shape)


def text(head, a):
    return text_of_bits(head, type_name(a), bits_of(a))


def text_of_bits(head, name, bits):
    """`head = elements`, wrapped, with a newline at the end."""
    step = 2 if name in COMPLEX else 1
    words = [' '.join('%x' % b for b in bits[i:i + step]) for i in range(0, len(bits), step)]
    runs, i = [], 0
    while i < len(words):
        n = up = 1
        while step == 1 and i + n < len(words) and words[i + n] == words[i]:
            n += 1
        while step == 1 and i + up < len(words) and bits[i + up] == bits[i] + up:
            up += 1
        if n > 2:
            runs.append('%s*%d' % (words[i], n))
        elif up > 3:
            runs.append('%s..%s' % (words[i], words[i + up - 1]))
            n = up
        else:
            runs += [words[i]] * n
        i += n
    lines, line = [], head + ' ='
    for w in runs:
        if len(line) + 1 + len(w) > 118:
            lines.append(line)
            line = ''
        line += ' ' + w
    return '\n'.join(lines + [line]) + '\n'

"""fft, cholesky, triangular-solve, batch-norm: mpmath with 400 bits, rounded once to the type.

The evaluator computes these in more digits than the type has and rounds once as well: `within 0`. Transforms have sums
that cancel to ties, which neither side sees as such: `within 1`."""
import itertools
import random

import mpmath as mp

from cases import Arr, File, rounded
from formats import FORMATS, PART, from_mp, to_mp
from inputs import plain


def mp_values(a):
    n = [to_mp(x) for x in a.numbers()]
    return [mp.mpc(x, y) for x, y in zip(n[::2], n[1::2])] if a.type in PART else n


def from_mps(t, shape, values):
    if t in PART:
        values = [p for v in values for v in [mp.mpc(v)] for p in (v.real, v.imag)]
    return rounded(t, shape, [from_mp(mp.mpf(v.real) if isinstance(v, mp.mpc) else mp.mpf(v)) for v in values])


# --- fft --------------------------------------------------------------------------------------------------------------
def transform(x, sign):
    n = len(x)
    roots = [mp.expjpi(mp.mpf(2 * sign * k) / n) for k in range(n)]
    return [mp.fsum(x[j] * roots[j * k % n] for j in range(n)) for k in range(n)]


def along(x, shape, d, f):
    """f on every line along dimension d; returns values and shape."""
    inner = 1
    for n in shape[d + 1:]:
        inner *= n
    n = shape[d]
    lines = {}
    for i in range(len(x)):
        lines.setdefault((i // (n * inner), i % inner), []).append(x[i])
    done = {k: f(v) for k, v in lines.items()}
    m = len(next(iter(done.values())))
    out = [done[o, i][j] for o in range(len(x) // (n * inner)) for j in range(m) for i in range(inner)]
    return out, list(shape[:d]) + [m] + list(shape[d + 1:])


def fft(x, shape, kind, length):
    shape, rank = list(shape), len(length)
    dims = list(range(len(shape) - rank, len(shape)))
    if kind in ('FFT', 'IFFT'):
        for d in dims:
            x, shape = along(x, shape, d, lambda v: transform(v, -1) if kind == 'FFT' else
                             [c / len(v) for c in transform(v, 1)])
        return x, shape
    if kind == 'RFFT':
        x, shape = along(x, shape, dims[-1], lambda v: transform(v, -1)[:len(v) // 2 + 1])
        for d in dims[:-1]:
            x, shape = along(x, shape, d, lambda v: transform(v, -1))
        return x, shape
    for d in dims[:-1]:
        x, shape = along(x, shape, d, lambda v: [c / len(v) for c in transform(v, 1)])
    n = length[-1]

    def back(v):  # the other half by symmetry; the ends' imaginary parts do not count
        full = [v[k] if k <= n // 2 else mp.conj(v[n - k]) for k in range(n)]
        full[0] = mp.mpc(full[0].real)
        if n % 2 == 0:
            full[n // 2] = mp.mpc(full[n // 2].real)
        return [c.real / n for c in transform(full, 1)]

    return along(x, shape, dims[-1], back)


def fft_cases():
    file = File('fft', 'fft of every kind over one to three dimensions; lengths that are primes, powers, composites.')
    for n, (t, kind) in enumerate(itertools.product(['f32', 'f64'], ['FFT', 'IFFT', 'RFFT', 'IRFFT'])):
        for k, (lead, length) in enumerate([((), (8,)), ((2,), (5,)), ((3,), (1,)), ((), (12,)), ((2,), (3, 4)), ((), (2, 3, 4)),
                                            ((), (67,)), ((2, 1), (6,)), ((), (9,)), ((), (2,))]):
            if k == 6 and kind in ('IFFT', 'IRFFT'):
                continue
            c = {'f32': 'c64', 'f64': 'c128'}[t]
            shape = list(lead) + list(length)
            if kind == 'IRFFT':
                shape[-1] = length[-1] // 2 + 1
            src = t if kind == 'RFFT' else c
            size = 1
            for d in shape:
                size *= d
            a = Arr(src, shape, plain(src, size, n * 20 + k))
            x, out = fft([mp.mpc(v) for v in mp_values(a)], shape, kind, length)
            y = from_mps(t if kind == 'IRFFT' else c, out, x)
            file.case('%s_%s_%s' % (kind, t, 'x'.join(map(str, length))), 'r = %s fft(a), fft_type=%s, fft_length={%s}' % (
                y.text, kind, ','.join(map(str, length))), [a], ('within 1', y), by='mpmath')


# --- factorizations -----------------------------------------------------------------------------------------------------
def cholesky(m, n):
    """Lower factor of the matrix whose lower triangle counts; None where it is not positive definite."""
    l = [[mp.mpc(0)] * n for _ in range(n)]
    for j in range(n):
        d = m(j, j).real - mp.fsum(abs(l[j][k])**2 for k in range(j))
        if d <= 0:
            return None
        l[j][j] = mp.mpc(mp.sqrt(d))
        for i in range(j + 1, n):
            l[i][j] = (m(i, j) - mp.fsum(l[i][k] * mp.conj(l[j][k]) for k in range(j))) / l[j][j]
    return l


def cholesky_cases():
    file = File('cholesky', 'cholesky, lower and upper, batched. The other triangle of the result is the evaluator\'s: zeros.')
    for n, (t, lower, size) in enumerate(itertools.product(['f32', 'f64', 'c64', 'c128'], [True, False], [1, 2, 5])):
        batch = 2
        parts = 2 if t in PART else 1
        r = random.Random(n)
        f = FORMATS[PART.get(t, t)]
        bits = []
        for _ in range(batch):
            for i in range(size):
                for j in range(size):
                    v = size + 2 + r.random() if i == j else r.uniform(-1, 1)
                    w = 0.0 if i == j else r.uniform(-1, 1)
                    bits += [f.encode(from_mp(mp.mpf(p))) for p in ((v, w)[:parts])]
        a = Arr(t, (batch, size, size), bits)
        v, out = mp_values(a), []
        for b in range(batch):
            at = lambda i, j: mp.mpc(v[b * size * size + i * size + j])
            m = at if lower else lambda i, j: mp.conj(at(j, i))
            l = cholesky(m, size)
            for i in range(size):
                out += [l[i][j] if lower else mp.conj(l[j][i]) for j in range(size)]
        y = from_mps(t, a.shape, out)
        file.case('%s_%s_%d' % (t, 'lower' if lower else 'upper', size), 'r = %s cholesky(a), lower=%s' % (
            a.text, str(lower).lower()), [a], ('within 0', y), by='mpmath')


def solve(m, b, n, columns):
    """x with m x = b for a triangular m given as a function; `m` says which order."""
    x = [[None] * columns for _ in range(n)]
    for c in range(columns):
        for i in m.order:
            known = [k for k in range(n) if x[k][c] is not None]
            rest = b(i, c) - mp.fsum(m(i, k) * x[k][c] for k in known)
            x[i][c] = rest / m(i, i)
    return x


class Triangle:
    def __init__(self, at, n, lower, unit, how):
        self.at, self.lower, self.unit, self.how = at, lower, unit, how
        forward = lower == (how == 'NO_TRANSPOSE')
        self.order = range(n) if forward else range(n)[::-1]

    def __call__(self, i, j):
        if i == j and self.unit:
            return mp.mpc(1)
        if self.how != 'NO_TRANSPOSE':
            i, j = j, i
        v = self.at(i, j) if i == j or (i > j) == self.lower else mp.mpc(0)
        return mp.conj(v) if self.how == 'ADJOINT' else v


def triangular_cases():
    file = File('triangular_solve', 'triangular-solve with all flags: side, triangle, unit diagonal, transposes; the other '
                'triangle is not read.')
    types = ['f32', 'f64', 'c64', 'c128']
    for n, (left, lower, unit, how) in enumerate(itertools.product([True, False], [True, False], [True, False],
                                                                   ['NO_TRANSPOSE', 'TRANSPOSE', 'ADJOINT'])):
        for t in (types[n % 4], types[(n + 2) % 4]):
            k, m, parts = 3, 2, 2 if t in PART else 1
            f = FORMATS[PART.get(t, t)]
            r = random.Random('%d%s' % (n, t))
            bits = []
            for i in range(k):
                for j in range(k):
                    v = r.choice([-1, 1]) * r.uniform(2, 3) if i == j else r.uniform(-1, 1)
                    if i != j and (i > j) != lower:
                        bits += [f.nan] * parts
                    else:
                        bits += [f.encode(from_mp(mp.mpf(p))) for p in (v, r.uniform(-.5, .5))[:parts]]
            a = Arr(t, (k, k), bits)
            shape = (k, m) if left else (m, k)
            b = Arr(t, shape, plain(t, k * m, n))
            av, bv = mp_values(a), mp_values(b)
            at = lambda i, j: mp.mpc(av[i * k + j])
            tri = Triangle(at, k, lower, unit, how)
            if left:
                x = solve(tri, lambda i, c: mp.mpc(bv[i * m + c]), k, m)
                out = [x[i][c] for i in range(k) for c in range(m)]
            else:  # x A = b  <=>  A^T x^T = b^T
                flipped = Triangle(lambda i, j: tri(j, i), k, True, False, 'NO_TRANSPOSE')
                flipped.__class__ = Flipped
                flipped.order = range(k)[::-1] if list(tri.order) == list(range(k)) else range(k)
                flipped.tri = tri
                x = solve(flipped, lambda i, c: mp.mpc(bv[c * k + i]), k, m)
                out = [x[i][c] for c in range(m) for i in range(k)]
            y = from_mps(t, shape, out)
            file.case('%s_%s_%s%s_%s' % (t, 'left' if left else 'right', 'lower' if lower else 'upper', '_unit' if unit else '',
                                         how.lower()),
                      'r = %s triangular-solve(a, b), left_side=%s, lower=%s, unit_diagonal=%s, transpose_a=%s' % (
                          y.text, *(str(v).lower() for v in (left, lower, unit)), how), [a, b], ('within 0', y), by='mpmath')


class Flipped(Triangle):
    def __call__(self, i, j):
        return self.tri(j, i)


# --- batch norm ---------------------------------------------------------------------------------------------------------
def by_feature(values, shape, d):
    inner = 1
    for n in shape[d + 1:]:
        inner *= n
    return [[i for i in range(len(values)) if i // inner % shape[d] == k] for k in range(shape[d])]


def batch_norm_cases():
    file = File('batch_norm', 'batch-norm-training, -inference, -grad by their formulas.')
    rows = [((3, 4), 1), ((2, 3, 2), 1), ((5,), 0), ((4, 2), 0), ((2, 2, 2, 3), 3)]
    for n, (t, (shape, d)) in enumerate(itertools.product(['f32', 'f64', 'bf16', 'f16'], rows)):
        size, features = 1, shape[d]
        for k in shape:
            size *= k
        eps = mp.mpf(float.fromhex('0x1.0624dep-10'))  # 0.001 in f32
        x = Arr(t, shape, plain(t, size, n))
        scale, offset, mean = (Arr(t, (features,), plain(t, features, n + k)) for k in (1, 2, 3))
        var = Arr(t, (features,), plain(t, features, n + 4, .5, 3))
        grad = Arr(t, shape, plain(t, size, n + 5))
        v, s, o, m, w, g = map(mp_values, (x, scale, offset, mean, var, grad))
        groups = by_feature(v, shape, d)
        text = ', epsilon=0.001, feature_index=%d' % d
        out = [None] * size
        for k, members in enumerate(groups):
            for i in members:
                out[i] = s[k] * (v[i] - m[k]) / mp.sqrt(w[k] + eps) + o[k]
        rule = 'within 0'
        file.case('inference_' + t, 'r = %s batch-norm-inference(a, b, c, d, e)' % x.text + text, [x, scale, offset, mean, var],
                  (rule, from_mps(t, shape, out)), by='mpmath')
        means, variances, out = [], [], [None] * size
        for k, members in enumerate(groups):
            mu = mp.fsum(v[i] for i in members) / len(members)
            va = mp.fsum((v[i] - mu)**2 for i in members) / len(members)
            means.append(mu)
            variances.append(va)
            for i in members:
                out[i] = s[k] * (v[i] - mu) / mp.sqrt(va + eps) + o[k]
        file.case('training_' + t, 'r = (%s, %s, %s) batch-norm-training(a, b, c)' % (x.text, scale.text, scale.text) + text,
                  [x, scale, offset], *[(rule, from_mps(t, sh, val)) for sh, val in
                                        ((shape, out), ((features,), means), ((features,), variances))], by='mpmath')
        dx, ds, do = [None] * size, [], []
        for k, members in enumerate(groups):
            count = len(members)
            inv = 1 / mp.sqrt(w[k] + eps)
            a = mp.fsum(g[i] * (v[i] - m[k]) for i in members)
            b = mp.fsum(g[i] for i in members)
            ds.append(a * inv)
            do.append(b)
            for i in members:
                dx[i] = s[k] * inv / count * (count * g[i] - b - (v[i] - m[k]) / (w[k] + eps) * a)
        file.case('grad_' + t, 'r = (%s, %s, %s) batch-norm-grad(a, b, c, d, e)' % (x.text, scale.text, scale.text) + text,
                  [x, scale, mean, var, grad], *[(rule, from_mps(t, sh, val)) for sh, val in
                                                 ((shape, dx), ((features,), ds), ((features,), do))], by='mpmath')


def make():
    fft_cases()
    cholesky_cases()
    triangular_cases()
    batch_norm_cases()

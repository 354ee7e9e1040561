#!/usr/bin/env python3
"""Cases for tests/eval/composite.c: ops that are whole algorithms. Needs jax (its CPU device is XLA's), mpmath and
what cases.py needs. Writes rng.txt, linalg.txt, fft.txt and norm.txt beside this file.

A case is these lines, arrays as patterns in hex with complex parts joined by ':' and 'n' for any NaN:
    HLO WIDTH the module in one line      WIDTH: how wide an interval may be, relative to the largest exact number
    P type patterns ...                   per parameter
    R type patterns ...                   per result: exact, rounded once; '?' where HLO promises nothing
    X type patterns ...                   per result: as XLA computes it on a CPU, to be allowed; or X -
"""
import os
import random

import jax
import jaxlib._hlo as hlo
import jaxlib.xla_client as xc
import ml_dtypes
import mpmath
import numpy as np
from cases import FORMATS, HERE, PARTS, decode, exact
from jax._src import xla_bridge
from jaxlib import _jax

jax.config.update("jax_enable_x64", True)
CLIENT = xla_bridge.get_backend("cpu")
RNG = random.Random(7)
mpmath.mp.dps = 60
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
         "c128": np.complex128, "u64": np.uint64, "pred": np.bool_}
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def run_xla(text, args):
    m = hlo.hlo_module_from_text(text)
    program = _jax.mlir.hlo_to_stablehlo(m.as_serialized_hlo_module_proto())
    loaded = CLIENT.compile_and_load(program, _jax.DeviceList(tuple(CLIENT.devices())), xc.CompileOptions())
    out = loaded.execute([jax.device_put(a) for a in args])
    return [np.asarray(o) for o in out]


def part(t):
    return PARTS.get(t, t)


def encode(t, v):
    """An mpf, mpc, float or None ('?')."""
    if v is None:
        return "?"
    if t in PARTS:
        v = mpmath.mpc(v)
        return encode(part(t), v.real) + ":" + encode(part(t), v.imag)
    if isinstance(v, mpmath.mpc):
        v = v.real
    if isinstance(v, float) or not mpmath.isfinite(v):
        return FORMATS[t].encode(float(v))
    return FORMATS[t].encode(exact(mpmath.mpf(v)))


def patterns(a):
    a = np.ascontiguousarray(a)
    if a.dtype.kind == "c":
        p = a.view(np.float32 if a.dtype == np.complex64 else np.float64).reshape(-1)
        w = patterns(p)
        return [x + ":" + y for x, y in zip(w[::2], w[1::2])]
    if a.dtype.kind == "f" or a.dtype == ml_dtypes.bfloat16:
        with np.errstate(all="ignore"):
            nan = np.isnan(a.astype(np.float64)).reshape(-1)
    else:
        nan = np.zeros(a.size, bool)
    if a.dtype.itemsize == 1 and a.dtype not in (np.uint8, np.int8, np.bool_):
        a = a.astype(np.uint8) if a.dtype.kind in "iuV" and a.dtype.name in ("uint2", "uint4", "int2", "int4") else a.view(np.uint8)
    b = a.view(BITS[a.dtype.itemsize]).reshape(-1)
    return ["n" if k else f"{int(v):x}" for v, k in zip(b, nan)]


class Out:
    def __init__(self, name):
        self.path, self.lines, self.count = os.path.join(HERE, name + ".txt"), [], 0

    def case(self, width, body, params, results, xla=None):
        """params: (type, array); results: (type, list of patterns); xla: False, or its types if XLA has others."""
        text = "HloModule t ENTRY e { " + body + " }"
        lines = [f"HLO {width:g} {text}"]
        lines += [f"P {t} " + " ".join(patterns(a)) for t, a in params]
        lines += [f"R {t} " + " ".join(r) for t, r in results]
        if xla is False:
            lines += ["X -"] * len(results)
        else:
            got = run_xla(text, [a for _, a in params])
            lines += [f"X {t} " + " ".join(patterns(g)) for (t, _), g in zip(results, got)]
        self.lines += [line.rstrip() for line in lines]
        self.count += 1

    def close(self):
        with open(self.path, "w") as f:
            f.write("\n".join(self.lines) + "\n")
        print(self.path, self.count)


def shape(t, dims):
    return f"{t}[{','.join(map(str, dims))}]"


def numbers(t, dims, scale=2.0):
    a = np.array([RNG.uniform(-scale, scale) for _ in range(int(np.prod(dims)))]).reshape(dims)
    if t in PARTS:
        a = a + 1j * np.array([RNG.uniform(-scale, scale) for _ in range(int(np.prod(dims)))]).reshape(dims)
    return a.astype(NUMPY[t])


def mp(t, x):
    if t in PARTS:
        return mpmath.mpc(float(x.real), float(x.imag))
    return mpmath.mpf(float(x))


# --- random bits ---------------------------------------------------------------------------------------------------

def rng():
    out = Out("rng")
    types = "u2 s2 u4 s4 u8 s8 u16 s16 u32 s32 u64 s64 f8e4m3fn f16 bf16 f32 f64".split()
    dims = [(), (0,), (1,), (5,), (8,), (3, 5), (4, 3), (3, 2, 5), (7, 9), (2, 0, 3), (1, 1)]
    states = {"rng_three_fry": [2], "rng_philox": [2, 3], "rng_default": [2, 3]}
    for algorithm, sizes in states.items():
        for k, t in enumerate(types):
            for j, d in enumerate(dims):
                if algorithm == "rng_default" and t != "u32" or (k + j) % 3 and t not in ("u32", "u64", "u8"):
                    continue
                for n in sizes:
                    state = np.array([RNG.getrandbits(64) for _ in range(n)], dtype=np.uint64)
                    if j % 4 == 3:
                        state[1] = 2**64 - 1 - j % 3  # the counter's carry
                    body = (f"p = u64[{n}] parameter(0) ROOT r = (u64[{n}], {shape(t, d)}) rng-bit-generator(p), "
                            f"algorithm={algorithm}")
                    got = run_xla("HloModule t ENTRY e { " + body + " }", [state])
                    # Compared bit by bit: a NaN's too.
                    words = got[1].astype(np.uint8) if t[1:] in ("2", "4") else got[1]
                    words = np.ascontiguousarray(words).view(BITS[words.dtype.itemsize]).reshape(-1)
                    bits = [f"{int(v):x}" for v in words]
                    out.case(0, body, [("u64", state)], [("u64", patterns(got[0])), (t, bits)], xla=False)
    floats = {"f16": ("u16", 10), "bf16": ("u16", 7), "f32": ("u32", 23), "f64": ("u64", 52)}
    for t, (r, _) in floats.items():
        for to in ("s8", "s16", "s32"):
            bits = int(r[1:])
            # Beside the ends of the result: XLA compares with them rounded to the operand's type.
            x = np.array([RNG.uniform(-300, 300) for _ in range(24)] + [0.5, -0.5, 0.0, -0.0, 1.25, 127.5, 126.75, -127.25,
                         -128.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-3, -1e-7]).astype(NUMPY[t])
            u = np.array([RNG.getrandbits(bits) for _ in range(24)] + [RNG.getrandbits(bits - 1 - i % 3) for i in range(16)],
                         dtype=BITS[bits // 8])
            body = (f"p = {t}[40] parameter(0) q = {r}[40] parameter(1) ROOT r = {to}[40] stochastic-convert(p, q)")
            got = run_xla("HloModule t ENTRY e { " + body + " }", [x, u])
            out.case(0, body, [(t, x), (r, u)], [(to, patterns(got[0]))], xla=False)
    out.close()


# --- matrices ------------------------------------------------------------------------------------------------------

def conj(x):
    return mpmath.conj(x)


def factor(a, n):
    l = [[mpmath.mpf(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            s = a[i][j] - sum((l[i][k] * conj(l[j][k]) for k in range(j)), mpmath.mpf(0))
            l[i][j] = mpmath.sqrt(s.real) if i == j else s / l[j][j]
    return l


WIDTH = {"f16": 2, "bf16": 2, "f32": 1e-3, "c64": 1e-3, "f64": 1e-11, "c128": 1e-11}


def cholesky(out):
    for t in ("f32", "f64", "c64", "c128", "f16", "bf16"):
        for lower in (True, False):
            for dims in ((1, 1), (2, 2), (5, 5), (2, 3, 4, 4), (17, 17), (0, 3, 3), (2, 0, 0)):
                n = dims[-1]
                if n > 5 and t in ("f16", "bf16"):
                    continue
                g = numbers("c128" if t in PARTS else "f64", dims)
                a = g @ np.conj(np.swapaxes(g, -1, -2)) + (n + 1) * np.eye(n)
                a = a.astype(NUMPY[t])
                junk = numbers(t, dims)
                keep = np.tril(np.ones((n, n))) if lower else np.triu(np.ones((n, n)))
                a = np.where(keep > 0, a, junk).astype(NUMPY[t])
                want = []
                for m in a.reshape(int(np.prod(dims[:-2])), n, n):
                    herm = [[mp(t, m[i, j]) if lower else conj(mp(t, m[j, i])) for j in range(i + 1)] for i in range(n)]
                    for i in range(n):
                        herm[i][i] = mpmath.mpf(mpmath.re(herm[i][i]))
                    l = factor(herm, n)
                    for i in range(n):
                        for j in range(n):
                            inside = j <= i if lower else j >= i
                            v = None if not inside else l[i][j] if lower else conj(l[j][i])
                            want.append(encode(t, v))
                body = f"p = {shape(t, dims)} parameter(0) ROOT r = {shape(t, dims)} cholesky(p), lower={str(lower).lower()}"
                out.case(WIDTH[t], body, [(t, a)], [(t, want)])


def solve(out):
    for t in ("f32", "f64", "c64", "c128", "f16", "bf16"):
        for left in (True, False):
            for lower in (True, False):
                for unit in (True, False):
                    for op in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                        triangular(out, t, left, lower, unit, op)


def triangular(out, t, left, lower, unit, op):
    batch, n, m = RNG.choice([((), 4, 3), ((2,), 3, 2), ((), 1, 1), ((2, 1), 5, 1), ((), 7, 2), ((), 3, 0), ((0,), 2, 2)])
    adims, bdims = batch + (n, n), batch + ((n, m) if left else (m, n))
    a, b = numbers(t, adims, 1.0), numbers(t, bdims)
    for i in range(n):
        a[..., i, i] = a[..., i, i] + (2 if RNG.random() < 0.5 else -2)
    want = np.empty(bdims, dtype=object)
    count = int(np.prod(batch))
    for k in range(count):
        am, bm, wm = a.reshape((count, n, n))[k], b.reshape((count,) + bdims[-2:])[k], want.reshape((count,) + bdims[-2:])[k]
        tri = [[mp(t, am[i, j]) if (j < i if lower else j > i) else mpmath.mpf(0) for j in range(n)] for i in range(n)]
        for i in range(n):
            tri[i][i] = mpmath.mpf(1) if unit else mp(t, am[i, i])
        x = mpmath.matrix(tri)
        x = x if op == "NO_TRANSPOSE" else x.T if op == "TRANSPOSE" else x.H
        for r in range(m):
            rhs = mpmath.matrix([mp(t, v) for v in (bm[:, r] if left else bm[r, :])])
            sol = mpmath.lu_solve(x if left else x.T, rhs)
            for i in range(n):
                wm[(i, r) if left else (r, i)] = sol[i]
    body = (f"p = {shape(t, adims)} parameter(0) q = {shape(t, bdims)} parameter(1) "
            f"ROOT r = {shape(t, bdims)} triangular-solve(p, q), left_side={str(left).lower()}, lower={str(lower).lower()}, "
            f"unit_diagonal={str(unit).lower()}, transpose_a={op}")
    out.case(WIDTH[t] * 3, body, [(t, a), (t, b)], [(t, [encode(t, v) for v in want.reshape(-1)])])


# --- transforms ----------------------------------------------------------------------------------------------------

def dft(x, axis, sign):
    n = x.shape[axis]
    w = [mpmath.expjpi(sign * mpmath.mpf(2 * k) / n) for k in range(n)]
    x = np.moveaxis(x, axis, -1)
    y = np.empty_like(x)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at]
        for k in range(n):
            y[at + (k,)] = sum((row[j] * w[j * k % n] for j in range(n)), mpmath.mpc(0))
    return np.moveaxis(y, -1, axis)


def fft():
    out = Out("fft")
    cases = [((1,), 1), ((2,), 1), ((3,), 1), ((4,), 1), ((5,), 1), ((8,), 1), ((12,), 1), ((15,), 1), ((31,), 1), ((64,), 1),
             ((67,), 1), ((97,), 1), ((134,), 1), ((2, 6), 1), ((3, 4), 2), ((2, 3, 4), 2), ((2, 3, 5), 3), ((4, 1, 2), 3), ((0, 4), 1),
             ((2, 0), 1), ((100,), 1)]
    for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
        for wide in (False, True):
            for dims, rank in cases:
                one(out, kind, wide, dims, rank)
    out.close()


def one(out, kind, wide, dims, rank):
    c, r = ("c128", "f64") if wide else ("c64", "f32")
    half = dims[:-1] + ((dims[-1] // 2 + 1 if dims[-1] else 0),)
    t, to, idims, odims = {"FFT": (c, c, dims, dims), "IFFT": (c, c, dims, dims), "RFFT": (r, c, dims, half),
                           "IRFFT": (c, r, half, dims)}[kind]
    x = numbers(t, idims)
    v = np.empty(idims, dtype=object)
    for at in np.ndindex(idims):
        v[at] = mpmath.mpc(mp(t, x[at]))
    axes = list(range(len(dims) - rank, len(dims)))
    lengths = [dims[a] for a in axes]
    if 0 not in dims:
        if kind == "IRFFT":
            for a in axes[:-1]:
                v = dft(v, a, 1)
            n = dims[-1]
            full = np.empty(dims, dtype=object)
            for at in np.ndindex(dims):
                k = at[-1]
                s = v[at] if k <= n // 2 else mpmath.conj(v[at[:-1] + (n - k,)])
                full[at] = mpmath.mpc(s.real) if k in (0, n - k) else s
            v = dft(full, axes[-1], 1)
        else:
            for a in axes:
                v = dft(v, a, -1 if kind != "IFFT" else 1)
            v = v[tuple(slice(0, d) for d in odims)]
        if kind in ("IFFT", "IRFFT"):
            v = v / mpmath.mpf(int(np.prod(lengths)))
    body = (f"p = {shape(t, idims)} parameter(0) ROOT r = {shape(to, odims)} fft(p), fft_type={kind}, "
            f"fft_length={{{','.join(map(str, lengths))}}}")
    want = [encode(to, z) for z in v.reshape(-1)] if 0 not in dims else []
    large = any(n % p == 0 for n in dims if n for p in (31, 67, 97))
    out.case((1e-11 if wide else 3e-3) * (10 if large else 1), body, [(t, x)], [(to, want)])


# --- batch normalization -------------------------------------------------------------------------------------------

def norm():
    out = Out("norm")
    for t in ("f32", "f64", "f16", "bf16"):
        for dims, feature in (((4, 3), 1), ((2, 3, 2, 5), 1), ((6,), 0), ((3, 7), 0), ((2, 2, 3, 3), 3), ((50, 2), 1), ((0, 3), 1),
                              ((3, 0), 1)):
            for shift in (0, 3):
                normalize(out, t, dims, feature, shift)
    out.close()


def normalize(out, t, dims, feature, shift):
    x, g = (numbers(t, dims) + shift).astype(NUMPY[t]), numbers(t, dims)
    f = dims[feature]
    scale, offset, mean = numbers(t, (f,)), numbers(t, (f,)), numbers(t, (f,), 0.5)
    variance = abs(numbers(t, (f,))) + NUMPY[t](0.25)
    variance = variance.astype(NUMPY[t])
    epsilon = 0.0009765625
    others = [np.array([mp(t, v) for v in np.moveaxis(a, feature, 0)[k].reshape(-1)], dtype=object) for a in (x, g) for k in range(f)]
    xs, gs = others[:f], others[f:]
    n = int(np.prod(dims)) // f if f else 0
    y, gx = np.empty((f, n), dtype=object), np.empty((f, n), dtype=object)
    means, variances, y2, gscale, goffset = [], [], np.empty((f, n), dtype=object), [], []
    for k in range(f):
        s, o, m, v = mp(t, scale[k]), mp(t, offset[k]), mp(t, mean[k]), mp(t, variance[k])
        mu = sum(xs[k], mpmath.mpf(0)) / n if n else mpmath.nan
        var = sum(((z - mu) ** 2 for z in xs[k]), mpmath.mpf(0)) / n if n else mpmath.nan
        means.append(mu)
        variances.append(var)
        root = 1 / mpmath.sqrt(v + epsilon)
        sg, sgd = sum(gs[k], mpmath.mpf(0)), sum((a * (b - m) for a, b in zip(gs[k], xs[k])), mpmath.mpf(0))
        gscale.append(sgd * root)
        goffset.append(sg)
        for i in range(n):
            y[k, i] = (xs[k][i] - mu) / mpmath.sqrt(var + epsilon) * s + o
            y2[k, i] = (xs[k][i] - m) * root * s + o
            gx[k, i] = s * root / n * (n * gs[k][i] - sg - (xs[k][i] - m) * sgd / (v + epsilon))
    moved = [dims[feature]] + [d for i, d in enumerate(dims) if i != feature]
    back = lambda a: [encode(t, v) for v in np.moveaxis(a.reshape(moved), 0, feature).reshape(-1)]
    fs, xsh, attrs = shape(t, (f,)), shape(t, dims), f"epsilon={epsilon}, feature_index={feature}"
    row = lambda a: [encode(t, v) for v in a]
    # XLA rounds every step to f16 and bf16, which is less than what is asked for here.
    xla = None if t in ("f32", "f64") else False
    width = {"f32": 2e-3, "f64": 1e-11, "f16": 5e-2, "bf16": 5e-2}[t]
    out.case(width, f"x = {xsh} parameter(0) s = {fs} parameter(1) o = {fs} parameter(2) ROOT r = ({xsh}, {fs}, {fs}) "
             f"batch-norm-training(x, s, o), {attrs}", [(t, x), (t, scale), (t, offset)],
             [(t, back(y)), (t, row(means)), (t, row(variances))], xla)
    out.case(width, f"x = {xsh} parameter(0) s = {fs} parameter(1) o = {fs} parameter(2) m = {fs} parameter(3) v = {fs} parameter(4) "
             f"ROOT r = {xsh} batch-norm-inference(x, s, o, m, v), {attrs}",
             [(t, x), (t, scale), (t, offset), (t, mean), (t, variance)], [(t, back(y2))], xla)
    out.case(width, f"x = {xsh} parameter(0) s = {fs} parameter(1) m = {fs} parameter(2) v = {fs} parameter(3) g = {xsh} parameter(4) "
             f"ROOT r = ({xsh}, {fs}, {fs}) batch-norm-grad(x, s, m, v, g), {attrs}",
             [(t, x), (t, scale), (t, mean), (t, variance), (t, g)], [(t, back(gx)), (t, row(gscale)), (t, row(goffset))], xla)


def linalg():
    out = Out("linalg")
    cholesky(out)
    solve(out)
    out.close()


if __name__ == "__main__":
    rng()
    linalg()
    fft()
    norm()

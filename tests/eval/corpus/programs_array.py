"""JAX programs that the corpus is dumped from: array algorithms, random numbers, control flow, narrow types."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import ints, normal, register

C64, C128 = np.complex64, np.complex128


def cnormal(seed, *shape, dtype=C64):
    return (normal(seed, *shape) + 1j * normal(seed + 1, *shape)).astype(dtype)


# --- transforms, linear algebra -------------------------------------------------------------------------------------
@register('fft_all', 200)
def fft_all():
    def f(z, x):
        return (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), 12), jnp.fft.fft2(z),
                jnp.fft.fftshift(jnp.fft.rfft2(x)))

    return f, (cnormal(1, 3, 10), normal(3, 4, 12))


@register('fft_convolution_grad', 400)
def fft_convolution_grad():
    def f(x, k):
        n = 16
        y = jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(k, n), n)
        return jnp.sum(jnp.abs(y)**3)

    return jax.grad(f, (0, 1)), (normal(1, 9), normal(2, 8))


@register('linear_algebra', 2000, tpu=True)
def linear_algebra():
    def f(a, b):
        m = a @ a.T + 4 * jnp.eye(5, dtype=a.dtype)
        l = lax.linalg.cholesky(m)
        x = lax.linalg.triangular_solve(l, b, left_side=True, lower=True)
        y = lax.linalg.triangular_solve(l, b, left_side=True, lower=True, transpose_a=True)
        z = lax.linalg.triangular_solve(l, b.T, left_side=False, lower=True, unit_diagonal=True)
        return l, x, y, z, 2 * jnp.sum(jnp.log(jnp.diagonal(l)))

    return f, (normal(1, 5, 5), normal(2, 5, 3))


@register('cholesky_batched_grad', 4000, dtype='float64', x64=True, tpu=True)
def cholesky_batched_grad():
    def f(a):
        m = jnp.einsum('bij,bkj->bik', a, a) + 3 * jnp.eye(3)
        return jnp.sum(jnp.sin(jnp.linalg.cholesky(m)))

    return jax.grad(f), (normal(1, 2, 3, 3, dtype=np.float64),)


@register('complex_algebra', 200)
def complex_algebra():
    def f(a, b):
        c = jnp.linalg.matrix_power(a, 3) @ jnp.conj(b).T
        return c, jnp.exp(1j * a), jnp.abs(b), jnp.angle(a), jnp.sum(a * b.real), jnp.sqrt(b), a / b

    return f, (cnormal(1, 4, 4), cnormal(5, 4, 4))


@register('lapack_calls', text_only=True)
def lapack_calls():
    def f(a):
        q, r = jnp.linalg.qr(a)
        u, s, v = jnp.linalg.svd(a)
        return q, r, u, s, v, jnp.linalg.eigh(a @ a.T), jnp.linalg.solve(a @ a.T + jnp.eye(4), a)

    return f, (normal(1, 4, 4),)


@register('einsums', 60)
def einsums():
    def f(a, b, c, d):
        return (jnp.einsum('bij,bjk->bik', a, b), jnp.einsum('bij,bjk->kib', a, b), jnp.einsum('bij,cij->bc', a, a),
                jnp.einsum('ab,cd->acbd', c, d), jnp.einsum('ii->i', d), jnp.einsum('bij,bjk,kl->bil', a, b, c),
                lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST))

    return f, (normal(1, 2, 3, 4), normal(2, 2, 4, 5), normal(3, 5, 2), normal(4, 3, 3))


# --- order and indices ----------------------------------------------------------------------------------------------
@register('sorting', 2, tpu=True)
def sorting():
    def f(x, k, h):
        a = lax.sort((k, x), num_keys=2)
        return (jnp.sort(x), jnp.argsort(x, stable=True, descending=True), a, jnp.median(x, 1), jnp.sort(h, 0),
                lax.sort((k, x), num_keys=1, is_stable=True))

    x = normal(1, 3, 8)
    x[0, 1], x[0, 2], x[1, 3], x[1, 4] = 0.0, -0.0, np.inf, -np.inf
    return f, (x, ints(2, 0, 3, 3, 8), normal(3, 6, 2, dtype=jnp.bfloat16))


@register('top_k', 2, tpu=True)
def top_k():
    def f(x, i):
        return (lax.top_k(x, 3), lax.top_k(i, 2), jnp.argmax(x, 1), jnp.argmin(i), jnp.searchsorted(jnp.sort(i[0]), i[1]),
                lax.approx_max_k(x, 2))

    return f, (normal(1, 4, 9), ints(2, 0, 6, 2, 7))


@register('gathers', 2)
def gathers():
    def f(x, i, j):
        return (x[i], x[:, j], x[i[:, None], j], x[..., ::-2], x.at[i, 1].get(mode='fill', fill_value=7.0),
                jnp.take_along_axis(x, jnp.tile(j[:2, None] % 2, 6), 0), lax.dynamic_slice(x, (i[0], j[1]), (2, 3)),
                jax.vmap(lambda r, k: r[k])(x[:3], i))

    return f, (normal(1, 5, 6), ints(2, -7, 7, 3), ints(3, 0, 6, 4))


@register('scatters', 30)
def scatters():
    def f(x, i, u):
        n = x.shape[0]
        return (x.at[i].add(u), x.at[i].max(u), x.at[i, 0].min(u[:, 1]), x.at[:, 2].set(3.0), x.at[i].multiply(u),
                x.at[i % n].set(u[0]), jax.vmap(lambda r, k, v: r.at[k].add(v))(x[:4], i, u[:, 0]),
                lax.dynamic_update_slice(x, u[:2, :2], (i[1], i[2])))

    return f, (normal(1, 6, 3), np.array([1, 4, 9, 1], np.int32), normal(3, 4, 3))


@register('cumulative', 60)
def cumulative():
    def f(x, i):
        pair = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
        return (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(i, 0), jnp.cumsum(i, 0)[::-1],
                lax.associative_scan(pair, (x, x), axis=1), lax.cumlogsumexp(x, 1), lax.cumsum(x, 1, reverse=True))

    return f, (normal(1, 3, 9), ints(2, -50, 50, 11))


@register('reductions', 80)
def reductions():
    def f(x, i, p):
        return (x.sum(), x.prod(1), x.max(0), jnp.argmax(x, 1), jax.nn.logsumexp(x, 1), jnp.all(p), jnp.any(p, 0),
                jnp.bitwise_xor.reduce(i), i.sum(), jnp.var(x, 0, ddof=1), jnp.linalg.norm(x), jnp.count_nonzero(p, 1))

    return f, (normal(1, 4, 6), ints(2, 0, 1 << 20, 10), ints(3, 0, 2, 4, 5).astype(bool))


@register('bit_tricks')
def bit_tricks():
    def f(a, b, s):
        h = a
        for c in (0x85EBCA6B, 0xC2B2AE35):
            h = (h ^ (h >> np.uint32(16))) * np.uint32(c)
        return (h, lax.population_count(a), lax.clz(b), a << (b & 31), lax.shift_right_arithmetic(s, np.int32(3)), s // 3, s % 5,
                lax.bitcast_convert_type(a, np.float32), lax.bitcast_convert_type(s, np.uint8), jnp.right_shift(s, 1),
                ~s, jnp.bitwise_or(a, b))

    r = np.random.RandomState(1)
    u = lambda: r.randint(0, 1 << 32, 9, np.uint64).astype(np.uint32)
    return f, (u(), u(), ints(4, -1000, 1000, 9))


# --- random numbers -------------------------------------------------------------------------------------------------
@register('threefry_bits')
def threefry_bits():
    def f(seed):
        k = jax.random.split(jax.random.key(seed), 2)
        return jax.random.key_data(k), jax.random.bits(k[0], (7,)), jax.random.randint(k[1], (4,), -5, 9)

    return f, (np.int32(42),)


@register('threefry_normal', 300)
def threefry_normal():
    f = lambda seed: jax.random.normal(jax.random.key(seed), (2, 3))
    return f, (np.int32(7),)


@register('permutation', tpu=True)
def permutation():
    f = lambda seed: jax.random.permutation(jax.random.wrap_key_data(seed, impl='rbg'), 8)
    return f, (np.array([1, 2, 3, 4], np.uint32),)


@register('rng_bit_generator', x64=True, tpu=True)
def rng_bit_generator():
    def f(k4, k2):
        return (lax.rng_bit_generator(k4, (3, 5), np.uint32, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
                lax.rng_bit_generator(k4, (7,), np.uint64, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
                lax.rng_bit_generator(k2, (9,), np.uint32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY))

    return f, (np.array([1, 2, 3, 4], np.uint32), np.array([5, 6, 7, 8], np.uint32)[:4])


@register('random_gamma', text_only=True, traced_only=True, tpu=True)
def random_gamma():
    f = lambda s: jax.random.gamma(jax.random.key(s), np.float32(2.5), (3,))
    return f, (np.int32(1),)


# --- control flow ---------------------------------------------------------------------------------------------------
@register('conditionals', 20)
def conditionals():
    def f(i, p, x):
        a = lax.cond(p, jnp.sin, lambda v: v * 2, x)
        b = lax.switch(i, [lambda v: v + 1, lambda v: -v, jnp.square], x)
        c = lax.cond(x[0] > 0, lambda v: (v[1:], jnp.sum(v)), lambda v: (v[:-1], jnp.max(v)), x)
        return a, b, c

    return f, (np.int32(5), np.bool_(True), normal(1, 4))


@register('while_loops', 40)
def while_loops():
    def f(n, x):
        collatz = lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2, 3 * s[0] + 1, s[0] // 2), s[1] + 1),
                                 (n, jnp.int32(0)))
        newton = lax.fori_loop(0, 5, lambda i, v: 0.5 * (v + x / v), jnp.ones_like(x))
        return collatz, newton, lax.map(lambda v: v * lax.fori_loop(0, 3, lambda i, a: a + i, 0), x)

    return f, (np.int32(27), np.array([2.0, 9.0, 0.25], np.float32))


@register('mandelbrot')
def mandelbrot():
    def f(c):
        def body(s):
            z, n, i = s
            inside = z.real * z.real + z.imag * z.imag <= 4
            return jnp.where(inside, z * z + c, z), n + inside, i + 1

        return lax.while_loop(lambda s: s[2] < 12, body, (c * 0, jnp.zeros(c.shape, np.int32), 0))[1]

    return f, (np.array([0.1 + 0.1j, -1.0, 0.5 + 0.5j, -0.75 + 0.2j, 2.0, -0.2 + 0.9j], C64),)


@register('viterbi')
def viterbi():
    def f(scores, trans):
        def step(s, e):
            m = s[:, None] + trans
            return jnp.max(m, 0) + e, jnp.argmax(m, 0)

        last, back = lax.scan(step, scores[0], scores[1:])
        state = jnp.argmax(last)
        _, path = lax.scan(lambda s, b: (b[s], s), state, back, reverse=True)
        return jnp.max(last), path

    return f, (ints(1, -9, 9, 6, 4), ints(2, -5, 5, 4, 4))


# --- narrow and mixed types -----------------------------------------------------------------------------------------
@register('quantised_dense', x64=True)
def quantised_dense():
    def f(x, w, zero):
        acc = lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=np.int32)
        acc = acc - jnp.sum(x.astype(np.int32), 1, keepdims=True) * zero
        y = (acc.astype(np.int64) * 1518500250 + (1 << 36)) >> 37
        return jnp.clip(y + zero, -128, 127).astype(np.int8)

    return f, (ints(1, -128, 128, 4, 16, dtype=np.int8), ints(2, -128, 128, 16, 5, dtype=np.int8), np.int32(3))


@register('int4_weights', 30)
def int4_weights():
    def f(x, w, s):
        return x @ (w.astype(np.float32) * s), w + w, (w.astype(np.int32) * 3).astype(jnp.uint4)

    return f, (normal(1, 3, 8), ints(2, -8, 8, 8, 5).astype(jnp.int4), normal(3, 5))


@register('float8_scaling', 10)
def float8_scaling():
    def f(x):
        scale = jnp.max(jnp.abs(x)) / 448
        q = (x / scale).astype(jnp.float8_e4m3fn)
        e5 = x.astype(jnp.float8_e5m2)
        return q, e5, q.astype(np.float32) * scale, e5.astype(jnp.bfloat16), (q.astype(np.float16) + 1).astype(
            jnp.float8_e4m3b11fnuz), e5.astype(np.float16) * 2

    return f, (normal(1, 4, 5, scale=30.0),)


@register('mixed_precision', 12, dtype='bfloat16')
def mixed_precision():
    def f(a, b, c):
        d = lax.dot(a, b, preferred_element_type=np.float32)
        return d.astype(jnp.bfloat16), (a + jnp.bfloat16(1)).astype(np.float16), c.astype(jnp.bfloat16), a.astype(np.int8)

    return f, (normal(1, 4, 8, dtype=jnp.bfloat16), normal(2, 8, 3, dtype=jnp.bfloat16), normal(3, 5, dtype=np.float16))


@register('double_precision', 100, dtype='float64', x64=True)
def double_precision():
    def f(x, z):
        return jnp.sin(x) * jnp.exp(-x), jnp.cumsum(x), jnp.dot(x, x), jnp.log(z), jnp.floor(x * 10).astype(np.int64)

    return f, (normal(1, 8, dtype=np.float64), cnormal(2, 3, dtype=C128))


@register('special_functions', text_only=True, traced_only=True)
def special_functions():
    s = jax.scipy.special
    f = lambda x, y: (s.gammaln(x), s.digamma(x), s.erfinv(y), s.i0e(x), s.ndtri(y))
    return f, (np.array([0.5, 1.5, 4.0], np.float32), np.array([0.1, 0.5, 0.9], np.float32))


@register('activations', 40)
def activations():
    nn = jax.nn
    f = lambda x: (nn.gelu(x, approximate=False), nn.silu(x), nn.softplus(x), nn.elu(x), nn.hard_tanh(x), nn.mish(x),
                   jnp.arctan(x), jnp.cbrt(x), jnp.expm1(x), jnp.hypot(x, x + 1), jnp.tan(x), jnp.sinh(x), jnp.arctan2(x, x + 3),
                   lax.erf(x), lax.reduce_precision(x, 5, 10), jnp.round(x), jnp.sign(x), nn.celu(x))
    return f, (normal(1, 11),)


@register('heat_equation', 60)
def heat_equation():
    def f(u):
        def step(i, u):
            p = jnp.pad(u, 1, mode='edge')
            return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

        return lax.fori_loop(0, 4, step, u), jnp.pad(u, ((1, 2), (0, 3)), mode='reflect'), jnp.roll(u, (1, -2), (0, 1))

    return f, (normal(1, 6, 5),)


@register('image_resize', 60)
def image_resize():
    f = lambda x: (jax.image.resize(x, (7, 3, 2), 'bilinear'), jax.image.resize(x, (2, 8, 2), 'nearest'))
    return f, (normal(1, 4, 5, 2),)


@register('callback', text_only=True)
def callback():
    f = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1
    return f, (normal(1, 4),)


@register('empty_arrays')
def empty_arrays():
    def f(x, y):
        return x + 1, jnp.concatenate([x, y], 1), y @ x.T, jnp.sum(x, 0), jnp.sort(x, 0), jnp.zeros((0, 3)).sum()

    return f, (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))

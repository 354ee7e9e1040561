"""Programs as people write them in JAX: compiled whole, run on the host and on the simulator, the same bits, right by the evaluator,
beside what JAX itself computes. What is refused is refused by name, and the list of that can only become shorter.
"""
import unittest

import kiln
import numpy as np

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    jax = None

RANDOM = np.random.default_rng(0)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def transformer_block(x, wq, wk, wv, wo, w1, w2, gain):
    h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain
    q, k, v = h @ wq, h @ wk, h @ wv
    seen = jnp.tril(jnp.ones((x.shape[0],) * 2, bool))
    x = x + jax.nn.softmax(jnp.where(seen, q @ k.T / 8, -1e9), axis=-1) @ v @ wo
    return x + jax.nn.gelu(x @ w1) @ w2


def mlp_step(w1, w2, x, y):
    loss, (g1, g2) = jax.value_and_grad(lambda p: ((jnp.tanh(x @ p[0]) @ p[1] - y) ** 2).mean())((w1, w2))
    return loss, w1 - 0.1 * g1, w2 - 0.1 * g2


def convolve(x, w):
    return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def convolution_step(x, w):
    def loss(w):
        pooled = lax.reduce_window(convolve(x, w), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (pooled**2).sum()

    return w - 0.01 * jax.grad(loss)(w)


def lstm(x, wi, wh):
    def cell(state, t):
        h, c = state
        i, f, g, o = jnp.split(t @ wi + h @ wh, 4, axis=-1)
        c = jax.nn.sigmoid(i) * jnp.tanh(g) + jax.nn.sigmoid(f) * c
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], wh.shape[0]))
    return lax.scan(cell, (zero, zero), x)[1]


def k_means(x, centers):
    nearest = jnp.argmin(((x[:, None] - centers[None]) ** 2).sum(-1), 1)
    n = centers.shape[0]
    counts = jax.ops.segment_sum(jnp.ones(x.shape[0]), nearest, n)
    return nearest, jax.ops.segment_sum(x, nearest, n) / jnp.maximum(counts, 1)[:, None]


def stencil(u, rounds):
    def step(s):
        i, u = s
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return i + 1, u.at[1:-1, 1:-1].add(0.1 * around)

    return lax.while_loop(lambda s: s[0] < rounds, step, (0, u))[1]


def decode(cache, key, i, query):
    cache = lax.dynamic_update_slice(cache, key[None], (i, 0))
    scores = jnp.where(jnp.arange(cache.shape[0]) <= i, cache @ query, -1e9)
    return cache, jax.nn.softmax(scores) @ cache


def dropout(key, x, implementation):
    key = jax.random.wrap_key_data(key, impl=implementation)
    kept, noise = jax.random.split(key)
    return jnp.where(jax.random.bernoulli(kept, 0.9, x.shape), x / 0.9, 0) + 0.1 * jax.random.normal(noise, x.shape)


def batch_norm_step(x, w, gain, bias, mean, variance):
    """A step of training through a layer, and the running statistics."""

    def loss(p):
        h = x @ p[0]
        m, v = h.mean(0), h.var(0)
        return (jax.nn.relu((h - m) * lax.rsqrt(v + 1e-5) * p[1] + p[2]) ** 2).mean(), (m, v)

    gradients, (m, v) = jax.grad(loss, has_aux=True)((w, gain, bias))
    new = [p - 0.1 * g for p, g in zip((w, gain, bias), gradients)]
    return *new, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v


def experts(x, router, up, down):
    """Each token goes to the best of its experts, whose matrices are multiplied as groups of rows."""
    chosen = jnp.argmax(x @ router, -1)
    order = jnp.argsort(chosen)
    sizes = jnp.bincount(chosen, length=router.shape[1]).astype(jnp.int32)
    h = jax.nn.silu(lax.ragged_dot(x[order], up, sizes))
    return jnp.zeros_like(x).at[order].set(lax.ragged_dot(h, down, sizes))


def experts_step(x, router, up, down):
    return jax.grad(lambda p: (experts(x, router, *p) ** 2).mean())((up, down))


def factor_and_solve(a, b):
    """Least squares by the normal equations; of the second of two matrices there is no factor."""
    m = a.T @ a + jnp.eye(a.shape[1])
    l = jnp.linalg.cholesky(m)
    lost = jnp.linalg.cholesky(jnp.stack([m, -m]), upper=True)
    x = jax.scipy.linalg.cho_solve((l, True), a.T @ b)
    return x, jnp.isnan(lost), jax.scipy.linalg.solve_triangular(l, b[: a.shape[1]], trans="T", lower=True)


def escapes(re, im):
    """Rounds until a number is large, of each of a plane's; what a loop of scalars becomes when it is mapped."""

    def one(x, y):
        c = lax.complex(x, y)
        go_on = lambda s: (s[0] < 40) & (jnp.real(s[1]) ** 2 + jnp.imag(s[1]) ** 2 < 4)
        return lax.while_loop(go_on, lambda s: (s[0] + 1, s[1] * s[1] + c), (0, c))[0]

    return jax.vmap(jax.vmap(one, (0, None)), (None, 0))(re, im)


def conjugate_gradients(a, b):
    m = a.T @ a + jnp.eye(a.shape[1])
    return jax.vmap(lambda b: jax.scipy.sparse.linalg.cg(lambda x: m @ x, b, maxiter=12)[0])(b)


def programs():
    width = 32
    moe = [floats(96, 16), floats(16, 4), floats(4, 16, 24) * 0.2, floats(4, 24, 16) * 0.2]
    square = [floats(width, width) * 0.1 for _ in range(4)]
    return {
        "transformer block": (transformer_block, floats(16, width), *square, floats(width, 64) * 0.1,
                              floats(64, width) * 0.1, floats(width)),
        "mlp step": (mlp_step, floats(8, 16), floats(16, 4), floats(32, 8), floats(32, 4)),
        "convolution": (lambda x, w: convolve(x, w).mean((1, 2)), floats(2, 8, 8, 3), floats(3, 3, 3, 5)),
        "convolution step": (convolution_step, floats(2, 8, 8, 3), floats(3, 3, 3, 5)),
        "lstm": (lstm, floats(10, 4, 6), floats(6, 32), floats(8, 32)),
        "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), lax.top_k(x, 3)), floats(5, 40)),
        "embedding": (lambda t, i: t[i].sum(1), floats(50, 8), RANDOM.integers(0, 50, (4, 6)).astype(np.int32)),
        "k-means": (k_means, floats(60, 3), floats(4, 3)),
        "stencil": (stencil, floats(16, 16), np.int32(20)),
        "decode": (decode, floats(32, 8), floats(8), np.int32(5), floats(8)),
        "cumulative sum": (lambda x: jnp.cumsum(x, 1), floats(6, 300)),
        "random numbers": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (16,)), np.array([1, 2], np.uint32)),
        "batch norm": (lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), floats(64, 16)),
        "logsumexp's slope": (jax.grad(lambda x: jax.scipy.special.logsumexp(x, axis=-1).sum()), floats(7, 33)),
        "fft filter": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 0.5), floats(6, 64)),
        "einsum": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), floats(3, 5, 7), floats(3, 4, 7)),
        "dropout, threefry": (lambda k, x: dropout(k, x, "threefry2x32"), np.array([1, 2], np.uint32), floats(33, 7)),
        "dropout, rbg": (lambda k, x: dropout(k, x, "rbg"), np.array([1, 2, 3, 4], np.uint32), floats(33, 7)),
        "batch norm step": (batch_norm_step, floats(64, 16), floats(16, 8), floats(8), floats(8), floats(8),
                            floats(8) ** 2),
        "experts": (experts, *moe),
        "experts step": (experts_step, *moe),
        "branch": (lambda x, p: lax.cond(p, jnp.sin, lambda x: x @ x, x), floats(6, 6), np.bool_(True)),
        "interpolation": (jnp.interp, floats(20), np.sort(floats(9)), floats(9)),
        "factor and solve": (factor_and_solve, floats(20, 7), floats(20, 3)),
        "loops, mapped": (escapes, np.linspace(-2, 0.5, 11).astype(np.float32), np.linspace(-1, 1, 7).astype(np.float32)),
        "rounds of rows, mapped": (jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, x: jnp.sin(x) + i, x)),
                                   np.array([3, 0, 5, 1], np.int32), floats(4, 9)),
        "conjugate gradients, mapped": (conjugate_gradients, floats(9, 7), floats(3, 7)),
        "linear systems": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), *jnp.linalg.slogdet(a)),
                           floats(3, 6, 6) + 4 * np.eye(6, dtype=np.float32), floats(3, 6, 2)),
        "least squares": (lambda a, b: (lambda q, r: jax.scipy.linalg.solve_triangular(r, q.T @ b))(*jnp.linalg.qr(a)),
                          floats(12, 5), floats(12, 2)),
        "tridiagonal systems": (lax.linalg.tridiagonal_solve, floats(2, 9), floats(2, 9) + 4, floats(2, 9), floats(2, 9, 3)),
        "pivoted": (lambda a: jax.scipy.linalg.qr(a, pivoting=True, mode="economic"), floats(6, 4)),
        "spectrum": (lambda a: jnp.linalg.eigvalsh(a @ a.swapaxes(1, 2)), floats(2, 5, 5)),
        "pseudoinverse": (lambda a, b: (jnp.linalg.pinv(a), jnp.linalg.norm(a, 2), jnp.linalg.matrix_rank(a),
                                        jnp.linalg.lstsq(a, b)[0]), floats(6, 4), floats(6, 2)),
        "statistics": (lambda x: (jnp.median(x, axis=1), jnp.var(x), jnp.percentile(x, 30)), floats(5, 33)),
    }  # fmt: skip


# Loops of small kernels, with what stands around them.
ONE_LAUNCH = {"lstm", "stencil"}


@unittest.skipUnless(jax, "jax is not installed")
class Models(unittest.TestCase):
    def test_programs(self):
        device = kiln.simulator(check=True)
        for name, (function, *arguments) in programs().items():
            with self.subTest(name):
                module = kiln.jax.lower(function, *arguments)
                found = kiln.compile(module)(*arguments)
                self.assertEqual(module.check(arguments, found), [])
                artifact = kiln.compile(module, device.target)
                if name in ONE_LAUNCH:
                    self.assertEqual(len(artifact.manifest.launches), 1)
                on_gpu = device.run(artifact, *arguments)
                for a, b, c in zip(found, on_gpu, jax.tree_util.tree_leaves(function(*arguments))):
                    self.assertEqual(np.asarray(b).tobytes(), a.tobytes())
                    np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)
                self.assertEqual(kiln.findings(), [])

    def test_optimized(self):
        for name, (function, *arguments) in programs().items():
            with self.subTest(name):
                module = kiln.jax.lower(function, *arguments, optimized=True)
                self.assertEqual(module.check(arguments, kiln.compile(module)(*arguments)), [])

    def test_refused(self):
        refused = {
            "lapack_sgees_ffi": (jax.scipy.linalg.schur, floats(8, 8)),
            "lapack_sgeev_ffi": (jnp.linalg.eigvals, floats(8, 8)),
        }
        for name, (function, *arguments) in refused.items():
            with self.subTest(name), self.assertRaisesRegex(kiln.UnsupportedError, name):
                kiln.compile(kiln.jax.lower(function, *arguments))

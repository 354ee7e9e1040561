"""JAX programs of whose dots and convolutions XLA makes calls of libraries for a GPU (dump_gpu.py)."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from programs import ints, normal, register

BF16 = jnp.bfloat16
ATTENTION = ['xla']  # or cudnn: which implementation is traced


def library(name, roundings, **how):
    return register(name, roundings, libraries=True, **how)


def conv(x, w, strides=(1, 1), padding='SAME', **how):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=('NHWC', 'HWIO', 'NHWC'), **how)


# --- products -------------------------------------------------------------------------------------------------------
@library('library_mlp', 40, dtype='bfloat16')
def library_mlp():
    def f(x, w, b, v, c):
        g = jax.nn.gelu(x @ w + b)
        r = jax.nn.relu(g @ v + c)
        h = r @ w + b
        return r, jax.nn.gelu(h), h

    return f, (normal(1, 6, 16, dtype=BF16, scale=0.5), normal(2, 16, 24, dtype=BF16, scale=0.25),
               normal(3, 24, dtype=BF16), normal(4, 24, 16, dtype=BF16, scale=0.2), normal(5, 16, dtype=BF16))


@library('library_attention', 60)
def library_attention():
    def f(q, k, v):
        scores = jnp.einsum('bqhd,bkhd->bhqk', q, k) * 0.25
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        return jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)

    return f, tuple(normal(i, 2, 6, 3, 16, scale=0.5) for i in range(3))


def attend(q, k, v, bias=None, **how):
    return jax.nn.dot_product_attention(q, k, v, bias, implementation=ATTENTION[0], **how)


@library('library_flash', 60, dtype='bfloat16')
def library_flash():
    def f(q, k, v, b):
        return attend(q, k, v, b), attend(q, k[:, :6], v[:, :6], is_causal=True, scale=0.3, local_window_size=(2, 0))

    return f, (normal(1, 2, 6, 2, 8, dtype=BF16), normal(2, 2, 10, 2, 8, dtype=BF16), normal(3, 2, 10, 2, 8, dtype=BF16),
               normal(4, 1, 2, 6, 10, dtype=BF16))


@library('library_flash_grads', 120, dtype='bfloat16')
def library_flash_grads():
    def loss(q, k, v, b):
        o = attend(q, k, v, b).astype(np.float32)
        p = attend(q, k[:, :6], v[:, :6], is_causal=True).astype(np.float32)
        return jnp.sum(o * o) + jnp.sum(p * p)

    return jax.grad(loss, argnums=(0, 1, 2, 3)), (normal(1, 1, 6, 2, 8, dtype=BF16), normal(2, 1, 10, 2, 8, dtype=BF16),
                                                  normal(3, 1, 10, 2, 8, dtype=BF16), normal(4, 1, 2, 6, 10, dtype=BF16))


@library('library_numbers', 60, dtype='float32', x64=True)
def library_numbers():
    def f(x, y, z, a, b, c):
        return (2 - 1.5j) * (x @ y) + 0.5 * z, a @ b + c, jnp.tanh(a) @ (2 * b)

    def pairs(seed, m, n):
        return (normal(seed, m, n) + 1j * normal(seed + 20, m, n)).astype(np.complex64)

    return f, (pairs(1, 8, 16), pairs(2, 16, 12), pairs(3, 8, 12), normal(4, 8, 16, dtype=np.float64),
               normal(5, 16, 12, dtype=np.float64), normal(6, 12, dtype=np.float64))


@library('library_integers', 0)
def library_integers():
    def f(a, b, x, w):
        p = lax.dot(a, b, preferred_element_type=np.int32)
        s = conv(x, w, preferred_element_type=np.int32)
        return p, jnp.clip(s, -128, 127).astype(np.int8)

    return f, (ints(1, -128, 128, 8, 16, dtype=np.int8), ints(2, -128, 128, 16, 12, dtype=np.int8),
               ints(3, -9, 9, 2, 5, 4, 4, dtype=np.int8), ints(4, -9, 9, 3, 3, 4, 8, dtype=np.int8))


@library('library_f8', 30)
def library_f8():
    f8 = jnp.float8_e4m3fn

    def f(a, b, p, q, s):
        y = lax.dot(a.astype(np.float32) * p, b.astype(np.float32) * q)
        return (y / s).clip(-448, 448).astype(f8), jnp.max(jnp.abs(y))

    return f, (normal(1, 16, 32).astype(ml_dtypes.float8_e4m3fn), normal(2, 32, 16).astype(ml_dtypes.float8_e4m3fn),
               np.float32(0.5), np.float32(1.25), np.float32(0.03125))


# --- convolutions ---------------------------------------------------------------------------------------------------
@library('library_convnet', 60)
def library_convnet():
    def f(x, w, b, v, c, u):
        h = jax.nn.relu(conv(x, w) + b)
        g = jax.nn.relu(conv(h, v) + c + h)
        return conv(g, u, (2, 2), ((0, 1), (1, 0)), feature_group_count=2) * 0.5, jax.nn.elu(conv(g, v) + c)

    return f, (normal(1, 2, 6, 5, 4), normal(2, 3, 3, 4, 8, scale=0.2), normal(3, 8), normal(4, 3, 3, 8, 8, scale=0.1), normal(5, 8),
               normal(6, 3, 2, 4, 8, scale=0.2))


@library('library_f8_convs', 40)
def library_f8_convs():
    f8 = ml_dtypes.float8_e4m3fn

    def f(x, w, s, p, q, k):
        y = conv(x.astype(np.float32) * p, w.astype(np.float32) / q)
        g = jax.nn.relu(conv(x.astype(np.float32), w.astype(np.float32)) + s)
        return (y / k).clip(-448, 448).astype(f8), jnp.max(jnp.abs(y)), g

    return f, (normal(1, 1, 4, 3, 16).astype(f8), normal(2, 3, 3, 16, 16).astype(f8), normal(3, 1, 4, 3, 16), np.float32(0.5),
               np.float32(4), np.float32(0.0625))


@library('library_conv_grads', 120)
def library_conv_grads():
    def loss(x, w, v, u):
        h = conv(x, w, (2, 1), ((1, 2), (0, 1)), feature_group_count=2)
        g = conv(h, v, rhs_dilation=(1, 2))
        line = lax.conv_general_dilated(g.sum(1), u, (2, ), ((1, 0), ), dimension_numbers=('NWC', 'WIO', 'NWC'))
        return jnp.sum(line * line)

    return jax.grad(loss, argnums=(0, 1, 2, 3)), (normal(1, 2, 6, 5, 4), normal(2, 3, 2, 2, 8, scale=0.3),
                                                  normal(3, 2, 3, 8, 6, scale=0.2), normal(4, 3, 6, 4, scale=0.3))


# --- others ---------------------------------------------------------------------------------------------------------
@library('library_solve', 40)
def library_solve():
    def f(a, b):
        lower = jnp.tril(a) + 3 * jnp.eye(4)
        x = lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)
        y = lax.linalg.triangular_solve(lower, x.swapaxes(1, 2), lower=True, transpose_a=True, unit_diagonal=True)
        return x, y

    return f, (normal(1, 2, 4, 4, scale=0.5), normal(2, 2, 4, 3))

"""JAX programs that the corpus is dumped from: models and their training steps.

Each function returns (callable, arguments). `register` says how many roundings stand between the inputs and a result
along the longest path; dump.py turns that number into the bound of the comparison."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = {}


def register(name, roundings=0, **how):
    def wrap(make):
        PROGRAMS[name] = dict(make=make, roundings=roundings, **how)
        return make

    return wrap


def normal(seed, *shape, dtype=np.float32, scale=1.0):
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(dtype)


def ints(seed, lo, hi, *shape, dtype=np.int32):
    return np.random.RandomState(seed).randint(lo, hi, shape).astype(dtype)


# --- dense networks -------------------------------------------------------------------------------------------------
def mlp_params(sizes, dtype=np.float32):
    return [(normal(i, m, n, dtype=dtype, scale=m**-0.5), normal(i + 50, n, dtype=dtype, scale=0.1))
            for i, (m, n) in enumerate(zip(sizes, sizes[1:]))]


def mlp_loss(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    logp = jax.nn.log_softmax(x @ w + b)
    return -jnp.mean(jnp.take_along_axis(logp, y[:, None], 1))


@register('mlp_forward', 64)
def mlp_forward():
    params = mlp_params([8, 16, 4])

    def f(params, x):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    return f, (params, normal(7, 5, 8))


@register('mlp_sgd_step', 200, donate=(0,))
def mlp_sgd_step():
    def step(params, x, y):
        loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    return step, (mlp_params([8, 16, 5]), normal(7, 6, 8), ints(8, 0, 5, 6))


@register('mlp_adam_step', 400)
def mlp_adam_step():
    params = mlp_params([6, 12, 3])
    zeros = jax.tree.map(np.zeros_like, params)

    def step(params, mu, nu, count, x, y):
        loss, g = jax.value_and_grad(mlp_loss)(params, x, y)
        count = count + 1
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, g)
        nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, nu, g)
        t = count.astype(np.float32)

        def update(p, m, v):
            return p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-2)

        return jax.tree.map(update, params, mu, nu), mu, nu, count, loss

    return step, (params, zeros, zeros, np.int32(0), normal(9, 4, 6), ints(10, 0, 3, 4))


@register('mlp_bf16', 24, dtype='bfloat16')
def mlp_bf16():
    params = mlp_params([8, 16, 4], dtype=jnp.bfloat16)

    def f(params, x):
        for w, b in params:
            x = lax.dot(x, w, preferred_element_type=np.float32).astype(jnp.bfloat16) + b
            x = jax.nn.gelu(x)
        return x

    return f, (params, normal(7, 5, 8, dtype=jnp.bfloat16))


@register('mlp_remat', 250)
def mlp_remat():
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable)
    def block(x, w):
        return jnp.sin(x @ w)

    def loss(ws, x):
        for w in ws:
            x = block(x, w)
        return jnp.sum(x * x)

    return jax.grad(loss), ([normal(i, 6, 6, scale=0.4) for i in range(3)], normal(5, 4, 6))


# --- convolutions ---------------------------------------------------------------------------------------------------
@register('convnet_step', 600)
def convnet_step():
    params = dict(c1=normal(1, 3, 3, 1, 4, scale=0.3), c2=normal(2, 3, 3, 4, 6, scale=0.2),
                  w=normal(3, 24, 3, scale=0.2), b=normal(4, 3))

    def loss(p, x, y):
        dims = ('NHWC', 'HWIO', 'NHWC')
        x = jax.nn.relu(lax.conv_general_dilated(x, p['c1'], (1, 1), 'SAME', dimension_numbers=dims))
        x = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')
        x = jax.nn.relu(lax.conv_general_dilated(x, p['c2'], (2, 2), 'SAME', dimension_numbers=dims))
        logits = x.reshape(x.shape[0], -1) @ p['w'] + p['b']
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, -1))

    return jax.value_and_grad(loss), (params, normal(5, 2, 8, 8, 1), np.eye(3, dtype=np.float32)[:2])


@register('conv_kinds', 100)
def conv_kinds():
    def f(x, k, dw, t, c1):
        dims = ('NCHW', 'OIHW', 'NCHW')
        a = lax.conv_general_dilated(x, k, (1, 2), ((1, 0), (2, 1)), rhs_dilation=(2, 1), dimension_numbers=dims)
        b = lax.conv_general_dilated(x, dw, (1, 1), 'SAME', feature_group_count=4, dimension_numbers=dims)
        c = lax.conv_transpose(x, t, (2, 2), 'SAME', dimension_numbers=dims)
        d = lax.conv_general_dilated(x, k, (1, 1), ((-1, 2), (0, -1)), lhs_dilation=(2, 3), dimension_numbers=dims)
        e = lax.conv_general_dilated(c1, k[:3, :, :, 0], (1,), 'VALID', batch_group_count=3,
                                     dimension_numbers=('NCH', 'OIH', 'NCH'))
        return a, b, c, d, e

    return f, (normal(1, 2, 4, 6, 5), normal(2, 6, 4, 3, 2), normal(3, 8, 1, 3, 3), normal(4, 3, 4, 2, 2),
               normal(5, 3, 4, 7))


@register('conv3d_grad', 300)
def conv3d_grad():
    def f(x, k):
        y = lax.conv_general_dilated(x, k, (1, 2, 1), 'SAME', dimension_numbers=('NDHWC', 'DHWIO', 'NDHWC'))
        return jnp.sum(y * jnp.cos(y))

    return jax.grad(f, (0, 1)), (normal(1, 1, 3, 4, 4, 2), normal(2, 2, 3, 2, 2, 3))


@register('pools', 60)
def pools():
    def f(x):
        a = lax.reduce_window(x, np.float32(0), lax.add, (1, 3, 2, 1), (1, 2, 2, 1), 'SAME')
        b = lax.reduce_window(x, np.float32(np.inf), lax.min, (1, 2, 2, 1), (1, 1, 1, 1), 'VALID', window_dilation=(1, 2, 1, 1))
        c = lax.reduce_window(x, np.float32(1), lax.mul, (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0), (1, 1), (0, 1), (0, 0)),
                              base_dilation=(1, 2, 1, 1))
        g = jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')**2))
        h = jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME')**2))
        return a, b, c, g(x), h(x)

    return f, (normal(1, 2, 6, 7, 2),)


@register('batch_norm_resnet', 900)
def batch_norm_resnet():
    params = dict(k=normal(1, 3, 3, 3, 3, scale=0.3), gamma=np.ones(3, np.float32), beta=normal(2, 3))

    def block(p, x):
        y = lax.conv_general_dilated(x, p['k'], (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
        mean, var = jnp.mean(y, (0, 1, 2)), jnp.var(y, (0, 1, 2))
        return x + jax.nn.relu((y - mean) * lax.rsqrt(var + 1e-3) * p['gamma'] + p['beta'])

    def loss(p, x):
        return jnp.mean(jnp.square(block(p, x)))

    return jax.value_and_grad(loss), (params, normal(3, 2, 5, 5, 3))


# --- attention, recurrence ------------------------------------------------------------------------------------------
def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m)**2).mean(-1, keepdims=True) + 1e-5) * g + b


def block_params(seed, d, h, dtype=np.float32):
    w = lambda i, *s: normal(seed * 100 + i, *s, dtype=dtype, scale=s[0]**-0.5)
    ones, zeros = np.ones(d, dtype), np.zeros(d, dtype)
    return dict(qkv=w(0, d, 3 * d), o=w(1, d, d), up=w(2, d, h), down=w(3, h, d), g1=ones, b1=zeros, g2=ones, b2=zeros)


def transformer_block(p, x, heads=2):
    n, t, d = x.shape
    q, k, v = jnp.split(layer_norm(x, p['g1'], p['b1']) @ p['qkv'], 3, -1)
    split = lambda a: a.reshape(n, t, heads, d // heads)
    s = jnp.einsum('nqhd,nkhd->nhqk', split(q), split(k)) * jnp.asarray((d // heads)**-0.5, x.dtype)
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, jnp.asarray(-1e9, x.dtype))
    a = jnp.einsum('nhqk,nkhd->nqhd', jax.nn.softmax(s), split(v)).reshape(n, t, d)
    x = x + a @ p['o']
    return x + jax.nn.gelu(layer_norm(x, p['g2'], p['b2']) @ p['up']) @ p['down']


@register('transformer_forward', 400)
def transformer_forward():
    return transformer_block, (block_params(1, 8, 16), normal(2, 2, 5, 8))


@register('transformer_backward', 4000)
def transformer_backward():
    f = lambda p, x: jnp.sum(transformer_block(p, x)**2)
    return jax.grad(f), (block_params(1, 8, 16), normal(2, 2, 4, 8))


@register('transformer_bf16', 60, dtype='bfloat16')
def transformer_bf16():
    return transformer_block, (block_params(1, 8, 16, jnp.bfloat16), normal(2, 2, 5, 8, dtype=jnp.bfloat16))


def language_model(layers):
    d, vocab = 16, 40
    params = dict(embed=normal(1, vocab, d), blocks=[block_params(i + 2, d, 32) for i in range(layers)])

    def loss(p, tokens):
        x = p['embed'][tokens]
        for b in p['blocks']:
            x = transformer_block(b, x, 4)
        logp = jax.nn.log_softmax(x @ p['embed'].T)[:, :-1]
        return -jnp.mean(jnp.take_along_axis(logp, tokens[:, 1:, None], -1))

    def step(p, tokens):
        l, g = jax.value_and_grad(loss)(p, tokens)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, g), l

    return step, (params, ints(3, 0, vocab, 2, 8))


@register('language_model_step', large=True)
def language_model_step():
    return language_model(2)


@register('lstm_forward', 600)
def lstm_forward():
    def cell(p, carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ p['w'] + h @ p['u'] + p['b'], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def f(p, xs):
        zero = jnp.zeros((xs.shape[1], 5), xs.dtype)
        (h, c), hs = lax.scan(functools.partial(cell, p), (zero, zero), xs)
        return h, c, hs

    return f, (dict(w=normal(1, 3, 20, scale=0.5), u=normal(2, 5, 20, scale=0.4), b=normal(3, 20)), normal(4, 6, 2, 3))


@register('gru_backward', 3000)
def gru_backward():
    def loss(p, xs):
        def cell(h, x):
            z, r = jnp.split(jax.nn.sigmoid(x @ p['w'] + h @ p['u']), 2, -1)
            return z * h + (1 - z) * jnp.tanh(x @ p['v'] + (r * h) @ p['s']), ()

        h, _ = lax.scan(cell, jnp.zeros((2, 4), xs.dtype), xs)
        return jnp.sum(h * h)

    p = dict(w=normal(1, 3, 8), u=normal(2, 4, 8, scale=0.4), v=normal(3, 3, 4), s=normal(4, 4, 4, scale=0.4))
    return jax.grad(loss), (p, normal(5, 5, 2, 3))


@register('sparse_embedding', 60)
def sparse_embedding():
    def f(table, ids, weights):
        def loss(table):
            rows = table[ids] * weights[..., None]
            pooled = jax.ops.segment_sum(rows.reshape(-1, 4), jnp.repeat(jnp.arange(3), 5), num_segments=3)
            return jnp.sum(pooled**2), pooled

        (l, pooled), g = jax.value_and_grad(loss, has_aux=True)(table)
        return l, pooled, g

    return f, (normal(1, 20, 4), ints(2, -2, 20, 3, 5), normal(3, 3, 5))


@register('mixture_of_experts', 400, tpu=True)
def mixture_of_experts():
    def f(x, gate, up, down):
        p, e = lax.top_k(jax.nn.softmax(x @ gate), 2)
        order = jnp.argsort(e.reshape(-1), stable=True)
        rows = jnp.repeat(x, 2, 0)[order]
        sizes = jnp.bincount(e.reshape(-1), length=4).astype(np.int32)
        y = lax.ragged_dot(jax.nn.silu(lax.ragged_dot(rows, up, sizes)), down, sizes)
        y = jnp.zeros_like(y).at[order].set(y).reshape(x.shape[0], 2, -1)
        return jnp.sum(y * p[..., None], 1), e

    return f, (normal(1, 6, 5), normal(2, 5, 4), normal(3, 4, 5, 7), normal(4, 4, 7, 5))

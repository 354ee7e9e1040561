"""JAX programs that the corpus is dumped from: several devices, collectives, sharding annotations. Text only."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from programs import mlp_loss, mlp_params, normal, register, ints


def mesh(*sizes):
    return jax.make_mesh(sizes, tuple('xyz'[:len(sizes)]), axis_types=(AxisType.Auto,) * len(sizes))


def put(a, m, *spec):
    return jax.device_put(a, NamedSharding(m, P(*spec)))


@register('sharded_matmul', text_only=True)
def sharded_matmul():
    m = mesh(2, 4)

    def f(a, b):
        c = lax.with_sharding_constraint(jnp.tanh(a @ b), NamedSharding(m, P('x', 'y')))
        return c, c.sum(0)

    return f, (put(normal(1, 8, 16), m, 'x', 'y'), put(normal(2, 16, 8), m, 'y', None))


@register('data_parallel_step', text_only=True)
def data_parallel_step():
    m = mesh(8)
    step = lambda p, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(mlp_loss)(p, x, y))
    params = jax.tree.map(lambda a: put(a, m), mlp_params([8, 16, 4]))
    return step, (params, put(normal(1, 16, 8), m, 'x', None), put(ints(2, 0, 4, 16), m, 'x'))


@register('shard_map_collectives', text_only=True)
def shard_map_collectives():
    m = mesh(4, 2)

    def body(x):
        n = lax.axis_index('x')
        return (lax.psum(x, 'x'), lax.pmax(x, ('x', 'y')), lax.ppermute(x, 'x', [(i, (i + 1) % 4) for i in range(4)]),
                lax.all_gather(x, 'y', axis=1, tiled=True), lax.psum_scatter(x, 'x', scatter_dimension=0, tiled=True),
                lax.all_to_all(x, 'x', 0, 1, tiled=True), x + n.astype(x.dtype))

    f = jax.shard_map(body, mesh=m, in_specs=P('x', 'y'),
                      out_specs=(P(None, 'y'), P(), P('x', 'y'), P('x'), P('x', 'y'), P('x', 'y'), P('x', 'y')),
                      check_vma=False)
    return f, (put(normal(1, 16, 8), m, 'x', 'y'),)


@register('ring_attention', text_only=True)
def ring_attention():
    m = mesh(8)

    def body(q, k, v):
        def step(i, s):
            k, v, acc, norm = s
            e = jnp.exp(q @ k.T)
            acc, norm = acc + e @ v, norm + e.sum(-1)
            shift = lambda a: lax.ppermute(a, 'x', [(j, (j + 1) % 8) for j in range(8)])
            return shift(k), shift(v), acc, norm

        _, _, acc, norm = lax.fori_loop(0, 8, step, (k, v, q * 0, q[:, 0] * 0))
        return acc / norm[:, None]

    f = jax.shard_map(body, mesh=m, in_specs=P('x'), out_specs=P('x'), check_vma=False)
    return f, tuple(put(normal(i, 16, 4), m, 'x') for i in range(3))


@register('pmap_mean', text_only=True)
def pmap_mean():
    m = mesh(8)
    f = jax.shard_map(lambda x: lax.pmean(jnp.sort(x), 'x'), mesh=m, in_specs=P('x'), out_specs=P(), check_vma=False)
    return f, (put(normal(1, 8, 4, dtype=jnp.bfloat16), m, 'x'),)


@register('sharded_embedding', text_only=True)
def sharded_embedding():
    m = mesh(2, 2, 2)
    f = lambda t, i: jnp.take(t, i, axis=0).sum(1)
    return f, (put(normal(1, 32, 8), m, 'x', 'y'), put(ints(2, 0, 32, 8, 4), m, 'z', None))

"""JAX functions through kiln, beside JAX itself."""
import os
import unittest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import kiln
import numpy as np

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", "cpu")
except ImportError:
    jax = None


@unittest.skipUnless(jax, "jax is not installed")
class Jax(unittest.TestCase):
    def test_lower(self):
        m = kiln.jax.lower(lambda x, unused: {"y": x * 2, "z": (x + 1,)}, np.zeros((3, 5), np.float32), np.zeros(2))
        self.assertEqual([str(p.type) for p in m.parameters], ["f32[3,5]", "f32[2]"])
        self.assertEqual(len(m.results), 2)

    def test_optimized(self):
        m = kiln.jax.lower(lambda x: jnp.tanh(x) * 2, np.zeros((3, 5), np.float32), optimized=True)
        x = m.example(2)[0]
        self.assertEqual(m.check([x], kiln.compile(m)(x)), [])

    def test_long_constants(self):
        """Neither text says "{...}" in their place."""
        c = np.arange(1000, dtype=np.float32) ** 2
        x = np.ones(1000, np.float32)
        for optimized in (False, True):
            (r,) = kiln.compile(kiln.jax.lower(lambda a: a + c, x, optimized=optimized))(x)
            np.testing.assert_array_equal(r, x + c)

    def test_jit(self):
        @kiln.jax.jit
        def gelu(x, *, scale):
            """Doc."""
            return {"a": 0.5 * x * (1 + jnp.tanh(0.797 * (x + 0.0447 * x**3))), "b": (x * scale).sum(axis=-1)}

        x = np.random.default_rng(1).standard_normal((16, 24)).astype(np.float32)
        r = gelu(x, scale=2.0)
        expected = gelu._function(x, scale=2.0)
        np.testing.assert_allclose(r["a"], expected["a"], rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(r["b"], expected["b"], rtol=2e-5, atol=1e-5)
        self.assertEqual(gelu.__doc__, "Doc.")
        m = gelu.module(x, scale=2.0)
        self.assertEqual(m.check([x, np.float32(2)], [r["a"], r["b"]]), [])
        self.assertEqual(len(gelu._cache), 1)
        gelu(x[:4], scale=2.0)
        self.assertEqual(len(gelu._cache), 2)

    def test_bf16_and_dlpack(self):
        x = jnp.arange(-8, 8, dtype=jnp.bfloat16).reshape(4, 4)
        r = kiln.jax.jit(lambda x: x * x + 1)(x)
        np.testing.assert_array_equal(np.asarray(r, np.float32), np.asarray(x, np.float32) ** 2 + 1)

    def test_simulated(self):
        device = kiln.simulator()
        x = np.random.default_rng(1).standard_normal((8, 40)).astype(np.float32)
        softmax = lambda x: jax.nn.softmax(x, axis=-1)  # noqa: E731
        on_device = kiln.jax.jit(softmax, device=device)(x)
        self.assertEqual(on_device.numpy().tobytes(), kiln.jax.jit(softmax)(x).tobytes())

    def test_evaluated(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        r = kiln.jax.jit(lambda x: x @ x.T, device="eval")(x)
        np.testing.assert_allclose(r, x @ x.T)

    def test_refusals(self):
        with self.assertRaises(ValueError):
            kiln.jax.jit(lambda x: x, device="abacus")


def layer(x, w):
    """Of a tree, with a scalar in it."""
    h = jnp.tanh(x["a"] * w) + x["b"]
    return {"y": jax.nn.softmax(h, axis=-1), "s": (h * h).sum(axis=-1)}


@unittest.skipUnless(jax and hasattr(jax, "ffi"), "jax is not installed, or has no jax.ffi")
class CustomCalls(unittest.TestCase):
    """Kernels inside XLA's programs, beside what XLA makes of the same functions."""

    def setUp(self):
        r = np.random.default_rng(3)
        self.x = {"a": jnp.asarray(r.standard_normal((8, 12)), jnp.float32), "b": jnp.float32(0.25)}
        self.w = jnp.asarray(r.standard_normal(12), jnp.float32)

    def near(self, found, expected):
        self.assertEqual(jax.tree_util.tree_structure(found), jax.tree_util.tree_structure(expected))
        for a, b in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected)):
            self.assertEqual(a.dtype, b.dtype)
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)

    def test_inside_jit(self):
        kernel = kiln.jax.kernel(layer)
        program = lambda f: jax.jit(lambda x, w: f({"a": x["a"] * 2, "b": x["b"]}, w)["y"] + 1)  # noqa: E731
        self.near(program(kernel)(self.x, self.w), program(layer)(self.x, self.w))
        self.assertIn("kiln", program(kernel).lower(self.x, self.w).as_text())
        self.near(kernel(self.x, self.w), layer(self.x, self.w))
        self.assertEqual(len(kernel._cache), 1)

    def test_grad(self):
        kernel = kiln.jax.kernel(layer)
        loss = lambda f: lambda x, w: (f(x, w)["y"] ** 2).sum() + f(x, w)["s"].mean()  # noqa: E731
        self.near(jax.grad(loss(kernel), (0, 1))(self.x, self.w), jax.grad(loss(layer), (0, 1))(self.x, self.w))
        self.near(jax.jit(jax.grad(loss(kernel)))(self.x, self.w), jax.grad(loss(layer))(self.x, self.w))

    def test_grad_of_what_takes_integers(self):
        f = lambda x, k: x * x * k.astype(jnp.float32)  # noqa: E731
        kernel, k = kiln.jax.kernel(f), jnp.arange(12)
        total = lambda f: lambda x: f(x, k).sum()  # noqa: E731
        self.near(jax.grad(total(kernel))(self.w), jax.grad(total(f))(self.w))

    def test_vmap(self):
        kernel = kiln.jax.kernel(lambda x: jax.nn.softmax(x))
        self.near(jax.vmap(kernel)(self.x["a"]), jax.nn.softmax(self.x["a"], axis=-1))

    def test_shard_map(self):
        from jax.sharding import Mesh, PartitionSpec

        shard_map = getattr(jax, "shard_map", None)
        if shard_map is None:
            from jax.experimental.shard_map import shard_map
        if jax.device_count() < 4:
            self.skipTest("JAX was started with fewer devices")
        mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
        kernel = kiln.jax.kernel(lambda x: jax.nn.softmax(x, axis=-1))
        spec = PartitionSpec("i", None)
        try:
            sharded = shard_map(kernel, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        except TypeError:
            sharded = shard_map(kernel, mesh=mesh, in_specs=spec, out_specs=spec, check_rep=False)
        self.near(jax.jit(sharded)(self.x["a"]), jax.nn.softmax(self.x["a"], axis=-1))

    def test_loops(self):
        """How often it goes round depends on the data; by the handler that may wait, too, as XLA knows it."""
        f = lambda x: jax.lax.while_loop(lambda x: x.sum() < 100, lambda x: x * 2 + 1, x)  # noqa: E731
        x = jnp.abs(self.w)
        self.near(jax.jit(kiln.jax.kernel(f))(x), f(x))
        target = kiln.jax._TARGET
        kiln.jax._TARGET = kiln.jax._WAITING
        try:
            run = jax.jit(kiln.jax.kernel(f))
            self.assertIn(kiln.jax._WAITING, run.lower(x).as_text())
            self.near(run(x), f(x))
        finally:
            kiln.jax._TARGET = target

    def test_layouts(self):
        m = kiln.Module(
            "HloModule t ENTRY e { p = f32[3,4]{0,1} parameter(0) ROOT r = f32[3,4]{0,1} multiply(p, p) }"
        )
        x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
        (y,) = jax.jit(kiln.jax.call(kiln.compile(m)))(x)
        np.testing.assert_array_equal(y, x * x)

    def test_refusals(self):
        with self.assertRaises(kiln.UnsupportedError):
            kiln.jax.call(kiln.compile(kiln.Module("HloModule s ENTRY e { p = s4[8] parameter(0) ROOT r = s4[8] add(p, p) }")))
        f = kiln.compile(kiln.Module("HloModule s ENTRY e { p = f32[8] parameter(0) ROOT r = f32[8] add(p, p) }"))
        with self.assertRaises(TypeError):
            kiln.jax.call(f)()
        with self.assertRaisesRegex(Exception, r"parameter 0: expected f32.8., found f32.9."):
            jax.jit(kiln.jax.call(f))(jnp.zeros(9, jnp.float32))
        with self.assertRaises(kiln.InvalidError):
            kiln.jax.call(kiln.compile(f.module, "sm_90"))

"""JAX functions through kiln, beside JAX itself."""
import unittest

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

"""Operators of PyTorch, beside PyTorch's own."""
import unittest

import kiln

try:
    import torch
except ImportError:
    torch = None

SWISH = """HloModule swish
ENTRY e {
  x = f32[6,10] parameter(0)
  w = bf16[10] parameter(1)
  k = s32[] parameter(2)
  f = f32[10] convert(w)
  b = f32[6,10] broadcast(f), dimensions={1}
  n = f32[] convert(k)
  m = f32[6,10] broadcast(n), dimensions={}
  s = f32[6,10] logistic(x)
  t = f32[6,10] multiply(s, b)
  y = f32[6,10] multiply(t, m)
  p = pred[6,10] compare(x, b), direction=LT
  ROOT r = (f32[6,10], pred[6,10]) tuple(y, p)
}
"""
SQUARE = "HloModule square ENTRY e { x = f32[6] parameter(0) ROOT r = f32[6] multiply(x, x) }"
SLOPE = """HloModule slope ENTRY e { x = f32[6] parameter(0) g = f32[6] parameter(1)
  d = f32[6] add(x, x) ROOT r = f32[6] multiply(d, g) }"""


@unittest.skipUnless(torch, "torch is not installed (./bootstrap test-torch installs it)")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.swish = staticmethod(kiln.torch.operator("kiln_test::swish", kiln.Module(SWISH)))
        cls.square = staticmethod(
            kiln.torch.operator("kiln_test::square", kiln.Module(SQUARE), backward=kiln.Module(SLOPE))
        )

    def devices(self):
        return ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])

    def arguments(self, device):
        torch.manual_seed(1)
        x, w = torch.randn(6, 10), torch.randn(10).to(torch.bfloat16)
        return [t.to(device) for t in (x, w, torch.tensor(3, dtype=torch.int32))]

    def test_beside_torch(self):
        for device in self.devices():
            x, w, k = self.arguments(device)
            y, p = self.swish(x, w, k)
            torch.testing.assert_close(y, torch.sigmoid(x) * w.float() * k.float())
            self.assertTrue(torch.equal(p, x < w.float()))

    def test_any_stride_and_offset(self):
        for device in self.devices():
            x, w, k = self.arguments(device)
            wide = torch.randn(61, device=device)[1:]
            for given in (x.t().contiguous().t(), wide.reshape(6, 10)):
                y, _ = self.swish(given, w, k)
                torch.testing.assert_close(y, torch.sigmoid(given) * w.float() * 3)

    def test_tensors_for_artifacts(self):
        f = kiln.compile(kiln.Module("HloModule b ENTRY e { p = bf16[6,10] parameter(0) ROOT r = bf16[6,10] negate(p) }"))
        x = torch.randn(10, 6).to(torch.bfloat16)
        for given in (x.reshape(6, 10), x.t()):
            self.assertEqual(f(given)[0].tobytes(), (-given).contiguous().view(torch.int16).numpy().tobytes())

    def test_under_compile(self):
        f = lambda x, w, k: self.swish(x + 1, w, k)[0] * 2  # noqa: E731
        for device in self.devices():
            arguments = self.arguments(device)
            for dynamic in (False, True):
                compiled = torch.compile(f, fullgraph=True, dynamic=dynamic)  # inductor, which compiles what is around it
                torch.testing.assert_close(compiled(*arguments), f(*arguments))

    def test_gradients_under_compile(self):
        f = lambda x: (self.square(x * 2).sin() * torch.arange(6)).sum()  # noqa: E731
        x = torch.randn(6, requires_grad=True)
        (expected,) = torch.autograd.grad(f(x), x)
        (found,) = torch.autograd.grad(torch.compile(f, fullgraph=True)(x), x)
        torch.testing.assert_close(found, expected)

    def test_export(self):
        class Model(torch.nn.Module):
            def forward(model, *arguments):
                return self.swish(*arguments)[0] + 1

        arguments = tuple(self.arguments("cpu"))
        exported = torch.export.export(Model(), arguments).module()
        self.assertTrue(torch.equal(exported(*arguments), self.swish(*arguments)[0] + 1))

    def test_vmap(self):
        for device in self.devices():
            _, w, k = self.arguments(device)
            x = torch.randn(6, 4, 10, device=device)
            y, p = torch.vmap(self.swish, in_dims=(1, None, None))(x, w, k)
            self.assertEqual((tuple(y.shape), tuple(p.shape)), ((4, 6, 10), (4, 6, 10)))
            for i in range(4):
                one = self.swish(x[:, i], w, k)
                self.assertTrue(torch.equal(y[i], one[0]) and torch.equal(p[i], one[1]))
            squares = torch.vmap(self.square)(torch.ones(3, 6, device=device) * 3)
            self.assertTrue(torch.equal(squares, torch.full((3, 6), 9.0, device=device)))

    def test_gradients(self):
        x = torch.randn(6, requires_grad=True)
        (self.square(x) * torch.arange(6)).sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach() * torch.arange(6))

    def test_is_a_good_operator(self):
        torch.library.opcheck(self.square.default, (torch.randn(6, requires_grad=True),))
        torch.library.opcheck(self.swish.default, tuple(self.arguments("cpu")))

    def test_on_no_device(self):
        y, p = self.swish(*[t.to("meta") for t in self.arguments("cpu")])
        self.assertEqual((y.device.type, tuple(y.shape), p.dtype), ("meta", (6, 10), torch.bool))

    def test_refusals(self):
        x, w, k = self.arguments("cpu")
        with self.assertRaisesRegex(ValueError, r"argument 0: expected f32.6,10., found torch.float64 .6, 10."):
            self.swish(x.double(), w, k)
        with self.assertRaises(kiln.UnsupportedError):
            kiln.torch.operator(
                "kiln_test::narrow", kiln.Module("HloModule n ENTRY e { p = s4[8] parameter(0) ROOT r = s4[8] add(p, p) }")
            )
        with self.assertRaises(ValueError):
            kiln.torch.operator("kiln_test::two", kiln.Module(SQUARE), backward=kiln.Module(SWISH))

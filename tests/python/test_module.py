"""Modules: text, rewriting, evaluating, and what goes wrong."""
import gc
import threading
import unittest
import warnings

import kiln
import numpy as np

SOFTPLUS = """HloModule softplus
ENTRY main {
  x = f32[4,6] parameter(0)
  e = f32[4,6] exponential(x)
  ROOT y = f32[4,6] log-plus-one(e)
}
"""
MIXED = """HloModule mixed
ENTRY main {
  a = f32[8,16]{0,1} parameter(0)
  b = s4[7] parameter(1)
  c = (pred[3], (bf16[5], u8[])) parameter(2)
  c0 = pred[3] get-tuple-element(c), index=0
  c1 = (bf16[5], u8[]) get-tuple-element(c), index=1
  c10 = bf16[5] get-tuple-element(c1), index=0
  c11 = u8[] get-tuple-element(c1), index=1
  e = f32[8,16]{0,1} negate(a)
  f = s4[7] add(b, b)
  g = pred[3] not(c0)
  h = bf16[5] multiply(c10, c10)
  i = u8[] add(c11, c11)
  ROOT t = (f32[8,16]{0,1}, s4[7], (pred[3], bf16[5]), u8[]) tuple(e, f, gh, i)
}
""".replace("  ROOT", "  gh = (pred[3], bf16[5]) tuple(g, h)\n  ROOT")


def mixed_arguments():
    r = np.random.default_rng(5)
    return [
        r.standard_normal((8, 16)).astype(np.float32),
        np.array([-8, -3, -1, 0, 1, 3, 7]).astype(kiln.numpy_dtype("s4")),
        np.array([True, False, True]),
        np.array([1.5, -2, 0, 3, 8], np.float32).astype(kiln.numpy_dtype("bf16")),
        np.uint8(200),
    ]


def has_ml_dtypes():
    return kiln.numpy_dtype("bf16").type is not np.void


class Modules(unittest.TestCase):
    def test_text_is_a_fixed_point(self):
        m = kiln.Module(SOFTPLUS)
        self.assertEqual(str(kiln.Module(str(m))), str(m))
        self.assertEqual(m.name, "softplus")
        self.assertEqual([str(x.type) for x in m.parameters + m.results], ["f32[4,6]"] * 2)

    def test_hash_does_not_know_names(self):
        other = SOFTPLUS.replace("softplus", "other").replace("e =", "value =").replace("(e)", "(value)")
        self.assertEqual(kiln.Module(SOFTPLUS).hash, kiln.Module(other).hash)
        self.assertNotEqual(kiln.Module(SOFTPLUS).hash, kiln.Module(SOFTPLUS.replace("6", "7")).hash)
        self.assertEqual(kiln.Module(SOFTPLUS).canonical, kiln.Module(other).canonical)

    def test_eval_is_what_numpy_says(self):
        m = kiln.Module(SOFTPLUS)
        x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
        (y,) = m.eval(x)
        np.testing.assert_allclose(y, np.log1p(np.exp(x.astype(np.float64))), rtol=1e-6)
        self.assertEqual(m.check([x], [y]), [])

    def test_check_names_the_element(self):
        m = kiln.Module(SOFTPLUS)
        x = np.zeros((4, 6), np.float32)
        (y,) = m.eval(x)
        y[2, 3] += 1e-3
        (found,) = m.check([x], [y])
        self.assertEqual((found.result, found.element, found.count), (0, 15, 1))
        self.assertIn("expected", str(found))

    @unittest.skipUnless(has_ml_dtypes(), "ml_dtypes is not installed")
    def test_layouts_tuples_and_narrow_types(self):
        m = kiln.Module(MIXED)
        a, b, c, d, e = mixed_arguments()
        r = m.eval(a, b, c, d, e)
        np.testing.assert_array_equal(r[0], -a)
        np.testing.assert_array_equal(r[1].astype(int), (b.astype(int) * 2 + 8) % 16 - 8)
        np.testing.assert_array_equal(r[2], ~c)
        np.testing.assert_array_equal(r[3], d * d)
        self.assertEqual(r[4], (200 * 2) % 256)

    def test_example_follows_from_the_seed(self):
        m = kiln.Module(MIXED)
        for one, two, three in zip(m.example(1), m.example(1), m.example(2)):
            self.assertEqual(one.tobytes(), two.tobytes())
            self.assertEqual(one.shape, three.shape)

    def test_rewriting(self):
        text = "HloModule f\nf { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=f }"
        m = kiln.Module(text)
        self.assertEqual(m.fusions, ["r"])
        self.assertEqual(m.inline().fusions, [])
        self.assertEqual(m.extract("r").results[0].type.shape, (4,))
        self.assertEqual(len(kiln.Module(MIXED).flatten_tuples().parameters), 5)
        self.assertLess(m.inline().instruction_count, m.instruction_count)


class Failures(unittest.TestCase):
    def test_text_has_place_and_caret(self):
        with self.assertRaises(kiln.InvalidError) as caught:
            kiln.Module("HloModule x\nENTRY e {\n  ROOT a = f32[2] negate(b)\n}", "x.hlo")
        self.assertIn("x.hlo:3:26: error:", str(caught.exception))
        self.assertIn("\n                             ^", str(caught.exception))
        self.assertEqual((caught.exception.findings[0].line, caught.exception.findings[0].column), (3, 26))
        self.assertIsInstance(caught.exception, ValueError)

    def test_nothing_is_left_behind(self):
        for _ in range(2):
            with self.assertRaises(kiln.InvalidError) as caught:
                kiln.Module("HloModule")
            self.assertEqual(len([f for f in caught.exception.findings if f.severity == "error"]), 1)

    def test_unknown_attributes_warn(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kiln.Module("HloModule x\nENTRY e { p = f32[2] parameter(0) ROOT a = f32[2] negate(p), color=red }")
        self.assertTrue(any("color" in str(w.message) and w.category is kiln.KilnWarning for w in seen))

    def test_arguments(self):
        m = kiln.Module(SOFTPLUS)
        with self.assertRaisesRegex(TypeError, "expected 1 arguments, found 0"):
            m.eval()
        with self.assertRaisesRegex(ValueError, r"argument 0: expected f32\[4,6\], found shape \[4, 7\]"):
            m.eval(np.zeros((4, 7), np.float32))
        with self.assertRaisesRegex(TypeError, "found elements of type float64"):
            m.eval(np.zeros((4, 6)))
        with self.assertRaisesRegex(TypeError, "expected 1 results, found 2"):
            m.check([np.zeros((4, 6), np.float32)], [1, 2])
        with self.assertRaises(ValueError):
            m.check([np.zeros((4, 6), np.float32)], [np.zeros((4, 6), np.float32)], "exact")

    def test_threads_have_contexts_of_their_own(self):
        m, wrong = kiln.Module(SOFTPLUS), []

        def work(i):
            x = np.full((4, 6), i, np.float32)
            for _ in range(20):
                if m.check([x], kiln.compile(m)(x)):
                    wrong.append(i)
                try:
                    kiln.Module(f"HloModule {i}!")
                except kiln.InvalidError as e:
                    if len(e.findings) != 1:
                        wrong.append(e)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        gc.collect()
        self.assertEqual(wrong, [])

    @unittest.skipUnless(has_ml_dtypes(), "ml_dtypes is not installed")
    def test_types_of_one_size_are_different(self):
        m = kiln.Module("HloModule t ENTRY e { p = f8e5m2[4] parameter(0) ROOT r = f8e5m2[4] negate(p) }")
        with self.assertRaisesRegex(TypeError, "expected f8e5m2.4., found elements of type float8_e4m3fn"):
            m.eval(np.zeros(4, kiln.numpy_dtype("f8e4m3fn")))
        self.assertEqual(m.eval(np.zeros(4, "V1"))[0].view(np.uint8).tolist(), [0x80] * 4)

"""Artifacts: on the host, on the simulator, their manifests, their profiles."""
import ctypes
import gc
import pathlib
import tempfile
import unittest
import weakref

import kiln
import numpy as np
from kiln import dlpack
from test_module import MIXED, SOFTPLUS, has_ml_dtypes, mixed_arguments

SOFTMAX = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/workloads/small/softmax.hlo"
ROWS = """HloModule rows
ENTRY main {
  x = f32[64,32] parameter(0)
  w = f32[32] parameter(1)
  b = f32[64,32] broadcast(w), dimensions={1}
  ROOT y = f32[64,32] multiply(x, b)
}
"""


class Host(unittest.TestCase):
    def test_runs(self):
        m = kiln.Module(SOFTPLUS)
        f = kiln.compile(m, keep=["plan", "explain", "llvm"])
        x = m.example(3)[0]
        y = f(x)
        self.assertEqual(f.check([x], y), [])
        self.assertIn("main", f.plan)
        self.assertIn("define", f.llvm)
        self.assertTrue(f.explanation and f.costs)
        self.assertIsNone(f.ptx)

    @unittest.skipUnless(has_ml_dtypes(), "ml_dtypes is not installed")
    def test_layouts_tuples_and_narrow_types(self):
        m = kiln.Module(MIXED)
        arguments = mixed_arguments()
        self.assertEqual(m.check(arguments, kiln.compile(m)(*arguments)), [])

    def test_any_alignment_and_stride(self):
        m = kiln.Module(SOFTPLUS)
        f = kiln.compile(m)
        wide = np.arange(97, dtype=np.float32) / 50
        for x in (wide[1:25].reshape(4, 6), wide[:48:2].reshape(4, 6), wide[:24].reshape(6, 4).T):
            self.assertEqual(m.check([x], f(x)), [])

    def test_views_are_read_where_they_lie(self):
        m = kiln.Module("""HloModule views, entry_computation_layout={(f32[4,6]{0,1}, f32[5,2,3]{0,2,1}, f32[4,6]{1,0})->f32[4,6]}
          ENTRY e { a = f32[4,6]{0,1} parameter(0) b = f32[5,2,3]{0,2,1} parameter(1) c = f32[4,6] parameter(2)
            s = f32[5,1,1] slice(b), slice={[0:5],[1:2],[2:3]} r = f32[5] reshape(s) t = f32[4] slice(r), slice={[1:5]}
            u = f32[4,6] broadcast(t), dimensions={0} v = f32[4,6] add(a, c) ROOT w = f32[4,6] multiply(u, v) }""")
        f = kiln.compile(m)
        wide = np.random.default_rng(1).standard_normal(200).astype(np.float32)
        a, b, c = wide[1:25].reshape(6, 4).T, wide[31:61].reshape(2, 3, 5).transpose(2, 0, 1), wide[65:89].reshape(4, 6)
        given, _ = f.inputs([a, b, c])
        self.assertEqual([g.ctypes.data for g in given], [x.ctypes.data for x in (a, b, c)])
        self.assertEqual(f(a, b, c)[0].tobytes(), (b[1:, 1, 2][:, None] * (a + c)).tobytes())
        given, _ = f.inputs([a.copy("C"), b.copy("C"), c.copy("F")])  # others are copied
        self.assertEqual(m.check([a, b, c], f(a.copy("C"), b.copy("C"), c.copy("F"))), [])

    def test_python_numbers(self):
        m = kiln.Module("HloModule s ENTRY e { p = f32[] parameter(0) ROOT r = f32[] add(p, p) }")
        self.assertEqual(kiln.compile(m)(2.5)[0], 5.0)

    def test_zero_elements(self):
        m = kiln.Module("HloModule z ENTRY e { p = f32[0,3] parameter(0) ROOT r = f32[0,3] negate(p) }")
        self.assertEqual(kiln.compile(m)(np.zeros((0, 3), np.float32))[0].shape, (0, 3))

    def test_rows_at_run_time(self):
        m = kiln.Module(ROWS)
        f = kiln.compile(m, max_rows=100)
        w = np.arange(32, dtype=np.float32)
        for rows in (0, 1, 7, 64, 100):
            x = np.ones((rows, 32), np.float32)
            np.testing.assert_array_equal(f(x, w)[0], x * w)
        with self.assertRaisesRegex(kiln.InvalidError, "count is 3232: expected a multiple of 32 from 0 to 3200"):
            f(np.ones((101, 32), np.float32), w)

    def test_what_is_updated_in_place_is_a_copy(self):
        m = kiln.Module(
            "HloModule u, input_output_alias={ {}: (0, {}, must-alias) }\n"
            "ENTRY e { p = f32[8] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2)\n"
            "  ROOT r = f32[8] dynamic-update-slice(p, u, i) }"
        )
        p = np.arange(8, dtype=np.float32)
        (r,) = kiln.compile(m)(p, np.array([9, 9], np.float32), 3)
        np.testing.assert_array_equal(r, [0, 1, 2, 9, 9, 5, 6, 7])
        np.testing.assert_array_equal(p, np.arange(8))

    def test_refusals(self):
        with self.assertRaises(kiln.InvalidError) as caught:
            kiln.compile(kiln.Module(SOFTPLUS), "sm_7")
        self.assertIn("sm_7", str(caught.exception))
        with self.assertRaises(kiln.InvalidError):
            kiln.compile(kiln.Module(SOFTPLUS), fusion="none")
        with self.assertRaises(ValueError):
            kiln.compile(kiln.Module(SOFTPLUS), keep=["everything"])
        with self.assertRaises(kiln.UnsupportedError) as caught:
            kiln.compile(kiln.Module("HloModule i ENTRY e { t = token[] after-all() ROOT r = ((f32[4]), token[]) infeed(t) }"))
        self.assertIsInstance(caught.exception, NotImplementedError)
        with self.assertRaises(kiln.InvalidError):
            kiln.compile(kiln.Module(SOFTPLUS), "sm_90")(np.zeros((4, 6), np.float32))

    def test_results_outlive_everything(self):
        m = kiln.Module(SOFTPLUS)
        x = m.example()[0]
        y = kiln.compile(m)(x)[0]
        expected = y.copy()
        del m
        gc.collect()
        np.testing.assert_array_equal(y, expected)


class Kept(unittest.TestCase):
    def test_saved_and_loaded(self):
        m = kiln.Module(SOFTPLUS)
        f = kiln.compile(m)
        g = kiln.load(m, f.save())
        x = m.example(1)[0]
        self.assertEqual(g.save(), f.save())
        self.assertEqual(g(x)[0].tobytes(), f(x)[0].tobytes())
        self.assertEqual(kiln.load(m, kiln.compile(m, "sm_90").save()).ptx, kiln.compile(m, "sm_90").ptx)
        data = bytearray(f.save())
        data[len(data) // 2] ^= 1
        with self.assertRaises(kiln.InvalidError):
            kiln.load(m, bytes(data))
        with self.assertRaisesRegex(kiln.InvalidError, "expected an artifact of rows, found one of softplus"):
            kiln.load(kiln.Module(ROWS), f.save())

    def test_caches(self):
        m = kiln.Module(SOFTPLUS)
        with tempfile.TemporaryDirectory() as folder:
            first = kiln.Cache(folder)
            kiln.compile(m, cache=first), kiln.compile(m, cache=first), kiln.compile(m, "sm_80", cache=first)
            second = kiln.Cache(folder)
            f = kiln.compile(m, cache=second)
            self.assertEqual(f.check(m.example(2), f(*m.example(2))), [])
            self.assertEqual((first.info["memory_hits"], first.info["misses"], second.info["folder_hits"]), (1, 2, 1))
            self.assertEqual(second.info["folder"], folder)
        self.assertEqual(kiln.Cache("").info["no_folder"], "none was asked for")


class Manifests(unittest.TestCase):
    def test_fields(self):
        m = kiln.Module(SOFTPLUS)
        a = kiln.compile(m, "sm_80")
        f = a.manifest
        self.assertEqual((f.target, f.module, f.fusion, f.numerics), ("sm_80", "softplus", None, "strict"))
        self.assertEqual([s.name for s in f.parameters + f.results], ["x", "y"])
        self.assertEqual(f.hash, m.hash)
        self.assertTrue(f.parameters[0].is_plain and f.parameters[0].bytes == 96)
        (launch,) = f.launches
        self.assertIn(launch.kernel, a.ptx)
        self.assertEqual([x.kind for x in launch.arguments], ["slot", "slot"])
        self.assertIn(".target sm_80", a.ptx)


class Simulated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = kiln.simulator("H200", check=True)

    def tearDown(self):
        self.assertEqual(kiln.findings(), [])

    def test_has_the_host_s_bits(self):
        m = kiln.Module(SOFTPLUS)
        x = m.example(8)[0]
        (y,) = self.device.run(kiln.compile(m, self.device.target), x)
        self.assertEqual(y.numpy().tobytes(), kiln.compile(m)(x)[0].tobytes())
        self.assertEqual(self.device.target, "sm_90")

    def test_machine_code(self):
        m = kiln.Module(SOFTPLUS)
        a = kiln.compile(m, "sm_90")
        with self.assertRaisesRegex(kiln.UnsupportedError, "no nvJitLink.*/nowhere"):
            a.assemble("/nowhere")
        with self.assertRaisesRegex(kiln.InvalidError, "found one for the host"):
            kiln.compile(m).assemble()
        with self.assertRaisesRegex(kiln.InvalidError, "expected a cubin"):
            self.device.prepare(a, cubin=b"//")
        asked = []
        code = a.assemble(assembler=lambda target, ptx: asked.append((target, ptx)) or b"\x7fELF\x02" + bytes(59))
        self.assertEqual((code, asked), (b"\x7fELF\x02" + bytes(59), [("sm_90", a.ptx.encode())]))
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            a.assemble(assembler=lambda target, ptx: b"%d" % (1 // 0))
        with self.assertRaisesRegex(kiln.DeviceError, "has made no machine code"):
            a.assemble(assembler=lambda target, ptx: b"")
        with self.assertRaisesRegex(kiln.InvalidError, "no kernels for less alignment"):
            a.assemble(less=True)
        both = kiln.compile(m, "sm_90", least_align=4)
        both.assemble(assembler=lambda target, ptx: asked.append((target, ptx)) or code, less=True)
        self.assertNotEqual(asked[1][1], both.ptx.encode())
        with self.assertRaisesRegex(kiln.InvalidError, "expected two cubins.*found 1"):
            self.device.prepare(both, cubin=code)
        with self.assertRaisesRegex(kiln.DeviceError, "the simulator runs PTX"):
            self.device.prepare(both, cubin=(code, code))
        with tempfile.TemporaryDirectory() as folder:
            for hits in (0, 1):
                cache = kiln.Cache(folder)
                self.device.prepare(kiln.compile(m, "sm_90"), cache=cache)
                self.assertEqual((cache.info["code_hits"], cache.info["code_misses"]), (hits, 1 - hits))
        for library in (None, "/usr/local/cuda/lib64/libnvJitLink.so"):
            try:
                code = a.assemble(library)
            except kiln.UnsupportedError:
                continue
            self.assertEqual(code[:4], b"\x7fELF")
            self.assertIn(a.manifest.launches[0].kernel.encode(), code)
            with self.assertRaisesRegex(kiln.DeviceError, "the simulator runs PTX"):
                self.device.prepare(a, cubin=code)

    def test_collected_in_any_order(self):
        # The collector ends a cycle in the order in which its members were made, so the driver before what needs it.
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
            device = kiln.simulator("H200")
            array = device.array(np.zeros(0, np.float32))
            owners = [device._driver, device._device, array]
            weak = [weakref.ref(o) for o in owners]
            for i in order:
                owners[i].__del__()  # as the collector does: whole, and not yet cleared
                owners[i].__class__ = type("Ended", (type(owners[i]),), {"__del__": lambda self: None})
            del device, array, owners
            gc.collect()
            self.assertFalse(any(w() for w in weak))

    @unittest.skipUnless(has_ml_dtypes(), "ml_dtypes is not installed")
    def test_layouts_tuples_and_narrow_types(self):
        m = kiln.Module(MIXED)
        arguments = mixed_arguments()
        r = self.device.run(kiln.compile(m, "sm_90"), *arguments)
        self.assertEqual(m.check(arguments, [np.asarray(x) for x in r]), [])

    def test_arrays_stay_on_the_device(self):
        m = kiln.Module(SOFTPLUS)
        a = kiln.compile(m, "sm_90")
        x = self.device.array(m.example(1)[0])
        (y,) = self.device.run(a, x)
        (z,) = self.device.run(a, y)
        self.assertEqual(m.check([y.numpy()], [z.numpy()]), [])
        with self.assertRaisesRegex(ValueError, r"expected f32\[4,6\], found f32\[2\]"):
            self.device.run(a, self.device.array(np.zeros(2, np.float32)))
        with self.assertRaises(BufferError):
            x.__dlpack__()

    def test_rows_at_run_time(self):
        f = kiln.compile(kiln.Module(ROWS), "sm_90", max_rows=100)
        w = np.arange(32, dtype=np.float32)
        for rows in (1, 33, 100):
            x = np.ones((rows, 32), np.float32)
            np.testing.assert_array_equal(self.device.run(f, x, w)[0], x * w)

    def test_scalars_by_value(self):
        m = kiln.Module("HloModule s ENTRY e { p = s32[4] parameter(0) k = s32[] parameter(1) b = s32[4] broadcast(k), dimensions={} ROOT r = s32[4] add(p, b) }")
        a = kiln.compile(m, "sm_90", scalars_by_value=True)
        np.testing.assert_array_equal(self.device.run(a, np.arange(4, dtype=np.int32), -7)[0].numpy(), [-7, -6, -5, -4])


class Profiles(unittest.TestCase):
    def test_counts(self):
        m = kiln.Module.from_file(SOFTMAX)
        a = kiln.compile(m, "sm_90")
        (p,) = kiln.profile(a, gpu="H200")
        least = sum(s.bytes for s in a.manifest.parameters + a.manifest.results) // 32
        self.assertGreaterEqual(p.sectors, least)
        self.assertLess(p.sectors, 2 * least)
        self.assertGreater(p.seconds, 0)
        self.assertEqual(sum(p.instructions.values()), p.counts["all_warps"])
        self.assertEqual(sum(x["warps"] for x in p.lines), p.counts["all_warps"])
        self.assertTrue(p.assumptions and p.rates and p.buffers)
        with self.assertRaises(ValueError):
            kiln.profile(kiln.compile(m))
        with self.assertRaises(kiln.InvalidError):
            kiln.profile(a, gpu="abacus")


class Dlpack(unittest.TestCase):
    """Capsules of this package in numpy's hands and back, in this machine's memory."""

    class Owner:
        dropped = 0

        def __init__(self, array, t):
            self.array, self.type = array, t

        def __dlpack__(self, **_):
            return dlpack.export(self.array.ctypes.data, (dlpack.CPU, 0), self.type, self)

        def __dlpack_device__(self):
            return (dlpack.CPU, 0)

        def __del__(self):
            type(self).dropped += 1

    def test_out(self):
        owner = self.Owner(np.arange(6, dtype=np.int16), kiln.ArrayType("s16", (2, 3)))
        before = self.Owner.dropped
        seen = np.from_dlpack(owner)
        del owner
        gc.collect()
        self.assertEqual(self.Owner.dropped, before)
        np.testing.assert_array_equal(seen, [[0, 1, 2], [3, 4, 5]])
        del seen
        gc.collect()
        self.assertEqual(self.Owner.dropped, before + 1)

    def test_not_taken(self):
        before = self.Owner.dropped
        owner = self.Owner(np.zeros(2, np.float32), kiln.ArrayType("f32", (2,)))
        capsule = owner.__dlpack__()
        del owner, capsule
        gc.collect()
        self.assertEqual(self.Owner.dropped, before + 1)

    def test_in(self):
        source = np.arange(12, dtype=np.float64).reshape(3, 4)
        there = dlpack.take(source)
        self.assertEqual((there.address, there.shape, there.device[0]), (source.ctypes.data, (3, 4), dlpack.CPU))
        self.assertTrue(there.lies_in((0, 1)) and there.holds(kiln.ArrayType("f64", (3, 4))))
        self.assertFalse(dlpack.take(source.T).lies_in((0, 1)))
        self.assertTrue(dlpack.take(source.T).lies_in((1, 0)))
        self.assertFalse(there.holds(kiln.ArrayType("s64", (3, 4))))
        self.assertEqual(ctypes.c_double.from_address(there.address + 8).value, 1.0)

    def test_bf16_of_others(self):
        class Lender:
            dtype = "other.bfloat16"

            def __init__(self, values, t):
                self.values, self.t = values, t

            def __dlpack_device__(self):
                return dlpack.CPU, 0

            def __dlpack__(self, **_):
                return dlpack.export(self.values.ctypes.data, (dlpack.CPU, 0), self.t, self.values)

        m = kiln.Module("HloModule b ENTRY e { p = bf16[3,4] parameter(0) ROOT r = bf16[3,4] negate(p) }")
        f = kiln.compile(m)
        values = np.arange(0x3F80, 0x3F8C, dtype=np.uint16).reshape(3, 4)
        given, _ = f.inputs([Lender(values, kiln.ArrayType("bf16", (3, 4)))])
        self.assertEqual(given[0].ctypes.data, values.ctypes.data)
        before = weakref.ref(values)
        (y,) = f(given[0])
        self.assertEqual(y.tobytes(), (values | 0x8000).astype(np.uint16).tobytes())
        del values
        gc.collect()
        self.assertIsNotNone(before())  # what is lent is held
        del given
        gc.collect()
        self.assertIsNone(before())
        none = kiln.compile(kiln.Module("HloModule z ENTRY e { p = bf16[0,4] parameter(0) ROOT r = bf16[0,4] negate(p) }"))
        empty = Lender(np.zeros((0, 4), np.uint16), kiln.ArrayType("bf16", (0, 4)))
        self.assertEqual(none(empty)[0].shape, (0, 4))

    def test_types_that_it_lacks(self):
        with self.assertRaises(BufferError):
            dlpack.export(0, (dlpack.CPU, 0), kiln.ArrayType("f8e5m2", (1,)), None)

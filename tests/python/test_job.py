"""Compilation in the background and in a process of its own; bundles of several targets."""
import asyncio
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import kiln
import numpy as np
from test_artifact import ROWS, SOFTMAX
from test_module import SOFTPLUS

# Some seconds' work, in many pieces: fusions that are all different.
LONG = (
    "HloModule long\n"
    + "".join(
        f"f{i} {{ p = f32[{64 + i},32] parameter(0) q = f32[{64 + i},32] tanh(p) ROOT r = f32[{64 + i},32] exponential(q) }}\n"
        for i in range(150)
    )
    + "ENTRY e {\n"
    + "".join(
        f"  a{i} = f32[{64 + i},32] parameter({i})\n  b{i} = f32[{64 + i},32] fusion(a{i}), kind=kLoop, calls=f{i}\n"
        for i in range(150)
    )
    + "  ROOT t = ("
    + ", ".join(f"f32[{64 + i},32]" for i in range(150))
    + ") tuple("
    + ", ".join(f"b{i}" for i in range(150))
    + ")\n}"
)


class Jobs(unittest.TestCase):
    def test_gives_what_compile_gives(self):
        m = kiln.Module(SOFTPLUS)
        for target in ("host", "sm_90"):
            job = kiln.start(m, target, keep=["plan"])
            a = job.result()
            self.assertEqual(a.save(), kiln.compile(m, target).save())
            self.assertTrue(a.plan)
            self.assertIs(job.result(), a)
            self.assertEqual(job.state, "done")
            self.assertEqual(*job.progress)
            self.assertTrue(job.wait(0))
        x = m.example(3)[0]
        self.assertEqual(m.check([x], kiln.start(m).result()(x)), [])

    def test_callbacks(self):
        m = kiln.Module(SOFTMAX.read_text())
        seen, ended, threads = [], threading.Event(), set()

        def progress(done, count):
            seen.append((done, count))
            threads.add(threading.get_ident())

        job = kiln.start(m, "sm_90", progress=progress)
        job.when_ended(ended.set)
        job.result()
        self.assertTrue(ended.wait(10))
        self.assertTrue(seen and all(0 <= d <= n for d, n in seen))
        self.assertNotIn(threading.get_ident(), threads)
        late = []
        job.when_ended(lambda: late.append(1))
        self.assertEqual(late, [1])

    def test_a_callback_that_raises_is_told_and_harms_nothing(self):
        said, before = [], sys.excepthook
        sys.excepthook = lambda kind, value, where: said.append(str(value))
        try:
            job = kiln.start(kiln.Module(SOFTMAX.read_text()), "sm_90", progress=lambda done, count: [][1])
            self.assertIn(".target sm_90", job.result().ptx)
        finally:
            sys.excepthook = before
        self.assertIn("list index out of range", said)

    def test_await(self):
        m = kiln.Module(SOFTPLUS)

        async def both():
            return await asyncio.gather(wait(kiln.start(m)), wait(kiln.start(m, "sm_80")))

        async def wait(job):
            return await job

        host, gpu = asyncio.run(both())
        self.assertEqual((host.manifest.target, gpu.manifest.target), ("host", "sm_80"))

    def test_failures(self):
        with self.assertRaisesRegex(kiln.InvalidError, "argument_align is 12"):
            kiln.start(kiln.Module(SOFTPLUS), argument_align=12)
        with self.assertRaisesRegex(kiln.InvalidError, "unknown target 'sm_7'"):
            kiln.start(kiln.Module(SOFTPLUS), "sm_7").result()
        job = kiln.start(kiln.Module("HloModule i ENTRY e { t = token[] after-all() ROOT r = ((f32[4]), token[]) infeed(t) }"))
        for _ in range(2):
            with self.assertRaises(kiln.UnsupportedError) as caught:
                job.result()
            self.assertTrue(caught.exception.findings)
        self.assertEqual(job.state, "failed")

    def test_cancelled(self):
        job = kiln.start(kiln.Module(LONG), "sm_90")
        with self.assertRaises(TimeoutError):
            job.result(0)
        job.cancel()
        with self.assertRaises(kiln.CancelledError):
            job.result()
        self.assertEqual(job.state, "cancelled")

    def test_let_go_of(self):
        begun = threading.Event()
        job = kiln.start(kiln.Module(LONG), "sm_90", progress=lambda done, count: begun.set())
        self.assertTrue(begun.wait(60))
        work = job._work
        del job
        gc.collect()
        self.assertEqual(self.state_of(work), "cancelled")
        # On the job's own thread, while it tells of its progress: the last that knows of it.
        holder, own = [], []
        let_go = threading.Event()

        def progress(done, count):
            if holder:
                own.append(holder[0]._work)
                holder.clear()
                let_go.set()

        holder.append(kiln.start(kiln.Module(LONG), "sm_90", progress=progress))
        self.assertTrue(let_go.wait(60))
        self.assertEqual(self.state_of(own.pop()), "cancelled")

    def state_of(self, work):
        self.assertTrue(work.ended.wait(60))
        return kiln.Job(kiln.Module(SOFTPLUS), work).state

    def test_through_a_cache(self):
        m, cache = kiln.Module(SOFTPLUS), kiln.Cache("")
        a = kiln.start(m, cache=cache).result()
        self.assertEqual(kiln.compile(m, cache=cache).save(), a.save())
        self.assertEqual(cache.info["memory_hits"], 1)

    def test_a_program_that_ends_meanwhile(self):
        program = (
            "import kiln, sys, threading\n"
            "begun = threading.Event()\n"
            "job = kiln.start(kiln.Module(sys.stdin.read()), 'sm_90', progress=lambda d, n: begun.set())\n"
            "begun.wait()\n"
        )
        r = subprocess.run([sys.executable, "-c", program], input=LONG, text=True, capture_output=True, timeout=120)
        self.assertEqual((r.returncode, r.stderr), (0, ""))


class Apart(unittest.TestCase):
    def test_the_same_artifact(self):
        m = kiln.Module(SOFTPLUS)
        try:
            a = kiln.compile(m, isolate=True, time_limit=60)
        except kiln.InvalidError as e:
            self.skipTest(str(e))
        self.assertEqual(a.save(), kiln.compile(m).save())
        with self.assertRaises(kiln.UnsupportedError):
            kiln.compile(
                kiln.Module("HloModule i ENTRY e { t = token[] after-all() ROOT r = ((f32[4]), token[]) infeed(t) }"), isolate=True
            )

    def test_bad_workers(self):
        m = kiln.Module(SOFTPLUS)
        with self.assertRaisesRegex(kiln.InvalidError, "cannot start /nowhere"):
            kiln.compile(m, isolate=True, worker="/nowhere")
        with tempfile.TemporaryDirectory() as folder:
            sleeper = pathlib.Path(folder) / "sleeper"
            sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
            sleeper.chmod(0o755)
            with self.assertRaisesRegex(kiln.CancelledError, "took longer than the time_limit of 100 ms"):
                kiln.compile(m, isolate=True, worker=str(sleeper), time_limit=0.1)
            job = kiln.start(m, isolate=True, worker=str(sleeper))
            time.sleep(0.05)
            job.cancel()
            with self.assertRaises(kiln.CancelledError):
                job.result(30)


class Bundles(unittest.TestCase):
    def test_targets(self):
        m = kiln.Module(SOFTPLUS)
        b = kiln.Bundle.compile(m, ["host", "sm_80", "sm_90a"], keep=["plan"])
        self.assertEqual(b.targets, ("sm_90a", "sm_80", "host"))
        self.assertEqual([b.choose(sm).manifest.target for sm in (80, 89, 90, 100)], ["sm_80", "sm_80", "sm_90a", "sm_80"])
        x = m.example(2)[0]
        host = b.choose()
        self.assertTrue(all(a.plan for a in b.artifacts))
        first = b.artifacts[0]
        del b
        gc.collect()
        self.assertEqual(m.check([x], host(x)), [])
        self.assertEqual(first.save(), kiln.compile(m, "sm_90a").save())
        with self.assertRaisesRegex(kiln.UnsupportedError, "sm_75"):
            kiln.Bundle.compile(m, ["sm_80"]).choose(75)

    def test_a_device_s(self):
        m = kiln.Module(SOFTPLUS)
        b = kiln.Bundle([kiln.compile(m, t) for t in ("sm_80", "sm_100")])
        device = kiln.simulator("H200", check=True)
        x = m.example(2)[0]
        (y,) = device.run(b.choose(device), x)
        self.assertEqual(y.numpy().tobytes(), kiln.compile(m)(x)[0].tobytes())

    def test_bytes(self):
        m = kiln.Module(SOFTPLUS)
        b = kiln.Bundle.compile(m, ["sm_80", "host"])
        again = kiln.Bundle.load(m, b.save())
        self.assertEqual((again.targets, again.save()), (b.targets, b.save()))
        self.assertEqual(kiln.Bundle.load(m, kiln.compile(m).save()).targets, ("host",))
        data = bytearray(b.save())
        data[len(data) // 2] ^= 1
        with self.assertRaises(kiln.InvalidError):
            kiln.Bundle.load(m, bytes(data))
        with self.assertRaisesRegex(kiln.InvalidError, "expected an artifact of rows"):
            kiln.Bundle.load(kiln.Module(ROWS), b.save())

    def test_what_does_not_belong_together(self):
        m = kiln.Module(SOFTPLUS)
        for wrong in ([], [kiln.compile(m), kiln.compile(m)], [kiln.compile(m), kiln.compile(kiln.Module(ROWS), "sm_80")]):
            with self.assertRaises(kiln.InvalidError):
                kiln.Bundle(wrong)
        for targets in ([], ["sm_80", "sm_80"]):
            with self.assertRaises(kiln.InvalidError):
                kiln.Bundle.compile(m, targets)
        with self.assertRaisesRegex(kiln.InvalidError, "sm_7"):
            kiln.Bundle.compile(m, ["sm_80", "sm_7"])

    def test_one_fusion(self):
        m = kiln.Module(
            "HloModule two\nf { p = f32[8] parameter(0) ROOT r = f32[8] negate(p) }\n"
            "ENTRY e { x = f32[4,2] parameter(0) y = f32[8] reshape(x) z = f32[8] fusion(y), kind=kLoop, calls=f\n"
            "  ROOT w = f32[2,4] reshape(z) }"
        )
        b = kiln.Bundle.compile(m, ["host", "sm_80"], fusion="z")
        again = kiln.Bundle.load(m, b.save())
        for some in (b, again):
            np.testing.assert_array_equal(some.choose()(np.ones(8, np.float32))[0], -np.ones(8, np.float32))

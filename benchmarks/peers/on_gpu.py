#!/usr/bin/env python3
"""on_gpu.py [jax | torch]...: the workloads and examples through XLA (JAX) and PyTorch's compiler, where they are installed and
see a GPU. Prints one JSON object: {"jax": {NAME: microseconds}, "torch": {...}, "how": {...}}; a peer that is missing is null.
Every run begins with a cold L2 cache: a buffer larger than it is written in between. When it is told to end (SIGTERM) it
prints what it has.

A time is that of the device: from the begin of the first kernel of a run to the end of its last, as CUPTI reports them (JAX), or
between two events (PyTorch), whose calls the writing of the buffer hides."""
import glob
import json
import os
import re
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import torch_workloads
import xla

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RUNS = 20
FLUSH_BYTES = 512 << 20


def median(values):
    return sorted(values)[len(values) // 2]


def files():
    for folder, prefix in (("benchmarks/workloads", ""), ("examples", "examples/")):
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "*.hlo"))):
            yield prefix + os.path.splitext(os.path.basename(path))[0], path


def spans(trace, wipe):
    """Microseconds from the first kernel to the last, of each run behind a kernel of module `wipe`."""
    from jax.profiler import ProfileData
    path = glob.glob(os.path.join(trace, "**", "*.xplane.pb"), recursive=True)[0]
    events = []
    for plane in ProfileData.from_file(path).planes:
        if "GPU" not in plane.name:
            continue
        for line in plane.lines:
            if line.name.startswith("Stream"):
                for e in line.events:
                    module = next((str(v) for k, v in e.stats if k == "hlo_module"), "")
                    events.append((e.start_ns, e.start_ns + e.duration_ns, wipe in module))
    runs = []
    for begin, end, is_wipe in sorted(events):
        if is_wipe:
            runs.append(None)
        elif runs:
            runs[-1] = (runs[-1][0] if runs[-1] else begin, end)
    return [(end - begin) / 1e3 for begin, end in filter(None, runs)]


def jax_programs(found, how, wanted="gpu"):
    import jax
    import jax.numpy as jnp
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir
    how["jax"] = f"{jax.__version__}, {jax.devices()[0].device_kind}"
    if jax.default_backend() != wanted:
        return
    device = jax.devices()[0]
    types = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32, "f64": jnp.float64, "i1": jnp.bool_,
             "i4": jnp.int4, "i8": jnp.int8, "ui8": jnp.uint8, "i32": jnp.int32, "ui32": jnp.uint32,
             "f8E4M3FN": jnp.float8_e4m3fn, "complex<f32>": jnp.complex64}
    flush = jnp.zeros(FLUSH_BYTES // 4, jnp.float32)

    def wipe_cache(f):
        return f + 1

    wipe = jax.jit(wipe_cache)

    def ones(type):
        t = ir.RankedTensorType(type)
        return jnp.ones(tuple(t.shape), types[str(t.element_type)])

    def run(program, arguments):
        results = program.execute_sharded(arguments).disassemble_into_single_device_arrays()
        for a in results:
            a[0].block_until_ready()

    def measure(path):
        with open(path) as f:
            parsed = xla.parse(f.read())
        program = device.client.compile_and_load(parsed, _jax.DeviceList((device,)), xla.options_of_one_device())
        entry = next(op for op in parsed.body.operations if op.name.value == "main")
        arguments = [ones(t) for t in entry.type.inputs]
        wipe(flush).block_until_ready()
        run(program, arguments)
        times = []
        with tempfile.TemporaryDirectory() as trace:
            with jax.profiler.trace(trace):
                for _ in range(RUNS):
                    wipe(flush).block_until_ready()
                    start = time.perf_counter()
                    run(program, arguments)
                    times.append((time.perf_counter() - start) * 1e6)
            device_times = attempt(lambda: spans(trace, "wipe_cache"), path) or []
        if len(device_times) < RUNS // 2:
            how["jax " + os.path.basename(path)] = "time of the host"
            return median(times)
        return median(device_times)

    for name, path in files():
        if (us := attempt(lambda: measure(path), "jax: " + name)) is not None:
            found[name] = round(us, 3)


def torch_programs(found, how):
    import torch
    if not torch.cuda.is_available():
        return
    how["torch"] = f"{torch.__version__}, {torch.cuda.get_device_name()}"
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "s32": torch.int32, "pred": torch.bool}
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")

    def array(dtype, dims):
        if dtype == "s32":
            return torch.randint(0, 1000, dims, device="cuda", dtype=torch.int32)
        if dtype == "pred":
            return torch.rand(dims, device="cuda") > 0.2
        return torch.empty(dims, device="cuda", dtype=types[dtype]).normal_()

    def parameters(path):
        with open(path) as f:
            entry = f.read().split("ENTRY")[1]
        rows = re.findall(r"= (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", entry)
        return [array(t, [int(d) for d in dims.split(",") if d]) for t, dims, _ in sorted(rows, key=lambda r: int(r[2]))]

    def measure(fn, path):
        arguments = parameters(path)
        compiled = torch.compile(fn, dynamic=False)
        for _ in range(3):
            compiled(*arguments)
        times = []
        for _ in range(RUNS):
            flush.add_(1)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            compiled(*arguments)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e3)
        return median(times)

    for name, path in files():
        fn = torch_workloads.PROGRAMS.get(name)
        if fn and (us := attempt(lambda: measure(fn, path), "torch: " + name)) is not None:
            found[name] = round(us, 3)
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def attempt(make, name):
    try:
        return make()
    except Exception as problem:  # of many kinds; the others go on
        print(f"{name}: {str(problem)[:400]}", file=sys.stderr)
        return None


def main():
    wanted = sys.argv[1:] or ["jax", "torch"]
    found, how = {peer: {} for peer in wanted}, {}

    def tell(*_):
        print(json.dumps({**{peer: times or None for peer, times in found.items()}, "how": how}), flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, tell)
    programs = {"jax": jax_programs, "torch": torch_programs}
    for peer in wanted:
        attempt(lambda: programs[peer](found[peer], how), peer)
    tell()


if __name__ == "__main__":
    main()

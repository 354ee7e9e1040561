#!/usr/bin/env python3
"""on_gpu.py: the workloads and examples through XLA (JAX), some examples through PyTorch's compiler, where they are installed
and see a GPU. Prints one JSON object: {"jax": {NAME: microseconds}, "torch": {...}}; a peer that is missing is null. Every
run begins with a cold L2 cache: a buffer larger than it is written in between."""
import glob
import json
import os
import sys
import time

sys.dont_write_bytecode = True
import xla

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SHAPES = {"gelu": (6, 512, 4096), "gelu_f32": (2048, 4096), "swiglu": (1024, 8192), "bias_relu": (4096, 2048),
          "transpose": (512, 768)}
RUNS = 20
FLUSH_BYTES = 512 << 20


def median(values):
    return sorted(values)[len(values) // 2]


def files():
    for folder, prefix in (("benchmarks/workloads", ""), ("examples", "examples/")):
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "*.hlo"))):
            yield prefix + os.path.splitext(os.path.basename(path))[0], path


def jax_programs(wanted="gpu"):
    import jax
    import jax.numpy as jnp
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir
    if jax.default_backend() != wanted:
        return None
    device = jax.devices()[0]
    types = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32, "f64": jnp.float64, "i1": jnp.bool_,
             "i4": jnp.int4, "i8": jnp.int8, "ui8": jnp.uint8, "i32": jnp.int32, "ui32": jnp.uint32,
             "f8E4M3FN": jnp.float8_e4m3fn, "complex<f32>": jnp.complex64}
    flush = jnp.zeros(FLUSH_BYTES // 4, jnp.float32)
    wipe = jax.jit(lambda f: f + 1)

    def ones(type):
        t = ir.RankedTensorType(type)
        return jnp.ones(tuple(t.shape), types[str(t.element_type)])

    def measure(path):
        with open(path) as f:
            parsed = xla.parse(f.read())
        program = device.client.compile_and_load(parsed, _jax.DeviceList((device,)), xla.options_of_one_device())
        entry = next(op for op in parsed.body.operations if op.name.value == "main")
        arguments = [ones(t) for t in entry.type.inputs]
        times = []
        for _ in range(RUNS + 1):
            wipe(flush).block_until_ready()
            start = time.perf_counter()
            results = program.execute_sharded(arguments).disassemble_into_single_device_arrays()
            for a in results:
                a[0].block_until_ready()
            times.append(time.perf_counter() - start)
        return median(times[1:]) * 1e6

    found = {}
    for name, path in files():
        if (us := attempt(lambda: measure(path), name)) is not None:
            found[name] = round(us, 3)
    return found


def torch_programs():
    import torch
    if not torch.cuda.is_available():
        return None
    b, f = torch.bfloat16, torch.float32

    def array(shape, t):
        return torch.randn(shape, device="cuda", dtype=f).to(t)

    s = SHAPES
    programs = {
        "gelu": (lambda x: x * ((torch.tanh((x + x * x * x * 0.044708) * 0.79785) + 1) * 0.5), [array(s["gelu"], b)]),
        "gelu_f32": (lambda x: x * ((torch.tanh((x + x * x * x * 0.044715) * 0.797884583) + 1) * 0.5),
                     [array(s["gelu_f32"], f)]),
        "swiglu": (lambda g, u: g * torch.sigmoid(g) * u, [array(s["swiglu"], b), array(s["swiglu"], b)]),
        "bias_relu": (lambda x, w: torch.relu(x.to(f) + w).to(b), [array(s["bias_relu"], b), array(s["bias_relu"][1:], f)]),
        "transpose": (lambda x: (x * 0.125).T.contiguous(), [array(s["transpose"], f)]),
    }
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")

    def measure(fn, args):
        compiled = torch.compile(fn, dynamic=False)
        for _ in range(3):
            compiled(*args)
        times = []
        for _ in range(RUNS):
            flush.add_(1)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            compiled(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3)
        return median(times) * 1e6

    return {"examples/" + name: round(measure(*p), 3) for name, p in programs.items()}


def attempt(make, name):
    try:
        return make()
    except Exception as problem:  # of many kinds; the others go on
        print(f"{name}: {problem}", file=sys.stderr)
        return None


if __name__ == "__main__":
    print(json.dumps({"jax": attempt(jax_programs, "jax"), "torch": attempt(torch_programs, "torch")}))

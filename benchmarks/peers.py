#!/usr/bin/env python3
"""peers.py FOLDER: the same computations as the examples in FOLDER, through JAX (XLA) and PyTorch's compiler, where they
are installed and see a GPU. Prints one JSON object: {"jax": {NAME: microseconds}, "torch": {...}}; a peer that is missing
is null. Every run begins with a cold L2 cache: a buffer larger than it is written in between."""
import json
import sys
import time

SHAPES = {"gelu": (6, 512, 4096), "gelu_f32": (2048, 4096), "swiglu": (1024, 8192), "bias_relu": (4096, 2048),
          "residual_dropout": (4, 512, 2048), "scale_rows": (2048, 4096), "transpose": (512, 768), "pad_slice": (2048, 2048)}
RUNS = 20
FLUSH_BYTES = 512 << 20


def median(values):
    return sorted(values)[len(values) // 2]


def jax_programs():
    import jax
    import jax.numpy as jnp
    if jax.default_backend() != "gpu":
        return None
    b = jnp.bfloat16

    def gelu(x, half, one, outer, inner):
        return x * ((jnp.tanh((x + x * x * x * inner) * outer) + one) * half)

    def arrays(*specs):
        keys = jax.random.split(jax.random.key(0), len(specs))
        return [jax.random.normal(k, s, jnp.float32).astype(t) for k, (s, t) in zip(keys, specs)]

    s = SHAPES
    programs = {
        "gelu": (lambda x: gelu(x, b(0.5), b(1), b(0.79785), b(0.044708)), arrays((s["gelu"], b))),
        "gelu_f32": (lambda x: gelu(x, 0.5, 1.0, 0.797884583, 0.044715), arrays((s["gelu_f32"], jnp.float32))),
        "swiglu": (lambda g, u: g * jax.nn.sigmoid(g) * u, arrays((s["swiglu"], b), (s["swiglu"], b))),
        "bias_relu": (lambda x, w: jnp.maximum(x.astype(jnp.float32) + w, 0).astype(b),
                      arrays((s["bias_relu"], b), (s["bias_relu"][1:], jnp.float32))),
        "residual_dropout": (lambda x, k, r: r + jnp.where(k > 0, x * b(1.1111), b(0)),
                             arrays(*[(s["residual_dropout"], b)] * 3)),
        "scale_rows": (lambda x, m, w: (x.astype(jnp.float32) * jax.lax.rsqrt(m * m + 1e-6)[:, None]).astype(b) * w,
                       arrays((s["scale_rows"], b), (s["scale_rows"][:1], jnp.float32), (s["scale_rows"][1:], b))),
        "transpose": (lambda x: (x * 0.125).T, arrays((s["transpose"], jnp.float32))),
        "pad_slice": (lambda x: jnp.pad(x, ((0, 0), (1, 1)))[:, 2:] - x, arrays((s["pad_slice"], jnp.float32))),
    }
    flush = jnp.zeros(FLUSH_BYTES // 4, jnp.float32)
    wipe = jax.jit(lambda f: f + 1)

    def measure(fn, args):
        compiled = jax.jit(fn)
        compiled(*args).block_until_ready()
        empty = jax.jit(lambda x: x[:1])
        empty(args[0]).block_until_ready()
        times = []
        for _ in range(RUNS):
            wipe(flush).block_until_ready()
            t = time.perf_counter()
            compiled(*args).block_until_ready()
            times.append(time.perf_counter() - t)
        return median(times) * 1e6

    return {name: round(measure(*p), 3) for name, p in programs.items()}


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

    return {name: round(measure(*p), 3) for name, p in programs.items()}


def attempt(make):
    try:
        return make()
    except Exception as problem:
        print(f"{make.__name__}: {problem}", file=sys.stderr)
        return None


if __name__ == "__main__":
    print(json.dumps({"jax": attempt(jax_programs), "torch": attempt(torch_programs)}))

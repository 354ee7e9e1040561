"""Triton kernels for some of the HLO files beside: KERNELS[name] = (kernel, buffers, scalars, constants, grid, warps).

A buffer's row: "input N" or "output N" of the HLO's parameters and results (both, where a result takes a parameter's place),
Triton's type, bytes, shape.
"""
import triton
import triton.language as tl


def blocks(n, size):
    return -(-n // size)


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    inner = 0.797884583 * (v + 0.044715 * v * v * v)
    t = 1.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0)
    tl.store(y + at, 0.5 * v * (1.0 + t), mask=at < n)


@triton.jit
def swiglu(gate, up, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n).to(tl.float32)
    u = tl.load(up + at, mask=at < n)
    s = (g * tl.sigmoid(g)).to(tl.bfloat16)
    tl.store(y + at, s * u, mask=at < n)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * columns
    v = tl.load(x + base + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + base + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def row_sum(x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for base in range(0, columns, BLOCK):
        at = base + tl.arange(0, BLOCK)
        inside = (row[:, None] < rows) & (at[None, :] < columns)
        total += tl.load(x + row[:, None] * columns + at[None, :], mask=inside, other=0.0)
    tl.store(y + row, tl.sum(total, axis=1), mask=row < rows)


@triton.jit
def column_sum(x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for base in range(0, rows, ROWS):
        row = base + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (at[None, :] < columns)
        total += tl.load(x + row[:, None] * columns + at[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, tl.sum(total, axis=0).to(tl.bfloat16), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * columns
    inside = at < columns
    v = tl.load(x + base + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    factor = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    w = tl.load(weight + at, mask=inside)
    b = tl.load(bias + at, mask=inside)
    tl.store(y + base + at, (centred * factor * w + b).to(tl.bfloat16), mask=inside)


@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    v = tl.load(x + row[:, None] * columns + column[None, :], mask=inside) * 0.125
    tl.store(y + column[:, None] * rows + row[None, :], tl.trans(v), mask=tl.trans(inside))


@triton.jit
def scatter_add(table, indices, updates, size, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(indices + at, mask=at < n, other=-1)
    v = tl.load(updates + at, mask=at < n)
    tl.atomic_add(table + to, v, mask=(to >= 0) & (to < size))


@triton.jit
def cumulative_sum(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * columns
    v = tl.load(x + base + at, mask=at < columns, other=0.0)
    tl.store(y + base + at, tl.cumsum(v, axis=0), mask=at < columns)


@triton.jit
def argmax(x, most, where, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    value, index = tl.max(v, axis=0, return_indices=True)
    tl.store(most + row, value)
    tl.store(where + row, index)


def flat(name, kernel, inputs, output, n, block=512, warps=4):
    """A kernel over n elements: inputs and output are (argument, Triton's type, bytes an element, shape)."""
    buffers = {a: (f"input {i}", t, n * b, s) for i, (a, t, b, s) in enumerate(inputs)}
    a, t, b, s = output
    buffers[a] = ("output 0", t, n * b, s)
    return {name: (kernel, buffers, {"n": n}, {"BLOCK": block}, (blocks(n, block), 1, 1), warps)}


KERNELS = {
    **flat("gelu_f32", gelu, [("x", "fp32", 4, "f32[260,520]")], ("y", "fp32", 4, "f32[260,520]"), 260 * 520, 1024),
    **flat("swiglu", swiglu, [("gate", "bf16", 2, "bf16[130,1040]"), ("up", "bf16", 2, "bf16[130,1040]")],
           ("y", "bf16", 2, "bf16[130,1040]"), 130 * 1040),
    "softmax": (softmax, {"x": ("input 0", "fp32", 268000, "f32[67,1000]"), "y": ("output 0", "fp32", 268000, "f32[67,1000]")},
                {"columns": 1000}, {"BLOCK": 1024}, (67, 1, 1), 4),
    "row_sum": (row_sum, {"x": ("input 0", "fp32", 257 * 999 * 4, "f32[257,999]"), "y": ("output 0", "fp32", 1028, "f32[257]")},
                {"rows": 257, "columns": 999}, {"ROWS": 4, "BLOCK": 128}, (65, 1, 1), 4),
    "column_sum": (column_sum, {"x": ("input 0", "bf16", 600000, "bf16[1000,300]"), "y": ("output 0", "bf16", 600, "bf16[300]")},
                   {"rows": 1000, "columns": 300}, {"ROWS": 16, "BLOCK": 64}, (5, 1, 1), 8),
    "layer_norm": (layer_norm, {"x": ("input 0", "bf16", 199680, "bf16[130,768]"), "weight": ("input 1", "fp32", 3072, "f32[768]"),
                                "bias": ("input 2", "fp32", 3072, "f32[768]"), "y": ("output 0", "bf16", 199680, "bf16[130,768]")},
                   {"columns": 768}, {"BLOCK": 1024}, (130, 1, 1), 4),
    "transpose": (transpose, {"x": ("input 0", "fp32", 25740, "f32[65,99]"), "y": ("output 0", "fp32", 25740, "f32[99,65]")},
                  {"rows": 65, "columns": 99}, {"BLOCK": 32}, (3, 4, 1), 4),
    "scatter_add": (scatter_add, {"table": ("input 0 output 0", "fp32", 2004, "f32[501]"), "indices": ("input 1", "i32", 20000, "s32[5000,1]"),
                                  "updates": ("input 2", "fp32", 20000, "f32[5000]")},
                    {"size": 501, "n": 5000}, {"BLOCK": 256}, (20, 1, 1), 4),
    "cumulative_sum": (cumulative_sum, {"x": ("input 0", "fp32", 66000, "f32[33,500]"), "y": ("output 0", "fp32", 66000, "f32[33,500]")},
                       {"columns": 500}, {"BLOCK": 512}, (33, 1, 1), 4),
    "argmax": (argmax, {"x": ("input 0", "fp32", 202020, "f32[65,777]"), "most": ("output 0", "fp32", 260, "f32[65]"),
                        "where": ("output 1", "i32", 260, "s32[65]")}, {"columns": 777}, {"BLOCK": 1024}, (65, 1, 1), 4),
}

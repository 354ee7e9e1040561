#!/usr/bin/env python3
"""make.py [FOLDER]: writes the workloads of this folder as HLO, NAME.hlo at the sizes that are measured and small/NAME.hlo for
tests; into FOLDER, or beside itself.

A workload is a function of its sizes that builds one computation; sums of 16-bit values are f32, as frameworks write them.
"""
import math
import pathlib
import sys


class Value:
    def __init__(self, type, dims, name):
        self.type, self.dims, self.name = type, tuple(dims), name

    @property
    def shape(self):
        return f"{self.type}[{','.join(map(str, self.dims))}]"


class Computation:
    """The text of ENTRY; every method adds an instruction whose shape it works out."""

    def __init__(self):
        self.lines, self.reducers, self.parameters, self.count = [], {}, 0, 0

    def add_line(self, type, dims, text, name=None):
        self.count += 1
        v = Value(type, dims, name or f"v{self.count}")
        self.lines.append((v, text))
        return v

    def parameter(self, name, type, *dims):
        self.parameters += 1
        return self.add_line(type, dims, f"parameter({self.parameters - 1})", name)

    def constant(self, type, value, dims=()):
        text = {math.inf: "inf", -math.inf: "-inf"}.get(value, value)
        c = self.add_line(type, (), f"constant({text})")
        return self.broadcast(c, dims, ()) if dims else c

    def op(self, opcode, *operands, type=None, more=""):
        names = ", ".join(o.name for o in operands)
        return self.add_line(type or operands[-1].type, operands[-1].dims, f"{opcode}({names}){more}")

    def convert(self, type, x):
        return x if x.type == type else self.op("convert", x, type=type)

    def broadcast(self, x, dims, where):
        return self.add_line(x.type, dims, f"broadcast({x.name}), dimensions={{{','.join(map(str, where))}}}")

    def transpose(self, x, order):
        dims = [x.dims[d] for d in order]
        return self.add_line(x.type, dims, f"transpose({x.name}), dimensions={{{','.join(map(str, order))}}}")

    def slice(self, x, dim, lo, hi):
        ranges = ", ".join(f"[{lo}:{hi}]" if d == dim else f"[0:{n}]" for d, n in enumerate(x.dims))
        dims = [hi - lo if d == dim else n for d, n in enumerate(x.dims)]
        return self.add_line(x.type, dims, f"slice({x.name}), slice={{{ranges}}}")

    def concatenate(self, x, y, dim):
        dims = [n + y.dims[d] if d == dim else n for d, n in enumerate(x.dims)]
        return self.add_line(x.type, dims, f"concatenate({x.name}, {y.name}), dimensions={{{dim}}}")

    def iota(self, type, dims, dim):
        return self.add_line(type, dims, f"iota(), iota_dimension={dim}")

    def compare(self, x, y, direction):
        return self.op("compare", x, y, type="pred", more=f", direction={direction}")

    def reducer(self, opcode, type):
        name = f"{opcode}_{type}"
        self.reducers[name] = (
            f"{name} {{\n  a = {type}[] parameter(0)\n  b = {type}[] parameter(1)\n"
            f"  ROOT r = {type}[] {opcode}(a, b)\n}}\n"
        )
        return name

    def reduce(self, opcode, x, *over):
        start = self.constant(x.type, {"add": 0, "maximum": -math.inf}[opcode])
        dims = [n for d, n in enumerate(x.dims) if d not in over]
        where = ",".join(map(str, over))
        text = f"reduce({x.name}, {start.name}), dimensions={{{where}}}, to_apply={self.reducer(opcode, x.type)}"
        return self.add_line(x.type, dims, text)

    def mean(self, x, *over):
        total = self.reduce("add", x, *over)
        n = math.prod(x.dims[d] for d in over)
        return self.op("multiply", self.constant(x.type, 1 / n, total.dims), total)

    def argmax(self, x, dim):
        """The largest values and the first places that hold them."""
        self.reducers["argmax"] = """argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, first)
  left = pred[] or(more, tie)
  value = f32[] select(left, a, b)
  place = s32[] select(left, i, j)
  ROOT r = (f32[], s32[]) tuple(value, place)
}
"""
        places = self.iota("s32", x.dims, dim)
        start, zero = self.constant("f32", -math.inf), self.constant("s32", 0)
        dims = [n for d, n in enumerate(x.dims) if d != dim]
        shape = ",".join(map(str, dims))
        both = self.add_line(
            f"(f32[{shape}], s32[{shape}])", (),
            f"reduce({x.name}, {places.name}, {start.name}, {zero.name}), dimensions={{{dim}}}, to_apply=argmax",
        )
        return [
            self.add_line(t, dims, f"get-tuple-element({both.name}), index={i}") for i, t in enumerate(("f32", "s32"))
        ]

    def text(self, name, results):
        if len(results) > 1:
            names = ", ".join(r.name for r in results)
            self.lines.append((Value(f"({', '.join(r.shape for r in results)})", (), "results"), f"tuple({names})"))
        last = len(self.lines) - 1
        if len(results) == 1 and self.lines[last][0] is not results[0]:
            raise ValueError(f"{name}: the result is not the last instruction")
        body = []
        for i, (v, text) in enumerate(self.lines):
            shape = v.type if v.type.startswith("(") else v.shape
            body.append(f"  {'ROOT ' if i == last else ''}{v.name} = {shape} {text}")
        parts = [f"HloModule {name}\n", *self.reducers.values(), "ENTRY main {\n" + "\n".join(body) + "\n}\n"]
        return "\n".join(parts)


# --- pieces -----------------------------------------------------------------------------------------------------------


def along_rows(c, x, dims):
    """A value for each row, for all elements of it."""
    return c.broadcast(x, dims, range(len(x.dims)))


def along_columns(c, x, dims):
    return c.broadcast(x, dims, [len(dims) - 1])


def softmax_parts(c, x):
    """exp(x - max) and its sums along the last dimension, in f32."""
    last = len(x.dims) - 1
    largest = c.reduce("maximum", x, last)
    e = c.op("exponential", c.op("subtract", x, along_rows(c, largest, x.dims)))
    return largest, e, c.reduce("add", e, last)


def normalised(c, x, epsilon=1e-5):
    """(x - mean) / sqrt(variance + epsilon) along the last dimension, and 1 / sqrt(...) of each row."""
    last = len(x.dims) - 1
    centred = c.op("subtract", x, along_rows(c, c.mean(x, last), x.dims))
    variance = c.mean(c.op("multiply", centred, centred), last)
    scale = c.op("rsqrt", c.op("add", c.constant("f32", epsilon, variance.dims), variance))
    return c.op("multiply", centred, along_rows(c, scale, x.dims)), scale


def rms_scale(c, x, over, epsilon=1e-6):
    squares = c.mean(c.op("multiply", x, x), *over)
    return c.op("rsqrt", c.op("add", c.constant("f32", epsilon, squares.dims), squares))


# --- workloads --------------------------------------------------------------------------------------------------------


def add(c, n):
    return [c.op("add", c.parameter("x", "f32", n), c.parameter("y", "f32", n))]


def exp(c, n):
    return [c.op("exponential", c.parameter("x", "f32", n))]


def gelu(c, m, n):
    x = c.parameter("x", "bf16", m, n)
    cube = c.op("multiply", c.op("multiply", x, x), x)
    inner = c.op("add", x, c.op("multiply", c.constant("bf16", 0.044715, (m, n)), cube))
    t = c.op("tanh", c.op("multiply", c.constant("bf16", 0.797884583, (m, n)), inner))
    half = c.op("multiply", c.constant("bf16", 0.5, (m, n)), x)
    return [c.op("multiply", half, c.op("add", c.constant("bf16", 1, (m, n)), t))]


def swiglu(c, m, n):
    a, b = c.parameter("a", "bf16", m, n), c.parameter("b", "bf16", m, n)
    return [c.op("multiply", c.op("multiply", a, c.op("logistic", a)), b)]


def scale_bias_relu(c, m, n):
    x = c.parameter("x", "bf16", m, n)
    scale, bias = c.parameter("scale", "bf16", n), c.parameter("bias", "bf16", n)
    y = c.op("multiply", x, along_columns(c, scale, x.dims))
    y = c.op("add", y, along_columns(c, bias, x.dims))
    return [c.op("maximum", y, c.constant("bf16", 0, (m, n)))]


def bias_dropout_residual(c, m, n):
    x, residual = c.parameter("x", "bf16", m, n), c.parameter("residual", "bf16", m, n)
    bias, mask = c.parameter("bias", "bf16", n), c.parameter("mask", "pred", m, n)
    y = c.op("add", x, along_columns(c, bias, x.dims))
    y = c.op("multiply", y, c.constant("bf16", 1.25, (m, n)))
    return [c.op("add", c.op("select", mask, y, c.constant("bf16", 0, (m, n))), residual)]


def converts(c, n):
    x, scale = c.parameter("x", "f32", n), c.parameter("scale", "f32")
    rounded = c.convert("f32", c.convert("bf16", x))
    scaled = c.op("multiply", x, c.broadcast(scale, (n,), ()))
    clamped = c.op("clamp", c.constant("f32", -448, (n,)), scaled, c.constant("f32", 448, (n,)))
    return [rounded, c.convert("f8e4m3fn", clamped)]


def transpose(c, m, n):
    return [c.transpose(c.parameter("x", "f32", m, n), (1, 0))]


def transpose_heads(c, b, t, h, d):
    return [c.transpose(c.parameter("x", "bf16", b, t, h, d), (0, 2, 1, 3))]


def transpose_reduce(c, b, m, n, k):
    x = c.parameter("x", "f32", b, m, n, k)
    y = c.transpose(x, (0, 3, 1, 2))
    return [c.reduce("add", c.op("multiply", y, y), 3)]


def row_reductions(c, b, m, n):
    x = c.parameter("x", "f32", b, m, n)
    return [c.reduce("add", x, 2), *c.argmax(x, 2)]


def column_sum(c, m, n):
    return [c.convert("bf16", c.reduce("add", c.convert("f32", c.parameter("x", "bf16", m, n)), 0))]


def full_sum(c, n):
    return [c.reduce("add", c.parameter("x", "f32", n), 0)]


def softmax(c, type, m, n):
    x = c.convert("f32", c.parameter("x", type, m, n))
    _, e, total = softmax_parts(c, x)
    return [c.convert(type, c.op("divide", e, along_rows(c, total, x.dims)))]


def cross_entropy(c, m, n):
    x, labels = c.convert("f32", c.parameter("logits", "bf16", m, n)), c.parameter("labels", "s32", m)
    largest, _, total = softmax_parts(c, x)
    is_label = c.compare(c.iota("s32", (m, n), 1), along_rows(c, labels, (m, n)), "EQ")
    chosen = c.reduce("add", c.op("select", is_label, x, c.constant("f32", 0, (m, n))), 1)
    loss = c.op("subtract", c.op("add", largest, c.op("log", total)), chosen)
    return [c.mean(loss, 0)]


def rms_norm(c, m, n):
    given, weight = c.parameter("x", "bf16", m, n), c.parameter("weight", "bf16", n)
    x = c.convert("f32", given)
    y = c.op("multiply", x, along_rows(c, rms_scale(c, x, [1]), x.dims))
    return [c.op("multiply", c.convert("bf16", y), along_columns(c, weight, x.dims))]


def add_rms_norm(c, m, n):
    x, residual = c.parameter("x", "bf16", m, n), c.parameter("residual", "bf16", m, n)
    weight = c.parameter("weight", "bf16", n)
    total = c.op("add", x, residual)
    wide = c.convert("f32", total)
    y = c.op("multiply", wide, along_rows(c, rms_scale(c, wide, [1]), wide.dims))
    return [total, c.op("multiply", c.convert("bf16", y), along_columns(c, weight, x.dims))]


def layer_norm(c, m, n):
    x = c.convert("f32", c.parameter("x", "f16", m, n))
    weight, bias = c.parameter("weight", "f16", n), c.parameter("bias", "f16", n)
    y = c.convert("f16", normalised(c, x)[0])
    return [c.op("add", c.op("multiply", y, along_columns(c, weight, x.dims)), along_columns(c, bias, x.dims))]


def layer_norm_backward(c, m, n):
    x, dy = c.convert("f32", c.parameter("x", "bf16", m, n)), c.convert("f32", c.parameter("dy", "bf16", m, n))
    weight = c.convert("f32", c.parameter("weight", "bf16", n))
    y, scale = normalised(c, x)
    g = c.op("multiply", dy, along_columns(c, weight, x.dims))
    mean_g, mean_gy = c.mean(g, 1), c.mean(c.op("multiply", g, y), 1)
    inner = c.op("subtract", g, along_rows(c, mean_g, x.dims))
    inner = c.op("subtract", inner, c.op("multiply", y, along_rows(c, mean_gy, x.dims)))
    dx = c.convert("bf16", c.op("multiply", inner, along_rows(c, scale, x.dims)))
    dweight = c.convert("bf16", c.reduce("add", c.op("multiply", dy, y), 0))
    return [dx, dweight, c.convert("bf16", c.reduce("add", dy, 0))]


def batch_norm(c, b, k, h, w):
    x = c.parameter("x", "f32", b, k, h, w)
    weight, bias = c.parameter("weight", "f32", k), c.parameter("bias", "f32", k)
    mean = c.mean(x, 0, 2, 3)
    centred = c.op("subtract", x, c.broadcast(mean, x.dims, [1]))
    variance = c.mean(c.op("multiply", centred, centred), 0, 2, 3)
    scale = c.op("rsqrt", c.op("add", c.constant("f32", 1e-5, (k,)), variance))
    scale = c.op("multiply", scale, weight)
    y = c.op("multiply", centred, c.broadcast(scale, x.dims, [1]))
    return [c.op("add", y, c.broadcast(bias, x.dims, [1])), mean, variance]


def rms_norm_channels(c, b, k, h, w):
    x = c.parameter("x", "f32", b, k, h, w)
    return [c.op("multiply", x, c.broadcast(rms_scale(c, x, [1]), x.dims, [0, 2, 3]))]


def rope(c, b, t, h, d):
    """Halves of each head's vector, turned by an angle of the position: both of queries and keys."""
    cos, sin = c.parameter("cos", "f32", t, d), c.parameter("sin", "f32", t, d)
    results = []
    for name in ("q", "k"):
        x = c.convert("f32", c.parameter(name, "bf16", b, t, h, d))
        low, high = c.slice(x, 3, 0, d // 2), c.slice(x, 3, d // 2, d)
        turned = c.concatenate(c.op("negate", high), low, 3)
        y = c.op("multiply", x, c.broadcast(cos, x.dims, [1, 3]))
        z = c.op("multiply", turned, c.broadcast(sin, x.dims, [1, 3]))
        results.append(c.convert("bf16", c.op("add", y, z)))
    return results


def cumsum(c, m, n):
    x = c.parameter("x", "f32", m, n)
    zero = c.constant("f32", 0)
    reducer = c.reducer("add", "f32")
    text = f"reduce-window({x.name}, {zero.name}), window={{size=1x{n} pad=0_0x{n - 1}_0}}, to_apply={reducer}"
    return [c.add_line("f32", x.dims, text)]


def dense(c, m, k, n):
    x, w, bias = c.parameter("x", "bf16", m, k), c.parameter("w", "bf16", k, n), c.parameter("bias", "bf16", n)
    text = f"dot({x.name}, {w.name}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    y = c.op("add", c.add_line("bf16", (m, n), text), along_columns(c, bias, (m, n)))
    return [c.op("maximum", y, c.constant("bf16", 0, (m, n)))]


def embedding(c, v, d, b, t):
    table, ids = c.parameter("table", "bf16", v, d), c.parameter("ids", "s32", b, t)
    positions = c.parameter("positions", "bf16", t, d)
    text = (
        f"gather({table.name}, {ids.name}), offset_dims={{2}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
        f"index_vector_dim=2, slice_sizes={{1,{d}}}"
    )
    rows = c.add_line("bf16", (b, t, d), text)
    return [c.op("add", rows, c.broadcast(positions, rows.dims, [1, 2]))]


# Name, function, the sizes that are measured, small ones.
WORKLOADS = [
    ("add", add, (2**27,), (4099,)),
    ("exp", exp, (2**27,), (4099,)),
    ("gelu", gelu, (8192, 8192), (37, 64)),
    ("swiglu", swiglu, (8192, 32768), (37, 96)),
    ("scale_bias_relu", scale_bias_relu, (16384, 16384), (33, 72)),
    ("bias_dropout_residual", bias_dropout_residual, (8192, 8192), (33, 72)),
    ("converts", converts, (2**28,), (4101,)),
    ("transpose", transpose, (16384, 16384), (67, 45)),
    ("transpose_heads", transpose_heads, (16, 2048, 32, 128), (2, 17, 4, 16)),
    ("transpose_reduce", transpose_reduce, (4, 8192, 8192, 4), (2, 9, 70, 4)),
    ("row_reductions", row_reductions, (128, 4096, 4095), (2, 9, 131)),
    ("column_sum", column_sum, (16384, 4096), (131, 72)),
    ("full_sum", full_sum, (2**30,), (5001,)),
    ("softmax", lambda c, *s: softmax(c, "bf16", *s), (32768, 4096), (19, 130)),
    ("softmax_long", lambda c, *s: softmax(c, "bf16", *s), (16384, 131072), (5, 1030)),
    ("softmax_small", lambda c, *s: softmax(c, "f16", *s), (4096, 384), (19, 48)),
    ("cross_entropy", cross_entropy, (16384, 32768), (19, 130)),
    ("rms_norm", rms_norm, (32768, 4096), (19, 130)),
    ("add_rms_norm", add_rms_norm, (2048, 8192), (19, 130)),
    ("layer_norm", layer_norm, (4096, 4096), (19, 130)),
    ("layer_norm_backward", layer_norm_backward, (8192, 4096), (19, 130)),
    ("batch_norm", batch_norm, (64, 64, 512, 512), (3, 5, 7, 9)),
    ("rms_norm_channels", rms_norm_channels, (112, 64, 512, 512), (3, 5, 7, 9)),
    ("rope", rope, (4, 4096, 32, 128), (2, 9, 3, 16)),
    ("cumsum", cumsum, (32768, 32768), (9, 67)),
    ("dense", dense, (2048, 1024, 4096), (19, 300, 72)),
    ("embedding", embedding, (131072, 4096, 8, 2048), (61, 40, 3, 7)),
]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    (folder / "small").mkdir(parents=True, exist_ok=True)
    for name, function, *sizes in WORKLOADS:
        for path, size in zip((folder, folder / "small"), sizes):
            c = Computation()
            (path / f"{name}.hlo").write_text(c.text(name, function(c, *size)))


main()

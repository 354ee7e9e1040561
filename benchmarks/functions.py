#!/usr/bin/env python3
"""functions.py FOLDER [BITS]: modules of one elementary function each, whose operands a module makes itself: of 16-bit types all
patterns (of two operands 2^BITS pairs), of others 2^BITS patterns that multiples of the golden ratio spread evenly. What a
GPU makes of them is compared with what the host makes, bit for bit (gpu.sh). BITS: 24, of f64 two fewer, of complex four."""
import os
import sys

UNARY = ("exponential exponential-minus-one log log-plus-one logistic tanh erf sqrt rsqrt cbrt sine cosine tan exp10 sinh cosh "
         "asin acos atan asinh acosh atanh").split()
BINARY = "divide remainder power atan2".split()
COMPLEX = "abs exponential log sqrt rsqrt sine cosine tan tanh exponential-minus-one log-plus-one".split()
PARTS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 32, "c128": 64}
FLOATS = {16: None, 32: "f32", 64: "f64"}
MULTIPLIERS = {32: (2654435769, 2246822519, 3266489917, 668265263),
               64: (0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x27d4eb2f165667c5)}


class Module:
    def __init__(self, count):
        self.count, self.lines = count, []

    def add(self, dtype, text):
        self.lines.append(f"  v{len(self.lines)} = {dtype}[{self.count}] {text}")
        return f"v{len(self.lines) - 1}"

    def scalar(self, dtype, value):
        self.lines.append(f"  c{len(self.lines)} = {dtype}[] constant({value})")
        return self.add(dtype, f"broadcast(c{len(self.lines) - 1}), dimensions={{}}")

    def patterns(self, dtype, bits, k, pairs):
        """The k-th operand's part, of the type and so many bits, one of two operands or the only one."""
        if bits == 16:
            wide = self.add("u32", "iota(), iota_dimension=0")
            if pairs:
                wide = self.add("u32", f"multiply({wide}, {self.scalar('u32', MULTIPLIERS[32][0])})")
            if k:
                wide = self.add("u32", f"shift-right-logical({wide}, {self.scalar('u32', 16)})")
            low = self.add("u32", f"and({wide}, {self.scalar('u32', 65535)})")
            return self.add(dtype, f"bitcast-convert({self.add('u16', f'convert({low})')})")
        word = f"u{bits}"
        number = self.add(word, "iota(), iota_dimension=0")
        return self.add(dtype, f"bitcast-convert({self.add(word, f'multiply({number}, {self.scalar(word, MULTIPLIERS[bits][k])})')})")

    def operand(self, dtype, k, pairs):
        bits = PARTS[dtype]
        if dtype[0] != "c":
            return self.patterns(dtype, bits, k, pairs)
        part = FLOATS[bits]
        return self.add(dtype, f"complex({self.patterns(part, bits, 2 * k, pairs)}, {self.patterns(part, bits, 2 * k + 1, pairs)})")


def count_of(dtype, operands, bits):
    if PARTS[dtype] == 16 and operands == 1:
        return 1 << 16
    return 1 << (bits - (2 if dtype == "f64" else 4 if dtype[0] == "c" else 0))


def text_of(op, dtype, operands, bits):
    m = Module(count_of(dtype, operands, bits))
    given = ", ".join(m.operand(dtype, k, operands > 1) for k in range(operands))
    result = {"c64": "f32", "c128": "f64"}.get(dtype, dtype) if op == "abs" else dtype
    m.add(result, f"{op}({given})")
    m.lines[-1] = m.lines[-1].replace("  v", "  ROOT v", 1)
    name = f"{op}_{dtype}".replace("-", "_")
    return name, "\n".join([f"HloModule {name}", "", "ENTRY main {", *m.lines, "}", ""])


def main():
    folder, bits = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24
    os.makedirs(folder, exist_ok=True)
    rows = [(op, t, 1) for t in ("f16", "bf16", "f32", "f64") for op in UNARY]
    rows += [(op, t, 2) for t in ("f16", "bf16", "f32", "f64") for op in BINARY]
    rows += [(op, t, 1) for t in ("c64", "c128") for op in COMPLEX]
    rows += [(op, t, 2) for t in ("c64", "c128") for op in ("divide", "power", "atan2")]
    for row in rows:
        name, text = text_of(*row, bits)
        with open(os.path.join(folder, name + ".hlo"), "w") as f:
            f.write(text)


main()

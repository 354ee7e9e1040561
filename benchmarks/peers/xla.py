"""XLA:GPU without a GPU: its compiler runs ahead of time against the description of a device. Needs the Python packages
jax[cuda13]; jax 0.10.2 was used, whose internals this is written for.

Autotuning is off, as it needs a device; one thread compiles. What XLA fuses by itself is left to it: a fusion is given to
it as a call, which it takes apart.
"""
import dataclasses
import math
import os
import re
import shutil
import statistics
import struct
import tempfile
import time

import program

FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_force_compilation_parallelism=1"
DESCRIPTION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "h100.textproto")


class Missing(Exception):
    """XLA is not installed; the text says so."""


Unreadable = program.Unreadable


def parse(hlo):
    """HLO text as what XLA's clients compile."""
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir
    from jaxlib import _hlo
    flat = re.sub(r"\bfusion\((.*?)\), kind=k\w+, calls=", r"call(\1), to_apply=", hlo)
    module = _hlo.hlo_module_from_text(flat)
    stablehlo = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    return ir.Module.parse(stablehlo, mlir.make_ir_context())


def options_of_one_device():
    import numpy
    from jax._src.lib import xla_client
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    build = options.executable_build_options
    build.num_replicas = build.num_partitions = 1
    build.device_assignment = xla_client.DeviceAssignment.create(numpy.zeros((1, 1), dtype="int32"))
    return options


class Xla:
    def __init__(self):
        os.environ["JAX_PLATFORMS"] = "cpu"  # nobody looks for a device
        os.environ["XLA_FLAGS"] = FLAGS
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
        try:
            import jax
            from jax.experimental import topologies
            from jax._src.lib import _jax
        except ImportError as problem:
            raise Missing(f"XLA is not there ({problem}): it comes with the Python packages jax[cuda13]") from problem
        self.version = jax.__version__
        with open(DESCRIPTION) as f:
            device = topologies.get_topology_desc(platform="cuda", topology_name="x", target_config=f.read(),
                                                  topology="1x1x1").devices
        self.client, self.devices = device[0].client, _jax.DeviceList(tuple(device))

    def compile(self, parsed, dump=None):
        options = options_of_one_device()
        if dump:
            options.env_option_overrides = [("xla_dump_to", dump), ("xla_dump_hlo_as_text", True)]
        self.client.compile(parsed, executable_devices=self.devices, compile_options=options)

    def program(self, hlo):
        dump = tempfile.mkdtemp()
        try:
            self.compile(parse(hlo), dump)
            return of_dumps(dump)
        finally:
            shutil.rmtree(dump)

    def milliseconds(self, hlo, runs):
        """From a parsed module to PTX: what the process takes of the CPU, having compiled before. ptxas is another process. The
        median of so many runs."""
        parsed = parse(hlo)
        times = []
        for run in range(runs + 1):
            start = time.process_time()
            self.compile(parsed)
            times.append(1e3 * (time.process_time() - start))
        return statistics.median(times[1:])


# --- dumps ------------------------------------------------------------------------------------------------------------


def of_dumps(folder):
    texts = {}
    for name in sorted(os.listdir(folder), key=lambda n: (len(n), n)):  # numbers in order
        with open(os.path.join(folder, name)) as f:
            texts[name] = f.read()
    kernels = [t for n, t in texts.items() if n.endswith(".ptx") and ".entry" in t]
    modules = {f"{i}.ptx": program.plain_ptx(t) for i, t in enumerate(kernels)}
    return launches(texts, modules)


def only(texts, end):
    found = [t for n, t in texts.items() if n.endswith(end)]
    if len(found) != 1:
        raise Unreadable(f"{len(found)} dumps end in {end}")
    return found[0]


def allocations(text):
    """Sizes of buffers, parameters by buffer, buffers of constants, and of each value its array."""
    sizes, parameters, constants, values, number = {}, {}, set(), {}, None
    for line in text.splitlines():
        head = re.match(r"allocation (\d+): size (\d+), (.*)", line)
        value = re.match(r"\s*value: <\d+ (\S+)(?: \(phi\))? @0> \(size=(\d+),offset=(\d+)\): (.*)", line)
        if head:
            number = int(head[1])
            sizes[number] = None if "thread-local" in head[3] else int(head[2])
            if m := re.match(r"parameter (\d+)", head[3]):
                parameters[number] = int(m[1])
            if "constant" in head[3]:
                constants.add(number)
        elif value and sizes[number] is not None:
            shape = re.sub(r"\{[\d,]*(?::[^}]*)?\}", "", value[4])
            array = program.Array(0, program.Place(number, int(value[3])), int(value[2]), shape)
            values.setdefault(value[1], array)
    return sizes, parameters, constants, values


@dataclasses.dataclass
class Instruction:
    shape: str
    opcode: str
    text: str  # between the parentheses
    rest: str  # behind them

    @property
    def operands(self):
        return re.findall(r"%([\w.-]+)", self.text)


def instructions_of(text):
    """All of the module by name, as names are unique; those of ENTRY; and its root's name. The state of a loop's condition
    and body has the loop's own first state as its operand: what nothing changes lies where it did."""
    found, entry, root, inside, states = {}, [], None, False, {}
    for line in text.splitlines():
        if m := re.match(r"(ENTRY )?%(\S+) .*\{$", line):
            inside, computation = bool(m[1]), m[2]
        m = re.match(r"\s*(ROOT )?%(\S+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)", line)
        if not m:
            continue
        found[m[2]] = Instruction(*m.groups()[2:])
        if m[4] == "parameter":
            states[computation] = m[2]
        if inside:
            entry.append(m[2])
            root = m[2] if m[1] else root
    for i in [i for i in found.values() if i.opcode == "while"]:
        for computation in re.findall(r"\b(?:condition|body)=%([\w.-]+)", i.rest):
            found[states[computation]].text = i.text
    return found, entry, root


SCALARS = {"s8": "b", "u8": "B", "s16": "h", "u16": "H", "s32": "i", "u32": "I", "s64": "q", "u64": "Q", "f16": "e",
           "f32": "f", "f64": "d", "pred": "?"}


def constant_bytes(name, i):
    """Of a scalar that lies in memory."""
    type, dims = re.match(r"(\w+)\[(.*?)\]", i.shape).groups()
    if i.opcode != "constant" or dims or type not in SCALARS:
        raise Unreadable(f"{name}: a constant in memory of shape {i.shape}")
    v = i.text == "true" if type == "pred" else float(i.text) if type[0] == "f" else int(i.text)
    return struct.pack("<" + SCALARS[type], v)


def arrays_of(name, instructions, values):
    """What an instruction's value is made of: its arrays, by their places in the tuple."""
    i = instructions[name]
    opcode, operands, rest = i.opcode, i.operands, i.rest
    if opcode == "bitcast":
        return arrays_of(operands[0], instructions, values)
    if opcode == "tuple":
        return {(k, *at): a for k, o in enumerate(operands) for at, a in arrays_of(o, instructions, values).items()}
    if opcode == "get-tuple-element":
        k = int(re.search(r"index=(\d+)", rest)[1])
        return {at[1:]: a for at, a in arrays_of(operands[0], instructions, values).items() if at[0] == k}
    if not i.shape.startswith("("):
        return {(): values[name]}
    parts = {re.match(r"(.*)\{([\d,]*)\}$", k): a for k, a in values.items() if k.startswith(name + "{")}
    leaves = {tuple(int(d) for d in m[2].split(",") if d): a for m, a in parts.items() if not a.shape.startswith("(")}
    if opcode in ("while", "parameter"):
        for o in operands:
            leaves = arrays_of(o, instructions, values) | leaves
    return dict(sorted(leaves.items()))


KNOWN = ("kKernel", "kCustomKernel", "kCopy", "kWhile", "kDynamicSliceFusion")


@dataclasses.dataclass
class Thunk:
    number: int
    kind: str
    text: str
    parts: list  # lists of thunks: a loop's condition and body


def thunks_of(text):
    """XLA's steps, from its list: what belongs to one is indented more, a loop's parts under a line each. All or none: a library's calls
    are named."""
    kinds = re.findall(r"\d+: (k\w+)\s+\[", text)
    if others := [k for k in dict.fromkeys(kinds) if k not in KNOWN]:
        raise Unreadable("steps that are no kernels: " + ", ".join(others))
    stack, top = [], []
    for line in text.splitlines():
        m = re.match(r"(\s*)(\d+): (\w+)\s+\[.*?\] ?(.*)", line)
        indent = len(line) - len(line.lstrip())
        if not m:
            if line.strip() in ("condition:", "body:"):
                while len(stack) > 1 and stack[-1][0] > indent:
                    stack.pop()
                stack[-1][1].parts.append([])
            continue
        while stack and stack[-1][0] >= indent:
            stack.pop()
        thunk = Thunk(int(m[2]), m[3], m[4], [])
        if stack and not stack[-1][1].parts:
            stack[-1][1].parts.append([])
        (stack[-1][1].parts[-1] if stack else top).append(thunk)
        stack.append((indent, thunk))
    return top


class Dump:
    """What XLA says of its buffers, instructions and steps, as a program's steps: a kernel's arguments are what the instruction
    reads, then what it makes."""

    def __init__(self, texts, modules):
        self.modules = modules
        allocated = allocations(only(texts, "after_optimizations-buffer-assignment.txt"))
        self.sizes, self.parameters, self.constants, self.values = allocated
        self.instructions, self.entry, self.root = instructions_of(only(texts, "gpu_after_optimizations.txt"))
        self.count = {e: (n, file) for file, ptx in modules.items() for e, n in program.parameter_counts(ptx).items()}
        annotations = re.findall(r'profile_annotation: "(.*?)"\s*thunk_id: (\d+)', only(texts, "thunk_metadata.txt"))
        self.names = {int(i): name for name, i in annotations}
        self.copied = {}

    def arrays(self, name):
        return list(arrays_of(name, self.instructions, self.values).values())

    def steps(self, thunks):
        return [s for t in thunks for s in getattr(self, t.kind)(t)]

    def operands(self, name):
        return [a for o in self.instructions[name].operands for a in self.arrays(o)]

    def kWhile(self, t):
        """A loop whose trips are known, as its trips: the condition once more than the body."""
        m = re.search(r'"known_trip_count":\{"n":"(\d+)"', self.instructions[self.names[t.number]].rest)
        if not m:
            raise Unreadable(f"{self.names[t.number]}: a loop whose trips nobody knows")
        condition, body = t.parts
        return [s for _ in range(int(m[1])) for s in self.steps(condition + body)] + self.steps(condition)

    def kCopy(self, t):
        name = self.names[t.number]
        read, made = self.operands(name), self.arrays(name)
        k = self.copied[name] = (self.copied.get(name, -1) + 1) % len(made)
        if read[k].bytes != made[k].bytes:
            raise Unreadable(f"{name}: a copy of another size")
        return [program.Copy(made[k].place, read[k].place, made[k].bytes)]

    def kDynamicSliceFusion(self, t):
        """A copy from or to a slice that data chooses: the first one, which costs the same."""
        name = self.names[t.number]
        (inner,), = t.parts
        if inner.kind != "kCopy":
            raise Unreadable(f"{name}: a slice for a step of kind {inner.kind}")
        n = bytes_of(self.instructions[self.names[inner.number]].shape)
        made, read = self.arrays(name)[0], self.operands(name)
        source = next((a for a in read if a.bytes == n), read[0]) if made.bytes != n else read[0]
        return [program.Copy(made.place, source.place, n)]

    def kCustomKernel(self, t):
        name = self.names[t.number]
        m = re.match(r"(\S+) grid: \[(.*?)\] threads: \[(.*?)\]\s+shared_memory: (\d+)", t.text)
        if m[1] not in self.count:
            raise Unreadable(f"{name}: the kernel {m[1]} is a library's")
        grid, block = (tuple(map(int, m[k].split(", "))) for k in (2, 3))
        expected, module = self.count[m[1]]
        arguments = [a.place for a in self.operands(name) + self.arrays(name)]
        if expected != len(arguments):
            raise Unreadable(f"{m[1]}: {expected} parameters, {len(arguments)} arguments")
        dynamic = int(m[4]) if ".extern .shared" in self.modules[module] else 0
        return [program.Launch(module, m[1], grid, block, dynamic, arguments)]

    kKernel = kCustomKernel


def bytes_of(shape):
    """Of an array, as HLO writes its shape."""
    type, dims = re.match(r"(\w+?)\[([\d,]*)\]", shape).groups()
    m = re.match(r"[a-z]+(\d+)", type)
    return math.prod(int(d) for d in dims.split(",") if d) * (int(m[1]) if m else 8) // 8


def launches(texts, modules):
    d = Dump(texts, modules)
    steps = d.steps(thunks_of(only(texts, "thunk_sequence.txt")))
    own = [(n, d.values[n]) for n in d.entry if d.instructions[n].opcode == "parameter"]
    inputs = [program.Array(d.parameters[a.place.buffer], a.place, a.bytes, a.shape) for _, a in own]
    outputs = [program.Array(i, a.place, a.bytes, a.shape) for i, a in enumerate(d.arrays(d.root))]
    used = {a.place.buffer for a in inputs + outputs} | {p.buffer for s in steps for p in places_of(s)}
    held = [(a.place, constant_bytes(n, d.instructions[n])) for n, a in d.values.items()
            if a.place.buffer in d.constants & used]
    inputs.sort(key=lambda a: a.number)
    return program.Program(modules, {b: d.sizes[b] for b in sorted(used)}, inputs, outputs, steps, held)


def places_of(step):
    if isinstance(step, program.Copy):
        return [step.to, step.source]
    return [a for a in step.arguments if isinstance(a, program.Place)]

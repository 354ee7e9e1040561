"""XLA:GPU without a GPU: its compiler runs ahead of time against the description of a device. Needs the Python packages
jax[cuda13]; jax 0.10.2 was used, whose internals this is written for.

Autotuning is off, as it needs a device; one thread compiles. What XLA fuses by itself is left to it: a fusion is given to
it as a call, which it takes apart.
"""
import os
import re
import shutil
import statistics
import tempfile
import time

import program

FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_force_compilation_parallelism=1"
DESCRIPTION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "h100.textproto")


class Missing(Exception):
    """XLA is not installed; the text says so."""


class Unreadable(Exception):
    """XLA's dumps say something that is not known here."""


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
    """Sizes of buffers, parameters by buffer, and of each value its array."""
    sizes, parameters, values, number = {}, {}, {}, None
    for line in text.splitlines():
        head = re.match(r"allocation (\d+): size (\d+), (.*)", line)
        value = re.match(r"\s*value: <\d+ (\S+) @0> \(size=(\d+),offset=(\d+)\): (.*)", line)
        if head:
            number = int(head[1])
            sizes[number] = None if "thread-local" in head[3] else int(head[2])
            if m := re.match(r"parameter (\d+)", head[3]):
                parameters[number] = int(m[1])
            if "constant" in head[3]:
                raise Unreadable("a constant in memory")
        elif value and sizes[number] is not None:
            shape = re.sub(r"\{[\d,]*(?::[^}]*)?\}", "", value[4])
            array = program.Array(0, program.Place(number, int(value[3])), int(value[2]), shape)
            values.setdefault(value[1], array)
    return sizes, parameters, values


def entry_instructions(text):
    """Of each instruction of ENTRY: opcode, operands, the rest, whether it is a tuple; and the root's name."""
    body = re.search(r"^ENTRY .*?\{\n(.*?)^\}", text, re.S | re.M)[1]
    found, root = {}, None
    for line in body.splitlines():
        m = re.match(r"\s*(ROOT )?%(\S+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)", line)
        found[m[2]] = (m[4], re.findall(r"%([\w.-]+)", m[5]), m[6], m[3].startswith("("))
        if m[1]:
            root = m[2]
    return found, root


def arrays_of(name, instructions, values):
    """What an instruction's value is made of: its arrays, by their places in the tuple."""
    opcode, operands, rest, is_tuple = instructions[name]
    if opcode == "bitcast":
        return arrays_of(operands[0], instructions, values)
    if opcode == "tuple":
        return {(k, *i): a for k, o in enumerate(operands) for i, a in arrays_of(o, instructions, values).items()}
    if opcode == "get-tuple-element":
        k = int(re.search(r"index=(\d+)", rest)[1])
        return {i[1:]: a for i, a in arrays_of(operands[0], instructions, values).items() if i[0] == k}
    if not is_tuple:
        return {(): values[name]}
    parts = {re.match(r"(.*)\{([\d,]*)\}$", k): a for k, a in values.items() if k.startswith(name + "{")}
    leaves = {tuple(int(d) for d in m[2].split(",") if d): a for m, a in parts.items() if not a.shape.startswith("(")}
    return dict(sorted(leaves.items()))


def launches(texts, modules):
    """The program, from what XLA says of its buffers, instructions and steps: a kernel's arguments are what the instruction
    reads, then what it makes."""
    sizes, parameters, values = allocations(only(texts, "after_optimizations-buffer-assignment.txt"))
    instructions, root = entry_instructions(only(texts, "gpu_after_optimizations.txt"))
    count = {e: (n, file) for file, ptx in modules.items() for e, n in program.parameter_counts(ptx).items()}
    annotations = re.findall(r'profile_annotation: "(.*?)"\s*thunk_id: (\d+)', only(texts, "thunk_metadata.txt"))
    names = {int(i): name for name, i in annotations}
    steps, copied = [], {}
    for line in only(texts, "thunk_sequence.txt").splitlines():
        number, kind, rest = re.match(r"(\d+): (\w+)\s+\[.*?\] (.*)", line).groups()
        name = names[int(number)]
        read = [a for o in instructions[name][1] for a in arrays_of(o, instructions, values).values()]
        made = list(arrays_of(name, instructions, values).values())
        if kind == "kCopy":
            k = copied[name] = copied.get(name, -1) + 1
            if read[k].bytes != made[k].bytes:
                raise Unreadable(f"{name}: a copy of another size")
            steps.append(program.Copy(made[k].place, read[k].place, made[k].bytes))
            continue
        if kind not in ("kKernel", "kCustomKernel"):
            raise Unreadable(f"{name}: a step of kind {kind}")
        m = re.match(r"(\S+) grid: \[(.*?)\] threads: \[(.*?)\]\s+shared_memory: (\d+)", rest)
        grid, block = (tuple(map(int, m[k].split(", "))) for k in (2, 3))
        expected, module = count[m[1]]
        arguments = [a.place for a in read + made]
        if expected != len(arguments):
            raise Unreadable(f"{m[1]}: {expected} parameters, {len(arguments)} arguments")
        dynamic = int(m[4]) if ".extern .shared" in modules[module] else 0
        steps.append(program.Launch(module, m[1], grid, block, dynamic, arguments))
    inputs = [program.Array(parameters[a.place.buffer], a.place, a.bytes, a.shape)
              for n, (opcode, *_) in instructions.items() if opcode == "parameter" for a in [values[n]]]
    results = arrays_of(root, instructions, values).values()
    outputs = [program.Array(i, a.place, a.bytes, a.shape) for i, a in enumerate(results)]
    used = {a.place.buffer for a in inputs + outputs} | {p.buffer for s in steps for p in places_of(s)}
    inputs.sort(key=lambda a: a.number)
    return program.Program(modules, {b: sizes[b] for b in sorted(used)}, inputs, outputs, steps)


def places_of(step):
    if isinstance(step, program.Copy):
        return [step.to, step.source]
    return [a for a in step.arguments if isinstance(a, program.Place)]

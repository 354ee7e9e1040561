"""What a compiler makes of a module: texts of PTX, buffers, and launches in order. The same for kiln and its peers, so that
one way runs and counts them all.

Its text, a line each, in which BUFFER+OFFSET is a place in bytes:
  buffer N BYTES                          buffer N, undefined at first
  constant PLACE HEX                      these bytes are there before the launches
  input PARAMETER PLACE BYTES SHAPE       what the parameter holds is there before the launches
  output INDEX PLACE BYTES SHAPE          element INDEX of the result is there after them
  copy TO FROM BYTES
  launch FILE ENTRY GX GY GZ BX BY BZ SHARED ARGUMENT...   the PTX beside; blocks, threads, bytes of dynamic shared memory;
                                                           an argument is a place's address, null, or i32=VALUE
"""
import base64
import dataclasses
import math
import os
import re


@dataclasses.dataclass(frozen=True)
class Place:
    buffer: int
    offset: int

    def __str__(self):
        return f"{self.buffer}+{self.offset}"

    @staticmethod
    def of(text):
        return Place(*map(int, text.split("+")))


@dataclasses.dataclass
class Array:
    """A parameter or result: where it is, its bytes, its shape as HLO writes it without a layout."""

    number: int
    place: Place
    bytes: int
    shape: str

    @property
    def type(self):
        return self.shape.split("[")[0]

    @property
    def dims(self):
        return [int(d) for d in re.search(r"\[(.*?)\]", self.shape)[1].split(",") if d]

    @property
    def elements(self):
        return math.prod(self.dims)


@dataclasses.dataclass
class Copy:
    to: Place
    source: Place
    bytes: int


@dataclasses.dataclass
class Launch:
    module: str  # the name of its text
    entry: str
    grid: tuple
    block: tuple
    shared: int  # bytes that are dynamic
    arguments: list  # a Place, None for a null pointer, or an int, which has 32 bits
    cluster: tuple = ()

    @property
    def blocks(self):
        return math.prod(self.grid)

    @property
    def units(self):
        """What a sample is drawn of: clusters, where there are any."""
        return self.blocks // math.prod(self.cluster)


@dataclasses.dataclass
class Program:
    modules: dict  # texts of PTX by name
    sizes: dict  # bytes of buffers by number
    inputs: list
    outputs: list
    steps: list  # of Launch and Copy
    constants: list = dataclasses.field(default_factory=list)  # of (Place, bytes)

    @property
    def text(self):
        return self.text_with({name: name for name in self.modules})

    def text_with(self, names):
        """The text, with these names of its modules."""

        def words(kind, a):
            return f"{kind} {a.number} {a.place} {a.bytes} {a.shape}"

        lines = [f"buffer {b} {n}" for b, n in sorted(self.sizes.items())]
        lines += [f"constant {place} {data.hex()}" for place, data in self.constants]
        lines += [words("input", a) for a in self.inputs]
        lines += [step_text(s, names) for s in self.steps]
        lines += [words("output", a) for a in self.outputs]
        return "\n".join(lines) + "\n"

    def write(self, folder, stem):
        """STEM.launches, and the modules as STEM.ptx, STEM.1.ptx and so on."""
        names = {m: f"{stem}.{i}.ptx" if i else f"{stem}.ptx" for i, m in enumerate(self.modules)}
        files = {names[m]: text for m, text in self.modules.items()} | {stem + ".launches": self.text_with(names)}
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)


def step_text(step, names):
    if isinstance(step, Copy):
        return f"copy {step.to} {step.source} {step.bytes}"

    def argument(a):
        return "null" if a is None else f"i32={a}" if isinstance(a, int) else str(a)

    words = ["launch", names[step.module], step.entry, *step.grid, *step.block, step.shared, *map(argument, step.arguments)]
    return " ".join(map(str, words))


def read_argument(word):
    if word == "null":
        return None
    return int(word[4:]) if word.startswith("i32=") else Place.of(word)


def read(folder, stem):
    """The program that write() left there."""
    p = Program({}, {}, [], [], [])
    with open(os.path.join(folder, stem + ".launches")) as f:
        for line in f:
            kind, *w = line.split()
            if kind == "buffer":
                p.sizes[int(w[0])] = int(w[1])
            elif kind == "constant":
                p.constants.append((Place.of(w[0]), bytes.fromhex(w[1])))
            elif kind == "copy":
                p.steps.append(Copy(Place.of(w[0]), Place.of(w[1]), int(w[2])))
            elif kind == "launch":
                grid, block = tuple(map(int, w[2:5])), tuple(map(int, w[5:8]))
                p.steps.append(Launch(w[0], w[1], grid, block, int(w[8]), [read_argument(a) for a in w[9:]]))
            else:
                arrays = {"input": p.inputs, "output": p.outputs}[kind]
                arrays.append(Array(int(w[0]), Place.of(w[1]), int(w[2]), w[3]))
    names = {s.module for s in p.steps if isinstance(s, Launch)}
    for name in sorted(names, key=lambda n: (len(n), n)):  # as they were written
        with open(os.path.join(folder, name)) as f:
            p.modules[name] = f.read()
    return p


class Unreadable(Exception):
    """What a compiler says of its program holds something that is not known here; the text says what."""


def runs_of(steps):
    """What a manifest's steps come to: numbers of launches in the order in which they run."""
    found, k = [], 0
    while k < len(steps):
        (kind, step), k = next(iter(steps[k].items())), k + 1
        if kind == "launches":
            found += range(step["first"], step["first"] + step["count"])
        elif kind == "repeat":
            found += step["times"] * runs_of(steps[k : k + step["body_steps"]])
            k += step["body_steps"]
        else:
            raise Unreadable(f"a step that data decides: {kind}")
    return found


def of_manifest(m):
    """kiln's, from what `kiln compile --emit json` says. Results have buffers of their own."""
    p = Program({"kiln.ptx": m["ptx"]}, {}, [], [], [])
    for b, slot in enumerate(m["slots"]):
        p.sizes[b] = slot["bytes"]
        shape = f"{slot['dtype']}[{','.join(map(str, slot['dims']))}]"
        arrays = p.outputs if slot["kind"] == "result" else p.inputs
        arrays.append(Array(slot["index"], Place(b, 0), slot["bytes"], shape))
    scratch = len(m["slots"])
    if m["scratch"]["bytes"]:
        p.sizes[scratch] = m["scratch"]["bytes"]
    if "constants" in m:
        data = base64.b64decode(m["constants"]["base64"])
        p.constants.append((Place(scratch, m["constants"]["scratch"]), data))
    for k in runs_of(m["steps"]) if "steps" in m else range(len(m["launches"])):
        l = m["launches"][k]
        if l["when"] == "in_place":
            continue
        arguments = [Place(a["slot"], 0) if "slot" in a else Place(scratch, a["scratch"]) for a in l["arguments"]]
        p.steps.append(Launch("kiln.ptx", l["kernel"], tuple(l["grid"]), tuple(l["block"]), l["dynamic_shared_bytes"],
                              arguments, tuple(l["cluster"])))
    return p


def plain_ptx(text):
    """Without comments, empty lines and debug sections."""
    text = re.sub(r"[ \t]*//.*", "", text)
    text = re.sub(r"^\s*\.section.*?^\s*\}\s*$", "", text, flags=re.M | re.S)
    text = re.sub(r"^\s*\.(loc|file)\b.*\n", "", text, flags=re.M)
    text = re.sub(r"^(\.target \w+), debug", r"\1", text, flags=re.M)
    return re.sub(r"\n\s*\n+", "\n", text).lstrip()


def parameter_counts(ptx):
    """Of each entry, how many parameters it has."""
    entries = re.findall(r"\.entry\s+([\w$]+)\s*\((.*?)\)", ptx, re.S)
    return {name: len(re.findall(r"\.param\b", parameters)) for name, parameters in entries}

"""Programs on the simulator with counters: what their launches cost. What was counted is kept, and taken from there as long
as the program, the sample and the simulator are the same.

Of a long launch a sample of its blocks runs, in runs of neighbours that are evenly spread. Buffers of up to 64 MiB hold
data: parameters drawn ones, the others what earlier launches leave. Greater ones are zero, which changes no count where
data decides neither an address nor a branch.
"""
import functools
import hashlib
import inspect
import json
import math
import operator
import os
import random
import re
import subprocess
import tempfile

import program

GPU = "H100"
MOST_DATA = 64 << 20  # bytes of a buffer that holds some
MOST_ELEMENTS = 1 << 27  # of an array
MOST_ISSUES = 1 << 26  # of a program: warps times instructions, some seconds
WHOLE = 1 / 8  # of these: a launch that is not worth a sample
NEIGHBOURS = 8 * 132  # of a run of blocks: such as run at once
FEW = 8  # blocks of a pilot
MOST_SECONDS = 1200  # of a launch

# What a driver does for a copy on the device, as a kernel: each thread the same bytes, 16 of them where they divide it.
COPY_THREADS = 256
COPY = """.version 7.8
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u32 n)
{
  .reg .b64 %a, %b, %at;
  .reg .b32 %i, %t, %n, %v<4>;
  .reg .pred %p;
  mov.u32 %i, %ctaid.x;
  mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, 256, %t;
  ld.param.u32 %n, [n];
  setp.ge.u32 %p, %i, %n;
  @%p bra done;
  ld.param.u64 %a, [from];
  ld.param.u64 %b, [to];
  mul.wide.u32 %at, %i, UNIT;
  add.u64 %a, %a, %at;
  add.u64 %b, %b, %at;
  ld.global.TYPE VALUE, [%a];
  st.global.TYPE [%b], VALUE;
done:
  ret;
}
"""
COPIES = {16: ("v4.b32", "{%v0, %v1, %v2, %v3}"), 4: ("b32", "%v0"), 1: ("b8", "%v0")}


class Refused(Exception):
    """The simulator does not run it; the text is its first finding."""


# --- samples ----------------------------------------------------------------------------------------------------------


def sample(blocks, share):
    """The blocks that stand for 1/share of a grid, as --blocks says it; None: all of them."""
    run = min(NEIGHBOURS, max(1, blocks // (FEW * share)))
    stride = run * share
    count = blocks // stride * run + min(blocks % stride, run)
    return None if share == 1 or count >= blocks else f"0:{count}:{stride}:{run}"


def share_of(pilots, elements, most):
    """A share for all of these programs, by the issues of their launches, of which `most` are run: 1/n, of it the n."""
    return max(1, math.ceil(elements / MOST_ELEMENTS), math.ceil(max(sum(issues) for issues in pilots) / most))


# --- data -------------------------------------------------------------------------------------------------------------

# Of floats by type: bytes of an element, and those places in it that get one of two values, so that they are of either
# sign and between 1/8 and 1.
FLOATS = {"f16": (2, {1: (0x34, 0xB4)}), "bf16": (2, {1: (0x3E, 0xBE)}), "f32": (4, {3: (0x3E, 0xBE)}),
          "f64": (8, {7: (0x3F, 0xBF), 6: (0xC1, 0xD1)}), "c64": (4, {3: (0x3E, 0xBE)}),
          "c128": (8, {7: (0x3F, 0xBF), 6: (0xC1, 0xD1)})}


def draw(array, longest):
    """Bytes of a parameter: floats, integers as places along a dimension of that length, as they mostly are, types of a
    byte and less at random."""
    r = random.Random(array.number)
    if m := re.fullmatch(r"[su](16|32|64)", array.type):
        size = int(m[1]) // 8
        most = min(longest, 1 << (8 * size - 1))
        return b"".join(r.randrange(most).to_bytes(size, "little") for _ in range(array.bytes // size))
    data = bytearray(r.randbytes(array.bytes))
    if array.type == "pred":
        return data.translate(bytes(k & 1 for k in range(256)))
    size, places = FLOATS.get(array.type, (1, {}))
    for place, values in places.items():
        data[place::size] = data[place::size].translate(bytes(values[k & 1] for k in range(256)))
    return data


def write_npy(path, data):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(data)
    head += " " * ((-len(head) - 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(data)


class Memory:
    """Buffers of a program, as files for each launch."""

    def __init__(self, p, folder):
        self.folder, self.sizes = folder, p.sizes
        self.data = {b: bytearray(n) for b, n in p.sizes.items() if n <= MOST_DATA}
        for place, data in p.constants:
            if place.buffer in self.data:
                self.data[place.buffer][place.offset : place.offset + len(data)] = data
        longest = max((d for a in p.inputs for d in a.dims), default=1)
        for a in p.inputs:
            if a.place.buffer in self.data:
                self.data[a.place.buffer][a.place.offset : a.place.offset + a.bytes] = draw(a, longest)

    def path(self, k):
        return os.path.join(self.folder, f"{k}.npy")

    def word(self, k, place):
        """The argument that is the rest of the place's buffer."""
        rest = self.sizes[place.buffer] - place.offset
        if rest == 0 or place.buffer not in self.data:
            return f"zero:u8[{max(1, rest)}]"
        write_npy(self.path(k), memoryview(self.data[place.buffer])[place.offset :])
        return f"inout:{self.path(k)}={self.path(k)}"

    def take(self, places):
        """What a launch has changed. Arguments may share a buffer, each of them as a copy: their changes come together."""
        before = {a.buffer: bytes(self.data[a.buffer]) for _, a in places if a.buffer in self.data}
        for k, a in places:
            if a.buffer not in before or len(before[a.buffer]) == a.offset:
                continue
            with open(self.path(k), "rb") as f:
                after = f.read()[a.offset - len(before[a.buffer]) :]
            old, now = memoryview(before[a.buffer])[a.offset :], memoryview(self.data[a.buffer])[a.offset :]
            if now == old:
                now[:] = after
            elif after != old:
                bits = (int.from_bytes(m, "little") for m in (now, old, after))
                now[:] = functools.reduce(operator.xor, bits).to_bytes(len(now), "little")


# --- running ----------------------------------------------------------------------------------------------------------


def as_launch(step):
    """A copy as the launch that does the same."""
    if isinstance(step, program.Launch):
        return step
    unit = next(u for u in COPIES if (step.bytes | step.to.offset | step.source.offset) % u == 0)
    n = step.bytes // unit
    return program.Launch(f"copy.{unit}", "copy", (max(1, -(-n // COPY_THREADS)), 1, 1), (COPY_THREADS, 1, 1), 0,
                          [step.source, step.to, n])


def copy_modules():
    for unit, (type, value) in COPIES.items():
        yield f"copy.{unit}", COPY.replace("UNIT", str(unit)).replace("TYPE", type).replace("VALUE", value)


def argument_word(memory, k, a):
    if isinstance(a, program.Place):
        return memory.word(k, a)
    return "u64:0" if a is None else f"u32:{a % (1 << 32)}"


class Simulator:
    def __init__(self, kiln, root, cache, most=MOST_ISSUES):
        self.kiln, self.cache, self.most = kiln, cache, most
        os.makedirs(cache, exist_ok=True)
        # What counts follow from, beside the program and its sample.
        data = [inspect.getsource(draw), str(FLOATS), str(MOST_DATA), COPY]
        self.identity = digest([*data, source_digest(os.path.join(root, "src", "sim")), program_version("ptxas")])

    def run(self, p, shares, assemble):
        """The counters of each launch; shares as --blocks has them, or None."""
        key = digest([self.identity, p.text, *p.modules.values(), str(shares), str(assemble)])
        path = os.path.join(self.cache, key + ".json")
        if os.path.exists(path):
            with open(path) as f:
                return json.load(f)
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            found = self.run_in(folder, p, shares, assemble)
            with open(os.path.join(folder, "done"), "w") as f:
                json.dump(found, f)
            os.rename(os.path.join(folder, "done"), path)
        return found

    def run_in(self, folder, p, shares, assemble):
        """What is launched again, as a loop's body is, with the same arguments is counted once."""
        memory, found = Memory(p, folder), {}
        for name, text in [*p.modules.items(), *copy_modules()]:
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        for step, blocks in zip(p.steps, shares):
            if str(step) not in found:
                found[str(step)] = self.launch(folder, memory, as_launch(step), blocks, assemble)
        return [found[str(step)] for step in p.steps]

    def launch(self, folder, memory, l, blocks, assemble):
        command = [self.kiln, "sim", os.path.join(folder, l.module), "--entry", l.entry, "--profile", "--gpu", GPU, "--json"]
        command += ["--grid", ",".join(map(str, l.grid)), "--block", ",".join(map(str, l.block))]
        if math.prod(l.cluster) > 1:
            command += ["--cluster", ",".join(map(str, l.cluster))]
        if l.shared:
            command += ["--shared", str(l.shared)]
        if blocks:
            command += ["--blocks", blocks]
        for k, a in enumerate(l.arguments):
            command += ["--arg", argument_word(memory, k, a)]
        environment = dict(os.environ) if assemble else {**os.environ, "KILN_PTXAS": "/none"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired as problem:
            why = f"{l.entry} ran for more than {MOST_SECONDS} s; does a block wait for one that is not in the sample?"
            raise Refused(why) from problem
        if done.returncode:
            raise Refused(re.sub(r"\S*/([\w.]+:\d+:\d+: )", r"\1", done.stderr.strip().split("\n")[0]))
        memory.take([(k, a) for k, a in enumerate(l.arguments) if isinstance(a, program.Place)])
        return json.loads(done.stdout)["profile"]

    def pilot(self, p):
        """Issues of each launch, by a few blocks of it: an estimate."""
        shares = []
        for step in p.steps:
            blocks = as_launch(step).units
            shares.append(f"0:{FEW}:{blocks // FEW}" if blocks > FEW else None)
        return [f["warps"] * f["scale"] for f in self.run(p, shares, False)]

    def counts(self, p, issues, share):
        few = WHOLE * self.most
        shares = [None if n <= few else sample(as_launch(s).units, share) for s, n in zip(p.steps, issues)]
        return self.run(p, shares, True)


def digest(texts):
    h = hashlib.sha256()
    for t in texts:
        h.update(f"{len(t)}:".encode())
        h.update(t.encode())
    return h.hexdigest()


def source_digest(folder):
    texts = []
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            with open(os.path.join(at, name), errors="replace") as f:
                texts += [os.path.relpath(at, folder), name, f.read()]
    return digest(texts)


def program_version(name):
    path = os.environ.get("KILN_" + name.upper(), name)
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return "none"
    m = re.search(r"V\d[\d.]+", text)
    return m[0] if m else "?"

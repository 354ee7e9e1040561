#!/usr/bin/env python3
"""profile.py KILN [OUT.md]: the kernels that kiln, XLA and Triton make of the same HLO, side by side on the simulator with
counters: sectors, what of them is used, SASS, registers, predicted time. Reads tests/sim/peers, where the other compilers'
PTX is stored with its launches. Needs ptxas for the columns of SASS. Inputs are drawn anew for the others, so that where
data decides addresses counts differ by chance."""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

KILN = os.path.realpath(sys.argv[1])
OUT = sys.argv[2] if len(sys.argv) > 2 else None
PEERS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "sim", "peers")
GPU = "H100"


def elements(type_text):
    dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", type_text).groups()
    n = 1
    for d in filter(None, dims.split(",")):
        n *= int(d)
    return dtype, n


def draw(dtype, size):
    """Bytes of an input: floats within +-1 as their upper bits, small integers."""
    r = random.Random(size)
    if dtype in ("f32", "c64"):
        return struct.pack("<%df" % (size // 4), *(r.uniform(-1, 1) for _ in range(size // 4)))
    if dtype in ("bf16", "f16"):
        return b"".join(struct.pack("<H", r.randrange(0x3000, 0x3c00)) for _ in range(size // 2))
    if dtype in ("s32", "u32"):
        return struct.pack("<%di" % (size // 4), *(r.randrange(0, 64) for _ in range(size // 4)))
    return bytes(r.randrange(256) for _ in range(size))


def npy(path, data):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(data)
    head += " " * ((-len(head) - 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def run(words):
    done = subprocess.run([KILN] + words, capture_output=True, text=True)
    return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr


def own(name):
    found, why = run(["profile", os.path.join(PEERS, name + ".hlo"), "--gpu", GPU, "--json"])
    return (found["kernels"] if found else None), why


class Peer:
    """A stored program: its buffers live in files between launches."""

    def __init__(self, stem, folder):
        self.stem, self.folder, self.kernels, self.why = stem, folder, [], ""
        self.buffers = {}

    def argument(self, word, slot):
        if word == "null":
            return "u64:0", None
        if word.startswith("i32="):
            return "s32:" + word[4:], None
        b, offset = map(int, word.split("+"))
        path = os.path.join(self.folder, "arg%d.npy" % slot)
        npy(path, bytes(self.buffers[b][offset:]) or b"\0")
        return "inout:%s=%s" % (path, path), (b, offset, path)

    def launch(self, words):
        ptx, kernel = os.path.join(PEERS, words[0]), words[1]
        grid, block, shared = words[2:5], words[5:8], words[8]
        arguments = [self.argument(w, k) for k, w in enumerate(words[9:])]
        command = ["sim", ptx, "--entry", kernel, "--grid", ",".join(grid), "--block", ",".join(block), "--profile",
                   "--gpu", GPU, "--json"] + [x for a, _ in arguments for x in ("--arg", a)]
        text = open(ptx).read()
        if "extern .shared" in text and int(shared):
            command += ["--shared", shared]
        found, self.why = run(command)
        if not found:
            return False
        self.kernels.append(found["profile"])
        for _, back in arguments:
            if back:
                b, offset, path = back
                data = open(path, "rb").read()[-(len(self.buffers[b]) - offset):]
                before = bytes(self.buffers[b][offset:])
                if data != before:  # one argument of several in the same buffer has changed it
                    self.buffers[b][offset:] = data
        return True

    def go(self):
        for line in open(os.path.join(PEERS, self.stem + ".launches")):
            w = line.split()
            if w[0] == "buffer":
                self.buffers[int(w[1])] = bytearray(int(w[2]))
            elif w[0] == "input":
                b, offset = map(int, w[2].split("+"))
                dtype = elements(w[4])[0]
                self.buffers[b][offset:offset + int(w[3])] = draw(dtype, int(w[3]))
            elif w[0] == "copy":
                (a, x), (b, y), n = map(int, w[1].split("+")), map(int, w[2].split("+")), int(w[3])
                self.buffers[a][x:x + n] = self.buffers[b][y:y + n]
            elif w[0] == "launch" and not self.launch(w[1:]):
                return None
        return self.kernels


def total(kernels, kind, what):
    return sum(a[what] for k in kernels for a in k["accesses"] if a["kind"].startswith(kind))


def row(name, system, kernels, count):
    sectors, unique = total(kernels, "global", "sectors"), total(kernels, "global", "unique_bytes")
    sass = [k["sass"] for k in kernels]
    known = all(sass)
    executed = sum(s["executed"] for s in sass) if known else 0
    mark = "~" if known and any(s["estimated"] for s in sass) else ""
    conflicts = total(kernels, "shared", "wavefronts") - total(kernels, "shared", "ideal_wavefronts")
    return "| %s | %s | %d | %d | %.0f %% | %d | %s | %s | %.0f | %.2f |" % (
        name, system, len(kernels), sectors, 100 * unique / (32 * sectors) if sectors else 0, conflicts,
        mark + "%.1f" % (32 * executed / count) if known else "-",
        ", ".join(str(s["registers"]) for s in sass) if known else "-",
        sum(k["dram_read"] + k["dram_written"] + k["dram_dirty"] for k in kernels) / 1e3,
        sum(k["predicted_us"] for k in kernels))


def main():
    lines = ["# The same HLO by several compilers, counted", "",
             "Made by `benchmarks/profile.py` on the simulator of one %s: no GPU was used. Shapes are those of "
             "`tests/sim/peers`, small, so that predicted times are little but launches. SASS: thread instructions for an "
             "element of the results (`~`: an estimate, as there are loops). Used: unique bytes of the requests over the "
             "bytes of their sectors. Conflicts: passes over the banks of shared memory beyond the fewest. What kiln does "
             "not compile is told below." % GPU, "",
             "| HLO | compiler | kernels | sectors | used | conflicts | SASS | registers | DRAM kB | predicted us |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    missing = []
    names = sorted(f[:-4] for f in os.listdir(PEERS) if f.endswith(".hlo"))
    for name in names:
        mine, why = own(name)
        rows, count = [], 1
        for system in ("xla", "triton"):
            stem = name + "." + system
            if not os.path.exists(os.path.join(PEERS, stem + ".launches")):
                continue
            outputs = [elements(l.split()[4])[1] for l in open(os.path.join(PEERS, stem + ".launches"))
                       if l.startswith("output")]
            count = max(1, sum(outputs))
            with tempfile.TemporaryDirectory() as folder:
                peer = Peer(stem, folder)
                kernels = peer.go()
            if kernels:
                rows.append(row(name, system, kernels, count))
            else:
                missing.append("%s by %s: %s" % (name, system, peer.why.strip().split("\n")[0]))
        if mine:
            rows.insert(0, row(name, "kiln", mine, count))
        else:
            missing.append("%s by kiln: %s" % (name, why.strip().split("\n")[0]))
        lines += rows
    lines += ["", "Not there:", ""] + ["- " + re.sub(r"/\S*/tests/", "tests/", m) for m in missing]
    text = "\n".join(lines) + "\n"
    if OUT:
        open(OUT, "w").write(text)
    else:
        print(text, end="")


main()

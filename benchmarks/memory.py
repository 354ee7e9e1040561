#!/usr/bin/env python3
"""memory.py KILN [FILE.hlo...]: the scratch memory that modules take for sm_90 beside what is there at one launch at most, as a table in
markdown. Without files: the JAX programs of tests/eval/corpus before and after XLA's GPU passes, and the workloads.

What is there is found in the text of the module as it is compiled (`--emit hlo`), by liveness alone and with nothing of the
compiler: a value is there from the kernel that makes it to the last that reads it. What a loop carries is there until its body
has read it, and what the body makes of it from then on. Parameters, results and constants are not scratch memory. Sizes are
rounded up to 256 bytes, as buffers are. What a kernel leaves for its own launches is told apart, from its plan. Kernels are
launches of their own (`--separate-launches`), as buffers of several that are one are there for all of it.
"""
import glob
import json
import math
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ALIGN = 256
RUNS = ("fusion", "while", "conditional")


# --- modules ----------------------------------------------------------------------------------------------------------


def leaves_of(shape):
    """Bytes of each array of a shape, in order; of tokens 0."""
    found = []
    for type, dims in re.findall(r"(\w+)\[([^\]]*)\]", re.sub(r"\{[^}]*\}", "", shape)):
        bits = {"pred": 8, "token": 0}.get(type) if type in ("pred", "token") else int(re.match(r"[a-z]+(\d+)", type)[1])
        count = math.prod(int(d.lstrip("<=")) for d in dims.split(",") if d)
        found.append((count * bits + 7) // 8)
    return found


class Instruction:
    def __init__(self, opcode, shape, operands, rest, root):
        self.opcode, self.operands, self.rest, self.root = opcode, operands, rest, root
        self.leaves = leaves_of(shape)
        called = re.findall(r"(?:condition|body|calls|true_computation|false_computation)=%([\w.<>-]+)", rest)
        branches = re.search(r"branch_computations=\{(.*?)\}", rest)
        self.called = re.findall(r"%([\w.<>-]+)", branches[1]) if branches else called
        self.index = int(m[1]) if (m := re.search(r"\bindex=(\d+)", rest)) else 0
        self.elements = []  # of a tuple: the first leaf of each


def closing(text, at):
    """Behind the parenthesis that closes the one at this place."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if not depth:
            return k + 1
    raise ValueError(text)


def read(text):
    """Computations by name, of each its instructions by name, in order; and ENTRY's name."""
    computations, entry, own = {}, None, None
    for line in text.splitlines():
        if m := re.match(r"(ENTRY )?%([\w.<>-]+) \{$", line):
            own = computations[m[2]] = {}
            entry = m[2] if m[1] else entry
        m = re.match(r"\s+(ROOT )?%([\w.<>-]+) = ", line)
        if not m or own is None:
            continue
        rest = line[m.end() :]
        end = closing(rest, 0) if rest[0] == "(" else rest.index(" ")
        shape, rest = rest[:end], rest[end:].strip()
        opcode, at = rest[: rest.index("(")], rest.index("(")
        inside = rest[at + 1 : closing(rest, at) - 1]
        operands = [int(inside)] if opcode == "parameter" else re.findall(r"%([\w.<>-]+)", inside)
        own[m[2]] = Instruction(opcode, shape, operands, rest[closing(rest, at) :], bool(m[1]))
        own[m[2]].elements = elements_of(shape)
    return computations, entry


def elements_of(shape):
    """Of each element of a tuple how many arrays are before it."""
    if shape[0] != "(":
        return [0]
    starts, depth, at, n = [], 0, 1, 0
    for k in range(len(shape)):
        depth += (shape[k] in "([{") - (shape[k] in ")]}")
        if (shape[k] == "," and depth == 1) or (k == len(shape) - 1):
            starts.append(n)
            n += len(leaves_of(shape[at:k]))
            at = k + 1
    return starts


# --- what is there ----------------------------------------------------------------------------------------------------


def resolve(own, name, leaf):
    """The instruction that makes a leaf, and which of its own that is."""
    while own[name].opcode in ("tuple", "get-tuple-element", "bitcast"):
        i = own[name]
        if i.opcode == "get-tuple-element":
            leaf += own[i.operands[0]].elements[i.index]
            name = i.operands[0]
        elif i.opcode == "bitcast":
            name = i.operands[0]
        else:
            k = max(k for k, first in enumerate(i.elements) if first <= leaf and len(own[i.operands[k]].leaves))
            leaf -= i.elements[k]
            name = i.operands[k]
    return name, leaf


def operands_of(own, i):
    for o in i.operands if i.opcode != "parameter" else ():
        for leaf in range(len(own[o].leaves)):
            yield resolve(own, o, leaf)


def rounded(n):
    return -(-n // ALIGN) * ALIGN


class Module:
    def __init__(self, text):
        self.computations, self.entry = read(text)

    def most(self):
        return self.most_of(self.entry, None, True)

    def most_of(self, name, carried, free):
        """The most that is there at one launch of the computation, of what it makes. carried: of its parameter the leaves
        that are its own to overwrite. free: what it results in lies elsewhere (by leaf, or all)."""
        own = self.computations[name]
        names = list(own)
        position = {n: k for k, n in enumerate(names)}
        root = next(n for n in names if own[n].root)
        results = [resolve(own, root, leaf) for leaf in range(len(own[root].leaves))]
        lies = {v for k, v in enumerate(results) if free is True or (free and free[k])}
        last = {v: position[n] for n in names if own[n].opcode in RUNS for v in operands_of(own, own[n])}
        last.update({v: len(names) for v in results})

        def size(v):
            return rounded(own[v[0]].leaves[v[1]])

        def leaves(n):
            return [(n, leaf) for leaf in range(len(own[n].leaves))]

        # Bytes, and the first and the last instruction at which they are there.
        spans = [(size(v), position[n], last.get(v, position[n])) for n in names if own[n].opcode in RUNS
                 for v in leaves(n) if v not in lies]
        # A leaf that is carried has a place, by turns of the old value and of the new one.
        for k, v in enumerate([v for n in names if own[n].opcode == "parameter" for v in leaves(n)]):
            if not carried or not carried[k]:
                continue
            new = position[results[k][0]] if own[results[k][0]].opcode in RUNS else len(names)
            if not (free and free is not True and free[k]):
                spans.append((size(v), -1, last.get(v, -1)))
            elif last.get(v, -1) >= new:
                spans.append((size(v), new, last[v]))
        most = 0
        for k, n in enumerate(names):
            if own[n].opcode not in RUNS:
                continue
            now = sum(bytes for bytes, first, until in spans if first <= k <= until)
            if own[n].opcode != "fusion":
                apart, inside = self.inside(own, n, lies, last, k)
                now += inside - sum(map(size, apart))
            most = max(most, now)
        return most

    def inside(self, own, name, lies, last, position):
        """Of a loop or a branch: leaves that are counted with what it runs, and the most that is there of that."""
        i = own[name]
        made = [(name, leaf) for leaf in range(len(i.leaves)) if (name, leaf) not in lies]
        elsewhere = [(name, leaf) in lies for leaf in range(len(i.leaves))]
        if i.opcode == "conditional":
            return made, max([self.most_of(c, None, elsewhere) for c in i.called] + [self.bytes(own, made)])
        keeps = self.kept(i.called[-1])
        # What it begins with and nobody else wants is its state; what it gives is its state, too.
        begin = {v for kept, v in zip(keeps, operands_of(own, i)) if not kept and last[v] == position and v not in lies
                 and own[v[0]].opcode in RUNS}
        state = [v for v in made if not keeps[v[1]]]
        body = self.most_of(i.called[-1], [not kept for kept in keeps], elsewhere)
        return [*begin, *made], max(body, self.bytes(own, state))

    @staticmethod
    def bytes(own, leaves):
        return sum(rounded(own[n].leaves[leaf]) for n, leaf in leaves)

    def kept(self, body):
        """Which leaves of its state a body hands on as they are."""
        own = self.computations[body]
        root = next(n for n in own if own[n].root)
        found = []
        for leaf in range(len(own[root].leaves)):
            name, k = resolve(own, root, leaf)
            found.append(own[name].opcode == "parameter" and k == leaf)
        return found


# --- the table --------------------------------------------------------------------------------------------------------


def row_of(kiln, path):
    """Launches, bytes that are there at most, those that a kernel leaves for itself at most, and those of the scratch memory
    without constants and counters; launches where several may be one, and scratch memory then; or None."""

    def emit(what, *options):
        command = [kiln, "compile", path, "--target", "sm_90", "--emit", what, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        return None if done.returncode else done.stdout

    def taken(manifest):
        m = json.loads(manifest)
        constants = rounded(m["constants"]["bytes"]) if "constants" in m else 0
        return len(m["launches"]), m["scratch"]["bytes"] - constants - m["scratch"]["zero_bytes"]

    apart = "--separate-launches"
    text, manifest, plan, together = emit("hlo", apart), emit("json", apart), emit("plan", apart), emit("json")
    if text is None or manifest is None or plan is None or together is None:
        return None
    launches, scratch = taken(manifest)
    kernels = re.split(r"^kernel ", plan, flags=re.M)
    left = max(sum(rounded(int(n)) for n in re.findall(r"^  s\d+: scratch .*?, (\d+) bytes, aligned to \d+$", k, re.M)) for k in kernels)
    return launches, Module(text).most(), left, scratch, *taken(together)


def default_files():
    names = sorted(glob.glob(os.path.join(ROOT, "tests/eval/corpus/dumped/*.hlo")))
    return [n for n in names if re.search(r"/[a-z0-9_]+(\.gpu)?\.hlo$", n)] + sorted(
        glob.glob(os.path.join(ROOT, "benchmarks/workloads/*.hlo")))


def main():
    kiln, files = sys.argv[1], sys.argv[2:] or default_files()
    print("# Scratch memory\n\nMade by `./bootstrap bench memory`: bytes for sm_90. There: values that are there at one launch, at most. Own:\n"
          "what one kernel leaves for launches of its own, at most. Ratio: scratch memory over the greater of the two; below 1 is\n"
          "what kernels write over what they read. As one: launches where several may be one, as by default, and their scratch memory:\n"
          "buffers of such are there for all of it, at most 4 MiB of them.\n")
    print("| module | launches | there | own | scratch | ratio | as one: launches | scratch |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    refused, without = [], 0
    for path in files:
        name = re.sub(r".*/(?=[^/]*/[^/]*$)", "", path).removesuffix(".hlo")
        found = row_of(kiln, path)
        if not found:
            refused.append(name)
        elif not any((*found[1:4], found[5])):
            without += 1
        else:
            launches, there, own, scratch, fewer, together = found
            ratio = scratch / max(there, own, 1)
            print(f"| {name} | {launches} | {there} | {own} | {scratch} | {ratio:.3f} | {fewer} | {together} |", flush=True)
    print(f"\nOf {len(files)} modules {without} take none, and these are not compiled: {', '.join(refused) or 'none'}.")


if __name__ == "__main__":
    main()

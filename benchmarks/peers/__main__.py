#!/usr/bin/env python3
"""peers BUILD [--launches] [--no-times] [--issues N] [--out FILE.md] [NAME...]: kiln beside other compilers without a GPU:
what each makes of a module is counted on the simulator, and the time to PTX measured. BUILD is an optimised build of kiln
with the benchmarks.

A NAME is a workload (softmax), an example (examples/gelu), a module of tests/sim/peers, whose programs are stored there
(stored/argmax), one of a kind of op (ops/sort_rows), one of the four folders (workloads, examples, stored, ops), or a file.
Without names: the first three. The page goes to standard output or to FILE.md, and then the figures to FILE.json. What was
made and counted is kept in BUILD/peers.
"""
import argparse
import datetime
import glob
import json
import math
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import count
import page
import program
import xla

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDERS = {"workloads": "benchmarks/workloads", "examples": "examples", "stored": "tests/sim/peers", "ops": "benchmarks/ops"}
UNNAMED = ("workloads", "examples", "stored")  # what is taken where nothing is named
RUNS = 3  # of XLA before kiln is measured, and as many after it


def files_of(name):
    """Of each file that a NAME stands for: a name for the table, and its path."""
    folder, slash, stem = name.partition("/")
    if folder in FOLDERS:
        pattern = os.path.join(ROOT, FOLDERS[folder], (stem if slash else "*") + ".hlo")
        paths = sorted(glob.glob(pattern))
    else:
        paths = [p for p in (os.path.join(ROOT, FOLDERS["workloads"], name + ".hlo"), name) if os.path.isfile(p)][:1]
        folder = "workloads" if paths and paths[0] != name else None
    if not paths:
        sys.exit(f"peers: there is no '{name}': expected a workload, examples/NAME, stored/NAME, a folder's name or a file")
    for p in paths:
        stem = os.path.splitext(os.path.basename(p))[0]
        yield (stem if folder in (None, "workloads") else f"{folder}/{stem}"), p


# --- what compilers make ----------------------------------------------------------------------------------------------


class Kiln:
    def __init__(self, build):
        self.command = os.path.join(build, "tools", "kiln")
        self.timer = os.path.join(build, "benchmarks", "compile_time")
        if not os.access(self.command, os.X_OK) or not os.access(self.timer, os.X_OK):
            sys.exit(f"peers: expected a build with benchmarks in {build}: `./bootstrap bench peers` makes it")

    def program(self, path):
        """It, or None and the reason."""
        done = subprocess.run([self.command, "compile", path, "--target", "sm_90", "--emit", "json"], capture_output=True,
                              text=True)
        if done.returncode:
            return None, re.sub(r"^\S*/([\w.]+:\d+:\d+: )", r"\1", done.stderr.strip().split("\n")[0])
        try:
            return program.of_manifest(json.loads(done.stdout)), ""
        except program.Unreadable as problem:
            return None, str(problem)

    def milliseconds(self, path):
        """kiln's and NVRTC's, where there is CUDA source."""
        done = subprocess.run([self.timer, "--json", "--cpu", path], capture_output=True, text=True)
        if done.returncode:
            return None, None
        found = json.loads(done.stdout)["rows"][0]
        return found["warm"], found.get("nvrtc_warm")


class Peers:
    """Stored programs, and XLA's, which are kept."""

    def __init__(self, cache):
        self.cache, self.xla, self.why = cache, None, ""
        try:
            self.xla = xla.Xla()
        except xla.Missing as problem:
            self.why = str(problem)

    def programs(self, path):
        """Of each compiler: its name, and its program or None and the reason."""
        folder, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
        stored = sorted(glob.glob(os.path.join(folder, glob.escape(stem) + ".*.launches")), reverse=True)
        for p in stored:
            system = p.split(".")[-2]
            yield {"xla": "XLA", "triton": "Triton"}.get(system, system), program.read(folder, f"{stem}.{system}"), ""
        if not stored:
            yield "XLA", *self.by_xla(path)

    def by_xla(self, path):
        if not self.xla:
            return None, self.why
        with open(path) as f:
            hlo = f.read()
        with open(xla.__file__) as f, open(xla.DESCRIPTION) as g:
            key = count.digest([hlo, self.xla.version, f.read(), g.read()])
        folder = os.path.join(self.cache, key)
        if not os.path.isdir(folder):
            try:
                found = self.xla.program(hlo)
            except Exception as problem:  # of many kinds; a row says it
                return None, f"{type(problem).__name__}: {problem}".split("\n")[0]
            os.makedirs(folder + ".new", exist_ok=True)
            found.write(folder + ".new", "xla")
            os.rename(folder + ".new", folder)
        return program.read(folder, "xla"), ""


# --- a row ------------------------------------------------------------------------------------------------------------


def needed(hlo, p):
    """Of each array how many elements must be read or written: all, but of what is only looked up what is found."""
    entry = re.search(r"^ENTRY .*?\{\n(.*?)^\}", hlo, re.S | re.M)[1]
    names = {int(k): n for n, k in re.findall(r"([\w.-]+) = \S+ parameter\((\d+)\)", entry)}
    uses = re.findall(r"= \w+\[([\d,]*)\]\S* ([\w-]+)\((.*?)\)", entry)
    for a in p.outputs:
        yield a, a.elements
    for a in p.inputs:
        name = names.get(a.number)
        own = [(dims, opcode, o.split(", ")) for dims, opcode, o in uses if name in o.split(", ")]
        found = sum(math.prod(int(d) for d in dims.split(",") if d) for dims, _, _ in own)
        looked_up = all(opcode in ("gather", "dynamic-slice") and name not in o[1:] for _, opcode, o in own)
        yield a, min(a.elements, found) if own and looked_up else a.elements


def count_both(simulator, own, peers, elements):
    """Of kiln and its peers, under one share: kernels by system, reasons by system, the share."""
    issues, why = {}, {}
    for system, p in [("kiln", own), *peers.items()]:
        try:
            if p:
                issues[system] = simulator.pilot(p)
        except count.Refused as problem:
            why[system] = str(problem)
    share = count.share_of(list(issues.values()), elements, simulator.most) if issues else 1
    kernels = {}
    for system, n in issues.items():
        try:
            kernels[system] = simulator.counts(own if system == "kiln" else peers[system], n, share)
        except count.Refused as problem:
            why[system] = str(problem)
    return kernels, why, share


def rows_of(name, path, kiln, peers, simulator, timed):
    with open(path) as f:
        hlo = f.read()
    own, reason = kiln.program(path)
    why, others = ({} if own else {"kiln": reason}), {}
    for system, p, reason in peers.programs(path):
        others[system] = p
        if not p:
            why[system] = reason
    known = [p for p in (own, *others.values()) if p]
    arrays = list(needed(hlo, known[0])) if known else []
    elements = max([n for _, n in arrays], default=0) or 1
    least = sum(a.bytes * n // a.elements for a, n in arrays if n) / 32
    kernels, refused, share = count_both(simulator, own, others, elements)
    why.update(refused)
    times = measure(path, hlo, kiln, peers.xla if others.get("XLA") else None, own) if timed else {}
    for system in others:
        r = {"name": name, "system": system, "share": share, "elements": elements, "least": least, "why": why}
        for role, who in (("kiln", "kiln"), ("peer", system)):
            r[role + "_kernels"] = kernels.get(who, [])
            r[role] = page.figures(kernels[who], elements) if who in kernels else {}
            r[role].update(times.get(who, {}))
        yield r


def measure(path, hlo, kiln, xla, own):
    """In turns: XLA, where it takes the program, kiln and NVRTC, XLA."""
    first = xla.milliseconds(hlo, RUNS) if xla else None
    ms, nvrtc = kiln.milliseconds(path) if own else (None, None)
    second = xla.milliseconds(hlo, RUNS) if xla else None
    return {"kiln": {"ms": ms, "ms_nvrtc": nvrtc}, "XLA": {"ms": first and (first + second) / 2}}


# --- the page ---------------------------------------------------------------------------------------------------------


def heading(kiln, peers):
    version = subprocess.run([kiln.command, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"^model name\s*: (.*)", f.read(), re.M)
    made = f"jax {peers.xla.version}" if peers.xla else "jax, which is not there"
    return [f"Made by `./bootstrap bench peers` on {datetime.datetime.now(datetime.timezone.utc):%F} with {version}, XLA of "
            f"{made}, ptxas of {count.program_version('ptxas')}; times on {cpu[1] if cpu else 'an unknown CPU'}, "
            f"{os.cpu_count()} cores. [peers](../peers/README.md) says what the columns are."]


def reasons(rows):
    found = {f"- {r['name']} by {system}: {why}": None for r in rows for system, why in r["why"].items()}
    return ["", "Not there:", "", *found] if found else []


def text_of(groups, kiln, peers, launches):
    lines = ["# kiln beside other compilers, without a GPU", "", *heading(kiln, peers)]
    for title, rows in groups.items():
        lines += ["", f"## {title}", "", *page.programs(rows), *reasons(rows)]
        if launches:
            lines += ["", f"## {title}: launches", "", *page.launches(rows)]
    return "\n".join(lines) + "\n"


def rounded(v):
    """Six digits of every float in it."""
    if isinstance(v, dict):
        return {k: rounded(w) for k, w in v.items()}
    return [rounded(w) for w in v] if isinstance(v, list) else float(f"{v:.6g}") if isinstance(v, float) else v


def write(path, groups, text):
    with open(path, "w") as f:
        f.write(text)
    left = ("kiln_kernels", "peer_kernels")
    rows = [{k: v for k, v in r.items() if k not in left} for rows in groups.values() for r in rows]
    with open(os.path.splitext(path)[0] + ".json", "w") as f:
        json.dump(rounded(rows), f, indent=1)
        f.write("\n")


def use_packages():
    """ptxas, nvdisasm and NVRTC are those that came with XLA, where nobody names others."""
    for home in glob.glob(os.path.join(sys.prefix, "lib", "python3*", "site-packages", "nvidia", "cu[0-9]*")):
        os.environ.setdefault("CUDA_HOME", home)
        os.environ.setdefault("KILN_PTXAS", os.path.join(home, "bin", "ptxas"))
        os.environ.setdefault("KILN_NVDISASM", os.path.join(home, "bin", "nvdisasm"))


def main():
    words = argparse.ArgumentParser(prog="peers")
    words.add_argument("build", metavar="BUILD")
    words.add_argument("--launches", action="store_true", help="also a row for each launch")
    words.add_argument("--no-times", action="store_true", help="count only")
    words.add_argument("--issues", type=int, default=count.MOST_ISSUES, help="issues of warps that are run of a program")
    words.add_argument("--out", metavar="FILE.md", help="where the page goes")
    words.add_argument("names", metavar="NAME", nargs="*")
    a = words.parse_intermixed_args()
    use_packages()
    chosen = dict.fromkeys(f for n in a.names or UNNAMED for f in files_of(n))
    cache = os.path.join(a.build, "peers")
    kiln, peers = Kiln(a.build), Peers(os.path.join(cache, "xla"))
    simulator = count.Simulator(kiln.command, ROOT, os.path.join(cache, "counts"), a.issues)
    groups = {}
    for k, (name, path) in enumerate(chosen):
        print(f"[{k + 1}/{len(chosen)}] {name}", file=sys.stderr, flush=True)
        group = name.split("/")[0] if "/" in name else "workloads"
        groups.setdefault(group, []).extend(rows_of(name, path, kiln, peers, simulator, not a.no_times))
        if a.out:  # a run that is ended leaves what it has
            write(a.out, groups, text_of(groups, kiln, peers, a.launches))
    if not a.out:
        print(text_of(groups, kiln, peers, a.launches), end="")


main()

#!/usr/bin/env python3
"""counters.py COUNTERS.csv [KILN]: what a GPU's counters say of kernels (gpu.sh writes them with Nsight Compute) beside what `kiln
profile` counts of the same modules: a line for each kernel, and last how many are apart by more than 1 % in requests, sectors and
wavefronts, or 10 % in SASS instructions. KILN: build/kiln; it needs ptxas for the instructions, and nvdisasm for the accesses that
ptxas keeps. The GPU is an H200 if GPU names no other.
Modules of more than MOST_BYTES (8 MiB) are left out: the simulator runs every block."""
import csv
import json
import os
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
COUNTS = (  # name, the hardware's, the simulator's
    ("ld req", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", ("global load", "requests")),
    ("st req", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", ("global store", "requests")),
    ("ld sect", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", ("global load", "sectors")),
    ("st sect", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", ("global store", "sectors")),
    ("shared ld", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", ("shared load", "wavefronts")),
    ("shared st", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", ("shared store", "wavefronts")),
)


def launches(path):
    """[(file, [{counter: value, "kernel": name}])]: of each file the launches of its first run."""
    files = []
    for row in csv.reader(open(path)):
        if row and row[0].startswith("# "):
            files.append((row[0][2:], {}))
        elif len(row) > 11 and files:
            # The columns from `Kernel Name` on hold commas of their own where gpu.sh cut them; the counter is third from the end.
            files[-1][1].setdefault(int(row[0]), {"kernel": row[1]})[row[-3]] = float(row[-1])
    out = []
    for name, by_number in files:
        found, seen = [], set()
        for number in sorted(by_number):
            if by_number[number]["kernel"] in seen:
                break
            seen.add(by_number[number]["kernel"])
            found.append(by_number[number])
        out.append((name, found))
    return out


def profiles(kiln, path, gpu):
    done = subprocess.run([kiln, "profile", os.path.join(ROOT, path), "--gpu", gpu, "--json"], capture_output=True, text=True)
    if done.returncode:
        return None
    return {k["kernel"]: k for k in json.loads(done.stdout)["kernels"]}


def main():
    path, kiln = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "build", "kiln")
    gpu = os.environ.get("GPU", "H200")
    print(f"{'':34}" + "".join(f"{c[0]:>19}" for c in COUNTS) + f"{'SASS':>23}{'registers':>11}{'us':>17}")
    kernels = apart = sass_apart = 0
    for file, found in launches(path):
        if not found:
            continue
        known = profiles(kiln, file, gpu)
        for launch in found if known else ():
            p = known.get(launch["kernel"])
            if not p:
                continue
            kernels += 1
            sums = {a["kind"]: a for a in (p["sass"] or {}).get("accesses") or p["accesses"]}
            line = f"{os.path.basename(file)[:-4] + ' ' + launch['kernel']:34.33}"
            for _, counter, (kind, what) in COUNTS:
                real, ours = launch.get(counter, -1), sums.get(kind, {}).get(what, 0)
                bad = abs(real - ours) > .01 * max(real, ours)
                apart += bad
                line += f"{real:9.0f}{'!' if bad else '='}{ours:<9.0f}"
            real, ours = launch["smsp__inst_executed.sum"], p["sass"]["executed"]
            limit = .10 if p["sass"]["estimated"] else .01
            bad = abs(real - ours) > limit * real
            sass_apart += bad
            line += f"{real:12.0f}{'!' if bad else '='}{ours:<10.0f}"
            line += f"{launch['launch__registers_per_thread']:5.0f} {p['sass']['registers']:<5}"
            line += f"{launch['gpu__time_duration.sum'] / 1e3:8.2f} {p['predicted_us']:<8.2f}"
            print(line)
    print(f"{kernels} kernels: {apart} counts of memory are more than 1 % apart, {sass_apart} of SASS more than 1 % (loops 10 %)")


main()

#!/usr/bin/env python3
"""gpu_page.py OUT [COUNTERS.txt]: what gpu.sh left in OUT (results.json) as a page: times beside a copy of as many bytes, XLA and
PyTorch, what was right; and the table that counters.py printed, if it is named. Prints Markdown."""
import json
import math
import sys


def number(value, digits=1):
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else "-"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    results = json.load(open(f"{sys.argv[1]}/results.json"))
    device = results["devices"]["gpus"][0]
    peers, how = {}, {}
    for p in results["peers"] or ():
        how.update((p or {}).get("how", {}))
        for name in ("jax", "torch"):
            if p and p.get(name):
                peers[name] = p[name]
    print(f"# On {device['name']}\n")
    print(f"`benchmarks/gpu.sh` of {results['date']}, driver {results['driver']}. Microseconds, the median of 50 runs, each with "
          "a cold L2 cache; a copy is of as many bytes from device memory to device memory. A peer's number in brackets is its time "
          f"over kiln's. {'; '.join(f'{k}: {v}' for k, v in how.items())}.\n")
    print("| module | kiln | GB/s | of a copy | XLA | PyTorch | registers | compiled in ms |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = {"jax": [], "torch": []}
    copies = []
    for row in results["rows"]:
        if row["group"] not in ("workload", "example", "variant") or not row.get("us"):
            continue
        key = ("examples/" if row["group"] == "example" else "") + row["file"]
        cells = []
        for name in ("jax", "torch"):
            us = (peers.get(name) or {}).get(key) if row["group"] != "variant" else None
            if us:
                cells.append(f"{us:.1f} ({us / row['us']:.2f})")
                if row["group"] == "workload":
                    ratios[name].append(us / row["us"])
            else:
                cells.append("-")
        share = row["copy_us"] / row["us"]
        if row["group"] == "workload":
            copies.append(share)
        print(f"| {key} | {number(row['us'], 2)} | {number(row['gb_per_s'], 0)} | {100 * share:.0f} % | {cells[0]} | {cells[1]} | "
              f"{row['registers']} | {number(row['compile_ms'], 2)} |")
    print(f"\nWorkloads, geometric means: {100 * mean(copies):.0f} % of a copy's rate; XLA takes {mean(ratios['jax']):.2f} times kiln's time "
          f"({len(ratios['jax'])} workloads, {sum(r >= 1 for r in ratios['jax'])} of them at or above), PyTorch {mean(ratios['torch']):.2f} times "
          f"({len(ratios['torch'])}, {sum(r >= 1 for r in ratios['torch'])}).\n")
    groups = {}
    for row in results["rows"]:
        if row.get("right") is None and "error" not in row:
            continue
        right = row.get("right") is True and row.get("unlike_host") == 0
        groups.setdefault(row["group"], []).append((right, row))
    for group, found in sorted(groups.items()):
        wrong = [r["file"] + (": " + r["error"][:120] if "error" in r else "") for good, r in found if not good]
        print(f"- {group}: {sum(good for good, _ in found)} of {len(found)} right and bit for bit the host's"
              + (f"; not: {'; '.join(wrong)}" if wrong else ""))
    if len(sys.argv) > 2:
        print("\n## Counters\n\nThe hardware's (Nsight Compute) beside `kiln profile`'s: `=` within 1 % (SASS of loops 10 %), `!` further apart.\n\n```text")
        print(open(sys.argv[2]).read().rstrip())
        print("```")


main()

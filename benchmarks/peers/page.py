"""What was counted, as tables in markdown: a row for each workload and peer; and a row for each launch."""
import math

NUMBERS = ("least", "sectors", "shared", "sass", "us", "ms", "ms_nvrtc")


def short(n):
    """Three digits: 1.23 M."""
    if n is None:
        return "-"
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if n >= 0.9995 * unit:
            return f"{n / unit:.3g}{name}" if n < 999.5 * unit else f"{n / unit:.0f}{name}"
    return f"{n:.3g}"


def fixed(n):
    if n is None:
        return "-"
    return f"{n:.2f}" if n < 10 else f"{n:.1f}" if n < 100 else f"{n:.0f}"


def ratio(own, other):
    """The peer's over kiln's."""
    return f"{other / own:.2f}" if own and other else "-"


def counters(kernel, kind, what):
    return sum(a[what] for a in kernel["accesses"] if a["kind"].startswith(kind)) * kernel["scale"]


def sectors(kernel):
    return counters(kernel, "global", "sectors")


def sass(kernel):
    """Executed by warps; None where there is no ptxas."""
    return kernel["sass"]["executed"] * kernel["scale"] if kernel["sass"] else None


def total(kernels, what):
    amounts = [what(k) for k in kernels]
    return None if None in amounts else sum(amounts)


def figures(kernels, elements):
    """Of all launches together."""
    executed = total(kernels, sass)
    return {
        "launches": len(kernels),
        "sectors": total(kernels, sectors),
        "shared": total(kernels, lambda k: counters(k, "shared", "wavefronts")),
        "sass": executed and 32 * executed / elements,
        "estimated": any(k["sass"] and k["sass"]["estimated"] for k in kernels),
        "registers": [k["sass"]["registers"] if k["sass"] else k["occupancy"]["registers"] for k in kernels],
        "us": total(kernels, lambda k: k["predicted_us"]),
    }


# --- programs ---------------------------------------------------------------------------------------------------------

HEAD = ("workload", "peer", "counted", "launches", "least", "sectors", "peer's", "ratio", "shared passes", "peer's", "SASS",
        "peer's", "ratio", "registers", "peer's", "us", "peer's", "ratio", "ms", "peer's", "ratio", "NVRTC", "ratio")


def row(r):
    """Of one peer; figures that are not there are '-'."""
    own, peer = r["kiln"] or {}, r["peer"] or {}

    def pair(what, show):
        return [show(own.get(what)), show(peer.get(what))]

    def registers(f):
        return " ".join(map(str, f["registers"])) if f.get("registers") else "-"

    def executed(f):
        return fixed(f.get("sass")) if f.get("sass") is None or not f.get("estimated") else "~" + fixed(f["sass"])

    return [r["name"], r["system"], f"1/{r['share']}" if r["share"] > 1 else "all",
            " / ".join(str(f.get("launches", "-")) for f in (own, peer)), short(r["least"]),
            *pair("sectors", short), ratio(own.get("sectors"), peer.get("sectors")), *pair("shared", short),
            executed(own), executed(peer), ratio(own.get("sass"), peer.get("sass")), registers(own), registers(peer),
            *pair("us", fixed), ratio(own.get("us"), peer.get("us")),
            *pair("ms", fixed), ratio(own.get("ms"), peer.get("ms")),
            fixed(own.get("ms_nvrtc")), ratio(own.get("ms"), own.get("ms_nvrtc"))]


def means(rows):
    """Geometric means of the ratios, of rows that have both."""
    cells = ["mean of ratios"] + [""] * (len(HEAD) - 1)
    for column, what, other in ((7, "sectors", "sectors"), (12, "sass", "sass"), (17, "us", "us"), (20, "ms", "ms"),
                                (22, "ms", "ms_nvrtc")):
        logs = []
        for r in rows:
            own, peer = r["kiln"], r["kiln"] if other == "ms_nvrtc" else r["peer"]
            if own and peer and own.get(what) and peer.get(other):
                logs.append(math.log(peer[other] / own[what]))
        if logs:
            cells[column] = f"{math.exp(sum(logs) / len(logs)):.2f}"
    return cells


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(head, left, rows):
    return [line(head), line(["---" if k < left else "---:" for k in range(len(head))]), *map(line, rows)]


def programs(rows):
    return table(HEAD, 2, [row(r) for r in rows] + [means(rows)])


# --- launches ---------------------------------------------------------------------------------------------------------

LAUNCHES = ("workload", "by", "kernel", "grid", "block", "shared bytes", "read", "written", "sectors", "shared passes",
            "fewest", "barriers", "shuffles", "SASS", "registers", "warps", "us", "limited by")


def widths(kernel, kind):
    """Bytes of a lane, with their shares where there are several."""
    found = {}
    for a in kernel["accesses"]:
        if a["kind"] == kind:
            found = {w: n for w, n in a["width"].items() if n}
    requests = sum(found.values())
    return ", ".join(w if len(found) == 1 else f"{w} ({100 * n / requests:.0f} %)" for w, n in found.items()) or "-"


def launch(name, system, k, elements):
    def issued(kind):
        return short(k["instructions"].get(kind, {"warps": 0})["warps"] * k["scale"])

    executed = sass(k)
    return [name, system, k["kernel"], "x".join(str(n) for n in k["grid"] if n > 1) or "1",
            "x".join(str(n) for n in k["block"] if n > 1) or "1", str(k["shared_bytes"]), widths(k, "global load"),
            widths(k, "global store"), short(sectors(k)), short(counters(k, "shared", "wavefronts")),
            short(counters(k, "shared", "ideal_wavefronts")), issued("barrier"), issued("warp"),
            "-" if executed is None else ("~" if k["sass"]["estimated"] else "") + fixed(32 * executed / elements),
            str(k["occupancy"]["registers"]), str(k["occupancy"]["warps"]), fixed(k["predicted_us"]), k["limiter"]]


def launches(rows):
    lines, told = [], set()
    for r in rows:
        for system, kernels in (("kiln", r["kiln_kernels"]), (r["system"], r["peer_kernels"])):
            if (r["name"], system) not in told:
                lines += [launch(r["name"], system, k, r["elements"]) for k in kernels]
            told.add((r["name"], system))
    return table(LAUNCHES, 3, lines)

"""
What being watched costs. Runs each workload natively, under warder and under its neighbours, in turn
and again, and tells ratios of medians. ./dev bench builds what it needs and starts it.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import measure  # noqa: E402
import plot  # noqa: E402
import workloads  # noqa: E402

ROUNDS = 7
LOOK_SECONDS = 1  # how long we look at what else is going on
SECONDS = 210  # of workloads; the single acts come to it, and what is overrun
VERSIONS = {"gcc": "gcc --version", "git": "git --version", "node": "node --version",
            "python": f"{workloads.python()} --version", "strace": "strace --version",
            "bubblewrap": "bwrap --version", "rsync": "rsync --version", "make": "make --version"}


def parse():
    p = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    p.add_argument("-n", type=int, metavar="N",
                   help="rounds that count (default: 7, or what fits in some minutes)")
    p.add_argument("--only", action="append", metavar="NAME", help="this workload, or `micro` (repeatable)")
    p.add_argument("--mode", action="append", metavar="NAME", help="this way to watch (repeatable)")
    p.add_argument("--smoke", action="store_true", help="tiny sizes, each once: does it all work?")
    p.add_argument("--out", metavar="DIR", help="where results.json and overhead.svg go (default: a run "
                   "of everything goes to bench/, any other nowhere)")
    p.add_argument("--build", default=os.path.join(HERE, "..", "build"), metavar="DIR",
                   help="the build directory")
    a = p.parse_args()
    if a.n is not None and a.n < 1:
        p.error("-n: at least 1")
    a.seconds = SECONDS if a.n is None else None
    a.rounds = 0 if a.smoke else a.n or ROUNDS
    if not a.out and not (a.only or a.mode or a.smoke):
        a.out = HERE
    return p, a


def first_line(command):
    if not shutil.which(command.split()[0], path=measure.PATH):
        return None
    with os.popen(f"PATH={measure.PATH} {command} 2>&1") as f:
        return f.readline().strip()


def cpu():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].split())
    return platform.machine()


def machine(top):
    return {"cpu": cpu(), "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()), "uid": os.getuid(),
            "files_on": first_line(f"stat -f -c %T {top}"), "load_before": load(),
            "busy_before": busy(LOOK_SECONDS),
            "versions": {name: first_line(c) for name, c in VERSIONS.items()}}


def busy(seconds):
    """The part of all processors' time that others use now. (The load tells of minutes ago, too.)"""
    def used():
        with open("/proc/stat") as f:
            fields = [int(x) for x in f.readline().split()[1:9]]
        return sum(fields), sum(fields[3:5])  # all, idle and waiting for a disk

    before = used()
    time.sleep(seconds)
    spent, idle = (now - then for now, then in zip(used(), before))
    return round(1 - idle / spent, 2) if spent else 0


def load():
    return [round(x, 2) for x in os.getloadavg()]


def chosen(parser, names, known, option):
    for name in names or ():
        if name not in known:
            parser.error(f"{option}: no {name}; there are {' '.join(known)}")
    return [n for n in known if not names or n in names]


def place_for(top, name):
    below = os.path.join(top, name)
    os.makedirs(below)
    return workloads.Place(below, measure.environment(os.path.join(top, "user")))


def say(words):
    print(words, file=sys.stderr, flush=True)


def probe(modes, top):
    """The modes that work here, and all of them as the result tells them."""
    place = place_for(top, "probe")
    os.makedirs(place.project)
    there, told = [], []
    for m in modes:
        why = measure.usable(m, place)
        told.append({"name": m.name, "title": m.title, **({"skipped": why} if why else {})})
        if not why:
            there.append(m)
        elif not m.program:
            sys.exit(f"bench: {m.title} does not work here: {why}")
    return there, told


def run_rows(rows, modes, top, args):
    results, skipped = [], {}
    end = time.monotonic() + (args.seconds or 0)
    for i, w in enumerate(rows):
        missing = [p for p in w.needs if not shutil.which(p, path=measure.PATH)]
        if missing:
            skipped[w.name] = "not installed: " + " ".join(missing)
            continue
        say(f"bench: {w.title}")
        place = place_for(top, w.name)
        # Each has its part of what is left.
        seconds = args.seconds and (end - time.monotonic()) / (len(rows) - i)
        row = measure.Bench(w, place, modes, args.rounds, say).measure(seconds)
        results.append({**row, "load": load()[0]})
    return results, skipped


def run_micro(args, work, modes, top):
    say("bench: single acts")
    place = place_for(top, "micro")
    os.makedirs(place.project)
    workloads.trees.write(os.path.join(place.outside, "file"), "x\n")
    program = os.path.realpath(os.path.join(args.build, "bench", "bench_micro"))
    samples, opens = (1, 100) if args.smoke else (9, 1000)
    warder = os.path.realpath(os.path.join(args.build, "agent", "warder"))
    return (measure.micro(program, work, place, samples, opens) + measure.starts(modes, place, samples)
            + measure.traces(warder, place, min(samples, 3), 1000 if args.smoke else 300000))


def mean(ratios):
    return round(statistics.geometric_mean(ratios), 3)


def summary(results, modes):
    """For each mode: the geometric mean over the workloads that are in it, and the worst of them."""
    told = {}
    for m in modes:
        counted = [w for w in results if not w["apart"]]
        rows = [(w["cells"][m.name]["ratio"], w["name"]) for w in counted if m.name in w["cells"]]
        if rows and len(rows) == len(counted):  # of fewer it is another mean
            cpu_rows = [w["cells"][m.name]["cpu_ratio"] for w in counted]
            told[m.name] = {"mean": mean(r for r, _ in rows), "worst": max(rows)[0],
                            "worst_name": max(rows)[1], "cpu_mean": mean(cpu_rows)}
    return told


def cell_text(cell, is_native, rounds):
    value = f"{cell['median_ms']:.0f} ms" if is_native else f"{cell['ratio']:.2f}"
    # Of one round there is no spread.
    spread = f" ±{cell['spread'] * 100:.0f}%" if rounds > 1 else ""
    return ("WRONG " if "wrong" in cell else "") + value + spread


def micro_text(m):
    """A difference that is no more than the noise says nothing but that."""
    if m["median_ns"] <= 0:
        return f"{m['name']:<18}{'below the noise':>13}  {m['what']}"
    return (f"{m['name']:<18}{m['median_ns'] / 1000:>10.2f} µs  "
            f"({m['q1_ns'] / 1000:.2f}-{m['q3_ns'] / 1000:.2f})  {m['what']}")


def rows_of_table(result, modes):
    for w in result["workloads"]:
        fast = w["cells"].get("fast", {})
        yield [w["title"] + (" *" if w["apart"] else ""),
               *(cell_text(w["cells"][m["name"]], m["name"] == "native", result["rounds"])
                 if m["name"] in w["cells"] else "-" for m in modes),
               str(fast.get("stops", ""))]
    if result["summary"]:
        for title, key in (("geometric mean without *", "mean"), ("the same of processor time", "cpu_mean")):
            means = [result["summary"].get(m["name"]) for m in modes]
            yield [title, *(f"{mean[key]:.2f}" if mean else "-" for mean in means), ""]


def table(result):
    modes = [m for m in result["modes"] if "skipped" not in m
             and any(m["name"] in w["cells"] for w in result["workloads"])]
    rows = [["", *(m["name"] for m in modes), "stops"], *rows_of_table(result, modes)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths)))
             for r in rows]
    lines += [f"{m['name']}: {m['title']}" for m in modes if m["name"] != m["title"]]
    lines += [micro_text(m) for m in result["micro"]]
    lines += [f"skipped: {m['title']}: {m['skipped']}" for m in result["modes"] if "skipped" in m]
    lines += [f"skipped: {name}: {why}" for name, why in result["skipped"].items()]
    about = result["machine"]
    lines.append(f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}, {about['libc']}, "
                 f"{about['busy_before'] * 100:.0f} % busy before, load {about['load_after'][0]} after")
    return "\n".join(lines)


def write_results(result, out):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "results.json"), "w") as f:
        json.dump(result, f, indent=1, ensure_ascii=False)
        f.write("\n")
    with open(os.path.join(out, "overhead.svg"), "w") as f:
        f.write(plot.svg(result))


def run_all(parser, args, top):
    warder = os.path.realpath(os.path.join(args.build, "agent", "warder"))
    work = os.path.realpath(os.path.join(args.build, "bench", "bench_work"))
    rows = {w.name: w for w in workloads.table(workloads.SMOKE if args.smoke else workloads.FULL, work)}
    modes = {m.name: m for m in measure.modes(warder, work)}
    wanted = chosen(parser, args.only, [*rows, "micro"], "--only")
    ways = chosen(parser, args.mode and ["native", *args.mode], list(modes), "--mode")
    result = {"warder_bench": 1, "started": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
              "smoke": args.smoke, "rounds": args.rounds, "machine": machine(top)}
    there, result["modes"] = probe([modes[n] for n in ways], top)
    result["workloads"], result["skipped"] = run_rows(
        [rows[n] for n in wanted if n in rows], there, top, args)
    result["micro"] = run_micro(args, work, there, top) if "micro" in wanted else []
    result["machine"]["load_after"] = load()
    result["summary"] = summary(result["workloads"], there)
    return result


def main():
    parser, args = parse()
    # Asked to end, it cleans up.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="warder-bench-") as top:
        result = run_all(parser, args, os.path.realpath(top))
    print(table(result))
    if args.out:
        write_results(result, args.out)
    return any("wrong" in c for w in result["workloads"] for c in w["cells"].values())


if __name__ == "__main__":
    sys.exit(main())

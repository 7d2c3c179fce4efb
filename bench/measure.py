"""Runs: one command watched in one way, checked against the same command unwatched; and what follows."""

import json
import math
import os
import resource
import select
import shutil
import signal
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

import trees

RUN_SECONDS = 120  # the longest that one run may take
CELL_SECONDS = 2  # a way that needed so long for a workload is not measured again, unless it is `always`
CLOCK_MS = 1      # processor time is told no finer
ROUNDS_MIN = 3    # rounds that count, while there is any time left
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Mode:
    """A way to watch a command."""
    name: str
    title: str
    prefix: Callable[[object, list], list]  # (place, the workload's options of `warder run`)
    program: Optional[str] = None
    share: float = 1    # of a divisible workload, since it is slow
    reports: bool = False
    always: bool = False  # measured in every round, however slow
    answers: bool = False  # only of what any supervisor must be asked about
    asks: bool = False    # somebody could be asked, and nobody answers: not for what is refused
    beyond: Optional[str] = None  # not measured where this way, which does a part of it, took long


def modes(warder, work):
    def run(fast):
        return lambda place, options: [
            warder, "run", "-q", "--on-denial", "report", "--fast", fast, "--project", place.project,
            "--report", os.path.join(place.top, "report.json"), *options, "--"]

    def record(place, options):
        return [warder, "record", "-o", os.path.join(place.top, "trace.jsonl"), *run("off")(place, options)[2:]]

    def hold(place, options):
        # As at a terminal: changes are listed for a rerun, and what is refused would be asked about.
        pipes = [os.path.join(place.top, n) for n in ("events", "answers")]
        for name in pipes:
            if not os.path.exists(name):
                os.mkfifo(name)
        return ["sh", "-c", 'exec 3<>"$0" 4<>"$1"; shift; exec "$@"', *pipes, warder, "run", "-q", "--events", "3",
                "--answers", "4", "--project", place.project, "--report", os.path.join(place.top, "report.json"),
                *options, "--"]

    strace = ["strace", "-f", "-o", "/dev/null"]
    return [
        Mode("native", "native", lambda place, options: [], always=True),
        Mode("wall", "Landlock alone", lambda place, options: [work, "wall", place.project]),
        Mode("least", "told of, nothing decided", lambda place, options: [work, "least", place.project],
             answers=True),
        Mode("fast", "warder", run("on"), reports=True, always=True),
        Mode("hold", "warder, asking", hold, reports=True, asks=True),
        Mode("slow", "warder --fast off", run("off"), reports=True),
        Mode("record", "warder record", record, reports=True),
        Mode("strace-file", "strace --seccomp-bpf -e %file",
             lambda place, options: [*strace, "--seccomp-bpf", "-e", "trace=%file"], "strace", 0.1),
        Mode("strace", "strace", lambda place, options: strace, "strace", 0.1,
             beyond="strace-file"),
        Mode("bwrap", "bubblewrap", lambda place, options: ["bwrap", "--dev-bind", "/", "/"], "bwrap"),
    ]


def environment(top):
    """The same for every run; nothing of the caller's, so that all files are below `top`."""
    env = {"PATH": PATH, "LC_ALL": "C", "HOME": os.path.join(top, "home"),
           "TMPDIR": os.path.join(top, "tmp"), "XDG_CONFIG_HOME": os.path.join(top, "config"),
           "XDG_STATE_HOME": os.path.join(top, "state"), "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1",
           "npm_config_update_notifier": "false"}
    for name in ("home", "tmp", "config", "state"):
        os.makedirs(os.path.join(top, name), exist_ok=True)
    # Programs that were built with a sanitizer need their options.
    env.update({k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS")})
    return env


def cpu_ms():
    """Processor time of all that we waited for, and all that they did."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


@dataclass
class Run:
    ms: float
    cpu_ms: float
    status: int
    out: bytes
    err: bytes


def ended(process):
    """Whether it came to its end in time. (Popen.wait with a timeout only looks every 50 ms.)"""
    pidfd = os.pidfd_open(process.pid)
    try:
        return bool(select.select([pidfd], [], [], RUN_SECONDS)[0])
    finally:
        os.close(pidfd)


def run(argv, cwd, env, top):
    """One command, from start to end. Its output goes to files: a pipe would make it wait for us."""
    names = [os.path.join(top, n) for n in ("stdout", "stderr")]
    with open(names[0], "wb") as out, open(names[1], "wb") as err:
        start, used = time.perf_counter(), cpu_ms()
        process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=err, start_new_session=True)
        try:
            status = process.wait() if ended(process) else None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        ms = (time.perf_counter() - start) * 1000
    texts = []
    for name in names:
        with open(name, "rb") as f:
            texts.append(f.read())
    return Run(ms, cpu_ms() - used, status, *texts)


@dataclass
class Cell:
    """One workload in one mode."""
    ms: list = field(default_factory=list)
    cpu_ms: list = field(default_factory=list)
    share: float = 1
    engine: dict = field(default_factory=dict)
    wrong: Optional[str] = None

    def spent(self):
        return sum(self.ms) >= CELL_SECONDS * 1000

    def counted(self, times):
        # The first round fills caches; it counts only where there is no other.
        return times[1:] or times

    def ratio(self, times, native_times):
        return round(statistics.median(self.counted(times)) / self.share
                     / statistics.median(self.counted(native_times)), 3)

    def numbers(self, native):
        ms = self.counted(self.ms)
        middle = statistics.median(ms)
        low, _, high = statistics.quantiles(ms, n=4) if len(ms) > 1 else (ms[0],) * 3
        mad = statistics.median(abs(x - middle) for x in ms)
        done = {"ms": [round(x, 3) for x in ms], "median_ms": round(middle, 3), "q1_ms": round(low, 3),
                "q3_ms": round(high, 3), "mad_ms": round(mad, 3), "spread": round(mad / middle, 3),
                "ratio": self.ratio(self.ms, native.ms),
                # Less shaken by a busy machine, and blind to what is waited for.
                "cpu_ratio": self.ratio(self.cpu_ms, native.cpu_ms)}
        if self.share != 1:
            done["share"] = self.share
        return {**done, **self.engine, **({"wrong": self.wrong} if self.wrong else {})}


class Bench:
    """All of one workload, every mode in turn, round after round."""

    def __init__(self, workload, place, modes_, rounds, say):
        self.workload, self.place, self.rounds, self.say = workload, place, rounds, say
        self.modes = [m for m in modes_ if not (m.asks and workload.refused)
                      and not (m.answers and not workload.attributes)]
        self.cells = {m.name: Cell(share=m.share if workload.divisible else 1) for m in self.modes}
        self.native = {}  # share -> the outcome that every mode must have
        for path in (place.project, place.outside):
            os.makedirs(path)
        workload.prepare(place)

    def measure(self, seconds):
        """
        All rounds, or as many as `seconds` allow (None: all). A few are made although they take twice as
        long; on a slow machine one is all there is.
        """
        begin = time.monotonic()
        end, last = (begin + seconds, begin + 2 * seconds) if seconds is not None else (math.inf,) * 2
        for i in range(self.rounds + 1):
            now = time.monotonic()
            if i > 1 and now > (end if i > ROUNDS_MIN else last):
                break
            # Each mode is first in some round: what one leaves behind is not always the same one's.
            turn = i % len(self.modes) if i else 0
            for mode in self.modes[turn:] + self.modes[:turn]:
                cell = self.cells[mode.name]
                if i and (cell.wrong or cell.spent() and not mode.always) or self.is_beyond(mode):
                    continue
                self.once(mode, cell, i == 0)
                if cell.wrong:
                    self.say(f"bench: {self.workload.name}, {mode.title}: {cell.wrong}")
        return self.result()

    def is_beyond(self, mode):
        other = mode.beyond and self.cells.get(mode.beyond)
        return bool(other and self.rounds) and other.spent()

    def once(self, mode, cell, first):
        w = self.workload
        w.reset(self.place)
        r = self.run(mode, cell.share)
        cell.ms.append(r.ms)
        cell.cpu_ms.append(max(r.cpu_ms, CLOCK_MS))
        outcome = self.outcome(r, cell, first)
        if mode.name == "native" and r.status != 0:
            cell.wrong = f"status {r.status}: {r.err[-300:]!r}"
        if not cell.wrong:
            cell.wrong = self.difference(outcome, cell.share, first)
        if mode.reports and not cell.wrong:
            cell.wrong = self.read_report(cell)

    def run(self, mode, share):
        argv = mode.prefix(self.place, self.workload.options(self.place))
        return run([*argv, *self.workload.argv(self.place, share)], self.place.project, self.place.env,
                   self.place.top)

    def outcome(self, r, cell, first):
        made = first and self.workload.made
        files = trees.fingerprint(self.place.at(self.workload.made), self.workload.times) if made else None
        return {"status": r.status, "output": r.out, "files": files}

    def difference(self, outcome, share, first):
        """What is not as native has it, or None."""
        if share not in self.native:
            if share != 1:  # the same part of the work, without anybody who looks on
                self.workload.reset(self.place)
                r = self.run(self.modes[0], share)
                self.native[share] = self.outcome(r, None, first)
            else:
                self.native[share] = outcome
        for what, expected in self.native[share].items():
            if outcome[what] != expected and (first or what != "files"):
                return f"{what} {outcome[what]!r:.300}, natively {expected!r:.300}"
        return None

    def read_report(self, cell):
        """The run's own account: takes its numbers, and says what is not as the workload is meant."""
        path = os.path.join(self.place.top, "report.json")
        with open(path) as f:
            report = json.load(f)
        os.unlink(path)
        engine = report["engine"]
        refused = sum(d["count"] for d in report["denials"])
        cell.engine = {"stops": engine["stops"], "brokered": engine["brokered"], "refused": refused}
        if refused < self.workload.refused:
            return f"{self.workload.refused} refused opens, the report tells {refused}"
        if engine["brokered"] < self.workload.brokered:
            return f"{self.workload.brokered} opens to broker, the report tells {engine['brokered']}"
        return None

    def result(self):
        native = self.cells["native"]
        return {"name": self.workload.name, "title": self.workload.title, "apart": self.workload.apart,
                "cells": {name: cell.numbers(native) for name, cell in self.cells.items() if cell.ms}}


def usable(mode, place):
    """None, or why this way to watch can't be had here."""
    if mode.program and not shutil.which(mode.program, path=PATH):
        return f"{mode.program} is not installed"
    r = run([*mode.prefix(place, []), "true"], place.project, place.env, place.top)
    return None if r.status == 0 else f"status {r.status}: {r.err.decode(errors='replace').strip()[-300:]}"


def act(name, what, ns):
    low, middle, high = statistics.quantiles(ns, n=4) if len(ns) > 1 else ns * 3
    return {"name": name, "what": what, "median_ns": round(middle), "q1_ns": round(low),
            "q3_ns": round(high), "samples": len(ns)}


def micro(program, work, place, samples, opens):
    """What single acts cost."""
    r = run([program, work, place.outside, str(samples), str(opens)], place.project, place.env, place.top)
    if r.status != 0:
        raise RuntimeError(f"bench_micro: status {r.status}: {r.err.decode(errors='replace')}")
    return [act(**json.loads(line)) for line in r.out.decode().splitlines()]


def starts(ways, place, samples):
    """What starting and ending each way to watch costs, beside the command's own."""
    ns = {m.name: [] for m in ways}
    for _ in range(samples):
        for m in ways:
            r = run([*m.prefix(place, []), "true"], place.project, place.env, place.top)
            ns[m.name].append(r.ms * 1e6)
    native = statistics.median(ns["native"])
    return [act(f"start-{m.name}", f"{m.title}: start and end", [x - native for x in ns[m.name]])
            for m in ways if m.name != "native"]


def repeated(trace, events, to):
    """The trace's events, over and over; how many there are."""
    with open(trace) as f:
        head, *lines, _ = f.readlines()
    times = max(1, events // len(lines))
    with open(to, "w") as f:
        f.write(head)
        for _ in range(times):
            f.writelines(lines)
        f.write(json.dumps({"ev": "end", "events": times * len(lines)}) + "\n")
    return times * len(lines)


def traces(warder, place, samples, events):
    """What an event costs that is read again, beside jq on the same lines."""
    trace, long = (os.path.join(place.top, n) for n in ("trace.jsonl", "long.jsonl"))
    r = run([warder, "record", "-q", "-o", trace, "--on-denial", "report", "--project", place.project, "--",
             "sh", "-c", "ls -R /usr/include; cat " + os.path.join(place.outside, "file")],
            place.project, place.env, place.top)
    if not os.path.exists(trace):
        raise RuntimeError(f"warder record: status {r.status}: {r.err.decode(errors='replace')}")
    n = repeated(trace, events, long)
    ways = [("replay-event", "an event of a trace, replayed as it was recorded", [warder, "replay", long]),
            ("replay-judge", "the same, judged by another policy",
             [warder, "replay", "--policy", "/dev/null", long])]
    if shutil.which("jq", path=PATH):
        ways.append(("jq-event", "the same line through jq -c 'select(.ret<0)'", ["jq", "-c", "select(.ret<0)", long]))
    found = []
    for name, what, argv in ways:
        runs = [run(argv, place.project, place.env, place.top) for _ in range(samples)]
        if any(r.status not in (0, 1) for r in runs):
            raise RuntimeError(f"{argv}: {runs[-1].err.decode(errors='replace')}")
        found.append(act(name, what, [r.ms * 1e6 / n for r in runs]))
    return found

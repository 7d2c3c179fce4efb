"""
What the reports of a test tell, kept in a file so that two runs of the test can be compared: all that is about what
was refused, asked and granted. Left out are times, process numbers, the test's own directory and the order, for
which of two processes is first is chance; and what is suggested: it follows from the rest, and from whether a name that
was drawn by lot looks like it.
"""

import collections
import json
import os
import re
import sys

CHANCE = ("t_ms", "pid")  # of a denial
# Names that programs, the tests and warder draw by lot; numbers of processes.
DRAWN = [
    (re.compile(r"/proc/\d+\b"), "/proc/PID"),
    (re.compile(r"\b(task/|hsperfdata_\w+/|\.tmp-)\d+"), r"\1PID"),
    (re.compile(r'("given": )"\d+"'), r'\1"PID"'),
    (re.compile(r"(\.warder-pool-|warder-\w+-|/Cu|/wl|/tmp\.?|/cc|/sed|/packs_|/t(?=\w{6}\b))[A-Za-z0-9_]{6,}\b"), r"\1*"),
    (re.compile(r"(\bproject-|\bpack-|\bobjects/)[0-9a-f]{2,}(/[0-9a-f]{38})?\b"), r"\1*"),
    (re.compile(r"\.[0-9a-f]{8}\.part\b"), ".*.part"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d_]+Z"), "DATE"),
    (re.compile(r"(?<=[A-Za-z./_-])\d{5,}"), "N"),
]


def plain(text, place):
    text = text.replace(place, "PLACE")
    for pattern, name in DRAWN:
        text = pattern.sub(name, text)
    return text


def sentences(report, place, counts):
    """What it tells, each thing as one line."""
    for what in ("status", "runs"):
        yield f"{what} {json.dumps(report[what])}"
    for what in ("denials", "grants"):
        for thing in report[what]:
            left = {k: v for k, v in thing.items() if k not in CHANCE and not k.endswith("_b64")}
            if not counts:
                left.pop("count", None)
            yield f"{what} {plain(json.dumps(left, sort_keys=True), place)}"
    for note in report["engine"]["notes"]:
        yield f"notes {plain(note, place)}"


def keep(directory, test, report, place, counts=True):
    """As the next report of this test, which worked in `place`. Without counts: they are chance, too."""
    with open(os.path.join(directory, test), "a", encoding="utf-8") as f:
        f.write(json.dumps(list(sentences(report, place, counts))) + "\n")


def read(directory, test):
    try:
        with open(os.path.join(directory, test), encoding="utf-8") as f:
            return [collections.Counter(json.loads(line)) for line in f]
    except FileNotFoundError:
        return []


def differences(one, other):
    """Of what two directories keep; each names the directory that alone has it."""
    names = [os.path.basename(d) for d in (one, other)]
    said = []
    for test in sorted({*os.listdir(one), *os.listdir(other)}):
        first, second = (read(d, test) for d in (one, other))
        if len(first) != len(second):
            said.append(f"DIFFERS {test}: {names[0]} has {len(first)} reports, {names[1]} has {len(second)}")
        for i, (a, b) in enumerate(zip(first, second)):
            for name, more in zip(names, (a - b, b - a)):
                said += [f"DIFFERS {test}, report {i + 1}, {name} alone: {sentence}" for sentence in more.elements()]
    return said


if __name__ == "__main__":
    print("\n".join(differences(*sys.argv[1:])))

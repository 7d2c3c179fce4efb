#!/usr/bin/env python3
"""
In the guest: pass the tests of a list (what `ctest --show-only=json-v1` says), one by one, and tell on the
console. Each line that the host reads begins with "arm64:".
"""

import json
import os
import select
import subprocess
import sys
import time


def say(*words):
    print("arm64:", *words, flush=True)


def watch(process, end, verbose):
    """What it writes, and whether it ended in time."""
    out = b""
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return out, False
        if select.select([process.stdout], [], [], left)[0]:
            some = os.read(process.stdout.fileno(), 65536)
            if not some:
                return out, True
            out += some
            if verbose:
                sys.stdout.buffer.write(some)
                sys.stdout.flush()


def run(test, listed):
    """What came of it, how long it took, what it wrote."""
    argv = test["command"]
    if os.path.basename(argv[0]).startswith("python3"):
        argv = [sys.executable, *argv[1:], "-v", *listed["words"]]
    elif "--timeout" in argv:  # Criterion's, for each case
        at = argv.index("--timeout") + 1
        argv = [*argv[:at], str(int(argv[at]) * int(os.environ.get("WARDER_SLOW", "1"))), *argv[at + 1:]]
    properties = {p["name"]: p["value"] for p in test["properties"]}
    env = dict(os.environ, **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", [])))
    start = time.monotonic()
    with subprocess.Popen(argv, env=env, cwd=properties["WORKING_DIRECTORY"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        out, ended = watch(process, start + listed["limit"], listed["verbose"])
        if not ended:
            process.kill()
            out += b"\nits time was up\n"
    word = "ok" if process.returncode == 0 else "FAILED"
    return word, time.monotonic() - start, out.decode("utf-8", "replace")


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        listed = json.load(f)
    say("kernel", os.uname().release, os.uname().machine)
    failed = 0
    for test in listed["tests"]:
        word, took, out = run(test, listed)
        failed += word != "ok"
        skipped = out.count("... skipped")
        if word != "ok" and not listed["verbose"]:
            print(out[-listed["tail"]:], flush=True)
        say(word, test["name"], f"{took:.0f} s", f"{skipped} skipped" if skipped else "")
    say("end", len(listed["tests"]), failed)


if __name__ == "__main__":
    main()

"""
both.py SCRIPT [ARG...]: the test script passes with the fast path off (by the warder of slow.c, WARDER_FAST_OFF);
and where it reads reports, it passes with it on, too, and both tell the same of what was refused, asked and granted.

tests/live/run_help.py keeps each test's reports in TOLD, in their order (told.py).
"""

import json
import os
import subprocess
import sys
import tempfile

import told

LEFT_OUT = {
    "live/test_aarch64.py": "it is about a machine without a fast path",
    "live/test_bench.py": "it measures with and without the fast path itself",
    "live/test_doctor.py": "the doctor's own runs take no options",
    "live/test_fast.py": "it compares both itself",
    "live/test_fast_corners.py": "it compares both itself",
    "live/test_fast_sites.py": "it is about what the fast path keeps from run to run",
    "live/test_help_screens.py": "no command is run",
    "live/test_landlock_cases.py": "no command is run",
    "live/test_landlock_model.py": "no command is run",
    "live/test_learn.py": "a recorded run has no fast path",
    "live/test_learn_record.py": "a recorded run has no fast path",
    "live/test_libraries.py": "which libraries are loaded depends on it",
    "live/test_policy_export.py": "no command is run",
    "live/test_strace_logs.py": "no command is run",
    "live/test_trace_record.py": "a recorded run has no fast path",
    "live/test_trace_replay.py": "a recorded run has no fast path",
    "live/test_trace_what_if.py": "a recorded run has no fast path",
    "terminal/test_doctor_screen.py": "the doctor's own runs take no options",
}
SKIPPED = 77


def run(words, directory, warder):
    os.mkdir(directory)
    print(f"---- with the {os.path.basename(directory)}", flush=True)
    env = {**os.environ, "WARDER": warder, "TOLD": directory}
    return subprocess.run([sys.executable, *words], env=env, check=False).returncode


def is_off(warder, place):
    """Is that its default?"""
    done = subprocess.run([warder, "run", "-q", "--json", "--", "true"], cwd=place, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["engine"]["fast"] is False


def main():
    reason = LEFT_OUT.get("/".join(os.path.realpath(sys.argv[1]).split("/")[-2:]))
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="warder-told-") as top:
        if not is_off(os.environ["WARDER_FAST_OFF"], top):
            return f"{os.environ['WARDER_FAST_OFF']} has the fast path on"
        off, on = (os.path.join(top, f"fast path {word}") for word in ("off", "on"))
        status = run(sys.argv[1:], off, os.environ["WARDER_FAST_OFF"])
        if status or not os.listdir(off):
            return status
        status = run(sys.argv[1:], on, os.environ["WARDER"])
        differences = told.differences(off, on)
        print("\n".join(differences), flush=True)
        return status or bool(differences)


if __name__ == "__main__":
    sys.exit(main())

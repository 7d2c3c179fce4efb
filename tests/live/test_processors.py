"""The tracer goes to the tracee's processor: nobody else sees anything of it."""

import os
import re
import unittest

from run_help import WARDER, RunCase, both_users, main, needs, wait_until

OWN = sorted(os.sched_getaffinity(0))

# While refusals stop it densely: what it has, what its children and threads are born with, and what
# it chose itself.
LOOK = r"""
import os, sys, threading
refused, own = sys.argv[1], {int(c) for c in sys.argv[2].split(",")}
def stop():
    for _ in range(20):
        try:
            os.open(refused, os.O_RDONLY)
        except PermissionError:
            pass
def check(what, expected):
    found = os.sched_getaffinity(0)
    if found != expected:
        sys.exit(f"{what}: {found}, not {expected}")
def in_thread(expected, bad):
    stop()
    if os.sched_getaffinity(0) != expected:
        bad.append(os.sched_getaffinity(0))
def in_child(expected):
    pid = os.fork()
    if pid == 0:
        bad = os.sched_getaffinity(0) != expected
        stop()
        os._exit(bad or os.sched_getaffinity(0) != expected)
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"a child of {expected} has others")
for chosen in (own, {min(own)}, {max(own)}, own):
    stop()
    os.sched_setaffinity(0, chosen)
    for _ in range(40):
        stop()
        check("chosen", chosen)
        in_child(chosen)
    bad = []
    threads = [threading.Thread(target=in_thread, args=(chosen, bad)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if bad:
        sys.exit(f"a thread of {chosen} has {bad}")
print("the same")
"""


def name_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def allowed(status):
    with open(status) as f:
        return re.search(r"^Cpus_allowed_list:\s*(\S+)", f.read(), re.M).group(1)


@unittest.skipIf(len(OWN) < 2, "there is one processor")
@both_users
class Processors(RunCase):
    @needs("python3")
    def test_a_tracee_has_its_own(self):
        refused = self.write(os.path.join(self.outside, "refused"), "x")
        done = self.run_report("--on-denial", "report", "--", "/usr/bin/python3", "-c", LOOK, refused,
                               ",".join(map(str, OWN)))
        self.assertEqual(done.out, "the same\n", done)

    @needs("nproc", "taskset")
    def test_programs_count_as_ever(self):
        for prefix in ([], ["taskset", "-c", str(OWN[-1])]):
            expected = self.native(*prefix, "nproc").out
            for _ in range(5):
                done = self.run_report("--on-denial", "report", "--", "sh", "-c",
                                       "for i in 1 2 3 4 5; do cat /etc/shadow 2>/dev/null; done; exec \"$@\"",
                                       "sh", *prefix, "nproc")
                self.assertEqual(done.out, expected, done)

    def test_it_roams_when_nothing_stops(self):
        mine = allowed("/proc/self/status")
        process = self.start([WARDER, "run", "--on-denial", "report", "--", "sh", "-c",
                              "for i in 1 2 3 4 5 6 7 8 9; do cat /etc/shadow 2>/dev/null; done; exec sleep 30"])

        def sleeps():
            return any(name_of(pid) == "sleep" for pid in self.children_of(process))
        self.assertTrue(wait_until(sleeps))
        self.assertTrue(wait_until(lambda: allowed(f"/proc/{process.pid}/status") == mine))
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            self.assertEqual(allowed(f"/proc/{process.pid}/task/{thread}/status"), mine)
        process.terminate()
        self.end(process)


if __name__ == "__main__":
    main()

"""The tracer goes to the tracee's processor: nobody else sees anything of it."""

import os
import re
import subprocess
import tempfile
import time
import unittest

from run_help import WARDER, RunCase, both_users, counts_by_chance, main, needs, wait_until

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

# A thread that is refused things, and another that chooses its processors meanwhile.
CHOOSE = r"""
import os, sys, threading
refused, own = sys.argv[1], [int(c) for c in sys.argv[2].split(",")]
tids, over = [], []
def stop():
    tids.append(threading.get_native_id())
    while not over:
        try:
            os.open(refused, os.O_RDONLY)
        except PermissionError:
            pass
thread = threading.Thread(target=stop)
thread.start()
while not tids:
    pass
bad = []
for i in range(1000):
    chosen = {own[i % 2]} if i % 3 else set(own)
    os.sched_setaffinity(tids[0], chosen)
    found = os.sched_getaffinity(tids[0])
    if found != chosen:
        bad.append((found, chosen))
over.append(True)
thread.join()
print(bad)
"""

# The slices of a program (the runtime of sched_getattr(2), by number) after refusals.
SLICE = r"""
import ctypes, os, struct, sys
def slice_of(pid):
    attr = ctypes.create_string_buffer(48)
    ctypes.CDLL(None).syscall(int(sys.argv[2]), pid, attr, 48, 0)
    return struct.unpack_from("<Q", attr.raw, 24)[0]
for _ in range(20):
    try:
        os.open(sys.argv[1], os.O_RDONLY)
    except PermissionError:
        pass
print(slice_of(0))
"""

# Looked for while refusals stop it densely, until it was told so: how many processors it has.
COUNT = r"""
import os, sys, time
while not os.path.exists(sys.argv[2]):
    try:
        os.open(sys.argv[1], os.O_RDONLY)
    except PermissionError:
        pass
    time.sleep(0.0001)
print(len(os.sched_getaffinity(0)))
"""
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}[os.uname().machine]


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

    @needs("python3")
    @counts_by_chance
    def test_a_choice_for_another_thread_stands(self):
        refused = self.write(os.path.join(self.outside, "refused"), "x")
        done = self.run_report("--on-denial", "report", "--", "/usr/bin/python3", "-c", CHOOSE, refused,
                               ",".join(map(str, OWN)))
        self.assertEqual(done.out, "[]\n", done)

    @needs("python3")
    def test_it_keeps_its_short_slices_to_itself(self):
        refused = self.write(os.path.join(self.outside, "refused"), "x")
        program = ["/usr/bin/python3", "-c", SLICE, refused, str(SCHED_GETATTR)]
        expected = self.native(*program).out
        done = self.run_report("--on-denial", "report", "--", *program)
        self.assertEqual(done.out, expected, done)

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


GROUPS = "/sys/fs/cgroup"  # version 1

# Four threads: children, what is refused, and files of their own.
WORK = r"""
import subprocess, sys, threading
bad = []
def work(k):
    for _ in range(15):
        subprocess.run(["/bin/true"], check=True)
        try:
            open(sys.argv[1])
            bad.append(k)
        except PermissionError:
            pass
        for _ in range(10):
            open(f"f{k}", "w").close()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("bad" if bad else "done")
"""


def tell(file, text):
    with open(file, "w") as f:
        f.write(text)


class GroupCase(RunCase):
    """A container's share of the processors."""

    controller = None

    def setUp(self):
        super().setUp()
        self.refused = self.write(os.path.join(self.outside, "refused"), "x")
        self.group = tempfile.mkdtemp(prefix="warder-test-", dir=f"{GROUPS}/{self.controller}")
        self.addCleanup(os.rmdir, self.group)

    def begin(self, code, *args, options=()):
        return self.start(["sh", "-c", f'echo $$ >{self.group}/tasks; exec "$@"', "sh", WARDER, "run", *options,
                           "--on-denial", "report", "--report", self.report_file, "--", "/usr/bin/python3", "-c", code,
                           self.refused, *args],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def assertAllDone(self, process):
        self.assertEqual(process.communicate(timeout=120)[0], "done\n")
        self.assertEqual(sum(d["count"] for d in self.read_report()["denials"]), 60)


@unittest.skipIf(len(OWN) < 2 or os.geteuid() != 0 or not os.access(f"{GROUPS}/cpuset", os.W_OK),
                 "for root, with cpusets")
@needs("python3")
class Set(GroupCase):
    controller = "cpuset"

    def setUp(self):
        super().setUp()
        with open(f"{GROUPS}/cpuset/cpuset.mems") as f:
            tell(f"{self.group}/cpuset.mems", f.read())
        self.cpus(OWN)

    def cpus(self, cpus):
        tell(f"{self.group}/cpuset.cpus", ",".join(map(str, cpus)))

    def test_what_is_taken_and_given_back_is_had_again(self):
        over = os.path.join(self.project, "over")
        process = self.begin(COUNT, over)
        for cpus in (OWN, OWN[:1], OWN, OWN[1:], OWN):
            self.cpus(cpus)
            time.sleep(0.2)
        self.write(over, "")
        self.assertEqual(process.communicate(timeout=30)[0].split(), [str(len(OWN))])

    def test_others_from_one_moment_to_the_next(self):
        for fast in ("on", "off"):
            process = self.begin(WORK, options=("--fast", fast))
            while process.poll() is None:
                for cpus in (OWN[:1], OWN[1:2], OWN):
                    self.cpus(cpus)
                    time.sleep(0.01)
            self.assertAllDone(process)


@unittest.skipIf(os.geteuid() != 0 or not os.access(f"{GROUPS}/cpu", os.W_OK), "for root, with processor time")
@needs("python3")
class Quota(GroupCase):
    controller = "cpu"

    def test_little_time(self):
        tell(f"{self.group}/cpu.cfs_quota_us", "20000")
        self.assertAllDone(self.begin(WORK))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""
A debugger from outside: of the command, which has its tracer already; of warder itself, started by gdb or met by it in
the middle of its work; and of what a command leaves when it dies.
"""

import glob
import os
import re
import subprocess

from peer_help import PATH, RunCase, both_users, main, needs
from run_help import TIMEOUT, WARDER, counts_by_chance, fixture

# Opens both, 50 times before each line that comes; says how often the second was refused.
STEPS = """
import sys
def step():
    refused = 0
    for i in range(50):
        open(sys.argv[1]).close()
        try:
            open(sys.argv[2]).close()
        except PermissionError:
            refused += 1
    print(refused, flush=True)
step()
for line in sys.stdin:
    step()
"""

# Until a file is there: what is allowed, what is refused, what is opened in its place.
WORKS = """
import os, sys
refused = opened = 0
while opened < 100 or not os.path.exists("stop"):
    opened += 1
    open(sys.argv[1]).close()
    os.close(os.open(os.path.dirname(sys.argv[2]), os.O_RDONLY))
    try:
        open(sys.argv[2]).close()
    except PermissionError:
        refused += 1
print(opened == refused, refused)
"""


@both_users
class Gdb(RunCase):
    def setUp(self):
        super().setUp()
        self.good = self.write("project/good", "x")
        self.secret = self.write("outside/secret", "x")

    def gdb(self, *words, commands=(), timeout=TIMEOUT):
        """What it says; it reads nobody's settings and fetches nothing."""
        each = [w for c in commands for w in ("-ex", c)]
        env = {**self.env, "PATH": PATH, "DEBUGINFOD_URLS": ""}
        done = self.native("gdb", "-nx", "-batch", *each, *words, env=env, timeout=timeout)
        return done.out + done.err

    def begin(self, script, *args, options=()):
        """warder over a Python script."""
        return self.start([WARDER, "run", "-q", "--on-denial", "report", "--report", self.report_file, *options, "--",
                          "/usr/bin/python3", "-c", script, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @needs("gdb")
    def test_a_tracee_has_its_tracer(self):
        """gdb and gcore are told so by the kernel, and nothing happened."""
        run = self.begin(STEPS, self.good, self.secret)
        self.assertEqual("50\n", run.stdout.readline())
        pid = self.children_of(run)[0]
        said = self.gdb("-p", str(pid), commands=["call (int)getpid()", "set var *(char*)$pc = 0xcc", "detach"])
        self.assertIn(f"is already traced by process {run.pid}", said)
        self.assertIn("Operation not permitted", said)
        core = os.path.join(self.tmp, "core")
        said = self.native("gcore", "-o", core, str(pid), env={**self.env, "PATH": PATH}).out
        self.assertEqual([], glob.glob(core + "*"), said)
        out, _ = run.communicate("again\n", TIMEOUT)
        self.assertEqual((0, "50\n"), (run.returncode, out))
        self.assertEqual([(self.secret, 100)], [(d["path"], d["count"]) for d in self.read_report()["denials"]])

    @needs("gdb")
    @counts_by_chance
    def test_it_attaches_to_warder_at_work(self):
        """Each time it is stopped wherever it is, and goes on; the command waits meanwhile."""
        run = self.begin(WORKS, self.good, self.secret, options=("--rule", f"allow list {self.outside} exact"))
        for _ in range(3):
            said = self.gdb("-p", str(run.pid), commands=[
                "backtrace", "catch syscall ptrace", *["continue"] * 3, "delete", "detach"])
            self.assertIn(" engine_run (", said)
            self.assertIn("call to syscall ptrace", said)
            self.assertRegex(said, r"Inferior 1 \(process \d+\) detached")
        self.write("project/stop")
        out, _ = run.communicate("", TIMEOUT)
        right, refused = out.split()
        self.assertEqual((0, "True"), (run.returncode, right))
        report = self.read_report()
        self.assertEqual(int(refused), report["engine"]["brokered"])
        self.assertEqual([(self.secret, int(refused))], [(d["path"], d["count"]) for d in report["denials"]])

    @needs("gdb")
    def test_it_starts_warder(self):
        """What traces warder could be the command's tracer, too: it says so, and nothing runs."""
        said = self.gdb("--args", WARDER, "run", "--", "touch", "ran", commands=["run"])
        self.assertIn("already traced", said)
        self.assertIn("exited with code 0175]", said)  # 125
        self.assertFalse(os.path.exists(os.path.join(self.project, "ran")))

    def cores(self):
        return glob.glob(os.path.join(self.project, "core*"))

    def stacks_of(self, way):
        """The functions on each thread's stack in the core file."""
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
            pattern = f.read().strip()
        if pattern.startswith("|") or "/" in pattern or not pattern.startswith("core"):
            self.skipTest(f"this machine's cores go elsewhere: {pattern}")
        fifo = os.path.join(self.project, "fifo")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
            self.own(fifo)
        program = fixture("fast_core")
        done = self.run_report("-x", program, "--", program, way, self.good, fifo)
        self.assertLess(done.status, 0, done)
        core, = self.cores()
        said = self.gdb(program, core, commands=["thread apply all backtrace"])
        os.unlink(core)
        stacks = [re.findall(r"(?m)^#\d+ +(?:0x\w+ in )?([^ (]+)", part) for part in said.split("\nThread ")[1:]]
        return stacks, done, said

    @needs("gdb")
    def test_a_core_file_of_who_waited_in_an_open(self):
        for way in ("signal", "handler"):
            [stack], done, said = self.stacks_of(way)
            self.assertEqual(done.report["engine"]["fast"], done.report["engine"]["patched"] > 0)
            self.assertNotIn("??", stack, said)
            at = stack.index("waits_for_fifo")
            self.assertIn("open", stack[at - 1], said)
            self.assertEqual("main", stack[at + 1], said)

    @needs("gdb")
    def test_a_core_file_of_threads(self):
        """Who died is whole. Another that was in a call may be met in its stub: docs/fast-path.md."""
        stacks, done, said = self.stacks_of("thread")
        died, = [stack for stack in stacks if "main" in stack]
        self.assertNotIn("??", died, said)
        self.assertEqual(2, len(stacks), said)
        other, = [stack for stack in stacks if stack is not died]
        if not done.report["engine"]["fast"]:
            self.assertIn("waits_for_fifo", other, said)


if __name__ == "__main__":
    main()

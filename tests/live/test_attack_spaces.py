#!/usr/bin/env python3
"""Other processes' name spaces are not entered, and a process id that comes again is another process."""

import os
import subprocess
import unittest

from run_help import WARDER, RunCase, both_users, main, needs

PYTHON = "/usr/bin/python3"

# argv: a process outside, a path that shows the secret in its mount space. Prints what got through.
ENTER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, path = int(sys.argv[1]), sys.argv[2]
NEWNS, NEWUSER, NEWPID = 0x20000, 0x10000000, 0x20000000
def tell(what):
    try: print(what, open(path).read())
    except OSError: pass
try:
    fd = os.pidfd_open(pid)
    for flags in (NEWUSER | NEWNS, NEWNS, NEWUSER, NEWPID, NEWUSER | NEWNS | NEWPID):
        if not libc.setns(fd, flags): print("entered by pidfd", hex(flags))
        tell("by pidfd")
except OSError: pass
for kind in ("user", "mnt", "pid"):
    try: fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    except OSError: continue
    if not libc.setns(fd, 0): print("entered by file", kind)
    tell("by file")
for way in ("root", "cwd"):
    try: print("through", way, open(f"/proc/{pid}/{way}{path}").read())
    except OSError: pass
print("tried")
"""

# The command: a child reads the secret and ends; then one whose number is the same, if the driver's luck holds.
AGAIN = """
import os, sys
def child():
    pid = os.fork()
    if not pid:
        try: os.write(1, b"got " + open(sys.argv[1], "rb").read())
        except OSError: os.write(1, b"refused\\n")
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
first = child()
print("first", first, flush=True)
sys.stdin.readline()
print("the same" if child() == first else "another", flush=True)
"""

# In a process space of its own, where it says which number comes next. argv: warder, the command.
DRIVER = """
import json, os, subprocess, sys
ends = [os.pipe() for i in range(2)]
(events, events_there), (answers_there, answers) = ends
p = subprocess.Popen([sys.argv[1], "run", "--events", str(events_there), "--answers", str(answers_there), "--", *sys.argv[2:]],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(events_there, answers_there), text=True)
os.close(events_there)
os.close(answers_there)
events = os.fdopen(events)
def settle(answer):
    for line in events:
        event = json.loads(line)
        if event["event"] == "ask":
            os.write(answers, json.dumps({"id": event["id"], "answer": answer, "lifetime": "once"}).encode() + b"\\n")
            return
settle("allow")
print(p.stdout.readline(), end="")
first = int(p.stdout.readline().split()[1])
with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write(str(first - 1))
p.stdin.write("\\n")
p.stdin.flush()
settle("deny")
print(p.stdout.read(), end="")
"""


@both_users
class Spaces(RunCase):
    @needs("unshare")
    def test_no_other_process_space_is_entered(self):
        secret = self.write("outside/secret", "found\n", 0o644)
        sub = os.path.join(self.project, "sub")
        os.mkdir(sub)
        self.own(sub)
        there = self.start(["unshare", "-Urmpf", "sh", "-c",
                            f"mount --bind {self.outside} {sub} && echo ready && exec cat"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if there.stdout.readline() != b"ready\n":
            self.skipTest("no user name spaces here")
        with open(f"/proc/{there.pid}/task/{there.pid}/children") as f:
            inner = f.read().split()[0]
        self.assertTrue(os.path.exists(f"/proc/{inner}/root{sub}/secret"))
        for pid in (str(there.pid), inner):
            for options in ((), ("--yes",), ("-r", "/proc")):
                done = self.run_plain(*options, "--", PYTHON, "-c", ENTER, pid, f"{sub}/secret")
                self.assertEqual("tried\n", done.out, done)
        self.assertTrue(os.path.exists(secret))


@unittest.skipIf(os.getuid(), "an ordinary user can't choose a process id")
class Numbers(RunCase):
    @needs("unshare")
    def test_once_is_of_the_process_and_not_of_its_number(self):
        secret = self.write("outside/secret", "found\n")
        for _ in range(5):  # a thread of warder's may have taken the number
            done = self.native("unshare", "-pf", "--mount-proc", PYTHON, "-c", DRIVER, WARDER, PYTHON, "-c", AGAIN, secret)
            self.assertStatus(done)
            self.assertRegex(done.out, "^got found\nrefused\n(the same|another)\n$", done)
            if "the same" in done.out:
                return
        self.skipTest("the number was never to be had")


if __name__ == "__main__":
    main()

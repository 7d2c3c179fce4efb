#!/usr/bin/env python3
"""The command reaches for the supervisor: its answers, report, terminal, limits, memory, time."""

import os
import pty
import select
import subprocess
import time

from run_help import WARDER, Done, RunCase, both_users, by_chance, main

PYTHON = "/usr/bin/python3"

ANSWERS_ITSELF = """
import os, sys, threading, time
def answer():
    time.sleep(0.3)
    for fd in range(64):
        try:
            there = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
            if fd not in (1, 2):
                os.write(there, b'{"id":1,"answer":"allow","scope":0,"lifetime":"once"}\\n')
        except OSError:
            pass
threading.Thread(target=answer, daemon=True).start()
try:
    print(open(sys.argv[1]).read())
except PermissionError:
    print("refused")
"""

LIMITS = """
import os, resource, subprocess
for pid in (os.getppid(), 1):
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
        print("limited", pid)
    except PermissionError:
        pass
resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
child = subprocess.Popen(["sleep", "9"])
resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
child.kill()
child.wait()
"""

LOOKS_INTO = """
import os, signal
sup = os.getppid()
for name in ("mem", "environ", "maps", "cwd/.", "root/.", "fd/0", "auxv", "syscall", "ns/mnt"):
    try:
        fd = os.open(f"/proc/{sup}/{name}", os.O_RDONLY)
        os.read(fd, 1)
        print("read", name)
    except OSError:
        pass
for name in ("mem", "oom_score_adj", "comm", "clear_refs"):
    try:
        os.open(f"/proc/{sup}/{name}", os.O_WRONLY)
        print("wrote", name)
    except OSError:
        pass
for sig in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL, signal.SIGCHLD):
    try:
        os.kill(sup, sig)
        print("signalled", sig)
    except PermissionError:
        pass
"""

OPENS_TERMINAL = """
import os, sys, time
print("inner", os.ttyname(0) != sys.argv[1])
os.close(os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY))
for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
    try:
        os.open(sys.argv[1], flags | os.O_NOCTTY)
        print("reached")
    except PermissionError:
        print("refused")
"""


@both_users
class Channels(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "SECRET\n")

    def answers_on(self, number, **more):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        events = os.open(os.devnull, os.O_WRONLY)
        self.addCleanup(os.close, events)
        number = read if number is None else number
        p = self.start([WARDER, "run", "--answers", str(number), "--events", str(events),
                        "--answer-timeout", "2s", "--", PYTHON, "-c", ANSWERS_ITSELF, self.secret],
                       stdin=read if number == 0 else subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, pass_fds=(read, write, events))
        out, err = p.communicate(timeout=20)
        return Done(p.returncode, out.decode(), err.decode(), None)

    def test_stdin_can_not_be_the_answers(self):
        done = self.answers_on(0)
        self.assertStatus(done, 125)
        self.assertIn("could answer", done.err)

    def test_an_end_of_the_answers_pipe_is_not_inherited(self):
        done = self.answers_on(None)
        self.assertNotIn("SECRET", done.out)
        self.assertIn("refused", done.out, done)

    def test_events_are_not_the_commands_output(self):
        done = self.native(WARDER, "run", "--events", "1", "--", "true")
        self.assertStatus(done, 125)


@both_users
class Reach(RunCase):
    def test_the_report_is_not_replaced(self):
        self.report_file = self.write("project/sub/report.json")
        done = self.run_plain("--report", self.report_file, "--", "sh", "-c",
                              "cd sub; echo x > report.json; rm -f report.json; mv report.json q;"
                              "echo x > n; mv n report.json; ln report.json m; ln -sf n report.json;"
                              "cd ..; mv sub other; mkdir sub; echo x > sub/report.json")
        report = self.read_report()
        self.assertEqual(1, report["warder_report"], done)
        self.assertFalse(os.path.exists(os.path.join(self.project, "other")))

    @by_chance
    def test_its_limits_are_its_own(self):
        done = self.run_report("--", PYTHON, "-c", LIMITS)
        self.assertStatus(done)
        self.assertEqual("", done.out, done)
        self.assertIsNotNone(done.report)

    def test_nothing_of_it_is_read_written_or_signalled(self):
        done = self.run_report("--", PYTHON, "-c", LOOKS_INTO)
        self.assertStatus(done)
        self.assertEqual("", done.out, done)

    def test_who_stops_itself_does_not_outlive_the_time_limit(self):
        begin = time.monotonic()
        done = self.run_plain("--timeout", "1s", "--", "sh", "-c", "kill -STOP $$; sleep 20")
        self.assertStatus(done, 124)
        self.assertLess(time.monotonic() - begin, 10)


class Terminal(RunCase):
    def test_the_terminal_of_the_questions_is_out_of_reach(self):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.chdir(self.project)
                os.execve(WARDER, [WARDER, "run", "--", PYTHON, "-c", OPENS_TERMINAL,
                                   os.ttyname(0)], self.env)
            finally:
                os._exit(99)
        out, end = b"", time.monotonic() + 20
        while time.monotonic() < end and select.select([fd], [], [], 20)[0]:
            try:
                out += os.read(fd, 4096)
            except OSError:
                break
        os.close(fd)
        os.waitpid(pid, 0)
        self.assertIn(b"inner True", out)
        self.assertEqual(3, out.count(b"refused\r"), out)
        self.assertNotIn(b"reached", out)


if __name__ == "__main__":
    main()

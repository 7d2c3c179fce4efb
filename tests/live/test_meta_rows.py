#!/usr/bin/env python3
"""Attribute calls come in rows about one file: what is remembered from one to the next is never an old answer."""

import os
import re
import signal
import subprocess
import unittest

from run_help import SLOW, WARDER, RunCase, allow, both_users, counts_by_chance, deny, fixture, main, needs

ROW = """
import errno, os, sys
fd = {}
def do(what, name, arg=None):
    if what == "open": fd[name] = os.open(arg, os.O_RDONLY)
    if what == "close": os.close(fd.pop(name))
    if what == "mode": os.fchmod(fd[name], 0o640)
    if what == "times": os.utime(fd[name], ns=(1, 2))
    if what == "owner": os.fchown(fd[name], -1, -1)
    if what == "path": os.chmod(name, 0o640)
    if what == "become": os.setresuid(*[int(name)] * 3)
    if what == "many":
        for i in range(int(arg)): os.chmod(fd.get(name, name), 0o640)
for line in sys.stdin:
    try:
        do(*line.split())
        print("ok", flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
"""


class Row:
    """A program under warder that does one thing a line."""

    def __init__(self, case, *args):
        self.case = case
        self.process = case.start(
            [WARDER, "run", "--on-denial", "report", "--report", case.report_file, *args, "--",
             "/usr/bin/python3", "-c", ROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def do(self, *words):
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def end(self):
        self.process.stdin.close()
        self.case.assertEqual(0, self.process.wait(timeout=20 * SLOW))
        return self.case.read_report()


class RowCase(RunCase):
    def setUp(self):
        super().setUp()
        self.file = self.write("project/up/dir/file")
        self.row = None

    def at(self, *names):
        return os.path.join(self.project, *names)

    def begin(self, *closed):
        """Open the file; of these paths no attribute may be set."""
        rules = [w for path in closed for w in ("--rule", f"deny meta {path}")]
        self.row = Row(self, *rules)
        self.check("ok", "open", "f", self.file)

    def check(self, result, *words):
        self.assertEqual(result, self.row.do(*words), words)

    def check_row(self, result, name="f"):
        for what in ("times", "owner", "mode", "mode"):
            self.check(result, what, name)


@both_users
class Rows(RowCase):
    def test_under_its_name_of_now(self):
        self.begin(self.at("up/dir/closed"))
        for _ in range(2):
            self.check_row("ok")
            os.rename(self.file, self.at("up/dir/closed"))
            self.check_row("EACCES")
            os.rename(self.at("up/dir/closed"), self.file)
        self.check_row("ok")
        report = self.row.end()
        self.assertEqual([(self.at("up/dir/closed"), 8)], [(d["path"], d["count"]) for d in report["denials"]])

    def test_in_its_directory_of_now(self):
        self.begin(self.at("up/closed"), self.at("above"))
        for old, new in (("up/dir", "up/closed"), ("up", "above")):
            self.check_row("ok")
            os.rename(self.at(old), self.at(new))
            self.check_row("EACCES")
            os.rename(self.at(new), self.at(old))
        self.check_row("ok")

    def test_by_the_directory_itself_and_not_by_its_name(self):
        """The same file by the same path, in another directory: one that is protected, wherever it is moved to."""
        vault = self.at("vault")
        os.mkdir(vault)
        self.own(vault)
        self.begin(vault)
        self.check_row("ok")
        os.rename(self.at("up/dir"), self.at("up/old"))
        os.rename(vault, self.at("up/dir"))
        os.rename(self.at("up/old/file"), self.file)
        self.check_row("EACCES")

    def test_what_is_deleted_or_replaced(self):
        self.begin(self.at("up/dir/other"))
        self.check_row("ok")
        self.write("project/up/dir/new")
        os.rename(self.at("up/dir/new"), self.file)
        self.check_row("ok")  # it has no name any more, and is its holder's affair
        self.check("ok", "open", "g", self.file)
        self.check_row("ok", "g")
        os.rename(self.file, self.at("up/dir/other"))
        self.check_row("ok")
        self.check_row("EACCES", "g")

    def test_one_after_the_other(self):
        """The same number of a descriptor of ours stands for another file each time."""
        closed = self.write("project/up/dir/closed")
        there = self.write("project/up/file")
        self.begin(closed)
        self.check("ok", "open", "c", closed)
        self.check("ok", "open", "t", there)
        for _ in range(3):
            for name, result in (("f", "ok"), ("c", "EACCES"), ("t", "ok"), ("c", "EACCES")):
                self.check(result, "mode", name)
            self.check("ok", "path", there)
            self.check("EACCES", "path", closed)
        report = self.row.end()
        self.assertEqual([(closed, 9)], [(d["path"], d["count"]) for d in report["denials"]])

    def test_by_patterns(self):
        key = self.write("project/up/dir/a.key")
        self.begin(self.at("up/**/*.key"))
        self.check("ok", "open", "k", key)
        for _ in range(2):
            self.check_row("ok")
            self.check_row("EACCES", "k")
            os.rename(key, self.at("up/dir/a.txt"))
            self.check_row("ok", "k")
            os.rename(self.at("up/dir/a.txt"), key)

    @unittest.skipIf(os.getuid(), "nobody else to become")
    def test_as_who_it_is_by_now(self):
        if self.uid != os.getuid():
            self.skipTest("an ordinary user stays itself")
        self.begin()
        self.check_row("ok")
        self.check("ok", "become", "65534")
        self.check("EPERM", "mode", "f")
        self.check("EPERM", "times", "f")
        self.check("ok", "owner", "f")  # nothing is to be changed


@unittest.skipUnless(os.getuid() == 0, "mounting needs root")
class Mounted(RowCase):
    space = ["unshare", "-m", "--propagation", "private"]

    def start(self, argv, **more):
        return super().start([*self.space, *argv], **more)

    def in_its_space(self, *argv):
        done = subprocess.run(["nsenter", "-m", "-t", str(self.row.process.pid), *argv], capture_output=True, text=True,
                              timeout=20 * SLOW, check=False)
        if done.returncode and argv[0] == "mount":
            self.skipTest("can't be mounted here: " + done.stderr.strip())
        self.assertEqual(0, done.returncode, done.stderr)

    def test_what_is_mounted_in_between(self):
        """Over the directory, and over the file itself: by its path it is another one, and the one below has no name."""
        vault = self.write("project/vault/file")
        if self.native("true").status:
            self.skipTest("no mount space of its own can be had here")
        self.begin(os.path.dirname(vault), vault)
        for what, where in (("vault", "up/dir"), ("vault/file", "up/dir/file")):
            self.check_row("ok")
            self.check("ok", "path", "up/dir/file")
            self.in_its_space("mount", "--bind", self.at(what), self.at(where))
            self.check_row("EACCES")
            self.check("EACCES", "path", "up/dir/file")
            self.in_its_space("umount", self.at(where))
        self.check_row("ok")
        self.check("ok", "path", "up/dir/file")


@both_users
class Answers(RowCase):
    def test_what_was_answered_in_between(self):
        """Once is for this process and this program; yes and no are for all, from that moment on."""
        files = one, two, three = [self.write(f"outside/{name}") for name in ("one", "two", "three")]
        never = lambda q: {"answer": "deny", "lifetime": "always"}
        text = """
import os, sys
def mode(path):
    try: os.chmod(path, 0o640); print(os.path.basename(path), "ok", flush=True)
    except OSError: print(os.path.basename(path), "no", flush=True)
one, two, three = files = sys.argv[2:]
if sys.argv[1] == "first":
    mode(one); mode(one)
    if os.fork() == 0:
        mode(one); mode(one); os._exit(0)
    os.wait()
    mode(one)
    os.execv(sys.executable, [sys.executable, sys.argv[0], "second", *files])
for path in files: mode(path); mode(path)
for path in files: mode(path)
"""
        script = self.write("project/script", text)
        answers = iter([allow(), deny, allow("session"), never])
        done = self.hold("--", "/usr/bin/python3", script, "first", *files, answer=lambda q: next(answers)(q))
        self.assertStatus(done)
        self.assertEqual([one, one, two, three], [q["path"] for q in done.asked], done)
        self.assertEqual(["one ok", "one ok", "one no", "one no", "one ok"] +
                         ["one no", "one no", "two ok", "two ok", "three no", "three no"] +
                         ["one no", "two ok", "three no"], done.out.splitlines(), done)


@both_users
class Cost(RowCase):
    def count(self, what, times):
        """Warder's system calls during so many of the command's."""
        log = os.path.join(self.dir, "log")
        strace = self.start(["strace", "-c", "-f", "-o", log, "-p", str(self.row.process.pid)], stderr=subprocess.PIPE)
        if b"attached" not in strace.stderr.readline():
            self.skipTest("nobody may look at another process here")
        self.check("ok", "many", what, str(times))
        strace.send_signal(signal.SIGINT)
        strace.wait(timeout=20 * SLOW)
        rows = [line.split() for line in self.read(log).splitlines()]
        return {row[-1]: int(row[3]) for row in rows if len(row) > 4 and row[3].isdigit()}

    @needs("strace")
    def test_system_calls_of_one(self):
        """They are most of what an attribute call takes: by descriptor, and by a path of the directory it is in."""
        times = 1000
        self.begin()
        for what, most in (("f", 10), ("up/dir/file", 13)):
            self.check("ok", "many", what, "10")
            count = self.count(what, times)
            self.assertEqual(times, count["readlinkat"], count)
            self.assertLess(count["total"], (most + 0.2) * times, count)
        self.assertEqual(0, self.row.end()["engine"]["brokered"])


@both_users
class Crowds(RunCase):
    @counts_by_chance
    def test_no_call_waits_for_all_that_is_refused_to_others(self):
        """Each has its turn, as it has among the eight."""
        secret = self.write("outside/secret")
        done = self.run_report("--on-denial", "report", "-x", fixture("crowd"), "--", fixture("crowd"),
                               self.write("project/file"), secret)
        opens, wrong = re.fullmatch(r"opens (\d+) wrong (\d+)\n", done.out).groups()
        self.assertEqual("0", wrong, done)
        self.assertLess(int(opens), 24, done)
        self.assertEqual({secret}, {d["path"] for d in done.report["denials"]}, done)


if __name__ == "__main__":
    main()

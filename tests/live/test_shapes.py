#!/usr/bin/env python3
"""
Whatever shape a process has: a refused open is seen exactly, a granted one is done in place, and
the process lives on with its own status. The shapes are the rows of tests/shapes.def.
"""

import os
import re
import shutil
import signal
import struct
import time

from run_help import NOBODY, RunCase, Talk, allow, both_users, deny, fixture, main, needs, wait_until

OPENED, REFUSED, NO_SUCH = 40, 41, 77
SOURCE = os.environ["SOURCE_DIR"]
CONTENT = "the secret"


def read_shapes():
    """The table's rows: {name: (how, program, seen, granted)}."""
    with open(os.path.join(SOURCE, "tests/shapes.def"), encoding="utf-8") as f:
        rows = re.findall(r'^SHAPE\((\w+), (\w+), (\w+), "(?:.*?)", (YES|NO), (YES|NO), "(?:.*)"\)$',
                          f.read(), re.MULTILINE)
    return {name: (how, program, seen == "YES", granted == "YES")
            for name, how, program, seen, granted in rows}


SHAPES = read_shapes()


class ShapeCase(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", CONTENT)

    def command(self, name):
        how, program, _, _ = SHAPES[name]
        if not os.path.exists(fixture(program)):
            self.skipTest(f"{program} could not be built here (gcc-multilib is missing)")
        return ["--", fixture(program), how, self.secret]

    def run_shape(self, name, answer):
        done = self.hold(*self.command(name), answer=answer)
        if done.status == NO_SUCH:
            self.skipTest("this machine has no such thing")
        return done

    def assertSeen(self, name, done, answer):
        """Exactly one open, of this path, by the process and the program that it was."""
        pid, exe = done.out.split(" ")[:2]
        self.assertEqual(fixture(SHAPES[name][1]), exe, done)
        self.assertEqual(1, len(done.asked), done)
        q = done.asked[0]
        self.assertEqual((int(pid), exe, self.secret, ["read"]), (q["pid"], q["exe"], q["path"], q["access"]), done)
        self.assertIn(q["argv"][-1], (self.secret, ""), done)
        denial, = done.denials()
        self.assertEqual(
            (int(pid), exe, self.secret, ["read"], "sandbox", answer, "user", 1),
            tuple(denial[k] for k in ("pid", "exe", "path", "access", "verdict", "answer", "by", "count")), done)
        self.assertEqual(1, done.report["runs"], done)

    def check_bind(self, name):
        path = os.path.join(self.outside, "name.sock")
        how, program, _, _ = SHAPES[name]
        if not os.path.exists(fixture(program)):
            self.skipTest(f"{program} could not be built here (gcc-multilib is missing)")
        for answer, status, word in ((deny, REFUSED, " errno 13\n"), (allow(), OPENED, " ok name.sock\n")):
            done = self.hold("--", fixture(program), how, path, answer=answer)
            self.assertStatus(done, status)
            self.assertIn(word, done.out)
            q, = done.asked
            pid, exe = done.out.split(" ")[:2]
            self.assertEqual((int(pid), exe, "bind", path, ["create"], fixture(program)),
                             (q["pid"], q["exe"], q["call"], q["path"], q["access"], exe), done)
            self.assertEqual(status == OPENED, os.path.exists(path))
        os.unlink(path)

    def check_allowed(self, name):
        done = self.run_shape(name, allow())
        self.assertEqual(CONTENT, done.out.partition(" ok ")[2].rstrip("\n"), done)
        self.assertStatus(done, OPENED)
        self.assertSeen(name, done, "allow")

    def check_refused(self, name):
        done = self.run_shape(name, deny)
        self.assertIn(" errno 13\n", done.out, done)
        self.assertStatus(done, REFUSED)
        self.assertSeen(name, done, "deny")

    def check_not_there(self, name):
        done = self.run_shape(name, allow())
        self.assertNothingAsked(done)
        self.assertEqual([], done.denials(), done)
        self.assertNotIn(CONTENT, done.out)
        self.assertNotIn(" ok ", done.out)
        self.assertRegex(done.out, r" errno \d+\n$")


@both_users
class Table(ShapeCase):
    def test_every_row_is_read(self):
        with open(os.path.join(SOURCE, "tests/shapes.def"), encoding="utf-8") as f:
            self.assertEqual(len(re.findall("^SHAPE\\(", f.read(), re.MULTILINE)), len(SHAPES))


@both_users
class Shapes(ShapeCase):
    """One method a row; made below."""

    def test_bind(self):
        for name in ("pie", "thread", "leader_gone", "daemon", "clone_vm"):
            with self.subTest(name):
                self.check_bind(name)

    def test_chmod(self):
        # A call that waits before it is run, and not at a ptrace stop: in every shape the same.
        path = self.write("outside/file.mode", "", 0o600)
        own = {"timer", "filter_errno", "filter_trap", "filter_trace", "int80", "x32", "uring", "thread_runs", "filter_exec"}
        for name, (how, program, _, _) in SHAPES.items():
            if name in own or not os.path.exists(fixture(program)) or program == "run_traced":
                continue
            for answer, status, word, mode in ((deny, REFUSED, " errno 13\n", 0o600), (allow(), OPENED, " ok mode\n", 0o640)):
                with self.subTest(name, status=status):
                    os.chmod(path, 0o600)
                    done = self.hold("--", fixture(program), how, path, answer=answer)
                    if done.status == NO_SUCH:
                        continue
                    self.assertStatus(done, status)
                    self.assertIn(word, done.out)
                    self.assertEqual(mode, os.stat(path).st_mode & 0o777)
                    q, = done.asked
                    pid, exe = done.out.split(" ")[:2]
                    self.assertEqual((int(pid), exe, path, ["meta"]), tuple(q[k] for k in ("pid", "exe", "path", "access")))

    def state_of(self, pid):
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]

    def assertStopped(self, pid):
        self.assertTrue(wait_until(lambda: self.state_of(pid) in "Tt"), self.state_of(pid))

    def held(self):
        talk = Talk(self, ["--", fixture("shape"), "plain", self.secret])
        return talk, talk.ask()

    def test_stopped_while_held(self):
        for answer, status in (("allow", OPENED), ("deny", REFUSED)):
            with self.subTest(answer):
                talk, q = self.held()
                os.kill(q["pid"], signal.SIGSTOP)
                self.assertTrue(talk.is_quiet(0.1))
                talk.answer(q, answer=answer, scope=0, lifetime="once")
                self.assertStopped(q["pid"])
                time.sleep(0.1)
                self.assertStopped(q["pid"])
                os.kill(q["pid"], signal.SIGCONT)
                self.assertStatus(talk.finish(), status)

    def test_continued_while_held(self):
        for answer, status in (("allow", OPENED), ("deny", REFUSED)):
            with self.subTest(answer):
                talk, q = self.held()
                os.kill(q["pid"], signal.SIGSTOP)
                time.sleep(0.05)
                os.kill(q["pid"], signal.SIGCONT)
                talk.answer(q, answer=answer, scope=0, lifetime="once")
                self.assertStatus(talk.finish(), status)

    def test_killed_while_held(self):
        talk, q = self.held()
        os.kill(q["pid"], signal.SIGKILL)
        done = talk.finish()
        self.assertEqual([(q["id"], "exited")],
                         [(e["id"], e["reason"]) for e in done.events if e["event"] == "cancel"], done)
        self.assertStatus(done, -signal.SIGKILL)
        denial, = done.denials()
        self.assertEqual((self.secret, q["pid"], "deny", "none"),
                         tuple(denial[k] for k in ("path", "pid", "answer", "by")))

    def test_thread_runs(self):
        program = self.write("outside/program", "#!/bin/sh\necho ran $$\nexit 40\n", 0o755)
        for answer, status in ((deny, REFUSED), (allow("session"), OPENED)):
            done = self.hold("--", fixture("shape"), "thread_runs", program, answer=answer)
            self.assertStatus(done, status)
            q, = done.asked
            self.assertEqual((fixture("shape"), "execve", program, ["read", "exec"]),
                             tuple(q[k] for k in ("exe", "call", "path", "access")))
            pid = done.out.split()[1 if status == OPENED else 0]
            self.assertEqual(int(pid), q["pid"], done)
            self.assertEqual(1, done.report["runs"])

    def test_filter_exec(self):
        program = self.write("outside/program", "#!/bin/sh\necho ran\nexit 40\n", 0o755)
        done = self.hold("--", fixture("shape"), "filter_exec", program, answer=allow("session"))
        self.assertEqual([False, True], [bool(q.get("rerun")) for q in done.asked], done)
        self.assertStatus(done, OPENED)
        self.assertEqual(" errno 13\nran\n", done.out[done.out.index(" errno"):])
        self.assertEqual(2, done.report["runs"])
        done = self.hold("--", fixture("shape"), "filter_exec", program, answer=deny)
        self.assertStatus(done, REFUSED)

    def test_traces(self):
        done = self.hold("-x", os.path.dirname(fixture("shape")), "--", fixture("run_traced"), fixture("shape"), "plain", self.secret)
        self.assertStatus(done, OPENED)
        note, = [n for n in done.report["engine"]["notes"] if "ptrace" in n]
        self.assertEqual([f"warder: {note}"], done.err.splitlines(), done)
        self.assertIn("does not work inside warder", note)

    @needs("strace")
    def test_case_H2_strace_says_why_itself(self):
        done = self.run_report("--", "strace", "true")
        self.assertNotEqual(0, done.status)
        self.assertIn("ptrace", done.err)
        self.assertIn("a debugger or tracer does not work inside warder", done.err)

    def marked(self, name, mode=0o755, owner=0, caps=None):
        """A copy of the shape that natively would run with more than its caller has."""
        file = os.path.join(self.bin, name)
        shutil.copy(fixture("shape"), file)
        os.chown(file, owner, owner)
        os.chmod(file, mode)
        if caps:
            os.setxattr(file, "security.capability", caps)
        return file

    def test_setuid(self):
        if os.getuid() != 0:
            self.skipTest("only root can make such files")
        other = 0 if self.uid else NOBODY
        raw = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # version 2, effective, NET_RAW
        for name, what, more in (("by\x1bid", "is setuid", {"mode": 0o4755}),
                                 ("gid", "is setgid", {"mode": 0o2755}),
                                 ("caps", "has file capabilities", {"caps": raw})):
            with self.subTest(what):
                file = self.marked(name, owner=other, **more)
                done = self.hold("-x", self.bin, "--", file, "plain", self.secret)
                self.assertStatus(done, OPENED)
                self.assertEqual(file, done.asked[0]["exe"])
                shown = name.replace("\x1b", "\\e")
                want = [f"{shown} {what}; it ran without that privilege"]
                if what == "has file capabilities" and self.uid == 0:
                    want = []  # root has them anyway
                self.assertEqual(want, done.report["engine"]["notes"])
                self.assertEqual([f"warder: {n}" for n in want], done.err.splitlines())
                quiet = self.run_plain("-q", "-x", self.bin, "--", file, "plain", "/dev/null")
                self.assertEqual("", quiet.err)

    def test_an_own_setuid_program_loses_nothing(self):
        file = os.path.join(self.bin, "own")
        shutil.copy(fixture("shape"), file)
        self.own(file)
        os.chmod(file, 0o6755)
        done = self.run_report("-x", self.bin, "--", file, "plain", "/dev/null")
        self.assertEqual([], done.report["engine"]["notes"])
        self.assertQuiet(done)

    def test_a_listener_is_noted(self):
        done = self.hold("--", fixture("shape"), "filter_notify", self.secret)
        self.assertEqual(["a seccomp listener was asked for 1× (shape): a process has one, and it is warder's"],
                         done.report["engine"]["notes"])

    def test_bind_by_socketcall(self):
        self.check_bind("i386")

    def test_bind_by_socketcall_static(self):
        self.check_bind("i386_static")


def add_tests(cls):
    for name, (how, _, seen, granted) in SHAPES.items():
        if hasattr(cls, "test_" + name):
            continue
        if not seen:
            setattr(cls, f"test_{name}", lambda self, n=name: self.check_not_there(n))
            continue
        assert granted, name  # what is seen can be granted, or has a test of its own
        setattr(cls, f"test_{name}_allowed", lambda self, n=name: self.check_allowed(n))
        setattr(cls, f"test_{name}_refused", lambda self, n=name: self.check_refused(n))


add_tests(Shapes)


if __name__ == "__main__":
    main()

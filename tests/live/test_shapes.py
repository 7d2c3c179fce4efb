#!/usr/bin/env python3
"""
Whatever shape a process has: a refused open is seen exactly, a granted one is done in place, and
the process lives on with its own status. The shapes are the rows of tests/shapes.def.
"""

import os
import re

from run_help import RunCase, allow, both_users, deny, fixture, main

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
class Shapes(ShapeCase):
    """One method a row; made below."""

    def test_bind(self):
        for name in ("pie", "thread", "leader_gone", "daemon", "clone_vm"):
            with self.subTest(name):
                self.check_bind(name)

    def test_bind_by_socketcall(self):
        self.check_bind("i386")

    def test_bind_by_socketcall_static(self):
        self.check_bind("i386_static")


def add_tests(cls):
    for name, (how, _, seen, granted) in SHAPES.items():
        if how == "OWN":
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

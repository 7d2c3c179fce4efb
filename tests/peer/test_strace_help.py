#!/usr/bin/env python3
"""The reader of strace's text: what it makes of each form of line."""

import os
import tempfile
import unittest

from strace_help import Trace


def hexed(text):
    return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'


def angled(text):
    return "<" + hexed(text)[1:-1] + ">"


class Reading(unittest.TestCase):
    def read(self, *lines, **more):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("".join(line + "\n" for line in lines))
            f.flush()
            return [(c.pid, c.name, c.paths, c.errno) for c in Trace(f.name, "/usr", **more).failures]

    def test_a_failure_and_a_success(self):
        self.assertEqual([(7, "open", ["/etc/x"], "EACCES")], self.read(
            f'7 open({hexed("/etc/x")}, O_RDONLY) = -1 EACCES (Permission denied)',
            f'7 open({hexed("/etc/y")}, O_RDONLY) = 3{angled("/etc/y")}',
            f'7 open({hexed("/etc/z")}, O_RDONLY) = -1 ENOENT (No such file or directory)'))

    def test_relative_to_the_cwd_and_to_a_descriptor(self):
        self.assertEqual(["/usr/a", "/etc/b", "/etc/c"], [p for _, _, (p,), _ in self.read(
            f'7 mkdir({hexed("a")}, 0777) = -1 EACCES (Permission denied)',
            f'7 mkdirat(3{angled("/etc")}, {hexed("b")}, 0777) = -1 EACCES (Permission denied)',
            f'7 chdir({hexed("/etc")}) = 0',
            f'7 openat(AT_FDCWD{angled("/etc")}, {hexed("c")}, O_RDONLY) = -1 EACCES (Permission denied)')])

    def test_the_cwd_is_a_childs_own_and_a_threads_shared(self):
        self.assertEqual(["/usr/a", "/etc/b", "/etc/c", "/usr/d"], [p for _, _, (p,), _ in self.read(
            f'8 rmdir({hexed("a")}) = -1 EACCES (Permission denied)',
            '7 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8',
            '7 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES) = 9',
            f'9 fchdir(3{angled("/etc")}) = 0',
            f'7 rmdir({hexed("b")}) = -1 EACCES (Permission denied)',
            f'9 rmdir({hexed("c")}) = -1 EACCES (Permission denied)',
            f'8 rmdir({hexed("d")}) = -1 EACCES (Permission denied)')])

    def test_calls_that_others_interrupted(self):
        self.assertEqual([(8, "unlink", ["/b"], "EPERM"), (7, "openat", ["/a"], "EACCES")], self.read(
            f'7 openat(AT_FDCWD{angled("/usr")}, {hexed("/a")}, O_RDWR <unfinished ...>',
            f'8 unlink({hexed("/b")} <unfinished ...>',
            '8 <... unlink resumed>)             = -1 EPERM (Operation not permitted)',
            '7 <... openat resumed>)             = -1 EACCES (Permission denied)',
            '7 +++ exited with 1 +++'))

    def test_two_paths(self):
        a, b = hexed("a, b"), hexed("/c)d")
        self.assertEqual([(7, "rename", ["/usr/a, b", "/c)d"], "EXDEV")], self.read(
            f"7 rename({a}, {b}) = -1 EXDEV (Invalid cross-device link)"))

    def test_names_of_sockets(self):
        self.assertEqual([["/usr/s"]], [p for _, _, p, _ in self.read(
            f'7 bind(3, {{sa_family=AF_UNIX, sun_path={hexed("s")}}}, 4) = -1 EACCES (Permission denied)',
            f'7 bind(3, {{sa_family=AF_UNIX, sun_path=@{hexed("s")}}}, 4) = -1 EPERM (Operation not permitted)',
            '7 bind(3, {sa_family=AF_INET, sin_port=htons(80)}, 16) = -1 EACCES (Permission denied)')])

    def test_what_openat2_says_by_itself(self):
        how = "{flags=O_RDWR, resolve=RESOLVE_%s}"
        self.assertEqual([["/etc/x"]], [p for _, _, p, _ in self.read(
            f'7 openat2(3{angled("/etc")}, {hexed("../x")}, {how % "BENEATH"}, 24) = -1 EXDEV (Invalid cross-device link)',
            f'7 openat2(3{angled("/etc")}, {hexed("/x")}, {how % "IN_ROOT"}, 24) = -1 EACCES (Permission denied)')])

    def test_what_comes_before_the_program(self):
        execve = f'7 execve({hexed("/bin/x")}, [{hexed("x")}], 0x7ffc /* 3 vars */) = 0'
        failure = f'7 unlink({hexed("/b")}) = -1 EACCES (Permission denied)'
        self.assertEqual(2, len(self.read(execve, failure, execve, failure, failure, after=2)))

    def test_text_that_is_none(self):
        for line in ("words", "7 words", f"7 open({hexed('/a')}, O_RDONLY"):
            with self.subTest(line), self.assertRaises(AssertionError):
                self.read(line)

    def test_a_cwd_that_was_lost(self):
        with self.assertRaisesRegex(AssertionError, "cwd"):
            self.read(f'7 openat(AT_FDCWD{angled("/etc")}, {hexed("c")}, O_RDONLY) = -1 EACCES (Permission denied)')


if __name__ == "__main__":
    os.chdir("/")
    unittest.main(verbosity=2)

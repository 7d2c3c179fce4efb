#!/usr/bin/env python3
"""Every call that can be held is done in place as if it had been allowed from the start."""

import os
import re
import stat
import unittest

from run_help import RunCase, both_users, call_here, deny, fixture, main

CALLS = fixture("run_calls")
FULL = "a full line\n"

# What is asked of one path: call of run_calls, its name, access, path, is it there.
ASKED = (
    ("open_read", "openat", ["read"], "file", True),
    ("open_write", "openat", ["write"], "file", True),
    ("open_rdwr", "openat", ["read", "write"], "file", True),
    ("open_append", "openat", ["write"], "append", True),
    ("open_trunc", "openat", ["write"], "trunc", True),
    ("creat_new", "openat", ["write", "create"], "made1", False),
    ("creat_rdonly", "openat", ["read", "create"], "made5", False),
    ("creat_existing", "openat", ["write"], "file", True),
    ("creat_call", "creat", ["write", "create"], "made7", False),
    ("creat_through_dangling", "openat", ["write", "create"], "target", False),
    ("open_through_link", "openat", ["read"], "file", True),
    ("open_directory", "openat", ["list"], "sub", True),
    ("open_unnamed", "openat", ["read", "write", "create"], "sub", True),
    ("openat2_read", "openat2", ["read"], "file", True),
    ("openat2_larger", "openat2", ["read"], "file", True),
    ("openat2_at_end", "openat2", ["read", "write"], "file", True),
    ("openat2_in_root_up", "openat2", ["write"], "file", True),
    ("open_by_path", "open", ["read", "write"], "file", True),
    ("mkdir_new", "mkdir", ["create"], "dir1", False),
    ("mkdirat_mode", "mkdirat", ["create"], "dir2", False),
    ("mknod_file", "mknod", ["create"], "node1", False),
    ("mknod_fifo", "mknodat", ["create"], "node2", False),
    ("symlink_new", "symlink", ["create"], "sym1", False),
    ("symlinkat_new", "symlinkat", ["create"], "sym2", False),
    ("unlink_file", "unlink", ["delete"], "del1", True),
    ("unlinkat_link", "unlinkat", ["delete"], "del2", True),
    ("rmdir_empty", "rmdir", ["delete"], "deld1", True),
    ("truncate_shorter", "truncate", ["write"], "trunc5", True),
    ("bind_new", "bind", ["create"], "sock1", False))
# Of two: call of run_calls, its name, both paths, access.
ASKED_OF_TWO = (
    ("rename_here", "rename", "move1", "moved1", ["create", "delete"]),
    ("renameat_away", "renameat", "move2", "sub/moved2", ["create", "delete", "move"]),
    ("rename_over", "renameat", "move3", "moved3", ["create", "delete"]),
    ("rename_exchange_kinds", "renameat2", "mix1", "mix2", ["create", "delete"]),
    ("rename_whiteout_away", "renameat2", "white3", "sub/white4", ["create", "delete", "move"]),
    ("rename_directory", "renameat", "mdir", "sub/mdir", ["create", "delete", "move"]),
    ("link_new", "link", "hard1", "file", ["create"]),  # the one that needs something first
    ("linkat_new", "linkat", "file", "sub/hard2", ["create", "move"]))
# Whose questions are elsewhere: test_calls_descriptors.py and test_calls_exec.py.
ASKED_ELSEWHERE = {"ftruncate", "ioctl", "execve", "execveat"}


class CallsCase(RunCase):
    calls = CALLS

    def fill(self):
        """The directory that run_calls works in, always in the same state."""
        self.remove()
        os.mkdir(self.dir, 0o755)
        for path in (self.dir, self.home, self.project, self.outside, self.tmp, self.bin):
            if path != self.dir:
                os.mkdir(path)
            self.own(path)
        here = self.outside
        for name in ("file", "over", "append", "trunc", "trunc2", "trunc3", "trunc4", "trunc5",
                     "trunc6", "move1", "move2", "move3", "moved3", "move4", "swap1", "sub/swap2",
                     "del1", "full/x", "mdir/x", "mdir2/x", "mdir3/x", "mdir5/x", "mix1", "mix2/x", "white1", "white3"):
            self.write(os.path.join(here, name), f"{name}: {FULL}")
        for name in ("empty", "empty2", "deld1", "deld2", "sgid"):
            self.own_dir(os.path.join(here, name))
        os.chmod(os.path.join(here, "sgid"), 0o2755)
        for name, to in (("link", "file"), ("link2", "file"), ("dangling", "target"), ("dangling2", "nothing"),
                         ("loop", "loop"), ("del2", "file")):
            os.symlink(to, os.path.join(here, name))
            self.own(os.path.join(here, name))
        os.mkfifo(os.path.join(here, "fifo"), 0o644)
        self.own(os.path.join(here, "fifo"))

    def own_dir(self, path):
        os.mkdir(path)
        return self.own(path)

    def tree(self):
        """Everything below outside: name, type and mode, content."""
        found = {}
        for top, dirs, files in os.walk(self.outside):
            for name in dirs + files:
                path = os.path.join(top, name)
                st = os.lstat(path)
                what = ""
                if stat.S_ISLNK(st.st_mode):
                    what = os.readlink(path)
                elif stat.S_ISREG(st.st_mode):
                    mode = stat.S_IMODE(st.st_mode)
                    os.chmod(path, mode | 0o400)  # a mode of 0 keeps its owner out
                    with open(path, "rb") as f:
                        what = f.read()
                    os.chmod(path, mode)
                found[os.path.relpath(path, self.outside)] = (oct(st.st_mode), st.st_uid, st.st_gid, what)
        return found

    def by_native(self, *names):
        self.fill()
        done = self.native(self.calls, self.outside, *names)
        self.assertStatus(done)
        return done.out.splitlines(), self.tree()

    def assertSame(self, done, lines, tree, tree_now, *but):
        """But: calls that fail in both, with Landlock's own errno here."""
        self.assertStatus(done)
        same = [[line for line in some if line.split()[0] not in but]
                for some in (lines, done.out.splitlines())]
        self.assertEqual(*same, done.err)
        self.assertEqual(tree, tree_now)


@both_users
class Calls(CallsCase):
    def test_the_fixture_can_tell_a_difference(self):
        lines, _ = self.by_native()
        self.assertGreater(len(lines), 90)
        done = self.run_report("--", self.calls, self.outside)
        self.assertStatus(done)
        differ = [a for a, b in zip(lines, done.out.splitlines()) if a != b]
        self.assertGreater(len(differ), 60)

    def test_held_and_allowed_once(self):
        lines, tree = self.by_native()
        self.fill()
        done = self.hold("--", self.calls, self.outside)
        self.assertSame(done, lines, tree, self.tree())
        self.assertEqual(1, done.report["runs"])
        self.assertGreater(done.report["engine"]["brokered"], 50)

    def test_allowed_for_the_directory_and_below(self):
        lines, tree = self.by_native()
        self.fill()
        done = self.hold("--", self.calls, self.outside, answer=self.answer_tree)
        self.assertSame(done, lines, tree, self.tree())

    def answer_tree(self, q):
        best = 0
        for i, s in enumerate(q["scopes"]):
            if s["kind"] == "tree" and s["path"] == self.outside:
                best = i
        return {"answer": "allow", "scope": best, "lifetime": "session"}

    def test_yes_asks_nothing_and_does_all(self):
        lines, tree = self.by_native()
        self.fill()
        done = self.run_report("--yes", "--", self.calls, self.outside)
        self.assertSame(done, lines, tree, self.tree())
        self.assertIn("--yes", done.err)

    def test_allowed_by_a_rule(self):
        lines, tree = self.by_native()
        self.fill()
        done = self.run_report("--rule", f"allow rwx {self.outside}", "--", self.calls, self.outside)
        self.assertSame(done, lines, tree, self.tree())
        self.assertEqual([], done.denials(verdict="sandbox"))

    def test_allowed_by_a_rule_that_landlock_cannot_say(self):
        # A forbidden name below: the structural rights of the directory are the broker's. There a
        # file with several names could be the forbidden one, and is asked about.
        lines, tree = self.by_native()
        self.fill()
        done = self.run_report("--rule", f"allow rwx {self.outside}",
                               "--rule", f"forbid {self.outside}/sub/never", "--", self.calls, self.outside)
        self.assertSame(done, lines, tree, self.tree(), "rmdir_file")

    def test_refused_changes_nothing(self):
        self.fill()
        before = self.tree()
        done = self.hold("--", self.calls, self.outside, answer=deny)
        self.assertStatus(done)
        self.assertEqual(before, self.tree())
        self.assertGreater(len(done.asked), 10)  # then the directory is asked about
        self.assertEqual(0, done.report["engine"]["brokered"])

    def asked_by(self, name):
        self.fill()
        done = self.hold("--", self.calls, self.outside, name)
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked), done)
        return done.asked[0]

    def test_what_is_asked(self):
        for name, call, access, path, exists in ASKED:
            with self.subTest(name):
                q = self.asked_by(name)
                self.assertEqual((call_here(call), access, os.path.join(self.outside, path), exists),
                                 (q["call"], q["access"], q["path"], q["exists"]))
                self.assertEqual([self.calls, self.outside, name], q["argv"])
                self.assertEqual(self.calls, q["exe"])
                self.assertEqual(self.outside if name == "bind_new" else self.project, q["cwd"])

    def test_what_is_asked_of_two_paths(self):
        for name, call, path, path2, access in ASKED_OF_TWO:
            with self.subTest(name):
                q = self.asked_by(name)
                self.assertEqual((call_here(call), os.path.join(self.outside, path),
                                  os.path.join(self.outside, path2)), (q["call"], q["path"], q["path2"]))
                self.assertEqual(access, q["access"])

    def test_what_fails_anyway_asks_nothing(self):
        self.fill()
        for name in ("creat_excl_existing", "open_missing", "creat_in_no_directory", "mkdir_existing",
                     "open_nofollow_link", "open_loop", "unlink_missing", "rename_missing",
                     "open_file_as_directory", "openat2_no_symlinks", "openat2_bad_flags",
                     "openat2_beneath_out", "link_directory", "creat_below_file", "creat_long_name",
                     "openat2_size_0", "openat2_small", "openat2_unknown", "openat2_both_roots",
                     "openat2_no_xdev_out", "openat2_no_magic", "openat2_cached_creat",
                     "rename_exchange_missing", "rename_bad_flags", "rename_directory_over_file",
                     "rename_file_over_directory", "rename_over_full", "rename_into_itself"):
            with self.subTest(name):
                done = self.hold("--", self.calls, self.outside, name)
                self.assertStatus(done)
                self.assertIn("failed", done.out)
                self.assertNothingAsked(done)
                self.assertEqual([], done.denials(verdict="sandbox"))


class Table(unittest.TestCase):
    def test_every_call_of_the_wall_is_asked_about(self):
        with open(os.path.join(os.environ["SOURCE_DIR"], "tracer/syscalls.def"), encoding="utf-8") as f:
            wall = set(re.findall(r"^SC\((\w+), \d+, [-\d]+, [-\d]+, WALL,", f.read(), re.M))
        self.assertGreater(len(wall), 20)
        self.assertEqual(wall, {row[1] for row in ASKED + ASKED_OF_TWO} | ASKED_ELSEWHERE)


@both_users
@unittest.skipUnless(os.path.exists(fixture("run_calls_i386")), "gcc-multilib is missing")
class CallsOf32Bits(CallsCase):
    """By their own numbers, and with 32-bit structures."""

    calls = fixture("run_calls_i386")

    def test_held_and_allowed_once(self):
        lines, tree = self.by_native()
        self.fill()
        done = self.hold("--", self.calls, self.outside)
        self.assertSame(done, lines, tree, self.tree())
        self.assertEqual(1, done.report["runs"])

    def test_refused_changes_nothing(self):
        self.fill()
        before = self.tree()
        done = self.hold("--", self.calls, self.outside, answer=deny)
        self.assertStatus(done)
        self.assertEqual(before, self.tree())
        self.assertGreater(len(done.asked), 10)  # then the directory is asked about


if __name__ == "__main__":
    main()

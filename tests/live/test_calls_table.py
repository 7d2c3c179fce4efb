#!/usr/bin/env python3
"""
Every call on every kind of thing, in place and natively: the same result, errno and final state where the policy
allows it; refused, and nothing changed, exactly where the policy says no.
"""

import os
import shutil
import stat
import subprocess
import tempfile

from run_help import RunCase, both_users, fixture, main, remove_tree

ONE = fixture("run_one")

# What of `r w x` (and c: connect) each call needs where it would work.
CALLS = """
open_r r            open_w w           open_rw rw          open_append w      open_rdonly_trunc rw
open_dir r          open_nofollow r    open_creat w        open_excl rw       open_creat_rdonly r
creat w             open_tmpfile rw    truncate w          exec rx            mkdir w
mknod_reg w         mknod_fifo w       mknod_sock w        mknod_whiteout w   symlink w
bind w              unlink w           rmdir w             chmod w            chmod_descriptor w
chown w             lchown w           utimens w           utimens_nofollow w setxattr w
lsetxattr w         removexattr w      connect c
"""
TWO = "link w link_follow w rename w rename_noreplace w rename_exchange w rename_whiteout w"
# "shut/in": below a directory whose own mode lets nobody but root in.
OBJECTS = ("absent", "file", "dir", "full", "link", "dangling", "linkdir", "shut/in")
# The second name: free, a file, a directory, and free in another directory.
TARGETS = ("new", "other", "odir", "in/new")
# O_RDONLY|O_CREAT makes the file where there is none.
MAKES = {("open_creat_rdonly", "absent"): "w", ("open_creat_rdonly", "dangling"): "w"}
OLD = 1_000_000_000


def pairs(text):
    words = text.split()
    return list(zip(words[::2], words[1::2]))


def rows():
    """(call, object, target or None, needs)"""
    for call, needs in pairs(CALLS):
        for what in OBJECTS:
            yield call, what, None, needs + MAKES.get((call, what), "")
    for call, needs in pairs(TWO):
        for what in OBJECTS:
            for target in TARGETS:
                yield call, what, target, needs


ROWS = list(rows())


@both_users
class Table(RunCase):
    def setUp(self):
        super().setUp()
        # In memory, where that has attributes too: it makes and removes ten thousands of names.
        if os.access("/dev/shm", os.W_OK):
            self.outside = os.path.realpath(tempfile.mkdtemp(prefix="warder-table-", dir="/dev/shm"))
            self.addCleanup(lambda: remove_tree(self.outside))
            self.own(self.outside)
        self.template = self.outside + "-template"
        os.mkdir(self.template)
        self.addCleanup(shutil.rmtree, self.template)
        for n, (_, what, target, _) in enumerate(ROWS):
            self.fill(f"{self.template}/{n}", what, target)
        if self.uid != os.getuid():
            subprocess.run(["chown", "-Rh", f"{self.uid}:{self.uid}", self.template], check=True)
        for top, dirs, files in os.walk(self.template, topdown=False):
            for path in (*(os.path.join(top, f) for f in (*files, *dirs)), top):
                os.utime(path, (OLD, OLD), follow_symlinks=False)

    def fill(self, here, what, target):
        """One of every thing that the row can reach."""
        os.mkdir(here)
        if what in ("file", "link"):
            with open(f"{here}/file", "w") as f:
                f.write("#!/bin/sh\n")
            os.chmod(f"{here}/file", 0o755)
            os.setxattr(f"{here}/file", "user.old", b"x")
        if what in ("dir", "linkdir", "full"):
            os.mkdir(f"{here}/{'full' if what == 'full' else 'dir'}")
        if what == "shut/in":
            os.mkdir(f"{here}/shut")
            with open(f"{here}/shut/in", "w") as f:
                f.write("#!/bin/sh\n")
        if what == "full":
            with open(f"{here}/full/x", "w") as f:
                f.write("x")
        for name, to in (("link", "file"), ("dangling", "nowhere"), ("linkdir", "dir")):
            if what == name:
                os.symlink(to, f"{here}/{name}")
        if target == "other":
            with open(f"{here}/other", "w") as f:
                f.write("other")
        if target in ("odir", "in/new"):
            os.mkdir(f"{here}/{os.path.dirname(target) or target}")

    def fresh(self):
        remove_tree(self.outside)
        subprocess.run(["cp", "-a", self.template, self.outside], check=True)
        for n, (_, what, _, _) in enumerate(ROWS):
            if what == "shut/in":
                os.chmod(f"{self.outside}/{n}/shut", 0)  # only now: not everybody can copy what is in it

    def state(self):
        """By row: name, type and mode, owner, links, content or target, attributes, whether it was touched."""
        found = [[] for _ in ROWS]
        for n in range(len(ROWS)):
            top = f"{self.outside}/{n}"
            for here, dirs, files in os.walk(top):
                for path in (*([here] if here == top else []), *(os.path.join(here, f) for f in (*files, *dirs))):
                    st = os.lstat(path)
                    said = os.readlink(path) if stat.S_ISLNK(st.st_mode) else self.read(path) if stat.S_ISREG(st.st_mode) else ""
                    found[n].append((os.path.relpath(path, top), oct(st.st_mode), st.st_uid, st.st_gid, st.st_nlink, said,
                                     st.st_mtime == OLD, os.listxattr(path, follow_symlinks=False)))
            found[n].sort()
        return found

    def words(self):
        for n, (call, what, target, _) in enumerate(ROWS):
            yield from (call, f"{self.outside}/{n}/{what}", f"{self.outside}/{n}/{target}" if target else "-")

    def results(self, done):
        self.assertStatus(done)
        lines = [line.split() for line in done.out.splitlines()]
        self.assertEqual([r[0] for r in ROWS], [line[0] for line in lines], done)
        return [line[1] for line in lines]

    def natively(self):
        """What comes of the calls, what they leave, and what there was before."""
        self.fresh()
        before = self.state()
        results = self.results(self.native(ONE, *self.words()))
        return results, self.state(), before

    def inside(self, *args, run=None):
        self.fresh()
        done = (run or self.run_report)(*args, "--", ONE, *self.words(), timeout=60)
        return self.results(done), self.state(), done

    def differ(self, n, got, now, expected, state):
        """None where it came out as expected: with one of these results, and this state."""
        if got in expected and now == state:
            return None
        call, what, target, _ = ROWS[n]
        more = [f"+{e}" for e in now if e not in state] + [f"-{e}" for e in state if e not in now]
        return f"{call} {what} {target or ''}: {got}, not {expected} {more}"

    def test_where_it_is_allowed_it_is_as_natively(self):
        results, state, _ = self.natively()
        self.assertGreater(results.count("ok"), 100)
        self.assertGreater(len(set(results)), 8)
        # A name that may come to be in each of the directories is an exception: what changes names is the
        # broker's. Where it is asked about, all is.
        for run, args in ((self.run_report, ("--rule", f"allow {self.outside}", "--rule", f"deny w {self.outside}/*/never")),
                          (self.hold, ("--rule", f"ask {self.outside}"))):
            with self.subTest(args):
                got, now, done = self.inside(*args, run=run)
                self.assertGreater(done.report["engine"]["brokered"], 90)
                self.no_wrong(self.differ(n, got[n], now[n], (results[n],), state[n]) for n in range(len(ROWS)))

    def no_wrong(self, lines):
        wrong = [line for line in lines if line]
        if wrong:
            self.fail("\n".join(wrong))

    def test_where_it_is_denied_it_is_refused(self):
        results, state, before = self.natively()
        # Far above the thing; the directory that it is in.
        for letter, access, where in (("r", "r", self.outside), ("w", "w", self.outside), ("x", "x", self.outside),
                                      ("c", "connect", self.outside), ("w", "w", f"{self.outside}/*")):
            with self.subTest(f"{access} {where}"):
                got, now, _ = self.inside("--rule", f"allow {self.outside}", "--rule", f"deny {access} {where}")
                self.no_wrong(self.judge(n, letter, results[n], state[n], before[n], got[n], now[n])
                              for n in range(len(ROWS)))

    def judge(self, n, denied, result, state, before, got, now):
        if denied not in ROWS[n][3]:
            return self.differ(n, got, now, (result,), state)
        # What would fail anyway may fail with its own error.
        return self.differ(n, got, now, ("EACCES", "EXDEV") if result == "ok" else ("EACCES", "EXDEV", result), before)

    def test_what_is_above_a_protected_thing_stays_where_it_is(self):
        results, state, before = self.natively()
        got, now, _ = self.inside("--rule", f"allow {self.outside}", "--rule", f"deny w {self.outside}/*/full/x")
        for n, (_, what, target, _) in enumerate(ROWS):
            if what == "full" and target and results[n] == "ok":
                results[n], state[n] = "EACCES", before[n]
        self.no_wrong(self.differ(n, got[n], now[n], (results[n],), state[n]) for n in range(len(ROWS)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What refused a call, for every call and every reason: the verdict that the report gives."""

import os
import shutil
import subprocess
import unittest

from run_help import NOBODY, WARDER, RunCase, both_users, fixture, main, needs

ONE = fixture("run_one")
OTHER = 12345  # a user that is neither root nor the test's

# Who or what refuses, column by column:
#   wall    no rule allows it; everything else does
#   mode    a rule allows it; the mode bits of another user's directory and files do not
#   both    neither
#   sticky  a rule allows it; the directory is another user's, open to all and sticky
#   stuck   a sticky directory, and no rule
#   attr    a rule allows it; the thing itself is immutable (chattr +i)
#   attrs   an immutable thing, and no rule
#   frozen  a rule allows it; the directory is immutable
# s: sandbox, p: permissions, o: other, h: p, or o where fs.protected_hardlinks speaks first, q: p,
# where the wall has no word either, .: it works, or fails for a reason that is none of these.
TABLE = """
call               of     to     wall  mode  both  sticky  stuck  attr  attrs  frozen
open_r             file   -      s     p     p     .       s      .     s      .
open_w             file   -      s     p     p     .       s      p     p      .
open_rw            file   -      s     p     p     .       s      p     p      .
open_append        file   -      s     p     p     .       s      p     p      .
open_3             file   -      .     p     q     .       .      p     p      .
open_3_trunc       file   -      s     p     p     .       s      p     p      .
open_3_creat       new    -      s     p     p     .       s      .     s      p
open_rdonly_trunc  file   -      s     p     p     .       s      p     p      .
open_dir           sub    -      s     p     p     .       s      .     s      .
open_creat         new    -      s     p     p     .       s      .     s      p
creat              new    -      s     p     p     .       s      .     s      p
creat              file   -      s     p     p     .       s      p     p      .
open_tmpfile       sub    -      s     p     p     .       s      p     p      .
truncate           file   -      s     p     p     .       s      p     p      .
exec               prog   -      s     p     p     .       s      .     s      .
exec               sub    -      o     o     o     o       o      o     o      o
mkdir              new    -      s     p     p     .       s      .     s      p
mknod_reg          new    -      s     p     p     .       s      .     s      p
mknod_fifo         new    -      s     p     p     .       s      .     s      p
mknod_sock         new    -      s     p     p     .       s      .     s      p
mknod_char         new    -      o     p     p     o       o      o     o      p
mknod_block        new    -      o     p     p     o       o      o     o      p
mknod_whiteout     new    -      s     p     p     .       s      .     s      p
symlink            new    -      s     p     p     .       s      .     s      p
bind               new    -      s     p     p     .       s      .     s      p
unlink             file   -      s     p     p     p       p      p     p      p
rmdir              sub    -      s     p     p     p       p      p     p      p
link               file   new    s     h     h     .       s      p     p      p
rename             file   new    s     p     p     p       p      p     p      p
rename             sub    new    s     p     p     p       p      p     p      p
rename             file   file2  s     p     p     p       p      p     p      p
rename_noreplace   file   new    s     p     p     p       p      p     p      p
rename_exchange    file   sub    s     p     p     p       p      p     p      p
rename_whiteout    file   new    s     p     p     p       p      p     p      p
"""
# Root has CAP_DAC_OVERRIDE and CAP_FOWNER inside as well: to it modes and sticky bits say nothing.
ROOT = {"mode": {"p": ".", "o": "o"}, "both": {"p": "s", "q": ".", "o": "o"},
        "sticky": {"p": ".", ".": ".", "o": "o"}, "stuck": {"p": "s", "s": "s", ".": ".", "o": "o"}}
# What is more for root: these need a capability that nothing has inside.
WITHOUT_CAPABILITY = {"mknod_char", "mknod_block"}

WORDS = {"s": "sandbox", "p": "permissions", "o": "other", "x": "cross-device", ".": None}
PROTECTED_HARDLINKS = "/proc/sys/fs/protected_hardlinks"


def rows():
    lines = [line.split() for line in TABLE.strip().splitlines()]
    reasons = lines[0][3:]
    for call, of, to, *cells in lines[1:]:
        assert len(cells) == len(reasons), call
        for reason, cell in zip(reasons, cells):
            yield call, of, to, reason, cell


def setting(path):
    with open(path) as f:
        return int(f.read())


def chattr(what, *paths):
    return subprocess.run(["chattr", what, *paths], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipIf(os.getuid(), "it makes another user's files")
@both_users
class Verdicts(RunCase):
    def setUp(self):
        super().setUp()
        self.open = os.path.join(self.dir, "open")
        os.mkdir(self.open)
        self.frozen = []

    def remove(self):
        if getattr(self, "frozen", None):
            chattr("-i", *self.frozen)
        super().remove()

    def freeze(self, *paths):
        self.frozen += paths
        if not chattr("+i", *paths):
            self.skipTest("no chattr +i on this file system")

    def place(self, number, reason):
        """A directory with everything in it, in the state that the reason names."""
        top = self.open if reason in ("mode", "sticky", "attr", "frozen") else self.outside
        here = os.path.join(top, f"{number}-{reason}")
        others = reason in ("mode", "both", "sticky", "stuck")
        closed = reason in ("mode", "both")
        os.mkdir(here)
        things = {name: os.path.join(here, name) for name in ("file", "file2", "prog", "sub")}
        for name in ("file", "file2"):
            with open(things[name], "w") as f:
                f.write("text\n")
            os.chmod(things[name], 0o600 if closed else 0o666)
        shutil.copy("/bin/true", things["prog"])
        os.chmod(things["prog"], 0o700 if closed else 0o755)
        os.mkdir(things["sub"])
        os.chmod(things["sub"], 0o700 if closed else 0o777)
        owner = OTHER if others else self.uid
        for path in (here, *things.values()):
            os.chown(path, owner, owner)
        os.chmod(here, 0o1777 if reason in ("sticky", "stuck") else 0o755)
        if reason in ("attr", "attrs"):
            self.freeze(things["file"], things["sub"])
        if reason == "frozen":
            self.freeze(here)
        return here

    def expected(self, call, reason, cell):
        if cell == "h":
            cell = "o" if self.uid and setting(PROTECTED_HARDLINKS) else "p"
        if self.uid == 0 and reason in ROOT:
            if call in WITHOUT_CAPABILITY:
                return "o"
            return ROOT[reason][cell]
        return "p" if cell == "q" else cell

    def run_them(self, calls, *more):
        words = [w for call in calls for w in call]
        done = self.run_report("--rule", f"allow rwx {self.open}", *more, "--", ONE, *words)
        self.assertStatus(done)
        lines = [line.split() for line in done.out.splitlines()]
        self.assertEqual([c[0] for c in calls], [c for c, _ in lines], done)
        return done, [result for _, result in lines]

    def verdict_below(self, done, here):
        found = {d["verdict"] for d in done.report["denials"] if (d["path"] + "/").startswith(here + "/")}
        self.assertLessEqual(len(found), 1, found)
        return found.pop() if found else None

    def test_the_table(self):
        calls, wanted = [], []
        for number, (call, of, to, reason, cell) in enumerate(rows()):
            here = self.place(number, reason)
            calls.append((call, f"{here}/{of}", f"{here}/{to}"))
            wanted.append((call, of, reason, here, WORDS[self.expected(call, reason, cell)]))
        done, results = self.run_them(calls)
        wrong = []
        for (call, of, reason, here, verdict), result in zip(wanted, results):
            got = self.verdict_below(done, here)
            # What is reported was refused; what was refused for any of these reasons is reported.
            refused = result in ("EACCES", "EPERM")
            if got != verdict or refused != (verdict is not None):
                wrong.append(f"{call} of {of}, {reason}: {result} {got}, not {verdict}")
        self.assertEqual([], wrong)

    def test_only_the_wall_is_asked_about(self):
        here = self.place(0, "attrs")
        both = self.place(1, "both")
        done = self.hold("--", ONE, "unlink", f"{here}/file", "-", "rename", f"{here}/sub", f"{here}/x",
                         "mknod_char", f"{here}/n", "-", "exec", f"{here}/sub", "-",
                         *(() if self.uid == 0 else ("unlink", f"{both}/file", "-")))
        self.assertStatus(done)
        self.assertNothingAsked(done)

    def test_what_is_done_right_away(self):
        """Each row once more with a yes: it works, or it was not refused by the wall."""
        calls = []
        for number, (call, of, to, reason, cell) in enumerate(rows()):
            if reason != "wall" or cell != "s" or call == "exec":
                continue
            here = self.place(number, reason)
            calls.append((call, f"{here}/{of}", f"{here}/{to}"))
        words = [w for call in calls for w in call]
        done = self.hold("--", ONE, *words)
        self.assertStatus(done)
        self.assertEqual([f"{c[0]} ok" for c in calls], done.out.splitlines(), done)
        self.assertEqual({"sandbox"}, {d["verdict"] for d in done.report["denials"]})
        # Many below one directory become one question about it.
        self.assertGreater(len(done.asked), 6)
        self.assertLessEqual(len(done.asked), len(calls))

    @unittest.skipIf(not setting(PROTECTED_HARDLINKS), "not set here")
    def test_protected_hardlinks(self):
        for top in (self.open, self.outside):
            here = os.path.join(top, "links")
            self.own_dir(here)
            with open(f"{here}/theirs", "w"):
                pass
            os.chown(f"{here}/theirs", OTHER, OTHER)
            done, results = self.run_them([("link", f"{here}/theirs", f"{here}/mine")])
            if self.uid == 0:
                self.assertEqual("ok" if top == self.open else "EACCES", results[0])
                self.assertEqual(None if top == self.open else "sandbox", self.verdict_below(done, here))
                continue
            self.assertEqual(["EPERM"], results)
            [d] = done.denials()
            self.assertEqual("other", d["verdict"])
            self.assertIn("fs.protected_hardlinks", d["note"])

    def own_dir(self, path):
        os.mkdir(path)
        return self.own(path)

    def test_protected_in_sticky_directories(self):
        """The settings as this machine has them: each is judged as the kernel judged."""
        here = os.path.join(self.open, "t")
        os.mkdir(here)
        os.chown(here, OTHER, OTHER)
        os.chmod(here, 0o1777)
        third = 12346
        with open(f"{here}/file", "w"):
            pass
        os.mkfifo(f"{here}/fifo")
        os.symlink(f"{self.open}/target", f"{here}/link")
        with open(f"{self.open}/target", "w"):
            pass
        for name in ("file", "fifo"):
            os.chmod(f"{here}/{name}", 0o666)
        os.chmod(f"{self.open}/target", 0o666)
        for name in ("file", "fifo", "link"):
            os.chown(f"{here}/{name}", third, third, follow_symlinks=False)
        done, results = self.run_them([("open_creat", f"{here}/file", "-"), ("open_r", f"{here}/link", "-")])
        for result, name, path in zip(results, ("protected_regular", "protected_symlinks"),
                                      (f"{here}/file", f"{self.open}/target")):
            guarded = setting(f"/proc/sys/fs/{name}") > 0
            self.assertEqual("EACCES" if guarded else "ok", result, name)
            self.assertEqual([{"protected_regular": "other", "protected_symlinks": "permissions"}[name]] if guarded else [],
                             [d["verdict"] for d in done.denials(path)], name)


@unittest.skipIf(os.getuid(), "only root mounts")
@both_users
class Mounts(RunCase):
    """In a mount namespace of its own."""

    def in_mounts(self, setup, *argv):
        """As this class's user, after root's setup."""
        become = "" if self.uid == 0 else f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "
        script = f"set -e; {setup}\ncd {self.project}; exec {become}\"$@\""
        if os.path.exists(self.report_file):
            os.unlink(self.report_file)
        p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *argv],
                           env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                           start_new_session=True)
        self.assertEqual(0, p.returncode, p.stderr)
        return p.stdout.split()[1::2], self.read_report()["denials"]

    def warder(self, *argv):
        return (WARDER, "run", "--on-denial", "report", "--report", self.report_file,
                "--rule", f"allow rwx {self.dir}/a", *argv)

    @needs("setpriv", "unshare")
    def test_read_only(self):
        """EROFS comes first, whatever the wall would say: nothing was refused by it."""
        for place in ("a", "outside"):
            here = os.path.join(self.dir, place, "ro")
            os.makedirs(here)
            results, denials = self.in_mounts(
                f"mount -t tmpfs none {here}; touch {here}/file; mkdir {here}/sub; mount -o remount,ro {here}",
                *self.warder("--", ONE, "open_w", f"{here}/file", "-", "creat", f"{here}/new", "-",
                             "mkdir", f"{here}/new", "-", "unlink", f"{here}/file", "-", "rmdir", f"{here}/sub", "-",
                             "rename", f"{here}/file", f"{here}/x", "link", f"{here}/file", f"{here}/x",
                             "symlink", f"{here}/x", "-", "truncate", f"{here}/file", "-"))
            self.assertEqual({"EROFS"}, set(results))
            self.assertEqual([], denials)

    @needs("setpriv", "unshare")
    def test_noexec(self):
        here = os.path.join(self.dir, "a")
        os.mkdir(here)
        script = self.write("project/script", f"#!{here}/prog\n", 0o755)
        results, denials = self.in_mounts(
            f"mount -t tmpfs -o noexec,mode=755 none {here}; cp /bin/true {here}/prog; chmod 755 {here}/prog",
            *self.warder("--", ONE, "exec", f"{here}/prog", "-", "exec", script, "-"))
        self.assertEqual(["EACCES", "EACCES"], results)
        [d] = denials  # the interpreter is the file that was refused
        self.assertEqual((f"{here}/prog", "other", 2), (d["path"], d["verdict"], d["count"]))
        self.assertIn("noexec", d["note"])

    @needs("setpriv", "unshare")
    def test_nodev(self):
        here = os.path.join(self.dir, "a")
        os.mkdir(here)
        results, denials = self.in_mounts(
            f"mount -t tmpfs -o mode=755 none {here}; mknod {here}/null c 1 3; chmod 666 {here}/null; mount -o remount,nodev {here}",
            *self.warder("--", ONE, "open_r", f"{here}/null", "-"))
        self.assertEqual(["EACCES"], results)
        [d] = denials
        self.assertEqual("other", d["verdict"])
        self.assertIn("nodev", d["note"])

    @needs("setpriv", "unshare")
    def test_another_device(self):
        here, there = os.path.join(self.dir, "a"), os.path.join(self.dir, "outside/mnt")
        for path in (here, there, f"{self.outside}/bound", f"{self.outside}/plain"):
            os.makedirs(path)
            self.own(path)
        self.write("outside/plain/file", "x")
        mounted = (f"mount -t tmpfs -o mode=777 none {here}; mount -t tmpfs -o mode=777 none {there}; umask 0;"
                   f"echo x > {here}/file; echo x > {there}/file; chown {self.uid} {here}/file {there}/file;"
                   f"mount --bind {self.outside}/plain {self.outside}/bound")
        results, denials = self.in_mounts(mounted, *self.warder(
            "--", ONE, "rename", f"{here}/file", f"{self.project}/x", "link", f"{here}/file", f"{self.project}/y",
            "rename", f"{there}/file", f"{self.outside}/x", "link", f"{there}/file", f"{self.outside}/y",
            "rename", f"{self.outside}/bound/file", f"{self.outside}/plain/z"))
        self.assertEqual(["EXDEV"] * 5, results)
        self.assertEqual(["cross-device"] * 5, [d["verdict"] for d in denials])

    @needs("setpriv", "unshare")
    def test_a_mount_point_is_busy(self):
        here = os.path.join(self.dir, "a")
        os.mkdir(here)
        self.own(here)
        place = os.path.join(self.outside, "mnt")
        os.mkdir(place)
        results, denials = self.in_mounts(
            f"mount -t tmpfs none {place}",
            *self.warder("--", ONE, "rmdir", place, "-", "rename", place, f"{self.outside}/x"))
        self.assertEqual(["EBUSY", "EBUSY"], results)
        self.assertEqual([], denials)


if __name__ == "__main__":
    main()

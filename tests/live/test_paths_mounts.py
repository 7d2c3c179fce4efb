#!/usr/bin/env python3
"""Paths where several mounts, or several name spaces, meet."""

import os
import subprocess
import unittest

from path_help import PathCase
from run_help import both_users, deny, fixture, main, needs

# As root: a mount name space of its own, what the test mounts there, and then the test's user.
ENTER = """
set -e
{mounts}
exec {become} "$@"
"""


@unittest.skipUnless(os.getuid() == 0, "mounting needs root")
class MountCase(PathCase):
    mounts = ""
    options = ["-m", "--propagation", "private"]

    def as_user(self):
        return {}

    def start(self, argv, **more):
        become = f"setpriv --reuid {self.uid} --regid {self.uid} --clear-groups --" if self.uid else ""
        self.try_mounts()
        script = ENTER.format(mounts=self.mounts, become=become)
        return super().start(["unshare", *self.options, "sh", "-c", script, "sh", *argv], **more)

    def try_mounts(self):
        """In a container root may be refused them."""
        script = ENTER.format(mounts=self.mounts, become="")
        tried = subprocess.run(["unshare", *self.options, "sh", "-c", script, "sh", "true"], capture_output=True,
                               text=True, timeout=30)
        if tried.returncode:
            self.skipTest("can't be mounted here: " + tried.stderr.strip())

    def bind(self, what, where, flags=""):
        self.mounts += f"mount --bind '{self.dir}/{what}' '{self.dir}/{where}'\n"
        if flags:
            self.mounts += f"mount -o remount,bind,{flags} '{self.dir}/{where}'\n"

    def give(self, path):
        self.mounts += f"chown -R {self.uid}:{self.uid} '{self.dir}/{path}'\n"


@both_users
class Bound(MountCase):
    """Two names of one thing."""

    def test_what_is_refused_is_refused_by_its_other_name(self):
        self.mkdir("project/a b")
        self.bind("outside", "project/a b")
        rows = ("read", "a b/f"), ("write", "a b/f"), ("creat", "a b/new"), ("unlink", "a b/f"), ("read", "../outside/f")
        for how in (("--deny", self.outside), ("--rule", f"deny {self.outside}")):
            with self.subTest(how):
                done = self.ops(*rows, args=how)
                self.assertEqual(["EACCES"] * 5, done.said)
                self.assertNothingAsked(done)
                self.assertEqual({("project/a b/f", "a b/f", "sandbox", "deny")}, set(self.entries(done)[:2]))

    def test_one_file_of_it(self):
        self.mkdir("project/b")
        self.write("outside/open", "OPEN")
        self.bind("outside", "project/b")
        done = self.ops(("read", "b/f"), ("write", "b/f"), ("read", "b/open"), ("creat", "b/new"),
                        args=("--rule", f"deny w {self.secret}"), answer=deny)
        self.assertEqual(["ok OUTSIDE", "EACCES", "ok OPEN"], done.said[:3])

    def test_something_in_what_is_forbidden(self):
        self.write("outside/d/e", "E")
        self.mkdir("project/b")
        self.bind("outside/d", "project/b")
        done = self.ops(("read", "b/e"), args=("--deny", self.outside))
        self.assertEqual((["EACCES"], [("project/b/e", "b/e", "sandbox", "deny")]), (done.said, self.entries(done)))

    def test_what_is_asked_about_is_the_name_that_was_used(self):
        self.write("project/sub/x", "SUB")
        self.mkdir("outside/b")
        self.bind("project/sub", "outside/b")
        path = f"{self.outside}/b"
        done = self.ops(("read", f"{path}/x"), ("creat", f"{path}/new"), ("read", "sub/x"))
        self.assertEqual([("outside/b/x", None, ["read"]), ("outside/b/new", None, ["write", "create"])],
                         self.asked(done))
        self.assertTrue(os.path.exists(f"{self.project}/sub/new"))

    def test_a_link_from_one_mount_to_the_other_is_a_real_crossing(self):
        self.mkdir("project/b")
        self.bind("outside/d", "project/b")
        done = self.ops(("from", "p"), ("link", "b/p"), ("rename", "b/p"))
        self.assertEqual(["EXDEV", "EXDEV"], done.said)
        self.assertNothingAsked(done)
        self.assertEqual({"cross-device"}, {d["verdict"] for d in done.report["denials"]} | {"cross-device"})

    def test_read_only(self):
        self.write("outside/d/e", "E")
        self.mkdir("ro")
        self.bind("outside/d", "ro", "ro")
        ro = f"{self.dir}/ro"
        done = self.ops(("read", f"{ro}/e"), ("write", f"{ro}/e"), ("creat", f"{ro}/n"), ("unlink", f"{ro}/e"),
                        ("mkdir", f"{ro}/n"))
        self.assertEqual(["ok E"] + ["EROFS"] * 4, done.said)
        self.assertEqual([("ro/e", None, ["read"])], self.asked(done))
        self.assertEqual(1, len(done.report["denials"]))


@both_users
class Layered(MountCase):
    """overlayfs: a file of a lower layer becomes another inode when it is first written."""

    def setUp(self):
        super().setUp()
        for name in ("lower", "upper", "work"):
            self.mkdir(name)
        d = self.dir
        self.mounts = (f"mount -t tmpfs none {d}/lower; mkdir {d}/lower/sub; "
                       f"for i in a b c; do printf LOWER > {d}/lower/$i; done\n")
        self.give("lower")
        self.mounts += (f"mount -t overlay none {self.outside}/d -o "
                        f"lowerdir={d}/lower,upperdir={d}/upper,workdir={d}/work\n")
        self.here = f"{self.outside}/d"

    def test_read_before_and_after_it_was_copied_up(self):
        a = f"{self.here}/a"
        done = self.ops(("open", a), ("both", a), ("read", a), ("read", "/proc/self/fd/9"), ("creat", a), ("unlink", a),
                        ("read", a))
        self.assertEqual(["ok"] + ["ok LOWER"] * 3, done.said[:4])
        self.assertEqual(["ok", "ENOENT"], done.said[5:])
        self.assertEqual([("outside/d/a", None, [access]) for access in ("read", "write", "delete")], self.asked(done))

    def test_moving_and_linking_is_no_crossing(self):
        """A file's device is not its directory's there."""
        d = self.here
        done = self.ops(("from", f"{d}/a"), ("link", f"{d}/a2"), ("link", f"{d}/sub/a3"), ("from", f"{d}/b"),
                        ("rename", f"{d}/sub/b2"), ("from", f"{d}/c"), ("rename", f"{d}/c2"))
        self.assertEqual(["ok"] * 4, done.said)
        self.assertEqual(["sandbox"] * 4, [x["verdict"] for x in done.report["denials"]])

    def test_a_refused_one_stays_as_it_was(self):
        done = self.ops(("both", f"{self.here}/a"), ("unlink", f"{self.here}/a"), answer=deny)
        self.assertEqual(["EACCES", "EACCES"], done.said)
        self.assertEqual([], os.listdir(f"{self.dir}/upper"))

    def test_forbidden_by_rule_once_copied_up(self):
        a = f"{self.here}/a"
        done = self.ops(("both", a), ("read", a), ("write", a), args=("--rule", f"allow r {self.here}", "--rule", f"deny w {a}"))
        self.assertEqual(["EACCES", "ok LOWER", "EACCES"], done.said)


@both_users
class Temporary(MountCase):
    def test_another_file_system(self):
        d = f"{self.outside}/d"
        self.mounts = f"mount -t tmpfs none {d}; printf TMP > {d}/t; chmod 777 {d}\n"
        self.give("outside/d")
        done = self.ops(("read", f"{d}/t"), ("creat", f"{d}/new"), ("from", f"{d}/t"), ("rename", f"{self.outside}/t"),
                        ("link", f"{self.project}/t"), ("rename", f"{d}/t2"))
        self.assertEqual("ok TMP", done.said[0])
        self.assertEqual(["EXDEV", "EXDEV", "ok"], done.said[2:])
        self.assertEqual([("outside/d/t", None, ["read"]), ("outside/d/new", None, ["write", "create"]),
                          ("outside/d/t", None, ["create", "delete"])], self.asked(done))
        self.assertEqual(["sandbox", "sandbox", "cross-device", "cross-device", "sandbox"],
                         [x["verdict"] for x in done.report["denials"]])


@both_users
class Spaces(PathCase):
    """A command in a name space of its own, or in one that was there before."""

    def enters(self):
        if self.native("unshare", "-Urm", "true").status:
            self.skipTest("no user name spaces here")

    def test_a_mount_space_of_its_own(self):
        self.enters()
        done = self.ops(("own-names", "-"), ("read", self.secret), ("read", "../outside/f"), ("creat", f"{self.outside}/n"),
                        ("keep-path", self.secret), ("read", "/proc/self/fd/9"))
        self.assertEqual(["ok", "ok OUTSIDE", "ok OUTSIDE"], done.said[:3])
        self.assertEqual(["ok", "ok OUTSIDE"], done.said[4:])
        self.assertEqual([("outside/f", None, ["read"]), ("outside/n", None, ["write", "create"])], self.asked(done))

    @needs("unshare")
    def test_a_process_space_of_its_own(self):
        self.enters()
        done = self.hold("--", "unshare", "-Upf", fixture("path_ops"), "keep-path", self.secret,
                         "read", "/proc/self/fd/9", "read", "/proc/thread-self/fd/9", "read", "/dev/fd/9")
        self.assertEqual("ok\n" + "ok OUTSIDE\n" * 3, done.out, done)
        q, = [q for q in done.asked if q["call"] != "execve"]
        self.assertEqual((self.secret, "/proc/self/fd/9"), (q["path"], q["given"]))

    def prepared(self, script, kinds=("user", "mnt"), options="-Urm"):
        """Another process's name spaces: a descriptor of each."""
        p = self.start(["unshare", *options.split(), "sh", "-c", f"{script}\necho ready; exec cat"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if p.stdout.readline() != b"ready\n":
            self.skipTest("no such name spaces here")
        pid = self.children_of(p)[0] if "f" in options else p.pid
        fds = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
        for fd in fds:
            self.addCleanup(os.close, fd)
        return fds

    def test_a_process_space_with_a_proc_of_its_own(self):
        """There the process has another number."""
        self.enters()
        fds = self.prepared(":", ("user", "mnt", "pid"), "-Urmpf --mount-proc")
        ways = ("/proc/self/fd/9", "/dev/fd/9", "/proc/thread-self/fd/9", f"/proc/self/root{self.secret}")
        done = self.ops(*(("setns", str(fd)) for fd in fds), ("fork", "-"), ("keep-path", self.secret),
                        *(("read", way) for way in ways), pass_fds=fds)
        self.assertEqual(["ok"] * 4 + ["ok OUTSIDE"] * 4, done.said)
        self.assertEqual([("outside/f", "/proc/self/fd/9", ["read"])], self.asked(done))

    def test_things_that_only_another_space_has(self):
        """No path of ours leads there: refused, told in its own words, and nothing is suggested."""
        self.enters()
        user, mnt = self.prepared(f"mount -t tmpfs none {self.outside}/d; printf HIDDEN > {self.outside}/d/f")
        self.write("outside/d/f", "OURS")
        path = f"{self.outside}/d/f"
        done = self.ops(("setns", str(user)), ("setns", str(mnt)), ("read", path), ("creat", f"{self.outside}/d/new"),
                        ("read", self.secret), pass_fds=(user, mnt))
        self.assertEqual(["ok", "ok", "EACCES", "EACCES", "ok OUTSIDE"], done.said)
        self.assertEqual([("outside/f", None, ["read"])], self.asked(done))
        self.assertEqual([("outside/d/f", None, "sandbox", "deny"), ("outside/d/new", None, "sandbox", "deny"),
                          ("outside/f", None, "sandbox", "allow")], self.entries(done))
        self.assertEqual([], done.report["suggested"])
        self.assertEqual("OURS", self.read("outside/d/f"))


@unittest.skipUnless(os.getuid() == 0, "mounting needs root")
@both_users
class Within(MountCase):
    """warder itself in a process space with a /proc of its own."""

    options = ["-m", "-p", "-f", "--mount-proc", "--propagation", "private"]

    def test_all_as_ever(self):
        done = self.ops(("keep-path", self.secret), ("read", "/proc/self/fd/9"), ("read", "/proc/thread-self/cwd/../outside/f"))
        self.assertEqual(["ok", "ok OUTSIDE", "ok OUTSIDE"], done.said)
        self.assertEqual([("outside/f", "/proc/self/fd/9", ["read"])], self.asked(done))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Calls that no path grant can help: mounts, other roots and namespaces, io_uring."""

import json
import os
import shutil
import unittest

from run_help import WARDER, RunCase, both_users, fixture, main, needs

NOTE = "no path grant can help"


def can_make_user_namespaces(case):
    return case.native("unshare", "-U", "true").status == 0


@both_users
class Mounts(RunCase):
    def setUp(self):
        super().setUp()
        if not can_make_user_namespaces(self):
            self.skipTest("no user namespaces here")

    def assertOneLine(self, done, program):
        """Refused, told once, nothing asked: and no word of a path that could be allowed."""
        lines = [line for line in done.err.splitlines() if line.startswith("warder:")]
        self.assertEqual(1, len(lines), done)
        self.assertIn("mounting was refused", lines[0])
        self.assertIn(f"({program})", lines[0])
        self.assertIn(NOTE, lines[0])
        [note] = done.report["engine"]["notes"]
        self.assertIn(f"({program})", note)

    @needs("unshare")
    def test_a_mount_namespace(self):
        for run in (self.run_report, self.hold):
            done = run("--", "unshare", "-U", "-m", "true")
            self.assertNotEqual(0, done.status)
            self.assertOneLine(done, "unshare")
            self.assertNothingAsked(done)
            [d] = done.report["denials"]
            self.assertEqual(("/", "mount", "EPERM", "other", "none", []),
                             (d["path"], d["call"], d["errno"], d["verdict"], d["by"], d["access"]))
            self.assertIn(NOTE, d["note"])
            self.assertEqual([], done.report["suggested"])

    @needs("bwrap")
    def test_bubblewrap(self):
        # It writes the maps of its namespace first.
        done = self.hold("--rule", "allow rw /proc", "--", "bwrap", "--unshare-user", "--uid", "0",
                         "--bind", "/", "/", "true")
        self.assertNotEqual(0, done.status)
        self.assertNothingAsked(done)
        self.assertOneLine(done, "bwrap")

    @needs("python3", "unshare")
    def test_the_whole_family(self):
        os.mkdir(f"{self.project}/a")
        self.own(f"{self.project}/a")
        script = ("import ctypes, os\n"
                  "c = ctypes.CDLL(None, use_errno=True)\n"
                  "here = os.getcwd().encode()\n"
                  "def call(name, *a):\n"
                  "    r = c.syscall(*a)\n"
                  "    print(name, 'ok' if r >= 0 else os.strerror(ctypes.get_errno()))\n"
                  "call('mount', %(mount)d, b'none', here + b'/a', b'tmpfs', 0, None)\n"
                  "call('bind', %(mount)d, here, here + b'/a', None, 4096, None)\n"
                  "call('umount2', %(umount2)d, b'/proc', 2)\n"
                  "call('pivot_root', %(pivot_root)d, here, here + b'/a')\n"
                  "call('move_mount', 429, -100, here, -100, here + b'/a', 0)\n")
        numbers = {"x86_64": {"mount": 165, "umount2": 166, "pivot_root": 155},
                   "aarch64": {"mount": 40, "umount2": 39, "pivot_root": 41}}[os.uname().machine]
        self.write("project/try.py", script % numbers)
        done = self.run_report("--", "unshare", "-U", "/usr/bin/python3", "try.py")
        self.assertStatus(done)
        # Whatever the order of its own checks: nothing of it works, and all that got EPERM is told.
        self.assertNotIn(" ok", done.out)
        refused = [line.split()[0] for line in done.out.splitlines() if "not permitted" in line]
        self.assertIn("mount", refused)
        self.assertEqual({"other"}, {d["verdict"] for d in done.report["denials"]})
        self.assertEqual(len(refused), sum(d["count"] for d in done.report["denials"]), done)
        self.assertIn(f"refused {len(refused)}×", done.report["engine"]["notes"][0])

    @needs("python3", "unshare")
    def test_another_root_is_no_matter_of_landlock(self):
        os.mkdir(f"{self.project}/root")
        self.own(f"{self.project}/root")
        self.write("project/root/file", "in there\n")
        secret = self.write("outside/secret", "s\n")
        os.makedirs(f"{self.project}/root{self.outside}")
        script = ("import os\nos.chroot('root')\nos.chdir('/')\nprint(open('/file').read(), end='')\n"
                  f"try:\n    open('{secret}')\nexcept OSError as e:\n    print(e.strerror)\n")
        native = self.native("unshare", "-U", "/usr/bin/python3", "-c", script)
        done = self.hold("--", "unshare", "-U", "/usr/bin/python3", "-c", script)
        self.assertEqual((native.status, native.out), (done.status, done.out), done)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])


@both_users
class Namespaces(RunCase):
    """What the wall alone refuses is told on the terminal, and why --last says the same."""

    def assertTold(self, done, words):
        lines = [line for line in done.err.splitlines() if line.startswith("warder:")]
        self.assertEqual(1, len(lines), done)
        self.assertRegex(lines[0], words)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["suggested"])

    @needs("unshare")
    def test_the_maps_of_a_user_namespace(self):
        if not can_make_user_namespaces(self):
            self.skipTest("no user namespaces here")
        for run in (self.run_report, self.hold):
            done = run("--", "unshare", "-U", "-r", "true")
            self.assertNotEqual(0, done.status)
            self.assertTold(done, r"of a process was refused 1× \(unshare: uid_map\)")
            [d] = done.report["denials"]
            last = self.native(WARDER, "why", "--last")
            self.assertStatus(last, 1)
            self.assertIn(f"unshare was refused write (openat, 1×) {d['path']}: {d['note']}\n", last.out)
            self.assertNotIn("another policy", last.out)
            self.assertNotIn("warder policy", last.out)
            self.assertEqual([], json.loads(self.native(WARDER, "why", "--last", "--json").out)["denials"][0]["now"])
        self.assertStatus(self.run_report("--rule", "allow rw /proc", "--", "unshare", "-U", "-r", "true"))
        # A rule for such a name means nothing once the process is gone.
        asked = self.native("sh", "-c", f"exec {WARDER} why /proc/$$/uid_map write")
        self.assertStatus(asked, 1)
        self.assertIn("only a rule for all of /proc", asked.out)
        self.assertNotIn("warder policy", asked.out)

    @needs("unshare")
    def test_a_namespace_that_root_could_make_outside(self):
        for words in (["unshare", "-m"], ["unshare", "-n"], ["bwrap", "--ro-bind", "/", "/"],
                      ["nsenter", "--uts=/proc/self/ns/uts"]):
            if not shutil.which(words[0]) or (self.uid == 0 and self.native(*words, "true").status):
                continue
            done = self.run_report("--", *words, "true")
            self.assertNotEqual(0, done.status)
            if self.uid == 0:
                self.assertTold(done, rf"namespace was refused \d× \({words[0]}\)")
                last = self.native(WARDER, "why", "--last")
                self.assertIn("no path was refused\n\nnote: a namespace was refused", last.out)
            else:
                self.assertNotIn("a namespace was refused", done.err)  # natively, too, or by its maps

    @needs("ps")
    def test_processes_outside(self):
        done = self.run_report("--", "cat", f"/proc/{os.getpid()}/environ")
        if self.uid == os.getuid():  # its owner could, without the wall
            # In the report alone: ps and the like look at everything, and do with what they get.
            self.assertNotIn("warder:", done.err)
            self.assertRegex("\n".join(done.report["engine"]["notes"]),
                             r"outside of the sandbox was refused 1× \(cat: environ\)")
        else:
            self.assertEqual("permissions", done.report["denials"][0]["verdict"])


@both_users
class Queues(RunCase):
    OPEN = ("import ctypes, errno, os\n"
            "rt = ctypes.CDLL('librt.so.1', use_errno=True)\n"
            "name = f'/warder-{os.getpid()}'.encode()\n"
            "q = rt.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)\n"
            "print(errno.errorcode.get(ctypes.get_errno()) if q < 0 else 'made')\n"
            "rt.mq_unlink(name)\n")

    def test_a_message_queue_is_told(self):
        self.env["PATH"] = "/usr/bin:/bin"
        natively = self.native("python3", "-c", self.OPEN)
        if natively.out != "made\n":
            self.skipTest("no message queues here: " + natively.out)
        done = self.run_report("--on-denial", "report", "--", "python3", "-c", self.OPEN)
        self.assertEqual("EACCES\n", done.out)
        [note] = done.report["engine"]["notes"]
        self.assertIn("message queue was refused", note)
        self.assertIn("message queue was refused", done.err)
        done = self.run_report("--permissive", "--", "python3", "-c", self.OPEN)
        self.assertEqual("made\n", done.out)
        self.assertIn("message queue was asked for", str(done.report["engine"]["notes"]))


@both_users
class Uring(RunCase):
    def test_it_falls_back_and_is_told(self):
        path = self.write("project/file", "x")
        done = self.run_report("-x", os.path.dirname(fixture("run_uring")), "--", "sh", "-c", f"for i in 1 2 3; do {fixture('run_uring')} {path}; done")
        self.assertEqual("ring ENOSYS\nopen ok\n" * 3, done.out)
        self.assertEqual(["io_uring refused 3× (run_uring)"], done.report["engine"]["notes"])
        self.assertEqual([], done.report["denials"])

    def test_a_name_of_its_own_choice_is_shown_escaped(self):
        path = self.write("project/file", "x")
        odd = os.path.join(self.project, "a\x1b[31m,b")
        os.symlink(fixture("run_uring"), odd)
        done = self.run_report("-v", "--", odd, path)
        self.assertStatus(done)
        self.assertEqual(["io_uring refused 1× (a\\e[31m,b)"], done.report["engine"]["notes"])
        self.assertNotIn("\x1b", done.err)


if __name__ == "__main__":
    main()

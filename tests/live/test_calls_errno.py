#!/usr/bin/env python3
"""A failing call's errno is what the wall alone gives: the tracer adds no change that is not listed here."""

import os

from run_help import RunCase, both_users, fixture, main, needs
from test_run_calls import Calls

WALLED = os.environ["WALLED"]
ONE = fixture("run_one")
CALLS = fixture("run_calls")
PYTHON = "/usr/bin/python3"

# Calls of run_calls that fail anyway get the file system's own errno, which Landlock, asked before
# it, hides. (call: the wall's, warder's)
FAIL_ANYWAY = {
    "rename_over_full": ("EACCES", "ENOTEMPTY"),
    "rename_directory_over_file": ("EACCES", "ENOTDIR"),
    "rename_file_over_directory": ("EACCES", "EISDIR"),
    "unlink_directory": ("EACCES", "EISDIR"),
    "rmdir_full": ("EACCES", "ENOTEMPTY"),
    "rmdir_file": ("EACCES", "ENOTDIR"),
    "link_directory": ("EACCES", "EPERM"),
}

# What no program can do inside, and how it is told. (name, arguments, natively, warder's; errno names)
NR = {"x86_64": {"clone3": 435, "io_uring_setup": 425, "ptrace": 101, "prlimit64": 302, "ioctl": 16},
      "aarch64": {"clone3": 435, "io_uring_setup": 425, "ptrace": 117, "prlimit64": 261, "ioctl": 29}}
DIFFERENCES = (
    ("clone3", "None, 0", "EINVAL", "ENOSYS"),          # its flags are in memory; clone is there
    ("io_uring_setup", "0, None", "EFAULT", "ENOSYS"),  # its opens make no system call
    ("ioctl", "0, 0x5412, b'x'", "ENOTTY", "EPERM"),    # TIOCSTI types into a terminal
    ("ioctl", "0, 0x541c, b'x'", "ENOTTY", "EPERM"),    # TIOCLINUX pastes into one
)


class Inside:
    """What a class of run_help's users needs to run in the wall alone."""

    def walled(self, *args, **more):
        return self.native(WALLED, "run", *args, **more)


@both_users
class PathCalls(Inside, Calls):
    """The directory of test_run_calls, and none of its tests."""

    def compare(self, *rules):
        self.fill()
        alone = self.walled(*rules, "--", CALLS, self.outside)
        self.fill()
        done = self.run_report(*rules, "--", CALLS, self.outside)
        self.assertStatus(alone)
        self.assertStatus(done)
        differ = {}
        for a, b in zip(alone.out.splitlines(), done.out.splitlines(), strict=True):
            if a != b:
                differ[a.split()[0]] = (a.split()[2], b.split()[2])
        return differ

    def test_nothing_is_allowed(self):
        self.assertEqual(FAIL_ANYWAY, self.compare())

    def test_to_read_is_allowed(self):
        self.assertEqual(FAIL_ANYWAY, self.compare("-r", self.outside))

    def test_all_is_allowed(self):
        self.assertEqual({}, self.compare("-w", self.outside))

    def test_denied_by_a_rule(self):
        self.assertEqual({}, self.compare("--deny", self.outside))


for name in [n for n in dir(Calls) if n.startswith("test_")]:
    for cls in [c for c in (PathCalls, globals().get("PathCalls_AsNobody")) if c]:
        setattr(cls, name, None)
del Calls


@both_users
class OtherCalls(Inside, RunCase):
    @needs(PYTHON)
    def test_what_is_different_is_listed(self):
        numbers = NR[os.uname().machine]
        script = "import ctypes, errno\nc = ctypes.CDLL(None, use_errno=True)\n"
        for name, args, _, _ in DIFFERENCES:
            script += (f"r = c.syscall({numbers[name]}, {args})\n"
                       "print('ok' if r >= 0 else errno.errorcode[ctypes.get_errno()])\n")
        alone = self.walled("--", PYTHON, "-c", script)
        done = self.run_report("--", PYTHON, "-c", script)
        self.assertEqual([d[2] for d in DIFFERENCES], alone.out.split(), alone)
        self.assertEqual([d[3] for d in DIFFERENCES], done.out.split(), done)

    def look(self, run, *paths):
        calls = ("stat", "lstat", "access_r", "access_w", "access_x", "readlink", "chdir", "chroot", "open_path")
        words = [w for p in paths for c in calls for w in (c, p, "-")]
        return run("--", ONE, *words)

    def test_to_look_is_never_refused_nor_asked(self):
        secret = self.write("outside/secret", "s\n", 0o640)
        os.symlink("secret", f"{self.outside}/link")
        closed = self.write("outside/closed/f")
        os.chmod(os.path.dirname(closed), 0o600)
        paths = (secret, self.outside, f"{self.outside}/link", f"{self.outside}/missing", closed,
                 "/etc/shadow", "/root", f"{secret}/x")
        alone = self.look(self.walled, *paths)
        native = self.look(lambda *a: self.native(*a[1:]), *paths)
        for run in (self.run_report, self.hold):
            done = self.look(run, *paths)
            self.assertStatus(done)
            self.assertEqual(alone.out, done.out)
            # Root's chroot asks for CAP_SYS_CHROOT, which it keeps.
            self.assertEqual(native.out, done.out)
            self.assertNothingAsked(done)
            self.assertEqual([], done.report["denials"])

    def test_a_bind_that_is_no_path(self):
        script = ("import socket, sys\n"
                  "def bind(family, to):\n"
                  "    try:\n        socket.socket(family, socket.SOCK_STREAM).bind(to)\n        print('ok')\n"
                  "    except OSError as e:\n        print(e.strerror)\n"
                  "bind(socket.AF_UNIX, b'\\0warder-test-%d' % __import__('os').getpid())\n"
                  "bind(socket.AF_INET, ('127.0.0.1', 0))\n"
                  "bind(socket.AF_INET, ('127.0.0.1', 7))\n"    # a port of root's
                  "bind(socket.AF_INET, ('192.0.2.1', 0))\n")  # not ours
        native = self.native(PYTHON, "-c", script)
        done = self.hold("--", PYTHON, "-c", script)
        self.assertEqual(native.out, done.out)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])
        self.assertEqual(1, done.report["runs"])


if __name__ == "__main__":
    main()

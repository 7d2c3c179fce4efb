#!/usr/bin/env python3
"""
Who became somebody else is acted for as that one, from its next call on: what is known of a thread's
identity is known for as long as it can't have changed, whichever call changed it.
"""

import os
import unittest

from run_help import RunCase, both_users, main

# Each step is of a process of its own, but for the last ones; prints what its attribute calls and a
# listing that only the broker can do came to.
SCRIPT = r"""
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
path, closed = sys.argv[1:]
NOBODY, NEWUSER = 65534, 0x10000000
CALLS = {"x86_64": dict(setfsuid=122, setresuid=117, capset=126, setgroups=116),
         "aarch64": dict(setfsuid=151, setresuid=147, capset=91, setgroups=159)}[os.uname().machine]


def call(name, *args):
    return libc.syscall(CALLS[name], *args)


def attempt(what):
    try:
        what()
        return "ok"
    except OSError as e:
        return os.strerror(e.errno)


def tell(step):
    apart = step == "unshare"  # ids that nobody has mapped are none
    fd = os.open(path, os.O_RDONLY)
    done = [attempt(lambda: os.chmod(path, 0o644)), attempt(lambda: os.fchmod(fd, 0o644)),
            attempt(lambda: os.chown(path, -1, os.stat(path).st_gid)) if not apart else "",
            attempt(lambda: os.utime(path, ns=(7, 8))), attempt(lambda: os.listdir(closed))]
    os.close(fd)
    print(step, done, flush=True)


def step(name, *changes):
    if not (pid := os.fork()):
        tell(name + " before")
        for change in changes:
            attempt(change)
            tell(name)
        os._exit(0)
    os.waitpid(pid, 0)


class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def drop_all():
    call("capset", ctypes.byref(Header(0x20080522, 0)), (ctypes.c_uint32 * 6)())


def thread(change):
    ready, done = threading.Event(), threading.Event()

    def other():
        tell("a thread before")
        change()
        tell("a thread")
        ready.set()
        done.wait()

    t = threading.Thread(target=other)
    t.start()
    ready.wait()
    tell("its sibling")
    done.set()
    t.join()


tell("first")
step("seteuid", lambda: os.seteuid(NOBODY), lambda: os.seteuid(0))
step("setegid", lambda: os.setegid(NOBODY))
step("setresuid", lambda: os.setresuid(NOBODY, NOBODY, 0), lambda: os.setresuid(0, 0, 0))
step("setreuid", lambda: os.setreuid(-1, NOBODY))
step("setuid", lambda: os.setuid(NOBODY))
step("setgid", lambda: os.setgid(NOBODY), lambda: os.setgroups([]))
step("setregid", lambda: os.setregid(NOBODY, NOBODY))
step("setresgid", lambda: os.setresgid(NOBODY, NOBODY, NOBODY))
step("setfsuid", lambda: libc.setfsuid(NOBODY), lambda: libc.setfsuid(0))
step("setfsgid", lambda: libc.setfsgid(NOBODY))
step("capset", drop_all)
step("unshare", lambda: libc.unshare(NEWUSER))
thread(lambda: call("setfsuid", NOBODY))
thread(drop_all)
tell("last")
step("exec", lambda: os.setuid(NOBODY),
     lambda: os.execv(sys.executable, [sys.executable, "-c", "import os, sys\n"
                                       "try: os.chmod(sys.argv[1], 0o600); print('ok')\n"
                                       "except OSError as e: print(e.errno)", path]))
"""


@both_users
class Identity(RunCase):
    def test_as_who_calls(self):
        self.env["PATH"] = "/usr/bin:/bin"
        path = self.write("project/file", "x")
        os.chmod(path, 0o644)
        closed = self.outside
        os.chmod(closed, 0o700)
        command = ["/usr/bin/python3", "-c", SCRIPT, path, closed]
        wanted = self.native(*command)
        self.assertStatus(wanted)
        os.chmod(path, 0o644)
        for fast in ("on", "off"):
            got = self.run_report("--on-denial", "report", "--fast", fast,
                                  "--rule", f"allow list {closed} exact", "--", *command)
            self.assertStatus(got)
            self.assertEqual(wanted.out.splitlines(), got.out.splitlines(), got)
        self.assertGreater(got.report["engine"]["brokered"], 10)


if __name__ == "__main__":
    main()

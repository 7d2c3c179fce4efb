#!/usr/bin/env python3
"""A file system whose server does not answer holds nobody but the one who asks it."""

import os
import unittest

from run_help import WARDER, RunCase, both_users, by_chance, fixture, main

PYTHON = "/usr/bin/python3"  # not one of the tester's own

# stuck(f): f() in a child, which never comes back; others(): all else goes on; kill(): it ends.
PROGRAM = """
import os, signal, socket, sys, time
mnt = sys.argv[1]
def stuck(f):
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(r)
        try: f()
        except OSError as e: os.write(w, e.strerror.encode())
        else: os.write(w, b"came back")
        os._exit(0)
    os.close(w)
    time.sleep(0.4)
    os.set_blocking(r, False)
    try: print("after all:", os.read(r, 100), flush=True)
    except BlockingIOError: print("stuck", flush=True)
    return pid
def others(path="beside"):
    for i in range(20):
        open(path, "w").close(); os.chmod(path, 0o600); os.utime(path); os.mkdir("dir"); os.rmdir("dir")
        try: open(sys.argv[2] + "/no")
        except PermissionError: pass
    print("others go on", flush=True)
def end(pid, sig=signal.SIGKILL):
    os.kill(pid, sig)
    print("ended by", os.waitpid(pid, 0)[1], flush=True)
"""


@unittest.skipIf(os.getuid(), "root alone can mount one")
@unittest.skipUnless(os.path.exists("/dev/fuse"), "there is no /dev/fuse")
class Hung(RunCase):
    def setUp(self):
        super().setUp()
        self.mnt = os.path.join(self.project, "mnt")
        os.mkdir(self.mnt)
        self.own(self.mnt)

    def hung(self, text, *args):
        for name in (self.outside + "/no",):
            self.write(name, "", 0o666)
        done = self.native(fixture("hung_fuse"), self.mnt, WARDER, "run", "--report", self.report_file, *args,
                           "--", PYTHON, "-c", PROGRAM + text, self.mnt, self.outside)
        if done.status == 77:
            self.skipTest("no file system in user space can be mounted here")
        done.report = self.read_report()
        return done

    def test_while_it_answers(self):
        """It is like any other."""
        done = self.hung("os.chmod(mnt + '/file', 0o600)\n"
                         "os.utime(mnt + '/dir')\n"
                         "fd = os.open(mnt + '/dir', os.O_PATH)\n"
                         "os.chmod(f'/proc/self/fd/{fd}', 0o700)\n"
                         "try: os.chmod(mnt + '/missing', 0o600)\n"
                         "except OSError as e: print(e.strerror)\n"
                         "try: os.setxattr(mnt + '/file', 'user.x', b'y')\n"
                         "except OSError as e: print(e.strerror)\n")
        self.assertEqual("No such file or directory\nOperation not supported\n", done.out, done)
        self.assertStatus(done)

    def test_a_rule_counts_there_too(self):
        done = self.hung("try: os.chmod(mnt + '/file', 0o600)\n"
                         "except OSError as e: print(e.strerror)\n", "--rule", "deny meta mnt")
        self.assertEqual("Permission denied\n", done.out, done)
        self.assertEqual(["meta"], done.denials(self.mnt + "/file")[0]["access"])

    def test_a_late_answer_is_waited_for(self):
        done = self.hung("import threading\n"
                         "t = threading.Thread(target=os.chmod, args=(mnt + '/late', 0o600))\n"
                         "t.start()\nothers()\nprint(t.is_alive())\nt.join()\n"
                         "os.utime(mnt + '/late')\n")
        self.assertEqual(done.out[:13], "others go on\n", done)
        self.assertStatus(done)

    @by_chance
    def test_another_thing_at_each_look(self):
        """What is looked up, judged and done is one of them, never the one that the symlink leads to."""
        secret = self.write("outside/secret", "found\n", 0o640)
        before = os.stat(secret)
        text = ("done = set()\n"
                "def attempt(f):\n"
                "    try: done.add(f() or 'fine')\n"
                "    except OSError as e: done.add(e.strerror)\n"
                "for i in range(60):\n"
                "    for name in 'turn', 'same':\n"
                "        p = mnt + '/' + name\n"
                "        attempt(lambda: os.chmod(p, 0o777))\n"
                "        attempt(lambda: os.chown(p, 1, 1))\n"
                "        attempt(lambda: os.utime(p, (1, 1)))\n"
                "        attempt(lambda: os.truncate(p, 0))\n"
                "        attempt(lambda: os.read(os.open(p, os.O_RDONLY), 9).decode())\n"
                "        attempt(lambda: os.close(os.open(p, os.O_RDWR | os.O_CREAT, 0o600)))\n"
                "        attempt(lambda: os.rename(p, 'kept'))\n"
                "        attempt(lambda: os.link(p, 'kept'))\n"
                "print('found\\n' in done, 'fine' in done)\n")
        for options in ((), ("--rule", "deny w mnt/none"), ("--rule", "ask rw mnt", "--rule", "allow rw mnt/turn exact")):
            done = self.hung(text, *options, "--timeout", "60")
            self.assertEqual("False True\n", done.out, done)
            after = os.stat(secret)
            self.assertEqual((before.st_mode, before.st_uid, before.st_mtime, before.st_size, 1),
                             (after.st_mode, after.st_uid, after.st_mtime, after.st_size, after.st_nlink))

    def test_one_is_stuck(self):
        for what in ("os.chmod(mnt + '/hang', 0o600)", "os.utime(mnt + '/hang')",
                     "os.setxattr(mnt + '/hang', 'user.x', b'')", "os.chown(mnt + '/dir/../hang', 0, 0)",
                     "socket.socket(socket.AF_UNIX).connect(mnt + '/hang')"):
            with self.subTest(what):
                done = self.hung(f"pid = stuck(lambda: {what})\nothers()\nend(pid)\n", "--timeout", "20")
                self.assertEqual("stuck\nothers go on\nended by 9\n", done.out, done)
                self.assertStatus(done)

    def test_a_signal_ends_it_softly(self):
        done = self.hung("pid = stuck(lambda: os.chmod(mnt + '/hang', 0o600))\n"
                         "end(pid, signal.SIGTERM)\nothers()\n", "--timeout", "20")
        self.assertEqual("stuck\nended by 15\nothers go on\n", done.out, done)

    def test_by_descriptor(self):
        """Of one that was come to while it answered."""
        done = self.hung("fd = os.open(mnt + '/dir', os.O_PATH)\n"
                         "one = stuck(lambda: os.chmod(mnt + '/hang', 0o600))\n"
                         "two = stuck(lambda: os.utime('file', dir_fd=fd))\n"
                         "others()\nend(two)\nend(one)\n", "--timeout", "20")
        self.assertEqual("stuck\nstuck\nothers go on\nended by 9\nended by 9\n", done.out, done)

    def test_the_end_does_not_wait(self):
        """The command is over, and a thread of warder's own is still in there."""
        done = self.hung("pid = stuck(lambda: os.chmod(mnt + '/hang', 0o600))\nend(pid)\n")
        self.assertEqual("stuck\nended by 9\n", done.out, done)
        self.assertStatus(done)


@both_users
class Memory(RunCase):
    """A page that comes when the program likes would have its reader wait."""

    def test_pages_for_the_kernel_are_refused(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the call's number is another")
        text = ("import ctypes\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "for flags in 0, 1: print(libc.syscall(323, flags) >= 0, ctypes.get_errno())\n")
        native = self.native(PYTHON, "-c", text)
        done = self.run_report("--", PYTHON, "-c", text)
        self.assertEqual("False 1", done.out.splitlines()[0], done)
        self.assertEqual(native.out.splitlines()[1].split()[0], done.out.splitlines()[1].split()[0], done)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Attribute calls while what is called so changes: what is known of names and descriptors is of this moment."""

import os
import subprocess
import unittest

from run_help import WARDER, RunCase, both_users, by_chance, fixture, main, needs

# One call a line of stdin; each answers with a line.
SERVE = """
import errno, os, sys
fds = {}
def serve(line):
    what, name, *mode = line.split()
    try:
        if what == 'open':
            fds[name] = os.open(name, os.O_RDONLY)
        else:
            os.chmod(fds[name] if what == 'fd' else name, int(mode[0], 8))
        print('ok', flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
for line in sys.stdin:
    serve(line)
"""

# The thread that is not the first becomes it.
EXEC = """
import os, threading
for name in ('one', 'two'):
    os.close(os.open(name, os.O_CREAT, 0o600))
fd = os.open('one', os.O_RDONLY)
for i in range(3):
    os.fchmod(fd, 0o604)
def other():
    for i in range(3):
        os.fchmod(fd, 0o640)
    os.dup2(os.open('two', os.O_RDONLY), fd)
    os.execv('/usr/bin/python3', ['/usr/bin/python3', '-c',
             f'import os\\nfor i in range(3): os.fchmod({fd}, 0o644)\\n'
             'print([oct(os.stat(n).st_mode) for n in ("one", "two")])'])
threading.Thread(target=other).start()
threading.Event().wait()
"""


@both_users
class Exchanged(RunCase):
    """By somebody outside, all the time: a good thing and a name of what is protected."""

    def setUp(self):
        super().setUp()
        self.secret = self.write("project/no/secret")
        self.good = self.write("project/dir/good")
        self.other = os.path.join(self.project, "dir", "other")

    def check(self, rule, a, b, file):
        swap = self.start([fixture("names_race"), "swap", a, b])
        for how in ("path", "at", "fd"):
            with self.subTest(how):
                done = self.run_report("--rule", rule, "--", fixture("names_race"), how, file)
                self.assertStatus(done)
                self.assertEqual(0o644, os.stat(self.secret).st_mode & 0o777, done)
                _, worked, _, refused = done.out.split()
                self.assertGreater(int(worked), 5, done)
                self.assertGreater(int(refused), 5, done)
        self.assertIsNone(swap.poll())

    @by_chance
    def test_a_file_and_a_hard_link(self):
        os.link(self.secret, self.other)
        self.own(self.other)
        self.check("deny w no/secret", self.good, self.other, self.good)

    @by_chance
    def test_a_file_and_a_symlink(self):
        os.symlink("../no/secret", self.other)
        self.check("deny w no", self.good, self.other, self.good)

    @by_chance
    def test_a_directory_and_a_symlink(self):
        self.write("project/dir/a/secret")
        os.symlink("../no", os.path.join(self.project, "dir", "b"))
        self.check("deny w no", "dir/a", "dir/b", "dir/a/secret")


class ServeCase(RunCase):
    """Calls of the command, and what somebody outside does between them."""

    def serve(self, *args):
        self.there = self.start([WARDER, "run", "-q", "--on-denial", "report", *args, "--", "/usr/bin/python3", "-c", SERVE],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, *lines):
        got = []
        for line in lines:
            self.there.stdin.write(line + "\n")
            self.there.stdin.flush()
            got.append(self.there.stdout.readline().strip())
        return got

    def finish(self):
        self.there.stdin.close()
        self.assertEqual(0, self.there.wait(30))

    def mode(self, name):
        return oct(os.stat(os.path.join(self.dir, name)).st_mode & 0o777)


@both_users
class Moved(ServeCase):
    def test_a_directory_out_of_the_project(self):
        self.write("project/a/dir/f")
        self.serve()
        self.assertEqual(["ok"] * 4, self.say("open a/dir/f", "fd a/dir/f 600", "path a/dir/f 640", "fd a/dir/f 604"))
        os.rename(os.path.join(self.project, "a", "dir"), os.path.join(self.outside, "dir"))
        self.assertEqual(["EACCES", "ENOENT"], self.say("fd a/dir/f 600", "path a/dir/f 600"))
        self.assertEqual("0o604", self.mode("outside/dir/f"))
        os.rename(os.path.join(self.outside, "dir"), os.path.join(self.project, "a", "dir"))
        self.assertEqual(["ok", "ok"], self.say("fd a/dir/f 600", "path a/dir/f 640"))
        os.rename(os.path.join(self.project, "a"), os.path.join(self.outside, "a"))
        self.assertEqual(["EACCES", "ENOENT"], self.say("fd a/dir/f 604", "path a/dir/f 604"))
        self.assertEqual("0o640", self.mode("outside/a/dir/f"))
        self.finish()

    def test_another_directory_by_its_name(self):
        self.write("project/dir/f")
        self.write("outside/dir/f")
        self.serve()
        self.assertEqual(["ok", "ok", "ok"], self.say("open dir/f", "fd dir/f 600", "path dir/f 640"))
        os.rename(os.path.join(self.project, "dir"), os.path.join(self.outside, "was"))
        os.symlink(os.path.join(self.outside, "dir"), os.path.join(self.project, "dir"))
        self.assertEqual(["EACCES", "EACCES"], self.say("fd dir/f 604", "path dir/f 604"))
        self.assertEqual(["0o640", "0o644"], [self.mode("outside/was/f"), self.mode("outside/dir/f")])
        self.finish()

    def test_a_protected_directory_by_an_open_ones_name(self):
        self.write("project/dir/f")
        self.write("project/no/f")
        self.serve("--rule", "deny w no")
        self.assertEqual(["ok", "ok", "ok", "ok", "EACCES"],
                         self.say("open dir/f", "open no/f", "fd dir/f 600", "path dir/f 640", "fd no/f 600"))
        os.rename(os.path.join(self.project, "dir"), os.path.join(self.project, "was"))
        os.rename(os.path.join(self.project, "no"), os.path.join(self.project, "dir"))
        self.assertEqual(["EACCES", "EACCES", "ok"], self.say("fd no/f 600", "path dir/f 600", "fd dir/f 604"))
        self.assertEqual(["0o604", "0o644"], [self.mode("project/was/f"), self.mode("project/dir/f")])
        self.finish()

    def test_a_file_that_is_deleted_and_one_that_is_called_so(self):
        self.write("project/dir/f")
        self.write("project/dir/f (deleted)")
        self.serve("--rule", "deny w dir/f", "--rule", "allow r dir")
        self.assertEqual(["ok", "EACCES"], self.say("open dir/f", "fd dir/f 600"))
        os.remove(os.path.join(self.project, "dir", "f"))
        # Nobody else can come to it any more.
        self.assertEqual(["ok"], self.say("fd dir/f 600"))
        self.assertEqual("0o644", self.mode("project/dir/f (deleted)"))
        self.finish()


@unittest.skipUnless(os.getuid() == 0, "mounting needs root")
@both_users
@needs("unshare", "nsenter", "setpriv")
class MountedOver(ServeCase):
    """In the mount name space of warder and the command, by somebody outside."""

    def as_user(self):
        return {}

    def start(self, argv, **more):
        become = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups", "--"]
        return super().start(["unshare", "-m", "--propagation", "private", *(become if self.uid else []), *argv], **more)

    def inside(self, *argv):
        done = subprocess.run(["nsenter", "-t", str(self.there.pid), "-m", *argv], capture_output=True, text=True,
                              timeout=30)
        if done.returncode:
            self.skipTest("can't be mounted here: " + done.stderr.strip())

    def test_over_a_directory_that_is_known(self):
        self.write("project/a/dir/f")
        self.write("outside/dir/f")
        self.write("outside/f")
        for over in ("dir", "."):
            with self.subTest(over):
                place = os.path.normpath(os.path.join(self.project, "a", over))
                self.serve("--rule", f"deny w {self.outside}")
                self.assertEqual(["ok"] * 4, self.say("open a/dir/f", "fd a/dir/f 600", "path a/dir/f 640", "fd a/dir/f 604"))
                self.inside("mount", "--bind", self.outside, place)
                self.assertEqual(["EACCES", "EACCES", "EACCES"],
                                 self.say("fd a/dir/f 600", "path a/dir/f 600", "fd a/dir/f 600"))
                self.inside("umount", place)
                self.assertEqual(["ok", "ok"], self.say("fd a/dir/f 640", "path a/dir/f 604"))
                self.assertEqual(["0o604", "0o644", "0o644"],
                                 [self.mode(name) for name in ("project/a/dir/f", "outside/dir/f", "outside/f")])
                self.finish()


@both_users
class Descriptors(RunCase):
    def test_a_thread_takes_its_leaders_number(self):
        done = self.run_report("--", "/usr/bin/python3", "-c", EXEC)
        self.assertStatus(done)
        self.assertEqual("['0o100640', '0o100644']\n", done.out, done)

    def test_no_copy_is_left_when_the_call_is_over(self):
        done = self.run_report("--", fixture("names_race"), "lock", "file")
        self.assertEqual("held 0\n", done.out, done)
        done = self.run_report("--", fixture("names_race"), "run", "program")
        self.assertEqual("busy 0\n", done.out, done)


if __name__ == "__main__":
    main()

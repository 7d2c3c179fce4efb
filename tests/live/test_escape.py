#!/usr/bin/env python3
"""Every known way to carry a protected thing out of protection, one test each: none gets through."""

import ctypes
import os
import shutil
import subprocess
import unittest

from run_help import WARDER, RunCase, Talk, both_users, main, needs

PYTHON = "/usr/bin/python3"
RULES = ("--rule", "deny w keep", "--rule", "deny w sub/deep/keep", "--rule", "deny r secret", "--rule", "deny w absent")

# Each statement of the test is tried by itself; what could be read of SECRET is told.
TRIES = r'''
import ctypes, os, sys, traceback
libc = ctypes.CDLL(None, use_errno=True)
AT, EMPTY, FOLLOW, EXCHANGE, WHITEOUT = -100, 0x1000, 0x400, 2, 4
HERE = os.getcwd()
PATH = os.O_PATH

def must(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), "")

def write(path, **at):
    fd = os.open(path, os.O_WRONLY, **at)
    os.write(fd, b"EVIL")

def make(path, **at):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755, **at))

def read(path, **at):
    if b"SECRET" in os.read(os.open(path, os.O_RDONLY, **at), 100):
        print("read the secret:", path)

def exchange(a, b):
    must(libc.renameat2(AT, a.encode(), AT, b.encode(), EXCHANGE))

def whiteout(a, b):
    must(libc.renameat2(AT, a.encode(), AT, b.encode(), WHITEOUT))

def link_fd(fd, to):
    for args in ((fd, b"", AT, to.encode(), EMPTY), (AT, b"/proc/self/fd/%d" % fd, AT, to.encode(), FOLLOW)):
        libc.linkat(*args)

tried = 0
for line in sys.argv[1].strip().splitlines():
    try:
        exec(line.strip(), globals())
    except OSError:
        tried += 1
    except Exception:
        print("broken:", line, traceback.format_exc())
print("refused", tried)
'''


@both_users
class Escape(RunCase):
    def setUp(self):
        super().setUp()
        self.write("project/keep/f", "KEEP")
        self.write("project/sub/deep/keep/f", "KEEP")
        self.write("project/secret", "SECRET")
        self.write("project/mine/f", "mine")
        self.repository(self.project)

    def repository(self, top, config="[core]\n"):
        self.write(f"{top}/.git/HEAD", "ref: refs/heads/x\n")
        self.write(f"{top}/.git/config", config)
        self.write(f"{top}/.git/hooks/sample", "KEEP")
        for name in ("objects", "refs"):
            self.mkdir(f"{top}/.git/{name}")

    def mkdir(self, name):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        return self.own(path)

    def state(self):
        """Of everything protected: what is where, and what it says."""
        found = {}
        for top in ("keep", "sub/deep/keep", "secret", "absent", ".git/hooks", ".git/config", *self.more):
            path = f"{self.project}/{top}"
            if not os.path.lexists(path):
                found[top] = None
                continue
            for here in (path, *(f"{path}/{n}" for n in (os.listdir(path) if os.path.isdir(path) else ()))):
                st = os.lstat(here)
                found[here] = (st.st_ino, st.st_mode, None if os.path.isdir(here) else self.read(here))
        return found

    more = ()

    def nothing_gets_through(self, tries, rules=RULES, before=None, **more):
        """None of the statements changes or reads what is protected. The stdin given is descriptor 9."""
        state = self.state()
        argv = (WARDER, "run", "--on-denial", "report", "--report", self.report_file, *rules, "--", "sh", "-c",
                'exec "$@" 9<&0 </dev/null', "sh", PYTHON, "-c", TRIES, tries)
        if before:
            become = f"setpriv --reuid {self.uid} --regid {self.uid} --clear-groups" if self.uid else ""
            argv = ("unshare", "-m", "--propagation", "private", "sh", "-c",
                    f"set -e; cd {self.project}; {before}\n{become} \"$@\"", "sh", *argv)
            p = subprocess.run(argv, env=self.env, cwd=self.project, stdin=more.get("stdin", subprocess.DEVNULL),
                               capture_output=True, text=True, timeout=30, start_new_session=True)
            status, out, err = p.returncode, p.stdout, p.stderr
        else:
            done = self.native(*argv, **more)
            status, out, err = done.status, done.out, done.err
        self.assertEqual(0, status, out + err)
        self.assertEqual(state, self.state(), out + err)
        words = out.split()
        self.assertEqual("refused", words[0], out + err)
        self.assertGreater(int(words[1]), 0)

    def needs_root(self):
        if os.getuid():
            self.skipTest("only root mounts")

    def test_renaming_it(self):
        self.nothing_gets_through("""
            os.rename("keep", "k"); write("k/f")
            os.rename("secret", "s"); read("s")
            os.rename("secret", "mine/s"); read("mine/s")
            os.rename(".git/hooks", "h")
            os.rename(".git/config", "c")
            os.rename("keep/f", "f2")
            whiteout("secret", "s3"); read("s3")""")

    def test_renaming_a_directory_above_it(self):
        self.nothing_gets_through("""
            os.rename("sub", "s"); write("s/deep/keep/f")
            os.rename("sub/deep", "d"); write("d/keep/f")
            os.rename("sub/deep", "mine/d"); write("mine/d/keep/f")
            os.rename(".git", "g"); make("g/hooks/x")
            os.rename(HERE, HERE + "2")
            whiteout("sub", "s3"); write("s3/deep/keep/f")""")

    def test_exchanging_it(self):
        self.nothing_gets_through("""
            exchange("keep", "mine"); write("mine/f")
            exchange("mine", "sub"); write("mine/deep/keep/f")
            exchange("mine/f", "secret"); read("mine/f")
            exchange("mine", ".git")
            exchange("mine", ".git/hooks")
            exchange("mine/f", ".git/config")""")

    def test_linking_it(self):
        self.nothing_gets_through("""
            os.link("secret", "l1"); read("l1")
            os.link("secret", "mine/l1"); read("mine/l1")
            os.link("keep/f", "l2"); write("l2")
            os.link(".git/config", "l3"); write("l3")
            link_fd(os.open("secret", PATH), "l4"); read("l4")
            link_fd(os.open("keep/f", os.O_RDONLY), "l5"); write("l5")""")

    def test_a_symlink_to_it(self):
        self.nothing_gets_through("""
            os.symlink("secret", "s1"); read("s1")
            os.symlink("keep", "s2"); write("s2/f")
            os.symlink("keep", "s3"); make("s3/new")
            os.symlink("keep", "s4"); os.unlink("s4/f")
            os.symlink("keep/f", "s5"); os.truncate("s5", 0)
            os.symlink("keep/f", "s6"); os.chmod("s6", 0o777)
            os.symlink(".git", "s7"); make("s7/hooks/x")""")

    def test_swapping_a_symlink_that_a_rule_names(self):
        os.symlink("keep2", f"{self.project}/cur")
        self.write("project/keep2/f", "KEEP")
        self.more = ("keep2",)
        self.nothing_gets_through("""
            os.unlink("cur"); os.symlink("mine", "cur")
            write("keep2/f")
            make("keep2/new")
            os.rename("keep2", "k")""", (*RULES, "--rule", "deny w cur"))

    def test_renaming_what_may_only_not_be_read(self):
        shutil.rmtree(f"{self.project}/.git")
        self.nothing_gets_through("""
            os.rename("secret", "s"); read("s")
            os.rename("secret", "mine/s"); read("mine/s")
            os.link("secret", "l"); read("l")
            exchange("secret", "mine/f"); read("mine/f")""", ("--rule", "deny r secret"))

    def test_renaming_what_may_only_keep_its_mode(self):
        """Of modes the kernel's wall knows nothing."""
        shutil.rmtree(f"{self.project}/.git")
        self.more = ("mine",)
        self.nothing_gets_through("""
            os.rename("mine", "m"); os.chmod("m/f", 0o777)
            os.rename("mine/f", "f"); os.chmod("f", 0o777)
            os.link("mine/f", "l"); os.chmod("l", 0o777)
            exchange("mine", "sub"); os.chmod("sub/f", 0o777)
            os.chmod("mine/f", 0o777)
            os.setxattr("mine/f", "user.x", b"x")""", ("--rule", "deny meta mine"))

    def test_what_a_pattern_protects(self):
        self.write("project/vault/a.key", "SECRET")
        self.write("project/vault/plain", "plain")
        self.more = ("vault",)
        self.nothing_gets_through("""
            read("vault/a.key")
            os.rename("vault", "v"); read("v/a.key")
            os.rename("vault", "mine/v"); read("mine/v/a.key")
            os.rename("vault/a.key", "vault/b"); read("vault/b")
            os.rename("vault/a.key", "b"); read("b")
            os.link("vault/a.key", "l"); read("l")
            exchange("vault", "mine"); read("mine/a.key")
            exchange("vault/a.key", "vault/plain"); read("vault/plain")
            os.symlink("vault/a.key", "s"); read("s")""", (*RULES, "--rule", "deny r vault/*.key"))

    def test_standing_in_for_what_it_would_lie_in(self):
        """The directory of an absent protected thing: nothing else may take its name, and it may not leave."""
        self.mkdir("project/hold")
        self.more = ("hold", "later", "hold/absent")
        self.nothing_gets_through("""
            os.rename("hold", "h"); make("h/absent"); os.rename("h", "hold")
            os.rename("hold", "mine/h")
            os.symlink("mine", "later")
            os.symlink("mine", "s1"); os.rename("s1", "later")
            os.symlink("mine", "s2"); os.link("s2", "later", follow_symlinks=False)
            make("plain"); os.rename("plain", "later")
            make("later")
            os.mkdir("d"); make("d/absent"); os.rename("d", "later")
            exchange("mine", "hold")
            os.symlink("mine", "s3"); exchange("s3", "hold")""",
            (*RULES, "--rule", "deny w hold/absent", "--rule", "deny w later/absent"))

    @needs("unshare", "setpriv")
    def test_swapping_a_bind(self):
        """Somebody outside mounts it elsewhere while the command runs."""
        self.needs_root()
        self.mkdir("project/place")
        self.mkdir("project/above")
        swap = (f"mount --bind mine place; mount --bind mine above; (while ! [ -e {self.tmp}/go ]; do sleep 0.02; done; umount -l place;"
                f" umount -l above; mount --bind keep place; mount --bind sub above; touch {self.tmp}/went) &"
                f" trap 'umount place above; wait' EXIT")
        self.nothing_gets_through(f"""
            write("place/f"); make("place/mine")
            make("{self.tmp}/go")
            import time
            [time.sleep(0.02) for i in range(500) if not os.path.exists("{self.tmp}/went")]
            write("place/f")
            make("place/new")
            os.unlink("place/f")
            os.rename("place/f", "out")
            os.link("place/f", "out2"); write("out2")
            os.rename("above/deep", "above/d"); write("above/d/keep/f")
            os.rename("above/deep/keep", "above/k")
            make("above/t"); os.rename("above/t", "above/deep/keep/new")
            os.mkdir("above/x"); exchange("above/x", "above/deep")""",
            (*RULES, "--rule", f"allow rwx {self.tmp}/go"), before=swap)
        self.assertTrue(os.path.exists(f"{self.tmp}/went"))

    def test_replacing_it_by_a_temporary_file(self):
        self.nothing_gets_through("""
            make("t1"); os.rename("t1", "secret")
            make("t2"); os.rename("t2", "keep/f")
            make("t3"); os.rename("t3", ".git/config")
            os.mkdir("t4"); os.rename("t4", ".git/hooks")
            make("t5"); os.rename("t5", ".git/hooks/post-commit")
            make("t6"); os.link("t6", ".git/hooks/post-commit")
            fd = os.open(".", os.O_TMPFILE | os.O_RDWR); link_fd(fd, ".git/hooks/post-commit")
            os.mkdir("t7"); make("t7/f"); os.rename("t7", "keep")""", (*RULES, "--rule", "deny delete,create secret"))

    def test_making_what_is_not_there_yet(self):
        self.nothing_gets_through("""
            make("absent")
            os.mkdir("absent")
            os.symlink("mine", "absent")
            make("t1"); os.rename("t1", "absent")
            make("t2"); os.link("t2", "absent")
            os.mkfifo("absent")
            os.mkdir("t3"); os.rename("t3", "absent")
            exchange("mine", "absent")""")

    def test_through_proc_self_root(self):
        self.nothing_gets_through("""
            read("/proc/self/root" + HERE + "/secret")
            write("/proc/thread-self/root" + HERE + "/keep/f")
            make("/proc/self/cwd/keep/new")
            os.unlink("/proc/self/cwd/keep/f")
            os.rename("/proc/self/root" + HERE + "/keep", "k")
            os.rename("mine", "/proc/self/cwd/.git/hooks")""")

    def test_through_proc_self_fd(self):
        self.nothing_gets_through("""
            read("/proc/self/fd/%d" % os.open("secret", PATH))
            write("/proc/self/fd/%d" % os.open("keep/f", PATH))
            write("/dev/fd/%d" % os.open("keep/f", os.O_RDONLY))
            os.truncate("/proc/self/fd/%d" % os.open("keep/f", PATH), 0)
            os.chmod("/proc/self/fd/%d" % os.open("keep/f", PATH), 0o777)
            make("/proc/self/fd/%d/new" % os.open("keep", PATH))
            write("/proc/thread-self/fd/%d/f" % os.open("keep", PATH))
            make("new", dir_fd=os.open("keep", PATH))
            os.unlink("f", dir_fd=os.open("keep", os.O_RDONLY))
            os.rename("f", "out", src_dir_fd=os.open("keep", PATH))""")

    def test_through_a_descriptor_opened_before(self):
        """The command is given the directory itself: reading it is lent, nothing below it."""
        for flags in (os.O_RDONLY, os.O_PATH):
            fd = os.open(f"{self.project}/keep", flags | os.O_DIRECTORY)
            self.addCleanup(os.close, fd)
            self.nothing_gets_through("""
                write("f", dir_fd=9)
                make("new", dir_fd=9)
                os.unlink("f", dir_fd=9)
                os.rename("f", "out", src_dir_fd=9)
                make("t"); os.rename("t", "f", dst_dir_fd=9)
                os.mkdir("d", dir_fd=9)
                os.fchdir(9); write("f")
                make("new")
                os.chmod("f", 0o777)
                os.truncate("f", 0)""", stdin=fd)

    def test_in_a_nested_repository(self):
        self.repository(f"{self.project}/mine/nested")
        self.more = ("mine/nested/.git/hooks", "mine/nested/.git/config")
        self.nothing_gets_through("""
            make("mine/nested/.git/hooks/x")
            write("mine/nested/.git/config")
            os.rename("mine/nested/.git/hooks", "h")
            os.rename("mine/nested/.git", "g")
            os.rename("mine/nested", "n")
            os.rename("mine", "m")
            make("t"); os.rename("t", "mine/nested/.git/config")
            exchange("sub", "mine")""")

    def test_through_hooks_path_as_it_stands(self):
        self.write("project/.git/config", "[core]\n\thooksPath = tools/hooks\n")
        self.write("project/tools/hooks/pre-commit", "KEEP")
        self.more = ("tools/hooks",)
        self.nothing_gets_through("""
            write("tools/hooks/pre-commit")
            make("tools/hooks/post-commit")
            os.rename("tools/hooks", "h")
            os.rename("tools", "t")
            make("t1"); os.rename("t1", "tools/hooks/pre-commit")
            os.unlink("tools/hooks/pre-commit")""")

    @needs("unshare", "setpriv")
    def test_by_a_bind(self):
        self.needs_root()
        self.mkdir("project/place")
        self.write("project/placed")
        self.nothing_gets_through("""
            write("place/f")
            make("place/new")
            os.unlink("place/f")
            os.rename("place/f", "out")
            make("t"); os.rename("t", "place/f")
            os.mkdir("place/d")
            os.chmod("place/f", 0o777)
            read("placed")
            os.link("placed", "l"); read("l")""",
            before="mount --bind keep place; mount --bind secret placed; trap 'umount place placed' EXIT")

    @needs("setpriv", "unshare")
    def test_by_a_bind_of_a_directory_above_it(self):
        self.needs_root()
        self.mkdir("project/place")
        self.nothing_gets_through("""
            write("place/deep/keep/f")
            make("place/deep/keep/new")
            os.rename("place/deep", "d")
            os.rename("place/deep/keep", "place/k"); write("place/k/f")""",
            before="mount --bind sub place; trap 'umount place' EXIT")

    def test_by_a_detached_tree(self):
        """One that somebody else made, given as a descriptor."""
        self.needs_root()
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(428, -100, f"{self.project}/keep".encode(), 1 | os.O_CLOEXEC)  # open_tree, OPEN_TREE_CLONE
        if fd < 0:
            self.skipTest("no open_tree here")
        self.addCleanup(os.close, fd)
        self.nothing_gets_through("""
            write("f", dir_fd=9)
            make("new", dir_fd=9)
            os.unlink("f", dir_fd=9)
            os.rename("f", "out", src_dir_fd=9)
            write("/proc/self/fd/9/f")
            os.fchdir(9); write("f")
            make("new")""", stdin=fd)

    def test_by_an_older_hard_link(self):
        os.link(f"{self.project}/secret", f"{self.project}/mine/old1")
        os.link(f"{self.project}/keep/f", f"{self.project}/old2")
        os.link(f"{self.project}/.git/config", f"{self.project}/mine/old3")
        self.nothing_gets_through("""
            read("mine/old1")
            write("old2")
            os.truncate("old2", 0)
            write("mine/old3")
            os.rename("mine/old1", "s"); read("s")
            os.link("mine/old1", "s2"); read("s2")
            os.rename("old2", "f2"); write("f2")""")

    @unittest.skipIf(os.getuid(), "only root can make one anew")
    def test_by_a_descriptor_that_is_passed_on(self):
        """O_PATH descriptors over a socket lead nowhere that their names do not."""
        self.nothing_gets_through("""
            import socket
            a, b = socket.socketpair()
            socket.send_fds(a, [b"x"], [os.open("secret", PATH), os.open("keep", PATH)])
            fds = socket.recv_fds(b, 1, 2)[1]
            read("/proc/self/fd/%d" % fds[0])
            make("new", dir_fd=fds[1])
            write("f", dir_fd=fds[1])""")


@both_users
@needs(PYTHON)
class MovedByOthers(RunCase):
    """What somebody outside moves while the command runs stays what it was, whatever is answered meanwhile."""

    def test_before_an_answer(self):
        for lifetime in ("once", "session"):
            with self.subTest(lifetime):
                self.write("project/secret", "SECRET")
                self.write("project/private/in", "SECRET")
                for name in ("one", "two"):
                    self.write(f"outside/{name}", "fine")
                text = ("import os, sys\n"
                        "def attempt(f, *a, **k):\n"
                        " try: f(*a, **k); print('done')\n"
                        " except OSError as e: print(e.strerror)\n"
                        "print(open(sys.argv[1] + '/one').read())\n"
                        "for name in 'public', 'free/in', 'secret':\n"
                        " attempt(lambda: print(open(name).read()))\n"
                        "attempt(os.rename, 'free', 'still')\n"
                        "attempt(os.link, 'public', 'linked')\n"
                        "print(open(sys.argv[1] + '/two').read())\n"
                        "attempt(lambda: print(open('public').read()))\n")
                talk = Talk(self, ["--rule", "deny r secret", "--rule", "deny rwx private", "--", PYTHON, "-c", text,
                                   self.outside])
                q = talk.ask()
                os.rename(f"{self.project}/secret", f"{self.project}/public")
                os.rename(f"{self.project}/private", f"{self.project}/free")
                self.write("project/secret", "the next one")
                talk.answer(q, answer="allow", lifetime=lifetime, scope=0)
                talk.answer(talk.ask(), answer="allow", lifetime=lifetime, scope=0)
                done = talk.finish()
                no = "Permission denied\n"
                self.assertEqual("fine\n" + no * 3, done.out[:len("fine\n" + no * 3)], done)
                self.assertNotIn("SECRET", done.out)
                self.assertNotIn("done", done.out)
                self.assertTrue(done.out.endswith("fine\n" + no), done)
                for name in ("public", "secret", "free"):
                    path = f"{self.project}/{name}"
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


if __name__ == "__main__":
    main()

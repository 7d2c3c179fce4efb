#!/usr/bin/env python3
"""Other names for what is closed: links, descriptors, roots, namespaces, moves, 32-bit calls."""

import os
import unittest

from run_help import SLOW, RunCase, both_users, by_chance, main

PYTHON = "/usr/bin/python3"

# Each attack returns something true where it got through.
ATTACKS = r'''
import ctypes, errno, os, socket, struct, subprocess, sys, threading
OUT = sys.argv[1]
SECRET, DIRECTORY = OUT + "/secret", OUT + "/dir"
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
EXCHANGE, NOREPLACE, WHITEOUT = 2, 1, 4
HOOKS, CONFIG = ".git/hooks", ".git/config"

def call(name, *args):
    r = getattr(libc, name)(*args)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r

def read(path, **kw):
    fd = os.open(path, os.O_RDONLY, **kw)
    return os.read(fd, 100).decode()

def rename2(a, b, flags):
    return call("renameat2", AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), flags) == 0

def linkat(fd, a, b, flags):
    return call("linkat", fd, a.encode(), AT_FDCWD, b.encode(), flags) == 0

def o_path(path):
    return os.open(path, os.O_PATH)

def by_proc_fd():
    return read(f"/proc/self/fd/{o_path(SECRET)}")

def by_thread_self():
    return read(f"/proc/thread-self/fd/{o_path(SECRET)}")

def by_dev_fd():
    return read(f"/dev/fd/{o_path(SECRET)}")

def by_proc_root():
    return read("/proc/self/root" + SECRET)

def by_proc_cwd():
    os.chdir(OUT)
    try:
        return read("/proc/self/cwd/secret")
    finally:
        os.chdir(HERE)

def by_directory_descriptor():
    return read("secret", dir_fd=o_path(OUT))

def by_symlink():
    os.symlink(SECRET, "s1")
    return read("s1")

def by_symlinks():
    os.symlink(OUT, "s2")
    return read("s2/../outside/secret") if os.path.exists("s2") else None

def by_absolute_in_root():
    how = struct.pack("QQQ", os.O_RDONLY, 0, 0x10)
    fd = libc.syscall(437, o_path("/"), SECRET.encode(), how, 24)
    return fd >= 0 and os.read(fd, 9)

def by_hard_link():
    os.link(SECRET, "hard")
    return read("hard")

def by_link_of_descriptor():
    linkat(o_path(SECRET), "", "hard2", AT_EMPTY_PATH)
    return read("hard2")

def by_link_of_proc_fd():
    linkat(AT_FDCWD, f"/proc/self/fd/{o_path(SECRET)}", "hard3", AT_SYMLINK_FOLLOW)
    return read("hard3")

def by_rename():
    os.rename(SECRET, "moved")
    return read("moved")

def by_exchange():
    open("bait", "w").close()
    return rename2(SECRET, "bait", EXCHANGE) and read("bait")

def by_renaming_the_directory():
    os.rename(DIRECTORY, "moveddir")
    return read("moveddir/secret")

def by_handle():
    handle = ctypes.create_string_buffer(struct.pack("II", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", AT_FDCWD, SECRET.encode(), handle, ctypes.byref(mount), 0)
    fd = call("open_by_handle_at", os.open(".", os.O_RDONLY), handle, os.O_RDONLY)
    return os.read(fd, 9)

def by_chroot():
    pid = os.fork()
    if pid == 0:
        try:
            if os.getuid():
                os.unshare(0x10000000) if hasattr(os, "unshare") else call("unshare", 0x10000000)
            os.chroot(OUT)
            os._exit(0 if read("/secret") else 1)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0

def by_namespaces():
    pid = os.fork()
    if pid == 0:
        try:
            call("unshare", 0x10000000 | 0x00020000)
            os.mkdir("mnt")
            if libc.mount(OUT.encode(), b"mnt", None, 4096, None) == 0:
                os._exit(0)
            tree = libc.syscall(428, AT_FDCWD, OUT.encode(), 1)
            os._exit(0 if tree >= 0 and read("secret", dir_fd=tree) else 1)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0

def by_another_users_ids():
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os._exit(0 if read(SECRET) else 1)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0

def by_passed_descriptor():
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [o_path(SECRET)])
    fd = socket.recv_fds(b, 1, 1)[1][0]
    return read(f"/proc/self/fd/{fd}")

def by_other_process():
    pid = os.getppid()
    return read(f"/proc/{pid}/root{SECRET}")

def by_supervisors_root():
    return read(f"/proc/{os.getppid()}/cwd/notes")

def by_exec():
    return subprocess.run([OUT + "/tool"], stdout=subprocess.PIPE).stdout

def by_exec_of_descriptor():
    pid = os.fork()
    if pid == 0:
        fd = o_path(OUT + "/tool")
        os.set_inheritable(fd, True)
        argv = (ctypes.c_char_p * 2)(b"tool", None)
        libc.execveat(fd, b"", argv, None, AT_EMPTY_PATH)
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0

def by_tmpfile_into_hooks():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    linkat(AT_FDCWD, f"/proc/self/fd/{fd}", HOOKS + "/post-commit", AT_SYMLINK_FOLLOW)
    return os.path.exists(HOOKS + "/post-commit")

def by_truncate():
    os.truncate(SECRET, 0)
    return True

def by_socket():
    socket.socket(socket.AF_UNIX).bind(OUT + "/socket")
    return True

def by_socket_in_hooks():
    socket.socket(socket.AF_UNIX).bind(HOOKS + "/socket")
    return True

def by_moving_hooks():
    os.rename(HOOKS, "h")
    return True

def by_moving_git():
    os.rename(".git", "g")
    return True

def by_exchanging_git():
    os.makedirs("fake/hooks", exist_ok=True)
    return rename2("fake", ".git", EXCHANGE)

def by_exchanging_hooks():
    os.makedirs("fake2", exist_ok=True)
    return rename2("fake2", HOOKS, EXCHANGE)

def by_whiteout():
    return rename2(HOOKS, "w", WHITEOUT)

def by_moving_the_project():
    os.rename(HERE, HERE + "2")
    return True

def by_replacing_config():
    open("newconfig", "w").write("[core]\n hooksPath = evil\n")
    os.rename("newconfig", CONFIG)
    return True

def by_link_to_config():
    os.link(CONFIG, "cfg")
    open("cfg", "a").write("[core]\n")
    return True

def by_lock_of_config():
    open(CONFIG, "a").write("x")
    return True

def by_case():
    made = False
    for name in (".GIT/hooks", ".git/HOOKS"):
        try:
            os.mkdir(name)
            made = os.path.samefile(name, HOOKS)
        except OSError:
            pass
    return made

def by_deleted_directory():
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    try:
        return read("../../outside/secret")
    finally:
        os.chdir(HERE)

def by_memfd_link():
    fd = os.memfd_create("x")
    return linkat(AT_FDCWD, f"/proc/self/fd/{fd}", HOOKS + "/m", AT_SYMLINK_FOLLOW)

def by_forged_mark():
    got = False
    for mark in (0, 1, 0xffffffff, 0x80000000, 0x12345678):
        fd = libc.syscall(257, AT_FDCWD, SECRET.encode(), ctypes.c_ulong(mark << 32), 0)
        got = got or fd >= 0
    return got

def by_long_path():
    path = OUT + "/" + "./" * 2000 + "secret"
    return read(path[:4095]) if len(path) < 4096 else None

def by_racing_text():
    a, b = SECRET.encode() + b"\0", (HERE + "/plain").encode() + b"\0"
    n = max(len(a), len(b))
    text = ctypes.create_string_buffer(n + 8)
    stop = []
    def swap():
        while not stop:
            ctypes.memmove(text, a, len(a))
            ctypes.memmove(text, b, len(b))
    t = threading.Thread(target=swap)
    t.start()
    got = False
    for _ in range(4000 // SLOW):
        fd = libc.open(text, os.O_RDONLY)
        if fd >= 0:
            got = got or b"SECRET" in os.read(fd, 100)
            os.close(fd)
    stop.append(1)
    t.join()
    return got

def by_racing_symlink():
    stop, got = [], False
    os.symlink("plain", "r0")
    def swap():
        while not stop:
            for to in (SECRET, HERE + "/plain"):
                os.symlink(to, "r1")
                os.rename("r1", "r0")
    t = threading.Thread(target=swap)
    t.start()
    for _ in range(1500 // SLOW):
        try:
            got = got or "SECRET" in read("r0")
        except OSError:
            pass
    stop.append(1)
    t.join()
    return got

HERE = os.getcwd()
open("plain", "w").write("plain")
for name, attack in list(globals().items()):
    if not name.startswith("by_") or (sys.argv[2:] and name not in sys.argv[2:]):
        continue
    try:
        if attack():
            print(name, flush=True)
    except OSError:
        pass
    except Exception as e:
        print("broken:", name, repr(e), flush=True)
'''

INT80 = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static long int80(long nr, long a, long b, long c)
{
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "0"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8",
			 "r9", "r10", "r11");
	return r;
}
int main(int argc, char **argv)
{
	char *low = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	strcpy(low, argv[1]);
	printf("%d\n", int80(5, (long)low, 0, 0) >= 0);
	return argc != 2;
}
"""


@both_users
class Paths(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "SECRET\n", 0o666)
        self.write("outside/dir/secret", "SECRET\n")
        self.write("outside/tool", "#!/bin/sh\necho SECRET\n", 0o755)
        self.assertStatus(self.native("git", "init", "-q", "."))

    @by_chance
    def test_no_attack_gets_through(self):
        done = self.run_report("--", PYTHON, "-c", f"SLOW = {SLOW}\n{ATTACKS}", self.outside, timeout=60)
        self.assertStatus(done)
        self.assertEqual("", done.out, done)
        self.assertEqual("SECRET\n", self.read("outside/secret"))
        self.assertNotIn("hooksPath", self.read("project/.git/config"))
        self.assertEqual([], [n for n in os.listdir(os.path.join(self.project, ".git/hooks"))
                              if not n.endswith(".sample")])

    def test_a_rule_for_what_is_swapped_meanwhile(self):
        """From the reading of the rule on: what is opened is the place that was judged, or nothing is."""
        self.write("project/d/own", "OWN\n")
        os.symlink("../outside", f"{self.project}/l")
        self.own(self.project)
        swapper = self.start([PYTHON, "-c", "import ctypes\nlibc = ctypes.CDLL(None)\n"
                              "while True: libc.renameat2(-100, b'd', -100, b'l', 2)\n"])
        text = f"for name in {self.secret} d/secret l/secret d/own l/own; do cat $name; done 2>/dev/null; :"
        seen = set()
        for i in range(40 // SLOW):
            done = self.run_plain(("-r", "-w")[i % 2], "d", "--rule", "allow r d/secret exact",
                                  "--", "sh", "-c", text)
            self.assertStatus(done)
            self.assertNotIn("SECRET", done.out, done)
            seen.update(done.out.split())
        swapper.kill()
        self.assertEqual({"OWN"}, seen)

    def test_32_bit_calls_are_walled_and_brokered(self):
        source = self.write("project/int80.c", INT80)
        self.assertStatus(self.native("cc", "-w", "-o", "int80", source))
        if os.uname().machine != "x86_64":
            raise unittest.SkipTest("x86 only")
        done = self.run_report("--", "./int80", self.secret)
        if done.status < 0:
            raise unittest.SkipTest("no 32-bit calls on this kernel")
        self.assertEqual("0\n", done.out, done)
        done = self.hold("--", "./int80", self.secret)
        self.assertEqual("1\n", done.out, done)


if __name__ == "__main__":
    main()

"""
calls.py DIR: every call with a path that Landlock can refuse, in all its forms, on things of its own
in DIR (made by `calls.py --prepare DIR`). One line a call: its name and what came of it.
"""

import ctypes
import errno
import os
import socket
import stat
import struct
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, O_PATH, RENAME_EXCHANGE, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0o10000000, 2, 0x1000, 0x400
OPEN, RENAMEAT2, EXECVEAT, OPENAT2, TRUNCATE, CREAT = 2, 316, 322, 437, 76, 85
RENAME, MKDIR, RMDIR, LINK, UNLINK, SYMLINK, MKNOD = 82, 83, 84, 86, 87, 88, 133
# One thing for each call that changes something, so that none depends on what became of another.
FILES = ["read", "write", "both", "append", "trunc", "rdtrunc", "creat", "create", "excl", "dsync",
         "o-read", "o2-read", "trunc-call", "un-1", "un-2", "un-3", "ren-1", "ren-2", "ren-3", "ren-4", "over", "over-it",
         "x-1", "x-2", "x-3", "link-1", "link-2", "link-3", "out-1", "out-2", "lines\nof", "caf\u00e9", " blank", "q\"uote",
         "thread-0", "thread-1", "thread-2", "thread-3"]
DIRS = ["list", "rm-1", "rm-2", "rm-3", "ren-d", "x-d", "out-d", "deep/er", "cwd"]


def prepare(top):
    for name in FILES:
        with open(os.path.join(top, name), "w", encoding="utf-8") as f:
            f.write("text\n")
    for name in DIRS:
        os.makedirs(os.path.join(top, name))
    os.symlink("read", os.path.join(top, "sym"))
    os.symlink("nowhere", os.path.join(top, "dangling"))
    os.symlink("deep/er", os.path.join(top, "sym-d"))
    with open(os.path.join(top, "deep/er/f"), "w", encoding="utf-8"):
        pass
    for name, mode in (("run", 0o755), ("plain", 0o644)):
        with open(os.path.join(top, name), "w", encoding="utf-8") as f:
            f.write("#!/bin/true\n")
        os.chmod(os.path.join(top, name), mode)


def system(number, *args):
    """A bare system call."""
    kept = [a.encode() if isinstance(a, str) else a for a in args]
    if libc.syscall(number, *kept) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def openat2(dirfd, path, flags, resolve=0):
    how = struct.pack("QQQ", flags, 0o644 if flags & os.O_CREAT else 0, resolve)
    fd = libc.syscall(OPENAT2, dirfd, path.encode(), how, len(how))
    if fd < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    os.close(fd)


def opened(path, flags, **more):
    os.close(os.open(path, flags, 0o644, **more))


def bound(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.bind(path)


def run(call):
    """In a child: an exec that works does not come back."""
    pid = os.fork()
    if pid == 0:
        try:
            call()
        except OSError as e:
            os._exit(e.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")


def table(d, fd):
    """(label, call) in the order in which they are made."""
    j = lambda name: os.path.join(d, name)  # noqa: E731
    r, w, rw, c = os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT
    yield "open read", lambda: opened(j("read"), r)
    yield "open write", lambda: opened(j("write"), w)
    yield "open both", lambda: opened(j("both"), rw)
    yield "open append", lambda: opened(j("append"), w | os.O_APPEND)
    yield "open trunc", lambda: opened(j("trunc"), w | os.O_TRUNC)
    yield "open read trunc", lambda: opened(j("rdtrunc"), r | os.O_TRUNC)
    yield "open create there", lambda: opened(j("create"), w | c)
    yield "open create new", lambda: opened(j("new-1"), w | c)
    yield "open create new read", lambda: opened(j("new-2"), r | c)
    yield "open excl there", lambda: opened(j("excl"), w | c | os.O_EXCL)
    yield "open excl new", lambda: opened(j("new-3"), rw | c | os.O_EXCL)
    yield "open path", lambda: opened(j("read"), O_PATH)
    yield "open 3", lambda: opened(j("read"), 3)
    yield "open missing", lambda: opened(j("missing"), r)
    yield "open dir", lambda: opened(j("list"), r)
    yield "open dir dir", lambda: opened(j("list/"), r | os.O_DIRECTORY)
    yield "open dir write", lambda: opened(j("list"), w)
    yield "open file as dir", lambda: opened(j("read"), r | os.O_DIRECTORY)
    yield "open tmpfile", lambda: opened(d, rw | os.O_TMPFILE)
    yield "open symlink", lambda: opened(j("sym"), r)
    yield "open symlink nofollow", lambda: opened(j("sym"), r | os.O_NOFOLLOW)
    yield "open dangling create", lambda: opened(j("dangling"), w | c)
    yield "open through symlink", lambda: opened(j("sym-d/f"), r)
    yield "open dots", lambda: opened(j("deep/er/../../read"), r)
    yield "open at", lambda: opened("read", r, dir_fd=fd)
    yield "open at below", lambda: opened("deep/er/f", r, dir_fd=fd)
    yield "open at dot", lambda: opened(".", r, dir_fd=fd)
    for name in ("lines\nof", "caf\u00e9", " blank", 'q"uote'):
        yield f"open {name!r}", lambda name=name: opened(j(name), rw)
    yield "plain open", lambda: system(OPEN, j("o-read"), r, 0)
    yield "creat", lambda: system(CREAT, j("creat"), 0o644)
    yield "creat new", lambda: system(CREAT, j("new-4"), 0o644)
    yield "openat2", lambda: openat2(AT_FDCWD, j("o2-read"), r)
    yield "openat2 beneath", lambda: openat2(fd, "deep/er/f", r, 8)
    yield "openat2 beneath out", lambda: openat2(fd, "../x", r, 8)
    yield "openat2 in root", lambda: openat2(fd, "/read", rw, 16)
    yield "openat2 no symlinks", lambda: openat2(fd, "sym", r, 4)
    yield "truncate", lambda: os.truncate(j("trunc-call"), 1)
    yield "truncate dir", lambda: os.truncate(j("list"), 1)
    yield "truncate missing", lambda: os.truncate(j("missing"), 1)
    yield "mkdir", lambda: os.mkdir(j("d-1"))
    yield "mkdir plain", lambda: system(MKDIR, j("d-2/"), 0o755)
    yield "mkdir at", lambda: os.mkdir("d-3", dir_fd=fd)
    yield "mkdir there", lambda: os.mkdir(j("list"))
    yield "mknod fifo", lambda: os.mkfifo(j("fifo-1"))
    yield "mknod reg", lambda: os.mknod(j("reg-1"), stat.S_IFREG | 0o644)
    yield "mknod sock", lambda: os.mknod(j("sock-1"), stat.S_IFSOCK | 0o644)
    yield "mknod plain", lambda: system(MKNOD, j("fifo-2"), stat.S_IFIFO | 0o644, 0)
    yield "mknod at", lambda: os.mkfifo("fifo-3", dir_fd=fd)
    yield "bind", lambda: bound(j("sock-2"))
    yield "bind dgram", lambda: bound(j("sock-3"), socket.SOCK_DGRAM)
    yield "bind there", lambda: bound(j("read"))
    yield "symlink", lambda: os.symlink("x", j("s-1"))
    yield "symlink plain", lambda: system(SYMLINK, "x", j("s-2"))
    yield "symlink at", lambda: os.symlink("x", "s-3", dir_fd=fd)
    yield "unlink", lambda: os.unlink(j("un-1"))
    yield "unlink plain", lambda: system(UNLINK, j("un-2"))
    yield "unlink at", lambda: os.unlink("un-3", dir_fd=fd)
    yield "unlink symlink", lambda: os.unlink(j("sym-d"))
    yield "unlink missing", lambda: os.unlink(j("missing"))
    yield "rmdir", lambda: os.rmdir(j("rm-1"))
    yield "rmdir plain", lambda: system(RMDIR, j("rm-2"))
    yield "rmdir at", lambda: os.rmdir("rm-3", dir_fd=fd)
    yield "rename", lambda: os.rename(j("ren-1"), j("ren-1b"))
    yield "rename plain", lambda: system(RENAME, j("ren-2"), j("ren-2b"))
    yield "rename at", lambda: os.rename("ren-3", "ren-3b", src_dir_fd=fd, dst_dir_fd=fd)
    yield "rename over", lambda: os.rename(j("over"), j("over-it"))
    yield "rename below", lambda: os.rename(j("ren-4"), j("deep/ren-4"))
    yield "rename dir below", lambda: os.rename(j("ren-d"), j("deep/ren-d"))
    yield "rename out", lambda: os.rename(j("out-1"), "out-1")
    yield "rename dir out", lambda: os.rename(j("out-d"), "out-d")
    yield "rename in", lambda: os.rename("in-1", j("in-1"))
    yield "rename missing", lambda: os.rename(j("missing"), j("missing-b"))
    yield "exchange", lambda: system(RENAMEAT2, AT_FDCWD, j("x-1"), AT_FDCWD, j("x-2"), RENAME_EXCHANGE)
    yield "exchange with dir", lambda: system(RENAMEAT2, fd, "x-3", AT_FDCWD, j("x-d"), RENAME_EXCHANGE)
    yield "link", lambda: os.link(j("link-1"), j("link-1b"))
    yield "link plain", lambda: system(LINK, j("link-2"), j("link-2b"))
    yield "link below", lambda: os.link(j("link-3"), j("deep/link-3"))
    yield "link out", lambda: os.link(j("out-2"), "out-2")
    yield "link in", lambda: os.link("in-2", j("in-2"))
    yield "link symlink", lambda: os.link(j("sym"), j("sym-b"), follow_symlinks=False)
    yield "execve", lambda: run(lambda: os.execv(j("run"), ["run"]))
    yield "execve plain", lambda: run(lambda: os.execv(j("plain"), ["plain"]))
    yield "execve dir", lambda: run(lambda: os.execv(j("list"), ["list"]))
    yield "execveat", lambda: run(lambda: system(EXECVEAT, fd, "run", None, None, 0))
    yield "cwd read", lambda: (os.chdir(j("cwd")), opened("../read", r))
    yield "cwd create", lambda: opened("here", w | c)
    yield "cwd list", lambda: opened(".", r)


def threads(d):
    def each(n):
        for _ in range(5):
            try:
                opened(os.path.join(d, f"thread-{n}"), os.O_RDWR)
            except OSError:
                pass
    all_of_them = [threading.Thread(target=each, args=(n,)) for n in range(4)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()


def main(d):
    fd = os.open(d, O_PATH)
    for label, call in table(d, fd):
        try:
            call()
            word = "ok"
        except OSError as e:
            word = errno.errorcode[e.errno]
        print(f"{label}: {word}")
    threads(d)


if __name__ == "__main__":
    if sys.argv[1] == "--prepare":
        prepare(sys.argv[2])
    else:
        main(sys.argv[1])
